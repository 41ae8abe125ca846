//! Arabic and Persian words without article, conjunction and endings.
//!
//! After light10 (Larkey, Ballesteros and Connell, *Light Stemming for Arabic Information Retrieval*, 2007): one prefix
//! with the article, or the conjunction wa, then endings while three letters remain. The particles bi, li, ka, fa and
//! sa begin many roots, so the word without them is a variant.

use crate::words::analysis::scripts::{cut_ending, has_chars};

const ARTICLES: [&str; 11] = ["وبال", "وكال", "ولل", "وال", "بال", "كال", "فال", "لل", "ال", "و", ""];
const ENDINGS: [&str; 14] = ["هما", "ها", "ان", "ات", "ون", "ين", "هم", "كم", "نا", "يه", "ه", "ي", "ا", "و"];
const PREPOSITIONS: [char; 5] = ['ب', 'ل', 'ك', 'ف', 'س'];

/// The least number of letters of a stem.
const LEAST: usize = 3;

/// Reduces a folded word to its stem.
pub(crate) fn stem(word: &mut String) {
    let prefix = ARTICLES.iter().find(|prefix| word.strip_prefix(**prefix).is_some_and(|rest| has_chars(rest, LEAST)));
    if let Some(prefix) = prefix {
        word.drain(..prefix.len());
    }
    while cut_ending(word, &ENDINGS, LEAST) {}
}

/// The stem without a preposition.
pub(crate) fn variant(stem: &str) -> Option<&str> {
    stem.strip_prefix(PREPOSITIONS).filter(|rest| has_chars(rest, LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_what_is_attached_to_them() {
        let table = [
            ("المطار", "مطار"),
            ("بالمطار", "مطار"),
            ("والمطار", "مطار"),
            ("المدرسون", "مدرس"),
            ("شقتنا", "شقت"),
            ("كتابها", "كتاب"),
            ("من", "من"),
            ("خانه", "خان"),
            ("خانهي", "خان"),
        ];
        for (word, wanted) in table {
            let mut word = word.to_owned();
            stem(&mut word);
            assert_eq!(word, wanted);
        }
        assert_eq!(variant("بقطار"), Some("قطار"));
        assert_eq!(variant("بيت"), None);
    }
}
