//! `mark` and `retract`: the items they go over, and what follows for the items that rest on these.
//!
//! The answer says whose support, activity or status changed:
//!
//! ```text
//! 2 facts are now unsupported: belief_940, belief_941
//! 1 theme is now weakened: fares
//! ```
//!
//! Invariant: only dependents of items that changed are compared, because an item derives its standing from its direct
//! sources. The cost is that of settling the marks, which visits the same items.

use super::listing::{items, reader_position, rows};
use super::single;
use super::walk::roots;
use crate::model::item::{Attributes, ItemId, Layer, Status, Support};
use crate::model::plural::counted;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::write::transaction::merge::Feedback;
use crate::write::transaction::{Mark, Transaction};
use crate::{Error, Result};
use holotype_query::plan::{Listing, MarkStatement, MarkTarget, Marking, Ref, Retract, Thing};
use holotype_query::{AttributeId, Noun};
use std::collections::{BTreeMap, BTreeSet};

/// Keys that a note lists; the others are counted.
const MAX_LISTED_KEYS: usize = 10;

pub(super) fn run(transaction: &mut Transaction<'_>, mark: &MarkStatement) -> Result<Table> {
    let marking = match &mark.marking {
        Marking::Reward(reward) => return reward_all(transaction, mark, *reward as f32),
        Marking::Utility(utility) => Mark::Utility(*utility as f32, 1),
        Marking::State(holotype_query::Mark::Success) => Mark::Status(Status::Success),
        Marking::State(holotype_query::Mark::Unknown) => Mark::Status(Status::Unknown),
        Marking::State(holotype_query::Mark::Failed) => Mark::Status(Status::Failed),
        Marking::State(holotype_query::Mark::Inactive) => Mark::Inactive,
        Marking::State(state @ (holotype_query::Mark::Summarised | holotype_query::Mark::Unsummarised)) => {
            return mark_pages(transaction, mark, *state);
        }
    };
    let before = transaction.names()?;
    let targets = targets(transaction, mark)?;
    for id in &targets {
        transaction.mark(*id, marking, mark.because.clone())?;
    }
    let mut table = single("mark", &["marked"], vec![Some(Cell::count(targets.len() as u64))]);
    if targets.is_empty() {
        table.notes.push(NONE.to_owned());
    } else if !matches!(marking, Mark::Utility(..)) {
        // Neither support nor status goes by utility.
        table.notes = notes(&before, &transaction.names()?, &targets)?;
    }
    Ok(table)
}

/// Said where a condition selects nothing.
const NONE: &str = "nothing matches, so nothing was marked";

/// Takes items out of use.
pub(super) fn retract(transaction: &mut Transaction<'_>, retract: &Retract) -> Result<Table> {
    let before = transaction.names()?;
    let mut targets = Vec::new();
    for target in &retract.targets {
        for id in roots(&before, target)? {
            transaction.mark(id, Mark::Inactive, Some(retract.because.clone()))?;
            targets.push(id);
        }
    }
    let mut table = single("retract", &["retracted"], vec![Some(Cell::count(targets.len() as u64))]);
    table.notes = notes(&before, &transaction.names()?, &targets)?;
    Ok(table)
}

/// The items that a `mark` goes over.
fn targets(transaction: &mut Transaction<'_>, mark: &MarkStatement) -> Result<Vec<ItemId>> {
    match &mark.target {
        MarkTarget::Ref(target) => roots(&transaction.names()?, target),
        MarkTarget::Selected { noun, selection } => {
            let (scope, filter) = (selection.scope.clone(), selection.filter.clone());
            let listing = Listing { scope, filter, ..Listing::default() };
            let snapshot = transaction.snapshot()?;
            let position = reader_position(&snapshot, &listing)?;
            Ok(items(&snapshot, &position, *noun, &listing, None)?.iter().collect())
        }
    }
}

fn mark_pages(transaction: &mut Transaction<'_>, mark: &MarkStatement, state: holotype_query::Mark) -> Result<Table> {
    let summarised = state == holotype_query::Mark::Summarised;
    let (noun, selection) = match &mark.target {
        MarkTarget::Ref(Ref::Page(key)) => {
            transaction.mark_page(key, summarised)?;
            let cells = vec![Some(Cell::text(key.as_str())), Some(Cell::text(state.as_str()))];
            return Ok(single("mark", &["page", "state"], cells));
        }
        MarkTarget::Selected { noun: noun @ Noun::Pages, selection } => (*noun, selection),
        _ => return Err(Error::Invalid(format!("only a page can be marked {state}"))),
    };
    let (scope, filter) = (selection.scope.clone(), selection.filter.clone());
    let listing = Listing { scope, filter, ..Listing::default() };
    let snapshot = transaction.snapshot()?;
    let mut count = 0;
    for row in rows(&snapshot, Thing::Noun(noun), &listing)? {
        if let Some(Cell::Text(key)) = row.get(&AttributeId::Key) {
            transaction.mark_page(key, summarised)?;
            count += 1;
        }
    }
    let mut table = single("mark", &["marked"], vec![Some(Cell::count(count))]);
    if count == 0 {
        table.notes.push(NONE.to_owned());
    }
    Ok(table)
}

/// One more report on items: their utility becomes the mean over all.
fn reward_all(transaction: &mut Transaction<'_>, mark: &MarkStatement, reward: f32) -> Result<Table> {
    let names = transaction.names()?;
    let mut rows = Vec::new();
    for id in targets(transaction, mark)? {
        transaction.feedback(id, &Feedback::Reward(reward))?;
        let now = transaction.attributes(id)?;
        let utility = Cell::Number((f64::from(now.utility) * 1e6).round() / 1e6);
        rows.push(vec![
            Some(Cell::Text(names.key_of(id)?)),
            Some(utility),
            Some(Cell::count(now.utility_count.into())),
        ]);
    }
    let columns = ["key", "utility", "reports"].map(str::to_owned).to_vec();
    let notes = if rows.is_empty() { vec![NONE.to_owned()] } else { Vec::new() };
    Ok(Table { verb: "mark", columns, rows, notes, ..Table::default() })
}

/// A change that several items of a kind share.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    /// Support is told before status.
    rank: u8,
    kind: &'static str,
    now: String,
}

/// Says what changed between two snapshots in the standing of `marked` and of what rests on them.
fn notes(before: &Snapshot, after: &Snapshot, marked: &[ItemId]) -> Result<Vec<String>> {
    let marked: BTreeSet<ItemId> = marked.iter().copied().collect();
    let mut notes = Vec::new();
    let mut same = 0_u64;
    let mut queue: BTreeSet<ItemId> = BTreeSet::new();
    let mut resting: BTreeSet<ItemId> = BTreeSet::new();
    let mut rest_on = |id: ItemId, queue: &mut BTreeSet<ItemId>| -> Result<()> {
        for dependent in after.state.dependents(id)? {
            if !marked.contains(&dependent) && resting.insert(dependent) {
                queue.insert(dependent);
            }
        }
        Ok(())
    };
    for id in &marked {
        same += u64::from(standing(&before.state.attributes(*id)?) == standing(&after.state.attributes(*id)?));
        rest_on(*id, &mut queue)?;
    }
    if same > 0 {
        notes.push(match (same, marked.len()) {
            (1, 1) => "it was so already".to_owned(),
            (1, _) => "1 of them was so already".to_owned(),
            (same, _) => format!("{same} of them were so already"),
        });
    }
    let mut changes: BTreeMap<Change, Vec<ItemId>> = BTreeMap::new();
    while let Some(id) = queue.pop_first() {
        let (old, new) = (before.state.attributes(id)?, after.state.attributes(id)?);
        if standing(&old) == standing(&new) {
            continue;
        }
        let kind = new.kind.as_str();
        let mut tell = |rank: u8, now: String| changes.entry(Change { rank, kind, now }).or_default().push(id);
        if old.support != new.support {
            tell(0, format!("now {}", new.support));
        }
        if old.active != new.active {
            tell(1, format!("now {}", if new.active { "active" } else { "inactive" }));
        }
        if let Some(status) = new.status.filter(|_| old.status != new.status) {
            tell(2, format!("now {status}"));
        }
        rest_on(id, &mut queue)?;
    }
    if changes.is_empty() {
        notes.push(match resting.len() as u64 {
            0 => "nothing else changed: nothing rests on what was marked".to_owned(),
            1 => "nothing else changed: 1 item rests on what was marked, and stands as before".to_owned(),
            count => format!("nothing else changed: {count} items rest on what was marked, and stand as before"),
        });
    }
    for (change, items) in changes {
        notes.push(said(after, &change, &items)?);
    }
    Ok(notes)
}

/// The attributes of an item that `find` and a reader go by.
fn standing(of: &Attributes) -> (Support, Option<Status>, bool) {
    let support = if of.layer() == Layer::Trace { Support::Supported } else { of.support };
    (support, of.status, of.active)
}

fn said(after: &Snapshot, change: &Change, items: &[ItemId]) -> Result<String> {
    let count = items.len() as u64;
    let verb = if count == 1 { "is" } else { "are" };
    let listed = items.iter().take(MAX_LISTED_KEYS).map(|id| after.key_of(*id)).collect::<Result<Vec<_>>>()?;
    let more = match count - listed.len() as u64 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = match change.kind {
        "summary" => "summaries".to_owned(),
        "refined" => "refined traces".to_owned(),
        kind => format!("{kind}s"),
    };
    Ok(format!("{} {verb} {}: {}{more}", counted(count, &plural), change.now, listed.join(", ")))
}
