//! Ctrl-C: the program ends with status 130. What was committed stands, as after any end of a process.
//!
//! While an import runs, the first Ctrl-C lets it stop between two lines and close the database; while a statement runs, the
//! first cancels it. The second ends the program on the spot.

use crate::failure::{Failure, Problem, Status};
use holotype::Cancel;
use std::io::{self, BufRead, Read, Write as _};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of an interrupted command.
pub(crate) const STATUS: u8 = 130;

/// Whether the command under way looks at [`asked`] by itself.
static HEEDED: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);
/// What the first Ctrl-C cancels.
static CANCEL: LazyLock<Cancel> = LazyLock::new(Cancel::new);

/// Takes over Ctrl-C.
pub(crate) fn install() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        let again = ASKED.swap(true, Ordering::SeqCst);
        CANCEL.cancel();
        if again || !HEEDED.load(Ordering::SeqCst) {
            let _ = io::stderr().write_all(b"\ninterrupted\n");
            std::process::exit(i32::from(STATUS));
        }
    })
    .map_err(|error| Problem::new(Status::Io, "io", format!("cannot take over Ctrl-C: {error}")).into())
}

/// Whether the user asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Runs something that this handle can stop; what was asked before does not count.
pub(crate) fn cancellable<T>(work: impl FnOnce(&Cancel) -> T) -> T {
    ASKED.store(false, Ordering::SeqCst);
    CANCEL.reset();
    HEEDED.store(true, Ordering::SeqCst);
    let done = work(&CANCEL);
    HEEDED.store(false, Ordering::SeqCst);
    done
}

/// Input that fails at its next read once the user asked to stop.
#[derive(Debug)]
pub(crate) struct Stoppable<R>(R);

impl<R> Stoppable<R> {
    pub(crate) fn new(input: R) -> Self {
        HEEDED.store(true, Ordering::SeqCst);
        Stoppable(input)
    }
}

impl<R> Drop for Stoppable<R> {
    fn drop(&mut self) {
        HEEDED.store(false, Ordering::SeqCst);
    }
}

fn check() -> io::Result<()> {
    // Not `ErrorKind::Interrupted`, which readers take as a call to try again.
    if asked() { Err(io::Error::other("interrupted")) } else { Ok(()) }
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        check()?;
        self.0.read(buffer)
    }
}

impl<R: BufRead> BufRead for Stoppable<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        check()?;
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}
