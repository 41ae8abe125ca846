//! The first fault that the last verification of the log found: the file `DAMAGE`.
//!
//! The file exists while the log is known to be damaged, so that writers in any process are refused and do not build on
//! unreadable data. A verification without a fault removes it. A file that does not match its checksum is ignored.
//! Little-endian:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `HOLODMGE` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | length of the text, n |
//! | 16 | 16 | database id |
//! | 32 | n | the first fault, as text |
//! | 32 + n | 4 | CRC32 of all before |

use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::log_page::field;
use crate::segment_file::temporary_name;
use crate::vfs::{OpenMode, Vfs};

const MAGIC: [u8; 8] = *b"HOLODMGE";
const VERSION: u32 = 1;
const VERSION_AT: usize = 8;
const LEN_AT: usize = VERSION_AT + 4;
const DATABASE_AT: usize = LEN_AT + 4;
const TEXT_AT: usize = DATABASE_AT + 16;
const CRC_LEN: usize = 4;
/// The greatest length of the text; a longer one is cut.
const MAX_TEXT_LEN: usize = 4 << 10;
const _: () = assert!(TEXT_AT == 32);

/// Reads the fault of this database from the file at `path`.
///
/// # Errors
/// [`Error::Io`].
pub fn read(vfs: &dyn Vfs, path: &Path, database: [u8; 16]) -> Result<Option<String>> {
    let file = match vfs.open(path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Error::io(path, "open"))?,
    };
    let len = file.len().map_err(Error::io(path, "measure"))?;
    if len > (TEXT_AT + MAX_TEXT_LEN + CRC_LEN) as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0).map_err(Error::io(path, "read"))?;
    Ok(decode(&bytes, database))
}

/// Replaces the file in one step.
///
/// # Errors
/// [`Error::Io`].
pub fn write(vfs: &dyn Vfs, path: &Path, database: [u8; 16], fault: &str) -> Result<()> {
    let unfinished = temporary_name(path);
    let made = crate::log::prepare::remove_if_there(vfs, &unfinished)
        .and_then(|()| vfs.open(&unfinished, OpenMode::CreateNew))
        .and_then(|file| file.write_at(&encode(database, fault), 0).and_then(|()| file.sync()))
        .and_then(|()| vfs.rename(&unfinished, path));
    made.map_err(Error::io(path, "write"))
}

/// Removes the file if it exists.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    crate::log::prepare::remove_if_there(vfs, path).map_err(Error::io(path, "remove"))
}

fn encode(database: [u8; 16], fault: &str) -> Vec<u8> {
    let text = &fault.as_bytes()[..fault.floor_char_boundary(MAX_TEXT_LEN)];
    let mut bytes = Vec::with_capacity(TEXT_AT + text.len() + CRC_LEN);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&database);
    bytes.extend_from_slice(text);
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], database: [u8; 16]) -> Option<String> {
    let (content, crc) = bytes.split_last_chunk::<CRC_LEN>()?;
    let header = content.first_chunk::<TEXT_AT>()?;
    let known = header[..VERSION_AT] == MAGIC && u32::from_le_bytes(field(header, VERSION_AT)) == VERSION;
    let own = header[DATABASE_AT..] == database;
    let text = content.get(TEXT_AT..)?;
    let whole = u32::from_le_bytes(field(header, LEN_AT)) as usize == text.len();
    if !known || !own || !whole || crc32fast::hash(content) != u32::from_le_bytes(*crc) {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::SimVfs;

    #[test]
    fn the_bytes_are_fixed() {
        let fields = [b"HOLODMGE".as_slice(), &[1, 0, 0, 0], &[3, 0, 0, 0], &[7; 16], b"bad"];
        let mut expected = fields.concat();
        expected.extend_from_slice(&crc32fast::hash(&expected).to_le_bytes());
        assert_eq!(encode([7; 16], "bad"), expected);
    }

    #[test]
    fn a_note_is_read_back_and_no_changed_one_is() {
        let (sim, path) = (SimVfs::new(), Path::new("/DAMAGE"));
        assert_eq!(read(&sim, path, [7; 16]).unwrap(), None);
        write(&sim, path, [7; 16], "log page 3: zeros").unwrap();
        write(&sim, path, [7; 16], "log page 4: zeros").unwrap();
        assert_eq!(read(&sim, path, [7; 16]).unwrap().as_deref(), Some("log page 4: zeros"));
        assert_eq!(read(&sim, path, [8; 16]).unwrap(), None, "of another database");
        let bytes = sim.bytes(path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(decode(&changed, [7; 16]), None, "byte {at}");
            assert_eq!(decode(&bytes[..at], [7; 16]), None, "cut at {at}");
        }
        remove(&sim, path).unwrap();
        remove(&sim, path).unwrap();
        assert_eq!(read(&sim, path, [7; 16]).unwrap(), None);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "é".repeat(MAX_TEXT_LEN);
        let text = decode(&encode([7; 16], &format!("x{long}")), [7; 16]).unwrap();
        assert_eq!(text.len(), MAX_TEXT_LEN - 1);
    }
}
