//! The place that holds a replica.
//!
//! 1. `create` stores an object unless there is one of that name, and `swap` replaces an object only where its tag is
//!    the expected one. A store that ignores these conditions is refused ([`crate::probe`]).
//! 2. A tag changes whenever the bytes change. It may repeat when bytes repeat (an MD5 does), so no head repeats.
//! 3. An error leaves open whether the request was carried out. Reads may be stale.

use std::fmt;

/// The version of an object's content, opaque.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub String);

/// The answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// The bytes and their tag.
    Object(Vec<u8>, Tag),
    /// The object still has the tag that was named.
    Unchanged,
    /// There is none.
    Missing,
}

/// The answer to a create-only write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It was stored.
    Stored,
    /// There is an object of this name.
    Exists,
}

/// The answer to a conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// It was stored, and has this tag now.
    Stored(Tag),
    /// The object has another tag than the expected one.
    Changed,
}

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub key: String,
    /// Its length in bytes.
    pub len: u64,
    /// The seconds since it was written.
    pub age_s: u64,
}

/// A request that failed, or whose answer was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// The request, for a person.
    pub request: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.request, self.why)
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// An error of a request about an object.
    pub fn new(request: &str, key: &str, why: impl fmt::Display) -> Self {
        Self { request: format!("{request} {key}"), why: why.to_string() }
    }
}

/// A place that holds replicas.
pub trait Store {
    /// A name of the place, for a person.
    fn place(&self) -> String;

    /// Reads an object. With a tag, only if it has another one.
    ///
    /// # Errors
    /// [`StoreError`].
    fn get(&self, key: &str, unless: Option<&Tag>) -> impl Future<Output = Result<Got, StoreError>>;

    /// Writes an object unless it exists.
    ///
    /// # Errors
    /// [`StoreError`]: it may be written all the same.
    fn create(&self, key: &str, bytes: &[u8]) -> impl Future<Output = Result<Created, StoreError>>;

    /// Writes an object if it has this tag; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]: it may be written all the same, even later.
    fn swap(
        &self,
        key: &str,
        bytes: &[u8],
        expected: Option<&Tag>,
    ) -> impl Future<Output = Result<Swapped, StoreError>>;

    /// Removes an object; one that is missing counts as removed.
    ///
    /// # Errors
    /// [`StoreError`].
    fn delete(&self, key: &str) -> impl Future<Output = Result<(), StoreError>>;

    /// The objects whose names begin with a prefix.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<Listed>, StoreError>>;
}

impl<S: Store> Store for &S {
    fn place(&self) -> String {
        (**self).place()
    }

    fn get(&self, key: &str, unless: Option<&Tag>) -> impl Future<Output = Result<Got, StoreError>> {
        (**self).get(key, unless)
    }

    fn create(&self, key: &str, bytes: &[u8]) -> impl Future<Output = Result<Created, StoreError>> {
        (**self).create(key, bytes)
    }

    fn swap(
        &self,
        key: &str,
        bytes: &[u8],
        expected: Option<&Tag>,
    ) -> impl Future<Output = Result<Swapped, StoreError>> {
        (**self).swap(key, bytes, expected)
    }

    fn delete(&self, key: &str) -> impl Future<Output = Result<(), StoreError>> {
        (**self).delete(key)
    }

    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<Listed>, StoreError>> {
        (**self).list(prefix)
    }
}
