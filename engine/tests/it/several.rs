//! Several handles write to one database in turns: each sees what the others committed, goes on behind it, and what it
//! saw before stays what it was. What they say in the end is what the log says when everything is made again from it.
//!
//! Locks belong to an open file, so two handles of one process are as good as two processes; first on a simulated disk,
//! one step at a time, then with threads, and as processes that are killed: this test binary, started again to run
//! `a_writing_process` alone.
#![cfg(unix)]

use crate::observed::{everything, faults};
use holotype::interchange::export;
use holotype::{Durability, Error, Forget, Holotype, NewRecall, NewTrace, Options, Pointer, Space};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/db";

/// Checkpoints so often that every few commits meet one.
fn options() -> Options {
    Options { page_size: 4096, checkpoint_records: 25, checkpoint_bytes: 12_000, ..Options::shared() }
}

fn to_create() -> Options {
    Options { space: Some(Space::new("test", 2)), ..options() }
}

fn exclusive() -> Options {
    Options { exclusive: true, ..options() }
}

fn on_sim() -> Arc<dyn Vfs> {
    Arc::new(SimVfs::new())
}

fn open(vfs: &Arc<dyn Vfs>) -> Holotype {
    Holotype::open_on(Arc::clone(vfs), PATH, options()).unwrap()
}

/// Two traces and a fact on both and on the trace before.
fn write(database: &Holotype, number: u64, durability: Durability) {
    let mut transaction = database.begin().unwrap();
    let mut fact = NewRecall::fact(format!("what {number} saw")).key(format!("{number}-fact")).vector(vec![1.0, 2.0]);
    for part in ["a", "b"] {
        let key = format!("{number}-{part}");
        let text = format!("{number} saw {part} {}", "and on ".repeat((number * 7 % 40) as usize));
        transaction.record(NewTrace::turn("shared", text).key(key.clone()).vector(vec![2.0, number as f32])).unwrap();
        fact = fact.from(Pointer::to_key(key));
    }
    if number > 0 {
        fact = fact.from(Pointer::to_key(format!("{}-b", number - 1)));
    }
    transaction.remember(fact).unwrap();
    transaction.commit(durability).unwrap();
}

/// All handles say the same, without faults, and it is what the log says.
fn check(vfs: &Arc<dyn Vfs>, handles: Vec<Holotype>) {
    let seen: Vec<String> = handles.iter().map(|handle| everything(&handle.snapshot()).unwrap()).collect();
    for (handle, other) in handles.iter().zip(&seen) {
        assert_eq!(other, &seen[0]);
        assert_eq!(faults(handle), Vec::<String>::new());
    }
    for handle in handles {
        handle.close().unwrap();
    }
    let opened = Holotype::open_on(Arc::clone(vfs), PATH, exclusive()).unwrap();
    assert_eq!(opened.report().rebuilt, None);
    assert_eq!(opened.report().recovery, Vec::<String>::new());
    assert_eq!(everything(&opened.snapshot()).unwrap(), seen[0]);
    assert_eq!(faults(&opened), Vec::<String>::new());
    opened.close().unwrap();
    let rebuilt = Holotype::rebuild_all_on(Arc::clone(vfs), PATH, exclusive()).unwrap();
    assert_eq!(everything(&rebuilt.snapshot()).unwrap(), seen[0]);
}

#[test]
fn two_handles_write_alternately_and_see_each_other() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
    let other = open(&vfs);
    for number in 0..60 {
        let (writer, reader) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
        write(writer, number, Durability::Sync);
        assert_eq!(reader.snapshot().commit(), number + 2);
        assert_eq!(reader.head(), writer.head());
        let fact = reader.snapshot().get(&format!("{number}-fact")).unwrap().unwrap();
        assert_eq!(reader.snapshot().citations(fact.id).unwrap().len(), if number > 0 { 3 } else { 2 });
    }
    check(&vfs, vec![one, other]);
}

#[test]
fn what_is_not_synced_is_handed_over_too() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
    let other = open(&vfs);
    for (number, durability) in (0..).zip([Durability::None, Durability::Flush, Durability::Sync].repeat(5)) {
        write(if number % 2 == 0 { &one } else { &other }, number, durability);
    }
    let transaction = one.begin().unwrap();
    assert_eq!(transaction.number(), 17);
    drop(transaction);
    check(&vfs, vec![one, other]);
}

#[test]
fn an_exclusive_handle_and_one_that_takes_turns_refuse_each_other() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
    let held = |options| {
        matches!(
            Holotype::open_on(Arc::clone(&vfs), PATH, options),
            Err(Error::Storage(holotype_storage::Error::Held { .. }))
        )
    };
    assert!(held(exclusive()));
    one.close().unwrap();
    let one = Holotype::open_on(Arc::clone(&vfs), PATH, exclusive()).unwrap();
    assert!(held(options()));
    drop(one);
    check(&vfs, vec![open(&vfs)]);
}

#[test]
fn a_transaction_waits_for_another_handles_turn_and_names_its_process() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
    let other =
        Holotype::open_on(Arc::clone(&vfs), PATH, Options { write_timeout: Duration::ZERO, ..options() }).unwrap();
    let transaction = one.begin().unwrap();
    let Err(refused) = other.begin() else { panic!("the turn is taken") };
    assert!(refused.to_string().contains(&format!("process {}", std::process::id())), "{refused}");
    assert_eq!(refused.code(), "locked");
    drop(transaction);
    write(&other, 0, Durability::Sync);
    check(&vfs, vec![one, other]);
}

#[test]
fn a_snapshot_taken_before_stays_what_it_was() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
    let other = open(&vfs);
    let mut kept = Vec::new();
    for number in 0..80 {
        write(if number % 3 == 0 { &one } else { &other }, number, Durability::Sync);
        if number % 9 == 0 {
            let snapshot = one.snapshot();
            let seen = everything(&snapshot).unwrap();
            kept.push((snapshot, seen));
        }
        if number % 20 == 10 {
            other.checkpoint().unwrap();
            one.checkpoint().unwrap();
        }
    }
    for (snapshot, seen) in &kept {
        assert_eq!(&everything(snapshot).unwrap(), seen, "commit {}", snapshot.commit());
    }
    drop(kept);
    check(&vfs, vec![one, other]);
}

#[test]
fn maintenance_of_one_handle_beside_a_writing_other() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
    let other = open(&vfs);
    let mut number = 0;
    let mut more = |handle: &Holotype| {
        for _ in 0..4 {
            write(handle, number, Durability::Sync);
            number += 1;
        }
    };
    more(&one);
    more(&other);
    let report = one.backup("/backup", &mut |_, _| {}).unwrap();
    assert_eq!(report.head.commit, other.head().commit);
    more(&other);
    one.compact().unwrap();
    more(&other);
    assert_eq!(faults(&one), Vec::<String>::new());
    let forgotten = one.snapshot().get("3-a").unwrap().unwrap().id;
    one.forget(&[forgotten], &Forget::because("asked")).unwrap();
    assert!(other.snapshot().item(forgotten).unwrap().attributes.redacted);
    more(&other);
    other.compact().unwrap();
    more(&one);
    one.seal().unwrap();
    more(&other);
    one.retain(9, None).unwrap();
    more(&other);
    assert_eq!(other.history_since(), 9);
    other.retain(14, None).unwrap();
    more(&one);
    assert_eq!(one.history_since(), 14);
    let lines = |handle: &Holotype| {
        let mut lines = Vec::new();
        export(&handle.snapshot(), &mut lines, None).unwrap();
        String::from_utf8(lines).unwrap()
    };
    assert_eq!(lines(&one), lines(&other));
    assert_eq!(everything(&one.snapshot()).unwrap(), everything(&other.snapshot()).unwrap());
    for handle in [&one, &other] {
        assert_eq!(faults(handle), Vec::<String>::new());
    }
    check(&vfs, vec![one, other]);
}
