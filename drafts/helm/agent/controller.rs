//! The schedule of memory operations (HELM 3.3): at each step a controller says which of READ, WRITE, CONSOLIDATE and
//! PRUNE to do, and the loop does them within the limits of Table 11.
//!
//! | limit | |
//! |---|---|
//! | recalled tokens a step | 1,500 |
//! | writes a step | 1 |
//! | consolidations an episode | 5 |
//! | traces, recalls, themes | 200, 50, 20; pruned when exceeded |
//!
//! A controller is the caller's model behind [`Controller`]; [`HeuristicController`] is the fixed schedule that the paper
//! compares with (Table 2): it reads when the reasoner asks, writes every step, consolidates every so many steps, and
//! prunes when a budget overflows. The decisions of a step are returned with what was done, and every operation leaves
//! its event in the log.

use crate::agent::cited::{CitedMemory, Generate, RECALL_TOKENS};
use crate::agent::interface::RecallInterface;
use crate::core::handle::Holotype;
use crate::model::item::{ItemId, Layer};
use crate::options::Durability;
use crate::statements::consolidate::resolve::{Consolidate, ConsolidateReport};
use crate::statements::prune::budget::{Prune, PruneReport};
use crate::write::draft::NewTrace;
use crate::{Error, Result};
use holotype_query::Noun;
use std::collections::{HashSet, VecDeque};

/// Steps whose words make an observation less novel.
const REMEMBERED_STEPS: usize = 20;

/// What a memory loop may do (HELM Table 11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmLimits {
    /// Tokens that recalls may inject at a step.
    pub recall_tokens: u64,
    /// Traces that may be written at a step.
    pub writes_per_step: u32,
    /// Consolidations of an episode.
    pub consolidations: u32,
    /// Traces, recalls and themes that may be kept.
    pub items: [u64; 3],
}

impl Default for HelmLimits {
    fn default() -> Self {
        HelmLimits { recall_tokens: RECALL_TOKENS, writes_per_step: 1, consolidations: 5, items: [200, 50, 20] }
    }
}

/// A memory operation (HELM Table 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Recall what the reasoner asked for.
    Read,
    /// Record the observation.
    Write,
    /// Distil the episode's traces.
    Consolidate,
    /// Bring the memory under its budgets.
    Prune,
}

/// What a controller sees of a step.
#[derive(Debug, Clone)]
pub struct StepView<'s> {
    /// Steps of this loop so far.
    pub step: u64,
    /// What the reasoner asked for, if it did.
    pub request: Option<&'s str>,
    /// What was observed, if anything.
    pub observation: Option<&'s str>,
    /// The share of the observation's words that the last 20 steps did not have (ours).
    pub novelty: f64,
    /// The step of the last read.
    pub last_read: Option<u64>,
    /// Consolidations left to the episode.
    pub consolidations_left: u32,
    /// Active traces, recalls and themes.
    pub items: [u64; 3],
    /// The limits.
    pub limits: &'s HelmLimits,
}

/// Decides which memory operations a step does.
pub trait Controller {
    /// The operations, each at most once; they are done in the order of [`Operation`].
    fn decide(&mut self, view: &StepView<'_>) -> Vec<Operation>;
}

/// The heuristic schedule.
#[derive(Debug, Clone)]
pub struct HeuristicController {
    /// Steps between consolidations.
    pub consolidate_every: u64,
}

impl Default for HeuristicController {
    fn default() -> Self {
        HeuristicController { consolidate_every: 10 }
    }
}

impl Controller for HeuristicController {
    fn decide(&mut self, view: &StepView<'_>) -> Vec<Operation> {
        let is_due = (view.step + 1).is_multiple_of(self.consolidate_every.max(1)) && view.consolidations_left > 0;
        let is_full = view.items.iter().zip(view.limits.items).any(|(items, limit)| *items > limit);
        let wanted = [
            (view.request.is_some(), Operation::Read),
            (view.observation.is_some(), Operation::Write),
            (is_due, Operation::Consolidate),
            (is_full, Operation::Prune),
        ];
        wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, operation)| operation).collect()
    }
}

/// A step of an agent.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// What was observed, as the trace to record.
    pub observation: Option<NewTrace>,
    /// What the reasoner asked for between `<recall>` and `</recall>`.
    pub request: Option<String>,
}

/// What a step did to the memory.
#[derive(Debug, Clone, Default)]
pub struct StepOutcome {
    /// What the controller decided.
    pub decided: Vec<Operation>,
    /// Decisions that the limits did not allow.
    pub refused: Vec<Operation>,
    /// The memory that was read.
    pub memory: Option<CitedMemory>,
    /// The trace that was written.
    pub written: Option<ItemId>,
    /// What was consolidated.
    pub consolidated: Option<ConsolidateReport>,
    /// What was pruned.
    pub pruned: Option<PruneReport>,
}

/// A memory with a controller, for one episode.
#[derive(Debug)]
pub struct MemoryLoop<'db, C> {
    database: &'db Holotype,
    episode: String,
    controller: C,
    limits: HelmLimits,
    interface: RecallInterface,
    step: u64,
    consolidations: u32,
    last_read: Option<u64>,
    recent: VecDeque<HashSet<String>>,
}

impl<'db, C: Controller> MemoryLoop<'db, C> {
    /// A loop over an episode with the limits of Table 11. Memories come from the episode.
    pub fn new(database: &'db Holotype, episode: impl Into<String>, controller: C) -> Self {
        let episode = episode.into();
        MemoryLoop {
            database,
            interface: RecallInterface::new().in_episode(episode.clone()),
            episode,
            controller,
            limits: HelmLimits::default(),
            step: 0,
            consolidations: 0,
            last_read: None,
            recent: VecDeque::new(),
        }
    }

    /// Other limits.
    pub fn limits(mut self, limits: HelmLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Other memories.
    pub fn interface(mut self, interface: RecallInterface) -> Self {
        self.interface = interface;
        self
    }

    /// Asks the controller and does what it decides: first the read, then the rest in one transaction.
    ///
    /// # Errors
    /// Those of the operations; then nothing of the step was written.
    pub fn step(&mut self, step: Step, generator: Option<&mut dyn Generate>) -> Result<StepOutcome> {
        let Step { observation, request } = step;
        if observation.as_ref().is_some_and(|observation| observation.episode != self.episode) {
            return Err(Error::Invalid(format!("a step of episode '{}' observed another episode", self.episode)));
        }
        let said = observation.as_ref().map(text_of);
        let decided = self.decide(request.as_deref(), said.as_deref())?;
        let mut outcome = StepOutcome { decided: decided.clone(), ..StepOutcome::default() };
        if let (true, Some(asked)) = (decided.contains(&Operation::Read), &request) {
            outcome.memory = Some(self.interface.one(self.database, asked, self.limits.recall_tokens, generator)?);
            self.last_read = Some(self.step);
        }
        self.write(observation, &decided, &mut outcome)?;
        self.remember_words(said.as_deref().unwrap_or_default());
        self.step += 1;
        Ok(outcome)
    }

    fn decide(&mut self, request: Option<&str>, observation: Option<&str>) -> Result<Vec<Operation>> {
        let snapshot = self.database.snapshot();
        let mut items = [0; 3];
        for layer in Layer::ALL {
            items[*layer as usize] = snapshot.state.attributes.base_sets(snapshot.len()).layer(*layer)?.count();
        }
        let view = StepView {
            step: self.step,
            request,
            observation,
            novelty: self.novelty(observation.unwrap_or_default()),
            last_read: self.last_read,
            consolidations_left: self.limits.consolidations.saturating_sub(self.consolidations),
            items,
            limits: &self.limits,
        };
        let mut decided = self.controller.decide(&view);
        decided.sort_unstable();
        decided.dedup();
        Ok(decided)
    }

    /// Writes, consolidates and prunes.
    fn write(
        &mut self,
        observation: Option<NewTrace>,
        decided: &[Operation],
        outcome: &mut StepOutcome,
    ) -> Result<()> {
        let mut transaction = self.database.begin()?;
        let mut consolidations = self.consolidations;
        for operation in decided {
            match operation {
                Operation::Read => {}
                Operation::Write => match observation.clone().filter(|_| self.limits.writes_per_step > 0) {
                    Some(observation) => outcome.written = Some(transaction.record(observation)?),
                    None => outcome.refused.push(Operation::Write),
                },
                Operation::Consolidate if consolidations < self.limits.consolidations => {
                    consolidations += 1;
                    let consolidate = Consolidate::new(Noun::Traces).in_episode(self.episode.clone());
                    outcome.consolidated = Some(transaction.consolidate(&consolidate)?);
                }
                Operation::Consolidate => outcome.refused.push(Operation::Consolidate),
                Operation::Prune => {
                    let [traces, recalls, themes] = self.limits.items;
                    let prune = Prune::new().to(Noun::Traces, traces).to(Noun::Recalls, recalls);
                    outcome.pruned = Some(transaction.prune(&prune.to(Noun::Themes, themes))?);
                }
            }
        }
        transaction.commit(Durability::Sync)?;
        self.consolidations = consolidations;
        Ok(())
    }

    /// The share of words that the remembered steps did not have.
    fn novelty(&self, text: &str) -> f64 {
        let words = words(text);
        let new = words.iter().filter(|word| !self.recent.iter().any(|step| step.contains(*word))).count();
        if words.is_empty() { 0.0 } else { new as f64 / words.len() as f64 }
    }

    fn remember_words(&mut self, text: &str) {
        self.recent.push_back(words(text));
        if self.recent.len() > REMEMBERED_STEPS {
            self.recent.pop_front();
        }
    }
}

/// The field `text` of a trace to be.
fn text_of(trace: &NewTrace) -> String {
    let text = trace.fields.iter().find(|field| field.name == "text");
    text.map(|field| String::from_utf8_lossy(field.value.bytes()).into_owned()).unwrap_or_default()
}

fn words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}
