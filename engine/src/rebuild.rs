//! Rebuilding: everything derived is made from the log's first record on, in new files, while the log is read; but for segments
//! that prove to be right ([`Kept`]).
//!
//! ```text
//! reading, checking, applying ─┬─ rows and attributes of a round ──► catalog and columns    (one thread)
//!      (the caller)            └─ a tail of words that is full   ──► word segments, merged  (several)
//! ```
//!
//! A round ends when what changed in memory comes to an eighth of `memory_limit`; its rows and attributes are written behind
//! the next round's back. Words are most of the work, and nobody searches them meanwhile: whoever is free takes a full tail,
//! analyses it in bulk ([`BulkWords`]) and writes its segment, and eight segments of about one size become one.
//!
//! 1. The records are applied as ever, in order: the state is the one that any other way of opening comes to.
//! 2. Nothing has a name before the log has been read to its end: the catalog is put in place last, and no manifest names the
//!    segments before. A log that is refused, or a crash, costs the new files and nothing else.
//! 3. Memory is bounded by the options, whatever the log's length.

use crate::attributes::{AttributeStore, Chunk};
use crate::database::empty_state;
use crate::files::{Files, Form};
use crate::item::Layer;
use crate::kept::{Held, Kept};
use crate::layers::by_size;
use crate::options::Options;
use crate::pressure::{ITEM_BYTES, ROW_BYTES};
use crate::proof::tree::Blocks;
use crate::record::ItemRecord;
use crate::replay::{Decoded, replay_rows};
use crate::retold::Base;
use crate::sealing::{MAX_SEGMENTS, Sealed, Sealer};
use crate::state::State;
use crate::tables::{self, ManifestRow};
use crate::{Error, Result};
use crossbeam::channel::{Receiver, Sender};
use holotype_index::TailView;
use holotype_index::words::{Analyzer, BulkWords, WordSegment, WordTail};
use holotype_storage::SmallBytes;
use holotype_storage::catalog::{Applied, Catalog};
use holotype_storage::codec;
use holotype_storage::features::Access;
use holotype_storage::log::{Head, Leaf, Log};
use holotype_storage::overlay::{Overlay, RowKey, View};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

/// Segments of one size that become one.
const MERGED_AT_ONCE: usize = 8;

/// About what a thread takes that makes word segments.
const WORD_THREAD_BYTES: u64 = 24 << 20;

/// What a rebuild made, not yet named.
pub(crate) struct Rebuilt {
    /// The state at the end of the log, all of it in files.
    pub(crate) state: State,
    /// How many segments were kept.
    pub(crate) kept: usize,
    catalog: Catalog,
    sealed: Sealed,
    blocks: Blocks,
    generation: u64,
}

/// Sees a transaction before it is applied.
pub(crate) type Prepare<'a> = dyn Fn(&mut Decoded) + Sync + 'a;

/// What came of reading the log once.
enum Outcome<T> {
    Made(T, Box<Rebuilt>),
    /// Segments of these generations were kept, and are not right.
    Wrong(BTreeSet<u64>),
}

/// Reads the log with `read`, which shows each transaction to the first of two functions, on a thread of its own, and then hands
/// them on in order to the second; and makes everything derived of them. With `keep` segments stay that are right. Also returns
/// what `read` does, which is asked again where a segment turns out to be wrong.
///
/// # Errors
/// Of reading or writing; what was written is removed again.
pub(crate) fn rebuild<T>(
    files: &Files,
    options: &Options,
    keep: bool,
    mut read: impl FnMut(&Prepare<'_>, &mut dyn FnMut(&Decoded) -> Result<()>) -> Result<T>,
) -> Result<(T, Rebuilt)> {
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir(), Access::Write)?;
    let Some(database) = id else {
        // Nothing can be made; reading says what is wrong.
        read(&|_| {}, &mut |_| Ok(()))?;
        return Err(Error::Corrupt { what: "the log's first segment has no valid header".to_owned() });
    };
    files.create_dirs()?;
    let before = files.newest_generation();
    let generation = AtomicU64::new(before);
    let sealer = Sealer { files, options, database, generation: &generation, head: Head::default() };
    let mut kept = if keep { Kept::find(files, database) } else { Kept::default() };
    let clean_up = || {
        Catalog::discard(files.vfs.as_ref(), &files.catalog());
        // What cannot be removed now goes at the next opening that succeeds.
        let _ = files.remove_newer(before);
    };
    loop {
        match rebuild_with(sealer, &kept, &mut read) {
            Ok(Outcome::Made(read, rebuilt)) => return Ok((read, *rebuilt)),
            Ok(Outcome::Wrong(wrong)) => {
                clean_up();
                kept.leave(&wrong);
            }
            Err(error) => {
                clean_up();
                return Err(error);
            }
        }
    }
}

fn rebuild_with<T>(
    sealer: Sealer<'_>,
    kept: &Kept,
    read: &mut impl FnMut(&Prepare<'_>, &mut dyn FnMut(&Decoded) -> Result<()>) -> Result<T>,
) -> Result<Outcome<T>> {
    let (files, options) = (sealer.files, sealer.options);
    let catalog_options = crate::opening::catalog_options(options);
    let catalog = Catalog::begin(files.vfs.as_ref(), &files.catalog(), sealer.database, &catalog_options)?;
    let words = WordFiles::default();
    let held = kept.held();
    let made = std::thread::scope(|scope| {
        let mut rounds = Rounds::new(sealer, (&held, kept.origins()), &catalog, &words, scope)?;
        if let Some(base) = Base::open(files)? {
            rounds.begin_at(&base)?;
        }
        let done = read(&|transaction| transaction.drop_fields(&held), &mut |transaction| rounds.apply(transaction))?;
        let wrong = kept.wrong(&rounds.state, &rounds.missed)?;
        if !wrong.is_empty() {
            return Ok(Err(wrong));
        }
        let (mut state, mut sealed, blocks) = rounds.finish()?;
        sealed.added.append(&mut kept.join(&mut state)?);
        Ok::<_, Error>(Ok((done, state, sealed, blocks)))
    })?;
    Ok(match made {
        Err(wrong) => Outcome::Wrong(wrong),
        Ok((done, state, sealed, blocks)) => {
            let generation = sealer.generation.load(Ordering::Relaxed);
            Outcome::Made(done, Box::new(Rebuilt { state, kept: kept.len(), catalog, sealed, blocks, generation }))
        }
    })
}

impl Rebuilt {
    /// Gives everything its name, in the place of what was derived before. Returns the catalog and the newest generation.
    pub(crate) fn put_in_place(mut self, files: &Files) -> Result<(State, Catalog, u64)> {
        let state = &self.state;
        let meta = (RowKey::new(tables::META, &[]), Some(codec::encode(&state.meta)?));
        let extent = self.blocks.extent_row()?.map(|(key, row)| (key, Some(row)));
        let rows = self.sealed.manifest_rows()?.into_iter().chain(extent).chain([meta]);
        // Without a commit there is nothing to stand for.
        if state.head.commit.0 > 0 {
            self.catalog.checkpoint(rows, &applied(state))?;
        }
        self.catalog.put_in_place(files.vfs.as_ref())?;
        let keep: Vec<PathBuf> = self.sealed.paths(files).collect();
        files.remove_other(&keep)?;
        self.state.rows.thaw(self.catalog.snapshot()?);
        Ok((self.state, self.catalog, self.generation))
    }
}

fn applied(state: &State) -> Applied {
    let head = state.head;
    Applied { position: head.position, commit: head.commit, head: head.hash, blob: Vec::new() }
}

/// What changed in one round, on its way to the disk.
struct Round {
    rows: Overlay,
    tree: Vec<(RowKey, Option<Vec<u8>>)>,
    attributes: AttributeStore,
    bound: u32,
    applied: Applied,
}

type Written = (Vec<Chunk>, Sealed);

/// The records as they are applied, round after round.
struct Rounds<'scope, 'env> {
    sealer: Sealer<'env>,
    catalog: &'env Catalog,
    words: &'env WordFiles,
    scope: &'scope Scope<'scope, 'env>,
    /// What is in segments that are kept, and the heads they were made at that were not met so far.
    held: &'env [Held; 3],
    missed: Vec<Head>,
    state: State,
    blocks: Blocks,
    /// Rows of the tree for the next round to write.
    tree: Vec<(RowKey, Option<Vec<u8>>)>,
    sealed: Sealed,
    /// The round before, being written.
    writing: Option<ScopedJoinHandle<'scope, Result<Written>>>,
    tails: Sender<FullTail>,
    /// Where workers take tails from, until there are workers.
    waiting: Option<Receiver<FullTail>>,
    workers: Vec<ScopedJoinHandle<'scope, Result<()>>>,
}

impl<'scope, 'env> Rounds<'scope, 'env> {
    fn new(
        sealer: Sealer<'env>,
        (held, missed): (&'env [Held; 3], Vec<Head>),
        catalog: &'env Catalog,
        words: &'env WordFiles,
        scope: &'scope Scope<'scope, 'env>,
    ) -> Result<Self> {
        let mut state = empty_state(None)?;
        state.rows = View::new(Some(catalog.snapshot()?));
        let (tails, waiting) = crossbeam::channel::bounded(1);
        Ok(Rounds {
            sealer,
            catalog,
            words,
            scope,
            held,
            missed,
            state,
            blocks: Blocks::default(),
            tree: Vec::new(),
            sealed: Sealed::default(),
            writing: None,
            tails,
            waiting: Some(waiting),
            workers: Vec::new(),
        })
    }

    /// Begins with what was told again of a log whose beginning was cut off.
    fn begin_at(&mut self, base: &Base) -> Result<()> {
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
        let held = self.held;
        let is_wanted = |item: &ItemRecord| !item.kind().is_ok_and(|kind| held[kind.layer() as usize].all_of(item));
        let own = replay_rows(&mut self.state, transaction, &is_wanted)?;
        self.sealer.head = self.state.head;
        self.missed.retain(|head| *head != self.state.head);
        let waiting = self.state.index_items_but(self.held, &own)?;
        for leaf in &transaction.leaves {
            self.take_leaf(*leaf)?;
        }
        let limit = self.sealer.options.memory_limit;
        if waiting as u64 >= limit / 128 {
            self.hand_over_words()?;
        }
        self.seal_vectors(self.sealer.options.max_unsealed_vectors / 2)?;
        let rows = self.state.rows.active();
        let changed = rows.content_len() as u64
            + rows.count() as u64 * ROW_BYTES
            + self.state.attributes.current_count() as u64 * ITEM_BYTES;
        if changed >= limit / 8 { self.end_round() } else { Ok(()) }
    }

    /// Begins to write what has changed, once the round before is written.
    fn end_round(&mut self) -> Result<()> {
        self.wait_for_round()?;
        let round = self.take_round();
        let (sealer, catalog) = (self.sealer, self.catalog);
        self.writing = Some(self.scope.spawn(move || round.write(sealer, catalog)));
        Ok(())
    }

    fn take_round(&mut self) -> Round {
        let state = &mut self.state;
        let rows = state.rows.freeze();
        state.attributes.freeze();
        let (attributes, bound) = (state.attributes.clone(), state.bound());
        Round { rows, tree: std::mem::take(&mut self.tree), attributes, bound, applied: applied(state) }
    }

    fn wait_for_round(&mut self) -> Result<()> {
        match self.writing.take() {
            Some(writing) => self.take_written(joined(writing)?),
            None => Ok(()),
        }
    }

    fn take_written(&mut self, (chunks, sealed): Written) -> Result<()> {
        self.state.rows.thaw(self.catalog.snapshot()?);
        self.state.attributes.thaw(chunks);
        self.take_sealed(sealed);
        Ok(())
    }

    /// Notes what was written; what it took the place of goes at once, since nobody else knows of it.
    fn take_sealed(&mut self, mut sealed: Sealed) {
        sealed.remove_dropped(self.sealer.files);
        self.sealed.added.append(&mut sealed.added);
        for (form, place, generation) in sealed.dropped {
            let is_it = |row: &ManifestRow| (row.form, row.place, row.generation) == (form.byte(), place, generation);
            self.sealed.added.retain(|row| !is_it(row));
        }
    }

    /// Makes segments of the vectors of every layer that has that many in no segment.
    fn seal_vectors(&mut self, least: u64) -> Result<()> {
        for (place, number) in (0_u32..).zip(0..self.state.layers.len()) {
            let layer = &self.state.layers[number];
            if layer
                .vectors
                .as_ref()
                .is_none_or(|vectors| vectors.tail.is_empty() || (vectors.tail.len() as u64) < least)
            {
                continue;
            }
            let mut sealed = Sealed::default();
            let segments = self.sealer.vectors(layer, place, &mut sealed)?;
            if let (Some(vectors), Some(segments)) = (&mut self.state.layers[number].vectors, segments) {
                vectors.segments = segments;
                vectors.tail = TailView::empty(vectors.tail.spec());
            }
            self.take_sealed(sealed);
        }
        Ok(())
    }

    /// Gives the tails of words that are full to whoever is free.
    fn hand_over_words(&mut self) -> Result<()> {
        if let Some(waiting) = self.waiting.take() {
            for _ in 0..word_threads(self.sealer.options) {
                let (sealer, words, waiting) = (self.sealer, self.words, waiting.clone());
                self.workers.push(self.scope.spawn(move || words.work(sealer, &waiting)));
            }
        }
        for full in self.take_tails() {
            if self.tails.send(full).is_err() {
                // All of them have failed.
                self.workers.drain(..).try_for_each(joined)?;
                return Err(Error::Cancelled("making word segments"));
            }
        }
        Ok(())
    }

    fn take_tails(&mut self) -> Vec<FullTail> {
        let (head, bound) = (self.sealer.head, self.state.bound());
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

    /// Writes what is left, and waits for everything.
    fn finish(mut self) -> Result<(State, Sealed, Blocks)> {
        self.wait_for_round()?;
        if !self.state.rows.active().is_empty() || !self.tree.is_empty() {
            let written = self.take_round().write(self.sealer, self.catalog)?;
            self.take_written(written)?;
        }
        self.seal_vectors(0)?;
        let mut bulk = BulkWords::new(self.state.layers[0].words.analyzer);
        for full in self.take_tails() {
            self.words.seal(self.sealer, &mut bulk, full)?;
        }
        let Rounds { sealer, words, mut state, mut sealed, blocks, tails, waiting, workers, .. } = self;
        drop((tails, waiting));
        workers.into_iter().try_for_each(joined)?;
        for (place, layer) in (0_u8..).zip(&mut state.layers) {
            let segments = words.finish(sealer, layer.words.analyzer, place, &mut sealed)?;
            layer.words.segments = Arc::new(segments);
        }
        Ok((state, sealed, blocks))
    }
}

impl Round {
    fn write(self, sealer: Sealer<'_>, catalog: &Catalog) -> Result<Written> {
        let mut sealed = Sealed::default();
        let chunks = sealer.chunks(&self.attributes, self.bound, &mut sealed)?;
        let rows = self.rows.iter().map(|(key, value)| (key.clone(), value.cloned()));
        let tree = self.tree.into_iter().map(|(key, value)| (key, value.map(SmallBytes::from)));
        catalog.checkpoint(rows.chain(tree), &self.applied)?;
        Ok((chunks, sealed))
    }
}

/// A tail of words that takes no more.
struct FullTail {
    layer: Layer,
    tail: Arc<WordTail>,
    /// Up to where it goes.
    head: Head,
    bound: u32,
}

/// The word segments made so far: of each layer, by how often what is in them was merged.
#[derive(Default)]
struct WordFiles(Mutex<Levels>);

/// By layer and level.
type Levels = BTreeMap<(u8, u32), Vec<Arc<WordSegment>>>;

impl WordFiles {
    fn work(&self, sealer: Sealer<'_>, waiting: &Receiver<FullTail>) -> Result<()> {
        let mut bulk: Option<BulkWords> = None;
        for full in waiting {
            let bulk = bulk.get_or_insert_with(|| BulkWords::new(full.tail.analyzer()));
            self.seal(sealer, bulk, full)?;
        }
        Ok(())
    }

    fn seal(&self, sealer: Sealer<'_>, bulk: &mut BulkWords, full: FullTail) -> Result<()> {
        let FullTail { layer, tail, head, bound } = full;
        let sealer = Sealer { head, ..sealer };
        let (place, analyzer) = (layer as u8, tail.analyzer());
        let mut segment = sealer.word_segment(place.into(), &mut Sealed::default(), |identity| {
            Ok(match Arc::try_unwrap(tail) {
                Ok(tail) => bulk.build(tail, bound, identity)?,
                Err(shared) => shared.build(bound, None, identity)?,
            })
        })?;
        for level in 0.. {
            let Some(full) = self.add(place, level, segment) else { break };
            segment = merge(sealer, analyzer, place, full)?;
        }
        Ok(())
    }

    /// Adds a segment, and takes those of its size out when there are enough to merge.
    fn add(&self, place: u8, level: u32, segment: Arc<WordSegment>) -> Option<Vec<Arc<WordSegment>>> {
        let mut levels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_level = levels.entry((place, level)).or_default();
        of_level.push(segment);
        (of_level.len() >= MERGED_AT_ONCE).then(|| std::mem::take(of_level))
    }

    /// All segments of a layer, few enough, and noted for the manifest.
    fn finish(
        &self,
        sealer: Sealer<'_>,
        analyzer: Analyzer,
        place: u8,
        sealed: &mut Sealed,
    ) -> Result<Vec<Arc<WordSegment>>> {
        let levels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_layer = levels.range((place, 0)..=(place, u32::MAX));
        let mut segments: Vec<Arc<WordSegment>> = of_layer.flat_map(|(_, segments)| segments.clone()).collect();
        drop(levels);
        by_size(&mut segments);
        if segments.len() > MAX_SEGMENTS {
            let small = segments.split_off(MAX_SEGMENTS - 1);
            segments.push(merge(sealer, analyzer, place, small)?);
        }
        let form = Form::Words.byte();
        let generations = segments.iter().map(|segment| segment.file().identity().generation);
        sealed.added.extend(generations.map(|generation| ManifestRow { form, place: place.into(), generation }));
        Ok(segments)
    }
}

/// One segment of several, whose files go.
fn merge(
    sealer: Sealer<'_>,
    analyzer: Analyzer,
    place: u8,
    sources: Vec<Arc<WordSegment>>,
) -> Result<Arc<WordSegment>> {
    let mut sealed = Sealed::default();
    let origins = sources.iter().map(|segment| segment.file().origin()).collect::<Result<Vec<_>, _>>()?;
    let head = origins.into_iter().flatten().max_by_key(|head| head.position).unwrap_or(sealer.head);
    let sealer = Sealer { head, ..sealer };
    let all = sources.iter().map(AsRef::as_ref).collect();
    let merged = sealer.merged_words(analyzer, all, place.into(), &mut sealed)?;
    let generations = sources.iter().map(|segment| segment.file().identity().generation);
    sealed.dropped = generations.map(|generation| (Form::Words, place.into(), generation)).collect();
    sealed.remove_dropped(sealer.files);
    Ok(merged)
}

/// How many threads make word segments: nobody waits for anything else meanwhile, so all that the machine has, as far as there
/// is memory for a tail and its segment in each.
fn word_threads(options: &Options) -> usize {
    let own = std::thread::available_parallelism().map_or(1, NonZero::get);
    let room = options.memory_limit / 2 / WORD_THREAD_BYTES;
    options.background_threads.max(own.min(usize::try_from(room).unwrap_or(own))).max(1)
}

/// What a thread returned. Its panic goes on here.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
