//! The values of a column, in the form in which the file has them.
//!
//! Most columns of a chunk say the same of all its items, or grow slowly: as distances from the least value of their
//! zone, which the file has anyway, they take a byte or none where their type takes eight.

use std::borrow::Cow;

use super::{Scalar, ZONE_IDS, sealed};

const WHOLE: u8 = 0;
const LEAST: u8 = 1;
const ABOVE_8: u8 = 2;
const ABOVE_16: u8 = 3;
const ABOVE_32: u8 = 4;

const ZONE: usize = ZONE_IDS as usize;

/// The values of a column, one per id.
#[derive(Clone, Copy, Debug)]
pub struct Values<'c, T> {
    stored: Stored<'c, T>,
    zones: &'c [[T; 2]],
    count: usize,
}

#[derive(Clone, Copy, Debug)]
enum Stored<'c, T> {
    Whole(&'c [T]),
    /// Each value is the least of its zone.
    Least,
    /// Distances from the least of the zone.
    Above8(&'c [u8]),
    Above16(&'c [u16]),
    Above32(&'c [u32]),
}

impl<'c, T: Scalar> Values<'c, T> {
    /// The values in a section of this form; `None` for a form that the type does not have, or bytes that are not so
    /// many values.
    #[inline]
    pub(super) fn open(form: u8, bytes: &'c [u8], zones: &'c [[T; 2]], count: usize) -> Option<Self> {
        let (stored, found) = match form {
            WHOLE => {
                let values: &[T] = bytemuck::try_cast_slice(bytes).ok()?;
                (Stored::Whole(values), values.len())
            }
            LEAST => (Stored::Least, if bytes.is_empty() { count } else { return None }),
            _ if T::KIND == <f32 as sealed::Scalar>::KIND => return None,
            ABOVE_8 => (Stored::Above8(bytes), bytes.len()),
            ABOVE_16 => {
                let distances: &[u16] = bytemuck::try_cast_slice(bytes).ok()?;
                (Stored::Above16(distances), distances.len())
            }
            ABOVE_32 => {
                let distances: &[u32] = bytemuck::try_cast_slice(bytes).ok()?;
                (Stored::Above32(distances), distances.len())
            }
            _ => return None,
        };
        (found == count && zones.len() == count.div_ceil(ZONE)).then_some(Self { stored, zones, count })
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// A value by its index; `None` behind the last.
    #[inline]
    #[must_use]
    pub fn get(&self, at: usize) -> Option<T> {
        let distance = match self.stored {
            Stored::Whole(values) => return values.get(at).copied(),
            Stored::Least if at < self.count => 0,
            Stored::Least => return None,
            Stored::Above8(distances) => u64::from(*distances.get(at)?),
            Stored::Above16(distances) => u64::from(*distances.get(at)?),
            Stored::Above32(distances) => u64::from(*distances.get(at)?),
        };
        let [least, _] = self.zones.get(at / ZONE)?;
        Some(T::above(*least, distance))
    }

    /// The values of a zone by its number; none behind the last zone.
    #[must_use]
    pub fn zone(&self, number: usize) -> Cow<'c, [T]> {
        let Some([least, _]) = self.zones.get(number) else { return Cow::Borrowed(&[]) };
        let (start, end) = (number * ZONE, self.count.min((number + 1) * ZONE));
        match self.stored {
            Stored::Whole(values) => Cow::Borrowed(&values[start..end]),
            Stored::Least => Cow::Owned(vec![T::above(*least, 0); end - start]),
            Stored::Above8(distances) => Cow::Owned(all_above(*least, &distances[start..end])),
            Stored::Above16(distances) => Cow::Owned(all_above(*least, &distances[start..end])),
            Stored::Above32(distances) => Cow::Owned(all_above(*least, &distances[start..end])),
        }
    }

    /// All values.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        let mut all = Vec::with_capacity(self.count);
        (0..self.zones.len()).for_each(|number| all.extend_from_slice(&self.zone(number)));
        all
    }
}

fn all_above<T: Scalar, D: Copy + Into<u64>>(least: T, distances: &[D]) -> Vec<T> {
    distances.iter().map(|distance| T::above(least, (*distance).into())).collect()
}

/// The shortest form of these values, and their bytes in it.
pub(super) fn encode<T: Scalar>(values: &[T], zones: &[[T; 2]]) -> (u8, Vec<u8>) {
    let of_zones = || values.chunks(ZONE).zip(zones);
    let distances = || of_zones().flat_map(|(values, [least, _])| values.iter().map(|value| value.distance(*least)));
    // Its highest bit is that of the greatest distance.
    let all = distances().try_fold(0, |all, distance| Some(all | distance?));
    let distances = || distances().flatten();
    match all {
        Some(0) => (LEAST, Vec::new()),
        Some(..=0xff) if size_of::<T>() > 1 => (ABOVE_8, distances().map(|distance| distance as u8).collect()),
        Some(..=0xffff) if size_of::<T>() > 2 => (ABOVE_16, bytes(distances().map(|distance| distance as u16))),
        Some(..=0xffff_ffff) if size_of::<T>() > 4 => (ABOVE_32, bytes(distances().map(|distance| distance as u32))),
        _ => (WHOLE, bytemuck::cast_slice(values).to_vec()),
    }
}

fn bytes<D: bytemuck::NoUninit>(distances: impl Iterator<Item = D>) -> Vec<u8> {
    bytemuck::cast_slice(&distances.collect::<Vec<D>>()).to_vec()
}
