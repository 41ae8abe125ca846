//! Repair: a damaged vector or word segment is rebuilt from the log while queries continue.
//!
//! Large segments are verified block by block as they are read, so a query may be the first to find damage. It answers
//! from what is intact: of a vector segment, intact vectors are compared one by one and vectors in damaged blocks are
//! read from the log when a score needs them; a word segment is left out. The answer has a note, and the query requests
//! a checkpoint, which begins with the repair.
//!
//! 1. A repair holds the checkpoint lock, so only an online rebuild can replace segments at the same time. The repair
//!    detects that at its end and discards its files.
//! 2. The catalog names the new file before any query reads it; the damaged file is removed last.
//! 3. A segment whose repair failed is not tried again before the next opening.

pub(crate) mod words;

use crate::core::Core;
use crate::derive::checkpoint;
use crate::derive::derived_writer::{DerivedWriter, ManifestChanges};
use crate::derive::maintenance::applied_again;
use crate::model::item::{ItemId, Layer};
use crate::model::space::Space;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::State;
use crate::state::content::{ContentReader, OwnItems};
use crate::{Error, Result};
use holotype_index::words::WordSegment;
use holotype_index::{Rows, VectorIndex, VectorSegment, VectorTail};
use holotype_storage::catalog::Catalog;
use holotype_storage::overlay::Overlay;
use std::sync::{Arc, PoisonError};

/// The damaged segments that no repair has tried.
struct Damaged {
    /// Vector segments with their layers.
    vectors: Vec<(u32, Arc<VectorSegment>)>,
    /// Layers with damaged word segments.
    words: Vec<Layer>,
}

impl Damaged {
    fn is_empty(&self) -> bool {
        self.vectors.is_empty() && self.words.is_empty()
    }
}

impl State {
    /// The number of vectors in damaged segments of a layer.
    pub(crate) fn damaged_vectors(&self, layer: Layer) -> usize {
        let vectors = self.layer(layer).vectors.iter();
        let segments = vectors.flat_map(|vectors| vectors.segments.iter());
        segments.filter(|segment| segment.damage().is_err()).map(|segment| segment.len()).sum()
    }

    /// The number of word segments known to be damaged.
    fn damaged_word_segments(&self) -> usize {
        let segments = self.layers.iter().flat_map(|layer| layer.words.segments.iter());
        segments.filter(|segment| segment.is_damaged()).count()
    }

    /// The number of items in damaged word segments of a layer.
    pub(crate) fn damaged_words(&self, layer: Layer) -> u64 {
        let segments = self.layer(layer).words.segments.iter();
        segments.filter(|segment| segment.is_damaged()).map(|segment| u64::from(segment.document_count())).sum()
    }
}

impl Core {
    /// Requests a repair of the damaged segments, unless the database is read-only.
    pub(crate) fn schedule_repair(self: &Arc<Self>) {
        if !self.options.read_only && !self.lock.is_released() && !self.untried(&self.published.load()).is_empty() {
            checkpoint::start(self);
        }
    }

    /// The damaged segments of `state` that no repair has tried.
    fn untried(&self, state: &State) -> Damaged {
        let tried = self.checkpointer.repair_attempts.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.checkpointer.repair_attempts.lock().unwrap_or_else(PoisonError::into_inner).extend(generations);
    }
}

/// True if a damaged segment awaits repair.
pub(crate) fn is_due(core: &Core) -> bool {
    let state = Arc::clone(&core.lock_writer().state);
    !core.untried(&state).is_empty()
}

/// Repairs the damaged segments. The caller holds the checkpoint lock.
pub(crate) fn repair_damaged(core: &Core) -> Result<()> {
    let (state, rebuild_count, catalog) = {
        let writer = core.lock_writer();
        if writer.checkpoint_running || writer.poisoned.is_some() {
            return Ok(());
        }
        // The present catalog: a catalog that an online rebuild writes meanwhile must not name the files written here.
        (Arc::clone(&writer.state), writer.rebuild_count, checkpoint::catalog(core)?)
    };
    let damaged = core.untried(&state);
    if damaged.is_empty() {
        return Ok(());
    }
    core.note_tried(damaged.vectors.iter().map(|(_, segment)| segment.file().identity().generation));
    let words = damaged.words.iter().flat_map(|layer| state.layer(*layer).words.segments.iter());
    let words = words.filter(|segment| segment.is_damaged());
    core.note_tried(words.map(|segment| segment.file().identity().generation));
    let mut changes = ManifestChanges::default();
    let replaced = replace(core, &state, rebuild_count, &catalog, &damaged, &mut changes);
    match replaced {
        Ok(true) => changes.remove_replaced(&core.files),
        Ok(false) | Err(_) => {
            for path in changes.paths(&core.files) {
                let _ = core.files.vfs.remove(&path);
            }
        }
    }
    replaced.map(|_| ())
}

/// Writes new segments and replaces the damaged ones by them. Returns false if an online rebuild came first.
fn replace(
    core: &Core,
    state: &State,
    rebuild_count: u64,
    catalog: &Catalog,
    damaged: &Damaged,
    changes: &mut ManifestChanges,
) -> Result<bool> {
    let files_writer = DerivedWriter::of(core, state.head);
    let mut fresh = Vec::new();
    for (place, segment) in &damaged.vectors {
        fresh.push(files_writer.replacement_segment(segment, from_log(core, state, segment)?, *place, changes)?);
    }
    let mut words = Vec::new();
    for layer in &damaged.words {
        let (segments, others) = words::rebuild_words(core, state, *layer, changes)?;
        core.note_tried(others);
        words.push((*layer, Arc::new(segments)));
    }
    let Some(applied) = catalog.applied()? else { return Ok(false) };
    catalog.checkpoint(changes.manifest_rows()?, &applied_again(&applied)?)?;
    // From here on the catalog names the new files, so an error must not remove them.
    let base = core.base_of(catalog).inspect_err(|_| changes.added.clear())?;
    state.carry_over_adjacency(&Overlay::new(), &base);
    let mut writer = core.lock_writer();
    if writer.rebuild_count != rebuild_count {
        return Ok(false);
    }
    let mut newest = writer.state.as_ref().clone();
    newest.rows.thaw(base);
    for vectors in newest.layers.iter_mut().filter_map(|layer| layer.vectors.as_mut()) {
        let replacement = |segment: &Arc<VectorSegment>| {
            let at = damaged.vectors.iter().position(|(_, damaged)| Arc::ptr_eq(damaged, segment));
            at.map_or_else(|| Some(Arc::clone(segment)), |at| fresh.get(at).cloned().flatten())
        };
        vectors.segments = Arc::new(vectors.segments.iter().filter_map(replacement).collect());
    }
    for (layer, segments) in words {
        newest.layers[layer as usize].words.segments = segments;
    }
    core.replace(&mut writer, newest);
    drop(writer);
    core.publish();
    Ok(true)
}

/// Runs `read`, and repeats it after each newly found damaged word segment, which the next run leaves out.
pub(crate) fn skip_damaged<T>(state: &State, mut read: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        let before = state.damaged_word_segments();
        match read() {
            Err(Error::Index(_) | Error::Storage(_)) if state.damaged_word_segments() > before => {}
            done => return done,
        }
    }
}

/// The vectors of a segment, read from the log. Items whose records are damaged or erased are left out.
fn from_log(core: &Core, state: &State, segment: &VectorSegment) -> Result<Rows> {
    let space = state.meta.space.as_deref().map(Space::try_from).transpose()?;
    let space = space.ok_or_else(|| Error::Corrupt {
        what: "a vector segment exists, but the database has no embedding space".to_owned(),
    })?;
    let reader = ContentReader { log: Arc::clone(&core.log), own: OwnItems::new() };
    let mut rows = Rows::new(segment.spec());
    for id in segment.ids()? {
        match reader.vector(state, ItemId(id)) {
            Ok(Some(bytes)) => rows.push(id, &space.decode(&bytes)?)?,
            Ok(None) => {}
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

/// The similarity of items to `query`, from the index, or from the log if the index is damaged.
pub(crate) fn scores(snapshot: &Snapshot, layer: Layer, query: &[f32], ids: &[u32]) -> Result<Vec<Option<f32>>> {
    let Some(index) = snapshot.state.vector_index(layer, &snapshot.core.log)? else { return Ok(vec![None; ids.len()]) };
    match index.scores(query, ids) {
        Err(holotype_index::Error::Corrupt { .. }) => {
            snapshot.core.schedule_repair();
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

/// The vector of an item, from the index, or from the log if the index is damaged.
pub(crate) fn vector(snapshot: &Snapshot, layer: Layer, id: ItemId) -> Result<Option<Vec<f32>>> {
    let Some(index) = snapshot.state.vector_index(layer, &snapshot.core.log)? else { return Ok(None) };
    match index.vector(id.0) {
        Err(holotype_index::Error::Corrupt { .. }) => {
            snapshot.core.schedule_repair();
            snapshot.vector(id)
        }
        vector => Ok(vector?),
    }
}
