//! The lines of runs: those of `holotype credit` with texts, scored or not.
//!
//! ```text
//! {"group":"g1","rollout":0,"step":0,"reward":1.0,"question":"…","outcome":"…",
//!  "mem":"…","think":"…","call":"…","observation":"…"}
//! ```
//!
//! Reward, question and outcome of a rollout may stand on any of its lines; a line without `step` gives them alone.
//! Members that are not named here pass by.

use crate::credit::lines::{float, label, whole};
use crate::failure::Problem;
use holotype::credit::{PreWriteState, Rollout, RolloutStep, RunStep, Scoring, Template};
use holotype::interchange::json::{JsonError, Parser};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// One line.
#[derive(Default)]
struct Line {
    group: Option<String>,
    rollout: Option<String>,
    step: Option<u64>,
    reward: Option<f64>,
    item: Option<String>,
    question: Option<String>,
    outcome: Option<String>,
    texts: RunStep,
}

/// A rollout with the lines that its steps and its reward stand on.
#[derive(Default)]
struct Known {
    rollout: Rollout,
    reward: Option<f64>,
    lines: BTreeMap<u64, usize>,
    first: usize,
}

/// The rollouts of a text, by group and name, their steps in order.
pub(crate) fn read(text: &str, file: &str) -> Result<Vec<Rollout>, Problem> {
    let mut known: BTreeMap<(String, String), Known> = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = at + 1;
        read_line(line.trim()).and_then(|line| add(&mut known, line, number)).map_err(|error| {
            let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
            Problem::input("line", error.message).file(file).at(number as u64, column).hint_if(error.hint)
        })?;
    }
    if known.is_empty() {
        let hint = "one JSON object a line, with `group`, `rollout`, `step`, `reward` and texts";
        return Err(Problem::input("runs", "there is no run").file(file).hint(hint));
    }
    let mut rollouts = Vec::with_capacity(known.len());
    for ((group, rollout), mut known) in known {
        let Some(reward) = known.reward else {
            let message = format!(
                "no line gives the reward of group {group:?}, rollout {rollout:?}; add `reward` to one of them"
            );
            return Err(Problem::input("line", message).file(file).at(known.first as u64, 1));
        };
        known.rollout.reward = reward;
        known.rollout.steps.sort_by_key(|step| step.step);
        rollouts.push(known.rollout);
    }
    Ok(rollouts)
}

fn add(known: &mut BTreeMap<(String, String), Known>, line: Line, number: usize) -> Result<(), JsonError> {
    let missing = |name: &str| JsonError::new(0, format!("the line has no `{name}`"));
    let group = line.group.ok_or_else(|| missing("group"))?;
    let name = line.rollout.ok_or_else(|| missing("rollout"))?;
    let entry = known.entry((group.clone(), name.clone())).or_insert_with(|| Known {
        rollout: Rollout { group: group.clone(), rollout: name.clone(), ..Rollout::default() },
        first: number,
        ..Known::default()
    });
    let of = || format!("group {group:?}, rollout {name:?}");
    if let Some(reward) = line.reward {
        if entry.reward.is_some_and(|known| known.to_bits() != reward.to_bits()) {
            return Err(JsonError::new(0, format!("{} has another reward on an earlier line", of())));
        }
        entry.reward = Some(reward);
    }
    let texts = [
        ("question", &mut entry.rollout.question, line.question),
        ("outcome", &mut entry.rollout.outcome, line.outcome),
    ];
    for (name, known, text) in texts {
        let Some(text) = text else { continue };
        if !known.is_empty() && *known != text {
            return Err(JsonError::new(0, format!("{} has another {name} on an earlier line", of())));
        }
        *known = text;
    }
    if let Some(step) = line.step {
        if let Some(earlier) = entry.lines.insert(step, number) {
            return Err(JsonError::new(0, format!("{} already has step {step} on line {earlier}", of())));
        }
        entry.rollout.steps.push(RolloutStep { step, texts: line.texts, scores: None, item: line.item });
    }
    Ok(())
}

fn read_line(text: &str) -> Result<Line, JsonError> {
    let mut line = Line::default();
    let mut parser = Parser::new(text);
    parser.object(|parser, name| {
        match name.text {
            "group" => line.group = Some(label(parser)?.to_owned()),
            "rollout" => line.rollout = Some(label(parser)?.to_owned()),
            "step" => line.step = Some(whole(parser)?),
            "reward" => line.reward = Some(float(parser)?),
            "item" if parser.null()? => {}
            "item" => line.item = Some(parser.string()?.into_owned()),
            "question" => line.question = Some(parser.string()?.into_owned()),
            "outcome" => line.outcome = Some(parser.string()?.into_owned()),
            "mem" => line.texts.memory = parser.string()?.into_owned(),
            "think" => line.texts.think = parser.string()?.into_owned(),
            "call" => line.texts.call = parser.string()?.into_owned(),
            "observation" => line.texts.observation = parser.string()?.into_owned(),
            _ => drop(parser.raw()?),
        }
        Ok(())
    })?;
    parser.end()?;
    Ok(line)
}

/// Writes a rollout: a line a step, or its reward alone.
pub(super) fn write(rollout: &Rollout, out: &mut impl Write) -> io::Result<()> {
    let whole = |step: Option<&RolloutStep>| {
        let mut line = Map::new();
        line.insert("group".to_owned(), json!(rollout.group));
        line.insert("rollout".to_owned(), json!(rollout.rollout));
        line.extend(step.map(|step| ("step".to_owned(), json!(step.step))));
        line.insert("reward".to_owned(), json!(rollout.reward));
        line
    };
    let of_rollout = [("question", &rollout.question), ("outcome", &rollout.outcome)];
    if rollout.steps.is_empty() {
        let mut line = whole(None);
        add_texts(&mut line, of_rollout);
        return writeln!(out, "{}", Value::Object(line));
    }
    for step in &rollout.steps {
        let mut line = whole(Some(step));
        if let Some(scores) = step.scores {
            let all = [("s_prev", Some(scores.s_prev)), ("s_now", Some(scores.s_now)), ("log_h", scores.log_h)];
            for (name, score) in all {
                line.insert(name.to_owned(), json!(score));
            }
        }
        let template = rollout.template.as_ref().filter(|_| step.scores.is_some());
        for (name, text) in [("template", template), ("item", step.item.as_ref())] {
            line.extend(text.map(|text| (name.to_owned(), json!(text))));
        }
        let RunStep { memory, think, call, observation } = &step.texts;
        add_texts(&mut line, of_rollout);
        add_texts(&mut line, [("mem", memory), ("think", think), ("call", call), ("observation", observation)]);
        writeln!(out, "{}", Value::Object(line))?;
    }
    Ok(())
}

fn add_texts<'t>(line: &mut Map<String, Value>, texts: impl IntoIterator<Item = (&'t str, &'t String)>) {
    let told = texts.into_iter().filter(|(_, text)| !text.is_empty());
    line.extend(told.map(|(name, text)| (name.to_owned(), json!(text))));
}

/// Writes the measurements of each write: where its score goes, the prompt, and the continuation to score. An empty
/// memory has no `log_h`: there is no token of it.
pub(super) fn write_prompts(rollout: &Rollout, template: &Template, out: &mut impl Write) -> io::Result<()> {
    let run = rollout.run();
    for (at, step) in rollout.steps.iter().enumerate() {
        let state = run.state(at);
        let written = PreWriteState { memory: &step.texts.memory, ..state };
        let outcome = |state| Scoring { state, given: None, continuation: &run.outcome };
        let hindsight = Scoring { state, given: Some(&run.outcome), continuation: &step.texts.memory };
        for (score, scoring) in [("s_prev", outcome(state)), ("s_now", outcome(written)), ("log_h", hindsight)] {
            if scoring.continuation.is_empty() {
                continue;
            }
            let line = json!({
                "group": rollout.group, "rollout": rollout.rollout, "step": step.step, "score": score,
                "template": template.id(), "prompt": scoring.prompt(template), "continuation": scoring.continuation,
            });
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
