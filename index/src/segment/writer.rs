//! Makes a `.vseg` of exact vectors.

use std::sync::atomic::{AtomicBool, Ordering};

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::guard;
use super::layout::{self, CodesHead, GraphHead, Head};
use crate::error::{Error, Result};
use crate::hnsw::build::{self, Base, HeldBack};
use crate::hnsw::calibrate::{self, Coded, Measured};
use crate::hnsw::filter::MemberWords;
use crate::hnsw::graph::{Graph, GraphView};
use crate::hnsw::params::Params;
use crate::quantize::{CodeErrors, Codes, Quantizer};
use crate::rows::{Rows, RowsView, VectorsView};

/// A segment of fewer vectors has no scan codes: coding the query would cost more than they save.
const CODED_FROM: usize = 256;

/// How far a build or a merge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Vectors linked so far.
    pub done: usize,
    /// Vectors to link.
    pub total: usize,
}

/// How a segment is built.
#[derive(Clone, Copy)]
pub struct BuildOptions<'a> {
    /// Links a node above level 0; twice as many at level 0.
    pub m: usize,
    /// How many candidates a node's links are selected from.
    pub ef_construction: usize,
    /// Threads; with one, equal input gives equal bytes.
    pub threads: usize,
    /// Where the levels of the nodes come from.
    pub seed: u64,
    /// A segment of fewer vectors gets no graph and is scanned.
    pub graph_from: usize,
    /// Called now and then, from any of the threads.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Set it, and the build ends with [`Error::Cancelled`].
    pub cancel: Option<&'a AtomicBool>,
}

impl Default for BuildOptions<'_> {
    fn default() -> Self {
        Self { m: 16, ef_construction: 200, threads: 1, seed: 0, graph_from: 2048, progress: None, cancel: None }
    }
}

impl std::fmt::Debug for BuildOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuildOptions")
            .field("m", &self.m)
            .field("ef_construction", &self.ef_construction)
            .field("threads", &self.threads)
            .field("seed", &self.seed)
            .field("graph_from", &self.graph_from)
            .finish_non_exhaustive()
    }
}

impl BuildOptions<'_> {
    /// The shape of the graph that these options ask for.
    pub(crate) fn params(&self) -> Result<Params> {
        let (m, m0) = (self.m, self.m.saturating_mul(2));
        if m < 2 || m0 > layout::MAX_LINKS {
            return Err(Error::Links { m, max: layout::MAX_LINKS / 2 });
        }
        Ok(Params { m, m0, ef_construction: self.ef_construction.max(m0), seed: self.seed })
    }

    /// Whether the caller has asked to stop.
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        match self.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

/// Makes a segment of `rows`.
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

/// What a segment with a graph has besides its vectors.
pub(super) struct Walkable {
    pub(super) params: Params,
    pub(super) quantizer: Quantizer,
    pub(super) codes: Vec<i8>,
    /// How far codes are from their vectors at most, and each in parts of that.
    pub(super) errors: (f32, Vec<u8>),
    pub(super) graph: Graph,
    pub(super) calibration: Vec<Measured>,
}

/// Codes and links `rows`, from `base` on where there is one, and measures which ef gives which recall.
pub(super) fn link(
    rows: &Rows,
    base: Option<&Base<'_>>,
    params: Params,
    options: &BuildOptions<'_>,
) -> Result<Walkable> {
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
    let held = Some(HeldBack { positions: &positions, without: &mut without });
    let graph = match base {
        None => build::build(coded, rows.ids(), params, held, options)?,
        Some(base) => build::extend(coded, rows.ids(), base, params, held, options)?,
    };
    Ok(Walkable { params, quantizer, codes, errors, graph, calibration })
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
    walkable: &Walkable,
) -> Result<SegmentFileWriter> {
    let Walkable { params, quantizer, codes, errors: (error, errors), graph, calibration } = walkable;
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
    if let Some(members) = MemberWords::of(rows.ids()) {
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

/// The sections that every segment has.
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
