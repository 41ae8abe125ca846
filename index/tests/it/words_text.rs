//! Any text is analysed: no panic, terms in proportion to the text, none too long, whatever an adversary writes.

use std::sync::Arc;

use holotype_index::words::analysis::{MAX_TERM_LEN, Role, SURFACE_MARK};
use holotype_index::words::{Analyzer, Stemming, WordIndex, WordTail};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

/// Analyses the text and checks what holds of any; gives the numbers of terms and of words among them.
fn assert_in_proportion(analyzer: Analyzer, text: &str) -> (usize, usize) {
    let (mut terms, mut words) = (0, 0);
    analyzer.start().run(text, &mut |term| {
        assert!(!term.key.is_empty() && term.key.len() <= MAX_TERM_LEN, "{:?}", term.key);
        assert_eq!(term.key.starts_with(SURFACE_MARK), term.role == Role::Surface, "{:?}", term.key);
        assert!(!term.key.contains(char::is_whitespace), "{:?}", term.key);
        terms += 1;
        words += usize::from(term.role == Role::Word);
    });
    // A compatibility character may stand for eighteen.
    let letters = 18 * text.chars().count();
    assert!(words <= letters && terms <= 3 * letters, "{terms} terms, {words} words, {letters} letters");
    (terms, words)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        assert_in_proportion(Analyzer::new(Stemming::English), &text);
        assert_in_proportion(Analyzer::new(Stemming::None), &text);
    }

    #[test]
    fn any_text_near_the_rules(text in "[a-cA-C0-9 .,:'’_/@#$%+=-]{0,60}") {
        assert_in_proportion(Analyzer::default(), &text);
    }

    #[test]
    fn any_text_of_awkward_signs(text in "[a´ßİıςΣ́̇\u{ad}\u{200d}東ですﬁ①ﷺ½€%'-]{0,40}") {
        assert_in_proportion(Analyzer::default(), &text);
    }

    #[test]
    fn equivalent_texts_give_the_same_terms(
        text in "(\\PC|[ aé각ά\u{301}\u{323}\u{34f}\u{200d}\u{93c}नक\u{94d}أإ٣👍🏽]){0,24}",
    ) {
        let analyzer = Analyzer::default();
        let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
        prop_assert_eq!(analyzer.analyze(&composed), analyzer.analyze(&text));
        prop_assert_eq!(analyzer.analyze(&decomposed), analyzer.analyze(&text));
    }

    /// Questions and texts are analysed alike: a text with terms finds itself, and its terms are those of the question.
    #[test]
    fn a_text_finds_itself(
        text in "(\\PC{1,8}|[a-cA-C0-9+#.,'’_-]{1,12}|[東京ですデータกินไทยក្រុงမြန်မာ]{1,8}|[서울에서بالمطار במטוס]{1,8}| ){1,6}",
    ) {
        let analyzer = Analyzer::default();
        let tail = Arc::new(WordTail::new(analyzer));
        tail.push(1, &[(&text, 1.0)]).unwrap();
        let index = WordIndex::new(analyzer, Vec::new(), vec![tail], 2).unwrap();
        let terms = analyzer.analyze(&text);
        let query = index.query(&text);
        prop_assert!(query.terms().iter().all(|term| terms.iter().any(|(key, _)| **key == *term.key)));
        let found: Vec<u32> = index.top(&query, None, 1).unwrap().iter().map(|hit| hit.id).collect();
        prop_assert_eq!(found, if terms.is_empty() { vec![] } else { vec![1] });
    }

    /// The order and number of words do not depend on what separates them.
    #[test]
    fn words_are_those_of_the_standard(words in proptest::collection::vec("[a-z]{1,12}", 0..30)) {
        let terms = Analyzer::new(Stemming::None).analyze(&words.join(" \n"));
        prop_assert_eq!(terms.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), words);
    }
}

#[test]
fn hostile_texts_take_linear_work() {
    let long = 1 << 20;
    let texts = [
        "a",
        "a-",
        "a.",
        "a'",
        "a:",
        "a1",
        "aB",
        "1,",
        "1,000,",
        "$",
        "-",
        "'",
        "''a",
        "\u{301}",
        "a\u{301}",
        "\u{200d}",
        "a\u{ad}",
        "ﷺ",
        "東",
        "🇫🇷",
        "👩\u{200d}👩\u{200d}👧",
        "İ",
        "a:\u{301}",
        "\u{1f1eb}",
        "\n",
        "running ",
        "é",
        "各1",
        "น",
        "か",
        "カ",
        "각",
        "의",
        "1 ",
        "1 299 ",
        "(1)-",
        "+",
        "c+",
        "ه",
        "ב",
        "न\u{94d}",
        "👍🏽",
        "://",
        "a://",
    ];
    for text in texts {
        let text = text.repeat(long / text.len());
        assert_in_proportion(Analyzer::default(), &text);
    }
}

#[test]
fn the_largest_text_is_analysed() {
    let words = "The flight UA123 to Málaga leaves at 10:30. ";
    let text = words.repeat((16 << 20) / words.len());
    let (_, found) = assert_in_proportion(Analyzer::default(), &text);
    assert_eq!(found, 9 * ((16 << 20) / words.len()));
    // One word of 16 MiB: a few cut terms.
    let (terms, _) = assert_in_proportion(Analyzer::default(), &"x".repeat(16 << 20));
    assert!(terms <= 2 * ((16 << 20) / (64 << 10)));
}
