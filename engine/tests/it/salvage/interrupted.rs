//! A salvage that fails or crashes leaves nothing that opens at its destination, and the next one starts again.

use holotype::{Durability, Error, Holotype, NewTrace, Options, salvage, salvage_on};
use holotype_storage::vfs::{Failure, SimVfs, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SOURCE: &str = "/memory.holo";
const DEST: &str = "/saved.holo";
const COUNT: u32 = 12;

fn filled() -> SimVfs {
    let sim = SimVfs::new();
    let database = Holotype::create_on(Arc::new(sim.clone()), SOURCE, Options::default()).unwrap();
    for number in 0..COUNT {
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("trip", format!("turn {number}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    database.close().unwrap();
    sim
}

fn salvage_in(sim: &SimVfs) -> holotype::Result<holotype::SalvageReport> {
    salvage_on(Arc::new(sim.clone()), SOURCE, DEST)
}

/// A salvage that stopped half-way used to leave a database at DEST that opened without a word, with half the items.
#[test]
fn whatever_interrupts_a_salvage_the_destination_is_whole_or_absent() {
    let sim = filled();
    let before = sim.calls();
    salvage_in(&sim).unwrap();
    let calls = sim.calls() - before;
    let mut leftovers = 0;
    for at in (0..calls).step_by(calls as usize / 60 + 1) {
        let sim = filled();
        sim.fail_at(sim.calls() + at, Failure::Io, true);
        let failed = salvage_in(&sim).is_err();
        // The process ends here, and the machine with it.
        for crashed in sim.crashes(3, at) {
            let opened = Holotype::open_on(Arc::new(crashed.clone()), DEST, Options::default());
            match opened {
                Ok(database) => assert_eq!(database.snapshot().len(), COUNT, "call {at}"),
                Err(Error::NotFound { .. }) => assert!(failed, "call {at}"),
                Err(error) => panic!("call {at}: {error}"),
            }
        }
        if failed && sim.crashes(1, 1)[0].list(Path::new(DEST)).is_err() {
            let crashed = sim.crashes(1, 1).remove(0);
            let report = salvage_in(&crashed).unwrap();
            leftovers += u32::from(report.replaced_leftover);
            let database = Holotype::open_on(Arc::new(crashed), DEST, Options::default()).unwrap();
            assert_eq!((report.items, database.snapshot().len()), (COUNT.into(), COUNT));
        }
    }
    assert!(leftovers > 10, "{leftovers} salvages found what an interrupted one left");
}

#[test]
fn a_leftover_with_foreign_files_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { dir.path().join(name) };
    Holotype::create(path("memory.holo"), Options::default()).unwrap().close().unwrap();
    std::fs::create_dir(path("saved.holo.salvaging")).unwrap();
    std::fs::write(path("saved.holo.salvaging/notes.txt"), "mine").unwrap();
    let error = salvage(path("memory.holo"), path("saved.holo")).unwrap_err();
    assert!(error.to_string().contains("saved.holo.salvaging"), "{error}");
    assert_eq!(std::fs::read_to_string(path("saved.holo.salvaging/notes.txt")).unwrap(), "mine");
    assert!(!path("saved.holo").exists());
}
