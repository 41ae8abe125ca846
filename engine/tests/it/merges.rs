//! Segments merge behind the writers: nobody waits for it, and no answer changes.

use holotype::query::Params;
use holotype::{Durability, Holotype, ItemId, Layer, NewTrace, Options, Snapshot, Space};
use holotype_storage::vfs::SimVfs;
use std::collections::BTreeSet;
use std::sync::Arc;

const DIM: usize = 8;

fn vector(item: u32) -> Vec<f32> {
    (0..DIM as u32).map(|d| (((item % 977 * 7 + d) * (d + 3) + item) as f32 * 0.37).sin()).collect()
}

/// A checkpoint is due after few items, so that there are many.
fn options() -> Options {
    Options { space: Some(Space::new("test", DIM)), checkpoint_records: 150, ..Options::default() }
}

fn write(database: &Holotype, from: u32, count: u32) {
    let mut transaction = database.begin().unwrap();
    for item in from..from + count {
        let text = format!("item {item} says word{} and word{}", item % 7, item % 31);
        transaction.record(NewTrace::turn("e", text).vector(vector(item))).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
}

/// The items with a word, by the words alone.
fn with_word(snapshot: &Snapshot, word: &str) -> Vec<String> {
    let statement = format!("recall '{word}' through traces 20 by words limit 20");
    snapshot.query(&statement, &Params::new()).unwrap().iter().map(|output| format!("{:?}", rows(output))).collect()
}

fn rows(output: &holotype::answer::Output) -> Vec<(ItemId, f32)> {
    match output {
        holotype::answer::Output::Answer(answer) => answer.rows.iter().map(|row| (row.item, row.score)).collect(),
        other => panic!("no answer: {other:?}"),
    }
}

/// Vector parts of the traces: (form, items).
fn parts(database: &Holotype) -> Vec<(String, u64)> {
    let shown = database.snapshot().query("show segments", &Params::new()).unwrap().pop();
    let Some(holotype::answer::Output::Table(table)) = shown else { panic!("no table of segments") };
    let rows = table.typed::<(String, String, String, u64, Option<u64>)>().unwrap().into_iter();
    let vectors = rows.filter(|(layer, form, _, items, _)| layer == "trace" && form == "vectors" && *items > 0);
    vectors.map(|(_, _, part, items, _)| (part, items)).collect()
}

#[test]
fn what_is_written_is_found_before_during_and_after_merges() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.holo");
    let database = Holotype::create(&path, options()).unwrap();
    let mut snapshots = Vec::new();
    for commit in 0..80 {
        write(&database, commit * 100, 100);
        let snapshot = database.snapshot();
        let newest = commit * 100 + 99;
        let found = snapshot.nearest(Layer::Trace, &vector(newest), 10).unwrap();
        assert!(found.iter().any(|(id, score)| id.0 == newest && *score > 0.999), "{newest}: {found:?}");
        if commit % 16 == 3 {
            snapshots.push((with_word(&snapshot, "word3"), snapshot));
        }
    }
    for (before, snapshot) in &snapshots {
        assert_eq!(&with_word(snapshot, "word3"), before);
    }
    database.checkpoint().unwrap();
    for (before, snapshot) in &snapshots {
        assert_eq!(&with_word(snapshot, "word3"), before, "a snapshot keeps its segments");
    }
    let parts = parts(&database);
    assert!(parts.iter().any(|(part, items)| part == "graph" && *items >= 4000), "{parts:?}");
    assert_eq!(parts.iter().map(|(_, items)| items).sum::<u64>(), 8000);
    let words = with_word(&database.snapshot(), "word5");
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
    // A snapshot keeps the database open.
    drop(snapshots);
    database.close().unwrap();
    let database = Holotype::open(&path, options()).unwrap();
    assert_eq!(database.report().replayed, 0);
    assert_eq!(with_word(&database.snapshot(), "word5"), words);
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
}

#[test]
fn a_merge_that_compacting_overtakes_is_discarded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.holo");
    let database = Holotype::create(&path, options()).unwrap();
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| (0..6).for_each(|_| assert!(database.compact().unwrap().before > 0)));
        for commit in 0..40 {
            write(&database, commit * 100, 100);
        }
        compacting.join().unwrap();
    });
    database.checkpoint().unwrap();
    let found: BTreeSet<ItemId> =
        database.snapshot().nearest(Layer::Trace, &vector(1), 4000).unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(found.len(), 4000);
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
    database.close().unwrap();
    let named: usize = ["vectors", "words"].iter().map(|form| path.join(form).read_dir().unwrap().count()).sum();
    let database = Holotype::open(&path, options()).unwrap();
    assert_eq!(database.report().rebuilt, None);
    assert!(named <= 24, "{named} files");
}

#[test]
fn closing_leaves_merges_for_later_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.holo");
    let mut database = Holotype::create(&path, options()).unwrap();
    for round in 0..12 {
        write(&database, round * 400, 400);
        database.close().unwrap();
        database = Holotype::open(&path, options()).unwrap();
        assert_eq!((database.report().replayed, &database.report().rebuilt), (0, &None));
        let newest = round * 400 + 399;
        assert_eq!(database.snapshot().nearest(Layer::Trace, &vector(newest), 1).unwrap()[0].0.0 % 977, newest % 977);
    }
    let parts = parts(&database);
    assert!(parts.iter().any(|(part, _)| part == "graph"), "each process merges a little: {parts:?}");
    assert!(parts.len() <= 9, "{parts:?}");
}

/// Seals vectors, links them into a graph, extends that, and crashes after every few changes of the disk.
#[test]
fn a_crash_while_vectors_are_sealed_linked_and_published_loses_nothing() {
    const FIRST: u32 = 2_050;
    let sim = SimVfs::new();
    let options = || Options { checkpoint_records: u64::MAX, checkpoint_bytes: u64::MAX, ..options() };
    let database = Holotype::create_on(Arc::new(sim.clone()), "/a.holo", options()).unwrap();
    let commit = |from: u32, count: u32| {
        let mut transaction = database.begin().unwrap();
        for item in from..from + count {
            transaction.record(NewTrace::turn("e", format!("item {item}")).vector(vector(item))).unwrap();
        }
        transaction.commit(Durability::Sync).unwrap();
    };
    commit(0, FIRST);
    let written = sim.history_len();
    database.checkpoint().unwrap();
    assert_eq!(parts(&database), [("graph".to_owned(), u64::from(FIRST))]);
    commit(FIRST, FIRST);
    database.checkpoint().unwrap();
    assert_eq!(parts(&database), [("graph".to_owned(), 2 * u64::from(FIRST))]);
    drop(database);
    let mut cases = 0;
    for (step, point) in sim.replay().enumerate().skip(written).step_by(23) {
        for (number, state) in point.crashes(1, step as u64).into_iter().enumerate() {
            let context = format!("step {step}, state {number}");
            let open = Holotype::open_on(Arc::new(state), "/a.holo", Options { space: None, ..options() });
            let database = open.unwrap_or_else(|error| panic!("{context}: {error}"));
            let items = u64::from(database.snapshot().len());
            assert!(items == u64::from(FIRST) || items == 2 * u64::from(FIRST), "{context}: {items} items");
            assert_eq!(parts(&database).iter().map(|(_, count)| count).sum::<u64>(), items, "{context}");
            for item in [0, 1_000, FIRST - 1] {
                let found = database.snapshot().nearest(Layer::Trace, &vector(item), 10).unwrap();
                assert!(found.iter().any(|(id, _)| id.0 == item), "{context}: {item} is not in {found:?}");
            }
            cases += 1;
        }
    }
    assert!(cases > 2, "{cases} cases");
}
