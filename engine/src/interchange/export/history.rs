//! The log in commit order, one line per logical record, as it was logged.
//!
//! Keys are those at the time of a record. Changes without a line of their own are `event` lines: `rekey` with the
//! former and the new key of an item, `activate` for an item that became active again. A field in several chunks is
//! part of its item's line.

use super::items::{self, CurrentAttributes};
use super::last_changes::{Event, each_record};
use super::{ExportReport, Keys, Output};
use crate::interchange::line::{self, Line};
use crate::model::pointer::NO_HASH;
use crate::model::pointer::hex;
use crate::model::space::Space;
use crate::records::record::{
    Change, EpisodeRecord, FieldValue, ItemRecord, MarkRecord, PageRecord, ReadRecord, ReceiptRecord, Record, RowRecord,
};
use crate::state::embedder::FINGERPRINT;
use crate::{Layer, Result, Snapshot};
use holotype_query::PageState;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Writes the log as lines, vectors to `vectors` when given and into the lines otherwise.
///
/// # Errors
/// Of reading the log and of writing the files.
pub fn export_history(snapshot: &Snapshot, out: impl Write, vectors: Option<&Path>) -> Result<ExportReport> {
    let out = Output::begin(snapshot, out, vectors)?;
    let mut walk = History { snapshot, out, keys: Keys::default(), episodes: HashMap::new() };
    each_record(snapshot, |event| match event {
        Event::Record { record, .. } => walk.record(record),
        Event::Commit { number, time } => {
            walk.out.write(&Line::Commit(line::Commit { number: Some(number), time: Some(time) }))
        }
    })?;
    walk.out.finish()
}

struct History<'s, W: Write> {
    snapshot: &'s Snapshot,
    out: Output<W>,
    keys: Keys,
    /// The id of each episode, and true if it was open at last.
    episodes: HashMap<u32, (String, bool)>,
}

impl<W: Write> History<'_, W> {
    fn record(&mut self, record: Record) -> Result<()> {
        let line = match record {
            // Vectors are written as they are now.
            Record::Space(space) => match self.snapshot.space()? {
                Some(present) => items::space(&present),
                None => items::space(&Space::try_from(&space)?),
            },
            Record::Setting(setting) if setting.name == FINGERPRINT => {
                let value = self.snapshot.state.setting(FINGERPRINT)?.unwrap_or(setting.value);
                Line::Setting(line::Setting { name: setting.name, value })
            }
            Record::Setting(setting) => Line::Setting(line::Setting { name: setting.name, value: setting.value }),
            Record::Episode(episode) => self.episode(episode),
            Record::Item(item) => return self.item(item),
            Record::Page(page) => self.page(page)?,
            Record::Link(link) => Line::Link(items::link(link, &self.keys)?),
            Record::Unlink(link) => Line::Unlink(items::link(link, &self.keys)?),
            Record::Pointers(record) => {
                for pointer in &record.pointers {
                    let pointer = self.keys.pointer(pointer)?;
                    self.out.write(&Line::Link(items::citation(record.item, pointer, &self.keys)?))?;
                }
                return Ok(());
            }
            Record::Uncite(record) => {
                for pointer in &record.pointers {
                    let pointer = self.keys.uncited(pointer)?;
                    self.out.write(&Line::Unlink(items::citation(record.item, pointer, &self.keys)?))?;
                }
                return Ok(());
            }
            Record::Mark(mark) => self.mark(mark)?,
            Record::Claim(claim) if claim.name.is_empty() => return Ok(()),
            Record::Claim(claim) => items::claim(&claim, &self.keys)?,
            Record::Rekey(rekey) => {
                let before = self.keys.item(rekey.item)?.to_owned();
                if let Some(key) = usize::try_from(rekey.item).ok().and_then(|item| self.keys.items.get_mut(item)) {
                    key.clone_from(&rekey.key);
                }
                event("rekey", vec![before, rekey.key], None)
            }
            Record::Receipt(receipt) => self.receipt(receipt)?,
            Record::Read(read) => self.read(&read)?,
            Record::Forget(forget) => {
                for item in &forget.items {
                    let line = items::redact(self.keys.item(*item)?, &forget.because);
                    self.out.write(&line)?;
                }
                return Ok(());
            }
            Record::Chunk(_)
            | Record::Vector(_)
            | Record::Reembed(_)
            | Record::Replacement(_)
            | Record::Retained(_)
            | Record::RetainedCommit(_)
            | Record::Subtrees(_) => {
                return Ok(());
            }
        };
        self.out.write(&line)
    }

    fn receipt(&self, record: ReceiptRecord) -> Result<Line> {
        let ReceiptRecord { number, statement, episode, step, time, version, commit, .. } = record;
        Ok(Line::Receipt(line::Receipt {
            key: Some(crate::write::receipt::id(number)),
            statement,
            at: Some(line::Reader { episode, step, time, version }),
            commit: Some(commit),
            items: self.items_of(&record.rows)?,
            ..line::Receipt::default()
        }))
    }

    fn read(&self, record: &ReadRecord) -> Result<Line> {
        Ok(Line::Event(line::Event {
            op: "recall".to_owned(),
            episode: record.episode.clone(),
            step: record.step,
            commit: Some(record.commit),
            items: self.items_of(&record.rows)?,
            hashes: record.rows.iter().map(|row| hex(&row.hash)).collect(),
            ..line::Event::default()
        }))
    }

    fn items_of(&self, rows: &[RowRecord]) -> Result<Vec<String>> {
        rows.iter().map(|row| Ok(self.keys.item(row.item)?.to_owned())).collect()
    }

    fn episode(&mut self, record: EpisodeRecord) -> Line {
        let before = self.episodes.insert(record.number, (record.id.clone(), record.open));
        let was_open = before.is_none_or(|(_, open)| open);
        let open = (was_open != record.open).then_some(record.open);
        Line::Episode(line::Episode { id: record.id, task: record.task, version: record.version, open })
    }

    fn item(&mut self, record: Arc<ItemRecord>) -> Result<()> {
        let key = record.key.clone().unwrap_or_else(|| record.item().to_string());
        self.keys.items.push(key.clone());
        let in_pieces = record.fields.iter().any(|field| matches!(field.value, FieldValue::Chunks { .. }));
        let record = if in_pieces { self.snapshot.content(record.item())?.record } else { record };
        let is_theme = record.kind()?.layer() == Layer::Theme;
        let from = self.keys.pointers(&record.from)?;
        let (from, apart) = if is_theme { (Vec::new(), from) } else { (from, Vec::new()) };
        let current = CurrentAttributes {
            key,
            episode: record.episode.and_then(|number| self.episodes.get(&number)).map(|(id, _)| id.clone()),
            status: record.status()?,
            utility: record.utility,
            from,
            children: Vec::new(),
            vector: self.out.vector(self.snapshot.vector_in_force(&record)?.as_deref())?,
        };
        self.out.write(&items::line(&record, current)?)?;
        if let Some(status) = record.status.filter(|_| is_theme) {
            let key = self.keys.item(record.id)?.to_owned();
            self.out.write(&items::status_mark(key, status, None))?;
        }
        for pointer in apart {
            self.out.write(&Line::Link(items::citation(record.id, pointer, &self.keys)?))?;
        }
        Ok(())
    }

    fn page(&mut self, record: PageRecord) -> Result<Line> {
        let known = self.keys.has_page(record.number);
        if !known {
            self.keys.pages.push(record.key.clone());
        }
        let state = match record.summarised {
            true => Some(PageState::Summarised.as_str()),
            false if known => Some(PageState::Unsummarised.as_str()),
            false => None,
        };
        let end = |trace: Option<&u32>| trace.map_or(Ok(""), |trace| self.keys.item(*trace));
        Ok(Line::Page(line::Page {
            key: Some(record.key.clone()),
            episode: self.episodes.get(&record.episode).map(|(id, _)| id.clone()).unwrap_or_default(),
            first: end(record.traces.first())?.to_owned(),
            last: end(record.traces.last())?.to_owned(),
            state: state.map(str::to_owned),
            hash: (record.hash != NO_HASH).then(|| hex(&record.hash)),
        }))
    }

    fn mark(&self, mark: MarkRecord) -> Result<Line> {
        let key = self.keys.item(mark.item)?.to_owned();
        let because = mark.because;
        if let Some(line) = items::worth_mark(key.clone(), mark.change, because.clone()) {
            return Ok(line);
        }
        Ok(match mark.change {
            Change::Status(byte) => items::status_mark(key, byte, because),
            Change::Active(false) => {
                let by = mark.by.map(|by| self.keys.item(by).map(str::to_owned)).transpose()?;
                Line::Deactivate(line::Deactivate { key, by, because })
            }
            Change::Active(true) | Change::Utility(..) | Change::Credit(..) => event("activate", vec![key], because),
        })
    }
}

fn event(op: &str, items: Vec<String>, because: Option<String>) -> Line {
    Line::Event(line::Event { op: op.to_owned(), items, because, ..line::Event::default() })
}
