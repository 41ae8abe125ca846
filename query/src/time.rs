//! Times: strict RFC 3339 in, UTC out. The only parser of times in the workspace.
//!
//! A time is a count of microseconds since 1970-01-01T00:00:00Z, in the years 0000
//! to 9999. The date needs its dashes, the time its colons and seconds, and the zone
//! is required. The engine stores microseconds, so whatever does not fit is refused
//! rather than rounded: a leap second (`:60`), which would sort before times that
//! preceded it, and digits of a fraction beyond the sixth, unless they are zeros.
//!
//! Days are counted with Howard Hinnant's `days_from_civil`, whose years begin in
//! March so that the leap day comes last.

use std::fmt;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_DAY: i64 = SECONDS_PER_DAY * MICROS_PER_SECOND;
/// The length of `2026-01-05T10:00:00.123456Z`.
const MAX_TEXT_LEN: usize = 27;

/// First time with a printed form: the start of the year 0.
pub const MIN_MICROS: i64 = days_from_civil(0, 1, 1) * MICROS_PER_DAY;
/// Last time with a printed form: the end of the year 9999.
pub const MAX_MICROS: i64 = days_from_civil(10_000, 1, 1) * MICROS_PER_DAY - 1;

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
    let last_day = days_in_month(year, month);
    for (value, range, part) in [
        (month, 1..=12, "the month"),
        (day, 1..=last_day, "the day"),
        (hour, 0..=23, "the hour"),
        (minute, 0..=59, "the minute"),
        (second, 0..=59, "the second"),
    ] {
        if !range.contains(&value) {
            return Err(TimeError::NoSuchTime(part));
        }
    }
    let seconds =
        days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3_600 + (minute - offset_minutes) * 60 + second;
    in_range(seconds * MICROS_PER_SECOND + micros)
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
    in_range(micros)?;
    let mut text = String::with_capacity(MAX_TEXT_LEN);
    // Writing to a string cannot fail.
    let _ = write_rfc3339(micros, &mut text);
    Ok(text)
}

/// Writes a time in UTC, with `Z` and without trailing zeros of the fraction.
///
/// Times outside the years 0 to 9999 are clamped, because RFC 3339 cannot express
/// them.
pub fn write_rfc3339(micros: i64, out: &mut impl fmt::Write) -> fmt::Result {
    let micros = micros.clamp(MIN_MICROS, MAX_MICROS);
    let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
    let in_day = micros.rem_euclid(MICROS_PER_DAY);
    let (seconds, fraction) = (in_day / MICROS_PER_SECOND, in_day % MICROS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        write!(out, ".{}", digits.trim_end_matches('0'))?;
    }
    out.write_char('Z')
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

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a day of the proleptic Gregorian calendar.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The day, as (year, month, day), that many days after 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
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
