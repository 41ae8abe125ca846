//! The word tail: documents that are in no segment yet.
//!
//! A push costs the writer a copy of the text. The analysis runs when someone calls [`WordTail::catch_up_some`]
//! (normally a background thread), when a query needs the document, or when a segment is built. A push returns the
//! length of the queued text, so the writer can wake the thread or slow down; beyond [`MAX_QUEUED_LEN`] the writer
//! itself helps.
//!
//! Documents arrive in id order, so a snapshot sees a prefix: of the documents, of each posting list, and of the
//! running sum of lengths. A view is an upper bound on ids. It costs nothing, and its answers do not change when
//! documents follow.
//!
//! A tail passes its vocabulary to its successor, because a first occurrence of a word costs ten times as much as a
//! later one. Each tail numbers its own posting lists, so it takes memory for its own terms, plus four bytes for each
//! other term.
//!
//! Three locks: `queue`, held for a copy; `index` and `vocabulary`, read-locked to copy the lists of a query,
//! write-locked to analyse a few documents. Lock order: `index` first, so documents enter the index in queue order.

pub(crate) mod analysis_queue;
pub(crate) mod bulk;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use crate::bitmap::Bits;
use crate::error::{Error, Result};
use crate::words::analysis::Analyzer;
use crate::words::analysis::stems::Stems;
use crate::words::analysis::vocabulary::Vocabulary;
use crate::words::postings::StoredU32;
use crate::words::postings::encoded::EncodedList;
use crate::words::postings::posting_builder::PostingBuilder;
use crate::words::postings::{ONCE, Posting};
use crate::words::query::WordQuery;
use crate::words::segment::writer::{Builder, InMemory};
use crate::words::tail::analysis_queue::Batch;

/// A push helps with the analysis while the queue holds more than this many bytes of text.
pub const MAX_QUEUED_LEN: usize = 16 << 20;

/// The largest weight of a piece of a document.
pub const MAX_WEIGHT: f32 = 64.0;

/// An appendable inverted index, shared by one writer and any number of readers.
#[derive(Debug)]
pub struct WordTail {
    analyzer: Analyzer,
    vocabulary: Arc<RwLock<Vocabulary>>,
    queue: Mutex<AnalysisQueue>,
    index: RwLock<TailIndex>,
    /// The index's `byte_len`, readable without its lock.
    analysed_len: AtomicUsize,
}

#[derive(Debug, Default)]
struct AnalysisQueue {
    /// Queued documents; all batches but the last are full.
    batches: VecDeque<Batch>,
    /// An emptied batch for reuse.
    spare: Option<Batch>,
    text_len: usize,
    /// The newest document pushed.
    last: Option<u32>,
    /// The number of documents pushed.
    pushed: usize,
}

impl AnalysisQueue {
    /// The batch that takes the next document.
    fn open(&mut self) -> &mut Batch {
        if self.batches.back().is_none_or(Batch::is_full) {
            let fresh = self.spare.take();
            let fresh = fresh.or_else(|| self.batches.back().map(Batch::like)).unwrap_or_default();
            self.batches.push_back(fresh);
        }
        let last = self.batches.len() - 1;
        &mut self.batches[last]
    }
}

/// The analysed documents.
#[derive(Debug)]
pub(crate) struct TailIndex {
    /// The postings of the terms.
    lists: PostingBuilder,
    /// The list of each term, by its number in the vocabulary; [`NONE`] without a list.
    list_of: Vec<u32>,
    /// Scratch: the terms of the current text.
    terms: Vec<u32>,
    /// Growth of the vocabulary in bytes.
    terms_len: usize,
    ids: Vec<StoredU32>,
    doc_lengths: Vec<StoredU32>,
    /// The total length of the first `i` documents.
    sums: Vec<u64>,
}

/// Lists encoded between the prefetch of a list and its use.
const AHEAD: usize = 8;

/// Sentinel: no list.
const NONE: u32 = u32::MAX;

/// Terms and their lists, copied from a vocabulary that may grow meanwhile.
struct Terms {
    text: Vec<u8>,
    /// First eight bytes (which distinguish most terms), offset in the text, length, and list.
    entries: Vec<(u64, usize, usize, u32)>,
}

impl WordTail {
    /// An empty tail.
    pub fn new(analyzer: Analyzer) -> Self {
        let vocabulary = Vocabulary::new(analyzer, Stems::new(analyzer.stemming()));
        Self::with(analyzer, Arc::new(RwLock::new(vocabulary)))
    }

    /// An empty successor that inherits the vocabulary.
    #[must_use]
    pub fn next(&self) -> Self {
        let vocabulary = self.vocabulary();
        let afresh = vocabulary.is_too_large().then(|| Arc::new(RwLock::new(vocabulary.afresh())));
        drop(vocabulary);
        Self::with(self.analyzer, afresh.unwrap_or_else(|| Arc::clone(&self.vocabulary)))
    }

    fn with(analyzer: Analyzer, vocabulary: Arc<RwLock<Vocabulary>>) -> Self {
        let index = TailIndex {
            lists: PostingBuilder::default(),
            list_of: Vec::new(),
            terms: Vec::new(),
            terms_len: 0,
            ids: Vec::new(),
            doc_lengths: Vec::new(),
            sums: vec![0],
        };
        let (queue, index) = (Mutex::default(), RwLock::new(index));
        Self { analyzer, vocabulary, queue, index, analysed_len: AtomicUsize::new(0) }
    }

    /// The analyser of its documents.
    pub fn analyzer(&self) -> Analyzer {
        self.analyzer
    }

    /// Adds a document, given as pieces of text with weights. A piece counts as if it occurred *weight* times,
    /// in term frequencies and in length alike (the simple BM25F of Robertson, Zaragoza and Taylor, 2004); weights are
    /// rounded to sixteenths, and pieces of weight 0 are left out.
    ///
    /// # Errors
    /// [`Error::IdOrder`] if `id` does not exceed the previous id.
    ///
    /// Returns the length of the queued text in bytes.
    pub fn push(&self, id: u32, pieces: &[(&str, f32)]) -> Result<usize> {
        let pieces = pieces.iter().map(|(text, weight)| (*text, sixteenths(*weight)));
        let mut queue = self.queue();
        if let Some(previous) = queue.last.filter(|last| *last >= id) {
            return Err(Error::IdOrder { previous, next: id });
        }
        queue.last = Some(id);
        queue.pushed += 1;
        let batch = queue.open();
        let before = batch.text_len();
        batch.push(id, pieces.filter(|(_, weight)| *weight > 0));
        queue.text_len += batch.text_len() - before;
        let mut waiting = queue.text_len;
        drop(queue);
        while waiting > MAX_QUEUED_LEN {
            self.catch_up_some();
            waiting = self.queue().text_len;
        }
        Ok(waiting)
    }

    /// The length of the queued text in bytes.
    pub fn queued_len(&self) -> usize {
        self.queue().text_len
    }

    /// The number of documents pushed.
    pub fn document_count(&self) -> usize {
        self.queue().pushed
    }

    /// The newest document.
    pub fn last_id(&self) -> Option<u32> {
        self.queue().last
    }

    /// The approximate memory of the tail in bytes.
    pub fn byte_len(&self) -> usize {
        let queued = {
            let queue = self.queue();
            let documents: usize = queue.batches.iter().map(Batch::len).sum();
            queue.text_len + documents * QUEUED_BYTES
        };
        queued + self.analysed_len.load(Ordering::Relaxed)
    }

    /// Analyses all queued documents.
    pub fn catch_up(&self) {
        while self.catch_up_some() {}
    }

    /// Analyses one batch of queued documents; returns whether there are more.
    pub fn catch_up_some(&self) -> bool {
        let mut index = self.index.write().expect("an analysis does not panic");
        let Some(batch) = self.queue().batches.pop_front() else { return false };
        let mut vocabulary = self.vocabulary.write().expect("an analysis does not panic");
        let len_before = vocabulary.byte_len();
        batch.documents().for_each(|(id, pieces)| index.add(id, pieces, &mut vocabulary));
        index.terms_len += vocabulary.byte_len() - len_before;
        drop(vocabulary);
        self.analysed_len.store(index.byte_len(), Ordering::Relaxed);
        // Text counts as queued until it counts as indexed, so that memory accounting has no gap.
        let mut queue = self.queue();
        queue.text_len -= batch.text_len();
        queue.spare = batch.emptied();
        !queue.batches.is_empty()
    }

    /// Builds a segment of the documents below `bound` that are in `keep`, or of all if it is `None`.
    ///
    /// Analyses queued documents first. The tail itself does not change, so snapshots may continue to read it. Later
    /// pushes belong in another tail.
    ///
    /// # Errors
    /// [`Error::TooMany`] beyond the limits of a segment.
    pub fn build(&self, bound: u32, keep: Option<&Bits>, identity: FileIdentity) -> Result<SegmentFileWriter> {
        let index = self.index_below(bound);
        let terms = index.terms(&self.vocabulary());
        index.build(self.analyzer, &terms, bound, keep, identity)
    }

    /// Removes and returns all documents, unless some are analysed already.
    pub(crate) fn take_queued(&mut self) -> Option<VecDeque<Batch>> {
        let Self { index, queue, .. } = self;
        let index = index.get_mut().expect("an analysis does not panic");
        let queue = queue.get_mut().expect("queueing does not panic");
        index.ids.is_empty().then(|| std::mem::take(&mut queue.batches))
    }

    /// The index, after analysing every document below `bound`.
    pub(crate) fn index_below(&self, bound: u32) -> RwLockReadGuard<'_, TailIndex> {
        let waits = || self.queue().batches.front().and_then(Batch::first_id).is_some_and(|id| id < bound);
        while waits() {
            self.catch_up_some();
        }
        self.read()
    }

    /// The postings of the query's terms in the first `count` documents.
    pub(crate) fn lists(&self, index: &TailIndex, query: &WordQuery, count: usize) -> Vec<Option<Vec<Posting>>> {
        let vocabulary = self.vocabulary();
        let numbers: Vec<Option<u32>> = query.terms().iter().map(|term| vocabulary.number(&term.key)).collect();
        drop(vocabulary);
        numbers.into_iter().map(|number| index.postings(number?, count)).collect()
    }

    /// The terms of its documents that begin with `prefix`, in any order.
    pub(crate) fn terms_with_prefix(&self, prefix: &str) -> Vec<String> {
        self.catch_up();
        let index = self.read();
        let vocabulary = self.vocabulary();
        let is_used = |number: u32| index.list_of.get(number as usize).is_some_and(|list| *list != NONE);
        let terms = vocabulary.terms().filter(|(key, number)| key.starts_with(prefix) && is_used(*number));
        terms.map(|(key, _)| key.to_owned()).collect()
    }

    fn vocabulary(&self) -> RwLockReadGuard<'_, Vocabulary> {
        self.vocabulary.read().expect("an analysis does not panic")
    }

    fn queue(&self) -> MutexGuard<'_, AnalysisQueue> {
        self.queue.lock().expect("queueing does not panic")
    }

    fn read(&self) -> RwLockReadGuard<'_, TailIndex> {
        self.index.read().expect("an analysis does not panic")
    }
}

impl TailIndex {
    /// The number of documents below `bound`.
    pub(crate) fn count_below(&self, bound: u32) -> usize {
        self.ids.partition_point(|id| u32::from_le_bytes(*id) < bound)
    }

    /// Ids and lengths of the first `count` documents.
    pub(crate) fn documents(&self, count: usize) -> (&[StoredU32], &[StoredU32]) {
        (&self.ids[..count], &self.doc_lengths[..count])
    }

    /// The total length of the first `count` documents.
    pub(crate) fn total_len_of_first(&self, count: usize) -> u64 {
        self.sums[count]
    }

    /// The postings of the term in the first `count` documents, if any.
    fn postings(&self, number: u32, count: usize) -> Option<Vec<Posting>> {
        let list = *self.list_of.get(number as usize)?;
        let postings = self.lists.postings(list, count as u32);
        (!postings.is_empty()).then_some(postings)
    }

    fn add<'t>(&mut self, id: u32, pieces: impl Iterator<Item = (&'t str, u32)>, vocabulary: &mut Vocabulary) {
        let Self { lists, list_of, terms, .. } = self;
        let local = self.ids.len() as u32;
        let mut len = 0u32;
        for (text, weight) in pieces {
            terms.clear();
            let words = vocabulary.number_terms(text, |number| terms.push(number));
            if list_of.len() < vocabulary.term_count() {
                list_of.resize(vocabulary.term_count(), NONE);
            }
            // Prefetching all lists first overlaps their cache misses.
            for term in terms.iter_mut() {
                let list = &mut list_of[*term as usize];
                if *list == NONE {
                    *list = lists.add_list();
                }
                *term = *list;
                lists.prefetch(*list);
            }
            terms.iter().for_each(|list| lists.add(*list, local, weight));
            len = len.saturating_add(words.saturating_mul(weight));
        }
        self.ids.push(id.to_le_bytes());
        self.doc_lengths.push(len.to_le_bytes());
        self.sums.push(self.sums[local as usize] + u64::from(len));
    }

    fn byte_len(&self) -> usize {
        let list_of = self.list_of.capacity() * size_of::<u32>();
        self.terms_len + list_of + self.lists.byte_len() + self.ids.len() * DOCUMENT_BYTES
    }

    /// The terms that have lists.
    fn terms(&self, vocabulary: &Vocabulary) -> Terms {
        let mut terms = Terms { text: Vec::new(), entries: Vec::with_capacity(self.lists.len()) };
        for (key, number) in vocabulary.terms() {
            if let Some(list) = self.list_of.get(number as usize).filter(|list| **list != NONE) {
                let key = key.as_bytes();
                let mut first = [0; 8];
                let start = terms.text.len();
                terms.text.extend_from_slice(key);
                first.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
                terms.entries.push((u64::from_be_bytes(first), start, key.len(), *list));
            }
        }
        terms
    }

    fn build(
        &self,
        analyzer: Analyzer,
        terms: &Terms,
        bound: u32,
        keep: Option<&Bits>,
        identity: FileIdentity,
    ) -> Result<SegmentFileWriter> {
        let count = self.count_below(bound);
        let kept = |id: &StoredU32| keep.is_none_or(|keep| keep.contains(u32::from_le_bytes(*id)));
        let (mut ids, mut doc_lengths) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut places = Vec::with_capacity(count);
        for (id, len) in self.ids[..count].iter().zip(&self.doc_lengths) {
            places.push(kept(id).then_some(ids.len() as u32));
            if kept(id) {
                ids.push(*id);
                doc_lengths.push(*len);
            }
        }
        let mut builder = Builder::new(InMemory::default(), analyzer.id(), &ids, doc_lengths)?;
        drop(ids);
        let all = keep.is_none() && count == self.ids.len();
        let mut encoded = EncodedList::default();
        let terms = terms.sorted();
        for (i, (key, list)) in terms.iter().enumerate() {
            // Lists are scattered in memory: the next ones are prefetched while one is encoded.
            if let Some((_, list)) = terms.get(i + 2 * AHEAD) {
                self.lists.prefetch(*list);
            }
            if let Some((_, list)) = terms.get(i + AHEAD) {
                self.lists.prefetch_bytes(*list);
            }
            if all {
                encoded.set_encoded(builder.doc_lengths(), |bytes| self.lists.encode_into(*list, bytes))?;
            } else {
                let mut postings = self.lists.postings(*list, count as u32);
                if keep.is_some() {
                    postings.retain_mut(|posting| {
                        let place = places[posting.local as usize];
                        posting.local = place.unwrap_or_default();
                        place.is_some()
                    });
                }
                encoded.set(&postings, builder.doc_lengths());
            }
            builder.term(key, &encoded)?;
        }
        Ok(builder.finish()?.into_file(identity))
    }
}

impl Terms {
    /// The terms in order with their lists.
    fn sorted(&self) -> Vec<(&[u8], u32)> {
        let key = |start: usize, len: usize| self.text.get(start..start + len).unwrap_or_default();
        let mut entries = self.entries.clone();
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1, a.2).cmp(key(b.1, b.2))));
        entries.into_iter().map(|(_, start, len, list)| (key(start, len), list)).collect()
    }
}

/// Memory per document besides its postings.
const DOCUMENT_BYTES: usize = 16;

/// Approximate memory per queued document besides its text.
const QUEUED_BYTES: usize = 32;

fn sixteenths(weight: f32) -> u32 {
    // A NaN becomes 0.
    (weight.clamp(0.0, MAX_WEIGHT) * ONCE as f32).round() as u32
}
