//! Pruning under budgets (HELM Algorithm 6): retires what is stale, failed or unsupported, then what is redundant, then
//! what is of least use, until as many remain as a budget allows.
//!
//! ```text
//! for layer in (themes, recalls, traces)                              top down: a pruned recall frees its evidence
//!     1. retire what is stale, failed or unsupported
//!     2. retire all but the best of each cluster of near duplicates   (`redundant`)
//!     3. retire the least useful, the oldest, the latest written first, until the budget holds
//! ```
//!
//! Evidence is kept: an item that an active item derives from or cites is not retired, and when evidence alone exceeds
//! a budget, the report says by how much. Retiring is a soft delete with the reason `prune: …`; it is undone by no
//! statement, but `as of` shows what was there.
//!
//! Invariants:
//! 1. The log gets one mark for each retired item and nothing else, so that replay needs neither vectors nor rules.
//! 2. A reader sees the same candidates as a recall from the same position: items ahead of it are neither counted nor
//!    retired.
//!
//! Cost: a look at the edges of each candidate; near duplicates as `redundant` says.

use super::redundant;
use crate::model::item::{Attributes, ItemId, Layer, Status, Support};
use crate::read::filter::Filter;
use crate::read::snapshot::Snapshot;
use crate::records::record::{Change, MarkRecord, Record};
use crate::records::tables;
use crate::state::State;
use crate::state::reader_position::{Reader, ReaderPosition, Window};
use crate::statements::selected;
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use holotype_query::Noun;
use holotype_query::plan::Selection;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The cosine above which two items are redundant, unless another is given.
pub const REDUNDANT_ABOVE: f32 = 0.9;

/// The start of the reason that a pruned item's mark gives.
pub(crate) const BECAUSE: &str = "prune: ";

/// A pruning to be done: kinds of items, each with the number that may stay.
///
/// ```
/// use holotype::Prune;
/// use holotype::query::Noun;
///
/// // The budgets of HELM's Table 11.
/// let prune = Prune::new().to(Noun::Traces, 200).to(Noun::Recalls, 50).to(Noun::Themes, 20);
/// # let _ = prune;
/// ```
#[derive(Debug, Clone)]
pub struct Prune {
    targets: Vec<(Noun, Option<u64>)>,
    selection: Selection,
    reader: Reader,
    redundant_above: f32,
}

impl Default for Prune {
    fn default() -> Self {
        Prune {
            targets: Vec::new(),
            selection: Selection::default(),
            reader: Reader::default(),
            redundant_above: REDUNDANT_ABOVE,
        }
    }
}

impl Prune {
    /// Nothing yet.
    pub fn new() -> Self {
        Prune::default()
    }

    /// The budgets of HELM's Table 11: 200 traces, 50 recalls, 20 themes.
    pub fn helm() -> Self {
        Prune::new().to(Noun::Traces, 200).to(Noun::Recalls, 50).to(Noun::Themes, 20)
    }

    /// Adds a kind of items of which at most `keep` stay.
    pub fn to(mut self, noun: Noun, keep: u64) -> Self {
        self.targets.push((noun, Some(keep)));
        self
    }

    /// Adds a kind of items without a budget: only what is flawed or redundant goes.
    pub fn all(mut self, noun: Noun) -> Self {
        self.targets.push((noun, None));
        self
    }

    /// Prunes the items of this episode only.
    pub fn in_episode(mut self, id: impl Into<String>) -> Self {
        self.selection = crate::statements::in_episode(id.into());
        self
    }

    /// The position of the reader whose staleness counts; by default that of a recall's reader.
    pub fn at(mut self, reader: Reader) -> Self {
        self.reader = reader;
        self
    }

    /// The cosine above which two items are redundant; 1 or more keeps everything.
    pub fn redundant_above(mut self, cosine: f32) -> Self {
        self.redundant_above = cosine;
        self
    }

    pub(crate) fn among(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }
}

/// The reason for which an item was pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneReason {
    /// Its status is failed.
    Failed,
    /// Its sources all went bad.
    Unsupported,
    /// It is stale for the reader.
    Stale,
    /// A near duplicate is kept instead.
    Redundant(ItemId),
    /// It was of the least use when the budget was exceeded.
    Budget,
}

/// An item that was pruned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// The item.
    pub item: ItemId,
    /// Its layer.
    pub layer: Layer,
    /// The reason.
    pub reason: PruneReason,
}

/// A budget that evidence alone exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The kind of items the budget is for.
    pub noun: Noun,
    /// The budget.
    pub budget: u64,
    /// The number of items that remain: evidence of active items.
    pub remaining: u64,
}

/// The effects of a prune.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The retired items, in the order in which they were.
    pub pruned: Vec<Pruned>,
    /// Budgets that do not hold.
    pub exceeded: Vec<Exceeded>,
}

impl Transaction<'_> {
    /// Prunes (HELM Algorithm 6). `as of` an earlier commit shows what was there.
    ///
    /// ```
    /// # use holotype::{Durability, Holotype, NewTrace, Options, Prune, Status};
    /// # use holotype::query::Noun;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// let mut transaction = database.begin()?;
    /// transaction.record(NewTrace::turn("trip-42", "book a flight"))?;
    /// transaction.record(NewTrace::call("trip-42", "pay", "HTTP 504").status(Status::Failed))?;
    /// let report = transaction.prune(&Prune::new().to(Noun::Traces, 200))?;
    /// assert_eq!(report.pruned.len(), 1);
    /// transaction.commit(Durability::Sync)?;
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for a noun without items of one layer, or a cosine that is no number; those of reading.
    pub fn prune(&mut self, prune: &Prune) -> Result<PruneReport> {
        self.atomically(|transaction| {
            let mut report = PruneReport::default();
            for (noun, keep) in top_down(&prune.targets)? {
                transaction.prune_one(prune, noun, keep, &mut report)?;
            }
            Ok(report)
        })
    }

    fn prune_one(&mut self, prune: &Prune, noun: Noun, keep: Option<u64>, report: &mut PruneReport) -> Result<()> {
        if !prune.redundant_above.is_finite() {
            return Err(Error::Invalid("redundant above: expected a number, such as 0.9".to_owned()));
        }
        let snapshot = self.snapshot()?;
        let candidates = Candidates::of(&snapshot, prune, noun)?;
        let (retired, remaining) = candidates.choose(&snapshot, prune, keep)?;
        for pruned in retired {
            let because = Some(format!("{BECAUSE}{}", reason(&snapshot, pruned.reason)?));
            let change = Change::Active(false);
            self.push(Record::Mark(MarkRecord { item: pruned.item.0, change, by: None, because }))?;
            report.pruned.push(pruned);
        }
        if let Some(budget) = keep
            && remaining > budget
        {
            report.exceeded.push(Exceeded { noun, budget, remaining });
        }
        Ok(())
    }
}

/// The reason in words, without what all reasons begin with.
pub(crate) fn reason(snapshot: &Snapshot, reason: PruneReason) -> Result<String> {
    Ok(match reason {
        PruneReason::Failed => "failed".to_owned(),
        PruneReason::Unsupported => "unsupported".to_owned(),
        PruneReason::Stale => "stale".to_owned(),
        PruneReason::Redundant(kept) => format!("redundant with '{}'", snapshot.key_of(kept)?),
        PruneReason::Budget => "over the budget".to_owned(),
    })
}

/// The targets with their layers' top first.
fn top_down(targets: &[(Noun, Option<u64>)]) -> Result<Vec<(Noun, Option<u64>)>> {
    let mut targets: Vec<(Layer, (Noun, Option<u64>))> =
        targets.iter().map(|target| Ok((layer(target.0)?, *target))).collect::<Result<_>>()?;
    targets.sort_by_key(|(layer, _)| Reverse(*layer as u8));
    Ok(targets.into_iter().map(|(_, target)| target).collect())
}

fn layer(noun: Noun) -> Result<Layer> {
    Ok(match noun {
        Noun::Themes | Noun::Concepts | Noun::Intents => Layer::Theme,
        Noun::Recalls | Noun::Summaries | Noun::Facts | Noun::Procedures => Layer::Recall,
        Noun::Traces | Noun::Turns | Noun::Calls | Noun::Observations => Layer::Trace,
        Noun::Items | Noun::Pages | Noun::Episodes => {
            return Err(Error::Invalid(format!(
                "prune {noun}: expected items of one layer, such as traces, recalls or themes"
            )));
        }
    })
}

/// An item that may be pruned.
struct Candidate {
    attributes: Attributes,
    /// The number of active items that rest on it.
    dependents: u32,
    flaw: Option<PruneReason>,
}

/// The items a target goes over.
struct Candidates {
    items: HashMap<u32, Candidate>,
    layer: Layer,
}

impl Candidates {
    fn of(snapshot: &Snapshot, prune: &Prune, noun: Noun) -> Result<Candidates> {
        let state = &snapshot.state;
        let (position, mut found) = selected(snapshot, noun, &prune.selection, &prune.reader)?;
        let filter = Filter::new(snapshot, &position);
        found = found.and(&*state.attributes.base_sets(state.bound()).visible()?).and_not(filter.ahead()?);
        let window = Window::default_of(state)?;
        let mut items = HashMap::with_capacity(found.count() as usize);
        for id in found.iter() {
            snapshot.tick()?;
            let attributes = state.attributes(ItemId(id))?;
            let dependents = active_dependents(state, ItemId(id))?;
            let flaw = flaw(state, ItemId(id), &attributes, &position, &window)?;
            items.insert(id, Candidate { attributes, dependents, flaw });
        }
        Ok(Candidates { items, layer: layer(noun)? })
    }

    /// The items to retire, in order, and the number of those that remain.
    fn choose(mut self, snapshot: &Snapshot, prune: &Prune, keep: Option<u64>) -> Result<(Vec<Pruned>, u64)> {
        let mut pruned = Vec::new();
        let mut flawed: Vec<u32> = self.items.iter().filter(|(_, of)| of.flaw.is_some()).map(|(id, _)| *id).collect();
        // An item rests on earlier ones, so that those come after it and are free by then.
        flawed.sort_unstable_by_key(|id| Reverse(*id));
        for id in flawed {
            if let Some(Candidate { dependents: 0, flaw: Some(flaw), .. }) = self.items.get(&id) {
                let flaw = *flaw;
                self.retire(&snapshot.state, id, flaw, &mut pruned)?;
            }
        }
        for (id, kept) in self.redundant(snapshot, prune)? {
            self.retire(&snapshot.state, id, PruneReason::Redundant(ItemId(kept)), &mut pruned)?;
        }
        if let Some(keep) = keep {
            self.hold(&snapshot.state, keep, &mut pruned)?;
        }
        Ok((pruned, self.items.len() as u64))
    }

    /// Retires an item and frees what it rests on.
    fn retire(&mut self, state: &State, id: u32, reason: PruneReason, pruned: &mut Vec<Pruned>) -> Result<Vec<u32>> {
        self.items.remove(&id);
        pruned.push(Pruned { item: ItemId(id), layer: self.layer, reason });
        let mut freed = Vec::new();
        if self.layer == Layer::Recall {
            for source in lineage(state, tables::EDGE_OUT, ItemId(id))? {
                if let Some(source_of) = self.items.get_mut(&source) {
                    source_of.dependents = source_of.dependents.saturating_sub(1);
                    freed.extend((source_of.dependents == 0).then_some(source));
                }
            }
        }
        Ok(freed)
    }

    /// The redundant items, each with the one that is kept instead.
    fn redundant(&self, snapshot: &Snapshot, prune: &Prune) -> Result<Vec<(u32, u32)>> {
        let mut with_vector: Vec<u32> =
            self.items.iter().filter(|(_, of)| of.attributes.has_vector).map(|(id, _)| *id).collect();
        with_vector.sort_unstable();
        let mut gone = Vec::new();
        for cluster in redundant::clusters(snapshot, self.layer, &with_vector, prune.redundant_above)? {
            let best = cluster.iter().copied().max_by_key(|id| self.rank(*id).map(|rank| (rank.0, rank.1)));
            let Some(best) = best else { continue };
            let free = |id: &u32| *id != best && self.items.get(id).is_some_and(|of| of.dependents == 0);
            gone.extend(cluster.iter().copied().filter(free).map(|id| (id, best)));
        }
        gone.sort_unstable();
        Ok(gone)
    }

    /// The rank of an item among those to keep: whether it is evidence, and then its place in the order of the budget.
    fn rank(&self, id: u32) -> Option<(bool, Worth)> {
        let Candidate { attributes, dependents, .. } = self.items.get(&id)?;
        Some((*dependents > 0, Worth::of(id, attributes)))
    }

    /// Retires the least worthy until `keep` remain.
    fn hold(&mut self, state: &State, keep: u64, pruned: &mut Vec<Pruned>) -> Result<()> {
        let free = self.items.iter().filter(|(_, of)| of.dependents == 0);
        let mut free: BinaryHeap<Reverse<Worth>> =
            free.map(|(id, of)| Reverse(Worth::of(*id, &of.attributes))).collect();
        while self.items.len() as u64 > keep {
            let Some(Reverse(least)) = free.pop() else { break };
            for freed in self.retire(state, least.id(), PruneReason::Budget, pruned)? {
                if let Some(of) = self.items.get(&freed) {
                    free.push(Reverse(Worth::of(freed, &of.attributes)));
                }
            }
        }
        Ok(())
    }
}

/// The order of the budget: utility and credit together, then time (absent is oldest), then the earlier id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    /// Their sum as an integer of the same order.
    utility: i32,
    time: Option<i64>,
    id: Reverse<u32>,
}

impl Worth {
    fn of(id: u32, attributes: &Attributes) -> Worth {
        // `0.0 +` makes the negative zero equal to the positive one.
        let bits = (0.0 + attributes.utility + attributes.credit).to_bits().cast_signed();
        let utility = if bits < 0 { !(bits & i32::MAX) } else { bits };
        Worth { utility, time: attributes.time, id: Reverse(id) }
    }

    fn id(self) -> u32 {
        self.id.0
    }
}

/// The flaw for which an item goes first.
fn flaw(
    state: &State,
    id: ItemId,
    attributes: &Attributes,
    position: &ReaderPosition,
    window: &Window,
) -> Result<Option<PruneReason>> {
    if attributes.status == Some(Status::Failed) {
        return Ok(Some(PruneReason::Failed));
    }
    let had_sources = match attributes.layer() {
        Layer::Trace => false,
        Layer::Recall => !attributes.ungrounded,
        Layer::Theme => !state.sources(id, Layer::Theme)?.is_empty(),
    };
    if had_sources && attributes.support == Support::Unsupported {
        return Ok(Some(PruneReason::Unsupported));
    }
    Ok(position.is_stale(state, attributes, window)?.then_some(PruneReason::Stale))
}

/// The far ends of an item's lineage edges, each once.
fn lineage(state: &State, table: u8, id: ItemId) -> Result<Vec<u32>> {
    let ends = state.ends(table, id)?;
    let mut far: Vec<u32> = ends.filter(|end| end.edge.is_lineage()).map(|end| end.far.0).collect();
    far.sort_unstable();
    far.dedup();
    Ok(far)
}

/// The number of active items that derive from an item or cite it.
fn active_dependents(state: &State, id: ItemId) -> Result<u32> {
    let mut active = 0;
    for dependent in lineage(state, tables::EDGE_IN, id)? {
        let attributes = state.attributes(ItemId(dependent))?;
        active += u32::from(attributes.active && !attributes.redacted);
    }
    Ok(active)
}
