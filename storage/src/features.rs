//! Feature masks of a file, beside its version: a program learns from them how it may use a file that a newer program
//! wrote. There are three masks, as in ext4:
//!
//! 1. *Compatible*: a program may ignore those it does not know.
//! 2. *Read-compatible*: a program that does not know all of them may read the file, but not write it.
//! 3. *Incompatible*: a program that does not know all of them must not open the file.
//!
//! The masks keep their offsets in every version of a format. A refusal changes nothing.

use std::path::Path;

use crate::error::{Error, Result};

/// Incompatible, of a catalog: vectors of items may stand in other records than the items' own.
pub const VECTORS_APART: u32 = 1 << 1;

/// The incompatible features that this program knows, of any file.
const KNOWN_INCOMPATIBLE: u32 = VECTORS_APART;
/// The read-compatible features that this program knows, of any file.
const KNOWN_READ_COMPATIBLE: u32 = 0;

/// The features of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A program may ignore those it does not know.
    pub compatible: u32,
    /// A program that does not know all of these may only read.
    pub read_compatible: u32,
    /// A program that does not know all of these must not open the file.
    pub incompatible: u32,
}

/// The purpose of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing.
    Write,
    /// Reading.
    Read,
}

/// The advice for a derived file that a newer program wrote.
pub(crate) const UPGRADE_OR_REBUILD: &str = "upgrade to open it, or rebuild it from the log with holotype rebuild";

impl Features {
    /// The unknown incompatible features, in words.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let unknown = self.incompatible & !KNOWN_INCOMPATIBLE;
        (unknown != 0).then(|| format!("incompatible features ({})", bits(unknown)))
    }

    /// The unknown read-compatible features, in words.
    fn unwritable(&self) -> Option<String> {
        let unknown = self.read_compatible & !KNOWN_READ_COMPATIBLE;
        (unknown != 0).then(|| format!("features that this version can only read ({})", bits(unknown)))
    }

    /// Refuses a file of the log.
    pub(crate) fn check(&self, path: &Path, access: Access) -> Result<()> {
        self.refuse(path, access, "upgrade to open it", "open it read-only, or upgrade")
    }

    /// Refuses a derived file.
    pub(crate) fn check_derived(&self, path: &Path, access: Access) -> Result<()> {
        let reading = "open it read-only, upgrade, or rebuild it from the log with holotype rebuild";
        self.refuse(path, access, UPGRADE_OR_REBUILD, reading)
    }

    fn refuse(&self, path: &Path, access: Access, unreadable: &str, unwritable: &str) -> Result<()> {
        let refusal = match (self.unreadable(), self.unwritable()) {
            (Some(what), _) => format!("{what}; {unreadable}"),
            (None, Some(what)) if access == Access::Write => format!("{what}; {unwritable}"),
            _ => return Ok(()),
        };
        Err(Error::NewerFormat { path: path.to_owned(), what: refusal })
    }
}

fn bits(mask: u32) -> String {
    let set: Vec<String> = (0..u32::BITS).filter(|bit| mask >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
    match set.as_slice() {
        [one] => format!("bit {one}"),
        several => format!("bits {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mask_says_what_it_forbids_and_which_bit() {
        let told = |features: Features, access| {
            let checked = features.check(Path::new("a.log"), access);
            checked.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let known = Features { compatible: !0, ..Features::default() };
        assert_eq!(told(known, Access::Write), "");
        let beside = Features { read_compatible: 1 << 31 | 1, ..Features::default() };
        assert_eq!(told(beside, Access::Read), "");
        assert_eq!(
            told(beside, Access::Write),
            "a.log: written by a newer version of holotype: features that this version can only read \
             (bits 0, 31); open it read-only, or upgrade; nothing was changed"
        );
        let closed = Features { incompatible: 1 << 7, ..beside };
        for access in [Access::Read, Access::Write] {
            assert!(told(closed, access).contains("incompatible features (bit 7); upgrade to open it;"));
        }
        let derived = closed.check_derived(Path::new("a.vseg"), Access::Read).unwrap_err().to_string();
        assert!(derived.contains("holotype rebuild"), "{derived}");
    }
}
