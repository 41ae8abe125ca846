//! Standings: who leads a contest of claims and who comes next, kept across questions and commits.
//!
//! Deciding a contest reads all of its claims, and a question about one flight among hundreds meets hundreds of
//! contests. What a question needs of a contest is its leader, the best claim that disagrees with it, and the items
//! that compete; so much is kept for as long as nothing changes what the contest says.
//!
//! A standing is valid as long as the *stamp* of its contest stays
//! ([`contest_stamps`](crate::state::contest_stamps)). New items change no stamp: a standing covers the items and
//! claims below a bound, and those above are added when the contest is asked for next.
//!
//! Invariants:
//! 1. Equal stamps mean equal claims below the lower bound, with equal attributes.
//! 2. Only published states are read into standings: a number below their bound is never given to another item.
//! 3. What a standing says is what reading the whole contest says ([`State::contest`]).
//!
//! Cost: a contest is read once, then in proportion to what was added. At most [`MAX_WEIGHT`] claims are kept in each
//! of two generations, at 8 bytes each and some 700 for each contest. With lists, claims of items and their numbers, a
//! fifth of `memory_limit` is kept at most; above [`FULL_LIMIT`] it grows no more.

use crate::Result;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::records::tables::{self, ClaimRow};
use crate::state::State;
use crate::state::attributes::Contestant;
use crate::state::claims::{Contest, Preference, Rival, agree, contest_key, contest_name, preference, value_class};
use crate::state::extracted::{extracted_claim, rival_of};
use crate::state::reader_position::ReaderPosition;
use holotype_storage::SmallBytes;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

/// The `memory_limit` in bytes from which the following numbers hold; below, they are in proportion to it.
const FULL_LIMIT: u64 = 256 << 20;
/// Claims that are kept, at most, in each of two generations.
const MAX_WEIGHT: usize = 1 << 20;
/// Claims that lists keep, at most, in each of two generations.
const MAX_LISTED: usize = 1 << 15;
/// Items and their claims that are kept with the keys of contests, at most, in each of two generations.
const MAX_KEYED: usize = 1 << 15;
/// Blocks of numbers of claims that are kept, at most, in each of two generations.
const MAX_BLOCKS: usize = 4_096;
/// About the bytes of a claim in a standing, of one in a list, and of one with its item's.
const CLAIM_BYTES: u64 = 8;
const LISTED_BYTES: u64 = 256;
const KEYED_BYTES: u64 = 160;
/// The cost of a contest beside its claims, counted in claims.
const CONTEST_WEIGHT: usize = 80;
/// Items whose numbers of claims are read together.
const BLOCK_ITEMS: u32 = 1_024;

/// A claim of an active item in its contest.
#[derive(Debug, Clone)]
struct Contender {
    preference: Preference,
    item: ItemId,
    number: u32,
    layer: Layer,
    episode: Option<u32>,
    value: SmallBytes,
    /// The claim as the caller stated it; `None` for an extracted one.
    stated: Option<Box<ClaimRow>>,
}

impl Contender {
    fn value(&self) -> &str {
        std::str::from_utf8(&self.value).unwrap_or_default()
    }

    fn is_ahead_of(&self, reader_position: &ReaderPosition) -> bool {
        let (_, time, step, ..) = &self.preference;
        self.layer != Layer::Theme && reader_position.is_behind(self.episode, step.0, time.0)
    }

    /// The claim with the attributes of its item.
    fn rival(&self, state: &State, name: &str) -> Result<Rival> {
        let claim = match &self.stated {
            Some(stated) => stated.as_ref().clone(),
            None => extracted_claim(self.item, self.number, name, self.value()),
        };
        Ok(Rival { claim, item: self.item, attributes: state.attributes(self.item)? })
    }
}

/// The part of a contest that is kept.
pub(crate) struct Standing {
    stamp: u64,
    /// The numbers of items and claims that it covers.
    covers: Covers,
    /// The leader, and the best claim of another item that disagrees with it.
    pub(crate) front: Arc<Contest>,
    /// The leader's item makes several claims in the contest.
    is_repeated: bool,
    /// The episode of all that compete; `None` if there are several.
    episode: Option<Option<u32>>,
    newest_step: Option<u64>,
    newest_time: Option<i64>,
    /// The items that compete, with the class of the value that each claims.
    members: Vec<(u32, u32)>,
}

/// The items and claims below these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Covers {
    items: u32,
    claims: u32,
}

impl Covers {
    fn of(state: &State) -> Covers {
        Covers { items: state.bound(), claims: state.meta.claims }
    }

    fn includes(self, other: Covers) -> bool {
        self.items >= other.items && self.claims >= other.claims
    }
}

impl Standing {
    fn of(state: &State, name: &str, stamp: u64, contenders: &[Contender]) -> Result<Standing> {
        let front = front(state, name, contenders.iter())?;
        let leader = front.rivals.first().map(|rival| rival.item);
        let mut standing = Standing {
            stamp,
            covers: Covers::of(state),
            front: Arc::new(front),
            is_repeated: contenders.iter().filter(|contender| Some(contender.item) == leader).count() > 1,
            episode: contenders.first().map(|first| first.episode),
            newest_step: None,
            newest_time: None,
            members: Vec::with_capacity(contenders.len()),
        };
        standing.admit(contenders);
        Ok(standing)
    }

    fn admit(&mut self, contenders: &[Contender]) {
        for contender in contenders {
            let (_, time, step, ..) = &contender.preference;
            self.newest_time = self.newest_time.max(time.0);
            self.newest_step = self.newest_step.max(step.0);
            self.episode = self.episode.filter(|episode| *episode == contender.episode);
            self.members.push((contender.item.0, value_class(contender.value())));
        }
    }

    /// The standing with contenders that were added; `None` if only the whole contest tells.
    fn with(&self, state: &State, name: &str, new: &[Contender]) -> Result<Option<Standing>> {
        let mut rivals = self.front.rivals.clone();
        for contender in new {
            rivals.push(contender.rival(state, name)?);
        }
        rivals.sort_by(Rival::best_first);
        let contest = Contest { rivals };
        let leader = contest.rivals.first().map(|rival| rival.item);
        let before = self.front.rivals.first().map(|rival| rival.item);
        if leader != before && self.is_repeated {
            return Ok(None);
        }
        let repeats = new.iter().filter(|contender| Some(contender.item) == leader).count();
        let mut standing = Standing {
            stamp: self.stamp,
            covers: Covers::of(state),
            front: Arc::new(contest.front()),
            is_repeated: repeats > 1 || (leader == before && (self.is_repeated || repeats > 0)),
            episode: if self.members.is_empty() { new.first().map(|first| first.episode) } else { self.episode },
            newest_step: self.newest_step,
            newest_time: self.newest_time,
            members: self.members.clone(),
        };
        standing.admit(new);
        Ok(Some(standing))
    }

    /// True if none of the claims is ahead of the reader.
    pub(crate) fn shows_all_to(&self, reader_position: &ReaderPosition) -> bool {
        match self.episode {
            Some(episode) => !reader_position.is_behind(episode, self.newest_step, self.newest_time),
            None => self.members.is_empty() || reader_position.episode.is_none(),
        }
    }

    /// The items that compete. The flag tells that the item claims another value than the leader; a value that only
    /// seems to be the leader's counts as the same.
    pub(crate) fn members(&self) -> impl Iterator<Item = (ItemId, bool)> + '_ {
        let leader = self.front.rivals.first();
        let leading = leader.map(|leader| (leader.item.0, value_class(&leader.claim.value)));
        let disagrees = move |item: u32, class: u32| leading.is_some_and(|(of, led)| of != item && led != class);
        self.members.iter().map(move |(item, class)| (ItemId(*item), disagrees(*item, *class)))
    }

    fn weight(&self) -> usize {
        let values: usize = self.front.rivals.iter().map(|rival| rival.claim.value.len()).sum();
        self.members.len() + CONTEST_WEIGHT + values / size_of::<(u32, u32)>()
    }
}

/// The claims of a contest, best first.
struct List {
    stamp: u64,
    covers: Covers,
    contenders: Vec<Contender>,
}

/// The number of claims of each item of a block.
struct CountBlock {
    stamp: u64,
    below: u32,
    counts: Vec<u8>,
}

/// The first of these claims by preference, and the first of another item that disagrees with it.
fn front<'c>(state: &State, name: &str, contenders: impl Iterator<Item = &'c Contender> + Clone) -> Result<Contest> {
    let mut rivals = Vec::new();
    if let Some(leader) = contenders.clone().min_by_key(|contender| contender.preference) {
        rivals.push(leader.rival(state, name)?);
        let disagrees = |other: &&Contender| other.item != leader.item && !agree(other.value(), leader.value());
        if let Some(other) = contenders.filter(disagrees).min_by_key(|contender| contender.preference) {
            rivals.push(other.rival(state, name)?);
        }
    }
    Ok(Contest { rivals })
}

impl State {
    /// The claims of active items in a contest, of items and claims from these numbers on.
    fn contenders(&self, key: &[u8], from: Covers) -> Result<Vec<Contender>> {
        let mut contenders = Vec::new();
        if self.meta.claims > from.claims {
            let first = [key, &from.claims.to_be_bytes()].concat();
            for row in self.rows.range(tables::CONTEST_CLAIM, Bound::Included(&first), Bound::Unbounded) {
                let (row, _) = row?;
                if !row.starts_with(key) {
                    break;
                }
                let number = tables::number_at(&row, key.len()).filter(|_| row.len() == key.len() + 4);
                if let Some(claim) = number.map(|number| self.claim(number)).transpose()?.flatten() {
                    contenders.extend(self.stated_contender(claim)?);
                }
            }
        }
        let episode = tables::number_at(key, 1).filter(|episode| *episode != u32::MAX);
        let first = [key, &from.items.to_be_bytes()].concat();
        for row in self.rows.range(tables::CONTEST_EXTRACTED, Bound::Included(&first), Bound::Unbounded) {
            let (row, value) = row?;
            if !row.starts_with(key) {
                break;
            }
            let Some((item, number)) = rival_of(&row, key.len()) else { continue };
            let contestant = self.attributes.contestant(item)?;
            if !contestant.competes || self.has_stated_claims(item)? {
                continue;
            }
            let Contestant { status, time, step, .. } = contestant;
            let preference = preference(status, time, step, true, (Some(item), number));
            let layer = Layer::Trace;
            contenders.push(Contender { preference, item, number, layer, episode, value, stated: None });
        }
        Ok(contenders)
    }

    fn stated_contender(&self, claim: ClaimRow) -> Result<Option<Contender>> {
        let attributes: Attributes = self.attributes(ItemId(claim.item))?;
        if !attributes.active || attributes.redacted {
            return Ok(None);
        }
        let (item, layer, episode) = (ItemId(claim.item), attributes.layer(), attributes.episode);
        let rival = Rival { claim, item, attributes };
        let preference = rival.preference();
        let (number, value) = (rival.claim.number, SmallBytes::from(rival.claim.value.as_bytes()));
        let stated = Some(Box::new(rival.claim));
        Ok(Some(Contender { preference, item, number, layer, episode, value, stated }))
    }

    /// The claims of an item with the keys of their contests.
    pub(crate) fn keyed_claims_of(&self, id: ItemId) -> Result<KeyedClaims> {
        let claims = self.claims_of(id)?;
        if claims.is_empty() {
            return Ok(Arc::default());
        }
        let attributes = self.attributes(id)?;
        let with_key = |claim: ClaimRow| {
            let key = contest_key(&claim, &attributes);
            (claim, key)
        };
        Ok(claims.into_iter().map(with_key).collect())
    }

    /// Gives the contests that extracted claims of a trace take part in another stamp.
    pub(crate) fn change_contests_of(&mut self, id: ItemId, attributes: &Attributes) -> Result<()> {
        if attributes.layer() == Layer::Trace {
            for claim in self.extracted_of(id)? {
                self.contest_stamps.change(&contest_key(&claim, attributes));
            }
        }
        Ok(())
    }
}

/// The standings of a database.
#[derive(Default)]
pub(crate) struct Standings {
    memory_limit: u64,
    standings: Mutex<Kept<Vec<u8>, Standing>>,
    lists: Mutex<Kept<Vec<u8>, List>>,
    counts: Mutex<Kept<u32, CountBlock>>,
    claims: Mutex<Kept<u32, ItemClaims>>,
}

/// The claims of an item with the keys of their contests.
pub(crate) type KeyedClaims = Arc<[(ClaimRow, Vec<u8>)]>;

/// The claims of a trace by the rules of extraction.
struct ItemClaims {
    stamp: u64,
    claims: KeyedClaims,
}

impl Standings {
    /// No standings yet. What is kept is bounded by the option `memory_limit`, in bytes.
    pub(crate) fn within(memory_limit: u64) -> Standings {
        Standings { memory_limit: memory_limit.min(FULL_LIMIT), ..Standings::default() }
    }

    /// About the most bytes that are kept.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.memory_limit / 5
    }

    /// About the bytes that are kept.
    pub(crate) fn byte_len(&self) -> u64 {
        let claims = lock(&self.standings).all_weight() * CLAIM_BYTES + lock(&self.lists).all_weight() * LISTED_BYTES;
        let keyed = lock(&self.claims).all_weight() * KEYED_BYTES;
        claims + keyed + lock(&self.counts).all_weight() * u64::from(BLOCK_ITEMS)
    }

    /// As many of a number as the memory limit permits.
    fn share(&self, most: usize) -> usize {
        usize::try_from(most as u64 * self.memory_limit / FULL_LIMIT).unwrap_or(most)
    }

    /// The leader of a contest and the best claim that disagrees with it, of what the reader sees.
    pub(crate) fn front(&self, state: &State, key: &[u8], reader_position: &ReaderPosition) -> Result<Arc<Contest>> {
        let standing = self.standing(state, key)?;
        if standing.shows_all_to(reader_position) {
            return Ok(Arc::clone(&standing.front));
        }
        let name = contest_name(key).unwrap_or_default();
        let list = self.list(state, key)?;
        let seen = list.contenders.iter().filter(|contender| !contender.is_ahead_of(reader_position));
        Ok(Arc::new(front(state, name, seen)?))
    }

    /// The standing of a contest.
    pub(crate) fn standing(&self, state: &State, key: &[u8]) -> Result<Arc<Standing>> {
        let (stamp, now) = (state.contest_stamps.of(key), Covers::of(state));
        let name = contest_name(key).unwrap_or_default();
        let known = lock(&self.standings).get(key).filter(|known| known.stamp == stamp);
        let mut made = None;
        if let Some(known) = known {
            if known.covers == now {
                return Ok(known);
            }
            if known.covers.includes(now) {
                // The reader's snapshot is older.
                return Ok(Arc::new(Standing::of(state, name, stamp, &state.contenders(key, FIRST)?)?));
            }
            if now.includes(known.covers) {
                let new = state.contenders(key, known.covers)?;
                made = known.with(state, name, &new)?;
            }
        }
        let standing = match made {
            Some(standing) => standing,
            None => Standing::of(state, name, stamp, &state.contenders(key, FIRST)?)?,
        };
        let standing = Arc::new(standing);
        lock(&self.standings).keep(key.to_vec(), Arc::clone(&standing), standing.weight(), self.share(MAX_WEIGHT));
        Ok(standing)
    }

    fn list(&self, state: &State, key: &[u8]) -> Result<Arc<List>> {
        let (stamp, covers) = (state.contest_stamps.of(key), Covers::of(state));
        let known = lock(&self.lists).get(key).filter(|known| known.stamp == stamp);
        let list = match known {
            Some(known) if known.covers == covers => return Ok(known),
            Some(known) if covers.includes(known.covers) => {
                let mut contenders = state.contenders(key, known.covers)?;
                contenders.extend_from_slice(&known.contenders);
                List { stamp, covers, contenders }
            }
            _ => List { stamp, covers, contenders: state.contenders(key, FIRST)? },
        };
        let values: usize = list.contenders.iter().map(|contender| contender.value.len()).sum();
        let weight = 1 + list.contenders.len() + values / size_of::<Contender>();
        let list = Arc::new(list);
        lock(&self.lists).keep(key.to_vec(), Arc::clone(&list), weight, self.share(MAX_LISTED));
        Ok(list)
    }

    /// The claims of an item. Those of a trace are kept: they never change, nor do its episode and version.
    pub(crate) fn claims(&self, state: &State, id: ItemId, layer: Layer) -> Result<KeyedClaims> {
        if state.meta.claims > 0 || layer != Layer::Trace {
            return state.keyed_claims_of(id);
        }
        let stamp = state.contest_stamps.of_items();
        if let Some(known) = lock(&self.claims).get(&id.0).filter(|known| known.stamp == stamp) {
            return Ok(Arc::clone(&known.claims));
        }
        let claims = state.keyed_claims_of(id)?;
        let (known, weight) = (Arc::new(ItemClaims { stamp, claims: Arc::clone(&claims) }), 1 + claims.len());
        lock(&self.claims).keep(id.0, known, weight, self.share(MAX_KEYED));
        Ok(claims)
    }

    /// True if the item has no claim, as far as that is known without reading its own.
    pub(crate) fn has_none(&self, state: &State, id: ItemId, last: &mut LastCounts) -> Result<bool> {
        Ok(state.meta.claims == 0 && self.count(state, id, last)? == Some(0))
    }

    /// True if rules extracted just one claim from the item.
    pub(crate) fn has_one_claim(&self, state: &State, id: ItemId, last: &mut LastCounts) -> Result<bool> {
        Ok(self.count(state, id, last)? == Some(1))
    }

    /// The number of claims that rules extracted from an item.
    fn count(&self, state: &State, id: ItemId, last: &mut LastCounts) -> Result<Option<u8>> {
        let number = id.0 / BLOCK_ITEMS;
        if last.0.as_ref().is_none_or(|(of, _)| *of != number) {
            last.0 = Some((number, self.counts(state, number)?));
        }
        let counts = last.0.as_ref().map(|(_, block)| &block.counts);
        Ok(counts.and_then(|counts| counts.get((id.0 % BLOCK_ITEMS) as usize)).copied())
    }

    fn counts(&self, state: &State, number: u32) -> Result<Arc<CountBlock>> {
        let first = number.saturating_mul(BLOCK_ITEMS);
        let below = state.bound().min(first.saturating_add(BLOCK_ITEMS));
        let stamp = state.contest_stamps.of_items();
        if let Some(known) =
            lock(&self.counts).get(&number).filter(|known| known.stamp == stamp && known.below >= below)
        {
            return Ok(known);
        }
        let mut counts = vec![0; BLOCK_ITEMS as usize];
        let (from, to) = (first.to_be_bytes(), below.to_be_bytes());
        for row in state.rows.range(tables::EXTRACTED, Bound::Included(&from), Bound::Excluded(&to)) {
            let (key, value) = row?;
            let place = tables::number_at(&key, 0).and_then(|id| counts.get_mut(id.checked_sub(first)? as usize));
            // A sequence begins with its length.
            let len = value.get(..8).and_then(|len| len.try_into().ok()).map_or(0, u64::from_le_bytes);
            if let Some(place) = place {
                *place = u8::try_from(len).unwrap_or(u8::MAX);
            }
        }
        let block = Arc::new(CountBlock { stamp, below, counts });
        lock(&self.counts).keep(number, Arc::clone(&block), 1, self.share(MAX_BLOCKS));
        Ok(block)
    }
}

/// All items and claims.
const FIRST: Covers = Covers { items: 0, claims: 0 };

/// The block of numbers of claims that was looked into last.
#[derive(Default)]
pub(crate) struct LastCounts(Option<(u32, Arc<CountBlock>)>);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values by key in two generations: when the younger one is full it becomes the older one, whose values are forgotten.
struct Kept<K, T> {
    young: HashMap<K, Arc<T>>,
    old: HashMap<K, Arc<T>>,
    weight: usize,
    old_weight: usize,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Kept { young: HashMap::new(), old: HashMap::new(), weight: 0, old_weight: 0 }
    }
}

impl<K: Hash + Eq, T> Kept<K, T> {
    /// The weight of both generations.
    fn all_weight(&self) -> u64 {
        (self.weight + self.old_weight) as u64
    }

    fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Arc<T>>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.young.get(key).or_else(|| self.old.get(key)).cloned()
    }

    fn keep(&mut self, key: K, value: Arc<T>, weight: usize, most: usize) {
        if self.weight + weight > most {
            self.old = std::mem::take(&mut self.young);
            self.old_weight = std::mem::take(&mut self.weight);
        }
        if weight <= most {
            self.weight += weight;
            self.young.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_memory_keeps_less() {
        let limits = [0, 64 << 20, 256 << 20, u64::MAX];
        let shares = limits.map(|limit| Standings::within(limit).share(MAX_BLOCKS));
        assert_eq!(shares, [0, MAX_BLOCKS / 4, MAX_BLOCKS, MAX_BLOCKS]);
    }

    #[test]
    fn what_is_kept_last_is_found_and_what_is_too_large_is_not_kept() {
        let mut kept: Kept<u32, u32> = Kept::default();
        for number in 0..25 {
            kept.keep(number, Arc::new(number), 2, 20);
        }
        let found: Vec<u32> = (0..25).filter(|number| kept.get(number).is_some()).collect();
        assert_eq!(found, (10..25).collect::<Vec<u32>>());
        kept.keep(99, Arc::new(99), 21, 20);
        assert!(kept.get(&99).is_none());
    }
}
