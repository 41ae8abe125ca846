//! Truncation of a run's context under a budget of tokens (B.2).
//!
//! A policy fires when the prompt has more than 0.8 of the budget. [`Truncation::MemAware`] puts the memories of older
//! steps into one checkpoint and keeps the two newest steps verbatim; [`Truncation::NaiveRecency`] keeps the newest
//! steps that fit, and what older ones remembered is lost. Both have the same target, so that they differ only in what
//! they drop.
//!
//! Invariant: the newest step is always kept whole; its observation is never elided.

use super::run::Run;

/// Newest steps that [`Truncation::MemAware`] keeps verbatim.
const VERBATIM: usize = 2;
/// The share of the budget from which a policy fires.
const FIRES_AT: f64 = 0.8;

/// The policy by which a context is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// All older memories in one checkpoint, and the two newest steps.
    MemAware,
    /// As many of the newest steps as fit.
    NaiveRecency,
}

/// The context that is left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truncated {
    /// The memories of the dropped steps, oldest first; `None` where none is kept.
    pub checkpoint: Option<String>,
    /// The first step that is kept; all from there on are.
    pub from: usize,
    /// The tokens of question, checkpoint and kept steps.
    pub tokens: u64,
    /// The policy fired.
    pub fired: bool,
}

impl Truncation {
    /// The context of a run after its steps so far, for a budget; `count` counts the tokens of a text.
    pub fn apply(self, run: &Run, budget: u64, count: &dyn Fn(&str) -> u64) -> Truncated {
        let of_step: Vec<u64> = run
            .steps
            .iter()
            .map(|step| [&step.memory, &step.think, &step.call, &step.observation].map(|text| count(text)).iter().sum())
            .collect();
        let question = count(&run.question);
        let tokens = |from: usize| question + of_step.iter().skip(from).sum::<u64>();
        let fits = |tokens: u64| tokens as f64 <= FIRES_AT * budget as f64;
        if fits(tokens(0)) {
            return Truncated { tokens: tokens(0), ..Truncated::default() };
        }
        match self {
            Truncation::MemAware => {
                let from = run.steps.len().saturating_sub(VERBATIM);
                let memories = run.steps.iter().take(from).map(|step| step.memory.as_str());
                let memories: Vec<&str> = memories.filter(|memory| !memory.is_empty()).collect();
                let checkpoint = (!memories.is_empty()).then(|| memories.join("\n"));
                let tokens = tokens(from) + checkpoint.as_deref().map_or(0, count);
                Truncated { checkpoint, from, tokens, fired: true }
            }
            Truncation::NaiveRecency => {
                let last = run.steps.len().saturating_sub(1);
                let from = (0..=last).find(|from| fits(tokens(*from))).unwrap_or(last);
                Truncated { checkpoint: None, from, tokens: tokens(from), fired: true }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::RunStep;
    use super::*;

    fn run(steps: usize) -> Run {
        let step = |at: usize| RunStep {
            memory: format!("m{at}"),
            think: "think".to_owned(),
            call: "call".to_owned(),
            observation: "x ".repeat(7).trim_end().to_owned(),
        };
        Run { question: "q".to_owned(), steps: (0..steps).map(step).collect(), ..Run::default() }
    }

    fn words(text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    #[test]
    fn nothing_is_dropped_within_the_budget() {
        for policy in [Truncation::MemAware, Truncation::NaiveRecency] {
            // Five steps of 10 tokens and a question of one: 51 tokens are 0.8 of 64.
            let whole = policy.apply(&run(5), 64, &words);
            assert_eq!(whole, Truncated { tokens: 51, ..Truncated::default() });
            assert!(policy.apply(&run(5), 63, &words).fired);
            assert_eq!(policy.apply(&run(0), 0, &words).from, 0);
        }
    }

    #[test]
    fn memories_survive_only_where_the_policy_knows_them() {
        let aware = Truncation::MemAware.apply(&run(5), 40, &words);
        assert_eq!((aware.checkpoint.as_deref(), aware.from, aware.tokens), (Some("m0\nm1\nm2"), 3, 24));
        let naive = Truncation::NaiveRecency.apply(&run(5), 40, &words);
        assert_eq!((naive.checkpoint, naive.from, naive.tokens), (None, 2, 31));
    }

    #[test]
    fn the_newest_step_is_kept_whatever_the_budget() {
        let naive = Truncation::NaiveRecency.apply(&run(5), 1, &words);
        assert_eq!((naive.from, naive.tokens), (4, 11));
        let aware = Truncation::MemAware.apply(&run(1), 1, &words);
        assert_eq!((aware.checkpoint, aware.from, aware.tokens), (None, 0, 11));
    }
}
