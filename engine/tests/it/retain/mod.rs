//! Keeping history from one commit on only: the present and what came since stay as they were, whatever is done with
//! the database then; the time before is gone, with the files that held it.

mod crash;
use crate::observed::{everything, faults};
use holotype::interchange::export;
use holotype::proof::{SignerKey, check};
use holotype::query::Params;
use holotype::{
    Durability, EpisodeChange, Error, Forget, Holotype, ItemId, Mark, NewRecall, NewTrace, Options, Pointer, Space,
    Status,
};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PLACE: &str = "/memory.holo";
const SECRET: &str = "sub rosa";
/// The commits of the story, after that of creation.
const COMMITS: u64 = 60;

fn options() -> Options {
    Options { page_size: 4096, ..Options::default() }
}

fn open(disk: &SimVfs, place: &str) -> holotype::Result<Holotype> {
    Holotype::open_on(Arc::new(disk.clone()), place, options())
}

/// A database of many commits, whose log takes more than one file.
fn story(disk: &SimVfs, text_len: usize) -> Holotype {
    let create = Options { space: Some(Space::new("test", 2)), ..options() };
    let database = Holotype::create_on(Arc::new(disk.clone()), PLACE, create).unwrap();
    for number in 2..=COMMITS {
        write(&database, number, text_len, 8);
    }
    database
}

fn write(database: &Holotype, number: u64, text_len: usize, records: usize) {
    let mut transaction = database.begin().unwrap();
    let text = format!("{SECRET} {number} {}", "long ".repeat(text_len / 5));
    let trace = NewTrace::turn("e", text).key(format!("t{number}")).vector(vec![number as f32, 1.0]);
    let id = transaction.record(trace).unwrap();
    // Many records that make few rows.
    for limit in 0..records {
        transaction.set("page.tokens", &(3_000 + limit).to_string()).unwrap();
    }
    match number % 6 {
        0 => {
            let fact = NewRecall::fact(format!("fact of {number}")).key(format!("r{number}"));
            transaction.remember(fact.from(Pointer::to_key(format!("t{number}")))).unwrap();
            transaction
                .remember(NewRecall::theme("facts").key(format!("h{number}")).child(format!("r{number}")))
                .unwrap();
        }
        1 => transaction.mark(id, Mark::Status(Status::Failed), Some("it was wrong".to_owned())).unwrap(),
        2 => transaction.set("recency.half-life", &format!("{number}d")).unwrap(),
        3 => {
            let task = Some(format!("task {number}"));
            transaction.episode("e", EpisodeChange { task, ..EpisodeChange::default() }).unwrap();
        }
        _ => {}
    }
    transaction.commit(Durability::Sync).unwrap();
}

fn seen(database: &Holotype, commits: impl IntoIterator<Item = u64>) -> Vec<String> {
    let snapshot = database.snapshot();
    commits.into_iter().map(|commit| everything(&snapshot.as_of(commit).unwrap()).unwrap()).collect()
}

fn exported(database: &Holotype) -> String {
    let mut bytes = Vec::new();
    export(&database.snapshot(), &mut bytes, None).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn holds(disk: &SimVfs, place: &str, text: &str) -> Vec<PathBuf> {
    let within = |bytes: Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    // A segment that is prepared meanwhile may get another name.
    let says = |path: &PathBuf| disk.bytes(path).is_ok_and(within);
    disk.files().into_iter().filter(|path| path.starts_with(place) && says(path)).collect()
}

#[test]
fn the_present_stays_and_the_past_is_gone() {
    let disk = SimVfs::new();
    let database = story(&disk, 9000);
    let newest = database.head().commit.0;
    let since = newest - 12;
    let kept = [since, since + 1, newest - 3, newest];
    let (before, lines) = (seen(&database, kept), exported(&database));
    let logs =
        |disk: &SimVfs| disk.files().iter().filter(|path| path.extension().is_some_and(|it| it == "log")).count();
    let files = logs(&disk);

    let report = database.retain(since, Some(Path::new("/archive"))).unwrap();
    assert_eq!((report.since, report.left), (since, 0), "{report:?}");
    assert!(report.segments > 0 && report.archived >= report.bytes, "{report:?}");
    assert!(logs(&disk) <= files + 2, "{report:?}");
    assert_eq!(database.history_since(), since);

    let matches = |database: &Holotype, lines: &str, context: &str| {
        assert!(seen(database, kept) == before, "{context}");
        assert_eq!(faults(database), [""; 0], "{context}");
        assert!(exported(database) == lines, "{context}");
        for past in [0, 1, since - 1] {
            let error = database.snapshot().as_of(past).map(drop).unwrap_err();
            assert!(
                matches!(&error, Error::BeforeHistory { since: named, .. } if *named == since),
                "{context}: {error}"
            );
            assert_eq!(error.code(), "before-history");
        }
        let error = database.snapshot().query("count items as of commit 2", &Params::new()).map(drop).unwrap_err();
        assert_eq!(error.code(), "before-history", "{context}");
    };
    matches(&database, &lines, "at once");
    database.compact().unwrap();
    matches(&database, &lines, "compacted");
    write(&database, 1000, 9000, 8);
    let lines = exported(&database);
    database.close().unwrap();
    matches(&open(&disk, PLACE).unwrap(), &lines, "opened again");
    matches(&Holotype::rebuild_on(Arc::new(disk.clone()), PLACE, options()).unwrap(), &lines, "rebuilt");
    let reader = Options { read_only: true, ..options() };
    matches(&Holotype::open_on(Arc::new(disk.clone()), PLACE, reader.clone()).unwrap(), &lines, "read only");
    let database = open(&disk, PLACE).unwrap();
    database.backup("/copy.holo", &mut |_, _| {}).unwrap();
    matches(&open(&disk, "/copy.holo").unwrap(), &lines, "copied");
    drop(database);
    disk.remove(&Path::new(PLACE).join("catalog.redb")).unwrap();
    matches(&Holotype::open_on(Arc::new(disk.clone()), PLACE, reader).unwrap(), &lines, "read only, of the log alone");
    matches(&open(&disk, PLACE).unwrap(), &lines, "of the log alone");

    let report = holotype::salvage_on(Arc::new(disk.clone()), PLACE, "/saved.holo").unwrap();
    assert_eq!(report.lost.len(), 0, "{:?}", report.lost);
    let (saved, database) = (open(&disk, "/saved.holo").unwrap(), open(&disk, PLACE).unwrap());
    assert_eq!(exported(&saved), exported(&database));

    // With what was archived in its place again, everything is there.
    drop((saved, database));
    let log = Path::new(PLACE).join("log");
    disk.remove(&log.join("floor")).unwrap();
    for archived in disk.files().iter().filter(|path| path.starts_with("/archive")) {
        disk.replace(&log.join(archived.file_name().unwrap()), &disk.bytes(archived).unwrap());
    }
    let database = Holotype::rebuild_on(Arc::new(disk.clone()), PLACE, options()).unwrap();
    assert_eq!(database.history_since(), 0);
    assert!(seen(&database, kept) == before);
    assert_eq!(database.snapshot().as_of(2).unwrap().len(), 1);
    assert_eq!(faults(&database), [""; 0]);
}

#[test]
fn it_may_be_done_again_and_again_and_forgetting_still_holds() {
    let disk = SimVfs::new();
    let database = story(&disk, 6000);
    let newest = database.head().commit.0;
    let mut present = seen(&database, [newest]);
    for since in [3, newest - 20, newest - 2, newest] {
        let report = database.retain(since, None).unwrap();
        assert_eq!(report.since, since);
        assert!(seen(&database, [newest]) == present, "since {since}");
        assert_eq!(faults(&database), [""; 0], "since {since}");
        if report.records == 0 {
            assert!(database.history_since() < since, "no file could be removed");
            continue;
        }
        assert!(matches!(database.retain(since - 1, None), Err(Error::BeforeHistory { .. })));
        assert_eq!(database.retain(since, None).unwrap().records, 0, "nothing is left to do");
    }
    assert!(matches!(database.retain(newest + 1_000, None), Err(Error::FutureCommit { .. })));
    drop(present.pop());
    let all: Vec<ItemId> = (0..database.snapshot().len()).map(ItemId).collect();
    assert!(!holds(&disk, PLACE, SECRET).is_empty());
    database.forget(&all, &Forget::because("asked to")).unwrap();
    assert_eq!(holds(&disk, PLACE, SECRET), [""; 0].map(PathBuf::from));
    assert_eq!(faults(&database), [""; 0]);
    let kept = seen(&database, [newest]);
    database.close().unwrap();
    let database = Holotype::rebuild_on(Arc::new(disk.clone()), PLACE, options()).unwrap();
    assert!(seen(&database, [newest]) == kept);
    assert_eq!(faults(&database), [""; 0]);
    let last = database.head().commit.0;
    database.retain(last, None).unwrap();
    assert!(seen(&database, [last]).len() == 1);
    assert_eq!(faults(&database), [""; 0]);
}

#[test]
fn what_is_not_live_is_left_behind() {
    let disk = SimVfs::new();
    let database = Holotype::create_on(Arc::new(disk.clone()), PLACE, options()).unwrap();
    let run = |script: &str| database.query(script, &Params::new()).map(drop).unwrap();
    run("record turn 'seen once' in episode 'e' with key = 'evidence'");
    run("record turn 'nobody cites it' in episode 'e' with key = 'alone'");
    run("remember fact 'cites' from 'evidence' with key = 'live'");
    run("remember fact 'cites too' from 'alone' with key = 'dead'");
    for key in ["evidence", "alone", "dead"] {
        let mut transaction = database.begin().unwrap();
        let id = transaction.find(&holotype::Target::Key(key.to_owned())).unwrap();
        transaction.mark(id, Mark::Inactive, None).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    let newest = database.head().commit.0;
    let old = database.snapshot();
    // The last to become inactive was live at the commit before.
    let report = database.retain(newest - 1, Some(Path::new("/archive"))).unwrap();
    assert_eq!(report.left, 0);
    let report = database.retain(newest, None).unwrap();
    assert_eq!(report.left, 2, "{report:?}");
    assert!(old.get("alone").unwrap().unwrap().attributes.redacted, "nor does a snapshot from before have it");
    let text = |key: &str| database.snapshot().get(key).unwrap().unwrap().content.text().to_owned();
    assert_eq!((text("evidence").as_str(), text("live").as_str(), text("alone").as_str()), ("seen once", "cites", ""));
    assert!(database.snapshot().get("dead").unwrap().unwrap().attributes.redacted);
    assert_eq!(holds(&disk, PLACE, "nobody cites it"), [""; 0].map(PathBuf::from));
    assert_eq!(faults(&database), [""; 0]);
}

#[test]
fn proofs_go_on_or_say_that_they_need_what_is_gone() {
    let disk = SimVfs::new();
    let database = story(&disk, 9000);
    let key = SignerKey::generate(&database.snapshot().origin()).unwrap();
    let old = database.snapshot().signed_checkpoint(&key).unwrap();
    let newest = database.head().commit.0;
    database.retain(newest - 5, None).unwrap();
    for number in 0..300 {
        write(&database, 10_000 + number * 6 + 4, 10, 1);
    }
    database.checkpoint().unwrap();
    let snapshot = database.snapshot();
    let growth = snapshot.prove_growth(&old, &key).unwrap();
    holotype::proof::check_growth(&growth, key.verifier()).unwrap();
    for key_of in ["t4", "t59", "t10004"] {
        let item = snapshot.get(key_of).unwrap().unwrap();
        let proof = snapshot.prove(item.id, &key).unwrap();
        let checked = check(&proof, key.verifier()).unwrap();
        assert_eq!(checked.content.unwrap().fields[0].1, item.content.text(), "{key_of}");
    }
    assert_eq!(faults(&database), [""; 0]);
    drop(snapshot);
    database.close().unwrap();
    let database = Holotype::rebuild_on(Arc::new(disk.clone()), PLACE, options()).unwrap();
    let growth = database.snapshot().prove_growth(&old, &key).unwrap();
    holotype::proof::check_growth(&growth, key.verifier()).unwrap();
    assert_eq!(faults(&database), [""; 0]);
}

#[test]
fn a_reader_goes_on_beside_it() {
    let disk = SimVfs::new();
    let create = Options { space: Some(Space::new("test", 2)), ..options() };
    let database = Holotype::create_on(Arc::new(disk.clone()), PLACE, create).unwrap();
    write(&database, 2, 9000, 8);
    let to_read =
        || Holotype::open_on(Arc::new(disk.clone()), PLACE, Options { read_only: true, ..options() }).unwrap();
    let early = to_read();
    for number in 3..=COMMITS {
        write(&database, number, 9000, 8);
    }
    let newest = database.head().commit.0;
    let reader = to_read();
    let before = seen(&reader, [newest]);
    database.retain(newest - 4, None).unwrap();
    assert!(reader.refresh().unwrap());
    assert!(seen(&reader, [newest]) == before);
    assert!(matches!(reader.snapshot().as_of(2), Err(Error::BeforeHistory { .. })));
    assert!(early.refresh().unwrap());
    assert!(seen(&early, [newest]) == before);
    write(&database, 2000, 10, 1);
    assert!(reader.refresh().unwrap());
    assert_eq!(faults(&reader), [""; 0]);
    drop((reader, early));
}
