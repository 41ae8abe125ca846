//! A bulk load is invisible until it is done, and continues after a crash at any step.

use crate::observed::{everything, faults};
use holotype::time::FixedClock;
use holotype::{Durability, Error, Holotype, Layer, NewTrace, Options, Space, Target};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

const DATABASE: &str = "/memory.holo";
const TRANSACTIONS: u32 = 4;

fn options() -> Options {
    Options {
        page_size: 4096,
        space: Some(Space::new("test", 2)),
        clock: Arc::new(FixedClock(1_770_000_000_000_000)),
        ..Options::default()
    }
}

/// Loads what is not loaded yet: a transaction is known by the key of its first item.
fn load(sim: &SimVfs) -> holotype::Result<Holotype> {
    let load = Holotype::bulk_load_on(Arc::new(sim.clone()), DATABASE, options())?;
    for number in 0..TRANSACTIONS {
        let mut transaction = load.database().begin()?;
        let key = format!("t{number}");
        if transaction.find(&Target::Key(key.clone())).is_ok() {
            continue;
        }
        transaction.record(NewTrace::turn("e", format!("said {number}")).key(key).vector(vec![1.0, number as f32]))?;
        transaction.record(NewTrace::turn("e", format!("then {number}")).vector(vec![number as f32, 1.0]))?;
        transaction.commit(Durability::None)?;
    }
    load.finish()
}

/// True if the name is there; then the database must be whole.
fn is_loaded(sim: &SimVfs, whole: &str, context: &str) -> bool {
    match Holotype::open_on(Arc::new(sim.clone()), DATABASE, Options { space: None, ..options() }) {
        Err(Error::NotFound { .. }) => false,
        Ok(database) => {
            assert_eq!(everything(&database.snapshot()).unwrap(), whole, "{context}");
            true
        }
        Err(error) => panic!("{context}: {error}"),
    }
}

#[test]
fn a_load_has_no_name_before_it_is_done() {
    let sim = SimVfs::new();
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    let load = Holotype::bulk_load_on(Arc::clone(&vfs), DATABASE, options()).unwrap();
    assert!(!load.is_resumed());
    assert_eq!(load.place(), Path::new("/memory.holo.loading"));
    let mut transaction = load.database().begin().unwrap();
    for number in 0..3000_u32 {
        let vector = vec![(number as f32).sin(), (number as f32).cos()];
        transaction.record(NewTrace::turn("e", format!("number {number}")).vector(vector)).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    assert!(matches!(Holotype::open_on(Arc::clone(&vfs), DATABASE, Options::default()), Err(Error::NotFound { .. })));
    assert!(Holotype::bulk_load_on(Arc::clone(&vfs), DATABASE, options()).is_err(), "it is being loaded");
    let database = load.finish().unwrap();
    assert!(!sim.files().iter().any(|path| path.starts_with("/memory.holo.loading")));
    let snapshot = database.snapshot();
    assert_eq!(snapshot.len(), 3000);
    let found = snapshot.nearest(Layer::Trace, &[7_f32.sin(), 7_f32.cos()], 1).unwrap();
    assert!(found[0].1 > 0.9999, "{found:?}");
    drop((snapshot, database));
    let again = Holotype::bulk_load_on(vfs, DATABASE, options());
    assert!(matches!(again, Err(Error::Exists { .. })));
}

#[test]
fn a_load_that_is_dropped_is_continued_and_one_that_is_discarded_leaves_nothing() {
    let sim = SimVfs::new();
    let start = || Holotype::bulk_load_on(Arc::new(sim.clone()), DATABASE, options()).unwrap();
    let load = start();
    let mut transaction = load.database().begin().unwrap();
    transaction.record(NewTrace::turn("e", "first").key("first")).unwrap();
    transaction.commit(Durability::None).unwrap();
    drop(load);
    let load = start();
    assert!(load.is_resumed());
    assert_eq!(load.database().snapshot().len(), 1);
    load.discard().unwrap();
    assert!(sim.files().is_empty(), "{:?}", sim.files());
    assert!(!start().is_resumed());
}

#[test]
fn a_load_is_all_or_nothing_after_a_crash_at_any_step_and_can_be_continued() {
    let undisturbed = SimVfs::new();
    let whole = everything(&load(&undisturbed).unwrap().snapshot()).unwrap();
    let (mut nothing, mut all) = (0, 0);
    for (step, point) in undisturbed.replay().enumerate() {
        for (number, state) in point.crashes(3, step as u64).into_iter().enumerate() {
            let context = format!("step {step}, state {number}");
            if is_loaded(&state, &whole, &context) {
                all += 1;
                continue;
            }
            nothing += 1;
            if step % 7 == 0 {
                let database = load(&state).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(everything(&database.snapshot()).unwrap(), whole, "{context}");
                assert!(faults(&database).is_empty(), "{context}");
            }
        }
    }
    assert!(nothing > 0 && all > 0, "{nothing} without, {all} with the database");
}
