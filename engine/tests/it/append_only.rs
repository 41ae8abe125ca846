//! Handles that only append: each opens, records a little and closes, and leaves checkpoints to others.

use crate::observed::{everything, faults};
use holotype::query::Params;
use holotype::{Durability, Error, Holotype, ItemId, NewTrace, Options};
use holotype_storage::vfs::{Crash, Failure, SimVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "/db";

fn appending() -> Options {
    Options { page_size: 4096, ..Options::append_only() }
}

fn full() -> Options {
    Options { page_size: 4096, ..Options::shared() }
}

fn append(sim: &SimVfs, number: u32) -> holotype::Result<()> {
    append_with(sim, number, appending())
}

fn append_with(sim: &SimVfs, number: u32, options: Options) -> holotype::Result<()> {
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    let database = Holotype::open_on(vfs, PATH, options)?;
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::turn("e", format!("said {number}")).key(format!("t{number}")))?;
    transaction.commit(Durability::Sync)?;
    database.close()
}

fn create(sim: &SimVfs) {
    Holotype::create_on(Arc::new(sim.clone()), PATH, full()).unwrap().close().unwrap();
}

fn open(sim: &SimVfs, options: Options) -> Holotype {
    Holotype::open_on(Arc::new(sim.clone()), PATH, options).unwrap()
}

fn derived(sim: &SimVfs) -> usize {
    let of = |folder: &str| sim.files().iter().filter(|path| path.starts_with(Path::new(PATH).join(folder))).count();
    of("columns") + of("vectors") + of("words")
}

#[test]
fn openings_leave_three_derived_files_at_most_until_a_checkpoint_is_due_again() {
    let sim = SimVfs::new();
    create(&sim);
    // By default it is due after 1,000 records.
    let few = Options { checkpoint_records: 60, ..appending() };
    for number in 0..20 {
        append_with(&sim, number, few.clone()).unwrap();
    }
    assert_eq!(derived(&sim), 0, "nothing is due");
    for number in 20..60 {
        append_with(&sim, number, few.clone()).unwrap();
    }
    assert!((1..=3).contains(&derived(&sim)), "{:?}", sim.files());
    let database = open(&sim, full());
    let found = database.query("recall 'said 57' limit 1 return key", &Params::new()).unwrap();
    assert!(format!("{found:?}").contains("t57"), "{found:?}");
    assert_eq!(faults(&database), [""; 0]);
    database.close().unwrap();
    append(&sim, 60).unwrap();
    assert_eq!(open(&sim, full()).snapshot().len(), 61, "behind a clean end too");
}

#[test]
fn opening_syncs_nothing_where_the_turn_was_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    Holotype::create(&path, Options::default()).unwrap().close().unwrap();
    for number in 0..3 {
        let database = Holotype::open(&path, Options::append_only()).unwrap();
        assert_eq!(database.report().recovery, [""; 0]);
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("e", format!("{number}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    let lease = Holotype::open(&path, Options::read_only()).unwrap().lease().unwrap();
    assert!(!lease.held);
    assert_eq!(lease.pid, Some(std::process::id()));
}

#[test]
fn a_handle_that_fails_or_dies_at_any_call_loses_nothing_acknowledged() {
    let sim = SimVfs::new();
    create(&sim);
    for number in 0..3 {
        append(&sim, number).unwrap();
    }
    let probe = sim.crash(Crash::Keep);
    let start = probe.calls();
    append(&probe, 3).unwrap();
    let calls = probe.calls() - start;
    assert!(calls > 10, "{calls}");
    for at in 0..calls {
        let crash = [Crash::Lose, Crash::Keep, Crash::Seeded(at)][at as usize % 3];
        let disk = sim.crash(Crash::Keep);
        disk.fail_at(disk.calls() + at, Failure::Io, true);
        let acknowledged = append(&disk, 3).is_ok();
        disk.heal();
        let left = disk.crash(crash);
        // The next one that appends comes first, and then one that opens fully.
        append(&left, 4).unwrap_or_else(|error| panic!("call {at}, {crash:?}: {error}"));
        let database = open(&left, full());
        let snapshot = database.snapshot();
        let keys: Vec<String> = (0..snapshot.len()).map(|id| snapshot.key_of(ItemId(id)).unwrap()).collect();
        for number in [0, 1, 2, 4] {
            assert!(keys.contains(&format!("t{number}")), "call {at}, {crash:?}: {keys:?}");
        }
        assert!(!acknowledged || snapshot.len() == 5, "call {at}, {crash:?}");
        assert_eq!(faults(&database), [""; 0], "call {at}, {crash:?}");
        let text = everything(&snapshot).unwrap();
        drop(database);
        if at % 7 == 0 {
            let rebuilt = Holotype::rebuild_all_on(Arc::new(left.clone()), PATH, full()).unwrap();
            assert_eq!(everything(&rebuilt.snapshot()).unwrap(), text, "call {at}, {crash:?}");
        }
    }
}

#[test]
fn what_has_to_be_rebuilt_is_left_to_a_full_opening() {
    let sim = SimVfs::new();
    create(&sim);
    append(&sim, 0).unwrap();
    sim.replace(&Path::new(PATH).join("catalog.redb"), b"not a catalog");
    let refused = append(&sim, 1).unwrap_err();
    assert!(matches!(refused, Error::OpenFully { .. }), "{refused}");
    assert_eq!(refused.code(), "open-fully");
    open(&sim, full()).close().unwrap();
    append(&sim, 1).unwrap();
    assert_eq!(open(&sim, full()).snapshot().len(), 2);
}

#[test]
fn handles_that_append_take_turns_with_others() {
    let sim = SimVfs::new();
    create(&sim);
    let server = open(&sim, full());
    for number in 0..20 {
        append(&sim, number).unwrap();
        let mut transaction = server.begin().unwrap();
        transaction.record(NewTrace::turn("server", format!("{number}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    server.checkpoint().unwrap();
    append(&sim, 20).unwrap();
    assert_eq!(server.snapshot().len(), 41);
    assert_eq!(faults(&server), [""; 0]);
}
