//! Conflicts: which item contradicts a claim of another one and is preferred to it.
//!
//! Two claims of one name contradict each other if their values differ. They *compete* if their items are active, seen
//! from the viewpoint, of one version, and neither cites the other; a claim stated for its episode competes within that
//! episode. The *leader* of a name is the preferred claimant:
//!
//! ```text
//! success > unknown > failed, then newer (time, then step), then supported by a trace, then the later item
//! ```
//!
//! An item *conflicts* with the leader of a name if it claims another value and the leader is of better status, or
//! newer. Without times and in different episodes neither is newer: then there is no conflict. A conflict is a label.
//! It excludes nothing, and is never stored.
//!
//! Cost: a name is decided among its [`MAX_CLAIMANTS`] newest claims, so that a value read a million times costs what
//! one read 64 times does.

use crate::Result;
use crate::model::edge::Edge;
use crate::model::item::{Attributes, ItemId, Layer, Status, Support};
use crate::records::tables::ClaimRow;
use crate::state::State;
use crate::state::claims::agree;
use crate::state::reader_position::ReaderPosition;
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::sync::Arc;

/// The newest claims of a name that compete: extracted ones, and as many stated ones.
const MAX_CLAIMANTS: usize = 64;

/// A claim with its item.
#[derive(Debug, Clone)]
pub(crate) struct Claimant {
    pub(crate) claim: ClaimRow,
    pub(crate) item: ItemId,
    pub(crate) attributes: Attributes,
}

impl Claimant {
    /// True if a trace supports the claim.
    fn is_grounded(&self) -> bool {
        self.attributes.layer() == Layer::Trace || self.attributes.support == Support::Supported
    }

    /// The status of its item; unknown without one.
    fn status(&self) -> Status {
        self.attributes.status.unwrap_or(Status::Unknown)
    }

    /// The order of preference, best first.
    pub(crate) fn best_first(&self, other: &Claimant) -> Ordering {
        let key = |claimant: &Claimant| {
            let Attributes { time, step, .. } = claimant.attributes;
            let later = (claimant.item, claimant.claim.number);
            (claimant.status(), Reverse(time), Reverse(step), Reverse(claimant.is_grounded()), Reverse(later))
        };
        key(self).cmp(&key(other))
    }

    pub(crate) fn agrees_with(&self, other: &Claimant) -> bool {
        agree(&self.claim.value, &other.claim.value)
    }

    /// True if two claims of different items in one scope have different values.
    pub(crate) fn contradicts(&self, other: &Claimant) -> bool {
        self.item != other.item && share_scope(self, other) && !self.agrees_with(other)
    }

    /// True if status, time or step prefer this claim, and not only the order in which it was written.
    pub(crate) fn is_preferred_to(&self, other: &Claimant) -> bool {
        match self.status().cmp(&other.status()) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => is_newer(&self.attributes, &other.attributes),
        }
    }
}

/// True if an item is newer: by time, and in one episode by step where times are equal or missing.
pub(crate) fn is_newer(a: &Attributes, b: &Attributes) -> bool {
    match (a.time, b.time) {
        (Some(a), Some(b)) if a != b => a > b,
        _ => a.episode == b.episode && a.step > b.step,
    }
}

/// The conflicts that a viewpoint sees. Names are decided when they are first asked for, and kept.
pub(crate) struct Conflicts<'s> {
    state: &'s State,
    viewpoint: &'s ReaderPosition,
    /// The claimants of each name asked for, best first.
    decided: RefCell<HashMap<String, Arc<Vec<Claimant>>, RandomState>>,
}

impl<'s> Conflicts<'s> {
    /// The conflicts that a viewpoint sees.
    pub(crate) fn new(state: &'s State, viewpoint: &'s ReaderPosition) -> Conflicts<'s> {
        Conflicts { state, viewpoint, decided: RefCell::default() }
    }

    /// The item that contradicts a claim of this one and is preferred to it.
    pub(crate) fn leader_over(&self, id: ItemId) -> Result<Option<ItemId>> {
        self.leader_over_any(id, self.state.claims_of(id)?)
    }

    /// The item that contradicts one of these claims of an item and is preferred to it.
    pub(crate) fn leader_over_any(&self, id: ItemId, claims: Vec<ClaimRow>) -> Result<Option<ItemId>> {
        let Some(attributes) = claims.first().map(|_| self.state.attributes(id)).transpose()? else { return Ok(None) };
        for claim in claims {
            let claimant = Claimant { claim, item: id, attributes: attributes.clone() };
            if let Some(leader) = self.leader_over_claimant(&claimant)? {
                return Ok(Some(leader));
            }
        }
        Ok(None)
    }

    /// The leader that contradicts a claimant and is preferred to it.
    pub(crate) fn leader_over_claimant(&self, claimant: &Claimant) -> Result<Option<ItemId>> {
        if !self.competes(&claimant.attributes)? {
            return Ok(None);
        }
        for other in self.claimants(&claimant.claim.name)?.iter() {
            if other.item == claimant.item || !share_scope(other, claimant) {
                continue;
            }
            if other.agrees_with(claimant) || !other.is_preferred_to(claimant) {
                return Ok(None);
            }
            if !self.is_cited(other, claimant)? {
                return Ok(Some(other.item));
            }
        }
        Ok(None)
    }

    /// The claimants of a name that compete, best first.
    pub(crate) fn claimants(&self, name: &str) -> Result<Arc<Vec<Claimant>>> {
        if let Some(known) = self.decided.borrow().get(name) {
            return Ok(Arc::clone(known));
        }
        let mut claimants = Vec::new();
        for claim in self.state.claims_named(name, MAX_CLAIMANTS)? {
            let item = ItemId(claim.item);
            if item.0 >= self.state.bound() {
                continue;
            }
            let attributes = self.state.attributes(item)?;
            if self.competes(&attributes)? {
                claimants.push(Claimant { claim, item, attributes });
            }
        }
        claimants.sort_by(Claimant::best_first);
        let claimants = Arc::new(claimants);
        self.decided.borrow_mut().insert(name.to_owned(), Arc::clone(&claimants));
        Ok(claimants)
    }

    /// True if an item is active, not erased, of the viewpoint's version, and not ahead of it.
    fn competes(&self, item: &Attributes) -> Result<bool> {
        let is_seen = item.active && !item.redacted && !self.viewpoint.is_ahead(item);
        Ok(is_seen && !self.viewpoint.is_foreign(self.state, item)?)
    }

    /// True if one of two items cites the other.
    fn is_cited(&self, a: &Claimant, b: &Claimant) -> Result<bool> {
        let (older, newer) = if a.item < b.item { (a, b) } else { (b, a) };
        let ends = self.state.edges_out(newer.item, None)?;
        Ok(ends.iter().any(|end| end.far == older.item && (end.edge.is_lineage() || end.edge == Edge::Supersedes)))
    }
}

/// True if two claims of one name are of one version, and of one episode where one of them is stated for its episode.
fn share_scope(a: &Claimant, b: &Claimant) -> bool {
    let is_global = a.claim.global && b.claim.global;
    a.attributes.version == b.attributes.version && (is_global || a.attributes.episode == b.attributes.episode)
}

impl State {
    /// The item that contradicts a claim of this one, for a viewpoint that sees everything.
    pub(crate) fn conflict_of(&self, id: ItemId) -> Result<Option<ItemId>> {
        Conflicts::new(self, &ReaderPosition::default()).leader_over(id)
    }
}
