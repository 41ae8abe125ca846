//! A byte of a closed log that changed, or a file that was cut, is an error or is reported: never a panic, never an
//! altered payload, never a transaction lost in silence.

use crate::log_fixture;
use std::path::PathBuf;

use crate::log_fixture::{PAGE, create, dir, holds, open, read_only, records, segment_path, try_open, writable};
use holotype_storage::log::{Appended, Checkpoint, Log, Lsn, OpenOptions, Transaction};
use holotype_storage::vfs::{Crash, SimVfs, Vfs};
use holotype_storage::{Damage, Error, NewRecord};

/// A closed log that has everything: sealed pages, a page sealed early, a run, pages left unused, several segments.
struct Closed {
    sim: SimVfs,
    written: Vec<Vec<NewRecord>>,
    appended: Vec<Appended>,
    heads: Vec<Checkpoint>,
    end: u64,
    /// The durable position from the catalog or the lock, if a test assumes one.
    hint: Option<Lsn>,
}

fn closed() -> Closed {
    let sim = SimVfs::new();
    let log = create(&sim);
    let (mut written, mut appended, mut heads) = (Vec::new(), Vec::new(), Vec::new());
    let shapes: [&[usize]; 9] =
        [&[100, 0], &[3000, 900], &[], &[6_000], &[40; 10], &[500], &[2_000, 3_900, 1_000], &[6_000], &[17]];
    for (number, lens) in shapes.into_iter().enumerate() {
        let new = records(number as u8, lens);
        appended.push(log.append(&new, 1_000 + number as i64).unwrap());
        written.push(new);
        heads.push(log.head());
        if number == 4 {
            log.seal().unwrap();
        }
    }
    log.close().unwrap();
    let end = log.end().0;
    drop(log);
    let sim = sim.crash(Crash::Keep);
    // One more segment may have been prepared, or not, before the log was dropped: every test begins without it.
    for file in sim.files() {
        if sim.bytes(&file).unwrap()[0] == 0 {
            sim.remove(&file).unwrap();
        }
    }
    Closed { sim, written, appended, heads, end, hint: None }
}

impl Closed {
    /// The segments.
    fn files(&self) -> Vec<PathBuf> {
        self.sim.files()
    }

    /// A copy of the disk to spoil.
    fn copy(&self) -> SimVfs {
        self.sim.crash(Crash::Keep)
    }

    fn assert_prefix(&self, found: &[Transaction], context: &str) {
        assert!(found.len() <= self.written.len(), "{context}");
        for (transaction, written) in found.iter().zip(&self.written) {
            assert!(holds(transaction, written), "{context}: altered {transaction:?}");
        }
    }

    /// Opens a spoiled copy for reading and for writing, and says what was noticed. `deeply`: also reads every record,
    /// scans from every commit, and verifies.
    fn check(&self, spoiled: &SimVfs, deeply: bool, context: &str) -> Noticed {
        self.check_read_only(spoiled, deeply, context);
        let options = OpenOptions { durable_hint: self.hint, ..writable() };
        let (opened, found) = try_open(spoiled, None, &options);
        self.assert_prefix(&found, context);
        match opened {
            Err(error) => Noticed { error: Some(error), tail: false, mended: false, faults: Vec::new() },
            Ok((log, report)) => {
                // Everything was durable, so nothing may be missing.
                assert_eq!(found.len(), self.written.len(), "{context}: lost in silence");
                let faults = log.verify(&mut |_, _| {}).unwrap().faults;
                Noticed { error: None, tail: report.tail.is_some(), mended: !report.mended.is_empty(), faults }
            }
        }
    }

    fn check_read_only(&self, spoiled: &SimVfs, deeply: bool, context: &str) {
        let before = spoiled.history().len();
        let options = OpenOptions { durable_hint: self.hint, ..read_only() };
        let (opened, found) = try_open(spoiled, None, &options);
        self.assert_prefix(&found, context);
        let Ok((log, report)) = opened else { return };
        assert!(report.damage.is_some() || found.len() == self.written.len(), "{context}: lost in silence");
        if deeply {
            self.check_reads(&log, context);
            let verified = log.verify(&mut |_, _| {}).unwrap();
            assert!(verified.commits <= self.written.len() as u64, "{context}");
        }
        assert_eq!(spoiled.history().len(), before, "{context}: a read-only log changed something");
    }

    fn check_reads(&self, log: &Log, context: &str) {
        for (appended, written) in self.appended.iter().zip(&self.written) {
            for (lsn, new) in appended.lsns.iter().zip(written) {
                if let Ok(record) = log.read(*lsn) {
                    assert_eq!((record.kind, &record.payload), (new.kind, &new.payload), "{context}");
                }
            }
        }
        for head in &self.heads {
            if let Ok(transactions) = log.scan(head.position) {
                let from = head.commit.0 as usize;
                for (transaction, written) in transactions.flatten().zip(&self.written[from..]) {
                    assert!(holds(&transaction, written), "{context}");
                }
            }
        }
    }

    /// The faults that verifying finds in a damaged copy that only opens read-only.
    fn faults(&self, spoiled: &SimVfs) -> Option<Vec<Damage>> {
        let (log, _) = try_open(spoiled, None, &read_only()).0.ok()?;
        Some(log.verify(&mut |_, _| {}).unwrap().faults)
    }
}

#[derive(Debug)]
struct Noticed {
    error: Option<Error>,
    tail: bool,
    /// A header was written again from its copy, or the copy from the header.
    mended: bool,
    faults: Vec<Damage>,
}

impl Noticed {
    fn anything(&self) -> bool {
        self.error.is_some() || self.tail || self.mended || !self.faults.is_empty()
    }
}

#[test]
fn the_log_has_everything_worth_damaging() {
    let closed = closed();
    assert!(closed.files().len() >= 3, "{:?}", closed.files());
    let opened = open(&closed.copy(), &writable());
    assert!(opened.report.closed && opened.report.tail.is_none());
    assert_eq!(opened.transactions.len(), closed.written.len());
    let verified = opened.log.verify(&mut |_, _| {}).unwrap();
    assert!(verified.is_clean() && verified.not_checked.is_empty(), "{verified:?}");
    assert_eq!(verified.segments, 4);
    assert!(verified.pages >= 5);
}

/// Runs `check` for every number below `count`, on as many threads as there are processors.
fn for_each(count: u64, check: impl Fn(u64) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let check = &check;
            scope.spawn(move || (thread as u64..count).step_by(threads).for_each(check));
        }
    });
}

/// Every byte; only of sectors nothing was ever written to, and which all look the same, every 32nd.
#[test]
fn every_flipped_byte_is_noticed() {
    let closed = closed();
    for file in closed.files() {
        let content = closed.sim.bytes(&file).unwrap();
        for_each(content.len() as u64, |offset| {
            let sector = &content[offset as usize / 512 * 512..][..512];
            if offset % 32 != 0 && sector.iter().all(|&byte| byte == 0) {
                return;
            }
            let spoiled = closed.copy();
            let mask = 1 << (offset % 8);
            spoiled.flip(&file, offset, mask).unwrap();
            let context = format!("{} byte {offset} flipped by {mask:#x}", file.display());
            let noticed = closed.check(&spoiled, offset % 32 == 0, &context);
            if noticed.error.is_none() {
                assert!(noticed.anything(), "{context}: nobody noticed");
            } else if let Some(faults) = closed.faults(&spoiled) {
                // Verifying says in which file and log page; a long record is one unit of several pages.
                let page = offset / PAGE;
                let near = |fault: &Damage| fault.file == file && (page.saturating_sub(2)..=page).contains(&fault.page);
                assert!(faults.iter().any(near), "{context}: {faults:?}");
            }
        });
    }
}

#[test]
fn every_cut_is_noticed() {
    let closed = closed();
    for file in closed.files() {
        let content = closed.sim.bytes(&file).unwrap();
        for_each(content.len() as u64, |len| {
            let spoiled = closed.copy();
            spoiled.replace(&file, &content[..len as usize]);
            let context = format!("{} cut to {len}", file.display());
            let noticed = closed.check(&spoiled, len % 32 == 0, &context);
            assert!(noticed.error.is_some(), "{context}: {noticed:?}");
        });
        let spoiled = closed.copy();
        spoiled.replace(&file, &[content.as_slice(), &[0; 8]].concat());
        let noticed = closed.check(&spoiled, true, "longer");
        assert!(noticed.error.is_some(), "{} made longer", file.display());
    }
}

#[test]
fn every_missing_file_is_noticed() {
    let closed = closed();
    for (at, file) in closed.files().into_iter().enumerate() {
        let spoiled = closed.copy();
        spoiled.remove(&file).unwrap();
        let hint = OpenOptions { durable_hint: Some(closed.heads[closed.heads.len() - 1].position), ..writable() };
        let (opened, found) = try_open(&spoiled, None, &hint);
        closed.assert_prefix(&found, "missing file");
        match (at + 1 < closed.files().len(), opened) {
            (true, Err(Error::MissingSegment { number, .. })) => assert_eq!(number, at as u64 + 1),
            (false, Err(Error::Damaged(_))) => {}
            (_, other) => panic!("{}: {other:?}", file.display()),
        }
    }
}

/// The close record vouches for the last commit, so a change of it is damage and not a torn tail.
#[test]
fn the_last_commit_of_a_closed_log_is_not_a_tail() {
    let closed = closed();
    let last = closed.appended.last().unwrap().lsns[0];
    let (number, first) = segment_of(&closed, last.0);
    let spoiled = closed.copy();
    spoiled.flip(&segment_path(number), last.0 - first + 30, 0x10).unwrap();
    let (opened, found) = try_open(&spoiled, None, &writable());
    assert_eq!(found.len(), closed.written.len() - 1);
    let Err(Error::Damaged(damage)) = opened else { panic!("{opened:?}") };
    assert_eq!((damage.position, damage.offset), (last, last.0 - first));
    assert_eq!(damage.page, (last.0 - first) / PAGE);
    assert_eq!(damage.file, segment_path(number));

    let opened = open(&spoiled, &read_only());
    assert_eq!(opened.report.damage.as_ref(), Some(&damage));
    assert_eq!(opened.log.head(), closed.heads[closed.heads.len() - 2]);
    let verified = opened.log.verify(&mut |_, _| {}).unwrap();
    assert_eq!(verified.faults.len(), 1, "{verified:?}");
    assert_eq!(verified.faults[0].position, last);
    assert_eq!(verified.commits, closed.written.len() as u64 - 1);
}

/// Nothing of ours changes the length of a file that is there.
#[test]
fn a_prepared_file_that_changed_its_length_is_noticed() {
    let cases =
        [(0, false), (PAGE, false), (2 * PAGE - 1, false), (2 * PAGE, true), (2 * PAGE + 1, false), (3 * PAGE, true)];
    for (len, sound) in cases {
        let sim = SimVfs::new();
        let log = create(&sim);
        log.append(&records(1, &[10]), 1).unwrap();
        log.sync_to(log.end()).unwrap();
        drop(log);
        sim.replace(&segment_path(2), &vec![0; len as usize]);
        match try_open(&sim, None, &writable()).0 {
            Ok(_) => assert!(sound, "{len}"),
            Err(Error::Damaged(damage)) => {
                assert_eq!((sound, damage.file, damage.offset), (false, segment_path(2), len), "{len}");
            }
            Err(error) => panic!("{len}: {error}"),
        }
    }
}

/// Behind a close record nobody looks who knows that nobody wrote since; everybody else does, and finds a torn append.
#[test]
fn what_lies_behind_the_end_is_looked_for_unless_it_cannot_be() {
    for (is_closed, gap) in [(true, 600), (true, 3), (false, 600)] {
        let sim = SimVfs::new();
        let log = create(&sim);
        log.append(&records(1, &[10]), 1).unwrap();
        log.sync_to(log.end()).unwrap();
        if is_closed {
            log.close().unwrap();
        }
        let end = log.end();
        drop(log);
        // The next file is prepared, which says nothing.
        sim.replace(&segment_path(2), &[0; 4 * PAGE as usize]);
        sim.flip(&segment_path(1), end.0 + gap, 0x10).unwrap();
        for (closed_hint, durable_hint) in [(true, Some(end)), (true, None), (false, Some(end)), (true, Some(Lsn(8)))] {
            let options = OpenOptions { closed_hint, durable_hint, ..writable() };
            let copy = sim.crash(Crash::Keep);
            let report = open(&copy, &options).report;
            let trusted = is_closed && gap > 8 && closed_hint && durable_hint == Some(end);
            assert_eq!(report.tail.is_none(), trusted, "{is_closed} {gap} {options:?}");
            assert_eq!((report.end, report.closed), (end, is_closed));
        }
    }
}

/// A hint from outside the log proves what the log alone cannot.
#[test]
fn a_durable_hint_tells_damage_from_a_tail() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let first = log.append(&records(1, &[10]), 1).unwrap();
    let second = log.append(&records(2, &[10]), 1).unwrap();
    log.sync_to(second.end).unwrap();
    let head = log.head();
    drop(log);
    sim.flip(&segment_path(1), second.lsns[0].0 + 30, 1).unwrap();

    let copy = sim.crash(Crash::Keep);
    let hinted = OpenOptions { durable_hint: Some(second.end), ..writable() };
    let (opened, _) = try_open(&copy, None, &hinted);
    assert!(matches!(opened, Err(Error::Damaged(damage)) if damage.position == second.lsns[0]));
    let (opened, _) = try_open(&copy, Some(head), &writable());
    assert!(matches!(opened, Err(Error::Damaged(damage)) if damage.position == second.lsns[0]));

    let opened = open(&copy, &writable());
    let tail = opened.report.tail.unwrap();
    assert_eq!((tail.position, tail.fault.position), (first.end, second.lsns[0]));
    assert_eq!(tail.commits, 1);
    assert_eq!(opened.log.head().commit.0, 1);
    let kept = copy.bytes(&tail.quarantine.unwrap()).unwrap();
    assert_eq!(kept.len() as u64, 48 + tail.len);
    let found = sim.bytes(&segment_path(1)).unwrap();
    assert_eq!(kept[48..], found[first.end.0 as usize..][..tail.len as usize]);
}

#[test]
fn a_checkpoint_of_another_log_does_not_fit() {
    let closed = closed();
    let good = closed.heads[3];
    let wrong = [
        Checkpoint { hash: [1; 32], ..good },
        Checkpoint { commit: closed.heads[4].commit, ..good },
        Checkpoint { position: closed.heads[4].position, ..good },
        Checkpoint { position: closed.appended[4].lsns[1], ..good },
        Checkpoint { position: Lsn(closed.end + PAGE * 64), ..good },
        Checkpoint { position: Lsn(8), ..good },
    ];
    for from in wrong {
        let (opened, found) = try_open(&closed.copy(), Some(from), &writable());
        assert!(matches!(opened, Err(Error::CheckpointMismatch { .. })), "{from:?}: {opened:?}");
        assert!(found.is_empty());
    }
}

#[test]
fn another_database_is_refused() {
    let closed = closed();
    let options = OpenOptions { database: Some([8; 16]), ..writable() };
    let (opened, _) = try_open(&closed.copy(), None, &options);
    assert!(matches!(opened, Err(Error::WrongDatabase { found, .. }) if found == [7; 16]));
    let copy = closed.copy();
    copy.replace(
        &segment_path(1),
        b"#!/bin/sh\necho this is something else entirely, and long enough to be read as a header: \
              it goes on and on and on until there are one hundred and fifty bytes",
    );
    let (opened, _) = try_open(&copy, None, &writable());
    assert!(matches!(opened, Err(Error::WrongMagic { .. })));
    assert!(matches!(
        Log::create(log_fixture::disk(&closed.sim), dir(), &log_fixture::small_options()),
        Err(Error::LogExists { .. })
    ));
}

/// The number and first position of the segment a position lies in.
fn segment_of(closed: &Closed, position: u64) -> (u64, u64) {
    let mut first = 0;
    for number in 1.. {
        let len = closed.sim.bytes(&segment_path(number)).unwrap().len() as u64;
        if position < first + len {
            return (number, first);
        }
        first += len;
    }
    unreachable!()
}

/// Headers and footers with valid checksums and absurd contents: nothing overflows, nothing is allocated by them.
#[test]
fn absurd_headers_with_valid_checksums_are_refused() {
    let closed = closed();
    let sizes = [0, 1, 4095, 4096, 1 << 20, 1 << 40, (1 << 62) - 4096, 1 << 62, 1 << 63, u64::MAX - 4095, u64::MAX];
    // Page size, number, first position, length, previous end, records, commit, clock.
    for (field, len) in [(28, 4), (48, 8), (56, 8), (64, 8), (72, 8), (80, 8), (88, 8), (96, 8)] {
        for value in sizes {
            for (at, file) in closed.files().into_iter().enumerate() {
                let spoiled = closed.copy();
                let mut content = spoiled.bytes(&file).unwrap();
                let old: [u8; 8] = content[field..field + 8].try_into().unwrap();
                content[field..field + len].copy_from_slice(&value.to_le_bytes()[..len]);
                let same = content[field..field + 8] == old;
                let crc = crc32fast::hash(&content[..136]);
                content[136..140].copy_from_slice(&crc.to_le_bytes());
                spoiled.replace(&file, &content);
                let context = format!("field {field} of file {at} set to {value:#x}");
                // The clock and counts of the first header are nothing anybody relies on, but verify knows them.
                let noticed = closed.check(&spoiled, true, &context);
                assert!(same || noticed.anything(), "{context}: {noticed:?}");
            }
        }
    }
}

/// Whole sectors and pages exchanged, repeated, zeroed or filled: what misdirected and lost writes do. They may take
/// the last commit and the close record at once, so here it matters that somebody else remembers where the log ended.
#[test]
fn misplaced_blocks_are_noticed() {
    let closed = closed();
    let closed = Closed { hint: Some(Lsn(closed.end)), ..closed };
    let files: Vec<(PathBuf, Vec<u8>)> =
        closed.files().into_iter().map(|file| (file.clone(), closed.sim.bytes(&file).unwrap())).collect();
    let blocks: Vec<(usize, usize)> =
        (0..files.len()).flat_map(|file| (0..4 * PAGE as usize / 512).map(move |block| (file, block))).collect();
    for_each((blocks.len() * 5) as u64, |number| {
        let (file, block) = blocks[number as usize / 5];
        let size = [512, PAGE as usize][number as usize % 2];
        let to = block * 512 / size * size;
        let (path, content) = &files[file];
        // A stride that shares no factor with the count visits blocks of every file.
        let (other, other_block) = blocks[(number as usize * 61 + 7) % blocks.len()];
        let from = other_block * 512 / size * size;
        let replacement = match number % 5 {
            0 | 1 => files[other].1[from..from + size].to_vec(),
            2 => vec![0; size],
            3 => vec![0xff; size],
            _ => content[to..to + size].iter().rev().copied().collect(),
        };
        let mut changed = content.clone();
        changed[to..to + size].copy_from_slice(&replacement);
        if changed == *content {
            return;
        }
        let spoiled = closed.copy();
        spoiled.replace(path, &changed);
        let context = format!("{} bytes at {to} of {} replaced in way {}", size, path.display(), number % 5);
        let noticed = closed.check(&spoiled, true, &context);
        assert!(noticed.anything(), "{context}: nobody noticed");
    });
}

/// Scanning starts exactly where something ends, and nowhere else.
#[test]
fn a_scan_starts_only_where_a_transaction_ends() {
    let closed = closed();
    let log = open(&closed.copy(), &read_only()).log;
    let mut starts = Vec::new();
    for position in (0..=closed.end + 8).step_by(8) {
        match log.scan(Lsn(position)) {
            Ok(transactions) => {
                let found: Vec<Transaction> = transactions.map(Result::unwrap).collect();
                let skipped = closed.written.len() - found.len();
                for (transaction, written) in found.iter().zip(&closed.written[skipped..]) {
                    assert!(holds(transaction, written));
                }
                starts.push(position);
            }
            // In the middle of a long record what stands where a footer should be is none.
            Err(Error::NoRecord { .. } | Error::Damaged(_)) => {}
            Err(error) => panic!("{position}: {error}"),
        }
    }
    let heads: Vec<u64> = closed.heads.iter().map(|head| head.position.0).collect();
    assert!(heads.iter().all(|head| starts.contains(head)));
    let others = |start: u64| start == closed.end || start.is_multiple_of(PAGE);
    assert!(starts.iter().all(|&start| heads.contains(&start) || others(start)), "{starts:?}");
}
