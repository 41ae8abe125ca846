//! Many threads on one database: readers see whole transactions in order while writers commit and checkpoints run in
//! the background, nobody waits for ever, and all that was acknowledged is there.

use crate::observed::{answers, everything, faults};
use holotype::query::Params;
use holotype::{Durability, Error, Holotype, Mark, NewRecall, NewTrace, Options, Pointer, Space};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Checkpoints so often that nearly every commit meets one.
fn options() -> Options {
    Options { page_size: 4096, checkpoint_records: 9, ..Options::with_space(Space::new("test", 2)) }
}

/// A transaction that is recognised when half of it is missing: two traces, a fact on both, a mark.
fn write(database: &Holotype, name: &str, durability: Durability) -> holotype::Result<u64> {
    let mut transaction = database.begin()?;
    let mut fact = NewRecall::fact(format!("what {name} saw")).key(format!("{name}-fact")).vector(vec![1.0, 2.0]);
    for part in ["a", "b"] {
        let key = format!("{name}-{part}");
        let trace = NewTrace::turn("shared", format!("{name} saw {part}")).key(key.clone()).vector(vec![2.0, 1.0]);
        transaction.record(trace)?;
        fact = fact.from(Pointer::to_key(key));
    }
    let fact = transaction.remember(fact)?;
    transaction.mark(fact, Mark::Utility(1.0, 1), None)?;
    Ok(transaction.commit(durability)?.number)
}

#[test]
fn a_thread_that_has_a_transaction_open_is_told_so() {
    let sim = holotype_storage::vfs::SimVfs::new();
    let database = Holotype::create_on(std::sync::Arc::new(sim), Path::new("/db"), options()).unwrap();
    let transaction = database.begin().unwrap();
    assert!(matches!(database.begin(), Err(Error::TransactionOpen)));
    assert!(matches!(database.checkpoint(), Err(Error::TransactionOpen)));
    assert!(matches!(database.compact(), Err(Error::TransactionOpen)));
    drop(transaction);
    let transaction = database.begin().unwrap();
    transaction.commit(Durability::Sync).unwrap();
    write(&database, "one", Durability::Sync).unwrap();
    write(&database, "two", Durability::Sync).unwrap();
}

#[test]
fn a_transaction_is_sent_to_another_thread_and_others_wait_as_long_as_they_like() {
    let sim = holotype_storage::vfs::SimVfs::new();
    let database = &Holotype::create_on(std::sync::Arc::new(sim), Path::new("/db"), options()).unwrap();
    let (to_writer, sent) = std::sync::mpsc::channel::<holotype::Transaction<'_>>();
    let (is_used, used) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut transaction = sent.recv().unwrap();
            transaction.record(NewTrace::turn("e", "from there").key("sent").vector(vec![1.0, 2.0])).unwrap();
            assert!(matches!(database.begin(), Err(Error::TransactionOpen)), "it is this thread's now");
            assert!(matches!(database.try_begin(), Err(Error::TransactionOpen)));
            is_used.send(()).unwrap();
            may_go_on.recv().unwrap();
            transaction.commit(Durability::Sync).unwrap()
        });
        let transaction = database.try_begin().unwrap().expect("nobody writes");
        assert!(matches!(database.begin_timeout(Duration::from_secs(9)), Err(Error::TransactionOpen)));
        to_writer.send(transaction).unwrap();
        used.recv().unwrap();
        assert!(database.try_begin().unwrap().is_none());
        let Err(busy) = database.begin_timeout(Duration::from_millis(1)) else { panic!("it is under way") };
        assert_eq!((busy.code(), busy.class()), ("busy", holotype::ErrorClass::Limit));
        assert_eq!(
            busy.to_string(),
            "another transaction is under way and did not end in the given time; retry, or wait longer"
        );
        go_on.send(()).unwrap();
        let next = database.begin_timeout(Duration::MAX).unwrap();
        assert_eq!(next.number(), writer.join().unwrap().number + 1);
    });
    assert!(database.snapshot().get("sent").unwrap().is_some());
    assert_eq!(faults(database), [""; 0]);
}

/// Checks the properties that a snapshot must have at any moment.
fn check_snapshot(database: &Holotype, last: &mut u64) {
    let snapshot = database.snapshot();
    assert!(snapshot.commit() >= *last, "a later snapshot is of an earlier transaction");
    *last = snapshot.commit();
    assert_eq!(snapshot.len() % 3, 0, "half a transaction");
    assert_eq!(u64::from(snapshot.len() / 3), snapshot.commit() - 1);
    let before =
        answers(&snapshot, "recall 'saw' in all limit 4; count items by kind; show pages", &Params::new()).unwrap();
    if let Some(newest) = snapshot.len().checked_sub(1) {
        let fact = snapshot.item(holotype::ItemId(newest)).unwrap();
        assert_eq!(fact.attributes.utility, 1.0);
        let citations = snapshot.citations(fact.id).unwrap();
        assert_eq!(citations.len(), 2);
        assert!(citations.iter().all(|citation| citation.text.is_some()));
        assert_eq!(snapshot.get(&fact.key).unwrap().unwrap().id, fact.id);
    }
    std::thread::yield_now();
    let after =
        answers(&snapshot, "recall 'saw' in all limit 4; count items by kind; show pages", &Params::new()).unwrap();
    assert_eq!(before, after, "a snapshot changed");
}

fn reopened(path: &Path) -> Holotype {
    Holotype::open(path, Options::default()).unwrap()
}

#[test]
fn readers_see_whole_transactions_in_order_while_writers_and_checkpoints_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, options()).unwrap();
    let (done, commits) = (AtomicBool::new(false), Mutex::new(BTreeSet::new()));
    let held = database.snapshot();
    let empty = everything(&held).unwrap();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (database, commits) = (&database, &commits);
                scope.spawn(move || {
                    for number in 0..12 {
                        let durability = [Durability::Sync, Durability::Flush, Durability::None][(writer + number) % 3];
                        let commit = write(database, &format!("w{writer}-{number}"), durability).unwrap();
                        assert!(commits.lock().unwrap().insert(commit), "commit {commit} twice");
                        if durability == Durability::Sync {
                            assert!(database.snapshot().commit() >= commit, "not seen after it was acknowledged");
                        }
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    check_snapshot(&database, &mut last);
                }
                check_snapshot(&database, &mut last);
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                database.checkpoint().unwrap();
                std::thread::yield_now();
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(commits.into_inner().unwrap(), (2..=49).collect());
    assert_eq!(everything(&held).unwrap(), empty, "a snapshot changed");
    assert_eq!(faults(&database), [""; 0]);
    let before = everything(&database.snapshot()).unwrap();
    drop((held, database));
    let database = reopened(&path);
    assert_eq!(database.report().replayed, 0, "closing wrote a checkpoint");
    assert_eq!(everything(&database.snapshot()).unwrap(), before);
    drop(database);
    let database = Holotype::rebuild(&path, Options::default()).unwrap();
    assert_eq!(everything(&database.snapshot()).unwrap(), before);
}

/// The promises of `checkpoint` hold also while a checkpoint runs in the background.
#[test]
fn a_checkpoint_that_was_waited_for_leaves_nothing_to_replay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let database = &database;
            scope.spawn(move || {
                for number in 0..10 {
                    write(database, &format!("t{thread}-{number}"), Durability::None).unwrap();
                    database.checkpoint().unwrap();
                }
            });
        }
    });
    // Read-only, beside the open database: what it replays is what no checkpoint holds.
    let beside = Holotype::open(&path, Options::read_only()).unwrap();
    assert_eq!(beside.report().rebuilt, None);
    assert_eq!(beside.report().replayed, 0);
    assert_eq!(beside.snapshot().commit(), database.snapshot().commit());
}

/// Closing through one handle while another still writes: what was acknowledged is there, what came too late was
/// refused.
#[test]
fn closing_beside_a_writer_loses_nothing_that_was_acknowledged() {
    for round in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.holo");
        let database = Holotype::create(&path, options()).unwrap();
        let other = database.clone();
        let acknowledged = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut acknowledged = Vec::new();
                for number in 0..40 {
                    match write(&other, &format!("n{number}"), Durability::Sync) {
                        Ok(_) => acknowledged.push(format!("n{number}-fact")),
                        Err(error) => {
                            assert!(matches!(error, Error::Storage(_)), "{error:?}");
                            break;
                        }
                    }
                }
                acknowledged
            });
            let watched = database.clone();
            while !writer.is_finished() && watched.snapshot().commit() < 2 + round {
                std::thread::yield_now();
            }
            drop(watched);
            database.close().unwrap();
            writer.join().unwrap()
        });
        let database = reopened(&path);
        assert_eq!(database.report().recovery, [""; 0]);
        let snapshot = database.snapshot();
        for key in acknowledged {
            assert!(snapshot.get(&key).unwrap().is_some(), "{key} was acknowledged");
        }
        assert_eq!(faults(&database), [""; 0]);
    }
}

/// A transaction that panics or is dropped gives the writer's place to the next.
#[test]
fn a_transaction_that_panics_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), options()).unwrap();
    let other = database.clone();
    let panicked = std::thread::spawn(move || {
        let mut transaction = other.begin().unwrap();
        transaction.record(NewTrace::turn("shared", "never said").key("ghost")).unwrap();
        panic!("as asked");
    });
    panicked.join().unwrap_err();
    write(&database, "after", Durability::Sync).unwrap();
    assert!(database.snapshot().get("ghost").unwrap().is_none());
}
