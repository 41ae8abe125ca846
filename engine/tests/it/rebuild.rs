//! A rebuild that has little memory goes in many rounds, and comes to what was there before; one that is refused leaves
//! everything as it was.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Durability, Error, Holotype, Mark, NewRecall, NewTrace, Options, Pointer, Space, Status};
use holotype_index::words::{Analyzer, Stemming, WordTail};
use holotype_storage::features::Access;
use holotype_storage::log::Log;
use holotype_storage::segment_file::FileIdentity;
use holotype_storage::vfs::{Crash, OsVfs, SimVfs};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// So little that a round holds some dozens of items, a tail of words a few, and a vector segment 25.
fn little_memory() -> Options {
    Options { memory_limit: 128 << 10, max_unsealed_vectors: 50, ..Options::default() }
}

const COMMITS: u64 = 150;

/// Items of all layers, changed afterwards, some of them forgotten.
fn write(path: &Path) {
    let database = Holotype::create(path, Options::with_space(Space::new("test", 2))).unwrap();
    for commit in 0..COMMITS {
        let mut transaction = database.begin().unwrap();
        for n in 0..6 {
            let number = commit * 6 + n;
            let text =
                format!("number {number} of kind{} says word{} and {}", number % 7, number % 31, "more ".repeat(20));
            let trace = NewTrace::turn(format!("e{}", number % 5), text).key(format!("t{number}"));
            transaction.record(trace.vector(vec![number as f32, 1.0])).unwrap();
        }
        let source = Pointer::to_key(format!("t{}", commit * 6));
        let fact = NewRecall::fact(format!("fact {commit} about word{}", commit % 11)).key(format!("r{commit}"));
        transaction.remember(fact.from(source).vector(vec![1.0, commit as f32])).unwrap();
        if commit > 10 {
            let old = transaction.find(&holotype::Target::Key(format!("r{}", commit - 10))).unwrap();
            let status = if commit % 2 == 0 { Status::Failed } else { Status::Success };
            transaction.mark(old, Mark::Status(status), None).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
    }
    database.query("forget 't3' because 'asked'; forget 't600' cascade because 'asked'", &Params::new()).unwrap();
    database.close().unwrap();
}

/// The answers of the database, with scores, without durations.
fn answers(database: &Holotype) -> Vec<String> {
    let script = "count items by kind; show episodes; recall 'word3 of kind2' through traces 40 by words; \
                  recall 'fact about word5' through recalls 20 by words; find traces where status = unknown limit 30";
    let outputs = database.query(script, &Params::new()).unwrap().into_iter();
    let timeless = outputs.map(|output| match output {
        Output::Answer(answer) => format!("{:?}", holotype::answer::Answer { micros: 0, ..*answer }),
        other => format!("{other:?}"),
    });
    timeless.collect()
}

fn names(path: &Path) -> BTreeMap<String, usize> {
    let count = |form: &str| std::fs::read_dir(path.join(form)).unwrap().count();
    ["columns", "vectors", "words"].map(|form| (form.to_owned(), count(form))).into()
}

#[test]
fn many_small_rounds_come_to_the_same_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    write(&path);
    let before = Holotype::open(&path, Options::default()).unwrap();
    let (head, expected) = (before.head(), answers(&before));
    let nearest = before.snapshot().get("t500").unwrap().unwrap();
    drop(before);
    for options in [little_memory(), Options { background_threads: 0, ..little_memory() }, Options::default()] {
        let database = Holotype::rebuild_all(&path, options).unwrap();
        assert_eq!(database.head(), head);
        assert!(answers(&database) == expected, "after the rebuild");
        assert_eq!(database.snapshot().get("t500").unwrap().unwrap().attributes, nearest.attributes);
        let report = database.verify(&mut |_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.faults);
        // Nothing is left over, and segments are few.
        assert!(names(&path).iter().all(|(_, count)| *count <= 3 * 8), "{:?}", names(&path));
        drop(database);
        let again = Holotype::open(&path, Options::default()).unwrap();
        assert_eq!((again.report().rebuilt.as_deref(), again.report().replayed), (None, 0));
        assert!(answers(&again) == expected, "opened again");
    }
}

#[test]
fn a_rebuild_that_is_refused_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    write(&path);
    let (catalog, files) = (std::fs::read(path.join("catalog.redb")).unwrap(), names(&path));
    // A bit of a record in the middle, with much behind it that was synced.
    let log = path.join("log/0000000001.log");
    let sound = std::fs::read(&log).unwrap();
    let mut bytes = sound.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let refused = Holotype::rebuild_all(&path, little_memory()).unwrap_err();
    assert!(matches!(refused, Error::Storage(_)), "{refused}");
    assert_eq!((std::fs::read(path.join("catalog.redb")).unwrap(), names(&path)), (catalog, files));
    std::fs::write(&log, &sound).unwrap();
    let database = Holotype::open(&path, Options::default()).unwrap();
    assert_eq!(database.report().rebuilt, None);
}

/// A log longer than one batch is applied on its own thread while the rest is read.
#[test]
fn a_long_tail_is_replayed_as_it_was_written() {
    let disk = SimVfs::new();
    let options = Options { checkpoint_bytes: u64::MAX, checkpoint_records: u64::MAX, ..Options::default() };
    let database = Holotype::create_on(Arc::new(disk.clone()), "/db", options.clone()).unwrap();
    for number in 0..60 {
        let mut transaction = database.begin().unwrap();
        for n in 0..5 {
            let text = format!("number {number} of kind2 says word{n} {}", "and more ".repeat(500));
            transaction.record(NewTrace::turn("e", text)).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
    }
    let (head, expected) = (database.head(), answers(&database));
    let crashed = Holotype::open_on(Arc::new(disk.crash(Crash::Keep)), "/db", options).unwrap();
    assert_eq!((crashed.head(), crashed.report().rebuilt.as_deref()), (head, None));
    assert!(crashed.report().replayed >= 300, "{}", crashed.report().replayed);
    assert!(answers(&crashed) == expected);
    assert!(crashed.verify(&mut |_, _| {}).unwrap().is_clean());
}

/// Writes segments of another analyser in the place of those of a closed database.
fn replace_word_segments(path: &Path, text: &str) {
    let database = Log::identify(&OsVfs, &path.join("log"), Access::Read).unwrap().unwrap();
    for entry in std::fs::read_dir(path.join("words")).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let (place, generation) = name.split_once('-').unwrap();
        let (place, generation) = (place.parse().unwrap(), generation.parse().unwrap());
        let tail = WordTail::new(Analyzer::new(Stemming::None));
        tail.push(0, &[(text, 1.0)]).unwrap();
        let segment = tail.build(u32::MAX, None, FileIdentity { database, generation, place }).unwrap();
        std::fs::write(&file, segment.into_bytes()).unwrap();
    }
}

/// A program with other analysis rules opens the database: the terms of its questions are not those of the segments.
#[test]
fn segments_of_other_analysis_rules_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let text = "the flight to Zürich";
    let database = Holotype::create(&path, Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", text)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.checkpoint().unwrap();
    database.close().unwrap();
    replace_word_segments(&path, text);
    for options in [Options::read_only(), Options::default()] {
        let database = Holotype::open(&path, options).unwrap();
        let reason = database.report().rebuilt.clone().unwrap();
        assert!(reason.contains("(none)") && reason.contains("(english)"), "{reason}");
        assert_eq!(database.snapshot().recall("flights").run().unwrap().rows.len(), 1);
        database.close().unwrap();
    }
    let database = Holotype::open(&path, Options::default()).unwrap();
    assert_eq!(database.report().rebuilt, None);
}
