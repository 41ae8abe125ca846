//! Reading the ends of payloads through maps: what was appended, nothing of what was erased or changed.

use std::sync::Arc;

use crate::log_fixture::{create, disk, records, segment_path, small_options};
use holotype_storage::log::{Erase, Log, Lsn, PayloadEnds, Place};
use holotype_storage::vfs::{OsVfs, SimVfs, Vfs};
use holotype_storage::{Error, NewRecord};

/// Appends records of many lengths, in pages and in runs of pages, and compares their ends.
fn ends_are_those_of(vfs: &Arc<dyn Vfs>, log: &Log) {
    let new = records(3, &[2, 40, 300, 3_000, 9_000, 7]);
    let lsns = log.append(&new, 1).unwrap().lsns;
    log.flush().unwrap();
    let opened = PayloadEnds::open(vfs, log.dir()).unwrap();
    for (record, lsn) in new.iter().zip(&lsns) {
        for ends in [&log.payload_ends(), &opened] {
            let mut whole = vec![0; record.payload.len()];
            let (kind, place) = ends.find(*lsn, &mut whole).unwrap();
            assert_eq!((kind, &whole), (record.kind, &record.payload));
            let longer = ends.find(*lsn, &mut vec![0; record.payload.len() + 1]);
            assert!(matches!(longer, Err(Error::NoRecord { .. })), "{longer:?}");
            let place = Place::from_number(place.to_number());
            for len in [0, 1, record.payload.len() / 2, record.payload.len()] {
                let mut end = vec![0; len];
                ends.prefetch(place, len);
                assert!(ends.read(place, &mut end));
                assert_eq!(end, record.payload[record.payload.len() - len..]);
            }
            assert!(!ends.read(place, &mut vec![0; record.payload.len() + 1]));
        }
    }
    let nowhere = [log.end(), Lsn(log.end().0 + (1 << 30)), Lsn(lsns[0].0 + 8), Lsn(lsns[0].0 + 1), Lsn(u64::MAX)];
    for lsn in nowhere {
        assert!(log.payload_ends().find(lsn, &mut []).is_err());
    }
}

#[test]
fn the_end_of_a_payload_is_read_through_a_map() {
    let sim = SimVfs::new();
    ends_are_those_of(&disk(&sim), &create(&sim));
    let (at, vfs): (_, Arc<dyn Vfs>) = (tempfile::tempdir().unwrap(), Arc::new(OsVfs));
    ends_are_those_of(&vfs, &Log::create(Arc::clone(&vfs), &at.path().join("log"), &small_options()).unwrap());
}

#[test]
fn what_was_erased_after_it_was_found_is_not_read_again() {
    let at = tempfile::tempdir().unwrap();
    let on_disk = Log::create(Arc::new(OsVfs), &at.path().join("log"), &small_options()).unwrap();
    for log in [create(&SimVfs::new()), on_disk] {
        let lsn = log.append(&[NewRecord { kind: 9, payload: vec![7; 200] }], 1).unwrap().lsns[0];
        log.flush().unwrap();
        let (ends, mut end) = (log.payload_ends(), [0; 100]);
        let (kind, place) = ends.find(lsn, &mut end).unwrap();
        assert!(kind == 9 && ends.read(place, &mut end) && end == [7; 100]);
        let (_, redaction) = log.append_redaction(&[], &[Erase { lsn, replacement: None }], 2).unwrap();
        log.complete_redaction(&redaction).unwrap();
        assert!(ends.read(place, &mut end) && end == [0; 100], "nothing is left of it");
        assert!(matches!(ends.find(lsn, &mut end), Err(Error::NoRecord { .. })));
    }
}

#[test]
fn a_changed_byte_is_found_with_the_record() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let lsn = log.append(&records(1, &[200]), 1).unwrap().lsns[0];
    log.sync_to(log.end()).unwrap();
    for byte in [0, 4, 5, 6, 8, 12, 28, 100, 227] {
        sim.flip(&segment_path(1), lsn.0 + byte, 1).unwrap();
        assert!(log.payload_ends().find(lsn, &mut []).is_err(), "byte {byte}");
        sim.flip(&segment_path(1), lsn.0 + byte, 1).unwrap();
    }
    assert!(log.payload_ends().find(lsn, &mut []).is_ok());
}
