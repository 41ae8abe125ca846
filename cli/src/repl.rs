//! `holotype repl`: ask and answer.
//!
//! On a terminal, lines are edited and remembered; Enter runs a script once it is complete or ends with `;`, and goes to
//! a next line otherwise. From a pipe, a line that begins with a blank belongs to the one before.

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::{Ink, Screen};
use crate::{database, query};
use holotype::Holotype;
use holotype::query::{Params, parse};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};
use std::io::{self, BufRead as _, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

const HELP: &str = "\
recall 'words' in episode 'name' limit 5    the best rows for a question, with their evidence
find traces where tool = 'pay'              items as they are
count traces by tool, status                counts
sources of 'key' depth 3                    what an item rests on
show episodes                               also pages, segments, settings, stats, head
explain STATEMENT                           how it would be run

Statements end with Enter when they are complete, or with `;`; several in one go are one transaction.
.format table|json|jsonl|markdown    .timing on|off    .help    .quit";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// Refuse statements that write; works beside a writer
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = query::open_for(&args.db, !args.read_only)?;
    let mut session = Session { database, format, timing: false, worst: Status::Done };
    if io::stdin().is_terminal() {
        session.converse(&args.db)?;
        session.worst = Status::Done;
    } else {
        session.read_through()?;
    }
    session.database.close()?;
    Ok(session.worst)
}

/// What is to happen after a line.
#[derive(PartialEq)]
enum Next {
    Go,
    Quit,
}

struct Session {
    database: Holotype,
    format: Format,
    timing: bool,
    /// The status of the statement that ended worst.
    worst: Status,
}

impl Session {
    /// Lines from a person.
    fn converse(&mut self, path: &Path) -> Result<(), Failure> {
        let lost = |error: ReadlineError| Problem::new(Status::Io, "io", format!("cannot read the terminal: {error}"));
        let config = Config::builder().auto_add_history(true).history_ignore_space(true).build();
        let mut editor: Editor<Completeness, DefaultHistory> = Editor::with_config(config).map_err(lost)?;
        editor.set_helper(Some(Completeness));
        // A session without a memory of earlier ones is a session all the same.
        let history = history_file();
        if let Some(file) = &history {
            let _ = editor.load_history(file);
        }
        let commit = self.database.head().commit;
        database::note(&format!("{} at commit {commit}; .help says what can be asked", path.display()));
        loop {
            match editor.readline("holotype> ") {
                Ok(source) => {
                    if self.run(&source)? == Next::Quit {
                        break;
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(lost(error).into()),
            }
        }
        if let Some(file) = &history {
            let _ = editor.save_history(file);
        }
        Ok(())
    }

    /// Lines from a pipe or a file.
    fn read_through(&mut self) -> Result<(), Failure> {
        let mut source = String::new();
        for line in io::stdin().lock().lines() {
            let line = line.map_err(|error| Problem::io(Path::new("<stdin>"), "read", &error))?;
            let ended = !source.is_empty() && !line.starts_with([' ', '\t']) && is_complete(&source);
            if ended && self.run(&std::mem::take(&mut source))? == Next::Quit {
                return Ok(());
            }
            source += &line;
            source.push('\n');
        }
        self.run(&source).map(drop)
    }

    /// Runs a script or a command of the session. A statement that is wrong does not end it.
    fn run(&mut self, source: &str) -> Result<Next, Failure> {
        let source = source.trim();
        if source.is_empty() {
            return Ok(Next::Go);
        }
        let done = match source.strip_prefix('.') {
            Some(command) => self.command(command),
            None => self.statements(source),
        };
        match done {
            Ok(next) => Ok(next),
            Err(Failure::Problem(problem)) => {
                problem.tell(Some(self.format));
                self.worst = self.worst.max(problem.status);
                Ok(Next::Go)
            }
            Err(failure) => Err(failure),
        }
    }

    fn command(&mut self, command: &str) -> Result<Next, Failure> {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["quit" | "exit"] => return Ok(Next::Quit),
            ["help"] => writeln!(io::stdout().lock(), "{HELP}")?,
            ["timing"] => self.timing = !self.timing,
            ["timing", "on"] => self.timing = true,
            ["timing", "off"] => self.timing = false,
            ["format", name] => {
                let format = <Format as clap::ValueEnum>::from_str(name, true);
                self.format = format.map_err(|_| {
                    Problem::input("command", format!("there is no format {name:?}"))
                        .hint("table, json, jsonl, markdown")
                })?;
            }
            _ => {
                let problem = Problem::input("command", format!("there is no command .{command}"));
                return Err(problem.hint(".help .format .timing .quit").into());
            }
        }
        Ok(Next::Go)
    }

    fn statements(&mut self, source: &str) -> Result<Next, Failure> {
        parse(source).map_err(|errors| Problem::of_errors(errors, source, None))?;
        // Beside a writer each statement meets what is committed by now.
        self.database.refresh()?;
        let start = Instant::now();
        let outputs =
            self.database.query(source, &Params::new()).map_err(|error| Problem::of_statement(error, source, None))?;
        let took = start.elapsed();
        let screen = Screen::stdout();
        let mut out = BufWriter::new(io::stdout().lock());
        render::write(&mut out, &outputs, self.format, &screen)?;
        if self.timing {
            let line = format!("{:.3} ms", took.as_secs_f64() * 1000.0);
            writeln!(out, "{}", screen.paint(Ink::Dim, &line))?;
        }
        out.flush()?;
        if render::found_something(&outputs) {
            self.worst = self.worst.max(Status::Found);
        }
        Ok(Next::Go)
    }
}

/// Whether Enter runs what was typed: it is empty, a command of the session, ends with `;`, is a whole script, or is
/// wrong before its end.
fn is_complete(source: &str) -> bool {
    let source = source.trim();
    if source.is_empty() || source.starts_with('.') || source.ends_with(';') {
        return true;
    }
    match parse(source) {
        Ok(_) => true,
        Err(errors) => errors.iter().any(|error| (error.span.start as usize) < source.len()),
    }
}

/// Tells the line editor whether Enter runs the statement or begins a new line.
struct Completeness;

impl Validator for Completeness {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        // An empty line ends anything.
        let given_up = input.ends_with('\n') && !input.trim().is_empty();
        Ok(if given_up || is_complete(input) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Completeness {
    type Candidate = String;
}
impl Hinter for Completeness {
    type Hint = String;
}
impl Highlighter for Completeness {}
impl Helper for Completeness {}

/// Where earlier sessions are remembered: the user's state directory, if it can be made.
fn history_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    let dir = state.join("holotype");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_runs_what_is_complete() {
        for complete in ["", "recall 'x'", "recall 'x' limit 3;", ".quit", "recall 'x' limt 3", "recal 'x'"] {
            assert!(is_complete(complete), "{complete}");
        }
        for incomplete in ["recall", "recall 'x' limit", "find traces where", "find traces where (status = failed"] {
            assert!(!is_complete(incomplete), "{incomplete}");
        }
    }
}
