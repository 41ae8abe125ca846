//! Deterministic linking (TierMem B.5) beside a naive account of it: where a quote is, and which trace of a page a
//! finding rests on.

use crate::random::Random;
use holotype::query::Params;
use holotype::write_back::{QuoteError, find_quote};
use holotype::{Holotype, Learn, Options, Pointer};
use holotype_storage::vfs::SimVfs;
use std::ops::Range;
use std::sync::Arc;

/// Pieces of texts, and what each is when it is compared.
const PIECES: [(&str, &str); 16] = [
    ("a", "a"),
    ("A", "a"),
    ("b", "b"),
    ("e", "e"),
    ("\u{e9}", "e\u{301}"),
    ("e\u{301}", "e\u{301}"),
    ("E\u{301}", "e\u{301}"),
    ("\u{fb01}", "fi"),
    ("fi", "fi"),
    (" ", " "),
    ("\n", " "),
    ("\u{a0}", " "),
    ("\u{2019}", "'"),
    ("'", "'"),
    ("\u{2014}", "-"),
    ("7", "7"),
];

fn pieces(random: &mut Random, most: u64) -> Vec<usize> {
    (0..1 + random.below(most)).map(|_| random.below(PIECES.len() as u64) as usize).collect()
}

fn written(pieces: &[usize]) -> String {
    pieces.iter().map(|at| PIECES[*at].0).collect()
}

/// The compared form, blanks joined.
fn compared(pieces: &[usize]) -> String {
    let mut text = String::new();
    for at in pieces {
        let piece = PIECES[*at].1;
        if piece != " " || !text.ends_with(' ') {
            text.push_str(piece);
        }
    }
    text
}

/// The runs of pieces that say the quote, without blanks around them; of those that start at one piece the shortest.
fn naive(text: &[usize], quote: &[usize]) -> Result<Range<usize>, QuoteError> {
    let wanted = compared(quote);
    let wanted = wanted.trim().trim_matches(['"', '\'', '.', ',', ';']);
    let mut found = Vec::new();
    let is_blank = |at: usize| PIECES[text[at]].1 == " ";
    // Blanks that follow each other are one.
    for start in (0..text.len()).filter(|at| *at == 0 || !(is_blank(*at) && is_blank(at - 1))) {
        let runs = start + 1..=text.len();
        if let Some(end) = runs.into_iter().find(|end| compared(&text[start..*end]) == wanted) {
            found.push(written(&text[..start]).len()..written(&text[..end]).len());
        }
    }
    match found.as_slice() {
        [] => Err(QuoteError::Absent),
        [one] => Ok(one.clone()),
        _ => Err(QuoteError::Ambiguous),
    }
}

/// Found is what the naive account finds. Where the written form alone decides, it goes first: a quote that
/// stands there once as written is that place, whatever looks like it elsewhere.
#[test]
fn a_quote_is_where_a_naive_account_finds_it() {
    let mut counts = [0; 3];
    for seed in 1..=4000 {
        let mut random = Random(seed * 0x9e37_79b9);
        let text = pieces(&mut random, 14);
        let quote = match random.below(3) {
            0 => pieces(&mut random, 4),
            _ => {
                let start = random.below(text.len() as u64) as usize;
                let end = start + 1 + random.below((text.len() - start) as u64) as usize;
                // The same words in other forms.
                let other = |at: usize| {
                    let same: Vec<usize> = (0..PIECES.len()).filter(|other| PIECES[*other].1 == PIECES[at].1).collect();
                    same[random.below(same.len() as u64) as usize]
                };
                text[start..end].iter().copied().map(other).collect()
            }
        };
        let (said, wanted) = (written(&text), written(&quote));
        if !wanted.contains(char::is_alphanumeric) || said.contains(&wanted) {
            continue;
        }
        let expected = naive(&text, &quote);
        let found = find_quote(&said, &wanted);
        // A part of a character beside a whole one makes a quote ambiguous: no link is better than a wrong one.
        let is_safe = found == Err(QuoteError::Ambiguous);
        assert!(found == expected || is_safe, "seed {seed}: {wanted:?} in {said:?}: {found:?}, expected {expected:?}");
        counts[match expected {
            Ok(_) => 0,
            Err(QuoteError::Absent) => 1,
            Err(_) => 2,
        }] += 1;
    }
    assert!(counts.iter().all(|count| *count >= 20), "each outcome is met: {counts:?}");
}

/// Words that no stemmer changes.
const WORDS: [&str; 7] = ["zox", "kib", "vud", "naf", "pog", "lum", "dak"];

/// A page of traces, and a finding from the whole page: it is linked to the one trace that holds at least half of its
/// words and more than any other, else to the page; a quote leads to the one trace that has it.
#[test]
fn a_page_is_linked_as_a_naive_account_links_it() {
    let mut counts = [0; 2];
    for seed in 1..=60 {
        let mut random = Random(seed * 0x51_7cc1);
        let sim = SimVfs::new();
        let database = Holotype::create_on(Arc::new(sim), "/memory.holo", Options::default()).unwrap();
        let mut some = |most: u64| -> Vec<&str> {
            let bits = 1 + random.below(most);
            (0..WORDS.len()).filter(|at| bits >> at & 1 == 1).map(|at| WORDS[at]).collect()
        };
        let traces: Vec<Vec<&str>> = (0..3).map(|_| some(127)).collect();
        for (at, words) in traces.iter().enumerate() {
            let record = format!("record turn '{}' in episode 'e' with key = 't{at}'", words.join(" "));
            database.query(&record, &Params::new()).unwrap();
        }
        database.query("close episode 'e'", &Params::new()).unwrap();
        let page = database.snapshot().pages_due().unwrap()[0].key.clone().unwrap();
        let finding = some(127);
        let shared = |trace: &Vec<&str>| finding.iter().filter(|word| trace.contains(word)).count();
        let most = traces.iter().map(shared).max().unwrap();
        let best: Vec<usize> = (0..3).filter(|at| shared(&traces[*at]) == most).collect();
        let expected = match best.as_slice() {
            [one] if most * 2 >= finding.len() => format!("t{one}"),
            _ => page.clone(),
        };
        let mut transaction = database.begin().unwrap();
        let learn = Learn::new(finding.join(" ")).from(Pointer::to_page(page.clone()));
        let item = transaction.learn_by_words(&learn).unwrap().item.unwrap();
        transaction.commit(holotype::Durability::Sync).unwrap();
        let snapshot = database.snapshot();
        let citations = snapshot.citations(item).unwrap();
        assert_eq!(citations[0].target, expected, "seed {seed}: {finding:?} in {traces:?}");
        counts[usize::from(expected == page)] += 1;
    }
    assert!(counts.iter().all(|count| *count >= 5), "both kinds of link are met: {counts:?}");
}
