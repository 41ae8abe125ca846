//! Name caches: ids of episodes and names of symbols, by number.
//!
//! Every row of an answer shows an episode, a tool and a speaker, and there are few distinct ones. A number keeps its
//! name as long as its row exists, so a cached name stays valid within a state.
//!
//! Invariant: a copy of a state starts with an empty cache, because a transaction may roll back a number and assign
//! it to another name.

use crate::Result;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Maximum number of cached names.
const MAX_NAMES: usize = 4_096;

/// Names by number.
#[derive(Default)]
pub(crate) struct NameCache(RwLock<HashMap<u32, Arc<str>>>);

impl Clone for NameCache {
    fn clone(&self) -> Self {
        NameCache::default()
    }
}

impl NameCache {
    /// The cached name of a number, or the result of `look_up`.
    pub(crate) fn of(&self, number: u32, look_up: impl FnOnce() -> Result<Arc<str>>) -> Result<Arc<str>> {
        if let Some(name) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return Ok(Arc::clone(name));
        }
        let name = look_up()?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_NAMES {
            known.insert(number, Arc::clone(&name));
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_name_is_looked_up_once_and_a_copy_knows_none() {
        let names = NameCache::default();
        assert_eq!(&*names.of(7, || Ok("seven".into())).unwrap(), "seven");
        assert_eq!(&*names.of(7, || Err(Error::Cancelled("known"))).unwrap(), "seven");
        assert!(names.of(8, || Err(Error::Cancelled("unknown"))).is_err());
        assert_eq!(&*names.clone().of(7, || Ok("another".into())).unwrap(), "another");
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let names = NameCache::default();
        for number in 0..MAX_NAMES as u32 + 10 {
            names.of(number, || Ok("name".into())).unwrap();
        }
        assert_eq!(names.0.read().unwrap().len(), MAX_NAMES);
        assert_eq!(&*names.of(MAX_NAMES as u32 + 1, || Ok("again".into())).unwrap(), "again");
    }
}
