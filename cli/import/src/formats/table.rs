//! Rows of a table, whatever its file: the columns that `--map` names, the others as fields.

use crate::entry::{Trace, key};
use crate::intake::Intake;
use crate::map::Columns;
use crate::{Format, ImportError};
use holotype::{Kind, Source, Status};
use serde_json::{Map, Value};

/// A table with its columns.
pub(crate) struct Table {
    format: Format,
    stem: String,
    names: Vec<String>,
    columns: Columns,
    rows: u64,
}

impl Table {
    /// A table of these columns.
    ///
    /// # Errors
    /// No column is the text, or a column of the map does not exist.
    pub(crate) fn new(
        format: Format,
        stem: &str,
        names: Vec<String>,
        intake: &Intake<'_>,
    ) -> Result<Table, ImportError> {
        let columns = intake.options().map.places(&names).map_err(|message| intake.error(message))?;
        if columns.text.is_none() {
            let message = format!("got the columns {}, expected one for the text: --map text=COLUMN", names.join(", "));
            return Err(intake.error(message));
        }
        Ok(Table { format, stem: stem.to_owned(), names, columns, rows: 0 })
    }

    /// Takes one row: a value for each column, and a vector if the table has one.
    pub(crate) fn row(
        &mut self,
        intake: &mut Intake<'_>,
        row: &[String],
        vector: Option<Vec<f32>>,
    ) -> Result<(), ImportError> {
        intake.count_read();
        self.rows += 1;
        let at = |place: Option<usize>| place.and_then(|at| row.get(at)).map_or("", |text| text.trim());
        let text = self.columns.text.and_then(|at| row.get(at)).map_or("", String::as_str);
        if text.trim().is_empty() {
            intake.ignore();
            return Ok(());
        }
        let own = match at(self.columns.key) {
            "" => key(&[self.format.as_str(), &self.stem, &self.rows.to_string()]),
            given => key(&[self.format.as_str(), &self.stem, given]),
        };
        let episode = match at(self.columns.episode) {
            "" => format!("{}/{}", self.format, self.stem),
            given => format!("{}/{}/{given}", self.format, self.stem),
        };
        let time = intake.time_of_text(at(self.columns.time))?;
        let (speaker, tool) = (at(self.columns.speaker), at(self.columns.tool));
        let mut trace = match at(self.columns.kind) {
            "" if !tool.is_empty() => Trace::new(Kind::Call, episode, own, text).source(Source::Tool),
            "" if speaker.is_empty() => Trace::new(Kind::Observation, episode, own, text),
            "" | "turn" => Trace::turn(episode, own, speaker, text),
            "call" => Trace::new(Kind::Call, episode, own, text).source(Source::Tool),
            "observation" => Trace::new(Kind::Observation, episode, own, text),
            other => {
                intake.bad(format!("got the kind '{other}', expected turn, call or observation"));
                return Ok(());
            }
        };
        if trace.kind == Kind::Call {
            trace.tool = Some(if tool.is_empty() { "unnamed" } else { tool }.to_owned());
        }
        if trace.speaker.is_none() && !speaker.is_empty() {
            trace.speaker = Some(speaker.to_owned());
        }
        trace.status = match at(self.columns.status) {
            "" => None,
            "ok" | "success" | "succeeded" | "true" => Some(Status::Success),
            "error" | "failed" | "failure" | "false" => Some(Status::Failed),
            _ => Some(Status::Unknown),
        };
        trace.time = time;
        trace.vector = match vector {
            Some(vector) => Some(vector),
            None => match vector_of(at(self.columns.vector)) {
                Ok(vector) => vector,
                Err(message) => {
                    intake.bad(message);
                    return Ok(());
                }
            },
        };
        for (at, name) in self.names.iter().enumerate().filter(|(at, _)| !self.columns.holds(*at)) {
            trace = trace.field(name.trim(), row.get(at).map_or("", String::as_str));
        }
        let cells = self.names.iter().zip(row).enumerate().filter(|(at, _)| Some(*at) != self.columns.vector);
        let raw: Map<String, Value> = cells.map(|(_, (name, value))| (name.clone(), value.as_str().into())).collect();
        intake.trace(trace.raw(Value::Object(raw).to_string()))
    }

    /// The place of the column of vectors.
    #[cfg(feature = "parquet")]
    pub(crate) fn vector_column(&self) -> Option<usize> {
        self.columns.vector
    }
}

/// The vector that a cell holds as a list of numbers.
fn vector_of(cell: &str) -> Result<Option<Vec<f32>>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    let numbers: Result<Vec<f32>, _> =
        cell.trim_matches(['[', ']']).split([',', ' ', ';']).filter(|part| !part.is_empty()).map(str::parse).collect();
    numbers.map(Some).map_err(|_| format!("got the vector '{}', expected numbers", crate::text::shown(cell, 40)))
}
