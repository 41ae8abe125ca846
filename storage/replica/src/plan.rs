//! The plan of the next head: which chunks to write, and the manifest that names them.
//!
//! New bytes of the log become a chunk. A chunk of which records were erased is written again. And chunks are joined:
//! their sizes have five classes, each eight times as large as the one below, and when there are eight of one class at
//! the end of the log, they and the new bytes are written as one. So each byte is written about once a class, and at
//! most some 40 chunks are not full.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use holotype_storage::log::{Growth, Head};

use crate::chunk::MAX_LOG_LEN;
use crate::error::Result;
use crate::manifest::{ChunkRef, Manifest, Pending};
use crate::source::Source;

/// Bytes of the log that one head adds, at most: a large log is acknowledged in steps.
const MAX_STEP: u64 = 16 * MAX_LOG_LEN;
/// Chunks of one class that are joined.
const FAN: usize = 8;
/// Bytes below which a chunk is of the lowest class.
const LOWEST: u64 = 16 << 10;

/// The lengths at which classes end.
const CLASSES: [u64; 5] = [LOWEST, LOWEST << 3, LOWEST << 6, LOWEST << 9, MAX_LOG_LEN];

/// A chunk to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// The last commit whose erasures it has.
    pub(crate) erased: u64,
    /// The serial of the head for which bytes of it were last erased; [`NOW`] for the planned one, 0 for none.
    pub(crate) fresh: u64,
}

/// The serial of the planned head, which is not known yet.
pub(crate) const NOW: u64 = u64::MAX;

/// A chunk of the next manifest: one that is there, or one to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    There(ChunkRef),
    New(Write),
}

/// The next head.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The manifest, without its chunks.
    pub(crate) manifest: Manifest,
    pub(crate) parts: Vec<Part>,
    /// Positions after commits with number and clock, ascending.
    commits: Vec<(u64, u64, i64)>,
}

impl Plan {
    /// The last commit at or before the end of a new chunk, and its clock.
    pub(crate) fn last_commit(&self, end: u64, before: &Manifest) -> (u64, i64) {
        let after = self.commits.partition_point(|(position, ..)| *position <= end);
        if let Some((_, commit, time_us)) = after.checked_sub(1).and_then(|at| self.commits.get(at)) {
            return (*commit, *time_us);
        }
        let older = before.chunks.iter().rev().find(|chunk| chunk.end <= end);
        older.map_or((0, 0), |chunk| (chunk.commit, chunk.time_us))
    }
}

/// Plans the next head after a manifest; `None` if the log did not change.
pub(crate) fn plan<L: Source>(source: &L, before: &Manifest, rewrites: bool) -> Result<Option<Plan>> {
    let mut manifest = before.clone();
    let floor = source.floor();
    let first = floor.map_or(0, |floor| floor.first.0);
    let is_first = before.head == Head::default();
    if is_first && floor.is_some() {
        manifest.tree = None;
    }
    manifest.floor = floor.map(|floor| floor.to_bytes(&before.database));
    let mut commits = Vec::new();
    let mut done = Vec::new();
    let mut pending: BTreeMap<u64, Vec<(u64, u64)>> =
        before.pending.iter().map(|pending| (pending.commit, pending.ranges.clone())).collect();
    let from = (!is_first).then_some(before.head);
    let limit = before.head.position.0.max(first).saturating_add(MAX_STEP);
    let must_reach = floor.map_or(0, |floor| floor.until.position.0);
    source.growth(from, &mut |growth| {
        match growth {
            Growth::Commit { head, time_us, leaves, erases } => {
                if head.position.0 > limit.max(must_reach) && !commits.is_empty() {
                    return ControlFlow::Break(());
                }
                if let Some(tree) = &mut manifest.tree {
                    leaves.into_iter().for_each(|leaf| tree.push(leaf));
                }
                (manifest.head, manifest.time_us) = (head, time_us);
                commits.push((head.position.0, head.commit.0, time_us));
                if !erases.is_empty() {
                    pending.insert(head.commit.0, erases.iter().map(|(first, end)| (first.0, end.0)).collect());
                }
            }
            Growth::Erased { commit, .. } => done.push(commit),
        }
        ControlFlow::Continue(())
    })?;
    let mut erased: Vec<Pending> = Vec::new();
    for commit in done {
        if let Some(ranges) = pending.remove(&commit) {
            erased.push(Pending { commit, ranges });
        }
    }
    if commits.is_empty() && erased.is_empty() && manifest.floor == before.floor {
        return Ok(None);
    }
    manifest.pending = pending.into_iter().map(|(commit, ranges)| Pending { commit, ranges }).collect();
    manifest.spans = source.spans(manifest.head.position);
    let mut parts = kept(before, first);
    if rewrites {
        parts.iter_mut().for_each(|part| rewrite(part, &erased));
    }
    append(&mut parts, first, manifest.head.position.0);
    join(&mut parts);
    Ok(Some(Plan { manifest, parts, commits }))
}

/// The chunks that are there. One that the beginning of the log cuts is written again.
fn kept(before: &Manifest, first: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    for chunk in before.chunks.iter().filter(|chunk| chunk.end > first) {
        parts.push(match chunk.first < first {
            true => Part::New(Write { first, end: chunk.end, erased: chunk.erased, fresh: chunk.fresh }),
            false => Part::There(chunk.clone()),
        });
    }
    parts
}

/// Has a chunk written again if records of it were erased.
fn rewrite(part: &mut Part, erased: &[Pending]) {
    let (first, end) = part.range();
    let touches = |pending: &&Pending| pending.ranges.iter().any(|(from, until)| *from < end && first < *until);
    if let Some(commit) = erased.iter().filter(touches).map(|pending| pending.commit).max() {
        let erased = commit.max(part.erased());
        *part = Part::New(Write { first, end, erased, fresh: NOW });
    }
}

/// Adds the new bytes of the log, in pieces of a chunk's length.
fn append(parts: &mut Vec<Part>, first: u64, end: u64) {
    let mut position = parts.last().map_or(first, |part| part.range().1);
    while position < end {
        let until = end.min(position + MAX_LOG_LEN);
        parts.push(Part::New(Write { first: position, end: until, erased: 0, fresh: 0 }));
        position = until;
    }
}

/// Joins the chunks of a class at the end of the log while there are enough of them.
fn join(parts: &mut Vec<Part>) {
    for class in 0..CLASSES.len() as u32 {
        let run = parts.len() - parts.iter().rev().take_while(|part| class_of(part.len()) <= class).count();
        if parts[run..].iter().filter(|part| class_of(part.len()) == class).count() < FAN {
            continue;
        }
        let (first, end) = (parts[run].range().0, parts[parts.len() - 1].range().1);
        let joined: Vec<Part> = parts.drain(run..).collect();
        let (mut from, mut rest) = (first, joined.as_slice());
        while from < end {
            let until = end.min(from + MAX_LOG_LEN);
            let touching = rest.iter().filter(|part| part.range().0 < until && from < part.range().1);
            let erased = touching.clone().map(Part::erased).max().unwrap_or(0);
            let fresh = touching.clone().map(Part::fresh).max().unwrap_or(0);
            parts.push(Part::New(Write { first: from, end: until, erased, fresh }));
            from = until;
            rest = &rest[rest.partition_point(|part| part.range().1 <= from)..];
        }
    }
}

/// The class of a chunk's size; that after the last for a full one.
fn class_of(len: u64) -> u32 {
    CLASSES.iter().filter(|class| len >= **class).count() as u32
}

impl Part {
    fn range(&self) -> (u64, u64) {
        match self {
            Part::There(chunk) => (chunk.first, chunk.end),
            Part::New(write) => (write.first, write.end),
        }
    }

    fn len(&self) -> u64 {
        self.range().1 - self.range().0
    }

    fn erased(&self) -> u64 {
        match self {
            Part::There(chunk) => chunk.erased,
            Part::New(write) => write.erased,
        }
    }

    fn fresh(&self) -> u64 {
        match self {
            Part::There(chunk) => chunk.fresh,
            Part::New(write) => write.fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(first: u64, end: u64) -> Part {
        let (commit, time_us, len, erased, fresh) = (1, 0, 1, 0, 0);
        Part::There(ChunkRef { first, end, commit, time_us, len, erased, fresh, hash: [0; 32] })
    }

    #[test]
    fn few_chunks_hold_a_log_and_each_byte_is_written_a_few_times() {
        for step in [1_000_u64, 40_000, 700_000, 9_000_000] {
            let (mut parts, mut written, mut end) = (Vec::new(), 0, 0);
            let mut most = 0;
            for _ in 0..2_000 {
                end += step;
                append(&mut parts, 0, end);
                join(&mut parts);
                for part in &mut parts {
                    if let Part::New(write) = part {
                        written += write.end - write.first;
                        *part = there(write.first, write.end);
                    }
                }
                most = most.max(parts.len() as u64 - end / MAX_LOG_LEN);
            }
            assert_eq!(parts.last().unwrap().range().1, end);
            assert!(parts.windows(2).all(|pair| pair[0].range().1 == pair[1].range().0));
            assert!(most <= 40, "{most} chunks beside the full ones, in steps of {step}");
            assert!(written <= 8 * end, "{} times written, in steps of {step}", written / end);
        }
    }

    #[test]
    fn a_chunk_is_written_again_when_a_record_in_it_was_erased() {
        let erased = [Pending { commit: 7, ranges: vec![(100, 200)] }];
        for (range, again) in [((0, 100), false), ((0, 101), true), ((150, 160), true), ((200, 300), false)] {
            let mut part = there(range.0, range.1);
            rewrite(&mut part, &erased);
            let expected = Part::New(Write { first: range.0, end: range.1, erased: 7, fresh: NOW });
            assert_eq!(part == expected, again, "{range:?}");
        }
    }
}
