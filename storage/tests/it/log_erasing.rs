//! A reader of a record that is being overwritten, half old and half new, waits and finds it erased: never damage.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use crate::log_fixture::watched::{Watch, Watched};
use crate::log_fixture::{dir, records, small_options};
use holotype_storage::log::{Erase, Log, Lsn};
use holotype_storage::vfs::{SimVfs, VfsFile};

/// Writes one half of what stands at a place, then waits until somebody has read that.
#[derive(Debug, Default)]
struct Half {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Idle,
    /// The next write at this offset is to be halved.
    Awaited(u64),
    Written(u64),
    Seen,
}

impl Half {
    fn await_write(&self, offset: u64) {
        *self.state.lock().unwrap() = State::Awaited(offset);
    }

    fn wait_while(&self, same: impl Fn(State) -> bool) {
        drop(self.changed.wait_while(self.state.lock().unwrap(), |state| same(*state)).unwrap());
    }
}

impl Watch for Half {
    fn read(&self, file: &dyn VfsFile, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        file.read_at(bytes, offset)?;
        if matches!(*state, State::Written(at) if (offset..offset + bytes.len() as u64).contains(&at)) {
            *state = State::Seen;
            self.changed.notify_all();
        }
        Ok(())
    }

    fn write(&self, file: &dyn VfsFile, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        if *state != State::Awaited(offset) {
            return file.write_at(bytes, offset);
        }
        let (front, back) = bytes.split_at(bytes.len() / 2);
        file.write_at(front, offset)?;
        *state = State::Written(offset);
        self.changed.notify_all();
        drop(state);
        self.wait_while(|state| state != State::Seen);
        file.write_at(back, offset + front.len() as u64)
    }
}

/// Reads with `read` while the second of three records is half overwritten, and gives what it found.
fn read_meanwhile<T: Send>(read: impl Fn(&Log, Lsn) -> T + Send + Sync) -> T {
    let half = Arc::new(Half::default());
    let vfs = Watched { sim: SimVfs::new(), watch: Arc::clone(&half) };
    let log = Log::create(Arc::new(vfs), dir(), &small_options()).unwrap();
    let lsn = log.append(&records(1, &[100, 200, 300]), 1).unwrap().lsns[1];
    let (_, redaction) = log.append_redaction(&[], &[Erase { lsn, replacement: None }], 2).unwrap();
    log.sync_to(log.end()).unwrap();
    half.await_write(lsn.0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            half.wait_while(|state| !matches!(state, State::Written(_)));
            read(&log, lsn)
        });
        log.complete_redaction(&redaction).unwrap();
        reader.join().unwrap()
    })
}

#[test]
fn one_record_is_read_erased() {
    assert!(read_meanwhile(|log, lsn| log.read(lsn)).unwrap().is_redacted());
    assert!(read_meanwhile(|log, lsn| log.payload(lsn)).unwrap().redacted);
    assert_eq!(read_meanwhile(|log, lsn| log.read_stored(lsn)).unwrap().content, None);
}

#[test]
fn hashes_are_read_on() {
    let leaves = read_meanwhile(|log, _| log.leaves(Lsn(0), log.end()).collect::<Result<Vec<_>, _>>());
    // Three records and their commit, the redaction and its commit; it is not said to be done before it is.
    assert!(leaves.unwrap().len() >= 6);
}

#[test]
fn transactions_are_read_on() {
    let transactions = read_meanwhile(|log, _| log.scan(Lsn(0)).unwrap().collect::<Result<Vec<_>, _>>()).unwrap();
    assert_eq!(transactions.len(), 2);
    assert!(transactions[0].records[1].is_redacted());
    let report = read_meanwhile(|log, _| log.verify(&mut |_, _| {})).unwrap();
    assert!(report.is_clean() && report.redacted == 1, "{report:?}");
}
