//! Lineage: inherited attributes, support and trust.
//!
//! The *sources* of an item are the targets of its `cites` and `derived-from` edges and, for a theme, its children.
//! Inherited attributes, support and trust follow from the sources (memory model, section 2). None of this is logged:
//! it is recomputed whenever a source changes, so that a rebuild from the log computes the same values.
//!
//! Invariants:
//! 1. Lineage edges point to smaller ids and never to themes, so propagation terminates; themes are processed last.
//! 2. The dependents of an item are visited only if a value derived from it changed.
//!
//! Cost: a visit reads the item's sources once. A transaction recomputes each affected item once, however many
//! records affect it.

use crate::Result;
use crate::model::edge::Edge;
use crate::model::item::{Attributes, Inherited, ItemId, Layer, Status, Support};
use crate::records::tables;
use crate::state::{EdgeEnd, State};
use std::collections::BTreeSet;
use std::ops::{Bound, Range};

/// The far ends of the edges that `wanted` accepts.
fn far_ends(ends: impl Iterator<Item = EdgeEnd>, wanted: impl Fn(Edge) -> bool) -> impl Iterator<Item = ItemId> {
    ends.filter(move |end| wanted(end.edge)).map(|end| end.far)
}

/// The quality of one source for its dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceClass {
    Good,
    Weak,
    Bad,
}

impl SourceClass {
    fn from_source(source: &Attributes) -> SourceClass {
        let is_valid = source.active && !source.redacted && source.status != Some(Status::Failed);
        let lost_support = source.support == Support::Unsupported && !source.ungrounded;
        if !is_valid || lost_support {
            SourceClass::Bad
        } else if source.support == Support::Supported {
            SourceClass::Good
        } else {
            SourceClass::Weak
        }
    }
}

/// The order of sources by age, and what is inherited from the newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Newest {
    time: Option<i64>,
    step: Option<u64>,
    id: ItemId,
    version: Option<u32>,
    episode: Option<u32>,
}

/// The part of a source that its dependents take over.
struct SourceFacts {
    id: ItemId,
    attributes: Attributes,
    episodes: Vec<u32>,
}

/// Facts read while items settle, kept until they change: many items may rest on one.
#[derive(Default)]
struct Known {
    /// The source that was read last.
    source: Option<SourceFacts>,
    /// Items without further episodes.
    without_episodes: Range<u32>,
}

/// Aggregates over the sources of one item.
#[derive(Default)]
struct SourceSummary {
    good: u32,
    weak: u32,
    bad: u32,
    trust_sources: u8,
    trust_statuses: u8,
    newest: Option<Newest>,
    worst_status: Option<Status>,
    /// The worst status but `failed`.
    worst_valid_status: Option<Status>,
    lowest_source: Option<crate::model::item::Source>,
    episodes: BTreeSet<u32>,
}

impl SourceSummary {
    fn take(&mut self, SourceFacts { id, attributes: source, episodes }: &SourceFacts) {
        match SourceClass::from_source(source) {
            SourceClass::Good => self.good += 1,
            SourceClass::Weak => self.weak += 1,
            SourceClass::Bad => self.bad += 1,
        }
        self.trust_sources |= source.trust_sources;
        self.trust_statuses |= source.trust_statuses;
        if !source.active {
            return;
        }
        let Attributes { time, step, version, episode, .. } = *source;
        self.newest = self.newest.max(Some(Newest { time, step, id: *id, version, episode }));
        self.worst_status = self.worst_status.max(source.status);
        let valid = source.status.filter(|status| *status != Status::Failed);
        self.worst_valid_status = self.worst_valid_status.max(valid);
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
    /// The direct sources of an item: the targets of its lineage edges and, for a theme, its children.
    pub(crate) fn sources(&self, id: ItemId, layer: Layer) -> Result<Vec<ItemId>> {
        self.sources_among(self.ends(tables::EDGE_OUT, id)?, id, layer)
    }

    /// The direct sources of an item with these outgoing edges.
    fn sources_among(&self, out: impl Iterator<Item = EdgeEnd>, id: ItemId, layer: Layer) -> Result<Vec<ItemId>> {
        let mut sources: Vec<ItemId> = far_ends(out, Edge::is_lineage).collect();
        if layer == Layer::Theme {
            sources.extend(far_ends(self.ends(tables::EDGE_IN, id)?, |edge| edge == Edge::Parent));
        }
        sources.sort_unstable();
        sources.dedup();
        Ok(sources)
    }

    /// Calls `see` for each direct dependent of a trace. May report a dependent more than once.
    pub(crate) fn each_dependent_of_trace(&self, id: ItemId, see: impl FnMut(ItemId)) -> Result<()> {
        far_ends(self.ends(tables::EDGE_IN, id)?, Edge::is_lineage).for_each(see);
        Ok(())
    }

    /// The direct dependents of an item.
    pub(crate) fn dependents(&self, id: ItemId) -> Result<Vec<ItemId>> {
        let layer = self.attributes.kind(id)?.layer();
        let out = if layer == Layer::Trace { Vec::new() } else { self.edges_out(id, None)? };
        self.dependents_among(&out, id, layer)
    }

    /// The direct dependents of an item with these outgoing edges.
    fn dependents_among(&self, out: &[EdgeEnd], id: ItemId, layer: Layer) -> Result<Vec<ItemId>> {
        let mut dependents: Vec<ItemId> = far_ends(self.ends(tables::EDGE_IN, id)?, Edge::is_lineage).collect();
        if layer != Layer::Trace {
            dependents.extend(far_ends(out.iter().copied(), |edge| edge == Edge::Parent));
        }
        dependents.sort_unstable();
        dependents.dedup();
        Ok(dependents)
    }

    /// The state as it would be with these items retired, and support settled. It is no commit of the log.
    pub(crate) fn without(&self, items: &[ItemId]) -> Result<State> {
        let mut state = self.clone();
        for id in items {
            let mut attributes = state.attributes(*id)?;
            if attributes.active {
                attributes.active = false;
                state.attributes.set(*id, attributes);
                state.stale_items.insert(id.0);
                state.mark_dependents_stale(*id)?;
            }
        }
        state.settle()?;
        state.before_images = Default::default();
        state.clear_caches();
        Ok(state)
    }

    /// Recomputes the derived attributes of all stale items and of their dependents.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.flush_episode_cache()?;
        let mut queue: BTreeSet<(bool, u32)> = BTreeSet::new();
        for id in std::mem::take(&mut self.stale_items) {
            let is_theme = self.attributes.kind(ItemId(id))?.layer() == Layer::Theme;
            queue.insert((is_theme, id));
        }
        let mut known = Known::default();
        while let Some((_, id)) = queue.pop_first() {
            let id = ItemId(id);
            let before = self.attributes(id)?;
            let out = self.edges_out(id, None)?;
            let (after, episodes_changed) = self.derive(id, &before, &out, &mut known)?;
            if after == before && !episodes_changed {
                continue;
            }
            let layer = before.layer();
            self.replace_attributes(id, before, after)?;
            known.source = known.source.filter(|source| source.id != id);
            for dependent in self.dependents_among(&out, id, layer)? {
                let is_theme = self.attributes.kind(dependent)?.layer() == Layer::Theme;
                queue.insert((is_theme, dependent.0));
            }
        }
        Ok(())
    }

    /// Marks the dependents of a changed item as stale.
    pub(crate) fn mark_dependents_stale(&mut self, id: ItemId) -> Result<()> {
        for dependent in self.dependents(id)? {
            self.stale_items.insert(dependent.0);
        }
        Ok(())
    }

    /// The attributes of an item with everything derived recomputed. The flag tells whether its further episodes
    /// changed. `out` are its outgoing edges.
    fn derive(
        &mut self,
        id: ItemId,
        stated: &Attributes,
        out: &[EdgeEnd],
        known: &mut Known,
    ) -> Result<(Attributes, bool)> {
        let mut attributes = stated.clone();
        if attributes.layer() == Layer::Trace {
            attributes.trust_of_trace();
            return Ok((attributes, false));
        }
        let mut summary = SourceSummary::default();
        for source in self.sources_among(out.iter().copied(), id, attributes.layer())? {
            if known.source.as_ref().is_none_or(|known| known.id != source) {
                let attributes = self.attributes(source)?;
                let episodes = self.episodes_of(source, attributes.layer(), attributes.episode)?;
                known.source = Some(SourceFacts { id: source, attributes, episodes });
            }
            known.source.iter().for_each(|source| summary.take(source));
        }
        attributes.support = summary.support();
        attributes.trust_sources = summary.trust_sources;
        attributes.trust_statuses = summary.trust_statuses;
        let inherits = |bit: u8| attributes.inherited & bit != 0;
        let newest = summary.newest;
        let (status, source, step, time, version) = (
            inherits(Inherited::STATUS),
            inherits(Inherited::SOURCE),
            inherits(Inherited::STEP),
            inherits(Inherited::TIME),
            inherits(Inherited::VERSION),
        );
        if status {
            // Failed only if all sources are.
            attributes.status = summary.worst_valid_status.or(summary.worst_status);
        }
        if source {
            attributes.source = summary.lowest_source;
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
            let (first, episodes_changed) = self.inherit_episodes(id, &summary, known)?;
            attributes.episode = first;
            return Ok((attributes, episodes_changed));
        }
        Ok((attributes, false))
    }

    /// Stores the item's membership in every episode of its sources. Returns the primary episode, which is that of
    /// the newest source (the inherited step belongs to it), and whether the further episodes changed.
    fn inherit_episodes(
        &mut self,
        id: ItemId,
        summary: &SourceSummary,
        known: &mut Known,
    ) -> Result<(Option<u32>, bool)> {
        let first = summary.newest.and_then(|newest| newest.episode).or_else(|| summary.episodes.first().copied());
        let wanted: BTreeSet<u32> =
            summary.episodes.iter().copied().filter(|episode| Some(*episode) != first).collect();
        let present = self.further_episodes(id, known)?;
        for gone in present.difference(&wanted) {
            self.delete(tables::MEMBER_EPISODE, tables::numbers([id.0, *gone]))?;
            self.delete(tables::EPISODE_MEMBER, tables::numbers([*gone, id.0]))?;
        }
        for new in wanted.difference(&present) {
            self.put_empty(tables::MEMBER_EPISODE, tables::numbers([id.0, *new]))?;
            self.put_empty(tables::EPISODE_MEMBER, tables::numbers([*new, id.0]))?;
        }
        let changed = present != wanted;
        if changed && known.without_episodes.contains(&id.0) {
            known.without_episodes.start = id.0.saturating_add(1);
        }
        Ok((first, changed))
    }

    /// The further episodes of an item. Where it has none, one look-up tells the same of the items up to the next one
    /// that has some.
    fn further_episodes(&self, id: ItemId, known: &mut Known) -> Result<BTreeSet<u32>> {
        let mut episodes = BTreeSet::new();
        if known.without_episodes.contains(&id.0) {
            return Ok(episodes);
        }
        let mut next = u32::MAX;
        let first = tables::numbers([id.0]);
        for row in self.rows.range(tables::MEMBER_EPISODE, Bound::Included(&first), Bound::Unbounded) {
            let (key, _) = row?;
            next = tables::number_at(&key, 0).unwrap_or_default();
            if next != id.0 {
                break;
            }
            episodes.extend(tables::number_at(&key, 4));
        }
        known.without_episodes = id.0.saturating_add(1)..next;
        Ok(episodes)
    }
}
