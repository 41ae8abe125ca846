//! The auditor objects to every order of changes it is there for, and to none that the crate and redb really make.

use std::path::Path;
use std::sync::Arc;

use holotype_storage::NewRecord;
use holotype_storage::catalog::{Applied, Catalog, CatalogOptions};
use holotype_storage::lock::Lock;
use holotype_storage::log::{Log, LogLimits, LogOptions, Lsn};
use holotype_storage::overlay::RowKey;
use holotype_storage::vfs::{OpenMode, SimVfs, Vfs, VfsFile};

const PAGE: u64 = 4096;

/// A database's directory with a log of two small segments and an unsynced commit.
fn database() -> (SimVfs, Log) {
    let sim = SimVfs::new();
    for dir in ["/db", "/db/columns"] {
        sim.create_dir(Path::new(dir)).unwrap();
    }
    let log = new_log(&sim, "/db/log");
    (sim, log)
}

fn new_log(sim: &SimVfs, dir: &str) -> Log {
    let limits = LogLimits { max_segment_len: 4 * PAGE, ..LogLimits::default() };
    let options =
        LogOptions { page_size: PAGE as u32, first_segment_len: 4 * PAGE, limits, ..LogOptions::new([7; 16]) };
    Log::create(Arc::new(sim.clone()), Path::new(dir), &options).unwrap()
}

/// Appends and writes, and does not sync.
fn append(log: &Log, len: usize) -> Lsn {
    let end = log.append(&[NewRecord { kind: 1, payload: vec![3; len] }], 1).unwrap().end;
    log.flush().unwrap();
    end
}

fn applied(position: Lsn) -> Applied {
    let commit = holotype_storage::log::CommitNo(1);
    Applied { position, commit, head: [1; 32], blob: Vec::new() }
}

fn catalog(sim: &SimVfs) -> Catalog {
    Catalog::create(sim, Path::new("/db/catalog.redb"), [7; 16], &CatalogOptions::default()).unwrap()
}

fn new_file(sim: &SimVfs, path: &str) -> Arc<dyn VfsFile> {
    sim.open(Path::new(path), OpenMode::CreateNew).unwrap()
}

/// The one objection there is.
fn objection(sim: &SimVfs) -> String {
    let mut objections = sim.objections();
    assert_eq!(objections.len(), 1, "{objections:?}");
    objections.remove(0)
}

#[test]
fn the_order_things_are_really_done_in_is_fine() {
    let (sim, log) = database();
    let catalog = catalog(&sim);
    let lock = Lock::writer(&sim, Path::new("/db/LOCK")).unwrap();
    for len in [10, 5000, 3000, 9000] {
        let end = append(&log, len);
        log.sync_to(end).unwrap();
        lock.set_durable(log.durable()).unwrap();
        append(&log, len);
        let file = new_file(&sim, &format!("/db/columns/0-{len}.tmp"));
        file.write_at(b"content", 0).unwrap();
        file.sync().unwrap();
        let name = format!("/db/columns/0-{len}.cseg");
        sim.rename(Path::new(&format!("/db/columns/0-{len}.tmp")), Path::new(&name)).unwrap();
        sim.sync_dir(Path::new("/db/columns")).unwrap();
        let rows = [(RowKey::new(1, b"key"), Some(b"value".to_vec()))];
        catalog.checkpoint(rows, &applied(end)).unwrap();
    }
    log.close().unwrap();
    assert_eq!(sim.objections(), [""; 0]);
}

#[test]
fn a_durable_position_before_its_sync() {
    let (sim, log) = database();
    let lock = Lock::writer(&sim, Path::new("/db/LOCK")).unwrap();
    let end = append(&log, 10);
    lock.set_durable(end).unwrap();
    assert!(objection(&sim).contains("LOCK: it states"));
    log.sync_to(end).unwrap();
    lock.set_durable(end).unwrap();
    assert_eq!(sim.objections(), [""; 0]);
}

#[test]
fn a_catalog_ahead_of_the_log() {
    let (sim, log) = database();
    let catalog = catalog(&sim);
    let end = append(&log, 10);
    for _ in 0..2 {
        let rows = [(RowKey::new(1, b"key"), Some(b"value".to_vec()))];
        catalog.checkpoint(rows, &applied(end)).unwrap();
        let objections = sim.objections();
        assert!(objections[0].contains("it states position"), "{objections:?}");
    }
}

#[test]
fn a_manifest_with_a_file_whose_name_is_not_durable() {
    let (sim, log) = database();
    let catalog = catalog(&sim);
    let end = append(&log, 10);
    log.sync_to(end).unwrap();
    let file = new_file(&sim, "/db/columns/0-1.cseg");
    file.sync().unwrap();
    catalog.checkpoint([(RowKey::new(1, b"key"), Some(b"value".to_vec()))], &applied(end)).unwrap();
    let objections = sim.objections();
    assert!(objections[0].contains("before the name /db/columns/0-1.cseg is durable"), "{objections:?}");
}

#[test]
fn a_name_before_the_content() {
    let (sim, _log) = database();
    for name in ["0-1.cseg", "quarantine-1-2.bin", "0000000009.log"] {
        let temporary = Path::new("/db/columns/new.tmp");
        let file = new_file(&sim, "/db/columns/new.tmp");
        file.write_at(b"content", 0).unwrap();
        sim.rename(temporary, &Path::new("/db/columns").join(name)).unwrap();
        assert!(objection(&sim).contains("it gets its name before its content is synced"));
    }
}

#[test]
fn a_segment_begun_too_early() {
    let (sim, log) = database();
    append(&log, 10);
    // The writes of a writer that does not sync the old segment and does not wait for the name of the new one.
    let mut header = vec![0; 144];
    header[..8].copy_from_slice(b"HOLO-LOG");
    let file = new_file(&sim, "/db/log/0000000002.log");
    file.write_at(&header, 0).unwrap();
    assert!(objection(&sim).contains("begun before its name is durable"));
    sim.sync_dir(Path::new("/db/log")).unwrap();
    file.write_at(&header, 0).unwrap();
    assert!(objection(&sim).contains("before the segment before it is synced"));
    log.sync_to(log.end()).unwrap();
    file.write_at(&header, 0).unwrap();
    assert_eq!(sim.objections(), [""; 0]);
}

#[test]
fn a_commit_that_calls_too_much_durable() {
    let (sim, log) = database();
    append(&log, 10);
    let mut commit = vec![0; 128];
    commit[..8].copy_from_slice(&[96, 0, 0, 0, 0xf0, 0, b'H', b'r']);
    commit[52..60].copy_from_slice(&log.end().0.to_le_bytes());
    let file = sim.open(Path::new("/db/log/0000000001.log"), OpenMode::ReadWrite).unwrap();
    file.write_at(&commit, log.end().0).unwrap();
    assert!(objection(&sim).contains("a record states"));
    let mut close = vec![0; 80];
    close[..8].copy_from_slice(&[48, 0, 0, 0, 0xf1, 0, b'H', b'r']);
    close[36..44].copy_from_slice(&log.end().0.to_le_bytes());
    file.write_at(&close, log.end().0).unwrap();
    assert!(objection(&sim).contains("a record states"));
}

#[test]
fn a_segment_erased_before_its_copy_has_a_name() {
    let (sim, log) = database();
    append(&log, 10);
    new_file(&sim, "/db/log/quarantine-1-2.bin").sync().unwrap();
    let path = Path::new("/db/log/0000000001.log");
    sim.open(path, OpenMode::ReadWrite).unwrap().write_at(&[0; 48], PAGE).unwrap();
    assert!(objection(&sim).contains("zeroed before the name /db/log/quarantine-1-2.bin is durable"));
    sim.remove(path).unwrap();
    assert!(objection(&sim).contains("zeroed before the name /db/log/quarantine-1-2.bin is durable"));
}

#[test]
fn what_nobody_takes_fails_the_run() {
    let (sim, log) = database();
    let lock = Lock::writer(&sim, Path::new("/db/LOCK")).unwrap();
    lock.set_durable(append(&log, 10)).unwrap();
    let looked_at = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sim.history()));
    assert!(looked_at.is_err());
    // Looked at or not: the disk is let go.
    let (sim, log) = database();
    let lock = Lock::writer(&sim, Path::new("/db/LOCK")).unwrap();
    lock.set_durable(append(&log, 10)).unwrap();
    drop((log, lock));
    let advise_dont_need = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(sim)));
    assert!(advise_dont_need.is_err());
    drop(database());
}

/// Changes that look as if they must wait, but need not.
#[test]
fn other_files_places_and_bytes_are_fine() {
    let (sim, log) = database();
    let durable = append(&log, 300);
    log.sync_to(durable).unwrap();
    let open = |path: &str| sim.open(Path::new(path), OpenMode::ReadWrite).unwrap();
    let segment = open("/db/log/0000000001.log");
    // A file of the log that has no name for sure: zeros first, and what is no header at its beginning.
    let next = new_file(&sim, "/db/log/0000000002.log");
    next.write_at(&[0; 512], 0).unwrap();
    next.write_at(b"HOLO-LOG", 512).unwrap();
    next.write_at(b"no header", 0).unwrap();
    // Zeros where something was, while other names are not for sure, and that of a copy of another log.
    new_file(&sim, "/db/columns/quarantine-1-2.bin").sync().unwrap();
    segment.write_at(&[0; 8], PAGE + 80).unwrap();
    // While a copy has no durable name: new bytes, zeros over zeros, and files that are not segments.
    new_file(&sim, "/db/log/quarantine-1-2.bin").sync().unwrap();
    segment.write_at(&[5; 8], PAGE + 64).unwrap();
    segment.write_at(&[0; 48], 3 * PAGE).unwrap();
    drop(new_file(&sim, "/db/log/quarantine.bin.tmp"));
    sim.remove(Path::new("/db/log/quarantine.bin.tmp")).unwrap();
    sim.sync_dir(Path::new("/db/log")).unwrap();
    // Bytes that stood there are not new, nor are zeros; a file without a header has no position; another log is
    // another's.
    segment.write_at(&[0; 8], PAGE + 64).unwrap();
    next.write_at(&[1; 8], 3 * PAGE).unwrap();
    sim.create_dir(Path::new("/other")).unwrap();
    let other = new_log(&sim, "/other/log");
    append(&other, 10);
    let lock = Lock::writer(&sim, Path::new("/db/LOCK")).unwrap();
    lock.set_durable(durable).unwrap();
    assert_eq!(sim.objections(), [""; 0]);
    // Bytes that are not a status block, or are at another offset; a position in a file that is not a catalog.
    let far = append(&log, 10);
    let mut status = b"HOLOLOCK".to_vec();
    status.resize(24, 0);
    status.extend_from_slice(&far.0.to_le_bytes());
    let total = [b"applieddatabaseformat".as_slice(), &far.0.to_le_bytes()].concat();
    let file = new_file(&sim, "/db/notes");
    file.write_at(&status, 0).unwrap();
    file.write_at(&total, 0).unwrap();
    let block = open("/db/LOCK");
    block.write_at(&status, 64).unwrap();
    block.write_at(&[&[0; 8], &status[8..]].concat(), 0).unwrap();
    assert_eq!(sim.objections(), [""; 0]);
    block.write_at(&status, 0).unwrap();
    assert!(objection(&sim).contains("LOCK: it states"));
}

/// Names lead to the same place however they are written, and a segment of a few bytes is one.
#[test]
fn the_same_place_is_known_by_any_name() {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/db")).unwrap();
    let log = Log::create(Arc::new(sim.clone()), Path::new("/db/./log"), &LogOptions::new([7; 16])).unwrap();
    let lock = Lock::writer(&sim, Path::new("/db/LOCK")).unwrap();
    lock.set_durable(append(&log, 10)).unwrap();
    assert!(objection(&sim).contains("LOCK: it states"));
    log.sync_to(log.end()).unwrap();
    let mut header = b"HOLO-LOG".to_vec();
    header.resize(144, 0);
    header[56..64].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let file = new_file(&sim, "/db/log/0000000009.log");
    sim.sync_dir(Path::new("/db/log")).unwrap();
    file.write_at(&header, 0).unwrap();
    lock.set_durable(Lsn((1 << 40) + 1)).unwrap();
    assert!(objection(&sim).contains("LOCK: it states"));
}
