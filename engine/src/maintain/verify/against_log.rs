//! Checks the catalog, the columns and the tree's hashes against the log.
//!
//! The whole log is applied again, from its beginning to the snapshot's head, and the resulting rows and attributes are
//! compared with those of the snapshot, one by one. That takes as much memory as rows and attributes, so above a limit
//! it is skipped, which the report states. The hashes of the tree are recomputed from the records' hashes, with little
//! memory.

use super::pace::Pace;
use super::{VerifyReport, in_catalog};
use crate::derive::retained_log;
use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::records::tables;
use crate::state::State;
use crate::state::record_tree;
use crate::state::replay::{Decoded, replay_rows};
use crate::{Error, Result};
use holotype_storage::Error as Storage;
use holotype_storage::SmallBytes;
use std::cmp::Ordering;

/// The limit of memory for rows and attributes.
const MEMORY: u64 = 256 << 20;
/// The approximate length of an item's attributes.
const ATTRIBUTES_LEN: u64 = 200;
/// The greatest number of reported differences.
const MAX_DIFFERENCES: usize = 100;

pub(super) fn verify(snapshot: &Snapshot, pace: &mut Pace, report: &mut VerifyReport) -> Result<()> {
    tree_rows(snapshot, pace, report)?;
    let state = &snapshot.state;
    let base = state.rows.base().map_or(Ok(0), |base| base.file_len())?;
    let needed = base + u64::from(state.bound()) * ATTRIBUTES_LEN;
    if needed > MEMORY {
        report.not_checked.push(format!(
            "the catalog against the log, which would take some {} MiB; `holotype rebuild` makes it anew from the log",
            needed >> 20
        ));
        return Ok(());
    }
    let mut fresh = State::empty(None)?;
    for transaction in retained_log::transactions(&snapshot.core.log)? {
        let transaction = match transaction {
            Ok(transaction) => transaction,
            // The check of the log reports the damage with its place.
            Err(Error::Storage(Storage::Damaged(_))) => {
                report.not_checked.push("the catalog against the log, which is damaged".to_owned());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if transaction.number > state.head.commit {
            break;
        }
        pace.read(transaction.records.iter().map(|record| record.payload.len() as u64).sum())?;
        let number = transaction.number;
        match Decoded::try_from(transaction).and_then(|transaction| replay_rows(&mut fresh, &transaction, &|_| false)) {
            Ok(_) => {}
            Err(error) if is_damage(&error) => {
                report.faults.push(in_catalog(format!("commit {number} cannot be applied: {error}")));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    let skipped = fresh.skipped.drain(..);
    report.faults.extend(skipped.map(|what| {
        in_catalog(format!("{what}; the transaction is left out; `holotype salvage` writes a database without it"))
    }));
    let mut differences = Differences { report, count: 0 };
    if fresh.totals() != state.totals() {
        differences.add("the totals are others than the log gives".to_owned());
    }
    let mut rows = 0;
    for table in (0..=u8::MAX).filter(|table| ![tables::META, tables::MANIFEST, tables::TREE].contains(table)) {
        rows += compare_rows(snapshot, &fresh.rows, table, &mut differences)?;
    }
    for id in (0..state.bound().min(fresh.bound())).map(ItemId) {
        if state.attributes(id)? != fresh.attributes(id)? {
            differences.add(format!("the columns give item {id} other attributes than the log does"));
        }
    }
    differences.finish();
    report.checked.push(("rows against the log".to_owned(), rows));
    Ok(())
}

/// Compares the rows of a table in both states. Returns their number.
fn compare_rows(
    snapshot: &Snapshot,
    fresh: &holotype_storage::overlay::View,
    table: u8,
    differences: &mut Differences<'_>,
) -> Result<u64> {
    let mut count = 0;
    let mut stored = snapshot.state.rows.prefix(table, &[]);
    let mut made = fresh.prefix(table, &[]);
    let (mut one, mut other) = (next(&mut stored, differences), made.next().transpose()?);
    loop {
        let order = match (&one, &other) {
            (None, None) => return Ok(count),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((key, _)), Some((expected, _))) => key.cmp(expected),
        };
        let what = match order {
            Ordering::Less => Some("is in the catalog and not in what the log gives"),
            Ordering::Greater => Some("is not in the catalog"),
            Ordering::Equal if one.as_ref().map(|row| &row.1) != other.as_ref().map(|row| &row.1) => {
                Some("has another value than the log gives")
            }
            Ordering::Equal => None,
        };
        if let Some(what) = what {
            let key = if order == Ordering::Greater { &other } else { &one }.as_ref().map_or(&[][..], |row| &row.0);
            differences.add(format!("row {} of table {table} {what}", key.escape_ascii()));
        }
        if order != Ordering::Greater {
            one = next(&mut stored, differences);
            count += 1;
        }
        if order != Ordering::Less {
            other = made.next().transpose()?;
        }
    }
}

/// The next row, if the catalog is readable; the check of the catalog reports the fault otherwise.
fn next(
    rows: &mut holotype_storage::overlay::Rows<'_>,
    differences: &mut Differences<'_>,
) -> Option<(Vec<u8>, SmallBytes)> {
    match rows.next()? {
        Ok(row) => Some(row),
        Err(error) => {
            differences.add(error.to_string());
            None
        }
    }
}

/// Compares the stored hashes of the tree with those of the records.
fn tree_rows(snapshot: &Snapshot, pace: &mut Pace, report: &mut VerifyReport) -> Result<()> {
    let state = &snapshot.state;
    let mut count = 0;
    let mut differences = Differences { report, count: 0 };
    let on_row = &mut |key: &[u8], value: &[u8]| -> Result<()> {
        count += 1;
        match state.rows.get(tables::TREE, key) {
            Ok(Some(found)) if *found == *value => {}
            Ok(Some(_)) => differences.add(format!("row {} of the tree's hashes is wrong", key.escape_ascii())),
            Ok(None) => differences.add(format!("row {} of the tree's hashes is missing", key.escape_ascii())),
            Err(error) => differences.add(error.to_string()),
        }
        Ok(())
    };
    match record_tree::rebuild_rows(&snapshot.core.log, state, &mut |bytes| pace.read(bytes), on_row) {
        Err(error) if is_damage(&error) => {
            differences.finish();
            report.not_checked.push("the tree's hashes against the log, which is damaged".to_owned());
        }
        Err(Error::Storage(error @ (Storage::DamagedFile { .. } | Storage::MissingFile { .. }))) => {
            differences.add(error.to_string());
            differences.finish();
        }
        other => {
            other?;
            // The check of the catalog reports unreadable rows.
            let there = state.scan(tables::TREE, &[]).map_or(count, |rows| rows.len() as u64);
            if there > count {
                differences.add(format!("{} too many", counted(there - count, "rows of the tree's hashes")));
            }
            differences.finish();
            report.checked.push(("hashes of the tree".to_owned(), count));
        }
    }
    Ok(())
}

/// Collects differences, up to a limit.
struct Differences<'a> {
    report: &'a mut VerifyReport,
    count: usize,
}

impl Differences<'_> {
    fn add(&mut self, what: String) {
        self.count += 1;
        if self.count <= MAX_DIFFERENCES {
            let what = format!("{what}; nothing is lost: `holotype rebuild` makes it again from the log");
            self.report.faults.push(in_catalog(what));
        }
    }

    fn finish(self) {
        if self.count > MAX_DIFFERENCES {
            self.report.not_checked.push(format!("{} more differences are not listed", self.count - MAX_DIFFERENCES));
        }
    }
}
