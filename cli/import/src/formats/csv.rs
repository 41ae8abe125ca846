//! `csv`: a table with a header, with commas, semicolons or tabs.

use super::names;
use super::table::Table;
use crate::files::Files;
use crate::intake::Intake;
use crate::{Format, ImportError};
use csv::{ByteRecord, ReaderBuilder, Trim};
use std::io::BufRead;
use std::path::PathBuf;

/// The longest row, in bytes.
const MAX_ROW_LEN: u64 = 24 << 20;

pub(crate) fn read(files: &Files, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    for name in names(Format::Csv, files)? {
        let shown = files.shown(name);
        intake.in_file(&shown);
        let mut input = files.open_text(name)?;
        let failed = |source| ImportError::File { path: PathBuf::from(&shown), source };
        let delimiter = delimiter(input.fill_buf().map_err(failed)?);
        let mut builder = ReaderBuilder::new();
        let mut rows = builder.delimiter(delimiter).flexible(true).trim(Trim::Headers).from_reader(Bounded::new(input));
        let header = match rows.headers() {
            Ok(header) => header.iter().map(str::to_owned).collect::<Vec<String>>(),
            Err(error) => return Err(intake.error(format!("got a header that is no text ({error}), expected UTF-8"))),
        };
        if header.is_empty() {
            continue;
        }
        let stem = match files.is_collection() {
            true => name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned(),
            false => files.stem(),
        };
        intake.at(1, 0)?;
        let width = header.len();
        let mut table = Table::new(Format::Csv, &stem, header, intake)?;
        let mut row = ByteRecord::new();
        loop {
            match rows.read_byte_record(&mut row) {
                Ok(false) => break,
                Ok(true) => {}
                Err(error) => {
                    let message = format!("got {error}, expected a row of a table");
                    match error.into_kind() {
                        csv::ErrorKind::Io(source) => return Err(failed(source)),
                        _ => intake.bad(message),
                    }
                    continue;
                }
            }
            rows.get_mut().begin();
            let line = row.position().map_or(0, csv::Position::line);
            intake.at(line, row.as_slice().len() + width)?;
            let cells: Result<Vec<String>, _> = row.iter().map(|cell| String::from_utf8(cell.to_vec())).collect();
            match cells {
                Ok(cells) if cells.len() == width => table.row(intake, &cells, None)?,
                Ok(cells) => {
                    intake.count_read();
                    intake.bad(format!("got {} cells, expected {width}", cells.len()));
                }
                Err(_) => {
                    intake.count_read();
                    intake.bad("got bytes that are no text, expected UTF-8 or UTF-16");
                }
            }
        }
    }
    Ok(())
}

/// The sign between the cells of the header.
fn delimiter(head: &[u8]) -> u8 {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |sign: u8| line.iter().filter(|byte| **byte == sign).count();
    let signs = [b',', b';', b'\t'];
    signs.into_iter().max_by_key(|sign| (count(*sign), *sign == b',')).unwrap_or(b',')
}

/// Input that fails when a row, such as one behind a quote that never ends, is too long.
struct Bounded {
    input: Box<dyn BufRead>,
    left: u64,
}

impl Bounded {
    fn new(input: Box<dyn BufRead>) -> Bounded {
        Bounded { input, left: MAX_ROW_LEN }
    }

    fn begin(&mut self) {
        self.left = MAX_ROW_LEN;
    }
}

impl std::io::Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.input.read(buffer)?;
        match self.left.checked_sub(len as u64) {
            Some(left) => self.left = left,
            None => {
                let message = format!("a row is longer than {} MiB: a quote may not be closed", MAX_ROW_LEN >> 20);
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
            }
        }
        Ok(len)
    }
}
