//! The index of one layer: immutable segments of vectors and words, and the tails with newer documents.
//!
//! Invariants:
//! 1. A published `LayerIndex` never changes its answers: segments are immutable, a vector tail is a view of
//!    immutable blocks, and a word tail is read below the state's id bound.
//! 2. Documents enter the shared word tail only after their transaction is in the log. A transaction that searches
//!    its own writes uses a private tail.

use crate::model::item::{ItemId, Layer};
use crate::model::space::Space;
use crate::records::field::LABELS;
use crate::records::record::{FieldValue, ItemRecord};
use crate::state::State;
use crate::state::content::OwnItems;
use crate::state::covered_items::CoveredItems;
use crate::state::pages::is_event;
use crate::state::vectors_in_log::VectorsInLog;
use crate::{Error, Result};
use holotype_index::words::{Analyzer, Stemming, WordIndex, WordSegment, WordTail};
use holotype_index::{TailView, VectorIndex, VectorSegment, VectorTail};
use holotype_storage::log::{Log, PayloadEnds};
use std::cmp::Reverse;
use std::sync::Arc;

/// The vectors of a layer.
#[derive(Clone)]
pub(crate) struct LayerVectors {
    pub(crate) segments: Arc<Vec<Arc<VectorSegment>>>,
    pub(crate) tail: TailView,
}

/// The words of a layer. The last tail receives new documents; a checkpoint writes the one before it to a segment.
#[derive(Clone)]
pub(crate) struct LayerWords {
    pub(crate) analyzer: Analyzer,
    pub(crate) segments: Arc<Vec<Arc<WordSegment>>>,
    pub(crate) tails: Vec<Arc<WordTail>>,
}

/// One layer's index.
#[derive(Clone)]
pub(crate) struct LayerIndex {
    /// `None` until the database has an embedding space.
    pub(crate) vectors: Option<LayerVectors>,
    pub(crate) words: LayerWords,
}

impl LayerIndex {
    /// An empty index.
    pub(crate) fn new(analyzer: Analyzer) -> Self {
        let words = LayerWords { analyzer, segments: Arc::default(), tails: vec![Arc::new(WordTail::new(analyzer))] };
        LayerIndex { vectors: None, words }
    }

    /// The words of all documents below the bound. Segments found to be damaged are skipped.
    pub(crate) fn word_index(&self, bound: u32) -> Result<WordIndex> {
        Ok(WordIndex::new(self.words.analyzer, self.words.segments.as_ref().clone(), self.words.tails.clone(), bound)?
            .skip_damaged())
    }
}

/// Sorts word segments by size, largest first, which is the order of merging. Generations cannot serve: a repaired
/// segment has a new one.
pub(crate) fn by_size(segments: &mut [Arc<WordSegment>]) {
    segments.sort_by_key(|segment| Reverse(segment.document_count()));
}

/// The analyser that the setting names.
pub(crate) fn analyzer(name: &str) -> Analyzer {
    Analyzer::new(if name == "none" { Stemming::None } else { Stemming::English })
}

/// The texts of an item that are indexed as words: its text fields, speaker and tool, with their weights.
pub(crate) fn pieces(record: &ItemRecord) -> Vec<(&str, f32)> {
    let mut pieces = Vec::with_capacity(record.fields.len() + 2);
    for field in record.fields.iter().filter(|field| field.name != LABELS) {
        if let FieldValue::Text(text) | FieldValue::Json(text) = &field.value {
            pieces.push((text.as_str(), 1.0));
        }
    }
    pieces.extend(record.speaker.as_deref().map(|speaker| (speaker, 1.0)));
    pieces.extend(record.tool.as_deref().map(|tool| (tool, 1.0)));
    pieces
}

impl State {
    /// All vectors of a layer as one index, if the database has a space.
    pub(crate) fn vector_index(&self, layer: Layer, log: &Log) -> Result<Option<VectorIndex>> {
        let Some(vectors) = &self.layer(layer).vectors else { return Ok(None) };
        let index = VectorIndex::shared(Arc::clone(&vectors.segments), vectors.tail.clone())?;
        Ok(Some(match vectors.segments.iter().any(|segment| segment.is_logged()) {
            true => index.in_log(Arc::new(self.vectors_in_log(log.payload_ends()))),
            false => index,
        }))
    }

    /// The vectors of the items in the log.
    pub(crate) fn vectors_in_log(&self, payloads: PayloadEnds) -> VectorsInLog {
        VectorsInLog { attributes: self.attributes.clone(), payloads }
    }

    /// Creates an empty vector tail in every layer once the space is known.
    pub(crate) fn prepare_vectors(&mut self) -> Result<()> {
        let Some(space) = self.meta.space.as_deref() else { return Ok(()) };
        let spec = Space::try_from(space)?.spec();
        for layer in &mut self.layers {
            layer.vectors.get_or_insert_with(|| LayerVectors { segments: Arc::default(), tail: TailView::empty(spec) });
        }
        Ok(())
    }

    /// Adds new items to the vector and word tails of their layers.
    pub(crate) fn index_items(&mut self, items: &OwnItems) -> Result<()> {
        self.index(items, false, None)?;
        Ok(())
    }

    /// Like [`State::index_items`], for items that no reused segment covers. Returns the largest backlog of a word
    /// tail in bytes.
    pub(crate) fn index_items_but(&mut self, held: &[CoveredItems; 3], items: &OwnItems) -> Result<usize> {
        self.index(items, false, Some(held))
    }

    /// Indexes a transaction's items for its own searches, without touching shared tails.
    pub(crate) fn index_privately(&mut self, items: &OwnItems) -> Result<()> {
        self.index(items, true, None)?;
        Ok(())
    }

    fn index(&mut self, items: &OwnItems, privately: bool, held: Option<&[CoveredItems; 3]>) -> Result<usize> {
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
            let is_due = |record: &&&Arc<ItemRecord>| {
                held.is_none_or(|held| !held.words.contains(record.id)) && !is_event(record.tool.as_deref())
            };
            for record in members.iter().filter(is_due) {
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

    /// The layer of an item.
    pub(crate) fn layer_of(&self, id: ItemId) -> Result<Layer> {
        Ok(self.attributes.kind(id)?.layer())
    }
}

/// Empty indexes of all layers, by layer number.
pub(crate) fn empty_layers(analyzer: Analyzer) -> [LayerIndex; 3] {
    [LayerIndex::new(analyzer), LayerIndex::new(analyzer), LayerIndex::new(analyzer)]
}
