//! The catalog on a disk that crashes, fails and fills up: a checkpoint is whole or did not happen.

use std::collections::BTreeMap;
use std::path::Path;

use holotype_storage::Error;
use holotype_storage::catalog::{Applied, Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::log::{CommitNo, Lsn};
use holotype_storage::overlay::{RowKey, View};
use holotype_storage::vfs::{Crash, Failure, OsVfs, SimVfs, Vfs};

const DATABASE: [u8; 16] = [5; 16];

fn path() -> &'static Path {
    Path::new("/db/catalog.redb")
}

fn disk() -> SimVfs {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/db")).unwrap();
    sim
}

fn open(vfs: &dyn Vfs, path: &Path, access: Access) -> Result<Catalog, Error> {
    Catalog::open(vfs, path, DATABASE, &CatalogOptions::default(), access)
}

fn create(vfs: &dyn Vfs, path: &Path) -> Catalog {
    Catalog::create(vfs, path, DATABASE, &CatalogOptions::default()).unwrap()
}

fn applied(number: u64) -> Applied {
    Applied {
        position: Lsn(number * 100),
        commit: CommitNo(number),
        head: [number as u8; 32],
        blob: number.to_be_bytes().to_vec(),
    }
}

type Rows = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

/// The changes of checkpoint `number`, and the rows after it.
fn change(rows: &mut Rows, number: u64) -> Vec<(RowKey, Option<Vec<u8>>)> {
    let mut changes = Vec::new();
    for i in 0..20_u64 {
        let key = ((number * 7 + i) % 50).to_be_bytes().to_vec();
        let table = (i % 3) as u8;
        let value = (i % 5 != 0).then(|| format!("value {i} of {number}").into_bytes());
        match &value {
            Some(value) => rows.insert((table, key.clone()), value.clone()),
            None => rows.remove(&(table, key.clone())),
        };
        changes.push((RowKey::new(table, &key), value));
    }
    changes
}

fn read_rows(catalog: &Catalog) -> Result<Rows, Error> {
    let view = View::new(Some(catalog.snapshot()?));
    let mut rows = Rows::new();
    for table in 0..3 {
        for row in view.prefix(table, &[]) {
            let (key, value) = row?;
            assert_eq!(view.get(table, &key)?.as_deref(), Some(&*value));
            rows.insert((table, key), value.to_vec());
        }
    }
    Ok(rows)
}

#[test]
fn checkpoints_are_read_back_and_the_previous_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("catalog.redb");
    let mut rows = Rows::new();
    let catalog = create(&OsVfs, &path);
    assert_eq!(catalog.applied().unwrap(), None);
    let before = View::new(Some(catalog.snapshot().unwrap()));
    catalog.checkpoint(change(&mut rows, 1), &applied(1)).unwrap();
    assert_eq!(catalog.previous().unwrap(), None);
    catalog.checkpoint(change(&mut rows, 2), &applied(2)).unwrap();
    assert_eq!(before.prefix(1, &[]).count(), 0, "a snapshot keeps its answers");
    assert_eq!(read_rows(&catalog).unwrap(), rows);
    assert!(matches!(open(&OsVfs, &path, Access::Write), Err(Error::Held { .. })));
    drop(catalog);
    assert!(matches!(open(&OsVfs, &path, Access::Write), Err(Error::Held { .. })), "a snapshot keeps it open");
    drop(before);
    for access in [Access::Read, Access::Write] {
        let catalog = open(&OsVfs, &path, access).unwrap();
        assert_eq!(catalog.applied().unwrap(), Some(applied(2)));
        assert_eq!(catalog.previous().unwrap(), Some(applied(1)));
        assert_eq!(read_rows(&catalog).unwrap(), rows);
        assert_eq!(catalog.verify().unwrap(), rows.len() as u64);
        let refused = catalog.checkpoint(change(&mut rows.clone(), 3), &applied(3));
        assert_eq!(refused.is_ok(), access == Access::Write);
    }
    let foreign = Catalog::open(&OsVfs, &path, [6; 16], &CatalogOptions::default(), Access::Write);
    assert!(matches!(foreign, Err(Error::WrongDatabase { .. })));
    let missing = open(&OsVfs, &dir.path().join("none"), Access::Read);
    assert!(matches!(missing, Err(Error::MissingFile { .. })));
    drop(create(&OsVfs, &path));
    let anew = open(&OsVfs, &path, Access::Write).unwrap();
    assert_eq!(anew.applied().unwrap(), None, "creating replaces");
}

#[test]
fn a_reader_beside_a_writer_sees_whole_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("catalog.redb");
    let sim = disk();
    let disks: [(&dyn Vfs, &Path); 2] = [(&OsVfs, &path), (&sim, self::path())];
    for (vfs, path) in disks {
        let mut rows = Rows::new();
        let writer = create(vfs, path);
        writer.checkpoint(change(&mut rows, 1), &applied(1)).unwrap();
        let first = rows.clone();
        let reader = open(vfs, path, Access::Read).unwrap();
        let old = reader.snapshot().unwrap();
        assert_eq!(read_rows(&reader).unwrap(), first);
        for number in 2..20 {
            writer.checkpoint(change(&mut rows, number), &applied(number)).unwrap();
            assert_eq!(reader.applied().unwrap(), Some(applied(number)));
            assert_eq!(read_rows(&reader).unwrap(), rows);
        }
        let old = View::new(Some(old));
        for ((table, key), value) in &first {
            assert_eq!(old.get(*table, key).unwrap().as_deref(), Some(&**value));
        }
    }
}

#[test]
fn reading_changes_nothing_and_needs_no_permission_to() {
    let sim = disk();
    let mut rows = Rows::new();
    let catalog = create(&sim, path());
    catalog.checkpoint(change(&mut rows, 1), &applied(1)).unwrap();
    // Not closed: the file is as a killed process leaves it.
    let killed = sim.crash(Crash::Keep);
    killed.set_read_only(true);
    let before = killed.bytes(path()).unwrap();
    let reader = open(&killed, path(), Access::Read).unwrap();
    let other = open(&killed, path(), Access::Read).unwrap();
    assert_eq!(read_rows(&reader).unwrap(), rows);
    assert_eq!(read_rows(&other).unwrap(), rows);
    // As a file too large to be copied is opened.
    let in_place = CatalogOptions { check_len: 0, ..CatalogOptions::default() };
    let in_place = Catalog::open(&killed, path(), DATABASE, &in_place, Access::Read).unwrap();
    assert_eq!(read_rows(&in_place).unwrap(), rows);
    drop((reader, other, in_place));
    assert_eq!(killed.bytes(path()).unwrap(), before);
    assert!(open(&killed, path(), Access::Write).is_err());
}

#[test]
fn a_crash_at_any_step_leaves_a_whole_checkpoint() {
    let sim = disk();
    let mut rows = Rows::new();
    let mut after = vec![(None, rows.clone())];
    let mut durable_from = Vec::new();
    let catalog = create(&sim, path());
    let created = sim.history().len();
    for number in 1..4 {
        catalog.checkpoint(change(&mut rows, number), &applied(number)).unwrap();
        after.push((Some(applied(number)), rows.clone()));
        durable_from.push(sim.history().len());
    }
    drop(catalog);
    let mut seen = vec![0; after.len()];
    for (step, point) in sim.replay().enumerate().skip(created) {
        for state in point.crashes(12, step as u64) {
            let catalog =
                open(&state, path(), Access::Write).unwrap_or_else(|error| panic!("after step {step}: {error}"));
            let found = (catalog.applied().unwrap(), read_rows(&catalog).unwrap());
            let which = after.iter().position(|state| *state == found);
            let which = which.unwrap_or_else(|| panic!("after step {step}: rows of no checkpoint"));
            let least = durable_from.iter().filter(|&&from| step >= from).count();
            assert!(which >= least, "after step {step}: a durable checkpoint was lost");
            seen[which] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "every checkpoint was seen: {seen:?}");
}

#[test]
fn a_crash_while_creating_leaves_the_old_catalog_or_none_or_the_new() {
    let sim = disk();
    drop(create(&sim, path()));
    for (step, point) in sim.replay().enumerate() {
        for state in point.crashes(12, step as u64) {
            match open(&state, path(), Access::Write) {
                Ok(catalog) => assert_eq!(catalog.applied().unwrap(), None),
                Err(Error::MissingFile { .. }) => drop(create_again(&state)),
                Err(other) => panic!("after step {step}: {other}"),
            }
        }
    }
}

fn create_again(state: &SimVfs) -> Catalog {
    state.create_dir(Path::new("/db")).unwrap();
    create(state, path())
}

#[test]
fn a_failing_call_fails_the_checkpoint_and_leaves_the_old_rows() {
    let mut failed = 0;
    for call in 0.. {
        let sim = disk();
        let mut rows = Rows::new();
        let catalog = create(&sim, path());
        catalog.checkpoint(change(&mut rows, 1), &applied(1)).unwrap();
        let old = rows.clone();
        let kind = if call % 2 == 0 { Failure::Io } else { Failure::NoSpace };
        sim.fail_at(sim.calls() + call, kind, call % 3 == 0);
        let calls = sim.calls();
        let written = catalog.checkpoint(change(&mut rows, 2), &applied(2));
        let reached = sim.calls() > calls + call;
        drop(catalog);
        sim.heal();
        if let Err(error) = &written {
            assert!(matches!(error, Error::Io { .. }), "call {call}: {error}");
            failed += 1;
        }
        for state in [sim.crash(Crash::Lose), sim.crash(Crash::Keep), sim.crash(Crash::Seeded(call))] {
            let catalog = open(&state, path(), Access::Write).unwrap();
            let found = (catalog.applied().unwrap(), read_rows(&catalog).unwrap());
            let is_old = found == (Some(applied(1)), old.clone());
            let is_new = found == (Some(applied(2)), rows.clone());
            assert!(is_new || (is_old && written.is_err()), "call {call}");
        }
        if !reached {
            break;
        }
    }
    assert!(failed > 3, "{failed} calls failed");
}

#[test]
fn a_full_disk_fails_the_checkpoint_and_leaves_the_old_rows() {
    let sim = disk();
    let mut rows = Rows::new();
    let catalog = create(&sim, path());
    catalog.checkpoint(change(&mut rows, 1), &applied(1)).unwrap();
    sim.set_quota(Some(sim.used_bytes()));
    let large = (0..2_000_u32).map(|i| (RowKey::new(9, &i.to_be_bytes()), Some(vec![1; 4_096])));
    assert!(matches!(catalog.checkpoint(large, &applied(2)), Err(Error::Io { .. })));
    sim.set_quota(None);
    // redb refuses every later call without a reason; the message keeps the first one.
    match catalog.checkpoint(change(&mut rows.clone(), 3), &applied(3)) {
        Err(Error::Io { source, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
            let message = source.to_string();
            assert!(message.starts_with("an earlier access failed: "), "{message}");
            assert!(message.ends_with("; open the database again"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    drop(catalog);
    let catalog = open(&sim, path(), Access::Write).unwrap();
    assert_eq!(catalog.applied().unwrap(), Some(applied(1)));
    assert_eq!(read_rows(&catalog).unwrap(), rows);
}
