//! Claims, and which of them is believed.

use super::values::shown;
use super::{Exported, Listed, ReaderPosition};
use holotype::cell::Cell;
use holotype::query::plan::{Find, Returns};
use std::cmp::{Ordering, Reverse};

impl Exported {
    /// The names and values an item claims.
    pub(super) fn claims_of(&self, id: u32) -> impl Iterator<Item = (&str, &Cell)> {
        let key = self.text(id, "key").expect("every item has a key").to_owned();
        self.claims.iter().filter(move |claim| claim["item"].to_string() == key).map(|claim| {
            let Cell::Text(name) = &claim["name"] else { panic!("a claim has a name") };
            (name.as_str(), &claim["value"])
        })
    }

    /// `find claims`: every claim in order, with the item that it lost against.
    pub(crate) fn find_claims(&self, find: &Find) -> Listed {
        let Some(Returns::Names(names)) = &find.listing.returns else { panic!("columns are named") };
        let mut rows = Vec::new();
        for (nth, claim) in self.claims.iter().enumerate() {
            let mut row = claim.clone();
            row.extend(self.winner_over(nth, &|_| true).map(|winner| ("won".to_owned(), winner)));
            let holds = |filter: &holotype::query::plan::Predicate| {
                super::holds(&|name| row.get(name).cloned(), &|_| panic!("claims are no items"), filter)
            };
            if find.listing.filter.as_ref().is_none_or(holds) {
                rows.push(names.iter().map(|name| shown(&row.get(&name.dotted()).cloned())).collect());
            }
        }
        Listed { columns: names.iter().map(|name| name.dotted()).collect(), rows }
    }

    /// True if a claim of an item lost, among what is not ahead of a reader.
    pub(super) fn is_conflicted(&self, id: u32, standing: &ReaderPosition) -> bool {
        let is_seen = |id| !self.is_ahead(id, standing);
        is_seen(id)
            && (0..self.claims.len()).any(|nth| self.claimant(nth) == id && self.winner_over(nth, &is_seen).is_some())
    }

    /// The item that makes a claim.
    fn claimant(&self, nth: usize) -> u32 {
        let key = self.claims[nth]["item"].to_string();
        self.ids().find(|id| self.text(*id, "key") == Some(&key)).expect("an item makes the claim")
    }

    /// The key of the leader that contradicts a claim and is preferred to it, among those that are seen.
    fn winner_over(&self, nth: usize, is_seen: &dyn Fn(u32) -> bool) -> Option<Cell> {
        let item = |nth: usize| self.claimant(nth);
        let is_global = |nth: usize| self.claims[nth]["scope"].to_string() == "global";
        // An item of several episodes competes in the first.
        let episode = |id: u32| super::texts(self.cell(id, "episode")).into_iter().next();
        let status = |id: u32| {
            let named = ["success", "unknown", "failed"].iter().position(|of| Some(*of) == self.text(id, "status"));
            named.unwrap_or(1)
        };
        let id = item(nth);
        if !self.is(id, "active") {
            return None;
        }
        let shares_scope = |other: &usize| {
            self.claims[*other]["name"] == self.claims[nth]["name"]
                && self.text(item(*other), "version") == self.text(id, "version")
                && (is_global(*other) && is_global(nth) || episode(item(*other)) == episode(id))
        };
        let is_preferred = |other: u32| match status(other).cmp(&status(id)) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => match (self.whole(other, "time"), self.whole(id, "time")) {
                (Some(a), Some(b)) if a != b => a > b,
                _ => episode(other) == episode(id) && self.whole(other, "step") > self.whole(id, "step"),
            },
        };
        let cites = |other: u32| {
            let (older, newer) = (other.min(id), other.max(id));
            let names = ["cites", "derived-from", "supersedes"];
            names.iter().any(|name| self.edges.contains(&(newer, name, older)))
        };
        let rank = |nth: &usize| {
            let id = item(*nth);
            let grounded = self.layer(id) == "trace" || self.text(id, "support") == Some("supported");
            let (time, step) = (Reverse(self.whole(id, "time")), Reverse(self.whole(id, "step")));
            (status(id), time, step, !grounded, Reverse((id, *nth)))
        };
        let competes = |other: &usize| self.is(item(*other), "active") && is_seen(item(*other)) && shares_scope(other);
        let mut others: Vec<usize> = (0..self.claims.len()).filter(competes).collect();
        others.sort_by_key(rank);
        for other in others.into_iter().filter(|other| item(*other) != id) {
            let is_same = self.claims[other]["value"].to_string() == self.claims[nth]["value"].to_string();
            if is_same || !is_preferred(item(other)) {
                return None;
            }
            if !cites(item(other)) {
                return Some(self.claims[other]["item"].clone());
            }
        }
        None
    }
}
