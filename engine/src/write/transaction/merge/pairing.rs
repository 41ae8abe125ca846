//! Which items a merge joins (PlugMem C.5), without a write.
//!
//! Two active items may be joined if they are of one kind, share a concept and no source, and their cosine is above
//! `tau`. The `top` nearest of each item are proposed, the nearest pair of all first, until nothing is left:
//!
//! ```text
//! two items        one statement, as the merger says
//! restated again   an item that restates what two others became (`Update`) joins them
//! ```
//!
//! An item is *settled* by the merge that it was in, as an original that stays or as the statement that was made: it is
//! joined again only with what is written later and was in no merge itself. So a merge leaves nothing for the next one
//! to do, unless it came to its [`MOST_MERGES`].
//!
//! Cost: one comparison of vectors for each pair of the [`MOST_OF_CONCEPT`] newest items of a concept; older ones come
//! in turn, as those before them are joined.

use super::{MOST_MERGES, MergeOptions};
use crate::Result;
use crate::derive::repair;
use crate::memory::structure::{FactMerger, Relation};
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer};
use crate::read::snapshot::Snapshot;
use crate::records::record::PointerTarget;
use holotype_index::distance::kernels;
use std::collections::HashMap;

/// Items of a concept that are compared at once.
const MOST_OF_CONCEPT: usize = 200;

/// Items that become one statement.
#[derive(Debug)]
pub(super) struct Joined {
    /// The earlier first.
    pub(super) of: Vec<ItemId>,
    pub(super) text: String,
    pub(super) relation: Relation,
}

/// An item that may be joined with others.
struct Node {
    id: ItemId,
    kind: Kind,
    vector: Vec<f32>,
    /// The newest statement that it was merged into, or its own number if it is such a statement.
    settled: Option<ItemId>,
    sources: Option<Vec<PointerTarget>>,
    /// The others it may be joined with, the nearest last.
    near: Vec<(f32, usize)>,
    /// Its place among the groups.
    group: Option<usize>,
}

/// Items that were joined by this call.
struct Group {
    nodes: Vec<usize>,
    text: String,
    relation: Relation,
}

/// The items of a concept: those that are compared, and those that wait, the newest last.
#[derive(Default)]
struct Window {
    compared: Vec<usize>,
    waiting: Vec<usize>,
}

struct Pairing<'s> {
    snapshot: &'s Snapshot,
    options: MergeOptions,
    nodes: Vec<Node>,
    windows: Vec<Window>,
    groups: Vec<Group>,
    merges: usize,
}

/// The statements that a merge of some items makes, by their first original.
pub(super) fn joined(
    snapshot: &Snapshot,
    among: &[ItemId],
    merger: &dyn FactMerger,
    options: MergeOptions,
) -> Result<Vec<Joined>> {
    let mut pairing =
        Pairing { snapshot, options, nodes: Vec::new(), windows: Vec::new(), groups: Vec::new(), merges: 0 };
    pairing.read(among)?;
    while pairing.merges < MOST_MERGES {
        pairing.fill_windows()?;
        let proposed = pairing.proposed();
        if proposed.is_empty() {
            break;
        }
        for (a, b) in proposed {
            pairing.join(a, b, merger)?;
        }
    }
    Ok(pairing.done())
}

impl Pairing<'_> {
    /// Reads the items that may be joined: active recalls with a vector and a concept.
    fn read(&mut self, among: &[ItemId]) -> Result<()> {
        let state = &self.snapshot.state;
        let mut among = among.to_vec();
        among.sort_unstable();
        among.dedup();
        let mut numbers: HashMap<ItemId, usize> = HashMap::new();
        for id in among {
            self.snapshot.tick()?;
            let attributes = state.attributes(id)?;
            if !attributes.active || attributes.redacted || attributes.layer() != Layer::Recall {
                continue;
            }
            let ends = state.edges_out(id, None)?;
            let mut concepts = Vec::new();
            for end in ends.iter().filter(|end| end.edge == Edge::Mentions) {
                let next = numbers.len();
                concepts.push(*numbers.entry(end.far).or_insert(next));
            }
            if concepts.is_empty() {
                continue;
            }
            let Some(vector) = repair::vector(self.snapshot, Layer::Recall, id)?.map(super::unit) else { continue };
            self.windows.resize_with(numbers.len(), Window::default);
            for concept in &concepts {
                self.windows[*concept].waiting.push(self.nodes.len());
            }
            let settled = settled(self.snapshot, id, attributes.kind)?;
            let (kind, near) = (attributes.kind, Vec::new());
            self.nodes.push(Node { id, kind, vector, settled, sources: None, near, group: None });
        }
        Ok(())
    }

    /// Compares what waits in a concept while there is room, the newest first.
    fn fill_windows(&mut self) -> Result<()> {
        for at in 0..self.windows.len() {
            let mut window = std::mem::take(&mut self.windows[at]);
            window.compared.retain(|node| self.nodes[*node].group.is_none());
            while window.compared.len() < MOST_OF_CONCEPT
                && let Some(node) = window.waiting.pop()
            {
                if self.nodes[node].group.is_none() {
                    self.compare(node, &window.compared)?;
                    window.compared.push(node);
                }
            }
            self.windows[at] = window;
        }
        Ok(())
    }

    /// Notes the pairs of an item with later ones.
    fn compare(&mut self, node: usize, others: &[usize]) -> Result<()> {
        self.snapshot.tick()?;
        for other in others.iter().copied() {
            let (earlier, later) = (&self.nodes[node], &self.nodes[other]);
            if earlier.kind != later.kind
                || later.settled.is_some()
                || earlier.settled.is_some_and(|settled| settled > later.id)
            {
                continue;
            }
            let similarity = kernels().dot_f32(&earlier.vector, &later.vector);
            if similarity <= self.options.tau || earlier.near.iter().any(|(_, known)| *known == other) {
                continue;
            }
            if self.share_a_source(node, other)? {
                continue;
            }
            self.note(node, (similarity, other));
            self.note(other, (similarity, node));
        }
        Ok(())
    }

    fn note(&mut self, node: usize, pair: (f32, usize)) {
        let near = &mut self.nodes[node].near;
        let at = near.partition_point(|known| known.0.total_cmp(&pair.0).then(pair.1.cmp(&known.1)).is_lt());
        near.insert(at, pair);
    }

    fn share_a_source(&mut self, a: usize, b: usize) -> Result<bool> {
        for node in [a, b] {
            if self.nodes[node].sources.is_none() {
                let pointers = self.snapshot.state.pointers(self.nodes[node].id)?;
                self.nodes[node].sources = Some(pointers.into_iter().map(|pointer| pointer.target).collect());
            }
        }
        let of = |node: usize| self.nodes[node].sources.as_deref().unwrap_or_default();
        Ok(of(a).iter().any(|source| of(b).contains(source)))
    }

    /// The pairs to look at next: of each item the `top` nearest that are left, the nearest pair first.
    fn proposed(&mut self) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
        for node in 0..self.nodes.len() {
            let mut near = std::mem::take(&mut self.nodes[node].near);
            near.retain(|(_, other)| self.may_join(node, *other));
            let nearest = near.iter().rev().take(self.options.top);
            pairs.extend(nearest.map(|(similarity, other)| (*similarity, node.min(*other), node.max(*other))));
            self.nodes[node].near = near;
        }
        pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        pairs.dedup_by_key(|(_, a, b)| (*a, *b));
        pairs.into_iter().map(|(_, a, b)| (a, b)).collect()
    }

    /// True for items that are not joined yet, or one of which belongs to what is restated.
    fn may_join(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.nodes[a].group, self.nodes[b].group);
        let is_open = |group: Option<usize>| group.is_none_or(|group| self.groups[group].relation == Relation::Update);
        (a.is_none() || a != b) && is_open(a) && is_open(b)
    }

    /// Joins two items with what they are joined with, or drops the pair.
    fn join(&mut self, a: usize, b: usize, merger: &dyn FactMerger) -> Result<()> {
        if self.merges == MOST_MERGES || !self.may_join(a, b) {
            return Ok(());
        }
        let (mut earlier, mut later) = (self.group(a)?, self.group(b)?);
        if earlier.nodes.last() > later.nodes.last() {
            std::mem::swap(&mut earlier, &mut later);
        }
        let is_pair = earlier.nodes.len() + later.nodes.len() == 2;
        let merged = merger.merge(&earlier.text, &later.text)?;
        let Some(fact) = Some(merged).filter(|fact| is_pair || fact.relation == Relation::Update) else {
            self.nodes[a].near.retain(|(_, other)| *other != b);
            self.nodes[b].near.retain(|(_, other)| *other != a);
            return Ok(());
        };
        self.merges += 1;
        let mut nodes = [earlier.nodes, later.nodes].concat();
        nodes.sort_unstable();
        for node in &nodes {
            if let Some(group) = self.nodes[*node].group.replace(self.groups.len()) {
                self.groups[group].nodes.clear();
            }
        }
        self.groups.push(Group { nodes, text: fact.text, relation: fact.relation });
        Ok(())
    }

    /// The group of an item; one of its own if it has none.
    fn group(&self, node: usize) -> Result<Group> {
        if let Some(group) = self.nodes[node].group.and_then(|group| self.groups.get(group)) {
            return Ok(Group { nodes: group.nodes.clone(), text: group.text.clone(), relation: group.relation });
        }
        let text = self.snapshot.content(self.nodes[node].id)?.text().to_owned();
        Ok(Group { nodes: vec![node], text, relation: Relation::Update })
    }

    fn done(self) -> Vec<Joined> {
        let Pairing { nodes, mut groups, .. } = self;
        groups.retain(|group| !group.nodes.is_empty());
        groups.sort_unstable_by(|a, b| a.nodes.cmp(&b.nodes));
        let of = |group: &Group| group.nodes.iter().map(|node| nodes[*node].id).collect();
        groups.into_iter().map(|group| Joined { of: of(&group), text: group.text, relation: group.relation }).collect()
    }
}

/// The newest statement that an item was merged into and stayed, or the item itself if it was made by a merge.
fn settled(snapshot: &Snapshot, id: ItemId, kind: Kind) -> Result<Option<ItemId>> {
    let state = &snapshot.state;
    let is_merged = |id: ItemId| -> Result<bool> {
        let mut of = 0;
        for end in state.edges_out(id, None)? {
            let is_original = matches!(end.edge, Edge::Supersedes | Edge::DerivedFrom);
            of += usize::from(is_original && state.attributes.kind(end.far)? == kind);
        }
        Ok(of >= 2)
    };
    if is_merged(id)? {
        return Ok(Some(id));
    }
    let mut settled = None;
    for end in state.edges_in(id, Some(Edge::DerivedFrom))? {
        if state.attributes.kind(end.far)? == kind && is_merged(end.far)? {
            settled = settled.max(Some(end.far));
        }
    }
    Ok(settled)
}
