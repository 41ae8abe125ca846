//! `holotype rollouts`: runs of an agent with a memory of its own, before and beside their credit (HiMPO).
//!
//! ```text
//! holotype rollouts score RUNS | holotype credit - --db DB --keep
//! holotype rollouts intervene DB --fault memory --step 2 > faulty.jsonl;  holotype rollouts blame DB faulty.jsonl
//! ```
//!
//! RUNS is a file of steps ([`lines`]), `-`, or a database with kept rollouts. Scores are those of the built-in scorer,
//! or of a policy behind `--model`; `prompts` writes what a policy elsewhere has to score instead.

pub(crate) mod lines;

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use crate::{database, model, script};
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::credit::{
    ChangeAnswer, CreditOptions, Intervention, Module, Rollout, Run, Scoreboard, Scorer, Template, Truncation,
    WordScorer, blame, deconfound, intervene,
};
use holotype::plural::counted;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    model: model::Args,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Score every memory write by the built-in scorer; the lines are those that `credit` takes
    Score {
        /// A file of steps, one JSON object a line with `group`, `rollout`, `step`, `reward` and the texts `question`,
        /// `outcome`, `mem`, `think`, `call` and `observation`; `-` is stdin; or a database with kept rollouts
        runs: PathBuf,
    },
    /// Write the prompts and continuations whose log-probabilities a policy has to give (eqs. 5, 7 and 9)
    Prompts {
        /// As of `score`
        runs: PathBuf,
    },
    /// Plant a fault in every run that has the step, and write the runs (Appendix D)
    Intervene {
        /// As of `score`
        runs: PathBuf,
        /// The fault
        #[arg(long)]
        fault: Fault,
        /// The step
        #[arg(long, value_name = "N")]
        step: u64,
    },
    /// Say whose worth fell from clean runs to faulty ones of the same names
    Blame {
        /// As of `score`
        clean: PathBuf,
        /// As of `score`, with the fault
        faulty: PathBuf,
    },
    /// Measure how well credit finds causes, by interventions on the runs (Table 4)
    Measure {
        /// As of `score`
        runs: PathBuf,
    },
    /// Fit the context of each run into a budget of tokens (B.2)
    Truncate {
        /// As of `score`
        runs: PathBuf,
        /// Tokens of the context; a policy fires when it has more than 0.8 of them
        #[arg(long, value_name = "TOKENS")]
        budget: u64,
        /// How the context is made to fit
        #[arg(long, value_enum, default_value = "mem_aware")]
        policy: Policy,
    },
}

/// A fault, by what it changes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Fault {
    /// The observation is wrong, and later memories repeat it
    Tool,
    /// The memory is blank
    Memory,
    /// No memory from there on has what the step added
    MemoryForGood,
    /// The thought is blank
    Think,
    /// The call is blank
    Call,
    /// The observation is blank
    Observation,
}

impl Fault {
    fn at(self, step: usize) -> Intervention {
        match self {
            Fault::Tool => Intervention::ToolCorruption { step },
            Fault::Memory => Intervention::MemoryDrop { step },
            Fault::MemoryForGood => Intervention::DelayedDrop { step },
            Fault::Think => Intervention::Perturb { module: Module::Think, step },
            Fault::Call => Intervention::Perturb { module: Module::Call, step },
            Fault::Observation => Intervention::Perturb { module: Module::Observation, step },
        }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Policy {
    /// All older memories in one checkpoint, and the two newest steps
    #[value(name = "mem_aware")]
    MemAware,
    /// As many of the newest steps as fit
    #[value(name = "naive_recency")]
    NaiveRecency,
}

impl Policy {
    fn name(self) -> &'static str {
        match self {
            Policy::MemAware => "mem_aware",
            Policy::NaiveRecency => "naive_recency",
        }
    }
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let template = Template::default();
    let policy = args.model.scorer()?;
    let scorer = policy.as_ref().map_or(&WordScorer as &dyn Scorer, |policy| policy as &dyn Scorer);
    let board = Scoreboard { scorer, template: &template };
    let table = match &args.action {
        Action::Score { runs } => return score(&read(runs)?, &board),
        Action::Prompts { runs } => return prompts(&read(runs)?, &template),
        Action::Intervene { runs, fault, step } => return plant(&read(runs)?, *fault, *step),
        Action::Blame { clean, faulty } => blamed(&read(clean)?, &read(faulty)?, &board)?,
        Action::Measure { runs } => measured(&read(runs)?, &board)?,
        Action::Truncate { runs, budget, policy } => truncated(&read(runs)?, *budget, *policy),
    };
    render::write(&mut io::stdout().lock(), &[Output::Table(table)], format, &Screen::stdout())?;
    Ok(Status::Done)
}

/// The runs of a file, of stdin, or of a database.
fn read(runs: &Path) -> Result<Vec<Rollout>, Failure> {
    if runs.is_dir() {
        let database = database::to_read(runs)?;
        let rollouts = database.snapshot().rollouts()?;
        database::close(database)?;
        if rollouts.is_empty() {
            let hint = "`holotype credit FILE --db DB --keep` keeps rollouts";
            return Err(Problem::input("runs", "the database has no kept rollouts").hint(hint).into());
        }
        return Ok(rollouts);
    }
    let (text, name) = script::read_named(runs)?;
    Ok(lines::read(&text, &name)?)
}

fn score(rollouts: &[Rollout], board: &Scoreboard<'_>) -> Result<Status, Failure> {
    let mut out = io::stdout().lock();
    for rollout in rollouts {
        let scores = board.scores(&rollout.run())?;
        let mut scored = Rollout { template: Some(board.template.id()), ..rollout.clone() };
        for (step, scores) in scored.steps.iter_mut().zip(scores) {
            step.scores = Some(scores);
        }
        lines::write(&scored, &mut out)?;
    }
    out.flush()?;
    Ok(Status::Done)
}

fn prompts(rollouts: &[Rollout], template: &Template) -> Result<Status, Failure> {
    let mut out = io::stdout().lock();
    for rollout in rollouts {
        lines::write_prompts(rollout, template, &mut out)?;
    }
    out.flush()?;
    Ok(Status::Done)
}

fn plant(rollouts: &[Rollout], fault: Fault, step: u64) -> Result<Status, Failure> {
    let mut out = io::stdout().lock();
    let (mut planted, mut fallbacks) = (0, 0);
    for rollout in rollouts {
        let Some(at) = rollout.steps.iter().position(|known| known.step == step) else { continue };
        let Some(changed) = intervene(&rollout.run(), fault.at(at), &ChangeAnswer)? else { continue };
        planted += 1;
        fallbacks += u64::from(changed.is_fallback);
        let mut faulty = Rollout { template: None, ..rollout.clone() };
        for (step, texts) in faulty.steps.iter_mut().zip(changed.run.steps) {
            (step.texts, step.scores) = (texts, None);
        }
        lines::write(&faulty, &mut out)?;
    }
    out.flush()?;
    let mut told = format!("the fault was planted in {} of {}", planted, counted(rollouts.len() as u64, "runs"));
    if fallbacks > 0 {
        told += &format!("; {fallbacks} have a marker, since the outcome shares no word with the observation");
    }
    database::note(&told);
    Ok(if planted > 0 { Status::Done } else { Status::Found })
}

fn blamed(clean: &[Rollout], faulty: &[Rollout], board: &Scoreboard<'_>) -> Result<Table, Failure> {
    let name = |rollout: &Rollout| (rollout.group.clone(), rollout.rollout.clone());
    let clean: BTreeMap<_, &Rollout> = clean.iter().map(|rollout| (name(rollout), rollout)).collect();
    let mut rows = Vec::new();
    for rollout in faulty {
        let Some(known) = clean.get(&name(rollout)) else {
            let message = format!("there is no clean run of group {:?}, rollout {:?}", rollout.group, rollout.rollout);
            return Err(Problem::input("runs", message).hint("blame compares runs of the same names").into());
        };
        let blame = blame(&known.run(), &rollout.run(), board)?;
        let mut row = vec![Some(Cell::text(rollout.group.as_str())), Some(Cell::text(rollout.rollout.as_str()))];
        match blame.blamed() {
            Some((module, at)) => {
                let fall = blame.falls.iter().find(|fall| (fall.0, fall.1) == (module, at)).map(|fall| fall.2);
                row.push(Some(Cell::text(of_module(module))));
                row.push(known.steps.get(at).map(|step| Cell::count(step.step)));
                row.extend([fall, blame.share(module, at)].map(|value| value.map(rounded)));
            }
            None => row.extend([None, None, None, None]),
        }
        rows.push(row);
    }
    Ok(table("blame", &["group", "rollout", "module", "step", "fall", "share"], rows))
}

fn of_module(module: Module) -> &'static str {
    match module {
        Module::Memory => "memory",
        Module::Think => "think",
        Module::Call => "call",
        Module::Observation => "observation",
    }
}

fn measured(rollouts: &[Rollout], board: &Scoreboard<'_>) -> Result<Table, Failure> {
    let runs: Vec<Run> = rollouts.iter().map(Rollout::run).collect();
    let found = deconfound(&runs, board, &ChangeAnswer, &CreditOptions::default())?;
    let [corrupted, dropped, early, perturbed] = found.counts;
    let rows = [
        ("faithful_under_bad_tool", found.faithful_under_bad_tool, corrupted),
        ("over_clean", found.over_clean, corrupted),
        ("drop_localisation", found.drop_localisation, dropped),
        ("delayed_recovery", found.delayed_recovery, early),
        ("concentration", found.concentration, perturbed),
    ];
    let row = |(name, value, of): (&'static str, Option<f64>, usize)| {
        vec![Some(Cell::text(name)), value.map(rounded), Some(Cell::count(of as u64))]
    };
    let mut table = table("measure", &["measure", "value", "of"], rows.into_iter().map(row).collect());
    if found.fallbacks > 0 {
        let told = counted(found.fallbacks as u64, "corruptions");
        table.notes.push(format!("{told} fell back to a marker: the outcome shares no word with the observation"));
    }
    Ok(table)
}

fn truncated(rollouts: &[Rollout], budget: u64, policy: Policy) -> Table {
    let truncation = match policy {
        Policy::MemAware => Truncation::MemAware,
        Policy::NaiveRecency => Truncation::NaiveRecency,
    };
    let row = |rollout: &Rollout| {
        let left = truncation.apply(&rollout.run(), budget, &|text| u64::from(holotype::tokens::count(text)));
        vec![
            Some(Cell::text(rollout.group.as_str())),
            Some(Cell::text(rollout.rollout.as_str())),
            Some(Cell::text(policy.name())),
            Some(Cell::Bool(left.fired)),
            rollout.steps.get(left.from).map(|step| Cell::count(step.step)),
            Some(Cell::count(left.tokens)),
            left.checkpoint.map(Cell::Text),
        ]
    };
    let columns = ["group", "rollout", "policy", "fired", "from_step", "tokens", "checkpoint"];
    table("truncate", &columns, rollouts.iter().map(row).collect())
}

fn rounded(value: f64) -> Cell {
    Cell::Number((value * 1e6).round() / 1e6)
}

fn table(verb: &'static str, columns: &[&str], rows: Vec<Vec<Option<Cell>>>) -> Table {
    Table { verb, columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows, ..Table::default() }
}
