//! `conflicts`: contradicting claims, contest by contest, the winner first.

use super::listing::{columns, cut, keep, reader_position, sort, table_of};
use crate::Result;
use crate::model::item::ItemId;
use crate::read::answer::Table;
use crate::read::cell::{Cell, Cells, named};
use crate::read::filter::episode_numbers;
use crate::read::glob::glob;
use crate::read::snapshot::Snapshot;
use crate::recall::score::Weights;
use crate::records::tables::ClaimRow;
use crate::state::claims::{Contest, Rival, contest_key};
use crate::state::judge::Decided;
use crate::state::reader_position::ReaderPosition;
use crate::state::{extracted, settings};
use holotype_query::ast::{Conflicts, Scope};
use holotype_query::{AttributeId, ClaimScope};
use std::collections::BTreeMap;
use std::sync::Arc;

const COLUMNS: &[AttributeId] = &[
    AttributeId::Name,
    AttributeId::Value,
    AttributeId::Item,
    AttributeId::Won,
    AttributeId::Contested,
    AttributeId::Status,
    AttributeId::Time,
    AttributeId::Episode,
    AttributeId::Version,
    AttributeId::Scope,
];

pub(super) fn run(snapshot: &Snapshot, conflicts: &Conflicts) -> Result<Table> {
    let listing = &conflicts.listing;
    let snapshot = &snapshot.at(listing.as_of.as_ref())?;
    let reader_position = reader_position(snapshot, listing)?;
    let episodes = match listing.scope.as_ref().map(|scope| &scope.node) {
        Some(Scope::Episodes(ids)) => Some(episode_numbers(&snapshot.state, ids)?),
        _ => None,
    };
    let mut rows: Vec<Cells> = Vec::new();
    for key in snapshot.state.contests()? {
        let decided = decide(snapshot, &key, &reader_position)?;
        let Decided { contest, is_open } = &decided;
        let named = |rival: &Rival| conflicts.on.as_ref().is_none_or(|on| glob(on.node.bound(), &rival.claim.name));
        if !contest.rivals.first().is_some_and(named) || contest.runner_up().is_none() {
            continue;
        }
        for rival in &contest.rivals {
            let is_in = |episodes: &Vec<u32>| rival.attributes.episode.is_some_and(|of| episodes.contains(&of));
            if episodes.as_ref().is_none_or(is_in) {
                rows.push(row(snapshot, contest, rival, *is_open)?);
            }
        }
    }
    rows.sort_by_key(|row| row.get(&AttributeId::Name).map(ToString::to_string));
    let mut rows = keep(rows, listing)?;
    if let Some(order) = &listing.order {
        sort(&mut rows, &order.node, |row, index| named(row, &order.node[index].node.name.node));
    }
    let columns = columns(listing, COLUMNS);
    let rows = cut(rows, listing.limit.as_ref());
    Ok(table_of("conflicts", &columns, &rows))
}

/// A contest as a reader sees it.
fn decide(snapshot: &Snapshot, key: &[u8], reader_position: &ReaderPosition) -> Result<Decided> {
    let state = &snapshot.state;
    let contest = state.contest(key)?.seen_by(reader_position);
    let is_open = if state.rules()? >= extracted::RULES {
        contest.is_open_within(settings::contest_window(state)?)
    } else {
        let weights = Weights::of(state, None)?;
        contest.is_open(|item| weights.unasked(item, reader_position))
    };
    Ok(Decided { contest: Arc::new(contest), is_open })
}

/// The row of a claim in its contest.
fn row(snapshot: &Snapshot, contest: &Contest, rival: &Rival, is_open: bool) -> Result<Cells> {
    let state = &snapshot.state;
    let commit = match rival.claim.is_extracted() {
        true => rival.attributes.commit,
        false => state.commit_when(|row| row.totals.claims > rival.claim.number)?,
    };
    let mut row = BTreeMap::from([
        (AttributeId::Item, Cell::Text(snapshot.key_of(rival.item)?)),
        (AttributeId::Name, Cell::text(rival.claim.name.as_str())),
        (AttributeId::Value, Cell::text(rival.claim.value.as_str())),
        (
            AttributeId::Scope,
            Cell::text(if rival.claim.global { ClaimScope::Global } else { ClaimScope::Episode }.as_str()),
        ),
        (AttributeId::Commit, Cell::count(commit)),
        (AttributeId::Contested, Cell::Bool(is_open)),
    ]);
    if let Some(episode) = rival.attributes.episode {
        row.insert(AttributeId::Episode, Cell::Text(state.episode(episode)?.id.clone()));
    }
    if let Some(version) = rival.attributes.version {
        row.insert(AttributeId::Version, Cell::Text(state.symbol_name(version)?));
    }
    row.extend(rival.attributes.status.map(|status| (AttributeId::Status, Cell::text(status.as_str()))));
    row.extend(rival.attributes.time.map(|time| (AttributeId::Time, Cell::Time(time))));
    let is_it = |other: &Rival| (other.item, other.claim.number) == (rival.item, rival.claim.number);
    let competes = contest.rivals.iter().any(is_it) && !(is_open && state.rules()? >= extracted::RULES);
    if let Some(winner) = contest.winner_over(rival).filter(|_| competes) {
        row.insert(AttributeId::Won, Cell::Text(snapshot.key_of(winner)?));
    }
    Ok(row)
}

/// All claims as rows of `find claims`. Claims of inactive items compete in no contest.
pub(super) fn claims(snapshot: &Snapshot, reader_position: &ReaderPosition) -> Result<Vec<Cells>> {
    let state = &snapshot.state;
    let mut decided: BTreeMap<Vec<u8>, Decided> = BTreeMap::new();
    let mut rows = Vec::new();
    let mut claims = Vec::new();
    for number in 0..state.meta.claims {
        claims.extend(state.claim(number)?);
    }
    for item in state.items_with_claims()? {
        claims.extend(state.claims_of(item)?.into_iter().filter(ClaimRow::is_extracted));
    }
    for claim in claims {
        let item = ItemId(claim.item);
        let attributes = state.attributes(item)?;
        let key = contest_key(&claim, &attributes);
        if !decided.contains_key(&key) {
            decided.insert(key.clone(), decide(snapshot, &key, reader_position)?);
        }
        let Some(Decided { contest, is_open }) = decided.get(&key) else { continue };
        let rival = Rival { item, attributes, claim };
        rows.push(row(snapshot, contest, &rival, *is_open)?);
    }
    Ok(rows)
}
