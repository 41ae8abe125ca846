//! Changes: the history after a commit, in order, and waiting for more of it.
//!
//! The log is the history, so nothing is kept for subscribers: [`Holotype::changes`] reads it one transaction at a
//! time, and a subscriber that remembers the commit of the last change it handled continues after it, in another
//! process as well.
//!
//! ```
//! use holotype::{Change, Durability, Holotype, NewTrace, Options};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
//! let since = database.head().commit.0;
//! let mut transaction = database.begin()?;
//! transaction.record(NewTrace::turn("trip-42", "UA123 costs $450").key("t1"))?;
//! transaction.commit(Durability::Sync)?;
//!
//! let added: Vec<String> = database
//!     .changes(since)?
//!     .filter_map(|change| match change.map(|change| change.what) {
//!         Ok(Change::Added { key, .. }) => Some(Ok(key)),
//!         Ok(_) => None,
//!         Err(error) => Some(Err(error)),
//!     })
//!     .collect::<holotype::Result<_>>()?;
//! assert_eq!(added, ["t1"]);
//! # Ok::<(), holotype::Error>(())
//! ```

use crate::core::handle::Holotype;
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Status};
use crate::model::space::Space;
use crate::model::time::{Timestamp, timestamp};
use crate::read::snapshot::Snapshot;
use crate::records::record::{self, EffectiveRecord, Record, bad_byte};
use crate::write::receipt;
use crate::write::transaction::Mark;
use crate::{Error, Result};
use holotype_storage::log::{Lsn, Transactions};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The pauses between two looks at what other processes made durable: short at first, then longer.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A change with the commit that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommittedChange {
    /// The number of the commit. To continue after this commit, pass it to [`Holotype::changes`].
    pub commit: u64,
    /// The clock of the commit, in microseconds since the epoch.
    pub time: i64,
    /// The change.
    pub what: Change,
}

impl CommittedChange {
    /// Its clock as a [`Timestamp`]; `None` only for a log whose clock no [`Timestamp`] can show.
    pub fn timestamp(&self) -> Option<Timestamp> {
        timestamp(self.time)
    }
}

/// One change of a database. Keys are those of the snapshot that the changes were read from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// An item was recorded or remembered.
    Added {
        /// Its number.
        item: ItemId,
        /// The key it was written with.
        key: String,
        /// Its kind.
        kind: Kind,
    },
    /// The status, the utility or the credit of an item was marked.
    Marked {
        /// The item.
        item: ItemId,
        /// The mark.
        mark: Mark,
        /// The stated reason.
        because: Option<String>,
    },
    /// An item was retired: superseded, merged, pruned or deactivated.
    Retired {
        /// The item.
        item: ItemId,
        /// The item that replaces it.
        by: Option<ItemId>,
        /// The stated reason.
        because: Option<String>,
    },
    /// A retired item is active again.
    Restored {
        /// The item.
        item: ItemId,
        /// The stated reason.
        because: Option<String>,
    },
    /// Two items were linked.
    Linked {
        /// The item at which the edge begins.
        from: ItemId,
        /// The type of the edge.
        edge: Edge,
        /// The item at which it ends.
        to: ItemId,
    },
    /// A link was removed.
    Unlinked {
        /// The item at which the edge began.
        from: ItemId,
        /// The type of the edge.
        edge: Edge,
        /// The item at which it ended.
        to: ItemId,
    },
    /// An existing item got further pointers to evidence.
    Cited {
        /// The item that cites.
        item: ItemId,
    },
    /// Pointers of an item to evidence were removed.
    Uncited {
        /// The item that cited.
        item: ItemId,
    },
    /// An item states a claim.
    Claimed {
        /// The item.
        item: ItemId,
        /// The subject of the claim.
        name: String,
        /// The claimed value.
        value: String,
    },
    /// A key names another item from here on.
    Rekeyed {
        /// The key.
        key: String,
        /// The item that has it now.
        item: ItemId,
    },
    /// An episode was opened, changed or closed.
    Episode {
        /// Its id.
        id: String,
        /// True if it is open.
        open: bool,
    },
    /// A memory page was closed, or its state changed.
    Page {
        /// Its key.
        key: String,
        /// True if it has a summary.
        summarised: bool,
    },
    /// A setting was changed.
    Set {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// The embedding space was defined.
    SpaceDefined(Space),
    /// All vectors were made anew, in this space.
    Reembedded(Space),
    /// A receipt was stored.
    Receipt {
        /// Its id.
        id: String,
    },
    /// The content of an item was erased.
    Forgotten {
        /// The item.
        item: ItemId,
        /// The stated reason.
        because: String,
    },
}

/// The changes after a commit, oldest first. Holds one transaction in memory at a time. Ends after the first error.
#[derive(Debug)]
pub struct Changes {
    transactions: Option<Transactions>,
    /// The first commit that counts and the last.
    first: u64,
    last: u64,
    ready: VecDeque<CommittedChange>,
}

impl Changes {
    /// The last commit that these changes include.
    pub fn until(&self) -> u64 {
        self.last
    }

    /// Reads transactions until one has a change.
    fn fill(&mut self) -> Result<()> {
        while self.ready.is_empty() {
            let Some(transaction) = self.transactions.as_mut().and_then(Iterator::next).transpose()? else {
                return Ok(());
            };
            let (commit, time) = (transaction.number.0, transaction.time_us);
            if commit >= self.last {
                self.transactions = None;
            }
            if !(self.first..=self.last).contains(&commit) {
                continue;
            }
            for stored in &transaction.records {
                let Some(EffectiveRecord { record, .. }) = Record::effective(stored)? else { continue };
                self.ready.extend(changes_of(record)?.into_iter().map(|what| CommittedChange { commit, time, what }));
            }
        }
        Ok(())
    }
}

impl Iterator for Changes {
    type Item = Result<CommittedChange>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.fill() {
            self.transactions = None;
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}

/// The changes that a record makes.
fn changes_of(record: Record) -> Result<Vec<Change>> {
    let edge = |byte: u8| Edge::from_byte(byte).ok_or_else(|| bad_byte("edge", byte));
    Ok(vec![match record {
        Record::Item(item) => {
            Change::Added { item: item.item(), key: item.key.clone().unwrap_or_default(), kind: item.kind()? }
        }
        Record::Mark(mark) => mark_of(mark)?,
        Record::Link(link) => Change::Linked { from: ItemId(link.from), edge: edge(link.edge)?, to: ItemId(link.to) },
        Record::Unlink(link) => {
            Change::Unlinked { from: ItemId(link.from), edge: edge(link.edge)?, to: ItemId(link.to) }
        }
        Record::Pointers(pointers) => Change::Cited { item: ItemId(pointers.item) },
        Record::Uncite(uncite) => Change::Uncited { item: ItemId(uncite.item) },
        Record::Claim(claim) => Change::Claimed { item: ItemId(claim.item), name: claim.name, value: claim.value },
        Record::Rekey(rekey) if rekey.key.starts_with('~') => return Ok(Vec::new()),
        Record::Rekey(rekey) => Change::Rekeyed { key: rekey.key, item: ItemId(rekey.item) },
        Record::Episode(episode) => Change::Episode { id: episode.id, open: episode.open },
        Record::Page(page) => Change::Page { key: page.key, summarised: page.summarised },
        Record::Setting(setting) => Change::Set { name: setting.name, value: setting.value },
        Record::Space(space) => Change::SpaceDefined(Space::try_from(&space)?),
        Record::Reembed(record) => Change::Reembedded(Space::try_from(&record.space)?),
        Record::Receipt(receipt) => Change::Receipt { id: receipt::id(receipt.number) },
        Record::Forget(forget) => {
            let because = forget.because;
            let forgotten = |item| Change::Forgotten { item: ItemId(item), because: because.clone() };
            return Ok(forget.items.into_iter().map(forgotten).collect());
        }
        Record::Chunk(_)
        | Record::Vector(_)
        | Record::Read(_)
        | Record::Replacement(_)
        | Record::Retained(_)
        | Record::RetainedCommit(_)
        | Record::Subtrees(_) => return Ok(Vec::new()),
    }])
}

fn mark_of(mark: record::MarkRecord) -> Result<Change> {
    let record::MarkRecord { item, change, by, because } = mark;
    let item = ItemId(item);
    Ok(match change {
        record::Change::Status(byte) => {
            let status = Status::from_byte(byte).ok_or_else(|| bad_byte("status", byte))?;
            Change::Marked { item, mark: Mark::Status(status), because }
        }
        record::Change::Utility(utility, count) => {
            Change::Marked { item, mark: Mark::Utility(utility, count), because }
        }
        record::Change::Credit(credit, count) => Change::Marked { item, mark: Mark::Credit(credit, count), because },
        record::Change::Active(false) => Change::Retired { item, by: by.map(ItemId), because },
        record::Change::Active(true) => Change::Restored { item, because },
    })
}

impl Snapshot {
    /// The changes of the commits after `since`, up to this snapshot, in the order in which they were made; 0 for all.
    ///
    /// # Errors
    /// [`Error::FutureCommit`]; [`Error::BeforeHistory`] if `retain` removed some of them: read the whole database
    /// then, and continue from its commit.
    pub fn changes(&self, since: u64) -> Result<Changes> {
        let newest = self.commit();
        if since > newest {
            return Err(Error::FutureCommit { commit: since, newest });
        }
        let first = since + 1;
        let log = &self.core.log;
        if let Some(floor) = log.floor().filter(|floor| first < floor.head.commit.0) {
            return Err(Error::BeforeHistory { what: format!("commit {first}"), since: floor.head.commit.0 });
        }
        let transactions = match since == newest {
            true => None,
            false => Some(log.scan(Lsn(self.state.commit_row(first)?.from))?),
        };
        Ok(Changes { transactions, first, last: newest, ready: VecDeque::new() })
    }
}

/// A place in the history of a database at which a subscriber stands.
#[derive(Debug, Clone)]
pub struct Subscription {
    database: Holotype,
    seen: u64,
}

impl Subscription {
    /// The last commit whose changes were handed out.
    pub fn position(&self) -> u64 {
        self.seen
    }

    /// The changes since the last call; waits for some until `timeout` has passed, and gives `None` then.
    ///
    /// # Errors
    /// As [`Holotype::changes`] and [`Holotype::wait_for_changes`]; the position stays.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Changes>> {
        if !self.database.wait_for_changes(self.seen, timeout)? {
            return Ok(None);
        }
        let changes = self.database.snapshot().changes(self.seen)?;
        self.seen = changes.until();
        Ok(Some(changes))
    }
}

impl Holotype {
    /// The changes of the commits after `since`, in the order in which they were made; 0 for all.
    ///
    /// # Errors
    /// As [`Snapshot::changes`].
    pub fn changes(&self, since: u64) -> Result<Changes> {
        if self.core.options.read_only {
            self.refresh()?;
        }
        self.snapshot().changes(since)
    }

    /// Follows the history from after commit `since`: `database.head().commit.0` for what is written from now on.
    pub fn subscribe(&self, since: u64) -> Subscription {
        Subscription { database: self.clone(), seen: since }
    }

    /// Waits until a commit after `since` can be read, for `timeout` at most; false if there is none by then.
    ///
    /// A commit of this process wakes the waiting thread at once. A handle that is open for reading, or in turns with
    /// others ([`Options::shared`](crate::Options::shared)), also looks after commits of other processes, every 50 ms
    /// at least.
    ///
    /// # Errors
    /// [`Error::TransactionOpen`] if this thread has a transaction open, whose commit it would wait for; those of
    /// [`Holotype::refresh`].
    pub fn wait_for_changes(&self, since: u64, timeout: Duration) -> Result<bool> {
        let core = &self.core;
        core.refuse_within_transaction()?;
        let deadline = Instant::now().checked_add(timeout);
        let follows = core.options.read_only || core.options.takes_turns();
        let is_changed = || core.published.load().meta.commit > since;
        let mut pause = SHORTEST_PAUSE;
        loop {
            if follows {
                self.refresh()?;
            }
            if is_changed() {
                return Ok(true);
            }
            let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(false);
            }
            let longest = if follows { pause } else { Duration::from_secs(3600) };
            core.changed.wait_unless(is_changed, left.min(longest));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
