//! The frame of every derived file: columns (`.cseg`), vectors (`.vseg`), words (`.wseg`).
//!
//! A derived file has a few named sections of bytes. It is written once, mapped for reading, never
//! changed, and rebuilt from the log if it is lost. The frame identifies the file, so that a damaged,
//! foreign or misplaced file is an error instead of a wrong answer.
//!
//! All integers are little-endian. Header, 64 bytes:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | magic `HOLS` |
//! | 4 | 4 | kind, four ASCII characters |
//! | 8 | 4 | frame version, 1 |
//! | 12 | 4 | version of the kind's content |
//! | 16 | 16 | database id |
//! | 32 | 8 | generation: identifies a file of this database, never used twice |
//! | 40 | 4 | place: which layer or chunk the file serves |
//! | 44 | 4 | section count, n |
//! | 48 | 8 | file length |
//! | 56 | 1 | compatible features |
//! | 57 | 1 | read-compatible features |
//! | 58 | 1 | incompatible features |
//! | 59 | 1 | zero |
//! | 60 | 4 | CRC32 over bytes 0..60 and the directory |
//!
//! Directory, 32 bytes for each of the n sections:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | tag, four ASCII characters, unique in the file |
//! | 4 | 4 | CRC32 over bytes 16..44 of the header, the tag, the offset, and the section |
//! | 8 | 8 | offset, a multiple of 64 |
//! | 16 | 8 | length |
//! | 24 | 8 | zero |
//!
//! The sections follow in the directory's order, each padded with zeros to a multiple of 64.
//!
//! A file may have a section `LOG `, 48 bytes, and then has the compatible feature 0. The section names the commit up
//! to which the file was derived: its content comes from the records of this log up to that commit. Column files have
//! none.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | position after the commit record |
//! | 8 | 8 | number of the commit |
//! | 16 | 32 | head of the log there |
//!
//! 1. A file gets its name when it is complete and synced.
//! 2. `open` checks header and directory in full. A section's bytes are checked at its first use, and
//!    the result is remembered. `verify` checks everything again.
//! 3. Sections start 64-byte aligned in memory, so readers may cast them in place. Therefore only
//!    little-endian machines are supported.
//! 4. A section's checksum covers the file's identity and the section's offset: bytes that a stray write
//!    copied from another file or place do not pass.

mod origin;
mod stream;
mod streaming_reader;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::features::{Access, Features, UPGRADE_OR_REBUILD};
use crate::log::Head;
use crate::vfs::{Mapping, Vfs, refuse_symlink};

pub use stream::SegmentFileStream;
pub use streaming_reader::StreamingReader;

/// The identity of a file. A reader refuses a file with another identity than it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The database's id.
    pub database: [u8; 16],
    /// The file's own number in its database; a number is never used for a second file.
    pub generation: u64,
    /// The layer or chunk the file serves.
    pub place: u32,
}

/// Collects the sections of a file, then writes it.
#[derive(Debug)]
pub struct SegmentFileWriter {
    kind: [u8; 4],
    version: u32,
    identity: FileIdentity,
    sections: Vec<([u8; 4], Box<dyn SectionContent>)>,
}

/// The values of a section, kept as the caller made them: a copy as bytes would double the memory of large ones.
trait SectionContent: std::fmt::Debug + Send + Sync {
    fn bytes(&self) -> &[u8];
}

impl<T: bytemuck::NoUninit + std::fmt::Debug + Send + Sync> SectionContent for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

impl SegmentFileWriter {
    /// Begins a file of `kind` with this version of its content.
    #[must_use]
    pub fn new(kind: [u8; 4], version: u32, identity: FileIdentity) -> Self {
        Self { kind, version, identity, sections: Vec::new() }
    }

    /// Adds a section.
    ///
    /// # Panics
    /// If the file has a section of this tag already.
    pub fn section(&mut self, tag: [u8; 4], bytes: Vec<u8>) {
        self.numbers(tag, bytes);
    }

    /// Adds a section of numbers, which are written as they are in memory.
    ///
    /// # Panics
    /// If the file has a section of this tag already.
    pub fn numbers<T>(&mut self, tag: [u8; 4], values: Vec<T>)
    where
        T: bytemuck::NoUninit + std::fmt::Debug + Send + Sync,
    {
        assert!(self.sections.iter().all(|(other, _)| *other != tag), "one section to a tag");
        self.sections.push((tag, Box::new(values)));
    }

    /// Sets the commit of the log up to which the content was derived.
    #[must_use]
    pub fn made_from(mut self, origin: &Head) -> Self {
        self.section(origin::TAG, origin::encode(origin).to_vec());
        self
    }

    /// The whole file in memory.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head();
        let lens = self.sections.iter().map(|(_, section)| section.bytes().len().next_multiple_of(ALIGNMENT));
        bytes.reserve_exact(lens.sum());
        for (_, section) in &self.sections {
            bytes.extend_from_slice(section.bytes());
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        bytes
    }

    /// Writes the file under a temporary name, syncs it, moves it to `path` and syncs the directory.
    /// Returns its length in bytes.
    ///
    /// # Errors
    /// [`Error::Io`]; `path` is then unchanged.
    pub fn write(self, vfs: &dyn Vfs, path: &Path) -> Result<u64> {
        let len = |section: &dyn SectionContent| Some(section.bytes().len() as u64);
        let lens: Vec<_> = self.sections.iter().map(|(tag, section)| (*tag, len(section.as_ref()))).collect();
        let mut file = SegmentFileStream::create(vfs, path, (self.kind, self.version), self.identity, None, &lens)?;
        for (number, (_, section)) in self.sections.into_iter().enumerate() {
            file.append(number, section.bytes())?;
        }
        file.finish()
    }

    /// Header and directory, padded to where the first section starts.
    fn head(&self) -> Vec<u8> {
        let mut offset = head_len(self.sections.len()) as u64;
        let mut placed = Vec::with_capacity(self.sections.len());
        for (tag, section) in &self.sections {
            let bytes = section.bytes();
            let mut crc = section_hasher(&self.identity, *tag, offset);
            crc.update(bytes);
            placed.push(Placed { tag: *tag, crc: crc.finalize(), offset, len: bytes.len() as u64 });
            offset += bytes.len().next_multiple_of(ALIGNMENT) as u64;
        }
        encode_head(self.kind, self.version, &self.identity, &placed, offset)
    }
}

/// A section's offset, length and checksum.
struct Placed {
    tag: [u8; 4],
    crc: u32,
    offset: u64,
    len: u64,
}

/// The offset of the first of `sections` sections.
fn head_len(sections: usize) -> usize {
    (HEADER_LEN + sections * ENTRY_LEN).next_multiple_of(ALIGNMENT)
}

/// Header and directory, padded to where the first section starts.
fn encode_head(kind: [u8; 4], version: u32, identity: &FileIdentity, sections: &[Placed], file_len: u64) -> Vec<u8> {
    let mut head = vec![0; HEADER_LEN + sections.len() * ENTRY_LEN];
    put(&mut head, HEADER_MAGIC, &MAGIC);
    put(&mut head, HEADER_KIND, &kind);
    put(&mut head, HEADER_FRAME_VERSION, &FRAME_VERSION.to_le_bytes());
    put(&mut head, HEADER_VERSION, &version.to_le_bytes());
    put(&mut head, HEADER_DATABASE, &identity.database);
    put(&mut head, HEADER_GENERATION, &identity.generation.to_le_bytes());
    put(&mut head, HEADER_PLACE, &identity.place.to_le_bytes());
    put(&mut head, HEADER_SECTION_COUNT, &(sections.len() as u32).to_le_bytes());
    for (entry, section) in head[HEADER_LEN..].chunks_exact_mut(ENTRY_LEN).zip(sections) {
        put(entry, ENTRY_TAG, &section.tag);
        put(entry, ENTRY_CRC, &section.crc.to_le_bytes());
        put(entry, ENTRY_OFFSET, &section.offset.to_le_bytes());
        put(entry, ENTRY_SECTION_LEN, &section.len.to_le_bytes());
    }
    put(&mut head, HEADER_FILE_LEN, &file_len.to_le_bytes());
    if sections.iter().any(|section| section.tag == origin::TAG) {
        put(&mut head, HEADER_COMPATIBLE, &[origin::FEATURE]);
    }
    let crc = head_crc(&head);
    put(&mut head, HEADER_CRC, &crc.to_le_bytes());
    head.resize(head_len(sections.len()), 0);
    head
}

/// A derived file, mapped, its header and directory checked.
#[derive(Debug)]
pub struct SegmentFile {
    path: PathBuf,
    content: Mapping,
    version: u32,
    identity: FileIdentity,
    features: Features,
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    tag: [u8; 4],
    crc: u32,
    offset: usize,
    len: usize,
    /// True if the bytes matched the checksum before.
    checked: AtomicBool,
}

impl SegmentFile {
    /// Maps the file at `path` and checks its header, directory, length and identity.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::DamagedFile`], [`Error::NewerFormat`], [`Error::WrongDatabase`] or
    /// [`Error::Io`].
    pub fn open(vfs: &dyn Vfs, path: &Path, kind: [u8; 4], identity: &FileIdentity) -> Result<Self> {
        let dir = path.parent().unwrap_or(Path::new(""));
        refuse_symlink(vfs, dir).map_err(Error::io(dir, "open"))?;
        let content = vfs.map(path).map_err(Error::derived_io(path, "map"))?;
        Self::from_mapping(path, content, kind, identity)
    }

    /// A file that is already in memory.
    ///
    /// # Errors
    /// As [`SegmentFile::open`].
    pub fn from_bytes(bytes: Vec<u8>, kind: [u8; 4], identity: &FileIdentity) -> Result<Self> {
        Self::from_mapping(Path::new("(memory)"), Mapping::from_bytes(&bytes), kind, identity)
    }

    fn from_mapping(path: &Path, content: Mapping, kind: [u8; 4], identity: &FileIdentity) -> Result<Self> {
        let damaged = |what: String| Err(Error::damaged_file(path, what));
        let Some((header, _)) = content.split_first_chunk::<HEADER_LEN>() else {
            return damaged(format!("{} bytes are too few for a header", content.len()));
        };
        if header[HEADER_MAGIC..HEADER_KIND] != MAGIC {
            return damaged("it does not begin with the magic of a derived file".into());
        }
        let section_count = u32_at(header, HEADER_SECTION_COUNT) as usize;
        let directory_end = section_count
            .checked_mul(ENTRY_LEN)
            .and_then(|directory| directory.checked_add(HEADER_LEN))
            .filter(|&end| end <= content.len());
        let Some(head) = directory_end.and_then(|end| content.get(..end)) else {
            return damaged(format!("its directory of {section_count} sections does not fit"));
        };
        let (expected, found) = (u32_at(header, HEADER_CRC), head_crc(head));
        if expected != found {
            return damaged(format!("the checksum of header and directory is {found:08x}, not {expected:08x}"));
        }
        let frame_version = u32_at(header, HEADER_FRAME_VERSION);
        if frame_version > FRAME_VERSION {
            return Err(newer(path, "frame", frame_version, FRAME_VERSION));
        }
        let features = Features {
            compatible: header[HEADER_COMPATIBLE].into(),
            read_compatible: header[HEADER_READ_COMPATIBLE].into(),
            incompatible: header[HEADER_INCOMPATIBLE].into(),
        };
        features.check_derived(path, Access::Read)?;
        check_identity(path, header, kind, identity)?;
        let file_len = u64_at(header, HEADER_FILE_LEN);
        if file_len != content.len() as u64 {
            return damaged(format!("it has {} bytes instead of {file_len}", content.len()));
        }
        let sections = read_directory(path, head, content.len())?;
        let version = u32_at(header, HEADER_VERSION);
        Ok(Self { path: path.to_owned(), content, version, identity: *identity, features, sections })
    }

    /// The bytes of the section of this tag, starting on a 64-byte boundary. The first call verifies
    /// their checksum.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] when there is no such section or its bytes do not match their checksum.
    pub fn section(&self, tag: [u8; 4]) -> Result<&[u8]> {
        self.optional_section(tag)?
            .ok_or_else(|| Error::damaged_file(&self.path, format!("it has no section {}", tag.escape_ascii())))
    }

    /// As [`SegmentFile::section`], for an optional section.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] when the bytes do not match their checksum.
    pub fn optional_section(&self, tag: [u8; 4]) -> Result<Option<&[u8]>> {
        self.place_of(tag).map(|place| self.section_at(place)).transpose()
    }

    /// The index in the directory of the section of this tag, for [`SegmentFile::section_at`].
    #[must_use]
    pub fn place_of(&self, tag: [u8; 4]) -> Option<usize> {
        self.sections.iter().position(|section| section.tag == tag)
    }

    /// As [`SegmentFile::section`], by index in the directory.
    ///
    /// # Errors
    /// As [`SegmentFile::section`].
    #[inline]
    pub fn section_at(&self, place: usize) -> Result<&[u8]> {
        let Some(section) = self.sections.get(place) else {
            return Err(Error::damaged_file(&self.path, format!("it has no section number {place}")));
        };
        // Relaxed is enough: the flag orders no other memory, since the bytes never change, unless the file was cut.
        if !section.checked.load(Ordering::Relaxed) || self.content.is_cut() {
            self.check_section(section)?;
            section.checked.store(true, Ordering::Relaxed);
        }
        Ok(self.bytes_of(section))
    }

    /// As [`SegmentFile::section`], without verifying the checksum, which is left to [`SegmentFile::verify`]: for a
    /// large section that is read in parts and whose content has checksums of its parts.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] when there is no such section.
    pub fn unchecked_section(&self, tag: [u8; 4]) -> Result<&[u8]> {
        let section = self.sections.iter().find(|section| section.tag == tag);
        section
            .map(|section| self.bytes_of(section))
            .ok_or_else(|| Error::damaged_file(&self.path, format!("it has no section {}", tag.escape_ascii())))
    }

    /// Asks the system to read these bytes of a section ahead, without waiting for them.
    pub fn will_need(&self, tag: [u8; 4], range: Range<usize>) {
        if let Some(section) = self.sections.iter().find(|section| section.tag == tag) {
            let at = |byte: usize| section.offset + byte.min(section.len);
            self.content.will_need(at(range.start)..at(range.end));
        }
    }

    /// Checks every byte again, regardless of earlier checks, and keeps none of them in memory.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] for the first fault.
    pub fn verify(&self) -> Result<()> {
        let mut end = HEADER_LEN + self.sections.len() * ENTRY_LEN;
        for section in &self.sections {
            self.check_padding(end, section.offset)?;
            self.check_section(section)?;
            end = section.offset + section.len;
        }
        self.check_padding(end, self.content.len())?;
        self.advise_dont_need();
        Ok(())
    }

    /// The commit of the log up to which the content was derived, if the file states it.
    ///
    /// # Errors
    /// [`Error::DamagedFile`].
    pub fn origin(&self) -> Result<Option<Head>> {
        let Some(bytes) = self.optional_section(origin::TAG)? else { return Ok(None) };
        let malformed = || Error::damaged_file(&self.path, format!("its section LOG has {} bytes", bytes.len()));
        origin::decode(bytes).map(Some).ok_or_else(malformed)
    }

    /// True if another program cut the file since it was opened: see [`Mapping::is_cut`].
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.content.is_cut()
    }

    /// The length of the file in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.content.len() as u64
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's identity.
    #[must_use]
    pub fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    /// The version of the kind's content.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Refuses content newer than `supported`.
    ///
    /// # Errors
    /// [`Error::NewerFormat`].
    pub fn check_version(&self, supported: u32) -> Result<()> {
        if self.version <= supported {
            return Ok(());
        }
        Err(newer(&self.path, "content", self.version, supported))
    }

    /// Refuses to write beside a file with features that this program can only read.
    ///
    /// # Errors
    /// [`Error::NewerFormat`].
    pub fn check_access(&self, access: Access) -> Result<()> {
        self.features.check_derived(&self.path, access)
    }

    fn bytes_of(&self, section: &Section) -> &[u8] {
        // In range: `read_directory` checked it, and a mapping never changes its length.
        &self.content[section.offset..section.offset + section.len]
    }

    fn check_section(&self, section: &Section) -> Result<()> {
        // Reads the section ahead, and not the bytes around it.
        self.content.will_need(section.offset..section.offset + section.len);
        let mut hasher = section_hasher(&self.identity, section.tag, section.offset as u64);
        let mut start = section.offset;
        for piece in self.bytes_of(section).chunks(streaming_reader::RESIDENT_LEN) {
            hasher.update(piece);
            let end = start + piece.len();
            if piece.len() == streaming_reader::RESIDENT_LEN {
                self.content.advise_dont_need(start..end);
            }
            start = end;
        }
        let found = hasher.finalize();
        if found == section.crc {
            return Ok(());
        }
        Err(Error::damaged_file(
            &self.path,
            format!(
                "the checksum of section {} at {} is {found:08x}, not {:08x}",
                section.tag.escape_ascii(),
                section.offset,
                section.crc
            ),
        ))
    }

    fn check_padding(&self, from: usize, to: usize) -> Result<()> {
        match self.content[from..to].iter().position(|&byte| byte != 0) {
            None => Ok(()),
            Some(at) => Err(Error::damaged_file(&self.path, format!("the padding at {} is not zero", from + at))),
        }
    }
}

/// The suffix of a file's name while it is being written.
const TEMPORARY_SUFFIX: &str = ".tmp";

/// True for the name of a file whose writing was not finished. Such files may be removed.
#[must_use]
pub fn is_temporary(name: &str) -> bool {
    name.ends_with(TEMPORARY_SUFFIX)
}

const MAGIC: [u8; 4] = *b"HOLS";
const FRAME_VERSION: u32 = 1;
const ALIGNMENT: usize = crate::vfs::MAPPING_ALIGNMENT;

const HEADER_MAGIC: usize = 0;
const HEADER_KIND: usize = HEADER_MAGIC + 4;
const HEADER_FRAME_VERSION: usize = HEADER_KIND + 4;
const HEADER_VERSION: usize = HEADER_FRAME_VERSION + 4;
const HEADER_DATABASE: usize = HEADER_VERSION + 4;
const HEADER_GENERATION: usize = HEADER_DATABASE + 16;
const HEADER_PLACE: usize = HEADER_GENERATION + 8;
const HEADER_SECTION_COUNT: usize = HEADER_PLACE + 4;
const HEADER_FILE_LEN: usize = HEADER_SECTION_COUNT + 4;
const HEADER_COMPATIBLE: usize = HEADER_FILE_LEN + 8;
const HEADER_READ_COMPATIBLE: usize = HEADER_COMPATIBLE + 1;
const HEADER_INCOMPATIBLE: usize = HEADER_READ_COMPATIBLE + 1;
const HEADER_ZERO: usize = HEADER_INCOMPATIBLE + 1;
const HEADER_CRC: usize = HEADER_ZERO + 1;
const HEADER_LEN: usize = HEADER_CRC + 4;
const _: () = assert!(HEADER_LEN == 64);

const ENTRY_TAG: usize = 0;
const ENTRY_CRC: usize = ENTRY_TAG + 4;
const ENTRY_OFFSET: usize = ENTRY_CRC + 4;
const ENTRY_SECTION_LEN: usize = ENTRY_OFFSET + 8;
const ENTRY_ZERO: usize = ENTRY_SECTION_LEN + 8;
const ENTRY_LEN: usize = ENTRY_ZERO + 8;
const _: () = assert!(ENTRY_LEN == 32);

const _: () = assert!(cfg!(target_endian = "little"), "derived files are read in place, as little-endian integers");

fn newer(path: &Path, of_what: &str, found: u32, supported: u32) -> Error {
    let what = format!("{of_what} version {found}, while {supported} is the newest known; {UPGRADE_OR_REBUILD}");
    Error::NewerFormat { path: path.to_owned(), what }
}

fn check_identity(path: &Path, header: &[u8; HEADER_LEN], kind: [u8; 4], identity: &FileIdentity) -> Result<()> {
    let found_kind = &header[HEADER_KIND..HEADER_FRAME_VERSION];
    if found_kind != kind {
        return Err(Error::damaged_file(
            path,
            format!("it is of kind {}, not {}", found_kind.escape_ascii(), kind.escape_ascii()),
        ));
    }
    if header[HEADER_DATABASE..HEADER_GENERATION] != identity.database {
        let mut found = [0; 16];
        found.copy_from_slice(&header[HEADER_DATABASE..HEADER_GENERATION]);
        return Err(Error::WrongDatabase { path: path.to_owned(), expected: identity.database, found });
    }
    let found = (u64_at(header, HEADER_GENERATION), u32_at(header, HEADER_PLACE));
    let expected = (identity.generation, identity.place);
    if found != expected {
        return Err(Error::damaged_file(
            path,
            format!(
                "it is generation {} for place {}, not generation {} for place {}",
                found.0, found.1, expected.0, expected.1
            ),
        ));
    }
    Ok(())
}

/// Reads the directory at the end of `head`. Its sections must ascend, be disjoint, and be inside the file.
fn read_directory(path: &Path, head: &[u8], file_len: usize) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut free_from = head.len();
    for entry in head[HEADER_LEN..].chunks_exact(ENTRY_LEN) {
        let tag = [entry[0], entry[1], entry[2], entry[3]];
        let (offset, len) = (u64_at(entry, ENTRY_OFFSET), u64_at(entry, ENTRY_SECTION_LEN));
        let place = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let placed = place.filter(|&(offset, len)| {
            let end = offset.checked_add(len);
            offset >= free_from && offset % ALIGNMENT == 0 && end.is_some_and(|end| end <= file_len)
        });
        let Some((offset, len)) = placed else {
            return Err(Error::damaged_file(
                path,
                format!("section {} at {offset} of {len} bytes is misplaced", tag.escape_ascii()),
            ));
        };
        if sections.iter().any(|section| section.tag == tag) {
            return Err(Error::damaged_file(path, format!("two sections have the tag {}", tag.escape_ascii())));
        }
        free_from = offset + len;
        let crc = u32_at(entry, ENTRY_CRC);
        sections.push(Section { tag, crc, offset, len, checked: AtomicBool::new(false) });
    }
    Ok(sections)
}

/// The checksum of header and directory, without the checksum's own field.
fn head_crc(head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..HEADER_CRC]);
    hasher.update(&head[HEADER_LEN..]);
    hasher.finalize()
}

/// The hasher for a section's checksum, with everything but the section's bytes.
fn section_hasher(identity: &FileIdentity, tag: [u8; 4], offset: u64) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&identity.database);
    hasher.update(&identity.generation.to_le_bytes());
    hasher.update(&identity.place.to_le_bytes());
    hasher.update(&tag);
    hasher.update(&offset.to_le_bytes());
    hasher
}

/// The name that a file has while it is written.
#[must_use]
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY_SUFFIX);
    name.into()
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// The integer at a constant offset of a header or entry, whose length was checked.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}
