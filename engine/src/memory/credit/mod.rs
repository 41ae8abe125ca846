//! HiMPO memory credit: how much each memory write of a group of rollouts contributed (paper sections 3.1 to 3.4).
//!
//! The caller measures three log-probabilities per memory write, all under the same pre-write state `H_t`, and this
//! module computes everything after that, exactly and without a model:
//!
//! | quantity | equation | field |
//! |---|---|---|
//! | `A^T = (R - mean R) / (sd R + eps)` within the group | 3 | [`Credit::trajectory_advantage`] |
//! | `D = S(H_t, m_t) - S(H_t, m_{t-1})` | 5 to 7 | [`WriteCredit::delta`] |
//! | `D^ = (D - mean D) / (sd D + eps)` within (group, step) | 8 | [`WriteCredit::delta_hat`] |
//! | `log rho = log h - mean log h` within (group, step), clipped | 9, 10, A.4 | [`WriteCredit::log_rho`] |
//! | `beta = clip(c / (sd log rho + eps), beta_min, beta_max)` | 17 | [`Credits::beta`] |
//! | `G = sigmoid(beta (sgn(D^) log rho - tau_rho))` | 11 | [`WriteCredit::gate`] |
//! | `A = G D^`, and 0 if negative in a successful rollout | 12, 13 | [`WriteCredit::advantage`] |
//! | `A~_t = alpha A_t + (1 - alpha) A~_{t+1}` along the rollout's writes | 14 | [`WriteCredit::smoothed`] |
//! | `A^T + lambda A~` on the tokens of the write | 15 | [`WriteCredit::token_advantage`] |
//!
//! Choices that the paper leaves open:
//!
//! - Standard deviations are those of the population ([`Deviation::Sample`] divides by n - 1).
//! - The batch of eq. 17 is all writes of one call, and its deviation is that of the clipped `log rho`.
//! - A write without siblings at its step has `D^ = 0` and `log rho = 0`; `sgn(0) = 0`; equal values standardise to
//!   exactly 0.
//! - A rollout without writes counts for the mean and deviation of the rewards ([`Write::reward_only`]).
//! - The sequence of eq. 14 is the rollout's writes by step; gaps between steps do not matter.
//!
//! The order of the input changes no bit of the output: every sum runs in the order of (group, step, rollout).
//! Around the equations: [`Template`] makes the prompts of the three measurements, [`Scoreboard`] takes them from a
//! policy, [`intervene`] plants faults in stored runs and [`deconfound`] measures how well credit finds them (Appendix
//! D), [`Truncation`] fits a run's context into a budget (B.2), [`Transcript`] reads runs as policies write them.
//!
//! Cost: O(n log n) time for n lines, about 200 bytes of memory each.

mod compute;
mod deconfound;
mod error;
mod intervene;
mod objective;
mod options;
mod rollout;
mod run;
mod template;
mod transcript;
mod truncate;
mod write;

pub use compute::{Credit, Credits, WriteCredit, credit, mean_credit};
pub use deconfound::{Blame, Deconfounding, blame, deconfound, utilities};
pub use error::{CreditError, Refusal};
pub use intervene::{ChangeAnswer, Corrupted, Corruptor, Intervened, Intervention, Module, intervene};
pub use objective::{MemSpan, Objective, ObjectiveOptions, RolloutTokens, mean_log_prob, objective, scatter};
pub use options::{CreditOptions, Deviation};
pub use rollout::{Rollout, RolloutStep};
pub use run::{Run, RunStep, Scoreboard, Scorer, Scoring, WordScorer};
pub use template::{PreWriteState, Template};
pub use transcript::{Transcript, exact_match, word_f1};
pub use truncate::{Truncated, Truncation};
pub use write::{Scores, Write};

#[cfg(test)]
mod planted;
#[cfg(test)]
mod tests;
