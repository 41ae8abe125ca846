//! Names of numbers: the ids of episodes and the names of symbols, kept once they were looked up.
//!
//! Every row of an answer says its episode, its tool and who spoke, and they are few in all. A number keeps its name for as
//! long as its row stands, so what was looked up in a state holds for it.
//!
//! Invariant: a copy of a state begins without any, since a number that a transaction gives may be taken back and given to
//! another name.

use crate::Result;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// So many are kept.
const MOST_NAMES: usize = 4_096;

/// Names by number.
#[derive(Default)]
pub(crate) struct Names(RwLock<HashMap<u32, Arc<str>>>);

impl Clone for Names {
    fn clone(&self) -> Self {
        Names::default()
    }
}

impl Names {
    /// The name of a number, looked up where it is not known.
    pub(crate) fn of(&self, number: u32, look_up: impl FnOnce() -> Result<Arc<str>>) -> Result<Arc<str>> {
        if let Some(name) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return Ok(Arc::clone(name));
        }
        let name = look_up()?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_NAMES {
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
        let names = Names::default();
        assert_eq!(&*names.of(7, || Ok("seven".into())).unwrap(), "seven");
        assert_eq!(&*names.of(7, || Err(Error::Cancelled("known"))).unwrap(), "seven");
        assert!(names.of(8, || Err(Error::Cancelled("unknown"))).is_err());
        assert_eq!(&*names.clone().of(7, || Ok("another".into())).unwrap(), "another");
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let names = Names::default();
        for number in 0..MOST_NAMES as u32 + 10 {
            names.of(number, || Ok("name".into())).unwrap();
        }
        assert_eq!(names.0.read().unwrap().len(), MOST_NAMES);
        assert_eq!(&*names.of(MOST_NAMES as u32 + 1, || Ok("again".into())).unwrap(), "again");
    }
}
