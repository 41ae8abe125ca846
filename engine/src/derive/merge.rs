//! Merges: several segments of a layer become one, in the background. Answers do not change.
//!
//! 1. Under a lock: choose segments (`merge_policy`) and mark them, so that no other merge chooses them.
//! 2. Without any lock: write the new segment under a new name, synced. Commits, checkpoints and queries go on.
//! 3. With the turn of the checkpoints: one catalog transaction that names the new segment in place of the old ones,
//!    then replace them in the newest state, then remove their files.
//!
//! A crash before the transaction of step 3 leaves a file that no manifest names, a crash after it files that no
//! manifest names any more; the next opening removes either. A merge whose segments were repaired or rebuilt meanwhile
//! is discarded. The origin of a merged segment is the last checkpoint, which holds all its items.

use crate::Result;
use crate::core::Core;
use crate::core::background_task::BackgroundTask;
use crate::core::files::Form;
use crate::core::merger::BusySegments;
use crate::derive::derived_writer::{DerivedWriter, ManifestChanges};
use crate::derive::maintenance::applied_again;
use crate::derive::merge_policy::{
    self, LINKED_AT_ONCE, LINKED_IN_TURNS, MergeBounds, SegmentSize, due_flat, due_links, due_words,
};
use crate::derive::{checkpoint, repair};
use crate::state::State;
use crate::state::layers::{LayerIndex, LayerVectors};
use holotype_index::VectorSegment;
use holotype_index::segment::LINK_BYTES;
use holotype_index::words::WordSegment;
use holotype_storage::catalog::Applied;
use holotype_storage::log::Head;
use holotype_storage::overlay::Overlay;
use holotype_storage::priority::lower_thread_priority;
use holotype_storage::vfs::return_freed_memory;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// About the memory of a merge of words: its buffers, and 12 bytes a document in two lists.
const WORD_MERGE_BYTES: u64 = 4 << 20;
const COPIED_DOCUMENT_BYTES: u64 = 24;
/// About the memory that a merge takes for a vector that it only copies.
const COPIED_VECTOR_BYTES: u64 = 40;

/// A merge that takes no longer runs while a database is closed.
const SHORT: Duration = Duration::from_millis(500);
/// About the time to copy the words of a document, or more than that of a vector.
const COPY_TIME: Duration = Duration::from_micros(10);

/// The two kinds of merges, each with a thread of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Links flat vector segments into a graph.
    Link,
    /// Combines small segments.
    Combine,
}

/// A merge to run.
struct Merge {
    place: u32,
    sources: Sources,
}

enum Sources {
    Vectors { segments: Vec<Arc<VectorSegment>>, link: bool },
    Words(Vec<Arc<WordSegment>>),
}

/// A segment that a merge wrote.
enum Merged {
    Vectors(Arc<VectorSegment>),
    Words(Arc<WordSegment>),
}

/// Requests the merges that are due.
pub(crate) fn start(core: &Arc<Core>) {
    if core.merger.is_paused() {
        return;
    }
    if is_due(core, Work::Link, |_, _| true) {
        BackgroundTask::request(core, |core| &core.merger.linking, |core| in_background(core, Work::Link));
    }
    if is_due(core, Work::Combine, |_, _| true) {
        BackgroundTask::request(core, |core| &core.merger.combining, |core| in_background(core, Work::Combine));
    }
}

fn in_background(core: &Arc<Core>, work: Work) -> Result<()> {
    lower_thread_priority();
    while !core.merger.is_paused() && step(core, work)? {
        return_freed_memory();
    }
    Ok(())
}

/// Runs all merges that are due, and waits for those that run in the background.
pub(crate) fn finish(core: &Arc<Core>) -> Result<()> {
    loop {
        wait(core);
        let linked = step(core, Work::Link)?;
        if !step(core, Work::Combine)? && !linked {
            return Ok(());
        }
        return_freed_memory();
    }
}

/// Ends the merges that run in the background, and runs at most one of each kind that takes a moment, so that processes
/// that live shortly get on with them, too. Longer ones begin again at the next opening.
pub(crate) fn stop(core: &Arc<Core>) -> Result<()> {
    let stop = core.merger.stop();
    wait(core);
    drop(stop);
    let _paused = core.merger.pause();
    step_if(core, Work::Link, Merge::is_short)?;
    step_if(core, Work::Combine, Merge::is_short)?;
    Ok(())
}

/// Ends the merges that run in the background after their present step, so that none holds what was forgotten.
pub(crate) fn interrupt(core: &Core) {
    let _paused = core.merger.pause();
    wait(core);
}

/// Waits for the merges that run in the background. What failed there is tried again by the next one.
pub(crate) fn wait(core: &Core) {
    let _ = core.merger.linking.wait();
    let _ = core.merger.combining.wait();
}

/// Runs the next merge; returns false if none is due.
fn step(core: &Arc<Core>, work: Work) -> Result<bool> {
    step_if(core, work, |_, _| true)
}

/// The same if the next merge is one that the caller wants to run.
fn step_if(core: &Arc<Core>, work: Work, is_wanted: fn(&Merge, &Core) -> bool) -> Result<bool> {
    if !is_due(core, work, is_wanted) {
        return Ok(false);
    }
    let _maintenance = core.maintain()?;
    let Some(((merge, rebuild_count), _busy)) = choose(core, work) else { return Ok(false) };
    if !is_wanted(&merge, core) {
        return Ok(false);
    }
    let Some(applied) = checkpoint::catalog(core)?.applied()? else { return Ok(false) };
    let mut changes = ManifestChanges::default();
    let done = merge.write(core, &applied, &mut changes);
    let published = done.and_then(|merged| publish(core, &merge, merged, rebuild_count, &mut changes));
    match published {
        Ok(true) => {
            changes.remove_replaced(&core.files);
            return Ok(true);
        }
        Ok(false) | Err(_) => {
            for path in changes.paths(&core.files) {
                let _ = core.files.vfs.remove(&path);
            }
        }
    }
    let Err(error) = published else { return Ok(true) };
    if core.merger.is_stopped() {
        return Ok(false);
    }
    if core.lock_writer().rebuild_count != rebuild_count {
        return Ok(true);
    }
    if repair::is_due(core) {
        // The merge was the first to read a damaged segment.
        let _turn = core.checkpointer.turn.lock().unwrap_or_else(PoisonError::into_inner);
        return repair::repair_damaged(core).map(|()| true);
    }
    Err(error)
}

/// Chooses the next merge of the newest state; also returns the number of rebuilds so far.
fn choose(core: &Core, work: Work) -> Option<((Merge, u64), BusySegments<'_>)> {
    core.merger.choose(|busy| {
        let (state, rebuild_count) = {
            let writer = core.lock_writer();
            (writer.poisoned.is_none().then(|| Arc::clone(&writer.state))?, writer.rebuild_count)
        };
        let merge = due(&state, work, busy, bounds(core))?;
        let generations = merge.generations();
        Some(((merge, rebuild_count), generations))
    })
}

/// The bounds of a merge. A handle that takes turns keeps the others from maintenance meanwhile.
fn bounds(core: &Core) -> MergeBounds {
    let at_once = if core.options.takes_turns() { LINKED_IN_TURNS } else { LINKED_AT_ONCE };
    MergeBounds { at_once, in_segment: core.options.most_in_graph() }
}

/// True if a merge of the newest state is due that the caller wants to run. The state is not kept: a merge runs for
/// seconds, in which its tails would stay in memory after checkpoints wrote them.
fn is_due(core: &Core, work: Work, is_wanted: fn(&Merge, &Core) -> bool) -> bool {
    let state = Arc::clone(&core.lock_writer().state);
    due(&state, work, &BTreeSet::new(), bounds(core)).is_some_and(|merge| is_wanted(&merge, core))
}

/// The first merge of a state that is due.
fn due(state: &State, work: Work, busy: &BTreeSet<u64>, bounds: MergeBounds) -> Option<Merge> {
    (0u32..).zip(&state.layers).find_map(|(place, layer)| {
        let vectors = layer.vectors.as_ref().and_then(|vectors| due_in(vectors, work, busy, bounds));
        let words = || (work == Work::Combine).then(|| due_of_words(layer, busy)).flatten();
        Some(Merge { place, sources: vectors.or_else(words)? })
    })
}

/// The number of a layer's vector segments that merges may still make fewer.
pub(crate) fn live_count(core: &Core, vectors: &LayerVectors) -> usize {
    let bounds = bounds(core);
    vectors.segments.iter().filter(|segment| merge_policy::may_grow(size_of(segment), bounds)).count()
}

fn size_of(segment: &VectorSegment) -> SegmentSize {
    SegmentSize { count: segment.len(), graph: segment.has_graph(), taken: false }
}

fn due_in(vectors: &LayerVectors, work: Work, busy: &BTreeSet<u64>, bounds: MergeBounds) -> Option<Sources> {
    let size = |segment: &Arc<VectorSegment>| SegmentSize {
        taken: segment.damage().is_err() || busy.contains(&segment.file().identity().generation),
        ..size_of(segment)
    };
    let sizes: Vec<SegmentSize> = vectors.segments.iter().map(size).collect();
    let link = work == Work::Link;
    let range = if link { due_links(&sizes, bounds) } else { due_flat(&sizes, bounds) }?;
    Some(Sources::Vectors { segments: vectors.segments[range].to_vec(), link })
}

fn due_of_words(layer: &LayerIndex, busy: &BTreeSet<u64>) -> Option<Sources> {
    let size = |segment: &Arc<WordSegment>| {
        let taken = segment.is_damaged() || busy.contains(&segment.file().identity().generation);
        (!taken).then_some(segment.document_count() as usize)
    };
    let sizes: Vec<Option<usize>> = layer.words.segments.iter().map(size).collect();
    Some(Sources::Words(layer.words.segments[due_words(&sizes)?].to_vec()))
}

impl Merge {
    fn form(&self) -> Form {
        match self.sources {
            Sources::Vectors { .. } => Form::Vectors,
            Sources::Words(_) => Form::Words,
        }
    }

    fn generations(&self) -> Vec<u64> {
        match &self.sources {
            Sources::Vectors { segments, .. } => {
                segments.iter().map(|segment| segment.file().identity().generation).collect()
            }
            Sources::Words(segments) => segments.iter().map(|segment| segment.file().identity().generation).collect(),
        }
    }

    /// True if it takes a moment only, as far as known.
    fn is_short(&self, core: &Core) -> bool {
        let took = match &self.sources {
            Sources::Vectors { segments, link: true } => {
                let flat: usize = segments.iter().filter(|one| !one.has_graph()).map(|one| one.len()).sum();
                core.merger.link_time().saturating_mul(u32::try_from(flat).unwrap_or(u32::MAX))
            }
            Sources::Vectors { segments, link: false } => {
                COPY_TIME.saturating_mul(segments.iter().map(|one| one.len() as u32).fold(0, u32::saturating_add))
            }
            Sources::Words(segments) => {
                COPY_TIME.saturating_mul(segments.iter().map(|one| one.document_count()).fold(0, u32::saturating_add))
            }
        };
        took <= SHORT
    }

    /// About the bytes of memory that writing the new segment takes.
    fn memory(&self) -> u64 {
        match &self.sources {
            Sources::Vectors { segments, link } => {
                let count: usize = segments.iter().map(|segment| segment.len()).sum();
                count as u64 * if *link { LINK_BYTES } else { COPIED_VECTOR_BYTES }
            }
            Sources::Words(segments) => {
                let documents: u64 = segments.iter().map(|segment| u64::from(segment.document_count())).sum();
                WORD_MERGE_BYTES + documents * COPIED_DOCUMENT_BYTES
            }
        }
    }

    /// Writes the new segment.
    fn write(&self, core: &Core, applied: &Applied, changes: &mut ManifestChanges) -> Result<Merged> {
        let head = Head { position: applied.position, commit: applied.commit, hash: applied.head };
        let writer = DerivedWriter::of(core, head);
        let _memory = core.merger.takes(self.memory());
        let stopped = &core.merger.stopped;
        let replaced = self.generations().into_iter().map(|generation| (self.form(), self.place, generation));
        changes.replaced.extend(replaced);
        match &self.sources {
            Sources::Vectors { segments, link } => {
                let started = Instant::now();
                let log = || core.lock_writer().state.vectors_in_log(core.log.payload_ends());
                let log = link.then(log);
                let merged = writer.merged_vectors(segments, log.as_ref(), self.place, changes, Some(stopped))?;
                if *link {
                    let flat = segments.iter().filter(|segment| !segment.has_graph());
                    core.merger.record_linking(started.elapsed(), flat.map(|segment| segment.len()).sum());
                }
                Ok(Merged::Vectors(merged))
            }
            Sources::Words(segments) => {
                let analyzer = core.lock_writer().state.layers[self.place as usize].words.analyzer;
                let sources = segments.iter().map(AsRef::as_ref).collect();
                Ok(Merged::Words(writer.merged_words(analyzer, sources, self.place, changes, Some(stopped))?))
            }
        }
    }

    /// True if a program cut one of the files, so that the new one may hold zeros.
    fn is_cut(&self) -> bool {
        match &self.sources {
            Sources::Vectors { segments, .. } => segments.iter().any(|segment| segment.file().is_cut()),
            Sources::Words(segments) => segments.iter().any(|segment| segment.file().is_cut()),
        }
    }

    /// The index of a layer with the new segment in place of the merged ones; `None` if it has not all of them.
    fn replace_in(&self, layer: &LayerIndex, merged: &Merged) -> Option<LayerIndex> {
        let mut layer = layer.clone();
        match (&self.sources, merged) {
            (Sources::Vectors { segments, .. }, Merged::Vectors(new)) => {
                let vectors = layer.vectors.as_mut()?;
                vectors.segments = replaced(&vectors.segments, segments, new)?;
            }
            (Sources::Words(segments), Merged::Words(new)) => {
                layer.words.segments = replaced(&layer.words.segments, segments, new)?;
            }
            _ => return None,
        }
        Some(layer)
    }
}

/// `list` with `new` in place of `old`, which stand in it one after the other.
fn replaced<T>(list: &[Arc<T>], old: &[Arc<T>], new: &Arc<T>) -> Option<Arc<Vec<Arc<T>>>> {
    let first = list.iter().position(|segment| Arc::ptr_eq(segment, &old[0]))?;
    let there = list.get(first..first + old.len())?;
    let are_all = there.iter().zip(old).all(|(a, b)| Arc::ptr_eq(a, b));
    are_all.then(|| {
        let mut list = list.to_vec();
        list.splice(first..first + old.len(), [Arc::clone(new)]);
        Arc::new(list)
    })
}

/// Names the new segment in the catalog and puts it into the newest state. Returns false if the segments it replaces
/// were replaced before.
fn publish(
    core: &Core,
    merge: &Merge,
    merged: Merged,
    rebuild_count: u64,
    changes: &mut ManifestChanges,
) -> Result<bool> {
    let _turn = core.checkpointer.turn.lock().unwrap_or_else(PoisonError::into_inner);
    if merge.is_cut() {
        return Ok(false);
    }
    let place = merge.place as usize;
    let (catalog, before) = {
        let writer = core.lock_writer();
        let is_there = merge.replace_in(&writer.state.layers[place], &merged).is_some();
        if !is_there || writer.rebuild_count != rebuild_count || writer.checkpoint_running || writer.poisoned.is_some()
        {
            return Ok(false);
        }
        (checkpoint::catalog(core)?, Arc::clone(&writer.state))
    };
    let Some(applied) = catalog.applied()? else { return Ok(false) };
    catalog.checkpoint(changes.manifest_rows()?, &applied_again(&applied)?)?;
    // From here on the catalog names the new file, so an error must not remove it.
    let base = core.base_of(&catalog).inspect_err(|_| changes.added.clear())?;
    before.carry_over_adjacency(&Overlay::new(), &base);
    let mut writer = core.lock_writer();
    let layer = merge.replace_in(&writer.state.layers[place], &merged);
    let (Some(layer), true) = (layer, writer.rebuild_count == rebuild_count) else { return Ok(false) };
    let mut newest = writer.state.as_ref().clone();
    newest.rows.thaw(base);
    newest.layers[place] = layer;
    core.replace(&mut writer, newest);
    drop(writer);
    core.publish();
    core.throttle.signal_progress();
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Holotype, NewTrace, Options, Space};
    use holotype_storage::vfs::{SimVfs, Vfs};
    use std::path::Path;

    /// A database with vectors that await a graph, which nobody has begun.
    fn with_unlinked(count: u32) -> (SimVfs, Holotype) {
        let disk = SimVfs::new();
        let options = Options { space: Some(Space::new("test", 2)), ..Options::default() };
        let database = Holotype::create_on(Arc::new(disk.clone()), "/db", options).unwrap();
        let paused = database.core.merger.pause();
        let mut transaction = database.begin().unwrap();
        for number in 0..count {
            let angle = number as f32 / 1000.0;
            transaction.record(NewTrace::turn("e", "").vector(vec![angle.cos(), angle.sin()])).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
        checkpoint::run(&database.core).unwrap();
        drop(paused);
        (disk, database)
    }

    fn has_graph(database: &Holotype) -> bool {
        let state = database.core.published.load_full();
        state.layers.iter().flat_map(|layer| &layer.vectors).flat_map(|it| it.segments.iter()).any(|it| it.has_graph())
    }

    #[test]
    fn a_merge_that_is_stopped_leaves_everything_as_it_was() {
        let (disk, database) = with_unlinked(6_000);
        assert!(is_due(&database.core, Work::Link, |_, _| true) && !has_graph(&database));
        let files = disk.list(Path::new("/db/vectors")).unwrap();
        let stopped = database.core.merger.stop();
        assert!(!step(&database.core, Work::Link).unwrap());
        drop(stopped);
        assert!(!has_graph(&database));
        assert_eq!(disk.list(Path::new("/db/vectors")).unwrap(), files);
        finish(&database.core).unwrap();
        assert!(has_graph(&database));
    }

    /// Closing linked everything that was due: 25 s after 60,000 rows, and 583 s after a million.
    #[test]
    fn closing_begins_no_merge_that_takes_long() {
        let (disk, database) = with_unlinked(6_000);
        // As though each vector took a second.
        database.core.merger.record_linking(Duration::from_secs(6_000), 6_000);
        stop(&database.core).unwrap();
        assert!(!has_graph(&database));
        database.close().unwrap();
        let database = Holotype::open_on(Arc::new(disk), "/db", Options::default()).unwrap();
        finish(&database.core).unwrap();
        assert!(has_graph(&database), "the next opening goes on with it");
    }
}
