//! A damaged catalog is an error or changes no answer.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use holotype_storage::Error;
use holotype_storage::catalog::{Applied, Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::log::{CommitNo, Lsn};
use holotype_storage::overlay::{RowKey, View};
use holotype_storage::vfs::{Crash, SimVfs, Vfs};

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

/// The rows that can be found both ways: along their order, one by one and all in one, and by their keys.
fn read_rows(catalog: &Catalog) -> Result<Rows, Error> {
    let snapshot = catalog.snapshot()?;
    let view = View::new(Some(snapshot.clone()));
    let mut rows = Rows::new();
    for table in 0..3 {
        let mut all = Vec::new();
        snapshot.each(table, Bound::Unbounded, Bound::Unbounded, |key, value| -> Result<(), Error> {
            all.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        let one_by_one = view.prefix(table, &[]).map(|row| row.map(|(key, value)| (key, value.to_vec())));
        assert_eq!(all, one_by_one.collect::<Result<Vec<_>, _>>()?, "rows are the same, however they are read");
        for row in view.prefix(table, &[]) {
            let (key, value) = row?;
            if let Some(found) = view.get(table, &key)? {
                assert_eq!(found, value, "a row has one value");
                rows.insert((table, key), value.to_vec());
            }
        }
    }
    Ok(rows)
}

/// redb panics on some damaged files. The catalog catches that, but the messages would drown a
/// failing test's own.
fn silence_redb() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.location().is_some_and(|location| location.file().contains("redb")) {
                hook(info);
            }
        }));
    });
}

#[test]
fn flipped_bytes_are_errors_or_change_no_answer() {
    let sim = disk();
    let mut rows = Rows::new();
    let catalog = create(&sim, path());
    for number in 1..4 {
        catalog.checkpoint(change(&mut rows, number), &applied(number)).unwrap();
    }
    drop(catalog);
    let bytes = sim.bytes(path()).unwrap();
    silence_redb();
    // Every bit of what redb's header begins with, a bit of each byte of the header, and of the rest
    // (all of which takes a minute) one byte in 41.
    let first = (0..64).flat_map(|at| (0..8).map(move |bit| (at, 1_u8 << bit)));
    let rest = (64..bytes.len()).filter(|at| *at < 512 || at % 41 == 0);
    let rest = rest.map(|at| (at, 1_u8 << (at % 8)));
    let places: Vec<(usize, u8)> = first.chain(rest).collect();
    let mut errors = 0;
    let (mut wrong, mut panicked) = (Vec::new(), Vec::new());
    for &(at, mask) in &places {
        sim.flip(path(), at as u64, mask).unwrap();
        for access in [Access::Write, Access::Read] {
            let state = sim.crash(Crash::Keep);
            let read = std::panic::catch_unwind(|| {
                let catalog = open(&state, path(), access)?;
                Ok::<_, Error>((catalog.applied()?, catalog.previous()?, read_rows(&catalog)?))
            });
            match read {
                Ok(Ok(found)) if found == (Some(applied(3)), Some(applied(2)), rows.clone()) => {}
                Ok(Ok(_)) => wrong.push(at),
                Ok(Err(_)) => errors += 1,
                Err(_) => panicked.push(at),
            }
        }
        sim.flip(path(), at as u64, mask).unwrap();
    }
    assert!(wrong.is_empty(), "changed answers at {wrong:?}");
    assert!(panicked.is_empty(), "panics at {panicked:?}");
    assert!(errors > 100, "{errors} flips of {} were noticed", places.len());
}

/// A large file is not checked as a whole when it is opened. Then every row that is read is still
/// right or an error, and what is missing is noticed by `verify` at the latest.
#[test]
fn flipped_bytes_of_an_unchecked_file_make_no_row_wrong() {
    let sim = disk();
    let catalog = create(&sim, path());
    let row = |i: u32| (RowKey::new(1, &i.to_be_bytes()), Some(format!("value {i}").repeat(8)));
    catalog.checkpoint((0..400).map(row), &applied(1)).unwrap();
    let rows = read_rows(&catalog).unwrap();
    drop(catalog);
    let len = sim.bytes(path()).unwrap().len();
    silence_redb();
    let unchecked = CatalogOptions { check_len: 0, ..CatalogOptions::default() };
    let (mut errors, mut unnoticed) = (0, 0);
    for at in (0..len).filter(|at| *at < 64 || at % 101 == 0) {
        let mask = 1 << (at % 8);
        sim.flip(path(), at as u64, mask).unwrap();
        for access in [Access::Write, Access::Read] {
            let state = sim.crash(Crash::Keep);
            let mut read = || {
                let catalog = Catalog::open(&state, path(), DATABASE, &unchecked, access)?;
                let found = read_rows(&catalog)?;
                let wrong = found.iter().any(|(key, value)| rows.get(key) != Some(value));
                assert!(!wrong, "a wrong row, byte {at}");
                if found != rows {
                    unnoticed += 1;
                    assert!(catalog.verify().is_err(), "rows are missing unnoticed, byte {at}");
                }
                Ok::<_, Error>(())
            };
            errors += u32::from(read().is_err());
        }
        sim.flip(path(), at as u64, mask).unwrap();
    }
    assert!(errors > 100, "{errors} flips were noticed, {unnoticed} only by verify");
}

#[test]
fn a_file_of_any_other_length_or_content_is_an_error() {
    let sim = disk();
    let mut rows = Rows::new();
    let catalog = create(&sim, path());
    catalog.checkpoint(change(&mut rows, 1), &applied(1)).unwrap();
    drop(catalog);
    let bytes = sim.bytes(path()).unwrap();
    silence_redb();
    let mut outcomes = Vec::new();
    let lengths = (0..1_000).chain((1_000..bytes.len()).step_by(4_001));
    for len in lengths {
        sim.replace(path(), &bytes[..len]);
        for access in [Access::Write, Access::Read] {
            let state = sim.crash(Crash::Keep);
            let read = std::panic::catch_unwind(|| read_rows(&open(&state, path(), access)?));
            outcomes.push((len, access, read));
        }
    }
    for noise in [b"not a catalog".repeat(1_000), vec![0; 100_000], vec![255; 100_000]] {
        sim.replace(path(), &noise);
        for access in [Access::Write, Access::Read] {
            let state = sim.crash(Crash::Keep);
            outcomes.push((0, access, std::panic::catch_unwind(|| read_rows(&open(&state, path(), access)?))));
        }
    }
    for (len, access, outcome) in outcomes {
        match outcome {
            Ok(Err(Error::DamagedFile { .. })) => {}
            Ok(Err(other)) => panic!("{access:?} of {len} bytes: {other}"),
            Ok(Ok(found)) => assert_eq!(found, rows, "{access:?} of {len} bytes"),
            Err(_) => panic!("{access:?} of {len} bytes panicked"),
        }
    }
}
