//! Rebuilding: one pass over the whole log writes all derived files anew, except segments that the log confirms
//! ([`ReusedSegments`]).
//!
//! ```text
//! read, verify, apply ─┬─ rows and attributes of a batch ──► catalog and columns           (one thread)
//!   (calling thread)   └─ a full tail of words           ──► word segments, then merges    (several threads)
//! ```
//!
//! A batch ends when its changes fill an eighth of `memory_limit`; a thread writes its rows and attributes while the
//! next batch is applied. Words take most of the time and no query runs during a rebuild: any free thread takes a full
//! tail, analyses it in bulk ([`BulkWords`]) and writes its segment; eight segments of similar size merge into one.
//!
//! 1. Records are applied in order by the code that every opening runs, so the state is the same.
//! 2. No new file is visible before the log has been read to its end: the catalog is renamed into place last, and it
//!    alone names the segments. A damaged log or a crash costs only the new files.
//! 3. The options bound the memory, independently of the log's length.

use crate::core::files::{Files, Form};
use crate::core::memory::{ITEM_BYTES, ROW_BYTES};
use crate::derive::derived_writer::{DerivedWriter, MAX_SEGMENTS, ManifestChanges};
use crate::derive::maintenance::applied_at;
use crate::derive::retained_log::RetainedBase;
use crate::derive::reuse::ReusedSegments;
use crate::model::item::{ItemId, Layer};
use crate::model::space::Space;
use crate::options::Options;
use crate::records::record::{ItemRecord, Record, VectorRecord};
use crate::records::tables::{self, ManifestRow};
use crate::state::State;
use crate::state::attributes::{AttributeStore, Chunk};
use crate::state::covered_items::CoveredItems;
use crate::state::layers::{LayerVectors, by_size};
use crate::state::record_tree::Blocks;
use crate::state::replay::{Decoded, replay_rows};
use crate::{Error, Result};
use crossbeam::channel::{Receiver, Sender};
use holotype_index::words::{Analyzer, BulkWords, WordSegment, WordTail};
use holotype_index::{TailView, VectorTail};
use holotype_storage::SmallBytes;
use holotype_storage::catalog::{Applied, Catalog};
use holotype_storage::codec;
use holotype_storage::features::{Access, VECTORS_APART};
use holotype_storage::log::{Head, Leaf, Log, PayloadEnds};
use holotype_storage::overlay::{Overlay, RowKey, View};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

/// Vectors are sealed when they fill this share of `memory_limit`, but not fewer than so many.
const VECTOR_SHARE: u64 = 8;
const FEWEST_SEALED: u64 = 256;

/// The number of word segments of one level that merge into one.
const MERGED_AT_ONCE: usize = 8;

/// The approximate memory of a thread that writes word segments.
const WORD_THREAD_BYTES: u64 = 24 << 20;

/// The result of a rebuild before its files have their names.
pub(crate) struct Rebuilt {
    /// The state at the end of the log; all of it is in files.
    pub(crate) state: State,
    /// The number of reused segments.
    pub(crate) reused: usize,
    catalog: Catalog,
    changes: ManifestChanges,
    blocks: Blocks,
    generation: u64,
}

/// The result of one pass over the log.
enum Attempt<T> {
    Complete(T, Box<Rebuilt>),
    /// The log contradicts the reused segments of these generations.
    InvalidReuse(BTreeSet<u64>),
}

/// Rebuilds all derived files from the log. `read` reads the log: it passes each transaction to its first argument on a
/// reading thread, then to its second in order. With `keep`, segments that the log confirms are reused; if the end of
/// the log contradicts one, the pass is repeated without it. Also returns the result of the last `read`.
///
/// # Errors
/// Errors of reading and writing; the new files are then removed.
pub(crate) fn rebuild<T>(
    files: &Files,
    options: &Options,
    keep: bool,
    mut read: impl FnMut(&mut dyn FnMut(&Decoded) -> Result<()>) -> Result<T>,
) -> Result<(T, Rebuilt)> {
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir(), Access::Write)?;
    let Some(database) = id else {
        // Reading reports why the log has no header.
        read(&mut |_| Ok(()))?;
        return Err(Error::Corrupt { what: "the log's first segment has no valid header".to_owned() });
    };
    files.create_dirs()?;
    let before = files.newest_generation();
    let generation = AtomicU64::new(files.generation_apart()?);
    let scorer = options.accelerator.scorer();
    let files_writer = DerivedWriter {
        files,
        options,
        scorer: scorer.as_ref(),
        database,
        generation: &generation,
        head: Head::default(),
    };
    let mut reused = if keep { ReusedSegments::find(files, database) } else { ReusedSegments::default() };
    let clean_up = || {
        Catalog::discard(files.vfs.as_ref(), &files.catalog());
        // The next opening removes what cannot be removed now.
        let _ = files.remove_newer(before);
    };
    loop {
        match rebuild_with(files_writer, &reused, &mut read) {
            Ok(Attempt::Complete(read, rebuilt)) => return Ok((read, *rebuilt)),
            Ok(Attempt::InvalidReuse(invalid)) => {
                clean_up();
                reused.discard(&invalid);
            }
            Err(error) => {
                clean_up();
                return Err(error);
            }
        }
    }
}

fn rebuild_with<T>(
    files_writer: DerivedWriter<'_>,
    reused: &ReusedSegments,
    read: &mut impl FnMut(&mut dyn FnMut(&Decoded) -> Result<()>) -> Result<T>,
) -> Result<Attempt<T>> {
    let (files, options) = (files_writer.files, files_writer.options);
    let catalog_options = options.catalog();
    let catalog = Catalog::begin(files.vfs.as_ref(), &files.catalog(), files_writer.database, &catalog_options)?;
    let words = WordSegmentLevels::default();
    let covered_items = reused.covered_items();
    let made = std::thread::scope(|scope| {
        let mut rebuilder = Rebuilder::new(files_writer, (&covered_items, reused.origins()), &catalog, &words, scope)?;
        if let Some(base) = RetainedBase::open(files)? {
            rebuilder.apply_retained(&base)?;
        }
        let done = read(&mut |transaction| rebuilder.apply(transaction))?;
        let invalid = reused.invalid(&rebuilder.state, &rebuilder.unseen_origins, rebuilder.reembedded)?;
        if !invalid.is_empty() {
            return Ok(Err(invalid));
        }
        let (mut state, mut changes, blocks) = rebuilder.finish()?;
        changes.added.append(&mut reused.attach(&mut state)?);
        Ok::<_, Error>(Ok((done, state, changes, blocks)))
    })?;
    Ok(match made {
        Err(invalid) => Attempt::InvalidReuse(invalid),
        Ok((done, state, changes, blocks)) => {
            let generation = files_writer.generation.load(Ordering::Relaxed);
            Attempt::Complete(
                done,
                Box::new(Rebuilt { state, reused: reused.len(), catalog, changes, blocks, generation }),
            )
        }
    })
}

impl Rebuilt {
    /// Renames the catalog into place and removes the old files. Returns the state, the catalog and the newest
    /// generation.
    pub(crate) fn install(mut self, files: &Files) -> Result<(State, Catalog, u64)> {
        let state = &self.state;
        let meta = (RowKey::new(tables::META, &[]), Some(codec::encode(&state.meta)?));
        let extent = self.blocks.extent_row()?.map(|(key, row)| (key, Some(row)));
        let rows = self.changes.manifest_rows()?.into_iter().chain(extent).chain([meta]);
        // An empty log has no checkpoint.
        if state.head.commit.0 > 0 {
            self.catalog.checkpoint(rows, &applied_at(state.head)?)?;
        }
        if state.vector_epoch()?.is_some() {
            self.catalog.set_incompatible(VECTORS_APART)?;
        }
        self.catalog.put_in_place(files.vfs.as_ref())?;
        let keep: Vec<PathBuf> = self.changes.paths(files).collect();
        files.remove_other(&keep)?;
        self.state.rows.thaw(self.catalog.snapshot()?);
        Ok((self.state, self.catalog, self.generation))
    }
}

/// The changes of one batch, to be written by a thread.
struct Batch {
    rows: Overlay,
    tree: Vec<(RowKey, Option<Vec<u8>>)>,
    attributes: AttributeStore,
    bound: u32,
    applied: Applied,
}

type Written = (Vec<Chunk>, ManifestChanges);

/// Applies the records and hands batches to the writing threads.
struct Rebuilder<'scope, 'env> {
    files_writer: DerivedWriter<'env>,
    catalog: &'env Catalog,
    words: &'env WordSegmentLevels,
    scope: &'scope Scope<'scope, 'env>,
    /// The items in reused segments, and the heads those were made at that the log has not passed yet.
    covered_items: &'env [CoveredItems; 3],
    unseen_origins: Vec<Head>,
    state: State,
    blocks: Blocks,
    /// The records of the log, once vectors are linked.
    payloads: Option<PayloadEnds>,
    /// Vectors that are not in force yet, by epoch and item, and the last commit that put some in force.
    staged_vectors: BTreeMap<u64, BTreeMap<u32, Vec<u8>>>,
    reembedded: Option<u64>,
    /// Rows of the record tree for the next batch.
    tree: Vec<(RowKey, Option<Vec<u8>>)>,
    changes: ManifestChanges,
    /// The thread that writes the previous batch.
    writing: Option<ScopedJoinHandle<'scope, Result<Written>>>,
    tails: Sender<FullTail>,
    /// The receiving end of `tails`, kept until the worker threads start.
    tail_receiver: Option<Receiver<FullTail>>,
    workers: Vec<ScopedJoinHandle<'scope, Result<()>>>,
}

impl<'scope, 'env> Rebuilder<'scope, 'env> {
    fn new(
        files_writer: DerivedWriter<'env>,
        (covered_items, unseen_origins): (&'env [CoveredItems; 3], Vec<Head>),
        catalog: &'env Catalog,
        words: &'env WordSegmentLevels,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Result<Self> {
        let mut state = State::empty(None)?;
        state.rows = View::new(Some(catalog.snapshot()?));
        let (tails, tail_receiver) = crossbeam::channel::bounded(1);
        Ok(Rebuilder {
            files_writer,
            catalog,
            words,
            scope,
            covered_items,
            unseen_origins,
            state,
            blocks: Blocks::default(),
            payloads: None,
            staged_vectors: BTreeMap::new(),
            reembedded: None,
            tree: Vec::new(),
            changes: ManifestChanges::default(),
            writing: None,
            tails,
            tail_receiver: Some(tail_receiver),
            workers: Vec::new(),
        })
    }

    /// Applies the retained records of a log whose beginning was removed.
    fn apply_retained(&mut self, base: &RetainedBase) -> Result<()> {
        base.put_tree(&mut self.state)?;
        self.blocks = Blocks::after(&self.state)?;
        for leaf in base.log().leaves(self.blocks.read_from(), base.head().position) {
            self.take_leaf(leaf?)?;
        }
        for transaction in base.transactions()? {
            self.apply(&transaction?.try_into()?)?;
        }
        Ok(())
    }

    fn take_leaf(&mut self, leaf: Leaf) -> Result<()> {
        let tree = &mut self.tree;
        self.blocks.push(leaf, &self.state, &mut |key, value| {
            tree.push((RowKey::new(tables::TREE, key), Some(value.to_vec())));
            Ok(())
        })
    }

    fn apply(&mut self, transaction: &Decoded) -> Result<()> {
        let covered_items = self.covered_items;
        let is_wanted =
            |item: &ItemRecord| !item.kind().is_ok_and(|kind| covered_items[kind.layer() as usize].covers(item));
        let own = replay_rows(&mut self.state, transaction, &is_wanted)?;
        self.files_writer.head = self.state.head;
        self.take_vectors(transaction)?;
        self.unseen_origins.retain(|head| *head != self.state.head);
        let queued_len = self.state.index_items_but(self.covered_items, &own)?;
        for leaf in &transaction.leaves {
            self.take_leaf(*leaf)?;
        }
        let limit = self.files_writer.options.memory_limit;
        if queued_len as u64 >= limit / 128 {
            self.dispatch_word_tails()?;
        }
        self.write_vector_segments(self.files_writer.options.max_unsealed_vectors / 2)?;
        let rows = self.state.rows.active();
        let changed = rows.content_len() as u64
            + rows.count() as u64 * ROW_BYTES
            + self.state.attributes.current_count() as u64 * ITEM_BYTES;
        if changed >= limit / 8 { self.write_batch() } else { Ok(()) }
    }

    /// Collects the vectors of a transaction that are not in force yet, and indexes those that are. If it puts an epoch
    /// in force, the vectors of the index are replaced by those of the epoch.
    fn take_vectors(&mut self, transaction: &Decoded) -> Result<()> {
        let reembeds = transaction.records().any(|record| matches!(record, Record::Reembed(_)));
        let in_force = (!reembeds).then(|| self.state.epoch_in_force()).transpose()?;
        for record in transaction.records() {
            match record {
                Record::Vector(VectorRecord { epoch, .. }) if Some(*epoch) == in_force => {}
                Record::Vector(VectorRecord { epoch, item, vector: Some(vector) }) => {
                    self.staged_vectors.entry(*epoch).or_default().insert(*item, vector.clone());
                }
                Record::Reembed(record) => self.replace_vectors(record.epoch)?,
                _ => {}
            }
        }
        match reembeds {
            true => Ok(()),
            false => self.state.index_filled(transaction.records(), Some(self.covered_items)),
        }
    }

    fn replace_vectors(&mut self, epoch: u64) -> Result<()> {
        let form = Form::Vectors;
        let old = self.changes.added.iter().filter(|row| row.form == form.byte());
        let replaced = old.map(|row| (form, row.place, row.generation)).collect();
        self.record_written(ManifestChanges { added: Vec::new(), replaced });
        let vectors = std::mem::take(&mut self.staged_vectors).remove(&epoch).unwrap_or_default();
        self.reembedded = Some(self.state.head.commit.0);
        self.state.vectors_due = false;
        let Some(space) = self.state.meta.space.as_deref().map(Space::try_from).transpose()? else { return Ok(()) };
        for layer in Layer::ALL {
            let tail = VectorTail::from(TailView::empty(space.spec()));
            let covered = &self.covered_items[*layer as usize].vectors;
            for (item, bytes) in &vectors {
                let attributes = self.state.attributes(ItemId(*item))?;
                if attributes.layer() == *layer && !attributes.redacted && !covered.contains(*item) {
                    tail.push(*item, &space.decode(bytes)?)?;
                }
            }
            self.state.layers[*layer as usize].vectors =
                Some(LayerVectors { segments: Arc::default(), tail: tail.view() });
        }
        Ok(())
    }

    /// Starts writing the present batch after the previous one is written.
    fn write_batch(&mut self) -> Result<()> {
        self.wait_for_batch()?;
        let batch = self.freeze_batch();
        let (files_writer, catalog) = (self.files_writer, self.catalog);
        self.writing = Some(files_writer.files.spawn(self.scope, move || batch.write(files_writer, catalog))?);
        Ok(())
    }

    fn freeze_batch(&mut self) -> Batch {
        let state = &mut self.state;
        let rows = state.rows.freeze();
        state.attributes.freeze();
        let (attributes, bound) = (state.attributes.clone(), state.bound());
        let Head { position, commit, hash } = state.head;
        // The last checkpoint of a rebuild is told apart from others; these are not seen.
        let applied = Applied { position, commit, head: hash, blob: Vec::new() };
        Batch { rows, tree: std::mem::take(&mut self.tree), attributes, bound, applied }
    }

    fn wait_for_batch(&mut self) -> Result<()> {
        match self.writing.take() {
            Some(writing) => self.install_written(joined(writing)?),
            None => Ok(()),
        }
    }

    fn install_written(&mut self, (chunks, changes): Written) -> Result<()> {
        self.state.rows.thaw(self.catalog.snapshot()?);
        self.state.attributes.thaw(chunks);
        self.record_written(changes);
        Ok(())
    }

    /// Records the written files and removes those they replace, which no manifest names.
    fn record_written(&mut self, mut changes: ManifestChanges) {
        changes.remove_replaced(self.files_writer.files);
        self.changes.added.append(&mut changes.added);
        for (form, place, generation) in changes.replaced {
            let is_it = |row: &ManifestRow| (row.form, row.place, row.generation) == (form.byte(), place, generation);
            self.changes.added.retain(|row| !is_it(row));
        }
    }

    /// The records of the log, which is being read and has no handle yet.
    fn payloads(&mut self) -> Result<PayloadEnds> {
        if let Some(payloads) = &self.payloads {
            return Ok(payloads.clone());
        }
        let files = self.files_writer.files;
        Ok(self.payloads.insert(PayloadEnds::open(&files.vfs, &files.log_dir())?).clone())
    }

    /// Writes a segment for every layer whose tail holds at least `least` vectors.
    fn write_vector_segments(&mut self, least: u64) -> Result<()> {
        let limit = self.files_writer.options.memory_limit;
        for (place, number) in (0_u32..).zip(0..self.state.layers.len()) {
            let layer = &self.state.layers[number];
            let is_due = |tail: &TailView| {
                let within_memory = limit / VECTOR_SHARE / (tail.spec().dim * size_of::<f32>()) as u64;
                !tail.is_empty() && tail.len() as u64 >= least.min(within_memory.max(FEWEST_SEALED))
            };
            if layer.vectors.as_ref().is_none_or(|vectors| !is_due(&vectors.tail)) {
                continue;
            }
            let mut changes = ManifestChanges::default();
            let log = self.payloads()?;
            let log = self.state.vectors_in_log(log);
            let segments = self.files_writer.vectors(&self.state.layers[number], &log, place, &mut changes)?;
            if let (Some(vectors), Some(segments)) = (&mut self.state.layers[number].vectors, segments) {
                vectors.segments = segments;
                vectors.tail = TailView::empty(vectors.tail.spec());
            }
            self.record_written(changes);
        }
        Ok(())
    }

    /// Hands the full word tails to the worker threads, which start with the first tail.
    fn dispatch_word_tails(&mut self) -> Result<()> {
        if let Some(tail_receiver) = self.tail_receiver.take() {
            for _ in 0..word_threads(self.files_writer.options) {
                let (files_writer, words, tail_receiver) = (self.files_writer, self.words, tail_receiver.clone());
                let work = move || words.work(files_writer, &tail_receiver);
                self.workers.push(files_writer.files.spawn(self.scope, work)?);
            }
        }
        for full in self.take_full_tails() {
            if self.tails.send(full).is_err() {
                // Every worker has failed; the first error is the cause.
                self.workers.drain(..).try_for_each(joined)?;
                return Err(Error::Cancelled("writing word segments"));
            }
        }
        Ok(())
    }

    fn take_full_tails(&mut self) -> Vec<FullTail> {
        let (head, bound) = (self.files_writer.head, self.state.bound());
        let mut full = Vec::new();
        for layer in Layer::ALL {
            let words = &mut self.state.layers[*layer as usize].words;
            if words.tails.iter().any(|tail| tail.document_count() > 0) {
                let tails = std::mem::replace(&mut words.tails, vec![Arc::new(WordTail::new(words.analyzer))]);
                full.extend(tails.into_iter().map(|tail| FullTail { layer: *layer, tail, head, bound }));
            }
        }
        full
    }

    /// Writes the last batch and the last tails, and joins all threads.
    fn finish(mut self) -> Result<(State, ManifestChanges, Blocks)> {
        self.wait_for_batch()?;
        if !self.state.rows.active().is_empty() || !self.tree.is_empty() {
            let written = self.freeze_batch().write(self.files_writer, self.catalog)?;
            self.install_written(written)?;
        }
        self.write_vector_segments(0)?;
        let mut bulk = BulkWords::new(self.state.layers[0].words.analyzer);
        for full in self.take_full_tails() {
            self.words.seal(self.files_writer, &mut bulk, full)?;
        }
        let Rebuilder { files_writer, words, mut state, mut changes, blocks, tails, tail_receiver, workers, .. } = self;
        drop((tails, tail_receiver));
        workers.into_iter().try_for_each(joined)?;
        for (place, layer) in (0_u8..).zip(&mut state.layers) {
            let segments = words.finish(files_writer, layer.words.analyzer, place, &mut changes)?;
            layer.words.segments = Arc::new(segments);
        }
        Ok((state, changes, blocks))
    }
}

impl Batch {
    fn write(self, files_writer: DerivedWriter<'_>, catalog: &Catalog) -> Result<Written> {
        let mut changes = ManifestChanges::default();
        let chunks = files_writer.chunks(&self.attributes, self.bound, &mut changes)?;
        let rows = self.rows.iter().map(|(key, value)| (key.clone(), value.cloned()));
        let tree = self.tree.into_iter().map(|(key, value)| (key, value.map(SmallBytes::from)));
        catalog.checkpoint(rows.chain(tree), &self.applied)?;
        Ok((chunks, changes))
    }
}

/// A word tail to be written as a segment.
struct FullTail {
    layer: Layer,
    tail: Arc<WordTail>,
    /// The head of the log when the tail was full.
    head: Head,
    bound: u32,
}

/// The word segments written so far, by layer and by how often their items were merged.
#[derive(Default)]
struct WordSegmentLevels(Mutex<Levels>);

/// By layer and level.
type Levels = BTreeMap<(u8, u32), Vec<Arc<WordSegment>>>;

impl WordSegmentLevels {
    fn work(&self, files_writer: DerivedWriter<'_>, tail_receiver: &Receiver<FullTail>) -> Result<()> {
        let mut bulk: Option<BulkWords> = None;
        for full in tail_receiver {
            let bulk = bulk.get_or_insert_with(|| BulkWords::new(full.tail.analyzer()));
            self.seal(files_writer, bulk, full)?;
        }
        Ok(())
    }

    fn seal(&self, files_writer: DerivedWriter<'_>, bulk: &mut BulkWords, full: FullTail) -> Result<()> {
        let FullTail { layer, tail, head, bound } = full;
        let files_writer = DerivedWriter { head, ..files_writer };
        let (place, analyzer) = (layer as u8, tail.analyzer());
        let mut segment = files_writer.word_segment(place.into(), &mut ManifestChanges::default(), |identity| {
            Ok(match Arc::try_unwrap(tail) {
                Ok(tail) => bulk.build(tail, bound, identity)?,
                Err(shared) => shared.build(bound, None, identity)?,
            })
        })?;
        for level in 0.. {
            let Some(full) = self.add(place, level, segment) else { break };
            segment = merge(files_writer, analyzer, place, full)?;
        }
        Ok(())
    }

    /// Adds a segment; returns all of its level, removed, when they are enough to merge.
    fn add(&self, place: u8, level: u32, segment: Arc<WordSegment>) -> Option<Vec<Arc<WordSegment>>> {
        let mut levels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_level = levels.entry((place, level)).or_default();
        of_level.push(segment);
        (of_level.len() >= MERGED_AT_ONCE).then(|| std::mem::take(of_level))
    }

    /// All segments of a layer, merged down to [`MAX_SEGMENTS`] and added to the manifest.
    fn finish(
        &self,
        files_writer: DerivedWriter<'_>,
        analyzer: Analyzer,
        place: u8,
        changes: &mut ManifestChanges,
    ) -> Result<Vec<Arc<WordSegment>>> {
        let levels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_layer = levels.range((place, 0)..=(place, u32::MAX));
        let mut segments: Vec<Arc<WordSegment>> = of_layer.flat_map(|(_, segments)| segments.clone()).collect();
        drop(levels);
        by_size(&mut segments);
        if segments.len() > MAX_SEGMENTS {
            let small = segments.split_off(MAX_SEGMENTS - 1);
            segments.push(merge(files_writer, analyzer, place, small)?);
        }
        let form = Form::Words.byte();
        let generations = segments.iter().map(|segment| segment.file().identity().generation);
        changes.added.extend(generations.map(|generation| ManifestRow { form, place: place.into(), generation }));
        Ok(segments)
    }
}

/// Merges segments into one and removes their files.
fn merge(
    files_writer: DerivedWriter<'_>,
    analyzer: Analyzer,
    place: u8,
    sources: Vec<Arc<WordSegment>>,
) -> Result<Arc<WordSegment>> {
    let mut changes = ManifestChanges::default();
    let origins = sources.iter().map(|segment| segment.file().origin()).collect::<Result<Vec<_>, _>>()?;
    let head = origins.into_iter().flatten().max_by_key(|head| head.position).unwrap_or(files_writer.head);
    let files_writer = DerivedWriter { head, ..files_writer };
    let all = sources.iter().map(AsRef::as_ref).collect();
    let merged = files_writer.merged_words(analyzer, all, place.into(), &mut changes, None)?;
    let generations = sources.iter().map(|segment| segment.file().identity().generation);
    changes.replaced = generations.map(|generation| (Form::Words, place.into(), generation)).collect();
    changes.remove_replaced(files_writer.files);
    Ok(merged)
}

/// The number of threads that write word segments: all cores, because no query runs during a rebuild, bounded by the
/// memory for a tail and its segment in each.
fn word_threads(options: &Options) -> usize {
    let own = std::thread::available_parallelism().map_or(1, NonZero::get);
    let room = options.memory_limit / 2 / WORD_THREAD_BYTES;
    options.background_threads.max(own.min(usize::try_from(room).unwrap_or(own))).max(1)
}

/// Joins a thread and propagates its panic.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
