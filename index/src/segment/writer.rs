//! Builds a `.vseg` file from exact vectors in memory.

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::guard;
use super::layout::{self, CodesHead, GraphHead, Head};
use crate::error::{Error, Result};
use crate::hnsw::build::{self, Base, HoldOut, Nodes};
use crate::hnsw::calibrate::{self, Coded, Measured};
use crate::hnsw::graph::{Graph, GraphView};
use crate::hnsw::neighbours::NeighbourSource;
use crate::hnsw::params::{BuildOptions, Params};
use crate::hnsw::twins::Twins;
use crate::quantize::{CodeErrors, Codes, CodingErrors, Quantizer};
use crate::rows::{Rows, RowsView, VectorsView};
use crate::segment::id_set::IdSetBits;
use crate::signs::{Lanes, Signer};

/// A segment of fewer vectors has no scan codes: encoding the query would cost more than they save.
pub(super) const CODED_FROM: usize = 256;

/// Vectors that the scale of a segment without a graph is learnt from. Its codes only rule vectors out, and soon a
/// graph replaces it.
pub(super) const FLAT_SAMPLE: usize = 256;

/// Builds a segment from `rows`.
///
/// # Errors
/// [`Error::Empty`], [`Error::TooMany`] with more than [`layout::MAX_COUNT`], [`Error::Links`], [`Error::Cancelled`].
pub fn build_segment(rows: Rows, identity: FileIdentity, options: &BuildOptions<'_>) -> Result<SegmentFileWriter> {
    let view = rows.view();
    let head = head(&view, view.longest())?;
    if rows.len() < options.graph_from {
        return Ok(write_flat(head, rows, identity));
    }
    let params = options.params()?;
    let quantizer = Quantizer::train(&view);
    let (codes, errors) = quantizer.encode_rows(&view);
    let coded = Coded {
        rows: view,
        quantizer: &quantizer,
        codes: Codes::new(view.spec().dim, view.spec().metric, &codes),
        errors: CodeErrors { largest: errors.0, parts: &errors.1, guard: None },
        longest: head.longest,
    };
    let (graph, calibration) = link(&coded, None, params, options)?;
    let built = BuiltGraph { params, quantizer, codes, errors, graph, calibration };
    Ok(write_graph(head, rows, identity, built))
}

/// The graph, codes and calibration of a segment.
struct BuiltGraph {
    params: Params,
    quantizer: Quantizer,
    codes: Vec<i8>,
    errors: CodingErrors,
    graph: Graph,
    calibration: Vec<Measured>,
}

/// A segment whose graph and codes are kept in a larger one.
pub(super) struct Extended<'a> {
    pub(super) base: Base<'a>,
    pub(super) quantizer: &'a Quantizer,
    pub(super) codes: Codes<'a>,
    pub(super) errors: CodeErrors<'a>,
    pub(super) calibration: &'a [Measured],
    /// No vector of it is longer.
    pub(super) longest: f32,
}

impl Extended<'_> {
    /// The calibration, if it holds for `count` vectors: until a graph has doubled, the same ef finds nearly as much.
    /// So calibrating costs as much as so many scans of each vector, however often a graph is extended.
    fn calibration_for(&self, count: usize) -> Option<&[Measured]> {
        let before = self.base.kept.len();
        (!self.calibration.is_empty() && before.checked_ilog2() == count.checked_ilog2()).then_some(self.calibration)
    }

    /// The length that no vector of `rows` exceeds, where this segment's stand among them.
    pub(super) fn longest(&self, rows: &RowsView<'_>) -> f32 {
        let mut is_old = vec![false; rows.len()];
        self.base.kept.iter().filter(|at| **at != layout::NO_LINK).for_each(|at| is_old[*at as usize] = true);
        let new = (0..rows.len()).filter(|at| !is_old[*at]);
        new.fold(self.longest, |longest, at| longest.max(rows.slice(at, at + 1).longest()))
    }
}

/// Links coded vectors, starting from the graph of `extended` if given, and calibrates ef against recall.
pub(super) fn link(
    coded: &Coded<'_>,
    extended: Option<&Extended<'_>>,
    params: Params,
    options: &BuildOptions<'_>,
) -> Result<(Graph, Vec<Measured>)> {
    let ids = coded.rows.ids();
    let neighbours = NeighbourSource::of(*coded, options.scorer, 2 * params.m0);
    let twins = Twins::find(&coded.codes, &coded.rows);
    let nodes = Nodes { codes: coded.codes, ids, twins: &twins, neighbours: neighbours.as_ref() };
    let kept = extended.and_then(|extended| extended.calibration_for(ids.len()));
    let positions = if kept.is_none() { calibrate::held_back(ids, &params, &twins) } else { Vec::new() };
    let mut calibration = kept.unwrap_or_default().to_vec();
    let mut without = |graph: &GraphView<'_>| {
        calibration = calibrate::measure(coded, graph, &positions, options)?;
        Ok(())
    };
    let held = kept.is_none().then_some(HoldOut { positions: &positions, without: &mut without });
    let graph = match extended {
        None => build::build(&nodes, params, held, options)?,
        Some(extended) => build::extend(&nodes, &extended.base, params, held, options)?,
    };
    Ok((graph, calibration))
}

/// The header of a segment of `rows`, none longer than `longest`, without a graph.
pub(super) fn head(rows: &RowsView<'_>, longest: f32) -> Result<Head> {
    let (Some(first_id), Some(last_id)) = (rows.ids().first(), rows.ids().last()) else {
        return Err(Error::Empty);
    };
    if rows.len() > layout::MAX_COUNT {
        return Err(Error::TooMany { found: rows.len(), max: layout::MAX_COUNT });
    }
    let (count, first_id, last_id) = (rows.len() as u32, *first_id, *last_id);
    let is_logged = matches!(rows.vectors(), VectorsView::Logged(_));
    Ok(Head { spec: rows.spec(), is_logged, count, first_id, last_id, longest, codes: None, graph: None })
}

/// The header's fields of a graph.
pub(super) fn graph_head(params: &Params, graph: &Graph) -> GraphHead {
    GraphHead {
        m: params.m as u32,
        m0: params.m0 as u32,
        ef_construction: params.ef_construction as u32,
        levels: graph.view().top() as u32,
        entry: graph.entry,
        seed: params.seed,
    }
}

/// The section `CALB`.
pub(super) fn calibration_bytes(calibration: &[Measured]) -> Vec<u8> {
    let pairs = calibration.iter().flat_map(|measured| [measured.ef, measured.recall.to_bits()]);
    pairs.flat_map(u32::to_le_bytes).collect()
}

/// The section `SUMS` for these sections, which are those that a reader verifies by block, in its order.
pub(super) fn block_sums(sections: [&[u8]; 6]) -> Vec<u8> {
    sections.into_iter().flat_map(guard::sums).flat_map(u32::to_le_bytes).collect()
}

/// All sections of a segment with a graph.
fn write_graph(mut head: Head, rows: Rows, identity: FileIdentity, built: BuiltGraph) -> SegmentFileWriter {
    let BuiltGraph { params, quantizer, codes, errors: (error, errors), graph, calibration } = built;
    head.codes = Some(CodesHead { scale: quantizer.scale(), error });
    head.graph = Some(graph_head(&params, &graph));
    let sums = block_sums([
        vector_bytes(&rows.view()),
        bytemuck::cast_slice(&codes),
        bytemuck::cast_slice(&graph.links),
        bytemuck::cast_slice(rows.ids()),
        &errors,
        bytemuck::cast_slice(&graph.upper),
    ]);
    let members = IdSetBits::of(rows.ids());
    let mut file = write_rows(&head, rows, identity);
    write_codes(&mut file, &quantizer, codes, errors);
    file.numbers(layout::LINKS, graph.links);
    file.numbers(layout::UPPER, graph.upper);
    file.numbers(layout::TWINS, graph.twins);
    if let Some(members) = members {
        file.section(layout::MEMBERS, members.encode());
    }
    file.section(layout::SUMS, sums);
    file.section(layout::CALIBRATION, calibration_bytes(&calibration));
    file
}

/// All sections of a segment without a graph, with scan codes where there are enough vectors.
fn write_flat(mut head: Head, rows: Rows, identity: FileIdentity) -> SegmentFileWriter {
    if rows.len() < CODED_FROM {
        return write_rows(&head, rows, identity);
    }
    let view = rows.view();
    let quantizer = Quantizer::train_on(&view, FLAT_SAMPLE);
    let (codes, (error, errors)) = quantizer.encode_rows(&view);
    head.codes = Some(CodesHead { scale: quantizer.scale(), error });
    let signs = signs(&view);
    let mut file = write_rows(&head, rows, identity);
    if let Some((signs, estimates)) = signs {
        file.numbers(layout::SIGNS, signs);
        file.numbers(layout::SIGN_ESTIMATES, estimates);
    }
    write_codes(&mut file, &quantizer, codes, errors);
    file
}

/// The sections of signs, if they pay.
fn signs(rows: &RowsView<'_>) -> Option<(Vec<Lanes>, Vec<f32>)> {
    let signer = Signer::train(rows.spec(), rows.len(), |at, vector| rows.decode(at, vector))?;
    let mut signs = Vec::new();
    let append = |piece: &[Lanes]| {
        signs.extend_from_slice(piece);
        Ok(())
    };
    let estimates = signer.encode_all(rows.len(), |at, vector| rows.decode(at, vector), append).ok()?;
    Some((signs, estimates))
}

/// The sections of scan codes.
fn write_codes(file: &mut SegmentFileWriter, quantizer: &Quantizer, codes: Vec<i8>, errors: Vec<u8>) {
    file.numbers(layout::CODES, codes);
    file.section(layout::CODE_ERRORS, errors);
    if !quantizer.mean().is_empty() {
        file.numbers(layout::MEAN, quantizer.mean().to_vec());
    }
}

/// The sections common to all segments.
fn write_rows(head: &Head, rows: Rows, identity: FileIdentity) -> SegmentFileWriter {
    let mut file = SegmentFileWriter::new(layout::KIND, layout::VERSION, identity);
    file.section(layout::HEAD, head.encode());
    file.numbers(layout::IDS, rows.ids().to_vec());
    rows.write_to(&mut file, layout::VECTORS, layout::SCALES);
    file
}

/// The vectors as they stand in the file; none if they stand in the log.
pub(super) fn vector_bytes<'a>(rows: &RowsView<'a>) -> &'a [u8] {
    match rows.vectors() {
        VectorsView::F32(all) => bytemuck::cast_slice(all),
        VectorsView::F16(all) => bytemuck::cast_slice(all),
        VectorsView::I8 { codes, .. } => bytemuck::cast_slice(codes),
        VectorsView::Logged(_) => &[],
    }
}
