//! Stories of lineage that a random test is unlikely to tell: what reaches an item through what it rests on, and what
//! must not.

use holotype::answer::{Output, Table};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{
    Durability, Edge, EpisodeChange, Error, Holotype, ItemId, NewRecall, NewTrace, Options, Pointer, Snapshot, Source,
    Transaction, Verdict,
};
use std::sync::Arc;

const CLOCK: i64 = 1_770_000_000_000_000;

fn database() -> (tempfile::TempDir, Holotype) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { clock: Arc::new(FixedClock(CLOCK)), ..Options::default() };
    let database = Holotype::create(dir.path().join("memory.holo"), options).unwrap();
    (dir, database)
}

fn table(snapshot: &Snapshot, script: &str) -> Table {
    match snapshot.query(script, &Params::new()).unwrap().pop() {
        Some(Output::Table(table)) => table,
        other => panic!("{script}: {other:?}"),
    }
}

fn column(table: &Table) -> Vec<String> {
    table.rows.iter().map(|row| row[0].as_ref().map_or(String::new(), ToString::to_string)).collect()
}

fn trace(transaction: &mut Transaction<'_>, episode: &str, key: &str) {
    let trace = NewTrace::turn(episode, format!("said in {episode}")).key(key).source(Source::User);
    transaction.record(trace.time(if episode == "old" { CLOCK - 5 } else { CLOCK })).unwrap();
}

/// A fact came to rest on an older trace of another episode as well. Nothing of its own attributes changed by that, so
/// what rested on the fact was not looked at again and never heard of the other episode.
#[test]
fn a_further_episode_reaches_all_that_rests_on_the_item() {
    let (_dir, database) = database();
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "old", "t1");
    trace(&mut transaction, "new", "t2");
    let fact = transaction.remember(NewRecall::fact("a fact").key("r1").from(Pointer::to_key("t2"))).unwrap();
    transaction.remember(NewRecall::fact("resting on it").key("r2").from(Pointer::to_key("r1"))).unwrap();
    transaction.remember(NewRecall::theme("facts").key("th1").child("r2")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let old = "find items in episode 'old' order by item return key";
    assert_eq!(column(&table(&database.snapshot(), old)), ["t1"]);

    let mut transaction = database.begin().unwrap();
    transaction.cite(fact, &Pointer::to_key("t1")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(column(&table(&database.snapshot(), old)), ["t1", "r1", "r2", "th1"]);
}

/// Unlinking took the edge and left the pointer: the item still showed the citation, rested on nothing, and citing the
/// span again changed nothing.
#[test]
fn a_citation_taken_back_is_gone_and_can_be_made_again() {
    let (_dir, database) = database();
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "new", "t1");
    trace(&mut transaction, "new", "t2");
    let both = NewRecall::fact("a fact").key("r1").from(Pointer::to_key("t1")).from(Pointer::to_key("t2").bytes(0, 4));
    transaction.remember(both).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let cited = || {
        let snapshot = database.snapshot();
        let fact = snapshot.get("r1").unwrap().unwrap().id;
        let cited: Vec<String> = snapshot.citations(fact).unwrap().into_iter().map(|found| found.target).collect();
        (cited, snapshot.linked(fact, Edge::Cites).unwrap().len())
    };
    assert_eq!(cited(), (vec!["t1".to_owned(), "t2".to_owned()], 2));
    database.query("unlink 'r1' cites 't2'", &Params::new()).unwrap();
    assert_eq!(cited(), (vec!["t1".to_owned()], 1));
    database.query("link 'r1' cites 't2' bytes 0 to 4", &Params::new()).unwrap();
    assert_eq!(cited(), (vec!["t1".to_owned(), "t2".to_owned()], 2));
}

/// One trace of a page that is cited whole cannot be taken out: the pointer would go on to cite it.
#[test]
fn a_trace_cited_as_part_of_a_page_is_not_unlinked_alone() {
    let (_dir, database) = database();
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "new", "t1");
    transaction.episode("new", EpisodeChange { open: Some(false), ..EpisodeChange::default() }).unwrap();
    transaction
        .remember(NewRecall::new(holotype::Kind::Summary, "s").key("s1").from(Pointer::to_page("new/p1")))
        .unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let error = database.query("unlink 's1' cites 't1'", &Params::new()).unwrap_err();
    assert_eq!(error.to_string(), "#1 cites #0 as part of page 'new/p1'; uncite the page instead");
}

/// A page that was closed after an item holds traces newer than it; citing it let lineage point forward in time.
#[test]
fn an_item_cites_no_page_with_traces_newer_than_itself() {
    let (_dir, database) = database();
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "new", "t1");
    let early = transaction.remember(NewRecall::fact("early").key("r1").from(Pointer::to_key("t1"))).unwrap();
    trace(&mut transaction, "new", "t2");
    transaction.episode("new", EpisodeChange { open: Some(false), ..EpisodeChange::default() }).unwrap();
    let error = transaction.cite(early, &Pointer::to_page("new/p1")).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    assert!(error.to_string().contains("cites earlier items only"), "{error}");
    let late = transaction.remember(NewRecall::fact("late").from(Pointer::to_page("new/p1"))).unwrap();
    assert_eq!(transaction.snapshot().unwrap().linked(late, Edge::Cites).unwrap().len(), 2);
}

/// A trace rests on nothing, so nothing may say it is derived from something.
#[test]
fn a_trace_has_no_sources() {
    let (_dir, database) = database();
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "new", "t1");
    trace(&mut transaction, "new", "t2");
    transaction.commit(Durability::Sync).unwrap();
    for edge in ["derived-from", "cites"] {
        let error = database.query(&format!("link 't2' {edge} 't1'"), &Params::new()).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{edge}: {error}");
    }
}

/// A closed episode that is told more opens a page again; closing it once more closed nothing, for it was closed
/// already.
#[test]
fn closing_a_closed_episode_closes_the_page_of_late_traces() {
    let (_dir, database) = database();
    let close = "close episode 'new'";
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "new", "t1");
    transaction.commit(Durability::Sync).unwrap();
    database.query(close, &Params::new()).unwrap();
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "new", "t2");
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(column(&table(&database.snapshot(), "show pages")), ["new/p1"]);
    database.query(close, &Params::new()).unwrap();
    assert_eq!(column(&table(&database.snapshot(), "show pages")), ["new/p1", "new/p2"]);
    let commit = database.head().commit;
    database.query(close, &Params::new()).unwrap();
    assert_eq!(database.head().commit, commit, "nothing was left to close");
}

/// A page is added up as its traces come. What was dropped or refused in between never happened, whatever was added up
/// by then.
#[test]
fn a_page_has_the_hash_of_the_traces_that_were_committed() {
    let (_dir, database) = database();
    fn trace(transaction: &mut Transaction<'_>, episode: &str, key: Option<&str>, text: &str) -> Result<ItemId, Error> {
        let trace = NewTrace::turn(episode, text).source(Source::User);
        transaction.record(if let Some(key) = key { trace.key(key) } else { trace })
    }
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "e", Some("t1"), "what was said first").unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let pages: [fn(&Holotype); 3] = [
        // Dropped, and said otherwise then.
        |database| {
            let mut dropped = database.begin().unwrap();
            trace(&mut dropped, "e", None, "what was never said").unwrap();
            drop(dropped);
            let mut transaction = database.begin().unwrap();
            trace(&mut transaction, "e", None, "what was said instead").unwrap();
            transaction.commit(Durability::Sync).unwrap();
        },
        // Refused, and said otherwise in the same transaction.
        |database| {
            let mut transaction = database.begin().unwrap();
            trace(&mut transaction, "e", None, "the first of three").unwrap();
            trace(&mut transaction, "e", Some("t1"), "what has a key that is taken").unwrap_err();
            trace(&mut transaction, "e", None, "the second of three").unwrap();
            transaction.commit(Durability::Sync).unwrap();
        },
        // Interrupted by another episode, and by a transaction with nothing in it.
        |database| {
            for (episode, text) in [("e", "before"), ("other", "elsewhere"), ("e", "between"), ("e", "after")] {
                let mut transaction = database.begin().unwrap();
                trace(&mut transaction, episode, None, text).unwrap();
                transaction.commit(Durability::Sync).unwrap();
                database.begin().unwrap().commit(Durability::Sync).unwrap();
            }
        },
    ];
    for (i, told) in pages.iter().enumerate() {
        told(&database);
        database.query("close episode 'e'", &Params::new()).unwrap();
        let mut transaction = database.begin().unwrap();
        let page = Pointer::to_page(format!("e/p{}", i + 1));
        let summary = transaction.remember(NewRecall::new(holotype::Kind::Summary, "s").from(page)).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        let citations = database.snapshot().citations(summary).unwrap();
        assert_eq!(citations.iter().map(|citation| citation.verdict).collect::<Vec<_>>(), [Verdict::Ok], "page {i}");
    }
}

/// The version an episode is given counts as the reader's until a trace states one, however often it is changed.
#[test]
fn a_reader_takes_the_version_of_the_episode_while_no_trace_has_one() {
    let (_dir, database) = database();
    let mut transaction = database.begin().unwrap();
    trace(&mut transaction, "new", "t1");
    transaction.commit(Durability::Sync).unwrap();
    for version in ["v1", "v2"] {
        database.query(&format!("open episode 'new' with version = '{version}'"), &Params::new()).unwrap();
        let answer = database.query("recall 'said' in episode 'new'", &Params::new()).unwrap().pop();
        let Some(Output::Answer(answer)) = answer else { panic!("{answer:?}") };
        assert_eq!(answer.at.version.as_deref(), Some(version));
    }
}
