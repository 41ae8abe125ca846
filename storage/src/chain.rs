//! The hashes that make the log tamper-evident.
//!
//! Every hash is BLAKE3 with a leading tag byte, so that a hash of one kind is never a hash of another:
//!
//! | hash | input |
//! |---|---|
//! | record `r` | `00`, the record's first 8 bytes without the redacted flag, salt, payload |
//! | tree node | `01`, left, right |
//! | chain | `02`, previous chain, Merkle root of the page's `r`s |
//! | transaction | `03`, its `r`s in order |
//! | head | `04`, chain before the open page, Merkle root of the open page so far, the fields of the commit |
//! | first chain | `05`, database id |
//!
//! Trees have the shape of RFC 6962 section 2.1 with the `r`s as leaf hashes: a tree over `n` leaves splits at the
//! largest power of two below `n`; no leaves give the hash of nothing. [`Frontier`] keeps the root of a growing list in
//! `O(log n)` memory and time per step.

use std::cell::RefCell;

use crate::buffered_hasher::BufferedHasher;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// The first byte of the input of a record's hash.
const TAG_RECORD: u8 = 0;
const TAG_NODE: u8 = 1;
const TAG_CHAIN: u8 = 2;
const TAG_TRANSACTION: u8 = 3;
const TAG_HEAD: u8 = 4;
const TAG_GENESIS: u8 = 5;

/// The hash `r` of a record with these first header bytes, salt and payload.
#[must_use]
pub fn record_hash(header: &[u8; 8], salt: &[u8], payload: &[u8]) -> Hash {
    if payload.len() > MAX_GATHERED_LEN {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[TAG_RECORD]).update(header).update(salt).update(payload);
        return hasher.finalize().into();
    }
    GATHERED.with_borrow_mut(|input| {
        input.clear();
        input.push(TAG_RECORD);
        input.extend_from_slice(header);
        input.extend_from_slice(salt);
        input.extend_from_slice(payload);
        blake3::hash(input).into()
    })
}

/// The longest payload that is copied so that it can be hashed in one piece. A copy costs a fiftieth of the hash;
/// separate pieces are hashed chunk after chunk instead of several chunks at once.
const MAX_GATHERED_LEN: usize = 64 << 10;

thread_local! {
    /// A buffer for the input of record hashes.
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The parent of two tree nodes.
pub(crate) fn node(left: &Hash, right: &Hash) -> Hash {
    blake3::hash(&tagged(TAG_NODE, left, right)).into()
}

/// The chain after a page whose records have this Merkle root.
pub(crate) fn chain(previous: &Hash, root: &Hash) -> Hash {
    blake3::hash(&tagged(TAG_CHAIN, previous, root)).into()
}

/// The head: the hash over all sealed pages, the records of the open one, and the fields of the commit record after
/// them.
pub(crate) fn head(chain: &Hash, open_root: &Hash, stated: &[u8; 64]) -> Hash {
    let mut input = [0; 129];
    input[0] = TAG_HEAD;
    input[1..33].copy_from_slice(chain);
    input[33..65].copy_from_slice(open_root);
    input[65..].copy_from_slice(stated);
    blake3::hash(&input).into()
}

/// The chain before the first page of a database.
pub(crate) fn genesis(database: &[u8; 16]) -> Hash {
    blake3::Hasher::new().update(&[TAG_GENESIS]).update(database).finalize().into()
}

fn tagged(tag: u8, first: &Hash, second: &Hash) -> [u8; 65] {
    let mut input = [0; 65];
    input[0] = tag;
    input[1..33].copy_from_slice(first);
    input[33..].copy_from_slice(second);
    input
}

/// The hash over a transaction's records, added one by one.
#[derive(Clone, Debug)]
pub(crate) struct TransactionHash(BufferedHasher);

impl TransactionHash {
    pub(crate) fn new() -> Self {
        let mut new = Self(BufferedHasher::default());
        new.restart();
        new
    }

    /// Begins the next transaction.
    pub(crate) fn restart(&mut self) {
        self.0.clear();
        self.0.update(&[TAG_TRANSACTION]);
    }

    pub(crate) fn push(&mut self, r: &Hash) {
        self.0.update(r);
    }

    pub(crate) fn finish(&self) -> Hash {
        self.0.finalize()
    }
}

/// The Merkle root of a growing list of hashes. It keeps the roots of complete subtrees, largest first, one for each
/// bit set in the count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    count: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// A frontier that was stored: the number of leaves, and the roots of its complete subtrees, the largest first.
    /// `None` unless there is one root for each one bit of the count.
    #[must_use]
    pub fn from_parts(count: u64, peaks: Vec<Hash>) -> Option<Self> {
        (peaks.len() == count.count_ones() as usize).then_some(Self { count, peaks })
    }

    /// The roots of its complete subtrees, the largest first.
    #[must_use]
    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// The number of leaves.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut merged = leaf;
        // Each trailing one bit of the count is a complete subtree that the new leaf doubles.
        for _ in 0..self.count.trailing_ones() {
            let Some(left) = self.peaks.pop() else { break };
            merged = node(&left, &merged);
        }
        self.peaks.push(merged);
        self.count += 1;
    }

    /// The root over all leaves.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(&last) = peaks.next() else {
            return blake3::hash(&[]).into();
        };
        peaks.fold(last, |right, left| node(left, &right))
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.peaks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6962 section 2.1, word for word.
    fn merkle(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => blake3::hash(&[]).into(),
            [leaf] => *leaf,
            _ => {
                let half = leaves.len().next_power_of_two() / 2;
                node(&merkle(&leaves[..half]), &merkle(&leaves[half..]))
            }
        }
    }

    #[test]
    fn frontier_agrees_with_the_definition() {
        let leaves: Vec<Hash> = (0..70_u8).map(|i| blake3::hash(&[i]).into()).collect();
        let mut frontier = Frontier::default();
        assert_eq!(frontier.root(), merkle(&[]));
        for (i, leaf) in leaves.iter().enumerate() {
            frontier.push(*leaf);
            assert_eq!(frontier.root(), merkle(&leaves[..=i]), "{} leaves", i + 1);
            assert_eq!(frontier.count(), i as u64 + 1);
        }
        frontier.clear();
        assert_eq!(frontier, Frontier::default());
    }

    #[test]
    fn tags_keep_the_sorts_of_hashes_apart() {
        let (a, b) = ([1; 32], [2; 32]);
        let all = [node(&a, &b), chain(&a, &b), head(&a, &b, &[0; 64]), node(&b, &a)];
        for (i, first) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|second| first != second));
        }
    }

    #[test]
    fn hashes_are_what_the_format_says() {
        let mut input = vec![0];
        input.extend_from_slice(&[3, 0, 0, 0, 7, 0, 0x48, 0x52]);
        input.extend_from_slice(&[9; 16]);
        input.extend_from_slice(b"abc");
        let expected: Hash = blake3::hash(&input).into();
        assert_eq!(record_hash(&[3, 0, 0, 0, 7, 0, 0x48, 0x52], &[9; 16], b"abc"), expected);
        let mut transaction = TransactionHash::new();
        transaction.push(&[1; 32]);
        transaction.push(&[2; 32]);
        let expected: Hash = blake3::hash(&[[3].as_slice(), &[1; 32], &[2; 32]].concat()).into();
        assert_eq!(transaction.finish(), expected);
        // A long one, and another after it.
        for hash in [7, 8] {
            transaction.restart();
            (0..5_000).for_each(|_| transaction.push(&[hash; 32]));
            let expected: Hash = blake3::hash(&[vec![3], vec![hash; 32 * 5_000]].concat()).into();
            assert_eq!(transaction.finish(), expected);
        }
        let expected: Hash = blake3::hash(&[[4].as_slice(), &[1; 32], &[2; 32], &[3; 64]].concat()).into();
        assert_eq!(head(&[1; 32], &[2; 32], &[3; 64]), expected);
        let expected: Hash = blake3::hash(&[[5].as_slice(), &[6; 16]].concat()).into();
        assert_eq!(genesis(&[6; 16]), expected);
    }
}
