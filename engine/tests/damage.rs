//! A damaged log opens for reading, up to the damage, and says where it is.
//!
//! The story: in a database of less than one log page the last checkpoint stands in the damaged page, so reading on from it
//! failed too, although the message promised that the database still opens for reading.

use holotype::{Durability, Holotype, NewTrace, Options};

#[test]
fn a_database_damaged_beside_its_checkpoint_still_opens_for_reading() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, Options::default()).unwrap();
    for n in 0..3 {
        let mut transaction = database.begin().unwrap();
        transaction.record(NewTrace::turn("talk", format!("sentence number {n}")).key(format!("t{n}"))).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    }
    database.close().unwrap();

    let log = path.join("log/0000000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let needle = b"sentence number 1";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 0x20;
    std::fs::write(&log, bytes).unwrap();

    let refused = Holotype::open(&path, Options::default()).unwrap_err();
    assert_eq!(refused.code(), "damaged");
    assert!(refused.to_string().contains("log page 1"), "{refused}");

    let database = Holotype::open(&path, Options::read_only()).unwrap();
    assert!(database.report().damage.as_deref().is_some_and(|damage| damage.contains("log page 1")));
    let snapshot = database.snapshot();
    assert_eq!(snapshot.get("t0").unwrap().unwrap().content.text(), "sentence number 0");
    assert!(snapshot.get("t1").unwrap().is_none(), "nothing from the damage on is shown");
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.faults.iter().any(|fault| fault.page == Some(1) && fault.offset.is_some()), "{:?}", report.faults);
}
