//! Bit rot: a random damage to one file of a database must not change an answer in silence.
//!
//! Six databases are damaged: one that was closed, one that crashed, one each after `compact`, `forget` and `retain`,
//! and one with a graph that refers to the log for its vectors. A damage flips bits, zeroes a range, cuts the file,
//! swaps two blocks of it, puts an older file of the same database in its place, removes it, or puts the log and LOCK
//! back as they were earlier. Then the database is opened for reading and for writing, and
//!
//! 1. opening says what is wrong, or the answers to a set of questions are the same as before the damage, or the
//!    reader is told: by the report of opening, by a note of the answer, or by an error in its place;
//! 2. `verify` of the damaged database fails if any answer changed;
//! 3. nothing panics.
//!
//! Case N of seed S is always the same damage.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holotype::answer::Output;
use holotype::interchange::export;
use holotype::query::{ParamValue, Params};
use holotype::{
    Durability, Forget, Holotype, Mark, Metric, NewRecall, NewTrace, Options, Pointer, Snapshot, Space, Status,
};
use holotype_storage::vfs::{Crash, SimVfs};

use crate::explore::Random;
use crate::story::{DATABASE, are_logged, files, options};

/// The questions whose answers are compared, beside an export.
const QUESTIONS: [&str; 10] = [
    "recall 'price of flight 7' near $v limit 12",
    "recall 'bag weight' in episode 'e2' relax below 9 expand depth 2",
    "find items return *",
    "find traces where text contains 'flight 1' order by step",
    "find traces where status = failed",
    "find claims",
    "find edges",
    "show episodes",
    "show pages",
    "show settings",
];

/// A database to damage.
struct Base {
    name: &'static str,
    disk: SimVfs,
    /// The files of the same database at an earlier time.
    earlier: BTreeMap<PathBuf, Vec<u8>>,
    answers: Vec<Said>,
}

/// An answer as text, and its notes; an error is a note, too.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    text: String,
    notes: Vec<String>,
}

/// The cases that were tried, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// No answer changed, and nothing was said.
    pub unchanged: u64,
    /// No answer changed; opening or `verify` says what is wrong or what was made again.
    pub told: u64,
    /// Opening refused.
    pub refused: u64,
    /// An answer changed, and the caller was told.
    pub changed: u64,
}

/// Tries `count` damages from `seed`. Returns what became of them, and every broken promise in words.
pub fn run(seed: u64, count: u64) -> (Tally, Vec<String>) {
    let bases = bases();
    let mut tally = Tally::default();
    let mut broken = Vec::new();
    for case in 0..count {
        let mut random = Random(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let base = &bases[random.below(bases.len() as u64) as usize];
        let disk = base.disk.crash(Crash::Keep);
        let what = damage(&disk, base, &mut random);
        let judged = catch_unwind(AssertUnwindSafe(|| judge(base, &disk, &mut tally)));
        let wrong = match judged {
            Ok(wrong) => wrong,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                Some(format!("a panic: {}", text.unwrap_or_default()))
            }
        };
        broken.extend(wrong.map(|wrong| format!("case {case} of seed {seed}, {}: {what}: {wrong}", base.name)));
    }
    (tally, broken)
}

/// Damages one file; returns the damage in words.
fn damage(disk: &SimVfs, base: &Base, random: &mut Random) -> String {
    let names = files(disk);
    let path = &names[random.below(names.len() as u64) as usize];
    let mut bytes = disk.bytes(path).unwrap_or_default();
    let len = bytes.len().max(1) as u64;
    let name = path.display();
    match random.below(if base.earlier.contains_key(path) { 7 } else { 6 }) {
        0 => {
            let flips = 1 + random.below(4);
            for _ in 0..flips {
                let at = random.below(len) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            disk.replace(path, &bytes);
            format!("{flips} bits of {name} flipped")
        }
        1 => {
            let from = random.below(len) as usize;
            let to = (from + 1 + random.below(5_000) as usize).min(bytes.len());
            bytes.get_mut(from..to).unwrap_or_default().fill(0);
            disk.replace(path, &bytes);
            format!("{name} zeroed from {from} to {to}")
        }
        2 => {
            let cut = random.below(len);
            bytes.truncate(cut as usize);
            disk.replace(path, &bytes);
            format!("{name} cut to {cut} of {len}")
        }
        3 => {
            let size = if random.below(2) == 0 { 512 } else { 4096 };
            let (one, other) = (random.below(len) as usize / size, random.below(len) as usize / size);
            for at in 0..size {
                if (one.max(other) * size + at) < bytes.len() {
                    bytes.swap(one * size + at, other * size + at);
                }
            }
            disk.replace(path, &bytes);
            format!("blocks {one} and {other} of {size} bytes of {name} swapped")
        }
        4 => {
            remove(disk, path);
            format!("{name} removed")
        }
        5 => {
            for path in
                names.iter().filter(|path| path.ends_with("LOCK") || path.extension().is_some_and(|it| it == "log"))
            {
                match base.earlier.get(path) {
                    Some(earlier) => disk.replace(path, earlier),
                    None => remove(disk, path),
                }
            }
            "LOCK and all log files replaced by older ones".to_owned()
        }
        _ => {
            disk.replace(path, &base.earlier[path]);
            format!("{name} replaced by an older one")
        }
    }
}

fn remove(disk: &SimVfs, path: &Path) {
    use holotype_storage::vfs::Vfs as _;
    let _ = disk.remove(path);
    let _ = path.parent().map(|dir| disk.sync_dir(dir));
    let _ = disk.objections();
}

/// A reader's view of a damaged database.
struct View {
    answers: Vec<Said>,
    /// True if the report of opening says that something is wrong.
    is_reported: bool,
    /// True if opening made derived files again.
    is_rebuilt: bool,
}

/// Opens the database both ways; returns the broken promise.
fn judge(base: &Base, disk: &SimVfs, tally: &mut Tally) -> Option<String> {
    let to_read = disk.crash(Crash::Keep);
    let (reading, is_sound) = match open(&to_read, true) {
        Err(_) => (None, false),
        Ok(database) => {
            let view = look(&database);
            (Some(view), database.verify(&mut |_, _| {}).is_ok_and(|report| report.is_clean()))
        }
    };
    let to_write = disk.crash(Crash::Keep);
    let writing = open(&to_write, false).ok().map(|database| look(&database));
    let mut changed = false;
    for (view, how) in [(&reading, "reading"), (&writing, "writing")] {
        let Some(view) = view else { continue };
        for (at, (now, before)) in view.answers.iter().zip(&base.answers).enumerate() {
            if now.text == before.text {
                continue;
            }
            changed = true;
            let question = QUESTIONS.get(at).copied().unwrap_or("export");
            let differs = first_difference(&now.text, &before.text);
            if !view.is_reported && now.notes == before.notes {
                return Some(format!("opened for {how}, `{question}` is answered otherwise in silence: {differs}"));
            }
            if is_sound {
                return Some(format!("opened for {how}, `{question}` changed, and verify finds nothing: {differs}"));
            }
        }
    }
    let is_told = |view: &View| view.is_reported || view.is_rebuilt;
    let count = match (&reading, &writing) {
        _ if changed => &mut tally.changed,
        (None, _) | (_, None) => &mut tally.refused,
        (Some(one), Some(other)) if is_told(one) || is_told(other) || !is_sound => &mut tally.told,
        _ => &mut tally.unchanged,
    };
    *count += 1;
    None
}

fn first_difference(now: &str, before: &str) -> String {
    let short = |line: &str| line.chars().take(300).collect::<String>();
    let differs = now.lines().zip(before.lines()).find(|(now, before)| now != before);
    match differs {
        Some((now, before)) => format!("{} instead of {}", short(now), short(before)),
        None => format!("{} lines instead of {}", now.lines().count(), before.lines().count()),
    }
}

fn open(disk: &SimVfs, read_only: bool) -> holotype::Result<Holotype> {
    Holotype::open_on(Arc::new(disk.clone()), DATABASE, Options { read_only, ..options() })
}

fn look(database: &Holotype) -> View {
    let report = database.report();
    let is_reported = report.damage.is_some() || !report.recovery.is_empty() || !report.skipped.is_empty();
    View { answers: answers(&database.snapshot()), is_reported, is_rebuilt: report.rebuilt.is_some() }
}

/// The answers to all questions, and an export.
fn answers(snapshot: &Snapshot) -> Vec<Said> {
    let params = Params::from([("v".to_owned(), ParamValue::Vector(vec![0.5, 1.0, 0.25]))]);
    let failed = |error: holotype::Error| Said { text: format!("error: {error}"), notes: vec![error.to_string()] };
    let mut answers: Vec<_> =
        QUESTIONS.iter().map(|question| snapshot.query(question, &params).map_or_else(failed, said)).collect();
    let mut lines = Vec::new();
    let exported = export(snapshot, &mut lines, None);
    let text = String::from_utf8_lossy(&lines).into_owned();
    answers.push(exported.map_or_else(failed, |_| Said { text, notes: Vec::new() }));
    answers
}

/// An answer without durations.
fn said(outputs: Vec<Output>) -> Said {
    let mut said = Said { text: String::new(), notes: Vec::new() };
    for output in outputs {
        match output {
            Output::Answer(mut answer) => {
                answer.micros = 0;
                said.notes.append(&mut answer.notes);
                said.text.push_str(&format!("{answer:#?}\n"));
            }
            Output::Table(mut table) => {
                said.notes.append(&mut table.notes);
                said.text.push_str(&format!("{table:#?}\n"));
            }
            other => said.text.push_str(&format!("{other:?}\n")),
        }
    }
    said
}

/// The databases, undamaged.
fn bases() -> Vec<Base> {
    type Deed = fn(&Holotype) -> holotype::Result<()>;
    let deeds: [(&'static str, bool, Deed); 6] = [
        ("closed", true, |_| Ok(())),
        ("crashed", false, |_| Ok(())),
        ("compacted", true, |database| database.compact().map(drop)),
        ("forgotten", true, |database| {
            let item = database.snapshot().get("t5")?.map(|item| item.id);
            database.forget(item.as_slice(), &Forget::because("asked")).map(drop)
        }),
        ("retained", true, |database| database.retain(12, None).map(drop)),
        ("linked", true, fill),
    ];
    let bases: Vec<Base> = deeds.into_iter().map(|(name, closes, deed)| base(name, closes, deed)).collect();
    assert!(bases.iter().any(|base| are_logged(&base.disk).contains(&true)), "a graph that refers to the log");
    bases
}

fn base(name: &'static str, closes: bool, deed: fn(&Holotype) -> holotype::Result<()>) -> Base {
    let made = || -> holotype::Result<Base> {
        let disk = SimVfs::new();
        let options = Options { space: Some(Space::new("test", 3).metric(Metric::L2)), ..options() };
        let database = Holotype::create_on(Arc::new(disk.clone()), DATABASE, options)?;
        for number in 0..16 {
            write(&database, number)?;
            if number % 6 == 5 {
                database.checkpoint()?;
            }
        }
        database.close()?;
        let earlier = files(&disk).into_iter().map(|path| (path.clone(), disk.bytes(&path).unwrap_or_default()));
        let earlier = earlier.collect();
        let database = open(&disk, false)?;
        (16..22).try_for_each(|number| write(&database, number))?;
        deed(&database)?;
        database.checkpoint()?;
        (22..25).try_for_each(|number| write(&database, number))?;
        let disk = match closes {
            true => database.close().map(|()| disk)?,
            false => disk.crash(Crash::Keep),
        };
        let disk = disk.crash(Crash::Keep);
        let answers = answers(&open(&disk.crash(Crash::Keep), true)?.snapshot());
        Ok(Base { name, disk, earlier, answers })
    };
    made().expect("databases on a disk without faults are made")
}

/// Records as many vectors as become a graph.
fn fill(database: &Holotype) -> holotype::Result<()> {
    let mut random = Random(1);
    let mut transaction = database.begin()?;
    for number in 0..2_048 {
        let trace = NewTrace::turn("e4", format!("passenger {number}"));
        transaction.record(trace.vector((0..3).map(|_| random.below(2_048) as f32 / 16.0).collect()))?;
    }
    transaction.commit(Durability::Sync)?;
    Ok(())
}

fn write(database: &Holotype, number: u64) -> holotype::Result<()> {
    let mut transaction = database.begin()?;
    let episode = format!("e{}", number % 4);
    let text = format!("flight {number} has price={} and a bag weight of {} kg", 400 + number, number % 5 + 18);
    let key = format!("t{number}");
    let at = number as f32;
    let status = if number.is_multiple_of(5) { Status::Failed } else { Status::Success };
    let call = NewTrace::call(episode, "search", text).key(key.clone()).status(status);
    let call = transaction.record(call.vector(vec![1.0, at, 0.5]))?;
    let quoted = Pointer::to_key(key).quoting(format!("price={}", 400 + number));
    let fact = NewRecall::fact(format!("flight {number} costs {}", 400 + number)).key(format!("r{number}"));
    let fact = transaction.remember(fact.from(quoted).vector(vec![at, 1.0, 0.25]))?;
    transaction.claim(fact, &format!("F{}.price", number % 7), &format!("{}", 400 + number), false, &[])?;
    if number.is_multiple_of(3) {
        transaction.mark(call, Mark::Utility(0.5, 2), Some("it helped".to_owned()))?;
    }
    transaction.commit(Durability::Sync)?;
    Ok(())
}
