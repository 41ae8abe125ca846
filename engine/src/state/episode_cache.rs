//! The episode written last, decoded.
//!
//! Agents write one trace after another to the same episode. Without this cache each trace would read, decode, encode
//! and write the episode's row and look up steps that cannot be taken.
//!
//! Invariants:
//! 1. Until the state is settled the cached row may be newer than the table's. Episodes must be read through this
//!    module.
//! 2. No trace uses a step at or above the cached free bound: writing one moves the bound past it.

use crate::records::tables::{self, EpisodeRow};
use crate::state::State;
use crate::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;

/// The episode written last, decoded.
#[derive(Clone)]
pub(crate) struct EpisodeCache {
    number: u32,
    row: Arc<EpisodeRow>,
    /// The symbol of the episode's id, which is the default log of its traces.
    log: Option<u32>,
    /// The row in the table is older.
    is_dirty: bool,
    /// Steps known to be free, so that consecutive traces need no lookup.
    free_step: Option<FreeStep>,
}

/// No trace with this tool and log has this step or a later one.
#[derive(Clone, Copy)]
struct FreeStep {
    tool: Option<u32>,
    log: u32,
    from: u64,
}

impl State {
    pub(crate) fn episode_number(&self, id: &str) -> Result<Option<u32>> {
        match &self.episode_cache {
            Some(cached) if cached.row.id == id => Ok(Some(cached.number)),
            _ => self.get(tables::EPISODE_ID, id.as_bytes()),
        }
    }

    pub(crate) fn episode(&self, number: u32) -> Result<Arc<EpisodeRow>> {
        if let Some(cached) = self.episode_cache.as_ref().filter(|cached| cached.number == number) {
            return Ok(Arc::clone(&cached.row));
        }
        let row: Option<EpisodeRow> = self.get(tables::EPISODE, &tables::numbers([number]))?;
        let row = row.ok_or_else(|| Error::Missing { what: "episode", name: format!("number {number}") })?;
        Ok(Arc::new(row))
    }

    /// Replaces an episode's row. The table is updated when the state settles or another episode is changed.
    pub(crate) fn set_episode(&mut self, number: u32, row: EpisodeRow) -> Result<()> {
        if let Some(cached) = self.episode_cache.as_mut().filter(|cached| cached.number == number) {
            (cached.row, cached.is_dirty) = (Arc::new(row), true);
            return Ok(());
        }
        self.flush_episode_cache()?;
        let row = Arc::new(row);
        self.episode_cache = Some(EpisodeCache { number, row, log: None, is_dirty: true, free_step: None });
        Ok(())
    }

    /// Changes an episode's row in place. Copies it only if a published state shares it.
    pub(crate) fn change_episode(&mut self, number: u32, change: impl FnOnce(&mut EpisodeRow)) -> Result<()> {
        if let Some(cached) = self.episode_cache.as_mut().filter(|cached| cached.number == number) {
            change(Arc::make_mut(&mut cached.row));
            cached.is_dirty = true;
            return Ok(());
        }
        let mut row = Arc::unwrap_or_clone(self.episode(number)?);
        change(&mut row);
        self.set_episode(number, row)
    }

    /// Writes the cached row to its table.
    pub(crate) fn flush_episode_cache(&mut self) -> Result<()> {
        let Some(cached) = self.episode_cache.as_mut().filter(|cached| cached.is_dirty) else { return Ok(()) };
        cached.is_dirty = false;
        let (number, row) = (cached.number, Arc::clone(&cached.row));
        self.put(tables::EPISODE, tables::numbers([number]), row.as_ref())
    }

    /// The log symbol of a trace of an episode, if it exists: the stated log's, or that of the episode's id.
    pub(crate) fn log_symbol(&self, episode: u32, stated: Option<&str>) -> Result<Option<u32>> {
        if let Some(stated) = stated {
            return self.symbol(stated);
        }
        match self.episode_cache.as_ref().filter(|cached| cached.number == episode) {
            Some(EpisodeCache { log: Some(log), .. }) => Ok(Some(*log)),
            Some(cached) => self.symbol(&cached.row.id),
            None => self.symbol(&self.episode(episode)?.id),
        }
    }

    /// Like [`State::log_symbol`], but creates a missing symbol.
    pub(crate) fn intern_log(&mut self, episode: u32, stated: Option<u32>) -> Result<u32> {
        if let Some(stated) = stated {
            return Ok(stated);
        }
        let known = self.episode_cache.as_ref().filter(|cached| cached.number == episode).and_then(|cached| cached.log);
        if let Some(log) = known {
            return Ok(log);
        }
        let log = self.intern(&self.episode(episode)?.id.clone())?;
        if let Some(cached) = self.episode_cache.as_mut().filter(|cached| cached.number == episode) {
            cached.log = Some(log);
        }
        Ok(log)
    }

    /// Returns true if a trace with this tool, log and step exists. Caches the free bound for consecutive traces of
    /// one episode.
    pub(crate) fn has_trace(&mut self, episode: u32, tool: Option<&str>, log: Option<u32>, step: u64) -> Result<bool> {
        let Some(log) = log else { return Ok(false) };
        let tool = match tool.filter(|tool| !tool.is_empty()).map(|tool| self.symbol(tool)).transpose()? {
            Some(None) => return Ok(false),
            known => known.flatten(),
        };
        let row = tables::trace(tool, log, step);
        let Some(cached) = self.episode_cache.as_mut().filter(|cached| cached.number == episode) else {
            return self.has(tables::TRACE, &row);
        };
        match cached.free_step.filter(|free| free.tool == tool && free.log == log) {
            Some(free) if step >= free.from => Ok(false),
            Some(_) => self.has(tables::TRACE, &row),
            None => {
                let last = tables::trace(tool, log, u64::MAX);
                let mut rows = self.rows.range(tables::TRACE, Bound::Included(&row), Bound::Included(&last));
                let found = rows.next().transpose()?;
                if found.is_none() {
                    cached.free_step = Some(FreeStep { tool, log, from: step });
                }
                Ok(found.is_some_and(|(key, _)| key == row))
            }
        }
    }

    /// Moves the free bound past a written trace.
    pub(crate) fn advance_free_step(&mut self, tool: Option<u32>, log: u32, step: u64) {
        let free = self.episode_cache.as_mut().and_then(|cached| cached.free_step.as_mut());
        if let Some(free) = free.filter(|free| free.tool == tool && free.log == log) {
            free.from = free.from.max(step.saturating_add(1));
        }
    }

    /// The next page key of an episode, `EPISODE/pN`, skipping keys that callers gave to pages.
    pub(crate) fn free_page_key(&self, episode: u32) -> Result<String> {
        let row = self.episode(episode)?;
        let mut number = row.pages;
        loop {
            number += 1;
            let key = format!("{}/p{number}", row.id);
            if self.page_number(&key)?.is_none() {
                return Ok(key);
            }
        }
    }
}
