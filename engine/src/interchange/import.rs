//! Import: lines into a database, transaction by transaction.
//!
//! Lines up to the next `commit` line are one transaction. Until the first `commit` line, a transaction also ends after
//! [`LINES_PER_TRANSACTION`] lines. In an export, which begins with a header and has `commit` lines, it ends early only
//! at half the limit of a transaction. The remaining lines at the end of the file are the last transaction. If a
//! `commit` line shows that a transaction ended early, the report says so ([`ImportReport::split`]).
//!
//! An import can be run again. A line that the database already contains is counted as `known` and skipped; a line with
//! an existing key and other content is an error. The comparison includes the log ([`past`]): an imported line stays
//! known after a later line changed its subject.
//!
//! Invariants:
//! 1. A bad line stops the import with its place; earlier transactions stay, and its own transaction is not written.
//! 2. With `skip_bad` a bad line is reported and skipped, and so is any line that refers to something that it would
//!    have created.
//! 3. Importing a file twice adds nothing the second time, also when the first time was cut short.
//! 4. A `page` line closes its page; the engine closes a page that reached its limit if the next line is not its `page`
//!    line.

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
use crate::model::embed::Embedder;
use crate::options::Durability;
use crate::write::transaction::Transaction;
use crate::{Error, ItemId, Result};
use fault::{Failure, Fault};
use past::Past;
use statements::ClaimsOfItems;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

/// The number of lines of a transaction in a file without `commit` lines.
pub const LINES_PER_TRANSACTION: u64 = 1000;

/// Options of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The durability of each transaction before the next one begins.
    pub durability: Durability,
    /// Report bad lines and continue, instead of stopping at the first one.
    pub skip_bad: bool,
    /// Embeds the text of every item without a vector, if the database's space is this embedder's or is not defined
    /// yet. Without it, the embedder of the database's options does.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// The counts of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Transactions that were committed.
    pub transactions: u64,
    /// The number of those that hold the lines before the first `commit` line, if those became more than one; else 0.
    pub split: u64,
    /// Lines with new content.
    pub added: u64,
    /// Lines that the database already contained.
    pub known: u64,
    /// Lines that were skipped, each with its error.
    pub skipped: u64,
    /// Items whose text was embedded.
    pub embedded: u64,
    /// The errors of skipped lines, in order.
    pub errors: Vec<Error>,
}

/// Imports the lines of a file. Errors call it `name`; its `row` members refer to `vectors`.
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

/// A running import.
struct Import<'i> {
    database: &'i Holotype,
    vectors: Option<&'i NpyReader>,
    options: &'i ImportOptions,
    transaction: Option<Transaction<'i>>,
    past: Past,
    claims: ClaimsOfItems,
    /// Episodes whose open page reached its limit, by number.
    due: BTreeSet<u32>,
    /// Recalls and themes without a text that no `redact` line has explained yet, with their keys.
    wordless: BTreeMap<ItemId, String>,
    /// The names that skipped lines would have created, with their line numbers.
    missing: HashMap<String, u64>,
    lines: u64,
    has_header: bool,
    has_commits: bool,
    report: ImportReport,
}

/// The outcome of a line.
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
            claims: ClaimsOfItems::default(),
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
                let is_first = !std::mem::replace(&mut self.has_commits, true);
                let split = is_first && self.report.transactions > 0;
                self.commit()?;
                if split {
                    self.report.split = self.report.transactions;
                }
                return Ok(());
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

    /// The current transaction, which is begun if there is none.
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

    /// True if the transaction must end here, since no `commit` line ends it.
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

    /// Refuses a line that refers to something that a skipped line would have created.
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
        // The writes of the line may have been undone, so that numbers are given again.
        self.claims = ClaimsOfItems::default();
        self.report.skipped += 1;
        self.report.errors.push(error);
        if let Some(made) = made {
            self.missing.insert(made, number);
        }
    }
}

/// A name, quoted for a message.
fn quoted(name: &str) -> String {
    format!("'{name}'")
}

/// The key of the item or page that a line creates. Pages and items have separate keys, but members of lines refer to
/// one or the other, so one set of names serves both.
fn made_by(line: &Line) -> Option<String> {
    line.key().map(str::to_owned)
}

/// Every key that a line refers to, with the path of its member.
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
