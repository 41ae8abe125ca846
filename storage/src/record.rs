//! One record of the log.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | length of the payload in bytes, at most 16 MiB |
//! | 4 | 1 | type: below `0xf0` for the engine, from there on reserved for the log; never 0 |
//! | 5 | 1 | flags: bit 0 redacted; all others 0 |
//! | 6 | 2 | mark, the bytes `Hr` |
//! | 8 | 4 | CRC32 of all of the record but this field |
//! | 12 | 16 | salt, random |
//! | 28 | length | payload |
//! | 28 + length | | zeros to a multiple of 8, and to 56 at least |
//!
//! The CRC starts from the CRC of database id, segment number (8 bytes) and offset in the segment file (8 bytes): a
//! record copied to another place, or from another database, does not pass. The record's hash `r` ([`crate::chain`])
//! does not depend on the place.
//!
//! 1. Twelve zero bytes never begin a record: the mark is not zero.
//! 2. `r` covers the flags as first written, so redaction changes no hash above it. Redaction sets the flag, writes `r`
//!    at offset 12 and the position of the replacement record (0 for none) at 44, and zeroes the rest up to the
//!    record's end. Every record is long enough for that.
//! 3. No field is trusted before the CRC matches, and the CRC is computed only after the length is known to fit.

use crate::chain::{self, Hash};
use crate::error::{Error, Result};
use crate::log::Lsn;

/// The greatest payload length of a record.
pub const MAX_PAYLOAD: usize = 16 << 20;

/// Record types from here on are reserved for the log.
pub const FIRST_RESERVED_KIND: u8 = 0xf0;

/// Set in [`Record::flags`] if payload and salt were erased.
pub const FLAG_REDACTED: u8 = 1;

/// Ends a transaction.
pub(crate) const KIND_COMMIT: u8 = 0xf0;
/// Ends the log of a database that was closed properly.
pub(crate) const KIND_CLOSE: u8 = 0xf1;
/// Names the records to erase, before they are erased ([`crate::log::redaction`]).
pub(crate) const KIND_REDACT: u8 = 0xf2;
/// States that they were erased.
pub(crate) const KIND_REDACTED: u8 = 0xf3;

const LENGTH_AT: usize = 0;
const KIND_AT: usize = LENGTH_AT + 4;
const FLAGS_AT: usize = KIND_AT + 1;
const MARK_AT: usize = FLAGS_AT + 1;
const CRC_AT: usize = MARK_AT + 2;
const SALT_AT: usize = CRC_AT + 4;
pub(crate) const PAYLOAD_AT: usize = SALT_AT + SALT_LEN;

/// The bytes before a record's salt: enough to know its length.
pub(crate) const PREFIX_LEN: usize = SALT_AT;
pub(crate) const SALT_LEN: usize = 16;
/// Records start and end on multiples of this.
pub(crate) const ALIGNMENT: usize = 8;
/// The shortest record.
pub(crate) const MIN_LEN: usize = 56;
/// The offset of the replacement's position in a redacted record.
const REPLACEMENT_AT: usize = SALT_AT + size_of::<Hash>();

const MARK: [u8; 2] = *b"Hr";

const _: () = assert!(PAYLOAD_AT == 28);
const _: () = assert!(MIN_LEN >= REPLACEMENT_AT + size_of::<u64>() && MIN_LEN.is_multiple_of(ALIGNMENT));
const _: () = assert!(MAX_PAYLOAD <= u32::MAX as usize);

/// A record to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The type of the payload, which the engine defines. From 1 to below [`FIRST_RESERVED_KIND`].
    pub kind: u8,
    /// The bytes; at most [`MAX_PAYLOAD`] of them.
    pub payload: Vec<u8>,
}

/// A record as read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its position.
    pub lsn: Lsn,
    /// The type of the payload.
    pub kind: u8,
    /// [`FLAG_REDACTED`] or 0.
    pub flags: u8,
    /// The bytes; empty if redacted.
    pub payload: Vec<u8>,
    /// Its hash `r`, a leaf of the Merkle trees.
    pub hash: Hash,
    /// The position of its replacement, if it was redacted and has one. Reading the log in order gives the
    /// replacement's type and bytes instead of this record's.
    pub replacement: Option<Lsn>,
}

impl Record {
    /// True if payload and salt were erased.
    #[must_use]
    pub fn is_redacted(&self) -> bool {
        self.flags & FLAG_REDACTED != 0
    }
}

/// The length in the log of a record with a payload of this length.
pub(crate) const fn stored_len(payload_len: usize) -> usize {
    let len = (PAYLOAD_AT + payload_len).next_multiple_of(ALIGNMENT);
    if len < MIN_LEN { MIN_LEN } else { len }
}

/// The initial value of CRCs, which makes a CRC valid in one place of one database only.
#[derive(Clone, Debug)]
pub(crate) struct CrcSeed(crc32fast::Hasher);

impl CrcSeed {
    pub(crate) fn new(database: &[u8; 16]) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(database);
        Self(hasher)
    }

    pub(crate) fn at(&self, place: Place) -> crc32fast::Hasher {
        let mut hasher = self.0.clone();
        hasher.update(&place.segment.to_le_bytes());
        hasher.update(&place.offset.to_le_bytes());
        hasher
    }
}

/// An offset in a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// Refuses a type that is 0 or reserved for the log.
pub(crate) fn check_kind(kind: u8) -> Result<()> {
    if kind >= FIRST_RESERVED_KIND || kind == 0 {
        return Err(Error::ReservedKind { kind });
    }
    Ok(())
}

/// Begins a record at the end of `out`. The caller appends the payload, then calls [`end`].
pub(crate) fn begin(kind: u8, salt: &[u8; SALT_LEN], out: &mut Vec<u8>) {
    out.extend_from_slice(&header_of(kind, 0));
    out.extend_from_slice(&[0; SALT_AT - CRC_AT]);
    out.extend_from_slice(salt);
}

/// Ends the record that begins at `start` and returns the length of its payload. [`set_crc`] adds the CRC later.
pub(crate) fn end(out: &mut Vec<u8>, start: usize) -> Result<usize> {
    let len = out.len() - start - PAYLOAD_AT;
    if len > MAX_PAYLOAD {
        return Err(Error::TooLarge { what: "a record's payload", len: len as u64, limit: MAX_PAYLOAD as u64 });
    }
    out[start + LENGTH_AT..start + KIND_AT].copy_from_slice(&(len as u32).to_le_bytes());
    out.resize(start + stored_len(len), 0);
    Ok(len)
}

/// Appends a record of the log itself and returns its hash. [`set_crc`] adds the CRC later.
pub(crate) fn encode(kind: u8, salt: &[u8; SALT_LEN], payload: &[u8], out: &mut Vec<u8>) -> Hash {
    let start = out.len();
    begin(kind, salt, out);
    out.extend_from_slice(payload);
    out.resize(start + stored_len(payload.len()), 0);
    let header = header_of(kind, payload.len());
    out[start..start + header.len()].copy_from_slice(&header);
    chain::record_hash(&header, salt, payload)
}

/// The hash of a whole record that is not redacted, given as exactly its bytes.
pub(crate) fn hash_of_encoded(record: &[u8]) -> Hash {
    let len = u32::from_le_bytes([record[0], record[1], record[2], record[3]]) as usize;
    chain::record_hash(&hashed_header(record), &record[SALT_AT..PAYLOAD_AT], &record[PAYLOAD_AT..PAYLOAD_AT + len])
}

/// The first bytes of a new record.
fn header_of(kind: u8, payload_len: usize) -> [u8; 8] {
    debug_assert!(payload_len <= MAX_PAYLOAD);
    let mut header = [0; 8];
    header[LENGTH_AT..KIND_AT].copy_from_slice(&(payload_len as u32).to_le_bytes());
    header[KIND_AT] = kind;
    header[MARK_AT..CRC_AT].copy_from_slice(&MARK);
    header
}

/// Sets the CRC of an encoded record for its place: `record` is exactly its bytes.
pub(crate) fn set_crc(record: &mut [u8], seed: &CrcSeed, place: Place) {
    let crc = crc(record, seed, place);
    record[CRC_AT..SALT_AT].copy_from_slice(&crc.to_le_bytes());
}

/// The bytes of a redacted record of this type and original payload length.
pub(crate) fn redacted(
    kind: u8,
    payload_len: u32,
    r: &Hash,
    replacement: u64,
    seed: &CrcSeed,
    place: Place,
) -> Vec<u8> {
    let mut record = vec![0; stored_len(payload_len as usize)];
    record[LENGTH_AT..KIND_AT].copy_from_slice(&payload_len.to_le_bytes());
    record[KIND_AT] = kind;
    record[FLAGS_AT] = FLAG_REDACTED;
    record[MARK_AT..CRC_AT].copy_from_slice(&MARK);
    record[SALT_AT..REPLACEMENT_AT].copy_from_slice(r);
    record[REPLACEMENT_AT..REPLACEMENT_AT + 8].copy_from_slice(&replacement.to_le_bytes());
    set_crc(&mut record, seed, place);
    record
}

fn crc(record: &[u8], seed: &CrcSeed, place: Place) -> u32 {
    let mut hasher = seed.at(place);
    hasher.update(&record[..CRC_AT]);
    hasher.update(&record[SALT_AT..]);
    hasher.finalize()
}

/// The parse of bytes at which a record may start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// Nothing was written here, or the room left is too small for a record.
    Blank,
    /// A record whose CRC matches.
    Record(RecordView<'a>),
    /// Anything else.
    Fault(String),
}

/// A record in a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordView<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) payload: &'a [u8],
    pub(crate) hash: Hash,
    /// The position of its replacement; 0 if it has none.
    pub(crate) replacement: u64,
    /// Its length in the log, with padding.
    pub(crate) stored_len: usize,
}

impl RecordView<'_> {
    pub(crate) fn to_record(&self, lsn: Lsn) -> Record {
        self.to_record_with(lsn, self.payload)
    }

    /// The record with this payload: its own, or an empty one if the caller does not need it.
    pub(crate) fn to_record_with(&self, lsn: Lsn, payload: &[u8]) -> Record {
        let replacement = (self.replacement > 0).then_some(Lsn(self.replacement));
        Record { lsn, kind: self.kind, flags: self.flags, payload: payload.to_vec(), hash: self.hash, replacement }
    }
}

/// The length that a record's first bytes claim, with padding; `None` for bytes that are not a record prefix. The
/// caller must check that it fits the page or the segment.
pub(crate) fn claimed_len(prefix: &[u8]) -> Option<usize> {
    let prefix = prefix.get(..PREFIX_LEN)?;
    if prefix[MARK_AT..CRC_AT] != MARK || prefix[KIND_AT] == 0 {
        return None;
    }
    let length = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]) as usize;
    (length <= MAX_PAYLOAD).then(|| stored_len(length))
}

/// Parses the record at the start of `bytes`, which end where the room for records ends.
pub(crate) fn parse<'a>(bytes: &'a [u8], seed: &CrcSeed, place: Place) -> Parsed<'a> {
    parse_hashed(bytes, seed, place, None)
}

/// Like [`parse`], with the hash of exactly these bytes if it was computed before.
pub(crate) fn parse_hashed<'a>(bytes: &'a [u8], seed: &CrcSeed, place: Place, hash: Option<Hash>) -> Parsed<'a> {
    let Some(prefix) = bytes.get(..PREFIX_LEN) else {
        return Parsed::Blank;
    };
    if prefix.iter().all(|&byte| byte == 0) {
        return Parsed::Blank;
    }
    let Some(stored_len) = claimed_len(prefix) else {
        return Parsed::Fault("these bytes are not a record header".into());
    };
    let Some(record) = bytes.get(..stored_len) else {
        return Parsed::Fault(format!("a record of {stored_len} bytes does not fit the {} bytes left", bytes.len()));
    };
    let stored = u32::from_le_bytes([record[8], record[9], record[10], record[11]]);
    let computed = crc(record, seed, place);
    if stored != computed {
        return Parsed::Fault(format!("record checksum is {computed:08x}, stored is {stored:08x}"));
    }
    let length = u32::from_le_bytes([record[0], record[1], record[2], record[3]]) as usize;
    let flags = record[FLAGS_AT];
    let (payload, hash, replacement, zeros) = match flags {
        0 => {
            let payload = &record[PAYLOAD_AT..PAYLOAD_AT + length];
            let hash = hash
                .unwrap_or_else(|| chain::record_hash(&hashed_header(record), &record[SALT_AT..PAYLOAD_AT], payload));
            (payload, hash, 0, &record[PAYLOAD_AT + length..])
        }
        FLAG_REDACTED => {
            let mut replacement = [0; 8];
            replacement.copy_from_slice(&record[REPLACEMENT_AT..REPLACEMENT_AT + 8]);
            ([].as_slice(), stated_hash(record), u64::from_le_bytes(replacement), &record[REPLACEMENT_AT + 8..])
        }
        _ => return Parsed::Fault(format!("unknown record flags {flags:#04x}")),
    };
    if zeros.iter().any(|&byte| byte != 0) {
        return Parsed::Fault("the padding of a record is not zero".into());
    }
    Parsed::Record(RecordView { kind: record[KIND_AT], flags, payload, hash, replacement, stored_len })
}

/// The part of a record's header that its hash covers.
fn hashed_header(record: &[u8]) -> [u8; 8] {
    let mut header = [0; 8];
    header.copy_from_slice(&record[..CRC_AT]);
    header
}

/// The hash stated by a redacted record.
fn stated_hash(record: &[u8]) -> Hash {
    let mut r = Hash::default();
    r.copy_from_slice(&record[SALT_AT..REPLACEMENT_AT]);
    r
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::format_doc;
    use proptest::prelude::*;

    const PLACE: Place = Place { segment: 2, offset: 4096 };

    fn seed() -> CrcSeed {
        CrcSeed::new(&[7; 16])
    }

    fn encoded(kind: u8, payload: &[u8]) -> (Vec<u8>, Hash) {
        let mut bytes = Vec::new();
        let r = encode(kind, &[0xaa; SALT_LEN], payload, &mut bytes);
        set_crc(&mut bytes, &seed(), PLACE);
        (bytes, r)
    }

    /// Erases payload and salt as the format describes.
    pub(crate) fn redact(record: &mut [u8], seed: &CrcSeed, place: Place) {
        let Parsed::Record(RecordView { hash, kind, payload, .. }) = parse(record, seed, place) else {
            panic!("not a record")
        };
        let erased = redacted(kind, payload.len() as u32, &hash, 0, seed, place);
        record.copy_from_slice(&erased);
    }

    #[test]
    fn the_document_says_the_same() {
        let offsets = [LENGTH_AT, KIND_AT, FLAGS_AT, MARK_AT, CRC_AT, SALT_AT, PAYLOAD_AT];
        assert_eq!(format_doc::between(&offsets), format_doc::fields("Record"));
    }

    #[test]
    fn a_length_is_claimed_by_the_first_bytes_of_a_record_only() {
        let (bytes, _) = encoded(3, &[1; 100]);
        assert_eq!(claimed_len(&bytes), Some(128));
        assert_eq!(claimed_len(&bytes[..PREFIX_LEN - 1]), None);
        // Type, mark, and a length above the greatest.
        for (at, byte) in [(KIND_AT, 0), (MARK_AT, 0), (MARK_AT + 1, b'R'), (LENGTH_AT + 3, 1)] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            assert_eq!(claimed_len(&changed), None, "byte {at}");
        }
    }

    #[test]
    fn the_bytes_are_fixed() {
        let (bytes, _) = encoded(3, b"twenty-one bytes long");
        let mut expected = vec![21, 0, 0, 0, 3, 0, b'H', b'r'];
        let mut crc = crc32fast::Hasher::new();
        crc.update(&[7; 16]);
        crc.update(&[2, 0, 0, 0, 0, 0, 0, 0]);
        crc.update(&[0, 16, 0, 0, 0, 0, 0, 0]);
        crc.update(&expected);
        crc.update(&[0xaa; 16]);
        crc.update(b"twenty-one bytes long\0\0\0\0\0\0\0");
        expected.extend_from_slice(&crc.finalize().to_le_bytes());
        expected.extend_from_slice(&[0xaa; 16]);
        expected.extend_from_slice(b"twenty-one bytes long\0\0\0\0\0\0\0");
        assert_eq!(bytes, expected);
        assert_eq!(bytes.len(), 56);
        assert_eq!((stored_len(0), stored_len(28), stored_len(29)), (56, 56, 64));
    }

    #[test]
    fn a_redacted_record_keeps_its_hash_and_nothing_else() {
        for payload in [b"".as_slice(), b"x", b"something that should be forgotten"] {
            let (mut bytes, r) = encoded(9, payload);
            redact(&mut bytes, &seed(), PLACE);
            let Parsed::Record(view) = parse(&bytes, &seed(), PLACE) else { panic!("redacted record refused") };
            assert_eq!((view.kind, view.flags, view.payload, view.hash), (9, FLAG_REDACTED, [].as_slice(), r));
            assert_eq!(view.stored_len, bytes.len());
        }
    }

    #[test]
    fn the_bytes_of_a_redacted_record_are_fixed() {
        let bytes = redacted(9, 40, &[0xcc; 32], 0x0102, &seed(), PLACE);
        let mut expected = vec![40, 0, 0, 0, 9, FLAG_REDACTED, b'H', b'r'];
        let mut crc = crc32fast::Hasher::new();
        crc.update(&[7; 16]);
        crc.update(&[2, 0, 0, 0, 0, 0, 0, 0]);
        crc.update(&[0, 16, 0, 0, 0, 0, 0, 0]);
        crc.update(&expected);
        crc.update(&[0xcc; 32]);
        crc.update(&[2, 1, 0, 0, 0, 0, 0, 0]);
        crc.update(&[0; 20]);
        expected.extend_from_slice(&crc.finalize().to_le_bytes());
        expected.extend_from_slice(&[0xcc; 32]);
        expected.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[0; 20]);
        assert_eq!(bytes, expected);
        let Parsed::Record(view) = parse(&bytes, &seed(), PLACE) else { panic!("refused") };
        assert_eq!((view.replacement, view.hash, view.stored_len), (0x0102, [0xcc; 32], 72));
    }

    #[test]
    fn a_record_holds_only_in_its_place() {
        let (bytes, _) = encoded(1, b"here");
        assert!(matches!(parse(&bytes, &seed(), PLACE), Parsed::Record(_)));
        let elsewhere = [Place { segment: 3, ..PLACE }, Place { offset: 4104, ..PLACE }];
        for place in elsewhere {
            assert!(matches!(parse(&bytes, &seed(), place), Parsed::Fault(_)));
        }
        assert!(matches!(parse(&bytes, &CrcSeed::new(&[8; 16]), PLACE), Parsed::Fault(_)));
    }

    #[test]
    fn every_flip_and_every_cut_is_noticed() {
        let (bytes, _) = encoded(5, b"a payload of some length, odd");
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert!(matches!(parse(&flipped, &seed(), PLACE), Parsed::Fault(_)), "bit {at}");
        }
        for len in 0..bytes.len() {
            assert!(!matches!(parse(&bytes[..len], &seed(), PLACE), Parsed::Record(_)), "cut at {len}");
        }
    }

    #[test]
    fn reserved_kinds_and_long_payloads_are_refused() {
        for kind in [0, 0xf0, 0xff] {
            assert!(matches!(check_kind(kind), Err(Error::ReservedKind { .. })));
        }
        assert!(check_kind(1).is_ok() && check_kind(0xef).is_ok());
        let mut bytes = Vec::new();
        begin(1, &[0; SALT_LEN], &mut bytes);
        bytes.resize(bytes.len() + MAX_PAYLOAD, 7);
        assert_eq!(end(&mut bytes.clone(), 0).unwrap(), MAX_PAYLOAD);
        bytes.push(7);
        assert!(matches!(end(&mut bytes, 0), Err(Error::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn round_trip(kind in 1_u8..0xf0, payload in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (bytes, r) = encoded(kind, &payload);
            prop_assert_eq!(bytes.len() % ALIGNMENT, 0);
            prop_assert_eq!(claimed_len(&bytes), Some(bytes.len()));
            let stored_len = bytes.len();
            let expected = RecordView { kind, flags: 0, payload: &payload, hash: r, replacement: 0, stored_len };
            prop_assert_eq!(parse(&bytes, &seed(), PLACE), Parsed::Record(expected));
        }

        #[test]
        fn any_bytes_are_no_record(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(!matches!(parse(&bytes, &seed(), PLACE), Parsed::Record(_)));
        }
    }
}
