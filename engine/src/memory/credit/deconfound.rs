//! Blame, and the five measures of Table 4, over stored runs (section 4.5, Appendix D). The paper gives no formulas;
//! these are ours.
//!
//! **Utility of a module.** A memory write is worth what eq. 6 says, `U(mem, t) = S(H_t, m_t) - S(H_t, m_{t-1})`. A
//! thought, call or observation of step t is worth what it adds to the state that the next write sees, under the same
//! memory: `U(x, t) = S(H_{t+1}, m_t) - S(H_{t+1} without x_t, m_t)`. The **blame** for a difference between two runs
//! is the fall of each utility, where it falls. Both sides of a utility share their state, so that what went wrong
//! before or beside a module cancels out.
//!
//! | field | measure | better |
//! |---|---|---|
//! | [`Deconfounding::faithful_under_bad_tool`] | blame of a faithful write over that of the outcome alone | lower |
//! | [`Deconfounding::over_clean`] | the same, each side beyond what the clean run has | lower |
//! | [`Deconfounding::drop_localisation`] | blanked memories whose step has the largest fall of `A` (eq. 12) | higher |
//! | [`Deconfounding::delayed_recovery`] | mean `abs(A~) - abs(A)` of early writes that the answer needs | higher |
//! | [`Deconfounding::concentration`] | mean share of the blame that lands on the blanked span | higher |
//!
//! The faithful write is the one after a corrupted observation, and its blame the negative part of `A~`; the outcome
//! alone blames it with the negative part of `A^T`.
//!
//! A corrupted run counts as failed: its reward is 0; only successful runs are corrupted. Other interventions keep the
//! reward. Localisation is measured before mask and smoothing, which move credit on purpose. `beta` (eq. 17) is that of
//! the group.
//!
//! Cost: about 10 scorings a step for a run, and as many for each intervention on it.

use super::compute::{WriteCredit, credit};
use super::intervene::{Corruptor, Intervention, Module, intervene};
use super::options::CreditOptions;
use super::run::{Run, Scoreboard};
use super::template::PreWriteState;
use super::write::{Scores, Write};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// The fall of each module's utility from one run to another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Blame {
    /// Module, step and fall in nats a token of the outcome; only falls above 0, by step and module.
    pub falls: Vec<(Module, usize, f64)>,
}

impl Blame {
    /// The module and step with the greatest fall, the earlier of equal ones; `None` if nothing fell.
    pub fn blamed(&self) -> Option<(Module, usize)> {
        let mut worst: Option<(Module, usize, f64)> = None;
        for fall in &self.falls {
            if worst.is_none_or(|worst| fall.2 > worst.2) {
                worst = Some(*fall);
            }
        }
        worst.map(|(module, step, _)| (module, step))
    }

    /// The share of all falls that a module of a step has; `None` if nothing fell.
    pub fn share(&self, module: Module, step: usize) -> Option<f64> {
        let sum: f64 = self.falls.iter().map(|(.., fall)| fall).sum();
        let own = self.falls.iter().filter(|(of, at, _)| (*of, *at) == (module, step)).map(|(.., fall)| fall);
        (sum > 0.0).then(|| own.sum::<f64>() / sum)
    }
}

/// The utility of every module of a run that has a text.
///
/// # Errors
/// Those of the scorer.
pub fn utilities(run: &Run, board: &Scoreboard<'_>) -> Result<Vec<(Module, usize, f64)>> {
    let mut found = Vec::with_capacity(run.steps.len() * Module::ALL.len());
    for (at, step) in run.steps.iter().enumerate() {
        let before = run.state(at);
        let written = PreWriteState { memory: &step.memory, ..before };
        let utility = board.answerability(run, written)? - board.answerability(run, before)?;
        found.push((Module::Memory, at, utility));
        let after = run.state(at + 1);
        let whole = board.answerability(run, after)?;
        for module in [Module::Think, Module::Call, Module::Observation] {
            let without = match module {
                Module::Memory => PreWriteState { memory: "", ..after },
                Module::Think => PreWriteState { think: "", ..after },
                Module::Call => PreWriteState { call: "", ..after },
                Module::Observation => PreWriteState { observation: "", ..after },
            };
            found.push((module, at, whole - board.answerability(run, without)?));
        }
    }
    Ok(found)
}

/// The blame for what a faulty run lost of a clean one with as many steps.
///
/// # Errors
/// Those of the scorer; [`Error::Invalid`] for runs of different length.
pub fn blame(clean: &Run, faulty: &Run, board: &Scoreboard<'_>) -> Result<Blame> {
    if clean.steps.len() != faulty.steps.len() {
        let (clean, faulty) = (clean.steps.len(), faulty.steps.len());
        return Err(Error::Invalid(format!("blame compares runs of equal length, not of {clean} and {faulty} steps")));
    }
    let (before, after) = (utilities(clean, board)?, utilities(faulty, board)?);
    let falls = before.iter().zip(&after).map(|(before, after)| (before.0, before.1, before.2 - after.2));
    Ok(Blame { falls: falls.filter(|(.., fall)| *fall > 0.0).collect() })
}

/// The measures of Table 4; each is `None` where no run could be studied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Deconfounding {
    /// Faithful-under-bad-tool ratio: 1 is the blame of the outcome alone.
    pub faithful_under_bad_tool: Option<f64>,
    /// The same, normalised by the clean control.
    pub over_clean: Option<f64>,
    /// Hit rate of memory drops.
    pub drop_localisation: Option<f64>,
    /// Delayed-credit recovery.
    pub delayed_recovery: Option<f64>,
    /// Module-attribution concentration.
    pub concentration: Option<f64>,
    /// Interventions on which each measure rests: corruptions (both ratios), drops, early writes, perturbed spans.
    pub counts: [usize; 4],
    /// Corruptions that fell back to a marker.
    pub fallbacks: usize,
}

/// Measures how well credit finds causes, by interventions on runs.
///
/// # Errors
/// Those of the scorer and the corruptor; [`Error::Invalid`] for what [`credit`] refuses.
pub fn deconfound(
    runs: &[Run],
    board: &Scoreboard<'_>,
    corruptor: &dyn Corruptor,
    options: &CreditOptions,
) -> Result<Deconfounding> {
    let mut groups: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        groups.entry(&run.group).or_default().push(run);
    }
    let mut study = Study::default();
    for mut runs in groups.into_values() {
        runs.sort_by(|a, b| a.rollout.cmp(&b.rollout));
        let scores = runs.iter().map(|run| board.scores(run)).collect::<Result<Vec<_>>>()?;
        let group = Group { runs, scores, board, corruptor, options };
        let (clean, unmasked) = (group.credits(None, options)?, group.credits(None, &bare(options))?);
        for at in 0..group.runs.len() {
            group.corrupt_tools(at, &clean, &mut study)?;
            group.drop_memories(at, &unmasked, &mut study)?;
            group.drop_for_good(at, &clean, &mut study)?;
            group.perturb(at, &mut study)?;
        }
    }
    Ok(study.measures())
}

/// Options without mask and smoothing.
fn bare(options: &CreditOptions) -> CreditOptions {
    CreditOptions { success: None, smoothing: None, ..options.clone() }
}

/// Sums of what was measured.
#[derive(Default)]
struct Study {
    corrupted: usize,
    fallbacks: usize,
    /// Blame of the faithful write and of the outcome alone; then each beyond the clean run.
    blame: [f64; 4],
    hits: Vec<bool>,
    recovered: Vec<f64>,
    shares: Vec<f64>,
}

impl Study {
    fn measures(&self) -> Deconfounding {
        let [own, outcome, own_more, outcome_more] = self.blame;
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let mean = |values: &[f64]| ratio(values.iter().sum(), values.len() as f64);
        let hits = self.hits.iter().filter(|hit| **hit).count();
        Deconfounding {
            faithful_under_bad_tool: ratio(own, outcome),
            over_clean: ratio(own_more, outcome_more),
            drop_localisation: ratio(hits as f64, self.hits.len() as f64),
            delayed_recovery: mean(&self.recovered),
            concentration: mean(&self.shares),
            counts: [self.corrupted, self.hits.len(), self.recovered.len(), self.shares.len()],
            fallbacks: self.fallbacks,
        }
    }
}

/// The credit of one run.
struct RunCredit {
    trajectory: f64,
    writes: Vec<WriteCredit>,
}

/// The runs of one group with their scores.
struct Group<'g> {
    runs: Vec<&'g Run>,
    scores: Vec<Vec<Scores>>,
    board: &'g Scoreboard<'g>,
    corruptor: &'g dyn Corruptor,
    options: &'g CreditOptions,
}

impl Group<'_> {
    /// The credit of every run, one of them perhaps replaced.
    fn credits(&self, replaced: Option<(usize, &Run)>, options: &CreditOptions) -> Result<Vec<RunCredit>> {
        let mut lines = Vec::new();
        let mut starts = Vec::with_capacity(self.runs.len());
        for (at, (run, scores)) in self.runs.iter().zip(&self.scores).enumerate() {
            let changed = replaced.filter(|(of, _)| *of == at).map(|(_, run)| run);
            let new = changed.map(|run| self.board.scores(run)).transpose()?;
            let (reward, scores) = (changed.map_or(run.reward, |run| run.reward), new.as_ref().unwrap_or(scores));
            starts.push(lines.len());
            lines.push(Write::reward_only(&run.group, &run.rollout, reward));
            let writes = scores.iter().zip(0_u64..);
            lines.extend(writes.map(|(scores, step)| Write::new(&run.group, &run.rollout, step, *scores)));
        }
        let credits = credit(&lines, options).map_err(|error| Error::Invalid(error.to_string()))?;
        let of_run = |(at, start): (usize, &usize)| {
            let end = starts.get(at + 1).copied().unwrap_or(lines.len());
            let lines = credits.lines.get(*start..end).unwrap_or_default();
            let trajectory = lines.first().map_or(0.0, |line| line.trajectory_advantage);
            RunCredit { trajectory, writes: lines.iter().filter_map(|line| line.write).collect() }
        };
        Ok(starts.iter().enumerate().map(of_run).collect())
    }

    /// Corrupts each observation of a successful run that a write follows.
    fn corrupt_tools(&self, at: usize, clean: &[RunCredit], study: &mut Study) -> Result<()> {
        let run = self.runs[at];
        if run.reward < self.options.success.unwrap_or(1.0) {
            return Ok(());
        }
        for step in 0..run.steps.len().saturating_sub(1) {
            let intervention = Intervention::ToolCorruption { step };
            let Some(mut changed) = intervene(run, intervention, self.corruptor)? else { continue };
            changed.run.reward = 0.0;
            let bad = self.credits(Some((at, &changed.run)), self.options)?;
            let blame = |credit: f64| (-credit).max(0.0);
            let of_write = |credits: &[RunCredit]| credits[at].writes.get(step + 1).map_or(0.0, |w| blame(w.smoothed));
            let of_outcome = |credits: &[RunCredit]| blame(credits[at].trajectory);
            let (own, outcome) = (of_write(&bad), of_outcome(&bad));
            let more = [own - of_write(clean), outcome - of_outcome(clean)].map(|more| more.max(0.0));
            let sums = [own, outcome, more[0], more[1]];
            study.blame.iter_mut().zip(sums).for_each(|(sum, value)| *sum += value);
            study.corrupted += 1;
            study.fallbacks += usize::from(changed.is_fallback);
        }
        Ok(())
    }

    /// Blanks each memory, and looks whose advantage falls most.
    fn drop_memories(&self, at: usize, clean: &[RunCredit], study: &mut Study) -> Result<()> {
        for step in 0..self.runs[at].steps.len() {
            let intervention = Intervention::MemoryDrop { step };
            let Some(changed) = intervene(self.runs[at], intervention, self.corruptor)? else { continue };
            let dropped = self.credits(Some((at, &changed.run)), &bare(self.options))?;
            let pairs = clean[at].writes.iter().zip(&dropped[at].writes).enumerate();
            let falls = pairs.map(|(step, (before, after))| (step, before.advantage - after.advantage));
            let most = falls.fold((0, 0.0), |most, fall| if fall.1 > most.1 { fall } else { most });
            study.hits.push(most.1 > 0.0 && most.0 == step);
        }
        Ok(())
    }

    /// Finds early writes without which the final answer is less likely, and compares their credit with its own kind
    /// before smoothing.
    fn drop_for_good(&self, at: usize, clean: &[RunCredit], study: &mut Study) -> Result<()> {
        let run = self.runs[at];
        let last = run.steps.len();
        let whole = self.board.answerability(run, run.state(last))?;
        for step in 0..last.saturating_sub(1) {
            let intervention = Intervention::DelayedDrop { step };
            let Some(changed) = intervene(run, intervention, self.corruptor)? else { continue };
            if self.board.answerability(&changed.run, changed.run.state(last))? < whole {
                let write = clean[at].writes.get(step).copied().unwrap_or_default();
                study.recovered.push(write.smoothed.abs() - write.advantage.abs());
            }
        }
        Ok(())
    }

    /// Blanks each memory, thought and call, and looks where utility falls.
    fn perturb(&self, at: usize, study: &mut Study) -> Result<()> {
        let run = self.runs[at];
        for step in 0..run.steps.len() {
            for module in [Module::Memory, Module::Think, Module::Call] {
                let intervention = Intervention::Perturb { module, step };
                let Some(changed) = intervene(run, intervention, self.corruptor)? else { continue };
                study.shares.extend(blame(run, &changed.run, self.board)?.share(module, step));
            }
        }
        Ok(())
    }
}
