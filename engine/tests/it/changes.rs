//! Changes after a commit: every kind, in order, and waiting for more.

use holotype::query::Params;
use holotype::{
    Change, CommittedChange, Durability, Edge, Error, Holotype, ItemId, Kind, Mark, NewRecall, NewTrace, Options,
    Pointer, Space, Status,
};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than any test takes: a wait that is not woken is a test that hangs, and its runner says so.
const LONG: Duration = Duration::from_secs(600);

fn record(database: &Holotype, key: &str) -> u64 {
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", key).key(key)).unwrap();
    transaction.commit(Durability::Sync).unwrap().number
}

fn keys(changes: impl Iterator<Item = holotype::Result<CommittedChange>>) -> Vec<String> {
    let added = |change: CommittedChange| match change.what {
        Change::Added { key, .. } => Some(key),
        _ => None,
    };
    changes.map(Result::unwrap).filter_map(added).collect()
}

#[test]
fn every_kind_of_change_is_told_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default();
    let database = Holotype::create(dir.path().join("db"), options).unwrap();
    let since = database.head().commit.0;
    let mut transaction = database.begin().unwrap();
    transaction.define_space(&Space::new("mine", 2)).unwrap();
    let trace = transaction.record(NewTrace::turn("e", "UA123 costs $450").key("t")).unwrap();
    let fact = transaction.remember(NewRecall::fact("it costs $450").key("f").from(Pointer::to_key("t"))).unwrap();
    transaction.claim(fact, "price", "$450", false, &[]).unwrap();
    let first = transaction.commit(Durability::Sync).unwrap();
    let mut transaction = database.begin().unwrap();
    let theme = transaction.remember(NewRecall::new(Kind::Concept, "prices").ungrounded().key("th")).unwrap();
    transaction.link(fact, Edge::Mentions, theme).unwrap();
    transaction.unlink(fact, Edge::Mentions, theme).unwrap();
    transaction.mark(trace, Mark::Status(Status::Failed), Some("it broke".to_owned())).unwrap();
    transaction.mark(fact, Mark::Inactive, None).unwrap();
    transaction.set("page.tokens", "77").unwrap();
    let second = transaction.commit(Durability::Sync).unwrap();
    database.query("forget 't' because 'private'", &Params::new()).unwrap();

    let changes: Vec<CommittedChange> = database.changes(since).unwrap().map(Result::unwrap).collect();
    let of =
        |commit: u64| changes.iter().filter(move |change| change.commit == commit).map(|change| change.what.clone());
    let (t, f) = ("t".to_owned(), "f".to_owned());
    let expected = [
        Change::SpaceDefined(Space::new("mine", 2)),
        Change::Episode { id: "e".to_owned(), open: true },
        Change::Added { item: trace, key: t, kind: Kind::Turn },
        Change::Added { item: fact, key: f, kind: Kind::Fact },
        Change::Claimed { item: fact, name: "price".to_owned(), value: "$450".to_owned() },
    ];
    assert_eq!(of(first.number).collect::<Vec<_>>(), expected);
    let told: Vec<Change> = of(second.number).collect();
    let expected = [
        Change::Added { item: theme, key: "th".to_owned(), kind: Kind::Concept },
        Change::Linked { from: fact, edge: Edge::Mentions, to: theme },
        Change::Unlinked { from: fact, edge: Edge::Mentions, to: theme },
        Change::Marked { item: trace, mark: Mark::Status(Status::Failed), because: Some("it broke".to_owned()) },
        Change::Retired { item: fact, by: None, because: None },
        Change::Set { name: "page.tokens".to_owned(), value: "77".to_owned() },
    ];
    assert_eq!(told, expected);
    let last: Vec<Change> = of(second.number + 1).collect();
    assert_eq!(last, [Change::Forgotten { item: trace, because: "private".to_owned() }]);
    assert!(changes.is_sorted_by_key(|change| (change.commit, change.time)));
    // Each place of the history is a place to continue from.
    for place in since..=database.head().commit.0 {
        let rest: Vec<CommittedChange> = database.changes(place).unwrap().map(Result::unwrap).collect();
        let expected: Vec<CommittedChange> = changes.iter().filter(|it| it.commit > place).cloned().collect();
        assert_eq!(rest, expected, "after {place}");
    }
}

#[test]
fn a_snapshot_ends_the_changes_and_history_begins_them() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("db"), Options::default()).unwrap();
    let since = database.head().commit.0;
    let one = record(&database, "a");
    let snapshot = database.snapshot();
    record(&database, "b");
    assert_eq!(keys(snapshot.changes(since).unwrap()), ["a"]);
    assert_eq!(keys(database.changes(one).unwrap()), ["b"]);
    assert_eq!(snapshot.changes(one).unwrap().count(), 0);
    assert!(matches!(snapshot.changes(one + 1), Err(Error::FutureCommit { .. })));
    assert_eq!(snapshot.changes(since).unwrap().until(), one);
    // All of it, from the first commit on.
    assert!(database.changes(0).unwrap().map(Result::unwrap).any(|change| change.commit == 1));
}

#[test]
fn a_waiting_subscriber_is_woken_by_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("db"), Options::default()).unwrap();
    let mut subscription = database.subscribe(database.head().commit.0);
    assert!(subscription.wait(Duration::ZERO).unwrap().is_none());
    let (told, heard) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut seen = Vec::new();
        while seen.len() < 20 {
            let changes = subscription.wait(LONG).unwrap().expect("a commit comes");
            seen.extend(keys(changes));
            told.send(seen.len()).unwrap();
        }
        seen
    });
    let expected: Vec<String> = (0..20).map(|number| format!("k{number}")).collect();
    for (number, key) in expected.iter().enumerate() {
        record(&database, key);
        // Every second commit is only made once the subscriber has what came before, so that it sleeps or begins to.
        while number % 2 == 0 && heard.recv().unwrap() <= number {}
    }
    assert_eq!(thread.join().unwrap(), expected);
}

#[test]
fn commits_through_other_handles_wake_readers_and_writers_in_turns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    Holotype::create(&path, Options::shared()).unwrap().close().unwrap();
    for options in [Options::shared(), Options::read_only()] {
        let writer = Holotype::open(&path, Options::shared()).unwrap();
        let follower = Holotype::open(&path, options).unwrap();
        let since = writer.head().commit.0;
        assert!(!follower.wait_for_changes(since, Duration::from_millis(1)).unwrap());
        let waiting = std::thread::spawn(move || {
            assert!(follower.wait_for_changes(since, LONG).unwrap());
            keys(follower.changes(since).unwrap())
        });
        let key = format!("after {since}");
        record(&writer, &key);
        assert_eq!(waiting.join().unwrap(), [key]);
    }
}

#[test]
fn a_thread_does_not_wait_for_its_own_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("db"), Options::default()).unwrap();
    let transaction = database.begin().unwrap();
    let error = database.wait_for_changes(database.head().commit.0, LONG).unwrap_err();
    assert!(matches!(error, Error::TransactionOpen), "{error}");
    drop(transaction);
    assert_eq!(database.changes(0).unwrap().map(Result::unwrap).filter(|change| is_item(change, 0)).count(), 0);
}

fn is_item(change: &CommittedChange, number: u32) -> bool {
    matches!(&change.what, Change::Added { item, .. } if *item == ItemId(number))
}
