//! `--map`: which column of a table is the text, the speaker, the time.

use crate::{Format, ImportError};

/// The members of an item that a column may be.
const TARGETS: [(&str, &[&str]); 9] = [
    ("text", &["text", "content", "message", "body"]),
    ("speaker", &["speaker", "role", "author", "sender", "from", "name"]),
    ("time", &["time", "timestamp", "created_at", "date", "ts"]),
    ("key", &["key", "id", "uuid", "message_id"]),
    ("episode", &["episode", "conversation_id", "session_id", "thread_id", "conversation", "session", "channel"]),
    ("kind", &["kind"]),
    ("tool", &["tool", "tool_name"]),
    ("status", &["status"]),
    ("vector", &["vector", "embedding"]),
];

/// Columns by the members that they are. A member without a column is looked for under its usual names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnMap {
    pairs: Vec<(String, String)>,
}

impl ColumnMap {
    /// Parses `text=content,speaker=role`.
    ///
    /// # Errors
    /// [`ImportError::Option`].
    pub fn parse(text: &str) -> Result<ColumnMap, ImportError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let wrong = |message: String| ImportError::Option(format!("--map: {message}"));
            let (target, column) =
                pair.split_once('=').ok_or_else(|| wrong(format!("got '{pair}', expected MEMBER=COLUMN")))?;
            let (target, column) = (target.trim(), column.trim());
            if target != "order" && !TARGETS.iter().any(|(name, _)| *name == target) {
                let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
                return Err(wrong(format!("got the member '{target}', expected one of: {}", names.join(", "))));
            }
            if pairs.iter().any(|(given, _)| given == target) {
                return Err(wrong(format!("got '{target}' twice, expected it once")));
            }
            pairs.push((target.to_owned(), column.to_owned()));
        }
        Ok(ColumnMap { pairs })
    }

    /// The column that was given for a member.
    pub(crate) fn given(&self, target: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, _)| given == target).map(|(_, column)| column.as_str())
    }

    /// Refuses columns for a format without columns.
    pub(crate) fn check_format(&self, format: Format) -> Result<(), ImportError> {
        let applies = match format {
            Format::Csv | Format::Parquet => self.given("order").is_none(),
            Format::Whatsapp => self.pairs.iter().all(|(target, _)| target == "order"),
            _ => self.pairs.is_empty(),
        };
        if applies {
            return Ok(());
        }
        let message = "columns are those of csv and parquet, `order=dmy` or `order=mdy` is of whatsapp";
        Err(ImportError::Option(format!("--map does not apply to {format}: {message}")))
    }

    /// The place of the column of each member, in the order of [`TARGETS`].
    ///
    /// # Errors
    /// A column that was given and does not exist.
    pub(crate) fn places(&self, columns: &[String]) -> Result<Columns, String> {
        let named = |name: &str| columns.iter().position(|column| column.trim().eq_ignore_ascii_case(name));
        let mut places = [None; TARGETS.len()];
        for (place, (target, usual)) in places.iter_mut().zip(TARGETS) {
            *place = match self.given(target) {
                Some(column) => Some(named(column).ok_or_else(|| {
                    format!("got the columns {}, expected '{column}' for {target}", columns.join(", "))
                })?),
                None => usual.iter().find_map(|name| named(name)),
            };
        }
        // A column is one member.
        for at in 1..places.len() {
            if places[..at].contains(&places[at]) && places[at].is_some() && self.given(TARGETS[at].0).is_none() {
                places[at] = None;
            }
        }
        let [text, speaker, time, key, episode, kind, tool, status, vector] = places;
        Ok(Columns { text, speaker, time, key, episode, kind, tool, status, vector })
    }
}

/// The places of columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) text: Option<usize>,
    pub(crate) speaker: Option<usize>,
    pub(crate) time: Option<usize>,
    pub(crate) key: Option<usize>,
    pub(crate) episode: Option<usize>,
    pub(crate) kind: Option<usize>,
    pub(crate) tool: Option<usize>,
    pub(crate) status: Option<usize>,
    pub(crate) vector: Option<usize>,
}

impl Columns {
    /// True if a column is one of these members.
    pub(crate) fn holds(&self, at: usize) -> bool {
        let Columns { text, speaker, time, key, episode, kind, tool, status, vector } = *self;
        [text, speaker, time, key, episode, kind, tool, status, vector].contains(&Some(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_given_or_found() {
        let columns = ["id", "content", "role", "price"].map(str::to_owned);
        let places = ColumnMap::default().places(&columns).unwrap();
        assert_eq!((places.text, places.speaker, places.key, places.time), (Some(1), Some(2), Some(0), None));
        let places = ColumnMap::parse("text=price, key=content").unwrap().places(&columns).unwrap();
        assert_eq!((places.text, places.key), (Some(3), Some(1)));
        assert!(ColumnMap::parse("text=nothing").unwrap().places(&columns).unwrap_err().contains("'nothing'"));
    }

    #[test]
    fn a_wrong_map_says_what_was_expected() {
        for (text, part) in [("text", "MEMBER=COLUMN"), ("wrong=a", "expected one of: text"), ("key=a,key=b", "twice")]
        {
            let message = ColumnMap::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        assert!(ColumnMap::parse("text=a").unwrap().check_format(Format::Slack).is_err());
    }
}
