//! `holotype repl`: an interactive session.
//!
//! On a terminal, lines are edited, coloured, completed and remembered. Enter runs a script once it is complete or ends
//! with `;`, and starts a new line otherwise. Ctrl-C cancels a statement, long answers go through a pager, and `forget`
//! asks first. From a pipe, a line that begins with a blank continues the line before.

mod colour;
mod command;
mod completion;
mod editor;
mod help;
mod pager;

use crate::failure::{Failure, Problem, Status};
use crate::render::{self, Format};
use crate::screen::{Ink, Screen};
use crate::script::Needs;
use crate::{database, interrupt, limits, script};
use command::command_of;
use editor::{Assistant, is_complete};
use holotype::query::{Params, parse};
use holotype::{Holotype, Limits};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// Refuse statements that write, and open the database beside a writer
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    limits: limits::Args,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let database = script::open_for(&args.db, Needs::ALL, args.read_only)?;
    let limits = args.limits.limits()?;
    let mut session = Session { database, format, limits, timing: false, screen_lines: None, worst: Status::Done };
    if io::stdin().is_terminal() {
        session.converse(&args.db)?;
        session.worst = Status::Done;
    } else {
        session.read_through()?;
    }
    database::close(session.database)?;
    Ok(session.worst)
}

/// The step after a line.
#[derive(PartialEq)]
enum Next {
    Go,
    Quit,
}

struct Session {
    database: Holotype,
    format: Format,
    limits: Limits,
    timing: bool,
    /// The number of lines that a person sees at once.
    screen_lines: Option<usize>,
    /// The status of the statement that ended worst.
    worst: Status,
}

impl Session {
    /// Lines from a person.
    fn converse(&mut self, path: &Path) -> Result<(), Failure> {
        let lost = |error: ReadlineError| Problem::new(Status::Io, "io", format!("cannot read the terminal: {error}"));
        let config = Config::builder()
            .auto_add_history(true)
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor: Editor<Assistant, DefaultHistory> = Editor::with_config(config).map_err(lost)?;
        editor.set_helper(Some(Assistant { database: self.database.clone(), colour: Screen::stdout().colour }));
        // A session without a memory of earlier ones is a session all the same.
        let history = history_file();
        if let Some(file) = &history {
            let _ = editor.load_history(file);
        }
        let commit = self.database.head().commit;
        database::note(&format!("{} at commit {commit}; type help for the statements, quit to leave", path.display()));
        let _deferred = interrupt::defer(interrupt::ALWAYS);
        loop {
            // From here on Ctrl-C is a key, and as soon as the line is read it is meant for its statement.
            interrupt::reset();
            match editor.readline("holotype> ") {
                Ok(source) => {
                    self.screen_lines = editor.dimensions().map(|(_, lines)| usize::from(lines));
                    let mut ask = |question: &str| asked(&mut editor, question);
                    match self.run(&source, &mut ask) {
                        Ok(Next::Quit) => break,
                        Ok(Next::Go) => {}
                        Err(Failure::Interrupted) => database::note("cancelled"),
                        Err(failure) => return Err(failure),
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
        // The editor keeps the database open to complete names.
        editor.set_helper(None);
        Ok(())
    }

    /// Lines from a pipe or a file.
    fn read_through(&mut self) -> Result<(), Failure> {
        let mut source = String::new();
        for line in io::stdin().lock().lines() {
            let line = line.map_err(|error| Problem::io(Path::new("<stdin>"), "read", &error))?;
            let ended = !source.is_empty() && !line.starts_with([' ', '\t']) && is_complete(&source);
            if ended && self.run(&std::mem::take(&mut source), &mut |_| true)? == Next::Quit {
                return Ok(());
            }
            source += &line;
            source.push('\n');
        }
        self.run(&source, &mut |_| true).map(drop)
    }

    /// Runs a script or a command of the session. A statement that is wrong does not end it; `ask` puts a question to
    /// whom there is.
    fn run(&mut self, source: &str, ask: &mut dyn FnMut(&str) -> bool) -> Result<Next, Failure> {
        let source = source.trim();
        if source.is_empty() {
            return Ok(Next::Go);
        }
        let done = match command_of(source) {
            Some(command) => self.command(command),
            None => self.statements(source, ask),
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
        let command = command.trim_end_matches(';').trim();
        let (verb, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let verb = verb.to_ascii_lowercase();
        let words: Vec<&str> = std::iter::once(verb.as_str()).chain(rest.split_whitespace()).collect();
        match words.as_slice() {
            ["quit" | "exit"] => return Ok(Next::Quit),
            ["help", rest @ ..] if rest.len() < 2 => match help::on(rest.first().copied()) {
                Some(text) => writeln!(io::stdout().lock(), "{text}")?,
                None => {
                    let topics: Vec<&str> = help::TOPICS.iter().map(|(name, _)| *name).collect();
                    let problem = Problem::input("command", format!("there is no help on {:?}", rest.join(" ")));
                    return Err(problem.hint(topics.join(", ")).into());
                }
            },
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

    fn statements(&mut self, source: &str, ask: &mut dyn FnMut(&str) -> bool) -> Result<Next, Failure> {
        let parsed = parse(source).map_err(|errors| Problem::of_errors(errors, source, None))?;
        if parsed.verbs().any(|verb| verb == "forget") && !ask("Forgotten items are gone for good. Forget them?") {
            database::note("nothing was forgotten");
            return Ok(Next::Go);
        }
        // Beside a writer each statement meets what is committed by now.
        self.database.refresh()?;
        let start = Instant::now();
        let outputs = script::run(&self.database, source, &Params::new(), self.limits.clone())?;
        let took = start.elapsed();
        let screen = Screen::stdout();
        let mut out = Vec::new();
        render::write(&mut out, &outputs, self.format, &screen)?;
        if self.timing {
            let line = format!("{:.3} ms", took.as_secs_f64() * 1000.0);
            writeln!(out, "{}", screen.paint(Ink::Dim, &line))?;
        }
        pager::show(&out, self.screen_lines.filter(|_| screen.terminal))?;
        if render::found_something(&outputs) {
            self.worst = self.worst.max(Status::Found);
        }
        Ok(Next::Go)
    }
}

/// True if a person answers a question with yes.
fn asked(editor: &mut Editor<Assistant, DefaultHistory>, question: &str) -> bool {
    // The answer is no statement: nothing is to be completed, and it need not be whole.
    let assistant =
        editor.helper().map(|helper| Assistant { database: helper.database.clone(), colour: helper.colour });
    editor.set_helper(None);
    let answer = editor.readline(&format!("{question} (yes/no) "));
    editor.set_helper(assistant);
    answer.is_ok_and(|answer| is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes))
}

/// The file with the lines of earlier sessions, in the user's state directory; none if that cannot be created.
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
    use holotype::{Durability, NewTrace, Options};

    fn session(dir: &Path) -> Session {
        let database = Holotype::create(dir.join("memory.holo"), Options::default()).unwrap();
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("trip-42", "hello").key("t1")).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        let (format, limits, worst) = (Format::Jsonl, Limits::none(), Status::Done);
        Session { database, format, limits, timing: false, screen_lines: None, worst }
    }

    #[test]
    fn forgetting_asks_first_and_no_is_no() {
        let dir = tempfile::tempdir().unwrap();
        let mut session = session(dir.path());
        let mut questions = 0;
        let mut no = |_: &str| {
            questions += 1;
            false
        };
        session.run("forget 't1' because 'erasure'", &mut no).unwrap();
        session.run("count traces", &mut no).unwrap();
        session.run("mark 't1' failed because 'x'", &mut no).unwrap();
        assert_eq!((questions, session.worst), (1, Status::Done));
        assert!(session.database.snapshot().get("t1").unwrap().is_some_and(|item| !item.attributes.redacted));
    }

    #[test]
    fn answers_are_read_in_any_case() {
        assert!(is_yes("yes") && is_yes(" Y ") && is_yes("YES"));
        assert!(!is_yes("") && !is_yes("no") && !is_yes("forget"));
    }

    #[test]
    fn help_has_topics() {
        let dir = tempfile::tempdir().unwrap();
        let mut session = session(dir.path());
        session.run(".help find", &mut |_| true).unwrap();
        assert_eq!(session.worst, Status::Done);
        session.run(".help nonsense", &mut |_| true).unwrap();
        assert_eq!(session.worst, Status::Wrong);
    }
}
