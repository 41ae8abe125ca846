//! Scalar attributes of a chunk of consecutive ids, as named arrays: a `.cseg` file.
//!
//! A column file covers up to 65,536 ids from `first_id` on. Each column is an array with one value
//! per id, so a test over one attribute reads only that attribute. Each array comes with its
//! *zones*, the least and the greatest value of every 4,096 ids, so a range test skips the zones that
//! cannot match.
//!
//! The file is a [segment file](crate::segment_file) of kind `CSEG`, version 2. Its section `head`:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | first id |
//! | 4 | 4 | count of ids, 1 to 65,536 |
//! | 8 | 4 | count of columns, n, up to 1,000 |
//! | 12 | 4 | zero |
//! | 16 + 32 i | 24 | name of column i, padded with zeros |
//! | 40 + 32 i | 1 | type: 1 `u8`, 2 `u16`, 3 `u32`, 4 `u64`, 5 `i64`, 6 `f32` |
//! | 41 + 32 i | 1 | form of its values |
//! | 42 + 32 i | 6 | zero |
//!
//! Column i's values are the section `v` followed by i in three decimal digits, its zones the section
//! `z` followed by the same: one pair (least, greatest) for each zone, in the column's own type.
//!
//! | form | values |
//! |---|---|
//! | 0 | as they are, in the column's type |
//! | 1 | none: each is the least of its zone |
//! | 2, 3, 4 | `u8`, `u16`, `u32`: the distance of each from the least of its zone |
//!
//! 1. Every array has exactly `count` values (form 1: none), every zone array one pair for each 4,096 ids, the last of
//!    which may be fewer.
//! 2. Zones ignore NaN, since it passes no comparison. A zone that has only NaN is (+∞, -∞).
//! 3. A column has the shortest form that gives back every bit of every value; floats have form 0 or 1.
//!
//! Cost: finding a [`Column`] by name searches the list of columns; reading a found column only checks its length, and
//! a value takes one look at the zones more than an array.

mod values;

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::path::Path;

pub use self::values::Values;
use self::values::encode;
use crate::error::{Error, Result};
use crate::features::Access;
use crate::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};
use crate::vfs::Vfs;

/// The greatest number of ids in a file.
pub const MAX_IDS: u32 = 65_536;

/// The number of ids in a zone.
pub const ZONE_IDS: u32 = 4_096;

/// The greatest length of a column's name, in bytes.
pub const MAX_NAME_LEN: usize = 24;

/// Collects the columns of a chunk, then writes them.
#[derive(Debug)]
pub struct ColumnsWriter {
    first_id: u32,
    count: u32,
    columns: Vec<NewColumn>,
}

#[derive(Debug)]
struct NewColumn {
    name: [u8; MAX_NAME_LEN],
    kind: u8,
    form: u8,
    values: Vec<u8>,
    zones: Vec<u8>,
}

impl ColumnsWriter {
    /// A writer for the columns of `count` ids from `first_id` on.
    ///
    /// # Panics
    /// If `count` is 0 or more than [`MAX_IDS`], or an id would not fit 32 bits.
    #[must_use]
    pub fn new(first_id: u32, count: u32) -> Self {
        assert!((1..=MAX_IDS).contains(&count), "1 to {MAX_IDS} ids to a chunk");
        assert!(first_id.checked_add(count - 1).is_some(), "ids are 32-bit numbers");
        Self { first_id, count, columns: Vec::new() }
    }

    /// Writes the file under a temporary name, syncs it and moves it to `path`. Returns its length.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(self, vfs: &dyn Vfs, path: &Path, identity: FileIdentity) -> Result<u64> {
        self.into_file(identity).write(vfs, path)
    }

    /// The file, ready to be written.
    #[must_use]
    pub fn into_file(self, identity: FileIdentity) -> SegmentFileWriter {
        let mut head = Vec::with_capacity(HEAD_LEN + self.columns.len() * ENTRY_LEN);
        head.extend_from_slice(&self.first_id.to_le_bytes());
        head.extend_from_slice(&self.count.to_le_bytes());
        head.extend_from_slice(&(self.columns.len() as u32).to_le_bytes());
        head.extend_from_slice(&[0; HEAD_LEN - HEAD_ZERO]);
        for column in &self.columns {
            head.extend_from_slice(&column.name);
            head.extend_from_slice(&[column.kind, column.form]);
            head.extend_from_slice(&[0; ENTRY_LEN - ENTRY_ZERO]);
        }
        let mut file = SegmentFileWriter::new(KIND, VERSION, identity);
        file.section(HEAD, head);
        for (i, column) in self.columns.into_iter().enumerate() {
            file.section(tag(b'v', i), column.values);
            file.section(tag(b'z', i), column.zones);
        }
        file
    }

    fn push<T: Scalar>(&mut self, name: &str, values: &[T]) -> &mut Self {
        assert_eq!(values.len(), self.count as usize, "one value an id in column {name}");
        assert!(self.columns.len() < MAX_COLUMNS, "up to {MAX_COLUMNS} columns");
        let name = padded(name).unwrap_or_else(|| panic!("{name:?} is not a valid column name"));
        assert!(self.columns.iter().all(|column| column.name != name), "one column to a name");
        let zones: Vec<[T; 2]> = values.chunks(ZONE_IDS as usize).map(zone).collect();
        let (form, values) = encode(values, &zones);
        self.columns.push(NewColumn {
            name,
            kind: T::KIND,
            form,
            values,
            zones: bytemuck::cast_slice(&zones).to_vec(),
        });
        self
    }
}

/// The columns of a chunk, mapped.
#[derive(Debug)]
pub struct Columns {
    file: SegmentFile,
    first_id: u32,
    count: u32,
    columns: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: [u8; MAX_NAME_LEN],
    kind: u8,
    form: u8,
    /// The sections of the values and of the zones in the file's directory, if present.
    values: Option<usize>,
    zones: Option<usize>,
}

/// A column of values of type `T`, found by name with [`Columns::column`].
pub struct Column<T> {
    /// Its index in the list of columns.
    index: usize,
    scalar: PhantomData<T>,
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Column<T> {}

impl<T> Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column({})", self.index)
    }
}

impl Columns {
    /// Maps the column file at `path` and checks its header, directory and list of columns.
    ///
    /// # Errors
    /// As [`SegmentFile::open`].
    pub fn open(vfs: &dyn Vfs, path: &Path, identity: &FileIdentity) -> Result<Self> {
        Self::from_file(SegmentFile::open(vfs, path, KIND, identity)?)
    }

    /// Refuses to write beside a file with features that this program can only read.
    ///
    /// # Errors
    /// [`Error::NewerFormat`].
    pub fn check_access(&self, access: Access) -> Result<()> {
        self.file.check_access(access)
    }

    /// The columns of an open file.
    ///
    /// # Errors
    /// [`Error::DamagedFile`], [`Error::NewerFormat`].
    pub fn from_file(file: SegmentFile) -> Result<Self> {
        file.check_version(VERSION)?;
        let head = file.section(HEAD)?;
        let damaged = |what: &str| Error::damaged_file(file.path(), what);
        let Some((fixed, entries)) = head.split_first_chunk::<HEAD_LEN>() else {
            return Err(damaged("its head is cut short"));
        };
        let field = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let (first_id, count) = (field(HEAD_FIRST_ID), field(HEAD_COUNT));
        if !(1..=MAX_IDS).contains(&count) || first_id.checked_add(count - 1).is_none() {
            return Err(damaged("its range of ids is impossible"));
        }
        let column_count = field(HEAD_COLUMN_COUNT) as usize;
        if column_count > MAX_COLUMNS || entries.len() != column_count * ENTRY_LEN {
            return Err(damaged("its list of columns has the wrong length"));
        }
        let (entries, _) = entries.as_chunks::<ENTRY_LEN>();
        let columns: Vec<Entry> = entries
            .iter()
            .enumerate()
            .map(|(i, entry)| {
                let mut name = [0; MAX_NAME_LEN];
                name.copy_from_slice(&entry[ENTRY_NAME..ENTRY_KIND]);
                let (values, zones) = (file.place_of(tag(b'v', i)), file.place_of(tag(b'z', i)));
                Entry { name, kind: entry[ENTRY_KIND], form: entry[ENTRY_FORM], values, zones }
            })
            .collect();
        Ok(Self { first_id, count, columns, file })
    }

    /// The first id.
    #[must_use]
    pub fn first_id(&self) -> u32 {
        self.first_id
    }

    /// The number of ids.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// True if there is a column of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Finds the column of this name.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] when there is no such column or it has another type.
    pub fn column<T: Scalar>(&self, name: &str) -> Result<Column<T>> {
        let Some(index) = self.find(name) else {
            return Err(Error::damaged_file(self.file.path(), format!("it has no column {name}")));
        };
        self.typed::<T>(index)?;
        Ok(Column { index, scalar: PhantomData })
    }

    /// The values of a column, one per id. Their checksum is verified at the first call.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] when its bytes do not match their checksum.
    #[inline]
    pub fn values<T: Scalar>(&self, column: Column<T>) -> Result<Values<'_, T>> {
        let entry = self.typed::<T>(column.index)?;
        let bytes = self.section(column.index, entry.values)?;
        match Values::open(entry.form, bytes, self.zones(column)?, self.count as usize) {
            Some(values) => Ok(values),
            None => Err(self.damaged(column.index, "has an array of the wrong length or an unknown form")),
        }
    }

    /// The zones of a column: least and greatest value of every [`ZONE_IDS`] ids.
    ///
    /// # Errors
    /// As for the values.
    #[inline]
    pub fn zones<T: Scalar>(&self, column: Column<T>) -> Result<&[[T; 2]]> {
        let entry = self.typed::<T>(column.index)?;
        match bytemuck::try_cast_slice(self.section(column.index, entry.zones)?) {
            Ok(zones) if zones.len() == self.count.div_ceil(ZONE_IDS) as usize => Ok(zones),
            _ => Err(self.damaged(column.index, "has zones of the wrong length")),
        }
    }

    /// The names of the columns, in the order they were written.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| {
            let len = column.name.iter().position(|&byte| byte == 0).unwrap_or(MAX_NAME_LEN);
            String::from_utf8_lossy(&column.name[..len]).into_owned()
        })
    }

    /// The file the columns are in.
    #[must_use]
    pub fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// Checks every byte and every zone.
    ///
    /// # Errors
    /// [`Error::DamagedFile`] for the first fault.
    pub fn verify(&self) -> Result<()> {
        self.file.verify()?;
        for (i, column) in self.columns.iter().enumerate() {
            match column.kind {
                <u8 as sealed::Scalar>::KIND => self.verify_zones::<u8>(i)?,
                <u16 as sealed::Scalar>::KIND => self.verify_zones::<u16>(i)?,
                <u32 as sealed::Scalar>::KIND => self.verify_zones::<u32>(i)?,
                <u64 as sealed::Scalar>::KIND => self.verify_zones::<u64>(i)?,
                <i64 as sealed::Scalar>::KIND => self.verify_zones::<i64>(i)?,
                <f32 as sealed::Scalar>::KIND => self.verify_zones::<f32>(i)?,
                kind => return Err(self.damaged(i, &format!("has the unknown type {kind}"))),
            }
        }
        Ok(())
    }

    fn verify_zones<T: Scalar>(&self, index: usize) -> Result<()> {
        let column = Column::<T> { index, scalar: PhantomData };
        let found = self.zones(column)?;
        let values = self.values(column)?;
        let same = found.iter().enumerate().all(|(number, found)| zone(&values.zone(number)) == *found);
        if same { Ok(()) } else { Err(self.damaged(index, "has zones that do not match its values")) }
    }

    #[inline]
    fn section(&self, index: usize, section: Option<usize>) -> Result<&[u8]> {
        match section {
            Some(section) => self.file.section_at(section),
            None => Err(self.damaged(index, "has no values or no zones")),
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        let name = padded(name)?;
        self.columns.iter().position(|column| column.name == name)
    }

    #[inline]
    fn typed<T: Scalar>(&self, index: usize) -> Result<&Entry> {
        match self.columns.get(index) {
            Some(entry) if entry.kind == T::KIND => Ok(entry),
            _ => Err(self.damaged(index, "has another type than asked for")),
        }
    }

    #[cold]
    fn damaged(&self, i: usize, what: &str) -> Error {
        let name = self.names().nth(i).unwrap_or_default();
        Error::damaged_file(self.file.path(), format!("column {name:?} {what}"))
    }
}

/// Declares, for one type of scalar, the writer's method and the reader's two.
macro_rules! scalar {
    ($scalar:ident, $kind:literal, $values:ident, $zones:ident, $empty:expr, $above:expr, $distance:expr) => {
        impl sealed::Scalar for $scalar {
            const KIND: u8 = $kind;
            const EMPTY_ZONE: [Self; 2] = $empty;

            #[inline]
            fn above(least: Self, distance: u64) -> Self {
                $above(least, distance)
            }

            fn distance(self, least: Self) -> Option<u64> {
                $distance(self, least)
            }
        }

        impl Scalar for $scalar {}

        impl ColumnsWriter {
            #[doc = concat!("Adds a column of `", stringify!($scalar), "`, one value an id.")]
            ///
            /// # Panics
            /// If there is not one value an id, the name is taken, or it is empty, longer than
            /// [`MAX_NAME_LEN`] or has a zero byte.
            pub fn $scalar(&mut self, name: &str, values: Vec<$scalar>) -> &mut Self {
                self.push(name, &values)
            }
        }

        impl Columns {
            #[doc = concat!("The values of a column of `", stringify!($scalar), "`, one an id.")]
            ///
            /// # Errors
            /// [`Error::DamagedFile`] when there is no such column, it has another type, or its
            /// bytes do not match their checksum.
            pub fn $values(&self, name: &str) -> Result<Vec<$scalar>> {
                Ok(self.values(self.column(name)?)?.to_vec())
            }

            #[doc = concat!("The zones of a column of `", stringify!($scalar), "`: least and ")]
            /// greatest value of every [`ZONE_IDS`] ids.
            ///
            /// # Errors
            /// As for the values.
            pub fn $zones(&self, name: &str) -> Result<&[[$scalar; 2]]> {
                self.zones(self.column(name)?)
            }
        }
    };
}

/// Whole numbers: every distance within the type can be stored.
macro_rules! whole {
    ($scalar:ident, $unsigned:ident, $kind:literal, $values:ident, $zones:ident) => {
        scalar!(
            $scalar,
            $kind,
            $values,
            $zones,
            [$scalar::MAX, $scalar::MIN],
            |least: $scalar, distance| least.wrapping_add(distance as $scalar),
            |value: $scalar, least| Some(u64::from(value.wrapping_sub(least) as $unsigned))
        );
    };
}

whole!(u8, u8, 1, u8s, zones_u8);
whole!(u16, u16, 2, u16s, zones_u16);
whole!(u32, u32, 3, u32s, zones_u32);
whole!(u64, u64, 4, u64s, zones_u64);
whole!(i64, u64, 5, i64s, zones_i64);
scalar!(
    f32,
    6,
    f32s,
    zones_f32,
    [f32::INFINITY, f32::NEG_INFINITY],
    |least: f32, _| least,
    |value: f32, least: f32| (value.to_bits() == least.to_bits()).then_some(0)
);

/// The types of values, as listed in the module doc.
pub trait Scalar: sealed::Scalar {}

mod sealed {
    /// The properties of a type of values.
    pub trait Scalar: bytemuck::Pod + PartialOrd {
        /// The type's number in the file.
        const KIND: u8;
        /// The zone without a value: its least is above and its greatest below every value.
        const EMPTY_ZONE: [Self; 2];
        /// The value that is `distance` above the least of its zone.
        fn above(least: Self, distance: u64) -> Self;
        /// The distance from which [`Scalar::above`] makes this value again, bit by bit; `None` if there is none.
        fn distance(self, least: Self) -> Option<u64>;
    }
}

const KIND: [u8; 4] = *b"CSEG";
const VERSION: u32 = 2;
const HEAD: [u8; 4] = *b"head";
const MAX_COLUMNS: usize = 1_000;

const HEAD_FIRST_ID: usize = 0;
const HEAD_COUNT: usize = HEAD_FIRST_ID + 4;
const HEAD_COLUMN_COUNT: usize = HEAD_COUNT + 4;
const HEAD_ZERO: usize = HEAD_COLUMN_COUNT + 4;
const HEAD_LEN: usize = HEAD_ZERO + 4;
const _: () = assert!(HEAD_LEN == 16);

const ENTRY_NAME: usize = 0;
const ENTRY_KIND: usize = ENTRY_NAME + MAX_NAME_LEN;
const ENTRY_FORM: usize = ENTRY_KIND + 1;
const ENTRY_ZERO: usize = ENTRY_FORM + 1;
const ENTRY_LEN: usize = ENTRY_ZERO + 6;
const _: () = assert!(ENTRY_LEN == 32);

/// The section of column `i`, which is below [`MAX_COLUMNS`].
fn tag(letter: u8, i: usize) -> [u8; 4] {
    let digit = |unit: usize| b'0' + (i / unit % 10) as u8;
    [letter, digit(100), digit(10), digit(1)]
}

fn padded(name: &str) -> Option<[u8; MAX_NAME_LEN]> {
    let mut padded = [0; MAX_NAME_LEN];
    padded.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    (!name.is_empty() && !name.contains('\0')).then_some(padded)
}

fn zone<T: Scalar>(values: &[T]) -> [T; 2] {
    values.iter().fold(T::EMPTY_ZONE, |[least, greatest], &value| {
        // Written so that a NaN changes neither.
        let least = if value < least { value } else { least };
        let greatest = if value > greatest { value } else { greatest };
        [least, greatest]
    })
}
