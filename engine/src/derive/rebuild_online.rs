//! Rebuilds the derived files of an open database: after a forget, or to compact them.
//!
//! Rows and attributes are replayed from the log, so they hold exactly what the log holds. Vector and word segments are
//! merged without redacted items, which reuses most of a graph. The catalog is written to a new file, because the free
//! pages of the old one keep deleted bytes. Items of a damaged word segment are read from the log.
//!
//! 1. The writer's lock is held throughout, so the state does not change. A checkpoint that runs at the same time
//!    discards its files when it ends.
//! 2. The old files stay in use until the new catalog is renamed into place. After a failure, the next opening rebuilds
//!    all derived files if a forget was not purged.
//! 3. Compacting never makes the files larger: unless the new ones are smaller, or an old one is damaged, the new ones
//!    are removed before the rename and the old ones stay.

use crate::core::files::Form;
use crate::core::{Core, Writer};
use crate::derive::derived_writer::manifest_key;
use crate::derive::maintenance::applied_at;
use crate::derive::repair::{self, skip_damaged};
use crate::derive::retained_log;
use crate::model::item::Layer;
use crate::records::tables::{self, ManifestRow};
use crate::state::State;
use crate::state::attributes::{Chunk, Column};
use crate::state::layers::{LayerIndex, LayerVectors, LayerWords};
use crate::state::replay::replay_rows;
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_index::segment::layout::KIND as VECTOR_SEGMENT_KIND;
use holotype_index::segment::merge_segments;
use holotype_index::words::{WORD_SEGMENT_KIND, WordSegment, WordTail, merge_word_segments};
use holotype_index::{BuildOptions, TailView, VectorSegment, build_segment};
use holotype_storage::catalog::Catalog;
use holotype_storage::codec;
use holotype_storage::columns::Columns;
use holotype_storage::features::VECTORS_APART;
use holotype_storage::overlay::{RowKey, View};
use holotype_storage::segment_file::{FileIdentity, SegmentFile};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why derived files are rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To purge redacted items and vectors that are no longer in force. Segments without any are reused.
    Forget,
    /// To make the files smaller than they are `before`. The segments of each layer merge into one.
    Compact { before: u64 },
}

/// A state on new derived files, which are in place.
pub(crate) struct OnNewFiles {
    pub(crate) state: State,
    /// An error if old files could not be removed. The next opening removes what is left; after a forget the next
    /// transaction does.
    pub(crate) removed: Result<()>,
}

/// Rebuilds the derived files of `state`, the newest, and returns the same state on the new files; `None` if compacting
/// would not make them smaller.
pub(crate) fn rebuild_online(
    core: &Core,
    writer: &mut Writer,
    state: &State,
    purpose: Purpose,
) -> Result<Option<OnNewFiles>> {
    skip_damaged(state, || rebuild_once(core, writer, state, purpose))
}

fn rebuild_once(core: &Core, writer: &mut Writer, state: &State, purpose: Purpose) -> Result<Option<OnNewFiles>> {
    core.log.sync_to(state.head.position)?;
    let mut fresh = from_log(core, state)?;
    // Erasing a record keeps its hash, so the record tree carries over.
    for (key, hashes) in state.scan(tables::TREE, &[])? {
        fresh.rows.put(tables::TREE, key, hashes);
    }
    let redacted = fresh.attributes.select(Column::Redacted, fresh.bound(), &|redacted| redacted == 1.0)?;
    let keep = Bits::full(fresh.bound()).and_not(&redacted);
    let all = purpose != Purpose::Forget;
    let mut files = NewFiles { core, state, keep, redacted, all, repairs: false, named: Vec::new() };
    fresh.attributes.freeze();
    let mut chunks = Vec::new();
    for number in fresh.attributes.frozen_chunks() {
        let (path, identity) = files.name(Form::Columns, number);
        fresh.attributes.write_chunk(number, fresh.bound())?.write(core.files.vfs.as_ref(), &path, identity)?;
        chunks.push(Chunk::new(number, Columns::open(core.files.vfs.as_ref(), &path, &identity)?)?);
    }
    fresh.attributes.thaw(chunks);
    for layer in Layer::ALL {
        fresh.layers[*layer as usize] = files.layer(*layer)?;
    }
    let catalog = write_catalog(core, &fresh, &files.named)?;
    let keep: Vec<PathBuf> = files
        .named
        .iter()
        .filter_map(|row| Form::from_byte(row.form).map(|form| (form, row)))
        .map(|(form, row)| core.files.derived(form, row.place, row.generation))
        .collect();
    if let Purpose::Compact { before } = purpose
        && !files.repairs
        && catalog.file_len()? + core.files.len_of(&keep)? >= before
    {
        // All segments were to be merged, so every named file is new.
        drop((catalog, fresh));
        Catalog::discard(core.files.vfs.as_ref(), &core.files.catalog());
        core.files.remove(&keep)?;
        return Ok(None);
    }
    if fresh.vector_epoch()?.is_some() {
        catalog.set_incompatible(VECTORS_APART)?;
    }
    catalog.put_in_place(core.files.vfs.as_ref())?;
    let catalog = Arc::new(catalog);
    fresh.rows = View::new(Some(core.base_of(&catalog)?));
    core.catalog.store(Some(catalog));
    writer.tail_records = 0;
    writer.tail_bytes = 0;
    writer.rebuild_count += 1;
    // From here on the catalog names the new files, so a failure must not lead back to the old ones.
    let removed = core.files.remove_other(&keep).and_then(|_| core.files.sync_dirs());
    if removed.is_err() && purpose == Purpose::Forget {
        // Old files have what was forgotten: the next transaction tries again.
        fresh.meta.purged = fresh.meta.purged.saturating_sub(1);
    }
    Ok(Some(OnNewFiles { state: fresh, removed }))
}

/// Rows and attributes replayed from the log up to the head of `state`.
fn from_log(core: &Core, state: &State) -> Result<State> {
    let mut fresh = State::empty(None)?;
    for transaction in retained_log::transactions(&core.log)? {
        let transaction = transaction?;
        if transaction.number > state.head.commit {
            break;
        }
        replay_rows(&mut fresh, &transaction.try_into()?, &|_| false)?;
    }
    if (fresh.head, fresh.totals()) != (state.head, state.totals()) && fresh.meta.items != state.meta.items {
        return Err(Error::Corrupt { what: "replaying the log gives a state other than the present one".to_owned() });
    }
    fresh.meta.purged = fresh.meta.forgets;
    // The segments of `state` have the vectors in force.
    fresh.vectors_due = false;
    Ok(fresh)
}

/// Writes all rows of a state and its manifest to a new catalog file, which is still to be put in place.
fn write_catalog(core: &Core, state: &State, manifest: &[ManifestRow]) -> Result<Catalog> {
    let mut rows = Vec::with_capacity(manifest.len() + 1);
    for row in manifest {
        rows.push((manifest_key(row.form, row.place, row.generation), codec::encode(row)?));
    }
    rows.push((RowKey::new(tables::META, &[]), codec::encode(&state.meta)?));
    let rows = rows.iter().map(|(key, value)| (key, value.as_slice()));
    let from_state = state.rows.active().iter().filter_map(|(key, value)| Some((key, value?.as_ref())));
    let head = state.head;
    let applied = applied_at(head)?;
    let options = core.options.catalog();
    let vfs = core.files.vfs.as_ref();
    let catalog = Catalog::begin_with(
        vfs,
        &core.files.catalog(),
        core.log.database(),
        &options,
        from_state.chain(rows),
        &applied,
    )?;
    Ok(catalog)
}

/// The new files, and the segments that are reused.
struct NewFiles<'a> {
    core: &'a Core,
    state: &'a State,
    keep: Bits,
    redacted: Bits,
    all: bool,
    /// True if a damaged segment is made anew.
    repairs: bool,
    named: Vec<ManifestRow>,
}

impl NewFiles<'_> {
    /// A new name for a derived file, added to the manifest.
    fn name(&mut self, form: Form, place: u32) -> (PathBuf, FileIdentity) {
        let generation = self.core.checkpointer.generation.fetch_add(1, Ordering::Relaxed) + 1;
        self.named.push(ManifestRow { form: form.byte(), place, generation });
        let identity = FileIdentity { database: self.core.log.database(), generation, place };
        (self.core.files.derived(form, place, generation), identity)
    }

    /// Adds a reused file to the manifest.
    fn keep_file(&mut self, form: Form, file: &SegmentFile) {
        let FileIdentity { generation, place, .. } = *file.identity();
        self.named.push(ManifestRow { form: form.byte(), place, generation });
    }

    /// The identity of a segment that is only built in memory, as input of a merge.
    fn temporary_identity(&self, place: u32) -> FileIdentity {
        FileIdentity { database: self.core.log.database(), generation: u64::MAX, place }
    }

    fn must_rewrite(&self, ids: impl IntoIterator<Item = u32>) -> bool {
        self.all || ids.into_iter().any(|id| self.redacted.contains(id))
    }

    fn layer(&mut self, layer: Layer) -> Result<LayerIndex> {
        let vectors = self.state.layer(layer).vectors.as_ref();
        let vectors = vectors.map(|vectors| self.vectors(vectors, layer as u32)).transpose()?;
        Ok(LayerIndex { vectors, words: self.words(layer)? })
    }

    fn vectors(&mut self, vectors: &LayerVectors, place: u32) -> Result<LayerVectors> {
        let spec = vectors.tail.spec();
        let threads = self.core.options.background_threads.max(1);
        let log = self.state.vectors_in_log(self.core.log.payload_ends());
        let scorer = self.core.scorer.as_ref();
        let options = BuildOptions { threads, scorer, log: Some(&log), ..BuildOptions::default() };
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        for segment in vectors.segments.iter() {
            match self.must_rewrite(segment.ids()?.iter().copied()) {
                true => go.push(Arc::clone(segment)),
                false => stay.push(Arc::clone(segment)),
            }
        }
        if !vectors.tail.is_empty() {
            let identity = self.temporary_identity(place);
            let flat = BuildOptions { graph_from: usize::MAX, ..options };
            let file = build_segment(vectors.tail.to_rows(), identity, &flat)?;
            let file = SegmentFile::from_bytes(file.into_bytes(), VECTOR_SEGMENT_KIND, &identity)?;
            go.push(Arc::new(VectorSegment::open(file, &spec)?));
        }
        stay.iter().for_each(|segment| self.keep_file(Form::Vectors, segment.file()));
        let mut kept = 0;
        for segment in &go {
            kept += segment.ids()?.iter().filter(|id| self.keep.contains(**id)).count();
        }
        if kept > 0 {
            let (path, identity) = self.name(Form::Vectors, place);
            let sources: Vec<&VectorSegment> = go.iter().map(AsRef::as_ref).collect();
            let (vfs, made) = (self.core.files.vfs.as_ref(), (identity, Some(self.state.head)));
            let places = merge_segments(&sources, Some(&self.keep), made, (vfs, &path), &options)?;
            let file = SegmentFile::open(vfs, &path, VECTOR_SEGMENT_KIND, &identity)?;
            stay.push(Arc::new(VectorSegment::open(file, &spec)?.with_places(places)));
        }
        Ok(LayerVectors { segments: Arc::new(stay), tail: TailView::empty(spec) })
    }

    fn words(&mut self, layer: Layer) -> Result<LayerWords> {
        let (words, place, bound) = (&self.state.layer(layer).words, layer as u32, self.state.bound());
        let analyzer = words.analyzer;
        let (mut stay, mut go, mut covered) = (Vec::new(), Vec::new(), Bits::new());
        let sound = |segment: &&Arc<WordSegment>| !segment.is_damaged() && segment.check().is_ok();
        for segment in words.segments.iter().filter(sound) {
            covered = covered.or(&segment.ids()?.collect());
            match self.must_rewrite(segment.ids()?) {
                true => go.push(Arc::clone(segment)),
                false => stay.push(Arc::clone(segment)),
            }
        }
        if stay.len() + go.len() < words.segments.len() {
            self.repairs = true;
            let missing = repair::words::checkpointed_items(self.state, layer)?.and_not(&covered);
            repair::words::analyse_items(self.core, self.state, layer, &missing, &mut |tail| {
                // Input of the merge below: no manifest names it, and remove_other removes it.
                let (path, identity) = self.name(Form::Words, place);
                self.named.pop();
                tail.build(bound, None, identity)?.write(self.core.files.vfs.as_ref(), &path)?;
                let file = SegmentFile::open(self.core.files.vfs.as_ref(), &path, WORD_SEGMENT_KIND, &identity)?;
                go.push(Arc::new(WordSegment::open(file)?));
                Ok(())
            })?;
        }
        for tail in words.tails.iter().filter(|tail| tail.document_count() > 0) {
            let identity = self.temporary_identity(place);
            let file = tail.build(bound, None, identity)?;
            let file = SegmentFile::from_bytes(file.into_bytes(), WORD_SEGMENT_KIND, &identity)?;
            go.push(Arc::new(WordSegment::open(file)?));
        }
        stay.iter().for_each(|segment| self.keep_file(Form::Words, segment.file()));
        let mut kept = 0;
        for segment in &go {
            kept += segment.ids()?.filter(|id| self.keep.contains(*id)).count();
        }
        if kept > 0 {
            let (path, identity) = self.name(Form::Words, place);
            let sources: Vec<&WordSegment> = go.iter().map(AsRef::as_ref).collect();
            let vfs = self.core.files.vfs.as_ref();
            let new = (identity, Some(self.state.head));
            merge_word_segments(analyzer, &sources, Some(&self.keep), new, (vfs, &path), None)?;
            let file = SegmentFile::open(vfs, &path, WORD_SEGMENT_KIND, &identity)?;
            stay.push(Arc::new(WordSegment::open(file)?));
        }
        Ok(LayerWords { analyzer, segments: Arc::new(stay), tails: vec![Arc::new(WordTail::new(analyzer))] })
    }
}
