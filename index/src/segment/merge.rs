//! Makes one segment of several.
//!
//! The largest graph is kept: its nodes stay linked as they are, and the vectors of the others are added to it. All are
//! coded anew, because the scale of one segment may clip the vectors of another. Where the largest holds less than half of what there will be, or has lost more than a fifth
//! of its vectors, nothing is saved that way and everything is linked anew.

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::layout::NO_LINK;
use super::reader::{self, VectorSegment};
use super::writer::{self, BuildOptions, build_segment};
use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::hnsw::build::Base;
use crate::rows::{Rows, RowsView};

/// Makes a segment of the vectors of `segments` whose ids are in `keep`; of all, where it is `None`.
///
/// # Errors
/// [`Error::Empty`] when nothing is kept, [`Error::Mismatch`] when the segments are of different spaces,
/// [`Error::IdOrder`] when an id is in two of them, and as [`build_segment`].
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
    // Linking takes long, and of all this only a graph is read again.
    segments.iter().for_each(|segment| segment.file().let_go());
    options.check_cancelled()?;
    if rows.len() >= options.graph_from
        && let Some((at, base)) = largest_graph(segments, &order)?
    {
        segments[at].check_all()?;
        return add_to(base, at, &views, &order, &rows, identity, options);
    }
    build_segment(&rows, identity, options)
}

/// Where a merged vector comes from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    id: u32,
    segment: usize,
    position: usize,
}

/// What is kept, by id.
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

/// The segment whose graph is worth keeping, if there is one.
fn largest_graph<'a>(
    segments: &[&'a VectorSegment],
    order: &[Origin],
) -> Result<Option<(usize, reader::Walkable<'a>)>> {
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
    base: reader::Walkable<'_>,
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
