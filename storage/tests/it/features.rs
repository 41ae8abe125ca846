//! Features of derived files and of the catalog that this program does not know: ignored, read beside, refused.

use holotype_storage::Error;
use holotype_storage::catalog::{Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use holotype_storage::vfs::OsVfs;
use std::path::Path;

const KIND: [u8; 4] = *b"KIND";
const DATABASE: [u8; 16] = [7; 16];
const IDENTITY: FileIdentity = FileIdentity { database: DATABASE, generation: 3, place: 0 };

/// The error of opening a file; empty if it opens.
fn told<T>(opened: Result<T, Error>) -> String {
    match opened {
        Ok(_) => String::new(),
        Err(error @ Error::NewerFormat { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
    }
}

/// The errors of a reader and of a writer for a derived file with this byte.
fn of_segment(at: usize, value: u8) -> [String; 2] {
    let mut writer = SegmentFileWriter::new(KIND, 1, IDENTITY);
    writer.section(*b"data", b"payload".to_vec());
    let mut bytes = writer.into_bytes();
    bytes[at] = value;
    let crc = crc32fast::hash(&[&bytes[..60], &bytes[64..96]].concat());
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    [Access::Read, Access::Write].map(|access| {
        let file = SegmentFile::from_bytes(bytes.clone(), KIND, &IDENTITY);
        told(file.and_then(|file| {
            assert_eq!(file.section(*b"data")?, b"payload");
            file.check_version(1)?;
            file.check_access(access)
        }))
    })
}

/// The errors of a reader and of a writer for a catalog with this format.
fn of_catalog(format: &[u32]) -> [String; 2] {
    [Access::Read, Access::Write].map(|access| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("catalog.redb");
        drop(Catalog::create(&OsVfs, &path, DATABASE, &CatalogOptions::default()).unwrap());
        set_format(&path, format);
        told(Catalog::open(&OsVfs, &path, DATABASE, &CatalogOptions::default(), access))
    })
}

fn set_format(path: &Path, format: &[u32]) {
    let mut builder = redb::Builder::new();
    builder.set_concurrency_mode(redb::ConcurrencyMode::SingleWriter);
    let database = builder.open(path).unwrap();
    let mut transaction = database.begin_write().unwrap();
    transaction.set_quick_repair(true);
    {
        let meta: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("meta");
        let value: Vec<u8> = format.iter().flat_map(|number| number.to_le_bytes()).collect();
        let crc = crc32fast::hash(&[b"m", 6_u32.to_le_bytes().as_slice(), b"format", &value].concat());
        let sealed = [value, crc.to_le_bytes().to_vec()].concat();
        transaction.open_table(meta).unwrap().insert(b"format".as_slice(), sealed.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

fn check(what: &str, told: &[String; 2], read: Option<&str>, write: Option<&str>) {
    for (told, expected) in told.iter().zip([read, write]) {
        match expected {
            None => assert_eq!(told, "", "{what}"),
            Some(expected) => {
                assert!(told.contains(expected) && told.contains("holotype rebuild"), "{what}: {told}");
                assert!(told.contains("upgrade"), "{what}: {told}");
            }
        }
    }
}

#[test]
fn what_may_be_ignored_is() {
    check("segment", &of_segment(56, 0xff), None, None);
    check("catalog", &of_catalog(&[1, u32::MAX, 0, 0]), None, None);
}

#[test]
fn what_may_only_be_read_beside_is_only_read() {
    let why = "only read (bits 1, 7); open it read-only";
    check("segment", &of_segment(57, 0x82), None, Some(why));
    check("catalog", &of_catalog(&[1, 0, 0x82, 0]), None, Some(why));
}

#[test]
fn what_must_be_left_alone_is() {
    let why = Some("incompatible features (bit 5); upgrade");
    check("segment", &of_segment(58, 0x20), why, why);
    check("catalog", &of_catalog(&[1, 0, 0, 0x20]), why, why);
}

#[test]
fn a_newer_version_is_refused() {
    let why = Some("version 2, while 1 is the newest known");
    check("frame", &of_segment(8, 2), why, why);
    check("content", &of_segment(12, 2), why, why);
    let why = Some("catalog format 2, while 1 is the newest known");
    check("catalog", &of_catalog(&[2, 0, 0, 0]), why, why);
}
