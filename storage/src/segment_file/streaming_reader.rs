//! Reading a mapped file from end to end without keeping it in memory.
//!
//! Pages read through a mapping count as the memory of this process until the system reclaims them, which it does only
//! under pressure: a file that is read once would count whole. So a streaming reader reports its progress, and every
//! few MiB the pages of the file are released. They stay in the system's page cache.

use super::SegmentFile;

/// The approximate number of bytes of a streamed file that are resident at once.
pub(super) const RESIDENT_LEN: usize = 4 << 20;

/// A sequential pass over a file.
#[derive(Debug)]
pub struct StreamingReader<'f> {
    file: &'f SegmentFile,
    /// The bytes read since pages were last released.
    kept: usize,
}

impl SegmentFile {
    /// Begins a sequential pass over the file.
    #[must_use]
    pub fn streaming_reader(&self) -> StreamingReader<'_> {
        StreamingReader { file: self, kept: 0 }
    }

    /// Releases the memory of the file's pages: see
    /// [`Mapping::advise_dont_need`](crate::vfs::Mapping::advise_dont_need).
    pub fn advise_dont_need(&self) {
        self.content.advise_dont_need(0..self.content.len());
    }
}

impl StreamingReader<'_> {
    /// Reports that `len` more bytes were read, anywhere in the file.
    pub fn advance(&mut self, len: usize) {
        self.kept = self.kept.saturating_add(len);
        if self.kept >= RESIDENT_LEN {
            self.kept = 0;
            self.file.advise_dont_need();
        }
    }
}
