//! A fast agent: prices that change from one call to the next, a few seconds apart, at one moment, or without times.
//!
//! | set | memory |
//! |---|---|
//! | `agent` | sequences of calls about three flights in turns, each an episode; every call states another price |
//! | `agent-statements` | the same by statements `record call`, each a transaction at its own moment |
//! | `agent-reads` | one price read 2,000 times and changed once |
//!
//! The newest call about a flight is right, every other one is outdated.

use super::Context;
use super::checks::check;
use super::log::{Log, SECOND_US, START_US, call};
use super::quality::Quality;
use super::report::Report;
use super::set::Set;
use crate::Result;
use crate::dataset::{Asked, Dataset};
use crate::random::Random;
use holotype::query::{ParamValue, Params};
use serde_json::json;

const BUDGET: u64 = 500;
const TOOL: &str = "search_flights";
/// The distance of two calls: some seconds, none, or no times at all.
const GAPS: [(&str, Option<i64>); 5] =
    [("1s", Some(1)), ("2s", Some(2)), ("5s", Some(5)), ("equal", Some(0)), ("timeless", None)];
/// Calls about each flight of a sequence.
const CHANGES: [usize; 3] = [2, 5, 9];
const FLIGHTS: usize = 3;
/// Times that a value is read before it changes.
const READS: usize = 2_000;
/// The forms of a call's text: `{f}` the flight, `{p}` the price.
const FORMS: [(&str, &str); 5] = [
    ("call", "search_flights({f}): price = ${p}"),
    ("json", "{\"flight\": \"{f}\", \"price\": {p}, \"currency\": \"USD\", \"seats\": 14}"),
    ("lines", "flight: {f}\nprice: ${p}\nseats: 14"),
    ("record", "{f} price=${p} in economy"),
    ("sentence", "The price of flight {f} is ${p}."),
];
const QUESTIONS: [&str; 3] =
    ["What is the price of flight {f}?", "How much does {f} cost now?", "What does flight {f} cost?"];

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let sequences = Set::new("agent", Dataset::of_runs(sequences(context))?, context)?;
    measure("fast agent: newest first", &sequences, context, report)?;
    let stated = Set::new("agent-statements", statements(context)?, context)?;
    measure("fast agent by statements: newest first", &stated, context, report)?;
    let reads = Set::new("agent-reads", Dataset::of_runs(reads(context))?, context)?;
    measure("a value read 2,000 times: newest first", &reads, context, report)
}

fn measure(what: &str, set: &Set, context: &Context, report: &mut Report) -> Result<()> {
    let quality = Quality::ask(set, "", BUDGET, |_| true)?;
    report.line(quality.line(&set.name, "all", BUDGET));
    let mut kinds: Vec<&str> = set.cases.iter().map(|case| case.category.as_str()).collect();
    kinds.dedup();
    for kind in kinds {
        report.line(Quality::ask(set, "", BUDGET, |case| case.category == kind)?.line(&set.name, kind, BUDGET));
    }
    report.all(what, quality.firsts());
    check(set, context, report)
}

fn filled(form: &str, flight: &str, price: usize) -> String {
    form.replace("{f}", flight).replace("{p}", &price.to_string())
}

/// The flights of a sequence with a new price at each of some rounds, in another order each time.
fn calls(changes: usize, random: &mut Random) -> Vec<(String, usize)> {
    let flights: Vec<String> = (0..FLIGHTS).map(|nth| format!("UA{}", 100 + nth * 300 + random.below(300))).collect();
    let mut calls: Vec<(String, usize)> = Vec::new();
    for round in 0..changes {
        for turn in 0..FLIGHTS {
            let flight = &flights[(round + turn) % FLIGHTS];
            // Each round has its range of prices, so that no two calls about a flight are equal.
            calls.push((flight.clone(), 100 + round * 90 + random.below(90)));
        }
    }
    calls
}

/// Adds the questions about each flight of some calls whose keys are known.
fn ask(log: &mut Log, kind: &str, calls: &[(String, usize)], keys: &[String]) {
    let mut flights: Vec<&String> = calls.iter().map(|(flight, _)| flight).collect();
    flights.sort();
    flights.dedup();
    for (nth, flight) in flights.iter().enumerate() {
        let of: Vec<&String> =
            calls.iter().zip(keys).filter(|(call, _)| call.0 == **flight).map(|(_, key)| key).collect();
        let Some((newest, before)) = of.split_last() else { continue };
        let question = QUESTIONS[(nth + calls.len()) % QUESTIONS.len()].replace("{f}", flight);
        log.ask(&question, json!({"evidence": [newest], "stale": before, "category": kind}));
    }
}

fn sequences(context: &Context) -> Vec<(String, Asked)> {
    let mut random = Random(0xa6e7);
    let changes = if context.smoke { &CHANGES[..1] } else { &CHANGES[..] };
    let mut runs = Vec::new();
    for (gap, seconds) in GAPS {
        for (form, text) in FORMS {
            for changes in changes {
                let mut log = Log::new(format!("agent-{gap}-{form}-{changes}"));
                let calls = calls(*changes, &mut random);
                let mut keys = Vec::new();
                for (nth, (flight, price)) in (0..).zip(&calls) {
                    let time = seconds.map(|seconds| START_US + nth * seconds * SECOND_US);
                    keys.push(log.add(call(TOOL), time, &filled(text, flight, *price)));
                }
                ask(&mut log, gap, &calls, &keys);
                runs.push(log.finish());
            }
        }
    }
    runs
}

/// A database written by statements, one at a time.
fn statements(context: &Context) -> Result<Dataset> {
    let mut random = Random(0x57a7);
    let mut written = Vec::new();
    let mut runs = Vec::new();
    for (form, text) in &FORMS[..if context.smoke { 2 } else { FORMS.len() }] {
        let mut log = Log::new(format!("statements-{form}"));
        let calls = calls(CHANGES[0], &mut random);
        let keys: Vec<String> = (0..calls.len()).map(|nth| format!("statements-{form}/{nth}")).collect();
        ask(&mut log, form, &calls, &keys);
        for ((flight, price), key) in calls.iter().zip(&keys) {
            written.push([filled(text, flight, *price), format!("statements-{form}"), key.clone()]);
        }
        runs.push(log.finish());
    }
    let dataset = Dataset::of_runs(runs)?;
    for [text, episode, key] in written {
        let params = [("t", text), ("e", episode), ("k", key)];
        let params: Params = params.map(|(name, text)| (name.to_owned(), ParamValue::Text(text))).into();
        let statement =
            format!("record call $t in episode $e with key = $k, tool = '{TOOL}', status = success, source = tool");
        dataset.database.query(&statement, &params)?;
    }
    Ok(dataset)
}

fn reads(context: &Context) -> Vec<(String, Asked)> {
    let reads = if context.smoke { 50 } else { READS };
    let mut runs = Vec::new();
    for (gap, seconds) in [GAPS[1], GAPS[4]] {
        for (nth, (form, text)) in FORMS.iter().enumerate() {
            let mut log = Log::new(format!("reads-{gap}-{form}"));
            let flight = format!("UA{}", 123 + nth);
            let calls: Vec<(String, usize)> = (0..=reads).map(|nth| (flight.clone(), 450 + nth / reads * 25)).collect();
            let mut keys = Vec::new();
            for (nth, (flight, price)) in (0..).zip(&calls) {
                let time = seconds.map(|seconds| START_US + nth * seconds * SECOND_US);
                keys.push(log.add(call(TOOL), time, &filled(text, flight, *price)));
            }
            ask(&mut log, gap, &calls, &keys);
            runs.push(log.finish());
        }
    }
    runs
}
