//! Stages of a path and weights of a score, for [`RecallBuilder`](crate::RecallBuilder).
//!
//! ```
//! use holotype::{Stage, Weights};
//! use holotype::query::{Channel, Noun, Part};
//!
//! // through facts 20 -> (concepts 8 -> facts 20 by linked, near) up to 3 hops carry 3
//! let hop = [Stage::of(Noun::Concepts).keep(8), Stage::of(Noun::Facts).keep(20).by([Channel::Linked, Channel::Near])];
//! let path = [Stage::of(Noun::Facts).keep(20), Stage::hops(hop, 3).carry(3)];
//! // score default, utility 0.5, status 10 (failed -1)
//! let weights = Weights::default().weight(Part::Utility, 0.5).weight(Part::Status, 10.0).value("failed", -1.0);
//! # let _ = (path, weights);
//! ```

use super::condition::{Condition, length, name_of};
use holotype_query::plan::{self, Gather, Hops, Interval, Lift, Score, ScoreBase, Term};
use holotype_query::{Channel, Noun, Part};
use std::time::Duration;

/// One stage of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage(plan::Stage);

impl Stage {
    /// A stage that finds things of one sort.
    pub fn of(noun: Noun) -> Stage {
        let gather = Gather { noun, count: None, channels: Vec::new(), pool: None, only: None };
        Stage(plan::Stage::Gather(Box::new(gather)))
    }

    /// Stages that are walked up to `up_to` times.
    pub fn hops(stages: impl IntoIterator<Item = Stage>, up_to: u64) -> Stage {
        let stages = stages.into_iter().map(Stage::into_plan).collect();
        Stage(plan::Stage::Hops(Hops { stages, up_to, carry: None, keep: None }))
    }

    /// From items to the traces, pages or episodes that they came from.
    pub fn lift(noun: Noun) -> Stage {
        Stage(plan::Stage::Lift(Lift { noun, count: None, votes: None }))
    }

    /// The number of rows that the stage keeps; of a group, each hop.
    pub fn keep(mut self, rows: u64) -> Stage {
        let place = match &mut self.0 {
            plan::Stage::Gather(gather) => &mut gather.count,
            plan::Stage::Hops(hops) => &mut hops.keep,
            plan::Stage::Lift(lift) => &mut lift.count,
        };
        *place = Some(rows);
        self
    }

    /// The channels of candidates. Groups and lifts have none, and stay as they are.
    pub fn by(mut self, channels: impl IntoIterator<Item = Channel>) -> Stage {
        if let plan::Stage::Gather(gather) = &mut self.0 {
            gather.channels = channels.into_iter().collect();
        }
        self
    }

    /// The number of candidates of each channel. Groups and lifts have none, and stay as they are.
    pub fn pool(mut self, candidates: u64) -> Stage {
        if let plan::Stage::Gather(gather) = &mut self.0 {
            gather.pool = Some(candidates);
        }
        self
    }

    /// The condition on what may route. Groups and lifts have none, and stay as they are.
    pub fn only(mut self, condition: Condition) -> Stage {
        if let plan::Stage::Gather(gather) = &mut self.0 {
            gather.only = Some(condition.into_predicate());
        }
        self
    }

    /// The number of rows of a group whose text joins the query of the next hop. Other stages stay as they are.
    pub fn carry(mut self, rows: u64) -> Stage {
        if let plan::Stage::Hops(hops) = &mut self.0 {
            hops.carry = Some(rows);
        }
        self
    }

    /// The number of items that must vote for what a lift finds. Other stages stay as they are.
    pub fn votes(mut self, votes: u64) -> Stage {
        if let plan::Stage::Lift(lift) = &mut self.0 {
            lift.votes = Some(votes);
        }
        self
    }

    pub(super) fn into_plan(self) -> plan::Stage {
        self.0
    }
}

/// The weights of the governed score.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights(Score);

impl Default for Weights {
    /// Those of the database's profile.
    fn default() -> Self {
        Weights(Score { base: ScoreBase::Default, terms: Vec::new() })
    }
}

impl Weights {
    /// Those of a profile: `default`, `helm`, `archive` or `agent`.
    pub fn profile(name: &str) -> Weights {
        Weights(Score { base: ScoreBase::Profile(name_of(name)), terms: Vec::new() })
    }

    /// Zero for every part that is not named.
    pub fn zero() -> Weights {
        Weights(Score { base: ScoreBase::Zero, terms: Vec::new() })
    }

    /// Sets the weight of a part.
    pub fn weight(mut self, part: Part, weight: f64) -> Weights {
        let term = Term { part, weight, values: Vec::new(), half_life: None };
        self.0.terms.push(term);
        self
    }

    /// Sets the weight of a single status or source within the part that was set last.
    pub fn value(mut self, name: &str, weight: f64) -> Weights {
        if let Some(term) = self.0.terms.last_mut() {
            term.values.push((name_of(name), weight));
        }
        self
    }

    /// Sets the half-life of recency, the part that was set last.
    pub fn half_life(mut self, half_life: Duration) -> Weights {
        if let Some(term) = self.0.terms.last_mut() {
            term.half_life = Some(Interval::Clock(length(half_life)));
        }
        self
    }

    /// Sets the half-life of recency in steps, the part that was set last.
    pub fn half_life_steps(mut self, steps: u64) -> Weights {
        if let Some(term) = self.0.terms.last_mut() {
            term.half_life = Some(Interval::Steps(steps));
        }
        self
    }

    pub(super) fn into_plan(self) -> Score {
        self.0
    }
}
