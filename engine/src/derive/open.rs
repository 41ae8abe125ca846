//! Opening: read the last checkpoint and replay the log's tail, or rebuild every derived file from the whole log.
//!
//! A missing or damaged catalog or segment costs a rebuild and never data. Only damage to the log itself is an error; a
//! read-only opening then shows the state before the damage.
//!
//! 1. Opening changes no derived file before it has read the log to its end: a refused database keeps all evidence.
//! 2. A catalog or segment of a newer format is an error, unless a rebuild was requested: it is not replaced silently.
//! 3. Claims that another version of the extractor found, and word segments of other rules of analysis, are rebuilt
//!    from the log, with everything else.
//! 4. A crash between erasing from the log and rewriting derived files is completed here: the derived files are
//!    rebuilt.
//!
//! Cost: proportional to the log's tail; to the whole log after a rebuild.

use crate::core::files::Files;
use crate::core::witness::Witness;
use crate::core::{OpenReport, Opened};
use crate::derive::checkpoint;
use crate::derive::log_reader::{KnownEnd, LogReader};
use crate::derive::rebuild::{self, Rebuilt};
use crate::derive::retained_log::RetainedBase;
use crate::extract::EXTRACTOR_VERSION;
use crate::options::Options;
use crate::records::tables::{self, Meta};
use crate::state::State;
use crate::state::content::{ContentReader, OwnItems};
use crate::state::layers::{analyzer, empty_layers};
use crate::state::replay::{Decoded, replay};
use crate::state::settings;
use crate::{Error, Result};
use holotype_storage::catalog::Catalog;
use holotype_storage::damage_note;
use holotype_storage::features::Access;
use holotype_storage::lock::Lock;
use holotype_storage::log::{Head, Log, Lsn};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The attempts of a reader to open a checkpoint whose files vanish because a writer replaces it.
pub(crate) const MANIFEST_ATTEMPTS: usize = 100;

/// Told of a directory that is a copy of another one.
const COPIED: &str = "this directory is a copy of another one with the same database id: what is written here is not \
                      there, and a witness fits one of them only; `holotype salvage` makes a database with an id of \
                      its own";

/// The derived files that an opening may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// All files that the catalog names.
    Reuse,
    /// Only segments that the log confirms; everything else is rebuilt.
    Rebuild,
    /// None; everything is rebuilt.
    RebuildAll,
}

/// The state at the end of the log, by the files it is built on.
enum RecoveredState {
    /// The last checkpoint; later changes are in memory.
    Checkpoint(CheckpointFiles, State),
    /// New files, which get their names in [`Rebuilt::install`].
    Rebuilt(Box<Rebuilt>),
    /// No files: a read-only opening replayed the log into memory.
    InMemory(State),
}

impl RecoveredState {
    fn state(&mut self) -> &mut State {
        match self {
            RecoveredState::Checkpoint(_, state) | RecoveredState::InMemory(state) => state,
            RecoveredState::Rebuilt(rebuilt) => &mut rebuilt.state,
        }
    }
}

/// Opens the database in `files`. Returns its parts and the number of records that no checkpoint holds.
pub(crate) fn open(files: Files, options: Options, mode: OpenMode) -> Result<(Opened, u64)> {
    let mut lock = lock(&files, &options)?;
    // A log that cannot be identified is reported below. If neither LOCK nor a checkpoint is of the log's database, the
    // log is what is wrong: recovery then judges it by LOCK.
    if let Ok(Some(database)) = Log::identify(files.vfs.as_ref(), &files.log_dir(), Access::Read)
        && (!lock.is_of_another(database)? || last_checkpoint_position(&files, &options).is_some())
    {
        lock.belongs_to(database)?;
    }
    refuse_after_damage(&files, &options, mode)?;
    let mut opening = Opening::new(&files, &options, mode, &lock)?;
    let witness = Witness::open(&files, &options)?;
    let (log, recovered) = opening.recover()?;
    if let Some(witness) = &witness {
        witness.check(&log)?;
    }
    let (log, mut recovered) = opening.complete_forget(log, recovered)?;
    opening.clear_purged(recovered.state())?;
    let mut report = opening.report;
    report.skipped.append(&mut recovered.state().skipped);
    report.copied = lock.instance().filter(|instance| instance.is_new_copy).map(|_| COPIED.to_owned());
    let replayed = if matches!(recovered, RecoveredState::Rebuilt(_)) { 0 } else { report.replayed };
    let (mut state, catalog, generation) = install(recovered, &files, &options)?;
    let log = Arc::new(log);
    let reader = ContentReader { log: Arc::clone(&log), own: OwnItems::new() };
    state.reload_vectors(&reader)?;
    if mode != OpenMode::Reuse && !options.read_only {
        // The whole log was read again, and nothing in it is damaged.
        damage_note::remove(files.vfs.as_ref(), &files.damage_note())?;
    }
    Ok((Opened { files, options, log, catalog, state, lock, witness, report, generation }, replayed))
}

/// Takes the locks that opening with these options needs. Recovery changes the log, and opening removes files that no
/// manifest names; a handle that takes turns has the turn and maintenance meanwhile.
pub(crate) fn lock(files: &Files, options: &Options) -> Result<Lock> {
    let (vfs, path) = (files.vfs.as_ref(), files.lock());
    if options.read_only {
        return Ok(Lock::reader(vfs, &path)?);
    }
    if !options.takes_turns() {
        return Ok(Lock::writer(vfs, &path)?);
    }
    let deadline = Instant::now() + options.write_timeout;
    let lock = Lock::shared(vfs, &path, options.write_timeout)?;
    if options.append_only {
        // It removes nothing, and rebuilds nothing.
        return Ok(lock);
    }
    while !lock.try_maintenance()? {
        if Instant::now() >= deadline {
            return Err(Error::Storage(holotype_storage::Error::TurnHeld { path, pid: 0, command: String::new() }));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(lock)
}

/// Has a state stand on a catalog that is open for reading, and closes the writing one.
pub(crate) fn share_catalog(files: &Files, options: &Options, state: &mut State, catalog: Catalog) -> Result<()> {
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir(), Access::Read)?;
    let id = id.ok_or_else(|| Error::Corrupt { what: "the log's first segment has no valid header".to_owned() })?;
    let read = Catalog::open(files.vfs.as_ref(), &files.catalog(), id, &options.catalog(), Access::Read)?;
    state.rows.rest_on(read.snapshot()?);
    drop(catalog);
    Ok(())
}

/// Fails if a verification found the log damaged and the options do not accept that. A rebuild reads the whole log, and
/// finds out by itself.
fn refuse_after_damage(files: &Files, options: &Options, mode: OpenMode) -> Result<()> {
    if options.read_only || options.accept_damage || mode != OpenMode::Reuse {
        return Ok(());
    }
    let Some(id) = Log::identify(files.vfs.as_ref(), &files.log_dir(), Access::Read)? else { return Ok(()) };
    match damage_note::read(files.vfs.as_ref(), &files.damage_note(), id)? {
        Some(detail) => Err(Error::WritesRefused { detail }),
        None => Ok(()),
    }
}

/// An opening under way: its inputs, and the report so far.
struct Opening<'a> {
    files: &'a Files,
    options: &'a Options,
    mode: OpenMode,
    end: KnownEnd,
    /// The attempts to open the checkpoint.
    attempts: usize,
    report: OpenReport,
}

impl<'a> Opening<'a> {
    fn new(files: &'a Files, options: &'a Options, mode: OpenMode, lock: &Lock) -> Result<Self> {
        let status = if options.read_only { lock.status()? } else { lock.found() };
        let closed = status.is_some_and(|status| status.closed);
        let mut durable = status.map(|status| status.durable);
        let beside_writer = options.read_only && lock.has_other_writer()?;
        if beside_writer {
            // A writer may cut off again what it has not declared durable.
            durable = durable.max(Some(Lsn(1)));
        }
        let attempts = if beside_writer || options.append_only { MANIFEST_ATTEMPTS } else { 1 };
        let given_back = options.append_only
            && status.is_some_and(|status| !status.busy && status.end > Lsn(0) && status.durable == status.end);
        let end = KnownEnd { durable, closed, alone: !beside_writer, given_back };
        Ok(Opening { files, options, mode, end, attempts, report: OpenReport::default() })
    }

    /// The log and the state at its end: from the last checkpoint, or else from the whole log.
    fn recover(&mut self) -> Result<(Log, RecoveredState)> {
        let reason = match self.mode {
            OpenMode::Rebuild | OpenMode::RebuildAll => "a rebuild was requested".to_owned(),
            OpenMode::Reuse => match open_checkpoint_retrying(self.files, self.options, self.attempts) {
                Ok((checkpoint, state)) => match state.other_extractor()? {
                    None => return self.replay_tail(checkpoint, state),
                    Some(version) => {
                        format!("claims were derived by rules of version {version}, not {EXTRACTOR_VERSION}")
                    }
                },
                Err(error @ Error::Storage(holotype_storage::Error::NewerFormat { .. })) => return Err(error),
                Err(error) => error.to_string(),
            },
        };
        self.rebuild(reason)
    }

    fn replay_tail(&mut self, checkpoint: CheckpointFiles, mut state: State) -> Result<(Log, RecoveredState)> {
        match self.replay_log(&mut state) {
            Err(Error::Storage(error)) if allows_full_replay(&error, self.options) && !self.options.append_only => {
                drop((checkpoint, state));
                self.rebuild(format!("the last checkpoint does not match the log: {error}"))
            }
            log => Ok((log?, RecoveredState::Checkpoint(checkpoint, state))),
        }
    }

    fn rebuild(&mut self, reason: String) -> Result<(Log, RecoveredState)> {
        if self.options.append_only {
            return Err(Error::OpenFully { reason });
        }
        self.report.rebuilt = Some(reason);
        self.end.durable = self.end.durable.max(last_checkpoint_position(self.files, self.options));
        self.replay_whole_log()
    }

    /// Replays the whole log: into new files, or into memory for read-only access.
    fn replay_whole_log(&mut self) -> Result<(Log, RecoveredState)> {
        if self.options.read_only {
            let mut state = State::empty(None)?;
            if let Some(base) = RetainedBase::open(self.files)? {
                base.put_tree(&mut state)?;
                base.transactions()?.try_for_each(|transaction| replay(&mut state, &transaction?.try_into()?))?;
            }
            let log = self.replay_log(&mut state)?;
            return Ok((log, RecoveredState::InMemory(state)));
        }
        let (files, options, end, report) = (self.files, self.options, self.end, &mut self.report);
        let mut recovery = Vec::new();
        let read = |apply: &mut dyn FnMut(&Decoded) -> Result<()>| {
            let log = LogReader { files, options, from: None, end, report }.read_ahead(apply)?;
            // A second pass over the log has nothing left to recover; the first one's messages count.
            recovery.append(&mut report.recovery);
            Ok(log)
        };
        let (log, rebuilt) = rebuild::rebuild(files, options, self.mode != OpenMode::RebuildAll, read)?;
        self.report.recovery = recovery;
        self.report.reused = rebuilt.reused;
        Ok((log, RecoveredState::Rebuilt(Box::new(rebuilt))))
    }

    /// Opens the log and applies to `state` every transaction behind it.
    fn replay_log(&mut self, state: &mut State) -> Result<Log> {
        let from = (state.head.commit.0 > 0).then_some(state.head);
        let (files, options, end) = (self.files, self.options, self.end);
        let reader = LogReader { files, options, from, end, report: &mut self.report };
        let log = reader.read_each(&mut |transaction| replay(state, transaction))?;
        state.prepare_vectors()?;
        Ok(log)
    }

    /// Rebuilds the derived files if a crash came between erasing from the log and rewriting them.
    fn complete_forget(&mut self, log: Log, recovered: RecoveredState) -> Result<(Log, RecoveredState)> {
        let position = match &recovered {
            RecoveredState::Checkpoint(_, state) if is_purge_due(state) && !self.options.read_only => {
                state.head.position
            }
            _ => return Ok((log, recovered)),
        };
        drop((log, recovered));
        let reason = "a forget or a reembedding was interrupted; derived files written before it may hold old content";
        if self.options.append_only {
            return Err(Error::OpenFully { reason: reason.to_owned() });
        }
        self.report.rebuilt = Some(reason.to_owned());
        self.end = KnownEnd { durable: Some(position), closed: false, alone: true, given_back: false };
        let mut recovery = std::mem::take(&mut self.report.recovery);
        let replayed = self.replay_whole_log()?;
        recovery.append(&mut self.report.recovery);
        self.report.recovery = recovery;
        Ok(replayed)
    }

    /// Removes quarantined log tails, which may hold forgotten content, and records that nothing derived holds any.
    fn clear_purged(&self, state: &mut State) -> Result<()> {
        if !self.options.read_only && is_purge_due(state) {
            self.files.remove_quarantined()?;
            state.meta.purged = state.meta.forgets;
        }
        Ok(())
    }
}

/// True if derived files may hold content that was forgotten.
fn is_purge_due(state: &State) -> bool {
    state.meta.purged < state.meta.forgets
}

/// Gives new files their names and removes files that no manifest names. Returns the state, the writer's catalog and
/// the newest generation.
fn install(recovered: RecoveredState, files: &Files, options: &Options) -> Result<(State, Option<Catalog>, u64)> {
    if options.append_only
        && let RecoveredState::Checkpoint(_, state) = recovered
    {
        // Another handle may be writing files; a checkpoint of this one looks for the newest generation first.
        return Ok((state, None, 0));
    }
    let generation = if options.read_only { 0 } else { files.generation_apart()? };
    Ok(match recovered {
        RecoveredState::InMemory(state) => (state, None, generation),
        RecoveredState::Checkpoint(_, state) if options.read_only => (state, None, generation),
        RecoveredState::Checkpoint(checkpoint, state) => {
            files.remove_other(&checkpoint.files)?;
            (state, (!options.takes_turns()).then_some(checkpoint.catalog), generation)
        }
        RecoveredState::Rebuilt(rebuilt) => {
            let (mut state, catalog, generation) = rebuilt.install(files)?;
            match options.takes_turns() {
                true => {
                    share_catalog(files, options, &mut state, catalog)?;
                    (state, None, generation)
                }
                false => (state, Some(catalog), generation),
            }
        }
    })
}

/// The derived files of the last checkpoint, open.
pub(crate) struct CheckpointFiles {
    catalog: Catalog,
    /// The files that its manifest names.
    files: Vec<PathBuf>,
}

/// True if a replay of the whole log may get further than a replay from the checkpoint. It may if the checkpoint does
/// not match the log (one of them was restored from a copy; the log wins), and for read-only opening if the log is
/// damaged near the checkpoint and readable before the damage.
fn allows_full_replay(error: &holotype_storage::Error, options: &Options) -> bool {
    match error {
        holotype_storage::Error::CheckpointMismatch { .. } => true,
        holotype_storage::Error::Damaged(_) => options.read_only,
        _ => false,
    }
}

/// The log position of the last checkpoint, if the catalog can still be read. The log was durable up to there, even if
/// the catalog is discarded afterwards.
pub(crate) fn last_checkpoint_position(files: &Files, options: &Options) -> Option<Lsn> {
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir(), Access::Read).ok()??;
    let catalog = Catalog::open(files.vfs.as_ref(), &files.catalog(), id, &options.catalog(), Access::Read).ok()?;
    Some(catalog.applied().ok()??.position)
}

/// Opens the last checkpoint, with retries while a concurrent writer replaces its files.
fn open_checkpoint_retrying(files: &Files, options: &Options, attempts: usize) -> Result<(CheckpointFiles, State)> {
    let mut opened = open_checkpoint(files, options);
    for _ in 1..attempts {
        match &opened {
            Err(error) if is_superseded_file(error) => opened = open_checkpoint(files, options),
            _ => break,
        }
    }
    opened
}

/// True if a file is missing that a concurrent writer may have replaced after this process read the manifest.
pub(crate) fn is_superseded_file(error: &Error) -> bool {
    matches!(error, Error::Storage(holotype_storage::Error::MissingFile { .. }))
}

/// Opens the files of the last checkpoint. It writes nothing, because the log may still turn out to be damaged.
pub(crate) fn open_checkpoint(files: &Files, options: &Options) -> Result<(CheckpointFiles, State)> {
    let access = if options.read_only { Access::Read } else { Access::Write };
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir(), access)?;
    let id = id.ok_or_else(|| Error::Corrupt { what: "the log's first segment has no valid header".to_owned() })?;
    // A handle that takes turns opens the catalog for writing only to change it.
    let catalog_access = if options.takes_turns() { Access::Read } else { access };
    let catalog = Catalog::open(files.vfs.as_ref(), &files.catalog(), id, &options.catalog(), catalog_access)?;
    let mut state = State::empty(Some(&catalog))?;
    let mut named = Vec::new();
    let applied = state.rows.base().and_then(|base| base.applied()).map(|applied| Head {
        position: applied.position,
        commit: applied.commit,
        hash: applied.head,
    });
    if let Some(head) = applied {
        let meta: Option<Meta> = state.get(tables::META, &[])?;
        state.meta = meta.ok_or_else(|| Error::Corrupt { what: "the catalog has no totals".to_owned() })?;
        state.committed_totals = state.totals();
        state.head = head;
        state.layers = empty_layers(analyzer(&settings::value(&state, "analyser")?));
        named = checkpoint::open_files(files, &mut state, id, access)?;
    }
    Ok((CheckpointFiles { catalog, files: named }, state))
}
