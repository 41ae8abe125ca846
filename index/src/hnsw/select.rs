//! Neighbour selection: the candidates that a node is linked to.

use crate::quantize::Codes;

/// A candidate: its index in the level, its position and its distance from the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) index: u32,
    pub(crate) position: u32,
    pub(crate) distance: i32,
}

/// Chooses at most `max` of `candidates`, which are sorted nearest first (paper, algorithm 4).
///
/// A candidate is selected if it is nearer to the node than to all selected before, so that links point in different
/// directions and lead out of clusters. Rejected candidates do not fill up the list: that makes walks longer without
/// higher recall.
pub(crate) fn select_neighbors(codes: &Codes<'_>, candidates: &[Candidate], max: usize, selected: &mut Vec<Candidate>) {
    selected.clear();
    for candidate in candidates {
        if selected.len() == max {
            return;
        }
        let diverse =
            selected.iter().all(|other| codes.distance(candidate.position, other.position) >= candidate.distance);
        if diverse {
            selected.push(*candidate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Metric;

    #[test]
    fn takes_the_nearest_in_each_direction() {
        // Around the node at the origin: two to the right, one to the left, one further left.
        let codes = [0i8, 10, 12, -11, -30];
        let codes = Codes::new(1, Metric::L2, &codes);
        let candidates: Vec<Candidate> = [(1u32, 100), (3, 121), (2, 144), (4, 900)]
            .into_iter()
            .map(|(position, distance)| Candidate { index: position, position, distance })
            .collect();
        let mut selected = Vec::new();
        select_neighbors(&codes, &candidates, 4, &mut selected);
        assert_eq!(selected.iter().map(|c| c.position).collect::<Vec<_>>(), [1, 3]);
        select_neighbors(&codes, &candidates, 1, &mut selected);
        assert_eq!(selected.len(), 1);
    }
}
