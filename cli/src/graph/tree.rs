//! A graph as a tree of text, and as JSON.
//!
//! ```text
//! belief  fact  unsupported  the fare is 268
//! rests on
//! └─ call-7  call  failed  UA123 price=268
//! what rests on it
//! └─ plan  procedure  weakened  book UA123
//! ```
//!
//! An item that is reached twice is followed the first time only, and is marked `(see above)` from then on.

use super::{Graph, Node, Standing, is_aside};
use crate::render::branch;
use crate::render::text::{cut, width};
use crate::screen::{Ink, Screen};
use holotype::Edge;
use holotype::plural::counted;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The graph as a tree.
pub(super) fn draw(graph: &Graph, screen: &Screen) -> String {
    let mut tree = Tree { graph, screen, seen: BTreeSet::from([0]), out: String::new() };
    tree.line(0, "", None);
    tree.section("rests on", true);
    tree.section("what rests on it", false);
    let asides: Vec<(usize, Edge)> = graph
        .lines
        .iter()
        .filter(|line| is_aside(line.edge) && (line.from == 0 || line.to == 0))
        .map(|line| (line.from.max(line.to), line.edge))
        .collect();
    for (at, (node, edge)) in asides.iter().enumerate() {
        if at == 0 {
            tree.out.push_str("beside it\n");
        }
        tree.line(*node, branch(at + 1 == asides.len()), Some(*edge));
    }
    if graph.left_out > 0 {
        let _ = writeln!(tree.out, "{} are not drawn", counted(graph.left_out as u64, "more items"));
    }
    tree.out
}

/// The items and lines of the graph.
pub(super) fn json(graph: &Graph) -> Value {
    let node = |Node { key, kind, text, standing, depth }: &Node| {
        let (kind, standing) = (kind.as_str(), standing.as_str());
        json!({"key": key, "kind": kind, "standing": standing, "depth": depth, "text": text})
    };
    let key = |at: usize| graph.nodes.get(at).map(|node| node.key.as_str());
    let lines = graph.lines.iter();
    let lines = lines.map(|line| json!({"from": key(line.from), "to": key(line.to), "edge": line.edge.as_str()}));
    json!({
        "items": graph.nodes.iter().map(node).collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "left_out": graph.left_out,
    })
}

struct Tree<'g> {
    graph: &'g Graph,
    screen: &'g Screen,
    seen: BTreeSet<usize>,
    out: String,
}

impl Tree<'_> {
    fn section(&mut self, title: &str, evidence: bool) {
        if !self.next(0, evidence).is_empty() {
            let _ = writeln!(self.out, "{title}");
            self.below(0, evidence, "");
        }
    }

    /// The items below one, on this side of the first item.
    fn next(&self, at: usize, evidence: bool) -> Vec<(usize, Edge)> {
        let mut found: Vec<(usize, Edge)> = Vec::new();
        for line in self.graph.lines.iter().filter(|line| !is_aside(line.edge)) {
            let (near, far) = if evidence { (line.from, line.to) } else { (line.to, line.from) };
            let is_on_this_side = |node: &Node| if evidence { node.depth < 0 } else { node.depth > 0 };
            let is_new = !found.iter().any(|(known, _)| *known == far);
            if near == at && is_new && self.graph.nodes.get(far).is_some_and(is_on_this_side) {
                found.push((far, line.edge));
            }
        }
        found
    }

    fn below(&mut self, at: usize, evidence: bool, indent: &str) {
        let next = self.next(at, evidence);
        let count = next.len();
        for (nth, (node, edge)) in next.into_iter().enumerate() {
            let last = nth + 1 == count;
            self.line(node, &format!("{indent}{}", branch(last)), Some(edge));
            if self.seen.insert(node) {
                self.below(node, evidence, &format!("{indent}{}", if last { "   " } else { "│  " }));
            }
        }
    }

    fn line(&mut self, at: usize, indent: &str, edge: Option<Edge>) {
        let Some(Node { key, kind, text, standing, .. }) = self.graph.nodes.get(at) else { return };
        let ink = match standing {
            Standing::Success => Ink::Good,
            Standing::Failed | Standing::Unsupported => Ink::Bad,
            Standing::Weakened => Ink::Warn,
            Standing::Unknown | Standing::Inactive => Ink::Dim,
        };
        let aside = edge.filter(|edge| is_aside(*edge)).map(|edge| format!("{edge}  ")).unwrap_or_default();
        let again = if at > 0 && self.seen.contains(&at) { "  (see above)" } else { "" };
        let key = cut(key, self.screen.width / 2);
        let used = [indent, &aside, &key, kind.as_str(), standing.as_str(), again].map(width).iter().sum::<usize>() + 6;
        let text = cut(text, self.screen.width.saturating_sub(used));
        let (key, standing) = (self.screen.paint(Ink::Bold, &key), self.screen.paint(ink, standing.as_str()));
        let text = self.screen.paint(Ink::Dim, &text);
        let line = format!("{indent}{aside}{key}  {kind}  {standing}  {text}{again}");
        let _ = writeln!(self.out, "{}", line.trim_end());
    }
}
