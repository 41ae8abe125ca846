//! The decision on the memory operations of a step (HELM 3.3): a [`Controller`] is asked once a step.
//!
//! A controller is the caller's model behind the trait; [`Decision::parse`] reads a model's reply and takes nothing but
//! what it asks for. [`HeuristicController`] is the fixed schedule that the paper compares with (Table 2): it reads
//! when the reasoner asks, writes every observation, consolidates every so many steps, and prunes when a budget
//! overflows. A controller that fails is replaced by [`Decision::safe`] for that step.

use crate::{Error, Result};
use serde_json::Value;

/// The limits of a memory loop (HELM Table 11).
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
        let recall_tokens = super::cited::RECALL_TOKENS;
        HelmLimits { recall_tokens, writes_per_step: 1, consolidations: 5, items: [200, 50, 20] }
    }
}

/// A memory operation (HELM Table 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Recall what is missing.
    Read,
    /// Record the observation.
    Write,
    /// Distil the episode's traces.
    Consolidate,
    /// Bring the memory under its budgets.
    Prune,
}

impl Operation {
    /// Every operation, in the order in which a step does them.
    pub const ALL: [Operation; 4] = [Operation::Read, Operation::Write, Operation::Consolidate, Operation::Prune];

    /// The paper's name of the operation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Read => "READ",
            Operation::Write => "WRITE",
            Operation::Consolidate => "CONSOLIDATE",
            Operation::Prune => "PRUNE",
        }
    }
}

/// The state of a step, as a controller sees it.
#[derive(Debug, Clone, Copy)]
pub struct StepView<'s> {
    /// Steps of this loop so far.
    pub step: u64,
    /// The reasoner's request, if it made one.
    pub request: Option<&'s str>,
    /// The text of the observation, if there is one.
    pub observation: Option<&'s str>,
    /// The share of the observation's words that the last 20 steps did not have (ours).
    pub novelty: f64,
    /// The step of the last read.
    pub last_read: Option<u64>,
    /// Recall tokens left to the step.
    pub tokens_left: u64,
    /// Consolidations left to the episode.
    pub consolidations_left: u32,
    /// Active traces, recalls and themes.
    pub items: [u64; 3],
    /// The limits.
    pub limits: &'s HelmLimits,
}

impl StepView<'_> {
    /// True if more items are active than the limits allow.
    pub fn is_over_budget(&self) -> bool {
        self.items.iter().zip(self.limits.items).any(|(items, limit)| *items > limit)
    }
}

/// The operations of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// The operations, each at most once. They are done in the order of [`Operation::ALL`].
    pub operations: Vec<Operation>,
    /// The query of the read; the reasoner's request if it is absent.
    pub query: Option<String>,
}

impl Decision {
    /// Reads a reply: one JSON object, `{"operations": ["READ", "WRITE"], "query": "price of UA123"}`. `query` may be
    /// absent or null, and is only allowed with `READ`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other reply, with what is wrong with it.
    ///
    /// ```
    /// use holotype::{Decision, Operation};
    ///
    /// let decision = Decision::parse(r#"{"operations": ["READ"], "query": "price of UA123"}"#)?;
    /// assert_eq!(decision.operations, [Operation::Read]);
    /// assert!(Decision::parse("I would READ now.").is_err());
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn parse(reply: &str) -> Result<Decision> {
        let refused = |why: &str| Error::Invalid(format!("the reply of a controller {why}: {reply:?}"));
        let Ok(Value::Object(members)) = serde_json::from_str(reply) else {
            return Err(refused("is no JSON object"));
        };
        if members.keys().any(|name| name != "operations" && name != "query") {
            return Err(refused("has other members than `operations` and `query`"));
        }
        let named = members.get("operations").and_then(Value::as_array);
        let mut operations = Vec::new();
        for name in named.ok_or_else(|| refused("has no list `operations`"))? {
            let known = Operation::ALL.into_iter().find(|operation| name.as_str() == Some(operation.as_str()));
            let known = known.filter(|operation| !operations.contains(operation));
            operations.push(known.ok_or_else(|| refused("names no operation, or one twice"))?);
        }
        let query = match members.get("query") {
            None | Some(Value::Null) => None,
            Some(Value::String(query)) if !query.trim().is_empty() => Some(query.clone()),
            Some(_) => return Err(refused("has a `query` that is no text, or an empty one")),
        };
        if query.is_some() && !operations.contains(&Operation::Read) {
            return Err(refused("has a `query` without READ"));
        }
        Ok(Decision { operations, query })
    }

    /// The decision in place of a controller that failed: what was asked is read, what was observed is written, and a
    /// budget that overflows is pruned.
    pub fn safe(view: &StepView<'_>) -> Decision {
        let wanted = [
            (view.request.is_some(), Operation::Read),
            (view.observation.is_some(), Operation::Write),
            (view.is_over_budget(), Operation::Prune),
        ];
        let operations = wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, operation)| operation);
        Decision { operations: operations.collect(), query: None }
    }
}

/// Decides which memory operations a step does.
pub trait Controller {
    /// The decision.
    ///
    /// # Errors
    /// An error counts as [`Decision::safe`].
    fn decide(&mut self, view: &StepView<'_>) -> Result<Decision>;
}

impl<C: Controller + ?Sized> Controller for Box<C> {
    fn decide(&mut self, view: &StepView<'_>) -> Result<Decision> {
        (**self).decide(view)
    }
}

/// The heuristic schedule.
#[derive(Debug, Clone)]
pub struct HeuristicController {
    /// Steps between consolidations (ours: the paper states only the limit of five an episode).
    pub consolidate_every: u64,
}

impl Default for HeuristicController {
    fn default() -> Self {
        HeuristicController { consolidate_every: 10 }
    }
}

impl Controller for HeuristicController {
    fn decide(&mut self, view: &StepView<'_>) -> Result<Decision> {
        let mut decision = Decision::safe(view);
        let is_due = (view.step + 1).is_multiple_of(self.consolidate_every.max(1)) && view.consolidations_left > 0;
        decision.operations.extend(is_due.then_some(Operation::Consolidate));
        Ok(decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_exactly_what_is_asked_for() {
        let whole = r#"{"operations": ["READ", "WRITE", "CONSOLIDATE", "PRUNE"], "query": "gate of UA123"}"#;
        let decision = Decision::parse(whole).unwrap();
        assert_eq!((decision.operations.len(), decision.query.as_deref()), (4, Some("gate of UA123")));
        assert_eq!(Decision::parse(r#" {"operations": [], "query": null} "#).unwrap(), Decision::default());
        for (reply, why) in [
            ("", "no JSON object"),
            ("READ", "no JSON object"),
            ("[\"READ\"]", "no JSON object"),
            (r#"{"operations": ["READ"]} and more"#, "no JSON object"),
            (r#"{"query": "x"}"#, "no list `operations`"),
            (r#"{"operations": "READ"}"#, "no list `operations`"),
            (r#"{"operations": ["read"]}"#, "names no operation"),
            (r#"{"operations": ["READ", "READ"]}"#, "or one twice"),
            (r#"{"operations": [1]}"#, "names no operation"),
            (r#"{"operations": ["READ"], "why": "x"}"#, "other members"),
            (r#"{"operations": ["READ"], "query": 7}"#, "no text"),
            (r#"{"operations": ["READ"], "query": " "}"#, "empty one"),
            (r#"{"operations": ["WRITE"], "query": "x"}"#, "without READ"),
        ] {
            let error = Decision::parse(reply).unwrap_err().to_string();
            assert!(error.contains(why), "{reply}: {error}");
        }
    }
}
