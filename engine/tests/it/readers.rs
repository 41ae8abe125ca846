//! Readers beside a writer: each stands on whole transactions, moves forward when it is refreshed, never past what is
//! durable, and what it saw before stays what it was, whatever checkpoints do to the catalog and the files under it.
//!
//! First on a simulated disk, one step at a time; then as processes of their own: this test binary, started again to
//! run `a_reader_process` alone.
#![cfg(unix)]

use crate::observed::{answers, everything, faults};
use holotype::query::Params;
use holotype::{Durability, Holotype, ItemId, NewRecall, NewTrace, Options, Pointer, Snapshot, Space};
use holotype_storage::vfs::{Crash, Failure, SimVfs, Vfs};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Checkpoints so often that every few commits meet one.
fn options() -> Options {
    Options { page_size: 4096, checkpoint_records: 9, checkpoint_bytes: 6_000, ..Options::default() }
}

fn to_create() -> Options {
    Options { space: Some(Space::new("test", 2)), ..options() }
}

fn to_read() -> Options {
    Options { read_only: true, ..options() }
}

/// A transaction that is recognised when half of it is missing: two traces and a fact on both.
fn write(database: &Holotype, number: u64, durability: Durability) {
    let mut transaction = database.begin().unwrap();
    let mut fact = NewRecall::fact(format!("what {number} saw")).key(format!("{number}-fact")).vector(vec![1.0, 2.0]);
    for part in ["a", "b"] {
        let key = format!("{number}-{part}");
        let text = format!("{number} saw {part} {}", "and on ".repeat((number * 7 % 40) as usize));
        transaction.record(NewTrace::turn("shared", text).key(key.clone()).vector(vec![2.0, 1.0])).unwrap();
        fact = fact.from(Pointer::to_key(key));
    }
    transaction.remember(fact).unwrap();
    transaction.commit(durability).unwrap();
}

/// Checks the properties of every snapshot of these writers.
fn check(snapshot: &Snapshot) {
    assert_eq!(snapshot.len() % 3, 0, "half a transaction");
    assert_eq!(u64::from(snapshot.len() / 3) + 1, snapshot.commit());
    for number in [1, snapshot.commit() / 2, snapshot.commit() - 1] {
        let Some(fact) = snapshot.get(&format!("{number}-fact")).unwrap() else {
            assert!(number == 0 || number >= snapshot.commit(), "transaction {number} is missing");
            continue;
        };
        let citations = snapshot.citations(fact.id).unwrap();
        assert_eq!(citations.len(), 2);
        assert!(citations.iter().all(|citation| citation.text.is_some()), "{citations:?}");
    }
}

fn on_sim() -> (Arc<dyn Vfs>, &'static Path) {
    (Arc::new(SimVfs::new()), Path::new("/db"))
}

#[test]
fn a_reader_moves_forward_and_its_snapshots_stay() {
    let (sim, path) = on_sim();
    let writer = Holotype::create_on(Arc::clone(&sim), path, to_create()).unwrap();
    let reader = Holotype::open_on(Arc::clone(&sim), path, to_read()).unwrap();
    assert!(!reader.refresh().unwrap(), "nothing was written");
    assert!(!writer.refresh().unwrap(), "a writer is where it is");
    let mut kept: Vec<(Snapshot, String)> = Vec::new();
    for number in 1..=90 {
        write(&writer, number, Durability::Sync);
        if number % 11 == 0 {
            writer.checkpoint().unwrap();
        }
        if number % 3 == 0 {
            assert!(reader.refresh().unwrap());
            assert!(!reader.refresh().unwrap(), "it is there already");
            assert_eq!(reader.head(), writer.head());
            assert_eq!(everything(&reader.snapshot()).unwrap(), everything(&writer.snapshot()).unwrap());
        }
        if number % 9 == 0 {
            let snapshot = reader.snapshot();
            let seen = everything(&snapshot).unwrap();
            kept.push((snapshot, seen));
        }
    }
    assert_eq!(faults(&reader), Vec::<String>::new());
    writer.close().unwrap();
    for (snapshot, seen) in &kept {
        check(snapshot);
        assert_eq!(everything(snapshot).unwrap(), *seen, "the snapshot of commit {} changed", snapshot.commit());
    }
    let again = Holotype::open_on(sim, path, options()).unwrap();
    write(&again, 91, Durability::Sync);
    assert!(reader.refresh().unwrap(), "another writer is followed too");
    check(&reader.snapshot());
    assert_eq!(reader.head(), again.head());
}

#[test]
fn an_old_lock_hides_no_commit() {
    let sim = SimVfs::new();
    let path = Path::new("/db");
    let (vfs, lock) = (Arc::new(sim.clone()) as Arc<dyn Vfs>, path.join("LOCK"));
    let writer = Holotype::create_on(Arc::clone(&vfs), path, to_create()).unwrap();
    let old = sim.bytes(&lock).unwrap();
    for number in 1..=3 {
        write(&writer, number, Durability::Sync);
    }
    let (head, crashed) = (writer.head(), sim.crash(Crash::Keep));
    writer.close().unwrap();
    for disk in [sim, crashed] {
        disk.replace(&lock, &old);
        let reader = Holotype::open_on(Arc::new(disk), path, to_read()).unwrap();
        assert_eq!(reader.head(), head);
        check(&reader.snapshot());
    }
}

#[test]
fn a_reader_that_stays_behind_misses_nothing_that_its_writer_replaced() {
    let (sim, path) = on_sim();
    let writer = Holotype::create_on(Arc::clone(&sim), path, to_create()).unwrap();
    write(&writer, 1, Durability::Sync);
    writer.compact().unwrap();
    let reader = Holotype::open_on(Arc::clone(&sim), path, to_read()).unwrap();
    let of_reader = sim.list(&path.join("columns")).unwrap();
    write(&writer, 2, Durability::Sync);
    writer.checkpoint().unwrap();
    let of_writer = sim.list(&path.join("columns")).unwrap();
    assert!(of_reader.iter().any(|file| !of_writer.contains(file)), "{of_reader:?} {of_writer:?}");
    assert_eq!(faults(&reader), Vec::<String>::new());
    // Missing files of the newest manifest are reported.
    writer.close().unwrap();
    let reader = Holotype::open_on(Arc::clone(&sim), path, to_read()).unwrap();
    sim.remove(&path.join("columns").join(&of_writer[0])).unwrap();
    let faults = faults(&reader);
    assert!(faults.iter().any(|fault| fault.contains(&of_writer[0])), "{faults:?}");
}

#[test]
fn a_reader_never_sees_what_is_not_durable() {
    let (sim, path) = on_sim();
    let options = Options { checkpoint_records: 1_000, checkpoint_bytes: 1 << 20, ..to_create() };
    let writer = Holotype::create_on(Arc::clone(&sim), path, options).unwrap();
    let reader = Holotype::open_on(Arc::clone(&sim), path, to_read()).unwrap();
    let mut number = 0;
    for durability in [Durability::None, Durability::Flush] {
        number += 1;
        write(&writer, number, durability);
        assert!(!reader.refresh().unwrap());
        let late = Holotype::open_on(Arc::clone(&sim), path, to_read()).unwrap();
        assert_eq!(late.head(), reader.head(), "opening goes as far as refreshing");
        assert_eq!(writer.snapshot().commit(), reader.snapshot().commit() + 1);
        number += 1;
        write(&writer, number, Durability::Sync);
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.head(), writer.head());
        check(&reader.snapshot());
    }
    write(&writer, number + 1, Durability::None);
    writer.checkpoint().unwrap();
    assert!(reader.refresh().unwrap(), "a checkpoint syncs");
    assert_eq!(reader.head(), writer.head());
}

#[test]
fn a_refresh_that_fails_changes_nothing() {
    let sim = SimVfs::new();
    let path = Path::new("/db");
    // No checkpoint in the background, which would meet the failures in the reader's place.
    let options = Options { checkpoint_records: 1_000_000, checkpoint_bytes: 1 << 30, ..to_create() };
    let writer = Holotype::create_on(Arc::new(sim.clone()), path, options).unwrap();
    let reader = Holotype::open_on(Arc::new(sim.clone()), path, to_read()).unwrap();
    for number in 1..=40 {
        write(&writer, number, Durability::Sync);
        if number % 7 == 0 {
            writer.checkpoint().unwrap();
        }
        let before = reader.head();
        for call in 0..3 {
            sim.fail_at(sim.calls() + call * number, Failure::Io, false);
            match reader.refresh() {
                Ok(_) => assert_eq!(reader.head(), writer.head()),
                Err(_) => assert_eq!(reader.head(), before),
            }
            sim.fail_at(u64::MAX, Failure::Io, false);
            check(&reader.snapshot());
        }
        reader.refresh().unwrap();
        assert_eq!(reader.head(), writer.head());
    }
}

/// The number of states that each reader process must see before the writer stops.
const STATES: u64 = 24;

/// A reader in a process of its own. It waits for the next commit, so it is killed when the writer's loop panics.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a process that goes forward as `how` says. The thread counts it in `satisfied` when it has ended.
fn start_reader(how: &str, path: &Path, satisfied: &Arc<AtomicUsize>) -> Reader {
    let mut reader = Command::new(std::env::current_exe().unwrap())
        .args(["readers::a_reader_process", "--exact", "--nocapture"])
        .env("HOLOTYPE_READER", how)
        .env("HOLOTYPE_READER_PATH", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(reader.stdout.take().unwrap());
    let satisfied = Arc::clone(satisfied);
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).for_each(drop);
        satisfied.fetch_add(1, Ordering::Relaxed);
    });
    Reader(reader)
}

#[test]
fn reader_processes_see_whole_transactions_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shared.holo");
    let writer = Holotype::create(&path, to_create()).unwrap();
    let satisfied = Arc::new(AtomicUsize::new(0));
    let readers = READERS.map(|how| start_reader(how, &path, &satisfied));
    let mut number = 0;
    while satisfied.load(Ordering::Relaxed) < READERS.len() {
        number += 1;
        assert!(number < 200_000, "the readers do not go forward");
        write(&writer, number, Durability::Sync);
    }
    for mut reader in readers {
        assert!(reader.0.wait().unwrap().success());
    }
    assert_eq!(faults(&writer), Vec::<String>::new());
}

/// The way in which each goes forward.
const READERS: [&str; 3] = ["follow", "follow", "reopen"];

/// Some of what a snapshot says, whatever its size.
fn glance(snapshot: &Snapshot) -> String {
    let count = answers(snapshot, "count items by kind; show episodes", &Params::new()).unwrap();
    let step = (snapshot.len() / 12).max(1) as usize;
    let items = (0..snapshot.len()).step_by(step).map(|id| snapshot.item(ItemId(id)).unwrap());
    items.fold(count, |seen, item| format!("{seen}{item:?}"))
}

/// Run by the test above in processes of its own; alone it does nothing.
#[test]
fn a_reader_process() {
    let (Ok(how), Some(path)) = (std::env::var("HOLOTYPE_READER"), std::env::var_os("HOLOTYPE_READER_PATH")) else {
        return;
    };
    let path = Path::new(&path);
    let mut reader = Holotype::open(path, to_read()).unwrap();
    assert_eq!(reader.report().damage, None, "no damage was done");
    let (mut last, mut states) = (0, 0);
    let mut kept: Option<(Snapshot, String)> = None;
    while states < STATES {
        if how == "reopen" {
            reader = Holotype::open(path, to_read()).unwrap();
            assert_eq!(reader.report().damage, None, "no damage was done");
            assert_eq!(reader.report().rebuilt, None, "the checkpoint beside the writer was not good enough");
        } else {
            reader.refresh().unwrap();
        }
        let snapshot = reader.snapshot();
        assert!(snapshot.commit() >= last, "commit {} after {last}", snapshot.commit());
        if snapshot.commit() == last {
            std::thread::yield_now();
            continue;
        }
        (last, states) = (snapshot.commit(), states + 1);
        check(&snapshot);
        match &kept {
            Some((old, seen)) if states % 8 == 0 => {
                assert_eq!(glance(old), *seen, "the snapshot of commit {} changed", old.commit());
                kept = None;
            }
            None => {
                let seen = glance(&snapshot);
                kept = Some((snapshot, seen));
            }
            Some(_) => {}
        }
    }
    println!("seen enough");
}
