//! Changes in two layers, with savepoints: what is new, and what a checkpoint is writing.
//!
//! Changes since the last checkpoint are in `active`. While a checkpoint is being written they are in `frozen`, and
//! `active` takes newer ones. Rows ([`View`](crate::overlay::View)) and attributes of items are both kept so, over what
//! the last checkpoint stored.
//!
//! 1. `active` hides `frozen`.
//! 2. [`Layered::freeze`] and [`Layered::unfreeze`] change no answer; [`Layered::thaw`] drops `frozen`, which by then
//!    the layer below contains.
//! 3. A copy never changes with its original, and takes no savepoints along.
//!
//! A caller that may undo changes begins a savepoint. From then on each change records what it replaced in `active`,
//! which costs less than keeping a copy: with a copy, every change would copy the nodes that it touches.

use crate::buffered_map::BufferedMap;
use std::fmt::Debug;

/// One layer of changes.
pub trait Changes: Clone + Default + Debug {
    /// The key of a change.
    type Key: Clone + Debug;
    /// The new value.
    type Value: Debug;

    /// Makes a change and returns the one that it replaces.
    fn change(&mut self, key: Self::Key, value: Self::Value) -> Option<Self::Value>;

    /// Makes a change of a key that this layer does not have.
    fn add(&mut self, key: Self::Key, value: Self::Value);

    /// Forgets the change of a key.
    fn forget(&mut self, key: &Self::Key);

    /// Makes the changes of a newer layer.
    fn append(&mut self, newer: Self);

    /// True if there is no change.
    fn is_empty(&self) -> bool;
}

impl<K: Ord + Clone + Debug, V: Clone + Debug> Changes for BufferedMap<K, V> {
    type Key = K;
    type Value = V;

    fn change(&mut self, key: K, value: V) -> Option<V> {
        self.insert(key, value)
    }

    fn add(&mut self, key: K, value: V) {
        self.insert_new(key, value);
    }

    fn forget(&mut self, key: &K) {
        self.remove(key);
    }

    fn append(&mut self, newer: Self) {
        for (key, value) in newer {
            self.insert(key, value);
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The changes since the last checkpoint.
#[derive(Debug)]
pub struct Layered<C: Changes> {
    frozen: C,
    active: C,
    /// The replaced changes of `active` since the outermost savepoint, the newest last.
    replaced: Vec<(C::Key, Option<C::Value>)>,
    /// The number of open savepoints.
    savepoints: usize,
}

/// A state to roll back to.
#[derive(Debug)]
#[must_use = "ends with `release` or `roll_back`"]
pub struct Savepoint(usize);

impl<C: Changes> Default for Layered<C> {
    fn default() -> Self {
        Self { frozen: C::default(), active: C::default(), replaced: Vec::new(), savepoints: 0 }
    }
}

impl<C: Changes> Clone for Layered<C> {
    /// Copies the changes. Savepoints stay with the original.
    fn clone(&self) -> Self {
        Self { frozen: self.frozen.clone(), active: self.active.clone(), ..Self::default() }
    }
}

impl<C: Changes> Layered<C> {
    /// The changes that no checkpoint is writing.
    #[must_use]
    pub fn active(&self) -> &C {
        &self.active
    }

    /// The same to change without a record for savepoints: only what is new since the innermost one may change.
    pub fn active_mut(&mut self) -> &mut C {
        &mut self.active
    }

    /// The changes that a checkpoint is writing.
    #[must_use]
    pub fn frozen(&self) -> &C {
        &self.frozen
    }

    /// Makes a change.
    pub fn change(&mut self, key: C::Key, value: C::Value) {
        if self.savepoints == 0 {
            self.active.change(key, value);
            return;
        }
        let replaced = self.active.change(key.clone(), value);
        self.replaced.push((key, replaced));
    }

    /// Makes a change of a key that has none since the last checkpoint.
    pub fn add(&mut self, key: C::Key, value: C::Value) {
        if self.savepoints > 0 {
            self.replaced.push((key.clone(), None));
        }
        self.active.add(key, value);
    }

    /// Begins a savepoint. Savepoints must end in reverse order.
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints += 1;
        Savepoint(self.replaced.len())
    }

    /// Ends a savepoint and keeps the changes since.
    pub fn release(&mut self, _savepoint: Savepoint) {
        self.savepoints = self.savepoints.saturating_sub(1);
        if self.savepoints == 0 {
            self.replaced.clear();
        }
    }

    /// Undoes every change since a savepoint and ends it. `undone` is told the key of each, the newest first.
    pub fn roll_back(&mut self, savepoint: Savepoint, mut undone: impl FnMut(&C::Key)) {
        while self.replaced.len() > savepoint.0 {
            let Some((key, replaced)) = self.replaced.pop() else { break };
            undone(&key);
            match replaced {
                Some(value) => {
                    self.active.change(key, value);
                }
                None => self.active.forget(&key),
            }
        }
        self.release(savepoint);
    }

    /// Begins a checkpoint, which writes the changes so far.
    ///
    /// # Panics
    /// If there are frozen changes already: one checkpoint at a time.
    pub fn freeze(&mut self) {
        assert!(self.frozen.is_empty(), "one checkpoint at a time");
        self.frozen = std::mem::take(&mut self.active);
    }

    /// Ends a checkpoint: the layer below contains the frozen changes.
    pub fn thaw(&mut self) {
        self.frozen = C::default();
    }

    /// Ends a failed checkpoint: the frozen changes become active again, below the newer ones.
    pub fn unfreeze(&mut self) {
        let newer = std::mem::replace(&mut self.active, std::mem::take(&mut self.frozen));
        self.active.append(newer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_is_dropped_with_the_last_savepoint() {
        let mut layered: Layered<BufferedMap<u32, u32>> = Layered::default();
        let outer = layered.savepoint();
        layered.change(1, 1);
        let inner = layered.savepoint();
        layered.change(2, 2);
        layered.release(inner);
        assert_eq!(layered.replaced.len(), 2);
        layered.release(outer);
        layered.change(3, 3);
        assert!(layered.replaced.is_empty() && layered.savepoints == 0);
    }

    #[test]
    fn a_roll_back_tells_the_keys_newest_first() {
        let mut layered: Layered<BufferedMap<u32, u32>> = Layered::default();
        layered.change(1, 1);
        let savepoint = layered.savepoint();
        layered.change(1, 2);
        layered.add(2, 2);
        let mut undone = Vec::new();
        layered.roll_back(savepoint, |key| undone.push(*key));
        assert_eq!(undone, [2, 1]);
        assert_eq!((layered.active().get(&1), layered.active().get(&2)), (Some(&1), None));
    }
}
