//! Features of a format: what a file holds beyond its version, so that a program can tell how far it may go with a file
//! that a newer one wrote. Three masks of bits, as in ext4:
//!
//! 1. *Compatible*: a program that does not know one may ignore it.
//! 2. *Read-compatible*: one that does not know one may read the file and change nothing.
//! 3. *Incompatible*: one that does not know one must leave the file alone.
//!
//! They keep their places in every version of a format. A refusal changes nothing.

use std::path::Path;

use crate::error::{Error, Result};

/// Incompatible features this program knows, of every file.
const KNOWN_INCOMPATIBLE: u32 = 0;
/// Read-compatible features this program knows, of every file.
const KNOWN_READ_COMPATIBLE: u32 = 0;

/// The features a file says it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Those that others may ignore.
    pub compatible: u32,
    /// Those beside which others may only read.
    pub read_compatible: u32,
    /// Those that keep others away.
    pub incompatible: u32,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing.
    Write,
    /// Reading.
    Read,
}

/// What can be done about a derived file that a newer program made.
pub(crate) const UPGRADE_OR_REBUILD: &str = "upgrade to open it, or make it anew from the log with holotype rebuild";

impl Features {
    /// Which features keep this program away, in words.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let unknown = self.incompatible & !KNOWN_INCOMPATIBLE;
        (unknown != 0).then(|| format!("incompatible features ({})", bits(unknown)))
    }

    /// Which features keep this program from writing, in words.
    fn unwritable(&self) -> Option<String> {
        let unknown = self.read_compatible & !KNOWN_READ_COMPATIBLE;
        (unknown != 0).then(|| format!("features beside which this version may only read ({})", bits(unknown)))
    }

    /// Refuses a file of the log.
    pub(crate) fn check(&self, path: &Path, access: Access) -> Result<()> {
        self.refuse(path, access, "upgrade to open it", "open it read-only, or upgrade")
    }

    /// Refuses a derived file.
    pub(crate) fn check_derived(&self, path: &Path, access: Access) -> Result<()> {
        let reading = "open it read-only, upgrade, or make it anew from the log with holotype rebuild";
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
            "a.log: written by a newer version of holotype: features beside which this version may only read \
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
