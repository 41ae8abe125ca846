//! The names of a simulated disk with the numbers of their files, shared copy-on-write, each with its hash.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path that is cheap to copy; ordered by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    path: Arc<OsStr>,
    hash: u64,
}

impl Name {
    pub(super) fn new(path: &Path) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(path.as_os_str().as_encoded_bytes());
        Self { path: path.as_os_str().into(), hash: hasher.finish() }
    }

    pub(super) fn path(&self) -> &Path {
        Path::new(&*self.path)
    }
}

/// Names with the numbers of their files, in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Arc<Vec<(Name, usize)>>);

impl Names {
    fn find(&self, path: &Path) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| (*name.path).cmp(path.as_os_str()))
    }

    pub(super) fn get(&self, path: &Path) -> Option<usize> {
        self.find(path).ok().map(|at| self.0[at].1)
    }

    pub(super) fn insert(&mut self, name: Name, file: usize) {
        match self.find(name.path()) {
            Ok(at) => Arc::make_mut(&mut self.0)[at].1 = file,
            Err(at) => Arc::make_mut(&mut self.0).insert(at, (name, file)),
        }
    }

    pub(super) fn remove(&mut self, path: &Path) {
        if let Ok(at) = self.find(path) {
            Arc::make_mut(&mut self.0).remove(at);
        }
    }

    /// Gives each file the path that `moved` returns for its name, if it returns one.
    pub(super) fn rename(&mut self, moved: &impl Fn(&Path) -> Option<PathBuf>) {
        let names = self.0.iter().map(|(name, file)| match moved(name.path()) {
            Some(path) => (Name::new(&path), *file),
            None => (name.clone(), *file),
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        self.0 = Arc::new(names);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, usize)> {
        self.0.iter().map(|(name, file)| (name.path(), *file))
    }

    pub(super) fn files(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|(_, file)| *file)
    }

    /// The hashes of the names, each with its file.
    pub(super) fn hashes(&self) -> impl Iterator<Item = (u64, usize)> {
        self.0.iter().map(|(name, file)| (name.hash, *file))
    }

    /// The same names, of files numbered from 0 in this order.
    pub(super) fn renumbered(&self) -> Self {
        match self.files().enumerate().all(|(at, file)| at == file) {
            true => self.clone(),
            false => Self(Arc::new(self.0.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect())),
        }
    }
}
