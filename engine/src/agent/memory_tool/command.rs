//! The commands, as models give them.

use serde_json::Value;

/// The name of the tool.
pub(super) const TOOL: &str = "memory";
const NAMES: &str = "view, create, str_replace, insert, delete, rename";

/// A command of the memory tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Shows a directory, or lines of a file.
    View {
        /// The directory or file.
        path: String,
        /// The first and the last line, from 1; -1 as the last for the end.
        range: Option<(i64, i64)>,
    },
    /// Makes a file.
    Create {
        /// The file.
        path: String,
        /// Its content.
        text: String,
    },
    /// Replaces a text that is once in a file.
    StrReplace {
        /// The file.
        path: String,
        /// The text.
        old: String,
        /// The one in its place.
        new: String,
    },
    /// Inserts a text behind a line.
    Insert {
        /// The file.
        path: String,
        /// The line, 0 for the beginning.
        line: i64,
        /// The text.
        text: String,
    },
    /// Deletes a file, or a directory with what is in it.
    Delete {
        /// The file or directory.
        path: String,
    },
    /// Moves a file or directory.
    Rename {
        /// The file or directory.
        from: String,
        /// Its new path.
        to: String,
    },
}

impl Command {
    /// The command of a tool call's input.
    ///
    /// # Errors
    /// A text that says what is wrong, for the model.
    pub fn from_json(input: &Value) -> Result<Command, String> {
        let name = input.get("command").and_then(Value::as_str).unwrap_or_default();
        let text = |member: &str| match input.get(member) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(format!("Error: `{member}` of {name} must be a string")),
            None => Err(format!("Error: {name} needs `{member}`")),
        };
        Ok(match name {
            "view" => Command::View { path: text("path")?, range: range(input.get("view_range"))? },
            "create" => Command::Create { path: text("path")?, text: text("file_text")? },
            "str_replace" => {
                // Without a new text, the old one is taken out.
                let new = if input.get("new_str").is_some() { text("new_str")? } else { String::new() };
                Command::StrReplace { path: text("path")?, old: text("old_str")?, new }
            }
            "insert" => {
                let line = input.get("insert_line").and_then(Value::as_i64);
                let line = line.ok_or("Error: insert needs `insert_line`, a whole number")?;
                Command::Insert { path: text("path")?, line, text: text("insert_text")? }
            }
            "delete" => Command::Delete { path: text("path")? },
            "rename" => Command::Rename { from: text("old_path")?, to: text("new_path")? },
            "" => return Err(format!("Error: the call has no `command`; expected one of: {NAMES}")),
            other => return Err(format!("Error: unknown command {other:?}; expected one of: {NAMES}")),
        })
    }

    /// The command in a line.
    pub(super) fn summary(&self) -> String {
        match self {
            Command::View { path, .. } => format!("view {path}"),
            Command::Create { path, .. } => format!("create {path}"),
            Command::StrReplace { path, .. } => format!("str_replace {path}"),
            Command::Insert { path, line, .. } => format!("insert {path} {line}"),
            Command::Delete { path } => format!("delete {path}"),
            Command::Rename { from, to } => format!("rename {from} {to}"),
        }
    }

    /// The things that it was given, by name.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Command::View { path, .. } | Command::Delete { path } => vec![("path", path.clone())],
            Command::Create { path, text } => vec![("path", path.clone()), ("file_text", text.clone())],
            Command::StrReplace { path, old, new } => {
                vec![("path", path.clone()), ("old_str", old.clone()), ("new_str", new.clone())]
            }
            Command::Insert { path, line, text } => {
                vec![("path", path.clone()), ("insert_line", line.to_string()), ("insert_text", text.clone())]
            }
            Command::Rename { from, to } => vec![("old_path", from.clone()), ("new_path", to.clone())],
        }
    }
}

/// The lines of `view_range`.
fn range(given: Option<&Value>) -> Result<Option<(i64, i64)>, String> {
    let wrong = || "Error: `view_range` must be two whole numbers, [first, last]".to_owned();
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(lines)) => match lines[..] {
            [ref first, ref last] => Ok(first.as_i64().zip(last.as_i64()).ok_or_else(wrong).map(Some)?),
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    }
}
