//! The episode that was written to last, held decoded.
//!
//! Agents write one trace after another to the same episode. Its row would be read, decoded, encoded and written again for
//! each of them, and names would be looked for that cannot be taken. So the state keeps the row at hand, and from where on
//! steps and page names of it are free.
//!
//! 1. Until the state is settled the row at hand may be ahead of the one in the table; whoever reads episodes asks here.
//! 2. What is noted as free is free: a step or a page name that is taken moves the bound past it.

use crate::state::State;
use crate::tables::{self, EpisodeRow};
use crate::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;

/// An episode held decoded, since one trace after another changes it.
#[derive(Clone)]
pub(crate) struct HotEpisode {
    number: u32,
    row: Arc<EpisodeRow>,
    /// The symbol of its id, under which its traces are logged.
    log: Option<u32>,
    /// Its row says something older.
    ahead: bool,
    /// Steps that nothing happened at yet, so that one trace after another need not be looked for.
    free_steps: Option<FreeSteps>,
    /// From this number on no page is called by this episode's id and a number.
    free_pages: Option<u32>,
}

/// No trace of a tool in a log has this step or one above.
#[derive(Clone, Copy)]
struct FreeSteps {
    tool: Option<u32>,
    log: u32,
    from: u64,
}

impl State {
    pub(crate) fn episode_number(&self, id: &str) -> Result<Option<u32>> {
        match &self.hot {
            Some(hot) if hot.row.id == id => Ok(Some(hot.number)),
            _ => self.get(tables::EPISODE_ID, id.as_bytes()),
        }
    }

    pub(crate) fn episode(&self, number: u32) -> Result<Arc<EpisodeRow>> {
        if let Some(hot) = self.hot.as_ref().filter(|hot| hot.number == number) {
            return Ok(Arc::clone(&hot.row));
        }
        let row: Option<EpisodeRow> = self.get(tables::EPISODE, &tables::numbers([number]))?;
        let row = row.ok_or_else(|| Error::Missing { what: "episode", name: format!("number {number}") })?;
        Ok(Arc::new(row))
    }

    /// Changes an episode. Its row follows when the state is settled, or when another episode is changed.
    pub(crate) fn set_episode(&mut self, number: u32, row: EpisodeRow) -> Result<()> {
        if let Some(hot) = self.hot.as_mut().filter(|hot| hot.number == number) {
            (hot.row, hot.ahead) = (Arc::new(row), true);
            return Ok(());
        }
        self.write_hot_episode()?;
        let row = Arc::new(row);
        self.hot = Some(HotEpisode { number, row, log: None, ahead: true, free_steps: None, free_pages: None });
        Ok(())
    }

    /// The same of the episode as it is, without a copy where nobody else has it.
    pub(crate) fn change_episode(&mut self, number: u32, change: impl FnOnce(&mut EpisodeRow)) -> Result<()> {
        if let Some(hot) = self.hot.as_mut().filter(|hot| hot.number == number) {
            change(Arc::make_mut(&mut hot.row));
            hot.ahead = true;
            return Ok(());
        }
        let mut row = Arc::unwrap_or_clone(self.episode(number)?);
        change(&mut row);
        self.set_episode(number, row)
    }

    /// Brings the row of the episode written to last up to date.
    pub(crate) fn write_hot_episode(&mut self) -> Result<()> {
        let Some(hot) = self.hot.as_mut().filter(|hot| hot.ahead) else { return Ok(()) };
        hot.ahead = false;
        let (number, row) = (hot.number, Arc::clone(&hot.row));
        self.put(tables::EPISODE, tables::numbers([number]), row.as_ref())
    }

    /// The symbol of the log that a trace of an episode stands in, if it has one: the stated name's, or the episode's id.
    pub(crate) fn log_symbol(&self, episode: u32, stated: Option<&str>) -> Result<Option<u32>> {
        if let Some(stated) = stated {
            return self.symbol(stated);
        }
        match self.hot.as_ref().filter(|hot| hot.number == episode) {
            Some(HotEpisode { log: Some(log), .. }) => Ok(Some(*log)),
            Some(hot) => self.symbol(&hot.row.id),
            None => self.symbol(&self.episode(episode)?.id),
        }
    }

    /// The same, given now if it had none.
    pub(crate) fn intern_log(&mut self, episode: u32, stated: Option<u32>) -> Result<u32> {
        if let Some(stated) = stated {
            return Ok(stated);
        }
        let known = self.hot.as_ref().filter(|hot| hot.number == episode).and_then(|hot| hot.log);
        if let Some(log) = known {
            return Ok(log);
        }
        let log = self.intern(&self.episode(episode)?.id.clone())?;
        if let Some(hot) = self.hot.as_mut().filter(|hot| hot.number == episode) {
            hot.log = Some(log);
        }
        Ok(log)
    }

    /// Whether there is a trace of this tool, log and step. Where one trace of an episode follows another, remembers from where
    /// on steps are free.
    pub(crate) fn has_trace(&mut self, episode: u32, tool: Option<&str>, log: Option<u32>, step: u64) -> Result<bool> {
        let Some(log) = log else { return Ok(false) };
        let tool = match tool.filter(|tool| !tool.is_empty()).map(|tool| self.symbol(tool)).transpose()? {
            Some(None) => return Ok(false),
            known => known.flatten(),
        };
        let row = tables::trace(tool, log, step);
        let Some(hot) = self.hot.as_mut().filter(|hot| hot.number == episode) else {
            return self.has(tables::TRACE, &row);
        };
        match hot.free_steps.filter(|free| free.tool == tool && free.log == log) {
            Some(free) if step >= free.from => Ok(false),
            Some(_) => self.has(tables::TRACE, &row),
            None => {
                let last = tables::trace(tool, log, u64::MAX);
                let mut rows = self.rows.range(tables::TRACE, Bound::Included(&row), Bound::Included(&last));
                let found = rows.next().transpose()?;
                if found.is_none() {
                    hot.free_steps = Some(FreeSteps { tool, log, from: step });
                }
                Ok(found.is_some_and(|(key, _)| key == row))
            }
        }
    }

    /// Notes that a trace was written.
    pub(crate) fn note_trace(&mut self, tool: Option<u32>, log: u32, step: u64) {
        let free = self.hot.as_mut().and_then(|hot| hot.free_steps.as_mut());
        if let Some(free) = free.filter(|free| free.tool == tool && free.log == log) {
            free.from = free.from.max(step.saturating_add(1));
        }
    }

    /// A key for the next page of an episode, `EPISODE/pN`, counted on past keys that were given to pages by hand.
    pub(crate) fn free_page_key(&mut self, episode: u32) -> Result<String> {
        let row = self.episode(episode)?;
        let prefix = format!("{}/p", row.id);
        if row.pages == 0 && self.scan_some(tables::PAGE_KEY, prefix.as_bytes(), 1)?.is_empty() {
            self.note_free_pages(episode, 1);
        }
        let free = self.hot.as_ref().filter(|hot| hot.number == episode).and_then(|hot| hot.free_pages);
        let mut number = row.pages;
        loop {
            number += 1;
            let key = format!("{prefix}{number}");
            if free.is_some_and(|free| number >= free) || self.page_number(&key)?.is_none() {
                return Ok(key);
            }
        }
    }

    fn note_free_pages(&mut self, episode: u32, from: u32) {
        if let Some(hot) = self.hot.as_mut().filter(|hot| hot.number == episode) {
            hot.free_pages = Some(from);
        }
    }

    /// Notes what a page is called.
    pub(crate) fn note_page_key(&mut self, key: &str) {
        let Some(HotEpisode { row, free_pages: Some(free), .. }) = &mut self.hot else { return };
        let number = key.strip_prefix(row.id.as_str()).and_then(|key| key.strip_prefix("/p")?.parse::<u32>().ok());
        *free = (*free).max(number.map_or(0, |number| number.saturating_add(1)));
    }
}
