//! Training triplets for an embedder (HELM A.16): a query, what should be near it, and what should not although it
//! looks alike.
//!
//! ```text
//! {"query":{"key":"r1","layer":"recall","text":"UA123 costs $450"},
//!  "positives":[{"key":"t9","layer":"trace","text":"UA123 price=$450"}],
//!  "negatives":[{"key":"t1","layer":"trace","text":"UA123 price=$280","invalid":"conflicted"}],
//!  "distractors":[{"key":"t5","layer":"trace","text":"UA123 leaves from gate D24"}]}
//! ```
//!
//! Queries are themes and recalls. Positives are hierarchical, along provenance: the recalls of a theme, and the traces
//! that recalls rest on. Negatives are *epistemic*: items about the same claims, of invalid state. A query without
//! positives makes no line.
//!
//! | `invalid` | the negative |
//! |---|---|
//! | `failed` | is of a call that failed |
//! | `conflicted` | lost to another value |
//! | `foreign-version` | is of a version that disagrees with the positive's |
//! | `stale` | is too many steps or days before the positive |
//!
//! The first that holds is told. A positive is never a negative of the same line. `distractors` are valid traces that
//! share words with the query, claim something else and are neither: what stands around the needle (A.16).
//!
//! Invariant: no text of a redacted, inactive or damaged item is written. Cost: all claims once, and the claimants of
//! each positive's claims for each line.

use crate::model::item::{Attributes, ItemId, Layer, Status, Support};
use crate::read::snapshot::{Snapshot, is_damage};
use crate::recall::known;
use crate::records::tables::ClaimRow;
use crate::state::conflicts::Conflicts;
use crate::state::reader_position::{Reader, ReaderPosition, VersionNumber, Window};
use crate::{Error, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::PathBuf;

/// Distractors of a line, at most, and the traces among which they are looked for.
const DISTRACTORS: usize = 4;
const NEAR: usize = 16;

/// Writes the triplets of a database as JSON Lines and gives their number.
///
/// # Errors
/// Those of reading; [`Error::File`] when `out` cannot be written, with an empty path.
pub fn export_triplets(snapshot: &Snapshot, mut out: impl Write) -> Result<u64> {
    let failed = |source| Error::File { path: PathBuf::new(), source };
    let viewpoint = ReaderPosition::default();
    let triplets = Triplets::new(snapshot, &viewpoint)?;
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

/// The topic of a claim of an item with these attributes.
fn topic(claim: &ClaimRow, attributes: &Attributes) -> Topic {
    (attributes.episode.filter(|_| !claim.global), claim.name.clone())
}

/// The scope and the name of a claim; versions are told apart by their state.
type Topic = (Option<u32>, String);

struct Triplets<'s> {
    snapshot: &'s Snapshot,
    conflicts: Conflicts<'s>,
    window: Window,
    claimants: HashMap<Topic, Vec<ItemId>>,
}

impl Triplets<'_> {
    fn new<'s>(snapshot: &'s Snapshot, viewpoint: &'s ReaderPosition) -> Result<Triplets<'s>> {
        let state = &snapshot.state;
        let mut claimants: HashMap<Topic, Vec<ItemId>> = HashMap::new();
        for id in state.items_with_claims()? {
            let attributes = state.attributes(id)?;
            for claim in state.claims_of(id)? {
                claimants.entry(topic(&claim, &attributes)).or_default().push(id);
            }
        }
        let conflicts = Conflicts::new(state, viewpoint);
        Ok(Triplets { snapshot, conflicts, window: Window::default_of(state)?, claimants })
    }

    /// The line of a query; `None` without positives.
    fn of(&self, query: ItemId, attributes: &Attributes) -> Result<Option<Value>> {
        let Some(shown) = self.shown(query, None)? else { return Ok(None) };
        let mut positives = BTreeSet::new();
        let mut level = self.snapshot.state.sources(query, attributes.layer())?;
        while let Some(id) = level.pop() {
            let source = self.snapshot.state.attributes(id)?;
            if is_valid(&source) && self.conflicts.leader_over(id)?.is_none() && positives.insert(id) {
                level.extend(self.snapshot.state.sources(id, source.layer())?);
            }
        }
        let mut negatives = BTreeMap::new();
        for id in positives.iter().chain([&query]) {
            self.add_negatives(*id, &mut negatives)?;
        }
        negatives.retain(|id, _| *id != query && !positives.contains(id));
        let mut topics = BTreeSet::new();
        for id in positives.iter().chain([&query]) {
            topics.extend(self.topics(*id)?);
        }
        let mut distractors = Vec::new();
        let text = shown["text"].as_str().unwrap_or_default();
        for id in known::sharing_words(self.snapshot, Layer::Trace, text, NEAR)? {
            let is_other = !positives.contains(&id) && !negatives.contains_key(&id);
            let is_other = is_other && self.topics(id)?.is_disjoint(&topics);
            if distractors.len() < DISTRACTORS && is_other && is_valid(&self.snapshot.state.attributes(id)?) {
                distractors.push(id);
            }
        }
        let list = |items: Vec<(ItemId, Option<&'static str>)>| -> Result<Vec<Value>> {
            let shown = items.into_iter().map(|(id, invalid)| self.shown(id, invalid));
            Ok(shown.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let positives = list(positives.into_iter().map(|id| (id, None)).collect())?;
        let negatives = list(negatives.into_iter().map(|(id, invalid)| (id, Some(invalid))).collect())?;
        let distractors = list(distractors.into_iter().map(|id| (id, None)).collect())?;
        let line = json!({"query": shown, "positives": positives, "negatives": negatives, "distractors": distractors});
        Ok((!positives.is_empty()).then_some(line))
    }

    /// The topics of the claims of an item.
    fn topics(&self, id: ItemId) -> Result<BTreeSet<Topic>> {
        let attributes = self.snapshot.state.attributes(id)?;
        Ok(self.snapshot.state.claims_of(id)?.iter().map(|claim| topic(claim, &attributes)).collect())
    }

    /// Adds the items that make the claims of an item, too, and are of invalid state where that item stands.
    fn add_negatives(&self, id: ItemId, negatives: &mut BTreeMap<ItemId, &'static str>) -> Result<()> {
        let state = &self.snapshot.state;
        let claims = state.claims_of(id)?;
        if claims.is_empty() {
            return Ok(());
        }
        let attributes = state.attributes(id)?;
        let position = self.position(&attributes)?;
        for claim in &claims {
            let same_topic = self.claimants.get(&topic(claim, &attributes));
            for rival in same_topic.into_iter().flatten().filter(|rival| **rival != id) {
                if let Some(invalid) = self.invalid(*rival, &position)? {
                    negatives.entry(*rival).or_insert(invalid);
                }
            }
        }
        Ok(())
    }

    /// The position of an item.
    fn position(&self, item: &Attributes) -> Result<ReaderPosition> {
        let state = &self.snapshot.state;
        let version = item.version.map(|number| state.symbol_name(number)).transpose()?;
        let reader = Reader { episode: None, step: item.step, time: item.time, version };
        let number = item.version.map(VersionNumber::Known);
        Ok(ReaderPosition { reader, episode: item.episode, version: number, until: item.time })
    }

    /// The reason why an item is invalid; `None` if it is not.
    fn invalid(&self, id: ItemId, position: &ReaderPosition) -> Result<Option<&'static str>> {
        let state = &self.snapshot.state;
        let attributes = state.attributes(id)?;
        Ok(match attributes.status {
            Some(Status::Failed) => Some("failed"),
            _ if self.conflicts.leader_over(id)?.is_some() => Some("conflicted"),
            _ if position.is_foreign(state, &attributes)? => Some("foreign-version"),
            _ => position.is_stale(state, &attributes, &self.window)?.then_some("stale"),
        })
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
