//! An ordered map whose copies are cheap to make and to change.
//!
//! A persistent tree shares the nodes that two copies have in common, but the first change of a copy copies every node
//! on the path down, some kilobytes each. Here the last few changes are in a separate sorted array, which is copied
//! whole and costs less than one node. A full array becomes a run, which all later copies share. When the next array is
//! full the run is merged into the tree, and all of its entries share the cost of the copied nodes. Any thread may
//! merge once for all copies ([`BufferedMap::merge`]), so that a writer finds the merge done.
//!
//! 1. An entry of `recent` hides entries of the run and the tree with the same key, and an entry of the run one of the
//!    tree.
//! 2. The keys of `recent` and of a run ascend, are distinct, and number at most [`MAX_RECENT`].
//!
//! Cost: a look-up of a key below all others ends there, and another one searches each array and the tree; a change of
//! a copy copies up to 64 entries and pays for a 64th of a merge.

use std::borrow::Borrow;
use std::fmt::{self, Debug};
use std::iter::Peekable;
use std::ops::Bound;
use std::slice;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;
use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;

/// The greatest number of changes in the array.
const MAX_RECENT: usize = 64;

/// An ordered map whose copies are cheap to make and to change.
pub struct BufferedMap<K, V> {
    recent: Vec<(K, V)>,
    /// The number of entries of `recent` that hide no other entry.
    added: usize,
    run: Option<Arc<Run<K, V>>>,
    tree: OrdMap<K, V>,
    /// No key is or was below it; `None` until there is one. Where new items change, most look-ups are of older ones.
    least: Option<K>,
    /// True for a copy whose array has not been full yet: it shares its tree, which must not be changed in place.
    is_copy: bool,
}

/// A full array that is to be merged into the tree.
struct Run<K, V> {
    entries: Vec<(K, V)>,
    /// The number of entries that hide none of the tree.
    added: usize,
    /// The tree after the merge.
    merged: OnceLock<OrdMap<K, V>>,
}

impl<K, V> Default for BufferedMap<K, V> {
    fn default() -> Self {
        Self { recent: Vec::new(), added: 0, run: None, tree: OrdMap::new(), least: None, is_copy: false }
    }
}

/// The copy's array has its full capacity, since copies are made to be changed.
impl<K: Clone, V: Clone> Clone for BufferedMap<K, V> {
    fn clone(&self) -> Self {
        let mut recent = Vec::with_capacity(if self.recent.is_empty() { 0 } else { MAX_RECENT });
        recent.extend_from_slice(&self.recent);
        let merged = self.run.as_ref().and_then(|run| run.merged.get());
        let (run, tree) = match merged {
            Some(merged) => (None, merged.clone()),
            None => (self.run.clone(), self.tree.clone()),
        };
        Self { recent, added: self.added, run, tree, least: self.least.clone(), is_copy: true }
    }
}

impl<K: Ord + Clone, V: Clone> BufferedMap<K, V> {
    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len() + self.run.as_ref().map_or(0, |run| run.added) + self.added
    }

    /// True if the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let least: &Q = self.least.as_ref()?.borrow();
        if key < least {
            return None;
        }
        value_in(&self.recent, key).or_else(|| self.get_below(key))
    }

    /// A mutable reference to the value of a key.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match find(&self.recent, key) {
            Ok(at) => self.recent.get_mut(at).map(|(_, value)| value),
            Err(_) => self.tree_mut().get_mut(key),
        }
    }

    /// Sets the value of a key and returns the value it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match find(&self.recent, &key) {
            Ok(at) => self.recent.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                let hidden = self.get_below(&key).cloned();
                self.insert_at(at, key, value, hidden.is_none());
                hidden
            }
        }
    }

    /// Sets the value of a key that has none, which saves the look-up in the tree. If the key does have a value, it is
    /// replaced, but counts twice until the merge.
    pub fn insert_new(&mut self, key: K, value: V) {
        match find(&self.recent, &key) {
            Ok(at) => self.recent[at].1 = value,
            Err(at) => self.insert_at(at, key, value, true),
        }
    }

    fn insert_at(&mut self, at: usize, key: K, value: V, is_new: bool) {
        if self.least.as_ref().is_none_or(|least| key < *least) {
            self.least = Some(key.clone());
        }
        if self.recent.len() < MAX_RECENT {
            self.recent.insert(at, (key, value));
        } else {
            self.make_room();
            self.recent.push((key, value));
        }
        self.added += usize::from(is_new);
    }

    /// Removes a key and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let hidden = self.tree_mut().remove(key);
        match find(&self.recent, key) {
            Ok(at) => {
                self.added -= usize::from(hidden.is_none());
                Some(self.recent.remove(at).1)
            }
            Err(_) => hidden,
        }
    }

    /// Every entry, ordered by key.
    pub fn iter(&self) -> Entries<'_, K, V> {
        self.range::<K>((Bound::Unbounded, Bound::Unbounded))
    }

    /// The entries between two keys.
    ///
    /// # Panics
    /// If the first bound is above the second.
    pub fn range<Q: Ord + ?Sized>(&self, (from, to): (Bound<&Q>, Bound<&Q>)) -> Entries<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let start = match from {
            Bound::Unbounded => 0,
            Bound::Included(from) => self.recent.partition_point(|(key, _)| key.borrow() < from),
            Bound::Excluded(from) => self.recent.partition_point(|(key, _)| key.borrow() <= from),
        };
        let end = match to {
            Bound::Unbounded => self.recent.len(),
            Bound::Included(to) => self.recent.partition_point(|(key, _)| key.borrow() <= to),
            Bound::Excluded(to) => self.recent.partition_point(|(key, _)| key.borrow() < to),
        };
        let recent = self.recent.get(start..end).unwrap_or_default();
        Entries { recent: recent.iter().peekable(), tree: self.merged().range::<_, Q>((from, to)).peekable() }
    }

    /// Merges the run into the tree, if there is one, for this map and all that share the run. No answer changes.
    pub fn merge(&self) {
        self.merged();
    }

    /// The tree with the run merged into it.
    fn merged(&self) -> &OrdMap<K, V> {
        let Some(run) = &self.run else { return &self.tree };
        run.merged.get_or_init(|| {
            let mut tree = self.tree.clone();
            tree.extend(run.entries.iter().cloned());
            tree
        })
    }

    fn get_below<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let Some(run) = &self.run else { return self.tree.get(key) };
        match run.merged.get() {
            Some(merged) => merged.get(key),
            None => value_in(&run.entries, key).or_else(|| self.tree.get(key)),
        }
    }

    /// The same as a mutable reference.
    fn tree_mut(&mut self) -> &mut OrdMap<K, V> {
        if self.run.is_some() {
            self.tree = self.merged().clone();
            self.run = None;
        }
        &mut self.tree
    }

    /// Empties the full array: a copy's first array becomes a run; later ones go directly into the tree, which is no
    /// longer shared by then.
    fn make_room(&mut self) {
        let entries = std::mem::replace(&mut self.recent, Vec::with_capacity(MAX_RECENT));
        let added = std::mem::take(&mut self.added);
        let is_copy = std::mem::take(&mut self.is_copy);
        let tree = self.tree_mut();
        if is_copy {
            self.run = Some(Arc::new(Run { entries, added, merged: OnceLock::new() }));
        } else {
            tree.extend(entries);
        }
    }
}

fn value_in<'a, K: Borrow<Q>, V, Q: Ord + ?Sized>(entries: &'a [(K, V)], key: &Q) -> Option<&'a V> {
    find(entries, key).ok().and_then(|at| entries.get(at)).map(|(_, value)| value)
}

/// The index of a key, or the index at which to insert it.
fn find<K: Borrow<Q>, V, Q: Ord + ?Sized>(entries: &[(K, V)], key: &Q) -> Result<usize, usize> {
    // Most keys are above all others.
    match entries.last() {
        Some((last, _)) if last.borrow() < key => Err(entries.len()),
        _ => entries.binary_search_by(|(other, _)| other.borrow().cmp(key)),
    }
}

impl<K: Ord + Clone + Debug, V: Clone + Debug> Debug for BufferedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The entries of a map, ordered by key.
pub struct Entries<'a, K, V> {
    recent: Peekable<slice::Iter<'a, (K, V)>>,
    tree: Peekable<RangedIter<'a, K, V, DefaultSharedPtr>>,
}

impl<'a, K: Ord, V> Iterator for Entries<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let Some((recent, _)) = self.recent.peek() else { return self.tree.next() };
        match self.tree.peek().map(|(tree, _)| (*tree).cmp(recent)) {
            Some(std::cmp::Ordering::Less) => return self.tree.next(),
            Some(std::cmp::Ordering::Equal) => {
                self.tree.next();
            }
            Some(std::cmp::Ordering::Greater) | None => {}
        }
        self.recent.next().map(|(key, value)| (key, value))
    }
}

impl<K, V> Debug for Entries<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").finish_non_exhaustive()
    }
}

impl<'a, K: Ord + Clone, V: Clone> IntoIterator for &'a BufferedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Entries<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Ord + Clone, V: Clone> IntoIterator for BufferedMap<K, V> {
    type Item = (K, V);
    type IntoIter = <OrdMap<K, V> as IntoIterator>::IntoIter;

    fn into_iter(mut self) -> Self::IntoIter {
        let recent = std::mem::take(&mut self.recent);
        self.tree_mut().extend(recent);
        self.tree.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_value_is_changed_wherever_it_stands() {
        let mut map: BufferedMap<usize, usize> = BufferedMap::default();
        for key in 0..2 * MAX_RECENT + 5 {
            map.insert(key, key);
        }
        for key in 0..map.len() {
            *map.get_mut(&key).unwrap() += 1;
            assert_eq!(map.get(&key), Some(&(key + 1)));
        }
        assert_eq!(map.get_mut(&map.len()), None);
    }

    proptest! {
        /// After any operations a map equals an ordinary one, and a copy equals the ordinary one at the time of the
        /// copy.
        #[test]
        fn a_map_is_a_map(
            steps in proptest::collection::vec((0_u8..24, 0_u16..300, any::<u8>()), 0..1_500),
            from in 0_u16..300,
            len in 0_u16..100,
        ) {
            let (mut map, mut model) = (BufferedMap::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (what, key, value) in steps {
                match what {
                    0 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    1 => {
                        let (changed, expected) = (map.get_mut(&key), model.get_mut(&key));
                        prop_assert_eq!(&changed, &expected);
                        changed.into_iter().chain(expected).for_each(|changed| *changed = value);
                    }
                    2 => copies.push((map.clone(), model.clone())),
                    3 | 4 => {
                        let copy = map.clone();
                        copies.push((std::mem::replace(&mut map, copy), model.clone()));
                    }
                    5 => map.merge(),
                    6 if !model.contains_key(&key) => {
                        map.insert_new(key, value);
                        model.insert(key, value);
                    }
                    _ => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                }
                prop_assert_eq!(map.len(), model.len());
                prop_assert_eq!(map.get(&(key / 2)), model.get(&(key / 2)));
            }
            copies.push((map, model));
            for (map, model) in copies {
                for key in 0..300 {
                    prop_assert_eq!(map.get(&key), model.get(&key));
                }
                prop_assert!(map.iter().eq(model.iter()));
                let bounds = (Bound::Excluded(&from), Bound::Included(&(from + len)));
                let expected = (Bound::Excluded(from), Bound::Included(from + len));
            prop_assert!(len == 0 || map.range(bounds).eq(model.range(expected)));
                prop_assert!(map.into_iter().eq(model));
            }
        }
    }
}
