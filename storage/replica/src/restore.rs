//! Restoring a database from a replica or from a copy of its directory, as of any commit.
//!
//! 1. Everything is verified before the database gets its name: chunk hashes, the hash chain, the root of the tree
//!    where the log has its beginning.
//! 2. What was erased stays erased, also as of an earlier commit. The log is then kept up to the last commit that
//!    erased anything in it, and the restored database shows the state as of the commit that was asked for.
//! 3. A database restored as of an earlier commit says so in the file `RESTORED`, and opens read-only.

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use holotype_storage::log::{Growth, Head, Lsn, write_floor};
use holotype_storage::proof::note::VerifierKey;
use holotype_storage::vfs::OsVfs;

use crate::block_on::block_on;
use crate::copy::{Commit, LogCopy};
use crate::error::{Error, Result};
use crate::follow::fetch;
use crate::head::{self, RemoteHead};
use crate::local_log::LocalLog;
use crate::manifest::{ChunkRef, Manifest};
use crate::push::load;
use crate::source::{Sink as _, Source as _};
use crate::store::{Got, Store, StoreError};

/// Attempts to read a head whose objects are there.
const ATTEMPTS: usize = 8;

/// The file in a database that was restored as of an earlier commit.
const RESTORED: &str = "RESTORED";

/// The commit as of which a database is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The newest.
    Newest,
    /// The commit with this number.
    Commit(u64),
    /// The last commit with a clock at or before this time, microseconds since 1970.
    Time(i64),
}

/// The place that a database is restored from.
#[derive(Clone, Debug)]
pub enum Origin<S> {
    /// A replica.
    Replica(S),
    /// The directory of a database, such as a backup.
    Directory(PathBuf),
}

/// A restored database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The commit whose state it shows.
    pub shown: Head,
    /// The clock of that commit.
    pub time_us: i64,
    /// The last commit of its log: a later one where erasures since had to be kept.
    pub kept: Head,
    /// The last commit of the origin.
    pub newest: Head,
    /// True if the root of the tree over all records was compared with the replica's head.
    pub root_compared: bool,
    /// The length of its log in bytes.
    pub bytes: u64,
}

/// Restores a database to an unused path. `progress` receives the bytes done and the total.
///
/// # Errors
/// [`Error::Exists`]; [`Error::NotThere`] for a commit or time that the origin has not; [`Error::NoReplica`],
/// [`Error::Damaged`], [`Error::Signature`]; those of the files.
pub fn restore<S: Store>(
    origin: &Origin<S>,
    dest: &Path,
    target: Target,
    key: Option<&VerifierKey>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored> {
    if fs::symlink_metadata(dest).is_ok() {
        return Err(Error::Exists(dest.to_owned()));
    }
    let mut name = dest.file_name().unwrap_or_default().to_owned();
    name.push(".restoring");
    let unfinished = dest.with_file_name(name);
    if unfinished.exists() {
        // The rest of a restore that was interrupted.
        fs::remove_dir_all(&unfinished).map_err(Error::io(&unfinished, "remove"))?;
    }
    let restored = write(origin, &unfinished, target, key, progress);
    let restored = restored.and_then(|restored| {
        fs::rename(&unfinished, dest).map_err(Error::io(dest, "rename the finished copy to"))?;
        let parent = dest.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(Error::io(parent, "sync"))?;
        Ok(restored)
    });
    if restored.is_err() {
        // Best effort: the first failure is reported.
        let _ = fs::remove_dir_all(&unfinished);
    }
    restored
}

fn write<S: Store>(
    origin: &Origin<S>,
    dir: &Path,
    target: Target,
    key: Option<&VerifierKey>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored> {
    let mut copy = LogCopy::open(dir, Head::default())?;
    let (newest, expected) = match origin {
        Origin::Replica(store) => {
            let head = block_on(download(store, &mut copy, target, key, progress))?;
            (head.head, head.root)
        }
        Origin::Directory(from) => (copy_directory(from, dir, &mut copy, progress)?, None),
    };
    copy.sync()?;
    let mut found: Option<Commit> = None;
    let (end, tree) = copy.prove(&mut |commit| {
        let is_reached = match target {
            Target::Newest => true,
            Target::Commit(number) => commit.head.commit.0 <= number,
            Target::Time(time_us) => commit.time_us <= time_us,
        };
        if is_reached {
            found = Some(commit);
        }
    })?;
    let found = found.ok_or_else(|| Error::NotThere(describe(target, "the log begins after it")))?;
    if let Target::Commit(number) = target
        && found.head.commit.0 != number
    {
        return Err(Error::NotThere(describe(target, &format!("the last commit is {}", newest.commit))));
    }
    let is_whole = end == newest;
    let root_compared = match (is_whole, expected, &tree) {
        (true, Some(expected), Some(tree)) if tree.root() == expected => true,
        (true, Some(_), Some(_)) => {
            return Err(Error::damaged(head::KEY, "the tree over all records has another root"));
        }
        (true, ..) | (false, ..) => false,
    };
    let mut kept = end;
    if found.head != end {
        let (last, position) = last_erasure(dir, found.head)?;
        kept = last;
        copy.cut(position)?;
    }
    if found.head != newest {
        mark(dir, &found)?;
    }
    let bytes = fs::read_dir(dir.join("log")).map_err(Error::io(dir, "list"))?;
    let bytes = bytes.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum();
    Ok(Restored { shown: found.head, time_us: found.time_us, kept, newest, root_compared, bytes })
}

/// The last commit after `reach` that erased a record before it, and the position after its erasures; `reach` if there
/// is none.
fn last_erasure(dir: &Path, reach: Head) -> Result<(Head, Lsn)> {
    let log = LocalLog::open(dir, None)?;
    let mut last = (reach, reach.position);
    log.growth(Some(reach), &mut |growth| {
        match growth {
            Growth::Commit { head, erases, .. } if erases.iter().any(|(first, _)| *first < reach.position) => {
                last = (head, head.position);
            }
            Growth::Erased { commit, end } if commit == last.0.commit.0 && commit > reach.commit.0 => last.1 = end,
            Growth::Commit { .. } | Growth::Erased { .. } => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(last)
}

fn describe(target: Target, why: &str) -> String {
    match target {
        Target::Newest => format!("there is no commit to restore: {why}"),
        Target::Commit(number) => format!("commit {number} cannot be restored: {why}"),
        Target::Time(_) => format!("nothing can be restored as of this time: {why}"),
    }
}

/// Fetches the chunks that the target needs.
async fn download<S: Store>(
    store: &S,
    copy: &mut LogCopy,
    target: Target,
    key: Option<&VerifierKey>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<RemoteHead> {
    for _ in 0..ATTEMPTS {
        let Got::Object(bytes, _) = store.get(head::KEY, None).await? else {
            return Err(Error::NoReplica { place: store.place() });
        };
        let head = RemoteHead::open(&bytes, key)?;
        let Some(manifest) = load(store, &head).await? else { continue };
        copy.prepare(&manifest)?;
        if fetch_all(store, copy, &manifest, needed(&manifest, target), progress).await? {
            if let Some(floor) = manifest.parsed_floor() {
                write_floor(&OsVfs, &copy.log_dir(), &floor, &manifest.database)?;
            }
            return Ok(head);
        }
    }
    Err(StoreError::new("read", head::KEY, "the objects that it names are missing").into())
}

async fn fetch_all<S: Store>(
    store: &S,
    copy: &mut LogCopy,
    manifest: &Manifest,
    needed: &[ChunkRef],
    progress: &mut dyn FnMut(u64, u64),
) -> Result<bool> {
    let total = needed.iter().map(|it| it.end - it.first).sum();
    let mut done = 0;
    for it in needed {
        let Some(log) = fetch(store, it).await? else { return Ok(false) };
        copy.write(it.first, &log)?;
        done += it.end - it.first;
        progress(done, total);
    }
    let end = needed.last().map_or(manifest.first(), |it| it.end);
    copy.remove_behind(Lsn(end))?;
    Ok(true)
}

/// The chunks up to the target, and further ones up to the last commit that erased anything in them.
fn needed(manifest: &Manifest, target: Target) -> &[ChunkRef] {
    let chunks = &manifest.chunks;
    let reaches = |it: &ChunkRef| match target {
        Target::Newest => false,
        Target::Commit(number) => it.commit >= number,
        Target::Time(time_us) => it.time_us > time_us,
    };
    let floor = manifest.parsed_floor().map_or(0, |floor| floor.until.position.0);
    let mut count = chunks.iter().position(reaches).map_or(chunks.len(), |at| at + 1);
    loop {
        let (here, behind) = chunks.split_at(count);
        let erased = here.iter().map(|it| it.erased).max().unwrap_or(0);
        let is_there = here.last().is_none_or(|it| it.commit >= erased && it.end >= floor);
        if is_there || behind.is_empty() {
            return here;
        }
        count += 1;
    }
}

/// Copies the log of a database on this machine. Returns its head.
fn copy_directory(from: &Path, dir: &Path, copy: &mut LogCopy, progress: &mut dyn FnMut(u64, u64)) -> Result<Head> {
    let log = LocalLog::open(from, None)?;
    let _pin = log.pin()?;
    let head = log.head();
    let to = dir.join("log");
    log.log().copy_to(&OsVfs, &to, head, progress)?;
    copy.take_spans(log.spans(head.position));
    Ok(head)
}

/// Writes the file that says which commit a restored database shows.
fn mark(dir: &Path, commit: &Commit) -> Result<()> {
    let path = dir.join(RESTORED);
    let text = format!("commit {}\n", commit.head.commit);
    File::create(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .map_err(Error::io(&path, "write"))
}
