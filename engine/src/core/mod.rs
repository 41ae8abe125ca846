//! The core of an open database, which every handle and every background thread shares.
//!
//! ```text
//! begin ── validate, apply ── append ──┬── wait for the sync ── publish ── readers see it
//!   (writer's lock)                    └── (lock released: the next transaction begins)
//! ```
//!
//! The core owns the files, the log, the published state and the writer's state. It knows neither how transactions are
//! validated (`write`) nor how derived files are made (`derive`); both build on it.
//!
//! Invariants:
//! 1. `Writer::state` is the newest appended state; `published` is the newest state whose durability is reached. States
//!    are published in the order in which they were appended.
//! 2. The log is the database: opening rebuilds any derived file that was deleted.

pub(crate) mod analysis_worker;
pub(crate) mod background_task;
pub(crate) mod changed;
pub(crate) mod checkpointer;
pub(crate) mod cut_files;
pub(crate) mod field_columns;
pub(crate) mod files;
pub(crate) mod handle;
pub(crate) mod known_damage;
pub(crate) mod memory;
pub(crate) mod merger;
pub(crate) mod open_transactions;
pub(crate) mod quarantined;
pub(crate) mod throttle;
pub(crate) mod turns;
pub(crate) mod witness;
pub(crate) mod writer_lock;

use crate::core::analysis_worker::AnalysisWorker;
use crate::core::changed::Changed;
use crate::core::checkpointer::Checkpointer;
use crate::core::field_columns::FieldColumns;
use crate::core::files::Files;
use crate::core::known_damage::KnownDamage;
use crate::core::merger::Merger;
use crate::core::open_transactions::WritingThread;
use crate::core::quarantined::Quarantined;
use crate::core::throttle::WriteThrottle;
use crate::core::turns::Turns;
use crate::core::witness::Witness;
use crate::core::writer_lock::{WriterGuard, WriterLock};
use crate::options::{Durability, Options};
use crate::state::State;
use crate::state::frame_texts::FrameTextCache;
use crate::state::pages::OpenPage;
use crate::state::record_tree::TreeTail;
use crate::{Error, Result};
use arc_swap::{ArcSwap, ArcSwapOption};
use holotype_index::scorer::BatchScorer;
use holotype_storage::catalog::Catalog;
use holotype_storage::lock::Lock;
use holotype_storage::log::{Draft, Head, Log, Lsn};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// The work of opening to bring the database up to date.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// Transactions replayed from the log because no checkpoint contained them.
    pub replayed: u64,
    /// Why the derived files were rebuilt, if they were.
    pub rebuilt: Option<String>,
    /// Number of intact vector and word segments that a rebuild reused.
    pub reused: usize,
    /// The repairs of recovery at the end of the log, in sentences. Empty if nothing had to be done.
    pub recovery: Vec<String>,
    /// Transactions of the log that cannot be applied and were left out, each with its commit and the reason. Their
    /// commits reported an error when they were made; [`salvage`](crate::salvage) writes a database without them.
    pub skipped: Vec<String>,
    /// The damage of the log. Set only for a database that was opened read-only despite the damage.
    pub damage: Option<String>,
    /// A sentence if the directory is a copy that no writer opened before this one.
    pub copied: Option<String>,
}

impl OpenReport {
    /// The faults of the log that opening found, in sentences. Answers may lack what stood there.
    pub fn faults(&self) -> Vec<String> {
        let damage = self.damage.iter();
        let mut faults: Vec<String> = damage
            .map(|damage| format!("the log is damaged, and what lies behind the damage is not shown: {damage}"))
            .collect();
        faults.extend(self.skipped.iter().map(|it| format!("left out, because it cannot be applied: {it}")));
        faults
    }
}

pub(crate) struct Core {
    pub(crate) files: Files,
    pub(crate) options: Options,
    /// Answers searches by vector that are asked together.
    pub(crate) scorer: Arc<dyn BatchScorer>,
    pub(crate) log: Arc<Log>,
    /// Used by the writer. Readers use the catalog snapshot in their own state. A handle that takes turns has it only
    /// while it changes derived files.
    pub(crate) catalog: ArcSwapOption<Catalog>,
    writer: WriterLock<Writer>,
    writing: WritingThread,
    pub(crate) published: ArcSwap<State>,
    /// Wakes threads that wait for a newer published state.
    pub(crate) changed: Changed,
    pub(crate) report: OpenReport,
    pub(crate) damage: KnownDamage,
    pub(crate) quarantined: Quarantined,
    /// Columns of declared fields.
    pub(crate) fields: FieldColumns,
    /// Appended states that are not durable enough to be published, oldest first.
    pending: Mutex<VecDeque<Pending>>,
    pub(crate) lock: Lock,
    pub(crate) witness: Option<Witness>,
    pub(crate) turns: Turns,
    /// Counts `forget` operations. A snapshot taken before the newest one must not read content any more.
    pub(crate) forgets: AtomicU64,
    /// True while a transaction of this handle erases content and makes derived files without it.
    pub(crate) erasing: AtomicBool,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) merger: Merger,
    /// Hashes of records behind those in the catalog.
    pub(crate) tree_tail: TreeTail,
    /// The tokens of texts that recalls compared, kept between questions.
    pub(crate) frame_texts: FrameTextCache,
    pub(crate) words: AnalysisWorker,
    /// Holds new transactions back while a limit is exceeded.
    pub(crate) throttle: Arc<WriteThrottle>,
    /// The past state requested last, with the present state it was computed from.
    past: Mutex<Option<Past>>,
    /// Held while the log is being truncated at its start.
    pub(crate) retaining: Mutex<()>,
}

/// A state as of an earlier commit.
struct Past {
    of: Weak<State>,
    commit: u64,
    state: Arc<State>,
}

/// Data that only the holder of the writer's lock may change.
pub(crate) struct Writer {
    pub(crate) state: Arc<State>,
    /// The open page of the last written trace, for the next transaction.
    pub(crate) open_page: Option<OpenPage>,
    /// The last transaction's draft, emptied, so that the next one reuses its allocation.
    pub(crate) draft: Draft,
    /// Log records since the last checkpoint began.
    pub(crate) tail_records: u64,
    pub(crate) tail_bytes: u64,
    /// Bytes of log that the running checkpoint will contain.
    pub(crate) frozen_bytes: u64,
    pub(crate) checkpoint_running: bool,
    /// Number of full rebuilds of the derived files since opening.
    pub(crate) rebuild_count: u64,
    /// Why writing is disabled, if it is.
    pub(crate) poisoned: Option<String>,
}

/// The parts of a database as opening found or built them.
pub(crate) struct Opened {
    pub(crate) files: Files,
    pub(crate) options: Options,
    pub(crate) log: Arc<Log>,
    pub(crate) catalog: Option<Catalog>,
    pub(crate) state: State,
    pub(crate) lock: Lock,
    pub(crate) witness: Option<Witness>,
    pub(crate) report: OpenReport,
    /// The highest generation ever seen in the name of a derived file.
    pub(crate) generation: u64,
}

struct Pending {
    end: Lsn,
    durability: Durability,
    state: Arc<State>,
}

impl Core {
    /// Builds the core of an opened database. `replayed` is the number of records that no checkpoint contains.
    pub(crate) fn new(opened: Opened, replayed: u64) -> Arc<Core> {
        let Opened { files, options, log, catalog, state, lock, witness, report, generation } = opened;
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
            rebuild_count: 0,
            poisoned: None,
        };
        let checkpointer = Checkpointer::starting_at(generation);
        let frame_texts = FrameTextCache::new(options.memory_limit);
        let core = Arc::new(Core {
            files,
            scorer: options.accelerator.scorer(),
            options,
            log,
            catalog: ArcSwapOption::new(catalog.map(Arc::new)),
            writer: WriterLock::new(writer),
            writing: WritingThread::default(),
            published: ArcSwap::new(state),
            changed: Changed::default(),
            report,
            damage: KnownDamage::default(),
            quarantined: Quarantined::default(),
            fields: FieldColumns::default(),
            pending: Mutex::default(),
            lock,
            witness,
            turns: Turns::default(),
            forgets,
            erasing: AtomicBool::new(false),
            checkpointer,
            merger: Merger::default(),
            tree_tail: TreeTail::default(),
            frame_texts,
            past: Mutex::default(),
            retaining: Mutex::default(),
            words: AnalysisWorker::default(),
            throttle: Arc::default(),
        });
        core.analyse_soon(&core.published.load());
        if core.lock.is_shared() {
            // Opening had both.
            core.lock.end_maintenance();
            core.lock.give_turn(core.log.durable(), core.log.end());
        }
        core
    }

    pub(crate) fn now(&self) -> i64 {
        self.options.clock.now()
    }

    /// The state after an earlier commit. The last one requested stays cached until the present state changes.
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

    /// Drops the cached past state.
    pub(crate) fn forget_past(&self) {
        *self.past.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for the writer's lock.
    pub(crate) fn lock_writer(&self) -> WriterGuard<'_, Writer> {
        self.writer.lock()
    }

    /// Waits for the writer's lock, at most until `deadline`.
    ///
    /// # Errors
    /// [`Error::WriterBusy`].
    pub(crate) fn lock_writer_until(&self, deadline: Option<Instant>) -> Result<WriterGuard<'_, Writer>> {
        self.writer.lock_until(deadline).ok_or(Error::WriterBusy)
    }

    /// The writer's lock, unless another thread has it.
    pub(crate) fn try_lock_writer(&self) -> Option<WriterGuard<'_, Writer>> {
        self.writer.try_acquire()
    }

    /// Takes over an appended transaction. Readers see it once it is as durable as requested. Returns true if a
    /// checkpoint is due.
    pub(crate) fn appended(
        self: &Arc<Self>,
        mut writer: WriterGuard<'_, Writer>,
        state: Arc<State>,
        end: Lsn,
        durability: Durability,
        records: u64,
        bytes: u64,
    ) -> Result<bool> {
        writer.state = Arc::clone(&state);
        writer.tail_records += records;
        writer.tail_bytes += bytes;
        self.enqueue(Pending { end, durability, state: Arc::clone(&state) });
        let start = self.is_checkpoint_due(&writer) && !writer.checkpoint_running;
        drop(writer);
        self.analyse_soon(&state);
        match durability {
            Durability::Sync => {
                self.log.sync_to(end)?;
                self.record_durable(state.head);
            }
            Durability::Flush => self.log.flush()?,
            Durability::None => {}
        }
        self.publish();
        Ok(start)
    }

    /// True if as much is in no checkpoint as makes one due.
    pub(crate) fn is_checkpoint_due(&self, writer: &Writer) -> bool {
        writer.tail_bytes >= self.options.checkpoint_bytes || writer.tail_records >= self.options.checkpoint_records
    }

    /// Replaces the writer's state by an equal one backed by other files. Readers get it in queue order.
    pub(crate) fn replace(&self, writer: &mut Writer, state: State) {
        let state = Arc::new(state);
        writer.state = Arc::clone(&state);
        self.enqueue(Pending { end: Lsn(0), durability: Durability::None, state });
    }

    /// Schedules background analysis of the queued words of a state.
    pub(crate) fn analyse_soon(&self, state: &State) {
        if self.options.append_only {
            // Whoever reads the words analyses them.
            return;
        }
        for tail in state.layers.iter().flat_map(|layer| &layer.words.tails) {
            self.words.wake(tail, tail.queued_len());
        }
    }

    fn enqueue(&self, pending: Pending) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push_back(pending);
    }

    /// Publishes the newest state whose durability is reached.
    pub(crate) fn publish(&self) {
        let durable = self.log.durable();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |one: &Pending| one.durability == Durability::Sync && one.end > durable;
        let count = pending.iter().position(waits).unwrap_or(pending.len());
        let mut shown = pending.drain(..count);
        let Some(newest) = shown.next_back() else { return };
        // Freeing skipped and replaced states may take long, so it happens after the lock is released.
        let skipped: Vec<Pending> = shown.collect();
        let hidden = self.published.swap(Arc::clone(&newest.state));
        drop(pending);
        self.changed.notify();
        drop((skipped, hidden));
        // Merging here keeps the work out of the next transaction, which would do it under the writer's lock.
        newest.state.rows.merge();
        newest.state.attributes.merge();
    }

    /// Writes the durable position into the status block of LOCK, and a durable head into the witness, as evidence for
    /// the next opening.
    ///
    /// LOCK is a hint: a write that fails is repeated by the next call, and fails neither a commit nor an erasure.
    pub(crate) fn record_durable(&self, head: Head) {
        let _ = self.lock.set_durable(self.log.durable());
        if let Some(witness) = &self.witness {
            witness.record(head);
        }
    }
}
