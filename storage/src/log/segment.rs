//! One file of the log, `0000000001.log` and so on.
//!
//! A segment has its final length from the beginning: it is filled with zeros, synced and renamed into place before it
//! is used ([`super::prepare`]). Its first log page is the header page; records start on the second.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic, the bytes `HOLO-LOG` |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | version of the program that wrote it: major << 16, minor << 8, patch |
//! | 16 | 4 | compatible features: a program may ignore those it does not know |
//! | 20 | 4 | read-compatible features: a program that does not know all of them may only read |
//! | 24 | 4 | incompatible features: a program that does not know all of them must not open the file |
//! | 28 | 4 | log page size in bytes |
//! | 32 | 16 | database id |
//! | 48 | 8 | segment number, from 1 |
//! | 56 | 8 | first position: the log position of byte 0 of this file |
//! | 64 | 8 | length of the file in bytes |
//! | 72 | 8 | previous end: the end of the pages of the previous segment; 0 in the first |
//! | 80 | 8 | number of records before this segment |
//! | 88 | 8 | number of the last commit before this segment |
//! | 96 | 8 | clock of that commit; the smallest there is in the first segment |
//! | 104 | 32 | previous segment's closing chain; in the first the chain of the database id |
//! | 136 | 4 | CRC32 of the fields above |
//! | 140 | 4 | zero |
//!
//! A copy of these 144 bytes is at offset 2048, so that damage to the header loses neither the database's id nor the
//! page size, without which nothing of a log of one segment could be read. The rest of the page is zero. Magic,
//! versions, features and CRC keep their places in every version of the format.
//!
//! 1. Positions count header pages too: a byte's position is its segment's first position plus its offset, and the
//!    first position of a segment is the end of the file before it.
//! 2. A header is written only after all of the previous segment was synced: a valid one proves that.
//! 3. A file whose header and copy are zeros was prepared and never used.
//! 4. The copy is read where the header is not valid. Verification reports either if it is damaged, and recovery writes
//!    it again from the other.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::open_files::OpenFiles;
use crate::chain::{self, Hash};
use crate::error::{Damage, Error, Result};
use crate::features::Features;
use crate::log::Lsn;
use crate::log_page::{PageSize, field};
use crate::vfs::{LiveMap, VfsFile};

const MAGIC_AT: usize = 0;
const VERSION_AT: usize = MAGIC_AT + 8;
const WRITTEN_BY_AT: usize = VERSION_AT + 4;
const COMPATIBLE_AT: usize = WRITTEN_BY_AT + 4;
const READ_COMPATIBLE_AT: usize = COMPATIBLE_AT + 4;
const INCOMPATIBLE_AT: usize = READ_COMPATIBLE_AT + 4;
const PAGE_SIZE_AT: usize = INCOMPATIBLE_AT + 4;
const DATABASE_AT: usize = PAGE_SIZE_AT + 4;
const NUMBER_AT: usize = DATABASE_AT + 16;
const FIRST_AT: usize = NUMBER_AT + 8;
const LENGTH_AT: usize = FIRST_AT + 8;
const PREVIOUS_END_AT: usize = LENGTH_AT + 8;
const RECORDS_AT: usize = PREVIOUS_END_AT + 8;
const COMMIT_AT: usize = RECORDS_AT + 8;
const TIME_AT: usize = COMMIT_AT + 8;
const CHAIN_AT: usize = TIME_AT + 8;
const CRC_AT: usize = CHAIN_AT + 32;
const RESERVED_AT: usize = CRC_AT + 4;
pub(crate) const HEADER_LEN: usize = RESERVED_AT + 4;

const _: () = assert!(HEADER_LEN == 144);

/// The place of the copy of the header, in another sector of the header page.
pub(crate) const COPY_AT: usize = 2048;
const COPY_END: usize = COPY_AT + HEADER_LEN;

const MAGIC: [u8; 8] = *b"HOLO-LOG";
const VERSION: u32 = 1;
/// The greatest length of a segment. With [`MAX_FIRST`] it keeps sums of positions and lengths from overflowing.
const MAX_SEGMENT_LEN: u64 = 1 << 40;
const MAX_FIRST: u64 = 1 << 62;

/// The fields of a segment's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) features: Features,
    pub(crate) page_size: u32,
    pub(crate) database: [u8; 16],
    pub(crate) number: u64,
    pub(crate) first: u64,
    pub(crate) len: u64,
    pub(crate) previous_end: u64,
    pub(crate) records: u64,
    pub(crate) commit: u64,
    pub(crate) time_us: i64,
    pub(crate) chain: Hash,
}

/// The parse of the start of a segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderState {
    /// Zeros: prepared, never used.
    Blank,
    /// A header whose CRC matches.
    Valid(SegmentHeader),
    /// A header this program must not interpret.
    Newer(String),
    /// Another magic.
    WrongMagic(Vec<u8>),
    /// Anything else.
    Fault(String),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[MAGIC_AT..VERSION_AT].copy_from_slice(&MAGIC);
        bytes[VERSION_AT..WRITTEN_BY_AT].copy_from_slice(&VERSION.to_le_bytes());
        bytes[WRITTEN_BY_AT..COMPATIBLE_AT].copy_from_slice(&written_by().to_le_bytes());
        bytes[COMPATIBLE_AT..READ_COMPATIBLE_AT].copy_from_slice(&self.features.compatible.to_le_bytes());
        bytes[READ_COMPATIBLE_AT..INCOMPATIBLE_AT].copy_from_slice(&self.features.read_compatible.to_le_bytes());
        bytes[INCOMPATIBLE_AT..PAGE_SIZE_AT].copy_from_slice(&self.features.incompatible.to_le_bytes());
        bytes[PAGE_SIZE_AT..DATABASE_AT].copy_from_slice(&self.page_size.to_le_bytes());
        bytes[DATABASE_AT..NUMBER_AT].copy_from_slice(&self.database);
        bytes[NUMBER_AT..FIRST_AT].copy_from_slice(&self.number.to_le_bytes());
        bytes[FIRST_AT..LENGTH_AT].copy_from_slice(&self.first.to_le_bytes());
        bytes[LENGTH_AT..PREVIOUS_END_AT].copy_from_slice(&self.len.to_le_bytes());
        bytes[PREVIOUS_END_AT..RECORDS_AT].copy_from_slice(&self.previous_end.to_le_bytes());
        bytes[RECORDS_AT..COMMIT_AT].copy_from_slice(&self.records.to_le_bytes());
        bytes[COMMIT_AT..TIME_AT].copy_from_slice(&self.commit.to_le_bytes());
        bytes[TIME_AT..CHAIN_AT].copy_from_slice(&self.time_us.to_le_bytes());
        bytes[CHAIN_AT..CRC_AT].copy_from_slice(&self.chain);
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..RESERVED_AT].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header and its copy: the beginning of the header page, whose rest is zero.
    pub(crate) fn encode_twice(&self) -> Vec<u8> {
        let header = self.encode();
        let mut bytes = vec![0; COPY_END];
        bytes[..HEADER_LEN].copy_from_slice(&header);
        bytes[COPY_AT..].copy_from_slice(&header);
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> HeaderState {
        if bytes.iter().all(|&byte| byte == 0) {
            return HeaderState::Blank;
        }
        if bytes[MAGIC_AT..VERSION_AT] != MAGIC {
            return HeaderState::WrongMagic(bytes[MAGIC_AT..VERSION_AT].to_vec());
        }
        let u32_at = |at| u32::from_le_bytes(field(bytes, at));
        let u64_at = |at| u64::from_le_bytes(field(bytes, at));
        let (stored, computed) = (u32_at(CRC_AT), crc32fast::hash(&bytes[..CRC_AT]));
        if stored != computed {
            return HeaderState::Fault(format!("header checksum is {computed:08x}, stored is {stored:08x}"));
        }
        let version = u32_at(VERSION_AT);
        if version != VERSION {
            let what = format!("log format {version}, while {VERSION} is the newest known; upgrade to open it");
            return HeaderState::Newer(what);
        }
        let features = Features {
            compatible: u32_at(COMPATIBLE_AT),
            read_compatible: u32_at(READ_COMPATIBLE_AT),
            incompatible: u32_at(INCOMPATIBLE_AT),
        };
        if let Some(what) = features.unreadable() {
            return HeaderState::Newer(format!("{what}; upgrade to open it"));
        }
        if u32_at(RESERVED_AT) != 0 {
            return HeaderState::Fault("a reserved field of the header is not zero".into());
        }
        let header = Self {
            features,
            page_size: u32_at(PAGE_SIZE_AT),
            database: field(bytes, DATABASE_AT),
            number: u64_at(NUMBER_AT),
            first: u64_at(FIRST_AT),
            len: u64_at(LENGTH_AT),
            previous_end: u64_at(PREVIOUS_END_AT),
            records: u64_at(RECORDS_AT),
            commit: u64_at(COMMIT_AT),
            time_us: i64::from_le_bytes(field(bytes, TIME_AT)),
            chain: field(bytes, CHAIN_AT),
        };
        match header.check() {
            Ok(()) => HeaderState::Valid(header),
            Err(what) => HeaderState::Fault(what),
        }
    }

    fn check(&self) -> Result<(), String> {
        let page = PageSize::new(self.page_size).map_err(|error| error.to_string())?.bytes();
        if !self.len.is_multiple_of(page) || self.len / page < 2 {
            return Err(format!("a segment of {} bytes is not made of log pages of {page}", self.len));
        }
        if self.len > MAX_SEGMENT_LEN || self.first > MAX_FIRST || !self.first.is_multiple_of(page) {
            return Err(format!("a segment of {} bytes cannot start at position {}", self.len, self.first));
        }
        let before = (self.previous_end, self.records, self.commit, self.time_us, self.chain);
        if self.number == 1 && before != (0, 0, 0, i64::MIN, chain::genesis(&self.database)) {
            return Err("the first segment cannot have anything before it".into());
        }
        Ok(())
    }
}

fn written_by() -> u32 {
    let number = |text: &str| text.parse().unwrap_or(0);
    let major = number(env!("CARGO_PKG_VERSION_MAJOR"));
    let (minor, patch) = (number(env!("CARGO_PKG_VERSION_MINOR")), number(env!("CARGO_PKG_VERSION_PATCH")));
    u32::from_be_bytes([0, major, minor, patch])
}

/// The name of a segment's file.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:010}.log")
}

/// The number in a segment file's name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    // The canonical form: ten digits, or more without a leading zero.
    let is_own = digits.len() == 10 || (digits.len() > 10 && !digits.starts_with('0'));
    let number = digits.parse().ok().filter(|&number| number > 0)?;
    (is_own && digits.bytes().all(|digit| digit.is_ascii_digit())).then_some(number)
}

/// True for the name of a segment file that is being prepared.
pub(crate) fn is_unfinished_name(name: &str) -> bool {
    name.strip_suffix(".tmp").is_some_and(|name| number_of(name).is_some())
}

/// True for a name of a file in the log's directory: a segment, the floor, a quarantine, or one of them while it is
/// being written.
#[must_use]
pub fn is_log_file_name(name: &str) -> bool {
    let whole = name.strip_suffix(".tmp").unwrap_or(name);
    number_of(whole).is_some() || whole == super::floor::NAME || whole == "quarantine.bin" || is_quarantine_name(name)
}

/// True for quarantine-POSITION-CRC.bin, the name that recovery gives to an unsynced tail.
#[must_use]
pub fn is_quarantine_name(name: &str) -> bool {
    let parts = name.strip_prefix("quarantine-").and_then(|rest| rest.strip_suffix(".bin")?.split_once('-'));
    parts.is_some_and(|(position, crc)| {
        position.len() == 20
            && position.bytes().all(|digit| digit.is_ascii_digit())
            && crc.len() == 8
            && crc.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// A segment of an open log.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) first: u64,
    /// The length that its header states; without a valid header, the length of the file.
    pub(crate) len: u64,
    /// The length of the file when it was opened.
    pub(crate) file_len: u64,
    pub(crate) header: HeaderState,
    pub(crate) path: PathBuf,
    files: Arc<OpenFiles>,
    /// The map of the file, once bytes were read through it.
    live: OnceLock<Arc<dyn LiveMap>>,
}

impl Segment {
    /// A segment in a prepared file, about to be used with this header.
    pub(crate) fn begin(header: SegmentHeader, path: PathBuf, files: Arc<OpenFiles>) -> Self {
        Self {
            number: header.number,
            first: header.first,
            len: header.len,
            file_len: header.len,
            header: HeaderState::Valid(header),
            path,
            files,
            live: OnceLock::new(),
        }
    }

    /// Reads the header of the file with this number. [`place_in_row`] sets its position.
    pub(crate) fn load(files: &Arc<OpenFiles>, dir: &Path, number: u64) -> Result<Self> {
        let path = dir.join(file_name(number));
        let file = files.get(number, &path)?;
        let (header, file_len) = read_header(&*file, &path)?;
        let (files, live) = (Arc::clone(files), OnceLock::new());
        Ok(Self { number, first: 0, len: file_len, file_len, header, path, files, live })
    }

    /// Loads the segments with these numbers, ascending. The last of several may be gone since their names were read: a
    /// writer that closes removes the segments that it prepared and did not use.
    pub(crate) fn load_row(files: &Arc<OpenFiles>, dir: &Path, numbers: &[u64]) -> Result<Vec<Self>> {
        let is_gone =
            |error: &Error| matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
        let mut row = Vec::with_capacity(numbers.len());
        for (at, &number) in numbers.iter().enumerate() {
            match Self::load(files, dir, number) {
                Ok(segment) => row.push(segment),
                Err(error) if at > 0 && is_gone(&error) => {
                    let later = numbers.get(at + 1..).unwrap_or_default();
                    let mut later = later.iter().map(|&number| Self::load(files, dir, number));
                    let are_gone = later.all(|loaded| loaded.is_err_and(|error| is_gone(&error)));
                    return if are_gone { Ok(row) } else { Err(error) };
                }
                Err(error) => return Err(error),
            }
        }
        Ok(row)
    }

    /// The position after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.len)
    }

    /// The header, if it is valid.
    pub(crate) fn valid_header(&self) -> Option<&SegmentHeader> {
        match &self.header {
            HeaderState::Valid(header) => Some(header),
            _ => None,
        }
    }

    /// The file.
    pub(crate) fn file(&self) -> Result<Arc<dyn VfsFile>> {
        self.files.get(self.number, &self.path)
    }

    /// A map of the file.
    pub(crate) fn live(&self) -> Result<&dyn LiveMap> {
        if self.live.get().is_none() {
            let map = self.files.vfs().map_live(&self.path).map_err(Error::io(&self.path, "map"))?;
            // Another thread may have set one meanwhile, which serves as well.
            let _ = self.live.set(map);
        }
        let missing = || Error::io(&self.path, "map")(io::ErrorKind::Other.into());
        self.live.get().map(AsRef::as_ref).ok_or_else(missing)
    }

    /// The cache of open files to which it belongs.
    pub(crate) fn files(&self) -> &Arc<OpenFiles> {
        &self.files
    }

    /// Reads at an offset in the file. `UnexpectedEof` if the file is too short.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let end = offset.saturating_add(buf.len() as u64);
        if end > self.file_len {
            return Err(Error::Io {
                path: self.path.clone(),
                action: "read",
                source: io::Error::new(io::ErrorKind::UnexpectedEof, format!("the file ends before byte {end}")),
            });
        }
        self.file()?.read_at(buf, offset).map_err(Error::io(&self.path, "read"))
    }

    /// The offsets of the header and of its copy, as far as they are not what this segment was opened by. None in a
    /// segment without a valid header.
    pub(crate) fn spoiled_headers(&self) -> Result<Vec<u64>> {
        let mut spoiled = Vec::new();
        if self.valid_header().is_some() {
            let file = self.file()?;
            for at in [0, COPY_AT as u64] {
                // A file that ends before is cut, which is another fault.
                if self.file_len >= at + HEADER_LEN as u64 && parse_at(&*file, &self.path, at)? != self.header {
                    spoiled.push(at);
                }
            }
        }
        Ok(spoiled)
    }

    /// Damage at a position in this segment.
    pub(crate) fn damage(&self, position: u64, page: PageSize, what: impl Into<String>) -> Damage {
        let offset = position.saturating_sub(self.first);
        Damage {
            file: self.path.clone(),
            page: offset / page.bytes(),
            offset,
            position: Lsn(position),
            what: what.into(),
        }
    }
}

/// Reads the header of a segment file, or its copy where only that is valid, and the length of the file.
pub(crate) fn read_header(file: &dyn VfsFile, path: &Path) -> Result<(HeaderState, u64)> {
    let file_len = file.len().map_err(Error::io(path, "measure"))?;
    if file_len < HEADER_LEN as u64 {
        let what = format!("the file has only {file_len} bytes, less than a header");
        return Ok((HeaderState::Fault(what), file_len));
    }
    let header = parse_at(file, path, 0)?;
    let is_certain = matches!(header, HeaderState::Valid(_) | HeaderState::Newer(_));
    if !is_certain && file_len >= COPY_END as u64 {
        let copy = parse_at(file, path, COPY_AT as u64)?;
        if matches!(copy, HeaderState::Valid(_)) {
            return Ok((copy, file_len));
        }
    }
    Ok((header, file_len))
}

/// Reads the header at an offset, or the copy there.
fn parse_at(file: &dyn VfsFile, path: &Path, offset: u64) -> Result<HeaderState> {
    let mut bytes = [0; HEADER_LEN];
    file.read_at(&mut bytes, offset).map_err(Error::io(path, "read"))?;
    Ok(SegmentHeader::parse(&bytes))
}

/// Sets the positions of all segments; the first one begins at `first`. A valid header states them. After an unreadable
/// one the next valid header counts, and without that the length of the file in whole pages.
pub(crate) fn place_in_row(segments: &mut [Segment], first: u64) {
    let page_size = segments.iter().find_map(|segment| segment.valid_header()).map_or(1, |header| header.page_size);
    let stated: Vec<Option<u64>> = segments
        .iter()
        .map(|segment| {
            segment.valid_header().filter(|header| (header.number, header.page_size) == (segment.number, page_size))
        })
        .map(|header| header.map(|header| header.first))
        .collect();
    let mut expected = first;
    for (at, segment) in segments.iter_mut().enumerate() {
        segment.first = expected;
        let certain = match (&segment.header, stated.get(at).copied().flatten()) {
            (HeaderState::Valid(header), Some(first)) if first == expected => {
                segment.len = header.len;
                true
            }
            (HeaderState::Valid(header), _) => {
                segment.header = HeaderState::Fault(format!(
                    "the header is of segment {} at position {}, expected segment {} at {expected}",
                    header.number, header.first, segment.number
                ));
                false
            }
            _ => false,
        };
        let next = stated.get(at + 1).copied().flatten().filter(|&next| next >= segment.first);
        if !certain {
            let whole_pages = segment.file_len.checked_next_multiple_of(page_size.into());
            segment.len = next.map_or(whole_pages.unwrap_or(0), |next| next - segment.first).min(MAX_SEGMENT_LEN);
        }
        expected = segment.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_doc;

    fn header() -> SegmentHeader {
        SegmentHeader {
            features: Features::default(),
            page_size: 4096,
            database: [7; 16],
            number: 2,
            first: 0x4_0000,
            len: 0x8_0000,
            previous_end: 0x3_f000,
            records: 10,
            commit: 4,
            time_us: -1,
            chain: [9; 32],
        }
    }

    fn with_crc(mut bytes: [u8; HEADER_LEN]) -> [u8; HEADER_LEN] {
        let crc = crc32fast::hash(&bytes[..136]);
        bytes[136..140].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    #[test]
    fn only_the_last_of_several_segments_may_be_gone() {
        let sim = crate::vfs::SimVfs::new();
        let disk: Arc<dyn crate::vfs::Vfs> = Arc::new(sim.clone());
        let files = || Arc::new(OpenFiles::new(Arc::clone(&disk), crate::vfs::OpenMode::Read));
        for number in [1, 2, 4] {
            sim.replace(&Path::new("/log").join(file_name(number)), &[0; 8192]);
        }
        let row = |numbers: &[u64]| Segment::load_row(&files(), Path::new("/log"), numbers).map(|row| row.len());
        assert_eq!(row(&[1, 2]).unwrap(), 2);
        assert_eq!(row(&[1, 2, 3]).unwrap(), 2);
        assert_eq!(row(&[1, 2, 5, 6]).unwrap(), 2);
        assert!(row(&[1, 3, 4]).is_err(), "there is one after it");
        assert!(row(&[3]).is_err(), "none is left");
    }

    #[test]
    fn the_document_says_the_same() {
        let start = [
            MAGIC_AT,
            VERSION_AT,
            WRITTEN_BY_AT,
            COMPATIBLE_AT,
            READ_COMPATIBLE_AT,
            INCOMPATIBLE_AT,
            PAGE_SIZE_AT,
            DATABASE_AT,
        ];
        let rest = [
            NUMBER_AT,
            FIRST_AT,
            LENGTH_AT,
            PREVIOUS_END_AT,
            RECORDS_AT,
            COMMIT_AT,
            TIME_AT,
            CHAIN_AT,
            CRC_AT,
            RESERVED_AT,
            HEADER_LEN,
        ];
        let offsets = [start.as_slice(), &rest].concat();
        assert_eq!(format_doc::between(&offsets), format_doc::fields("Segment header"));
    }

    #[test]
    fn the_bytes_are_fixed() {
        let fields = [
            b"HOLO-LOG".as_slice(),
            &[1, 0, 0, 0],
            &written_by().to_le_bytes(),
            &[0; 12],
            &[0, 16, 0, 0],
            &[7; 16],
            &[2, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 4, 0, 0, 0, 0, 0],
            &[0, 0, 8, 0, 0, 0, 0, 0],
            &[0, 0xf0, 3, 0, 0, 0, 0, 0],
            &[10, 0, 0, 0, 0, 0, 0, 0],
            &[4, 0, 0, 0, 0, 0, 0, 0],
            &[0xff; 8],
            &[9; 32],
        ]
        .concat();
        let expected = [fields.as_slice(), &crc32fast::hash(&fields).to_le_bytes(), &[0; 4]].concat();
        assert_eq!(header().encode().as_slice(), expected);
        assert_eq!(SegmentHeader::parse(&header().encode()), HeaderState::Valid(header()));
    }

    #[test]
    fn every_flip_is_noticed() {
        let bytes = header().encode();
        for at in 0..HEADER_LEN * 8 {
            let mut flipped = bytes;
            flipped[at / 8] ^= 1 << (at % 8);
            let state = SegmentHeader::parse(&flipped);
            assert!(matches!(state, HeaderState::Fault(_) | HeaderState::WrongMagic(_)), "bit {at}: {state:?}");
        }
        assert_eq!(SegmentHeader::parse(&[0; HEADER_LEN]), HeaderState::Blank);
    }

    #[test]
    fn features_decide_who_may_open() {
        let mut bytes = header().encode();
        bytes[16] = 1;
        assert!(matches!(SegmentHeader::parse(&with_crc(bytes)), HeaderState::Valid(_)), "compatible");
        let mut bytes = header().encode();
        bytes[20] = 4;
        let HeaderState::Valid(parsed) = SegmentHeader::parse(&with_crc(bytes)) else { panic!("refused") };
        assert_eq!(parsed.features.read_compatible, 4);
        let mut bytes = header().encode();
        bytes[24] = 1;
        assert!(matches!(SegmentHeader::parse(&with_crc(bytes)), HeaderState::Newer(_)), "incompatible");
        let mut bytes = header().encode();
        bytes[8] = 2;
        assert!(matches!(SegmentHeader::parse(&with_crc(bytes)), HeaderState::Newer(_)), "version");
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for (page_size, first, len) in
            [(4095, 0, 8192), (4096, 1, 8192), (4096, 0, 8191), (4096, 0, 4096), (4096, !0xfff, 8192)]
        {
            let header = SegmentHeader { page_size, first, len, ..header() };
            assert!(matches!(SegmentHeader::parse(&header.encode()), HeaderState::Fault(_)), "{header:?}");
        }
    }

    #[test]
    fn names_are_exact() {
        assert_eq!(file_name(1), "0000000001.log");
        for number in [42, 9_999_999_999, 10_000_000_000, u64::MAX] {
            assert_eq!(number_of(&file_name(number)), Some(number));
        }
        for other in
            ["42.log", "00000000042.log", "0000000000.log", "0000000042.log.tmp", "+000000042.log", "quarantine-1.bin"]
        {
            assert_eq!(number_of(other), None, "{other}");
        }
        assert!(is_unfinished_name("0000000042.log.tmp"));
        for other in ["0000000042.log", "notes.log.tmp", "0000000042.tmp", ".log.tmp"] {
            assert!(!is_unfinished_name(other), "{other}");
        }
    }

    #[test]
    fn what_is_just_possible_is_taken() {
        for (first, len, possible) in [
            (4096, 2 * 4096, true),
            (MAX_FIRST, MAX_SEGMENT_LEN, true),
            (MAX_FIRST + 4096, 2 * 4096, false),
            (4096, MAX_SEGMENT_LEN + 4096, false),
        ] {
            let header = SegmentHeader { first, len, ..header() };
            let parsed = SegmentHeader::parse(&header.encode());
            assert_eq!(parsed == HeaderState::Valid(header), possible, "{len} bytes at {first}");
        }
    }
}
