//! Writing derived files: vector and word tails become segments, changed attributes become column chunks.
//!
//! A checkpoint writes a frozen state; a rebuild writes as it goes. Merging keeps each segment of a layer several times
//! as large as the next, so that there are few and each item is rewritten a logarithmic number of times. With ratio n
//! an item is copied about (n + 1) / 2 times on each of log_n levels, nearly the same for 8 as for 2. The cost of a
//! vector merge is linking the smaller segments into the largest graph: ratio 8 links fewer items again, and a search
//! walks fewer graphs.

use crate::Result;
use crate::core::Core;
use crate::core::files::{Files, Form};
use crate::options::Options;
use crate::records::tables::{self, ManifestRow};
use crate::state::State;
use crate::state::attributes::{AttributeStore, Chunk};
use crate::state::layers::LayerIndex;
use holotype_index::segment::layout::KIND as VECTOR_SEGMENT_KIND;
use holotype_index::segment::merge_segments;
use holotype_index::words::{Analyzer, WORD_SEGMENT_KIND, WordSegment, WordTail, merge_word_segments};
use holotype_index::{BuildOptions, Rows, VectorSegment, build_segment};
use holotype_storage::codec;
use holotype_storage::columns::Columns;
use holotype_storage::log::Head;
use holotype_storage::overlay::RowKey;
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A new segment absorbs older ones up to this many times its size.
const ABSORBED_VECTORS: usize = 8;
const ABSORBED_WORDS: usize = 2;

/// From this many vectors on, a segment gets a graph if another segment of the layer has one: walking it takes a
/// quarter of the time of scanning its codes. A layer without any graph is searched exactly until scans become slow.
const GRAPH_BESIDE_ANOTHER: usize = 512;

/// The maximum number of segments of a layer; a merge keeps to it.
pub(crate) const MAX_SEGMENTS: usize = 8;

/// Writes derived files, each under a new name.
#[derive(Clone, Copy)]
pub(crate) struct DerivedWriter<'a> {
    pub(crate) files: &'a Files,
    pub(crate) options: &'a Options,
    pub(crate) database: [u8; 16],
    /// The newest generation given to a derived file.
    pub(crate) generation: &'a AtomicU64,
    /// The log head that the files are made at.
    pub(crate) head: Head,
}

/// The derived files written, and those they replace.
#[derive(Default)]
pub(crate) struct ManifestChanges {
    pub(crate) added: Vec<ManifestRow>,
    pub(crate) replaced: Vec<(Form, u32, u64)>,
}

impl ManifestChanges {
    /// The manifest rows to add and to remove.
    pub(crate) fn manifest_rows(&self) -> Result<Vec<(RowKey, Option<Vec<u8>>)>> {
        let mut rows = Vec::new();
        for row in &self.added {
            rows.push((manifest_key(row.form, row.place, row.generation), Some(codec::encode(row)?)));
        }
        for (form, place, generation) in &self.replaced {
            rows.push((manifest_key(form.byte(), *place, *generation), None));
        }
        Ok(rows)
    }

    /// The paths of the files written.
    pub(crate) fn paths(&self, files: &Files) -> impl Iterator<Item = PathBuf> {
        let named = self.added.iter().filter_map(|row| Some((Form::from_byte(row.form)?, row)));
        named.map(|(form, row)| files.derived(form, row.place, row.generation))
    }

    /// Removes a file that was written and already replaced. No manifest names it.
    pub(crate) fn discard_file(&mut self, files: &Files, form: Form, place: u32, generation: u64) {
        let is_it = |row: &ManifestRow| (row.form, row.place, row.generation) == (form.byte(), place, generation);
        self.added.retain(|row| !is_it(row));
        let _ = files.vfs.remove(&files.derived(form, place, generation));
    }

    /// Removes the replaced files. Snapshots that map one keep its content; the next opening removes what cannot be
    /// removed now.
    pub(crate) fn remove_replaced(&self, files: &Files) {
        for (form, place, generation) in &self.replaced {
            let _ = files.vfs.remove(&files.derived(*form, *place, *generation));
        }
    }
}

pub(crate) fn manifest_key(form: u8, place: u32, generation: u64) -> RowKey {
    let mut key = vec![form];
    key.extend_from_slice(&place.to_be_bytes());
    key.extend_from_slice(&generation.to_be_bytes());
    RowKey::new(tables::MANIFEST, &key)
}

impl<'a> DerivedWriter<'a> {
    /// The writer for the files of an open database at `state`.
    pub(crate) fn of(core: &'a Core, state: &State) -> Self {
        DerivedWriter {
            files: &core.files,
            options: &core.options,
            database: core.log.database(),
            generation: &core.checkpointer.generation,
            head: state.head,
        }
    }

    /// A new name for a derived file, added to the manifest changes.
    fn name(&self, form: Form, place: u32, changes: &mut ManifestChanges) -> (PathBuf, FileIdentity) {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        changes.added.push(ManifestRow { form: form.byte(), place, generation });
        let identity = FileIdentity { database: self.database, generation, place };
        (self.files.derived(form, place, generation), identity)
    }

    /// Writes a segment file and opens it from the disk.
    fn write(
        &self,
        file: SegmentFileWriter,
        path: &Path,
        kind: [u8; 4],
        identity: &FileIdentity,
    ) -> Result<SegmentFile> {
        file.made_from(&self.head).write(self.files.vfs.as_ref(), path)?;
        Ok(SegmentFile::open(self.files.vfs.as_ref(), path, kind, identity)?)
    }

    /// Writes the column chunks that the frozen changes touch.
    pub(crate) fn chunks(
        &self,
        attributes: &AttributeStore,
        bound: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Vec<Chunk>> {
        let vfs = self.files.vfs.as_ref();
        let mut chunks = Vec::new();
        for number in attributes.frozen_chunks() {
            let columns = attributes.write_chunk(number, bound)?;
            let (path, identity) = self.name(Form::Columns, number, changes);
            columns.write(vfs, &path, identity)?;
            chunks.push(Chunk::new(number, Columns::open(vfs, &path, &identity)?)?);
            if let Some(generation) = attributes.chunk_generation(number) {
                changes.replaced.push((Form::Columns, number, generation));
            }
        }
        Ok(chunks)
    }

    /// Writes the vector tail of a layer. Returns all its vector segments, or `None` without an embedding space.
    pub(crate) fn vectors(
        &self,
        layer: &LayerIndex,
        place: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Option<Arc<Vec<Arc<VectorSegment>>>>> {
        let Some(vectors) = &layer.vectors else { return Ok(None) };
        if vectors.tail.is_empty() {
            return Ok(Some(Arc::clone(&vectors.segments)));
        }
        let (absorbed, mut segments) =
            split_to_merge(&vectors.segments, vectors.tail.len(), ABSORBED_VECTORS, |segment| segment.len());
        let mut options = BuildOptions { threads: self.options.background_threads.max(1), ..BuildOptions::default() };
        if vectors.segments.iter().any(|segment| segment.has_graph()) {
            options.graph_from = GRAPH_BESIDE_ANOTHER;
        }
        let (path, identity) = self.name(Form::Vectors, place, changes);
        let spec = vectors.tail.spec();
        let graph_from = if absorbed.is_empty() { options.graph_from } else { usize::MAX };
        let mut file = build_segment(&vectors.tail.to_rows(), identity, &BuildOptions { graph_from, ..options })?;
        if !absorbed.is_empty() {
            let fresh = SegmentFile::from_bytes(file.into_bytes(), VECTOR_SEGMENT_KIND, &identity)?;
            let fresh = VectorSegment::open(fresh, &spec)?;
            let sources: Vec<&VectorSegment> =
                absorbed.iter().map(|segment| segment.as_ref()).chain([&fresh]).collect();
            file = merge_segments(&sources, None, identity, &options)?;
        }
        let file = self.write(file, &path, VECTOR_SEGMENT_KIND, &identity)?;
        let generations = absorbed.iter().map(|segment| segment.file().identity().generation);
        changes.replaced.extend(generations.map(|generation| (Form::Vectors, place, generation)));
        segments.push(Arc::new(VectorSegment::open(file, &spec)?));
        Ok(Some(Arc::new(segments)))
    }

    /// Replaces a damaged segment by one of `rows`. `None` if `rows` is empty.
    pub(crate) fn replacement_segment(
        &self,
        damaged: &VectorSegment,
        rows: &Rows,
        place: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Option<Arc<VectorSegment>>> {
        changes.replaced.push((Form::Vectors, place, damaged.file().identity().generation));
        if rows.ids().is_empty() {
            return Ok(None);
        }
        let (path, identity) = self.name(Form::Vectors, place, changes);
        let options = BuildOptions { threads: self.options.background_threads.max(1), ..BuildOptions::default() };
        let file = build_segment(rows, identity, &options)?;
        let file = self.write(file, &path, VECTOR_SEGMENT_KIND, &identity)?;
        Ok(Some(Arc::new(VectorSegment::open(file, &damaged.spec())?)))
    }

    /// Writes the word tails of a layer and returns all its word segments. With `hurry` it merges only above
    /// [`MAX_SEGMENTS`].
    pub(crate) fn words(
        &self,
        layer: &LayerIndex,
        place: u32,
        bound: u32,
        hurry: bool,
        changes: &mut ManifestChanges,
    ) -> Result<Arc<Vec<Arc<WordSegment>>>> {
        let analyzer = layer.words.analyzer;
        let mut segments = layer.words.segments.as_ref().clone();
        for tail in layer.words.tails.iter().filter(|tail| tail.document_count() > 0) {
            let mut absorbed = Vec::new();
            if !hurry || segments.len() >= MAX_SEGMENTS {
                (absorbed, segments) = split_to_merge(&segments, tail.document_count(), ABSORBED_WORDS, |segment| {
                    segment.document_count() as usize
                });
            }
            segments.push(if absorbed.is_empty() {
                self.word_tail(tail, place, bound, changes)?
            } else {
                let identity = FileIdentity { database: self.database, generation: u64::MAX, place };
                let fresh = tail.build(bound, None, identity)?;
                let fresh = SegmentFile::from_bytes(fresh.into_bytes(), WORD_SEGMENT_KIND, &identity)?;
                let fresh = WordSegment::open(fresh)?;
                let sources = absorbed.iter().map(|segment| segment.as_ref()).chain([&fresh]).collect();
                let generations = absorbed.iter().map(|segment| segment.file().identity().generation);
                changes.replaced.extend(generations.map(|generation| (Form::Words, place, generation)));
                self.merged_words(analyzer, sources, place, changes)?
            });
        }
        Ok(Arc::new(segments))
    }

    /// Writes a word tail as a segment.
    pub(crate) fn word_tail(
        &self,
        tail: &WordTail,
        place: u32,
        bound: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Arc<WordSegment>> {
        self.word_segment(place, changes, |identity| Ok(tail.build(bound, None, identity)?))
    }

    /// Builds and writes a word segment under a new name.
    pub(crate) fn word_segment(
        &self,
        place: u32,
        changes: &mut ManifestChanges,
        build: impl FnOnce(FileIdentity) -> Result<SegmentFileWriter>,
    ) -> Result<Arc<WordSegment>> {
        let (path, identity) = self.name(Form::Words, place, changes);
        checked(self.write(build(identity)?, &path, WORD_SEGMENT_KIND, &identity)?)
    }

    /// Merges word segments into one. The caller records which files it replaces.
    pub(crate) fn merged_words(
        &self,
        analyzer: Analyzer,
        sources: Vec<&WordSegment>,
        place: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Arc<WordSegment>> {
        let (path, identity) = self.name(Form::Words, place, changes);
        let vfs = self.files.vfs.as_ref();
        merge_word_segments(analyzer, &sources, None, (identity, Some(self.head)), vfs, &path)?;
        checked(SegmentFile::open(vfs, &path, WORD_SEGMENT_KIND, &identity)?)
    }
}

/// Opens and verifies a word segment just written, so that no query pays for the check.
fn checked(file: SegmentFile) -> Result<Arc<WordSegment>> {
    let segment = WordSegment::open(file)?;
    segment.check()?;
    Ok(Arc::new(segment))
}

/// Splits segments, oldest first, into those that a new one of `count` entries absorbs and those that remain. Starting
/// with the newest, it absorbs each segment of at most `times` the size absorbed so far, and more while there would be
/// too many.
fn split_to_merge<T: Clone>(
    segments: &[T],
    count: usize,
    times: usize,
    size: impl Fn(&T) -> usize,
) -> (Vec<T>, Vec<T>) {
    let mut joined = count;
    let mut keep = segments.len();
    while keep > 0 && (size(&segments[keep - 1]) <= times * joined || keep >= MAX_SEGMENTS) {
        joined += size(&segments[keep - 1]);
        keep -= 1;
    }
    (segments[keep..].to_vec(), segments[..keep].to_vec())
}

#[cfg(test)]
mod tests {
    use crate::{Durability, Holotype, NewTrace, Options, Space};
    use holotype_query::Params;
    use holotype_storage::vfs::SimVfs;
    use std::sync::Arc;

    #[test]
    fn a_small_segment_has_a_graph_where_another_has_one() {
        const DIM: usize = 4;
        let options = Options::with_space(Space::new("test", DIM));
        let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", options).unwrap();
        let mut next = 0_u32;
        let mut parts_after = |count: u32| {
            let mut transaction = database.begin().unwrap();
            for _ in 0..count {
                let vector = (0..DIM as u32).map(|d| (((next * 7 + d) * (d + 3)) as f32 * 0.37).sin()).collect();
                transaction.record(NewTrace::turn("e", "a text").vector(vector)).unwrap();
                next += 1;
            }
            transaction.commit(Durability::None).unwrap();
            database.checkpoint().unwrap();
            let shown = database.snapshot().query("show segments", &Params::new()).unwrap().pop();
            let Some(crate::read::answer::Output::Table(table)) = shown else { panic!("no table of segments") };
            let rows = table.typed::<(String, String, String, u64, Option<u64>)>().unwrap().into_iter();
            let vectors = rows.filter(|(layer, form, ..)| layer == "trace" && form == "vectors");
            vectors.map(|(_, _, part, items, _)| (part, items)).filter(|(_, items)| *items > 0).collect::<Vec<_>>()
        };
        let part = |part: &str, items| (part.to_owned(), items);
        assert_eq!(parts_after(600), [part("flat", 600)]);
        assert_eq!(parts_after(5200), [part("graph", 5800)]);
        assert_eq!(parts_after(10), [part("graph", 5800), part("flat", 10)]);
        assert_eq!(parts_after(590), [part("graph", 5800), part("graph", 600)]);
    }
}
