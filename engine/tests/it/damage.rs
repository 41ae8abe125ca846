//! Damaged databases: a log is readable up to the damage, and opening reports its place; a segment of vectors or words
//! is searched without its damaged parts, which the answer notes, and is rebuilt.
//!
//! The story of the first: in a database of less than one log page the last checkpoint stands in the damaged page, so
//! reading on from it failed too, although the message promised that the database still opens for reading.

use holotype::answer::{Answer, Output};
use holotype::query::{ParamValue, Params};
use holotype::{Durability, Error, Forget, Holotype, Layer, NewTrace, Options, Space};
use std::path::{Path, PathBuf};

#[test]
fn a_database_damaged_beside_its_checkpoint_still_opens_for_reading() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, Options::default()).unwrap();
    for n in 0..3 {
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("talk", format!("sentence number {n}")).key(format!("t{n}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    database.close().unwrap();

    let log = path.join("log/0000000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let needle = b"sentence number 1";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 0x20;
    std::fs::write(&log, bytes).unwrap();

    let refused = Holotype::open(&path, Options::default()).unwrap_err();
    assert_eq!(refused.code(), "damaged");
    assert!(refused.to_string().contains("log page 1"), "{refused}");

    let database = Holotype::open(&path, Options::read_only()).unwrap();
    assert!(database.report().damage.as_deref().is_some_and(|damage| damage.contains("log page 1")));
    let snapshot = database.snapshot();
    assert_eq!(snapshot.get("t0").unwrap().unwrap().content.text(), "sentence number 0");
    assert!(snapshot.get("t1").unwrap().is_none(), "nothing from the damage on is shown");
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.faults.iter().any(|fault| fault.page == Some(1) && fault.offset.is_some()), "{:?}", report.faults);
}

#[track_caller]
fn assert_clean(database: &Holotype) {
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
}

const COUNT: u32 = 2_300;

/// A closed database with so many vectors that they have a graph.
fn with_graph(path: &Path) {
    let database = Holotype::create(path, Options::with_space(Space::new("test", 8))).unwrap();
    let mut transaction = database.begin().unwrap();
    for n in 0..COUNT {
        let trace = NewTrace::turn("talk", format!("sentence number {n}")).key(format!("t{n}"));
        transaction.record(trace.vector(vector(n))).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();
}

/// A vector of eight components, another for each number.
pub(crate) fn vector(n: u32) -> Vec<f32> {
    let mut state = u64::from(n) + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    next();
    (0..8).map(|_| next()).collect()
}

fn near(database: &Holotype, n: u32) -> Answer {
    let params = Params::from([("v".to_owned(), ParamValue::Vector(vector(n)))]);
    let statement = "recall near $v through traces 5 by near score similarity 1 limit 5";
    match database.snapshot().query(statement, &params).unwrap().pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("a recall gave {other:?}"),
    }
}

/// The same by numbers alone; nothing while vectors are lost.
fn numbers(database: &Holotype, n: u32) -> Option<Vec<f32>> {
    match database.snapshot().nearest(Layer::Trace, &vector(n), 5) {
        Ok(nearest) => Some(nearest.into_iter().map(|(_, score)| score).collect()),
        Err(Error::Corrupt { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn scores(expected: &[(String, f32)]) -> Option<Vec<f32>> {
    Some(expected.iter().map(|(_, score)| *score).collect())
}

fn keys(answer: &Answer) -> Vec<(String, f32)> {
    answer.rows.iter().map(|row| (row.key.clone(), row.score)).collect()
}

/// The files of one form, by name.
fn files(path: &Path, form: &str) -> Vec<PathBuf> {
    let mut folders = vec![path.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == form) {
                found.push(entry);
            }
        }
    }
    found.sort();
    found
}

/// The file of the vectors, and where a section of it lies.
fn section(path: &Path, tag: &[u8; 4]) -> (PathBuf, std::ops::Range<usize>) {
    let files = files(path, "vseg");
    let [file] = files.as_slice() else { panic!("one file of vectors: {files:?}") };
    (file.clone(), section_of(file, tag))
}

/// The range of a section in a file.
fn section_of(file: &Path, tag: &[u8; 4]) -> std::ops::Range<usize> {
    let bytes = std::fs::read(file).unwrap();
    let entry = bytes[64..].chunks_exact(32).find(|entry| &entry[..4] == tag).expect("the section");
    let number = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap()) as usize;
    number(8)..number(8) + number(16)
}

/// Changes a byte in each block of a section from `from` on.
fn damage(path: &Path, tag: &[u8; 4], from: usize) {
    let (file, section) = section(path, tag);
    let mut bytes = std::fs::read(&file).unwrap();
    section.skip(from).step_by(4096).for_each(|at| bytes[at] ^= 0x40);
    std::fs::write(&file, bytes).unwrap();
}

#[test]
fn damaged_vectors_are_asked_around_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    with_graph(&path);
    let database = Holotype::open(&path, Options::default()).unwrap();
    let questions = [7, 700, 1_500, 2_222];
    let expected: Vec<_> = questions.iter().map(|n| keys(&near(&database, *n))).collect();
    database.close().unwrap();
    for tag in [b"LNK0", b"CODE", b"VECS"] {
        let whole = section(&path, tag).0;
        damage(&path, tag, 4096 * 2 + 5);
        for options in [Options::read_only(), Options::default()] {
            let read_only = options.read_only;
            let database = Holotype::open(&path, options).unwrap();
            assert_eq!(database.report().rebuilt, None, "nobody noticed at opening");
            let mut told = 0;
            for (n, expected) in questions.iter().zip(&expected) {
                let answer = near(&database, *n);
                told += answer.notes.iter().filter(|note| note.contains("in a damaged file")).count();
                // Links and codes can be done without; of the vectors, those in damaged blocks are lost for the time
                // being.
                assert!(tag == b"VECS" || keys(&answer) == *expected, "{answer:?}");
                assert!(*n != 7 || answer.rows[0].key == "t7", "{answer:?}");
                let numbers = numbers(&database, *n);
                // A reader is told at every question until the file is another; a writer may have made it again
                // already.
                let lost = tag == b"VECS" && (read_only || numbers.is_none());
                assert_eq!(numbers, scores(expected).filter(|_| !lost));
            }
            assert!(told > 0 || !read_only, "no answer told of the damage");
            if read_only {
                continue;
            }
            database.checkpoint().unwrap();
            for (n, expected) in questions.iter().zip(&expected) {
                let answer = near(&database, *n);
                assert_eq!((keys(&answer), answer.notes.len()), (expected.clone(), 0), "{answer:?}");
                assert_eq!(numbers(&database, *n), scores(expected));
            }
            assert_clean(&database);
            database.close().unwrap();
        }
        assert_ne!(section(&path, tag).0, whole, "a file of its own");
        let database = Holotype::open(&path, Options::default()).unwrap();
        assert_eq!(database.report().rebuilt, None, "the new file is the one that is named");
        assert_eq!(keys(&near(&database, 700)), expected[1]);
        database.close().unwrap();
    }
}

#[test]
fn verifying_has_damaged_vectors_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    with_graph(&path);
    damage(&path, b"LNK0", 99);
    let database = Holotype::open(&path, Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("talk", "after the damage").key("new").vector(vector(9_999))).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.faults.iter().any(|fault| fault.file.ends_with(".vseg")), "{:?}", report.faults);
    database.checkpoint().unwrap();
    assert_clean(&database);
    assert_eq!(near(&database, 9_999).rows[0].key, "new");
    assert_eq!(near(&database, 5).rows[0].key, "t5");
    database.close().unwrap();
}

/// The words of a trace: some that all share, some of its own.
fn sentence(n: u32) -> String {
    let mut words = format!("sentence number {n} of the talk, in which");
    for word in 0..40u32 {
        let salted = (n * 40 + word).wrapping_mul(2_654_435_761) >> 8;
        words.push_str(&format!(" w{}", salted % 400_000));
    }
    words
}

const SENTENCES: u32 = 1_500;

/// A closed database whose words fill `files` files of more than 1 MiB, which opening does not read.
fn with_words(path: &Path, parts: u32) {
    let options = Options { checkpoint_bytes: u64::MAX, checkpoint_records: u64::MAX, ..Options::default() };
    let database = Holotype::create(path, options).unwrap();
    let mut n = 0;
    for part in (0..parts).rev() {
        // Each a third of the one before, so that none is merged.
        let until = n + SENTENCES * 3_u32.pow(part);
        let mut transaction = database.begin().unwrap();
        for n in n..until {
            transaction.record(NewTrace::turn("talk", sentence(n)).key(format!("t{n}"))).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
        database.checkpoint().unwrap();
        n = until;
    }
    database.close().unwrap();
    let files = files(path, "wseg");
    assert_eq!(files.len(), parts as usize);
    assert!(files.iter().all(|file| std::fs::metadata(file).unwrap().len() > 1 << 20), "large ones");
}

fn by_words(database: &Holotype, n: u32) -> Answer {
    let params = Params::from([("q".to_owned(), ParamValue::Text(sentence(n)))]);
    match database.snapshot().query("recall $q through traces 5 by words limit 5", &params).unwrap().pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("a recall gave {other:?}"),
    }
}

/// The answer of `why not` for an item in the recall of [`by_words`].
fn why_not(database: &Holotype, key: &str, n: u32) -> Vec<String> {
    let params = Params::from([("q".to_owned(), ParamValue::Text(sentence(n)))]);
    let statement = format!("why not '{key}' in recall $q through traces 5 by words limit 5");
    match database.snapshot().query(&statement, &params).unwrap().pop() {
        Some(Output::Table(table)) => table.notes,
        other => panic!("why not gave {other:?}"),
    }
}

fn flip(file: &Path, tag: &[u8; 4]) {
    let mut bytes = std::fs::read(file).unwrap();
    let section = section_of(file, tag);
    bytes[section.start + section.len() / 2] ^= 0x40;
    std::fs::write(file, bytes).unwrap();
}

const TOLD: &str = "in a damaged file: keyword search skipped them";

#[test]
fn damaged_words_are_left_out_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    with_words(&path, 1);
    let database = Holotype::open(&path, Options::default()).unwrap();
    let questions = [7, 700, 1_499];
    let expected: Vec<_> = questions.iter().map(|n| keys(&by_words(&database, *n))).collect();
    assert_eq!(expected[0][0].0, "t7");
    database.close().unwrap();
    for tag in [b"IDS ", b"LENS", b"TERM", b"TEXT", b"BLKS", b"POST"] {
        let whole = files(&path, "wseg");
        flip(&whole[0], tag);
        // Twice for reading only: opening again changes nothing.
        for _ in 0..2 {
            let database = Holotype::open(&path, Options::read_only()).unwrap();
            assert_eq!(database.report().rebuilt, None, "nobody noticed at opening");
            let answer = by_words(&database, 7);
            assert!(answer.notes.iter().any(|note| note.contains(TOLD) && note.contains("rebuild")), "{answer:?}");
            assert_eq!(answer.certificate, "limited");
            let notes = why_not(&database, "t7", 7);
            assert!(notes[0].starts_with("t7 is not in the answer") && notes[1].contains(TOLD), "{notes:?}");
            database.close().unwrap();
        }
        let database = Holotype::open(&path, Options::default()).unwrap();
        assert_eq!(database.report().rebuilt, None, "nobody noticed at opening");
        let answer = by_words(&database, 7);
        assert!(answer.notes.iter().any(|note| note.contains(TOLD) && note.contains("being rebuilt")), "{answer:?}");
        database.checkpoint().unwrap();
        for (n, expected) in questions.iter().zip(&expected) {
            let answer = by_words(&database, *n);
            assert_eq!((keys(&answer), answer.notes.len()), (expected.clone(), 0), "{tag:?}: {answer:?}");
        }
        assert_eq!(why_not(&database, "t7", 7).len(), 1);
        assert_clean(&database);
        database.close().unwrap();
        let made = files(&path, "wseg");
        assert!(made.len() == 1 && made != whole, "a file of its own in the place of the damaged one");
        let database = Holotype::open(&path, Options::default()).unwrap();
        assert_eq!(database.report().rebuilt, None, "the new file is the one that is named");
        assert_eq!(keys(&by_words(&database, 700)), expected[1]);
        database.close().unwrap();
    }
}

#[test]
fn a_checkpoint_that_meets_damaged_words_makes_all_of_them_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    with_words(&path, 2);
    for (file, tag) in files(&path, "wseg").iter().zip([b"POST", b"TERM"]) {
        flip(file, tag);
    }
    let database = Holotype::open(&path, Options::default()).unwrap();
    // With the smaller one there are four of a size, which merge.
    for part in 0..3 {
        let mut transaction = database.begin().unwrap();
        for n in part * SENTENCES..(part + 1) * SENTENCES {
            let text = sentence(100_000 + n);
            transaction.record(NewTrace::turn("talk", text).key(format!("new{n}"))).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
        database.checkpoint().unwrap();
    }
    for (n, key) in [(7, "t7"), (4_499, "t4499"), (5_999, "t5999"), (100_003, "new3")] {
        let answer = by_words(&database, n);
        assert_eq!((answer.rows[0].key.as_str(), answer.notes.len()), (key, 0), "{answer:?}");
    }
    assert_clean(&database);
    database.close().unwrap();
    let database = Holotype::open(&path, Options::default()).unwrap();
    assert_eq!(database.report().rebuilt, None);
    assert_eq!(by_words(&database, 7).rows[0].key, "t7");
    database.close().unwrap();
}

#[test]
fn verifying_has_damaged_words_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    with_words(&path, 2);
    // Only one of them: of the other nothing is written again.
    let before = files(&path, "wseg");
    flip(&before[1], b"POST");
    let database = Holotype::open(&path, Options::default()).unwrap();
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.faults.iter().any(|fault| fault.file.ends_with(".wseg")), "{:?}", report.faults);
    database.checkpoint().unwrap();
    assert_clean(&database);
    let after = files(&path, "wseg");
    assert!(after.len() == 2 && after[0] == before[0] && after[1] != before[1], "{before:?} {after:?}");
    for (n, key) in [(7, "t7"), (5_999, "t5999")] {
        assert_eq!(by_words(&database, n).rows[0].key, key);
    }
    database.close().unwrap();
}

#[test]
fn forgetting_and_compacting_do_without_damaged_words() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    with_words(&path, 1);
    for (tag, forgotten) in [(b"TERM", "t3"), (b"POST", "t4")] {
        flip(&files(&path, "wseg")[0], tag);
        let database = Holotype::open(&path, Options::default()).unwrap();
        let item = database.snapshot().get(forgotten).unwrap().unwrap().id;
        database.forget(&[item], &Forget::because("it is a test")).unwrap();
        let (gone, stays) = (by_words(&database, item.0), by_words(&database, 9));
        // Its words stand nowhere else, so that nothing answers the question; no note speaks of damage.
        let names = |note: &String| note.starts_with("Nothing in scope names");
        assert!(!gone.answerable && gone.notes.iter().all(names), "{gone:?}");
        assert!(gone.rows.iter().all(|row| row.item != item), "{gone:?}");
        assert_eq!((stays.rows[0].key.as_str(), stays.notes.len()), ("t9", 0), "{stays:?}");
        database.close().unwrap();
        assert_eq!(files(&path, "wseg").len(), 1);
        let database = Holotype::open(&path, Options::default()).unwrap();
        assert_eq!(database.report().rebuilt, None);
        database.close().unwrap();
        flip(&files(&path, "wseg")[0], tag);
        let database = Holotype::open(&path, Options::default()).unwrap();
        database.compact().unwrap();
        assert_eq!(by_words(&database, 9).rows[0].key, "t9");
        assert_clean(&database);
        database.close().unwrap();
    }
}
