//! Many threads on one log: commits share syncs, readers read what was appended, numbers have no gap.

use crate::log_fixture;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::log_fixture::watched::{Watch, Watched};
use crate::log_fixture::{create, dir, records, small_options};
use holotype_storage::log::{Log, LogOptions, Lsn, OpenOptions};
use holotype_storage::vfs::{OsVfs, SimVfs, Vfs, VfsFile};
use holotype_storage::{Error, MAX_PAYLOAD, NewRecord};

/// Holds up syncs while it is closed, and counts them.
#[derive(Debug, Default)]
struct Gate {
    closed: Mutex<bool>,
    changed: Condvar,
    syncs: AtomicUsize,
    /// The syncs of each file that run now.
    running: Mutex<HashMap<PathBuf, usize>>,
    /// The most syncs of one file that ran at the same time.
    at_once: AtomicUsize,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.changed.notify_all();
    }

    fn pass(&self) {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        let closed = self.closed.lock().unwrap();
        drop(self.changed.wait_while(closed, |closed| *closed).unwrap());
    }
}

impl Watch for Gate {
    fn sync(&self, file: &dyn VfsFile, path: &Path) -> io::Result<()> {
        let mut running = self.running.lock().unwrap();
        let own = running.entry(path.to_owned()).or_default();
        *own += 1;
        self.at_once.fetch_max(*own, Ordering::SeqCst);
        drop(running);
        self.pass();
        // Others may come meanwhile.
        (0..20).for_each(|_| std::thread::yield_now());
        let synced = file.sync();
        *self.running.lock().unwrap().get_mut(path).unwrap() -= 1;
        synced
    }
}

/// While one sync is held up, fifteen more commits arrive: one more sync serves them all.
#[test]
fn commits_that_arrive_during_a_sync_share_the_next() {
    let gate = Arc::new(Gate::default());
    let vfs = Watched { sim: SimVfs::new(), watch: Arc::clone(&gate) };
    let log = Log::create(Arc::new(vfs), dir(), &LogOptions::new([7; 16])).unwrap();
    let before = gate.syncs.load(Ordering::SeqCst);
    gate.set(true);
    std::thread::scope(|scope| {
        let first = log.append(&records(0, &[100]), 0).unwrap();
        let log = &log;
        let leader = scope.spawn(move || log.sync_to(first.end));
        while gate.syncs.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
        // The first sync is under way and cannot cover these.
        let ends: Vec<Lsn> = (1..16).map(|i| log.append(&records(i, &[100]), 0).unwrap().end).collect();
        let followers: Vec<_> = ends.iter().map(|&end| scope.spawn(move || log.sync_to(end))).collect();
        gate.set(false);
        leader.join().unwrap().unwrap();
        for follower in followers {
            follower.join().unwrap().unwrap();
        }
        assert_eq!(log.durable(), *ends.last().unwrap());
    });
    assert_eq!(gate.syncs.load(Ordering::SeqCst) - before, 2);
}

/// Two syncs at once could share a failure out so that one of them reports success.
#[test]
fn one_sync_runs_at_a_time_however_many_wait() {
    let gate = Arc::new(Gate::default());
    let vfs = Watched { sim: SimVfs::new(), watch: Arc::clone(&gate) };
    let log = Log::create(Arc::new(vfs), dir(), &LogOptions::new([7; 16])).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..200 {
                    let appended = log.append(&records(thread, &[100]), 0).unwrap();
                    log.sync_to(appended.end).unwrap();
                    assert!(log.durable() >= appended.end);
                }
            });
        }
    });
    assert_eq!(gate.at_once.load(Ordering::SeqCst), 1);
}

#[test]
fn a_failed_sync_fails_all_that_wait_for_it() {
    let gate = Arc::new(Gate::default());
    let sim = SimVfs::new();
    let vfs = Watched { sim: sim.clone(), watch: Arc::clone(&gate) };
    let log = Log::create(Arc::new(vfs), dir(), &LogOptions::new([7; 16])).unwrap();
    let before = gate.syncs.load(Ordering::SeqCst);
    gate.set(true);
    std::thread::scope(|scope| {
        let log = &log;
        let ends: Vec<Lsn> = (0..8).map(|i| log.append(&records(i, &[100]), 0).unwrap().end).collect();
        let waiting: Vec<_> = ends.iter().map(|&end| scope.spawn(move || log.sync_to(end))).collect();
        while gate.syncs.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
        sim.fail_at(sim.calls(), holotype_storage::vfs::Failure::Io, false);
        gate.set(false);
        for waiting in waiting {
            assert!(matches!(waiting.join().unwrap(), Err(Error::Poisoned { .. })));
        }
    });
    assert_eq!(gate.syncs.load(Ordering::SeqCst) - before, 1, "nobody may try again");
}

#[test]
fn threads_append_sync_and_read_real_files() {
    let tempdir = tempfile::tempdir().unwrap();
    let dir = tempdir.path().join("log");
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let log = Log::create(Arc::clone(&vfs), &dir, &small_options()).unwrap();
    const THREADS: u8 = 8;
    const EACH: usize = 40;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                for i in 0..EACH {
                    let new = records(thread, &[i * 37 % 900, 10, i * 1013 % 6000]);
                    let prepared = log.prepare(&new).unwrap();
                    let appended = log.append_prepared(&prepared, i as i64).unwrap();
                    if i % 4 == 0 {
                        log.sync_to(appended.end).unwrap();
                        assert!(log.durable() >= appended.end);
                    }
                    for (lsn, new) in appended.lsns.iter().zip(&new) {
                        assert_eq!(log.read(*lsn).unwrap().payload, new.payload);
                    }
                    let heads = log.scan(Lsn(0)).unwrap().take(5).filter(Result::is_ok).count();
                    assert!(heads > 0);
                }
            });
        }
    });
    assert_eq!(log.head().commit.0, u64::from(THREADS) * EACH as u64);
    assert!(log.verify(&mut |_, _| {}).unwrap().is_clean());
    log.close().unwrap();
    drop(log);
    let mut count = 0;
    let (_, report) = Log::open(vfs, &dir, None, &OpenOptions::default(), &mut |transaction| {
        count += 1;
        assert_eq!(transaction.number.0, count);
        Ok::<(), Error>(())
    })
    .unwrap();
    assert!(report.closed && report.tail.is_none());
    assert_eq!(count, u64::from(THREADS) * EACH as u64);
}

#[test]
fn the_largest_record_is_kept_and_a_larger_one_refused() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let largest = NewRecord { kind: 1, payload: vec![0xab; MAX_PAYLOAD] };
    let appended = log.append(&[records(1, &[10]).remove(0), largest.clone(), records(2, &[10]).remove(0)], 0).unwrap();
    assert_eq!(log.read(appended.lsns[1]).unwrap().payload, largest.payload);
    let larger = NewRecord { kind: 1, payload: vec![0; MAX_PAYLOAD + 1] };
    assert!(matches!(log.append(&[larger], 0), Err(Error::TooLarge { .. })));
    let too_much = vec![largest; 4];
    assert!(matches!(log.append(&too_much, 0), Err(Error::TooLarge { limit, .. }) if limit == 64 << 20));
    assert!(matches!(log.append(&[NewRecord { kind: 0xf0, payload: vec![] }], 0), Err(Error::ReservedKind { .. })));
    assert_eq!(log.end(), appended.end);
    log.close().unwrap();
    drop(log);
    let opened = log_fixture::open(&sim, &log_fixture::writable());
    assert_eq!(opened.transactions.len(), 1);
    assert_eq!(opened.transactions[0].records[1].payload.len(), MAX_PAYLOAD);
}

#[test]
fn a_read_only_log_follows_the_hint_and_changes_nothing() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let first = log.append(&records(1, &[100]), 0).unwrap();
    log.sync_to(first.end).unwrap();
    let second = log.append(&records(2, &[100]), 0).unwrap();
    let before = sim.history().len();
    let hint = OpenOptions { durable_hint: Some(log.durable()), ..log_fixture::read_only() };
    let opened = log_fixture::open(&sim, &hint);
    assert_eq!(opened.transactions.len(), 1);
    assert_eq!((opened.log.end(), opened.log.head().commit.0), (first.end, 1));
    assert!(matches!(opened.log.append(&[], 0), Err(Error::ReadOnly)));
    assert!(matches!(opened.log.read(second.lsns[0]), Err(Error::NoRecord { .. })));
    assert!(opened.log.verify(&mut |_, _| {}).unwrap().is_clean());
    opened.log.close().unwrap();
    assert_eq!(sim.history().len(), before);
}

/// A status block that was not written again, or was put back, says too little.
#[test]
fn a_hint_that_is_too_low_hides_nothing_that_the_log_proves_durable() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let ends: Vec<Lsn> = (1..=4)
        .map(|number| {
            let appended = log.append(&records(number, &[100]), 0).unwrap();
            if number < 4 {
                log.sync_to(appended.end).unwrap();
            }
            appended.end
        })
        .collect();
    log.flush().unwrap();
    let open = |hint: Lsn, alone| {
        log_fixture::open(&sim, &OpenOptions { durable_hint: Some(hint), alone, ..log_fixture::read_only() })
    };
    for hint in [Lsn(1), ends[0], ends[1], ends[2]] {
        let opened = open(hint, false);
        assert_eq!(opened.log.end(), ends[2], "the fourth commit says that the third is durable, hint {hint}");
        assert_eq!(opened.transactions.len(), 3);
        assert_eq!(open(hint, true).log.end(), ends[3], "nobody takes the fourth back");
    }
}

#[test]
fn positions_that_hold_no_record_are_told_apart_from_damage() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let appended = log.append(&records(1, &[100, 3000, 3000]), 0).unwrap();
    for none in [0, 8, 4095, appended.lsns[0].0 + 4, 2 * 4096 - 8, appended.end.0, u64::MAX, u64::MAX - 7] {
        assert!(matches!(log.read(Lsn(none)), Err(Error::NoRecord { .. })), "{none}");
    }
    assert!(matches!(log.read(Lsn(appended.lsns[0].0 + 8)), Err(Error::Damaged(_))));
    assert!(matches!(log.scan(appended.lsns[1]), Err(Error::NoRecord { .. })));
    assert!(matches!(log.sync_to(Lsn(appended.end.0 + 8)), Err(Error::NoRecord { .. })));
}
