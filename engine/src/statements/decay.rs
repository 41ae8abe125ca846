//! `decay` and `compress`: what was retired, one row for each item, with the reason.

use super::selected::selected;
use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::state::reader_position::Reader;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_query::plan::{self, Selection};
use holotype_query::{Duration, Layer, Noun};

pub(super) fn run(transaction: &mut Transaction<'_>, decay: &plan::Decay) -> Result<Table> {
    let among = among(transaction, "decay", decay.noun, &decay.selection, Layer::Recall)?;
    let below = decay.below as f32;
    let retired = transaction.decay_among(Some(&among), micros(decay.half_life), below)?;
    table(transaction, "decay", &retired, "its utility decayed")
}

pub(super) fn compress(transaction: &mut Transaction<'_>, compress: &plan::Compress) -> Result<Table> {
    let among = among(transaction, "compress", compress.noun, &compress.selection, Layer::Trace)?;
    let retired = transaction.compress_among(Some(&among), micros(compress.after))?;
    table(transaction, "compress", &retired, "its page stands for it")
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.micros()).unwrap_or(i64::MAX)
}

/// The selected items, which are of one layer.
fn among(
    transaction: &mut Transaction<'_>,
    verb: &str,
    noun: Noun,
    selection: &Selection,
    layer: Layer,
) -> Result<Bits> {
    if noun.layer() != Some(layer) {
        let takes = if layer == Layer::Trace {
            "traces, turns, calls or observations"
        } else {
            "recalls, facts, summaries or procedures"
        };
        return Err(Error::Invalid(format!("{verb} takes {takes}, not {noun}")));
    }
    Ok(selected(&transaction.snapshot()?, noun, selection, &Reader::default())?.1)
}

fn table(transaction: &mut Transaction<'_>, verb: &'static str, retired: &[ItemId], because: &str) -> Result<Table> {
    let names = transaction.names()?;
    let mut rows = Vec::with_capacity(retired.len());
    for id in retired {
        let key = names.key_of(*id)?;
        rows.push(vec![Some(Cell::Integer(i64::from(id.0))), Some(Cell::Text(key)), Some(Cell::text(because))]);
    }
    let columns = ["item", "key", "because"].map(str::to_owned).to_vec();
    let notes = vec![format!("{} retired; `as of` an earlier commit shows them", counted(rows.len() as u64, "items"))];
    Ok(Table { verb, columns, rows, notes, ..Table::default() })
}
