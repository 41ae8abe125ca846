//! Derived files with valid checksums and any content: the fuzzer's bytes are the sections, in a valid frame.

use holotype_storage::segment_file::{FileIdentity, SegmentFile, SegmentFileWriter};

use crate::input::{Input, put_counted};

/// The identity of the files.
pub(crate) const IDENTITY: FileIdentity = FileIdentity { database: [7; 16], generation: 3, place: 1 };

/// Builds a file of the sections in `input`, one counted run of bytes for each tag; an empty run omits the section, so
/// that files without some sections occur too.
pub(crate) fn seal(input: &mut Input<'_>, kind: [u8; 4], version: u32, tags: &[[u8; 4]]) -> SegmentFile {
    let mut writer = SegmentFileWriter::new(kind, version, IDENTITY);
    for tag in tags {
        let bytes = input.counted();
        if !bytes.is_empty() {
            writer.section(*tag, bytes.to_vec());
        }
    }
    SegmentFile::from_bytes(writer.into_bytes(), kind, &IDENTITY).expect("the frame is good")
}

/// The input of [`seal`] that gives this file.
pub(crate) fn unseal(writer: SegmentFileWriter, kind: [u8; 4], tags: &[[u8; 4]], out: &mut Vec<u8>) {
    let file = SegmentFile::from_bytes(writer.into_bytes(), kind, &IDENTITY).expect("the frame is good");
    for tag in tags {
        put_counted(file.optional_section(*tag).expect("it is whole").unwrap_or_default(), out);
    }
}
