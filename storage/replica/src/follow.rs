//! Following a replica: a copy of the log that is extended as the head moves.
//!
//! 1. The copy goes forward only: a head with a lower serial is a stale read.
//! 2. Nothing is shown to readers before it is proved ([`Sink::show`]).
//! 3. Chunks with erased records that were written again are fetched again.
//! 4. An object that is missing was removed by a sweep, so the head has moved: it is read again.

use holotype_storage::proof::note::VerifierKey;

use crate::chunk;
use crate::error::{Error, Result};
use crate::head::{self, RemoteHead};
use crate::manifest::{ChunkRef, Manifest};
use crate::push::load;
use crate::source::Sink;
use crate::store::{Got, Store, StoreError, Tag};

/// Attempts to read a head whose objects are there.
const ATTEMPTS: usize = 8;

/// A part of following that a test leaves out, to see that it would be noticed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Ignoring older heads.
    Forward,
    /// Fetching chunks again after erasures.
    Fresh,
}

/// A follower of a replica.
#[derive(Debug)]
pub struct Follower<S> {
    store: S,
    key: Option<VerifierKey>,
    at: Option<RemoteHead>,
    tag: Option<Tag>,
    skipped: Option<Check>,
}

impl<S: Store> Follower<S> {
    /// A follower that has a copy of everything up to a head, or nothing. Heads must be signed by `key`, if given.
    pub fn new(store: S, key: Option<VerifierKey>, at: Option<RemoteHead>) -> Self {
        Self { store, key, at, tag: None, skipped: None }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn skipping(self, skipped: Option<Check>) -> Self {
        Self { skipped, ..self }
    }

    /// The head up to which the copy goes.
    #[must_use]
    pub fn at(&self) -> Option<&RemoteHead> {
        self.at.as_ref()
    }

    /// Extends the copy to the present head. Returns the head if it moved.
    ///
    /// # Errors
    /// [`Error::NoReplica`], [`Error::Store`], [`Error::Damaged`], [`Error::Signature`]; those of the copy.
    pub async fn poll(&mut self, sink: &mut impl Sink) -> Result<Option<RemoteHead>> {
        for _ in 0..ATTEMPTS {
            let (bytes, tag) = match self.store.get(head::KEY, self.tag.as_ref()).await? {
                Got::Unchanged => return Ok(None),
                Got::Missing if self.at.is_some() => return Ok(None),
                Got::Missing => return Err(Error::NoReplica { place: self.store.place() }),
                Got::Object(bytes, tag) => (bytes, tag),
            };
            let head = RemoteHead::open(&bytes, self.key.as_ref())?;
            let is_older = self.at.as_ref().is_some_and(|at| head.serial <= at.serial);
            if is_older && self.skipped != Some(Check::Forward) {
                return Ok(None);
            }
            if self.at.as_ref().is_some_and(|at| at.database != head.database) {
                let expected = self.at.as_ref().map(|at| head::origin(&at.database)).unwrap_or_default();
                return Err(Error::OtherDatabase { expected, found: head::origin(&head.database) });
            }
            let Some(manifest) = load(&self.store, &head).await? else { continue };
            if self.copy(&manifest, sink).await? {
                sink.show(&manifest)?;
                (self.at, self.tag) = (Some(head.clone()), Some(tag));
                return Ok(Some(head));
            }
        }
        Err(StoreError::new("read", head::KEY, "the objects that it names are missing").into())
    }

    /// Copies what the manifest has and the copy has not; false if a chunk is missing.
    async fn copy(&self, manifest: &Manifest, sink: &mut impl Sink) -> Result<bool> {
        sink.prepare(manifest)?;
        let (position, serial) = self.at.as_ref().map_or((0, 0), |at| (at.head.position.0, at.serial));
        let fetches_fresh = self.skipped != Some(Check::Fresh);
        let needs = |it: &&ChunkRef| it.end > position || (fetches_fresh && it.fresh > serial);
        for it in manifest.chunks.iter().filter(needs) {
            let Some(log) = fetch(&self.store, it).await? else { return Ok(false) };
            sink.write(it.first, &log)?;
        }
        Ok(true)
    }
}

/// The bytes of the log in a chunk; `None` if the chunk is missing.
pub(crate) async fn fetch<S: Store>(store: &S, it: &ChunkRef) -> Result<Option<Vec<u8>>> {
    match store.get(&chunk::key(&it.hash), None).await? {
        Got::Object(bytes, _) => chunk::decode(&bytes, &it.hash, it.first, it.end).map(Some),
        Got::Missing | Got::Unchanged => Ok(None),
    }
}
