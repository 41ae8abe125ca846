//! Merges several segments into one.
//!
//! The graph of the largest segment is kept, and the vectors of the others are added to it. All vectors get new codes,
//! because the scale of one segment may clip the vectors of another. If the largest segment has less than half of the
//! merged vectors, or has lost more than a fifth of its own, keeping its graph saves nothing and a new graph is built.

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::layout::NO_LINK;
use super::reader::{self, VectorSegment};
use super::writer::{self, build_segment};
use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::hnsw::build::Base;
use crate::hnsw::params::BuildOptions;
use crate::rows::{Rows, RowsView};

/// Builds a segment from the vectors of `segments` whose ids are in `keep`, or from all if it is `None`.
///
/// # Errors
/// [`Error::Empty`] if `keep` keeps nothing, [`Error::Mismatch`] for segments of different spaces,
/// [`Error::IdOrder`] for an id in two segments, and the errors of [`build_segment`].
pub fn merge_segments(
    segments: &[&VectorSegment],
    keep: Option<&Bits>,
    identity: FileIdentity,
    options: &BuildOptions<'_>,
) -> Result<SegmentFileWriter> {
    let Some(spec) = segments.first().map(|segment| segment.spec()) else {
        return Err(Error::Empty);
    };
    if let Some(other) = segments.iter().find(|segment| segment.spec() != spec) {
        return Err(Error::Mismatch { expected: spec.to_string(), found: other.spec().to_string() });
    }
    let views: Vec<RowsView<'_>> = segments.iter().map(|segment| segment.rows()).collect::<Result<_>>()?;
    for (view, segment) in views.iter().zip(segments) {
        view.touch_ids(0, view.len());
        segment.damage()?;
    }
    let order = id_order(&views, keep)?;
    let mut rows = Rows::new(spec);
    for run in order.chunk_by(|a, b| a.segment == b.segment && a.position + 1 == b.position) {
        let (first, len) = (run[0], run.len());
        rows.append(views[first.segment].slice(first.position, first.position + len));
    }
    segments.iter().try_for_each(|segment| segment.damage())?;
    // Linking takes long and reads only the kept graph.
    segments.iter().for_each(|segment| segment.file().advise_dont_need());
    options.check_cancelled()?;
    if rows.len() >= options.graph_from
        && let Some((at, base)) = largest_graph(segments, &order)?
    {
        segments[at].check_all()?;
        return add_to(base, at, &views, &order, &rows, identity, options);
    }
    build_segment(&rows, identity, options)
}

/// The source of a merged vector.
#[derive(Clone, Copy, Debug)]
struct Origin {
    id: u32,
    segment: usize,
    position: usize,
}

/// The vectors that are kept, by id.
fn id_order(views: &[RowsView<'_>], keep: Option<&Bits>) -> Result<Vec<Origin>> {
    let mut order = Vec::new();
    for (segment, view) in views.iter().enumerate() {
        let ids = view.ids().iter().enumerate();
        let kept = ids.filter(|(_, id)| keep.is_none_or(|keep| keep.contains(**id)));
        order.extend(kept.map(|(position, id)| Origin { id: *id, segment, position }));
    }
    order.sort_unstable_by_key(|origin| origin.id);
    match order.windows(2).find(|pair| pair[0].id == pair[1].id) {
        Some(pair) => Err(Error::IdOrder { previous: pair[0].id, next: pair[1].id }),
        None => Ok(order),
    }
}

/// The segment whose graph is worth keeping, if any.
fn largest_graph<'a>(
    segments: &[&'a VectorSegment],
    order: &[Origin],
) -> Result<Option<(usize, reader::SegmentGraph<'a>)>> {
    let mut kept = vec![0usize; segments.len()];
    order.iter().for_each(|origin| kept[origin.segment] += 1);
    let Some((at, kept)) = kept.into_iter().enumerate().max_by_key(|(_, kept)| *kept) else {
        return Ok(None);
    };
    let worth = kept * 2 >= order.len() && kept * 5 >= segments[at].len() * 4;
    Ok(match segments[at].walkable()? {
        Some(walkable) if worth => Some((at, walkable)),
        _ => None,
    })
}

fn add_to(
    base: reader::SegmentGraph<'_>,
    at: usize,
    views: &[RowsView<'_>],
    order: &[Origin],
    rows: &Rows,
    identity: FileIdentity,
    options: &BuildOptions<'_>,
) -> Result<SegmentFileWriter> {
    let mut kept = vec![NO_LINK; views[at].len()];
    for (new, origin) in order.iter().enumerate().filter(|(_, origin)| origin.segment == at) {
        kept[origin.position] = new as u32;
    }
    let head = writer::head(rows)?;
    let old = Base { graph: base.graph, kept: &kept };
    let walkable = writer::link(rows, Some(&old), base.params, options)?;
    writer::write_graph(head, rows, identity, &walkable)
}
