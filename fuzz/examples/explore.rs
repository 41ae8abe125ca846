//! The crash explorer as a program: `explore [--states N] [--seed S] [--jobs J]
//! [--only log|catalog|engine|linked|extended|rules|replica] [--mutants [--of TEXT]]`.
//!
//! Explores every sequence of up to three steps of the log and of up to two steps of catalog and engine, some of
//! engines with a graph of vectors, then sequences drawn from the seed, until there are `N` different states. Prints
//! its figures as one line of JSON, and its progress on standard error once a minute, so that an interrupted run has
//! figures too. Fails at the first invalid state.
//!
//! `explore --mutants` tries the mutants of the protocol instead, prints one line of JSON per mutant, and fails if one
//! is not detected that is not known to be equivalent. Each rule of trust is broken once, too. `--only replica`
//! explores the protocol of replicas, whose states have no disks; `--jobs` does not apply to it. `--of TEXT` selects
//! the mutants whose names contain the text.

use std::collections::BTreeSet;
use std::env;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holotype_fuzz::explore::catalog::CatalogSubject;
use holotype_fuzz::explore::engine::EngineSubject;
use holotype_fuzz::explore::log::LogSubject;
use holotype_fuzz::explore::protocol_mutants::{Mutant, Runs, Verdict, equivalent};
use holotype_fuzz::explore::replica::{self, Explored};
use holotype_fuzz::explore::rules::Rule;
use holotype_fuzz::explore::{Counts, Disks, Limits, Progress, Subject, drawn};

/// The greatest numbers of states of the engine and of the catalog, unless `--only` selects them: the rest of a long
/// run is of the log.
const MOST_OF_ENGINE: u64 = 60_000;
const MOST_OF_CATALOG: u64 = 250_000;

/// Runs within which a mutant of the protocol of replicas must be noticed.
const RUNS_OF_MUTANT: u64 = 2_000;

struct Arguments {
    states: u64,
    seed: u64,
    jobs: usize,
    only: Option<String>,
    mutants: bool,
    of: String,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!(
                "explore: {why}\nusage: explore [--states N] [--seed S] [--jobs J] \
                 [--only log|catalog|engine|linked|extended|rules|replica] [--mutants [--of TEXT]]"
            );
            return ExitCode::from(2);
        }
    };
    match if arguments.mutants { mutants(&arguments) } else { explore(&arguments) } {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("explore: {why}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut arguments = Arguments { states: 1_000_000, seed: 1, jobs, only: None, mutants: false, of: String::new() };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--mutants" {
            arguments.mutants = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} {value}: not a number"));
        match word.as_str() {
            "--states" => arguments.states = number()?,
            "--seed" => arguments.seed = number()?,
            "--jobs" => arguments.jobs = number()?.max(1) as usize,
            "--only" => arguments.only = Some(value),
            "--of" => arguments.of = value,
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(arguments)
}

fn explore(arguments: &Arguments) -> Result<(), String> {
    if arguments.only.as_deref() == Some("replica") {
        return explore_replica(arguments);
    }
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    let started = Instant::now();
    let mut all = Counts::default();
    let mut parts = Vec::new();
    let disks = Disks::new();
    // A state of the engine costs as much as a hundred of the log, so most are of the log.
    let share = |per_mille: u64| match arguments.only {
        Some(_) => arguments.states,
        None => arguments.states * per_mille / 1000,
    };
    if wanted("engine") {
        part(&EngineSubject::Empty, share(15).min(MOST_OF_ENGINE), arguments, &disks, &mut all, &mut parts)?;
    }
    for subject in [EngineSubject::Linked, EngineSubject::Extended] {
        if wanted(subject.name()) {
            // Their short sequences alone take as long as those of the engine.
            let states = if arguments.only.is_some() { arguments.states } else { 0 };
            part(&subject, states, arguments, &disks, &mut all, &mut parts)?;
        }
    }
    if wanted("catalog") {
        part(&CatalogSubject, share(35).min(MOST_OF_CATALOG), arguments, &disks, &mut all, &mut parts)?;
    }
    if wanted("log") {
        let rest = arguments.states.saturating_sub(all.different);
        part(&LogSubject, rest, arguments, &disks, &mut all, &mut parts)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        r#"{{"explore":{},"seed":{},"jobs":{},"seconds":{seconds:.1},"different_per_second":{:.0},{}}}"#,
        all.to_json(),
        arguments.seed,
        arguments.jobs,
        all.different as f64 / seconds,
        parts.join(",")
    );
    Ok(())
}

/// Explores the protocol of replicas.
fn explore_replica(arguments: &Arguments) -> Result<(), String> {
    let started = Instant::now();
    let Explored { states, steps, acknowledged, fenced } = replica::explore(arguments.states, arguments.seed)?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{{\"explore\":\"replica\",\"different\":{states},\"steps\":{steps},\"acknowledged\":{acknowledged},\
         \"fenced\":{fenced},\"seed\":{},\"seconds\":{seconds:.1}}}",
        arguments.seed
    );
    Ok(())
}

/// Leaves out each part of the protocol of replicas, and fails if one is not noticed.
fn mutants_of_replicas(arguments: &Arguments) -> Result<(), String> {
    let mut unnoticed = 0;
    for (name, noticed) in replica::mutants(RUNS_OF_MUTANT, arguments.seed) {
        unnoticed += usize::from(noticed.is_none());
        let by = noticed.unwrap_or_else(|| "nobody".to_owned());
        println!(r#"{{"subject":"replica","mutant":"{name}","noticed_by":{by:?}}}"#);
    }
    if unnoticed == 0 { Ok(()) } else { Err(format!("{unnoticed} mutants of replicas were not detected")) }
}

fn mutants(arguments: &Arguments) -> Result<(), String> {
    if arguments.only.as_deref() == Some("replica") {
        return mutants_of_replicas(arguments);
    }
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    let mut unnoticed = if wanted("rules") { mutants_of_rules() } else { 0 };
    if arguments.only.as_deref() == Some("rules") {
        return if unnoticed == 0 { Ok(()) } else { Err(format!("{unnoticed} rules are broken or not missed")) };
    }
    let limits =
        Limits { states_of_point: 64, states_of_recovery: 8, recoveries: 3, outcomes: 1, only_last_step: false };
    let log = Runs::of(&LogSubject, &LogSubject.mutant_units(), limits)?;
    let limits = Limits { states_of_point: 24, recoveries: 16, ..limits };
    let catalog = Runs::of(&CatalogSubject, &CatalogSubject.mutant_units(), limits)?;
    let mut known: BTreeSet<Mutant> = log.mutants().union(catalog.mutants()).cloned().collect();
    if wanted("log") {
        unnoticed += mutants_of(&LogSubject, &log.named(&arguments.of), arguments);
    }
    if wanted("catalog") {
        unnoticed += mutants_of(&CatalogSubject, &catalog.named(&arguments.of), arguments);
    }
    let engines = [EngineSubject::Empty, EngineSubject::Linked];
    // Recording the runs of an engine takes a minute: only of those that are wanted, and of those before them.
    let last = engines.iter().rposition(|subject| wanted(subject.name()));
    for subject in &engines[..last.map_or(0, |last| last + 1)] {
        let limits = match subject {
            EngineSubject::Empty => Limits { states_of_point: 12, states_of_recovery: 3, ..limits },
            _ => Limits { states_of_point: 4, states_of_recovery: 1, outcomes: 16, ..limits },
        };
        // An engine also runs the code of those before it. Their mutants were tried above, in cheaper runs.
        let runs = Runs::of(subject, &subject.mutant_units(), limits)?.without(&known);
        known.extend(runs.mutants().iter().cloned());
        if wanted(subject.name()) {
            unnoticed += mutants_of(subject, &runs.named(&arguments.of), arguments);
        }
    }
    if unnoticed == 0 { Ok(()) } else { Err(format!("{unnoticed} mutants were not detected")) }
}

/// Tells the story of each rule with the rule and without it; returns the number that end otherwise than they must.
fn mutants_of_rules() -> usize {
    let mut wrong = 0;
    for rule in Rule::ALL {
        let (kept, broken) = (rule.tell(false), rule.tell(true));
        wrong += usize::from(kept.is_err() || broken.is_ok());
        let words = |told: Result<(), String>| told.err().unwrap_or_else(|| "nothing is wrong".to_owned());
        let (kept, broken) = (words(kept), words(broken));
        println!(r#"{{"rule":"{rule:?}","kept":{kept:?},"broken":{broken:?}}}"#);
    }
    wrong
}

/// Tries the mutants of one subject, and returns the number of those that were not detected but are not equivalent.
fn mutants_of<S: Subject>(subject: &S, runs: &Runs<'_, S>, arguments: &Arguments) -> usize {
    let started = Instant::now();
    let name = subject.name();
    let noticed_by = |mutant: &Mutant, verdict: &Verdict| match (&verdict.crash, &verdict.auditor) {
        (Some(_), Some(_)) => "crash and auditor",
        (Some(_), None) => "crash",
        (None, Some(_)) => "auditor",
        (None, None) if equivalent(mutant).is_some() => "nobody: equivalent",
        (None, None) => "nobody",
    };
    let of = runs.mutants().len();
    let verdicts = runs.try_all(arguments.jobs, &|mutant, verdict| {
        let who = noticed_by(mutant, verdict);
        println!(r#"{{"subject":"{name}","mutant":"{mutant}","of":{of},"noticed_by":"{who}"}}"#);
    });
    let count = |who| verdicts.iter().filter(|(mutant, verdict)| noticed_by(mutant, verdict) == who).count();
    let (by_crash, by_auditor, by_both) = (count("crash"), count("auditor"), count("crash and auditor"));
    let (known, unnoticed) = (count("nobody: equivalent"), count("nobody"));
    println!(
        "{{\"subject\":\"{name}\",\"mutants\":{of},\"noticed\":\
         {{\"crash\":{by_crash},\"auditor\":{by_auditor},\"both\":{by_both}}},\
         \"equivalent\":{known},\"unnoticed\":{unnoticed},\"seconds\":{:.1}}}",
        started.elapsed().as_secs_f64()
    );
    unnoticed
}

/// Explores one subject: every short sequence, then drawn sequences until there are enough states.
fn part<S: Subject>(
    subject: &S,
    states: u64,
    arguments: &Arguments,
    disks: &Disks,
    all: &mut Counts,
    parts: &mut Vec<String>,
) -> Result<(), String> {
    let started = Instant::now();
    let told = Mutex::new(started);
    let tell = |counts: &Counts| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= Duration::from_secs(60) {
            *told = Instant::now();
            eprintln!("{} after {:.0} s: {}", subject.name(), started.elapsed().as_secs_f64(), counts.to_json());
        }
    };
    let kinds = subject.steps().len();
    let short = subject.short_sequences();
    let (exhaustive, sampled) = subject.limits();
    let unit = |number: u64| Some((short.get(number as usize)?.clone(), exhaustive));
    let mut counts = Progress::new(u64::MAX, disks).run(subject, arguments.jobs, unit, tell)?;
    eprintln!(
        "{}: {} short sequences, {} different states in {:.1} s",
        subject.name(),
        counts.units,
        counts.different,
        started.elapsed().as_secs_f64()
    );
    let left = states.saturating_sub(counts.different);
    let seed = |number: u64| arguments.seed.wrapping_mul(1 << 40).wrapping_add(number);
    let unit = |number| (left > 0).then(|| (drawn(kinds, subject.writes(), seed(number)), sampled));
    let before = counts;
    let drawn = Progress::new(left, disks).run(subject, arguments.jobs, unit, |drawn| {
        let mut counts = before;
        counts.add(drawn);
        tell(&counts);
    })?;
    counts.add(&drawn);
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("{}: {} different states in {seconds:.1} s", subject.name(), counts.different);
    parts.push(format!(r#""{}":{}"#, subject.name(), counts.to_json()));
    all.add(&counts);
    Ok(())
}
