//! Reads a `.vseg` in place.
//!
//! Opening checks everything that later code relies on, so that no answer can come from, and no index run past, bytes
//! that are not what they should be: every section's CRC, its length against the header, that ids ascend, that links
//! and levels stay within the segment.

use holotype_storage::segment_file::SegmentFile;

use super::layout::{self, Head};
use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::rows::{RowsView, VectorsView};
use crate::spec::{Encoding, VectorSpec};

/// An immutable segment, mapped.
#[derive(Debug)]
pub struct VectorSegment {
    file: SegmentFile,
    head: Head,
    /// The ids as a set, where they are not simply all from the first to the last.
    members: Option<Bits>,
}

impl VectorSegment {
    /// Checks `file` and takes it over.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when it was made for another space, [`Error::Corrupt`] or a storage error when its bytes
    /// are not what they should be.
    pub fn open(file: SegmentFile, spec: &VectorSpec) -> Result<Self> {
        if file.version() != layout::VERSION {
            return Err(Error::Mismatch {
                expected: format!("version {} of the vector segment", layout::VERSION),
                found: format!("version {}", file.version()),
            });
        }
        let head = Head::decode(file.section(layout::HEAD)?)?;
        if head.spec != *spec {
            return Err(Error::Mismatch {
                expected: spec.to_string(),
                found: head.spec.to_string(),
            });
        }
        let mut segment = Self {
            file,
            head,
            members: None,
        };
        let ids = segment.check_ids()?;
        let dense = head.last_id - head.first_id == head.count - 1;
        let members = (!dense).then(|| ids.iter().copied().collect());
        segment.check_vectors()?;
        segment.members = members;
        Ok(segment)
    }

    /// The space.
    pub fn spec(&self) -> VectorSpec {
        self.head.spec
    }

    /// How many vectors there are; at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.head.count as usize
    }

    /// The smallest and the largest id.
    pub fn id_range(&self) -> std::ops::RangeInclusive<u32> {
        self.head.first_id..=self.head.last_id
    }

    /// Whether it is searched through a graph; a small one is scanned.
    pub fn has_graph(&self) -> bool {
        self.head.graph.is_some()
    }

    /// The file it reads from.
    pub fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// The exact vectors with their ids.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub fn rows(&self) -> Result<RowsView<'_>> {
        let vectors = match self.head.spec.encoding {
            Encoding::F32 => VectorsView::F32(self.array(layout::VECTORS, "VECS")?),
            Encoding::F16 => VectorsView::F16(self.array(layout::VECTORS, "VECS")?),
            Encoding::I8 => VectorsView::I8 {
                codes: self.array(layout::VECTORS, "VECS")?,
                scales: self.array(layout::SCALES, "SCAL")?,
            },
        };
        Ok(RowsView::new(self.head.spec, self.ids()?, vectors))
    }

    /// The ids, ascending.
    ///
    /// # Errors
    /// A storage error when the file is damaged.
    pub fn ids(&self) -> Result<&[u32]> {
        self.array(layout::IDS, "IDS ")
    }

    /// How many of its ids are in `filter`.
    pub(crate) fn count_matching(&self, filter: &Bits) -> u64 {
        match &self.members {
            Some(members) => members.and_count(filter),
            None => {
                let last = u64::from(self.head.last_id);
                let all = filter.count_in(self.head.first_id..self.head.last_id);
                all + u64::from(filter.contains(last as u32))
            }
        }
    }

    fn check_ids(&self) -> Result<&[u32]> {
        let ids = self.ids()?;
        self.expect_len("IDS ", ids.len(), self.len())?;
        if let Some(at) = ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(Error::corrupt(
                "IDS ",
                at * 4,
                format!("{} before {}", ids[at], ids[at + 1]),
            ));
        }
        if (ids.first(), ids.last()) != (Some(&self.head.first_id), Some(&self.head.last_id)) {
            return Err(Error::corrupt(
                "HEAD",
                0,
                "the first or the last id disagrees with the list",
            ));
        }
        Ok(ids)
    }

    fn check_vectors(&self) -> Result<()> {
        let components = self.len() * self.head.spec.dim;
        match self.head.spec.encoding {
            Encoding::F32 => {
                let all: &[f32] = self.array(layout::VECTORS, "VECS")?;
                self.expect_len("VECS", all.len(), components)
            }
            Encoding::F16 => {
                let all: &[half::f16] = self.array(layout::VECTORS, "VECS")?;
                self.expect_len("VECS", all.len(), components)
            }
            Encoding::I8 => {
                let all: &[i8] = self.array(layout::VECTORS, "VECS")?;
                self.expect_len("VECS", all.len(), components)?;
                let scales: &[f32] = self.array(layout::SCALES, "SCAL")?;
                self.expect_len("SCAL", scales.len(), self.len())
            }
        }
    }

    fn expect_len(&self, section: &'static str, found: usize, expected: usize) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(Error::corrupt(
            section,
            0,
            format!("{found} entries, not {expected}"),
        ))
    }

    /// A section as an array of numbers.
    fn array<T: bytemuck::Pod>(&self, tag: [u8; 4], name: &'static str) -> Result<&[T]> {
        let bytes = self.file.section(tag)?;
        bytemuck::try_cast_slice(bytes)
            .map_err(|why| Error::corrupt(name, 0, format!("{} bytes: {why}", bytes.len())))
    }
}
