//! A service desk with questions, in the form that `epistemic` reads: each thing is looked up again and again, and
//! among the answers some failed, one is of another version, one is a guess, and all but the last are out of date.

use super::conversation::Story;
use crate::Result;
use holotype::interchange::line::{Episode, FieldValue, Line, Trace};
use serde_json::{Map, json};
use std::path::Path;

const EPISODE: &str = "desk";
const VERSION: &str = "v2";
const THINGS: [&str; 12] = [
    "pump 17",
    "pump 23",
    "lift 4",
    "lift 9",
    "boiler 31",
    "boiler 58",
    "press 6",
    "press 12",
    "crane 2",
    "crane 41",
    "kiln 77",
    "kiln 80",
];
/// The fates of the look-ups of a thing, oldest first.
const ROUNDS: [&str; 8] = ["stale", "stale", "failed", "stale", "foreign-version", "ungrounded", "failed", "right"];

/// Writes the folder and gives the number of questions.
pub(crate) fn write(dir: &Path) -> Result<usize> {
    let mut story = Story::create(dir, EPISODE)?;
    let version = Some(VERSION.to_owned());
    story.line(Line::Episode(Episode { id: EPISODE.to_owned(), version, ..Episode::default() }))?;
    let mut classes = vec![Map::new(); THINGS.len()];
    for (round, class) in ROUNDS.iter().enumerate() {
        for (nth, thing) in THINGS.iter().enumerate() {
            let step = round * THINGS.len() + nth;
            lookup(&mut story, step, thing, class)?;
            classes[nth].insert(format!("s{step}"), json!(class));
        }
    }
    let steps = ROUNDS.len() * THINGS.len();
    for (nth, (thing, classes)) in THINGS.iter().zip(classes).enumerate() {
        let right = format!("s{}", steps - THINGS.len() + nth);
        let known = json!({ "now_step": steps, "right": right, "right_is_fresh": true, "classes": classes });
        story.ask(&format!("What is the current pressure of {thing}?"), known)?;
    }
    story.finish()
}

fn lookup(story: &mut Story, step: usize, thing: &str, class: &str) -> Result<()> {
    /// The first of January 2026, in microseconds.
    const BEGINNING: i64 = 1_767_225_600_000_000;
    /// Two hours: a round takes a day, so that what is newer is newer by as much as recency is told in.
    const STEP: i64 = 7_200_000_000;
    let pressure = 100 + step * 37 % 800;
    let guessed = class == "ungrounded";
    let text = match class {
        "ungrounded" => format!("I believe the pressure of {thing} is {pressure} kPa."),
        "failed" => format!("read_gauge({thing}): pressure = {pressure} kPa ... TimeoutError: no answer within 30 s"),
        _ => format!("read_gauge({thing}): pressure = {pressure} kPa"),
    };
    let vector = story.row(&text)?;
    let of = |name: &str| Some(name.to_owned());
    story.line(Line::Trace(Trace {
        key: Some(format!("s{step}")),
        episode: EPISODE.to_owned(),
        step: Some(u64::try_from(step)?),
        time: Some(BEGINNING + i64::try_from(step)? * STEP),
        kind: of(if guessed { "turn" } else { "call" }),
        source: of(if guessed { "assistant" } else { "tool" }),
        tool: if guessed { None } else { of("read_gauge") },
        log_id: Some(format!("log-{}", step / 20)),
        status: of(match class {
            "failed" => "failed",
            "ungrounded" => "unknown",
            _ => "success",
        }),
        version: of(if class == "foreign-version" { "v1" } else { VERSION }),
        fields: vec![("text".to_owned(), FieldValue::Text(text))],
        vector,
        ..Trace::default()
    }))
}
