//! The file of a merged segment while it is written.
//!
//! Sections are appended in the order of the directory, the head last. A section that has ended is read again through a
//! map of the file: its bytes are in the system's cache, not in the memory of this process.

use std::ops::Range;
use std::path::Path;

use holotype_storage::log::Head as LogHead;
use holotype_storage::segment_file::{FileIdentity, SegmentFileStream};
use holotype_storage::vfs::{Mapping, Vfs};

use super::layout;
use crate::error::{Error, Result};
use crate::logged::LoggedRows;
use crate::rows::{RowsView, VectorsView};
use crate::spec::{Encoding, VectorSpec};

/// A segment being written.
pub(super) struct MergedFile<'v> {
    file: SegmentFileStream<'v>,
    tags: Vec<[u8; 4]>,
}

/// A section that was written.
pub(super) struct Written {
    map: Mapping,
    range: Range<usize>,
}

impl Written {
    /// The section as an array of numbers.
    pub(super) fn numbers<T: bytemuck::Pod>(&self, name: &'static str) -> Result<&[T]> {
        let bytes = &self.map[self.range.clone()];
        if self.map.is_cut() {
            return Err(Error::corrupt(name, 0, "the file was cut while it was written"));
        }
        bytemuck::try_cast_slice(bytes).map_err(|why| Error::corrupt(name, 0, format!("{} bytes: {why}", bytes.len())))
    }
}

/// Ids that were written, with their vectors.
pub(super) struct WrittenRows<'l> {
    spec: VectorSpec,
    ids: Written,
    vectors: WrittenVectors<'l>,
}

enum WrittenVectors<'l> {
    Here { vectors: Written, scales: Option<Written> },
    Logged(LoggedRows<'l>),
}

impl WrittenRows<'_> {
    /// The vectors with their ids.
    pub(super) fn view(&self) -> Result<RowsView<'_>> {
        let vectors = match &self.vectors {
            WrittenVectors::Logged(rows) => VectorsView::Logged(*rows),
            WrittenVectors::Here { vectors, scales } => match self.spec.encoding {
                Encoding::F32 => VectorsView::F32(vectors.numbers("VECS")?),
                Encoding::F16 => VectorsView::F16(vectors.numbers("VECS")?),
                Encoding::I8 => VectorsView::I8 {
                    codes: vectors.numbers("VECS")?,
                    scales: scales.as_ref().map_or(Ok(&[][..]), |scales| scales.numbers("SCAL"))?,
                },
            },
        };
        Ok(RowsView::new(self.spec, self.ids.numbers("IDS ")?, vectors))
    }
}

impl<'v> MergedFile<'v> {
    /// Begins the file with sections of these tags, the head first. `made` is its identity and the commit of the log it
    /// is made from; the tags come with the version of the content.
    pub(super) fn create(
        (vfs, path): (&'v dyn Vfs, &Path),
        (identity, origin): (FileIdentity, Option<LogHead>),
        (version, tags): (u32, Vec<[u8; 4]>),
    ) -> Result<Self> {
        let len = |tag: &[u8; 4]| (*tag, (*tag == layout::HEAD).then_some(layout::HEAD_LEN as u64));
        let sections: Vec<_> = tags.iter().map(len).collect();
        let file = SegmentFileStream::create(vfs, path, (layout::KIND, version), identity, origin, &sections)?;
        Ok(Self { file, tags })
    }

    fn place(&self, tag: [u8; 4]) -> Result<usize> {
        let is_it = |other: &[u8; 4]| *other == tag;
        let missing = || Error::corrupt("DIR ", 0, format!("no section {} was begun", tag.escape_ascii()));
        self.tags.iter().position(is_it).ok_or_else(missing)
    }

    /// Appends numbers to a section.
    pub(super) fn append<T: bytemuck::NoUninit>(&mut self, tag: [u8; 4], numbers: &[T]) -> Result<()> {
        let place = self.place(tag)?;
        Ok(self.file.append(place, bytemuck::cast_slice(numbers))?)
    }

    /// A section, which ends here.
    pub(super) fn written(&mut self, tag: [u8; 4]) -> Result<Written> {
        let place = self.place(tag)?;
        let (map, range) = self.file.written(place)?;
        Ok(Written { map, range })
    }

    /// The ids and the vectors, which end here. `logged` are the vectors if they were not written.
    pub(super) fn rows<'l>(&mut self, spec: VectorSpec, logged: Option<LoggedRows<'l>>) -> Result<WrittenRows<'l>> {
        let ids = self.written(layout::IDS)?;
        let vectors = match logged {
            Some(rows) => WrittenVectors::Logged(rows),
            None => {
                let scales = (spec.encoding == Encoding::I8).then(|| self.written(layout::SCALES)).transpose()?;
                WrittenVectors::Here { vectors: self.written(layout::VECTORS)?, scales }
            }
        };
        Ok(WrittenRows { spec, ids, vectors })
    }

    /// Writes the head and gives the file its name. No section may be mapped any more.
    pub(super) fn finish(mut self, head: &[u8]) -> Result<()> {
        self.append(layout::HEAD, head)?;
        self.file.finish()?;
        Ok(())
    }
}
