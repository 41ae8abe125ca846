//! The thread that prepares the next segment file before the writer needs it.
//!
//! A commit into a file of allocated zeros costs one data write; into a growing file it costs metadata writes as well.
//! So segments are filled with zeros and synced under another name, then renamed into place. They are synced step by
//! step: a concurrent sync of the log waits for one step, not for a whole segment.
//!
//! 1. A file with a segment's name is complete, and either all zeros or in use.
//! 2. A failed preparation leaves no file and has no other effect: the writer refuses one transaction, and the next one
//!    tries again.

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

/// The length of one fill-and-sync step.
const FILL_LEN: usize = 1 << 20;

/// A prepared file of zeros under its segment's name.
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
    /// Started at the first request: many logs are opened but never grow.
    worker: Option<Worker>,
    /// True while a request is under way; at most one is.
    asked: bool,
    /// Other handles append in turns: a file prepared ahead could be replaced by theirs of the same name, so each is
    /// prepared when it is needed.
    shared: bool,
}

#[derive(Debug)]
struct Worker {
    requests: Sender<Request>,
    replies: Receiver<Reply>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Preparer {
    /// A preparer; `ready` has files that an earlier process prepared.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: &Path, ready: BTreeMap<u64, Spare>) -> Self {
        Self { vfs, dir: dir.to_owned(), ready, worker: None, asked: false, shared: false }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Prepares nothing ahead from now on.
    pub(crate) fn share(&mut self) {
        self.shared = true;
        self.ready.clear();
    }

    /// Removes what was prepared and is not used, and prepares nothing from now on. It goes from the last file to the
    /// first, each removal synced: numbers must never have a gap. A file that cannot be removed stays, and the next
    /// opening uses it.
    pub(crate) fn discard(&mut self) {
        if let Some(worker) = &self.worker {
            worker.stop.store(true, Ordering::Relaxed);
        }
        if self.asked {
            let _ = self.wait();
        }
        while let Some((_, spare)) = self.ready.pop_last().filter(|_| !self.shared) {
            let removed = remove_if_there(&*self.vfs, &spare.path).and_then(|()| self.vfs.sync_dir(&self.dir));
            if removed.is_err() {
                return;
            }
        }
    }

    /// Prepares segment `number` in the background, unless it is ready or another one is being prepared.
    pub(crate) fn prefetch(&mut self, number: u64, len: u64) {
        if !self.asked && !self.shared && !self.ready.contains_key(&number) {
            // A failure is reported when the segment is needed and requested again.
            let _ = self.ask(Request { number, len });
        }
    }

    /// Returns segment `number` with at least `min_len` bytes. A segment that is not ready is prepared now, with `len`
    /// bytes.
    pub(crate) fn take(&mut self, number: u64, len: u64, min_len: u64) -> Result<Spare> {
        if self.asked {
            // A failed prefetch does not matter: there may be room by now.
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

    /// Returns an unused file from `take`.
    pub(crate) fn give_back(&mut self, number: u64, spare: Spare) {
        if !self.shared {
            self.ready.insert(number, spare);
        }
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
            // The thread ends when both channels are closed.
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
        // Best effort: the next attempt or opening removes the rest.
        let _ = remove_if_there(vfs, &unfinished);
    }
    Ok(Spare { path, len: request.len, file: made? })
}

/// The name of a segment file until it is complete.
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
