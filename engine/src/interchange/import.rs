//! Import: lines into a database, transaction by transaction.
//!
//! Lines up to the next `commit` line are one transaction. While no `commit` line was seen, a transaction also ends
//! after [`LINES_PER_TRANSACTION`] lines; of an export, which begins with a header and states its transactions, only
//! when it has grown to half of what a transaction may hold. What is left at the end of the file is the last one.
//!
//! An import can be run again. A line that says what the database holds already is counted `known` and skipped; a line
//! that gives a key another content than it has is an error. *Holds* is meant of the log ([`past`]): a line that was
//! imported once stays known when a later one changed what it says.
//!
//! Invariants:
//! 1. A bad line stops the import with its place; the transactions before it stand, and nothing of its own does.
//! 2. With `skip_bad` a bad line is reported and nothing of it is written; neither is any line that names what it would
//!    have made.
//! 3. Importing a file twice adds nothing the second time, also when the first time was cut short.
//! 4. A page is closed as its `page` line says; the engine closes one that reached its limit when the next line is
//!    none of its `page` lines.

mod fault;
mod items;
mod pages;
mod past;
mod same;
mod statements;

use super::line::Line;
use super::npy::NpyReader;
use super::reader::LineReader;
use crate::core::handle::Holotype;
use crate::model::embed::HashingEmbedder;
use crate::options::Durability;
use crate::write::transaction::Transaction;
use crate::{Error, ItemId, Result};
use fault::{Failure, Fault};
use past::Past;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::path::PathBuf;

/// How many lines a transaction has in a file without `commit` lines.
pub const LINES_PER_TRANSACTION: u64 = 1000;

/// How a file is imported.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// How durable each transaction is before the next one begins.
    pub durability: Durability,
    /// Report bad lines and go on, instead of stopping at the first one.
    pub skip_bad: bool,
    /// Embeds the text of every item that has no vector, when the database's space is this embedder's or it has none
    /// yet.
    pub embedder: Option<HashingEmbedder>,
}

/// What an import did.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Transactions that were committed.
    pub transactions: u64,
    /// Lines that said something new.
    pub added: u64,
    /// Lines that the database held already.
    pub known: u64,
    /// Lines that were skipped, each with its error.
    pub skipped: u64,
    /// Items whose text was embedded.
    pub embedded: u64,
    /// Why lines were skipped, in their order.
    pub errors: Vec<Error>,
}

/// Imports the lines of a file; `name` is what errors call it, `vectors` what its rows point into.
///
/// `progress` is called after each line with the bytes read so far.
///
/// # Errors
/// [`Error::Line`] for the first bad line, unless bad lines are skipped; errors of the database and of reading.
pub fn import(
    database: &Holotype,
    name: &str,
    lines: impl BufRead,
    vectors: Option<&NpyReader>,
    options: &ImportOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<ImportReport> {
    let mut reader = LineReader::new(lines);
    let mut import = Import::new(database, vectors, options);
    let unreadable = |source| Error::File { path: PathBuf::from(name), source };
    while let Some((number, parsed)) = reader.read().map_err(unreadable)? {
        let outcome = match &parsed {
            Ok(line) => import.line(line),
            Err(error) => Err(Failure::from(error)),
        };
        match outcome {
            Ok(()) => {}
            Err(Failure::Fatal(error)) => return Err(error),
            Err(Failure::Line(fault)) => {
                let error = fault.locate(name, number, &reader);
                if !options.skip_bad {
                    return Err(error);
                }
                let made = parsed.as_ref().ok().and_then(made_by).or_else(|| fault::key_in(reader.text()));
                import.skip(made, number, error);
            }
        }
        progress(reader.bytes_read());
    }
    import.commit()?;
    Ok(import.report)
}

/// An import under way.
struct Import<'i> {
    database: &'i Holotype,
    vectors: Option<&'i NpyReader>,
    options: &'i ImportOptions,
    transaction: Option<Transaction<'i>>,
    past: Past,
    /// Episodes whose open page reached its limit, by number.
    due: BTreeSet<u32>,
    /// Recalls and themes without a text that no `redact` line has explained yet, with their keys.
    wordless: BTreeMap<ItemId, String>,
    /// What skipped lines would have made, with the lines.
    missing: HashMap<String, u64>,
    lines: u64,
    has_header: bool,
    has_commits: bool,
    report: ImportReport,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Added,
    Known,
}

impl Outcome {
    fn added_if(added: bool) -> Outcome {
        if added { Outcome::Added } else { Outcome::Known }
    }
}

impl<'i> Import<'i> {
    fn new(database: &'i Holotype, vectors: Option<&'i NpyReader>, options: &'i ImportOptions) -> Self {
        Import {
            database,
            vectors,
            options,
            transaction: None,
            past: Past::new(database),
            due: BTreeSet::new(),
            wordless: BTreeMap::new(),
            missing: HashMap::new(),
            lines: 0,
            has_header: false,
            has_commits: false,
            report: ImportReport::default(),
        }
    }

    fn line(&mut self, line: &Line) -> Result<(), Failure> {
        self.check_missing(line)?;
        match line {
            Line::Page(_) => {}
            _ => self.close_due_pages()?,
        }
        let outcome = match line {
            Line::Header(_) => {
                self.has_header = true;
                return Ok(());
            }
            Line::Commit(_) => {
                self.has_commits = true;
                return Ok(self.commit()?);
            }
            Line::Space(space) => self.space(space)?,
            Line::Setting(setting) => self.setting(setting)?,
            Line::Episode(episode) => self.episode(episode)?,
            Line::Trace(trace) => self.trace(trace)?,
            Line::Recall(recall) => self.recall(recall)?,
            Line::Theme(theme) => self.theme(theme)?,
            Line::Page(page) => self.page(page)?,
            Line::Link(link) => self.link(link)?,
            Line::Unlink(link) => self.unlink(link)?,
            Line::Claim(claim) => self.claim(claim)?,
            Line::Mark(mark) => self.mark(mark)?,
            Line::Deactivate(deactivate) => self.deactivate(deactivate)?,
            Line::Redact(redact) => self.redact(redact)?,
            Line::Credit(_) | Line::Receipt(_) | Line::Event(_) => {
                let message = format!("`{}` lines are understood but not imported yet by this version", line.name());
                return Err(Fault::new(&[line.name()], "not-yet", message).into());
            }
        };
        match outcome {
            Outcome::Added => self.report.added += 1,
            Outcome::Known => self.report.known += 1,
        }
        if let Some(made) = made_by(line) {
            self.missing.remove(&made);
        }
        self.lines += 1;
        if self.is_full() {
            self.commit()?;
        }
        Ok(())
    }

    /// The transaction under way, begun now if there is none.
    fn transaction(&mut self) -> Result<&mut Transaction<'i>> {
        let transaction = match self.transaction.take() {
            Some(transaction) => transaction,
            None => {
                let mut transaction = self.database.begin()?;
                transaction.accept_generated_keys();
                transaction
            }
        };
        Ok(self.transaction.insert(transaction))
    }

    /// True if the transaction must end here because no `commit` line says where.
    fn is_full(&self) -> bool {
        if self.has_commits {
            return false;
        }
        let half = self.database.core.options.max_transaction_bytes / 2;
        let len = self.transaction.as_ref().map_or(0, Transaction::byte_len);
        len >= half || (!self.has_header && self.lines >= LINES_PER_TRANSACTION)
    }

    fn commit(&mut self) -> Result<()> {
        self.close_due_pages()?;
        if let Some((_, key)) = self.wordless.pop_first() {
            self.wordless.clear();
            return Err(Error::Invalid(format!(
                "{} has no text, and no `redact` line of its transaction says that it was forgotten",
                quoted(&key)
            )));
        }
        self.lines = 0;
        if let Some(transaction) = self.transaction.take().filter(|transaction| !transaction.is_empty()) {
            transaction.commit(self.options.durability)?;
            self.report.transactions += 1;
        }
        Ok(())
    }

    /// Refuses a line that names what a skipped line would have made.
    fn check_missing(&self, line: &Line) -> Result<(), Failure> {
        if self.missing.is_empty() {
            return Ok(());
        }
        for (path, named) in names_in(line) {
            if let Some(number) = self.missing.get(&named) {
                let mut fault = Fault::new(
                    &[],
                    "depends-on-skipped",
                    format!("{} depends on line {number}, which was skipped", quoted(&named)),
                );
                fault.path = path;
                return Err(fault.into());
            }
        }
        Ok(())
    }

    fn skip(&mut self, made: Option<String>, number: u64, error: Error) {
        self.report.skipped += 1;
        self.report.errors.push(error);
        if let Some(made) = made {
            self.missing.insert(made, number);
        }
    }
}

/// Something named, for a message.
fn quoted(name: &str) -> String {
    format!("'{name}'")
}

/// The key of the item or page that a line makes. Pages and items do not share keys, but a line names one or the other
/// in its own place, so one set of names serves both.
fn made_by(line: &Line) -> Option<String> {
    line.key().map(str::to_owned)
}

/// Every key that a line names, with where.
fn names_in(line: &Line) -> Vec<(Vec<String>, String)> {
    let mut names = Vec::new();
    let mut name = |path: &[&str], key: &str| {
        names.push((path.iter().map(|step| (*step).to_owned()).collect(), key.to_owned()));
    };
    let kind = line.name();
    match line {
        Line::Page(page) => {
            name(&[kind, "first"], &page.first);
            name(&[kind, "last"], &page.last);
        }
        Line::Recall(recall) => {
            for (position, pointer) in recall.from.iter().enumerate() {
                name(&[kind, "from", &position.to_string()], pointer.target());
            }
        }
        Line::Theme(theme) => {
            for (position, child) in theme.children.iter().enumerate() {
                name(&[kind, "children", &position.to_string()], child);
            }
        }
        Line::Link(link) | Line::Unlink(link) => {
            name(&[kind, "from"], &link.from);
            name(&[kind, "to"], link.to.target());
        }
        Line::Claim(claim) => {
            name(&[kind, "key"], &claim.key);
            for (position, pointer) in claim.from.iter().enumerate() {
                name(&[kind, "from", &position.to_string()], pointer.target());
            }
        }
        Line::Mark(mark) => name(&[kind, "key"], &mark.key),
        Line::Redact(redact) => name(&[kind, "key"], &redact.key),
        Line::Deactivate(deactivate) => {
            name(&[kind, "key"], &deactivate.key);
            if let Some(by) = &deactivate.by {
                name(&[kind, "by"], by);
            }
        }
        _ => {}
    }
    names
}
