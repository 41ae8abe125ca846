//! The `LOCK` file says who has the database open.
//!
//! Locks on two bytes far past the file's end show who holds the database; the system releases them
//! when a process dies. A status block of 64 bytes, little-endian, at the file's beginning names the
//! last writer and the durable position of the log:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `HOLOLOCK` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | process id of the last writer |
//! | 16 | 8 | when it took the lock, microseconds since 1970 (signed) |
//! | 24 | 8 | durable position: the log is known synced up to here |
//! | 32 | 1 | closed: 1 if the log was closed there and nobody has begun to write since, else 0 |
//! | 33 | 1 | busy: 1 while a handle has the turn, and after one that died with it, else 0 |
//! | 34 | 6 | zero |
//! | 40 | 8 | end of the log when the turn was last given back |
//! | 48 | 8 | random number of the handle that last had the turn, 0 for an exclusive one |
//! | 56 | 4 | zero |
//! | 60 | 4 | CRC32 over bytes 0..60 |
//! | 64 | 16 | database id |
//! | 80 | 44 | name of the program that has or last had the lock: UTF-8, cut to fit, the rest zero |
//! | 124 | 4 | CRC32 over bytes 64..124 |
//! | 128 | 8 | number of this file in its file system (inode) |
//! | 136 | 8 | when this file was created, microseconds since 1970 (signed), 0 if unknown |
//! | 144 | 16 | random number of this directory |
//! | 160 | 28 | zero |
//! | 188 | 4 | CRC32 over bytes 128..188 |
//!
//! Bytes 0..64, 64..128 and 128..192 are three blocks, each written and checked alone.
//!
//! 1. One handle holds the writer's byte exclusively, or several share it and take turns ([`crate::turn`]); readers
//!    share theirs.
//! 2. The durable position is written after the sync that it reports, so it is never too high. It is
//!    not synced itself: after a crash it may be old, or the block may be missing or torn, which
//!    counts as no status.
//!    A new writer syncs `closed` = 0 before it writes anything else: if the block says closed,
//!    nothing is after the end of the log, not even the remains of a torn write.
//! 3. A new writer preserves the durable position, because recovery judges damage by it.
//! 4. A process that copies the log pins it with a shared lock on a third byte; nothing is erased from the log
//!    meanwhile.
//! 5. The third block tells copies of a database apart, which have the same database id: in a copy it states the number
//!    and the time of the file that was copied ([`crate::instance`]).
//! 6. A file can be deleted, or replaced by a restore, beneath the process that has it locked. So a writer also locks
//!    the directory, which is another file after a restore, and looks at LOCK again when it takes its turn or begins a
//!    transaction: it stops where its path names another file (`held_directory`).
//! 7. Readers change nothing and need no permission to write. Without a LOCK file, and without permission to
//!    create one, they read without a lock.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::held_directory::HeldDirectory;
use crate::instance::Instance;
use crate::log::Lsn;
use crate::vfs::{LockKind, OpenMode, Vfs, VfsFile};

/// The content of the status block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The process that last took the writer's lock.
    pub pid: u32,
    /// The time when it took the lock, in microseconds since 1970.
    pub started_us: i64,
    /// The log is known synced up to here.
    pub durable: Lsn,
    /// True if the log was closed at `durable` and no writer has started since.
    pub closed: bool,
    /// True while a handle has the turn, and after one that died with it.
    pub busy: bool,
    /// The end of the log when the turn was last given back.
    pub end: Lsn,
    /// The handle that last had the turn; 0 for an exclusive one.
    pub holder: u64,
}

/// The database of a LOCK file, and who has it open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) database: [u8; 16],
    pub(crate) command: String,
}

/// The writer's lock on a database, or a reader's. It ends when dropped.
#[derive(Debug)]
pub struct Lock {
    pub(crate) path: PathBuf,
    /// `None` for a reader that found no LOCK file.
    pub(crate) file: Option<Arc<dyn VfsFile>>,
    /// The status that the writer last wrote; `None` for a reader.
    pub(crate) written: Option<Mutex<Status>>,
    /// The status before this writer took the lock.
    pub(crate) found: Option<Status>,
    /// The directory, where it can be locked; `None` for a reader.
    pub(crate) directory: Option<HeldDirectory>,
    /// The byte that this handle has locked.
    pub(crate) byte: Range<u64>,
    /// The number of this handle if it takes turns with others; 0 if not.
    pub(crate) number: u64,
    /// The end of the time in which it takes the turn again although others wait.
    pub(crate) share: Mutex<Option<Instant>>,
    /// The database, once it is known.
    pub(crate) database: Option<[u8; 16]>,
    /// The directory among the copies of the database, once the database is known.
    pub(crate) instance: Option<Instance>,
    /// True once the database was closed and the locks were given back.
    pub(crate) released: AtomicBool,
    /// The process that opened it. Locks are shared with the processes that it forks.
    pub(crate) process: u32,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl Lock {
    /// Takes the writer's lock. Creates the LOCK file at `path` if there is none.
    ///
    /// # Errors
    /// [`Error::Held`] with the holder's process id; [`Error::NetworkFileSystem`]; [`Error::Io`].
    pub fn writer(vfs: &dyn Vfs, path: &Path) -> Result<Self> {
        check_local(vfs, path)?;
        let file = open_or_create(vfs, path)?;
        let taken = file.try_lock(WRITER_BYTE, LockKind::Exclusive).map_err(Error::io(path, "lock"))?;
        let found = read_status(&*file).map_err(Error::io(path, "read"))?;
        if !taken {
            return Err(held(path, &*file));
        }
        let directory = HeldDirectory::open(vfs, path, &*file)?;
        if !directory.as_ref().map_or(Ok(true), HeldDirectory::try_lock)? {
            // The writer's LOCK was deleted or replaced, so this one says nothing of it.
            return Err(Error::Held { path: path.to_owned(), pid: 0, command: String::new() });
        }
        let status = Status::of_this_process(found);
        file.write_at(&encode(&status), 0).map_err(Error::io(path, "write"))?;
        file.sync().map_err(Error::io(path, "sync"))?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            written: Some(Mutex::new(status)),
            found,
            directory,
            byte: WRITER_BYTE,
            number: 0,
            share: Mutex::default(),
            database: None,
            instance: None,
            released: AtomicBool::new(false),
            process: std::process::id(),
        })
    }

    /// Announces a reader.
    ///
    /// # Errors
    /// [`Error::NetworkFileSystem`]; [`Error::Io`].
    pub fn reader(vfs: &dyn Vfs, path: &Path) -> Result<Self> {
        check_local(vfs, path)?;
        let file = match vfs.open(path, OpenMode::Read) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(path, "open")(error)),
        };
        if let Some(file) = &file {
            // Nobody takes this byte exclusively, so it is never refused.
            file.try_lock(READERS_BYTE, LockKind::Shared).map_err(Error::io(path, "lock"))?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            written: None,
            found: None,
            directory: None,
            byte: READERS_BYTE,
            number: 0,
            share: Mutex::default(),
            database: None,
            instance: None,
            released: AtomicBool::new(false),
            process: std::process::id(),
        })
    }

    /// True if another database has left this LOCK.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_of_another(&self, database: [u8; 16]) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let owner = read_owner(&**file).map_err(Error::io(&self.path, "read"))?;
        Ok(owner.is_some_and(|owner| owner.database != database))
    }

    /// Says which database this is, and who has it open. The status that the LOCK of another database brought here
    /// counts as none from now on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn belongs_to(&mut self, database: [u8; 16]) -> Result<()> {
        self.database = Some(database);
        if let Some(file) = &self.file {
            self.instance = Instance::of(&**file, self.written.is_some()).map_err(Error::io(&self.path, "identify"))?;
        }
        let (Some(file), Some(written)) = (&self.file, &self.written) else { return Ok(()) };
        let owner = read_owner(&**file).map_err(Error::io(&self.path, "read"))?;
        if owner.is_some_and(|owner| owner.database != database) {
            self.found = None;
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            *written = Status { durable: Lsn(0), end: Lsn(0), ..*written };
            file.write_at(&encode(&written), 0).map_err(Error::io(&self.path, "write"))?;
        }
        file.write_at(&encode_owner(&Owner { database, command: command() }), OWNER)
            .map_err(Error::io(&self.path, "write"))
    }

    /// This directory among the copies of the database, once the database is known; `None` where the file system has no
    /// numbers for files, and for a reader of a directory that no writer has opened.
    #[must_use]
    pub fn instance(&self) -> Option<Instance> {
        self.instance
    }

    /// Refuses to work in a process that was forked from the one that opened the database.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check_process(&self) -> Result<()> {
        match std::process::id() == self.process {
            true => Ok(()),
            false => Err(Error::Forked { path: self.path.clone() }),
        }
    }

    fn unlock(&self) {
        // A forked process must not end the lock of the one that has it.
        if let Some(file) = self.file.as_ref().filter(|_| self.check_process().is_ok()) {
            // Closing the file is not enough: a process forked meanwhile shares the open file, and its locks, until it
            // executes another program. If this fails, the lock ends with the last such copy.
            if let Some(directory) = &self.directory {
                directory.unlock();
            }
            let _ = file.unlock(self.byte.clone());
        }
    }

    /// Gives a writer's lock back before this is dropped: the database is closed, but snapshots of it are still held.
    /// They count as readers from now on, and nothing is written to LOCK any more.
    pub fn give_back(&self) {
        if self.written.is_some() && !self.released.swap(true, Ordering::AcqRel) {
            if let Some(file) = &self.file {
                let _ = file.try_lock(READERS_BYTE, LockKind::Shared);
            }
            self.unlock();
        }
    }

    /// True once [`Self::give_back`] was called.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }

    /// Refuses to write once LOCK was deleted or replaced beneath this writer: others may write to what is there now.
    ///
    /// # Errors
    /// [`Error::Replaced`]; [`Error::Io`].
    pub fn check_in_place(&self) -> Result<()> {
        self.directory.as_ref().map_or(Ok(()), HeldDirectory::check)
    }

    /// The status block before this writer took the lock. Recovery judges the log by it.
    #[must_use]
    pub fn found(&self) -> Option<Status> {
        self.found
    }

    /// The present status block; `None` if it is missing or does not match its checksum.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn status(&self) -> Result<Option<Status>> {
        match &self.file {
            Some(file) => self.own_status(&**file),
            None => Ok(None),
        }
    }

    /// The status, unless it is about another database.
    pub(crate) fn own_status(&self, file: &dyn VfsFile) -> Result<Option<Status>> {
        let is_foreign = |owner: Owner| self.database.is_some_and(|database| owner.database != database);
        let read = || Ok((read_status(file)?, read_owner(file)?));
        let (status, owner) = read().map_err(Error::io(&self.path, "read"))?;
        Ok(status.filter(|_| !owner.is_some_and(is_foreign)))
    }

    /// Records, for readers and the next recovery, that the log is synced up to `durable`.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] for a reader; [`Error::Io`].
    pub fn set_durable(&self, durable: Lsn) -> Result<()> {
        self.write(durable, false)
    }

    /// Records that the log is closed and ends at `durable`.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] for a reader; [`Error::Io`].
    pub fn set_closed(&self, durable: Lsn) -> Result<()> {
        self.write(durable, true)
    }

    fn write(&self, durable: Lsn, closed: bool) -> Result<()> {
        self.check_process()?;
        let (Some(file), Some(written)) = (&self.file, &self.written) else {
            return Err(Error::ReadOnly);
        };
        if self.is_released() {
            return Err(Error::Closed);
        }
        // Locked during the write, so that `written` is the block that was written last.
        let mut status = written.lock().unwrap_or_else(PoisonError::into_inner);
        if self.number != 0 && !status.busy {
            // The turn is another handle's, and the block with it.
            return Ok(());
        }
        if status.durable >= durable && status.closed == closed {
            return Ok(());
        }
        let next = Status { durable, closed, ..*status };
        file.write_at(&encode(&next), 0).map_err(Error::io(&self.path, "write"))?;
        // Set only after success: the next call repeats a failed write.
        *status = next;
        Ok(())
    }

    /// True if another handle holds the writer's lock, or shares it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn has_other_writer(&self) -> Result<bool> {
        self.is_held(WRITER_BYTE)
    }

    /// True if another handle reads.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn has_other_readers(&self) -> Result<bool> {
        self.is_held(READERS_BYTE)
    }

    /// Prevents any process from erasing or retiring parts of the log until the pin is dropped. Waits while an erasure
    /// is under way.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn pin(vfs: &dyn Vfs, path: &Path) -> Result<Pin> {
        match vfs.open(path, OpenMode::Read) {
            Ok(file) => Pin::take(path, file, LockKind::Shared),
            // No process can write without a LOCK file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Pin(None)),
            Err(error) => Err(Error::io(path, "open")(error)),
        }
    }

    /// Waits until no handle pins the log, and prevents new pins until the returned value is dropped.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn unpinned(vfs: &dyn Vfs, path: &Path) -> Result<Pin> {
        let file = vfs.open(path, OpenMode::ReadWrite).map_err(Error::io(path, "open"))?;
        Pin::take(path, file, LockKind::Exclusive)
    }

    fn is_held(&self, byte: Range<u64>) -> Result<bool> {
        match &self.file {
            Some(file) => file.is_locked(byte).map_err(Error::io(&self.path, "examine")),
            None => Ok(false),
        }
    }
}

/// A lock that keeps the log from being erased or retired. It ends when dropped.
#[derive(Debug)]
pub struct Pin(Option<Arc<dyn VfsFile>>);

impl Pin {
    fn take(path: &Path, file: Arc<dyn VfsFile>, kind: LockKind) -> Result<Self> {
        file.lock(PIN_BYTE, kind).map_err(Error::io(path, "lock"))?;
        Ok(Self(Some(file)))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // If this fails the lock ends with the file a moment later.
            let _ = file.unlock(PIN_BYTE);
        }
    }
}

pub(crate) const WRITER_BYTE: Range<u64> = 1 << 61..(1 << 61) + 1;
const READERS_BYTE: Range<u64> = WRITER_BYTE.end..WRITER_BYTE.end + 1;
pub(crate) const PIN_BYTE: Range<u64> = READERS_BYTE.end..READERS_BYTE.end + 1;

const MAGIC: [u8; 8] = *b"HOLOLOCK";
const VERSION: u32 = 1;

const STATUS_MAGIC: usize = 0;
const STATUS_VERSION: usize = STATUS_MAGIC + 8;
const STATUS_PID: usize = STATUS_VERSION + 4;
const STATUS_STARTED: usize = STATUS_PID + 4;
const STATUS_DURABLE: usize = STATUS_STARTED + 8;
const STATUS_CLOSED: usize = STATUS_DURABLE + 8;
const STATUS_BUSY: usize = STATUS_CLOSED + 1;
const STATUS_ZERO: usize = STATUS_BUSY + 1;
const STATUS_END: usize = STATUS_ZERO + 6;
const STATUS_HOLDER: usize = STATUS_END + 8;
const STATUS_REST: usize = STATUS_HOLDER + 8;
const STATUS_CRC: usize = STATUS_REST + 4;
const STATUS_LEN: usize = STATUS_CRC + 4;
const _: () = assert!(STATUS_LEN == 64);

/// The place of the second block.
pub(crate) const OWNER: u64 = STATUS_LEN as u64;
const OWNER_COMMAND: usize = 16;
const OWNER_CRC: usize = OWNER_COMMAND + 44;
const OWNER_LEN: usize = OWNER_CRC + 4;
const _: () = assert!(OWNER_LEN == 64);

/// The number of attempts to read a status that does not match its checksum: the writer may be writing it.
const READ_ATTEMPTS: usize = 4;

impl Status {
    /// The status of a writer in this process that found another one.
    pub(crate) fn of_this_process(found: Option<Status>) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            pid: std::process::id(),
            started_us: i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX),
            durable: found.map_or(Lsn(0), |status| status.durable),
            closed: false,
            busy: false,
            end: Lsn(0),
            holder: 0,
        }
    }
}

/// Refuses a network file system: its locks may have no effect, and readers may see old content.
pub(crate) fn check_local(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new(""));
    match vfs.is_network(directory).map_err(Error::io(directory, "examine"))? {
        true => Err(Error::NetworkFileSystem { path: directory.to_owned() }),
        false => Ok(()),
    }
}

pub(crate) fn open_or_create(vfs: &dyn Vfs, path: &Path) -> Result<Arc<dyn VfsFile>> {
    match vfs.open(path, OpenMode::CreateNew) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            vfs.open(path, OpenMode::ReadWrite).map_err(Error::io(path, "open"))
        }
        created => created.map_err(Error::io(path, "create")),
    }
}

pub(crate) fn read_status(file: &dyn VfsFile) -> io::Result<Option<Status>> {
    read_block(file, 0, decode)
}

pub(crate) fn read_owner(file: &dyn VfsFile) -> io::Result<Option<Owner>> {
    read_block(file, OWNER, decode_owner)
}

pub(crate) fn read_block<T>(
    file: &dyn VfsFile,
    at: u64,
    decode: impl Fn(&[u8; STATUS_LEN]) -> Option<T>,
) -> io::Result<Option<T>> {
    for _ in 0..READ_ATTEMPTS {
        let mut block = [0; STATUS_LEN];
        match file.read_at(&mut block, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        if let Some(content) = decode(&block) {
            return Ok(Some(content));
        }
    }
    Ok(None)
}

/// The error of a database that another handle has open.
pub(crate) fn held(path: &Path, file: &dyn VfsFile) -> Error {
    let (pid, command) = holder(file);
    Error::Held { path: path.to_owned(), pid, command }
}

/// The process that has or last had the lock, and its program; 0 and nothing where unknown.
pub(crate) fn holder(file: &dyn VfsFile) -> (u32, String) {
    let pid = read_status(file).ok().flatten().map_or(0, |status| status.pid);
    let command = read_owner(file).ok().flatten().map_or_else(String::new, |owner| owner.command);
    (pid, command)
}

/// The name of this program. Its arguments stay out: they may be text that is forgotten later.
pub(crate) fn command() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())).unwrap_or_default()
}

pub(crate) fn encode_owner(owner: &Owner) -> [u8; OWNER_LEN] {
    let mut block = [0; OWNER_LEN];
    block[..OWNER_COMMAND].copy_from_slice(&owner.database);
    let command = &owner.command[..owner.command.floor_char_boundary(OWNER_CRC - OWNER_COMMAND)];
    block[OWNER_COMMAND..OWNER_COMMAND + command.len()].copy_from_slice(command.as_bytes());
    let crc = crc32fast::hash(&block[..OWNER_CRC]);
    block[OWNER_CRC..].copy_from_slice(&crc.to_le_bytes());
    block
}

fn decode_owner(block: &[u8; OWNER_LEN]) -> Option<Owner> {
    let crc = u32::from_le_bytes(block[OWNER_CRC..].try_into().ok()?);
    if crc != crc32fast::hash(&block[..OWNER_CRC]) {
        return None;
    }
    let command = block[OWNER_COMMAND..OWNER_CRC].split(|byte| *byte == 0).next().unwrap_or_default();
    let command = String::from_utf8_lossy(command).chars().filter(|char| !char.is_control()).collect();
    Some(Owner { database: block[..OWNER_COMMAND].try_into().ok()?, command })
}

pub(crate) fn encode(status: &Status) -> [u8; STATUS_LEN] {
    let mut block = [0; STATUS_LEN];
    block[STATUS_MAGIC..STATUS_VERSION].copy_from_slice(&MAGIC);
    block[STATUS_VERSION..STATUS_PID].copy_from_slice(&VERSION.to_le_bytes());
    block[STATUS_PID..STATUS_STARTED].copy_from_slice(&status.pid.to_le_bytes());
    block[STATUS_STARTED..STATUS_DURABLE].copy_from_slice(&status.started_us.to_le_bytes());
    block[STATUS_CLOSED] = status.closed.into();
    block[STATUS_DURABLE..STATUS_CLOSED].copy_from_slice(&status.durable.0.to_le_bytes());
    block[STATUS_BUSY] = status.busy.into();
    block[STATUS_END..STATUS_HOLDER].copy_from_slice(&status.end.0.to_le_bytes());
    block[STATUS_HOLDER..STATUS_REST].copy_from_slice(&status.holder.to_le_bytes());
    let crc = crc32fast::hash(&block[..STATUS_CRC]);
    block[STATUS_CRC..].copy_from_slice(&crc.to_le_bytes());
    block
}

fn decode(block: &[u8; STATUS_LEN]) -> Option<Status> {
    let crc = u32::from_le_bytes(block[STATUS_CRC..].try_into().ok()?);
    let version = u32::from_le_bytes(block[STATUS_VERSION..STATUS_PID].try_into().ok()?);
    let known = block[STATUS_MAGIC..STATUS_VERSION] == MAGIC && version == VERSION;
    if !known || crc32fast::hash(&block[..STATUS_CRC]) != crc {
        return None;
    }
    Some(Status {
        pid: u32::from_le_bytes(block[STATUS_PID..STATUS_STARTED].try_into().ok()?),
        started_us: i64::from_le_bytes(block[STATUS_STARTED..STATUS_DURABLE].try_into().ok()?),
        durable: Lsn(u64::from_le_bytes(block[STATUS_DURABLE..STATUS_CLOSED].try_into().ok()?)),
        closed: block[STATUS_CLOSED] == 1,
        busy: block[STATUS_BUSY] != 0,
        end: Lsn(u64::from_le_bytes(block[STATUS_END..STATUS_HOLDER].try_into().ok()?)),
        holder: u64::from_le_bytes(block[STATUS_HOLDER..STATUS_REST].try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{Failure, SimVfs};

    #[test]
    fn the_bytes_of_a_status_block() {
        let status = Status {
            pid: 0x0102_0304,
            started_us: -2,
            durable: Lsn(0x1122_3344_5566_7788),
            closed: true,
            busy: true,
            end: Lsn(0x0203),
            holder: 0x0405_0607_0809_0a0b,
        };
        let block = encode(&status);
        let mut expected = Vec::new();
        expected.extend_from_slice(b"HOLOLOCK");
        expected.extend_from_slice(&[1, 0, 0, 0]);
        expected.extend_from_slice(&[4, 3, 2, 1]);
        expected.extend_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        expected.extend_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        expected.extend_from_slice(&[1, 1]);
        expected.resize(40, 0);
        expected.extend_from_slice(&[3, 2, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[0x0b, 0x0a, 9, 8, 7, 6, 5, 4]);
        expected.resize(60, 0);
        assert_eq!(block[..60], expected[..]);
        assert_eq!(block[60..], crc32fast::hash(&expected).to_le_bytes());
        assert_eq!(decode(&block), Some(status));
    }

    fn status() -> Status {
        Status { durable: Lsn(4096), ..Status::of_this_process(None) }
    }

    #[test]
    fn the_bytes_of_an_owner_block() {
        let owner = Owner { database: [7; 16], command: "holotype".to_owned() };
        let block = encode_owner(&owner);
        let mut expected = [7; 16].to_vec();
        expected.extend_from_slice(b"holotype");
        expected.resize(60, 0);
        assert_eq!(block[..60], expected[..]);
        assert_eq!(block[60..], crc32fast::hash(&expected).to_le_bytes());
        assert_eq!(decode_owner(&block), Some(owner));
        // A long name is cut, between characters.
        let long = Owner { database: [0; 16], command: "ä".repeat(40) };
        assert_eq!(decode_owner(&encode_owner(&long)).unwrap().command, "ä".repeat(22));
        for bit in 0..OWNER_LEN * 8 {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_owner(&flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn the_status_of_another_database_counts_as_none() {
        let (sim, path) = (SimVfs::new(), Path::new("/LOCK"));
        let mut lock = Lock::writer(&sim, path).unwrap();
        lock.belongs_to([1; 16]).unwrap();
        lock.set_durable(Lsn(1 << 40)).unwrap();
        drop(lock);
        let mut reader = Lock::reader(&sim, path).unwrap();
        assert!(reader.status().unwrap().is_some());
        reader.belongs_to([2; 16]).unwrap();
        assert_eq!(reader.status().unwrap(), None);
        let mut own = Lock::writer(&sim, path).unwrap();
        own.belongs_to([1; 16]).unwrap();
        assert_eq!(own.found().unwrap().durable, Lsn(1 << 40));
        drop(own);
        let mut other = Lock::writer(&sim, path).unwrap();
        other.belongs_to([2; 16]).unwrap();
        assert_eq!(other.found(), None);
        assert_eq!(reader.status().unwrap().unwrap().durable, Lsn(0));
    }

    #[test]
    fn another_magic_or_version_is_no_status() {
        let block = encode(&status());
        for at in [STATUS_MAGIC, STATUS_VERSION] {
            let mut other = block;
            other[at] += 1;
            let crc = crc32fast::hash(&other[..STATUS_CRC]);
            other[STATUS_CRC..].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(decode(&other), None, "byte {at}");
        }
    }

    #[test]
    fn a_pin_ends_when_it_is_dropped() {
        let sim = SimVfs::new();
        let path = Path::new("/LOCK");
        let [one, other] = [(); 2].map(|()| open_or_create(&sim, path).unwrap());
        let pin = Pin::take(path, Arc::clone(&one), LockKind::Shared).unwrap();
        assert!(other.is_locked(PIN_BYTE).unwrap());
        drop(pin);
        assert!(!other.is_locked(PIN_BYTE).unwrap(), "though the file is still open");
    }

    #[test]
    fn a_position_that_could_not_be_written_is_written_again() {
        let sim = SimVfs::new();
        let lock = Lock::writer(&sim, Path::new("/LOCK")).unwrap();
        sim.fail_at(sim.calls(), Failure::Io, false);
        assert!(lock.set_durable(Lsn(4096)).is_err());
        lock.set_durable(Lsn(4096)).unwrap();
        assert_eq!(lock.status().unwrap().unwrap().durable, Lsn(4096));
    }

    #[test]
    fn no_flipped_bit_passes_for_a_status() {
        let block = encode(&status());
        for bit in 0..STATUS_LEN * 8 {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), None, "bit {bit}");
        }
    }
}
