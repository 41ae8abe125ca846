//! The last changes of the log: a first pass records them, so that the second pass knows for each record whether its
//! change still has effect.

use crate::records::record::{Change, EffectiveRecord, LinkRecord, MarkRecord, Record, UncitedRecord};
use crate::{Edge, Result, Snapshot};
use std::collections::HashMap;

/// The attribute that a mark changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Aspect {
    Status,
    Utility,
    Credit,
    Active,
}

impl Aspect {
    fn of(mark: &MarkRecord) -> Aspect {
        match mark.change {
            Change::Status(_) => Aspect::Status,
            Change::Utility(..) => Aspect::Utility,
            Change::Credit(..) => Aspect::Credit,
            Change::Active(_) => Aspect::Active,
        }
    }
}

/// The indices, counted in records of the log, of the changes that still have effect.
#[derive(Debug, Default)]
pub(super) struct LastChanges {
    marks: HashMap<(u32, Aspect), u64>,
    made: HashMap<(u32, u8, u32), u64>,
    /// Citations that were removed.
    uncited: HashMap<(u32, u32), u64>,
    /// Single pointers that were removed.
    removed: HashMap<(u32, UncitedRecord), u64>,
    closed: HashMap<u32, u64>,
    /// The reasons why items were forgotten.
    forgotten: HashMap<u32, String>,
}

impl LastChanges {
    pub(super) fn read(snapshot: &Snapshot) -> Result<LastChanges> {
        let mut last = LastChanges::default();
        let mut open: HashMap<u32, bool> = HashMap::new();
        each_record(snapshot, |event| {
            let Event::Record { place, record } = event else { return Ok(()) };
            match record {
                Record::Mark(mark) => {
                    last.marks.insert((mark.item, Aspect::of(&mark)), place);
                }
                Record::Link(link) => {
                    last.made.entry(ends(link)).or_insert(place);
                }
                Record::Unlink(link) => {
                    last.made.remove(&ends(link));
                    if link.edge == Edge::Cites.to_byte() {
                        last.uncited.insert((link.from, link.to), place);
                    }
                }
                Record::Uncite(record) => {
                    last.removed.extend(record.pointers.into_iter().map(|gone| ((record.item, gone), place)));
                }
                Record::Forget(forget) => {
                    let because = |item: &u32| (*item, forget.because.clone());
                    last.forgotten.extend(forget.items.iter().map(because));
                }
                Record::Episode(episode) => {
                    let was_open = open.insert(episode.number, episode.open).unwrap_or(true);
                    if was_open && !episode.open {
                        last.closed.insert(episode.number, place);
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(last)
    }

    /// True if a mark is the last one of its aspect on its item.
    pub(super) fn is_last(&self, mark: &MarkRecord, place: u64) -> bool {
        self.marks.get(&(mark.item, Aspect::of(mark))) == Some(&place)
    }

    /// True if a mark changed this aspect of an item.
    pub(super) fn is_marked(&self, item: u32, aspect: Aspect) -> bool {
        self.marks.contains_key(&(item, aspect))
    }

    /// True if a link created the present edge.
    pub(super) fn made_edge(&self, link: LinkRecord, place: u64) -> bool {
        self.made.get(&ends(link)) == Some(&place)
    }

    /// True if an unlink is the last removal of a citation.
    pub(super) fn is_last_unlink(&self, link: LinkRecord, place: u64) -> bool {
        link.edge == Edge::Cites.to_byte() && self.uncited.get(&(link.from, link.to)) == Some(&place)
    }

    /// True if this is the last removal of a pointer.
    pub(super) fn is_last_removal(&self, item: u32, gone: &UncitedRecord, place: u64) -> bool {
        self.removed.get(&(item, gone.clone())) == Some(&place)
    }

    /// The reason why an item was forgotten, if it was.
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

/// An event of a pass over the log.
#[allow(clippy::large_enum_variant)] // Records are visited one at a time; boxing each would cost more.
pub(super) enum Event {
    /// A record and its index, counted from 0.
    Record { place: u64, record: Record },
    /// The end of a transaction.
    Commit { number: u64, time: i64 },
}

/// Visits the log up to the snapshot.
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
        // A transaction with only retained records is not a commit of a user.
        if is_news {
            visit(Event::Commit { number: transaction.number.0, time: transaction.time_us })?;
        }
    }
    Ok(())
}
