//! A part of the index, as one query sees it: the documents of a segment or tail below the bound, and their postings of the
//! query's terms.

use std::borrow::Cow;

use super::lens::Lens;
use super::postings::{Cursor, List};
use super::query::WordQuery;
use super::segment::{Number, WordSegment};
use super::tail::WordTail;
use crate::bitmap::Bits;
use crate::error::Result;

/// The documents of one segment or tail below the bound, and their postings of the query's terms.
pub(super) struct Part<'a> {
    /// Documents before this local id are below the bound.
    pub(super) bound: u32,
    pub(super) ids: Cow<'a, [Number]>,
    pub(super) lens: Lens<'a>,
    /// One for each term of the query.
    pub(super) lists: Vec<Option<List<'a>>>,
    pub(super) total_len: u64,
    /// Excluded documents among them, ascending.
    pub(super) excluded: Vec<u32>,
}

impl<'a> Part<'a> {
    pub(super) fn of_segment(segment: &'a WordSegment, query: &WordQuery, bound: u32) -> Result<Self> {
        let ids = segment.stored_ids()?;
        let count = ids.partition_point(|id| u32::from_le_bytes(*id) < bound);
        let lookup = segment.lookup()?;
        Ok(Self {
            bound: count as u32,
            ids: Cow::Borrowed(ids.get(..count).unwrap_or_default()),
            lens: segment.lens(count)?,
            lists: query.terms().iter().map(|term| lookup.find(&term.key).map(List::from)).collect(),
            total_len: segment.total_len_of_first(count)?,
            excluded: Vec::new(),
        })
    }

    pub(super) fn of_tail(tail: &WordTail, query: &WordQuery, bound: u32) -> Self {
        let index = tail.index_below(bound);
        let count = index.count_below(bound);
        let lists = tail.lists(&index, query, count).into_iter().map(|list| list.map(List::Memory)).collect();
        let (ids, lens) = index.documents(count);
        Self {
            bound: count as u32,
            ids: Cow::Owned(ids.to_vec()),
            lens: Lens::new(Cow::Owned(lens.to_vec()), None),
            lists,
            total_len: index.total_len_of_first(count),
            excluded: Vec::new(),
        }
    }

    pub(super) fn id(&self, local: u32) -> Option<u32> {
        self.ids.get(local as usize).map(|id| u32::from_le_bytes(*id))
    }

    pub(super) fn len(&self, local: u32) -> u32 {
        self.lens.get(local).unwrap_or(0)
    }

    pub(super) fn local(&self, id: u32) -> Option<u32> {
        place_of(&self.ids, id).map(|local| local as u32)
    }

    /// Takes the excluded documents out of the statistics.
    pub(super) fn exclude(&mut self, excluded: Option<&Bits>) {
        let Some(excluded) = excluded else { return };
        self.excluded = excluded.iter().filter_map(|id| self.local(id)).collect();
        for local in &self.excluded {
            self.total_len -= u64::from(self.len(*local));
        }
    }

    /// How many documents hold term `i` of the query.
    pub(super) fn df(&self, i: usize) -> Result<u64> {
        let Some(list) = self.lists.get(i).and_then(Option::as_ref) else {
            return Ok(0);
        };
        let mut df = u64::from(list.count_below(self.bound)?);
        let mut cursor = Cursor::new(list);
        for local in &self.excluded {
            df -= u64::from(cursor.frequency(*local)? > 0);
        }
        Ok(df)
    }
}

/// Where an id stands among ids that ascend. They are close to evenly spread, so the search begins where it would stand if
/// they were, and widens from there.
fn place_of(ids: &[Number], id: u32) -> Option<usize> {
    let at = |place: usize| ids.get(place).map(|id| u32::from_le_bytes(*id));
    let last = ids.len().checked_sub(1)?;
    let (least, most) = (at(0)?, at(last)?);
    if !(least..=most).contains(&id) {
        return None;
    }
    let guess = u64::from(id - least) * last as u64 / u64::from(most - least).max(1);
    let guess = (guess as usize).min(last);
    // What is looked for stands in low..=high.
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
            let stored: Vec<Number> = ids.iter().map(|id| id.to_le_bytes()).collect();
            for id in ids.iter().chain(&others) {
                prop_assert_eq!(place_of(&stored, *id), ids.binary_search(id).ok());
            }
        }
    }
}
