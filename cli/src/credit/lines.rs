//! Reads the lines of `holotype credit`.
//!
//! ```text
//! {"group":"g1","rollout":0,"step":0,"reward":1.0,"s_prev":-2.1,"s_now":-1.4,"log_h":-0.9,"item":"r1"}
//! {"group":"g1","rollout":1,"reward":0.0}
//! ```
//!
//! `group` and `rollout` are strings or whole numbers. A score is a mean log-probability, or the array of its tokens'.
//! A line without any of `step`, `s_prev`, `s_now` and `log_h` gives a reward alone. `template` names the prompts that
//! the scores were measured with. The texts `question outcome mem think call observation` are kept with the rollout if
//! it is kept. Other members pass through.
//!
//! A line with `policy` is the tokens of a rollout, with the spans of its memory writes (eqs. 15 and 16):
//!
//! ```text
//! {"group":"g1","rollout":0,"policy":[-0.1,-0.2,-0.7],"old":[-0.1,-0.3,-0.7],"reference":[-0.2,-0.2,-0.6],
//!  "mem":[{"step":0,"start":1,"end":3}]}
//! ```

use super::parts;
use crate::failure::Problem;
use holotype::credit::{MemSpan, RunStep, Scores, Write, mean_log_prob};
use holotype::interchange::json::{JsonError, JsonType, Parser, quoted};
use std::borrow::Cow;

/// Members this command adds, which a line may therefore not have.
const COMPUTED: [&str; 10] = [
    "delta",
    "delta_hat",
    "log_rho",
    "beta",
    "gate",
    "advantage",
    "smoothed",
    "trajectory_advantage",
    "token_advantage",
    "advantages",
];

/// One line of the file.
pub(super) struct Line<'t> {
    /// Its number in the file, from 1.
    pub(super) number: usize,
    /// Its object, without white space around it.
    pub(super) text: &'t str,
    pub(super) group: Cow<'t, str>,
    pub(super) rollout: Cow<'t, str>,
    pub(super) reward: Option<f64>,
    pub(super) scored: Option<(u64, Scores)>,
    /// The key of the item that holds the memory written.
    pub(super) item: Option<Cow<'t, str>>,
    pub(super) template: Option<Cow<'t, str>>,
    pub(super) texts: Option<Box<Texts>>,
    /// The tokens of the rollout, on a line that is no write and no reward.
    pub(super) tokens: Option<Box<Tokens>>,
}

/// The texts of a step.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) question: String,
    pub(super) outcome: String,
    pub(super) step: RunStep,
}

/// Log-probabilities of the tokens of a rollout.
#[derive(Default)]
pub(super) struct Tokens {
    pub(super) policy: Vec<f64>,
    pub(super) old: Option<Vec<f64>>,
    pub(super) reference: Vec<f64>,
    pub(super) spans: Vec<MemSpan>,
}

impl Line<'_> {
    pub(super) fn write(&self) -> Write<'_> {
        Write {
            group: &self.group,
            rollout: &self.rollout,
            reward: self.reward,
            scored: self.scored,
            template: self.template.as_deref(),
        }
    }
}

/// Reads every line that is not blank.
pub(super) fn read<'t>(text: &'t str, file: &str) -> Result<Vec<Line<'t>>, Problem> {
    let mut all = Vec::new();
    let mut before = 0;
    for part in parts::each(&parts::of_lines(text), read_part) {
        let mut part = part.map_err(|Fault { number, column, error }| {
            let problem = Problem::input("line", error.message).file(file);
            problem.at((before + number) as u64, column).hint_if(error.hint)
        })?;
        part.lines.iter_mut().for_each(|line| line.number += before);
        before += part.count;
        match all.is_empty() {
            true => all = part.lines,
            false => all.append(&mut part.lines),
        }
    }
    Ok(all)
}

/// The lines of a part of the text, numbered from its beginning, and how many it has.
struct Part<'t> {
    lines: Vec<Line<'t>>,
    count: usize,
}

/// The first line of a part that cannot be read.
struct Fault {
    number: usize,
    column: u64,
    error: JsonError,
}

fn read_part(text: &str) -> Result<Part<'_>, Fault> {
    let mut part = Part { lines: Vec::new(), count: 0 };
    for line in text.lines() {
        part.count += 1;
        let (number, line) = (part.count, line.trim());
        if line.is_empty() {
            continue;
        }
        part.lines.push(read_line(line, number).map_err(|error| {
            let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
            Fault { number, column, error }
        })?);
    }
    Ok(part)
}

#[derive(Default)]
struct Members<'t> {
    group: Option<Cow<'t, str>>,
    rollout: Option<Cow<'t, str>>,
    step: Option<u64>,
    reward: Option<f64>,
    s_prev: Option<f64>,
    s_now: Option<f64>,
    log_h: Option<f64>,
    item: Option<Cow<'t, str>>,
    template: Option<Cow<'t, str>>,
    texts: Option<Box<Texts>>,
    tokens: Option<Box<Tokens>>,
    has_policy: bool,
}

impl Members<'_> {
    fn text(&mut self, name: &str, text: String) {
        let texts = self.texts.get_or_insert_default();
        *match name {
            "question" => &mut texts.question,
            "outcome" => &mut texts.outcome,
            "mem" => &mut texts.step.memory,
            "think" => &mut texts.step.think,
            "call" => &mut texts.step.call,
            _ => &mut texts.step.observation,
        } = text;
    }

    fn tokens(&mut self) -> &mut Tokens {
        self.tokens.get_or_insert_default()
    }
}

fn read_line(text: &str, number: usize) -> Result<Line<'_>, JsonError> {
    let mut members = Members::default();
    let mut parser = Parser::new(text);
    parser.object(|parser, name| {
        match name.text {
            "group" => members.group = Some(label(parser)?),
            "rollout" => members.rollout = Some(label(parser)?),
            "step" => members.step = Some(whole(parser)?),
            "reward" => members.reward = Some(float(parser)?),
            "s_prev" => members.s_prev = Some(score(parser)?),
            "s_now" => members.s_now = Some(score(parser)?),
            "log_h" => members.log_h = Some(score(parser)?),
            "item" if parser.null()? => {}
            "item" => members.item = Some(parser.string()?),
            "template" if parser.null()? => {}
            "template" => members.template = Some(parser.string()?),
            "policy" => {
                members.has_policy = true;
                members.tokens().policy = floats(parser)?;
            }
            "old" if parser.peek()? == JsonType::Array => members.tokens().old = Some(floats(parser)?),
            "reference" if parser.peek()? == JsonType::Array => members.tokens().reference = floats(parser)?,
            "mem" if parser.peek()? == JsonType::Array => members.tokens().spans = spans(parser)?,
            name @ ("question" | "outcome" | "mem" | "think" | "call" | "observation")
                if parser.peek()? == JsonType::String =>
            {
                let text = parser.string()?.into_owned();
                members.text(name, text);
            }
            computed if COMPUTED.contains(&computed) => {
                let error = JsonError::new(name.offset, format!("{} is what this command computes", quoted(computed)));
                return Err(error.with_hint("give it the lines from before they were credited"));
            }
            _ => drop(parser.raw()?),
        }
        Ok(())
    })?;
    parser.end()?;
    let missing = |name: &str| JsonError::new(0, format!("the line has no `{name}`"));
    let tokens = members.tokens.filter(|_| members.has_policy);
    let scored = match (members.step, members.s_prev, members.s_now, members.log_h) {
        (None, None, None, None) => None,
        (Some(step), Some(s_prev), Some(s_now), Some(log_h)) => Some((step, Scores { s_prev, s_now, log_h })),
        (step, s_prev, s_now, _) => {
            let name = match () {
                () if step.is_none() => "step",
                () if s_prev.is_none() => "s_prev",
                () if s_now.is_none() => "s_now",
                () => "log_h",
            };
            return Err(
                missing(name).with_hint("a memory write has step, s_prev, s_now and log_h; a reward alone has none")
            );
        }
    };
    Ok(Line {
        number,
        text,
        group: members.group.ok_or_else(|| missing("group"))?,
        rollout: members.rollout.ok_or_else(|| missing("rollout"))?,
        reward: members.reward,
        scored,
        item: members.item,
        template: members.template,
        texts: members.texts,
        tokens,
    })
}

/// Log-probabilities of tokens.
fn floats(parser: &mut Parser<'_>) -> Result<Vec<f64>, JsonError> {
    let mut numbers = Vec::new();
    parser.array(|parser, _| {
        numbers.push(float(parser)?);
        Ok(())
    })?;
    Ok(numbers)
}

/// The spans of the memory writes of a rollout: `[{"step":0,"start":1,"end":3}]`, the end exclusive.
fn spans(parser: &mut Parser<'_>) -> Result<Vec<MemSpan>, JsonError> {
    let mut spans = Vec::new();
    parser.array(|parser, _| {
        let offset = parser.offset();
        let [mut step, mut start, mut end] = [None; 3];
        parser.object(|parser, name| {
            let place = match name.text {
                "step" => &mut step,
                "start" => &mut start,
                "end" => &mut end,
                _ => return Err(JsonError::new(name.offset, "a span has `step`, `start` and `end`")),
            };
            *place = Some(whole(parser)?);
            Ok(())
        })?;
        let at = |token: u64| usize::try_from(token).unwrap_or(usize::MAX);
        let (Some(step), Some(start), Some(end)) = (step, start, end) else {
            return Err(JsonError::new(offset, "a span has `step`, `start` and `end`"));
        };
        spans.push(MemSpan { step, tokens: at(start)..at(end) });
        Ok(())
    })?;
    Ok(spans)
}

/// A string, or a whole number as its text.
fn label<'t>(parser: &mut Parser<'t>) -> Result<Cow<'t, str>, JsonError> {
    match parser.peek()? {
        JsonType::Number => {
            let offset = parser.offset();
            let text = parser.number()?;
            match text.bytes().all(|byte| byte.is_ascii_digit()) {
                true => Ok(Cow::Borrowed(text)),
                false => Err(JsonError::new(offset, format!("expected a string or a whole number, found {text}"))),
            }
        }
        _ => parser.string(),
    }
}

fn whole(parser: &mut Parser<'_>) -> Result<u64, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    text.parse().map_err(|_| JsonError::new(offset, format!("expected a whole number of at least 0, found {text}")))
}

fn float(parser: &mut Parser<'_>) -> Result<f64, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(JsonError::new(offset, format!("the number {text} is too large"))),
    }
}

/// A mean log-probability, or the mean of those of its tokens.
fn score(parser: &mut Parser<'_>) -> Result<f64, JsonError> {
    if parser.peek()? != JsonType::Array {
        return float(parser);
    }
    let offset = parser.offset();
    let tokens = floats(parser)?;
    mean_log_prob(&tokens).ok_or_else(|| JsonError::new(offset, "expected the log-probability of at least one token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: &str =
        "\"group\":\"g\",\"rollout\":0,\"step\":1,\"reward\":1,\"s_prev\":-2,\"s_now\":[-1,-2],\"log_h\":-1";

    #[test]
    fn a_write_and_a_reward() {
        let text =
            format!("{{{WRITE},\"item\":\"r1\",\"more\":{{}}}}\n\n {{\"group\":3,\"rollout\":\"x\",\"reward\":0}} \n");
        let lines = read(&text, "f").unwrap();
        let [write, reward] = lines.as_slice() else { panic!("two lines") };
        assert_eq!(write.write().scored, Some((1, Scores { s_prev: -2.0, s_now: -1.5, log_h: -1.0 })));
        assert_eq!((write.number, write.item.as_deref()), (1, Some("r1")));
        assert_eq!((reward.number, reward.write()), (3, Write::reward_only("3", "x", 0.0)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (line, column, told) in [
            ("{\"group\":1.5}", 10, "expected a string or a whole number, found 1.5"),
            ("{\"group\":\"g\",\"rollout\":0,\"step\":-1}", 33, "expected a whole number of at least 0"),
            ("{\"group\":\"g\",\"rollout\":0,\"step\":1,\"s_prev\":-1}", 1, "the line has no `s_now`"),
            ("{\"rollout\":0,\"reward\":1}", 1, "the line has no `group`"),
            ("{\"reward\":1e999}", 11, "the number 1e999 is too large"),
            ("{\"reward\":NaN}", 11, "expected a value"),
            ("{\"s_now\":[]}", 10, "at least one token"),
            ("{\"delta\":1}", 2, "`delta` is what this command computes"),
            ("{\"reward\":1,\"reward\":1}", 13, "given twice"),
            ("{", 2, ""),
        ] {
            let problem = read(line, "f").err().unwrap();
            assert_eq!(
                (problem.about.line, problem.about.column),
                (Some(1), Some(column)),
                "{line}: {}",
                problem.message
            );
            assert!(problem.message.contains(told), "{line}: {}", problem.message);
        }
    }
}
