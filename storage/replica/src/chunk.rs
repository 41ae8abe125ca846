//! A chunk: a range of the log's bytes, compressed.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic, the bytes `HOLOCHNK` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | zero |
//! | 16 | 8 | random number of the writer |
//! | 24 | 8 | serial of the head that it was written for |
//! | 32 | 8 | first position |
//! | 40 | 8 | position after the last byte |
//! | 48 | | the bytes of the log between them, as one frame of zstd |
//!
//! 1. The name of a chunk is `chunks/`, the first two digits of the BLAKE3 hash of all of these bytes, `/`, the hash.
//! 2. Number and serial make every chunk unlike all others: one that was removed is never written again, so a removal
//!    that is repeated late removes nothing that is in use.

use holotype_storage::Hash;

use crate::error::{Error, Result};
use crate::hex;

const MAGIC: &[u8; 8] = b"HOLOCHNK";
const VERSION: u32 = 1;
const VERSION_AT: usize = 8;
const WRITER_AT: usize = 16;
const SERIAL_AT: usize = 24;
const FIRST_AT: usize = 32;
const END_AT: usize = 40;
/// The length of the fields before the frame.
pub const HEADER_LEN: usize = 48;

/// The level of compression: zstd's default, some 300 MB/s.
const LEVEL: i32 = 3;

/// Bytes of the log in one chunk, at most.
pub const MAX_LOG_LEN: u64 = 64 << 20;

/// The name of the chunk with this hash.
#[must_use]
pub fn key(hash: &Hash) -> String {
    let digits = hex::encode(hash);
    format!("chunks/{}/{digits}", digits.get(..2).unwrap_or_default())
}

/// The chunk with these bytes of the log from `first` on, and its hash.
///
/// # Errors
/// [`Error::Damaged`] if the bytes cannot be compressed.
pub fn encode(writer: u64, serial: u64, first: u64, log: &[u8]) -> Result<(Vec<u8>, Hash)> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + log.len() / 4);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    for number in [writer, serial, first, first + log.len() as u64] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let frame = zstd::bulk::compress(log, LEVEL).map_err(|error| Error::damaged("a chunk", error.to_string()))?;
    bytes.extend_from_slice(&frame);
    let hash = blake3::hash(&bytes).into();
    Ok((bytes, hash))
}

/// The bytes of the log in a chunk whose hash and range are known.
///
/// # Errors
/// [`Error::Damaged`] for any other bytes.
pub fn decode(bytes: &[u8], hash: &Hash, first: u64, end: u64) -> Result<Vec<u8>> {
    let damaged = |what: String| Error::damaged(key(hash), what);
    let found: Hash = blake3::hash(bytes).into();
    if found != *hash {
        return Err(damaged(format!("its hash is {}", hex::encode(&found))));
    }
    let number =
        |at: usize| bytes.get(at..at + 8).and_then(|field| field.try_into().ok()).map_or(u64::MAX, u64::from_le_bytes);
    let version = bytes.get(VERSION_AT..VERSION_AT + 4).and_then(|field| field.try_into().ok());
    if bytes.get(..8) != Some(MAGIC) {
        return Err(damaged("it is not a chunk".into()));
    }
    if version.map(u32::from_le_bytes) != Some(VERSION) {
        return Err(damaged("a newer version wrote it: upgrade to read it".into()));
    }
    if (number(FIRST_AT), number(END_AT)) != (first, end) || end.saturating_sub(first) > MAX_LOG_LEN {
        return Err(damaged(format!("it does not hold positions {first} to {end}")));
    }
    let frame = bytes.get(HEADER_LEN..).unwrap_or_default();
    let log = zstd::bulk::decompress(frame, (end - first) as usize).map_err(|error| damaged(error.to_string()))?;
    if log.len() as u64 != end - first {
        return Err(damaged(format!("it holds {} bytes, not {}", log.len(), end - first)));
    }
    Ok(log)
}

const _: () = assert!(WRITER_AT + 8 == SERIAL_AT && END_AT + 8 == HEADER_LEN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_reads_as_it_was_written() {
        let log = vec![7; 100_000];
        let (bytes, hash) = encode(1, 2, 4096, &log).unwrap();
        assert!(bytes.len() < 1_000);
        assert_eq!(decode(&bytes, &hash, 4096, 104_096).unwrap(), log);
        assert!(decode(&bytes, &hash, 4096, 104_097).is_err());
        assert!(decode(&bytes, &[0; 32], 4096, 104_096).is_err());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(decode(&changed, &hash, 4096, 104_096).is_err(), "byte {at}");
        }
        let other = encode(1, 3, 4096, &log).unwrap();
        assert_ne!(other.1, hash, "no two chunks have the same name");
    }

    #[test]
    fn a_frame_that_claims_more_is_refused() {
        let (bytes, _) = encode(1, 2, 0, &[1; 5_000]).unwrap();
        let mut shorter = bytes[..FIRST_AT].to_vec();
        shorter.extend_from_slice(&0_u64.to_le_bytes());
        shorter.extend_from_slice(&100_u64.to_le_bytes());
        shorter.extend_from_slice(&bytes[HEADER_LEN..]);
        let hash = blake3::hash(&shorter).into();
        assert!(decode(&shorter, &hash, 0, 100).is_err());
    }
}
