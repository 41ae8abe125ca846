//! Traces that are recorded again by a caller who does not know whether an earlier attempt arrived.

use holotype::query::Params;
use holotype::{Durability, Error, Holotype, NewTrace, Options, Space, Status};

fn database() -> (tempfile::TempDir, Holotype) {
    let dir = tempfile::tempdir().unwrap();
    let database =
        Holotype::create(dir.path().join("memory.holo"), Options::with_space(Space::new("test", 2))).unwrap();
    (dir, database)
}

#[test]
fn a_trace_recorded_again_is_known_and_other_content_is_not() {
    let (_dir, database) = database();
    let call = || NewTrace::call("e", "search", "price=$450").key("t1").status(Status::Success).field("price", "450");
    let mut transaction = database.begin().unwrap();
    let id = transaction.record(call()).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let mut transaction = database.begin().unwrap();
    assert_eq!(transaction.record_or_find(call()).unwrap(), (id, true));
    assert_eq!(transaction.record(call()).unwrap(), id);
    assert!(transaction.is_empty(), "nothing is written");
    for (other, member) in [
        (NewTrace::call("e", "search", "price=$120").key("t1").status(Status::Success).field("price", "450"), "text"),
        (call().field("more", "x"), "more"),
        (NewTrace::call("f", "search", "price=$450").key("t1").field("price", "450"), "episode"),
        (call().status(Status::Failed), "status"),
        (call().step(7), "step"),
        (call().tool("other"), "tool"),
        (NewTrace::turn("e", "price=$450").key("t1"), "kind"),
    ] {
        let refused = transaction.record(other).unwrap_err();
        assert!(matches!(&refused, Error::OtherContent { member: found, .. } if found == member), "{refused}");
        assert_eq!(refused.code(), "duplicate-key");
        assert!(refused.to_string().contains("update 't1' to TEXT"), "{refused}");
    }
    assert!(transaction.is_empty());
}

#[test]
fn the_language_says_that_a_trace_is_known() {
    let (_dir, database) = database();
    let statement = "record turn 'hello' in episode 'e' with key = 't1', source = user";
    let note = |outputs: Vec<holotype::answer::Output>| match outputs.into_iter().next() {
        Some(holotype::answer::Output::Table(table)) => table.notes.join(" "),
        other => panic!("{other:?}"),
    };
    assert_eq!(note(database.query(statement, &Params::new()).unwrap()), "");
    let again = note(database.query(statement, &Params::new()).unwrap());
    assert!(again.starts_with("known: "), "{again}");
    assert_eq!(database.snapshot().len(), 1);
    let other = statement.replace("hello", "goodbye");
    assert!(matches!(database.query(&other, &Params::new()), Err(Error::OtherContent { .. })));
}

#[test]
fn what_was_forgotten_does_not_come_back_as_known() {
    let (_dir, database) = database();
    let trace = || NewTrace::turn("e", "my secret").key("t1");
    let mut transaction = database.begin().unwrap();
    transaction.record(trace()).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.query("forget 't1' because 'private'", &Params::new()).unwrap();
    let refused = database.begin().unwrap().record(trace()).unwrap_err();
    assert!(refused.to_string().contains("forgotten"), "{refused}");
}
