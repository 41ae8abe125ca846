//! `conflicts`: claims that contradict each other, name by name, the leader first.

use super::listing::{columns, cut, keep, reader_position, sort, table_of};
use crate::Result;
use crate::model::item::ItemId;
use crate::read::answer::Table;
use crate::read::cell::{Cell, Cells, named};
use crate::read::filter::episode_numbers;
use crate::read::glob::glob;
use crate::read::snapshot::Snapshot;
use crate::records::tables::ClaimRow;
use crate::state::conflicts::{Claimant, Conflicts};
use crate::state::reader_position::ReaderPosition;
use holotype_query::plan::{self, Predicate, Scope, Test};
use holotype_query::{AttributeId, ClaimScope, Op, Value};
use std::collections::{BTreeMap, BTreeSet};

const COLUMNS: &[AttributeId] = &[
    AttributeId::Name,
    AttributeId::Value,
    AttributeId::Item,
    AttributeId::Won,
    AttributeId::Status,
    AttributeId::Time,
    AttributeId::Episode,
    AttributeId::Version,
    AttributeId::Scope,
];

pub(super) fn run(snapshot: &Snapshot, statement: &plan::Conflicts) -> Result<Table> {
    let listing = &statement.listing;
    let snapshot = &snapshot.at(listing.as_of.as_ref())?;
    let reader_position = reader_position(snapshot, listing)?;
    let episodes = match &listing.scope {
        Some(Scope::Episodes(ids)) => Some(episode_numbers(&snapshot.state, ids)?),
        _ => None,
    };
    let conflicts = Conflicts::new(&snapshot.state, &reader_position);
    let mut rows: Vec<Cells> = Vec::new();
    let asked = match &listing.filter {
        Some(filter) => names_asked(snapshot, filter)?,
        None => None,
    };
    let names = match asked {
        Some(names) => names,
        None => snapshot.state.claim_names()?,
    };
    for name in names {
        snapshot.tick()?;
        if !statement.on.as_ref().is_none_or(|on| glob(on, &name)) {
            continue;
        }
        let claimants = conflicts.claimants(&name)?;
        let contradicts = |claimant: &&Claimant| claimants.iter().any(|other| other.contradicts(claimant));
        for claimant in claimants.iter().filter(contradicts) {
            let is_in = |episodes: &Vec<u32>| claimant.attributes.episode.is_some_and(|of| episodes.contains(&of));
            if episodes.as_ref().is_none_or(is_in) {
                rows.push(row(snapshot, &conflicts, claimant)?);
            }
        }
    }
    let mut rows = keep(rows, listing)?;
    sort(&mut rows, listing, |row, index| named(row, &listing.order[index].name));
    let columns = columns(listing, COLUMNS);
    let rows = cut(rows, listing);
    Ok(table_of("conflicts", &columns, &rows))
}

/// The only names that can pass a filter; `None` if any can. The claims of one item, or of one name, are found without
/// reading those of all.
fn names_asked(snapshot: &Snapshot, filter: &Predicate) -> Result<Option<BTreeSet<String>>> {
    let test = match filter {
        Predicate::And(parts) => {
            for part in parts {
                if let Some(names) = names_asked(snapshot, part)? {
                    return Ok(Some(names));
                }
            }
            return Ok(None);
        }
        Predicate::Test(test) => test.as_ref(),
        Predicate::Or(_) | Predicate::Not(_) => return Ok(None),
    };
    let Test::Compare { name, op: Op::Eq, value: Value::Text(text) } = test else { return Ok(None) };
    match name.word() {
        Some("name") => Ok(Some(BTreeSet::from([text.clone()]))),
        Some("item") => match snapshot.state.item_by_key(text)? {
            Some(id) => Ok(Some(snapshot.state.claims_of(id)?.into_iter().map(|claim| claim.name).collect())),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The row of a claim.
fn row(snapshot: &Snapshot, conflicts: &Conflicts<'_>, claimant: &Claimant) -> Result<Cells> {
    let state = &snapshot.state;
    let Claimant { claim, item, attributes } = claimant;
    let commit = match claim.is_extracted() {
        true => attributes.commit,
        false => state.commit_when(|row| row.totals.claims > claim.number)?,
    };
    let scope = if claim.global { ClaimScope::Global } else { ClaimScope::Episode };
    let mut row = BTreeMap::from([
        (AttributeId::Item, Cell::Text(snapshot.key_of(*item)?)),
        (AttributeId::Name, Cell::text(claim.name.as_str())),
        (AttributeId::Value, Cell::text(claim.value.as_str())),
        (AttributeId::Scope, Cell::text(scope.as_str())),
        (AttributeId::Commit, Cell::count(commit)),
    ]);
    if let Some(episode) = attributes.episode {
        row.insert(AttributeId::Episode, Cell::Text(state.episode(episode)?.id.clone()));
    }
    if let Some(version) = attributes.version {
        row.insert(AttributeId::Version, Cell::Text(state.symbol_name(version)?));
    }
    row.extend(attributes.status.map(|status| (AttributeId::Status, Cell::text(status.as_str()))));
    row.extend(attributes.time.map(|time| (AttributeId::Time, Cell::Time(time))));
    if let Some(leader) = conflicts.leader_over_claimant(claimant)? {
        row.insert(AttributeId::Won, Cell::Text(snapshot.key_of(leader)?));
    }
    Ok(row)
}

/// All claims as rows of `find claims`. Claims of inactive items compete with no other.
pub(super) fn claims(snapshot: &Snapshot, reader_position: &ReaderPosition) -> Result<Vec<Cells>> {
    let state = &snapshot.state;
    let conflicts = Conflicts::new(state, reader_position);
    let mut claims = Vec::new();
    for number in 0..state.meta.claims {
        claims.extend(state.claim(number)?);
    }
    for item in state.items_with_claims()? {
        claims.extend(state.claims_of(item)?.into_iter().filter(ClaimRow::is_extracted));
    }
    let mut rows = Vec::with_capacity(claims.len());
    for claim in claims {
        snapshot.tick()?;
        let item = ItemId(claim.item);
        rows.push(row(snapshot, &conflicts, &Claimant { item, attributes: state.attributes(item)?, claim })?);
    }
    Ok(rows)
}
