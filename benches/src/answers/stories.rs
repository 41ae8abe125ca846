//! Stories of bAbI: persons who move, and where each of them is at the reader's step.
//!
//! The figures of the table are of the questions about persons who moved before.

use super::Context;
use super::checks::check;
use super::quality::Quality;
use super::report::Report;
use super::set::Set;
use crate::Result;
use crate::dataset::{Dataset, Vectors};

const BUDGET: u64 = 1_000;

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let Some(data) = context.folder("public") else { return Ok(()) };
    let dataset = Dataset::load_named(&data, &["babi".to_owned()], Vectors::Files, &mut Some)?;
    let set = Set::new("babi", dataset, context)?;
    let all = Quality::ask(&set, "", BUDGET, |_| true)?;
    report.line(all.line("babi", "all", BUDGET));
    let moved = Quality::ask(&set, "", BUDGET, |case| !case.outdated.is_empty())?;
    report.line(moved.line("babi", "changed", BUDGET));
    report.at_least("stories (bAbI): right first", 0.9, moved.right_first());
    report.at_most("stories (bAbI): outdated rows in five", 0.22, moved.outdated_in_five());
    check(&set, context, report)
}
