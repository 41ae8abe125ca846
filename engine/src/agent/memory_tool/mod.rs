//! The file-like memory tool of agents (`memory_20250818`): `view`, `create`, `str_replace`, `insert`, `delete` and
//! `rename` below `/memories`, over items with history instead of files.
//!
//! ```text
//! /memories/trip/notes.md   a fact whose key is the path and whose text is the content
//!                           ↑ derived from
//! a call of the tool `memory`, for each change, with what the agent gave as fields
//! ```
//!
//! 1. Nothing is lost: an edit supersedes the fact, `delete` retires it; `as of`, `history` and the calls have the
//!    rest.
//! 2. A directory is there as long as a file is in it; `/memories` always is.
//! 3. A path leads below `/memories` and nowhere else (`path`).
//! 4. The texts of answers are those that the tool's documentation publishes, for models know them.
//! 5. An answer that refuses has changed nothing.

mod command;
mod listing;
mod path;

pub use command::Command;

use crate::core::handle::Holotype;
use crate::model::item::{ItemId, Status};
use crate::model::pointer::Pointer;
use crate::options::Durability;
use crate::read::snapshot::Snapshot;
use crate::write::draft::{NewRecall, NewTrace};
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use path::ROOT;
use serde_json::Value;

/// The most lines of a file that is shown.
const MOST_LINES: usize = 999_999;
/// Lines around an edit that are shown.
const AROUND: usize = 4;
/// The most files that are looked at in one call.
const MOST_FILES: usize = 100_000;

/// The answer of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The text for the model.
    pub text: String,
    /// True if the command was refused, and nothing changed.
    pub is_error: bool,
}

/// The memory tool of one database.
///
/// ```
/// use holotype::memory_tool::MemoryTool;
/// use holotype::{Holotype, Options};
/// use serde_json::json;
///
/// # let dir = tempfile::tempdir().unwrap();
/// let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
/// let tool = MemoryTool::new(database.clone(), "session-7");
/// let file = "/memories/preferences.txt";
/// tool.call(&json!({"command": "create", "path": file, "file_text": "Favorite color: blue\n"}))?;
/// let edited = tool.call(&json!({"command": "str_replace", "path": file, "old_str": "blue", "new_str": "green"}))?;
/// assert!(edited.text.starts_with("The memory file has been edited."));
/// let seen = tool.call(&json!({"command": "view", "path": file}))?;
/// assert_eq!(seen.text, format!("Here's the content of {file} with line numbers:\n     1\tFavorite color: green"));
/// let refused = tool.call(&json!({"command": "view", "path": "/memories/../etc/passwd"}))?;
/// assert!(refused.is_error);
/// // It is an item like any other, and rests on the calls that made it.
/// assert_eq!(database.snapshot().get(file)?.unwrap().content.text(), "Favorite color: green\n");
/// # Ok::<(), holotype::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemoryTool {
    database: Holotype,
    episode: String,
}

/// The reason why a command is refused, or an error of the database.
enum Refusal {
    Said(String),
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Failed(error)
    }
}

type Outcome = std::result::Result<String, Refusal>;

fn refuse<T>(said: impl Into<String>) -> std::result::Result<T, Refusal> {
    Err(Refusal::Said(said.into()))
}

impl MemoryTool {
    /// The memory tool of a database; its calls are recorded in this episode.
    pub fn new(database: Holotype, episode: impl Into<String>) -> MemoryTool {
        MemoryTool { database, episode: episode.into() }
    }

    /// Runs the input of a call of the tool, as a model gives it. A wrong one is refused with a text that says so.
    ///
    /// # Errors
    /// Those of the database, which are no fault of the model.
    pub fn call(&self, input: &Value) -> Result<ToolAnswer> {
        match Command::from_json(input) {
            Ok(command) => self.run(&command),
            Err(text) => Ok(ToolAnswer { text, is_error: true }),
        }
    }

    /// Runs a command.
    ///
    /// # Errors
    /// As [`MemoryTool::call`].
    pub fn run(&self, command: &Command) -> Result<ToolAnswer> {
        let outcome = match command {
            Command::View { path, range } => self.view(path, *range),
            command => self.change(command),
        };
        match outcome {
            Ok(text) => Ok(ToolAnswer { text, is_error: false }),
            Err(Refusal::Said(text)) => Ok(ToolAnswer { text, is_error: true }),
            Err(Refusal::Failed(error)) => Err(error),
        }
    }

    fn view(&self, path: &str, range: Option<(i64, i64)>) -> Outcome {
        let path = path::checked(path).map_err(Refusal::Said)?;
        let snapshot = self.database.snapshot();
        if let Some((_, text)) = file(&snapshot, &path)? {
            return numbered(&path, &text, range);
        }
        let files = files_below(&snapshot, &path)?;
        if files.is_empty() && path != ROOT {
            return refuse(format!("The path {path} does not exist. Please provide a valid path."));
        }
        Ok(listing::listing(&path, &files))
    }

    fn change(&self, command: &Command) -> Outcome {
        let mut transaction = self.database.begin()?;
        let said = Change { transaction: &mut transaction, episode: &self.episode, command }.run()?;
        transaction.commit(Durability::Sync)?;
        Ok(said)
    }
}

/// A command that changes something, in its transaction.
struct Change<'c, 't> {
    transaction: &'c mut Transaction<'t>,
    episode: &'c str,
    command: &'c Command,
}

impl Change<'_, '_> {
    fn run(&mut self) -> Outcome {
        match self.command {
            Command::View { .. } => Ok(String::new()),
            Command::Create { path, text } => self.create(path, text),
            Command::StrReplace { path, old, new } => self.replace(path, old, new),
            Command::Insert { path, line, text } => self.insert(path, *line, text),
            Command::Delete { path } => self.delete(path),
            Command::Rename { from, to } => self.rename(from, to),
        }
    }

    fn create(&mut self, path: &str, text: &str) -> Outcome {
        let path = path::checked(path).map_err(Refusal::Said)?;
        self.check_free(&path, || format!("Error: File {path} already exists"))?;
        let evidence = self.record("file_text", text)?;
        let recall = self.fact(text, evidence)?;
        let item = self.transaction.remember(recall)?;
        // The path may have been that of another file before.
        self.transaction.rename(item, &path)?;
        Ok(format!("File created successfully at: {path}"))
    }

    fn replace(&mut self, path: &str, old: &str, new: &str) -> Outcome {
        let path = path::checked(path).map_err(Refusal::Said)?;
        let missing = format!("Error: The path {path} does not exist. Please provide a valid path.");
        let text = self.text(&path, missing)?;
        if old.is_empty() {
            return refuse("No replacement was performed, old_str is empty: give the text to replace.");
        }
        let found: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let at = match found[..] {
            [] => {
                return refuse(format!(
                    "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
                ));
            }
            [at] => at,
            _ => {
                let lines: Vec<String> = found.iter().map(|at| line_of(*at).to_string()).collect();
                return refuse(format!(
                    "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {}. Please ensure \
                     it is unique",
                    lines.join(", ")
                ));
            }
        };
        let edited = [&text[..at], new, &text[at + old.len()..]].concat();
        self.write(&path, &edited, "new_str", new)?;
        let (first, lines) = (line_of(at), edited.lines().collect::<Vec<_>>());
        let start = first.saturating_sub(AROUND + 1).min(lines.len());
        let end = (first + new.matches('\n').count() + AROUND).min(lines.len());
        let shown = listing::lines(&lines[start..end.max(start)], start + 1);
        Ok(format!(
            "The memory file has been edited. Here's the snippet showing the change (with line numbers):\n{shown}"
        ))
    }

    fn insert(&mut self, path: &str, line: i64, given: &str) -> Outcome {
        let path = path::checked(path).map_err(Refusal::Said)?;
        let text = self.text(&path, format!("Error: The path {path} does not exist"))?;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let Some(at) = usize::try_from(line).ok().filter(|at| *at <= lines.len()) else {
            return refuse(format!(
                "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: \
                 [0, {}]",
                lines.len()
            ));
        };
        let (before, after) = (lines[..at].concat(), lines[at..].concat());
        let gap = |part: &str| if part.is_empty() || part.ends_with('\n') { "" } else { "\n" };
        let end = if after.is_empty() { "" } else { gap(given) };
        let edited = [&before, gap(&before), given, end, &after].concat();
        self.write(&path, &edited, "insert_text", given)?;
        Ok(format!("The file {path} has been edited."))
    }

    fn delete(&mut self, path: &str) -> Outcome {
        let path = path::checked(path).map_err(Refusal::Said)?;
        if path == ROOT {
            return refuse(format!("Error: {ROOT} itself cannot be deleted; delete what is in it"));
        }
        let files = self.at_or_below(&path)?;
        if files.is_empty() {
            return refuse(format!("Error: The path {path} does not exist"));
        }
        self.record("path", &path)?;
        for (item, _) in files {
            self.transaction.retire_with_key(item, format!("the memory tool deleted {path}"))?;
        }
        Ok(format!("Successfully deleted {path}"))
    }

    fn rename(&mut self, from: &str, to: &str) -> Outcome {
        let (from, to) = (path::checked(from).map_err(Refusal::Said)?, path::checked(to).map_err(Refusal::Said)?);
        if from == ROOT {
            return refuse(format!("Error: {ROOT} itself cannot be renamed"));
        }
        let files = self.at_or_below(&from)?;
        if files.is_empty() {
            return refuse(format!("Error: The path {from} does not exist"));
        }
        if to.strip_prefix(&from).is_some_and(|rest| rest.starts_with('/')) {
            return refuse(format!("Error: {from} cannot be renamed to {to}, which is inside of it"));
        }
        self.check_free(&to, || format!("Error: The destination {to} already exists"))?;
        let mut renamed = Vec::with_capacity(files.len());
        for (item, file) in files {
            let file = path::checked(&format!("{to}{}", &file[from.len()..])).map_err(Refusal::Said)?;
            renamed.push((item, file));
        }
        self.record("new_path", &to)?;
        for (item, file) in renamed {
            self.transaction.rename(item, &file)?;
        }
        Ok(format!("Successfully renamed {from} to {to}"))
    }

    /// Refuses a path where something is, or that leads through a file.
    fn check_free(&mut self, path: &str, taken: impl Fn() -> String) -> std::result::Result<(), Refusal> {
        if path == ROOT || !self.at_or_below(path)?.is_empty() {
            return refuse(taken());
        }
        let snapshot = self.transaction.snapshot()?;
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > ROOT.len()) {
            if file(&snapshot, &path[..at])?.is_some() {
                return refuse(format!("Error: {} is a file, and no directory that {path} could be in", &path[..at]));
            }
        }
        // The key may be that of an item which this tool retired by other means, or never made.
        if snapshot.get(path)?.is_some_and(|item| item.key == path) {
            return refuse(format!("Error: the key {path} belongs to an item that is no file; choose another path"));
        }
        Ok(())
    }

    fn text(&mut self, path: &str, missing: String) -> Outcome {
        match file(&self.transaction.snapshot()?, path)? {
            Some((_, text)) => Ok(text),
            None => refuse(missing),
        }
    }

    /// The file of that path, or those in the directory.
    fn at_or_below(&mut self, path: &str) -> Result<Vec<(ItemId, String)>> {
        let snapshot = self.transaction.snapshot()?;
        if let Some((item, _)) = file(&snapshot, path)? {
            return Ok(vec![(item, path.to_owned())]);
        }
        Ok(files_below(&snapshot, path)?.into_iter().map(|found| (found.item, found.path)).collect())
    }

    /// Supersedes the fact of a file.
    fn write(&mut self, path: &str, text: &str, field: &str, given: &str) -> Result<()> {
        let evidence = self.record(field, given)?;
        let recall = self.fact(text, evidence)?;
        self.transaction.update(path, recall).map(drop)
    }

    /// Records the call, with what was given in a field, and points there.
    fn record(&mut self, field: &str, given: &str) -> Result<Pointer> {
        let mut trace = NewTrace::call(self.episode, command::TOOL, self.command.summary()).status(Status::Success);
        for (name, value) in self.command.fields() {
            trace = trace.field(name, value.as_str());
        }
        let id = self.transaction.record(trace)?;
        // An empty text is no evidence of anything; the call itself is.
        let pointer = Pointer::to_item(id);
        Ok(if given.is_empty() { pointer } else { pointer.field(field) })
    }

    fn fact(&mut self, text: &str, evidence: Pointer) -> Result<NewRecall> {
        let fact = NewRecall::fact(text).from(evidence);
        Ok(match self.transaction.text_vector(text)? {
            Some(vector) => fact.vector(vector),
            None => fact,
        })
    }
}

/// The active fact of a path, with its text.
fn file(snapshot: &Snapshot, path: &str) -> Result<Option<(ItemId, String)>> {
    if path == ROOT {
        return Ok(None);
    }
    let Some(item) = snapshot.get(path)? else { return Ok(None) };
    // A key that an item had before still leads to it.
    let is_file = item.key == path && item.attributes.active && item.attributes.kind == crate::Kind::Fact;
    Ok(is_file.then(|| (item.id, item.content.text().to_owned())))
}

/// The files below a directory, in the order of their paths.
fn files_below(snapshot: &Snapshot, path: &str) -> Result<Vec<listing::Found>> {
    let keys = snapshot.keys(&format!("{path}/"), MOST_FILES)?;
    let mut found = Vec::new();
    for key in keys {
        if path::checked(&key).as_deref() != Ok(key.as_str()) {
            continue;
        }
        if let Some((item, text)) = file(snapshot, &key)? {
            found.push(listing::Found { item, path: key, len: text.len() as u64 });
        }
    }
    Ok(found)
}

/// A file with numbers before its lines.
fn numbered(path: &str, text: &str, range: Option<(i64, i64)>) -> Outcome {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > MOST_LINES {
        return refuse(format!("File {path} exceeds maximum line limit of 999,999 lines."));
    }
    let (mut start, mut end) = (0, lines.len());
    if let Some((first, last)) = range {
        let whole = i64::try_from(lines.len()).unwrap_or(i64::MAX);
        let last = if last == -1 { whole } else { last.min(whole) };
        if first < 1 || first > whole.max(1) || last < first.min(whole) {
            return refuse(format!(
                "Error: Invalid `view_range` parameter: [{first}, {last}]. It should be within the range of lines of \
                 the file: [1, {whole}]"
            ));
        }
        start = usize::try_from(first - 1).unwrap_or(0).min(lines.len());
        end = usize::try_from(last).unwrap_or(lines.len());
    }
    let shown = listing::lines(&lines[start..end], start + 1);
    Ok(format!("Here's the content of {path} with line numbers:\n{shown}"))
}
