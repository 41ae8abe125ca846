//! A posting list read from its end, as scores.
//!
//! A search for the best few goes from the newest document to the oldest, so that of equal scores the first found is the
//! one that is kept (`super::best`). Each list is read along with it: block by block, each decoded at most once and only when
//! one of its postings is wanted, and all of a block's scores are computed at once, so that the loads of its documents'
//! lengths wait for each other's no more than they have to.
//!
//! Invariants:
//! 1. Whoever asks names documents that only descend; what is not below the last one named is *passed*.
//! 2. A list that says nothing of a block is taken to bring the most that any posting could.

use super::bm25::Norm;
use super::lens::Lens;
use super::postings::{BLOCK_LEN, List, Posting};
use crate::error::Result;

/// Blocks from which on a list is long.
const LONG: usize = 8;

/// The postings of one term in one part that are not passed yet.
pub(super) struct Backward<'l> {
    list: &'l List<'l>,
    lens: &'l Lens<'l>,
    norm: Norm,
    scale: f32,
    /// Blocks that are not passed; the last of them is the one at hand.
    left: usize,
    /// The block at hand, once it is decoded.
    block: Option<Decoded>,
    locals: [u32; BLOCK_LEN],
    scores: [f32; BLOCK_LEN],
}

#[derive(Clone, Copy)]
struct Decoded {
    /// Its postings that are not passed, at least one.
    left: usize,
    /// No score of it is higher.
    most: f32,
}

impl<'l> Backward<'l> {
    /// The list of a term of that scale, in a part with documents of these lengths.
    pub(super) fn new(list: &'l List<'l>, lens: &'l Lens<'l>, norm: Norm, scale: f32) -> Self {
        let (locals, scores) = ([0; BLOCK_LEN], [0.0; BLOCK_LEN]);
        Self { list, lens, norm, scale, left: list.block_count(), block: None, locals, scores }
    }

    /// It has no more postings than this.
    pub(super) fn most_postings(&self) -> u64 {
        (self.list.block_count() * BLOCK_LEN) as u64
    }

    /// Whether it has so many postings that it may be worth while not to read them all.
    pub(super) fn is_long(&self) -> bool {
        self.list.block_count() > LONG
    }

    /// A document below `end` that none of the rest is past; everything from `end` on is passed.
    pub(super) fn last(&self, end: u32) -> Option<u32> {
        let at_hand = self.left.checked_sub(1)?;
        match self.block {
            Some(Decoded { left, .. }) => self.locals.get(left.checked_sub(1)?).copied(),
            None => Some(self.list.last_of(at_hand).min(end.checked_sub(1)?)),
        }
    }

    /// No document from `start` on that is not passed has a higher score.
    pub(super) fn most_from(&self, start: u32) -> f32 {
        let Some(at_hand) = self.left.checked_sub(1) else { return 0.0 };
        let mut most = match self.block {
            Some(Decoded { left, .. }) if self.locals[left - 1] < start => return 0.0,
            Some(Decoded { most, .. }) => most,
            None if self.list.last_of(at_hand) < start => return 0.0,
            None => self.most_of(at_hand),
        };
        for before in (0..at_hand).rev().take_while(|before| self.list.last_of(*before) >= start) {
            most = most.max(self.most_of(before));
        }
        most
    }

    /// Passes everything from `start` on.
    pub(super) fn pass(&mut self, start: u32) {
        if let Some(block) = &mut self.block {
            block.left = self.locals[..block.left].partition_point(|local| *local < start);
            if block.left > 0 {
                return;
            }
            self.drop_block();
        }
        // A block begins past the end of the one before.
        while self.left > 1 && self.list.last_of(self.left - 2).saturating_add(1) >= start {
            self.left -= 1;
        }
    }

    /// Passes everything from `start` on, and shows it, descending, with the scores. `end` is what was passed before.
    pub(super) fn each_from(
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

    /// What the term adds to the score of a document; everything past it is passed.
    pub(super) fn score_of(&mut self, local: u32, spare: &mut Vec<Posting>) -> Result<f32> {
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

    /// Decodes the block at hand, without what is passed; it is dropped where nothing is left of it.
    fn decode(&mut self, end: u32, spare: &mut Vec<Posting>) -> Result<()> {
        let postings = self.list.block(self.left - 1, spare)?;
        let count = postings.len().min(BLOCK_LEN);
        let (mut frequencies, mut lens) = ([0.0; BLOCK_LEN], [0.0; BLOCK_LEN]);
        for (i, Posting { local, frequency }) in postings[..count].iter().enumerate() {
            self.locals[i] = *local;
            frequencies[i] = *frequency as f32;
            lens[i] = self.lens.get(*local).unwrap_or(0) as f32;
        }
        let mut most = 0f32;
        for ((score, frequency), len) in self.scores[..count].iter_mut().zip(&frequencies).zip(&lens) {
            *score = self.norm.score(self.scale, *frequency, *len);
            most = if *score > most { *score } else { most };
        }
        let left = match self.locals[..count].last() {
            Some(last) if *last >= end => self.locals[..count].partition_point(|local| *local < end),
            _ => count,
        };
        self.block = Some(Decoded { left, most });
        if left == 0 {
            self.drop_block();
        }
        Ok(())
    }

    fn most_of(&self, i: usize) -> f32 {
        let (frequency, len) = self.list.most_of(i).unwrap_or((u32::MAX, 0));
        self.norm.most(self.scale, frequency, len as f32)
    }
}
