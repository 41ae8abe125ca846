//! Recording the events of one hook: the spool, the new tail of the transcript and the events themselves, in one
//! transaction of a handle that only appends.
//!
//! 1. An item whose key is there is known, whatever it says: hooks and transcripts tell of one call in different words.
//! 2. All looking up happens under the turn, so that two hooks at once record nothing twice.
//! 3. A file of the spool is removed after the commit.

use super::event::{Event, What};
use super::harness::Call;
use super::session::Session;
use super::used::{self, Answer};
use super::{recipe, spool, transcript};
use crate::database;
use holotype::{Durability, Holotype, ItemId, Kind, NewTrace, Options, Source, Target, Transaction};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time for which a hook waits for its turn.
const TURN: Duration = Duration::from_millis(500);

/// The outcome of a hook.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Items written.
    pub(super) written: u64,
    /// Events whose items were there.
    pub(super) known: u64,
    /// Items of memory that answers used.
    pub(super) used: u64,
    /// Files of the spool that were taken in.
    pub(super) drained: u64,
    /// Failures beside it, in sentences.
    pub(super) troubles: Vec<String>,
    /// The context that the session is told.
    pub(super) context: Option<String>,
}

/// Records events, and what a call of a hook brings with them.
///
/// # Errors
/// Of the database; then nothing was recorded.
pub(super) fn record(db: &Path, beside: &Path, call: &Call, events: &[Event]) -> holotype::Result<Recorded> {
    let folder_error = |source| holotype::Error::File { path: beside.to_owned(), source };
    fs::create_dir_all(beside).map_err(folder_error)?;
    let options = Options { write_timeout: TURN, ..database::options().appending() };
    let database = Holotype::open_or_create(db, options)?;
    let mut work = Work { beside, done: Recorded::default(), sessions: BTreeMap::new() };
    let told = match call.injects {
        true => recipe::context(&database.snapshot(), &call.session)?,
        false => None,
    };
    let mut transaction = database.begin_timeout(TURN)?;
    let drained = work.drain(&mut transaction);
    if let Some(path) = &call.transcript {
        work.read_transcript(&mut transaction, path, &call.session);
    }
    for event in events {
        work.event(&mut transaction, event)?;
    }
    if let (Some(told), Some(first)) = (&told, events.first()) {
        work.receipt(&mut transaction, &call.session, &format!("{}-told", first.key), &told.keys)?;
    }
    // A memory that is ahead of the database is one of a hook that was killed: its keys count only if they are there.
    for session in work.sessions.values() {
        if let Err(error) = session.write() {
            work.done.troubles.push(format!("cannot remember the session: {error}"));
        }
    }
    transaction.commit(Durability::Sync)?;
    for path in drained {
        if let Err(error) = fs::remove_file(&path) {
            work.done.troubles.push(format!("cannot remove {}: {error}", path.display()));
        }
    }
    database.close()?;
    work.done.context = told.map(|told| told.text);
    Ok(work.done)
}

/// The context of a session when nothing can be recorded now.
pub(super) fn read_context(db: &Path, session: &str) -> Option<String> {
    let database = Holotype::open(db, Options { read_only: true, ..database::options() }).ok()?;
    recipe::context(&database.snapshot(), session).ok()?.map(|told| told.text)
}

struct Work<'w> {
    beside: &'w Path,
    done: Recorded,
    sessions: BTreeMap<String, Session>,
}

impl Work<'_> {
    fn session(&mut self, name: &str) -> &mut Session {
        let beside = self.beside;
        self.sessions.entry(name.to_owned()).or_insert_with(|| Session::read(beside, name))
    }

    /// Records the events of the spool; returns the files that may be removed after the commit.
    fn drain(&mut self, transaction: &mut Transaction<'_>) -> Vec<PathBuf> {
        let files = spool::files(self.beside).unwrap_or_else(|error| {
            self.done.troubles.push(format!("cannot list the spool: {error}"));
            Vec::new()
        });
        let mut drained = Vec::new();
        for path in files {
            match self.drain_file(transaction, &path) {
                Ok(()) => drained.push(path),
                Err(why) => {
                    self.done.troubles.push(format!("{}: {why}; it is set aside", path.display()));
                    let _ = spool::set_aside(&path);
                }
            }
        }
        self.done.drained += drained.len() as u64;
        drained
    }

    fn drain_file(&mut self, transaction: &mut Transaction<'_>, path: &Path) -> Result<(), String> {
        let (events, wrong) = spool::read(path).map_err(|error| error.to_string())?;
        for event in &events {
            self.event(transaction, event).map_err(|error| error.to_string())?;
        }
        if wrong > 0 { Err(format!("{} of its lines are no events", wrong)) } else { Ok(()) }
    }

    fn read_transcript(&mut self, transaction: &mut Transaction<'_>, path: &Path, name: &str) {
        let session = self.session(name);
        let (offset, open_calls) = (session.offset_of(path), session.open_calls.clone());
        let tail = match transcript::read(path, name, offset, open_calls) {
            Ok(tail) => tail,
            Err(error) => return self.done.troubles.push(format!("transcript {}: {error}", path.display())),
        };
        for event in &tail.events {
            if let Err(error) = self.of_transcript(transaction, event) {
                // The next call reads again if nothing can be recorded now.
                return self.done.troubles.push(format!("transcript {}: {}: {error}", path.display(), event.key));
            }
        }
        let session = self.session(name);
        session.set_offset(path, tail.offset);
        session.open_calls = tail.open_calls;
    }

    fn of_transcript(&mut self, transaction: &mut Transaction<'_>, event: &Event) -> holotype::Result<()> {
        let is_there = |key: &str| is_there(transaction, key);
        if is_there(&event.key) || self.session(&event.session).take_hook(event, is_there) {
            self.done.known += 1;
            return Ok(());
        }
        self.write(transaction, event)?;
        self.session(&event.session).note_transcript(event);
        self.note_uses(transaction, event)
    }

    /// Records an event that a hook delivered.
    fn event(&mut self, transaction: &mut Transaction<'_>, event: &Event) -> holotype::Result<()> {
        // An answer comes with the end of a turn, where the transcript was read first; a prompt comes before.
        let is_answer = event.what == (What::Turn { by_user: false });
        let transcribed = is_answer && self.session(&event.session).has_transcribed(event);
        if transcribed || is_there(transaction, &event.key) {
            self.done.known += 1;
            return Ok(());
        }
        self.write(transaction, event)?;
        self.session(&event.session).note_hook(event);
        self.note_uses(transaction, event)
    }

    fn write(&mut self, transaction: &mut Transaction<'_>, event: &Event) -> holotype::Result<()> {
        let mut trace = event.trace();
        if let Some(vector) = transaction.vector_for(&trace)? {
            trace = trace.vector(vector);
        }
        transaction.record(trace)?;
        self.done.written += 1;
        Ok(())
    }

    /// Notes which items a new event shows to its session, or uses.
    fn note_uses(&mut self, transaction: &mut Transaction<'_>, event: &Event) -> holotype::Result<()> {
        let found = |transaction: &Transaction<'_>, key: &str| transaction.find(&Target::Key(key.to_owned())).ok();
        let keys = used::shown_by(event);
        let shown: Vec<(&String, ItemId)> =
            keys.iter().filter_map(|key| Some((key, found(transaction, key)?))).collect();
        if !shown.is_empty() {
            shown.iter().for_each(|(key, _)| self.session(&event.session).note_shown(key));
            transaction.shown(&event.session, &shown.iter().map(|(_, item)| *item).collect::<Vec<_>>())?;
        }
        let candidates = self.session(&event.session).shown().to_vec();
        if !used::is_answer(event) || candidates.is_empty() {
            return Ok(());
        }
        let (answer, snapshot) = (Answer::new(&event.text), transaction.snapshot()?);
        for key in candidates {
            let Some(item) = found(transaction, &key) else { continue };
            if answer.cites(&key) || answer.quotes(snapshot.item(item)?.content.text()) {
                transaction.used(item, &event.key)?;
                self.done.used += 1;
            }
        }
        Ok(())
    }

    /// Records which items a session was told.
    fn receipt(
        &mut self,
        transaction: &mut Transaction<'_>,
        session: &str,
        key: &str,
        keys: &[String],
    ) -> holotype::Result<()> {
        if is_there(transaction, key) {
            return Ok(());
        }
        let items: Vec<ItemId> =
            keys.iter().filter_map(|key| transaction.find(&Target::Key(key.clone())).ok()).collect();
        let text = format!("told at its beginning: {}", keys.join(" "));
        let trace = NewTrace::new(Kind::Observation, session, text).source(Source::System).field("event", "told");
        transaction.record(trace.key(key))?;
        transaction.shown(session, &items)?;
        keys.iter().for_each(|key| self.session(session).note_shown(key));
        self.done.written += 1;
        Ok(())
    }
}

fn is_there(transaction: &Transaction<'_>, key: &str) -> bool {
    transaction.find(&Target::Key(key.to_owned())).is_ok()
}
