//! A chunk of attribute columns as it stands on disk: one value an item in each of 24 arrays.
//!
//! The columns are found by their names once, when the chunk is opened. Reading one item is one array access for each
//! attribute; a byte or a number that says nothing is the greatest of its type, and bits of `flags` say whether step and
//! time are there.

use super::Cited;
use super::select::SetCache;
use crate::item::{Attributes, Kind, Layer, Origin, Source, Status, Support};
use crate::record::bad_byte;
use crate::score::{Reads, Scalars};
use crate::{Error, Result};
use holotype_storage::columns::{self, Columns, ColumnsWriter};
use holotype_storage::segment_file::SegmentFile;

/// How many consecutive ids a chunk of columns holds.
pub(crate) const CHUNK_ITEMS: u32 = 65_536;

/// An absent byte in a column.
pub(super) const NO_U8: u8 = u8::MAX;
/// An absent number in a column.
pub(super) const NO_U32: u32 = u32::MAX;

/// The bits of the column `flags`.
pub(super) mod flag {
    pub(in crate::attributes) const ACTIVE: u8 = 1;
    pub(in crate::attributes) const REDACTED: u8 = 2;
    pub(in crate::attributes) const UNGROUNDED: u8 = 4;
    pub(in crate::attributes) const VECTOR: u8 = 8;
    pub(in crate::attributes) const STEP: u8 = 16;
    pub(in crate::attributes) const TIME: u8 = 32;
}

/// A chunk of columns as it stands on disk.
pub(crate) struct Chunk {
    first: u32,
    pub(super) columns: Columns,
    pub(super) layout: Layout,
    pub(super) sets: SetCache,
}

/// Where each column of a chunk stands.
pub(super) struct Layout {
    pub(super) kind: columns::Column<u8>,
    pub(super) status: columns::Column<u8>,
    pub(super) source: columns::Column<u8>,
    pub(super) flags: columns::Column<u8>,
    pub(super) inherited: columns::Column<u8>,
    pub(super) origin: columns::Column<u8>,
    pub(super) support: columns::Column<u8>,
    pub(super) trust_sources: columns::Column<u8>,
    pub(super) trust_status: columns::Column<u8>,
    pub(super) return_score: columns::Column<u8>,
    pub(super) episode: columns::Column<u32>,
    pub(super) version: columns::Column<u32>,
    pub(super) speaker: columns::Column<u32>,
    pub(super) tool: columns::Column<u32>,
    pub(super) log_id: columns::Column<u32>,
    pub(super) page: columns::Column<u32>,
    pub(super) conflict: columns::Column<u32>,
    pub(super) tokens: columns::Column<u32>,
    pub(super) utility_count: columns::Column<u32>,
    pub(super) step: columns::Column<u64>,
    pub(super) commit: columns::Column<u64>,
    pub(super) lsn: columns::Column<u64>,
    pub(super) time: columns::Column<i64>,
    pub(super) utility: columns::Column<f32>,
}

impl Layout {
    fn of(columns: &Columns) -> Result<Layout, holotype_storage::Error> {
        Ok(Layout {
            kind: columns.column("kind")?,
            status: columns.column("status")?,
            source: columns.column("source")?,
            flags: columns.column("flags")?,
            inherited: columns.column("inherited")?,
            origin: columns.column("origin")?,
            support: columns.column("support")?,
            trust_sources: columns.column("trust_sources")?,
            trust_status: columns.column("trust_status")?,
            return_score: columns.column("return_score")?,
            episode: columns.column("episode")?,
            version: columns.column("version")?,
            speaker: columns.column("speaker")?,
            tool: columns.column("tool")?,
            log_id: columns.column("log_id")?,
            page: columns.column("page")?,
            conflict: columns.column("conflict")?,
            tokens: columns.column("tokens")?,
            utility_count: columns.column("utility_count")?,
            step: columns.column("step")?,
            commit: columns.column("commit")?,
            lsn: columns.column("lsn")?,
            time: columns.column("time")?,
            utility: columns.column("utility")?,
        })
    }
}

impl Chunk {
    /// Chunk `number`, its columns found by their names.
    pub(crate) fn new(number: u32, columns: Columns) -> Result<Chunk> {
        let first = columns.first_id();
        if number.checked_mul(CHUNK_ITEMS) != Some(first) {
            return Err(Error::Corrupt { what: format!("the columns of chunk {number} begin with item {first}") });
        }
        Ok(Chunk { first, layout: Layout::of(&columns)?, columns, sets: SetCache::default() })
    }

    /// The value of an item in a column.
    #[inline]
    fn value<T: columns::Scalar>(&self, column: columns::Column<T>, id: u32) -> Result<T> {
        let values = self.columns.values(column)?;
        match values.get((id - self.first) as usize) {
            Some(value) => Ok(*value),
            None => Err(Error::Corrupt {
                what: format!(
                    "a chunk of columns ends {} items after {} where item {id} is needed",
                    values.len(),
                    self.first
                ),
            }),
        }
    }

    /// The same of a column that may say nothing.
    #[inline]
    fn optional(&self, column: columns::Column<u32>, id: u32) -> Result<Option<u32>> {
        Ok(Some(self.value(column, id)?).filter(|value| *value != NO_U32))
    }

    /// Its place among the chunks.
    pub(crate) fn number(&self) -> u32 {
        self.first / CHUNK_ITEMS
    }

    /// The file it stands in.
    pub(super) fn file(&self) -> &SegmentFile {
        self.columns.file()
    }

    /// The episode and the log of an item.
    pub(super) fn log(&self, id: u32) -> Result<(Option<u32>, Option<u32>)> {
        Ok((self.optional(self.layout.episode, id)?, self.optional(self.layout.log_id, id)?))
    }

    /// Where the record of an item stands in the log, and whether it was erased.
    pub(super) fn place_of(&self, id: u32) -> Result<(u64, bool)> {
        Ok((self.value(self.layout.lsn, id)?, self.value(self.layout.flags, id)? & flag::REDACTED != 0))
    }

    /// The step and the time of an item.
    pub(super) fn moment(&self, id: u32) -> Result<(Option<u64>, Option<i64>)> {
        let flags = self.value(self.layout.flags, id)?;
        let step = if flags & flag::STEP != 0 { Some(self.value(self.layout.step, id)?) } else { None };
        let time = if flags & flag::TIME != 0 { Some(self.value(self.layout.time, id)?) } else { None };
        Ok((step, time))
    }

    /// What a citation of an item says of it.
    pub(super) fn cited(&self, id: u32) -> Result<Cited> {
        let flags = self.value(self.layout.flags, id)?;
        Ok(Cited {
            redacted: flags & flag::REDACTED != 0,
            layer: self.kind(id)?.layer(),
            episode: self.optional(self.layout.episode, id)?,
            step: if flags & flag::STEP != 0 { Some(self.value(self.layout.step, id)?) } else { None },
        })
    }

    /// The kind of an item.
    pub(super) fn kind(&self, id: u32) -> Result<Kind> {
        let byte = self.value(self.layout.kind, id)?;
        Kind::from_byte(byte).ok_or_else(|| bad_byte("kind", byte))
    }

    /// What S reads of an item of a layer.
    pub(super) fn scalars(&self, id: u32, layer: Layer, reads: Reads) -> Result<Scalars> {
        let layout = &self.layout;
        let flags = self.value(layout.flags, id)?;
        let has_step = reads.step && flags & flag::STEP != 0;
        Ok(Scalars {
            layer,
            status: optional_name(self.value(layout.status, id)?, Status::from_byte, "status")?,
            source: optional_name(self.value(layout.source, id)?, Source::from_byte, "source")?,
            episode: if reads.step { self.optional(layout.episode, id)? } else { None },
            step: if has_step { Some(self.value(layout.step, id)?) } else { None },
            time: if flags & flag::TIME != 0 { Some(self.value(layout.time, id)?) } else { None },
            utility: if reads.utility { self.value(layout.utility, id)? } else { 0.0 },
            conflict: if reads.conflict { self.optional(layout.conflict, id)? } else { None },
            tokens: if reads.tokens { self.value(layout.tokens, id)? } else { 0 },
        })
    }

    /// All attributes of an item.
    pub(super) fn get(&self, id: u32) -> Result<Attributes> {
        let layout = &self.layout;
        let byte = |column| self.value::<u8>(column, id);
        let number = |column| self.value::<u32>(column, id);
        let optional = |column| self.optional(column, id);
        let flags = byte(layout.flags)?;
        let status = byte(layout.status)?;
        let source = byte(layout.source)?;
        let origin = byte(layout.origin)?;
        let support = byte(layout.support)?;
        Ok(Attributes {
            kind: self.kind(id)?,
            status: optional_name(status, Status::from_byte, "status")?,
            source: optional_name(source, Source::from_byte, "source")?,
            episode: optional(layout.episode)?,
            step: (flags & flag::STEP != 0).then_some(self.value(layout.step, id)?),
            time: (flags & flag::TIME != 0).then_some(self.value(layout.time, id)?),
            version: optional(layout.version)?,
            speaker: optional(layout.speaker)?,
            tool: optional(layout.tool)?,
            log_id: optional(layout.log_id)?,
            page: optional(layout.page)?,
            active: flags & flag::ACTIVE != 0,
            redacted: flags & flag::REDACTED != 0,
            ungrounded: flags & flag::UNGROUNDED != 0,
            has_vector: flags & flag::VECTOR != 0,
            inherited: byte(layout.inherited)?,
            origin: Origin::from_byte(origin).ok_or_else(|| bad_byte("origin", origin))?,
            support: Support::from_byte(support).ok_or_else(|| bad_byte("support", support))?,
            trust_sources: byte(layout.trust_sources)?,
            trust_statuses: byte(layout.trust_status)?,
            utility: self.value(layout.utility, id)?,
            utility_count: number(layout.utility_count)?,
            return_score: Some(byte(layout.return_score)?).filter(|score| *score != NO_U8),
            conflict: optional(layout.conflict)?,
            tokens: number(layout.tokens)?,
            commit: self.value(layout.commit, id)?,
            lsn: self.value(layout.lsn, id)?,
        })
    }
}

fn optional_name<T>(byte: u8, from: fn(u8) -> Option<T>, what: &'static str) -> Result<Option<T>> {
    if byte == NO_U8 {
        return Ok(None);
    }
    from(byte).map(Some).ok_or_else(|| bad_byte(what, byte))
}

/// The columns of a chunk that begins with these items.
pub(super) fn to_columns(first: u32, items: &[Attributes]) -> ColumnsWriter {
    let bytes = |of: &dyn Fn(&Attributes) -> u8| items.iter().map(of).collect::<Vec<u8>>();
    let numbers = |of: &dyn Fn(&Attributes) -> Option<u32>| {
        items.iter().map(|item| of(item).unwrap_or(NO_U32)).collect::<Vec<u32>>()
    };
    let flags = |item: &Attributes| {
        let bits = [
            (item.active, flag::ACTIVE),
            (item.redacted, flag::REDACTED),
            (item.ungrounded, flag::UNGROUNDED),
            (item.has_vector, flag::VECTOR),
            (item.step.is_some(), flag::STEP),
            (item.time.is_some(), flag::TIME),
        ];
        bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum::<u8>()
    };
    let mut writer = ColumnsWriter::new(first, items.len() as u32);
    writer.u8("kind", bytes(&|item| item.kind.to_byte()));
    writer.u8("status", bytes(&|item| item.status.map_or(NO_U8, Status::to_byte)));
    writer.u8("source", bytes(&|item| item.source.map_or(NO_U8, Source::to_byte)));
    writer.u8("flags", bytes(&flags));
    writer.u8("inherited", bytes(&|item| item.inherited));
    writer.u8("origin", bytes(&|item| item.origin.to_byte()));
    writer.u8("support", bytes(&|item| item.support.to_byte()));
    writer.u8("trust_sources", bytes(&|item| item.trust_sources));
    writer.u8("trust_status", bytes(&|item| item.trust_statuses));
    writer.u8("return_score", bytes(&|item| item.return_score.unwrap_or(NO_U8)));
    writer.u32("episode", numbers(&|item| item.episode));
    writer.u32("version", numbers(&|item| item.version));
    writer.u32("speaker", numbers(&|item| item.speaker));
    writer.u32("tool", numbers(&|item| item.tool));
    writer.u32("log_id", numbers(&|item| item.log_id));
    writer.u32("page", numbers(&|item| item.page));
    writer.u32("conflict", numbers(&|item| item.conflict));
    writer.u32("tokens", numbers(&|item| Some(item.tokens)));
    writer.u32("utility_count", numbers(&|item| Some(item.utility_count)));
    writer.u64("step", items.iter().map(|item| item.step.unwrap_or(0)).collect());
    writer.u64("commit", items.iter().map(|item| item.commit).collect());
    writer.u64("lsn", items.iter().map(|item| item.lsn).collect());
    writer.i64("time", items.iter().map(|item| item.time.unwrap_or(0)).collect());
    writer.f32("utility", items.iter().map(|item| item.utility).collect());
    writer
}
