//! Rows of a recall as cells, so that they read like those of any other statement.

use crate::Result;
use crate::model::item::{Source, Status};
use crate::read::answer::{Answer, Citation, ROW_COLUMNS, Role, Row, Table};
use crate::read::cell::{Cell, round};
use crate::read::typed::FromCells;

impl Row {
    /// The cell of a column of [`ROW_COLUMNS`]; `None` where it is absent. Lists of what an item has several of are
    /// lists of texts; a citation is written as [`Citation::cite`] prints it, or else as what it cites.
    pub fn cell(&self, column: &str) -> Option<Cell> {
        let text = |text: &str| Some(Cell::text(text));
        let number = |number: f32| Some(Cell::Number(round(f64::from(number))));
        let texts = |texts: &[String]| Some(Cell::List(texts.iter().map(Cell::text).collect()));
        match column {
            "item" => Some(Cell::Integer(i64::from(self.item.0))),
            "key" => text(&self.key),
            "layer" => text(self.layer.as_str()),
            "kind" => text(self.kind.as_str()),
            "text" => text(&self.text),
            "score" => number(self.score),
            "similarity" => number(self.parts.similarity),
            "words" => number(self.parts.words),
            "recency" => number(self.parts.recency),
            "status_score" => number(self.parts.status),
            "source_score" => number(self.parts.source),
            "utility_score" => number(self.parts.utility),
            "conflict_score" => number(self.parts.conflict),
            "status" => self.status.map(Status::as_str).and_then(text),
            "source" => self.source.map(Source::as_str).and_then(text),
            "speaker" => self.speaker.as_deref().and_then(text),
            "tool" => self.tool.as_deref().and_then(text),
            "episode" => self.episode.as_deref().and_then(text),
            "step" => self.step.map(Cell::count),
            "time" => self.time.map(Cell::Time),
            "version" => self.version.as_deref().and_then(text),
            "stale" => Some(Cell::Bool(self.stale)),
            "quarantined" => self.quarantined.as_deref().and_then(text),
            "conflict" => self.conflict.map(|item| Cell::Integer(i64::from(item.0))),
            "support" => text(self.support.as_str()),
            "trust" => number(self.trust),
            "relaxed" => Some(Cell::List(self.relaxed.iter().map(|flaw| Cell::text(*flaw)).collect())),
            "path" => texts(&self.path),
            "folded" => texts(&self.folded),
            "tokens" => Some(Cell::Integer(i64::from(self.tokens))),
            "citations" => Some(Cell::List(self.citations.iter().map(written).collect())),
            "role" => text(if self.role == Role::Hit { "hit" } else { "evidence" }),
            _ => None,
        }
    }
}

/// A citation as a text.
fn written(citation: &Citation) -> Cell {
    Cell::Text(citation.cite().unwrap_or_else(|| citation.target.clone()))
}

impl Answer {
    /// The rows as a table of the columns that `return` named, or of [`ROW_COLUMNS`].
    pub fn table(&self) -> Table {
        let columns = match &self.returns {
            Some(returns) => returns.clone(),
            None => ROW_COLUMNS.iter().map(|name| (*name).to_owned()).collect(),
        };
        let rows = self.rows.iter().map(|row| columns.iter().map(|column| row.cell(column)).collect()).collect();
        Table { verb: "recall", columns, rows, notes: self.notes.clone(), failed: false }
    }

    /// The rows as typed values, in the order of `return`.
    ///
    /// # Errors
    /// As [`Table::typed`].
    pub fn typed<T: FromCells>(&self) -> Result<Vec<T>> {
        self.table().typed()
    }
}
