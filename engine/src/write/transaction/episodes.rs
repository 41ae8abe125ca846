//! Episodes, and the memory pages that hold their traces.

use super::{Transaction, check_name};
use crate::model::item::{ItemId, Kind};
use crate::model::pointer::NO_HASH;
use crate::records::record::{EpisodeRecord, ItemRecord, PageRecord, PointerRecord, PointerTarget, Record};
use crate::records::tables::PageRow;
use crate::state::pages::OpenPage;
use crate::state::settings;
use crate::{Error, Result};

/// Opens, changes or closes an episode; `None` keeps a value.
#[derive(Debug, Clone, Default)]
pub struct EpisodeChange {
    /// The task of the episode.
    pub task: Option<String>,
    /// The version of task, environment or tool schema.
    pub version: Option<String>,
    /// True if the episode is open.
    pub open: Option<bool>,
}

impl Transaction<'_> {
    /// Opens, changes or closes an episode. Closing one closes its open page.
    pub fn episode(&mut self, id: &str, change: EpisodeChange) -> Result<()> {
        self.atomically(|transaction| transaction.episode_inner(id, change))
    }

    pub(super) fn episode_inner(&mut self, id: &str, change: EpisodeChange) -> Result<()> {
        check_name("episode", id)?;
        let known = self.state.episode_number(id)?;
        let row = known.map(|number| self.state.episode(number)).transpose()?;
        let before = row.as_deref();
        let record = EpisodeRecord {
            number: known.unwrap_or(self.state.meta.episodes),
            id: id.to_owned(),
            task: change.task.or_else(|| before.and_then(|row| row.task.clone())),
            version: change.version.or_else(|| before.and_then(|row| row.version.clone())),
            open: change.open.unwrap_or_else(|| before.is_none_or(|row| row.open)),
        };
        // A trace that was recorded after the close has opened a new page.
        if change.open == Some(false)
            && let Some(row) = before.filter(|row| !row.open_page.is_empty())
        {
            let traces = row.open_page.clone();
            self.close_page(record.number, traces, None)?;
        }
        let same = before
            .is_some_and(|row| row.task == record.task && row.version == record.version && row.open == record.open);
        if same {
            return Ok(());
        }
        self.push(Record::Episode(record))
    }

    /// The number of an episode, which is opened if it is new.
    pub(super) fn ensure_episode(&mut self, id: &str) -> Result<u32> {
        if let Some(number) = self.state.episode_number(id)? {
            return Ok(number);
        }
        self.episode(id, EpisodeChange::default())?;
        let number = self.state.episode_number(id)?;
        number.ok_or_else(|| Error::Missing { what: "episode", name: format!("'{id}'") })
    }

    /// Tests whether an episode exists and is closed.
    pub(crate) fn is_closed(&mut self, id: &str) -> Result<bool> {
        let state = self.state()?;
        let Some(number) = state.episode_number(id)? else { return Ok(false) };
        Ok(!state.episode(number)?.open)
    }

    /// Closes the open page of an episode if it has reached the token limit.
    pub(crate) fn close_full_page(&mut self, episode: u32) -> Result<()> {
        let row = self.state.episode(episode)?;
        let limit = settings::page_tokens(&self.state)?;
        if row.open_tokens >= limit {
            self.close_page(episode, row.open_page.clone(), None)?;
        }
        Ok(())
    }

    /// Closes a page over the given traces; a page without a key is named after its episode.
    pub(crate) fn close_page(&mut self, episode: u32, traces: Vec<u32>, key: Option<String>) -> Result<u32> {
        let key = match key {
            Some(key) if self.state.page_number(&key)?.is_some() => {
                return Err(Error::DuplicateKey { key, what: "page" });
            }
            Some(key) => key,
            None => self.state.free_page_key(episode)?,
        };
        let (tokens, hash) = self.page_summary(episode, &traces)?;
        let number = self.state.meta.pages;
        let hash = if self.state.any_redacted(&traces)? { NO_HASH } else { hash };
        self.push(Record::Page(PageRecord {
            number,
            key,
            episode,
            traces,
            tokens,
            estimator: crate::model::tokens::ESTIMATOR.to_owned(),
            hash,
            summarised: false,
        }))?;
        Ok(number)
    }

    /// The token count and the hash of a page with these traces.
    fn page_summary(&self, episode: u32, traces: &[u32]) -> Result<(u64, [u8; 32])> {
        if let Some(page) = self.page.as_ref()
            && page.episode == episode
            && page.traces == traces
        {
            return Ok((page.tokens, page.hash()));
        }
        let mut page = OpenPage::begin(None, episode);
        for trace in traces {
            page.push(&self.content(ItemId(*trace))?.record);
        }
        Ok((page.tokens, page.hash()))
    }

    /// Extends the running page hash by the trace just written; `before` are the earlier traces of the open page.
    pub(super) fn extend_open_page(&mut self, episode: u32, before: &[u32], record: &ItemRecord) {
        let mut page = match self.page.take() {
            Some(page) if page.episode == episode && page.traces == before => page,
            noted if before.is_empty() => OpenPage::begin(noted, episode),
            _ => return,
        };
        page.push(record);
        self.page = Some(page);
    }

    /// Marks the pages that a new summary cites as summarised, in the same transaction (TierMem B.3). An import takes
    /// the states of pages from its file.
    pub(super) fn mark_summarised_by(&mut self, kind: Kind, pointers: &[PointerRecord]) -> Result<()> {
        if kind != Kind::Summary || self.accepts_generated_keys {
            return Ok(());
        }
        for pointer in pointers {
            let PointerTarget::Page(number) = pointer.target else { continue };
            let page = self.state.page(number)?;
            if !page.summarised {
                self.mark_page(&page.key, true)?;
            }
        }
        Ok(())
    }

    /// Marks a page as summarised or not.
    pub fn mark_page(&mut self, key: &str, summarised: bool) -> Result<()> {
        let missing = || Error::Missing { what: "page", name: format!("'{key}'") };
        let number = self.state.page_number(key)?.ok_or_else(missing)?;
        let PageRow { key, episode, traces, tokens, estimator, hash, .. } = self.state.page(number)?;
        self.push(Record::Page(PageRecord { number, key, episode, traces, tokens, estimator, hash, summarised }))
    }
}
