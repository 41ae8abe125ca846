//! Which segments of a layer merge, and when. Pure arithmetic on their sizes.
//!
//! **Vectors.** A checkpoint writes a *flat* segment: vectors and scan codes, no graph. When the flat segments together
//! are large enough, they are linked into the graph before them; while they are not, a search scans them. Linking costs
//! far more than copying a vector of the kept graph, so a graph is extended, and copied as a whole, for a sixteenth of
//! its size, and at most for [`LINK_MOST`] vectors. A graph that is larger than sixteen times that is left alone:
//! another grows beside it, until it has a sixteenth of its size, and is then linked into it.
//!
//! With F vectors linked at a time, a database of n vectors links each vector once while n <= 16 F, and at most once
//! more for each further factor of 16: once until 262,144, twice until 4,194,304. Extending a graph in steps of a
//! sixteenth copies each vector of it 17 times in all, counted at the end of its growth, in larger steps less often.
//!
//! A segment is never larger than what can be linked within `memory_limit`: beside one that is full a new one grows.
//!
//! **Words**, and flat segments while they are not linked. Segments fall into tiers by size, a factor of 4 apart. Four
//! of a tier become one of the next: each document is written once in each tier, log4(n / 1024) times.

use std::ops::Range;

/// A layer without any graph gets one from this many vectors on: it is searched exactly until scans become slow.
const FIRST_GRAPH: usize = 2048;

/// A graph is extended by this share of its size at least.
const EXTENDED_BY: usize = 16;

/// Flat segments of this many vectors are linked, however large the graph is: more would make scans slow.
const LINK_MOST: usize = 16 << 10;

/// About as many vectors are linked by one merge, so that it ends in a few seconds.
pub(crate) const LINKED_AT_ONCE: usize = 32 << 10;
/// The same where other processes wait for the end of a merge.
pub(crate) const LINKED_IN_TURNS: usize = 4 << 10;

/// So many segments of a tier become one of the next.
const AT_ONCE: usize = 4;

/// Segments of fewer vectors or documents are of the lowest tier.
const LOWEST_FLAT_TIER: usize = 256;
const LOWEST_WORD_TIER: usize = 1024;

/// The size of a vector segment, and whether a merge may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSize {
    pub(crate) count: usize,
    pub(crate) graph: bool,
    /// Another merge uses it, or it is damaged.
    pub(crate) taken: bool,
}

/// Bounds of merges of vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeBounds {
    /// About as many vectors are linked by one merge.
    pub(crate) at_once: usize,
    /// No more are merged into one segment, because of the memory that linking them takes.
    pub(crate) in_segment: usize,
}

/// The segments, oldest first, that become one with a graph.
pub(crate) fn due_links(segments: &[SegmentSize], bounds: MergeBounds) -> Option<Range<usize>> {
    let MergeBounds { at_once: most, in_segment } = bounds;
    let flat = segments.iter().rposition(|segment| segment.graph).map_or(0, |last| last + 1);
    let graphs: usize = segments[..flat].iter().filter(|segment| segment.graph).map(|segment| segment.count).sum();
    let least = if graphs == 0 { FIRST_GRAPH } else { (graphs / EXTENDED_BY).clamp(FIRST_GRAPH, LINK_MOST.min(most)) };
    let (mut end, mut joined, mut is_full) = (flat, 0, false);
    while end < segments.len() && !segments[end].taken && joined < most && !is_full {
        is_full = joined > 0 && joined + segments[end].count > in_segment;
        if !is_full {
            joined += segments[end].count;
            end += 1;
        }
    }
    if joined < least.min(in_segment) && !is_full {
        return None;
    }
    let mut start = flat;
    while let Some(before) = start.checked_sub(1).map(|before| segments[before])
        && !before.taken
        && before.count <= EXTENDED_BY * joined
        && before.count + joined <= in_segment
    {
        start -= 1;
        joined += before.count;
    }
    Some(start..end)
}

/// The segments, oldest first, that become one without a graph.
pub(crate) fn due_flat(segments: &[SegmentSize], bounds: MergeBounds) -> Option<Range<usize>> {
    let size = |segment: &SegmentSize| (!segment.graph && !segment.taken).then_some(segment.count);
    let due = due_tier(&segments.iter().map(size).collect::<Vec<_>>(), LOWEST_FLAT_TIER)?;
    let count: usize = segments[due.clone()].iter().map(|segment| segment.count).sum();
    (count <= bounds.in_segment).then_some(due)
}

/// True if a segment of vectors may soon be part of a larger one. Near what memory permits it is not: a graph stays as
/// it is, and what is without a graph waits to be linked, however many others wait.
pub(crate) fn may_grow(segment: SegmentSize, bounds: MergeBounds) -> bool {
    let like_it = if segment.graph { 2 } else { AT_ONCE };
    segment.count.saturating_mul(like_it) <= bounds.in_segment
}

/// The word segments, largest first, that become one. Each is its number of documents; `None` cannot be merged.
pub(crate) fn due_words(segments: &[Option<usize>]) -> Option<Range<usize>> {
    due_tier(segments, LOWEST_WORD_TIER)
}

/// The newest segments of which enough are of one tier, and none of a higher one.
fn due_tier(segments: &[Option<usize>], lowest: usize) -> Option<Range<usize>> {
    let tier = |count: usize| (count / lowest).checked_ilog2().map_or(0, |log| 1 + log / 2);
    let first = segments.iter().rposition(Option::is_none).map_or(0, |last| last + 1);
    let tiers: Vec<u32> = segments[first..].iter().flatten().map(|count| tier(*count)).collect();
    let highest = tiers.iter().copied().max()?;
    (0..=highest).find_map(|most| {
        let run = tiers.iter().rev().take_while(|tier| **tier <= most).count();
        let of_tier = tiers[tiers.len() - run..].iter().filter(|tier| **tier == most).count();
        (of_tier >= AT_ONCE).then(|| segments.len() - run..segments.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_SIZE: MergeBounds = MergeBounds { at_once: LINKED_AT_ONCE, in_segment: usize::MAX };

    fn graph(count: usize) -> SegmentSize {
        SegmentSize { count, graph: true, taken: false }
    }

    fn flat(count: usize) -> SegmentSize {
        SegmentSize { count, graph: false, taken: false }
    }

    fn taken(segment: SegmentSize) -> SegmentSize {
        SegmentSize { taken: true, ..segment }
    }

    #[test]
    fn flat_segments_are_linked_once_they_are_enough() {
        assert_eq!(due_links(&[], ANY_SIZE), None);
        assert_eq!(due_links(&[flat(2000), flat(47)], ANY_SIZE), None);
        assert_eq!(due_links(&[flat(2000), flat(48)], ANY_SIZE), Some(0..2));
        assert_eq!(due_links(&[graph(5000), flat(2000)], ANY_SIZE), None);
        assert_eq!(due_links(&[graph(5000), flat(2000), flat(48)], ANY_SIZE), Some(0..3));
        assert_eq!(due_links(&[graph(100_000), flat(6000)], ANY_SIZE), None);
        assert_eq!(due_links(&[graph(100_000), flat(6300)], ANY_SIZE), Some(0..2));
        // A graph of more than sixteen times the new ones stays.
        assert_eq!(due_links(&[graph(300_000), flat(16_400)], ANY_SIZE), Some(1..2));
        assert_eq!(due_links(&[graph(300_000), graph(16_400), flat(16_400)], ANY_SIZE), Some(0..3));
    }

    #[test]
    fn a_step_is_bounded_and_leaves_alone_what_others_merge() {
        let many: Vec<SegmentSize> = [graph(30_000)].into_iter().chain((0..20).map(|_| flat(4000))).collect();
        assert_eq!(due_links(&many, ANY_SIZE), Some(0..10));
        let mut busy = many.clone();
        busy[1..10].iter_mut().for_each(|segment| segment.taken = true);
        assert_eq!(due_links(&busy, ANY_SIZE), None);
        assert_eq!(due_flat(&busy, ANY_SIZE), Some(10..21));
        assert_eq!(due_links(&[taken(graph(5000)), flat(4000)], ANY_SIZE), Some(1..2));
    }

    #[test]
    fn no_segment_outgrows_its_memory_and_no_vector_stays_unlinked() {
        for in_segment in [8_192, 20_000, 60_000] {
            let bounds = MergeBounds { in_segment, ..ANY_SIZE };
            let mut segments = Vec::new();
            for _ in 0..200 {
                segments.push(flat(3000));
                loop {
                    let (links, flats) = (due_links(&segments, bounds), due_flat(&segments, bounds));
                    let is_graph = links.is_some();
                    let Some(range) = links.or(flats) else { break };
                    let count: usize = segments[range.clone()].iter().map(|segment| segment.count).sum();
                    assert!(count <= in_segment, "{count} in a segment");
                    segments.splice(range, [SegmentSize { count, graph: is_graph, taken: false }]);
                }
                let unlinked: usize =
                    segments.iter().filter(|segment| !segment.graph).map(|segment| segment.count).sum();
                assert!(unlinked < LINK_MOST + 3000, "{unlinked} of {segments:?}");
            }
            assert!(segments.len() <= 3 * 600_000 / in_segment + 4, "{} segments", segments.len());
        }
        assert_eq!(due_links(&[flat(3000), flat(6000)], MergeBounds { in_segment: 8_192, ..ANY_SIZE }), Some(0..1));
    }

    #[test]
    fn many_flat_segments_become_few() {
        assert_eq!(due_flat(&[flat(1); 3], ANY_SIZE), None);
        assert_eq!(due_flat(&[flat(1); 4], ANY_SIZE), Some(0..4));
        assert_eq!(due_flat(&[flat(1000), flat(1), flat(1), flat(1), flat(1)], ANY_SIZE), Some(1..5));
        assert_eq!(due_flat(&[flat(1), graph(1), flat(1), flat(1), flat(1)], ANY_SIZE), None);
        // Each item is copied a logarithmic number of times.
        let (mut segments, mut copied) = (Vec::new(), 0);
        for _ in 0..16_000 {
            segments.push(flat(1));
            if let Some(range) = due_flat(&segments, ANY_SIZE) {
                let count: usize = segments[range.clone()].iter().map(|segment| segment.count).sum();
                copied += count;
                segments.splice(range, [flat(count)]);
            }
            assert!(segments.len() <= 4 * 4);
        }
        assert!(copied < 16_000 * 90, "{copied}");
    }

    /// While linking lags, segments without a graph become more, but few of them count for `max_live_segments`.
    #[test]
    fn what_waits_to_be_linked_keeps_no_writer_waiting() {
        for in_segment in [8_192, 58_000, 233_000] {
            let (bounds, mut segments) = (MergeBounds { in_segment, ..ANY_SIZE }, Vec::new());
            for _ in 0..1_000 {
                segments.push(flat(1_000));
                while let Some(range) = due_flat(&segments, bounds) {
                    let count = segments[range.clone()].iter().map(|segment| segment.count).sum();
                    segments.splice(range, [flat(count)]);
                }
                let growing = segments.iter().filter(|segment| may_grow(**segment, bounds)).count();
                assert!(growing <= 3 * AT_ONCE, "{growing} of {segments:?}");
            }
        }
        assert!(may_grow(graph(29_000), MergeBounds { in_segment: 58_000, ..ANY_SIZE }));
        assert!(!may_grow(graph(29_001), MergeBounds { in_segment: 58_000, ..ANY_SIZE }));
    }

    /// Links vectors by steps of 4,000 up to `most`; returns how many were linked and how many copied, by vector.
    fn amplification(most: usize) -> (f64, f64) {
        let (mut segments, mut linked, mut copied) = (Vec::new(), 0, 0);
        for _ in 0..most / 4000 {
            segments.push(flat(4000));
            while let Some(range) = due_links(&segments, ANY_SIZE) {
                let of_merge = &segments[range.clone()];
                let count: usize = of_merge.iter().map(|segment| segment.count).sum();
                let kept = of_merge.iter().filter(|segment| segment.graph).map(|segment| segment.count).max();
                linked += count - kept.unwrap_or(0);
                copied += count;
                segments.splice(range, [graph(count)]);
            }
            assert!(segments.len() <= 8, "{segments:?}");
        }
        (linked as f64 / most as f64, copied as f64 / most as f64)
    }

    #[test]
    fn a_vector_is_linked_hardly_more_often_in_a_larger_database() {
        for (most, links, copies) in [(200_000, 1.0, 12.0), (1_000_000, 2.0, 20.0), (4_000_000, 2.2, 24.0)] {
            let (linked, copied) = amplification(most);
            assert!(linked <= links && copied <= copies, "{most}: linked {linked} times, copied {copied} times");
        }
    }

    #[test]
    fn word_segments_merge_by_tiers() {
        let due = |counts: &[usize]| due_words(&counts.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(due(&[]), None);
        assert_eq!(due(&[5, 5, 5]), None);
        assert_eq!(due(&[5, 5, 5, 5]), Some(0..4));
        assert_eq!(due(&[50_000, 4096, 4096, 4096]), None);
        assert_eq!(due(&[50_000, 4096, 4096, 4096, 4096]), Some(1..5));
        assert_eq!(due(&[50_000, 4096, 4096, 4096, 10]), None);
        assert_eq!(due(&[50_000, 4096, 4096, 10, 4096, 4096, 10]), Some(1..7));
        assert_eq!(due_words(&[Some(5), None, Some(5), Some(5), Some(5)]), None);
        let (mut segments, mut copied) = (Vec::new(), 0);
        for _ in 0..256 {
            segments.push(Some(4096));
            while let Some(range) = due_words(&segments) {
                let count: usize = segments[range.clone()].iter().flatten().sum();
                copied += count;
                segments.splice(range, [Some(count)]);
            }
        }
        assert_eq!((segments.len(), copied), (1, 4 * 256 * 4096), "each is written once in each of four tiers");
    }
}
