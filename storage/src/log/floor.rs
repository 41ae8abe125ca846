//! The beginning of a truncated log: the file `log/floor`.
//!
//! Without this file a log begins at position 0. With it, the log begins at a *floor*: a commit after which everything
//! is retained as it was written, in segments that are retained whole. Earlier segments were removed. Earlier records
//! that remain in force were appended again as ordinary records between two later commits; the engine selects and
//! interprets them.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic, the bytes `HOLOFLOR` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | zero |
//! | 16 | 16 | database id |
//! | 32 | 8 | number of the first segment that is kept |
//! | 40 | 8 | its first position |
//! | 48 | 8 | number of a record, a multiple of 256, from which on all hashes are in the log |
//! | 56 | 8 | position at which reading them begins |
//! | 64 | 48 | head of the first commit that is kept: position, number, hash |
//! | 112 | 48 | head before the records that were appended again |
//! | 160 | 48 | head after them |
//! | 208 | 4 | CRC32 of the fields above |
//!
//! 1. The file is written and synced under another name, renamed into place, and the rename synced, before a segment is
//!    removed. So a crash leaves the old log, or the new one with surplus segments, which the next opening removes.
//! 2. Everything up to the last of its heads is durable when it is written.
//! 3. Truncation changes no position, number or hash: the first segment's header states the chain, the number of
//!    records and the last commit before it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::prepare::{remove_if_there, unfinished_path};
use super::segment::{HEADER_LEN, Segment, file_name};
use super::{CommitNo, Head, Log, Lsn, copy};
use crate::error::{Error, Result};
use crate::log_page::field;
use crate::segment_file::temporary_name;
use crate::vfs::{OpenMode, Vfs};

/// The name of the file in the log's directory.
pub(crate) const NAME: &str = "floor";

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = MAGIC_AT + 8;
const RESERVED_AT: usize = VERSION_AT + 4;
const DATABASE_AT: usize = RESERVED_AT + 4;
const SEGMENT_AT: usize = DATABASE_AT + 16;
const FIRST_AT: usize = SEGMENT_AT + 8;
const RECORDS_AT: usize = FIRST_AT + 8;
const LEAVES_AT: usize = RECORDS_AT + 8;
const HEAD_AT: usize = LEAVES_AT + 8;
const FROM_AT: usize = HEAD_AT + HEAD_LEN;
const UNTIL_AT: usize = FROM_AT + HEAD_LEN;
const CRC_AT: usize = UNTIL_AT + HEAD_LEN;
pub(super) const FLOOR_LEN: usize = CRC_AT + 4;
const HEAD_LEN: usize = 48;

const _: () = assert!(FLOOR_LEN == 212);

const MAGIC: [u8; 8] = *b"HOLOFLOR";
const VERSION: u32 = 1;

/// The beginning of a truncated log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The first retained segment.
    pub segment: u64,
    /// Its first position: the log has nothing before it.
    pub first: Lsn,
    /// The number of a record, a multiple of 256. The log has all records from it on.
    pub records: u64,
    /// The position at which reading their hashes begins.
    pub leaves: Lsn,
    /// The first retained commit: reading the log from its beginning gives the transactions after it.
    pub head: Head,
    /// The commit before the records that were appended again.
    pub from: Head,
    /// The last commit of the records that were appended again.
    pub until: Head,
}

/// The segments that a truncation removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retired {
    /// The number of segment files.
    pub segments: u64,
    /// Their length in bytes.
    pub bytes: u64,
}

impl Floor {
    pub(super) fn encode(&self, database: &[u8; 16]) -> [u8; FLOOR_LEN] {
        let mut bytes = [0; FLOOR_LEN];
        let mut put = |at: usize, field: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        };
        put(MAGIC_AT, &MAGIC);
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(DATABASE_AT, database);
        let numbers = [
            (SEGMENT_AT, self.segment),
            (FIRST_AT, self.first.0),
            (RECORDS_AT, self.records),
            (LEAVES_AT, self.leaves.0),
        ];
        for (at, number) in numbers {
            put(at, &number.to_le_bytes());
        }
        for (at, head) in [(HEAD_AT, self.head), (FROM_AT, self.from), (UNTIL_AT, self.until)] {
            put(at, &head.position.0.to_le_bytes());
            put(at + 8, &head.commit.0.to_le_bytes());
            put(at + 16, &head.hash);
        }
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; FLOOR_LEN]) -> Result<(Self, [u8; 16]), String> {
        if bytes[..VERSION_AT] != MAGIC {
            return Err(format!("it begins with {:02x?}", &bytes[..VERSION_AT]));
        }
        let (stored, computed) = (u32::from_le_bytes(field(bytes, CRC_AT)), crc32fast::hash(&bytes[..CRC_AT]));
        if stored != computed {
            return Err(format!("its checksum is {computed:08x}, stored is {stored:08x}"));
        }
        let number = |at| u64::from_le_bytes(field(bytes, at));
        let head =
            |at| Head { position: Lsn(number(at)), commit: CommitNo(number(at + 8)), hash: field(bytes, at + 16) };
        let floor = Self {
            segment: number(SEGMENT_AT),
            first: Lsn(number(FIRST_AT)),
            records: number(RECORDS_AT),
            leaves: Lsn(number(LEAVES_AT)),
            head: head(HEAD_AT),
            from: head(FROM_AT),
            until: head(UNTIL_AT),
        };
        let in_order = [floor.first, floor.leaves, floor.head.position, floor.from.position, floor.until.position];
        let whole = bytes[RESERVED_AT..DATABASE_AT] == [0; 4]
            && floor.segment > 0
            && floor.records.is_multiple_of(256)
            && (in_order[0] <= in_order[1] || floor.records == 0)
            && in_order[2..].is_sorted()
            && floor.first < floor.head.position;
        if whole { Ok((floor, field(bytes, DATABASE_AT))) } else { Err("its fields contradict each other".into()) }
    }

    /// The floor of the log in `dir`, if it has one, and its database id.
    pub(crate) fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<(Self, [u8; 16])>> {
        let path = dir.join(NAME);
        let file = match vfs.open(&path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(Error::io(&path, "open"))?,
        };
        let damaged = |what: String| Error::DamagedFloor { path: path.clone(), what };
        let len = file.len().map_err(Error::io(&path, "measure"))?;
        if len != FLOOR_LEN as u64 {
            return Err(damaged(format!("it has {len} bytes, not {FLOOR_LEN}")));
        }
        let mut bytes = [0; FLOOR_LEN];
        file.read_at(&mut bytes, 0).map_err(Error::io(&path, "read"))?;
        let version = u32::from_le_bytes(field(&bytes, VERSION_AT));
        if bytes[..VERSION_AT] == MAGIC && version > VERSION && version < 1 << 16 {
            let what = format!("floor format {version}, while {VERSION} is the newest known; upgrade to open it");
            return Err(Error::NewerFormat { path, what });
        }
        Self::parse(&bytes).map(Some).map_err(damaged)
    }

    /// Replaces the file durably.
    pub(crate) fn write(&self, vfs: &dyn Vfs, dir: &Path, database: &[u8; 16]) -> Result<()> {
        let path = dir.join(NAME);
        let unfinished = unfinished(dir);
        let made = remove_if_there(vfs, &unfinished)
            .and_then(|()| vfs.open(&unfinished, OpenMode::CreateNew))
            .and_then(|file| file.write_at(&self.encode(database), 0).and_then(|()| file.sync()))
            .and_then(|()| vfs.rename(&unfinished, &path))
            .and_then(|()| vfs.sync_dir(dir));
        made.map_err(Error::io(&path, "write"))
    }
}

/// The name of the file until it is complete.
pub(crate) fn unfinished(dir: &Path) -> PathBuf {
    temporary_name(&dir.join(NAME))
}

impl Log {
    /// The beginning of the log, if it was truncated.
    #[must_use]
    pub fn floor(&self) -> Option<Floor> {
        *self.floor_guard()
    }

    /// The beginning of the log in `dir`, if it was truncated.
    ///
    /// # Errors
    /// [`Error::DamagedFloor`], [`Error::NewerFormat`], [`Error::Io`].
    pub fn floor_in(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Floor>> {
        Ok(Floor::read(vfs, dir)?.map(|(floor, _)| floor))
    }

    /// The first segment needed to read from a position on.
    fn segment_of(&self, position: Lsn) -> Result<Arc<Segment>> {
        let none = || Error::NoRecord { lsn: position, why: "no segment holds it".into() };
        // The end of a commit may be the end of a segment.
        self.table.of(position.0.saturating_sub(1)).ok_or_else(none)
    }

    /// The first segment that a floor at these positions retains, and the segments before it.
    fn behind(&self, leaves: Lsn, head: Head) -> Result<(Arc<Segment>, Vec<Arc<Segment>>)> {
        let first = self.segment_of(Lsn(leaves.0.max(1)).min(head.position))?;
        let mut older = self.table.all();
        older.retain(|segment| segment.number < first.number);
        Ok((first, older))
    }

    /// True if a floor at these positions would remove a segment.
    ///
    /// # Errors
    /// [`Error::NoRecord`] for positions that no segment holds.
    pub fn may_retire(&self, leaves: Lsn, head: Head) -> Result<bool> {
        Ok(!self.behind(leaves, head)?.1.is_empty())
    }

    /// Copies the segments that a floor at these positions would remove into a directory; existing copies are kept.
    /// Returns the bytes copied.
    ///
    /// # Errors
    /// [`Error::LogExists`] when the directory holds segments of another log, [`Error::Io`].
    pub fn archive(&self, vfs: &dyn Vfs, dir: &Path, leaves: Lsn, head: Head) -> Result<u64> {
        vfs.create_dir(dir).map_err(Error::io(dir, "create"))?;
        let mut bytes = 0;
        for segment in self.behind(leaves, head)?.1 {
            let path = dir.join(file_name(segment.number));
            if is_copy(vfs, &path, &segment)? {
                continue;
            }
            remove_if_there(vfs, &unfinished_path(&path)).map_err(Error::io(&path, "remove"))?;
            // The whole segment is before the head.
            copy::copy_segment(vfs, dir, &segment, head, &mut |len| bytes += len)?;
            vfs.rename(&unfinished_path(&path), &path).map_err(Error::io(&path, "rename"))?;
            vfs.sync_dir(dir).map_err(Error::io(dir, "sync"))?;
        }
        Ok(bytes)
    }

    /// Truncates the beginning of the log, which then begins at `head`. Hashes are read from `leaves` on, the position
    /// of record number `records`; the records that were appended again are between `from` and `until`.
    ///
    /// # Errors
    /// [`Error::NoRecord`] for positions that no segment holds; [`Error::Io`]: then either nothing was truncated, or
    /// all was, and the next opening for writing removes the remaining files.
    pub fn retire(&self, (records, leaves): (u64, Lsn), head: Head, from: Head, until: Head) -> Result<Retired> {
        self.sync_to(until.position)?;
        let (first, older) = self.behind(leaves, head)?;
        let floor = Floor { segment: first.number, first: Lsn(first.first), records, leaves, head, from, until };
        let vfs = self.vfs()?;
        floor.write(&*vfs, &self.dir, &self.geometry.database)?;
        *self.floor_guard() = Some(floor);
        self.table.retire(first.number);
        let mut retired = Retired::default();
        for segment in older {
            vfs.remove(&segment.path).map_err(Error::io(&segment.path, "remove"))?;
            retired = Retired { segments: retired.segments + 1, bytes: retired.bytes + segment.file_len };
        }
        vfs.sync_dir(&self.dir).map_err(Error::io(&self.dir, "sync"))?;
        Ok(retired)
    }
}

/// True if the file is a copy of the segment, false if it is missing. Any other file is an error.
fn is_copy(vfs: &dyn Vfs, path: &Path, segment: &Segment) -> Result<bool> {
    let file = match vfs.open(path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(Error::io(path, "open"))?,
    };
    let len = file.len().map_err(Error::io(path, "measure"))?;
    let (mut there, mut own) = ([0; HEADER_LEN], [0; HEADER_LEN]);
    segment.read(&mut own, 0)?;
    if len == segment.file_len {
        file.read_at(&mut there, 0).map_err(Error::io(path, "read"))?;
    }
    if there == own { Ok(true) } else { Err(Error::LogExists { path: path.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_doc;
    use crate::vfs::{Failure, SimVfs};

    fn head(position: u64, commit: u64, byte: u8) -> Head {
        Head { position: Lsn(position), commit: CommitNo(commit), hash: [byte; 32] }
    }

    fn floor() -> Floor {
        Floor {
            segment: 3,
            first: Lsn(0x3000),
            records: 0x200,
            leaves: Lsn(0x4008),
            head: head(0x5000, 7, 1),
            from: head(0x6000, 9, 2),
            until: head(0x7000, 11, 3),
        }
    }

    #[test]
    fn the_document_says_the_same() {
        let offsets = [
            MAGIC_AT,
            VERSION_AT,
            RESERVED_AT,
            DATABASE_AT,
            SEGMENT_AT,
            FIRST_AT,
            RECORDS_AT,
            LEAVES_AT,
            HEAD_AT,
            FROM_AT,
            UNTIL_AT,
            CRC_AT,
            FLOOR_LEN,
        ];
        assert_eq!(format_doc::between(&offsets), format_doc::fields("Floor"));
    }

    #[test]
    fn the_bytes_are_fixed() {
        let of_head = |position: u64, commit: u64, byte: u8| {
            [position.to_le_bytes().as_slice(), &commit.to_le_bytes(), &[byte; 32]].concat()
        };
        let fields = [
            b"HOLOFLOR".as_slice(),
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[7; 16],
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0x30, 0, 0, 0, 0, 0, 0],
            &[0, 2, 0, 0, 0, 0, 0, 0],
            &[8, 0x40, 0, 0, 0, 0, 0, 0],
            &of_head(0x5000, 7, 1),
            &of_head(0x6000, 9, 2),
            &of_head(0x7000, 11, 3),
        ]
        .concat();
        let expected = [fields.as_slice(), &crc32fast::hash(&fields).to_le_bytes()].concat();
        assert_eq!(floor().encode(&[7; 16]).as_slice(), expected);
    }

    #[test]
    fn what_was_written_is_read_and_every_flip_is_noticed() {
        let sim = SimVfs::new();
        let dir = Path::new("/log");
        sim.create_dir(dir).unwrap();
        assert_eq!(Floor::read(&sim, dir).unwrap(), None);
        floor().write(&sim, dir, &[7; 16]).unwrap();
        floor().write(&sim, dir, &[7; 16]).unwrap();
        assert_eq!(Floor::read(&sim, dir).unwrap(), Some((floor(), [7; 16])));
        for bit in 0..FLOOR_LEN as u64 * 8 {
            sim.flip(&dir.join(NAME), bit / 8, 1 << (bit % 8)).unwrap();
            assert!(Floor::read(&sim, dir).is_err(), "bit {bit}");
            sim.flip(&dir.join(NAME), bit / 8, 1 << (bit % 8)).unwrap();
        }
    }

    #[test]
    fn fields_that_contradict_each_other_are_refused() {
        let good = floor();
        let parse = |floor: Floor| Floor::parse(&floor.encode(&[7; 16]));
        let at = |position| Head { position: Lsn(position), ..good.head };
        let also_good = [
            Floor { leaves: good.first, ..good },
            Floor { records: 0, leaves: Lsn(0), ..good },
            Floor { from: good.head, until: good.head, ..good },
        ];
        for floor in also_good {
            assert_eq!(parse(floor), Ok((floor, [7; 16])));
        }
        let wrong = [
            Floor { segment: 0, ..good },
            Floor { records: good.records - 1, ..good },
            Floor { leaves: Lsn(good.first.0 - 8), ..good },
            Floor { from: at(good.head.position.0 - 8), ..good },
            Floor { until: at(good.from.position.0 - 8), ..good },
            Floor { first: good.head.position, leaves: good.head.position, ..good },
        ];
        for floor in wrong {
            assert_eq!(parse(floor), Err("its fields contradict each other".into()), "{floor:?}");
        }
    }

    #[test]
    fn a_newer_floor_is_told_from_a_damaged_one() {
        let sim = SimVfs::new();
        let dir = Path::new("/log");
        sim.create_dir(dir).unwrap();
        floor().write(&sim, dir, &[7; 16]).unwrap();
        let written = sim.bytes(&dir.join(NAME)).unwrap();
        for (version, magic, newer) in
            [(2_u32, b'H', true), (0xffff, b'H', true), (0x1_0000, b'H', false), (2, b'h', false)]
        {
            let mut bytes = written.clone();
            bytes[0] = magic;
            bytes[VERSION_AT..RESERVED_AT].copy_from_slice(&version.to_le_bytes());
            sim.replace(&dir.join(NAME), &bytes);
            match Floor::read(&sim, dir) {
                Err(Error::NewerFormat { .. }) => assert!(newer, "{version}"),
                Err(Error::DamagedFloor { .. }) => assert!(!newer, "{version}"),
                other => panic!("{version}: {other:?}"),
            }
        }
        sim.replace(&dir.join(NAME), &written);
        sim.fail_at(sim.calls(), Failure::Io, false);
        let unread = Floor::read(&sim, dir);
        assert!(matches!(unread, Err(Error::Io { .. })), "one that cannot be opened is not missing: {unread:?}");
    }
}
