//! Reads the lines of `holotype credit`.
//!
//! ```text
//! {"group":"g1","rollout":0,"step":0,"reward":1.0,"s_prev":-2.1,"s_now":-1.4,"log_h":-0.9,"item":"r1"}
//! {"group":"g1","rollout":1,"reward":0.0}
//! ```
//!
//! `group` and `rollout` are strings or whole numbers. A score is a mean log-probability, or the array of its tokens'.
//! A line without any of `step`, `s_prev`, `s_now` and `log_h` gives a reward alone. Other members pass through.

use crate::failure::Problem;
use holotype::credit::{Scores, Write, mean_log_prob};
use holotype::interchange::json::{JsonError, JsonType, Parser, quoted};
use std::borrow::Cow;

/// Members this command adds, which a line may therefore not have.
const COMPUTED: [&str; 9] = [
    "delta",
    "delta_hat",
    "log_rho",
    "beta",
    "gate",
    "advantage",
    "smoothed",
    "trajectory_advantage",
    "token_advantage",
];

/// One line of the file.
pub(super) struct Line<'t> {
    /// Its number in the file, from 1.
    pub(super) number: usize,
    /// Its object, without white space around it.
    pub(super) text: &'t str,
    pub(super) group: Cow<'t, str>,
    pub(super) rollout: Cow<'t, str>,
    reward: Option<f64>,
    pub(super) scored: Option<(u64, Scores)>,
    /// The key of the item that holds the memory written.
    pub(super) item: Option<Cow<'t, str>>,
}

impl Line<'_> {
    pub(super) fn write(&self) -> Write<'_> {
        Write { group: &self.group, rollout: &self.rollout, reward: self.reward, scored: self.scored }
    }
}

/// Reads every line that is not blank.
pub(super) fn read<'t>(text: &'t str, file: &str) -> Result<Vec<Line<'t>>, Problem> {
    let lines =
        text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())).filter(|(_, line)| !line.is_empty());
    let read = |(number, line): (usize, &'t str)| {
        read_line(line, number).map_err(|error| {
            let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
            Problem::input("line", error.message).file(file).at(number as u64, column).hint_if(error.hint)
        })
    };
    lines.map(read).collect()
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
    })
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
    let mut tokens = Vec::new();
    parser.array(|parser, _| {
        tokens.push(float(parser)?);
        Ok(())
    })?;
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
