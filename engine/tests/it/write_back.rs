//! Verified write-back (TierMem B.6) through the public face: what is written, where it is linked, what is refused, a
//! naive account of the decisions on generated findings, and crashes.

use crate::random::Random;
use holotype::answer::{Output, Table};
use holotype::embed::HashingEmbedder;
use holotype::query::Params;
use holotype::write_back::{Decision, FindingFilter, Grounded, Known, MemoryManager};
use holotype::{
    Durability, Edge, Error, Holotype, Kind, Learn, LearnOp, LearnRoles, Learned, NewRecall, Options, Pointer, Space,
};
use holotype_storage::vfs::SimVfs;
use std::collections::BTreeSet;
use std::sync::Arc;

const STORY: &str = "
    set page.tokens = 40;
    record turn 'The ferry to Naxos leaves at nine from pier 4.' in episode 'trip' with key = 't1';
    record turn 'Ann said “the  hotel is called Aria” and that it has a blue door.' in episode 'trip' with key = 't2';
    record turn 'We pay at nine, and we eat at nine.' in episode 'trip' with key = 't3';
    close episode 'trip';
    remember fact 'The ferry leaves from pier 4.' from 't1' with key = 'f1';
    remember concept 'ferry' from 't1' with key = 'c1';
    link 'f1' mentions 'c1'";

fn database_on(sim: &SimVfs) -> Holotype {
    let database = Holotype::create_on(Arc::new(sim.clone()), "/memory.holo", Options::default()).unwrap();
    database.query(STORY, &Params::new()).unwrap();
    database
}

fn database() -> Holotype {
    database_on(&SimVfs::new())
}

fn table(database: &Holotype, script: &str) -> Table {
    match database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}")).pop() {
        Some(Output::Table(table)) => table,
        other => panic!("{script}: {other:?}"),
    }
}

/// `op key replaced pointers`, with generated keys as `~`.
fn learned(database: &Holotype, script: &str) -> String {
    let table = table(database, script);
    let cell = |cell: &Option<holotype::cell::Cell>| cell.as_ref().map_or("-".to_owned(), ToString::to_string);
    let shown: Vec<String> = table.rows[0].iter().map(cell).collect();
    shown.iter().map(|cell| if cell.starts_with('~') { "~" } else { cell.as_str() }).collect::<Vec<_>>().join(" ")
}

fn refused(database: &Holotype, script: &str) -> String {
    let before = database.head();
    let error = database.query(script, &Params::new()).unwrap_err().to_string();
    assert_eq!(database.head(), before, "a refused write-back appends nothing");
    error
}

fn texts(database: &Holotype, noun: &str) -> Vec<String> {
    let table = table(database, &format!("find {noun} where active = true return text"));
    table.rows.iter().filter_map(|row| row[0].as_ref().map(ToString::to_string)).collect()
}

#[test]
fn a_finding_is_added_or_updates_what_is_vague_or_is_known() {
    let database = database();
    let commit = database.snapshot().commit();
    assert_eq!(learned(&database, "learn 'The hotel is called Aria.' from 't2' quoting 'Aria'"), "add ~ - 1");
    // It says more than f1: it takes its key, its evidence and its concept.
    let script = "learn 'The ferry to Naxos leaves from pier 4 at nine.' from 't1' quoting 'at nine'";
    assert_eq!(learned(&database, script), "update f1 ~ 2");
    assert_eq!(
        texts(&database, "facts"),
        ["The hotel is called Aria.", "The ferry to Naxos leaves from pier 4 at nine."]
    );
    let of_f1 = table(&database, "sources of 'f1' by cites");
    assert_eq!(of_f1.rows.len(), 1, "both pointers are into one trace");
    let snapshot = database.snapshot();
    let item = snapshot.get("f1").unwrap().unwrap().id;
    assert_eq!(snapshot.linked(item, Edge::Mentions).unwrap().len(), 1);
    // A known finding is not written again.
    let head = database.head();
    assert_eq!(learned(&database, "learn 'The ferry leaves at nine.' from 't1'"), "skip f1 - 0");
    assert_eq!(table(&database, "learn 'The ferry leaves at nine.' from 't1'").notes, ["skipped: it is known"]);
    assert_eq!(database.head(), head);
    // Before, it was as it was.
    let before = table(&database, &format!("find facts where active = true as of commit {commit} return text"));
    assert_eq!(before.rows.len(), 1);
}

#[test]
fn add_only_leaves_what_an_update_would_replace() {
    let database = database();
    let script = "learn 'The ferry to Naxos leaves from pier 4 at nine.' from 't1' add only";
    assert_eq!(learned(&database, script), "add ~ - 1");
    assert_eq!(texts(&database, "facts").len(), 2);
    assert_eq!(learned(&database, script), "skip ~ - 0", "the second time it is known");
}

#[test]
fn an_update_can_be_asked_for_of_a_recall_that_is_active() {
    let database = database();
    let script = "learn 'Boats go from pier 4.' from 't1' claims 'pier of boats' = '4' as update of 'f1'";
    assert_eq!(learned(&database, script), "update f1 ~ 1", "both cite the same span");
    assert!(refused(&database, "learn 'x' from 't1' as update of 't2'").contains("'t2' is a trace"));
    assert!(refused(&database, "learn 'x' from 't1' as update of 'nobody'").contains("nobody"));
    database.query("mark 'f1' inactive", &Params::new()).unwrap();
    assert!(refused(&database, "learn 'x' from 't1' as update of 'f1'").contains("'f1' is retired"));
}

/// The bytes that the one pointer of the newest fact cites.
fn cited(database: &Holotype, script: &str) -> String {
    let table = table(database, script);
    assert_eq!(table.rows[0][0].as_ref().unwrap().to_string(), "add", "{script}: {:?}", table.notes);
    let key = table.rows[0][1].as_ref().unwrap().to_string();
    let verified = self::table(database, &format!("verify '{key}'"));
    let cited = verified.rows.last().unwrap();
    cited.iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}

#[test]
fn a_quote_is_found_in_any_case_and_with_other_marks_and_in_a_page() {
    let database = database();
    let page = database.snapshot().pages_due().unwrap()[0].key.clone().unwrap();
    let script = r#"learn 'Aria is the name.' from 't2' quoting '"the hotel is called ARIA"'"#;
    assert!(cited(&database, script).contains("the  hotel is called Aria"));
    let of_page = |finding: &str, quote: &str| format!("learn '{finding}' from page '{page}' {quote}");
    assert!(cited(&database, &of_page("A blue door it has.", "quoting 'BLUE door'")).contains("| blue door"));
    // Without a quote the words of the finding say which trace.
    assert!(cited(&database, &of_page("Pay and eat.", "")).contains("We pay at nine"));
}

#[test]
fn false_quotes_are_refused_and_double_ones_ambiguous_for_every_kind_of_pointer() {
    let database = database();
    let page = database.snapshot().pages_due().unwrap()[0].key.clone().unwrap();
    for verb in ["learn", "remember fact"] {
        for (from, why) in [
            ("'t1' quoting 'the bus'".to_owned(), "does not contain"),
            ("'t3' quoting 'at nine'".to_owned(), "ambiguous"),
            (format!("page '{page}' quoting 'the bus'"), "does not contain"),
            (format!("page '{page}' quoting 'at nine'"), "ambiguous"),
            (format!("page '{page}' bytes 0 to 4"), "cited whole or by a quote"),
            ("'nobody'".to_owned(), "does not exist"),
        ] {
            let error = refused(&database, &format!("{verb} 'A finding.' from {from}"));
            assert!(error.contains(why), "{verb} from {from}: {error}");
        }
    }
    // One pointer that resolves suffices; the other is told.
    let table = table(&database, "learn 'A blue door.' from 't2' quoting 'blue door', 't1' quoting 'the bus'");
    assert_eq!(table.rows[0][3].as_ref().unwrap().to_string(), "1");
    assert!(table.notes[0].starts_with("left out: "), "{:?}", table.notes);
}

/// A manager or filter that answers as it is told.
struct Told(Result<Decision, String>, Result<Option<String>, String>);

impl MemoryManager for Told {
    fn decide(&self, _: &str, _: &[Known<'_>]) -> Result<Decision, String> {
        self.0.clone()
    }
}

impl FindingFilter for Told {
    fn refuse(&self, _: &str, _: &[String]) -> Result<Option<String>, String> {
        self.1.clone()
    }
}

#[test]
fn a_role_that_fails_or_talks_nonsense_writes_nothing() {
    let database = database();
    let learn = Learn::new("The ferry costs 12 EUR.").from(Pointer::to_key("t1"));
    for (decision, filter, why) in [
        (Err("HTTP 503".to_owned()), Ok(None), "the manager failed: HTTP 503"),
        (Ok(Decision::Update { of: 7, text: "x".to_owned() }), Ok(None), "named recall 7 of 1"),
        (Ok(Decision::Skip { by: Some(9) }), Ok(None), "it is known"),
        (Ok(Decision::Add), Err("timed out".to_owned()), "the filter failed: timed out"),
        (Ok(Decision::Add), Ok(Some("too general".to_owned())), "too general"),
    ] {
        let told = Told(decision, filter);
        let mut transaction = database.begin().unwrap();
        let learned = transaction.learn(&learn, LearnRoles { manager: &told, filter: &told }).unwrap();
        assert_eq!((learned.op, learned.item, transaction.is_empty()), (LearnOp::Skip, None, true), "{why}");
        assert!(learned.notes[0].contains(why), "{:?}", learned.notes);
    }
    // The built-in filter asks for the numbers of a finding.
    let told = Told(Ok(Decision::Add), Ok(None));
    let mut transaction = database.begin().unwrap();
    let learned = transaction.learn(&learn, LearnRoles { manager: &told, filter: &Grounded }).unwrap();
    assert_eq!(learned.notes, ["skipped: no cited text has the number 12"]);
}

/// Three recalls of words that no stemmer changes, then findings: each is known, says more or is new, as a comparison
/// of the sets of words says.
#[test]
fn decisions_are_those_of_a_naive_account() {
    let words = ["zox", "kib", "vud", "naf", "pog"];
    let mut counts = [0; 3];
    for seed in 1..=40 {
        let mut random = Random(seed * 0x9e37_79b9);
        let database = database();
        database.query("mark 'f1' inactive", &Params::new()).unwrap();
        let pick = |random: &mut Random| -> BTreeSet<&str> {
            let bits = 1 + random.below(31);
            (0..5).filter(|at| bits >> at & 1 == 1).map(|at| words[at]).collect()
        };
        let text = |words: &BTreeSet<&str>| words.iter().copied().collect::<Vec<_>>().join(" ");
        let mut known: Vec<BTreeSet<&str>> = Vec::new();
        for _ in 0..3 {
            let new = pick(&mut random);
            let overlaps = |one: &BTreeSet<&str>| one.is_subset(&new) || new.is_subset(one);
            if !known.iter().any(overlaps) {
                database.query(&format!("remember fact '{}' from 't1'", text(&new)), &Params::new()).unwrap();
                known.push(new);
            }
        }
        let finding = pick(&mut random);
        let expected = if known.iter().any(|known| finding.is_subset(known)) {
            LearnOp::Skip
        } else if known.iter().any(|known| known.is_subset(&finding)) {
            LearnOp::Update
        } else {
            LearnOp::Add
        };
        let mut transaction = database.begin().unwrap();
        let learn = Learn::new(text(&finding)).from(Pointer::to_key("t1"));
        let Learned { op, .. } = transaction.learn_by_words(&learn).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        assert_eq!(op, expected, "seed {seed}: {finding:?} beside {known:?}");
        counts[expected as usize] += 1;
    }
    assert!(counts.iter().all(|count| *count >= 3), "each decision is met: {counts:?}");
}

#[test]
fn a_crash_leaves_all_of_a_write_back_or_nothing() {
    let sim = SimVfs::new();
    let database = database_on(&sim);
    let before = sim.crash(holotype_storage::vfs::Crash::Keep);
    let script = "learn 'The ferry to Naxos leaves from pier 4 at nine.' from 't1' quoting 'at nine'";
    learned(&database, script);
    let crashed = sim.crashes(40, 7);
    assert!(crashed.len() > 1);
    for disk in crashed.into_iter().chain([before]) {
        let database = Holotype::open_on(Arc::new(disk), "/memory.holo", Options::default()).unwrap();
        let facts = texts(&database, "facts");
        let mentions = {
            let snapshot = database.snapshot();
            let item = snapshot.get("f1").unwrap().unwrap().id;
            snapshot.linked(item, Edge::Mentions).unwrap().len()
        };
        assert_eq!((facts.len(), mentions), (1, 1), "one fact with its concept");
        assert!(facts[0].starts_with("The ferry"), "{facts:?}");
        assert!(
            !matches!(database.query(script, &Params::new()), Err(Error::Missing { .. })),
            "it can be learned again"
        );
    }
}

/// The nearest recalls were looked for by vector alone: what was learned before, without one, was added once more.
#[test]
fn a_finding_that_is_learned_twice_is_known_the_second_time() {
    let embedder = HashingEmbedder::new(256);
    let options = Options::with_space(Space::new(embedder.name(), 256));
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    database.query(STORY, &Params::new()).unwrap();
    let learn = |text: &str, quote: &str| {
        let finding = Learn::new(text).from(Pointer::to_key("t2").quoting(quote));
        let mut transaction = database.begin().unwrap();
        let learned = transaction.learn_by_words(&finding).unwrap();
        transaction.commit(Durability::None).unwrap();
        learned.op
    };
    for expected in [LearnOp::Add, LearnOp::Skip, LearnOp::Skip] {
        assert_eq!(learn("Ann's hotel has a blue door.", "it has a blue door"), expected);
    }
    // A recall that somebody remembered without a vector is found by its words.
    let mut transaction = database.begin().unwrap();
    let fact = NewRecall::new(Kind::Fact, "The hotel of Ann is called Aria.").from(Pointer::to_key("t2"));
    transaction.remember(fact).unwrap();
    transaction.commit(Durability::None).unwrap();
    assert_eq!(learn("Ann's hotel is called Aria.", "hotel is called Aria"), LearnOp::Skip);
}
