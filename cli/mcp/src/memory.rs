//! The database behind the tools, and one call of a tool on it.

use crate::arguments::{Arguments, nearest};
use crate::consent::Consent;
use crate::problem::{Problem, read_only};
use crate::quoting;
use holotype::answer::{Output, Table};
use holotype::embed::HashingEmbedder;
use holotype::quarantine::{Detector as _, InstructionDetector};
use holotype::query::{ParamValue, Params};
use holotype::{Error, Holotype, Item, Limits, RecallBuilder, Snapshot, Source};

/// Keys that are compared with one that does not exist.
const COMPARED: usize = 2_000;

/// The database that a server serves, and its rules.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) database: Holotype,
    pub(crate) read_only: bool,
    /// Makes the vectors of texts where the space is the built-in one and the database has no other embedder.
    pub(crate) built_in: Option<HashingEmbedder>,
    /// The most characters of an answer.
    pub(crate) answer_limit: usize,
    /// The episode of what is recorded without one.
    pub(crate) episode: String,
    pub(crate) consent: Consent,
}

/// One call of a tool.
pub(crate) struct Call<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) arguments: Arguments,
    /// Stops the statements of the call.
    pub(crate) limits: Limits,
    /// The answer of a person who was asked, or that he can be asked.
    pub(crate) asked: Asked,
}

/// The consent of a person to what cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The client cannot ask a person.
    Cannot,
    /// The client can ask a person, and has not yet.
    NotYet,
    /// The person agreed to what this token stands for.
    Agreed(String),
    /// The person did not agree.
    Declined,
}

impl Memory {
    /// Fails on a server that only reads.
    pub(crate) fn check_writable(&self) -> Result<(), Problem> {
        if self.read_only { Err(read_only()) } else { Ok(()) }
    }

    /// The vector of a text, where the database does not make it itself.
    pub(crate) fn vector(&self, text: &str) -> Option<Vec<f32>> {
        self.built_in.as_ref()?.embed(text)
    }

    /// The recall of a question with its vector, if it has one.
    pub(crate) fn recall<'s>(&self, snapshot: &'s Snapshot, question: &str) -> RecallBuilder<'s> {
        let recall = snapshot.recall(question);
        match self.vector(question) {
            Some(vector) => recall.near(vector),
            None => recall,
        }
    }

    /// The newest state.
    pub(crate) fn snapshot(&self, limits: &Limits) -> Result<Snapshot, Problem> {
        if self.read_only {
            self.database.refresh()?;
        }
        Ok(self.database.snapshot().with_limits(limits))
    }
}

impl Call<'_> {
    /// The newest state, with the limits of the call.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Problem> {
        self.memory.snapshot(&self.limits)
    }

    /// Runs one statement and gives its table.
    pub(crate) fn table(&self, statement: &str, params: &[(&str, &str)]) -> Result<Table, Problem> {
        if self.memory.read_only {
            self.memory.database.refresh()?;
        }
        let params: Params =
            params.iter().map(|(name, value)| ((*name).to_owned(), ParamValue::Text((*value).to_owned()))).collect();
        let outputs = self.memory.database.query_within(statement, &params, &self.limits)?;
        match outputs.into_iter().next() {
            Some(Output::Table(table)) => Ok(table),
            _ => Ok(Table::default()),
        }
    }
}

/// The item with that key.
pub(crate) fn item(snapshot: &Snapshot, key: &str) -> Result<Item, Problem> {
    match snapshot.item_named(key) {
        Ok(id) => Ok(snapshot.item(id)?),
        Err(Error::Missing { .. }) => Err(missing(snapshot, key)),
        Err(error) => Err(error.into()),
    }
}

/// There is no such key; the nearest one is named.
fn missing(snapshot: &Snapshot, key: &str) -> Problem {
    let first: String = key.chars().take(1).collect();
    let mut keys = snapshot.keys(&first, COMPARED).unwrap_or_default();
    keys.extend(snapshot.keys("", COMPARED).unwrap_or_default());
    let next = match nearest(key, keys.iter().map(String::as_str)) {
        Some(key) => format!("did you mean {}?", quoting::quoted(key, 200)),
        None => "use a key that recall, get or query showed".to_owned(),
    };
    Problem::new(format!("there is no item {}", quoting::quoted(key, 200)), next)
}

/// The reason why a text is quarantined.
pub(crate) fn quarantine(text: &str, source: Option<Source>) -> Option<String> {
    InstructionDetector.instructs(text, source)
}
