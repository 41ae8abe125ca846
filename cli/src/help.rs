//! The text of `--help`, fitted to the width of the terminal.
//!
//! clap lays out help in lines of any length. Lines that are too long are broken between words here, and go on below
//! the description they belong to, so a terminal never breaks them inside a word. Colours stay.

use crate::render::text::width;

/// No terminal is taken to be narrower.
const LEAST_COLUMNS: usize = 40;

/// The text with lines of at most `columns`, as far as words let it.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let columns = columns.max(LEAST_COLUMNS);
    let mut fitted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (content, end) = line.strip_suffix('\n').map_or((line, ""), |content| (content, "\n"));
        if shown_width(content) <= columns {
            fitted.push_str(content.trim_end_matches(' '));
        } else {
            fit_line(content, columns, &mut fitted);
        }
        fitted.push_str(end);
    }
    fitted
}

fn fit_line(line: &str, columns: usize, fitted: &mut String) {
    let hang = hang_of(line).min(columns / 2);
    let indent = line.len() - line.trim_start_matches(' ').len();
    fitted.push_str(&" ".repeat(indent));
    let mut used = indent;
    let mut blanks = 0;
    for word in line.trim_start_matches(' ').split(' ') {
        if word.is_empty() {
            blanks += 1;
            continue;
        }
        let len = shown_width(word);
        if used + blanks + len > columns && used > hang {
            fitted.push('\n');
            fitted.push_str(&" ".repeat(hang));
            used = hang;
            blanks = 0;
        }
        fitted.push_str(&" ".repeat(blanks));
        fitted.push_str(word);
        used += blanks + len;
        blanks = 1;
    }
}

/// The column at which a line goes on: that of the description after a name, else that of its beginning.
fn hang_of(line: &str) -> usize {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let content = line.get(indent..).unwrap_or_default();
    // A name ends with two blanks, or with a colon as a possible value does.
    let named = content.find("  ").or_else(|| if content.starts_with("- ") { content.find(": ") } else { None });
    let Some(at) = named else { return indent };
    let Some(rest) = content.get(at..) else { return indent };
    let gap = rest.len() - rest.trim_start_matches([' ', ':']).len();
    indent + shown_width(content.get(..at).unwrap_or_default()) + gap
}

/// The columns a text takes, without the escape sequences of colours in it.
fn shown_width(text: &str) -> usize {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        shown.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    shown.push_str(rest);
    width(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_under_their_description() {
        let text = "Commands:\n  prove        Prove that an item is in the log, or that the log only grew\n";
        let fitted = "Commands:\n  prove        Prove that an item is in the\n               log, or that the log only\n\
                      \x20              grew\n";
        assert_eq!(fit(text, 44), fitted);
        let value = "          - json: One document: the answer, or several of them\n";
        assert_eq!(
            fit(value, 44),
            "          - json: One document: the answer,\n                  or several of them\n"
        );
        let option = "          Print instead what others can keep for a year\n";
        assert_eq!(fit(option, 44), "          Print instead what others can keep\n          for a year\n");
    }

    #[test]
    fn colours_take_no_room_and_words_stay_whole() {
        let coloured = format!("  \u{1b}[1mkey\u{1b}[0m  {}", "word ".repeat(12).trim_end());
        let fitted = fit(&coloured, 66);
        assert_eq!(fitted, coloured, "66 columns are enough");
        assert_eq!(fit(&coloured, 65).lines().count(), 2);
        let long = "x".repeat(90);
        assert_eq!(fit(&long, 44), long);
    }
}
