//! Opening: the last checkpoint, then the log's tail; or, where derived files are missing or damaged, the whole log.
//!
//! Whatever is wrong with the catalog or a derived segment costs a rebuild and never data: the log is read from its
//! beginning and everything is made again. Only damage to the log itself is an error; for reading, a database opens in
//! spite of it, up to the damage.

use crate::checkpoint;
use crate::database::{Holotype, OpenReport, Opened, empty_state, replay};
use crate::files::Files;
use crate::layers::{analyzer, empty_layers};
use crate::options::Options;
use crate::state::State;
use crate::tables::{self, Meta};
use crate::{Error, Result, settings};
use holotype_storage::RecoveryReport;
use holotype_storage::catalog::{Access, Catalog, CatalogOptions};
use holotype_storage::lock::Lock;
use holotype_storage::log::{Head, Log, LogLimits, Lsn, OpenOptions};
use std::sync::Arc;

/// Opens the database in `files`, with what is derived made anew if asked.
pub(crate) fn open(files: Files, options: Options, rebuild: bool) -> Result<Holotype> {
    let lock = if options.read_only {
        Lock::reader(files.vfs.as_ref(), &files.lock())?
    } else {
        Lock::writer(files.vfs.as_ref(), &files.lock())?
    };
    let status = if options.read_only { lock.status()? } else { lock.found() };
    let mut hint = status.map(|status| status.durable);
    let mut report = OpenReport::default();
    let derived = if rebuild { Err("a rebuild was asked for".to_owned()) } else { open_derived(&files, &options) };
    let (catalog, state) = match derived {
        Ok(derived) => derived,
        Err(reason) => {
            hint = hint.max(last_checkpoint(&files, &options));
            report.rebuilt = Some(reason);
            fresh(&files, &options)?
        }
    };
    match replay_log(&files, &options, hint, state, &mut report) {
        Ok((log, state)) => finish(files, options, log, catalog, state, lock, report),
        Err(Error::Storage(error)) if is_worth_the_whole_log(&error, &options, &report) => {
            report.rebuilt = Some(format!("the last checkpoint does not fit the log: {error}"));
            drop(catalog);
            hint = hint.max(last_checkpoint(&files, &options));
            let (catalog, state) = fresh(&files, &options)?;
            let (log, state) = replay_log(&files, &options, hint, state, &mut report)?;
            finish(files, options, log, catalog, state, lock, report)
        }
        Err(error) => Err(error),
    }
}

/// Whether reading the log from its beginning may go further than reading on from the checkpoint: the checkpoint does not
/// fit the log (one of them was restored from elsewhere; the log is right), or, for reading only, the log is damaged around
/// it, and what stands before the damage can still be read.
fn is_worth_the_whole_log(error: &holotype_storage::Error, options: &Options, report: &OpenReport) -> bool {
    match error {
        holotype_storage::Error::CheckpointMismatch { .. } => true,
        holotype_storage::Error::Damaged(_) => options.read_only && report.rebuilt.is_none(),
        _ => false,
    }
}

/// Where the last checkpoint stood, as far as the catalog can still be read: the log was durable up to there, whatever
/// becomes of the catalog itself.
fn last_checkpoint(files: &Files, options: &Options) -> Option<Lsn> {
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir()).ok()??;
    let catalog_options = CatalogOptions { cache_len: options.cache_bytes, ..CatalogOptions::default() };
    let catalog = Catalog::open(files.vfs.as_ref(), &files.catalog(), id, &catalog_options, Access::Read).ok()?;
    Some(catalog.applied().ok()??.position)
}

fn finish(
    files: Files,
    options: Options,
    log: Log,
    catalog: Option<Catalog>,
    state: State,
    lock: Lock,
    report: OpenReport,
) -> Result<Holotype> {
    let records = report.replayed;
    let rebuilt = report.rebuilt.is_some();
    let database = Holotype::start(Opened { files, options, log, catalog, state, lock, report }, records);
    if rebuilt && !database.inner.options.read_only {
        database.checkpoint()?;
    }
    Ok(database)
}

/// The state as of the last checkpoint; or why there is none to trust.
fn open_derived(files: &Files, options: &Options) -> Result<(Option<Catalog>, State), String> {
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir()).map_err(|error| error.to_string())?;
    let id = id.ok_or("the log's first segment has no valid header")?;
    let access = if options.read_only { Access::Read } else { Access::Write };
    let catalog_options = CatalogOptions { cache_len: options.cache_bytes, ..CatalogOptions::default() };
    let open = || -> Result<(Option<Catalog>, State)> {
        let catalog = Catalog::open(files.vfs.as_ref(), &files.catalog(), id, &catalog_options, access)?;
        let mut state = empty_state(Some(&catalog))?;
        if let Some(applied) = catalog.applied()? {
            let meta: Option<Meta> = state.get(tables::META, &[])?;
            state.meta = meta.ok_or_else(|| Error::Corrupt { what: "the catalog has no totals".to_owned() })?;
            state.head = Head { position: applied.position, commit: applied.commit, hash: applied.head };
            state.layers = empty_layers(analyzer(&settings::value(&state, "analyser")?));
            let keep = checkpoint::open_files(files, &mut state, id)?;
            if !options.read_only {
                files.remove_other(&keep)?;
            }
        }
        Ok((Some(catalog), state))
    };
    open().map_err(|error| error.to_string())
}

/// A new catalog and a state with nothing in it; whatever is derived is removed.
fn fresh(files: &Files, options: &Options) -> Result<(Option<Catalog>, State)> {
    let catalog_options = CatalogOptions { cache_len: options.cache_bytes, ..CatalogOptions::default() };
    let id = Log::identify(files.vfs.as_ref(), &files.log_dir())?.unwrap_or_default();
    let catalog = if options.read_only {
        None
    } else {
        files.create_dirs()?;
        files.remove_other(&[])?;
        Some(Catalog::create(files.vfs.as_ref(), &files.catalog(), id, &catalog_options)?)
    };
    let state = empty_state(catalog.as_ref())?;
    Ok((catalog, state))
}

/// Opens the log and applies every transaction after the state.
fn replay_log(
    files: &Files,
    options: &Options,
    hint: Option<Lsn>,
    mut state: State,
    report: &mut OpenReport,
) -> Result<(Log, State)> {
    let from = (state.head.commit.0 > 0).then_some(state.head);
    let limits = LogLimits { max_transaction_bytes: options.max_transaction_bytes, ..LogLimits::default() };
    let log_options = OpenOptions { database: None, read_only: options.read_only, durable_hint: hint, limits };
    report.replayed = 0;
    let mut apply = |transaction: holotype_storage::log::Transaction| -> Result<()> {
        report.replayed += transaction.records.len() as u64;
        state.head = transaction.head;
        replay(&mut state, &transaction)
    };
    let (log, recovery) = Log::open(Arc::clone(&files.vfs), &files.log_dir(), from, &log_options, &mut apply)?;
    report.recovery = in_words(&recovery);
    report.damage = recovery.damage.as_ref().map(ToString::to_string);
    state.prepare_vectors()?;
    Ok((log, state))
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
    words.extend(report.removed.iter().map(|path| format!("{} was prepared and never used: removed", path.display())));
    words
}
