//! Why credit was refused, and on which line.

/// Credit was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct CreditError {
    /// The line, counted from 1 in the order given; `None` if an option is wrong.
    pub line: Option<usize>,
    /// The fault.
    pub refusal: Refusal,
}

/// A fault of a line or an option.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A number is NaN or infinite.
    #[error("`{field}` is {value}; a finite number is expected")]
    NotFinite {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A number would overflow when squared and summed.
    #[error("`{field}` is {value:e}; numbers up to 1e100 are accepted")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// Two lines for one (group, rollout, step).
    #[error(
        "group {group:?}, rollout {rollout:?} already has step {step} on line {earlier}; remove one of the two lines"
    )]
    DuplicateWrite {
        /// The group.
        group: String,
        /// The rollout.
        rollout: String,
        /// The step.
        step: u64,
        /// The earlier line.
        earlier: usize,
    },
    /// Two lines that only give the reward of one rollout.
    #[error(
        "group {group:?}, rollout {rollout:?} already has a reward line, line {earlier}; remove one of the two lines"
    )]
    DuplicateReward {
        /// The group.
        group: String,
        /// The rollout.
        rollout: String,
        /// The earlier line.
        earlier: usize,
    },
    /// Two lines give different rewards to one rollout.
    #[error(
        "group {group:?}, rollout {rollout:?} has reward {reward}, but {earlier_reward} on line {earlier}; \
         a rollout has one reward"
    )]
    TwoRewards {
        /// The group.
        group: String,
        /// The rollout.
        rollout: String,
        /// The reward of this line.
        reward: f64,
        /// The reward of the earlier line.
        earlier_reward: f64,
        /// The earlier line.
        earlier: usize,
    },
    /// No line gives the reward of a rollout.
    #[error("no line gives the reward of group {group:?}, rollout {rollout:?}; add `reward` to one of its lines")]
    NoReward {
        /// The group.
        group: String,
        /// The rollout.
        rollout: String,
    },
    /// Scores of two templates, whose `log rho` cannot be compared (A.4).
    #[error("the scores were measured with template {template:?}, those of line {earlier} with {earlier_template:?}")]
    TwoTemplates {
        /// The template of this line.
        template: String,
        /// The template of the earlier line.
        earlier_template: String,
        /// The earlier line.
        earlier: usize,
    },
    /// A line has neither a write nor a reward.
    #[error("the line has neither a write nor a reward")]
    Empty,
    /// An option is out of range.
    #[error("option `{option}` is out of range; expected {expected}")]
    Option {
        /// The option.
        option: &'static str,
        /// The allowed values.
        expected: &'static str,
    },
}

impl CreditError {
    pub(super) fn at(line: usize, refusal: Refusal) -> Self {
        CreditError { line: Some(line), refusal }
    }

    /// The same error with every line number it names mapped, as for a file in which some lines were skipped.
    #[must_use]
    pub fn map_lines(mut self, map: impl Fn(usize) -> usize) -> Self {
        self.line = self.line.map(&map);
        match &mut self.refusal {
            Refusal::DuplicateWrite { earlier, .. }
            | Refusal::DuplicateReward { earlier, .. }
            | Refusal::TwoRewards { earlier, .. }
            | Refusal::TwoTemplates { earlier, .. } => *earlier = map(*earlier),
            _ => {}
        }
        self
    }

    pub(super) fn of_options(refusal: Refusal) -> Self {
        CreditError { line: None, refusal }
    }
}

impl std::fmt::Display for CreditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.refusal),
            None => self.refusal.fmt(f),
        }
    }
}

impl std::error::Error for CreditError {}
