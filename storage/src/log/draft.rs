//! A transaction being written down, record by record, as the bytes it is appended as.
//!
//! Payloads are encoded where they stay: a record costs no memory of its own and is not copied until it is laid out in
//! a page. A draft that is kept and used again costs none at all. Their hashes are made at the end, side by side.

use std::cell::RefCell;
use std::fmt::{self, Debug};

use crate::chain::Hash;
use crate::error::{Error, Result};
use crate::record::{self, NewRecord, SALT_LEN};
use crate::record_hashes::RecordHashes;

pub(super) type Salt = [u8; SALT_LEN];

/// How many records of a transaction are hashed together.
const HASHED_AT_ONCE: usize = 64;

/// How many salts are drawn from the system at once.
const SALTS_AT_ONCE: usize = 256;

/// More room than this is given back when a draft is cleared.
const MAX_KEPT_ROOM: usize = 1 << 20;

/// Records that are to become one transaction.
#[derive(Default)]
pub struct Draft {
    /// As they will stand in the log, but for their checksums.
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Draft {
    /// Adds a record of that kind; `payload` appends its bytes and changes none before them. Says how many those are.
    ///
    /// # Errors
    /// Those of `payload`; [`Error::ReservedKind`], [`Error::TooLarge`]; [`Error::Io`] when the system has no random
    /// numbers. The draft is then as it was.
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

    /// Takes back all but the first `count` records.
    pub fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.bytes.truncate(self.byte_len());
    }

    /// Takes back all records.
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

/// A transaction encoded and hashed, not yet placed: see [`super::Log::prepare`].
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
        Ok(Self { hashes: hashes(&draft), draft, commit_salt })
    }

    /// The draft, for another transaction.
    #[must_use]
    pub fn into_draft(self) -> Draft {
        let mut draft = self.draft;
        draft.clear();
        draft
    }

    /// How many records it has.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The bytes its records take.
    pub(super) fn byte_len(&self) -> usize {
        self.draft.byte_len()
    }

    /// Its records and their hashes.
    pub(super) fn records(&self) -> impl Iterator<Item = (&[u8], Hash)> {
        self.draft.records().zip(self.hashes.iter().copied())
    }
}

/// The hashes of a draft's records.
fn hashes(draft: &Draft) -> Vec<Hash> {
    thread_local! {
        /// The room for the hashes' inputs.
        static TOGETHER: RefCell<RecordHashes> = RefCell::default();
    }
    let mut made = Vec::with_capacity(draft.ends.len());
    TOGETHER.with_borrow_mut(|together| {
        let mut records = draft.records().enumerate().peekable();
        while records.peek().is_some() {
            together.clear();
            records.by_ref().take(HASHED_AT_ONCE).for_each(|(at, record)| record::hash_together(at, record, together));
            made.extend_from_slice(together.make());
        }
    });
    made
}

/// A salt for one record.
pub(super) fn salt() -> Result<Salt> {
    thread_local! {
        /// Random numbers not used yet: a call of the system costs more than a small record's hash.
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
