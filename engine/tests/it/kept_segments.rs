//! A rebuild keeps the segments of vectors and words that are right, and believes none that is not: none that is
//! damaged, none of another branch of the log, none from before something was forgotten.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer, Space};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FORMS: [&str; 2] = ["vectors", "words"];

fn options() -> Options {
    Options { space: Some(Space::new("test", 2)), ..Options::default() }
}

fn open(path: &Path) -> Holotype {
    Holotype::open(path, Options::default()).unwrap()
}

/// Writes some items, in one commit, and makes a checkpoint of them.
fn write(database: &Holotype, from: u32, count: u32, word: &str) {
    let mut transaction = database.begin().unwrap();
    for number in from..from + count {
        let text = format!("number {number} says {word} and word{}", number % 7);
        let trace = NewTrace::turn("e", text).key(format!("t{number}")).vector(vec![number as f32, 1.0]);
        transaction.record(trace).unwrap();
    }
    let fact = NewRecall::fact(format!("a fact about {word}")).from(Pointer::to_key(format!("t{from}")));
    transaction.remember(fact.vector(vec![1.0, from as f32])).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.checkpoint().unwrap();
}

/// The answers of the database, with scores, without durations.
fn answers(database: &Holotype) -> Vec<String> {
    let script = "count items by kind; find items limit 1000 return key, text; \
                  recall 'apples and word3' through traces 40 by words; recall 'pears and word3' through traces 40 by words; \
                  recall 'a fact about apples or pears' through recalls 20";
    let outputs = database.query(script, &Params::new()).unwrap().into_iter();
    let mut said: Vec<String> = outputs
        .map(|output| match output {
            Output::Answer(answer) => format!("{:?}", holotype::answer::Answer { micros: 0, ..*answer }),
            other => format!("{other:?}"),
        })
        .collect();
    let nearest = database.snapshot().nearest(holotype::Layer::Trace, &[7.0, 1.0], 10).unwrap();
    said.push(format!("{nearest:?}"));
    said
}

/// The files of vectors and words, by name.
fn segments(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let of_form = |form| std::fs::read_dir(path.join(form)).unwrap().map(|entry| entry.unwrap().path());
    let paths = FORMS.into_iter().flat_map(of_form);
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let name = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &name);
        } else {
            std::fs::copy(&entry, &name).unwrap();
        }
    }
}

/// Opens without the catalog, and holds what comes of it against what was there. Returns how many segments were kept.
fn without_catalog(path: &Path, expected: &[String]) -> usize {
    std::fs::remove_file(path.join("catalog.redb")).unwrap();
    let database = open(path);
    assert!(database.report().rebuilt.is_some());
    assert!(answers(&database) == expected);
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
    let kept = database.report().reused;
    database.close().unwrap();
    let again = open(path);
    assert_eq!(again.report().rebuilt, None);
    assert!(answers(&again) == expected, "opened again");
    kept
}

struct Place {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

/// A database with several segments of each form, and some of what they were made of.
fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, options()).unwrap();
    write(&database, 0, 700, "apples");
    write(&database, 700, 60, "apples");
    write(&database, 760, 5, "apples");
    database.close().unwrap();
    Place { _dir: dir, path }
}

#[test]
fn what_is_right_is_kept() {
    let Place { path, .. } = &place();
    let (expected, before) = (answers(&open(path)), segments(path));
    assert!(before.len() > 6, "{}", before.len());
    assert_eq!(without_catalog(path, &expected), before.len());
    assert!(segments(path) == before);
    let database = Holotype::rebuild(path, Options::default()).unwrap();
    assert_eq!(database.report().reused, before.len());
    assert!(answers(&database) == expected);
    drop(database);
    let database = Holotype::rebuild_all(path, Options::default()).unwrap();
    assert_eq!(database.report().reused, 0);
    assert!(answers(&database) == expected);
    drop(database);
    assert!(segments(path).keys().all(|path| !before.contains_key(path)), "all are new");
    // Once more, of files that a rebuild made.
    assert_eq!(without_catalog(path, &expected), segments(path).len());
}

/// Items after the last checkpoint are indexed beside reused segments, and so are items of a lost segment.
#[test]
fn what_no_kept_segment_holds_is_made_anew() {
    let Place { path, .. } = &place();
    let expected = answers(&open(path));
    for lost in segments(path).into_keys() {
        // Later than that file, for its name is not given a second time.
        let twin = path.with_extension("twin");
        copy(path, &twin);
        let all = segments(&twin).len();
        std::fs::remove_file(twin.join(lost.strip_prefix(path).unwrap())).unwrap();
        assert_eq!(without_catalog(&twin, &expected), all - 1, "{}", lost.display());
        std::fs::remove_dir_all(&twin).unwrap();
    }
    let database = open(path);
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "late pears and word3").vector(vec![7.0, 1.0])).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let (expected, all) = (answers(&database), segments(path).len());
    // As a crash leaves it.
    let twin = path.with_extension("twin");
    copy(path, &twin);
    drop(database);
    assert_eq!(without_catalog(&twin, &expected), all);
}

#[test]
fn a_damaged_segment_is_not_kept() {
    let Place { path, .. } = &place();
    let expected = answers(&open(path));
    let all = segments(path);
    for (segment, sound) in &all {
        // A few places spread over the file: header, directory, sections, padding, origin.
        for part in 0..9 {
            let mut bytes = sound.clone();
            let at = (bytes.len() - 1) * part / 8;
            bytes[at] ^= 0x10;
            let twin = path.with_extension("twin");
            copy(path, &twin);
            std::fs::write(twin.join(segment.strip_prefix(path).unwrap()), &bytes).unwrap();
            assert_eq!(without_catalog(&twin, &expected), all.len() - 1, "{} byte {at}", segment.display());
            std::fs::remove_dir_all(&twin).unwrap();
        }
    }
}

/// Two copies of a database went different ways, and the files of one came to the other: same database, same items,
/// same generations, other words.
#[test]
fn a_segment_of_another_branch_is_not_kept() {
    let Place { path, .. } = &place();
    let twin = path.with_extension("twin");
    copy(path, &twin);
    let (here, there) = (open(path), open(&twin));
    write(&here, 765, 300, "apples");
    write(&there, 765, 300, "pears");
    let expected = answers(&here);
    here.close().unwrap();
    there.close().unwrap();
    let (own, foreign) = (segments(path), segments(&twin));
    own.keys().for_each(|path| std::fs::remove_file(path).unwrap());
    for (name, bytes) in &foreign {
        std::fs::write(path.join(name.strip_prefix(&twin).unwrap()), bytes).unwrap();
    }
    // Only what was made before they parted, and is still there, is of both.
    let common = own.iter().filter(|(name, bytes)| {
        foreign.get(&twin.join(name.strip_prefix(path).unwrap())).is_some_and(|other| other == *bytes)
    });
    assert_eq!(without_catalog(path, &expected), common.count());
}

/// Segments as they were before something was forgotten are put back beside the present ones and in their place.
#[test]
fn what_was_forgotten_does_not_come_back() {
    for instead in [false, true] {
        let Place { path, .. } = &place();
        let database = open(path);
        let mut transaction = database.begin().unwrap();
        transaction
            .record(NewTrace::turn("e", "the secret word is xylophone").key("s").vector(vec![3.0, 2.0]))
            .unwrap();
        transaction.commit(Durability::Sync).unwrap();
        database.checkpoint().unwrap();
        database.close().unwrap();
        let before = segments(path);
        assert!(before.values().any(|bytes| contains(bytes, b"xylophon")));
        let database = open(path);
        database.query("forget 's' because 'asked'", &Params::new()).unwrap();
        let expected = answers(&database);
        database.close().unwrap();
        if instead {
            segments(path).keys().for_each(|path| std::fs::remove_file(path).unwrap());
        }
        for (name, bytes) in &before {
            std::fs::write(name, bytes).unwrap();
        }
        without_catalog(path, &expected);
        let database = open(path);
        let found = database.query("recall 'xylophone' through traces 5 by words", &Params::new()).unwrap();
        assert!(!format!("{found:?}").contains("secret"), "{found:?}");
        database.close().unwrap();
        assert!(segments(path).values().all(|bytes| !contains(bytes, b"xylophon")));
    }
}

/// A crash between writing a merged segment and naming it leaves both it and those it was made of.
#[test]
fn of_two_segments_with_the_same_items_one_is_kept() {
    let Place { path, .. } = &place();
    let sources = segments(path);
    let database = open(path);
    let expected = answers(&database);
    database.compact().unwrap();
    database.close().unwrap();
    for (name, bytes) in &sources {
        std::fs::write(name, bytes).unwrap();
    }
    let kept = without_catalog(path, &expected);
    assert!(kept > 0 && kept < sources.len(), "{kept} of {}", sources.len());
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
