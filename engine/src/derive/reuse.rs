//! Segment reuse: a rebuild keeps vector and word segments that are intact and were made from this log.
//!
//! Analysing texts and linking graphs takes most of the time of a rebuild. A segment states the log head it was made at
//! and the items it holds, so the log alone can confirm it, without a catalog:
//!
//! 1. Every byte matches its checksum, and the file carries this database's id, its own generation and its layer.
//! 2. The log passes through the head that the segment was made at: the segment was made from this log.
//! 3. All its items are items of its layer that were not erased, and its analyser or space is the one the log states.
//!    So a segment from before a forget is rejected.
//! 4. No item is in two segments of a layer.
//!
//! Rules 1 and 4 are checked before the log is read, 2 and 3 at its end. If the log contradicts a segment, the rebuild
//! runs once more without it.

use crate::Result;
use crate::core::files::{Files, Form};
use crate::model::item::Layer;
use crate::model::space::Space;
use crate::records::tables::ManifestRow;
use crate::state::State;
use crate::state::attributes::Column;
use crate::state::covered_items::CoveredItems;
use crate::state::layers::by_size;
use holotype_index::bitmap::Bits;
use holotype_index::segment::layout::KIND as VECTOR_SEGMENT_KIND;
use holotype_index::words::{WORD_SEGMENT_KIND, WordSegment};
use holotype_index::{VectorSegment, VectorSpec};
use holotype_storage::features::Access;
use holotype_storage::log::Head;
use holotype_storage::segment_file::{FileIdentity, SegmentFile};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};

/// The segments to reuse, unless the log contradicts them.
#[derive(Default)]
pub(crate) struct ReusedSegments {
    segments: Vec<Segment>,
}

/// An intact segment and what its file states.
struct Segment {
    content: IndexSegment,
    layer: Layer,
    generation: u64,
    origin: Head,
    items: Bits,
}

enum IndexSegment {
    Vectors(Arc<VectorSegment>),
    Words(Arc<WordSegment>),
}

impl IndexSegment {
    fn form(&self) -> Form {
        match self {
            IndexSegment::Vectors(_) => Form::Vectors,
            IndexSegment::Words(_) => Form::Words,
        }
    }
}

impl ReusedSegments {
    /// The intact segments in the database's directory that state their origin. Others are ignored and rebuilt.
    pub(crate) fn find(files: &Files, database: [u8; 16]) -> ReusedSegments {
        let named = Mutex::new(files.named().into_iter());
        let found = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        std::thread::scope(|scope| {
            let work = || {
                loop {
                    let next = named.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((form, place, generation)) = next else { break };
                    let identity = FileIdentity { database, generation, place };
                    if let Ok(Some(segment)) = open(files, form, identity) {
                        found.lock().unwrap_or_else(PoisonError::into_inner).push(segment);
                    }
                }
            };
            for _ in 1..threads {
                // Without another thread this one opens all of them.
                drop(files.spawn(scope, work));
            }
            work();
        });
        let mut found: Vec<Segment> = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|segment| (Reverse(segment.items.count()), Reverse(segment.generation)));
        let mut reused = ReusedSegments::default();
        for segment in found {
            if reused.of_same_index(&segment).all(|other| other.items.and_count(&segment.items) == 0) {
                reused.segments.push(segment);
            }
        }
        reused
    }

    /// The segments of the same layer and form.
    fn of_same_index<'s>(&'s self, segment: &'s Segment) -> impl Iterator<Item = &'s Segment> {
        self.segments
            .iter()
            .filter(|other| (other.layer, other.content.form()) == (segment.layer, segment.content.form()))
    }

    /// The number of segments.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// The items in the segments, by layer.
    pub(crate) fn covered_items(&self) -> [CoveredItems; 3] {
        let mut covered_items: [CoveredItems; 3] = Default::default();
        for segment in &self.segments {
            let of_layer = &mut covered_items[segment.layer as usize];
            let bits = match segment.content {
                IndexSegment::Vectors(_) => &mut of_layer.vectors,
                IndexSegment::Words(_) => &mut of_layer.words,
            };
            *bits = bits.or(&segment.items);
        }
        covered_items
    }

    /// The log heads that the segments were made at.
    pub(crate) fn origins(&self) -> Vec<Head> {
        self.segments.iter().map(|segment| segment.origin).collect()
    }

    /// The generations of segments that the log contradicts, once all of it is applied. `unseen_origins` are the heads
    /// that the log does not pass through; vectors made before the commit `reembedded` were replaced by it.
    pub(crate) fn invalid(
        &self,
        state: &State,
        unseen_origins: &[Head],
        reembedded: Option<u64>,
    ) -> Result<BTreeSet<u64>> {
        let mut invalid = BTreeSet::new();
        if self.segments.is_empty() {
            return Ok(invalid);
        }
        let space = state.meta.space.as_deref().map(Space::try_from).transpose()?;
        let spec: Option<VectorSpec> = space.map(|space| space.spec());
        let erased = state.attributes.select(Column::Redacted, state.bound(), &|redacted| redacted == 1.0)?;
        for layer in Layer::ALL {
            let items = state.attributes.layer(*layer, state.bound())?.and_not(&erased);
            for segment in self.segments.iter().filter(|segment| segment.layer == *layer) {
                let is_made_alike = match &segment.content {
                    IndexSegment::Vectors(vectors) => {
                        Some(vectors.spec()) == spec
                            && reembedded.is_none_or(|commit| segment.origin.commit.0 >= commit)
                    }
                    IndexSegment::Words(words) => words.analyzer() == state.layer(*layer).words.analyzer.id(),
                };
                let is_right = is_made_alike
                    && !unseen_origins.contains(&segment.origin)
                    && segment.items.and_not(&items).is_empty();
                if !is_right {
                    invalid.insert(segment.generation);
                }
            }
        }
        Ok(invalid)
    }

    /// Removes these generations from the segments to reuse.
    pub(crate) fn discard(&mut self, generations: &BTreeSet<u64>) {
        self.segments.retain(|segment| !generations.contains(&segment.generation));
    }

    /// Adds the segments to a state. Returns their manifest rows.
    pub(crate) fn attach(&self, state: &mut State) -> Result<Vec<ManifestRow>> {
        state.prepare_vectors()?;
        for segment in &self.segments {
            let index = &mut state.layers[segment.layer as usize];
            match (&segment.content, &mut index.vectors) {
                (IndexSegment::Words(words), _) => {
                    let segments = Arc::make_mut(&mut index.words.segments);
                    segments.push(Arc::clone(words));
                    by_size(segments);
                }
                (IndexSegment::Vectors(made), Some(vectors)) => {
                    let segments = Arc::make_mut(&mut vectors.segments);
                    segments.push(Arc::clone(made));
                    segments.sort_by_key(|segment| *segment.id_range().start());
                }
                (IndexSegment::Vectors(_), None) => {}
            }
        }
        let rows = self.segments.iter().map(|segment| ManifestRow {
            form: segment.content.form().byte(),
            place: segment.layer as u32,
            generation: segment.generation,
        });
        Ok(rows.collect())
    }
}

/// Opens and verifies a file. `None` if it does not state its origin.
fn open(files: &Files, form: Form, identity: FileIdentity) -> Result<Option<Segment>> {
    let path = files.derived(form, identity.place, identity.generation);
    let vfs = files.vfs.as_ref();
    let Some(layer) = Layer::ALL.get(identity.place as usize).copied() else { return Ok(None) };
    let kind = match form {
        Form::Columns => return Ok(None),
        Form::Vectors => VECTOR_SEGMENT_KIND,
        Form::Words => WORD_SEGMENT_KIND,
    };
    let file = SegmentFile::open(vfs, &path, kind, &identity)?;
    file.check_access(Access::Write)?;
    let Some(origin) = file.origin()? else { return Ok(None) };
    file.verify()?;
    let (content, items) = if form == Form::Vectors {
        let spec = VectorSegment::spec_of(&file)?;
        let vectors = VectorSegment::open(file, &spec)?;
        let items = vectors.ids()?.into_iter().collect();
        (IndexSegment::Vectors(Arc::new(vectors)), items)
    } else {
        let words = WordSegment::open(file)?;
        let items = words.stated_ids()?.collect();
        (IndexSegment::Words(Arc::new(words)), items)
    };
    Ok(Some(Segment { content, layer, generation: identity.generation, origin, items }))
}
