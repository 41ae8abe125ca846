//! The reader: where the one who asks stands (memory model, section 2).
//!
//! Staleness, age, the version filter and recency are relative to the reader, never to the wall clock, so that the same
//! question on the same snapshot has the same answer.

use crate::Result;
use crate::item::{Attributes, Layer};
use crate::settings;
use crate::state::State;

/// Where a reader stands. It comes back with every answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reader {
    /// The episode, when exactly one is in scope.
    pub episode: Option<String>,
    /// The step in that episode.
    pub step: Option<u64>,
    /// The time, in microseconds since the epoch.
    pub time: Option<i64>,
    /// The version; known only when one episode is in scope or it is given.
    pub version: Option<String>,
}

/// A reader with names resolved to numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    pub(crate) reader: Reader,
    pub(crate) episode: Option<u32>,
    pub(crate) version: Option<VersionNumber>,
}

/// A version that is known, or that no item has: then every stated version is foreign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionNumber {
    Known(u32),
    Unheard,
}

/// The windows that make an item stale; a criterion that is off is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) steps: Option<u64>,
    pub(crate) age: Option<i64>,
    pub(crate) version: bool,
}

impl Window {
    /// Every criterion of HELM A.6, with the database's bounds.
    pub(crate) fn default_of(state: &State) -> Result<Window> {
        Ok(Window { steps: Some(settings::stale_steps(state)?), age: Some(settings::stale_age(state)?), version: true })
    }
}

impl Standing {
    /// Where a reader stands who says `given` and asks within `episodes`; what is not given is the newest there is.
    pub(crate) fn find(state: &State, episodes: Option<&[u32]>, given: &Reader, now: i64) -> Result<Standing> {
        let episode = match (&given.episode, episodes) {
            (Some(id), _) => state.episode_number(id)?,
            (None, Some([one])) => Some(*one),
            _ => None,
        };
        let row = episode.map(|number| state.episode(number)).transpose()?;
        let newest_time = match &row {
            Some(row) => row.newest_time,
            None => state.meta.newest_time,
        };
        let wall = settings::value(state, "clock")? == "wall";
        let time = given.time.or(if wall { Some(now) } else { newest_time });
        let (step, version) = match &row {
            Some(row) => {
                let of_traces = row.newest_version.map(|number| state.symbol_name(number)).transpose()?;
                let newest_version = of_traces.or_else(|| row.version.clone());
                (given.step.or(row.newest_step), given.version.clone().or(newest_version))
            }
            None => (given.step, given.version.clone()),
        };
        let number = match &version {
            Some(name) => Some(state.symbol(name)?.map_or(VersionNumber::Unheard, VersionNumber::Known)),
            None => None,
        };
        let reader = Reader { episode: row.map(|row| row.id.clone()), step, time, version };
        Ok(Standing { reader, episode, version: number })
    }

    /// Whether an item lies ahead of the reader in the reader's own episode, and so is not seen.
    pub(crate) fn is_ahead(&self, item: &Attributes) -> bool {
        if self.episode.is_none() || item.episode != self.episode || item.layer() == Layer::Theme {
            return false;
        }
        let by_step = matches!((item.step, self.reader.step), (Some(item), Some(reader)) if item > reader);
        let by_time = matches!((item.time, self.reader.time), (Some(item), Some(reader)) if item > reader);
        by_step || by_time
    }

    /// Steps between an item and the reader; they exist only within one episode.
    pub(crate) fn step_distance(&self, episode: Option<u32>, step: Option<u64>) -> Option<u64> {
        if self.episode.is_none() || episode != self.episode {
            return None;
        }
        Some(self.reader.step?.saturating_sub(step?))
    }

    /// How old an item of a time is, in microseconds; what lies ahead counts as 0.
    pub(crate) fn age(&self, time: Option<i64>) -> Option<i64> {
        Some(self.reader.time?.saturating_sub(time?).max(0))
    }

    /// Whether an item is of another version than the reader's.
    pub(crate) fn is_foreign(&self, item: &Attributes) -> bool {
        match (self.version, item.version) {
            (Some(VersionNumber::Known(reader)), Some(item)) => item != reader,
            (Some(VersionNumber::Unheard), Some(_)) => true,
            _ => false,
        }
    }

    /// Whether an item is stale by any criterion that is on.
    pub(crate) fn is_stale(&self, item: &Attributes, window: &Window) -> bool {
        let by_steps = matches!((window.steps, self.step_distance(item.episode, item.step)), (Some(bound), Some(steps)) if steps > bound);
        let by_age = matches!((window.age, self.age(item.time)), (Some(bound), Some(age)) if age > bound);
        by_steps || by_age || (window.version && self.is_foreign(item))
    }
}
