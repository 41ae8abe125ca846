//! Large inputs: fields of many megabytes, and transactions and scripts of many items.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer};

fn found(database: &Holotype, script: &str) -> Vec<String> {
    match database.query(script, &Params::new()).unwrap().pop() {
        Some(Output::Answer(answer)) => answer.rows.into_iter().map(|row| row.key).collect(),
        other => panic!("{other:?}"),
    }
}

/// A field too long for one record stands in several. Opened again, the item was found by none of its words: the log's
/// tail was indexed without putting the pieces together.
#[test]
fn a_field_of_many_records_is_found_and_cited_also_after_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, Options::default()).unwrap();
    let long = format!("{} the needle", "hay".repeat(3 << 20));
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", long.clone()).key("t1").field("note", "pinned")).unwrap();
    let quote = Pointer::to_key("t1").quoting("the needle");
    transaction.remember(NewRecall::fact("there is one").key("r1").from(quote)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let check = |database: &Holotype, when: &str| {
        assert_eq!(found(database, "recall 'needle' through traces 3 by words"), ["t1"], "{when}");
        assert_eq!(found(database, "recall 'pinned' through traces 3 by words"), ["t1"], "{when}");
        let snapshot = database.snapshot();
        assert!(snapshot.get("t1").unwrap().unwrap().content.text() == long, "{when}");
        let fact = snapshot.get("r1").unwrap().unwrap().id;
        assert_eq!(snapshot.citations(fact).unwrap()[0].text.as_deref(), Some("the needle"), "{when}");
    };
    check(&database, "at once");
    drop(database);
    check(&Holotype::open(&path, Options::default()).unwrap(), "opened again");
    let database = Holotype::rebuild_all(&path, Options::default()).unwrap();
    check(&database, "rebuilt");
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
}

/// Each step of a transaction copied all items before it: 16,000 traces took 14 seconds, 4,000 statements 9.
#[test]
fn many_items_in_one_transaction_and_in_one_script() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    for number in 0..12_000 {
        transaction.record(NewTrace::turn(format!("e{}", number / 500), format!("said {number}"))).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    let script: String = (0..3_000).map(|n| format!("record turn 'told {n}' in episode 's{}';", n / 500)).collect();
    database.query(&script, &Params::new()).unwrap();
    assert_eq!(database.snapshot().len(), 15_000);
    assert_eq!(found(&database, "recall 'told 2999' through turns 1 by words").len(), 1);
}
