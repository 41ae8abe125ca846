//! A graph as the input of other programs: Graphviz and Mermaid.

use super::{Graph, Node, Standing, is_aside};
use holotype::plural::counted;
use std::fmt::Write as _;

/// The graph in the language of Graphviz.
pub(super) fn dot(graph: &Graph) -> String {
    let mut out =
        "digraph evidence {\n  rankdir=RL;\n  node [style=filled, fontname=\"sans-serif\", fontsize=11];\n".to_owned();
    if graph.left_out > 0 {
        let _ = writeln!(out, "  label=\"{} are not drawn\";", counted(graph.left_out as u64, "more items"));
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        let Node { key, kind, text, standing, .. } = node;
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let (fill, line) = standing.colours();
        let shape = match standing {
            Standing::Success => "shape=box, style=\"filled,rounded\"",
            Standing::Unknown => "shape=box",
            Standing::Weakened | Standing::Unsupported => "shape=hexagon",
            Standing::Failed => "shape=octagon",
            Standing::Inactive => "shape=box, style=\"filled,dashed\"",
        };
        let label = format!("{} · {kind} · {}\\n{}", quoted(key), standing.as_str(), quoted(text));
        let _ = writeln!(out, "  n{at} [label=\"{label}\", {shape}, fillcolor=\"{fill}\", color=\"{line}\"];");
    }
    for line in &graph.lines {
        let aside = if is_aside(line.edge) { ", style=dashed, color=\"#c62828\", constraint=false" } else { "" };
        let _ = writeln!(out, "  n{} -> n{} [tooltip=\"{}\"{aside}];", line.from, line.to, line.edge);
    }
    out + "}\n"
}

/// The graph in the language of Mermaid.
pub(super) fn mermaid(graph: &Graph) -> String {
    let mut out = "flowchart RL\n".to_owned();
    if graph.left_out > 0 {
        let _ = writeln!(out, "  %% {} are not drawn", counted(graph.left_out as u64, "more items"));
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        let Node { key, kind, text, standing, .. } = node;
        let (open, close) = match standing {
            Standing::Success => ("(", ")"),
            Standing::Unknown | Standing::Inactive => ("[", "]"),
            Standing::Weakened | Standing::Unsupported => ("{{", "}}"),
            Standing::Failed => (">", "]"),
        };
        let label = format!("{} · {kind} · {}<br/>{}", entities(key), standing.as_str(), entities(text));
        let _ = writeln!(out, "  n{at}{open}\"{label}\"{close}:::{}", standing.as_str());
    }
    for line in &graph.lines {
        let arrow = if is_aside(line.edge) { "-.->" } else { "-->" };
        let _ = writeln!(out, "  n{} {arrow}|{}| n{}", line.from, line.edge, line.to);
    }
    for standing in Standing::ALL {
        let (fill, line) = standing.colours();
        let dashes = if standing == Standing::Inactive { ",stroke-dasharray:4 3" } else { "" };
        let _ = writeln!(out, "  classDef {} fill:{fill},stroke:{line}{dashes};", standing.as_str());
    }
    out
}

/// The text with everything that Mermaid could take for syntax as an entity.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '<' | '>' | '&' | '#' | ';' | '`' | '\\' => {
                let _ = write!(out, "#{};", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}
