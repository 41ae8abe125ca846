//! The simulated disk itself: contents, names, what of them is durable, and what a crash leaves. The
//! fault model stands at the head of the module above.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Crash, Operation};

/// What a disk writes in one piece.
const SECTOR_LEN: u64 = 512;

/// The files and names of a disk, and what of them is durable: everything a crash decides over.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// Files by number; they are never taken out, so that handles of removed files keep working.
    pub(super) files: Vec<File>,
    pub(super) directories: BTreeSet<PathBuf>,
    pub(super) names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<PendingName>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) cached: Arc<Vec<u8>>,
    pub(super) durable: Arc<Vec<u8>>,
    pending: Vec<Pending>,
}

#[derive(Clone, Debug)]
enum Pending {
    Bytes { offset: u64, bytes: Arc<[u8]> },
    Length(u64),
}

/// An uncovered change of a directory: names that end, and a name that begins.
#[derive(Clone, Debug)]
struct PendingName {
    directory: PathBuf,
    ends: Option<(PathBuf, usize)>,
    begins: Option<(PathBuf, usize)>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            directories: BTreeSet::from([PathBuf::from("/")]),
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
        let content = Arc::new(content.to_vec());
        let file = File { cached: Arc::clone(&content), durable: content, pending: Vec::new() };
        self.files.push(file);
        self.names.insert(path.to_owned(), self.files.len() - 1);
        self.durable_names.insert(path.to_owned(), self.files.len() - 1);
    }

    /// Carries out a change; `file` is the one it is about, and for a new file the next free number.
    pub(super) fn apply(&mut self, file: usize, operation: &Operation) {
        match operation {
            Operation::CreateDir(path) => {
                self.directories.extend(path.ancestors().map(Path::to_owned));
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
                // In place: a copy of the whole file for every sync would make long runs quadratic.
                persist(Arc::make_mut(durable), pending, &mut Fates::new(Crash::Keep));
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
                let (covered, pending) =
                    std::mem::take(&mut self.pending_names).into_iter().partition(|name| name.directory == *directory);
                self.pending_names = pending;
                for name in covered {
                    name.persist(&mut self.durable_names);
                }
            }
        }
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
        let contents: Vec<Arc<Vec<u8>>> = self
            .files
            .iter()
            .map(|file| match file.pending.is_empty() {
                true => Arc::clone(&file.durable),
                false => {
                    let mut content = file.durable.to_vec();
                    persist(&mut content, &file.pending, fates);
                    Arc::new(content)
                }
            })
            .collect();
        let mut left = Self { directories: self.directories.clone(), ..Self::default() };
        for (path, file) in names {
            let content = Arc::clone(&contents[file]);
            left.files.push(File { cached: Arc::clone(&content), durable: content, pending: Vec::new() });
            left.names.insert(path, left.files.len() - 1);
        }
        left.durable_names = left.names.clone();
        left
    }

    /// How many fates each uncovered operation may meet, in the order [`Disk::crashed`] draws them.
    pub(super) fn fate_counts(&self) -> Vec<usize> {
        let names = self.pending_names.iter().map(|_| 2);
        names.chain(self.files.iter().flat_map(File::fate_counts)).collect()
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (path, &file) in &self.names {
            (path, &self.files[file].cached).hash(&mut hasher);
        }
        hasher.finish()
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
    fn write(&mut self, offset: u64, bytes: &Arc<[u8]>) {
        let end = offset as usize + bytes.len();
        let cached = Arc::make_mut(&mut self.cached);
        if end > cached.len() {
            cached.resize(end, 0);
            self.pending.push(Pending::Length(end as u64));
        }
        cached[offset as usize..end].copy_from_slice(bytes);
        self.pending.push(Pending::Bytes { offset, bytes: Arc::clone(bytes) });
    }

    fn set_len(&mut self, len: u64) {
        Arc::make_mut(&mut self.cached).resize(len as usize, 0);
        self.pending.push(Pending::Length(len));
    }

    pub(super) fn fate_counts(&self) -> impl Iterator<Item = usize> {
        self.pending.iter().map(Pending::fate_count)
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
fn persist(content: &mut Vec<u8>, pending: &[Pending], fates: &mut Fates) {
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
                        content.truncate(new);
                    }
                    len = new;
                }
            }
            Pending::Bytes { offset, bytes } => {
                for (start, sector) in kept_sectors(*offset, bytes, fate) {
                    let end = start + sector.len();
                    if end > content.len() {
                        content.resize(end, 0);
                    }
                    content[start..end].copy_from_slice(sector);
                }
            }
        }
    }
    content.resize(len, 0);
}

/// The fates an operation may meet: lost, kept, or kept without its last, first or middle sector.
const LOST: usize = 0;
const KEPT: usize = 1;
const WITHOUT_LAST: usize = 2;
const WITHOUT_FIRST: usize = 3;

/// How many sectors a write touches.
fn sectors(offset: u64, len: usize) -> u64 {
    (offset + len as u64).div_ceil(SECTOR_LEN) - offset / SECTOR_LEN
}

/// The pieces of a write, cut at sector boundaries, that its fate leaves, with where they go.
fn kept_sectors(offset: u64, bytes: &[u8], fate: usize) -> Vec<(usize, &[u8])> {
    let count = sectors(offset, bytes.len());
    let first_sector = offset / SECTOR_LEN;
    let missing = match fate {
        LOST => return Vec::new(),
        KEPT => None,
        WITHOUT_LAST => Some(count - 1),
        WITHOUT_FIRST => Some(0),
        _ => Some(count / 2),
    };
    let end = offset + bytes.len() as u64;
    let pieces = (0..count).filter(|&sector| Some(sector) != missing).map(|sector| {
        let from = ((first_sector + sector) * SECTOR_LEN).max(offset);
        let to = ((first_sector + sector + 1) * SECTOR_LEN).min(end);
        (from as usize, &bytes[(from - offset) as usize..(to - offset) as usize])
    });
    pieces.collect()
}

/// Where fates come from.
#[derive(Debug)]
pub(super) enum Fates {
    Always(usize),
    Random(SplitMix),
    /// A number whose digits, in the mixed radix of the operations' counts, are the fates.
    Enumerated(usize),
}

impl Fates {
    pub(super) fn new(crash: Crash) -> Self {
        match crash {
            Crash::Lose => Self::Always(LOST),
            Crash::Keep => Self::Always(KEPT),
            Crash::Seeded(seed) => Self::Random(SplitMix(seed)),
        }
    }

    fn draw(&mut self, count: usize) -> usize {
        match self {
            Self::Always(fate) => *fate,
            Self::Random(random) => (random.next() % count as u64) as usize,
            Self::Enumerated(rest) => {
                let fate = *rest % count;
                *rest /= count;
                fate
            }
        }
    }
}

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
#[derive(Debug)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The directory that holds `path`.
pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
