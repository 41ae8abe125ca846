//! Opening: the last checkpoint, then the log's tail; or, where derived files are missing or damaged, the whole log.
//!
//! Whatever is wrong with the catalog or a derived segment costs a rebuild and never data: the log is read from its
//! beginning and everything is made again. Only damage to the log itself is an error; for reading, a database opens in
//! spite of it, up to the damage. Until the log has been read nothing derived is touched, so that a database that is
//! refused is left as it was, with all the evidence in it.

use crate::checkpoint;
use crate::database::{Holotype, OpenReport, Opened, empty_state};
use crate::files::Files;
use crate::layers::{analyzer, empty_layers};
use crate::options::Options;
use crate::rebuild::{self, Prepare, Rebuilt};
use crate::refresh::ATTEMPTS;
use crate::replay::{Decoded, replay};
use crate::retold::Base;
use crate::state::State;
use crate::tables::{self, Meta};
use crate::{Error, Result, settings};
use holotype_storage::RecoveryReport;
use holotype_storage::catalog::{Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::lock::Lock;
use holotype_storage::log::{Head, Log, LogLimits, Lsn, OpenOptions, Transaction};
use std::path::PathBuf;
use std::sync::Arc;

/// What of the derived files is to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derive {
    /// All that the catalog names.
    AsFound,
    /// Nothing but segments that prove to be of this log.
    Anew,
    /// Nothing.
    AllAnew,
}

/// Opens the database in `files`.
pub(crate) fn open(files: Files, options: Options, derive: Derive) -> Result<Holotype> {
    let lock = if options.read_only {
        Lock::reader(files.vfs.as_ref(), &files.lock())?
    } else {
        Lock::writer(files.vfs.as_ref(), &files.lock())?
    };
    let status = if options.read_only { lock.status()? } else { lock.found() };
    let mut hint = status.map(|status| status.durable);
    let beside_writer = options.read_only && lock.has_other_writer()?;
    if beside_writer {
        // What the writer has not said to be durable may be cut off again.
        hint = hint.max(Some(Lsn(1)));
    }
    let closed = status.is_some_and(|status| status.closed);
    let mut report = OpenReport::default();
    let attempts = if beside_writer { ATTEMPTS } else { 1 };
    let found = match derive {
        Derive::AsFound => derived(&files, &options, attempts).map_err(Some),
        Derive::Anew | Derive::AllAnew => Err(None),
    };
    let from_log = |known, report: &mut OpenReport| -> Result<(Log, Stands)> {
        if options.read_only {
            let mut state = empty_state(None)?;
            if let Some(base) = Base::open(&files)? {
                base.put_tree(&mut state)?;
                base.transactions()?.try_for_each(|transaction| replay(&mut state, &transaction?.try_into()?))?;
            }
            let (log, state) = replay_log(&files, &options, known, state, report)?;
            return Ok((log, Stands::InMemory(state)));
        }
        let mut first = Vec::new();
        let read = |prepare: &Prepare<'_>, apply: &mut dyn FnMut(&Decoded) -> Result<()>| {
            let log = read_ahead(&files, &options, None, known, report, prepare, apply)?;
            // Where the log is read once more, recovery has no more to do.
            first.append(&mut report.recovery);
            Ok(log)
        };
        let (log, rebuilt) = rebuild::rebuild(&files, &options, derive != Derive::AllAnew, read)?;
        report.recovery = first;
        report.kept = rebuilt.kept;
        Ok((log, Stands::OnRebuilt(Box::new(rebuilt))))
    };
    let (log, base) = match found {
        Ok((derived, state)) => match replay_log(&files, &options, (hint, closed), state, &mut report) {
            Err(Error::Storage(error)) if is_worth_the_whole_log(&error, &options) => {
                report.rebuilt = Some(format!("the last checkpoint does not fit the log: {error}"));
                drop(derived);
                hint = hint.max(last_checkpoint(&files, &options));
                from_log((hint, closed), &mut report)?
            }
            replayed => {
                let (log, state) = replayed?;
                (log, Stands::OnCheckpoint(derived, state))
            }
        },
        // What a newer program made is not replaced unless that is asked for.
        Err(Some(error @ Error::Storage(holotype_storage::Error::NewerFormat { .. }))) => return Err(error),
        Err(error) => {
            let reason = error.map_or_else(|| "a rebuild was asked for".to_owned(), |error| error.to_string());
            hint = hint.max(last_checkpoint(&files, &options));
            report.rebuilt = Some(reason);
            from_log((hint, closed), &mut report)?
        }
    };
    let (log, mut base) = match &base {
        Stands::OnCheckpoint(_, state) if state.meta.purged < state.meta.forgets && !options.read_only => {
            // A crash came between erasing from the log and making the derived files anew.
            let why = "something was forgotten, and derived files made before may still hold it";
            report.rebuilt = Some(why.to_owned());
            let known = (Some(state.head.position), false);
            drop((log, base));
            let mut words = std::mem::take(&mut report.recovery);
            let made = from_log(known, &mut report)?;
            words.append(&mut report.recovery);
            report.recovery = words;
            made
        }
        _ => (log, base),
    };
    let state = base.state();
    if !options.read_only && state.meta.purged < state.meta.forgets {
        files.remove_quarantined()?;
        state.meta.purged = state.meta.forgets;
    }
    let (state, catalog, generation, replayed) = match base {
        Stands::InMemory(state) => (state, None, files.newest_generation(), report.replayed),
        Stands::OnCheckpoint(derived, state) if options.read_only => {
            drop(derived);
            (state, None, files.newest_generation(), report.replayed)
        }
        Stands::OnCheckpoint(derived, state) => {
            let generation = files.newest_generation();
            files.remove_other(&derived.files)?;
            (state, Some(derived.catalog), generation, report.replayed)
        }
        Stands::OnRebuilt(rebuilt) => {
            let (state, catalog, generation) = rebuilt.put_in_place(&files)?;
            (state, Some(catalog), generation, 0)
        }
    };
    Ok(Holotype::start(Opened { files, options, log, catalog, state, lock, report, generation }, replayed))
}

/// The state at the end of the log, and what it stands on.
enum Stands {
    /// The last checkpoint, with what came after it in memory.
    OnCheckpoint(Derived, State),
    /// New files that are not yet named.
    OnRebuilt(Box<Rebuilt>),
    /// Nothing: a reader of a log alone.
    InMemory(State),
}

impl Stands {
    fn state(&mut self) -> &mut State {
        match self {
            Stands::OnCheckpoint(_, state) | Stands::InMemory(state) => state,
            Stands::OnRebuilt(rebuilt) => &mut rebuilt.state,
        }
    }
}

/// What the last checkpoint left, opened.
pub(crate) struct Derived {
    catalog: Catalog,
    /// The files its manifest names.
    files: Vec<PathBuf>,
}

/// Whether reading the log from its beginning may go further than reading on from the checkpoint: the checkpoint does not
/// fit the log (one of them was restored from elsewhere; the log is right), or, for reading only, the log is damaged around
/// it, and what stands before the damage can still be read.
fn is_worth_the_whole_log(error: &holotype_storage::Error, options: &Options) -> bool {
    match error {
        holotype_storage::Error::CheckpointMismatch { .. } => true,
        holotype_storage::Error::Damaged(_) => options.read_only,
        _ => false,
    }
}

/// Where the last checkpoint stood, as far as the catalog can still be read: the log was durable up to there, whatever
/// becomes of the catalog itself.
pub(crate) fn last_checkpoint(files: &Files, options: &Options) -> Option<Lsn> {
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir(), Access::Read).ok()??;
    let catalog =
        Catalog::open(files.vfs.as_ref(), &files.catalog(), id, &catalog_options(options), Access::Read).ok()?;
    Some(catalog.applied().ok()??.position)
}

/// The state as of the last checkpoint; or why there is none to trust.
fn derived(files: &Files, options: &Options, attempts: usize) -> Result<(Derived, State)> {
    let mut opened = open_derived(files, options);
    for _ in 1..attempts {
        match &opened {
            Err(error) if is_replaced(error) => opened = open_derived(files, options),
            _ => break,
        }
    }
    opened
}

/// Whether a reader met a file of a checkpoint that its writer may have replaced meanwhile.
pub(crate) fn is_replaced(error: &Error) -> bool {
    matches!(error, Error::Storage(holotype_storage::Error::MissingFile { .. }))
}

/// Opens what the last checkpoint left. Nothing is changed yet: the log may refuse.
pub(crate) fn open_derived(files: &Files, options: &Options) -> Result<(Derived, State)> {
    let access = if options.read_only { Access::Read } else { Access::Write };
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir(), access)?;
    let id = id.ok_or_else(|| Error::Corrupt { what: "the log's first segment has no valid header".to_owned() })?;
    let catalog = Catalog::open(files.vfs.as_ref(), &files.catalog(), id, &catalog_options(options), access)?;
    let mut state = empty_state(Some(&catalog))?;
    let mut named = Vec::new();
    let applied = state.rows.base().and_then(|base| base.applied()).map(|applied| Head {
        position: applied.position,
        commit: applied.commit,
        hash: applied.head,
    });
    if let Some(head) = applied {
        let meta: Option<Meta> = state.get(tables::META, &[])?;
        state.meta = meta.ok_or_else(|| Error::Corrupt { what: "the catalog has no totals".to_owned() })?;
        state.sealed = state.totals();
        state.head = head;
        state.layers = empty_layers(analyzer(&settings::value(&state, "analyser")?));
        named = checkpoint::open_files(files, &mut state, id, access)?;
    }
    Ok((Derived { catalog, files: named }, state))
}

pub(crate) fn catalog_options(options: &Options) -> CatalogOptions {
    CatalogOptions { cache_len: options.cache_len(), ..CatalogOptions::default() }
}

/// Opens the log and applies every transaction after the state. What is known of the log's end says whether that is much;
/// then the log is read and checked on a thread of its own, ahead of what is applied.
fn replay_log(
    files: &Files,
    options: &Options,
    known: (Option<Lsn>, bool),
    mut state: State,
    report: &mut OpenReport,
) -> Result<(Log, State)> {
    let from = (state.head.commit.0 > 0).then_some(state.head);
    let tail_len = known.0.map_or(0, |end| end.0.saturating_sub(state.head.position.0));
    let mut apply = |transaction: &Decoded| replay(&mut state, transaction);
    let log = match tail_len < BATCH_LEN as u64 {
        true => read_log(files, options, from, known, report, &mut |transaction| apply(&transaction.try_into()?))?,
        false => read_ahead(files, options, from, known, report, &|_| {}, &mut apply)?,
    };
    state.prepare_vectors()?;
    Ok((log, state))
}

/// How many bytes of records are handed on at once, and how often before they are taken.
const BATCH_LEN: usize = 256 << 10;
const AHEAD: usize = 8;

/// As [`read_log`], which reads, checks and decodes on a thread of its own, ahead of what is applied. `prepare` sees what was
/// decoded first, on that thread. What was applied goes back there to be dropped: memory that one thread takes and another gives
/// back makes each wait for the other.
fn read_ahead(
    files: &Files,
    options: &Options,
    from: Option<Head>,
    known: (Option<Lsn>, bool),
    report: &mut OpenReport,
    prepare: &Prepare<'_>,
    apply: &mut dyn FnMut(&Decoded) -> Result<()>,
) -> Result<Log> {
    std::thread::scope(|scope| {
        let (batches, ready) = crossbeam::channel::bounded::<Vec<Decoded>>(AHEAD);
        let (spent, to_drop) = crossbeam::channel::unbounded::<Vec<Decoded>>();
        let reading = scope.spawn(move || {
            let (mut batch, mut batch_len) = (Vec::new(), 0);
            let hand_on = |batch| {
                to_drop.try_iter().for_each(drop);
                batches.send(batch).map_err(|_| Error::Cancelled("applying the log"))
            };
            let log = read_log(files, options, from, known, report, &mut |transaction| {
                batch_len += transaction.records.iter().map(|record| record.payload.len()).sum::<usize>();
                let mut decoded = transaction.try_into()?;
                prepare(&mut decoded);
                batch.push(decoded);
                if batch_len < BATCH_LEN {
                    return Ok(());
                }
                batch_len = 0;
                hand_on(std::mem::take(&mut batch))
            })?;
            hand_on(batch)?;
            Ok(log)
        });
        // When this fails nobody takes what is read, which ends the reading.
        let applied = ready.into_iter().try_for_each(|batch| {
            batch.iter().try_for_each(&mut *apply)?;
            // When all is read nobody takes it any more.
            let _ = spent.send(batch);
            Ok(())
        });
        let log = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        applied.and(log)
    })
}

/// Opens the log and hands on every transaction after a checkpoint.
fn read_log(
    files: &Files,
    options: &Options,
    from: Option<Head>,
    (durable_hint, closed_hint): (Option<Lsn>, bool),
    report: &mut OpenReport,
    apply: &mut dyn FnMut(Transaction) -> Result<()>,
) -> Result<Log> {
    let limits = LogLimits { max_transaction_bytes: options.max_transaction_bytes, ..LogLimits::default() };
    let log_options = OpenOptions { database: None, read_only: options.read_only, durable_hint, closed_hint, limits };
    report.replayed = 0;
    let mut apply = |transaction: Transaction| -> Result<()> {
        report.replayed += transaction.records.len() as u64;
        apply(transaction)
    };
    let (log, recovery) = Log::open(Arc::clone(&files.vfs), &files.log_dir(), from, &log_options, &mut apply)?;
    report.recovery = in_words(&recovery);
    report.damage = recovery.damage.as_ref().map(ToString::to_string);
    Ok(log)
}

/// What recovery did, for a person.
fn in_words(report: &RecoveryReport) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(tail) = &report.tail {
        let kept = tail.quarantine.as_ref().map_or_else(String::new, |path| format!(", kept in {}", path.display()));
        words.push(format!(
            "{} bytes from log position {} on were never synced and are no part of the database{kept} ({})",
            tail.len, tail.position, tail.fault
        ));
    }
    if report.erased > 0 {
        words.push(format!("{} records whose forgetting was interrupted are erased", report.erased));
    }
    words.extend(report.removed.iter().map(|path| format!("{} was prepared and never used: removed", path.display())));
    words
}
