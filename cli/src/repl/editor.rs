//! The line editor of a session: when Enter runs the input, what Tab offers, what is coloured.

use super::colour::coloured;
use super::command::command_of;
use super::completion::{MOST, Names, complete};
use holotype::Holotype;
use holotype::query::parse;
use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::borrow::Cow;

/// Completion, colours and validation for the editor.
pub(super) struct Assistant {
    pub(super) database: Holotype,
    pub(super) colour: bool,
}

/// True if Enter runs what was typed: it is empty, a command of the session, ends with `;`, is a whole script, or is
/// wrong before its end.
pub(super) fn is_complete(source: &str) -> bool {
    let source = source.trim();
    if source.is_empty() || command_of(source).is_some() || source.ends_with(';') {
        return true;
    }
    match parse(source) {
        Ok(_) => true,
        Err(errors) => errors.iter().any(|error| (error.span.start as usize) < source.len()),
    }
}

/// The names in the newest state; a database that cannot be read offers none.
impl Names for Holotype {
    fn episodes(&self, prefix: &str) -> Vec<String> {
        self.snapshot().episodes(prefix, MOST).unwrap_or_default()
    }

    fn keys(&self, prefix: &str) -> Vec<String> {
        self.snapshot().keys(prefix, MOST).unwrap_or_default()
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        // An empty line ends anything.
        let given_up = input.ends_with('\n') && !input.trim().is_empty();
        Ok(if given_up || is_complete(input) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(line, pos, &self.database))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.colour && !line.starts_with('.') { coloured(line) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.colour
    }
}

impl Hinter for Assistant {
    type Hint = String;
}
impl Helper for Assistant {}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype::{Durability, NewTrace, Options};
    use rustyline::history::DefaultHistory;

    #[test]
    fn enter_runs_what_is_complete() {
        for complete in
            ["", "recall 'x'", "recall 'x' limit 3;", ".quit", "help", "exit", "recall 'x' limt 3", "recal 'x'"]
        {
            assert!(is_complete(complete), "{complete}");
        }
        for incomplete in ["recall", "recall 'x' limit", "find traces where", "find traces where (status = failed"] {
            assert!(!is_complete(incomplete), "{incomplete}");
        }
    }

    #[test]
    fn the_editor_is_helped_by_the_database() {
        let dir = tempfile::tempdir().unwrap();
        let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("trip-42", "hello").key("greeting")).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        let assistant = Assistant { database, colour: true };
        let history = DefaultHistory::new();
        let offered = |line: &str| assistant.complete(line, line.len(), &Context::new(&history)).unwrap().1;
        assert_eq!(offered("recall 'x' in episode '"), ["trip-42'"]);
        assert_eq!(offered("sources of 'gr"), ["greeting'"]);
        assert!(assistant.highlight("recall 'x'", 0).contains("\u{1b}["));
        assert_eq!(assistant.highlight(".help", 0), ".help");
        let plain = Assistant { colour: false, ..assistant };
        assert_eq!(plain.highlight("recall 'x'", 0), "recall 'x'");
    }
}
