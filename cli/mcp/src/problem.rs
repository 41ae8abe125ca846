//! An error as an agent reads it: one sentence of cause, one of the next step.

use holotype::Error;
use holotype::query::Errors;

/// An error of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    cause: String,
    next: String,
}

impl Problem {
    pub(crate) fn new(cause: impl Into<String>, next: impl Into<String>) -> Problem {
        Problem { cause: cause.into(), next: next.into() }
    }

    /// Both sentences.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", sentence(&self.cause), sentence(&self.next))
    }
}

/// The text with a capital at its beginning and a full stop at its end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let first: String = chars.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match error {
            Error::Query(errors) => of_statement(&errors),
            Error::ReadOnly | Error::Unaudited => read_only(),
            Error::Cancelled(_) => Problem::new("the call was stopped", "call it again if its result is still needed"),
            Error::Busy { .. } | Error::WriterBusy => split(&error, "wait a moment and call it again"),
            Error::Limit { .. } => split(&error, "ask for less"),
            Error::Missing { .. } => split(&error, "use a key that recall, get or query showed"),
            error if error.code() == "locked" => split(&error, "wait a moment and call it again"),
            error => split(&error, "correct the arguments and call it again"),
        }
    }
}

/// A write to a server that only reads.
pub(crate) fn read_only() -> Problem {
    Problem::new(
        "nothing can be written: this server was started with --read-only",
        "read with recall, why, get or query, or ask the user to start `holotype mcp` without --read-only",
    )
}

/// Messages of the engine say the remedy after a semicolon.
fn split(error: &Error, next: &str) -> Problem {
    let message = error.to_string();
    match message.split_once("; ") {
        Some((cause, remedy)) => Problem::new(cause, remedy),
        None => Problem::new(message, next),
    }
}

fn of_statement(errors: &Errors) -> Problem {
    let Some(first) = errors.first() else {
        return Problem::new("the statement is wrong", "correct it and call query again");
    };
    let place = if first.line > 0 { format!(" (line {}, column {})", first.line, first.column) } else { String::new() };
    let more = match errors.len() {
        1 => String::new(),
        count => format!(", and {} more errors follow", count - 1),
    };
    let next = match (&first.nearest, &first.hint) {
        (Some(nearest), _) => format!("write `{nearest}` there"),
        (None, Some(hint)) => hint.clone(),
        (None, None) if !first.expected.is_empty() => format!("write {} there", first.expected.join(", ")),
        (None, None) => "correct it and call query again".to_owned(),
    };
    Problem::new(format!("{}{place}{more}", first.message), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_two_sentences() {
        let problem = Problem::new("no item 'a'", "did you mean `b`?");
        assert_eq!(problem.text(), "No item 'a'. Did you mean `b`?");
    }

    #[test]
    fn a_wrong_statement_tells_the_nearest_word() {
        let errors = holotype::query::parse("recal 'x'").unwrap_err();
        let text = Problem::from(Error::Query(errors)).text();
        assert!(text.contains("(line 1, column 1)") && text.ends_with("Write `recall` there."), "{text}");
    }
}
