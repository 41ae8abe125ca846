//! The judge: what lost a contest of claims, for one reader and one question (rules 2; memory model, sections 4 and 6).
//!
//! An item is *conflicted* for a question if every claim of it that the question is about lost a decided contest. The
//! question is about the claims whose names share the most words with it; without shared words, about all of them. One
//! stale field of ten does not hide a record that is asked about another field.
//!
//! Claims are read and contests decided when they are first asked for, and kept for the question.
//!
//! Cost: an item's claims and a contest are read once, with the attributes of the items that compete.

use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::records::tables::ClaimRow;
use crate::state::State;
use crate::state::attributes::Contestant;
use crate::state::claims::{Contest, agree};
use crate::state::extracted::RULES;
use crate::state::reader_position::ReaderPosition;
use crate::state::settings;
use crate::state::standings::{KeyedClaims, LastCounts, Standings};
use foldhash::fast::RandomState;
use holotype_index::bitmap::Bits;
use holotype_index::words::analysis::Role;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A contest without the rivals ahead of the reader: at least the winner and the runner-up.
pub(crate) struct Decided {
    pub(crate) contest: Arc<Contest>,
    pub(crate) is_open: bool,
}

impl Decided {
    /// The item that won over a claim: over one that competes, and over one of an item that only repeats claims.
    fn winner_over(&self, claim: &ClaimRow, of: &Contestant) -> Option<ItemId> {
        if self.is_open || !of.competes {
            return None;
        }
        self.contest.winner_over_value(ItemId(claim.item), &claim.value)
    }
}

/// An item with its claims and the keys of their contests.
pub(crate) struct Claimant {
    contestant: Contestant,
    pub(crate) claims: KeyedClaims,
}

/// The words that the name of a claim shares with the question.
#[derive(Clone, Copy)]
struct Overlap {
    shared: usize,
    /// The question has all of them.
    is_whole: bool,
}

/// Decides contests for one reader.
#[derive(Default)]
pub(crate) struct Judge {
    decided: RefCell<HashMap<Vec<u8>, Arc<Decided>>>,
    /// The items asked about; `None` for those without claims.
    claimants: RefCell<HashMap<ItemId, Option<Arc<Claimant>>, RandomState>>,
    /// The winners over the items asked about.
    losses: RefCell<HashMap<ItemId, Option<ItemId>, RandomState>>,
    /// The words of the question, and how the names of claims share them.
    terms: BTreeSet<String>,
    overlaps: RefCell<HashMap<String, Overlap>>,
    reader_position: ReaderPosition,
    window: i64,
    /// The standings of contests, for a state that was published.
    standings: Option<Arc<Standings>>,
    last_counts: RefCell<LastCounts>,
}

impl Judge {
    /// A judge for a reader and the text of a question.
    pub(crate) fn new(state: &State, reader_position: &ReaderPosition, text: Option<&str>) -> Result<Judge> {
        let terms = text.map(|text| terms(state, text)).unwrap_or_default();
        let window = settings::contest_window(state)?;
        Ok(Judge { terms, reader_position: reader_position.clone(), window, ..Judge::default() })
    }

    /// The same judge with standings of contests. `None` for a state that was not published, or a past one.
    pub(crate) fn with_standings(self, standings: Option<Arc<Standings>>) -> Judge {
        Judge { standings, ..self }
    }

    /// The claims of an item; `None` if it has none.
    pub(crate) fn claimant(&self, state: &State, id: ItemId) -> Result<Option<Arc<Claimant>>> {
        if let Some(known) = self.claimants.borrow().get(&id) {
            return Ok(known.clone());
        }
        if let Some(standings) = &self.standings
            && standings.has_none(state, id, &mut self.last_counts.borrow_mut())?
        {
            self.claimants.borrow_mut().insert(id, None);
            return Ok(None);
        }
        let contestant = state.attributes.contestant(id)?;
        let claims = match &self.standings {
            Some(standings) => standings.claims(state, id, contestant.layer)?,
            None => state.keyed_claims_of(id)?,
        };
        let claimant = (!claims.is_empty()).then(|| Arc::new(Claimant { contestant, claims }));
        self.claimants.borrow_mut().insert(id, claimant.clone());
        Ok(claimant)
    }

    /// The contest with this key.
    pub(crate) fn contest(&self, state: &State, key: &[u8]) -> Result<Arc<Decided>> {
        if let Some(known) = self.decided.borrow().get(key) {
            return Ok(Arc::clone(known));
        }
        let contest = match &self.standings {
            Some(standings) => standings.front(state, key, &self.reader_position)?,
            None => Arc::new(state.contest(key)?.seen_by(&self.reader_position)),
        };
        let is_open = contest.is_open_within(self.window);
        let decided = Arc::new(Decided { contest, is_open });
        self.decided.borrow_mut().insert(key.to_vec(), Arc::clone(&decided));
        Ok(decided)
    }

    /// The item that won over a claim of this one, whatever the question.
    pub(crate) fn conflict(&self, state: &State, id: ItemId) -> Result<Option<ItemId>> {
        let Some(claimant) = self.claimant(state, id)? else { return Ok(None) };
        for (claim, key) in claimant.claims.iter() {
            if let Some(winner) = self.contest(state, key)?.winner_over(claim, &claimant.contestant) {
                return Ok(Some(winner));
            }
        }
        Ok(None)
    }

    /// The item that won over the claims of this one that the question is about; `None` unless all of them lost.
    pub(crate) fn loss(&self, state: &State, id: ItemId) -> Result<Option<ItemId>> {
        if let Some(known) = self.losses.borrow().get(&id) {
            return Ok(*known);
        }
        let loss = self.find_loss(state, id)?;
        self.losses.borrow_mut().insert(id, loss);
        Ok(loss)
    }

    fn find_loss(&self, state: &State, id: ItemId) -> Result<Option<ItemId>> {
        let Some(claimant) = self.claimant(state, id)? else { return Ok(None) };
        let of = &claimant.contestant;
        if of.layer != Layer::Theme && self.reader_position.is_behind(of.episode, of.step, of.time) {
            return Ok(None);
        }
        let mut first = None;
        for (claim, key) in self.in_question(state, &claimant) {
            let winner = self.contest(state, key)?.winner_over(claim, &claimant.contestant);
            let Some(winner) = winner else { return Ok(None) };
            first = first.or(Some(winner));
        }
        Ok(first)
    }

    /// The claims of an item that the question is about.
    fn in_question<'c>(&self, state: &State, claimant: &'c Claimant) -> Vec<&'c (ClaimRow, Vec<u8>)> {
        let claims = &claimant.claims;
        let shared = |(claim, _): &(ClaimRow, Vec<u8>)| match claims.len() {
            1 => 0,
            _ => self.overlap(state, &claim.name).shared,
        };
        let shares: Vec<usize> = claims.iter().map(shared).collect();
        let most = shares.iter().copied().max().unwrap_or(0);
        claims.iter().zip(shares).filter(|(_, share)| *share == most).map(|(claim, _)| claim).collect()
    }

    /// The trace that won each contest that the question is about with the value this trace states, too; `None` if
    /// there is none, or if it is this one.
    pub(crate) fn restated_by(&self, state: &State, id: ItemId) -> Result<Option<ItemId>> {
        let Some(claimant) = self.claimant(state, id)? else { return Ok(None) };
        let mut newest = None;
        for (claim, key) in self.in_question(state, &claimant) {
            let decided = self.contest(state, key)?;
            let winner = decided.contest.rivals.first().filter(|_| !decided.is_open);
            let Some(winner) = winner.filter(|winner| agree(&winner.claim.value, &claim.value)) else {
                return Ok(None);
            };
            if winner.item == id || newest.is_some_and(|newest| newest != winner.item) {
                return Ok(None);
            }
            newest = Some(winner.item);
        }
        // A side of an undecided contest stands for itself.
        for (_, key) in claimant.claims.iter().filter(|_| newest.is_some()) {
            if self.contest(state, key)?.is_open {
                return Ok(None);
            }
        }
        Ok(newest)
    }

    /// True if the question has every word of the name of a claim of the item: subject and attribute.
    pub(crate) fn names_claim_of(&self, state: &State, id: ItemId) -> Result<bool> {
        let Some(claimant) = self.claimant(state, id)? else { return Ok(false) };
        Ok(claimant.claims.iter().any(|(claim, _)| self.overlap(state, &claim.name).is_whole))
    }

    /// The words that the name of a claim, `price of ua123`, shares with the question.
    fn overlap(&self, state: &State, name: &str) -> Overlap {
        if let Some(known) = self.overlaps.borrow().get(name) {
            return *known;
        }
        let of_name = terms(state, &name.replace(" of ", " "));
        let shared = of_name.intersection(&self.terms).count();
        let overlap = Overlap { shared, is_whole: shared > 0 && shared == of_name.len() };
        self.overlaps.borrow_mut().insert(name.to_owned(), overlap);
        overlap
    }

    /// The losers among some items.
    pub(crate) fn losers(&self, state: &State, items: impl IntoIterator<Item = u32>) -> Result<Bits> {
        let mut losers = Vec::new();
        for id in items {
            if self.loss(state, ItemId(id))?.is_some() {
                losers.push(id);
            }
        }
        Ok(losers.into_iter().collect())
    }

    /// The losers of all contests that some losers take part in.
    pub(crate) fn losers_beside(&self, state: &State, losers: &Bits) -> Result<Bits> {
        let mut found = Rivals::default();
        let mut known = HashSet::new();
        for id in losers.iter() {
            let Some(claimant) = self.claimant(state, ItemId(id))? else { continue };
            for (_, key) in claimant.claims.iter() {
                if known.insert(key.clone()) {
                    self.add_rivals(state, key, &mut found)?;
                }
            }
        }
        Ok(self.losers(state, found.to_judge)?.or(&found.lost.into_iter().collect()))
    }

    /// Adds the rivals of a contest. An item with one claim lost if that claim did; others are judged by all of theirs.
    fn add_rivals(&self, state: &State, key: &[u8], found: &mut Rivals) -> Result<()> {
        let Some(standings) = self.standings.as_ref().filter(|_| state.meta.claims == 0) else {
            let contest = state.contest(key)?.seen_by(&self.reader_position);
            found.to_judge.extend(contest.rivals.iter().map(|rival| rival.item.0));
            return Ok(());
        };
        let standing = standings.standing(state, key)?;
        let is_open = self.contest(state, key)?.is_open;
        let shows_all = standing.shows_all_to(&self.reader_position);
        for (id, disagrees) in standing.members() {
            if !shows_all || !standings.has_one_claim(state, id, &mut found.last)? {
                found.to_judge.insert(id.0);
            } else if disagrees && !is_open {
                found.lost.push(id.0);
            }
        }
        Ok(())
    }
}

/// The items that compete in some contests.
#[derive(Default)]
struct Rivals {
    /// Those that lost.
    lost: Vec<u32>,
    /// Those whose other claims count, too.
    to_judge: BTreeSet<u32>,
    last: LastCounts,
}

impl State {
    /// The item that won over a claim of this one, for a reader who sees everything. `stored` is the winner under rules
    /// that store it.
    pub(crate) fn conflict_of(&self, id: ItemId, stored: Option<u32>) -> Result<Option<ItemId>> {
        if self.rules()? < RULES {
            return Ok(stored.map(ItemId));
        }
        Judge::new(self, &ReaderPosition::default(), None)?.conflict(self, id)
    }
}

/// The words of a text, as the index knows them.
fn terms(state: &State, text: &str) -> BTreeSet<String> {
    let analyzer = state.layers[0].words.analyzer;
    let terms = analyzer.analyze(text).into_iter();
    terms.filter(|(_, role)| *role == Role::Word).map(|(key, _)| key).collect()
}
