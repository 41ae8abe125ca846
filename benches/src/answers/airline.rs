//! The tool log of an airline (tau-bench): values that changed, values that did not change, and unknown codes.
//!
//! The second database holds the same log in texts of 500 tokens and more, neighbours joined, for the times alone.

use super::Context;
use super::checks::{self, check};
use super::quality::Quality;
use super::report::Report;
use super::set::Set;
use crate::Result;
use crate::dataset::{Dataset, Vectors};
use serde_json::{Value, json};

const BUDGET: u64 = 1_000;
/// Characters of 500 tokens.
const LONG: usize = 2_000;

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let Some(data) = context.folder("public") else { return Ok(()) };
    let name = "tau-airline";
    let set = Set::new(name, Dataset::load_named(&data, &[name.to_owned()], Vectors::Files, &mut Some)?, context)?;
    let changed = Quality::ask(&set, "", BUDGET, |case| case.category.starts_with("changed"))?;
    report.line(changed.line(name, "changed", BUDGET));
    let unchanged = Quality::ask(&set, "", BUDGET, |case| case.category.starts_with("unchanged"))?;
    report.line(unchanged.line(name, "unchanged", BUDGET));
    let all = Quality::ask(&set, "", BUDGET, |_| true)?;
    report.line(all.line(name, "all", BUDGET));
    report.at_least("airline: changed right first", 0.7, changed.right_first());
    report.at_most("airline: outdated rows in five", 0.05, changed.outdated_in_five());
    report.at_least("airline: evidence at 1,000 tokens", 0.92, all.within_budget());
    report.at_least("airline: unchanged hit@5", 0.9, unchanged.hit_at_five());
    check(&set, context, report)?;
    drop(set);
    let mut pending = Joined::default();
    let joined = Dataset::load_named(&data, &[name.to_owned()], Vectors::Files, &mut |line| pending.take(line))?;
    checks::time(&Set::new("tau-airline in texts of 500 tokens", joined, context)?, context, report)
}

/// Texts of consecutive traces, collected until they are long enough.
#[derive(Default)]
struct Joined(String);

impl Joined {
    /// A line with the texts before it, if they are long together; lines without a text stay.
    fn take(&mut self, mut line: Value) -> Option<Value> {
        let Some(text) = line.pointer("/trace/fields/text").and_then(Value::as_str) else { return Some(line) };
        self.0 += text;
        if self.0.len() < LONG {
            self.0.push('\n');
            return None;
        }
        line["trace"]["fields"]["text"] = json!(std::mem::take(&mut self.0));
        Some(line)
    }
}
