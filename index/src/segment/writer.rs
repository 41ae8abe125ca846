//! Builds a `.vseg` file from exact vectors.

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::guard;
use super::layout::{self, CodesHead, GraphHead, Head};
use crate::error::{Error, Result};
use crate::hnsw::build::{self, Base, HoldOut};
use crate::hnsw::calibrate::{self, Coded, Measured};
use crate::hnsw::graph::{Graph, GraphView};
use crate::hnsw::params::{BuildOptions, Params};
use crate::quantize::{CodeErrors, Codes, Quantizer};
use crate::rows::{Rows, RowsView, VectorsView};
use crate::segment::id_set::IdSetBits;

/// A segment of fewer vectors has no scan codes: encoding the query would cost more than they save.
const CODED_FROM: usize = 256;

/// Builds a segment from `rows`.
///
/// # Errors
/// [`Error::Empty`], [`Error::TooMany`] with more than [`layout::MAX_COUNT`], [`Error::Links`], [`Error::Cancelled`].
pub fn build_segment(rows: &Rows, identity: FileIdentity, options: &BuildOptions<'_>) -> Result<SegmentFileWriter> {
    let head = head(rows)?;
    if rows.len() < options.graph_from {
        return Ok(write_flat(head, rows, identity));
    }
    write_graph(head, rows, identity, &link(rows, None, options.params()?, options)?)
}

/// The graph, codes and calibration of a segment.
pub(super) struct BuiltGraph {
    pub(super) params: Params,
    pub(super) quantizer: Quantizer,
    pub(super) codes: Vec<i8>,
    /// The largest quantisation error, and each vector's error as a fraction of it.
    pub(super) errors: (f32, Vec<u8>),
    pub(super) graph: Graph,
    pub(super) calibration: Vec<Measured>,
}

/// Encodes and links `rows`, starting from the graph `base` if given, and calibrates ef against recall.
pub(super) fn link(
    rows: &Rows,
    base: Option<&Base<'_>>,
    params: Params,
    options: &BuildOptions<'_>,
) -> Result<BuiltGraph> {
    let (spec, view) = (rows.spec(), rows.view());
    let quantizer = Quantizer::train(&view);
    let codes = quantizer.encode_rows(&view);
    let errors = quantizer.errors(&view, &codes);
    let coded = Codes::new(spec.dim, spec.metric, &codes);
    let of_codes = CodeErrors { largest: errors.0, parts: &errors.1, guard: None };
    let asked = Coded { rows: view, quantizer: &quantizer, codes: coded, errors: of_codes, longest: view.longest() };
    let positions = calibrate::held_back(rows.ids(), &params);
    let mut calibration = Vec::new();
    let mut without = |graph: &GraphView<'_>| {
        calibration = calibrate::measure(&asked, graph, &positions, options)?;
        Ok(())
    };
    let held = Some(HoldOut { positions: &positions, without: &mut without });
    let graph = match base {
        None => build::build(coded, rows.ids(), params, held, options)?,
        Some(base) => build::extend(coded, rows.ids(), base, params, held, options)?,
    };
    Ok(BuiltGraph { params, quantizer, codes, errors, graph, calibration })
}

/// The header of a segment of `rows`, without a graph.
pub(super) fn head(rows: &Rows) -> Result<Head> {
    let (Some(first_id), Some(last_id)) = (rows.ids().first(), rows.ids().last()) else {
        return Err(Error::Empty);
    };
    if rows.len() > layout::MAX_COUNT {
        return Err(Error::TooMany { found: rows.len(), max: layout::MAX_COUNT });
    }
    let longest = rows.view().longest();
    let (count, first_id, last_id) = (rows.len() as u32, *first_id, *last_id);
    Ok(Head { spec: rows.spec(), count, first_id, last_id, longest, codes: None, graph: None })
}

/// All sections of a segment with a graph.
pub(super) fn write_graph(
    mut head: Head,
    rows: &Rows,
    identity: FileIdentity,
    walkable: &BuiltGraph,
) -> Result<SegmentFileWriter> {
    let BuiltGraph { params, quantizer, codes, errors: (error, errors), graph, calibration } = walkable;
    head.codes = Some(CodesHead { scale: quantizer.scale(), error: *error });
    head.graph = Some(GraphHead {
        m: params.m as u32,
        m0: params.m0 as u32,
        ef_construction: params.ef_construction as u32,
        levels: graph.view().top() as u32,
        entry: graph.entry,
        seed: params.seed,
    });
    let mut file = write_rows(&head, rows, identity);
    write_codes(&mut file, quantizer, codes, errors);
    file.section(layout::LINKS, bytemuck::cast_slice(&graph.links).to_vec());
    file.section(layout::UPPER, bytemuck::cast_slice(&graph.upper).to_vec());
    if let Some(members) = IdSetBits::of(rows.ids()) {
        file.section(layout::MEMBERS, members.encode());
    }
    let sections = [
        vector_bytes(&rows.view()),
        bytemuck::cast_slice(codes),
        bytemuck::cast_slice(&graph.links),
        bytemuck::cast_slice(rows.ids()),
        errors,
        bytemuck::cast_slice(&graph.upper),
    ];
    let sums = sections.into_iter().flat_map(guard::sums).flat_map(u32::to_le_bytes).collect();
    file.section(layout::SUMS, sums);
    let pairs = calibration.iter();
    let pairs = pairs.flat_map(|measured| [measured.ef, measured.recall.to_bits()]);
    file.section(layout::CALIBRATION, pairs.flat_map(u32::to_le_bytes).collect());
    Ok(file)
}

/// All sections of a segment without a graph, with scan codes where there are enough vectors.
fn write_flat(mut head: Head, rows: &Rows, identity: FileIdentity) -> SegmentFileWriter {
    if rows.len() < CODED_FROM {
        return write_rows(&head, rows, identity);
    }
    let view = rows.view();
    let quantizer = Quantizer::train(&view);
    let codes = quantizer.encode_rows(&view);
    let (error, errors) = quantizer.errors(&view, &codes);
    head.codes = Some(CodesHead { scale: quantizer.scale(), error });
    let mut file = write_rows(&head, rows, identity);
    write_codes(&mut file, &quantizer, &codes, &errors);
    file
}

/// The sections of scan codes.
fn write_codes(file: &mut SegmentFileWriter, quantizer: &Quantizer, codes: &[i8], errors: &[u8]) {
    file.section(layout::CODES, bytemuck::cast_slice(codes).to_vec());
    file.section(layout::CODE_ERRORS, errors.to_vec());
    if !quantizer.mean().is_empty() {
        file.section(layout::MEAN, bytemuck::cast_slice(quantizer.mean()).to_vec());
    }
}

/// The sections common to all segments.
fn write_rows(head: &Head, rows: &Rows, identity: FileIdentity) -> SegmentFileWriter {
    let mut file = SegmentFileWriter::new(layout::KIND, layout::VERSION, identity);
    file.section(layout::HEAD, head.encode());
    file.section(layout::IDS, bytemuck::cast_slice(rows.ids()).to_vec());
    file.section(layout::VECTORS, vector_bytes(&rows.view()).to_vec());
    if let VectorsView::I8 { scales, .. } = rows.view().vectors() {
        file.section(layout::SCALES, bytemuck::cast_slice(scales).to_vec());
    }
    file
}

fn vector_bytes<'a>(rows: &RowsView<'a>) -> &'a [u8] {
    match rows.vectors() {
        VectorsView::F32(all) => bytemuck::cast_slice(all),
        VectorsView::F16(all) => bytemuck::cast_slice(all),
        VectorsView::I8 { codes, .. } => bytemuck::cast_slice(codes),
    }
}
