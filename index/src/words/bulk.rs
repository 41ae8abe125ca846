//! Segments of many documents that nobody searches before: what a tail takes care of for readers is left out.
//!
//! A tail appends each posting to the list of its term, two misses of the cache each, and lists grow. Here the postings of all
//! documents are written one after the other, with their terms, and put in the order of the terms by counting. What the words of
//! one segment gave is still known for the next, whose documents mostly have the same words.
//!
//! The segment is, byte for byte, the one that the tail would have built.
//!
//! Cost: one pass over the texts and two over the postings; 20 bytes a posting, and what is remembered of words.

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::analyse::Analyzer;
use super::encoded::Encoded;
use super::postings::Posting;
use super::segment::Number;
use super::stems::Stems;
use super::tail::WordTail;
use super::vocabulary::Vocabulary;
use super::waiting::Batch;
use super::writer::{Builder, InMemory};
use crate::error::Result;

/// Makes one segment after the other.
#[derive(Debug)]
pub struct BulkWords {
    analyzer: Analyzer,
    vocabulary: Vocabulary,
    /// The postings of all documents with their terms, as they come.
    found: Vec<(u32, Posting)>,
}

impl BulkWords {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(analyzer: Analyzer) -> Self {
        Self { analyzer, vocabulary: Vocabulary::new(analyzer, Stems::new(analyzer.stemming())), found: Vec::new() }
    }

    /// The segment of all documents of a tail, which must be below `bound`.
    ///
    /// # Errors
    /// [`Error::TooMany`](crate::Error::TooMany) past the limits of a segment.
    pub fn build(&mut self, mut tail: WordTail, bound: u32, identity: FileIdentity) -> Result<SegmentFileWriter> {
        let analyzer = tail.analyzer();
        let Some(batches) = tail.take_queued() else {
            // Some were analysed already.
            return tail.build(bound, None, identity);
        };
        if self.analyzer != analyzer || self.vocabulary.is_too_large() {
            *self = Self::new(analyzer);
        }
        let Self { vocabulary, found, .. } = self;
        found.clear();
        let count = batches.iter().map(Batch::len).sum();
        let mut ids: Vec<Number> = Vec::with_capacity(count);
        let mut lens: Vec<Number> = Vec::with_capacity(count);
        for (local, (id, pieces)) in (0_u32..).zip(batches.iter().flat_map(Batch::documents)) {
            let mut len = 0_u32;
            for (text, weight) in pieces {
                let posting = Posting { local, frequency: weight };
                let words = vocabulary.number_terms(text, |term| found.push((term, posting)));
                len = len.saturating_add(words.saturating_mul(weight));
            }
            ids.push(id.to_le_bytes());
            lens.push(len.to_le_bytes());
        }
        drop(batches);
        let (ends, postings) = by_term(found, vocabulary.term_count());
        let mut terms: Vec<(&str, &[Posting])> = Vec::new();
        for (key, number) in vocabulary.terms() {
            let start = (number as usize).checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
            let end = ends.get(number as usize).copied().unwrap_or(start);
            if let Some(list) = postings.get(start..end).filter(|list| !list.is_empty()) {
                terms.push((key, list));
            }
        }
        terms.sort_unstable_by_key(|(key, _)| *key);
        let mut builder = Builder::new(InMemory::default(), analyzer.id(), &ids, lens)?;
        let mut merged: Vec<Posting> = Vec::new();
        let mut encoded = Encoded::default();
        for (key, list) in terms {
            merged.clear();
            for posting in list {
                match merged.last_mut() {
                    Some(last) if last.local == posting.local => {
                        last.frequency = last.frequency.saturating_add(posting.frequency);
                    }
                    _ => merged.push(*posting),
                }
            }
            encoded.set(&merged, builder.lens());
            builder.term(key.as_bytes(), &encoded)?;
        }
        Ok(builder.finish()?.into_file(identity))
    }
}

/// The postings in the order of their terms, those of one term in the order they came, and where each term's end.
fn by_term(found: &[(u32, Posting)], term_count: usize) -> (Vec<usize>, Vec<Posting>) {
    let mut places = vec![0_usize; term_count];
    for (term, _) in found {
        places[*term as usize] += 1;
    }
    let mut start = 0;
    for place in &mut places {
        start += std::mem::replace(place, start);
    }
    let mut postings = vec![Posting { local: 0, frequency: 0 }; found.len()];
    for (term, posting) in found {
        let place = &mut places[*term as usize];
        postings[*place] = *posting;
        *place += 1;
    }
    // Each place has moved on to the end of its term.
    (places, postings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_put_in_order_and_their_postings_stay_in_theirs() {
        let posting = |local| Posting { local, frequency: 16 };
        let found = [(2, posting(0)), (0, posting(0)), (2, posting(1)), (0, posting(3)), (2, posting(3))];
        let (ends, postings) = by_term(&found, 4);
        assert_eq!(ends, [2, 2, 5, 5]);
        assert_eq!(postings.iter().map(|posting| posting.local).collect::<Vec<_>>(), [0, 3, 0, 1, 3]);
        assert_eq!(by_term(&[], 0), (vec![], vec![]));
    }
}
