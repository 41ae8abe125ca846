//! The cost model of filtered search: which strategy to use, and when to give one up.
//!
//! The unit of cost is one *expansion*: reading the link list of a node and comparing its unvisited neighbours with the
//! query. Three strategies find the nearest vectors that match a filter:
//!
//! | strategy | cost in expansions | suits |
//! |---|---|---|
//! | scan the codes of all matches | matches / [`CODES_PER_EXPANSION`] | few matches |
//! | walk all nodes and collect matches | ef / share of matches near the query | a large share of matches |
//! | walk matching nodes ([`matching`](super::matching)) | ef * [`EXPANSIONS_PER_MATCH`] | many matches, low share |
//!
//! The share of matches near the query depends on how the filter correlates with the vectors, and only a walk reveals
//! it. So [`FilterPlan::choose`] starts a collecting walk with a [`CostBudget`], and the walk stops as soon as the
//! share it has met predicts a higher cost than the fallback. Counts of matches are exact
//! ([`id_set`](crate::segment::id_set)).
//!
//! All tunings of filtered search are in this file. They affect speed and recall only, never the files.

/// Codes that a sequential scan compares in the time of one expansion. Measured with 128 and with 384 dimensions, on
/// 60,000 and 1,000,000 vectors: 15 to 25.
const CODES_PER_EXPANSION: f64 = 16.0;

/// Matches up to which a scan is cheaper than any walk.
const ALWAYS_SCANNED: u64 = 2048;

/// A scan is also cheaper than any walk up to this many matches for each candidate of ef.
const ALWAYS_SCANNED_PER_EF: u64 = 8;

/// Matches up to which a scan is about as fast as a walk over matching nodes. A scan misses nothing, so it wins.
const SCANNED_BEFORE_MATCHING_WALK: u64 = 8192;

/// Matches up to which a scan costs no more than a matching walk that has to step over non-matching nodes.
const SCANNED_BEFORE_BRIDGED_WALK: u64 = 65_536;

/// Share of matching nodes below which a collecting walk meets too few matches, and a matching walk steps over too many
/// other nodes unless matches are linked to each other.
const MIN_WALKED_SHARE: f64 = 0.008;

/// Expansions per kept match while a matching walk steps over non-matching nodes.
const EXPANSIONS_PER_MATCH: f64 = 5.0;

/// Matches may be this many times denser near the query than overall. If even that density is too low, no collecting
/// walk is tried.
const MAX_LOCAL_DENSITY: f64 = 4.0;

/// Expansions after which the share of matches met so far is a fair estimate.
const MIN_EXPANSIONS_JUDGED: usize = 32;

/// A collecting walk stops in any case after this many times the cost of the fallback.
const MAX_OVERRUN: f64 = 2.0;

/// A matching walk starts from a sample of one match in this many.
pub(crate) const MATCHES_PER_SAMPLE: u64 = 16;

/// Largest sample of matches.
pub(crate) const MAX_SAMPLES: u64 = 4096;

/// A matching walk pays if at most one sample in this many is about as near as the best. Otherwise the walk would
/// expand so many nodes that a scan is faster.
pub(crate) const SAMPLES_PER_NEAR_MATCH: usize = 24;

/// Matches whose links are inspected to find out whether matches are linked to each other.
pub(crate) const LINK_PROBES: usize = 32;

/// Matches count as linked to each other if at least one of this many links leads to another match.
pub(crate) const LINKS_PER_MATCHING_LINK: u32 = 4;

/// Non-matching neighbours that a matching walk steps over from one node, at most.
pub(crate) const MAX_BRIDGES: usize = 128;

/// Matches up to which a scan compares exact vectors. Above, it compares codes first.
pub(crate) const EXACT_SCAN_COUNT: u64 = 256;

/// Candidates that a scan of codes or a matching walk keeps at least. When matches are far from the query, many of them
/// are about equally far.
pub(crate) const MIN_FILTERED_CANDIDATES: usize = 512;

/// A matching walk searches as deeply as one with this many times ef: when the query is far from all matches, few paths
/// lead to the nearest.
pub(crate) const MATCHING_WALK_EF_FACTOR: usize = 2;

/// The strategy of a search among the matches of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FilterPlan {
    /// Compare all matches.
    Scan,
    /// Walk over all nodes and collect matches, within a budget.
    Collecting(CostBudget),
    /// Walk over matching nodes.
    Matching {
        /// Walk wherever the matches are, even where a scan might cost less.
        always: bool,
    },
}

impl FilterPlan {
    /// The plan for `matching` of `count` nodes, keeping `ef` candidates.
    pub(crate) fn choose(matching: u64, count: u64, ef: usize) -> Self {
        let (share, budget) = (matching as f64 / count as f64, CostBudget::new(matching, ef));
        if matching <= ALWAYS_SCANNED.max(ef as u64 * ALWAYS_SCANNED_PER_EF) {
            return Self::Scan;
        }
        let is_hopeless = matching <= SCANNED_BEFORE_BRIDGED_WALK && budget.cost_ratio(share * MAX_LOCAL_DENSITY) > 1.0;
        if share < MIN_WALKED_SHARE || is_hopeless {
            return Self::fallback(matching, count);
        }
        Self::Collecting(budget)
    }

    /// The plan when a collecting walk is not worth trying or has exhausted its budget.
    pub(crate) fn fallback(matching: u64, count: u64) -> Self {
        if matching <= SCANNED_BEFORE_MATCHING_WALK {
            return Self::Scan;
        }
        let share = matching as f64 / count as f64;
        Self::Matching { always: matching > SCANNED_BEFORE_BRIDGED_WALK && share >= MIN_WALKED_SHARE }
    }
}

/// The number of expansions that a collecting walk may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostBudget {
    ef: f64,
    /// The cost of the fallback, in expansions.
    fallback_cost: f64,
}

impl CostBudget {
    /// The budget of a walk that collects `ef` of `matching` nodes.
    pub(crate) fn new(matching: u64, ef: usize) -> Self {
        let ef = ef as f64;
        let scan = matching.min(SCANNED_BEFORE_BRIDGED_WALK) as f64 / CODES_PER_EXPANSION;
        let fallback_cost = match matching > SCANNED_BEFORE_BRIDGED_WALK {
            true => scan.max(ef * EXPANSIONS_PER_MATCH),
            false => scan,
        };
        Self { ef, fallback_cost }
    }

    /// Returns true if a walk over nodes of which `share` matches costs less than the fallback.
    pub(crate) fn covers(&self, share: f64) -> bool {
        self.cost_ratio(share) < 1.0
    }

    /// The predicted cost of a collecting walk relative to that of the fallback.
    fn cost_ratio(&self, share: f64) -> f64 {
        self.ef / share / self.fallback_cost
    }

    /// Returns true if a walk should stop after `expanded` nodes. `share_met` returns the share of matches among the
    /// nodes met.
    #[inline]
    pub(crate) fn is_exhausted(&self, expanded: usize, share_met: impl FnOnce() -> f64) -> bool {
        expanded >= MIN_EXPANSIONS_JUDGED
            && (expanded as f64 > self.fallback_cost * MAX_OVERRUN || !self.covers(share_met()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_follows_number_and_share_of_matches() {
        for (matching, count, ef) in [(1, 100_000, 64), (3000, 200_000, 5_000), (5_000, 600_000, 64)] {
            assert_eq!(FilterPlan::choose(matching, count, ef), FilterPlan::Scan, "{ef} of {matching} of {count}");
        }
        for (matching, count, ef) in [(20_000, 4_000_000, 64), (20_000, 200_000, 2_000)] {
            assert_eq!(FilterPlan::choose(matching, count, ef), FilterPlan::Matching { always: false });
        }
        for (matching, count, ef) in [(20_000, 200_000, 64), (5_000, 60_000, 64), (100_000, 10_000_000, 64)] {
            let collecting = FilterPlan::Collecting(CostBudget::new(matching, ef));
            assert_eq!(FilterPlan::choose(matching, count, ef), collecting, "{ef} of {matching} of {count}");
        }
        assert_eq!(FilterPlan::fallback(SCANNED_BEFORE_MATCHING_WALK, 60_000), FilterPlan::Scan);
        for (matching, count, always) in [(20_000, 60_000, false), (70_000, 100_000, true), (70_000, 10_000_000, false)]
        {
            let plan = FilterPlan::fallback(matching, count);
            assert_eq!(plan, FilterPlan::Matching { always }, "{matching} of {count}");
        }
    }

    #[test]
    fn the_budget_is_exhausted_when_a_walk_costs_more_than_the_fallback() {
        // A scan of 16,000 codes costs 1000 expansions.
        let budget = CostBudget::new(16_000, 50);
        assert!(budget.covers(0.06) && !budget.covers(0.04));
        assert!(CostBudget::new(100_000, 5000).covers(0.25) && !CostBudget::new(100_000, 5000).covers(0.15));
        assert!(!budget.is_exhausted(MIN_EXPANSIONS_JUDGED - 1, || 0.0));
        assert!(budget.is_exhausted(MIN_EXPANSIONS_JUDGED, || 0.0));
        assert!(!budget.is_exhausted(2000, || 0.06));
        assert!(budget.is_exhausted(2000, || 0.04));
        assert!(budget.is_exhausted(2001, || 1.0));
    }
}
