//! Merges several segments into one.
//!
//! The largest graph is kept with its codes, and the vectors of the other segments are added to it. All vectors get new
//! codes if one scale for all would be another by a quarter: it would clip or coarsen the new ones. A graph that lost
//! more than a fifth of its vectors is not worth keeping, and a new one is built.
//!
//! Cost: a vector of another segment is linked anew, which takes far longer than copying one of the kept graph.
//! Calibration is measured again when the number of vectors passes a power of two.

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::layout::NO_LINK;
use super::reader::VectorSegment;
use super::writer::{self, build_owned};
use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::hnsw::params::BuildOptions;
use crate::rows::{Rows, RowsView};

/// Builds a segment from the vectors of `segments` whose ids are in `keep`, or from all if it is `None`.
///
/// # Errors
/// [`Error::Empty`] if `keep` keeps nothing, [`Error::Mismatch`] for segments of different spaces,
/// [`Error::IdOrder`] for an id in two segments, and the errors of [`build_segment`](super::build_segment).
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
        && let Some(at) = largest_graph(segments, &order)
    {
        segments[at].check_all()?;
        let mut kept = vec![NO_LINK; views[at].len()];
        for (new, origin) in order.iter().enumerate().filter(|(_, origin)| origin.segment == at) {
            kept[origin.position] = new as u32;
        }
        if let Some((extended, params)) = segments[at].extended(&kept)? {
            let head = writer::head(&rows, extended.longest(&rows.view()))?;
            let walkable = writer::link(&rows, Some(&extended), params, head.longest, options)?;
            return Ok(writer::write_graph(head, rows, identity, walkable));
        }
    }
    build_owned(rows, identity, options)
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

/// The segment with the largest graph that is worth keeping, if any.
fn largest_graph(segments: &[&VectorSegment], order: &[Origin]) -> Option<usize> {
    let mut kept = vec![0usize; segments.len()];
    order.iter().for_each(|origin| kept[origin.segment] += 1);
    let graphs = kept.into_iter().enumerate().filter(|(at, _)| segments[*at].has_graph());
    let (at, kept) = graphs.max_by_key(|(_, kept)| *kept)?;
    (kept * 5 >= segments[at].len() * 4).then_some(at)
}
