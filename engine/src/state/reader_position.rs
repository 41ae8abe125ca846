//! The reader position: the point in the history from which a query looks back (memory model, section 2).
//!
//! Staleness, age, the version filter and recency are relative to the reader position, never to the wall clock, so
//! that the same query on the same snapshot has the same answer.

use crate::Result;
use crate::model::item::{Attributes, Layer};
use crate::model::version;
use crate::state::State;
use crate::state::settings;

/// A reader position in names. Every answer returns the one it used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reader {
    /// The episode, if exactly one is in scope.
    pub episode: Option<String>,
    /// The step in that episode.
    pub step: Option<u64>,
    /// The time in microseconds since the epoch.
    pub time: Option<i64>,
    /// The version, if it was given or exactly one episode is in scope.
    pub version: Option<String>,
}

/// A reader position with names resolved to numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReaderPosition {
    pub(crate) reader: Reader,
    pub(crate) episode: Option<u32>,
    pub(crate) version: Option<VersionNumber>,
    /// The latest time that is seen, in any episode.
    pub(crate) until: Option<i64>,
}

/// A version known to the database, or one that no item has, which makes every stated version foreign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionNumber {
    Known(u32),
    Unknown,
}

/// The staleness criteria; a criterion that is off is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) steps: Option<u64>,
    pub(crate) age: Option<i64>,
    pub(crate) version: bool,
}

impl Window {
    /// All criteria of HELM A.6 with the database's bounds.
    pub(crate) fn default_of(state: &State) -> Result<Window> {
        Ok(Window { steps: Some(settings::stale_steps(state)?), age: Some(settings::stale_age(state)?), version: true })
    }
}

impl ReaderPosition {
    /// Resolves the position a statement gives within `episodes`. The time defaults to the newest one that is not after
    /// the clock of its commit, of the one episode in scope or of all; the version to the one that the episode states,
    /// else to the prevailing one of its last traces.
    pub(crate) fn find(state: &State, episodes: Option<&[u32]>, given: &Reader, now: i64) -> Result<ReaderPosition> {
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
        let default = if wall { Some(now) } else { newest_time };
        let time = given.time.or(default);
        // A position that is stated hides what is later; else only what is later than the last commit is hidden.
        let until = given.time.filter(|stated| Some(*stated) != default).or(match wall {
            true => Some(now),
            false => state.meta.newest_time,
        });
        let (step, version) = match &row {
            Some(row) => {
                let prevailing = || row.prevailing_version().map(|number| state.symbol_name(number)).transpose();
                let version = match given.version.as_ref().or(row.version.as_ref()) {
                    Some(version) => Some(version.clone()),
                    None => prevailing()?,
                };
                (given.step.or(row.newest_step), version)
            }
            None => (given.step, given.version.clone()),
        };
        let number = match &version {
            Some(name) => Some(state.symbol(name)?.map_or(VersionNumber::Unknown, VersionNumber::Known)),
            None => None,
        };
        let reader = Reader { episode: row.map(|row| row.id.clone()), step, time, version };
        Ok(ReaderPosition { reader, episode, version: number, until })
    }

    /// Returns true if an item is later than the reader, which hides it: of a greater step in the reader's episode, or
    /// of a later time in any. Themes are never later.
    pub(crate) fn is_ahead(&self, item: &Attributes) -> bool {
        let in_episode = self.episode.is_some() && item.episode == self.episode;
        let by_step =
            in_episode && matches!((item.step, self.reader.step), (Some(step), Some(reader)) if step > reader);
        let by_time = matches!((item.time, self.until), (Some(time), Some(until)) if time > until);
        item.layer() != Layer::Theme && (by_step || by_time)
    }

    /// Steps between an item and the reader; defined only within one episode.
    pub(crate) fn step_distance(&self, episode: Option<u32>, step: Option<u64>) -> Option<u64> {
        if self.episode.is_none() || episode != self.episode {
            return None;
        }
        Some(self.reader.step?.saturating_sub(step?))
    }

    /// The age of an item in microseconds; 0 for items ahead of the reader.
    pub(crate) fn age(&self, time: Option<i64>) -> Option<i64> {
        Some(self.reader.time?.saturating_sub(time?).max(0))
    }

    /// Returns true if an item's version disagrees with the reader's.
    pub(crate) fn is_foreign(&self, state: &State, item: &Attributes) -> Result<bool> {
        item.version.map_or(Ok(false), |number| self.is_foreign_version(state, number))
    }

    /// Returns true if a part of a version disagrees with the reader's.
    pub(crate) fn is_foreign_version(&self, state: &State, number: u32) -> Result<bool> {
        match (self.version, &self.reader.version) {
            (None, _) => Ok(false),
            (Some(VersionNumber::Known(mine)), _) if mine == number => Ok(false),
            (Some(_), Some(mine)) => Ok(version::are_foreign(mine, &state.symbol_name(number)?)),
            (Some(_), None) => Ok(true),
        }
    }

    /// Returns true if an item is stale by any enabled criterion.
    pub(crate) fn is_stale(&self, state: &State, item: &Attributes, window: &Window) -> Result<bool> {
        let by_steps = matches!((window.steps, self.step_distance(item.episode, item.step)), (Some(bound), Some(steps)) if steps > bound);
        let by_age = matches!((window.age, self.age(item.time)), (Some(bound), Some(age)) if age > bound);
        Ok(by_steps || by_age || (window.version && self.is_foreign(state, item)?))
    }
}
