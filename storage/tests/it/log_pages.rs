//! Log pages that are sound in themselves and in the wrong place: swapped with another, as they once were, from another
//! log. Each is noticed, and nothing that was acknowledged is cut off or altered.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::log_fixture::{PAGE, dir, disk, holds, records, segment_path, small_options, try_open, writable};
use holotype_storage::log::{Log, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{Crash, SimVfs};
use holotype_storage::{Error, NewRecord};

const SEGMENTS: u64 = 4;

/// A closed log of several segments, and every content its files ever had.
struct Story {
    sim: SimVfs,
    written: Vec<Vec<NewRecord>>,
    end: Lsn,
    versions: Vec<Vec<(PathBuf, Vec<u8>)>>,
}

fn story(database: [u8; 16]) -> Story {
    let sim = SimVfs::new();
    let options = LogOptions { database, ..small_options() };
    let log = Log::create(disk(&sim), dir(), &options).unwrap();
    let (mut written, mut versions) = (Vec::new(), Vec::new());
    let shapes: [&[usize]; 8] = [&[100], &[3000, 700], &[6000], &[40; 10], &[2500; 4], &[500], &[3900, 1000], &[17]];
    for (number, lens) in shapes.into_iter().enumerate() {
        let new = records(number as u8, lens);
        let appended = log.append(&new, 1_000).unwrap();
        log.sync_to(appended.end).unwrap();
        written.push(new);
        versions.push(files(&sim));
    }
    log.close().unwrap();
    let end = log.end();
    drop(log);
    Story { sim: sim.crash(Crash::Keep), written, end, versions }
}

/// The segments in use.
fn files(sim: &SimVfs) -> Vec<(PathBuf, Vec<u8>)> {
    let content = |number| Some((segment_path(number), sim.bytes(&segment_path(number)).ok()?));
    (1..=SEGMENTS).filter_map(content).filter(|(_, bytes)| bytes[0] != 0).collect()
}

impl Story {
    /// Opens the disk with the page replaced: there must be an error, with everything before it as it was written. The
    /// lock knows how far the log was durable.
    fn check(&self, replaced: &[(&PathBuf, usize, &[u8])], context: &str) {
        let spoiled = self.sim.crash(Crash::Keep);
        for (path, page, content) in replaced {
            let mut bytes = spoiled.bytes(path).unwrap();
            bytes[page * PAGE as usize..][..PAGE as usize].copy_from_slice(content);
            spoiled.replace(path, &bytes);
        }
        let options = OpenOptions { durable_hint: Some(self.end), ..writable() };
        let before = spoiled.fingerprint();
        let (opened, found) = try_open(&spoiled, None, &options);
        for (transaction, written) in found.iter().zip(&self.written) {
            assert!(holds(transaction, written), "{context}: altered {transaction:?}");
        }
        match opened {
            Err(Error::Damaged(damage)) => {
                let names: BTreeSet<&PathBuf> = replaced.iter().map(|(path, ..)| *path).collect();
                assert!(damage.file.starts_with(dir()) && !names.is_empty(), "{context}: {damage}");
            }
            Err(Error::WrongDatabase { .. } | Error::WrongMagic { .. }) => {}
            // Bytes that were zero before and after, or a page after the end of the log.
            Ok((log, report)) => {
                assert_eq!(found.len(), self.written.len(), "{context}: lost in silence: {report:?}");
                let faults = log.verify(&mut |_, _| {}).unwrap().faults;
                assert!(!faults.is_empty() || report.tail.is_some(), "{context}: nobody noticed");
            }
            Err(other) => panic!("{context}: {other}"),
        }
        assert!(
            spoiled.fingerprint() == before || found.len() == self.written.len(),
            "{context}: changed what it refused"
        );
    }
}

#[test]
fn every_page_swapped_with_every_other_is_noticed() {
    let story = story([7; 16]);
    let files = files(&story.sim);
    let pages: Vec<(&PathBuf, usize, &[u8])> = files
        .iter()
        .flat_map(|(path, bytes)| bytes.chunks(PAGE as usize).enumerate().map(move |(page, bytes)| (path, page, bytes)))
        .collect();
    let mut swapped = 0;
    for (at, first) in pages.iter().enumerate() {
        for second in &pages[at + 1..] {
            if first.2 != second.2 {
                let context =
                    format!("{} page {} and {} page {}", first.0.display(), first.1, second.0.display(), second.1);
                story.check(&[(first.0, first.1, second.2), (second.0, second.1, first.2)], &context);
                story.check(&[(first.0, first.1, second.2)], &format!("{context}, copied"));
                swapped += 1;
            }
        }
    }
    assert!(swapped > 70, "{swapped} pairs");
}

#[test]
fn every_page_as_it_once_was_is_noticed() {
    let story = story([7; 16]);
    let now = files(&story.sim);
    let mut stale = 0;
    for (version, old) in story.versions.iter().enumerate() {
        for (path, bytes) in old {
            let (_, current) = now.iter().find(|(other, _)| other == path).unwrap();
            for (page, content) in bytes.chunks(PAGE as usize).enumerate() {
                if content != &current[page * PAGE as usize..][..PAGE as usize] {
                    story.check(&[(path, page, content)], &format!("{} page {page} of {version}", path.display()));
                    stale += 1;
                }
            }
        }
    }
    assert!(stale > 5, "{stale} stale pages");
}

#[test]
fn every_page_of_another_log_is_noticed() {
    // Of another database, and of one with the same id: a copy that went its own way.
    for other in [story([8; 16]), story([7; 16])] {
        let story = story([7; 16]);
        for ((path, bytes), (_, own)) in files(&other.sim).iter().zip(&files(&story.sim)) {
            for (page, content) in bytes.chunks(PAGE as usize).enumerate() {
                if content != &own[page * PAGE as usize..][..PAGE as usize] {
                    story.check(&[(path, page, content)], &format!("{} page {page} of another log", path.display()));
                }
            }
        }
    }
}

/// Behind a record that cannot be read its page's footer still says what the next page must follow from.
#[test]
fn behind_a_spoiled_record_a_page_of_another_log_is_still_noticed() {
    let written = |bytes: u8| {
        let sim = SimVfs::new();
        let log = Log::create(disk(&sim), dir(), &small_options()).unwrap();
        for _ in 0..3 {
            log.append(&[NewRecord { kind: 1, payload: vec![bytes; 2_500] }], 1).unwrap();
        }
        log.sync_to(log.end()).unwrap();
        let start = log.scan(Lsn(0)).unwrap().map(|transaction| transaction.unwrap().records[0].lsn.0);
        assert_eq!(start.collect::<Vec<_>>(), [PAGE, 2 * PAGE, 3 * PAGE]);
        log.close().unwrap();
        sim
    };
    let (sim, foreign) = (written(1), written(2));
    let foreign = &foreign.bytes(&segment_path(1)).unwrap()[3 * PAGE as usize..];
    // One record, or all of the page before the footer, and of the page before that.
    let (record, page, before) = (2 * PAGE..2 * PAGE + 1, 2 * PAGE..3 * PAGE - 96, PAGE..2 * PAGE - 96);
    for spoiled in [vec![record], vec![page.clone()], vec![before, page]] {
        let mut bytes = sim.bytes(&segment_path(1)).unwrap();
        bytes[3 * PAGE as usize..].copy_from_slice(foreign);
        for range in &spoiled {
            bytes[range.start as usize..range.end as usize].fill(0xff);
        }
        let copy = sim.crash(Crash::Keep);
        copy.replace(&segment_path(1), &bytes);
        let reader = try_open(&copy, None, &OpenOptions { read_only: true, ..writable() }).0.unwrap().0;
        let faults = reader.verify(&mut |_, _| {}).unwrap().faults;
        let pages: BTreeSet<u64> = faults.iter().map(|fault| fault.position.0 / PAGE).collect();
        assert!(pages.contains(&(spoiled[0].start / PAGE)) && pages.contains(&3), "{spoiled:?}: {faults:?}");
    }
}

/// A footer and a segment of another log are told where they stand.
#[test]
fn what_is_of_another_log_is_told_where_it_stands() {
    let [ours, twin, other] = [[7; 16], [7; 16], [8; 16]].map(|database| {
        let sim = SimVfs::new();
        let log = Log::create(disk(&sim), dir(), &LogOptions { database, ..small_options() }).unwrap();
        for _ in 0..5 {
            log.append(&records(3, &[2_500]), 1).unwrap();
        }
        log.close().unwrap();
        (sim, log.end())
    });
    let ((ours, end), (twin, _), (other, _)) = (ours, twin, other);
    let options = OpenOptions { durable_hint: Some(end), ..writable() };
    let told = |path: &PathBuf, from: &SimVfs, range: std::ops::Range<usize>| {
        let spoiled = ours.crash(Crash::Keep);
        let mut bytes = spoiled.bytes(path).unwrap();
        bytes[range.clone()].copy_from_slice(&from.bytes(path).unwrap()[range]);
        spoiled.replace(path, &bytes);
        match try_open(&spoiled, None, &options).0 {
            Err(Error::Damaged(damage)) => damage,
            opened => panic!("{opened:?}"),
        }
    };
    // Salts differ, so the footers of two logs of the same records do.
    let page = PAGE as usize;
    let damage = told(&segment_path(1), &twin, 2 * page - 96..2 * page);
    assert_eq!((damage.position.0, damage.offset, damage.file), (2 * PAGE - 96, 2 * PAGE - 96, segment_path(1)));
    let damage = told(&segment_path(2), &other, 0..4 * page);
    assert!(damage.what.contains("another database"), "{damage}");
}
