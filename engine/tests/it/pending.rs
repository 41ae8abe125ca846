//! Pending vectors: written without the model, filled later, in batches, once.

use crate::observed::{everything, faults};
use crate::reembed::check;
use holotype::answer::{Answer, Output};
use holotype::embed::{EmbedError, Embedder, HashingEmbedder};
use holotype::interchange::{self, ImportOptions};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{
    Durability, Holotype, ItemId, Kind, NewRecall, NewTrace, Options, Pointer, ReembedOptions, Snapshot, Space,
};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::sync::Arc;

const DATABASE: &str = "/memory.holo";
const DIM: usize = 8;

fn without() -> Options {
    Options { page_size: 4096, clock: Arc::new(FixedClock(1_770_000_000_000_000)), ..Options::default() }
}

fn with_model() -> Options {
    without().embedder(Named::default())
}

/// The built-in model under a name that is not its own, as a model that a process may lack.
#[derive(Debug)]
struct Named {
    name: &'static str,
    dim: usize,
}

impl Default for Named {
    fn default() -> Named {
        Named { name: "model-1", dim: DIM }
    }
}

impl Embedder for Named {
    fn fingerprint(&self) -> String {
        self.name.to_owned()
    }

    fn dimensions(&self) -> usize {
        self.dim
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        HashingEmbedder::new(self.dim).embed_passages(texts)
    }
}

/// Writes items of every layer, a call without a text and a blank one, in two transactions.
fn write(database: &Holotype, name: &str) {
    for part in 0..2 {
        let mut transaction = database.begin().unwrap();
        for number in 0..3 {
            let text = format!("the night train {name} {part} {number} to Lisbon");
            transaction.record(NewTrace::turn("e", text).key(format!("{name}-t{part}{number}"))).unwrap();
        }
        let fact = NewRecall::fact(format!("a train {name} {part} exists")).key(format!("{name}-f{part}"));
        transaction.remember(fact.from(Pointer::to_key(format!("{name}-t{part}0")))).unwrap();
        transaction.remember(NewRecall::new(Kind::Theme, format!("trains {name} {part}"))).unwrap();
        transaction.record(NewTrace::turn("e", " ").key(format!("{name}-blank{part}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
}

const TEXTS: u64 = 10;

fn pending(database: &Holotype) -> u64 {
    let counted = database.stats().unwrap().content.pending;
    let listed = database.snapshot().without_vector(usize::MAX).unwrap().len() as u64;
    assert_eq!(counted, listed);
    counted
}

fn ask(snapshot: &Snapshot) -> Answer {
    let output = snapshot.query("recall 'the night train'", &Params::new()).unwrap().remove(0);
    let Output::Answer(answer) = output else { panic!("an answer") };
    *answer
}

#[test]
fn what_a_process_without_the_model_writes_is_filled_later_and_stays_so() {
    let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new());
    let open = |options| Holotype::open_on(Arc::clone(&vfs), DATABASE, options).unwrap();
    Holotype::create_on(Arc::clone(&vfs), DATABASE, with_model()).unwrap().close().unwrap();
    let database = open(without());
    // The space of a new database is the embedder's, also where the caller gives all vectors.
    assert_eq!(database.snapshot().space().unwrap(), Some(Space::new("model-1", DIM)));
    write(&database, "a");
    assert_eq!(pending(&database), TEXTS);
    assert_eq!(database.embed_pending(9).unwrap_err().code(), "embedder");
    let answer = ask(&database.snapshot());
    assert_eq!((answer.pending, &answer.to_json(None)["pending"]), (TEXTS, &TEXTS.into()));
    database.checkpoint().unwrap();
    write(&database, "b");
    database.close().unwrap();

    let database = open(with_model());
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "a train with its vector").key("own")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let (before, listing) = (database.snapshot(), everything(&database.snapshot()).unwrap());
    // Vectors of earlier items come after that of a later one, before, between and after checkpoints.
    let report = database.embed_pending(3).unwrap();
    assert_eq!((report.embedded, report.without, report.pending), (3, 0, 2 * TEXTS - 3));
    database.checkpoint().unwrap();
    assert_eq!(database.embed_pending(5).unwrap().embedded, 5);
    assert_eq!(ask(&database.snapshot()).pending, 2 * TEXTS - 8);
    assert_eq!(database.embed_pending(u64::MAX).unwrap().embedded, 2 * TEXTS - 8);
    assert_eq!(database.embed_pending(u64::MAX).unwrap().embedded, 0);
    assert_eq!(ask(&database.snapshot()).to_json(None).get("pending"), None);
    check(&database.snapshot(), DIM, "filled");
    assert_eq!((pending(&database), before.without_vector(99).unwrap().len() as u64), (0, 2 * TEXTS));
    // It changes no fact, and the past has it, too.
    assert_eq!(database.changes(before.commit()).unwrap().count(), 0);
    let past = database.snapshot().as_of(before.commit()).unwrap();
    assert_eq!(past.vector(ItemId(0)).unwrap(), database.snapshot().vector(ItemId(0)).unwrap());
    assert_eq!(everything(&before).unwrap(), listing);
    assert_eq!(faults(&database), [""; 0]);
    let whole = everything(&database.snapshot()).unwrap();

    // Without a close, after one, rebuilt with and without segments, and compacted.
    drop((before, past, database));
    let database = open(with_model());
    check(&database.snapshot(), DIM, "opened without a clean end");
    database.close().unwrap();
    for all in [false, true] {
        let database = match all {
            false => Holotype::rebuild_on(Arc::clone(&vfs), DATABASE, with_model()),
            true => Holotype::rebuild_all_on(Arc::clone(&vfs), DATABASE, with_model()),
        }
        .unwrap();
        check(&database.snapshot(), DIM, "rebuilt");
        assert_eq!(everything(&database.snapshot()).unwrap(), whole);
        assert_eq!((faults(&database), pending(&database)), (Vec::new(), 0));
        database.close().unwrap();
    }
    let database = open(with_model());
    database.compact().unwrap();
    check(&database.snapshot(), DIM, "compacted");
    assert_eq!((faults(&database), pending(&database)), (Vec::new(), 0));
}

#[test]
fn new_vectors_for_all_forgetting_retention_and_copies_know_filled_items() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    Holotype::create(&path, with_model()).unwrap().close().unwrap();
    let database = Holotype::open(&path, without()).unwrap();
    write(&database, "a");
    let forget = |database: &Holotype, key: &str| {
        database.query(&format!("forget '{key}' because 'private'"), &Params::new()).unwrap();
    };
    forget(&database, "a-t00");
    assert_eq!(pending(&database), TEXTS - 1);
    database.close().unwrap();
    let database = Holotype::open(&path, with_model()).unwrap();
    assert_eq!(database.embed_pending(u64::MAX).unwrap().embedded, TEXTS - 1);
    forget(&database, "a-t01");
    check(&database.snapshot(), DIM, "after a forget");
    let mut lines = Vec::new();
    interchange::export(&database.snapshot(), &mut lines, None).unwrap();
    let copy = Holotype::create(dir.path().join("copy"), Options::default()).unwrap();
    for added in [true, false] {
        let none = ImportOptions::default();
        let report = interchange::import(&copy, "copy", lines.as_slice(), None, &none, &mut |_| {}).unwrap();
        assert_eq!(report.added > 0, added, "{report:?}");
    }
    check(&copy.snapshot(), DIM, "a copy");
    assert_eq!(pending(&copy), 0);

    let options = ReembedOptions { batch: 3, ..ReembedOptions::default() };
    let other = || Named { name: "model-2", dim: 12 };
    database.reembed(&Space::new("model-2", 12), &other(), &options).unwrap();
    database.close().unwrap();
    let database = Holotype::open(&path, without()).unwrap();
    check(&database.snapshot(), 12, "all made anew");
    write(&database, "b");
    assert_eq!(pending(&database), TEXTS);
    database.close().unwrap();
    let database = Holotype::open(&path, without().embedder(other())).unwrap();
    database.embed_pending(4).unwrap();
    forget(&database, "b-t00");
    assert_eq!(database.embed_pending(u64::MAX).unwrap().pending, 0);
    check(&database.snapshot(), 12, "filled in the new space");
    let newest = database.snapshot().commit();
    database.retain(newest, None).unwrap();
    check(&database.snapshot(), 12, "retained");
    assert_eq!(faults(&database), [""; 0]);
    database.close().unwrap();
    let database = Holotype::rebuild_all(&path, without()).unwrap();
    check(&database.snapshot(), 12, "retained and rebuilt");
    assert_eq!((faults(&database), pending(&database)), (Vec::new(), 0));
    database.close().unwrap();
    holotype::salvage(&path, dir.path().join("salvaged")).unwrap();
    let salvaged = Holotype::open(dir.path().join("salvaged"), without()).unwrap();
    check(&salvaged.snapshot(), 12, "salvaged");
    assert_eq!(pending(&salvaged), 0);
}

#[test]
fn several_processes_fill_each_item_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    Holotype::create(&path, with_model()).unwrap().close().unwrap();
    let beside = Holotype::open(&path, Options::append_only()).unwrap();
    let mut transaction = beside.begin().unwrap();
    for number in 0..90 {
        transaction.record(NewTrace::turn("e", format!("train {number}"))).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    let shared = || Options::shared().embedder(Named::default());
    let handles: Vec<Holotype> = (0..3).map(|_| Holotype::open(&path, shared()).unwrap()).collect();
    let filled: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> =
            handles.iter().map(|handle| scope.spawn(|| handle.embed_pending(u64::MAX).unwrap().embedded)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(filled, 90);
    drop((handles, beside));
    let database = Holotype::open(&path, without()).unwrap();
    check(&database.snapshot(), DIM, "filled by three");
    assert_eq!((faults(&database), pending(&database)), (Vec::new(), 0));
}

#[test]
fn a_crash_at_any_step_loses_no_item_and_fills_none_twice() {
    let undisturbed = SimVfs::new();
    let database = Holotype::create_on(Arc::new(undisturbed.clone()), DATABASE, with_model()).unwrap();
    database.close().unwrap();
    let database = Holotype::open_on(Arc::new(undisturbed.clone()), DATABASE, without()).unwrap();
    write(&database, "a");
    database.close().unwrap();
    let begun = undisturbed.replay().count();
    let database = Holotype::open_on(Arc::new(undisturbed.clone()), DATABASE, with_model()).unwrap();
    database.embed_pending(4).unwrap();
    database.checkpoint().unwrap();
    database.embed_pending(u64::MAX).unwrap();
    database.close().unwrap();
    let mut found = std::collections::BTreeSet::new();
    for (step, point) in undisturbed.replay().enumerate().skip(begun) {
        for (number, state) in point.crashes(2, step as u64).into_iter().enumerate() {
            let context = format!("step {step}, state {number}");
            let database = Holotype::open_on(Arc::new(state), DATABASE, with_model());
            let database = database.unwrap_or_else(|error| panic!("{context}: {error}"));
            let left = pending(&database);
            found.insert(left);
            assert_eq!(database.embed_pending(u64::MAX).unwrap().embedded, left, "{context}");
            check(&database.snapshot(), DIM, &context);
        }
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [0, TEXTS - 4, TEXTS]);
}

#[test]
fn a_vector_is_set_where_there_is_none() {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), DATABASE, without()).unwrap();
    let mut transaction = database.begin().unwrap();
    let id = transaction.record(NewTrace::turn("e", "a train")).unwrap();
    assert_eq!(transaction.set_vector(id, [1.0, 2.0]).unwrap_err().code(), "vector");
    transaction.define_space(&Space::new("mine", 2)).unwrap();
    assert_eq!(transaction.set_vector(id, [1.0]).unwrap_err().code(), "vector");
    transaction.set_vector(id, [1.0, 2.0]).unwrap();
    let near = transaction.snapshot().unwrap().nearest(holotype::Layer::Trace, &[1.0, 2.0], 5).unwrap();
    assert_eq!(near.len(), 1, "the transaction sees its own vectors");
    let error = transaction.set_vector(id, [1.0, 2.0]).unwrap_err();
    assert!(error.to_string().contains("item #0 has a vector: a vector is set where there is none"), "{error}");
    assert_eq!(transaction.set_vector(ItemId(7), [1.0, 2.0]).unwrap_err().code(), "missing");
    // A space of vectors that callers give has no model: nothing is pending there.
    let bare = transaction.record(NewTrace::turn("e", "another train")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(database.snapshot().vector(id).unwrap(), Some(vec![1.0, 2.0]));
    assert_eq!(database.snapshot().without_vector(9).unwrap(), [bare]);
    assert_eq!(database.stats().unwrap().content.pending, 0);
    assert_eq!(ask(&database.snapshot()).pending, 0);
}
