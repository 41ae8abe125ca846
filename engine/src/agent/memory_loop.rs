//! The loop of HELM 3.1 over one episode: at each step a controller decides, and the loop does what its limits allow.
//!
//! | limit (Table 11) | | beyond it |
//! |---|---|---|
//! | recalled tokens a step | 1,500 | evidence is left out |
//! | writes a step | 1 | refused |
//! | consolidations an episode | 5 | refused |
//! | traces, recalls, themes of the episode | 200, 50, 20 | pruned, when the controller says so |
//!
//! Maintenance acts within the episode: other episodes of the database are neither counted nor pruned.
//!
//! A step reads first; then writes, consolidates and prunes in one transaction. The outcome names the decision and what
//! was refused of it. Every operation leaves its event in the log, so that an audit sees them.
//!
//! A long observation is also stored as a refined log (`refine`), in the same write.

use crate::agent::cited::{CitedMemory, Generator};
use crate::agent::controller::{Controller, Decision, HelmLimits, Operation, StepView};
use crate::agent::interface::RecallInterface;
use crate::core::handle::Holotype;
use crate::model::item::{ItemId, Layer};
use crate::model::tokens;
use crate::options::Durability;
use crate::read::filter::Filter;
use crate::read::snapshot::Snapshot;
use crate::state::reader_position::ReaderPosition;
use crate::statements::consolidate::resolve::{Consolidate, ConsolidateReport};
use crate::statements::prune::budget::{Prune, PruneReport};
use crate::write::draft::NewTrace;
use crate::write::transaction::EpisodeChange;
use crate::{Error, Result};
use holotype_query::Noun;
use std::collections::{HashSet, VecDeque};

/// Steps whose words make an observation less novel.
const REMEMBERED_STEPS: usize = 20;
/// Tokens from which an observation is also stored as a refined log.
const REFINE_FROM: u64 = 200;

/// A step of an agent.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// The observation, as the trace to record.
    pub observation: Option<NewTrace>,
    /// The reasoner's request, as it stood between `<recall>` and `</recall>`.
    pub request: Option<String>,
}

/// The effect of a step on the memory.
#[derive(Debug, Clone, Default)]
pub struct StepOutcome {
    /// The decision of the controller.
    pub decision: Decision,
    /// The error of the controller, if it failed and the safe decision was taken.
    pub controller_error: Option<String>,
    /// Operations that the limits did not allow, or that had nothing to work on.
    pub refused: Vec<Operation>,
    /// The memory that was read.
    pub memory: Option<CitedMemory>,
    /// The trace that was written.
    pub written: Option<ItemId>,
    /// Its refined log.
    pub refined: Option<ItemId>,
    /// The report of the consolidation.
    pub consolidated: Option<ConsolidateReport>,
    /// The report of the pruning.
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
    refine_from: u64,
    step: u64,
    consolidations: u32,
    last_read: Option<u64>,
    recent: VecDeque<HashSet<String>>,
}

impl<'db, C: Controller> MemoryLoop<'db, C> {
    /// A loop over an episode with the limits of Table 11. Memories come from the episode and leave receipts;
    /// observations of 200 tokens or more are refined.
    pub fn new(database: &'db Holotype, episode: impl Into<String>, controller: C) -> Self {
        let episode = episode.into();
        MemoryLoop {
            database,
            interface: RecallInterface::new().in_episode(episode.clone()).with_receipts(),
            episode,
            controller,
            limits: HelmLimits::default(),
            refine_from: REFINE_FROM,
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

    /// Other memories than those of the episode, in mode A1.
    pub fn interface(mut self, interface: RecallInterface) -> Self {
        self.interface = interface;
        self
    }

    /// Refines observations from this many tokens on; `u64::MAX` refines none.
    pub fn refine_from(mut self, tokens: u64) -> Self {
        self.refine_from = tokens;
        self
    }

    /// Asks the controller and does what it decides: first the read, then the rest in one transaction. Without a
    /// generator, the memory is spans with their citations.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an observation of another episode; those of the operations. Then nothing of the step was
    /// written, except the receipt of its read.
    pub fn step(&mut self, step: Step, generator: Option<&mut dyn Generator>) -> Result<StepOutcome> {
        let Step { observation, request } = step;
        if let Some(other) = observation.as_ref().map(|trace| &trace.episode).filter(|other| **other != self.episode) {
            let episode = &self.episode;
            return Err(Error::Invalid(format!("a loop over episode '{episode}' observed episode '{other}'")));
        }
        self.open()?;
        let said = observation.as_ref().map(text_of);
        let mut outcome = self.decide(request.as_deref(), said.as_deref())?;
        if outcome.decision.operations.contains(&Operation::Read) {
            match outcome.decision.query.as_ref().or(request.as_ref()) {
                Some(asked) => {
                    let tokens = self.limits.recall_tokens;
                    outcome.memory = Some(self.interface.one(self.database, asked, tokens, generator)?);
                    self.last_read = Some(self.step);
                }
                None => outcome.refused.push(Operation::Read),
            }
        }
        self.write(observation, said.as_deref(), &mut outcome)?;
        self.remember_words(said.as_deref().unwrap_or_default());
        self.step += 1;
        Ok(outcome)
    }

    /// Opens the episode if it is new, so that it can be asked before anything happened in it.
    fn open(&self) -> Result<()> {
        if self.database.snapshot().state.episode_number(&self.episode)?.is_some() {
            return Ok(());
        }
        let mut transaction = self.database.begin()?;
        transaction.episode(&self.episode, EpisodeChange { open: Some(true), ..EpisodeChange::default() })?;
        transaction.commit(Durability::Sync).map(drop)
    }

    /// The active items of the episode, by layer.
    fn items(&self, snapshot: &Snapshot) -> Result<[u64; 3]> {
        let (selection, position) = (crate::statements::in_episode(self.episode.clone()), ReaderPosition::default());
        let of_episode = Filter::new(snapshot, &position).scope(selection.scope.as_ref())?;
        let mut items = [0; 3];
        for layer in Layer::ALL {
            let of_layer = snapshot.state.attributes.base_sets(snapshot.len()).layer(*layer)?;
            items[*layer as usize] = of_layer.and(&of_episode).count();
        }
        Ok(items)
    }

    fn decide(&mut self, request: Option<&str>, observation: Option<&str>) -> Result<StepOutcome> {
        let snapshot = self.database.snapshot();
        let items = self.items(&snapshot)?;
        let view = StepView {
            step: self.step,
            request,
            observation,
            novelty: self.novelty(observation.unwrap_or_default()),
            last_read: self.last_read,
            tokens_left: self.limits.recall_tokens,
            consolidations_left: self.limits.consolidations.saturating_sub(self.consolidations),
            items,
            limits: &self.limits,
        };
        let (mut decision, error) = match self.controller.decide(&view) {
            Ok(decision) => (decision, None),
            Err(error) => (Decision::safe(&view), Some(error.to_string())),
        };
        decision.operations.sort_unstable();
        decision.operations.dedup();
        Ok(StepOutcome { decision, controller_error: error, ..StepOutcome::default() })
    }

    /// Writes, consolidates and prunes.
    fn write(&mut self, observation: Option<NewTrace>, said: Option<&str>, outcome: &mut StepOutcome) -> Result<()> {
        let operations: Vec<Operation> =
            outcome.decision.operations.iter().copied().filter(|operation| *operation != Operation::Read).collect();
        if operations.is_empty() {
            return Ok(());
        }
        let mut transaction = self.database.begin()?;
        let mut consolidations = self.consolidations;
        let mut observation = observation.filter(|_| self.limits.writes_per_step > 0);
        for operation in operations {
            match operation {
                Operation::Write if observation.is_some() => {
                    outcome.written = observation.take().map(|trace| transaction.record(trace)).transpose()?;
                    if let (Some(trace), true) = (outcome.written, self.is_long(said)) {
                        outcome.refined = transaction.refine(trace, &[])?;
                    }
                }
                Operation::Consolidate if consolidations < self.limits.consolidations => {
                    consolidations += 1;
                    let consolidate = Consolidate::new(Noun::Traces).in_episode(self.episode.clone());
                    outcome.consolidated = Some(transaction.consolidate(&consolidate)?);
                }
                Operation::Prune => {
                    let [traces, recalls, themes] = self.limits.items;
                    let prune = Prune::new().in_episode(self.episode.clone()).to(Noun::Traces, traces);
                    let prune = prune.to(Noun::Recalls, recalls).to(Noun::Themes, themes);
                    outcome.pruned = Some(transaction.prune(&prune)?);
                }
                operation => outcome.refused.push(operation),
            }
        }
        transaction.commit(Durability::Sync)?;
        self.consolidations = consolidations;
        Ok(())
    }

    fn is_long(&self, said: Option<&str>) -> bool {
        said.is_some_and(|said| u64::from(tokens::count(said)) >= self.refine_from)
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
