//! Commit and close records, which commit a transaction and close the log.
//!
//! Commit, type `0xf0`:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | commit number, from 1 |
//! | 8 | 4 | record count of the transaction, without this record |
//! | 12 | 4 | zero |
//! | 16 | 8 | clock, microseconds since the epoch, signed; never smaller than the one before |
//! | 24 | 8 | synced: everything before this position was durable when this was written |
//! | 32 | 32 | transaction hash, over its records' `r` |
//! | 64 | 32 | head: over the chain before the open page, that page's records before this one, and the fields above |
//!
//! Close, type `0xf1`, only between transactions:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | number of the last commit, 0 before the first |
//! | 8 | 8 | synced, as above |
//! | 16 | 32 | head of the last commit, zero before the first |

use crate::chain::Hash;
use crate::log_page::field;
use crate::record::stored_len;

const NUMBER_AT: usize = 0;
const COUNT_AT: usize = NUMBER_AT + 8;
const RESERVED_AT: usize = COUNT_AT + 4;
const TIME_AT: usize = RESERVED_AT + 4;
const SYNCED_AT: usize = TIME_AT + 8;
const TRANSACTION_AT: usize = SYNCED_AT + 8;
const HEAD_AT: usize = TRANSACTION_AT + 32;
const COMMIT_LEN: usize = HEAD_AT + 32;

const CLOSE_NUMBER_AT: usize = 0;
const CLOSE_SYNCED_AT: usize = CLOSE_NUMBER_AT + 8;
const CLOSE_HEAD_AT: usize = CLOSE_SYNCED_AT + 8;
const CLOSE_LEN: usize = CLOSE_HEAD_AT + 32;

const _: () = assert!(COMMIT_LEN == 96 && CLOSE_LEN == 48);

/// The bytes a commit record takes in the log.
pub(crate) const STORED_COMMIT_LEN: usize = stored_len(COMMIT_LEN);
/// The bytes a close record takes in the log.
pub(crate) const STORED_CLOSE_LEN: usize = stored_len(CLOSE_LEN);

/// The payload of a commit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) number: u64,
    pub(crate) record_count: u32,
    pub(crate) time_us: i64,
    pub(crate) synced: u64,
    pub(crate) transaction: Hash,
    pub(crate) head: Hash,
}

impl Commit {
    pub(crate) fn encode(&self) -> [u8; COMMIT_LEN] {
        let mut bytes = [0; COMMIT_LEN];
        bytes[NUMBER_AT..COUNT_AT].copy_from_slice(&self.number.to_le_bytes());
        bytes[COUNT_AT..RESERVED_AT].copy_from_slice(&self.record_count.to_le_bytes());
        bytes[TIME_AT..SYNCED_AT].copy_from_slice(&self.time_us.to_le_bytes());
        bytes[SYNCED_AT..TRANSACTION_AT].copy_from_slice(&self.synced.to_le_bytes());
        bytes[TRANSACTION_AT..HEAD_AT].copy_from_slice(&self.transaction);
        bytes[HEAD_AT..].copy_from_slice(&self.head);
        bytes
    }

    /// The fields before the head, which the head covers.
    pub(crate) fn stated(&self) -> [u8; HEAD_AT] {
        field(&self.encode(), 0)
    }

    /// `None` for a payload of another length or with a reserved field set.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; COMMIT_LEN] = payload.try_into().ok()?;
        if bytes[RESERVED_AT..TIME_AT] != [0; 4] {
            return None;
        }
        Some(Self {
            number: u64::from_le_bytes(field(bytes, NUMBER_AT)),
            record_count: u32::from_le_bytes(field(bytes, COUNT_AT)),
            time_us: i64::from_le_bytes(field(bytes, TIME_AT)),
            synced: u64::from_le_bytes(field(bytes, SYNCED_AT)),
            transaction: field(bytes, TRANSACTION_AT),
            head: field(bytes, HEAD_AT),
        })
    }
}

/// The payload of a close record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Close {
    pub(crate) number: u64,
    pub(crate) synced: u64,
    pub(crate) head: Hash,
}

impl Close {
    pub(crate) fn encode(&self) -> [u8; CLOSE_LEN] {
        let mut bytes = [0; CLOSE_LEN];
        bytes[CLOSE_NUMBER_AT..CLOSE_SYNCED_AT].copy_from_slice(&self.number.to_le_bytes());
        bytes[CLOSE_SYNCED_AT..CLOSE_HEAD_AT].copy_from_slice(&self.synced.to_le_bytes());
        bytes[CLOSE_HEAD_AT..].copy_from_slice(&self.head);
        bytes
    }

    /// `None` for a payload of another length.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; CLOSE_LEN] = payload.try_into().ok()?;
        Some(Self {
            number: u64::from_le_bytes(field(bytes, CLOSE_NUMBER_AT)),
            synced: u64::from_le_bytes(field(bytes, CLOSE_SYNCED_AT)),
            head: field(bytes, CLOSE_HEAD_AT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_doc;

    #[test]
    fn the_document_says_the_same() {
        let commit = [NUMBER_AT, COUNT_AT, RESERVED_AT, TIME_AT, SYNCED_AT, TRANSACTION_AT, HEAD_AT, COMMIT_LEN];
        assert_eq!(format_doc::between(&commit), format_doc::fields("Commit record"));
        let close = [CLOSE_NUMBER_AT, CLOSE_SYNCED_AT, CLOSE_HEAD_AT, CLOSE_LEN];
        assert_eq!(format_doc::between(&close), format_doc::fields("Close record"));
    }

    #[test]
    fn the_bytes_are_fixed() {
        let commit = Commit { number: 2, record_count: 3, time_us: -4, synced: 5, transaction: [6; 32], head: [7; 32] };
        let expected = [
            [2, 0, 0, 0, 0, 0, 0, 0].as_slice(),
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[5, 0, 0, 0, 0, 0, 0, 0],
            &[6; 32],
            &[7; 32],
        ]
        .concat();
        assert_eq!(commit.encode().as_slice(), expected);
        assert_eq!(commit.stated().as_slice(), &expected[..64]);
        assert_eq!(Commit::decode(&expected), Some(commit));

        let close = Close { number: 2, synced: 5, head: [7; 32] };
        let expected = [[2, 0, 0, 0, 0, 0, 0, 0].as_slice(), &[5, 0, 0, 0, 0, 0, 0, 0], &[7; 32]].concat();
        assert_eq!(close.encode().as_slice(), expected);
        assert_eq!(Close::decode(&expected), Some(close));
        assert_eq!((STORED_COMMIT_LEN, STORED_CLOSE_LEN), (128, 80));
    }

    #[test]
    fn other_lengths_are_refused() {
        assert_eq!(Commit::decode(&[0; 95]), None);
        assert_eq!(Commit::decode(&[0; 97]), None);
        assert_eq!(Close::decode(&[0; 47]), None);
        let mut reserved = [0; COMMIT_LEN];
        reserved[RESERVED_AT] = 1;
        assert_eq!(Commit::decode(&reserved), None);
    }
}
