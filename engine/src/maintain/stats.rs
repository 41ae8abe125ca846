//! Figures about a database: what it holds, in which files.
//!
//! [`ContentStats`] counts the things in a snapshot, [`Stats`] adds the files and the limits of the open database. Both
//! can be written as a table of names and values, which `show stats` and the command line print.

use crate::Result;
use crate::core::handle::Holotype;
use crate::core::memory::MemoryUse;
use crate::model::item::{Kind, Layer};
use crate::model::space::Space;
use crate::model::time;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::state::State;
use crate::state::attributes::Column;
use crate::state::layers::LayerIndex;

/// The numbers of things in a snapshot.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContentStats {
    /// The newest commit.
    pub commit: u64,
    /// Items of every kind, inactive and erased ones included.
    pub items: u64,
    /// Items of each kind that there are any of.
    pub items_by_kind: Vec<(Kind, u64)>,
    /// Items that are not active.
    pub inactive_items: u64,
    /// Episodes, open and closed.
    pub episodes: u64,
    /// Closed memory pages.
    pub pages: u64,
    /// Edges that were ever made, removed ones included.
    pub edges_ever_made: u64,
    /// Claims.
    pub claims: u64,
    /// The embedding space, if there is one.
    pub space: Option<Space>,
    /// Items with a vector in the space.
    pub vectors: u64,
    /// Items whose text waits for a vector of the database's model ([`Holotype::embed_pending`]).
    pub pending: u64,
}

/// The numbers of things in a database, with its files and limits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The numbers of things in the newest snapshot.
    pub content: ContentStats,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of the log that are known to be on the disk.
    pub durable_log_bytes: u64,
    /// Files of the log.
    pub log_segments: u64,
    /// Files of the log that a verification once found without faults.
    pub verified_log_segments: u64,
    /// The oldest of those verifications, in microseconds since the epoch.
    pub oldest_verification_us: Option<i64>,
    /// Bytes of a log page.
    pub log_page_bytes: u32,
    /// The share of each limit that is used.
    pub limits: Vec<LimitUse>,
    /// The uses of the memory that the option `memory_limit` bounds.
    pub memory: Vec<MemoryUse>,
    /// When the oldest snapshot that is still held was taken, in microseconds since the epoch.
    pub oldest_snapshot_us: Option<i64>,
    /// The number of items that would be rewritten by merging every layer into one segment.
    pub merge_debt: u64,
    /// Bytes of the catalog, if there is one.
    pub catalog_bytes: Option<u64>,
    /// The device that batches of searches by vector run on, and why it is not a GPU if one was asked for.
    pub accelerator: String,
    /// Parts of vector indexes that batches compared on a GPU.
    pub parts_on_accelerator: u64,
    /// Parts of vector indexes that batches compared on the CPU.
    pub parts_on_cpu: u64,
    /// Bytes of vectors that stay on a GPU.
    pub accelerator_bytes: u64,
}

/// The use of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitUse {
    /// The option that sets the limit.
    pub limit: &'static str,
    /// The present use, in the unit of the option.
    pub used: u64,
    /// The limit; `None` if there is none.
    pub max: Option<u64>,
}

impl Holotype {
    /// Counts the things in the database and reads the use of its files and limits.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn stats(&self) -> Result<Stats> {
        let verified = self.verified()?;
        let times = || verified.iter().filter_map(|(_, time)| *time);
        let limits = self.core.limits(&self.core.lock_writer());
        let published = self.core.published.load();
        let usage = self.core.scorer.usage();
        Ok(Stats {
            content: self.snapshot().stats()?,
            log_bytes: self.core.log.end().0,
            durable_log_bytes: self.core.log.durable().0,
            log_segments: verified.len() as u64,
            verified_log_segments: times().count() as u64,
            oldest_verification_us: times().min(),
            log_page_bytes: self.core.log.page_size(),
            limits: limits
                .iter()
                .map(|limit| LimitUse { limit: limit.limit, used: limit.used, max: limit.max })
                .collect(),
            memory: self.core.memory_parts(&published).to_vec(),
            oldest_snapshot_us: self.core.throttle.oldest_snapshot(),
            merge_debt: merge_debt(&published),
            catalog_bytes: published.rows.base().map(|catalog| catalog.file_len()).transpose()?,
            accelerator: self.core.scorer.name(),
            parts_on_accelerator: usage.on_device,
            parts_on_cpu: usage.on_cpu,
            accelerator_bytes: usage.resident_len,
        })
    }

    /// Why a GPU that was to be used is not, or was not at some time, in a line for a log.
    pub fn accelerator_fault(&self) -> Option<String> {
        self.core.scorer.usage().fault
    }
}

impl Stats {
    /// The figures as rows of a name and a value.
    pub fn to_table(&self) -> Table {
        let mut table = self.content.to_table();
        let mut row = |name: &str, value: Cell| table.rows.push(vec![Some(Cell::text(name)), Some(value)]);
        row("log bytes", Cell::count(self.log_bytes));
        row("log bytes known durable", Cell::count(self.durable_log_bytes));
        row("log segments", Cell::count(self.log_segments));
        row("log segments ever verified", Cell::count(self.verified_log_segments));
        if let Some(oldest) = self.oldest_verification_us {
            row("oldest verification of a segment", Cell::Text(time::format(oldest)));
        }
        row("log page size", Cell::count(u64::from(self.log_page_bytes)));
        for LimitUse { limit, used, max } in &self.limits {
            let max = max.map_or("no limit".to_owned(), |max| max.to_string());
            row(limit, Cell::Text(format!("{used} of {max}")));
        }
        for MemoryUse { part, used, most } in &self.memory {
            let most = most.map_or(String::new(), |most| format!(" of {most}"));
            row(&format!("  memory: {part}"), Cell::Text(format!("{used}{most}")));
        }
        row("oldest snapshot", Cell::Text(self.oldest_snapshot_us.map_or("none".to_owned(), time::format)));
        row("merge debt", Cell::count(self.merge_debt));
        if let Some(bytes) = self.catalog_bytes {
            row("catalog bytes", Cell::count(bytes));
        }
        row("accelerator", Cell::Text(self.accelerator.clone()));
        row("parts compared on a GPU", Cell::count(self.parts_on_accelerator));
        row("vector bytes on a GPU", Cell::count(self.accelerator_bytes));
        table
    }
}

impl ContentStats {
    /// The figures as rows of a name and a value.
    pub fn to_table(&self) -> Table {
        let mut rows = Vec::new();
        let mut row = |name: String, value: Cell| rows.push(vec![Some(Cell::Text(name)), Some(value)]);
        row("commit".to_owned(), Cell::count(self.commit));
        row("items".to_owned(), Cell::count(self.items));
        for (kind, count) in &self.items_by_kind {
            row(format!("  {kind}"), Cell::count(*count));
        }
        row("inactive items".to_owned(), Cell::count(self.inactive_items));
        row("episodes".to_owned(), Cell::count(self.episodes));
        row("pages".to_owned(), Cell::count(self.pages));
        row("edges ever made".to_owned(), Cell::count(self.edges_ever_made));
        row("claims".to_owned(), Cell::count(self.claims));
        let space = self.space.as_ref().map_or("none".to_owned(), ToString::to_string);
        row("embedding space".to_owned(), Cell::Text(space));
        row("vectors".to_owned(), Cell::count(self.vectors));
        row("pending vectors".to_owned(), Cell::count(self.pending));
        Table { verb: "stats", columns: ["name", "value"].map(str::to_owned).to_vec(), rows, ..Table::default() }
    }
}

impl Snapshot {
    /// Counts the things in the snapshot.
    ///
    /// # Errors
    /// When a derived file cannot be read.
    pub fn stats(&self) -> Result<ContentStats> {
        let state = &self.state;
        let mut items_by_kind = Vec::new();
        for kind in Kind::ALL {
            let of_kind = state.attributes.select(Column::Kind, state.bound(), &|byte| byte as u8 == kind.to_byte())?;
            items_by_kind.push((*kind, of_kind.count()));
        }
        items_by_kind.retain(|(_, count)| *count > 0);
        let mut vectors = 0;
        for layer in Layer::ALL {
            vectors += state.vector_index(*layer, &self.core.log)?.map_or(0, |index| index.len() as u64);
        }
        Ok(ContentStats {
            commit: state.meta.commit,
            items: u64::from(state.bound()),
            items_by_kind,
            inactive_items: state.attributes.select(Column::Active, state.bound(), &|active| active == 0.0)?.count(),
            episodes: u64::from(state.meta.episodes),
            pages: u64::from(state.meta.pages),
            edges_ever_made: u64::from(state.meta.edges),
            claims: u64::from(state.meta.claims),
            space: self.space()?,
            vectors,
            pending: state.pending_count()?,
        })
    }
}

/// The number of items that a merge of each layer into one segment would rewrite: those of all segments but the
/// largest.
fn merge_debt(state: &State) -> u64 {
    let debt = |sizes: Vec<u64>| sizes.iter().sum::<u64>() - sizes.iter().max().copied().unwrap_or_default();
    let of_layer = |layer: &LayerIndex| {
        let words = layer.words.segments.iter().map(|segment| u64::from(segment.document_count())).collect();
        let vectors = layer.vectors.iter().flat_map(|vectors| vectors.segments.iter());
        debt(words) + debt(vectors.map(|segment| segment.len() as u64).collect())
    };
    state.layers.iter().map(of_layer).sum()
}

/// The segments and tails of each layer.
pub(crate) fn segments(snapshot: &Snapshot) -> Result<Table> {
    let mut rows = Vec::new();
    for layer in Layer::ALL {
        let index = snapshot.state.layer(*layer);
        let mut row = |form: &str, part: &str, count: usize, bytes: Option<u64>| {
            rows.push(vec![
                Some(Cell::text(layer.as_str())),
                Some(Cell::text(form)),
                Some(Cell::text(part)),
                Some(Cell::count(count as u64)),
                bytes.map(Cell::count),
            ]);
        };
        if let Some(vectors) = &index.vectors {
            for segment in vectors.segments.iter() {
                row(
                    "vectors",
                    if segment.has_graph() { "graph" } else { "flat" },
                    segment.len(),
                    Some(segment.file().file_len()),
                );
            }
            row("vectors", "tail", vectors.tail.len(), None);
        }
        for segment in index.words.segments.iter() {
            row("words", "segment", segment.document_count() as usize, Some(segment.file_len()));
        }
        row("words", "tail", index.words.tails.iter().map(|tail| tail.document_count()).sum(), None);
    }
    let columns = ["layer", "form", "part", "items", "bytes"].map(str::to_owned).to_vec();
    Ok(Table { verb: "show", columns, rows, ..Table::default() })
}
