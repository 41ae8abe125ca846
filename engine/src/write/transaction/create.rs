//! Structuring a trajectory into memory (PlugMem 3.1, C.1 and C.2; Table 13, `memory.create`).
//!
//! ```text
//! step (o, s, a, r, g)  ->  trace: `text` is the observation, fields `state action reward subgoal`
//! unit of a trace       ->  facts citing their span, siblings of each other, each `mentions` its concepts
//! segment of steps      ->  a procedure that cites its traces and `solves` an intent
//! ```
//!
//! Invariants: all of it or nothing is written; every fact and procedure has provenance to every step it was drawn
//! from; a concept of one name or alias, and an intent of one meaning, exists once.

use super::Transaction;
use crate::memory::structure::{Roles, Step, Trajectory, checked_facts, checked_score, segments, units};
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer};
use crate::model::pointer::Pointer;
use crate::write::draft::{NewRecall, NewTrace};
use crate::{Error, Result};
use std::collections::HashSet;

/// The items that [`Transaction::create`] wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Created {
    /// One trace a step.
    pub traces: Vec<ItemId>,
    /// The facts, in order.
    pub facts: Vec<ItemId>,
    /// The concepts that the facts mention, new and known, each once.
    pub concepts: Vec<ItemId>,
    /// One procedure a segment with actions.
    pub procedures: Vec<ItemId>,
    /// The intents that the procedures solve, each once.
    pub intents: Vec<ItemId>,
    /// The number of segments.
    pub segments: usize,
}

impl Transaction<'_> {
    /// Structures a trajectory: traces, facts with concepts, procedures with intents.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a role breaks its limits or the trajectory has no episode or no step; what a role
    /// fails with; the errors of [`Transaction::record`] and [`Transaction::remember`].
    pub fn create(&mut self, trajectory: &Trajectory, roles: &Roles<'_>) -> Result<Created> {
        if trajectory.episode.is_empty() || trajectory.steps.is_empty() {
            return Err(Error::Invalid("a trajectory needs an episode and at least one step".to_owned()));
        }
        self.atomically(|transaction| {
            let steps = transaction.completed(trajectory, roles)?;
            let mut created = Created::default();
            for step in &steps {
                let trace = transaction.record_step(&trajectory.episode, step)?;
                created.traces.push(trace);
                transaction.induce_facts(trace, roles, &mut created)?;
            }
            let segments = segments(&steps, roles.same_segment);
            created.segments = segments.len();
            for segment in segments {
                let traces = created.traces.get(segment.clone()).unwrap_or_default().to_vec();
                let steps = steps.get(segment).unwrap_or_default();
                transaction.induce_procedure(steps, &traces, roles, &mut created)?;
            }
            created.intents.sort_unstable();
            created.intents.dedup();
            transaction.unite_created(&mut created)?;
            Ok(created)
        })
    }

    /// Draws facts with concepts from a trace that exists.
    ///
    /// # Errors
    /// As [`Transaction::create`]; [`Error::Invalid`] when the item is no trace.
    pub fn induce(&mut self, trace: ItemId, roles: &Roles<'_>) -> Result<Created> {
        if self.state.attributes(trace)?.layer() != Layer::Trace {
            return Err(Error::Invalid(format!("{trace} is no trace: facts are drawn from what happened")));
        }
        self.atomically(|transaction| {
            let mut created = Created { traces: vec![trace], ..Created::default() };
            transaction.induce_facts(trace, roles, &mut created)?;
            transaction.unite_created(&mut created)?;
            Ok(created)
        })
    }

    /// The concepts once each, without those that a later name of them united with others.
    fn unite_created(&self, created: &mut Created) -> Result<()> {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for concept in created.concepts.drain(..) {
            if seen.insert(concept) && self.state.attributes(concept)?.active {
                kept.push(concept);
            }
        }
        created.concepts = kept;
        Ok(())
    }

    /// The steps with state, subgoal and reward, and with vectors of their subgoals.
    fn completed(&mut self, trajectory: &Trajectory, roles: &Roles<'_>) -> Result<Vec<Step>> {
        let mut steps = trajectory.steps.clone();
        for at in 0..steps.len() {
            let mut step = roles.standardiser.complete(&trajectory.goal, &steps, at)?;
            if step.reward.is_some_and(|reward| !(0.0..=1.0).contains(&reward)) {
                return Err(Error::Invalid(format!("step {at}: a reward is a number from 0 to 1")));
            }
            if let (None, Some(subgoal)) = (&step.subgoal_vector, &step.subgoal) {
                step.subgoal_vector = self.embedded(subgoal, roles)?;
            }
            if let Some(place) = steps.get_mut(at) {
                *place = step;
            }
        }
        Ok(steps)
    }

    fn record_step(&mut self, episode: &str, step: &Step) -> Result<ItemId> {
        let mut trace = NewTrace::new(Kind::Observation, episode, step.observation.clone());
        trace.key = step.key.clone();
        trace.vector = step.vector.clone();
        let reward = step.reward.map(|reward| reward.to_string());
        let fields =
            [("state", &step.state), ("action", &step.action), ("reward", &reward), ("subgoal", &step.subgoal)];
        for (name, value) in fields {
            if let Some(value) = value {
                trace = trace.field(name, value.clone());
            }
        }
        self.record(trace)
    }

    fn induce_facts(&mut self, trace: ItemId, roles: &Roles<'_>, created: &mut Created) -> Result<()> {
        let text = self.content(trace)?.text().to_owned();
        for unit in units(&text) {
            let mut siblings: Vec<ItemId> = Vec::new();
            for fact in checked_facts(roles.extractor, &text[unit.clone()])? {
                let (start, end) = ((unit.start + fact.span.start) as u64, (unit.start + fact.span.end) as u64);
                let mut recall = NewRecall::fact(&fact.text).from(Pointer::to_item(trace).bytes(start, end));
                recall.vector = match fact.vector {
                    Some(vector) => Some(vector),
                    None => self.embedded(&fact.text, roles)?,
                };
                let id = self.remember(recall)?;
                for name in &fact.concepts {
                    let concept = self.concept(name, roles)?;
                    self.link(id, Edge::Mentions, concept)?;
                    created.concepts.push(concept);
                }
                for sibling in &siblings {
                    self.link(id, Edge::Sibling, *sibling)?;
                }
                siblings.push(id);
                created.facts.push(id);
            }
        }
        Ok(())
    }

    fn induce_procedure(
        &mut self,
        steps: &[Step],
        traces: &[ItemId],
        roles: &Roles<'_>,
        created: &mut Created,
    ) -> Result<()> {
        let subgoal = steps.first().and_then(|step| step.subgoal.clone()).unwrap_or_default();
        let Some(procedure) = roles.procedures.procedure(&subgoal, steps)? else { return Ok(()) };
        let mut recall = NewRecall::new(Kind::Procedure, &procedure.text);
        recall.return_score = checked_score(procedure.return_score)?;
        recall.from = traces.iter().map(|trace| Pointer::to_item(*trace)).collect();
        recall.vector = self.embedded(&procedure.text, roles)?;
        let id = self.remember(recall)?;
        created.procedures.push(id);
        if !subgoal.trim().is_empty() {
            let vector = steps.first().and_then(|step| step.subgoal_vector.clone());
            let intent = self.intent(&subgoal, vector, roles)?;
            self.link(id, Edge::Solves, intent)?;
            created.intents.retain(|known| self.state.attributes(*known).is_ok_and(|intent| intent.active));
            created.intents.push(intent);
        }
        Ok(())
    }

    /// Links an item like another one: to its concepts and intents, and from what mentions or solves it.
    pub(crate) fn unite_links(&mut self, old: ItemId, new: ItemId) -> Result<()> {
        let unites = |edge: Edge| matches!(edge, Edge::Mentions | Edge::Solves | Edge::Parent);
        for end in self.state.edges_out(old, None)?.iter().filter(|end| unites(end.edge)) {
            self.link(new, end.edge, end.far)?;
        }
        for end in self.state.edges_in(old, None)?.iter().filter(|end| unites(end.edge)) {
            self.link(end.far, end.edge, new)?;
        }
        Ok(())
    }

    /// The vector of a text by its role, or by the embedder of the database.
    pub(super) fn embedded(&mut self, text: &str, roles: &Roles<'_>) -> Result<Option<Vec<f32>>> {
        match roles.embedder {
            Some(embedder) => self.vector_by(embedder, text),
            None => self.text_vector(text),
        }
    }
}
