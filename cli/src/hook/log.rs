//! The log of hooks: a line for each call, beside the database. It holds no text of a session.

use holotype::time;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const FILE: &str = "hook.log";
/// The log that was full.
const OLD_FILE: &str = "hook.log.1";
/// The length from which on a new log is begun.
const FULL_LEN: u64 = 1 << 20;

/// Appends a line, if there is a folder to hold it. The log is for people: a failure to write it changes nothing.
pub(super) fn append(beside: &Path, line: &str) {
    let path = beside.join(FILE);
    if fs::metadata(&path).is_ok_and(|file| file.len() >= FULL_LEN) {
        let _ = fs::rename(&path, beside.join(OLD_FILE));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = time::format(i64::try_from(now.as_micros()).unwrap_or(i64::MAX));
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(&path) {
        let _ = file.write_all(format!("{now} {line}\n").as_bytes());
    }
}

/// A text on one line, without control characters.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(1_000).collect()
}

/// The last lines of the log beside a database, oldest first.
pub(crate) fn last_lines(beside: &Path, count: usize) -> Vec<String> {
    let read = |name: &str| fs::read_to_string(beside.join(name)).unwrap_or_default();
    let mut lines: Vec<String> = [OLD_FILE, FILE]
        .iter()
        .flat_map(|name| {
            let text = read(name);
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let surplus = lines.len().saturating_sub(count);
    lines.drain(..surplus);
    lines
}
