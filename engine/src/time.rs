//! Clocks and instants: microseconds since the epoch, UTC, written as RFC 3339.

use crate::{Error, Result};
use std::fmt::{Debug, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

/// Says what time it is; a database asks for nothing else from the outside world.
pub trait Clock: Debug + Send + Sync {
    /// Microseconds since the epoch, UTC.
    fn now(&self) -> i64;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

/// A clock that stands still, for answers that must come out the same every time.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(
    /// Microseconds since the epoch.
    pub i64,
);

impl Clock for FixedClock {
    fn now(&self) -> i64 {
        self.0
    }
}

/// One day in microseconds.
pub const DAY_US: i64 = 86_400_000_000;

/// No instant takes more bytes than this when it is written.
const LONGEST: usize = 32;

/// An instant as RFC 3339 in UTC, without trailing zeros.
pub fn format(micros: i64) -> String {
    let mut text = String::with_capacity(LONGEST);
    // Writing to a string does not fail.
    let _ = match jiff::Timestamp::from_microsecond(micros) {
        Ok(instant) => write!(text, "{instant}"),
        Err(_) => write!(text, "{micros}us"),
    };
    text
}

/// The instant an RFC 3339 text with a zone names.
pub fn parse(text: &str) -> Result<i64> {
    let instant: jiff::Timestamp = text.parse().map_err(|_| {
        Error::Invalid(format!("{text:?} is no time: RFC 3339 with a zone is expected, as in 2026-01-05T10:00:00Z"))
    })?;
    Ok(instant.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip_without_trailing_zeros() {
        for text in ["2026-01-05T10:00:00Z", "1969-12-31T23:59:59.5Z", "2026-01-05T10:00:00.000001Z"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(parse("2026-01-05T12:00:00+02:00").unwrap(), parse("2026-01-05T10:00:00Z").unwrap());
        assert!(parse("2026-01-05").is_err());
    }
}
