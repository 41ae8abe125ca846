//! Checkpoints of the tree: size and root, as signed text.
//!
//! The format is C2SP's `tlog-checkpoint`: lines with origin, size in decimal and root in base64, each ended by a line
//! feed, then optional further lines, which are ignored. The origin names the log; here it is the name of the signing
//! key.

use super::note::{NoteError, SignerKey, VerifierKey};
use crate::chain::Hash;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The size of a log's tree and its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// The log's name.
    pub origin: String,
    /// The number of its records, including commit records.
    pub size: u64,
    /// The root of the Merkle tree over them.
    pub root: Hash,
}

impl TreeHead {
    /// Signs the checkpoint. The key's name must be the origin.
    ///
    /// # Errors
    /// [`NoteError::Form`] if the origin is not the key's name.
    pub fn sign(&self, key: &SignerKey) -> Result<String, NoteError> {
        if self.origin != key.verifier().name() {
            return Err(NoteError::Form("the origin of a checkpoint is the name of the key that signs it"));
        }
        key.sign(&format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root)))
    }

    /// Reads a checkpoint and verifies this key's signature.
    ///
    /// # Errors
    /// [`NoteError`].
    pub fn open(note: &str, key: &VerifierKey) -> Result<Self, NoteError> {
        let mut lines = key.open(note)?.lines();
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(NoteError::Form("it does not begin with lines of origin, size and root"));
        };
        if origin != key.name() {
            return Err(NoteError::Form("its origin is not the name of the key that signed it"));
        }
        // Canonical numbers only: no sign, no leading zeros.
        let parsed: Option<u64> = size.parse().ok();
        let Some(size) = parsed.filter(|number| number.to_string() == size) else {
            return Err(NoteError::Form("its size is not a decimal number"));
        };
        let root = STANDARD.decode(root).ok().and_then(|root| Hash::try_from(root).ok());
        let root = root.ok_or(NoteError::Form("its root is not base64 of 32 bytes"))?;
        Ok(Self { origin: origin.to_owned(), size, root })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_reads_as_it_was_written() {
        let key = SignerKey::generate("example/log").unwrap();
        let head = TreeHead { origin: "example/log".into(), size: 20_852_163, root: [0xa5; 32] };
        let note = head.sign(&key).unwrap();
        let text = "example/log\n20852163\npaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaU=\n\n\u{2014} example/log ";
        assert!(note.starts_with(text), "{note}");
        assert_eq!(TreeHead::open(&note, key.verifier()), Ok(head.clone()));
        let other = TreeHead { origin: "other".into(), ..head };
        assert!(other.sign(&key).is_err());
    }

    #[test]
    fn other_texts_are_no_checkpoints() {
        let key = SignerKey::generate("a").unwrap();
        let root = STANDARD.encode([1; 32]);
        let read = |text: String| TreeHead::open(&key.sign(&text).unwrap(), key.verifier());
        assert!(read(format!("a\n1\n{root}\nan extension\n")).is_ok());
        for text in [
            "a\n1\n".to_owned(),
            format!("b\n1\n{root}\n"),
            format!("a\n01\n{root}\n"),
            format!("a\n+1\n{root}\n"),
            format!("a\n18446744073709551616\n{root}\n"),
            format!("a\n1\n{}\n", STANDARD.encode([1; 31])),
            "a\n1\n!\n".to_owned(),
        ] {
            assert!(read(text.clone()).is_err(), "{text}");
        }
    }
}
