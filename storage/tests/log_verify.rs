//! What verifying reports: what it read, where it read to, and each byte that is not as it was written, where it stands.

mod log_fixture;

use holotype_storage::log::{Log, Lsn, OpenOptions};
use holotype_storage::vfs::{OpenMode, SimVfs, Vfs};
use holotype_storage::{SoundSegment, VerifyReport};
use log_fixture::{PAGE, create, open, read_only, records, segment_path};

/// Three segments of four pages, the first with pages left over, for the long record did not fit; an end in the third.
fn written(sim: &SimVfs) -> Log {
    let log = create(sim);
    log.append(&records(1, &[100]), 1).unwrap();
    log.append(&records(2, &[9_000]), 2).unwrap();
    log.append(&records(3, &[3_000, 700]), 3).unwrap();
    log.sync_to(log.end()).unwrap();
    assert!((8 * PAGE..11 * PAGE).contains(&log.end().0), "{}", log.end());
    log
}

fn verify(log: &Log) -> VerifyReport {
    log.verify(&mut |_, _| {}).unwrap()
}

#[test]
fn a_sound_log_is_reported_as_it_is() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let mut progress = Vec::new();
    let report = log.verify(&mut |done, total| progress.push((done, total))).unwrap();
    let end = log.end();
    assert_eq!((report.bytes, report.segments, report.commits, report.records), (end.0, 3, 3, 4));
    assert_eq!((report.redacted, &report.faults[..], &report.not_checked[..]), (0, &[][..], &[][..]));
    let sound = |number: u64| SoundSegment { number, until: end.min(Lsn(number * 4 * PAGE)) };
    assert_eq!(report.sound, [sound(1), sound(2), sound(3)]);
    assert_eq!(progress.last(), Some(&(end.0, end.0)));
    assert!(progress.is_sorted() && progress.iter().all(|&(done, total)| done <= total && total == end.0));
    // Once a page, and not more often.
    assert!((3..=12).contains(&progress.len()), "{progress:?}");
}

#[test]
fn a_byte_that_was_never_used_is_reported_where_it_is() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let end = log.end().0;
    // Behind a header; in the pages left over; behind the end, in its page and later.
    let places =
        [144, PAGE - 1, 2 * PAGE + 40, 3 * PAGE + 17, 4 * PAGE - 1, end, end + 9, 11 * PAGE + 5, 12 * PAGE - 1];
    for position in places {
        let (number, offset) = (position / (4 * PAGE) + 1, position % (4 * PAGE));
        sim.flip(&segment_path(number), offset, 0x20).unwrap();
        let report = verify(&log);
        let [fault] = &report.faults[..] else { panic!("{position}: {report:?}") };
        assert_eq!((fault.position.0, &fault.file), (position, &segment_path(number)));
        assert_eq!((fault.offset, fault.page), (offset, offset / PAGE));
        let sound: Vec<u64> = report.sound.iter().map(|sound| sound.number).collect();
        assert_eq!(sound, [1, 2, 3].into_iter().filter(|&other| other != number).collect::<Vec<_>>());
        assert_eq!((report.commits, report.not_checked.len()), (3, 0), "{position}: {report:?}");
        sim.flip(&segment_path(number), offset, 0x20).unwrap();
    }
    assert!(verify(&log).is_clean());
}

#[test]
fn a_file_cut_where_nothing_was_written_is_reported() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let file = sim.open(&segment_path(3), OpenMode::ReadWrite).unwrap();
    file.set_len(3 * PAGE + 100).unwrap();
    let report = verify(&log);
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert_eq!((fault.what.as_str(), fault.position), ("the file ends within the 4096 bytes from here", log.end()));
}

/// A reader cannot know whether what is behind its end is being written.
#[test]
fn a_reader_says_what_it_cannot_check() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let reader = open(&sim, &OpenOptions { durable_hint: Some(log.durable()), ..read_only() }).log;
    for foreign in [false, true] {
        if foreign {
            sim.flip(&segment_path(3), 3 * PAGE, 1).unwrap();
        }
        let report = verify(&reader);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.not_checked.len(), 1, "{report:?}");
        assert!(report.not_checked[0].starts_with(&format!("what lies behind position {}", log.end())), "{report:?}");
    }
}

/// One spoiled record is one fault, and costs the checks of its own transaction; a commit record those of the next one too.
#[test]
fn a_spoiled_record_is_one_fault() {
    let sim = SimVfs::new();
    let log = written(&sim);
    log.append(&records(4, &[50, 60]), 4).unwrap();
    log.append(&records(5, &[70]), 5).unwrap();
    log.sync_to(log.end()).unwrap();
    let transactions: Vec<_> = log.scan(Lsn(0)).unwrap().map(Result::unwrap).collect();
    for (at, transaction) in transactions.iter().enumerate() {
        for leaf in &transaction.leaves {
            let (number, offset) = (leaf.lsn.0 / (4 * PAGE) + 1, leaf.lsn.0 % (4 * PAGE));
            sim.flip(&segment_path(number), offset + 14, 0x40).unwrap();
            let report = verify(&log);
            let [fault] = &report.faults[..] else { panic!("{}: {report:?}", leaf.lsn) };
            assert_eq!((fault.position, &fault.file), (leaf.lsn, &segment_path(number)));
            let is_commit = transaction.records.iter().all(|record| record.lsn != leaf.lsn);
            let lost = if is_commit { at..at + 2 } else { at..at + 1 };
            let whole = transactions.iter().enumerate().filter(|(other, _)| !lost.contains(other));
            let (commits, records) = whole
                .fold((0, 0), |(commits, records), (_, whole)| (commits + 1, records + whole.records.len() as u64));
            assert_eq!((report.commits, report.records), (commits, records), "{}: {report:?}", leaf.lsn);
            sim.flip(&segment_path(number), offset + 14, 0x40).unwrap();
        }
    }
    assert!(verify(&log).is_clean());
}
