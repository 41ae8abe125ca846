//! The thread that prepares the next segment file before the writer needs it.
//!
//! A commit into a file of zeros that are on the disk already costs one data write; into a growing file it costs
//! metadata writes as well. So segments are filled with zeros and synced under another name, then renamed into place.
//! They are synced step by step: a sync of the log that comes meanwhile waits behind one step, not behind a whole
//! segment.
//!
//! 1. A file with a segment's name is whole, zeros or used.
//! 2. A preparation that fails leaves no file and changes nothing else: the writer refuses one transaction, and the
//!    next one tries again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, Sender, bounded};

use super::segment::file_name;
use crate::error::{Error, Result};
use crate::vfs::{OpenMode, Vfs, VfsFile};

/// How much is filled and synced at once.
const FILL_LEN: usize = 1 << 20;

/// A file of zeros in its place.
#[derive(Clone, Debug)]
pub(crate) struct Spare {
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    pub(crate) file: Arc<dyn VfsFile>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    len: u64,
}

type Reply = (Request, io::Result<Spare>);

/// The writer's side.
#[derive(Debug)]
pub(crate) struct Preparer {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    ready: BTreeMap<u64, Spare>,
    /// Begun at the first request: many logs are opened and never grow.
    worker: Option<Worker>,
    /// At most one request is under way.
    asked: bool,
}

#[derive(Debug)]
struct Worker {
    requests: Sender<Request>,
    replies: Receiver<Reply>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Preparer {
    /// `ready` are files prepared by an earlier process.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: &Path, ready: BTreeMap<u64, Spare>) -> Self {
        Self { vfs, dir: dir.to_owned(), ready, worker: None, asked: false }
    }

    /// Has segment `number` prepared in the background, unless it is there or another is being prepared.
    pub(crate) fn prefetch(&mut self, number: u64, len: u64) {
        if !self.asked && !self.ready.contains_key(&number) {
            // If it cannot be asked now, it is asked when the segment is needed, and the failure told.
            let _ = self.ask(Request { number, len });
        }
    }

    /// Segment `number`, prepared now if it was not yet, of at least `min_len` bytes and `len` if it is new.
    pub(crate) fn take(&mut self, number: u64, len: u64, min_len: u64) -> Result<Spare> {
        if self.asked {
            // A failed prefetch counts for nothing: there may be room by now.
            let _ = self.wait();
        }
        if self.ready.get(&number).is_none_or(|spare| spare.len < min_len) {
            let request = Request { number, len: len.max(min_len) };
            self.ask(request).and_then(|()| self.wait()).map_err(|source| Error::NoRoom {
                path: self.dir.join(file_name(number)),
                len: request.len,
                source,
            })?;
        }
        self.ready.remove(&number).ok_or(Error::Closed)
    }

    /// Keeps a file that was taken and not used.
    pub(crate) fn give_back(&mut self, number: u64, spare: Spare) {
        self.ready.insert(number, spare);
    }

    fn ask(&mut self, request: Request) -> io::Result<()> {
        let worker = match &mut self.worker {
            Some(worker) => worker,
            none => none.insert(Worker::start(Arc::clone(&self.vfs), self.dir.clone())?),
        };
        worker.requests.send(request).map_err(|_| io::Error::other("the preparing thread has ended"))?;
        self.asked = true;
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        self.asked = false;
        let ended = || io::Error::other("the preparing thread has ended");
        let worker = self.worker.as_ref().ok_or_else(ended)?;
        let (request, made) = worker.replies.recv().map_err(|_| ended())?;
        self.ready.insert(request.number, made?);
        Ok(())
    }
}

impl Worker {
    fn start(vfs: Arc<dyn Vfs>, dir: PathBuf) -> io::Result<Self> {
        let (requests, incoming) = bounded::<Request>(1);
        let (outgoing, replies) = bounded::<Reply>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let thread_stop = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("holotype-log".into()).spawn(move || {
            for request in incoming {
                let made = prepare(&*vfs, &dir, request, &thread_stop);
                if outgoing.send((request, made)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { requests, replies, stop, thread })
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        if let Some(Worker { requests, replies, stop, thread }) = self.worker.take() {
            stop.store(true, Ordering::Relaxed);
            // The thread ends when nobody can ask any more, and nobody listens.
            drop((requests, replies));
            let _ = thread.join();
        }
    }
}

fn prepare(vfs: &dyn Vfs, dir: &Path, request: Request, stop: &AtomicBool) -> io::Result<Spare> {
    let path = dir.join(file_name(request.number));
    let unfinished = unfinished_path(&path);
    remove_if_there(vfs, &unfinished)?;
    let made = fill(vfs, &unfinished, request.len, stop)
        .and_then(|_| vfs.rename(&unfinished, &path))
        .and_then(|()| vfs.sync_dir(dir))
        .and_then(|()| vfs.open(&path, OpenMode::ReadWrite));
    if made.is_err() {
        // Best effort: what is left is removed at the next attempt or opening.
        let _ = remove_if_there(vfs, &unfinished);
    }
    Ok(Spare { path, len: request.len, file: made? })
}

/// The name a segment has until it is whole.
pub(crate) fn unfinished_path(path: &Path) -> PathBuf {
    path.with_extension("log.tmp")
}

/// Creates a file of zeros, synced.
pub(crate) fn fill(vfs: &dyn Vfs, path: &Path, len: u64, stop: &AtomicBool) -> io::Result<Arc<dyn VfsFile>> {
    let file = vfs.open(path, OpenMode::CreateNew)?;
    let zeros = vec![0; usize::try_from(len).map_or(FILL_LEN, |len| len.min(FILL_LEN))];
    let mut at = 0;
    while at < len {
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the log is being closed"));
        }
        let step = usize::try_from(len - at).map_or(zeros.len(), |left| left.min(zeros.len()));
        file.write_at(&zeros[..step], at)?;
        file.sync()?;
        at += step as u64;
    }
    Ok(file)
}

/// Removes a file that may be missing.
pub(crate) fn remove_if_there(vfs: &dyn Vfs, path: &Path) -> io::Result<()> {
    match vfs.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
