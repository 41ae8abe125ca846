//! The flat tail: committed vectors that are in no segment yet. Queries scan all of them.
//!
//! One writer appends; any number of readers hold views. A view is a list of immutable blocks, so taking one copies a
//! few pointers, and its content never changes. Blocks grow like the digits of a number in base eight: a push adds a
//! block of one vector, and eight adjacent blocks of equal size become one of eight times that size, up to
//! [`MAX_BLOCK`]. So a vector is copied at most four times, and a tail of n vectors has at most 7 * 4 + n / 4096
//! blocks.
//!
//! Invariants:
//! 1. Ids ascend strictly, within a block and across blocks.
//! 2. A block never changes once a view contains it.
//!
//! Cost: a push is amortised O(dim), a view O(blocks), a scan one distance per vector, on codes in large blocks
//! (`block`).

use std::sync::{Arc, PoisonError};

use super::block::{AskedBatch, Block, Trained};
use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::hit::TopHits;
use crate::rows::{ExactQuery, Rows, RowsView};
use crate::scorer::BatchScorer;
use crate::spec::VectorSpec;
use crate::sync::{Mutex, MutexGuard};

/// Eight blocks of equal size become one.
const RADIX: usize = 8;

/// A block of this many vectors is not merged further.
const MAX_BLOCK: usize = RADIX.pow(4);

/// The appendable part of a layer's vectors.
#[derive(Debug)]
pub struct VectorTail {
    spec: VectorSpec,
    blocks: Mutex<Vec<Arc<Block>>>,
}

impl VectorTail {
    /// An empty tail.
    pub fn new(spec: VectorSpec) -> Self {
        Self { spec, blocks: Mutex::new(Vec::new()) }
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.spec
    }

    /// Appends a vector; the next view shows it.
    ///
    /// # Errors
    /// [`Error::IdOrder`] if `id` is not greater than the last one; errors of [`VectorSpec::check`].
    pub fn push(&self, id: u32, vector: &[f32]) -> Result<()> {
        let mut block = Rows::new(self.spec);
        block.push(id, vector)?;
        let mut blocks = self.lock();
        let last = blocks.last().and_then(|block| block.rows().ids().last().copied());
        if let Some(previous) = last.filter(|last| *last >= id) {
            return Err(Error::IdOrder { previous, next: id });
        }
        blocks.push(Arc::new(Block::new(block, None)));
        carry(self.spec, &mut blocks);
        Ok(())
    }

    /// A view of the current content.
    pub fn view(&self) -> TailView {
        TailView { spec: self.spec, blocks: Arc::new(self.lock().clone()) }
    }

    /// Adds vectors of any ids that are not there yet, ascending: later vectors of earlier items. A block that they
    /// fall into is copied.
    ///
    /// # Errors
    /// [`Error::IdOrder`] if ids do not ascend, or if one is there; errors of [`VectorSpec::check`]. Then none is
    /// added.
    pub fn insert(&self, vectors: &[(u32, Vec<f32>)]) -> Result<()> {
        let mut rows = Rows::new(self.spec);
        vectors.iter().try_for_each(|(id, vector)| rows.push(*id, vector))?;
        let mut guard = self.lock();
        let (mut blocks, mut taken) = (Vec::with_capacity(guard.len() + 1), 0);
        for block in guard.iter() {
            let last = block.rows().ids().last().copied().unwrap_or_default();
            let end = rows.ids().partition_point(|id| *id <= last);
            match end > taken {
                true => add_blocks(merged(block.rows(), rows.view().slice(taken, end))?, block.trained(), &mut blocks),
                false => blocks.push(Arc::clone(block)),
            }
            taken = end;
        }
        for at in taken..rows.len() {
            let mut block = Rows::new(self.spec);
            block.append(rows.view().slice(at, at + 1));
            blocks.push(Arc::new(Block::new(block, None)));
            carry(self.spec, &mut blocks);
        }
        *guard = blocks;
        Ok(())
    }

    /// Drops the vectors of a view, which a segment now contains. Views do not change.
    pub fn discard(&self, sealed: &TailView) {
        let mut blocks = self.lock();
        let is_sealed = |block: &Arc<Block>| sealed.blocks.iter().any(|other| Arc::ptr_eq(other, block));
        blocks.retain(|block| !is_sealed(block));
        for block in blocks.iter_mut() {
            let rows = block.rows();
            let left = |at: &usize| sealed.locate(rows.ids()[*at]).is_none();
            let kept: Vec<usize> = (0..rows.len()).filter(left).collect();
            if kept.len() < rows.len() {
                let mut rest = Rows::new(self.spec);
                kept.iter().for_each(|at| rest.append(rows.view().slice(*at, at + 1)));
                *block = Arc::new(Block::new(rest, block.trained()));
            }
        }
        blocks.retain(|block| !block.rows().is_empty());
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.lock().iter().map(|block| block.rows().len()).sum()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Each statement leaves the list consistent, so a poisoned lock is harmless.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Block>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tail that continues from the content of a view.
impl From<TailView> for VectorTail {
    fn from(view: TailView) -> Self {
        Self { spec: view.spec, blocks: Mutex::new(Arc::unwrap_or_clone(view.blocks)) }
    }
}

/// The rows of a block with others among them.
fn merged(block: &Rows, others: RowsView<'_>) -> Result<Rows> {
    let mut rows = Rows::with_capacity(block.spec(), block.len() + others.len());
    let mut from = 0;
    for (at, id) in others.ids().iter().enumerate() {
        let to = block.ids().partition_point(|other| other < id);
        if block.ids().get(to) == Some(id) {
            return Err(Error::IdOrder { previous: *id, next: *id });
        }
        rows.append(block.view().slice(from, to));
        rows.append(others.slice(at, at + 1));
        from = to;
    }
    rows.append(block.view().slice(from, block.len()));
    Ok(rows)
}

/// Adds rows as blocks of the size that is not merged further, and one of the rest.
fn add_blocks(rows: Rows, trained: Option<&Arc<Trained>>, blocks: &mut Vec<Arc<Block>>) {
    if rows.len() <= MAX_BLOCK {
        blocks.push(Arc::new(Block::new(rows, trained)));
        return;
    }
    for from in (0..rows.len()).step_by(MAX_BLOCK) {
        let mut part = Rows::new(rows.spec());
        part.append(rows.view().slice(from, rows.len().min(from + MAX_BLOCK)));
        blocks.push(Arc::new(Block::new(part, trained)));
    }
}

/// Merges the last eight blocks while they have equal sizes.
fn carry(spec: VectorSpec, blocks: &mut Vec<Arc<Block>>) {
    while let Some(start) = blocks.len().checked_sub(RADIX) {
        let size = blocks[start].rows().len();
        if size >= MAX_BLOCK || blocks[start..].iter().any(|block| block.rows().len() != size) {
            return;
        }
        let mut joined = Rows::new(spec);
        blocks[start..].iter().for_each(|block| joined.append(block.rows().view()));
        let at_hand = blocks.iter().rev().find_map(|block| block.trained());
        let joined = Block::new(joined, at_hand);
        blocks.truncate(start);
        blocks.push(Arc::new(joined));
    }
}

/// The content of a tail at one moment. A copy is a pointer.
#[derive(Clone, Debug)]
pub struct TailView {
    spec: VectorSpec,
    blocks: Arc<Vec<Arc<Block>>>,
}

impl TailView {
    /// An empty view.
    pub fn empty(spec: VectorSpec) -> Self {
        Self { spec, blocks: Arc::default() }
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.spec
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.rows().len()).sum()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The approximate memory of the vectors and their codes in bytes.
    pub fn byte_len(&self) -> usize {
        self.len() * self.spec.dim * (self.spec.encoding.component_len() + size_of::<i8>())
    }

    /// The ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().flat_map(|block| block.rows().ids().iter().copied())
    }

    /// The same view without ids above `id`: the part to be sealed.
    pub fn through(&self, id: u32) -> TailView {
        let mut blocks = Vec::new();
        for block in self.blocks.iter() {
            let rows = block.rows();
            let kept = rows.ids().partition_point(|other| *other <= id);
            if kept == rows.len() {
                blocks.push(Arc::clone(block));
            } else if kept > 0 {
                let mut part = Rows::new(self.spec);
                part.append(rows.view().slice(0, kept));
                blocks.push(Arc::new(Block::uncoded(part)));
            }
        }
        TailView { spec: self.spec, blocks: Arc::new(blocks) }
    }

    /// The vectors, block by block.
    pub(super) fn rows(&self) -> impl Iterator<Item = RowsView<'_>> {
        self.blocks.iter().map(|block| block.rows().view())
    }

    /// The entire content as one block, from which a segment is built.
    pub fn to_rows(&self) -> Rows {
        let mut rows = Rows::with_capacity(self.spec, self.len());
        self.rows().for_each(|block| rows.append(block));
        rows
    }

    /// Compares all vectors that pass `filter`; returns their number.
    pub(crate) fn scan(&self, query: &ExactQuery, filter: Option<&Bits>, top: &mut TopHits) -> u64 {
        let mut asked = None;
        self.blocks.iter().map(|block| block.scan(query, filter, &mut asked, top)).sum()
    }

    /// Compares all vectors that pass `filter` with all queries; returns their number, and whether an accelerator
    /// compared any.
    pub(crate) fn scan_batch(
        &self,
        queries: &[ExactQuery],
        k: usize,
        filter: Option<&Bits>,
        scorer: &dyn BatchScorer,
        tops: &mut [TopHits],
    ) -> Result<(u64, bool)> {
        let mut asked = AskedBatch::new(queries, k, filter);
        let (mut count, mut on_device) = (0, false);
        for block in self.blocks.iter() {
            let (matching, device) = block.scan_batch(&mut asked, scorer, tops)?;
            count += matching;
            on_device |= device;
        }
        Ok((count, on_device))
    }

    /// The block and position of `id`.
    pub(crate) fn locate(&self, id: u32) -> Option<(&Rows, usize)> {
        let at = self.blocks.partition_point(|block| block.rows().ids().last().is_some_and(|last| *last < id));
        let rows = self.blocks.get(at)?.rows();
        Some((rows, rows.view().position(id)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Encoding, Metric};

    fn spec() -> VectorSpec {
        VectorSpec::new(2, Metric::Dot, Encoding::F32).unwrap()
    }

    fn filled(n: u32) -> VectorTail {
        let tail = VectorTail::new(spec());
        for id in 0..n {
            tail.push(id * 2, &[id as f32, 1.0]).unwrap();
        }
        tail
    }

    #[test]
    fn every_push_is_in_the_next_view_and_in_no_earlier_one() {
        let tail = VectorTail::new(spec());
        let mut views = Vec::new();
        for id in 0..600 {
            views.push(tail.view());
            tail.push(id, &[id as f32, 0.0]).unwrap();
        }
        for (n, view) in views.iter().enumerate() {
            assert_eq!(view.len(), n);
            assert!(view.ids().eq(0..n as u32));
            assert_eq!(view.to_rows().ids().len(), n);
        }
    }

    #[test]
    fn blocks_stay_few() {
        let tail = filled(9000);
        assert!(tail.view().blocks.len() <= 7 * 4 + 9000 / MAX_BLOCK);
        assert_eq!(tail.len(), 9000);
    }

    #[test]
    fn a_discarded_prefix_is_gone_from_new_views_only() {
        let tail = filled(1000);
        let before = tail.view();
        tail.discard(&before.through(777));
        let after = tail.view();
        assert!(after.ids().eq((389..1000).map(|i| i * 2)));
        assert_eq!((before.len(), after.len(), tail.len()), (1000, 611, 611));
        assert!(before.through(777).ids().eq((0..389).map(|i| i * 2)));
        tail.push(5000, &[1.0, 1.0]).unwrap();
        tail.discard(&tail.view());
        assert!(tail.is_empty());
    }

    /// A vector that comes later than those of later items was dropped when its place in the tail was sealed meanwhile.
    #[test]
    fn later_vectors_of_earlier_items_stand_among_the_others_and_outlive_a_sealing() {
        let tail = filled(5000);
        let sealed = tail.view();
        let vector = |id: u32| (id, vec![id as f32, 2.0]);
        tail.insert(&[vector(1), vector(3), vector(4097), vector(9999), vector(10_000), vector(10_007)]).unwrap();
        let expected: Vec<u32> = {
            let mut ids: Vec<u32> = (0..5000).map(|i| i * 2).chain([1, 3, 4097, 9999, 10_000, 10_007]).collect();
            ids.sort_unstable();
            ids
        };
        assert!(tail.view().ids().eq(expected.iter().copied()));
        assert!(tail.view().blocks.iter().all(|block| block.rows().len() <= MAX_BLOCK));
        let view = tail.view();
        assert_eq!(view.locate(4097).map(|(rows, at)| rows.ids()[at]), Some(4097));
        assert!(matches!(tail.insert(&[vector(5), vector(8)]), Err(Error::IdOrder { previous: 8, next: 8 })));
        assert!(matches!(tail.insert(&[vector(7), vector(5)]), Err(Error::IdOrder { .. })));
        assert_eq!(tail.len(), expected.len());
        tail.discard(&sealed);
        assert!(tail.view().ids().eq([1, 3, 4097, 9999, 10_000, 10_007]));
    }

    #[test]
    fn ids_must_ascend_across_blocks() {
        let tail = filled(8);
        assert!(matches!(tail.push(14, &[0.0, 0.0]), Err(Error::IdOrder { previous: 14, next: 14 })));
        assert_eq!(tail.len(), 8);
    }

    #[test]
    fn every_id_can_be_located() {
        let view = filled(700).view();
        for id in 0..1400 {
            let found = view.locate(id).map(|(rows, at)| rows.ids()[at]);
            assert_eq!(found, (id % 2 == 0).then_some(id));
        }
    }
}
