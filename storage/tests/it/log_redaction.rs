//! Erased records are gone, everything else stays and verifies, and a crash at any point of erasing either leaves all
//! or ends in all erased.

use std::io;

use crate::log_fixture::{create, dir, disk, open, read_only, records, segment_path, small_limits, try_open, writable};
use holotype_storage::log::{Appended, Erase, Log, LogLimits, Lsn, OpenOptions};
use holotype_storage::vfs::{Crash, SimVfs};
use holotype_storage::{Error, NewRecord};

/// Bytes that stand nowhere else.
fn secret(len: usize) -> Vec<u8> {
    b"a secret nobody should find ".iter().copied().cycle().take(len).collect()
}

fn secret_record(len: usize) -> NewRecord {
    NewRecord { kind: 9, payload: secret(len) }
}

/// True if a piece of the secret stands in any segment.
fn stands_anywhere(sim: &SimVfs) -> bool {
    let vfs = disk(sim);
    let text = b"nobody should find".as_slice();
    loop {
        let names = vfs.list(dir()).unwrap();
        let files: io::Result<Vec<_>> = names.iter().map(|name| vfs.map(&dir().join(name))).collect();
        match files {
            // The next segment, which is prepared meanwhile, got its name after they were listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            files => return files.unwrap().iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text)),
        }
    }
}

/// Five transactions, the secret in three of them: short, in a run of pages, last of a transaction; then the redaction.
struct Story {
    secrets: Vec<Lsn>,
    appended: Vec<Appended>,
}

impl Story {
    fn begin(log: &Log) -> Result<Self, Error> {
        let mut appended = Vec::new();
        let shapes: [&[usize]; 5] = [&[10, 200], &[3000, 700], &[6000], &[20], &[2500, 2500]];
        let mut secrets = Vec::new();
        for (number, lens) in shapes.iter().enumerate() {
            let mut new = records(number as u8, lens);
            let hidden = [0, 2, 4].contains(&number);
            if hidden {
                new.push(secret_record([30, 0, 9000, 0, 600][number]));
            }
            appended.push(log.append(&new, 1)?);
            if hidden {
                secrets.push(*appended[number].lsns.last().unwrap());
            }
        }
        log.sync_to(log.end())?;
        Ok(Self { secrets, appended })
    }

    /// Erases the secrets; the first has a replacement.
    fn erase(&self, log: &Log) -> Result<(), Error> {
        let erase: Vec<Erase> = (0..)
            .zip(&self.secrets)
            .map(|(number, lsn)| Erase { lsn: *lsn, replacement: (number == 0).then_some(1) })
            .collect();
        let replacement = NewRecord { kind: 8, payload: b"what may be known".to_vec() };
        let new = [NewRecord { kind: 7, payload: b"why".to_vec() }, replacement];
        let (_, redaction) = log.append_redaction(&new, &erase, 2)?;
        log.complete_redaction(&redaction)
    }
}

fn verified(log: &Log) -> u64 {
    let report = log.verify(&mut |_, _| {}).unwrap();
    assert!(report.is_clean() && report.not_checked.is_empty(), "{report:?}");
    report.redacted
}

#[test]
fn erased_records_are_gone_and_all_hashes_hold() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let story = Story::begin(&log).unwrap();
    assert!(stands_anywhere(&sim));
    let before = log.read(story.secrets[1]).unwrap();
    let said = log.payload(story.secrets[1]).unwrap();
    assert_eq!((said.kind, &said.bytes, said.redacted), (before.kind, &before.payload, false));
    story.erase(&log).unwrap();
    assert!(!stands_anywhere(&sim));
    assert_eq!(verified(&log), 3);
    let after = log.read(story.secrets[1]).unwrap();
    let says = log.payload(story.secrets[1]).unwrap();
    assert!(says.redacted && says.bytes.is_empty() && says.kind == after.kind);
    assert!(after.is_redacted() && after.payload.is_empty() && after.replacement.is_none());
    assert_eq!((after.hash, after.kind), (before.hash, before.kind));

    // In order, the replacement is read in the place of what it stands for.
    let found: Vec<_> = log.scan(Lsn(0)).unwrap().map(Result::unwrap).collect();
    let first = found[0].records.last().unwrap();
    assert_eq!(
        (first.kind, first.payload.as_slice(), first.lsn),
        (8, b"what may be known".as_slice(), story.secrets[0])
    );
    assert_eq!(first.replacement, Some(found[5].records[1].lsn));
    assert_eq!(found[5].records.len(), 2, "the log's own records are not told");

    // Once more changes nothing; the log goes on, closes, and opens to the same.
    story.erase(&log).unwrap();
    assert_eq!(verified(&log), 3);
    log.append(&records(9, &[100]), 3).unwrap();
    log.close().unwrap();
    drop(log);
    let again = open(&sim, &writable());
    assert_eq!(again.transactions[..6], found[..]);
    assert_eq!((again.report.erased, verified(&again.log)), (0, 3));
    // From the commit of the redaction itself, as a checkpoint would.
    let (opened, rest) = try_open(&sim, Some(found[5].head), &writable());
    assert_eq!((opened.unwrap().1.erased, rest.len()), (0, 2));
}

/// The length of redaction records counts towards the limit of a transaction.
#[test]
fn a_redaction_is_as_long_as_a_transaction_may_be() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let lsns = log.append(&records(1, &[10, 10]), 1).unwrap().lsns;
    log.close().unwrap();
    drop(log);
    let erase: Vec<Erase> = lsns.iter().map(|lsn| Erase { lsn: *lsn, replacement: None }).collect();
    let redact = |limit: u64| {
        let limits = LogLimits { max_transaction_bytes: limit, ..small_limits() };
        let log = open(&sim.crash(Crash::Keep), &OpenOptions { limits, ..writable() }).log;
        let prepared = log.prepare(&records(2, &[100])).unwrap();
        log.append_prepared_redaction(&prepared, &erase, 2).map(|(_, redaction)| redaction.count())
    };
    // A record of 100 bytes, and one that names two.
    let (own, erasing) = (128, 160);
    assert_eq!(redact(own + erasing).unwrap(), 2);
    let refused = redact(own + erasing - 1);
    assert!(matches!(refused, Err(Error::TooLarge { len, .. }) if len == own + erasing), "{refused:?}");
}

/// If a replacement was erased too, reading returns its own replacement.
#[test]
fn a_replacement_may_be_erased_too() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let mut lsn = log.append(&records(1, &[10]), 1).unwrap().lsns[0];
    let first = lsn;
    for number in 2..5 {
        let (appended, redaction) =
            log.append_redaction(&records(number, &[20]), &[Erase { lsn, replacement: Some(0) }], 1).unwrap();
        log.complete_redaction(&redaction).unwrap();
        lsn = appended.lsns[0];
    }
    let told: Vec<_> = log.scan(Lsn(0)).unwrap().map(|found| found.unwrap().records.remove(0)).collect();
    assert_eq!(told[0].lsn, first);
    assert!(told.iter().all(|record| record.payload == records(4, &[20])[0].payload), "{told:?}");
}

#[test]
fn what_cannot_be_erased_is_refused() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let story = Story::begin(&log).unwrap();
    let (end, head) = (log.end(), log.head());
    let at = |lsn| [Erase { lsn, replacement: None }];
    assert!(matches!(log.append_redaction(&[], &at(end), 2), Err(Error::NoRecord { .. })));
    assert!(matches!(log.append_redaction(&[], &at(Lsn(story.secrets[0].0 + 8)), 2), Err(Error::Damaged(_))));
    // A commit record stands behind its last record.
    let last = story.appended[0].end.0 - 128;
    assert!(matches!(log.append_redaction(&[], &at(Lsn(last)), 2), Err(Error::ReservedKind { kind: 0xf0 })));
    assert_eq!((log.end(), log.head()), (end, head));
    // Nothing is erased before it is said to be completed, and then it is when the log is opened.
    let (_, redaction) = log.append_redaction(&[], &at(story.secrets[0]), 2).unwrap();
    assert_eq!(redaction.count(), 1);
    assert!(!log.read(story.secrets[0]).unwrap().is_redacted());
    log.sync_to(log.end()).unwrap();
    drop((log, redaction));
    let reader = open(&sim, &read_only());
    assert_eq!(reader.report.erased, 0);
    assert!(!reader.log.read(story.secrets[0]).unwrap().is_redacted());
    let writer = open(&sim, &writable());
    assert_eq!(writer.report.erased, 1);
    assert!(writer.log.read(story.secrets[0]).unwrap().is_redacted());
    verified(&writer.log);
}

/// Whatever a crash leaves at any operation from the redaction on: either nothing is erased and the redaction is not in
/// the log, or all is.
#[test]
fn a_crash_leaves_all_or_ends_in_all_erased() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let story = Story::begin(&log).unwrap();
    let (begun, durable) = (sim.history().len(), log.durable());
    story.erase(&log).unwrap();
    let done = sim.history().len();
    log.append(&records(9, &[100]), 3).unwrap();
    log.close().unwrap();
    let (mut states, mut redone, mut untouched, mut patched) = (0, 0, 0, 0);
    for (at, point) in sim.replay().enumerate().skip(begun) {
        for crashed in point.crashes(400, at as u64) {
            states += 1;
            let context = format!("operation {at}, state {states}");
            let hint = OpenOptions { durable_hint: Some(durable), ..writable() };
            // A reader first, which may repair nothing.
            let reader = try_open(&crashed.crash(Crash::Keep), None, &OpenOptions { read_only: true, ..hint.clone() });
            let (_, report) = reader.0.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(report.damage, None, "{context}");
            let torn = (0..).zip(&story.secrets).any(|(_, lsn)| {
                let segment = crashed.crash(Crash::Keep);
                let raw = try_open(&segment, None, &read_only()).0.unwrap().0;
                matches!(raw.read(*lsn), Err(Error::Damaged(_)))
            });
            let (opened, found) = try_open(&crashed, None, &hint);
            let (log, report) = opened.unwrap_or_else(|error| panic!("{context}: {error}"));
            let erased: Vec<bool> = story.secrets.iter().map(|lsn| log.read(*lsn).unwrap().is_redacted()).collect();
            assert!(found.len() >= 5, "{context}");
            if found.len() > 5 {
                assert_eq!(erased, [true; 3], "{context}: {report:?}");
                assert!(!stands_anywhere(&crashed), "{context}");
            } else {
                assert_eq!(erased, [false; 3], "{context}: {report:?}");
                assert!(at <= done, "{context}: an acknowledged redaction is lost");
                untouched += 1;
            }
            redone += u64::from(report.erased > 0);
            patched += u64::from(torn);
            verified(&log);
            let more = log.append(&records(5, &[50]), 4).unwrap();
            log.sync_to(more.end).unwrap();
            drop(log);
            let again = open(&crashed.crash(Crash::Lose), &writable());
            assert_eq!((again.report.erased, again.report.tail), (0, None), "{context}");
            assert_eq!(again.transactions.len(), found.len() + 1, "{context}");
            verified(&again.log);
        }
    }
    let counts = [states, redone, untouched, patched];
    assert!(states > 80 && redone > 50 && untouched > 1 && patched > 20, "too few to mean anything: {counts:?}");
}

#[test]
fn completing_may_crash_too() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let story = Story::begin(&log).unwrap();
    let erase: Vec<Erase> = story.secrets.iter().map(|lsn| Erase { lsn: *lsn, replacement: None }).collect();
    let (appended, redaction) = log.append_redaction(&records(7, &[10]), &erase, 2).unwrap();
    log.sync_to(appended.end).unwrap();
    drop((log, redaction));
    let before = sim.history().len();
    drop(open(&sim, &writable()));
    for (at, point) in sim.replay().enumerate().skip(before) {
        for crashed in point.crashes(60, at as u64) {
            let again = open(&crashed, &writable());
            assert_eq!(again.transactions.len(), 6);
            assert!(!stands_anywhere(&crashed));
            assert_eq!(verified(&again.log), 3);
        }
    }
}

/// Erasing a record without saying so in the log leaves every hash intact; only the redactions tell.
#[test]
fn a_record_erased_without_a_redaction_is_found() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let story = Story::begin(&log).unwrap();
    let plain = sim.clone().crash(Crash::Keep);
    story.erase(&log).unwrap();
    drop(log);
    // The same record of the same log, erased there.
    let lsn = story.secrets[0];
    let at = lsn.0;
    let bytes = disk(&sim).map(&segment_path(1)).unwrap();
    let file = disk(&plain).open(&segment_path(1), holotype_storage::vfs::OpenMode::ReadWrite).unwrap();
    file.write_at(&bytes[at as usize..at as usize + 64], at).unwrap();
    let opened = try_open(&plain, None, &writable());
    // Its replacement is not there to read: opening says where.
    assert!(matches!(&opened.0, Err(Error::Damaged(_) | Error::NoRecord { .. })), "{:?}", opened.0);
}

/// A flipped bit in an erased record, in a redaction or done record, is damage like any other.
#[test]
fn flipped_bits_around_a_redaction_are_told() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let story = Story::begin(&log).unwrap();
    story.erase(&log).unwrap();
    log.close().unwrap();
    let end = log.end();
    drop(log);
    let table: Vec<(u64, u64)> = (1..)
        .map(segment_path)
        .take_while(|path| disk(&sim).open(path, holotype_storage::vfs::OpenMode::Read).is_ok())
        .scan(0, |first, path| {
            let len = disk(&sim).open(&path, holotype_storage::vfs::OpenMode::Read).unwrap().len().unwrap();
            let segment = (*first, len);
            *first += len;
            Some(segment)
        })
        .collect();
    let mut flips: Vec<u64> = (story.secrets[0].0..story.secrets[0].0 + 56).collect();
    let redaction = story.appended[4].end.0;
    flips.extend((redaction..end.0).step_by(3));
    let (mut told, mut total) = (0, 0);
    for position in flips {
        let number = table.iter().rposition(|(first, _)| *first <= position).unwrap();
        let flipped = sim.crash(Crash::Keep);
        flipped.flip(&segment_path(number as u64 + 1), position - table[number].0, 1 << (position % 8)).unwrap();
        total += 1;
        let hint = OpenOptions { durable_hint: Some(end), ..writable() };
        let opened = try_open(&flipped, None, &hint);
        match opened.0 {
            Err(Error::Damaged(_)) => told += 1,
            Err(error) => panic!("position {position}: {error}"),
            Ok((log, _)) => told += u64::from(!log.verify(&mut |_, _| {}).unwrap().is_clean()),
        }
    }
    assert_eq!(told, total);
}
