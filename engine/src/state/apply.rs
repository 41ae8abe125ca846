//! Applying records: how the log becomes state.
//!
//! This is the only code that changes state because of a record. A transaction applies its records to its own copy of
//! the state; opening applies the tail of the log; a rebuild applies all of it. All three run the same code and
//! therefore agree.
//!
//! Invariants:
//! 1. Applying never validates: records were validated before they were appended. A record that cannot be applied was
//!    written by other software ([`Error::Corrupt`]).
//! 2. Numbers (items, episodes, pages, claims) are consecutive.

use crate::model::edge::Edge;
use crate::model::item::{Attributes, Inherited, ItemId, Layer, Status};
use crate::records::record::{
    Change, ChunkRecord, ClaimRecord, EpisodeRecord, ItemRecord, LinkRecord, MarkRecord, PageRecord, PointerRecord,
    PointerTarget, Record, UnciteRecord, bad_byte,
};
use crate::records::tables::{self, EdgeRow, EpisodeRow, PageRow};
use crate::state::layers::{analyzer, empty_layers};
use crate::state::vectors::is_embeddable;
use crate::state::{LookupCache, State};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Traces of an episode whose versions decide that of its reader.
const LAST_VERSIONS: usize = 10;

/// The location of a record. Known at replay; a transaction learns it for its own records after the append.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordLocation {
    pub(crate) commit: u64,
    pub(crate) lsn: u64,
    /// The clock of the commit, in microseconds since the epoch.
    pub(crate) clock: i64,
}

impl State {
    /// Applies one record. Derived attributes are stale until [`State::settle`].
    pub(crate) fn apply(&mut self, record: &Record, location: RecordLocation) -> Result<()> {
        match record {
            Record::Space(space) => self.meta.space = Some(Arc::new(space.clone())),
            Record::Setting(setting) => {
                self.put(tables::SETTING, &setting.name, &setting.value)?;
                self.lookup_cache = LookupCache::default();
                if setting.name == "analyser" {
                    self.layers = empty_layers(analyzer(&setting.value));
                    self.prepare_vectors()?;
                }
            }
            Record::Episode(episode) => self.apply_episode(episode)?,
            Record::Item(item) => self.apply_item(item, location)?,
            Record::Chunk(chunk) => self.set_chunk_location(chunk, location.lsn)?,
            Record::Page(page) => self.apply_page(page)?,
            Record::Link(link) => self.apply_link(*link, true)?,
            Record::Unlink(link) => self.apply_unlink(*link)?,
            Record::Pointers(record) => self.add_pointers(ItemId(record.item), &record.pointers)?,
            Record::Uncite(record) => self.apply_uncite(record)?,
            Record::Mark(mark) => self.apply_mark(mark)?,
            Record::Vector(vector) => self.apply_vector(vector, location.lsn)?,
            Record::Reembed(reembed) => self.apply_reembed(reembed)?,
            Record::Claim(claim) => self.apply_claim(claim)?,
            Record::Receipt(receipt) => {
                next_number("receipt", receipt.number, self.meta.receipts)?;
                self.meta.receipts += 1;
                self.put_new(tables::RECEIPT, tables::numbers([receipt.number]), receipt)?;
            }
            Record::Read(_) => {}
            Record::Rekey(rekey) => {
                self.save_before_image(tables::KEY, rekey.key.as_bytes())?;
                self.reserve_engine_key(&rekey.key, location);
                self.put_new_number(tables::KEY, &rekey.key, rekey.item);
                self.put(tables::KEY_OF, tables::numbers([rekey.item]), &rekey.key)?;
                self.lookup_cache = LookupCache::default();
            }
            Record::Forget(forget) => self.apply_forget(forget)?,
            Record::Replacement(restated) => self.apply_replacement(restated, location.lsn)?,
            Record::Retained(kept) => self.relocate(&kept.record()?, location.lsn)?,
            Record::RetainedCommit(_) | Record::Subtrees(_) => {}
        }
        Ok(())
    }

    /// Sets the log location of an item's or chunk's record.
    pub(crate) fn set_location(&mut self, record: &Record, lsn: u64) -> Result<()> {
        match record {
            Record::Item(item) => {
                self.attributes.set_location(item.item(), lsn)?;
            }
            Record::Chunk(chunk) => self.set_chunk_location(chunk, lsn)?,
            Record::Vector(vector) => self.relocate_vector(vector, lsn)?,
            Record::Replacement(restated) => self.apply_replacement(restated, lsn)?,
            Record::Retained(kept) => self.relocate(&kept.record()?, lsn)?,
            _ => {}
        }
        Ok(())
    }

    /// Points an item or chunk to a new copy of its record. Without a location yet (`lsn` 0) the old one stays.
    pub(crate) fn relocate(&mut self, record: &Record, lsn: u64) -> Result<()> {
        match record {
            Record::Item(item) if lsn > 0 => {
                let mut attributes = self.attributes(item.item())?;
                if attributes.lsn != lsn {
                    attributes.lsn = lsn;
                    self.attributes.set(item.item(), attributes);
                }
                Ok(())
            }
            Record::Chunk(chunk) if lsn > 0 => self.set_chunk_location(chunk, lsn),
            Record::Vector(vector) => self.relocate_vector(vector, lsn),
            _ => Ok(()),
        }
    }

    fn set_chunk_location(&mut self, chunk: &ChunkRecord, lsn: u64) -> Result<()> {
        let key = tables::numbers([chunk.item, chunk.field, chunk.index]);
        self.put(tables::CHUNK, key, &lsn)
    }

    fn apply_episode(&mut self, record: &EpisodeRecord) -> Result<()> {
        let known = record.number < self.meta.episodes;
        let mut row = if known { self.episode(record.number)?.as_ref().clone() } else { EpisodeRow::default() };
        if !known {
            next_number("episode", record.number, self.meta.episodes)?;
            self.meta.episodes += 1;
            self.put_new_number(tables::EPISODE_ID, &record.id, record.number);
        }
        row.id.clone_from(&record.id);
        row.task.clone_from(&record.task);
        row.version.clone_from(&record.version);
        row.open = record.open;
        self.set_episode(record.number, row)
    }

    /// Remembers a caller's key that has the form of a generated key of a later transaction.
    fn reserve_engine_key(&mut self, key: &str, location: RecordLocation) {
        let of_engine = key.strip_prefix('~').and_then(|key| key.split_once('.')?.0.parse::<u64>().ok());
        if let Some(commit) = of_engine.filter(|commit| *commit > location.commit) {
            self.meta.foreign_keys = self.meta.foreign_keys.max(commit);
        }
    }

    fn apply_item(&mut self, record: &ItemRecord, location: RecordLocation) -> Result<()> {
        next_number("item", record.id, self.meta.items)?;
        self.meta.items += 1;
        if record.id == 0 {
            self.state_extractor()?;
        }
        let id = record.item();
        if let Some(key) = &record.key {
            self.reserve_engine_key(key, location);
            self.rows.put_new(tables::KEY, key, record.id.to_le_bytes());
        }
        let attributes = self.stated_attributes(record, location)?;
        // A time after the clock of its commit is a mistake or a plan; it moves no reader.
        let past_time = attributes.time.filter(|time| *time <= location.clock);
        self.meta.newest_time = self.meta.newest_time.max(past_time);
        self.meta.latest_time = self.meta.latest_time.max(attributes.time);
        let layer = attributes.layer();
        if layer == Layer::Trace {
            self.join_episode(record, &attributes, past_time)?;
        }
        self.extract_claims(record, &attributes)?;
        self.attributes.set(id, attributes);
        if !record.from.is_empty() {
            self.add_pointers(id, &record.from)?;
        }
        // A new trace has no sources and no dependents yet.
        if layer != Layer::Trace {
            self.stale_items.insert(record.id);
        }
        Ok(())
    }

    /// The attributes that the record states. Attributes it omits are marked as inherited.
    fn stated_attributes(&mut self, record: &ItemRecord, location: RecordLocation) -> Result<Attributes> {
        let mut attributes = Attributes::new(record.kind()?);
        attributes.status = record.status()?;
        attributes.source = record.source()?;
        attributes.episode = record.episode;
        attributes.step = record.step;
        attributes.time = record.time;
        attributes.version = self.intern_option(&record.version)?;
        attributes.speaker = self.intern_option(&record.speaker)?;
        attributes.tool = self.intern_option(&record.tool)?;
        attributes.log_id = self.intern_option(&record.log_id)?;
        attributes.ungrounded = record.ungrounded;
        attributes.has_vector = record.vector.is_some();
        self.set_pending(&mut attributes, record.vector.is_none() && is_embeddable(record));
        attributes.origin = record.origin()?;
        attributes.utility = record.utility.unwrap_or(0.0);
        attributes.utility_count = u32::from(record.utility.is_some());
        attributes.return_score = record.return_score;
        attributes.tokens = record.tokens;
        attributes.commit = location.commit;
        attributes.lsn = location.lsn;
        if attributes.layer() == Layer::Trace {
            attributes.status = attributes.status.or(Some(Status::Unknown));
            if attributes.version.is_none()
                && let Some(episode) = record.episode
            {
                let row = self.episode(episode)?;
                attributes.version = self.intern_option(&row.version)?;
            }
            attributes.trust_of_trace();
            return Ok(attributes);
        }
        let open = [
            (attributes.status.is_none(), Inherited::STATUS),
            (attributes.source.is_none(), Inherited::SOURCE),
            (attributes.step.is_none(), Inherited::STEP),
            (attributes.time.is_none(), Inherited::TIME),
            (attributes.version.is_none(), Inherited::VERSION),
            (attributes.episode.is_none(), Inherited::EPISODE),
        ];
        attributes.inherited = open.iter().filter(|(open, _)| *open).map(|(_, bit)| bit).sum();
        Ok(attributes)
    }

    fn intern_option(&mut self, name: &Option<String>) -> Result<Option<u32>> {
        name.as_deref().map(|name| self.intern(name)).transpose()
    }

    /// Adds a trace to its episode: to the open page, and to the default reader position.
    fn join_episode(&mut self, record: &ItemRecord, attributes: &Attributes, past_time: Option<i64>) -> Result<()> {
        let Some(number) = record.episode else {
            return Err(Error::Corrupt { what: format!("trace #{} belongs to no episode", record.id) });
        };
        let log = self.intern_log(number, attributes.log_id)?;
        self.change_episode(number, |row| {
            row.traces += 1;
            row.open_page.push(record.id);
            row.open_tokens += u64::from(record.tokens);
            row.newest_step = attributes.step.max(row.newest_step);
            row.newest_time = row.newest_time.max(past_time);
            if let Some(version) = attributes.version {
                let at = row.last_versions.partition_point(|(step, _)| *step <= attributes.step);
                row.last_versions.insert(at, (attributes.step, version));
                if row.last_versions.len() > LAST_VERSIONS {
                    row.last_versions.remove(0);
                }
            }
        })?;
        let tool = attributes.tool.filter(|_| record.tool.as_deref() != Some(""));
        let step = record.step.unwrap_or(0);
        self.rows.put_new(tables::TRACE, tables::trace(tool, log, step), record.id.to_le_bytes());
        self.advance_free_step(tool, log, step);
        Ok(())
    }

    fn apply_page(&mut self, record: &PageRecord) -> Result<()> {
        if record.number >= self.meta.pages {
            next_number("page", record.number, self.meta.pages)?;
            self.meta.pages += 1;
            let mut episode = self.episode(record.episode)?.as_ref().clone();
            episode.open_page.retain(|trace| !record.traces.contains(trace));
            episode.open_tokens = 0;
            for trace in &episode.open_page {
                episode.open_tokens += u64::from(self.attributes(ItemId(*trace))?.tokens);
            }
            episode.pages += 1;
            self.set_episode(record.episode, episode)?;
            for trace in &record.traces {
                let mut attributes = self.attributes(ItemId(*trace))?;
                attributes.page = Some(record.number);
                self.set_attributes(ItemId(*trace), attributes)?;
            }
        }
        let row = PageRow {
            key: record.key.clone(),
            episode: record.episode,
            traces: record.traces.clone(),
            tokens: record.tokens,
            estimator: record.estimator.clone(),
            hash: record.hash,
            summarised: record.summarised,
        };
        self.put_new_number(tables::PAGE_KEY, &row.key, record.number);
        self.put(tables::PAGE, tables::numbers([record.number]), &row)
    }

    fn apply_link(&mut self, link: LinkRecord, stated: bool) -> Result<()> {
        let edge = Edge::from_byte(link.edge).ok_or_else(|| bad_byte("edge", link.edge))?;
        let key = tables::edge(link.from, link.edge, link.to);
        let known: Option<EdgeRow> = self.get(tables::EDGE_OUT, &key)?;
        let order = known.map_or(self.meta.edges, |row| row.order);
        let row = EdgeRow { order, stated: stated || known.is_some_and(|row| row.stated) };
        if known.is_none() {
            self.meta.edges += 1;
        }
        self.put(tables::EDGE_OUT, key, &row)?;
        self.put(tables::EDGE_IN, tables::edge(link.to, link.edge, link.from), &row)?;
        self.mark_edge_ends_stale(edge, link);
        Ok(())
    }

    fn apply_unlink(&mut self, link: LinkRecord) -> Result<()> {
        let edge = Edge::from_byte(link.edge).ok_or_else(|| bad_byte("edge", link.edge))?;
        self.delete(tables::EDGE_OUT, tables::edge(link.from, link.edge, link.to))?;
        self.delete(tables::EDGE_IN, tables::edge(link.to, link.edge, link.from))?;
        if edge == Edge::Cites {
            // The pointers behind the edge are removed with it, so that citations and lineage agree.
            let mut pointers = self.pointers(ItemId(link.from))?;
            pointers.retain(|pointer| pointer.target != PointerTarget::Item(link.to));
            self.put(tables::POINTERS, tables::numbers([link.from]), &pointers)?;
        }
        self.mark_edge_ends_stale(edge, link);
        Ok(())
    }

    /// Marks the items affected by a changed lineage edge as stale.
    fn mark_edge_ends_stale(&mut self, edge: Edge, link: LinkRecord) {
        if edge.is_lineage() {
            self.stale_items.insert(link.from);
        }
        if edge == Edge::Parent {
            self.stale_items.insert(link.to);
        }
    }

    /// Adds pointers to an item. Each item that a pointer reaches becomes a source.
    fn add_pointers(&mut self, id: ItemId, pointers: &[PointerRecord]) -> Result<()> {
        let mut all = self.pointers(id)?;
        for pointer in pointers {
            for to in self.reached_by(pointer.target)? {
                let link = LinkRecord { from: id.0, edge: Edge::Cites.to_byte(), to };
                self.apply_link(link, false)?;
            }
            if !all.contains(pointer) {
                all.push(pointer.clone());
            }
        }
        self.put(tables::POINTERS, tables::numbers([id.0]), &all)
    }

    /// Removes pointers from an item. Items that no remaining pointer reaches are no longer sources.
    fn apply_uncite(&mut self, record: &UnciteRecord) -> Result<()> {
        let id = ItemId(record.item);
        let mut left = self.pointers(id)?;
        left.retain(|pointer| !record.pointers.iter().any(|gone| gone.is_of(pointer)));
        let mut still = BTreeSet::new();
        for pointer in &left {
            still.extend(self.reached_by(pointer.target)?);
        }
        self.put(tables::POINTERS, tables::numbers([id.0]), &left)?;
        for gone in &record.pointers {
            for to in self.reached_by(gone.target)? {
                let link = LinkRecord { from: id.0, edge: Edge::Cites.to_byte(), to };
                let key = tables::edge(link.from, link.edge, link.to);
                if !still.contains(&to) && self.has(tables::EDGE_OUT, &key)? {
                    self.delete(tables::EDGE_OUT, key)?;
                    self.delete(tables::EDGE_IN, tables::edge(link.to, link.edge, link.from))?;
                    self.mark_edge_ends_stale(Edge::Cites, link);
                }
            }
        }
        Ok(())
    }

    /// The items that a pointer reaches.
    fn reached_by(&self, target: PointerTarget) -> Result<Vec<u32>> {
        match target {
            PointerTarget::Item(target) => Ok(vec![target]),
            PointerTarget::Page(page) => Ok(self.page(page)?.traces),
        }
    }

    fn apply_mark(&mut self, mark: &MarkRecord) -> Result<()> {
        let id = ItemId(mark.item);
        let mut attributes = self.attributes(id)?;
        match mark.change {
            Change::Status(byte) => {
                attributes.status = Some(Status::from_byte(byte).ok_or_else(|| bad_byte("status", byte))?);
                attributes.inherited &= !Inherited::STATUS;
            }
            Change::Utility(utility, count) => {
                attributes.utility = utility;
                attributes.utility_count = count;
            }
            Change::Credit(credit, count) => {
                attributes.credit = credit;
                attributes.credit_count = count;
            }
            Change::Active(active) => attributes.active = active,
        }
        self.set_attributes(id, attributes)?;
        self.stale_items.insert(mark.item);
        self.mark_dependents_stale(id)
    }

    fn apply_claim(&mut self, claim: &ClaimRecord) -> Result<()> {
        next_number("claim", claim.number, self.meta.claims)?;
        self.meta.claims += 1;
        self.put_empty(tables::CLAIM_NAME, tables::claim_name(&claim.name, claim.number))?;
        self.put_empty(tables::CLAIM_ITEM, tables::numbers([claim.item, claim.number]))?;
        self.put_new(tables::CLAIM, tables::numbers([claim.number]), claim)
    }
}

pub(crate) fn next_number(what: &'static str, found: u32, expected: u32) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Corrupt { what: format!("the log numbers a new {what} {found} where {expected} is next") })
}
