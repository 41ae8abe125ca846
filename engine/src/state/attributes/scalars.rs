//! The scalars of an item that the governed score reads, without the rest of its attributes.

use crate::model::item::{Attributes, Layer, Source, Status};

/// The attributes of an item that S reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scalars {
    pub(crate) layer: Layer,
    pub(crate) status: Option<Status>,
    pub(crate) source: Option<Source>,
    pub(crate) episode: Option<u32>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) utility: f32,
    /// From 1 to 10; 0 where there is none.
    pub(crate) return_score: u8,
    pub(crate) tokens: u32,
}

/// Selects the scalars to read. Each has a column of its own; the others are left absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reads {
    /// The step and its episode.
    pub(crate) step: bool,
    pub(crate) utility: bool,
    pub(crate) return_score: bool,
    pub(crate) tokens: bool,
}

impl Reads {
    pub(crate) const ALL: Reads = Reads { step: true, utility: true, return_score: true, tokens: true };
}

impl Scalars {
    /// The selected scalars of an item.
    pub(crate) fn of(item: &Attributes, reads: Reads) -> Self {
        Scalars {
            layer: item.layer(),
            status: item.status,
            source: item.source,
            episode: item.episode.filter(|_| reads.step),
            step: item.step.filter(|_| reads.step),
            time: item.time,
            utility: if reads.utility { item.utility + item.credit } else { 0.0 },
            return_score: item.return_score.filter(|_| reads.return_score).unwrap_or(0),
            tokens: if reads.tokens { item.tokens } else { 0 },
        }
    }
}
