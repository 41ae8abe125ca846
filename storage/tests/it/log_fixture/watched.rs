//! A simulated disk whose reads, writes and syncs a test may count, hold up or split.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use holotype_storage::vfs::{LockKind, Mapping, OpenMode, SimVfs, Vfs, VfsFile};

/// Replacements of calls on a file; by default the calls themselves.
pub trait Watch: std::fmt::Debug + Send + Sync + 'static {
    fn read(&self, file: &dyn VfsFile, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_at(bytes, offset)
    }
    fn write(&self, file: &dyn VfsFile, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_at(bytes, offset)
    }
    fn sync(&self, file: &dyn VfsFile, _path: &Path) -> io::Result<()> {
        file.sync()
    }
}

#[derive(Debug)]
pub struct Watched<W> {
    pub sim: SimVfs,
    pub watch: Arc<W>,
}

#[derive(Debug)]
struct WatchedFile<W> {
    path: Box<Path>,
    file: Arc<dyn VfsFile>,
    watch: Arc<W>,
}

impl<W: Watch> Vfs for Watched<W> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let (file, watch) = (self.sim.open(path, mode)?, Arc::clone(&self.watch));
        Ok(Arc::new(WatchedFile { path: path.into(), file, watch }))
    }
    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        self.sim.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.sim.rename(from, to)
    }
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.sim.rename_dir(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.sim.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.sim.remove_dir(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.sim.list(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.sim.sync_dir(dir)
    }
    fn map(&self, path: &Path) -> io::Result<Mapping> {
        self.sim.map(path)
    }
    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        self.sim.is_symlink(path)
    }

    fn is_network(&self, path: &Path) -> io::Result<bool> {
        self.sim.is_network(path)
    }
}

impl<W: Watch> VfsFile for WatchedFile<W> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.watch.read(&*self.file, bytes, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.watch.write(&*self.file, bytes, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.watch.sync(&*self.file, &self.path)
    }
    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        self.file.try_lock(range, kind)
    }
    fn lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<()> {
        self.file.lock(range, kind)
    }
    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        self.file.unlock(range)
    }
    fn is_locked(&self, range: Range<u64>) -> io::Result<bool> {
        self.file.is_locked(range)
    }
}
