//! The last step of a build: nodes that no link leads to are attached.

use super::graph::{Graph, reach};
use super::search::Walker;
use super::search_limit::SearchLimit;
use super::visited::Scratch;
use crate::quantize::Codes;
use crate::segment::layout::NO_LINK;

/// Candidates tried to attach an unreachable node.
const REPAIR_EF: usize = 64;

/// Makes every node reachable from the entry point along links of level 0.
///
/// An unreachable node is linked from the nearest reachable node with a free slot. Without a free slot, it replaces the
/// last link of the nearest node and links to the displaced node itself, so reachable nodes stay reachable.
pub(super) fn connect(graph: &mut Graph, codes: Codes<'_>, scratch: &mut Scratch) {
    let mut reached = vec![false; codes.len()];
    graph.view().twins.pairs().for_each(|(_, twin)| reached[twin as usize] = true);
    reach(&graph.view().ground(), graph.entry, &mut reached);
    for node in 0..codes.len() as u32 {
        if reached[node as usize] {
            continue;
        }
        let walker = Walker { codes, query: codes.code(node) };
        walker.search(&graph.view(), SearchLimit::whole(REPAIR_EF), scratch);
        let near: Vec<u32> =
            scratch.beam.nodes().map(|(near, _)| near).filter(|near| reached[*near as usize]).collect();
        hang(graph, node, &near);
        reach(&graph.view().ground(), node, &mut reached);
    }
}

/// Links `node` from one of `near`, or from the entry point.
fn hang(graph: &mut Graph, node: u32, near: &[u32]) {
    let width = graph.m0;
    let free = |links: &[u32], from: u32| {
        let list = &links[from as usize * width..][..width];
        list.iter().position(|link| *link == NO_LINK)
    };
    for from in near {
        if let Some(free) = free(&graph.links, *from) {
            graph.links[*from as usize * width + free] = node;
            return;
        }
    }
    let from = near.first().copied().unwrap_or(graph.entry);
    let place = from as usize * width + free(&graph.links, from).unwrap_or(width - 1);
    let displaced = std::mem::replace(&mut graph.links[place], node);
    let own = &mut graph.links[node as usize * width..][..width];
    if displaced != NO_LINK && !own.contains(&displaced) {
        let place = own.iter().position(|link| *link == NO_LINK).unwrap_or(width - 1);
        own[place] = displaced;
    }
}
