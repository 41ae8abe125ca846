//! Standard output whose reader may leave before the end, as `head` does.
//!
//! The macros take the place of those of the standard library, which panic then. Here the bench unwinds in silence, so
//! that the folders it made are removed, and [`until_closed`] ends it with success.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

macro_rules! println {
    ($($text:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($text)*))) };
}

/// The payload of a panic because nobody reads the output any more.
struct ClosedPipe;

/// Writes a text.
///
/// # Panics
/// If it cannot be written; in silence if its reader left.
pub(crate) fn write(text: Arguments<'_>) {
    match std::io::stdout().lock().write_fmt(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => resume_unwind(Box::new(ClosedPipe)),
        Err(error) => panic!("cannot write the output: {error}"),
    }
}

/// The result of `run`; `Ok` if the reader of its output left.
pub(crate) fn until_closed(run: impl FnOnce() -> crate::Result<()>) -> crate::Result<()> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => done,
        Err(panic) if panic.is::<ClosedPipe>() => Ok(()),
        Err(panic) => resume_unwind(panic),
    }
}
