//! The words of a query: analysed once per recall, looked up in a layer on first use.

use crate::model::item::Layer;
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_index::words::{Analyzer, Scorer, WordIndex, WordQuery};
use std::cell::OnceCell;

/// The greatest number of terms of a question.
const MAX_TERMS: u64 = 16_384;

/// The word indexes of all layers.
pub(crate) struct WordIndexes([WordIndex; 3]);

impl WordIndexes {
    pub(crate) fn of(snapshot: &Snapshot) -> Result<WordIndexes> {
        let [a, b, c] = &snapshot.state.layers;
        let bound = snapshot.state.bound();
        Ok(WordIndexes([a.word_index(bound)?, b.word_index(bound)?, c.word_index(bound)?]))
    }

    /// The index of a layer.
    pub(crate) fn index(&self, layer: Layer) -> &WordIndex {
        &self.0[layer as usize]
    }

    /// The analyser of the database.
    pub(crate) fn analyzer(&self) -> Analyzer {
        self.0[0].analyzer()
    }

    /// The keys of the terms of a text.
    pub(crate) fn keys(&self, text: &str) -> Vec<String> {
        self.0[0].query(text).terms().iter().map(|term| term.key.to_string()).collect()
    }

    /// Analyses a text as a query. Without a text every layer scores nothing.
    ///
    /// # Errors
    /// [`Error::Limit`] for a text of more than [`MAX_TERMS`] different words: each costs memory and a look into every
    /// segment, before a time limit can be looked at.
    pub(crate) fn ask(&self, text: Option<&str>) -> Result<Words<'_>> {
        // The analyser is the database's, so one analysis serves all layers.
        let query = text.map(|text| self.0[0].query(text));
        let needed = query.as_ref().map_or(0, |query| query.terms().len() as u64);
        if needed > MAX_TERMS {
            let what = "the number of different words of a question";
            return Err(Error::Limit { what, limit: MAX_TERMS, needed });
        }
        Ok(Words { indexes: &self.0, query, scorers: Default::default() })
    }
}

/// The scorers of one query, one per layer.
pub(crate) struct Words<'w> {
    indexes: &'w [WordIndex; 3],
    query: Option<WordQuery>,
    scorers: [OnceCell<Scorer<'w>>; 3],
}

impl<'w> Words<'w> {
    /// Analyses another text against the same indexes.
    pub(crate) fn ask(&self, text: &str) -> Words<'w> {
        Words { indexes: self.indexes, query: Some(self.indexes[0].query(text)), scorers: Default::default() }
    }

    /// The scorer of a layer; `None` if the query has no text.
    pub(crate) fn of(&self, layer: Layer) -> Result<Option<&Scorer<'w>>> {
        let Some(query) = &self.query else { return Ok(None) };
        let place = &self.scorers[layer as usize];
        if let Some(scorer) = place.get() {
            return Ok(Some(scorer));
        }
        let scorer = self.indexes[layer as usize].scorer(query)?;
        Ok(Some(place.get_or_init(|| scorer)))
    }
}
