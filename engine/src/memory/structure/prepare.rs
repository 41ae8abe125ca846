//! A trajectory as its roles see it, before anything is written.
//!
//! Models are slow, and a transaction keeps other writers waiting. So all roles that need no database are asked first,
//! and all texts are embedded in one call; then the result is written at once.
//!
//! Invariant: nothing here depends on what the database holds.

use super::{
    AsStated, Embedder, ExtractedFact, Procedure, Roles, Standardiser, Step, Trajectory, Unit, checked_facts, segments,
    units,
};
use crate::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;

/// A trajectory, ready to be written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prepared {
    /// The episode.
    pub episode: String,
    /// The steps, completed.
    pub steps: Vec<Step>,
    /// The facts, in the order of steps and units.
    pub facts: Vec<PreparedFact>,
    /// The segments of steps.
    pub segments: Vec<Range<usize>>,
    /// The procedures, in the order of segments.
    pub procedures: Vec<PreparedProcedure>,
    /// The parts of the roles' answers that were left out, each with the reason.
    pub notes: Vec<String>,
    /// Vectors of texts, from one call of the embedder.
    pub(crate) vectors: HashMap<String, Option<Vec<f32>>>,
}

/// A fact with the place that it was drawn from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PreparedFact {
    /// The index of its step.
    pub step: usize,
    /// The field of the step's trace that it stands in: `text` for the observation, or `action`.
    pub field: &'static str,
    /// The number of its unit; facts of one unit are siblings.
    pub unit: usize,
    /// The fact, its span within the field.
    pub fact: ExtractedFact,
}

/// A procedure with the steps that it was drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedProcedure {
    /// Its steps.
    pub steps: Range<usize>,
    /// The procedure, with a return score from 1 to 10 or none.
    pub procedure: Procedure,
    /// The intent that it solves; empty for none.
    pub intent: String,
}

/// Asks the roles about a trajectory. The embedder is that of the roles, or another one.
///
/// # Errors
/// [`Error::Invalid`] for a trajectory without an episode or a step, and for a reward outside of 0 to 1; what a role
/// fails with, other than [`Error::Reply`].
pub fn prepare(trajectory: &Trajectory, roles: &Roles<'_>, embedder: Option<&dyn Embedder>) -> Result<Prepared> {
    if trajectory.episode.is_empty() || trajectory.steps.is_empty() {
        return Err(Error::Invalid("a trajectory needs an episode and at least one step".to_owned()));
    }
    let embedder = roles.embedder.or(embedder);
    let mut prepared = Prepared { episode: trajectory.episode.clone(), ..Prepared::default() };
    prepared.complete(trajectory, roles)?;
    prepared.embed_subgoals(embedder)?;
    let is_conversation = trajectory.goal.trim().is_empty();
    for at in 0..prepared.steps.len() {
        let step = prepared.steps[at].clone();
        prepared.draw(at, "text", &step.observation, step.speaker.as_deref(), roles)?;
        let said =
            step.action.as_deref().filter(|_| is_conversation && step.subgoal.as_deref().is_none_or(str::is_empty));
        if let Some(said) = said {
            prepared.draw(at, "action", said, Some("assistant"), roles)?;
        }
    }
    prepared.segments = segments(&prepared.steps, roles.same_segment);
    for segment in prepared.segments.clone() {
        prepared.induce(segment, roles)?;
    }
    prepared.embed_texts(embedder)?;
    Ok(prepared)
}

impl Prepared {
    /// The steps with state, subgoal and reward.
    fn complete(&mut self, trajectory: &Trajectory, roles: &Roles<'_>) -> Result<()> {
        self.steps.clone_from(&trajectory.steps);
        for at in 0..self.steps.len() {
            let step = match roles.standardiser.complete(&trajectory.goal, &self.steps, at) {
                Err(Error::Reply(reason)) => {
                    self.notes.push(format!("step {at} stays as it is stated: {reason}"));
                    AsStated.complete(&trajectory.goal, &self.steps, at)?
                }
                completed => completed?,
            };
            if step.reward.is_some_and(|reward| !(0.0..=1.0).contains(&reward)) {
                return Err(Error::Invalid(format!("step {at}: a reward is a number from 0 to 1")));
            }
            self.steps[at] = step;
        }
        Ok(())
    }

    fn embed_subgoals(&mut self, embedder: Option<&dyn Embedder>) -> Result<()> {
        let missing = |step: &&mut Step| step.subgoal_vector.is_none() && step.subgoal.is_some();
        let texts: Vec<String> =
            self.steps.iter_mut().filter(missing).filter_map(|step| step.subgoal.clone()).collect();
        self.embed(texts, embedder)?;
        for step in self.steps.iter_mut().filter(|step| step.subgoal_vector.is_none()) {
            step.subgoal_vector = step.subgoal.as_ref().and_then(|subgoal| self.vectors.get(subgoal)?.clone());
        }
        Ok(())
    }

    /// Draws the facts of a field of a step.
    fn draw(
        &mut self,
        step: usize,
        field: &'static str,
        text: &str,
        speaker: Option<&str>,
        roles: &Roles<'_>,
    ) -> Result<()> {
        for range in units(text) {
            let unit = self.facts.last().map_or(0, |fact| fact.unit + 1);
            let of = Unit { text: &text[range.clone()], time: self.steps[step].time, speaker };
            let extracted = checked_facts(roles.extractor, &of)?;
            self.notes.extend(extracted.dropped.into_iter().map(|dropped| format!("step {step}: {dropped}")));
            for mut fact in extracted.facts {
                fact.span = range.start + fact.span.start..range.start + fact.span.end;
                self.facts.push(PreparedFact { step, field, unit, fact });
            }
        }
        Ok(())
    }

    fn induce(&mut self, steps: Range<usize>, roles: &Roles<'_>) -> Result<()> {
        let of = self.steps.get(steps.clone()).unwrap_or_default();
        let subgoal = of.first().and_then(|step| step.subgoal.clone()).unwrap_or_default();
        let mut procedure = match roles.procedures.procedure(&subgoal, of) {
            Err(Error::Reply(reason)) => {
                self.notes.push(format!("the steps from {} have no procedure: {reason}", steps.start));
                return Ok(());
            }
            Ok(None) => return Ok(()),
            written => match written? {
                Some(procedure) => procedure,
                None => return Ok(()),
            },
        };
        if let Some(score) = procedure.return_score.filter(|score| !(1..=10).contains(score)) {
            procedure.return_score = None;
            let told = format!("a return score is a whole number from 1 to 10, not {score}");
            self.notes.push(format!("the procedure of the steps from {} has no score: {told}", steps.start));
        }
        let intent = procedure.intent.clone().filter(|intent| !intent.trim().is_empty()).unwrap_or(subgoal);
        self.procedures.push(PreparedProcedure { steps, procedure, intent });
        Ok(())
    }

    /// Embeds what was drawn.
    fn embed_texts(&mut self, embedder: Option<&dyn Embedder>) -> Result<()> {
        let mut texts: Vec<String> = Vec::new();
        for PreparedFact { fact, .. } in &self.facts {
            texts.extend(fact.vector.is_none().then(|| fact.text.clone()));
            texts.extend(fact.concepts.iter().cloned());
        }
        for PreparedProcedure { procedure, intent, .. } in &self.procedures {
            texts.extend([procedure.text.clone(), intent.clone()]);
        }
        self.embed(texts, embedder)
    }

    fn embed(&mut self, mut texts: Vec<String>, embedder: Option<&dyn Embedder>) -> Result<()> {
        texts.retain(|text| !text.is_empty() && !self.vectors.contains_key(text));
        texts.sort_unstable();
        texts.dedup();
        let Some(embedder) = embedder.filter(|_| !texts.is_empty()) else { return Ok(()) };
        let given: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = embedder.embed_passages(&given)?;
        if vectors.len() != texts.len() {
            let reason = format!("it gave {} vectors for {} texts", vectors.len(), texts.len());
            return Err(Error::Embedder { reason });
        }
        self.vectors.extend(texts.into_iter().zip(vectors));
        Ok(())
    }
}
