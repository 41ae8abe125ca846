//! Verifying finds what differs from the log wherever it stands, goes no faster than it is let, can be stopped,
//! remembers, and knows a head that was kept outside from one that is lost.

use holotype::query::Params;
use holotype::{Cancel, Error, Holotype, KnownHead, Options, VerifyOptions, hex};
use holotype_storage::catalog::{Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::log::Log;
use holotype_storage::overlay::RowKey;
use holotype_storage::vfs::{Crash, SimVfs};
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "/db";

fn run(database: &Holotype, script: &str) {
    database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}"));
}

fn create(disk: &SimVfs) -> Holotype {
    let options = Options { page_size: 4096, ..Options::default() };
    let database = Holotype::create_on(Arc::new(disk.clone()), PATH, options).unwrap();
    for number in 0..160 {
        run(
            &database,
            &format!(
                "record turn 'number {number}' in episode 'e' with key = 't{number}';
                 remember fact 'fact {number}' from 't{number}' quoting 'number' with key = 'r{number}'"
            ),
        );
    }
    database
}

fn open(disk: &SimVfs) -> Holotype {
    Holotype::open_on(Arc::new(disk.clone()), PATH, Options::default()).unwrap()
}

fn faults(database: &Holotype) -> Vec<String> {
    let report = database.verify(&mut |_, _| {}).unwrap();
    report.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn rows_that_are_sound_and_wrong_are_found() {
    let disk = SimVfs::new();
    create(&disk).close().unwrap();
    assert_eq!(faults(&open(&disk)), Vec::<String>::new());
    let id = Log::identify(&disk, Path::new("/db/log"), Access::Read).unwrap().unwrap();
    let change = |disk: &SimVfs, key: RowKey, value: Option<Vec<u8>>| {
        let path = Path::new("/db/catalog.redb");
        let catalog = Catalog::open(disk, path, id, &CatalogOptions::default(), Access::Write).unwrap();
        let applied = catalog.applied().unwrap().unwrap();
        catalog.checkpoint([(key, value)], &applied).unwrap();
    };
    let number = |number: u32| number.to_le_bytes().to_vec();
    let tree = |level: u8, number: u64| [[level].as_slice(), &number.to_be_bytes()].concat();
    // A key that leads to another item, one too many, one that is lost; hashes that are wrong, and lost.
    let changes = [
        (1_u8, b"t3".to_vec(), Some(number(5)), "row t3 of table 1 has another value than the log gives"),
        (1, b"never".to_vec(), Some(number(5)), "row never of table 1 is in the catalog and not in what the log gives"),
        (1, b"t3".to_vec(), None, "row t3 of table 1 is not in the catalog"),
        (27, tree(8, 0), Some(vec![0; 40]), "of the tree's hashes is wrong"),
        (27, tree(8, 0), None, "of the tree's hashes is missing"),
        (27, tree(8, 9), Some(vec![0; 40]), "1 row of the tree's hashes too many"),
    ];
    for (table, key, value, told) in changes {
        let disk = disk.crash(Crash::Keep);
        change(&disk, RowKey::new(table, &key), value);
        let found = faults(&open(&disk));
        assert!(found.iter().any(|fault| fault.contains(told)), "{told}: {found:#?}");
    }
}

#[test]
fn files_that_are_lost_or_left_over_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let database = Holotype::create(&path, Options::default()).unwrap();
    run(&database, "record turn 'a word' in episode 'e'");
    database.checkpoint().unwrap();
    std::fs::write(path.join("words/9-0000000999.wseg"), b"stray").unwrap();
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
    assert!(report.not_checked.iter().any(|what| what.contains("9-0000000999.wseg")), "{:?}", report.not_checked);
    let words = std::fs::read_dir(path.join("words")).unwrap().map(|entry| entry.unwrap().path());
    let lost = words.into_iter().find(|path| !path.to_string_lossy().contains("999")).unwrap();
    std::fs::remove_file(&lost).unwrap();
    let found = faults(&database);
    assert!(found.iter().any(|fault| fault.starts_with(&lost.display().to_string())), "{found:?}");
}

#[test]
fn it_can_be_stopped() {
    let database = create(&SimVfs::new());
    let cancel = Cancel::new();
    let options = VerifyOptions { bytes_per_second: Some(1), cancel: Some(cancel.clone()) };
    // At this rate the second page would be due in an hour.
    let stopped = database.verify_with(&options, &mut |_, _| cancel.cancel());
    assert!(matches!(stopped, Err(Error::Cancelled(_))));
}

#[test]
fn what_was_verified_is_remembered() {
    let disk = SimVfs::new();
    let database = create(&disk);
    let before = database.verified().unwrap();
    assert!(!before.is_empty() && before.iter().all(|(_, time)| time.is_none()));
    database.note_verified(&database.verify(&mut |_, _| {}).unwrap()).unwrap();
    assert!(database.verified().unwrap().iter().all(|(_, time)| time.is_some()));
    let shown = format!("{:?}", database.stats().unwrap().to_table().rows);
    assert!(shown.contains("oldest verification of a segment"), "{shown}");
    database.close().unwrap();
    let again = open(&disk);
    assert!(again.verified().unwrap().iter().all(|(_, time)| time.is_some()));
    assert_eq!(faults(&again), Vec::<String>::new());
}

#[test]
fn a_head_that_is_lost_is_known_for_what_it_is() {
    let disk = SimVfs::new();
    let database = create(&disk);
    let old = database.head();
    database.close().unwrap();
    let fork = disk.crash(Crash::Keep);
    let database = open(&disk);
    run(&database, "record turn 'one way' in episode 'e'");
    let late = database.head();
    let ask = |database: &Holotype, head: holotype::Head| {
        let (hash, commit) = (hex(&head.hash), head.commit.0);
        (database.find_head(&hash, Some(commit)).unwrap(), database.find_head(&hash, None).unwrap())
    };
    assert_eq!(ask(&database, old), (KnownHead::At(old.commit.0), KnownHead::At(old.commit.0)));
    assert_eq!(ask(&database, late), (KnownHead::At(late.commit.0), KnownHead::At(late.commit.0)));
    let other = open(&fork);
    assert_eq!(ask(&other, late), (KnownHead::RolledBack, KnownHead::Unknown));
    run(&other, "record turn 'another' in episode 'e'");
    assert_eq!(ask(&other, late), (KnownHead::Forked, KnownHead::Unknown));
}

/// Damage that a read finds is known too: nothing is written behind a record that cannot be read.
#[test]
fn a_read_that_meets_damage_stops_writes_of_the_handle() {
    let disk = SimVfs::new();
    let database = create(&disk);
    let path = Path::new("/db/log/0000000001.log");
    let log = disk.bytes(path).unwrap();
    let at = log.windows(8).position(|window| window == b"number 3").unwrap() as u64;
    disk.flip(path, at, 1).unwrap();
    assert!(database.snapshot().get("t3").is_err());
    let refused = database.query("mark 't1' failed because 'no'", &Params::new()).unwrap_err();
    assert!(matches!(refused, Error::WritesRefused { .. }), "{refused}");
    assert_eq!(database.snapshot().get("t4").unwrap().unwrap().content.text(), "number 4");
    disk.flip(path, at, 1).unwrap();
    run(&database, "mark 't1' failed because 'the record reads well again'");

    disk.flip(path, at, 1).unwrap();
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(!report.is_clean());
    assert!(matches!(database.begin().err(), Some(Error::WritesRefused { .. })));
    database.note_verified(&report).unwrap();
    drop(database);
    let opened = Holotype::open_on(Arc::new(disk.clone()), PATH, Options::default());
    assert!(matches!(opened.err(), Some(Error::WritesRefused { .. })));
    let reader = Holotype::open_on(Arc::new(disk.clone()), PATH, Options::read_only()).unwrap();
    assert_eq!(reader.snapshot().len(), 320);
    drop(reader);
    let options = Options { accept_damage: true, ..Options::default() };
    run(&Holotype::open_on(Arc::new(disk.clone()), PATH, options).unwrap(), "mark 't1' failed because 'accepted'");
    disk.flip(path, at, 1).unwrap();
    let reader = Holotype::open_on(Arc::new(disk.clone()), PATH, Options::read_only()).unwrap();
    reader.note_verified(&reader.verify(&mut |_, _| {}).unwrap()).unwrap();
    drop(reader);
    run(&open(&disk), "mark 't1' failed because 'restored'");
}
