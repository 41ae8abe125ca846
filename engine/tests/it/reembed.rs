//! All vectors made anew: unseen until all are there, one commit, and a crash at any step.

use crate::observed::{everything, faults};
use holotype::embed::{EmbedError, Embedder, HashingEmbedder};
use holotype::interchange::{self, ImportOptions};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{
    Change, Durability, Holotype, ItemId, Kind, Layer, NewRecall, NewTrace, Options, Pointer, ReembedOptions, Snapshot,
    Space,
};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const DATABASE: &str = "/memory.holo";
const OLD: usize = 8;
const NEW: usize = 12;

fn options() -> Options {
    Options { page_size: 4096, clock: Arc::new(FixedClock(1_770_000_000_000_000)), ..Options::default() }
}

fn with_old() -> Options {
    options().embedder(HashingEmbedder::new(OLD))
}

/// Items of every layer, one without words, in two transactions and a checkpoint between.
fn fill(database: &Holotype) {
    for part in 0..2 {
        let mut transaction = database.begin().unwrap();
        for number in 0..3 {
            let text = format!("the night train {part} {number} to Lisbon");
            transaction.record(NewTrace::turn("e", text).key(format!("t{part}{number}"))).unwrap();
        }
        let fact = NewRecall::fact(format!("a train number {part} exists")).key(format!("f{part}"));
        transaction.remember(fact.from(Pointer::to_key(format!("t{part}0")))).unwrap();
        let theme = NewRecall::new(Kind::Theme, format!("trains {part}")).key(format!("h{part}"));
        transaction.remember(theme).unwrap();
        transaction.record(NewTrace::turn("e", " ").key(format!("blank{part}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        if part == 0 {
            database.checkpoint().unwrap();
        }
    }
}

fn model() -> HashingEmbedder {
    HashingEmbedder::new(NEW)
}

fn space() -> Space {
    Space::new(model().name(), NEW)
}

fn small_batches() -> ReembedOptions {
    ReembedOptions { batch: 3, ..ReembedOptions::default() }
}

/// Checks that every vector is the model's: in the records, in the index and in the space.
pub(super) fn check(snapshot: &Snapshot, dim: usize, context: &str) {
    let model = HashingEmbedder::new(dim);
    assert_eq!(snapshot.space().unwrap().map(|space| space.dim), Some(dim), "{context}");
    for id in (0..snapshot.len()).map(ItemId) {
        let item = snapshot.item(id).unwrap();
        let expected = model.embed(item.content.text());
        assert_eq!(snapshot.vector(id).unwrap(), expected, "{context}: {}", item.key);
        assert_eq!(item.attributes.has_vector, expected.is_some(), "{context}: {}", item.key);
        let Some(vector) = expected else { continue };
        let layer = item.attributes.kind.layer();
        let near = snapshot.nearest(layer, &vector, 100).unwrap();
        let found = near.iter().find(|(found, _)| *found == id);
        assert!(found.is_some_and(|(_, similarity)| *similarity > 0.9999), "{context}: {} {found:?}", item.key);
    }
    let with_vector = (0..snapshot.len()).filter(|id| snapshot.vector(ItemId(*id)).unwrap().is_some()).count();
    let indexed: usize = Layer::ALL
        .iter()
        .map(|layer| snapshot.nearest(*layer, &model.embed("a train").unwrap(), 100).unwrap().len())
        .sum();
    assert_eq!(indexed, with_vector, "{context}: vectors in the index");
}

/// A model that looks at the database whenever it is asked.
#[derive(Debug)]
struct Watching {
    database: Holotype,
    inner: HashingEmbedder,
    calls: AtomicUsize,
    fails_at: usize,
}

impl Embedder for Watching {
    fn fingerprint(&self) -> String {
        self.inner.name()
    }

    fn dimensions(&self) -> usize {
        self.inner.dim()
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        check(&self.database.snapshot(), OLD, "while new vectors are made");
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            return Err(EmbedError::new("the model stopped"));
        }
        self.inner.embed_passages(texts)
    }
}

#[test]
fn all_vectors_change_at_once_and_old_snapshots_keep_theirs() {
    let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new());
    let database = Holotype::create_on(Arc::clone(&vfs), DATABASE, with_old()).unwrap();
    fill(&database);
    check(&database.snapshot(), OLD, "before");
    let before = database.snapshot();
    let since = before.commit();
    let watching =
        Watching { database: database.clone(), inner: model(), calls: AtomicUsize::new(0), fails_at: usize::MAX };
    let report = database.reembed(&space(), &watching, &small_batches()).unwrap();
    assert_eq!((report.embedded, report.without, report.resumed), (10, 2, 0));
    assert_eq!(report.commit, database.snapshot().commit());
    assert!(watching.calls.load(Ordering::Relaxed) >= 4);
    check(&database.snapshot(), NEW, "after");
    check(&before, OLD, "a snapshot from before");
    let told: Vec<Change> = database.changes(since).unwrap().map(|change| change.unwrap().what).collect();
    assert_eq!(told, [Change::Reembedded(space())]);
    assert_eq!(faults(&database), [""; 0]);
    drop((before, watching));

    // Later items are of the new space, and stay so in every way in which the files can be made again.
    database.close().unwrap();
    let error = Holotype::open_on(Arc::clone(&vfs), DATABASE, with_old()).unwrap_err();
    assert_eq!(error.code(), "other-embedder");
    let with_new = || options().embedder(model());
    let database = Holotype::open_on(Arc::clone(&vfs), DATABASE, with_new()).unwrap();
    assert_eq!(database.report().rebuilt, None);
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "a later train").key("later")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    check(&database.snapshot(), NEW, "with a later item");
    let whole = everything(&database.snapshot()).unwrap();
    database.close().unwrap();
    let read_only = Options { read_only: true, ..with_new() };
    let reader = Holotype::open_on(Arc::clone(&vfs), DATABASE, read_only).unwrap();
    check(&reader.snapshot(), NEW, "read only");
    drop(reader);
    for all in [false, true] {
        let database = match all {
            false => Holotype::rebuild_on(Arc::clone(&vfs), DATABASE, with_new()),
            true => Holotype::rebuild_all_on(Arc::clone(&vfs), DATABASE, with_new()),
        }
        .unwrap();
        check(&database.snapshot(), NEW, "rebuilt");
        assert_eq!(everything(&database.snapshot()).unwrap(), whole);
        assert_eq!(faults(&database), [""; 0]);
        database.close().unwrap();
    }
    let database = Holotype::open_on(vfs, DATABASE, with_new()).unwrap();
    database.compact().unwrap();
    check(&database.snapshot(), NEW, "compacted");
    // And once more.
    let report = database.reembed(&Space::new("hashing-v1-5", 5), &HashingEmbedder::new(5), &small_batches()).unwrap();
    assert_eq!((report.embedded, report.without), (11, 2));
    check(&database.snapshot(), 5, "a second time");
    assert_eq!(faults(&database), [""; 0]);
}

#[test]
fn an_interrupted_reembedding_goes_on_and_another_model_begins_anew() {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), DATABASE, with_old()).unwrap();
    fill(&database);
    let stopping = Watching { database: database.clone(), inner: model(), calls: AtomicUsize::new(0), fails_at: 2 };
    let error = database.reembed(&space(), &stopping, &small_batches()).unwrap_err();
    assert!(error.to_string().contains("the model stopped"), "{error}");
    check(&database.snapshot(), OLD, "interrupted");
    // Another model takes nothing of what the first one wrote.
    let report = database.clone().reembed(&Space::new("hashing-v1-5", 5), &HashingEmbedder::new(5), &small_batches());
    assert_eq!(report.unwrap().resumed, 0);
    check(&database.snapshot(), 5, "another model");

    let database = Holotype::create_on(Arc::new(SimVfs::new()), DATABASE, with_old()).unwrap();
    fill(&database);
    let stopping = Watching { database: database.clone(), inner: model(), calls: AtomicUsize::new(0), fails_at: 2 };
    database.reembed(&space(), &stopping, &small_batches()).unwrap_err();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "a train in between").key("between")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let report = database.reembed(&space(), &model(), &small_batches()).unwrap();
    assert_eq!((report.resumed, report.embedded + report.without), (6, 7));
    check(&database.snapshot(), NEW, "gone on");
}

#[test]
fn a_crash_at_any_step_leaves_all_old_or_all_new_vectors_and_the_work_goes_on() {
    let undisturbed = SimVfs::new();
    let database = Holotype::create_on(Arc::new(undisturbed.clone()), DATABASE, with_old()).unwrap();
    fill(&database);
    database.close().unwrap();
    let begun = undisturbed.replay().count();
    let database = Holotype::open_on(Arc::new(undisturbed.clone()), DATABASE, with_old()).unwrap();
    database.reembed(&space(), &model(), &small_batches()).unwrap();
    database.close().unwrap();
    let (mut old, mut new, mut resumed) = (0, 0, 0);
    for (step, point) in undisturbed.replay().enumerate() {
        if step < begun {
            continue;
        }
        for (number, state) in point.crashes(3, step as u64).into_iter().enumerate() {
            let context = format!("step {step}, state {number}");
            let database = Holotype::open_on(Arc::new(state), DATABASE, options());
            let database = database.unwrap_or_else(|error| panic!("{context}: {error}"));
            let dim = database.snapshot().space().unwrap().unwrap().dim;
            check(&database.snapshot(), dim, &context);
            if dim == NEW {
                new += 1;
                continue;
            }
            old += 1;
            if step % 2 == 0 {
                let report = database.reembed(&space(), &model(), &small_batches()).unwrap();
                resumed += report.resumed;
                check(&database.snapshot(), NEW, &context);
                assert_eq!(faults(&database), [""; 0], "{context}");
            }
        }
    }
    assert!(old > 10 && new > 10 && resumed > 0, "{old} old, {new} new, {resumed} resumed");
}

#[test]
fn forgetting_retention_export_and_followers_know_the_new_vectors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let database = Holotype::create(&path, Options { exclusive: false, ..with_old() }).unwrap();
    fill(&database);
    let reader = Holotype::open(&path, Options::read_only()).unwrap();
    let beside = Holotype::open(&path, Options::shared()).unwrap();
    check(&reader.snapshot(), OLD, "a reader before");
    check(&beside.snapshot(), OLD, "a writer beside, before");
    // One item is forgotten after its new vector was written and before it is seen, one afterwards.
    let stopping = Watching { database: database.clone(), inner: model(), calls: AtomicUsize::new(0), fails_at: 2 };
    database.reembed(&space(), &stopping, &small_batches()).unwrap_err();
    drop(stopping);
    let forget = |database: &Holotype, key: &str| {
        database.query(&format!("forget '{key}' because 'private'"), &Params::new()).unwrap();
    };
    forget(&database, "t00");
    database.reembed(&space(), &model(), &small_batches()).unwrap();
    check(&database.snapshot(), NEW, "after a forget in between");
    forget(&database, "t01");
    check(&database.snapshot(), NEW, "after a forget");
    reader.refresh().unwrap();
    check(&reader.snapshot(), NEW, "a reader after");
    check(&beside.snapshot(), NEW, "a writer beside, after");
    let mut transaction = beside.begin().unwrap();
    let vector = model().embed("beside").unwrap();
    transaction.record(NewTrace::turn("e", "beside").vector(vector)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    drop((reader, beside));
    assert_eq!(faults(&database), [""; 0]);

    let mut lines = Vec::new();
    interchange::export(&database.snapshot(), &mut lines, None).unwrap();
    let copy = Holotype::create(dir.path().join("copy"), Options::default()).unwrap();
    let none = ImportOptions::default();
    for added in [true, false] {
        let report = interchange::import(&copy, "copy", lines.as_slice(), None, &none, &mut |_| {}).unwrap();
        assert_eq!(report.added > 0, added, "{report:?}");
    }
    check(&copy.snapshot(), NEW, "a copy");

    database.close().unwrap();
    let database = Holotype::open(&path, Options::default()).unwrap();
    let newest = database.snapshot().commit();
    database.retain(newest, None).unwrap();
    check(&database.snapshot(), NEW, "retained");
    assert_eq!(faults(&database), [""; 0]);
    database.close().unwrap();
    let database = Holotype::rebuild_all(&path, Options::default()).unwrap();
    check(&database.snapshot(), NEW, "retained and rebuilt");
    assert_eq!(faults(&database), [""; 0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), DATABASE, with_old()).unwrap();
    fill(&database);
    let error = database.reembed(&Space::new("x", 3), &model(), &ReembedOptions::default()).unwrap_err();
    assert_eq!(error.code(), "vector");
    let error = database.reembed(&Space::new("", NEW), &model(), &ReembedOptions::default()).unwrap_err();
    assert_eq!(error.code(), "vector");
    check(&database.snapshot(), OLD, "refused");
}
