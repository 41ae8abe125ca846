//! Golden databases: one of each format that was ever released, opened by every later version, and a twin of each with
//! one bit changed in what was acknowledged, which none may take for sound.
//!
//! `cargo run -p holotype --example golden -- engine/tests/golden NAME` makes those of the present format. A released
//! one is never made again; when the format changes before its release, its files are.

mod golden_file;
mod story;

use holotype::query::Params;
use holotype::{Error, Holotype, Options};
use holotype_storage::vfs::SimVfs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PATH: &str = "/golden";

/// A format: its database, what that says, and its damaged twin.
struct Format {
    name: &'static str,
    sound: &'static [u8],
    says: &'static str,
    damaged: &'static [u8],
}

const FORMATS: &[Format] = &[Format {
    name: "format-1",
    sound: include_bytes!("format-1.gold"),
    says: include_str!("format-1.txt"),
    damaged: include_bytes!("format-1.damaged.gold"),
}];

fn unpacked(packed: &[u8]) -> SimVfs {
    let disk = SimVfs::new();
    golden_file::unpack(packed, &disk, Path::new(PATH));
    disk
}

fn open(disk: &SimVfs, options: Options) -> holotype::Result<Holotype> {
    Holotype::open_on(Arc::new(disk.clone()), PATH, options)
}

fn says(database: &Holotype) -> String {
    story::tell(&database.snapshot()).unwrap()
}

#[test]
fn every_format_is_read_and_written() {
    for format in FORMATS {
        let disk = unpacked(format.sound);
        let reader = open(&disk, Options::read_only()).unwrap();
        assert_eq!(says(&reader), format.says, "{}", format.name);
        drop(reader);
        let writer = open(&disk, Options::default()).unwrap();
        assert_eq!(says(&writer), format.says, "{}", format.name);
        assert!(writer.verify(&mut |_, _| {}).unwrap().is_clean(), "{}", format.name);
        writer.query("record turn 'still here' in episode 'later'", &Params::new()).unwrap();
        let then = says(&writer);
        writer.close().unwrap();
        let again = open(&disk, Options::default()).unwrap();
        assert_eq!(says(&again), then, "{}", format.name);
        assert!(again.verify(&mut |_, _| {}).unwrap().is_clean(), "{}", format.name);
    }
}

#[test]
fn no_damaged_twin_is_taken_for_sound() {
    for format in FORMATS {
        let disk = unpacked(format.damaged);
        match open(&disk, Options::default()) {
            Err(_) => {}
            // The checkpoint holds all of it: what is read of the log, and checking it, tells.
            Ok(database) => {
                let report = database.verify(&mut |_, _| {}).unwrap();
                let told: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
                let named = told.iter().any(|fault| fault.contains("0000000001.log: log page 1, byte offset"));
                assert!(named, "{}: {told:?}", format.name);
                assert_ne!(story::tell(&database.snapshot()).ok().as_deref(), Some(format.says), "{}", format.name);
            }
        }
    }
}

/// Every file of a disk but the lock, which says who tried.
fn files(disk: &SimVfs) -> Vec<(PathBuf, Vec<u8>)> {
    let but_lock = disk.files().into_iter().filter(|path| !path.ends_with("LOCK"));
    but_lock.map(|path| (path.clone(), disk.bytes(&path).unwrap())).collect()
}

/// A golden database in which files of one form are changed.
fn with_changed(folder: &str, change: impl Fn(&mut Vec<u8>)) -> SimVfs {
    let disk = unpacked(FORMATS[0].sound);
    let mut changed = 0;
    for (path, mut bytes) in files(&disk) {
        if path.parent() == Some(&Path::new(PATH).join(folder)) && bytes.iter().take(64).any(|byte| *byte != 0) {
            change(&mut bytes);
            disk.replace(&path, &bytes);
            changed += 1;
        }
    }
    assert!(changed > 0, "the golden database has no {folder}");
    disk
}

/// The error of opening; `None` if it opens.
fn refusal(disk: &SimVfs, options: Options) -> Option<String> {
    let before = files(disk);
    match open(disk, options) {
        Ok(database) => {
            assert_eq!(says(&database), FORMATS[0].says);
            None
        }
        Err(error @ Error::Storage(holotype_storage::Error::NewerFormat { .. })) => {
            for ((path, before), (_, after)) in before.iter().zip(files(disk)) {
                // redb notes that the catalog was open.
                let noted = path.ends_with("catalog.redb") && !error.to_string().contains(".log:");
                assert!(noted || *before == after, "{}: a refusal changes nothing", path.display());
            }
            Some(error.to_string())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Opens for reading and for writing, and holds what is told against what should be.
fn check(disk: &SimVfs, to_read: Option<&str>, to_write: Option<&str>) {
    for (options, expected) in [(Options::read_only(), to_read), (Options::default(), to_write)] {
        let told = refusal(disk, options);
        match (&told, expected) {
            (None, None) => {}
            (Some(told), Some(expected)) => assert!(told.contains(expected), "{told}"),
            _ => panic!("{told:?}, expected {expected:?}"),
        }
    }
}

/// The places of version and features are fixed for every version of the log's format.
#[test]
fn versions_and_features_of_the_log_decide_who_may_open() {
    let log = |at: usize, value: u32| {
        with_changed("log", move |bytes| {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let crc = crc32(&[&bytes[..136]]);
            bytes[136..140].copy_from_slice(&crc);
        })
    };
    check(&log(16, !0), None, None);
    check(&log(20, 1 << 31), None, Some("can only read (bit 31); open it read-only, or upgrade; nothing was changed"));
    let why = Some("incompatible features (bits 0, 30); upgrade to open it; nothing was changed");
    check(&log(24, 1 << 30 | 1), why, why);
    let why = Some("log format 2, while 1 is the newest known; upgrade to open it");
    check(&log(8, 2), why, why);
}

#[test]
fn versions_and_features_of_derived_files_decide_who_may_open() {
    for folder in ["columns", "vectors", "words"] {
        let derived = |at: usize, value: u8| {
            with_changed(folder, move |bytes| {
                bytes[at] = value;
                let directory = 64 + 32 * u32::from_le_bytes([bytes[44], bytes[45], bytes[46], bytes[47]]) as usize;
                let crc = crc32(&[&bytes[..60], &bytes[64..directory]]);
                bytes[60..64].copy_from_slice(&crc);
            })
        };
        check(&derived(56, 0xff), None, None);
        check(&derived(57, 4), None, Some("can only read (bit 2); open it read-only, upgrade, or rebuild it"));
        let why = Some("incompatible features (bit 3); upgrade to open it, or rebuild it");
        check(&derived(58, 8), why, why);
        let why = Some("frame version 2, while 1 is the newest known; upgrade to open it, or rebuild it");
        check(&derived(8, 2), why, why);
        check(&derived(12, 200), Some("content version 200"), Some("content version 200"));
        // A version that reads the log can rebuild derived files from it.
        let disk = derived(58, 8);
        let anew = Holotype::rebuild_on(Arc::new(disk.clone()), PATH, Options::default()).unwrap();
        assert_eq!(says(&anew), FORMATS[0].says);
        drop(anew);
        check(&disk, None, None);
    }
}

/// The checksum of some bytes, computed bit by bit: nothing of the code under test.
fn crc32(parts: &[&[u8]]) -> [u8; 4] {
    let mut crc = !0_u32;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    (!crc).to_le_bytes()
}
