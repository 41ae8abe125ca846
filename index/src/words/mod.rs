//! The word index: posting lists of terms, and BM25 over them.
//!
//! Documents enter a [`WordTail`], which analyses their text at the latest when a query needs it; a full tail becomes a
//! [`WordSegment`], an immutable file; segments are merged. A [`WordIndex`] is a view of some segments and tails below
//! an id bound. It covers exactly the documents below the bound, with the statistics of those documents, so its answers
//! never change when documents are added or move between parts.
//!
//! ```
//! use std::sync::Arc;
//! use holotype_index::words::{Analyzer, WordIndex, WordTail};
//!
//! let tail = Arc::new(WordTail::new(Analyzer::default()));
//! tail.push(1, &[("Booked flight UA123 to Lisbon", 1.0)])?;
//! tail.push(2, &[("The hotel in Lisbon has a pool", 1.0)])?;
//! let index = WordIndex::new(Analyzer::default(), Vec::new(), vec![tail], 3)?;
//! let hits = index.top(&index.query("flights to Lisbon"), None, 10)?;
//! assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), [1, 2]);
//! # Ok::<(), holotype_index::Error>(())
//! ```
//!
//! Invariants:
//! 1. A document is in one part only; within a part the ids ascend.
//! 2. All parts use the index's analyser; a part of another analyser is refused, and the index must be rebuilt.
//! 3. Scores do not depend on how documents are spread over parts (`scoring`).

pub mod analysis;
mod postings;
mod query;
mod scoring;
mod segment;
mod tail;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use analysis::{Analyzer, AnalyzerId, Stemming};
pub use query::{QueryTerm, WordQuery};
pub use scoring::{B, K1, OccurrenceTable, Occurrences, Scorer, TermStats, WordStats};
pub use segment::merge::merge_word_segments;
pub use segment::{WORD_SEGMENT_KIND, WordSegment};
pub use tail::bulk::BulkWords;
pub use tail::{MAX_QUEUED_LEN, MAX_WEIGHT, WordTail};

use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::hit::Hit;

/// A view of the documents below a bound. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WordIndex {
    analyzer: Analyzer,
    segments: Vec<Arc<WordSegment>>,
    tails: Vec<Arc<WordTail>>,
    bound: u32,
    skip_damaged: bool,
}

impl WordIndex {
    /// A view of the documents in `segments` and `tails` with ids below `bound`. There are several tails while a
    /// segment is built from the older ones.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a segment or tail of another analyser.
    pub fn new(
        analyzer: Analyzer,
        segments: Vec<Arc<WordSegment>>,
        tails: Vec<Arc<WordTail>>,
        bound: u32,
    ) -> Result<Self> {
        let segment_analyzers = segments.iter().map(|segment| segment.analyzer());
        let other = segment_analyzers
            .chain(tails.iter().map(|tail| tail.analyzer().id()))
            .find(|other| *other != analyzer.id());
        match other {
            Some(other) => Err(Error::Mismatch { expected: analyzer.id().to_string(), found: other.to_string() }),
            None => Ok(Self { analyzer, segments, tails, bound, skip_damaged: false }),
        }
    }

    /// The same view without segments that are known to be damaged or found damaged when a scorer is created: their
    /// documents are neither found nor counted. Damage found later fails that query and is recorded
    /// ([`WordSegment::is_damaged`]).
    #[must_use]
    pub fn skip_damaged(mut self) -> Self {
        self.skip_damaged = true;
        self
    }

    /// The same view with another bound.
    #[must_use]
    pub fn at(mut self, bound: u32) -> Self {
        self.bound = bound;
        self
    }

    /// Its analyser.
    pub fn analyzer(&self) -> Analyzer {
        self.analyzer
    }

    /// Its bound: documents have smaller ids.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// Analyses `text` into a query.
    pub fn query(&self, text: &str) -> WordQuery {
        WordQuery::new(&self.analyzer, text)
    }

    /// A scorer for a query, which answers several questions about its scores.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or a storage error for a damaged segment.
    pub fn scorer(&self, query: &WordQuery) -> Result<Scorer<'_>> {
        let segments = self.segments.iter().map(|segment| &**segment);
        let tails = self.tails.iter().map(|tail| &**tail);
        Scorer::new(query, segments, tails, self.bound, self.skip_damaged)
    }

    /// The number of documents, and for each word the number of those that contain it: the least of its terms.
    ///
    /// # Errors
    /// As [`WordIndex::scorer`].
    pub fn document_frequencies<'t>(&self, words: impl IntoIterator<Item = &'t str>) -> Result<(u64, Vec<u64>)> {
        let (query, places) = WordQuery::from_words(&self.analyzer, words);
        let scorer = self.scorer(&query)?;
        let df = |place: &usize| scorer.terms().get(*place).map_or(0, |term| term.df);
        let frequencies = places.iter().map(|of_word| of_word.iter().map(df).min().unwrap_or(0)).collect();
        Ok((scorer.stats().documents, frequencies))
    }

    /// The terms that begin with `prefix`, ascending. Some may be of documents beyond the bound.
    ///
    /// # Errors
    /// As [`WordIndex::scorer`].
    pub fn terms_with_prefix(&self, prefix: &str) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for segment in &self.segments {
            match segment.lookup() {
                Ok(terms) => found.extend(terms.with_prefix(prefix)),
                Err(_) if self.skip_damaged => {}
                Err(error) => return Err(error),
            }
        }
        self.tails.iter().for_each(|tail| found.extend(tail.terms_with_prefix(prefix)));
        Ok(found)
    }

    /// Collection statistics of the view.
    ///
    /// # Errors
    /// As [`WordIndex::scorer`].
    pub fn stats(&self) -> Result<WordStats> {
        Ok(self.scorer(&WordQuery::default())?.stats())
    }

    /// As [`Scorer::top`].
    ///
    /// # Errors
    /// As [`WordIndex::scorer`].
    pub fn top(&self, query: &WordQuery, filter: Option<&Bits>, k: usize) -> Result<Vec<Hit>> {
        self.scorer(query)?.top(filter, k)
    }

    /// As [`Scorer::scores`].
    ///
    /// # Errors
    /// As [`WordIndex::scorer`].
    pub fn scores(&self, query: &WordQuery, ids: &[u32]) -> Result<Vec<f32>> {
        self.scorer(query)?.scores(ids)
    }
}
