//! Questions find their texts in every script, with what writers of it vary: marks, particles, prefixes, invisible
//! characters, separators.
//!
//! `scripts/` has a file for each kind of text: lines of a question, a tab, and the text that answers it. All texts of
//! a file are one index. A text counts as found first if it is first in both orders of the texts, which excludes ties.

use std::sync::Arc;

use holotype_index::words::{Analyzer, WordIndex, WordTail};

/// The files, with the number of questions that need not have their text first.
const SETS: [(&str, &str, usize); 19] = [
    ("arabic", include_str!("scripts/arabic.tsv"), 0),
    ("chinese", include_str!("scripts/chinese.tsv"), 0),
    ("cyrillic", include_str!("scripts/cyrillic.tsv"), 0),
    ("emoji", include_str!("scripts/emoji.tsv"), 0),
    ("greek", include_str!("scripts/greek.tsv"), 0),
    ("hebrew", include_str!("scripts/hebrew.tsv"), 0),
    ("hindi", include_str!("scripts/hindi.tsv"), 0),
    // The parts of one identifier are those of another.
    ("identifiers", include_str!("scripts/identifiers.tsv"), 1),
    ("japanese", include_str!("scripts/japanese.tsv"), 0),
    ("khmer", include_str!("scripts/khmer.tsv"), 0),
    // A word with a particle, and a shorter text with its compound.
    ("korean", include_str!("scripts/korean.tsv"), 1),
    ("lao", include_str!("scripts/lao.tsv"), 0),
    ("latin", include_str!("scripts/latin.tsv"), 0),
    ("myanmar", include_str!("scripts/myanmar.tsv"), 0),
    ("names", include_str!("scripts/names.tsv"), 0),
    ("numbers", include_str!("scripts/numbers.tsv"), 0),
    ("persian", include_str!("scripts/persian.tsv"), 0),
    ("thai", include_str!("scripts/thai.tsv"), 0),
    ("typography", include_str!("scripts/typography.tsv"), 0),
];

fn index(texts: &[&str]) -> WordIndex {
    let tail = Arc::new(WordTail::new(Analyzer::default()));
    for (id, text) in (0..).zip(texts) {
        tail.push(id, &[(text, 1.0)]).unwrap();
    }
    WordIndex::new(Analyzer::default(), Vec::new(), vec![tail], u32::MAX).unwrap()
}

#[test]
fn questions_find_their_texts_first() {
    for (name, lines, most_missed) in SETS {
        let pairs: Vec<(&str, &str)> = lines.lines().map(|line| line.split_once('\t').expect(line)).collect();
        assert!(pairs.len() >= 20, "{name}: {} pairs", pairs.len());
        let mut texts: Vec<&str> = pairs.iter().map(|(_, text)| *text).collect();
        let forwards = index(&texts);
        texts.reverse();
        let backwards = index(&texts);
        let mut missed = Vec::new();
        for (place, (question, text)) in (0..).zip(&pairs) {
            let first = |index: &WordIndex| Some(index.top(&index.query(question), None, 1).unwrap().first()?.id);
            let other = u32::try_from(texts.len()).unwrap() - 1 - place;
            if (first(&forwards), first(&backwards)) != (Some(place), Some(other)) {
                missed.push(format!("{question} -> {text}"));
            }
        }
        assert!(missed.len() <= most_missed, "{name}: not first: {missed:#?}");
    }
}

/// A question finds every spelling of a number.
#[test]
fn numbers_are_found_whatever_separates_their_digits() {
    let spellings = ["1299", "1,299", "1,299.00", "1.299,00", "1.299", "1 299", "1\u{a0}299,00", "1'299", "١٬٢٩٩"];
    for text in spellings {
        let index = index(&[text]);
        for question in spellings {
            assert_eq!(index.top(&index.query(question), None, 1).unwrap().len(), 1, "{question} finds {text}");
        }
    }
}

#[test]
fn telephone_numbers_are_found_whatever_separates_their_digits() {
    let spellings = [
        "+1 (555) 010-0199",
        "+1 555 010 0199",
        "+1-555-010-0199",
        "1 555 010 0199",
        "15550100199",
        "+15550100199",
        "555-010-0199",
        "555.010.0199",
        "(555) 010 0199",
        "5550100199",
    ];
    for text in spellings {
        let index = index(&[&format!("call {text}, please")]);
        for question in spellings {
            // The code of a country is not told from the rest where nothing separates them.
            let apart = question.len() == 11 && text.len() != 17 || text == "15550100199";
            let found = index.top(&index.query(question), None, 1).unwrap().len() == 1;
            assert!(found || apart, "{question} finds {text}");
        }
    }
}
