//! Gathering and ranking: the stages of a plan in order, each with the candidates of the stage before.

use super::candidates::{Candidates, MatchPath};
use super::containers;
use super::context::{Context, Steps};
use super::gather::{self, Gathered, StageQuery};
use super::hops;
use super::passages::Logs;
use super::plan::{self, Group, StagePlan};
use super::rank::{self, Scored};
use super::words::Words;
use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::model::plural::counted;
use crate::read::snapshot::Snapshot;
use holotype_index::bitmap::Bits;
use std::time::Instant;

/// The candidates that the stages of a plan found.
pub(super) struct Ranked {
    /// The candidates of each stage, best first.
    pub(super) stages: Vec<Vec<Scored>>,
    /// True if they include every possible row.
    pub(super) complete: bool,
}

/// Runs the stages of a plan; with `relaxed`, excluded items are candidates too.
pub(super) fn gather_and_rank(context: &Context<'_, '_>, relaxed: bool, steps: &mut Steps) -> Result<Ranked> {
    let plan = context.plan;
    let mut runner = StageRunner::new(context, relaxed, steps)?;
    let first = StageQuery { text: plan.text.clone(), vector: plan.vector.clone() };
    let mut at = 0;
    while at < plan.stages.len() {
        match plan.groups.iter().find(|group| group.from == at) {
            None => {
                runner.stage(at, &first)?;
                at += 1;
            }
            Some(group) => {
                match hops::is_routed(plan, group) {
                    true => hops::walk(&mut runner, *group, &first)?,
                    false => runner.repeat(group, &first)?,
                }
                at = group.to;
            }
        }
    }
    let StageRunner { ranked: stages, complete, .. } = runner;
    Ok(Ranked { stages, complete })
}

/// The query of the next hop: the original text followed by the texts of the best rows.
fn carried_query(snapshot: &Snapshot, first: &StageQuery, best: &[ItemId], carry: usize) -> Result<StageQuery> {
    let mut text = first.text.clone().unwrap_or_default();
    for id in best.iter().take(carry) {
        text.push('\n');
        text.push_str(snapshot.content(*id)?.text());
    }
    let vector = plan::embed_text(snapshot, &text)?.or_else(|| first.vector.clone());
    Ok(StageQuery { text: Some(text), vector })
}

/// Runs the stages of a plan in order and passes candidates on.
pub(super) struct StageRunner<'r, 'w> {
    pub(super) context: Context<'r, 'w>,
    pub(super) steps: &'r mut Steps,
    /// The routable candidates of the last stage, and the best of its rows.
    pub(super) before: Candidates,
    pub(super) best: Vec<ItemId>,
    /// The candidates of each stage, best first.
    pub(super) ranked: Vec<Vec<Scored>>,
    pub(super) complete: bool,
    pub(super) relaxed: bool,
    /// The words of the current hop, which include texts of earlier rows.
    pub(super) hop: Option<Words<'w>>,
    /// The concepts that the question names, for a path with a routed group, and the findings of a hop of it.
    pub(super) routing: Option<hops::Routing>,
    pub(super) found: Option<hops::HopFound>,
}

impl<'r, 'w> StageRunner<'r, 'w> {
    fn new(context: &Context<'r, 'w>, relaxed: bool, steps: &'r mut Steps) -> Result<StageRunner<'r, 'w>> {
        Ok(StageRunner {
            context: *context,
            steps,
            before: Candidates::default(),
            best: Vec::new(),
            ranked: vec![Vec::new(); context.plan.stages.len()],
            complete: true,
            relaxed,
            hop: None,
            routing: hops::Routing::of(context.snapshot, context.plan, context.words)?,
            found: None,
        })
    }

    /// Walks a group hop by hop; each hop asks with the texts of the best rows too (PlugMem 3.2).
    fn repeat(&mut self, group: &Group, first: &StageQuery) -> Result<()> {
        let Context { snapshot, words, .. } = self.context;
        let mut asked = first.clone();
        for hop in 1..=group.hops {
            let known: usize = self.ranked.iter().map(Vec::len).sum();
            for at in group.from..group.to {
                self.stage(at, &asked)?;
            }
            let found = self.ranked.iter().map(Vec::len).sum::<usize>() - known;
            self.steps.push((format!("hop {hop}"), counted(found as u64, "new candidates")));
            if found == 0 {
                break;
            }
            asked = carried_query(snapshot, first, &self.best, group.carry)?;
            self.hop = asked.text.as_deref().map(|text| words.ask(text));
        }
        self.hop = None;
        Ok(())
    }

    /// Gathers and ranks the candidates of a stage.
    pub(super) fn stage(&mut self, at: usize, asked: &StageQuery) -> Result<()> {
        let started = Instant::now();
        let stage = &self.context.plan.stages[at];
        let gathered = self.candidates(stage, asked)?;
        self.rank(at, gathered)?;
        self.steps.push((stage.noun.to_string(), format!("took {} µs", started.elapsed().as_micros())));
        Ok(())
    }

    /// The candidates of a stage, with their neighbours.
    fn candidates(&self, stage: &StagePlan, asked: &StageQuery) -> Result<Gathered> {
        let Context { snapshot, plan, words: first_words, logs } = self.context;
        let words = self.hop.as_ref().unwrap_or(first_words);
        let filter = if self.relaxed { &stage.relaxable } else { &stage.rows };
        if let Some(found) = &self.found {
            return Ok(found.gathered(filter));
        }
        let mut gathered = match stage.lift {
            Some(lift) => containers::lift(&self.context, stage, lift, &self.best, self.relaxed)?,
            None => gather::gather(&Context { words, ..self.context }, stage, asked, &self.before, self.relaxed)?,
        };
        if stage.takes_all {
            gathered.rows.add(containers::on_pages(snapshot, filter)?);
        }
        if let Some(routing) = &self.routing {
            gathered.rows.add(routing.candidates(filter));
        }
        if let Some(most) = stage.container_limit {
            gathered = containers::group(&self.context, stage, most, gathered, self.relaxed)?;
        }
        if stage.is_in(Layer::Trace) && plan.weights.context > 0.0 {
            add_log_neighbours(logs, filter, &mut gathered.rows)?;
        }
        Ok(gathered)
    }

    /// The candidates of a stage with S, best first.
    fn scored(&self, stage: &StagePlan, candidates: Candidates) -> Result<Vec<Scored>> {
        let Context { snapshot, plan, words, .. } = self.context;
        let rows = rank::rank(&self.context, stage, candidates)?;
        match &self.routing {
            Some(routing) => {
                let most = hops::most_ranked(plan, stage.count);
                routing.adjusted(snapshot, plan, words, rows, most)
            }
            None => Ok(rows),
        }
    }

    /// Ranks the candidates of a stage and keeps them.
    fn rank(&mut self, at: usize, gathered: Gathered) -> Result<()> {
        let stage = &self.context.plan.stages[at];
        self.complete &= gathered.complete;
        for step in gathered.steps {
            self.steps.push((stage.noun.to_string(), step));
        }
        let rows = self.scored(stage, gathered.rows)?;
        self.steps.push((stage.noun.to_string(), counted(rows.len() as u64, "candidates ranked")));
        let count = stage.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        self.best = rows.iter().take(count).map(|scored| scored.id).collect();
        if self.best.is_empty() {
            self.best = gathered.routed.ids().map(ItemId).collect();
        }
        self.before = gathered.routed;
        let ranked = &mut self.ranked[at];
        if ranked.is_empty() {
            *ranked = rows;
        } else {
            // A later hop adds new candidates; known ones keep their earlier rank.
            let known: std::collections::HashSet<ItemId> = ranked.iter().map(|scored| scored.id).collect();
            ranked.extend(rows.into_iter().filter(|scored| !known.contains(&scored.id)));
            ranked.sort_by(Scored::best_first);
        }
        Ok(())
    }
}

/// Adds the log neighbours of candidates, because an answer is found next to its question. Used with a context
/// weight.
fn add_log_neighbours(logs: &Logs<'_>, filter: &Bits, rows: &mut Candidates) -> Result<()> {
    let mut new = Vec::new();
    for id in rows.ids().filter(|id| filter.contains(*id)) {
        let Some(log) = logs.of(id)? else { continue };
        for at in id.saturating_sub(2)..=id.saturating_add(2) {
            if filter.contains(at) && rows.get(at).is_none() && logs.of(at)? == Some(log) {
                new.push((at, MatchPath::default()));
            }
        }
    }
    rows.add(new.into_iter().collect());
    Ok(())
}
