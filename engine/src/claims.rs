//! Claims and conflicts (memory model, section 6): what items say is so, and which of them is to be believed.
//!
//! A claim `(name, value)` *competes* with those of the same name, scope and version: the scope is the item's episode unless
//! the claim is global, the version that of the item. Among the claims of active items the best one wins:
//!
//! ```text
//! success > unknown > failed, then newer (time, then step), then supported by a trace, then the later claim
//! ```
//!
//! Every other item that claims another value loses, and carries the winner as its `conflict`; an item with several claims
//! carries the winner of the first that lost. Values agree when they are the same text but for case and blanks at the ends, or the
//! same number. Like support, this is derived and never logged.
//!
//! For a reader only what is not ahead of it competes, so that an answer at an earlier step does not know what came later.
//! A contest is *open* (`contested`) when winner and runner-up agree in status and in whether a trace supports them, and S
//! without similarity and words differs by less than [`TAU`] between them.
//!
//! | table | key | value |
//! |---|---|---|
//! | `RIVALS` | contest, claim u32 | empty |
//! | `CLAIM_AT` | claim u32 | its contest: global u8, episode u32, version u32, name, 0 |
//!
//! Invariants:
//! 1. Every claim stands in the contest that its item's episode and version put it in, once the state is settled.
//! 2. `conflict` is a function of the claims and the attributes of the items that make them.
//!
//! Cost: a changed item costs a pass over the contests it takes part in; a question of a reader whom items are ahead of, a pass
//! over the claims of its episode and the global ones.

use crate::Result;
use crate::item::{Attributes, ItemId, Layer, Status, Support};
use crate::reader::Standing;
use crate::score::{Reads, Scalars, Weights};
use crate::state::State;
use crate::tables::{self, ClaimRow};
use holotype_index::bitmap::Bits;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

/// How near in S winner and runner-up must be for a contest to be open (ours).
pub(crate) const TAU: f32 = 0.1;

/// A number of a contest's key where there is none.
const NONE: u32 = u32::MAX;

/// A claim that competes, with the item that makes it.
#[derive(Debug, Clone)]
pub(crate) struct Rival {
    pub(crate) claim: ClaimRow,
    pub(crate) item: ItemId,
    pub(crate) attributes: Attributes,
}

impl Rival {
    /// Whether a trace stands behind it.
    fn is_grounded(&self) -> bool {
        self.attributes.layer() == Layer::Trace || self.attributes.support == Support::Supported
    }

    /// The order of belief, best first.
    fn best_first(&self, other: &Rival) -> Ordering {
        let rank = |rival: &Rival| {
            let a = &rival.attributes;
            let status = a.status.unwrap_or(Status::Unknown);
            (status, Reverse(a.time), Reverse(a.step), Reverse(rival.is_grounded()), Reverse(rival.claim.number))
        };
        rank(self).cmp(&rank(other))
    }

    pub(crate) fn agrees_with(&self, other: &Rival) -> bool {
        agree(&self.claim.value, &other.claim.value)
    }
}

/// The claims that compete with each other, best first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contest {
    pub(crate) rivals: Vec<Rival>,
}

impl Contest {
    /// The item that a rival lost against; nothing when it won, or says the same as the winner.
    pub(crate) fn winner_over(&self, rival: &Rival) -> Option<ItemId> {
        let winner = self.rivals.first()?;
        (winner.item != rival.item && !winner.agrees_with(rival)).then_some(winner.item)
    }

    /// The best rival that says something else than the winner.
    pub(crate) fn runner_up(&self) -> Option<&Rival> {
        let winner = self.rivals.first()?;
        self.rivals.iter().find(|rival| rival.item != winner.item && !rival.agrees_with(winner))
    }

    /// The winner over the claim of that number.
    fn winner_over_claim(&self, number: u32) -> Option<ItemId> {
        self.winner_over(self.rivals.iter().find(|rival| rival.claim.number == number)?)
    }

    /// The same contest among what a reader can see.
    pub(crate) fn seen_by(mut self, standing: &Standing) -> Contest {
        self.rivals.retain(|rival| !standing.is_ahead(&rival.attributes));
        self
    }

    /// Whether it is not clear who won, for a reader.
    pub(crate) fn is_open(&self, weights: &Weights, standing: &Standing) -> bool {
        let (Some(winner), Some(other)) = (self.rivals.first(), self.runner_up()) else { return false };
        let alike = winner.attributes.status == other.attributes.status && winner.is_grounded() == other.is_grounded();
        let score = |rival: &Rival| {
            let undecided = Scalars { conflict: None, ..Scalars::of(&rival.attributes, Reads::ALL) };
            weights.parts(&undecided, standing, 0.0, 0.0, 0).sum()
        };
        alike && (score(winner) - score(other)).abs() < TAU
    }
}

/// How contests end for a reader, where that may differ from what the columns tell.
#[derive(Debug, Default)]
pub(crate) struct Losses(BTreeMap<u32, Option<ItemId>>);

impl Losses {
    /// The item that won over a claim of this one; `known` is what won in the end.
    pub(crate) fn of(&self, id: ItemId, known: Option<u32>) -> Option<ItemId> {
        self.0.get(&id.0).copied().unwrap_or(known.map(ItemId))
    }

    /// The items of which a claim lost, of those that did in the end.
    pub(crate) fn among(&self, known: &Bits) -> Bits {
        let met: Bits = self.0.keys().copied().collect();
        let lost: Bits = self.0.iter().filter(|(_, loss)| loss.is_some()).map(|(item, _)| *item).collect();
        known.and_not(&met).or(&lost)
    }
}

/// Whether two values are the same.
fn agree(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.to_lowercase() == b.to_lowercase(),
    }
}

impl State {
    /// The claims of an item, oldest first.
    pub(crate) fn claims_of(&self, id: ItemId) -> Result<Vec<ClaimRow>> {
        if self.meta.claims == 0 {
            return Ok(Vec::new());
        }
        let mut claims = Vec::new();
        for (key, _) in self.scan(tables::CLAIM_ITEM, &tables::numbers([id.0]))? {
            if let Some(number) = tables::number_at(&key, 4) {
                claims.extend(self.claim(number)?);
            }
        }
        Ok(claims)
    }

    /// The claim of that number.
    pub(crate) fn claim(&self, number: u32) -> Result<Option<ClaimRow>> {
        self.get(tables::CLAIM, &tables::numbers([number]))
    }

    /// The key of the contest a claim takes part in.
    pub(crate) fn contest_of(&self, claim: u32) -> Result<Option<Vec<u8>>> {
        self.get(tables::CLAIM_AT, &tables::numbers([claim]))
    }

    /// The active claims of a contest, best first.
    pub(crate) fn contest(&self, key: &[u8]) -> Result<Contest> {
        self.contest_among(self.members(key)?)
    }

    fn contest_among(&self, claims: Vec<ClaimRow>) -> Result<Contest> {
        let mut rivals = Vec::with_capacity(claims.len());
        for claim in claims {
            let item = ItemId(claim.item);
            let attributes = self.attributes(item)?;
            if attributes.active && !attributes.redacted {
                rivals.push(Rival { claim, item, attributes });
            }
        }
        rivals.sort_by(Rival::best_first);
        Ok(Contest { rivals })
    }

    /// Every contest, by key.
    pub(crate) fn contests(&self) -> Result<BTreeSet<Vec<u8>>> {
        Ok(self.contests_under(&[])?.into_keys().collect())
    }

    /// The contests whose keys begin so, each with the numbers of its claims.
    fn contests_under(&self, prefix: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u32>>> {
        let mut contests: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        for (mut key, _) in self.scan(tables::RIVALS, prefix)? {
            let Some(at) = key.len().checked_sub(4) else { continue };
            let number = tables::number_at(&key, at);
            key.truncate(at);
            contests.entry(key).or_default().extend(number);
        }
        Ok(contests)
    }

    fn members(&self, key: &[u8]) -> Result<Vec<ClaimRow>> {
        let mut claims = Vec::new();
        for (row, _) in self.scan(tables::RIVALS, key)? {
            // A name that goes on after a zero byte cannot be: names hold none.
            if let Some(number) = tables::number_at(&row, key.len()).filter(|_| row.len() == key.len() + 4) {
                claims.extend(self.claim(number)?);
            }
        }
        Ok(claims)
    }

    /// How contests end for a reader whom these items are ahead of.
    ///
    /// Only contests that one of them takes part in may end otherwise than for everyone: those of the reader's episode, and
    /// the global ones.
    pub(crate) fn losses_seen(&self, standing: &Standing, ahead: &Bits) -> Result<Losses> {
        let mut losses = Losses::default();
        let Some(episode) = standing.episode.filter(|_| self.meta.claims > 0 && !ahead.is_empty()) else {
            return Ok(losses);
        };
        let local = [&[0], &episode.to_be_bytes()[..]].concat();
        // Of items of the episode, every claim is among these.
        let mut claims: BTreeMap<u32, Vec<(u32, Vec<u8>)>> = BTreeMap::new();
        let mut elsewhere = BTreeSet::new();
        let mut decided = BTreeMap::new();
        for prefix in [&local[..], &[1]] {
            for (key, numbers) in self.contests_under(prefix)? {
                let mut members = Vec::with_capacity(numbers.len());
                for number in numbers {
                    members.extend(self.claim(number)?);
                }
                for claim in &members {
                    claims.entry(claim.item).or_default().push((claim.number, key.clone()));
                }
                if !members.iter().any(|claim| ahead.contains(claim.item)) {
                    continue;
                }
                for claim in members.iter().filter(|_| prefix == [1]) {
                    if self.attributes(ItemId(claim.item))?.episode != Some(episode) {
                        elsewhere.insert(claim.item);
                    }
                }
                losses.0.extend(members.iter().map(|claim| (claim.item, None)));
                members.retain(|claim| !ahead.contains(claim.item));
                decided.insert(key, self.contest_among(members)?);
            }
        }
        for (item, loss) in losses.0.iter_mut().filter(|(item, _)| !ahead.contains(**item)) {
            let mut stated = claims.remove(item).unwrap_or_default();
            if elsewhere.contains(item) {
                stated.clear();
                for claim in self.claims_of(ItemId(*item))? {
                    stated.extend(self.contest_of(claim.number)?.map(|key| (claim.number, key)));
                }
            }
            stated.sort_unstable();
            *loss = self.first_loss(stated, &mut decided)?;
        }
        Ok(losses)
    }

    /// The winner over the first claim that lost, of claims with their contests.
    fn first_loss(
        &self,
        claims: impl IntoIterator<Item = (u32, Vec<u8>)>,
        decided: &mut BTreeMap<Vec<u8>, Contest>,
    ) -> Result<Option<ItemId>> {
        for (number, key) in claims {
            let contest = match decided.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let contest = self.contest(new.key())?;
                    new.insert(contest)
                }
            };
            if let Some(winner) = contest.winner_over_claim(number) {
                return Ok(Some(winner));
            }
        }
        Ok(None)
    }

    /// Takes a claim that is forgotten out of its contest, which is decided anew.
    pub(crate) fn withdraw_claim(&mut self, claim: u32) -> Result<()> {
        let Some(key) = self.contest_of(claim)? else { return Ok(()) };
        self.rows.delete(tables::RIVALS, rival(&key, claim));
        self.rows.delete(tables::CLAIM_AT, tables::numbers([claim]));
        let others = self.members(&key)?;
        self.disputed.extend(others.into_iter().map(|other| other.item));
        Ok(())
    }

    /// Notes that something changed that contests go by.
    pub(crate) fn note_rival(&mut self, id: ItemId, before: &Attributes, after: &Attributes) {
        let standing =
            |a: &Attributes| (a.status, a.time, a.step, a.support, a.active, a.redacted, a.episode, a.version);
        if self.meta.claims > 0 && standing(before) != standing(after) {
            self.disputed.insert(id.0);
        }
    }

    /// Puts the claims of every item that changed where they belong, and decides the contests they left and joined.
    pub(crate) fn settle_claims(&mut self) -> Result<()> {
        let mut contests = BTreeSet::new();
        for id in std::mem::take(&mut self.disputed) {
            let attributes = self.attributes(ItemId(id))?;
            for claim in self.claims_of(ItemId(id))? {
                let before = self.contest_of(claim.number)?;
                let after = contest_key(&claim, &attributes);
                if before.as_deref() != Some(&after) {
                    if let Some(before) = before {
                        self.delete(tables::RIVALS, rival(&before, claim.number))?;
                        contests.insert(before);
                    }
                    self.put_empty(tables::RIVALS, rival(&after, claim.number))?;
                    self.put(tables::CLAIM_AT, tables::numbers([claim.number]), &after)?;
                }
                contests.insert(after);
            }
        }
        let mut decided = BTreeMap::new();
        let mut items = BTreeSet::new();
        for key in contests {
            items.extend(self.members(&key)?.into_iter().map(|claim| claim.item));
            decided.insert(key.clone(), self.contest(&key)?);
        }
        for id in items.into_iter().map(ItemId) {
            let attributes = self.attributes(id)?;
            let conflict = self.conflict(id, &attributes, &mut decided)?.map(|winner| winner.0);
            if conflict != attributes.conflict {
                self.set_attributes(id, Attributes { conflict, ..attributes })?;
            }
        }
        Ok(())
    }

    /// The winner over the first claim of an item that lost.
    fn conflict(
        &self,
        id: ItemId,
        attributes: &Attributes,
        decided: &mut BTreeMap<Vec<u8>, Contest>,
    ) -> Result<Option<ItemId>> {
        if !attributes.active || attributes.redacted {
            return Ok(None);
        }
        let claims = self.claims_of(id)?;
        self.first_loss(claims.iter().map(|claim| (claim.number, contest_key(claim, attributes))), decided)
    }
}

/// The key of the contest that a claim of an item with these attributes takes part in.
fn contest_key(claim: &ClaimRow, attributes: &Attributes) -> Vec<u8> {
    let episode = if claim.global { NONE } else { attributes.episode.unwrap_or(NONE) };
    let mut key = vec![u8::from(claim.global)];
    key.extend_from_slice(&tables::numbers([episode, attributes.version.unwrap_or(NONE)]));
    key.extend_from_slice(claim.name.as_bytes());
    key.push(0);
    key
}

fn rival(contest: &[u8], claim: u32) -> Vec<u8> {
    [contest, &claim.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_agree_as_people_expect() {
        assert!(agree("450", " 450.0"));
        assert!(agree("Queued", "queued "));
        assert!(!agree("450", "$450"));
        assert!(!agree("queued", "running"));
    }
}
