//! Routing as events, epochs and crashes (TierMem B.3, B.8, D): what is logged, labelled, measured and exported; what
//! an epoch sees and what its end writes; what a crash at any step of seal, summary, mark and write-back leaves.

use holotype::answer::{Answer, Output};
use holotype::interchange::export_routes;
use holotype::query::{EscalateMode, Params};
use holotype::router::{Action, Label, LinearRouter, Reward, Signals};
use holotype::{Durability, Epoch, Error, Holotype, Learn, Options, Pointer, RouteEvent, RouteLabel};
use holotype_storage::vfs::{Crash, SimVfs};
use std::sync::Arc;

const STORY: &str = "
    set page.tokens = 20;
    record turn 'The ferry to Naxos leaves at nine.' in episode 'e' with key = 't1';
    record turn 'We had fish and olives for lunch in the old harbour.' in episode 'e' with key = 't2';
    record turn 'The hotel on Naxos was called Aria and had a blue door.' in episode 'e' with key = 't3';
    record turn 'Breakfast there was at eight, with figs.' in episode 'e' with key = 't4';
    close episode 'e';
    remember fact 'The ferry to Naxos leaves at nine' from 't1' with key = 'f1'";

fn database_on(sim: &SimVfs) -> Holotype {
    let database = Holotype::create_on(Arc::new(sim.clone()), "/memory.holo", Options::default()).unwrap();
    run(&database, STORY);
    database
}

fn run(database: &Holotype, script: &str) -> Vec<Output> {
    database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn answer(database: &Holotype, statement: &str) -> Answer {
    match run(database, statement).pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("{statement}: {other:?}"),
    }
}

/// Labels the three routes: escalated and repaired; answered in vain where raw pages suffice; answered rightly.
fn label(database: &Holotype, routes: &[RouteEvent]) {
    let label = |route: &str, summaries_suffice, raw_suffices| RouteLabel {
        route: route.to_owned(),
        summaries_suffice,
        raw_suffices,
    };
    let mut transaction = database.begin().unwrap();
    let unknown = transaction.label_routes(&[label("rc-99", true, true)]);
    assert!(matches!(unknown, Err(Error::Missing { .. })), "{unknown:?}");
    let receipt = routes[0].receipt.clone().unwrap();
    let labels = [label(&receipt, false, true), label(&routes[1].key, false, true), label(&routes[2].key, true, true)];
    transaction.label_routes(&labels).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

#[test]
fn reads_that_were_routed_are_logged_labelled_measured_and_exported() {
    let database = database_on(&SimVfs::new());
    answer(&database, "recall 'figs for breakfast' escalate always");
    assert_eq!(database.snapshot().routes().unwrap(), [], "nothing is logged unless asked for");
    let plain = "recall 'the hotel on Naxos' through traces 5";
    let scores = |answer: &Answer| answer.rows.iter().map(|row| (row.key.clone(), row.score)).collect::<Vec<_>>();
    let before = scores(&answer(&database, plain));
    run(&database, "set audit = reads");
    let asked = answer(&database, "recall 'figs for breakfast' escalate always with receipt");
    answer(&database, "recall 'ferry to Naxos' escalate never");
    answer(&database, "recall 'ferry to Naxos' escalate never");
    run(&database, "learn 'The hotel was called Aria' from 't3' quoting 'Aria'");
    run(&database, "learn 'The ferry to Naxos leaves at nine' from 't1'");
    assert_eq!(scores(&answer(&database, plain)), before, "an event changes no score");

    let snapshot = database.snapshot();
    let routes = snapshot.routes().unwrap();
    let actions: Vec<Action> = routes.iter().map(|route| route.action).collect();
    assert_eq!(actions, [Action::Escalate, Action::Answer, Action::Answer]);
    assert_eq!((routes[0].receipt.as_ref(), routes[0].episode.as_deref()), (asked.receipt.as_ref(), Some("e")));
    let escalation = asked.escalation.as_deref().unwrap();
    assert_eq!((routes[0].tokens, routes[0].signals), (escalation.tokens, escalation.router.signals));
    assert!(snapshot.pages_due().unwrap().iter().all(|page| page.episode == "e"), "events wait for no summary");

    label(&database, &routes);
    let report = database.snapshot().audit(&[], &[]).unwrap();
    let expected = [
        ("route.escalate", 1.0 / 3.0),
        ("route.answer", 2.0 / 3.0),
        ("route_tokens.escalate", escalation.tokens as f64),
        ("hits.original", 1.0),
        ("hits.linked_fact", 0.0),
        ("write_back.add", 1.0),
        ("write_back.update", 0.0),
        ("write_back.skip", 1.0),
        ("r_rate", 1.0 / 3.0),
        ("reward", (0.9 - 1.5 + 1.0) / 3.0),
        ("recall_at_hard", 0.5),
        ("repair_rate", 1.0),
        ("uor", 1.0 / 3.0),
    ];
    for (name, value) in expected {
        let found = report.get(name).unwrap_or_else(|| panic!("{name}: {report:?}"));
        assert!((found - value).abs() < 1e-9, "{name}: {found}, expected {value}");
    }
    assert_eq!(report.get("regress_rate"), None, "no escalated question was one that summaries answer");
    assert!(report.get("latency.routed.p50").is_some());
    let Some(Output::Table(table)) = run(&database, "audit").pop() else { panic!("a table") };
    assert!(table.rows.iter().any(|row| row[0].as_ref().is_some_and(|name| name.to_string() == "uor")));

    let mut out = Vec::new();
    assert_eq!(export_routes(&database.snapshot(), &mut out).unwrap().lines, 3);
    let text = String::from_utf8(out).unwrap();
    // A model as a router needs the question: that of a receipt is there, and no other text.
    let first = text.lines().next().unwrap();
    assert!(first.contains(r#""question":"figs for breakfast","summaries":[]"#), "{first}");
    assert_eq!((text.matches("figs").count(), text.matches("Naxos").count()), (1, 0), "{text}");
    let labels: Vec<Label> = text.lines().map(|line| Label::from_json(line).unwrap()).collect();
    assert_eq!(labels[0].signals, routes[0].signals);
    let fitted = LinearRouter::fit(&labels, 0.5).unwrap().with_best_threshold(&labels, &Reward::default());
    run(&database, &format!("set router = '{}'", fitted.to_json()));
    // A forgotten event is not measured.
    run(&database, &format!("forget '{}' because 'asked to'", routes[2].key));
    assert_eq!(database.snapshot().routes().unwrap().len(), 2);
}

#[test]
fn the_router_of_the_database_decides() {
    let database = database_on(&SimVfs::new());
    let action =
        |database: &Holotype| answer(database, "recall 'ferry to Naxos' escalate").escalation.unwrap().router.action;
    for (threshold, wanted) in [(0.0, Action::Answer), (1.0, Action::Escalate)] {
        let router = LinearRouter { bias: 0.0, weights: Signals::default(), threshold };
        run(&database, &format!("set router = '{}'", router.to_json()));
        assert_eq!(action(&database), wanted);
    }
    run(&database, "set router = 'built-in'");
    for wrong in ["", "x", "{}", "[1]", r#"{"bias":0,"threshold":0.5,"weights":{"magic":1}}"#] {
        let head = database.head();
        let refused = database.query(&format!("set router = '{wrong}'"), &Params::new());
        assert!(matches!(refused, Err(Error::Invalid(_))), "{wrong}: {refused:?}");
        assert_eq!(database.head(), head);
    }
    for wrong in ["{}", r#"{"signals":{"terms":"x"},"c_s":true,"c_r":true}"#, r#"{"signals":{"magic":1}}"#, "[]"] {
        assert!(matches!(Label::from_json(wrong), Err(Error::Invalid(_))), "{wrong}");
    }
}

fn finding() -> Learn {
    Learn::new("The hotel on Naxos was called Aria.").from(Pointer::to_key("t3").quoting("called Aria"))
}

#[test]
fn an_epoch_answers_from_one_state_and_writes_at_its_end() {
    for add_only in [false, true] {
        let sim = SimVfs::new();
        let database = database_on(&sim);
        let epoch = Epoch::begin(&database);
        let epoch = if add_only { epoch.add_only() } else { epoch };
        let ask = |epoch: &Epoch<'_>| {
            let recall = epoch.snapshot().recall("What was the hotel on Naxos called?").escalate(EscalateMode::Auto);
            epoch.ask(recall.budget(500), None).unwrap().rows
        };
        let before = ask(&epoch);
        let head = database.head();
        epoch.learn(finding());
        epoch.learn(finding());
        let more = "The ferry to Naxos leaves at nine from the old harbour.";
        epoch.learn(Learn::new(more).from(Pointer::to_key("t1")));
        epoch.learn(Learn::new("nothing").from(Pointer::to_key("t1").quoting("not there")));
        assert_eq!(database.head(), head, "nothing is written inside an epoch");
        // Nor does it see others' writes.
        run(&database, "remember fact 'The hotel on Naxos was called Zeus' from 't2' with key = 'f9'");
        assert_eq!(ask(&epoch), before);
        let other = database.snapshot();
        assert!(epoch.ask(other.recall("x").escalate(EscalateMode::Auto), None).is_err(), "another state");
        assert!(epoch.ask(epoch.snapshot().recall("x"), None).is_err(), "no escalation");
        let report = epoch.end(None, Durability::Sync).unwrap();
        assert_eq!((report.asked, report.refused.len()), (2, 1), "{report:?}");
        let written = if add_only { (2, 0, 1) } else { (1, 1, 1) };
        assert_eq!((report.add, report.update, report.skip), written, "add only: {add_only}");
        let next = Epoch::begin(&database);
        assert!(ask(&next).iter().any(|row| row.text == "The hotel on Naxos was called Aria."));
    }
}

/// The content of a disk after a crash: facts, summaries, closed pages and those marked as summarised.
fn holds(disk: SimVfs) -> (usize, usize, usize, usize) {
    let database = Holotype::open_on(Arc::new(disk), "/memory.holo", Options::default()).unwrap();
    let count = |noun: &str| match run(&database, &format!("find {noun} where active = true return key")).pop() {
        Some(Output::Table(table)) => table.rows.len(),
        other => panic!("{other:?}"),
    };
    let snapshot = database.snapshot();
    let due = snapshot.pages_due().unwrap().iter().filter(|page| page.key.is_some()).count();
    let all = match run(&database, "find pages return key").pop() {
        Some(Output::Table(table)) => table.rows.len(),
        other => panic!("{other:?}"),
    };
    (count("facts"), count("summaries"), all, all - due)
}

#[test]
fn a_crash_at_any_step_leaves_whole_steps() {
    let sim = SimVfs::new();
    let database = Holotype::create_on(Arc::new(sim.clone()), "/memory.holo", Options::default()).unwrap();
    run(&database, "record turn 'The ferry to Naxos leaves at nine.' in episode 'e' with key = 't1'");
    let check = |step: &str, allowed: &[(usize, usize, usize, usize)]| {
        let disks = sim.crashes(40, 11);
        assert!(!disks.is_empty());
        for disk in disks.into_iter().chain([sim.crash(Crash::Keep)]) {
            let found = holds(disk);
            assert!(allowed.contains(&found), "{step}: {found:?}, allowed are {allowed:?}");
        }
    };
    // Seal: the page is closed or not.
    run(&database, "close episode 'e'");
    check("seal", &[(0, 0, 0, 0), (0, 0, 1, 0)]);
    // Summary and mark: both or neither.
    let key = database.snapshot().pages_due().unwrap()[0].key.clone().unwrap();
    run(&database, &format!("remember summary 'About boats' from page '{key}'"));
    check("summary", &[(0, 0, 0, 0), (0, 0, 1, 0), (0, 1, 1, 1)]);
    // A mark alone, both ways: the page is marked or not.
    run(&database, &format!("mark page '{key}' unsummarised"));
    check("unmark", &[(0, 0, 0, 0), (0, 0, 1, 0), (0, 1, 1, 1), (0, 1, 1, 0)]);
    run(&database, &format!("mark page '{key}' summarised"));
    check("mark", &[(0, 0, 0, 0), (0, 0, 1, 0), (0, 1, 1, 1), (0, 1, 1, 0)]);
    // An epoch: all findings or none.
    let epoch = Epoch::begin(&database);
    epoch.learn(Learn::new("The ferry leaves at nine.").from(Pointer::to_key("t1")));
    epoch.learn(Learn::new("Naxos has a port.").from(Pointer::to_key("t1")));
    epoch.end(None, Durability::Sync).unwrap();
    check("epoch", &[(0, 0, 0, 0), (0, 0, 1, 0), (0, 1, 1, 1), (0, 1, 1, 0), (2, 1, 1, 1)]);
}

/// A recall through the Rust builder is logged as the same statement is; on a snapshot alone it is not.
#[test]
fn a_recall_through_rust_is_logged_as_a_statement_is() {
    let database = database_on(&SimVfs::new());
    run(&database, "set audit = reads");
    let question = "figs for breakfast";
    answer(&database, &format!("recall '{question}' escalate always"));
    let snapshot = database.snapshot();
    let recall = || snapshot.recall(question).escalate(EscalateMode::Always);
    recall().run().unwrap();
    assert_eq!(database.snapshot().routes().unwrap().len(), 1, "a snapshot writes nothing");
    let router = LinearRouter::default();
    let roles = holotype::Roles::new(&router, &holotype::UncoveredWords);
    database.ask(recall(), None).unwrap();
    database.ask(recall(), Some(roles)).unwrap();
    database.ask(snapshot.recall(question), None).unwrap();
    let routes = database.snapshot().routes().unwrap();
    assert_eq!(routes.len(), 3, "a recall without `escalate` has no route");
    for route in &routes[1..] {
        let same = |route: &RouteEvent| (route.action, route.signals, route.tokens, route.rounds, route.hits);
        assert_eq!(same(route), same(&routes[0]));
    }
    run(&database, "set audit = none");
    database.ask(recall(), None).unwrap();
    assert_eq!(database.snapshot().routes().unwrap().len(), 3);
}
