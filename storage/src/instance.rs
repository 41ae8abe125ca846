//! Tells copies of a database apart.
//!
//! A directory that was copied, or restored from a copy, has the database id of the original. But its LOCK file is
//! another file: it has another number in its file system, and was created at another time. Both stand in LOCK as its
//! first writer found them, with a random number of the directory (the layout is that of [`crate::lock`]). A writer
//! that finds others than those stated has a copy before it; it says so once, and gives the copy a number of its own.
//!
//! A directory that is renamed keeps its LOCK, and so is no copy. One that is moved to another file system is one.

use std::io;

use crate::lock::read_block;
use crate::vfs::VfsFile;

/// One of the directories with the same database id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The random number of the directory.
    pub number: [u8; 16],
    /// True if this opening found that the directory is a copy that no writer has opened before.
    pub is_new_copy: bool,
}

/// The identity of a LOCK file, and the number of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    inode: Inode,
    number: [u8; 16],
}

/// The identity of a file in its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub number: u64,
    /// When it was created, in microseconds since 1970; 0 if unknown.
    pub created_us: i64,
}

/// The place of the third block.
const PLACE: u64 = 128;
const PLACE_CREATED: usize = 8;
const PLACE_NUMBER: usize = PLACE_CREATED + 8;
const PLACE_REST: usize = PLACE_NUMBER + 16;
const PLACE_CRC: usize = PLACE_REST + 28;
const PLACE_LEN: usize = PLACE_CRC + 4;
const _: () = assert!(PLACE_LEN == 64);

impl Instance {
    /// Compares a LOCK file with what it states of itself; a writer states it anew where it differs.
    pub(crate) fn of(file: &dyn VfsFile, writes: bool) -> io::Result<Option<Self>> {
        let Some(inode) = file.inode()? else { return Ok(None) };
        let stated = read_block(file, PLACE, decode)?;
        let number = match stated {
            Some(place) if place.inode == inode => {
                return Ok(Some(Self { number: place.number, is_new_copy: false }));
            }
            Some(place) if !writes => return Ok(Some(Self { number: place.number, is_new_copy: true })),
            None if !writes => return Ok(None),
            _ => random_number()?,
        };
        file.write_at(&encode(&Place { inode, number }), PLACE)?;
        Ok(Some(Self { number, is_new_copy: stated.is_some() }))
    }
}

/// The number of the directory that a LOCK file states, whichever file it was written for.
pub(crate) fn stated(file: &dyn VfsFile) -> io::Result<Option<[u8; 16]>> {
    Ok(read_block(file, PLACE, decode)?.map(|place| place.number))
}

fn random_number() -> io::Result<[u8; 16]> {
    let mut number = [0; 16];
    getrandom::fill(&mut number).map_err(io::Error::other)?;
    Ok(number)
}

fn encode(place: &Place) -> [u8; PLACE_LEN] {
    let mut block = [0; PLACE_LEN];
    block[..PLACE_CREATED].copy_from_slice(&place.inode.number.to_le_bytes());
    block[PLACE_CREATED..PLACE_NUMBER].copy_from_slice(&place.inode.created_us.to_le_bytes());
    block[PLACE_NUMBER..PLACE_REST].copy_from_slice(&place.number);
    let crc = crc32fast::hash(&block[..PLACE_CRC]);
    block[PLACE_CRC..].copy_from_slice(&crc.to_le_bytes());
    block
}

fn decode(block: &[u8; PLACE_LEN]) -> Option<Place> {
    let crc = u32::from_le_bytes(block[PLACE_CRC..].try_into().ok()?);
    if crc != crc32fast::hash(&block[..PLACE_CRC]) {
        return None;
    }
    let number = u64::from_le_bytes(block[..PLACE_CREATED].try_into().ok()?);
    let created_us = i64::from_le_bytes(block[PLACE_CREATED..PLACE_NUMBER].try_into().ok()?);
    let inode = Inode { number, created_us };
    Some(Place { inode, number: block[PLACE_NUMBER..PLACE_REST].try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Lock;
    use crate::vfs::OsVfs;
    use std::path::Path;

    #[test]
    fn the_bytes_of_a_place_block() {
        let place = Place { inode: Inode { number: 0x0102, created_us: -2 }, number: [7; 16] };
        let block = encode(&place);
        let mut expected = vec![2, 1, 0, 0, 0, 0, 0, 0];
        expected.extend_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        expected.extend_from_slice(&[7; 16]);
        expected.resize(60, 0);
        assert_eq!(block[..60], expected[..]);
        assert_eq!(block[60..], crc32fast::hash(&expected).to_le_bytes());
        assert_eq!(decode(&block), Some(place));
        for bit in 0..PLACE_LEN * 8 {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
    }

    fn opened(path: &Path, writes: bool) -> Option<Instance> {
        let lock = if writes { Lock::writer(&OsVfs, path) } else { Lock::reader(&OsVfs, path) };
        let mut lock = lock.unwrap();
        lock.belongs_to([1; 16]).unwrap();
        lock.instance()
    }

    #[test]
    fn a_copy_is_known_once_and_a_renamed_directory_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other, copy) = (dir.path().join("one"), dir.path().join("other"), dir.path().join("copy"));
        let first = opened(&one, true).unwrap();
        assert!(!first.is_new_copy);
        assert_eq!((opened(&one, true), opened(&one, false)), (Some(first), Some(first)));
        std::fs::copy(&one, &copy).unwrap();
        std::fs::rename(&one, &other).unwrap();
        assert_eq!(opened(&other, true), Some(first));
        assert_eq!(opened(&copy, false), Some(Instance { is_new_copy: true, ..first }));
        let second = opened(&copy, true).unwrap();
        assert!(second.is_new_copy && second.number != first.number);
        assert_eq!(opened(&copy, true), Some(Instance { is_new_copy: false, ..second }));
        assert_eq!(opened(&other, false), Some(first));
    }

    #[test]
    fn a_reader_where_no_writer_was_knows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        std::fs::write(&path, []).unwrap();
        assert_eq!(opened(&path, false), None);
    }
}
