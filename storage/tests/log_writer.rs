//! What the writer does at its bounds: the largest transaction, the end of a page, the end of the log, what it is ahead of the
//! disk, and the segment it will need next.

mod log_fixture;

use holotype_storage::Error;
use holotype_storage::log::{Log, LogLimits, LogOptions, OpenOptions};
use holotype_storage::vfs::{Operation, SimVfs};
use log_fixture::{PAGE, create, dir, disk, open, records, segment_path, small_limits, small_options, writable};

/// What three records of 100, 0 and 5000 bytes take in the log.
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

/// Of the bytes one long transaction writes, never more than these are ahead of a sync; nor is one made before it is due.
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

#[test]
fn the_first_segment_is_of_whole_pages_and_at_least_four() {
    for (asked, len) in [(1, 4 * PAGE), (4 * PAGE, 4 * PAGE), (5 * PAGE + 1, 6 * PAGE)] {
        let sim = SimVfs::new();
        drop(Log::create(disk(&sim), dir(), &LogOptions { first_segment_len: asked, ..small_options() }).unwrap());
        assert_eq!(sim.bytes(&segment_path(1)).unwrap().len() as u64, len);
    }
}
