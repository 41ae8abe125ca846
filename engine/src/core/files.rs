//! The files of a database, and the names of derived files.
//!
//! ```text
//! memory.holo/
//!   LOCK
//!   VERIFIED                      when the log was last verified, if it was
//!   DAMAGE                        the first fault of the log, while one is known
//!   log/0000000001.log …          the database
//!   catalog.redb                  derived, like everything below
//!   columns/PLACE-GENERATION.cseg
//!   vectors/PLACE-GENERATION.vseg
//!   words/PLACE-GENERATION.wseg
//! ```
//!
//! A database that `salvage` wrote also has `positions.tsv`.
//!
//! A derived file's name is never used twice: its generation counts up for as long as the directory lives, and the
//! catalog's manifest says which files are part of the state. Any other is left over from a crash and removed. Each
//! opening for writing goes on at a random distance: copies of a directory that are written separately give their files
//! different generations, so a file of one that gets into the other is not taken for one of its own.

use crate::records::tables::ManifestRow;
use crate::{Error, Result};
use holotype_storage::log::{is_log_file_name, is_quarantine_name};
use holotype_storage::segment_file::FileIdentity;
use holotype_storage::vfs::{OpenMode, Vfs, refuse_symlink};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

/// The file of old and new positions that `salvage` writes.
pub const POSITIONS: &str = "positions.tsv";

/// The three kinds of derived files.
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

    fn name_test(self) -> fn(&str) -> bool {
        match self {
            Form::Columns => |name| Form::Columns.is_file_name(name),
            Form::Vectors => |name| Form::Vectors.is_file_name(name),
            Form::Words => |name| Form::Words.is_file_name(name),
        }
    }

    /// Returns whether a name is PLACE-GENERATION.EXTENSION, or that of such a file while it is being written.
    fn is_file_name(self, name: &str) -> bool {
        let whole = name.strip_suffix(".tmp").unwrap_or(name);
        let numbers = whole.strip_suffix(self.extension()).and_then(|stem| stem.strip_suffix('.')?.split_once('-'));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        numbers.is_some_and(|(place, generation)| is_number(place) && is_number(generation))
    }
}

/// The directory of one database in a file system.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
}

impl Files {
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> Self {
        // A relative path would name another directory once the process changes its own.
        let dir = vfs.absolute(dir).unwrap_or_else(|_| dir.to_owned());
        Files { vfs, dir }
    }

    /// Starts a thread of the scope that works on these files; fails if the system has no memory for one.
    pub(crate) fn spawn<'scope, T: Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, T>> {
        let failed = |source| Error::File { path: self.dir.clone(), source };
        thread::Builder::new().spawn_scoped(scope, work).map_err(failed)
    }

    /// Returns true if the directory has a log. Without a log there is no database.
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

    /// Removes every file of the database and its directories. Missing files are ignored; a file with a name that no
    /// file of a database has stays, and with it its directory.
    ///
    /// # Errors
    /// Of the file system, also when a directory keeps a foreign file.
    pub(crate) fn remove_all(&self) -> Result<()> {
        let mut dirs = vec![(self.log_dir(), is_log_file_name as fn(&str) -> bool)];
        for form in Form::ALL {
            dirs.push((self.dir.join(form.dir()), form.name_test()));
        }
        dirs.push((self.dir.clone(), is_root_file_name));
        for (dir, is_own) in dirs {
            let failed = |source| Error::File { path: dir.clone(), source };
            let names = match refuse_symlink(self.vfs.as_ref(), &dir).and_then(|()| self.vfs.list(&dir)) {
                Ok(names) => names,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(failed(source)),
            };
            for name in names.iter().filter(|name| is_own(name)) {
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

    pub(crate) fn damage_note(&self) -> PathBuf {
        self.dir.join("DAMAGE")
    }

    pub(crate) fn restored(&self) -> PathBuf {
        self.dir.join("RESTORED")
    }

    pub(crate) fn catalog(&self) -> PathBuf {
        self.dir.join("catalog.redb")
    }

    pub(crate) fn derived(&self, form: Form, place: u32, generation: u64) -> PathBuf {
        self.dir.join(form.dir()).join(format!("{place}-{generation:010}.{}", form.extension()))
    }

    /// The path and identity of a file that the manifest names.
    pub(crate) fn of_manifest(&self, row: &ManifestRow, database: [u8; 16]) -> Result<(Form, PathBuf, FileIdentity)> {
        let form = Form::from_byte(row.form)
            .ok_or_else(|| Error::Corrupt { what: format!("the manifest names a file of form {}", row.form) })?;
        let identity = FileIdentity { database, generation: row.generation, place: row.place };
        Ok((form, self.derived(form, row.place, row.generation), identity))
    }

    /// The derived files in the directory, finished or not, except the catalog. Other name patterns are skipped.
    pub(crate) fn derived_files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for form in Form::ALL {
            let dir = self.dir.join(form.dir());
            let names = refuse_symlink(self.vfs.as_ref(), &dir).and_then(|()| self.vfs.list(&dir));
            match names {
                Ok(names) => {
                    files.extend(names.iter().filter(|name| form.is_file_name(name)).map(|name| dir.join(name)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::File { path: dir, source }),
            }
        }
        Ok(files)
    }

    /// Removes derived files that `keep` does not name and returns their number.
    pub(crate) fn remove_other(&self, keep: &[PathBuf]) -> Result<usize> {
        let mut removed = 0;
        for path in self.derived_files()?.into_iter().filter(|path| !keep.contains(path)) {
            self.vfs.remove(&path).map_err(|source| Error::File { path: path.clone(), source })?;
            removed += 1;
        }
        Ok(removed)
    }

    /// The size of the catalog and all derived files in bytes.
    pub(crate) fn derived_len(&self) -> Result<u64> {
        let mut paths = vec![self.catalog()];
        for form in Form::ALL {
            let dir = self.dir.join(form.dir());
            let names = self.vfs.list(&dir).map_err(|source| Error::File { path: dir.clone(), source })?;
            paths.extend(names.iter().map(|name| dir.join(name)));
        }
        self.len_of(&paths)
    }

    /// The size of these files in bytes.
    pub(crate) fn len_of(&self, paths: &[PathBuf]) -> Result<u64> {
        let mut total = 0;
        for path in paths {
            let len = self.vfs.open(path, OpenMode::Read).and_then(|file| file.len());
            match len {
                Ok(len) => total += len,
                // A checkpoint has replaced the file since the listing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::File { path: path.clone(), source }),
            }
        }
        Ok(total)
    }

    /// Removes these files.
    pub(crate) fn remove(&self, paths: &[PathBuf]) -> Result<()> {
        for path in paths {
            self.vfs.remove(path).map_err(|source| Error::File { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// Syncs the directories of derived files, which makes created and removed names durable.
    pub(crate) fn sync_dirs(&self) -> Result<()> {
        for form in Form::ALL {
            let dir = self.dir.join(form.dir());
            self.vfs.sync_dir(&dir).map_err(|source| Error::File { path: dir.clone(), source })?;
        }
        Ok(())
    }

    /// Removes the log files that recovery quarantined and returns their number.
    pub(crate) fn remove_quarantined(&self) -> Result<usize> {
        let dir = self.log_dir();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        let names = self.vfs.list(&dir).map_err(failed(&dir))?;
        let mut removed = 0;
        for name in names.iter().filter(|name| is_quarantine_name(name)) {
            let path = dir.join(name);
            self.vfs.remove(&path).map_err(failed(&path))?;
            removed += 1;
        }
        if removed > 0 {
            self.vfs.sync_dir(&dir).map_err(failed(&dir))?;
        }
        Ok(removed)
    }

    /// The highest generation among existing files. New names start above it, so that no name is reused.
    pub(crate) fn newest_generation(&self) -> u64 {
        let files = self.derived_files().unwrap_or_default();
        files.iter().filter_map(|path| generation_of(path)).max().unwrap_or(0)
    }

    /// A generation that no file here has, and none of a copy of this directory that was opened separately.
    pub(crate) fn generation_apart(&self) -> Result<u64> {
        let mut distance = [0; 4];
        let failed = |error| Error::File { path: self.dir.clone(), source: io::Error::other(error) };
        getrandom::fill(&mut distance).map_err(failed)?;
        Ok(self.newest_generation().saturating_add(u32::from_le_bytes(distance).into()))
    }

    /// Fails for a path in this directory: what is written there would be taken for a file of the database, or removed
    /// with it.
    pub(crate) fn refuse_within(&self, path: &Path) -> Result<()> {
        let whole = |path: &Path| {
            // A path that does not exist yet is within what its nearest parent is within.
            let known = path.ancestors().find_map(|parent| Some((parent.canonicalize().ok()?, parent)));
            let rest = known.as_ref().and_then(|(_, parent)| path.strip_prefix(parent).ok());
            known.as_ref().zip(rest).map_or_else(|| path.to_owned(), |((known, _), rest)| known.join(rest))
        };
        let (path, dir) = (std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), whole(&self.dir));
        if whole(&path).starts_with(&dir) {
            let (path, dir) = (path.display(), self.dir.display());
            return Err(Error::Invalid(format!("{path} is within the database {dir}; name a path outside of it")));
        }
        Ok(())
    }

    /// The form, place and generation of every derived file that can be listed.
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

    /// Removes derived files with a higher generation.
    pub(crate) fn remove_newer(&self, generation: u64) -> Result<()> {
        let is_newer = |path: &PathBuf| generation_of(path).is_some_and(|of_path| of_path > generation);
        for path in self.derived_files()?.into_iter().filter(is_newer) {
            self.vfs.remove(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        }
        Ok(())
    }
}

/// Returns whether a file in the database's own directory has this name, finished or not.
fn is_root_file_name(name: &str) -> bool {
    let whole = name.strip_suffix(".tmp").unwrap_or(name);
    matches!(whole, "LOCK" | "VERIFIED" | "DAMAGE" | "RESTORED" | "catalog.redb" | POSITIONS)
}

/// Parses the generation from a derived file's name.
fn generation_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.split_once('-')?.1.split_once('.')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype_storage::vfs::SimVfs;

    fn files(sim: &SimVfs) -> Files {
        let files = Files::new(Arc::new(sim.clone()), Path::new("/db"));
        files.create_dirs().unwrap();
        files
    }

    #[test]
    fn only_files_with_names_of_ours_are_removed() {
        let sim = SimVfs::new();
        let files = files(&sim);
        let foreign = ["words/notes.txt", "words/0-0000000001.vseg", "vectors/a-1.vseg", "log/quarantine-mine.bin"];
        let own = ["words/3-0000000001.wseg", "words/3-0000000002.wseg.tmp", "vectors/0-0000000001.vseg"];
        let quarantine = "log/quarantine-00000000000000004096-0a1b2c3d.bin";
        for name in foreign.iter().chain(&own).chain([&quarantine]) {
            sim.replace(&files.dir.join(name), b"content");
        }
        let kept = files.dir.join(own[2]);
        assert_eq!(files.remove_other(std::slice::from_ref(&kept)).unwrap(), 2);
        assert_eq!(files.remove_quarantined().unwrap(), 1);
        let mut expected: Vec<PathBuf> = foreign.iter().map(|name| files.dir.join(name)).chain([kept]).collect();
        expected.sort();
        assert_eq!(sim.files(), expected);
    }

    #[test]
    fn a_whole_database_is_removed_without_what_is_not_of_it() {
        let sim = SimVfs::new();
        let files = files(&sim);
        let own = [
            "LOCK",
            "VERIFIED.tmp",
            "catalog.redb",
            "positions.tsv",
            "log/0000000001.log",
            "log/0000000002.log.tmp",
            "log/floor",
            "words/3-0000000001.wseg",
        ];
        for name in own {
            sim.replace(&files.dir.join(name), b"content");
        }
        let foreign = files.dir.join("words/notes.txt");
        sim.replace(&foreign, b"content");
        assert!(matches!(files.remove_all(), Err(Error::File { .. })));
        assert!(sim.files().contains(&foreign));
        sim.remove(&foreign).unwrap();
        files.remove_all().unwrap();
        assert_eq!(sim.files(), Vec::<PathBuf>::new());
        assert!(sim.list(&files.dir).is_err());
    }

    #[test]
    fn nothing_is_removed_through_a_symbolic_link() {
        let sim = SimVfs::new();
        let files = files(&sim);
        sim.replace(&files.derived(Form::Words, 3, 1), b"content");
        sim.make_symlink(&files.dir.join("words"));
        assert!(matches!(files.remove_other(&[]), Err(Error::File { .. })));
        assert_eq!(sim.files().len(), 1);
    }
}
