//! Hebrew words without the letters that are written together with them: and, the, in, as, to, from, that.
//!
//! Most of these letters begin roots, too, so the word without one and without two of them are variants.

use crate::words::analysis::scripts::has_chars;

const PREFIXES: [char; 7] = ['ו', 'ה', 'ב', 'כ', 'ל', 'מ', 'ש'];

/// The readings of a folded word with fewer prefixes, at least three letters long.
pub(crate) fn variants(word: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(word), |word| without_prefix(word)).skip(1).take(2)
}

fn without_prefix(word: &str) -> Option<&str> {
    word.strip_prefix(PREFIXES).filter(|rest| has_chars(rest, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_prefixes() {
        let found = |word| variants(word).collect::<Vec<_>>();
        assert_eq!(found("במטוס"), ["מטוס", "טוס"]);
        assert_eq!(found("הספר"), ["ספר"]);
        assert!(found("מלך").is_empty());
    }
}
