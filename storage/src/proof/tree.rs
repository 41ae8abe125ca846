//! Paths in the Merkle tree over all records.
//!
//! RFC 6962, section 2.1, with records' hashes as leaf hashes and BLAKE3 of `01`, left, right as the parent's: a tree
//! over `n` leaves splits at the largest power of two below `n`. So every subtree that is not at the right edge is
//! *complete*: it has `1 << level` leaves from `index << level` on, and its hash never changes as the log grows. These
//! hashes can be stored; every other hash is computed from at most log2 n of them.
//!
//! 1. The verification functions here, and any other verifier of RFC 9162, sections 2.1.3 and 2.1.4, accept the paths
//!    that are computed here.
//! 2. Verification needs only sizes, roots and the path, and accepts any bytes as input.

use crate::chain::{Hash, node};

/// Hashes of complete subtrees.
pub trait Subtrees {
    /// The error of a failed read.
    type Error;

    /// The hash over the `1 << level` leaves from `index << level` on, all of which exist.
    ///
    /// # Errors
    /// Those of the log they are read from.
    fn hash(&mut self, level: u32, index: u64) -> Result<Hash, Self::Error>;
}

/// The root over the first `size` leaves.
///
/// # Errors
/// Those of `subtrees`.
pub fn root<S: Subtrees>(subtrees: &mut S, size: u64) -> Result<Hash, S::Error> {
    match size {
        0 => Ok(blake3::hash(&[]).into()),
        _ => range(subtrees, 0, size),
    }
}

/// The path from leaf `index` up to the root over the first `size` leaves; empty for a leaf that is not among them.
///
/// # Errors
/// Those of `subtrees`.
pub fn inclusion<S: Subtrees>(subtrees: &mut S, index: u64, size: u64) -> Result<Vec<Hash>, S::Error> {
    let mut path = Vec::new();
    let (mut start, mut end) = (0, size);
    if index >= size {
        return Ok(path);
    }
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            path.push(range(subtrees, middle, end)?);
            end = middle;
        } else {
            path.push(range(subtrees, start, middle)?);
            start = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// The consistency proof between the trees over the first `old` and the first `size` leaves; empty if there is nothing
/// to prove.
///
/// # Errors
/// Those of `subtrees`.
pub fn consistency<S: Subtrees>(subtrees: &mut S, old: u64, size: u64) -> Result<Vec<Hash>, S::Error> {
    let mut path = Vec::new();
    if old == 0 || old >= size {
        return Ok(path);
    }
    let (mut start, mut end) = (0, size);
    while old != end {
        let middle = start + split(end - start);
        if old <= middle {
            path.push(range(subtrees, middle, end)?);
            end = middle;
        } else {
            path.push(range(subtrees, start, middle)?);
            start = middle;
        }
    }
    // The verifier knows the old root: the path omits it where it is the subtree itself.
    if start > 0 {
        path.push(range(subtrees, start, end)?);
    }
    path.reverse();
    Ok(path)
}

/// The root that a path computes from a leaf; `None` for a path that does not fit a tree of this size.
#[must_use]
pub fn root_of_inclusion(leaf: &Hash, index: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    let (mut index, mut last) = (index, size.checked_sub(1)?);
    if index > last {
        return None;
    }
    let mut hash = *leaf;
    for sibling in path {
        if last == 0 {
            return None;
        }
        if index & 1 == 1 || index == last {
            hash = node(sibling, &hash);
            while index & 1 == 0 && index != 0 {
                (index, last) = (index >> 1, last >> 1);
            }
        } else {
            hash = node(&hash, sibling);
        }
        (index, last) = (index >> 1, last >> 1);
    }
    (last == 0).then_some(hash)
}

/// True if a path proves that the tree of `old` leaves with `old_root` is a prefix of the tree of `size` leaves with
/// `root`.
#[must_use]
pub fn is_consistent(old: u64, old_root: &Hash, size: u64, root: &Hash, path: &[Hash]) -> bool {
    if old > size {
        return false;
    }
    if old == size {
        return path.is_empty() && old_root == root;
    }
    if old == 0 {
        return path.is_empty() && *old_root == Hash::from(blake3::hash(&[]));
    }
    let (mut index, mut last) = (old - 1, size - 1);
    while index & 1 == 1 {
        (index, last) = (index >> 1, last >> 1);
    }
    let mut path = path.iter();
    let first = if old.is_power_of_two() { Some(old_root) } else { path.next() };
    let Some(&first) = first else { return false };
    let (mut old_hash, mut hash) = (first, first);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if index & 1 == 1 || index == last {
            old_hash = node(sibling, &old_hash);
            hash = node(sibling, &hash);
            while index & 1 == 0 && index != 0 {
                (index, last) = (index >> 1, last >> 1);
            }
        } else {
            hash = node(&hash, sibling);
        }
        (index, last) = (index >> 1, last >> 1);
    }
    last == 0 && old_hash == *old_root && hash == *root
}

/// The root over the given hashes of complete subtrees, all of one level, whose count is a power of two.
#[must_use]
pub fn fold(hashes: &[Hash]) -> Option<Hash> {
    if !hashes.len().is_power_of_two() {
        return None;
    }
    let mut hashes = hashes.to_vec();
    while hashes.len() > 1 {
        hashes = hashes.chunks_exact(2).map(|pair| node(&pair[0], &pair[1])).collect();
    }
    hashes.pop()
}

/// The hash over leaves `start..end`, which must be a subtree.
fn range<S: Subtrees>(subtrees: &mut S, start: u64, end: u64) -> Result<Hash, S::Error> {
    let count = end - start;
    if count.is_power_of_two() {
        return subtrees.hash(count.trailing_zeros(), start / count);
    }
    let middle = start + split(count);
    let left = range(subtrees, start, middle)?;
    Ok(node(&left, &range(subtrees, middle, end)?))
}

/// The largest power of two below `count`, which is at least 2.
fn split(count: u64) -> u64 {
    1 << (63 - (count - 1).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Frontier;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// Every leaf in memory.
    struct Leaves(Vec<Hash>);

    impl Subtrees for Leaves {
        type Error = Infallible;

        fn hash(&mut self, level: u32, index: u64) -> Result<Hash, Infallible> {
            let first = (index << level) as usize;
            Ok(fold(&self.0[first..first + (1 << level)]).unwrap())
        }
    }

    fn leaves(count: u64) -> Leaves {
        Leaves((0..count).map(|i| blake3::hash(&i.to_le_bytes()).into()).collect())
    }

    fn roots(leaves: &Leaves) -> Vec<Hash> {
        let mut frontier = Frontier::default();
        let mut roots = vec![frontier.root()];
        for leaf in &leaves.0 {
            frontier.push(*leaf);
            roots.push(frontier.root());
        }
        roots
    }

    #[test]
    fn every_leaf_of_every_small_tree_is_proven_and_no_other() {
        let mut tree = leaves(40);
        let roots = roots(&tree);
        for size in 0..=40 {
            assert_eq!(root(&mut tree, size).unwrap(), roots[size as usize]);
            for index in 0..size {
                let path = inclusion(&mut tree, index, size).unwrap();
                for (other, leaf) in tree.0.iter().enumerate() {
                    let found = root_of_inclusion(leaf, index, size, &path);
                    assert_eq!(found == Some(roots[size as usize]), other as u64 == index, "{index} of {size}");
                }
                for wrong in 0..size + 2 {
                    let found = root_of_inclusion(&tree.0[index as usize], wrong, size, &path);
                    assert_eq!(found == Some(roots[size as usize]), wrong == index);
                }
                for cut in 0..path.len() {
                    assert_ne!(
                        root_of_inclusion(&tree.0[index as usize], index, size, &path[..cut]),
                        Some(roots[size as usize])
                    );
                }
            }
            assert_eq!(inclusion(&mut tree, size, size).unwrap(), Vec::<Hash>::new());
        }
    }

    #[test]
    fn every_small_tree_continues_its_beginnings_and_no_other() {
        let mut tree = leaves(33);
        let roots = roots(&tree);
        for size in 0..=33_u64 {
            for old in 0..=size {
                let path = consistency(&mut tree, old, size).unwrap();
                let holds = |old, old_root: &Hash, size, path: &[Hash]| {
                    is_consistent(old, old_root, size, &roots[size as usize], path)
                };
                assert!(holds(old, &roots[old as usize], size, &path), "{old} of {size}");
                assert!(old == size || !holds(old, &[7; 32], size, &path));
                assert!(!holds(size, &[7; 32], size, &path));
                if old > 0 {
                    for other in (1..=33).filter(|&other| other != old && other <= size) {
                        assert!(!holds(other, &roots[old as usize], size, &path), "{old} as {other} of {size}");
                    }
                }
                for at in 0..path.len() {
                    let mut wrong = path.clone();
                    wrong[at][3] ^= 4;
                    assert!(!holds(old, &roots[old as usize], size, &wrong));
                    wrong.remove(at);
                    assert!(!holds(old, &roots[old as usize], size, &wrong));
                }
            }
        }
        assert!(!is_consistent(2, &roots[2], 1, &roots[1], &[]));
    }

    proptest! {
        #[test]
        fn large_trees(size in 1_u64..5_000, a in any::<u64>(), b in any::<u64>()) {
            let mut tree = leaves(size);
            let (index, old) = (a % size, b % (size + 1));
            let whole = root(&mut tree, size).unwrap();
            let path = inclusion(&mut tree, index, size).unwrap();
            prop_assert!(path.len() <= 13);
            prop_assert_eq!(root_of_inclusion(&tree.0[index as usize], index, size, &path), Some(whole));
            let before = root(&mut tree, old).unwrap();
            let path = consistency(&mut tree, old, size).unwrap();
            prop_assert!(is_consistent(old, &before, size, &whole, &path));
        }

        #[test]
        fn any_path_is_checked_without_a_panic(
            index in any::<u64>(), size in any::<u64>(), path in proptest::collection::vec(any::<[u8; 32]>(), 0..70),
        ) {
            let _ = root_of_inclusion(&[1; 32], index, size, &path);
            let _ = is_consistent(index, &[1; 32], size, &[2; 32], &path);
        }
    }
}
