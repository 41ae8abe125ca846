//! `find`: everything of a kind that a predicate holds for. It hides nothing.

use super::listing::{Found, cut, item_columns, items, rows, sort, standing, table};
use crate::Result;
use crate::answer::Table;
use crate::cell::kept_len;
use crate::item::ItemId;
use crate::item_view::{ItemView, cells};
use crate::rows::Items;
use crate::snapshot::Snapshot;
use holotype_query::Noun;
use holotype_query::ast::{Find, Thing};

pub(super) fn run(snapshot: &Snapshot, find: &Find) -> Result<Table> {
    let Some(found) = begin(snapshot, find)? else {
        let snapshot = &snapshot.at(find.listing.as_of.as_ref())?;
        let thing = find.thing.node;
        return Ok(table("find", thing, &find.listing, rows(snapshot, thing, &find.listing)?));
    };
    let mut rows = Vec::with_capacity(found.ids.len());
    for (id, key) in found.ids {
        let view = ItemView::new(&found.snapshot, &found.standing, id)?.found_by(key);
        let cells = cells(&view, &found.columns)?;
        snapshot.keep(kept_len(&cells))?;
        rows.push(cells);
    }
    Ok(Table { verb: "find", columns: found.columns, rows, ..Table::default() })
}

/// The items to be listed, when it is items that are asked for.
pub(super) fn begin(snapshot: &Snapshot, find: &Find) -> Result<Option<Items>> {
    let noun = match find.thing.node {
        Thing::Noun(noun) if !matches!(noun, Noun::Pages | Noun::Episodes) => noun,
        _ => return Ok(None),
    };
    let listing = &find.listing;
    let snapshot = &*snapshot.at(listing.as_of.as_ref())?;
    let standing = standing(snapshot, listing)?;
    let found = items(snapshot, &standing, noun, listing)?;
    let ids: Vec<(ItemId, Option<String>)> = match (&listing.order, found) {
        // Ids ascend, so the rows before the limit are known without looking at the others.
        (None, Found::Few(ids)) => cut(ids, listing.limit.as_ref()),
        (None, found) => cut(found.iter().map(|id| (id, None)), listing.limit.as_ref()),
        (Some(order), found) => {
            let mut keyed = Vec::new();
            for id in found.iter() {
                let view = ItemView::new(snapshot, &standing, id)?;
                let keys = order.node.iter().map(|key| view.get(&key.node.name.node)).collect::<Result<Vec<_>>>()?;
                snapshot.keep(kept_len(&keys))?;
                keyed.push((id, keys));
            }
            sort(&mut keyed, &order.node, |(_, keys), index| keys[index].clone());
            cut(keyed.into_iter().map(|(id, _)| (id, None)), listing.limit.as_ref())
        }
    };
    snapshot.keep(size_of_val(ids.as_slice()))?;
    let columns = item_columns(listing);
    Ok(Some(Items { snapshot: snapshot.clone(), standing, ids: ids.into_iter(), columns }))
}
