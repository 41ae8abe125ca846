//! From memory to derived files: tails of vectors and words become segments, changed attributes chunks of columns.
//!
//! A checkpoint seals what was set aside; a rebuild seals as it goes. Segments of a layer are merged so that each is several
//! times as large as the next: there are few, and each item is rewritten a logarithmic number of times. Where each is n times as
//! large as the next, an item is copied some (n + 1) / 2 times on each of log_n levels, which is about as often for 8 as for 2.
//! What a merge of vectors takes is linking the smaller ones into the graph of the largest: with 8, fewer are linked again, and a
//! search walks fewer graphs.

use crate::Result;
use crate::attributes::{AttributeStore, Chunk};
use crate::database::Inner;
use crate::files::{Files, Form};
use crate::layers::LayerIndex;
use crate::options::Options;
use crate::state::State;
use crate::tables::{self, ManifestRow};
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

/// A segment absorbs one that is not more than so many times as large.
const ABSORBED_VECTORS: usize = 8;
const ABSORBED_WORDS: usize = 2;

/// A layer without a graph is searched exactly, and stays that way until a scan takes long. Beside a graph there is nothing to
/// keep: a segment of so many vectors has one too, for it is walked in a quarter of the time that a scan of its codes takes.
const GRAPH_BESIDE_ANOTHER: usize = 512;

/// The most segments a layer may have; more are merged.
pub(crate) const MAX_SEGMENTS: usize = 8;

/// Who writes derived files, each under a name of its own.
#[derive(Clone, Copy)]
pub(crate) struct Sealer<'a> {
    pub(crate) files: &'a Files,
    pub(crate) options: &'a Options,
    pub(crate) database: [u8; 16],
    /// The newest generation given to a derived file.
    pub(crate) generation: &'a AtomicU64,
    /// Up to which commit what is sealed goes.
    pub(crate) head: Head,
}

/// The derived files that were written, and those they take the place of.
#[derive(Default)]
pub(crate) struct Sealed {
    pub(crate) added: Vec<ManifestRow>,
    pub(crate) dropped: Vec<(Form, u32, u64)>,
}

impl Sealed {
    /// What changes in the manifest.
    pub(crate) fn manifest_rows(&self) -> Result<Vec<(RowKey, Option<Vec<u8>>)>> {
        let mut rows = Vec::new();
        for row in &self.added {
            rows.push((manifest_key(row.form, row.place, row.generation), Some(codec::encode(row)?)));
        }
        for (form, place, generation) in &self.dropped {
            rows.push((manifest_key(form.byte(), *place, *generation), None));
        }
        Ok(rows)
    }

    /// The files that were written.
    pub(crate) fn paths(&self, files: &Files) -> impl Iterator<Item = PathBuf> {
        let named = self.added.iter().filter_map(|row| Some((Form::from_byte(row.form)?, row)));
        named.map(|(form, row)| files.derived(form, row.place, row.generation))
    }

    /// Takes a file back that was written and already has another in its place. Nobody else knows of it.
    pub(crate) fn take_back(&mut self, files: &Files, form: Form, place: u32, generation: u64) {
        let is_it = |row: &ManifestRow| (row.form, row.place, row.generation) == (form.byte(), place, generation);
        self.added.retain(|row| !is_it(row));
        let _ = files.vfs.remove(&files.derived(form, place, generation));
    }

    /// Removes the files that others took the place of. A snapshot that still maps one keeps it alive; a name that cannot be
    /// removed now goes at the next opening.
    pub(crate) fn remove_dropped(&self, files: &Files) {
        for (form, place, generation) in &self.dropped {
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

impl<'a> Sealer<'a> {
    /// Who writes the files of an open database, as it stands at a state.
    pub(crate) fn of(inner: &'a Inner, state: &State) -> Self {
        Sealer {
            files: &inner.files,
            options: &inner.options,
            database: inner.log.database(),
            generation: &inner.checkpointer.generation,
            head: state.head,
        }
    }

    /// A new name for a derived file, noted for the manifest.
    fn name(&self, form: Form, place: u32, sealed: &mut Sealed) -> (PathBuf, FileIdentity) {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        sealed.added.push(ManifestRow { form: form.byte(), place, generation });
        let identity = FileIdentity { database: self.database, generation, place };
        (self.files.derived(form, place, generation), identity)
    }

    /// Writes a segment file and opens it again from the disk.
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

    /// The chunks of columns that the frozen changes touch, with the changes in them.
    pub(crate) fn chunks(&self, attributes: &AttributeStore, bound: u32, sealed: &mut Sealed) -> Result<Vec<Chunk>> {
        let vfs = self.files.vfs.as_ref();
        let mut chunks = Vec::new();
        for number in attributes.frozen_chunks() {
            let columns = attributes.write_chunk(number, bound)?;
            let (path, identity) = self.name(Form::Columns, number, sealed);
            columns.write(vfs, &path, identity)?;
            chunks.push(Chunk::new(number, Columns::open(vfs, &path, &identity)?)?);
            if let Some(generation) = attributes.chunk_generation(number) {
                sealed.dropped.push((Form::Columns, number, generation));
            }
        }
        Ok(chunks)
    }

    /// The vector segments of a layer with its tail in them; nothing when it has no vectors.
    pub(crate) fn vectors(
        &self,
        layer: &LayerIndex,
        place: u32,
        sealed: &mut Sealed,
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
        let (path, identity) = self.name(Form::Vectors, place, sealed);
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
        sealed.dropped.extend(generations.map(|generation| (Form::Vectors, place, generation)));
        segments.push(Arc::new(VectorSegment::open(file, &spec)?));
        Ok(Some(Arc::new(segments)))
    }

    /// A segment of `rows` in the place of one that is damaged; nothing when there are none.
    pub(crate) fn instead(
        &self,
        damaged: &VectorSegment,
        rows: &Rows,
        place: u32,
        sealed: &mut Sealed,
    ) -> Result<Option<Arc<VectorSegment>>> {
        sealed.dropped.push((Form::Vectors, place, damaged.file().identity().generation));
        if rows.ids().is_empty() {
            return Ok(None);
        }
        let (path, identity) = self.name(Form::Vectors, place, sealed);
        let options = BuildOptions { threads: self.options.background_threads.max(1), ..BuildOptions::default() };
        let file = build_segment(rows, identity, &options)?;
        let file = self.write(file, &path, VECTOR_SEGMENT_KIND, &identity)?;
        Ok(Some(Arc::new(VectorSegment::open(file, &damaged.spec())?)))
    }

    /// The word segments of a layer with its tails in them. In a hurry they absorb others only where there would be too many.
    pub(crate) fn words(
        &self,
        layer: &LayerIndex,
        place: u32,
        bound: u32,
        hurry: bool,
        sealed: &mut Sealed,
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
                self.word_tail(tail, place, bound, sealed)?
            } else {
                let identity = FileIdentity { database: self.database, generation: u64::MAX, place };
                let fresh = tail.build(bound, None, identity)?;
                let fresh = SegmentFile::from_bytes(fresh.into_bytes(), WORD_SEGMENT_KIND, &identity)?;
                let fresh = WordSegment::open(fresh)?;
                let sources = absorbed.iter().map(|segment| segment.as_ref()).chain([&fresh]).collect();
                let generations = absorbed.iter().map(|segment| segment.file().identity().generation);
                sealed.dropped.extend(generations.map(|generation| (Form::Words, place, generation)));
                self.merged_words(analyzer, sources, place, sealed)?
            });
        }
        Ok(Arc::new(segments))
    }

    /// The segment of a tail of words.
    pub(crate) fn word_tail(
        &self,
        tail: &WordTail,
        place: u32,
        bound: u32,
        sealed: &mut Sealed,
    ) -> Result<Arc<WordSegment>> {
        self.word_segment(place, sealed, |identity| Ok(tail.build(bound, None, identity)?))
    }

    /// A new segment of words, built under its name.
    pub(crate) fn word_segment(
        &self,
        place: u32,
        sealed: &mut Sealed,
        build: impl FnOnce(FileIdentity) -> Result<SegmentFileWriter>,
    ) -> Result<Arc<WordSegment>> {
        let (path, identity) = self.name(Form::Words, place, sealed);
        checked(self.write(build(identity)?, &path, WORD_SEGMENT_KIND, &identity)?)
    }

    /// One segment of several. Whose place it takes is for the caller to note.
    pub(crate) fn merged_words(
        &self,
        analyzer: Analyzer,
        sources: Vec<&WordSegment>,
        place: u32,
        sealed: &mut Sealed,
    ) -> Result<Arc<WordSegment>> {
        let (path, identity) = self.name(Form::Words, place, sealed);
        let vfs = self.files.vfs.as_ref();
        merge_word_segments(analyzer, &sources, None, (identity, Some(self.head)), vfs, &path)?;
        checked(SegmentFile::open(vfs, &path, WORD_SEGMENT_KIND, &identity)?)
    }
}

/// A word segment just written, checked here in the background and not by the first question.
fn checked(file: SegmentFile) -> Result<Arc<WordSegment>> {
    let segment = WordSegment::open(file)?;
    segment.check()?;
    Ok(Arc::new(segment))
}

/// Which segments, oldest first, a new one of `count` should absorb, and which stay: it absorbs every newest one that is not
/// more than so many times as large as what it would join, and the rest of them all when there would be too many.
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
            let Some(crate::answer::Output::Table(table)) = shown else { panic!("no table of segments") };
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
