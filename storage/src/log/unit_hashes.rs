//! The hashes that a scanner needs in a unit, computed in advance: a batch takes a fraction of the time of separate
//! hashes.
//!
//! They cover the possible records of the unit, the tree over them, and the heads that its commits must state. The
//! scanner may need others, because damage can look like a record. So each hash is returned only for exactly the input
//! it was computed from, and any other is computed on demand.

use super::commit::Commit;
use super::tip::Tip;
use crate::chain::{self, Frontier, Hash};
use crate::hash_batch::HashBatch;
use crate::page_tree::PageTree;
use crate::record::{self, ClaimedContent, KIND_COMMIT};
use crate::record_hashes::RecordHashes;

/// Precomputed hashes of a unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitHashes {
    records: RecordHashes,
    tree: PageTree,
    /// Ascending by the number of records before the commit.
    heads: Vec<Head>,
    batch: HashBatch,
}

#[derive(Clone, Debug)]
struct Head {
    before: u64,
    input: [u8; 129],
    hash: Hash,
}

impl UnitHashes {
    /// Computes the hashes for the records of a unit from an offset on; `chain` is the chain before the unit.
    pub(crate) fn make(&mut self, unit: &[u8], from: usize, chain: &Hash) {
        self.records.clear();
        let mut commits = Vec::new();
        for (before, claimed) in (0..).zip(record::claimed(unit, from)) {
            match claimed.content {
                ClaimedContent::Redacted(hash) => self.records.push_hash(claimed.offset, hash),
                ClaimedContent::Written { header, salt, payload } => {
                    self.records.push(claimed.offset, &header, &salt, payload);
                    let stated = Commit::stated_in(payload).filter(|_| claimed.kind == KIND_COMMIT);
                    commits.extend(stated.map(|stated| (before, stated)));
                }
            }
        }
        let records = self.records.make();
        self.heads.clear();
        if from > 0 {
            // The records before the offset are unknown.
            self.tree.clear();
            return;
        }
        let counts = commits.iter().map(|(before, _)| *before).chain([records.len() as u64]);
        self.tree.make(records, counts);
        self.make_heads(&commits, chain);
    }

    fn make_heads(&mut self, commits: &[(u64, &[u8; 64])], chain: &Hash) {
        self.batch.clear();
        for &(before, stated) in commits {
            if let Some(root) = self.tree.root_over(before) {
                let input = chain::head_input(chain, &root, stated);
                self.batch.push([&input]);
                self.heads.push(Head { before, input, hash: Hash::default() });
            }
        }
        for (head, hash) in self.heads.iter_mut().zip(self.batch.run()) {
            head.hash = *hash;
        }
    }

    /// The hash of the record at an offset, if a possible record was there.
    pub(crate) fn record(&mut self, offset: usize) -> Option<Hash> {
        self.records.find(offset)
    }

    /// The node over these two in the tree of the unit's records.
    pub(crate) fn node(&self, level: usize, number: usize, left: &Hash, right: &Hash) -> Hash {
        self.tree.node(level, number, left, right).unwrap_or_else(|| chain::node(left, right))
    }

    /// The root over the records of the unit so far.
    pub(crate) fn root(&self, open: &Frontier) -> Hash {
        self.tree.root(open).unwrap_or_else(|| open.root())
    }

    /// The head that this commit record must state at its position.
    pub(crate) fn head(&self, tip: &Tip, commit: &Commit) -> Hash {
        let input = chain::head_input(&tip.chain, &self.root(&tip.open), &commit.stated());
        let at = self.heads.binary_search_by_key(&tip.open.count(), |head| head.before);
        let made = at.ok().and_then(|at| self.heads.get(at)).filter(|head| head.input == input);
        made.map_or_else(|| blake3::hash(&input).into(), |head| head.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CrcSeed, Place, SALT_LEN};

    const CHAIN: Hash = [5; 32];

    /// The bytes of some records, with the offset and hash of each.
    #[derive(Default)]
    struct Unit {
        bytes: Vec<u8>,
        records: Vec<(usize, Hash)>,
        commits: Vec<Commit>,
    }

    impl Unit {
        fn write(&mut self, kind: u8, payload: &[u8]) {
            let at = self.bytes.len();
            self.records.push((at, record::encode(kind, &[kind; SALT_LEN], payload, &mut self.bytes)));
        }

        fn commit(&mut self, number: u64) {
            let (transaction, head) = ([number as u8; 32], Hash::default());
            let commit = Commit { number, record_count: 2, time_us: 7, synced: 0, transaction, head };
            self.write(KIND_COMMIT, &commit.encode());
            self.commits.push(commit);
        }

        fn redact(&mut self, hash: Hash) {
            let (seed, place) = (CrcSeed::new(&[1; 16]), Place { segment: 1, offset: 0 });
            self.records.push((self.bytes.len(), hash));
            self.bytes.extend(record::redacted(1, 40, &hash, 0, &seed, place));
        }
    }

    /// Two records, a commit, a redacted record, a commit.
    fn unit() -> Unit {
        let mut unit = Unit::default();
        unit.write(1, b"what was said");
        unit.write(2, &[9; 3_000]);
        unit.commit(1);
        unit.redact([3; 32]);
        unit.commit(2);
        unit.bytes.extend([0; 100]);
        unit
    }

    fn made(unit: &Unit, from: usize) -> UnitHashes {
        let mut hashes = UnitHashes::default();
        hashes.make(&unit.bytes, from, &CHAIN);
        hashes
    }

    /// The tip before the record of this index.
    fn tip(unit: &Unit, before: usize, chain: Hash) -> Tip {
        let mut tip = Tip { chain, ..Tip::genesis(&[1; 16], 0) };
        unit.records[..before].iter().for_each(|(_, hash)| tip.open.push(*hash));
        tip
    }

    #[test]
    fn what_a_sound_unit_will_be_asked_for_is_made() {
        let unit = unit();
        let mut hashes = made(&unit, 0);
        for (at, hash) in &unit.records {
            assert_eq!(hashes.record(*at), Some(*hash));
            assert_eq!(hashes.record(at + 1), None);
        }
        let heads: Vec<(u64, Hash)> = hashes.heads.iter().map(|head| (head.before, head.hash)).collect();
        let expected = [(2, 0), (4, 1)].map(|(before, commit): (usize, usize)| {
            (before as u64, tip(&unit, before, CHAIN).head_of(&unit.commits[commit]))
        });
        assert_eq!(heads, expected);
        for before in [2, 4, 5] {
            let open = tip(&unit, before, CHAIN).open;
            assert_eq!(hashes.tree.root(&open), Some(open.root()), "over {before}");
        }
        // From a later offset, the hashes of records are computed, but not the tree and the heads.
        let mut hashes = made(&unit, unit.records[1].0);
        assert_eq!(hashes.record(unit.records[0].0), None);
        assert_eq!(hashes.record(unit.records[4].0), Some(unit.records[4].1));
        assert!(hashes.heads.is_empty() && hashes.tree.root_over(4).is_none());
    }

    #[test]
    fn a_head_is_given_out_only_for_what_it_was_made_of() {
        let unit = unit();
        let hashes = made(&unit, 0);
        let other = Commit { time_us: 8, ..unit.commits[0].clone() };
        for (before, chain, commit) in [
            (2, CHAIN, &unit.commits[0]),
            (4, CHAIN, &unit.commits[1]),
            (2, [6; 32], &unit.commits[0]),
            (2, CHAIN, &other),
            (3, CHAIN, &unit.commits[0]),
            (4, CHAIN, &unit.commits[0]),
        ] {
            let tip = tip(&unit, before, chain);
            assert_eq!(hashes.head(&tip, commit), tip.head_of(commit), "before {before}");
        }
        let mut changed = tip(&unit, 2, CHAIN);
        changed.open = Frontier::default();
        [[1; 32], [2; 32]].iter().for_each(|hash| changed.open.push(*hash));
        assert_eq!(hashes.head(&changed, &unit.commits[0]), changed.head_of(&unit.commits[0]));
    }
}
