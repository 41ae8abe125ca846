//! Answers for a document: a numbered list with the evidence below each row, tables as Markdown tables. A citation also
//! stands there in HELM's form, to be copied into a memory.

use super::text::printable;
use super::{cards, grid};
use crate::screen::Screen;
use holotype::answer::{Answer, Output, Role};
use std::io::{self, Write};

/// Writes one output.
pub(super) fn write(out: &mut impl Write, output: &Output) -> io::Result<()> {
    match output {
        Output::Answer(answer) => write_answer(out, answer),
        Output::Table(table) => {
            let rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(grid::text_of).collect()).collect();
            write_table(out, &table.columns, &rows)?;
            write_notes(out, &table.notes)
        }
        other => writeln!(out, "{other:?}"),
    }
}

fn write_answer(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    if let Some(columns) = &answer.returns {
        let rows: Vec<Vec<String>> = answer.rows.iter().map(|row| cards::column_texts(row, columns)).collect();
        write_table(out, columns, &rows)?;
        return write_notes(out, &cards::notes(answer));
    }
    let mut number = 0;
    let plain = Screen { width: usize::MAX, colour: false, terminal: false };
    for row in &answer.rows {
        let text = escape(&row.text);
        match row.role {
            Role::Hit => {
                number += 1;
                let (key, kind, score) = (escape(&row.key), row.kind.as_str(), row.score);
                writeln!(out, "{number}. **{key}** ({kind}, {score:.3}) {text}")?;
            }
            Role::Evidence => writeln!(out, "   - rests on **{}**: {text}", escape(&row.key))?,
        }
        for line in cards::lines(row) {
            writeln!(out, "   - {}", escape(&line))?;
        }
        for citation in &row.citations {
            writeln!(out, "   - {}", escape(&cards::citation(citation, true, plain.width, &plain)))?;
            if let Some(cite) = citation.cite() {
                writeln!(out, "     - {}", code(&cite))?;
            }
        }
    }
    write_notes(out, &cards::notes(answer))
}

fn write_table(out: &mut impl Write, columns: &[String], rows: &[Vec<String>]) -> io::Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    write_line(out, columns)?;
    writeln!(out, "|{}", " --- |".repeat(columns.len()))?;
    rows.iter().try_for_each(|row| write_line(out, row))
}

fn write_line(out: &mut impl Write, cells: &[String]) -> io::Result<()> {
    write!(out, "|")?;
    for cell in cells {
        write!(out, " {} |", escape(cell))?;
    }
    writeln!(out)
}

fn write_notes(out: &mut impl Write, notes: &[String]) -> io::Result<()> {
    for note in notes {
        writeln!(out, "\n{}", escape(note))?;
    }
    Ok(())
}

/// The text as code, with more backticks around it than it has anywhere in a row.
fn code(text: &str) -> String {
    let text = printable(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let blank = if longest > 0 { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// The text on one line, with what Markdown would read as markup escaped.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).trim().chars() {
        match c {
            '\n' => escaped.push_str("<br>"),
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '#' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_ends_where_its_text_does() {
        assert_eq!([code("a"), code("a`b"), code("``")], ["`a`", "`` a`b ``", "``` `` ```"]);
    }

    #[test]
    fn cells_stay_cells() {
        let mut out = Vec::new();
        write_table(&mut out, &["key".into(), "text".into()], &[vec!["a|b".into(), "one\ntwo *x*".into()]]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "| key | text |\n| --- | --- |\n| a\\|b | one<br>two \\*x\\* |\n");
    }
}
