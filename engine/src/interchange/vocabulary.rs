//! The allowed words of attributes, and the nearest known word to an unknown one.

/// Kinds of a trace.
pub const TRACE_KINDS: &[&str] = &["turn", "call", "observation"];
/// Kinds of a recall.
pub const RECALL_KINDS: &[&str] = &["summary", "fact", "procedure", "refined"];
/// Kinds of a theme.
pub const THEME_KINDS: &[&str] = &["theme", "concept", "intent"];
/// Producers of an item.
pub const SOURCES: &[&str] = &["user", "assistant", "tool", "environment", "document", "system"];
/// Outcomes of an item.
pub const STATUSES: &[&str] = &["success", "unknown", "failed"];
/// Origins of a recall.
pub const ORIGINS: &[&str] = &["original", "linked_fact", "refined"];
/// States of a page.
pub const PAGE_STATES: &[&str] = &["unsummarised", "summarised"];
/// Types of an edge.
pub const EDGES: &[&str] =
    &["derived-from", "cites", "mentions", "solves", "sibling", "supersedes", "conflicts-with", "parent"];
/// Scopes of a claim.
pub const SCOPES: &[&str] = &["episode", "global"];
/// Metrics of a space.
pub const METRICS: &[&str] = &["cosine", "dot", "l2"];
/// Encodings of a space.
pub const ENCODINGS: &[&str] = &["f32", "f16", "i8"];
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
