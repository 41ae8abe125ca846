//! `sources` and `dependents`: traverses the lineage of an item breadth first, each item once.

use super::listing::{columns, cut, headings, reader_position, sort};
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Layer};
use crate::read::answer::{Citation, Table};
use crate::read::cell::Cell;
use crate::read::filter::Filter;
use crate::read::item_view::{ItemView, cells as cells_of};
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_query::plan::{Ref, Walk};
use holotype_query::{AttributeId, Name};
use std::collections::{BTreeSet, VecDeque};

/// The default depth.
const DEFAULT_DEPTH: u64 = 3;

/// The columns of the result.
const COLUMNS: &[AttributeId] = &[
    AttributeId::Depth,
    AttributeId::Root,
    AttributeId::Edge,
    AttributeId::Item,
    AttributeId::Key,
    AttributeId::Kind,
    AttributeId::Field,
    AttributeId::Start,
    AttributeId::End,
    AttributeId::Verdict,
    AttributeId::Status,
    AttributeId::Support,
    AttributeId::Text,
];

/// A reached item.
struct Reached {
    id: ItemId,
    depth: u64,
    root: ItemId,
    edge: Edge,
    /// The item it was reached from; the row shows the citation between both.
    from: ItemId,
}

pub(super) fn run(snapshot: &Snapshot, walk: &Walk) -> Result<Table> {
    let snapshot = &snapshot.at(walk.listing.as_of.as_ref())?;
    let verb = if walk.towards_sources { "sources" } else { "dependents" };
    let reached = reach(snapshot, walk)?;
    let reader_position = reader_position(snapshot, &walk.listing)?;
    let filter = Filter::new(snapshot, &reader_position);
    let ids = reached.iter().map(|reached| reached.id.0).collect();
    let mut kept = filter.scope(walk.listing.scope.as_ref())?.and(&ids);
    if let Some(predicate) = &walk.listing.filter {
        kept = filter.evaluate(predicate, &kept)?;
    }
    let columns = columns(&walk.listing, COLUMNS);
    let mut rows = Vec::new();
    for reached in reached.iter().filter(|reached| kept.contains(reached.id.0)) {
        let view = ItemView::new(snapshot, &reader_position, reached.id)?;
        let mut keys = Vec::new();
        for key in &walk.listing.order {
            keys.push(match key.name.attribute() {
                Some(AttributeId::Depth) => Some(Cell::count(reached.depth)),
                _ => view.get(&key.name)?,
            });
        }
        rows.push((keys, row(snapshot, walk, reached, &view, &columns)?));
    }
    sort(&mut rows, &walk.listing, |(keys, _), index| keys[index].clone());
    let rows = cut(rows, &walk.listing).into_iter().map(|(_, row)| row).collect();
    Ok(Table { verb, columns: headings(&columns), rows, ..Table::default() })
}

fn row(
    snapshot: &Snapshot,
    walk: &Walk,
    reached: &Reached,
    view: &ItemView<'_>,
    columns: &[Name],
) -> Result<Vec<Option<Cell>>> {
    let (citing, cited) = if walk.towards_sources { (reached.from, reached.id) } else { (reached.id, reached.from) };
    let citation = if reached.edge.is_lineage() { citation_of(snapshot, citing, cited)? } else { None };
    let mut cells = cells_of(view, columns)?;
    for (name, cell) in columns.iter().zip(&mut cells) {
        let of = |get: &dyn Fn(&Citation) -> Cell| citation.as_ref().map(get);
        match name.attribute() {
            Some(AttributeId::Depth) => *cell = Some(Cell::count(reached.depth)),
            Some(AttributeId::Root) => *cell = Some(Cell::Text(snapshot.key_of(reached.root)?)),
            Some(AttributeId::Edge) => *cell = Some(Cell::text(reached.edge.as_str())),
            Some(AttributeId::Field) => *cell = of(&|citation| Cell::Text(citation.field.clone())),
            Some(AttributeId::Start) => *cell = of(&|citation| Cell::count(citation.start)),
            Some(AttributeId::End) => *cell = of(&|citation| Cell::count(citation.end)),
            Some(AttributeId::Verdict) => *cell = of(&|citation| Cell::text(citation.verdict.as_str())),
            _ => {}
        }
    }
    Ok(cells)
}

/// The first pointer from one item to another, verified.
fn citation_of(snapshot: &Snapshot, citing: ItemId, cited: ItemId) -> Result<Option<Citation>> {
    let key = snapshot.key_of(cited)?;
    Ok(snapshot.citations(citing)?.into_iter().find(|citation| citation.target == key))
}

fn reach(snapshot: &Snapshot, walk: &Walk) -> Result<Vec<Reached>> {
    let edges: Vec<Edge> = walk.edges.iter().map(|edge| Edge::from(*edge)).collect();
    let depth = walk.depth.unwrap_or(DEFAULT_DEPTH);
    let mut queue: VecDeque<(ItemId, u64, ItemId)> = VecDeque::new();
    let mut seen = BTreeSet::new();
    for root in &walk.roots {
        for id in roots(snapshot, root)? {
            if seen.insert(id) {
                queue.push_back((id, 0, id));
            }
        }
    }
    let mut reached = Vec::new();
    while let Some((from, level, root)) = queue.pop_front() {
        if level == depth {
            continue;
        }
        for (edge, id) in steps(snapshot, walk.towards_sources, from, &edges)? {
            if seen.insert(id) {
                reached.push(Reached { id, depth: level + 1, root, edge, from });
                queue.push_back((id, level + 1, root));
            }
        }
    }
    Ok(reached)
}

/// The neighbours of an item along the given edges, by default along lineage.
fn steps(snapshot: &Snapshot, towards_sources: bool, from: ItemId, edges: &[Edge]) -> Result<Vec<(Edge, ItemId)>> {
    let state = &snapshot.state;
    let mut steps = Vec::new();
    let lineage = [Edge::Cites, Edge::DerivedFrom];
    let wanted: &[Edge] = if edges.is_empty() { &lineage } else { edges };
    for edge in wanted {
        let (out, back) = (state.edges_out(from, Some(*edge))?, state.edges_in(from, Some(*edge))?);
        let (along, against) = if towards_sources { (out, back) } else { (back, out) };
        steps.extend(along.iter().map(|end| (*edge, end.far)));
        if edge.is_symmetric() {
            steps.extend(against.iter().map(|end| (*edge, end.far)));
        }
    }
    if edges.is_empty() {
        let children = match (towards_sources, state.layer_of(from)?) {
            (true, Layer::Theme) => state.edges_in(from, Some(Edge::Parent))?,
            (false, Layer::Recall) => state.edges_out(from, Some(Edge::Parent))?,
            _ => Vec::new(),
        };
        steps.extend(children.iter().map(|end| (Edge::Parent, end.far)));
    }
    Ok(steps)
}

/// The items that a reference names.
pub(super) fn roots(snapshot: &Snapshot, root: &Ref) -> Result<Vec<ItemId>> {
    match root {
        Ref::Item(item) => Ok(vec![snapshot.resolve_item(item)?]),
        Ref::Page(key) => snapshot.page_traces(key),
        Ref::Episode(id) => {
            let number = episode_number(snapshot, id)?;
            let of_episode = |of: f64| of as u32 == number;
            let found = snapshot.state.attributes.select(
                crate::state::attributes::Column::Episode,
                snapshot.len(),
                &of_episode,
            )?;
            Ok(found.iter().map(ItemId).collect())
        }
    }
}

pub(super) fn page_number(snapshot: &Snapshot, key: &str) -> Result<u32> {
    let missing = || Error::Missing { what: "page", name: format!("'{key}'") };
    snapshot.state.page_number(key)?.ok_or_else(missing)
}

pub(super) fn episode_number(snapshot: &Snapshot, id: &str) -> Result<u32> {
    let missing = || Error::Missing { what: "episode", name: format!("'{id}'") };
    snapshot.state.episode_number(id)?.ok_or_else(missing)
}
