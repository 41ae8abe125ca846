//! `holotype graph`: an item with its evidence and its dependents, as a picture or a tree of text.
//!
//! Evidence stands on the left, what rests on the item on the right; an arrow leads from an item to what it rests on.
//! The nearest [`MOST`] items are drawn, and the picture says how many are not. Colour and shape tell the standing of
//! an item, so that a picture without colours can be read too.

mod layout;
mod svg;
mod text;
mod tree;

use crate::database;
use crate::failure::{Failure, Problem, Status};
use crate::render::text::cut;
use crate::render::{Drawing, Format};
use crate::screen::Screen;
use holotype::{Edge, ItemId, Kind, Layer, Snapshot, Support};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// The most items of a picture.
const MOST: usize = 200;
/// The longest line of text in a node, in columns.
const TEXT: usize = 34;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The database
    db: PathBuf,
    /// The item: its key, or #NUMBER
    item: String,
    /// Steps from the item to the farthest ones drawn, in both directions
    #[arg(long, value_name = "N", default_value_t = 3)]
    depth: u32,
    /// Show the database as of this commit
    #[arg(long, value_name = "COMMIT")]
    as_of: Option<u64>,
}

/// The standing of an item, which decides its colour and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    Success,
    Unknown,
    Weakened,
    Unsupported,
    Failed,
    Inactive,
}

impl Standing {
    const ALL: [Standing; 6] = [
        Standing::Success,
        Standing::Unknown,
        Standing::Weakened,
        Standing::Unsupported,
        Standing::Failed,
        Standing::Inactive,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Standing::Success => "success",
            Standing::Unknown => "unknown",
            Standing::Weakened => "weakened",
            Standing::Unsupported => "unsupported",
            Standing::Failed => "failed",
            Standing::Inactive => "inactive",
        }
    }

    /// Fill and line, as `#rrggbb`.
    fn colours(self) -> (&'static str, &'static str) {
        match self {
            Standing::Success => ("#e3f4e5", "#2e7d32"),
            Standing::Unknown => ("#eef1f5", "#546e7a"),
            Standing::Weakened => ("#fff6d6", "#b28704"),
            Standing::Unsupported => ("#ffe8d1", "#c45100"),
            Standing::Failed => ("#fde2e1", "#c62828"),
            Standing::Inactive => ("#f4f4f4", "#9e9e9e"),
        }
    }
}

/// An item of a picture.
pub(crate) struct Node {
    key: String,
    kind: Kind,
    text: String,
    standing: Standing,
    /// Steps from the item: below 0 for evidence, above 0 for dependents.
    depth: i32,
}

/// A line of a picture: from an item to what it rests on, or to one it is linked with.
pub(crate) struct Line {
    from: usize,
    to: usize,
    edge: Edge,
}

/// The items of a picture, and the lines between them.
pub(crate) struct Graph {
    nodes: Vec<Node>,
    lines: Vec<Line>,
    /// Items that were reached and are not drawn.
    left_out: usize,
}

pub(crate) fn run(args: &Args, format: Option<Format>, drawing: Option<Drawing>) -> Result<Status, Failure> {
    if format == Some(Format::Markdown) {
        let message = "a graph is drawn with --format table, json, jsonl, svg, dot or mermaid";
        return Err(Problem::input("usage", message).into());
    }
    let screen = Screen::stdout();
    let database = database::to_read(&args.db)?;
    let snapshot = match args.as_of {
        Some(commit) => database.snapshot().as_of(commit)?,
        None => database.snapshot(),
    };
    let root = snapshot.item_named(&args.item)?;
    let graph = Graph::around(&snapshot, root, i32::try_from(args.depth).unwrap_or(i32::MAX))?;
    let drawn = match (format, drawing) {
        (Some(Format::Json | Format::Jsonl), _) => format!("{}\n", tree::json(&graph)),
        (Some(_), _) => tree::draw(&graph, &screen),
        // A person sees a tree, a file gets a picture.
        (None, None) if screen.terminal => tree::draw(&graph, &screen),
        (None, None | Some(Drawing::Svg)) => svg::draw(&graph),
        (None, Some(Drawing::Dot)) => text::dot(&graph),
        (None, Some(Drawing::Mermaid)) => text::mermaid(&graph),
    };
    io::stdout().lock().write_all(drawn.as_bytes())?;
    Ok(database::status_of_reading(&database))
}

impl Graph {
    /// The items around one, nearest first.
    fn around(snapshot: &Snapshot, root: ItemId, depth: i32) -> holotype::Result<Graph> {
        let mut depths: BTreeMap<ItemId, i32> = BTreeMap::from([(root, 0)]);
        let mut order = vec![root];
        let mut left_out = BTreeSet::new();
        let mut queue = VecDeque::from([(root, -1), (root, 1)]);
        while let Some((id, direction)) = queue.pop_front() {
            let at = depths.get(&id).copied().unwrap_or(0);
            if at.abs() >= depth {
                continue;
            }
            let next = if direction < 0 { sources(snapshot, id)? } else { dependents(snapshot, id)? };
            for id in next {
                if depths.contains_key(&id) {
                    continue;
                }
                if order.len() >= MOST {
                    left_out.insert(id);
                    continue;
                }
                depths.insert(id, at + direction);
                order.push(id);
                queue.push_back((id, direction));
            }
        }
        let nodes = order.iter().map(|id| node(snapshot, *id, depths[id])).collect::<holotype::Result<_>>()?;
        Ok(Graph { nodes, lines: lines(snapshot, &order)?, left_out: left_out.len() })
    }
}

fn sources(snapshot: &Snapshot, id: ItemId) -> holotype::Result<Vec<ItemId>> {
    let mut found = snapshot.linked(id, Edge::Cites)?;
    found.extend(snapshot.linked(id, Edge::DerivedFrom)?);
    if snapshot.attributes(id)?.layer() == Layer::Theme {
        found.extend(snapshot.linking(id, Edge::Parent)?);
    }
    Ok(found)
}

fn dependents(snapshot: &Snapshot, id: ItemId) -> holotype::Result<Vec<ItemId>> {
    let mut found = snapshot.linking(id, Edge::Cites)?;
    found.extend(snapshot.linking(id, Edge::DerivedFrom)?);
    found.extend(snapshot.linked(id, Edge::Parent)?);
    Ok(found)
}

fn node(snapshot: &Snapshot, id: ItemId, depth: i32) -> holotype::Result<Node> {
    let attributes = snapshot.attributes(id)?;
    let text =
        if attributes.redacted { "(forgotten)".to_owned() } else { snapshot.item(id)?.content.text().to_owned() };
    let standing = match (attributes.status, attributes.support) {
        _ if !attributes.active => Standing::Inactive,
        (Some(holotype::Status::Failed), _) => Standing::Failed,
        (_, Support::Unsupported) if attributes.kind.layer() != Layer::Trace && !attributes.ungrounded => {
            Standing::Unsupported
        }
        (_, Support::Weakened) => Standing::Weakened,
        (Some(holotype::Status::Success), _) => Standing::Success,
        _ => Standing::Unknown,
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Node { key: snapshot.key_of(id)?, kind: attributes.kind, text: cut(&line, TEXT), standing, depth })
}

/// The edges between drawn items, from an item to what it rests on.
fn lines(snapshot: &Snapshot, order: &[ItemId]) -> holotype::Result<Vec<Line>> {
    let place: BTreeMap<ItemId, usize> = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut lines = Vec::new();
    for (at, id) in order.iter().enumerate() {
        for edge in [Edge::Cites, Edge::DerivedFrom, Edge::Parent, Edge::Supersedes, Edge::ConflictsWith] {
            for far in snapshot.linked(*id, edge)? {
                // A symmetric edge is walked from both ends, and drawn from the first.
                let drawn = place.get(&far).filter(|far| edge != Edge::ConflictsWith || at < **far);
                if let Some(far) = drawn {
                    // A theme rests on its children.
                    let (from, to) = if edge == Edge::Parent { (*far, at) } else { (at, *far) };
                    lines.push(Line { from, to, edge });
                }
            }
        }
    }
    Ok(lines)
}

/// True for an edge that is no evidence.
fn is_aside(edge: Edge) -> bool {
    matches!(edge, Edge::Supersedes | Edge::ConflictsWith)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of a fact with `traces` traces, and a theme.
    pub(super) fn star(traces: usize) -> Graph {
        let node = |nth: usize, depth: i32| Node {
            key: format!("k\"{nth}<&]"),
            kind: Kind::Fact,
            text: "said \"this\" & <that>; {x}".to_owned(),
            standing: Standing::ALL[nth % 6],
            depth,
        };
        let mut nodes = vec![node(0, 0), node(1, 1)];
        nodes.extend((0..traces).map(|nth| node(nth + 2, -1)));
        let mut lines =
            vec![Line { from: 1, to: 0, edge: Edge::Parent }, Line { from: 0, to: 2, edge: Edge::ConflictsWith }];
        lines.extend((0..traces).map(|nth| Line { from: 0, to: nth + 2, edge: Edge::Cites }));
        Graph { nodes, lines, left_out: 3 }
    }

    #[test]
    fn every_node_and_line_is_drawn_and_nothing_escapes() {
        let graph = star(198);
        let (svg, dot, mermaid) = (svg::draw(&graph), text::dot(&graph), text::mermaid(&graph));
        assert_eq!(svg.matches("<title>").count(), 200);
        assert_eq!(svg.matches("class=\"line").count(), graph.lines.len());
        assert!(!svg.contains("<that>") && !svg.contains("k\"0"), "names are escaped");
        assert_eq!(dot.matches(" [label=").count(), 200);
        assert_eq!(dot.matches(" -> ").count(), graph.lines.len());
        assert_eq!(mermaid.matches("-->").count() + mermaid.matches("-.->").count(), graph.lines.len());
        assert!(!mermaid.contains("<that>"));
        for drawn in [&svg, &dot, &mermaid] {
            assert!(drawn.contains("3 more items"), "{drawn}");
        }
    }

    #[test]
    fn nodes_do_not_overlap() {
        let places = layout::places(&star(198));
        for (nth, one) in places.nodes.iter().enumerate() {
            for other in &places.nodes[nth + 1..] {
                let apart = (one.0 - other.0).abs() >= layout::WIDTH || (one.1 - other.1).abs() >= layout::HEIGHT;
                assert!(apart, "{one:?} {other:?}");
            }
            assert!(one.0 + layout::WIDTH <= places.width && one.1 + layout::HEIGHT <= places.height);
        }
    }
}
