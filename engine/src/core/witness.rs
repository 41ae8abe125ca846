//! The witness: the newest durable head of the log, signed, in a file outside the database.
//!
//! The hash chain shows that a log was not edited, but not that it is the newest one: an older copy of the whole
//! directory is as sound as the present one, and a process that can write the directory can compute all hashes. Opening
//! with a witness refuses both. The file is named by the opening program and never by the database itself, which
//! could be rolled back together with it. It is a signed note of four lines:
//!
//! ```text
//! holotype/5f0c…      the origin: the database's id
//! position 8192       of the commit in the log
//! commit 17
//! hash 9a41…          of the whole log up to the commit, 64 hexadecimal digits
//! ```
//!
//! 1. The file is written after the sync of the log that it is about, so the log always contains its head.
//! 2. It is replaced in one step, and only by a later head.
//! 3. The key is in `FILE.key` beside it, readable by its owner alone. It is created with the first witness.
//! 4. A commit whose witness cannot be written stands. The next transaction writes the witness first, or is refused.
//! 5. Handles that take turns read the file again before they replace it, and lock the first byte of the key meanwhile:
//!    none replaces the head of another by an earlier one, and one at a time has a file under the temporary name.

use crate::core::files::Files;
use crate::model::pointer::hex;
use crate::options::Options;
use crate::{Error, Result};
use holotype_storage::Hash;
use holotype_storage::log::{CommitNo, Head, Log, Lsn};
use holotype_storage::proof::note::{SignerKey, VerifierKey};
use holotype_storage::segment_file::temporary_name;
use holotype_storage::vfs::{LockKind, OpenMode, Vfs, VfsFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// More than any witness or key has.
const MAX_FILE_LEN: u64 = 4 << 10;

/// The pause between attempts to lock the key.
const PAUSE: Duration = Duration::from_micros(200);

/// The witness of an open database.
pub(crate) struct Witness {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    key: SignerKey,
    /// The time to wait for other handles that write it; `None` for an exclusive handle, which is alone.
    beside: Option<Duration>,
    heads: Mutex<Heads>,
}

#[derive(Default)]
struct Heads {
    /// The head in the file.
    written: Option<Head>,
    /// A later head that could not be written.
    missed: Option<Head>,
}

impl Witness {
    /// The witness of a new database; creates its key.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is a file; [`Error::File`]; [`Error::Invalid`] for a path in the database.
    pub(crate) fn create(files: &Files, options: &Options, database: [u8; 16]) -> Result<Option<Witness>> {
        let Some(path) = &options.witness else { return Ok(None) };
        check_outside(files, path)?;
        if read(files.vfs.as_ref(), path)?.is_some() {
            return Err(Error::Exists { path: path.clone() });
        }
        Witness::new(files, options, path, database).map(Some)
    }

    /// Reads the witness that the options name. Call this before the log is read: a writer may extend both meanwhile.
    ///
    /// # Errors
    /// [`Error::WitnessMissing`] unless the options accept that; [`Error::Forged`] for a file that the key has not
    /// signed or that is about another database; [`Error::File`].
    pub(crate) fn open(files: &Files, options: &Options) -> Result<Option<Witness>> {
        let Some(path) = &options.witness else { return Ok(None) };
        check_outside(files, path)?;
        let database = Log::identify(files.vfs.as_ref(), &files.log_dir(), holotype_storage::features::Access::Read)?;
        let database = database.unwrap_or_default();
        let (note, key) = (read(files.vfs.as_ref(), path)?, read(files.vfs.as_ref(), &key_path(path))?);
        let (note, key) = match (note, key) {
            (Some(note), Some(key)) => (note, key),
            _ if options.accept_witness && options.read_only => return Ok(None),
            _ if options.accept_witness => return Witness::new(files, options, path, database).map(Some),
            (None, _) => return Err(Error::WitnessMissing { path: path.clone() }),
            (_, None) => return Err(Error::WitnessMissing { path: key_path(path) }),
        };
        let key: SignerKey = key.parse().map_err(|error| forged(&key_path(path), &error))?;
        let head = opened(&note, key.verifier(), &origin(database)).map_err(|reason| forged(path, &reason))?;
        let witness = Witness::with_key(files, options, path, key);
        witness.heads().written = Some(head);
        Ok(Some(witness))
    }

    fn with_key(files: &Files, options: &Options, path: &Path, key: SignerKey) -> Witness {
        let beside = options.takes_turns().then_some(options.write_timeout);
        Witness { vfs: Arc::clone(&files.vfs), path: path.to_owned(), key, beside, heads: Mutex::default() }
    }

    fn new(files: &Files, options: &Options, path: &Path, database: [u8; 16]) -> Result<Witness> {
        let key = match read(files.vfs.as_ref(), &key_path(path))? {
            Some(key) => key.parse().map_err(|error| forged(&key_path(path), &error))?,
            None => {
                let key = SignerKey::generate(&origin(database))
                    .map_err(|error| Error::File { path: key_path(path), source: io::Error::other(error) })?;
                write(files.vfs.as_ref(), &key_path(path), &format!("{}\n", key.to_secret()))?;
                sync_name(files.vfs.as_ref(), &key_path(path))?;
                key
            }
        };
        Ok(Witness::with_key(files, options, path, key))
    }

    /// Compares the log with the witness.
    ///
    /// # Errors
    /// [`Error::RolledBack`] if the log ends before the head, [`Error::Forged`] if it is another log.
    pub(crate) fn check(&self, log: &Log) -> Result<()> {
        let Some(head) = self.heads().written else { return Ok(()) };
        if head.position > log.end() || head.commit > log.head().commit {
            let (witnessed, newest) = (head.commit.0, log.head().commit.0);
            return Err(Error::RolledBack { path: self.path.clone(), witnessed, newest });
        }
        if log.contains(head)? {
            return Ok(());
        }
        let reason = format!("the log has another commit {} than the witness", head.commit.0);
        Err(Error::Forged { path: self.path.clone(), reason })
    }

    /// Writes a head that is durable, unless a later one is there. What fails is tried again by the next call.
    pub(crate) fn record(&self, head: Head) {
        let mut heads = self.heads();
        heads.missed = later(heads.missed, Some(head));
        // A failure leaves it missed.
        let _ = self.write_missed(&mut heads);
    }

    /// Writes a head that could not be written before.
    ///
    /// # Errors
    /// [`Error::File`] if it still cannot be written; [`Error::Forged`] if another handle's witness is not one.
    pub(crate) fn catch_up(&self) -> Result<()> {
        self.write_missed(&mut self.heads())
    }

    fn write_missed(&self, heads: &mut Heads) -> Result<()> {
        let is_later = |written: Option<Head>, head: Head| written.is_none_or(|w| w.position < head.position);
        if let Some(head) = heads.missed.filter(|head| is_later(heads.written, *head)) {
            let locked = self.beside.map(|timeout| self.lock_key(timeout)).transpose()?;
            let mut is_first = heads.written.is_none();
            if locked.is_some() {
                let found = self.read_head()?;
                is_first = found.is_none();
                heads.written = later(heads.written, found);
            }
            if is_later(heads.written, head) {
                self.write(head, is_first)?;
                heads.written = Some(head);
            }
        }
        heads.missed = None;
        Ok(())
    }

    /// Waits until no other handle compares and replaces the file.
    fn lock_key(&self, timeout: Duration) -> Result<Arc<dyn VfsFile>> {
        let path = key_path(&self.path);
        let failed = |source| Error::File { path: path.clone(), source };
        let file = self.vfs.open(&path, OpenMode::ReadWrite).map_err(failed)?;
        let deadline = Instant::now() + timeout;
        while !file.try_lock(0..1, LockKind::Exclusive).map_err(failed)? {
            if Instant::now() >= deadline {
                return Err(failed(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked")));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(file)
    }

    /// The head that the file has now; `None` without a file.
    fn read_head(&self) -> Result<Option<Head>> {
        let Some(note) = read(self.vfs.as_ref(), &self.path)? else { return Ok(None) };
        let key = self.key.verifier();
        opened(&note, key, key.name()).map(Some).map_err(|reason| forged(&self.path, &reason))
    }

    fn write(&self, head: Head, is_first: bool) -> Result<()> {
        let origin = self.key.verifier().name();
        let Head { position, commit, hash } = head;
        let text = format!("{origin}\nposition {}\ncommit {}\nhash {}\n", position.0, commit.0, hex(&hash));
        let note = self.key.sign(&text).map_err(|error| forged(&self.path, &error))?;
        write(self.vfs.as_ref(), &self.path, &note)?;
        if is_first { sync_name(self.vfs.as_ref(), &self.path) } else { Ok(()) }
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn later(one: Option<Head>, other: Option<Head>) -> Option<Head> {
    one.into_iter().chain(other).max_by_key(|head| head.position)
}

/// The name under which the key of a database signs.
fn origin(database: [u8; 16]) -> String {
    format!("holotype/{}", hex(&database))
}

fn key_path(witness: &Path) -> PathBuf {
    let mut name = witness.file_name().map_or_else(Default::default, std::ffi::OsStr::to_owned);
    name.push(".key");
    witness.with_file_name(name)
}

fn check_outside(files: &Files, path: &Path) -> Result<()> {
    if path.starts_with(&files.dir) {
        let path = path.display();
        return Err(Error::Invalid(format!(
            "the witness {path} is inside the database, with which it could be rolled back; name a file outside"
        )));
    }
    Ok(())
}

fn forged(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::Forged { path: path.to_owned(), reason: reason.to_string() }
}

/// The head in a signed note of this origin, or what is wrong with the note.
fn opened(note: &str, key: &VerifierKey, origin: &str) -> Result<Head, String> {
    if key.name() != origin {
        return Err(format!("its key is that of {}, and this database is {origin}", key.name()));
    }
    let text = key.open(note).map_err(|error| error.to_string())?;
    parse(text, origin).ok_or_else(|| "it is not a witness of this database".to_owned())
}

fn parse(text: &str, origin: &str) -> Option<Head> {
    let mut lines = text.lines();
    let is_own = lines.next()? == origin;
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let position = Lsn(field("position")?.parse().ok()?);
    let commit = CommitNo(field("commit")?.parse().ok()?);
    let hash = hash_of(field("hash")?)?;
    (is_own && lines.next().is_none()).then_some(Head { position, commit, hash })
}

fn hash_of(digits: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if digits.len() != 2 * hash.len() || !digits.is_ascii() {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

/// The text of a file; `None` if there is none.
fn read(vfs: &dyn Vfs, path: &Path) -> Result<Option<String>> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let file = match vfs.open(path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let len = file.len().map_err(failed)?;
    if len > MAX_FILE_LEN {
        return Err(forged(path, &format!("it has {len} bytes, and no witness or key has more than {MAX_FILE_LEN}")));
    }
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| forged(path, &"it is not text"))
}

/// Makes the name of a new file durable. A file that is replaced keeps one of its contents, and either will do.
fn sync_name(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    vfs.sync_dir(dir).map_err(|source| Error::File { path: dir.to_owned(), source })
}

/// Replaces a file in one step.
fn write(vfs: &dyn Vfs, path: &Path, text: &str) -> Result<()> {
    let unfinished = temporary_name(path);
    let removed = match vfs.remove(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    removed
        .and_then(|()| vfs.open(&unfinished, OpenMode::CreateNew))
        .and_then(|file| file.write_at(text.as_bytes(), 0).and_then(|()| file.sync()))
        .and_then(|()| vfs.rename(&unfinished, path))
        .map_err(|source| Error::File { path: path.to_owned(), source })
}
