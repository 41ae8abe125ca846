//! Merges several segments into one.
//!
//! The largest graph is kept with its codes, and the vectors of the other segments are added to it. All vectors get new
//! codes if one scale for all would be another by a quarter: it would clip or coarsen the new ones. A graph that lost
//! more than a fifth of its vectors is not worth keeping, and a new one is built.
//!
//! The new file is written section by section. Vectors and codes are copied into it first and from then on read through
//! a map of it ([`MergedFile`]), so they are never in anonymous memory. A segment with a graph gets no vectors if all
//! stand in the log with the same bytes ([`crate::logged`]).
//!
//! Cost: a vector of another segment is linked anew, which takes far longer than copying one of the kept graph.
//! Calibration is measured again when the number of vectors passes a power of two. Memory: [`LINK_BYTES`] by vector
//! with a graph, 40 bytes without one.

use std::path::Path;

use holotype_storage::log::Head as LogHead;
use holotype_storage::segment_file::FileIdentity;
use holotype_storage::vfs::Vfs;

use super::layout::{self, CodesHead, NO_LINK};
use super::merged_file::MergedFile;
use super::reader::VectorSegment;
use super::writer::{self, CODED_FROM, Extended, FLAT_SAMPLE};
use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::hnsw::calibrate::Coded;
use crate::hnsw::params::{BuildOptions, Params};
use crate::logged::{LoggedRows, LoggedVectors, Places};
use crate::quantize::{CodeErrors, Codes, CodingErrors, KnownCodes, Quantizer};
use crate::rows::{Rows, RowsView, VectorsView};
use crate::segment::id_set::IdSetBits;
use crate::segment::tail::TailView;
use crate::signs::Signer;
use crate::spec::{Encoding, Metric, VectorSpec};

/// The anonymous memory that linking takes by vector, with the default number of links: lists with room and a lock for
/// each while it links, the finished lists, what copying took before, and the place of the vector in the log.
pub const LINK_BYTES: u64 = 360;

/// Writes to `path` the segment of the vectors of `segments` whose ids are in `keep`, or of all if it is `None`. `made`
/// is the file's identity and the commit of the log it is made from. Returns the places of the vectors, if they stand
/// in the log, for [`VectorSegment::with_places`].
///
/// # Errors
/// [`Error::Empty`] if `keep` keeps nothing, [`Error::Mismatch`] for segments of different spaces,
/// [`Error::IdOrder`] for an id in two segments, errors of storage, and those of
/// [`build_segment`](super::build_segment).
pub fn merge_segments(
    segments: &[&VectorSegment],
    keep: Option<&Bits>,
    made: (FileIdentity, Option<LogHead>),
    (vfs, path): (&dyn Vfs, &Path),
    options: &BuildOptions<'_>,
) -> Result<Option<Places>> {
    let Some(spec) = segments.first().map(|segment| segment.spec()) else {
        return Err(Error::Empty);
    };
    if let Some(other) = segments.iter().find(|segment| segment.spec() != spec) {
        return Err(Error::Mismatch { expected: spec.to_string(), found: other.spec().to_string() });
    }
    let views: Vec<RowsView<'_>> = segments.iter().map(|segment| segment.rows(options.log)).collect::<Result<_>>()?;
    for (view, segment) in views.iter().zip(segments) {
        view.touch_ids(0, view.len());
        segment.damage()?;
    }
    let picked = Picked::of(spec, views, keep)?;
    let order = &picked.order;
    let is_graph = order.len() >= options.graph_from;
    let extended = if is_graph { largest_graph(segments, order) } else { None };
    let mut kept = extended.map_or(Vec::new(), |at| vec![NO_LINK; picked.views[at].len()]);
    for (new, origin) in order.iter().enumerate().filter(|(_, origin)| Some(origin.segment as usize) == extended) {
        kept[origin.position as usize] = new as u32;
    }
    let places = match options.log.filter(|_| is_graph && spec.encoding != Encoding::I8) {
        Some(log) => all_in(log, &picked.views, order),
        None => None,
    };
    let logged = options.log.zip(places.as_ref()).map(|(log, places)| LoggedRows::new(log, places, None));
    let form = match (is_graph, &logged) {
        (false, _) => Form::Flat,
        (true, None) => Form::Graph,
        (true, Some(_)) => Form::GraphOfLog,
    };
    let (file, members) = picked.begin(form, made, (vfs, path))?;
    drop(picked);
    segments.iter().try_for_each(|segment| segment.damage())?;
    // Linking takes long and reads only the kept graph.
    segments.iter().for_each(|segment| segment.file().advise_dont_need());
    options.check_cancelled()?;
    let mut base = None;
    if let Some(at) = extended {
        segments[at].check_all()?;
        base = segments[at].extended(&kept)?;
    }
    let parts = Parts { spec, logged, members, link: is_graph.then_some(options) };
    finish(file, base.as_ref(), parts)?;
    Ok(places)
}

/// Writes to `path` the vectors of a tail as a segment without a graph, as [`merge_segments`] does.
///
/// # Errors
/// [`Error::Empty`] for an empty tail, [`Error::TooMany`] with more than [`layout::MAX_COUNT`], errors of storage.
pub fn write_tail(
    tail: &TailView,
    made: (FileIdentity, Option<LogHead>),
    (vfs, path): (&dyn Vfs, &Path),
) -> Result<()> {
    let picked = Picked::of(tail.spec(), tail.rows().collect(), None)?;
    let (file, members) = picked.begin(Form::Flat, made, (vfs, path))?;
    finish(file, None, Parts { spec: tail.spec(), logged: None, members, link: None })
}

/// The parts of a new segment besides its ids.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Its vectors, and signs where they pay.
    Flat,
    /// Its vectors, and a graph.
    Graph,
    /// A graph of vectors that stand in the log.
    GraphOfLog,
}

/// The vectors of a new segment, in the order of their ids.
struct Picked<'a> {
    spec: VectorSpec,
    views: Vec<RowsView<'a>>,
    order: Vec<Origin>,
}

impl<'a> Picked<'a> {
    /// Those whose ids are in `keep`, or all.
    fn of(spec: VectorSpec, views: Vec<RowsView<'a>>, keep: Option<&Bits>) -> Result<Self> {
        let order = id_order(&views, keep)?;
        if order.is_empty() { Err(Error::Empty) } else { Ok(Self { spec, views, order }) }
    }

    fn decode(&self, at: usize, vector: &mut [f32]) {
        let Origin { segment, position, .. } = self.order[at];
        self.views[segment as usize].decode(position as usize, vector);
    }

    /// Begins the file with ids, vectors and signs; returns the ids as a set, if the file is to have one.
    fn begin<'v>(
        &self,
        form: Form,
        made: (FileIdentity, Option<LogHead>),
        at: (&'v dyn Vfs, &Path),
    ) -> Result<(MergedFile<'v>, Option<IdSetBits>)> {
        let ids: Vec<u32> = self.order.iter().map(|origin| origin.id).collect();
        let members = IdSetBits::of(&ids).filter(|_| form != Form::Flat);
        let decode = |at: usize, vector: &mut [f32]| self.decode(at, vector);
        let signer = if form == Form::Flat { Signer::train(self.spec, ids.len(), decode) } else { None };
        let content = Content { form, has_members: members.is_some(), has_signs: signer.is_some() };
        let mut file = MergedFile::create(at, made, content.of(self.spec, ids.len()))?;
        file.append(layout::IDS, &ids)?;
        if form != Form::GraphOfLog {
            copy_vectors(&mut file, &self.views, &self.order)?;
        }
        if let Some(signer) = &signer {
            let estimates = signer.encode_all(ids.len(), decode, |signs| file.append(layout::SIGNS, signs))?;
            file.append(layout::SIGN_ESTIMATES, &estimates)?;
        }
        Ok((file, members))
    }
}

/// The places of the vectors in the log, if it has all that are not read from it anyway, with the same bytes.
fn all_in(log: &dyn LoggedVectors, views: &[RowsView<'_>], order: &[Origin]) -> Option<Places> {
    let (mut places, mut logged) = (Places::with_capacity(order.len()), Vec::new());
    for origin in order {
        let (view, position) = (&views[origin.segment as usize], origin.position as usize);
        if let VectorsView::Logged(rows) = view.vectors() {
            places.push(rows.place(position));
            continue;
        }
        // A damaged vector is not there, and its segment is asked for damage later.
        let row = view.slice(position, position + 1).encoded()?;
        logged.resize(row.bytes.len(), 0);
        let place = log.find(origin.id, &mut logged)?;
        if logged != *row.bytes {
            return None;
        }
        places.push(Some(place));
    }
    Some(places)
}

/// The parts of a merged segment that not all have.
struct Content {
    form: Form,
    has_members: bool,
    has_signs: bool,
}

impl Content {
    /// The version of a segment of so many vectors, and the tags of its sections, in order.
    fn of(&self, spec: VectorSpec, count: usize) -> (u32, Vec<[u8; 4]>) {
        let (is_graph, is_logged) = (self.form != Form::Flat, self.form == Form::GraphOfLog);
        let is_coded = is_graph || count >= CODED_FROM;
        let all = [
            (layout::HEAD, true),
            (layout::IDS, true),
            (layout::VECTORS, !is_logged),
            (layout::SCALES, spec.encoding == Encoding::I8),
            (layout::SIGNS, self.has_signs),
            (layout::SIGN_ESTIMATES, self.has_signs),
            (layout::CODES, is_coded),
            (layout::CODE_ERRORS, is_coded),
            (layout::MEAN, is_coded && spec.metric == Metric::L2),
            (layout::LINKS, is_graph),
            (layout::UPPER, is_graph),
            (layout::TWINS, is_graph),
            (layout::MEMBERS, self.has_members),
            (layout::SUMS, is_graph),
            (layout::CALIBRATION, is_graph),
        ];
        let version = if is_logged { layout::VERSION_LOGGED } else { layout::VERSION };
        (version, all.into_iter().filter(|(_, is_there)| *is_there).map(|(tag, _)| tag).collect())
    }
}

/// Copies the vectors, and their scales where there are any.
fn copy_vectors(file: &mut MergedFile<'_>, views: &[RowsView<'_>], order: &[Origin]) -> Result<()> {
    let runs = || order.chunk_by(|a, b| a.segment == b.segment && a.position + 1 == b.position);
    let of_run = |run: &[Origin]| {
        let first = run[0].position as usize;
        views[run[0].segment as usize].slice(first, first + run.len())
    };
    for run in runs() {
        let rows = of_run(run);
        if let VectorsView::Logged(_) = rows.vectors() {
            copy_logged(file, &rows)?;
            continue;
        }
        // Damage is copied, too: the caller asks the segments for damage before the file gets its name.
        let _ = rows.encoded();
        file.append(layout::VECTORS, writer::vector_bytes(&rows))?;
    }
    for run in runs() {
        if let VectorsView::I8 { scales, .. } = of_run(run).vectors() {
            file.append(layout::SCALES, scales)?;
        }
    }
    Ok(())
}

/// Copies vectors that stand in the log, a few at a time.
fn copy_logged(file: &mut MergedFile<'_>, rows: &RowsView<'_>) -> Result<()> {
    const AT_ONCE: usize = 256;
    for start in (0..rows.len()).step_by(AT_ONCE) {
        let mut piece = Rows::new(rows.spec());
        piece.append(rows.slice(start, rows.len().min(start + AT_ONCE)));
        file.append(layout::VECTORS, writer::vector_bytes(&piece.view()))?;
    }
    Ok(())
}

/// A merged segment but for its vectors and codes.
struct Parts<'a> {
    spec: VectorSpec,
    /// The vectors, if they stand in the log and not in the file.
    logged: Option<LoggedRows<'a>>,
    members: Option<IdSetBits>,
    /// The options of the graph; none for a segment without.
    link: Option<&'a BuildOptions<'a>>,
}

/// Adds codes, and a graph where one is due, to a file that has ids and vectors. `base` is the graph to extend.
fn finish(mut file: MergedFile<'_>, base: Option<&(Extended<'_>, Params)>, parts: Parts<'_>) -> Result<()> {
    let Parts { spec, logged, members, link } = parts;
    let written = file.rows(spec, logged)?;
    let rows = written.view()?;
    let extended = base.map(|(extended, _)| extended);
    let mut head = writer::head(&rows, extended.map_or_else(|| rows.longest(), |known| known.longest(&rows)))?;
    if link.is_some() || rows.len() >= CODED_FROM {
        let sample = if link.is_some() { None } else { Some(FLAT_SAMPLE) };
        let (quantizer, errors) = write_codes(&mut file, &rows, extended, sample)?;
        head.codes = Some(CodesHead { scale: quantizer.scale(), error: errors.0 });
        if let Some(options) = link {
            let params = base.map_or_else(|| options.params(), |(_, params)| Ok(*params))?;
            let codes = file.written(layout::CODES)?;
            let coded = Coded {
                rows,
                quantizer: &quantizer,
                codes: Codes::new(spec.dim, spec.metric, codes.numbers("CODE")?),
                errors: CodeErrors { largest: errors.0, parts: &errors.1, guard: None },
                longest: head.longest,
            };
            let (graph, calibration) = writer::link(&coded, extended, params, options)?;
            head.graph = Some(writer::graph_head(&params, &graph));
            let rows = written.view()?;
            let sums = writer::block_sums([
                writer::vector_bytes(&rows),
                codes.numbers("CODE")?,
                bytemuck::cast_slice(&graph.links),
                bytemuck::cast_slice(rows.ids()),
                &errors.1,
                bytemuck::cast_slice(&graph.upper),
            ]);
            file.append(layout::LINKS, &graph.links)?;
            file.append(layout::UPPER, &graph.upper)?;
            file.append(layout::TWINS, &graph.twins)?;
            if let Some(members) = members {
                file.append(layout::MEMBERS, &members.encode())?;
            }
            file.append(layout::SUMS, &sums)?;
            file.append(layout::CALIBRATION, &writer::calibration_bytes(&calibration))?;
        }
    }
    // The head lies within what is mapped.
    drop(written);
    file.finish(&head.encode())
}

/// Writes the codes of `rows` by the quantizer of `extended`, while it fits, or one trained on a sample.
fn write_codes(
    file: &mut MergedFile<'_>,
    rows: &RowsView<'_>,
    extended: Option<&Extended<'_>>,
    sample: Option<usize>,
) -> Result<(Quantizer, CodingErrors)> {
    let trained = sample.map_or_else(|| Quantizer::train(rows), |size| Quantizer::train_on(rows, size));
    let known = extended.filter(|extended| extended.quantizer.serves(&trained));
    let codes = known.map(|known| KnownCodes { codes: known.codes, errors: known.errors, positions: known.base.kept });
    let quantizer = known.map_or(trained, |known| known.quantizer.clone());
    let errors = quantizer.encode_pieces(rows, codes.as_ref(), |codes| file.append(layout::CODES, codes))?;
    file.append(layout::CODE_ERRORS, &errors.1)?;
    if !quantizer.mean().is_empty() {
        file.append(layout::MEAN, quantizer.mean())?;
    }
    Ok((quantizer, errors))
}

/// The source of a merged vector.
#[derive(Clone, Copy, Debug)]
struct Origin {
    id: u32,
    segment: u32,
    position: u32,
}

/// The vectors that are kept, by id.
fn id_order(views: &[RowsView<'_>], keep: Option<&Bits>) -> Result<Vec<Origin>> {
    let mut order = Vec::new();
    for (segment, view) in (0..).zip(views) {
        let ids = (0..).zip(view.ids());
        let kept = ids.filter(|(_, id)| keep.is_none_or(|keep| keep.contains(**id)));
        order.extend(kept.map(|(position, id)| Origin { id: *id, segment, position }));
    }
    order.sort_unstable_by_key(|origin| origin.id);
    match order.windows(2).find(|pair| pair[0].id == pair[1].id) {
        Some(pair) => Err(Error::IdOrder { previous: pair[0].id, next: pair[1].id }),
        None => Ok(order),
    }
}

/// The segment with the largest graph that is worth keeping, if any.
fn largest_graph(segments: &[&VectorSegment], order: &[Origin]) -> Option<usize> {
    let mut kept = vec![0usize; segments.len()];
    order.iter().for_each(|origin| kept[origin.segment as usize] += 1);
    let graphs = kept.into_iter().enumerate().filter(|(at, _)| segments[*at].has_graph());
    let (at, kept) = graphs.max_by_key(|(_, kept)| *kept)?;
    (kept * 5 >= segments[at].len() * 4).then_some(at)
}
