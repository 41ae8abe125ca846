//! The simulated disk: contents and names, each with its cached and its durable state. [`super::crash`] decides the
//! fate of each operation in a crash; the parent module documents the fault model.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Operation;
use super::content::{Content, mix};
use super::crash::{Fates, KEPT, LOST, kept_sectors, sectors};
use super::names::{Name, Names};

/// The greatest number of contents that are cached per file for repeated crashes.
const KEPT_CONTENTS: usize = 1 << 12;

/// The files and names of a disk, with their durable state.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// Files by number. They are never removed, so that handles of removed files keep working.
    pub(super) files: Vec<File>,
    pub(super) directories: Arc<BTreeSet<Arc<Path>>>,
    pub(super) names: Names,
    pub(super) durable_names: Names,
    pub(super) pending_names: Vec<PendingName>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) cached: Content,
    pub(super) durable: Content,
    pub(super) pending: Vec<Pending>,
    /// True if a sync failed: then `cached` differs from `durable` with everything pending applied.
    has_lost: bool,
    /// The contents that crashes left since the last sync, by the fates of the pending operations; `None` while nothing
    /// is pending.
    left: Option<Arc<Mutex<Left>>>,
}

/// Contents by the fates that lead to them, encoded as a number whose lowest digit is the oldest operation's fate. The
/// digit 0 means lost, which changes nothing, so the numbers remain valid as operations are added.
type Left = BTreeMap<u128, Content>;

/// An uncovered change of a file.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    Bytes { offset: u64, bytes: Arc<[u8]> },
    Length(u64),
}

/// An uncovered change of a directory: a name that ends, and a name that begins.
#[derive(Clone, Debug)]
pub(super) struct PendingName {
    pub(super) directory: Arc<Path>,
    pub(super) ends: Option<(Name, usize)>,
    pub(super) begins: Option<(Name, usize)>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            directories: Arc::new(BTreeSet::from([Path::new("/").into()])),
            names: Names::default(),
            durable_names: Names::default(),
            pending_names: Vec::new(),
        }
    }
}

impl Disk {
    pub(super) fn file_named(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn directory(&self, path: &Path) -> io::Result<()> {
        let exists = path.as_os_str().is_empty() || self.directories.contains(path);
        if exists { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    pub(super) fn is_named(&self, file: usize) -> bool {
        self.names.files().any(|named| named == file)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.names.files().map(|file| self.files[file].cached.len() as u64).sum()
    }

    pub(super) fn replace(&mut self, path: &Path, content: &[u8]) {
        self.files.push(File::durable(Content::from_bytes(content)));
        let name = Name::new(path);
        self.names.insert(name.clone(), self.files.len() - 1);
        self.durable_names.insert(name, self.files.len() - 1);
    }

    /// Applies a change of `file`, which is the next free number for a new file.
    pub(super) fn apply(&mut self, file: usize, operation: &Operation) {
        match operation {
            Operation::CreateDir(path) => {
                Arc::make_mut(&mut self.directories).extend(path.ancestors().map(Arc::from));
            }
            Operation::RemoveDir(path) => {
                Arc::make_mut(&mut self.directories).remove(path);
            }
            Operation::RenameDir(from, to) => self.rename_dir(from, to),
            Operation::Create(path) => {
                self.files.push(File::default());
                let name = Name::new(path);
                self.names.insert(name.clone(), file);
                self.note_name(path, None, Some((name, file)));
            }
            Operation::Write { offset, bytes, .. } => self.files[file].write(*offset, bytes),
            Operation::SetLen { len, .. } => self.files[file].set_len(*len),
            Operation::Sync(_) => self.files[file].sync(),
            Operation::FailedSync(_) => self.files[file].lose(),
            Operation::Rename(from, to) => {
                let (begins, ends) = (Name::new(to), Name::new(from));
                self.names.remove(from);
                self.names.insert(begins.clone(), file);
                self.note_name(to, Some((ends, file)), Some((begins, file)));
            }
            Operation::Remove(path) => {
                self.names.remove(path);
                self.note_name(path, Some((Name::new(path), file)), None);
            }
            Operation::SyncDir(directory) => {
                for name in self.take_names(directory) {
                    name.persist(&mut self.durable_names);
                }
            }
            Operation::FailedSyncDir(directory) => drop(self.take_names(directory)),
        }
    }

    /// Renames a directory and all names below it, including names that are not durable yet.
    fn rename_dir(&mut self, from: &Path, to: &Path) {
        let moved = |path: &Path| path.strip_prefix(from).ok().map(|rest| to.join(rest));
        let moved_dir = |dir: &Arc<Path>| match moved(dir) {
            // Joining an empty path would add a separator.
            Some(_) if **dir == *from => Arc::from(to),
            Some(path) => Arc::from(path),
            None => Arc::clone(dir),
        };
        let directories = self.directories.iter().map(moved_dir).collect();
        self.directories = Arc::new(directories);
        for names in [&mut self.names, &mut self.durable_names] {
            names.rename(&moved);
        }
        for pending in &mut self.pending_names {
            pending.directory = moved_dir(&pending.directory);
            for (name, _) in pending.ends.iter_mut().chain(&mut pending.begins) {
                *name = moved(name.path()).map_or_else(|| name.clone(), |path| Name::new(&path));
            }
        }
    }

    /// Removes and returns the uncovered changes of a directory.
    fn take_names(&mut self, directory: &Path) -> Vec<PendingName> {
        let (taken, left) =
            std::mem::take(&mut self.pending_names).into_iter().partition(|name| is_same(&name.directory, directory));
        self.pending_names = left;
        taken
    }

    fn note_name(&mut self, path: &Path, ends: Option<(Name, usize)>, begins: Option<(Name, usize)>) {
        let directory = parent_of(path).into();
        self.pending_names.push(PendingName { directory, ends, begins });
    }

    /// The disk after each uncovered operation has met its fate.
    pub(super) fn crashed(&self, fates: &mut Fates) -> Self {
        let mut names = self.durable_names.clone();
        for name in &self.pending_names {
            if fates.draw(2) != LOST {
                name.persist(&mut names);
            }
        }
        // Every file in question draws its fates, even if it then has no name, so that draws stay aligned.
        let mut drawn = Vec::new();
        let contents = self.files.iter().zip(self.in_question()).map(|(file, in_question)| match in_question {
            true => file.left(fates, &mut drawn),
            false => file.durable.clone(),
        });
        let contents: Vec<Content> = contents.collect();
        let files = names.files().map(|file| File::durable(contents[file].clone())).collect();
        let names = names.renumbered();
        Self {
            files,
            directories: Arc::clone(&self.directories),
            durable_names: names.clone(),
            names,
            pending_names: Vec::new(),
        }
    }

    /// The number of possible fates of each uncovered operation, in the order in which [`Disk::crashed`] draws them.
    pub(super) fn fate_counts(&self) -> Vec<usize> {
        let names = self.pending_names.iter().map(|_| 2);
        let files = self.files.iter().zip(self.in_question()).filter(|(_, in_question)| *in_question);
        names.chain(files.flat_map(|(file, _)| file.pending.iter().map(Pending::fate_count))).collect()
    }

    /// For each file, true if it has uncovered changes and a crash may leave it a name.
    fn in_question(&self) -> Vec<bool> {
        let begun = self.pending_names.iter().filter_map(|name| name.begins.as_ref());
        let mut in_question = vec![false; self.files.len()];
        for file in self.durable_names.files().chain(begun.map(|(_, file)| *file)) {
            in_question[file] = !self.files[file].pending.is_empty();
        }
        in_question
    }

    /// A hash of names and bytes, as reads see them.
    pub(super) fn fingerprint(&self) -> u64 {
        let files = self.names.hashes().map(|(name, file)| mix(name ^ self.files[file].cached.fingerprint()));
        files.fold(0, u64::wrapping_add)
    }
}

impl PendingName {
    fn persist(&self, names: &mut Names) {
        if let Some((name, file)) = &self.ends
            && names.get(name.path()) == Some(*file)
        {
            names.remove(name.path());
        }
        if let Some((name, file)) = &self.begins {
            names.insert(name.clone(), *file);
        }
    }
}

impl File {
    fn durable(content: Content) -> Self {
        Self { cached: content.clone(), durable: content, ..Self::default() }
    }

    fn write(&mut self, offset: u64, bytes: &Arc<[u8]>) {
        let end = offset as usize + bytes.len();
        if end > self.cached.len() {
            self.note(Pending::Length(end as u64));
        }
        self.cached.write(offset as usize, bytes);
        self.note(Pending::Bytes { offset, bytes: Arc::clone(bytes) });
    }

    fn set_len(&mut self, len: u64) {
        self.cached.resize(len as usize);
        self.note(Pending::Length(len));
    }

    fn note(&mut self, operation: Pending) {
        self.left.get_or_insert_default();
        self.pending.push(operation);
    }

    /// Makes all pending changes durable.
    fn sync(&mut self) {
        if self.has_lost {
            let all = vec![KEPT; self.pending.len()];
            persist(&mut self.durable, &self.pending, &all);
        } else {
            self.durable = self.cached.clone();
        }
        self.pending.clear();
        self.left = None;
    }

    /// Drops all pending changes: they never become durable.
    fn lose(&mut self) {
        self.has_lost |= !self.pending.is_empty();
        self.pending.clear();
        self.left = None;
    }

    /// Flips bits of a byte of the cached and the durable content.
    pub(super) fn flip(&mut self, at: usize, mask: u8) -> bool {
        self.durable.flip(at, mask);
        self.left = self.left.take().map(|_| Arc::default());
        self.cached.flip(at, mask)
    }

    /// The content after the pending operations met the fates drawn for them.
    fn left(&self, fates: &mut Fates, drawn: &mut Vec<usize>) -> Content {
        drawn.clear();
        let (mut number, mut radix) = (Some(0_u128), Some(1_u128));
        for operation in &self.pending {
            let (count, weight) = (operation.fate_count(), radix);
            let fate = fates.draw(count);
            drawn.push(fate);
            if fate != LOST {
                number = number.zip(weight).and_then(|(number, weight)| number.checked_add(weight * fate as u128));
            }
            radix = weight.and_then(|weight| weight.checked_mul(count as u128));
        }
        let persisted = || {
            let mut content = self.durable.clone();
            persist(&mut content, &self.pending, drawn);
            content
        };
        let (Some(number), Some(left)) = (number, &self.left) else { return persisted() };
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= KEPT_CONTENTS {
            left.clear();
        }
        left.entry(number).or_insert_with(persisted).clone()
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

/// Applies to `content` the part of each operation that its fate keeps.
fn persist(content: &mut Content, pending: &[Pending], fates: &[usize]) {
    let mut len = content.len();
    let mut lengths_persist = true;
    for (operation, &fate) in pending.iter().zip(fates) {
        match operation {
            Pending::Length(new) => {
                lengths_persist &= fate != LOST;
                if lengths_persist {
                    let new = *new as usize;
                    // Bytes past a truncation are zeros if the file grows again; bytes written past the end of a file
                    // that is still to grow remain.
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

/// True if two paths are the same. Comparing bytes first is faster and suffices for most.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    one.as_os_str() == other.as_os_str() || one == other
}

/// The directory that holds `path`.
pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(steps: &[(u8, u64, usize)]) -> File {
        let mut file = File::default();
        for &(kind, at, len) in steps {
            match kind {
                0 => file.set_len(at),
                1 => file.sync(),
                2 => file.lose(),
                _ => file.write(at, &vec![kind; len].into()),
            }
        }
        file
    }

    fn persisted(file: &File, fates: &mut Fates) -> Content {
        let drawn: Vec<usize> = file.pending.iter().map(|operation| fates.draw(operation.fate_count())).collect();
        let mut content = file.durable.clone();
        persist(&mut content, &file.pending, &drawn);
        content
    }

    proptest! {
        /// A cached content equals a computed one, also when operations were added since; and a sync gives the content
        /// of a crash that keeps everything.
        #[test]
        fn what_is_kept_is_what_is_left(
            steps in prop::collection::vec((0..8_u8, 0..9000_u64, 1..3000_usize), 1..12),
            more in prop::collection::vec((3..8_u8, 0..9000_u64, 1..3000_usize), 1..3),
            choices in prop::collection::vec(0..200_u64, 1..20),
        ) {
            let mut file = file(&steps);
            for step in 0..=more.len() {
                for &choice in &choices {
                    let left = file.left(&mut Fates::Enumerated(choice), &mut Vec::new());
                    prop_assert_eq!(left.to_vec(), persisted(&file, &mut Fates::Enumerated(choice)).to_vec());
                }
                if let Some(&(kind, at, len)) = more.get(step) {
                    file.write(at, &vec![kind; len].into());
                }
            }
            let kept = persisted(&file, &mut Fates::Always(KEPT)).to_vec();
            file.sync();
            prop_assert_eq!(file.durable.to_vec(), kept);
        }
    }
}
