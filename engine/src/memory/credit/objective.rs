//! Token level: mean log-probabilities (eqs. 5, 9), the scatter of credit to tokens (eq. 15), the clipped objective
//! (eq. 16).
//!
//! The KL term of eq. 16 is estimated per token as `exp(q - p) - (q - p) - 1` for policy `p` and reference `q`, the
//! non-negative estimator of GRPO; the paper names none.

use super::compute::Credit;
use super::error::{CreditError, Refusal};
use super::write::Write;
use std::ops::Range;

/// The tokens of one memory write in a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemSpan {
    /// The step of the write.
    pub step: u64,
    /// Its tokens.
    pub tokens: Range<usize>,
}

/// Log-probabilities of the tokens of one rollout, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RolloutTokens {
    /// Under the policy being trained.
    pub policy: Vec<f64>,
    /// Under the policy that sampled them.
    pub old: Vec<f64>,
    /// Under the reference policy; empty leaves the KL term out.
    pub reference: Vec<f64>,
    /// The advantage of each token, from [`scatter`].
    pub advantages: Vec<f64>,
}

/// Constants of eq. 16, which the paper takes from its baseline without naming them; these are VeRL's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectiveOptions {
    /// `epsilon`: how far the ratio counts from 1. Default 0.2.
    pub clip: f64,
    /// `beta_KL`. Default 0.001.
    pub kl_weight: f64,
}

impl Default for ObjectiveOptions {
    fn default() -> Self {
        ObjectiveOptions { clip: 0.2, kl_weight: 0.001 }
    }
}

/// The value of eq. 16 with its parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Objective {
    /// `J`: to be maximised.
    pub value: f64,
    /// The mean over rollouts of the clipped surrogate.
    pub surrogate: f64,
    /// The mean over rollouts of the KL estimate.
    pub kl: f64,
    /// Share of tokens for which clipping changed the surrogate.
    pub clipped_share: f64,
}

/// The mean log-probability of tokens (eqs. 5 and 9); `None` if there is no token.
pub fn mean_log_prob(tokens: &[f64]) -> Option<f64> {
    (!tokens.is_empty()).then(|| tokens.iter().sum::<f64>() / tokens.len() as f64)
}

/// The advantage of each of `len` tokens of a rollout (eq. 15): `A^T` everywhere, `A^T + lambda A~` in its memory
/// writes.
///
/// `lines` are the lines of the rollout with their credit.
///
/// # Errors
///
/// A span that is beyond the tokens, overlaps an earlier one, or names a step without a line; the line of the error is
/// that of the span, counted from 1.
pub fn scatter(len: usize, spans: &[MemSpan], lines: &[(Write<'_>, Credit)]) -> Result<Vec<f64>, CreditError> {
    let trajectory = lines.first().map_or(0.0, |(_, credit)| credit.trajectory_advantage);
    let mut advantages = vec![trajectory; len];
    let mut taken = vec![false; len];
    for (index, span) in spans.iter().enumerate() {
        let refuse = |expected| Err(CreditError::at(index + 1, Refusal::Option { option: "mem", expected }));
        let of_step = |(write, credit): &(Write<'_>, Credit)| {
            let (step, _) = write.scored?;
            credit.write.filter(|_| step == span.step)
        };
        let Some(credit) = lines.iter().find_map(of_step) else {
            return refuse("the step of a memory write of the rollout");
        };
        let (Some(tokens), Some(taken)) = (advantages.get_mut(span.tokens.clone()), taken.get_mut(span.tokens.clone()))
        else {
            return refuse("a range of the rollout's tokens, start before end");
        };
        if taken.contains(&true) {
            return refuse("tokens that no other memory write has");
        }
        tokens.fill(credit.token_advantage);
        taken.fill(true);
    }
    Ok(advantages)
}

/// The clipped objective over rollouts (eq. 16), each the mean over its tokens; rollouts without tokens count as 0.
///
/// # Errors
///
/// A rollout whose lists differ in length or hold a number that is not finite (the line of the error is the rollout,
/// counted from 1), and an option below 0.
pub fn objective(rollouts: &[RolloutTokens], options: &ObjectiveOptions) -> Result<Objective, CreditError> {
    for (option, value) in [("clip", options.clip), ("kl_weight", options.kl_weight)] {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(CreditError::of_options(Refusal::Option { option, expected: "a number of at least 0" }));
        }
    }
    let (mut surrogate, mut kl, mut clipped, mut count) = (0.0, 0.0, 0_usize, 0_usize);
    for (index, rollout) in rollouts.iter().enumerate() {
        check(rollout).map_err(|refusal| CreditError::at(index + 1, refusal))?;
        let len = rollout.policy.len();
        if len == 0 {
            continue;
        }
        let mut sum = 0.0;
        for ((policy, old), advantage) in rollout.policy.iter().zip(&rollout.old).zip(&rollout.advantages) {
            let ratio = (policy - old).exp();
            let full = ratio * advantage;
            let bounded = ratio.clamp(1.0 - options.clip, 1.0 + options.clip) * advantage;
            clipped += usize::from(bounded < full);
            sum += full.min(bounded);
        }
        let divergence = |(policy, reference): (&f64, &f64)| {
            let gap = reference - policy;
            gap.exp_m1() - gap
        };
        kl += rollout.policy.iter().zip(&rollout.reference).map(divergence).sum::<f64>() / len as f64;
        surrogate += sum / len as f64;
        count += len;
    }
    let mean = |sum: f64| sum / rollouts.len().max(1) as f64;
    let (surrogate, kl) = (mean(surrogate), mean(kl));
    let clipped_share = clipped as f64 / count.max(1) as f64;
    Ok(Objective { value: surrogate - options.kl_weight * kl, surrogate, kl, clipped_share })
}

fn check(rollout: &RolloutTokens) -> Result<(), Refusal> {
    let len = rollout.policy.len();
    let option = |option, expected| Err(Refusal::Option { option, expected });
    if rollout.old.len() != len {
        return option("old", "one log-probability per token of `policy`");
    }
    if !rollout.reference.is_empty() && rollout.reference.len() != len {
        return option("reference", "one log-probability per token of `policy`, or none at all");
    }
    if rollout.advantages.len() != len {
        return option("advantages", "one advantage per token of `policy`");
    }
    let lists = [
        ("policy", &rollout.policy),
        ("old", &rollout.old),
        ("reference", &rollout.reference),
        ("advantages", &rollout.advantages),
    ];
    for (field, list) in lists {
        if let Some(value) = list.iter().find(|value| !value.is_finite()) {
            return Err(Refusal::NotFinite { field, value: *value });
        }
    }
    Ok(())
}
