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
//! [`MOST_FACTS`] facts a unit, of at most [`MOST_SENTENCES`] sentences, and return scores from 1 to 10. What breaks a
//! limit is left out and reported ([`Prepared::notes`]), and so is what an [`Error::Reply`] would have given: one
//! imperfect reply costs a fact, a procedure or the state of a step, and not the trajectory. Any other error of a role
//! refuses the trajectory.
//!
//! Facts are drawn from observations. In a conversation, a trajectory without a goal, the agent's actions are what the
//! assistant said, and facts are drawn from them, too.

mod concepts;
mod merging;
mod prepare;
mod reflecting;
mod sentences;

pub use concepts::concepts_of;
pub use merging::{FactMerger, MergeByWords, MergedFact, Relation};
pub use prepare::{Prepared, PreparedFact, PreparedProcedure, prepare};
pub use reflecting::{ReflectByWords, Reflection, Reflector};
pub(crate) use sentences::is_abbreviation;
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
    /// The moment, in microseconds since 1970.
    pub time: Option<i64>,
    /// The speaker of the observation.
    pub speaker: Option<String>,
    /// The producer of the observation, by its name: `user`, `tool`, `environment` and so on.
    pub source: Option<String>,
    /// The outcome, by its name: `success`, `unknown` or `failed`.
    pub status: Option<String>,
    /// The tool that gave the observation.
    pub tool: Option<String>,
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

    /// The moment, in microseconds since 1970.
    pub fn time(mut self, micros: i64) -> Step {
        self.time = Some(micros);
        self
    }

    /// The speaker of the observation.
    pub fn speaker(mut self, speaker: impl Into<String>) -> Step {
        self.speaker = Some(speaker.into());
        self
    }
}

/// A text to draw facts from, with what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unit<'u> {
    /// The text.
    pub text: &'u str,
    /// The moment of its event, in microseconds since 1970.
    pub time: Option<i64>,
    /// Its speaker.
    pub speaker: Option<&'u str>,
}

impl<'u> From<&'u str> for Unit<'u> {
    fn from(text: &'u str) -> Unit<'u> {
        Unit { text, ..Unit::default() }
    }
}

/// The facts drawn from a unit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extracted {
    /// The facts.
    pub facts: Vec<ExtractedFact>,
    /// The parts that were left out, each with the reason.
    pub dropped: Vec<String>,
}

impl From<Vec<ExtractedFact>> for Extracted {
    fn from(facts: Vec<ExtractedFact>) -> Extracted {
        Extracted { facts, dropped: Vec::new() }
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
    /// [`Error::Reply`] leaves the step as it is stated; another error refuses the trajectory.
    fn complete(&self, goal: &str, steps: &[Step], at: usize) -> Result<Step>;
}

/// Draws facts with concepts from a unit of text (C.2, Listing 5).
pub trait Extractor {
    /// The facts of a unit.
    ///
    /// # Errors
    /// [`Error::Reply`] leaves the unit without facts; another error refuses the trajectory.
    fn facts(&self, unit: &Unit<'_>) -> Result<Extracted>;
}

/// A procedure drawn from a segment (C.2, Listing 6).
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    /// The instructions.
    pub text: String,
    /// From 1 to 10; `None` where nothing is known of its success.
    pub return_score: Option<u8>,
    /// The intent that it serves, free of its environment; `None`: the subgoal of the segment.
    pub intent: Option<String>,
}

/// Writes the procedure of a segment.
pub trait ProcedureWriter {
    /// The procedure for a subgoal; `None` where the segment has none.
    ///
    /// # Errors
    /// [`Error::Reply`] leaves the segment without one; another error refuses the trajectory.
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
    fn facts(&self, unit: &Unit<'_>) -> Result<Extracted> {
        let unit = unit.text;
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
        Ok(facts.collect::<Vec<_>>().into())
    }
}

/// The built-in writer of procedures: the actions of a segment in order, where it has a subgoal; its return score is 1
/// for a mean reward of 0 and 10 for one of 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Actions;

impl ProcedureWriter for Actions {
    fn procedure(&self, subgoal: &str, steps: &[Step]) -> Result<Option<Procedure>> {
        let actions: Vec<&str> = steps.iter().filter_map(|step| step.action.as_deref()).collect();
        if actions.is_empty() || subgoal.trim().is_empty() {
            return Ok(None);
        }
        let numbered = actions.iter().zip(1..).map(|(action, nth)| format!("\n{nth}. {action}"));
        let text = format!("To {subgoal}:{}", numbered.collect::<String>());
        let rewards: Vec<f32> = steps.iter().filter_map(|step| step.reward).collect();
        let mean = rewards.iter().sum::<f32>() / rewards.len().max(1) as f32;
        let return_score = (!rewards.is_empty()).then(|| 1 + (9.0 * mean.clamp(0.0, 1.0)).round() as u8);
        Ok(Some(Procedure { text, return_score, intent: None }))
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

/// The facts of a unit that keep to the limits; the others are named with what is wrong with them.
///
/// # Errors
/// Those of the extractor, other than [`Error::Reply`].
pub(crate) fn checked_facts(extractor: &dyn Extractor, unit: &Unit<'_>) -> Result<Extracted> {
    let mut given = match extractor.facts(unit) {
        Err(Error::Reply(reason)) => Extracted { facts: Vec::new(), dropped: vec![reason] },
        given => given?,
    };
    let mut kept = Vec::new();
    for (nth, fact) in given.facts.into_iter().enumerate() {
        let count = sentences(&fact.text).len();
        let wrong = if nth >= MOST_FACTS {
            Some(format!("a unit has at most {MOST_FACTS} facts"))
        } else if fact.text.trim().is_empty() || count > MOST_SENTENCES {
            Some(format!("a fact has 1 to {MOST_SENTENCES} sentences, and it has {count}"))
        } else if unit.text.get(fact.span.clone()).is_none_or(str::is_empty) {
            Some(format!("its span {:?} is no text of the unit", fact.span))
        } else {
            None
        };
        match wrong {
            Some(wrong) => given.dropped.push(format!("the fact {:?} is left out: {wrong}", fact.text)),
            None => kept.push(fact),
        }
    }
    Ok(Extracted { facts: kept, dropped: given.dropped })
}

/// The units of a text: runs of whole sentences that [`MOST_FACTS`] facts can hold.
pub(crate) fn units(text: &str) -> Vec<Range<usize>> {
    let sentences = sentences(text);
    let most = MOST_FACTS * MOST_SENTENCES;
    sentences.chunks(most).filter_map(|unit| Some(unit.first()?.start..unit.last()?.end)).collect()
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
            let facts = checked_facts(&Sentences, &Unit::from(unit.as_str())).unwrap().facts;
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
    fn what_breaks_a_limit_is_left_out_and_named() {
        struct Says(Vec<ExtractedFact>);
        impl Extractor for Says {
            fn facts(&self, _: &Unit<'_>) -> Result<Extracted> {
                Ok(self.0.clone().into())
            }
        }
        let fact = |text: &str, span| ExtractedFact { text: text.to_owned(), span, ..ExtractedFact::default() };
        let kept = |facts| {
            let found = checked_facts(&Says(facts), &Unit::from("One unit.")).unwrap();
            (found.facts.len(), found.dropped.len())
        };
        assert_eq!(kept(vec![fact("One unit.", 0..9)]), (1, 0));
        assert_eq!(kept(vec![fact("One unit.", 0..9); 12]), (10, 2));
        assert_eq!(kept(vec![fact("A. Bee sees. Cat sits. Dog runs. Elk eats. Fox naps.", 0..9)]), (0, 1));
        assert_eq!(kept(vec![fact("One unit.", 0..10), fact("One unit.", 0..9)]), (1, 1));
        assert_eq!(kept(vec![fact(" ", 0..9)]), (0, 1));
        struct Babbles;
        impl Extractor for Babbles {
            fn facts(&self, _: &Unit<'_>) -> Result<Extracted> {
                Err(Error::Reply("it says nothing".to_owned()))
            }
        }
        let found = checked_facts(&Babbles, &Unit::from("One unit.")).unwrap();
        assert_eq!((found.facts.len(), found.dropped), (0, vec!["it says nothing".to_owned()]));
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
