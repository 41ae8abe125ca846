//! `holotype audit`: what was read and written, and how good it was, computed from the log; or, from a file of
//! decisions alone, the information density of memory ([`density`]).
//!
//! The log knows what was retrieved. What else a step cost comes from a file of the caller's loop, one JSON object a
//! line: `{"episode":"trip-42","step":3,"system":900,"history":1200,"tool":300,"micros":{"search":850}}`. Members that
//! are absent are 0 tokens, or not measured.

use crate::database;
use crate::density;
use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use crate::script;
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::density::DensityOptions;
use holotype::interchange::json::{JsonError, Parser, quoted};
use holotype::{AuditReport, StepCost};
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    #[arg(required_unless_present = "density")]
    db: Option<PathBuf>,
    /// Only this episode; may be given several times
    #[arg(long, value_name = "ID")]
    episode: Vec<String>,
    /// Costs of steps besides retrieved memories: one JSON object a line, with `episode`, `step`, the tokens `system`,
    /// `history` and `tool`, and `micros` with `search`, `expand` and `consolidate`; `-` is stdin
    #[arg(long, value_name = "FILE.jsonl")]
    tokens: Option<PathBuf>,
    /// Instead, information density (PlugMem D) of decisions with and without memory: one JSON object a line, with
    /// `base` and `mem`, the probabilities of the right action, and, where known, `tokens`, `budget` and `actions`; `-`
    /// is stdin
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["db", "episode", "tokens"])]
    density: Option<PathBuf>,
    /// Prior confidence from which a decision has nothing to gain (PlugMem D.1.5)
    #[arg(long, value_name = "X", default_value_t = DensityOptions::default().confident, requires = "density")]
    confident: f64,
    /// The number that is added to probabilities; by default 1 % of the base rate of these decisions
    #[arg(long, value_name = "X", requires = "density")]
    epsilon: Option<f64>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    if let Some(decisions) = &args.density {
        let options = DensityOptions { confident: args.confident, epsilon: args.epsilon };
        return density::run(decisions, &options, format);
    }
    let db = args.db.as_deref().unwrap_or(Path::new(""));
    let costs = args.tokens.as_deref().map(read_costs).transpose()?.unwrap_or_default();
    let database = database::to_read(db)?;
    let episodes: Vec<&str> = args.episode.iter().map(String::as_str).collect();
    let report = database.snapshot().audit(&episodes, &costs)?;
    let out = &mut io::stdout().lock();
    match format {
        Format::Json | Format::Jsonl => render::write_fact(out, &object_of(&report), "", format)?,
        _ => render::write(out, &[Output::Table(table_of(&report))], format, &Screen::stdout())?,
    }
    Ok(database::status_of_reading(&database))
}

fn table_of(report: &AuditReport) -> Table {
    let row = |measure: &holotype::Measure| {
        let value = measure.value.map(|value| Cell::Number((value * 1e6).round() / 1e6));
        vec![Some(Cell::text(measure.name.as_str())), value, Some(Cell::count(measure.of))]
    };
    let columns = ["measure", "value", "of"].map(str::to_owned).to_vec();
    let rows = report.measures.iter().map(row).collect();
    Table { verb: "audit", columns, rows, notes: report.notes.clone(), failed: false }
}

/// The values by name, those with a dot in objects of their own; beside them what each is the share or mean of.
fn object_of(report: &AuditReport) -> Value {
    let (mut values, mut of) = (Map::new(), Map::new());
    for measure in &report.measures {
        insert(&mut values, &measure.name, measure.value.into());
        insert(&mut of, &measure.name, measure.of.into());
    }
    values.insert("of".to_owned(), of.into());
    values.insert("notes".to_owned(), report.notes.clone().into());
    values.into()
}

fn insert(object: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => drop(object.insert(name.to_owned(), value)),
        Some((outer, inner)) => {
            if let Value::Object(object) = object.entry(outer).or_insert_with(|| Map::new().into()) {
                insert(object, inner, value);
            }
        }
    }
}

fn read_costs(path: &Path) -> Result<Vec<StepCost>, Failure> {
    let (text, name) = script::read_named(path)?;
    let mut costs = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        costs.push(read_cost(line).map_err(|error| {
            let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
            Problem::input("line", error.message).file(&name).at(number as u64 + 1, column).hint_if(error.hint)
        })?);
    }
    Ok(costs)
}

fn read_cost(line: &str) -> Result<StepCost, JsonError> {
    let (mut cost, mut episode, mut step) = (StepCost::default(), None, None);
    let mut parser = Parser::new(line);
    parser.object(|parser, name| {
        match name.text {
            "episode" => episode = Some(parser.string()?.into_owned()),
            "step" => step = Some(whole(parser)?),
            "system" => cost.tokens[0] = whole(parser)?,
            "history" => cost.tokens[1] = whole(parser)?,
            "tool" => cost.tokens[2] = whole(parser)?,
            "micros" => parser.object(|parser, name| {
                let component = match name.text {
                    "search" => 0,
                    "expand" => 1,
                    "consolidate" => 2,
                    _ => return Err(unknown(name.offset, name.text, "search, expand and consolidate")),
                };
                cost.micros[component] = Some(whole(parser)?);
                Ok(())
            })?,
            _ => {
                let known = "episode, step, system, history, tool and micros";
                return Err(unknown(name.offset, name.text, known));
            }
        }
        Ok(())
    })?;
    parser.end()?;
    let missing = |name: &str| JsonError::new(0, format!("the line has no `{name}`"));
    cost.episode = episode.ok_or_else(|| missing("episode"))?;
    cost.step = step.ok_or_else(|| missing("step"))?;
    Ok(cost)
}

fn unknown(offset: usize, name: &str, known: &str) -> JsonError {
    JsonError::new(offset, format!("unknown member {}; expected {known}", quoted(name)))
}

fn whole(parser: &mut Parser<'_>) -> Result<u64, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    // Sums of them must not overflow.
    let number = text.parse().ok().filter(|number| *number <= u64::from(u32::MAX));
    number
        .ok_or_else(|| JsonError::new(offset, format!("expected a whole number from 0 to {}, found {text}", u32::MAX)))
}
