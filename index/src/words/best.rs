//! The best k documents of a part, without scoring all that hold a term.
//!
//! Block-max MaxScore (Turtle and Flood 1995, *Query Evaluation: Strategies and Optimizations*; Ding and Suel 2011, *Faster
//! Top-k Document Retrieval Using Block-Max Indexes*), a window of documents at a time. Once k documents are known, the
//! worst of them says what another has to reach. Within a window the most that each term can bring is known from its block
//! entries, before a posting is decoded. Where all together do not reach what it takes, the window is passed. Of the long
//! lists those that bring least are put aside for as long as they do not reach it together: no document is worth finding for
//! their sake. The others' postings are added up, and only for what may yet get there those put aside are looked up. Adding
//! a short list up costs less than looking into it.
//!
//! Windows go from the newest document to the oldest: among equals the newer one counts, so what was found first stays.
//!
//! Invariants:
//! 1. The answer is that of scoring every document: the same ids, scores and order. Sums do not depend on the order of
//!    their terms ([`Norm`]), and a bound is rounded as a score is, so that it is not below any.
//! 2. The sums of a window are all zero between two windows.
//!
//! Cost: the postings of the terms that are rare in the question, and blocks of the others where something near the best
//! was found. Few postings in many documents, which is what most questions of short texts meet, cost what they cost
//! without any of this; what is added up fits into the nearest cache.

use std::cell::RefCell;

use super::backward::Backward;
use super::postings::Posting;
use crate::error::Result;
use crate::hit::{Hit, TopHits};

/// Documents of a window: few where there are many postings, so that what bounds them is near them, and more where there
/// are few, so that a window is worth its while.
const LEAST_WINDOW: u32 = 1 << 12;
const LARGEST_WINDOW: u32 = 1 << 16;

/// Postings to a window, about.
const POSTINGS: u64 = 2048;

/// The memory of a search, kept by each thread.
struct Scratch {
    /// What the terms bring to the documents of a window.
    sums: Vec<f32>,
    /// Those with something, in no order.
    met: Vec<u32>,
    /// The terms by the most that they can bring in this window, least first, and the short ones last.
    order: Vec<(f32, usize)>,
    /// Documents that may yet be among the best.
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

/// The best `k` documents below `bound` that `may_return` lets through, with a score above 0 and not below `floor`, by the
/// postings of all terms.
pub(super) fn best(
    lists: &mut [Backward<'_>],
    bound: u32,
    k: usize,
    floor: f32,
    may_return: impl Fn(u32) -> bool,
) -> Result<Vec<Hit>> {
    let mut best = TopHits::new(k);
    let postings: u64 = lists.iter().map(Backward::most_postings).sum();
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
            let done = window(lists, start..end, floor, &may_return, scratch, &mut best);
            if done.is_err() {
                scratch.sums.fill(0.0);
                scratch.met.clear();
            }
            done?;
            end = start;
        }
        Ok(best.into_sorted())
    })
}

fn window(
    lists: &mut [Backward<'_>],
    window: std::ops::Range<u32>,
    floor: f32,
    may_return: &impl Fn(u32) -> bool,
    scratch: &mut Scratch,
    best: &mut TopHits,
) -> Result<()> {
    let Scratch { sums, met, order, likely, block } = scratch;
    // All documents known so far are newer than those of the window, so another has to have more than the worst of them.
    let worst = best.threshold();
    let hopeless = |score: f32| score < floor || worst.is_some_and(|worst| score <= worst);
    order.clear();
    let mut all = 0.0;
    for (i, list) in lists.iter().enumerate() {
        let most = list.most_from(window.start);
        all += most;
        order.push((if list.is_long() { most } else { f32::INFINITY }, i));
    }
    if hopeless(all) {
        lists.iter_mut().for_each(|list| list.pass(window.start));
        return Ok(());
    }
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut aside = 0.0;
    let mut put_aside = 0;
    while let Some((most, _)) = order.get(put_aside).filter(|(most, _)| hopeless(aside + most)) {
        aside += most;
        put_aside += 1;
    }
    let (rest, added) = order.split_at(put_aside);
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
        if !hopeless(score + aside) {
            likely.push(Hit { id: local, score });
        }
    }
    if aside > 0.0 {
        // As lists are read: from the newest document on.
        likely.sort_unstable_by_key(|hit| std::cmp::Reverse(hit.id));
    }
    for hit in likely {
        if !best.admits(Hit { score: hit.score + aside, ..*hit }) || !may_return(hit.id) {
            continue;
        }
        let mut left = aside;
        for (most, i) in rest.iter().rev().filter(|(most, _)| *most > 0.0) {
            if hopeless(hit.score + left) {
                break;
            }
            left -= most;
            hit.score += lists[*i].score_of(hit.id, block)?;
        }
        if !hopeless(hit.score) {
            best.push(*hit);
        }
    }
    for (_, i) in rest {
        lists[*i].pass(window.start);
    }
    Ok(())
}
