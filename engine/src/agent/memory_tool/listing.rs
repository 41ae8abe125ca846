//! Directories and lines as the tool shows them.

use crate::model::item::ItemId;
use std::collections::BTreeMap;

/// Levels below a directory that are listed.
const LEVELS: usize = 2;

/// A file.
pub(super) struct Found {
    pub(super) item: ItemId,
    pub(super) path: String,
    /// Bytes of its text.
    pub(super) len: u64,
}

/// The listing of a directory: a size, a tab and a path for each file and directory in it.
pub(super) fn listing(path: &str, files: &[Found]) -> String {
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::from([(path, 0)]);
    for file in files {
        let below = &file.path[path.len()..];
        if below.split('/').any(|name| name.starts_with('.') || name == "node_modules") {
            continue;
        }
        *sizes.entry(path).or_default() += file.len;
        let slashes = file.path.match_indices('/').map(|(at, _)| at).filter(|at| *at > path.len());
        for end in slashes.chain([file.path.len()]).take(LEVELS) {
            *sizes.entry(&file.path[..end]).or_default() += file.len;
        }
    }
    let rows: Vec<String> = sizes.iter().map(|(path, len)| format!("{}\t{path}", size(*len))).collect();
    format!(
        "Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:\n{}",
        rows.join("\n")
    )
}

/// Lines with their numbers, of which the first is given: six characters wide, then a tab.
pub(super) fn lines(lines: &[&str], first: usize) -> String {
    let numbered: Vec<String> =
        lines.iter().enumerate().map(|(at, line)| format!("{:>6}\t{line}", first + at)).collect();
    numbered.join("\n")
}

/// A number of bytes as `ls -h` shows it.
fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "K", "M"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{bytes}B") } else { format!("{size:.1}{unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1}G")
}
