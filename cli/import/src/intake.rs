//! The calls of readers of formats: one place that counts, filters by time, and reports.

use crate::entry::{Fact, Trace};
use crate::files::Files;
use crate::json::{self, Stop};
use crate::text::{self, Lines};
use crate::time::{self, TimeFault};
use crate::writer::{Entry, Writer};
use crate::{ImportError, Options};
use holotype::Holotype;
use jiff::civil::DateTime;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

/// Problems that are kept; the others are counted.
const MOST_PROBLEMS: usize = 100;

/// Something in a file that was not imported as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The thing that was got, and the one that was expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { file, line, message } = self;
        write!(f, "{file}:{line}: {message}")
    }
}

/// The counts of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines, messages, rows and notes that were read.
    pub read: u64,
    /// Items that were written; with a dry run, those that would have been.
    pub written: u64,
    /// Those of them that are new versions of known ones.
    pub versions: u64,
    /// Items that the database has already.
    pub known: u64,
    /// Things that were read and hold no memory, are older than asked for, or are wrong.
    pub skipped: u64,
    /// Things of an unknown type.
    pub unknown: u64,
    /// Facts whose words were found in a trace, which they cite.
    pub verified: u64,
    /// The unknown types, with their numbers.
    pub unknown_types: BTreeMap<String, u64>,
    /// The first hundred problems.
    pub problems: Vec<Problem>,
    /// All problems.
    pub problem_count: u64,
}

impl Report {
    /// Adds the counts of another import.
    pub fn add(&mut self, other: Report) {
        self.read += other.read;
        self.written += other.written;
        self.versions += other.versions;
        self.known += other.known;
        self.skipped += other.skipped;
        self.unknown += other.unknown;
        self.verified += other.verified;
        for (name, count) in other.unknown_types {
            *self.unknown_types.entry(name).or_default() += count;
        }
        let room = MOST_PROBLEMS.saturating_sub(self.problems.len());
        self.problems.extend(other.problems.into_iter().take(room));
        self.problem_count += other.problem_count;
    }

    pub(crate) fn add_problem(&mut self, file: &str, line: u64, message: String) {
        self.problem_count += 1;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(Problem { file: file.to_owned(), line, message });
        }
    }
}

/// Takes in what a reader finds.
pub(crate) struct Intake<'i> {
    options: &'i Options,
    writer: Writer<'i>,
    report: Report,
    progress: &'i mut dyn FnMut(u64) -> bool,
    bytes: u64,
    file: Rc<str>,
    line: u64,
}

impl<'i> Intake<'i> {
    pub(crate) fn new(
        database: &'i Holotype,
        options: &'i Options,
        progress: &'i mut dyn FnMut(u64) -> bool,
    ) -> Intake<'i> {
        Intake { writer: Writer::new(Some(database), options), ..Intake::without_database(options, progress) }
    }

    /// An intake that drops everything.
    pub(crate) fn without_database(options: &'i Options, progress: &'i mut dyn FnMut(u64) -> bool) -> Intake<'i> {
        let writer = Writer::new(None, options);
        Intake { options, writer, report: Report::default(), progress, bytes: 0, file: Rc::from(""), line: 0 }
    }

    pub(crate) fn options(&self) -> &'i Options {
        self.options
    }

    /// Sets the place of what follows; `len` bytes were read since the last place.
    pub(crate) fn at(&mut self, line: u64, len: usize) -> Result<(), ImportError> {
        self.line = line;
        self.bytes += len as u64;
        if (self.progress)(self.bytes) { Ok(()) } else { Err(ImportError::Interrupted) }
    }

    pub(crate) fn in_file(&mut self, shown: &str) {
        self.file = Rc::from(shown);
        self.line = 0;
    }

    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Counts one line, message, row or note.
    pub(crate) fn count_read(&mut self) {
        self.report.read += 1;
    }

    /// Counts something that holds no memory.
    pub(crate) fn ignore(&mut self) {
        self.report.skipped += 1;
    }

    /// Counts something of a type that no reader knows.
    pub(crate) fn unknown(&mut self, name: &str) {
        self.report.unknown += 1;
        let name = text::shown(name, 60);
        // Types come from the file, and so does their number.
        if self.report.unknown_types.len() < MOST_PROBLEMS || self.report.unknown_types.contains_key(&name) {
            *self.report.unknown_types.entry(name).or_default() += 1;
        }
    }

    /// Reports something that is wrong, and left out.
    pub(crate) fn bad(&mut self, message: impl Into<String>) {
        self.report.skipped += 1;
        self.warn(message);
    }

    /// Reports something that is wrong.
    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        let file = Rc::clone(&self.file);
        self.report.add_problem(&file, self.line, message.into());
    }

    /// The error of the present place, which ends the import.
    pub(crate) fn error(&self, message: impl Into<String>) -> ImportError {
        ImportError::Input { file: self.file.to_string(), line: self.line, message: message.into() }
    }

    // ---- times ----

    /// The time that a value states. One that is no time is reported and none.
    pub(crate) fn time(&mut self, value: &Value) -> Result<Option<i64>, ImportError> {
        let parsed = time::from_json(value, self.options.zone.as_ref());
        self.checked_time(parsed)
    }

    /// The time that a text states.
    pub(crate) fn time_of_text(&mut self, text: &str) -> Result<Option<i64>, ImportError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let parsed = time::from_text(text, self.options.zone.as_ref()).map(Some);
        self.checked_time(parsed)
    }

    /// The time that a clock shows in the zone of the options.
    pub(crate) fn time_of_clock(&mut self, clock: DateTime, shown: &str) -> Result<Option<i64>, ImportError> {
        let parsed = match &self.options.zone {
            Some(zone) => time::at_zone(clock, zone, shown).map(Some),
            None => Err(TimeFault::NoZone(shown.to_owned())),
        };
        self.checked_time(parsed)
    }

    fn checked_time(&mut self, parsed: Result<Option<i64>, TimeFault>) -> Result<Option<i64>, ImportError> {
        match parsed {
            Ok(time) => Ok(time),
            Err(fault @ TimeFault::NoZone(_)) => Err(self.error(fault.to_string())),
            Err(fault) => {
                self.warn(fault.to_string());
                Ok(None)
            }
        }
    }

    // ---- items ----

    pub(crate) fn episode(&mut self, id: &str, task: Option<&str>, version: Option<&str>) -> Result<(), ImportError> {
        let owned = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        self.push(Entry::Episode { id: id.to_owned(), task: owned(task), version: owned(version) })
    }

    pub(crate) fn trace(&mut self, trace: Trace) -> Result<(), ImportError> {
        if self.is_early(trace.time) {
            return Ok(());
        }
        self.push(Entry::Trace(Box::new(trace)))
    }

    pub(crate) fn fact(&mut self, fact: Fact) -> Result<(), ImportError> {
        if self.is_early(fact.time) {
            return Ok(());
        }
        if fact.text.trim().is_empty() {
            self.ignore();
            return Ok(());
        }
        self.push(Entry::Fact(Box::new(fact)))
    }

    fn is_early(&mut self, time: Option<i64>) -> bool {
        let is_early = time.zip(self.options.since).is_some_and(|(time, since)| time < since);
        self.report.skipped += u64::from(is_early);
        is_early
    }

    fn push(&mut self, entry: Entry) -> Result<(), ImportError> {
        let file = Rc::clone(&self.file);
        self.writer.push(entry, (file, self.line), &mut self.report)
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<Report, ImportError> {
        self.writer.flush(&mut self.report)?;
        Ok(self.report)
    }

    // ---- files ----

    /// Takes the JSON values of a file, each with its text. A value that is no JSON is reported.
    pub(crate) fn values(
        &mut self,
        files: &Files,
        name: &str,
        wanted: &[&str],
        take: &mut dyn FnMut(&mut Intake<'i>, Value, &str) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.in_file(&files.shown(name));
        let input = files.open_text(name)?;
        let ended = json::values(input, wanted, &mut |line, value| self.value(line, value, take));
        self.ended(files, name, ended)
    }

    /// Takes the lines of a file, each a JSON value.
    pub(crate) fn json_lines(
        &mut self,
        files: &Files,
        name: &str,
        take: &mut dyn FnMut(&mut Intake<'i>, Value, &str) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.in_file(&files.shown(name));
        let input = files.open_text(name)?;
        let ended = json::lines(input, &mut |line, value| self.value(line, value, take));
        self.ended(files, name, ended)
    }

    fn value(
        &mut self,
        line: u64,
        value: Result<&str, String>,
        take: &mut dyn FnMut(&mut Intake<'i>, Value, &str) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.at(line, value.as_ref().map_or(0, |text| text.len() + 1))?;
        let text = match value {
            Ok(text) => text,
            Err(fault) => {
                self.count_read();
                self.bad(fault);
                return Ok(());
            }
        };
        match serde_json::from_str(text) {
            Ok(value) => take(self, value, text),
            Err(error) => {
                self.count_read();
                let cut = if error.is_eof() { ", which ends too early" } else { "" };
                self.bad(format!("got '{}'{cut}, expected JSON", text::shown(text, 40)));
                Ok(())
            }
        }
    }

    fn ended(&mut self, files: &Files, name: &str, ended: Result<(), Stop<ImportError>>) -> Result<(), ImportError> {
        match ended {
            Ok(()) => Ok(()),
            Err(Stop::Taker(error)) => Err(error),
            Err(Stop::Io(source)) => Err(ImportError::File { path: PathBuf::from(files.shown(name)), source }),
            Err(Stop::Broken { line, message }) => {
                self.line = line;
                self.bad(message);
                Ok(())
            }
        }
    }

    /// Takes the lines of a text file.
    pub(crate) fn text_lines(
        &mut self,
        files: &Files,
        name: &str,
        take: &mut dyn FnMut(&mut Intake<'i>, &str) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.in_file(&files.shown(name));
        let failed = |source| ImportError::File { path: PathBuf::from(files.shown(name)), source };
        let mut lines = Lines::new(files.open_text(name)?);
        while let Some((line, text)) = lines.read().map_err(failed)? {
            match text {
                Ok(text) => {
                    self.at(line, text.len() + 1)?;
                    take(self, text)?;
                }
                Err(fault) => {
                    self.at(line, 0)?;
                    self.count_read();
                    self.bad(fault);
                }
            }
        }
        Ok(())
    }
}
