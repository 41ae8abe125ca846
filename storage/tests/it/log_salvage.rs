//! Whatever is spoiled, everything else is read: each record in turn, and each page.

use crate::log_fixture::{PAGE, create, dir, disk, open, read_only, records, segment_path};
use holotype_storage::Error;
use holotype_storage::log::{Erase, Leaf, Log, Lsn, SalvageReport, Salvaged, Unreadable};
use holotype_storage::vfs::{Crash, SimVfs};

/// The compared parts of a record: its position, type and payload.
type Told = (Lsn, u8, Vec<u8>);

/// A closed log: its disk, its records, and the places of these and of the log's own.
struct Written {
    sim: SimVfs,
    records: Vec<Told>,
    leaves: Vec<Leaf>,
    segments: u64,
}

fn written() -> Written {
    let sim = SimVfs::new();
    let log = create(&sim);
    for (number, lens) in [&[100, 0, 700][..], &[3000, 700], &[6000, 40], &[40; 10], &[2500; 4], &[], &[3900, 1000, 17]]
        .into_iter()
        .enumerate()
    {
        log.append(&records(number as u8, lens), 1_000 + number as i64).unwrap();
        if number == 3 {
            log.seal().unwrap();
        }
    }
    let records = log.scan(Lsn(0)).unwrap().flat_map(|transaction| told(transaction.unwrap().records)).collect();
    log.close().unwrap();
    let leaves = log.leaves(Lsn(0), log.end()).collect::<Result<_, _>>().unwrap();
    let segments = log.segments().len() as u64;
    Written { sim, records, leaves, segments }
}

fn told(records: Vec<holotype_storage::Record>) -> Vec<Told> {
    records.into_iter().map(|record| (record.lsn, record.kind, record.payload)).collect()
}

fn salvage(sim: &SimVfs, durable: Lsn) -> (SalvageReport, Vec<Salvaged>) {
    let mut found = Vec::new();
    let report = Log::salvage::<Error>(disk(sim), dir(), durable, &mut |salvaged| {
        found.push(salvaged);
        Ok(())
    });
    (report.unwrap(), found)
}

impl Written {
    /// The file a position lies in, and where: segments are of four pages or, for a long run, more.
    fn place(&self, position: u64) -> (std::path::PathBuf, u64) {
        let mut first = 0;
        for number in 1..=self.segments {
            let len = self.sim.bytes(&segment_path(number)).unwrap().len() as u64;
            if position < first + len {
                return (segment_path(number), position - first);
            }
            first += len;
        }
        unreachable!("no segment holds {position}")
    }

    fn assert_told(&self, found: &[Salvaged], lost: impl Fn(&Told) -> bool, context: &str) {
        let found: Vec<Told> = found.iter().flat_map(|salvaged| told(salvaged.records.clone())).collect();
        let expected: Vec<&Told> = self.records.iter().filter(|record| !lost(record)).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{context}");
    }
}

#[test]
fn a_sound_log_is_told_whole() {
    let written = written();
    let (report, found) = salvage(&written.sim, Lsn(0));
    written.assert_told(&found, |_| false, "sound");
    let clocks: Vec<_> = found.iter().map(|salvaged| salvaged.time_us).collect();
    assert_eq!(clocks, (1_000..1_007).map(Some).collect::<Vec<_>>());
    let end = written.leaves.last().unwrap().end;
    let expected = SalvageReport { page_size: PAGE as u32, records: 24, end, ..SalvageReport::default() };
    assert_eq!((report, written.records.len()), (expected, 24));
}

#[test]
fn a_spoiled_record_takes_no_other_with_it() {
    let written = written();
    for (at, leaf) in written.leaves.iter().enumerate() {
        let spoiled = written.sim.crash(Crash::Keep);
        let (path, offset) = written.place(leaf.lsn.0);
        spoiled.flip(&path, offset + 13, 4).unwrap();
        let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
        let context = format!("record {at} at {}: {report:?}", leaf.lsn);
        written.assert_told(&found, |record| record.0 == leaf.lsn, &context);
        let is_own = written.records.iter().all(|record| record.0 != leaf.lsn);
        assert_eq!(report.records as usize, written.records.len() - usize::from(!is_own), "{context}");
        let [lost] = &report.unreadable[..] else { panic!("{context}") };
        assert_eq!(lost.position, leaf.lsn.0, "{context}");
        match written.leaves.get(at + 1) {
            Some(next) if next.lsn == leaf.end => assert_eq!(lost.len, next.lsn.0 - leaf.lsn.0, "{context}"),
            Some(next) => assert!((1..=next.lsn.0 - leaf.lsn.0).contains(&lost.len), "{context}"),
            // To the last byte that is not zero.
            None => {
                let bytes = spoiled.bytes(&path).unwrap();
                let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1;
                assert_eq!(lost.len, used - offset, "{context}");
            }
        }
        let last = written.leaves.last().unwrap();
        assert_eq!(report.end, if leaf == last { last.lsn } else { last.end }, "{context}");
        // A transaction is told with its clock unless its commit record is the one that is lost.
        let known = found.iter().filter(|salvaged| salvaged.time_us.is_some()).count();
        let is_commit = is_own && at + 1 < written.leaves.len();
        assert_eq!(known, 7 - usize::from(is_commit), "{context}");
    }
}

#[test]
fn a_page_of_zeros_takes_its_own_records_only() {
    let written = written();
    let mut first = 0;
    for number in 1..=written.segments {
        let content = written.sim.bytes(&segment_path(number)).unwrap();
        for page in 1..content.len() as u64 / PAGE {
            let (from, to) = (first + page * PAGE, first + (page + 1) * PAGE);
            let spoiled = written.sim.crash(Crash::Keep);
            let mut changed = content.clone();
            changed[(from - first) as usize..(to - first) as usize].fill(0);
            spoiled.replace(&segment_path(number), &changed);
            let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
            let hits = |leaf: &Leaf| leaf.lsn.0 < to && from < leaf.end.0;
            let lost: Vec<Lsn> = written.leaves.iter().filter(|leaf| hits(leaf)).map(|leaf| leaf.lsn).collect();
            let context = format!("page {page} of segment {number}: {report:?}");
            written.assert_told(&found, |record| lost.contains(&record.0), &context);
            let is_last = lost.last() == written.leaves.last().map(|leaf| &leaf.lsn);
            assert_eq!(report.unreadable.is_empty(), lost.is_empty() || is_last, "{context}");
            if let [stretch] = &report.unreadable[..] {
                // From the first record that is lost to the next one that is not.
                let end = written.leaves.iter().find(|leaf| Some(&leaf.lsn) > lost.last()).unwrap().lsn;
                assert_eq!((stretch.position, stretch.position + stretch.len), (lost[0].0, end.0), "{context}");
                let (file, what) = (segment_path(number), "the bytes here are zero, but later ones are not");
                assert!(stretch.what.starts_with(file.to_str().unwrap()), "{context}");
                assert!(lost[0].0 != from || stretch.what.ends_with(what), "{context}");
            }
        }
        first += content.len() as u64;
    }
}

#[test]
fn a_missing_file_takes_its_own_records_only() {
    let written = written();
    let mut first = 0;
    for number in 1..=written.segments {
        let to = first + written.sim.bytes(&segment_path(number)).unwrap().len() as u64;
        let spoiled = written.sim.crash(Crash::Keep);
        disk(&spoiled).remove(&segment_path(number)).unwrap();
        let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
        let context = format!("segment {number}: {report:?}");
        written.assert_told(&found, |record| (first..to).contains(&record.0.0), &context);
        if number < written.segments {
            let [lost] = &report.unreadable[..] else { panic!("{context}") };
            assert_eq!((lost.position, lost.len), (first, to - first), "{context}");
            assert_eq!(lost.what, format!("log segment {number} is missing"));
        }
        first = to;
    }
}

/// A length that cannot be, and one that leaves a file that was cut, hide nothing behind them.
#[test]
fn a_spoiled_length_takes_no_other_record_with_it() {
    let written = written();
    for (leaf, (byte, mask)) in written.leaves.iter().flat_map(|leaf| [(1, 0x40), (2, 0x80)].map(|flip| (leaf, flip))) {
        let spoiled = written.sim.crash(Crash::Keep);
        let (path, offset) = written.place(leaf.lsn.0);
        spoiled.flip(&path, offset + byte, mask).unwrap();
        let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
        written.assert_told(&found, |record| record.0 == leaf.lsn, &format!("{}: {report:?}", leaf.lsn));
    }
    let sim = SimVfs::new();
    let log = create(&sim);
    log.append(&records(1, &[100]), 1).unwrap();
    log.seal().unwrap();
    log.append(&records(2, &[200]), 2).unwrap();
    log.sync_to(log.end()).unwrap();
    drop(log);
    let mut content = sim.bytes(&segment_path(1)).unwrap();
    content.truncate(3 * PAGE as usize);
    content[PAGE as usize + 1] = 0x20;
    sim.replace(&segment_path(1), &content);
    let (report, found) = salvage(&sim, Lsn(0));
    assert_eq!((report.unreadable[0].position.to_string(), report.records), (PAGE.to_string(), 1), "{report:?}");
    assert_eq!(found[0].records[0].payload.len(), 200);
}

/// Records without a commit are told as far as they are known to have been durable.
#[test]
fn a_tail_without_its_commit_is_told_if_it_was_durable() {
    let sim = SimVfs::new();
    let log = create(&sim);
    log.append(&records(1, &[10]), 5).unwrap();
    let appended = log.append(&records(2, &[20, 30]), 6).unwrap();
    log.sync_to(log.end()).unwrap();
    let commit = log.leaves(Lsn(0), log.end()).last().unwrap().unwrap().lsn;
    drop(log);
    // Its commit record was never written.
    let mut content = sim.bytes(&segment_path(1)).unwrap();
    content[commit.0 as usize..].fill(0);
    sim.replace(&segment_path(1), &content);
    assert_eq!(open(&sim, &read_only()).transactions.len(), 1);
    for (durable, count) in [(Lsn(0), 0), (appended.lsns[0], 0), (appended.lsns[1], 1), (commit, 2)] {
        let (report, found) = salvage(&sim, durable);
        assert_eq!((report.unreadable.len(), report.records), (0, 1 + count), "{durable}");
        let tail: usize = found[1..].iter().map(|salvaged| salvaged.records.len()).sum();
        assert_eq!((found[0].time_us, tail as u64), (Some(5), count), "{durable}");
    }
}

/// A crash came while a record was overwritten: what a whole transaction says of it is all that is told.
#[test]
fn a_half_erased_record_is_an_erased_one() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let lsns = log.append(&records(1, &[10, 300, 20]), 1).unwrap().lsns;
    let replacement = records(2, &[30]);
    let erase = [Erase { lsn: lsns[0], replacement: None }, Erase { lsn: lsns[1], replacement: Some(0) }];
    let (appended, redaction) = log.append_redaction(&replacement, &erase, 2).unwrap();
    log.sync_to(appended.end).unwrap();
    drop((redaction, log));
    sim.flip(&segment_path(1), lsns[1].0 + 100, 8).unwrap();
    let (report, found) = salvage(&sim, Lsn(0));
    assert_eq!((report.unreadable, report.records), (vec![], 4));
    let told: Vec<_> = found[0].records.iter().map(|record| (record.lsn, record.is_redacted())).collect();
    // The first one was not begun with.
    assert_eq!(told, [(lsns[0], false), (lsns[1], true), (lsns[2], false)]);
    assert_eq!(found[0].records[1].payload, replacement[0].payload);
}

#[test]
fn what_is_lost_is_told_in_words() {
    let lost = Unreadable { position: 4_096, len: 56, what: "no record".into() };
    assert_eq!(lost.to_string(), "log position 4096, 56 bytes: no record");
}

/// A header that is unreadable takes its own page, and not what was left unused before it.
#[test]
fn a_spoiled_header_takes_no_record() {
    let written = written();
    let mut first = 0;
    for number in 1..=written.segments {
        let spoiled = written.sim.crash(Crash::Keep);
        spoiled.flip(&segment_path(number), 40, 4).unwrap();
        let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
        written.assert_told(&found, |_| false, &format!("segment {number}"));
        assert!(report.unreadable.is_empty(), "there is a copy: {report:?}");
        spoiled.flip(&segment_path(number), 2048 + 40, 4).unwrap();
        let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
        written.assert_told(&found, |_| false, &format!("segment {number}"));
        if number > 1 {
            let [lost] = &report.unreadable[..] else { panic!("{report:?}") };
            assert_eq!((lost.position, lost.len), (first, PAGE), "{lost}");
            assert!(lost.what.starts_with(segment_path(number).to_str().unwrap()), "{lost}");
        }
        first += written.sim.bytes(&segment_path(number)).unwrap().len() as u64;
    }
}

/// A footer that is unreadable takes what stands between the records before and behind it.
#[test]
fn a_spoiled_footer_takes_no_record() {
    let written = written();
    let mut footers = 0;
    for two in written.leaves.windows(2) {
        let ([before, next], page) = ([two[0], two[1]], PAGE - 1);
        let footer = (before.end.0 + 100) & !page | (page - 49);
        if before.end.0 & page == 0 || before.end.0 / PAGE == next.lsn.0 / PAGE {
            continue;
        }
        footers += 1;
        let spoiled = written.sim.crash(Crash::Keep);
        let (path, offset) = written.place(footer);
        spoiled.flip(&path, offset, 4).unwrap();
        let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
        let context = format!("footer at {footer}: {report:?}");
        written.assert_told(&found, |_| false, &context);
        let [lost] = &report.unreadable[..] else { panic!("{context}") };
        assert_eq!((lost.position, lost.position + lost.len), (before.end.0, next.lsn.0), "{context}");
        assert!(lost.what.starts_with(path.to_str().unwrap()) && lost.what.contains("footer checksum"), "{context}");
    }
    assert!(footers > 5, "{footers}");
}

/// The last record is a long one, and its end far from its beginning.
#[test]
fn a_long_record_that_is_lost_at_the_end_is_told_whole() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let lsn = log.append(&records(1, &[700_000]), 1).unwrap().lsns[0];
    log.sync_to(log.end()).unwrap();
    let run = log.leaves(Lsn(0), log.end()).next().unwrap().unwrap();
    drop(log);
    // It stands in a segment of its own; nothing of what came behind it was written.
    disk(&sim).remove(&segment_path(3)).unwrap();
    let (path, first) = (segment_path(2), 4 * PAGE);
    assert_eq!(lsn.0, first + PAGE);
    let mut content = sim.bytes(&path).unwrap();
    content[PAGE as usize + 20] ^= 1;
    content[PAGE as usize + 28 + 700_000..].fill(0);
    let used = first + content.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1;
    assert!(run.end.0 - used < 2 * PAGE);
    sim.replace(&path, &content);
    let (report, _) = salvage(&sim, Lsn(u64::MAX));
    let [lost] = &report.unreadable[..] else { panic!("{report:?}") };
    assert_eq!((lost.position, lost.position + lost.len, report.end), (lsn.0, used, lsn));
}

/// Missing files are reported beside damaged ones, before and after them.
#[test]
fn a_missing_file_hides_no_other_fault() {
    let written = written();
    let segment = 4 * PAGE;
    let first = written.leaves[0].lsn;
    let later = written.leaves.iter().find(|leaf| leaf.lsn.0 > 3 * segment).unwrap().lsn;
    let spoiled = written.sim.crash(Crash::Keep);
    for lsn in [first, later] {
        let (path, offset) = written.place(lsn.0);
        spoiled.flip(&path, offset + 13, 4).unwrap();
    }
    disk(&spoiled).remove(&segment_path(2)).unwrap();
    let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
    let gone = |record: &Told| [first, later].contains(&record.0) || record.0.0 / segment == 1;
    written.assert_told(&found, gone, &format!("{report:?}"));
    let positions: Vec<u64> = report.unreadable.iter().map(|lost| lost.position).collect();
    assert_eq!(positions, [first.0, segment, later.0], "{report:?}");
}

/// A header that says the segment begins before the one before ends is not believed.
#[test]
fn a_header_that_goes_back_moves_nothing() {
    let written = written();
    let spoiled = written.sim.crash(Crash::Keep);
    let mut content = spoiled.bytes(&segment_path(3)).unwrap();
    content[56..64].fill(0);
    let crc = crc32fast::hash(&content[..136]);
    content[136..140].copy_from_slice(&crc.to_le_bytes());
    spoiled.replace(&segment_path(3), &content);
    let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
    written.assert_told(&found, |_| false, &format!("{report:?}"));
}

/// A page of zeros may be where a segment was left for the next, of which the header says nothing: not when something
/// is behind.
#[test]
fn a_page_of_zeros_before_a_spoiled_header_is_told_apart() {
    let written = written();
    let spoiled = written.sim.crash(Crash::Keep);
    let mut content = spoiled.bytes(&segment_path(1)).unwrap();
    content[PAGE as usize..2 * PAGE as usize].fill(0);
    spoiled.replace(&segment_path(1), &content);
    spoiled.flip(&segment_path(2), 40, 4).unwrap();
    spoiled.flip(&segment_path(2), 2048 + 40, 4).unwrap();
    let (report, found) = salvage(&spoiled, Lsn(u64::MAX));
    written.assert_told(&found, |record| record.0.0 < 2 * PAGE, &format!("{report:?}"));
    let [zeros, header] = &report.unreadable[..] else { panic!("{report:?}") };
    assert_eq!((zeros.position, zeros.len, header.position, header.len), (PAGE, PAGE, 4 * PAGE, PAGE));
    assert!(zeros.what.contains("the bytes here are zero") && header.what.contains("header checksum"), "{report:?}");
}
