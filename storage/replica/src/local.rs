//! A store in a folder of this machine.
//!
//! File systems rename without conditions, so a lock on the file `lock` stands for them: whoever compares and renames
//! holds it. An object is written under another name, synced and renamed, so that it is whole or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::hex;
use crate::store::{Created, Got, Listed, Store, StoreError, Swapped, Tag};

/// The extension of an object that is being written.
const UNFINISHED: &str = "unfinished";
const LOCK: &str = "lock";

/// A folder.
#[derive(Clone, Debug)]
pub struct LocalFolder {
    dir: PathBuf,
}

impl LocalFolder {
    /// A store in this folder, which is created with the first object.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// True if the folder has the head of a replica.
    #[must_use]
    pub fn is_replica(&self) -> bool {
        self.dir.join(crate::head::KEY).is_file() && self.dir.join("manifests").is_dir()
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn read(&self, key: &str) -> io::Result<Option<(Vec<u8>, Tag)>> {
        let mut bytes = Vec::new();
        match File::open(self.dir.join(key)) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let tag = Tag(hex::encode(blake3::hash(&bytes).as_bytes()));
        Ok(Some((bytes, tag)))
    }

    fn locked(&self) -> io::Result<File> {
        fs::create_dir_all(&self.dir)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(self.dir.join(LOCK))?;
        file.lock()?;
        Ok(file)
    }

    /// Writes an object under another name, and gives it its own while `may` allows that under the lock.
    fn put(&self, key: &str, bytes: &[u8], may: impl FnOnce(&Self) -> io::Result<bool>) -> io::Result<bool> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = self.dir.join(key);
        let parent = path.parent().unwrap_or(&self.dir).to_owned();
        create_dir(&parent)?;
        let own = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let unfinished = path.with_extension(format!("{own}.{UNFINISHED}"));
        let written = File::create(&unfinished).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        let done = written.and_then(|()| {
            let _locked = self.locked()?;
            if !may(self)? {
                return Ok(false);
            }
            fs::rename(&unfinished, &path)?;
            sync_dir(&parent)?;
            Ok(true)
        });
        if !matches!(done, Ok(true)) {
            // Best effort: a sweep removes what is left.
            let _ = fs::remove_file(&unfinished);
        }
        done
    }

    fn walk(&self, dir: &Path, listed: &mut Vec<Listed>) -> io::Result<()> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if metadata.is_dir() {
                self.walk(&path, listed)?;
            } else if let Some(key) = path.strip_prefix(&self.dir).ok().and_then(Path::to_str) {
                let age = SystemTime::now().duration_since(metadata.modified()?).unwrap_or_default();
                listed.push(Listed { key: key.to_owned(), len: metadata.len(), age_s: age.as_secs() });
            }
        }
        Ok(())
    }
}

/// Creates a directory and its missing parents durably.
fn create_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() || dir.as_os_str().is_empty() {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(Path::new(""));
    create_dir(parent)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    sync_dir(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

impl Store for LocalFolder {
    fn place(&self) -> String {
        self.dir.display().to_string()
    }

    async fn get(&self, key: &str, unless: Option<&Tag>) -> Result<Got, StoreError> {
        match self.read(key).map_err(|error| StoreError::new("read", key, error))? {
            Some((_, tag)) if unless == Some(&tag) => Ok(Got::Unchanged),
            Some((bytes, tag)) => Ok(Got::Object(bytes, tag)),
            None => Ok(Got::Missing),
        }
    }

    async fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        let missing = |folder: &Self| Ok(!folder.dir.join(key).exists());
        let stored = self.put(key, bytes, missing).map_err(|error| StoreError::new("create", key, error))?;
        Ok(if stored { Created::Stored } else { Created::Exists })
    }

    async fn swap(&self, key: &str, bytes: &[u8], expected: Option<&Tag>) -> Result<Swapped, StoreError> {
        let expects = |folder: &Self| Ok(folder.read(key)?.map(|(_, tag)| tag).as_ref() == expected);
        let stored = self.put(key, bytes, expects).map_err(|error| StoreError::new("replace", key, error))?;
        let tag = Tag(hex::encode(blake3::hash(bytes).as_bytes()));
        Ok(if stored { Swapped::Stored(tag) } else { Swapped::Changed })
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match fs::remove_file(self.dir.join(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::new("remove", key, error)),
            _ => Ok(()),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        let mut listed = Vec::new();
        // Prefixes end with a slash: they name folders.
        self.walk(&self.dir.join(prefix), &mut listed).map_err(|error| StoreError::new("list", prefix, error))?;
        listed.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(listed)
    }
}
