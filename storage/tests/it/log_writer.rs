//! The writer at its bounds: the largest transaction, the end of a page, the end of the log, the limit of unsynced
//! bytes, and the next segment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::log_fixture::watched::{Watch, Watched};
use crate::log_fixture::{PAGE, create, dir, disk, open, records, segment_path, small_limits, small_options, writable};
use holotype_storage::Error;
use holotype_storage::log::{Log, LogLimits, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{Failure, Operation, SimVfs, Vfs, VfsFile};

/// The length in the log of three records of 100, 0 and 5000 bytes.
const STORED_LEN: u64 = 128 + 56 + 5_032;

#[test]
fn a_transaction_may_take_just_what_is_allowed() {
    let new = records(1, &[100, 0, 5_000]);
    for (limit, fits) in [(STORED_LEN, true), (STORED_LEN - 1, false)] {
        let limits = LogLimits { max_transaction_bytes: limit, ..small_limits() };
        let sim = SimVfs::new();
        let log = Log::create(disk(&sim), dir(), &LogOptions { limits, ..small_options() }).unwrap();
        let before = log.end();
        match log.append(&new, 0) {
            Ok(_) => assert!(fits),
            Err(Error::TooLarge { len, limit: told, .. }) => assert!(!fits && (len, told) == (STORED_LEN, limit)),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(log.end() > before, fits);
    }
}

#[test]
fn sealing_ends_the_open_page_and_no_other() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let empty = log.end();
    log.seal().unwrap();
    assert_eq!(log.end(), empty, "nothing to seal");
    log.append(&records(1, &[10]), 0).unwrap();
    log.seal().unwrap();
    assert_eq!((log.end().0, log.durable().0), (2 * PAGE, 2 * PAGE));
    log.seal().unwrap();
    assert_eq!(log.end().0, 2 * PAGE, "it is sealed");
    drop(log);
    assert_eq!(open(&sim, &writable()).log.end().0, 2 * PAGE);
}

#[test]
fn a_closed_log_is_closed_once() {
    let sim = SimVfs::new();
    let log = create(&sim);
    log.append(&records(1, &[10]), 0).unwrap();
    log.close().unwrap();
    let end = log.end();
    log.close().unwrap();
    assert_eq!(log.end(), end);
    assert!(matches!(log.append(&[], 0), Err(Error::Closed)));
    drop(log);
    let opened = open(&sim, &writable());
    assert!(opened.report.closed);
    opened.log.close().unwrap();
    assert_eq!(opened.log.end(), end, "nobody wrote since");
    assert!(matches!(opened.log.append(&[], 0), Err(Error::Closed)));
    drop(opened);
    let again = open(&sim, &writable()).log;
    again.append(&records(2, &[10]), 0).unwrap();
    again.close().unwrap();
    assert!(again.end() > end);
}

/// Of the bytes one long transaction writes, never more than these are ahead of a sync; nor is one made before it is
/// due.
#[test]
fn a_long_transaction_is_synced_on_the_way() {
    const AHEAD: usize = 4 << 20;
    for (unsynced, syncs) in [(false, 3), (true, 4)] {
        let sim = SimVfs::new();
        let options = LogOptions { first_segment_len: 32 << 20, ..LogOptions::new([7; 16]) };
        let log = Log::create(disk(&sim), dir(), &options).unwrap();
        if unsynced {
            log.append(&records(1, &[100]), 0).unwrap();
        }
        let before = sim.history_len();
        log.append(&records(2, &[1_000_000; 15]), 0).unwrap();
        let (mut ahead, mut most, mut synced) = (usize::from(unsynced) * 128, 0, 0);
        for operation in &sim.history()[before..] {
            match operation {
                Operation::Write { path, bytes, .. } if **path == *segment_path(1) => {
                    ahead += bytes.len();
                    most = most.max(ahead);
                }
                Operation::Sync(path) if **path == *segment_path(1) => (ahead, synced) = (0, synced + 1),
                _ => {}
            }
        }
        assert!(most <= AHEAD, "{most} bytes were not synced");
        assert_eq!(synced, syncs);
    }
}

#[test]
fn the_next_segment_is_prepared_when_half_of_this_one_is_used() {
    let sim = SimVfs::new();
    let log = create(&sim);
    log.append(&records(1, &[2_000]), 0).unwrap();
    assert!(log.end().0 < 2 * PAGE);
    drop(log);
    assert_eq!(sim.files(), [segment_path(1)]);
    let log = Log::open::<Error>(disk(&sim), dir(), None, &OpenOptions::default(), &mut |_| Ok(())).unwrap().0;
    log.append(&records(2, &[3_000]), 0).unwrap();
    assert!((2 * PAGE..3 * PAGE).contains(&log.end().0));
    // Another thread makes it, twice as long where that is allowed.
    while !sim.files().contains(&segment_path(2)) {
        std::thread::yield_now();
    }
    assert_eq!(sim.bytes(&segment_path(2)).unwrap(), [0; 8 * PAGE as usize]);
}

/// A log that is closed has no file that nothing was written to, and goes on when it is opened.
#[test]
fn closing_removes_the_segment_that_was_prepared() {
    let sim = SimVfs::new();
    let log = create(&sim);
    log.append(&records(1, &[2_000, 3_000]), 0).unwrap();
    while !sim.files().contains(&segment_path(2)) {
        std::thread::yield_now();
    }
    log.close().unwrap();
    assert_eq!(sim.files(), [segment_path(1)]);
    drop(log);
    let log = Log::open::<Error>(disk(&sim), dir(), None, &OpenOptions::default(), &mut |_| Ok(())).unwrap().0;
    log.append(&records(2, &[3_000, 3_000, 3_000, 3_000]), 0).unwrap();
    log.close().unwrap();
    drop(log);
    assert_eq!(open(&sim, &writable()).transactions.len(), 2);
}

#[test]
fn the_first_segment_is_of_whole_pages_and_at_least_four() {
    for (asked, len) in [(1, 4 * PAGE), (4 * PAGE, 4 * PAGE), (5 * PAGE + 1, 6 * PAGE)] {
        let sim = SimVfs::new();
        drop(Log::create(disk(&sim), dir(), &LogOptions { first_segment_len: asked, ..small_options() }).unwrap());
        assert_eq!(sim.bytes(&segment_path(1)).unwrap().len() as u64, len);
    }
}

/// Reading begins where a page was sealed between two transactions, and not where one was sealed within.
#[test]
fn reading_begins_behind_a_sealed_page() {
    let sim = SimVfs::new();
    let log = create(&sim);
    for number in 0..4 {
        log.append(&records(number, &[100]), 1).unwrap();
        log.seal().unwrap();
        assert_eq!(log.scan(log.end()).unwrap().count(), 0);
        let sealed = log.end();
        log.append(&records(number, &[2_500, 2_500]), 1).unwrap();
        assert!(log.end().0 > sealed.0 + PAGE);
        assert_eq!(log.scan(sealed).unwrap().map(|found| found.unwrap().records.len()).collect::<Vec<_>>(), [2]);
        let within = log.scan(Lsn(sealed.0 + PAGE));
        assert!(matches!(within, Err(Error::NoRecord { .. } | Error::CheckpointMismatch { .. })), "{within:?}");
        log.seal().unwrap();
    }
}

/// A segment that was prepared for less than is needed now is prepared anew.
#[test]
fn a_long_record_takes_a_longer_segment_than_was_prepared() {
    let sim = SimVfs::new();
    let log = create(&sim);
    log.append(&records(1, &[3_000, 3_000]), 1).unwrap();
    // The next one, of four pages, is being prepared; this needs five.
    let long = records(2, &[4 * PAGE as usize]);
    let lsn = log.append(&long, 2).unwrap().lsns[0];
    log.sync_to(log.end()).unwrap();
    assert_eq!(log.read(lsn).unwrap().payload, long[0].payload);
    assert!(log.verify(&mut |_, _| {}).unwrap().is_clean());
    assert_eq!(sim.bytes(&segment_path(2)).unwrap().len() as u64, 6 * PAGE);
    drop(log);
    assert_eq!(open(&sim, &writable()).transactions.len(), 2);
}

/// Delays each write to a file that has no name yet.
#[derive(Debug, Default)]
struct Slow {
    begun: AtomicBool,
}

impl Watch for Slow {
    fn write(&self, file: &dyn VfsFile, bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset > 0 && bytes.iter().all(|&byte| byte == 0) {
            self.begun.store(true, Ordering::SeqCst);
            (0..1_000).for_each(|_| std::thread::yield_now());
        }
        file.write_at(bytes, offset)
    }
}

/// Nothing is done behind the back of who let the log go.
#[test]
fn preparing_ends_with_the_log() {
    let watch = Arc::new(Slow::default());
    let disk: Arc<dyn Vfs> = Arc::new(Watched { sim: SimVfs::new(), watch: Arc::clone(&watch) });
    // The next segment is filled in several steps.
    let len = 40 << 20;
    let options = LogOptions { first_segment_len: len, limits: LogLimits::default(), ..small_options() };
    let log = Log::create(Arc::clone(&disk), dir(), &options).unwrap();
    watch.begun.store(false, Ordering::SeqCst);
    log.append(&records(1, &[len as usize / 4 + 100_000; 2]), 1).unwrap();
    while !watch.begun.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    drop(log);
    assert_eq!(Arc::strong_count(&disk), 1, "somebody is still at it");
}

/// Whatever call fails, it is told, and what is there then is a log without a transaction, or none.
#[test]
fn a_log_that_cannot_be_made_is_told() {
    for at in 0.. {
        let sim = SimVfs::new();
        sim.create_dir(dir()).unwrap();
        sim.fail_at(sim.calls() + at, Failure::Io, false);
        let made = Log::create(disk(&sim), dir(), &small_options());
        if made.is_ok() {
            assert!(at > 8, "{at} calls");
            break;
        }
        match Log::create(disk(&sim), dir(), &small_options()) {
            Err(Error::LogExists { .. }) => assert!(open(&sim, &writable()).transactions.is_empty(), "call {at}"),
            made => assert!(made.is_ok(), "call {at}: {made:?}"),
        }
    }
}
