//! Going through a mapped file from end to end without keeping it in memory.
//!
//! What is read of a mapping counts as this process's memory until the system takes it away, which it does when it
//! must: a file that is read once would count whole. So whoever goes through one says how far it has come, and every
//! few MiB all of the file is let go of. It stays in the system's cache, from where the next bytes come as before.

use super::SegmentFile;

/// So many bytes of a file that is gone through are in memory at once, about.
pub(super) const RESIDENT_LEN: usize = 4 << 20;

/// A way through a file.
#[derive(Debug)]
pub struct StreamingReader<'f> {
    file: &'f SegmentFile,
    /// The bytes read since the file was let go of.
    kept: usize,
}

impl SegmentFile {
    /// Begins to go through the file.
    #[must_use]
    pub fn streaming_reader(&self) -> StreamingReader<'_> {
        StreamingReader { file: self, kept: 0 }
    }

    /// Gives back the memory that the file takes: see
    /// [`Mapping::advise_dont_need`](crate::vfs::Mapping::advise_dont_need).
    pub fn advise_dont_need(&self) {
        self.content.advise_dont_need(0..self.content.len());
    }
}

impl StreamingReader<'_> {
    /// So many bytes more were read, wherever they stand.
    pub fn advance(&mut self, len: usize) {
        self.kept = self.kept.saturating_add(len);
        if self.kept >= RESIDENT_LEN {
            self.kept = 0;
            self.file.advise_dont_need();
        }
    }
}
