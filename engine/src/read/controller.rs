//! The controller of a routed recall: before each hop, go on, go on from some rows, or stop (PlugMem C.3, Listing 10).
//!
//! A model may be one: [`HopDecision::parse`] accepts its reply only if it is exactly what the listing asks for. A
//! controller that fails counts as [`HopDecision::Enough`]: what was found so far is an answer.

use crate::model::item::ItemId;
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use serde_json::Value;
use std::fmt;

/// The state of a recall before a hop.
#[derive(Clone, Copy)]
pub struct HopView<'v> {
    /// The question.
    pub question: &'v str,
    /// The hop that would run next: 1 is the first.
    pub hop: u64,
    /// The rows that may route it, best first.
    pub rows: &'v [ItemId],
    /// The greatest number of them that route it: the first ones, unless the controller chooses others.
    pub carry: usize,
    /// Rows that the hop before kept and no earlier one had; the number of rows before the first hop.
    pub new: usize,
    /// Concepts that the question names.
    pub named: usize,
    /// The question sets things beside each other that it names itself.
    pub compares: bool,
    /// The database.
    pub snapshot: &'v Snapshot,
}

impl HopView<'_> {
    /// The text of a row.
    ///
    /// # Errors
    /// When its bytes cannot be read as written.
    pub fn text(&self, row: ItemId) -> Result<String> {
        Ok(self.snapshot.content(row)?.text().to_owned())
    }
}

/// The decision of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HopDecision {
    /// Another hop, from the first rows.
    Continue,
    /// Another hop, from these rows.
    Focus(Vec<ItemId>),
    /// The rows found so far are enough.
    Enough,
}

impl HopDecision {
    /// Reads a reply: `{"enough": true, "top_node_ids": []}` or `{"enough": false, "top_node_ids": [3, 5]}`, with at
    /// most [`HopView::carry`] ids, all of them among [`HopView::rows`]. No ids and not enough: the first rows.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other reply, with what is wrong with it.
    pub fn parse(reply: &str, view: &HopView<'_>) -> Result<HopDecision> {
        let refused = |why: &str| Error::Invalid(format!("the reply of a hop controller {why}: {reply:?}"));
        let Ok(Value::Object(reply)) = serde_json::from_str(reply) else { return Err(refused("is no JSON object")) };
        if reply.len() != 2 {
            return Err(refused("has other keys than `enough` and `top_node_ids`"));
        }
        let enough = reply.get("enough").and_then(Value::as_bool).ok_or_else(|| refused("has no boolean `enough`"))?;
        let ids = reply.get("top_node_ids").and_then(Value::as_array);
        let mut rows = Vec::new();
        for id in ids.ok_or_else(|| refused("has no list `top_node_ids`"))? {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok()).map(ItemId);
            let id = id.filter(|id| view.rows.contains(id) && !rows.contains(id));
            rows.push(id.ok_or_else(|| refused("names what is none of the rows, or names a row twice"))?);
        }
        if rows.len() > view.carry {
            return Err(refused(&format!("names more than {} rows", view.carry)));
        }
        match (enough, rows.is_empty()) {
            (true, true) => Ok(HopDecision::Enough),
            (true, false) => Err(refused("says that it is enough and names rows")),
            (false, true) => Ok(HopDecision::Continue),
            (false, false) => Ok(HopDecision::Focus(rows)),
        }
    }
}

/// Decides whether a routed recall makes another hop.
pub trait HopController: Send + Sync {
    /// The decision, for the rows found so far.
    ///
    /// # Errors
    /// An error counts as [`HopDecision::Enough`].
    fn decide(&self, view: &HopView<'_>) -> Result<HopDecision>;
}

impl fmt::Debug for dyn HopController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HopController")
    }
}

/// The built-in controller: stops when a question compares what it names, since that is found without a hop, and when
/// the hop before found nothing new.
#[derive(Debug, Clone, Copy, Default)]
pub struct CoverageController;

impl HopController for CoverageController {
    fn decide(&self, view: &HopView<'_>) -> Result<HopDecision> {
        let is_enough = view.compares || view.rows.is_empty() || view.new == 0;
        Ok(if is_enough { HopDecision::Enough } else { HopDecision::Continue })
    }
}
