//! A rollout as a database keeps it: its run, with the scores of its writes.
//!
//! Each step is one record: a JSON object with what belongs to the whole rollout too, so that a step that was forgotten
//! takes nothing else along. Numbers are strings, so that every reader gets the same bits.
//!
//! ```text
//! {"group":"g1","rollout":"0","reward":"1.0","question":"…","outcome":"…","template":"himpo-1:…","item":"r1",
//!  "scores":{"s_prev":"-2.1","s_now":"-1.4","log_h":"-0.9"}}
//! ```

use super::run::{Run, RunStep};
use super::write::{Scores, Write};
use serde_json::{Map, Value, json};

/// A rollout with its reward.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rollout {
    /// The prompt whose rollouts are compared with each other.
    pub group: String,
    /// The rollout, unique in its group.
    pub rollout: String,
    /// `R`.
    pub reward: f64,
    /// `q`; empty where it is not known.
    pub question: String,
    /// `z*`; empty where it is not known.
    pub outcome: String,
    /// The template that its scores were measured with ([`Template::id`](super::Template::id)).
    pub template: Option<String>,
    /// The steps, in order; a rollout without writes has none.
    pub steps: Vec<RolloutStep>,
}

/// One step of a rollout.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RolloutStep {
    /// Its number.
    pub step: u64,
    /// Its texts; empty where they are not known.
    pub texts: RunStep,
    /// The scores of its write.
    pub scores: Option<Scores>,
    /// The key of the item that holds the memory written.
    pub item: Option<String>,
}

impl Rollout {
    /// The rollout of a run whose writes have these scores, in order.
    pub fn of(run: &Run, scores: &[Scores]) -> Rollout {
        let step = |(at, texts): (usize, &RunStep)| RolloutStep {
            step: at as u64,
            texts: texts.clone(),
            scores: scores.get(at).copied(),
            item: None,
        };
        Rollout {
            group: run.group.clone(),
            rollout: run.rollout.clone(),
            reward: run.reward,
            question: run.question.clone(),
            outcome: run.outcome.clone(),
            template: None,
            steps: run.steps.iter().enumerate().map(step).collect(),
        }
    }

    /// The run.
    pub fn run(&self) -> Run {
        Run {
            group: self.group.clone(),
            rollout: self.rollout.clone(),
            question: self.question.clone(),
            outcome: self.outcome.clone(),
            reward: self.reward,
            steps: self.steps.iter().map(|step| step.texts.clone()).collect(),
        }
    }

    /// The lines that credit is computed from: the reward, then the writes with scores.
    pub fn writes(&self) -> impl Iterator<Item = Write<'_>> {
        let reward = Write::reward_only(&self.group, &self.rollout, self.reward);
        let writes = self.steps.iter().filter_map(|step| {
            let write = Write::new(&self.group, &self.rollout, step.step, step.scores?);
            Some(Write { template: self.template.as_deref(), ..write })
        });
        std::iter::once(reward).chain(writes)
    }

    /// The record of a step; of the rollout without one.
    pub(crate) fn record(&self, step: Option<&RolloutStep>) -> String {
        let mut record = Map::new();
        record.insert("group".to_owned(), json!(self.group));
        record.insert("rollout".to_owned(), json!(self.rollout));
        record.insert("reward".to_owned(), number(self.reward));
        for (name, text) in [("question", &self.question), ("outcome", &self.outcome)] {
            if !text.is_empty() {
                record.insert(name.to_owned(), json!(text));
            }
        }
        let item = step.and_then(|step| step.item.as_ref());
        for (name, text) in [("template", self.template.as_ref()), ("item", item)] {
            record.extend(text.map(|text| (name.to_owned(), json!(text))));
        }
        if let Some(Scores { s_prev, s_now, log_h }) = step.and_then(|step| step.scores) {
            let mut scores = json!({"s_prev": number(s_prev), "s_now": number(s_now)});
            if let (Some(log_h), Some(scores)) = (log_h, scores.as_object_mut()) {
                scores.insert("log_h".to_owned(), number(log_h));
            }
            record.insert("scores".to_owned(), scores);
        }
        Value::Object(record).to_string()
    }

    /// A rollout of one step from its record, the number of the step and its texts; `None` if it is no record.
    pub(crate) fn from_record(record: &str, step: Option<(u64, RunStep)>) -> Option<Rollout> {
        let record: Value = serde_json::from_str(record).ok()?;
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let scores = record.get("scores").and_then(|scores| {
            let score = |name: &str| scores.get(name).and_then(read_number);
            Some(Scores { s_prev: score("s_prev")?, s_now: score("s_now")?, log_h: score("log_h") })
        });
        let step = step.map(|(step, texts)| RolloutStep { step, texts, scores, item: text("item") });
        Some(Rollout {
            group: text("group")?,
            rollout: text("rollout")?,
            reward: record.get("reward").and_then(read_number)?,
            question: text("question").unwrap_or_default(),
            outcome: text("outcome").unwrap_or_default(),
            template: text("template"),
            steps: step.into_iter().collect(),
        })
    }
}

fn number(value: f64) -> Value {
    json!(format!("{value:?}"))
}

fn read_number(value: &Value) -> Option<f64> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            texts in prop::collection::vec(".{0,8}", 6),
            numbers in prop::collection::vec(-1e100..1e100_f64, 4),
            step in any::<u64>(),
            scored in any::<bool>(),
        ) {
            let scores = Scores { s_prev: numbers[0], s_now: numbers[1], log_h: Some(numbers[2]) };
            let kept = RolloutStep {
                step,
                texts: RunStep { memory: texts[0].clone(), ..RunStep::default() },
                scores: scored.then_some(scores),
                item: scored.then(|| texts[1].clone()),
            };
            let rollout = Rollout {
                group: texts[2].clone(),
                rollout: texts[3].clone(),
                reward: numbers[3],
                question: texts[4].clone(),
                outcome: texts[5].clone(),
                template: scored.then(|| texts[0].clone()),
                steps: vec![kept.clone()],
            };
            let record = rollout.record(rollout.steps.first());
            let texts = Some((step, kept.texts.clone()));
            prop_assert_eq!(Rollout::from_record(&record, texts), Some(rollout.clone()));
            let bare = Rollout { steps: Vec::new(), ..rollout };
            prop_assert_eq!(Rollout::from_record(&bare.record(None), None), Some(bare));
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        for text in
            ["", "[]", "{}", "{\"group\":\"g\",\"rollout\":\"r\"}", "{\"group\":1,\"rollout\":\"r\",\"reward\":1}"]
        {
            assert_eq!(Rollout::from_record(text, None), None, "{text}");
        }
    }
}
