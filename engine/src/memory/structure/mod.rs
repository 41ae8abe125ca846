//! Structuring (PlugMem 3.1, C.1, C.2): a trajectory becomes tuples, facts with concepts, and procedures with intents.
//!
//! | step | role | built-in |
//! |---|---|---|
//! | observation, action to state, subgoal, reward | [`Standardiser`] | as stated; else the last subgoal |
//! | unit to facts and concepts | [`Extractor`] | [`Sentences`]: sentences verbatim; names, codes, quoted titles |
//! | segment to procedure, with a score | [`ProcedureWriter`] | [`Actions`]: its actions; the mean reward |
//! | two intents to one | [`IntentMerger`] | [`JoinIntents`] |
//! | two facts to one (C.5) | [`FactMerger`] | [`MergeByWords`] |
//! | a new fact beside known ones (F) | [`Reflector`] | [`ReflectByWords`] |
//!
//! A model fills a role by implementing its trait. What a role answers is checked against the limits here: at most
//! [`MOST_FACTS`] facts a unit, of at most [`MOST_SENTENCES`] sentences, and return scores from 1 to 10. Anything else
//! is refused, and nothing of the trajectory is written.

mod concepts;
mod merging;
mod reflecting;
mod sentences;

pub use concepts::concepts_of;
pub use merging::{FactMerger, MergeByWords, MergedFact, Relation};
pub use reflecting::{ReflectByWords, Reflection, Reflector};
pub use sentences::sentences;

pub use crate::memory::embedder::Embedder;
use crate::{Error, Result};
use std::ops::Range;

/// Facts of a unit, at most (C.2, `N_max`).
pub const MOST_FACTS: usize = 10;
/// Sentences of a fact, at most (Listing 5).
pub const MOST_SENTENCES: usize = 4;

/// A run of an agent, to be structured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trajectory {
    /// The episode that its steps are recorded in.
    pub episode: String,
    /// The goal of the task, `G`.
    pub goal: String,
    /// The events, in order.
    pub steps: Vec<Step>,
}

/// One step of a trajectory: the tuple (o, s, a, r, g), of which only the observation must be given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// `o`: what the agent saw.
    pub observation: String,
    /// `a`: what it did then.
    pub action: Option<String>,
    /// `s`: a summary of where it stood.
    pub state: Option<String>,
    /// `r`: how well the action served the subgoal, from 0 to 1.
    pub reward: Option<f32>,
    /// `g`: what it tried to reach.
    pub subgoal: Option<String>,
    /// The key of the trace.
    pub key: Option<String>,
    /// The vector of the observation, in the database's space.
    pub vector: Option<Vec<f32>>,
    /// The vector of the subgoal, in the database's space.
    pub subgoal_vector: Option<Vec<f32>>,
}

impl Step {
    /// A step with its observation.
    pub fn new(observation: impl Into<String>) -> Step {
        Step { observation: observation.into(), ..Step::default() }
    }

    /// The action.
    pub fn action(mut self, action: impl Into<String>) -> Step {
        self.action = Some(action.into());
        self
    }

    /// The subgoal.
    pub fn subgoal(mut self, subgoal: impl Into<String>) -> Step {
        self.subgoal = Some(subgoal.into());
        self
    }

    /// The reward, from 0 to 1.
    pub fn reward(mut self, reward: f32) -> Step {
        self.reward = Some(reward);
        self
    }
}

/// A fact of a unit, with where it stands and its concepts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtractedFact {
    /// The statement.
    pub text: String,
    /// The bytes of the unit that it was drawn from.
    pub span: Range<usize>,
    /// The concepts it mentions, each by its name.
    pub concepts: Vec<String>,
    /// Its vector in the database's space; the built-in embedder's where there is none and the space is its own.
    pub vector: Option<Vec<f32>>,
}

/// Completes the tuple of a step (C.1).
pub trait Standardiser {
    /// State, subgoal and reward of `steps[at]`, whose earlier steps are complete.
    ///
    /// # Errors
    /// An error refuses the trajectory.
    fn complete(&self, goal: &str, steps: &[Step], at: usize) -> Result<Step>;
}

/// Draws facts with concepts from a unit of text (C.2, Listing 5).
pub trait Extractor {
    /// The facts of a unit.
    ///
    /// # Errors
    /// An error refuses the trajectory.
    fn facts(&self, unit: &str) -> Result<Vec<ExtractedFact>>;
}

/// A procedure drawn from a segment (C.2, Listing 6).
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    /// The instructions.
    pub text: String,
    /// From 1 to 10; `None` where nothing is known of its success.
    pub return_score: Option<u8>,
}

/// Writes the procedure of a segment.
pub trait ProcedureWriter {
    /// The procedure for a subgoal; `None` where the segment has none.
    ///
    /// # Errors
    /// An error refuses the trajectory.
    fn procedure(&self, subgoal: &str, steps: &[Step]) -> Result<Option<Procedure>>;
}

/// Merges the texts of two intents (Listing 7).
pub trait IntentMerger {
    /// One intent that says what both say.
    ///
    /// # Errors
    /// An error refuses the trajectory.
    fn merge(&self, earlier: &str, later: &str) -> Result<String>;
}

/// The roles that structure a trajectory.
pub struct Roles<'r> {
    /// Completes steps.
    pub standardiser: &'r dyn Standardiser,
    /// Draws facts.
    pub extractor: &'r dyn Extractor,
    /// Writes procedures.
    pub procedures: &'r dyn ProcedureWriter,
    /// Merges intents.
    pub intents: &'r dyn IntentMerger,
    /// Embeds texts without a vector; `None`: the embedder of the options, or the built-in one in its space.
    pub embedder: Option<&'r dyn Embedder>,
    /// Adjacent steps belong to one segment if the cosine of their subgoals is at least this.
    pub same_segment: f32,
    /// An intent is merged into the nearest one if their cosine is above this.
    pub same_intent: f32,
}

impl Default for Roles<'_> {
    fn default() -> Self {
        Roles {
            standardiser: &AsStated,
            extractor: &Sentences,
            procedures: &Actions,
            intents: &JoinIntents,
            embedder: None,
            same_segment: 0.75,
            same_intent: 0.8,
        }
    }
}

/// The built-in standardiser: a step keeps what it states; a missing subgoal is that of the step before, or the goal.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsStated;

impl Standardiser for AsStated {
    fn complete(&self, goal: &str, steps: &[Step], at: usize) -> Result<Step> {
        let mut step = steps.get(at).cloned().unwrap_or_default();
        if step.subgoal.is_none() {
            let before = at.checked_sub(1).and_then(|before| steps.get(before));
            step.subgoal = before.and_then(|before| before.subgoal.clone()).or_else(|| Some(goal.to_owned()));
            step.subgoal_vector = before.and_then(|before| before.subgoal_vector.clone());
        }
        Ok(step)
    }
}

/// The built-in extractor: sentences verbatim, as many to a fact as the limits ask for, with their concepts. The first
/// name of the unit is a concept of every fact: later sentences say `he` or `the film` for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sentences;

impl Extractor for Sentences {
    fn facts(&self, unit: &str) -> Result<Vec<ExtractedFact>> {
        let sentences = sentences(unit);
        let per_fact = sentences.len().div_ceil(MOST_FACTS).clamp(1, MOST_SENTENCES);
        let subject = concepts_of(unit).into_iter().next();
        let facts = sentences.chunks(per_fact).take(MOST_FACTS).filter_map(|group| {
            let span = group.first()?.start..group.last()?.end;
            let text = unit.get(span.clone())?.to_owned();
            let mut concepts = concepts_of(&text);
            concepts.extend(subject.clone().filter(|subject| !concepts.contains(subject)));
            Some(ExtractedFact { text, span, concepts, vector: None })
        });
        Ok(facts.collect())
    }
}

/// The built-in writer of procedures: the actions of a segment in order; its return score is 1 for a mean reward of 0
/// and 10 for one of 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Actions;

impl ProcedureWriter for Actions {
    fn procedure(&self, subgoal: &str, steps: &[Step]) -> Result<Option<Procedure>> {
        let actions: Vec<&str> = steps.iter().filter_map(|step| step.action.as_deref()).collect();
        if actions.is_empty() {
            return Ok(None);
        }
        let numbered = actions.iter().zip(1..).map(|(action, nth)| format!("\n{nth}. {action}"));
        let text = format!("To {subgoal}:{}", numbered.collect::<String>());
        let rewards: Vec<f32> = steps.iter().filter_map(|step| step.reward).collect();
        let mean = rewards.iter().sum::<f32>() / rewards.len().max(1) as f32;
        let return_score = (!rewards.is_empty()).then(|| 1 + (9.0 * mean.clamp(0.0, 1.0)).round() as u8);
        Ok(Some(Procedure { text, return_score }))
    }
}

/// The built-in merger of intents: both texts, each once.
#[derive(Debug, Clone, Copy, Default)]
pub struct JoinIntents;

impl IntentMerger for JoinIntents {
    fn merge(&self, earlier: &str, later: &str) -> Result<String> {
        let mut all: Vec<&str> = earlier.split("; ").collect();
        all.extend(later.split("; ").filter(|text| !earlier.split("; ").any(|known| known.eq_ignore_ascii_case(text))));
        Ok(all.join("; "))
    }
}

/// The facts of a unit, if they keep to the limits.
///
/// # Errors
/// [`Error::Invalid`]: too many facts, a fact of too many sentences or without text, a span outside of the unit.
pub(crate) fn checked_facts(extractor: &dyn Extractor, unit: &str) -> Result<Vec<ExtractedFact>> {
    let facts = extractor.facts(unit)?;
    let refused = |why: String| Err(Error::Invalid(format!("the extractor gave {why}")));
    if facts.len() > MOST_FACTS {
        return refused(format!("{} facts of a unit; at most {MOST_FACTS} are allowed", facts.len()));
    }
    for fact in &facts {
        let count = sentences(&fact.text).len();
        if fact.text.trim().is_empty() || count > MOST_SENTENCES {
            return refused(format!("a fact of {count} sentences; 1 to {MOST_SENTENCES} are allowed: {:?}", fact.text));
        }
        if unit.get(fact.span.clone()).is_none_or(str::is_empty) {
            return refused(format!("the span {:?}, which is no text of the unit", fact.span));
        }
    }
    Ok(facts)
}

/// The units of a text: runs of whole sentences that [`MOST_FACTS`] facts can hold.
pub(crate) fn units(text: &str) -> Vec<Range<usize>> {
    let sentences = sentences(text);
    let most = MOST_FACTS * MOST_SENTENCES;
    sentences.chunks(most).filter_map(|unit| Some(unit.first()?.start..unit.last()?.end)).collect()
}

/// A return score, if it is one.
///
/// # Errors
/// [`Error::Invalid`] for anything but 1 to 10.
pub(crate) fn checked_score(score: Option<u8>) -> Result<Option<u8>> {
    match score {
        Some(score) if !(1..=10).contains(&score) => {
            Err(Error::Invalid(format!("a return score is a whole number from 1 to 10, not {score}")))
        }
        score => Ok(score),
    }
}

/// The segments of a trajectory: runs of steps whose adjacent subgoals are alike (C.1). Steps without vectors are alike
/// if their subgoals are the same text.
pub fn segments(steps: &[Step], same: f32) -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| steps.get(before));
        let is_same = before.is_some_and(|before| match (&before.subgoal_vector, &step.subgoal_vector) {
            _ if before.subgoal == step.subgoal => true,
            (Some(a), Some(b)) => cosine(a, b) >= same,
            _ => false,
        });
        match segments.last_mut().filter(|_| is_same) {
            Some(last) => last.end = at + 1,
            None => segments.push(at..at + 1),
        }
    }
    segments
}

/// The cosine of two vectors; 0 for one of length 0.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_subgoals_make_segments() {
        let step = |x: f32, y: f32| Step {
            subgoal_vector: Some(vec![x, y]),
            subgoal: Some(format!("{x} {y}")),
            ..Step::default()
        };
        let steps = [step(1.0, 0.0), step(0.9, 0.1), step(0.0, 1.0), step(0.1, 1.0), step(1.0, 0.0)];
        assert_eq!(segments(&steps, 0.75), [0..2, 2..4, 4..5]);
        let named = |subgoal: &str| Step::new("o").subgoal(subgoal);
        assert_eq!(segments(&[named("a"), named("a"), named("b")], 0.75), [0..2, 2..3]);
        assert_eq!(segments(&[], 0.75), []);
    }

    #[test]
    fn the_built_in_extractor_keeps_to_the_limits() {
        for count in [0_usize, 1, 9, 10, 11, 25, 40] {
            let unit: String = (0..count).map(|nth| format!("Ada Byron met guest {nth} at noon. ")).collect();
            let facts = checked_facts(&Sentences, &unit).unwrap();
            assert!(facts.len() <= MOST_FACTS);
            let covered: usize = facts.iter().map(|fact| sentences(&fact.text).len()).sum();
            assert_eq!(covered, count, "every sentence is in one fact");
            assert!(facts.iter().all(|fact| unit[fact.span.clone()] == fact.text));
            assert!(facts.iter().all(|fact| fact.concepts.contains(&"Ada Byron".to_owned())));
        }
        let long: String = (0..95).map(|nth| format!("Sentence {nth} is here. ")).collect();
        assert_eq!(units(&long).len(), 3);
    }

    #[test]
    fn what_breaks_a_limit_is_refused() {
        struct Says(Vec<ExtractedFact>);
        impl Extractor for Says {
            fn facts(&self, _: &str) -> Result<Vec<ExtractedFact>> {
                Ok(self.0.clone())
            }
        }
        let fact = |text: &str, span| ExtractedFact { text: text.to_owned(), span, ..ExtractedFact::default() };
        let refused = |facts| checked_facts(&Says(facts), "One unit.").is_err();
        assert!(!refused(vec![fact("One unit.", 0..9)]));
        assert!(refused(vec![fact("One unit.", 0..9); 11]));
        assert!(refused(vec![fact("A. Bee sees. Cat sits. Dog runs. Elk eats. Fox naps.", 0..9)]));
        assert!(refused(vec![fact("One unit.", 0..10)]));
        assert!(refused(vec![fact(" ", 0..9)]));
        assert!([0, 11, 255].into_iter().all(|score| checked_score(Some(score)).is_err()));
        assert!((1..=10).all(|score| checked_score(Some(score)).is_ok()));
    }

    #[test]
    fn actions_become_a_procedure_with_a_score() {
        let steps = [Step::new("a").action("open").reward(1.0), Step::new("b").action("sort").reward(0.5)];
        let procedure = Actions.procedure("sort by price", &steps).unwrap().unwrap();
        assert_eq!(procedure.text, "To sort by price:\n1. open\n2. sort");
        assert_eq!(procedure.return_score, Some(8));
        assert_eq!(Actions.procedure("x", &[Step::new("a")]).unwrap(), None);
        assert_eq!(JoinIntents.merge("buy a lamp; sort", "Sort; pay").unwrap(), "buy a lamp; sort; pay");
    }
}
