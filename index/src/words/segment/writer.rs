//! Writes a word segment term by term, in memory or as a stream to a file.
//!
//! Both outputs get the same bytes. Sections in memory grow as needed; in a file each section has a fixed place, so
//! their lengths are counted beforehand ([`Lengths`]).

use std::path::Path;

use holotype_storage::log::Head as Origin;
use holotype_storage::segment_file::{FileIdentity, SegmentFileStream, SegmentFileWriter};
use holotype_storage::vfs::Vfs;

use crate::error::{Error, Result};
use crate::words::analysis::AnalyzerId;
use crate::words::postings::encoded::EncodedList;
use crate::words::postings::{BLOCK_ENTRY_LEN, BLOCK_LEN};
use crate::words::postings::{StoredU32, TERM_LEN};
use crate::words::segment::{Entry, Head, SECTIONS, Section, VERSION, WORD_SEGMENT_KIND, sum};

/// The destination of a segment's sections.
pub(crate) trait Output {
    /// Adds bytes to a section.
    fn put(&mut self, section: Section, bytes: &[u8]) -> Result<()>;
}

/// Sections in memory.
#[derive(Debug, Default)]
pub(crate) struct InMemory([Vec<u8>; SECTIONS.len()]);

impl InMemory {
    /// The sections as a file.
    pub(crate) fn into_file(self, identity: FileIdentity) -> SegmentFileWriter {
        let mut file = SegmentFileWriter::new(WORD_SEGMENT_KIND, VERSION, identity);
        for (tag, bytes) in SECTIONS.into_iter().zip(self.0) {
            file.section(tag, bytes);
        }
        file
    }
}

impl Output for InMemory {
    fn put(&mut self, section: Section, bytes: &[u8]) -> Result<()> {
        self.0[section as usize].extend_from_slice(bytes);
        Ok(())
    }
}

impl Output for SegmentFileStream<'_> {
    fn put(&mut self, section: Section, bytes: &[u8]) -> Result<()> {
        Ok(self.append(section as usize, bytes)?)
    }
}

/// The lengths of a segment's sections, counted in advance.
#[derive(Debug)]
pub(crate) struct Lengths {
    documents: usize,
    terms: u64,
    text: u64,
    blocks: u64,
}

impl Lengths {
    /// The lengths for this many documents, without terms.
    pub(crate) fn of_documents(documents: usize) -> Self {
        Self { documents, terms: 0, text: 0, blocks: 0 }
    }

    /// Counts a term with this many postings.
    pub(crate) fn add(&mut self, key: &[u8], postings: u64) {
        if postings > 0 {
            self.terms += 1;
            self.text += key.len() as u64;
            self.blocks += block_entries(postings);
        }
    }

    /// Creates a file with sections of these lengths.
    ///
    /// # Errors
    /// [`Error::TooMany`] past the limits of a segment, and of the disk.
    pub(crate) fn create<'v>(
        &self,
        vfs: &'v dyn Vfs,
        path: &Path,
        identity: FileIdentity,
        origin: Option<Origin>,
    ) -> Result<SegmentFileStream<'v>> {
        check_limits(self.text, self.blocks)?;
        let documents = size_of::<StoredU32>() as u64 * self.documents as u64;
        let len = |section: Section| match section {
            Section::Head => Some(Head::LEN as u64),
            Section::Ids | Section::Lengths => Some(documents),
            Section::Terms => Some(TERM_LEN as u64 * (self.terms + 1)),
            Section::Text => Some(self.text),
            Section::Blocks => Some(BLOCK_ENTRY_LEN as u64 * self.blocks),
            Section::Postings => None,
        };
        let sections = Section::ALL.map(|section| (SECTIONS[section as usize], len(section)));
        Ok(SegmentFileStream::create(vfs, path, (WORD_SEGMENT_KIND, VERSION), identity, origin, &sections)?)
    }
}

/// The number of block entries of a list with this many postings.
fn block_entries(postings: u64) -> u64 {
    if postings > BLOCK_LEN as u64 { postings.div_ceil(BLOCK_LEN as u64) } else { 0 }
}

/// Fails if a value does not fit into the 32 bits of a dictionary entry.
fn check_limits(text: u64, blocks: u64) -> Result<()> {
    let max = u32::MAX as usize;
    match [text, blocks].into_iter().find(|found| *found > max as u64) {
        Some(found) => Err(Error::TooMany { found: usize::try_from(found).unwrap_or(usize::MAX), max }),
        None => Ok(()),
    }
}

/// Writes a segment to an output.
#[derive(Debug)]
pub(crate) struct Builder<O> {
    output: O,
    analyzer: AnalyzerId,
    doc_lengths: Vec<StoredU32>,
    terms: u32,
    postings: u64,
    /// The lengths of the sections so far.
    list_len: u64,
    text_len: u64,
    blocks: u64,
}

impl<O: Output> Builder<O> {
    /// Begins a segment over these documents, whose ids ascend.
    ///
    /// # Errors
    /// Of the output.
    pub(crate) fn new(
        mut output: O,
        analyzer: AnalyzerId,
        ids: &[StoredU32],
        doc_lengths: Vec<StoredU32>,
    ) -> Result<Self> {
        debug_assert_eq!(ids.len(), doc_lengths.len());
        output.put(Section::Ids, ids.as_flattened())?;
        output.put(Section::Lengths, doc_lengths.as_flattened())?;
        let (terms, postings, list_len, text_len, blocks) = (0, 0, 0, 0, 0);
        Ok(Self { output, analyzer, doc_lengths, terms, postings, list_len, text_len, blocks })
    }

    /// The lengths of its documents.
    pub(crate) fn doc_lengths(&self) -> &[StoredU32] {
        &self.doc_lengths
    }

    /// Adds a term, greater than the one before, with its postings; skips a term without postings.
    ///
    /// # Errors
    /// Of the output.
    pub(crate) fn term(&mut self, key: &[u8], list: &EncodedList) -> Result<()> {
        if list.count() == 0 {
            return Ok(());
        }
        self.entry(list.count())?;
        self.output.put(Section::Text, key)?;
        for block in list.blocks() {
            self.output.put(Section::Blocks, &block.encode())?;
        }
        self.output.put(Section::Postings, list.bytes())?;
        self.terms += 1;
        self.postings += u64::from(list.count());
        self.list_len += list.bytes().len() as u64;
        self.text_len += key.len() as u64;
        self.blocks += list.blocks().len() as u64;
        Ok(())
    }

    /// Finishes the segment and returns the output.
    ///
    /// # Errors
    /// [`Error::TooMany`] if the terms' texts or the block entries exceed 32-bit offsets; errors of the output.
    pub(crate) fn finish(mut self) -> Result<O> {
        check_limits(self.text_len, self.blocks)?;
        self.entry(0)?;
        let head = Head {
            analyzer: self.analyzer,
            documents: self.doc_lengths.len() as u32,
            terms: self.terms,
            postings: self.postings,
            total_len: sum(&self.doc_lengths),
        };
        self.output.put(Section::Head, &head.encode())?;
        Ok(self.output)
    }

    fn entry(&mut self, count: u32) -> Result<()> {
        let entry = Entry { list: self.list_len, text: self.text_len as u32, block: self.blocks as u32, count };
        self.output.put(Section::Terms, &entry.encode())
    }
}
