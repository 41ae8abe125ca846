//! The stages of a recall's path: first their counts, channels and pools, then their sets.

use super::{CARRY, Context, Group, KEEP, LiftPlan, MIN_POOL, StageLayer, StagePlan};
use crate::model::item::Layer;
use crate::read::filter::Filter;
use crate::recall::containers;
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Gather, Lift, Predicate, Stage};
use holotype_query::{Channel, Noun};
use std::sync::Arc;

impl Context<'_> {
    /// The stages of the recall with their sets, and its groups. `rows` is the number of rows that a stage without a
    /// number should find at least, `None` under a token budget.
    pub(super) fn stages(&self, rows: Option<u64>) -> Result<(Vec<StagePlan>, Vec<Group>)> {
        let drafter = Drafter { rows, bound: self.filter.snapshot.state.bound() as usize + 1 };
        let Some(path) = &self.clauses.path else {
            return Ok((self.plan(drafter.default_path(), false)?, Vec::new()));
        };
        let mut groups = Vec::new();
        let mut drafts = Vec::new();
        for stage in flat(path, &mut groups)? {
            match stage {
                Stage::Gather(gather) => drafts.push(drafter.gather(gather, drafts.is_empty())),
                Stage::Lift(lift) => drafts.push(drafter.lift(lift)),
                Stage::Hops(_) => {}
            }
        }
        if drafts.is_empty() {
            return Err(Error::Invalid("a path needs at least one stage".to_owned()));
        }
        Ok((self.plan(drafts, !groups.is_empty())?, groups))
    }

    fn plan(&self, drafts: Vec<StageDraft>, is_grouped: bool) -> Result<Vec<StagePlan>> {
        let last = drafts.len() - 1;
        drafts.into_iter().enumerate().map(|(index, draft)| self.stage(draft, index == last, is_grouped)).collect()
    }

    /// Makes the sets of a stage.
    fn stage(&self, stage: StageDraft, is_last: bool, is_grouped: bool) -> Result<StagePlan> {
        let layers = layers(self.filter, stage.noun)?;
        let is_of_containers = is_container(stage.noun);
        let route = self.route(&stage)?;
        let mut relaxable = match &self.wanted {
            Some(wanted) => Arc::new(route.and(wanted)),
            None => Arc::clone(&route),
        };
        if !is_last {
            // Themes, pages and episodes route; they give rows only where the path ends with them.
            for part in layers.iter().filter(|part| is_of_containers || part.layer == Layer::Theme) {
                relaxable = match &part.items {
                    Some(items) => Arc::new(relaxable.and_not(items)),
                    None => Arc::default(),
                };
            }
        }
        let rows = self.sets.admitted(self.filter, &relaxable, &layers, &self.exclusions)?;
        Ok(StagePlan {
            noun: stage.noun,
            layers,
            count: stage.count,
            container_limit: stage.container_limit,
            channels: stage.channels,
            pool: stage.pool,
            route,
            rows,
            relaxable,
            lift: stage.lift,
            takes_all: false,
            routes_on: !is_last || is_grouped || is_of_containers,
        })
    }

    /// The items that a stage may route through.
    fn route(&self, stage: &StageDraft) -> Result<Arc<Bits>> {
        let is_of_containers = is_container(stage.noun);
        let route = self.sets.of(self.filter, if is_of_containers { Noun::Traces } else { stage.noun })?;
        if is_of_containers && stage.lift.is_none() {
            let found = containers::route(self.filter.snapshot, stage.noun, stage.only.as_ref(), &route)?;
            return Ok(Arc::new(found));
        }
        match &stage.only {
            Some(only) => Ok(Arc::new(self.filter.evaluate(only, &route)?)),
            None => Ok(route),
        }
    }
}

/// A stage before its sets are made.
struct StageDraft {
    noun: Noun,
    count: Option<u64>,
    container_limit: Option<usize>,
    channels: Vec<Channel>,
    pool: usize,
    only: Option<Predicate>,
    lift: Option<LiftPlan>,
}

/// Decides counts, channels and pools that a path does not state.
struct Drafter {
    rows: Option<u64>,
    /// One more than the number of items: no pool is larger.
    bound: usize,
}

impl Drafter {
    /// Themes 3, recalls 5, traces 5 (HELM Algorithm 3); a limit above that raises recalls and traces.
    fn default_path(&self) -> Vec<StageDraft> {
        vec![
            self.draft(Noun::Themes, self.rows.map(|_| 3), true),
            self.draft(Noun::Recalls, self.least(5), false),
            self.draft(Noun::Traces, self.least(5), false),
        ]
    }

    fn gather(&self, gather: &Gather, is_first: bool) -> StageDraft {
        let count = gather.count.or(self.least(5));
        let mut stage = self.draft(gather.noun, count, is_first);
        if is_container(gather.noun) {
            stage.container_limit = Some(count.map_or(usize::MAX, size));
            stage.count = None;
        }
        if !gather.channels.is_empty() {
            stage.channels = gather.channels.clone();
        } else if !is_first {
            stage.channels = vec![Channel::Linked, Channel::Near];
        }
        if let Some(pool) = gather.pool {
            stage.pool = size(pool).min(self.bound);
        }
        stage.only = gather.only.clone();
        stage
    }

    /// All traces of the pages or episodes that a lift keeps are rows.
    fn lift(&self, lift: &Lift) -> StageDraft {
        let noun = lift.noun;
        let count = lift.count;
        let mut stage = self.draft(noun, count.or(self.least(5)).filter(|_| !is_container(noun)), false);
        let votes = lift.votes.map(size);
        stage.lift = Some(LiftPlan { noun, count: count.map_or(usize::MAX, size), votes });
        stage
    }

    fn draft(&self, noun: Noun, count: Option<u64>, is_first: bool) -> StageDraft {
        let pool = count.map_or(MIN_POOL, |count| MIN_POOL.max(count.saturating_mul(10)));
        let channels: &[Channel] = match is_first {
            true => &[Channel::Near, Channel::Words],
            false => &[Channel::Linked, Channel::Near, Channel::Words],
        };
        StageDraft {
            noun,
            count,
            container_limit: None,
            channels: channels.to_vec(),
            pool: size(pool).min(self.bound),
            only: None,
            lift: None,
        }
    }

    /// The count of a stage that states none: the rows of the answer, and at least `least`.
    fn least(&self, least: u64) -> Option<u64> {
        self.rows.map(|rows| rows.max(least))
    }
}

fn is_container(noun: Noun) -> bool {
    matches!(noun, Noun::Pages | Noun::Episodes)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The stages of a path without their groups, which are added to `groups`.
fn flat<'p>(path: &'p [Stage], groups: &mut Vec<Group>) -> Result<Vec<&'p Stage>> {
    let mut stages = Vec::new();
    for stage in path {
        let Stage::Hops(hops) = stage else {
            stages.push(stage);
            continue;
        };
        let from = stages.len();
        for inner in &hops.stages {
            if matches!(inner, Stage::Hops(_)) {
                return Err(Error::Invalid("groups of stages cannot be nested".to_owned()));
            }
            stages.push(inner);
        }
        let carry = hops.carry.unwrap_or(CARRY);
        groups.push(Group {
            from,
            to: stages.len(),
            hops: hops.up_to,
            carry: usize::try_from(carry).unwrap_or(usize::MAX),
            keep: hops.keep.unwrap_or(KEEP),
        });
    }
    Ok(stages)
}

/// The layers that a stage of a noun searches: pages and episodes are found by their traces.
fn layers(filter: &Filter<'_>, noun: Noun) -> Result<Vec<StageLayer>> {
    let only = |layer| Ok(vec![StageLayer { layer, items: None }]);
    match noun {
        Noun::Themes | Noun::Concepts | Noun::Intents => only(Layer::Theme),
        Noun::Recalls | Noun::Summaries | Noun::Facts | Noun::Procedures => only(Layer::Recall),
        Noun::Traces | Noun::Turns | Noun::Calls | Noun::Observations | Noun::Pages | Noun::Episodes => {
            only(Layer::Trace)
        }
        Noun::Items => {
            let of = |(layer, noun)| Ok(StageLayer { layer, items: Some(filter.noun(noun)?) });
            let all = [(Layer::Trace, Noun::Traces), (Layer::Recall, Noun::Recalls), (Layer::Theme, Noun::Themes)];
            all.into_iter().map(of).collect()
        }
    }
}
