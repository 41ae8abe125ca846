//! Times: strict RFC 3339 in, UTC out. The only parser of times in the workspace.
//!
//! A time is a count of microseconds since 1970-01-01T00:00:00Z, in the years 0000
//! to 9999. The date needs its dashes, the time its colons and seconds, and the zone
//! is required. The engine stores microseconds, so anything finer is refused rather
//! than rounded: a leap second (`:60`), which would sort before times that preceded
//! it, and digits of a fraction beyond the sixth, unless they are zeros.
//!
//! `jiff` does the calendar. Its own parser is not strict: it accepts basic formats,
//! leap seconds, nanoseconds and named zones.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, date};

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// First time with a printed form: the start of the year 0.
pub const MIN_MICROS: i64 = -62_167_219_200_000_000;
/// Last time with a printed form: the end of the year 9999.
pub const MAX_MICROS: i64 = 253_402_300_799_999_999;

/// The reason a text is not a valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The text does not have the form of RFC 3339.
    #[error("invalid time: expected RFC 3339 with a zone, such as '2026-01-05T10:00:00Z'")]
    Malformed,
    /// The zone is missing.
    #[error("a time needs a zone: end it with Z or an offset such as +02:00")]
    NoZone,
    /// A part is out of range, such as a thirteenth month.
    #[error("invalid time: {0} is out of range")]
    NoSuchTime(&'static str),
    /// The seconds are `:60`.
    #[error("a leap second (:60) cannot be stored; write :59")]
    LeapSecond,
    /// The time lies outside the years 0000 to 9999.
    #[error("outside the years 0000 to 9999")]
    OutOfRange,
    /// More than six digits of a fraction are not zero.
    #[error("times have microsecond precision: at most six digits after the point")]
    TooFine,
}

/// The microseconds since the epoch of an RFC 3339 time.
///
/// # Errors
///
/// If `text` is not one, has no zone, names a day that does not exist, or is finer
/// than a microsecond.
pub fn parse_rfc3339(text: &str) -> Result<i64, TimeError> {
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    expect(&mut rest, b"-")?;
    let month = digits(&mut rest, 2)?;
    expect(&mut rest, b"-")?;
    let day = digits(&mut rest, 2)?;
    expect(&mut rest, b"Tt ")?;
    let hour = digits(&mut rest, 2)?;
    expect(&mut rest, b":")?;
    let minute = digits(&mut rest, 2)?;
    expect(&mut rest, b":")?;
    let second = digits(&mut rest, 2)?;
    let micros = fraction(&mut rest)?;
    let offset_minutes = zone(&mut rest)?;

    if second == 60 {
        return Err(TimeError::LeapSecond);
    }
    for (value, range, part) in [
        (month, 1..=12, "the month"),
        (hour, 0..=23, "the hour"),
        (minute, 0..=59, "the minute"),
        (second, 0..=59, "the second"),
    ] {
        if !range.contains(&value) {
            return Err(TimeError::NoSuchTime(part));
        }
    }
    // Two digits fit in an `i8`, four in an `i16`.
    let day = Date::new(year as i16, month as i8, day as i8).map_err(|_| TimeError::NoSuchTime("the day"))?;
    let local = day.at(hour as i8, minute as i8, second as i8, 0).duration_since(EPOCH).as_secs();
    in_range((local - offset_minutes * 60) * 1_000_000 + micros)
}

/// Returns `micros` if RFC 3339 can express it.
///
/// # Errors
///
/// [`TimeError::OutOfRange`] outside the years 0 to 9999.
pub fn in_range(micros: i64) -> Result<i64, TimeError> {
    if (MIN_MICROS..=MAX_MICROS).contains(&micros) { Ok(micros) } else { Err(TimeError::OutOfRange) }
}

/// Formats a time in UTC, with `Z` and without trailing zeros of the fraction, so that
/// equal times have equal texts.
///
/// # Errors
///
/// [`TimeError::OutOfRange`] outside the years 0 to 9999.
pub fn format_rfc3339(micros: i64) -> Result<String, TimeError> {
    in_range(micros).map(|micros| format!("{}Z", date_time(micros)))
}

/// Writes a time in UTC, with `Z` and without trailing zeros of the fraction.
///
/// Times outside the years 0 to 9999 are clamped, because RFC 3339 cannot express
/// them.
pub fn write_rfc3339(micros: i64, out: &mut impl fmt::Write) -> fmt::Result {
    write!(out, "{}Z", date_time(micros.clamp(MIN_MICROS, MAX_MICROS)))
}

/// The date and time in UTC of a time in the years 0 to 9999.
fn date_time(micros: i64) -> DateTime {
    EPOCH.saturating_add(SignedDuration::from_micros(micros))
}

fn digits(rest: &mut &[u8], count: usize) -> Result<i64, TimeError> {
    let (head, tail) = rest.split_at_checked(count).ok_or(TimeError::Malformed)?;
    if !head.iter().all(u8::is_ascii_digit) {
        return Err(TimeError::Malformed);
    }
    *rest = tail;
    Ok(head.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0')))
}

fn expect(rest: &mut &[u8], any_of: &[u8]) -> Result<(), TimeError> {
    match rest.split_first() {
        Some((first, tail)) if any_of.contains(first) => {
            *rest = tail;
            Ok(())
        }
        _ => Err(TimeError::Malformed),
    }
}

fn fraction(rest: &mut &[u8]) -> Result<i64, TimeError> {
    let Some((b'.', tail)) = rest.split_first() else {
        return Ok(0);
    };
    let count = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
    *rest = tail;
    let (head, tail) = rest.split_at_checked(count).ok_or(TimeError::Malformed)?;
    *rest = tail;
    if head.is_empty() {
        return Err(TimeError::Malformed);
    }
    if head.iter().skip(6).any(|digit| *digit != b'0') {
        return Err(TimeError::TooFine);
    }
    let padded = head.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    Ok(padded.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0')))
}

/// The offset of local time from UTC, in minutes.
fn zone(rest: &mut &[u8]) -> Result<i64, TimeError> {
    let sign = match rest.first() {
        None => return Err(TimeError::NoZone),
        Some(b'Z' | b'z') => 0,
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return Err(TimeError::Malformed),
    };
    *rest = &rest[1..];
    let mut minutes = 0;
    if sign != 0 {
        let hour = digits(rest, 2)?;
        expect(rest, b":")?;
        let minute = digits(rest, 2)?;
        if hour > 23 || minute > 59 {
            return Err(TimeError::NoSuchTime("the offset"));
        }
        minutes = sign * (hour * 60 + minute);
    }
    if rest.is_empty() { Ok(minutes) } else { Err(TimeError::Malformed) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(micros: i64) -> String {
        let mut text = String::new();
        write_rfc3339(micros, &mut text).expect("a string takes any text");
        text
    }

    #[test]
    fn valid_times_are_parsed() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000001Z", 1),
            ("1969-12-31T23:59:59.5Z", -500_000),
            ("2000-02-29T12:00:00Z", 951_825_600_000_000),
            ("2026-01-05T10:00:00Z", 1_767_607_200_000_000),
            ("2026-01-05T12:00:00+02:00", 1_767_607_200_000_000),
            ("2026-01-05 10:00:00z", 1_767_607_200_000_000),
            ("2026-01-05T12:00:00.5+02:00", 1_767_607_200_500_000),
            ("2026-01-05 10:00:00.123456000-00:00", 1_767_607_200_123_456),
            ("2024-02-29T23:59:59-23:59", 1_709_337_539_000_000),
        ] {
            assert_eq!(parse_rfc3339(text), Ok(micros), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for (text, error) in [
            ("", TimeError::Malformed),
            ("yesterday", TimeError::Malformed),
            ("2026-01-05", TimeError::Malformed),
            ("2026-01-05T10:00Z", TimeError::Malformed),
            ("2026-01-05T10:00:00", TimeError::NoZone),
            ("2026-01-05T10:00:00Z!", TimeError::Malformed),
            ("2026-01-05T10:00:00+2:00", TimeError::Malformed),
            ("2026-01-05T10:00:00.Z", TimeError::Malformed),
            ("2026-01-05T10:00:00.1234567Z", TimeError::TooFine),
            ("2026-13-05T10:00:00Z", TimeError::NoSuchTime("the month")),
            ("2026-02-29T10:00:00Z", TimeError::NoSuchTime("the day")),
            ("2026-01-05T24:00:00Z", TimeError::NoSuchTime("the hour")),
            ("2026-01-05T10:60:00Z", TimeError::NoSuchTime("the minute")),
            ("2026-01-05T10:00:61Z", TimeError::NoSuchTime("the second")),
            ("2016-12-31T23:59:60Z", TimeError::LeapSecond),
            ("2026-01-05T10:00:00+24:00", TimeError::NoSuchTime("the offset")),
            ("2026-01-05T10:00:00+0200", TimeError::Malformed),
            ("2026-01-05T10:00:00.25", TimeError::NoZone),
            ("9999-12-31T23:59:59-00:01", TimeError::OutOfRange),
            ("0000-01-01T00:00:00+01:00", TimeError::OutOfRange),
        ] {
            assert_eq!(parse_rfc3339(text), Err(error), "{text}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_printed_and_read() {
        assert_eq!(printed(MIN_MICROS), "0000-01-01T00:00:00Z");
        assert_eq!(printed(MAX_MICROS), "9999-12-31T23:59:59.999999Z");
        assert_eq!(parse_rfc3339("0000-01-01T00:00:00Z"), Ok(MIN_MICROS));
        assert_eq!(parse_rfc3339("9999-12-31T23:59:59.999999Z"), Ok(MAX_MICROS));
    }

    proptest! {
        #[test]
        fn formatted_times_parse_back(micros in MIN_MICROS..=MAX_MICROS) {
            prop_assert_eq!(parse_rfc3339(&printed(micros)), Ok(micros));
        }
    }
}
