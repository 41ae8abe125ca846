//! Reads a `.vseg` in place.
//!
//! No answer comes from, and no index runs past, bytes that are not what they should be. Opening checks the header, the
//! length of every section against it, that ids ascend and that the levels above 0 stay within the segment; a segment
//! without a graph, which is small, is checked altogether. What is large (vectors, codes, links of level 0) is checked
//! block by block as it is read ([`guard`]), so that opening takes no longer for it: whoever has read asks for the damage
//! met ([`VectorSegment::damage`]) before an answer goes out.

use holotype_storage::segment_file::SegmentFile;

use super::guard::{self, Guard, Guarded};
use super::layout::{self, GraphHead, Head};
use crate::error::{Error, Result};
use crate::hnsw::calibrate::{Measured, ef_for};
use crate::hnsw::filter::Members;
use crate::hnsw::graph::{GraphView, UpperLevel};
use crate::hnsw::params::Params;
use crate::hnsw::visited::Pool;
use crate::quantize::{CodeBounds, CodeErrors, Codes, Likely, Quantizer};
use crate::rows::{ExactQuery, RowsView, VectorsView};
use crate::spec::{Encoding, Metric, VectorSpec};

/// An immutable segment, mapped.
#[derive(Debug)]
pub struct VectorSegment {
    file: SegmentFile,
    head: Head,
    members: Members,
    graph: Option<GraphParts>,
    pool: Pool,
}

/// What is kept in memory of a segment's graph.
#[derive(Debug)]
struct GraphParts {
    head: GraphHead,
    quantizer: Quantizer,
    levels: Vec<UpperLevel>,
    calibration: Vec<Measured>,
    vectors: Guard,
    codes: Guard,
    links: Guard,
}

/// A segment's graph with all that a walk needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walkable<'a> {
    pub(crate) params: Params,
    pub(crate) quantizer: &'a Quantizer,
    pub(crate) codes: Codes<'a>,
    pub(crate) errors: CodeErrors<'a>,
    longest: f32,
    pub(crate) graph: GraphView<'a>,
}

impl<'a> Walkable<'a> {
    /// What the codes likely say about similarities to `query`.
    pub(crate) fn likely(&self, query: &ExactQuery) -> Likely {
        self.quantizer.likely(query.vector(), self.longest)
    }

    /// What the codes prove about similarities to `query`.
    pub(crate) fn bounds(&self, query: &ExactQuery) -> CodeBounds<'a> {
        CodeBounds::new(self.quantizer, self.codes, self.errors, self.longest, query.vector())
    }
}

impl VectorSegment {
    /// Checks `file` and takes it over.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when it was made for another space, [`Error::Corrupt`] or a storage error when its bytes
    /// are not what they should be.
    pub fn open(file: SegmentFile, spec: &VectorSpec) -> Result<Self> {
        file.check_version(layout::VERSION)?;
        if file.version() != layout::VERSION {
            return Err(Error::Mismatch {
                expected: format!("version {} of the vector segment", layout::VERSION),
                found: format!("version {}", file.version()),
            });
        }
        let head = Head::decode(file.section(layout::HEAD)?)?;
        if head.spec != *spec {
            return Err(Error::Mismatch { expected: spec.to_string(), found: head.spec.to_string() });
        }
        let mut segment = Self { file, head, members: Members::new(&[]), graph: None, pool: Pool::default() };
        segment.members = Members::new(segment.check_ids()?);
        segment.check_vectors()?;
        if let Some(graph) = head.graph {
            segment.graph = Some(segment.check_graph(graph)?);
        }
        Ok(segment)
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.head.spec
    }

    /// How many vectors there are; at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.head.count as usize
    }

    /// The smallest and the largest id.
    pub fn id_range(&self) -> std::ops::RangeInclusive<u32> {
        self.head.first_id..=self.head.last_id
    }

    /// Whether it is searched through a graph; a small one is scanned.
    pub fn has_graph(&self) -> bool {
        self.head.graph.is_some()
    }

    /// The file it reads from.
    pub fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// Whether something that was read is not as it was written.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with where it is.
    pub fn damage(&self) -> Result<()> {
        let Some(GraphParts { vectors, codes, links, .. }) = &self.graph else {
            return Ok(());
        };
        [vectors, codes, links].into_iter().try_for_each(Guard::damage)
    }

    /// Whether everything was read and found as it was written.
    pub(crate) fn is_checked(&self) -> bool {
        let parts = self.graph.iter();
        parts.flat_map(|parts| [&parts.vectors, &parts.codes, &parts.links]).all(Guard::is_done)
    }

    /// Checks what has not been read yet.
    ///
    /// # Errors
    /// As [`VectorSegment::damage`].
    pub fn check_all(&self) -> Result<()> {
        for guarded in self.guarded()?.into_iter().flatten() {
            guarded.touch_all();
        }
        self.damage()
    }

    /// Checks a little of what has not been read yet, so that later searches need not.
    pub(crate) fn check_ahead(&self) {
        for guarded in self.guarded().into_iter().flatten().skip(1).flatten() {
            guarded.advance();
        }
    }

    /// Vectors, codes and links, where they are not all checked yet.
    fn guarded(&self) -> Result<[Option<Guarded<'_>>; 3]> {
        let Some(parts) = &self.graph else {
            return Ok([None; 3]);
        };
        let sums = self.array(layout::SUMS, "SUMS")?;
        let over = |guard: &'_ Guard, tag, links| -> Result<_> {
            Ok(if guard.is_done() { None } else { Some((self.file.unchecked_section(tag)?, links)) })
        };
        let [vectors, codes, links] = [
            over(&parts.vectors, layout::VECTORS, None)?,
            over(&parts.codes, layout::CODES, None)?,
            over(&parts.links, layout::LINKS, Some(self.head.count))?,
        ];
        Ok([
            vectors.map(|(bytes, links)| parts.vectors.over(bytes, sums, links)),
            codes.map(|(bytes, links)| parts.codes.over(bytes, sums, links)),
            links.map(|(bytes, links)| parts.links.over(bytes, sums, links)),
        ])
    }

    /// The exact vectors with their ids. What is read of them is checked then; ask [`VectorSegment::damage`] afterwards.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub fn rows(&self) -> Result<RowsView<'_>> {
        let vectors = match self.head.spec.encoding {
            Encoding::F32 => VectorsView::F32(self.large(layout::VECTORS, "VECS")?),
            Encoding::F16 => VectorsView::F16(self.large(layout::VECTORS, "VECS")?),
            Encoding::I8 => VectorsView::I8 {
                codes: self.large(layout::VECTORS, "VECS")?,
                scales: self.array(layout::SCALES, "SCAL")?,
            },
        };
        let [guard, ..] = self.guarded()?;
        Ok(RowsView::new(self.head.spec, self.ids()?, vectors).guarded(guard))
    }

    /// No vector is longer.
    pub(crate) fn longest(&self) -> f32 {
        self.head.longest
    }

    /// The ids, ascending.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub fn ids(&self) -> Result<&[u32]> {
        self.array(layout::IDS, "IDS ")
    }

    /// Its ids as a set.
    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// Memory for searches.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The graph, where it has one.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub(crate) fn walkable(&self) -> Result<Option<Walkable<'_>>> {
        let Some(parts) = &self.graph else {
            return Ok(None);
        };
        let (spec, head) = (self.head.spec, &parts.head);
        let [_, codes, guard] = self.guarded()?;
        let codes = Codes::new(spec.dim, spec.metric, self.large(layout::CODES, "CODE")?).guarded(codes);
        let graph = GraphView {
            m: head.m as usize,
            m0: head.m0 as usize,
            entry: head.entry,
            links: self.large(layout::LINKS, "LNK0")?,
            guard,
            upper: self.array(layout::UPPER, "UPPR")?,
            levels: &parts.levels,
        };
        let errors = CodeErrors { largest: head.code_error, parts: self.array(layout::CODE_ERRORS, "CERR")? };
        Ok(Some(Walkable {
            params: params(head),
            quantizer: &parts.quantizer,
            codes,
            errors,
            longest: self.head.longest,
            graph,
        }))
    }

    /// The ids that no walk from the entry point can reach: none in a segment as it was built. None without a graph.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub fn unreachable_ids(&self) -> Result<Vec<u32>> {
        let Some(walkable) = self.walkable()? else {
            return Ok(Vec::new());
        };
        let ids = self.ids()?;
        let positions = walkable.graph.unreachable();
        self.damage()?;
        Ok(positions.into_iter().map(|position| ids[position as usize]).collect())
    }

    /// The smallest ef that reached `recall` when the segment was built, or twice the largest that was tried. `None`
    /// without a graph.
    pub fn ef_for_recall(&self, recall: f32) -> Option<usize> {
        ef_for(&self.graph.as_ref()?.calibration, recall)
    }

    fn check_ids(&self) -> Result<&[u32]> {
        let ids = self.ids()?;
        self.expect_len("IDS ", ids.len(), self.len())?;
        if let Some(at) = ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(Error::corrupt("IDS ", at * 4, format!("{} before {}", ids[at], ids[at + 1])));
        }
        if (ids.first(), ids.last()) != (Some(&self.head.first_id), Some(&self.head.last_id)) {
            return Err(Error::corrupt("HEAD", 0, "the first or the last id disagrees with the list"));
        }
        Ok(ids)
    }

    fn check_vectors(&self) -> Result<()> {
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

    fn check_graph(&self, head: GraphHead) -> Result<GraphParts> {
        let spec = self.head.spec;
        let codes: &[i8] = self.large(layout::CODES, "CODE")?;
        self.expect_len("CODE", codes.len(), self.len() * spec.dim)?;
        let errors: &[u8] = self.array(layout::CODE_ERRORS, "CERR")?;
        self.expect_len("CERR", errors.len(), self.len())?;
        let mut mean: &[f32] = &[];
        if spec.metric == Metric::L2 {
            mean = self.array(layout::MEAN, "MEAN")?;
            self.expect_len("MEAN", mean.len(), spec.dim)?;
        }
        let links: &[u32] = self.large(layout::LINKS, "LNK0")?;
        self.expect_len("LNK0", links.len(), self.len() * head.m0 as usize)?;
        let mut blocks = 0;
        let mut guard = |tag, name| -> Result<Guard> {
            let len = self.file.unchecked_section(tag)?.len();
            let guard = Guard::new(name, blocks, len);
            blocks += guard::block_count(len);
            Ok(guard)
        };
        let (vectors, codes) = (guard(layout::VECTORS, "VECS")?, guard(layout::CODES, "CODE")?);
        let links = guard(layout::LINKS, "LNK0")?;
        let sums: &[u32] = self.array(layout::SUMS, "SUMS")?;
        self.expect_len("SUMS", sums.len(), blocks)?;
        let calibration: &[u32] = self.array(layout::CALIBRATION, "CALB")?;
        let (calibration, rest) = calibration.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::corrupt("CALB", 0, "half a pair at the end"));
        }
        let calibration = calibration.iter().map(|[ef, recall]| Measured { ef: *ef, recall: f32::from_bits(*recall) });
        Ok(GraphParts {
            head,
            quantizer: Quantizer::new(spec.metric, head.code_scale, mean.to_vec()),
            levels: self.check_levels(&head)?,
            calibration: calibration.collect(),
            vectors,
            codes,
            links,
        })
    }

    fn check_levels(&self, head: &GraphHead) -> Result<Vec<UpperLevel>> {
        let (words, m) = (self.array(layout::UPPER, "UPPR")?, head.m as usize);
        let levels = UpperLevel::check(words, head.levels, self.len(), m)?;
        let (ids, params) = (self.ids()?, params(head));
        let graph = GraphView {
            m,
            m0: head.m0 as usize,
            entry: head.entry,
            links: &[],
            guard: None,
            upper: words,
            levels: &levels,
        };
        for level in 1..=graph.top() {
            // A merge puts each node on the levels that its id gives it.
            let positions = graph.level(level).positions().unwrap_or_default();
            if positions.iter().any(|position| params.level(ids[*position as usize]) < level) {
                let what = format!("a node on level {level} that its id does not put there");
                return Err(Error::corrupt("UPPR", 0, what));
            }
        }
        if graph.level(graph.top()).index_of(head.entry).is_none() {
            return Err(Error::corrupt("UPPR", 0, "the entry point is not on the highest level"));
        }
        Ok(levels)
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

    /// A section that is checked as it is read, as an array of numbers.
    fn large<T: bytemuck::Pod>(&self, tag: [u8; 4], name: &'static str) -> Result<&[T]> {
        numbers(self.file.unchecked_section(tag)?, name)
    }
}

fn numbers<'a, T: bytemuck::Pod>(bytes: &'a [u8], name: &'static str) -> Result<&'a [T]> {
    bytemuck::try_cast_slice(bytes).map_err(|why| Error::corrupt(name, 0, format!("{} bytes: {why}", bytes.len())))
}

fn params(head: &GraphHead) -> Params {
    Params { m: head.m as usize, m0: head.m0 as usize, ef_construction: head.ef_construction as usize, seed: head.seed }
}
