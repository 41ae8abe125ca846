//! `find`: lists everything that matches a predicate. Nothing is excluded by default.

use super::listing::{ListedItems, cut, headings, item_columns, items, reader_position, rows, shown, sort, table};
use crate::Result;
use crate::model::item::ItemId;
use crate::read::answer::Table;
use crate::read::cell::kept_len;
use crate::read::item_view::{ItemView, cells};
use crate::read::snapshot::Snapshot;
use crate::statements::rows::Items;
use holotype_query::Noun;
use holotype_query::plan::{Find, Thing};

pub(super) fn run(snapshot: &Snapshot, find: &Find) -> Result<Table> {
    let Some(found) = begin(snapshot, find)? else {
        let snapshot = &snapshot.at(find.listing.as_of.as_ref())?;
        let thing = find.thing;
        return Ok(table("find", thing, &find.listing, rows(snapshot, thing, &find.listing)?));
    };
    let mut rows = Vec::with_capacity(found.ids.len());
    for (id, key) in found.ids {
        let view = ItemView::new(&found.snapshot, &found.reader_position, id)?.found_by(key);
        let cells = cells(&view, &found.columns)?;
        snapshot.keep(kept_len(&cells))?;
        rows.push(cells);
    }
    Ok(Table { verb: "find", columns: headings(&found.columns), rows, ..Table::default() })
}

/// The items to list; `None` if the statement lists something else.
pub(super) fn begin(snapshot: &Snapshot, find: &Find) -> Result<Option<Items>> {
    let noun = match find.thing {
        Thing::Noun(noun) if !matches!(noun, Noun::Pages | Noun::Episodes) => noun,
        _ => return Ok(None),
    };
    let listing = &find.listing;
    let snapshot = &*snapshot.at(listing.as_of.as_ref())?;
    let reader_position = reader_position(snapshot, listing)?;
    // Ids ascend, so that without an order the first rows are all that is needed.
    let most = if listing.order.is_empty() { shown(listing) } else { None };
    let found = items(snapshot, &reader_position, noun, listing, most)?;
    let ids: Vec<(ItemId, Option<String>)> = match (listing.order.as_slice(), found) {
        // Ids ascend, so a limit needs no other rows.
        ([], ListedItems::Few(ids)) => cut(ids, listing),
        ([], found) => cut(found.iter().map(|id| (id, None)), listing),
        (order, found) => {
            let mut keyed = Vec::new();
            for id in found.iter() {
                snapshot.tick()?;
                let view = ItemView::new(snapshot, &reader_position, id)?;
                let keys = order.iter().map(|key| view.get(&key.name)).collect::<Result<Vec<_>>>()?;
                snapshot.keep(kept_len(&keys))?;
                keyed.push((id, keys));
            }
            sort(&mut keyed, listing, |(_, keys), index| keys[index].clone());
            cut(keyed.into_iter().map(|(id, _)| (id, None)), listing)
        }
    };
    snapshot.keep(size_of_val(ids.as_slice()))?;
    let columns = item_columns(listing);
    Ok(Some(Items { snapshot: snapshot.clone(), reader_position, ids: ids.into_iter(), columns }))
}
