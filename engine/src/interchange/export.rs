//! Export: the present state, or the log, as lines.
//!
//! The present state is written in log order: an item, episode, page or link is at the place of its creation, with its
//! present attributes. A later change is part of that line; it has its own line, at its place, only if it adds more:
//!
//! - an episode's later versions, because traces inherit the version of their time, and its closing;
//! - a mark with a reason, the utility of a trace and the status of a theme, which are not members of their lines;
//! - a deactivation, unless a `supersedes` link before it implies it;
//! - a setting of `page.tokens`, because it determines how pages were cut;
//! - a pointer to a page that was closed later, and every pointer of a theme: a `cites` link;
//! - the removal of the last pointer of a recall: it is written with the pointers it had, and an `unlink` for each.
//!
//! Keys are the present ones, so an item that was superseded under its key has a generated one (`~12.3`). Pointers have
//! byte offsets and hash. A `commit` line ends each transaction that has lines; it has no number and no time, which a
//! copy cannot have.
//!
//! Invariants:
//! 1. The same state gives the same bytes, and an export that is imported into an empty database and exported again
//!    gives the same bytes, lines and vectors.
//! 2. A line refers only to things that an earlier line created.

mod history;
mod items;
mod last_changes;
mod present;

pub use history::export_history;
pub use present::export;

use super::line::{Header, Line, VectorRef};
use super::npy::{NpyError, NpyWriter, Precision};
use super::writer::{LineWriter, WriteError};
use crate::model::pointer::NO_HASH;
use crate::model::pointer::hex;
use crate::model::space::Space;
use crate::records::record::{PointerRecord, PointerTarget, UncitedRecord};
use crate::{Encoding, Error, Result, Snapshot};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The counts of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Lines, including the header.
    pub lines: u64,
    /// Vectors, in the lines or in the file of vectors.
    pub vectors: u64,
}

/// The destination of lines and vectors.
struct Output<W: Write> {
    lines: LineWriter<W>,
    space: Option<Space>,
    rows: Option<NpyWriter>,
    vectors: u64,
}

impl<W: Write> Output<W> {
    /// Begins with the header. Without an embedding space there are no vectors and no file of them.
    fn begin(snapshot: &Snapshot, out: W, vectors: Option<&Path>) -> Result<Self> {
        let space = snapshot.space()?;
        let rows = match (&space, vectors) {
            (Some(space), Some(path)) => {
                let precision = if space.encoding == Encoding::F16 { Precision::F16 } else { Precision::F32 };
                Some(NpyWriter::create(path, space.dim, precision).map_err(npy_failed)?)
            }
            _ => None,
        };
        let mut output = Output { lines: LineWriter::new(out), space, rows, vectors: 0 };
        output.write(&Line::Header(Header { interchange: Header::VERSION }))?;
        Ok(output)
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        self.lines.write(line).map_err(write_failed)
    }

    /// Writes a vector, given as its stored bytes, and returns its reference.
    fn vector(&mut self, bytes: Option<&[u8]>) -> Result<Option<VectorRef>> {
        let (Some(bytes), Some(space)) = (bytes, &self.space) else { return Ok(None) };
        let numbers = space.decode(bytes)?;
        self.vectors += 1;
        Ok(Some(match &mut self.rows {
            // Converting half precision to single and back is exact.
            Some(rows) => VectorRef::Row(rows.push(&numbers).map_err(npy_failed)?),
            None => VectorRef::Inline(numbers),
        }))
    }

    fn finish(self) -> Result<ExportReport> {
        let lines = self.lines.count();
        self.lines.finish().map_err(write_failed)?;
        if let Some(rows) = self.rows {
            rows.finish().map_err(npy_failed)?;
        }
        Ok(ExportReport { lines, vectors: self.vectors })
    }
}

fn write_failed(error: WriteError) -> Error {
    match error {
        WriteError::Io(source) => Error::File { path: PathBuf::from("the export"), source },
        error => Error::Invalid(format!("the export cannot be written: {error}")),
    }
}

fn npy_failed(error: NpyError) -> Error {
    match error {
        NpyError::Io { file, source } => Error::File { path: file, source },
        error => Error::Invalid(error.to_string()),
    }
}

/// The keys of the items that lines named so far, by number.
#[derive(Default)]
struct Keys {
    items: Vec<String>,
    pages: Vec<String>,
}

impl Keys {
    fn item(&self, number: u32) -> Result<&str> {
        let key = usize::try_from(number).ok().and_then(|number| self.items.get(number));
        key.map(String::as_str)
            .ok_or_else(|| Error::Corrupt { what: format!("the log names item #{number} before it makes it") })
    }

    fn page(&self, number: u32) -> Result<&str> {
        let key = usize::try_from(number).ok().and_then(|number| self.pages.get(number));
        key.map(String::as_str)
            .ok_or_else(|| Error::Corrupt { what: format!("the log names page {number} before it closes it") })
    }

    /// True if a page was closed by now.
    fn has_page(&self, number: u32) -> bool {
        usize::try_from(number).is_ok_and(|number| number < self.pages.len())
    }

    fn pointer(&self, pointer: &PointerRecord) -> Result<super::line::Pointer> {
        let hash = (pointer.hash != NO_HASH).then(|| hex(&pointer.hash));
        Ok(match pointer.target {
            PointerTarget::Page(number) => super::line::Pointer::Page { page: self.page(number)?.to_owned(), hash },
            PointerTarget::Item(number) => {
                let unit = super::line::Unit::Bytes;
                super::line::Pointer::Field {
                    key: self.item(number)?.to_owned(),
                    field: pointer.field.clone(),
                    span: Some(super::line::Span { start: pointer.start, end: pointer.end, unit }),
                    hash,
                }
            }
        })
    }

    /// A pointer that was removed, without its hash.
    fn uncited(&self, gone: &UncitedRecord) -> Result<super::line::Pointer> {
        let UncitedRecord { target, field, start, end } = gone.clone();
        self.pointer(&PointerRecord { target, field, start, end, hash: NO_HASH })
    }

    fn pointers<'p>(&self, pointers: impl IntoIterator<Item = &'p PointerRecord>) -> Result<Vec<super::line::Pointer>> {
        pointers.into_iter().map(|pointer| self.pointer(pointer)).collect()
    }
}
