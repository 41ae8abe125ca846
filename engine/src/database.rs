//! Creating, opening and closing a database.

use crate::core::files::Files;
use crate::core::handle::{Closer, Holotype};
use crate::core::memory::prepare_allocator;
use crate::core::witness::Witness;
use crate::core::{Core, OpenReport, Opened};
use crate::derive::log_reader::log_limits;
use crate::derive::open::{self, OpenMode};
use crate::derive::{checkpoint, merge};
use crate::maintain::restored;
use crate::options::{Durability, Options};
use crate::read::limits::refill_memory;
use crate::read::snapshot::Snapshot;
use crate::state::State;
use crate::state::content::{ContentReader, OwnItems};
use crate::state::settings::declaration;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_storage::catalog::Catalog;
use holotype_storage::log::{Head, Log, LogOptions};
use holotype_storage::vfs::{OsVfs, Vfs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The writers of a database, as its LOCK tells of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// True if another handle has the database open for writing.
    pub held: bool,
    /// The process that last took the turn to write, if that is known.
    pub pid: Option<u32>,
    /// When it took the turn, in microseconds since 1970.
    pub since_us: Option<i64>,
}

impl Holotype {
    /// Creates a database at a path where nothing is yet.
    ///
    /// # Errors
    /// [`Error::Exists`], or of the file system.
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        Holotype::create_on(Arc::new(OsVfs), path, options)
    }

    /// Creates a database on a given file system.
    pub fn create_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        let files = Files::new(vfs, path.as_ref());
        if files.exists()? {
            return Err(Error::Exists { path: path.as_ref().to_owned() });
        }
        if let Some(space) = &options.space {
            space.check()?;
            options.check_space(space)?;
        }
        if let Some(profile) = &options.profile {
            crate::state::settings::canonical("profile", profile)?;
        }
        for (field, form) in &options.fields {
            crate::state::settings::canonical(&declaration(field), form)?;
        }
        prepare_allocator(&options);
        files.create_dirs()?;
        let mut lock = open::lock(&files, &options)?;
        let mut id = [0; 16];
        getrandom::fill(&mut id)
            .map_err(|error| Error::File { path: files.dir.clone(), source: std::io::Error::other(error) })?;
        lock.belongs_to(id)?;
        let witness = Witness::create(&files, &options, id)?;
        let limits = log_limits(&options);
        let log_options = LogOptions { page_size: options.page_size, limits, ..LogOptions::new(id) };
        let log = Log::create(Arc::clone(&files.vfs), &files.log_dir(), &log_options)?;
        let catalog = Catalog::create(files.vfs.as_ref(), &files.catalog(), id, &options.catalog())?;
        let mut state = State::empty(Some(&catalog))?;
        state.head = log.head();
        let catalog = if options.takes_turns() {
            log.share()?;
            open::share_catalog(&files, &options, &mut state, catalog)?;
            None
        } else {
            Some(catalog)
        };
        let opened = Opened {
            files,
            options: options.clone(),
            log: Arc::new(log),
            catalog,
            state,
            lock,
            witness,
            report: OpenReport::default(),
            generation: 0,
        };
        let database = Holotype::start(opened, 0);
        database.set_up(&options)?;
        Ok(database)
    }

    /// Writes the first transaction: the space, the profile and the fields that the options name.
    pub(crate) fn set_up(&self, options: &Options) -> Result<()> {
        let mut transaction = self.begin()?;
        if let Some(space) = &options.space {
            transaction.define_space(space)?;
        }
        if let Some(embedder) = &options.embedder {
            transaction.adopt(embedder.as_ref())?;
        }
        if let Some(profile) = &options.profile {
            transaction.set("profile", profile)?;
        }
        for (field, form) in &options.fields {
            transaction.declare(field, form)?;
        }
        transaction.commit(Durability::Sync)?;
        Ok(())
    }

    /// Opens a database: for writing, unless the options say otherwise.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Storage`] when it is locked, of a newer format, or damaged.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        Holotype::open_on(Arc::new(OsVfs), path, options)
    }

    /// Opens a database on a given file system.
    pub fn open_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        Holotype::open_in_mode(vfs, path.as_ref(), options, OpenMode::Reuse)
    }

    /// Opens a database, or creates it where nothing is yet.
    ///
    /// # Errors
    /// As [`Holotype::open`] and [`Holotype::create`].
    pub fn open_or_create(path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        let path = path.as_ref();
        match Holotype::open(path, options.clone()) {
            Err(Error::NotFound { .. }) if !options.read_only => {}
            opened => return opened,
        }
        match Holotype::create(path, options.clone()) {
            // Another process was quicker.
            Err(Error::Exists { .. }) => Holotype::open(path, options),
            created => created,
        }
    }

    /// Opens a database after making its derived files again from the log: the catalog, the columns, and every segment
    /// of vectors or words that does not prove to be right. One that does is kept: all its bytes match their checksums,
    /// the log passes through the commit that it was made at, and it holds nothing that was forgotten since.
    ///
    /// # Errors
    /// As [`Holotype::open`]; what was there is then left as it was.
    pub fn rebuild(path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        Holotype::rebuild_on(Arc::new(OsVfs), path, options)
    }

    /// [`Holotype::rebuild`] on a given file system.
    ///
    /// # Errors
    /// As [`Holotype::rebuild`].
    pub fn rebuild_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        Holotype::open_in_mode(vfs, path.as_ref(), options, OpenMode::Rebuild)
    }

    /// Opens a database after throwing away every derived file, whether it is right or not, so that all are made again
    /// from the log.
    ///
    /// # Errors
    /// As [`Holotype::rebuild`].
    pub fn rebuild_all(path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        Holotype::rebuild_all_on(Arc::new(OsVfs), path, options)
    }

    /// [`Holotype::rebuild_all`] on a given file system.
    ///
    /// # Errors
    /// As [`Holotype::rebuild`].
    pub fn rebuild_all_on(vfs: Arc<dyn Vfs>, path: impl AsRef<Path>, options: Options) -> Result<Holotype> {
        Holotype::open_in_mode(vfs, path.as_ref(), options, OpenMode::RebuildAll)
    }

    fn open_in_mode(vfs: Arc<dyn Vfs>, path: &Path, options: Options, derive: OpenMode) -> Result<Holotype> {
        let files = Files::new(vfs, path);
        if !files.exists()? {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        let restored = restored::commit(&files)?;
        if !options.read_only {
            restored::refuse_follower(&files)?;
        }
        if let Some(commit) = restored.filter(|_| !options.read_only) {
            return Err(Error::Restored { path: path.to_owned(), commit });
        }
        prepare_allocator(&options);
        let embedder = options.embedder.clone();
        let (opened, replayed) = open::open(files, options, derive)?;
        if let Some(embedder) = embedder {
            opened.state.check_embedder(embedder.as_ref())?;
        }
        let database = Holotype::start(opened, replayed);
        restored.map_or(Ok(()), |commit| database.show_past(commit))?;
        Ok(database)
    }

    fn start(opened: Opened, replayed: u64) -> Holotype {
        let core = Core::new(opened, replayed);
        if !core.options.read_only {
            // A crash may have come between a commit and its witness.
            core.record_durable(core.published.load().head);
            // Closing ended those that would have taken long.
            merge::start(&core);
        }
        let closer = Arc::new(Closer { core: Arc::clone(&core) });
        Holotype { core, _closer: closer }
    }

    /// Begins a write transaction; waits for the one under way.
    ///
    /// The transaction may be sent to another thread. A thread has it open if it used it last.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::WritesRefused`] after damage was found; [`Error::TransactionOpen`] if this thread
    /// has a transaction open; [`Error::Busy`] if a limit stays reached for `write_timeout`; [`Error::OutOfMemory`];
    /// the code `locked` if another process keeps the turn for `write_timeout` ([`Options::shared`]).
    pub fn begin(&self) -> Result<Transaction<'_>> {
        self.begin_until(None)
    }

    /// Begins a write transaction if none is under way and no background work holds the writer up; `None` otherwise.
    ///
    /// # Errors
    /// As [`Holotype::begin`], [`Error::TransactionOpen`] among them.
    pub fn try_begin(&self) -> Result<Option<Transaction<'_>>> {
        match self.begin_until(Some(Instant::now())) {
            Err(Error::WriterBusy | Error::Storage(holotype_storage::Error::TurnHeld { .. })) => Ok(None),
            begun => begun.map(Some),
        }
    }

    /// Begins a write transaction; waits for the one under way at most this long.
    ///
    /// # Errors
    /// As [`Holotype::begin`]; [`Error::WriterBusy`] if the one under way did not end.
    pub fn begin_timeout(&self, timeout: Duration) -> Result<Transaction<'_>> {
        // A time beyond the clock's end is waited for without one.
        self.begin_until(Instant::now().checked_add(timeout))
    }

    fn begin_until(&self, deadline: Option<Instant>) -> Result<Transaction<'_>> {
        if self.core.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.core.lock.check_process()?;
        self.core.lock.check_in_place()?;
        refill_memory()?;
        self.core.refuse_after_damage()?;
        self.core.refuse_within_transaction()?;
        if let Some(witness) = &self.core.witness {
            witness.catch_up()?;
        }
        let mut writer = self.core.admit(deadline)?;
        if !self.core.options.takes_turns() {
            if writer.poisoned.is_none() {
                self.core.finish_forget(&mut writer)?;
            }
            return Transaction::new(&self.core, writer, None);
        }
        drop(writer);
        let (turn, writer) = self.core.lock_newest_until(deadline)?;
        Transaction::new(&self.core, writer, turn)
    }

    /// A consistent view of what is committed; it never changes and holds up nobody. With [`Options::shared`] it has
    /// what other handles made durable before.
    pub fn snapshot(&self) -> Snapshot {
        if self.core.options.takes_turns() {
            // The next transaction reports a failure to read.
            let _ = self.refresh();
        }
        let core = Arc::clone(&self.core);
        let reader = ContentReader { log: Arc::clone(&core.log), own: OwnItems::new() };
        let state = core.published.load_full();
        Snapshot::new(core, state, reader).held()
    }

    /// The end of the log as an observer outside may keep it: position, transaction, hash.
    pub fn head(&self) -> Head {
        self.core.published.load().head
    }

    /// The report of opening.
    pub fn report(&self) -> &OpenReport {
        &self.core.report
    }

    /// A random number of the directory, which no copy of it has, although a copy has the same database id. `None`
    /// where the file system has no numbers for files, and for a reader of a directory that no writer opened yet.
    pub fn instance(&self) -> Option<[u8; 16]> {
        self.core.lock.instance().map(|instance| instance.number)
    }

    /// The path of the database.
    pub fn path(&self) -> &Path {
        &self.core.files.dir
    }

    /// Tells whether another handle has the database open for writing, and who took its turn last.
    ///
    /// # Errors
    /// When LOCK cannot be read.
    pub fn lease(&self) -> Result<Lease> {
        let status = self.core.lock.status()?;
        Ok(Lease {
            held: self.core.lock.has_other_writer()?,
            pid: status.map(|status| status.pid),
            since_us: status.map(|status| status.started_us),
        })
    }

    /// Writes a checkpoint now, merges what is due, and waits for both: the next opening has nothing to replay, and all
    /// derived files are as large as they become without further writes.
    pub fn checkpoint(&self) -> Result<()> {
        if self.core.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.core.lock.check_process()?;
        self.core.refuse_within_transaction()?;
        checkpoint::run(&self.core)?;
        merge::finish(&self.core)
    }

    /// Closes the database: writes a checkpoint and a clean end of the log, and reports what went wrong with that.
    /// Dropping the last handle does the same in silence. Merges that take long are left to the next opening.
    ///
    /// # Errors
    /// [`Error::Unfinished`] when everything is committed and only a derived file could not be written; others when the
    /// log could not be, or its files were replaced.
    pub fn close(self) -> Result<()> {
        close(&self.core)?;
        if Arc::strong_count(&self._closer) == 1 {
            give_back_lock(&self.core)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Holotype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let head = self.head();
        f.debug_struct("Holotype").field("path", &self.core.files.dir).field("commit", &head.commit.0).finish()
    }
}

fn close(core: &Arc<Core>) -> Result<()> {
    core.lock.check_process()?;
    if core.options.read_only {
        return Ok(());
    }
    if core.options.takes_turns() {
        return close_shared(core);
    }
    // A checkpoint that failed in the background is tried again here, where its failure can be reported.
    let paused = core.merger.pause();
    let _ = core.checkpointer.task.wait();
    // Whatever fails below, no merge holds the handle any longer.
    let stopped = core.merger.stop();
    merge::wait(core);
    drop(stopped);
    write_derived(core)?;
    drop(paused);
    let writer = core.lock_writer();
    if let Some(detail) = &writer.poisoned {
        // The log holds a transaction that the state lacks: a clean end would tell the next opening to leave it unread.
        return Err(Error::Poisoned { detail: detail.clone() });
    }
    // Another handle wrote meanwhile: what it wrote is in no checkpoint yet, and the last handle closes.
    if writer.tail_records > 0 || writer.checkpoint_running {
        return Ok(());
    }
    let before = core.log.end();
    core.log.close()?;
    core.lock.set_closed(core.log.durable())?;
    if core.log.end() == before {
        return Ok(());
    }
    checkpoint::record_clean_end(core, &writer.state)?;
    checkpoint::pack_catalog(core)
}

/// Gives the lock of a closed database back, although snapshots may hold the core, and with it the lock, for long.
fn give_back_lock(core: &Arc<Core>) -> Result<()> {
    if core.options.read_only {
        return Ok(());
    }
    if !core.options.takes_turns() {
        if !core.log.is_closed() {
            return Ok(());
        }
        // Only this handle's thread in `close` and the closer have it, unless there are snapshots.
        if Arc::strong_count(core) > 2 {
            // The snapshots read the catalog through the handle that writes it. They go on with the present file, of
            // which the next opening finds a copy.
            let (vfs, path) = (core.files.vfs.as_ref(), core.files.catalog());
            let packed = checkpoint::catalog(core)?.pack(vfs).inspect_err(|_| Catalog::discard(vfs, &path));
            packed.map_err(|error| Error::Unfinished { source: Box::new(error.into()) })?;
        }
    }
    core.lock.give_back();
    Ok(())
}

/// Writes the checkpoint of a closing handle, and merges what takes a moment. Once the log is durable, a failure to do
/// so loses nothing.
fn write_derived(core: &Arc<Core>) -> Result<()> {
    let written = checkpoint::run(core).and_then(|()| merge::stop(core));
    written.map_err(|error| match core.lock.check_in_place() {
        Ok(()) if core.log.sync_to(core.log.end()).is_ok() => Error::Unfinished { source: Box::new(error) },
        _ => error,
    })
}

/// Closes a handle that takes turns. Only the last one writes a clean end, unless it only appends; a checkpoint that is
/// due is written by each.
fn close_shared(core: &Arc<Core>) -> Result<()> {
    let paused = core.merger.pause();
    let _ = core.checkpointer.task.wait();
    let stopped = core.merger.stop();
    merge::wait(core);
    drop(stopped);
    let appends = core.options.append_only;
    let is_last = !appends && !core.lock.has_other_writer()?;
    if is_last || core.is_checkpoint_due(&core.lock_writer()) {
        write_derived(core)?;
    } else if appends {
        // Every commit had the turn, and gave it back with the durability that was asked for.
        return Ok(());
    }
    drop(paused);
    let (turn, mut writer) = core.lock_newest()?;
    core.log.sync_to(core.log.end())?;
    core.record_durable(writer.state.head);
    let has_all = writer.tail_records == 0 && !writer.checkpoint_running;
    // A process that opens the database from now on waits for the turn.
    if appends || !has_all || core.lock.has_other_writer()? {
        return Ok(());
    }
    let before = core.log.end();
    core.log.close()?;
    core.lock.set_closed(core.log.durable())?;
    if core.log.end() > before {
        let _maintenance = core.maintain_within(&mut writer)?;
        checkpoint::record_clean_end(core, &writer.state)?;
    }
    drop(writer);
    drop(turn);
    Ok(())
}

impl Drop for Closer {
    fn drop(&mut self) {
        if self.core.lock.check_process().is_err() {
            // Locks, files and threads are those of the process that forked this one: nothing of them is closed here.
            std::mem::forget(Arc::clone(&self.core));
            return;
        }
        if self.core.lock.is_released() {
            return;
        }
        let _ = close(&self.core);
        // Even where that failed before it came to the log: nothing may be left to be written when the lock is gone.
        let _ = self.core.log.flush();
    }
}
