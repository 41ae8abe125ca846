//! The present state, in log order.

use super::items::{self, CurrentAttributes};
use super::last_changes::{Aspect, Event, LastChanges, each_record};
use super::{ExportReport, Keys, Output};
use crate::interchange::{
    self,
    line::{self, Line},
};
use crate::model::item::Inherited;
use crate::model::pointer::NO_HASH;
use crate::model::pointer::hex;
use crate::model::space::Space;
use crate::records::record::{
    Change, EpisodeRecord, FieldValue, ItemRecord, LinkRecord, MarkRecord, PageRecord, PointerRecord, PointerTarget,
    PointersRecord, Record, UnciteRecord, UncitedRecord,
};
use crate::records::tables;
use crate::state::embedder::FINGERPRINT;
use crate::{Edge, ItemId, Layer, Result, Snapshot, Status};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The setting that determines how pages are cut, which has effect from its place on.
const PAGE_TOKENS: &str = "page.tokens";

/// Writes the present state as lines, vectors to `vectors` when given and into the lines otherwise.
///
/// # Errors
/// Of reading the database and of writing the files.
pub fn export(snapshot: &Snapshot, out: impl Write, vectors: Option<&Path>) -> Result<ExportReport> {
    let mut walk = Present {
        snapshot,
        last_changes: LastChanges::read(snapshot)?,
        out: Output::begin(snapshot, out, vectors)?,
        keys: Keys::default(),
        versions: Vec::new(),
        settings: HashSet::new(),
        apart: HashMap::new(),
        uncited: HashMap::new(),
        superseded: HashMap::new(),
        claims: HashSet::new(),
        unended: false,
    };
    each_record(snapshot, |event| match event {
        Event::Record { place, record } => walk.record(place, record),
        Event::Commit { .. } => walk.commit(),
    })?;
    walk.out.finish()
}

struct Present<'s, W: Write> {
    snapshot: &'s Snapshot,
    last_changes: LastChanges,
    out: Output<W>,
    keys: Keys,
    /// The last version of each episode, by number.
    versions: Vec<Option<String>>,
    settings: HashSet<String>,
    /// Pointers that are not part of their item's line and are not written yet.
    apart: HashMap<u32, Vec<PointerRecord>>,
    /// Citations in an item's line that were removed later, and whose removal is not written yet.
    uncited: HashMap<(u32, PointerTarget), Vec<UncitedRecord>>,
    /// Items that a `supersedes` link retired, with the item of the first such link.
    superseded: HashMap<u32, u32>,
    /// Hashes of the lines of claims: an import would count an equal one as known.
    claims: HashSet<[u8; 32]>,
    /// True if there are lines after the last commit.
    unended: bool,
}

impl<W: Write> Present<'_, W> {
    fn record(&mut self, place: u64, record: Record) -> Result<()> {
        match record {
            // Vectors are written as they are now.
            Record::Space(space) => match self.snapshot.space()? {
                Some(present) => self.write(&items::space(&present)),
                None => self.write(&items::space(&Space::try_from(&space)?)),
            },
            Record::Reembed(record) => self.setting(FINGERPRINT, record.fingerprint),
            Record::Setting(setting) => self.setting(&setting.name, setting.value),
            Record::Episode(episode) => self.episode(episode, place),
            Record::Item(item) => self.item(item),
            Record::Page(page) => self.page(&page),
            Record::Link(link) => self.link(link, place),
            Record::Unlink(link) => self.unlink(link, place),
            Record::Pointers(pointers) => self.pointers(&pointers),
            Record::Uncite(record) => self.uncite(&record, place),
            Record::Mark(mark) => self.mark(mark, place),
            // The remains of a claim of a forgotten item.
            Record::Claim(claim) if claim.name.is_empty() => Ok(()),
            Record::Claim(claim) => {
                let line = items::claim(&claim, &self.keys)?;
                let mut bytes = Vec::new();
                crate::interchange::encode(&line, &mut bytes).map_err(super::write_failed)?;
                if self.claims.insert(*blake3::hash(&bytes).as_bytes()) { self.write(&line) } else { Ok(()) }
            }
            // A copy numbers its commits differently, so a receipt of this database is meaningless there.
            Record::Receipt(_) | Record::Read(_) => Ok(()),
            Record::Vector(_) => Ok(()),
            Record::Chunk(_) | Record::Rekey(_) | Record::Forget(_) | Record::Replacement(_) => Ok(()),
            Record::Retained(_) | Record::RetainedCommit(_) | Record::Subtrees(_) => Ok(()),
        }
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        self.unended = true;
        self.out.write(line)
    }

    fn commit(&mut self) -> Result<()> {
        if std::mem::take(&mut self.unended) {
            self.out.write(&Line::Commit(line::Commit::default()))?;
        }
        Ok(())
    }

    fn setting(&mut self, name: &str, value: String) -> Result<()> {
        let first = self.settings.insert(name.to_owned());
        let value = match self.snapshot.state.setting(name)? {
            _ if name == PAGE_TOKENS => value,
            Some(present) if first => present,
            _ => return Ok(()),
        };
        self.write(&Line::Setting(line::Setting { name: name.to_owned(), value }))
    }

    fn episode(&mut self, record: EpisodeRecord, place: u64) -> Result<()> {
        let row = self.snapshot.state.episode(record.number)?;
        let open = (!row.open && self.last_changes.is_closing(record.number, place)).then_some(false);
        let known = usize::try_from(record.number).ok().and_then(|number| self.versions.get_mut(number));
        let line = match known {
            None => {
                self.versions.push(record.version.clone());
                line::Episode { id: record.id, task: row.task.clone(), version: record.version, open }
            }
            Some(before) => {
                let version = (*before != record.version).then(|| record.version.clone()).flatten();
                *before = record.version;
                if version.is_none() && open.is_none() {
                    return Ok(());
                }
                line::Episode { id: record.id, task: None, version, open }
            }
        };
        self.write(&Line::Episode(line))
    }

    fn item(&mut self, record: Arc<ItemRecord>) -> Result<()> {
        let (id, state) = (record.item(), &self.snapshot.state);
        let attributes = state.attributes(id)?;
        let key = match state.moved_key(id)? {
            Some(moved) => moved,
            None => record.key.clone().unwrap_or_else(|| id.to_string()),
        };
        self.keys.items.push(key.clone());
        let in_pieces = record.fields.iter().any(|field| matches!(field.value, FieldValue::Chunks { .. }));
        let record = if in_pieces { self.snapshot.content(id)?.record } else { record };
        let record =
            if attributes.redacted { Arc::new(Arc::unwrap_or_clone(record).without_content()) } else { record };
        let layer = attributes.layer();
        let is_trace = layer == Layer::Trace;
        let stated = attributes.status.filter(|_| attributes.inherited & Inherited::STATUS == 0);
        let fits = |pointer: &PointerRecord| match pointer.target {
            PointerTarget::Page(page) => self.keys.has_page(page),
            PointerTarget::Item(_) => true,
        };
        let (from, apart): (Vec<_>, Vec<_>) =
            state.pointers(id)?.into_iter().partition(|pointer| layer == Layer::Recall && fits(pointer));
        // A recall must be written with a pointer, so one that lost all of them is written with its former pointers.
        let lost = layer == Layer::Recall && from.is_empty() && !record.ungrounded;
        let from = if lost { record.from.clone() } else { from };
        let current = CurrentAttributes {
            key,
            episode: record.episode.map(|number| state.episode(number)).transpose()?.map(|row| row.id.clone()),
            status: stated.filter(|status| !is_trace || *status != Status::Unknown),
            utility: interchange::utility(&attributes).filter(|_| !is_trace),
            from: self.keys.pointers(&from)?,
            children: if layer == Layer::Theme { self.children(id)? } else { Vec::new() },
            vector: self.out.vector(self.snapshot.vector_in_force(&record)?.as_deref())?,
        };
        let line = items::line(&record, current)?;
        self.write(&line)?;
        if let Some(because) = self.last_changes.forgotten(id.0) {
            let line = items::redact(self.keys.item(id.0)?, because);
            self.write(&line)?;
        }
        if let Some(status) =
            record.status.filter(|_| layer == Layer::Theme && !self.last_changes.is_marked(id.0, Aspect::Status))
        {
            let key = self.keys.item(id.0)?.to_owned();
            self.write(&items::status_mark(key, status, None))?;
        }
        if lost {
            for pointer in from {
                self.uncited.entry((id.0, pointer.target)).or_default().push(UncitedRecord::of(&pointer));
            }
        }
        if !apart.is_empty() {
            self.apart.insert(id.0, apart);
            self.pointers(&PointersRecord { item: id.0, pointers: record.from.clone() })?;
        }
        Ok(())
    }

    /// The keys of a theme's children that were created before it, in the order in which they became its children.
    fn children(&self, theme: ItemId) -> Result<Vec<String>> {
        let mut rows = self.snapshot.state.edge_rows(tables::EDGE_IN, theme, Some(Edge::Parent))?;
        rows.retain(|(end, _)| end.far < theme);
        rows.sort_unstable_by_key(|(_, row)| row.order);
        rows.iter().map(|(end, _)| Ok(self.keys.item(end.far.0)?.to_owned())).collect()
    }

    fn page(&mut self, record: &PageRecord) -> Result<()> {
        if self.keys.has_page(record.number) {
            return Ok(());
        }
        let row = self.snapshot.state.page(record.number)?;
        self.keys.pages.push(row.key.clone());
        let (Some(first), Some(last)) = (row.traces.first(), row.traces.last()) else { return Ok(()) };
        let line = line::Page {
            key: Some(row.key),
            episode: self.snapshot.state.episode(row.episode)?.id.clone(),
            first: self.keys.item(*first)?.to_owned(),
            last: self.keys.item(*last)?.to_owned(),
            state: row.summarised.then(|| holotype_query::PageState::Summarised.as_str().to_owned()),
            hash: (row.hash != NO_HASH).then(|| hex(&row.hash)),
        };
        self.write(&Line::Page(line))
    }

    fn link(&mut self, link: LinkRecord, place: u64) -> Result<()> {
        let stated_by_its_items =
            link.edge == Edge::Cites.to_byte() || (link.edge == Edge::Parent.to_byte() && link.from < link.to);
        if stated_by_its_items || !self.last_changes.made_edge(link, place) {
            return Ok(());
        }
        if link.edge == Edge::Supersedes.to_byte() {
            self.superseded.entry(link.to).or_insert(link.from);
        }
        let line = items::link(link, &self.keys)?;
        self.write(&Line::Link(line))
    }

    /// Writes the removal of a pointer that its item had to be written with; other removals need no line.
    fn unlink(&mut self, link: LinkRecord, place: u64) -> Result<()> {
        let target = PointerTarget::Item(link.to);
        if !self.last_changes.is_last_unlink(link, place) || self.uncited.remove(&(link.from, target)).is_none() {
            return Ok(());
        }
        let line = items::link(link, &self.keys)?;
        self.write(&Line::Unlink(line))
    }

    /// As [`Present::unlink`], for single pointers.
    fn uncite(&mut self, record: &UnciteRecord, place: u64) -> Result<()> {
        for gone in &record.pointers {
            let Some(left) = self.uncited.get_mut(&(record.item, gone.target)) else { continue };
            let before = left.len();
            if self.last_changes.is_last_removal(record.item, gone, place) {
                left.retain(|pointer| pointer != gone);
            }
            let was_cited = left.len() < before;
            if left.is_empty() {
                self.uncited.remove(&(record.item, gone.target));
            }
            if was_cited {
                let pointer = self.keys.uncited(gone)?;
                let line = items::citation(record.item, pointer, &self.keys)?;
                self.write(&Line::Unlink(line))?;
            }
        }
        Ok(())
    }

    /// Writes the pointers that are not part of their item's line.
    fn pointers(&mut self, record: &PointersRecord) -> Result<()> {
        for pointer in &record.pointers {
            let Some(apart) = self.apart.get_mut(&record.item) else { return Ok(()) };
            let before = apart.len();
            apart.retain(|other| other != pointer);
            if apart.len() < before {
                let pointer = self.keys.pointer(pointer)?;
                self.write(&Line::Link(items::citation(record.item, pointer, &self.keys)?))?;
            }
        }
        Ok(())
    }

    fn mark(&mut self, mark: MarkRecord, place: u64) -> Result<()> {
        if !self.last_changes.is_last(&mark, place) {
            return Ok(());
        }
        let key = self.keys.item(mark.item)?.to_owned();
        let attributes = self.snapshot.state.attributes(ItemId(mark.item))?;
        let line = match mark.change {
            Change::Status(byte) if mark.because.is_some() || attributes.layer() == Layer::Theme => {
                items::status_mark(key, byte, mark.because)
            }
            // The utility of a recall stands in its line, as if reported once.
            Change::Utility(_, count) if mark.because.is_none() && count == 1 && attributes.layer() != Layer::Trace => {
                return Ok(());
            }
            change @ (Change::Utility(..) | Change::Credit(..)) => {
                let Some(line) = items::worth_mark(key, change, mark.because) else { return Ok(()) };
                line
            }
            Change::Active(false) if !self.is_implied(&mark) => {
                let by = mark.by.map(|by| self.keys.item(by).map(str::to_owned)).transpose()?;
                Line::Deactivate(line::Deactivate { key, by, because: mark.because })
            }
            _ => return Ok(()),
        };
        self.write(&line)
    }

    /// True if an earlier `supersedes` link implies a deactivation.
    fn is_implied(&self, mark: &MarkRecord) -> bool {
        let Some(by) = self.superseded.get(&mark.item) else { return false };
        match (mark.by, mark.because.as_deref()) {
            (None, None) => true,
            (given, because) => given == Some(*by) && because == Some("superseded"),
        }
    }
}
