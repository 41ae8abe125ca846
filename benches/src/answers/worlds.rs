//! Changing worlds: agent runs in which tools fail, values change, versions differ and the assistant guesses, each
//! asked at its end.
//!
//! The runs of `epistemic-dev` and generated ones in three styles, each with steps of 420, 10 and 2 seconds.

use super::Context;
use super::checks::check;
use super::log::{SECOND_US, START_US};
use super::quality::Quality;
use super::report::Report;
use super::set::Set;
use crate::Result;
use crate::dataset::{Dataset, Vectors};
use crate::epistemic::{self, Style};
use serde_json::{Value, json};

const BUDGET: u64 = 1_000;
const STEPS_S: [i64; 3] = [420, 10, 2];
const STYLES: [Style; 3] = [Style::Calls, Style::Json, Style::Prose];
const SEED: u64 = 7;

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let (steps, styles) = if context.smoke { (&STEPS_S[2..], &STYLES[..1]) } else { (&STEPS_S[..], &STYLES[..]) };
    for step_s in steps {
        let mut worst = Worst::default();
        if let Some(data) = context.folder("epistemic-dev") {
            let names = if context.smoke { vec!["desk".to_owned()] } else { names() };
            let dataset = Dataset::load_named(&data, &names, Vectors::Files, &mut |line| Some(timed(line, *step_s)))?;
            worst.measure(&Set::new(format!("worlds-{step_s}s"), dataset, context)?, context, report)?;
        }
        for style in styles {
            let mut runs = epistemic::generated(*style, SEED);
            runs.truncate(if context.smoke { 1 } else { runs.len() });
            for (lines, _) in &mut runs {
                let parsed = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
                *lines = parsed.into_iter().map(|line| format!("{}\n", timed(line, *step_s))).collect();
            }
            let name = format!("worlds-{}-{step_s}s", style.as_str());
            worst.measure(&Set::new(name, Dataset::of_runs(runs)?, context)?, context, report)?;
        }
        let what = |figure: &str| format!("changing worlds, steps of {step_s} s: {figure}, worst style");
        report.at_least(what("right first"), 0.99, 1.0 - worst.wrong_first);
        report.at_most(what("outdated rows in five"), 0.0, worst.outdated);
        report.at_most(what("guesses in five"), 0.03, worst.guesses);
    }
    Ok(())
}

/// The largest shares of all sets with steps of one duration.
#[derive(Default)]
struct Worst {
    wrong_first: f64,
    outdated: f64,
    guesses: f64,
}

impl Worst {
    fn measure(&mut self, set: &Set, context: &Context, report: &mut Report) -> Result<()> {
        let quality = Quality::ask(set, "", BUDGET, |_| true)?;
        report.line(quality.line(&set.name, "all", BUDGET));
        self.wrong_first = self.wrong_first.max(1.0 - quality.right_first());
        self.outdated = self.outdated.max(quality.outdated_in_five());
        self.guesses = self.guesses.max(quality.guesses_in_five());
        check(set, context, report)
    }
}

fn names() -> Vec<String> {
    (1..=3).map(|run| format!("epi-{run}")).collect()
}

/// A line with the time of its step, where steps take some seconds.
fn timed(mut line: Value, step_s: i64) -> Value {
    if let Some(step) = line.pointer("/trace/step").and_then(Value::as_i64) {
        line["trace"]["time"] = json!(holotype::time::format(START_US + step * step_s * SECOND_US));
    }
    line
}
