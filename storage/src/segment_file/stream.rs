//! Writing a derived file in pieces: its sections grow in parallel, each at its own offset, through a small buffer.
//!
//! A section's offset depends on the lengths of the sections before it. Those whose lengths are given in advance may
//! grow side by side; what follows a section of unknown length has its place when that one has ended.
//! Checksums are computed as bytes arrive; the head is written at the end. The bytes equal those that
//! [`SegmentFileWriter`] writes for the same sections.
//!
//! 1. The file has a temporary name until [`SegmentFileStream::finish`] has synced it; if that is never called, the
//!    file is removed.
//! 2. Memory: 256 KiB for each section that grows.
//! 3. [`SegmentFileStream::written`] maps what was written so far. Bytes that a caller reads there are of sections that
//!    have ended, so they never change.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ALIGNMENT, FileIdentity, Placed, encode_head, head_len, origin, section_hasher, temporary_name};
use crate::error::{Error, Result};
use crate::log::Head;
use crate::vfs::{Mapping, OpenMode, Vfs, VfsFile, refuse_symlink};

/// The length of a section's write buffer.
const BUFFER_LEN: usize = 256 << 10;

/// A derived file being written.
pub struct SegmentFileStream<'v> {
    vfs: &'v dyn Vfs,
    path: PathBuf,
    kind: [u8; 4],
    version: u32,
    identity: FileIdentity,
    origin: Option<Head>,
    temporary: Temporary<'v>,
    /// The offset of the first section.
    head_len: u64,
    sections: Vec<Growing>,
}

/// A section being written.
struct Growing {
    tag: [u8; 4],
    /// `None` while the one before it has not ended.
    offset: Option<u64>,
    /// Its final length, once it is known.
    len: Option<u64>,
    written: u64,
    buffer: Vec<u8>,
    crc: crc32fast::Hasher,
}

/// A file under a temporary name, removed on drop unless it was renamed.
struct Temporary<'v> {
    vfs: &'v dyn Vfs,
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    renamed: bool,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // Best effort: the next write replaces it.
            let _ = self.vfs.remove(&self.path);
        }
    }
}

impl std::fmt::Debug for SegmentFileStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentFileStream").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<'v> SegmentFileStream<'v> {
    /// Begins the file at `path` with sections of these tags and lengths, as far as they are known. If `origin` is
    /// given, its section follows them.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// If a tag is given twice.
    pub fn create(
        vfs: &'v dyn Vfs,
        path: &Path,
        (kind, version): ([u8; 4], u32),
        identity: FileIdentity,
        origin: Option<Head>,
        sections: &[([u8; 4], Option<u64>)],
    ) -> Result<Self> {
        let dir = path.parent().unwrap_or(Path::new(""));
        refuse_symlink(vfs, dir).map_err(Error::io(dir, "create a file in"))?;
        let temporary = temporary_name(path);
        match vfs.remove(&temporary) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&temporary, "remove")(source));
            }
            _ => {}
        }
        let file = vfs.open(&temporary, OpenMode::CreateNew).map_err(Error::io(&temporary, "create"))?;
        let temporary = Temporary { vfs, path: temporary, file, renamed: false };
        let mut growing: Vec<Growing> = Vec::with_capacity(sections.len());
        let head_len = head_len(sections.len() + usize::from(origin.is_some())) as u64;
        let mut offset = Some(head_len);
        for (tag, len) in sections {
            assert!(growing.iter().all(|other| other.tag != *tag), "one section to a tag");
            let crc = section_hasher(&identity, *tag, offset.unwrap_or_default());
            growing.push(Growing { tag: *tag, offset, len: *len, written: 0, buffer: Vec::new(), crc });
            offset = offset.zip(*len).map(|(at, len)| (at + len).next_multiple_of(ALIGNMENT as u64));
        }
        Ok(Self { vfs, path: path.to_owned(), kind, version, identity, origin, temporary, head_len, sections: growing })
    }

    /// Appends bytes to the section of this index, from 0. Sections before it whose lengths were unknown end.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// If the section exceeds its length, or there is no such section.
    pub fn append(&mut self, section: usize, bytes: &[u8]) -> Result<()> {
        self.place(section)?;
        let section = &mut self.sections[section];
        let len = section.written + (section.buffer.len() + bytes.len()) as u64;
        assert!(section.len.is_none_or(|most| len <= most), "a section has its given length");
        if section.buffer.is_empty() && bytes.len() >= BUFFER_LEN {
            return section.write(&self.temporary, bytes);
        }
        section.buffer.extend_from_slice(bytes);
        if section.buffer.len() >= BUFFER_LEN { section.flush(&self.temporary) } else { Ok(()) }
    }

    /// Ends the sections before this one whose lengths are unknown, and returns its offset.
    fn place(&mut self, section: usize) -> Result<u64> {
        if let Some(offset) = self.sections[section].offset {
            return Ok(offset);
        }
        let before = section.checked_sub(1).map_or(Ok(self.head_len), |before| self.end(before))?;
        let offset = before.next_multiple_of(ALIGNMENT as u64);
        let this = &mut self.sections[section];
        this.crc = section_hasher(&self.identity, this.tag, offset);
        this.offset = Some(offset);
        Ok(offset)
    }

    /// The end of a section, which has its given length or what was written of it.
    fn end(&mut self, section: usize) -> Result<u64> {
        let offset = self.place(section)?;
        let this = &mut self.sections[section];
        if let Some(len) = this.len {
            return Ok(offset + len);
        }
        this.flush(&self.temporary)?;
        this.len = Some(this.written);
        Ok(offset + this.written)
    }

    /// Maps the file as it was written so far, and gives the place of a section in it, which ends here.
    ///
    /// The caller reads nothing but such sections, and lets go of the mapping before it appends to a section that
    /// stands before the end of the mapping.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// If the section is shorter than its given length, or there is no such section.
    pub fn written(&mut self, section: usize) -> Result<(Mapping, Range<usize>)> {
        let end = self.end(section)?;
        self.sections.iter_mut().try_for_each(|section| section.flush(&self.temporary))?;
        let this = &self.sections[section];
        assert!(this.len == Some(this.written), "a section has its given length");
        let path = &self.temporary.path;
        let map = self.vfs.map(path).map_err(Error::io(path, "map"))?;
        let (start, end) = ((end - this.written) as usize, end as usize);
        if map.len() < end {
            return Err(Error::damaged_file(path, format!("it has {} bytes of {end} that were written", map.len())));
        }
        Ok((map, start..end))
    }

    /// Writes the buffered bytes and the head, syncs the file, renames it to its path and syncs the directory. Returns
    /// its length in bytes.
    ///
    /// # Errors
    /// [`Error::Io`]; the path is then unchanged.
    ///
    /// # Panics
    /// If a section is shorter than its given length.
    pub fn finish(mut self) -> Result<u64> {
        if let Some(last) = self.sections.len().checked_sub(1) {
            self.end(last)?;
        }
        let Temporary { file, path: temporary, .. } = &self.temporary;
        let write = |bytes: &[u8], offset| file.write_at(bytes, offset).map_err(Error::io(temporary, "write"));
        let mut file_len = self.head_len;
        let mut placed = Vec::with_capacity(self.sections.len() + 1);
        for section in &mut self.sections {
            section.flush(&self.temporary)?;
            assert!(section.len.is_none_or(|len| len == section.written), "a section has its given length");
            let offset = section.offset.unwrap_or_default();
            let end = offset + section.written;
            file_len = end.next_multiple_of(ALIGNMENT as u64);
            write(&[0; ALIGNMENT][..(file_len - end) as usize], end)?;
            let crc = std::mem::take(&mut section.crc).finalize();
            placed.push(Placed { tag: section.tag, crc, offset, len: section.written });
        }
        if let Some(origin) = &self.origin {
            let mut bytes = origin::encode(origin).to_vec();
            let mut crc = section_hasher(&self.identity, origin::TAG, file_len);
            crc.update(&bytes);
            placed.push(Placed { tag: origin::TAG, crc: crc.finalize(), offset: file_len, len: bytes.len() as u64 });
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
            write(&bytes, file_len)?;
            file_len += bytes.len() as u64;
        }
        write(&encode_head(self.kind, self.version, &self.identity, &placed, file_len), 0)?;
        file.sync().map_err(Error::io(temporary, "sync"))?;
        self.vfs.rename(temporary, &self.path).map_err(Error::io(&self.path, "rename"))?;
        self.temporary.renamed = true;
        let directory = self.path.parent().unwrap_or(Path::new(""));
        self.vfs.sync_dir(directory).map_err(Error::io(directory, "sync"))?;
        Ok(file_len)
    }
}

impl Growing {
    fn flush(&mut self, to: &Temporary<'_>) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        if !buffer.is_empty() {
            self.write(to, &buffer)?;
        }
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn write(&mut self, to: &Temporary<'_>, bytes: &[u8]) -> Result<()> {
        to.file
            .write_at(bytes, self.offset.unwrap_or_default() + self.written)
            .map_err(Error::io(&to.path, "write"))?;
        self.crc.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }
}
