//! The log of a database on this machine, read beside its writers.
//!
//! Only the log is opened, from a known commit on where there is one. So it costs little, whatever the database's size,
//! and changes nothing. Only what writers made durable is read.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holotype_storage::Error as LogError;
use holotype_storage::features::Access;
use holotype_storage::lock::{Lock, Pin};
use holotype_storage::log::{Floor, Growth, Head, Log, Lsn, OpenOptions, Span};
use holotype_storage::vfs::{OsVfs, Vfs};

use crate::error::{Error, Result};
use crate::source::Source;

/// The log of a database.
#[derive(Debug)]
pub struct LocalLog {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    lock: Lock,
    log: Log,
}

impl LocalLog {
    /// Opens the log of the database in `dir`. With a commit that it contains, opening reads only what follows it.
    ///
    /// # Errors
    /// Those of the log, among them damage.
    pub fn open(dir: &Path, from: Option<Head>) -> Result<Self> {
        let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
        let lock_path = dir.join("LOCK");
        if !dir.join("log").is_dir() {
            let source = std::io::Error::new(std::io::ErrorKind::NotFound, "there is no database");
            return Err(Error::io(dir, "open")(source));
        }
        let mut lock = Lock::reader(vfs.as_ref(), &lock_path)?;
        let database = Log::identify(vfs.as_ref(), &dir.join("log"), Access::Read)?;
        if let Some(database) = database {
            lock.belongs_to(database)?;
        }
        let opened = Self::open_log(&vfs, dir, &lock, from);
        let log = match (opened, from) {
            // The log of another continuation, or one that ends before: the caller asks what it contains.
            (Err(Error::Log(LogError::CheckpointMismatch { .. })), Some(_)) => Self::open_log(&vfs, dir, &lock, None)?,
            (opened, _) => opened?,
        };
        Ok(Self { vfs, dir: dir.to_owned(), lock, log })
    }

    fn open_log(vfs: &Arc<dyn Vfs>, dir: &Path, lock: &Lock, from: Option<Head>) -> Result<Log> {
        let status = lock.status()?;
        let beside_writer = lock.has_other_writer()?;
        let mut durable = status.map(|status| status.durable);
        if beside_writer {
            // A writer may cut off what it has not declared durable.
            durable = durable.max(Some(Lsn(1)));
        }
        let options = OpenOptions {
            read_only: true,
            durable_hint: durable,
            alone: !beside_writer,
            closed_hint: status.is_some_and(|status| status.closed),
            ..OpenOptions::default()
        };
        let opened = Log::open(Arc::clone(vfs), &dir.join("log"), from, &options, &mut |_| Ok::<(), LogError>(()));
        let (log, report) = opened?;
        match report.damage {
            Some(damage) => Err(LogError::Damaged(damage).into()),
            None => Ok(log),
        }
    }

    /// Reads what writers made durable since. Returns true if there is anything.
    ///
    /// # Errors
    /// Those of the log.
    pub fn refresh(&self) -> Result<bool> {
        let durable = self.lock.status()?.map_or(Lsn(0), |status| status.durable);
        let head = self.log.head();
        if durable <= self.log.end() {
            return Ok(false);
        }
        let from = (head != Head::default()).then_some(head);
        self.log.follow(from, durable, &mut |_| Ok::<(), LogError>(()))?;
        Ok(self.log.head() != head)
    }

    /// The last durable commit.
    #[must_use]
    pub fn head(&self) -> Head {
        self.log.head()
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The directory of the database.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Keeps writers from erasing records until the pin is dropped.
    ///
    /// # Errors
    /// [`Error::Log`].
    pub fn pin(&self) -> Result<Pin> {
        Ok(Lock::pin(self.vfs.as_ref(), &self.dir.join("LOCK"))?)
    }
}

impl Source for LocalLog {
    fn database(&self) -> [u8; 16] {
        self.log.database()
    }

    fn page_size(&self) -> u32 {
        self.log.page_size()
    }

    fn floor(&self) -> Option<Floor> {
        // The floor as it is: the log may have been truncated since it was opened.
        let end = self.log.head().position;
        let now = Log::floor_in(self.vfs.as_ref(), self.log.dir()).ok().flatten();
        now.filter(|floor| floor.until.position <= end).or(self.log.floor())
    }

    fn contains(&self, head: Head) -> Result<bool> {
        Ok(head == Head::default() || self.log.contains(head)?)
    }

    fn spans(&self, end: Lsn) -> Vec<Span> {
        let mut spans = self.log.spans(end);
        if let Some(floor) = self.floor() {
            spans.retain(|span| span.number >= floor.segment);
        }
        spans
    }

    fn end(&self) -> Lsn {
        self.log.head().position
    }

    fn growth(&self, from: Option<Head>, step: &mut dyn FnMut(Growth) -> ControlFlow<()>) -> Result<()> {
        Ok(self.log.growth(from, step)?)
    }

    fn read(&self, first: u64, end: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (end - first) as usize];
        let _pin = self.pin()?;
        self.log.read_bytes(Lsn(first), &mut bytes)?;
        Ok(bytes)
    }
}
