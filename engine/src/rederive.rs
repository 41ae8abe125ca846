//! Makes everything derived anew in new files: without what was forgotten, or smaller.
//!
//! Rows and attributes are applied again from the log, so they hold what the log holds and nothing else. Vectors and words
//! are merged, leaving out what is redacted: a graph need not be built again where most of it stays. The catalog is written
//! whole into a new file, because the free pages of an old one keep what was deleted.
//!
//! A segment of words that is damaged is not merged: what it held is read from the log.
//!
//! 1. The writer's lock is held all the time: the state does not change. A checkpoint under way finds out when it ends, and
//!    drops what it wrote.
//! 2. Until the new catalog is renamed into place the old files stand, and a failure leaves them: the next opening makes all
//!    derived files anew when it finds that something was forgotten and not purged.

use crate::attributes::{Chunk, Column};
use crate::database::{Inner, Writer, empty_state};
use crate::files::Form;
use crate::item::Layer;
use crate::layers::{LayerIndex, LayerVectors, LayerWords};
use crate::mend::{self, around_damage};
use crate::replay::replay_rows;
use crate::sealing::manifest_key;
use crate::state::State;
use crate::tables::{self, ManifestRow};
use crate::{Error, Result, retold};
use holotype_index::bitmap::Bits;
use holotype_index::segment::layout::KIND as VECTOR_SEGMENT_KIND;
use holotype_index::segment::merge_segments;
use holotype_index::words::{WORD_SEGMENT_KIND, WordSegment, WordTail, merge_word_segments};
use holotype_index::{BuildOptions, TailView, VectorSegment, build_segment};
use holotype_storage::catalog::{Applied, Catalog};
use holotype_storage::codec;
use holotype_storage::columns::Columns;
use holotype_storage::overlay::{RowKey, View};
use holotype_storage::segment_file::{FileIdentity, SegmentFile};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Makes the derived files of `state`, the newest, anew, and returns the same state on them. With `all`, every vector and
/// word segment of a layer becomes one; otherwise those that hold nothing redacted stay.
pub(crate) fn rederive(inner: &Inner, writer: &mut Writer, state: &State, all: bool) -> Result<State> {
    around_damage(state, || rederive_once(inner, writer, state, all))
}

fn rederive_once(inner: &Inner, writer: &mut Writer, state: &State, all: bool) -> Result<State> {
    inner.log.sync_to(state.head.position)?;
    let mut fresh = from_log(inner, state)?;
    // Hashes of records stay what they are, whatever was erased of the records.
    for (key, hashes) in state.scan(tables::TREE, &[])? {
        fresh.rows.put(tables::TREE, key, hashes);
    }
    let redacted = fresh.attributes.select(Column::Redacted, fresh.bound(), &|redacted| redacted == 1.0)?;
    let mut files =
        NewFiles { inner, state, keep: Bits::full(fresh.bound()).and_not(&redacted), redacted, all, named: Vec::new() };
    fresh.attributes.freeze();
    let mut chunks = Vec::new();
    for number in fresh.attributes.frozen_chunks() {
        let (path, identity) = files.name(Form::Columns, number);
        fresh.attributes.write_chunk(number, fresh.bound())?.write(inner.files.vfs.as_ref(), &path, identity)?;
        chunks.push(Chunk::new(number, Columns::open(inner.files.vfs.as_ref(), &path, &identity)?)?);
    }
    fresh.attributes.thaw(chunks);
    for layer in Layer::ALL {
        fresh.layers[*layer as usize] = files.layer(*layer)?;
    }
    let catalog = Arc::new(write_catalog(inner, &fresh, &files.named)?);
    fresh.rows = View::new(Some(catalog.snapshot()?));
    let keep: Vec<PathBuf> = files
        .named
        .iter()
        .filter_map(|row| Form::from_byte(row.form).map(|form| (form, row)))
        .map(|(form, row)| inner.files.derived(form, row.place, row.generation))
        .collect();
    inner.catalog.store(Some(catalog));
    writer.tail_records = 0;
    writer.tail_bytes = 0;
    writer.rederived += 1;
    // What cannot be removed now goes at the next opening.
    inner.files.remove_other(&keep)?;
    inner.files.sync_dirs()?;
    Ok(fresh)
}

/// Rows and attributes as the log gives them, up to where `state` stands.
fn from_log(inner: &Inner, state: &State) -> Result<State> {
    let mut fresh = empty_state(None)?;
    for transaction in retold::transactions(&inner.log)? {
        let transaction = transaction?;
        if transaction.number > state.head.commit {
            break;
        }
        replay_rows(&mut fresh, &transaction.try_into()?, &|_| false)?;
    }
    if (fresh.head, fresh.totals()) != (state.head, state.totals()) && fresh.meta.items != state.meta.items {
        return Err(Error::Corrupt { what: "the log gives another state than the one at hand".to_owned() });
    }
    fresh.meta.purged = fresh.meta.forgets;
    Ok(fresh)
}

/// The catalog with all rows of a state and its manifest, in a new file.
fn write_catalog(inner: &Inner, state: &State, manifest: &[ManifestRow]) -> Result<Catalog> {
    let mut rows = Vec::with_capacity(manifest.len() + 1);
    for row in manifest {
        rows.push((manifest_key(row.form, row.place, row.generation), codec::encode(row)?));
    }
    rows.push((RowKey::new(tables::META, &[]), codec::encode(&state.meta)?));
    let rows = rows.iter().map(|(key, value)| (key, value.as_slice()));
    let from_state = state.rows.active().iter().filter_map(|(key, value)| Some((key, value?.as_ref())));
    let head = state.head;
    let applied = Applied { position: head.position, commit: head.commit, head: head.hash, blob: Vec::new() };
    let options = crate::opening::catalog_options(&inner.options);
    let vfs = inner.files.vfs.as_ref();
    let catalog = Catalog::create_with(
        vfs,
        &inner.files.catalog(),
        inner.log.database(),
        &options,
        from_state.chain(rows),
        &applied,
    )?;
    Ok(catalog)
}

/// The files written so far.
struct NewFiles<'a> {
    inner: &'a Inner,
    state: &'a State,
    keep: Bits,
    redacted: Bits,
    all: bool,
    named: Vec<ManifestRow>,
}

impl NewFiles<'_> {
    /// A new name for a derived file, noted for the manifest.
    fn name(&mut self, form: Form, place: u32) -> (PathBuf, FileIdentity) {
        let generation = self.inner.checkpointer.generation.fetch_add(1, Ordering::Relaxed) + 1;
        self.named.push(ManifestRow { form: form.byte(), place, generation });
        let identity = FileIdentity { database: self.inner.log.database(), generation, place };
        (self.inner.files.derived(form, place, generation), identity)
    }

    /// Notes that a file stays.
    fn stays(&mut self, form: Form, file: &SegmentFile) {
        let FileIdentity { generation, place, .. } = *file.identity();
        self.named.push(ManifestRow { form: form.byte(), place, generation });
    }

    /// An identity for what stays in memory.
    fn passing(&self, place: u32) -> FileIdentity {
        FileIdentity { database: self.inner.log.database(), generation: u64::MAX, place }
    }

    fn must_go(&self, ids: impl IntoIterator<Item = u32>) -> bool {
        self.all || ids.into_iter().any(|id| self.redacted.contains(id))
    }

    fn layer(&mut self, layer: Layer) -> Result<LayerIndex> {
        let vectors = self.state.layer(layer).vectors.as_ref();
        let vectors = vectors.map(|vectors| self.vectors(vectors, layer as u32)).transpose()?;
        Ok(LayerIndex { vectors, words: self.words(layer)? })
    }

    fn vectors(&mut self, vectors: &LayerVectors, place: u32) -> Result<LayerVectors> {
        let spec = vectors.tail.spec();
        let options = BuildOptions { threads: self.inner.options.background_threads.max(1), ..BuildOptions::default() };
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        for segment in vectors.segments.iter() {
            match self.must_go(segment.ids()?.iter().copied()) {
                true => go.push(Arc::clone(segment)),
                false => stay.push(Arc::clone(segment)),
            }
        }
        if !vectors.tail.is_empty() {
            let identity = self.passing(place);
            let flat = BuildOptions { graph_from: usize::MAX, ..options };
            let file = build_segment(&vectors.tail.to_rows(), identity, &flat)?;
            let file = SegmentFile::from_bytes(file.into_bytes(), VECTOR_SEGMENT_KIND, &identity)?;
            go.push(Arc::new(VectorSegment::open(file, &spec)?));
        }
        stay.iter().for_each(|segment| self.stays(Form::Vectors, segment.file()));
        let mut kept = 0;
        for segment in &go {
            kept += segment.ids()?.iter().filter(|id| self.keep.contains(**id)).count();
        }
        if kept > 0 {
            let (path, identity) = self.name(Form::Vectors, place);
            let sources: Vec<&VectorSegment> = go.iter().map(AsRef::as_ref).collect();
            let file = merge_segments(&sources, Some(&self.keep), identity, &options)?;
            file.made_from(&self.state.head).write(self.inner.files.vfs.as_ref(), &path)?;
            let file = SegmentFile::open(self.inner.files.vfs.as_ref(), &path, VECTOR_SEGMENT_KIND, &identity)?;
            stay.push(Arc::new(VectorSegment::open(file, &spec)?));
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
            match self.must_go(segment.ids()?) {
                true => go.push(Arc::clone(segment)),
                false => stay.push(Arc::clone(segment)),
            }
        }
        if stay.len() + go.len() < words.segments.len() {
            let missing = mend::words::checkpointed(self.state, layer)?.and_not(&covered);
            mend::words::analysed(self.inner, self.state, layer, &missing, &mut |tail| {
                // Merged below: no manifest names it, and it goes with the files that others took the place of.
                let (path, identity) = self.name(Form::Words, place);
                self.named.pop();
                tail.build(bound, None, identity)?.write(self.inner.files.vfs.as_ref(), &path)?;
                let file = SegmentFile::open(self.inner.files.vfs.as_ref(), &path, WORD_SEGMENT_KIND, &identity)?;
                go.push(Arc::new(WordSegment::open(file)?));
                Ok(())
            })?;
        }
        for tail in words.tails.iter().filter(|tail| tail.document_count() > 0) {
            let identity = self.passing(place);
            let file = tail.build(bound, None, identity)?;
            let file = SegmentFile::from_bytes(file.into_bytes(), WORD_SEGMENT_KIND, &identity)?;
            go.push(Arc::new(WordSegment::open(file)?));
        }
        stay.iter().for_each(|segment| self.stays(Form::Words, segment.file()));
        let mut kept = 0;
        for segment in &go {
            kept += segment.ids()?.filter(|id| self.keep.contains(*id)).count();
        }
        if kept > 0 {
            let (path, identity) = self.name(Form::Words, place);
            let sources: Vec<&WordSegment> = go.iter().map(AsRef::as_ref).collect();
            let vfs = self.inner.files.vfs.as_ref();
            let new = (identity, Some(self.state.head));
            merge_word_segments(analyzer, &sources, Some(&self.keep), new, vfs, &path)?;
            let file = SegmentFile::open(vfs, &path, WORD_SEGMENT_KIND, &identity)?;
            stay.push(Arc::new(WordSegment::open(file)?));
        }
        Ok(LayerWords { analyzer, segments: Arc::new(stay), tails: vec![Arc::new(WordTail::new(analyzer))] })
    }
}
