//! Retries: interrupted calls are repeated, and short ones continued.
//!
//! POSIX lets a signal interrupt a call before it did anything (`EINTR`), and lets reads and writes move fewer bytes
//! than requested. Neither is a failure, so this layer handles both and hides them from callers. Repeating an
//! interrupted `fsync` is sound: it has neither succeeded nor reported a write-back error. A *failed* `fsync` is never
//! repeated.
//!
//! Both file systems use these loops, so that tests on the simulated one cover the code of the real one.

use std::io;

/// After this many interruptions in a row the cause is not a signal, and the call fails.
pub(super) const MOST_INTERRUPTIONS: usize = 1000;

/// Repeats a call for as long as it is interrupted.
pub(super) fn repeated<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..MOST_INTERRUPTIONS {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
    Err(io::Error::other(format!("interrupted {MOST_INTERRUPTIONS} times in a row")))
}

/// Fills `buf` from `offset` with repeated calls of a function that may read less and returns the length read.
pub(super) fn read_whole(
    mut buf: &mut [u8],
    mut offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !buf.is_empty() {
        let len = repeated(|| read(buf, offset))?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buf = &mut buf[len..];
        offset += len as u64;
    }
    Ok(())
}

/// Writes all of `bytes` at `offset` with repeated calls of a function that may write less and returns the length
/// written.
pub(super) fn write_whole(
    mut bytes: &[u8],
    mut offset: u64,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let len = repeated(|| write(bytes, offset))?;
        if len == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[len..];
        offset += len as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_interrupted_calls_are_continued() {
        let (mut calls, mut written) = (0, Vec::new());
        write_whole(b"0123456789", 5, |bytes, offset| {
            calls += 1;
            if calls % 2 == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            assert_eq!(offset, 5 + written.len() as u64);
            let some = bytes.len().div_ceil(2);
            written.extend_from_slice(&bytes[..some]);
            Ok(some)
        })
        .unwrap();
        assert_eq!((written.as_slice(), calls), (b"0123456789".as_slice(), 7));

        let mut buf = [0; 7];
        read_whole(&mut buf, 3, |buf, offset| {
            buf[0] = offset as u8;
            Ok(1)
        })
        .unwrap();
        assert_eq!(buf, [3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_call_that_does_nothing_or_is_interrupted_for_ever_ends() {
        assert_eq!(write_whole(b"x", 0, |_, _| Ok(0)).unwrap_err().kind(), io::ErrorKind::WriteZero);
        assert_eq!(read_whole(&mut [0], 0, |_, _| Ok(0)).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut calls = 0;
        let interrupted = repeated(|| -> io::Result<()> {
            calls += 1;
            Err(io::ErrorKind::Interrupted.into())
        });
        assert!(interrupted.unwrap_err().to_string().contains("interrupted"));
        assert_eq!(calls, MOST_INTERRUPTIONS);
    }
}
