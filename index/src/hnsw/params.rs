//! The numbers that shape a graph.

use crate::quantize::mix;

/// How a graph is built; see [`BuildOptions`](crate::segment::BuildOptions) for what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    pub(crate) m: usize,
    pub(crate) m0: usize,
    pub(crate) ef_construction: usize,
    pub(crate) seed: u64,
}

/// No node is on a higher level; with m = 2 one in two thousand million would be.
const TOP_LEVEL: usize = 31;

impl Params {
    /// The level of the node with that id: l or higher with probability m^-l (paper, section 4.1, with mL = 1/ln m).
    ///
    /// Reckoned in integers, because files depend on it: every machine must come to the same level.
    pub(crate) fn level(&self, id: u32) -> usize {
        let random = mix(self.seed ^ mix(u64::from(id)));
        let m = self.m.max(2) as u64;
        let bounds = std::iter::successors(Some(u64::MAX / m), |bound| Some(bound / m));
        bounds.take(TOP_LEVEL).take_while(|bound| random < *bound).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_about_one_node_in_m_of_the_level_below() {
        let params = Params { m: 16, m0: 32, ef_construction: 100, seed: 7 };
        let count = |level| (0..200_000).filter(|id| params.level(*id) >= level).count() as f64;
        let below = [200_000.0, count(1), count(2)];
        for (level, below) in (1..).zip(below) {
            let share = count(level) / below;
            assert!((0.9..1.1).contains(&(share * 16.0)) || below < 1000.0, "level {level}: {share}");
        }
    }
    #[test]
    fn these_ids_are_on_these_levels_forever() {
        let params = Params { m: 4, m0: 8, ef_construction: 100, seed: 7 };
        let levels: Vec<usize> = (0..16).map(|id| params.level(id)).collect();
        assert_eq!(levels, [0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
}
