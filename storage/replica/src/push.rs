//! The writer of a replica: claiming the epoch, moving the head, removing what no head names.
//!
//! Each head takes three writes: a chunk, a manifest, the head. The first two are create-only and named by no head yet,
//! so whatever becomes of them changes nothing. The swap of the head is the acknowledgement.
//!
//! 1. A swap whose answer is lost may have happened, or may still happen. So before the next one the head is read again
//!    (`settle`): an own head is adopted, another writer's fences this one.
//! 2. A serial is used for one attempt. An attempt that fails leaves objects that a sweep removes.
//! 3. A sweep lists first. Then it swaps the head, which proves that no other writer claimed the epoch before: others
//!    write chunks only after their claim, so no listed object is theirs. Own chunks are written by the same caller,
//!    not meanwhile.

use holotype_storage::Hash;
use holotype_storage::log::Head;
use holotype_storage::proof::note::SignerKey;

use crate::chunk;
use crate::error::{Error, Result};
use crate::head::{self, RemoteHead, origin};
use crate::manifest::{ChunkRef, Manifest};
use crate::plan::{self, NOW, Part, Plan};
use crate::source::Source;
use crate::store::{Created, Got, Store, StoreError, Swapped, Tag};

/// Attempts of one request, and of one head, before an error is returned.
const ATTEMPTS: usize = 4;

/// A part of the protocol that a test leaves out, to see that it would be noticed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Taking over only if the log contains the head.
    Contains,
    /// Taking the next epoch.
    Epoch,
    /// Reading the head again after a swap whose answer was lost.
    Settle,
    /// Comparing the epochs of heads.
    Fence,
    /// Writing chunks again after an erasure.
    Rewrite,
    /// A serial for each attempt.
    Serial,
    /// Proving the epoch before a sweep removes anything.
    Prove,
    /// Listing before the proof.
    ListFirst,
    /// Waiting until the chunks are written.
    Chunks,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The replica has everything already.
    Current(Head),
    /// The head was moved here.
    Moved {
        /// The end of the log in the replica.
        head: Head,
        /// Bytes of the log that were added.
        log_bytes: u64,
        /// Bytes of the objects that were written.
        stored_bytes: u64,
        /// True if the log has more.
        more: bool,
    },
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Objects removed.
    pub objects: u64,
    /// Their length in bytes.
    pub bytes: u64,
}

/// The head as this writer knows it.
#[derive(Clone, Debug)]
struct Base {
    head: RemoteHead,
    tag: Tag,
    manifest: Manifest,
}

/// A writer of a replica.
#[derive(Debug)]
pub struct Replicator<S> {
    store: S,
    key: SignerKey,
    /// A random number of this session.
    writer: u64,
    epoch: u64,
    /// The last serial that was used.
    serial: u64,
    /// The head; `None` before the first one.
    base: Option<Base>,
    /// True while a swap is under way, or the answer to one was lost.
    unsettled: bool,
    skipped: Option<Check>,
}

impl<S: Store> Replicator<S> {
    /// Begins to write to a replica, and takes it over from whoever wrote to it before. A store that is empty is
    /// claimed by the first head.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the log does not contain the replica's head; [`Error::OtherDatabase`],
    /// [`Error::Store`].
    pub async fn claim<L: Source>(store: S, source: &L, key: SignerKey, writer: u64) -> Result<Self> {
        Self::claim_skipping(store, source, key, writer, None).await
    }

    #[doc(hidden)]
    pub async fn claim_skipping<L: Source>(
        store: S,
        source: &L,
        key: SignerKey,
        writer: u64,
        skipped: Option<Check>,
    ) -> Result<Self> {
        let mut claiming = Self { store, key, writer, epoch: 1, serial: 0, base: None, unsettled: false, skipped };
        let mut last = StoreError::new("claim", head::KEY, "other writers claim it at the same time");
        for _ in 0..2 * ATTEMPTS {
            let found = match look(&claiming.store).await {
                Ok(found) => found,
                Err(Error::Store(error)) => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some((found, tag)) = found else {
                if claiming.unsettled {
                    // A read that is older than the claim.
                    continue;
                }
                return Ok(claiming);
            };
            let is_own = claiming.unsettled && found.writer == writer && found.epoch == claiming.epoch;
            claiming.check_contains(source, &found)?;
            let Some(manifest) = claiming.load(&found).await? else { continue };
            if is_own {
                claiming.settle_at(found, tag, manifest);
                return Ok(claiming);
            }
            claiming.epoch = found.epoch + u64::from(claiming.checks(Check::Epoch));
            claiming.serial = claiming.serial.max(found.serial) + 1;
            let next = RemoteHead { epoch: claiming.epoch, serial: claiming.serial, writer, ..found };
            claiming.unsettled = true;
            match claiming.store.swap(head::KEY, &next.sign(&claiming.key)?, Some(&tag)).await {
                Ok(Swapped::Stored(tag)) => {
                    claiming.settle_at(next, tag, manifest);
                    return Ok(claiming);
                }
                Ok(Swapped::Changed) => {}
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }

    /// The replica's head as this writer knows it.
    #[must_use]
    pub fn head(&self) -> Option<&RemoteHead> {
        self.base.as_ref().map(|base| &base.head)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The number of chunks that hold the log.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.manifest.chunks.len())
    }

    /// Moves the head to the end of the log, or by a step of at most a gigabyte towards it. When this returns
    /// [`Pushed::Moved`], a replica restored from now on has everything up to there.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another writer took over; [`Error::Store`], after which the next push continues; those of
    /// the log.
    pub async fn push<L: Source>(&mut self, source: &L) -> Result<Pushed> {
        let mut last = StoreError::new("replace", head::KEY, "it keeps changing");
        for _ in 0..ATTEMPTS {
            match self.try_push(source).await {
                Ok(Some(pushed)) => return Ok(pushed),
                Ok(None) => {}
                Err(Error::Store(error)) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last.into())
    }

    /// One attempt; `None` if the head was not where it was expected.
    async fn try_push<L: Source>(&mut self, source: &L) -> Result<Option<Pushed>> {
        self.settle(source).await?;
        let before = match &self.base {
            Some(base) => base.manifest.clone(),
            None => Manifest::empty(source.database(), source.page_size()),
        };
        let Some(plan) = plan::plan(source, &before, self.checks(Check::Rewrite))? else {
            return Ok(Some(Pushed::Current(before.head)));
        };
        if self.checks(Check::Serial) || self.serial == 0 {
            self.serial += 1;
        }
        let (manifest, mut stored_bytes) = self.write_chunks(source, plan, &before).await?;
        let encoded = manifest.encode();
        stored_bytes += encoded.len() as u64;
        let next = self.next_head(&manifest, &encoded);
        self.create(&next.manifest, &encoded).await?;
        let (head, from) = (manifest.head, before.head.position.0);
        if !self.swap(next, manifest).await? {
            return Ok(None);
        }
        let log_bytes = head.position.0.saturating_sub(from);
        let more = source.end() > head.position;
        Ok(Some(Pushed::Moved { head, log_bytes, stored_bytes, more }))
    }

    /// Writes the chunks that a plan needs. Returns the manifest, and the bytes written.
    async fn write_chunks<L: Source>(&mut self, source: &L, plan: Plan, before: &Manifest) -> Result<(Manifest, u64)> {
        let mut chunks = Vec::with_capacity(plan.parts.len());
        let mut stored = 0;
        for part in &plan.parts {
            let write = match part {
                Part::There(chunk) => {
                    chunks.push(chunk.clone());
                    continue;
                }
                Part::New(write) => write,
            };
            let log = source.read(write.first, write.end)?;
            let (bytes, hash) = chunk::encode(self.writer, self.serial, write.first, &log)?;
            let created = self.create(&chunk::key(&hash), &bytes).await;
            if self.checks(Check::Chunks) {
                created?;
            }
            stored += bytes.len() as u64;
            let (commit, time_us) = plan.last_commit(write.end, before);
            let fresh = if write.fresh == NOW { self.serial } else { write.fresh };
            let (first, end, len, erased) = (write.first, write.end, bytes.len() as u64, write.erased);
            chunks.push(ChunkRef { first, end, commit, time_us, len, erased, fresh, hash });
        }
        Ok((Manifest { chunks, ..plan.manifest }, stored))
    }

    fn next_head(&self, manifest: &Manifest, encoded: &[u8]) -> RemoteHead {
        let manifest_hash: Hash = blake3::hash(encoded).into();
        RemoteHead {
            database: manifest.database,
            head: manifest.head,
            time_us: manifest.time_us,
            size: manifest.tree.as_ref().map_or(0, |tree| tree.count()),
            root: manifest.tree.as_ref().map(|tree| tree.root()),
            epoch: self.epoch,
            serial: self.serial,
            writer: self.writer,
            manifest: manifest.key(self.epoch, self.serial, self.writer),
            manifest_hash,
        }
    }

    /// Swaps the head; false if another one is there.
    async fn swap(&mut self, next: RemoteHead, manifest: Manifest) -> Result<bool> {
        let bytes = next.sign(&self.key)?;
        let expected = self.base.as_ref().map(|base| base.tag.clone());
        self.unsettled = true;
        let swapped = self.store.swap(head::KEY, &bytes, expected.as_ref()).await;
        match swapped {
            Ok(Swapped::Stored(tag)) => {
                self.settle_at(next, tag, manifest);
                Ok(true)
            }
            Err(error) if self.checks(Check::Settle) => Err(error.into()),
            Err(_) => {
                let tag = expected.unwrap_or(Tag(String::new()));
                self.settle_at(next, tag, manifest);
                Ok(true)
            }
            Ok(Swapped::Changed) => Ok(false),
        }
    }

    fn settle_at(&mut self, head: RemoteHead, tag: Tag, manifest: Manifest) {
        self.serial = self.serial.max(head.serial);
        self.base = Some(Base { head, tag, manifest });
        self.unsettled = false;
    }

    /// Finds out where the head is after a swap whose answer was lost, or that found another head.
    async fn settle<L: Source>(&mut self, source: &L) -> Result<()> {
        if !self.unsettled {
            return Ok(());
        }
        let known = self.base.as_ref().map_or((0, 0), |base| (base.head.epoch, base.head.serial));
        for _ in 0..ATTEMPTS {
            let Some((found, tag)) = look(&self.store).await? else {
                if self.base.is_none() {
                    self.unsettled = false;
                    return Ok(());
                }
                continue;
            };
            // An older head than the known one is a stale read.
            if (found.epoch, found.serial) < known {
                continue;
            }
            let is_own = found.epoch == self.epoch && found.writer == self.writer;
            if !is_own && self.checks(Check::Fence) {
                let (commit, position) = (found.head.commit.0, found.head.position.0);
                return Err(Error::Fenced { by: found.by(), epoch: found.epoch, commit, position });
            }
            if known == (found.epoch, found.serial) {
                self.unsettled = false;
                return Ok(());
            }
            self.check_contains(source, &found)?;
            if let Some(manifest) = self.load(&found).await? {
                self.settle_at(found, tag, manifest);
                return Ok(());
            }
        }
        Err(StoreError::new("read", head::KEY, "only old heads are read").into())
    }

    /// Removes the objects that no head names and that are at least `grace_s` seconds old. It moves the head first.
    ///
    /// # Errors
    /// As [`Replicator::push`].
    pub async fn sweep<L: Source>(&mut self, source: &L, grace_s: u64) -> Result<Swept> {
        self.settle(source).await?;
        let mut listed = self.list().await?;
        if self.checks(Check::Prove) && !self.touch(source).await? {
            return Ok(Swept::default());
        }
        if !self.checks(Check::ListFirst) {
            listed = self.list().await?;
        }
        let Some(base) = &self.base else { return Ok(Swept::default()) };
        let mut swept = Swept::default();
        for object in listed {
            let is_live = object.key == base.head.manifest
                || base.manifest.chunks.iter().any(|it| chunk::key(&it.hash) == object.key);
            if !is_live && object.age_s >= grace_s {
                self.store.delete(&object.key).await?;
                swept = Swept { objects: swept.objects + 1, bytes: swept.bytes + object.len };
            }
        }
        Ok(swept)
    }

    async fn list(&self) -> Result<Vec<crate::store::Listed>> {
        let mut listed = self.store.list("chunks/").await?;
        listed.extend(self.store.list("manifests/").await?);
        Ok(listed)
    }

    /// Swaps the head for one of the same content; false if there is none, or it is not settled where it is.
    async fn touch<L: Source>(&mut self, source: &L) -> Result<bool> {
        let Some(base) = self.base.clone() else { return Ok(false) };
        self.serial += 1;
        let next = RemoteHead { serial: self.serial, ..base.head };
        match self.swap(next, base.manifest).await {
            Ok(true) => Ok(true),
            Ok(false) | Err(Error::Store(_)) => {
                self.settle(source).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes an object that no other writer writes.
    async fn create(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.store.create(key, bytes).await {
                // An earlier attempt stored it.
                Ok(Created::Stored | Created::Exists) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| StoreError::new("create", key, "no attempt")).into())
    }

    fn check_contains<L: Source>(&self, source: &L, found: &RemoteHead) -> Result<()> {
        if found.database != source.database() {
            let (expected, found) = (origin(&source.database()), origin(&found.database));
            return Err(Error::OtherDatabase { expected, found });
        }
        if !self.checks(Check::Contains) || source.contains(found.head)? {
            return Ok(());
        }
        let (commit, position) = (found.head.commit.0, found.head.position.0);
        let why = "it ends before, or continues another way".to_owned();
        Err(Error::Diverged { commit, position, by: found.by(), why })
    }

    /// The manifest of a head; `None` if it was removed since.
    async fn load(&self, head: &RemoteHead) -> Result<Option<Manifest>> {
        if let Some(base) = self.base.as_ref().filter(|base| base.head.manifest_hash == head.manifest_hash) {
            return Ok(Some(base.manifest.clone()));
        }
        load(&self.store, head).await
    }

    fn checks(&self, check: Check) -> bool {
        self.skipped != Some(check)
    }
}

/// Reads the head; `None` if there is none.
///
/// # Errors
/// [`Error::Store`]; [`Error::Damaged`], [`Error::Signature`].
pub async fn look<S: Store>(store: &S) -> Result<Option<(RemoteHead, Tag)>> {
    match store.get(head::KEY, None).await? {
        Got::Object(bytes, tag) => Ok(Some((RemoteHead::open(&bytes, None)?, tag))),
        Got::Missing | Got::Unchanged => Ok(None),
    }
}

/// Reads the manifest of a head; `None` if there is none of this name.
///
/// # Errors
/// [`Error::Store`], [`Error::Damaged`].
pub async fn load<S: Store>(store: &S, head: &RemoteHead) -> Result<Option<Manifest>> {
    match store.get(&head.manifest, None).await? {
        Got::Object(bytes, _) => {
            let manifest = Manifest::decode(&head.manifest, &bytes, &head.manifest_hash)?;
            if manifest.head != head.head || manifest.database != head.database {
                return Err(Error::damaged(&head.manifest, "it is that of another head"));
            }
            Ok(Some(manifest))
        }
        Got::Missing | Got::Unchanged => Ok(None),
    }
}
