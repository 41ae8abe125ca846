//! Settings that change how answers come about, over the life of a database.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Durability, Holotype, Options, Space};

fn found(database: &Holotype, script: &str) -> Vec<String> {
    match database.query(script, &Params::new()).unwrap().pop() {
        Some(Output::Answer(answer)) => answer.rows.into_iter().map(|row| row.key).collect(),
        other => panic!("{other:?}"),
    }
}

const RECORD: &str = "record turn 'she was running' in episode 'e' with key = 't1';
    record turn 'a run for it' in episode 'e' with key = 't2'";

/// The analyser was read when a database was opened and not when it was set: words went on to be stemmed until then,
/// and what was opened next read stemmed words as plain ones.
#[test]
fn the_analyser_holds_from_when_it_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let options = Options { profile: Some("agent".to_owned()), ..Options::with_space(Space::new("test", 2)) };
    let database = Holotype::create(&path, options).unwrap();
    database.query("set analyser = none", &Params::new()).unwrap();
    database.query(RECORD, &Params::new()).unwrap();
    let check = |database: &Holotype, when: &str| {
        assert_eq!(found(database, "recall 'running'"), ["t1"], "{when}");
        assert_eq!(found(database, "recall 'run'"), ["t2"], "{when}");
    };
    check(&database, "at once");
    database.checkpoint().unwrap();
    check(&database, "from a segment");
    database.close().unwrap();
    let database = Holotype::open(&path, Options::default()).unwrap();
    assert_eq!(database.report().rebuilt, None);
    check(&database, "opened again");
    database.query("record turn 'running late' in episode 'e' with key = 't3'", &Params::new()).unwrap();
    assert_eq!(found(&database, "recall 'late running' limit 2"), ["t3", "t1"]);
    drop(database);
    let database = Holotype::rebuild_all(&path, Options::default()).unwrap();
    assert_eq!(found(&database, "recall 'run'"), ["t2"], "rebuilt");
}

#[test]
fn the_analyser_is_set_before_the_first_item_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    database.query("set analyser = none; set analyser = english", &Params::new()).unwrap();
    database.query(RECORD, &Params::new()).unwrap();
    assert_eq!(found(&database, "recall 'run'").len(), 2);
    database.query("set analyser = english", &Params::new()).unwrap();
    let error = database.query("set analyser = none", &Params::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "setting analyser cannot change to \"none\": \
         the database holds items that were indexed with the present analyser"
    );
}

#[test]
fn an_analyser_set_in_a_transaction_that_is_dropped_was_never_set() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.set("analyser", "none").unwrap();
    drop(transaction);
    database.query(RECORD, &Params::new()).unwrap();
    assert_eq!(found(&database, "recall 'run'").len(), 2);
    let commit = database.begin().unwrap().commit(Durability::Sync).unwrap();
    assert_eq!(commit.number, 1, "what is empty commits nothing");
}
