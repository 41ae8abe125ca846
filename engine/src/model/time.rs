//! Clocks and instants: microseconds since the epoch, UTC, written as RFC 3339.

use crate::{Error, Result};
use holotype_query::time::{format_rfc3339, parse_rfc3339};
use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

pub use jiff::Timestamp;

/// A moment as the calls of this crate take it: a [`Timestamp`], a [`SystemTime`], or microseconds since the epoch. The
/// database keeps the microsecond in which it lies.
///
/// ```
/// use holotype::NewTrace;
/// use holotype::time::{Moment, Timestamp};
///
/// let at: Timestamp = "2026-01-05T10:00:00Z".parse().unwrap();
/// assert_eq!(at.micros(), 1_767_607_200_000_000);
/// let trace = NewTrace::turn("e", "hello").time(at);
/// ```
pub trait Moment {
    /// Microseconds since the epoch, UTC.
    fn micros(self) -> i64;
}

impl Moment for i64 {
    fn micros(self) -> i64 {
        self
    }
}

impl Moment for Timestamp {
    fn micros(self) -> i64 {
        self.as_microsecond()
    }
}

/// One that is further away than any [`Timestamp`] is the first or the last of them.
impl Moment for SystemTime {
    fn micros(self) -> i64 {
        let nearest = if self < UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::try_from(self).unwrap_or(nearest).as_microsecond()
    }
}

/// The [`Timestamp`] of microseconds since the epoch; `None` outside the years that it has, -9999 to 9999.
pub fn timestamp(micros: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros).ok()
}

/// A source of time. A database reads nothing else from its environment.
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

/// A clock that never advances, for reproducible answers.
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

/// A time as RFC 3339 in UTC, without trailing zeros; as microseconds outside the years 0 to 9999.
pub fn format(micros: i64) -> String {
    format_rfc3339(micros).unwrap_or_else(|_| format!("{micros}us"))
}

/// Parses an RFC 3339 time with a zone.
pub fn parse(text: &str) -> Result<i64> {
    parse_rfc3339(text).map_err(|error| Error::Invalid(format!("{text:?}: {error}")))
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
