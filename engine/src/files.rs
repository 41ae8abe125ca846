//! Where a database keeps its files, and what derived files are called.
//!
//! ```text
//! memory.holo/
//!   LOCK
//!   VERIFIED                      when the log was last verified, if it was
//!   log/0000000001.log …          the database
//!   catalog.redb                  derived, like everything below
//!   columns/PLACE-GENERATION.cseg
//!   vectors/PLACE-GENERATION.vseg
//!   words/PLACE-GENERATION.wseg
//! ```
//!
//! A derived file's name is never used twice: its generation counts up for as long as the directory lives, and the
//! catalog's manifest says which files are part of the state. Any other is left over from a crash and removed.

use crate::tables::ManifestRow;
use crate::{Error, Result};
use holotype_storage::segment_file::FileIdentity;
use holotype_storage::vfs::{OpenMode, Vfs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The three forms of derived files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Columns,
    Vectors,
    Words,
}

impl Form {
    pub(crate) const ALL: [Form; 3] = [Form::Columns, Form::Vectors, Form::Words];

    pub(crate) fn byte(self) -> u8 {
        match self {
            Form::Columns => b'c',
            Form::Vectors => b'v',
            Form::Words => b'w',
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.byte() == byte)
    }

    fn dir(self) -> &'static str {
        match self {
            Form::Columns => "columns",
            Form::Vectors => "vectors",
            Form::Words => "words",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Form::Columns => "cseg",
            Form::Vectors => "vseg",
            Form::Words => "wseg",
        }
    }
}

/// The directory of one database on a file system.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
}

impl Files {
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> Self {
        Files { vfs, dir: dir.to_owned() }
    }

    /// Whether there is a log: without one there is no database.
    pub(crate) fn exists(&self) -> Result<bool> {
        match self.vfs.list(&self.log_dir()) {
            Ok(names) => Ok(names.iter().any(|name| name.ends_with(".log"))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            Err(source) => Err(Error::File { path: self.log_dir(), source }),
        }
    }

    pub(crate) fn create_dirs(&self) -> Result<()> {
        for dir in [self.dir.clone(), self.log_dir()].into_iter().chain(Form::ALL.map(|form| self.dir.join(form.dir())))
        {
            self.vfs.create_dir(&dir).map_err(|source| Error::File { path: dir.clone(), source })?;
        }
        Ok(())
    }

    /// Removes all that a database consists of, and its directories, as far as they are there.
    pub(crate) fn remove_all(&self) -> Result<()> {
        let derived = Form::ALL.map(|form| self.dir.join(form.dir()));
        for dir in [self.log_dir()].into_iter().chain(derived).chain([self.dir.clone()]) {
            let failed = |source| Error::File { path: dir.clone(), source };
            let names = match self.vfs.list(&dir) {
                Ok(names) => names,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(failed(source)),
            };
            for name in names {
                self.vfs.remove(&dir.join(name)).map_err(failed)?;
            }
            self.vfs.sync_dir(&dir).map_err(failed)?;
            self.vfs.remove_dir(&dir).map_err(failed)?;
        }
        Ok(())
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.dir.join("log")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.dir.join("LOCK")
    }

    pub(crate) fn verified(&self) -> PathBuf {
        self.dir.join("VERIFIED")
    }

    pub(crate) fn catalog(&self) -> PathBuf {
        self.dir.join("catalog.redb")
    }

    pub(crate) fn derived(&self, form: Form, place: u32, generation: u64) -> PathBuf {
        self.dir.join(form.dir()).join(format!("{place}-{generation:010}.{}", form.extension()))
    }

    /// The path and identity of a file of the manifest.
    pub(crate) fn of_manifest(&self, row: &ManifestRow, database: [u8; 16]) -> Result<(Form, PathBuf, FileIdentity)> {
        let form = Form::from_byte(row.form)
            .ok_or_else(|| Error::Corrupt { what: format!("the manifest names a file of form {}", row.form) })?;
        let identity = FileIdentity { database, generation: row.generation, place: row.place };
        Ok((form, self.derived(form, row.place, row.generation), identity))
    }

    /// The derived files that are there, but the catalog.
    pub(crate) fn derived_files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for form in Form::ALL {
            let dir = self.dir.join(form.dir());
            match self.vfs.list(&dir) {
                Ok(names) => files.extend(names.iter().map(|name| dir.join(name))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::File { path: dir, source }),
            }
        }
        Ok(files)
    }

    /// Removes derived files that `keep` does not name; returns how many.
    pub(crate) fn remove_other(&self, keep: &[PathBuf]) -> Result<usize> {
        let mut removed = 0;
        for form in Form::ALL {
            let dir = self.dir.join(form.dir());
            let names = match self.vfs.list(&dir) {
                Ok(names) => names,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::File { path: dir, source }),
            };
            for path in names.iter().map(|name| dir.join(name)).filter(|path| !keep.contains(path)) {
                self.vfs.remove(&path).map_err(|source| Error::File { path: path.clone(), source })?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// The bytes of the catalog and all derived files that are there.
    pub(crate) fn derived_len(&self) -> Result<u64> {
        let mut paths = vec![self.catalog()];
        for form in Form::ALL {
            let dir = self.dir.join(form.dir());
            let names = self.vfs.list(&dir).map_err(|source| Error::File { path: dir.clone(), source })?;
            paths.extend(names.iter().map(|name| dir.join(name)));
        }
        let mut total = 0;
        for path in paths {
            let len = self.vfs.open(&path, OpenMode::Read).and_then(|file| file.len());
            match len {
                Ok(len) => total += len,
                // A checkpoint replaced it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::File { path, source }),
            }
        }
        Ok(total)
    }

    /// Makes durable what was created and removed among the derived files.
    pub(crate) fn sync_dirs(&self) -> Result<()> {
        for form in Form::ALL {
            let dir = self.dir.join(form.dir());
            self.vfs.sync_dir(&dir).map_err(|source| Error::File { path: dir.clone(), source })?;
        }
        Ok(())
    }

    /// Removes what recoveries set aside in the log's directory; returns how many files.
    pub(crate) fn remove_quarantined(&self) -> Result<usize> {
        let dir = self.log_dir();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        let names = self.vfs.list(&dir).map_err(failed(&dir))?;
        let mut removed = 0;
        for name in names.iter().filter(|name| name.starts_with("quarantine-")) {
            let path = dir.join(name);
            self.vfs.remove(&path).map_err(failed(&path))?;
            removed += 1;
        }
        if removed > 0 {
            self.vfs.sync_dir(&dir).map_err(failed(&dir))?;
        }
        Ok(removed)
    }

    /// The newest generation among the files that are there, so that no name is used twice.
    pub(crate) fn newest_generation(&self) -> u64 {
        let files = self.derived_files().unwrap_or_default();
        files.iter().filter_map(|path| generation_of(path)).max().unwrap_or(0)
    }

    /// Form, place and generation of the derived files that are there and can be listed.
    pub(crate) fn named(&self) -> Vec<(Form, u32, u64)> {
        let mut named = Vec::new();
        for form in Form::ALL {
            let names = self.vfs.list(&self.dir.join(form.dir())).unwrap_or_default();
            for path in names.iter().map(Path::new) {
                let place = path.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
                if let Some((place, generation)) = place.zip(generation_of(path)) {
                    named.push((form, place, generation));
                }
            }
        }
        named
    }

    /// Removes the derived files of a newer generation.
    pub(crate) fn remove_newer(&self, generation: u64) -> Result<()> {
        let is_newer = |path: &PathBuf| generation_of(path).is_some_and(|of_path| of_path > generation);
        for path in self.derived_files()?.into_iter().filter(is_newer) {
            self.vfs.remove(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        }
        Ok(())
    }
}

/// The generation in a derived file's name.
fn generation_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.split_once('-')?.1.split_once('.')?.0.parse().ok()
}
