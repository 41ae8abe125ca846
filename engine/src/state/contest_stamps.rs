//! Stamps of contests: which contests changed since something about them was kept
//! ([`standings`](crate::state::standings)).
//!
//! An attribute that decides contests, when it changes, gives the contests of its item new stamps. Stamps are never
//! given twice in a process, so that two states in which a contest has one stamp agree on it, whatever was rolled back
//! in between. New items change no stamp.
//!
//! Cost: a map of at most [`MAX_STAMPS`] numbers; when it is full, every contest gets another stamp.

use imbl::OrdMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Contests with stamps of their own.
const MAX_STAMPS: usize = 4_096;

/// The next stamp.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The stamps of the contests of a state.
#[derive(Debug, Clone)]
pub(crate) struct ContestStamps {
    /// The stamp of what items claim: it stays while items are added.
    items: u64,
    /// The stamp of every contest without one of its own.
    common: u64,
    /// By a hash of the contest's key.
    own: OrdMap<u64, u64>,
}

impl Default for ContestStamps {
    fn default() -> Self {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        ContestStamps { items: next, common: next, own: OrdMap::new() }
    }
}

impl ContestStamps {
    /// The stamp of a contest.
    pub(crate) fn of(&self, key: &[u8]) -> u64 {
        self.own.get(&hash(key)).copied().unwrap_or(self.common)
    }

    /// The stamp of what items claim.
    pub(crate) fn of_items(&self) -> u64 {
        self.items
    }

    /// Gives a contest another stamp.
    pub(crate) fn change(&mut self, key: &[u8]) {
        if self.own.len() >= MAX_STAMPS {
            *self = ContestStamps { items: self.items, ..ContestStamps::default() };
        }
        self.own.insert(hash(key), NEXT.fetch_add(1, Ordering::Relaxed));
    }

    /// Gives every contest another stamp, because what items claim changed.
    pub(crate) fn change_all(&mut self) {
        *self = ContestStamps::default();
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_gives_one_contest_another_stamp_and_many_give_it_to_all() {
        let mut stamps = ContestStamps::default();
        let before = stamps.clone();
        stamps.change(b"price");
        assert_ne!(stamps.of(b"price"), before.of(b"price"));
        assert_eq!(stamps.of(b"gate"), before.of(b"gate"));
        for number in 0..=MAX_STAMPS as u64 {
            stamps.change(&number.to_be_bytes());
        }
        assert!(stamps.own.len() <= MAX_STAMPS);
        assert_ne!(stamps.of(b"gate"), before.of(b"gate"));
        assert_eq!(stamps.items, before.items, "what items claim did not change");
        stamps.change_all();
        assert_ne!(stamps.items, before.items);
    }
}
