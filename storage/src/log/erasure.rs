//! Erasing records from the middle of the log without invalidating any hash.
//!
//! A transaction names the records to erase in *redaction records*, type `0xf2`, after its other records. They contain
//! everything that the erased form of each record consists of, so that an erasure can be repeated without reading the
//! old bytes:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | number of the commit this belongs to |
//! | 8 | 4 | count of records to erase, n |
//! | 12 | 4 | zero |
//! | 16 + 56 i | 8 | position of the record |
//! | 24 + 56 i | 4 | length of its payload |
//! | 28 + 56 i | 1 | its type |
//! | 29 + 56 i | 3 | zero |
//! | 32 + 56 i | 8 | position of its replacement, 0 for none |
//! | 40 + 56 i | 32 | its hash `r` |
//!
//! Once that transaction is durable, the records are overwritten with their erased form ([`crate::record`]) and synced.
//! Then a *done record*, type `0xf3`, states that. It is between transactions:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | number of the commit that named the records to erase |
//! | 8 | 8 | synced: everything before this position was durable when this was written |
//!
//! 1. Nothing is overwritten before the transaction that names it is durable: a crash before that leaves everything,
//!    and a crash after that leaves enough to finish the erasure ([`crate::recovery`]).
//! 2. A record that is being overwritten may be read half old, half new. A reader that finds an invalid record waits
//!    for [`Erasing`] and reads it again.
//! 3. A replacement is a record of the same transaction, so it exists before the record that it replaces is erased.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::position::{CommitNo, Lsn};
use crate::chain::Hash;
use crate::log_page::field;
use crate::record::{self, ALIGNMENT, FIRST_RESERVED_KIND, FLAG_REDACTED, MAX_PAYLOAD, RecordView};

const COMMIT_AT: usize = 0;
const COUNT_AT: usize = COMMIT_AT + 8;
const RESERVED_AT: usize = COUNT_AT + 4;
const ENTRIES_AT: usize = RESERVED_AT + 4;

const POSITION_AT: usize = 0;
const LENGTH_AT: usize = POSITION_AT + 8;
const KIND_AT: usize = LENGTH_AT + 4;
const ENTRY_RESERVED_AT: usize = KIND_AT + 1;
const REPLACEMENT_AT: usize = ENTRY_RESERVED_AT + 3;
const HASH_AT: usize = REPLACEMENT_AT + 8;
const ENTRY_LEN: usize = HASH_AT + 32;

const DONE_COMMIT_AT: usize = 0;
const DONE_SYNCED_AT: usize = DONE_COMMIT_AT + 8;
const DONE_LEN: usize = DONE_SYNCED_AT + 8;

const _: () = assert!(ENTRIES_AT == 16 && ENTRY_LEN == 56 && DONE_LEN == 16);

/// The greatest number of records that one redaction record names, limited by its payload.
const MAX_ENTRIES: usize = (MAX_PAYLOAD - ENTRIES_AT) / ENTRY_LEN;

const _: () = assert!(ENTRIES_AT + MAX_ENTRIES * ENTRY_LEN <= MAX_PAYLOAD);
const _: () = assert!(ENTRIES_AT + (MAX_ENTRIES + 1) * ENTRY_LEN > MAX_PAYLOAD);

/// The length of a done record in the log.
pub(crate) const STORED_DONE_LEN: usize = record::stored_len(DONE_LEN);

/// A record to erase, as [`crate::log::Log::append_redaction`] takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erase {
    /// The record's position.
    pub lsn: Lsn,
    /// Its replacement: an index into the records appended with the redaction.
    pub replacement: Option<usize>,
}

/// A redaction that is in the log but not carried out: see [`crate::log::Log::complete_redaction`]. If it is dropped,
/// the next opening for writing carries it out.
#[must_use = "the records that it names are not erased yet"]
#[derive(Debug)]
pub struct Redaction {
    pub(crate) commit: CommitNo,
    pub(crate) end: Lsn,
    pub(crate) erasures: Vec<Erasure>,
}

impl Redaction {
    /// The number of records to erase.
    #[must_use]
    pub fn count(&self) -> usize {
        self.erasures.len()
    }
}

/// Everything that the erased form of a record consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Erasure {
    pub(crate) position: u64,
    pub(crate) payload_len: u32,
    pub(crate) kind: u8,
    /// The position of its replacement; 0 for none.
    pub(crate) replacement: u64,
    pub(crate) hash: Hash,
}

impl Erasure {
    pub(crate) fn stored_len(&self) -> usize {
        record::stored_len(self.payload_len as usize)
    }

    /// True if the record fits this many bytes.
    pub(crate) fn fits(&self, room: usize) -> bool {
        self.stored_len() <= room
    }

    /// The record in its erased form.
    pub(crate) fn view(&self) -> RecordView<'static> {
        RecordView {
            kind: self.kind,
            flags: FLAG_REDACTED,
            payload: &[],
            hash: self.hash,
            replacement: self.replacement,
            stored_len: self.stored_len(),
        }
    }
}

/// Erased records by position.
pub(crate) type Patches = BTreeMap<u64, Erasure>;

/// The payload of a redaction record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) commit: u64,
    pub(crate) erasures: Vec<Erasure>,
}

impl Intent {
    fn encode(commit: u64, erasures: &[Erasure]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRIES_AT + erasures.len() * ENTRY_LEN);
        bytes.extend_from_slice(&commit.to_le_bytes());
        bytes.extend_from_slice(&(erasures.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; ENTRIES_AT - RESERVED_AT]);
        for erasure in erasures {
            bytes.extend_from_slice(&erasure.position.to_le_bytes());
            bytes.extend_from_slice(&erasure.payload_len.to_le_bytes());
            bytes.push(erasure.kind);
            bytes.extend_from_slice(&[0; REPLACEMENT_AT - ENTRY_RESERVED_AT]);
            bytes.extend_from_slice(&erasure.replacement.to_le_bytes());
            bytes.extend_from_slice(&erasure.hash);
        }
        bytes
    }

    /// `None` for a payload of another layout, or one that names a record that cannot be erased.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let (head, entries) = payload.split_first_chunk::<ENTRIES_AT>()?;
        let count = u32::from_le_bytes(field(head, COUNT_AT)) as usize;
        let (entries, rest) = entries.as_chunks::<ENTRY_LEN>();
        if head[RESERVED_AT..ENTRIES_AT] != [0; 4] || entries.len() != count || !rest.is_empty() {
            return None;
        }
        let erasures = entries.iter().map(|entry| {
            let erasure = Erasure {
                position: u64::from_le_bytes(field(entry, POSITION_AT)),
                payload_len: u32::from_le_bytes(field(entry, LENGTH_AT)),
                kind: entry[KIND_AT],
                replacement: u64::from_le_bytes(field(entry, REPLACEMENT_AT)),
                hash: field(entry, HASH_AT),
            };
            let sound = entry[ENTRY_RESERVED_AT..REPLACEMENT_AT] == [0; 3]
                && erasure.payload_len as usize <= MAX_PAYLOAD
                && (1..FIRST_RESERVED_KIND).contains(&erasure.kind)
                && erasure.position.is_multiple_of(ALIGNMENT as u64);
            sound.then_some(erasure)
        });
        Some(Self { commit: u64::from_le_bytes(field(head, COMMIT_AT)), erasures: erasures.collect::<Option<_>>()? })
    }

    /// The payloads that name all of these erasures.
    pub(crate) fn payloads(commit: u64, erasures: &[Erasure]) -> Vec<Vec<u8>> {
        erasures.chunks(MAX_ENTRIES).map(|erasures| Self::encode(commit, erasures)).collect()
    }

    /// The length in the log of the records that name `count` erasures.
    pub(crate) fn stored_len(count: usize) -> usize {
        let len = |entries: usize| record::stored_len(ENTRIES_AT + entries * ENTRY_LEN);
        let rest = count % MAX_ENTRIES;
        (count / MAX_ENTRIES) * len(MAX_ENTRIES) + if rest > 0 { len(rest) } else { 0 }
    }
}

/// The payload of a done record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redacted {
    pub(crate) commit: u64,
    pub(crate) synced: u64,
}

impl Redacted {
    pub(crate) fn encode(&self) -> [u8; DONE_LEN] {
        let mut bytes = [0; DONE_LEN];
        bytes[DONE_COMMIT_AT..DONE_SYNCED_AT].copy_from_slice(&self.commit.to_le_bytes());
        bytes[DONE_SYNCED_AT..].copy_from_slice(&self.synced.to_le_bytes());
        bytes
    }

    /// `None` for a payload of another length.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; DONE_LEN] = payload.try_into().ok()?;
        Some(Self {
            commit: u64::from_le_bytes(field(bytes, DONE_COMMIT_AT)),
            synced: u64::from_le_bytes(field(bytes, DONE_SYNCED_AT)),
        })
    }
}

/// A lock that is held while records are overwritten.
#[derive(Debug, Default)]
pub(crate) struct Erasing(Mutex<()>);

impl Erasing {
    /// Waits until no record is being overwritten.
    pub(crate) fn wait(&self) {
        drop(self.begin());
    }

    pub(super) fn begin(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_doc;

    fn erasure(position: u64) -> Erasure {
        Erasure { position, payload_len: 3, kind: 4, replacement: 5, hash: [6; 32] }
    }

    #[test]
    fn the_document_says_the_same() {
        let mut intent = format_doc::between(&[COMMIT_AT, COUNT_AT, RESERVED_AT, ENTRIES_AT]);
        intent.extend_from_slice(&[(0, 8), (8, 4), (12, 1), (13, 3), (16, 8), (24, 32)]);
        let entry = [POSITION_AT, LENGTH_AT, KIND_AT, ENTRY_RESERVED_AT, REPLACEMENT_AT, HASH_AT];
        assert_eq!(entry, [0, 8, 12, 13, 16, 24]);
        assert_eq!(intent, format_doc::fields("Redaction record"));
        let done = format_doc::between(&[DONE_COMMIT_AT, DONE_SYNCED_AT, DONE_LEN]);
        assert_eq!(done, format_doc::fields("Done record"));
    }

    #[test]
    fn the_bytes_are_fixed() {
        let payload = Intent::encode(2, &[erasure(8), erasure(16)]);
        let mut expected = vec![2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        for position in [8, 16] {
            expected.extend_from_slice(&[position, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
            expected.extend_from_slice(&[5, 0, 0, 0, 0, 0, 0, 0]);
            expected.extend_from_slice(&[6; 32]);
        }
        assert_eq!(payload, expected);
        let read = Intent::decode(&payload).unwrap();
        assert_eq!((read.commit, read.erasures), (2, vec![erasure(8), erasure(16)]));
        let done = Redacted { commit: 2, synced: 7 };
        assert_eq!(done.encode(), [2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Redacted::decode(&done.encode()), Some(done));
    }

    #[test]
    fn what_cannot_be_erased_is_refused() {
        let good = Intent::encode(2, &[erasure(8)]);
        assert!(Intent::decode(&good).is_some());
        for at in 0..good.len() {
            assert!(Intent::decode(&good[..at]).is_none(), "cut at {at}");
        }
        // The count, a reserved field, an invalid position, an invalid length, an invalid type, a reserved type.
        for (at, byte) in [(8, 2), (12, 1), (16, 9), (27, 255), (28, 0), (28, 0xf0), (29, 1)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(Intent::decode(&bad).is_none(), "byte {at} is {byte}");
        }
    }

    #[test]
    fn many_are_said_in_several_records() {
        for (count, records) in
            [(0, 0), (1, 1), (MAX_ENTRIES, 1), (MAX_ENTRIES + 1, 2), (2 * MAX_ENTRIES, 2), (2 * MAX_ENTRIES + 5, 3)]
        {
            let erasures: Vec<Erasure> = (0..count as u64).map(|number| erasure(8 * number)).collect();
            let payloads = Intent::payloads(1, &erasures);
            let stored: usize = payloads.iter().map(|payload| record::stored_len(payload.len())).sum();
            assert_eq!((payloads.len(), stored), (records, Intent::stored_len(count)));
            let read = payloads.iter().flat_map(|payload| Intent::decode(payload).unwrap().erasures);
            assert!(read.eq(erasures));
        }
    }
}
