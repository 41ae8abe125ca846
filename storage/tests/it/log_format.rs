//! The log's files read by a second program, written from docs/format.md alone: every checksum, hash and count must be
//! what the document says. Also redacts a record by the document, and expects the log to go on as if nothing had
//! happened.

use crate::log_fixture::{PAGE, create, open, read_only, records, segment_path, writable};
use holotype_storage::log::{Appended, Lsn};
use holotype_storage::vfs::SimVfs;
use holotype_storage::{FLAG_REDACTED, NewRecord};

const FOOTER: usize = 96;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    blake3::hash(&parts.concat()).into()
}

/// CRC-32 of database id, segment number and offset, then the parts.
fn crc(segment: u64, offset: usize, parts: &[&[u8]]) -> u32 {
    let seed = [[7; 16].as_slice(), &segment.to_le_bytes(), &(offset as u64).to_le_bytes()].concat();
    crc32fast::hash(&[seed, parts.concat()].concat())
}

fn merkle(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => hash(&[]),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
            hash(&[&[1], &merkle(left), &merkle(right)])
        }
    }
}

/// The state that the document requires of a reader of the log.
#[derive(Debug, Default)]
struct State {
    chain: [u8; 32],
    page: Vec<[u8; 32]>,
    transaction: Vec<[u8; 32]>,
    records: u64,
    commit: u64,
    time: i64,
    head: [u8; 32],
    found: Vec<(u8, Vec<u8>)>,
    ended: bool,
}

impl State {
    /// Reads one record and returns its length.
    fn record(&mut self, segment: u64, first: u64, file: &[u8], at: usize) -> usize {
        let length = u32_at(file, at) as usize;
        let stored = (28 + length).next_multiple_of(8).max(56);
        let record = &file[at..at + stored];
        let (kind, flags) = (record[4], record[5]);
        assert_eq!(&record[6..8], b"Hr");
        assert_eq!(u32_at(record, 8), crc(segment, at, &[&record[..8], &record[12..]]), "record at {at}");
        assert!(record[28 + length..].iter().all(|&byte| byte == 0));
        assert_eq!(flags, 0);
        let payload = &record[28..28 + length];
        let r = hash(&[&[0], &record[..8], &record[12..28], payload]);
        let position = first + at as u64;
        match kind {
            0xf0 => {
                assert_eq!(u64_at(payload, 0), self.commit + 1);
                assert_eq!(u32_at(payload, 8) as usize, self.transaction.len());
                let time = u64_at(payload, 16) as i64;
                assert!(time >= self.time && u64_at(payload, 24) <= position);
                assert_eq!(payload[32..64], hash(&[&[3], &self.transaction.concat()]));
                assert_eq!(payload[64..96], hash(&[&[4], &self.chain, &merkle(&self.page), &payload[..64]]));
                (self.commit, self.time) = (u64_at(payload, 0), time);
                self.head = payload[64..96].try_into().unwrap();
                self.transaction.clear();
            }
            0xf1 => {
                assert_eq!((u64_at(payload, 0), &payload[16..48]), (self.commit, self.head.as_slice()));
                assert_eq!(u64_at(payload, 8), position);
                self.ended = true;
            }
            _ => {
                self.transaction.push(r);
                self.found.push((kind, payload.to_vec()));
            }
        }
        self.page.push(r);
        self.records += 1;
        stored
    }

    fn footer(&mut self, segment: u64, file: &[u8], start: usize, end: usize, used: usize) {
        let footer = &file[end - FOOTER..end];
        assert!(file[start + used..end - FOOTER].iter().all(|&byte| byte == 0));
        assert_eq!(&footer[..4], b"Hpag");
        assert_eq!(u32_at(footer, 4), crc(segment, end - FOOTER, &[&footer[8..]]));
        assert_eq!((u32_at(footer, 8) as usize, u32_at(footer, 12) as usize), (self.page.len(), used));
        assert_eq!(u64_at(footer, 16), self.records - self.page.len() as u64);
        assert_eq!(u64_at(footer, 24), 0);
        let root = merkle(&self.page);
        assert_eq!(footer[32..64], root);
        self.chain = hash(&[&[2], &self.chain, &root]);
        assert_eq!(footer[64..96], self.chain);
        self.page.clear();
    }

    fn segment(&mut self, number: u64, first: u64, previous_end: u64, file: &[u8]) -> u64 {
        assert_eq!(&file[..8], b"HOLO-LOG");
        assert_eq!((u32_at(file, 8), u32_at(file, 16), u32_at(file, 20), u32_at(file, 24)), (1, 0, 0, 0));
        let version =
            [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
        let [major, minor, patch] = version.map(|number| number.parse::<u32>().unwrap());
        assert_eq!(u32_at(file, 12), major * 65_536 + minor * 256 + patch);
        assert_eq!((u32_at(file, 28), &file[32..48]), (PAGE as u32, [7; 16].as_slice()));
        assert_eq!((u64_at(file, 48), u64_at(file, 56)), (number, first));
        assert_eq!((u64_at(file, 64), u64_at(file, 72)), (file.len() as u64, previous_end));
        assert_eq!(
            (u64_at(file, 80), u64_at(file, 88), u64_at(file, 96) as i64),
            (self.records, self.commit, self.time)
        );
        assert_eq!(file[104..136], self.chain);
        assert_eq!(u32_at(file, 136), crc32fast::hash(&file[..136]));
        assert!(file[140..2048].iter().all(|&byte| byte == 0));
        assert_eq!(file[2048..2192], file[..144], "the copy of the header");
        assert!(file[2192..PAGE as usize].iter().all(|&byte| byte == 0));

        let mut start = PAGE as usize;
        while start < file.len() && file[start..start + 12] != [0; 12] {
            let length = u32_at(file, start) as usize;
            let pages = ((28 + length).next_multiple_of(8) + FOOTER).div_ceil(PAGE as usize);
            let end = start + pages * PAGE as usize;
            let mut at = start;
            while end - FOOTER - at >= 12 && file[at..at + 12] != [0; 12] {
                at += self.record(number, first, file, at);
            }
            if file[end - FOOTER..end] == [0; FOOTER] {
                assert!(file[at..].iter().all(|&byte| byte == 0));
                break;
            }
            self.footer(number, file, start, end, at - start);
            start = end;
        }
        first + start as u64
    }
}

fn write(sim: &SimVfs) -> (Vec<NewRecord>, Vec<Appended>) {
    let log = create(sim);
    let shapes: [&[usize]; 6] = [&[100, 0, 21], &[3000, 900], &[], &[6000], &[1; 40], &[2000, 3900, 1000]];
    let (mut all, mut appended) = (Vec::new(), Vec::new());
    for (number, lens) in shapes.into_iter().enumerate() {
        let new = records(number as u8, lens);
        appended.push(log.append(&new, 500 - number as i64).unwrap());
        all.extend(new);
        if number == 1 {
            log.seal().unwrap();
        }
    }
    log.close().unwrap();
    (all, appended)
}

#[test]
fn the_files_are_what_the_document_says() {
    let sim = SimVfs::new();
    let (all, _) = write(&sim);
    let mut state = State { chain: hash(&[&[5], &[7; 16]]), time: i64::MIN, ..State::default() };
    let (mut first, mut end) = (0, 0);
    for number in 1.. {
        let Ok(file) = sim.bytes(&segment_path(number)) else { break };
        if file[..8] == [0; 8] {
            break;
        }
        end = state.segment(number, first, end, &file);
        first += file.len() as u64;
    }
    assert!(state.ended && first > 3 * PAGE);
    assert_eq!((state.commit, state.time), (6, 500));
    let expected: Vec<(u8, Vec<u8>)> = all.into_iter().map(|new| (new.kind, new.payload)).collect();
    assert_eq!(state.found, expected);
    assert_eq!(open(&sim, &read_only()).log.head().hash, state.head);
}

#[test]
fn salts_make_equal_records_differ() {
    let sim = SimVfs::new();
    let log = create(&sim);
    let same = [records(1, &[50]).remove(0), records(1, &[50]).remove(0)];
    let appended = log.append(&same, 0).unwrap();
    let [first, second] = [0, 1].map(|at| log.read(appended.lsns[at]).unwrap());
    assert_eq!(first.payload, second.payload);
    assert_ne!(first.hash, second.hash);
}

#[test]
fn a_redacted_record_leaves_everything_else_standing() {
    let sim = SimVfs::new();
    let (_, appended) = write(&sim);
    let before = open(&sim, &read_only());
    // The second record of the second transaction, which is in the first segment, in a sealed page.
    let lsn = appended[1].lsns[1];
    let original = before.log.read(lsn).unwrap();
    let mut file = sim.bytes(&segment_path(1)).unwrap();
    let at = lsn.0 as usize;
    let stored = (28 + original.payload.len()).next_multiple_of(8);
    file[at + 5] = 1;
    file[at + 12..at + stored].fill(0);
    file[at + 12..at + 44].copy_from_slice(&original.hash);
    let crc = crc(1, at, &[&file[at..at + 8], &file[at + 12..at + stored]]);
    file[at + 8..at + 12].copy_from_slice(&crc.to_le_bytes());
    sim.replace(&segment_path(1), &file);

    let after = open(&sim, &writable());
    assert!(after.report.tail.is_none() && after.report.closed);
    assert_eq!(after.log.head(), before.log.head());
    let read = after.log.read(lsn).unwrap();
    assert!(read.is_redacted() && read.payload.is_empty());
    assert_eq!((read.hash, read.kind, read.flags), (original.hash, original.kind, FLAG_REDACTED));
    for (found, expected) in after.transactions.iter().zip(&before.transactions) {
        for (found, expected) in found.records.iter().zip(&expected.records).filter(|(found, _)| found.lsn != lsn) {
            assert_eq!(found, expected);
        }
    }
    // All hashes hold, but the log does not say that it was erased.
    let report = after.log.verify(&mut |_, _| {}).unwrap();
    let places: Vec<Lsn> = report.faults.iter().map(|fault| fault.position).collect();
    assert_eq!(places, [lsn], "{report:?}");
}

/// Damage in several places: each is reported, what lies between is still checked, and the counts say how much.
#[test]
fn verifying_goes_on_behind_faults() {
    let sim = SimVfs::new();
    let (_, appended) = write(&sim);
    let total = appended.len() as u64;
    let spoil = [appended[0].lsns[1], appended[4].lsns[20]];
    for Lsn(position) in spoil {
        let number = position / (4 * PAGE) + 1;
        sim.flip(&segment_path(number), position % (4 * PAGE) + 20, 4).unwrap();
    }
    let opened = open(&sim, &read_only());
    assert_eq!(opened.report.damage.as_ref().map(|damage| damage.position), Some(spoil[0]));
    assert!(opened.transactions.is_empty());
    let mut progress = Vec::new();
    let report = opened.log.verify(&mut |done, total| progress.push((done, total))).unwrap();
    let positions: Vec<Lsn> = report.faults.iter().map(|fault| fault.position).collect();
    assert_eq!(positions, spoil);
    assert_eq!(report.commits, total - 2);
    assert_eq!(report.not_checked.len(), 2, "{:?}", report.not_checked);
    assert!(progress.is_sorted() && progress.last().is_some_and(|(done, total)| done == total));
}

/// Puts bytes into a record or footer of the first segment and makes its checksum right again, as someone with the
/// files and the document could.
fn forge(sim: &SimVfs, at: usize, len: usize, crc_at: usize, change: impl FnOnce(&mut [u8])) {
    let mut file = sim.bytes(&segment_path(1)).unwrap();
    change(&mut file[at..at + len]);
    let forged = crc(1, at, &[&file[at..at + crc_at], &file[at + crc_at + 4..at + len]]);
    file[at + crc_at..at + crc_at + 4].copy_from_slice(&forged.to_le_bytes());
    sim.replace(&segment_path(1), &file);
}

/// Checksums can be forged, hashes cannot: every forged field is found where it is, and nothing forged is delivered.
#[test]
fn forged_fields_with_valid_checksums_are_found() {
    let pristine = SimVfs::new();
    let (_, appended) = write(&pristine);
    let commit = appended[0].end.0 as usize - 128;
    let footer = 2 * PAGE as usize - FOOTER;
    let record = appended[0].lsns[0].0 as usize;
    // Where, how long, where its checksum is, and the byte to change.
    let commit_fields = [0, 8, 12, 16, 24, 32, 63, 64, 95].map(|field| (commit, 128, 8, 28 + field));
    let footer_fields = [8, 12, 16, 24, 32, 63, 64, 95].map(|field| (footer, FOOTER, 4, field));
    // Type, salt, payload of a record; its length would change where the next one begins.
    let record_fields = [4, 12, 28, 127].map(|field| (record, 128, 8, field));
    for (at, len, crc_at, byte) in commit_fields.into_iter().chain(footer_fields).chain(record_fields) {
        let sim = pristine.crash(holotype_storage::vfs::Crash::Keep);
        // The clock may go forward, so it is put back; synced may lag, so it is put beyond itself.
        forge(&sim, at, len, crc_at, |bytes| match byte {
            _ if at == commit && byte == 28 + 16 => bytes[byte..byte + 8].copy_from_slice(&i64::MAX.to_le_bytes()),
            _ if at == commit && byte == 28 + 24 => bytes[byte..byte + 8].copy_from_slice(&u64::MAX.to_le_bytes()),
            _ => bytes[byte] ^= 0x21,
        });
        let context = format!("byte {byte} of what is at {at}");
        let opened = open(&sim, &read_only());
        let damage = opened.report.damage.unwrap_or_else(|| panic!("{context}: not found"));
        // A forged clock that is too high shows at the next commit, a changed record at its commit.
        let late = at == record || (at == commit && byte == 28 + 16);
        let expected = if late { at as u64..=appended[1].end.0 } else { at as u64 - PAGE..=at as u64 };
        assert!(expected.contains(&damage.position.0), "{context}: {damage}");
        let delivered = opened.transactions.len();
        assert!(delivered <= 1 + usize::from(at == footer), "{context}: {delivered} delivered");
        assert!(at != record || delivered == 0, "{context}: the forged record was delivered");
        assert!(!opened.log.verify(&mut |_, _| {}).unwrap().is_clean(), "{context}");
    }
}
