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

/// The lines of a file that are not blank, and the writes of those that are credited, in order. A million lines are
/// gone over several times, so that each is as small as it can be, and names stay where they stand in the text.
pub(super) struct Lines<'t> {
    pub(super) all: Vec<Line<'t>>,
    pub(super) writes: Vec<Write<'t>>,
}

/// One line of the file.
pub(super) struct Line<'t> {
    /// Its number in the file, from 1.
    pub(super) number: usize,
    /// Its object, without white space around it.
    pub(super) text: &'t str,
    /// The key of the item that holds the memory written.
    pub(super) item: Option<&'t str>,
    /// The texts or the tokens that it has.
    more: Option<Box<More<'t>>>,
}

enum More<'t> {
    Texts(Texts),
    /// On a line that is no write and no reward.
    Tokens(Tokens<'t>),
}

/// The texts of a step.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) question: String,
    pub(super) outcome: String,
    pub(super) step: RunStep,
}

/// Log-probabilities of the tokens of a rollout.
pub(super) struct Tokens<'t> {
    pub(super) group: &'t str,
    pub(super) rollout: &'t str,
    pub(super) policy: Vec<f64>,
    pub(super) old: Option<Vec<f64>>,
    pub(super) reference: Vec<f64>,
    pub(super) spans: Vec<MemSpan>,
}

impl<'t> Line<'t> {
    pub(super) fn texts(&self) -> Option<&Texts> {
        match self.more.as_deref() {
            Some(More::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    pub(super) fn tokens(&self) -> Option<&Tokens<'t>> {
        match self.more.as_deref() {
            Some(More::Tokens(tokens)) => Some(tokens),
            _ => None,
        }
    }
}

impl<'t> Lines<'t> {
    /// The lines that are credited, each with its write.
    pub(super) fn scored(&self) -> impl Iterator<Item = (&Line<'t>, &Write<'t>)> {
        self.all.iter().filter(|line| line.tokens().is_none()).zip(&self.writes)
    }
}

/// Reads every line that is not blank.
pub(super) fn read<'t>(text: &'t str, file: &str) -> Result<Lines<'t>, Problem> {
    let mut read = Lines { all: Vec::new(), writes: Vec::new() };
    let mut before = 0;
    for part in parts::each(&parts::of_lines(text), read_part) {
        let Part { mut lines, count } = part.map_err(|Fault { number, column, error }| {
            let problem = Problem::input("line", error.message).file(file);
            problem.at((before + number) as u64, column).hint_if(error.hint)
        })?;
        lines.all.iter_mut().for_each(|line| line.number += before);
        before += count;
        if read.all.is_empty() {
            read = lines;
        } else {
            read.all.append(&mut lines.all);
            read.writes.append(&mut lines.writes);
        }
    }
    Ok(read)
}

/// The lines of a part of the text, numbered from its beginning, and how many it has.
struct Part<'t> {
    lines: Lines<'t>,
    count: usize,
}

/// The first line of a part that cannot be read.
struct Fault {
    number: usize,
    column: u64,
    error: JsonError,
}

fn read_part(text: &str) -> Result<Part<'_>, Fault> {
    let mut part = Part { lines: Lines { all: Vec::new(), writes: Vec::new() }, count: 0 };
    for line in text.lines() {
        part.count += 1;
        let (number, line) = (part.count, line.trim());
        if line.is_empty() {
            continue;
        }
        let (line, write) = read_line(line, number).map_err(|error| {
            let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
            Fault { number, column, error }
        })?;
        part.lines.all.push(line);
        part.lines.writes.extend(write);
    }
    Ok(part)
}

#[derive(Default)]
struct Members<'t> {
    group: Option<&'t str>,
    rollout: Option<&'t str>,
    step: Option<u64>,
    reward: Option<f64>,
    s_prev: Option<f64>,
    s_now: Option<f64>,
    /// `None` within for an empty memory, which has none.
    log_h: Option<Option<f64>>,
    item: Option<&'t str>,
    template: Option<&'t str>,
    texts: Option<Box<Texts>>,
    policy: Option<Vec<f64>>,
    old: Option<Vec<f64>>,
    reference: Vec<f64>,
    spans: Vec<MemSpan>,
}

impl<'t> Members<'t> {
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

    /// A line of these members, and its write unless it is the tokens of a rollout.
    fn line(self, number: usize, text: &'t str) -> Result<(Line<'t>, Option<Write<'t>>), JsonError> {
        let scored = self.scored()?;
        let missing = |name: &str| JsonError::new(0, format!("the line has no `{name}`"));
        let group = self.group.ok_or_else(|| missing("group"))?;
        let rollout = self.rollout.ok_or_else(|| missing("rollout"))?;
        let write = Write { group, rollout, reward: self.reward, scored, template: self.template };
        let (more, write) = match self.policy {
            Some(policy) => {
                let (old, reference, spans) = (self.old, self.reference, self.spans);
                (Some(More::Tokens(Tokens { group, rollout, policy, old, reference, spans })), None)
            }
            None => (self.texts.map(|texts| More::Texts(*texts)), Some(write)),
        };
        Ok((Line { number, text, item: self.item, more: more.map(Box::new) }, write))
    }

    /// The step of a write with its scores; `None` on a line without any of them.
    fn scored(&self) -> Result<Option<(u64, Scores)>, JsonError> {
        let missing = match (self.step, self.s_prev, self.s_now, self.log_h) {
            (None, None, None, None) => return Ok(None),
            (Some(step), Some(s_prev), Some(s_now), Some(log_h)) => {
                return Ok(Some((step, Scores { s_prev, s_now, log_h })));
            }
            (None, ..) => "step",
            (_, None, ..) => "s_prev",
            (_, _, None, _) => "s_now",
            (.., None) => "log_h",
        };
        let error = JsonError::new(0, format!("the line has no `{missing}`"));
        let hint =
            "a memory write has step, s_prev, s_now and log_h (null for an empty memory); a reward alone has none";
        Err(error.with_hint(hint))
    }
}

fn read_line(text: &str, number: usize) -> Result<(Line<'_>, Option<Write<'_>>), JsonError> {
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
            "log_h" if parser.null()? => members.log_h = Some(None),
            "log_h" => members.log_h = Some(Some(score(parser)?)),
            "item" if parser.null()? => {}
            "item" => members.item = Some(lasting(parser.string()?)),
            "template" if parser.null()? => {}
            "template" => members.template = Some(lasting(parser.string()?)),
            "policy" => members.policy = Some(floats(parser)?),
            "old" if parser.peek()? == JsonType::Array => members.old = Some(floats(parser)?),
            "reference" if parser.peek()? == JsonType::Array => members.reference = floats(parser)?,
            "mem" if parser.peek()? == JsonType::Array => members.spans = spans(parser)?,
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
    members.line(number, text)
}

/// A name that lasts as long as the text does: to the end of the program. Only a name with escapes is not in the text.
fn lasting(name: Cow<'_, str>) -> &str {
    match name {
        Cow::Borrowed(name) => name,
        Cow::Owned(name) => name.leak(),
    }
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
pub(crate) fn label<'t>(parser: &mut Parser<'t>) -> Result<&'t str, JsonError> {
    match parser.peek()? {
        JsonType::Number => {
            let offset = parser.offset();
            let text = parser.number()?;
            match text.bytes().all(|byte| byte.is_ascii_digit()) {
                true => Ok(text),
                false => Err(JsonError::new(offset, format!("expected a string or a whole number, found {text}"))),
            }
        }
        _ => parser.string().map(lasting),
    }
}

pub(crate) fn whole(parser: &mut Parser<'_>) -> Result<u64, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    text.parse().map_err(|_| JsonError::new(offset, format!("expected a whole number of at least 0, found {text}")))
}

pub(crate) fn float(parser: &mut Parser<'_>) -> Result<f64, JsonError> {
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
        let [write, reward] = lines.writes.as_slice() else { panic!("two lines") };
        assert_eq!(write.scored, Some((1, Scores { s_prev: -2.0, s_now: -1.5, log_h: Some(-1.0) })));
        assert_eq!((lines.all[0].number, lines.all[0].item), (1, Some("r1")));
        assert_eq!((lines.all[1].number, *reward), (3, Write::reward_only("3", "x", 0.0)));
    }

    #[test]
    fn names_with_escapes_are_decoded() {
        let text = r#"{"group":"g\u0031","rollout":"\"0\"","reward":1,"item":"a\/b"}"#;
        let lines = read(text, "f").unwrap();
        assert_eq!(lines.writes, [Write::reward_only("g1", "\"0\"", 1.0)]);
        assert_eq!(lines.all[0].item, Some("a/b"));
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
