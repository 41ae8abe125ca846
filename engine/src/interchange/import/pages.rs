//! Page lines, and pages without a line.

use super::fault::{At, Failure, Fault};
use super::{Import, Outcome, quoted};
use crate::interchange::line::Page;
use crate::model::pointer::hex;
use crate::records::tables::PageRow;
use crate::state::pages::PageHash;
use crate::state::settings;
use crate::{ItemId, Result};

impl Import<'_> {
    /// Notes that an episode's open page may have reached its limit.
    pub(super) fn note_due(&mut self, trace: ItemId) -> Result<()> {
        let state = self.transaction()?.state()?;
        let Some(episode) = state.attributes(trace)?.episode else { return Ok(()) };
        if state.episode(episode)?.open_tokens >= settings::page_tokens(state)? {
            self.due.insert(episode);
        }
        Ok(())
    }

    /// Closes the open pages that reached their limit.
    pub(super) fn close_due_pages(&mut self) -> Result<()> {
        while let Some(episode) = self.due.pop_first() {
            self.transaction()?.close_full_page(episode)?;
        }
        Ok(())
    }

    pub(super) fn page(&mut self, line: &Page) -> Result<Outcome, Failure> {
        let state = self.transaction()?.state()?;
        let Some(episode) = state.episode_number(&line.episode)? else {
            let message = format!("no episode {}", quoted(&line.episode));
            return Err(Fault::new(&["page", "episode"], "missing", message).into());
        };
        let first = self.holder(&line.first, &["page", "first"])?;
        let last = self.holder(&line.last, &["page", "last"])?;
        let state = self.transaction()?.state()?;
        let by_key = line.key.as_deref().map(|key| state.page_number(key)).transpose()?.flatten();
        if let Some(number) = by_key.or(state.attributes(first)?.page) {
            let row = state.page(number)?;
            let named = line.key.as_ref().is_none_or(|key| *key == row.key);
            let same = row.episode == episode
                && row.traces.first() == Some(&first.0)
                && row.traces.last() == Some(&last.0)
                && named;
            if !same {
                return Err(self.other_page(line, number, &row)?.into());
            }
            check_hash(line, &row.hash)?;
            return self.summarise(line, &row);
        }
        let traces = self.open_run(line, episode, first, last)?;
        let hash = self.hash(&traces)?;
        check_hash(line, &hash)?;
        let transaction = self.transaction()?;
        let number = transaction.close_page(episode, traces, line.key.clone()).at(&["page", "key"])?;
        let row = transaction.state()?.page(number)?;
        self.summarise(line, &row)?;
        self.note_due_again(episode)?;
        Ok(Outcome::Added)
    }

    fn note_due_again(&mut self, episode: u32) -> Result<()> {
        let state = self.transaction()?.state()?;
        if state.episode(episode)?.open_tokens < settings::page_tokens(state)? {
            self.due.remove(&episode);
        }
        Ok(())
    }

    /// Marks a page as summarised if its line says so; the opposite changes nothing.
    fn summarise(&mut self, line: &Page, row: &PageRow) -> Result<Outcome, Failure> {
        if line.state.as_deref() != Some(holotype_query::PageState::Summarised.as_str()) || row.summarised {
            return Ok(Outcome::Known);
        }
        self.transaction()?.mark_page(&row.key, true).at(&["page", "state"])?;
        Ok(Outcome::Added)
    }

    /// The traces of the episode's open page from the line's first to its last.
    fn open_run(&mut self, line: &Page, episode: u32, first: ItemId, last: ItemId) -> Result<Vec<u32>, Failure> {
        let open = self.transaction()?.state()?.episode(episode)?.open_page.clone();
        let place = |trace: ItemId| open.iter().position(|open| *open == trace.0);
        let not_open = |member: &str, key: &str| {
            let message = format!("{} is no trace of the open page of {}", quoted(key), quoted(&line.episode));
            Fault::new(&["page", member], "no-such-page", message)
        };
        let from = place(first).ok_or_else(|| not_open("first", &line.first))?;
        let to = place(last).ok_or_else(|| not_open("last", &line.last))?;
        match open.get(from..=to) {
            Some(traces) if from <= to => Ok(traces.to_vec()),
            _ => {
                let message = format!("{} comes after {}", quoted(&line.first), quoted(&line.last));
                Err(Fault::new(&["page", "last"], "no-such-page", message).into())
            }
        }
    }

    /// The fault of a line whose page differs from the database's.
    fn other_page(&mut self, line: &Page, number: u32, row: &PageRow) -> Result<Fault> {
        let (first, last) = (row.traces.first().copied(), row.traces.last().copied());
        let (first, last) = (self.key_of(first)?, self.key_of(last)?);
        let transaction = self.transaction()?;
        let episode = transaction.state()?.episode(row.episode)?.id.clone();
        let by_key = match &line.key {
            Some(key) => transaction.state()?.page_number(key)? == Some(number),
            None => false,
        };
        let member = if by_key { "key" } else { "first" };
        let message = format!(
            "page {} of episode {} holds {} to {}, not {} to {}",
            quoted(&row.key),
            quoted(&episode),
            quoted(&first),
            quoted(&last),
            quoted(&line.first),
            quoted(&line.last)
        );
        let same_run = first == line.first && last == line.last;
        let message = match &line.key {
            Some(key) if same_run => {
                format!(
                    "{} to {} are page {} already, not {}",
                    quoted(&first),
                    quoted(&last),
                    quoted(&row.key),
                    quoted(key)
                )
            }
            _ => message,
        };
        Ok(Fault::new(&["page", member], "differs", message)
            .hint("a page line follows its last trace at once; later, the engine may have closed the page by itself"))
    }

    fn key_of(&mut self, trace: Option<u32>) -> Result<String> {
        let Some(trace) = trace else { return Ok("nothing".to_owned()) };
        let content = self.transaction()?.content(ItemId(trace))?;
        Ok(content.record.key.clone().unwrap_or_else(|| ItemId(trace).to_string()))
    }

    fn hash(&mut self, traces: &[u32]) -> Result<[u8; 32]> {
        let mut hash = PageHash::default();
        for trace in traces {
            hash.push(&self.transaction()?.content(ItemId(*trace))?.record);
        }
        Ok(hash.get())
    }
}

fn check_hash(line: &Page, found: &[u8; 32]) -> Result<(), Failure> {
    let found = hex(found);
    match &line.hash {
        Some(given) if !found.starts_with(given.as_str()) => {
            let message = format!("hash mismatch of the page: given {given}, but its traces have {found}");
            Err(Fault::new(&["page", "hash"], "hash-mismatch", message).into())
        }
        _ => Ok(()),
    }
}
