//! Bytes that change behind the database's back: bits of every file of a small closed database flipped, every file cut,
//! and pages of every file swapped, put back as they once were, and taken from another database. By default a sample;
//! with `HOLOTYPE_EVERY_BYTE` in the environment a bit of every byte. `HOLOTYPE_EVERY_BIT` names the bits that are
//! flipped of every byte: all with `01234567`, or an eighth of them at a time, for that takes hours.
//!
//! Opening gives a clear error, or works. What then answers otherwise than before is reported by `verify`; derived
//! files that are no good are made again from the log and answer as before. Nothing panics, and no altered text is
//! shown as evidence that was checked.

use crate::observed::{answers, everything, faults};
use holotype::answer::Output;
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{
    Durability, EpisodeChange, Holotype, Mark, NewRecall, NewTrace, Options, Pointer, Snapshot, Source, Space, Status,
    Verdict,
};
use holotype_storage::vfs::{Crash, SimVfs, Vfs};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const DATABASE: &str = "/memory.holo";

const QUESTIONS: &str =
    "recall 'price of UA123' near $v in episode 'trip-42' relax below 9 expand depth 2 within 90 tokens;
    recall 'bag' limit 3;
    find traces where status = failed or text contains 'bag' order by step;
    sources of 'r1'";

fn options() -> Options {
    Options {
        page_size: 4096,
        clock: Arc::new(FixedClock(1_770_000_000_000_000)),
        ..Options::with_space(Space::new("test", 3))
    }
}

/// A closed database in which a little of everything stands, and how its files were before the last transactions.
fn written() -> (SimVfs, SimVfs) {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/")).unwrap();
    let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, options()).unwrap();
    let mut transaction = database.begin().unwrap();
    let price = NewTrace::call("trip-42", "search_flights", "UA123 price=$450")
        .key("t1")
        .status(Status::Success)
        .vector(vec![1.0, 0.0, 0.0]);
    transaction.record(price).unwrap();
    let question = NewTrace::turn("trip-42", "Is that the price with a bag?").key("t2").source(Source::User);
    transaction.record(question.speaker("Ann").field("mood", "wary").bytes_field("raw", vec![0xff, 0])).unwrap();
    let timeout = NewTrace::call("trip-42", "pay", "HTTP 504").key("t3").status(Status::Failed);
    transaction.record(timeout.vector(vec![0.0, 1.0, 0.0])).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let mut transaction = database.begin().unwrap();
    let fact = NewRecall::fact("UA123 costs $450")
        .key("r1")
        .from(Pointer::to_key("t1").quoting("price=$450"))
        .vector(vec![0.9, 0.1, 0.0]);
    let fact = transaction.remember(fact).unwrap();
    transaction.remember(NewRecall::theme("flight prices").key("th1").child("r1")).unwrap();
    transaction.claim(fact, "UA123.price", "450", false, &[]).unwrap();
    transaction.episode("trip-42", EpisodeChange { open: Some(false), ..EpisodeChange::default() }).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();
    let earlier = sim.crash(Crash::Keep);
    let database = Holotype::open_on(Arc::new(sim.clone()), DATABASE, options()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.mark(fact, Mark::Utility(0.5, 2), Some("it helped".to_owned())).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();
    (sim, earlier)
}

/// Everything a caller can get out of the database, as text.
fn observe(snapshot: &Snapshot) -> Result<String, holotype::Error> {
    let params = Params::from([("v".to_owned(), holotype::query::ParamValue::Vector(vec![1.0, 0.1, 0.0]))]);
    Ok(everything(snapshot)? + &answers(snapshot, QUESTIONS, &params)?)
}

/// The outcome of one case of damage.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing that can be asked changed, and nothing was said.
    Unnoticed,
    /// All is as it was; derived files were made anew, or recovery says what it did.
    Repaired,
    /// An error, or a finding of `verify`.
    Reported,
}

struct Case<'a> {
    disk: SimVfs,
    number: usize,
    file: &'a Path,
    what: String,
}

impl Case<'_> {
    /// Opens the damaged database and holds it to what is promised.
    fn judge(self, original: &str) -> Outcome {
        let context = format!("{} {}", self.file.display(), self.what);
        let judged = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let outcome = judge_opened(&self.disk.crash(Crash::Keep), Options::default(), original, &context);
            if self.number.is_multiple_of(8) {
                judge_opened(&self.disk, Options::read_only(), original, &context);
            }
            outcome
        }));
        judged.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            panic!(
                "{context}: {}",
                text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
            )
        })
    }
}

fn judge_opened(disk: &SimVfs, options: Options, original: &str, context: &str) -> Outcome {
    let read_only = options.read_only;
    let database = match Holotype::open_on(Arc::new(disk.clone()), DATABASE, options) {
        Ok(database) => database,
        Err(error) => {
            assert!(error.to_string().len() > 10, "{context}: {error}");
            return Outcome::Reported;
        }
    };
    let report = database.report().clone();
    if !read_only {
        assert_eq!(report.damage, None, "{context}: what is damaged is open for reading only");
    }
    let snapshot = database.snapshot();
    let faults = faults(&database);
    let reported = !faults.is_empty() || report.damage.is_some();
    if reported {
        assert_texts(&snapshot, original, context);
    } else {
        match observe(&snapshot) {
            Ok(found) if found == original => {}
            Ok(found) => {
                let differs = found.lines().zip(original.lines()).find(|(found, original)| found != original);
                panic!("{context}: silently another answer: {differs:?} {report:?}");
            }
            Err(error) => panic!("{context}: `{error}`, and verify finds nothing"),
        }
    }
    match (reported, report.rebuilt.is_some() || !report.recovery.is_empty()) {
        (true, _) => Outcome::Reported,
        (false, true) => Outcome::Repaired,
        (false, false) => Outcome::Unnoticed,
    }
}

/// Whatever is shown as checked evidence is a text that was written.
fn assert_texts(snapshot: &Snapshot, original: &str, context: &str) {
    let Ok(outputs) = snapshot.query("recall 'price bag' relax below 99", &Params::new()) else { return };
    for output in outputs {
        let Output::Answer(answer) = output else { continue };
        for row in &answer.rows {
            assert!(original.contains(&format!("{:?}", row.text)), "{context}: {:?}", row.text);
            for citation in row.citations.iter().filter(|citation| citation.verdict == Verdict::Ok) {
                assert!(original.contains(&format!("{:?}", citation.text)), "{context}: {citation:?}");
            }
        }
    }
}

/// Judges all cases on all processors, and counts the outcomes.
fn judge_all<'a>(cases: impl Iterator<Item = Case<'a>> + Send, original: &str) -> Vec<(PathBuf, String, Outcome)> {
    let cases = std::sync::Mutex::new(cases);
    let outcomes = std::sync::Mutex::new(Vec::new());
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(4, usize::from) {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == 0 {
                    let Some(case) = cases.lock().unwrap().next() else { return };
                    let (file, what) = (case.file.to_owned(), case.what.clone());
                    match std::panic::catch_unwind(AssertUnwindSafe(|| case.judge(original))) {
                        Ok(outcome) => outcomes.lock().unwrap().push((file, what, outcome)),
                        Err(panic) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            std::panic::resume_unwind(panic);
                        }
                    }
                }
            });
        }
    });
    outcomes.into_inner().unwrap()
}

/// The closed database, how it was earlier, what it answers, where its log ends, and its files.
struct Base {
    sim: SimVfs,
    earlier: SimVfs,
    original: String,
    log_end: u64,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn base() -> Base {
    let (sim, earlier) = written();
    let database = Holotype::open_on(Arc::new(sim.crash(Crash::Keep)), DATABASE, Options::default()).unwrap();
    assert!(faults(&database).is_empty(), "{:?}", faults(&database));
    let original = observe(&database.snapshot()).unwrap();
    let log_end = database.head().position.0;
    let files = sim.files().into_iter().map(|path| (path.clone(), sim.bytes(&path).unwrap())).collect();
    Base { sim, earlier, original, log_end, files }
}

/// The places of a file that get a case: every byte the log was written to and, of the rest, every so many; every byte
/// of every file when the environment says `HOLOTYPE_EVERY_BYTE`.
fn places(path: &Path, bytes: &[u8], log_end: u64) -> Vec<usize> {
    let every_byte =
        ["HOLOTYPE_EVERY_BYTE", "HOLOTYPE_EVERY_BIT"].into_iter().any(|name| std::env::var_os(name).is_some());
    let name = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let every = |at: usize| match name {
        _ if every_byte => 1,
        "log" if at as u64 > log_end => 997,
        "redb" if bytes[at] == 0 => 997,
        "redb" => 251,
        "cseg" | "vseg" | "wseg" => 11,
        _ => 1,
    };
    (0..bytes.len()).filter(|at| at % every(*at) == 0).collect()
}

#[test]
fn a_flipped_bit_is_an_error_or_found_or_changes_nothing() {
    let Base { sim, original, log_end, files, .. } = base();
    let cases = files.iter().flat_map(|(path, bytes)| {
        let sim = &sim;
        let named = std::env::var("HOLOTYPE_EVERY_BIT").ok();
        let bits = move |at: usize| -> Vec<usize> {
            let number = |digit: char| digit.to_digit(8).expect("digits from 0 to 7 name bits") as usize;
            named.as_ref().map_or_else(|| vec![at % 8], |digits| digits.chars().map(number).collect())
        };
        places(path, bytes, log_end).into_iter().flat_map(move |at| bits(at).into_iter().map(move |bit| (at, bit))).map(
            move |(at, bit)| {
                let disk = sim.crash(Crash::Keep);
                disk.flip(path, at as u64, 1 << bit).unwrap();
                Case { disk, number: at, file: path, what: format!("bit {bit} of byte {at}") }
            },
        )
    });
    let outcomes = judge_all(cases, &original);
    assert!(outcomes.len() > 4000, "{}", outcomes.len());
    for (path, what, outcome) in &outcomes {
        let at: u64 = what.rsplit(' ').next().unwrap().parse().unwrap();
        let in_log = path.extension().is_some_and(|extension| extension == "log") && at < log_end;
        // The header and its copy are written again from each other.
        let is_mended = (at < 144 || (2048..2192).contains(&at)) && *outcome == Outcome::Repaired;
        let is_told = is_mended || *outcome == Outcome::Reported;
        assert!(!in_log || is_told, "{} {what}: {outcome:?}", path.display());
    }
    let hit: BTreeSet<&Path> = outcomes.iter().map(|(path, ..)| path.as_path()).collect();
    assert_eq!(hit.len(), files.len());
}

#[test]
fn a_cut_file_is_an_error_or_found_or_changes_nothing() {
    let Base { sim, original, log_end, files, .. } = base();
    let cases = files.iter().flat_map(|(path, bytes)| {
        let sim = &sim;
        places(path, bytes, log_end).into_iter().map(move |len| {
            let disk = sim.crash(Crash::Keep);
            disk.replace(path, &bytes[..len]);
            Case { disk, number: len, file: path, what: format!("cut to {len}") }
        })
    });
    let outcomes = judge_all(cases, &original);
    assert!(outcomes.len() > 4000, "{}", outcomes.len());
    for (path, what, outcome) in &outcomes {
        let log = path.extension().is_some_and(|extension| extension == "log");
        assert!(!log || *outcome == Outcome::Reported, "{} {what}: {outcome:?}", path.display());
    }
}

/// A page of a file, if it has it whole.
fn page_of(bytes: &[u8], page: usize) -> Option<&[u8]> {
    bytes.chunks_exact(PAGE).nth(page)
}

const PAGE: usize = 4096;

/// Pages sound in themselves and in the wrong place: every page of a file swapped with the next, or (every one) with
/// all others; every page as it was before the last transactions, and as it is in a database with another id.
#[test]
fn a_page_in_the_wrong_place_is_an_error_or_found_or_changes_nothing() {
    let Base { sim, earlier, original, log_end, files } = base();
    let (foreign, _) = written();
    let every = std::env::var_os("HOLOTYPE_EVERY_BYTE").is_some();
    let cases = files.iter().flat_map(|(path, bytes)| {
        let sim = &sim;
        let [stale, foreign] = [&earlier, &foreign].map(|disk| disk.bytes(path).unwrap_or_default());
        let count = bytes.len() / PAGE;
        let pairs = (0..count).flat_map(move |first| {
            let last = if every { count } else { (first + 2).min(count) };
            (first + 1..last).map(move |second| (first, second))
        });
        let swapped = pairs.filter_map(move |(first, second)| {
            let (one, other) = (page_of(bytes, first)?.to_vec(), page_of(bytes, second)?);
            (one != other).then(|| {
                let mut spoiled = bytes.clone();
                spoiled[first * PAGE..][..PAGE].copy_from_slice(other);
                spoiled[second * PAGE..][..PAGE].copy_from_slice(&one);
                (first, spoiled, format!("pages {first} and {second} swapped"))
            })
        });
        let replaced = move |from: Vec<u8>, what: &'static str| {
            (0..count).filter_map(move |page| {
                let other = page_of(&from, page).filter(|other| Some(*other) != page_of(bytes, page))?;
                let mut spoiled = bytes.clone();
                spoiled[page * PAGE..][..PAGE].copy_from_slice(other);
                Some((page, spoiled, format!("page {page} {what}")))
            })
        };
        let old = replaced(stale, "as it was earlier");
        swapped.chain(old).chain(replaced(foreign, "of another database")).map(move |(number, spoiled, what)| {
            let disk = sim.crash(Crash::Keep);
            disk.replace(path, &spoiled);
            Case { disk, number: number * 4, file: path, what }
        })
    });
    let outcomes = judge_all(cases, &original);
    assert!(outcomes.len() > 30, "{}", outcomes.len());
    for (path, what, outcome) in &outcomes {
        let first: usize = what.split(' ').find_map(|word| word.parse().ok()).unwrap();
        let in_log = path.extension().is_some_and(|extension| extension == "log") && ((first * PAGE) as u64) < log_end;
        assert!(!in_log || *outcome == Outcome::Reported, "{} {what}: {outcome:?}", path.display());
    }
}
