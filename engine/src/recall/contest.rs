//! Open contests in recall: both sides of an undecided claim are returned (memory model, sections 6 and 8).
//!
//! If a candidate is a side of an open contest, the other side becomes a candidate too, provided it is in scope,
//! matches the predicate and is not excluded. A selected row then adds its other side: under a limit it replaces the
//! last lower row that is not a side, or becomes an additional row if there is none; under a budget it must fit.

use super::candidates::{Candidates, MatchPath};
use super::plan::Plan;
use super::rank::Scored;
use super::select::{Chosen, Selection};
use crate::Result;
use crate::model::item::ItemId;
use crate::read::snapshot::Snapshot;
use crate::state::attributes::scalars::Scalars;
use crate::state::claims::{Contest, contest_key};
use holotype_index::bitmap::Bits;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The open contests of the candidates.
#[derive(Default)]
pub(crate) struct OpenContests {
    /// By key: both sides and the claim's name; `None` if the contest is not open.
    known: BTreeMap<Vec<u8>, Option<Sides>>,
    /// Candidates that are sides, with their scores.
    ranked: BTreeMap<ItemId, Scored>,
}

#[derive(Clone)]
struct Sides {
    name: String,
    items: [ItemId; 2],
}

impl OpenContests {
    /// Adds the other sides of open contests where they may be rows: of the contests of the items in `of`, else of all
    /// candidates.
    pub(crate) fn join(
        &mut self,
        snapshot: &Snapshot,
        plan: &Plan,
        filter: &Bits,
        of: Option<&[ItemId]>,
        rows: &mut Candidates,
    ) -> Result<()> {
        let all: Vec<ItemId>;
        let of = match of {
            Some(of) => of,
            None => {
                all = rows.ids().map(ItemId).collect();
                &all
            }
        };
        let mut others = Vec::new();
        for id in of {
            for sides in self.of(snapshot, plan, *id)? {
                let other = sides.items.into_iter().filter(|side| side != id && filter.contains(side.0));
                others.extend(other.map(|side| (side.0, MatchPath::contesting(vec![*id]))));
            }
        }
        rows.add(others.into_iter().collect());
        Ok(())
    }

    /// Keeps the scores of the sides.
    pub(crate) fn note(&mut self, ranked: &[Scored]) {
        let sides: BTreeSet<ItemId> = self.known.values().flatten().flat_map(|sides| sides.items).collect();
        for scored in ranked.iter().filter(|scored| sides.contains(&scored.id)) {
            self.ranked.insert(scored.id, scored.clone());
        }
    }

    /// Adds the missing sides of the rows' open contests. Returns the names of the contested claims.
    pub(crate) fn bring(&mut self, snapshot: &Snapshot, plan: &Plan, chosen: &mut Selection) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        let mut sides = BTreeSet::new();
        let present: BTreeSet<ItemId> = chosen.rows.iter().map(|row| row.scored.id).collect();
        for id in &present {
            for contest in self.of(snapshot, plan, *id)? {
                names.insert(contest.name);
                sides.extend(contest.items);
            }
        }
        let used: u64 = chosen.rows.iter().map(|row| u64::from(row.scored.scalars.tokens)).sum();
        let mut left = plan.budget.map(|budget| budget.saturating_sub(used));
        for id in sides.difference(&present) {
            let Some(scored) = self.ranked.remove(id) else { continue };
            let cost = u64::from(scored.scalars.tokens);
            if left.is_some_and(|left| cost > left) {
                chosen.notes.push(format!("the other side {id} of a contested claim exceeds the budget"));
                continue;
            }
            left = left.map(|left| left - cost);
            chosen.rows.push(Chosen::new(snapshot, plan, scored, snapshot.content(*id)?)?);
        }
        if chosen.rows.len() > present.len() {
            chosen.rows.sort_by(|a, b| a.scored.best_first(&b.scored));
            make_room(plan, present.len(), &sides, &mut chosen.rows);
        }
        Ok(names.into_iter().collect())
    }

    /// The open contests in which the item is a side.
    fn of(&mut self, snapshot: &Snapshot, plan: &Plan, id: ItemId) -> Result<Vec<Sides>> {
        let state = &snapshot.state;
        let mut keys = Vec::new();
        if let Some(judge) = &plan.judge {
            let Some(claimant) = judge.claimant(state, id)? else { return Ok(Vec::new()) };
            keys.extend(claimant.claims.iter().map(|(_, key)| key.clone()));
        } else {
            let claims = state.claims_of(id)?;
            let attributes = if claims.is_empty() { return Ok(Vec::new()) } else { state.attributes(id)? };
            keys.extend(claims.iter().map(|claim| contest_key(claim, &attributes)));
        }
        let mut open = Vec::new();
        for key in keys {
            let sides = match self.known.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let sides = sides_of(snapshot, plan, new.key())?;
                    new.insert(sides)
                }
            };
            open.extend(sides.iter().filter(|sides| sides.items.contains(&id)).cloned());
        }
        Ok(open)
    }
}

/// The sides of a contest if it is open.
fn sides_of(snapshot: &Snapshot, plan: &Plan, key: &[u8]) -> Result<Option<Sides>> {
    if let Some(judge) = &plan.judge {
        let decided = judge.contest(&snapshot.state, key)?;
        return Ok(if decided.is_open { sides(&decided.contest) } else { None });
    }
    let contest = snapshot.state.contest(key)?.seen_by(&plan.reader_position);
    let unasked = |item: &Scalars| plan.weights.unasked(item, &plan.reader_position);
    Ok(if contest.is_open(unasked) { sides(&contest) } else { None })
}

fn sides(contest: &Contest) -> Option<Sides> {
    let (winner, other) = (contest.rivals.first()?, contest.runner_up()?);
    Some(Sides { name: winner.claim.name.clone(), items: [winner.item, other.item] })
}

/// Removes rows that are not sides, lowest first and only below a side, while there are too many.
fn make_room(plan: &Plan, before: usize, sides: &BTreeSet<ItemId>, rows: &mut Vec<Chosen>) {
    let limit = plan.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let is_side = |row: &Chosen| sides.contains(&row.scored.id);
    while rows.len() > limit.max(before) {
        let first = rows.iter().position(is_side).unwrap_or(0);
        match rows.iter().rposition(|row| !is_side(row)) {
            Some(last) if last > first => drop(rows.remove(last)),
            _ => break,
        }
    }
}
