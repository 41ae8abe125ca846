//! Tokens of rollouts: the advantage of each (eq. 15), and the clipped objective over all (eq. 16).

use super::lines::{Line, Tokens};
use crate::failure::{Failure, Problem};
use holotype::credit::{Credit, CreditError, Credits, ObjectiveOptions, RolloutTokens, Write, objective, scatter};
use std::collections::HashMap;
use std::io;

/// The tokens of each line of them, with their advantages.
pub(super) fn scatter_all(
    of_tokens: &[(&Line<'_>, &Tokens<'_>)],
    writes: &[Write<'_>],
    credits: &Credits,
    file: &str,
) -> Result<Vec<RolloutTokens>, Failure> {
    if of_tokens.is_empty() {
        return Ok(Vec::new());
    }
    let mut of_rollout: HashMap<(&str, &str), Vec<(Write<'_>, Credit)>> = HashMap::new();
    for (write, credit) in writes.iter().zip(&credits.lines) {
        of_rollout.entry((write.group, write.rollout)).or_default().push((*write, *credit));
    }
    let mut scattered = Vec::with_capacity(of_tokens.len());
    for (line, tokens) in of_tokens {
        let refused = |why: String| Problem::input("credit", why).file(file).at(line.number as u64, 1);
        let (group, rollout) = (tokens.group, tokens.rollout);
        let Some(lines) = of_rollout.get(&(group, rollout)) else {
            return Err(refused(format!("no line gives the reward of group {group:?}, rollout {rollout:?}")).into());
        };
        let (policy, reference) = (tokens.policy.clone(), tokens.reference.clone());
        let advantages = scatter(policy.len(), &tokens.spans, lines)
            .map_err(|error| refused(format!("span {}: {}", error.line.unwrap_or(1), error.refusal)))?;
        let old = tokens.old.clone().unwrap_or_else(|| policy.clone());
        scattered.push(RolloutTokens { policy, old, reference, advantages });
    }
    Ok(scattered)
}

/// The line of the objective; `None` without tokens.
pub(super) fn objective_of(
    rollouts: &[RolloutTokens],
    of_tokens: &[(&Line<'_>, &Tokens<'_>)],
    (clip, kl_weight): (f64, f64),
    file: &str,
) -> Result<Option<String>, Failure> {
    let refused = |error: CreditError| {
        let problem = Problem::input("credit", error.refusal.to_string());
        let line = error.line.and_then(|line| of_tokens.get(line.checked_sub(1)?));
        match line {
            Some((line, _)) => problem.file(file).at(line.number as u64, 1),
            None => problem.hint("`holotype credit --help` lists the options"),
        }
    };
    let found = objective(rollouts, &ObjectiveOptions { clip, kl_weight }).map_err(refused)?;
    let line = serde_json::json!({
        "objective": found.value, "surrogate": found.surrogate, "kl": found.kl, "clipped_share": found.clipped_share,
    });
    Ok((!rollouts.is_empty()).then(|| line.to_string()))
}

/// Appends the advantages to the members of a line.
pub(super) fn render(text: &str, advantages: &[f64], out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(text.strip_suffix('}').unwrap_or(text).trim_end().as_bytes());
    out.extend_from_slice(b",\"advantages\":");
    serde_json::to_writer(&mut *out, advantages)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}
