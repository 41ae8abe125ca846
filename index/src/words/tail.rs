//! The word tail: documents that no segment holds yet.
//!
//! A push costs the writer a copy of the text. The analysis waits for whoever calls [`WordTail::catch_up_some`], a thread in
//! the background best, for the first query that may see the document, or for the building of the segment. The pusher is
//! told how much text waits, so that it can wake the one or slow down itself; past [`MAX_QUEUED_LEN`] it has to help.
//!
//! Documents come in the order of their ids, so that what a snapshot sees of a tail is a prefix: of the documents, of
//! every posting list, and of the running sum of the lengths. A view is a bound on the id and costs nothing; its answers
//! do not change while pushes go on.
//!
//! A tail and those that come after it have one vocabulary, for texts mostly have the words of those before: to meet a word for
//! the first time costs ten times what it costs to meet it again. A tail's lists have numbers of their own, so that it takes
//! memory for the terms of its own documents only, and four bytes for each of the others.
//!
//! Three locks: `queue`, held for a copy, and `index` and `vocabulary`, held to read for a copy of the few lists that a query
//! asks for and to write for the analysis of a few documents. Who needs more than one takes `index` first, so that queued
//! documents enter the index in order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};

use holotype_storage::segment_file::{FileIdentity, SegmentFileWriter};

use super::analyse::Analyzer;
use super::encoded::Encoded;
use super::growing::GrowingLists;
use super::postings::{ONCE, Posting};
use super::query::WordQuery;
use super::segment::Number;
use super::stems::Stems;
use super::vocabulary::Vocabulary;
use super::waiting::Batch;
use super::writer::{Builder, InMemory};
use crate::bitmap::Bits;
use crate::error::{Error, Result};

/// The pusher helps to work the queue off while it holds more than this many bytes of text.
pub const MAX_QUEUED_LEN: usize = 16 << 20;

/// The heaviest a piece of a document can be.
pub const MAX_WEIGHT: f32 = 64.0;

/// A growing inverted index, shared by one writer and any number of readers.
#[derive(Debug)]
pub struct WordTail {
    analyzer: Analyzer,
    vocabulary: Arc<RwLock<Vocabulary>>,
    queue: Mutex<Queue>,
    index: RwLock<TailIndex>,
    /// The index's `byte_len`, to be read without it.
    analysed_len: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    /// The documents that wait, all but the last of these full.
    batches: VecDeque<Batch>,
    /// One that was worked off.
    spare: Option<Batch>,
    text_len: usize,
    /// The newest document ever pushed.
    last: Option<u32>,
    /// How many were ever pushed.
    pushed: usize,
}

impl Queue {
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

/// What was analysed.
#[derive(Debug)]
pub(super) struct TailIndex {
    /// The postings of the terms.
    lists: GrowingLists,
    /// By a term's number in the vocabulary, its list; [`NONE`] where it has none yet.
    list_of: Vec<u32>,
    /// The terms of the text at hand.
    terms: Vec<u32>,
    /// What the vocabulary grew by.
    terms_len: usize,
    ids: Vec<Number>,
    lens: Vec<Number>,
    /// The total length of the first `i` documents.
    sums: Vec<u64>,
}

/// How many lists are laid down between fetching one from memory and needing it.
const AHEAD: usize = 8;

/// No list.
const NONE: u32 = u32::MAX;

/// Terms and their lists, copied out of a vocabulary that goes on growing.
struct Terms {
    text: Vec<u8>,
    /// A term's first eight bytes, by which most terms are told apart, where it stands in the text, its length and its list.
    entries: Vec<(u64, usize, usize, u32)>,
}

impl WordTail {
    /// An empty tail.
    pub fn new(analyzer: Analyzer) -> Self {
        let vocabulary = Vocabulary::new(analyzer, Stems::new(analyzer.stemming()));
        Self::with(analyzer, Arc::new(RwLock::new(vocabulary)))
    }

    /// An empty tail for what comes after this one, to which the words that were met so far are known.
    #[must_use]
    pub fn next(&self) -> Self {
        let vocabulary = self.vocabulary();
        let afresh = vocabulary.is_too_large().then(|| Arc::new(RwLock::new(vocabulary.afresh())));
        drop(vocabulary);
        Self::with(self.analyzer, afresh.unwrap_or_else(|| Arc::clone(&self.vocabulary)))
    }

    fn with(analyzer: Analyzer, vocabulary: Arc<RwLock<Vocabulary>>) -> Self {
        let index = TailIndex {
            lists: GrowingLists::default(),
            list_of: Vec::new(),
            terms: Vec::new(),
            terms_len: 0,
            ids: Vec::new(),
            lens: Vec::new(),
            sums: vec![0],
        };
        let (queue, index) = (Mutex::default(), RwLock::new(index));
        Self { analyzer, vocabulary, queue, index, analysed_len: AtomicUsize::new(0) }
    }

    /// The analyser of its documents.
    pub fn analyzer(&self) -> Analyzer {
        self.analyzer
    }

    /// Adds a document, given as pieces of text with weights. A piece counts as though it stood there *weight* times,
    /// in term frequencies and in length alike (the simple BM25F of Robertson, Zaragoza and Taylor, 2004); weights are
    /// rounded to sixteenths, and pieces of weight 0 are left out.
    ///
    /// # Errors
    /// [`Error::IdOrder`] when `id` does not exceed the id before.
    ///
    /// Returns how many bytes of text wait to be analysed.
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

    /// How many bytes of text wait to be analysed.
    pub fn queued_len(&self) -> usize {
        self.queue().text_len
    }

    /// How many documents were pushed.
    pub fn document_count(&self) -> usize {
        self.queue().pushed
    }

    /// The newest document.
    pub fn last_id(&self) -> Option<u32> {
        self.queue().last
    }

    /// About how many bytes of memory the tail takes.
    pub fn byte_len(&self) -> usize {
        let queued = {
            let queue = self.queue();
            let documents: usize = queue.batches.iter().map(Batch::len).sum();
            queue.text_len + documents * QUEUED_BYTES
        };
        queued + self.analysed_len.load(Ordering::Relaxed)
    }

    /// Analyses what is queued.
    pub fn catch_up(&self) {
        while self.catch_up_some() {}
    }

    /// Analyses a few documents of what is queued, and says whether there are more.
    pub fn catch_up_some(&self) -> bool {
        let mut index = self.index.write().expect("an analysis does not panic");
        let Some(batch) = self.queue().batches.pop_front() else { return false };
        let mut vocabulary = self.vocabulary.write().expect("an analysis does not panic");
        let len_before = vocabulary.byte_len();
        batch.documents().for_each(|(id, pieces)| index.add(id, pieces, &mut vocabulary));
        index.terms_len += vocabulary.byte_len() - len_before;
        drop(vocabulary);
        self.analysed_len.store(index.byte_len(), Ordering::Relaxed);
        // A text counts as waiting until it counts in the index, so that no memory is overlooked in between.
        let mut queue = self.queue();
        queue.text_len -= batch.text_len();
        queue.spare = batch.emptied();
        !queue.batches.is_empty()
    }

    /// The segment of the documents below `bound`, without those that `keep` leaves out.
    ///
    /// Analyses what is queued first. The tail itself does not change: a snapshot may go on reading it. Later pushes
    /// belong in another tail.
    ///
    /// # Errors
    /// [`Error::TooMany`] past the limits of a segment.
    pub fn build(&self, bound: u32, keep: Option<&Bits>, identity: FileIdentity) -> Result<SegmentFileWriter> {
        let index = self.index_below(bound);
        let terms = index.terms(&self.vocabulary());
        index.build(self.analyzer, &terms, bound, keep, identity)
    }

    /// All documents, taken out, if none was analysed yet.
    pub(super) fn take_queued(&mut self) -> Option<VecDeque<Batch>> {
        let Self { index, queue, .. } = self;
        let index = index.get_mut().expect("an analysis does not panic");
        let queue = queue.get_mut().expect("queueing does not panic");
        index.ids.is_empty().then(|| std::mem::take(&mut queue.batches))
    }

    /// The index, in which every document below `bound` has been analysed.
    pub(super) fn index_below(&self, bound: u32) -> RwLockReadGuard<'_, TailIndex> {
        let waits = || self.queue().batches.front().and_then(Batch::first_id).is_some_and(|id| id < bound);
        while waits() {
            self.catch_up_some();
        }
        self.read()
    }

    /// The first documents, those of the index, up to `count`: their postings of the query's terms.
    pub(super) fn lists(&self, index: &TailIndex, query: &WordQuery, count: usize) -> Vec<Option<Vec<Posting>>> {
        let vocabulary = self.vocabulary();
        let numbers: Vec<Option<u32>> = query.terms().iter().map(|term| vocabulary.number(&term.key)).collect();
        drop(vocabulary);
        numbers.into_iter().map(|number| index.postings(number?, count)).collect()
    }

    fn vocabulary(&self) -> RwLockReadGuard<'_, Vocabulary> {
        self.vocabulary.read().expect("an analysis does not panic")
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("queueing does not panic")
    }

    fn read(&self) -> RwLockReadGuard<'_, TailIndex> {
        self.index.read().expect("an analysis does not panic")
    }
}

impl TailIndex {
    /// How many documents are below `bound`.
    pub(super) fn count_below(&self, bound: u32) -> usize {
        self.ids.partition_point(|id| u32::from_le_bytes(*id) < bound)
    }

    /// Ids and lengths of the first `count` documents.
    pub(super) fn documents(&self, count: usize) -> (&[Number], &[Number]) {
        (&self.ids[..count], &self.lens[..count])
    }

    /// The total length of the first `count` documents.
    pub(super) fn total_len_of_first(&self, count: usize) -> u64 {
        self.sums[count]
    }

    /// The postings of the term in the first `count` documents, if there are any.
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
            // The lists are fetched side by side, and not each when the one before it is there.
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
        self.lens.push(len.to_le_bytes());
        self.sums.push(self.sums[local as usize] + u64::from(len));
    }

    fn byte_len(&self) -> usize {
        let list_of = self.list_of.len() * size_of::<u32>();
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
        let kept = |id: &Number| keep.is_none_or(|keep| keep.contains(u32::from_le_bytes(*id)));
        let (mut ids, mut lens) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut places = Vec::with_capacity(count);
        for (id, len) in self.ids[..count].iter().zip(&self.lens) {
            places.push(kept(id).then_some(ids.len() as u32));
            if kept(id) {
                ids.push(*id);
                lens.push(*len);
            }
        }
        let mut builder = Builder::new(InMemory::default(), analyzer.id(), &ids, lens)?;
        drop(ids);
        let all = keep.is_none() && count == self.ids.len();
        let mut encoded = Encoded::default();
        let terms = terms.sorted();
        for (i, (key, list)) in terms.iter().enumerate() {
            // The lists lie here and there: what comes is fetched while the one at hand is laid down.
            if let Some((_, list)) = terms.get(i + 2 * AHEAD) {
                self.lists.prefetch(*list);
            }
            if let Some((_, list)) = terms.get(i + AHEAD) {
                self.lists.prefetch_bytes(*list);
            }
            if all {
                encoded.set_encoded(builder.lens(), |bytes| self.lists.encode_into(*list, bytes))?;
            } else {
                let mut postings = self.lists.postings(*list, count as u32);
                if keep.is_some() {
                    postings.retain_mut(|posting| {
                        let place = places[posting.local as usize];
                        posting.local = place.unwrap_or_default();
                        place.is_some()
                    });
                }
                encoded.set(&postings, builder.lens());
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

/// What a document costs besides its postings.
const DOCUMENT_BYTES: usize = 16;

/// What a document that waits takes beside its text, about.
const QUEUED_BYTES: usize = 32;

fn sixteenths(weight: f32) -> u32 {
    // A NaN becomes 0.
    (weight.clamp(0.0, MAX_WEIGHT) * ONCE as f32).round() as u32
}
