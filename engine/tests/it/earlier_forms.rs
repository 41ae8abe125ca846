//! Records in forms that are no longer written: they are read like those that are.

use holotype::query::{ParamValue, Params};
use holotype::{Durability, Holotype, NewTrace, Options, Space};
use holotype_storage::log::{Log, OpenOptions};
use holotype_storage::vfs::OsVfs;
use holotype_storage::{Error, NewRecord, codec};
use std::path::Path;
use std::sync::Arc;

/// The number of the record type `item`, whose integers have their full width.
const ITEM: u8 = 4;

/// The payload of a turn as `docs/format.md` lays it out.
fn turn(id: u32, key: &str, text: &str, vector: &[f32]) -> Vec<u8> {
    let absent: Option<&str> = None;
    let stated = (id, 0u8, Some(key), Some(0u32), None::<u64>, Some(1_700_000_000_000_000_i64), absent);
    let names = (Some(0u8), Some(0u8), Some("ann"), absent, absent);
    // One field, the first variant of its value, and no pointers.
    let content = (1u64, "text", 0u32, text, 0u64);
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    let rest = (None::<f32>, None::<u8>, false, 0u8, 3u32, Some(bytes));
    codec::encode(&(stated, names, content, rest)).unwrap()
}

fn append(path: &Path, records: &[NewRecord]) {
    let (log, _) =
        Log::open::<Error>(Arc::new(OsVfs), &path.join("log"), None, &OpenOptions::default(), &mut |_| Ok(())).unwrap();
    let appended = log.append(records, 1_700_000_000_000_000).unwrap();
    log.sync_to(appended.end).unwrap();
}

#[test]
fn items_with_integers_of_full_width_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, Options::with_space(Space::new("test", 2))).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "the first").key("new").vector(vec![1.0, 0.0])).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();

    let payload = turn(1, "old", "a turn about zebras", &[0.0, 1.0]);
    append(&path, &[NewRecord { kind: ITEM, payload }]);

    // After replaying, after a checkpoint, and after everything derived was made anew.
    let check = |database: &Holotype| {
        let answer = database.query("recall 'zebras'", &Params::new()).unwrap();
        let shown = format!("{answer:?}");
        assert!(shown.contains("a turn about zebras") && shown.contains("ann"), "{shown}");
        let params = Params::from([("v".to_owned(), ParamValue::Vector(vec![0.0, 1.0]))]);
        let nearest = database.query("recall near $v through traces 1", &params).unwrap();
        assert!(format!("{nearest:?}").contains("zebras"));
        database.query("verify", &Params::new()).unwrap();
    };
    let database = Holotype::open(&path, Options::default()).unwrap();
    check(&database);
    database.checkpoint().unwrap();
    check(&database);
    database.close().unwrap();
    let database = Holotype::rebuild(&path, Options::default()).unwrap();
    check(&database);
    database.query("forget 'old' because 'asked'", &Params::new()).unwrap();
    let answer = format!("{:?}", database.query("recall 'zebras'", &Params::new()).unwrap());
    assert!(!answer.contains("a turn about"), "{answer}");
    database.close().unwrap();
}
