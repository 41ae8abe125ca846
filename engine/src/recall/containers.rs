//! Stages of pages and episodes, and lifts to them: recall by the container of a trace.
//!
//! A stage of pages gathers traces and keeps the pages of the best ones; a page ranks as high as its best trace
//! (TierMem 3.2: rank against the query, group by page, take the best pages once). A lift goes the other way: from
//! items to the traces they rest on, and to the containers that enough items vote for (PlugMem A.1). In both cases
//! all traces of the kept containers are candidates, and the next stage may search among them.

use super::candidates::{Candidates, MatchPath};
use super::container::Container;
use super::context::Context;
use super::gather::{Gathered, neighbours};
use super::plan::{LiftPlan, StagePlan};
use super::rank;
use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::model::plural::counted;
use crate::read::container_rows::rows;
use crate::read::snapshot::Snapshot;
use holotype_index::bitmap::Bits;
use holotype_query::Noun;
use holotype_query::plan::Predicate;
use std::collections::BTreeMap;

/// The traces a stage of pages or episodes may route through: all of them, or those whose container matches `only`.
pub(crate) fn route(snapshot: &Snapshot, noun: Noun, only: Option<&Predicate>, traces: &Bits) -> Result<Bits> {
    if let Some(only) = only {
        let mut among = Vec::new();
        for (number, row) in rows(snapshot, noun)? {
            snapshot.charge_rows(1)?;
            if crate::read::filter::holds_for_row(&|name| Ok(crate::read::cell::named(&row, name)), only)? {
                let container = if noun == Noun::Pages { Container::Page(number) } else { Container::Episode(number) };
                among.extend(container.traces(snapshot)?);
            }
        }
        return Ok(traces.and(&among.into_iter().collect()));
    }
    if noun == Noun::Pages {
        return Ok(traces.and_not(&crate::read::container_rows::without_page(snapshot)?.into_iter().collect()));
    }
    Ok(traces.clone())
}

/// Keeps the best containers of the gathered traces, with all of their traces.
pub(crate) fn group(
    context: &Context<'_, '_>,
    stage: &StagePlan,
    most: usize,
    gathered: Gathered,
    relaxed: bool,
) -> Result<Gathered> {
    let snapshot = context.snapshot;
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let same = gathered.rows.ids().eq(gathered.routed.ids());
    let routed_containers = best(context, stage, most, gathered.routed.clone())?;
    let row_containers =
        if same { routed_containers.clone() } else { best(context, stage, most, gathered.rows.clone())? };
    let mut steps = gathered.steps;
    steps.push(format!("kept: {}, with all of their traces", routed_containers.len()));
    Ok(Gathered {
        routed: expand_to_traces(snapshot, &routed_containers, &gathered.routed, &stage.route)?,
        rows: expand_to_traces(snapshot, &row_containers, &gathered.rows, rows_filter)?,
        steps,
        complete: gathered.complete,
    })
}

/// The containers of the best candidates, best first.
fn best(context: &Context<'_, '_>, stage: &StagePlan, most: usize, candidates: Candidates) -> Result<Vec<Container>> {
    let mut containers = Vec::new();
    for scored in rank::rank(context, stage, candidates)? {
        if containers.len() == most {
            break;
        }
        containers.extend(
            Container::of(stage.noun, &context.snapshot.state.attributes(scored.id)?)
                .filter(|container| !containers.contains(container)),
        );
    }
    Ok(containers)
}

/// All traces of the containers that pass the filter, with their own match paths.
fn expand_to_traces(
    snapshot: &Snapshot,
    containers: &[Container],
    found: &Candidates,
    filter: &Bits,
) -> Result<Candidates> {
    let mut all = Vec::new();
    for container in containers {
        for trace in container.traces(snapshot)?.into_iter().filter(|trace| filter.contains(*trace)) {
            let mut how = found.get(trace).cloned().unwrap_or_default();
            how.container = Some(*container);
            all.push((trace, how));
        }
    }
    Ok(all.into_iter().collect())
}

/// These traces as candidates that their pages led to.
pub(crate) fn on_pages(snapshot: &Snapshot, traces: &Bits) -> Result<Candidates> {
    let mut all = Vec::new();
    for trace in traces.iter() {
        let container = Container::of(Noun::Pages, &snapshot.state.attributes(ItemId(trace))?);
        all.push((trace, MatchPath::within(container)));
    }
    Ok(all.into_iter().collect())
}

/// Items from which a lift to episodes asks for several votes, and their number, if a path states none (PlugMem A.1).
const MANY: usize = 30;
const VOTES_OF_MANY: usize = 3;

/// Lifts items to the traces, pages or episodes they came from: those with enough votes, most votes first.
pub(crate) fn lift(
    context: &Context<'_, '_>,
    stage: &StagePlan,
    lift: LiftPlan,
    from: &[ItemId],
    relaxed: bool,
) -> Result<Gathered> {
    let Context { snapshot, plan, .. } = *context;
    let mut votes: BTreeMap<(Option<Container>, u32), Vec<ItemId>> = BTreeMap::new();
    for id in from {
        let traces = match snapshot.state.layer_of(*id)? {
            Layer::Trace => vec![*id],
            Layer::Recall | Layer::Theme => neighbours(snapshot, plan, *id, Layer::Trace)?,
        };
        for trace in traces {
            let container = Container::of(lift.noun, &snapshot.state.attributes(trace)?);
            let target = match (lift.noun, container) {
                (Noun::Pages | Noun::Episodes, None) => continue,
                (_, Some(container)) => (Some(container), 0),
                (_, None) => (None, trace.0),
            };
            let voters = votes.entry(target).or_default();
            if !voters.contains(id) {
                voters.push(*id);
            }
        }
    }
    let asks_for_many = lift.noun == Noun::Episodes && from.len() >= MANY;
    let least = lift.votes.unwrap_or(if asks_for_many { VOTES_OF_MANY } else { 1 }).max(1);
    let mut targets: Vec<_> = votes.into_iter().filter(|(_, voters)| voters.len() >= least).collect();
    targets.sort_by_key(|(target, voters)| (std::cmp::Reverse(voters.len()), *target));
    targets.truncate(lift.count);
    let steps = vec![format!("lift: {} from {}", targets.len(), counted(from.len() as u64, "items"))];
    let rows_filter = if relaxed { &stage.relaxable } else { &stage.rows };
    let mut routed = Vec::new();
    for ((container, trace), voters) in targets {
        let traces = container.map_or(Ok(vec![trace]), |container| container.traces(snapshot))?;
        let found = MatchPath::lifted(voters, container);
        routed.extend(
            traces.into_iter().filter(|trace| stage.route.contains(*trace)).map(|trace| (trace, found.clone())),
        );
    }
    let routed: Candidates = routed.into_iter().collect();
    Ok(Gathered { rows: routed.filtered(|trace| rows_filter.contains(trace)), routed, steps, complete: false })
}
