//! Makes a `.vseg` of exact vectors.

use std::sync::atomic::{AtomicBool, Ordering};

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::layout::{self, Head};
use crate::error::{Error, Result};
use crate::rows::{Rows, VectorsView};

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
        Self {
            m: 16,
            ef_construction: 200,
            threads: 1,
            seed: 0,
            graph_from: 2048,
            progress: None,
            cancel: None,
        }
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
/// [`Error::TooMany`] when there are none or more than [`layout::MAX_COUNT`], [`Error::Cancelled`].
pub fn build_segment(
    rows: &Rows,
    identity: FileIdentity,
    options: &BuildOptions<'_>,
) -> Result<SegmentFileWriter> {
    options.check_cancelled()?;
    let (Some(first_id), Some(last_id)) = (rows.ids().first(), rows.ids().last()) else {
        return Err(Error::Empty);
    };
    if rows.len() > layout::MAX_COUNT {
        return Err(Error::TooMany {
            found: rows.len(),
            max: layout::MAX_COUNT,
        });
    }
    let head = Head {
        spec: rows.spec(),
        count: rows.len() as u32,
        first_id: *first_id,
        last_id: *last_id,
        graph: None,
    };
    Ok(write_rows(&head, rows, identity))
}

/// The sections that every segment has.
fn write_rows(head: &Head, rows: &Rows, identity: FileIdentity) -> SegmentFileWriter {
    let mut file = SegmentFileWriter::new(layout::KIND, layout::VERSION, identity);
    file.section(layout::HEAD, head.encode());
    file.section(layout::IDS, bytemuck::cast_slice(rows.ids()).to_vec());
    match rows.view().vectors() {
        VectorsView::F32(all) => file.section(layout::VECTORS, bytemuck::cast_slice(all).to_vec()),
        VectorsView::F16(all) => file.section(layout::VECTORS, bytemuck::cast_slice(all).to_vec()),
        VectorsView::I8 { codes, scales } => {
            file.section(layout::VECTORS, bytemuck::cast_slice(codes).to_vec());
            file.section(layout::SCALES, bytemuck::cast_slice(scales).to_vec());
        }
    }
    file
}
