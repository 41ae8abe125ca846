//! The log before the import began, by which a line that changes something is recognised when it is imported again.
//!
//! Some lines change what an earlier line stated: a second `mark` of an item, another value of a setting, a removed
//! link.
//! Compared with the present state, the earlier line would look new when the file is imported again, and would undo the
//! later one. So a statement is compared with the logged statements about its subject, in order. The file has a
//! position in this history; a statement is known if it agrees with the statement at the position or a later one, to
//! which the position then advances. The first statement of a file that is not in the history ends the comparison for
//! its subject.
//!
//! Cost: one scan of the log, at the first line that neither repeats the present state nor refers to something new, and
//! memory for all statements that are not items.

use crate::core::handle::Holotype;
use crate::records::record::{
    Change, EpisodeRecord, FieldValue, ItemRecord, PointerRecord, PointerTarget, Record, UncitedRecord,
};
use crate::{Edge, Error, ItemId, Kind, Layer, Result, Status};
use std::collections::HashMap;

/// The subject of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Setting(String),
    Task(String),
    Version(String),
    Open(String),
    Status(ItemId),
    Utility(ItemId),
    Credit(ItemId),
    Active(ItemId),
    Edge(ItemId, u8, ItemId),
    /// A page that an item cites, by number.
    CitedPage(ItemId, u32),
}

/// A statement: complete in the log, perhaps partial in a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Statement {
    Value(String),
    Open(bool),
    Status {
        status: u8,
        because: Option<String>,
    },
    /// A utility or a credit, with what it is the mean of.
    Worth {
        mean: f32,
        count: u32,
        because: Option<String>,
    },
    /// `by` holds every item that a line's key may mean.
    Retired {
        by: Vec<ItemId>,
        because: Option<String>,
    },
    Linked(bool),
    /// A pointer along a `cites` edge, stated or removed.
    Cited {
        field: String,
        start: u64,
        end: u64,
        stated: bool,
    },
}

impl Statement {
    pub(super) fn cited(pointer: &PointerRecord) -> Statement {
        Statement::Cited { field: pointer.field.clone(), start: pointer.start, end: pointer.end, stated: true }
    }

    pub(super) fn uncited(pointer: &UncitedRecord) -> Statement {
        Statement::Cited { field: pointer.field.clone(), start: pointer.start, end: pointer.end, stated: false }
    }

    /// True if everything that a line states agrees with the log.
    fn agrees(&self, logged: &Statement) -> bool {
        fn part<T: PartialEq>(said: &Option<T>, logged: &Option<T>) -> bool {
            said.is_none() || said == logged
        }
        match (self, logged) {
            (
                Statement::Status { status, because },
                Statement::Status { status: logged_status, because: logged_because },
            ) => status == logged_status && part(because, logged_because),
            (
                Statement::Worth { mean, count, because },
                Statement::Worth { mean: logged_mean, count: logged_count, because: logged_because },
            ) => mean == logged_mean && count == logged_count && part(because, logged_because),
            (Statement::Retired { by, because }, Statement::Retired { by: logged_by, because: logged_because }) => {
                (by.is_empty() || logged_by.iter().any(|item| by.contains(item))) && part(because, logged_because)
            }
            (said, logged) => said == logged,
        }
    }
}

/// The logged statements about one subject, from the file's position on.
type History = Vec<Statement>;

#[derive(Debug, Default)]
struct LoggedHistory {
    histories: HashMap<Subject, History>,
    /// Items without a key, by [`unkeyed_hash`].
    unkeyed: HashMap<[u8; 32], Vec<ItemId>>,
}

/// The logged history of the database, read when it is first needed.
#[derive(Debug)]
pub(super) struct Past {
    /// The last transaction before the import.
    until: u64,
    logged: Option<LoggedHistory>,
    /// Statements that repeated the present before the past was read.
    noted: Vec<(Subject, Statement)>,
}

impl Past {
    pub(super) fn new(database: &Holotype) -> Past {
        Past { until: database.snapshot().commit(), logged: None, noted: Vec::new() }
    }

    /// Notes a statement that repeats the present state.
    pub(super) fn repeats(&mut self, subject: Subject, statement: Statement) {
        match &mut self.logged {
            Some(logged) => {
                logged.advance_to(&subject, &statement);
            }
            None => self.noted.push((subject, statement)),
        }
    }

    /// True if the log contained the statement before the import began, at or after the file's position.
    pub(super) fn holds(&mut self, database: &Holotype, subject: &Subject, statement: &Statement) -> Result<bool> {
        Ok(self.read(database)?.advance_to(subject, statement))
    }

    /// Notes that the import stated something new about a subject.
    pub(super) fn leave(&mut self, subject: &Subject) {
        if let Some(logged) = &mut self.logged {
            logged.histories.remove(subject);
        }
    }

    /// The items without a key that a line may describe, oldest first.
    pub(super) fn unkeyed(&mut self, database: &Holotype, kind: u8, text: &str) -> Result<Vec<ItemId>> {
        Ok(self.read(database)?.unkeyed.get(&unkeyed_hash(kind, text)).cloned().unwrap_or_default())
    }

    /// Notes that a line without a key describes this item, so that the next equal line describes another.
    pub(super) fn take_unkeyed(&mut self, kind: u8, text: &str, item: ItemId) {
        if let Some(items) = self.logged.as_mut().and_then(|logged| logged.unkeyed.get_mut(&unkeyed_hash(kind, text))) {
            items.retain(|other| *other != item);
        }
    }

    fn read(&mut self, database: &Holotype) -> Result<&mut LoggedHistory> {
        if self.logged.is_none() {
            let mut logged = LoggedHistory::read(database, self.until)?;
            for (subject, statement) in self.noted.drain(..) {
                logged.advance_to(&subject, &statement);
            }
            self.logged = Some(logged);
        }
        self.logged.as_mut().ok_or(Error::Cancelled("reading the past"))
    }
}

impl LoggedHistory {
    fn read(database: &Holotype, until: u64) -> Result<LoggedHistory> {
        let mut logged = LoggedHistory::default();
        let snapshot = database.snapshot();
        for transaction in crate::derive::retained_log::transactions(&database.core.log)? {
            let transaction = transaction?;
            if transaction.number.0 > until {
                break;
            }
            for record in &transaction.records {
                let Some(effective) = Record::effective(record)? else { continue };
                match effective.record {
                    Record::Item(item) => {
                        if item.key.as_ref().is_some_and(|key| key.starts_with('~')) {
                            let text = match item.field("text").map(|field| &field.value) {
                                Some(FieldValue::Chunks { .. }) => snapshot.content(item.item())?.text().to_owned(),
                                _ => item.text().to_owned(),
                            };
                            logged.unkeyed.entry(unkeyed_hash(item.kind, &text)).or_default().push(item.item());
                        }
                        logged.item(&item);
                    }
                    record => logged.record(record),
                }
            }
        }
        Ok(logged)
    }

    fn item(&mut self, item: &ItemRecord) {
        self.cited(item.item(), &item.from);
        let is_trace = Kind::from_byte(item.kind).is_some_and(|kind| kind.layer() == Layer::Trace);
        if let Some(status) = item.status.or(is_trace.then_some(Status::Unknown.to_byte())) {
            self.say(Subject::Status(item.item()), Statement::Status { status, because: None });
        }
        if let Some(utility) = item.utility {
            let statement = Statement::Worth { mean: utility, count: 1, because: None };
            self.say(Subject::Utility(item.item()), statement);
        }
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Setting(setting) => self.say(Subject::Setting(setting.name), Statement::Value(setting.value)),
            Record::Episode(EpisodeRecord { id, task, version, open, .. }) => {
                if let Some(task) = task {
                    self.say(Subject::Task(id.clone()), Statement::Value(task));
                }
                if let Some(version) = version {
                    self.say(Subject::Version(id.clone()), Statement::Value(version));
                }
                self.say(Subject::Open(id), Statement::Open(open));
            }
            Record::Mark(mark) => {
                let (item, because) = (ItemId(mark.item), mark.because);
                match mark.change {
                    Change::Status(status) => self.say(Subject::Status(item), Statement::Status { status, because }),
                    Change::Utility(mean, count) => {
                        self.say(Subject::Utility(item), Statement::Worth { mean, count, because });
                    }
                    Change::Credit(mean, count) => {
                        self.say(Subject::Credit(item), Statement::Worth { mean, count, because });
                    }
                    Change::Active(_) => {
                        let by = mark.by.into_iter().map(ItemId).collect();
                        self.say(Subject::Active(item), Statement::Retired { by, because });
                    }
                }
            }
            Record::Link(link) => {
                let subject = Subject::Edge(ItemId(link.from), link.edge, ItemId(link.to));
                self.say(subject, Statement::Linked(true));
            }
            Record::Unlink(link) => {
                let subject = Subject::Edge(ItemId(link.from), link.edge, ItemId(link.to));
                self.say(subject, Statement::Linked(false));
            }
            Record::Pointers(record) => self.cited(ItemId(record.item), &record.pointers),
            Record::Uncite(record) => {
                for gone in &record.pointers {
                    self.say(cites(ItemId(record.item), gone.target), Statement::uncited(gone));
                }
            }
            _ => {}
        }
    }

    fn cited(&mut self, item: ItemId, pointers: &[PointerRecord]) {
        for pointer in pointers {
            self.say(cites(item, pointer.target), Statement::cited(pointer));
        }
    }

    fn say(&mut self, subject: Subject, statement: Statement) {
        let history = self.histories.entry(subject).or_default();
        if history.last() != Some(&statement) {
            history.push(statement);
        }
    }

    /// Advances to the next statement about a subject that a line agrees with, if there is one.
    fn advance_to(&mut self, subject: &Subject, statement: &Statement) -> bool {
        let Some(history) = self.histories.get_mut(subject) else { return false };
        let Some(at) = history.iter().position(|logged| statement.agrees(logged)) else { return false };
        history.drain(..at);
        true
    }
}

/// The subject of a citation.
pub(super) fn cites(item: ItemId, target: PointerTarget) -> Subject {
    match target {
        PointerTarget::Item(target) => Subject::Edge(item, Edge::Cites.to_byte(), ItemId(target)),
        PointerTarget::Page(page) => Subject::CitedPage(item, page),
    }
}

/// The look-up key of an item without a key.
fn unkeyed_hash(kind: u8, text: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(text.as_bytes());
    *hasher.finalize().as_bytes()
}
