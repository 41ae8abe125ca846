//! An ordered map of which one copy after another is kept and the next one changed.
//!
//! A persistent tree shares what two copies have in common, but the first change of a copy copies every node on its way
//! down, some kilobytes each. Here the last few changes stand apart, in a sorted array that is copied whole, which costs less
//! than one node; when it is full, it is merged into the tree, and the copies of nodes are shared by all of its entries.
//!
//! 1. An entry of `recent` hides one of `settled` with the same key.
//! 2. `recent` has distinct keys, ascending, and at most [`MAX_RECENT`] of them.
//!
//! Cost: a look-up is one in the array and one in the tree; a change of a copy 64 entries copied, and a 64th of a merge.

use std::borrow::Borrow;
use std::fmt::{self, Debug};
use std::iter::Peekable;
use std::ops::Bound;
use std::slice;

use imbl::OrdMap;
use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;

/// As many changes as stand apart.
const MAX_RECENT: usize = 64;

/// An ordered map with cheap copies and cheap changes to them.
pub struct BufferedMap<K, V> {
    recent: Vec<(K, V)>,
    settled: OrdMap<K, V>,
    /// The entries of `recent` that hide none of `settled`.
    added: usize,
}

impl<K, V> Default for BufferedMap<K, V> {
    fn default() -> Self {
        Self { recent: Vec::new(), settled: OrdMap::new(), added: 0 }
    }
}

/// A copy has room for all changes that may stand apart: it is made to be changed.
impl<K: Clone, V: Clone> Clone for BufferedMap<K, V> {
    fn clone(&self) -> Self {
        let mut recent = Vec::with_capacity(if self.recent.is_empty() { 0 } else { MAX_RECENT });
        recent.extend_from_slice(&self.recent);
        Self { recent, settled: self.settled.clone(), added: self.added }
    }
}

impl<K: Ord + Clone, V: Clone> BufferedMap<K, V> {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.settled.len() + self.added
    }

    /// Whether there are none.
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
        match self.find(key) {
            Ok(at) => self.recent.get(at).map(|(_, value)| value),
            Err(_) => self.settled.get(key),
        }
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self.find(key) {
            Ok(at) => self.recent.get_mut(at).map(|(_, value)| value),
            Err(_) => self.settled.get_mut(key),
        }
    }

    /// Gives a key a value and hands back the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => self.recent.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                let hidden = self.settled.get(&key).cloned();
                self.added += usize::from(hidden.is_none());
                if self.recent.len() < MAX_RECENT {
                    self.recent.insert(at, (key, value));
                } else {
                    self.merge();
                    self.recent.push((key, value));
                    self.added = usize::from(hidden.is_none());
                }
                hidden
            }
        }
    }

    /// Takes a key out with its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let hidden = self.settled.remove(key);
        match self.find(key) {
            Ok(at) => {
                self.added -= usize::from(hidden.is_none());
                Some(self.recent.remove(at).1)
            }
            Err(_) => hidden,
        }
    }

    /// Every entry, by key.
    pub fn iter(&self) -> Entries<'_, K, V> {
        self.range::<K>((Bound::Unbounded, Bound::Unbounded))
    }

    /// The entries between two keys.
    ///
    /// # Panics
    /// If the first bound lies above the second.
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
        Entries { recent: recent.iter().peekable(), settled: self.settled.range::<_, Q>((from, to)).peekable() }
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        // What comes is mostly what comes last.
        match self.recent.last() {
            Some((last, _)) if last.borrow() < key => Err(self.recent.len()),
            _ => self.recent.binary_search_by(|(other, _)| other.borrow().cmp(key)),
        }
    }

    fn merge(&mut self) {
        for (key, value) in self.recent.drain(..) {
            self.settled.insert(key, value);
        }
        self.added = 0;
    }
}

impl<K: Ord + Clone + Debug, V: Clone + Debug> Debug for BufferedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The entries of a map in the order of their keys.
pub struct Entries<'a, K, V> {
    recent: Peekable<slice::Iter<'a, (K, V)>>,
    settled: Peekable<RangedIter<'a, K, V, DefaultSharedPtr>>,
}

impl<'a, K: Ord, V> Iterator for Entries<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let Some((recent, _)) = self.recent.peek() else { return self.settled.next() };
        match self.settled.peek().map(|(settled, _)| (*settled).cmp(recent)) {
            Some(std::cmp::Ordering::Less) => return self.settled.next(),
            Some(std::cmp::Ordering::Equal) => {
                self.settled.next();
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
        self.merge();
        self.settled.into_iter()
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
        /// Whatever is done, a map answers as an ordinary one, and a copy of it as an ordinary one of then.
        #[test]
        fn a_map_is_a_map(steps in proptest::collection::vec((0_u8..3, 0_u16..300, any::<u8>()), 0..900), from in 0_u16..300, len in 0_u16..100) {
            let (mut map, mut model) = (BufferedMap::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (i, (what, key, value)) in steps.into_iter().enumerate() {
                if what == 0 {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                } else {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                }
                if let Some(value) = map.get_mut(&(key / 2)) {
                    *value = value.wrapping_add(1);
                    let changed = *value;
                    model.insert(key / 2, changed);
                }
                prop_assert_eq!(map.len(), model.len());
                if i % 97 == 0 {
                    copies.push((map.clone(), model.clone()));
                }
            }
            copies.push((map, model));
            for (map, model) in copies {
                prop_assert!(map.iter().eq(model.iter()));
                let bounds = (Bound::Excluded(&from), Bound::Included(&(from + len)));
                prop_assert!(map.range(bounds).eq(model.range((Bound::Excluded(from), Bound::Included(from + len)))) || len == 0);
                let at = model.len() / 2;
                if let Some((key, value)) = model.iter().nth(at) {
                    prop_assert_eq!(map.get(key), Some(value));
                }
                prop_assert!(map.into_iter().eq(model));
            }
        }
    }
}
