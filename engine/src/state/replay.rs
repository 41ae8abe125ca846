//! Replay: applies the transactions of the log to a state.
//!
//! Decoding takes a third of the time of a replay and needs no state, so that another thread can decode ahead.

use crate::Result;
use crate::model::space::Space;
use crate::records::record::{EffectiveRecord, ItemRecord, Record};
use crate::state::State;
use crate::state::apply::RecordLocation;
use crate::state::content::{OwnItems, join_own_chunks};
use holotype_storage::log::{CommitNo, Head, Leaf, Transaction};
use std::sync::Arc;

/// A decoded transaction of the log.
pub(crate) struct Decoded {
    number: CommitNo,
    time_us: i64,
    pub(crate) head: Head,
    /// The hashes of its records.
    pub(crate) leaves: Vec<Leaf>,
    /// Its effective records with their log positions.
    told: Vec<(u64, EffectiveRecord)>,
}

impl TryFrom<Transaction> for Decoded {
    type Error = crate::Error;

    fn try_from(transaction: Transaction) -> Result<Self> {
        let Transaction { number, time_us, records, leaves, head } = transaction;
        let mut told = Vec::with_capacity(records.len());
        for record in &records {
            told.extend(Record::effective(record)?.map(|says| (record.lsn.0, says)));
        }
        Ok(Decoded { number, time_us, head, leaves, told })
    }
}

impl Decoded {
    /// Its effective records, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.told.iter().map(|(_, told)| &told.record)
    }
}

/// Applies a transaction of the log and indexes its items.
pub(crate) fn replay(state: &mut State, transaction: &Decoded) -> Result<()> {
    let own = replay_rows(state, transaction, &|_| true)?;
    state.index_items(&own)?;
    state.index_filled(transaction.records(), None)
}

/// Applies a transaction of the log to rows and attributes. Returns the items that `wanted` accepts, for indexing.
pub(crate) fn replay_rows(
    state: &mut State,
    transaction: &Decoded,
    wanted: &dyn Fn(&ItemRecord) -> bool,
) -> Result<OwnItems> {
    let mut own = OwnItems::new();
    let mut chunks = Vec::new();
    if let Some(reason) = unusable_vector(state, transaction)? {
        state.skipped.push(format!("commit {}: {reason}", transaction.number));
        end_transaction(state, transaction)?;
        return Ok(own);
    }
    for (lsn, EffectiveRecord { record, erased }) in &transaction.told {
        let place = RecordLocation { commit: transaction.number.0, lsn: *lsn, clock: transaction.time_us };
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
    end_transaction(state, transaction)?;
    Ok(own)
}

fn end_transaction(state: &mut State, transaction: &Decoded) -> Result<()> {
    state.finish_commit(transaction.number.0, transaction.time_us)?;
    state.head = transaction.head;
    state.meta.commit = transaction.number.0;
    state.meta.clock = transaction.time_us;
    Ok(())
}

/// The reason to leave a transaction out, if it holds a vector that the index cannot hold.
///
/// Transactions are checked before they are appended. Earlier versions did not check the magnitude of a vector: their
/// commit failed after the append and the next one took its item numbers again, so leaving out the whole transaction
/// gives the numbering that the log continues with.
fn unusable_vector(state: &State, transaction: &Decoded) -> Result<Option<String>> {
    let mut space = state.meta.space.as_deref().map(Space::try_from).transpose()?;
    for (_, EffectiveRecord { record, .. }) in &transaction.told {
        match record {
            Record::Space(defined) => space = Some(Space::try_from(defined)?),
            Record::Reembed(record) => space = Some(Space::try_from(&record.space)?),
            Record::Item(item) => {
                if let (Some(space), Some(bytes)) = (&space, &item.vector)
                    && let Err(error) = space.check_stored(bytes)
                {
                    return Ok(Some(format!("item {}: {error}", item.item())));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}
