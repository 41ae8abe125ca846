//! Training triplets for an embedder (HELM A.16): a query, what should be near it, and what should not although it
//! looks alike.
//!
//! ```text
//! {"query":{"key":"r1","layer":"recall","text":"UA123 costs $450"},
//!  "positives":[{"key":"t9","layer":"trace","text":"UA123 price=$450"}],
//!  "negatives":[{"key":"t1","layer":"trace","text":"UA123 price=$280","invalid":"conflicted"}]}
//! ```
//!
//! Queries are themes and recalls. Positives are hierarchical, along provenance: the recalls of a theme, and the traces
//! that recalls rest on. Negatives are *epistemic*: items about the same claims, of invalid state: `failed`, or
//! `conflicted`, which lost to another value. A query without positives makes no line.
//!
//! Invariant: no text of a redacted, inactive or damaged item is written. Cost: the claims of each positive once.

use crate::model::item::{Attributes, ItemId, Layer, Status, Support};
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::judge::Judge;
use crate::state::reader_position::ReaderPosition;
use crate::{Error, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

/// Writes the triplets of a database as JSON Lines and gives their number.
///
/// # Errors
/// Those of reading; [`Error::File`] when `out` cannot be written, with an empty path.
pub fn export_triplets(snapshot: &Snapshot, mut out: impl Write) -> Result<u64> {
    let failed = |source| Error::File { path: PathBuf::new(), source };
    let triplets = Triplets { snapshot, judge: Judge::new(&snapshot.state, &ReaderPosition::default(), None)? };
    let mut lines = 0;
    for id in (0..snapshot.len()).map(ItemId) {
        let attributes = snapshot.state.attributes(id)?;
        if attributes.layer() == Layer::Trace || !is_valid(&attributes) {
            continue;
        }
        if let Some(line) = triplets.of(id, &attributes)? {
            writeln!(out, "{line}").map_err(failed)?;
            lines += 1;
        }
    }
    out.flush().map_err(failed)?;
    Ok(lines)
}

/// True for an item that is evidence, or may route to some.
fn is_valid(attributes: &Attributes) -> bool {
    let is_baseless = attributes.layer() == Layer::Recall && attributes.support == Support::Unsupported;
    attributes.active && !attributes.redacted && attributes.status != Some(Status::Failed) && !is_baseless
}

struct Triplets<'s> {
    snapshot: &'s Snapshot,
    judge: Judge,
}

impl Triplets<'_> {
    /// The line of a query; `None` without positives.
    fn of(&self, query: ItemId, attributes: &Attributes) -> Result<Option<Value>> {
        let Some(shown) = self.shown(query, None)? else { return Ok(None) };
        let mut positives = BTreeSet::new();
        let mut level = self.snapshot.state.sources(query, attributes.layer())?;
        while let Some(id) = level.pop() {
            let source = self.snapshot.state.attributes(id)?;
            if is_valid(&source) && self.judge.conflict(&self.snapshot.state, id)?.is_none() && positives.insert(id) {
                level.extend(self.snapshot.state.sources(id, source.layer())?);
            }
        }
        let mut negatives = BTreeMap::new();
        for id in positives.iter().chain([&query]) {
            self.add_negatives(*id, &mut negatives)?;
        }
        let list = |items: Vec<(ItemId, Option<&'static str>)>| -> Result<Vec<Value>> {
            let shown = items.into_iter().map(|(id, invalid)| self.shown(id, invalid));
            Ok(shown.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let positives = list(positives.into_iter().map(|id| (id, None)).collect())?;
        let negatives = list(negatives.into_iter().map(|(id, invalid)| (id, Some(invalid))).collect())?;
        let line = json!({"query": shown, "positives": positives, "negatives": negatives});
        Ok((!positives.is_empty()).then_some(line))
    }

    /// The rivals in the contests of an item that are of invalid state.
    fn add_negatives(&self, id: ItemId, negatives: &mut BTreeMap<ItemId, &'static str>) -> Result<()> {
        let state = &self.snapshot.state;
        let Some(claimant) = self.judge.claimant(state, id)? else { return Ok(()) };
        for (_, key) in &claimant.claims {
            for rival in &self.judge.contest(state, key)?.contest.rivals {
                let invalid = match rival.attributes.status {
                    Some(Status::Failed) => "failed",
                    _ if self.judge.conflict(state, rival.item)?.is_some() => "conflicted",
                    _ => continue,
                };
                negatives.insert(rival.item, invalid);
            }
        }
        Ok(())
    }

    /// An item as JSON; `None` if its text must not be written.
    fn shown(&self, id: ItemId, invalid: Option<&str>) -> Result<Option<Value>> {
        let attributes = self.snapshot.state.attributes(id)?;
        if !attributes.active || attributes.redacted {
            return Ok(None);
        }
        let content = match self.snapshot.content(id) {
            Ok(content) => content,
            Err(error) if is_damage(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let layer = attributes.layer().as_str();
        let mut shown = json!({"key": self.snapshot.key_of(id)?, "layer": layer, "text": content.text()});
        if let Some(invalid) = invalid {
            shown["invalid"] = invalid.into();
        }
        Ok(Some(shown))
    }
}
