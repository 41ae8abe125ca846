//! The simulated disk itself: contents, names, and what of them is durable. What a crash leaves of it is decided
//! operation by operation in [`super::crash`]; the fault model stands at the head of the module above.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Operation;
use super::content::{Content, mix};
use super::crash::{Fates, KEPT, LOST, kept_sectors, sectors};

/// The files and names of a disk, and what of them is durable: everything a crash decides over.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// Files by number; they are never taken out, so that handles of removed files keep working.
    pub(super) files: Vec<File>,
    pub(super) directories: Arc<BTreeSet<PathBuf>>,
    pub(super) names: BTreeMap<PathBuf, usize>,
    pub(super) durable_names: BTreeMap<PathBuf, usize>,
    pub(super) pending_names: Vec<PendingName>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) cached: Content,
    pub(super) durable: Content,
    pub(super) pending: Vec<Pending>,
}

/// An uncovered change of a file.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Bytes { offset: u64, bytes: Arc<[u8]> },
    Length(u64),
}

/// An uncovered change of a directory: names that end, and a name that begins.
#[derive(Clone, Debug)]
pub(super) struct PendingName {
    pub(super) directory: PathBuf,
    pub(super) ends: Option<(PathBuf, usize)>,
    pub(super) begins: Option<(PathBuf, usize)>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            directories: Arc::new(BTreeSet::from([PathBuf::from("/")])),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
        }
    }
}

impl Disk {
    pub(super) fn file_named(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn directory(&self, path: &Path) -> io::Result<()> {
        let exists = path.as_os_str().is_empty() || self.directories.contains(path);
        if exists { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    pub(super) fn is_named(&self, file: usize) -> bool {
        self.names.values().any(|&named| named == file)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.names.values().map(|&file| self.files[file].cached.len() as u64).sum()
    }

    pub(super) fn replace(&mut self, path: &Path, content: &[u8]) {
        self.files.push(File::durable(Content::from_bytes(content)));
        self.names.insert(path.to_owned(), self.files.len() - 1);
        self.durable_names.insert(path.to_owned(), self.files.len() - 1);
    }

    /// Carries out a change; `file` is the one it is about, and for a new file the next free number.
    pub(super) fn apply(&mut self, file: usize, operation: &Operation) {
        match operation {
            Operation::CreateDir(path) => {
                Arc::make_mut(&mut self.directories).extend(path.ancestors().map(Path::to_owned));
            }
            Operation::RemoveDir(path) => {
                Arc::make_mut(&mut self.directories).remove(path);
            }
            Operation::Create(path) => {
                self.files.push(File::default());
                self.names.insert(path.clone(), file);
                self.note_name(path, None, Some((path.clone(), file)));
            }
            Operation::Write { offset, bytes, .. } => self.files[file].write(*offset, bytes),
            Operation::SetLen { len, .. } => self.files[file].set_len(*len),
            Operation::Sync(_) => {
                let File { durable, pending, .. } = &mut self.files[file];
                persist(durable, pending, &mut Fates::Always(KEPT));
                pending.clear();
            }
            Operation::FailedSync(_) => self.files[file].pending.clear(),
            Operation::Rename(from, to) => {
                self.names.remove(from);
                self.names.insert(to.clone(), file);
                self.note_name(to, Some((from.clone(), file)), Some((to.clone(), file)));
            }
            Operation::Remove(path) => {
                self.names.remove(path);
                self.note_name(path, Some((path.clone(), file)), None);
            }
            Operation::SyncDir(directory) => {
                for name in self.take_names(directory) {
                    name.persist(&mut self.durable_names);
                }
            }
            Operation::FailedSyncDir(directory) => drop(self.take_names(directory)),
        }
    }

    /// Takes out the uncovered changes of a directory.
    fn take_names(&mut self, directory: &Path) -> Vec<PendingName> {
        let (taken, left) =
            std::mem::take(&mut self.pending_names).into_iter().partition(|name| name.directory == directory);
        self.pending_names = left;
        taken
    }

    fn note_name(&mut self, path: &Path, ends: Option<(PathBuf, usize)>, begins: Option<(PathBuf, usize)>) {
        let directory = parent_of(path).to_owned();
        self.pending_names.push(PendingName { directory, ends, begins });
    }

    /// What is left when each uncovered operation has met its fate.
    pub(super) fn crashed(&self, fates: &mut Fates) -> Self {
        let mut names = self.durable_names.clone();
        for name in &self.pending_names {
            if fates.draw(2) != LOST {
                name.persist(&mut names);
            }
        }
        // Every file in question draws its fates, also one that then no name leads to: the draws stay in step.
        let contents = self.files.iter().zip(self.in_question()).map(|(file, in_question)| {
            let mut content = file.durable.clone();
            if in_question {
                persist(&mut content, &file.pending, fates);
            }
            content
        });
        let contents: Vec<Content> = contents.collect();
        let mut left = Self { directories: Arc::clone(&self.directories), ..Self::default() };
        for (path, file) in names {
            left.files.push(File::durable(contents[file].clone()));
            left.names.insert(path, left.files.len() - 1);
        }
        left.durable_names = left.names.clone();
        left
    }

    /// How many fates each uncovered operation may meet, in the order [`Disk::crashed`] draws them.
    pub(super) fn fate_counts(&self) -> Vec<usize> {
        let names = self.pending_names.iter().map(|_| 2);
        let files = self.files.iter().zip(self.in_question()).filter(|(_, in_question)| *in_question);
        names.chain(files.flat_map(|(file, _)| file.pending.iter().map(Pending::fate_count))).collect()
    }

    /// For each file whether it has uncovered changes and a crash may leave it a name.
    fn in_question(&self) -> Vec<bool> {
        let begun = self.pending_names.iter().filter_map(|name| name.begins.as_ref());
        let mut in_question = vec![false; self.files.len()];
        for &file in self.durable_names.values().chain(begun.map(|(_, file)| file)) {
            in_question[file] = !self.files[file].pending.is_empty();
        }
        in_question
    }

    /// Equal for disks with the same names and bytes, as reads see them.
    pub(super) fn fingerprint(&self) -> u64 {
        let files = self.names.iter().map(|(path, &file)| {
            let mut hasher = DefaultHasher::new();
            path.as_os_str().as_encoded_bytes().hash(&mut hasher);
            mix(hasher.finish() ^ self.files[file].cached.fingerprint())
        });
        files.fold(0, u64::wrapping_add)
    }
}

impl PendingName {
    fn persist(&self, names: &mut BTreeMap<PathBuf, usize>) {
        if let Some((path, file)) = &self.ends
            && names.get(path) == Some(file)
        {
            names.remove(path);
        }
        if let Some((path, file)) = &self.begins {
            names.insert(path.clone(), *file);
        }
    }
}

impl File {
    fn durable(content: Content) -> Self {
        Self { cached: content.clone(), durable: content, pending: Vec::new() }
    }

    fn write(&mut self, offset: u64, bytes: &Arc<[u8]>) {
        let end = offset as usize + bytes.len();
        if end > self.cached.len() {
            self.pending.push(Pending::Length(end as u64));
        }
        self.cached.write(offset as usize, bytes);
        self.pending.push(Pending::Bytes { offset, bytes: Arc::clone(bytes) });
    }

    fn set_len(&mut self, len: u64) {
        self.cached.resize(len as usize);
        self.pending.push(Pending::Length(len));
    }
}

impl Pending {
    fn fate_count(&self) -> usize {
        match self {
            Self::Length(_) => 2,
            Self::Bytes { offset, bytes } => match sectors(*offset, bytes.len()) {
                1 => 2,
                2 => 4,
                _ => 5,
            },
        }
    }
}

/// Carries over to `content` what its fate leaves of each operation.
fn persist(content: &mut Content, pending: &[Pending], fates: &mut Fates) {
    let mut len = content.len();
    let mut lengths_persist = true;
    for operation in pending {
        let fate = fates.draw(operation.fate_count());
        match operation {
            Pending::Length(new) => {
                lengths_persist &= fate != LOST;
                if lengths_persist {
                    let new = *new as usize;
                    // What lies past a cut is zeros should the file grow again; what was written past the end of a file
                    // that is still to grow stays.
                    if new < len {
                        content.resize(new.min(content.len()));
                    }
                    len = new;
                }
            }
            Pending::Bytes { offset, bytes } => {
                for (start, kept) in kept_sectors(*offset, bytes, fate) {
                    content.write(start, kept);
                }
            }
        }
    }
    content.resize(len);
}

/// The directory that holds `path`.
pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
