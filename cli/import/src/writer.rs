//! Batches of items, compared with the database and written.
//!
//! A batch is one transaction. Each item of it is looked up by its key before anything is written, in the database and
//! in the batch itself. Traces that are new are written together, so that an embedder sees many texts at once.
//!
//! Invariants:
//! 1. An item that the database refuses is a problem of its line; the others of its batch are written.
//! 2. The words of a fact are looked for among committed traces: a batch that begins with traces ends before it.

use crate::batch::{Batch, Place};
use crate::entry::{Fact, Trace};
use crate::intake::Report;
use crate::{ImportError, Options};
use holotype::{Durability, Holotype};
use std::collections::HashMap;

/// Items of a batch.
const BATCH_COUNT: usize = 4_000;
/// Bytes of a batch, roughly; vectors come on top.
const BATCH_LEN: usize = 12 << 20;
/// Bytes of one item.
const MAX_ITEM_LEN: usize = 48 << 20;

/// Something that a reader found.
pub(crate) enum Entry {
    /// An episode with its task and version.
    Episode {
        id: String,
        task: Option<String>,
        version: Option<String>,
    },
    Trace(Box<Trace>),
    Fact(Box<Fact>),
}

/// Writes entries in batches.
pub(crate) struct Writer<'w> {
    database: Option<&'w Holotype>,
    is_dry: bool,
    durability: Durability,
    batch: Vec<(Entry, Place)>,
    len: usize,
    has_traces: bool,
    /// Keys of versions that this import wrote or found, by the key of the first one.
    current: HashMap<String, String>,
    /// Keys of a dry run so far, with the hashes of their contents.
    dry: HashMap<String, String>,
}

impl<'w> Writer<'w> {
    pub(crate) fn new(database: Option<&'w Holotype>, options: &Options) -> Writer<'w> {
        Writer {
            database,
            is_dry: options.dry_run,
            durability: options.durability,
            batch: Vec::new(),
            len: 0,
            has_traces: false,
            current: HashMap::new(),
            dry: HashMap::new(),
        }
    }

    pub(crate) fn push(&mut self, entry: Entry, place: Place, report: &mut Report) -> Result<(), ImportError> {
        let len = match &entry {
            Entry::Episode { .. } => 64,
            Entry::Trace(trace) => trace.len(),
            Entry::Fact(fact) => fact.text.len() + fact.raw.as_ref().map_or(0, String::len) + 512,
        };
        if len > MAX_ITEM_LEN {
            report.skipped += 1;
            let limit = MAX_ITEM_LEN >> 20;
            report.add_problem(&place.0, place.1, format!("got an item of {len} bytes, expected at most {limit} MiB"));
            return Ok(());
        }
        let looks_back = matches!(&entry, Entry::Fact(fact) if fact.evidence.is_none() && !fact.quote.is_empty());
        let is_full = self.batch.len() >= BATCH_COUNT || self.len + len > BATCH_LEN;
        if is_full || (looks_back && self.has_traces) {
            self.flush(report)?;
        }
        self.has_traces |= matches!(entry, Entry::Trace(_));
        self.len += len;
        self.batch.push((entry, place));
        Ok(())
    }

    /// Writes the batch.
    pub(crate) fn flush(&mut self, report: &mut Report) -> Result<(), ImportError> {
        let batch = std::mem::take(&mut self.batch);
        self.len = 0;
        self.has_traces = false;
        let Some(database) = self.database.filter(|_| !batch.is_empty()) else { return Ok(()) };
        let mut open = Batch::begin(database, self.is_dry, &mut self.current, &mut self.dry, report)?;
        for (entry, place) in batch {
            open.take(entry, place)?;
        }
        open.commit(self.durability)
    }
}
