//! Several handles write to one database in turns: each sees what the others committed, goes on behind it, and what it
//! saw before stays what it was. What they say in the end is what the log says when everything is made again from it.
//!
//! Locks belong to an open file, so two handles of one process are as good as two processes; first on a simulated disk,
//! one step at a time, then with threads, and as processes that are killed: this test binary, started again to run
//! `a_writing_process` alone.
#![cfg(unix)]

use crate::observed::{everything, faults};
use holotype::interchange::export;
use holotype::{Durability, Error, Forget, Holotype, Mark, NewRecall, NewTrace, Options, Pointer, Space, Status};
use holotype_storage::vfs::{Failure, SimVfs, Vfs};
use proptest::prelude::*;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

/// A snapshot was one commit behind while another thread of its handle applied that commit: the log's end was
/// ahead of the state meanwhile.
#[test]
fn each_thread_of_a_handle_sees_what_another_handle_has_committed() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
    let other = open(&vfs);
    let committed = AtomicU64::new(one.head().commit.0);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ends.load(Ordering::SeqCst) {
                    let expected = committed.load(Ordering::SeqCst);
                    let seen = other.snapshot().commit();
                    if seen < expected {
                        ends.store(true, Ordering::SeqCst);
                        panic!("commit {seen} after {expected}");
                    }
                }
            });
        }
        for number in 0..150 {
            write(&one, number, Durability::Sync);
            committed.store(one.head().commit.0, Ordering::SeqCst);
        }
        ends.store(true, Ordering::SeqCst);
    });
    check(&vfs, vec![one, other]);
}

/// Nothing was ever written when the second handle opens.
#[test]
fn handles_of_an_empty_database_see_each_other() {
    let vfs = on_sim();
    let one = Holotype::create_on(Arc::clone(&vfs), PATH, options()).unwrap();
    let (other, third) = (open(&vfs), open(&vfs));
    for (number, handle) in [&one, &other, &third, &one].into_iter().enumerate() {
        let mut transaction = handle.begin().unwrap();
        transaction.record(NewTrace::turn("shared", format!("turn {number}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        for reader in [&one, &other, &third] {
            assert_eq!(reader.snapshot().len(), number as u32 + 1, "after handle {number}");
        }
    }
    check(&vfs, vec![one, other, third]);
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
    assert!(refused.to_string().contains(&format!("of this process ({})", std::process::id())), "{refused}");
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

/// Writes as much as a retention can remove a file of.
fn fill(handle: &Holotype) {
    let mut transaction = handle.begin().unwrap();
    for number in 0..600 {
        transaction.record(NewTrace::turn("filled", format!("{number} {}", "of some length ".repeat(200)))).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
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
    fill(&one);
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
    fill(&other);
    more(&other);
    let since = other.head().commit.0 - 1;
    other.retain(since, None).unwrap();
    more(&one);
    assert_eq!(one.history_since(), since);
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

/// The work of a handle that dies.
type Deed = fn(&Holotype) -> holotype::Result<()>;

/// At each call of the file system one handle dies in the midst of something, with the turn or with maintenance or with
/// both. The other one goes on: nothing acknowledged is lost, what was not is there as a whole or not at all.
fn dies_at_any_call(deed: Deed) {
    for call in 0.. {
        let sim = SimVfs::new();
        let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
        let one = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
        let other = open(&vfs);
        write(&other, 0, Durability::Sync);
        write(&one, 1, Durability::Sync);
        write(&other, 2, Durability::Flush);
        sim.fail_at(sim.calls() + call, Failure::Io, true);
        let done = deed(&one);
        let was_done = done.is_ok();
        drop(one);
        sim.heal();
        let before = other.snapshot().commit();
        write(&other, 3, Durability::Sync);
        let commit = other.snapshot().commit();
        assert!(commit > before, "call {call}");
        for number in [0, 1, 2, 3] {
            assert!(other.snapshot().get(&format!("{number}-fact")).unwrap().is_some(), "{number}, call {call}");
        }
        let third = open(&vfs);
        assert_eq!(everything(&third.snapshot()).unwrap(), everything(&other.snapshot()).unwrap(), "call {call}");
        write(&third, 4, Durability::Sync);
        other.checkpoint().unwrap();
        write(&third, 5, Durability::Sync);
        check(&vfs, vec![other, third]);
        if was_done {
            assert!(call > 3, "nothing failed");
            return;
        }
    }
}

#[test]
fn a_handle_that_dies_within_a_commit_is_recovered_by_the_next() {
    dies_at_any_call(|one| {
        let mut transaction = one.begin()?;
        for part in ["a", "b"] {
            let text = "one that dies ".repeat(900);
            transaction.record(NewTrace::turn("shared", text).key(format!("dying-{part}")).vector(vec![1.0, 1.0]))?;
        }
        transaction.commit(Durability::Sync)?;
        Ok(())
    });
}

#[test]
fn a_handle_that_dies_within_a_checkpoint_leaves_the_other_its_own() {
    dies_at_any_call(Holotype::checkpoint);
}

#[test]
fn a_handle_that_dies_within_a_forget_leaves_it_to_the_other() {
    dies_at_any_call(|one| {
        let forgotten = one.snapshot().get("1-a")?.map(|item| item.id);
        one.forget(forgotten.as_slice(), &Forget::because("asked")).map(|_| ())
    });
}

#[test]
fn a_handle_that_dies_within_a_seal_or_its_closing_leaves_both_to_the_other() {
    dies_at_any_call(Holotype::seal);
    dies_at_any_call(|one| one.clone().close());
}

#[test]
fn a_handle_that_dies_within_a_retention_leaves_it_to_the_other() {
    dies_at_any_call(|one| one.retain(2, None).map(|_| ()));
}

#[test]
fn a_handle_that_dies_within_a_compaction_leaves_the_files_to_the_other() {
    dies_at_any_call(|one| one.compact().map(|_| ()));
}

/// One step of a story of three handles.
#[derive(Debug, Clone)]
enum Step {
    Write(Durability),
    Page,
    Mark,
    Checkpoint,
    Compact,
    Forget,
    Seal,
    Reopen,
    Die,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let step = prop_oneof![
        6 => Just(Step::Write(Durability::Sync)),
        2 => Just(Step::Write(Durability::Flush)),
        2 => Just(Step::Write(Durability::None)),
        2 => Just(Step::Page),
        2 => Just(Step::Mark),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => Just(Step::Forget),
        1 => Just(Step::Seal),
        2 => Just(Step::Reopen),
        1 => Just(Step::Die),
    ];
    prop::collection::vec((0..3_usize, step), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// After any operation of any handle all handles give the same answers, those of the log.
    #[test]
    fn three_handles_do_anything_in_turns(steps in steps()) {
        let sim = SimVfs::new();
        let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
        let first = Holotype::create_on(Arc::clone(&vfs), PATH, to_create()).unwrap();
        let mut handles = vec![first, open(&vfs), open(&vfs)];
        write(&handles[0], 0, Durability::Sync);
        let mut number = 1;
        for (at, step) in steps {
            let handle = &handles[at];
            // Others see commits that are not durable once they have the turn.
            drop(handle.begin().unwrap());
            match step {
                Step::Write(durability) => {
                    write(handle, number, durability);
                    number += 1;
                }
                Step::Page => {
                    let mut transaction = handle.begin().unwrap();
                    transaction.record(NewTrace::turn("paged", "word ".repeat(600)).vector(vec![1.0, 0.5])).unwrap();
                    transaction.commit(Durability::Sync).unwrap();
                }
                Step::Mark => {
                    let id = handle.snapshot().get(&format!("{}-a", number / 2)).unwrap().unwrap().id;
                    let mut transaction = handle.begin().unwrap();
                    transaction.mark(id, Mark::Status(Status::Failed), Some("looked at".to_owned())).unwrap();
                    transaction.commit(Durability::Sync).unwrap();
                }
                Step::Checkpoint => handle.checkpoint().unwrap(),
                Step::Compact => { handle.compact().unwrap(); }
                Step::Forget => {
                    // Whatever it cites must be there for the next one.
                    let id = handle.snapshot().get(&format!("{}-a", number / 3)).unwrap().unwrap().id;
                    handle.forget(&[id], &Forget::because("asked")).unwrap();
                }
                Step::Seal => handle.seal().unwrap(),
                Step::Reopen => {
                    handles.remove(at).close().unwrap();
                    handles.insert(at, open(&vfs));
                }
                Step::Die => {
                    sim.set_read_only(true);
                    drop(handles.remove(at));
                    sim.set_read_only(false);
                    handles.insert(at, open(&vfs));
                }
            }
        }
        // Each catches up with what is durable.
        for handle in &handles {
            drop(handle.begin().unwrap());
        }
        check(&vfs, handles);
    }
}

/// Verifying beside another handle that forgets, compacts, retains and checkpoints finds no fault: it may say that what
/// it looks at was forgotten meanwhile.
#[test]
fn verifying_beside_a_forget_of_another_handle_finds_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("several.holo");
    let one = Holotype::create(&path, to_create()).unwrap();
    let other = Holotype::open(&path, options()).unwrap();
    let reader = Holotype::open(&path, Options { read_only: true, ..options() }).unwrap();
    (0..12).for_each(|number| write(&one, number, Durability::Sync));
    let done = AtomicBool::new(false);
    let verified = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for handle in [&other, &reader] {
            let (done, verified) = (&done, &verified);
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    handle.refresh().unwrap();
                    match handle.verify(&mut |_, _| {}) {
                        Ok(report) => assert_eq!(report.faults, Vec::new()),
                        Err(error) => assert_eq!(error.code(), "snapshot-forgotten", "{error}"),
                    }
                    verified.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for number in 12..36 {
            write(&one, number, Durability::Sync);
            let id = one.snapshot().get(&format!("{}-a", number - 10)).unwrap().unwrap().id;
            one.forget(&[id], &Forget::because("asked")).unwrap();
            match number % 6 {
                0 => one.checkpoint().unwrap(),
                2 => drop(one.compact().unwrap()),
                4 => drop(one.retain(u64::from(one.snapshot().len()) / 4, None).unwrap()),
                _ => {}
            }
        }
        while verified.load(Ordering::SeqCst) < 4 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::SeqCst);
    });
    for handle in [&one, &other, &reader] {
        handle.refresh().unwrap();
        assert_eq!(faults(handle), Vec::<String>::new());
    }
}

/// Threads of two handles write at once, and a reader follows: the numbers of each thread come in order.
#[test]
fn threads_of_two_handles_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("several.holo");
    let one = Holotype::create(&path, to_create()).unwrap();
    let other = Holotype::open(&path, options()).unwrap();
    std::thread::scope(|scope| {
        for (thread, handle) in [(0, &one), (1, &one), (2, &other), (3, &other)] {
            scope.spawn(move || {
                for number in 0..30 {
                    let mut transaction = handle.begin().unwrap();
                    let trace = NewTrace::turn(format!("e{thread}"), "said").key(format!("t{thread}-{number}"));
                    transaction.record(trace).unwrap();
                    transaction.commit(Durability::Sync).unwrap();
                }
            });
        }
    });
    let snapshot = one.snapshot();
    assert_eq!((snapshot.len(), snapshot.commit()), (120, 121));
    assert_eq!(everything(&snapshot).unwrap(), everything(&other.snapshot()).unwrap());
    for handle in [&one, &other] {
        assert_eq!(faults(handle), Vec::<String>::new());
    }
}

/// Run by the test below in processes of its own; alone it does nothing.
#[test]
fn a_writing_process() {
    let Some(path) = std::env::var_os("HOLOTYPE_SEVERAL_PATH") else { return };
    let name = std::env::var("HOLOTYPE_SEVERAL_NAME").unwrap();
    let database = Holotype::open(Path::new(&path), options()).unwrap();
    let mut out = std::io::stdout();
    for number in count(&database, &name) + 1.. {
        let mut transaction = database.begin().unwrap();
        for part in ["a", "b"] {
            let trace = NewTrace::turn("shared", "and on ".repeat(20)).key(format!("{name}-{number}-{part}"));
            transaction.record(trace).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
        writeln!(out, "committed {number}").and_then(|()| out.flush()).unwrap();
    }
}

/// The number of transactions of a process that are there without a gap.
fn count(database: &Holotype, name: &str) -> u64 {
    let snapshot = database.snapshot();
    assert_eq!(snapshot.len() % 2, 0, "half a transaction");
    (1..).take_while(|number| snapshot.get(&format!("{name}-{number}-b")).unwrap().is_some()).count() as u64
}

#[test]
fn a_process_killed_with_the_turn_loses_nothing_and_stops_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("several.holo");
    let own = Holotype::create(&path, to_create()).unwrap();
    let start = |name: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "several::a_writing_process", "--nocapture", "--test-threads=1"])
            .env("HOLOTYPE_SEVERAL_PATH", &path)
            .env("HOLOTYPE_SEVERAL_NAME", name)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut promised = [0; 2];
    for round in 0..6_u64 {
        let mut children: Vec<(Child, _)> = ["x", "y"]
            .map(|name| {
                let mut child = start(name);
                let out = BufReader::new(child.stdout.take().unwrap()).lines();
                (child, out)
            })
            .into();
        for ((child, out), promised) in children.iter_mut().zip(&mut promised) {
            let mut note = |line: std::io::Result<String>| {
                if let Some((_, number)) = line.unwrap().split_once("committed ") {
                    *promised = number.parse().unwrap();
                }
            };
            out.by_ref().take(3 + round as usize * 2).for_each(&mut note);
            let mut transaction = own.begin().unwrap();
            for part in ["a", "b"] {
                let key = format!("own-{round}-{}-{part}", child.id());
                transaction.record(NewTrace::turn("own", "between").key(key)).unwrap();
            }
            transaction.commit(Durability::Sync).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            // The output from before it died counts too.
            out.for_each(&mut note);
        }
        for (name, promised) in ["x", "y"].iter().zip(promised) {
            drop(own.begin().unwrap());
            assert!(count(&own, name) >= promised, "{name} in round {round}");
        }
    }
    assert_eq!(faults(&own), Vec::<String>::new());
    let seen = everything(&own.snapshot()).unwrap();
    own.close().unwrap();
    let opened = Holotype::open(&path, exclusive()).unwrap();
    assert_eq!(opened.report().rebuilt, None);
    assert_eq!(everything(&opened.snapshot()).unwrap(), seen);
}
