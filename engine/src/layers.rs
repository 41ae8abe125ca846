//! The vectors and words of one layer: immutable segments, and the tails of what no segment holds yet.
//!
//! Invariants:
//! 1. A published `LayerIndex` answers the same for ever: segments never change, a vector tail is a view of immutable
//!    blocks, and a word tail is read below the state's id bound.
//! 2. Documents enter the shared word tail only when their transaction is in the log; a transaction that looks at its own
//!    writes has a tail of its own.

use crate::content::OwnItems;
use crate::item::{ItemId, Layer};
use crate::kept::Held;
use crate::record::{FieldValue, ItemRecord};
use crate::space::Space;
use crate::state::State;
use crate::{Error, Result};
use holotype_index::words::{Analyzer, Stemming, WordIndex, WordSegment, WordTail};
use holotype_index::{TailView, VectorIndex, VectorSegment, VectorTail};
use std::cmp::Reverse;
use std::sync::Arc;

/// The vectors of a layer.
#[derive(Clone)]
pub(crate) struct LayerVectors {
    pub(crate) segments: Arc<Vec<Arc<VectorSegment>>>,
    pub(crate) tail: TailView,
}

/// The words of a layer. The last tail takes new documents; one before it is being written into a segment.
#[derive(Clone)]
pub(crate) struct LayerWords {
    pub(crate) analyzer: Analyzer,
    pub(crate) segments: Arc<Vec<Arc<WordSegment>>>,
    pub(crate) tails: Vec<Arc<WordTail>>,
}

/// One layer's index.
#[derive(Clone)]
pub(crate) struct LayerIndex {
    /// Nothing until the database has an embedding space.
    pub(crate) vectors: Option<LayerVectors>,
    pub(crate) words: LayerWords,
}

impl LayerIndex {
    /// An index of nothing.
    pub(crate) fn new(analyzer: Analyzer) -> Self {
        let words = LayerWords { analyzer, segments: Arc::default(), tails: vec![Arc::new(WordTail::new(analyzer))] };
        LayerIndex { vectors: None, words }
    }

    /// The vectors as one index, if the database has a space.
    pub(crate) fn vector_index(&self) -> Result<Option<VectorIndex>> {
        let Some(vectors) = &self.vectors else { return Ok(None) };
        Ok(Some(VectorIndex::shared(Arc::clone(&vectors.segments), vectors.tail.clone())?))
    }

    /// The words of the documents below the bound, without those in segments that turn out to be damaged.
    pub(crate) fn word_index(&self, bound: u32) -> Result<WordIndex> {
        Ok(WordIndex::new(self.words.analyzer, self.words.segments.as_ref().clone(), self.words.tails.clone(), bound)?
            .around_damage())
    }
}

/// Puts word segments in the order in which checkpoints merge them: the largest first. One that was made again has a late
/// generation.
pub(crate) fn by_size(segments: &mut [Arc<WordSegment>]) {
    segments.sort_by_key(|segment| Reverse(segment.document_count()));
}

/// The analyser a setting names.
pub(crate) fn analyzer(name: &str) -> Analyzer {
    Analyzer::new(if name == "none" { Stemming::None } else { Stemming::English })
}

/// What of an item is searchable as words: its text, its other fields that are text, its speaker and tool.
pub(crate) fn pieces(record: &ItemRecord) -> Vec<(&str, f32)> {
    let mut pieces = Vec::with_capacity(record.fields.len() + 2);
    for field in &record.fields {
        if let FieldValue::Text(text) | FieldValue::Json(text) = &field.value {
            pieces.push((text.as_str(), 1.0));
        }
    }
    pieces.extend(record.speaker.as_deref().map(|speaker| (speaker, 1.0)));
    pieces.extend(record.tool.as_deref().map(|tool| (tool, 1.0)));
    pieces
}

impl State {
    /// Gives every layer an empty vector tail once the space is known.
    pub(crate) fn prepare_vectors(&mut self) -> Result<()> {
        let Some(space) = self.meta.space.as_deref() else { return Ok(()) };
        let spec = Space::try_from(space)?.spec();
        for layer in &mut self.layers {
            layer.vectors.get_or_insert_with(|| LayerVectors { segments: Arc::default(), tail: TailView::empty(spec) });
        }
        Ok(())
    }

    /// Makes new items findable: their vectors and words join the tails of their layers.
    pub(crate) fn index_items(&mut self, items: &OwnItems) -> Result<()> {
        self.index(items, false, None)?;
        Ok(())
    }

    /// The same for the items that need it: those that no segment holds yet. Returns how many bytes of text wait to be analysed
    /// in the tail where most do.
    pub(crate) fn index_items_but(&mut self, held: &[Held; 3], items: &OwnItems) -> Result<usize> {
        self.index(items, false, Some(held))
    }

    /// Makes a transaction's items findable to itself alone: nothing shared is touched.
    pub(crate) fn index_privately(&mut self, items: &OwnItems) -> Result<()> {
        self.index(items, true, None)?;
        Ok(())
    }

    fn index(&mut self, items: &OwnItems, privately: bool, held: Option<&[Held; 3]>) -> Result<usize> {
        let mut most_waiting = 0;
        if items.is_empty() {
            return Ok(most_waiting);
        }
        self.prepare_vectors()?;
        let space = self.meta.space.as_deref().map(Space::try_from).transpose()?;
        for layer in Layer::ALL {
            let index = &mut self.layers[*layer as usize];
            let held = held.map(|held| &held[*layer as usize]);
            let mut members = Vec::new();
            for record in items.values() {
                if record.kind()?.layer() == *layer {
                    members.push(record);
                }
            }
            if members.is_empty() {
                continue;
            }
            if privately {
                index.words.tails.push(Arc::new(WordTail::new(index.words.analyzer)));
            }
            let words = index.words.tails.last().ok_or(Error::Cancelled("no word tail"))?;
            for record in members.iter().filter(|record| held.is_none_or(|held| !held.words.contains(record.id))) {
                most_waiting = words.push(record.id, &pieces(record))?.max(most_waiting);
            }
            if let (Some(vectors), Some(space)) = (&mut index.vectors, &space) {
                let tail = VectorTail::from(vectors.tail.clone());
                for record in members.iter().filter(|record| held.is_none_or(|held| !held.vectors.contains(record.id)))
                {
                    if let Some(bytes) = &record.vector {
                        tail.push(record.id, &space.decode(bytes)?)?;
                    }
                }
                vectors.tail = tail.view();
            }
        }
        Ok(most_waiting)
    }

    /// Which layer's index an item stands in.
    pub(crate) fn layer_of(&self, id: ItemId) -> Result<Layer> {
        Ok(self.attributes.kind(id)?.layer())
    }
}

/// The layers in the order of their numbers.
pub(crate) fn empty_layers(analyzer: Analyzer) -> [LayerIndex; 3] {
    [LayerIndex::new(analyzer), LayerIndex::new(analyzer), LayerIndex::new(analyzer)]
}
