//! The failure of a command: the message on stderr, and the exit status.

use crate::help;
use crate::render::Format;
use crate::render::text::printable;
use crate::screen::Screen;
use holotype::query::Errors;
use holotype::{Error, ErrorClass};
use serde_json::{Map, Value};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// The outcome of a command that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// All is done.
    Done = 0,
    /// A check found something, or lines were skipped.
    Found = 1,
    /// Some of several statements were wrong, and each was reported.
    Wrong = 2,
    /// A database could not be opened.
    Unopened = 3,
    /// Reading or writing failed.
    Io = 4,
    /// A limit stopped it.
    Limited = 5,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

impl From<ErrorClass> for Status {
    fn from(class: ErrorClass) -> Status {
        match class {
            ErrorClass::Input => Status::Wrong,
            ErrorClass::Open => Status::Unopened,
            ErrorClass::Io => Status::Io,
            ErrorClass::Limit => Status::Limited,
        }
    }
}

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong.
    Problem(Box<Problem>),
    /// The reader of the output closed it: no error.
    ClosedPipe,
    /// The user stopped it.
    Interrupted,
}

/// A problem, for a person and for a program.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: Status,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) about: Box<About>,
}

/// The place of a problem, and the remedy.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u64>,
    pub(crate) column: Option<u64>,
    pub(crate) hint: Option<String>,
    /// Errors of the same statement after the first.
    more: Vec<Problem>,
    /// The errors of a statement with their source lines and carets.
    shown: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: Status, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, code, message: message.into(), about: Box::default() }
    }

    /// Something is wrong with what was given.
    pub(crate) fn input(code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(Status::Wrong, code, message)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Problem {
        self.hint_if(Some(hint.into()))
    }

    /// With a hint, if there is one.
    pub(crate) fn hint_if(mut self, hint: Option<String>) -> Problem {
        self.about.hint = hint;
        self
    }

    pub(crate) fn file(self, file: impl Into<String>) -> Problem {
        self.file_if(Some(file.into()))
    }

    /// With a file, if there is one.
    pub(crate) fn file_if(mut self, file: Option<String>) -> Problem {
        self.about.file = file;
        self
    }

    pub(crate) fn at(mut self, line: u64, column: u64) -> Problem {
        (self.about.line, self.about.column) = (Some(line), Some(column));
        self
    }

    /// An error of running `source`, which came from `file` if it came from one.
    pub(crate) fn of_statement(error: Error, source: &str, file: Option<&str>) -> Problem {
        match error {
            Error::Query(errors) => Problem::of_errors(errors, source, file),
            error => Problem::from(error).file_if(file.map(str::to_owned)),
        }
    }

    /// The errors of a statement that cannot be parsed or does not check.
    pub(crate) fn of_errors(errors: Errors, source: &str, file: Option<&str>) -> Problem {
        let shown = errors.render(source);
        let mut problems = errors.into_iter().map(|error| {
            let mut message = error.message;
            if let Some(nearest) = &error.nearest {
                message += &format!("; did you mean `{nearest}`?");
            } else if !error.expected.is_empty() {
                message += &format!("; expected {}", error.expected.join(", "));
            }
            let problem = Problem::input(error.code, message).hint_if(error.hint).file_if(file.map(str::to_owned));
            match error.line {
                0 => problem,
                line => problem.at(u64::from(line), u64::from(error.column)),
            }
        });
        let mut first = problems.next().unwrap_or_else(|| Problem::input("query", "the statement is wrong"));
        first.about.more = problems.collect();
        first.about.shown = Some(shown);
        first
    }

    /// A file outside the database could not be read or written.
    pub(crate) fn io(path: &Path, action: &str, error: &io::Error) -> Problem {
        let message = format!("cannot {action} {}: {error}", path.display());
        Problem::new(Status::Io, "io", message).file(path.display().to_string())
    }

    /// The object of the page on interfaces; `more` holds the other errors of the same statement.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("code".into(), self.code.into());
        object.insert("message".into(), self.message.as_str().into());
        object.insert("file".into(), self.about.file.as_deref().into());
        object.insert("line".into(), self.about.line.into());
        object.insert("column".into(), self.about.column.into());
        object.insert("hint".into(), self.about.hint.as_deref().into());
        if !self.about.more.is_empty() {
            object.insert("more".into(), self.about.more.iter().map(Problem::to_json).collect());
        }
        object.into()
    }

    /// The text of the page on interfaces, ending with a line end.
    fn to_text(&self) -> String {
        if let Some(shown) = &self.about.shown {
            return match &self.about.file {
                Some(file) => format!("{file}:\n{shown}"),
                None => shown.clone(),
            };
        }
        let place = match (&self.about.file, self.about.line, self.about.column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            _ => String::new(),
        };
        let mut text = format!("error: {place}{}\n", self.message);
        if let Some(hint) = &self.about.hint {
            text += &format!("hint: {hint}\n");
        }
        text
    }

    /// Writes it to stderr. A failure of that cannot be reported anywhere.
    pub(crate) fn tell(&self, format: Option<Format>) {
        let text = match format {
            Some(Format::Json | Format::Jsonl) => {
                format!("{}\n", Value::Object(Map::from_iter([("error".to_owned(), self.to_json())])))
            }
            _ => printable(&self.to_text()),
        };
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let (status, code, message) = (Status::from(error.class()), error.code(), error.to_string());
        match error {
            Error::Line { file, line, column, hint, message, .. } => {
                Problem::new(status, code, message).file(file).at(line, column).hint_if(hint)
            }
            Error::NotFound { path } | Error::Exists { path } | Error::File { path, .. } => {
                Problem::new(status, code, message).file(path.display().to_string())
            }
            _ => Problem::new(status, code, message),
        }
    }
}

impl Failure {
    /// Writes the message, if there is one, and gives the exit status.
    pub(crate) fn tell(&self, format: Option<Format>) -> ExitCode {
        match self {
            Failure::ClosedPipe => ExitCode::SUCCESS,
            Failure::Interrupted => ExitCode::from(crate::interrupt::STATUS),
            Failure::Problem(problem) => {
                problem.tell(format);
                problem.status.into()
            }
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Problem(Box::new(problem))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Problem::from(error).into()
    }
}

/// Writing to stdout failed; every other file names itself ([`Problem::io`]).
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        Problem::new(Status::Io, "io", format!("cannot write the output: {error}")).into()
    }
}

/// Reports a wrong command line, or prints the help that was asked for.
pub(crate) fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if json && error.use_stderr() {
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim();
        let hint = "`holotype help` lists the commands, `holotype COMMAND --help` their options";
        Problem::input("usage", message).hint(hint).tell(Some(Format::Json));
    } else if let Err(error) = print_usage(error) {
        return Failure::from(error).tell(None);
    }
    if error.use_stderr() { Status::Wrong.into() } else { ExitCode::SUCCESS }
}

/// Writes the help or the error of clap, fitted to the terminal. Its colours are shown only of a text that is printable
/// as it is.
fn print_usage(error: &clap::Error) -> io::Result<()> {
    let to_stderr = error.use_stderr();
    let screen = if to_stderr { Screen::stderr() } else { Screen::stdout() };
    let rendered = error.render();
    let plain = rendered.to_string();
    let shown = printable(&plain);
    let text = if screen.colour && shown == plain { rendered.ansi().to_string() } else { shown };
    let text = help::fit(&text, screen.width);
    match to_stderr {
        true => io::stderr().write_all(text.as_bytes()),
        false => io::stdout().write_all(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_a_statement_is_told() {
        let source = "recall 'a' were x = 1; find traces wher y";
        let errors = holotype::query::parse(source).unwrap_err();
        let problem = Problem::of_errors(errors, source, Some("q.holoq"));
        let json = problem.to_json();
        assert_eq!(json["line"], 1);
        assert_eq!(json["column"], 12);
        assert_eq!(json["file"], "q.holoq");
        assert!(json["message"].as_str().unwrap().contains("`where`"), "{json}");
        assert_eq!(json["more"].as_array().unwrap().len(), 1);
        let text = problem.to_text();
        assert!(text.starts_with("q.holoq:\nerror[syntax]"), "{text}");
        assert_eq!(text.matches("^^^^").count(), 2, "{text}");
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        assert!(matches!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)), Failure::ClosedPipe));
        let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(full, Failure::Problem(problem) if problem.status == Status::Io));
    }
}
