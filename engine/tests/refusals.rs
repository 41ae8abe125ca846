//! A database that cannot be opened is left as it was found.

use holotype::{Durability, ErrorClass, Holotype, NewTrace, Options};
use holotype_storage::vfs::{SimVfs, Vfs};
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

/// With derived files missing and the log damaged, the catalog was made anew before the log was looked at: the evidence it
/// held of what had been durable was gone, and so were files that a repaired log could have used.
#[test]
fn a_damaged_log_is_refused_before_anything_derived_is_touched() {
    for damage in [100, 4096 + 40] {
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
