//! The places of the items of a graph: a column for each distance from the item in the middle, evidence on the left.
//! Items of a column are ordered by the mean place of their neighbours in the column before, so that few lines cross,
//! and a long column is folded into several.

use super::Graph;
use std::collections::BTreeMap;

/// The width of a node, in pixels.
pub(super) const WIDTH: f64 = 236.0;
/// Its height.
pub(super) const HEIGHT: f64 = 46.0;
/// Between nodes of a column.
const GAP: f64 = 12.0;
/// Between columns of different distances.
const AISLE: f64 = 110.0;
/// Between folds of a column.
const FOLD: f64 = 24.0;
/// Nodes of a fold.
const ROWS: usize = 34;
const MARGIN: f64 = 24.0;
/// Above the nodes, for the legend.
const HEAD: f64 = 56.0;

/// The upper left corners of the nodes, and the size of the whole.
pub(super) struct Places {
    pub(super) nodes: Vec<(f64, f64)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Places every node.
pub(super) fn places(graph: &Graph) -> Places {
    let mut columns: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        columns.entry(node.depth).or_default().push(at);
    }
    order(graph, &mut columns);
    let tallest = columns.values().map(|column| column.len().min(ROWS)).max().unwrap_or(0) as f64;
    let height = HEAD + tallest * (HEIGHT + GAP) + MARGIN;
    let mut nodes = vec![(0.0, 0.0); graph.nodes.len()];
    let mut x = MARGIN;
    for column in columns.values() {
        for fold in column.chunks(ROWS) {
            let taken = fold.len() as f64 * (HEIGHT + GAP);
            let top = HEAD + (height - HEAD - MARGIN - taken) / 2.0;
            for (row, at) in fold.iter().enumerate() {
                nodes[*at] = (x, top + row as f64 * (HEIGHT + GAP));
            }
            x += WIDTH + FOLD;
        }
        x += AISLE - FOLD;
    }
    Places { nodes, width: (x - AISLE + MARGIN).max(4.0 * WIDTH), height }
}

/// Orders each column by the mean place of its neighbours, outwards from the item in the middle.
fn order(graph: &Graph, columns: &mut BTreeMap<i32, Vec<usize>>) {
    let mut place: Vec<f64> = vec![0.0; graph.nodes.len()];
    for column in columns.values() {
        column.iter().enumerate().for_each(|(nth, at)| place[*at] = nth as f64);
    }
    let mut distances: Vec<i32> = columns.keys().copied().collect();
    distances.sort_by_key(|distance| distance.abs());
    for distance in distances.into_iter().filter(|distance| *distance != 0) {
        let nearer = distance - distance.signum();
        let mean = |at: usize| {
            let ends = graph.lines.iter().filter_map(|line| match (line.from == at, line.to == at) {
                (true, false) => Some(line.to),
                (false, true) => Some(line.from),
                _ => None,
            });
            let near: Vec<f64> = ends.filter(|end| graph.nodes[*end].depth == nearer).map(|end| place[end]).collect();
            if near.is_empty() { f64::MAX } else { near.iter().sum::<f64>() / near.len() as f64 }
        };
        let Some(column) = columns.get_mut(&distance) else { continue };
        let mut keyed: Vec<(f64, usize)> = column.iter().map(|at| (mean(*at), *at)).collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        *column = keyed.into_iter().map(|(_, at)| at).collect();
        column.iter().enumerate().for_each(|(nth, at)| place[*at] = nth as f64);
    }
}
