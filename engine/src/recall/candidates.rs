//! Candidates: the items of a stage, each with how it was found.
//!
//! A question makes a few hundred of them in every stage, and each channel adds its own. They lie in the order of their ids,
//! so what a channel adds is merged in one pass, and the stages after it ask for ids in the order that indexes like.
//!
//! Invariant: each id once, ascending.

use super::places::Place;
use crate::Result;
use crate::item::ItemId;
use crate::snapshot::Snapshot;
use std::sync::Arc;

/// How a candidate was found: the channels, and the items that led to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    near: bool,
    words: bool,
    /// The page or episode that it came with.
    pub(super) place: Option<Place>,
    /// Its best place in what a channel found.
    pub(super) rank: Option<u32>,
    /// Most candidates of a channel are found by it alone; those that links led to are candidates and routes alike.
    leads: Option<Arc<Leads>>,
}

/// The items that led to a candidate.
#[derive(Debug, Clone, Default)]
struct Leads {
    linked_from: Vec<ItemId>,
    lifted_from: Vec<ItemId>,
    contests: Vec<ItemId>,
}

impl Found {
    /// One that is near.
    pub(super) fn near() -> Found {
        Found { near: true, ..Found::default() }
    }

    /// One that has the words.
    pub(super) fn by_words() -> Found {
        Found { words: true, ..Found::default() }
    }

    /// One that links led to from these items, which ascend.
    pub(super) fn linked(from: Vec<ItemId>) -> Found {
        Found { leads: Some(Arc::new(Leads { linked_from: from, ..Leads::default() })), ..Found::default() }
    }

    /// One that these items were lifted to.
    pub(super) fn lifted(from: Vec<ItemId>, place: Option<Place>) -> Found {
        Found { place, leads: Some(Arc::new(Leads { lifted_from: from, ..Leads::default() })), ..Found::default() }
    }

    /// One that contests claims of these rows: it was brought back as the other side.
    pub(super) fn contesting(rows: Vec<ItemId>) -> Found {
        Found { leads: Some(Arc::new(Leads { contests: rows, ..Leads::default() })), ..Found::default() }
    }

    /// One that stands in the same place as another and was lifted from the same items.
    pub(super) fn beside(other: &Found) -> Found {
        match other.lifted_from() {
            [] => Found { place: other.place, ..Found::default() },
            from => Found::lifted(from.to_vec(), other.place),
        }
    }

    /// The items that links led here from.
    pub(super) fn linked_from(&self) -> &[ItemId] {
        self.leads.as_deref().map_or(&[], |leads| &leads.linked_from)
    }

    /// The items that a lift led here from.
    fn lifted_from(&self) -> &[ItemId] {
        self.leads.as_deref().map_or(&[], |leads| &leads.lifted_from)
    }

    fn contests(&self) -> &[ItemId] {
        self.leads.as_deref().map_or(&[], |leads| &leads.contests)
    }

    /// The same in a place of what its channel found.
    pub(super) fn ranked(self, rank: u32) -> Found {
        Found { rank: Some(rank), ..self }
    }

    /// Whether it stands for a page, an episode or a lift, within which the next stage may look.
    pub(super) fn is_of_place(&self) -> bool {
        self.place.is_some() || !self.lifted_from().is_empty()
    }

    /// Adds how else it was found.
    fn join(&mut self, other: Found) {
        self.near |= other.near;
        self.words |= other.words;
        self.place = other.place.or(self.place);
        self.rank = self.rank.into_iter().chain(other.rank).min();
        match (&mut self.leads, other.leads) {
            (_, None) => {}
            (own @ None, leads) => *own = leads,
            (Some(own), Some(leads)) => {
                let own = Arc::make_mut(own);
                let pairs = [(&mut own.linked_from, &leads.linked_from), (&mut own.lifted_from, &leads.lifted_from)];
                for (own, further) in pairs.into_iter().filter(|(_, further)| !further.is_empty()) {
                    own.clone_from(further);
                }
                own.contests.extend_from_slice(&leads.contests);
            }
        }
    }

    /// How it was found, in words.
    pub(super) fn path(&self, snapshot: &Snapshot) -> Result<Vec<String>> {
        let key = |id: &ItemId| snapshot.key_of(*id).unwrap_or_else(|_| id.to_string());
        let mut path = Vec::new();
        path.extend(self.near.then(|| "near".to_owned()));
        path.extend(self.words.then(|| "words".to_owned()));
        path.extend(self.linked_from().iter().map(|from| format!("linked from {}", key(from))));
        let place = self.place.map(|place| place.name(snapshot)).transpose()?;
        let lifted: Vec<String> = self.lifted_from().iter().map(key).collect();
        match (place, lifted.is_empty()) {
            (Some(place), true) => path.push(format!("in {place}")),
            (Some(place), false) => path.push(format!("in {place}, lifted from {}", lifted.join(", "))),
            (None, false) => path.push(format!("lifted from {}", lifted.join(", "))),
            (None, true) => {}
        }
        path.extend(self.contests().iter().map(|rival| format!("contests {}", key(rival))));
        Ok(path)
    }
}

/// The candidates of one stage, by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates(Vec<(u32, Found)>);

impl Candidates {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The ids, ascending.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.0.iter().map(|(id, _)| *id)
    }

    /// The candidates, by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Found)> {
        self.0.iter().map(|(id, found)| (*id, found))
    }

    pub(super) fn get(&self, id: u32) -> Option<&Found> {
        let at = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.0.get(at).map(|(_, found)| found)
    }

    /// Those of them that are wanted.
    pub(super) fn filtered(&self, wanted: impl Fn(u32) -> bool) -> Candidates {
        Candidates(self.0.iter().filter(|(id, _)| wanted(*id)).cloned().collect())
    }

    /// The same where it takes a look at each of them.
    pub(super) fn filtered_by(&self, wanted: impl Fn(u32) -> Result<bool>) -> Result<Candidates> {
        let mut kept = Vec::new();
        for (id, found) in &self.0 {
            if wanted(*id)? {
                kept.push((*id, found.clone()));
            }
        }
        Ok(Candidates(kept))
    }

    /// Adds what a channel found, best first.
    pub(super) fn mark(&mut self, ids: &[u32], channel: &Found) {
        let mut places: Vec<(u32, u32)> = ids.iter().copied().zip(0..).collect();
        places.sort_unstable();
        places.dedup_by_key(|(id, _)| *id);
        self.add(Candidates(places.into_iter().map(|(id, rank)| (id, channel.clone().ranked(rank))).collect()));
    }

    /// Adds others, which joins how items that are in both were found.
    pub(super) fn add(&mut self, others: Candidates) {
        if self.0.is_empty() {
            *self = others;
            return;
        }
        let mut all = Vec::with_capacity(self.0.len() + others.0.len());
        let mut others = others.0.into_iter().peekable();
        for (id, mut found) in std::mem::take(&mut self.0) {
            while let Some(before) = others.next_if(|(other, _)| *other < id) {
                all.push(before);
            }
            if let Some((_, same)) = others.next_if(|(other, _)| *other == id) {
                found.join(same);
            }
            all.push((id, found));
        }
        all.extend(others);
        self.0 = all;
    }
}

impl FromIterator<(u32, Found)> for Candidates {
    /// Candidates in any order; how the same item was found is joined in that order.
    fn from_iter<I: IntoIterator<Item = (u32, Found)>>(found: I) -> Self {
        let mut found: Vec<(u32, Found)> = found.into_iter().collect();
        if !found.is_sorted_by(|(a, _), (b, _)| a < b) {
            found.sort_by_key(|(id, _)| *id);
            found.dedup_by(|(id, found), (same, first)| {
                let is_same = id == same;
                if is_same {
                    first.join(std::mem::take(found));
                }
                is_same
            });
        }
        Candidates(found)
    }
}

impl IntoIterator for Candidates {
    type Item = (u32, Found);
    type IntoIter = std::vec::IntoIter<(u32, Found)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn ids(candidates: &Candidates) -> Vec<u32> {
        candidates.ids().collect()
    }

    #[test]
    fn what_several_ways_lead_to_is_one_candidate() {
        let mut candidates = Candidates::default();
        candidates.mark(&[7, 3, 9], &Found::near());
        candidates.mark(&[9, 5], &Found::by_words());
        let linked = [(3, Found::linked(vec![ItemId(1)])), (8, Found::lifted(vec![ItemId(2)], None))];
        candidates.add(linked.into_iter().collect());
        let contested = [(8, Found::contesting(vec![ItemId(7)])), (8, Found::contesting(vec![ItemId(9)]))];
        candidates.add(contested.into_iter().collect());
        assert_eq!(ids(&candidates), [3, 5, 7, 8, 9]);
        let nine = candidates.get(9).unwrap();
        assert!(nine.near && nine.words);
        assert_eq!(nine.rank, Some(0), "the better of the third and the first place");
        assert_eq!(candidates.get(3).unwrap().linked_from(), [ItemId(1)]);
        let eight = candidates.get(8).unwrap();
        assert_eq!(
            (eight.lifted_from(), eight.contests()),
            ([ItemId(2)].as_slice(), [ItemId(7), ItemId(9)].as_slice())
        );
        assert!(candidates.get(4).is_none());
    }

    proptest! {
        #[test]
        fn they_are_a_map_by_id(lists in prop::collection::vec(prop::collection::vec(0u32..40, 0..12), 0..6)) {
            let mut candidates = Candidates::default();
            let mut model: BTreeMap<u32, u32> = BTreeMap::new();
            for list in lists {
                for (rank, id) in (0u32..).zip(&list) {
                    let best = model.entry(*id).or_insert(rank);
                    *best = rank.min(*best);
                }
                candidates.mark(&list, &Found::default());
            }
            let found: Vec<(u32, u32)> = candidates.iter().filter_map(|(id, found)| Some((id, found.rank?))).collect();
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        }
    }
}
