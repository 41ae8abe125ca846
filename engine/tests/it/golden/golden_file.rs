//! A whole database in one small file: its files with what is not zero in them.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | magic, the bytes `HOLOGOLD` |
//! | 4 | count of files, then for each: |
//! | 2, n | length of its name, the name with `/` between its parts |
//! | 8 | length of the file |
//! | 4 | count of pieces, then for each: |
//! | 8, 4, n | where it stands, its length, its bytes; all else is zero |

use holotype_storage::vfs::{SimVfs, Vfs};
use std::path::Path;

const MAGIC: &[u8; 8] = b"HOLOGOLD";
/// Zeros shorter than this are kept as they are.
#[allow(dead_code, reason = "tests only read")]
const GAP: usize = 24;

/// Packs files, given by name.
#[allow(dead_code, reason = "tests only read")]
pub(crate) fn pack(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut packed = MAGIC.to_vec();
    packed.extend((files.len() as u32).to_le_bytes());
    for (name, bytes) in files {
        packed.extend((name.len() as u16).to_le_bytes());
        packed.extend(name.as_bytes());
        packed.extend((bytes.len() as u64).to_le_bytes());
        let pieces = pieces(bytes);
        packed.extend((pieces.len() as u32).to_le_bytes());
        for (start, end) in pieces {
            packed.extend((start as u64).to_le_bytes());
            packed.extend(((end - start) as u32).to_le_bytes());
            packed.extend(&bytes[start..end]);
        }
    }
    packed
}

/// The ranges that are not zero.
#[allow(dead_code, reason = "tests only read")]
fn pieces(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        match pieces.last_mut().filter(|(_, end)| at - *end < GAP) {
            Some(last) => last.1 = at + 1,
            None => pieces.push((at, at + 1)),
        }
    }
    pieces
}

/// Unpacks the files into a directory of a simulated disk.
#[allow(dead_code, reason = "the example only writes")]
pub(crate) fn unpack(packed: &[u8], disk: &SimVfs, dir: &Path) {
    let mut input = packed.strip_prefix(MAGIC).expect("a golden file");
    let mut take = |len: usize| {
        let (taken, rest) = input.split_at(len);
        input = rest;
        taken.to_vec()
    };
    let number = |bytes: Vec<u8>| bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    for _ in 0..number(take(4)) {
        let name_len = number(take(2)) as usize;
        let path = dir.join(String::from_utf8(take(name_len)).expect("a name"));
        disk.create_dir(path.parent().expect("a directory")).expect("the disk is empty");
        let mut content = vec![0; number(take(8)) as usize];
        for _ in 0..number(take(4)) {
            let at = number(take(8)) as usize;
            let len = number(take(4)) as usize;
            content[at..at + len].copy_from_slice(&take(len));
        }
        disk.replace(&path, &content);
    }
}
