//! Clock times: RFC 3339 with a zone, to and from microseconds since the epoch, UTC.
//!
//! Read: `2026-01-05T10:00:00Z`, any offset (`+02:00`, `-00:00`), `t`, `z` or a space in place of the `T` and `Z`, and
//! a fraction. Digits of the fraction beyond the sixth must be zeros: what cannot be stored is refused and not rounded.
//! So is a leap second (`:60`), which has no microsecond of its own. Years are 0000 to 9999 in UTC.
//!
//! Written: UTC with `Z`, the fraction without trailing zeros and left out when it is zero, so that
//! `parse(format(t)) == t` and two equal times have one text.

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// The earliest time that has a text, `0000-01-01T00:00:00Z`.
pub const MIN_US: i64 = -62_167_219_200_000_000;

/// The latest time that has a text, `9999-12-31T23:59:59.999999Z`.
pub const MAX_US: i64 = 253_402_300_799_999_999;

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Why a text is no time, or a time has no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The text does not have the form of a time.
    #[error("expected a time like 2026-01-05T10:00:00Z")]
    Form,
    /// The text has no zone.
    #[error("the time has no zone: expected Z or an offset like +02:00 at its end")]
    NoZone,
    /// A part is out of range, such as the 30th of February.
    #[error("there is no such time: {0} is out of range")]
    NoSuchTime(&'static str),
    /// A leap second.
    #[error("a leap second (:60) has no place in UTC microseconds")]
    LeapSecond,
    /// Digits beyond microseconds that are not zero.
    #[error("finer than a microsecond: at most six digits of a second can be kept")]
    TooFine,
    /// A time before year 0 or after year 9999.
    #[error("outside the years 0000 to 9999")]
    OutOfRange,
}

/// The microseconds since the epoch of an RFC 3339 time.
///
/// ```text
/// parse("2026-01-05T12:00:00.5+02:00") == parse("2026-01-05T10:00:00.5Z") == Ok(1_767_607_200_500_000)
/// ```
pub fn parse(text: &str) -> Result<i64, TimeError> {
    let mut digits = Digits { rest: text.as_bytes() };
    let year = digits.number(4)?;
    digits.literal(b"-")?;
    let month = digits.number(2)?;
    digits.literal(b"-")?;
    let day = digits.number(2)?;
    digits.literal(b"Tt ")?;
    let hour = digits.number(2)?;
    digits.literal(b":")?;
    let minute = digits.number(2)?;
    digits.literal(b":")?;
    let second = digits.number(2)?;
    let micros = if digits.literal(b".").is_ok() { digits.fraction()? } else { 0 };
    let offset_minutes = digits.zone()?;
    if second == 60 {
        return Err(TimeError::LeapSecond);
    }
    for (value, max, what) in [(hour, 23, "the hour"), (minute, 59, "the minute"), (second, 59, "the second")] {
        if value > max {
            return Err(TimeError::NoSuchTime(what));
        }
    }
    // Four and two digits fit their types; `DateTime::new` judges the calendar.
    let small = |value: i64| i8::try_from(value).unwrap_or(i8::MAX);
    let local = DateTime::new(
        i16::try_from(year).unwrap_or(i16::MAX),
        small(month),
        small(day),
        small(hour),
        small(minute),
        small(second),
        0,
    )
    .map_err(|_| TimeError::NoSuchTime(if (1..=12).contains(&month) { "the day" } else { "the month" }))?;
    let us = (local.duration_since(EPOCH).as_secs() - offset_minutes * 60) * 1_000_000 + micros;
    if (MIN_US..=MAX_US).contains(&us) { Ok(us) } else { Err(TimeError::OutOfRange) }
}

/// The canonical text of a time; [`TimeError::OutOfRange`] outside [`MIN_US`]`..=`[`MAX_US`].
pub fn format(us: i64) -> Result<String, TimeError> {
    if !(MIN_US..=MAX_US).contains(&us) {
        return Err(TimeError::OutOfRange);
    }
    let whole = SignedDuration::from_secs(us.div_euclid(1_000_000));
    let time = EPOCH.checked_add(whole).map_err(|_| TimeError::OutOfRange)?;
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    let micros = us.rem_euclid(1_000_000);
    if micros != 0 {
        text.push_str(format!(".{micros:06}").trim_end_matches('0'));
    }
    text.push('Z');
    Ok(text)
}

/// What is left of a time's text.
struct Digits<'t> {
    rest: &'t [u8],
}

impl Digits<'_> {
    /// Exactly `count` digits.
    fn number(&mut self, count: usize) -> Result<i64, TimeError> {
        let (digits, rest) = self.rest.split_at_checked(count).ok_or(TimeError::Form)?;
        let mut number = 0;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(TimeError::Form);
            }
            number = number * 10 + i64::from(digit - b'0');
        }
        self.rest = rest;
        Ok(number)
    }

    /// One of the given bytes.
    fn literal(&mut self, one_of: &[u8]) -> Result<u8, TimeError> {
        match self.rest.split_first() {
            Some((byte, rest)) if one_of.contains(byte) => {
                self.rest = rest;
                Ok(*byte)
            }
            _ => Err(TimeError::Form),
        }
    }

    /// The digits after the point, as microseconds.
    fn fraction(&mut self) -> Result<i64, TimeError> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(len).ok_or(TimeError::Form)?;
        if digits.is_empty() {
            return Err(TimeError::Form);
        }
        if digits.iter().skip(6).any(|digit| *digit != b'0') {
            return Err(TimeError::TooFine);
        }
        self.rest = rest;
        let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6);
        Ok(padded.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0')))
    }

    /// The zone, which ends the text, as minutes east of UTC.
    fn zone(&mut self) -> Result<i64, TimeError> {
        if self.rest.is_empty() {
            return Err(TimeError::NoZone);
        }
        let minutes = match self.literal(b"Zz+-")? {
            b'Z' | b'z' => 0,
            sign => {
                let hours = self.number(2)?;
                self.literal(b":")?;
                let minutes = self.number(2)?;
                if hours > 23 || minutes > 59 {
                    return Err(TimeError::NoSuchTime("the offset"));
                }
                let east = hours * 60 + minutes;
                if sign == b'-' { -east } else { east }
            }
        };
        if self.rest.is_empty() { Ok(minutes) } else { Err(TimeError::Form) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times() {
        for (text, us) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-05T10:00:00Z", 1_767_607_200_000_000),
            ("2026-01-05T12:00:00.5+02:00", 1_767_607_200_500_000),
            ("2026-01-05 10:00:00.123456000-00:00", 1_767_607_200_123_456),
            ("2026-01-05t10:00:00z", 1_767_607_200_000_000),
            ("2024-02-29T23:59:59-23:59", 1_709_337_539_000_000),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("0000-01-01T00:00:00Z", MIN_US),
            ("9999-12-31T23:59:59.999999Z", MAX_US),
        ] {
            assert_eq!(parse(text), Ok(us), "{text}");
        }
    }

    #[test]
    fn canonical_texts() {
        for (us, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (1_767_607_200_500_000, "2026-01-05T10:00:00.5Z"),
            (1_767_607_200_000_010, "2026-01-05T10:00:00.00001Z"),
            (MIN_US, "0000-01-01T00:00:00Z"),
            (MAX_US, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(format(us).as_deref(), Ok(text));
        }
        for us in [MIN_US - 1, MAX_US + 1, i64::MIN, i64::MAX] {
            assert_eq!(format(us), Err(TimeError::OutOfRange));
        }
    }

    #[test]
    fn faults() {
        for (text, error) in [
            ("", TimeError::Form),
            ("yesterday", TimeError::Form),
            ("2026-01-05", TimeError::Form),
            ("2026-01-05T10:00Z", TimeError::Form),
            ("2026-01-05T10:00:00", TimeError::NoZone),
            ("2026-01-05T10:00:00.25", TimeError::NoZone),
            ("2026-01-05T10:00:00.Z", TimeError::Form),
            ("2026-01-05T10:00:00+0200", TimeError::Form),
            ("2026-01-05T10:00:00Zz", TimeError::Form),
            ("2026-01-05T10:00:00+24:00", TimeError::NoSuchTime("the offset")),
            ("2026-02-30T10:00:00Z", TimeError::NoSuchTime("the day")),
            ("2026-13-01T10:00:00Z", TimeError::NoSuchTime("the month")),
            ("2026-01-05T24:00:00Z", TimeError::NoSuchTime("the hour")),
            ("2026-01-05T10:60:00Z", TimeError::NoSuchTime("the minute")),
            ("2026-01-05T10:00:61Z", TimeError::NoSuchTime("the second")),
            ("2016-12-31T23:59:60Z", TimeError::LeapSecond),
            ("2026-01-05T10:00:00.1234567Z", TimeError::TooFine),
            ("0000-01-01T00:00:00+00:01", TimeError::OutOfRange),
            ("9999-12-31T23:59:59-00:01", TimeError::OutOfRange),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(us in MIN_US..=MAX_US) {
            prop_assert_eq!(parse(&format(us).unwrap()), Ok(us));
        }

        #[test]
        fn agrees_with_jiff(us in MIN_US..=250_000_000_000_000_000_i64) {
            let theirs = jiff::Timestamp::from_microsecond(us).unwrap();
            prop_assert_eq!(format(us).unwrap(), theirs.to_string());
        }

        #[test]
        fn any_text_is_refused_or_a_time_that_can_be_written(text in "[0-9TZ:. +-]{0,36}|.{0,20}") {
            if let Ok(us) = parse(&text) {
                prop_assert_eq!(parse(&format(us).unwrap()), Ok(us));
            }
        }
    }
}
