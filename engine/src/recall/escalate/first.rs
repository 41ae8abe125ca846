//! The first tier: the rows of the statement's own path, with the spans they cite (TierMem 3.2, step 1).
//!
//! Rows rank by their S plus the best S of a trace they cite: a fact says in other words what its trace may say in the
//! question's. Without a token budget a stage keeps as many rows as it says, 5 by default. Under one, rows are taken
//! while they fit [`FIRST_TOKENS`], each with the spans it cites; a row that does not fit, or whose traces are all
//! there already, is passed over. A row that says no more than a span it cites costs the span alone.

use crate::model::item::{ItemId, Layer, Origin};
use crate::model::tokens;
use crate::read::snapshot::Snapshot;
use crate::recall::context::{Context, Steps};
use crate::recall::group::Frames;
use crate::recall::offers::Offers;
use crate::recall::passages::Logs;
use crate::recall::plan::Plan;
use crate::recall::rank::Scored;
use crate::recall::select::{self, Chosen, Selection};
use crate::recall::words::Words;
use crate::recall::{gather, gather_and_rank};
use crate::records::record::PointerTarget;
use crate::{Error, Result};
use holotype_query::plan::{Gather, Recall, Stage};
use holotype_query::{Channel, Noun};
use std::collections::{BTreeMap, BTreeSet};

/// Tokens of the first tier under a token budget.
pub(super) const FIRST_TOKENS: u64 = 250;
/// Rows of a stage that are looked at under a token budget.
const CONSIDERED: u64 = 64;

/// The rows of the first tier.
pub(super) struct FirstTier {
    pub(super) selection: Selection,
    /// The traces that each row rests on.
    pub(super) cited: Vec<Vec<ItemId>>,
    /// Tokens of the rows and of the spans they cite, each once.
    pub(super) tokens: u64,
}

impl FirstTier {
    /// Drops all rows.
    pub(super) fn drop_rows(&mut self) {
        self.selection.rows.clear();
        self.cited.clear();
        self.tokens = 0;
    }

    /// The traces that rows cite which were written back from an earlier escalation.
    pub(super) fn learned(&self, snapshot: &Snapshot) -> Result<BTreeSet<ItemId>> {
        let mut learned = BTreeSet::new();
        for (row, cited) in self.selection.rows.iter().zip(&self.cited) {
            if snapshot.state.attributes(row.id())?.origin != Origin::Original {
                learned.extend(cited.iter().copied());
            }
        }
        Ok(learned)
    }

    /// All traces that rows cite.
    pub(super) fn traces(&self) -> BTreeSet<ItemId> {
        self.cited.iter().flatten().copied().collect()
    }
}

/// The path of the first tier as it is written, or `through recalls`.
fn path(recall: &Recall) -> Result<Vec<Stage>> {
    let Some(path) = &recall.clauses.path else { return Ok(vec![stage(Noun::Recalls, &[])]) };
    let is_distilled = |stage: &Stage| match stage {
        Stage::Gather(gather) => !matches!(
            gather.noun,
            Noun::Traces | Noun::Turns | Noun::Calls | Noun::Observations | Noun::Pages | Noun::Episodes | Noun::Items
        ),
        Stage::Hops(_) | Stage::Lift(_) => false,
    };
    if path.iter().all(is_distilled) {
        return Ok(path.clone());
    }
    Err(Error::Invalid(
        "escalate needs a path through themes and recalls, such as `through summaries 5`: it reads traces by itself"
            .to_owned(),
    ))
}

fn stage(noun: Noun, channels: &[Channel]) -> Stage {
    Stage::Gather(Box::new(Gather { noun, count: None, channels: channels.to_vec(), pool: None, only: None }))
}

/// The statement of the first tier.
pub(super) fn statement(recall: &Recall) -> Result<Recall> {
    let mut first = recall.clone();
    let mut path = path(recall)?;
    if recall.clauses.budget.is_some() {
        for stage in &mut path {
            if let Stage::Gather(gather) = stage {
                gather.count.get_or_insert(CONSIDERED);
            }
        }
    }
    let clauses = &mut first.clauses;
    clauses.path = Some(path);
    (clauses.escalate, clauses.budget, clauses.limit, clauses.expand) = (None, None, None, None);
    Ok(first)
}

/// The statement whose last stage ranks the traces of pages.
pub(super) fn raw_statement(recall: &Recall) -> Result<Recall> {
    let mut raw = recall.clone();
    let mut path = path(recall)?;
    path.push(stage(Noun::Traces, &[Channel::Linked, Channel::Near, Channel::Words]));
    raw.clauses.path = Some(path);
    raw.clauses.escalate = None;
    Ok(raw)
}

/// Finds the rows of the first tier. `raw` are the ranked traces, with the token budget of the statement.
pub(super) fn find(
    snapshot: &Snapshot,
    plan: &Plan,
    words: &Words<'_>,
    (raw, most): (&[Scored], Option<u64>),
    steps: &mut Steps,
) -> Result<FirstTier> {
    let logs = Logs::new(snapshot, plan);
    let ranked = gather_and_rank(&Context { snapshot, plan, words, logs: &logs }, false, steps)?;
    let selection = select::select(snapshot, plan, Offers::new(plan, ranked.stages), &Frames::default())?;
    let mut first = FirstTier {
        selection: Selection { rows: Vec::new(), damaged: selection.damaged, notes: selection.notes },
        cited: Vec::new(),
        tokens: 0,
    };
    let of_trace: BTreeMap<ItemId, f32> = raw.iter().map(|trace| (trace.id, trace.score())).collect();
    let mut rows = Vec::with_capacity(selection.rows.len());
    for row in selection.rows {
        let cited = grounds(snapshot, plan, &row)?;
        let best = cited.iter().filter_map(|trace| of_trace.get(trace)).copied().fold(0.0f32, f32::max);
        rows.push((row.score() + best, row, cited));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let is_bounded = most.is_some();
    let most = most.map_or(u64::MAX, |budget| budget.min(FIRST_TOKENS));
    let mut paid = Paid::default();
    for (_, row, cited) in rows {
        if is_bounded && !cited.is_empty() && cited.iter().all(|trace| paid.traces.contains(trace)) {
            continue;
        }
        let (cost, spans) = paid.cost(snapshot, plan, &row)?;
        if first.tokens.saturating_add(cost) > most {
            continue;
        }
        first.tokens += cost;
        paid.traces.extend(cited.iter().copied());
        paid.spans.extend(spans);
        first.selection.rows.push(row);
        first.cited.push(cited);
    }
    Ok(first)
}

/// A span of a field of a trace.
type Cited = (ItemId, String, u64, u64);

/// The spans that rows have paid for.
#[derive(Default)]
struct Paid {
    traces: BTreeSet<ItemId>,
    spans: BTreeSet<Cited>,
}

impl Paid {
    /// The tokens of a row with the spans it cites that are not paid for, and those spans.
    fn cost(&self, snapshot: &Snapshot, plan: &Plan, row: &Chosen) -> Result<(u64, Vec<Cited>)> {
        let (mut cost, mut spans, mut is_verbatim) = (0, Vec::new(), false);
        for pointer in snapshot.state.pointers(row.id())? {
            let PointerTarget::Item(id) = pointer.target else { continue };
            let span = (ItemId(id), pointer.field, pointer.start, pointer.end);
            if !plan.traces.contains(id) || self.spans.contains(&span) || spans.contains(&span) {
                continue;
            }
            let content = snapshot.content(span.0)?;
            let bytes = content.field(&span.1).map_or(&[][..], |field| field.value.bytes());
            let cited = String::from_utf8_lossy(select(bytes, span.2, span.3));
            is_verbatim |= says_all(&cited, content.speaker(), row.content.text());
            cost += u64::from(tokens::count(&cited));
            spans.push(span);
        }
        Ok((if is_verbatim { cost } else { cost + u64::from(row.attributes.tokens) }, spans))
    }
}

/// The bytes of a span; of what no longer has it, all.
fn select(bytes: &[u8], start: u64, end: u64) -> &[u8] {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    bytes.get(size(start)..size(end)).unwrap_or(bytes)
}

/// True if a cited span has a row's text in its words, with or without who said it.
fn says_all(cited: &str, speaker: Option<&str>, text: &str) -> bool {
    let said = speaker.and_then(|speaker| text.strip_prefix(speaker)?.strip_prefix(": ")).unwrap_or(text);
    !said.is_empty() && cited.contains(said)
}

/// The visible traces whose spans a row cites. A pointer to a whole page is no span: reading it is an escalation.
fn grounds(snapshot: &Snapshot, plan: &Plan, row: &Chosen) -> Result<Vec<ItemId>> {
    let mut traces = Vec::new();
    for pointer in snapshot.state.pointers(row.id())? {
        if let PointerTarget::Item(id) = pointer.target
            && plan.traces.contains(id)
            && !traces.contains(&ItemId(id))
        {
            traces.push(ItemId(id));
        }
    }
    Ok(traces)
}

/// The traces that an item rests on in the end, through recalls and pages: where its pages are.
pub(super) fn linked_traces(snapshot: &Snapshot, plan: &Plan, recall: ItemId) -> Result<Vec<ItemId>> {
    gather::neighbours(snapshot, plan, recall, Layer::Trace)
}
