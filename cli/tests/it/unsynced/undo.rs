//! Undoing what no sync covered, from the journal that `unsynced.c` wrote.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER_LEN: usize = 48;

#[derive(Debug)]
struct Record {
    kind: u8,
    first: PathBuf,
    second: PathBuf,
    inode: u64,
    offset: u64,
    old_len: u64,
    data: Vec<u8>,
}

/// Undoes the changes in the journal that no later sync covers, the last one first, and empties it.
pub(crate) fn undo(journal: &Path) -> Result<usize, String> {
    let path = journal.join("journal");
    let bytes = fs::read(&path).map_err(|error| error.to_string())?;
    let records = records(&bytes)?;
    let (mut files, mut directories) = (HashSet::new(), HashSet::new());
    let mut undone = 0;
    for record in records.iter().rev() {
        let directory = record.first.parent().map(Path::to_owned).unwrap_or_default();
        match record.kind {
            b'S' => drop(files.insert(record.inode)),
            b'D' => drop(directories.insert(record.first.clone())),
            b'W' | b'T' if !files.contains(&record.inode) => {
                undo_content(journal, record).map_err(|error| format!("{record:?}: {error}"))?;
                undone += 1;
            }
            b'C' | b'R' | b'U' if !directories.contains(&directory) => {
                undo_name(journal, record).map_err(|error| format!("{record:?}: {error}"))?;
                undone += 1;
            }
            b'W' | b'T' | b'C' | b'R' | b'U' => {}
            other => return Err(format!("a record of kind {other}")),
        }
    }
    fs::write(&path, []).map_err(|error| error.to_string())?;
    for dir in ["files", "kept"] {
        for entry in fs::read_dir(journal.join(dir)).map_err(|error| error.to_string())? {
            fs::remove_file(entry.map_err(|error| error.to_string())?.path()).map_err(|error| error.to_string())?;
        }
    }
    Ok(undone)
}

/// The records of the journal; the last one may be cut short, for then its change was never made.
fn records(bytes: &[u8]) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some((head, behind)) = rest.split_at_checked(HEADER_LEN) {
        let u32_at = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let (first_len, second_len, data_len) = (u32_at(4) as usize, u32_at(8) as usize, u64_at(40) as usize);
        let Some((body, behind)) = behind.split_at_checked(first_len + second_len + data_len) else { break };
        let text =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map(PathBuf::from).map_err(|error| error.to_string());
        records.push(Record {
            kind: u8::try_from(u32_at(0)).map_err(|error| error.to_string())?,
            first: text(&body[..first_len])?,
            second: text(&body[first_len..first_len + second_len])?,
            inode: u64_at(16),
            offset: u64_at(24),
            old_len: u64_at(32),
            data: body[first_len + second_len..].to_vec(),
        });
        rest = behind;
    }
    Ok(records)
}

fn undo_content(journal: &Path, record: &Record) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).open(journal.join("files").join(record.inode.to_string()))?;
    file.write_all_at(&record.data, record.offset)?;
    file.set_len(record.old_len)
}

/// The last change may have been noted and not made.
fn undo_name(journal: &Path, record: &Record) -> std::io::Result<()> {
    let kept = journal.join("kept").join(record.offset.to_string());
    match record.kind {
        b'C' if record.first.exists() => fs::remove_file(&record.first),
        b'R' if !record.first.exists() => {
            fs::rename(&record.second, &record.first)?;
            if record.offset == 0 { Ok(()) } else { fs::hard_link(kept, &record.second) }
        }
        b'U' if !record.first.exists() => fs::hard_link(kept, &record.first),
        _ => Ok(()),
    }
}
