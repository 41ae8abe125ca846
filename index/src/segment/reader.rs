//! Reads a `.vseg` file through a memory map.
//!
//! No answer comes from damaged bytes, and no index derived from them is out of bounds. Opening checks the header, the
//! lengths of all sections, the id set and the offsets of the upper levels; a segment without a graph is small and
//! checked entirely. Sections that grow with the segment (vectors, codes, code errors, ids, links) are verified block
//! by block as they are read ([`guard`]), so opening stays fast. A reader calls [`VectorSegment::damage`] before it
//! returns an answer.
//!
//! Cost of opening: about a thousandth of the file is read, for block checksums. Ids that are not dense take an eighth
//! of a byte per id in their range, plus half of that for ranks.

use std::sync::OnceLock;

use holotype_storage::segment_file::SegmentFile;

use super::guard::{self, CheckedSection, Guard, SectionKind};
use super::layout::{self, GraphHead, Head};
use super::writer::Extended;
use crate::error::{Error, Result};
use crate::hnsw::build::Base;
use crate::hnsw::calibrate::{Measured, ef_for};
use crate::hnsw::graph::{GraphView, UpperLevel};
use crate::hnsw::params::Params;
use crate::hnsw::twins::{Pair, TwinsView};
use crate::hnsw::visited::Pool;
use crate::logged::{LoggedRows, LoggedVectors, Places, StandIn};
use crate::quantize::{CodeBounds, CodeErrors, Codes, LikelyScore, Quantizer};
use crate::rows::{ExactQuery, RowsView, VectorsView};
use crate::scorer::{CodedPart, PartId};
use crate::segment::id_set::{IdSet, IdSetBits};
use crate::signs::Signs;
use crate::spec::{Encoding, Metric, VectorSpec};

/// An immutable segment, mapped.
#[derive(Debug)]
pub struct VectorSegment {
    file: SegmentFile,
    head: Head,
    /// The id set of a segment whose ids are not dense and that has no `MEMB` section.
    members: Option<IdSetBits>,
    /// Present with scan codes.
    quantizer: Option<Quantizer>,
    graph: Option<GraphParts>,
    /// The places of vectors in the log, once they are read.
    places: OnceLock<Places>,
    pool: Pool,
    part_id: PartId,
}

/// The part of a segment's graph that is kept in memory.
#[derive(Debug)]
struct GraphParts {
    head: GraphHead,
    levels: Vec<UpperLevel>,
    calibration: Vec<Measured>,
    guards: [Guard; GUARDED.len()],
}

/// The sections that are verified as they are read, in the order of `SUMS`.
const GUARDED: [([u8; 4], &str); 6] = [
    (layout::VECTORS, "VECS"),
    (layout::CODES, "CODE"),
    (layout::LINKS, "LNK0"),
    (layout::IDS, "IDS "),
    (layout::CODE_ERRORS, "CERR"),
    (layout::UPPER, "UPPR"),
];

/// The index of the upper levels in them. Their content is range-checked at each read, verified or not.
const UPPER: usize = 5;

/// A segment's graph with its codes and quantizer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentGraph<'a> {
    pub(crate) params: Params,
    pub(crate) quantizer: &'a Quantizer,
    pub(crate) codes: Codes<'a>,
    longest: f32,
    pub(crate) graph: GraphView<'a>,
}

impl SegmentGraph<'_> {
    /// Likely bounds of similarities to `query`, from codes.
    pub(crate) fn likely(&self, query: &ExactQuery) -> LikelyScore {
        self.quantizer.likely(query.vector(), self.longest)
    }
}

impl VectorSegment {
    /// Opens a segment after checking `file`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a segment of another space, [`Error::Corrupt`] or a storage error for damage.
    pub fn open(file: SegmentFile, spec: &VectorSpec) -> Result<Self> {
        file.check_version(layout::VERSION_LOGGED)?;
        let head = Head::decode(file.section(layout::HEAD)?)?;
        let version = if head.is_logged { layout::VERSION_LOGGED } else { layout::VERSION };
        if file.version() != version {
            return Err(Error::Mismatch {
                expected: format!("version {version} of the vector segment"),
                found: format!("version {}", file.version()),
            });
        }
        if head.spec != *spec {
            return Err(Error::Mismatch { expected: spec.to_string(), found: head.spec.to_string() });
        }
        let (pool, part_id) = (Pool::default(), PartId::next());
        let mut segment =
            Self { file, head, members: None, quantizer: None, graph: None, places: OnceLock::new(), pool, part_id };
        segment.members = segment.check_ids()?;
        segment.check_vectors()?;
        segment.quantizer = segment.check_codes()?;
        segment.signs()?;
        if let Some(graph) = head.graph {
            segment.graph = Some(segment.check_graph(graph)?);
        }
        Ok(segment)
    }

    /// The space that the header of a file states. Checks nothing else.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or a storage error for a damaged header.
    pub fn spec_of(file: &SegmentFile) -> Result<VectorSpec> {
        file.check_version(layout::VERSION_LOGGED)?;
        Ok(Head::decode(file.section(layout::HEAD)?)?.spec)
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.head.spec
    }

    /// The number of vectors, at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.head.count as usize
    }

    /// The smallest and the largest id.
    pub fn id_range(&self) -> std::ops::RangeInclusive<u32> {
        self.head.first_id..=self.head.last_id
    }

    /// Its identity within this process.
    pub(crate) fn part_id(&self) -> PartId {
        self.part_id
    }

    /// True if it has a graph; a small segment is scanned.
    pub fn has_graph(&self) -> bool {
        self.head.graph.is_some()
    }

    /// True if its exact vectors stand in the log only.
    pub fn is_logged(&self) -> bool {
        self.head.is_logged
    }

    /// The same segment with the places of its vectors, which the merge that wrote it found.
    #[must_use]
    pub fn with_places(self, places: Option<Places>) -> Self {
        match places.filter(|places| self.head.is_logged && places.len() == self.len()) {
            Some(places) => Self { places: OnceLock::from(places), ..self },
            None => self,
        }
    }

    /// Its file.
    pub fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// Fails if damaged bytes were read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the position of the damage.
    pub fn damage(&self) -> Result<()> {
        if self.file.is_cut() {
            return Err(Error::corrupt("file", 0, "it was cut while it was in use"));
        }
        self.guards().try_for_each(Guard::damage)
    }

    /// True if all bytes have been verified.
    pub(crate) fn is_checked(&self) -> bool {
        self.guards().all(Guard::is_done)
    }

    fn guards(&self) -> impl Iterator<Item = &Guard> {
        self.graph.iter().flat_map(|parts| &parts.guards)
    }

    /// Verifies all bytes not read yet.
    ///
    /// # Errors
    /// As [`VectorSegment::damage`].
    pub fn check_all(&self) -> Result<()> {
        for checked in self.checked()?.into_iter().flatten() {
            checked.touch_all();
        }
        self.damage()?;
        match &self.graph {
            Some(parts) => self.check_levels(&parts.head),
            None => Ok(()),
        }
    }

    /// Verifies a few blocks not read yet, so that later searches need not.
    pub(crate) fn check_ahead(&self) {
        for checked in self.checked().into_iter().flatten().skip(1).flatten() {
            checked.advance();
        }
    }

    /// The sections of [`GUARDED`], unless all of them are verified.
    fn checked(&self) -> Result<[Option<CheckedSection<'_>>; GUARDED.len()]> {
        let mut all = [None; GUARDED.len()];
        let Some(parts) = &self.graph else {
            return Ok(all);
        };
        let sums = self.array(layout::SUMS, "SUMS")?;
        for (at, ((checked, guard), (tag, _))) in all.iter_mut().zip(&parts.guards).zip(GUARDED).enumerate() {
            if at != UPPER && guard.is_done() {
                continue;
            }
            let holds = match tag {
                layout::LINKS => SectionKind::Links(self.head.count),
                layout::IDS => SectionKind::Ids(self.members()?),
                _ => SectionKind::Bytes,
            };
            let section = guard.over(self.guarded(tag)?, sums, holds);
            *checked = Some(section.in_file(&self.file, tag));
        }
        Ok(all)
    }

    /// True if a scan begins with signs.
    pub fn has_signs(&self) -> bool {
        self.file.place_of(layout::SIGNS).is_some()
    }

    /// The signs, where there are any.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub(crate) fn signs(&self) -> Result<Option<Signs<'_>>> {
        let Some(signs) = self.file.optional_section(layout::SIGNS)? else { return Ok(None) };
        let (signs, estimates) = (numbers(signs, "SIGN")?, self.array(layout::SIGN_ESTIMATES, "SEST")?);
        let signs = Signs::new(self.head.spec, self.len(), signs, estimates);
        signs.map(Some).ok_or_else(|| Error::corrupt("SIGN", 0, "the signs are not those of these vectors"))
    }

    /// An upper bound of the lengths of vectors.
    pub(crate) fn longest(&self) -> f32 {
        self.head.longest
    }

    /// The exact vectors with their ids, verified as they are read. Call [`VectorSegment::damage`] afterwards. `log` is
    /// where they stand if not here.
    ///
    /// # Errors
    /// A storage error when the file is damaged; [`Error::NoLog`].
    pub fn rows<'a>(&'a self, log: Option<&'a dyn LoggedVectors>) -> Result<RowsView<'a>> {
        let [of_vectors, _, _, of_ids, ..] = self.checked()?;
        let ids = self.large(layout::IDS, "IDS ")?;
        if self.head.is_logged {
            let places = self.places.get_or_init(|| Places::none(self.len()));
            let rows = LoggedRows::new(log.ok_or(Error::NoLog)?, places, Some(self));
            return Ok(RowsView::new(self.head.spec, ids, VectorsView::Logged(rows)).checked(None, of_ids));
        }
        let vectors = match self.head.spec.encoding {
            Encoding::F32 => VectorsView::F32(self.large(layout::VECTORS, "VECS")?),
            Encoding::F16 => VectorsView::F16(self.large(layout::VECTORS, "VECS")?),
            Encoding::I8 => VectorsView::I8 {
                codes: self.large(layout::VECTORS, "VECS")?,
                scales: self.array(layout::SCALES, "SCAL")?,
            },
        };
        Ok(RowsView::new(self.head.spec, ids, vectors).checked(of_vectors, of_ids))
    }

    /// The ids, ascending.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub fn ids(&self) -> Result<Vec<u32>> {
        Ok(self.members()?.ids().collect())
    }

    /// Its ids as a set.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub(crate) fn members(&self) -> Result<IdSet<'_>> {
        let Head { first_id, last_id, count, .. } = self.head;
        if let Some(words) = &self.members {
            return Ok(words.view(first_id, last_id));
        }
        if last_id - first_id == count - 1 {
            return Ok(IdSet::dense(first_id, last_id));
        }
        let bytes = self.file.section(layout::MEMBERS)?;
        IdSet::decode(first_id, last_id, bytes).map_err(|(at, what)| Error::corrupt("MEMB", at, what))
    }

    /// Scratch memory for searches.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The graph, unless the segment is small.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub(crate) fn walkable(&self) -> Result<Option<SegmentGraph<'_>>> {
        let (Some(parts), Some(quantizer)) = (&self.graph, &self.quantizer) else {
            return Ok(None);
        };
        let (spec, head) = (self.head.spec, &parts.head);
        let [_, codes, guard, _, _, upper_guard] = self.checked()?;
        let codes = Codes::new(spec.dim, spec.metric, self.large(layout::CODES, "CODE")?).checked(codes);
        let graph = GraphView {
            m: head.m as usize,
            m0: head.m0 as usize,
            entry: head.entry,
            links: self.large(layout::LINKS, "LNK0")?,
            guard,
            upper: self.large(layout::UPPER, "UPPR")?,
            upper_guard,
            levels: &parts.levels,
            twins: TwinsView::new(self.array(layout::TWINS, "TWIN")?),
        };
        Ok(Some(SegmentGraph { params: params(head), quantizer, codes, longest: self.head.longest, graph }))
    }

    /// The parts of a segment with a graph that a merge keeps. Its bytes must all be verified. `kept` gives the new
    /// position of each vector.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub(super) fn extended<'a>(&'a self, kept: &'a [u32]) -> Result<Option<(Extended<'a>, Params)>> {
        let (Some(walkable), Some(head), Some(parts)) = (self.walkable()?, self.head.codes, &self.graph) else {
            return Ok(None);
        };
        let SegmentGraph { params, quantizer, codes, longest, graph } = walkable;
        let errors = CodeErrors { largest: head.error, parts: self.large(layout::CODE_ERRORS, "CERR")?, guard: None };
        let (base, calibration) = (Base { graph, kept }, parts.calibration.as_slice());
        Ok(Some((Extended { base, quantizer, codes, errors, calibration, longest }, params)))
    }

    /// The ids that are unreachable from the entry point: none in an intact segment, and none without a graph.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub fn unreachable_ids(&self) -> Result<Vec<u32>> {
        let Some(walkable) = self.walkable()? else {
            return Ok(Vec::new());
        };
        let ids: Vec<u32> = self.members()?.ids().collect();
        let unreachable = walkable.graph.unreachable().into_iter().map(|position| ids[position as usize]).collect();
        self.damage()?;
        Ok(unreachable)
    }

    /// The smallest ef that reached `recall` in the build's calibration, or twice the largest that was tried. `None`
    /// without a graph.
    pub fn ef_for_recall(&self, recall: f32) -> Option<usize> {
        ef_for(&self.graph.as_ref()?.calibration, recall)
    }

    /// Checks the id set, and builds it if no section stores it.
    fn check_ids(&self) -> Result<Option<IdSetBits>> {
        let ids: &[u32] = self.large(layout::IDS, "IDS ")?;
        self.expect_len("IDS ", ids.len(), self.len())?;
        if self.head.graph.is_some() {
            let members = self.members()?;
            members.check(self.len()).map_err(|(at, what)| Error::corrupt("MEMB", at, what))?;
            return Ok(None);
        }
        let ids: &[u32] = self.array(layout::IDS, "IDS ")?;
        if let Some(at) = ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(Error::corrupt("IDS ", at * 4, format!("{} before {}", ids[at], ids[at + 1])));
        }
        if (ids.first(), ids.last()) != (Some(&self.head.first_id), Some(&self.head.last_id)) {
            return Err(Error::corrupt("HEAD", 0, "the first or the last id disagrees with the list"));
        }
        Ok(IdSetBits::of(ids))
    }

    /// A section that is verified as it is read. Vectors that stand in the log have none.
    fn guarded(&self, tag: [u8; 4]) -> Result<&[u8]> {
        match tag {
            layout::VECTORS if self.head.is_logged => Ok(&[]),
            _ => Ok(self.file.unchecked_section(tag)?),
        }
    }

    fn check_vectors(&self) -> Result<()> {
        if self.head.is_logged {
            return Ok(());
        }
        let components = self.len() * self.head.spec.dim;
        if self.head.graph.is_none() {
            self.file.section(layout::VECTORS)?;
        }
        match self.head.spec.encoding {
            Encoding::F32 => {
                let all: &[f32] = self.large(layout::VECTORS, "VECS")?;
                self.expect_len("VECS", all.len(), components)
            }
            Encoding::F16 => {
                let all: &[half::f16] = self.large(layout::VECTORS, "VECS")?;
                self.expect_len("VECS", all.len(), components)
            }
            Encoding::I8 => {
                let all: &[i8] = self.large(layout::VECTORS, "VECS")?;
                self.expect_len("VECS", all.len(), components)?;
                let scales: &[f32] = self.array(layout::SCALES, "SCAL")?;
                self.expect_len("SCAL", scales.len(), self.len())
            }
        }
    }

    fn check_codes(&self) -> Result<Option<Quantizer>> {
        let (Some(head), spec) = (self.head.codes, self.head.spec) else {
            return Ok(None);
        };
        if self.head.graph.is_none() {
            self.file.section(layout::CODES)?;
            self.file.section(layout::CODE_ERRORS)?;
        }
        let codes: &[i8] = self.large(layout::CODES, "CODE")?;
        self.expect_len("CODE", codes.len(), self.len() * spec.dim)?;
        let errors: &[u8] = self.large(layout::CODE_ERRORS, "CERR")?;
        self.expect_len("CERR", errors.len(), self.len())?;
        let mut mean: &[f32] = &[];
        if spec.metric == Metric::L2 {
            mean = self.array(layout::MEAN, "MEAN")?;
            self.expect_len("MEAN", mean.len(), spec.dim)?;
        }
        Ok(Some(Quantizer::new(spec.metric, head.scale, mean.to_vec())))
    }

    fn check_graph(&self, head: GraphHead) -> Result<GraphParts> {
        let links: &[u32] = self.large(layout::LINKS, "LNK0")?;
        self.expect_len("LNK0", links.len(), self.len() * head.m0 as usize)?;
        let mut blocks = 0;
        let mut guards = Vec::with_capacity(GUARDED.len());
        for (tag, name) in GUARDED {
            let len = self.guarded(tag)?.len();
            guards.push(Guard::new(name, blocks, len));
            blocks += guard::block_count(len);
        }
        let sums: &[u32] = self.array(layout::SUMS, "SUMS")?;
        self.expect_len("SUMS", sums.len(), blocks)?;
        TwinsView::check(self.array::<Pair>(layout::TWINS, "TWIN")?, self.len())?;
        let calibration: &[u32] = self.array(layout::CALIBRATION, "CALB")?;
        let (calibration, rest) = calibration.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::corrupt("CALB", 0, "half a pair at the end"));
        }
        let calibration = calibration.iter().map(|[ef, recall]| Measured { ef: *ef, recall: f32::from_bits(*recall) });
        let Ok(guards) = guards.try_into() else {
            return Err(Error::corrupt("SUMS", 0, "the number of checksums does not match the sections"));
        };
        let calibration = calibration.collect();
        let mut parts = GraphParts { head, levels: Vec::new(), calibration, guards };
        parts.levels = self.find_levels(&parts)?;
        Ok(parts)
    }

    /// Locates the upper levels, and checks that the entry point is on the highest.
    fn find_levels(&self, parts: &GraphParts) -> Result<Vec<UpperLevel>> {
        let (words, head) = (self.large(layout::UPPER, "UPPR")?, &parts.head);
        let sums = self.array(layout::SUMS, "SUMS")?;
        let guard = parts.guards[UPPER].over(self.file.unchecked_section(layout::UPPER)?, sums, SectionKind::Bytes);
        let guard = guard.in_file(&self.file, layout::UPPER);
        let touch = |word: usize| guard.touch(word * 4, 4);
        let levels = UpperLevel::find(words, head.levels, self.len(), head.m as usize, touch)?;
        self.check_entry(&self.levels(head, words, Some(guard), &levels))?;
        Ok(levels)
    }

    /// Checks the entire content of the upper levels.
    fn check_levels(&self, head: &GraphHead) -> Result<()> {
        let words = self.large(layout::UPPER, "UPPR")?;
        let levels = UpperLevel::check(words, head.levels, self.len(), head.m as usize)?;
        let (ids, params) = (self.large::<u32>(layout::IDS, "IDS ")?, params(head));
        let graph = self.levels(head, words, None, &levels);
        for level in 1..=graph.top() {
            // A merge relies on this: the id of a node determines its level.
            let positions = graph.level(level).positions().unwrap_or_default();
            if positions.iter().any(|position| params.level(ids[*position as usize]) < level) {
                let what = format!("a node is on level {level}, but its id determines another");
                return Err(Error::corrupt("UPPR", 0, what));
            }
        }
        self.check_entry(&graph)
    }

    fn check_entry(&self, graph: &GraphView<'_>) -> Result<()> {
        match graph.level(graph.top()).index_of(graph.entry) {
            Some(_) => Ok(()),
            None => Err(Error::corrupt("UPPR", 0, "the entry point is not on the highest level")),
        }
    }

    /// A graph view of the upper levels only.
    fn levels<'a>(
        &self,
        head: &GraphHead,
        upper: &'a [u32],
        upper_guard: Option<CheckedSection<'a>>,
        levels: &'a [UpperLevel],
    ) -> GraphView<'a> {
        let (m, m0, entry) = (head.m as usize, head.m0 as usize, head.entry);
        let twins = TwinsView::default();
        GraphView { m, m0, entry, links: &[], guard: None, upper, upper_guard, levels, twins }
    }

    fn expect_len(&self, section: &'static str, found: usize, expected: usize) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(Error::corrupt(section, 0, format!("{found} entries, not {expected}")))
    }

    /// A section as an array of numbers.
    fn array<T: bytemuck::Pod>(&self, tag: [u8; 4], name: &'static str) -> Result<&[T]> {
        numbers(self.file.section(tag)?, name)
    }

    /// A section that is verified as it is read, as an array of numbers.
    fn large<T: bytemuck::Pod>(&self, tag: [u8; 4], name: &'static str) -> Result<&[T]> {
        numbers(self.file.unchecked_section(tag)?, name)
    }
}

impl StandIn for VectorSegment {
    fn decode(&self, position: usize) -> Vec<f32> {
        let graph = self.walkable().ok().flatten();
        let zeros = || vec![0.0; self.head.spec.dim];
        graph.map_or_else(zeros, |graph| graph.quantizer.decode(graph.codes.verified_code(position as u32)))
    }
}

impl CodedPart for VectorSegment {
    fn bounds(&self, query: &ExactQuery) -> Result<Option<CodeBounds<'_>>> {
        let (Some(head), Some(quantizer)) = (self.head.codes, &self.quantizer) else {
            return Ok(None);
        };
        let (spec, [_, codes, _, _, guard, _]) = (self.head.spec, self.checked()?);
        let codes = Codes::new(spec.dim, spec.metric, self.large(layout::CODES, "CODE")?).checked(codes);
        let errors = CodeErrors { largest: head.error, parts: self.large(layout::CODE_ERRORS, "CERR")?, guard };
        Ok(Some(CodeBounds::new(quantizer, codes, errors, self.head.longest, &quantizer.query_code(query.vector()))))
    }
}

fn numbers<'a, T: bytemuck::Pod>(bytes: &'a [u8], name: &'static str) -> Result<&'a [T]> {
    bytemuck::try_cast_slice(bytes).map_err(|why| Error::corrupt(name, 0, format!("{} bytes: {why}", bytes.len())))
}

fn params(head: &GraphHead) -> Params {
    Params { m: head.m as usize, m0: head.m0 as usize, ef_construction: head.ef_construction as usize, seed: head.seed }
}
