//! The hashes a scanner will ask for in a unit, made before it walks through: many side by side take a fraction of the time
//! that one after the other takes.
//!
//! They are those of the records that seem to stand there, of the tree over them, and of the heads that their commits must
//! state. What is asked for in the end may be another: what seemed to be a record may be damage. So each hash is given out only
//! for what it was made of, and anything else is hashed when it is asked for.

use super::commit::Commit;
use super::tip::Tip;
use crate::chain::{self, Frontier, Hash};
use crate::hash_batch::HashBatch;
use crate::page_tree::PageTree;
use crate::record::{self, ClaimedContent, KIND_COMMIT};
use crate::record_hashes::RecordHashes;

/// Hashes made ahead.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitHashes {
    records: RecordHashes,
    tree: PageTree,
    /// By the number of records before the commit, ascending.
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
    /// Makes the hashes for the records of a unit from an offset on; `chain` is that before the unit.
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
            // The records before are not at hand.
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
                self.batch.push(&input, &[]);
                self.heads.push(Head { before, input, hash: Hash::default() });
            }
        }
        for (head, hash) in self.heads.iter_mut().zip(self.batch.run()) {
            head.hash = *hash;
        }
    }

    /// The hash of the record at an offset, if one seemed to stand there.
    pub(crate) fn record(&mut self, offset: usize) -> Option<Hash> {
        self.records.find(offset)
    }

    /// A node of the tree over the unit's records, over these two.
    pub(crate) fn node(&self, level: usize, number: usize, left: &Hash, right: &Hash) -> Hash {
        self.tree.node(level, number, left, right).unwrap_or_else(|| chain::node(left, right))
    }

    /// The root over the records of the unit so far.
    pub(crate) fn root(&self, open: &Frontier) -> Hash {
        self.tree.root(open).unwrap_or_else(|| open.root())
    }

    /// The head that this commit record must state where it stands.
    pub(crate) fn head(&self, tip: &Tip, commit: &Commit) -> Hash {
        let input = chain::head_input(&tip.chain, &self.root(&tip.open), &commit.stated());
        let at = self.heads.binary_search_by_key(&tip.open.count(), |head| head.before);
        let made = at.ok().and_then(|at| self.heads.get(at)).filter(|head| head.input == input);
        made.map_or_else(|| blake3::hash(&input).into(), |head| head.hash)
    }
}
