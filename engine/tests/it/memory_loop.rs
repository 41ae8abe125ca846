//! HELM's loop with its limits (Table 11): controllers that are told what to decide.

use holotype::query::Params;
use holotype::{
    Controller, Decision, Durability, Error, HelmLimits, HeuristicController, Holotype, Kind, Layer, MemoryLoop,
    NewTrace, Operation, Options, Result, Status, Step, StepView, Support, Verdict,
};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;

fn database() -> Holotype {
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", Options::default()).unwrap()
}

fn observed(step: u64, text: &str) -> Step {
    let trace = NewTrace::call("trip", "search", text).step(step).status(Status::Success);
    Step { observation: Some(trace), request: None }
}

fn asked(request: &str) -> Step {
    Step { observation: None, request: Some(request.to_owned()) }
}

/// Decides the same at each step, and keeps what it saw.
struct Fixed {
    decision: std::result::Result<Decision, &'static str>,
    novelties: Vec<f64>,
    last_reads: Vec<Option<u64>>,
}

impl Fixed {
    fn new(operations: &[Operation]) -> Fixed {
        let decision = Decision { operations: operations.to_vec(), query: None };
        Fixed { decision: Ok(decision), novelties: Vec::new(), last_reads: Vec::new() }
    }
}

impl Controller for &mut Fixed {
    fn decide(&mut self, view: &StepView<'_>) -> Result<Decision> {
        self.novelties.push(view.novelty);
        self.last_reads.push(view.last_read);
        self.decision.clone().map_err(|error| Error::Invalid(error.to_owned()))
    }
}

#[test]
fn the_limits_are_those_of_table_11() {
    let limits = HelmLimits::default();
    assert_eq!((limits.recall_tokens, limits.writes_per_step, limits.consolidations), (1500, 1, 5));
    assert_eq!(limits.items, [200, 50, 20]);
}

#[test]
fn the_heuristic_reads_when_asked_writes_always_consolidates_at_times_and_prunes_on_overflow() {
    let database = database();
    let limits = HelmLimits { items: [6, 50, 20], ..HelmLimits::default() };
    let controller = HeuristicController { consolidate_every: 3 };
    let mut memory = MemoryLoop::new(&database, "trip", controller).limits(limits);
    let mut decided = Vec::new();
    for step in 0..9 {
        let text = format!("search_flights(flight UA{step}): price = ${}", 100 + step);
        let request = (step == 4).then(|| "price of UA2".to_owned());
        let outcome = memory.step(Step { request, ..observed(step, &text) }, None).unwrap();
        assert!(outcome.written.is_some() && outcome.refused.is_empty(), "step {step}: {outcome:?}");
        decided
            .push(outcome.decision.operations.iter().map(|it| it.as_str().chars().next().unwrap()).collect::<String>());
        if step == 4 {
            let memory = outcome.memory.unwrap();
            assert!(memory.text.contains("$102") && memory.check.unwrap().is_valid(), "{}", memory.text);
            assert!(memory.evidence.receipt.is_some());
        }
    }
    // The trace of the step counts: no step ends over the limit, unless what is over it is evidence.
    assert_eq!(decided, ["W", "W", "WC", "W", "RW", "WC", "WP", "WP", "WCP"]);
    let snapshot = database.snapshot();
    let active = |layer| {
        (0..snapshot.len())
            .filter(|id| {
                let attributes = snapshot.attributes(holotype::ItemId(*id)).unwrap();
                attributes.kind.layer() == layer && attributes.active
            })
            .count()
    };
    // The traces of the steps 6 and 7 were pruned before they were consolidated; nothing rested on them.
    assert_eq!((active(Layer::Trace), active(Layer::Recall)), (7, 7));
    let report = snapshot.audit(&["trip"], &[]).unwrap();
    assert_eq!(report.get("r_per_step"), Some(1.0 / 9.0));
    assert_eq!(report.get("w_per_step"), Some(1.0));
    assert_eq!(report.get("c_per_episode"), Some(3.0));
}

#[test]
fn what_the_limits_do_not_allow_is_refused() {
    let database = database();
    let mut controller = Fixed::new(&[Operation::Consolidate]);
    let mut memory = MemoryLoop::new(&database, "trip", &mut controller);
    for step in 0..7 {
        let outcome = memory.step(observed(step, "x"), None).unwrap();
        let refused = if step < 5 { vec![] } else { vec![Operation::Consolidate] };
        assert_eq!(outcome.refused, refused, "step {step}");
        assert_eq!(outcome.consolidated.is_some(), step < 5);
        assert_eq!(outcome.written, None, "nobody said WRITE");
    }
    let all = Operation::ALL;
    let mut controller = Fixed::new(&all);
    let limits = HelmLimits { writes_per_step: 0, consolidations: 0, ..HelmLimits::default() };
    let mut memory = MemoryLoop::new(&database, "trip", &mut controller).limits(limits);
    let outcome = memory.step(observed(1, "x"), None).unwrap();
    assert_eq!(
        outcome.refused,
        [Operation::Read, Operation::Write, Operation::Consolidate],
        "nothing was asked either"
    );
    assert!(outcome.pruned.is_some());
    let error = memory.step(Step { observation: Some(NewTrace::turn("hotel", "x")), request: None }, None).unwrap_err();
    assert!(error.to_string().contains("episode 'hotel'"), "{error}");
    let snapshot = database.snapshot();
    assert_eq!((snapshot.decisions("trip").unwrap().len(), snapshot.len()), (8, 8), "events of decisions, and no item");
}

/// HELM observes, then reads. A read from the step before called a price of 299 steps ago fresh, and an audit agreed.
#[test]
fn a_step_that_observes_reads_from_there() {
    let database = database();
    let mut memory = MemoryLoop::new(&database, "trip", HeuristicController::default());
    memory.step(observed(1, "UA123 price=$280"), None).unwrap();
    let step = Step { request: Some("price of UA123".to_owned()), ..observed(300, "The hotel is booked.") };
    let read = memory.step(step, None).unwrap().memory.unwrap();
    assert_eq!(read.evidence.at.step, Some(300));
    assert_eq!(read.refresh().map(|refresh| refresh.last_step), Some(Some(1)));
    let audit = database.snapshot().audit(&["trip"], &[]).unwrap();
    assert_eq!(audit.get("epierr_recalls"), Some(1.0));
}

/// Three loops over one episode, as after two restarts, had three times the consolidations.
#[test]
fn limits_of_an_episode_survive_a_restart_and_decisions_are_events() {
    let database = database();
    let mut done = 0;
    for restart in 0..3 {
        let mut controller = Fixed::new(&[Operation::Write, Operation::Consolidate]);
        let mut memory = MemoryLoop::new(&database, "trip", &mut controller);
        for step in 0..3 {
            let outcome = memory.step(observed(10 * restart + step, "UA123 price=$450"), None).unwrap();
            done += u32::from(outcome.consolidated.is_some());
        }
    }
    assert_eq!(done, 5);
    let decided = database.snapshot().decisions("trip").unwrap();
    assert_eq!(decided.len(), 9);
    let last = &decided[8];
    assert_eq!(
        (last.done.as_slice(), last.refused.as_slice()),
        (&[Operation::Write][..], &[Operation::Consolidate][..])
    );
    assert_eq!((last.consolidations_left, last.observed, last.asked), (0, true, false));
    assert!(last.written.is_some() && last.items[0] == 9, "{last:?}");
    assert_eq!(database.snapshot().decisions("other").unwrap(), []);
    // No recall finds an event.
    let found = database.snapshot().recall("CONSOLIDATE operations trip").run().unwrap();
    assert!(found.rows.iter().all(|row| row.text.starts_with("UA123")), "{:?}", found.rows);
}

#[test]
fn recalled_tokens_of_a_step_are_limited() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    for step in 0..50 {
        let words: Vec<String> = (0..16).map(|nth| format!("w{}", (step * 31 + nth * nth * 7) % 997)).collect();
        let text = format!("UA123 price number {step}: {}", words.join(" "));
        transaction.record(NewTrace::turn("trip", text).step(step)).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    let read = |tokens: u64| {
        let limits = HelmLimits { recall_tokens: tokens, ..HelmLimits::default() };
        let mut memory = MemoryLoop::new(&database, "trip", HeuristicController::default()).limits(limits);
        memory.step(asked("price of UA123"), None).unwrap().memory.unwrap().tokens
    };
    let (whole, half) = (read(1500), read(300));
    assert!(whole <= 1500 && half <= 300 && half > 100 && whole > 2 * half, "{whole}, {half}");
}

#[test]
fn a_controller_that_fails_loses_nothing() {
    let database = database();
    let mut controller = Fixed { decision: Err("it said READ ME"), ..Fixed::new(&[]) };
    let mut memory = MemoryLoop::new(&database, "trip", &mut controller);
    let step = Step { request: Some("price".to_owned()), ..observed(1, "UA123 price=$450") };
    let outcome = memory.step(step, None).unwrap();
    assert_eq!(outcome.decision.operations, [Operation::Read, Operation::Write]);
    assert!(outcome.controller_error.unwrap().contains("it said READ ME"));
    assert!(outcome.written.is_some() && outcome.memory.is_some());
}

#[test]
fn a_controller_may_ask_in_its_own_words_and_sees_what_is_new() {
    let database = database();
    let mut controller = Fixed::new(&[Operation::Read, Operation::Write]);
    controller.decision =
        Decision::parse(r#"{"operations": ["WRITE", "READ"], "query": "price of UA123"}"#).map_err(|_| "");
    let mut memory = MemoryLoop::new(&database, "trip", &mut controller);
    memory.step(observed(1, "UA123 price=$450"), None).unwrap();
    let outcome = memory.step(observed(2, "ua123 price again"), None).unwrap();
    assert_eq!(outcome.decision.operations, [Operation::Read, Operation::Write], "in the order of the table");
    assert!(outcome.memory.unwrap().text.contains("$450"));
    memory.step(asked("x"), None).unwrap();
    assert_eq!(controller.novelties, [1.0, 1.0 / 3.0, 0.0]);
    assert_eq!(controller.last_reads, [None, Some(0), Some(1)]);
}

#[test]
fn a_long_observation_is_refined_and_points_to_its_bytes() {
    let database = database();
    let filler = "<div>nothing of interest here</div>\n".repeat(30);
    let text = format!("{filler}Gate of flight UA123: D24\n{filler}Price of flight UA123: $450\n{filler}");
    let mut memory = MemoryLoop::new(&database, "trip", HeuristicController::default());
    let outcome = memory.step(observed(1, &text), None).unwrap();
    let snapshot = database.snapshot();
    let refined = snapshot.item(outcome.refined.unwrap()).unwrap();
    assert_eq!(refined.content.text(), "The gate of ua123 is d24.\nThe price of ua123 is 450 USD.");
    let attributes = snapshot.attributes(outcome.refined.unwrap()).unwrap();
    assert_eq!((attributes.kind, attributes.support), (Kind::Refined, Support::Supported));
    assert_eq!(attributes.status, Some(Status::Success), "inherited");
    let citations = snapshot.citations(outcome.refined.unwrap()).unwrap();
    let cited: Vec<&str> = citations.iter().filter_map(|citation| citation.text.as_deref()).collect();
    assert_eq!(cited, ["D24", "$450"]);
    assert!(citations.iter().all(|citation| citation.verdict == Verdict::Ok));
    assert_eq!(
        memory.step(observed(2, "The gate of flight UA123 is D25."), None).unwrap().refined,
        None,
        "it is short"
    );
    assert_eq!(memory.step(observed(3, &filler), None).unwrap().refined, None, "nothing salient");
}

#[test]
fn a_refined_log_takes_the_fields_it_is_told_and_stands_as_its_trace_does() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let trace = NewTrace::call("trip", "browse", "long").field("title", "UA123 to Oslo").status(Status::Failed);
    let trace = transaction.record(trace).unwrap();
    let refined = transaction.refine(trace, &["title"]).unwrap().unwrap();
    assert!(transaction.refine(trace, &["url"]).unwrap_err().to_string().contains("field `url`"));
    assert!(transaction.refine(refined, &[]).unwrap_err().to_string().contains("only traces"));
    transaction.commit(Durability::Sync).unwrap();
    let snapshot = database.snapshot();
    assert_eq!(snapshot.citations(refined).unwrap()[0].field, "title");
    assert_eq!(snapshot.attributes(refined).unwrap().status, Some(Status::Failed));
    let found = database
        .query("find facts where origin = refined; find recalls where kind = refined return text", &Params::new());
    assert_eq!(found.unwrap().len(), 2);
}

#[test]
fn the_example_walks_past_both_traps() {
    crate::helm_example::main().unwrap();
}
