//! `.holotypeignore`: paths whose content no hook records.
//!
//! A line is a pattern relative to the folder of the file, as in `.gitignore`: `#` begins a comment, `!` takes a match
//! back, `/` at the beginning ties it to that folder, and a pattern matches a folder with everything in it. The nearest
//! file upwards from the working folder counts.

use std::fs;
use std::path::{Component, Path, PathBuf};

const FILE: &str = ".holotypeignore";

/// Patterns, each with the folder that it is relative to.
#[derive(Debug, Default)]
pub(super) struct Ignore {
    root: PathBuf,
    /// Each pattern, and false for one that takes a match back.
    patterns: Vec<(String, bool)>,
}

impl Ignore {
    /// The patterns that count in a working folder.
    pub(super) fn read(folder: &Path) -> Ignore {
        let Some(root) = folder.ancestors().find(|above| above.join(FILE).is_file()) else { return Ignore::default() };
        let text = fs::read_to_string(root.join(FILE)).unwrap_or_default();
        Ignore::parse(root, &text)
    }

    fn parse(root: &Path, text: &str) -> Ignore {
        let mut patterns = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (line, ignores) = line.strip_prefix('!').map_or((line, true), |line| (line, false));
            let line = line.trim_end_matches('/');
            let pattern = match line.strip_prefix('/') {
                Some(tied) => tied.to_owned(),
                None if line.contains('/') => line.to_owned(),
                None => format!("**/{line}"),
            };
            patterns.push((pattern, ignores));
        }
        Ignore { root: root.to_owned(), patterns }
    }

    /// True if a file or folder, or a folder that it is in, is to be ignored.
    pub(super) fn covers(&self, path: &Path) -> bool {
        let path = plain(path);
        let Ok(inside) = path.strip_prefix(&self.root) else { return false };
        let inside = inside.to_string_lossy().replace('\\', "/");
        let matches = |pattern: &str| {
            let mut ends = inside.match_indices('/').map(|(at, _)| at).chain([inside.len()]);
            ends.any(|end| fast_glob::glob_match(pattern, &inside[..end]))
        };
        !inside.is_empty()
            && self.patterns.iter().rev().find(|(pattern, _)| matches(pattern)).is_some_and(|(_, ignores)| *ignores)
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_what_gitignore_would() {
        let ignore = Ignore::parse(Path::new("/p"), "# keys\n*.pem\n/private/\nlogs/*.txt\n!keep.pem\n");
        for path in ["/p/a.pem", "/p/sub/a.pem", "/p/private/x/y", "/p/logs/a.txt", "/p/sub/../private"] {
            assert!(ignore.covers(Path::new(path)), "{path}");
        }
        for path in ["/p/a.txt", "/p/keep.pem", "/p/sub/private", "/q/a.pem", "/p/logs/sub/a.txt", "/p"] {
            assert!(!ignore.covers(Path::new(path)), "{path}");
        }
    }
}
