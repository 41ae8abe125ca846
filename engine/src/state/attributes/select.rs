//! Selecting: the items whose attribute is wanted, from one column.
//!
//! | attribute | how it is selected |
//! |---|---|
//! | a name or a flag (one byte) | each distinct byte of a chunk has its set of items, made at the first question; the sets of the wanted bytes are united |
//! | a number | zones (least and greatest of 4,096 values) that lie outside are passed over, zones inside are taken whole, the others are compared value by value |
//! | anything, by a test in Rust | value by value |
//!
//! What changed since the last checkpoint is corrected afterwards. It is laid out column by column ([`Changed`]) at the
//! first question after a change, so that a recall that asks a dozen columns walks the ordered maps once.
//!
//! Invariants:
//! 1. An absent value is wanted by nobody.
//! 2. A selection by range and one by the test `range.contains` are equal.
//!
//! Cost: for names and flags an eighth of a nanosecond an item and wanted byte, at most; for numbers 0.1 to 0.5 ns an
//! item in zones that are compared; for tests 1 to 2 ns an item.

use super::Column;
use super::chunk::{Chunk, NO_U8, NO_U32, flag};
use crate::Result;
use crate::model::item::Attributes;
use holotype_index::bitmap::Bits;
use holotype_storage::BufferedMap;
use holotype_storage::columns::{self, Values, ZONE_IDS};
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

/// A test on present attribute values.
#[derive(Clone, Copy)]
pub(crate) enum ValueTest<'w> {
    /// Whole numbers from the first to the last, both included.
    Range(i64, i64),
    /// An arbitrary predicate.
    Predicate(&'w dyn Fn(f64) -> bool),
}

impl ValueTest<'_> {
    fn byte(&self, byte: u8) -> bool {
        match self {
            ValueTest::Range(low, high) => (*low..=*high).contains(&i64::from(byte)),
            ValueTest::Predicate(test) => test(f64::from(byte)),
        }
    }
}

/// For each distinct byte of a column, the items of a chunk that hold it, as a bitmap of 64-bit words.
pub(super) struct ByteSets(Vec<(u8, Vec<u64>)>);

impl ByteSets {
    fn new(values: &[u8]) -> ByteSets {
        let mut sets: Vec<(u8, Vec<u64>)> = Vec::new();
        let mut place = [usize::MAX; 256];
        for (at, byte) in values.iter().enumerate() {
            let slot = &mut place[usize::from(*byte)];
            if *slot == usize::MAX {
                *slot = sets.len();
                sets.push((*byte, vec![0; values.len().div_ceil(64)]));
            }
            sets[*slot].1[at / 64] |= 1 << (at % 64);
        }
        ByteSets(sets)
    }

    /// Sets the bits of the items whose byte passes.
    fn unite(&self, words: &mut [u64], wanted: impl Fn(u8) -> bool) {
        for (_, set) in self.0.iter().filter(|(byte, _)| wanted(*byte)) {
            for (word, more) in words.iter_mut().zip(set) {
                *word |= more;
            }
        }
    }
}

/// The byte sets of each byte column, computed on first use.
#[derive(Default)]
pub(super) struct SetCache([OnceLock<ByteSets>; 6]);

impl SetCache {
    fn of(&self, place: usize, values: Values<'_, u8>) -> &ByteSets {
        self.0[place].get_or_init(|| ByteSets::new(&values.to_vec()))
    }
}

impl Chunk {
    /// Sets the bit of every item whose attribute passes. `words` begins at the chunk's first item.
    fn select_into(&self, column: Column, wanted: ValueTest<'_>, words: &mut [u64]) -> Result<()> {
        let layout = &self.layout;
        match column {
            Column::Kind => self.select_bytes(0, layout.kind, words, |byte| byte != NO_U8 && wanted.byte(byte)),
            Column::Status => self.select_bytes(1, layout.status, words, |byte| byte != NO_U8 && wanted.byte(byte)),
            Column::Source => self.select_bytes(2, layout.source, words, |byte| byte != NO_U8 && wanted.byte(byte)),
            Column::Support => self.select_bytes(3, layout.support, words, |byte| byte != NO_U8 && wanted.byte(byte)),
            Column::ReturnScore => {
                self.select_bytes(4, layout.return_score, words, |byte| byte != NO_U8 && wanted.byte(byte))
            }
            Column::Active => self.select_flag(flag::ACTIVE, wanted, words),
            Column::Redacted => self.select_flag(flag::REDACTED, wanted, words),
            Column::Ungrounded => self.select_flag(flag::UNGROUNDED, wanted, words),
            Column::Pending => self.select_flag(flag::PENDING, wanted, words),
            Column::Episode => self.select_numbers(layout.episode, NO_U32 - 1, wanted, words),
            Column::Version => self.select_numbers(layout.version, NO_U32 - 1, wanted, words),
            Column::Speaker => self.select_numbers(layout.speaker, NO_U32 - 1, wanted, words),
            Column::Tool => self.select_numbers(layout.tool, NO_U32 - 1, wanted, words),
            Column::Tokens => self.select_numbers(layout.tokens, u32::MAX, wanted, words),
            Column::Step => {
                self.select_numbers(layout.step, u64::MAX, wanted, words)?;
                self.keep_flagged(flag::STEP, words)
            }
            Column::Time => {
                self.select_numbers(layout.time, i64::MAX, wanted, words)?;
                self.keep_flagged(flag::TIME, words)
            }
            Column::Utility => self.select_numbers(layout.utility, f32::INFINITY, wanted, words),
            Column::Reports => self.select_numbers(layout.utility_count, u32::MAX, wanted, words),
            Column::Credit => self.select_numbers(layout.credit, f32::INFINITY, wanted, words),
            Column::Rollouts => self.select_numbers(layout.credit_count, u32::MAX, wanted, words),
            Column::Commit => self.select_numbers(layout.commit, u64::MAX, wanted, words),
        }
    }

    fn select_bytes(
        &self,
        place: usize,
        column: columns::Column<u8>,
        words: &mut [u64],
        wanted: impl Fn(u8) -> bool,
    ) -> Result<()> {
        self.sets.of(place, self.columns.values(column)?).unite(words, wanted);
        Ok(())
    }

    fn select_flag(&self, bit: u8, wanted: ValueTest<'_>, words: &mut [u64]) -> Result<()> {
        let (on, off) = (wanted.byte(1), wanted.byte(0));
        self.select_bytes(FLAGS, self.layout.flags, words, |flags| if flags & bit != 0 { on } else { off })
    }

    /// Clears the bits of items without the flag.
    fn keep_flagged(&self, bit: u8, words: &mut [u64]) -> Result<()> {
        let mut flagged = vec![0; words.len()];
        self.select_bytes(FLAGS, self.layout.flags, &mut flagged, |flags| flags & bit != 0)?;
        words.iter_mut().zip(&flagged).for_each(|(word, flagged)| *word &= flagged);
        Ok(())
    }

    /// Tests a column of numbers. Values above `greatest` mean absent.
    fn select_numbers<T: Scalar>(
        &self,
        column: columns::Column<T>,
        greatest: T,
        wanted: ValueTest<'_>,
        words: &mut [u64],
    ) -> Result<()> {
        let (values, zones) = (self.columns.values(column)?, self.columns.zones(column)?);
        match wanted {
            ValueTest::Range(low, high) => {
                let Some((low, high)) = T::bounds(low, high, greatest) else { return Ok(()) };
                let all = |[least, most]: [T; 2]| T::IS_TOTAL && least >= low && most <= high;
                let zoned = |zone: [T; 2]| (zone[1] >= low && zone[0] <= high, all(zone));
                scan(&values, zones, words, |value| value >= low && value <= high, zoned);
            }
            ValueTest::Predicate(test) => {
                scan(&values, zones, words, |value| value <= greatest && test(value.as_f64()), |_| (true, false));
            }
        }
        Ok(())
    }
}

/// The index of the flags in the set cache.
const FLAGS: usize = 5;

/// A column's number type.
trait Scalar: columns::Scalar {
    /// True if zones bound all values; false for floats, where NaN is outside every zone.
    const IS_TOTAL: bool;
    /// The range in this type that contains the same whole numbers, at most `greatest`; `None` if empty.
    fn bounds(low: i64, high: i64, greatest: Self) -> Option<(Self, Self)>;
    fn as_f64(self) -> f64;
}

/// Whole numbers; what does not fit the type lies beyond its end.
macro_rules! whole {
    ($($type:ident: $as_f64:expr),+) => {
        $(impl Scalar for $type {
            const IS_TOTAL: bool = true;

            fn bounds(low: i64, high: i64, greatest: $type) -> Option<($type, $type)> {
                let (low, high) = (i128::from(low).max($type::MIN.into()), i128::from(high).min(greatest.into()));
                // A range open at the top includes numbers beyond `i64`.
                let high = if high == i128::from(i64::MAX) { i128::from(greatest) } else { high };
                Some(($type::try_from(low).ok()?, $type::try_from(high).ok()?)).filter(|(low, high)| low <= high)
            }

            fn as_f64(self) -> f64 {
                $as_f64(self)
            }
        })+
    };
}

whole!(u32: f64::from, u64: |value| value as f64, i64: |value| value as f64);

impl Scalar for f32 {
    const IS_TOTAL: bool = false;

    fn bounds(low: i64, high: i64, _: f32) -> Option<(f32, f32)> {
        (low <= high).then_some((low as f32, high as f32))
    }

    fn as_f64(self) -> f64 {
        f64::from(self)
    }
}

/// Sets the bits of the values that pass. `zoned` tells whether some and whether all values of a zone may pass.
fn scan<T: columns::Scalar>(
    values: &Values<'_, T>,
    zones: &[[T; 2]],
    words: &mut [u64],
    passes: impl Fn(T) -> bool,
    zoned: impl Fn([T; 2]) -> (bool, bool),
) {
    let zone_words = ZONE_IDS as usize / 64;
    for (number, (words, zone)) in words.chunks_mut(zone_words).zip(zones).enumerate() {
        let (some, all) = zoned(*zone);
        if !some {
            continue;
        }
        if all {
            let len = values.count().saturating_sub(number * ZONE_IDS as usize).min(ZONE_IDS as usize);
            for (at, word) in (0..len).step_by(64).zip(words) {
                *word |= u64::MAX >> (64 - (len - at).min(64));
            }
            continue;
        }
        for (values, word) in values.zone(number).chunks(64).zip(words) {
            *word |= pack(values, &passes);
        }
    }
}

/// The results for up to 64 values as a bitmap.
#[inline(always)]
fn pack<T: Copy>(values: &[T], passes: &impl Fn(T) -> bool) -> u64 {
    /// Moves the lowest bit of each of eight bytes into one byte, the first byte's bit lowest.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut flags = [0u8; 64];
    for (flag, value) in flags.iter_mut().zip(values) {
        *flag = u8::from(passes(*value));
    }
    let (bytes, _) = flags.as_chunks::<8>();
    bytes
        .iter()
        .enumerate()
        .fold(0, |word, (at, eight)| word | (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) << (8 * at))
}

/// The changes since the last checkpoint in columnar layout.
pub(super) struct Changed {
    items: Vec<(u32, Arc<Attributes>)>,
    columns: [OnceLock<Vec<f64>>; Column::COUNT],
}

impl Changed {
    /// Joins the changes of both maps; the later one wins.
    pub(super) fn new(
        frozen: &BufferedMap<u32, Arc<Attributes>>,
        current: &BufferedMap<u32, Arc<Attributes>>,
    ) -> Changed {
        let mut items: Vec<(u32, Arc<Attributes>)> = Vec::with_capacity(frozen.len() + current.len());
        let mut earlier = frozen.iter().peekable();
        for (id, attributes) in current {
            while let Some((before, frozen)) = earlier.next_if(|(before, _)| *before <= id) {
                if before < id {
                    items.push((*before, Arc::clone(frozen)));
                }
            }
            items.push((*id, Arc::clone(attributes)));
        }
        items.extend(earlier.map(|(id, attributes)| (*id, Arc::clone(attributes))));
        Changed { items, columns: [const { OnceLock::new() }; Column::COUNT] }
    }

    /// The values of a column, one per changed item; NaN if absent.
    fn column(&self, column: Column) -> &[f64] {
        self.columns[column as usize].get_or_init(|| {
            self.items.iter().map(|(_, attributes)| column.of(attributes).unwrap_or(f64::NAN)).collect()
        })
    }

    /// Sets or clears the bit of every changed item.
    fn correct(&self, column: Column, wanted: ValueTest<'_>, words: &mut [u64]) {
        let passes = |value: f64| match wanted {
            // Numbers up to 2^53 are exact, and no others are stored.
            ValueTest::Range(low, high) => value >= low as f64 && value <= high as f64,
            ValueTest::Predicate(test) => !value.is_nan() && test(value),
        };
        for ((id, _), value) in self.items.iter().zip(self.column(column)) {
            if let Some(word) = words.get_mut((id / 64) as usize) {
                let bit = 1u64 << (id % 64);
                *word = if passes(*value) { *word | bit } else { *word & !bit };
            }
        }
    }
}

/// The items below `bound` whose attribute passes.
pub(super) fn select(
    chunks: &[Arc<Chunk>],
    changed: &Changed,
    column: Column,
    bound: u32,
    wanted: ValueTest<'_>,
) -> Result<Bits> {
    let mut words = vec![0u64; (bound as usize).div_ceil(64)];
    let chunk_words = super::CHUNK_ITEMS as usize / 64;
    for (chunk, words) in chunks.iter().zip(words.chunks_mut(chunk_words)) {
        chunk.select_into(column, wanted, words)?;
    }
    changed.correct(column, wanted, &mut words);
    // A chunk or a change may exceed the bound of an earlier state.
    if let (Some(last), rest @ 1..) = (words.last_mut(), bound % 64) {
        *last &= (1u64 << rest) - 1;
    }
    Ok(Bits::from_blocks(words))
}

/// Converts a range to the bounds of [`ValueTest::Range`].
impl From<RangeInclusive<i64>> for ValueTest<'_> {
    fn from(range: RangeInclusive<i64>) -> Self {
        ValueTest::Range(*range.start(), *range.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype_storage::columns::{Columns, ColumnsWriter};
    use holotype_storage::segment_file::{FileIdentity, SegmentFile};
    use proptest::prelude::*;

    fn file_of(values: &[u64]) -> Columns {
        let mut writer = ColumnsWriter::new(0, values.len() as u32);
        writer.u64("x", values.to_vec());
        let identity = FileIdentity { database: [7; 16], generation: 1, place: 0 };
        let bytes = writer.into_file(identity).into_bytes();
        Columns::from_file(SegmentFile::from_bytes(bytes, *b"CSEG", &identity).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn a_scan_by_zones_finds_what_a_look_at_each_finds(
            steps in proptest::collection::vec(0u64..3, 1..9_000), low in -5i64..4_000, len in -1i64..3_000,
        ) {
            // Growing, so that zones differ and some lie inside or outside.
            let values: Vec<u64> = steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect();
            let mut words = vec![0; values.len().div_ceil(64)];
            let expected: Vec<bool> = values.iter().map(|value| (low..=low + len).contains(&(*value as i64))).collect();
            if let Some((low, high)) = u64::bounds(low, low + len, u64::MAX) {
                let zoned = |[least, most]: [u64; 2]| (most >= low && least <= high, least >= low && most <= high);
                let columns = file_of(&values);
                let column = columns.column("x").unwrap();
                let (stored, zones) = (columns.values(column).unwrap(), columns.zones(column).unwrap());
                scan(&stored, zones, &mut words, |value| value >= low && value <= high, zoned);
            }
            let found: Vec<bool> = (0..values.len()).map(|at| words[at / 64] >> (at % 64) & 1 == 1).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn sets_of_bytes_hold_what_a_look_at_each_finds(
            values in proptest::collection::vec(prop_oneof![0u8..6, Just(NO_U8)], 1..500), mask in any::<u8>(),
        ) {
            let mut words = vec![0; values.len().div_ceil(64)];
            let wanted = |byte: u8| byte != NO_U8 && mask >> byte & 1 == 1;
            ByteSets::new(&values).unite(&mut words, wanted);
            prop_assert!(values.iter().enumerate().all(|(at, byte)| (words[at / 64] >> (at % 64) & 1 == 1) == wanted(*byte)));
        }
    }

    #[test]
    fn ranges_meet_the_ends_of_types() {
        assert_eq!(u32::bounds(-7, 3, u32::MAX), Some((0, 3)));
        assert_eq!(u32::bounds(0, i64::MAX, NO_U32 - 1), Some((0, NO_U32 - 1)));
        assert_eq!(u64::bounds(5, i64::MAX, u64::MAX), Some((5, u64::MAX)));
        assert_eq!(u32::bounds(-7, -3, u32::MAX), None);
        assert_eq!(u32::bounds(1 << 40, i64::MAX, u32::MAX), None);
        assert_eq!(i64::bounds(i64::MIN, i64::MAX, i64::MAX), Some((i64::MIN, i64::MAX)));
        assert_eq!(u64::bounds(4, 3, u64::MAX), None);
    }
}
