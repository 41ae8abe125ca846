//! Claims and conflicts (memory model, section 6): what items claim, and which claim wins.
//!
//! A claim `(name, value)` *competes* with the claims of the same name, scope and version. Its scope is the item's
//! episode unless the claim is global; its version is the item's. Among the claims of active items the best one wins:
//!
//! ```text
//! success > unknown > failed, then newer (time, then step), then supported by a trace, then the later claim
//! ```
//!
//! Every item that claims a different value loses and stores the winner as its `conflict`; an item with several
//! claims stores the winner over the first one that lost. Values agree if they are equal ignoring case and
//! surrounding blanks, or are the same number. Conflicts are derived and never logged.
//!
//! From `rules = 2` on, what was extracted from traces competes too (`extracted`), and a contest that the preference
//! does not decide is *open*: winner and runner-up have the same status and the same grounding, and their times differ
//! by less than `contest.window` (without times: they have the same step). Nobody loses an open contest. Conflicts are
//! then found when they are asked for ([`Judge`](crate::state::judge::Judge)) and not stored: a value that goes to and
//! fro would otherwise rewrite every claim of its contest each time.
//!
//! For a reader, items ahead of it do not compete, so that an answer at an earlier step does not know later claims.
//! Under `rules = 1` a contest is *open* (`contested`) if winner and runner-up have the same status and the same
//! grounding, and their scores S without similarity and words differ by less than [`TAU`].
//!
//! | table | key | value |
//! |---|---|---|
//! | `CONTEST_CLAIM` | contest, claim u32 | empty |
//! | `CLAIM_CONTEST` | claim u32 | its contest: global u8, episode u32, version u32, name, 0 |
//!
//! Invariants:
//! 1. In a settled state every claim is stored under the contest that its item's episode and version determine.
//! 2. `conflict` is a function of the claims and of the attributes of their items.
//!
//! Cost: a changed item costs a pass over its contests. A query by a reader that has items ahead of it costs a pass
//! over the claims of its episode and the global claims.

use crate::Result;
use crate::model::item::{Attributes, ItemId, Layer, Status, Support};
use crate::records::tables::{self, ClaimRow};
use crate::state::State;
use crate::state::attributes::scalars::{Reads, Scalars};
use crate::state::reader_position::ReaderPosition;
use holotype_index::bitmap::Bits;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Maximum difference in S between winner and runner-up of an open contest (ours).
pub(crate) const TAU: f32 = 0.1;

/// The absent number in a contest's key.
const NONE: u32 = u32::MAX;

/// A competing claim with its item.
#[derive(Debug, Clone)]
pub(crate) struct Rival {
    pub(crate) claim: ClaimRow,
    pub(crate) item: ItemId,
    pub(crate) attributes: Attributes,
}

impl Rival {
    /// Returns true if a trace supports the claim.
    fn is_grounded(&self) -> bool {
        self.attributes.layer() == Layer::Trace || self.attributes.support == Support::Supported
    }

    /// The status of its item; unknown when nobody said.
    fn status(&self) -> Status {
        self.attributes.status.unwrap_or(Status::Unknown)
    }

    /// The order of preference, best first.
    pub(crate) fn best_first(&self, other: &Rival) -> Ordering {
        self.preference().cmp(&other.preference())
    }

    pub(crate) fn preference(&self) -> Preference {
        let a = &self.attributes;
        let later = (self.claim.is_extracted().then_some(self.item), self.claim.number);
        preference(self.status(), a.time, a.step, self.is_grounded(), later)
    }

    pub(crate) fn agrees_with(&self, other: &Rival) -> bool {
        agree(&self.claim.value, &other.claim.value)
    }
}

/// The order of preference of a claim: status, time, step, a trace that supports it, and the later claim.
pub(crate) type Preference =
    (Status, Reverse<Option<i64>>, Reverse<Option<u64>>, Reverse<bool>, Reverse<(Option<ItemId>, u32)>);

/// The preference of a claim. `later` orders equal ones: the item of an extracted claim, and the claim's number.
pub(crate) fn preference(
    status: Status,
    time: Option<i64>,
    step: Option<u64>,
    is_grounded: bool,
    later: (Option<ItemId>, u32),
) -> Preference {
    (status, Reverse(time), Reverse(step), Reverse(is_grounded), Reverse(later))
}

/// The competing claims of one contest, best first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contest {
    pub(crate) rivals: Vec<Rival>,
}

impl Contest {
    /// The item that won over `rival`; `None` if `rival` won or agrees with the winner.
    pub(crate) fn winner_over(&self, rival: &Rival) -> Option<ItemId> {
        self.winner_over_value(rival.item, &rival.claim.value)
    }

    /// The item that won over an item that claims `value`.
    pub(crate) fn winner_over_value(&self, item: ItemId, value: &str) -> Option<ItemId> {
        let winner = self.rivals.first()?;
        (winner.item != item && !agree(&winner.claim.value, value)).then_some(winner.item)
    }

    /// The best rival that disagrees with the winner.
    pub(crate) fn runner_up(&self) -> Option<&Rival> {
        let winner = self.rivals.first()?;
        self.rivals.iter().find(|rival| rival.item != winner.item && !rival.agrees_with(winner))
    }

    /// The winner and the runner-up alone, which decide a contest.
    pub(crate) fn front(&self) -> Contest {
        Contest { rivals: self.rivals.first().into_iter().chain(self.runner_up()).cloned().collect() }
    }

    /// The winner over the claim with this number.
    fn winner_over_claim(&self, number: u32) -> Option<ItemId> {
        self.winner_over(self.rivals.iter().find(|rival| rival.claim.number == number)?)
    }

    /// The contest without the rivals ahead of the reader.
    pub(crate) fn seen_by(mut self, reader_position: &ReaderPosition) -> Contest {
        self.rivals.retain(|rival| !reader_position.is_ahead(&rival.attributes));
        self
    }

    /// Returns true if the preference does not decide the contest by `rules = 2`: winner and runner-up agree in status
    /// and grounding and were made within `window` microseconds, or, without times, at the same step.
    pub(crate) fn is_open_within(&self, window: i64) -> bool {
        let (Some(winner), Some(other)) = (self.rivals.first(), self.runner_up()) else { return false };
        let (a, b) = (&winner.attributes, &other.attributes);
        if winner.status() != other.status() || winner.is_grounded() != other.is_grounded() {
            return false;
        }
        match (a.time, b.time, a.step, b.step) {
            (Some(a), Some(b), ..) => a.abs_diff(b) < window.unsigned_abs(),
            (_, _, Some(one), Some(other)) if a.episode == b.episode => one == other,
            _ => true,
        }
    }

    /// Returns true if the preference does not decide the contest: winner and runner-up agree in status and grounding,
    /// and their scores without a penalty for conflicts, as `score` gives them, differ by less than [`TAU`].
    pub(crate) fn is_open(&self, score: impl Fn(&Scalars) -> f32) -> bool {
        let (Some(winner), Some(other)) = (self.rivals.first(), self.runner_up()) else { return false };
        let alike = winner.attributes.status == other.attributes.status && winner.is_grounded() == other.is_grounded();
        let scored = |rival: &Rival| {
            let undecided = Scalars { conflict: None, ..Scalars::of(&rival.attributes, Reads::ALL) };
            score(&undecided)
        };
        alike && (scored(winner) - scored(other)).abs() < TAU
    }
}

/// Conflicts of a reader, for items whose conflict may differ from the stored one.
#[derive(Debug, Default)]
pub(crate) struct ReaderConflicts(BTreeMap<u32, Option<ItemId>>);

impl ReaderConflicts {
    /// The winner over the item for this reader. `known` is the stored winner.
    pub(crate) fn of(&self, id: ItemId, known: Option<u32>) -> Option<ItemId> {
        self.0.get(&id.0).copied().unwrap_or(known.map(ItemId))
    }

    /// The items that lost a contest for this reader. `known` holds the items with a stored winner.
    pub(crate) fn among(&self, known: &Bits) -> Bits {
        let met: Bits = self.0.keys().copied().collect();
        let lost: Bits = self.0.iter().filter(|(_, loss)| loss.is_some()).map(|(item, _)| *item).collect();
        known.and_not(&met).or(&lost)
    }
}

/// Returns true if two claimed values are equal.
pub(crate) fn agree(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a.to_lowercase() == b.to_lowercase(),
    }
}

/// A number that claimed values share if they are equal; few others share it.
pub(crate) fn value_class(value: &str) -> u32 {
    let value = value.trim();
    let mut hasher = DefaultHasher::new();
    match value.parse::<f64>() {
        // Zero has two signs.
        Ok(number) => (number + 0.0).to_bits().hash(&mut hasher),
        Err(_) => value.to_lowercase().hash(&mut hasher),
    }
    hasher.finish() as u32
}

impl State {
    /// The claims of an item, oldest first: those that the caller stated, or else the extracted ones.
    pub(crate) fn claims_of(&self, id: ItemId) -> Result<Vec<ClaimRow>> {
        let stated = self.stated_claims_of(id)?;
        if stated.is_empty() { self.extracted_of(id) } else { Ok(stated) }
    }

    /// The claims that the caller stated for an item, oldest first.
    pub(crate) fn stated_claims_of(&self, id: ItemId) -> Result<Vec<ClaimRow>> {
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

    /// The claim with this number.
    pub(crate) fn claim(&self, number: u32) -> Result<Option<ClaimRow>> {
        self.get(tables::CLAIM, &tables::numbers([number]))
    }

    /// The key of the contest of a claim.
    pub(crate) fn contest_of(&self, claim: u32) -> Result<Option<Vec<u8>>> {
        self.get(tables::CLAIM_CONTEST, &tables::numbers([claim]))
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
        let mut contests: BTreeSet<Vec<u8>> = self.contests_under(&[])?.into_keys().collect();
        contests.extend(self.extracted_contests()?);
        Ok(contests)
    }

    /// The contests whose keys have this prefix, with the numbers of their claims.
    fn contests_under(&self, prefix: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u32>>> {
        let mut contests: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        for (mut key, _) in self.scan(tables::CONTEST_CLAIM, prefix)? {
            let Some(at) = key.len().checked_sub(4) else { continue };
            let number = tables::number_at(&key, at);
            key.truncate(at);
            contests.entry(key).or_default().extend(number);
        }
        Ok(contests)
    }

    fn members(&self, key: &[u8]) -> Result<Vec<ClaimRow>> {
        let mut claims = Vec::new();
        for (row, _) in self.scan(tables::CONTEST_CLAIM, key)? {
            // The length check excludes longer keys. Names contain no zero byte, so equal length means the same
            // contest.
            if let Some(number) = tables::number_at(&row, key.len()).filter(|_| row.len() == key.len() + 4) {
                claims.extend(self.claim(number)?);
            }
        }
        if let Some(name) = contest_name(key) {
            claims.append(&mut self.extracted_rivals(key, name)?);
        }
        Ok(claims)
    }

    /// The conflicts of a reader that has the items in `ahead` ahead of it.
    ///
    /// Only contests with such an item can end differently for the reader: those of the reader's episode and global
    /// ones.
    pub(crate) fn reader_conflicts(&self, reader_position: &ReaderPosition, ahead: &Bits) -> Result<ReaderConflicts> {
        let mut reader_conflicts = ReaderConflicts::default();
        let Some(episode) = reader_position.episode.filter(|_| self.meta.claims > 0 && !ahead.is_empty()) else {
            return Ok(reader_conflicts);
        };
        let local = [&[0], &episode.to_be_bytes()[..]].concat();
        // Contains every claim of the items of the reader's episode.
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
                reader_conflicts.0.extend(members.iter().map(|claim| (claim.item, None)));
                members.retain(|claim| !ahead.contains(claim.item));
                decided.insert(key, self.contest_among(members)?);
            }
        }
        for (item, loss) in reader_conflicts.0.iter_mut().filter(|(item, _)| !ahead.contains(**item)) {
            let mut stated = claims.remove(item).unwrap_or_default();
            if elsewhere.contains(item) {
                stated.clear();
                for claim in self.claims_of(ItemId(*item))? {
                    stated.extend(self.contest_of(claim.number)?.map(|key| (claim.number, key)));
                }
            }
            stated.sort_unstable();
            *loss = self.first_winner_over(stated, &mut decided)?;
        }
        Ok(reader_conflicts)
    }

    /// The winner over the first losing claim, given claims with their contests.
    fn first_winner_over(
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

    /// Removes a forgotten claim from its contest and schedules the contest to be decided again.
    pub(crate) fn withdraw_claim(&mut self, claim: u32) -> Result<()> {
        let Some(key) = self.contest_of(claim)? else { return Ok(()) };
        self.rows.delete(tables::CONTEST_CLAIM, rival(&key, claim));
        self.rows.delete(tables::CLAIM_CONTEST, tables::numbers([claim]));
        self.contest_stamps.change(&key);
        let others = self.members(&key)?;
        self.changed_claimants.extend(others.into_iter().map(|other| other.item));
        Ok(())
    }

    /// Schedules the contests of an item to be decided again if an attribute that decides contests changed.
    pub(crate) fn mark_claimant(&mut self, id: ItemId, before: &Attributes, after: &Attributes) -> Result<()> {
        let ordering_inputs =
            |a: &Attributes| (a.status, a.time, a.step, a.support, a.active, a.redacted, a.episode, a.version);
        if ordering_inputs(before) != ordering_inputs(after) {
            if self.meta.claims > 0 {
                self.changed_claimants.insert(id.0);
            }
            self.change_contests_of(id, before)?;
        }
        Ok(())
    }

    /// Moves the claims of changed items to their contests and decides every contest they left or joined.
    pub(crate) fn decide_contests(&mut self) -> Result<()> {
        let mut contests = BTreeSet::new();
        let stores_conflicts = self.rules()? < crate::state::extracted::RULES;
        for id in std::mem::take(&mut self.changed_claimants) {
            let attributes = self.attributes(ItemId(id))?;
            if attributes.conflict.is_some() && !stores_conflicts {
                self.set_attributes(ItemId(id), Attributes { conflict: None, ..attributes.clone() })?;
            }
            // Stated claims take the place of extracted ones.
            self.change_contests_of(ItemId(id), &attributes)?;
            for claim in self.stated_claims_of(ItemId(id))? {
                let before = self.contest_of(claim.number)?;
                let after = contest_key(&claim, &attributes);
                if before.as_deref() != Some(&after) {
                    if let Some(before) = before {
                        self.delete(tables::CONTEST_CLAIM, rival(&before, claim.number))?;
                        contests.insert(before);
                    }
                    self.put_empty(tables::CONTEST_CLAIM, rival(&after, claim.number))?;
                    self.put(tables::CLAIM_CONTEST, tables::numbers([claim.number]), &after)?;
                }
                contests.insert(after);
            }
        }
        contests.iter().for_each(|key| self.contest_stamps.change(key));
        let mut decided = BTreeMap::new();
        let mut items = BTreeSet::new();
        if !stores_conflicts {
            return Ok(());
        }
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

    /// The winner over the first losing claim of an item.
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
        self.first_winner_over(claims.iter().map(|claim| (claim.number, contest_key(claim, attributes))), decided)
    }
}

/// The contest of a claim whose item has these attributes.
pub(crate) fn contest_key(claim: &ClaimRow, attributes: &Attributes) -> Vec<u8> {
    contest_key_of(claim.global, &claim.name, attributes)
}

/// The contest of a name for an item with these attributes.
pub(crate) fn contest_key_of(global: bool, name: &str, attributes: &Attributes) -> Vec<u8> {
    let episode = if global { NONE } else { attributes.episode.unwrap_or(NONE) };
    let mut key = Vec::with_capacity(10 + name.len());
    key.push(u8::from(global));
    key.extend_from_slice(&episode.to_be_bytes());
    key.extend_from_slice(&attributes.version.unwrap_or(NONE).to_be_bytes());
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key
}

/// The name in a contest's key.
pub(crate) fn contest_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.get(9..key.len().checked_sub(1)?)?).ok()
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

    #[test]
    fn values_that_agree_are_of_one_class() {
        let values = ["450", " 450.0", "4.5e2", "Queued", "queued ", "$450", "0", "-0", "", " "];
        for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
            assert_eq!(agree(a, b), value_class(a) == value_class(b), "{a:?} and {b:?}");
        }
    }
}
