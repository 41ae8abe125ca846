//! Quarantine of an unsynced tail: it is copied to a file, then removed from the log.
//!
//! The file is `quarantine-POSITION-CRC.bin` in the log's directory:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic, the bytes `HOLOQUAR` |
//! | 8 | 16 | database id |
//! | 24 | 8 | log position of the first byte |
//! | 32 | 8 | length |
//! | 40 | 4 | CRC32 of the bytes |
//! | 44 | 4 | zero |
//! | 48 | length | the bytes of the log |

use std::path::PathBuf;

use super::evidence::Behind;
use super::{Opening, Stop, UnsyncedTail};
use crate::error::{Error, Result};
use crate::log::fault::Fault;
use crate::log::prepare::remove_if_there;
use crate::log::{Lsn, damage_at};
use crate::vfs::OpenMode;

/// The length of one step of copying or zeroing.
pub(super) const COPY_LEN: usize = 256 << 10;

/// The name of a quarantine file until it is complete.
pub(super) const UNFINISHED: &str = "quarantine.bin.tmp";

const QUARANTINE_MAGIC: [u8; 8] = *b"HOLOQUAR";
const QUARANTINE_HEADER_LEN: usize = 48;

impl Opening {
    /// Moves an unsynced tail out of the log.
    pub(super) fn set_aside(&mut self, stop: &Stop, behind: &Behind) -> Result<()> {
        let what = stop.what.clone().unwrap_or_else(|| match behind.end == stop.position {
            true => "the log ends inside a transaction".into(),
            false => "the bytes here are zero, but later ones are not".into(),
        });
        let fault = damage_at(&self.segments, self.geometry.page, Fault { position: stop.position, what });
        let position = self.good.position;
        let mut tail = UnsyncedTail {
            position: Lsn(position),
            len: behind.end - position,
            fault,
            commits: behind.commits,
            quarantine: None,
        };
        if !self.options.read_only {
            tail.quarantine = Some(self.quarantine(position, behind.end)?);
            self.remove_later_segments()?;
            self.zero(position, behind.end)?;
        }
        self.report.tail = Some(tail);
        Ok(())
    }

    /// Copies positions `from..to` to a file named after position and checksum, so that repeating it creates no second
    /// file.
    fn quarantine(&self, from: u64, to: u64) -> Result<PathBuf> {
        let unfinished = self.dir.join(UNFINISHED);
        let fail = |action| Error::io(&unfinished, action);
        remove_if_there(&*self.vfs, &unfinished).map_err(fail("remove"))?;
        let file = self.vfs.open(&unfinished, OpenMode::CreateNew).map_err(fail("create"))?;
        let mut crc = crc32fast::Hasher::new();
        let mut at = QUARANTINE_HEADER_LEN as u64;
        let mut bytes = vec![0; COPY_LEN.min((to - from) as usize)];
        for segment in &self.segments {
            let end = to.min(segment.first + segment.len.min(segment.file_len));
            let mut position = from.max(segment.first);
            while position < end {
                let len = (end - position).min(COPY_LEN as u64) as usize;
                let Some(bytes) = bytes.get_mut(..len) else {
                    break;
                };
                segment.read(bytes, position - segment.first)?;
                crc.update(bytes);
                file.write_at(bytes, at).map_err(fail("write"))?;
                at += len as u64;
                position += len as u64;
            }
        }
        let crc = crc.finalize();
        let mut header = Vec::with_capacity(QUARANTINE_HEADER_LEN);
        header.extend_from_slice(&QUARANTINE_MAGIC);
        header.extend_from_slice(&self.geometry.database);
        header.extend_from_slice(&from.to_le_bytes());
        header.extend_from_slice(&(at - QUARANTINE_HEADER_LEN as u64).to_le_bytes());
        header.extend_from_slice(&crc.to_le_bytes());
        header.resize(QUARANTINE_HEADER_LEN, 0);
        file.write_at(&header, 0).map_err(fail("write"))?;
        file.sync().map_err(fail("sync"))?;
        let path = self.dir.join(format!("quarantine-{from:020}-{crc:08x}.bin"));
        self.vfs.rename(&unfinished, &path).map_err(Error::io(&path, "rename"))?;
        self.sync_dir()?;
        Ok(path)
    }

    fn remove_later_segments(&mut self) -> Result<()> {
        while self.segments.len() > self.good_segment + 1 {
            let Some(segment) = self.segments.pop() else {
                break;
            };
            self.vfs.remove(&segment.path).map_err(Error::io(&segment.path, "remove"))?;
            self.sync_dir()?;
            self.report.removed.push(segment.path.clone());
        }
        Ok(())
    }

    fn zero(&self, from: u64, to: u64) -> Result<()> {
        let Some(segment) = self.segments.last() else {
            return Ok(());
        };
        let end = to.min(segment.end());
        let file = segment.file()?;
        let zeros = vec![0; COPY_LEN.min(end.saturating_sub(from) as usize)];
        let mut position = from;
        while position < end {
            let len = (end - position).min(COPY_LEN as u64) as usize;
            let zeros = zeros.get(..len).unwrap_or_default();
            file.write_at(zeros, position - segment.first).map_err(Error::io(&segment.path, "write"))?;
            position += len as u64;
        }
        file.sync().map_err(Error::io(&segment.path, "sync"))
    }

    fn sync_dir(&self) -> Result<()> {
        self.vfs.sync_dir(&self.dir).map_err(Error::io(&self.dir, "sync"))
    }
}
