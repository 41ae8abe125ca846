//! Bytes after the last good commit: when they prove damage, when they are an unsynced tail, and how that is handled.

use crate::log_fixture::{
    PAGE, create, dir, disk, open, read_only, records, segment_path, small_options, try_open, writable,
};
use holotype_storage::log::{Checkpoint, Log, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{Crash, OpenMode, Operation, SimVfs};
use holotype_storage::{Damage, Error, NewRecord};

/// The length of a segment.
const SEGMENT: u64 = 4 * PAGE;

fn damage(sim: &SimVfs, from: Option<Checkpoint>) -> Damage {
    match try_open(sim, from, &writable()).0 {
        Err(Error::Damaged(damage)) => damage,
        Err(error) => panic!("{error}"),
        Ok((_, report)) => panic!("{report:?}"),
    }
}

/// Makes bytes of a file something else.
fn change(sim: &SimVfs, number: u64, change: impl FnOnce(&mut Vec<u8>)) {
    let mut content = sim.bytes(&segment_path(number)).unwrap();
    change(&mut content);
    sim.replace(&segment_path(number), &content);
}

/// Writes a transaction of one record for each length and closes the log; returns where it ended before that.
fn write_and_close(sim: &SimVfs, lens: &[usize]) -> Checkpoint {
    let log = create(sim);
    for len in lens {
        log.append(&records(1, &[*len]), 1).unwrap();
    }
    let head = log.head();
    log.close().unwrap();
    head
}

/// The positions of all segments in a row.
fn positions(sim: &SimVfs, segments: u64) -> Vec<u8> {
    (1..=segments).flat_map(|number| sim.bytes(&segment_path(number)).unwrap()).collect()
}

/// A crash left records of a transaction in three files, and not the headers of the later two, nor its commit.
#[test]
fn a_tail_over_several_files_is_set_aside_whole() {
    for before in [0, 1] {
        let sim = SimVfs::new();
        let log = create(&sim);
        for _ in 0..before * 4 {
            log.append(&records(1, &[2_500]), 1).unwrap();
        }
        let good = log.append(&records(1, &[10]), 1).unwrap().end;
        log.append(&records(2, &[2_500; 8]), 2).unwrap();
        log.sync_to(log.end()).unwrap();
        let commit = log.leaves(Lsn(0), log.end()).last().unwrap().unwrap().lsn.0;
        drop(log);
        let last = commit / SEGMENT + 1;
        assert_eq!((good.0 / SEGMENT, last), (before, before + 3));
        change(&sim, last, |bytes| bytes[(commit % SEGMENT) as usize..].fill(0));
        for number in last - 1..=last {
            change(&sim, number, |bytes| bytes[..PAGE as usize].fill(0));
        }
        let sim = sim.crash(Crash::Keep);
        // One more may have been prepared, or not.
        if sim.files().contains(&segment_path(last + 1)) {
            disk(&sim).remove(&segment_path(last + 1)).unwrap();
        }
        let all = positions(&sim, last);
        let opened = open(&sim, &writable());
        let tail = opened.report.tail.unwrap();
        // The first record of the tail may have been too long for the page.
        assert!([good.0, good.0.next_multiple_of(PAGE)].contains(&tail.position.0), "{tail:?}");
        assert_eq!(tail.position, opened.report.end);
        let good = tail.position;
        let kept = sim.bytes(&tail.quarantine.unwrap()).unwrap();
        assert!(kept[48..] == all[good.0 as usize..][..tail.len as usize] && tail.len > 4 * PAGE);
        assert!(all[(good.0 + tail.len) as usize..].iter().all(|&byte| byte == 0));
        assert_eq!(opened.report.removed, [segment_path(last), segment_path(last - 1)]);
        assert!(tail.fault.what.starts_with("the bytes here are zero"), "{}", tail.fault);
        let rest = positions(&sim, last - 2);
        assert!(rest[..good.0 as usize] == all[..good.0 as usize]);
        assert!(rest[good.0 as usize..].iter().all(|&byte| byte == 0));
        opened.log.append(&records(3, &[6_000]), 3).unwrap();
        opened.log.close().unwrap();
        drop(opened.log);
        assert_eq!(open(&sim, &writable()).transactions.len() as u64, before * 4 + 2);
    }
}

/// A header that was torn is all that is there of the next file.
#[test]
fn a_torn_header_belongs_to_the_tail() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let mut end = Lsn(0);
    while end.0 < 3 * PAGE {
        end = log.append(&records(1, &[2_500]), 1).unwrap().end;
    }
    log.sync_to(end).unwrap();
    log.append(&records(1, &[2_500]), 1).unwrap();
    log.sync_to(log.end()).unwrap();
    drop(log);
    change(&sim, 2, |bytes| {
        bytes[100..].fill(0);
        bytes[99] ^= 1;
    });
    let report = open(&sim, &writable()).report;
    let tail = report.tail.unwrap();
    assert_eq!((tail.position, tail.len), (Lsn(SEGMENT), PAGE));
    assert_eq!(report.removed, [segment_path(2)]);
}

#[test]
fn a_transaction_without_its_commit_is_where_the_log_ends() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let good = log.append(&records(1, &[10]), 1).unwrap().end;
    log.append(&records(1, &[10]), 1).unwrap();
    let commit = log.leaves(Lsn(0), log.end()).last().unwrap().unwrap().lsn.0;
    log.sync_to(log.end()).unwrap();
    drop(log);
    change(&sim, 1, |bytes| bytes[commit as usize..].fill(0));
    let tail = open(&sim, &writable()).report.tail.unwrap();
    assert_eq!((tail.position, tail.fault.what.as_str()), (good, "the log ends inside a transaction"));
}

/// Nothing is left of the second segment but its header; it was written when all of the first one was durable.
#[test]
fn a_header_alone_proves_what_comes_before_it() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let mut last = Lsn(0);
    while log.end().0 < SEGMENT {
        last = log.append(&records(1, &[2_500]), 1).unwrap().lsns[0];
    }
    log.sync_to(log.end()).unwrap();
    drop(log);
    assert_eq!(last.0, SEGMENT + PAGE);
    change(&sim, 2, |bytes| bytes[PAGE as usize..].fill(0));
    change(&sim, 1, |bytes| bytes[3 * PAGE as usize + 40] ^= 1);
    let damage = damage(&sim, None);
    assert_eq!(damage.position, Lsn(3 * PAGE));
    assert!(damage.what.ends_with("but segment 2 was begun after this position was durable"), "{damage}");
}

/// A header that does not go on from the segment before proves nothing of that: it belongs to the tail.
#[test]
fn a_header_that_does_not_fit_proves_nothing() {
    let sim = SimVfs::new();
    let log = create(&sim);
    while log.end().0 < SEGMENT {
        log.append(&records(1, &[2_500]), 1).unwrap();
    }
    log.sync_to(log.end()).unwrap();
    drop(log);
    change(&sim, 2, |bytes| {
        bytes[PAGE as usize..].fill(0);
        // The number of records before it.
        bytes[80] += 1;
        let crc = crc32fast::hash(&bytes[..136]);
        bytes[136..140].copy_from_slice(&crc.to_le_bytes());
    });
    let report = open(&sim, &writable()).report;
    let tail = report.tail.unwrap();
    assert_eq!((tail.position, tail.len), (Lsn(SEGMENT), PAGE));
    assert_eq!((tail.fault.position, report.removed), (Lsn(SEGMENT), vec![segment_path(2)]));
}

/// Of several commits that say the same, the first is told.
#[test]
fn a_later_commit_proves_what_it_says_was_durable() {
    let sim = SimVfs::new();
    let log = create(&sim);
    log.append(&records(1, &[10]), 1).unwrap();
    let spoiled = log.append(&records(2, &[10]), 1).unwrap();
    log.sync_to(spoiled.end).unwrap();
    let third = log.append(&[], 1).unwrap().end;
    log.append(&[], 1).unwrap();
    drop(log);
    change(&sim, 1, |bytes| bytes[spoiled.lsns[0].0 as usize + 30] ^= 1);
    let damage = damage(&sim, None);
    let says =
        format!("commit 3 at position {} states that everything before {} was durable", third.0 - 128, spoiled.end);
    assert!(damage.position == spoiled.lsns[0] && damage.what.ends_with(&says), "{damage}, expected: {says}");
}

/// Stored content that looks like the payload of a close record is no evidence.
#[test]
fn a_stored_payload_vouches_for_nothing() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let good = log.append(&records(1, &[10]), 1).unwrap().end;
    log.sync_to(good).unwrap();
    let posing = good.0 + 56;
    let payload = [&2_u64.to_le_bytes()[..], &posing.to_le_bytes(), &[1; 32]].concat();
    let lsns = log.append(&[records(2, &[10]).remove(0), NewRecord { kind: 5, payload }], 1).unwrap().lsns;
    assert_eq!(lsns, [good, Lsn(posing)]);
    drop(log);
    change(&sim, 1, |bytes| bytes[good.0 as usize + 30] ^= 1);
    let tail = open(&sim, &writable()).report.tail.unwrap();
    assert_eq!((tail.position, tail.commits), (good, 1));
}

#[test]
fn a_file_that_was_cut_is_told_where_it_ends() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let mut heads = Vec::new();
    for _ in 0..3 {
        log.append(&records(1, &[2_500]), 1).unwrap();
        heads.push(log.head());
    }
    assert!((3 * PAGE..SEGMENT).contains(&log.end().0));
    log.close().unwrap();
    drop(log);
    let cut = |len: u64, from| {
        let copy = sim.crash(Crash::Keep);
        change(&copy, 1, |bytes| bytes.truncate(len as usize));
        let damage = damage(&copy, from);
        assert_eq!((&damage.file, damage.offset), (&segment_path(1), damage.position.0));
        damage.offset
    };
    // A header is all there is; the pages behind it are gone one by one.
    assert_eq!(cut(144, None), 144);
    assert_eq!([1, 2, 3].map(|pages| cut(pages * PAGE, None)), [1, 2, 3].map(|pages| pages * PAGE));
    // From a checkpoint the footer of the page before is read first.
    assert_eq!(cut(3 * PAGE, Some(heads[2])), 3 * PAGE);
    assert_eq!(cut(3 * PAGE - 8, Some(heads[2])), 3 * PAGE - 96);
    // Nothing was ever written where this one was cut.
    let short = SimVfs::new();
    write_and_close(&short, &[10]);
    change(&short, 1, |bytes| bytes.truncate(3 * PAGE as usize));
    assert_eq!(damage(&short, None).offset, 3 * PAGE);
}

/// Opening does not read the log before a checkpoint's page.
#[test]
fn opening_begins_at_the_page_of_the_checkpoint() {
    let sim = SimVfs::new();
    let from = write_and_close(&sim, &[2_500; 7]);
    assert!(from.position.0 > 2 * SEGMENT + PAGE);
    let sim = sim.crash(Crash::Keep);
    let begun = sim.history().len();
    let (log, report) = try_open(&sim, Some(from), &writable()).0.unwrap();
    assert_eq!((report.transactions, report.start, report.end), (0, from.position, log.end()));
    let operations = &sim.history()[begun..];
    let synced: Vec<_> = operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Sync(path) => Some(path.to_path_buf()),
            _ => None,
        })
        .collect();
    // Nothing is believed, or written, before it is synced.
    assert!(matches!(&operations[0], Operation::Sync(path) if **path == segment_path(3)), "{operations:?}");
    assert!(synced.contains(&segment_path(3)), "{synced:?}");
    assert!(!synced.contains(&segment_path(1)) && !synced.contains(&segment_path(2)), "{synced:?}");
    drop(log);
    // The pages before it, in its own segment too.
    let middle = SimVfs::new();
    let from = write_and_close(&middle, &[2_500; 3]);
    middle.flip(&segment_path(1), PAGE + 40, 1).unwrap();
    assert!(try_open(&middle, Some(from), &writable()).0.is_ok());
}

/// A position of 0 says nothing of where the log ends.
#[test]
fn a_reader_that_knows_no_position_reads_all() {
    let sim = SimVfs::new();
    write_and_close(&sim, &[10]);
    let options = OpenOptions { durable_hint: Some(Lsn(0)), ..read_only() };
    assert_eq!(open(&sim, &options).transactions.len(), 1);
}

#[test]
fn what_was_never_finished_is_removed() {
    let sim = SimVfs::new();
    write_and_close(&sim, &[10]);
    let sim = sim.crash(Crash::Keep);
    let names = ["0000000009.log.tmp", "quarantine.bin.tmp", "another"];
    for name in names {
        disk(&sim).open(&dir().join(name), OpenMode::CreateNew).unwrap();
    }
    let removed = open(&sim, &writable()).report.removed;
    assert_eq!(removed, names[..2].iter().map(|name| dir().join(name)).collect::<Vec<_>>());
    assert!(sim.files().contains(&dir().join("another")));
}

/// A header of a later format, whichever file it is of.
#[test]
fn features_of_any_segment_decide_who_may_open() {
    let sim = SimVfs::new();
    let log = create(&sim);
    while log.end().0 < SEGMENT {
        log.append(&records(1, &[2_500]), 1).unwrap();
    }
    log.close().unwrap();
    drop(log);
    for number in [1, 2] {
        // A feature beside which others may only read; one that keeps them away.
        for (at, may_read) in [(20, true), (24, false)] {
            let copy = sim.crash(Crash::Keep);
            change(&copy, number, |bytes| {
                bytes[at] = 1;
                let crc = crc32fast::hash(&bytes[..136]);
                bytes[136..140].copy_from_slice(&crc.to_le_bytes());
            });
            let opened = [read_only(), writable()].map(|options| match try_open(&copy, None, &options).0 {
                Ok(_) => true,
                Err(Error::NewerFormat { path, .. }) => path != segment_path(number),
                Err(error) => panic!("{error}"),
            });
            assert_eq!(opened, [may_read, false], "segment {number}, byte {at}");
        }
    }
}

/// A file that is not proven durable is copied completely, piece by piece.
#[test]
fn a_first_segment_that_was_never_durable_is_made_so() {
    let sim = SimVfs::new();
    let len = 65 * PAGE;
    let log = Log::create(disk(&sim), dir(), &LogOptions { first_segment_len: len, ..small_options() }).unwrap();
    log.append(&records(1, &[100_000, 120_000]), 1).unwrap();
    drop(log);
    let content = sim.bytes(&segment_path(1)).unwrap();
    let opened = open(&sim, &writable());
    assert_eq!(opened.transactions.len(), 1);
    drop(opened.log);
    let lost = sim.crash(Crash::Lose);
    assert!(lost.bytes(&segment_path(1)).unwrap() == content && content.len() as u64 == len);
}

/// A tail of several pieces, in one file.
#[test]
fn a_long_tail_is_set_aside_whole() {
    let sim = SimVfs::new();
    let len = 200 * PAGE;
    let log = Log::create(disk(&sim), dir(), &LogOptions { first_segment_len: len, ..small_options() }).unwrap();
    let good = log.append(&records(1, &[10]), 1).unwrap().end.0.next_multiple_of(PAGE);
    log.append(&records(1, &[300_000, 300_000]), 1).unwrap();
    let commit = log.leaves(Lsn(0), log.end()).last().unwrap().unwrap().lsn.0;
    log.sync_to(log.end()).unwrap();
    drop(log);
    change(&sim, 1, |bytes| bytes[commit as usize..].fill(0));
    let before = sim.bytes(&segment_path(1)).unwrap();
    let tail = open(&sim, &writable()).report.tail.unwrap();
    assert!(tail.position.0 == good && tail.len > 600_000, "{tail:?}");
    let kept = sim.bytes(&tail.quarantine.unwrap()).unwrap();
    assert_eq!((&kept[24..32], &kept[32..40]), (&good.to_le_bytes()[..], &tail.len.to_le_bytes()[..]));
    assert!(kept[48..] == before[good as usize..][..tail.len as usize]);
    assert!(sim.bytes(&segment_path(1)).unwrap()[good as usize..].iter().all(|&byte| byte == 0));
}
