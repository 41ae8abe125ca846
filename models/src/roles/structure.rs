//! The roles that structure and merge (PlugMem C.1, C.2, C.5, F).
//!
//! A step keeps what it states: a model only adds what is missing. A fact without a quote that stands in its text is
//! left out and named; a return score that is no whole number from 1 to 10 is none.

use super::Model;
use crate::failure::Failure;
use crate::prompts::Role;
use crate::reply::{self, Members};
use holotype::structure::{
    Extracted, ExtractedFact, Extractor, FactMerger, IntentMerger, MergedFact, Procedure, ProcedureWriter, Reflection,
    Reflector, Standardiser, Step, Unit,
};
use holotype::write_back::find_quote;
use holotype::{Error, time};
use serde_json::{Value, json};
use std::ops::Range;

/// Concepts of a fact, at most.
const MOST_CONCEPTS: usize = 32;

impl Standardiser for Model {
    fn complete(&self, goal: &str, steps: &[Step], at: usize) -> holotype::Result<Step> {
        let step = steps.get(at).cloned().unwrap_or_default();
        if step.state.is_some() && step.subgoal.is_some() && step.reward.is_some() {
            return Ok(step);
        }
        let before = at.checked_sub(1).and_then(|before| steps.get(before));
        let inputs = json!({
            "goal": goal,
            "previous_state": before.and_then(|before| before.state.as_deref()),
            "previous_subgoal": before.and_then(|before| before.subgoal.as_deref()),
            "previous_action": before.and_then(|before| before.action.as_deref()),
            "time": step.time.map(time::format),
            "speaker": step.speaker,
            "observation": step.observation,
            "action": step.action,
            "next_observation": steps.get(at + 1).map(|next| next.observation.as_str()),
        });
        Ok(self.read(Role::Standardiser, inputs, |reply| completed(reply, step.clone()))?)
    }
}

/// A step with what it lacks from a reply.
fn completed(reply: &str, mut step: Step) -> Result<Step, Failure> {
    let mut members = Members::of(reply)?;
    let (state, subgoal) = (members.stated("state")?, members.stated("subgoal")?);
    let reward = members.number("reward", 0.0, 1.0)?.map(|reward| reward as f32);
    members.end()?;
    step.state.get_or_insert(state);
    step.reward = step.reward.or(reward);
    if step.subgoal.is_none() {
        (step.subgoal, step.subgoal_vector) = (Some(subgoal), None);
    }
    Ok(step)
}

impl Model {
    /// The segments of a trajectory, each pursuing one subgoal (PlugMem C.1): runs of steps, in order, that cover all.
    /// Steps whose subgoal is the same text are one segment to the engine, so that a caller who gives the steps of
    /// each segment its subgoal has these segments.
    ///
    /// # Errors
    /// [`Failure`]: a call that failed, or a reply whose starts do not begin at 0 and rise among the steps.
    pub fn segments(&self, goal: &str, steps: &[Step]) -> Result<Vec<Range<usize>>, Failure> {
        if steps.len() < 2 {
            return Ok((!steps.is_empty()).then_some(0..steps.len()).into_iter().collect());
        }
        let step = |(index, step): (usize, &Step)| {
            let Step { observation, action, subgoal, .. } = step;
            json!({"index": index, "observation": observation, "action": action, "subgoal": subgoal})
        };
        let listed: Value = steps.iter().enumerate().map(step).collect();
        let reply = self.ask(Role::Segmenter, &json!({"goal": goal, "steps": listed}))?;
        segments(&reply, steps.len())
    }
}

/// The segments of so many steps.
fn segments(reply: &str, count: usize) -> Result<Vec<Range<usize>>, Failure> {
    let mut members = Members::of(reply)?;
    let starts: Option<Vec<u64>> = members.list("starts")?.iter().map(Value::as_u64).collect();
    let starts: Option<Vec<usize>> =
        starts.and_then(|starts| starts.into_iter().map(|start| usize::try_from(start).ok()).collect());
    let starts = starts.filter(|starts| starts.first() == Some(&0) && starts.iter().all(|start| *start < count));
    let starts = starts.filter(|starts| starts.windows(2).all(|pair| pair[0] < pair[1]));
    let starts =
        starts.ok_or_else(|| members.refused("has `starts` that do not begin at 0 and rise among the steps"))?;
    members.end()?;
    let ends = starts.iter().skip(1).copied().chain([count]);
    Ok(starts.iter().zip(ends).map(|(start, end)| *start..end).collect())
}

impl Extractor for Model {
    fn facts(&self, unit: &Unit<'_>) -> holotype::Result<Extracted> {
        let inputs = json!({"text": unit.text, "time": unit.time.map(time::format), "speaker": unit.speaker});
        Ok(self.read(Role::Extractor, inputs, |reply| facts(reply, unit.text))?)
    }
}

/// The facts of a reply. One without a statement, or with a quote that the unit does not contain, is left out.
fn facts(reply: &str, unit: &str) -> Result<Extracted, Failure> {
    let mut members = Members::of(reply)?;
    let mut found = Extracted::default();
    for value in members.list("facts")? {
        match fact(members.inner(value, "facts"), unit) {
            Ok(fact) => found.facts.push(fact),
            Err(Failure::Reply { reason, .. }) => found.dropped.push(format!("a fact is left out: the reply {reason}")),
            Err(failure) => return Err(failure),
        }
    }
    members.end()?;
    Ok(found)
}

fn fact(members: Result<Members<'_>, Failure>, unit: &str) -> Result<ExtractedFact, Failure> {
    let mut fact = members?;
    let (text, quote) = (fact.stated("statement")?, fact.stated("quote")?);
    let span = find_quote(unit, &quote).map_err(|why| fact.refused(format!("quotes {quote:?}: the text {why}")))?;
    let mut concepts: Vec<String> = Vec::new();
    for concept in fact.list("concepts")? {
        let name = concept.as_str().map(str::trim).filter(|name| name.chars().any(char::is_alphanumeric));
        let name = name.ok_or_else(|| fact.refused("has a concept that is no text"))?;
        if !concepts.iter().any(|known| known == name) {
            concepts.push(name.to_owned());
        }
    }
    concepts.truncate(MOST_CONCEPTS);
    fact.end()?;
    Ok(ExtractedFact { text, span, concepts, vector: None })
}

impl ProcedureWriter for Model {
    fn procedure(&self, subgoal: &str, steps: &[Step]) -> holotype::Result<Option<Procedure>> {
        let step = |step: &Step| {
            let Step { state, observation, action, reward, .. } = step;
            json!({"state": state, "observation": observation, "action": action, "reward": reward})
        };
        let inputs = json!({"subgoal": subgoal, "steps": steps.iter().map(step).collect::<Value>()});
        Ok(self.read(Role::ProcedureWriter, inputs, procedure)?)
    }
}

/// The procedure of a reply.
fn procedure(reply: &str) -> Result<Option<Procedure>, Failure> {
    let mut members = Members::of(reply)?;
    let (text, intent) = (members.text("procedure")?, members.text("intent")?);
    let score = members.take("return_score");
    let score = score.and_then(|score| score.as_f64()).filter(|score| (1.0..=10.0).contains(score));
    members.end()?;
    let return_score = score.filter(|score| score.fract() == 0.0).map(|score| score as u8);
    Ok(text.map(|text| Procedure { text, return_score, intent }))
}

impl IntentMerger for Model {
    fn merge(&self, earlier: &str, later: &str) -> holotype::Result<String> {
        Ok(self.read(Role::IntentMerger, json!({"earlier": earlier, "later": later}), intent)?)
    }
}

/// The intent of a reply.
fn intent(reply: &str) -> Result<String, Failure> {
    let mut members = Members::of(reply)?;
    let intent = members.stated("intent")?;
    members.end()?;
    Ok(intent)
}

impl FactMerger for Model {
    fn merge(&self, earlier: &str, later: &str) -> holotype::Result<MergedFact> {
        let reply = self.ask(Role::FactMerger, &json!({"earlier": earlier, "later": later}))?;
        reply::object(&reply)?;
        MergedFact::parse(&reply)
    }
}

impl Reflector for Model {
    fn reflect(&self, known: &[String], new: &str) -> holotype::Result<Reflection> {
        if known.is_empty() {
            return Ok(Reflection::Add);
        }
        let reply = self.ask(Role::Reflector, &json!({"history_summaries": known, "new_summary": new}))?;
        let reflection = Reflection::parse(&reply, known.len())?;
        match &reflection {
            // The form has no quotes, so a statement over several lines is more than was asked for.
            Reflection::Merge(_, text) if text.contains('\n') => {
                Err(Error::Invalid(format!("the reply of a reflector has several lines: {text:?}")))
            }
            _ => Ok(reflection),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_keeps_what_it_states() {
        let reply = r#"{"state": "at the shop", "subgoal": "sort", "reward": 0.5}"#;
        let step = completed(reply, Step::new("o").subgoal("buy")).unwrap();
        assert_eq!((step.state.as_deref(), step.subgoal.as_deref()), (Some("at the shop"), Some("buy")));
        assert_eq!(step.reward, Some(0.5));
        assert_eq!(
            completed(r#"{"state": "s", "subgoal": "g", "reward": null}"#, Step::new("o")).unwrap().reward,
            None
        );
        for reply in [
            r#"{"state": "s", "subgoal": "g", "reward": 2}"#,
            r#"{"state": "s", "subgoal": "g", "reward": "good"}"#,
            r#"{"state": "", "subgoal": "g"}"#,
            r#"{"state": "s"}"#,
            "### State\ns",
        ] {
            assert!(completed(reply, Step::new("o")).is_err(), "{reply}");
        }
    }

    #[test]
    fn segments_cover_all_steps_in_order() {
        assert_eq!(segments(r#"{"starts": [0, 3]}"#, 5).unwrap(), [0..3, 3..5]);
        assert_eq!(segments(r#"{"starts": [0]}"#, 2).unwrap().first(), Some(&(0..2)));
        for list in ["[]", "[1]", "[0, 5]", "[0, 3, 3]", "[0, 3, 2]", "[0, 1.5]", "0", "[0, -1]"] {
            assert!(segments(&format!("{{\"starts\": {list}}}"), 5).is_err(), "{list}");
        }
    }

    #[test]
    fn a_fact_rests_on_words_that_are_there() {
        let unit = "Ada Byron met Babbage. She wrote the first program.";
        let reply = r#"{"facts": [{"statement": "Ada Byron wrote the first program.",
            "quote": "she wrote  the first program", "concepts": ["Ada Byron", "program", "program"]}]}"#;
        let found = facts(reply, unit).unwrap().facts;
        assert_eq!(&unit[found[0].span.clone()], "She wrote the first program");
        assert_eq!(found[0].concepts, ["Ada Byron", "program"]);
        assert_eq!(facts(r#"{"facts": []}"#, unit).unwrap(), Extracted::default());
        for wrong in [
            r#"{"statement": "x", "quote": "She wrote a poem", "concepts": []}"#,
            r#"{"statement": "x", "quote": "", "concepts": []}"#,
            r#"{"statement": "x", "quote": "met Babbage", "concepts": [1]}"#,
            r#"{"statement": "x", "quote": "met Babbage"}"#,
            r#"{"statement": "x", "quote": "met Babbage", "concepts": [], "start": 3}"#,
            r#""x""#,
        ] {
            let right = r#"{"statement": "Ada met Babbage.", "quote": "met Babbage", "concepts": []}"#;
            let found = facts(&format!(r#"{{"facts": [{wrong}, {right}]}}"#), unit).unwrap();
            assert_eq!((found.facts.len(), found.dropped.len()), (1, 1), "{wrong}");
        }
        assert!(facts(r#"{"facts": {}}"#, unit).is_err());
    }

    #[test]
    fn a_procedure_has_a_score_from_1_to_10_or_none() {
        let read = |reply: &str| procedure(reply).unwrap();
        let written =
            Procedure { text: "Sort first.".to_owned(), return_score: Some(8), intent: Some("sort a list".to_owned()) };
        let reply = r#"{"intent": "sort a list", "procedure": "Sort first.", "return_score": 8}"#;
        assert_eq!(read(reply), Some(written));
        assert_eq!(read(r#"{"procedure": null, "return_score": null}"#), None);
        for score in ["0", "11", "7.5", "\"8\"", "-1"] {
            let found = read(&format!(r#"{{"procedure": "x", "return_score": {score}}}"#)).unwrap();
            assert_eq!(found.return_score, None, "{score}");
        }
        assert_eq!(intent(r#"{"intent": "buy a lamp"}"#).unwrap(), "buy a lamp");
        assert!(intent(r#"{"intent": ""}"#).is_err());
    }

    proptest! {
        #[test]
        fn any_reply_is_read_or_refused(reply in any::<String>(), unit in any::<String>(), number in any::<f64>()) {
            let _ = (completed(&reply, Step::default()), procedure(&reply), intent(&reply), facts(&reply, &unit));
            let _ = segments(&reply, 3);
            let _ = procedure(&json!({"procedure": reply, "return_score": number}).to_string());
            let quoted = json!({"facts": [{"statement": reply, "quote": unit, "concepts": [reply]}]}).to_string();
            if let Ok(found) = facts(&quoted, &unit) {
                let is_there = |fact: &ExtractedFact| unit.get(fact.span.clone()).is_some_and(|text| !text.is_empty());
                prop_assert!(found.facts.iter().all(is_there));
            }
        }
    }
}
