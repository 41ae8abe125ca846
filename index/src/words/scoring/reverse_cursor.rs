//! A cursor over a posting list from its end, which yields scores.
//!
//! Top-k search runs from the newest document to the oldest, so that among equal scores the first one found is kept
//! (`words::scoring::max_score`). Each block is decoded at most once, when one of its postings is needed, and all its
//! scores are computed in one batch, so that the loads of document lengths overlap.
//!
//! Invariants:
//! 1. Callers ask for descending documents. Postings at or above the last document asked for have been *passed*.
//! 2. A list in memory has no block entries; its bound is that of any possible posting.

use crate::error::Result;
use crate::words::postings::doc_lengths::DocLengths;
use crate::words::postings::{BLOCK_LEN, List, Posting};
use crate::words::scoring::Norm;

/// Lists with more blocks than this are long.
const LONG: usize = 8;

/// The postings of one term in one source that are not passed yet.
pub(crate) struct ReverseCursor<'l> {
    list: &'l List<'l>,
    doc_lengths: &'l DocLengths<'l>,
    norm: Norm,
    scale: f32,
    /// The number of blocks not passed; the last of them is the current one.
    left: usize,
    /// The current block, once decoded.
    block: Option<Decoded>,
    locals: [u32; BLOCK_LEN],
    scores: [f32; BLOCK_LEN],
}

#[derive(Clone, Copy)]
struct Decoded {
    /// The number of its postings not passed, at least one.
    left: usize,
    /// Upper bound of its scores.
    upper_bound: f32,
}

impl<'l> ReverseCursor<'l> {
    /// A cursor over the list of a term with this scale, in documents of these lengths.
    pub(crate) fn new(list: &'l List<'l>, doc_lengths: &'l DocLengths<'l>, norm: Norm, scale: f32) -> Self {
        let (locals, scores) = ([0; BLOCK_LEN], [0.0; BLOCK_LEN]);
        Self { list, doc_lengths, norm, scale, left: list.block_count(), block: None, locals, scores }
    }

    /// Upper bound of the posting count.
    pub(crate) fn max_posting_count(&self) -> u64 {
        (self.list.block_count() * BLOCK_LEN) as u64
    }

    /// Returns true if the list is long enough that skipping postings may pay.
    pub(crate) fn is_long(&self) -> bool {
        self.list.block_count() > LONG
    }

    /// An upper bound of the remaining documents, given that those from `end` on are passed.
    pub(crate) fn last(&self, end: u32) -> Option<u32> {
        let at_hand = self.left.checked_sub(1)?;
        match self.block {
            Some(Decoded { left, .. }) => self.locals.get(left.checked_sub(1)?).copied(),
            None => Some(self.list.last_of(at_hand).min(end.checked_sub(1)?)),
        }
    }

    /// Upper bound of the scores of remaining documents from `start` on.
    pub(crate) fn upper_bound_from(&self, start: u32) -> f32 {
        let Some(at_hand) = self.left.checked_sub(1) else { return 0.0 };
        let mut upper_bound = match self.block {
            Some(Decoded { left, .. }) if self.locals[left - 1] < start => return 0.0,
            Some(Decoded { upper_bound, .. }) => upper_bound,
            None if self.list.last_of(at_hand) < start => return 0.0,
            None => self.block_upper_bound(at_hand),
        };
        for before in (0..at_hand).rev().take_while(|before| self.list.last_of(*before) >= start) {
            upper_bound = upper_bound.max(self.block_upper_bound(before));
        }
        upper_bound
    }

    /// Passes all documents from `start` on.
    pub(crate) fn pass(&mut self, start: u32) {
        if let Some(block) = &mut self.block {
            block.left = self.locals[..block.left].partition_point(|local| *local < start);
            if block.left > 0 {
                return;
            }
            self.drop_block();
        }
        // A block starts after the end of the previous one.
        while self.left > 1 && self.list.last_of(self.left - 2).saturating_add(1) >= start {
            self.left -= 1;
        }
    }

    /// Passes all documents from `start` on, and calls `see` with each and its score, descending. Documents from `end`
    /// on are passed already.
    pub(crate) fn each_from(
        &mut self,
        start: u32,
        end: u32,
        spare: &mut Vec<Posting>,
        see: &mut impl FnMut(u32, f32),
    ) -> Result<()> {
        while self.left > 0 {
            if self.block.is_none() {
                if self.list.last_of(self.left - 1) < start {
                    return Ok(());
                }
                self.decode(end, spare)?;
            }
            let Some(block) = &mut self.block else { continue };
            while let Some((local, score)) = block.left.checked_sub(1).map(|at| (self.locals[at], self.scores[at])) {
                if local < start {
                    return Ok(());
                }
                block.left -= 1;
                see(local, score);
            }
            self.drop_block();
        }
        Ok(())
    }

    /// The contribution of the term to the score of a document; passes all later documents.
    pub(crate) fn score_of(&mut self, local: u32, spare: &mut Vec<Posting>) -> Result<f32> {
        let end = local.saturating_add(1);
        self.pass(end);
        if self.block.is_none() && self.left > 0 && self.list.last_of(self.left - 1) >= local {
            self.decode(end, spare)?;
        }
        let at = self.block.and_then(|block| block.left.checked_sub(1));
        Ok(at.map_or(0.0, |at| if self.locals[at] == local { self.scores[at] } else { 0.0 }))
    }

    fn drop_block(&mut self) {
        self.block = None;
        self.left -= 1;
    }

    /// Decodes the current block without passed documents, and drops it if nothing remains.
    fn decode(&mut self, end: u32, spare: &mut Vec<Posting>) -> Result<()> {
        let postings = self.list.block(self.left - 1, spare)?;
        let count = postings.len().min(BLOCK_LEN);
        let (mut frequencies, mut doc_lengths) = ([0.0; BLOCK_LEN], [0.0; BLOCK_LEN]);
        for (i, Posting { local, frequency }) in postings[..count].iter().enumerate() {
            self.locals[i] = *local;
            frequencies[i] = *frequency as f32;
            doc_lengths[i] = self.doc_lengths.get(*local).unwrap_or(0) as f32;
        }
        let mut upper_bound = 0f32;
        for ((score, frequency), len) in self.scores[..count].iter_mut().zip(&frequencies).zip(&doc_lengths) {
            *score = self.norm.score(self.scale, *frequency, *len);
            upper_bound = if *score > upper_bound { *score } else { upper_bound };
        }
        let left = match self.locals[..count].last() {
            Some(last) if *last >= end => self.locals[..count].partition_point(|local| *local < end),
            _ => count,
        };
        self.block = Some(Decoded { left, upper_bound });
        if left == 0 {
            self.drop_block();
        }
        Ok(())
    }

    fn block_upper_bound(&self, i: usize) -> f32 {
        let (frequency, len) = self.list.block_max(i).unwrap_or((u32::MAX, 0));
        self.norm.upper_bound(self.scale, frequency, len as f32)
    }
}
