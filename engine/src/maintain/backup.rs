//! Backups: a copy of the database as of one commit, while writers go on.
//!
//! A writer first writes a checkpoint and copies its files with the log up to there, so that the copy opens at once;
//! later commits are not in it. A process that only reads copies only the log: the first opening of the copy for
//! writing rebuilds the derived files. Nothing is erased from the log while it is copied: a `forget` waits.
//!
//! 1. The copy has the same database id, the same head and so the same content.
//! 2. The log's first file gets its name last: an unfinished copy does not open.
//! 3. A backup never overwrites anything, and a failed one leaves nothing behind.

use crate::core::files::Files;
use crate::core::handle::Holotype;
use crate::derive::checkpoint;
use crate::records::tables::{self, ManifestRow};
use crate::{Error, Result};
use holotype_storage::codec;
use holotype_storage::lock::Lock;
use holotype_storage::log::{Head, Log, OpenOptions};
use holotype_storage::overlay::View;
use holotype_storage::vfs::OpenMode;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// The length of one step of copying a derived file.
const COPY_LEN: u64 = 1 << 20;

/// The content of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Its last commit.
    pub head: Head,
    /// Its length in bytes.
    pub bytes: u64,
    /// True if it has derived files; otherwise its first opening rebuilds them.
    pub derived: bool,
}

impl Holotype {
    /// Copies the database as of its newest commit to an unused path, while others continue to write, and verifies the
    /// log of the copy. `progress` receives the bytes done and the total.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::Invalid`] for a path within the database; [`Error::Damaged`] when the log is; errors
    /// of the file systems.
    pub fn backup(&self, dest: impl AsRef<Path>, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupReport> {
        let core = &self.core;
        if let Some(detail) = &core.report.damage {
            return Err(Error::Damaged { detail: detail.clone() });
        }
        let to = Files::new(Arc::clone(&core.files.vfs), dest.as_ref());
        core.files.refuse_within(&to.dir)?;
        match to.vfs.create_dir(&to.dir) {
            Ok(true) => {}
            Ok(false) => return Err(Error::Exists { path: to.dir }),
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
                return Err(Error::Exists { path: to.dir });
            }
            Err(source) => return Err(Error::File { path: to.dir, source }),
        }
        let done = self.copy_to(&to, progress);
        if done.is_err() {
            // This call created the directory, so all of its content is of the failed copy. Best effort: the first
            // failure is reported, not a failure to remove.
            let _ = to.remove_all();
        }
        done
    }

    fn copy_to(&self, to: &Files, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupReport> {
        let core = &self.core;
        core.lock.check_process()?;
        let _pin = Lock::pin(core.files.vfs.as_ref(), &core.files.lock())?;
        let mut report = BackupReport { head: Head::default(), bytes: 0, derived: !core.options.read_only };
        if report.derived {
            checkpoint::run(core)?;
            let _turn = core.checkpointer.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let _maintenance = core.maintain()?;
            (report.head, report.bytes) = self.copy_derived(to)?;
        } else {
            report.head = self.head();
            to.create_dirs()?;
        }
        let mut copied = 0;
        core.log.copy_to(to.vfs.as_ref(), &to.log_dir(), report.head, &mut |done, total| {
            copied = done;
            progress(done, total);
        })?;
        report.bytes += copied;
        check_copy(to, report.head)?;
        Ok(report)
    }

    /// Copies the catalog and the files of its manifest; returns its head and the bytes copied.
    fn copy_derived(&self, to: &Files) -> Result<(Head, u64)> {
        let files = &self.core.files;
        let missing = || Error::Corrupt { what: "the catalog has no checkpoint".to_owned() };
        let catalog = self.core.catalog.load_full().ok_or(Error::ReadOnly)?;
        let applied = catalog.applied()?.ok_or_else(missing)?;
        to.create_dirs()?;
        let mut bytes = copy(files, &files.catalog(), to, &to.catalog())?;
        for row in View::new(Some(catalog.snapshot()?)).prefix(tables::MANIFEST, &[]) {
            let (_, value) = row?;
            let row: ManifestRow = codec::decode(&value)?;
            let (form, from, _) = files.of_manifest(&row, self.core.log.database())?;
            bytes += copy(files, &from, to, &to.derived(form, row.place, row.generation))?;
        }
        to.sync_dirs()?;
        to.vfs.sync_dir(&to.dir).map_err(|source| Error::File { path: to.dir.clone(), source })?;
        Ok((Head { position: applied.position, commit: applied.commit, hash: applied.head }, bytes))
    }
}

/// Copies a file that does not change meanwhile, and syncs the copy.
fn copy(from: &Files, source: &Path, to: &Files, target: &Path) -> Result<u64> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    let reading = from.vfs.open(source, OpenMode::Read).map_err(failed(source))?;
    let writing = to.vfs.open(target, OpenMode::CreateNew).map_err(failed(target))?;
    let len = reading.len().map_err(failed(source))?;
    let mut offset = 0;
    while offset < len {
        let mut bytes = vec![0; (len - offset).min(COPY_LEN) as usize];
        reading.read_at(&mut bytes, offset).map_err(failed(source))?;
        writing.write_at(&bytes, offset).map_err(failed(target))?;
        offset += bytes.len() as u64;
    }
    writing.sync().map_err(failed(target))?;
    Ok(len)
}

/// Reads the log of a copy without prior knowledge, and checks that it has the expected head.
fn check_copy(copy: &Files, head: Head) -> Result<()> {
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let open = Log::open(Arc::clone(&copy.vfs), &copy.log_dir(), None, &options, &mut |_| Ok::<(), Error>(()));
    let (log, report) = open?;
    match report.damage {
        Some(damage) => Err(Error::Damaged { detail: damage.to_string() }),
        None if log.head() == head => Ok(()),
        None => {
            let detail = format!("{}: the copy ends at commit {}", copy.log_dir().display(), log.head().commit);
            Err(Error::Damaged { detail })
        }
    }
}
