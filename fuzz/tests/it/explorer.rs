//! The crash explorer finds nothing wrong, on few sequences: the program `explore` runs all of them and a million
//! states.

use holotype_fuzz::explore::catalog::CatalogSubject;
use holotype_fuzz::explore::engine::EngineSubject;
use holotype_fuzz::explore::log::LogSubject;
use holotype_fuzz::explore::rules::Rule;
use holotype_fuzz::explore::{Counts, Disks, Limits, Progress, Step, Subject, drawn, plain, sequences};

/// Every step alone, and some drawn sequences.
fn explore<S: Subject>(subject: &S, sequences_drawn: u64, limits: Limits) -> Counts {
    let kinds = subject.steps().len();
    let alone = sequences(kinds, 1);
    let drawn = (0..sequences_drawn).map(|seed| drawn(kinds, subject.writes(), seed));
    let units: Vec<_> = alone.chain(drawn).collect();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let unit = |number| Some((units.get(number as usize)?.clone(), limits));
    let counts =
        Progress::new(u64::MAX, &Disks::new()).run(subject, jobs, unit, |_| ()).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(counts.units, units.len() as u64);
    assert!(counts.different * 2 > counts.states, "{counts:?}");
    counts
}

const LIMITS: Limits =
    Limits { states_of_point: 16, states_of_recovery: 4, recoveries: 16, outcomes: 1, only_last_step: false };

#[test]
fn the_log_keeps_its_promises() {
    let counts = explore(&LogSubject, 12, LIMITS);
    assert!(counts.states > 1000 && counts.recovery_states > 50, "{counts:?}");
}

#[test]
fn the_catalog_keeps_its_promises() {
    let counts = explore(&CatalogSubject, 2, Limits { states_of_point: 6, ..LIMITS });
    assert!(counts.states > 300, "{counts:?}");
}

#[test]
fn the_database_keeps_its_promises() {
    let limits =
        Limits { states_of_point: 4, states_of_recovery: 2, recoveries: 16, outcomes: 1, only_last_step: false };
    let counts = explore(&EngineSubject::Empty, 2, limits);
    assert!(counts.states > 500, "{counts:?}");
}

/// One sequence: the link of a graph, and a retention that moves what it refers to.
#[test]
fn a_graph_that_refers_to_the_log_keeps_its_promises() {
    let limits =
        Limits { states_of_point: 2, states_of_recovery: 1, recoveries: 16, outcomes: 128, only_last_step: false };
    let subject = EngineSubject::Linked;
    let steps = [1, 5, 12].map(|kind| Step { kind, salt: 0 });
    let counts = holotype_fuzz::explore::explore(&subject, &plain, &steps, &limits, &Disks::new());
    let counts = counts.unwrap_or_else(|why| panic!("{why}"));
    assert!(counts.states > 200, "{counts:?}");
}

/// Each rule of trust holds, and something notices where it does not.
#[test]
fn a_broken_rule_of_trust_is_noticed() {
    for rule in Rule::ALL {
        assert_eq!(rule.tell(false), Ok(()), "{rule:?}");
        assert!(rule.tell(true).is_err(), "nothing notices that {rule:?} is broken");
    }
}
