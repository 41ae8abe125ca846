//! References of items to the world outside of the database: files and commands, as they were.
//!
//! The field `outside` of an item names a file or a command, and the git object that its bytes were:
//!
//! ```text
//! file:src/main.rs@git:8d1c8b69c3fce7bea45c73efd06983e3c419a92f
//! command:rustc --version@git:…
//! ```
//!
//! The object is the one that `git hash-object` names: the SHA-1 of `blob LEN`, NUL and the bytes, or the SHA-256 in
//! repositories of that format. A digest of 64 digits is the latter.

use holotype::hex;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// The name of the field.
pub(crate) const FIELD: &str = "outside";
/// The most bytes of a file that a hook hashes.
const HOOK_LEN: u64 = 4 << 20;

/// A file or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    File(String),
    Command(String),
}

/// The value of the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outside {
    pub(crate) place: Place,
    /// The object in small hex digits.
    pub(crate) object: String,
}

impl Outside {
    /// Reads the value of the field; `None` if it has another form.
    pub(crate) fn parse(text: &str) -> Option<Outside> {
        let (place, object) = text.rsplit_once("@git:")?;
        let is_object = matches!(object.len(), 40 | 64) && object.bytes().all(|digit| digit.is_ascii_hexdigit());
        let place = match place.split_once(':')? {
            ("file", path) if !path.is_empty() => Place::File(path.to_owned()),
            ("command", command) if !command.trim().is_empty() => Place::Command(command.to_owned()),
            _ => return None,
        };
        is_object.then(|| Outside { place, object: object.to_ascii_lowercase() })
    }

    /// True if these bytes are the object.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        let head = format!("blob {}\0", bytes.len());
        let digest = match self.object.len() {
            40 => hex(&Sha1::new().chain_update(head).chain_update(bytes).finalize()),
            _ => hex(&Sha256::new().chain_update(head).chain_update(bytes).finalize()),
        };
        digest == self.object
    }

    /// A file as it is now; `None` if it is none, or too long for a hook. Inside of `root` its path is relative.
    pub(crate) fn of_file(root: &Path, path: &Path) -> Option<Outside> {
        let found = fs::metadata(path).ok()?;
        if !found.is_file() || found.len() > HOOK_LEN {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        let shown = path.strip_prefix(root).unwrap_or(path).to_str()?.replace('\\', "/");
        let head = format!("blob {}\0", bytes.len());
        let object = hex(&Sha1::new().chain_update(head).chain_update(&bytes).finalize());
        Some(Outside { place: Place::File(shown), object })
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sort, named) = match &self.place {
            Place::File(path) => ("file", path),
            Place::Command(command) => ("command", command),
        };
        write!(f, "{sort}:{named}@git:{}", self.object)
    }
}

/// The bytes of a file below a folder; `None` if there is no such file.
///
/// # Errors
/// Those of the file system.
pub(crate) fn bytes_of(root: &Path, path: &str) -> io::Result<Option<Vec<u8>>> {
    match fs::read(root.join(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_those_of_git() {
        // `printf 'hello\n' | git hash-object --stdin`, and the same in a repository of SHA-256.
        for object in [
            "ce013625030ba8dba906f756967f9e9ca394464a",
            "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4",
        ] {
            let outside = Outside::parse(&format!("file:a b@c.txt@git:{object}")).unwrap();
            assert_eq!(outside.place, Place::File("a b@c.txt".to_owned()));
            assert!(outside.is(b"hello\n") && !outside.is(b"hello"));
            assert_eq!(Outside::parse(&outside.to_string()), Some(outside));
        }
        for wrong in ["", "a.txt", "file:a", "file:@git:ce01", "file:a@git:ce01", "url:a@git:0", "command: @git:0"] {
            assert_eq!(Outside::parse(wrong), None, "{wrong}");
        }
    }
}
