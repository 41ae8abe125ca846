//! `show graph`: the size of the memory graph (PlugMem C.5).
//!
//! Of active items: facts and concepts, procedures and intents, the bipartite edges between them, an upper bound of the
//! pairs that a shared tag makes (the sum of `C(deg, 2)` over tags), and the fan-out, which is the number of others
//! that a fact shares a tag with. The fan-out is taken over [`SAMPLE`] facts at even distances.
//!
//! Cost: one look at the edges of every concept and intent, and of the sampled facts.

use crate::Result;
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Kind, Layer};
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use std::collections::HashSet;

/// Facts whose fan-out is measured.
const SAMPLE: usize = 1_000;

/// The figures of one half of the graph.
#[derive(Default)]
struct Half {
    nodes: u64,
    tags: u64,
    edges: u64,
    pairs: u64,
    fan_out: Vec<u64>,
}

pub(super) fn run(snapshot: &Snapshot) -> Result<Table> {
    let semantic = half(snapshot, Kind::Fact, Kind::Concept, Edge::Mentions)?;
    let procedural = half(snapshot, Kind::Procedure, Kind::Intent, Edge::Solves)?;
    let names = ["graph", "nodes", "tags", "edges", "pairs", "fan_out_mean", "fan_out_median"];
    let row = |name: &str, mut half: Half| {
        half.fan_out.sort_unstable();
        let count = half.fan_out.len();
        let mean = (count > 0).then(|| half.fan_out.iter().sum::<u64>() as f64 / count as f64);
        let median = half.fan_out.get(count / 2).map(|upper| {
            let lower = half.fan_out.get(count.saturating_sub(1) / 2).unwrap_or(upper);
            (lower + upper) as f64 / 2.0
        });
        let counts = [half.nodes, half.tags, half.edges, half.pairs].map(|count| Some(Cell::count(count)));
        let fan_out = [mean, median].map(|value| value.map(|value| Cell::Number((value * 100.0).round() / 100.0)));
        [vec![Some(Cell::text(name))], counts.to_vec(), fan_out.to_vec()].concat()
    };
    Ok(Table {
        verb: "show",
        columns: names.map(str::to_owned).to_vec(),
        rows: vec![row("semantic", semantic), row("procedural", procedural)],
        ..Table::default()
    })
}

fn half(snapshot: &Snapshot, node: Kind, tag: Kind, edge: Edge) -> Result<Half> {
    let nodes = active(snapshot, node)?;
    let is_node: HashSet<ItemId> = nodes.iter().copied().collect();
    let mut half = Half { nodes: nodes.len() as u64, ..Half::default() };
    let on = |tag: ItemId| -> Result<Vec<ItemId>> {
        let ends = snapshot.state.edges_in(tag, Some(edge))?;
        Ok(ends.iter().map(|end| end.far).filter(|far| is_node.contains(far)).collect())
    };
    let mut used = HashSet::new();
    for tag in active(snapshot, tag)? {
        snapshot.tick()?;
        let degree = on(tag)?.len() as u64;
        if degree > 0 {
            used.insert(tag);
            half.edges += degree;
            half.pairs += degree * (degree - 1) / 2;
        }
    }
    half.tags = used.len() as u64;
    let stride = nodes.len().div_ceil(SAMPLE).max(1);
    for node in nodes.iter().step_by(stride) {
        let mut reached = HashSet::new();
        for tag in snapshot.linked(*node, edge)?.into_iter().filter(|tag| used.contains(tag)) {
            reached.extend(on(tag)?);
        }
        reached.remove(node);
        half.fan_out.push(reached.len() as u64);
    }
    Ok(half)
}

/// The active items of a kind that were not forgotten.
fn active(snapshot: &Snapshot, kind: Kind) -> Result<Vec<ItemId>> {
    let attributes = &snapshot.state.attributes;
    let layer: Layer = kind.layer();
    let visible = attributes.base_sets(snapshot.state.bound()).visible()?;
    let mut found = Vec::new();
    for id in visible.and(&*attributes.base_sets(snapshot.state.bound()).layer(layer)?).iter() {
        if attributes.kind(ItemId(id))? == kind {
            found.push(ItemId(id));
        }
    }
    Ok(found)
}
