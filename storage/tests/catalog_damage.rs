//! A damaged catalog is an error or changes no answer.

use std::collections::BTreeMap;
use std::path::Path;

use holotype_storage::Error;
use holotype_storage::catalog::{Access, Applied, Catalog, CatalogOptions};
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
    // The header in full, and of the rest (which takes a minute) one byte in 23.
    let places: Vec<usize> = (0..bytes.len()).filter(|at| *at < 512 || at % 23 == 0).collect();
    let mut errors = 0;
    let (mut wrong, mut panicked) = (Vec::new(), Vec::new());
    for &at in &places {
        let mask = 1 << (at % 8);
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
