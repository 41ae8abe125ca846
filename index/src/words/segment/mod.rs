//! The word segment, `.wseg`: an immutable inverted index over some documents.
//!
//! The frame is `storage::segment_file`, of kind `WSEG`. All integers are little-endian. Sections:
//!
//! | tag | content |
//! |---|---|
//! | `HEAD` | 32 bytes, below |
//! | `IDS ` | the documents' ids, u32 each, ascending; a document's index here is its local id |
//! | `LENS` | the documents' lengths in sixteenths of a word, u32 each |
//! | `TERM` | the term dictionary: 20 bytes per term, below, in the order of the terms' bytes, and a closing entry |
//! | `TEXT` | the terms' bytes, one after the other |
//! | `BLKS` | block entries, 16 bytes each (`postings`), of the lists with more than 128 postings |
//! | `POST` | the posting lists, one after the other |
//!
//! `HEAD`:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | analyser id |
//! | 4 | 4 | document count |
//! | 8 | 4 | term count |
//! | 12 | 4 | zero |
//! | 16 | 8 | posting count |
//! | 24 | 8 | total length in sixteenths |
//!
//! An entry of `TERM`. It ends at the start of the next entry's data, so a closing entry follows the last:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | offset of the list in `POST` |
//! | 8 | 4 | offset of the text in `TEXT` |
//! | 12 | 4 | number of the first block entry in `BLKS` |
//! | 16 | 4 | posting count, which is the number of documents with the term (0 in the closing entry) |
//!
//! Invariants, all checked in one pass over everything but `POST`, whose length is checked at its first use and whose
//! content is checked as it is decoded. A segment of up to 1 MiB is checked when it is opened, a larger one at its
//! first query, so that the cost of opening a database does not depend on its size:
//! 1. Ids ascend strictly; the lengths add up to the total.
//! 2. Terms ascend strictly, are not empty, and have between 1 and document count postings.
//! 3. Lists, texts and block entries are contiguous and fill their sections; a list of more than 128 postings has one
//!    block entry per 128, others have none.
//! 4. In a list's block entries offsets and last local ids ascend, inside the list and the documents.
//!
//! A fault is remembered: from then on the segment is *damaged*, and an index that skips damage leaves it out.
//!
//! [`WordSegment::verify`] checks every byte, and compares the bounds in block entries with the postings.
//!
//! A dictionary look-up is a binary search in the mapping: about 20 comparisons for a million terms.

pub(crate) mod merge;
pub(crate) mod writer;

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use holotype_storage::segment_file::SegmentFile;

use crate::error::{Error, Result};
use crate::words::analysis::AnalyzerId;
use crate::words::postings::doc_lengths::DocLengths;
use crate::words::postings::{BLOCK_ENTRY_LEN, BLOCK_LEN, Block, List, Posting, StoredList, StoredU32, TERM_LEN};

/// The kind of a word segment's file.
pub const WORD_SEGMENT_KIND: [u8; 4] = *b"WSEG";
pub(crate) const VERSION: u32 = 1;

const HEAD: [u8; 4] = *b"HEAD";
const IDS: [u8; 4] = *b"IDS ";
const LENS: [u8; 4] = *b"LENS";
const TERM: [u8; 4] = *b"TERM";
const TEXT: [u8; 4] = *b"TEXT";
const BLKS: [u8; 4] = *b"BLKS";
const POST: [u8; 4] = *b"POST";

/// The sections in file order.
pub(crate) const SECTIONS: [[u8; 4]; 7] = [HEAD, IDS, LENS, TERM, TEXT, BLKS, POST];

/// A section, by its number in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Head,
    Ids,
    Lengths,
    Terms,
    Text,
    Blocks,
    Postings,
}

impl Section {
    pub(crate) const ALL: [Self; SECTIONS.len()] =
        [Self::Head, Self::Ids, Self::Lengths, Self::Terms, Self::Text, Self::Blocks, Self::Postings];
}

const HEAD_ANALYZER: usize = 0;
const HEAD_DOCUMENTS: usize = HEAD_ANALYZER + 4;
const HEAD_TERMS: usize = HEAD_DOCUMENTS + 4;
const HEAD_ZERO: usize = HEAD_TERMS + 4;
const HEAD_POSTINGS: usize = HEAD_ZERO + 4;
const HEAD_TOTAL_LEN: usize = HEAD_POSTINGS + 8;
const HEAD_LEN: usize = HEAD_TOTAL_LEN + 8;
const _: () = assert!(HEAD_LEN == 32);

const TERM_LIST: usize = 0;
const TERM_TEXT: usize = TERM_LIST + 8;
const TERM_BLOCK: usize = TERM_TEXT + 4;
const TERM_COUNT: usize = TERM_BLOCK + 4;
const _: () = assert!(TERM_LEN == TERM_COUNT + 4);

/// Documents per running sum of lengths kept in memory.
const SUM_STEP: usize = 128;

/// Files up to this length are checked when opened.
const CHECKED_WHEN_OPENED: u64 = 1 << 20;

/// An open word segment.
#[derive(Debug)]
pub struct WordSegment {
    file: SegmentFile,
    analyzer: AnalyzerId,
    documents: u32,
    terms: u32,
    postings: u64,
    total_len: u64,
    /// Set once everything is checked.
    checked: OnceLock<Checked>,
    /// Set when damage is found.
    damaged: AtomicBool,
}

/// Data kept in memory for a checked segment.
#[derive(Debug)]
struct Checked {
    /// The total length of the first `i * SUM_STEP` documents.
    sums: Vec<u64>,
}

/// The content of section `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) analyzer: AnalyzerId,
    pub(crate) documents: u32,
    pub(crate) terms: u32,
    pub(crate) postings: u64,
    pub(crate) total_len: u64,
}

impl Head {
    pub(crate) const LEN: usize = HEAD_LEN;

    pub(crate) fn encode(&self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        bytes[HEAD_ANALYZER..HEAD_DOCUMENTS].copy_from_slice(&self.analyzer.0.to_le_bytes());
        bytes[HEAD_DOCUMENTS..HEAD_TERMS].copy_from_slice(&self.documents.to_le_bytes());
        bytes[HEAD_TERMS..HEAD_ZERO].copy_from_slice(&self.terms.to_le_bytes());
        bytes[HEAD_POSTINGS..HEAD_TOTAL_LEN].copy_from_slice(&self.postings.to_le_bytes());
        bytes[HEAD_TOTAL_LEN..].copy_from_slice(&self.total_len.to_le_bytes());
        bytes
    }
}

/// A dictionary entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) list: u64,
    pub(crate) text: u32,
    pub(crate) block: u32,
    pub(crate) count: u32,
}

impl Entry {
    pub(crate) fn encode(&self) -> [u8; TERM_LEN] {
        let mut bytes = [0; TERM_LEN];
        bytes[TERM_LIST..TERM_TEXT].copy_from_slice(&self.list.to_le_bytes());
        bytes[TERM_TEXT..TERM_BLOCK].copy_from_slice(&self.text.to_le_bytes());
        bytes[TERM_BLOCK..TERM_COUNT].copy_from_slice(&self.block.to_le_bytes());
        bytes[TERM_COUNT..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; TERM_LEN]) -> Self {
        Self {
            list: u64_at(bytes, TERM_LIST),
            text: u32_at(bytes, TERM_TEXT),
            block: u32_at(bytes, TERM_BLOCK),
            count: u32_at(bytes, TERM_COUNT),
        }
    }
}

/// The sections of a segment that a look-up needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup<'a> {
    terms: &'a [[u8; TERM_LEN]],
    text: &'a [u8],
    blocks: &'a [[u8; BLOCK_ENTRY_LEN]],
    postings: &'a [u8],
    documents: u32,
    damaged: &'a AtomicBool,
}

impl WordSegment {
    /// Opens a segment. A small one is checked at once, a large one at its first query.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or a storage error.
    pub fn open(file: SegmentFile) -> Result<Self> {
        file.check_version(VERSION)?;
        let head = file.section(HEAD)?;
        let head: &[u8; HEAD_LEN] = head
            .try_into()
            .map_err(|_| Error::corrupt("HEAD", 0, format!("{} bytes instead of {HEAD_LEN}", head.len())))?;
        let segment = Self {
            analyzer: AnalyzerId(u32_at(head, HEAD_ANALYZER)),
            documents: u32_at(head, HEAD_DOCUMENTS),
            terms: u32_at(head, HEAD_TERMS),
            postings: u64_at(head, HEAD_POSTINGS),
            total_len: u64_at(head, HEAD_TOTAL_LEN),
            checked: OnceLock::new(),
            damaged: AtomicBool::new(false),
            file,
        };
        if segment.file_len() <= CHECKED_WHEN_OPENED {
            segment.check()?;
        }
        Ok(segment)
    }

    /// Checks all invariants of the module, unless already done, so that the first query need not.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or a storage error.
    pub fn check(&self) -> Result<()> {
        self.checked().map(|_| ())
    }

    /// The analyser whose terms it holds.
    pub fn analyzer(&self) -> AnalyzerId {
        self.analyzer
    }

    /// The number of documents.
    pub fn document_count(&self) -> u32 {
        self.documents
    }

    /// The number of distinct terms.
    pub fn term_count(&self) -> u32 {
        self.terms
    }

    /// The total length of its documents, in sixteenths of a word.
    pub fn total_len(&self) -> u64 {
        self.total_len
    }

    /// The ids of its documents, ascending.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn ids(&self) -> Result<impl ExactSizeIterator<Item = u32> + '_> {
        Ok(self.stored_ids()?.iter().map(|id| u32::from_le_bytes(*id)))
    }

    /// The same, checking only the ids.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn stated_ids(&self) -> Result<impl ExactSizeIterator<Item = u32> + '_> {
        Ok(self.numbers(IDS, "IDS ")?.iter().map(|id| u32::from_le_bytes(*id)))
    }

    /// Verifies every byte, including postings.
    ///
    /// # Errors
    /// Storage errors, or [`Error::Corrupt`].
    pub fn verify(&self) -> Result<()> {
        self.noted(self.file.verify().map_err(Error::from))?;
        self.noted(self.check_documents())?;
        self.noted(self.check_terms())?;
        let (lookup, doc_lengths) = (self.lookup()?, self.stored_lens()?);
        let mut spare = Vec::new();
        let mut reader = self.file.streaming_reader();
        for term in 0..self.terms {
            if let Some((key, list)) = lookup.term(term) {
                reader.advance(list.stored_len(key));
                self.noted(self.verify_list(&List::StoredList(list), doc_lengths, &mut spare))?;
            }
        }
        Ok(())
    }

    /// Decodes a list and compares its block entries with its postings.
    fn verify_list(&self, list: &List<'_>, doc_lengths: &[StoredU32], spare: &mut Vec<Posting>) -> Result<()> {
        for i in 0..list.block_count() {
            let block = list.block(i, spare)?;
            let Some(most) = list.block_max(i) else { continue };
            let frequency = block.iter().map(|posting| posting.frequency).max();
            let doc_lengths = block.iter().filter_map(|posting| doc_lengths.get(posting.local as usize));
            let found = (frequency.unwrap_or(0), doc_lengths.map(|len| u32::from_le_bytes(*len)).min().unwrap_or(0));
            if found != most {
                let what = format!(
                    "block {i} of a list has {found:?} as largest frequency and shortest document, not {most:?}"
                );
                return Err(Error::corrupt("BLKS", 0, what));
            }
        }
        Ok(())
    }

    /// Returns true if any query so far met damage.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed) || self.file.is_cut()
    }

    /// Its file.
    pub fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// The length of the file.
    pub fn file_len(&self) -> u64 {
        self.file.file_len()
    }

    pub(crate) fn stored_ids(&self) -> Result<&[StoredU32]> {
        self.check()?;
        self.numbers(IDS, "IDS ")
    }

    /// The lengths of the first `count` documents.
    pub(crate) fn doc_lengths(&self, count: usize) -> Result<DocLengths<'_>> {
        let doc_lengths = self.stored_lens()?.get(..count).unwrap_or_default();
        Ok(DocLengths(Cow::Borrowed(doc_lengths)))
    }

    pub(crate) fn stored_lens(&self) -> Result<&[StoredU32]> {
        self.check()?;
        self.numbers(LENS, "LENS")
    }

    /// The total length of the first `count` documents.
    pub(crate) fn total_len_of_first(&self, count: usize) -> Result<u64> {
        let whole = count / SUM_STEP;
        let rest = self.stored_lens()?.get(whole * SUM_STEP..count).unwrap_or_default();
        Ok(self.checked()?.sums.get(whole).copied().unwrap_or(self.total_len) + sum(rest))
    }

    pub(crate) fn lookup(&self) -> Result<Lookup<'_>> {
        self.check()?;
        self.noted(self.checked_lookup())
    }

    fn checked_lookup(&self) -> Result<Lookup<'_>> {
        let (terms, _) = self.file.section(TERM)?.as_chunks();
        let (blocks, _) = self.file.section(BLKS)?.as_chunks();
        let (text, postings) = (self.file.section(TEXT)?, self.file.section(POST)?);
        let end = terms.last().map_or(0, |entry| Entry::decode(entry).list);
        if end != postings.len() as u64 {
            let what = format!("{} bytes instead of {end}", postings.len());
            return Err(Error::corrupt("POST", postings.len(), what));
        }
        Ok(Lookup { terms, text, blocks, postings, documents: self.documents, damaged: &self.damaged })
    }

    fn checked(&self) -> Result<&Checked> {
        if let Some(checked) = self.checked.get() {
            return Ok(checked);
        }
        let sums = self.noted(self.check_documents())?;
        self.noted(self.check_terms())?;
        if self.file_len() > CHECKED_WHEN_OPENED {
            self.file.advise_dont_need();
        }
        Ok(self.checked.get_or_init(|| Checked { sums }))
    }

    /// Records an error as damage: the file is mapped, so only its content can be wrong.
    fn noted<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.damaged.store(true, Ordering::Relaxed);
        }
        result
    }

    fn numbers(&self, tag: [u8; 4], name: &'static str) -> Result<&[StoredU32]> {
        let bytes = self.file.section(tag)?;
        let (numbers, rest) = bytes.as_chunks();
        if numbers.len() != self.documents as usize || !rest.is_empty() {
            let what = format!("{} bytes for {} documents", bytes.len(), self.documents);
            return Err(Error::corrupt(name, bytes.len(), what));
        }
        Ok(numbers)
    }

    /// Checks ids and lengths; returns the running sums of the lengths.
    fn check_documents(&self) -> Result<Vec<u64>> {
        let ids = self.numbers(IDS, "IDS ")?;
        let falls = ids.windows(2).position(|pair| match pair {
            [before, after] => u32::from_le_bytes(*before) >= u32::from_le_bytes(*after),
            _ => false,
        });
        if let Some(at) = falls {
            return Err(Error::corrupt("IDS ", at * 4, "an id does not exceed the one before it"));
        }
        let doc_lengths = self.numbers(LENS, "LENS")?;
        let mut total = 0;
        let mut sums = Vec::with_capacity(doc_lengths.len() / SUM_STEP + 1);
        for step in doc_lengths.chunks(SUM_STEP) {
            sums.push(total);
            total += sum(step);
        }
        if doc_lengths.len().is_multiple_of(SUM_STEP) {
            sums.push(total);
        }
        if total != self.total_len {
            let what = format!("the lengths add up to {total}, not {}", self.total_len);
            return Err(Error::corrupt("LENS", 0, what));
        }
        Ok(sums)
    }

    fn check_terms(&self) -> Result<()> {
        let terms = self.file.section(TERM)?;
        let (entries, rest) = terms.as_chunks::<TERM_LEN>();
        if entries.len() as u64 != u64::from(self.terms) + 1 || !rest.is_empty() {
            let what = format!("{} bytes for {} terms", terms.len(), self.terms);
            return Err(Error::corrupt("TERM", terms.len(), what));
        }
        let text = self.file.section(TEXT)?;
        let (blocks, rest) = self.file.section(BLKS)?.as_chunks::<BLOCK_ENTRY_LEN>();
        let mut before: &[u8] = &[];
        let mut postings = 0;
        for (i, pair) in entries.windows(2).enumerate() {
            let [entry, next] = pair else { continue };
            let (entry, next) = (Entry::decode(entry), Entry::decode(next));
            let key = text.get(entry.text as usize..next.text as usize);
            check_term(&entry, &next, blocks, self.documents)
                .and(key.filter(|key| *key > before).ok_or("its text is out of bounds or out of order"))
                .map_err(|what| Error::corrupt("TERM", i * TERM_LEN, what))?;
            before = key.unwrap_or_default();
            postings += u64::from(entry.count);
        }
        let first =
            entries.first().map(Entry::decode).is_some_and(|entry| (entry.list, entry.text, entry.block) == (0, 0, 0));
        let last = entries.last().map(Entry::decode).is_some_and(|entry| {
            (entry.text as usize, entry.block as usize, entry.count) == (text.len(), blocks.len(), 0) && rest.is_empty()
        });
        if !first || !last {
            return Err(Error::corrupt("TERM", 0, "the terms do not fill their sections"));
        }
        if postings != self.postings {
            let what = format!("{postings} postings instead of {}", self.postings);
            return Err(Error::corrupt("HEAD", HEAD_POSTINGS, what));
        }
        Ok(())
    }
}

impl<'a> Lookup<'a> {
    /// The posting list of the term, if the segment has it.
    pub(crate) fn find(&self, key: &str) -> Option<StoredList<'a>> {
        let (found, list) = self.term(self.lower_bound(key)?)?;
        (found == key.as_bytes()).then_some(list)
    }

    /// The terms that begin with `prefix`, ascending.
    pub(crate) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = String> {
        let first = self.lower_bound(prefix).unwrap_or(self.term_count());
        let terms = (first..self.term_count()).map_while(|i| self.term(i)).map(|(term, _)| term);
        let prefix = prefix.as_bytes().to_vec();
        terms.take_while(move |term| term.starts_with(&prefix)).map(|term| String::from_utf8_lossy(term).into_owned())
    }

    fn term_count(&self) -> u32 {
        self.terms.len().saturating_sub(1) as u32
    }

    /// The index of the first term that is not below `key`.
    fn lower_bound(&self, key: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.term_count());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.term(middle)?.0 < key.as_bytes() {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Some(low)
    }

    /// The term at index `i` and its postings.
    pub(crate) fn term(&self, i: u32) -> Option<(&'a [u8], StoredList<'a>)> {
        let entry = Entry::decode(self.terms.get(i as usize)?);
        let next = Entry::decode(self.terms.get(i as usize + 1)?);
        let list = StoredList {
            bytes: self.postings.get(entry.list as usize..next.list as usize)?,
            offset: entry.list as usize,
            blocks: self.blocks.get(entry.block as usize..next.block as usize)?,
            count: entry.count,
            documents: self.documents,
            damaged: self.damaged,
        };
        Some((self.text.get(entry.text as usize..next.text as usize)?, list))
    }
}

/// Checks one entry against the next and its block entries against the list.
fn check_term(
    entry: &Entry,
    next: &Entry,
    blocks: &[[u8; BLOCK_ENTRY_LEN]],
    documents: u32,
) -> std::result::Result<(), &'static str> {
    if entry.count == 0 || entry.count > documents {
        return Err("an impossible number of documents");
    }
    let list_len = next.list.checked_sub(entry.list).ok_or("its list ends before it begins")?;
    let blocks = blocks.get(entry.block as usize..next.block as usize).ok_or("its block entries are out of bounds")?;
    let wanted = match entry.count as usize {
        0..=BLOCK_LEN => 0,
        count => count.div_ceil(BLOCK_LEN),
    };
    if blocks.len() != wanted {
        return Err("a wrong number of block entries");
    }
    let mut before: Option<Block> = None;
    for block in blocks.iter().map(Block::decode) {
        let ascends = match before {
            None => block.offset == 0,
            Some(before) => block.offset > before.offset && block.last_local > before.last_local,
        };
        if !ascends || u64::from(block.offset) >= list_len || block.last_local >= documents {
            return Err("a block entry is out of bounds or out of order");
        }
        before = Some(block);
    }
    Ok(())
}

pub(crate) fn sum(numbers: &[StoredU32]) -> u64 {
    numbers.iter().map(|number| u64::from(u32::from_le_bytes(*number))).sum()
}

fn u32_at<const N: usize>(bytes: &[u8; N], offset: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(number)
}

fn u64_at<const N: usize>(bytes: &[u8; N], offset: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use holotype_storage::segment_file::FileIdentity;

    use super::*;
    use crate::words::postings::encoded::EncodedList;
    use crate::words::postings::{ONCE, Posting};
    use crate::words::segment::writer::{Builder, InMemory};

    const IDENTITY: FileIdentity = FileIdentity { database: [9; 16], generation: 1, place: 0 };

    fn built() -> Vec<u8> {
        let numbers =
            |numbers: &[u32]| -> Vec<StoredU32> { numbers.iter().map(|number| number.to_le_bytes()).collect() };
        let ids: Vec<u32> = (0..130).map(|local| 5 + 2 * local).collect();
        let mut doc_lengths = vec![ONCE; 130];
        doc_lengths[0] = 3 * ONCE;
        let analyzer = AnalyzerId(0x101);
        let mut builder = Builder::new(InMemory::default(), analyzer, &numbers(&ids), numbers(&doc_lengths)).unwrap();
        let all: Vec<Posting> = (0..130).map(|local| Posting { local, frequency: ONCE }).collect();
        let lists = [(&b"all"[..], &all[..]), (b"none", &[]), (b"one", &[Posting { local: 2, frequency: 40 }])];
        for (key, postings) in lists {
            let mut list = EncodedList::default();
            list.set(postings, builder.doc_lengths());
            builder.term(key, &list).unwrap();
        }
        builder.finish().unwrap().into_file(IDENTITY).into_bytes()
    }

    #[test]
    fn the_bytes_are_pinned() {
        let file = SegmentFile::from_bytes(built(), WORD_SEGMENT_KIND, &IDENTITY).unwrap();
        assert_eq!(file.version(), 1);
        let head = [
            1, 1, 0, 0, 130, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, // analyser, documents, terms, zero
            131, 0, 0, 0, 0, 0, 0, 0, 0x40, 8, 0, 0, 0, 0, 0, 0, // postings, total length
        ];
        assert_eq!(file.section(HEAD).unwrap(), head);
        assert_eq!(file.section(IDS).unwrap()[..8], [5, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(file.section(LENS).unwrap()[..8], [48, 0, 0, 0, 16, 0, 0, 0]);
        let terms = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 0, // all: list, text, block, count
            130, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, // one
            132, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, // the end
        ];
        assert_eq!(file.section(TERM).unwrap(), terms);
        assert_eq!(file.section(TEXT).unwrap(), b"allone");
        let blocks = [
            0, 0, 0, 0, 127, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, // offset, last local, max frequency, min length
            128, 0, 0, 0, 129, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0,
        ];
        assert_eq!(file.section(BLKS).unwrap(), blocks);
        let postings = [vec![1; 130], vec![4, 40]].concat();
        assert_eq!(file.section(POST).unwrap(), postings);
    }

    #[test]
    fn sums_of_lengths_for_every_prefix() {
        let file = SegmentFile::from_bytes(built(), WORD_SEGMENT_KIND, &IDENTITY).unwrap();
        let segment = WordSegment::open(file).unwrap();
        let doc_lengths = segment.stored_lens().unwrap();
        for count in 0..=doc_lengths.len() {
            assert_eq!(segment.total_len_of_first(count).unwrap(), sum(&doc_lengths[..count]), "{count}");
        }
    }

    #[test]
    fn terms_are_found_and_others_are_not() {
        let file = SegmentFile::from_bytes(built(), WORD_SEGMENT_KIND, &IDENTITY).unwrap();
        let segment = WordSegment::open(file).unwrap();
        let lookup = segment.lookup().unwrap();
        assert_eq!(lookup.find("all").map(|list| list.count), Some(130));
        assert_eq!(lookup.find("one").map(|list| list.count), Some(1));
        for absent in ["", "a", "alll", "none", "on", "zzz"] {
            assert!(lookup.find(absent).is_none(), "{absent}");
        }
    }
}
