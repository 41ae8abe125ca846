//! The texts of candidates as frames compare them: read once, kept between questions (`memory::frames`).

use super::rank::Scored;
use super::words::WordIndexes;
use crate::Result;
use crate::memory::frames::{Asked, FrameText, Weigh, each_token, stem_hash};
use crate::model::item::{ItemId, Kind, Layer};
use crate::read::snapshot::{Snapshot, is_damage};
use foldhash::fast::RandomState;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The word that joins attribute and subject in the name of a claim.
const JOINER: &str = "of";

/// The text of an item; `None` if its bytes cannot be read as written.
pub(super) fn frame_text(snapshot: &Snapshot, id: ItemId) -> Result<Option<Arc<FrameText>>> {
    // Numbers of a transaction in progress are given again if it is dropped.
    let cache = snapshot.is_committed().then_some(&snapshot.core.frame_texts);
    if let Some(known) = cache.and_then(|cache| cache.get(id)) {
        return Ok(Some(known));
    }
    let content = match snapshot.content(id) {
        Ok(content) => content,
        Err(error) if is_damage(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = FrameText::new(content.text());
    let names = snapshot.state.extracted_row(id)?;
    text.claims = names.iter().map(|(name, _)| name_stems(name)).collect();
    let text = Arc::new(text);
    if let Some(cache) = cache {
        cache.insert(id, Arc::clone(&text));
    }
    Ok(Some(text))
}

/// The stems of the name of a claim, `price of ua123`.
fn name_stems(name: &str) -> Box<[u32]> {
    let mut stems = Vec::new();
    each_token(name, |token, _| {
        if token.folded != JOINER {
            stems.push(stem_hash(token.folded));
        }
    });
    stems.into_boxed_slice()
}

/// The names of the structured claims of an item that the question has whole; of turns none.
pub(super) fn named_claims(
    snapshot: &Snapshot,
    asked: &Asked,
    text: &FrameText,
    scored: &Scored,
) -> Result<Vec<Box<[u32]>>> {
    let state = &snapshot.state;
    let named: Vec<Box<[u32]>> = match state.has_stated_claims(scored.id)? {
        true => {
            let stated = state.stated_claims_of(scored.id)?;
            stated.iter().map(|claim| name_stems(&claim.name)).filter(|name| asked.names(name)).collect()
        }
        false => text.claims.iter().filter(|name| asked.names(name)).cloned().collect(),
    };
    let is_turn = !named.is_empty() && state.attributes.kind(scored.id)? == Kind::Turn;
    Ok(if is_turn { Vec::new() } else { named })
}

/// The weights of words in each layer, for one question.
pub(super) struct Weights<'w> {
    indexes: &'w WordIndexes,
    asked: &'w Asked,
    layers: [OnceCell<LayerWeights>; 3],
}

/// The weights of the words of a question in a layer.
pub(super) struct LayerWeights {
    documents: u64,
    question: HashMap<u32, f32, RandomState>,
}

impl LayerWeights {
    /// The weight of a word of the question; 0 for other words.
    pub(super) fn of_question(&self, stem: u32) -> f32 {
        self.question.get(&stem).copied().unwrap_or(0.0)
    }
}

impl<'w> Weights<'w> {
    pub(super) fn new(indexes: &'w WordIndexes, asked: &'w Asked) -> Weights<'w> {
        Weights { indexes, asked, layers: Default::default() }
    }

    /// The weights in a layer, looked up when they are first asked for.
    pub(super) fn of_layer(&self, layer: Layer) -> Result<&LayerWeights> {
        let place = &self.layers[layer as usize];
        if let Some(known) = place.get() {
            return Ok(known);
        }
        let (stems, words): (Vec<u32>, Vec<&str>) =
            self.asked.words.iter().map(|(stem, word)| (*stem, word.as_str())).unzip();
        let (documents, frequencies) = self.indexes.index(layer).document_frequencies(words.iter().copied())?;
        // In a small memory every word is rare; those of the analyser's stop list are common in any.
        let analyzer = self.indexes.analyzer();
        let is_common = |word: &str| analyzer.is_stop_word(word);
        let weights = frequencies.into_iter().zip(&words).map(|(df, word)| match is_common(word) {
            true => 0.0,
            false => weight(documents, df),
        });
        let question = stems.into_iter().zip(weights).collect();
        Ok(place.get_or_init(|| LayerWeights { documents, question }))
    }
}

/// `ln(1 + n / df) / ln(1 + n)`, and 1 for a word that the layer lacks.
fn weight(documents: u64, df: u64) -> f32 {
    if df == 0 {
        return 1.0;
    }
    let n = documents.max(2) as f64;
    ((1.0 + documents as f64 / df as f64).ln() / (1.0 + n).ln()) as f32
}

/// The weights of the words of two items of a layer.
pub(super) struct PairWeights<'p, 'w> {
    pub(super) snapshot: &'p Snapshot,
    pub(super) weights: &'p Weights<'w>,
    pub(super) layer: Layer,
    pub(super) of_layer: &'p LayerWeights,
    pub(super) items: [ItemId; 2],
}

impl Weigh for PairWeights<'_, '_> {
    fn documents(&self) -> u64 {
        self.of_layer.documents
    }

    fn of_question(&self, stem: u32) -> f32 {
        self.of_layer.of_question(stem)
    }

    fn of_text(&mut self, is_second: bool, place: usize) -> Result<f32> {
        let content = self.snapshot.content(self.items[usize::from(is_second)])?;
        let (mut at, mut word) = (0, String::new());
        each_token(content.text(), |token, _| {
            if at == place {
                token.folded.clone_into(&mut word);
            }
            at += 1;
        });
        let (documents, frequencies) = self.weights.indexes.index(self.layer).document_frequencies([word.as_str()])?;
        Ok(weight(documents, frequencies.first().copied().unwrap_or(0)))
    }
}
