//! Exact vectors in their encoding, each with its id, as tail blocks, segments and builds contain them.
//!
//! A vector is prepared (normalised under cosine) and encoded once, when it enters the index; from then on it is
//! copied, never encoded again, so its scores are the same in the tail, in a segment and after a merge.
//!
//! | encoding | stored as | bytes per vector |
//! |---|---|---|
//! | f32 | the components | 4 dim |
//! | f16 | the components rounded to binary16 | 2 dim |
//! | i8 | round(component / scale) in -127..=127, scale = largest magnitude / 127 | dim + 4 |
//!
//! Invariants:
//! 1. Ids ascend strictly.
//! 2. There are `dim` components, and for i8 one scale, for each id.

use std::borrow::Cow;

use half::f16;
use half::slice::HalfFloatSliceExt;
use holotype_storage::segment_file::SegmentFileWriter;

use crate::distance::{Kernels, kernels, row};
use crate::error::{Error, Result};
use crate::logged::{Components, LoggedRows};
use crate::prefetch::prefetch;
use crate::segment::guard::CheckedSection;
use crate::spec::{Encoding, Metric, VectorSpec};

/// Exact vectors, owned.
#[derive(Clone, Debug)]
pub struct Rows {
    spec: VectorSpec,
    ids: Vec<u32>,
    vectors: Vectors,
}

#[derive(Clone, Debug)]
enum Vectors {
    F32(Vec<f32>),
    F16(Vec<f16>),
    I8 { codes: Vec<i8>, scales: Vec<f32> },
}

impl Rows {
    /// An empty list.
    pub fn new(spec: VectorSpec) -> Self {
        Self::with_capacity(spec, 0)
    }

    /// An empty list with room for `count` vectors.
    pub(crate) fn with_capacity(spec: VectorSpec, count: usize) -> Self {
        let numbers = count * spec.dim;
        let vectors = match spec.encoding {
            Encoding::F32 => Vectors::F32(Vec::with_capacity(numbers)),
            Encoding::F16 => Vectors::F16(Vec::with_capacity(numbers)),
            Encoding::I8 => Vectors::I8 { codes: Vec::with_capacity(numbers), scales: Vec::with_capacity(count) },
        };
        Self { spec, ids: Vec::with_capacity(count), vectors }
    }

    /// Appends a vector, normalised if the metric requires it.
    ///
    /// # Errors
    /// [`Error::IdOrder`] if `id` is not greater than the last one; errors of [`VectorSpec::check`].
    pub fn push(&mut self, id: u32, vector: &[f32]) -> Result<()> {
        self.spec.check(vector)?;
        if let Some(previous) = self.ids.last().copied().filter(|last| *last >= id) {
            return Err(Error::IdOrder { previous, next: id });
        }
        self.ids.push(id);
        let vector = self.spec.prepare(vector);
        match &mut self.vectors {
            Vectors::F32(all) => all.extend_from_slice(&vector),
            Vectors::F16(all) => all.extend(vector.iter().map(|x| f16::from_f32(*x))),
            Vectors::I8 { codes, scales } => {
                let scale = vector.iter().fold(0f32, |max, x| max.max(x.abs())) / 127.0;
                let inverse = if scale > 0.0 { 1.0 / f64::from(scale) } else { 0.0 };
                scales.push(scale);
                codes.extend(vector.iter().map(|x| (f64::from(*x) * inverse).round() as i8));
            }
        }
        Ok(())
    }

    /// Appends rows that are already encoded.
    ///
    /// # Panics
    /// If `rows` is of another space, or its ids are not all greater than the present ones.
    pub(crate) fn append(&mut self, rows: RowsView<'_>) {
        assert_eq!(self.spec, rows.spec, "rows of another space");
        if let (Some(last), Some(first)) = (self.ids.last(), rows.ids.first()) {
            assert!(last < first, "ids must ascend");
        }
        rows.touch(0, rows.len());
        self.ids.extend_from_slice(rows.ids);
        match (&mut self.vectors, rows.vectors) {
            (Vectors::F32(all), VectorsView::F32(more)) => all.extend_from_slice(more),
            (Vectors::F16(all), VectorsView::F16(more)) => all.extend_from_slice(more),
            (Vectors::I8 { codes, scales }, VectorsView::I8 { codes: more_codes, scales: more_scales }) => {
                codes.extend_from_slice(more_codes);
                scales.extend_from_slice(more_scales);
            }
            (Vectors::F32(all), VectorsView::Logged(_)) => {
                rows.each_logged(|vector| all.extend_from_slice(bytemuck::cast_slice(vector.bytes())));
            }
            (Vectors::F16(all), VectorsView::Logged(_)) => {
                rows.each_logged(|vector| all.extend_from_slice(bytemuck::cast_slice(vector.bytes())));
            }
            _ => unreachable!("the same space means the same encoding"),
        }
    }

    /// Adds the vectors to a file: the components, and the scales where there are any, under these tags.
    pub(crate) fn write_to(self, file: &mut SegmentFileWriter, vectors: [u8; 4], scales: [u8; 4]) {
        match self.vectors {
            Vectors::F32(all) => file.numbers(vectors, all),
            Vectors::F16(all) => file.numbers(vectors, all),
            Vectors::I8 { codes, scales: all } => {
                file.numbers(vectors, codes);
                file.numbers(scales, all);
            }
        }
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.spec
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids, ascending.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// A view of all rows.
    pub fn view(&self) -> RowsView<'_> {
        let vectors = match &self.vectors {
            Vectors::F32(all) => VectorsView::F32(all),
            Vectors::F16(all) => VectorsView::F16(all),
            Vectors::I8 { codes, scales } => VectorsView::I8 { codes, scales },
        };
        RowsView { spec: self.spec, ids: &self.ids, vectors, guards: [None; 2], first: 0 }
    }
}

/// Exact vectors, borrowed from [`Rows`] or from a mapped segment.
#[derive(Clone, Copy, Debug)]
pub struct RowsView<'a> {
    spec: VectorSpec,
    ids: &'a [u32],
    vectors: VectorsView<'a>,
    /// The checks of vectors and ids as they are read.
    guards: [Option<CheckedSection<'a>>; 2],
    /// The position of the first row in the checked sections.
    first: usize,
}

/// The encoded vectors of a [`RowsView`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum VectorsView<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    I8 {
        codes: &'a [i8],
        scales: &'a [f32],
    },
    /// They stand in the log, as f32 or as f16.
    Logged(LoggedRows<'a>),
}

/// The vectors of a [`RowsView`] as bytes, in the processor's order.
#[derive(Clone, Debug)]
pub struct EncodedRows<'a> {
    /// The components, vector after vector. They are copied if they stand in the log.
    pub bytes: Cow<'a, [u8]>,
    /// The scale of each vector kept in eight bits; empty for other encodings.
    pub scales: &'a [f32],
}

impl<'a> RowsView<'a> {
    /// `vectors` with their `ids`.
    ///
    /// # Panics
    /// If their numbers differ; the segment reader checks that first.
    pub(crate) fn new(spec: VectorSpec, ids: &'a [u32], vectors: VectorsView<'a>) -> Self {
        let count = match vectors {
            VectorsView::F32(all) => all.len(),
            VectorsView::F16(all) => all.len(),
            VectorsView::I8 { codes, scales } => {
                assert_eq!(scales.len(), ids.len(), "one scale for each id");
                codes.len()
            }
            VectorsView::Logged(_) => ids.len() * spec.dim,
        };
        assert_eq!(count, ids.len() * spec.dim, "one vector for each id");
        Self { spec, ids, vectors, guards: [None; 2], first: 0 }
    }

    /// The same rows, verified as they are read. The reader asks the guard for damage at the end.
    pub(crate) fn checked(self, vectors: Option<CheckedSection<'a>>, ids: Option<CheckedSection<'a>>) -> Self {
        Self { guards: [vectors, ids], first: 0, ..self }
    }

    /// Verifies `count` rows from `position` on, unless they already are; returns true if they are intact.
    #[inline]
    fn touch(&self, position: usize, count: usize) -> bool {
        let width = self.width();
        let vectors = self.guards[0].as_ref();
        let vectors = vectors.is_none_or(|guard| guard.touch((self.first + position) * width, count * width));
        self.touch_ids(position, count) && vectors
    }

    /// Announces that the vector at `position` will be read soon.
    #[inline]
    fn fetch(&self, position: usize) {
        if let Some(guard) = &self.guards[0] {
            guard.fetch((self.first + position) * self.width(), self.width());
        }
    }

    /// Bytes per vector.
    #[inline]
    fn width(&self) -> usize {
        self.spec.dim * self.spec.encoding.component_len()
    }

    /// The same for ids only.
    #[inline]
    pub(crate) fn touch_ids(&self, position: usize, count: usize) -> bool {
        let ids = self.guards[1].as_ref();
        ids.is_none_or(|guard| guard.touch((self.first + position) * size_of::<u32>(), count * size_of::<u32>()))
    }

    /// The id at `position`.
    ///
    /// # Panics
    /// If `position` is out of range.
    #[inline]
    pub(crate) fn id(&self, position: usize) -> u32 {
        self.touch_ids(position, 1);
        self.ids[position]
    }

    /// True if the vector at `position` is intact.
    pub(crate) fn is_whole(&self, position: usize) -> bool {
        self.touch(position, 1)
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.spec
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids, ascending; only touched ids are verified.
    pub fn ids(&self) -> &'a [u32] {
        self.ids
    }

    pub(crate) fn vectors(&self) -> VectorsView<'a> {
        self.vectors
    }

    /// Reads the vector at `position` from the log.
    #[inline]
    fn read_logged<T>(&self, rows: &LoggedRows<'_>, position: usize, take: impl FnOnce(Components<'_>) -> T) -> T {
        rows.read((self.spec.dim, self.spec.encoding), (self.ids[position], self.first + position), take)
    }

    /// Reads all vectors from the log, if they stand there.
    fn each_logged(&self, mut take: impl FnMut(Components<'_>)) {
        if let VectorsView::Logged(rows) = &self.vectors {
            (0..self.len()).for_each(|position| self.read_logged(rows, position, &mut take));
        }
    }

    /// All vectors as they are encoded, verified; `None` if some of them are damaged.
    pub fn encoded(&self) -> Option<EncodedRows<'a>> {
        if !self.touch(0, self.len()) {
            return None;
        }
        Some(match self.vectors {
            VectorsView::F32(all) => EncodedRows { bytes: bytemuck::cast_slice(all).into(), scales: &[] },
            VectorsView::F16(all) => EncodedRows { bytes: bytemuck::cast_slice(all).into(), scales: &[] },
            VectorsView::I8 { codes, scales } => EncodedRows { bytes: bytemuck::cast_slice(codes).into(), scales },
            VectorsView::Logged(_) => {
                let mut bytes = Vec::with_capacity(self.len() * self.width());
                self.each_logged(|vector| bytes.extend_from_slice(vector.bytes()));
                EncodedRows { bytes: bytes.into(), scales: &[] }
            }
        })
    }

    /// The position of `id`, if present.
    pub fn position(&self, id: u32) -> Option<usize> {
        let first = *self.ids.first()?;
        // Ids are mostly consecutive, so their position then is tried first.
        let guess = id.checked_sub(first)? as usize;
        if self.ids.get(guess) == Some(&id) {
            return Some(guess);
        }
        self.ids.binary_search(&id).ok()
    }

    /// The rows in `start..end`.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Self {
        let dim = self.spec.dim;
        let vectors = match self.vectors {
            VectorsView::F32(all) => VectorsView::F32(&all[start * dim..end * dim]),
            VectorsView::F16(all) => VectorsView::F16(&all[start * dim..end * dim]),
            VectorsView::I8 { codes, scales } => {
                VectorsView::I8 { codes: &codes[start * dim..end * dim], scales: &scales[start..end] }
            }
            logged @ VectorsView::Logged(_) => logged,
        };
        Self { ids: &self.ids[start..end], vectors, first: self.first + start, ..*self }
    }

    /// The length of the longest vector, rounded up; under cosine 1, without reading the vectors.
    pub(crate) fn longest(&self) -> f32 {
        // Rounding to the encoding may lengthen a vector by half a step per component.
        const ROUNDED: f64 = 1.0 + 1e-6;
        if self.spec.metric == Metric::Cosine {
            return 1.01;
        }
        let mut vector = vec![0.0; self.spec.dim];
        let mut longest = 0f64;
        for position in 0..self.len() {
            self.decode(position, &mut vector);
            longest = longest.max(vector.iter().map(|x| f64::from(*x).powi(2)).sum());
        }
        (longest.sqrt() * ROUNDED) as f32
    }

    /// Decodes the vector at `position`: the given vector, rounded to the encoding, and normalised under cosine.
    ///
    /// # Panics
    /// If the position is out of range, or `out` is not of the space's dimension.
    pub fn decode(&self, position: usize, out: &mut [f32]) {
        let (dim, at) = (self.spec.dim, position as u32);
        self.touch(position, 1);
        match self.vectors {
            VectorsView::F32(all) => out.copy_from_slice(row(all, dim, at)),
            VectorsView::F16(all) => row(all, dim, at).convert_to_f32_slice(out),
            VectorsView::I8 { codes, scales } => {
                assert_eq!(out.len(), dim, "the space's dimension");
                for (x, code) in out.iter_mut().zip(row(codes, dim, at)) {
                    *x = f32::from(*code) * scales[position];
                }
            }
            VectorsView::Logged(rows) => self.read_logged(&rows, position, |vector| match vector {
                Components::F32(vector) => out.copy_from_slice(vector),
                Components::F16(vector) => vector.convert_to_f32_slice(out),
            }),
        }
    }
}

/// The approximate number of bytes that are prefetched ahead of scattered vectors, and the greatest number of vectors.
const FETCHED_AHEAD: usize = 8192;
const MOST_AHEAD: usize = 8;

/// A cache line, in bytes and in components of a query.
const LINE: usize = 64;
const LINE_NUMBERS: usize = LINE / size_of::<f32>();

/// A query prepared for comparisons with exact vectors.
#[derive(Clone, Debug)]
pub(crate) struct ExactQuery {
    spec: VectorSpec,
    /// The query from `first` on, aligned to a cache line: it is read again for every few rows, and loads across lines
    /// run at half the rate.
    padded: Vec<f32>,
    first: usize,
    kernels: &'static Kernels,
}

impl ExactQuery {
    /// Checks and prepares `query`.
    pub(crate) fn new(spec: VectorSpec, query: &[f32]) -> Result<Self> {
        spec.check(query)?;
        let mut padded = vec![0.0; LINE_NUMBERS + spec.dim];
        let first = padded.as_ptr().align_offset(LINE).min(LINE_NUMBERS);
        padded[first..first + spec.dim].copy_from_slice(&spec.prepare(query));
        Ok(Self { spec, padded, first, kernels: kernels() })
    }

    /// The prepared query.
    pub(crate) fn vector(&self) -> &[f32] {
        &self.padded[self.first..self.first + self.spec.dim]
    }

    /// The score of the vector at `position`.
    #[inline]
    pub(crate) fn score(&self, rows: &RowsView<'_>, position: usize) -> f32 {
        let (q, dim, at) = (self.vector(), self.spec.dim, position as u32);
        let k = self.kernels;
        let l2 = self.spec.metric == Metric::L2;
        rows.touch(position, 1);
        let raw = match rows.vectors {
            VectorsView::F32(all) if l2 => k.l2_f32(q, row(all, dim, at)),
            VectorsView::F32(all) => k.dot_f32(q, row(all, dim, at)),
            VectorsView::F16(all) if l2 => k.l2_f16(q, row(all, dim, at)),
            VectorsView::F16(all) => k.dot_f16(q, row(all, dim, at)),
            VectorsView::I8 { codes, scales } if l2 => k.l2_f32_i8(q, row(codes, dim, at), scales[position]),
            VectorsView::I8 { codes, scales } => k.dot_f32_i8(q, row(codes, dim, at), scales[position]),
            VectorsView::Logged(logged) => rows.read_logged(&logged, position, |vector| match vector {
                Components::F32(vector) if l2 => k.l2_f32(q, vector),
                Components::F32(vector) => k.dot_f32(q, vector),
                Components::F16(vector) if l2 => k.l2_f16(q, vector),
                Components::F16(vector) => k.dot_f16(q, vector),
            }),
        };
        self.spec.score(raw)
    }

    /// The scores of all of `rows`, in order.
    pub(crate) fn score_rows(&self, rows: &RowsView<'_>, out: &mut [f32]) {
        let (q, k) = (self.vector(), self.kernels);
        let l2 = self.spec.metric == Metric::L2;
        rows.touch(0, rows.len());
        match rows.vectors {
            VectorsView::F32(all) if l2 => k.l2_f32_rows(q, all, out),
            VectorsView::F32(all) => k.dot_f32_rows(q, all, out),
            VectorsView::F16(all) if l2 => k.l2_f16_rows(q, all, out),
            VectorsView::F16(all) => k.dot_f16_rows(q, all, out),
            VectorsView::I8 { .. } | VectorsView::Logged(_) => {
                for (position, out) in out.iter_mut().enumerate() {
                    *out = self.score(rows, position);
                }
                return;
            }
        }
        for raw in out {
            *raw = self.spec.score(*raw);
        }
    }

    /// The number of scattered vectors to prefetch ahead of the one being scored.
    #[inline]
    pub(crate) fn ahead(&self) -> usize {
        (FETCHED_AHEAD / size_of_val(self.vector()).max(1)).clamp(1, MOST_AHEAD)
    }

    /// Prefetches the vector at `position`, which will be scored soon.
    #[inline]
    pub(crate) fn prefetch(&self, rows: &RowsView<'_>, position: usize) {
        let (dim, at) = (self.spec.dim, position as u32);
        rows.fetch(position);
        match rows.vectors {
            VectorsView::F32(all) => prefetch(row(all, dim, at)),
            VectorsView::F16(all) => prefetch(row(all, dim, at)),
            VectorsView::I8 { codes, .. } => prefetch(row(codes, dim, at)),
            VectorsView::Logged(logged) => logged.prefetch(rows.first + position, rows.width()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn specs() -> impl Strategy<Value = VectorSpec> {
        let metric = prop_oneof![Just(Metric::Cosine), Just(Metric::Dot), Just(Metric::L2)];
        let encoding = prop_oneof![Just(Encoding::F32), Just(Encoding::F16), Just(Encoding::I8)];
        (1usize..40, metric, encoding)
            .prop_map(|(dim, metric, encoding)| VectorSpec::new(dim, metric, encoding).unwrap())
    }

    fn case() -> impl Strategy<Value = (VectorSpec, Vec<Vec<f32>>)> {
        specs().prop_flat_map(|spec| {
            let vector = proptest::collection::vec(-2.0f32..2.0, spec.dim);
            (Just(spec), proptest::collection::vec(vector, 1..12))
        })
    }

    /// The score by the definition in the module `spec`, in double precision.
    fn defined(spec: VectorSpec, q: &[f32], v: &[f32]) -> f64 {
        let dot = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum() };
        match spec.metric {
            Metric::Dot => dot(q, v),
            Metric::Cosine if dot(q, q) == 0.0 || dot(v, v) == 0.0 => 0.0,
            Metric::Cosine => dot(q, v) / (dot(q, q) * dot(v, v)).sqrt(),
            Metric::L2 => 1.0 / (1.0 + (dot(q, q) + dot(v, v) - 2.0 * dot(q, v)).max(0.0).sqrt()),
        }
    }

    proptest! {
        #[test]
        fn scores_are_what_the_metric_says((spec, vectors) in case()) {
            let mut rows = Rows::new(spec);
            for (i, v) in vectors.iter().enumerate() {
                rows.push(i as u32 * 3 + 5, v).unwrap();
            }
            let query = ExactQuery::new(spec, &vectors[0]).unwrap();
            let mut all = vec![0.0; rows.len()];
            query.score_rows(&rows.view(), &mut all);
            for (i, v) in vectors.iter().enumerate() {
                // A component is off by at most 2 / 254 in i8 and 2 ^ -11 of itself in f16; distances magnify that
                // near zero, where the score is steepest.
                let step = match spec.encoding { Encoding::F32 => 1e-5, Encoding::F16 => 1e-3, Encoding::I8 => 8e-3 };
                let bound = step * 4.0 * spec.dim as f64;
                let want = defined(spec, &vectors[0], v);
                let got = f64::from(query.score(&rows.view(), i));
                prop_assert!((got - want).abs() <= bound.max(2e-3), "{spec}: {got} {want}");
                prop_assert!((f64::from(all[i]) - got).abs() < 1e-5);
                prop_assert_eq!(rows.view().position(i as u32 * 3 + 5), Some(i));
                prop_assert_eq!(rows.view().position(i as u32 * 3 + 4), None);
            }
        }

        #[test]
        fn appended_rows_are_the_same_rows((spec, vectors) in case(), cut in 0usize..12) {
            let mut rows = Rows::new(spec);
            for (i, v) in vectors.iter().enumerate() {
                rows.push(i as u32, v).unwrap();
            }
            let cut = cut.min(rows.len());
            let mut copy = Rows::new(spec);
            copy.append(rows.view().slice(0, cut));
            copy.append(rows.view().slice(cut, rows.len()));
            prop_assert_eq!(copy.ids(), rows.ids());
            let (mut a, mut b) = (vec![0.0; spec.dim], vec![0.0; spec.dim]);
            for i in 0..rows.len() {
                copy.view().decode(i, &mut a);
                rows.view().decode(i, &mut b);
                prop_assert_eq!(&a, &b);
            }
        }
    }

    #[test]
    fn the_zero_vector_is_like_nothing_under_cosine() {
        for encoding in [Encoding::F32, Encoding::F16, Encoding::I8] {
            let spec = VectorSpec::new(4, Metric::Cosine, encoding).unwrap();
            let mut rows = Rows::new(spec);
            rows.push(0, &[0.0; 4]).unwrap();
            rows.push(1, &[1.0, 2.0, 3.0, 4.0]).unwrap();
            let query = ExactQuery::new(spec, &[4.0, 3.0, 2.0, 1.0]).unwrap();
            assert_eq!(query.score(&rows.view(), 0), 0.0);
            let zero = ExactQuery::new(spec, &[0.0; 4]).unwrap();
            assert_eq!(zero.score(&rows.view(), 1), 0.0);
        }
    }

    #[test]
    fn ids_must_ascend() {
        let mut rows = Rows::new(VectorSpec::new(1, Metric::Dot, Encoding::F32).unwrap());
        rows.push(7, &[1.0]).unwrap();
        assert!(matches!(rows.push(7, &[1.0]), Err(Error::IdOrder { previous: 7, next: 7 })));
        assert_eq!(rows.len(), 1);
    }
}
