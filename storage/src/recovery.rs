//! Opening a log: what is believed, what is damage, and what is an unsynced tail.
//!
//! Files and directory are synced first, so that what is read is what a crash would leave. Then everything from the
//! checkpoint (or the beginning) to the end is checked. If something at position `p` does not check out, there are two
//! explanations, and they must not be confused:
//!
//! - **Damage**: bytes at `p` were durable once and have changed. Proven when anything says that a position behind the last
//!   good commit was durable: the `synced` of a later commit or close record, the header of a later segment, a file
//!   shorter than its header states, the checkpoint, or the hint the caller brings. Nothing is changed then; the log opens
//!   read-only.
//! - **An unsynced tail**: a crash came before the sync. Unsynced writes persist in any order, so valid commits may even
//!   follow. Everything behind the last good commit is copied to a quarantine file and zeroed.
//!
//! The order of a clean-up makes it safe to crash in, and repeating it changes nothing more:
//!
//! 1. The quarantine file is whole, synced and renamed into place before anything is removed.
//! 2. Later segments are removed from the last to the first, each removal synced, before the tail is zeroed: a later header
//!    must not outlive what comes before it.
//! 3. The tail is zeroed and synced before anything is appended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Damage, Error, Result};
use crate::log::commit::{Close, Commit};
use crate::log::prepare::{Spare, remove_if_there};
use crate::log::scanner::{Entry, Fault, Scanner, Step};
use crate::log::segment::{HeaderState, Segment, file_name, number_of};
use crate::log::tip::Tip;
use crate::log::writer::Geometry;
use crate::log::{Checkpoint, CommitNo, Head, Log, Lsn, OpenOptions, Transaction, damage_at};
use crate::log_page::PageSize;
use crate::record::{self, ALIGNMENT, CrcSeed, KIND_CLOSE, KIND_COMMIT, Parsed, Place};
use crate::vfs::{OpenMode, Vfs};

/// How much is copied or zeroed at once.
const COPY_LEN: usize = 256 << 10;

const QUARANTINE_MAGIC: [u8; 8] = *b"HOLOQUAR";
const QUARANTINE_HEADER_LEN: usize = 48;

/// All that opening a log found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Where checking began.
    pub start: Lsn,
    /// Where the log ends.
    pub end: Lsn,
    /// Its last commit.
    pub head: Head,
    /// Transactions read after the start.
    pub transactions: u64,
    /// Their records.
    pub records: u64,
    /// Whether the log ends in a close record.
    pub closed: bool,
    /// What was written and never synced.
    pub tail: Option<UnsyncedTail>,
    /// Files that were removed: later segments of the tail, unfinished files.
    pub removed: Vec<PathBuf>,
    /// Where durable bytes have changed; only in a log opened read-only.
    pub damage: Option<Damage>,
}

/// The end of a log that a crash kept from being synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsyncedTail {
    /// Its first position: the end of the last good commit.
    pub position: Lsn,
    /// Its length in bytes.
    pub len: u64,
    /// Where its first bad byte is, and what is wrong with it.
    pub fault: Damage,
    /// Commit records in it that are intact by themselves.
    pub commits: u64,
    /// The copy; `None` when the log was opened read-only and nothing was changed.
    pub quarantine: Option<PathBuf>,
}

/// A log on its way to being open.
#[derive(Debug)]
pub(crate) struct Opening {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    options: OpenOptions,
    geometry: Geometry,
    segments: Vec<Arc<Segment>>,
    scanner: Scanner,
    /// A position that was durable, by the checkpoint or the hint.
    durable: u64,
    /// The state after the last thing that may stand at the end of a log, and the segment it is in.
    good: Tip,
    good_segment: usize,
    stop: Option<Stop>,
    report: RecoveryReport,
}

/// Why checking ended.
#[derive(Debug)]
struct Stop {
    position: u64,
    /// `None` where nothing was written.
    what: Option<String>,
    limit: bool,
}

/// What lies behind the position where checking ended.
#[derive(Debug)]
struct Behind {
    /// The position after the last byte that is not zero.
    end: u64,
    /// The furthest position a record says was durable, and which.
    synced: Option<(u64, String)>,
    /// The furthest segment with a valid header.
    header: Option<(u64, u64)>,
    commits: u64,
}

impl Opening {
    pub(crate) fn begin(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        from: Option<Checkpoint>,
        options: &OpenOptions,
    ) -> Result<Self> {
        let names = vfs.list(dir).map_err(Error::io(dir, "list"))?;
        let segments = load_segments(&*vfs, dir, &names, options.read_only)?;
        let geometry = check_headers(&segments, options)?;
        let mut report = RecoveryReport::default();
        if !options.read_only {
            sync_from(
                &*vfs,
                dir,
                &segments,
                from.map_or(0, |from| from.position.0),
            )?;
            remove_unfinished(&*vfs, dir, &names, &mut report)?;
        }
        let from_position = from.map_or(0, |from| from.position.0);
        let durable = options
            .durable_hint
            .map_or(0, |hint| hint.0)
            .max(from_position);
        let limit = if options.read_only && options.durable_hint.is_some() {
            durable
        } else {
            u64::MAX
        };
        let scanner = enter(&vfs, &geometry, &segments, from, limit)?;
        report.start = Lsn(scanner.tip().position);
        let (good, good_segment) = (scanner.tip().clone(), scanner.segment_index());
        let (dir, options) = (dir.to_owned(), options.clone());
        Ok(Self {
            vfs,
            dir,
            options,
            geometry,
            segments,
            scanner,
            durable,
            good,
            good_segment,
            stop: None,
            report,
        })
    }

    /// The next transaction, until the log ends or cannot be believed any more.
    pub(crate) fn next_transaction(&mut self) -> Result<Option<Transaction>> {
        while self.stop.is_none() {
            let position = self.scanner.tip().position;
            match self.scanner.step()? {
                Step::Transaction { transaction, .. } => {
                    self.note_good();
                    self.report.transactions += 1;
                    self.report.records += transaction.records.len() as u64;
                    return Ok(Some(transaction));
                }
                Step::Closed => self.note_good(),
                Step::Sealed if self.scanner.between_transactions() => self.note_good(),
                Step::Sealed | Step::Switched { .. } => {}
                Step::Limit => {
                    self.stop = Some(Stop {
                        position,
                        what: None,
                        limit: true,
                    });
                }
                Step::End => {
                    let position = self.scanner.tip().position;
                    self.stop = Some(Stop {
                        position,
                        what: None,
                        limit: false,
                    });
                }
                Step::Fault(Fault { position, what }) => {
                    self.stop = Some(Stop {
                        position,
                        what: Some(what),
                        limit: false,
                    });
                }
            }
        }
        Ok(None)
    }

    /// Judges what lies behind the last good commit, cleans up, and opens the log.
    pub(crate) fn finish(mut self) -> Result<(Log, RecoveryReport)> {
        let stop = self.stop.take().unwrap_or(Stop {
            position: self.good.position,
            what: None,
            limit: false,
        });
        self.report.end = Lsn(self.good.position);
        self.report.head = self.good.public_head();
        self.report.closed = self.good.closed;
        let damage = if stop.limit {
            None
        } else {
            let behind = self.look_behind(&stop)?;
            let damage = self.damage(&stop, &behind);
            if damage.is_none() && behind.end > self.good.position {
                self.set_aside(&stop, &behind)?;
            }
            damage
        };
        match damage {
            Some(damage) if !self.options.read_only => Err(Error::Damaged(damage)),
            damage => {
                self.report.damage.clone_from(&damage);
                self.open(damage)
            }
        }
    }

    fn note_good(&mut self) {
        self.good = self.scanner.tip().clone();
        self.good_segment = self.scanner.segment_index();
    }

    /// Reads everything from where checking ended.
    fn look_behind(&self, stop: &Stop) -> Result<Behind> {
        let mut behind = Behind {
            end: stop.position,
            synced: None,
            header: None,
            commits: 0,
        };
        // After a close record nothing was written, and that it is the last one the hint confirms.
        let closed = self.good.closed && stop.what.is_none() && self.good.position == stop.position;
        if closed
            && self
                .options
                .durable_hint
                .is_some_and(|hint| hint.0 <= stop.position)
        {
            return Ok(behind);
        }
        for segment in self
            .segments
            .iter()
            .filter(|segment| segment.end() > stop.position)
        {
            let begins_here = stop.position <= segment.first;
            if begins_here && segment.header != HeaderState::Blank {
                behind.end = behind.end.max(segment.first + self.geometry.page.bytes());
                if segment.valid_header().is_some() {
                    behind.header = Some((segment.first, segment.number));
                }
            }
            self.search(segment, stop.position.max(segment.first), &mut behind)?;
        }
        Ok(behind)
    }

    /// Looks through a segment from a position for bytes that are not zero and for records that say what was durable.
    fn search(&self, segment: &Segment, from: u64, behind: &mut Behind) -> Result<()> {
        let page = self.geometry.page;
        let end = segment.first + segment.len.min(segment.file_len);
        let mut start = page.start_of(from);
        let mut bytes = vec![0; page.len()];
        while start < end {
            let len = page.bytes().min(end - start) as usize;
            let Some(bytes) = bytes.get_mut(..len) else {
                break;
            };
            segment.read(&*self.vfs, bytes, start - segment.first)?;
            let skip = from.saturating_sub(start) as usize;
            if let Some(last) = bytes
                .iter()
                .rposition(|&byte| byte != 0)
                .filter(|&last| last >= skip)
            {
                behind.end = behind.end.max(start + last as u64 + 1);
                for at in (skip.next_multiple_of(ALIGNMENT)..=last).step_by(ALIGNMENT) {
                    let rest = bytes.get(at..).unwrap_or_default();
                    self.note_statement(segment, start + at as u64, rest, behind);
                }
            }
            start += page.bytes();
        }
        Ok(())
    }

    /// If an intact commit or close record stands here, notes what it says.
    fn note_statement(&self, segment: &Segment, position: u64, bytes: &[u8], behind: &mut Behind) {
        let own = matches!(bytes.get(4), Some(&(KIND_COMMIT | KIND_CLOSE)));
        if !own || record::claimed_len(bytes).is_none() {
            return;
        }
        let place = Place {
            segment: segment.number,
            offset: position - segment.first,
        };
        let Parsed::Record(view) = record::parse(bytes, &self.geometry.seed, place) else {
            return;
        };
        let (synced, name) = match view.kind {
            KIND_COMMIT => match Commit::decode(view.payload) {
                Some(commit) => {
                    behind.commits += 1;
                    (commit.synced, format!("commit {}", CommitNo(commit.number)))
                }
                None => return,
            },
            _ => match Close::decode(view.payload) {
                Some(close) => (close.synced, "the close record".into()),
                None => return,
            },
        };
        if synced <= position
            && behind
                .synced
                .as_ref()
                .is_none_or(|(furthest, _)| *furthest < synced)
        {
            behind.synced = Some((synced, format!("{name} at position {position}")));
        }
    }

    /// Whether something durable has changed, and where.
    fn damage(&self, stop: &Stop, behind: &Behind) -> Option<Damage> {
        let page = self.geometry.page;
        let what = stop
            .what
            .clone()
            .unwrap_or_else(|| "nothing is written here".into());
        let at = |position, what| Some(damage_at(&self.segments, page, Fault { position, what }));
        if let Some((synced, name)) = &behind.synced
            && *synced > self.good.position
        {
            return at(
                stop.position,
                format!("{what}, but {name} says that all before {synced} was durable"),
            );
        }
        if let Some((first, number)) = behind.header
            && first > stop.position
        {
            return at(
                stop.position,
                format!("{what}, but segment {number} was begun after this was durable"),
            );
        }
        if self.durable > self.good.position {
            return at(
                stop.position,
                format!("{what}, but all before {} was durable", self.durable),
            );
        }
        let used = |segment: &&Arc<Segment>| {
            segment.valid_header().is_some() && segment.file_len != segment.len
        };
        let cut = self.segments.iter().find(used)?;
        let what = format!(
            "the file has {} bytes, its header states {}",
            cut.file_len, cut.len
        );
        at(
            stop.position.min(cut.first + cut.len.min(cut.file_len)),
            what,
        )
    }

    /// Moves an unsynced tail out of the log.
    fn set_aside(&mut self, stop: &Stop, behind: &Behind) -> Result<()> {
        let what = stop
            .what
            .clone()
            .unwrap_or_else(|| match behind.end == stop.position {
                true => "the log ends inside a transaction".into(),
                false => "nothing is written here, but something is behind it".into(),
            });
        let fault = damage_at(
            &self.segments,
            self.geometry.page,
            Fault {
                position: stop.position,
                what,
            },
        );
        let position = self.good.position;
        let mut tail = UnsyncedTail {
            position: Lsn(position),
            len: behind.end - position,
            fault,
            commits: behind.commits,
            quarantine: None,
        };
        if !self.options.read_only {
            tail.quarantine = Some(self.quarantine(position, behind.end)?);
            self.remove_later_segments()?;
            self.zero(position, behind.end)?;
        }
        self.report.tail = Some(tail);
        Ok(())
    }

    /// Copies positions `from..to` to a file named after place and content, so that doing it again makes no second one.
    fn quarantine(&self, from: u64, to: u64) -> Result<PathBuf> {
        let unfinished = self.dir.join("quarantine.bin.tmp");
        let fail = |action| Error::io(&unfinished, action);
        remove_if_there(&*self.vfs, &unfinished).map_err(fail("remove"))?;
        let file = self
            .vfs
            .open(&unfinished, OpenMode::CreateNew)
            .map_err(fail("create"))?;
        let mut crc = crc32fast::Hasher::new();
        let mut at = QUARANTINE_HEADER_LEN as u64;
        let mut bytes = vec![0; COPY_LEN];
        for segment in &self.segments {
            let end = to.min(segment.first + segment.len.min(segment.file_len));
            let mut position = from.max(segment.first);
            while position < end {
                let len = (end - position).min(COPY_LEN as u64) as usize;
                let Some(bytes) = bytes.get_mut(..len) else {
                    break;
                };
                segment.read(&*self.vfs, bytes, position - segment.first)?;
                crc.update(bytes);
                file.write_at(bytes, at).map_err(fail("write"))?;
                at += len as u64;
                position += len as u64;
            }
        }
        let crc = crc.finalize();
        let mut header = Vec::with_capacity(QUARANTINE_HEADER_LEN);
        header.extend_from_slice(&QUARANTINE_MAGIC);
        header.extend_from_slice(&self.geometry.database);
        header.extend_from_slice(&from.to_le_bytes());
        header.extend_from_slice(&(at - QUARANTINE_HEADER_LEN as u64).to_le_bytes());
        header.extend_from_slice(&crc.to_le_bytes());
        header.resize(QUARANTINE_HEADER_LEN, 0);
        file.write_at(&header, 0).map_err(fail("write"))?;
        file.sync().map_err(fail("sync"))?;
        let path = self
            .dir
            .join(format!("quarantine-{from:020}-{crc:08x}.bin"));
        self.vfs
            .rename(&unfinished, &path)
            .map_err(Error::io(&path, "rename"))?;
        self.sync_dir()?;
        Ok(path)
    }

    fn remove_later_segments(&mut self) -> Result<()> {
        while self.segments.len() > self.good_segment + 1 {
            let Some(segment) = self.segments.pop() else {
                break;
            };
            self.vfs
                .remove(&segment.path)
                .map_err(Error::io(&segment.path, "remove"))?;
            self.sync_dir()?;
            self.report.removed.push(segment.path.clone());
        }
        Ok(())
    }

    fn zero(&self, from: u64, to: u64) -> Result<()> {
        let Some(segment) = self.segments.last() else {
            return Ok(());
        };
        let end = to.min(segment.end());
        let file = segment.file(&*self.vfs)?;
        let zeros = vec![0; COPY_LEN];
        let mut position = from;
        while position < end {
            let len = (end - position).min(COPY_LEN as u64) as usize;
            let zeros = zeros.get(..len).unwrap_or_default();
            file.write_at(zeros, position - segment.first)
                .map_err(Error::io(&segment.path, "write"))?;
            position += len as u64;
        }
        file.sync().map_err(Error::io(&segment.path, "sync"))
    }

    fn sync_dir(&self) -> Result<()> {
        self.vfs
            .sync_dir(&self.dir)
            .map_err(Error::io(&self.dir, "sync"))
    }

    fn open(mut self, damage: Option<Damage>) -> Result<(Log, RecoveryReport)> {
        let (vfs, limits) = (Arc::clone(&self.vfs), self.options.limits.clone());
        if self.options.read_only {
            let log = Log::read_only(
                vfs,
                &self.dir,
                self.geometry,
                limits,
                self.segments,
                &self.good,
                damage,
            )?;
            return Ok((log, self.report));
        }
        let page = self.geometry.page.bytes();
        let mut spares = BTreeMap::new();
        for spare in self.segments.drain(self.good_segment + 1..) {
            if spare.file_len.is_multiple_of(page) {
                let file = Arc::clone(spare.file(&*vfs)?);
                spares.insert(
                    spare.number,
                    Spare {
                        path: spare.path.clone(),
                        len: spare.file_len,
                        file,
                    },
                );
            }
        }
        let log = Log::assemble(
            vfs,
            &self.dir,
            self.geometry,
            limits,
            self.segments,
            self.good,
            spares,
        )?;
        Ok((log, self.report))
    }
}

/// The headers of all segment files, which must be numbered without a gap.
fn load_segments(
    vfs: &dyn Vfs,
    dir: &Path,
    names: &[String],
    read_only: bool,
) -> Result<Vec<Arc<Segment>>> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    let mode = if read_only {
        OpenMode::Read
    } else {
        OpenMode::ReadWrite
    };
    let mut segments = Vec::with_capacity(numbers.len());
    let mut first = 0;
    for expected in 1..=numbers.len().max(1) as u64 {
        if numbers.get(expected as usize - 1) != Some(&expected) {
            return Err(Error::MissingSegment {
                path: dir.join(file_name(expected)),
                number: expected,
            });
        }
        let segment = Segment::load(vfs, dir, expected, first, mode)?;
        first = segment.end();
        segments.push(Arc::new(segment));
    }
    Ok(segments)
}

/// Refuses what must not be opened, before anything is changed, and gives what the first header fixes.
fn check_headers(segments: &[Arc<Segment>], options: &OpenOptions) -> Result<Geometry> {
    for segment in segments {
        let newer = |what| {
            Err(Error::NewerFormat {
                path: segment.path.clone(),
                what,
            })
        };
        match &segment.header {
            HeaderState::Newer(what) => return newer(what.clone()),
            HeaderState::Valid(header)
                if header.unknown_read_compatible() != 0 && !options.read_only =>
            {
                let features = header.unknown_read_compatible();
                return newer(format!(
                    "features {features:#x}, with which it may only be opened read-only"
                ));
            }
            _ => {}
        }
    }
    let Some(first) = segments.first() else {
        return Err(Error::MissingSegment {
            path: PathBuf::new(),
            number: 1,
        });
    };
    let smallest = PageSize::new(crate::log_page::MIN_PAGE_SIZE)?;
    let header = match &first.header {
        HeaderState::Valid(header) => header,
        HeaderState::WrongMagic(found) => {
            let (path, found) = (first.path.clone(), found.clone());
            return Err(Error::WrongMagic {
                path,
                expected: "a holotype log",
                found,
            });
        }
        HeaderState::Fault(what) | HeaderState::Newer(what) => {
            return Err(Error::Damaged(first.damage(0, smallest, what.clone())));
        }
        HeaderState::Blank => {
            return Err(Error::Damaged(first.damage(
                0,
                smallest,
                "the header is zero",
            )));
        }
    };
    if let Some(expected) = options.database
        && expected != header.database
    {
        return Err(Error::WrongDatabase {
            path: first.path.clone(),
            expected,
            found: header.database,
        });
    }
    let page = PageSize::new(header.page_size)?;
    Ok(Geometry {
        database: header.database,
        page,
        seed: CrcSeed::new(&header.database),
    })
}

/// Makes durable what is about to be believed.
fn sync_from(vfs: &dyn Vfs, dir: &Path, segments: &[Arc<Segment>], from: u64) -> Result<()> {
    for segment in segments.iter().filter(|segment| segment.end() > from) {
        segment
            .file(vfs)?
            .sync()
            .map_err(Error::io(&segment.path, "sync"))?;
    }
    vfs.sync_dir(dir).map_err(Error::io(dir, "sync"))
}

fn remove_unfinished(
    vfs: &dyn Vfs,
    dir: &Path,
    names: &[String],
    report: &mut RecoveryReport,
) -> Result<()> {
    for name in names.iter().filter(|name| name.ends_with(".tmp")) {
        let path = dir.join(name);
        remove_if_there(vfs, &path).map_err(Error::io(&path, "remove"))?;
        report.removed.push(path);
    }
    Ok(())
}

/// A scanner where checking begins.
fn enter(
    vfs: &Arc<dyn Vfs>,
    geometry: &Geometry,
    segments: &[Arc<Segment>],
    from: Option<Checkpoint>,
    limit: u64,
) -> Result<Scanner> {
    let (vfs, geometry, all) = (Arc::clone(vfs), geometry.clone(), segments.to_vec());
    let page = geometry.page;
    let Some(from) = from else {
        return Ok(Scanner::at_start(vfs, geometry, all, limit));
    };
    let mismatch = |why| {
        Err(Error::CheckpointMismatch {
            position: from.position,
            why,
        })
    };
    let scanner = match Scanner::at(vfs, geometry, all, limit, from.position.0)? {
        Entry::Ready(scanner) => *scanner,
        Entry::Mismatch(why) => return mismatch(why),
        Entry::Fault(fault) => return Err(Error::Damaged(damage_at(segments, page, fault))),
    };
    let found = scanner.tip().public_head();
    if found != from {
        return mismatch(format!(
            "the log has commit {} there, with another head",
            found.commit
        ));
    }
    Ok(scanner)
}
