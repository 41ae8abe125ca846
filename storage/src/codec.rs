//! Values as bytes: bincode in the two configurations that the format documents.
//!
//! Fixed-width little-endian integers, `u64` lengths before sequences and strings, `u32` variant numbers, one byte for
//! `bool` and the `Option` tag (bincode's "legacy" configuration, the default of bincode 1). In the *compact* form
//! integers of more than a byte, lengths and variant numbers among them, take one byte below 251 (bincode's "standard"
//! configuration, the default of bincode 2). Types derive [`Encode`] and [`Decode`]; only this file calls
//! bincode, so that another library with the same bytes can replace it.
//!
//! 1. A decode allocates no more than a fixed multiple of its input, whatever lengths the input claims.
//! 2. A decode consumes all bytes: bytes left over are an error.

pub use bincode;
pub use bincode::{Decode, Encode};

use std::cell::Cell;

use bincode::config::{self, Config, Configuration, Limit, LittleEndian};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;

use crate::error::{Error, Result};

/// In-memory bytes a decode may claim per input byte: room for the headers of short strings and vectors.
const CLAIM_FACTOR: usize = 16;

/// The same in the compact form, where a length takes a byte.
const COMPACT_CLAIM_FACTOR: usize = 32;

// bincode takes its limit as a constant, so the input's length picks one of these.
const SMALL: usize = 64 << 10;
const MIDDLE: usize = 1 << 20;
const LARGE: usize = 16 << 20;
const LARGEST: usize = 512 << 20;

/// The bytes of `value`.
///
/// # Errors
/// [`Error::Encode`] for a value that bincode cannot encode (a map or sequence of unknown length).
pub fn encode<T: Encode>(value: &T) -> Result<Vec<u8>> {
    // A buffer with room takes one pass over the value; measuring the length first would take a second.
    let mut room = ROOM.take();
    room.clear();
    encode_into(value, &mut room)?;
    if room.len() > MAX_KEPT_ROOM {
        return Ok(room);
    }
    let encoded = room.clone();
    ROOM.set(room);
    Ok(encoded)
}

/// Appends the bytes of `value`. After an error the appended bytes are meaningless.
///
/// # Errors
/// As [`encode`].
pub fn encode_into<T: Encode>(value: &T, bytes: &mut Vec<u8>) -> Result<()> {
    encode_as(value, bytes, config::legacy())
}

/// Appends the bytes of `value` in the compact form. After an error the appended bytes are meaningless.
///
/// # Errors
/// As [`encode`].
pub fn encode_compact_into<T: Encode>(value: &T, bytes: &mut Vec<u8>) -> Result<()> {
    encode_as(value, bytes, config::standard())
}

fn encode_as<T: Encode>(value: &T, bytes: &mut Vec<u8>, form: impl Config) -> Result<()> {
    bincode::encode_into_writer(value, &mut Gathered(bytes), form)
        .map_err(|error| Error::Encode { what: std::any::type_name::<T>(), why: error.to_string() })
}

/// A writer that appends to a vector.
struct Gathered<'b>(&'b mut Vec<u8>);

impl Writer for &mut Gathered<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The greatest capacity that is kept for the next value.
const MAX_KEPT_ROOM: usize = 64 << 10;

thread_local! {
    /// The buffer in which this thread encodes its next value.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Decodes a value.
///
/// # Errors
/// [`Error::Decode`] for bytes that are too short, too long, or that claim lengths beyond their end.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T> {
    decode_limited(bytes, config::legacy(), CLAIM_FACTOR)
}

/// Decodes a value in the compact form.
///
/// # Errors
/// As [`decode`].
pub fn decode_compact<T: Decode<()>>(bytes: &[u8]) -> Result<T> {
    decode_limited(bytes, config::standard(), COMPACT_CLAIM_FACTOR)
}

fn decode_limited<T, I>(bytes: &[u8], form: Configuration<LittleEndian, I>, factor: usize) -> Result<T>
where
    T: Decode<()>,
    Configuration<LittleEndian, I, Limit<SMALL>>: Config,
    Configuration<LittleEndian, I, Limit<MIDDLE>>: Config,
    Configuration<LittleEndian, I, Limit<LARGE>>: Config,
    Configuration<LittleEndian, I, Limit<LARGEST>>: Config,
{
    let claim = bytes.len().saturating_mul(factor);
    if claim <= SMALL {
        decode_as(bytes, form.with_limit::<SMALL>())
    } else if claim <= MIDDLE {
        decode_as(bytes, form.with_limit::<MIDDLE>())
    } else if claim <= LARGE {
        decode_as(bytes, form.with_limit::<LARGE>())
    } else {
        decode_as(bytes, form.with_limit::<LARGEST>())
    }
}

fn decode_as<T: Decode<()>>(bytes: &[u8], form: impl Config) -> Result<T> {
    let failed = |why: String| Error::Decode { what: std::any::type_name::<T>(), why };
    let (value, used) = bincode::decode_from_slice(bytes, form).map_err(|error| failed(error.to_string()))?;
    if used != bytes.len() {
        return Err(failed(format!("{} bytes are left over", bytes.len() - used)));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Encode, Decode)]
    enum Shape {
        Nothing,
        Named { id: u32, name: String, also: Option<i64> },
    }

    #[test]
    fn the_bytes_are_fixed() {
        let value = (7_u16, Shape::Named { id: 1, name: "ab".into(), also: Some(-2) }, vec![true, false]);
        let bytes = encode(&value).unwrap();
        let expected = [
            [7, 0].as_slice(),
            &[1, 0, 0, 0, 1, 0, 0, 0],
            &[2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b'],
            &[1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[2, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        ]
        .concat();
        assert_eq!(bytes, expected);
        assert_eq!(decode::<(u16, Shape, Vec<bool>)>(&bytes).unwrap(), value);
    }

    fn compact<T: Encode>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_compact_into(value, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_bytes_of_the_compact_form_are_fixed() {
        let value = (7_u16, Shape::Named { id: 251, name: "ab".into(), also: Some(-2) }, vec![true, false]);
        let bytes = compact(&value);
        assert_eq!(bytes, [7, 1, 251, 251, 0, 2, b'a', b'b', 1, 3, 2, 1, 0]);
        assert_eq!(decode_compact::<(u16, Shape, Vec<bool>)>(&bytes).unwrap(), value);
        let numbers = (250_u32, 65_536_u64, 1_u64 << 32, 200_u8, 1.5_f32);
        let bytes = compact(&numbers);
        assert_eq!(bytes, [250, 252, 0, 0, 1, 0, 253, 0, 0, 0, 0, 1, 0, 0, 0, 200, 0, 0, 0xc0, 0x3f]);
        assert_eq!(decode_compact::<(u32, u64, u64, u8, f32)>(&bytes).unwrap(), numbers);
    }

    #[test]
    fn a_huge_claimed_length_is_refused_before_it_is_allocated() {
        let mut bytes = u64::MAX.to_le_bytes().to_vec();
        bytes.extend_from_slice(b"abc");
        assert!(matches!(decode::<Vec<u8>>(&bytes), Err(Error::Decode { .. })));
        let mut bytes = (1_u64 << 40).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 64]);
        assert!(matches!(decode::<Vec<String>>(&bytes), Err(Error::Decode { .. })));
        let mut bytes = compact(&(1_u64 << 40));
        bytes.extend_from_slice(&[0; 64]);
        assert!(matches!(decode_compact::<Vec<String>>(&bytes), Err(Error::Decode { .. })));
    }

    #[test]
    fn bytes_left_over_are_refused() {
        let mut bytes = encode(&5_u32).unwrap();
        bytes.push(0);
        assert!(matches!(decode::<u32>(&bytes), Err(Error::Decode { .. })));
        assert!(matches!(decode_compact::<u32>(&[5, 0]), Err(Error::Decode { .. })));
    }

    #[test]
    fn many_short_strings_fit_their_own_limit() {
        let value = vec![String::new(); 100_000];
        assert_eq!(decode::<Vec<String>>(&encode(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn no_more_may_be_claimed_than_so_many_bytes_allow() {
        for (len, limit) in [(100, 64 << 10), (4_096, 64 << 10), (4_097, 1 << 20), (100_000, 16 << 20)] {
            // The length itself takes eight.
            for (claimed, refused) in [(limit / 8 - 1, false), (limit / 8, true)] {
                let mut bytes = u64::to_le_bytes(claimed).to_vec();
                bytes.resize(len, 0);
                let Err(Error::Decode { why, .. }) = decode::<Vec<u64>>(&bytes) else { panic!("{claimed} in {len}") };
                assert_eq!(why.contains("LimitExceeded"), refused, "{claimed} in {len} bytes: {why}");
            }
        }
    }

    #[test]
    fn every_length_has_a_limit_that_holds_it() {
        for count in [0, 1, 511, 512, 513, 8_191, 8_192, 131_071, 131_072, 1_200_000] {
            let value = vec![String::new(); count];
            assert!(decode::<Vec<String>>(&encode(&value).unwrap()).unwrap() == value, "{count}");
            assert!(decode_compact::<Vec<String>>(&compact(&value)).unwrap() == value, "{count}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            // Invalid bytes are refused; valid ones survive a round trip.
            if let Ok(value) = decode::<(Vec<String>, Option<Vec<u64>>, Shape)>(&bytes) {
                let bytes = encode(&value).unwrap();
                prop_assert_eq!(decode::<(Vec<String>, Option<Vec<u64>>, Shape)>(&bytes).unwrap(), value);
            }
            if let Ok(value) = decode_compact::<(Vec<String>, Option<Vec<u64>>, Shape)>(&bytes) {
                let bytes = compact(&value);
                prop_assert_eq!(decode_compact::<(Vec<String>, Option<Vec<u64>>, Shape)>(&bytes).unwrap(), value);
            }
        }

        #[test]
        fn round_trip(value in any::<(u8, i64, String, Vec<(u32, Option<String>)>)>()) {
            let bytes = encode(&value).unwrap();
            prop_assert_eq!(&decode::<(u8, i64, String, Vec<(u32, Option<String>)>)>(&bytes).unwrap(), &value);
            let bytes = compact(&value);
            prop_assert_eq!(decode_compact::<(u8, i64, String, Vec<(u32, Option<String>)>)>(&bytes).unwrap(), value);
        }
    }
}
