//! A passive auditor of write-ahead order: it sees every change before it is applied, and reports those that come too
//! early. It knows the names and layouts of the files of this crate and the engine, but not the code that writes them,
//! so it also detects violations that no simulated crash happened to hit.
//!
//! The rules, for a database in a directory with `log/`, `LOCK`, `catalog.redb` and derived files:
//!
//! 1. A segment's header is written only after the segment before it is synced and its own name is durable.
//! 2. A commit or close record, and the status block of `LOCK`, state a position as durable only if a sync covered all
//!    bytes of the log below it.
//! 3. The catalog states a position only under the same condition, and names only files whose names are durable.
//! 4. A segment, a quarantine or a derived file gets its name only when its content is synced. (The catalog is exempt:
//!    redb syncs what it commits and may write more after that.)
//! 5. A segment of the log is removed, and written bytes of one zeroed, only after the names of quarantine files are
//!    durable.
//!
//! Bytes that are rewritten in the log (recovery, redaction) are not new: they were durable before.

use std::ffi::OsStr;
use std::path::Path;

use super::Operation;
use super::disk::{Disk, File, Pending, is_same, parent_of};
use crate::zeros;

const LOG: &str = "log";
const DERIVED: [&str; 3] = ["cseg", "vseg", "wseg"];

/// The magic of a segment's header, and the offset of the log position of its first byte.
const SEGMENT_MAGIC: &[u8; 8] = b"HOLO-LOG";
const SEGMENT_FIRST_AT: usize = 56;
/// The magic of the status block of `LOCK`, and the offset of the durable position.
const STATUS_MAGIC: &[u8; 8] = b"HOLOLOCK";
const STATUS_DURABLE_AT: usize = 24;
/// The length, type and mark of commit and close records, and the offsets of their durable positions.
const COMMIT_PREFIX: [u8; 8] = [96, 0, 0, 0, 0xf0, 0, b'H', b'r'];
const COMMIT_SYNCED_AT: usize = 28 + 24;
const CLOSE_PREFIX: [u8; 8] = [48, 0, 0, 0, 0xf1, 0, b'H', b'r'];
const CLOSE_SYNCED_AT: usize = 28 + 8;
/// The keys of the catalog's table `meta` as redb stores them in a page; the position follows the last of them.
const TOTALS: [&[u8]; 2] = [b"applieddatabaseformatprevious", b"applieddatabaseformat"];

/// The objection to a change of `file` that is about to be applied, if any.
pub(super) fn objection(disk: &Disk, file: usize, operation: &Operation) -> Option<String> {
    let (path, why) = match operation {
        Operation::Write { path, offset, bytes } => (path, written(disk, file, path, *offset, bytes)?),
        Operation::Rename(_, to) if is_whole_from_the_start(to) && !disk.files[file].pending.is_empty() => {
            (to, "it gets its name before its content is synced".to_owned())
        }
        Operation::Remove(path) if is_segment(path) => (path, unfinished_quarantine(disk, path)?),
        _ => return None,
    };
    Some(format!("{}: {why}", path.display()))
}

fn written(disk: &Disk, file: usize, path: &Path, offset: u64, bytes: &[u8]) -> Option<String> {
    let root = parent_of(path);
    if is_segment(path) {
        let header = (offset == 0 && bytes.starts_with(SEGMENT_MAGIC)).then(|| begun(disk, file, path)).flatten();
        let zeroed = zeros::is_zero(bytes) && !disk.files[file].cached.is_blank(offset as usize, bytes.len());
        let erased = zeroed.then(|| unfinished_quarantine(disk, path)).flatten();
        return header.or(erased).or_else(|| {
            let stated = stated_durable(bytes).max()?;
            not_durable(disk, root, stated).map(|why| format!("a record states {stated} as durable, but {why}"))
        });
    }
    let log = root.join(LOG);
    if path.file_name() == Some(OsStr::new("LOCK")) && offset == 0 && bytes.starts_with(STATUS_MAGIC) {
        let durable = u64_at(bytes, STATUS_DURABLE_AT)?;
        return not_durable(disk, &log, durable).map(|why| format!("it states {durable} as durable, but {why}"));
    }
    if is_catalog(path) {
        let applied = applied_position(bytes)?;
        let unnamed = disk.pending_names.iter().filter_map(|name| name.begins.as_ref());
        let unnamed = unnamed.map(|(name, _)| name.path()).find(|path| path.starts_with(root) && is_derived(path));
        return match (not_durable(disk, &log, applied), unnamed) {
            (Some(why), _) => Some(format!("it states position {applied}, but {why}")),
            (None, Some(path)) => Some(format!("it is written before the name {} is durable", path.display())),
            (None, None) => None,
        };
    }
    None
}

/// The objection to beginning a segment now, if any.
fn begun(disk: &Disk, file: usize, path: &Path) -> Option<String> {
    if disk.durable_names.get(path) != Some(file) {
        return Some("it is begun before its name is durable".to_owned());
    }
    let number: u64 = path.file_stem()?.to_str()?.parse().ok()?;
    let previous = path.with_file_name(format!("{:010}.log", number.checked_sub(1)?));
    let unsynced = disk.names.get(&previous).is_some_and(|file| !disk.files[file].pending.is_empty());
    unsynced.then(|| "it is begun before the segment before it is synced".to_owned())
}

/// Describes the first new bytes of the log below `position` that no sync covered.
fn not_durable(disk: &Disk, log: &Path, position: u64) -> Option<String> {
    let segments = disk.names.iter().filter(|(path, _)| is_segment(path) && is_same(parent_of(path), log));
    for (path, file) in segments {
        let file = &disk.files[file];
        let Some(first) = first_position(file) else { continue };
        for pending in &file.pending {
            if let Pending::Bytes { offset, bytes } = pending
                && first.saturating_add(*offset) < position
                && is_new(file, *offset, bytes)
            {
                return Some(format!("bytes from {offset} on of {} are not synced", path.display()));
            }
        }
    }
    None
}

/// True if the bytes are written where all bytes were zero.
fn is_new(file: &File, offset: u64, bytes: &[u8]) -> bool {
    !zeros::is_zero(bytes) && file.durable.is_blank(offset as usize, bytes.len())
}

fn first_position(file: &File) -> Option<u64> {
    let mut header = [0; SEGMENT_FIRST_AT + 8];
    let read = file.cached.read(0, &mut header);
    (read == header.len() && header.starts_with(SEGMENT_MAGIC)).then(|| u64_at(&header, SEGMENT_FIRST_AT))?
}

/// The positions that commit and close records in these bytes state as durable.
fn stated_durable(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().enumerate().filter_map(|(at, prefix)| {
        let field = match *prefix {
            COMMIT_PREFIX => COMMIT_SYNCED_AT,
            CLOSE_PREFIX => CLOSE_SYNCED_AT,
            _ => return None,
        };
        u64_at(bytes, at * 8 + field)
    })
}

/// The log position that a page of the catalog states.
fn applied_position(bytes: &[u8]) -> Option<u64> {
    let first = TOTALS[1];
    let at = bytes.windows(first.len()).position(|window| window == first)?;
    let keys = TOTALS.into_iter().find(|keys| bytes[at..].starts_with(keys))?;
    u64_at(bytes, at + keys.len())
}

fn unfinished_quarantine(disk: &Disk, segment: &Path) -> Option<String> {
    let mut begun = disk.pending_names.iter().filter_map(|name| name.begins.as_ref()).map(|(name, _)| name.path());
    let quarantine = begun.find(|path| parent_of(path) == parent_of(segment) && is_quarantine(path))?;
    Some(format!("it is removed or zeroed before the name {} is durable", quarantine.display()))
}

fn is_segment(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("log"))
}

fn is_quarantine(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("bin"))
}

/// True if a file of this name must always be complete.
fn is_whole_from_the_start(path: &Path) -> bool {
    is_segment(path) || is_quarantine(path) || is_derived(path)
}

/// Under its own name or a temporary one.
fn is_catalog(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"catalog.redb"))
}

fn is_derived(path: &Path) -> bool {
    path.extension().is_some_and(|extension| DERIVED.into_iter().any(|derived| extension == derived))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
}
