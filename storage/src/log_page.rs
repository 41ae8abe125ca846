//! Log pages: the fixed-size units that hold records and seal them with a footer.
//!
//! Records follow one another from the start of a page and never straddle two pages. A record longer than the room of a
//! page takes a *run* of whole pages for itself. A full page, or the last page of a run, ends in a footer:
//!
//! | offset from the end | size | field |
//! |---|---|---|
//! | -96 | 4 | magic, the bytes `Hpag` |
//! | -92 | 4 | CRC32 of the fields below, seeded like a record's with the footer's own place |
//! | -88 | 4 | record count |
//! | -84 | 4 | length of the records in bytes, from the start of the page or run |
//! | -80 | 8 | number of records in the log before this page |
//! | -72 | 8 | zero |
//! | -64 | 32 | Merkle root of the records' `r` |
//! | -32 | 32 | chain after this page |
//!
//! 1. All bytes between the last record and the footer are zero.
//! 2. A page without a footer is the open one, and nothing was written after it.
//! 3. In every segment, positions are multiples of the page size exactly where pages begin.

use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::record::{CrcSeed, Place};

/// The smallest log page.
pub const MIN_PAGE_SIZE: u32 = 4 << 10;
/// The largest log page.
pub const MAX_PAGE_SIZE: u32 = 1 << 20;

pub(crate) const FOOTER_LEN: usize = 96;

const MAGIC_AT: usize = 0;
const CRC_AT: usize = MAGIC_AT + 4;
const COUNT_AT: usize = CRC_AT + 4;
const USED_AT: usize = COUNT_AT + 4;
const FIRST_RECORD_AT: usize = USED_AT + 4;
const RESERVED_AT: usize = FIRST_RECORD_AT + 8;
const ROOT_AT: usize = RESERVED_AT + 8;
const CHAIN_AT: usize = ROOT_AT + 32;

const MAGIC: [u8; 4] = *b"Hpag";

const _: () = assert!(CHAIN_AT + 32 == FOOTER_LEN);

/// The size of a database's log pages, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageSize(u32);

impl PageSize {
    pub(crate) fn new(bytes: u32) -> Result<Self> {
        if !bytes.is_power_of_two() || !(MIN_PAGE_SIZE..=MAX_PAGE_SIZE).contains(&bytes) {
            let allowed = "a power of two from 4096 to 1048576";
            return Err(Error::BadOption { name: "page_size", value: bytes.into(), allowed });
        }
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(self) -> u64 {
        self.0.into()
    }

    pub(crate) fn len(self) -> usize {
        self.0 as usize
    }

    /// The bytes of a page that records may use.
    pub(crate) fn capacity(self) -> usize {
        self.len() - FOOTER_LEN
    }

    /// The number of pages of a run for a record of this stored length.
    pub(crate) fn run_pages(self, stored_len: usize) -> usize {
        (stored_len + FOOTER_LEN).div_ceil(self.len())
    }

    /// The offset of a position in its page.
    pub(crate) fn within(self, position: u64) -> usize {
        (position & (self.bytes() - 1)) as usize
    }

    /// The start of the page that contains a position.
    pub(crate) fn start_of(self, position: u64) -> u64 {
        position & !(self.bytes() - 1)
    }
}

/// The fields of a footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) record_count: u32,
    pub(crate) used_len: u32,
    pub(crate) first_record: u64,
    pub(crate) root: Hash,
    pub(crate) chain: Hash,
}

/// The parse of bytes where a footer may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedFooter {
    /// Nothing was written here: the page is open.
    Blank,
    /// A footer whose CRC matches.
    Footer(Footer),
    /// Anything else.
    Fault(String),
}

impl Footer {
    pub(crate) fn encode(&self, seed: &CrcSeed, place: Place) -> [u8; FOOTER_LEN] {
        let mut bytes = [0; FOOTER_LEN];
        bytes[MAGIC_AT..CRC_AT].copy_from_slice(&MAGIC);
        bytes[COUNT_AT..USED_AT].copy_from_slice(&self.record_count.to_le_bytes());
        bytes[USED_AT..FIRST_RECORD_AT].copy_from_slice(&self.used_len.to_le_bytes());
        bytes[FIRST_RECORD_AT..RESERVED_AT].copy_from_slice(&self.first_record.to_le_bytes());
        bytes[ROOT_AT..CHAIN_AT].copy_from_slice(&self.root);
        bytes[CHAIN_AT..].copy_from_slice(&self.chain);
        let crc = crc(&bytes, seed, place);
        bytes[CRC_AT..COUNT_AT].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; FOOTER_LEN], seed: &CrcSeed, place: Place) -> ParsedFooter {
        if bytes.iter().all(|&byte| byte == 0) {
            return ParsedFooter::Blank;
        }
        if bytes[MAGIC_AT..CRC_AT] != MAGIC {
            return ParsedFooter::Fault("these bytes are not a page footer".into());
        }
        let stored = u32::from_le_bytes(field(bytes, CRC_AT));
        let computed = crc(bytes, seed, place);
        if stored != computed {
            return ParsedFooter::Fault(format!("footer checksum is {computed:08x}, stored is {stored:08x}"));
        }
        if bytes[RESERVED_AT..ROOT_AT] != [0; 8] {
            return ParsedFooter::Fault("a reserved field of the footer is not zero".into());
        }
        ParsedFooter::Footer(Self {
            record_count: u32::from_le_bytes(field(bytes, COUNT_AT)),
            used_len: u32::from_le_bytes(field(bytes, USED_AT)),
            first_record: u64::from_le_bytes(field(bytes, FIRST_RECORD_AT)),
            root: field(bytes, ROOT_AT),
            chain: field(bytes, CHAIN_AT),
        })
    }
}

fn crc(bytes: &[u8; FOOTER_LEN], seed: &CrcSeed, place: Place) -> u32 {
    let mut hasher = seed.at(place);
    hasher.update(&bytes[COUNT_AT..]);
    hasher.finalize()
}

/// The `N` bytes at a constant offset of a block of constant length.
pub(crate) fn field<const N: usize, const LEN: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_doc;

    const PLACE: Place = Place { segment: 1, offset: 8096 };

    fn footer() -> Footer {
        Footer { record_count: 3, used_len: 144, first_record: 9, root: [1; 32], chain: [2; 32] }
    }

    #[test]
    fn the_document_says_the_same() {
        let offsets =
            [MAGIC_AT, CRC_AT, COUNT_AT, USED_AT, FIRST_RECORD_AT, RESERVED_AT, ROOT_AT, CHAIN_AT, FOOTER_LEN];
        assert_eq!(format_doc::between(&offsets), format_doc::fields("Page footer"));
    }

    #[test]
    fn the_bytes_are_fixed() {
        let seed = CrcSeed::new(&[7; 16]);
        let rest =
            [[3, 0, 0, 0, 144, 0, 0, 0].as_slice(), &[9, 0, 0, 0, 0, 0, 0, 0], &[0; 8], &[1; 32], &[2; 32]].concat();
        let mut crc = seed.at(PLACE);
        crc.update(&rest);
        let expected = [b"Hpag".as_slice(), &crc.finalize().to_le_bytes(), &rest].concat();
        let bytes = footer().encode(&seed, PLACE);
        assert_eq!(bytes.as_slice(), expected);
        assert_eq!(Footer::parse(&bytes, &seed, PLACE), ParsedFooter::Footer(footer()));
    }

    #[test]
    fn every_flip_is_noticed() {
        let seed = CrcSeed::new(&[7; 16]);
        let bytes = footer().encode(&seed, PLACE);
        for at in 0..FOOTER_LEN * 8 {
            let mut flipped = bytes;
            flipped[at / 8] ^= 1 << (at % 8);
            assert!(matches!(Footer::parse(&flipped, &seed, PLACE), ParsedFooter::Fault(_)), "bit {at}");
        }
        let elsewhere = Place { offset: 4000, ..PLACE };
        assert!(matches!(Footer::parse(&bytes, &seed, elsewhere), ParsedFooter::Fault(_)));
        assert_eq!(Footer::parse(&[0; FOOTER_LEN], &seed, PLACE), ParsedFooter::Blank);
    }

    #[test]
    fn sizes_are_powers_of_two_within_bounds() {
        for good in [4096, 32768, 1 << 20] {
            assert!(PageSize::new(good).is_ok());
        }
        for bad in [0, 1, 2048, 4097, 12288, 1 << 21, u32::MAX] {
            assert!(matches!(PageSize::new(bad), Err(Error::BadOption { .. })), "{bad}");
        }
    }

    #[test]
    fn runs_leave_room_for_their_footer() {
        let size = PageSize::new(4096).unwrap();
        assert_eq!(size.capacity(), 4000);
        assert_eq!(
            (size.run_pages(4000), size.run_pages(4008), size.run_pages(8096), size.run_pages(8104)),
            (1, 2, 2, 3)
        );
        assert_eq!((size.within(8200), size.start_of(8200)), (8, 8192));
    }
}
