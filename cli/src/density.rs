//! Information density of memory (PlugMem D) from a file of decisions, one JSON object a line:
//!
//! ```text
//! {"base":0.25,"mem":0.9,"tokens":120,"budget":500,
//!  "actions":{"base":[0.25,0.75],"mem":[0.9,0.1],"oracle":[1.0,0.0]}}
//! ```
//!
//! `base` and `mem` are the probability of the right action without and with memory. Everything else may be missing:
//! `tokens` is 0 then, `actions` are all actions in one order, and lines of one `budget` make a point of the curve.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use crate::script;
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::density::{Actions, Case, Density, DensityError, DensityOptions, density_with};
use holotype::interchange::json::{JsonError, Parser, quoted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A case with its line and its budget.
struct Line {
    number: usize,
    case: Case,
    budget: Option<u64>,
}

pub(crate) fn run(file: &Path, options: &DensityOptions, format: Format) -> Result<Status, Failure> {
    let (text, name) = script::read_named(file)?;
    let lines = read(&text, &name)?;
    let cases: Vec<Case> = lines.iter().map(|line| line.case.clone()).collect();
    let found = density_with(&cases, options).map_err(|error| refused(&error, &lines, &name))?;
    let curve = curve(&lines, &found);
    let out = &mut io::stdout().lock();
    match format {
        Format::Json | Format::Jsonl => render::write_fact(out, &object_of(&lines, &found, &curve), "", format)?,
        _ => render::write(out, &[Output::Table(table_of(&lines, &found, &curve))], format, &Screen::stdout())?,
    }
    Ok(Status::Done)
}

fn refused(error: &DensityError, lines: &[Line], file: &str) -> Failure {
    let problem = Problem::input("density", format!("`{}` {}", error.field, error.problem)).file(file);
    match error.case.checked_sub(1).and_then(|index| lines.get(index)) {
        Some(line) => problem.at(line.number as u64, 1).into(),
        None => problem.into(),
    }
}

/// A point of the utility-cost plane (D.2): mean tokens and bits of a case, and bits a token.
struct Point {
    budget: u64,
    tokens: f64,
    bits: f64,
    density: Option<f64>,
}

/// The points of the budgets, smallest first. The smoothing is that of all cases, so that points can be compared.
fn curve(lines: &[Line], found: &Density) -> Vec<Point> {
    let mut budgets: BTreeMap<u64, (f64, u64, usize)> = BTreeMap::new();
    for (line, case) in lines.iter().zip(&found.cases) {
        let Some(budget) = line.budget else { continue };
        let sums = budgets.entry(budget).or_default();
        *sums = (sums.0 + case.pmi, sums.1.saturating_add(line.case.tokens), sums.2 + 1);
    }
    let point = |(budget, (bits, tokens, count)): (u64, (f64, u64, usize))| Point {
        budget,
        tokens: tokens as f64 / count as f64,
        bits: bits / count as f64,
        density: (tokens > 0).then(|| bits / tokens as f64),
    };
    budgets.into_iter().map(point).collect()
}

const QUADRANTS: [&str; 4] =
    ["efficient_reasoning", "corrective_calibration", "destructive_noise", "hallucination_trap"];

/// The sum of the bits that are known, with the number of cases they are known of.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Names and values of the measures over all cases.
fn measures(lines: &[Line], found: &Density) -> Vec<(&'static str, Option<f64>)> {
    let tokens: u64 = lines.iter().map(|line| line.case.tokens).fold(0, u64::saturating_add);
    let mut measures = vec![
        ("cases", Some(lines.len() as f64)),
        ("tokens", Some(tokens as f64)),
        ("pmi", Some(found.cases.iter().map(|case| case.pmi).sum())),
        ("density", found.density),
        ("recall_rate", Some(found.recall_rate)),
        ("active_cases", Some(found.active_count as f64)),
        ("active_density", found.active_density),
        ("entropy_drop", mean(found.cases.iter().filter_map(|case| case.entropy_drop))),
        ("validity_adjusted", mean(found.cases.iter().filter_map(|case| case.validity_adjusted))),
        ("kl_gain", mean(found.cases.iter().map(|case| case.kl_gain))),
    ];
    measures.extend(QUADRANTS.iter().zip(found.quadrants).map(|(name, count)| (*name, Some(count as f64))));
    measures
}

fn table_of(lines: &[Line], found: &Density, curve: &[Point]) -> Table {
    let row = |name: String, value: Option<f64>| {
        vec![Some(Cell::Text(name)), value.map(|value| Cell::Number((value * 1e6).round() / 1e6))]
    };
    let mut rows: Vec<_> =
        measures(lines, found).into_iter().map(|(name, value)| row(name.to_owned(), value)).collect();
    for Point { budget, tokens, bits, density } in curve {
        rows.push(row(format!("curve.{budget}.tokens"), Some(*tokens)));
        rows.push(row(format!("curve.{budget}.bits"), Some(*bits)));
        rows.push(row(format!("curve.{budget}.density"), *density));
    }
    let columns = ["measure", "value"].map(str::to_owned).to_vec();
    Table { verb: "audit", columns, rows, ..Table::default() }
}

fn object_of(lines: &[Line], found: &Density, curve: &[Point]) -> Value {
    let mut object: serde_json::Map<String, Value> =
        measures(lines, found).into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let point = |point: &Point| {
        let Point { budget, tokens, bits, density } = point;
        json!({"budget": budget, "tokens": tokens, "bits": bits, "density": density})
    };
    object.insert("curve".to_owned(), curve.iter().map(point).collect());
    object.into()
}

fn read(text: &str, file: &str) -> Result<Vec<Line>, Problem> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        let (case, budget) = read_line(line).map_err(|error| {
            let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
            Problem::input("line", error.message).file(file).at(index as u64 + 1, column).hint_if(error.hint)
        })?;
        Ok(Line { number: index + 1, case, budget })
    };
    lines.map(read).collect()
}

fn read_line(line: &str) -> Result<(Case, Option<u64>), JsonError> {
    let [mut base, mut mem] = [None; 2];
    let (mut tokens, mut budget, mut actions) = (0, None, None);
    let mut parser = Parser::new(line);
    parser.object(|parser, name| {
        match name.text {
            "base" => base = Some(number(parser)?),
            "mem" => mem = Some(number(parser)?),
            "tokens" => tokens = whole(parser)?,
            "budget" if parser.null()? => {}
            "budget" => budget = Some(whole(parser)?),
            "actions" if parser.null()? => {}
            "actions" => actions = Some(read_actions(parser)?),
            other => {
                let known = "base, mem, tokens, budget and actions";
                return Err(unknown(name.offset, other, known));
            }
        }
        Ok(())
    })?;
    parser.end()?;
    let missing = |name: &str| JsonError::new(0, format!("the line has no `{name}`"));
    let (base, mem) = (base.ok_or_else(|| missing("base"))?, mem.ok_or_else(|| missing("mem"))?);
    Ok((Case { base, mem, tokens, actions }, budget))
}

fn read_actions(parser: &mut Parser<'_>) -> Result<Actions, JsonError> {
    let mut actions = Actions::default();
    parser.object(|parser, name| {
        let place = match name.text {
            "base" => &mut actions.base,
            "mem" => &mut actions.mem,
            "oracle" => &mut actions.oracle,
            other => return Err(unknown(name.offset, other, "base, mem and oracle")),
        };
        parser.array(|parser, _| {
            place.push(number(parser)?);
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(actions)
}

fn unknown(offset: usize, name: &str, known: &str) -> JsonError {
    JsonError::new(offset, format!("unknown member {}", quoted(name))).with_hint(format!("known are {known}"))
}

fn number(parser: &mut Parser<'_>) -> Result<f64, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    text.parse().map_err(|_| JsonError::new(offset, format!("expected a number, found {text}")))
}

fn whole(parser: &mut Parser<'_>) -> Result<u64, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    text.parse().map_err(|_| JsonError::new(offset, format!("expected a whole number of at least 0, found {text}")))
}
