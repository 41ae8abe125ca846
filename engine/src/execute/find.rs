//! `find`: everything of a kind that a predicate holds for. It hides nothing.

use super::listing::{cut, item_cells, item_columns, items, rows, sort, standing, table};
use crate::Result;
use crate::answer::Table;
use crate::item::ItemId;
use crate::item_view::ItemView;
use crate::snapshot::Snapshot;
use holotype_query::Noun;
use holotype_query::ast::{Find, Thing};

pub(super) fn run(snapshot: &Snapshot, find: &Find) -> Result<Table> {
    let snapshot = &snapshot.at(find.listing.as_of.as_ref())?;
    match find.thing.node {
        Thing::Noun(noun) if !matches!(noun, Noun::Pages | Noun::Episodes) => find_items(snapshot, noun, find),
        thing => Ok(table("find", thing, &find.listing, rows(snapshot, thing, &find.listing)?)),
    }
}

fn find_items(snapshot: &Snapshot, noun: Noun, find: &Find) -> Result<Table> {
    let listing = &find.listing;
    let standing = standing(snapshot, listing)?;
    let found = items(snapshot, &standing, noun, listing)?;
    let mut keyed = Vec::new();
    for id in found.iter().map(ItemId) {
        let mut keys = Vec::new();
        if let Some(order) = &listing.order {
            let view = ItemView::new(snapshot, &standing, id)?;
            for key in &order.node {
                keys.push(view.get(&key.node.name.node)?);
            }
        }
        keyed.push((id, keys));
    }
    if let Some(order) = &listing.order {
        sort(&mut keyed, &order.node, |(_, keys), index| keys[index].clone());
    }
    let columns = item_columns(listing);
    let mut rows = Vec::new();
    for (id, _) in cut(keyed, listing.limit.as_ref()) {
        rows.push(item_cells(&ItemView::new(snapshot, &standing, id)?, &columns)?);
    }
    Ok(Table { verb: "find", columns, rows, ..Table::default() })
}
