//! From the syntax tree back to text, in one canonical form.
//!
//! Clauses stand in the order of the grammar, words in lower case, texts in single
//! quotes. A statement that fits [`LINE`] characters is one line; a longer one has each
//! clause on a line of its own. What is printed parses to the tree it was printed from.
//!
//! `Display` of statements, predicates and their parts is the one-line form. Vectors
//! have no literal: a bound one is printed as the parameter it came from, so that a
//! bound statement can still be read, and run again with the same parameters.

mod clauses;
mod plans;
mod statements;
mod values;

use std::fmt::{self, Write as _};

use crate::ast::{Comment, Script, Statement};

/// The longest statement printed on one line, in characters.
const LINE: usize = 90;

/// The canonical text of a script, ending with a line end.
pub fn format(script: &Script) -> String {
    let mut out = String::new();
    let last = script.statements.len().saturating_sub(1);
    let mut comments = script.comments.iter().peekable();
    for (index, statement) in script.statements.iter().enumerate() {
        let mut trailing = None;
        while let Some(comment) = comments.next_if(|comment| comment.statement == index) {
            if comment.trailing {
                trailing = Some(comment);
            } else {
                out += &commented(comment);
                out.push('\n');
            }
        }
        out += &laid_out(statement);
        if index < last {
            out.push(';');
        }
        if let Some(comment) = trailing {
            out.push(' ');
            out += &commented(comment);
        }
        out.push('\n');
    }
    for comment in comments {
        out += &commented(comment);
        out.push('\n');
    }
    out
}

fn commented(comment: &Comment) -> String {
    format!("-- {}", comment.text).trim_end().to_owned()
}

/// A statement on one line, or on several when it is long.
fn laid_out(statement: &Statement) -> String {
    let pieces = statements::pieces(statement);
    let line = pieces.join(" ");
    if line.chars().count() <= LINE { line } else { pieces.join("\n  ") }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format(self))
    }
}

/// Writes things with a comma between them.
fn commas<T: fmt::Display>(f: &mut fmt::Formatter<'_>, things: &[T]) -> fmt::Result {
    separated(f, things, ", ")
}

fn separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, things: &[T], separator: &str) -> fmt::Result {
    for (index, thing) in things.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{thing}")?;
    }
    Ok(())
}

/// Writes `before` and the thing, when it is there.
fn optional<T: fmt::Display>(f: &mut fmt::Formatter<'_>, before: &str, thing: &Option<T>) -> fmt::Result {
    match thing {
        Some(thing) => write!(f, "{before}{thing}"),
        None => Ok(()),
    }
}

/// `text` in single quotes.
struct Quoted<'t>(&'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('\'')?;
        for c in self.0.chars() {
            match c {
                '\'' => f.write_str("''")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('\'')
    }
}
