//! The newest documents that contain every term of a query.
//!
//! Sources are walked from the newest to the oldest, each from its last document: the shortest list leads, and the
//! others are looked up. Where even the rarest term is in more than [`MAX_WALKED`] documents, only the last
//! [`LAST_IDS`] ids are walked, so that words that are common and seldom together cost no pass over the index.
//!
//! Invariant: the result does not depend on how documents are spread over segments and tails.

use crate::bitmap::Bits;
use crate::error::Result;
use crate::words::scoring::reverse_cursor::ReverseCursor;
use crate::words::scoring::source::PostingSource;
use crate::words::scoring::{Scorer, scale};

/// Documents of a source that are read before the others are looked up.
const WINDOW: u32 = 1 << 12;
/// The greatest document frequency of the rarest term for which all documents are walked.
const MAX_WALKED: u64 = 1 << 14;
/// Ids that are walked beyond that.
const LAST_IDS: u32 = 1 << 17;

impl Scorer<'_> {
    /// At most `most` documents of `filter` that contain every term of the query, by descending id.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] or a storage error for a damaged segment.
    pub fn newest_with_all(&self, filter: &Bits, most: usize) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        let mut sources: Vec<&PostingSource<'_>> = self.sources.iter().collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.last_id()));
        let rarest = self.terms.iter().map(|term| term.df).min().unwrap_or(0);
        if rarest == 0 || most == 0 {
            return Ok(found);
        }
        let newest = sources.first().and_then(|source| source.last_id()).unwrap_or(0);
        let least = if rarest > MAX_WALKED { newest.saturating_sub(LAST_IDS) } else { 0 };
        for source in sources {
            // The ids of an earlier source are smaller but for a few where sources overlap.
            if source.last_id() < Some(least)
                || (found.len() >= most && found.get(most - 1).copied() > source.last_id())
            {
                break;
            }
            self.newest_of(source, filter, most, least, &mut found)?;
            found.sort_unstable_by(|a, b| b.cmp(a));
            found.dedup();
            found.truncate(most);
        }
        Ok(found)
    }

    fn newest_of(
        &self,
        source: &PostingSource<'_>,
        filter: &Bits,
        most: usize,
        least: u32,
        found: &mut Vec<u32>,
    ) -> Result<()> {
        let mut lists = Vec::with_capacity(self.terms.len());
        for (term, list) in self.terms.iter().zip(&source.lists) {
            let Some(list) = list else { return Ok(()) };
            lists.push(ReverseCursor::new(list, &source.doc_lengths, self.norm, scale(term)));
        }
        lists.sort_by_key(ReverseCursor::max_posting_count);
        let Some((first, others)) = lists.split_first_mut() else { return Ok(()) };
        let (mut end, mut spare, mut met) = (source.bound, Vec::new(), Vec::new());
        let mut of_source = 0;
        while of_source < most {
            let Some(last) = first.last(end) else { break };
            end = last + 1;
            let start = end.saturating_sub(WINDOW);
            met.clear();
            first.each_from(start, end, &mut spare, &mut |local, _| met.push(local))?;
            for local in &met {
                if source.id(*local).is_none_or(|id| id < least) {
                    return Ok(());
                }
                let Some(id) = source.id(*local).filter(|id| filter.contains(*id)) else { continue };
                let mut has_all = true;
                for list in others.iter_mut() {
                    has_all = has_all && list.score_of(*local, &mut spare)? > 0.0;
                }
                if has_all {
                    found.push(id);
                    of_source += 1;
                }
                if of_source >= most {
                    return Ok(());
                }
            }
            end = start;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::bitmap::Bits;
    use crate::words::{Analyzer, WordIndex, WordQuery, WordTail};
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn they_are_those_of_a_scan(
            texts in proptest::collection::vec("[abc]( [abcd]){0,3}", 1..60),
            cut in 0..60_usize,
            most in 0..5_usize,
        ) {
            let tails = [WordTail::new(Analyzer::default()), WordTail::new(Analyzer::default())];
            for (id, text) in texts.iter().enumerate() {
                tails[usize::from(id >= cut)].push(id as u32, &[(text.as_str(), 1.0)]).unwrap();
            }
            let analyzer = Analyzer::default();
            let index = WordIndex::new(analyzer, Vec::new(), tails.into_iter().map(Arc::new).collect(), 1_000).unwrap();
            let filter: Bits = (0..60).filter(|id| id % 3 != 0).collect();
            let (query, _) = WordQuery::from_words(&analyzer, ["b", "c"]);
            let found = index.scorer(&query).unwrap().newest_with_all(&filter, most).unwrap();
            let has = |text: &String, word: &str| text.split(' ').any(|other| other == word);
            let all = (0..texts.len() as u32).rev().filter(|id| {
                filter.contains(*id) && has(&texts[*id as usize], "b") && has(&texts[*id as usize], "c")
            });
            prop_assert_eq!(found, all.take(most).collect::<Vec<_>>());
        }
    }
}
