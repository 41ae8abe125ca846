//! The files of a log's copy: written as a replica says, and proved before anybody reads them.
//!
//! 1. A file has its full length from the beginning, with zeros where nothing was copied.
//! 2. Bytes are written and synced first. Then the log is read from the last commit that was shown to the new one, with
//!    all its checks. Only then does the status block say that it is durable, which is what readers go by.
//! 3. Bytes that readers may read are overwritten only to erase a record, while no reader pins the log.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions as FileOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holotype_storage::Error as LogError;
use holotype_storage::lock::Lock;
use holotype_storage::log::{Head, Log, Lsn, OpenOptions, Span, write_floor};
use holotype_storage::proof::Frontier;
use holotype_storage::vfs::{OsVfs, Vfs};

use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::source::Sink;

/// A copy of a log in a database's directory.
#[derive(Debug)]
pub struct LogCopy {
    dir: PathBuf,
    spans: Vec<Span>,
    touched: BTreeSet<u64>,
    /// The commit up to which readers see the copy.
    shown: Head,
    lock: Option<Lock>,
}

/// A commit of a copy, and the tree up to it.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) head: Head,
    pub(crate) time_us: i64,
}

impl LogCopy {
    /// A copy in this directory, which is created where it is missing, up to a commit that it already has.
    ///
    /// # Errors
    /// [`Error::Io`]; those of LOCK.
    pub fn open(dir: &Path, shown: Head) -> Result<Self> {
        for made in [dir.to_owned(), dir.join("log")] {
            fs::create_dir_all(&made).map_err(Error::io(&made, "create"))?;
        }
        Ok(Self { dir: dir.to_owned(), spans: Vec::new(), touched: BTreeSet::new(), shown, lock: None })
    }

    /// Holds the writer's lock of the copy, whose status block tells readers how far it goes.
    ///
    /// # Errors
    /// Those of LOCK.
    pub fn held(self) -> Result<Self> {
        let lock = Lock::writer(&OsVfs, &self.dir.join("LOCK"))?;
        Ok(Self { lock: Some(lock), ..self })
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join("log").join(format!("{number:010}.log"))
    }

    fn open_file(&self, number: u64) -> Result<File> {
        let path = self.path(number);
        FileOptions::new().write(true).open(&path).map_err(Error::io(&path, "open"))
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Takes files that were written otherwise.
    pub(crate) fn take_spans(&mut self, spans: Vec<Span>) {
        self.spans = spans;
    }

    /// Removes the files that begin at or after a position: nothing of them was copied.
    pub(crate) fn remove_behind(&mut self, end: Lsn) -> Result<()> {
        for span in self.spans.extract_if(.., |span| span.first >= end) {
            let path = self.dir.join("log").join(format!("{:010}.log", span.number));
            fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
            self.touched.remove(&span.number);
        }
        Ok(())
    }

    /// Syncs the files that were written.
    pub(crate) fn sync(&mut self) -> Result<()> {
        for number in std::mem::take(&mut self.touched) {
            let path = self.path(number);
            self.open_file(number)?.sync_all().map_err(Error::io(&path, "sync"))?;
        }
        let dir = self.dir.join("log");
        File::open(&dir).and_then(|dir| dir.sync_all()).map_err(Error::io(&dir, "sync"))
    }

    /// Zeros everything after a position, and removes the files behind it.
    pub(crate) fn cut(&mut self, end: Lsn) -> Result<()> {
        for span in std::mem::take(&mut self.spans) {
            let path = self.path(span.number);
            if span.first >= end {
                fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
                continue;
            }
            let kept = (end.0 - span.first.0).min(span.len);
            let file = self.open_file(span.number)?;
            file.set_len(kept).and_then(|()| file.set_len(span.len)).map_err(Error::io(&path, "cut"))?;
            self.touched.insert(span.number);
            self.spans.push(span);
        }
        self.sync()
    }

    /// Reads the whole copy with all checks. Returns every commit, and the root of the tree, which is known where the
    /// log has its beginning.
    pub(crate) fn prove(&self, commits: &mut dyn FnMut(Commit)) -> Result<(Head, Option<Frontier>)> {
        let dir = self.dir.join("log");
        let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
        let options = OpenOptions { read_only: true, alone: true, ..OpenOptions::default() };
        let mut tree = Frontier::default();
        let opened = Log::open(vfs, &dir, None, &options, &mut |transaction| {
            transaction.leaves.iter().for_each(|leaf| tree.push(leaf.hash));
            commits(Commit { head: transaction.head, time_us: transaction.time_us });
            Ok::<(), LogError>(())
        });
        let (log, report) = opened?;
        match report.damage {
            Some(damage) => Err(LogError::Damaged(damage).into()),
            None => Ok((log.head(), log.floor().is_none().then_some(tree))),
        }
    }
}

impl Sink for LogCopy {
    fn prepare(&mut self, manifest: &Manifest) -> Result<()> {
        for span in &manifest.spans {
            let path = self.path(span.number);
            let made = FileOptions::new().create(true).truncate(false).write(true).open(&path);
            let file = made.map_err(Error::io(&path, "create"))?;
            let len = file.metadata().map_err(Error::io(&path, "measure"))?.len();
            if len != span.len {
                file.set_len(span.len).map_err(Error::io(&path, "lengthen"))?;
                self.touched.insert(span.number);
            }
        }
        self.spans.clone_from(&manifest.spans);
        Ok(())
    }

    fn write(&mut self, first: u64, bytes: &[u8]) -> Result<()> {
        let end = first + bytes.len() as u64;
        // Readers may read what is there already.
        let lock = self.dir.join("LOCK");
        let _unpinned = match &self.lock {
            Some(_) if first < self.shown.position.0 => Some(Lock::unpinned(&OsVfs, &lock)?),
            _ => None,
        };
        for span in self.spans.clone() {
            let (from, until) = (first.max(span.first.0), end.min(span.first.0 + span.len));
            if from >= until {
                continue;
            }
            let part = bytes.get((from - first) as usize..(until - first) as usize).unwrap_or_default();
            let path = self.path(span.number);
            let file = self.open_file(span.number)?;
            file.write_all_at(part, from - span.first.0).map_err(Error::io(&path, "write"))?;
            self.touched.insert(span.number);
        }
        Ok(())
    }

    fn show(&mut self, manifest: &Manifest) -> Result<()> {
        let (dir, vfs): (_, Arc<dyn Vfs>) = (self.dir.join("log"), Arc::new(OsVfs));
        if let Some(floor) = manifest.parsed_floor() {
            write_floor(vfs.as_ref(), &dir, &floor, &manifest.database)?;
        }
        self.sync()?;
        let from = (self.shown.position > Lsn(manifest.first())).then_some(self.shown);
        let options = OpenOptions {
            database: Some(manifest.database),
            read_only: true,
            durable_hint: Some(manifest.head.position),
            ..OpenOptions::default()
        };
        let opened = Log::open(vfs, &dir, from, &options, &mut |_| Ok::<(), LogError>(()));
        let (log, report) = opened?;
        if let Some(damage) = report.damage {
            return Err(LogError::Damaged(damage).into());
        }
        if log.head() != manifest.head {
            let (found, expected) = (log.head().commit, manifest.head.commit);
            return Err(Error::damaged("manifest", format!("the log ends at commit {found}, not at {expected}")));
        }
        if let Some(lock) = &mut self.lock {
            lock.belongs_to(manifest.database)?;
            lock.set_durable(manifest.head.position)?;
        }
        self.shown = manifest.head;
        self.remove_older(manifest)
    }
}

impl LogCopy {
    /// Removes the files before the beginning of a truncated log.
    fn remove_older(&self, manifest: &Manifest) -> Result<()> {
        let Some(floor) = manifest.parsed_floor() else { return Ok(()) };
        let mut number = floor.segment;
        while number > 1 {
            number -= 1;
            match fs::remove_file(self.path(number)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                removed => removed.map_err(Error::io(&self.path(number), "remove"))?,
            }
        }
        Ok(())
    }
}
