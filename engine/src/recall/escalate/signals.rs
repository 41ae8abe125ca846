//! The signals of the router: what the first tier holds of what the question asks, and of the raw evidence in view.

use super::first::FirstTier;
use crate::Result;
use crate::memory::router::reading::{self, Candidate};
use crate::memory::router::{self, Signals};
use crate::model::item::{ItemId, Layer};
use crate::read::snapshot::Snapshot;
use crate::recall::answerable;
use crate::recall::plan::Plan;
use crate::recall::rank::Scored;
use crate::recall::words::Words;
use holotype_index::bitmap::Bits;
use std::collections::BTreeSet;

/// The raw traces in view, best first, with what each promises.
pub(super) struct InView<'r> {
    traces: &'r [Scored],
    candidates: Vec<Candidate>,
    /// The share of all expected evidence in one token of each.
    shares: Vec<f32>,
}

impl<'r> InView<'r> {
    /// Estimates what each of these traces promises.
    pub(super) fn new(snapshot: &Snapshot, plan: &Plan, first: &FirstTier, traces: &'r [Scored]) -> Result<Self> {
        let learned = first.learned(snapshot)?;
        let mut candidates = Vec::with_capacity(traces.len());
        for trace in traces {
            candidates.push(Candidate {
                score: trace.score(),
                tokens: snapshot.state.attributes(trace.id)?.tokens,
                learned: learned.contains(&trace.id),
            });
        }
        let asks = router::asks(plan.text.as_deref().unwrap_or_default());
        let shares = reading::shares(&candidates, asks);
        Ok(InView { traces, candidates, shares })
    }

    /// The traces that are worth their tokens under a budget.
    pub(super) fn worth(&self, budget: u64) -> Bits {
        let worth = self.traces.iter().zip(&self.shares).filter(|(_, share)| reading::is_worth(**share, budget));
        worth.map(|(trace, _)| trace.id.0).collect()
    }

    /// The share of the expected evidence that is cited.
    fn cited(&self, cited: &BTreeSet<ItemId>) -> f32 {
        self.share(|trace, _| cited.contains(&trace.id))
    }

    /// The share of it on which findings rest that were written back.
    fn learned(&self) -> f32 {
        self.share(|_, candidate| candidate.learned)
    }

    fn share(&self, counts: impl Fn(&Scored, &Candidate) -> bool) -> f32 {
        let all = self.traces.iter().zip(&self.candidates).zip(&self.shares);
        let held = all.filter(|((trace, candidate), _)| counts(trace, candidate));
        held.map(|((_, candidate), share)| share * candidate.tokens as f32).sum::<f32>().min(1.0)
    }
}

/// Computes the signals.
pub(super) fn signals(
    snapshot: &Snapshot,
    plan: &Plan,
    words: &Words<'_>,
    first: &FirstTier,
    in_view: &InView<'_>,
) -> Result<Signals> {
    let raw = in_view.traces;
    let question = plan.text.as_deref().unwrap_or_default();
    let cited = first.traces();
    let (asks_many, asks_time, asks_judgement) = router::asks(question);
    let (terms, row_terms) = coverage(words, first)?;
    let (names, numbers) = named(snapshot, question, first, &cited)?;
    let rows = &first.selection.rows;
    let similar = rows.iter().map(|row| row.parts().similarity).fold(0.0f32, f32::max);
    let gap = match (rows.first(), rows.last()) {
        (Some(best), Some(last)) if best.score() > 0.0 => {
            ((best.score() - last.score()) / best.score()).clamp(0.0, 1.0)
        }
        _ => 0.0,
    };
    let best_where = |wanted: bool| raw.iter().find(|trace| cited.contains(&trace.id) == wanted).map(Scored::score);
    let uncited_lead = match (best_where(false), best_where(true)) {
        (Some(uncited), Some(cited)) => (uncited - cited).clamp(0.0, 1.0),
        (Some(_), None) => 1.0,
        (None, _) => 0.0,
    };
    let first_cited = raw.iter().position(|trace| cited.contains(&trace.id)).map_or(0.0, |at| 1.0 / (at as f32 + 1.0));
    let flag = |is: bool| if is { 1.0 } else { 0.0 };
    Ok(Signals {
        terms,
        row_terms,
        names,
        numbers,
        similarity: if plan.weights.similarity > 0.0 {
            (similar / plan.weights.similarity).clamp(0.0, 1.0)
        } else {
            0.0
        },
        gap,
        agreement: if raw.is_empty() { 1.0 } else { in_view.cited(&cited) },
        learned: in_view.learned(),
        first_cited,
        uncited_lead,
        asks_many: flag(asks_many),
        asks_time: flag(asks_time),
        asks_judgement: flag(asks_judgement),
    })
}

/// The shares of the question's terms, by rarity, in all rows with their traces and in the best of them.
fn coverage(words: &Words<'_>, first: &FirstTier) -> Result<(f32, f32)> {
    let (Some(of_traces), Some(of_recalls)) = (words.of(Layer::Trace)?, words.of(Layer::Recall)?) else {
        return Ok((0.0, 0.0));
    };
    let terms = of_traces.terms();
    let weight = |at: usize| if terms[at].surface { 0.0 } else { terms[at].weight * terms[at].idf };
    let whole: f32 = (0..terms.len()).map(weight).sum();
    if whole <= 0.0 {
        return Ok((0.0, 0.0));
    }
    let (mut all, mut best) = (vec![false; terms.len()], 0.0f32);
    for (row, cited) in first.selection.rows.iter().zip(&first.cited) {
        let mut own = vec![false; terms.len()];
        let ids: Vec<u32> = cited.iter().map(|id| id.0).collect();
        let tables = [of_traces.occurrences(&ids)?, of_recalls.occurrences(&[row.id().0])?];
        for (table, count) in tables.iter().zip([ids.len(), 1]) {
            for place in 0..count {
                let found = table.frequencies(place).unwrap_or_default();
                own.iter_mut().zip(found).for_each(|(own, found)| *own |= *found > 0.0);
            }
        }
        best = best.max((0..terms.len()).filter(|at| own[*at]).map(weight).sum());
        all.iter_mut().zip(own).for_each(|(all, own)| *all |= own);
    }
    let held: f32 = (0..terms.len()).filter(|at| all[*at]).map(weight).sum();
    Ok((held / whole, best / whole))
}

/// The shares of the question's names and numbers that occur in the rows or in what they cite.
fn named(snapshot: &Snapshot, question: &str, first: &FirstTier, cited: &BTreeSet<ItemId>) -> Result<(f32, f32)> {
    let names = answerable::names(question);
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let numbers: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).filter(is_number).collect();
    if names.is_empty() && numbers.is_empty() {
        return Ok((1.0, 1.0));
    }
    let mut text = String::new();
    for row in &first.selection.rows {
        text.push_str(row.content.text());
        text.push(' ');
    }
    for trace in cited {
        let content = snapshot.content(*trace)?;
        text.push_str(content.speaker().unwrap_or_default());
        text.push(' ');
        text.push_str(content.text());
        text.push(' ');
    }
    let text = text.to_lowercase();
    let held: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let share = |wanted: &[&str]| match wanted.len() {
        0 => 1.0,
        all => wanted.iter().filter(|word| held.contains(word.to_lowercase().as_str())).count() as f32 / all as f32,
    };
    Ok((share(&names), share(&numbers)))
}
