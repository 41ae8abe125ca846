//! Events that could not be recorded in time: files beside the database, each whole and synced, which the next hook
//! that gets its turn records and removes.
//!
//! ```text
//! .holotype/spool/TIME-PID-HASH.jsonl    one event a line
//! ```
//!
//! An event is removed after the commit that holds it. A process that dies between the two leaves it to be recorded
//! again, which its key prevents.

use super::event::{Event, hash16};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most files that one hook takes in, so that it ends in time.
const TAKEN: usize = 256;
/// The most bytes of a file that is taken in.
const FILE_LEN: u64 = 64 << 20;

/// The folder of the spool.
pub(super) fn folder(beside: &Path) -> PathBuf {
    beside.join("spool")
}

/// Appends events, synced.
pub(super) fn put(beside: &Path, events: &[Event]) -> io::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let folder = folder(beside);
    fs::create_dir_all(&folder)?;
    let lines: String = events.iter().map(|event| format!("{}\n", event.to_json())).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = format!("{now:024}-{}-{}", std::process::id(), hash16(&lines));
    let unfinished = folder.join(format!("{name}.tmp"));
    let mut file = File::create(&unfinished)?;
    file.write_all(lines.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, folder.join(format!("{name}.jsonl")))?;
    // Windows cannot open a folder as a file; its renames are durable without.
    if cfg!(unix) { File::open(&folder)?.sync_all() } else { Ok(()) }
}

/// The files of the spool, oldest first, as many as are taken in at once.
pub(super) fn files(beside: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder(beside)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_whole(path)).collect();
    files.sort();
    files.truncate(TAKEN);
    Ok(files)
}

fn is_whole(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

/// The events of a file, and the number of lines that are none.
pub(super) fn read(path: &Path) -> io::Result<(Vec<Event>, usize)> {
    if fs::metadata(path)?.len() > FILE_LEN {
        return Err(io::Error::other("it is larger than anything that a hook writes"));
    }
    let text = fs::read_to_string(path)?;
    let parsed = |line: &str| Event::from_json(&serde_json::from_str::<Value>(line).ok()?);
    let events: Vec<Event> = text.lines().filter_map(parsed).collect();
    let wrong = text.lines().count() - events.len();
    Ok((events, wrong))
}

/// Puts a file aside that holds what is no event.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    fs::rename(path, path.with_extension("wrong"))
}
