//! The open files of a log: only the most recently used, so that a log of thousands of segments does not keep thousands
//! of files open.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::vfs::{OpenMode, Vfs, VfsFile};

/// The greatest number of open files: 4 GiB of the largest segments.
const MAX_OPEN: usize = 64;

/// Shared by the segments of a log. An evicted file stays usable for its present users.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    vfs: Arc<dyn Vfs>,
    mode: OpenMode,
    /// Files with their segment numbers, the most recently used last.
    files: Mutex<VecDeque<(u64, Arc<dyn VfsFile>)>>,
}

impl OpenFiles {
    pub(crate) fn new(vfs: Arc<dyn Vfs>, mode: OpenMode) -> Self {
        Self { vfs, mode, files: Mutex::default() }
    }

    /// The file system of the files.
    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    /// An empty cache with the same file system and mode.
    pub(crate) fn like(other: &Self) -> Self {
        Self::new(Arc::clone(&other.vfs), other.mode)
    }

    /// The numbers of the files in `dir`, ascending.
    pub(crate) fn numbers(&self, dir: &Path, number_of: impl Fn(&str) -> Option<u64>) -> Result<Vec<u64>> {
        let names = self.vfs.list(dir).map_err(Error::io(dir, "list"))?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The file of a segment.
    pub(crate) fn get(&self, number: u64, path: &Path) -> Result<Arc<dyn VfsFile>> {
        let mut files = self.files();
        if let Some(at) = files.iter().rposition(|(held, _)| *held == number)
            && let Some(found) = files.remove(at)
        {
            let file = Arc::clone(&found.1);
            files.push_back(found);
            return Ok(file);
        }
        drop(files);
        let file = self.vfs.open(path, self.mode).map_err(Error::io(path, "open"))?;
        self.put(number, Arc::clone(&file));
        Ok(file)
    }

    /// Adds an open file for a segment.
    pub(crate) fn put(&self, number: u64, file: Arc<dyn VfsFile>) {
        let mut files = self.files();
        files.retain(|(held, _)| *held != number);
        if files.len() >= MAX_OPEN {
            files.pop_front();
        }
        files.push_back((number, file));
    }

    fn files(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<dyn VfsFile>)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::SimVfs;

    #[test]
    fn the_last_used_stay_open() {
        let sim = SimVfs::new();
        let path = |number: u64| std::path::PathBuf::from(format!("/{number}"));
        let count = MAX_OPEN as u64 + 10;
        for number in 0..count {
            sim.open(&path(number), OpenMode::CreateNew).unwrap();
        }
        let files = OpenFiles::new(Arc::new(sim.clone()), OpenMode::Read);
        for number in 0..count {
            files.get(number, &path(number)).unwrap();
            files.get(0, &path(0)).unwrap();
        }
        let before = sim.calls();
        files.get(0, &path(0)).unwrap();
        files.get(count - 1, &path(count - 1)).unwrap();
        assert_eq!(sim.calls(), before, "these are held open");
        files.get(1, &path(1)).unwrap();
        assert_eq!(sim.calls(), before + 1, "this had to be opened again");
        assert_eq!(files.files().len(), MAX_OPEN);
    }
}
