//! Top-k documents of one source, without scoring every document that has a term.
//!
//! Block-max MaxScore (Turtle and Flood 1995, *Query Evaluation: Strategies and Optimizations*; Ding and Suel 2011,
//! *Faster Top-k Document Retrieval Using Block-Max Indexes*), one window of documents at a time. Once k documents are
//! known, the worst of them is the threshold. Block entries bound the contribution of each term to a window before any
//! posting is decoded. If all terms together stay below the threshold, or no document of the window may be returned,
//! the window is skipped. Otherwise the long lists
//! with the smallest bounds are set aside while their sum stays below it: no document enters the top k through them
//! alone. The other lists are accumulated, and only documents that may still enter are looked up in the lists set
//! aside. Accumulating a short list costs less than looking into it, so short lists are never set aside.
//!
//! Windows run from the newest document to the oldest: among equal scores the newer document ranks first, so a later
//! document must exceed the threshold.
//!
//! Invariants:
//! 1. The result equals that of scoring every document: the same ids, scores and order. Sums do not depend on the order
//!    of terms ([`Norm`](super::Norm)), and bounds are rounded like scores, so no score exceeds its bound.
//! 2. All accumulators are zero between two windows.
//!
//! Cost: the postings of the rarest query terms, and the blocks of the others near good documents. Few postings spread
//! over many documents, the common case for short texts, cost the same as plain accumulation. The accumulators fit into
//! the L1 cache.

use std::cell::RefCell;
use std::ops::Range;

use crate::error::Result;
use crate::hit::{Hit, TopHits};
use crate::words::postings::Posting;
use crate::words::scoring::reverse_cursor::ReverseCursor;

/// Documents per window: few if postings are dense, which tightens bounds, and more if they are sparse, which amortises
/// the cost of a window.
pub(super) const LEAST_WINDOW: u32 = 1 << 12;
const LARGEST_WINDOW: u32 = 1 << 16;

/// Target number of postings per window.
const POSTINGS: u64 = 2048;

/// Scratch memory of a search, one per thread.
struct Scratch {
    /// Score accumulators of the documents of a window.
    sums: Vec<f32>,
    /// Documents with a non-zero accumulator, unordered.
    met: Vec<u32>,
    /// The terms by their upper bound in this window, ascending, short lists last.
    order: Vec<(f32, usize)>,
    /// Documents that may still enter the top k.
    likely: Vec<Hit>,
    block: Vec<Posting>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const {
        RefCell::new(Scratch {
            sums: Vec::new(), met: Vec::new(), order: Vec::new(), likely: Vec::new(), block: Vec::new(),
        })
    };
}

/// The documents that may be returned.
pub(crate) trait Returnable {
    /// True for a document that may be returned.
    fn is(&self, local: u32) -> bool;
    /// False if no document of a window may be returned.
    fn any_in(&self, window: &Range<u32>) -> bool;
}

/// Every document may be returned.
pub(crate) struct All;

impl Returnable for All {
    fn is(&self, _: u32) -> bool {
        true
    }

    fn any_in(&self, _: &Range<u32>) -> bool {
        true
    }
}

/// The best `k` documents below `bound` that may be returned, with a score above 0 and at least `floor`.
pub(crate) fn top_k(
    lists: &mut [ReverseCursor<'_>],
    bound: u32,
    k: usize,
    floor: f32,
    returnable: &impl Returnable,
) -> Result<Vec<Hit>> {
    let mut top_k = TopHits::new(k);
    let postings: u64 = lists.iter().map(ReverseCursor::max_posting_count).sum();
    let even = u64::from(bound) * POSTINGS / postings.max(1);
    let width = u32::try_from(even).unwrap_or(u32::MAX).clamp(LEAST_WINDOW, LARGEST_WINDOW);
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.sums.len() < width as usize {
            scratch.sums.resize(width as usize, 0.0);
        }
        let mut end = bound;
        while let Some(last) = lists.iter().filter_map(|list| list.last(end)).max() {
            end = last + 1;
            let start = end.saturating_sub(width);
            let done = window(lists, start..end, floor, returnable, scratch, &mut top_k);
            if done.is_err() {
                scratch.sums.fill(0.0);
                scratch.met.clear();
            }
            done?;
            end = start;
        }
        Ok(top_k.into_sorted())
    })
}

fn window(
    lists: &mut [ReverseCursor<'_>],
    window: Range<u32>,
    floor: f32,
    returnable: &impl Returnable,
    scratch: &mut Scratch,
    top_k: &mut TopHits,
) -> Result<()> {
    if !returnable.any_in(&window) {
        lists.iter_mut().for_each(|list| list.pass(window.start));
        return Ok(());
    }
    let Scratch { sums, met, order, likely, block } = scratch;
    // All hits so far are newer than this window, so another document must exceed the worst of them.
    let worst = top_k.threshold();
    let cannot_enter = |score: f32| score < floor || worst.is_some_and(|worst| score <= worst);
    order.clear();
    let mut all = 0.0;
    for (i, list) in lists.iter().enumerate() {
        let upper_bound = list.upper_bound_from(window.start);
        all += upper_bound;
        order.push((if list.is_long() { upper_bound } else { f32::INFINITY }, i));
    }
    if cannot_enter(all) {
        lists.iter_mut().for_each(|list| list.pass(window.start));
        return Ok(());
    }
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut skipped_bound = 0.0;
    let mut skipped_count = 0;
    while let Some((upper_bound, _)) =
        order.get(skipped_count).filter(|(upper_bound, _)| cannot_enter(skipped_bound + upper_bound))
    {
        skipped_bound += upper_bound;
        skipped_count += 1;
    }
    let (rest, added) = order.split_at(skipped_count);
    for (_, i) in added {
        lists[*i].each_from(window.start, window.end, block, &mut |local, score| {
            let sum = &mut sums[(local - window.start) as usize];
            if *sum == 0.0 {
                met.push(local);
            }
            *sum += score;
        })?;
    }
    likely.clear();
    for local in met.drain(..) {
        let score = std::mem::take(&mut sums[(local - window.start) as usize]);
        if !cannot_enter(score + skipped_bound) {
            likely.push(Hit { id: local, score });
        }
    }
    if skipped_bound > 0.0 {
        // In the order of the cursors: newest first.
        likely.sort_unstable_by_key(|hit| std::cmp::Reverse(hit.id));
    }
    for hit in likely {
        if !top_k.admits(Hit { score: hit.score + skipped_bound, ..*hit }) || !returnable.is(hit.id) {
            continue;
        }
        let mut left = skipped_bound;
        for (upper_bound, i) in rest.iter().rev().filter(|(upper_bound, _)| *upper_bound > 0.0) {
            if cannot_enter(hit.score + left) {
                break;
            }
            left -= upper_bound;
            hit.score += lists[*i].score_of(hit.id, block)?;
        }
        if !cannot_enter(hit.score) {
            top_k.push(*hit);
        }
    }
    for (_, i) in rest {
        lists[*i].pass(window.start);
    }
    Ok(())
}
