//! The state of a session between two calls of hooks: a small file beside the database.
//!
//! ```text
//! .holotype/sessions/HASH.json   {"offsets": {PATH: n}, "by_hook": {HASH: [KEY, …]}, "recent": [HASH, …],
//!                                 "open_calls": {ID: …}, "shown": [KEY, …]}
//! ```
//!
//! A hook that tells of a turn cannot know the id that the transcript gives it. So the file keeps, by the hash of what
//! was said, the keys of turns that came by hook and were not met in the transcript yet, and the hashes of the turns
//! that were recorded from the transcript lately. It also keeps the keys of the items that the session was shown
//! lately, with which answers are compared.
//!
//! 1. The file is a hint. A key in it counts only if the database has it: the file is written before the commit.
//! 2. Without the file, the transcript is read from its beginning, and its keys are known.

use super::event::{Event, hash16};
use serde_json::{Map, Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most turns that are remembered in each of the two lists.
const REMEMBERED: usize = 512;
/// The most items that an answer is compared with.
const SHOWN: usize = 64;

/// The memory of a session.
#[derive(Debug, Default)]
pub(super) struct Session {
    path: PathBuf,
    /// The end of what was read of each transcript, by its path: a subagent has its own.
    offsets: Map<String, Value>,
    by_hook: Map<String, Value>,
    recent: Vec<String>,
    pub(super) open_calls: Map<String, Value>,
    shown: Vec<String>,
}

impl Session {
    /// Reads the memory of a session; an empty one if there is none.
    pub(super) fn read(folder: &Path, session: &str) -> Session {
        let path = folder.join("sessions").join(format!("{}.json", hash16(session)));
        let stored = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let object = |name: &str| stored.as_ref().and_then(|stored| stored.get(name)?.as_object().cloned());
        let texts = |name: &str| -> Vec<String> {
            let stored = stored.as_ref().and_then(|stored| stored.get(name)?.as_array());
            stored.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Session {
            path,
            offsets: object("offsets").unwrap_or_default(),
            by_hook: object("by_hook").unwrap_or_default(),
            recent: texts("recent"),
            open_calls: object("open_calls").unwrap_or_default(),
            shown: texts("shown"),
        }
    }

    /// The end of what was read of a transcript.
    pub(super) fn offset_of(&self, transcript: &Path) -> u64 {
        self.offsets.get(&transcript.display().to_string()).and_then(Value::as_u64).unwrap_or(0)
    }

    pub(super) fn set_offset(&mut self, transcript: &Path, offset: u64) {
        self.offsets.insert(transcript.display().to_string(), offset.into());
    }

    /// Notes a turn that came by hook.
    pub(super) fn note_hook(&mut self, event: &Event) {
        let Some(hash) = event.turn_hash() else { return };
        let keys = self.by_hook.entry(hash).or_insert_with(|| json!([]));
        if let Some(keys) = keys.as_array_mut().filter(|keys| !keys.iter().any(|key| *key == event.key.as_str())) {
            keys.push(event.key.as_str().into());
        }
        while self.by_hook.len() > REMEMBERED {
            let oldest = self.by_hook.keys().next().cloned().unwrap_or_default();
            self.by_hook.shift_remove(&oldest);
        }
    }

    /// Takes out a turn that came by hook and says the same as one of the transcript: the first whose key is there.
    pub(super) fn take_hook(&mut self, event: &Event, is_there: impl Fn(&str) -> bool) -> bool {
        let Some(hash) = event.turn_hash() else { return false };
        let Some(keys) = self.by_hook.get_mut(&hash).and_then(Value::as_array_mut) else { return false };
        while !keys.is_empty() {
            if keys.remove(0).as_str().is_some_and(&is_there) {
                return true;
            }
        }
        false
    }

    /// Notes a turn that was recorded from the transcript.
    pub(super) fn note_transcript(&mut self, event: &Event) {
        self.recent.extend(event.turn_hash());
        let surplus = self.recent.len().saturating_sub(REMEMBERED);
        self.recent.drain(..surplus);
    }

    /// True for a turn that was recorded from the transcript lately. One that says the same once more and is not in the
    /// transcript yet is recorded from there.
    pub(super) fn has_transcribed(&self, event: &Event) -> bool {
        event.turn_hash().is_some_and(|hash| self.recent.contains(&hash))
    }

    /// Notes that the session was shown an item.
    pub(super) fn note_shown(&mut self, key: &str) {
        self.shown.retain(|known| known != key);
        self.shown.push(key.to_owned());
        let surplus = self.shown.len().saturating_sub(SHOWN);
        self.shown.drain(..surplus);
    }

    /// The keys of the items that the session was shown lately, the last of them last.
    pub(super) fn shown(&self) -> &[String] {
        &self.shown
    }

    /// Writes the memory, whole or not at all.
    pub(super) fn write(&self) -> io::Result<()> {
        let value = json!({
            "offsets": self.offsets, "by_hook": self.by_hook, "recent": self.recent, "open_calls": self.open_calls,
            "shown": self.shown,
        });
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let unfinished = self.path.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&unfinished, value.to_string())?;
        fs::rename(&unfinished, &self.path)
    }
}
