//! The answer of a tool: the same as structured content and as short text, within a number of characters.
//!
//! Rows are drawn with the number of characters that a text of theirs may take. All rows that fit are shown whole;
//! the first alone is cut if it must be. An answer that lacks rows says so, with the way to the rest.

use serde_json::{Map, Value};

/// Characters kept free for the note about what is not shown.
const RESERVE: usize = 700;
/// Keys of rows that are not shown, named so that they can be read.
const NAMED: usize = 12;

/// Draws a row, with texts of at most so many characters: as JSON and as text.
pub(crate) type Draw = Box<dyn Fn(usize) -> (Value, String)>;

/// The answer of a tool.
#[derive(Default)]
pub(crate) struct Reply {
    /// Members that stand before the rows.
    pub(crate) head: Map<String, Value>,
    /// The first lines of the text.
    pub(crate) opening: String,
    rows: Vec<(String, Draw)>,
    has_rows: bool,
    notes: Vec<String>,
    rest: String,
}

/// A drawn answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) structured: Value,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn new(opening: impl Into<String>) -> Reply {
        Reply { opening: opening.into(), ..Reply::default() }
    }

    /// With a member of the structured content.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Reply {
        self.head.insert(name.to_owned(), value.into());
        self
    }

    /// With a list of rows, though it may be empty.
    pub(crate) fn listing(mut self, rest: impl Into<String>) -> Reply {
        self.has_rows = true;
        self.rest = rest.into();
        self
    }

    /// Adds a row by the name that leads back to it.
    pub(crate) fn row(&mut self, name: impl Into<String>, draw: impl Fn(usize) -> (Value, String) + 'static) {
        self.rows.push((name.into(), Box::new(draw)));
    }

    /// Adds a sentence below the rows.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Draws the answer within `limit` characters, in each of its two forms.
    pub(crate) fn draw(mut self, limit: usize) -> Drawn {
        self.bound_notes(limit);
        let fixed = self.assemble(Vec::new(), Vec::new());
        let room = limit.saturating_sub(RESERVE);
        let (mut json_used, mut text_used) = (count(&fixed.structured.to_string()), count(&fixed.text));
        let (mut values, mut lines) = (Vec::new(), Vec::new());
        for (_, draw) in &self.rows {
            let (mut value, mut line) = draw(usize::MAX);
            let fits = |value: &Value, line: &str| {
                json_used + count(&value.to_string()) < room && text_used + count(line) < room
            };
            if !fits(&value, &line) && values.is_empty() {
                (value, line) = shorten(draw, &fits, room);
            }
            if !fits(&value, &line) {
                break;
            }
            json_used += count(&value.to_string()) + 1;
            text_used += count(&line) + 1;
            values.push(value);
            lines.push(line);
        }
        let left: Vec<String> = self.rows.iter().skip(values.len()).map(|(name, _)| name.clone()).collect();
        if !left.is_empty() {
            self.head.insert("truncated".into(), true.into());
            self.notes.push(self.of_rest(&left));
        }
        self.assemble(values, lines)
    }

    fn of_rest(&self, left: &[String]) -> String {
        let names: Vec<String> =
            left.iter().filter(|name| !name.is_empty()).take(NAMED).map(|name| format!("[{name}]")).collect();
        let names = match names.is_empty() {
            true => String::new(),
            false => crate::quoting::head(&format!(": {}", names.join(" ")), RESERVE / 2).to_owned(),
        };
        let rows = if left.len() == 1 { "row is" } else { "rows are" };
        format!("{} more {rows} not shown{names}. {}", left.len(), self.rest)
    }

    /// Notes take at most a quarter of the answer.
    fn bound_notes(&mut self, limit: usize) {
        let mut room = limit / 4;
        let count_before = self.notes.len();
        self.notes.retain(|note| {
            let fits = count(note) <= room;
            room = room.saturating_sub(count(note));
            fits
        });
        if self.notes.len() < count_before {
            self.notes.push(format!("{} more notes are not shown.", count_before - self.notes.len()));
        }
        self.opening = crate::quoting::head(&self.opening, limit / 2).to_owned();
    }

    fn assemble(&self, values: Vec<Value>, lines: Vec<String>) -> Drawn {
        let mut object = self.head.clone();
        if self.has_rows {
            object.insert("rows".into(), values.into());
        }
        if !self.notes.is_empty() {
            object.insert("notes".into(), self.notes.iter().map(String::as_str).collect());
        }
        let opening = (!self.opening.is_empty()).then(|| self.opening.clone());
        let text: Vec<String> = opening.into_iter().chain(lines).chain(self.notes.iter().cloned()).collect();
        Drawn { structured: object.into(), text: text.join("\n") }
    }
}

/// The row with texts that are halved until it fits.
fn shorten(draw: &Draw, fits: &dyn Fn(&Value, &str) -> bool, room: usize) -> (Value, String) {
    let mut most = room;
    loop {
        let (value, line) = draw(most);
        if fits(&value, &line) || most == 0 {
            return (value, line);
        }
        most /= 2;
    }
}

fn count(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reply(rows: usize, len: usize) -> Reply {
        let mut reply = Reply::new("rows:").with("found", rows).listing("Ask for fewer.");
        for number in 0..rows {
            let text = "\u{1}ä".repeat(len / 2);
            reply.row(format!("k{number}"), move |most| {
                let text = crate::quoting::head(&text, most);
                (json!({ "text": text }), crate::quoting::quoted(text, most))
            });
        }
        reply
    }

    #[test]
    fn an_answer_keeps_its_limit_in_both_forms() {
        for limit in [1_000, 5_000, 20_000] {
            for (rows, len) in [(0, 0), (1, 50), (1, 100_000), (300, 10), (30, 900), (2_000, 1)] {
                let drawn = reply(rows, len).draw(limit);
                let (json, text) = (count(&drawn.structured.to_string()), count(&drawn.text));
                assert!(json <= limit && text <= limit, "{rows} of {len}: {json} and {text} of {limit}");
                let shown = drawn.structured["rows"].as_array().unwrap().len();
                assert_eq!(drawn.structured["truncated"] == true, shown < rows, "{drawn:?}");
                assert_eq!(drawn.text.contains("Ask for fewer."), shown < rows);
                assert!(shown > 0 || rows == 0);
            }
        }
    }

    #[test]
    fn rows_that_are_not_shown_are_named() {
        let drawn = reply(30, 900).draw(3_000);
        assert!(drawn.text.contains("more rows are not shown: [k"), "{}", drawn.text);
    }
}
