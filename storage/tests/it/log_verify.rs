//! Reports of verification: the bytes read, the end position, and each changed byte with its place.

use std::path::Path;

use crate::log_fixture::{PAGE, create, dir, disk, open, read_only, records, segment_path, small_options, writable};
use holotype_storage::log::{Erase, Log, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{Crash, Failure, OpenMode, SimVfs, Vfs};
use holotype_storage::{Error, SoundSegment, VerifyReport};

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

/// Makes these the bytes of an open file from an offset on.
fn put(sim: &SimVfs, path: &Path, offset: u64, bytes: &[u8]) {
    let old = sim.bytes(path).unwrap();
    for (at, (old, new)) in (offset..).zip(old[offset as usize..].iter().zip(bytes)) {
        sim.flip(path, at, old ^ new).unwrap();
    }
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

/// However many transactions stand in a page.
#[test]
fn progress_is_told_once_a_page() {
    let sim = SimVfs::new();
    let log = create(&sim);
    while log.end().0 < 4 * PAGE {
        log.append(&records(1, &[0]), 1).unwrap();
    }
    let mut told = Vec::new();
    log.verify(&mut |done, _| told.push(done)).unwrap();
    assert!(told.windows(2).all(|two| two[1] - two[0] >= PAGE || two[1] == log.end().0), "{told:?}");
    assert!((3..=6).contains(&told.len()), "{told:?}");
}

/// Bytes appended meanwhile are not a fault, and the report lists them as not checked.
#[test]
fn what_is_appended_meanwhile_is_not_checked() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let end = log.end();
    let mut appended = false;
    let report = log.verify(&mut |_, _| {
        if !std::mem::replace(&mut appended, true) {
            log.append(&records(4, &[10]), 4).unwrap();
            log.sync_to(log.end()).unwrap();
        }
    });
    let report = report.unwrap();
    assert_eq!((report.faults.len(), report.commits, report.bytes), (0, 3, end.0), "{report:?}");
    assert_eq!(report.not_checked, [format!("the bytes after position {end}, where a writer may be appending")]);
}

/// A call that fails ends it with an error: nothing is called damaged or sound that could not be read.
#[test]
fn a_failing_call_is_an_error() {
    let sim = SimVfs::new();
    drop(written(&sim));
    // A reader, beside whom nothing is prepared.
    let log = open(&sim, &read_only()).log;
    let begun = sim.calls();
    let report = verify(&log);
    let calls = sim.calls() - begun;
    assert!(calls > 10);
    let mut failed = 0;
    for at in 0..calls {
        sim.fail_at(sim.calls() + at, Failure::Io, false);
        match log.verify(&mut |_, _| {}) {
            Err(Error::Io { .. }) => failed += 1,
            // Calls on the floor file are not calls on the log.
            other => assert_eq!(other.unwrap(), report, "call {at}"),
        }
    }
    assert!(failed + 2 >= calls, "{failed} of {calls}");
}

/// A reader verifies what it sees, and says nothing of segments behind that.
#[test]
fn a_reader_says_nothing_of_what_it_does_not_see() {
    let sim = SimVfs::new();
    let log = create(&sim);
    // Just full, and sealed: the next record begins the next segment.
    log.append(&records(1, &[3_900, 3_900, 3_700]), 1).unwrap();
    log.seal().unwrap();
    let full = log.end();
    assert_eq!(full.0, 4 * PAGE);
    log.append(&records(2, &[10]), 1).unwrap();
    log.sync_to(log.end()).unwrap();
    drop(log);
    for spoiled in [false, true] {
        if spoiled {
            sim.flip(&segment_path(2), 40, 1).unwrap();
        }
        let reader = open(&sim, &OpenOptions { durable_hint: Some(full), ..read_only() }).log;
        let report = verify(&reader);
        assert_eq!((report.faults.len(), report.bytes), (0, full.0), "{report:?}");
        assert_eq!(report.sound, [SoundSegment { number: 1, until: full }]);
        assert!(report.not_checked.iter().all(|what| what.starts_with("the bytes after position")), "{report:?}");
    }
}

/// A segment whose header is unreadable is not called sound.
#[test]
fn a_segment_with_a_spoiled_header_is_not_sound() {
    let sim = SimVfs::new();
    drop(written(&sim));
    sim.flip(&segment_path(2), 40, 1).unwrap();
    let report = verify(&open(&sim, &read_only()).log);
    assert!(report.sound.iter().all(|sound| sound.number != 2), "{report:?}");
    let copied = report.faults.iter().all(|fault| fault.what.contains("its copy is read instead"));
    assert!(copied && report.faults.len() == 1, "{report:?}");
    sim.flip(&segment_path(2), 2048 + 40, 1).unwrap();
    let report = verify(&open(&sim, &read_only()).log);
    assert!(report.sound.iter().all(|sound| sound.number != 2) && !report.faults.is_empty(), "{report:?}");
}

/// Opening for writing writes the one of the two that was spoiled again.
#[test]
fn a_spoiled_header_is_mended_from_its_copy() {
    for at in [40, 2048 + 40] {
        let sim = SimVfs::new();
        drop(written(&sim));
        sim.flip(&segment_path(2), at, 1).unwrap();
        let opened = open(&sim, &writable());
        assert_eq!(opened.report.mended, [segment_path(2)]);
        assert!(verify(&opened.log).is_clean());
        drop(opened);
        assert!(open(&sim, &writable()).report.mended.is_empty());
    }
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
        assert!(report.not_checked[0].starts_with(&format!("the bytes after position {}", log.end())), "{report:?}");
    }
}

/// One spoiled record is one fault, and costs the checks of its own transaction; a commit record those of the next one
/// too.
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

/// A log of so many transactions, each in a page of its own.
fn pages_of_their_own(count: u8) -> (SimVfs, Log) {
    let sim = SimVfs::new();
    let log = create(&sim);
    for number in 0..count {
        log.append(&records(number, &[2_500]), 1).unwrap();
    }
    log.sync_to(log.end()).unwrap();
    (sim, log)
}

/// A page of bytes that mean nothing, and one of zeros, are one fault each, there; all that can be read is checked.
#[test]
fn a_page_that_is_gone_is_one_fault() {
    let (sim, log) = pages_of_their_own(8);
    let pages: Vec<u64> = log.scan(Lsn(0)).unwrap().map(|found| found.unwrap().records[0].lsn.0).collect();
    assert!(pages.iter().all(|page| page.is_multiple_of(PAGE)), "each has a page of its own: {pages:?}");
    for (at, &page) in pages.iter().enumerate() {
        for junk in [0xff, 0] {
            let (path, offset) = (segment_path(page / (4 * PAGE) + 1), page % (4 * PAGE));
            let sound = sim.bytes(&path).unwrap();
            let len = PAGE.min(log.end().0 - page);
            put(&sim, &path, offset, &vec![junk; len as usize]);
            let report = verify(&log);
            let places: Vec<u64> = report.faults.iter().map(|fault| fault.position.0).collect();
            assert_eq!(places, [page], "{junk:#x} in {page}: {report:?}");
            // The next commit record is the first of its page's records that is known to follow from nothing.
            let lost = if at + 1 < pages.len() { 2 } else { 1 };
            assert!(report.commits + lost >= pages.len() as u64, "{junk:#x} in {page}: {report:?}");
            put(&sim, &path, 0, &sound);
        }
    }
    assert!(verify(&log).is_clean());
}

/// Two pages in a row, of the first of which the footer is left, are one fault too: what that says is not what comes
/// before the page behind them.
#[test]
fn two_pages_that_are_gone_are_one_fault() {
    let (sim, log) = pages_of_their_own(4);
    put(&sim, &segment_path(1), PAGE, &vec![0xff; PAGE as usize - 96]);
    put(&sim, &segment_path(1), 2 * PAGE, &vec![0xff; PAGE as usize]);
    let report = verify(&log);
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert_eq!((fault.position.0, report.pages, report.commits), (PAGE, 1, 1), "{report:?}");
}

/// After an unreadable header, the next one determines where its segment begins, regardless of the file's length.
#[test]
fn a_spoiled_header_moves_no_other_segment() {
    let sim = SimVfs::new();
    drop(written(&sim));
    for len in [4 * PAGE, 3 * PAGE] {
        let path = segment_path(2);
        let mut content = sim.bytes(&path).unwrap();
        content.truncate(len as usize);
        content[100] ^= 1;
        content[2048 + 100] ^= 1;
        let spoiled = sim.crash(Crash::Keep);
        spoiled.replace(&path, &content);
        let report = verify(&open(&spoiled, &read_only()).log);
        let files: Vec<_> = report.faults.iter().map(|fault| &fault.file).collect();
        assert!(files.iter().all(|file| **file == path) && !files.is_empty(), "{report:?}");
        assert!(report.sound.iter().any(|sound| sound.number == 3), "{report:?}");
        assert_eq!(report.not_checked.iter().filter(|what| what.ends_with("0000000002.log")).count(), 1, "{report:?}");
    }
}

/// Behind a redaction of which nothing can be read, what it says is done is left open, and the next transaction is
/// checked.
#[test]
fn a_spoiled_redaction_is_one_fault() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let secret = log.append(&records(1, &[100]), 1).unwrap().lsns[0];
    let begun = log.end();
    let (appended, redaction) =
        log.append_redaction(&records(2, &[10, 20]), &[Erase { lsn: secret, replacement: None }], 2).unwrap();
    log.complete_redaction(&redaction).unwrap();
    log.append(&records(3, &[30]), 3).unwrap();
    log.sync_to(log.end()).unwrap();
    let from = begun.0 + 56;
    put(&sim, &segment_path(1), from, &vec![0xff; (appended.end.0 - from) as usize]);
    let report = verify(&log);
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert_eq!(fault.position.0, from);
    // The first one, and not the last: which number it must have only the spoiled one says.
    assert_eq!((report.commits, report.records, report.redacted), (2, 2, 0), "{report:?}");
    assert_eq!(report.not_checked, ["whether redactions name all erased records (1 not found)"]);
}

/// Records named by a redaction must be erased when it is done, even if they were not when they were first read.
#[test]
fn a_record_that_is_erased_meanwhile_is_looked_at_again() {
    for finished in [true, false] {
        let sim = SimVfs::new();
        let log = create(&sim);
        let secret = log.append(&records(1, &[100]), 1).unwrap().lsns[0];
        log.append(&records(2, &[3_900, 3_900]), 2).unwrap();
        let before = sim.bytes(&segment_path(1)).unwrap();
        let (_, redaction) = log.append_redaction(&[], &[Erase { lsn: secret, replacement: None }], 3).unwrap();
        log.complete_redaction(&redaction).unwrap();
        let erased = sim.bytes(&segment_path(1)).unwrap();
        let at = secret.0 as usize..secret.0 as usize + 128;
        put(&sim, &segment_path(1), secret.0, &before[at]);
        let report = log
            .verify(&mut |done, _| {
                if finished && done > 2 * PAGE {
                    put(&sim, &segment_path(1), 0, &erased);
                }
            })
            .unwrap();
        let faults: Vec<Lsn> = report.faults.iter().map(|fault| fault.position).collect();
        let expected = if finished { (vec![], 1) } else { (vec![secret], 0) };
        assert_eq!((faults, report.redacted), expected, "{report:?}");
    }
}

/// Faults are listed up to a thousand; of the rest it is said how many there are, and no file is called sound then.
#[test]
fn no_more_than_a_thousand_faults_are_listed() {
    for more in [0, 5] {
        let sim = SimVfs::new();
        let len = 60 * PAGE;
        let log = Log::create(disk(&sim), dir(), &LogOptions { first_segment_len: len, ..small_options() }).unwrap();
        let lsns: Vec<Lsn> = (0..1_000 + more).map(|_| log.append(&records(1, &[0]), 1).unwrap().lsns[0]).collect();
        log.append(&records(1, &[6_000; 3]), 1).unwrap();
        log.sync_to(log.end()).unwrap();
        while log.end().0 < len + PAGE {
            log.append(&records(1, &[2_500]), 1).unwrap();
        }
        log.sync_to(log.end()).unwrap();
        for lsn in &lsns {
            sim.flip(&segment_path(1), lsn.0 + 14, 1).unwrap();
        }
        let report = verify(&log);
        assert_eq!(report.faults.len(), 1_000);
        assert!(report.faults.iter().zip(&lsns).all(|(fault, lsn)| fault.position == *lsn));
        let sound: Vec<u64> = report.sound.iter().map(|sound| sound.number).collect();
        let unlisted = report.not_checked.iter().find(|what| what.ends_with("faults are not listed"));
        match more {
            0 => assert_eq!((unlisted, sound), (None, vec![2])),
            _ => assert_eq!((unlisted.unwrap().as_str(), sound), ("5 more faults are not listed", vec![])),
        }
    }
}

/// Verifies a log as a reader finds it that knows how far it was durable.
fn verify_up_to(sim: &SimVfs, durable: Lsn) -> VerifyReport {
    let known = OpenOptions { durable_hint: Some(durable), ..read_only() };
    verify(&open(sim, &known).log)
}

/// Opening knows from the lock or the catalog that the end is lost; verifying must not forget it.
#[test]
fn a_lost_end_is_a_fault() {
    let sim = SimVfs::new();
    let log = written(&sim);
    let (end, last) = (log.end(), segment_path(3));
    let older = sim.bytes(&last).unwrap();
    log.append(&records(4, &[10]), 4).unwrap();
    log.sync_to(log.end()).unwrap();
    let durable = log.durable();
    drop(log);
    assert!(durable > end && verify_up_to(&sim, durable).is_clean());
    let newest = sim.bytes(&last).unwrap();

    sim.replace(&last, &older);
    let report = verify_up_to(&sim, durable);
    assert_eq!(report.faults.iter().map(|fault| (&fault.file, fault.position)).collect::<Vec<_>>(), [(&last, end)]);
    assert_eq!(report.sound.iter().map(|segment| segment.number).collect::<Vec<_>>(), [1, 2]);

    sim.replace(&last, &vec![0; newest.len()]);
    assert!(!verify_up_to(&sim, durable).is_clean(), "zeros");

    sim.remove(&last).unwrap();
    // The next segment may have been prepared; a gap before it is an error already at opening.
    let _ = sim.remove(&segment_path(4));
    assert!(!verify_up_to(&sim, durable).is_clean(), "no file");
}

/// A handle that is open reads files by names of long ago; verifying looks at what has the names now.
#[test]
fn a_segment_replaced_behind_an_open_log_is_a_fault() {
    let sim = SimVfs::new();
    let log = written(&sim);
    assert!(verify(&log).is_clean());
    let path = segment_path(2);
    let bytes = sim.bytes(&path).unwrap();
    sim.remove(&path).unwrap();
    let report = verify(&log);
    assert_eq!(report.faults.iter().map(|fault| &fault.file).collect::<Vec<_>>(), [&path], "{report:?}");

    sim.replace(&path, &vec![0; bytes.len()]);
    assert!(!verify(&log).is_clean(), "zeros");
    sim.remove(&path).unwrap();
    sim.replace(&path, &bytes);
    assert!(verify(&log).is_clean());
    drop(log);
    let _ = sim.objections();
}
