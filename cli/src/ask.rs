//! `holotype ask`: a question answered by the memory that it asks for, in one guidance with citations (PlugMem 3.3).
//!
//! The mode chooser says whether a question asks what happened, what is known or how something is done; the path of
//! that memory is recalled, and the rows are condensed by the built-in reasoner (C.4), or both by a model. A row is
//! cited by its key in square brackets.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::{database, interrupt, model, script};
use holotype::answer::Output;
use holotype::plural::counted;
use holotype::query::{ParamValue, Params};
use holotype::{Extractive, Limits, Mode, ModeChooser, QuestionWords, Reasoner};
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The question
    question: String,
    /// The task that it serves; where the two ask for different memories, the task decides
    #[arg(long, value_name = "TEXT", default_value = "")]
    task: String,
    /// The memory to ask
    #[arg(long, value_enum, default_value = "auto")]
    mode: ModeName,
    /// Only this episode
    #[arg(long, value_name = "ID")]
    episode: Option<String>,
    /// Rows that are condensed
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u64,
    /// Sentences of the guidance, at most
    #[arg(long, value_name = "N", default_value_t = 8)]
    sentences: usize,
    #[command(flatten)]
    model: model::Args,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ModeName {
    /// The memory that the words of task and question ask for
    Auto,
    /// Events, as they happened
    Episodic,
    /// Knowledge
    Semantic,
    /// Instructions
    Procedural,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let model = args.model.open()?;
    let mode = match (args.mode, &model) {
        // A model that chooses nothing means semantic memory.
        (ModeName::Auto, Some(model)) => model.choose(&args.task, &args.question).unwrap_or(Mode::Semantic),
        (ModeName::Auto, None) => QuestionWords.choose(&args.task, &args.question)?,
        (ModeName::Episodic, _) => Mode::Episodic,
        (ModeName::Semantic, _) => Mode::Semantic,
        (ModeName::Procedural, _) => Mode::Procedural,
    };
    let scope = if args.episode.is_some() { " in episode $e" } else { "" };
    // The built-in reasoner takes sentences: what stands below a row has to be one.
    let lines = if model.is_some() { "" } else { " lines none" };
    let statement = format!("recall $q{scope} through {} limit {}{lines}", mode.path(), args.limit);
    let mut params = Params::from([("q".to_owned(), ParamValue::Text(args.question.clone()))]);
    params.extend(args.episode.iter().map(|episode| ("e".to_owned(), ParamValue::Text(episode.clone()))));
    let database = database::to_read(&args.db)?;
    let limits = Limits::none().cancelled_by(interrupt::cancel());
    let outputs = script::run(&database, &statement, &params, limits)?;
    let Some(Output::Answer(answer)) = outputs.into_iter().next() else {
        return Err(Problem::input("ask", "a recall gave no answer").into());
    };
    let extractive = Extractive { most: args.sentences };
    let reasoner = model.as_ref().map_or(&extractive as &dyn Reasoner, |model| model as &dyn Reasoner);
    let guidance = database.snapshot().guidance(&answer, &args.question, mode, reasoner)?;
    let key = |id| answer.rows.iter().find(|row| row.item == id).map(|row| row.key.clone());
    let cites: Vec<String> = guidance.cites.iter().copied().filter_map(key).collect();
    let name = mode.as_str();
    let fact = json!({"mode": name, "path": mode.path(), "rows": answer.rows.len(), "text": guidance.text,
        "cites": cites, "commit": answer.commit, "answerable": answer.answerable});
    let told = if guidance.text.is_empty() { "nothing that is known speaks of it".to_owned() } else { guidance.text };
    render::write_fact(&mut io::stdout().lock(), &fact, &told, format)?;
    let rows = counted(answer.rows.len() as u64, "rows");
    database::note(&format!("{name} memory, through {}: {rows}", mode.path()));
    let status = database::status_of_reading(&database);
    database::close(database)?;
    Ok(status)
}
