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

use super::block::{AskedBatch, Block};
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

    /// Drops the vectors up to and including `id`, which a segment now contains. Views do not change.
    pub fn discard_through(&self, id: u32) {
        let mut blocks = self.lock();
        let whole = blocks.partition_point(|block| block.rows().ids().last().is_some_and(|last| *last <= id));
        blocks.drain(..whole);
        if let Some(first) = blocks.first_mut() {
            let rows = first.rows();
            let taken = rows.ids().partition_point(|other| *other <= id);
            if taken > 0 {
                let mut rest = Rows::new(self.spec);
                rest.append(rows.view().slice(taken, rows.len()));
                *first = Arc::new(Block::new(rest, first.trained()));
            }
        }
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
        tail.discard_through(777);
        let after = tail.view();
        assert!(after.ids().eq((389..1000).map(|i| i * 2)));
        assert_eq!((before.len(), after.len(), tail.len()), (1000, 611, 611));
        assert!(before.through(777).ids().eq((0..389).map(|i| i * 2)));
        tail.push(5000, &[1.0, 1.0]).unwrap();
        tail.discard_through(u32::MAX);
        assert!(tail.is_empty());
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
