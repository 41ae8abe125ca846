//! Checkpoints: the overlay becomes derived files, in the background, without changing an answer.
//!
//! 1. Under the writer's lock: set aside what changed since the last one (`freeze`); later changes gather anew.
//! 2. Without the lock: sync the log up to there; write the touched chunks of columns, the tails of each layer as
//!    segments (merging small ones), each file under a name of its own, synced; then one catalog transaction with the
//!    rows, the manifest and the position.
//! 3. Under the lock again: put the files in the place of what was set aside, in the newest state.
//!
//! A crash before the end of step 2 leaves files that no manifest names; opening removes them.

use crate::attributes::{AttributeStore, Chunk};
use crate::database::{Inner, Writer};
use crate::files::Form;
use crate::item::Layer;
use crate::layers::by_size;
use crate::mend;
use crate::proof::tree;
use crate::sealing::{Sealed, Sealer};
use crate::state::State;
use crate::tables::{self, ManifestRow};
use crate::{Error, Result};
use holotype_index::segment::layout::KIND as VECTOR_SEGMENT_KIND;
use holotype_index::words::{WORD_SEGMENT_KIND, WordSegment, WordTail};
use holotype_index::{VectorSegment, VectorTail};
use holotype_storage::SmallBytes;
use holotype_storage::catalog::{Applied, Catalog};
use holotype_storage::codec;
use holotype_storage::columns::Columns;
use holotype_storage::features::Access;
use holotype_storage::overlay::{Overlay, RowKey};
use holotype_storage::segment_file::SegmentFile;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Runs checkpoints in the background, one at a time.
#[derive(Default)]
pub(crate) struct Checkpointer {
    background: Mutex<Background>,
    /// The newest generation given to a derived file.
    pub(crate) generation: AtomicU64,
    /// Why the last background checkpoint failed, if it did.
    failure: Mutex<Option<Error>>,
    /// Held by the one that writes a checkpoint; the next waits, for what it is to write came after that one began.
    pub(crate) turn: Mutex<()>,
    /// The damaged segments, by generation, that were made again or could not be.
    pub(crate) mended: Mutex<BTreeSet<u64>>,
}

#[derive(Default)]
struct Background {
    thread: Option<JoinHandle<()>>,
    /// From the start of a thread until it will look at `asked` no more.
    running: bool,
    /// Somebody wants a checkpoint that begins from now on.
    asked: bool,
}

impl Checkpointer {
    pub(crate) fn starting_at(generation: u64) -> Self {
        Checkpointer { generation: AtomicU64::new(generation), ..Checkpointer::default() }
    }

    /// Starts a checkpoint, behind the one that is running if one is.
    pub(crate) fn start(&self, inner: &Arc<Inner>) {
        let mut background = self.background();
        background.asked = true;
        let ended = background.thread.as_ref().is_some_and(JoinHandle::is_finished);
        if background.running && !ended {
            return;
        }
        let inner = Arc::clone(inner);
        let work = move || {
            while inner.checkpointer.is_asked() {
                if let Err(error) = run(&inner) {
                    *inner.checkpointer.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        };
        // Without a thread the tail stays in memory and the next commit tries again.
        background.thread = std::thread::Builder::new().name("holotype-checkpoint".into()).spawn(work).ok();
        background.running = background.thread.is_some();
    }

    /// Whether there is a checkpoint to write; if not, the next one who asks starts another thread.
    fn is_asked(&self) -> bool {
        let mut background = self.background();
        background.running = std::mem::take(&mut background.asked);
        background.running
    }

    /// Waits for the checkpoints that were asked for, if any, and hands over why the last one failed, if it did.
    pub(crate) fn wait(&self) -> Option<Error> {
        let thread = self.background().thread.take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            // The panic was reported on that thread; what it set aside is still in memory and in the log.
            self.background().running = false;
        }
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn background(&self) -> MutexGuard<'_, Background> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was set aside for a checkpoint.
struct Frozen {
    state: Arc<State>,
    rows: Overlay,
    catalog: Arc<Catalog>,
    /// How often everything had been derived anew: once more, and what this checkpoint wrote is of no use.
    rederived: u64,
}

/// The derived files a checkpoint wrote.
struct Written {
    chunks: Vec<Chunk>,
    layers: Vec<LayerFiles>,
    sealed: Sealed,
}

/// The segments a layer has after a checkpoint.
struct LayerFiles {
    vectors: Option<Arc<Vec<Arc<VectorSegment>>>>,
    words: Arc<Vec<Arc<WordSegment>>>,
}

/// Writes a checkpoint of the newest appended state, after the one that is running; what was found damaged is made again
/// before. A merge may be the first to meet damage: then both are done once more.
pub(crate) fn run(inner: &Arc<Inner>) -> Result<()> {
    let _turn = inner.checkpointer.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let mended = mend::mend(inner);
    match in_turn(inner) {
        Err(_) if mend::is_due(inner) => mend::mend(inner).and_then(|()| in_turn(inner)),
        done => done.and(mended),
    }
}

fn in_turn(inner: &Arc<Inner>) -> Result<()> {
    let Some(frozen) = freeze(inner)? else { return Ok(()) };
    match write(inner, &frozen) {
        Ok(written) => thaw(inner, &frozen, written),
        Err(error) => {
            let dropped = unfreeze(inner, &frozen);
            if dropped { Ok(()) } else { Err(error) }
        }
    }
}

/// Sets the changes aside; nothing when there are none, or when one that panicked left its own aside.
fn freeze(inner: &Inner) -> Result<Option<Frozen>> {
    let mut writer = inner.lock_writer();
    if writer.checkpoint_running || writer.tail_records == 0 || writer.poisoned.is_some() {
        return Ok(None);
    }
    let catalog = catalog(inner)?;
    let mut state = writer.state.as_ref().clone();
    let rows = state.rows.freeze();
    state.attributes.freeze();
    for layer in &mut state.layers {
        let next = layer.words.tails.last().map_or_else(|| WordTail::new(layer.words.analyzer), |last| last.next());
        layer.words.tails.push(Arc::new(next));
    }
    writer.checkpoint_running = true;
    writer.tail_records = 0;
    writer.frozen_bytes = std::mem::take(&mut writer.tail_bytes);
    inner.replace(&mut writer, state);
    let frozen = Frozen { state: Arc::clone(&writer.state), rows, catalog, rederived: writer.rederived };
    drop(writer);
    inner.publish();
    Ok(Some(frozen))
}

/// Writes the files and the catalog transaction of what was set aside.
fn write(inner: &Inner, frozen: &Frozen) -> Result<Written> {
    let state = &frozen.state;
    inner.log.sync_to(state.head.position)?;
    inner.note_durable()?;
    let sealer = Sealer::of(inner, state);
    let mut sealed = Sealed::default();
    let chunks = sealer.chunks(&state.attributes, state.bound(), &mut sealed)?;
    let mut layers = Vec::new();
    for (place, layer) in (0u32..).zip(&state.layers) {
        let vectors = sealer.vectors(layer, place, &mut sealed)?;
        let words = sealer.words(layer, place, state.bound(), is_hurried(inner, state), &mut sealed)?;
        layers.push(LayerFiles { vectors, words });
    }
    let applied =
        Applied { position: state.head.position, commit: state.head.commit, head: state.head.hash, blob: Vec::new() };
    let manifest = sealed.manifest_rows()?;
    let tree = tree::new_rows(&inner.log, state)?;
    let meta = (RowKey::new(tables::META, &[]), Some(codec::encode(&state.meta)?));
    let rows = frozen.rows.iter().map(|(key, value)| (key.clone(), value.cloned()));
    let others = manifest.into_iter().chain(tree).chain([meta]).map(|(key, value)| (key, value.map(SmallBytes::from)));
    frozen.catalog.checkpoint(rows.chain(others), &applied)?;
    Ok(Written { chunks, layers, sealed })
}

/// Whether writers have come so far since a state was set aside that they will soon wait: then merging is left to a later
/// checkpoint.
fn is_hurried(inner: &Inner, frozen: &State) -> bool {
    let since = inner.log.end().0.saturating_sub(frozen.head.position.0);
    since >= inner.options.checkpoint_bytes.min(inner.options.max_tail_bytes) / 2
}

/// Puts the written files in the place of what was set aside, in the newest state.
fn thaw(inner: &Inner, frozen: &Frozen, written: Written) -> Result<()> {
    let base = frozen.catalog.snapshot()?;
    frozen.state.hand_on_adjacency(&frozen.rows, &base);
    let mut writer = inner.lock_writer();
    if writer.rederived != frozen.rederived {
        writer.checkpoint_running = false;
        drop(writer);
        for path in written.sealed.paths(&inner.files) {
            let _ = inner.files.vfs.remove(&path);
        }
        return Ok(());
    }
    let mut state = writer.state.as_ref().clone();
    state.rows.thaw(base);
    state.attributes.thaw(written.chunks);
    for (layer, files) in state.layers.iter_mut().zip(written.layers) {
        if let (Some(vectors), Some(segments)) = (&mut layer.vectors, files.vectors) {
            vectors.segments = segments;
            let tail = VectorTail::from(vectors.tail.clone());
            if let Some(last) = frozen.state.bound().checked_sub(1) {
                tail.discard_through(last);
            }
            vectors.tail = tail.view();
        }
        layer.words.segments = files.words;
        // The tails but the last were written.
        let last = layer.words.tails.len().saturating_sub(1);
        layer.words.tails.drain(..last);
    }
    finish(inner, &mut writer, state);
    let end = writer.state.head.position;
    drop(writer);
    inner.publish();
    written.sealed.remove_dropped(&inner.files);
    // States that hold what was set aside are hidden now, and not by a writer, who would have to let go of it all.
    inner.log.sync_to(end)?;
    inner.publish();
    Ok(())
}

/// Puts what was set aside back, after a checkpoint that failed; says whether it is no longer needed.
fn unfreeze(inner: &Inner, frozen: &Frozen) -> bool {
    let mut writer = inner.lock_writer();
    if writer.rederived != frozen.rederived {
        writer.checkpoint_running = false;
        writer.frozen_bytes = 0;
        return true;
    }
    let mut state = writer.state.as_ref().clone();
    state.rows.unfreeze();
    state.attributes.unfreeze();
    writer.tail_records += 1;
    writer.tail_bytes += writer.frozen_bytes;
    finish(inner, &mut writer, state);
    drop(writer);
    inner.publish();
    false
}

fn finish(inner: &Inner, writer: &mut Writer, state: State) {
    writer.checkpoint_running = false;
    writer.frozen_bytes = 0;
    inner.replace(writer, state);
    inner.gate.note_progress();
}

/// Notes in the catalog that the log ends cleanly where it ends now, with `state` in the checkpoint before it.
pub(crate) fn note_clean_end(inner: &Inner, state: &State) -> Result<()> {
    let head = inner.log.head();
    let applied = Applied { position: head.position, commit: head.commit, head: head.hash, blob: Vec::new() };
    let totals = (RowKey::new(tables::META, &[]), Some(codec::encode(&state.meta)?));
    Ok(catalog(inner)?.checkpoint([totals], &applied)?)
}

/// The catalog of a database open for writing.
pub(crate) fn catalog(inner: &Inner) -> Result<Arc<Catalog>> {
    inner.catalog.load_full().ok_or(Error::ReadOnly)
}

/// The derived files that a catalog's manifest names, opened and checked.
pub(crate) fn open_files(
    inner: &crate::files::Files,
    state: &mut State,
    database: [u8; 16],
    access: Access,
) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut chunks = Vec::new();
    state.prepare_vectors()?;
    let mut vectors: [Vec<Arc<VectorSegment>>; 3] = Default::default();
    let mut words: [Vec<Arc<WordSegment>>; 3] = Default::default();
    for (_, value) in state.scan(tables::MANIFEST, &[])? {
        let row: ManifestRow = codec::decode(&value)?;
        let (form, path, identity) = inner.of_manifest(&row, database)?;
        let layer = row.place as usize;
        let known_layer = || Error::Corrupt { what: format!("the manifest names a segment of layer {}", row.place) };
        match form {
            Form::Columns => {
                let columns = Columns::open(inner.vfs.as_ref(), &path, &identity)?;
                columns.check_access(access)?;
                chunks.push(Chunk::new(row.place, columns)?);
            }
            Form::Vectors => {
                let spec =
                    state.layers.get(layer).and_then(|layer| layer.vectors.as_ref()).map(|vectors| vectors.tail.spec());
                let spec = spec.ok_or_else(known_layer)?;
                let file = SegmentFile::open(inner.vfs.as_ref(), &path, VECTOR_SEGMENT_KIND, &identity)?;
                file.check_access(access)?;
                vectors.get_mut(layer).ok_or_else(known_layer)?.push(Arc::new(VectorSegment::open(file, &spec)?));
            }
            Form::Words => {
                let file = SegmentFile::open(inner.vfs.as_ref(), &path, WORD_SEGMENT_KIND, &identity)?;
                file.check_access(access)?;
                words.get_mut(layer).ok_or_else(known_layer)?.push(Arc::new(WordSegment::open(file)?));
            }
        }
        paths.push(path);
    }
    state.attributes = AttributeStore::open(in_order(chunks)?);
    for layer in Layer::ALL {
        let index = &mut state.layers[*layer as usize];
        if let Some(of_layer) = &mut index.vectors {
            let mut segments = std::mem::take(&mut vectors[*layer as usize]);
            // Oldest first; one that was made again has a late generation.
            segments.sort_by_key(|segment| *segment.id_range().start());
            of_layer.segments = Arc::new(segments);
        }
        let mut segments = std::mem::take(&mut words[*layer as usize]);
        by_size(&mut segments);
        index.words.segments = Arc::new(segments);
    }
    Ok(paths)
}

/// The chunks if they are in order, without gaps.
fn in_order(chunks: Vec<Chunk>) -> Result<Vec<Chunk>> {
    for (expected, chunk) in (0u32..).zip(&chunks) {
        let number = chunk.number();
        if number != expected {
            return Err(Error::Corrupt {
                what: format!("the manifest names columns {number} where {expected} are next"),
            });
        }
    }
    Ok(chunks)
}
