//! Build parameters of a graph, and the level of a node.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::logged::LoggedVectors;
use crate::quantize::mix;
use crate::scorer::{BatchScorer, CpuScorer};
use crate::segment::layout::MAX_LINKS;

/// Build parameters of a graph; see [`BuildOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    pub(crate) m: usize,
    pub(crate) m0: usize,
    pub(crate) ef_construction: usize,
    pub(crate) seed: u64,
}

/// The highest level. With m = 2, only one node in two thousand million would be on a higher one.
const TOP_LEVEL: usize = 31;

impl Params {
    /// The level of the node with that id: l or higher with probability m^-l (paper, section 4.1, with mL = 1/ln m).
    ///
    /// Computed in integers, because files depend on it: every machine must compute the same level.
    pub(crate) fn level(&self, id: u32) -> usize {
        let random = mix(self.seed ^ mix(u64::from(id)));
        let m = self.m.max(2) as u64;
        let bounds = std::iter::successors(Some(u64::MAX / m), |bound| Some(bound / m));
        bounds.take(TOP_LEVEL).take_while(|bound| random < *bound).count()
    }
}

/// The progress of a build or a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Vectors linked so far.
    pub done: usize,
    /// Vectors to link.
    pub total: usize,
}

/// Options for building a segment.
#[derive(Clone, Copy)]
pub struct BuildOptions<'a> {
    /// The number of links of a node above level 0; twice as many at level 0.
    pub m: usize,
    /// The number of candidates from which a node's links are selected.
    pub ef_construction: usize,
    /// The number of threads. With one thread, equal input gives equal bytes.
    pub threads: usize,
    /// The seed of the nodes' levels.
    pub seed: u64,
    /// The least number of vectors for a graph; smaller segments are scanned.
    pub graph_from: usize,
    /// Called repeatedly, from any of the threads.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Setting this flag ends the build with [`Error::Cancelled`].
    pub cancel: Option<&'a AtomicBool>,
    /// Compares vectors for calibration, and for neighbour lists if it does that faster than walks.
    pub scorer: &'a dyn BatchScorer,
    /// The log, if the exact vectors stand there as well. A merge that links then refers to it.
    pub log: Option<&'a dyn LoggedVectors>,
}

impl Default for BuildOptions<'_> {
    fn default() -> Self {
        Self {
            m: 16,
            ef_construction: 200,
            threads: 1,
            seed: 0,
            graph_from: 2048,
            progress: None,
            cancel: None,
            scorer: &CpuScorer,
            log: None,
        }
    }
}

impl std::fmt::Debug for BuildOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuildOptions")
            .field("m", &self.m)
            .field("ef_construction", &self.ef_construction)
            .field("threads", &self.threads)
            .field("seed", &self.seed)
            .field("graph_from", &self.graph_from)
            .finish_non_exhaustive()
    }
}

impl BuildOptions<'_> {
    /// The graph parameters of these options.
    pub(crate) fn params(&self) -> Result<Params> {
        let (m, m0) = (self.m, self.m.saturating_mul(2));
        if m < 2 || m0 > MAX_LINKS {
            return Err(Error::Links { m, max: MAX_LINKS / 2 });
        }
        Ok(Params { m, m0, ef_construction: self.ef_construction.max(m0), seed: self.seed })
    }

    /// Fails if the caller requested cancellation.
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        match self.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(Error::Cancelled),
            _ => Ok(()),
        }
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
