//! What a rebuild keeps: segments of vectors and words that are whole and were made from the log as it is.
//!
//! To analyse texts and to link graphs takes many times as long as all else of a rebuild, and files that are right need not be
//! made again because another was lost. A segment says up to which commit of which log it goes, and which items it holds;
//! so the log alone can tell whether it is right, with no catalog to vouch for it:
//!
//! 1. Every byte matches its checksum, and the file is of this database, generation and layer.
//! 2. The log passes through the head that the segment was made at: all before that is what it was made from.
//! 3. All its items are items of its layer of which nothing was erased, and it was made by the analyser, or for the space, that
//!    the log states. So what was forgotten does not come back with a file of before.
//! 4. No item stands in two of a layer.
//!
//! The first and the last are found out before the log is read, the others when its end is reached. Where one then turns out
//! to be none of this log's, everything is made once more without it.

use crate::Result;
use crate::attributes::Column;
use crate::files::{Files, Form};
use crate::item::Layer;
use crate::layers::by_size;
use crate::record::ItemRecord;
use crate::space::Space;
use crate::state::State;
use crate::tables::ManifestRow;
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

/// The segments that are kept, unless the log says otherwise.
#[derive(Default)]
pub(crate) struct Kept {
    segments: Vec<Segment>,
}

/// The items of a layer that need not be made findable, for they are in segments that are kept.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) vectors: Bits,
    pub(crate) words: Bits,
}

impl Held {
    /// Whether an item of this layer need not be made findable at all.
    pub(crate) fn all_of(&self, item: &ItemRecord) -> bool {
        self.words.contains(item.id) && (item.vector.is_none() || self.vectors.contains(item.id))
    }
}

/// A segment that is whole, and what it says of itself.
struct Segment {
    content: Content,
    layer: Layer,
    generation: u64,
    origin: Head,
    items: Bits,
}

enum Content {
    Vectors(Arc<VectorSegment>),
    Words(Arc<WordSegment>),
}

impl Content {
    fn form(&self) -> Form {
        match self {
            Content::Vectors(_) => Form::Vectors,
            Content::Words(_) => Form::Words,
        }
    }
}

impl Kept {
    /// The segments in the database's directory that are whole and say what they were made from. Others are passed over: they
    /// will be made anew.
    pub(crate) fn find(files: &Files, database: [u8; 16]) -> Kept {
        let named = Mutex::new(files.named().into_iter());
        let found = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = named.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((form, place, generation)) = next else { break };
                        let identity = FileIdentity { database, generation, place };
                        if let Ok(Some(segment)) = open(files, form, identity) {
                            found.lock().unwrap_or_else(PoisonError::into_inner).push(segment);
                        }
                    }
                });
            }
        });
        let mut found: Vec<Segment> = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|segment| (Reverse(segment.items.count()), Reverse(segment.generation)));
        let mut kept = Kept::default();
        for segment in found {
            if kept.like(&segment).all(|other| other.items.and_count(&segment.items) == 0) {
                kept.segments.push(segment);
            }
        }
        kept
    }

    /// The others that serve the same.
    fn like<'s>(&'s self, segment: &'s Segment) -> impl Iterator<Item = &'s Segment> {
        self.segments
            .iter()
            .filter(|other| (other.layer, other.content.form()) == (segment.layer, segment.content.form()))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// By layer, the items that are in them.
    pub(crate) fn held(&self) -> [Held; 3] {
        let mut held: [Held; 3] = Default::default();
        for segment in &self.segments {
            let of_layer = &mut held[segment.layer as usize];
            let bits = match segment.content {
                Content::Vectors(_) => &mut of_layer.vectors,
                Content::Words(_) => &mut of_layer.words,
            };
            *bits = bits.or(&segment.items);
        }
        held
    }

    /// The heads of the log that they were made at.
    pub(crate) fn origins(&self) -> Vec<Head> {
        self.segments.iter().map(|segment| segment.origin).collect()
    }

    /// The generations of those that are not right, once all of the log is applied: `missed` are the heads it does not pass
    /// through.
    pub(crate) fn wrong(&self, state: &State, missed: &[Head]) -> Result<BTreeSet<u64>> {
        let mut wrong = BTreeSet::new();
        if self.segments.is_empty() {
            return Ok(wrong);
        }
        let space = state.meta.space.as_deref().map(Space::try_from).transpose()?;
        let spec: Option<VectorSpec> = space.map(|space| space.spec());
        let erased = state.attributes.select(Column::Redacted, state.bound(), &|redacted| redacted == 1.0)?;
        for layer in Layer::ALL {
            let items = state.attributes.layer(*layer, state.bound())?.and_not(&erased);
            for segment in self.segments.iter().filter(|segment| segment.layer == *layer) {
                let is_made_alike = match &segment.content {
                    Content::Vectors(vectors) => Some(vectors.spec()) == spec,
                    Content::Words(words) => words.analyzer() == state.layer(*layer).words.analyzer.id(),
                };
                let is_right =
                    is_made_alike && !missed.contains(&segment.origin) && segment.items.and_not(&items).is_empty();
                if !is_right {
                    wrong.insert(segment.generation);
                }
            }
        }
        Ok(wrong)
    }

    /// Keeps these no longer.
    pub(crate) fn leave(&mut self, generations: &BTreeSet<u64>) {
        self.segments.retain(|segment| !generations.contains(&segment.generation));
    }

    /// Puts them beside those that a state has, and names them for the manifest.
    pub(crate) fn join(&self, state: &mut State) -> Result<Vec<ManifestRow>> {
        state.prepare_vectors()?;
        for segment in &self.segments {
            let index = &mut state.layers[segment.layer as usize];
            match (&segment.content, &mut index.vectors) {
                (Content::Words(words), _) => {
                    let segments = Arc::make_mut(&mut index.words.segments);
                    segments.push(Arc::clone(words));
                    by_size(segments);
                }
                (Content::Vectors(made), Some(vectors)) => {
                    let segments = Arc::make_mut(&mut vectors.segments);
                    segments.push(Arc::clone(made));
                    segments.sort_by_key(|segment| *segment.id_range().start());
                }
                (Content::Vectors(_), None) => {}
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

/// Opens and checks a file; nothing when it does not say what it was made from.
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
        (Content::Vectors(Arc::new(vectors)), items)
    } else {
        let words = WordSegment::open(file)?;
        let items = words.stated_ids()?.collect();
        (Content::Words(Arc::new(words)), items)
    };
    Ok(Some(Segment { content, layer, generation: identity.generation, origin, items }))
}
