//! Limits of statements: each limit ends a statement with the limit's name, a handle cancels it, and no part of its
//! script is committed.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Cancel, Durability, Error, ErrorClass, Holotype, Limits, NewTrace, Options, Prepared};
use std::time::Duration;

fn many(dir: &std::path::Path) -> Holotype {
    let database = Holotype::create(dir.join("memory.holo"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    for step in 0..500u64 {
        let text = format!("the price of flight {step} is {} euros", step * 7 % 100);
        transaction.record(NewTrace::turn("trip", text).key(format!("t{step}")).step(step)).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database
}

const READS: &[&str] = &[
    "find traces where text contains 'euros'",
    "find traces order by step desc return text",
    "count traces, sum step by kind",
    "recall 'price of a flight' limit 50",
    "recall 'price' through traces 100 pool 500 limit 5",
];

#[test]
fn rows_that_are_looked_at_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let database = many(dir.path());
    let snapshot = database.snapshot();
    for statement in READS {
        let few = snapshot.with_limits(&Limits::none().rows_scored(20));
        let error = few.query(statement, &Params::new()).expect_err(statement);
        assert!(matches!(error, Error::Limit { limit: 20, needed: 21.., .. }), "{statement}: {error}");
        assert_eq!((error.class(), error.code()), (ErrorClass::Limit, "limit"));
        let enough = snapshot.with_limits(&Limits::none().rows_scored(10_000));
        let same = enough.query(statement, &Params::new()).unwrap();
        let free = snapshot.query(statement, &Params::new()).unwrap();
        assert_eq!(same.len(), free.len());
        match (&same[0], &free[0]) {
            (Output::Table(a), Output::Table(b)) => assert_eq!(a, b),
            (Output::Answer(a), Output::Answer(b)) => assert_eq!(a.rows, b.rows),
            other => panic!("{statement}: {other:?}"),
        }
    }
}

#[test]
fn limits_hold_for_each_statement_of_a_script() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = many(dir.path()).snapshot().with_limits(&Limits::none().rows_scored(1_200));
    // A thousand for each of them: two are within the limit only when each has its own.
    let script = "find traces where text contains 'euros'; find traces where text contains 'price'";
    assert_eq!(snapshot.query(script, &Params::new()).unwrap().len(), 2);
}

#[test]
fn no_time_and_no_memory_end_every_statement() {
    let dir = tempfile::tempdir().unwrap();
    let database = many(dir.path());
    for (limits, what) in [(Limits::none().time(Duration::ZERO), "time"), (Limits::none().memory(50), "memory")] {
        let snapshot = database.snapshot().with_limits(&limits);
        for statement in READS {
            let error = snapshot.query(statement, &Params::new()).expect_err(statement);
            assert!(matches!(&error, Error::Limit { what: which, .. } if which.contains(what)), "{statement}: {error}");
        }
    }
}

#[test]
fn a_cancelled_script_writes_nothing_and_a_later_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let database = many(dir.path());
    let cancel = Cancel::new();
    let limits = Limits::none().cancelled_by(&cancel);
    let script = Prepared::new("mark 't1' failed because 'x'; find traces where text contains 'euros'").unwrap();
    cancel.cancel();
    let error = database.run_within(&script, &Params::new(), &limits).unwrap_err();
    assert!(matches!(error, Error::Cancelled(_)) && error.class() == ErrorClass::Limit, "{error}");
    let failed = |database: &Holotype| {
        let outputs = database.query("count traces where status = failed", &Params::new()).unwrap();
        let Output::Table(table) = &outputs[0] else { panic!("a table") };
        table.typed::<(u64,)>().unwrap()[0].0
    };
    assert_eq!(failed(&database), 0);
    cancel.reset();
    database.run_within(&script, &Params::new(), &limits).unwrap();
    assert_eq!(failed(&database), 1);
}

#[test]
fn a_handle_stops_a_statement_from_another_thread() {
    let dir = tempfile::tempdir().unwrap();
    let database = many(dir.path());
    let cancel = Cancel::new();
    let snapshot = database.snapshot().with_limits(&Limits::none().cancelled_by(&cancel));
    std::thread::scope(|scope| {
        let (started, has_started) = std::sync::mpsc::channel();
        let statements = scope.spawn(move || {
            loop {
                let outcome = snapshot.query("find traces where text contains 'euros'", &Params::new());
                let _ = started.send(());
                if let Err(error) = outcome {
                    return error;
                }
            }
        });
        has_started.recv().unwrap();
        cancel.cancel();
        assert!(matches!(statements.join().unwrap(), Error::Cancelled(_)));
    });
}

#[test]
fn rows_come_one_by_one_and_hold_their_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let database = many(dir.path());
    let prepared = database.prepare("find traces where step >= $from order by step desc return key, step").unwrap();
    let params = Params::from([("from".to_owned(), holotype::query::ParamValue::Int(490))]);
    let mut rows = database.snapshot().rows(&prepared, &params).unwrap();
    assert_eq!(rows.columns(), ["key", "step"]);
    assert_eq!(rows.next().unwrap().unwrap().len(), 2);
    database.query("mark 't498' inactive because 'x'; record turn 'new' in episode 'trip'", &Params::new()).unwrap();
    let rest: Vec<(String, u64)> = rows.typed().collect::<Result<_, _>>().unwrap();
    assert_eq!(rest.first().unwrap(), &("t498".to_owned(), 498));
    assert_eq!(rest.len(), 9, "what was written meanwhile is not among them");

    let counted = database.prepare("count traces").unwrap();
    assert_eq!(database.snapshot().rows(&counted, &Params::new()).unwrap().count(), 1);
    let recall = database.prepare("recall 'price'").unwrap();
    assert!(matches!(database.snapshot().rows(&recall, &Params::new()), Err(Error::Invalid(_))));

    let all = database.prepare("find traces return text").unwrap();
    let few = database.snapshot().with_limits(&Limits::none().rows_scored(10));
    let outcomes: Vec<bool> = few.rows(&all, &Params::new()).unwrap().map(|row| row.is_ok()).collect();
    assert_eq!(outcomes.iter().filter(|ok| **ok).count(), 10, "the limit holds for all rows together");
}

#[test]
fn a_script_in_a_transaction_is_undone_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let database = many(dir.path());
    let mut transaction = database.begin().unwrap();
    let run = |transaction: &mut holotype::Transaction<'_>, script: &str| {
        transaction.run_within(&Prepared::new(script).unwrap(), &Params::new(), &Limits::none())
    };
    run(&mut transaction, "record turn 'kept' in episode 'trip' with key = 'kept'").unwrap();
    let failed = run(&mut transaction, "record turn 'x' in episode 'trip' with key = 'x'; mark 'nobody' failed");
    assert!(matches!(failed, Err(Error::Missing { .. })));
    let outputs =
        run(&mut transaction, "find turns where key = 'kept' return key; recall 'kept' with receipt").unwrap();
    let Output::Table(table) = &outputs[0] else { panic!("find gives a table") };
    assert_eq!(table.rows.len(), 1);
    transaction.commit(Durability::Sync).unwrap();
    let snapshot = database.snapshot();
    assert!(snapshot.get("kept").unwrap().is_some() && snapshot.get("x").unwrap().is_none());
    assert_eq!(snapshot.get("kept").unwrap().unwrap().content.field_bytes("text"), Some(&b"kept"[..]));
    assert!(Prepared::new("recall 'x' with receipt").unwrap().writes());
    assert!(!Prepared::new("recall 'x'").unwrap().writes());
}
