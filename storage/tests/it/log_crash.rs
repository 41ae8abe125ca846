//! After a crash at any point, with any choice of what the disk kept: what was acknowledged is there, nothing is half
//! there, the log goes on, and a crash in the middle of recovering changes none of that.

use crate::log_fixture;
use std::path::Path;

use crate::log_fixture::{PAGE, dir, disk, holds, records, segment_path, small_options, try_open, writable};
use holotype_storage::log::{Log, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{Crash, Failure, SimVfs, Vfs};
use holotype_storage::{Error, NewRecord, RecoveryReport};

/// A run on a log: the transactions appended, and the number acknowledged at each length of the disk's history.
#[derive(Debug, Default)]
struct Run {
    appended: Vec<Vec<NewRecord>>,
    acknowledged: Vec<Acknowledged>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    history_len: usize,
    transactions: usize,
    durable: Lsn,
}

impl Run {
    /// Creates a log and fills it, syncing after every so many transactions; stops at the first failure.
    fn go(&mut self, sim: &SimVfs, sync_every: usize, segment_pages: u64) -> Result<(), Error> {
        let options = LogOptions { first_segment_len: segment_pages * PAGE, ..small_options() };
        let log = Log::create(disk(sim), dir(), &options)?;
        for (number, lens) in SHAPES.iter().enumerate() {
            let new = records(number as u8, lens);
            self.appended.push(new);
            let Some(new) = self.appended.last() else { continue };
            match log.append(new, 1) {
                // After any other failure its records may be on the disk.
                Err(error @ Error::NoRoom { .. }) => {
                    self.appended.pop();
                    return Err(error);
                }
                other => other?,
            };
            if number % sync_every == 0 {
                log.sync_to(log.end())?;
                self.acknowledge(sim, &log);
            }
            if number % 5 == 4 {
                log.seal()?;
                self.acknowledge(sim, &log);
            }
        }
        log.close()?;
        self.acknowledge(sim, &log);
        Ok(())
    }

    fn acknowledge(&mut self, sim: &SimVfs, log: &Log) {
        let (history_len, transactions) = (sim.history().len(), self.appended.len());
        self.acknowledged.push(Acknowledged { history_len, transactions, durable: log.durable() });
    }

    /// The acknowledged transactions when the disk's history had this length.
    fn acknowledged_at(&self, history_len: usize) -> Acknowledged {
        let before = self.acknowledged.partition_point(|acknowledged| acknowledged.history_len <= history_len);
        before.checked_sub(1).map_or_else(Acknowledged::default, |last| self.acknowledged[last])
    }

    /// Opens a disk as a crash left it, and checks all that is promised.
    fn check(&self, crashed: &SimVfs, acknowledged: Acknowledged, context: &str) -> Option<RecoveryReport> {
        let hint = OpenOptions { durable_hint: Some(acknowledged.durable), ..writable() };
        let (opened, found) = try_open(crashed, None, &hint);
        let (log, report) = match opened {
            Ok(opened) => opened,
            Err(Error::MissingSegment { number: 1, .. } | Error::Io { .. }) if acknowledged.history_len == 0 => {
                return None;
            }
            Err(error) => panic!("{context}: {error}"),
        };
        assert!(found.len() >= acknowledged.transactions, "{context}: {} of {acknowledged:?}", found.len());
        assert!(found.len() <= self.appended.len(), "{context}");
        for (transaction, new) in found.iter().zip(&self.appended) {
            assert!(holds(transaction, new), "{context}: {transaction:?}");
        }
        let verified = log.verify(&mut |_, _| {}).unwrap();
        assert!(verified.is_clean(), "{context}: {verified:?}");

        // It goes on, and nothing set aside comes back.
        let more = records(0xee, &[30, 5000]);
        let appended = log.append(&more, 2).unwrap();
        assert_eq!(appended.commit.0 as usize, found.len() + 1, "{context}");
        log.sync_to(appended.end).unwrap();
        let head = log.head();
        drop(log);
        let lost = crashed.crash(Crash::Lose);
        let (opened, again) = try_open(&lost, None, &writable());
        let (log, second) = opened.unwrap_or_else(|error| panic!("{context}, then again: {error}"));
        assert_eq!(again.len(), found.len() + 1, "{context}");
        assert_eq!(again[..found.len()], found, "{context}");
        assert!(holds(&again[found.len()], &more), "{context}");
        assert_eq!((log.head(), &second.tail), (head, &None), "{context}");
        Some(report)
    }
}

/// Short ones, a page boundary, a run, a segment boundary, a transaction over two segments.
const SHAPES: [&[usize]; 8] =
    [&[10], &[3000, 700, 600], &[0, 0], &[6000], &[2500, 2500, 2500, 2500, 2500], &[], &[200], &[3900, 9000]];

#[test]
fn whatever_the_disk_keeps_what_was_acknowledged_is_there() {
    let (mut states, mut tails) = (0, 0);
    for (sync_every, segment_pages) in [(1, 4), (3, 4), (100, 4), (4, 32), (100, 32)] {
        let sim = SimVfs::new();
        let mut run = Run::default();
        run.go(&sim, sync_every, segment_pages).unwrap();
        for (history_len, point) in sim.replay().enumerate() {
            let acknowledged = run.acknowledged_at(history_len);
            for (number, crashed) in point.crashes(30, history_len as u64).into_iter().enumerate() {
                let context = format!(
                    "sync every {sync_every}, segments of {segment_pages}, operation {history_len}, state {number}"
                );
                states += 1;
                tails += usize::from(
                    run.check(&crashed, acknowledged, &context).is_some_and(|report| report.tail.is_some()),
                );
            }
        }
    }
    assert!(states > 500 && tails > 100, "{states} states, {tails} tails: too few to mean anything");
}

/// Interrupts recovery at each of its calls, crashes again, and expects the same of the second recovery.
#[test]
fn recovery_may_crash_too() {
    let sim = SimVfs::new();
    let mut run = Run::default();
    run.go(&sim, 3, 4).unwrap();
    let mut interrupted = 0;
    for (history_len, point) in sim.replay().enumerate() {
        let acknowledged = run.acknowledged_at(history_len);
        let Some(crashed) = point.crashes(6, 77 ^ history_len as u64).pop() else { continue };
        let probe = crashed.crash(Crash::Keep);
        let opened = try_open(&probe, None, &writable()).0;
        let Ok((_, RecoveryReport { tail: Some(_), .. })) = opened else { continue };
        for call in 0.. {
            let first = crashed.crash(Crash::Keep);
            first.fail_at(first.calls() + call, Failure::Io, true);
            if try_open(&first, None, &writable()).0.is_ok() {
                break;
            }
            first.heal();
            for (number, second) in first.crashes(4, call).into_iter().enumerate() {
                let context = format!("operation {history_len}, recovery stopped at call {call}, state {number}");
                run.check(&second, acknowledged, &context);
                interrupted += 1;
            }
        }
    }
    assert!(interrupted > 200, "{interrupted} interrupted recoveries are too few to mean anything");
}

/// Lets each call of a run fail, once or it and all after it, in every way there is, then goes on as a process would:
/// opens again on the same disk, with the same cache.
#[test]
fn a_failing_call_loses_nothing_acknowledged() {
    let clean = SimVfs::new();
    Run::default().go(&clean, 3, 4).unwrap();
    let kinds = [Failure::Io, Failure::NoSpace, Failure::Interrupted, Failure::Short];
    for (failure, for_ever) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for call in 0..clean.calls() {
            let sim = SimVfs::new();
            sim.fail_at(call, failure, for_ever);
            let mut run = Run::default();
            let context = format!("{failure:?} at call {call}{}", if for_ever { " and ever after" } else { "" });
            let done = run.go(&sim, 3, 4);
            sim.heal();
            if done.is_ok() {
                continue;
            }
            let whole = failure == Failure::Short || (failure == Failure::Interrupted && !for_ever);
            assert!(!whole, "{context}: {done:?}: what the system interrupts or cuts short is no failure");
            let acknowledged = run.acknowledged.last().copied().unwrap_or_default();
            for (number, crashed) in sim.crashes(3, call).into_iter().enumerate() {
                run.check(&crashed, acknowledged, &format!("{context}, crash state {number}"));
            }
            // The same disk, opened again: what that finds and says is durable must be.
            let (opened, found) = try_open(&sim, None, &writable());
            match opened {
                Ok((log, _)) => {
                    let durable = Acknowledged { transactions: found.len(), durable: log.durable(), history_len: 1 };
                    drop(log);
                    run.check(&sim.crash(Crash::Lose), durable, &format!("{context}, opened again"));
                }
                Err(Error::MissingSegment { .. } | Error::Io { .. }) if run.acknowledged.is_empty() => {}
                Err(error) => panic!("{context}: {error}"),
            }
        }
    }
}

/// A log that was closed and opened again took a transaction whose first sector a crash lost. What the rest left lies
/// behind a close record and zeros, where recovery, trusting the close record, once did not look: the next transactions
/// went over it and the log had bytes behind its end that nobody had put there.
#[test]
fn what_a_torn_write_left_behind_a_close_record_is_found() {
    let sim = SimVfs::new();
    let log = Log::create(disk(&sim), dir(), &small_options()).unwrap();
    log.append(&records(1, &[100]), 1).unwrap();
    log.close().unwrap();
    drop(log);
    let (log, _) = try_open(&sim, None, &writable()).0.unwrap();
    let durable = log.durable();
    let appended = log.append(&records(2, &[2000]), 1).unwrap();
    log.flush().unwrap();
    let written = sim.bytes(&segment_path(1)).unwrap();
    drop(log);
    let crashed = sim.crash(Crash::Lose);
    let mut torn = crashed.bytes(&segment_path(1)).unwrap();
    let from = (durable.0 as usize).next_multiple_of(512);
    torn[from..appended.end.0 as usize].copy_from_slice(&written[from..appended.end.0 as usize]);
    crashed.replace(&segment_path(1), &torn);

    let hint = OpenOptions { durable_hint: Some(durable), ..writable() };
    let (opened, found) = try_open(&crashed, None, &hint);
    let (log, report) = opened.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(report.tail.unwrap().position, durable);
    assert!(log.verify(&mut |_, _| {}).unwrap().is_clean());
}

/// A log with one durable transaction and two prepared segments: the disk has no room for the rest of the next one.
fn with_two_prepared_segments(sim: &SimVfs) -> Log {
    let log = Log::create(disk(sim), dir(), &small_options()).unwrap();
    let first = log.append(&records(1, &[100]), 1).unwrap();
    log.sync_to(first.end).unwrap();
    sim.set_quota(Some(sim.used_bytes() + small_options().limits.max_segment_len * 2 + 100));
    assert!(matches!(log.append(&records(2, &[3900; 12]), 1), Err(Error::NoRoom { .. })));
    assert!(sim.bytes(&segment_path(3)).is_ok(), "two segments are prepared");
    log
}

/// Opens what a crash after each change from number `from` on leaves, which has the one transaction.
fn opens_after_any_crash(sim: &SimVfs, from: usize) {
    for (change, point) in sim.replay().enumerate().skip(from) {
        for state in point.crashes(100, 1) {
            let (opened, found) = try_open(&state, None, &writable());
            opened.unwrap_or_else(|error| panic!("after change {change}: {error}"));
            assert_eq!(found.len(), 1);
        }
    }
}

/// Recovery gave two prepared segments their names again, to make those durable. A crash that kept only that the first
/// lost its name left a gap in the numbers, and a log that said a segment was missing.
#[test]
fn prepared_segments_never_leave_a_gap() {
    let sim = SimVfs::new();
    drop(with_two_prepared_segments(&sim));
    let crashed = sim.crash(Crash::Keep);
    assert!(crashed.bytes(&segment_path(3)).is_ok(), "two segments are prepared");
    drop(try_open(&crashed, None, &writable()).0.unwrap());
    opens_after_any_crash(&crashed, 0);
}

/// Closing removes prepared segments, the last one first.
#[test]
fn closing_leaves_no_gap_among_prepared_segments() {
    let sim = SimVfs::new();
    let log = with_two_prepared_segments(&sim);
    let before = sim.replay().count();
    log.close().unwrap();
    drop(log);
    assert!(sim.bytes(&segment_path(2)).is_err() && sim.bytes(&segment_path(3)).is_err());
    opens_after_any_crash(&sim, before);
}

/// Creating a log ends in a sync of its directory. Where that failed, and removing what was made failed too, the log
/// stood there to be opened, under a name that no later sync makes durable: all that was then acknowledged was lost
/// with it.
#[test]
fn a_log_whose_creation_failed_is_opened_under_a_name_that_lasts() {
    let clean = SimVfs::new();
    let _log = Log::create(disk(&clean), dir(), &small_options()).unwrap();
    for call in 0..clean.calls() {
        let sim = SimVfs::new();
        sim.fail_at(call, Failure::Io, true);
        Log::create(disk(&sim), dir(), &small_options()).unwrap_err();
        sim.heal();
        let (Ok((log, _)), _) = try_open(&sim, None, &writable()) else { continue };
        let appended = log.append(&records(1, &[10]), 1).unwrap();
        log.sync_to(appended.end).unwrap();
        drop(log);
        let (opened, found) = try_open(&sim.crash(Crash::Lose), None, &writable());
        opened.unwrap_or_else(|error| panic!("after a failure at call {call}: {error}"));
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn after_a_failed_sync_nothing_is_believed() {
    let sim = SimVfs::new();
    let log = Log::create(disk(&sim), dir(), &small_options()).unwrap();
    let first = log.append(&records(1, &[100]), 1).unwrap();
    log.sync_to(first.end).unwrap();
    let second = log.append(&records(2, &[100]), 1).unwrap();
    sim.fail_at(sim.calls(), Failure::Io, false);
    assert!(matches!(log.sync_to(second.end), Err(Error::Poisoned { .. })));
    // The disk works again, but the log does not pretend to.
    assert!(matches!(log.sync_to(second.end), Err(Error::Poisoned { .. })));
    assert!(matches!(log.append(&records(3, &[1]), 1), Err(Error::Poisoned { .. })));
    assert!(matches!(log.seal(), Err(Error::Poisoned { .. })));
    assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
    assert_eq!(log.durable(), first.end);
    log.sync_to(first.end).unwrap();
    assert_eq!(log.read(first.lsns[0]).unwrap().payload.len(), 100);
    drop(log);
    let (opened, found) = try_open(&sim.crash(Crash::Keep), None, &writable());
    assert!(opened.unwrap().1.damage.is_none());
    assert_eq!(found.len(), 1, "the failed sync lost the second");
}

#[test]
fn a_full_disk_refuses_and_goes_on() {
    let sim = SimVfs::new();
    let log = Log::create(disk(&sim), dir(), &small_options()).unwrap();
    let first = log.append(&records(1, &[3000, 3000]), 1).unwrap();
    sim.set_quota(Some(sim.used_bytes() + 1000));
    let big = records(2, &[3000, 3000, 3000]);
    for _ in 0..2 {
        let Err(Error::NoRoom { len, path, .. }) = log.append(&big, 1) else { panic!("there is no room for this") };
        assert_eq!((len, path), (small_options().limits.max_segment_len, segment_path(2)));
    }
    assert_eq!(log.end(), first.end);
    // A transaction that fits is still accepted.
    let small = log.append(&records(3, &[10]), 1).unwrap();
    log.sync_to(small.end).unwrap();
    sim.set_quota(None);
    let third = log.append(&big, 1).unwrap();
    assert_eq!(third.commit.0, 3);
    log.close().unwrap();
    drop(log);
    let (opened, found) = try_open(&sim.crash(Crash::Lose), None, &writable());
    assert!(opened.unwrap().1.tail.is_none());
    assert!(holds(&found[2], &big));
}

/// A transaction that needs several new segments and is refused half-way leaves the ones already prepared for the next.
#[test]
fn a_refusal_in_the_middle_of_a_long_transaction_leaves_no_trace() {
    let sim = SimVfs::new();
    let log = Log::create(disk(&sim), dir(), &small_options()).unwrap();
    let first = log.append(&records(1, &[100]), 1).unwrap();
    log.sync_to(first.end).unwrap();
    let before = sim.bytes(&segment_path(1)).unwrap();
    sim.set_quota(Some(sim.used_bytes() + small_options().limits.max_segment_len * 2 + 100));
    let long = records(2, &[3900; 12]);
    assert!(matches!(log.append(&long, 1), Err(Error::NoRoom { .. })));
    assert_eq!(sim.bytes(&segment_path(1)).unwrap(), before);
    assert!(sim.bytes(&segment_path(2)).unwrap().iter().all(|&byte| byte == 0));
    let shorter = log.append(&records(3, &[3900; 5]), 1).unwrap();
    log.sync_to(shorter.end).unwrap();
    drop(log);
    let (opened, found) = try_open(&sim.crash(Crash::Lose), None, &writable());
    assert!(opened.unwrap().1.tail.is_none());
    assert_eq!(found.len(), 2);
    assert!(sim.list(Path::new(log_fixture::DIR)).unwrap().iter().all(|name| name.ends_with(".log")));
}
