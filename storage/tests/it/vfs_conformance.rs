//! One suite for the file trait, run on the real file system and on the simulated one.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use holotype_storage::Error;
use holotype_storage::log::{Log, LogOptions, OpenOptions};
use holotype_storage::vfs::{
    LockKind, MAPPING_ALIGNMENT, OpenMode, OsVfs, SimVfs, UmaskVfs, Vfs, VfsFile, refuse_symlink,
};

/// Runs a check on both, each in a directory of its own.
fn on_both(check: impl Fn(&dyn Vfs, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    check(&OsVfs, dir.path());
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/db")).unwrap();
    check(&sim, Path::new("/db"));
}

fn write_file(vfs: &dyn Vfs, path: &Path, content: &[u8]) -> Arc<dyn VfsFile> {
    let file = vfs.open(path, OpenMode::CreateNew).unwrap();
    file.write_at(content, 0).unwrap();
    file
}

fn read_file(vfs: &dyn Vfs, path: &Path) -> Vec<u8> {
    let file = vfs.open(path, OpenMode::Read).unwrap();
    let mut content = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_at(&mut content, 0).unwrap();
    content
}

fn kind_of<T>(result: std::io::Result<T>) -> ErrorKind {
    result.err().expect("must fail").kind()
}

#[test]
fn files_open_in_the_mode_asked_for() {
    on_both(|vfs, dir| {
        let path = dir.join("a");
        assert_eq!(kind_of(vfs.open(&path, OpenMode::Read)), ErrorKind::NotFound);
        assert_eq!(kind_of(vfs.open(&path, OpenMode::ReadWrite)), ErrorKind::NotFound);
        let nowhere = dir.join("missing/a");
        assert_eq!(kind_of(vfs.open(&nowhere, OpenMode::CreateNew)), ErrorKind::NotFound);
        write_file(vfs, &path, b"content");
        assert_eq!(kind_of(vfs.open(&path, OpenMode::CreateNew)), ErrorKind::AlreadyExists);
        assert!(vfs.open(&path, OpenMode::Read).unwrap().write_at(b"x", 0).is_err());
        assert!(vfs.open(&path, OpenMode::Read).unwrap().set_len(0).is_err());
        vfs.open(&path, OpenMode::ReadWrite).unwrap().write_at(b"X", 3).unwrap();
        assert_eq!(read_file(vfs, &path), b"conXent");
    });
}

#[test]
fn symbolic_links_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    write_file(&OsVfs, &target, b"kept");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let sim = SimVfs::new();
    write_file(&sim, Path::new("/link"), b"kept");
    sim.make_symlink(Path::new("/link"));
    for (vfs, link) in [(&OsVfs as &dyn Vfs, link.as_path()), (&sim, Path::new("/link"))] {
        for mode in [OpenMode::Read, OpenMode::ReadWrite] {
            let error = vfs.open(link, mode).expect_err("a link was followed");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("symbolic link"), "{error}");
        }
        assert_eq!(kind_of(vfs.open(link, OpenMode::CreateNew)), ErrorKind::AlreadyExists);
        assert_eq!(kind_of(vfs.map(link)), ErrorKind::InvalidInput);
        assert_eq!(kind_of(refuse_symlink(vfs, link)), ErrorKind::InvalidInput);
        refuse_symlink(vfs, &link.with_file_name("missing")).unwrap();
    }
    // Removing a link removes the link.
    OsVfs.remove(&link).unwrap();
    assert_eq!(read_file(&OsVfs, &target), b"kept");
}

#[test]
fn opening_a_pipe_does_not_wait_for_its_other_end() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let file = OsVfs.open(&pipe, OpenMode::Read).unwrap();
    assert!(file.read_at(&mut [0; 4], 0).is_err());
    assert!(OsVfs.open(dir.path(), OpenMode::ReadWrite).is_err());
}

#[test]
fn new_files_are_private_unless_the_umask_is_to_decide() {
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let dir = tempfile::tempdir().unwrap();
    let private = dir.path().join("private");
    OsVfs.create_dir(&private).unwrap();
    write_file(&OsVfs, &private.join("a"), b"");
    assert_eq!((mode(&private), mode(&private.join("a"))), (0o700, 0o600));
    let shared = dir.path().join("shared");
    UmaskVfs.create_dir(&shared).unwrap();
    write_file(&UmaskVfs, &shared.join("a"), b"");
    // Files that the standard library creates have the umask's modes too.
    let plain = dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::write(plain.join("a"), b"").unwrap();
    assert_eq!((mode(&shared), mode(&shared.join("a"))), (mode(&plain), mode(&plain.join("a"))));
}

#[test]
fn a_log_behind_a_symbolic_link_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (elsewhere, link) = (dir.path().join("elsewhere"), dir.path().join("log"));
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
    let options = LogOptions::new([7; 16]);
    drop(Log::create(Arc::clone(&vfs), &elsewhere, &options).unwrap());
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    let opened = Log::open(Arc::clone(&vfs), &link, None, &OpenOptions::default(), &mut |_| Ok::<(), Error>(()));
    assert!(matches!(opened, Err(Error::Io { source, .. }) if source.kind() == ErrorKind::InvalidInput));
    std::fs::remove_dir_all(&elsewhere).unwrap();
    assert!(matches!(Log::create(vfs, &link, &options), Err(Error::Io { .. })));
    assert!(!elsewhere.exists(), "a log was created behind the link");
}

#[test]
fn recovery_leaves_files_alone_that_are_not_of_a_log() {
    let sim = SimVfs::new();
    let dir = Path::new("/log");
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    drop(Log::create(Arc::clone(&vfs), dir, &LogOptions::new([7; 16])).unwrap());
    for name in ["notes.log.tmp", "0000000009.log.tmp"] {
        sim.replace(&dir.join(name), b"text");
    }
    let (_log, report) = Log::open(vfs, dir, None, &OpenOptions::default(), &mut |_| Ok::<(), Error>(())).unwrap();
    assert_eq!(report.removed, [dir.join("0000000009.log.tmp")]);
    assert!(sim.files().contains(&dir.join("notes.log.tmp")));
}

#[test]
fn reads_and_writes_are_exact() {
    on_both(|vfs, dir| {
        let path = dir.join("a");
        let file = write_file(vfs, &path, b"0123456789");
        let mut buf = [0; 4];
        file.read_at(&mut buf, 6).unwrap();
        assert_eq!(&buf, b"6789");
        assert_eq!(kind_of(file.read_at(&mut buf, 7)), ErrorKind::UnexpectedEof);
        assert_eq!(kind_of(file.read_at(&mut buf, 1 << 40)), ErrorKind::UnexpectedEof);
        file.read_at(&mut [], 10).unwrap();
        file.write_at(b"xy", 12).unwrap();
        assert_eq!(read_file(vfs, &path), b"0123456789\0\0xy", "a gap is zeros");
        file.write_at(&[], 100).unwrap();
        assert_eq!(file.len().unwrap(), 14, "writing nothing changes nothing");
    });
}

#[test]
fn lengths_change_with_zeros() {
    on_both(|vfs, dir| {
        let path = dir.join("a");
        let file = write_file(vfs, &path, b"0123456789");
        file.set_len(4).unwrap();
        file.set_len(6).unwrap();
        assert_eq!(read_file(vfs, &path), b"0123\0\0");
        assert_eq!(file.len().unwrap(), 6);
        file.sync().unwrap();
        assert_eq!(read_file(vfs, &path), b"0123\0\0");
    });
}

#[test]
fn renaming_replaces_and_open_handles_keep_their_file() {
    on_both(|vfs, dir| {
        let (a, b) = (dir.join("a"), dir.join("b"));
        let old = write_file(vfs, &b, b"old");
        write_file(vfs, &a, b"new");
        vfs.rename(&a, &b).unwrap();
        vfs.sync_dir(dir).unwrap();
        assert_eq!(read_file(vfs, &b), b"new");
        assert_eq!(kind_of(vfs.open(&a, OpenMode::Read)), ErrorKind::NotFound);
        assert_eq!(kind_of(vfs.rename(&a, &b)), ErrorKind::NotFound);
        let mut buf = [0; 3];
        old.read_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"old");
    });
}

#[test]
fn removed_files_stay_readable_through_handles_and_mappings() {
    on_both(|vfs, dir| {
        let path = dir.join("a");
        let file = write_file(vfs, &path, b"content");
        let mapping = vfs.map(&path).unwrap();
        vfs.remove(&path).unwrap();
        assert_eq!(kind_of(vfs.remove(&path)), ErrorKind::NotFound);
        assert_eq!(kind_of(vfs.map(&path)), ErrorKind::NotFound);
        let mut buf = [0; 7];
        file.read_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"content");
        assert_eq!(&*mapping, b"content");
    });
}

#[test]
fn listings_are_sorted_and_name_files_only() {
    on_both(|vfs, dir| {
        assert!(vfs.list(dir).unwrap().is_empty());
        for name in ["b", "a", "c"] {
            write_file(vfs, &dir.join(name), b"");
        }
        let sub = dir.join("sub/deep");
        assert!(vfs.create_dir(&sub).unwrap(), "it was not there");
        assert!(!vfs.create_dir(&sub).unwrap(), "it was");
        write_file(vfs, &sub.join("d"), b"");
        assert_eq!(vfs.list(dir).unwrap(), ["a", "b", "c"]);
        assert_eq!(vfs.list(&sub).unwrap(), ["d"]);
        assert_eq!(kind_of(vfs.remove_dir(&sub)), ErrorKind::DirectoryNotEmpty);
        vfs.remove(&sub.join("d")).unwrap();
        vfs.remove_dir(&sub).unwrap();
        assert_eq!(kind_of(vfs.list(&sub)), ErrorKind::NotFound);
        assert_eq!(kind_of(vfs.remove_dir(&sub)), ErrorKind::NotFound);
        assert_eq!(kind_of(vfs.list(&dir.join("missing"))), ErrorKind::NotFound);
        assert_eq!(kind_of(vfs.sync_dir(&dir.join("missing"))), ErrorKind::NotFound);
    });
}

#[test]
fn mappings_are_whole_aligned_and_shared() {
    on_both(|vfs, dir| {
        for len in [0_usize, 1, 63, 4096, 70_001] {
            let path = dir.join(format!("m{len}"));
            let content: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            write_file(vfs, &path, &content);
            let mapping = vfs.map(&path).unwrap();
            assert_eq!(mapping.as_ptr().align_offset(MAPPING_ALIGNMENT), 0);
            let clone = mapping.clone();
            drop(mapping);
            // Whatever is asked for ahead or let go of, what is read stays the same.
            for range in [0..len, len / 2..len / 2 + 1, len..len + 5000, usize::MAX - 1..usize::MAX, 0..0] {
                clone.will_need(range.clone());
                assert_eq!(&*clone, content);
                clone.advise_dont_need(range);
                assert_eq!(&*clone, content);
            }
        }
        assert_eq!(kind_of(vfs.map(&dir.join("missing"))), ErrorKind::NotFound);
    });
}

/// Two handles of one file, as two processes would have.
fn two_handles(vfs: &dyn Vfs, dir: &Path) -> (Arc<dyn VfsFile>, Arc<dyn VfsFile>, PathBuf) {
    let path = dir.join("LOCK");
    write_file(vfs, &path, b"");
    let open = || vfs.open(&path, OpenMode::ReadWrite).unwrap();
    (open(), open(), path.clone())
}

#[test]
fn exclusive_locks_exclude_and_shared_ones_share() {
    on_both(|vfs, dir| {
        let (a, b, path) = two_handles(vfs, dir);
        let far = 1 << 62;
        assert!(a.try_lock(far..far + 1, LockKind::Exclusive).unwrap());
        assert!(!b.try_lock(far..far + 1, LockKind::Exclusive).unwrap());
        assert!(!b.try_lock(far..far + 1, LockKind::Shared).unwrap());
        assert!(b.is_locked(far..far + 1).unwrap());
        assert!(!a.is_locked(far..far + 1).unwrap(), "one's own lock is no conflict");
        assert!(b.try_lock(far + 1..far + 2, LockKind::Exclusive).unwrap(), "another byte is free");
        a.unlock(far..far + 1).unwrap();
        assert!(!b.is_locked(far..far + 1).unwrap());
        assert!(b.try_lock(far..far + 1, LockKind::Shared).unwrap());
        assert!(a.try_lock(far..far + 1, LockKind::Shared).unwrap());
        let reader = vfs.open(&path, OpenMode::Read).unwrap();
        assert!(reader.try_lock(far..far + 1, LockKind::Shared).unwrap());
        assert!(reader.is_locked(far..far + 1).unwrap());
    });
}

#[test]
fn locks_end_with_their_handle() {
    on_both(|vfs, dir| {
        let (a, b, path) = two_handles(vfs, dir);
        assert!(a.try_lock(0..u64::MAX, LockKind::Exclusive).unwrap());
        assert!(!b.try_lock(7..8, LockKind::Shared).unwrap());
        // Opening and closing another handle must not end the lock, as it would with POSIX locks.
        drop(vfs.open(&path, OpenMode::ReadWrite).unwrap());
        assert!(!b.try_lock(7..8, LockKind::Shared).unwrap());
        drop(a);
        assert!(b.try_lock(7..8, LockKind::Exclusive).unwrap());
    });
}

#[test]
fn a_waiting_lock_is_granted_when_the_other_ends() {
    on_both(|vfs, dir| {
        let (a, b, _) = two_handles(vfs, dir);
        a.lock(0..1, LockKind::Exclusive).unwrap();
        let (granted, is_granted) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                b.lock(0..1, LockKind::Exclusive).unwrap();
                granted.send(()).unwrap();
            });
            assert!(is_granted.try_recv().is_err(), "not while the other holds it");
            a.unlock(0..1).unwrap();
            is_granted.recv().unwrap();
        });
    });
}

#[test]
fn a_local_directory_is_no_network() {
    on_both(|vfs, dir| {
        assert!(!vfs.is_network(dir).unwrap());
        assert_eq!(kind_of(vfs.is_network(&dir.join("missing"))), ErrorKind::NotFound);
    });
}

#[test]
fn a_directory_is_created_once_however_many_ask() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 200;
    on_both(|vfs, dir| {
        let arrived = AtomicUsize::new(0);
        let ask = || {
            let create = |round: usize| {
                arrived.fetch_add(1, Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < THREADS * (round + 1) {
                    thread::yield_now();
                }
                usize::from(vfs.create_dir(&dir.join(format!("{round}/a/b"))).unwrap())
            };
            (0..ROUNDS).map(create).sum::<usize>()
        };
        let created: usize = thread::scope(|scope| {
            let asking: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|asked| asked.join().unwrap()).sum()
        });
        assert_eq!(created, ROUNDS);
        assert!(vfs.create_dir(&dir.join("0/a/b/c")).unwrap() && !vfs.create_dir(&dir.join("0/a/b")).unwrap());
    });
}

#[test]
fn a_directory_moves_whole_and_replaces_nothing() {
    on_both(|vfs, dir| {
        let (from, to) = (dir.join("from"), dir.join("to"));
        vfs.create_dir(&from.join("sub")).unwrap();
        write_file(vfs, &from.join("a"), b"one");
        write_file(vfs, &from.join("sub/b"), b"two");
        write_file(vfs, &dir.join("from-beside"), b"three");
        vfs.create_dir(&to).unwrap();
        assert_eq!(kind_of(vfs.rename_dir(&from, &to)), ErrorKind::AlreadyExists, "an empty directory");
        assert_eq!(kind_of(vfs.rename_dir(&from, &dir.join("from-beside"))), ErrorKind::AlreadyExists, "a file");
        vfs.remove_dir(&to).unwrap();
        vfs.rename_dir(&from, &to).unwrap();
        assert_eq!(kind_of(vfs.list(&from)), ErrorKind::NotFound);
        assert_eq!((read_file(vfs, &to.join("a")), read_file(vfs, &to.join("sub/b"))), (b"one".into(), b"two".into()));
        assert_eq!(read_file(vfs, &dir.join("from-beside")), b"three");
        assert_eq!(kind_of(vfs.rename_dir(&from, &dir.join("other"))), ErrorKind::NotFound);
    });
}

#[test]
fn a_moved_directory_survives_a_crash_with_what_was_durable_in_it() {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/from")).unwrap();
    write_file(&sim, Path::new("/from/kept"), b"kept").sync().unwrap();
    sim.sync_dir(Path::new("/from")).unwrap();
    write_file(&sim, Path::new("/from/unsynced"), b"lost");
    sim.rename_dir(Path::new("/from"), Path::new("/to")).unwrap();
    for crash in sim.crashes(16, 1) {
        assert!(crash.list(Path::new("/from")).is_err());
        assert_eq!(read_file(&crash, Path::new("/to/kept")), b"kept");
    }
}

#[test]
fn no_directory_takes_the_place_of_a_file() {
    on_both(|vfs, dir| {
        let path = dir.join("a");
        write_file(vfs, &path, b"content");
        assert!(vfs.create_dir(&path).is_err());
        assert!(vfs.create_dir(&path.join("b")).is_err());
        assert_eq!(read_file(vfs, &path), b"content");
    });
}

/// The system says so of a file that holds nothing durable: asking it is not left out.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_synced_says_so() {
    let device = OsVfs.open(Path::new("/dev/null"), OpenMode::ReadWrite).unwrap();
    device.write_at(b"x", 0).unwrap();
    assert_eq!(kind_of(device.sync()), ErrorKind::InvalidInput);
}
