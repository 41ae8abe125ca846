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

/// No node is on a higher level; with m = 2 one in four thousand million would be.
const TOP_LEVEL: usize = 31;

impl Params {
    /// The level of the node with that id: l or higher with probability m^-l (paper, section 4.1, with mL = 1/ln m).
    pub(crate) fn level(&self, id: u32) -> usize {
        let random = mix(self.seed ^ mix(u64::from(id)));
        // 53 bits make a number in (0, 1].
        let unit = ((random >> 11) + 1) as f64 / (1u64 << 53) as f64;
        ((-unit.ln() / (self.m.max(2) as f64).ln()) as usize).min(TOP_LEVEL)
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
        assert_eq!(params.level(5), params.level(5));
    }
}
