//! Citations are validated as Algorithm 1 of HELM (A.8) says: texts are put together from sentences and citations of
//! which the verdict is known, and the algorithm is written again here in its own words.

use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use holotype::{Durability, Holotype, NewTrace, Options};
use holotype_storage::vfs::SimVfs;
use proptest::prelude::*;
use std::sync::Arc;

const TEXT: &str = "UA123 costs $450";

fn database() -> Holotype {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("trip", TEXT).step(1)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database
}

fn verdict(database: &Holotype, text: &str) -> (String, bool) {
    let params = Params::from([("text".to_owned(), ParamValue::Text(text.to_owned()))]);
    match database.query("verify citations in $text", &params).unwrap().remove(0) {
        Output::Table(table) => (table.notes[0].clone(), table.failed),
        other => panic!("{other:?}"),
    }
}

fn cite(step: u64, end: &str, more: &str) -> String {
    format!("[[CITE tool=- log=trip step={step} field=text start=0 end={end}{more}]]")
}

/// Citations with their verdicts.
fn cites() -> Vec<(String, &'static str)> {
    let hash = blake3::hash(&TEXT.as_bytes()[..5]).to_hex().to_string();
    let wrong: String = hash.chars().rev().collect();
    let hash_of = |digits: &str| format!(" hash={digits}");
    vec![
        (cite(1, "5", ""), "valid"),
        (cite(1, "5", &hash_of(&hash[..16])), "valid"),
        (cite(1, "5", &hash_of(&hash.to_uppercase())), "valid"),
        (cite(1, "5", " unit=char"), "valid"),
        (cite(1, "5", &hash_of(&wrong[..16])), "hash mismatch"),
        (cite(1, "5", &hash_of(&format!("{}0", &wrong[..63]))), "hash mismatch"),
        (cite(1, "5", &hash_of(&hash[..15])), "malformed cite"),
        (cite(1, "5", &hash_of("00")), "malformed cite"),
        (cite(1, "5", " hash="), "malformed cite"),
        (cite(1, "5", &hash_of(&format!("{hash}0"))), "malformed cite"),
        (cite(1, "five", ""), "malformed cite"),
        (cite(2, "5", ""), "unresolved pointer"),
        (cite(1, "99", ""), "unresolved pointer"),
        (cite(1, "0", ""), "unresolved pointer"),
    ]
}

/// Algorithm 1, lines 5 to 22, over sentences that are given by the indices of their citations.
fn algorithm_1(sentences: &[Vec<usize>], cites: &[(String, &'static str)]) -> &'static str {
    for sentence in sentences {
        if sentence.is_empty() {
            return "missing cite";
        }
        for cite in sentence {
            if cites[*cite].1 != "valid" {
                return cites[*cite].1;
            }
        }
    }
    "valid"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_first_diagnostic_in_the_order_of_the_text_is_the_verdict(
        sentences in prop::collection::vec(
            prop::collection::vec(prop_oneof![3 => 0..4_usize, 1 => 4..14_usize], 0..4),
            0..5,
        ),
        listed in prop::collection::vec(0..14_usize, 0..4),
        blocks in 1..3_usize,
    ) {
        let (database, cites) = (database(), cites());
        let written = |(number, sentence): (usize, &Vec<usize>)| {
            let behind: Vec<&str> = sentence.iter().map(|cite| cites[*cite].0.as_str()).collect();
            format!("Sentence {number} says 1.5. {}\n", behind.join(" "))
        };
        let written: Vec<String> = sentences.iter().enumerate().map(written).collect();
        let parts = written.chunks(written.len().div_ceil(blocks).max(1));
        let memory: String = parts.map(|part| format!("<memory>{}</memory>", part.concat())).collect();
        let memory = if memory.is_empty() { "<memory></memory>".to_owned() } else { memory };
        let listing: String = listed.iter().map(|cite| cites[*cite].0.as_str()).collect();
        let (found, failed) = verdict(&database, &format!("{memory}<citations>{listing}</citations>"));
        let expected = algorithm_1(&sentences, &cites);
        prop_assert_eq!((found.as_str(), failed), (expected, expected != "valid"), "{}", memory);
    }
}

/// The block used to lend its citations to sentences that had none.
#[test]
fn a_citations_block_excuses_no_sentence() {
    let good = cite(1, "5", "");
    let text = format!("<memory>UA123 is cheap.</memory><citations>{good}</citations>");
    assert_eq!(verdict(&database(), &text), ("missing cite".to_owned(), true));
}

/// A hash too short to tell spans apart was left out of account, so that a wrong one counted as valid.
#[test]
fn a_short_hash_is_malformed_whether_it_is_right_or_wrong() {
    let hash = blake3::hash(&TEXT.as_bytes()[..5]).to_hex().to_string();
    for digits in [&hash[..8], "deadbeef", "0"] {
        let text = format!("<memory>It is. {}</memory>", cite(1, "5", &format!(" hash={digits}")));
        assert_eq!(verdict(&database(), &text), ("malformed cite".to_owned(), true), "{digits}");
    }
}

#[test]
fn a_text_without_a_closed_block_has_no_memory() {
    for text in ["", "<memory>One.", "One.</memory>", "</memory><memory>"] {
        assert_eq!(verdict(&database(), text), ("missing memory block".to_owned(), true), "{text}");
    }
    let lone = format!("<memory>{}</memory>", cite(9, "5", ""));
    assert_eq!(verdict(&database(), &lone), ("unresolved pointer".to_owned(), true), "a citation of no sentence");
}

/// HELM counts characters. Its form was taken for bytes without a word, and cited other text.
#[test]
fn offsets_without_a_unit_are_what_is_cited_or_nothing() {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    let trace = transaction.record(NewTrace::turn("trip", "Zürich–Genève: 42 €").step(1).key("t")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let cite = |span: &str| format!("<memory>It is 42. [[CITE tool=- log=trip step=1 field=text {span}]]</memory>");
    // Bytes 15 to 19 are `ve: `, characters 15 to 19 `42 €`.
    assert_eq!(verdict(&database, &cite("start=15 end=19")), ("unresolved pointer".to_owned(), true));
    assert_eq!(verdict(&database, &cite("start=15 end=19 unit=char")).0, "valid");
    assert_eq!(verdict(&database, &cite("start=15 end=19 unit=byte")).0, "valid");
    assert_eq!(verdict(&database, &cite("start=0 end=19")).0, "valid", "all of it, in characters");
    assert_eq!(verdict(&database, &cite("start=0 end=4")).0, "unresolved pointer", "`Zür` or `Züri`");
    let mut transaction = database.begin().unwrap();
    let fact = holotype::NewRecall::fact("It costs 42 €.").from(holotype::Pointer::to_item(trace).quoting("42 €"));
    transaction.remember(fact).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let checked = database.snapshot().check_memory(&cite("start=15 end=19"), &[]).unwrap();
    assert_eq!(checked.sentences[0].cites[0].outcome.as_deref(), Ok("42 €"), "the span that a fact cites");
}
