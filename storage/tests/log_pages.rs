//! Log pages that are sound in themselves and in the wrong place: swapped with another, as they once were, from another log.
//! Each is noticed, and nothing that was acknowledged is cut off or altered.

mod log_fixture;

use std::collections::BTreeSet;
use std::path::PathBuf;

use holotype_storage::log::{Log, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{Crash, SimVfs};
use holotype_storage::{Error, NewRecord};
use log_fixture::{PAGE, dir, disk, holds, records, segment_path, small_options, try_open, writable};

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
    /// Opens the disk with the page replaced: there must be an error, with everything before it as it was written. The lock
    /// knows how far the log was durable.
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
            // What was blank before and after, or a page behind the end of the log.
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
