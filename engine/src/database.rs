//! The database handle: opening, the one writer, publishing states, checkpoints.
//!
//! ```text
//! begin ── validate, apply ── append ──┬── wait for the sync ── publish ── readers see it
//!   (writer's lock)                    └── (lock given up: the next transaction begins)
//! ```
//!
//! Invariants:
//! 1. `Writer::state` is the newest appended state; `published` the newest whose durability is reached. States are
//!    published in the order they were appended.
//! 2. A checkpoint changes no answer: it only moves state from the overlay into derived files, and names them in one
//!    catalog transaction.
//! 3. The log is the database: every derived file can be deleted, and opening brings it back.

use crate::attributes::AttributeStore;
use crate::checkpoint::{self, Checkpointer};
use crate::content::{ContentReader, OwnItems};
use crate::files::Files;
use crate::layers::{analyzer, empty_layers};
use crate::opening::Derive;
use crate::options::{Durability, Options};
use crate::pages::OpenPage;
use crate::pressure::Gate;
use crate::proof::tree::TreeTail;
use crate::rederive::rederive;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::tables::Meta;
use crate::transaction::Transaction;
use crate::word_worker::WordWorker;
use crate::writer_lock::WriterLock;
use crate::{Error, Result};
use arc_swap::{ArcSwap, ArcSwapOption};
use holotype_storage::catalog::{Catalog, CatalogOptions};
use holotype_storage::lock::Lock;
use holotype_storage::log::{Draft, Head, Log, LogLimits, LogOptions, Lsn, Redaction};
use holotype_storage::overlay::View;
use holotype_storage::vfs::{OsVfs, Vfs};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An open database. Clones share it; the last one to go closes it.
#[derive(Clone)]
pub struct Holotype {
    pub(crate) inner: Arc<Inner>,
    _closer: Arc<Closer>,
}

/// What opening did to make the database whole.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// Transactions read from the log because no checkpoint held them.
    pub replayed: u64,
    /// Why the derived files were made anew, if they were.
    pub rebuilt: Option<String>,
    /// How many segments of vectors and words were kept then, for they are right.
    pub kept: usize,
    /// What recovery did with the end of the log, in words; nothing when there was nothing to do.
    pub recovery: Vec<String>,
    /// Where the log is damaged, when it was opened for reading only in spite of that.
    pub damage: Option<String>,
}

pub(crate) struct Inner {
    pub(crate) files: Files,
    pub(crate) options: Options,
    pub(crate) log: Arc<Log>,
    /// The writer's; readers have the rows they read in their states.
    pub(crate) catalog: ArcSwapOption<Catalog>,
    writer: WriterLock<Writer>,
    pub(crate) published: ArcSwap<State>,
    pub(crate) report: OpenReport,
    /// Appended states whose turn to be seen has not come, oldest first.
    pending: Mutex<VecDeque<Pending>>,
    pub(crate) lock: Lock,
    /// How often something was forgotten: snapshots that do not know of it end.
    pub(crate) forgets: AtomicU64,
    pub(crate) checkpointer: Checkpointer,
    /// Records' hashes behind those that the catalog keeps.
    pub(crate) tree_tail: TreeTail,
    pub(crate) words: WordWorker,
    /// Where transactions wait that may not begin yet.
    pub(crate) gate: Arc<Gate>,
    /// The past state that was asked for last, with the state it is the past of.
    past: Mutex<Option<Past>>,
    /// Held while the beginning of the log is being cut off.
    pub(crate) retaining: Mutex<()>,
}

/// A state as of an earlier commit.
struct Past {
    of: Weak<State>,
    commit: u64,
    state: Arc<State>,
}

/// What the holder of the writer's lock may change.
pub(crate) struct Writer {
    pub(crate) state: Arc<State>,
    /// What the next transaction takes over of the page that the last trace joined.
    pub(crate) open_page: Option<OpenPage>,
    /// The last transaction's draft, empty: the next one writes in its room.
    pub(crate) draft: Draft,
    /// Log written since the last checkpoint began.
    pub(crate) tail_records: u64,
    pub(crate) tail_bytes: u64,
    /// What of the log the checkpoint under way will hold.
    pub(crate) frozen_bytes: u64,
    pub(crate) checkpoint_running: bool,
    /// How often all derived files were made anew since opening.
    pub(crate) rederived: u64,
    /// Why nothing more may be written.
    pub(crate) poisoned: Option<String>,
}

/// The parts of a database as opening found or made them.
pub(crate) struct Opened {
    pub(crate) files: Files,
    pub(crate) options: Options,
    pub(crate) log: Log,
    pub(crate) catalog: Option<Catalog>,
    pub(crate) state: State,
    pub(crate) lock: Lock,
    pub(crate) report: OpenReport,
    /// The newest generation a derived file was ever seen with.
    pub(crate) generation: u64,
}

struct Pending {
    end: Lsn,
    durability: Durability,
    state: Arc<State>,
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
        }
        if let Some(profile) = &options.profile {
            crate::settings::canonical("profile", profile)?;
        }
        files.create_dirs()?;
        let lock = Lock::writer(files.vfs.as_ref(), &files.lock())?;
        let mut id = [0; 16];
        getrandom::fill(&mut id)
            .map_err(|error| Error::File { path: files.dir.clone(), source: std::io::Error::other(error) })?;
        let limits = LogLimits { max_transaction_bytes: options.max_transaction_bytes, ..LogLimits::default() };
        let log_options = LogOptions { page_size: options.page_size, limits, ..LogOptions::new(id) };
        let log = Log::create(Arc::clone(&files.vfs), &files.log_dir(), &log_options)?;
        let catalog_options = CatalogOptions { cache_len: options.cache_len(), ..CatalogOptions::default() };
        let catalog = Catalog::create(files.vfs.as_ref(), &files.catalog(), id, &catalog_options)?;
        let mut state = empty_state(Some(&catalog))?;
        state.head = log.head();
        let opened = Opened {
            files,
            options: options.clone(),
            log,
            catalog: Some(catalog),
            state,
            lock,
            report: OpenReport::default(),
            generation: 0,
        };
        let database = Holotype::start(opened, 0);
        let mut transaction = database.begin()?;
        if let Some(space) = &options.space {
            transaction.define_space(space)?;
        }
        if let Some(profile) = &options.profile {
            transaction.set("profile", profile)?;
        }
        transaction.commit(Durability::Sync)?;
        Ok(database)
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
        Holotype::derive_on(vfs, path.as_ref(), options, Derive::AsFound)
    }

    /// Opens a database after making its derived files again from the log: the catalog, the columns, and every segment of vectors
    /// or words that does not prove to be right. One that does is kept: all its bytes match their checksums, the log passes
    /// through the commit that it was made at, and it holds nothing that was forgotten since.
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
        Holotype::derive_on(vfs, path.as_ref(), options, Derive::Anew)
    }

    /// Opens a database after throwing away every derived file, whether it is right or not, so that all are made again from the
    /// log.
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
        Holotype::derive_on(vfs, path.as_ref(), options, Derive::AllAnew)
    }

    fn derive_on(vfs: Arc<dyn Vfs>, path: &Path, options: Options, derive: Derive) -> Result<Holotype> {
        let files = Files::new(vfs, path);
        if !files.exists()? {
            return Err(Error::NotFound { path: path.to_owned() });
        }
        crate::opening::open(files, options, derive)
    }

    /// The handle of what was opened, with `replayed` records that no checkpoint holds.
    pub(crate) fn start(opened: Opened, replayed: u64) -> Holotype {
        let Opened { files, options, log, catalog, state, lock, report, generation } = opened;
        let forgets = AtomicU64::new(state.meta.forgets);
        let state = Arc::new(state);
        let writer = Writer {
            state: Arc::clone(&state),
            open_page: None,
            draft: Draft::default(),
            tail_records: replayed,
            tail_bytes: 0,
            frozen_bytes: 0,
            checkpoint_running: false,
            rederived: 0,
            poisoned: None,
        };
        let checkpointer = Checkpointer::starting_at(generation);
        let inner = Arc::new(Inner {
            files,
            options,
            log: Arc::new(log),
            catalog: ArcSwapOption::new(catalog.map(Arc::new)),
            writer: WriterLock::new(writer),
            published: ArcSwap::new(state),
            report,
            pending: Mutex::default(),
            lock,
            forgets,
            checkpointer,
            tree_tail: TreeTail::default(),
            past: Mutex::default(),
            retaining: Mutex::default(),
            words: WordWorker::default(),
            gate: Arc::default(),
        });
        inner.analyse_soon(&inner.published.load());
        let closer = Arc::new(Closer { inner: Arc::clone(&inner) });
        Holotype { inner, _closer: closer }
    }

    /// Begins a write transaction; waits for the one under way.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Busy`] when a limit stays reached for `write_timeout`.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        if self.inner.options.read_only {
            return Err(Error::ReadOnly);
        }
        Ok(Transaction::new(&self.inner, self.inner.admit()?))
    }

    /// A consistent view of what is committed; it never changes and holds up nobody.
    pub fn snapshot(&self) -> Snapshot {
        let inner = Arc::clone(&self.inner);
        let reader = ContentReader { log: Arc::clone(&inner.log), own: OwnItems::new() };
        let state = inner.published.load_full();
        Snapshot::new(inner, state, reader).held()
    }

    /// The end of the log as an observer outside may keep it: position, transaction, hash.
    pub fn head(&self) -> Head {
        self.inner.published.load().head
    }

    /// What opening did.
    pub fn report(&self) -> &OpenReport {
        &self.inner.report
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.inner.files.dir
    }

    /// Writes a checkpoint now and waits for it: the next opening has nothing to replay.
    pub fn checkpoint(&self) -> Result<()> {
        if self.inner.options.read_only {
            return Err(Error::ReadOnly);
        }
        checkpoint::run(&self.inner)
    }

    /// Closes the database: writes a checkpoint and a clean end of the log, and reports what went wrong with that.
    /// Dropping the last handle does the same in silence.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }
}

impl std::fmt::Debug for Holotype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let head = self.head();
        f.debug_struct("Holotype").field("path", &self.inner.files.dir).field("commit", &head.commit.0).finish()
    }
}

/// A state with nothing in it.
pub(crate) fn empty_state(catalog: Option<&Catalog>) -> Result<State> {
    Ok(State {
        meta: Meta::default(),
        head: Head::default(),
        rows: View::new(catalog.map(Catalog::snapshot).transpose()?),
        attributes: AttributeStore::default(),
        layers: empty_layers(analyzer("english")),
        unsettled: Default::default(),
        disputed: Default::default(),
        changes: Default::default(),
        sealed: Default::default(),
        is_past: false,
        hot: None,
        at_hand: Default::default(),
    })
}

impl Inner {
    pub(crate) fn now(&self) -> i64 {
        self.options.clock.now()
    }

    /// A state as it stood after an earlier commit. The last one asked for is kept as long as the present stays what it is.
    pub(crate) fn past(&self, present: &Arc<State>, commit: u64) -> Result<Arc<State>> {
        if let Some(floor) = self.log.floor().filter(|floor| commit < floor.head.commit.0) {
            return Err(Error::BeforeHistory { what: format!("commit {commit}"), since: floor.head.commit.0 });
        }
        let known = |past: &&Past| past.commit == commit && Weak::as_ptr(&past.of) == Arc::as_ptr(present);
        let mut kept = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(past) = kept.as_ref().filter(known) {
            return Ok(Arc::clone(&past.state));
        }
        let state = Arc::new(present.as_of(commit)?);
        *kept = Some(Past { of: Arc::downgrade(present), commit, state: Arc::clone(&state) });
        Ok(state)
    }

    /// Keeps no past state any more.
    pub(crate) fn forget_past(&self) {
        *self.past.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for the writer's lock.
    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// Takes over a transaction that was appended: readers see it once it is as durable as asked.
    pub(crate) fn appended(
        self: &Arc<Self>,
        mut writer: MutexGuard<'_, Writer>,
        state: Arc<State>,
        end: Lsn,
        durability: Durability,
        records: u64,
        bytes: u64,
    ) -> Result<()> {
        writer.state = Arc::clone(&state);
        writer.tail_records += records;
        writer.tail_bytes += bytes;
        self.enqueue(Pending { end, durability, state: Arc::clone(&state) });
        let due = writer.tail_bytes >= self.options.checkpoint_bytes
            || writer.tail_records >= self.options.checkpoint_records;
        let start = due && !writer.checkpoint_running;
        drop(writer);
        self.analyse_soon(&state);
        match durability {
            Durability::Sync => {
                self.log.sync_to(end)?;
                self.note_durable()?;
            }
            Durability::Flush => self.log.flush()?,
            Durability::None => {}
        }
        self.publish();
        if start {
            self.checkpointer.start(self);
        }
        Ok(())
    }

    /// Carries out what a transaction forgets: erases it from the log, makes everything derived anew without it, and ends
    /// the snapshots taken before. What it was in memory is seen even if the files could not be made; the next opening
    /// makes them then.
    pub(crate) fn forgotten(
        self: &Arc<Self>,
        mut writer: MutexGuard<'_, Writer>,
        state: State,
        redaction: &Redaction,
    ) -> Result<()> {
        let end = state.head.position;
        let erased = self.log.sync_to(end).map_err(Error::from).and_then(|()| self.note_durable()).and_then(|()| {
            self.forgets.store(state.meta.forgets, Ordering::Release);
            let _unpinned = Lock::unpinned(self.files.vfs.as_ref(), &self.files.lock())?;
            self.files.remove_quarantined()?;
            Ok(self.log.complete_redaction(redaction)?)
        });
        if let Err(error) = erased {
            writer.poisoned = Some(error.to_string());
            return Err(error);
        }
        self.note_durable()?;
        let made = rederive(self, &mut writer, &state, false);
        let (state, made) = match made {
            Ok(fresh) => (fresh, Ok(())),
            Err(error) => (state, Err(error)),
        };
        self.analyse_soon(&state);
        self.replace(&mut writer, state);
        drop(writer);
        self.publish();
        made
    }

    /// Replaces the writer's state by an equal one in other files; readers get it in its turn.
    pub(crate) fn replace(&self, writer: &mut Writer, state: State) {
        let state = Arc::new(state);
        writer.state = Arc::clone(&state);
        self.enqueue(Pending { end: Lsn(0), durability: Durability::None, state });
    }

    /// Has the words analysed in the background that wait in the tails of a state.
    fn analyse_soon(&self, state: &State) {
        for tail in state.layers.iter().flat_map(|layer| &layer.words.tails) {
            self.words.wake(tail, tail.queued_len());
        }
    }

    fn enqueue(&self, pending: Pending) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push_back(pending);
    }

    /// Shows readers the newest state whose turn has come.
    pub(crate) fn publish(&self) {
        let durable = self.log.durable();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |one: &Pending| one.durability == Durability::Sync && one.end > durable;
        let count = pending.iter().position(waits).unwrap_or(pending.len());
        let mut shown = pending.drain(..count);
        let Some(newest) = shown.next_back() else { return };
        // Letting go of what nobody saw, or sees any more, may take a while: nobody else is to wait for that.
        let skipped: Vec<Pending> = shown.collect();
        let hidden = self.published.swap(Arc::clone(&newest.state));
        drop(pending);
        drop((skipped, hidden));
        // Transactions to come go on from what this one has: they are to find it done, and hold the writer's lock for less.
        newest.state.rows.merge();
        newest.state.attributes.merge();
    }

    /// Writes the durable position into the lock's status block: evidence, at the next opening, of what was synced.
    pub(crate) fn note_durable(&self) -> Result<()> {
        Ok(self.lock.set_durable(self.log.durable())?)
    }

    fn close(self: &Arc<Self>) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        // What failed in the background is tried again here, where its failure can be told.
        let _ = self.checkpointer.wait();
        checkpoint::run(self)?;
        let writer = self.lock_writer();
        // Another handle wrote meanwhile: what it wrote is in no checkpoint yet, and the last handle closes.
        if writer.tail_records > 0 || writer.checkpoint_running {
            return Ok(());
        }
        let before = self.log.end();
        self.log.close()?;
        self.lock.set_closed(self.log.durable())?;
        if self.log.end() == before {
            return Ok(());
        }
        checkpoint::note_clean_end(self, &writer.state)
    }
}

/// Closes the database when the last handle goes. Background work holds the inner part only, never this.
struct Closer {
    inner: Arc<Inner>,
}

impl Drop for Closer {
    fn drop(&mut self) {
        let _ = self.inner.close();
        // Even where that failed before it came to the log: nothing may be left to be written when the lock is gone.
        let _ = self.inner.log.flush();
    }
}
