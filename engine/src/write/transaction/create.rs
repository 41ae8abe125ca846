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
use crate::core::handle::Holotype;
use crate::memory::embedder::EmbedError;
use crate::memory::structure::{
    Embedder, Prepared, PreparedFact, PreparedProcedure, Roles, Step, Trajectory, Unit, checked_facts, prepare, units,
};
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer, Source};
use crate::model::pointer::Pointer;
use crate::options::Durability;
use crate::write::draft::{NewRecall, NewTrace};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};

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
    /// The parts left out of the roles' answers, each with the reason.
    pub notes: Vec<String>,
}

/// An embedder that knows the vectors of some texts.
#[derive(Debug)]
struct Known<'k> {
    embedder: &'k dyn Embedder,
    vectors: &'k HashMap<String, Option<Vec<f32>>>,
}

impl Embedder for Known<'_> {
    fn fingerprint(&self) -> String {
        self.embedder.fingerprint()
    }

    fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    fn name(&self) -> String {
        self.embedder.name()
    }

    fn embed_passages(&self, texts: &[&str]) -> std::result::Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let known: Option<Vec<_>> = texts.iter().map(|text| self.vectors.get(*text).cloned()).collect();
        known.map_or_else(|| self.embedder.embed_passages(texts), Ok)
    }
}

impl Holotype {
    /// Structures a trajectory in a transaction of its own. The roles are asked before it begins, so that no writer
    /// waits for a model; only the merger of intents is asked within it.
    ///
    /// # Errors
    /// As [`Transaction::create`] and [`Transaction::commit`].
    ///
    /// ```
    /// use holotype::structure::{Roles, Step, Trajectory};
    /// use holotype::{Durability, Holotype, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// let step = Step::new("The shop Lumora sells 40 lamps.").action("sort by price");
    /// let trajectory = Trajectory { episode: "shop".to_owned(), goal: "buy a lamp".to_owned(), steps: vec![step] };
    /// let created = database.structure(&trajectory, &Roles::default(), Durability::Sync)?;
    /// assert_eq!((created.facts.len(), created.procedures.len()), (1, 1));
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn structure(&self, trajectory: &Trajectory, roles: &Roles<'_>, durability: Durability) -> Result<Created> {
        let prepared = self.prepare_trajectory(trajectory, roles)?;
        let mut transaction = self.begin()?;
        let created = transaction.create_prepared(&prepared, roles)?;
        transaction.commit(durability)?;
        Ok(created)
    }

    /// Asks the roles about a trajectory, with the embedder of the database, for [`Transaction::create_prepared`].
    ///
    /// # Errors
    /// As [`prepare`].
    pub fn prepare_trajectory(&self, trajectory: &Trajectory, roles: &Roles<'_>) -> Result<Prepared> {
        let own = self.snapshot().state.embedder(self.core.options.embedder.as_ref())?;
        prepare(trajectory, roles, own.as_deref())
    }
}

impl Transaction<'_> {
    /// Structures a trajectory: traces, facts with concepts, procedures with intents. Other writers wait for the roles
    /// meanwhile; [`Holotype::structure`] asks them before its transaction.
    ///
    /// # Errors
    /// As [`prepare`]; the errors of [`Transaction::record`] and [`Transaction::remember`].
    pub fn create(&mut self, trajectory: &Trajectory, roles: &Roles<'_>) -> Result<Created> {
        let own = self.state.embedder(self.core.options.embedder.as_ref())?;
        let prepared = prepare(trajectory, roles, own.as_deref())?;
        self.create_prepared(&prepared, roles)
    }

    /// Writes a trajectory that [`prepare`] made; of the roles only the merger of intents is asked.
    ///
    /// # Errors
    /// As [`Transaction::create`].
    pub fn create_prepared(&mut self, prepared: &Prepared, roles: &Roles<'_>) -> Result<Created> {
        let own = self.state.embedder(self.core.options.embedder.as_ref())?;
        let embedder = roles.embedder.or(own.as_deref());
        let known = embedder.map(|embedder| Known { embedder, vectors: &prepared.vectors });
        let embedder = known.as_ref().map(|known| known as &dyn Embedder);
        let roles = Roles { embedder, ..*roles };
        self.atomically(|transaction| {
            let mut created = Created { notes: prepared.notes.clone(), ..Created::default() };
            for step in &prepared.steps {
                created.traces.push(transaction.record_step(&prepared.episode, step)?);
            }
            let pairs = prepared.facts.iter().map(|fact| (created.traces.get(fact.step).copied(), fact));
            let facts: Vec<(ItemId, &PreparedFact)> = pairs.filter_map(|(trace, fact)| Some((trace?, fact))).collect();
            transaction.write_facts(&facts, &roles, &mut created)?;
            created.segments = prepared.segments.len();
            for procedure in &prepared.procedures {
                transaction.write_procedure(procedure, &prepared.steps, &roles, &mut created)?;
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
        let attributes = self.state.attributes(trace)?;
        let text = self.content(trace)?.text().to_owned();
        let speaker = attributes.speaker.map(|name| self.state.symbol_name(name)).transpose()?;
        let mut created = Created { traces: vec![trace], ..Created::default() };
        let mut facts = Vec::new();
        for (unit, range) in units(&text).into_iter().enumerate() {
            let of = Unit { text: &text[range.clone()], time: attributes.time, speaker: speaker.as_deref() };
            let extracted = checked_facts(roles.extractor, &of)?;
            created.notes.extend(extracted.dropped);
            for mut fact in extracted.facts {
                fact.span = range.start + fact.span.start..range.start + fact.span.end;
                facts.push(PreparedFact { step: 0, field: "text", unit, fact });
            }
        }
        let facts: Vec<(ItemId, &PreparedFact)> = facts.iter().map(|fact| (trace, fact)).collect();
        self.atomically(|transaction| {
            transaction.write_facts(&facts, roles, &mut created)?;
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

    fn record_step(&mut self, episode: &str, step: &Step) -> Result<ItemId> {
        let mut trace = NewTrace::new(Kind::Observation, episode, step.observation.clone());
        trace.key = step.key.clone();
        trace.vector = step.vector.clone();
        trace.time = step.time;
        trace.speaker.clone_from(&step.speaker);
        trace.tool.clone_from(&step.tool);
        trace.source = step.source.as_deref().map(str::parse).transpose()?;
        trace.status = step.status.as_deref().map(str::parse).transpose()?;
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

    /// Writes facts of traces; those of one unit are siblings.
    fn write_facts(
        &mut self,
        facts: &[(ItemId, &PreparedFact)],
        roles: &Roles<'_>,
        created: &mut Created,
    ) -> Result<()> {
        for unit in facts.chunk_by(|a, b| (a.0, a.1.unit) == (b.0, b.1.unit)) {
            let mut siblings: Vec<ItemId> = Vec::new();
            for (trace, PreparedFact { field, fact, .. }) in unit {
                let span = (fact.span.start as u64, fact.span.end as u64);
                let pointer = Pointer::to_item(*trace).field(*field).bytes(span.0, span.1);
                let mut recall = NewRecall::fact(&fact.text).from(pointer);
                // The agent's words are not its environment's.
                recall.source = (*field == "action").then_some(Source::Assistant);
                recall.vector = match &fact.vector {
                    Some(vector) => Some(vector.clone()),
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

    fn write_procedure(
        &mut self,
        prepared: &PreparedProcedure,
        steps: &[Step],
        roles: &Roles<'_>,
        created: &mut Created,
    ) -> Result<()> {
        let PreparedProcedure { steps: segment, procedure, intent } = prepared;
        let traces = created.traces.get(segment.clone()).unwrap_or_default();
        let mut recall = NewRecall::new(Kind::Procedure, &procedure.text);
        recall.return_score = procedure.return_score;
        recall.from = traces.iter().map(|trace| Pointer::to_item(*trace)).collect();
        recall.vector = self.embedded(&procedure.text, roles)?;
        let id = self.remember(recall)?;
        created.procedures.push(id);
        if !intent.trim().is_empty() {
            let first = steps.get(segment.start).filter(|step| step.subgoal.as_ref() == Some(intent));
            let vector = match first.and_then(|step| step.subgoal_vector.clone()) {
                Some(vector) => Some(vector),
                None => self.embedded(intent, roles)?,
            };
            let intent = self.intent(intent, vector, roles)?;
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
