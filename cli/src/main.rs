//! The `holotype` command line: one file per command, and here what they are and how they end.
//!
//! Data goes to stdout, everything else to stderr. How a command ended is its exit status ([`failure`]):
//!
//! | status | meaning |
//! |---|---|
//! | 0 | done, also with no rows; a closed pipe too |
//! | 1 | a check found something, or lines were skipped |
//! | 2 | the command, a statement or the content of an input file is wrong |
//! | 3 | the database cannot be opened: missing, locked, of a newer format, damaged |
//! | 4 | reading or writing failed, or the disk is full |
//! | 5 | a limit stopped it |
//! | 130 | interrupted |

mod ask;
mod audit;
mod backup;
mod batch;
mod check;
mod check_proof;
mod checkpoint;
mod compact;
mod completions;
mod create;
mod credit;
mod database;
mod demo;
mod density;
mod diff;
mod doctor;
mod embed;
mod embedder;
mod export;
mod failure;
mod fleet;
mod fmt;
mod follow;
mod graph;
mod head;
mod help;
mod hook;
mod import;
mod init;
mod inspect;
mod interrupt;
mod json;
mod judge;
mod key;
mod lab;
mod limits;
mod loops;
mod mcp;
mod model;
mod outside;
mod params;
mod place;
mod prove;
mod query;
mod rebuild;
mod reembed;
mod render;
mod repl;
mod replica;
mod replicate;
mod restore;
mod retain;
mod rollouts;
mod route;
mod salvage;
mod screen;
mod script;
mod seal;
mod signing;
mod stats;
mod structure;
mod trial;
mod verify;
mod why;

use clap::{CommandFactory, Parser, Subcommand};
use failure::{Failure, Problem, Status};
use holotype::{Accelerator, MemoryReserve};
use render::{AnyFormat, Drawing, Format};
use std::path::PathBuf;
use std::process::ExitCode;

/// An embedded database for provenance-tracked agent memory.
#[derive(Debug, Parser)]
#[command(name = "holotype", version, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The format of answers and errors [default: table; jsonl with --batch; svg of a graph]
    #[arg(long, global = true, value_name = "FORMAT")]
    format: Option<AnyFormat>,
    /// Write although the log is known to be damaged
    #[arg(long, global = true)]
    accept_damage: bool,
    /// The device for batches of searches by vector: auto (a GPU if that is faster), cpu or cuda
    #[arg(long, global = true, value_name = "WHERE", default_value = "auto")]
    accelerator: Accelerator,
    /// The folder of a model that makes the vectors of texts without one: a transformer, such as all-MiniLM-L6-v2, or a
    /// model2vec model, such as potion-base-8M
    #[arg(long, global = true, value_name = "DIR")]
    embedder: Option<PathBuf>,
    /// The file outside the database with its newest head, signed: a database that was rolled back or written anew
    /// since is refused [env: HOLOTYPE_WITNESS]
    #[arg(long, global = true, value_name = "FILE")]
    witness: Option<PathBuf>,
    /// Take a database whose witness is missing as it is, and begin a new witness
    #[arg(long, global = true)]
    accept_witness: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell an example story in one minute: one question, asked twice
    Demo(demo::Args),
    /// Try it: an agent's session is recorded, cleared and remembered
    #[command(name = "try")]
    Try(trial::Args),
    /// Create an empty database
    Create(create::Args),
    /// Import JSON Lines files into a database
    Import(import::Args),
    /// Export a database as JSON Lines
    Export(export::Args),
    /// Structure trajectories into traces, facts with concepts, and procedures with intents
    Structure(structure::Args),
    /// Run statements of the query language
    Query(query::Args),
    /// Ask a question: one guidance with citations, from the memory that it asks for
    Ask(ask::Args),
    /// Serve an agent's memory over stdin and stdout
    Loop(loops::Args),
    /// Run statements in an interactive session
    Repl(repl::Args),
    /// Serve a database to agents over the Model Context Protocol
    Mcp(mcp::Args),
    /// Tell the story of an item: what it rests on, what changed it, what would fall with it
    Why(why::Args),
    /// Show an item whole, with its fields
    Show(why::Args),
    /// Show what was added between two commits, and whose standing changed
    Diff(diff::Args),
    /// Serve a page on this machine that shows why an agent believed something
    Inspect(inspect::Args),
    /// Check every checksum, hash, pointer and derived file
    Verify(verify::Args),
    /// Compare the files and commands that items name with how they are now
    Check(check::Args),
    /// Show what a database holds, and its limits
    Stats(stats::Args),
    /// Measure what was read and written, and how good it was
    Audit(audit::Args),
    /// Draw an item with its evidence and its dependents
    Graph(graph::Args),
    /// Print the end of the log: position, commit, hash
    Head(head::Args),
    /// Prove that an item is in the log, or that the log only grew
    Prove(prove::Args),
    /// Check a proof without the database
    CheckProof(check_proof::Args),
    /// Print the public part of the signing key, which is created if missing
    Key(key::Args),
    /// Write a checkpoint, so that the next opening has nothing to replay
    Checkpoint(checkpoint::Args),
    /// Close the open log page with its hash
    Seal(seal::Args),
    /// Merge derived files into fewer and smaller ones
    Compact(compact::Args),
    /// Remove the history before a commit or a time, and keep what is live
    Retain(retain::Args),
    /// Copy a database as of its newest commit, while others write to it
    Backup(backup::Args),
    /// Make a database from a backup or a replica, as of any commit
    Restore(restore::Args),
    /// Keep a copy of the log in a folder or an object store up to date
    Replicate(replicate::Args),
    /// Keep a copy of a database up to date from its replica, for readers
    Follow(follow::Args),
    /// Ask many databases one question
    Fleet(fleet::Args),
    /// Make and renew the database by which a fleet chooses what it asks
    Route(route::Args),
    /// Create a new database from what is readable in a damaged one
    Salvage(salvage::Args),
    /// Rebuild every derived file from the log
    Rebuild(rebuild::Args),
    /// Make the vectors of texts that were written without the model of --embedder
    Embed(embed::Args),
    /// Say what the embedding model of a folder is, and how fast it is here
    Embedder(embedder::Args),
    /// Make all vectors anew with the model of --embedder, visible in one step
    Reembed(reembed::Args),
    /// Compute HiMPO advantages of memory writes from log-probabilities
    Credit(credit::Args),
    /// Score and perturb stored runs, find who is to blame, measure credit (HiMPO)
    Rollouts(rollouts::Args),
    /// Record an event of an agent's session, for its harness
    Hook(hook::Args),
    /// Make a project's memory, and have an agent harness use it
    Init(init::Args),
    /// Say whether memory works here: database, hooks, model, clock
    Doctor(doctor::Args),
    /// Fit the router of escalations, label its decisions, and have a database use it
    Judge(judge::Args),
    /// Print the tables of the papers, from a database and the log of a run
    Lab(lab::Args),
    /// Print statements in canonical form
    Fmt(fmt::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
}

/// Out of memory, a statement fails, and a command that cannot even say so exits with status 5.
#[global_allocator]
static MEMORY: MemoryReserve = MemoryReserve::new();

fn main() -> ExitCode {
    MEMORY.fill();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if hook::is_called() && error.use_stderr() => return hook::usage(&error).into(),
        Err(error) => return failure::usage(&error, wants_json()),
    };
    let drawing = cli.format.and_then(AnyFormat::drawing);
    let format = cli.format.and_then(AnyFormat::of_answers);
    if cli.accept_damage {
        database::accept_damage();
    }
    database::accelerate_by(cli.accelerator);
    database::witness_by(cli.witness, cli.accept_witness);
    // A hook loads no model, and nothing that is wrong may stop the agent that it serves.
    let is_hook = matches!(cli.command, Command::Hook(_));
    let embeds = || database::embed_by(cli.embedder.as_deref());
    if !is_hook && let Err(failure) = embeds().and_then(|()| interrupt::install()) {
        return failure.tell(format);
    }
    let done = run(cli.command, format, drawing);
    if let Some(note) = database::embedder().and_then(|embedder| embedder.take_note()) {
        database::note(&note);
    }
    match done {
        Ok(status) => status.into(),
        Err(failure) => failure.tell(format),
    }
}

fn run(command: Command, format: Option<Format>, drawing: Option<Drawing>) -> Result<Status, Failure> {
    if drawing.is_some() && !matches!(command, Command::Graph(_) | Command::Hook(_)) {
        let hint = "only `holotype graph` draws; expected table, json, jsonl or markdown";
        return Err(Problem::input("usage", "--format svg, dot and mermaid are formats of a graph").hint(hint).into());
    }
    let given = format;
    let format = format.unwrap_or_default();
    match command {
        Command::Demo(args) => demo::run(&args, format),
        Command::Try(args) => trial::run(&args),
        Command::Create(args) => create::run(&args, format),
        Command::Import(args) => import::run(&args, format),
        Command::Export(args) => export::run(&args, format),
        Command::Structure(args) => structure::run(&args, format),
        Command::Query(args) => query::run(&args, given),
        Command::Ask(args) => ask::run(&args, format),
        Command::Loop(args) => loops::run(&args),
        Command::Repl(args) => repl::run(&args, format),
        Command::Mcp(args) => mcp::run(&args),
        Command::Why(args) => why::run(&args, format),
        Command::Show(args) => why::show(&args, format),
        Command::Diff(args) => diff::run(&args, format),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args, format),
        Command::Check(args) => check::run(&args, format),
        Command::Stats(args) => stats::run(&args, format),
        Command::Audit(args) => audit::run(&args, format),
        Command::Graph(args) => graph::run(&args, given, drawing),
        Command::Head(args) => head::run(&args, format),
        Command::Prove(args) => prove::run(&args, format),
        Command::CheckProof(args) => check_proof::run(&args, format),
        Command::Key(args) => key::run(&args, format),
        Command::Checkpoint(args) => checkpoint::run(&args, format),
        Command::Seal(args) => seal::run(&args, format),
        Command::Compact(args) => compact::run(&args, format),
        Command::Retain(args) => retain::run(&args, format),
        Command::Backup(args) => backup::run(&args, format),
        Command::Restore(args) => restore::run(&args, format),
        Command::Replicate(args) => replicate::run(&args, format),
        Command::Follow(args) => follow::run(&args, format),
        Command::Fleet(args) => fleet::run(&args, given),
        Command::Route(args) => route::run(&args, format),
        Command::Salvage(args) => salvage::run(&args, format),
        Command::Rebuild(args) => rebuild::run(&args, format),
        Command::Embed(args) => embed::run(&args, format),
        Command::Embedder(args) => embedder::run(&args, format),
        Command::Reembed(args) => reembed::run(&args, format),
        Command::Credit(args) => credit::run(&args),
        Command::Rollouts(args) => rollouts::run(&args, format),
        Command::Hook(args) => Ok(hook::run(&args)),
        Command::Init(args) => init::run(&args, format),
        Command::Doctor(args) => doctor::run(&args, format),
        Command::Judge(args) => judge::run(&args, format),
        Command::Lab(args) => lab::run(&args, format),
        Command::Fmt(args) => fmt::run(&args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
    }
}

/// True if a command line that could not be parsed asks for JSON.
fn wants_json() -> bool {
    let args: Vec<String> = std::env::args().collect();
    let is_json = |value: &str| value == "json" || value == "jsonl";
    args.iter().any(|arg| arg.strip_prefix("--format=").is_some_and(is_json))
        || args.windows(2).any(|pair| matches!(pair, [name, value] if name == "--format" && is_json(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_sound() {
        Cli::command().debug_assert();
    }
}
