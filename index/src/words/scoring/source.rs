//! A segment or tail for one query: its documents below the bound, and their postings of the query's terms.

use std::borrow::Cow;

use crate::error::Result;
use crate::words::postings::List;
use crate::words::postings::StoredU32;
use crate::words::postings::doc_lengths::DocLengths;
use crate::words::query::WordQuery;
use crate::words::segment::WordSegment;
use crate::words::tail::WordTail;

/// A segment or tail below the bound, with the posting lists of a query.
pub(crate) struct PostingSource<'a> {
    /// Local ids below this are below the bound.
    pub(crate) bound: u32,
    pub(crate) ids: Cow<'a, [StoredU32]>,
    pub(crate) doc_lengths: DocLengths<'a>,
    /// One for each term of the query.
    pub(crate) lists: Vec<Option<List<'a>>>,
    pub(crate) total_len: u64,
}

impl<'a> PostingSource<'a> {
    pub(crate) fn of_segment(segment: &'a WordSegment, query: &WordQuery, bound: u32) -> Result<Self> {
        let ids = segment.stored_ids()?;
        let count = ids.partition_point(|id| u32::from_le_bytes(*id) < bound);
        let lookup = segment.lookup()?;
        Ok(Self {
            bound: count as u32,
            ids: Cow::Borrowed(ids.get(..count).unwrap_or_default()),
            doc_lengths: segment.doc_lengths(count)?,
            lists: query.terms().iter().map(|term| lookup.find(&term.key).map(List::from)).collect(),
            total_len: segment.total_len_of_first(count)?,
        })
    }

    pub(crate) fn of_tail(tail: &WordTail, query: &WordQuery, bound: u32) -> Self {
        let index = tail.index_below(bound);
        let count = index.count_below(bound);
        let lists = tail.lists(&index, query, count).into_iter().map(|list| list.map(List::Memory)).collect();
        let (ids, doc_lengths) = index.documents(count);
        Self {
            bound: count as u32,
            ids: Cow::Owned(ids.to_vec()),
            doc_lengths: DocLengths(Cow::Owned(doc_lengths.to_vec())),
            lists,
            total_len: index.total_len_of_first(count),
        }
    }

    pub(crate) fn id(&self, local: u32) -> Option<u32> {
        self.ids.get(local as usize).map(|id| u32::from_le_bytes(*id))
    }

    /// The largest id of a document.
    pub(crate) fn last_id(&self) -> Option<u32> {
        self.ids.last().map(|id| u32::from_le_bytes(*id))
    }

    pub(crate) fn len(&self, local: u32) -> u32 {
        self.doc_lengths.get(local).unwrap_or(0)
    }

    pub(crate) fn local(&self, id: u32) -> Option<u32> {
        place_of(&self.ids, id).map(|local| local as u32)
    }

    /// The range of ascending ids that lie between the first and the last document.
    pub(crate) fn range_of(&self, ids: &[u32]) -> (usize, usize) {
        let (Some(first), Some(last)) = (self.ids.first(), self.ids.last()) else { return (0, 0) };
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        (ids.partition_point(|id| *id < first), ids.partition_point(|id| *id <= last))
    }

    /// The document frequency of term `i` of the query.
    pub(crate) fn df(&self, i: usize) -> Result<u64> {
        let Some(list) = self.lists.get(i).and_then(Option::as_ref) else {
            return Ok(0);
        };
        Ok(u64::from(list.count_below(self.bound)?))
    }
}

/// The position of an id among ascending ids. Ids are nearly evenly spread, so an interpolated guess starts a galloping
/// search.
fn place_of(ids: &[StoredU32], id: u32) -> Option<usize> {
    let at = |place: usize| ids.get(place).map(|id| u32::from_le_bytes(*id));
    let last = ids.len().checked_sub(1)?;
    let (least, upper_bound) = (at(0)?, at(last)?);
    if !(least..=upper_bound).contains(&id) {
        return None;
    }
    let guess = u64::from(id - least) * last as u64 / u64::from(upper_bound - least).max(1);
    let guess = (guess as usize).min(last);
    // The id is in low..=high, if present.
    let (mut low, mut high, mut width) = (guess, guess, 4);
    while low > 0 && at(low)? > id {
        low = low.saturating_sub(width);
        width *= 2;
    }
    width = 4;
    while high < last && at(high)? < id {
        high = (high + width).min(last);
        width *= 2;
    }
    let found = ids.get(low..=high)?.binary_search_by_key(&id, |id| u32::from_le_bytes(*id));
    found.ok().map(|place| low + place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_found_where_they_stand(
            ids in proptest::collection::btree_set(prop_oneof![0u32..2_000, any::<u32>()], 0..300),
            others in proptest::collection::vec(prop_oneof![0u32..2_000, any::<u32>()], 20),
        ) {
            let ids: Vec<u32> = ids.into_iter().collect();
            let stored: Vec<StoredU32> = ids.iter().map(|id| id.to_le_bytes()).collect();
            for id in ids.iter().chain(&others) {
                prop_assert_eq!(place_of(&stored, *id), ids.binary_search(id).ok());
            }
        }
    }
}
