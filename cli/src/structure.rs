//! `holotype structure`: trajectories to traces, facts with concepts, and procedures with intents (PlugMem 3.1).
//!
//! ```text
//! {"episode":"trip-42","goal":"book a flight","observation":"…","action":"…","state":"…","reward":0.5,"subgoal":"…"}
//! ```
//!
//! One JSON object is a step, of which only `observation` must be there. Consecutive lines of one episode are one
//! trajectory; `episode` and `goal` of a line hold until another line states others. All of it or nothing is written.
//! `time`, `speaker`, `source`, `status` and `tool` of an observation are optional, too. The roles are the built-in
//! ones, or a model's, which is asked before the transaction begins.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::{database, model, script};
use holotype::Durability;
use holotype::interchange::json::{JsonError, Parser, quoted};
use holotype::plural::counted;
use holotype::structure::{Roles, Step, Trajectory};
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// One JSON object a step, with `observation` and, where known, `episode`, `goal`, `action`, `state`, `reward`
    /// (0 to 1), `subgoal`, `time`, `speaker`, `source`, `status`, `tool` and `key`; `-` is stdin
    file: PathBuf,
    /// The episode of steps before the first line that states one
    #[arg(long, value_name = "ID")]
    episode: Option<String>,
    /// The cosine of adjacent subgoals below which a segment ends
    #[arg(long, value_name = "X", default_value_t = Roles::default().same_segment)]
    same_segment: f32,
    /// The cosine of intents above which they are one
    #[arg(long, value_name = "X", default_value_t = Roles::default().same_intent)]
    same_intent: f32,
    #[command(flatten)]
    model: model::Args,
}

/// A step with what its line says about its trajectory.
#[derive(Default)]
struct Line {
    episode: Option<String>,
    goal: Option<String>,
    step: Step,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let (text, name) = script::read_named(&args.file)?;
    let trajectories = read(&text, &name, args.episode.as_deref())?;
    let model = args.model.open()?;
    let mut roles = Roles { same_segment: args.same_segment, same_intent: args.same_intent, ..Roles::default() };
    if let Some(model) = &model {
        (roles.standardiser, roles.extractor, roles.procedures, roles.intents) = (model, model, model, model);
    }
    let database = database::to_write(&args.db)?;
    let of_line = |first: usize, error| Problem::from(error).file(&name).at(first as u64, 1);
    let mut prepared = Vec::with_capacity(trajectories.len());
    for (first, trajectory) in &trajectories {
        prepared
            .push((*first, database.prepare_trajectory(trajectory, &roles).map_err(|error| of_line(*first, error))?));
    }
    let mut transaction = database.begin()?;
    let [mut traces, mut facts, mut procedures, mut segments] = [0_u64; 4];
    let (mut concepts, mut intents) = (Vec::new(), Vec::new());
    for (first, prepared) in &prepared {
        let created = transaction.create_prepared(prepared, &roles).map_err(|error| of_line(*first, error))?;
        created.notes.iter().for_each(|note| database::note(note));
        traces += created.traces.len() as u64;
        facts += created.facts.len() as u64;
        procedures += created.procedures.len() as u64;
        segments += created.segments as u64;
        concepts.extend(created.concepts);
        intents.extend(created.intents);
    }
    transaction.commit(Durability::Sync)?;
    database::close(database)?;
    for ids in [&mut concepts, &mut intents] {
        ids.sort_unstable();
        ids.dedup();
    }
    let (concepts, intents) = (concepts.len() as u64, intents.len() as u64);
    let fact = json!({"traces": traces, "facts": facts, "concepts": concepts, "procedures": procedures,
        "intents": intents, "segments": segments});
    let told = format!(
        "{} in {}: {} with {}, {} with {}",
        counted(traces, "traces"),
        counted(segments, "segments"),
        counted(facts, "facts"),
        counted(concepts, "concepts"),
        counted(procedures, "procedures"),
        counted(intents, "intents"),
    );
    render::write_fact(&mut io::stdout().lock(), &fact, &told, format)?;
    Ok(Status::Done)
}

/// The trajectories of a text, each with its first line.
fn read(text: &str, file: &str, episode: Option<&str>) -> Result<Vec<(usize, Trajectory)>, Problem> {
    let mut found: Vec<(usize, Trajectory)> = Vec::new();
    let mut episode = episode.map(str::to_owned);
    let mut goal = String::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let read = read_line(line).map_err(|error| {
            let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
            Problem::input("line", error.message).file(file).at(at as u64 + 1, column).hint_if(error.hint)
        })?;
        let is_new = read.episode.is_some() && read.episode != episode;
        episode = read.episode.or(episode);
        if is_new {
            goal.clear();
        }
        goal = read.goal.unwrap_or(goal);
        let Some(episode) = &episode else {
            let problem = Problem::input("line", "no line before says an episode").file(file).at(at as u64 + 1, 1);
            return Err(problem.hint("give the line an `episode`, or the command --episode ID"));
        };
        match found.last_mut().filter(|(_, trajectory)| trajectory.episode == *episode) {
            Some((_, trajectory)) => trajectory.steps.push(read.step),
            None => {
                let (episode, goal) = (episode.clone(), goal.clone());
                found.push((at + 1, Trajectory { episode, goal, steps: vec![read.step] }));
            }
        }
    }
    if found.is_empty() {
        let hint = "one JSON object a line, with `observation`";
        return Err(Problem::input("line", "there is no step").file(file).hint(hint));
    }
    Ok(found)
}

fn read_line(text: &str) -> Result<Line, JsonError> {
    let mut line = Line::default();
    let mut observation = None;
    let mut parser = Parser::new(text);
    parser.object(|parser, name| {
        let place = match name.text {
            "observation" => &mut observation,
            "episode" => &mut line.episode,
            "goal" => &mut line.goal,
            "action" => &mut line.step.action,
            "state" => &mut line.step.state,
            "subgoal" => &mut line.step.subgoal,
            "key" => &mut line.step.key,
            "speaker" => &mut line.step.speaker,
            "source" => &mut line.step.source,
            "status" => &mut line.step.status,
            "tool" => &mut line.step.tool,
            "time" => {
                let offset = parser.offset();
                let written = parser.string()?;
                let time = holotype::time::parse(&written);
                line.step.time = Some(time.map_err(|error| JsonError::new(offset, error.to_string()))?);
                return Ok(());
            }
            "reward" => {
                let offset = parser.offset();
                let number = parser.number()?;
                let reward = number.parse().ok().filter(|reward| (0.0..=1.0).contains(reward));
                let refused = || JsonError::new(offset, format!("a reward is a number from 0 to 1, not {number}"));
                line.step.reward = Some(reward.ok_or_else(refused)?);
                return Ok(());
            }
            other => {
                let known = "known are observation, episode, goal, action, state, reward, subgoal, time, speaker, \
                             source, status, tool and key";
                return Err(JsonError::new(name.offset, format!("unknown member {}", quoted(other))).with_hint(known));
            }
        };
        if !parser.null()? {
            *place = Some(parser.string()?.into_owned());
        }
        Ok(())
    })?;
    parser.end()?;
    line.step.observation = observation.ok_or_else(|| JsonError::new(0, "the line has no `observation`"))?;
    Ok(line)
}
