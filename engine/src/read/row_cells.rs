//! Rows of a recall as cells, so that they read like those of any other statement.

use crate::Result;
use crate::model::item::{Source, Status};
use crate::read::answer::{Answer, Citation, Line, ROW_COLUMNS, Role, Row, Table};
use crate::read::cell::{Cell, round};
use crate::read::typed::FromCells;
use holotype_query::AttributeId;

impl Row {
    /// The cell of a column of [`ROW_COLUMNS`]; `None` where it is absent. Lists of what an item has several of are
    /// lists of texts; a citation is written as [`Citation::cite`] prints it, or else as what it cites.
    ///
    /// `fields` is all fields of the item, `fields.price` one of them, and `labels` its labels.
    pub fn cell(&self, column: &str) -> Option<Cell> {
        match column.strip_prefix("fields.") {
            Some(path) => Cell::of_json(&self.field(path)?),
            None => self.attribute(AttributeId::named(column)?),
        }
    }

    /// The cell of a column.
    fn attribute(&self, column: AttributeId) -> Option<Cell> {
        let text = |text: &str| Some(Cell::text(text));
        let number = |number: f32| Some(Cell::Number(round(f64::from(number))));
        let texts = |texts: &[String]| Some(Cell::List(texts.iter().map(Cell::text).collect()));
        match column {
            AttributeId::Item => Some(Cell::Integer(i64::from(self.item.0))),
            AttributeId::Key => text(&self.key),
            AttributeId::Layer => text(self.layer.as_str()),
            AttributeId::Kind => text(self.kind.as_str()),
            AttributeId::Text => text(&self.text),
            AttributeId::Score => number(self.score),
            AttributeId::Similarity => number(self.parts.similarity),
            AttributeId::Words => number(self.parts.words),
            AttributeId::Recency => number(self.parts.recency),
            AttributeId::StatusScore => number(self.parts.status),
            AttributeId::SourceScore => number(self.parts.source),
            AttributeId::UtilityScore => number(self.parts.utility),
            AttributeId::ConflictScore => number(self.parts.conflict),
            AttributeId::Status => self.status.map(Status::as_str).and_then(text),
            AttributeId::Source => self.source.map(Source::as_str).and_then(text),
            AttributeId::Speaker => self.speaker.as_deref().and_then(text),
            AttributeId::Tool => self.tool.as_deref().and_then(text),
            AttributeId::Episode => self.episode.as_deref().and_then(text),
            AttributeId::Step => self.step.map(Cell::count),
            AttributeId::Time => self.time.map(Cell::Time),
            AttributeId::Version => self.version.as_deref().and_then(text),
            AttributeId::Stale => Some(Cell::Bool(self.stale)),
            AttributeId::Quarantined => self.quarantined.as_deref().and_then(text),
            AttributeId::Conflict => self.conflict.map(|item| Cell::Integer(i64::from(item.0))),
            AttributeId::Support => text(self.support.as_str()),
            AttributeId::Trust => number(self.trust),
            AttributeId::Relaxed => Some(Cell::List(self.relaxed.iter().map(|flaw| Cell::text(*flaw)).collect())),
            AttributeId::Path => texts(&self.path),
            AttributeId::Folded => texts(&self.folded),
            AttributeId::Lines => {
                let line = |line: &Line| Cell::Text(format!("{}: {}", line.label, line.text));
                Some(Cell::List(self.lines.iter().map(line).collect()))
            }
            AttributeId::More => Some(Cell::count(self.more)),
            AttributeId::Tokens => Some(Cell::Integer(i64::from(self.tokens))),
            AttributeId::Citations => Some(Cell::List(self.citations.iter().map(written).collect())),
            AttributeId::Fields => Some(Cell::Json(self.fields.to_json())),
            AttributeId::Labels => Some(self.labels()).filter(|it| !it.is_empty()).and_then(|labels| texts(&labels)),
            AttributeId::Role => text(if self.role == Role::Hit { "hit" } else { "evidence" }),
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
        let cells = |row: &Row| columns.iter().map(|name| row.cell(name)).collect();
        let rows = self.rows.iter().map(cells).collect();
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
