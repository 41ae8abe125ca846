//! Ctrl-C ends the program with status 130. Committed transactions stand, as after any end of a process.
//!
//! While an import runs, the first Ctrl-C lets it stop between two lines and close the database; while a statement
//! runs, the first cancels it; the demo stops between two sections. The second ends the program at once. Between the
//! statements of an interactive session none ends it.

use crate::failure::{Failure, Problem, Status};
use holotype::Cancel;
use std::io::{self, BufRead, Read, Write as _};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The exit status of an interrupted command.
pub(crate) const STATUS: u8 = 130;
/// For [`defer`]: no number of them ends the program.
pub(crate) const ALWAYS: u32 = u32::MAX;

/// The number of Ctrl-C that the running command handles itself, and the number so far.
static DEFERRED: AtomicU32 = AtomicU32::new(0);
static ASKED: AtomicU32 = AtomicU32::new(0);
/// The handle that a Ctrl-C cancels.
static CANCEL: LazyLock<Cancel> = LazyLock::new(Cancel::new);

/// Takes over Ctrl-C.
pub(crate) fn install() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        let before = ASKED.fetch_add(1, Ordering::SeqCst);
        CANCEL.cancel();
        if before >= DEFERRED.load(Ordering::SeqCst) {
            let _ = io::stderr().write_all(b"\ninterrupted\n");
            std::process::exit(i32::from(STATUS));
        }
    })
    .map_err(|error| {
        // It takes a thread.
        let what = format!("cannot take over Ctrl-C: {error}; there may be no memory for a thread");
        Problem::new(Status::Io, "io", what).into()
    })
}

/// True if the user asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) > 0
}

/// Forgets the Ctrl-C so far.
pub(crate) fn reset() {
    ASKED.store(0, Ordering::SeqCst);
    CANCEL.reset();
}

/// The handle that a Ctrl-C cancels.
pub(crate) fn cancel() -> &'static Cancel {
    &CANCEL
}

/// While it lives, the given number of Ctrl-C do not end the program.
#[derive(Debug)]
pub(crate) struct Deferred {
    before: u32,
}

pub(crate) fn defer(times: u32) -> Deferred {
    Deferred { before: DEFERRED.swap(times, Ordering::SeqCst) }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        DEFERRED.store(self.before, Ordering::SeqCst);
    }
}

/// Input that fails at its next read once the user asked to stop.
#[derive(Debug)]
pub(crate) struct Stoppable<R> {
    input: R,
    _deferred: Deferred,
}

impl<R> Stoppable<R> {
    pub(crate) fn new(input: R) -> Self {
        Stoppable { input, _deferred: defer(1) }
    }
}

fn check() -> io::Result<()> {
    // Not `ErrorKind::Interrupted`, which readers take as a call to try again.
    if asked() { Err(io::Error::other("interrupted")) } else { Ok(()) }
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        check()?;
        self.input.read(buffer)
    }
}

impl<R: BufRead> BufRead for Stoppable<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        check()?;
        self.input.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.input.consume(amount);
    }
}
