//! Documents in three languages (XQuAD), found by the hashing embedder: the default recall beside `archive`.

use super::Context;
use super::checks::check;
use super::quality::Quality;
use super::report::Report;
use super::set::Set;
use crate::Result;
use crate::dataset::{Dataset, Vectors};
use crate::measure::round;
use serde_json::{Value, json};

const BUDGET: u64 = 500;
/// The most by which the default recall may find less.
const WITHIN: f64 = 0.003;
/// A figure of answers.
type Figure = fn(&Quality) -> f64;

const LANGUAGES: [&str; 3] = ["en", "de", "zh"];

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let Some(data) = context.folder("public") else { return Ok(()) };
    for language in LANGUAGES {
        let episode = format!("xquad-{language}");
        let mut own = |line: Value| {
            let of = line.pointer("/trace/episode").or_else(|| line.pointer("/episode/id")).and_then(Value::as_str);
            of.is_none_or(|of| of == episode).then_some(line)
        };
        let mut dataset = Dataset::load_named(&data, &["xquad".to_owned()], Vectors::hashing(), &mut own)?;
        for asked in &mut dataset.asked {
            asked.questions.retain(|question| question.line["episode"] == episode);
        }
        let set = Set::new(episode, dataset, context)?;
        let default = Quality::ask(&set, "", BUDGET, |_| true)?;
        let archive = Quality::ask(&set, "score profile archive", BUDGET, |_| true)?;
        for (profile, quality) in [("default", &default), ("archive", &archive)] {
            report.line(json!({
                "set": set.name, "profile": profile, "questions": quality.questions,
                "hit_at_one": quality.right_first(), "hit_at_five": quality.hit_at_five(),
                "evidence_at_500": quality.within_budget(),
            }));
        }
        let figures: [(&str, Figure); 3] = [
            ("hit@1", Quality::right_first),
            ("hit@5", Quality::hit_at_five),
            ("evidence at 500 tokens", Quality::within_budget),
        ];
        for (name, figure) in figures {
            let (default, archive) = (figure(&default), figure(&archive));
            let measured = format!("{default:.4} beside {archive:.4}: {:+.4}", default - archive);
            let met = Some(round(archive - default, 4) <= WITHIN);
            report.push(
                format!("{}, {name}: default beside archive", set.name),
                format!("within {WITHIN}"),
                measured,
                met,
            );
        }
        check(&set, context, report)?;
    }
    Ok(())
}
