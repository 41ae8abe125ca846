//! The log under the explorer: pages of 4 KiB and segments of four pages, so that few steps reach every case.

use std::path::Path;
use std::sync::Arc;

use holotype_storage::log::{Log, LogLimits, LogOptions, OpenOptions, Transaction, Until};
use holotype_storage::vfs::{Crash, Failure, SimVfs, Vfs as _};
use holotype_storage::{Error, NewRecord, RecoveryReport};

use super::{DiskView, Found, Limits, RunSegment, Step, Subject, sequences, steps};

const DIR: &str = "/db/log";
const PAGE: u64 = 4096;

/// Steps with the payload lengths they append: a short record, a page boundary, a run of pages, a transaction over two
/// segments, one without records.
const APPENDS: [&[usize]; 5] = [&[10], &[3000, 700, 600], &[6000], &[2500; 5], &[]];

const STEPS: [&str; 14] = [
    "append",
    "append over a page",
    "append a run",
    "append over a segment",
    "append nothing",
    "sync",
    "seal",
    "close and open",
    "drop and open",
    "crash",
    "crash and lose",
    "fail and open",
    "fail to create and open",
    "another handle appends",
];

/// As the first step, fails a call of the log's creation, or that call and all later ones. As a later step it is
/// [`REOPEN`], since the log already exists.
const CREATION: usize = 12;
const REOPEN: usize = 8;
/// Two handles take turns: the second appends behind the first, which takes over behind the second.
const HAND_OVER: usize = 13;

/// A bound of the calls that create a log, the last of which syncs the directory.
const CREATION_CALLS: u64 = 13;

/// The log.
#[derive(Clone, Copy, Debug)]
pub struct LogSubject;

/// The transactions written, and the known state of the log.
#[derive(Clone, Debug, Default)]
pub struct Written {
    transactions: Vec<Arc<[NewRecord]>>,
}

impl Subject for LogSubject {
    type Truth = Written;

    fn name(&self) -> &'static str {
        "log"
    }

    fn steps(&self) -> &'static [&'static str] {
        &STEPS
    }

    fn writes(&self) -> usize {
        5
    }

    fn short_sequences(&self) -> Vec<Vec<Step>> {
        sequences(STEPS.len(), 3).collect()
    }

    fn mutant_units(&self) -> Vec<Vec<Step>> {
        vec![
            steps(&[(0, 1), (1, 0), (5, 0), (0, 0)]),
            steps(&[(2, 1), (3, 1), (6, 0), (0, 1), (7, 0), (0, 1)]),
            steps(&[(1, 0), (3, 0), (3, 1), (8, 0), (3, 1)]),
            steps(&[(3, 0), (3, 0), (9, 5), (0, 1), (3, 1)]),
            steps(&[(0, 1), (3, 0), (10, 0), (3, 1), (3, 0), (7, 0)]),
            steps(&[(0, 1), (11, 3), (0, 1)]),
            steps(&[(0, 1), (11, 3), (1, 1)]),
            steps(&[(11, 4), (11, 10), (0, 1)]),
            steps(&[(11, 16), (11, 22), (3, 1)]),
            steps(&[(11, 26), (11, 34), (3, 1)]),
            steps(&[(11, 30), (11, 36), (3, 1)]),
            steps(&[(11, 32), (11, 44), (3, 1)]),
            steps(&[(12, 23), (0, 1)]),
            steps(&[(12, 23), (0, 1), (3, 1)]),
            steps(&[(0, 0), (13, 3), (3, 1), (13, 0), (0, 1)]),
        ]
    }

    fn limits(&self) -> (Limits, Limits) {
        let all =
            Limits { states_of_point: 64, states_of_recovery: 6, recoveries: 24, outcomes: 1, only_last_step: true };
        (all, Limits { states_of_point: 256, only_last_step: false, ..all })
    }

    fn run(&self, view: DiskView<'_>, steps: &[Step]) -> Result<Vec<RunSegment<Written>>, String> {
        let disk = SimVfs::new();
        let options = LogOptions {
            page_size: PAGE as u32,
            first_segment_len: 4 * PAGE,
            limits: limits(),
            ..LogOptions::new([7; 16])
        };
        let mut steps = steps.iter().copied().peekable();
        if let Some(first) = steps.next_if(|step| step.kind == CREATION) {
            disk.fail_at(first.salt % CREATION_CALLS, Failure::Io, first.salt / CREATION_CALLS % 2 == 1);
        }
        let (mut log, mut parts) = created(view, disk, &options)?;
        for step in steps {
            let part = parts.last_mut().ok_or("there is a part")?;
            part.last_step = part.disk.history_len();
            match take(view, log, part, step).map_err(|error| format!("{}: {error}", STEPS[step.kind]))? {
                (next, None) => log = next,
                (next, Some(part)) => {
                    log = next;
                    parts.push(part);
                }
            }
        }
        drop(log);
        Ok(parts)
    }

    fn open(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Written) -> Result<Option<Found>, String> {
        match opened(view, disk, truth) {
            Ok((_, report, transactions)) => {
                let cut = report.tail.is_some();
                let progress = progress(transactions, report.closed);
                Ok(Some(Found { progress, recovered: cut || !report.removed.is_empty(), cut }))
            }
            Err(Opening::NoLog) => Ok(None),
            Err(Opening::Failed(why)) => Err(why),
        }
    }

    fn go_on(&self, view: DiskView<'_>, disk: &SimVfs, truth: &Written) -> Result<(), String> {
        let said = |error: Error| error.to_string();
        let fail = |opening| match opening {
            Opening::Failed(why) => why,
            Opening::NoLog => "the log is gone".to_owned(),
        };
        let (log, _, before) = opened(view, disk, truth).map_err(fail)?;
        let verified = log.verify(&mut |_, _| {}).map_err(said)?;
        if !verified.is_clean() {
            return Err(format!("it does not verify: {:?}", verified.faults));
        }
        let mut truth = Written { transactions: truth.transactions[..before as usize].to_vec() };
        truth.transactions.push(records(0xee, &[30, 5000]));
        let appended = log.append(&truth.transactions[before as usize], 2).map_err(said)?;
        log.sync_to(appended.end).map_err(said)?;
        drop(log);
        let lost = disk.crash(Crash::Lose);
        let (log, report, after) = opened(view, &lost, &truth).map_err(fail)?;
        let verified = log.verify(&mut |_, _| {}).map_err(said)?;
        if after != before + 1 || report.tail.is_some() || !verified.is_clean() {
            return Err(format!("{before} transactions and one more are {after}: {report:?} {:?}", verified.faults));
        }
        Ok(())
    }

    fn without_remains(&self, disk: &SimVfs) {
        for path in disk.files() {
            if path.extension().is_some_and(|extension| extension == "bin") {
                // It was just listed.
                let _ = disk.remove(&path);
            }
        }
    }
}

/// Creates the log, in a second run segment if the disk failed the first time.
fn created(view: DiskView<'_>, disk: SimVfs, options: &LogOptions) -> Result<(Log, Vec<RunSegment<Written>>), String> {
    let create = |disk: &SimVfs| Log::create(view(disk), Path::new(DIR), options);
    if let Ok(log) = create(&disk) {
        disk.heal();
        let mut parts = vec![RunSegment::new(disk, 0, Written::default())];
        parts[0].promise(progress(0, false));
        return Ok((log, parts));
    }
    disk.heal();
    let first = RunSegment::new(disk, 0, Written::default());
    // The same disk, which may still show bytes that it lost: perhaps a whole log, perhaps less.
    let disk = first.disk.replay().last().ok_or("there is an end")?;
    let log = match opened(view, &disk, &Written::default()) {
        Ok((log, ..)) => log,
        Err(Opening::NoLog) => create(&disk).map_err(|error| error.to_string())?,
        Err(Opening::Failed(why)) => return Err(why),
    };
    let mut second = RunSegment::new(disk, 0, Written::default());
    second.promise(progress(0, false));
    Ok((log, vec![first, second]))
}

fn limits() -> LogLimits {
    LogLimits { max_segment_len: 4 * PAGE, ..LogLimits::default() }
}

/// The progress of a log: that it exists, its transactions, and whether it was closed after them.
fn progress(transactions: u32, closed: bool) -> u32 {
    1 + 2 * transactions + u32::from(closed)
}

/// Runs a step, and returns the log to continue with, in another run segment after a crash.
fn take(
    view: DiskView<'_>,
    log: Log,
    part: &mut RunSegment<Written>,
    step: Step,
) -> Result<(Log, Option<RunSegment<Written>>), String> {
    let said = |error: Error| error.to_string();
    match step.kind {
        kind if kind < APPENDS.len() => {
            let lens = &APPENDS[kind];
            let number = part.truth.transactions.len() as u64;
            let new = records(number ^ (step.salt << 8), lens);
            log.append(&new, 1).map_err(said)?;
            part.truth.transactions.push(new);
            // Some wait for their sync, as a caller would.
            if step.salt % 8 == 1 {
                log.sync_to(log.end()).map_err(said)?;
                part.promise(progress(part.truth.transactions.len() as u32, false));
            }
            Ok((log, None))
        }
        5 | 6 => {
            if step.kind == 5 { log.sync_to(log.end()) } else { log.seal() }.map_err(said)?;
            part.promise(progress(part.truth.transactions.len() as u32, false));
            Ok((log, None))
        }
        7 | REOPEN | CREATION => {
            if step.kind == 7 {
                log.close().map_err(said)?;
                part.promise(progress(part.truth.transactions.len() as u32, true));
            }
            drop(log);
            let (log, report, found) = reopened(view, &part.disk, &part.truth)?;
            // Transactions that opening showed are durable.
            part.promise(progress(found, report.closed));
            Ok((log, None))
        }
        HAND_OVER => {
            drop(log);
            let log = hand_over(view, part, step)?;
            Ok((log, None))
        }
        11 => {
            // A short append writes in its first call and syncs in its second; a long one also prepares a segment.
            let lens = APPENDS[if step.salt % 2 == 1 { 0 } else { 3 }];
            part.disk.fail_at(part.disk.calls() + step.salt / 2 % 24, Failure::Io, false);
            for _ in 0..2 {
                let new = records(step.salt, lens);
                // The failed transaction may be there or not: the next run segment begins with what it finds.
                part.truth.transactions.push(Arc::clone(&new));
                if log.append(&new, 1).and_then(|appended| log.sync_to(appended.end)).is_err() {
                    break;
                }
                part.promise(progress(part.truth.transactions.len() as u32, false));
            }
            drop(log);
            part.disk.heal();
            // The same disk, which may still show bytes that it lost.
            let disk = part.disk.replay().last().ok_or("there is an end")?;
            next_part(view, part, disk)
        }
        kind => {
            drop(log);
            let how = if kind == 9 { Crash::Seeded(step.salt) } else { Crash::Lose };
            let disk = part.disk.crash(how);
            next_part(view, part, disk)
        }
    }
}

/// Another handle has the turn for a transaction that it does not sync; then the first one takes over and syncs.
fn hand_over(view: DiskView<'_>, part: &mut RunSegment<Written>, step: Step) -> Result<Log, String> {
    let said = |error: Error| error.to_string();
    let failed = |opening| match opening {
        Opening::Failed(why) => why,
        Opening::NoLog => "there is no log".to_owned(),
    };
    let options = OpenOptions { limits: limits(), shared: true, ..OpenOptions::default() };
    let (log, ..) = opened_with(view, &part.disk, &part.truth, &options).map_err(failed)?;
    // LOCK tells a handle what is durable; without that it renews a log in which nothing proves it.
    let options = OpenOptions { durable_hint: Some(log.durable()), ..options };
    let (other, report, found) = opened_with(view, &part.disk, &part.truth, &options).map_err(failed)?;
    part.promise(progress(found, report.closed));
    let new = records(u64::from(found) ^ (step.salt << 8), APPENDS[step.salt as usize % APPENDS.len()]);
    other.append(&new, 1).map_err(said)?;
    other.flush().map_err(said)?;
    let durable = other.durable();
    drop(other);
    part.truth.transactions.push(Arc::clone(&new));
    let mut taken = Vec::new();
    let mut take = |transaction: Transaction| -> Result<(), Error> {
        taken.extend(transaction.records.into_iter().map(|record| (record.kind, record.payload)));
        Ok(())
    };
    log.take_over(Until::End(durable), None, &mut take).map_err(said)?;
    if !taken.iter().map(|(kind, payload)| (*kind, payload)).eq(new.iter().map(|new| (new.kind, &new.payload))) {
        return Err("what was taken over is not what the other handle appended".to_owned());
    }
    log.sync_to(log.end()).map_err(said)?;
    part.promise(progress(part.truth.transactions.len() as u32, false));
    Ok(log)
}

/// Opens the disk of a run segment after a crash, and continues on it.
fn next_part(
    view: DiskView<'_>,
    part: &RunSegment<Written>,
    disk: SimVfs,
) -> Result<(Log, Option<RunSegment<Written>>), String> {
    let (log, report, found) = reopened(view, &disk, &part.truth)?;
    let truth = Written { transactions: part.truth.transactions[..found as usize].to_vec() };
    // Until opening returned, only earlier promises hold.
    let promised = part.promises.last().map_or(0, |(_, promised)| *promised);
    let mut next = RunSegment::new(disk, promised, truth);
    next.promise(progress(found, report.closed));
    Ok((log, Some(next)))
}

enum Opening {
    NoLog,
    Failed(String),
}

fn reopened(view: DiskView<'_>, disk: &SimVfs, truth: &Written) -> Result<(Log, RecoveryReport, u32), String> {
    opened(view, disk, truth).map_err(|opening| match opening {
        Opening::NoLog => "there is no log".to_owned(),
        Opening::Failed(why) => why,
    })
}

/// Opens the log, compares each transaction with what was written, and counts them.
fn opened(view: DiskView<'_>, disk: &SimVfs, truth: &Written) -> Result<(Log, RecoveryReport, u32), Opening> {
    opened_with(view, disk, truth, &OpenOptions { limits: limits(), ..OpenOptions::default() })
}

/// The same with these options.
fn opened_with(
    view: DiskView<'_>,
    disk: &SimVfs,
    truth: &Written,
    options: &OpenOptions,
) -> Result<(Log, RecoveryReport, u32), Opening> {
    let mut found = 0_u32;
    let mut altered = None;
    let opened = Log::open(view(disk), Path::new(DIR), None, options, &mut |transaction| {
        let written = truth.transactions.get(found as usize);
        let same = written.is_some_and(|written| {
            transaction.records.len() == written.len()
                && transaction
                    .records
                    .iter()
                    .zip(written.iter())
                    .all(|(found, new)| (found.kind, &found.payload) == (new.kind, &new.payload))
        });
        found += 1;
        if !same {
            altered.get_or_insert(found);
        }
        Ok::<(), Error>(())
    });
    match opened {
        _ if altered.is_some() => Err(Opening::Failed(format!("transaction {altered:?} is not what was written"))),
        Ok((log, report)) => Ok((log, report, found)),
        Err(Error::MissingSegment { number: 1, .. } | Error::Io { .. }) if found == 0 => Err(Opening::NoLog),
        Err(error) => Err(Opening::Failed(error.to_string())),
    }
}

/// Records of these payload lengths, with bytes computed from `seed`.
fn records(seed: u64, lens: &[usize]) -> Arc<[NewRecord]> {
    let record = |(at, &len): (usize, &usize)| NewRecord {
        kind: 1 + at as u8,
        payload: (0..len).map(|i| (i as u8).wrapping_mul(31) ^ (seed >> (i % 8 * 8)) as u8).collect(),
    };
    lens.iter().enumerate().map(record).collect()
}
