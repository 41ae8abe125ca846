//! Replaying: what the log holds is applied to a state, transaction by transaction.
//!
//! What a transaction says is decoded first, which takes a third of the time of a replay and no state, so that a thread of its
//! own can do it ahead of what is applied.

use crate::Result;
use crate::apply::Place;
use crate::content::{OwnItems, join_own_chunks};
use crate::kept::Held;
use crate::record::{ItemRecord, Record, Told};
use crate::state::State;
use holotype_storage::log::{CommitNo, Head, Leaf, Transaction};
use std::sync::Arc;

/// A transaction of the log, decoded.
pub(crate) struct Decoded {
    number: CommitNo,
    time_us: i64,
    pub(crate) head: Head,
    /// The hashes of its records.
    pub(crate) leaves: Vec<Leaf>,
    /// What the records say that say anything, with their positions.
    told: Vec<(u64, Told)>,
}

impl TryFrom<Transaction> for Decoded {
    type Error = crate::Error;

    fn try_from(transaction: Transaction) -> Result<Self> {
        let Transaction { number, time_us, records, leaves, head } = transaction;
        let mut told = Vec::with_capacity(records.len());
        for record in &records {
            told.extend(Record::told(record)?.map(|says| (record.lsn.0, says)));
        }
        Ok(Decoded { number, time_us, head, leaves, told })
    }
}

impl Decoded {
    /// Drops the fields of items that need not be made findable: nothing else asks for them.
    pub(crate) fn drop_fields(&mut self, held: &[Held; 3]) {
        for (_, told) in &mut self.told {
            if let Record::Item(item) = &mut told.record
                && let Ok(kind) = item.kind()
                && held[kind.layer() as usize].words.contains(item.id)
                && let Some(item) = Arc::get_mut(item)
            {
                item.fields = Vec::new();
            }
        }
    }
}

/// Applies a transaction read from the log, and makes its items findable.
pub(crate) fn replay(state: &mut State, transaction: &Decoded) -> Result<()> {
    let own = replay_rows(state, transaction, &|_| true)?;
    state.index_items(&own)
}

/// Applies a transaction read from the log to rows and attributes, and hands over the wanted ones of the items it wrote, to be made
/// findable.
pub(crate) fn replay_rows(
    state: &mut State,
    transaction: &Decoded,
    wanted: &dyn Fn(&ItemRecord) -> bool,
) -> Result<OwnItems> {
    let mut own = OwnItems::new();
    let mut chunks = Vec::new();
    for (lsn, Told { record, erased }) in &transaction.told {
        let place = Place { commit: transaction.number.0, lsn: *lsn };
        if *erased {
            state.apply_erased(record, place)?;
            continue;
        }
        state.apply(record, place)?;
        match record {
            Record::Chunk(chunk) => chunks.push(chunk),
            Record::Item(item) if wanted(item) => {
                let mut item = Arc::clone(item);
                join_own_chunks(&mut item, &std::mem::take(&mut chunks))?;
                own.insert(item.id, item);
            }
            Record::Item(_) => chunks.clear(),
            _ => {}
        }
    }
    state.settle()?;
    state.seal(transaction.number.0, transaction.time_us)?;
    state.head = transaction.head;
    state.meta.commit = transaction.number.0;
    state.meta.clock = transaction.time_us;
    Ok(own)
}
