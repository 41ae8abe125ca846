//! A database that cannot be opened is left as it was found.

use holotype::query::Params;
use holotype::{Durability, Encoding, Error, ErrorClass, Holotype, Metric, NewTrace, Options, Space};
use holotype_storage::vfs::{SimVfs, Vfs};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DATABASE: &str = "/memory.holo";

fn open(sim: &SimVfs, options: Options) -> holotype::Result<Holotype> {
    Holotype::open_on(Arc::new(sim.clone()), DATABASE, options)
}

fn written() -> SimVfs {
    let sim = SimVfs::new();
    let options = Options { page_size: 4096, ..Options::default() };
    let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, options).unwrap();
    for number in 0..3 {
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("e", format!("said {number}")).key(format!("t{number}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    database.close().unwrap();
    sim
}

/// With derived files missing and the log damaged, the catalog was made anew before the log was looked at: the evidence
/// it held of what had been durable was gone, and so were files that a repaired log could have used.
#[test]
fn a_damaged_log_is_refused_before_anything_derived_is_touched() {
    for damage in [4096 + 40, 4096 + 41] {
        let sim = written();
        let segment = Path::new("/memory.holo/log/0000000001.log");
        let columns = Path::new("/memory.holo/columns/0-0000000001.cseg");
        let bytes = sim.bytes(columns).unwrap();
        sim.remove(columns).unwrap();
        sim.flip(segment, damage, 1).unwrap();
        let before = sim.files();
        for _ in 0..2 {
            let error = open(&sim, Options::default()).unwrap_err();
            assert_eq!((error.code(), error.class()), ("damaged", ErrorClass::Open), "{error}");
            assert!(error.to_string().contains("0000000001.log"), "{error}");
            assert_eq!(sim.files(), before);
        }
        sim.flip(segment, damage, 1).unwrap();
        sim.replace(columns, &bytes);
        let database = open(&sim, Options::default()).unwrap();
        assert_eq!(database.report().rebuilt, None, "the last checkpoint is as it was");
        assert!(database.snapshot().get("t2").unwrap().is_some());
    }
}

/// A rebuild counted the generations of derived files from 1 again, and gave new files the names of old ones.
#[test]
fn a_rebuild_gives_no_file_a_name_that_was_used_before() {
    let sim = written();
    let derived = |sim: &SimVfs| -> Vec<PathBuf> {
        sim.files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "cseg")).collect()
    };
    let before = derived(&sim);
    assert_eq!(before.len(), 1);
    sim.remove(Path::new("/memory.holo/catalog.redb")).unwrap();
    open(&sim, Options::default()).unwrap().close().unwrap();
    let after = derived(&sim);
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
}

fn record(database: &Holotype, key: &str, vector: Vec<f32>) -> holotype::Result<()> {
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::turn("e", key).key(key).vector(vector))?;
    transaction.commit(Durability::Sync)?;
    Ok(())
}

/// A vector whose squared length no index holds was appended to the log and only then refused. The commit failed, the
/// item was lost, closing noted a clean end behind it, the next item took its number, and every rebuild failed from
/// then on.
#[test]
fn a_vector_too_long_for_the_index_is_refused_before_it_reaches_the_log() {
    for metric in [Metric::Dot, Metric::L2] {
        let sim = SimVfs::new();
        let options = Options::with_space(Space::new("test", 2).metric(metric));
        let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, options).unwrap();
        let head = database.head();
        let error = record(&database, "long", vec![3e38, 3e38]).unwrap_err();
        assert_eq!((error.code(), error.class()), ("vector", ErrorClass::Input), "{error}");
        assert!(error.to_string().contains("squared length") && error.to_string().contains("scale"), "{error}");
        assert_eq!(database.head().hash, head.hash, "the log is as it was");
        record(&database, "short", vec![1.0, 2.0]).unwrap();
        database.close().unwrap();
        let database = Holotype::rebuild_all_on(Arc::new(sim), DATABASE, Options::default()).unwrap();
        assert_eq!(database.snapshot().len(), 1);
        assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the magnitude, metric and encoding: a vector is refused before the append, or the log that holds it can
    /// be applied again from its beginning.
    #[test]
    fn what_is_committed_can_be_replayed(
        metric in prop::sample::select(vec![Metric::Cosine, Metric::Dot, Metric::L2]),
        encoding in prop::sample::select(vec![Encoding::F32, Encoding::F16, Encoding::I8]),
        vectors in prop::collection::vec((prop::array::uniform3(-1.0_f32..1.0), -46_i32..39), 1..6),
    ) {
        let sim = SimVfs::new();
        let options = Options::with_space(Space::new("test", 3).metric(metric).encoding(encoding));
        let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, options).unwrap();
        let mut items = 0;
        for (number, (direction, exponent)) in vectors.into_iter().enumerate() {
            let vector = direction.map(|x| (f64::from(x) * 10_f64.powi(exponent)) as f32);
            match record(&database, &format!("t{number}"), vector.to_vec()) {
                Ok(()) => items += 1,
                Err(error) => prop_assert_eq!(error.code(), "vector", "{}", error),
            }
        }
        database.close().unwrap();
        let database = Holotype::rebuild_all_on(Arc::new(sim), DATABASE, Options::default()).unwrap();
        prop_assert_eq!(database.snapshot().len(), items);
        prop_assert!(database.report().skipped.is_empty());
        let report = database.verify(&mut |_, _| {}).unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.faults);
    }
}

/// The step after the last one was 0 again, or a panic; one above 2^63 - 1 was shown as that, and found by no equality.
#[test]
fn no_step_follows_the_last_one() {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    for above in [1 << 63, u64::MAX] {
        let refused = transaction.record(NewTrace::turn("e", "beyond").step(above)).unwrap_err();
        assert!(refused.to_string().contains("above 9223372036854775807"), "{refused}");
    }
    transaction.record(NewTrace::turn("e", "the last").key("last").step(i64::MAX as u64)).unwrap();
    let refused = transaction.record(NewTrace::turn("e", "one more")).unwrap_err();
    assert!(refused.to_string().contains("no step follows 9223372036854775807"), "{refused}");
    transaction.record(NewTrace::turn("e", "an earlier one").step(7)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    for script in [
        "recall 'last' in episode 'e' at step 18446744073709551615",
        "recall 'last' in episode 'e' at step 0 exclude stale by step > 18446744073709551615",
        "find traces where step >= 18446744073709551615",
        "find traces where step > 9223372036854775807",
    ] {
        if let Err(error) = database.query(script, &Params::new()) {
            assert!(matches!(error, Error::Query(_)), "{script}: {error}");
        }
    }
    let found = database.query("find traces where step = 9223372036854775807 return key, step", &Params::new());
    let found = format!("{:?}", found.unwrap());
    assert!(found.contains("last") && found.contains("9223372036854775807"), "{found}");
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
}
