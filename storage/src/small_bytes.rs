//! Immutable bytes; short ones are stored inline.
//!
//! Most keys and many values of rows are a few bytes long. Copying a node of the overlay's tree copies all of them.
//! Inline bytes make that a memory copy; shared allocations would cost an atomic increment and later a decrement each.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The greatest length that is stored inline.
pub(crate) const MAX_INLINE_LEN: usize = 22;

/// Immutable bytes: cheap to clone, compared bytewise.
#[derive(Clone)]
pub struct SmallBytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; MAX_INLINE_LEN] },
    Shared(Arc<[u8]>),
}

const _: () = assert!(size_of::<SmallBytes>() == 24);

impl SmallBytes {
    /// A copy of these bytes.
    #[must_use]
    pub fn new(content: &[u8]) -> Self {
        let mut bytes = [0; MAX_INLINE_LEN];
        match bytes.get_mut(..content.len()) {
            Some(place) => {
                place.copy_from_slice(content);
                Self(Repr::Inline { len: content.len() as u8, bytes })
            }
            None => Self(Repr::Shared(content.into())),
        }
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for SmallBytes {
    fn from(content: &[u8]) -> Self {
        Self::new(content)
    }
}

impl From<Vec<u8>> for SmallBytes {
    fn from(content: Vec<u8>) -> Self {
        Self::new(&content)
    }
}

impl<const N: usize> From<[u8; N]> for SmallBytes {
    fn from(content: [u8; N]) -> Self {
        Self::new(&content)
    }
}

impl AsRef<[u8]> for SmallBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for SmallBytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for SmallBytes {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SmallBytes {}

impl PartialOrd for SmallBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SmallBytes {
    /// The order of slices. Inline arrays are zero past their length, so comparing two of them as big-endian numbers
    /// compares the bytes; if the numbers are equal, the shorter one is a prefix of the longer.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Inline { len, bytes }, Repr::Inline { len: other_len, bytes: other }) => {
                numbers(bytes).cmp(&numbers(other)).then(len.cmp(other_len))
            }
            _ => (**self).cmp(&**other),
        }
    }
}

/// The bytes as numbers, the first the most significant. The last two numbers overlap by two bytes.
#[inline]
fn numbers(bytes: &[u8; MAX_INLINE_LEN]) -> [u64; 3] {
    let number = u64::from_be_bytes;
    match (bytes.as_chunks().0, bytes.last_chunk()) {
        ([first, second], Some(last)) => [number(*first), number(*second), number(*last)],
        _ => [0; 3],
    }
}

impl std::hash::Hash for SmallBytes {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Trailing zeros, and lengths around the greatest inline length.
        #[test]
        fn the_order_is_that_of_slices(
            start in proptest::collection::vec(any::<u8>(), 0..24),
            one in proptest::collection::vec(0_u8..3, 0..6),
            other in proptest::collection::vec(0_u8..3, 0..6),
        ) {
            let (one, other) = ([&*start, &*one].concat(), [&*start, &*other].concat());
            let (kept, kept_other) = (SmallBytes::new(&one), SmallBytes::new(&other));
            prop_assert_eq!(kept.cmp(&kept_other), one.cmp(&other));
            prop_assert_eq!(kept == kept_other, one == other);
        }
    }

    #[test]
    fn in_maps_they_are_their_slices() {
        use std::collections::{BTreeMap, HashMap};
        let all: Vec<Vec<u8>> = (0..40).map(|len| (0..len).collect()).collect();
        let hashed: HashMap<SmallBytes, usize> =
            all.iter().map(|bytes| (SmallBytes::new(bytes), bytes.len())).collect();
        let sorted: BTreeMap<SmallBytes, usize> =
            all.iter().map(|bytes| (SmallBytes::new(bytes), bytes.len())).collect();
        for bytes in &all {
            let slice = bytes.as_slice();
            assert_eq!((hashed.get(slice), sorted.get(slice)), (Some(&bytes.len()), Some(&bytes.len())));
            assert_eq!(SmallBytes::new(slice).partial_cmp(&SmallBytes::new(b"b")), slice.partial_cmp(b"b".as_slice()));
        }
    }

    #[test]
    fn bytes_of_any_length_are_kept_and_ordered() {
        let all: Vec<Vec<u8>> = (0..40).map(|len| (0..len).collect()).collect();
        for content in &all {
            let kept = SmallBytes::new(content);
            assert_eq!(&*kept, &**content);
            assert_eq!(kept.clone(), SmallBytes::from(content.clone()));
            for other in &all {
                assert_eq!(kept.cmp(&SmallBytes::new(other)), content.cmp(other));
            }
        }
    }
}
