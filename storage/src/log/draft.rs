//! A transaction being built, record by record, in the encoding in which it is appended.
//!
//! Payloads are encoded in place: a record needs no allocation and is not copied until it is laid out in a page. A
//! reused draft allocates nothing. Hashes are computed at the end.

use std::cell::RefCell;
use std::fmt::{self, Debug};

use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::record::{self, NewRecord, SALT_LEN};

pub(super) type Salt = [u8; SALT_LEN];

/// The number of salts that are drawn from the system at once.
const SALTS_AT_ONCE: usize = 256;

/// The greatest capacity that a cleared draft keeps.
const MAX_KEPT_ROOM: usize = 1 << 20;

/// Records of a future transaction.
#[derive(Default)]
pub struct Draft {
    /// The records as in the log, without their checksums.
    bytes: Vec<u8>,
    /// The end of each record.
    ends: Vec<usize>,
}

impl Draft {
    /// Adds a record of this kind. `payload` appends the payload and must not change the bytes before it. Returns the
    /// length of the payload.
    ///
    /// # Errors
    /// Those of `payload`; [`Error::ReservedKind`], [`Error::TooLarge`]; [`Error::Io`] if the system provides no random
    /// numbers. An error leaves the draft unchanged.
    pub fn push<E: From<Error>>(
        &mut self,
        kind: u8,
        payload: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<usize, E> {
        record::check_kind(kind)?;
        let salt = salt()?;
        let start = self.bytes.len();
        record::begin(kind, &salt, &mut self.bytes);
        let pushed = payload(&mut self.bytes).and_then(|()| Ok(record::end(&mut self.bytes, start)?));
        match pushed {
            Ok(_) => self.ends.push(self.bytes.len()),
            Err(_) => self.bytes.truncate(start),
        }
        pushed
    }

    /// Removes all but the first `count` records.
    pub fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.bytes.truncate(self.byte_len());
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.truncate(0);
        if self.bytes.capacity() > MAX_KEPT_ROOM {
            *self = Self::default();
        }
    }

    fn byte_len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

impl Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("records", &self.ends.len()).field("bytes", &self.byte_len()).finish()
    }
}

/// An encoded and hashed transaction without a position yet: see [`super::Log::prepare`].
#[derive(Debug)]
pub struct Prepared {
    draft: Draft,
    hashes: Vec<Hash>,
    pub(super) commit_salt: Salt,
}

impl Prepared {
    pub(super) fn encode(records: &[NewRecord], max_len: u64) -> Result<Self> {
        let mut draft = Draft::default();
        for new in records {
            draft.push(new.kind, |bytes| -> Result<()> {
                bytes.extend_from_slice(&new.payload);
                Ok(())
            })?;
        }
        Self::new(draft, max_len)
    }

    pub(super) fn new(draft: Draft, max_len: u64) -> Result<Self> {
        let len = draft.byte_len() as u64;
        if len > max_len {
            return Err(Error::TooLarge { what: "a transaction", len, limit: max_len });
        }
        let commit_salt = salt()?;
        let hashes = draft.records().map(record::hash_of_encoded).collect();
        Ok(Self { draft, hashes, commit_salt })
    }

    /// Returns the draft, to be reused for another transaction.
    #[must_use]
    pub fn into_draft(self) -> Draft {
        let mut draft = self.draft;
        draft.clear();
        draft
    }

    /// The number of its records.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The length of its records in bytes.
    pub(super) fn byte_len(&self) -> usize {
        self.draft.byte_len()
    }

    /// Its records and their hashes.
    pub(super) fn records(&self) -> impl Iterator<Item = (&[u8], Hash)> {
        self.draft.records().zip(self.hashes.iter().copied())
    }
}

/// A salt for one record.
pub(super) fn salt() -> Result<Salt> {
    thread_local! {
        /// Unused random numbers: a system call costs more than the hash of a small record.
        static READY: RefCell<Vec<Salt>> = const { RefCell::new(Vec::new()) };
    }
    READY.with_borrow_mut(|ready| {
        if let Some(salt) = ready.pop() {
            return Ok(salt);
        }
        let mut drawn = vec![Salt::default(); SALTS_AT_ONCE];
        getrandom::fill(drawn.as_flattened_mut()).map_err(|error| Error::Io {
            path: "the system's random numbers".into(),
            action: "read",
            source: std::io::Error::other(error.to_string()),
        })?;
        let salt = drawn.pop().unwrap_or_default();
        *ready = drawn;
        Ok(salt)
    })
}
