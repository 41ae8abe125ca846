//! Tables for a person: a header, a rule, rows; when the columns do not fit, one block a row.

use super::text::{printable, width, wrap};
use crate::screen::{Ink, Screen};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle};
use holotype::answer::Table;
use holotype::cell::Cell;
use std::io::{self, Write};

/// A header over a rule over rows, and two blanks between columns.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Columns up to this width are never broken; when not all fit, the rows are written as blocks.
const LEAST_COLUMN: usize = 24;

/// Writes a table with its notes.
pub(super) fn write(out: &mut impl Write, table: &Table, screen: &Screen) -> io::Result<()> {
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(text_of).collect()).collect();
    match table.verb {
        "sources" | "dependents" => {
            let (columns, rows) = with_spans(&table.columns, &rows);
            write_grid(out, &columns, &rows, screen)?;
        }
        _ => write_grid(out, &table.columns, &rows, screen)?,
    }
    let ink = if table.failed { Ink::Bad } else { Ink::Dim };
    for line in table.notes.iter().flat_map(|note| wrap(note, screen.width)) {
        writeln!(out, "{}", screen.paint(ink, &line))?;
    }
    Ok(())
}

/// A cell as text.
pub(super) fn text_of(cell: &Option<Cell>) -> String {
    cell.as_ref().map(Cell::to_string).unwrap_or_default()
}

/// The columns of a walk that a person reads: the span of a pointer in one, no numbers of items, no root that all rows
/// share, no status and support where nothing speaks against a row.
fn with_spans(columns: &[String], rows: &[Vec<String>]) -> (Vec<String>, Vec<Vec<String>>) {
    let at = |name: &str| columns.iter().position(|column| column == name);
    let cell =
        |row: &[String], index: Option<usize>| index.and_then(|index| row.get(index)).cloned().unwrap_or_default();
    let (field, start, end, root) = (at("field"), at("start"), at("end"), at("root"));
    let all = |index: Option<usize>, said: &[&str]| rows.iter().all(|row| said.contains(&cell(row, index).as_str()));
    let one_root = rows.first().is_some_and(|row| all(root, &[&cell(row, root)]));
    let sound = all(at("support"), &["supported"]) && all(at("status"), &["success", "unknown", ""]);
    let kept = |index: usize| {
        let index = Some(index);
        let told_already = (one_root && index == root) || (sound && (index == at("support") || index == at("status")));
        !told_already && index != start && index != end && index != at("item")
    };
    let kept: Vec<usize> = (0..columns.len()).filter(|index| kept(*index)).collect();
    let names =
        kept.iter().map(|index| if Some(*index) == field { "span".to_owned() } else { cell(columns, Some(*index)) });
    let shown = |row: &Vec<String>| {
        let cells = kept.iter().map(|index| match cell(row, Some(*index)) {
            name if Some(*index) == field && !name.is_empty() => {
                format!("{name}[{}..{}]", cell(row, start), cell(row, end))
            }
            other => other,
        });
        cells.collect()
    };
    (names.collect(), rows.iter().map(shown).collect())
}

/// Writes rows of text under their columns; those that hold nothing in any row are left out.
pub(super) fn write_grid(
    out: &mut impl Write,
    columns: &[String],
    rows: &[Vec<String>],
    screen: &Screen,
) -> io::Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    if rows.is_empty() {
        return writeln!(out, "{}", screen.paint(Ink::Dim, "no rows"));
    }
    let used: Vec<usize> = (0..columns.len())
        .filter(|index| rows.iter().any(|row| row.get(*index).is_some_and(|cell| !cell.is_empty())))
        .collect();
    let columns: &Vec<String> =
        &used.iter().filter_map(|index| columns.get(*index)).map(|name| printable(name)).collect();
    let pick = |row: &Vec<String>| {
        used.iter().map(|index| row.get(*index).map_or(String::new(), |cell| printable(cell))).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(pick).collect();
    if least_width(columns, &rows) > screen.width {
        return write_blocks(out, columns, &rows, screen);
    }
    let mut table = comfy_table::Table::new();
    table.force_no_tty().load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(screen.width).unwrap_or(u16::MAX)).set_header(columns);
    for row in &rows {
        table.add_row(row);
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        if rows.iter().filter_map(|row| row.get(index)).all(|cell| width(cell) <= LEAST_COLUMN) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        if is_numeric(rows.iter().filter_map(|row| row.get(index))) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for (index, line) in table.lines().enumerate() {
        let line = line.trim_end();
        writeln!(out, "{}", if index == 0 { screen.paint(Ink::Bold, line) } else { line.to_owned() })?;
    }
    Ok(())
}

/// The width below which some column would be narrower than it may be.
fn least_width(columns: &[String], rows: &[Vec<String>]) -> usize {
    let widest = |index: usize, name: &String| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| width(cell)).max().unwrap_or(0);
        cells.max(width(name))
    };
    columns.iter().enumerate().map(|(index, name)| widest(index, name).min(LEAST_COLUMN) + 2).sum()
}

fn is_numeric<'c>(cells: impl Iterator<Item = &'c String>) -> bool {
    let mut any = false;
    for cell in cells.filter(|cell| !cell.is_empty()) {
        if cell.parse::<f64>().is_err() {
            return false;
        }
        any = true;
    }
    any
}

/// One block of `name  value` lines a row.
fn write_blocks(out: &mut impl Write, columns: &[String], rows: &[Vec<String>], screen: &Screen) -> io::Result<()> {
    let names = columns.iter().map(|name| width(name)).max().unwrap_or(0);
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        for (name, cell) in columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
            for (line_index, line) in wrap(cell, screen.width.saturating_sub(names + 2)).iter().enumerate() {
                let name = if line_index == 0 { name } else { "" };
                let blank = " ".repeat(names - width(name) + 2);
                writeln!(out, "{}{blank}{line}", screen.paint(Ink::Bold, name))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(columns: &[&str], rows: &[&[&str]], width: usize) -> String {
        let mut out = Vec::new();
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        let screen = Screen { width, colour: false, terminal: false };
        write_grid(&mut out, &columns, &rows, &screen).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_are_aligned_and_wrapped() {
        let long = "a text that is longer than any column has to be";
        let text = drawn(&["key", "tokens", "text"], &[&["t1", "7", long], &["t22", "110", "x"]], 44);
        assert_eq!(
            text,
            "key   tokens   text\n\
             ─────────────────────────────────────────\n\
             t1         7   a text that is longer than\n\
             \x20              any column has to be\n\
             t22      110   x\n"
        );
    }

    #[test]
    fn columns_that_do_not_fit_become_blocks_and_empty_ones_go() {
        let text = drawn(&["a", "empty", "long-name"], &[&["one", "", "a text that is long"], &["two", "", ""]], 20);
        assert_eq!(text, "a          one\nlong-name  a text\n           that is\n           long\n\na          two\n");
    }

    #[test]
    fn spans_of_a_walk_are_one_column() {
        let texts = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let columns = texts(&["depth", "root", "item", "key", "field", "start", "end", "support", "status"]);
        let rows = [
            texts(&["1", "r", "7", "t1", "text", "2", "9", "supported", "success"]),
            texts(&["2", "r", "8", "p1", "", "", "", "supported", ""]),
        ];
        let (columns, rows) = with_spans(&columns, &rows);
        assert_eq!(columns, ["depth", "key", "span"]);
        assert_eq!(rows, [texts(&["1", "t1", "text[2..9]"]), texts(&["2", "p1", ""])]);
    }

    #[test]
    fn no_rows_are_said() {
        assert_eq!(drawn(&["a"], &[], 80), "no rows\n");
    }
}
