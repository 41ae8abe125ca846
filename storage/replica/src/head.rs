//! The head of a replica: a signed note of at most 1 KiB.
//!
//! ```text
//! holotype/5f0c…          the origin: the database's id
//! position 8192           of the last commit in the log
//! commit 17
//! time 1700000000000000   its clock, microseconds since 1970
//! hash 9a41…              of the whole log up to the commit
//! size 60                 of the tree over all records
//! root 77e0…              of that tree; `-` where the beginning of the log is gone
//! epoch 3                 of the writer
//! serial 41               of this head
//! writer 03aa…            a random number of the writer's session
//! manifest manifests/…
//! manifest-hash 1b2c…
//! key NAME+ID+BASE64      the public key that verifies the signature below
//! ```
//!
//! 1. The serial makes each head unlike all others, so a tag that is a hash of the bytes never repeats.
//! 2. The key in the note shows that nothing was changed by accident; a key that is known from elsewhere, that nothing
//!    was forged.

use holotype_storage::Hash;
use holotype_storage::log::{CommitNo, Head, Lsn};
use holotype_storage::proof::note::{SignerKey, VerifierKey};

use crate::error::{Error, Result};
use crate::hex;

/// The name of the object.
pub const KEY: &str = "head";

/// The greatest length of a head.
pub const MAX_LEN: usize = 1 << 10;

/// The head of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHead {
    /// The id of the database.
    pub database: [u8; 16],
    /// The end of the log in the replica.
    pub head: Head,
    /// The clock of its last commit, microseconds since 1970.
    pub time_us: i64,
    /// The size of the tree over all records.
    pub size: u64,
    /// The root of the tree; `None` for a log whose beginning was removed.
    pub root: Option<Hash>,
    /// Counts the writers.
    pub epoch: u64,
    /// Counts the heads.
    pub serial: u64,
    /// A random number of the writer's session.
    pub writer: u64,
    /// The name of the manifest.
    pub manifest: String,
    /// Its hash.
    pub manifest_hash: Hash,
}

/// The name under which the keys of a database sign.
#[must_use]
pub fn origin(database: &[u8; 16]) -> String {
    format!("holotype/{}", hex::encode(database))
}

impl RemoteHead {
    /// The signed note.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the note cannot be signed, or is too long.
    pub fn sign(&self, key: &SignerKey) -> Result<Vec<u8>> {
        let text = format!("{}key {}\n", self.text(), key.verifier());
        let note = key.sign(&text).map_err(|error| Error::damaged(KEY, error.to_string()))?;
        if note.len() > MAX_LEN {
            return Err(Error::damaged(KEY, format!("it would have {} bytes, at most {MAX_LEN}", note.len())));
        }
        Ok(note.into_bytes())
    }

    /// Its lines without a signature, for a follower to remember.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.text().into_bytes()
    }

    /// Reads the lines that [`RemoteHead::encode`] wrote.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).ok().and_then(Self::parse);
        text.ok_or_else(|| Error::damaged("FOLLOWS", "its lines are not those of a head; remove the copy"))
    }

    fn text(&self) -> String {
        let root = self.root.map_or_else(|| "-".to_owned(), |root| hex::encode(&root));
        format!(
            "{}\nposition {}\ncommit {}\ntime {}\nhash {}\nsize {}\nroot {root}\nepoch {}\nserial {}\nwriter {:016x}\n\
             manifest {}\nmanifest-hash {}\n",
            origin(&self.database),
            self.head.position,
            self.head.commit,
            self.time_us,
            hex::encode(&self.head.hash),
            self.size,
            self.epoch,
            self.serial,
            self.writer,
            self.manifest,
            hex::encode(&self.manifest_hash),
        )
    }

    /// Reads a head and verifies its signature: with `expected`, if that key is known.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Signature`].
    pub fn open(bytes: &[u8], expected: Option<&VerifierKey>) -> Result<Self> {
        let damaged = |what: &str| Error::damaged(KEY, what);
        let note = std::str::from_utf8(bytes).ok().filter(|_| bytes.len() <= MAX_LEN);
        let note = note.ok_or_else(|| damaged("it is not a short text"))?;
        let stated = note.lines().find_map(|line| line.strip_prefix("key "));
        let stated: VerifierKey = stated
            .ok_or_else(|| damaged("it names no key"))?
            .parse()
            .map_err(|error| Error::damaged(KEY, format!("{error}")))?;
        if let Some(expected) = expected.filter(|expected| **expected != stated) {
            return Err(Error::Signature(format!("it is signed by {stated}, and {expected} was expected")));
        }
        let text = stated.open(note).map_err(|error| Error::Signature(error.to_string()))?;
        Self::parse(text).ok_or_else(|| damaged("its lines are not those of a head"))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let database = hex::decode_array(lines.next()?.strip_prefix("holotype/")?)?;
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let position = Lsn(field("position")?.parse().ok()?);
        let commit = CommitNo(field("commit")?.parse().ok()?);
        let time_us = field("time")?.parse().ok()?;
        let hash = hex::decode_array(field("hash")?)?;
        let size = field("size")?.parse().ok()?;
        let root = match field("root")? {
            "-" => None,
            digits => Some(hex::decode_array(digits)?),
        };
        let epoch = field("epoch")?.parse().ok()?;
        let serial = field("serial")?.parse().ok()?;
        let writer = u64::from_str_radix(field("writer")?, 16).ok()?;
        let manifest = field("manifest")?.to_owned();
        let manifest_hash = hex::decode_array(field("manifest-hash")?)?;
        let head = Head { position, commit, hash };
        Some(Self { database, head, time_us, size, root, epoch, serial, writer, manifest, manifest_hash })
    }

    /// The writer, for a person.
    #[must_use]
    pub fn by(&self) -> String {
        format!("writer {:016x}", self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_as_it_was_signed_and_every_change_is_noticed() {
        let head = RemoteHead {
            database: [9; 16],
            head: Head { position: Lsn(8192), commit: CommitNo(17), hash: [1; 32] },
            time_us: -5,
            size: 60,
            root: Some([2; 32]),
            epoch: 3,
            serial: 41,
            writer: 5,
            manifest: "manifests/0000000003-00000000000000008192-41".into(),
            manifest_hash: [4; 32],
        };
        let key = SignerKey::generate(&origin(&[9; 16])).unwrap();
        let note = head.sign(&key).unwrap();
        assert_eq!(RemoteHead::open(&note, None).unwrap(), head);
        assert_eq!(RemoteHead::open(&note, Some(key.verifier())).unwrap(), head);
        let other = SignerKey::generate(&origin(&[9; 16])).unwrap();
        assert!(matches!(RemoteHead::open(&note, Some(other.verifier())), Err(Error::Signature(_))));
        let text = note.len() - note.iter().rev().position(|&byte| byte == b' ').unwrap() - 1;
        for at in 0..text {
            let mut changed = note.clone();
            changed[at] ^= 1;
            assert!(RemoteHead::open(&changed, Some(key.verifier())).is_err(), "byte {at}");
        }
    }
}
