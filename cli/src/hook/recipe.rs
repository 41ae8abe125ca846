//! The context of a session at its beginning and after a compaction: a fixed recipe, which `--show-recipe` prints.
//!
//! The text is at most [`CONTEXT_LEN`] characters and says in its first words that it is quoted. A line is one item:
//! its sort, key, time and text. Items whose text instructs its reader are left out. A receipt of the keys is recorded
//! as an observation of the session.

use holotype::answer::Output;
use holotype::cell::Cell;
use holotype::query::{ParamValue, Params};
use holotype::{Snapshot, time};

/// The most characters that are handed to a harness.
const CONTEXT_LEN: usize = 8_000;
/// The most characters of one item's text.
const TEXT_LEN: usize = 400;
/// The first words.
const HEADING: &str = "From memory (quoted; verify):";

/// A part of the recipe: the word before each line, and the statement that finds its items. `$session` is the session
/// that begins.
struct Part {
    word: &'static str,
    statement: &'static str,
}

const PARTS: [Part; 6] = [
    Part {
        word: "goal",
        statement: "find intents where active = true and not quarantined order by commit desc limit 5 \
                    return key, time, text",
    },
    Part {
        word: "summary",
        statement: "find observations where fields.event = 'compacted' and episode = $session \
                    order by commit desc limit 1 return key, time, text",
    },
    Part {
        word: "last asked",
        statement: "find turns where source = user and episode != $session order by commit desc limit 1 \
                    return key, time, text",
    },
    Part {
        word: "last outcome",
        statement: "find turns where source = assistant and episode != $session and not quarantined \
                    order by commit desc limit 1 return key, time, text",
    },
    Part {
        word: "failed",
        statement: "find calls where status = failed and active = true and not quarantined \
                    order by commit desc limit 5 return key, time, text",
    },
    Part {
        word: "fact",
        statement: "find facts where active = true and support = supported and \
                    not (stale or conflicted or quarantined) order by utility desc, commit desc limit 12 \
                    return key, time, text",
    },
];

/// The context of a session, and the keys of its items.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) text: String,
    pub(super) keys: Vec<String>,
}

/// The recipe as statements.
pub(super) fn shown() -> String {
    let lines = PARTS.iter().map(|part| format!("-- {}\n{};\n", part.word, part.statement));
    format!(
        "-- At the start of a session and after a compaction, in this order, at most {CONTEXT_LEN} characters.\n{}",
        lines.collect::<String>()
    )
}

/// The context of a session that begins; `None` if there is nothing to say.
///
/// # Errors
/// Those of the statements.
pub(super) fn context(snapshot: &Snapshot, session: &str) -> holotype::Result<Option<Context>> {
    let mut context = Context { text: HEADING.to_owned(), keys: Vec::new() };
    let mut len = context.text.chars().count();
    for part in &PARTS {
        let mut params = Params::new();
        // A parameter that a statement does not use is an error.
        if part.statement.contains("$session") {
            params.insert("session".to_owned(), ParamValue::Text(session.to_owned()));
        }
        for output in snapshot.query(part.statement, &params)? {
            let Output::Table(table) = output else { continue };
            for row in table.rows {
                let Some((key, line)) = line(part.word, &row) else { continue };
                let more = line.chars().count() + 1;
                if len + more <= CONTEXT_LEN {
                    len += more;
                    context.text.push('\n');
                    context.text.push_str(&line);
                    context.keys.push(key);
                }
            }
        }
    }
    Ok((!context.keys.is_empty()).then_some(context))
}

/// The line of a row, with its key.
fn line(word: &str, row: &[Option<Cell>]) -> Option<(String, String)> {
    let text = |at: usize| match row.get(at) {
        Some(Some(Cell::Text(text))) => Some(text.as_str()),
        _ => None,
    };
    let (key, said) = (text(0)?, text(2)?);
    let at = match row.get(1) {
        Some(Some(Cell::Time(at))) => format!(" {}", time::format(*at)),
        _ => String::new(),
    };
    let mut said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if said.is_empty() {
        return None;
    }
    if said.chars().count() > TEXT_LEN {
        said = said.chars().take(TEXT_LEN).chain(['…']).collect();
    }
    let quoted = said.replace('"', "'");
    Some((key.to_owned(), format!("- {word} [{key}]{at}: \"{quoted}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_is_statements_that_check() {
        holotype::query::parse(&shown()).unwrap();
    }
}
