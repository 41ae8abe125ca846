//! Mutants of the rules of trust: each rule has a short story of one or two handles, which is told twice. On the disk
//! itself the story must end well. On a layer over the disk that breaks the rule it must end with a broken promise, or
//! else nothing would notice that the rule is gone.
//!
//! | rule | the layer | the promise |
//! |---|---|---|
//! | one at a time | gives the turn to every handle that asks | no transaction begins while another handle has one |
//! | catch-up | shows a handle the log as it was when it opened | nothing that another handle committed is lost |
//! | LOCK as a hint | shows no more of the log than an old LOCK states | an old LOCK hides no commit |
//! | witness | keeps the witness in the database directory | a rolled back directory is refused |
//! | damage | hides the note of damage | nothing is written once damage is known |
//! | forgetting | keeps files that are to be removed | a forget that failed is finished |
//! | no symbolic links | takes links for directories | nothing changes behind a link |
//! | stale files | makes all files as old as the oldest one | a file that was replaced by an older one is noticed |

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holotype::{Durability, Forget, Holotype, NewTrace, Options};
use holotype_storage::vfs::{Crash, Failure, LockKind, Mapping, OpenMode, Operation, SimVfs, Vfs, VfsFile};

use crate::story::{self, DATABASE, files};

/// A rule of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One handle at a time has the turn.
    OneAtATime,
    /// The handle that takes the turn reads what others appended.
    CatchUp,
    /// LOCK never hides what the log has.
    LockIsAHint,
    /// The witness lies outside of the database directory.
    Witness,
    /// Damage that is known stops writes.
    DamageStopsWrites,
    /// A forget that is durable is finished.
    ForgettingEnds,
    /// Nothing inside of the directory is a symbolic link.
    NoSymlinks,
    /// Files date each other, and so an older one among them is noticed.
    NoStaleFiles,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 8] = [
        Rule::OneAtATime,
        Rule::CatchUp,
        Rule::LockIsAHint,
        Rule::Witness,
        Rule::DamageStopsWrites,
        Rule::ForgettingEnds,
        Rule::NoSymlinks,
        Rule::NoStaleFiles,
    ];

    /// Tells the story of the rule, on a layer that breaks it or on the disk itself.
    ///
    /// # Errors
    /// The promise that was broken.
    pub fn tell(self, is_broken: bool) -> Result<(), String> {
        let view = |disk: &SimVfs| DiskView { disk: disk.clone(), rule: is_broken.then_some(self), frozen: None };
        let told = catch_unwind(AssertUnwindSafe(|| match self {
            Rule::OneAtATime => two_transactions(view),
            Rule::CatchUp => two_writers(view),
            Rule::LockIsAHint => old_lock(view),
            Rule::Witness => rolled_back(view),
            Rule::DamageStopsWrites => damaged(view),
            Rule::ForgettingEnds => forgotten(view),
            Rule::NoSymlinks => linked(view),
            Rule::NoStaleFiles => stale(view),
        }));
        told.unwrap_or_else(|panic| {
            Err(format!("a panic: {}", panic.downcast_ref::<String>().map_or("no words", String::as_str)))
        })
    }
}

// ---- the stories ----

type Told = Result<(), String>;

fn said(error: holotype::Error) -> String {
    error.to_string()
}

/// Options of a handle that takes turns and does not wait for them.
fn in_turns() -> Options {
    Options { exclusive: false, write_timeout: Duration::ZERO, ..story::options() }
}

fn open(view: DiskView, options: Options) -> holotype::Result<Holotype> {
    Holotype::open_on(Arc::new(view), DATABASE, options)
}

fn created(disk: &SimVfs, options: Options) -> Result<Holotype, String> {
    Holotype::create_on(Arc::new(disk.clone()), DATABASE, options).map_err(said)
}

fn write(database: &Holotype, key: &str) -> holotype::Result<()> {
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::turn("e", format!("said velvet {key}")).key(key))?;
    transaction.commit(Durability::Sync).map(drop)
}

/// Fails unless the database on the disk, as a crash leaves it, has these keys and verifies.
fn expect_keys(disk: &SimVfs, keys: &[&str]) -> Told {
    let database = story::open(&disk.crash(Crash::Keep)).map_err(said)?;
    for key in keys {
        if database.snapshot().get(key).map_err(said)?.is_none() {
            return Err(format!("{key} was acknowledged and is lost"));
        }
    }
    let faults = database.verify(&mut |_, _| {}).map_err(said)?.faults;
    if faults.is_empty() { Ok(()) } else { Err(format!("it does not verify: {faults:?}")) }
}

fn two_transactions(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    let disk = SimVfs::new();
    let one = created(&disk, in_turns())?;
    let other = open(view(&disk), in_turns()).map_err(said)?;
    let mut first = one.begin().map_err(said)?;
    first.record(NewTrace::turn("e", "first").key("first")).map_err(said)?;
    if other.begin().is_ok() {
        return Err("two handles have a transaction at once".to_owned());
    }
    first.commit(Durability::Sync).map_err(said)?;
    write(&other, "second").map_err(said)?;
    drop((one, other));
    expect_keys(&disk, &["first", "second"])
}

fn two_writers(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    let disk = SimVfs::new();
    let one = created(&disk, in_turns())?;
    write(&one, "first").map_err(said)?;
    let before = disk.crash(Crash::Keep);
    let other = open(view(&disk).with_old_log(before), in_turns()).map_err(said)?;
    write(&one, "second").map_err(said)?;
    write(&other, "third").map_err(said)?;
    write(&one, "fourth").map_err(said)?;
    drop((one, other));
    expect_keys(&disk, &["first", "second", "third", "fourth"])
}

fn old_lock(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    let disk = SimVfs::new();
    let database = created(&disk, story::options())?;
    write(&database, "first").map_err(said)?;
    let before = disk.crash(Crash::Keep);
    write(&database, "second").map_err(said)?;
    let after = disk.crash(Crash::Keep);
    let lock = Path::new(DATABASE).join("LOCK");
    after.replace(&lock, &before.bytes(&lock).map_err(|error| error.to_string())?);
    for read_only in [true, false] {
        let options = Options { read_only, ..story::options() };
        let reader = open(view(&after).with_old_log(before.clone()), options).map_err(said)?;
        if reader.snapshot().get("second").map_err(said)?.is_none() && reader.report().recovery.is_empty() {
            return Err("an old LOCK hides a commit".to_owned());
        }
    }
    Ok(())
}

fn rolled_back(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    let disk = SimVfs::new();
    let options = || Options { witness: Some(PathBuf::from(WITNESS)), ..story::options() };
    let database = Holotype::create_on(Arc::new(view(&disk)), DATABASE, options()).map_err(said)?;
    write(&database, "first").map_err(said)?;
    let before = disk.crash(Crash::Keep);
    write(&database, "second").map_err(said)?;
    drop(database);
    let after = disk.crash(Crash::Keep);
    for path in files(&after) {
        after.remove(&path).map_err(|error| error.to_string())?;
    }
    for path in files(&before) {
        after.replace(&path, &before.bytes(&path).map_err(|error| error.to_string())?);
    }
    drop(after.objections());
    match open(view(&after), options()) {
        Err(holotype::Error::RolledBack { .. }) => Ok(()),
        Err(error) => Err(format!("it is refused for another reason: {error}")),
        Ok(_) => Err("a rolled back directory opens".to_owned()),
    }
}

fn damaged(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    let disk = SimVfs::new();
    let database = created(&disk, story::options())?;
    write(&database, "first").map_err(said)?;
    write(&database, "second").map_err(said)?;
    database.close().map_err(said)?;
    let log = Path::new(DATABASE).join("log/0000000001.log");
    let bytes = disk.bytes(&log).map_err(|error| error.to_string())?;
    let at = bytes.windows(5).position(|window| window == b"first").ok_or("the text stands in the log")?;
    let (noted, flipped) = (disk.crash(Crash::Keep), disk);
    flipped.flip(&log, at as u64, 1).map_err(|error| error.to_string())?;
    let reader = open(view(&flipped), Options::read_only()).map_err(said)?;
    let report = reader.verify(&mut |_, _| {}).map_err(said)?;
    if report.is_clean() {
        return Err("the damage is not found".to_owned());
    }
    reader.note_verified(&report).map_err(said)?;
    drop(reader);
    // The log reads well again, so that only the note tells of the damage.
    flipped.replace(&log, &noted.bytes(&log).map_err(|error| error.to_string())?);
    match open(view(&flipped), story::options()) {
        Err(holotype::Error::WritesRefused { .. }) => Ok(()),
        Err(error) => Err(format!("it is refused for another reason: {error}")),
        Ok(_) => Err("writes go on although damage is known".to_owned()),
    }
}

fn forgotten(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    let disk = SimVfs::new();
    let database = created(&disk, story::options())?;
    for key in ["first", "second", "third"] {
        write(&database, key).map_err(said)?;
    }
    database.checkpoint().map_err(said)?;
    drop(database);
    let forget = |database: &Holotype| -> holotype::Result<()> {
        let all = ["first", "second", "third"].map(|key| database.snapshot().get(key));
        let all = all.into_iter().filter_map(|item| item.ok()??.id.into()).collect::<Vec<_>>();
        database.forget(&all, &Forget::because("asked")).map(drop)
    };
    let whole = disk.crash(Crash::Keep);
    let database = open(view(&whole), story::options()).map_err(said)?;
    let before = whole.calls();
    forget(&database).map_err(said)?;
    let failing = whole.changing_calls().into_iter().filter_map(|call| call.checked_sub(before));
    let failing: Vec<u64> = failing.collect();
    drop(database);
    for call in failing {
        let disk = disk.crash(Crash::Keep);
        let database = open(view(&disk), story::options()).map_err(said)?;
        disk.fail_at(disk.calls() + call, Failure::Io, false);
        let failed = forget(&database);
        disk.heal();
        drop(database);
        let database = open(view(&disk), story::options()).map_err(said)?;
        drop(database.begin().map_err(said)?);
        let is_gone = database.snapshot().get("first").map_err(said)?.is_none_or(|item| item.attributes.redacted);
        drop(disk.objections());
        if is_gone || failed.is_ok() {
            let holds =
                |path: &PathBuf| disk.bytes(path).is_ok_and(|bytes| bytes.windows(6).any(|window| window == b"velvet"));
            if let Some(path) = disk.files().iter().find(|path| holds(path)) {
                return Err(format!("call {call} failed, and {} still has the forgotten text", path.display()));
            }
        }
    }
    Ok(())
}

fn linked(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    for name in ["columns", "words", "log", "LOCK", "catalog.redb"] {
        let disk = SimVfs::new();
        let database = created(&disk, story::options())?;
        write(&database, "first").map_err(said)?;
        database.close().map_err(said)?;
        let disk = disk.crash(Crash::Keep);
        let link = Path::new(DATABASE).join(name);
        disk.make_symlink(&link);
        if let Ok(database) = open(view(&disk), story::options()) {
            let _ = write(&database, "second");
            let _ = database.checkpoint();
            let _ = database.compact();
        }
        drop(disk.objections());
        let changed = disk.history().into_iter().find(|operation| changes(operation, &link));
        if let Some(operation) = changed {
            return Err(format!("behind the link {}: {}", link.display(), kind(&operation)));
        }
    }
    Ok(())
}

/// Replaces each file by what it was at an earlier time. LOCK and the log, which only their own content and that of the
/// others dates, must not lead to an answer that lacks a commit in silence.
fn stale(view: impl Fn(&SimVfs) -> DiskView) -> Told {
    let disk = SimVfs::new();
    let database = created(&disk, story::options())?;
    write(&database, "first").map_err(said)?;
    database.checkpoint().map_err(said)?;
    let before = disk.crash(Crash::Keep);
    write(&database, "second").map_err(said)?;
    database.close().map_err(said)?;
    let after = disk.crash(Crash::Keep);
    for path in files(&before) {
        let stale = after.crash(Crash::Keep);
        stale.replace(&path, &before.bytes(&path).map_err(|error| error.to_string())?);
        for read_only in [true, false] {
            let options = Options { read_only, ..story::options() };
            let disk = stale.crash(Crash::Keep);
            let Ok(database) = open(view(&disk).with_old_log(before.clone()), options) else { continue };
            let report = database.report();
            let is_told = report.damage.is_some() || !report.recovery.is_empty() || report.rebuilt.is_some();
            let is_there = database.snapshot().get("second").map_err(said)?.is_some();
            if !is_there && !is_told {
                return Err(format!("{} is an older one, and a commit is missing in silence", path.display()));
            }
        }
    }
    Ok(())
}

/// True if something behind the link changed. A link itself may be removed and replaced.
fn changes(operation: &Operation, link: &Path) -> bool {
    let below = |path: &Path| path.starts_with(link) && path != link;
    match operation {
        Operation::Create(path) | Operation::Remove(path) => below(path),
        Operation::Rename(from, to) => below(from) || below(to),
        _ => false,
    }
}

/// The change without its bytes.
fn kind(operation: &Operation) -> String {
    match operation {
        Operation::Write { path, offset, bytes } => {
            format!("{} bytes at {offset} of {}", bytes.len(), path.display())
        }
        other => format!("{other:?}"),
    }
}

// ---- the layer ----

const WITNESS: &str = "/seen";

/// The bytes of LOCK that decide who has the turn: see `docs/format.md`.
const TURN: Range<u64> = (1 << 61) + 3..(1 << 61) + 4;

/// A disk, or a layer over it that breaks a rule.
#[derive(Clone, Debug)]
struct DiskView {
    disk: SimVfs,
    rule: Option<Rule>,
    /// Log files as they were earlier, for rules whose layer shows those.
    frozen: Option<SimVfs>,
}

impl DiskView {
    /// The same with the log files of this disk in the place of the newer ones, where the rule is broken.
    fn with_old_log(self, old: SimVfs) -> Self {
        let frozen = self.rule.map(|_| old);
        Self { frozen, ..self }
    }

    fn breaks(&self, rule: Rule) -> bool {
        self.rule == Some(rule)
    }

    /// The place of a file: the witness moves into the directory where that rule is broken.
    fn place(&self, path: &Path) -> PathBuf {
        match path.to_str().and_then(|path| path.strip_prefix(WITNESS)) {
            Some(end) if self.breaks(Rule::Witness) => Path::new(DATABASE).join(format!("seen{end}")),
            _ => path.to_owned(),
        }
    }
}

impl Vfs for DiskView {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        if self.breaks(Rule::DamageStopsWrites) && mode == OpenMode::Read && path.ends_with("DAMAGE") {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = self.disk.open(&self.place(path), mode)?;
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        let is_frozen = is_log || self.breaks(Rule::NoStaleFiles);
        let frozen = self.frozen.as_ref().filter(|_| is_frozen).and_then(|frozen| frozen.bytes(path).ok());
        Ok(Arc::new(File { file, rule: self.rule, frozen }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        self.disk.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(&self.place(from), &self.place(to))
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename_dir(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let is_derived = path.extension().is_some_and(|end| end == "wseg" || end == "redb" || end == "cseg");
        if self.breaks(Rule::ForgettingEnds) && is_derived {
            return Ok(());
        }
        self.disk.remove(&self.place(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn map(&self, path: &Path) -> io::Result<Mapping> {
        let frozen = self.frozen.as_ref().filter(|_| self.breaks(Rule::NoStaleFiles));
        frozen.map_or_else(|| self.disk.map(path), |frozen| frozen.map(path))
    }

    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        if self.breaks(Rule::NoSymlinks) { Ok(false) } else { self.disk.is_symlink(path) }
    }

    fn is_network(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_network(path)
    }
}

#[derive(Debug)]
struct File {
    file: Arc<dyn VfsFile>,
    rule: Option<Rule>,
    /// The bytes that reads see instead of the content.
    frozen: Option<Vec<u8>>,
}

impl VfsFile for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let old = self.frozen.as_ref().and_then(|frozen| {
            let from = usize::try_from(offset).ok()?;
            frozen.get(from..from.checked_add(buf.len())?)
        });
        match old {
            Some(old) => {
                buf.copy_from_slice(old);
                Ok(())
            }
            None => self.file.read_at(buf, offset),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        match &self.frozen {
            Some(frozen) if self.rule == Some(Rule::NoStaleFiles) => Ok(frozen.len() as u64),
            _ => self.file.len(),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn try_lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
        if self.rule == Some(Rule::OneAtATime) && range == TURN {
            return Ok(true);
        }
        self.file.try_lock(range, kind)
    }

    fn lock(&self, range: Range<u64>, kind: LockKind) -> io::Result<()> {
        self.file.lock(range, kind)
    }

    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        self.file.unlock(range)
    }

    fn is_locked(&self, range: Range<u64>) -> io::Result<bool> {
        self.file.is_locked(range)
    }
}
