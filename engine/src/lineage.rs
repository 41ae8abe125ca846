//! Lineage: what an item inherits from its sources, and whether they still hold it up.
//!
//! An item's *sources* are the targets of its `cites` and `derived-from` edges; a theme's are also its children. From
//! them follow the inherited attributes, support and trust (memory model, section 2). Nothing of this is logged: it is
//! recomputed whenever a source changes, so a rebuild from the log arrives at the same state.
//!
//! Invariants:
//! 1. Lineage edges point only to smaller ids and never to themes, so the walk ends; themes come last.
//! 2. An item's dependents are visited only when what they derive from it changed.
//!
//! Cost: one visit reads an item's sources once; a transaction settles each touched item once, whatever the number of
//! its records.

use crate::Result;
use crate::edge::Edge;
use crate::item::{Attributes, Inherited, ItemId, Layer, Status, Support};
use crate::state::{EdgeEnd, State};
use crate::tables;
use std::collections::BTreeSet;

/// The far ends of the edges of some types.
fn far_ends(ends: &[EdgeEnd], wanted: impl Fn(Edge) -> bool) -> impl Iterator<Item = ItemId> {
    ends.iter().filter(move |end| wanted(end.edge)).map(|end| end.far)
}

fn is_lineage(edge: Edge) -> bool {
    matches!(edge, Edge::DerivedFrom | Edge::Cites)
}

/// How good one source is to what rests on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceClass {
    Good,
    Weak,
    Bad,
}

impl SourceClass {
    fn of(source: &Attributes) -> SourceClass {
        let standing = source.active && !source.redacted && source.status != Some(Status::Failed);
        if !standing || source.support == Support::Unsupported {
            SourceClass::Bad
        } else if source.support == Support::Supported {
            SourceClass::Good
        } else {
            SourceClass::Weak
        }
    }
}

/// When a source was made, in the order that makes one newer than another; and what is inherited with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Newest {
    time: Option<i64>,
    step: Option<u64>,
    id: ItemId,
    version: Option<u32>,
}

/// What a walk over the sources of one item finds.
#[derive(Default)]
struct Gathered {
    good: u32,
    weak: u32,
    bad: u32,
    trust_sources: u8,
    trust_statuses: u8,
    newest: Option<Newest>,
    worst_status: Option<Status>,
    lowest_source: Option<crate::item::Source>,
    episodes: BTreeSet<u32>,
}

impl Gathered {
    fn take(&mut self, id: ItemId, source: &Attributes, episodes: Vec<u32>) {
        match SourceClass::of(source) {
            SourceClass::Good => self.good += 1,
            SourceClass::Weak => self.weak += 1,
            SourceClass::Bad => self.bad += 1,
        }
        self.trust_sources |= source.trust_sources;
        self.trust_statuses |= source.trust_statuses;
        if !source.active {
            return;
        }
        let made = Newest { time: source.time, step: source.step, id, version: source.version };
        self.newest = self.newest.max(Some(made));
        self.worst_status = self.worst_status.max(source.status);
        self.lowest_source = match (self.lowest_source, source.source) {
            (Some(a), Some(b)) => Some(if b.weight() < a.weight() { b } else { a }),
            (a, b) => a.or(b),
        };
        self.episodes.extend(episodes);
    }

    fn support(&self) -> Support {
        if self.good + self.weak == 0 {
            Support::Unsupported
        } else if self.weak + self.bad == 0 {
            Support::Supported
        } else {
            Support::Weakened
        }
    }
}

impl State {
    /// The direct sources of an item: what it cites and derives from and, of a theme, its children.
    pub(crate) fn sources(&self, id: ItemId, layer: Layer) -> Result<Vec<ItemId>> {
        let mut sources: Vec<ItemId> = far_ends(&self.ends(tables::EDGE_OUT, id)?, is_lineage).collect();
        if layer == Layer::Theme {
            sources.extend(far_ends(&self.ends(tables::EDGE_IN, id)?, |edge| edge == Edge::Parent));
        }
        sources.sort_unstable();
        sources.dedup();
        Ok(sources)
    }

    /// Shows the items that rest directly on a trace, some of them more than once.
    pub(crate) fn each_dependent_of_trace(&self, id: ItemId, see: impl FnMut(ItemId)) -> Result<()> {
        far_ends(&self.ends(tables::EDGE_IN, id)?, is_lineage).for_each(see);
        Ok(())
    }

    /// The items that rest directly on an item.
    pub(crate) fn dependents(&self, id: ItemId) -> Result<Vec<ItemId>> {
        let mut dependents: Vec<ItemId> = far_ends(&self.ends(tables::EDGE_IN, id)?, is_lineage).collect();
        if self.attributes.kind(id)?.layer() != Layer::Trace {
            dependents.extend(far_ends(&self.ends(tables::EDGE_OUT, id)?, |edge| edge == Edge::Parent));
        }
        dependents.sort_unstable();
        dependents.dedup();
        Ok(dependents)
    }

    /// Recomputes what is derived for every item whose sources changed, and for what rests on those in turn.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.write_hot_episode()?;
        let mut queue: BTreeSet<(bool, u32)> = BTreeSet::new();
        for id in std::mem::take(&mut self.unsettled) {
            let is_theme = self.attributes(ItemId(id))?.layer() == Layer::Theme;
            queue.insert((is_theme, id));
        }
        while let Some((_, id)) = queue.pop_first() {
            let id = ItemId(id);
            let before = self.attributes(id)?;
            let (after, moved) = self.derive(id, &before)?;
            if after == before && !moved {
                continue;
            }
            self.set_attributes(id, after)?;
            self.queue_dependents(id, &mut queue)?;
        }
        self.settle_claims()
    }

    /// Notes that an item's own state changed, so that what rests on it is looked at again.
    pub(crate) fn touch_dependents(&mut self, id: ItemId) -> Result<()> {
        for dependent in self.dependents(id)? {
            self.unsettled.insert(dependent.0);
        }
        Ok(())
    }

    fn queue_dependents(&self, id: ItemId, queue: &mut BTreeSet<(bool, u32)>) -> Result<()> {
        for dependent in self.dependents(id)? {
            let is_theme = self.attributes(dependent)?.layer() == Layer::Theme;
            queue.insert((is_theme, dependent.0));
        }
        Ok(())
    }

    /// The attributes of an item with everything derived recomputed from its sources as they stand, and whether it came
    /// to belong to other episodes.
    fn derive(&mut self, id: ItemId, stated: &Attributes) -> Result<(Attributes, bool)> {
        let mut attributes = stated.clone();
        if attributes.layer() == Layer::Trace {
            attributes.trust_of_trace();
            return Ok((attributes, false));
        }
        let mut gathered = Gathered::default();
        for source in self.sources(id, attributes.layer())? {
            let of_source = self.attributes(source)?;
            let episodes = self.episodes_of(source, &of_source)?;
            gathered.take(source, &of_source, episodes);
        }
        attributes.support = gathered.support();
        attributes.trust_sources = gathered.trust_sources;
        attributes.trust_statuses = gathered.trust_statuses;
        let inherits = |bit: u8| attributes.inherited & bit != 0;
        let newest = gathered.newest;
        let (status, source, step, time, version) = (
            inherits(Inherited::STATUS),
            inherits(Inherited::SOURCE),
            inherits(Inherited::STEP),
            inherits(Inherited::TIME),
            inherits(Inherited::VERSION),
        );
        if status {
            attributes.status = gathered.worst_status;
        }
        if source {
            attributes.source = gathered.lowest_source;
        }
        if step {
            attributes.step = newest.and_then(|newest| newest.step);
        }
        if time {
            attributes.time = newest.and_then(|newest| newest.time);
        }
        if version {
            attributes.version = newest.and_then(|newest| newest.version);
        }
        if attributes.inherited & Inherited::EPISODE != 0 {
            let (first, moved) = self.inherit_episodes(id, &gathered)?;
            attributes.episode = first;
            return Ok((attributes, moved));
        }
        Ok((attributes, false))
    }

    /// Makes the rows say that the item belongs to every episode gathered; returns the first one, which is the
    /// newest source's (its step is a step of that episode), and whether the others changed.
    fn inherit_episodes(&mut self, id: ItemId, gathered: &Gathered) -> Result<(Option<u32>, bool)> {
        let newest = match gathered.newest {
            Some(newest) => self.attributes(newest.id)?.episode,
            None => None,
        };
        let first = newest.or_else(|| gathered.episodes.first().copied());
        let wanted: BTreeSet<u32> =
            gathered.episodes.iter().copied().filter(|episode| Some(*episode) != first).collect();
        let mut present = BTreeSet::new();
        for (key, _) in self.scan(tables::ALSO_OF, &tables::numbers([id.0]))? {
            present.extend(tables::number_at(&key, 4));
        }
        for gone in present.difference(&wanted) {
            self.delete(tables::ALSO_OF, tables::numbers([id.0, *gone]))?;
            self.delete(tables::ALSO_IN, tables::numbers([*gone, id.0]))?;
        }
        for new in wanted.difference(&present) {
            self.put_empty(tables::ALSO_OF, tables::numbers([id.0, *new]))?;
            self.put_empty(tables::ALSO_IN, tables::numbers([*new, id.0]))?;
        }
        Ok((first, present != wanted))
    }
}
