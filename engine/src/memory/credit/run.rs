//! Runs of an agent with a memory of its own, and their scores (eqs. 1, 5, 7 and 9).
//!
//! At step t the agent writes `m_t`, thinks `r_t`, calls `c_t` and sees `o_t`. The state before the write of step t is
//! the question, `m_{t-1}` and the interaction of step t-1; the one after the last step is what the answer is given
//! from. A [`Scorer`] gives log-probabilities of tokens: the policy in training, or [`WordScorer`], which needs no
//! model and serves tests, examples and audits of stored runs without one.

use super::objective::mean_log_prob;
use super::template::{PreWriteState, Template};
use super::write::Scores;
use crate::{Error, Result};
use std::collections::HashSet;

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunStep {
    /// `m_t`: the memory written at its beginning.
    pub memory: String,
    /// `r_t`.
    pub think: String,
    /// `c_t`.
    pub call: String,
    /// `o_t`.
    pub observation: String,
}

/// A run with its reward.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// The prompt whose rollouts are compared with each other.
    pub group: String,
    /// The rollout, unique in its group.
    pub rollout: String,
    /// `q`.
    pub question: String,
    /// `z*`: the target outcome.
    pub outcome: String,
    /// `R`.
    pub reward: f64,
    /// The steps, in order.
    pub steps: Vec<RunStep>,
}

impl Run {
    /// The state before the write of step `step`; with the number of steps, the one that the answer is given from.
    pub fn state(&self, step: usize) -> PreWriteState<'_> {
        let before = step.checked_sub(1).and_then(|before| self.steps.get(before));
        let part = |of: fn(&RunStep) -> &String| before.map_or("", |step| of(step).as_str());
        PreWriteState {
            question: &self.question,
            memory: part(|step| &step.memory),
            think: part(|step| &step.think),
            call: part(|step| &step.call),
            observation: part(|step| &step.observation),
        }
    }
}

/// A continuation to score, with the state its prompt is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scoring<'a> {
    /// The state, its memory slot replaced where eq. 5 replaces it.
    pub state: PreWriteState<'a>,
    /// The target outcome, where the prompt gives it away (eq. 9).
    pub given: Option<&'a str>,
    /// The text whose tokens are scored.
    pub continuation: &'a str,
}

impl Scoring<'_> {
    /// The prompt before the continuation.
    pub fn prompt(&self, template: &Template) -> String {
        match self.given {
            Some(outcome) => template.hindsight(&self.state, outcome),
            None => template.answer(&self.state),
        }
    }
}

/// Gives log-probabilities under a policy.
pub trait Scorer {
    /// The log-probability of each token of the continuation after its prompt.
    ///
    /// # Errors
    /// What the policy fails with; scoring stops with it.
    fn log_probs(&self, scoring: &Scoring<'_>, template: &Template) -> Result<Vec<f64>>;

    /// The same for several scorings, in their order: in one call, where the policy takes many.
    ///
    /// # Errors
    /// As [`Scorer::log_probs`].
    fn log_probs_of_all(&self, scorings: &[Scoring<'_>], template: &Template) -> Result<Vec<Vec<f64>>> {
        scorings.iter().map(|scoring| self.log_probs(scoring, template)).collect()
    }
}

/// The built-in scorer (ours): a word of the continuation is as likely as the parts of the state that hold it make it,
/// the memory more than what was seen, and that more than what was thought or asked.
///
/// It counts presence, no grammar: enough to tell a memory that holds what an answer needs from one that lost it.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordScorer;

impl WordScorer {
    /// The probability of a word that nothing holds.
    const FLOOR: f64 = 1e-3;
}

/// The words of a text, in lower case.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

impl Scorer for WordScorer {
    fn log_probs(&self, scoring: &Scoring<'_>, _: &Template) -> Result<Vec<f64>> {
        let state = &scoring.state;
        let parts = [
            (0.6, state.memory),
            (0.3, state.observation),
            (0.2, state.think),
            (0.2, state.call),
            (0.1, state.question),
            (0.5, scoring.given.unwrap_or_default()),
        ];
        let parts = parts.map(|(weight, text)| (weight, words(text).collect::<HashSet<_>>()));
        let of_word = |word: String| {
            let held = parts.iter().filter(|(_, words)| words.contains(&word));
            let missed: f64 = held.map(|(weight, _)| 1.0 - weight).product();
            (1.0 - (1.0 - Self::FLOOR) * missed).ln()
        };
        let scores: Vec<f64> = words(scoring.continuation).map(of_word).collect();
        // A text of signs alone has no word, and is as unlikely as a word that nothing holds.
        let is_signs = scores.is_empty() && !scoring.continuation.is_empty();
        Ok(if is_signs { vec![Self::FLOOR.ln()] } else { scores })
    }
}

/// A scorer with its template.
#[derive(Clone, Copy)]
pub struct Scoreboard<'s> {
    /// Gives log-probabilities.
    pub scorer: &'s dyn Scorer,
    /// Makes prompts.
    pub template: &'s Template,
}

impl Scoreboard<'_> {
    /// `S`: the mean log-probability of the target outcome after a state (eq. 5).
    ///
    /// # Errors
    /// Those of the scorer; [`Error::Invalid`] when it gives no token or a number that is not finite.
    pub fn answerability(&self, run: &Run, state: PreWriteState<'_>) -> Result<f64> {
        self.mean(&Scoring { state, given: None, continuation: &run.outcome })
    }

    /// The scores of every write of a run (eqs. 5, 7 and 9).
    ///
    /// # Errors
    /// As [`Scoreboard::answerability`].
    pub fn scores(&self, run: &Run) -> Result<Vec<Scores>> {
        let outcome = |state| Scoring { state, given: None, continuation: &run.outcome };
        let mut scorings = Vec::with_capacity(3 * run.steps.len());
        for (at, step) in run.steps.iter().enumerate() {
            let state = run.state(at);
            scorings.push(outcome(state));
            scorings.push(outcome(PreWriteState { memory: &step.memory, ..state }));
            // An empty memory has no token.
            if !step.memory.is_empty() {
                scorings.push(Scoring { state, given: Some(&run.outcome), continuation: &step.memory });
            }
        }
        let all = self.scorer.log_probs_of_all(&scorings, self.template)?;
        if all.len() != scorings.len() {
            let (found, asked) = (all.len(), scorings.len());
            return Err(Error::Invalid(format!("a scorer gave {found} scores for {asked} continuations")));
        }
        let mut means = all.iter().map(|scores| mean_of(scores));
        let mut next = || means.next().unwrap_or_else(|| mean_of(&[]));
        let of_step = |step: &RunStep| {
            let (s_prev, s_now) = (next()?, next()?);
            let log_h = if step.memory.is_empty() { None } else { Some(next()?) };
            Ok(Scores { s_prev, s_now, log_h })
        };
        run.steps.iter().map(of_step).collect()
    }

    fn mean(&self, scoring: &Scoring<'_>) -> Result<f64> {
        mean_of(&self.scorer.log_probs(scoring, self.template)?)
    }
}

/// The mean log-probability of some tokens.
fn mean_of(scores: &[f64]) -> Result<f64> {
    let mean = mean_log_prob(scores).filter(|mean| mean.is_finite());
    mean.ok_or_else(|| Error::Invalid("a scorer gives a finite log-probability to each of some tokens".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_step_holds_what_came_before_its_write() {
        let step = |name: &str| RunStep {
            memory: format!("m{name}"),
            think: format!("r{name}"),
            call: format!("c{name}"),
            observation: format!("o{name}"),
        };
        let run = Run { question: "q".to_owned(), steps: vec![step("0"), step("1")], ..Run::default() };
        assert_eq!(run.state(0), PreWriteState { question: "q", ..PreWriteState::default() });
        let after = PreWriteState { question: "q", memory: "m1", think: "r1", call: "c1", observation: "o1" };
        assert_eq!(run.state(2), after);
    }

    #[test]
    fn a_memory_that_holds_the_outcome_makes_it_likelier() {
        let board = Scoreboard { scorer: &WordScorer, template: &Template::default() };
        let step = |memory: &str, observation: &str| RunStep {
            memory: memory.to_owned(),
            observation: observation.to_owned(),
            ..RunStep::default()
        };
        let steps = vec![step("", "She lives in Oslo."), step("Oslo", "Nothing."), step("", "Nothing.")];
        let run = Run { outcome: "Oslo".to_owned(), steps, ..Run::default() };
        let scores = board.scores(&run).unwrap();
        assert_eq!(scores[0].log_h, None, "an empty memory has no token");
        assert_eq!(scores[0].s_now, scores[0].s_prev);
        assert!(scores[1].s_now > scores[1].s_prev && scores[1].s_prev > scores[0].s_prev);
        assert!(scores[2].s_now < scores[2].s_prev);
        assert!(scores[1].log_h.is_some_and(|log_h| log_h < 0.0));
    }

    #[test]
    fn a_scorer_without_tokens_is_refused() {
        struct Mute;
        impl Scorer for Mute {
            fn log_probs(&self, _: &Scoring<'_>, _: &Template) -> Result<Vec<f64>> {
                Ok(Vec::new())
            }
        }
        let board = Scoreboard { scorer: &Mute, template: &Template::default() };
        let run = Run { outcome: "Oslo".to_owned(), steps: vec![RunStep::default()], ..Run::default() };
        assert!(board.scores(&run).is_err());
    }
}
