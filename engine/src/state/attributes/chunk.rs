//! An attribute chunk on disk: 24 arrays with one value per item.
//!
//! Opening a chunk looks the columns up by name once. Reading an item is one array access per attribute. The greatest
//! value of a type means absent; for step and time bits of `flags` tell.

use super::base_sets::Facts;
use super::select::SetCache;
use super::{Cited, Column};
use crate::model::item::{Attributes, Kind, Layer, Origin, Source, Status, Support};
use crate::model::plural::counted;
use crate::records::record::bad_byte;
use crate::state::attributes::scalars::{Reads, Scalars};
use crate::{Error, Result};
use holotype_storage::columns::{self, Columns, ColumnsWriter};
use holotype_storage::segment_file::SegmentFile;

/// Number of consecutive ids in a chunk.
pub(crate) const CHUNK_ITEMS: u32 = 65_536;

/// An absent byte in a column.
pub(super) const NO_U8: u8 = u8::MAX;
/// An absent number in a column.
pub(super) const NO_U32: u32 = u32::MAX;

/// The bits of the column `flags`.
pub(super) mod flag {
    pub(in crate::state::attributes) const ACTIVE: u8 = 1;
    pub(in crate::state::attributes) const REDACTED: u8 = 2;
    pub(in crate::state::attributes) const UNGROUNDED: u8 = 4;
    pub(in crate::state::attributes) const VECTOR: u8 = 8;
    pub(in crate::state::attributes) const STEP: u8 = 16;
    pub(in crate::state::attributes) const TIME: u8 = 32;
    pub(in crate::state::attributes) const PENDING: u8 = 64;
}

/// A chunk of attribute columns.
pub(crate) struct Chunk {
    first: u32,
    pub(super) columns: Columns,
    pub(super) layout: Layout,
    pub(super) sets: SetCache,
}

/// The handle of each column.
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
    pub(super) tokens: columns::Column<u32>,
    pub(super) utility_count: columns::Column<u32>,
    pub(super) credit_count: columns::Column<u32>,
    pub(super) step: columns::Column<u64>,
    pub(super) commit: columns::Column<u64>,
    pub(super) lsn: columns::Column<u64>,
    pub(super) time: columns::Column<i64>,
    pub(super) utility: columns::Column<f32>,
    pub(super) credit: columns::Column<f32>,
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
            tokens: columns.column("tokens")?,
            utility_count: columns.column("utility_count")?,
            credit_count: columns.column("credit_count")?,
            step: columns.column("step")?,
            commit: columns.column("commit")?,
            lsn: columns.column("lsn")?,
            time: columns.column("time")?,
            utility: columns.column("utility")?,
            credit: columns.column("credit")?,
        })
    }
}

impl Chunk {
    /// Opens chunk `number` and looks its columns up by name.
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
            Some(value) => Ok(value),
            None => Err(Error::Corrupt {
                what: format!(
                    "a chunk of columns ends {} after {} where item {id} is needed",
                    counted(values.count() as u64, "items"),
                    self.first
                ),
            }),
        }
    }

    /// The value of a column that may be absent.
    #[inline]
    fn optional(&self, column: columns::Column<u32>, id: u32) -> Result<Option<u32>> {
        Ok(Some(self.value(column, id)?).filter(|value| *value != NO_U32))
    }

    /// The chunk's number.
    pub(crate) fn number(&self) -> u32 {
        self.first / CHUNK_ITEMS
    }

    /// The chunk's file.
    pub(super) fn file(&self) -> &SegmentFile {
        self.columns.file()
    }

    /// The episode and the log of an item.
    pub(super) fn log(&self, id: u32) -> Result<(Option<u32>, Option<u32>)> {
        Ok((self.optional(self.layout.episode, id)?, self.optional(self.layout.log_id, id)?))
    }

    /// The speaker of an item.
    pub(super) fn speaker(&self, id: u32) -> Result<Option<u32>> {
        self.optional(self.layout.speaker, id)
    }

    /// The log position of an item's record, and whether the record was erased.
    pub(super) fn location_of(&self, id: u32) -> Result<(u64, bool)> {
        Ok((self.value(self.layout.lsn, id)?, self.value(self.layout.flags, id)? & flag::REDACTED != 0))
    }

    /// The step and the time of an item.
    pub(super) fn moment(&self, id: u32) -> Result<(Option<u64>, Option<i64>)> {
        let flags = self.value(self.layout.flags, id)?;
        let step = if flags & flag::STEP != 0 { Some(self.value(self.layout.step, id)?) } else { None };
        let time = if flags & flag::TIME != 0 { Some(self.value(self.layout.time, id)?) } else { None };
        Ok((step, time))
    }

    /// The attributes that a citation of the item shows.
    pub(super) fn cited(&self, id: u32) -> Result<Cited> {
        let flags = self.value(self.layout.flags, id)?;
        Ok(Cited {
            redacted: flags & flag::REDACTED != 0,
            layer: self.kind(id)?.layer(),
            episode: self.optional(self.layout.episode, id)?,
            step: if flags & flag::STEP != 0 { Some(self.value(self.layout.step, id)?) } else { None },
        })
    }

    /// One attribute of an item as a number; `None` if absent.
    pub(super) fn number_of(&self, id: u32, column: Column) -> Result<Option<f64>> {
        let layout = &self.layout;
        let byte = |column| Ok(Some(self.value(column, id)?).filter(|byte| *byte != NO_U8).map(f64::from));
        let flagged = |bit| Ok(Some(f64::from(u8::from(self.value(layout.flags, id)? & bit != 0))));
        let symbol = |column| Ok(self.optional(column, id)?.map(f64::from));
        let count = |column| Ok(Some(f64::from(self.value::<u32>(column, id)?)));
        let real = |column| Ok(Some(f64::from(self.value::<f32>(column, id)?)));
        match column {
            Column::Kind => byte(layout.kind),
            Column::Status => byte(layout.status),
            Column::Source => byte(layout.source),
            Column::Support => byte(layout.support),
            Column::ReturnScore => byte(layout.return_score),
            Column::Active => flagged(flag::ACTIVE),
            Column::Redacted => flagged(flag::REDACTED),
            Column::Ungrounded => flagged(flag::UNGROUNDED),
            Column::Pending => flagged(flag::PENDING),
            Column::Episode => symbol(layout.episode),
            Column::Version => symbol(layout.version),
            Column::Speaker => symbol(layout.speaker),
            Column::Tool => symbol(layout.tool),
            Column::Tokens => count(layout.tokens),
            Column::Reports => count(layout.utility_count),
            Column::Rollouts => count(layout.credit_count),
            Column::Utility => real(layout.utility),
            Column::Credit => real(layout.credit),
            Column::Commit => Ok(Some(self.value(layout.commit, id)? as f64)),
            Column::Step => Ok(self.moment(id)?.0.map(|step| step as f64)),
            Column::Time => Ok(self.moment(id)?.1.map(|time| time as f64)),
        }
    }

    /// The facts that decide in which base sets an item is.
    pub(super) fn facts(&self, id: u32) -> Result<Facts> {
        let flags = self.value(self.layout.flags, id)?;
        Ok(Facts {
            kind: self.kind(id)?,
            has_failed: self.value(self.layout.status, id)? == Status::Failed.to_byte(),
            is_visible: flags & flag::ACTIVE != 0 && flags & flag::REDACTED == 0,
            is_unsupported: self.value(self.layout.support, id)? == Support::Unsupported.to_byte(),
            is_ungrounded: flags & flag::UNGROUNDED != 0,
        })
    }

    /// The kind of an item.
    pub(super) fn kind(&self, id: u32) -> Result<Kind> {
        let byte = self.value(self.layout.kind, id)?;
        Kind::from_byte(byte).ok_or_else(|| bad_byte("kind", byte))
    }

    /// The attributes that S reads.
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
            utility: if reads.utility { self.value(layout.utility, id)? + self.value(layout.credit, id)? } else { 0.0 },
            return_score: match reads.return_score {
                true => Some(self.value(layout.return_score, id)?).filter(|score| *score != NO_U8).unwrap_or(0),
                false => 0,
            },
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
            pending: flags & flag::PENDING != 0,
            inherited: byte(layout.inherited)?,
            origin: Origin::from_byte(origin).ok_or_else(|| bad_byte("origin", origin))?,
            support: Support::from_byte(support).ok_or_else(|| bad_byte("support", support))?,
            trust_sources: byte(layout.trust_sources)?,
            trust_statuses: byte(layout.trust_status)?,
            utility: self.value(layout.utility, id)?,
            utility_count: number(layout.utility_count)?,
            credit: self.value(layout.credit, id)?,
            credit_count: number(layout.credit_count)?,
            return_score: Some(byte(layout.return_score)?).filter(|score| *score != NO_U8),
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

/// The next version of a chunk: the previous columns with changed and appended items.
pub(super) struct Rewrite<'c> {
    first: u32,
    count: usize,
    before: Option<&'c Chunk>,
    /// Changed items by their position in the chunk.
    changed: Vec<(usize, Attributes)>,
}

impl<'c> Rewrite<'c> {
    /// A rewrite of `count` items from `first` on. `changed` is sorted by position.
    pub(super) fn new(
        first: u32,
        count: usize,
        before: Option<&'c Chunk>,
        changed: Vec<(usize, Attributes)>,
    ) -> Result<Rewrite<'c>> {
        let known = before.map_or(0, |chunk| chunk.columns.count() as usize);
        let mut new = changed.iter().map(|(place, _)| *place).filter(|place| *place >= known);
        match (known..count).find(|place| new.next() != Some(*place)) {
            Some(missing) => {
                Err(Error::Corrupt { what: format!("item #{} has no attributes", first as usize + missing) })
            }
            None => Ok(Rewrite { first, count, before, changed }),
        }
    }

    /// A whole column. Absent values are the type's zero.
    fn column<T: columns::Scalar>(
        &self,
        place: impl Fn(&Layout) -> columns::Column<T>,
        of: impl Fn(&Attributes) -> T,
    ) -> Result<Vec<T>> {
        let mut values = match self.before {
            Some(chunk) => chunk.columns.values(place(&chunk.layout))?.to_vec(),
            None => Vec::new(),
        };
        values.resize(self.count, T::zeroed());
        for (place, item) in &self.changed {
            values[*place] = of(item);
        }
        Ok(values)
    }

    /// All columns.
    pub(super) fn columns(&self) -> Result<ColumnsWriter> {
        let number = |number: Option<u32>| number.unwrap_or(NO_U32);
        let mut writer = ColumnsWriter::new(self.first, self.count as u32);
        writer.u8("kind", self.column(|at| at.kind, |item| item.kind.to_byte())?);
        writer.u8("status", self.column(|at| at.status, |item| item.status.map_or(NO_U8, Status::to_byte))?);
        writer.u8("source", self.column(|at| at.source, |item| item.source.map_or(NO_U8, Source::to_byte))?);
        writer.u8("flags", self.column(|at| at.flags, flags)?);
        writer.u8("inherited", self.column(|at| at.inherited, |item| item.inherited)?);
        writer.u8("origin", self.column(|at| at.origin, |item| item.origin.to_byte())?);
        writer.u8("support", self.column(|at| at.support, |item| item.support.to_byte())?);
        writer.u8("trust_sources", self.column(|at| at.trust_sources, |item| item.trust_sources)?);
        writer.u8("trust_status", self.column(|at| at.trust_status, |item| item.trust_statuses)?);
        writer.u8("return_score", self.column(|at| at.return_score, |item| item.return_score.unwrap_or(NO_U8))?);
        writer.u32("episode", self.column(|at| at.episode, |item| number(item.episode))?);
        writer.u32("version", self.column(|at| at.version, |item| number(item.version))?);
        writer.u32("speaker", self.column(|at| at.speaker, |item| number(item.speaker))?);
        writer.u32("tool", self.column(|at| at.tool, |item| number(item.tool))?);
        writer.u32("log_id", self.column(|at| at.log_id, |item| number(item.log_id))?);
        writer.u32("page", self.column(|at| at.page, |item| number(item.page))?);
        writer.u32("tokens", self.column(|at| at.tokens, |item| item.tokens)?);
        writer.u32("utility_count", self.column(|at| at.utility_count, |item| item.utility_count)?);
        writer.u32("credit_count", self.column(|at| at.credit_count, |item| item.credit_count)?);
        writer.u64("step", self.column(|at| at.step, |item| item.step.unwrap_or(0))?);
        writer.u64("commit", self.column(|at| at.commit, |item| item.commit)?);
        writer.u64("lsn", self.column(|at| at.lsn, |item| item.lsn)?);
        writer.i64("time", self.column(|at| at.time, |item| item.time.unwrap_or(0))?);
        writer.f32("utility", self.column(|at| at.utility, |item| item.utility)?);
        writer.f32("credit", self.column(|at| at.credit, |item| item.credit)?);
        Ok(writer)
    }
}

fn flags(item: &Attributes) -> u8 {
    let bits = [
        (item.active, flag::ACTIVE),
        (item.redacted, flag::REDACTED),
        (item.ungrounded, flag::UNGROUNDED),
        (item.has_vector, flag::VECTOR),
        (item.pending, flag::PENDING),
        (item.step.is_some(), flag::STEP),
        (item.time.is_some(), flag::TIME),
    ];
    bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype_storage::segment_file::FileIdentity;
    use holotype_storage::vfs::SimVfs;
    use std::path::Path;

    fn item(number: u32) -> Attributes {
        let mut item = Attributes::new(Kind::Observation);
        let by = |divisor: u32| number.is_multiple_of(divisor);
        item.episode = (!by(3)).then_some(number % 3);
        item.step = (!by(4)).then_some(u64::from(number));
        item.time = (!by(5)).then_some(-i64::from(number));
        item.status = (!by(2)).then_some(Status::Failed);
        item.active = !by(7);
        item.utility = number as f32 / 3.0;
        item.tokens = number;
        item.lsn = u64::from(number) << 33;
        item
    }

    fn written(vfs: &SimVfs, generation: u64, rewrite: &Rewrite<'_>) -> Chunk {
        let path = format!("/{generation}.cseg");
        let identity = FileIdentity { database: [7; 16], generation, place: 1 };
        rewrite.columns().unwrap().write(vfs, Path::new(&path), identity).unwrap();
        Chunk::new(1, Columns::open(vfs, Path::new(&path), &identity).unwrap()).unwrap()
    }

    #[test]
    fn what_changed_and_what_is_new_stands_among_what_was() {
        let vfs = SimVfs::new();
        let mut items: Vec<Attributes> = (0..10).map(item).collect();
        let all = items.iter().cloned().enumerate().collect();
        let chunk = written(&vfs, 1, &Rewrite::new(CHUNK_ITEMS, 10, None, all).unwrap());
        items[3] = item(103);
        items[9] = item(209);
        items.extend((10..13).map(item));
        let changed: Vec<(usize, Attributes)> = [3, 9, 10, 11, 12].map(|place| (place, items[place].clone())).into();
        let chunk = written(&vfs, 2, &Rewrite::new(CHUNK_ITEMS, 13, Some(&chunk), changed.clone()).unwrap());
        for (id, item) in (CHUNK_ITEMS..).zip(&items) {
            assert_eq!(chunk.get(id).unwrap(), *item);
        }
        assert!(chunk.get(CHUNK_ITEMS + 13).is_err());
        let gap = Rewrite::new(CHUNK_ITEMS, 15, Some(&chunk), changed).err().unwrap().to_string();
        assert!(gap.contains(&format!("#{}", CHUNK_ITEMS + 13)), "{gap}");
    }
}
