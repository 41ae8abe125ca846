//! A transaction on a thread of its own.
//!
//! The engine's transaction borrows its database, which no Python object can do. So each has a thread: it begins the
//! transaction and runs what it is sent, in order, until commit or rollback. Any Python thread may send it something,
//! those of asyncio's pool among them.
//!
//! 1. The thread ends with its transaction, and [`Session::end`] and [`Session::commit`] wait for that, so nothing of a
//!    session holds the database afterwards.
//! 2. Dropping a session rolls its transaction back.
//! 3. In a forked process the thread does not exist: no call waits for it.

use crate::process::Process;
use crate::{errors, interrupt};
use holotype::{Cancel, Commit, Durability, Holotype, Result, Transaction};
use pyo3::prelude::*;
use std::mem;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

/// Work for the thread of the transaction.
type Job = Box<dyn FnOnce(&mut Transaction<'_>) + Send>;

enum Request {
    Run(Job),
    Commit(Durability, SyncSender<Result<Commit>>),
}

/// An open transaction, or one that has ended.
pub(crate) struct Session {
    process: Process,
    path: PathBuf,
    running: Mutex<Option<Running>>,
    /// The Python thread that used it last, which cannot wait for the writer meanwhile; `None` if it is of no thread.
    user: Option<Mutex<ThreadId>>,
}

struct Running {
    requests: Sender<Request>,
    thread: JoinHandle<()>,
}

impl Session {
    /// Begins a transaction and waits until the writer before it has ended, or for a time.
    pub(crate) fn begin(
        py: Python<'_>,
        database: Holotype,
        user: Option<ThreadId>,
        timeout: Option<Duration>,
    ) -> PyResult<Session> {
        let (begun, is_begun) = sync_channel(1);
        let (requests, to_do) = channel();
        let path = database.path().to_owned();
        let thread = thread::Builder::new()
            .name("holotype-writer".to_owned())
            .spawn(move || serve(database, timeout, &begun, &to_do))
            .map_err(|error| no_thread(py, &error))?;
        match interrupt::wait(py, is_begun, None)? {
            Some(Ok(())) => {
                let running = Mutex::new(Some(Running { requests, thread }));
                Ok(Session { process: Process::current(), path, running, user: user.map(Mutex::new) })
            }
            Some(Err(error)) => Err(errors::raise(py, &error, None)),
            None => Err(ended(py)),
        }
    }

    /// Runs `work` with the transaction. `source` is the statement it runs, for errors; `cancel` stops it.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        py: Python<'_>,
        source: Option<&str>,
        cancel: Option<&Cancel>,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        self.process.check(py, &self.path)?;
        if let Some(user) = &self.user {
            *user.lock().unwrap_or_else(PoisonError::into_inner) = thread::current().id();
        }
        let (done, is_done) = sync_channel(1);
        // If nobody waits any more, there is nobody to tell.
        let job: Job = Box::new(move |transaction| drop(done.send(work(transaction))));
        let sent = {
            let running = self.running();
            running.as_ref().is_some_and(|running| running.requests.send(Request::Run(job)).is_ok())
        };
        let done = if sent { interrupt::wait(py, is_done, cancel)? } else { None };
        done.ok_or_else(|| ended(py))?.map_err(|error| errors::raise(py, &error, source))
    }

    /// Commits the transaction and ends the session, also if committing fails.
    pub(crate) fn commit(&self, py: Python<'_>, durability: Durability) -> PyResult<Commit> {
        self.process.check(py, &self.path)?;
        let running = self.running().take().ok_or_else(|| ended(py))?;
        let committed = py.detach(move || {
            let (done, is_done) = sync_channel(1);
            let sent = running.requests.send(Request::Commit(durability, done));
            let committed = sent.ok().and_then(|()| is_done.recv().ok());
            // A panic of the thread leaves no commit, which is told below.
            let _ = running.thread.join();
            committed
        });
        committed.ok_or_else(|| ended(py))?.map_err(|error| errors::raise(py, &error, None))
    }

    /// Rolls the transaction back, unless it has ended, or is another process's.
    pub(crate) fn end(&self) {
        if !self.process.is_current() {
            return;
        }
        let running = self.running().take();
        if let Some(Running { requests, thread }) = running {
            drop(requests);
            // A thread that panicked has dropped its transaction all the same.
            let _ = thread.join();
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.process.is_current() && self.running().is_some()
    }

    /// True if the transaction is open and this thread used it last.
    pub(crate) fn is_of(&self, thread: ThreadId) -> bool {
        if !self.process.is_current() {
            return false;
        }
        let user = self.user.as_ref().map(|user| *user.lock().unwrap_or_else(PoisonError::into_inner));
        user == Some(thread) && self.is_open()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    /// Not waited for: a drop may happen while the interpreter is held.
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if !self.process.is_current() {
            mem::forget(running);
        }
    }
}

fn no_thread(py: Python<'_>, error: &std::io::Error) -> PyErr {
    let message = format!("the system gave no thread for the transaction: {error}");
    let hint = "end other threads, or raise the limits of processes and memory of this user";
    errors::own(py, ("threads", "limit"), &message, hint)
}

fn ended(py: Python<'_>) -> PyErr {
    errors::invalid(py, "transaction-ended", "the transaction has ended", "begin another one")
}

/// The life of a transaction, on its thread.
fn serve(database: Holotype, timeout: Option<Duration>, begun: &SyncSender<Result<()>>, to_do: &Receiver<Request>) {
    let began = timeout.map_or_else(|| database.begin(), |timeout| database.begin_timeout(timeout));
    let mut transaction = match began {
        Ok(transaction) => transaction,
        Err(error) => {
            let _ = begun.send(Err(error));
            return;
        }
    };
    if begun.send(Ok(())).is_err() {
        return;
    }
    while let Ok(request) = to_do.recv() {
        match request {
            Request::Run(job) => job(&mut transaction),
            Request::Commit(durability, done) => {
                let _ = done.send(transaction.commit(durability));
                return;
            }
        }
    }
}
