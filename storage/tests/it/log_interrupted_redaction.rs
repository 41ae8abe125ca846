//! A crash in the midst of erasing, found by who begins behind the erased record: what the redaction says is believed
//! where everything up to its commit holds, and nowhere else.

use std::path::PathBuf;

use crate::log_fixture::{PAGE, dir, disk, records, segment_path, small_options, try_open, writable};
use holotype_storage::log::{Checkpoint, Erase, Log, LogLimits, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{Crash, SimVfs};
use holotype_storage::{Error, NewRecord};

/// Records that are erased: so many that the redaction record that names them takes a run of pages, in a later
/// segment.
const ERASED: usize = 100;

const SEGMENT_LEN: u64 = 8 * PAGE;

/// A redaction that is durable and not carried out, and the same log after it was.
struct Story {
    begun: SimVfs,
    done: SimVfs,
    /// The first of the records to erase, and one that is not to be erased, behind the checkpoint.
    secret: Lsn,
    bystander: Lsn,
    /// Behind the secret, in its page.
    checkpoint: Checkpoint,
    end: Lsn,
}

/// The secret, of this length, stands first in its page.
fn story(len: usize) -> Story {
    let sim = SimVfs::new();
    let limits = LogLimits { max_segment_len: SEGMENT_LEN, ..LogLimits::default() };
    let options = LogOptions { first_segment_len: SEGMENT_LEN, limits, ..small_options() };
    let log = Log::create(disk(&sim), dir(), &options).unwrap();
    let secret = log.append(&[NewRecord { kind: 9, payload: vec![b's'; len] }], 1).unwrap().lsns[0];
    log.append(&records(1, &[50]), 2).unwrap();
    let checkpoint = log.head();
    let bystander = log.append(&records(2, &[60]), 3).unwrap().lsns[0];
    let others = log.append(&records(3, &[20; ERASED - 1]), 4).unwrap().lsns;
    log.append(&records(4, &[14_000]), 4).unwrap();
    let erase: Vec<Erase> = [secret].into_iter().chain(others).map(|lsn| Erase { lsn, replacement: None }).collect();
    let (_, redaction) = log.append_redaction(&[], &erase, 5).unwrap();
    log.sync_to(log.end()).unwrap();
    let (begun, end) = (sim.crash(Crash::Keep), log.end());
    log.complete_redaction(&redaction).unwrap();
    drop(log);
    assert!(end.0 > SEGMENT_LEN, "the redaction record stands in a later segment");
    Story { begun, done: sim.crash(Crash::Keep), secret, bystander, checkpoint, end }
}

/// The file of a position in its segment, and the offset there.
fn place(position: Lsn) -> (PathBuf, u64) {
    (segment_path(position.0 / (SEGMENT_LEN) + 1), position.0 % (SEGMENT_LEN))
}

impl Story {
    /// The disk as a crash leaves it that came when this many bytes of the secret were overwritten.
    fn torn(&self, len: usize) -> SimVfs {
        let torn = self.begun.crash(Crash::Keep);
        let (path, at) = place(self.secret);
        let mut content = torn.bytes(&path).unwrap();
        let at = at as usize;
        content[at..at + len].copy_from_slice(&self.done.bytes(&path).unwrap()[at..at + len]);
        torn.replace(&path, &content);
        torn
    }

    /// The points at which opening begins: the start, or the checkpoint whose page has the secret.
    fn starts(&self) -> [Option<Checkpoint>; 2] {
        [None, Some(self.checkpoint)]
    }
}

fn flip(sim: &SimVfs, position: Lsn, within: u64, mask: u8) {
    let (path, at) = place(position);
    sim.flip(&path, at + within, mask).unwrap();
}

#[test]
fn erasing_is_finished_wherever_opening_begins() {
    let story = story(200);
    for from in story.starts() {
        let torn = story.torn(100);
        let reader = try_open(&torn, from, &OpenOptions { read_only: true, ..writable() }).0.unwrap();
        assert_eq!((reader.1.damage, reader.1.head.commit.0), (None, 6));
        let (log, report) = try_open(&torn, from, &writable()).0.unwrap();
        assert_eq!((report.erased, report.end, report.tail), (ERASED as u64, story.end, None), "{from:?}");
        assert!(log.read(story.secret).unwrap().is_redacted());
        let verified = log.verify(&mut |_, _| {}).unwrap();
        assert!(verified.is_clean() && verified.redacted == ERASED as u64, "{verified:?}");
    }
}

/// Another record before the redaction is spoiled, or the length of the one that was half erased is.
#[test]
fn a_redaction_explains_nothing_where_the_log_does_not_hold() {
    let (short, long) = (story(200), story(9_000));
    let is_damaged = |torn: &SimVfs, from, at| {
        let opened = try_open(torn, from, &writable()).0.map(|(_, report)| report);
        assert!(matches!(&opened, Err(Error::Damaged(damage)) if damage.position == at), "{opened:?}");
    };
    for from in short.starts() {
        let torn = short.torn(100);
        flip(&torn, short.bystander, 20, 1);
        is_damaged(&torn, from, short.secret);
    }
    let torn = long.torn(100);
    // So long that it takes a run of pages, it says that it fits into one.
    flip(&torn, long.secret, 1, 0x20);
    is_damaged(&torn, None, long.secret);
    let salvaged = Log::salvage::<Error>(disk(&torn), dir(), long.end, &mut |_| Ok(())).unwrap();
    let lost: Vec<u64> = salvaged.unreadable.iter().map(|lost| lost.position).collect();
    assert_eq!((lost, salvaged.records), (vec![long.secret.0], ERASED as u64 + 2));
}

/// The remains of a torn write after the end may look like a redaction record that is longer than its file.
#[test]
fn what_looks_like_a_redaction_record_is_not_read_beyond_its_file() {
    let story = story(200);
    for from in story.starts() {
        for within in [0, 512] {
            let torn = story.torn(100);
            let behind = Lsn(story.end.0.next_multiple_of(PAGE) + within);
            let (path, at) = place(behind);
            let mut content = torn.bytes(&path).unwrap();
            content[at as usize..][..8].copy_from_slice(&[0, 0, 16, 0, 0xf2, 0, b'H', b'r']);
            torn.replace(&path, &content);
            let (_, report) = try_open(&torn, from, &writable()).0.unwrap();
            assert_eq!((report.erased, report.end), (ERASED as u64, story.end));
            assert_eq!(report.tail.unwrap().position, story.end);
        }
    }
}
