//! Claims, and which of them is believed.

use super::values::shown;
use super::{Exported, Listed, ReaderPosition};
use holotype::cell::Cell;
use holotype::query::ast::{Find, Returns};
use std::cmp::Reverse;

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
        let Some(Returns::Names(names)) = find.listing.returns.as_ref().map(|returns| &returns.node) else {
            panic!("columns are named")
        };
        let mut rows = Vec::new();
        for (nth, claim) in self.claims.iter().enumerate() {
            let mut row = claim.clone();
            row.extend(self.winner_over(nth, &|_| true).map(|winner| ("won".to_owned(), winner)));
            let holds = |filter: &holotype::query::ast::Predicate| {
                super::holds(&|name| row.get(name).cloned(), &|_| panic!("claims are no items"), filter)
            };
            if find.listing.filter.as_ref().is_none_or(|filter| holds(&filter.node)) {
                rows.push(names.iter().map(|name| shown(&row.get(&name.node.dotted()).cloned())).collect());
            }
        }
        Listed { columns: names.iter().map(|name| name.node.dotted()).collect(), rows }
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

    /// The key of the item whose claim is believed instead of this one, among those that are seen.
    fn winner_over(&self, nth: usize, is_seen: &dyn Fn(u32) -> bool) -> Option<Cell> {
        let item = |nth: usize| self.claimant(nth);
        let arena = |nth: usize| {
            let (id, claim) = (item(nth), &self.claims[nth]);
            let everywhere = claim["scope"].to_string() == "global";
            // An item of several episodes competes in the first.
            let episode = super::texts(self.cell(id, "episode")).into_iter().next().filter(|_| !everywhere);
            (everywhere, episode, self.text(id, "version").map(str::to_owned), claim["name"].to_string())
        };
        if !self.is(item(nth), "active") {
            return None;
        }
        let competes = |other: &usize| arena(*other) == arena(nth) && self.is(item(*other), "active");
        let rivals = (0..self.claims.len()).filter(|other| competes(other) && is_seen(item(*other)));
        let rank = |nth: &usize| {
            let id = item(*nth);
            let status = ["success", "unknown", "failed"].iter().position(|of| Some(*of) == self.text(id, "status"));
            let grounded = self.layer(id) == "trace" || self.text(id, "support") == Some("supported");
            (
                status.unwrap_or(1),
                Reverse(self.whole(id, "time")),
                Reverse(self.whole(id, "step")),
                !grounded,
                Reverse(*nth),
            )
        };
        let winner = rivals.min_by_key(rank)?;
        let says = |nth: usize| self.claims[nth]["value"].to_string();
        (item(winner) != item(nth) && says(winner) != says(nth)).then(|| self.claims[winner]["item"].clone())
    }
}
