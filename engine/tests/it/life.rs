//! The life of a database through its public face: write, read, close, open, lose every derived file, rebuild.

use holotype::{
    Durability, Edge, Error, Holotype, Kind, Mark, NewRecall, NewTrace, Options, Pointer, Source, Space, Status,
    Support,
};
use holotype_storage::vfs::SimVfs;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

fn write_story(path: &Path) -> Holotype {
    let database = Holotype::create(path, Options::with_space(Space::new("test", 3))).unwrap();
    let mut transaction = database.begin().unwrap();
    let trace = NewTrace::call("trip-42", "search_flights", "UA123 price=$450")
        .key("t1")
        .status(Status::Success)
        .vector(vec![1.0, 0.0, 0.0]);
    transaction.record(trace).unwrap();
    transaction
        .record(NewTrace::turn("trip-42", "Is that the price with a bag?").key("t2").source(Source::User))
        .unwrap();
    let fact = NewRecall::fact("UA123 costs $450")
        .key("r1")
        .from(Pointer::to_key("t1").quoting("price=$450"))
        .vector(vec![0.9, 0.1, 0.0]);
    transaction.remember(fact).unwrap();
    transaction.remember(NewRecall::theme("flight prices").key("th1").child("r1")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database
}

fn check_story(database: &Holotype) {
    let snapshot = database.snapshot();
    let fact = snapshot.get("r1").unwrap().unwrap();
    assert_eq!(fact.content.text(), "UA123 costs $450");
    assert_eq!(fact.attributes.kind, Kind::Fact);
    assert_eq!(fact.attributes.source, Some(Source::Tool), "inherited from its trace");
    assert_eq!(fact.attributes.support, Support::Supported);
    let citations = snapshot.citations(fact.id).unwrap();
    assert_eq!(citations.len(), 1);
    assert_eq!(citations[0].text.as_deref(), Some("price=$450"));
    let theme = snapshot.get("th1").unwrap().unwrap();
    assert_eq!(snapshot.linking(theme.id, Edge::Parent).unwrap(), [fact.id]);
    assert_eq!(snapshot.vector(fact.id).unwrap(), Some(vec![0.9, 0.1, 0.0]));
}

#[test]
fn what_was_committed_is_there_after_reopening_and_after_losing_every_derived_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = write_story(&path);
    check_story(&database);
    database.close().unwrap();

    let database = Holotype::open(&path, Options::default()).unwrap();
    assert_eq!(database.report().replayed, 0, "closing wrote a checkpoint");
    assert_eq!(database.report().rebuilt, None);
    check_story(&database);
    drop(database);

    for derived in ["catalog.redb", "columns", "vectors", "words"] {
        let derived = path.join(derived);
        if derived.is_dir() {
            std::fs::remove_dir_all(&derived).unwrap();
        } else {
            std::fs::remove_file(&derived).unwrap();
        }
    }
    let database = Holotype::open(&path, Options::default()).unwrap();
    assert!(database.report().rebuilt.is_some());
    check_story(&database);
}

#[test]
fn marking_a_source_as_failed_weakens_what_rests_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let database = write_story(&dir.path().join("memory.holo"));
    let before = database.snapshot();
    let mut transaction = database.begin().unwrap();
    let trace = before.get("t1").unwrap().unwrap().id;
    transaction.mark(trace, Mark::Status(Status::Failed), Some("HTTP 504, not a price".into())).unwrap();
    transaction.commit(Durability::Sync).unwrap();

    let after = database.snapshot();
    let fact = after.get("r1").unwrap().unwrap();
    assert_eq!(fact.attributes.support, Support::Unsupported);
    assert_eq!(fact.attributes.status, Some(Status::Failed), "the worst status of its traces");
    assert_eq!(fact.attributes.trust, 0.0);
    let theme = after.get("th1").unwrap().unwrap();
    assert_eq!(theme.attributes.support, Support::Unsupported);
    assert_eq!(before.get("r1").unwrap().unwrap().attributes.support, Support::Supported, "a snapshot does not change");
}

#[test]
fn a_pointer_that_does_not_resolve_is_refused_and_the_transaction_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let database = write_story(&dir.path().join("memory.holo"));
    let mut transaction = database.begin().unwrap();
    let past_the_end = NewRecall::fact("x").from(Pointer::to_key("t1").bytes(0, 99));
    let error = transaction.remember(past_the_end).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the pointer to 't1' does not resolve: field \"text\": bytes 0 to 99 are outside its 16 bytes"
    );
    let groundless = transaction.remember(NewRecall::fact("x")).unwrap_err();
    assert!(groundless.to_string().contains("ungrounded"));
    transaction.remember(NewRecall::fact("x").key("r2").ungrounded()).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert!(database.snapshot().get("r2").unwrap().unwrap().attributes.ungrounded);
}

#[test]
fn updating_a_fact_moves_its_key_and_keeps_its_evidence() {
    let dir = tempfile::tempdir().unwrap();
    let database = write_story(&dir.path().join("memory.holo"));
    let old = database.snapshot().get("r1").unwrap().unwrap().id;
    let mut transaction = database.begin().unwrap();
    let new = transaction
        .update("r1", NewRecall::fact("UA123 costs $450 without a bag").from(Pointer::to_key("t2")))
        .unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let snapshot = database.snapshot();
    assert_eq!(snapshot.get("r1").unwrap().unwrap().id, new);
    assert!(!snapshot.item(old).unwrap().attributes.active);
    let cited: Vec<String> = snapshot.citations(new).unwrap().into_iter().map(|citation| citation.target).collect();
    assert_eq!(cited, ["t1", "t2"]);
    assert_eq!(snapshot.linked(new, Edge::Supersedes).unwrap(), [old]);
}

#[test]
fn what_is_dropped_uncommitted_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let database = write_story(&dir.path().join("memory.holo"));
    let head = database.head();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("trip-42", "never said").key("ghost")).unwrap();
    assert!(transaction.snapshot().unwrap().get("ghost").unwrap().is_some(), "it sees its own writes");
    drop(transaction);
    assert_eq!(database.head(), head);
    assert!(database.snapshot().get("ghost").unwrap().is_none());
}

#[test]
fn keys_that_begin_with_a_tilde_are_the_engines_own() {
    let dir = tempfile::tempdir().unwrap();
    let database = write_story(&dir.path().join("memory.holo"));
    let mut transaction = database.begin().unwrap();
    let error = transaction.record(NewTrace::turn("trip-42", "hello").key("~2.0")).unwrap_err();
    assert_eq!(error.to_string(), "key \"~2.0\": the prefix ~ is reserved for generated keys");
    let id = transaction.record(NewTrace::turn("trip-42", "hello")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert!(database.snapshot().key_of(id).unwrap().starts_with('~'));
}

/// A trace is one of its tool, log and step, whatever the order they come in, who else writes in between, and what was
/// taken back: held against a set.
#[test]
fn a_tool_log_and_step_are_taken_once() {
    let options = Options { checkpoint_records: 40, ..Options::default() };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/taken.holo", options).unwrap();
    let (mut taken, mut seed) = (BTreeSet::new(), 7_u64);
    for _ in 0..60 {
        let mut transaction = database.begin().unwrap();
        let before = taken.clone();
        for _ in 0..10 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let pick = |shift: u32, of: u64| (seed >> shift) % of;
            // Mostly one after another, in one episode.
            let episode = ["a", "a", "a", "b"][pick(33, 4) as usize];
            let log = [None, None, None, Some("a"), Some("b"), Some("c")][pick(37, 6) as usize];
            let tool = [None, None, Some("x"), Some("y")][pick(41, 4) as usize];
            let newest = taken.iter().map(|(_, _, step)| *step).max().unwrap_or(0);
            let step = if pick(45, 3) > 0 { newest + pick(47, 2) } else { pick(50, newest + 1) };
            let mut trace = NewTrace::turn(episode, "said").step(step);
            if let Some(tool) = tool {
                trace = trace.tool(tool);
            }
            if let Some(log) = log {
                trace = trace.log_id(log);
            }
            let free = taken.insert((tool, log.unwrap_or(episode), step));
            match transaction.record(trace) {
                Ok(_) => assert!(free, "{tool:?} {log:?} {step} of {episode} was taken"),
                Err(Error::DuplicateTrace { .. }) => assert!(!free, "{tool:?} {log:?} {step} of {episode} was free"),
                Err(error) => panic!("{error}"),
            }
        }
        if seed % 5 == 0 {
            drop(transaction);
            taken = before;
        } else {
            transaction.commit(Durability::Sync).unwrap();
        }
    }
    assert!(taken.len() > 200, "{} traces", taken.len());
}

/// Checkpoints leave free pages in the catalog. Closing takes them out, also while another handle reads.
#[test]
fn closing_packs_the_catalog_and_loses_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, Options { checkpoint_bytes: 64 << 10, ..Options::default() }).unwrap();
    for commit in 0..120u32 {
        let mut transaction = database.begin().unwrap();
        for number in 0..150 {
            // Keys that come in no order change blocks all over the catalog.
            let key = (commit * 150 + number).wrapping_mul(0x9E37_79B1);
            let trace = NewTrace::turn(format!("e{}", commit % 7), format!("turn {number} of {commit}"));
            transaction.record(trace.key(format!("{key:08x}"))).unwrap();
        }
        transaction.commit(Durability::Flush).unwrap();
    }
    let len = || std::fs::metadata(path.join("catalog.redb")).unwrap().len();
    let other = database.clone();
    other.checkpoint().unwrap();
    let before = len();
    database.close().unwrap();
    let packed = len();
    assert!(packed * 4 < before * 3, "{packed} bytes after {before}");
    assert_eq!(other.snapshot().len(), 120 * 150, "the other handle reads on");
    drop(other);

    let database = Holotype::open(&path, Options::default()).unwrap();
    let snapshot = database.snapshot();
    assert_eq!(snapshot.len(), 120 * 150);
    for number in 0..120 * 150u32 {
        let key = format!("{:08x}", number.wrapping_mul(0x9E37_79B1));
        let id = snapshot.get(&key).unwrap().map(|item| item.id.0);
        assert_eq!(id, Some(number), "{key}");
    }
    assert!(database.verify(&mut |_, _| {}).unwrap().is_clean());
    drop(snapshot);
    database.close().unwrap();
}
