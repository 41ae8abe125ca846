//! The reach of concepts: the recalls that mention them, and the sources these rest on.
//!
//! The degree of a concept is the number of sources that mention it: the facts of one trace say one thing. A concept
//! that only a row's own source mentions leads nowhere from there.

use super::gather;
use super::plan::Plan;
use crate::Result;
use crate::model::edge::Edge;
use crate::model::item::ItemId;
use crate::read::snapshot::Snapshot;
use crate::records::tables;

/// A concept with more links leads everywhere, which is nowhere.
const MAX_DEGREE: usize = 4_096;
/// Recalls of a concept whose sources are counted; of more, each counts as a source.
const MOST_COUNTED: usize = 64;

/// The recalls that mention a concept, and the number of sources they rest on, which is its degree.
pub(super) struct Reach {
    pub(super) recalls: Vec<ItemId>,
    pub(super) sources: usize,
}

impl Reach {
    pub(super) fn of(snapshot: &Snapshot, plan: &Plan, concept: ItemId) -> Result<Reach> {
        let recalls = recalls_of(snapshot, concept)?;
        if recalls.len() > MOST_COUNTED {
            return Ok(Reach { sources: recalls.len(), recalls });
        }
        let mut sources = Vec::with_capacity(recalls.len());
        for recall in &recalls {
            sources.push(gather::source_of(snapshot, plan, *recall)?);
        }
        sources.sort_unstable();
        sources.dedup();
        Ok(Reach { recalls, sources: sources.len() })
    }
}

/// The weight of a concept that so many sources mention.
pub(super) fn rarity(degree: usize) -> f32 {
    1.0 / (degree.max(1) as f32).sqrt()
}

/// True for the edges from recalls to themes.
pub(super) fn is_theme_link(edge: Edge) -> bool {
    matches!(edge, Edge::Mentions | Edge::Solves | Edge::Parent)
}

/// The recalls that mention a concept, solve an intent or are the children of a theme; none where there are too many.
fn recalls_of(snapshot: &Snapshot, theme: ItemId) -> Result<Vec<ItemId>> {
    snapshot.tick()?;
    let ends = snapshot.state.ends(tables::EDGE_IN, theme)?;
    let mut recalls: Vec<ItemId> = ends.filter(|end| is_theme_link(end.edge)).map(|end| end.far).collect();
    if recalls.len() > MAX_DEGREE {
        return Ok(Vec::new());
    }
    recalls.sort_unstable();
    recalls.dedup();
    Ok(recalls)
}

/// The recalls of a row's source and their concepts; both ascend.
pub(super) struct Said {
    pub(super) recalls: Vec<ItemId>,
    pub(super) concepts: Vec<ItemId>,
}

impl Said {
    /// True if these recalls of a concept include one of another source: else the concept leads nowhere.
    pub(super) fn is_beyond(&self, recalls: &[ItemId]) -> bool {
        recalls.iter().any(|recall| self.recalls.binary_search(recall).is_err())
    }
}
