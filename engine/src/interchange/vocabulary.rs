//! The words that an attribute may take, and the nearest known word to one that is not known.

/// Kinds of a trace.
pub const TRACE_KINDS: &[&str] = &["turn", "call", "observation"];
/// Kinds of a recall.
pub const RECALL_KINDS: &[&str] = &["summary", "fact", "procedure", "refined"];
/// Kinds of a theme.
pub const THEME_KINDS: &[&str] = &["theme", "concept", "intent"];
/// Who produced an item.
pub const SOURCES: &[&str] = &["user", "assistant", "tool", "environment", "document", "system"];
/// What came of it.
pub const STATUSES: &[&str] = &["success", "unknown", "failed"];
/// How a recall came to be.
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

/// Words longer than this get no suggestion: nobody mistypes that much.
const LONGEST: usize = 32;

/// The known word that `word` was probably meant to be: the fewest insertions, deletions, replacements and swaps of
/// neighbours away, ignoring case, at most a third of its length and at least one. The first of equals.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word: Vec<char> = word.chars().take(LONGEST + 1).flat_map(char::to_lowercase).collect();
    if word.len() > LONGEST {
        return None;
    }
    let most = (word.len() / 3).max(1);
    known
        .iter()
        .map(|known| (distance(&word, &known.chars().collect::<Vec<_>>()), *known))
        .filter(|(distance, known)| *distance <= most && *distance < known.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, cb) in b.iter().enumerate() {
            let mut best = (above[j] + usize::from(ca != cb)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *ca == b[j - 1] && a[i - 1] == *cb {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let measured = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("trase", "trace", 1), ("trcae", "trace", 1), ("ab", "ba", 1)]
        {
            assert_eq!(measured(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_word_is_suggested_and_only_a_near_one() {
        assert_eq!(nearest("sucess", STATUSES), Some("success"));
        assert_eq!(nearest("Tool", SOURCES), Some("tool"));
        assert_eq!(nearest("derived_from", EDGES), Some("derived-from"));
        assert_eq!(nearest("char", UNITS), Some("chars"));
        assert_eq!(nearest("zebra", STATUSES), None);
        assert_eq!(nearest("", STATUSES), None);
        assert_eq!(nearest(&"success".repeat(100), STATUSES), None);
    }
}
