//! Sealing, compacting and backing up: the same answers before and after, here and in the copy.

use crate::observed::everything;
use holotype::{Durability, Error, Holotype, NewRecall, NewTrace, Options, Pointer, Space};
use holotype_storage::vfs::{Failure, SimVfs, Vfs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn options() -> Options {
    Options { page_size: 4096, ..Options::default() }
}

fn write(database: &Holotype, from: u64, count: u64) {
    for number in from..from + count {
        let mut transaction = database.begin().unwrap();
        let trace = NewTrace::turn("trip", format!("turn {number} about the weather of week {}", number % 7))
            .key(format!("t{number}"))
            .vector(vec![number as f32, 1.0]);
        transaction.record(trace).unwrap();
        if number % 3 == 0 {
            let fact = NewRecall::fact(format!("fact {number}")).key(format!("r{number}"));
            transaction.remember(fact.from(Pointer::to_key(format!("t{number}")))).unwrap();
        }
        transaction.commit(Durability::Flush).unwrap();
    }
}

fn fill(vfs: Arc<dyn Vfs>, path: &Path) -> Holotype {
    let database = Holotype::create_on(vfs, path, Options { space: Some(Space::new("test", 2)), ..options() }).unwrap();
    for step in 0..4 {
        write(&database, step * 20, 20);
        database.checkpoint().unwrap();
    }
    write(&database, 80, 7);
    database
}

#[test]
fn sealing_and_compacting_change_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = fill(Arc::new(holotype_storage::vfs::OsVfs), &path);
    // The four checkpoints have merged; another one gives each layer a second segment.
    database.checkpoint().unwrap();
    write(&database, 87, 2);
    let (before, head) = (seen(&database), database.head());
    database.seal().unwrap();
    assert_eq!(database.head(), head);
    let old = database.snapshot();
    let count = || ["vectors", "words"].map(|form| std::fs::read_dir(path.join(form)).unwrap().count());
    assert!(count().iter().any(|count| *count > 2), "{:?}", count());
    let report = database.compact().unwrap();
    assert!(!report.skipped && report.after > 0 && report.after < report.before, "{report:?}");
    assert_eq!(count(), [1, 2], "one for each layer that has any");
    assert_eq!(seen(&database), before);
    assert_eq!(old.get("t3").unwrap().unwrap().content.text(), "turn 3 about the weather of week 3");
    assert_eq!(wrong(&database), Vec::<String>::new());
    let again = database.compact().unwrap();
    assert_eq!((again.skipped, again.before, again.after), (true, report.after, report.after));
    assert_eq!((seen(&database), count()), (before, [1, 2]));
    assert_eq!(wrong(&database), Vec::<String>::new());
    write(&database, 100, 3);
    drop(old);
    let before = seen(&database);
    database.close().unwrap();
    let database = Holotype::open(&path, options()).unwrap();
    assert_eq!(database.report().rebuilt, None);
    assert_eq!(seen(&database), before);
    database.close().unwrap();
    let reader = Holotype::open(&path, Options::read_only()).unwrap();
    assert!(matches!(reader.compact(), Err(Error::ReadOnly)) && matches!(reader.seal(), Err(Error::ReadOnly)));
}

#[test]
fn a_backup_is_the_database_as_of_its_head() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = fill(Arc::new(holotype_storage::vfs::OsVfs), &path);
    // Writers go on while it is made.
    let stop = AtomicBool::new(false);
    let copy = dir.path().join("copy.holo");
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 1000;
            while !stop.load(Ordering::Relaxed) {
                write(&database, number, 1);
                number += 1;
            }
        });
        let mut told = Vec::new();
        let report = database.backup(&copy, &mut |done, total| told.push((done, total)));
        stop.store(true, Ordering::Relaxed);
        assert!(told.is_sorted() && told.last().is_some_and(|(done, total)| done == total));
        report.unwrap()
    });
    write(&database, 90, 2);
    let expected = everything(&database.snapshot().as_of(report.head.commit.0).unwrap()).unwrap();
    let backup = Holotype::open(&copy, options()).unwrap();
    assert_eq!(backup.head(), report.head);
    assert_eq!(backup.report().rebuilt, None);
    assert_eq!(seen(&backup), expected);
    assert_eq!(wrong(&backup), Vec::<String>::new());
    write(&backup, 5000, 2);
    let head = backup.head();
    backup.close().unwrap();
    let refused = |dest: &Path| matches!(database.backup(dest, &mut |_, _| {}), Err(Error::Exists { .. }));
    assert!(refused(&copy));
    assert_eq!(Holotype::open(&copy, Options::read_only()).unwrap().head(), head, "what was there is left as it was");
    let other = dir.path().join("other");
    std::fs::create_dir_all(other.join("log")).unwrap();
    std::fs::write(other.join("log/notes"), "mine").unwrap();
    assert!(refused(&other) && refused(&other.join("log/notes")) && refused(&other.join("log/notes/copy")));
    assert_eq!(std::fs::read_to_string(other.join("log/notes")).unwrap(), "mine");
    // A process that only reads makes one too, beside the writer.
    let reader = Holotype::open(&path, Options::read_only()).unwrap();
    let second = dir.path().join("second.holo");
    let report = reader.backup(&second, &mut |_, _| {}).unwrap();
    assert_eq!((report.head, report.derived), (reader.head(), false));
    let backup = Holotype::open(&second, options()).unwrap();
    assert_eq!(backup.head(), reader.head());
    assert_eq!(wrong(&backup), Vec::<String>::new());
}

fn seen(database: &Holotype) -> String {
    everything(&database.snapshot()).unwrap()
}

fn wrong(database: &Holotype) -> Vec<String> {
    let report = database.verify(&mut |_, _| {}).unwrap();
    report.faults.iter().map(ToString::to_string).collect()
}

/// A copy that is cut short anywhere does not open as a database, and leaves the original as it was.
#[test]
fn a_backup_cut_short_is_no_database() {
    let sim = SimVfs::new();
    let database = fill(Arc::new(sim.clone()), Path::new("/db"));
    database.checkpoint().unwrap();
    let head = database.head();
    let (mut cut, mut whole) = (0, 0);
    for call in (0..).step_by(3) {
        let dest = format!("/copy-{call}");
        sim.fail_at(sim.calls() + call, Failure::NoSpace, true);
        let made = database.backup(&dest, &mut |_, _| {});
        sim.heal();
        if made.is_ok() {
            whole += 1;
            break;
        }
        cut += 1;
        let disk = Arc::new(sim.clone()) as Arc<dyn Vfs>;
        let opened = Holotype::open_on(disk, &dest, Options::read_only());
        match opened {
            Err(error) => assert!(!matches!(error, Error::Corrupt { .. }), "call {call}: {error}"),
            // Only checking the whole copy failed.
            Ok(copy) => assert_eq!(copy.head(), head, "call {call}"),
        }
        assert_eq!(database.head(), head);
        database.query("count items", &Default::default()).unwrap();
    }
    assert!(cut > 5 && whole == 1, "{cut}, {whole}");
}

/// A copy that fails at any one call leaves nothing, so that the same path can be tried again.
#[test]
fn a_backup_that_fails_is_not_in_the_way_of_the_next() {
    let sim = SimVfs::new();
    let database = fill(Arc::new(sim.clone()), Path::new("/db"));
    database.checkpoint().unwrap();
    let before = sim.calls();
    database.backup("/whole", &mut |_, _| {}).unwrap();
    let calls = sim.calls() - before;
    let mut failures = 0;
    for call in 0..calls {
        let dest = format!("/copy-{call}");
        let dest = Path::new(&dest);
        sim.fail_at(sim.calls() + call, Failure::Io, false);
        let made = database.backup(dest, &mut |_, _| {});
        sim.heal();
        if made.is_err() {
            failures += 1;
            assert!(sim.list(dest).is_err(), "call {call} leaves the directory");
            assert!(!sim.files().iter().any(|path| path.starts_with(dest)), "call {call} leaves files");
            database.backup(dest, &mut |_, _| {}).unwrap();
        }
        let copy = Holotype::open_on(Arc::new(sim.clone()), dest, Options::read_only()).unwrap();
        assert_eq!(copy.head(), database.head());
    }
    assert!(failures > calls / 2, "{failures} of {calls}");
}
