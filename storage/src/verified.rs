//! The time when each segment of the log was last verified: the file `VERIFIED`.
//!
//! The file is only a note, and nothing depends on it. Each verification replaces it, the last one wins, and a file
//! that is missing or does not match its checksum means that nothing was verified. Little-endian:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `HOLOVRFD` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | count of segments, n |
//! | 16 | 16 | database id |
//! | 32 + 24 i | 8 | segment number, ascending |
//! | 40 + 24 i | 8 | position up to which it was verified |
//! | 48 + 24 i | 8 | when, microseconds since 1970 (signed) |
//! | 32 + 24 n | 4 | CRC32 of all before |

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::log::Lsn;
use crate::log_page::field;
use crate::segment_file::temporary_name;
use crate::vfs::{OpenMode, Vfs};

/// The last verification of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The position up to which the segment had no fault.
    pub until: Lsn,
    /// The time, in microseconds since 1970.
    pub time_us: i64,
}

const MAGIC: [u8; 8] = *b"HOLOVRFD";
const VERSION: u32 = 1;
const VERSION_AT: usize = 8;
const COUNT_AT: usize = VERSION_AT + 4;
const DATABASE_AT: usize = COUNT_AT + 4;
const ENTRIES_AT: usize = DATABASE_AT + 16;
const UNTIL_AT: usize = 8;
const TIME_AT: usize = UNTIL_AT + 8;
const ENTRY_LEN: usize = TIME_AT + 8;
const CRC_LEN: usize = 4;
/// The greatest length that is read: more segments than any log has.
const MAX_LEN: u64 = 16 << 20;
const _: () = assert!(ENTRIES_AT == 32 && ENTRY_LEN == 24);

/// Reads the file at `path`: the verifications of this database's segments, by segment number. Empty if the file is
/// missing, invalid, or of another database.
///
/// # Errors
/// [`Error::Io`].
pub fn read(vfs: &dyn Vfs, path: &Path, database: [u8; 16]) -> Result<BTreeMap<u64, Verified>> {
    let file = match vfs.open(path, OpenMode::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        opened => opened.map_err(Error::io(path, "open"))?,
    };
    let len = file.len().map_err(Error::io(path, "measure"))?;
    if len > MAX_LEN {
        return Ok(BTreeMap::new());
    }
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0).map_err(Error::io(path, "read"))?;
    Ok(decode(&bytes, database).unwrap_or_default())
}

/// Replaces the file in one step.
///
/// # Errors
/// [`Error::Io`].
pub fn write(vfs: &dyn Vfs, path: &Path, database: [u8; 16], segments: &BTreeMap<u64, Verified>) -> Result<()> {
    let unfinished = temporary_name(path);
    let made = crate::log::prepare::remove_if_there(vfs, &unfinished)
        .and_then(|()| vfs.open(&unfinished, OpenMode::CreateNew))
        .and_then(|file| file.write_at(&encode(database, segments), 0).and_then(|()| file.sync()))
        .and_then(|()| vfs.rename(&unfinished, path));
    made.map_err(Error::io(path, "write"))
}

fn encode(database: [u8; 16], segments: &BTreeMap<u64, Verified>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ENTRIES_AT + segments.len() * ENTRY_LEN + CRC_LEN);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(segments.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&database);
    for (number, verified) in segments {
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&verified.until.0.to_le_bytes());
        bytes.extend_from_slice(&verified.time_us.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], database: [u8; 16]) -> Option<BTreeMap<u64, Verified>> {
    let (content, crc) = bytes.split_last_chunk::<CRC_LEN>()?;
    let header = content.first_chunk::<ENTRIES_AT>()?;
    let known = header[..VERSION_AT] == MAGIC && u32::from_le_bytes(field(header, VERSION_AT)) == VERSION;
    let own = header[DATABASE_AT..] == database;
    if !known || !own || crc32fast::hash(content) != u32::from_le_bytes(*crc) {
        return None;
    }
    let (entries, rest) = content.get(ENTRIES_AT..)?.as_chunks::<ENTRY_LEN>();
    if !rest.is_empty() || entries.len() != u32::from_le_bytes(field(header, COUNT_AT)) as usize {
        return None;
    }
    let entry = |entry: &[u8; ENTRY_LEN]| {
        let until = Lsn(u64::from_le_bytes(field(entry, UNTIL_AT)));
        let time_us = i64::from_le_bytes(field(entry, TIME_AT));
        (u64::from_le_bytes(field(entry, 0)), Verified { until, time_us })
    };
    Some(entries.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{Failure, SimVfs};

    fn segments() -> BTreeMap<u64, Verified> {
        [(1, Verified { until: Lsn(0x1234), time_us: -2 }), (3, Verified { until: Lsn(9), time_us: 7 })].into()
    }

    #[test]
    fn the_bytes_are_fixed() {
        let fields = [
            b"HOLOVRFD".as_slice(),
            &[1, 0, 0, 0],
            &[2, 0, 0, 0],
            &[5; 16],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[0x34, 0x12, 0, 0, 0, 0, 0, 0],
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[9, 0, 0, 0, 0, 0, 0, 0],
            &[7, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        let expected = [fields.as_slice(), &crc32fast::hash(&fields).to_le_bytes()].concat();
        assert_eq!(encode([5; 16], &segments()), expected);
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let sim = SimVfs::new();
        let path = Path::new("/VERIFIED");
        assert_eq!(read(&sim, path, [5; 16]).unwrap(), BTreeMap::new());
        write(&sim, path, [5; 16], &segments()).unwrap();
        write(&sim, path, [5; 16], &segments()).unwrap();
        assert_eq!(read(&sim, path, [5; 16]).unwrap(), segments());
        assert_eq!(read(&sim, path, [6; 16]).unwrap(), BTreeMap::new());
        let len = encode([5; 16], &segments()).len() as u64;
        for at in 0..len {
            sim.flip(path, at, 2).unwrap();
            assert_eq!(read(&sim, path, [5; 16]).unwrap(), BTreeMap::new(), "byte {at}");
            sim.flip(path, at, 2).unwrap();
        }
    }
    #[test]
    fn bytes_that_are_no_file_of_ours_say_nothing() {
        let bytes = encode([5; 16], &segments());
        let content = &bytes[..bytes.len() - CRC_LEN];
        let sealed = |content: &[u8]| [content, &crc32fast::hash(content).to_le_bytes()].concat();
        assert_eq!(decode(&sealed(content), [5; 16]), Some(segments()));
        // Magic, version, count.
        for at in [0, VERSION_AT, COUNT_AT] {
            let mut other = content.to_vec();
            other[at] += 1;
            assert_eq!(decode(&sealed(&other), [5; 16]), None, "byte {at}");
        }
        for other in [&content[..content.len() - 1], &[content, &[0]].concat(), &[content, &[0; ENTRY_LEN]].concat()] {
            assert_eq!(decode(&sealed(other), [5; 16]), None, "{} bytes", other.len());
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_and_one_that_is_too_long_says_nothing() {
        let sim = SimVfs::new();
        let path = Path::new("/VERIFIED");
        let few = segments();
        write(&sim, path, [5; 16], &few).unwrap();
        for call in 0..3 {
            sim.fail_at(sim.calls() + call, Failure::Io, false);
            assert!(matches!(read(&sim, path, [5; 16]), Err(Error::Io { .. })), "call {call}");
        }
        let most = (MAX_LEN as usize - ENTRIES_AT - CRC_LEN) / ENTRY_LEN;
        let many = (0..most as u64).map(|number| (number, few[&1])).collect();
        write(&sim, path, [5; 16], &many).unwrap();
        assert!(read(&sim, path, [5; 16]).unwrap() == many);
        let more = (0..=most as u64).map(|number| (number, few[&1])).collect();
        write(&sim, path, [5; 16], &more).unwrap();
        assert_eq!(read(&sim, path, [5; 16]).unwrap(), BTreeMap::new());
    }
}
