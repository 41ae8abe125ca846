//! The Merkle tree of a page's records, computed level by level.
//!
//! A single node takes two blocks, hashed one after the other. A caller that has all records of a page computes the
//! nodes of a level together, and likewise the roots over the records before each commit, one step of all of them at a
//! time.
//!
//! The tree is only a cache: a node or root is returned only for exactly the hashes it was computed from. Callers
//! compute any other themselves.

use crate::chain::{self, Frontier, Hash};
use crate::hash_batch::HashBatch;

/// Precomputed nodes and roots.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageTree {
    /// The leaves, then each level's complete nodes.
    nodes: Vec<Hash>,
    /// The start of each level in `nodes`.
    levels: Vec<usize>,
    /// Ascending by the number of leaves they cover.
    roots: Vec<Root>,
    batch: HashBatch,
}

#[derive(Clone, Debug)]
struct Root {
    count: u64,
    /// The bits of the count whose complete subtrees have not been added yet, from the right.
    left: u64,
    hash: Hash,
}

impl PageTree {
    /// Removes all nodes and roots.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.levels.clear();
        self.roots.clear();
    }

    /// Computes the nodes over these leaves and, for each of these counts, the root over that many leaves. The counts
    /// ascend and are from 1 to the number of leaves.
    pub(crate) fn make(&mut self, leaves: &[Hash], counts: impl Iterator<Item = u64>) {
        self.clear();
        let mut start = 0;
        self.nodes.extend_from_slice(leaves);
        while let Some(below) = self.nodes.get(start..).filter(|below| !below.is_empty()) {
            self.batch.clear();
            for [left, right] in below.as_chunks::<2>().0 {
                self.batch.push(chain::node_input(left, right));
            }
            self.levels.push(start);
            start = self.nodes.len();
            self.nodes.extend_from_slice(self.batch.run());
        }
        self.make_roots(counts);
    }

    /// Computes each root from the right: the node over the smallest complete subtree and the next larger one, and so
    /// on.
    fn make_roots(&mut self, counts: impl Iterator<Item = u64>) {
        let mut roots = std::mem::take(&mut self.roots);
        roots.extend(counts.filter_map(|count| {
            let hash = *self.peak(count, count.trailing_zeros())?;
            Some(Root { count, left: count & (count - 1), hash })
        }));
        while roots.iter().any(|root| root.left > 0) {
            self.batch.clear();
            for root in roots.iter().filter(|root| root.left > 0) {
                let peak = self.peak(root.left, root.left.trailing_zeros()).copied().unwrap_or_default();
                self.batch.push(chain::node_input(&peak, &root.hash));
            }
            for (root, hash) in roots.iter_mut().filter(|root| root.left > 0).zip(self.batch.run()) {
                (root.left, root.hash) = (root.left & (root.left - 1), *hash);
            }
        }
        self.roots = roots;
    }

    /// The complete subtree of this level over the first `count` leaves; the level's bit must be set in `count`.
    fn peak(&self, count: u64, level: u32) -> Option<&Hash> {
        let number = count.checked_shr(level)?.checked_sub(1)?;
        self.level(level as usize)?.get(number as usize)
    }

    fn level(&self, level: usize) -> Option<&[Hash]> {
        let end = self.levels.get(level + 1).copied().unwrap_or(self.nodes.len());
        self.nodes.get(*self.levels.get(level)?..end)
    }

    /// The node of this level and index, if it is the parent of these two.
    pub(crate) fn node(&self, level: usize, number: usize, left: &Hash, right: &Hash) -> Option<Hash> {
        let below = self.level(level.checked_sub(1)?)?;
        let both = below.get(2 * number..2 * number + 2)?;
        (both == [*left, *right]).then(|| self.level(level)?.get(number).copied())?
    }

    /// The root over the first `count` leaves, if it was computed.
    pub(crate) fn root_over(&self, count: u64) -> Option<Hash> {
        let at = self.roots.binary_search_by_key(&count, |root| root.count).ok()?;
        self.roots.get(at).map(|root| root.hash)
    }

    /// The root of a growing list, if the list is a prefix of these leaves whose root was computed.
    pub(crate) fn root(&self, open: &Frontier) -> Option<Hash> {
        let count = open.count();
        let root = self.root_over(count)?;
        // One peak for each bit that is set, the highest first.
        let mut left = count;
        let same = open.peaks().iter().all(|peak| {
            let level = left.checked_ilog2().unwrap_or_default();
            left &= !(1 << level);
            self.peak(count, level) == Some(peak)
        });
        same.then_some(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: usize) -> Vec<Hash> {
        (0..count).map(|at| blake3::hash(&at.to_le_bytes()).into()).collect()
    }

    /// A list that grows with the tree's nodes, and whether the tree had all of them.
    fn grown(tree: &PageTree, leaves: &[Hash]) -> (Frontier, bool) {
        let mut open = Frontier::default();
        let all = std::cell::Cell::new(true);
        for &leaf in leaves {
            open.push_with(leaf, |level, number, left, right| {
                let node = tree.node(level, number, left, right);
                all.set(all.get() && node.is_some());
                node.unwrap_or_else(|| chain::node(left, right))
            });
        }
        (open, all.get())
    }

    fn plain(leaves: &[Hash]) -> Frontier {
        let mut open = Frontier::default();
        leaves.iter().for_each(|leaf| open.push(*leaf));
        open
    }

    #[test]
    fn nodes_and_roots_are_those_of_the_growing_list() {
        let mut tree = PageTree::default();
        for count in 0..70 {
            let leaves = leaves(count);
            tree.make(&leaves, 0..=count as u64);
            assert_eq!(grown(&tree, &leaves), (plain(&leaves), true), "{count} leaves");
            for so_far in 0..=count {
                let open = plain(&leaves[..so_far]);
                let made = (so_far > 0).then(|| open.root());
                assert_eq!(tree.root(&open), made, "{so_far} of {count} leaves");
            }
        }
    }

    #[test]
    fn only_roots_that_were_asked_for_are_there() {
        let (leaves, mut tree) = (leaves(9), PageTree::default());
        tree.make(&leaves, [3, 8].into_iter());
        let there: Vec<usize> = (0..=9).filter(|&count| tree.root(&plain(&leaves[..count])).is_some()).collect();
        assert_eq!(there, [3, 8]);
        tree.clear();
        assert_eq!(tree.root(&plain(&leaves[..3])), None);
    }

    /// A different leaf makes every node above it different.
    #[test]
    fn other_leaves_get_nothing_that_was_made() {
        for changed in 0..16 {
            let (mut leaves, mut tree) = (leaves(16), PageTree::default());
            tree.make(&leaves, 1..=16);
            leaves[changed] = [7; 32];
            let (open, all) = grown(&tree, &leaves);
            assert_eq!((open, all), (plain(&leaves), false), "leaf {changed}");
            for count in 1..=16 {
                let open = plain(&leaves[..count]);
                let made = (count <= changed).then(|| open.root());
                assert_eq!(tree.root(&open), made, "{count} leaves, {changed} changed");
            }
        }
    }
}
