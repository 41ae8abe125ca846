//! Vectors that stand only in the log: a segment with a graph holds their codes and links, and refers to the log for
//! the exact vectors, which the last step of a search reads for a few candidates.
//!
//! 1. A segment refers to the log only if each of its vectors stands there with the same bytes, which a merge compares.
//! 2. The log is asked by id. It knows where the record of an item is, also after records were moved.
//! 3. A vector that cannot be read, because its record is damaged or was erased, is replaced by its decoded code. It
//!    scores nearly as before, and whoever reads the item's record gets the error or the note. One that is erased later
//!    reads as zeros.
//! 4. The first read of a vector verifies its record and finds its place, which is kept for later ones: 8 bytes a
//!    vector.

use std::cell::RefCell;
use std::fmt::Debug;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::spec::Encoding;

/// The vectors that the log holds, in the encoding of the space.
pub trait LoggedVectors: Send + Sync + Debug {
    /// Copies the bytes of the vector of `id` to `out`, which is as long, after verifying its record. Returns its
    /// place; `None` if it cannot be read.
    fn find(&self, id: u32, out: &mut [u8]) -> Option<NonZero<u64>>;

    /// Copies the bytes at a place that was found before. False if the log no longer has it.
    fn copy(&self, place: NonZero<u64>, out: &mut [u8]) -> bool;

    /// Announces that so many bytes at a place will be copied soon.
    fn prefetch(&self, place: NonZero<u64>, len: usize);
}

/// The places of a segment's vectors in the log, as far as they were found.
#[derive(Debug)]
pub struct Places(Vec<AtomicU64>);

impl Places {
    /// None of `count`.
    pub(crate) fn none(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// None, with room for those of `count`.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Appends the place of the next vector, if it is known.
    pub(crate) fn push(&mut self, place: Option<NonZero<u64>>) {
        self.0.push(AtomicU64::new(place.map_or(0, NonZero::get)));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, position: usize) -> Option<NonZero<u64>> {
        NonZero::new(self.0.get(position)?.load(Ordering::Relaxed))
    }

    fn set(&self, position: usize, place: NonZero<u64>) {
        if let Some(at) = self.0.get(position) {
            at.store(place.get(), Ordering::Relaxed);
        }
    }
}

/// The vectors of a segment in the log, by their positions in the segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedRows<'a> {
    log: &'a dyn LoggedVectors,
    places: &'a Places,
    /// Stands in for what cannot be read; without it zeros do.
    stand_in: Option<&'a dyn StandIn>,
}

/// Vectors that are known nearly.
pub(crate) trait StandIn: Send + Sync + Debug {
    /// The vector at `position`, as its code has it.
    fn decode(&self, position: usize) -> Vec<f32>;
}

/// The components of one vector.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Components<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
}

impl<'a> Components<'a> {
    /// Their bytes, in the processor's order.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::F32(numbers) => bytemuck::cast_slice(numbers),
            Self::F16(numbers) => bytemuck::cast_slice(numbers),
        }
    }
}

thread_local! {
    /// The memory that a vector is copied to; as many numbers as a vector of f32 needs.
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl<'a> LoggedRows<'a> {
    pub(crate) fn new(log: &'a dyn LoggedVectors, places: &'a Places, stand_in: Option<&'a dyn StandIn>) -> Self {
        Self { log, places, stand_in }
    }

    /// Reads the vector of `id`, which is at `position`, and gives it to `take`.
    pub(crate) fn read<T>(
        &self,
        (dim, encoding): (usize, Encoding),
        (id, position): (u32, usize),
        take: impl FnOnce(Components<'_>) -> T,
    ) -> T {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(dim, 0.0);
            if encoding == Encoding::F16 {
                let halves = &mut bytemuck::cast_slice_mut::<f32, f16>(scratch)[..dim];
                if !self.copy(id, position, bytemuck::cast_slice_mut(halves)) {
                    halves.convert_from_f32_slice(&self.decoded(dim, position));
                }
                take(Components::F16(halves))
            } else {
                if !self.copy(id, position, bytemuck::cast_slice_mut(scratch)) {
                    scratch.copy_from_slice(&self.decoded(dim, position));
                }
                take(Components::F32(scratch))
            }
        })
    }

    /// The place of the vector at `position`, if it was found.
    pub(crate) fn place(&self, position: usize) -> Option<NonZero<u64>> {
        self.places.get(position)
    }

    /// Announces that the vector at `position`, of so many bytes, will be read soon.
    pub(crate) fn prefetch(&self, position: usize, len: usize) {
        if let Some(place) = self.places.get(position) {
            self.log.prefetch(place, len);
        }
    }

    fn copy(&self, id: u32, position: usize, out: &mut [u8]) -> bool {
        if self.places.get(position).is_some_and(|place| self.log.copy(place, out)) {
            return true;
        }
        let found = self.log.find(id, out);
        found.into_iter().for_each(|place| self.places.set(position, place));
        found.is_some()
    }

    fn decoded(&self, dim: usize, position: usize) -> Vec<f32> {
        self.stand_in.map_or_else(|| vec![0.0; dim], |stand_in| stand_in.decode(position))
    }
}
