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
//! A step reads first, from the position of its observation; then writes, consolidates and prunes in one transaction.
//! The outcome names the decision and what was refused of it. Each decision is an event in the log ([`Decided`]), and
//! the consolidations of an episode are counted from there, so that a restart gives no new ones.
//!
//! A long observation is also stored as a refined log (`refine`), in the same write.

use crate::agent::cited::{CitedMemory, Generator};
use crate::agent::controller::{Controller, Decision, HelmLimits, Operation, StepView};
use crate::agent::decisions::Decided;
use crate::agent::interface::RecallInterface;
use crate::core::handle::Holotype;
use crate::model::item::{ItemId, Layer};
use crate::model::tokens;
use crate::options::Durability;
use crate::read::filter::Filter;
use crate::read::snapshot::Snapshot;
use crate::state::reader_position::{Reader, ReaderPosition};
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
    /// The event of the step, as it is in the log.
    pub decided: Decided,
}

/// The state of a loop from step to step, so that it may go on in another loop over the episode.
#[derive(Debug, Clone, Default)]
pub struct LoopMemory {
    step: u64,
    last_read: Option<u64>,
    /// Consolidations of the episode; `None` until they were counted.
    consolidations: Option<u32>,
    /// The position of the agent: the step and the time of its newest observation, written or not.
    at: (Option<u64>, Option<i64>),
    recent: VecDeque<HashSet<String>>,
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
    memory: LoopMemory,
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
            memory: LoopMemory::default(),
        }
    }

    /// Goes on where another loop over the episode ended.
    pub fn resume(mut self, memory: LoopMemory) -> Self {
        self.memory = memory;
        self
    }

    /// The state of the loop.
    pub fn into_memory(self) -> LoopMemory {
        self.memory
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
        self.count_consolidations()?;
        self.stand(observation.as_ref())?;
        let said = observation.as_ref().map(text_of);
        let writes = observation.is_some() && self.limits.writes_per_step > 0;
        let mut outcome = self.decide(request.as_deref(), said.as_deref(), writes)?;
        if outcome.decision.operations.contains(&Operation::Read) {
            match outcome.decision.query.as_ref().or(request.as_ref()) {
                Some(asked) => {
                    let (step, time) = self.memory.at;
                    let interface = self.interface.or_at(Reader { step, time, ..Reader::default() });
                    outcome.memory = Some(interface.one(self.database, asked, self.limits.recall_tokens, generator)?);
                    self.memory.last_read = Some(self.memory.step);
                }
                None => outcome.refused.push(Operation::Read),
            }
        }
        self.write(observation, said.as_deref(), &mut outcome)?;
        self.remember_words(said.as_deref().unwrap_or_default());
        self.memory.step += 1;
        Ok(outcome)
    }

    /// Counts the consolidations that loops over the episode have done, once.
    fn count_consolidations(&mut self) -> Result<()> {
        if self.memory.consolidations.is_none() {
            let decided = self.database.snapshot().decisions(&self.episode)?;
            let done = decided.iter().filter(|decided| decided.done.contains(&Operation::Consolidate)).count();
            self.memory.consolidations = Some(u32::try_from(done).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    /// Stands where the observation is, or where the episode has got to: what is read is as old as seen from there.
    fn stand(&mut self, observation: Option<&NewTrace>) -> Result<()> {
        let snapshot = self.database.snapshot();
        let number = snapshot.state.episode_number(&self.episode)?;
        let now = snapshot.core.now();
        let reached =
            ReaderPosition::find(&snapshot.state, number.as_ref().map(std::slice::from_ref), &Reader::default(), now)?;
        let next = || reached.reader.step.map_or(0, |newest| newest + 1);
        let seen = observation.map(|trace| trace.step.unwrap_or_else(next));
        let time = observation.and_then(|trace| trace.time);
        let (step, before) = self.memory.at;
        self.memory.at = (step.max(seen).max(reached.reader.step), before.max(time));
        // A time that nobody states is the newest of the episode, which is the default.
        if self.memory.at.1 < reached.reader.time {
            self.memory.at.1 = None;
        }
        Ok(())
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

    fn decide(&mut self, request: Option<&str>, observation: Option<&str>, writes: bool) -> Result<StepOutcome> {
        let snapshot = self.database.snapshot();
        let mut items = self.items(&snapshot)?;
        // The step's own trace counts: after the step the limit holds.
        items[Layer::Trace as usize] += u64::from(writes);
        let done = self.memory.consolidations.unwrap_or(0);
        let view = StepView {
            step: self.memory.step,
            request,
            observation,
            novelty: self.novelty(observation.unwrap_or_default()),
            last_read: self.memory.last_read,
            tokens_left: self.limits.recall_tokens,
            consolidations_left: self.limits.consolidations.saturating_sub(done),
            items,
            limits: &self.limits,
        };
        let (mut decision, error) = match self.controller.decide(&view) {
            Ok(decision) => (decision, None),
            Err(error) => (Decision::safe(&view), Some(error.to_string())),
        };
        decision.operations.sort_unstable();
        decision.operations.dedup();
        let decided = Decided {
            episode: self.episode.clone(),
            step: view.step,
            asked: request.is_some(),
            observed: observation.is_some(),
            novelty: view.novelty,
            last_read: view.last_read,
            consolidations_left: view.consolidations_left,
            items,
            operations: decision.operations.clone(),
            error: error.clone(),
            ..Decided::default()
        };
        Ok(StepOutcome { decision, controller_error: error, decided, ..StepOutcome::default() })
    }

    /// Writes, consolidates and prunes.
    fn write(&mut self, observation: Option<NewTrace>, said: Option<&str>, outcome: &mut StepOutcome) -> Result<()> {
        let operations: Vec<Operation> =
            outcome.decision.operations.iter().copied().filter(|operation| *operation != Operation::Read).collect();
        let is_only_read = operations.is_empty();
        let mut transaction = self.database.begin()?;
        let before = self.memory.consolidations.unwrap_or(0);
        let mut consolidations = before;
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
        let done = [
            (outcome.memory.is_some(), Operation::Read),
            (outcome.written.is_some(), Operation::Write),
            (consolidations > before, Operation::Consolidate),
            (outcome.pruned.is_some(), Operation::Prune),
        ];
        let decided = &mut outcome.decided;
        decided.done = done.into_iter().filter_map(|(done, operation)| done.then_some(operation)).collect();
        decided.refused.clone_from(&outcome.refused);
        decided.receipt = outcome.memory.as_ref().and_then(|memory| memory.evidence.receipt.clone());
        decided.tokens = outcome.memory.as_ref().map_or(0, |memory| memory.tokens);
        decided.written = outcome.written;
        transaction.keep_decision(decided)?;
        transaction.commit(if is_only_read { Durability::None } else { Durability::Sync })?;
        self.memory.consolidations = Some(consolidations);
        Ok(())
    }

    fn is_long(&self, said: Option<&str>) -> bool {
        said.is_some_and(|said| u64::from(tokens::count(said)) >= self.refine_from)
    }

    /// The share of words that the remembered steps did not have.
    fn novelty(&self, text: &str) -> f64 {
        let words = words(text);
        let new = words.iter().filter(|word| !self.memory.recent.iter().any(|step| step.contains(*word))).count();
        if words.is_empty() { 0.0 } else { new as f64 / words.len() as f64 }
    }

    fn remember_words(&mut self, text: &str) {
        self.memory.recent.push_back(words(text));
        if self.memory.recent.len() > REMEMBERED_STEPS {
            self.memory.recent.pop_front();
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
