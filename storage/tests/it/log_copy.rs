//! A copy of a log up to a commit: the same bytes as far as that, zeros behind, and nothing that begins later.

use crate::log_fixture::{PAGE, create, dir, disk, records, segment_path, small_options, try_open, writable};
use holotype_storage::log::{Head, Log, LogLimits, LogOptions};
use holotype_storage::vfs::{SimVfs, Vfs};

/// The lengths of the files a copy has, and what was told meanwhile.
fn copy(sim: &SimVfs, log: &Log, end: Head) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (to, mut told) = (SimVfs::new(), Vec::new());
    log.copy_to(&to, dir(), end, &mut |done, total| told.push((done, total))).unwrap();
    let files = to.list(dir()).unwrap().len() as u64;
    let mut first = 0;
    let mut lens = Vec::new();
    for number in 1..=files {
        let [own, copied] = [sim, &to].map(|disk| disk.bytes(&segment_path(number)).unwrap());
        let kept = own.len().min((end.position.0 - first) as usize);
        assert!(copied[..kept] == own[..kept] && copied[kept..].iter().all(|&byte| byte == 0), "segment {number}");
        assert_eq!(copied.len(), own.len(), "segment {number}");
        first += own.len() as u64;
        lens.push(copied.len() as u64);
    }
    let (opened, transactions) = try_open(&to, None, &writable());
    assert_eq!((opened.unwrap().0.head().commit, transactions.len() as u64), (end.commit, end.commit.0));
    (lens, told)
}

#[test]
fn it_has_the_segments_up_to_its_end() {
    let sim = SimVfs::new();
    let log = create(&sim);
    // Just full, and sealed: the next record begins the next segment.
    log.append(&records(1, &[3_900, 3_900, 3_700]), 1).unwrap();
    log.seal().unwrap();
    let full = Head { position: log.end(), ..log.head() };
    log.append(&records(2, &[10, 9_000]), 2).unwrap();
    log.append(&records(3, &[3_000]), 3).unwrap();
    log.sync_to(log.end()).unwrap();
    let segment = 4 * PAGE;
    assert_eq!((full.position.0, log.segments()), (segment, vec![1, 2, 3, 4]));
    let told = [1, 2, 3, 4].map(|done| (done * segment, 4 * segment));
    assert_eq!(copy(&sim, &log, log.head()), (vec![segment; 4], told.to_vec()));
    assert_eq!(copy(&sim, &log, full), (vec![segment], vec![(segment, segment)]));
}

/// Segments are copied in pieces, the last of them shorter.
#[test]
fn long_segments_are_copied_whole() {
    let sim = SimVfs::new();
    let len = (1 << 20) + 16 * PAGE;
    let limits = LogLimits { max_segment_len: len, ..LogLimits::default() };
    let options = LogOptions { first_segment_len: len, limits, ..small_options() };
    let log = Log::create(disk(&sim), dir(), &options).unwrap();
    log.append(&records(1, &[100]), 1).unwrap();
    let early = log.head();
    log.append(&records(2, &[100_000]), 2).unwrap();
    log.append(&records(3, &[len as usize]), 3).unwrap();
    log.sync_to(log.end()).unwrap();
    let (lens, told) = copy(&sim, &log, log.head());
    // The end of the transaction stands in a segment of one piece.
    assert!(lens.iter().filter(|copied| **copied >= len).count() == 2 && lens[2..] == [1 << 20], "{lens:?}");
    let total: u64 = lens.iter().sum();
    let (mut done, mut expected) = (0, Vec::new());
    for len in &lens {
        expected.extend((1 << 20..*len).step_by(1 << 20).map(|within| (done + within, total)));
        done += len;
        expected.push((done, total));
    }
    assert_eq!(told, expected);
    assert_eq!(copy(&sim, &log, early).0, [len]);
}
