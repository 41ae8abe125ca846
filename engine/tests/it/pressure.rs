//! Limits hold writers back: a transaction that would pass one waits, or is refused with the limit's name, and nothing
//! is poisoned by that.

use holotype::time::Clock;
use holotype::{Durability, Error, Holotype, NewTrace, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

fn record(database: &Holotype, text: &str) -> Result<(), Error> {
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::turn("e", text))?;
    transaction.commit(Durability::Flush)?;
    Ok(())
}

fn refused_by(result: Result<(), Error>) -> &'static str {
    match result {
        Err(Error::Busy { limit, used, max }) => {
            assert!(used >= max);
            limit
        }
        other => panic!("not busy: {other:?}"),
    }
}

/// No checkpoint before one is asked for, and no time to wait.
fn impatient() -> Options {
    Options {
        checkpoint_bytes: u64::MAX,
        checkpoint_records: u64::MAX,
        write_timeout: Duration::ZERO,
        ..Options::default()
    }
}

#[test]
fn a_full_tail_is_refused_until_there_is_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_tail_bytes: 4_000, ..impatient() };
    let database = Holotype::create(dir.path().join("a.holo"), options).unwrap();
    record(&database, &"x".repeat(5_000)).unwrap();
    assert_eq!(refused_by(record(&database, "too much")), "max_tail_bytes");
    let (_, stats) = (database.checkpoint().unwrap(), database.stats().unwrap());
    let tail = stats.limits.iter().find(|limit| limit.limit == "max_tail_bytes").unwrap();
    assert_eq!((tail.used, tail.max), (0, Some(4_000)));
    record(&database, "there is room").unwrap();
    assert_eq!(database.snapshot().len(), 2);
}

#[test]
fn memory_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_limit: 1 << 20, cache_bytes: 1 << 20, ..impatient() };
    let database = Holotype::create(dir.path().join("a.holo"), options).unwrap();
    // As text that waits to be analysed and as postings, it is more than the limit.
    let words: String = (0..150_000).map(|number| format!("word{number} ")).collect();
    record(&database, &words).unwrap();
    assert_eq!(refused_by(record(&database, "too much")), "memory_limit");
    database.checkpoint().unwrap();
    record(&database, "there is room").unwrap();
}

#[test]
fn writers_wait_for_a_checkpoint_rather_than_fail() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_tail_bytes: 20_000, write_timeout: Duration::from_secs(600), ..impatient() };
    let database = Holotype::create(dir.path().join("a.holo"), options).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| record(&database, &"y".repeat(3_000)).unwrap()));
        }
    });
    assert_eq!(database.snapshot().len(), 80);
}

struct Hands(AtomicI64);

impl std::fmt::Debug for Hands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hands")
    }
}

impl Clock for Hands {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn an_old_snapshot_holds_writers_up_when_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Hands(AtomicI64::new(1_000_000)));
    let options = Options {
        snapshot_max_age: Some(Duration::from_secs(60)),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..impatient()
    };
    let database = Holotype::create(dir.path().join("a.holo"), options).unwrap();
    let old = database.snapshot();
    let copy = old.clone();
    record(&database, "young enough").unwrap();
    clock.0.fetch_add(61_000_000, Ordering::Relaxed);
    assert_eq!(refused_by(record(&database, "too old")), "snapshot_max_age");
    drop(old);
    assert_eq!(refused_by(record(&database, "a copy is as old")), "snapshot_max_age");
    drop(copy);
    record(&database, "gone").unwrap();
}
