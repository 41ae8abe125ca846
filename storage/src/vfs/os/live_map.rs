//! Maps of files that are still written.
//!
//! A slice of such a map would change behind its borrow, so none is ever made: bytes are only copied out. A copy that
//! runs beside a write may have some old and some new bytes, which the reader must expect.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use super::bus_error::Watched;
use super::open_no_follow;
use crate::vfs::LiveMap;

/// A mapped file of at least one byte.
#[derive(Debug)]
pub(super) struct MappedLiveFile {
    /// Declared first, so dropped first: see invariant 2 of [`super::bus_error`].
    watched: Watched,
    map: MmapRaw,
}

impl MappedLiveFile {
    /// Maps the file at `path` in its present length.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_no_follow(OpenOptions::new().read(true), path)?;
        let map = MmapOptions::new().map_raw_read_only(&file)?;
        let watched = Watched::new(path, map.as_ptr() as usize, map.len());
        Ok(Self { watched, map })
    }
}

impl LiveMap for MappedLiveFile {
    fn copy(&self, offset: u64, out: &mut [u8]) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        if offset.checked_add(out.len()).is_none_or(|end| end > self.map.len()) {
            return false;
        }
        // SAFETY: the range lies within the mapping, and `out` is memory of the caller's own. No reference to mapped
        // bytes is made, and any bytes are valid as `u8`, so a write to the file beside this copy can only mix old and
        // new ones. Bytes behind the end of a file that was cut are zeros ([`super::bus_error`]).
        unsafe { self.map.as_ptr().add(offset).copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) };
        !self.watched.is_cut()
    }

    fn prefetch(&self, offset: u64, len: usize) {
        let Ok(offset) = usize::try_from(offset) else { return };
        let end = offset.saturating_add(len).min(self.map.len());
        for at in (offset..end).step_by(LINE) {
            prefetch_line(self.map.as_ptr().wrapping_add(at));
        }
    }
}

/// A cache line.
const LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
fn prefetch_line(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program sees, and any address may be given.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch_line(_line: *const u8) {}

#[cfg(test)]
mod tests {
    use crate::vfs::{OpenMode, OsVfs, Vfs};

    #[test]
    fn a_copy_shows_what_was_written_after_the_map_was_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let file = OsVfs.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 5000], 0).unwrap();
        let map = OsVfs.map_live(&path).unwrap();
        let mut two = [0; 2];
        assert!(map.copy(4998, &mut two) && two == [7, 7]);
        assert!(!map.copy(4999, &mut two), "behind the end");
        assert!(!map.copy(u64::MAX, &mut two));
        file.write_at(&[9], 4999).unwrap();
        assert!(map.copy(4998, &mut two) && two == [7, 9]);
    }

    #[test]
    fn a_file_that_was_cut_gives_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cut");
        let file = OsVfs.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&vec![7; 1 << 20], 0).unwrap();
        let map = OsVfs.map_live(&path).unwrap();
        file.set_len(4096).unwrap();
        assert!(!map.copy(1 << 19, &mut [0; 2]));
        assert!(OsVfs.map_live(&dir.path().join("missing")).is_err());
    }
}
