//! `count`: counts, sums and means, optionally grouped.

use super::listing::{items, reader_position, rows};
use crate::Result;
use crate::model::item::ItemId;
use crate::read::answer::Table;
use crate::read::cell::{Cell, Cells, named};
use crate::read::filter::Filter;
use crate::read::filter_sets::Groups as Parts;
use crate::read::item_view::ItemView;
use crate::read::snapshot::Snapshot;
use crate::state::reader_position::ReaderPosition;
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Bucket, Count, Interval, Measure, Thing};
use holotype_query::{AttributeId, MeasureKind, Name, Noun};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Groups in the order of their keys.
type Groups = BTreeMap<GroupKey, Group>;

/// The key of a group. Absent values sort last.
struct GroupKey(Vec<Option<Cell>>);

/// The count and aggregates of a group.
struct Group {
    count: u64,
    measured: Vec<Aggregate>,
}

#[derive(Clone, Default)]
struct Aggregate {
    count: u64,
    sum: f64,
    least: Option<Cell>,
    greatest: Option<Cell>,
}

impl Aggregate {
    fn add(&mut self, cell: Cell) {
        self.count += 1;
        self.sum += match &cell {
            Cell::Number(number) => *number,
            Cell::Integer(number) | Cell::Duration(number) => *number as f64,
            Cell::Text(text) => text.trim().parse().unwrap_or(0.0),
            _ => 0.0,
        };
        let replaces =
            |other: &Option<Cell>, wanted| other.as_ref().is_none_or(|other| cell.compare(other) == Some(wanted));
        if replaces(&self.least, Ordering::Less) {
            self.least = Some(cell.clone());
        }
        if replaces(&self.greatest, Ordering::Greater) {
            self.greatest = Some(cell);
        }
    }

    fn value(&self, kind: MeasureKind) -> Option<Cell> {
        match kind {
            _ if self.count == 0 => None,
            MeasureKind::Sum => Some(Cell::Number(self.sum)),
            MeasureKind::Mean => Some(Cell::Number(self.sum / self.count as f64)),
            MeasureKind::Min => self.least.clone(),
            MeasureKind::Max => self.greatest.clone(),
        }
    }
}

pub(super) fn run(snapshot: &Snapshot, count: &Count) -> Result<Table> {
    let snapshot = &snapshot.at(count.listing.as_of.as_ref())?;
    let buckets = count.group.as_slice();
    let mut groups = Groups::new();
    let reader_position = reader_position(snapshot, &count.listing)?;
    match count.thing {
        Thing::Noun(noun) if !matches!(noun, Noun::Pages | Noun::Episodes) => {
            let found = items(snapshot, &reader_position, noun, &count.listing, None)?;
            if buckets.is_empty() && count.measures.is_empty() {
                groups.insert(GroupKey(Vec::new()), Group { count: found.count(), measured: Vec::new() });
            } else if let Some(parts) = parts(&Filter::new(snapshot, &reader_position), count)? {
                snapshot.tick()?;
                let found: Bits = found.into_bits();
                divide(found, &parts, &mut Vec::new(), &mut groups);
            } else {
                add_items(snapshot, &reader_position, found.iter(), count, buckets, &mut groups)?;
            }
        }
        thing => {
            for row in rows(snapshot, thing, &count.listing)? {
                add_row(&row, count, buckets, &mut groups);
            }
        }
    }
    if groups.is_empty() && buckets.is_empty() {
        groups.insert(
            GroupKey(Vec::new()),
            Group { count: 0, measured: vec![Aggregate::default(); count.measures.len()] },
        );
    }
    Ok(to_table(count, buckets, groups))
}

/// For each attribute of the groups, the items that have each of its values; `None` if an attribute has many, or if
/// something is measured, so that items are to be read one by one.
fn parts(filter: &Filter<'_>, count: &Count) -> Result<Option<Vec<Parts>>> {
    if !count.measures.is_empty() {
        return Ok(None);
    }
    let part = |bucket: &Bucket| match (&bucket.every, bucket.name.attribute()) {
        (None, _) => filter.groups(&bucket.name),
        (Some(Interval::Clock(width)), Some(AttributeId::Time)) => {
            filter.time_groups(|time| floor(time, width.micros()), width.micros())
        }
        _ => Ok(None),
    };
    count.group.iter().map(part).collect()
}

/// Divides items by the values of the first attribute, each part by those of the next one, and counts the last parts.
fn divide(found: Bits, parts: &[Parts], key: &mut Vec<Option<Cell>>, groups: &mut Groups) {
    if found.is_empty() {
        return;
    }
    let Some((values, rest)) = parts.split_first() else {
        groups.insert(GroupKey(key.clone()), Group { count: found.count(), measured: Vec::new() });
        return;
    };
    let mut absent = found.clone();
    for (value, having) in values {
        absent = absent.and_not(having);
        key.push(Some(value.clone()));
        divide(found.and(having), rest, key, groups);
        key.pop();
    }
    key.push(None);
    divide(absent, rest, key, groups);
    key.pop();
}

fn add_items(
    snapshot: &Snapshot,
    reader_position: &ReaderPosition,
    ids: impl Iterator<Item = ItemId>,
    count: &Count,
    buckets: &[Bucket],
    groups: &mut Groups,
) -> Result<()> {
    for id in ids {
        let view = ItemView::new(snapshot, reader_position, id)?;
        let by = buckets.iter().map(|bucket| Ok(bucketed(view.get(&bucket.name)?, bucket)));
        let by = by.collect::<Result<Vec<_>>>()?;
        let measured = count.measures.iter().map(|measure| view.get(&measure.name)).collect::<Result<Vec<_>>>()?;
        add(groups, by, measured);
    }
    Ok(())
}

fn add_row(row: &Cells, count: &Count, buckets: &[Bucket], groups: &mut Groups) {
    let of = |name: &Name| named(row, name);
    let by = buckets.iter().map(|bucket| bucketed(of(&bucket.name), bucket)).collect();
    add(groups, by, count.measures.iter().map(|measure| of(&measure.name)).collect());
}

fn add(groups: &mut Groups, by: Vec<Option<Cell>>, cells: Vec<Option<Cell>>) {
    let fresh = || Group { count: 0, measured: vec![Aggregate::default(); cells.len()] };
    let group = groups.entry(GroupKey(by)).or_insert_with(fresh);
    group.count += 1;
    for (measured, cell) in group.measured.iter_mut().zip(cells) {
        if let Some(cell) = cell {
            measured.add(cell);
        }
    }
}

/// The start of the interval of a width that contains a value.
fn floor(value: i64, width: u64) -> i64 {
    let width = i64::try_from(width.max(1)).unwrap_or(i64::MAX);
    value.div_euclid(width).saturating_mul(width)
}

/// The start of the bucket that contains a value.
fn bucketed(cell: Option<Cell>, bucket: &Bucket) -> Option<Cell> {
    let Some(every) = &bucket.every else { return cell };
    match (every, cell?) {
        (Interval::Clock(width), Cell::Time(at)) => Some(Cell::Time(floor(at, width.micros()))),
        (Interval::Clock(width), Cell::Duration(at)) => Some(Cell::Duration(floor(at, width.micros()))),
        (Interval::Steps(width), Cell::Integer(at)) => Some(Cell::Integer(floor(at, *width))),
        (_, cell) => Some(cell),
    }
}

impl Ord for GroupKey {
    fn cmp(&self, other: &GroupKey) -> Ordering {
        let pairs = self.0.iter().zip(&other.0).map(|pair| match pair {
            (Some(a), Some(b)) => a.order(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        });
        pairs.fold(Ordering::Equal, Ordering::then)
    }
}

impl PartialOrd for GroupKey {
    fn partial_cmp(&self, other: &GroupKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &GroupKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for GroupKey {}

fn to_table(count: &Count, buckets: &[Bucket], groups: Groups) -> Table {
    let name = |measure: &Measure| format!("{}.{}", measure.kind, measure.name.dotted());
    let by = buckets.iter().map(|bucket| bucket.name.dotted());
    let measures = count.measures.iter().map(name);
    let columns = by.chain(["count".to_owned()]).chain(measures).collect();
    let row = |(by, group): (GroupKey, Group)| {
        let values = count.measures.iter().zip(&group.measured).map(|(measure, measured)| measured.value(measure.kind));
        let values: Vec<Option<Cell>> = values.collect();
        by.0.into_iter().chain([Some(Cell::count(group.count))]).chain(values).collect()
    };
    Table { verb: "count", columns, rows: groups.into_iter().map(row).collect(), ..Table::default() }
}
