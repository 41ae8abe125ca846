//! Places of replicas, by their addresses: `file:///folder`, a path, or `s3://bucket/prefix`.

use crate::error::{Error, Result};
use crate::local::LocalFolder;
use crate::store::{Created, Got, Listed, Store, StoreError, Swapped, Tag};

/// A store that an address names.
#[derive(Debug)]
pub enum Place {
    /// A folder of this machine.
    Folder(LocalFolder),
}

impl Place {
    /// The store at an address.
    ///
    /// # Errors
    /// [`Error::Unfit`] for an address of another kind.
    pub fn open(address: &str) -> Result<Self> {
        match address.split_once("://") {
            Some(("file", path)) if path.starts_with('/') => Ok(Self::Folder(LocalFolder::new(path))),
            None => Ok(Self::Folder(LocalFolder::new(address))),
            Some((scheme, _)) => {
                let why = format!("{scheme}:// is not an address of a store; expected a path, or file:///PATH");
                Err(Error::Unfit { place: address.to_owned(), why })
            }
        }
    }

    /// True if the store is a folder of this machine without a replica.
    #[must_use]
    pub fn is_other_folder(&self) -> bool {
        match self {
            Self::Folder(folder) => !folder.is_replica(),
        }
    }
}

impl Store for Place {
    fn place(&self) -> String {
        match self {
            Self::Folder(folder) => folder.place(),
        }
    }

    async fn get(&self, key: &str, unless: Option<&Tag>) -> Result<Got, StoreError> {
        match self {
            Self::Folder(folder) => folder.get(key, unless).await,
        }
    }

    async fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        match self {
            Self::Folder(folder) => folder.create(key, bytes).await,
        }
    }

    async fn swap(&self, key: &str, bytes: &[u8], expected: Option<&Tag>) -> Result<Swapped, StoreError> {
        match self {
            Self::Folder(folder) => folder.swap(key, bytes, expected).await,
        }
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => folder.delete(key).await,
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        match self {
            Self::Folder(folder) => folder.list(prefix).await,
        }
    }
}
