//! Writing derived files: vector and word tails become segments, changed attributes become column chunks.
//!
//! A checkpoint writes a frozen state; a rebuild writes as it goes. Sealing a tail costs what the tail holds: it gets
//! no graph and is merged with nothing. Merges (`merge`) do that later, as `merge_policy` says.

use crate::Result;
use crate::core::Core;
use crate::core::files::{Files, Form};
use crate::derive::merge_policy::{LINKED_AT_ONCE, MergeBounds, SegmentSize, due_flat, due_links};
use crate::options::Options;
use crate::records::tables::{self, ManifestRow};
use crate::state::attributes::{AttributeStore, Chunk};
use crate::state::layers::LayerIndex;
use crate::state::vectors_in_log::VectorsInLog;
use holotype_index::scorer::BatchScorer;
use holotype_index::segment::layout::KIND as VECTOR_SEGMENT_KIND;
use holotype_index::segment::{merge_segments, write_tail};
use holotype_index::words::{Analyzer, WORD_SEGMENT_KIND, WordSegment, WordTail, merge_word_segments};
use holotype_index::{BuildOptions, LoggedVectors, Rows, VectorSegment, build_segment};
use holotype_storage::codec;
use holotype_storage::columns::Columns;
use holotype_storage::log::Head;
use holotype_storage::overlay::RowKey;
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The maximum number of word segments of a layer after a rebuild.
pub(crate) const MAX_SEGMENTS: usize = 8;

/// Writes derived files, each under a new name.
#[derive(Clone, Copy)]
pub(crate) struct DerivedWriter<'a> {
    pub(crate) files: &'a Files,
    pub(crate) options: &'a Options,
    pub(crate) scorer: &'a dyn BatchScorer,
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
    /// The writer for the files of an open database at `head`.
    pub(crate) fn of(core: &'a Core, head: Head) -> Self {
        DerivedWriter {
            files: &core.files,
            options: &core.options,
            scorer: core.scorer.as_ref(),
            database: core.log.database(),
            generation: &core.checkpointer.generation,
            head,
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

    /// Writes the vector tail of a layer as a segment without a graph. `None` if it is empty.
    pub(crate) fn seal_vectors(
        &self,
        layer: &LayerIndex,
        place: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Option<Arc<VectorSegment>>> {
        let Some(vectors) = layer.vectors.as_ref().filter(|vectors| !vectors.tail.is_empty()) else {
            return Ok(None);
        };
        let (path, identity) = self.name(Form::Vectors, place, changes);
        let vfs = self.files.vfs.as_ref();
        write_tail(&vectors.tail, (identity, Some(self.head)), (vfs, &path))?;
        let file = SegmentFile::open(vfs, &path, VECTOR_SEGMENT_KIND, &identity)?;
        Ok(Some(Arc::new(VectorSegment::open(file, &vectors.tail.spec())?)))
    }

    /// Merges vector segments into one, with a graph if they are to be linked: then the vectors may stay in `link`, the
    /// log. The caller records which files it replaces.
    pub(crate) fn merged_vectors(
        &self,
        sources: &[Arc<VectorSegment>],
        link: Option<&VectorsInLog>,
        place: u32,
        changes: &mut ManifestChanges,
        cancel: Option<&AtomicBool>,
    ) -> Result<Arc<VectorSegment>> {
        let (path, identity) = self.name(Form::Vectors, place, changes);
        let graph_from = if link.is_some() { 0 } else { usize::MAX };
        let log = link.map(|log| log as &dyn LoggedVectors);
        let threads = self.options.background_threads.max(1);
        let options = BuildOptions { threads, graph_from, scorer: self.scorer, log, cancel, ..BuildOptions::default() };
        let segments: Vec<&VectorSegment> = sources.iter().map(AsRef::as_ref).collect();
        let vfs = self.files.vfs.as_ref();
        let places = merge_segments(&segments, None, (identity, Some(self.head)), (vfs, &path), &options)?;
        let file = SegmentFile::open(vfs, &path, VECTOR_SEGMENT_KIND, &identity)?;
        Ok(Arc::new(VectorSegment::open(file, &segments[0].spec())?.with_places(places)))
    }

    /// Writes the vector tail of a layer and runs the merges that are due then. Returns all its vector segments, or
    /// `None` without an embedding space.
    pub(crate) fn vectors(
        &self,
        layer: &LayerIndex,
        log: &VectorsInLog,
        place: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Option<Arc<Vec<Arc<VectorSegment>>>>> {
        let Some(vectors) = &layer.vectors else { return Ok(None) };
        let mut segments = vectors.segments.as_ref().clone();
        segments.extend(self.seal_vectors(layer, place, changes)?);
        let size = |segment: &Arc<VectorSegment>| SegmentSize {
            count: segment.len(),
            graph: segment.has_graph(),
            taken: false,
        };
        loop {
            let sizes: Vec<SegmentSize> = segments.iter().map(size).collect();
            let bounds = MergeBounds { at_once: LINKED_AT_ONCE, in_segment: self.options.most_in_graph() };
            let links = due_links(&sizes, bounds);
            let is_link = links.is_some();
            let Some(range) = links.or_else(|| due_flat(&sizes, bounds)) else { break };
            let link = is_link.then_some(log);
            let merged = self.merged_vectors(&segments[range.clone()], link, place, changes, None)?;
            let generations = segments[range.clone()].iter().map(|segment| segment.file().identity().generation);
            changes.replaced.extend(generations.map(|generation| (Form::Vectors, place, generation)));
            segments.splice(range, [merged]);
        }
        Ok(Some(Arc::new(segments)))
    }

    /// Replaces a damaged segment by one of `rows`. `None` if `rows` is empty.
    pub(crate) fn replacement_segment(
        &self,
        damaged: &VectorSegment,
        rows: Rows,
        place: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Option<Arc<VectorSegment>>> {
        changes.replaced.push((Form::Vectors, place, damaged.file().identity().generation));
        if rows.ids().is_empty() {
            return Ok(None);
        }
        let (path, identity) = self.name(Form::Vectors, place, changes);
        let threads = self.options.background_threads.max(1);
        let options = BuildOptions { threads, scorer: self.scorer, ..BuildOptions::default() };
        let file = build_segment(rows, identity, &options)?;
        let file = self.write(file, &path, VECTOR_SEGMENT_KIND, &identity)?;
        Ok(Some(Arc::new(VectorSegment::open(file, &damaged.spec())?)))
    }

    /// Writes the frozen word tails of a layer, which are all but the last, as segments.
    pub(crate) fn seal_words(
        &self,
        layer: &LayerIndex,
        place: u32,
        bound: u32,
        changes: &mut ManifestChanges,
    ) -> Result<Vec<Arc<WordSegment>>> {
        let frozen = layer.words.tails.split_last().map_or(&[][..], |(_, frozen)| frozen);
        let filled = frozen.iter().filter(|tail| tail.document_count() > 0);
        filled.map(|tail| self.word_tail(tail, place, bound, changes)).collect()
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
        cancel: Option<&AtomicBool>,
    ) -> Result<Arc<WordSegment>> {
        let (path, identity) = self.name(Form::Words, place, changes);
        let vfs = self.files.vfs.as_ref();
        merge_word_segments(analyzer, &sources, None, (identity, Some(self.head)), (vfs, &path), cancel)?;
        checked(SegmentFile::open(vfs, &path, WORD_SEGMENT_KIND, &identity)?)
    }
}

/// Opens and verifies a word segment just written, so that no query pays for the check.
fn checked(file: SegmentFile) -> Result<Arc<WordSegment>> {
    let segment = WordSegment::open(file)?;
    segment.check()?;
    Ok(Arc::new(segment))
}

#[cfg(test)]
mod tests {
    use crate::{Durability, Holotype, NewTrace, Options, Space};
    use holotype_query::Params;
    use holotype_storage::vfs::SimVfs;
    use std::sync::Arc;

    #[test]
    fn a_checkpoint_that_is_waited_for_links_what_is_due() {
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
        assert_eq!(parts_after(2000), [part("graph", 5800), part("flat", 10), part("flat", 2000)]);
        assert_eq!(parts_after(40), [part("graph", 7850)]);
    }
}
