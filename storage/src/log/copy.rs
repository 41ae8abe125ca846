//! Copying a log up to a commit while others write to it.
//!
//! The copy is a log of the same database that ends at that commit, regardless of later appends to the original. Its
//! segments are as long as the original's, with zeros after the commit. Nothing may be erased meanwhile
//! ([`crate::lock::Lock::pin`]).
//!
//! 1. Each file is complete and synced before it gets its name, and the first segment gets its name last. A directory
//!    without the first segment is not a log, so an unfinished copy cannot be mistaken for one.

use std::path::Path;

use super::prepare::unfinished_path;
use super::segment::{Segment, file_name};
use super::{Head, Log};
use crate::error::{Error, Result};
use crate::vfs::{OpenMode, Vfs};

/// The length of one copy step.
const COPY_LEN: usize = 1 << 20;

impl Log {
    /// Copies everything up to a commit of this log into a directory that holds no log. `progress` receives the bytes
    /// done and the total.
    ///
    /// # Errors
    /// [`Error::LogExists`], [`Error::Io`]; [`Error::Poisoned`] after a failed write or sync.
    pub fn copy_to(&self, vfs: &dyn Vfs, dir: &Path, end: Head, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        vfs.create_dir(dir).map_err(Error::io(dir, "create"))?;
        let names = vfs.list(dir).map_err(Error::io(dir, "list"))?;
        if !names.is_empty() {
            return Err(Error::LogExists { path: dir.to_owned() });
        }
        self.flush()?;
        let mut segments = self.table.all();
        segments.retain(|segment| segment.first < end.position.0);
        let total = segments.iter().map(|segment| segment.len).sum();
        let mut done = 0;
        for segment in &segments {
            copy_segment(vfs, dir, segment, end, &mut |len| {
                done += len;
                progress(done, total);
            })?;
        }
        if let Some(floor) = self.floor() {
            floor.write(vfs, dir, &self.geometry.database)?;
        }
        for segment in segments.iter().rev() {
            let path = dir.join(file_name(segment.number));
            vfs.rename(&unfinished_path(&path), &path).map_err(Error::io(&path, "rename"))?;
            vfs.sync_dir(dir).map_err(Error::io(dir, "sync"))?;
        }
        Ok(())
    }
}

pub(super) fn copy_segment(
    vfs: &dyn Vfs,
    dir: &Path,
    segment: &Segment,
    end: Head,
    copied: &mut dyn FnMut(u64),
) -> Result<()> {
    let path = unfinished_path(&dir.join(file_name(segment.number)));
    let file = vfs.open(&path, OpenMode::CreateNew).map_err(Error::io(&path, "create"))?;
    let kept = segment.len.min(end.position.0 - segment.first);
    let mut bytes = vec![0; COPY_LEN];
    let mut offset = 0;
    while offset < segment.len {
        let len = (segment.len - offset).min(COPY_LEN as u64);
        let Some(chunk) = bytes.get_mut(..len as usize) else { break };
        let from_log = kept.saturating_sub(offset).min(len) as usize;
        let (read, zeros) = chunk.split_at_mut(from_log);
        if !read.is_empty() {
            segment.read(read, offset)?;
        }
        zeros.fill(0);
        file.write_at(chunk, offset).map_err(Error::io(&path, "write"))?;
        offset += len;
        copied(len);
    }
    file.sync().map_err(Error::io(&path, "sync"))
}
