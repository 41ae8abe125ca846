//! Memory pages as text, and the queue of those that are due for a summary (TierMem B.2, B.3).
//!
//! A page renders as its lines, `[timestamp] speaker: text`, in the order of its traces. The text that is shown is the
//! text that was hashed when the page closed, so the verdict says whether it still is what was written.
//!
//! A page is *due* for a summary while no summary cites it: every closed page in the state `unsummarised`, and every
//! open page of an episode that will not fill it any more, because the episode is closed or *dead*. An episode is dead
//! when its newest trace is older than the setting `stale.age`, seen from the reader without a scope. The queue is
//! derived from the state at each call: a crash loses nothing of it, and a page whose summary failed stays in it.

use crate::model::item::ItemId;
use crate::model::pointer::Verdict;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::records::tables::{self, EpisodeRow, PageRow};
use crate::state::pages;
use crate::state::reader_position::{Reader, ReaderPosition};
use crate::state::settings;
use crate::{Error, Result};
use holotype_storage::codec;

/// A closed memory page with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its key.
    pub key: String,
    /// The id of its episode.
    pub episode: String,
    /// Its traces, in order.
    pub traces: Vec<ItemId>,
    /// The tokens of its traces.
    pub tokens: u64,
    /// True once a summary cites it.
    pub summarised: bool,
    /// `ok` if the lines are those that were hashed when the page closed.
    pub verdict: Verdict,
    /// Its lines, each followed by a line feed.
    pub text: String,
}

/// A page that waits for its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePage {
    /// Its key; `None` while it is open. Closing its episode gives it one.
    pub key: Option<String>,
    /// The id of its episode.
    pub episode: String,
    /// The number of its traces.
    pub traces: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Why it is due.
    pub because: Due,
}

/// Why a page is due for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It is closed, and no summary cites it.
    Unsummarised,
    /// It is open, and its episode is closed.
    EpisodeClosed,
    /// It is open, and nothing was recorded in its episode for longer than `stale.age`.
    EpisodeDead,
}

impl Due {
    /// The reason as a phrase.
    pub fn as_str(self) -> &'static str {
        match self {
            Due::Unsummarised => holotype_query::PageState::Unsummarised.as_str(),
            Due::EpisodeClosed => "open, its episode is closed",
            Due::EpisodeDead => "open, its episode is dead",
        }
    }
}

impl Snapshot {
    /// A closed page with its text, read and hashed again.
    ///
    /// # Errors
    /// [`Error::Missing`] for a page that does not exist; an error of the log where a trace cannot be read.
    pub fn page(&self, key: &str) -> Result<Page> {
        let missing = || Error::Missing { what: "page", name: format!("'{key}'") };
        let number = self.state.page_number(key)?.ok_or_else(missing)?;
        let row = self.state.page(number)?;
        let text = self.lines_of(&row.traces)?;
        let hash = blake3::hash(text.as_bytes());
        let verdict = match () {
            () if self.state.any_redacted(&row.traces)? => Verdict::Redacted,
            () if *hash.as_bytes() == row.hash => Verdict::Ok,
            () => Verdict::Mismatch,
        };
        Ok(Page {
            episode: self.state.episode_id(row.episode)?.as_ref().to_owned(),
            traces: row.traces.iter().copied().map(ItemId).collect(),
            tokens: row.tokens,
            summarised: row.summarised,
            verdict,
            text,
            key: row.key,
        })
    }

    /// The lines of traces, each followed by a line feed. A trace that cannot be read as written leaves its line out.
    pub(crate) fn lines_of(&self, traces: &[u32]) -> Result<String> {
        let mut text = String::new();
        for trace in traces {
            match self.content(ItemId(*trace)) {
                Ok(content) => pages::write_line(&content.record, &mut text),
                Err(error) if is_damage(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(text)
    }

    /// The pages that are due for a summary: closed ones in order, then open ones.
    ///
    /// # Errors
    /// Errors of the catalog.
    pub fn pages_due(&self) -> Result<Vec<DuePage>> {
        let mut due = Vec::new();
        let events = self.state.episode_number(pages::EVENTS)?;
        for (_, value) in self.state.scan(tables::PAGE, &[])? {
            let page: PageRow = codec::decode(&value)?;
            if !page.summarised && Some(page.episode) != events {
                due.push(DuePage {
                    episode: self.state.episode_id(page.episode)?.as_ref().to_owned(),
                    key: Some(page.key),
                    traces: page.traces.len() as u64,
                    tokens: page.tokens,
                    because: Due::Unsummarised,
                });
            }
        }
        let now = ReaderPosition::find(&self.state, None, &Reader::default(), self.core.now())?.reader.time;
        let oldest = now.map(|now| settings::stale_age(&self.state).map(|age| now.saturating_sub(age))).transpose()?;
        for (_, value) in self.state.scan(tables::EPISODE, &[])? {
            let episode: EpisodeRow = codec::decode(&value)?;
            let is_dead = oldest.zip(episode.newest_time).is_some_and(|(oldest, newest)| newest < oldest);
            let is_events = episode.id == pages::EVENTS;
            if episode.open_page.is_empty() || (episode.open && !is_dead) || is_events {
                continue;
            }
            due.push(DuePage {
                key: None,
                traces: episode.open_page.len() as u64,
                tokens: episode.open_tokens,
                because: if episode.open { Due::EpisodeDead } else { Due::EpisodeClosed },
                episode: episode.id,
            });
        }
        Ok(due)
    }
}
