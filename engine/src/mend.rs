//! Mending: a segment of vectors or words that turned out to be damaged is made again from the log, while questions go on.
//!
//! Large segments are checked as they are read, so damage is met in the midst of a question. The question is answered from
//! what is whole: of a segment of vectors the sound ones are compared one by one, and what stands in damaged blocks is read from
//! the log where its score is needed; a segment of words is left out. The answer says so, and the next checkpoint, which the
//! question asks for, begins with making the segment again.
//!
//! 1. Who mends holds the turn of checkpoints, so nobody else replaces segments but by making everything anew; that is found
//!    out at the end, as a checkpoint finds it out, and what was made is dropped.
//! 2. The catalog names the new file instead of the damaged one before anybody reads it; the damaged one is removed last.
//! 3. A segment that could not be made again is not tried again before the next opening.

pub(crate) mod words;

use crate::checkpoint;
use crate::content::{ContentReader, OwnItems};
use crate::database::Inner;
use crate::item::{ItemId, Layer};
use crate::sealing::{Sealed, Sealer};
use crate::snapshot::{Snapshot, is_damage};
use crate::space::Space;
use crate::state::State;
use crate::{Error, Result};
use holotype_index::words::WordSegment;
use holotype_index::{Rows, VectorIndex, VectorSegment, VectorTail};
use holotype_storage::catalog::Catalog;
use holotype_storage::overlay::Overlay;
use std::sync::{Arc, PoisonError};

/// The damaged segments that nobody has tried to make again.
struct Damaged {
    /// Of vectors, each with the layer it serves.
    vectors: Vec<(u32, Arc<VectorSegment>)>,
    /// The layers with such segments of words.
    words: Vec<Layer>,
}

impl Damaged {
    fn is_empty(&self) -> bool {
        self.vectors.is_empty() && self.words.is_empty()
    }
}

impl State {
    /// The vectors of a layer that stand in damaged segments.
    pub(crate) fn damaged_vectors(&self, layer: Layer) -> usize {
        let vectors = self.layer(layer).vectors.iter();
        let segments = vectors.flat_map(|vectors| vectors.segments.iter());
        segments.filter(|segment| segment.damage().is_err()).map(|segment| segment.len()).sum()
    }

    /// How many segments of words are known to be damaged.
    fn damaged_word_segments(&self) -> usize {
        let segments = self.layers.iter().flat_map(|layer| layer.words.segments.iter());
        segments.filter(|segment| segment.is_damaged()).count()
    }

    /// The items of a layer whose words stand in damaged segments.
    pub(crate) fn damaged_words(&self, layer: Layer) -> u64 {
        let segments = self.layer(layer).words.segments.iter();
        segments.filter(|segment| segment.is_damaged()).map(|segment| u64::from(segment.document_count())).sum()
    }
}

impl Inner {
    /// Asks for what is damaged to be made again, where that can be done.
    pub(crate) fn mend_soon(self: &Arc<Self>) {
        if !self.options.read_only && !self.untried(&self.published.load()).is_empty() {
            self.checkpointer.start(self);
        }
    }

    /// What is damaged that nobody has tried to make again.
    fn untried(&self, state: &State) -> Damaged {
        let tried = self.checkpointer.mended.lock().unwrap_or_else(PoisonError::into_inner);
        let layers = (0u32..).zip(&state.layers);
        let vectors = layers.flat_map(|(place, layer)| {
            let vectors = layer.vectors.iter().flat_map(|vectors| vectors.segments.iter());
            vectors.map(move |segment| (place, Arc::clone(segment)))
        });
        let vectors = vectors
            .filter(|(_, segment)| segment.damage().is_err() && !tried.contains(&segment.file().identity().generation));
        let is_untried =
            |segment: &Arc<WordSegment>| segment.is_damaged() && !tried.contains(&segment.file().identity().generation);
        let words =
            Layer::ALL.iter().copied().filter(|layer| state.layer(*layer).words.segments.iter().any(is_untried));
        Damaged { vectors: vectors.collect(), words: words.collect() }
    }

    fn note_tried(&self, generations: impl IntoIterator<Item = u64>) {
        self.checkpointer.mended.lock().unwrap_or_else(PoisonError::into_inner).extend(generations);
    }
}

/// Whether something is damaged that could be made again.
pub(crate) fn is_due(inner: &Inner) -> bool {
    let state = Arc::clone(&inner.lock_writer().state);
    !inner.untried(&state).is_empty()
}

/// Makes the damaged segments again; the caller holds the turn of checkpoints.
pub(crate) fn mend(inner: &Inner) -> Result<()> {
    let (state, rederived, catalog) = {
        let writer = inner.lock_writer();
        if writer.checkpoint_running || writer.poisoned.is_some() {
            return Ok(());
        }
        // The catalog of now: in one that is made anew meanwhile nothing must name what is made here.
        (Arc::clone(&writer.state), writer.rederived, checkpoint::catalog(inner)?)
    };
    let damaged = inner.untried(&state);
    if damaged.is_empty() {
        return Ok(());
    }
    inner.note_tried(damaged.vectors.iter().map(|(_, segment)| segment.file().identity().generation));
    let words = damaged.words.iter().flat_map(|layer| state.layer(*layer).words.segments.iter());
    let words = words.filter(|segment| segment.is_damaged());
    inner.note_tried(words.map(|segment| segment.file().identity().generation));
    let mut sealed = Sealed::default();
    let replaced = replace(inner, &state, rederived, &catalog, &damaged, &mut sealed);
    match replaced {
        Ok(true) => sealed.remove_dropped(&inner.files),
        Ok(false) | Err(_) => {
            for path in sealed.paths(&inner.files) {
                let _ = inner.files.vfs.remove(&path);
            }
        }
    }
    replaced.map(|_| ())
}

/// Writes new segments and puts them in the place of the damaged ones; false when everything was made anew meanwhile.
fn replace(
    inner: &Inner,
    state: &State,
    rederived: u64,
    catalog: &Catalog,
    damaged: &Damaged,
    sealed: &mut Sealed,
) -> Result<bool> {
    let sealer = Sealer::of(inner, state);
    let mut fresh = Vec::new();
    for (place, segment) in &damaged.vectors {
        fresh.push(sealer.instead(segment, &from_log(inner, state, segment)?, *place, sealed)?);
    }
    let mut words = Vec::new();
    for layer in &damaged.words {
        let (segments, others) = words::again(inner, state, *layer, sealed)?;
        inner.note_tried(others);
        words.push((*layer, Arc::new(segments)));
    }
    let Some(applied) = catalog.applied()? else { return Ok(false) };
    catalog.checkpoint(sealed.manifest_rows()?, &applied)?;
    // From here on the catalog names the new files, whatever happens.
    let base = catalog.snapshot().inspect_err(|_| sealed.added.clear())?;
    state.hand_on_adjacency(&Overlay::new(), &base);
    let mut writer = inner.lock_writer();
    if writer.rederived != rederived {
        return Ok(false);
    }
    let mut newest = writer.state.as_ref().clone();
    newest.rows.thaw(base);
    for vectors in newest.layers.iter_mut().filter_map(|layer| layer.vectors.as_mut()) {
        let instead = |segment: &Arc<VectorSegment>| {
            let at = damaged.vectors.iter().position(|(_, damaged)| Arc::ptr_eq(damaged, segment));
            at.map_or_else(|| Some(Arc::clone(segment)), |at| fresh.get(at).cloned().flatten())
        };
        vectors.segments = Arc::new(vectors.segments.iter().filter_map(instead).collect());
    }
    for (layer, segments) in words {
        newest.layers[layer as usize].words.segments = segments;
    }
    inner.replace(&mut writer, newest);
    drop(writer);
    inner.publish();
    Ok(true)
}

/// Does what reads words, and does it again when it met damage that nobody knew of: the next time that segment is left out.
pub(crate) fn around_damage<T>(state: &State, mut read: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        let before = state.damaged_word_segments();
        match read() {
            Err(Error::Index(_) | Error::Storage(_)) if state.damaged_word_segments() > before => {}
            done => return done,
        }
    }
}

/// The vectors of a segment as the log holds them. What the log has no more of is left out.
fn from_log(inner: &Inner, state: &State, segment: &VectorSegment) -> Result<Rows> {
    let space = state.meta.space.as_deref().map(Space::try_from).transpose()?;
    let space = space.ok_or_else(|| Error::Corrupt { what: "there are vectors without a space".to_owned() })?;
    let reader = ContentReader { log: Arc::clone(&inner.log), own: OwnItems::new() };
    let mut rows = Rows::new(segment.spec());
    for id in segment.ids()? {
        match reader.read(state, ItemId(id)) {
            Ok(content) => {
                if let Some(bytes) = &content.record.vector {
                    rows.push(id, &space.decode(bytes)?)?;
                }
            }
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

/// The similarity of items of a layer to a vector: from the index, or, where that is damaged, from the log.
pub(crate) fn scores(snapshot: &Snapshot, layer: Layer, query: &[f32], ids: &[u32]) -> Result<Vec<Option<f32>>> {
    let Some(index) = snapshot.state.layer(layer).vector_index()? else { return Ok(vec![None; ids.len()]) };
    match index.scores(query, ids) {
        Err(holotype_index::Error::Corrupt { .. }) => {
            snapshot.inner.mend_soon();
            let mut sorted = ids.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            let tail = VectorTail::new(index.spec());
            for id in sorted {
                match snapshot.vector(ItemId(id)) {
                    Ok(vector) => vector.into_iter().try_for_each(|vector| tail.push(id, &vector))?,
                    Err(error) if is_damage(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(VectorIndex::new(Vec::new(), tail.view())?.scores(query, ids)?)
        }
        scores => Ok(scores?),
    }
}

/// The vector of an item of a layer: from the index, or, where that is damaged, from the log.
pub(crate) fn vector(snapshot: &Snapshot, layer: Layer, id: ItemId) -> Result<Option<Vec<f32>>> {
    let Some(index) = snapshot.state.layer(layer).vector_index()? else { return Ok(None) };
    match index.vector(id.0) {
        Err(holotype_index::Error::Corrupt { .. }) => {
            snapshot.inner.mend_soon();
            snapshot.vector(id)
        }
        vector => Ok(vector?),
    }
}
