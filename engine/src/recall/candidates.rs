//! Candidates: the items of a stage, each with its match path.
//!
//! A query has a few hundred candidates per stage, and each channel adds its own. They are sorted by id, so that
//! adding a channel is one merge pass and later steps access indexes in order.
//!
//! Invariant: ids ascend and are unique.

use super::container::Container;
use crate::Result;
use crate::model::item::ItemId;
use crate::read::snapshot::Snapshot;
use std::sync::Arc;

/// The match path of a candidate: the channels that found it, and the items that led to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct MatchPath {
    near: bool,
    words: bool,
    /// Found as one of the newest items with the words of the best candidate.
    newest: bool,
    /// The page or episode it was found with.
    pub(super) container: Option<Container>,
    /// Its best rank in a channel.
    pub(super) rank: Option<u32>,
    /// Allocated only for candidates that links or lifts led to, and for leaders; most come from one channel.
    sources: Option<Arc<Sources>>,
}

/// The items that led to a candidate.
#[derive(Debug, Clone, Default)]
struct Sources {
    linked_from: Vec<ItemId>,
    lifted_from: Vec<ItemId>,
    /// The better match in whose place this item is shown.
    in_place_of: Option<ItemId>,
}

impl MatchPath {
    /// Found by vector.
    pub(super) fn near() -> MatchPath {
        MatchPath { near: true, ..MatchPath::default() }
    }

    /// Found by words.
    pub(super) fn words() -> MatchPath {
        MatchPath { words: true, ..MatchPath::default() }
    }

    /// Found with its page or episode.
    pub(super) fn within(container: Option<Container>) -> MatchPath {
        MatchPath { container, ..MatchPath::default() }
    }

    /// Found by links from these items, in ascending order.
    pub(super) fn linked(from: Vec<ItemId>) -> MatchPath {
        MatchPath {
            sources: Some(Arc::new(Sources { linked_from: from, ..Sources::default() })),
            ..MatchPath::default()
        }
    }

    /// Found by lifting these items.
    pub(super) fn lifted(from: Vec<ItemId>, container: Option<Container>) -> MatchPath {
        MatchPath {
            container,
            sources: Some(Arc::new(Sources { lifted_from: from, ..Sources::default() })),
            ..MatchPath::default()
        }
    }

    /// Found as one of the newest items with the words of the best candidate.
    pub(super) fn newest() -> MatchPath {
        MatchPath { newest: true, ..MatchPath::default() }
    }

    /// The path of the leader of a frame, shown in the place of a better match.
    pub(super) fn in_place_of(mut self, match_id: ItemId) -> MatchPath {
        Arc::make_mut(self.sources.get_or_insert_default()).in_place_of = Some(match_id);
        self
    }

    /// Found in the same container as another candidate, lifted from the same items.
    pub(super) fn beside(other: &MatchPath) -> MatchPath {
        match other.lifted_from() {
            [] => MatchPath { container: other.container, ..MatchPath::default() },
            from => MatchPath::lifted(from.to_vec(), other.container),
        }
    }

    /// The items with links to this one.
    pub(super) fn linked_from(&self) -> &[ItemId] {
        self.sources.as_deref().map_or(&[], |sources| &sources.linked_from)
    }

    /// The items lifted to this one.
    fn lifted_from(&self) -> &[ItemId] {
        self.sources.as_deref().map_or(&[], |sources| &sources.lifted_from)
    }

    /// Sets the rank in a channel.
    pub(super) fn ranked(self, rank: u32) -> MatchPath {
        MatchPath { rank: Some(rank), ..self }
    }

    /// Returns true if it belongs to a page, an episode or a lift, whose traces the next stage may use.
    pub(super) fn is_in_container(&self) -> bool {
        self.container.is_some() || !self.lifted_from().is_empty()
    }

    /// Adds another way it was found.
    fn join(&mut self, other: MatchPath) {
        self.near |= other.near;
        self.words |= other.words;
        self.newest |= other.newest;
        self.container = other.container.or(self.container);
        self.rank = self.rank.into_iter().chain(other.rank).min();
        match (&mut self.sources, other.sources) {
            (_, None) => {}
            (own @ None, sources) => *own = sources,
            (Some(own), Some(sources)) => {
                let own = Arc::make_mut(own);
                let pairs =
                    [(&mut own.linked_from, &sources.linked_from), (&mut own.lifted_from, &sources.lifted_from)];
                for (own, further) in pairs.into_iter().filter(|(_, further)| !further.is_empty()) {
                    own.clone_from(further);
                }
                own.in_place_of = own.in_place_of.or(sources.in_place_of);
            }
        }
    }

    /// The match path as texts.
    pub(super) fn path(&self, snapshot: &Snapshot) -> Result<Vec<String>> {
        let key = |id: &ItemId| snapshot.key_of(*id).unwrap_or_else(|_| id.to_string());
        let mut path = Vec::new();
        path.extend(self.near.then(|| "near".to_owned()));
        path.extend(self.words.then(|| "words".to_owned()));
        path.extend(self.newest.then(|| "newest".to_owned()));
        path.extend(self.linked_from().iter().map(|from| format!("linked from {}", key(from))));
        let container = self.container.map(|container| container.name(snapshot)).transpose()?;
        let lifted: Vec<String> = self.lifted_from().iter().map(key).collect();
        match (container, lifted.is_empty()) {
            (Some(container), true) => path.push(format!("in {container}")),
            (Some(container), false) => path.push(format!("in {container}, lifted from {}", lifted.join(", "))),
            (None, false) => path.push(format!("lifted from {}", lifted.join(", "))),
            (None, true) => {}
        }
        let in_place_of = self.sources.as_deref().and_then(|sources| sources.in_place_of);
        path.extend(in_place_of.map(|better| format!("in the place of {}", key(&better))));
        Ok(path)
    }
}

/// The candidates of one stage, by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates(Vec<(u32, MatchPath)>);

impl Candidates {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The ids in ascending order.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.0.iter().map(|(id, _)| *id)
    }

    /// The candidates by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &MatchPath)> {
        self.0.iter().map(|(id, match_path)| (*id, match_path))
    }

    pub(super) fn get(&self, id: u32) -> Option<&MatchPath> {
        let at = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.0.get(at).map(|(_, match_path)| match_path)
    }

    /// The candidates that pass a test.
    pub(super) fn filtered(&self, wanted: impl Fn(u32) -> bool) -> Candidates {
        Candidates(self.0.iter().filter(|(id, _)| wanted(*id)).cloned().collect())
    }

    /// Like [`Candidates::filtered`], with a test that may fail.
    pub(super) fn filtered_by(&self, wanted: impl Fn(u32) -> Result<bool>) -> Result<Candidates> {
        let mut kept = Vec::new();
        for (id, match_path) in &self.0 {
            if wanted(*id)? {
                kept.push((*id, match_path.clone()));
            }
        }
        Ok(Candidates(kept))
    }

    /// Adds the hits of a channel, best first.
    pub(super) fn add_hits(&mut self, ids: &[u32], channel: &MatchPath) {
        let mut places: Vec<(u32, u32)> = ids.iter().copied().zip(0..).collect();
        places.sort_unstable();
        places.dedup_by_key(|(id, _)| *id);
        self.add(Candidates(places.into_iter().map(|(id, rank)| (id, channel.clone().ranked(rank))).collect()));
    }

    /// Adds other candidates. Match paths of common items are joined.
    pub(super) fn add(&mut self, others: Candidates) {
        if self.0.is_empty() {
            *self = others;
            return;
        }
        let mut all = Vec::with_capacity(self.0.len() + others.0.len());
        let mut others = others.0.into_iter().peekable();
        for (id, mut match_path) in std::mem::take(&mut self.0) {
            while let Some(before) = others.next_if(|(other, _)| *other < id) {
                all.push(before);
            }
            if let Some((_, same)) = others.next_if(|(other, _)| *other == id) {
                match_path.join(same);
            }
            all.push((id, match_path));
        }
        all.extend(others);
        self.0 = all;
    }
}

impl FromIterator<(u32, MatchPath)> for Candidates {
    /// Collects candidates in any order. Match paths of equal items are joined in that order.
    fn from_iter<I: IntoIterator<Item = (u32, MatchPath)>>(match_path: I) -> Self {
        let mut match_path: Vec<(u32, MatchPath)> = match_path.into_iter().collect();
        if !match_path.is_sorted_by(|(a, _), (b, _)| a < b) {
            match_path.sort_by_key(|(id, _)| *id);
            match_path.dedup_by(|(id, match_path), (same, first)| {
                let is_same = id == same;
                if is_same {
                    first.join(std::mem::take(match_path));
                }
                is_same
            });
        }
        Candidates(match_path)
    }
}

impl IntoIterator for Candidates {
    type Item = (u32, MatchPath);
    type IntoIter = std::vec::IntoIter<(u32, MatchPath)>;

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
        candidates.add_hits(&[7, 3, 9], &MatchPath::near());
        candidates.add_hits(&[9, 5], &MatchPath::words());
        let linked = [(3, MatchPath::linked(vec![ItemId(1)])), (8, MatchPath::lifted(vec![ItemId(2)], None))];
        candidates.add(linked.into_iter().collect());
        candidates.add([(8, MatchPath::newest().in_place_of(ItemId(7)))].into_iter().collect());
        assert_eq!(ids(&candidates), [3, 5, 7, 8, 9]);
        let nine = candidates.get(9).unwrap();
        assert!(nine.near && nine.words);
        assert_eq!(nine.rank, Some(0), "the better of the third and the first container");
        assert_eq!(candidates.get(3).unwrap().linked_from(), [ItemId(1)]);
        let eight = candidates.get(8).unwrap();
        let in_place_of = eight.sources.as_ref().and_then(|sources| sources.in_place_of);
        assert_eq!((eight.lifted_from(), in_place_of, eight.newest), ([ItemId(2)].as_slice(), Some(ItemId(7)), true));
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
                candidates.add_hits(&list, &MatchPath::default());
            }
            let match_path: Vec<(u32, u32)> = candidates.iter().filter_map(|(id, match_path)| Some((id, match_path.rank?))).collect();
            prop_assert_eq!(match_path, model.into_iter().collect::<Vec<_>>());
        }
    }
}
