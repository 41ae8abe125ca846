//! Shared parts of listings: rows of pages, episodes, claims, edges, events and receipts; order, limit and columns.

use super::conflicts::claims;
use super::events::{events, receipts};
use crate::Result;
use crate::model::edge::Edge;
use crate::model::item::ItemId;
use crate::model::plural::counted;
use crate::read::answer::Table;
use crate::read::cell::{Cell, Cells, named};
use crate::read::container_rows;
use crate::read::field_filter::hint;
use crate::read::filter::{Filter, episode_numbers, holds_for_row};
use crate::read::item_view::{ALL_ITEM_COLUMNS, ITEM_COLUMNS, ItemView, heading};
use crate::read::key_lookup::look_up_keys;
use crate::read::snapshot::Snapshot;
use crate::recall::{Steps, reader_of};
use crate::records::record::PointerTarget;
use crate::records::tables::{self, EdgeRow};
use crate::state::EdgeEnd;
use crate::state::history::CommitFinder;
use crate::state::reader_position::ReaderPosition;
use holotype_index::bitmap::Bits;
use holotype_query::plan::{Listing, OrderKey, Predicate, Returns, Scope, Thing};
use holotype_query::{AttributeId, Direction, Name, Noun};
use holotype_storage::codec;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The reader position of a listing.
pub(super) fn reader_position(snapshot: &Snapshot, listing: &Listing) -> Result<ReaderPosition> {
    let episodes = match &listing.scope {
        Some(Scope::Episodes(ids)) => Some(episode_numbers(&snapshot.state, ids)?),
        _ => None,
    };
    let given = listing.reader.as_ref().map(reader_of).unwrap_or_default();
    ReaderPosition::find(&snapshot.state, episodes.as_deref(), &given, snapshot.core.now())
}

/// Listed items: a few by id, or many as a set.
pub(super) enum ListedItems {
    /// Each with the key it was found by.
    Few(Vec<(ItemId, Option<String>)>),
    Many(Bits),
}

impl ListedItems {
    /// The number of items.
    pub(super) fn count(&self) -> u64 {
        match self {
            ListedItems::Few(ids) => ids.len() as u64,
            ListedItems::Many(ids) => ids.count(),
        }
    }

    /// The items as a set.
    pub(super) fn into_bits(self) -> Bits {
        match self {
            ListedItems::Few(ids) => ids.iter().map(|(id, _)| id.0).collect(),
            ListedItems::Many(ids) => ids,
        }
    }

    /// The items in ascending order.
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = ItemId> + '_> {
        match self {
            ListedItems::Few(ids) => Box::new(ids.iter().map(|(id, _)| *id)),
            ListedItems::Many(ids) => Box::new(ids.iter().map(ItemId)),
        }
    }
}

/// The items of a noun in scope that match the predicate; `most` of them suffice. A listing excludes nothing by
/// default.
pub(super) fn items(
    snapshot: &Snapshot,
    reader_position: &ReaderPosition,
    noun: Noun,
    listing: &Listing,
    most: Option<u64>,
) -> Result<ListedItems> {
    let filter = Filter::new(snapshot, reader_position);
    let scope = listing.scope.as_ref();
    let Some(predicate) = &listing.filter else {
        return among(&filter, noun, scope).map(ListedItems::Many);
    };
    if let Some(lookup) = look_up_keys(&snapshot.state, predicate)? {
        let mut kept = Vec::with_capacity(lookup.ids.len());
        let is_any = lookup.exact && noun == Noun::Items && matches!(scope, None | Some(Scope::All));
        for (id, key) in lookup.ids {
            let holds = is_any || {
                let view = ItemView::new(snapshot, reader_position, id)?;
                (lookup.exact || filter.holds_for(&view, predicate)?) && filter.is_among(&view, noun, scope)?
            };
            if holds {
                kept.push((id, key));
            }
        }
        return Ok(ListedItems::Few(kept));
    }
    let among = among(&filter, noun, scope)?;
    match most {
        Some(most) => filter.first(predicate, &among, most).map(ListedItems::Many),
        None => filter.evaluate(predicate, &among).map(ListedItems::Many),
    }
}

/// The items of a noun in scope.
fn among(filter: &Filter<'_>, noun: Noun, scope: Option<&Scope>) -> Result<Bits> {
    match scope {
        None | Some(Scope::All) => filter.noun(noun),
        scope => Ok(filter.noun(noun)?.and(&filter.scope(scope)?)),
    }
}

/// Describes how a listing finds its items: by lookup, from columns (with the exact number that each part leaves), or
/// item by item.
pub(super) fn explain(snapshot: &Snapshot, noun: Noun, listing: &Listing) -> Result<Steps> {
    let snapshot = &snapshot.at(listing.as_of.as_ref())?;
    let reader_position = reader_position(snapshot, listing)?;
    let filter = Filter::new(snapshot, &reader_position);
    let mut steps = Steps::new();
    let mut step = |name: &str, detail: String| steps.push((name.to_owned(), detail));
    let lookup = match &listing.filter {
        Some(predicate) => look_up_keys(&snapshot.state, predicate)?,
        None => None,
    };
    if let Some(lookup) = lookup {
        let rest = if lookup.exact { "" } else { ", then tested against the rest" };
        step("look up", format!("{} named by key or id{rest}", lookup.ids.len()));
    } else {
        let mut among = filter.noun(noun)?.and(&filter.scope(listing.scope.as_ref())?);
        step(
            "columns",
            format!("{noun} in scope: {} of {}", among.count(), counted(u64::from(snapshot.len()), "items")),
        );
        let parts: &[Predicate] = match &listing.filter {
            None => &[],
            Some(Predicate::And(parts)) => parts,
            Some(one) => std::slice::from_ref(one),
        };
        for (part, from_columns) in filter.cheapest_first(parts)? {
            if from_columns {
                among = filter.evaluate(part, &among)?;
                step("columns", format!("{part}: leaves {}", among.count()));
            } else {
                step("each item", format!("{part}: tested on up to {}{}", among.count(), hint(part)));
            }
        }
    }
    match (listing.order.is_empty(), listing.limit) {
        (false, _) => step("order", "every remaining item is read for its sort keys".to_owned()),
        (true, Some(_)) => step("limit", "items are in id order, so none behind the last one shown is read".to_owned()),
        (true, None) => {}
    }
    Ok(steps)
}

/// The number of rows up to the last one that `limit n skip m` shows.
pub(super) fn shown(listing: &Listing) -> Option<u64> {
    Some(listing.limit?.saturating_add(listing.skip))
}

/// The rows of a thing other than items, in scope and matching the predicate.
pub(super) fn rows(snapshot: &Snapshot, thing: Thing, listing: &Listing) -> Result<Vec<Cells>> {
    let all = match thing {
        Thing::Noun(noun @ (Noun::Pages | Noun::Episodes)) => {
            container_rows::rows(snapshot, noun)?.into_iter().map(|(_, row)| row).collect()
        }
        Thing::Claims => claims(snapshot, &reader_position(snapshot, listing)?)?,
        Thing::Edges => edges(snapshot)?,
        Thing::Events => events(snapshot, listing.filter.as_ref())?,
        Thing::Receipts => receipts(snapshot)?,
        Thing::Noun(_) => Vec::new(),
    };
    let scope = match &listing.scope {
        None | Some(Scope::All) => None,
        Some(Scope::Episodes(ids)) => {
            episode_numbers(&snapshot.state, ids)?;
            Some((AttributeId::Episode, ids))
        }
        Some(Scope::Pages(keys)) => Some((AttributeId::Key, keys)),
    };
    let in_scope = |row: &Cells| match &scope {
        None => true,
        Some((name, wanted)) => matches!(row.get(name), Some(Cell::Text(text)) if wanted.contains(text)),
    };
    keep(all.into_iter().filter(in_scope).collect(), listing)
}

/// The rows that match the predicate.
pub(super) fn keep(rows: Vec<Cells>, listing: &Listing) -> Result<Vec<Cells>> {
    let Some(predicate) = &listing.filter else { return Ok(rows) };
    let mut kept = Vec::new();
    for row in rows {
        if holds_for_row(&|name| Ok(named(&row, name)), predicate)? {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// The default columns of a thing other than items.
pub(super) fn columns_of(thing: Thing) -> &'static [AttributeId] {
    match thing {
        Thing::Noun(Noun::Pages) => &[
            AttributeId::Key,
            AttributeId::Episode,
            AttributeId::Traces,
            AttributeId::Tokens,
            AttributeId::State,
            AttributeId::Hash,
        ],
        Thing::Noun(Noun::Episodes) => &[
            AttributeId::Episode,
            AttributeId::Task,
            AttributeId::Version,
            AttributeId::Open,
            AttributeId::Traces,
            AttributeId::Pages,
        ],
        Thing::Claims => {
            &[AttributeId::Item, AttributeId::Name, AttributeId::Value, AttributeId::Scope, AttributeId::Won]
        }
        Thing::Edges => &[
            AttributeId::From,
            AttributeId::Edge,
            AttributeId::To,
            AttributeId::Field,
            AttributeId::Start,
            AttributeId::End,
        ],
        Thing::Events => &[
            AttributeId::Commit,
            AttributeId::Time,
            AttributeId::Op,
            AttributeId::Item,
            AttributeId::Episode,
            AttributeId::Because,
        ],
        Thing::Receipts => {
            &[AttributeId::Receipt, AttributeId::Commit, AttributeId::Time, AttributeId::Rows, AttributeId::Statement]
        }
        Thing::Noun(_) => &[],
    }
}

/// All edges. A `cites` edge yields one row per span, or a single row without a span for a page.
fn edges(snapshot: &Snapshot) -> Result<Vec<Cells>> {
    let state = &snapshot.state;
    let mut commits = CommitFinder::new(state, |totals| totals.edges);
    let mut rows = Vec::new();
    let mut cited = (None, Vec::new());
    for stored in state.iter(tables::EDGE_OUT, &[]) {
        snapshot.tick()?;
        let (key, value) = stored?;
        let end = EdgeEnd::decode(&key)?;
        let EdgeRow { order, .. } = codec::decode(&value)?;
        let id = ItemId(tables::number_at(&key, 0).unwrap_or_default());
        let mut row = BTreeMap::from([
            (AttributeId::From, Cell::Text(snapshot.key_of(id)?)),
            (AttributeId::Edge, Cell::text(end.edge.as_str())),
            (AttributeId::To, Cell::Text(snapshot.key_of(end.far)?)),
        ]);
        row.extend(commits.of(order)?.map(|commit| (AttributeId::Commit, Cell::count(commit))));
        if end.edge != Edge::Cites {
            rows.push(row);
            continue;
        }
        if cited.0 != Some(id) {
            cited = (Some(id), state.pointers(id)?);
        }
        let mut spans = 0;
        for pointer in &cited.1 {
            let mut row = row.clone();
            match pointer.target {
                PointerTarget::Item(target) if target == end.far.0 => {
                    row.insert(AttributeId::Field, Cell::text(pointer.field.as_str()));
                    row.insert(AttributeId::Start, Cell::count(pointer.start));
                    row.insert(AttributeId::End, Cell::count(pointer.end));
                }
                PointerTarget::Page(page) if state.page(page)?.traces.contains(&end.far.0) => {}
                _ => continue,
            }
            rows.push(row);
            spans += 1;
        }
        if spans == 0 {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The columns of an item listing.
pub(super) fn item_columns(listing: &Listing) -> Vec<Name> {
    let all = if listing.returns.is_none() { ITEM_COLUMNS } else { ALL_ITEM_COLUMNS };
    columns(listing, all)
}

/// The columns that `return` names, or else all of a listing.
pub(super) fn columns(listing: &Listing, all: &[AttributeId]) -> Vec<Name> {
    match &listing.returns {
        Some(Returns::Names(names)) => names.clone(),
        _ => all.iter().copied().map(Name::from).collect(),
    }
}

/// Sorts rows by the keys of `order by`, and drops those that `limit n skip m` does not reach. Absent values come last
/// in either direction; the sort is stable. The keys of a row are made once: a comparison must not copy texts.
pub(super) fn sort<T>(rows: &mut Vec<T>, listing: &Listing, cell: impl Fn(&T, usize) -> Option<Cell>) {
    let keys = &listing.order;
    let cells = |row: &T| (0..keys.len()).map(|index| cell(row, index)).collect::<Vec<_>>();
    let mut keyed: Vec<(Vec<Option<Cell>>, usize, T)> =
        rows.drain(..).enumerate().map(|(place, row)| (cells(&row), place, row)).collect();
    let order = |(a, place, _): &(Vec<Option<Cell>>, usize, T), (b, other, _): &(Vec<Option<Cell>>, usize, T)| {
        keys.iter()
            .zip(a.iter().zip(b))
            .fold(Ordering::Equal, |order, (key, cells)| order.then_with(|| ordered(key, cells)))
            .then(place.cmp(other))
    };
    if let Some(most) = shown(listing).and_then(|most| usize::try_from(most).ok())
        && most < keyed.len()
    {
        keyed.select_nth_unstable_by(most, order);
        keyed.truncate(most);
    }
    keyed.sort_unstable_by(order);
    rows.extend(keyed.into_iter().map(|(_, _, row)| row));
}

/// The order of two cells by a key.
fn ordered(key: &OrderKey, cells: (&Option<Cell>, &Option<Cell>)) -> Ordering {
    match cells {
        (Some(a), Some(b)) if key.direction == Some(Direction::Desc) => a.order(b).reverse(),
        (Some(a), Some(b)) => a.order(b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// Applies `limit n skip m`.
pub(super) fn cut<T>(rows: impl IntoIterator<Item = T>, listing: &Listing) -> Vec<T> {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let count = listing.limit.map_or(usize::MAX, number);
    rows.into_iter().skip(number(listing.skip)).take(count).collect()
}

/// The table of a thing other than items.
pub(super) fn table(verb: &'static str, thing: Thing, listing: &Listing, rows: Vec<Cells>) -> Table {
    cut_and_sort(verb, listing, &columns(listing, columns_of(thing)), rows)
}

/// Sorts rows, applies the limit and builds the table.
pub(super) fn cut_and_sort(verb: &'static str, listing: &Listing, columns: &[Name], mut rows: Vec<Cells>) -> Table {
    sort(&mut rows, listing, |row, index| named(row, &listing.order[index].name));
    table_of(verb, columns, &cut(rows, listing))
}

/// The table of these columns of rows.
pub(super) fn table_of(verb: &'static str, columns: &[Name], rows: &[Cells]) -> Table {
    let cells = |row: &Cells| columns.iter().map(|name| named(row, name)).collect();
    Table { verb, rows: rows.iter().map(cells).collect(), columns: headings(columns), ..Table::default() }
}

/// The names of columns as a table shows them.
pub(super) fn headings(columns: &[Name]) -> Vec<String> {
    columns.iter().map(heading).collect()
}
