//! A log whose only segment file has any bytes: it is refused, or recovered into a log that can be read, verified and
//! opened again with the same transactions. Salvage returns everything that opening returns.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holotype_storage::features::Access;
use holotype_storage::log::{Erase, Log, LogOptions, Lsn, OpenOptions, Transaction};
use holotype_storage::vfs::{Crash, SimVfs, Vfs as _};
use holotype_storage::{Error, NewRecord};

const DIR: &str = "/log";
const SEGMENT: &str = "/log/0000000001.log";
const PAGE: usize = 4096;
/// The length to which the bytes are padded with zeros, like a prepared segment, so that seeds are small.
const LEN: usize = 6 * PAGE;

/// Opens the bytes as they are, and again with the checksums of header and records repaired.
///
/// # Panics
/// When recovery leaves a log that is not whole.
pub fn target(data: &[u8]) {
    let mut bytes = data[..data.len().min(LEN)].to_vec();
    bytes.resize(LEN, 0);
    open(&bytes);
    repair(&mut bytes);
    open(&bytes);
    // Cut short, without the zeros.
    open(data);
}

fn open(bytes: &[u8]) {
    let disk = SimVfs::new();
    disk.create_dir(Path::new(DIR)).expect("an empty disk has room");
    disk.replace(Path::new(SEGMENT), bytes);
    let dir = Path::new(DIR);
    let _ = Log::identify(&disk, dir, Access::Read);
    let read = |disk: &SimVfs, read_only: bool| -> Result<(Log, Vec<Transaction>), Error> {
        let mut transactions = Vec::new();
        let options = OpenOptions { read_only, ..OpenOptions::default() };
        let (log, _) = Log::open::<Error>(Arc::new(disk.clone()), dir, None, &options, &mut |transaction| {
            transactions.push(transaction);
            Ok(())
        })?;
        Ok((log, transactions))
    };
    let mut saved = BTreeMap::new();
    let salvaged = Log::salvage::<Error>(Arc::new(disk.clone()), dir, Lsn(0), &mut |salvaged| {
        saved.extend(salvaged.records.into_iter().map(|record| (record.lsn, record)));
        Ok(())
    });
    if let Ok((log, transactions)) = read(&disk, true) {
        let _ = log.verify(&mut |_, _| ());
        salvaged.expect("what can be opened has a header");
        for record in transactions.iter().flat_map(|transaction| &transaction.records) {
            assert!(record.is_redacted() || saved.get(&record.lsn) == Some(record), "{record:?} is not salvaged");
            match log.read(record.lsn) {
                Ok(read) => assert_eq!(read, *record),
                // A half erased record: opening for writing finishes the erasure.
                Err(error) => assert!(record.is_redacted(), "{error}"),
            }
        }
    }
    let Ok((log, transactions)) = read(&disk, false) else { return };
    let scanned: Result<Vec<_>, _> = log.scan(Lsn(0)).expect("the beginning is a commit's end").collect();
    let scanned = scanned.expect("recovery left it whole");
    assert_eq!(scanned.len(), transactions.len());
    for (shown, now) in transactions.iter().zip(&scanned) {
        assert_eq!(shown.head, now.head);
        for (shown, now) in shown.records.iter().zip(&now.records) {
            // A record that was to be erased when recovery returned it is erased now.
            assert!(shown == now || now.is_redacted() && shown.hash == now.hash, "{shown:?} became {now:?}");
        }
    }
    let transactions = scanned;
    let report = log.verify(&mut |_, _| ()).expect("a simulated disk can be read");
    // Recovery does not read bytes that were never used, and leaves erased records without a redaction to verify.
    let left = ["never used", "no redaction in the log names it"];
    let grave: Vec<_> =
        report.faults.iter().filter(|fault| !left.iter().any(|left| fault.what.contains(left))).collect();
    assert!(grave.is_empty(), "recovery left faults: {grave:?}");
    let appended = log.append(&[NewRecord { kind: 1, payload: b"more".to_vec() }], i64::MAX);
    let more = match appended {
        Ok(appended) => {
            log.sync_to(appended.end).expect("a simulated disk can be synced");
            1
        }
        Err(_) => 0,
    };
    drop(log);
    let (_, again) = read(&disk.crash(Crash::Lose), false).expect("what was recovered can be opened");
    assert_eq!(again.len(), transactions.len() + more);
    assert_eq!(again[..transactions.len()], transactions, "recovery is idempotent");
}

/// A log with commits in several pages and a run of pages, closed and open; logs with erased records, and with records
/// still to erase.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (payloads, erase, close) in [
        (&[10][..], None, false),
        (&[10, 300, 0, 2_000, 1_900, 4_500], None, false),
        (&[40, 40], None, true),
        (&[200, 700], Some(false), false),
        (&[200, 700], Some(true), false),
    ] {
        let disk = SimVfs::new();
        let options = LogOptions { page_size: PAGE as u32, first_segment_len: LEN as u64, ..LogOptions::new([9; 16]) };
        let log = Log::create(Arc::new(disk.clone()), Path::new(DIR), &options).expect("an empty disk has room");
        for (time_us, len) in payloads.iter().enumerate() {
            let records = [vec![5; *len], vec![6; len / 2]].map(|payload| NewRecord { kind: 4, payload });
            let appended = log.append(&records, time_us as i64).expect("there is room");
            let Some(complete) = erase.filter(|_| time_us == 0) else { continue };
            let erase = Erase { lsn: appended.lsns[0], replacement: None };
            let (_, redaction) = log.append_redaction(&records[1..], &[erase], 1).expect("the record can be erased");
            if complete {
                log.complete_redaction(&redaction).expect("a simulated disk can be synced");
            }
        }
        if close {
            log.close().expect("it can be closed");
        }
        let mut bytes = disk.bytes(Path::new(SEGMENT)).expect("it was created");
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(end);
        seeds.push(bytes);
    }
    seeds
}

/// Repairs the checksums of everything that looks like a header, record or footer.
fn repair(bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..HEADER_CRC_AT]);
    put(bytes, HEADER_CRC_AT, crc);
    let database = <[u8; 16]>::try_from(&bytes[DATABASE_AT..DATABASE_AT + 16]).expect("16 bytes");
    let segment = bytes[NUMBER_AT..NUMBER_AT + 8].to_vec();
    let seeded = |at: usize| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&database);
        hasher.update(&segment);
        hasher.update(&(at as u64).to_le_bytes());
        hasher
    };
    for at in (0..bytes.len() - FOOTER_LEN).step_by(8) {
        if bytes[at + MARK_AT..at + RECORD_CRC_AT] == *b"Hr" {
            let payload = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize;
            let len = payload.saturating_add(PAYLOAD_AT).max(MIN_RECORD_LEN).next_multiple_of(8);
            let Some(record) = bytes.get(at..at.saturating_add(len)) else { continue };
            let mut hasher = seeded(at);
            hasher.update(&record[..RECORD_CRC_AT]);
            hasher.update(&record[RECORD_CRC_AT + 4..]);
            put(bytes, at + RECORD_CRC_AT, hasher.finalize());
        }
    }
    for at in (PAGE - FOOTER_LEN..bytes.len()).step_by(PAGE) {
        if bytes[at..at + 4] == *b"Hpag" {
            let mut hasher = seeded(at);
            hasher.update(&bytes[at + 8..at + FOOTER_LEN]);
            put(bytes, at + 4, hasher.finalize());
        }
    }
}

fn put(bytes: &mut [u8], at: usize, crc: u32) {
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

const DATABASE_AT: usize = 32;
const NUMBER_AT: usize = 48;
const HEADER_CRC_AT: usize = 136;
const MARK_AT: usize = 6;
const RECORD_CRC_AT: usize = 8;
const PAYLOAD_AT: usize = 28;
const MIN_RECORD_LEN: usize = 48;
const FOOTER_LEN: usize = 96;
