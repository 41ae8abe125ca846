//! Decisions of controllers as events (HELM 3.3): what a step saw, what was decided, what was done and what refused.
//!
//! An event is an inactive trace that no recall finds, as those of routers are. It holds no text: what was asked stands
//! in the receipt that it names, what was observed in the trace. So `forget` leaves nothing of either in it, and the
//! events of an episode are the trajectory that a controller is trained on.

use crate::Result;
use crate::agent::controller::Operation;
use crate::model::item::ItemId;
use crate::read::snapshot::Snapshot;
use crate::state::pages::EVENT_TOOLS;
use crate::write::transaction::Transaction;
use serde_json::{Value, json};

const DECISION: &str = EVENT_TOOLS[3];

/// The decision about a step, with what became of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// The episode of the loop.
    pub episode: String,
    /// Steps of the loop before it.
    pub step: u64,
    /// True if the reasoner asked for something.
    pub asked: bool,
    /// True if something was observed.
    pub observed: bool,
    /// The share of new words.
    pub novelty: f64,
    /// The step of the last read.
    pub last_read: Option<u64>,
    /// Consolidations that were left.
    pub consolidations_left: u32,
    /// Active traces, recalls and themes, the step's own trace included.
    pub items: [u64; 3],
    /// The operations that were decided on.
    pub operations: Vec<Operation>,
    /// Those that were done.
    pub done: Vec<Operation>,
    /// Those that were refused.
    pub refused: Vec<Operation>,
    /// Why the controller failed, if it did.
    pub error: Option<String>,
    /// The receipt of the read.
    pub receipt: Option<String>,
    /// Tokens of the memory that was read.
    pub tokens: u64,
    /// The trace that was written.
    pub written: Option<ItemId>,
}

impl Decided {
    /// The event as JSON.
    pub fn to_json(&self) -> Value {
        let names = |operations: &[Operation]| operations.iter().map(|it| it.as_str()).collect::<Vec<_>>();
        json!({
            "loop": self.episode, "step": self.step, "asked": self.asked, "observed": self.observed,
            "novelty": self.novelty, "last_read": self.last_read,
            "consolidations_left": self.consolidations_left, "items": self.items,
            "operations": names(&self.operations), "done": names(&self.done), "refused": names(&self.refused),
            "failed": self.error.is_some(), "receipt": self.receipt, "tokens": self.tokens,
            "written": self.written.map(|item| item.0),
        })
    }

    fn from_json(event: &Value) -> Option<Decided> {
        let number = |name: &str| event.get(name).and_then(Value::as_u64);
        let flag = |name: &str| event.get(name).and_then(Value::as_bool).unwrap_or(false);
        let operations = |name: &str| -> Vec<Operation> {
            let names = event.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            names.filter_map(|name| Operation::ALL.into_iter().find(|known| known.as_str() == name)).collect()
        };
        let items = |at: usize| event.get("items").and_then(|items| items.get(at)).and_then(Value::as_u64).unwrap_or(0);
        Some(Decided {
            episode: event.get("loop").and_then(Value::as_str)?.to_owned(),
            step: number("step")?,
            asked: flag("asked"),
            observed: flag("observed"),
            novelty: event.get("novelty").and_then(Value::as_f64).unwrap_or(0.0),
            last_read: number("last_read"),
            consolidations_left: number("consolidations_left").and_then(|left| u32::try_from(left).ok()).unwrap_or(0),
            items: [items(0), items(1), items(2)],
            operations: operations("operations"),
            done: operations("done"),
            refused: operations("refused"),
            error: flag("failed").then(|| "the controller failed".to_owned()),
            receipt: event.get("receipt").and_then(Value::as_str).map(str::to_owned),
            tokens: number("tokens").unwrap_or(0),
            written: number("written").and_then(|item| u32::try_from(item).ok()).map(ItemId),
        })
    }
}

impl Transaction<'_> {
    /// Stages the event of a decision.
    pub(crate) fn keep_decision(&mut self, decided: &Decided) -> Result<()> {
        self.keep_event(DECISION, &decided.to_json())
    }
}

impl Snapshot {
    /// The decisions of the loops over an episode, oldest first.
    ///
    /// # Errors
    /// Errors of reading the log.
    pub fn decisions(&self, episode: &str) -> Result<Vec<Decided>> {
        let mut decided = self.all_decisions()?;
        decided.retain(|decided| decided.episode == episode);
        Ok(decided)
    }

    /// The decisions of all loops, oldest first.
    pub(crate) fn all_decisions(&self) -> Result<Vec<Decided>> {
        let events = self.kept_events()?;
        let decided = events.iter().filter(|(_, tool, _)| tool == DECISION);
        Ok(decided.filter_map(|(.., event)| Decided::from_json(event)).collect())
    }
}
