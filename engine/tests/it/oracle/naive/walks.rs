//! `sources` and `dependents`, breadth first.

use super::values::{cut, shown};
use super::{Exported, Listed};
use holotype::cell::Cell;
use holotype::query::plan::{Ref, Returns, Walk};
use holotype::query::{ItemRef, Noun};
use std::collections::BTreeSet;

impl Exported {
    pub(crate) fn walk(&self, walk: &Walk) -> Listed {
        let depth = walk.depth.unwrap_or(3);
        let mut level: Vec<u32> = Vec::new();
        for root in &walk.roots {
            let Ref::Item(item) = root else { panic!("walks begin at items") };
            let ItemRef::Id(number) = item else { panic!("items are named by number") };
            if !level.contains(&(*number as u32)) {
                level.push(*number as u32);
            }
        }
        let mut seen: BTreeSet<u32> = level.iter().copied().collect();
        let mut reached: Vec<(u32, u64, &str)> = Vec::new();
        for step in 1..=depth {
            let mut next = Vec::new();
            for from in level {
                for (edge, to) in self.next(walk, from) {
                    if seen.insert(to) {
                        reached.push((to, step, edge));
                        next.push(to);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        let (kept, standing) = self.listed(Noun::Items, &walk.listing);
        reached.retain(|row| kept.contains(&row.0));
        let Some(Returns::Names(names)) = &walk.listing.returns else { panic!("columns are named") };
        let row = |(id, depth, edge): (u32, u64, &str)| {
            let cell = |name: &str| match name {
                "depth" => Some(Cell::Integer(depth as i64)),
                "edge" => Some(Cell::Text(edge.to_owned())),
                name => self.value_of(id, name, &standing),
            };
            names.iter().map(|name| shown(&cell(&name.dotted()))).collect()
        };
        Listed {
            columns: names.iter().map(|name| name.dotted()).collect(),
            rows: cut(reached, &walk.listing).into_iter().map(row).collect(),
        }
    }

    /// The targets of one step: along the named edges, or along lineage and to the items of a theme.
    fn next(&self, walk: &Walk, from: u32) -> Vec<(&'static str, u32)> {
        let named: Vec<&str> = walk.edges.iter().map(|edge| edge.as_str()).collect();
        let lineage = ["cites", "derived-from"];
        let wanted: &[&str] = if named.is_empty() { &lineage } else { &named };
        let along = |edge: &str, forward: bool| -> Vec<(&'static str, u32)> {
            let ends = self.edges.iter().filter(|(_, of, _)| *of == edge).filter_map(|(out, of, to)| match forward {
                true => (*out == from).then_some((*of, *to)),
                false => (*to == from).then_some((*of, *out)),
            });
            ends.collect()
        };
        let mut next: Vec<(&'static str, u32)> =
            wanted.iter().flat_map(|edge| along(edge, walk.towards_sources)).collect();
        if named.is_empty() {
            match (walk.towards_sources, self.layer(from)) {
                (true, "theme") => next.extend(along("parent", false)),
                (false, "recall") => next.extend(along("parent", true)),
                _ => {}
            }
        }
        next
    }
}
