//! What of the log still counts: found by a first pass, so that the second can tell each record whether its change is
//! the one that holds.

use crate::records::record::{Change, EffectiveRecord, LinkRecord, MarkRecord, Record, UncitedRecord};
use crate::{Edge, Result, Snapshot};
use std::collections::HashMap;

/// What a mark changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Aspect {
    Status,
    Utility,
    Active,
}

impl Aspect {
    fn of(mark: &MarkRecord) -> Aspect {
        match mark.change {
            Change::Status(_) => Aspect::Status,
            Change::Utility(..) => Aspect::Utility,
            Change::Active(_) => Aspect::Active,
        }
    }
}

/// Where, counted in records of the log, each change stands that still holds.
#[derive(Debug, Default)]
pub(super) struct Plan {
    marks: HashMap<(u32, Aspect), u64>,
    made: HashMap<(u32, u8, u32), u64>,
    /// Citations that were taken back.
    uncited: HashMap<(u32, u32), u64>,
    /// Single pointers that were taken back.
    taken: HashMap<(u32, UncitedRecord), u64>,
    closed: HashMap<u32, u64>,
    /// Why items were forgotten.
    forgotten: HashMap<u32, String>,
}

impl Plan {
    pub(super) fn read(snapshot: &Snapshot) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut open: HashMap<u32, bool> = HashMap::new();
        each_record(snapshot, |event| {
            let Event::Record { place, record } = event else { return Ok(()) };
            match record {
                Record::Mark(mark) => {
                    plan.marks.insert((mark.item, Aspect::of(&mark)), place);
                }
                Record::Link(link) => {
                    plan.made.entry(ends(link)).or_insert(place);
                }
                Record::Unlink(link) => {
                    plan.made.remove(&ends(link));
                    if link.edge == Edge::Cites.to_byte() {
                        plan.uncited.insert((link.from, link.to), place);
                    }
                }
                Record::Uncite(record) => {
                    plan.taken.extend(record.pointers.into_iter().map(|gone| ((record.item, gone), place)));
                }
                Record::Forget(forget) => {
                    let because = |item: &u32| (*item, forget.because.clone());
                    plan.forgotten.extend(forget.items.iter().map(because));
                }
                Record::Episode(episode) => {
                    let was_open = open.insert(episode.number, episode.open).unwrap_or(true);
                    if was_open && !episode.open {
                        plan.closed.insert(episode.number, place);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(plan)
    }

    /// True if a mark is the last of its kind on its item.
    pub(super) fn is_last(&self, mark: &MarkRecord, place: u64) -> bool {
        self.marks.get(&(mark.item, Aspect::of(mark))) == Some(&place)
    }

    /// True if a later mark changed what an item was written with.
    pub(super) fn is_marked(&self, item: u32, aspect: Aspect) -> bool {
        self.marks.contains_key(&(item, aspect))
    }

    /// True if a link made the edge that stands.
    pub(super) fn is_making(&self, link: LinkRecord, place: u64) -> bool {
        self.made.get(&ends(link)) == Some(&place)
    }

    /// True if an unlink is the last one of a cited item.
    pub(super) fn is_last_unciting(&self, link: LinkRecord, place: u64) -> bool {
        link.edge == Edge::Cites.to_byte() && self.uncited.get(&(link.from, link.to)) == Some(&place)
    }

    /// True if a pointer is taken back here for the last time.
    pub(super) fn is_last_taking(&self, item: u32, gone: &UncitedRecord, place: u64) -> bool {
        self.taken.get(&(item, gone.clone())) == Some(&place)
    }

    /// Why an item was forgotten, if it was.
    pub(super) fn forgotten(&self, item: u32) -> Option<&str> {
        self.forgotten.get(&item).map(String::as_str)
    }

    /// True if a record is the last that closed its episode.
    pub(super) fn is_closing(&self, episode: u32, place: u64) -> bool {
        self.closed.get(&episode) == Some(&place)
    }
}

fn ends(link: LinkRecord) -> (u32, u8, u32) {
    (link.from, link.edge, link.to)
}

/// What a walk over the log meets.
#[allow(clippy::large_enum_variant)] // Records are met one at a time; a box around each would cost more.
pub(super) enum Event {
    /// A record and its place, counted from 0.
    Record { place: u64, record: Record },
    /// The end of a transaction.
    Commit { number: u64, time: i64 },
}

/// Walks over the log up to the snapshot.
pub(super) fn each_record(snapshot: &Snapshot, mut visit: impl FnMut(Event) -> Result<()>) -> Result<()> {
    let mut place = 0;
    for transaction in crate::derive::retained_log::transactions(&snapshot.core.log)? {
        let transaction = transaction?;
        if transaction.number.0 > snapshot.commit() {
            break;
        }
        let mut is_news = transaction.records.is_empty();
        for record in &transaction.records {
            let Some(EffectiveRecord { record, .. }) = Record::effective(record)? else { continue };
            if let Record::Retained(_) | Record::RetainedCommit(_) | Record::Subtrees(_) = record {
                continue;
            }
            is_news = true;
            visit(Event::Record { place, record })?;
            place += 1;
        }
        // What only tells again what was is no commit of anybody's.
        if is_news {
            visit(Event::Commit { number: transaction.number.0, time: transaction.time_us })?;
        }
    }
    Ok(())
}
