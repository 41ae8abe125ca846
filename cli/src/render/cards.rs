//! The rows of a recall for a person: the score and what the item is, its text, what the score is made of, and the
//! evidence as a tree.
//!
//! ```text
//! 1  2.767  fare-thu  fact, trip-42 step 54, 2026-02-19T09:06:00Z, success, tool
//!    The TJ482 flight to Lisbon costs 268 EUR per adult, taxes included
//!    similarity 0.385 + words 0.386 + recency 0.996 + source 1.000
//!    ├─ t53 text[33..50] "268 EUR per adult" ok
//!    └─ t54 text[56..84] "268 EUR each, taxes included" ok
//! ```

use super::grid;
use super::text::{cut, width, wrap};
use crate::screen::{Ink, Screen};
use holotype::answer::{Answer, Citation, Line, ROW_COLUMNS, Role, Row};
use holotype::plural::counted;
use holotype::time;
use holotype::{Source, Status, Support, Verdict};
use serde_json::Value;
use std::io::{self, Write};

/// The most lines a text takes on a terminal.
const MOST_LINES: usize = 8;

/// Writes an answer.
pub(super) fn write(out: &mut impl Write, answer: &Answer, screen: &Screen) -> io::Result<()> {
    match &answer.returns {
        Some(columns) => write_columns(out, answer, columns, screen)?,
        None => write_rows(out, answer, screen)?,
    }
    write_notes(out, answer, screen)
}

fn write_rows(out: &mut impl Write, answer: &Answer, screen: &Screen) -> io::Result<()> {
    let hits = answer.rows.iter().filter(|row| row.role == Role::Hit).count();
    let indent = hits.to_string().len() + 2;
    let mut number = 0;
    for row in &answer.rows {
        let lead = match row.role {
            Role::Hit => {
                number += 1;
                format!("{number:>width$}  ", width = indent - 2)
            }
            Role::Evidence => format!("{:>width$} ", "↳", width = indent - 1),
        };
        write_row(out, row, (&lead, &row.key), indent, screen)?;
    }
    Ok(())
}

/// Writes rows of several databases, each with the name that it has among them.
pub(crate) fn write_named(out: &mut impl Write, rows: &[(String, Row)], screen: &Screen) -> io::Result<()> {
    let indent = rows.len().to_string().len() + 2;
    for (number, (name, row)) in rows.iter().enumerate() {
        let lead = format!("{:>width$}  ", number + 1, width = indent - 2);
        write_row(out, row, (&lead, name), indent, screen)?;
    }
    Ok(())
}

/// Writes a row; its first line begins with the number and the name of the row.
fn write_row(
    out: &mut impl Write,
    row: &Row,
    (lead, name): (&str, &str),
    indent: usize,
    screen: &Screen,
) -> io::Result<()> {
    let blank = " ".repeat(indent);
    let room = screen.width.saturating_sub(indent);
    let score = if row.role == Role::Hit { format!("{:.3}  ", row.score) } else { String::new() };
    let key = cut(name, room);
    let what = cut(&describe(row), room.saturating_sub(score.len() + width(&key) + 2));
    writeln!(out, "{lead}{score}{}  {}", screen.paint(Ink::Bold, &key), screen.paint(Ink::Dim, &what))?;

    let mut text = wrap(&row.text, room);
    if screen.terminal && text.len() > MOST_LINES {
        text.truncate(MOST_LINES);
        text.push(format!("… {} in all", counted(u64::from(row.tokens), "tokens")));
    }
    for line in text {
        writeln!(out, "{blank}{line}")?;
    }
    if row.role == Role::Hit {
        for line in wrap(&parts(row), room) {
            writeln!(out, "{blank}{}", screen.paint(Ink::Dim, &line))?;
        }
    }
    if let Some(warning) = warning(row) {
        for line in wrap(&warning, room) {
            writeln!(out, "{blank}{}", screen.paint(Ink::Warn, &line))?;
        }
    }
    if !row.folded.is_empty() {
        for line in wrap(&format!("the same words in {}", row.folded.join(", ")), room) {
            writeln!(out, "{blank}{}", screen.paint(Ink::Dim, &line))?;
        }
    }
    for line in lines(row).iter().flat_map(|line| wrap(line, room.saturating_sub(2))) {
        writeln!(out, "{blank}  {line}")?;
    }
    let last = row.citations.len().saturating_sub(1);
    for (index, cited) in row.citations.iter().enumerate() {
        let branch = branch(index == last);
        let own = cited.target == row.key && cited.text.as_deref() == Some(row.text.as_str());
        let line = citation(cited, !own, room.saturating_sub(width(branch)), screen);
        writeln!(out, "{blank}{branch}{line}")?;
    }
    Ok(())
}

/// The other statements of the row's frame, a line each, and how many are not shown.
pub(super) fn lines(row: &Row) -> Vec<String> {
    let line = |line: &Line| format!("{}: {} [{}]", line.label, line.text, line.key);
    let mut lines: Vec<String> = row.lines.iter().map(line).collect();
    if row.more > 0 {
        lines.push(format!("and {}", counted(row.more, "more statements")));
    }
    lines
}

/// The line before a leaf of a tree.
pub(crate) fn branch(last: bool) -> &'static str {
    if last { "└─ " } else { "├─ " }
}

/// A citation on one line of at most `columns`: where it points, the words that stand there, and the verdict.
pub(super) fn citation(citation: &Citation, quoted: bool, columns: usize, screen: &Screen) -> String {
    let place = match citation.field.as_str() {
        "" => format!("page {}", citation.target),
        field => format!("{} {field}[{}..{}]", citation.target, citation.start, citation.end),
    };
    let verdict = citation.verdict.as_str();
    let place = cut(&place, columns.saturating_sub(verdict.len() + 1));
    let room = columns.saturating_sub(width(&place) + verdict.len() + 2);
    let quote = citation.text.as_deref().filter(|_| quoted && room >= 8);
    let quote = quote.map(|text| format!("\"{}\" ", cut(text, room.saturating_sub(2)))).unwrap_or_default();
    let ink = if citation.verdict == Verdict::Ok { Ink::Good } else { Ink::Bad };
    format!("{place} {quote}{}", screen.paint(ink, verdict))
}

/// The kind of the item, its place and its outcome.
fn describe(row: &Row) -> String {
    let mut said = vec![row.kind.as_str().to_owned()];
    said.extend(row.speaker.clone());
    said.extend(row.tool.clone().filter(|tool| !tool.is_empty()));
    match (&row.episode, row.step) {
        (Some(episode), Some(step)) => said.push(format!("{episode} step {step}")),
        (Some(episode), None) => said.push(episode.clone()),
        (None, _) => {}
    }
    said.extend(row.time.map(time::format));
    said.extend(row.status.filter(|status| *status != Status::Success).map(|status| status.as_str().to_owned()));
    said.extend(row.source.map(Source::as_str).map(str::to_owned));
    said.extend(row.version.as_ref().map(|version| format!("version {version}")));
    said.join(", ")
}

/// The terms of the score that are not 0, as a sum.
fn parts(row: &Row) -> String {
    let parts = &row.parts;
    let terms = [
        ("similarity", parts.similarity),
        ("words", parts.words),
        ("recency", parts.recency),
        ("status", parts.status),
        ("source", parts.source),
        ("utility", parts.utility),
        ("relaxed", parts.relaxed),
    ];
    let mut sum = String::new();
    for (name, value) in terms.into_iter().filter(|(_, value)| value.abs() >= 0.0005) {
        let sign = match (sum.is_empty(), value < 0.0) {
            (true, false) => "",
            (true, true) => "- ",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        sum += &format!("{sign}{name} {:.3}", value.abs());
    }
    sum
}

/// The reasons to distrust the row, if there are any.
fn warning(row: &Row) -> Option<String> {
    let mut warnings = Vec::new();
    if !row.relaxed.is_empty() {
        warnings.push(format!("let back in although {}", row.relaxed.join(", ")));
    }
    if row.stale && !row.relaxed.contains(&"stale") {
        warnings.push("stale for this reader".to_owned());
    }
    if let Some(winner) = row.conflict {
        let name = row.conflict_key.as_ref().filter(|key| **key != winner.to_string());
        let name = name.map_or_else(|| winner.to_string(), |key| format!("'{key}'"));
        warnings.push(format!("item {name} contradicts it"));
    }
    if row.support != Support::Supported {
        warnings.push(row.support.as_str().to_owned());
    }
    (!warnings.is_empty()).then(|| warnings.join("; "))
}

/// The rows under the columns that `return` named.
fn write_columns(out: &mut impl Write, answer: &Answer, columns: &[String], screen: &Screen) -> io::Result<()> {
    let rows = answer.rows.iter().map(|row| column_texts(row, columns)).collect::<Vec<_>>();
    grid::write_grid(out, columns, &rows, screen)
}

/// The cells of a row under the given columns, as text.
pub(super) fn column_texts(row: &Row, columns: &[String]) -> Vec<String> {
    let json = row.to_json(None);
    let plain = Screen { width: usize::MAX, colour: false, terminal: false };
    let cell = |name: &String| match name.as_str() {
        "lines" => lines(row).join("\n"),
        "citations" => {
            let lines = row.citations.iter().map(|cited| citation(cited, true, plain.width, &plain));
            lines.collect::<Vec<_>>().join("\n")
        }
        name => json.get(name).map(text_of).unwrap_or_default(),
    };
    debug_assert!(columns.iter().all(|name| ROW_COLUMNS.contains(&name.as_str()) || name.contains('.')));
    columns.iter().map(cell).collect()
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(", "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn write_notes(out: &mut impl Write, answer: &Answer, screen: &Screen) -> io::Result<()> {
    for line in notes(answer).iter().flat_map(|note| wrap(note, screen.width)) {
        writeln!(out, "{}", screen.paint(Ink::Dim, &line))?;
    }
    Ok(())
}

/// Notes on the answer as a whole. The number of rows and the position of the reader come last.
pub(super) fn notes(answer: &Answer) -> Vec<String> {
    let mut notes = Vec::new();
    if !answer.answerable {
        notes.push("what is stored may not answer this question".to_owned());
    }
    if answer.rounds > 0 {
        notes.push(counted(u64::from(answer.rounds), "rounds of escalation"));
    }
    if let Some(refresh) = &answer.refresh {
        let since = refresh.last_step.map(|step| format!(", last at step {step}")).unwrap_or_default();
        notes.push(format!("the first row is stale: call {} again{since}", refresh.tool));
    }
    notes.extend(answer.notes.iter().cloned());
    let hits = answer.rows.iter().filter(|row| row.role == Role::Hit).count();
    if hits == 0 && !answer.excluded.is_empty() {
        let left_out: Vec<String> = answer.excluded.iter().map(|(flaw, items)| format!("{items} {flaw}")).collect();
        notes.push(format!("left out: {}", left_out.join(", ")));
    }
    if answer.pending > 0 {
        notes.push(format!("pending: {}", counted(answer.pending, "vectors")));
    }
    let mut stands = vec![format!("as of commit {}", answer.commit)];
    stands.extend(answer.at.episode.as_ref().map(|episode| format!("read in {episode}")));
    stands.extend(answer.at.step.map(|step| format!("at step {step}")));
    stands.extend(answer.at.time.map(|micros| format!("at {}", time::format(micros))));
    stands.extend(answer.at.version.as_ref().map(|version| format!("at version {version}")));
    let receipt = answer.receipt.as_ref().map(|id| format!(", receipt {id}")).unwrap_or_default();
    let rows = counted(hits as u64, "rows");
    notes.push(format!("{rows} ({}), {}{receipt}", answer.certificate, stands.join(", ")));
    notes
}
