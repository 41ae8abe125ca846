//! `parquet`: a table of columns, row by row.

use super::names;
use super::table::Table;
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::fs::File;
use std::path::PathBuf;

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Parquet, files)? {
        let shown = files.shown(name);
        intake.in_file(&shown);
        intake.at(1, 0)?;
        let path =
            files.on_disk(name).ok_or_else(|| intake.error("got no file of its own, expected the path of one"))?;
        let file = File::open(&path).map_err(|source| ImportError::File { path: PathBuf::from(&shown), source })?;
        let wrong = |error: parquet::errors::ParquetError| format!("got {error}, expected a Parquet file");
        let reader = SerializedFileReader::new(file).map_err(|error| intake.error(wrong(error)))?;
        let fields = reader.metadata().file_metadata().schema_descr().root_schema().get_fields();
        let columns: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
        let stem = match files.is_collection() {
            true => name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned(),
            false => files.stem(),
        };
        let mut table = Table::new(Format::Parquet, &stem, columns, intake)?;
        let rows = reader.get_row_iter(None).map_err(|error| intake.error(wrong(error)))?;
        for (number, row) in rows.enumerate() {
            let row = row.map_err(|error| intake.error(wrong(error)))?;
            intake.at(number as u64 + 1, 64)?;
            let vector = table.vector_column().and_then(|at| vector(&row, at));
            let cells: Vec<String> = row.get_column_iter().map(|(_, field)| cell(field)).collect();
            table.row(intake, &cells, vector)?;
        }
    }
    Ok(())
}

fn cell(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        Field::TimestampMillis(time) => holotype::time::format(time.saturating_mul(1_000)),
        Field::TimestampMicros(time) => holotype::time::format(*time),
        other => other.to_string(),
    }
}

/// The vector of a column of lists.
fn vector(row: &Row, at: usize) -> Option<Vec<f32>> {
    let (_, field) = row.get_column_iter().nth(at)?;
    let Field::ListInternal(list) = field else { return None };
    let number = |field: &Field| match field {
        Field::Float(number) => Some(*number),
        Field::Double(number) => Some(*number as f32),
        Field::Float16(number) => Some(number.to_f32()),
        _ => None,
    };
    list.elements().iter().map(number).collect()
}
