//! One writer, any number of readers, and a status block that is right or absent.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use holotype_storage::Error;
use holotype_storage::lock::Lock;
use holotype_storage::log::Lsn;
use holotype_storage::vfs::{Crash, Failure, Mapping, OpenMode, OsVfs, SimVfs, Vfs, VfsFile};

fn on_both(check: impl Fn(&dyn Vfs, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    check(&OsVfs, &dir.path().join("LOCK"));
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/db")).unwrap();
    check(&sim, Path::new("/db/LOCK"));
}

#[test]
fn a_second_writer_is_refused_with_the_holders_process_id() {
    on_both(|vfs, path| {
        let first = Lock::writer(vfs, path).unwrap();
        match Lock::writer(vfs, path) {
            Err(Error::Held { pid, .. }) => assert_eq!(pid, std::process::id()),
            other => panic!("{other:?}"),
        }
        assert!(!first.has_other_writer().unwrap());
        drop(first);
        Lock::writer(vfs, path).unwrap();
    });
}

#[test]
fn readers_and_the_writer_know_of_each_other() {
    on_both(|vfs, path| {
        let early = Lock::reader(vfs, path).unwrap();
        assert_eq!(early.status().unwrap(), None, "no LOCK file yet");
        assert!(!early.has_other_writer().unwrap());
        let writer = Lock::writer(vfs, path).unwrap();
        assert!(!writer.has_other_readers().unwrap());
        let (one, two) = (Lock::reader(vfs, path).unwrap(), Lock::reader(vfs, path).unwrap());
        assert!(writer.has_other_readers().unwrap());
        assert!(one.has_other_writer().unwrap());
        writer.set_durable(Lsn(4_096)).unwrap();
        let status = two.status().unwrap().unwrap();
        assert_eq!((status.pid, status.durable), (std::process::id(), Lsn(4_096)));
        assert!(status.started_us > 0);
        assert!(matches!(one.set_durable(Lsn(1)), Err(Error::ReadOnly)));
        drop((one, two));
        assert!(!writer.has_other_readers().unwrap());
        drop(writer);
        assert!(!Lock::reader(vfs, path).unwrap().has_other_writer().unwrap());
    });
}

#[test]
fn the_durable_position_outlives_its_writer() {
    on_both(|vfs, path| {
        let first = Lock::writer(vfs, path).unwrap();
        assert_eq!(first.found(), None);
        first.set_durable(Lsn(7)).unwrap();
        drop(first);
        let second = Lock::writer(vfs, path).unwrap();
        assert_eq!(second.found().unwrap().durable, Lsn(7));
        assert_eq!(second.status().unwrap().unwrap().durable, Lsn(7));
    });
}

#[test]
fn readers_need_no_permission_to_write() {
    let sim = SimVfs::new();
    let path = Path::new("/LOCK");
    drop(Lock::writer(&sim, path).unwrap());
    sim.set_read_only(true);
    let reader = Lock::reader(&sim, path).unwrap();
    assert!(reader.status().unwrap().is_some());
    assert!(matches!(Lock::writer(&sim, path), Err(Error::Io { .. })));
}

#[test]
fn after_a_crash_the_status_is_one_that_was_written_or_none() {
    let sim = SimVfs::new();
    let path = Path::new("/LOCK");
    let writer = Lock::writer(&sim, path).unwrap();
    let mut written = vec![writer.status().unwrap()];
    for durable in 1..4 {
        writer.set_durable(Lsn(durable)).unwrap();
        written.push(writer.status().unwrap());
    }
    for state in sim.crashes(200, 1).into_iter().chain([sim.crash(Crash::Keep)]) {
        let found = Lock::reader(&state, path).unwrap().status().unwrap();
        assert!(found.is_none() || written.contains(&found), "{found:?}");
        Lock::writer(&state, path).unwrap();
    }
}

#[test]
fn a_damaged_status_block_is_none_and_is_written_anew() {
    let sim = SimVfs::new();
    let path = Path::new("/LOCK");
    Lock::writer(&sim, path).unwrap().set_durable(Lsn(9)).unwrap();
    for at in 0..64 {
        sim.flip(path, at, 0x10).unwrap();
        assert_eq!(Lock::reader(&sim, path).unwrap().status().unwrap(), None, "byte {at}");
        sim.flip(path, at, 0x10).unwrap();
    }
    sim.replace(path, b"short");
    let writer = Lock::writer(&sim, path).unwrap();
    assert_eq!(writer.found(), None);
    assert_eq!(writer.status().unwrap().unwrap().durable, Lsn(0));
}

#[test]
fn a_disk_on_the_network_is_refused() {
    let sim = SimVfs::new();
    sim.set_network(true);
    let path = Path::new("/LOCK");
    assert!(matches!(Lock::writer(&sim, path), Err(Error::NetworkFileSystem { .. })));
    assert!(matches!(Lock::reader(&sim, path), Err(Error::NetworkFileSystem { .. })));
    assert!(sim.history().is_empty(), "a refusal writes nothing");
}

/// If the status says closed, recovery does not search after the end of the log, so a writer durably resets it before
/// anything else.
#[test]
fn that_the_log_is_closed_is_taken_back_before_anything_is_written() {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/db")).unwrap();
    let path = Path::new("/db/LOCK");
    let first = Lock::writer(&sim, path).unwrap();
    first.set_closed(Lsn(7)).unwrap();
    drop(first);
    sim.sync_dir(Path::new("/db")).unwrap();
    sim.open(path, OpenMode::Read).unwrap().sync().unwrap();
    let found = Lock::writer(&sim, path).unwrap().found().unwrap();
    assert_eq!((found.durable, found.closed), (Lsn(7), true));
    let status = Lock::reader(&sim.crash(Crash::Lose), path).unwrap().status().unwrap().unwrap();
    assert_eq!((status.durable, status.closed), (Lsn(7), false));
}

#[test]
fn that_nothing_changes_is_not_written_again() {
    let sim = SimVfs::new();
    let writer = Lock::writer(&sim, Path::new("/LOCK")).unwrap();
    writer.set_durable(Lsn(7)).unwrap();
    let written = sim.history().len();
    writer.set_durable(Lsn(7)).unwrap();
    writer.set_durable(Lsn(6)).unwrap();
    assert_eq!(sim.history().len(), written);
    writer.set_closed(Lsn(7)).unwrap();
    assert!(writer.status().unwrap().unwrap().closed);
    writer.set_durable(Lsn(7)).unwrap();
    assert!(!writer.status().unwrap().unwrap().closed);
}

/// Three bytes far behind the status block, one for each: writing, reading, keeping the log as it is.
#[test]
fn each_lock_is_one_byte() {
    on_both(|vfs, path| {
        let writer = Lock::writer(vfs, path).unwrap();
        let other = vfs.open(path, OpenMode::ReadWrite).unwrap();
        let first = 1 << 61;
        let held = || {
            let byte = |at| other.is_locked(at..at + 1).unwrap();
            (other.is_locked(0..first).unwrap(), [0, 1, 2, 3].map(|at| byte(first + at)))
        };
        assert_eq!(held(), (false, [true, false, false, false]));
        let reader = Lock::reader(vfs, path).unwrap();
        assert_eq!(held(), (false, [true, true, false, false]));
        let pin = Lock::pin(vfs, path).unwrap();
        assert_eq!(held(), (false, [true, true, true, false]));
        drop((writer, reader, pin));
        assert_eq!(held(), (false, [false; 4]));
    });
}

#[test]
fn without_a_lock_file_there_is_nobody_to_pin_against() {
    on_both(|vfs, path| {
        Lock::pin(vfs, path).unwrap();
        assert!(matches!(Lock::unpinned(vfs, path), Err(Error::Io { action: "open", .. })));
        drop(Lock::writer(vfs, path).unwrap());
        drop((Lock::pin(vfs, path).unwrap(), Lock::pin(vfs, path).unwrap()));
        Lock::unpinned(vfs, path).unwrap();
    });
}

/// Whatever call fails: an error that says so, and never a lock, a pin or a status that is not there.
#[test]
fn every_failing_call_is_told() {
    let path = Path::new("/LOCK");
    type Act = fn(&SimVfs, &Path) -> Result<(), Error>;
    let acts: [(Act, &[&str]); 5] = [
        (
            |sim, path| Lock::writer(sim, path).map(drop),
            &["examine", "create", "open", "lock", "read", "write", "sync"],
        ),
        (|sim, path| Lock::reader(sim, path).map(drop), &["examine", "open", "lock"]),
        (|sim, path| Lock::reader(sim, path)?.status().map(drop), &["examine", "open", "lock", "read"]),
        (|sim, path| Lock::pin(sim, path).map(drop), &["open", "lock"]),
        (|sim, path| Lock::unpinned(sim, path).map(drop), &["open", "lock"]),
    ];
    for (number, (act, expected)) in acts.into_iter().enumerate() {
        for (at, expected) in expected.iter().enumerate() {
            let sim = SimVfs::new();
            drop(Lock::writer(&sim, path).unwrap());
            sim.fail_at(sim.calls() + at as u64, Failure::Io, false);
            match act(&sim, path) {
                Err(Error::Io { action, .. }) => assert_eq!(action, *expected, "act {number}, call {at}"),
                other => panic!("act {number}, call {at}: {other:?}"),
            }
        }
    }
}

/// A file system on which every opened file stays open, as it does in a process that was forked and goes on.
#[derive(Debug)]
struct StaysOpen {
    vfs: OsVfs,
    files: Mutex<Vec<Arc<dyn VfsFile>>>,
}

impl Vfs for StaysOpen {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let file = self.vfs.open(path, mode)?;
        self.files.lock().unwrap().push(Arc::clone(&file));
        Ok(file)
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        self.vfs.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.vfs.rename(from, to)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.vfs.rename_dir(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.vfs.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.vfs.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.vfs.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.vfs.sync_dir(dir)
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        self.vfs.map(path)
    }

    fn is_network(&self, path: &Path) -> io::Result<bool> {
        self.vfs.is_network(path)
    }

    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        self.vfs.is_symlink(path)
    }
}

/// Tests that started programs beside tests that reopened databases found them held now and then, by nobody: between
/// fork and exec a child shares the open LOCK file, so that closing it released nothing.
#[test]
fn a_dropped_lock_is_released_although_a_forked_process_has_the_file_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let vfs = StaysOpen { vfs: OsVfs, files: Mutex::default() };
    drop(Lock::writer(&vfs, &path).unwrap());
    drop(Lock::reader(&vfs, &path).unwrap());
    let writer = Lock::writer(&OsVfs, &path).unwrap();
    assert!(!writer.has_other_readers().unwrap());
    assert_eq!(vfs.files.lock().unwrap().len(), 2);
}
