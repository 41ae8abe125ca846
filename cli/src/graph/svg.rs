//! A graph as SVG: no script, no font and nothing from elsewhere.

use super::layout::{HEIGHT, Places, WIDTH, places};
use super::{Graph, Node, Standing, is_aside};
use holotype::plural::counted;
use std::fmt::Write as _;

const STYLE: &str = "text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#20262e}.key{font-weight:600}\
    .small{font-size:10px;fill:#55606c}.line{fill:none;stroke:#8a95a1;stroke-width:1.2}\
    .aside{stroke:#c62828;stroke-dasharray:5 4}";

/// The picture.
pub(super) fn draw(graph: &Graph) -> String {
    let places = places(graph);
    let Places { width, height, .. } = places;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>{STYLE}</style>\n<defs><marker id=\"tip\" \
         viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto-start-reverse\"><path d=\"M0 0 8 4 0 8z\" fill=\"#8a95a1\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    legend(&mut out, graph);
    for line in &graph.lines {
        let (from, to) = (places.nodes[line.from], places.nodes[line.to]);
        let class = if is_aside(line.edge) { "line aside" } else { "line" };
        let _ = writeln!(out, "<path class=\"{class}\" marker-end=\"url(#tip)\" d=\"{}\"/>", curve(from, to));
    }
    for (node, (x, y)) in graph.nodes.iter().zip(&places.nodes) {
        draw_node(&mut out, node, *x, *y);
    }
    out + "</svg>\n"
}

/// From the side of a node that faces the other to the other's.
fn curve(from: (f64, f64), to: (f64, f64)) -> String {
    let middle = HEIGHT / 2.0;
    let (y1, y2) = (from.1 + middle, to.1 + middle);
    if (from.0 - to.0).abs() < WIDTH {
        let (x, bend) = (from.0 + WIDTH, from.0 + WIDTH + 46.0);
        return format!("M{x:.1} {y1:.1}C{bend:.1} {y1:.1} {bend:.1} {y2:.1} {x:.1} {y2:.1}");
    }
    let (x1, x2) = if from.0 > to.0 { (from.0, to.0 + WIDTH) } else { (from.0 + WIDTH, to.0) };
    let half = (x1 + x2) / 2.0;
    format!("M{x1:.1} {y1:.1}C{half:.1} {y1:.1} {half:.1} {y2:.1} {x2:.1} {y2:.1}")
}

fn draw_node(out: &mut String, node: &Node, x: f64, y: f64) {
    let _ = writeln!(
        out,
        "<g><title>{} ({}, {})</title><path d=\"{}\" {}/><text class=\"key\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <text class=\"small\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
        escaped(&node.key),
        node.kind,
        node.standing.as_str(),
        outline(node.standing, x, y, WIDTH, HEIGHT),
        paint(node.standing),
        x + 14.0,
        y + 19.0,
        escaped(&crate::render::text::cut(&node.key, 24)),
        x + WIDTH - 14.0,
        y + 19.0,
        node.kind,
        x + 14.0,
        y + 35.0,
        escaped(&node.text),
    );
}

/// The shape of a standing: round corners, square ones, cut ones, or points at the sides.
fn outline(standing: Standing, x: f64, y: f64, w: f64, h: f64) -> String {
    let (r, b) = (x + w, y + h);
    match standing {
        Standing::Success => {
            let (left, right, top, bottom) = (x + 10.0, r - 10.0, y + 10.0, b - 10.0);
            let arc = |x: f64, y: f64| format!("A10 10 0 0 1 {x:.1} {y:.1}");
            let (upper, lower) = (arc(r, top), arc(right, b));
            let (from_below, from_above) = (arc(x, bottom), arc(left, y));
            format!(
                "M{left:.1} {y:.1}H{right:.1}{upper}V{bottom:.1}{lower}H{left:.1}{from_below}V{top:.1}{from_above}z"
            )
        }
        Standing::Unknown | Standing::Inactive => format!("M{x:.1} {y:.1}H{r:.1}V{b:.1}H{x:.1}z"),
        Standing::Weakened | Standing::Unsupported => {
            let middle = y + h / 2.0;
            format!(
                "M{:.1} {y:.1}H{:.1}L{r:.1} {middle:.1} {:.1} {b:.1}H{:.1}L{x:.1} {middle:.1}z",
                x + 10.0,
                r - 10.0,
                r - 10.0,
                x + 10.0
            )
        }
        Standing::Failed => format!(
            "M{:.1} {y:.1}H{:.1}L{r:.1} {:.1}V{:.1}L{:.1} {b:.1}H{:.1}L{x:.1} {:.1}V{:.1}z",
            x + 10.0,
            r - 10.0,
            y + 10.0,
            b - 10.0,
            r - 10.0,
            x + 10.0,
            b - 10.0,
            y + 10.0
        ),
    }
}

fn paint(standing: Standing) -> String {
    let (fill, line) = standing.colours();
    let dashes = if standing == Standing::Inactive { " stroke-dasharray=\"4 3\"" } else { "" };
    format!("fill=\"{fill}\" stroke=\"{line}\" stroke-width=\"1.4\"{dashes}")
}

fn legend(out: &mut String, graph: &Graph) {
    for (nth, standing) in Standing::ALL.into_iter().enumerate() {
        let x = 24.0 + nth as f64 * 124.0;
        let _ = writeln!(
            out,
            "<path d=\"{}\" {}/><text class=\"small\" x=\"{:.1}\" y=\"26\">{}</text>",
            outline(standing, x, 12.0, 36.0, 20.0),
            paint(standing),
            x + 44.0,
            standing.as_str()
        );
    }
    if graph.left_out > 0 {
        let more = counted(graph.left_out as u64, "more items");
        let _ = writeln!(out, "<text class=\"small\" x=\"24\" y=\"48\">{more} are not drawn</text>");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
