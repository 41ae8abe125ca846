//! `holotype loop`: the memory of an agent over standard input and output (HELM 3.1), one line at a time.
//!
//! ```text
//! I need <recall>the price of UA123</recall>.            I need <memory>…</memory>.
//! {"observation":"UA123 price=$450","tool":"search"}      {"done":["WRITE"],…}
//! {"request":"price of UA123"}                            {"done":["READ"],"memory":"<memory>…</memory>",…}
//! ```
//!
//! A line of text comes back with its requests replaced by memories. A line that is a JSON object is a step: it is
//! observed, a controller decides, and what was done comes back as an object. Lines come out in the order of their
//! input, each flushed, so that a program can talk to the command.

use crate::failure::{Failure, Problem, Status};
use crate::{database, model};
use holotype::{
    Controller, Durability, EpisodeChange, Generator, HeuristicController, Holotype, LoopMemory, MemoryLoop, NewTrace,
    Operation, RecallInterface, Step, StepOutcome,
};
use holotype_models::Model;
use serde_json::{Map, Value, json};
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The episode of the agent
    #[arg(long, value_name = "ID")]
    episode: String,
    /// Tokens that the memories of a line may have together
    #[arg(long, value_name = "N", default_value_t = holotype::RECALL_TOKENS)]
    tokens: u64,
    #[command(flatten)]
    model: model::Args,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let model = args.model.open()?;
    let database = database::to_write(&args.db)?;
    // An episode can be asked before anything happened in it.
    let mut transaction = database.begin()?;
    transaction.episode(&args.episode, EpisodeChange::default())?;
    transaction.commit(Durability::Sync)?;
    let mut memory = LoopMemory::default();
    for (at, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| Problem::input("line", format!("cannot read stdin: {error}")))?;
        let told = match serde_json::from_str::<Value>(&line) {
            Ok(Value::Object(members)) => {
                let step = step(members, &args.episode).map_err(|why| {
                    let hint = "a step has `observation`, `request`, `tool`, `status`, `source`, `step` and `version`";
                    Problem::input("line", why).at(at as u64 + 1, 1).hint(hint)
                })?;
                let (outcome, after) = one(&database, args, model.as_ref(), step, memory)?;
                memory = after;
                told(&outcome).to_string()
            }
            _ => {
                let interface = RecallInterface::new().in_episode(&args.episode).within(args.tokens).with_receipts();
                let mut generator = model.clone();
                let generator = generator.as_mut().map(|model| model as &mut dyn Generator);
                interface.answer(&database, &line, generator)?.text
            }
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{told}")?;
        out.flush()?;
    }
    database.close()?;
    Ok(Status::Done)
}

fn one(
    database: &Holotype,
    args: &Args,
    model: Option<&Model>,
    step: Step,
    memory: LoopMemory,
) -> Result<(StepOutcome, LoopMemory), Failure> {
    let controller: Box<dyn Controller> = match model {
        Some(model) => Box::new(model.clone()),
        None => Box::new(HeuristicController::default()),
    };
    let interface = RecallInterface::new().in_episode(&args.episode).with_receipts();
    let limits = holotype::HelmLimits { recall_tokens: args.tokens, ..holotype::HelmLimits::default() };
    let mut running = MemoryLoop::new(database, &args.episode, controller).limits(limits);
    running = running.interface(interface).resume(memory);
    let mut generator = model.cloned();
    let outcome = running.step(step, generator.as_mut().map(|model| model as &mut dyn Generator))?;
    Ok((outcome, running.into_memory()))
}

/// A step of its JSON, or what is wrong with it.
fn step(members: Map<String, Value>, episode: &str) -> Result<Step, String> {
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is no text")),
    };
    let known = ["observation", "request", "tool", "status", "source", "step", "version"];
    if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("unknown member `{name}`"));
    }
    let observation = text("observation")?
        .map(|said| -> Result<NewTrace, String> {
            let mut trace = match text("tool")? {
                Some(tool) => NewTrace::call(episode, tool, said),
                None => NewTrace::turn(episode, said),
            };
            if let Some(status) = text("status")? {
                trace = trace.status(status.parse().map_err(|error| format!("{error}"))?);
            }
            if let Some(source) = text("source")? {
                trace = trace.source(source.parse().map_err(|error| format!("{error}"))?);
            }
            if let Some(version) = text("version")? {
                trace = trace.version(version);
            }
            match members.get("step") {
                None | Some(Value::Null) => Ok(trace),
                Some(step) => Ok(trace.step(step.as_u64().ok_or("`step` is no whole number")?)),
            }
        })
        .transpose()?;
    Ok(Step { observation, request: text("request")? })
}

/// The result of a step.
fn told(outcome: &StepOutcome) -> Value {
    let names = |operations: &[Operation]| operations.iter().map(|it| it.as_str()).collect::<Vec<_>>();
    let mut told = json!({"done": names(&outcome.decided.done), "refused": names(&outcome.refused)});
    if let Some(memory) = &outcome.memory {
        told["memory"] = json!(memory.text);
        if let Some(refresh) = memory.refresh() {
            told["refresh"] = json!({"tool": refresh.tool, "last_step": refresh.last_step});
        }
    }
    if let Some(error) = &outcome.controller_error {
        told["controller_error"] = json!(error);
    }
    told
}
