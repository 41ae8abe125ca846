//! The allowed words of attributes, and the nearest known word to an unknown one.

use crate::model::item::{Kind, Layer};
use holotype_index::{Encoding, Metric};
use holotype_query::{ClaimScope, PageState};

/// The kinds of a layer.
const fn kinds<const N: usize>(layer: Layer) -> [&'static str; N] {
    let (mut names, mut found, mut at) = ([""; N], 0, 0);
    while at < Kind::ALL.len() {
        if Kind::ALL[at].layer() as u8 == layer as u8 {
            names[found] = Kind::ALL[at].as_str();
            found += 1;
        }
        at += 1;
    }
    assert!(found == N);
    names
}

/// Kinds of a trace.
pub const TRACE_KINDS: &[&str] = &kinds::<3>(Layer::Trace);
/// Kinds of a recall.
pub const RECALL_KINDS: &[&str] = &kinds::<4>(Layer::Recall);
/// Kinds of a theme.
pub const THEME_KINDS: &[&str] = &kinds::<3>(Layer::Theme);
/// Producers of an item.
pub const SOURCES: &[&str] = holotype_query::Source::WORDS;
/// Outcomes of an item.
pub const STATUSES: &[&str] = holotype_query::Status::WORDS;
/// Origins of a recall.
pub const ORIGINS: &[&str] = holotype_query::Origin::WORDS;
/// States of a page.
pub const PAGE_STATES: &[&str] = PageState::WORDS;
/// Types of an edge.
pub const EDGES: &[&str] = holotype_query::Edge::WORDS;
/// Scopes of a claim.
pub const SCOPES: &[&str] = ClaimScope::WORDS;
/// Metrics of a space.
pub const METRICS: &[&str] = Metric::NAMES;
/// Encodings of a space.
pub const ENCODINGS: &[&str] = Encoding::NAMES;
/// Units of the offsets in a pointer.
pub const UNITS: &[&str] = &["bytes", "chars"];

pub(crate) use holotype_query::nearest;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_only_a_near_one() {
        let nearest = |word: &str, known: &[&'static str]| nearest(word, known.iter().copied());
        assert_eq!(nearest("sucess", STATUSES), Some("success"));
        assert_eq!(nearest("Tool", SOURCES), Some("tool"));
        assert_eq!(nearest("derived_from", EDGES), Some("derived-from"));
        assert_eq!(nearest("char", UNITS), Some("chars"));
        assert_eq!(nearest("zebra", STATUSES), None);
        assert_eq!(nearest("", STATUSES), None);
        assert_eq!(nearest(&"success".repeat(100), STATUSES), None);
    }
}
