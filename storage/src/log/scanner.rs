//! Reading the log in order with all checks.
//!
//! One scanner serves opening, scanning and verifying. It goes unit by unit (a log page, or the run of a long record)
//! and takes one step at a time: a transaction, a sealed page, a close record, the next segment, the end, or a fault.
//! It checks framing and CRC of every record and footer, zeros between them, each page's Merkle root and the chain,
//! each transaction's number, count, clock, hash and head, and each segment's number and position.
//!
//! After a fault, [`Scanner::resume`] continues past it. Part of the state is then unknown, and checks that need it are
//! skipped until it is known again.

use std::sync::Arc;

use super::commit::{Close, Commit};
use super::erasure::{Erasure, Intent, Patches, Redacted};
use super::fault::Fault;
use super::segment::{HeaderState, Segment};
use super::tip::Tip;
use super::unit::Unit;
use super::writer::Geometry;
use super::{CommitNo, Leaf, Lsn, Transaction};
use crate::chain::TransactionHash;
use crate::error::Result;
use crate::log_page::{FOOTER_LEN, Footer, ParsedFooter};
use crate::record::{
    self, ALIGNMENT, FIRST_RESERVED_KIND, KIND_CLOSE, KIND_COMMIT, KIND_REDACT, KIND_REDACTED, PREFIX_LEN, Parsed,
    Place, Record, RecordView,
};
use crate::zeros;

/// The result of one step of a scanner.
#[derive(Debug)]
pub(crate) enum Step {
    /// A transaction with the erasures that it names. `whole` is false if the scanner resumed inside it.
    Transaction { transaction: Transaction, whole: bool, erasures: Vec<Erasure> },
    /// A done record: the erasures that this commit named are carried out.
    Redacted(u64),
    /// A close record.
    Closed,
    /// The end of a sealed page or run.
    Sealed,
    /// The next segment. Positions from `blank_from` to the end of the segment before were never used.
    Switched { blank_from: u64 },
    /// The end of the log: nothing was written from here on.
    End,
    /// The scanner's limit was reached.
    Limit,
    /// A failed check.
    Fault(Fault),
}

/// The result of placing a scanner at a position.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A scanner at the position.
    Ready(Box<Scanner>),
    /// A fault in the page around the position.
    Fault(Fault),
    /// Nothing ends at the position.
    Mismatch(String),
    /// The log ends here, before the position.
    Ended(u64),
}

/// The known parts of the scanner's state.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// `tip.chain` and `tip.records`, from a sealed page or a segment's header. Never known without `page`.
    chain: bool,
    /// `tip.open`: all records of the page so far.
    page: bool,
    /// `tip.commit` and the other fields of the last commit.
    commit: bool,
    /// `pending`: all records since the last commit.
    transaction: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Scanner {
    geometry: Geometry,
    segments: Vec<Arc<Segment>>,
    index: usize,
    pub(crate) limit: u64,
    tip: Tip,
    known: Known,
    unit: Option<Box<Unit>>,
    /// The last unit, whose buffers the next one reuses.
    spare: Option<Box<Unit>>,
    /// True if records are returned with payloads, and transactions with leaves.
    payloads: bool,
    pending: Vec<Record>,
    /// The erasures named since the last commit, and the number of records that name them.
    erasures: Vec<Erasure>,
    intents: u32,
    hash: TransactionHash,
    /// The leaves of all records since the last commit, including the log's own.
    leaves: Vec<Leaf>,
    /// The erased forms of records that a crash left half erased.
    patches: Patches,
    /// The position of a fault that was read again, in case the record was being erased at the first read.
    again: Option<u64>,
}

impl Scanner {
    /// A scanner at the first record of the first segment, which has a valid header.
    pub(crate) fn at_start(geometry: Geometry, segments: Vec<Arc<Segment>>, limit: u64) -> Self {
        let first = segments.first().map_or(0, |segment| segment.first);
        let tip = Tip::genesis(&geometry.database, first + geometry.page.bytes());
        let known = Known { chain: true, page: true, commit: true, transaction: true };
        Self {
            geometry,
            segments,
            index: 0,
            limit,
            tip,
            known,
            unit: None,
            spare: None,
            payloads: true,
            pending: Vec::new(),
            erasures: Vec::new(),
            intents: 0,
            hash: TransactionHash::new(),
            leaves: Vec::new(),
            patches: Patches::new(),
            again: None,
        }
    }

    /// A scanner at the first of these segments, which knows only what that segment's header states.
    pub(crate) fn at_rest(geometry: Geometry, segments: Vec<Arc<Segment>>, limit: u64) -> Self {
        let mut scanner = Self::at_start(geometry, segments, limit);
        if let Some(first) = scanner.segment().map(Arc::clone).filter(|first| first.number > 1) {
            scanner.known = Known { chain: false, page: true, commit: false, transaction: false };
            scanner.enter_segment(&first);
        }
        scanner
    }

    /// A scanner at `position`, which must be the end of a transaction, of a close record, or of a sealed page between
    /// transactions. It reads the page that ends there or is open there.
    pub(crate) fn at(geometry: Geometry, segments: Vec<Arc<Segment>>, limit: u64, position: u64) -> Result<Entry> {
        Self::at_with(geometry, segments, limit, position, Patches::new())
    }

    /// The same, with these erased forms for unreadable records.
    pub(crate) fn at_with(
        geometry: Geometry,
        segments: Vec<Arc<Segment>>,
        limit: u64,
        position: u64,
        patches: Patches,
    ) -> Result<Entry> {
        let mut scanner = Self::at_start(geometry, segments, position);
        scanner.patches = patches;
        if position != scanner.tip.position {
            let trouble = match scanner.enter_page_of(position)? {
                None => scanner.walk_to(position)?,
                some => some,
            };
            if let Some(trouble) = trouble {
                return Ok(trouble);
            }
        }
        scanner.limit = limit;
        Ok(Entry::Ready(Box::new(scanner)))
    }

    /// This scanner without payloads: records are checked but returned without payload, and transactions without
    /// leaves.
    pub(crate) fn without_payloads(mut self) -> Self {
        self.payloads = false;
        self
    }

    pub(crate) fn tip(&self) -> &Tip {
        &self.tip
    }

    /// True if no transaction is incomplete.
    pub(crate) fn between_transactions(&self) -> bool {
        self.pending.is_empty() && self.intents == 0 && self.known.transaction
    }

    /// Takes the records of a transaction whose end is unreadable.
    pub(crate) fn take_pending(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.pending)
    }

    fn forget_pending(&mut self) {
        self.pending.clear();
        self.leaves.clear();
        self.erasures.clear();
        self.intents = 0;
        self.hash.restart();
    }

    /// The index of the present segment.
    pub(crate) fn segment_index(&self) -> usize {
        self.index
    }

    pub(crate) fn segment(&self) -> Option<&Arc<Segment>> {
        self.segments.get(self.index)
    }

    /// Moves to the next result.
    pub(crate) fn step(&mut self) -> Result<Step> {
        loop {
            if self.tip.position >= self.limit {
                return Ok(Step::Limit);
            }
            let Some(segment) = self.segment().map(Arc::clone) else {
                return Ok(Step::End);
            };
            if self.unit.is_none() {
                if self.tip.position >= segment.end() {
                    return Ok(self.next_segment(self.tip.position));
                }
                if let Err(fault) = self.load(&segment)? {
                    return Ok(Step::Fault(fault));
                }
            }
            let Some(mut unit) = self.unit.take() else {
                continue;
            };
            let step = self.step_through(&segment, &mut unit);
            if matches!(step, Step::Fault(_)) && self.again != Some(self.tip.position) {
                self.again = Some(self.tip.position);
                self.geometry.erasing.wait();
                continue;
            }
            if matches!(step, Step::Sealed | Step::Switched { .. }) {
                self.spare = Some(unit);
            } else {
                self.unit = Some(unit);
            }
            return Ok(step);
        }
    }

    /// Moves through a unit until there is a result.
    fn step_through(&mut self, segment: &Arc<Segment>, unit: &mut Unit) -> Step {
        loop {
            if let Some(step) = self.step_in(segment, unit) {
                return step;
            }
            if self.tip.position >= self.limit {
                return Step::Limit;
            }
        }
    }

    /// Sets the erased forms for unreadable records, and checks the present position again.
    pub(crate) fn patch(&mut self, patches: Patches) {
        self.patches.extend(patches);
        self.unit = None;
    }

    /// Moves the limit further, and reads the present unit again: another process may have written in it since.
    pub(crate) fn extend(&mut self, limit: u64) {
        (self.limit, self.unit) = (limit, None);
    }

    /// Another scanner at the same position, without a limit, with these erased forms for unreadable records.
    pub(crate) fn trial(&self, patches: Patches) -> Self {
        let mut trial = Self { limit: u64::MAX, ..self.clone() };
        trial.patch(patches);
        trial
    }

    /// Continues past a fault: at the next record of the page or of a later one.
    pub(crate) fn resume(&mut self) -> Result<()> {
        self.known = Known { chain: false, page: false, commit: false, transaction: false };
        self.forget_pending();
        if let Some(unit) = self.unit.take() {
            let within = self.geometry_within(&unit);
            if let Some(at) = self.find_record(&unit, within + ALIGNMENT) {
                self.tip.position = unit.start + at as u64;
                self.unit = Some(unit);
                return Ok(());
            }
            // The rest of the page is unreadable, but its footer may still give the chain.
            self.adopt_footer(&unit);
            self.tip.position = unit.end();
        } else {
            self.tip.position = self.geometry.page.start_of(self.tip.position) + self.geometry.page.bytes();
        }
        self.find_page()
    }

    fn step_in(&mut self, segment: &Arc<Segment>, unit: &mut Unit) -> Option<Step> {
        let within = self.geometry_within(unit);
        let rest = unit.bytes.get(within..unit.records_len()).unwrap_or_default();
        let fault = |position, what: &str| Some(Step::Fault(Fault { position, what: what.into() }));
        let place = self.place(segment, self.tip.position);
        let mut parsed = record::parse(rest, &self.geometry.seed, place);
        if matches!(parsed, Parsed::Fault(_))
            && let Some(erasure) = self.patches.get(&self.tip.position).filter(|erasure| erasure.fits(rest.len()))
        {
            parsed = Parsed::Record(erasure.view());
        }
        match parsed {
            Parsed::Record(view) => match self.take_record(&view) {
                Ok(step) => step,
                Err(what) => fault(self.tip.position, &what),
            },
            Parsed::Fault(what) => fault(self.tip.position, &what),
            Parsed::Blank => match self.parse_footer(segment, unit) {
                ParsedFooter::Footer(footer) => Some(self.take_footer(unit, within, &footer)),
                ParsedFooter::Fault(what) => fault(unit.end() - FOOTER_LEN as u64, &what),
                ParsedFooter::Blank if within == 0 && self.skips_to_next(unit.start) => {
                    Some(self.next_segment(unit.start))
                }
                ParsedFooter::Blank => Some(Step::End),
            },
        }
    }

    /// Checks a record against the present state and moves past it.
    fn take_record(&mut self, view: &RecordView<'_>) -> Result<Option<Step>, String> {
        let step = match view.kind {
            KIND_COMMIT => {
                let commit = Commit::decode(view.payload).ok_or("the commit record has an invalid layout")?;
                self.check_commit(&commit)?;
                self.pass(view);
                self.tip.committed(&commit);
                let records = std::mem::take(&mut self.pending);
                let erasures = std::mem::take(&mut self.erasures);
                self.intents = 0;
                let whole = self.known.transaction;
                (self.known.transaction, self.known.commit) = (true, true);
                self.hash.restart();
                let (number, time_us) = (CommitNo(commit.number), commit.time_us);
                let leaves = std::mem::take(&mut self.leaves);
                let transaction = Transaction { number, time_us, records, leaves, head: self.tip.public_head() };
                Some(Step::Transaction { transaction, whole, erasures })
            }
            KIND_CLOSE => {
                let close = Close::decode(view.payload).ok_or("the close record has an invalid layout")?;
                self.check_close(&close)?;
                self.pass(view);
                self.tip.closed(&close);
                self.known.transaction = true;
                Some(Step::Closed)
            }
            KIND_REDACT => {
                let intent = Intent::decode(view.payload).ok_or("the redaction record has an invalid layout")?;
                if self.known.commit && intent.commit != self.tip.commit.wrapping_add(1) {
                    return Err(format!("a redaction record of commit {} after {}", intent.commit, self.tip.commit));
                }
                self.erasures.extend(intent.erasures);
                self.intents += 1;
                self.hash.push(&view.hash);
                self.pass(view);
                None
            }
            KIND_REDACTED => {
                let done =
                    Redacted::decode(view.payload).ok_or("the done record of a redaction has an invalid layout")?;
                self.check_redacted(&done)?;
                self.pass(view);
                self.tip.synced = self.tip.synced.max(done.synced);
                self.known.transaction = true;
                Some(Step::Redacted(done.commit))
            }
            kind if kind >= FIRST_RESERVED_KIND => {
                return Err(format!("unknown log record type {kind:#04x}"));
            }
            _ => {
                let payload = if self.payloads { view.payload } else { &[] };
                self.pending.push(view.to_record_with(Lsn(self.tip.position), payload));
                self.hash.push(&view.hash);
                self.pass(view);
                None
            }
        };
        Ok(step)
    }

    /// Moves past a record that passed its checks.
    fn pass(&mut self, view: &RecordView<'_>) {
        let lsn = self.tip.position;
        self.tip.push(view.hash, view.stored_len);
        if !self.payloads {
            return;
        }
        // A run holds one record.
        let page = self.geometry.page;
        let alone = view.stored_len > page.capacity();
        let run_len = (page.run_pages(view.stored_len) * page.len()) as u64;
        let end = if alone { lsn + run_len } else { self.tip.position };
        self.leaves.push(Leaf { lsn: Lsn(lsn), end: Lsn(end), hash: view.hash });
    }

    fn check_commit(&self, commit: &Commit) -> Result<(), String> {
        if self.known.commit && commit.number != self.tip.commit.wrapping_add(1) {
            return Err(format!("commit {} follows commit {}", commit.number, self.tip.commit));
        }
        if self.known.commit && commit.time_us < self.tip.time_us {
            return Err(format!("the clock of commit {} goes back", commit.number));
        }
        let found = self.pending.len() + self.intents as usize;
        if self.known.transaction && commit.record_count as usize != found {
            return Err(format!("commit {} has {found} records, states {}", commit.number, commit.record_count));
        }
        if self.known.transaction && commit.transaction != self.hash.finish() {
            return Err(format!("the records of commit {} do not match its hash", commit.number));
        }
        if self.known.chain && commit.head != self.tip.head_of(commit) {
            return Err(format!("the head of commit {} does not match the log before it", commit.number));
        }
        if commit.synced > self.tip.position {
            return Err(format!("commit {} states position {} as synced", commit.number, commit.synced));
        }
        Ok(())
    }

    fn check_redacted(&self, done: &Redacted) -> Result<(), String> {
        if self.known.transaction && !self.between_transactions() {
            return Err("the done record of a redaction inside a transaction".into());
        }
        if self.known.commit && done.commit > self.tip.commit {
            return Err(format!("the redaction of commit {} done after commit {}", done.commit, self.tip.commit));
        }
        if done.synced > self.tip.position {
            return Err(format!("the done record of a redaction states position {} as synced", done.synced));
        }
        Ok(())
    }

    fn check_close(&self, close: &Close) -> Result<(), String> {
        if self.known.transaction && !self.between_transactions() {
            return Err("a close record inside a transaction".into());
        }
        if self.known.commit && (close.number, close.head) != (self.tip.commit, self.tip.head) {
            return Err(format!("the close record is that of commit {}, after {}", close.number, self.tip.commit));
        }
        if close.synced > self.tip.position {
            return Err(format!("the close record states position {} as synced", close.synced));
        }
        Ok(())
    }

    /// Checks a footer against the records before it and moves past it.
    fn take_footer(&mut self, unit: &Unit, within: usize, footer: &Footer) -> Step {
        let at_footer = unit.end() - FOOTER_LEN as u64;
        let fault = |position, what: &str| Step::Fault(Fault { position, what: what.into() });
        let gap = unit.bytes.get(within..unit.records_len()).unwrap_or_default();
        if !zeros::is_zero(gap) || footer.used_len as usize != within {
            return fault(self.tip.position, "the records of a sealed page end too early");
        }
        if self.known.page {
            if u64::from(footer.record_count) != self.tip.open.count() {
                let what = format!("the page has {} records, states {}", self.tip.open.count(), footer.record_count);
                return fault(at_footer, &what);
            }
            if footer.root != self.tip.open.root() {
                return fault(at_footer, "the page's records do not match its Merkle root");
            }
        }
        if self.known.chain && footer.first_record != self.tip.first_of_page() {
            return fault(at_footer, "the page states another number of records before it");
        }
        if self.known.chain && footer.chain != crate::chain::chain(&self.tip.chain, &footer.root) {
            return fault(at_footer, "the chain is broken");
        }
        self.adopt(footer, unit.end());
        Step::Sealed
    }

    /// Adopts chain and counts from a footer.
    fn adopt(&mut self, footer: &Footer, end: u64) {
        self.tip.sealed(end, footer.chain);
        self.tip.records = footer.first_record.wrapping_add(footer.record_count.into());
        (self.known.chain, self.known.page) = (true, true);
    }

    fn adopt_footer(&mut self, unit: &Unit) {
        let Some(segment) = self.segment().map(Arc::clone) else {
            return;
        };
        if let ParsedFooter::Footer(footer) = self.parse_footer(&segment, unit) {
            self.adopt(&footer, unit.end());
        }
    }

    fn parse_footer(&self, segment: &Segment, unit: &Unit) -> ParsedFooter {
        let Some(bytes) = unit.bytes.last_chunk::<FOOTER_LEN>() else {
            return ParsedFooter::Blank;
        };
        let place = self.place(segment, unit.end() - FOOTER_LEN as u64);
        Footer::parse(bytes, &self.geometry.seed, place)
    }

    /// True if the unused page at `position` is the end of this segment: the next segment's header states that, or is
    /// unreadable.
    fn skips_to_next(&self, position: u64) -> bool {
        let next = self.segments.get(self.index + 1);
        next.is_some_and(|next| match &next.header {
            HeaderState::Valid(header) => header.previous_end == position,
            HeaderState::Blank => false,
            HeaderState::Newer(_) | HeaderState::WrongMagic(_) | HeaderState::Fault(_) => true,
        })
    }

    fn next_segment(&mut self, blank_from: u64) -> Step {
        let Some(next) = self.segments.get(self.index + 1).map(Arc::clone) else {
            return Step::End;
        };
        let fault = |what: String| Step::Fault(Fault { position: next.first, what });
        let header = match &next.header {
            HeaderState::Valid(header) => header,
            HeaderState::Blank => return Step::End,
            HeaderState::Newer(what) | HeaderState::Fault(what) => return fault(what.clone()),
            HeaderState::WrongMagic(found) => {
                return fault(format!("the file begins with {found:02x?}"));
            }
        };
        let same_database = header.database == self.geometry.database;
        if !same_database || u64::from(header.page_size) != self.geometry.page.bytes() {
            return fault("the segment belongs to another database".into());
        }
        if header.previous_end != blank_from {
            return fault(format!("the segment before ends at {blank_from}, not at {}", header.previous_end));
        }
        if self.known.chain && header.chain != self.tip.chain {
            return fault("the chain is broken between two segments".into());
        }
        if self.known.chain && header.records != self.tip.records {
            return fault(format!("{} records come before it, it states {}", self.tip.records, header.records));
        }
        if self.known.commit && (header.commit, header.time_us) != (self.tip.commit, self.tip.time_us) {
            return fault(format!("commit {} comes before it, it states {}", self.tip.commit, header.commit));
        }
        self.index += 1;
        self.enter_segment(&next);
        Step::Switched { blank_from }
    }

    /// Adopts the state of a segment's header and moves to its first record.
    fn enter_segment(&mut self, segment: &Segment) {
        self.unit = None;
        self.tip.open.clear();
        self.tip.position = segment.first + self.geometry.page.bytes();
        if let Some(header) = segment.valid_header() {
            self.tip.chain = header.chain;
            self.tip.records = header.records;
            (self.known.chain, self.known.page) = (true, true);
        }
    }

    /// Reads the unit that starts at `tip.position`.
    fn load(&mut self, segment: &Segment) -> Result<Result<(), Fault>> {
        let page = self.geometry.page;
        let start = page.start_of(self.tip.position);
        let offset = start - segment.first;
        let missing = |segment: &Segment| Fault {
            position: start,
            what: format!("the file ends at byte {}, its header states {}", segment.file_len, segment.len),
        };
        if offset + page.bytes() > segment.file_len {
            return Ok(Err(missing(segment)));
        }
        let mut unit = self.spare.take().unwrap_or_default();
        let bytes = &mut unit.bytes;
        bytes.resize(page.len(), 0);
        segment.read(bytes, offset)?;
        if let Some(stored_len) = record::claimed_len(bytes)
            && stored_len > page.capacity()
        {
            let run_len = page.run_pages(stored_len) * page.len();
            // A length that exceeds the segment is a fault of the record, which parsing reports.
            if run_len as u64 <= segment.end() - start {
                if offset + run_len as u64 > segment.file_len {
                    return Ok(Err(missing(segment)));
                }
                bytes.resize(run_len, 0);
                let rest = bytes.get_mut(page.len()..).unwrap_or_default();
                segment.read(rest, offset + page.bytes())?;
            }
        }
        unit.start = start;
        self.unit = Some(unit);
        Ok(Ok(()))
    }

    /// Moves to the start of the page that contains `position` or ends there, and sets its chain.
    fn enter_page_of(&mut self, position: u64) -> Result<Option<Entry>> {
        let start = self.geometry.page.start_of(position.saturating_sub(1));
        let found = self.segments.iter().position(|segment| (segment.first..segment.end()).contains(&start));
        let mismatch = |what: &str| Ok(Some(Entry::Mismatch(what.into())));
        let fault = |position, what: &str| Ok(Some(Entry::Fault(Fault { position, what: what.into() })));
        let Some(index) = found else {
            return mismatch("the log ends before it");
        };
        let Some(segment) = self.segments.get(index).map(Arc::clone) else {
            return mismatch("the log ends before it");
        };
        if segment.valid_header().is_none() {
            return fault(segment.first, "the segment's header is not readable");
        }
        if start == segment.first {
            return mismatch("it lies in the header of a segment");
        }
        self.index = index;
        self.enter_segment(&segment);
        (self.known.commit, self.known.transaction) = (false, false);
        if start > self.tip.position {
            let at = start - FOOTER_LEN as u64;
            if start - segment.first > segment.file_len {
                return fault(at, "the file ends before this position");
            }
            let mut bytes = [0; FOOTER_LEN];
            segment.read(&mut bytes, at - segment.first)?;
            match Footer::parse(&bytes, &self.geometry.seed, self.place(&segment, at)) {
                ParsedFooter::Footer(footer) => self.adopt(&footer, start),
                ParsedFooter::Blank => return mismatch("the page before it is not sealed"),
                ParsedFooter::Fault(what) => return fault(at, &what),
            }
        }
        Ok(None)
    }

    /// Steps until `position`, which must be an end as for [`Self::at`].
    fn walk_to(&mut self, position: u64) -> Result<Option<Entry>> {
        let mut ended = None;
        loop {
            match self.step()? {
                Step::Limit => break,
                Step::Fault(fault) => return Ok(Some(Entry::Fault(fault))),
                Step::Transaction { .. } | Step::Closed | Step::Redacted(_) => ended = Some(self.tip.position),
                Step::Sealed if self.pending.is_empty() && self.intents == 0 => ended = Some(self.tip.position),
                Step::Sealed | Step::Switched { .. } => {}
                Step::End => return Ok(Some(Entry::Ended(self.tip.position))),
            }
        }
        if ended != Some(position) {
            return Ok(Some(Entry::Mismatch("no transaction ends there".into())));
        }
        // No transaction is incomplete here, whatever preceded the page.
        self.known.transaction = true;
        self.hash = TransactionHash::new();
        self.leaves.clear();
        Ok(None)
    }

    /// After a fault: moves to the next page that begins with a record, in this segment or a later one. Footers on the
    /// way still give the chain.
    fn find_page(&mut self) -> Result<()> {
        while let Some(segment) = self.segment().map(Arc::clone) {
            let end = segment.first + segment.len.min(segment.file_len);
            while self.tip.position < end {
                let Ok(()) = self.load(&segment)? else { break };
                let Some(unit) = self.unit.take() else { break };
                let records = unit.bytes.get(..unit.records_len()).unwrap_or_default();
                let place = self.place(&segment, unit.start);
                if let Parsed::Record(_) = record::parse(records, &self.geometry.seed, place) {
                    self.tip.open.clear();
                    self.known.page = true;
                    self.unit = Some(unit);
                    return Ok(());
                }
                self.known.chain = false;
                self.tip.position = unit.start + self.geometry.page.bytes();
                if unit.bytes.len() == self.geometry.page.len() {
                    self.adopt_footer(&unit);
                }
            }
            self.index += 1;
            if let Some(next) = self.segment().map(Arc::clone) {
                self.known.chain = false;
                self.enter_segment(&next);
            }
        }
        Ok(())
    }

    fn find_record(&self, unit: &Unit, from: usize) -> Option<usize> {
        let segment = self.segment()?;
        let records = unit.bytes.get(..unit.records_len())?;
        (from.next_multiple_of(ALIGNMENT)..records.len().saturating_sub(PREFIX_LEN)).step_by(ALIGNMENT).find(|&at| {
            let place = self.place(segment, unit.start + at as u64);
            matches!(record::parse(&records[at..], &self.geometry.seed, place), Parsed::Record(_))
        })
    }

    fn geometry_within(&self, unit: &Unit) -> usize {
        (self.tip.position - unit.start) as usize
    }

    fn place(&self, segment: &Segment, position: u64) -> Place {
        Place { segment: segment.number, offset: position - segment.first }
    }
}
