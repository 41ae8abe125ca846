//! Routing decisions scored by the paper's reward (TierMem D.7, Table 11), and the counts of F.1 and F.2.
//!
//! ```text
//! R = accuracy - cost - waste     accuracy  1 if the chosen path suffices, else -1.5
//!                                 cost      0 for S, 0.1 for R
//!                                 waste     0.4 for R where S sufficed
//! ```
//!
//! An answer that does not parse scores -1. The route of such an answer is ESCALATE all the same.

use super::Action;

/// The coefficients of the reward; the default is Table 11.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reward {
    /// For a decision whose path suffices.
    pub correct: f64,
    /// For one whose path does not.
    pub wrong: f64,
    /// The cost of the first tier.
    pub cost_s: f64,
    /// The cost of raw pages.
    pub cost_r: f64,
    /// The cost of raw pages that were not needed.
    pub waste_r: f64,
    /// For an answer that does not parse.
    pub format_error: f64,
}

impl Default for Reward {
    fn default() -> Self {
        Reward { correct: 1.0, wrong: -1.5, cost_s: 0.0, cost_r: 0.1, waste_r: 0.4, format_error: -1.0 }
    }
}

impl Reward {
    /// The reward of a decision; `None` is an answer that did not parse.
    pub fn of(&self, action: Option<Action>, summaries_suffice: bool, raw_suffices: bool) -> f64 {
        let accuracy = |suffices| if suffices { self.correct } else { self.wrong };
        match action {
            None => self.format_error,
            Some(Action::Answer) => accuracy(summaries_suffice) - self.cost_s,
            Some(Action::Escalate) => {
                let waste = if summaries_suffice { self.waste_r } else { 0.0 };
                accuracy(raw_suffices) - self.cost_r - waste
            }
        }
    }
}

/// Counts over many decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// Decisions.
    pub decisions: u64,
    /// Those that escalate.
    pub escalated: u64,
    /// The sum of their rewards.
    pub reward: f64,
    /// Questions that only the raw path can answer.
    pub hard: u64,
    /// Those of them that were escalated.
    pub hard_escalated: u64,
    /// Escalated although the first tier fails, and the raw path repairs it.
    pub repaired: u64,
    /// Escalated although the first tier fails, and so does the raw path.
    pub unrepaired: u64,
    /// Escalated although the first tier suffices, and the raw path fails.
    pub regressed: u64,
    /// Escalated although the first tier suffices; the raw path does too.
    pub unneeded: u64,
    /// Answered from the first tier in vain, where the raw path suffices: unverifiable omissions.
    pub omitted: u64,
}

impl Score {
    /// Adds a decision.
    pub fn add(&mut self, reward: &Reward, action: Action, summaries_suffice: bool, raw_suffices: bool) {
        self.decisions += 1;
        self.reward += reward.of(Some(action), summaries_suffice, raw_suffices);
        let hard = !summaries_suffice && raw_suffices;
        self.hard += u64::from(hard);
        if action == Action::Answer {
            self.omitted += u64::from(hard);
            return;
        }
        self.escalated += 1;
        self.hard_escalated += u64::from(hard);
        let cell = match (summaries_suffice, raw_suffices) {
            (false, true) => &mut self.repaired,
            (false, false) => &mut self.unrepaired,
            (true, false) => &mut self.regressed,
            (true, true) => &mut self.unneeded,
        };
        *cell += 1;
    }

    /// The mean reward of a decision.
    pub fn mean_reward(&self) -> f64 {
        share_of(self.reward, self.decisions)
    }

    /// The share of decisions that escalate (R-rate).
    pub fn rate(&self) -> f64 {
        share_of(self.escalated as f64, self.decisions)
    }

    /// Recall@hard: the share of the questions that need raw pages which were escalated.
    pub fn recall_at_hard(&self) -> f64 {
        share_of(self.hard_escalated as f64, self.hard)
    }

    /// RepairRate (F.2, eq. 2).
    pub fn repair_rate(&self) -> f64 {
        share_of(self.repaired as f64, self.repaired + self.unrepaired)
    }

    /// RegressRate (F.2, eq. 3).
    pub fn regress_rate(&self) -> f64 {
        share_of(self.regressed as f64, self.regressed + self.unneeded)
    }

    /// The unverifiable omission rate (UOR, 4.3).
    pub fn omission_rate(&self) -> f64 {
        share_of(self.omitted as f64, self.decisions)
    }
}

fn share_of(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reward_is_that_of_table_11() {
        let reward = Reward::default();
        let of = |action, s, r| reward.of(Some(action), s, r);
        assert_eq!(of(Action::Answer, true, true), 1.0);
        assert_eq!(of(Action::Answer, false, true), -1.5);
        assert_eq!(of(Action::Escalate, false, true), 0.9);
        assert_eq!(of(Action::Escalate, true, true), 0.5);
        assert_eq!(of(Action::Escalate, false, false), -1.6);
        assert_eq!(reward.of(None, true, true), -1.0);
    }

    /// The counts of the paper's Table 14.
    #[test]
    fn repair_and_regress_rates_are_those_of_the_paper() {
        let mut score = Score::default();
        for (count, s, r) in [(313, true, true), (26, true, false), (170, false, true), (92, false, false)] {
            (0..count).for_each(|_| score.add(&Reward::default(), Action::Escalate, s, r));
        }
        assert_eq!(score.escalated, 601);
        assert!((score.repair_rate() - 0.649).abs() < 0.001);
        assert!((score.regress_rate() - 0.077).abs() < 0.001);
    }
}
