//! Properties of a catalog and its snapshots, and the files that are checked as a whole when they are opened.

use std::ops::Bound;
use std::path::Path;

use holotype_storage::Error;
use holotype_storage::catalog::{Applied, Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::log::{CommitNo, Lsn};
use holotype_storage::overlay::RowKey;
use holotype_storage::vfs::{Crash, Failure, OpenMode, SimVfs, Vfs};

const DATABASE: [u8; 16] = [5; 16];

fn path() -> &'static Path {
    Path::new("/db/catalog.redb")
}

fn applied() -> Applied {
    Applied { position: Lsn(900), commit: CommitNo(9), head: [9; 32], blob: vec![7, 8] }
}

fn row(number: u32) -> (RowKey, Option<String>) {
    (RowKey::new(1, &number.to_be_bytes()), Some(format!("value {number}").repeat(8)))
}

/// A disk, and a new catalog on it with 400 rows.
fn filled() -> (SimVfs, Catalog) {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/db")).unwrap();
    let catalog = Catalog::create(&sim, path(), DATABASE, &CatalogOptions::default()).unwrap();
    catalog.checkpoint((0..400).map(row), &applied()).unwrap();
    (sim, catalog)
}

#[test]
fn rows_are_found_one_by_one() {
    let (sim, catalog) = filled();
    let snapshot = catalog.snapshot().unwrap();
    for number in [0, 1, 199, 398, 399] {
        let (key, value) = row(number);
        assert_eq!(snapshot.get(1, &number.to_be_bytes()).unwrap(), value.map(String::into_bytes), "{key:?}");
    }
    assert_eq!(snapshot.get(1, &400_u32.to_be_bytes()).unwrap(), None);
    assert_eq!(snapshot.get(2, &1_u32.to_be_bytes()).unwrap(), None);
    assert_eq!(snapshot.applied(), Some(&applied()));
    let len = sim.bytes(path()).unwrap().len() as u64;
    assert_eq!((snapshot.file_len().unwrap(), catalog.file_len().unwrap()), (len, len));
}

#[test]
fn what_is_derived_is_made_once_and_kept() {
    let (_sim, catalog) = filled();
    let snapshot = catalog.snapshot().unwrap();
    assert_eq!(snapshot.derived_already::<u32>(), None);
    assert_eq!(snapshot.derived(|| 7_u32), Some(&7));
    assert_eq!(snapshot.clone().derived(|| 8_u32), Some(&7));
    assert_eq!(snapshot.derived_already::<u32>(), Some(&7));
    assert_eq!(snapshot.derived_already::<u64>(), None, "something else is kept");
    assert_eq!(catalog.snapshot().unwrap().derived_already::<u32>(), None, "another snapshot");
}

#[test]
fn the_last_change_of_a_row_counts() {
    let (_sim, catalog) = filled();
    let key = RowKey::new(1, b"row");
    let changes = [(key.clone(), Some("first")), (key.clone(), Some("last"))];
    catalog.checkpoint(changes, &applied()).unwrap();
    assert_eq!(catalog.snapshot().unwrap().get(1, b"row").unwrap(), Some(b"last".to_vec()));
    assert_eq!(catalog.verify().unwrap(), 401);
}

#[test]
fn identity_is_laid_down_byte_by_byte() {
    let (sim, catalog) = filled();
    drop(catalog);
    let bytes = sim.bytes(path()).unwrap();
    let format = [&[1, 0, 0, 0][..], &[0; 12]].concat();
    for (key, value) in [("format", format), ("database", DATABASE.to_vec())] {
        let sealed = [b"m", &(key.len() as u32).to_le_bytes()[..], key.as_bytes(), &value].concat();
        let expected = [value, crc32fast::hash(&sealed).to_le_bytes().to_vec()].concat();
        assert!(bytes.windows(expected.len()).any(|window| window == expected), "{key}");
    }
}

#[test]
fn what_was_begun_is_put_in_place_or_discarded() {
    let (sim, catalog) = filled();
    drop(catalog);
    let names = || sim.list(Path::new("/db")).unwrap();
    let before = names();
    let begin = || Catalog::begin(&sim, path(), DATABASE, &CatalogOptions::default());
    drop(begin().unwrap());
    assert_eq!(names().len(), before.len() + 1);
    Catalog::discard(&sim, path());
    Catalog::discard(&sim, path());
    assert_eq!(names(), before);
    let open = || Catalog::open(&sim, path(), DATABASE, &CatalogOptions::default(), Access::Read).unwrap();
    assert_eq!(open().applied().unwrap(), Some(applied()));
    // The remains of an earlier `begin` are removed first; a failure of that is reported.
    drop(begin().unwrap());
    sim.fail_at(sim.calls(), Failure::Io, false);
    assert!(matches!(begin(), Err(Error::Io { action: "remove", .. })));
    begin().unwrap().put_in_place(&sim).unwrap();
    assert_eq!(names(), before);
    assert_eq!(open().applied().unwrap(), None);
}

/// A file of exactly the length given is still checked, one that is a byte longer is not; its rows are checked when
/// they are read.
#[test]
fn files_are_checked_up_to_a_length() {
    let (sim, catalog) = filled();
    drop(catalog);
    let bytes = sim.bytes(path()).unwrap();
    let value = row(200).1.unwrap();
    let at = bytes.windows(value.len()).position(|window| window == value.as_bytes()).unwrap();
    sim.flip(path(), at as u64, 1).unwrap();
    let open = |check_len: u64, access| {
        let options = CatalogOptions { check_len, ..CatalogOptions::default() };
        Catalog::open(&sim.crash(Crash::Keep), path(), DATABASE, &options, access)
    };
    let len = bytes.len() as u64;
    for access in [Access::Write, Access::Read] {
        assert!(matches!(open(len, access), Err(Error::DamagedFile { .. })), "{access:?}");
        for shorter in [0, len - 1] {
            let catalog = open(shorter, access).unwrap();
            let snapshot = catalog.snapshot().unwrap();
            assert!(matches!(snapshot.get(1, &200_u32.to_be_bytes()), Err(Error::DamagedFile { .. })));
            assert_eq!(snapshot.get(1, &399_u32.to_be_bytes()).unwrap(), row(399).1.map(String::into_bytes));
        }
    }
}

#[test]
fn a_packed_catalog_has_the_same_rows_in_a_shorter_file() {
    let (sim, catalog) = filled();
    let more = |round: u32| (0..400).map(move |i| ((i * 7919) % 60_000 + round * 3, i % 9 != 0));
    for round in 0..60 {
        let changes = more(round).map(|(number, is_kept)| (row(number).0, row(number).1.filter(|_| is_kept)));
        catalog.checkpoint(changes, &Applied { commit: CommitNo(10 + u64::from(round)), ..applied() }).unwrap();
    }
    catalog.set_incompatible(2).unwrap();
    assert!(catalog.is_pack_due().unwrap());
    let rows = |catalog: &Catalog| {
        let mut rows = Vec::new();
        let see = |key: &[u8], value: &[u8]| {
            rows.push((key.to_vec(), value.to_vec()));
            Ok::<_, Error>(())
        };
        catalog.snapshot().unwrap().each(1, Bound::Unbounded, Bound::Unbounded, see).unwrap();
        rows
    };
    let (expected, of_before) = (rows(&catalog), catalog.snapshot().unwrap());
    let positions = (catalog.applied().unwrap(), catalog.previous().unwrap());
    catalog.pack(&sim).unwrap();
    let key = expected[7].0.as_slice();
    assert_eq!(of_before.get(1, key).unwrap().as_ref(), Some(&expected[7].1), "the old file is read on");
    let before = catalog.file_len().unwrap();
    drop((catalog, of_before));

    let len = sim.bytes(path()).unwrap().len() as u64;
    assert!(len * 5 < before * 4, "{len} bytes after {before}");
    let packed = Catalog::open(&sim, path(), DATABASE, &CatalogOptions::default(), Access::Write).unwrap();
    assert_eq!((packed.applied().unwrap(), packed.previous().unwrap()), positions);
    assert_eq!(rows(&packed), expected);
    assert_eq!(packed.verify().unwrap(), expected.len() as u64);
    assert!(!packed.is_pack_due().unwrap(), "this handle wrote nothing");
    packed.checkpoint([(row(7).0, None::<String>)], &applied()).unwrap();
    assert_eq!(packed.snapshot().unwrap().get(1, &7_u32.to_be_bytes()).unwrap(), None);
    // The features stand, too.
    drop(packed);
    let bytes = sim.bytes(path()).unwrap();
    let format = [&[1, 0, 0, 0][..], &[0; 8], &[2, 0, 0, 0]].concat();
    assert!(bytes.windows(format.len()).any(|window| window == format));
}

#[test]
fn a_damaged_row_is_not_copied() {
    let (sim, catalog) = filled();
    drop(catalog);
    let at = sim.bytes(path()).unwrap().windows(9).position(|window| window == b"value 388").unwrap();
    sim.open(path(), OpenMode::ReadWrite).unwrap().write_at(b"Value", at as u64).unwrap();
    let unchecked = CatalogOptions { check_len: 0, ..CatalogOptions::default() };
    let catalog = Catalog::open(&sim, path(), DATABASE, &unchecked, Access::Write).unwrap();
    assert!(matches!(catalog.pack(&sim), Err(Error::DamagedFile { .. })));
    assert!(sim.bytes(path()).unwrap().windows(9).any(|window| window == b"Value 388"), "the file is that of before");
}
