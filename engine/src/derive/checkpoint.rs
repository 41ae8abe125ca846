//! Checkpoints: a background thread turns the in-memory overlay into derived files. Answers do not change.
//!
//! 1. Under the writer's lock: freeze the overlay. Later changes go to a new one.
//! 2. Without the lock: sync the log up to the frozen state; write the changed column chunks and each layer's tails as
//!    segments, each under a new name, synced; then commit one catalog transaction with the rows, the manifest and the
//!    log position. Nothing is merged here (`merge`), so a checkpoint costs what was written since the last one.
//! 3. Under the lock: replace the frozen overlay by the files, in the newest state (`thaw`).
//!
//! A crash before the end of step 2 leaves files that no manifest names; the next opening removes them.

use crate::core::checkpointer::Checkpointer;
use crate::core::files::Form;
use crate::core::{Core, Writer};
use crate::derive::derived_writer::{DerivedWriter, ManifestChanges};
use crate::derive::maintenance::applied_at;
use crate::derive::{merge, repair};
use crate::model::item::Layer;
use crate::records::tables::{self, ManifestRow};
use crate::state::State;
use crate::state::attributes::{AttributeStore, Chunk};
use crate::state::layers::{LayerIndex, by_size};
use crate::state::record_tree;
use crate::{Error, Result};
use holotype_index::segment::layout::KIND as VECTOR_SEGMENT_KIND;
use holotype_index::words::{WORD_SEGMENT_KIND, WordSegment, WordTail};
use holotype_index::{VectorSegment, VectorTail};
use holotype_storage::SmallBytes;
use holotype_storage::catalog::Catalog;
use holotype_storage::codec;
use holotype_storage::columns::Columns;
use holotype_storage::features::Access;
use holotype_storage::overlay::{Overlay, RowKey};
use holotype_storage::segment_file::SegmentFile;
use holotype_storage::vfs::return_freed_memory;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// The frozen state that a checkpoint writes.
struct Frozen {
    state: Arc<State>,
    rows: Overlay,
    catalog: Arc<Catalog>,
    /// The number of online rebuilds when the state was frozen. If it has grown, the checkpoint is obsolete.
    rebuild_count: u64,
}

/// The derived files a checkpoint wrote.
struct Written {
    chunks: Vec<Chunk>,
    layers: Vec<LayerFiles>,
    changes: ManifestChanges,
}

/// The segments that a checkpoint adds to a layer.
struct LayerFiles {
    vectors: Option<Arc<VectorSegment>>,
    words: Vec<Arc<WordSegment>>,
}

/// Requests a checkpoint in the background.
pub(crate) fn start(core: &Arc<Core>) {
    Checkpointer::request(core, |core| {
        let done = run_unless_made(core);
        return_freed_memory();
        if !core.options.append_only {
            merge::start(core);
        }
        done
    });
}

/// Writes a checkpoint, unless another handle has just written one.
fn run_unless_made(core: &Arc<Core>) -> Result<()> {
    let _turn = core.checkpointer.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let maintenance = core.maintain()?;
    if maintenance.moved && !repair::is_due(core) && !core.is_checkpoint_due(&core.lock_writer()) {
        core.throttle.signal_progress();
        return Ok(());
    }
    run_maintaining(core)
}

/// Writes a checkpoint of the newest appended state after a running one has finished. Damaged segments are repaired
/// first, and once more if the checkpoint is the first to read one.
pub(crate) fn run(core: &Arc<Core>) -> Result<()> {
    let _turn = core.checkpointer.turn.lock().unwrap_or_else(PoisonError::into_inner);
    if core.options.takes_turns() && !is_anything_new(core)? {
        // Opening the catalog for writing and closing it again would only make it larger.
        return Ok(());
    }
    finish_forget(core)?;
    let _maintenance = core.maintain()?;
    run_maintaining(core)
}

/// Finishes a forget of this exclusive handle whose derived files could not be written.
fn finish_forget(core: &Arc<Core>) -> Result<()> {
    let newest = core.published.load();
    if !core.options.takes_turns() && newest.meta.purged < newest.meta.forgets {
        drop(core.lock_newest()?);
    }
    Ok(())
}

/// True if the log has what no checkpoint holds, or a damaged segment awaits repair.
fn is_anything_new(core: &Arc<Core>) -> Result<bool> {
    let (_turn, writer) = core.lock_newest()?;
    let has_all = writer.tail_records == 0 && !writer.checkpoint_running;
    drop(writer);
    Ok(!has_all || repair::is_due(core))
}

fn run_maintaining(core: &Arc<Core>) -> Result<()> {
    let repaired = repair::repair_damaged(core);
    match run_with_turn(core) {
        Err(_) if repair::is_due(core) => repair::repair_damaged(core).and_then(|()| run_with_turn(core)),
        done => done.and(repaired),
    }
}

fn run_with_turn(core: &Arc<Core>) -> Result<()> {
    let Some(frozen) = freeze(core)? else { return Ok(()) };
    match write(core, &frozen) {
        Ok(written) => thaw(core, &frozen, written),
        Err(error) => {
            let replaced = unfreeze(core, &frozen);
            if replaced { Ok(()) } else { Err(error) }
        }
    }
}

/// Freezes the overlay. `None` without changes, after a checkpoint that panicked, and on a poisoned handle.
fn freeze(core: &Core) -> Result<Option<Frozen>> {
    let mut writer = core.lock_writer();
    if writer.checkpoint_running || writer.tail_records == 0 || writer.poisoned.is_some() {
        return Ok(None);
    }
    let catalog = catalog(core)?;
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
    core.replace(&mut writer, state);
    let frozen = Frozen { state: Arc::clone(&writer.state), rows, catalog, rebuild_count: writer.rebuild_count };
    drop(writer);
    core.publish();
    Ok(Some(frozen))
}

/// Writes the files and the catalog transaction of a frozen state.
fn write(core: &Core, frozen: &Frozen) -> Result<Written> {
    let state = &frozen.state;
    core.log.sync_to(state.head.position)?;
    core.record_durable(state.head);
    let files_writer = DerivedWriter::of(core, state.head);
    let mut changes = ManifestChanges::default();
    // The files that this reads must have been whole until here: what comes from a cut one is not written.
    let chunks = core.unless_cut(|| files_writer.chunks(&state.attributes, state.bound(), &mut changes))?;
    let mut layers = Vec::new();
    for (place, layer) in (0u32..).zip(&state.layers) {
        let vectors = files_writer.seal_vectors(layer, place, &mut changes)?;
        let words = files_writer.seal_words(layer, place, state.bound(), &mut changes)?;
        layers.push(LayerFiles { vectors, words });
    }
    let applied = applied_at(state.head)?;
    let manifest = changes.manifest_rows()?;
    let tree = record_tree::new_rows(&core.log, state)?;
    let meta = (RowKey::new(tables::META, &[]), Some(codec::encode(&state.meta)?));
    let rows = frozen.rows.iter().map(|(key, value)| (key.clone(), value.cloned()));
    let others = manifest.into_iter().chain(tree).chain([meta]).map(|(key, value)| (key, value.map(SmallBytes::from)));
    frozen.catalog.checkpoint(rows.chain(others), &applied)?;
    Ok(Written { chunks, layers, changes })
}

/// Replaces the frozen overlay by the written files in the newest state.
fn thaw(core: &Core, frozen: &Frozen, written: Written) -> Result<()> {
    let base = core.base_of(&frozen.catalog)?;
    frozen.state.carry_over_adjacency(&frozen.rows, &base);
    let mut writer = core.lock_writer();
    if writer.rebuild_count != frozen.rebuild_count {
        writer.checkpoint_running = false;
        drop(writer);
        for path in written.changes.paths(&core.files) {
            let _ = core.files.vfs.remove(&path);
        }
        return Ok(());
    }
    let mut state = writer.state.as_ref().clone();
    state.rows.thaw(base);
    state.attributes.thaw(written.chunks);
    let layers = state.layers.iter_mut().zip(&frozen.state.layers);
    for ((layer, frozen_layer), files) in layers.zip(written.layers) {
        // Merges may have replaced older segments meanwhile.
        if let (Some(vectors), Some(segment)) = (&mut layer.vectors, files.vectors) {
            Arc::make_mut(&mut vectors.segments).push(segment);
            let tail = VectorTail::from(vectors.tail.clone());
            if let Some(sealed) = &frozen_layer.vectors {
                tail.discard(&sealed.tail);
            }
            vectors.tail = tail.view();
        }
        Arc::make_mut(&mut layer.words.segments).extend(files.words);
        // All tails except the last are in the new segments.
        let last = layer.words.tails.len().saturating_sub(1);
        layer.words.tails.drain(..last);
    }
    finish(core, &mut writer, state);
    let end = writer.state.head.position;
    drop(writer);
    core.publish();
    written.changes.remove_replaced(&core.files);
    // Publishing here drops the last state with the frozen overlay on this thread; a writer would pay for the drop
    // otherwise.
    core.log.sync_to(end)?;
    core.publish();
    Ok(())
}

/// Merges the frozen overlay back after a failed checkpoint. Returns true if an online rebuild made the checkpoint
/// obsolete.
fn unfreeze(core: &Core, frozen: &Frozen) -> bool {
    let mut writer = core.lock_writer();
    if writer.rebuild_count != frozen.rebuild_count {
        writer.checkpoint_running = false;
        writer.frozen_bytes = 0;
        return true;
    }
    let mut state = writer.state.as_ref().clone();
    state.rows.unfreeze();
    state.attributes.unfreeze();
    writer.tail_records += 1;
    writer.tail_bytes += writer.frozen_bytes;
    finish(core, &mut writer, state);
    drop(writer);
    core.publish();
    false
}

fn finish(core: &Core, writer: &mut Writer, state: State) {
    writer.checkpoint_running = false;
    writer.frozen_bytes = 0;
    core.replace(writer, state);
    core.throttle.signal_progress();
}

/// Records in the catalog that the log ends cleanly at its present end. The catalog holds `state` already.
pub(crate) fn record_clean_end(core: &Core, state: &State) -> Result<()> {
    let head = core.log.head();
    let applied = applied_at(head)?;
    let totals = (RowKey::new(tables::META, &[]), Some(codec::encode(&state.meta)?));
    Ok(catalog(core)?.checkpoint([totals], &applied)?)
}

/// Packs the catalog of a closed log, if its checkpoints left much of the file free. Handles that still read go on with
/// the old file.
pub(crate) fn pack_catalog(core: &Core) -> Result<()> {
    let (vfs, catalog) = (core.files.vfs.as_ref(), catalog(core)?);
    if catalog.is_pack_due()? {
        catalog.pack(vfs).inspect_err(|_| Catalog::discard(vfs, &core.files.catalog()))?;
    }
    Ok(())
}

/// The catalog of a database that is open for writing, which a handle that takes turns has during maintenance.
pub(crate) fn catalog(core: &Core) -> Result<Arc<Catalog>> {
    core.catalog.load_full().ok_or(Error::ReadOnly)
}

/// Opens and checks the derived files that the manifest names and adds them to `state`. Returns their paths.
pub(crate) fn open_files(
    core: &crate::core::files::Files,
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
        let (form, path, identity) = core.of_manifest(&row, database)?;
        let layer = row.place as usize;
        let known_layer =
            || Error::Corrupt { what: format!("the manifest names a segment of unknown layer {}", row.place) };
        match form {
            Form::Columns => {
                let columns = Columns::open(core.vfs.as_ref(), &path, &identity)?;
                columns.check_access(access)?;
                chunks.push(Chunk::new(row.place, columns)?);
            }
            Form::Vectors => {
                let spec =
                    state.layers.get(layer).and_then(|layer| layer.vectors.as_ref()).map(|vectors| vectors.tail.spec());
                let spec = spec.ok_or_else(known_layer)?;
                let file = SegmentFile::open(core.vfs.as_ref(), &path, VECTOR_SEGMENT_KIND, &identity)?;
                file.check_access(access)?;
                vectors.get_mut(layer).ok_or_else(known_layer)?.push(Arc::new(VectorSegment::open(file, &spec)?));
            }
            Form::Words => {
                let file = SegmentFile::open(core.vfs.as_ref(), &path, WORD_SEGMENT_KIND, &identity)?;
                file.check_access(access)?;
                let segment = WordSegment::open(file)?;
                check_analyzer(&segment, state.layers.get(layer).ok_or_else(known_layer)?)?;
                words.get_mut(layer).ok_or_else(known_layer)?.push(Arc::new(segment));
            }
        }
        paths.push(path);
    }
    state.attributes = AttributeStore::open(in_order(chunks)?);
    for layer in Layer::ALL {
        let index = &mut state.layers[*layer as usize];
        if let Some(of_layer) = &mut index.vectors {
            let mut segments = std::mem::take(&mut vectors[*layer as usize]);
            // Oldest items first; a repaired segment has a late generation.
            segments.sort_by_key(|segment| *segment.id_range().start());
            of_layer.segments = Arc::new(segments);
        }
        let mut segments = std::mem::take(&mut words[*layer as usize]);
        by_size(&mut segments);
        index.words.segments = Arc::new(segments);
    }
    Ok(paths)
}

/// Refuses a segment of other analysis rules, whose terms no question of these rules would find.
fn check_analyzer(segment: &WordSegment, layer: &LayerIndex) -> Result<()> {
    let (expected, found) = (layer.words.analyzer.id(), segment.analyzer());
    if found == expected {
        return Ok(());
    }
    Err(holotype_index::Error::Mismatch { expected: expected.to_string(), found: found.to_string() }.into())
}

/// The chunks, checked to be numbered from 0 without gaps.
fn in_order(chunks: Vec<Chunk>) -> Result<Vec<Chunk>> {
    for (expected, chunk) in (0u32..).zip(&chunks) {
        let number = chunk.number();
        if number != expected {
            return Err(Error::Corrupt {
                what: format!("the manifest names column chunk {number}; expected chunk {expected}"),
            });
        }
    }
    Ok(chunks)
}
