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
use crate::model::item::{Attributes, ItemId};
use crate::records::tables::ClaimRow;
use crate::state::State;
use crate::state::claims::{Contest, Rival, contest_key};
use crate::state::extracted::RULES;
use crate::state::reader_position::ReaderPosition;
use crate::state::settings;
use holotype_index::bitmap::Bits;
use holotype_index::words::analysis::Role;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A contest without the rivals ahead of the reader.
pub(crate) struct Decided {
    pub(crate) contest: Contest,
    pub(crate) is_open: bool,
}

impl Decided {
    /// The item that won over a claim: over one that competes, and over one of an item that only repeats claims.
    fn winner_over(&self, claim: &ClaimRow, attributes: &Attributes) -> Option<ItemId> {
        if self.is_open || !attributes.active || attributes.redacted {
            return None;
        }
        let rival = Rival { claim: claim.clone(), item: ItemId(claim.item), attributes: attributes.clone() };
        self.contest.winner_over(&rival)
    }
}

/// An item with its claims and the keys of their contests.
pub(crate) struct Claimant {
    pub(crate) attributes: Attributes,
    pub(crate) claims: Vec<(ClaimRow, Vec<u8>)>,
}

/// Decides contests for one reader.
#[derive(Default)]
pub(crate) struct Judge {
    decided: RefCell<HashMap<Vec<u8>, Arc<Decided>>>,
    /// The items asked about; `None` for those without claims.
    claimants: RefCell<HashMap<ItemId, Option<Arc<Claimant>>>>,
    /// The winners over the items asked about.
    losses: RefCell<HashMap<ItemId, Option<ItemId>>>,
    /// The words of the question.
    terms: BTreeSet<String>,
    reader_position: ReaderPosition,
    window: i64,
}

impl Judge {
    /// A judge for a reader and the text of a question.
    pub(crate) fn new(state: &State, reader_position: &ReaderPosition, text: Option<&str>) -> Result<Judge> {
        let terms = text.map(|text| terms(state, text)).unwrap_or_default();
        let window = settings::contest_window(state)?;
        Ok(Judge { terms, reader_position: reader_position.clone(), window, ..Judge::default() })
    }

    /// The claims of an item; `None` if it has none.
    pub(crate) fn claimant(&self, state: &State, id: ItemId) -> Result<Option<Arc<Claimant>>> {
        if let Some(known) = self.claimants.borrow().get(&id) {
            return Ok(known.clone());
        }
        let claims = state.claims_of(id)?;
        let mut claimant = None;
        if !claims.is_empty() {
            let attributes = state.attributes(id)?;
            let with_key = |claim: ClaimRow| (contest_key(&claim, &attributes), claim);
            let claims = claims.into_iter().map(with_key).map(|(key, claim)| (claim, key)).collect();
            claimant = Some(Arc::new(Claimant { attributes, claims }));
        }
        self.claimants.borrow_mut().insert(id, claimant.clone());
        Ok(claimant)
    }

    /// The contest with this key.
    pub(crate) fn contest(&self, state: &State, key: &[u8]) -> Result<Arc<Decided>> {
        if let Some(known) = self.decided.borrow().get(key) {
            return Ok(Arc::clone(known));
        }
        let contest = state.contest(key)?.seen_by(&self.reader_position);
        let is_open = contest.is_open_within(self.window);
        let decided = Arc::new(Decided { contest, is_open });
        self.decided.borrow_mut().insert(key.to_vec(), Arc::clone(&decided));
        Ok(decided)
    }

    /// The item that won over a claim of this one, whatever the question.
    pub(crate) fn conflict(&self, state: &State, id: ItemId) -> Result<Option<ItemId>> {
        let Some(claimant) = self.claimant(state, id)? else { return Ok(None) };
        for (claim, key) in &claimant.claims {
            if let Some(winner) = self.contest(state, key)?.winner_over(claim, &claimant.attributes) {
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
        let Claimant { attributes, claims } = claimant.as_ref();
        if self.reader_position.is_ahead(attributes) {
            return Ok(None);
        }
        let shared = |(claim, _): &(ClaimRow, Vec<u8>)| match claims.len() {
            1 => 0,
            _ => terms(state, &claim.name).intersection(&self.terms).count(),
        };
        let shares: Vec<usize> = claims.iter().map(shared).collect();
        let most = shares.iter().copied().max().unwrap_or(0);
        let mut first = None;
        for ((claim, key), _) in claims.iter().zip(&shares).filter(|(_, share)| **share == most) {
            let Some(winner) = self.contest(state, key)?.winner_over(claim, attributes) else { return Ok(None) };
            first = first.or(Some(winner));
        }
        Ok(first)
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
        let mut rivals = BTreeSet::new();
        for id in losers.iter() {
            let Some(claimant) = self.claimant(state, ItemId(id))? else { continue };
            for (_, key) in &claimant.claims {
                rivals.extend(self.contest(state, key)?.contest.rivals.iter().map(|rival| rival.item.0));
            }
        }
        self.losers(state, rivals)
    }
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
