//! `find` and `count` over items.

use super::values::{compared, cut, number, shown};
use super::{Exported, Listed, ReaderPosition};
use holotype::cell::Cell;
use holotype::query::plan::{Count, Find, Interval, Listing, Returns, Thing};
use holotype::query::{Direction, MeasureKind, Name, Noun};
use std::cmp::Ordering;

impl Exported {
    pub(super) fn listed(&self, noun: Noun, listing: &Listing) -> (Vec<u32>, ReaderPosition) {
        let scope = listing.scope.as_ref();
        let standing = self.standing(scope, listing.reader.as_ref());
        let holds = |id: &u32| {
            self.is_of(*id, noun)
                && self.in_scope(*id, scope)
                && listing.filter.as_ref().is_none_or(|filter| self.holds(*id, filter, &standing))
        };
        (self.ids().filter(holds).collect(), standing)
    }

    pub(crate) fn find(&self, find: &Find) -> Listed {
        let Thing::Noun(noun) = find.thing else { panic!("items are listed") };
        let (mut ids, standing) = self.listed(noun, &find.listing);
        ids.sort_by(|a, b| {
            let of_key = |key: &holotype::query::plan::OrderKey| {
                let value = |id: u32| self.value(id, &key.name, &standing);
                match (value(*a), value(*b)) {
                    (Some(a), Some(b)) => {
                        let order = compared(&a, &b).unwrap_or(Ordering::Equal);
                        if key.direction == Some(Direction::Desc) { order.reverse() } else { order }
                    }
                    (a, b) => b.is_some().cmp(&a.is_some()),
                }
            };
            find.listing.order.iter().map(of_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        let ids = cut(ids, &find.listing);
        let Some(Returns::Names(names)) = &find.listing.returns else { panic!("columns are named") };
        let row = |id: u32| names.iter().map(|name| shown(&self.value(id, name, &standing))).collect();
        Listed { columns: names.iter().map(Name::dotted).collect(), rows: ids.into_iter().map(row).collect() }
    }

    pub(crate) fn count(&self, count: &Count) -> Listed {
        let Thing::Noun(noun) = count.thing else { panic!("items are counted") };
        let (ids, standing) = self.listed(noun, &count.listing);
        let buckets = count.group.as_slice();
        let mut groups: Vec<(Vec<Option<Cell>>, Vec<u32>)> = Vec::new();
        if buckets.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for id in ids {
            let of_bucket = |bucket: &holotype::query::plan::Bucket| {
                let cell = self.value(id, &bucket.name, &standing)?;
                Some(match (&bucket.every, cell) {
                    (Some(Interval::Clock(width)), Cell::Time(at)) => {
                        let width = width.micros() as i64;
                        Cell::Time(at.div_euclid(width) * width)
                    }
                    (Some(Interval::Steps(width)), Cell::Integer(at)) => {
                        let width = *width as i64;
                        Cell::Integer(at.div_euclid(width) * width)
                    }
                    (_, cell) => cell,
                })
            };
            let by: Vec<Option<Cell>> = buckets.iter().map(of_bucket).collect();
            match groups.iter_mut().find(|group| group.0 == by) {
                Some(group) => group.1.push(id),
                None => groups.push((by, vec![id])),
            }
        }
        groups.sort_by(|a, b| {
            let pairs = a.0.iter().zip(&b.0).map(|pair| match pair {
                (Some(a), Some(b)) => compared(a, b).unwrap_or(Ordering::Equal),
                (a, b) => b.is_some().cmp(&a.is_some()),
            });
            pairs.fold(Ordering::Equal, Ordering::then)
        });
        let measured = |ids: &[u32], measure: &holotype::query::plan::Measure| -> Option<Cell> {
            let cells: Vec<Cell> = ids.iter().filter_map(|id| self.value(*id, &measure.name, &standing)).collect();
            let numbers = cells.iter().map(|cell| number(cell).expect("a number"));
            match measure.kind {
                _ if cells.is_empty() => None,
                MeasureKind::Sum => Some(Cell::Number(numbers.sum())),
                MeasureKind::Mean => Some(Cell::Number(numbers.sum::<f64>() / cells.len() as f64)),
                MeasureKind::Min => {
                    cells.iter().cloned().reduce(|a, b| if compared(&b, &a) == Some(Ordering::Less) { b } else { a })
                }
                MeasureKind::Max => {
                    cells.iter().cloned().reduce(|a, b| if compared(&b, &a) == Some(Ordering::Greater) { b } else { a })
                }
            }
        };
        let names = count.measures.iter().map(|measure| format!("{}.{}", measure.kind, measure.name.dotted()));
        let columns = buckets.iter().map(|bucket| bucket.name.dotted()).chain(["count".to_owned()]).chain(names);
        let rows = groups.iter().map(|(by, ids)| {
            let measures = count.measures.iter().map(|measure| measured(ids, measure));
            by.iter()
                .cloned()
                .chain([Some(Cell::Integer(ids.len() as i64))])
                .chain(measures)
                .map(|cell| shown(&cell))
                .collect()
        });
        Listed { columns: columns.collect(), rows: rows.collect() }
    }
}
