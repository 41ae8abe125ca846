//! One line of input: a memory write with its scores, or the reward of a rollout.

/// One memory write, with the policy's mean log-probabilities per token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// `S(H_t, m_{t-1})`: the target outcome given the pre-write state with the previous memory (eq. 5); with the empty
    /// memory for the first write (eq. 7). It is not the `s_now` of the previous step, whose pre-write state differs.
    pub s_prev: f64,
    /// `S(H_t, m_t)`: the target outcome given the same state with the written memory (eq. 5).
    pub s_now: f64,
    /// `log h`: the written memory given the state and the target outcome (eq. 9); `None` for an empty memory, which
    /// has no token to be likely. It is left out of its siblings in eq. 10, and its own `log rho` is 0.
    pub log_h: Option<f64>,
}

/// One memory write of a rollout, or the reward of a rollout without one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Write<'a> {
    /// The prompt whose rollouts are compared with each other.
    pub group: &'a str,
    /// The rollout, unique in its group.
    pub rollout: &'a str,
    /// The reward of the rollout; at least one of its lines gives it, and all that do agree.
    pub reward: Option<f64>,
    /// The step of the write with its scores; `None` on a line that only gives a reward.
    pub scored: Option<(u64, Scores)>,
    /// The template that the scores were measured with ([`Template::id`](super::Template::id)), if it is known; all
    /// that are known agree.
    pub template: Option<&'a str>,
}

impl<'a> Write<'a> {
    /// A memory write at a step of a rollout.
    pub fn new(group: &'a str, rollout: &'a str, step: u64, scores: Scores) -> Self {
        Write { group, rollout, reward: None, scored: Some((step, scores)), template: None }
    }

    /// The reward of a rollout, which counts for eq. 3 even if the rollout wrote no memory.
    pub fn reward_only(group: &'a str, rollout: &'a str, reward: f64) -> Self {
        Write { group, rollout, reward: Some(reward), scored: None, template: None }
    }

    /// The same line with the reward of its rollout.
    pub fn reward(mut self, reward: f64) -> Self {
        self.reward = Some(reward);
        self
    }
}
