//! Stages of pages and episodes, and lifts to them: traces by the place they stand in.
//!
//! A stage of pages looks for traces and keeps the pages of the best of them: each page is as good as its best trace (TierMem
//! 3.2: ranked against the question, grouped by page, the best pages each once). A lift goes the other way round: from items
//! to the traces they rest on, and the places that enough of the items vote for (PlugMem A.1). Either way all traces of the
//! places that are kept are candidates, and the next stage may look among them.

use super::candidates::{Candidates, Found};
use super::gather::{Gathered, neighbours};
use super::plan::{LiftPlan, Plan, StagePlan};
use super::rank;
use super::words::Words;
use crate::Result;
use crate::attributes::{Column, Wanted};
use crate::item::{Attributes, ItemId, Layer};
use crate::places::rows;
use crate::snapshot::Snapshot;
use holotype_index::bitmap::Bits;
use holotype_query::Noun;
use holotype_query::ast::Predicate;
use std::collections::BTreeMap;

/// Where a trace stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A memory page, by number.
    Page(u32),
    /// An episode, by number.
    Episode(u32),
}

impl Place {
    /// The page or episode of a trace; none while its page is open.
    pub(crate) fn of(noun: Noun, attributes: &Attributes) -> Option<Place> {
        match noun {
            Noun::Pages => attributes.page.map(Place::Page),
            Noun::Episodes => attributes.episode.map(Place::Episode),
            _ => None,
        }
    }

    /// Its name: `page p7`, `episode trip-42`.
    pub(crate) fn name(self, snapshot: &Snapshot) -> Result<String> {
        Ok(match self {
            Place::Page(number) => format!("page {}", snapshot.state.page(number)?.key),
            Place::Episode(number) => format!("episode {}", snapshot.state.episode(number)?.id),
        })
    }

    /// Its traces, in order.
    pub(crate) fn traces(self, snapshot: &Snapshot) -> Result<Vec<u32>> {
        let state = &snapshot.state;
        match self {
            Place::Page(number) => Ok(state.page(number)?.traces),
            Place::Episode(number) => {
                let wanted = Wanted::Within(i64::from(number), i64::from(number));
                let of_episode = state.attributes.select_wanted(Column::Episode, state.bound(), wanted)?;
                Ok(of_episode.and(&state.attributes.layer(Layer::Trace, state.bound())?).iter().collect())
            }
        }
    }
}

/// The traces that a stage of pages or episodes may go through: of all of them, or of those that `only` holds for.
pub(crate) fn route(snapshot: &Snapshot, noun: Noun, only: Option<&Predicate>, traces: &Bits) -> Result<Bits> {
    if let Some(only) = only {
        let mut among = Vec::new();
        for (number, row) in rows(snapshot, noun)? {
            snapshot.look_at(1)?;
            if crate::filter::holds_for_row(&|name| Ok(crate::cell::named(&row, name)), only)? {
                let place = if noun == Noun::Pages { Place::Page(number) } else { Place::Episode(number) };
                among.extend(place.traces(snapshot)?);
            }
        }
        return Ok(traces.and(&among.into_iter().collect()));
    }
    if noun == Noun::Pages {
        return Ok(traces.and_not(&crate::places::without_page(snapshot)?.into_iter().collect()));
    }
    Ok(traces.clone())
}

/// Of the traces that were gathered the best places, and all of their traces.
pub(crate) fn group(
    snapshot: &Snapshot,
    plan: &Plan,
    stage: &StagePlan,
    most: usize,
    words: &Words<'_>,
    gathered: Gathered,
    relaxed: bool,
) -> Result<Gathered> {
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let same = gathered.rows.ids().eq(gathered.routed.ids());
    let routed_places = best(snapshot, plan, stage, most, words, gathered.routed.clone())?;
    let row_places =
        if same { routed_places.clone() } else { best(snapshot, plan, stage, most, words, gathered.rows.clone())? };
    let mut steps = gathered.steps;
    steps.push(format!("kept: {}, with all of their traces", routed_places.len()));
    Ok(Gathered {
        routed: with_traces(snapshot, &routed_places, &gathered.routed, &stage.route)?,
        rows: with_traces(snapshot, &row_places, &gathered.rows, rows_filter)?,
        steps,
        complete: gathered.complete,
    })
}

/// The places of the best candidates, best first.
fn best(
    snapshot: &Snapshot,
    plan: &Plan,
    stage: &StagePlan,
    most: usize,
    words: &Words<'_>,
    candidates: Candidates,
) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for scored in rank::rank(snapshot, plan, stage, words, candidates)? {
        if places.len() == most {
            break;
        }
        places.extend(
            Place::of(stage.noun, &snapshot.state.attributes(scored.id)?).filter(|place| !places.contains(place)),
        );
    }
    Ok(places)
}

/// All traces of some places that a filter lets through, each with how it was found itself.
fn with_traces(snapshot: &Snapshot, places: &[Place], found: &Candidates, filter: &Bits) -> Result<Candidates> {
    let mut all = Vec::new();
    for place in places {
        for trace in place.traces(snapshot)?.into_iter().filter(|trace| filter.contains(*trace)) {
            let mut how = found.get(trace).cloned().unwrap_or_default();
            how.place = Some(*place);
            all.push((trace, how));
        }
    }
    Ok(all.into_iter().collect())
}

/// Lifts items to the traces, pages or episodes they came from: those that enough of them vote for, most votes first.
pub(crate) fn lift(
    snapshot: &Snapshot,
    plan: &Plan,
    stage: &StagePlan,
    lift: LiftPlan,
    from: &[ItemId],
    relaxed: bool,
) -> Result<Gathered> {
    let mut votes: BTreeMap<(Option<Place>, u32), Vec<ItemId>> = BTreeMap::new();
    for id in from {
        let traces = match snapshot.state.layer_of(*id)? {
            Layer::Trace => vec![*id],
            Layer::Recall | Layer::Theme => neighbours(snapshot, plan, *id, Layer::Trace)?,
        };
        for trace in traces {
            let place = Place::of(lift.noun, &snapshot.state.attributes(trace)?);
            let target = match (lift.noun, place) {
                (Noun::Pages | Noun::Episodes, None) => continue,
                (_, Some(place)) => (Some(place), 0),
                (_, None) => (None, trace.0),
            };
            let voters = votes.entry(target).or_default();
            if !voters.contains(id) {
                voters.push(*id);
            }
        }
    }
    let mut targets: Vec<_> = votes.into_iter().filter(|(_, voters)| voters.len() >= lift.votes.max(1)).collect();
    targets.sort_by_key(|(target, voters)| (std::cmp::Reverse(voters.len()), *target));
    targets.truncate(lift.count);
    let steps = vec![format!("lift: {} from {} items", targets.len(), from.len())];
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let mut routed = Vec::new();
    for ((place, trace), voters) in targets {
        let traces = place.map_or(Ok(vec![trace]), |place| place.traces(snapshot))?;
        let found = Found::lifted(voters, place);
        routed.extend(
            traces.into_iter().filter(|trace| stage.route.contains(*trace)).map(|trace| (trace, found.clone())),
        );
    }
    let routed: Candidates = routed.into_iter().collect();
    Ok(Gathered { rows: routed.filtered(|trace| rows_filter.contains(trace)), routed, steps, complete: false })
}
