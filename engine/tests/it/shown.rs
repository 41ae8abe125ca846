//! Values of the public API are shown with names and typed figures, not with the numbers and bits that are stored.

use holotype::query::Params;
use holotype::{Durability, Edge, Holotype, Kind, NewRecall, NewTrace, Options, Pointer, Source, Status};

fn database(dir: &tempfile::TempDir) -> Holotype {
    let database = Holotype::create(dir.path().join("a.holo"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    let call = NewTrace::call("trip-42", "search_flights", "UA123 price=$450").key("t1").version("v3");
    transaction.record(call.source(Source::Tool).status(Status::Success)).unwrap();
    transaction.record(NewTrace::turn("trip-42", "is that with a bag?").key("t2").speaker("Mara")).unwrap();
    let fact = NewRecall::fact("UA123 costs $450").key("r1").from(Pointer::to_key("t1").quoting("price=$450"));
    transaction.remember(fact).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database
}

#[test]
fn attributes_of_an_item_are_names() {
    let dir = tempfile::tempdir().unwrap();
    let database = database(&dir);
    database.query("close episode 'trip-42'", &Params::new()).unwrap();
    let snapshot = database.snapshot();
    let call = snapshot.get("t1").unwrap().unwrap().attributes;
    assert_eq!((call.tool.as_deref(), call.version.as_deref()), (Some("search_flights"), Some("v3")));
    assert_eq!((call.episode.as_deref(), call.page.as_deref()), (Some("trip-42"), Some("trip-42/p1")));
    let turn = snapshot.get("t2").unwrap().unwrap().attributes;
    assert_eq!(turn.speaker.as_deref(), Some("Mara"));
    let fact = snapshot.attributes(snapshot.get("r1").unwrap().unwrap().id).unwrap();
    assert_eq!(
        (fact.trust_sources.as_slice(), fact.trust_statuses.as_slice()),
        (&[Source::Tool][..], &[Status::Success][..])
    );
    assert_eq!(fact.inherited, ["status", "source", "step", "time", "version", "episode"]);
    assert_eq!((fact.trust, fact.rests_on_redacted), (1.0, false));
    let shown = format!("{fact:?}");
    assert!(shown.contains("version: Some(\"v3\")") && shown.contains("trust_sources: [Tool]"), "{shown}");
}

#[test]
fn a_transaction_shows_the_attributes_that_it_gives() {
    let dir = tempfile::tempdir().unwrap();
    let database = database(&dir);
    let mut transaction = database.begin().unwrap();
    let id = transaction.record(NewTrace::call("trip-43", "book", "booked").key("t3").version("v4")).unwrap();
    let attributes = transaction.attributes(id).unwrap();
    assert_eq!((attributes.tool.as_deref(), attributes.version.as_deref()), (Some("book"), Some("v4")));
    assert_eq!(attributes.episode.as_deref(), Some("trip-43"));
}

#[test]
fn figures_are_typed_and_agree_with_the_statement() {
    let dir = tempfile::tempdir().unwrap();
    let database = database(&dir);
    let (r1, t2) = {
        let snapshot = database.snapshot();
        (snapshot.get("r1").unwrap().unwrap().id, snapshot.get("t2").unwrap().unwrap().id)
    };
    let mut transaction = database.begin().unwrap();
    transaction.link(r1, Edge::DerivedFrom, t2).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let stats = database.stats().unwrap();
    let content = &stats.content;
    assert_eq!((content.commit, content.items, content.episodes, content.claims), (2, 3, 1, 0));
    assert_eq!(content.items_by_kind, [(Kind::Turn, 1), (Kind::Call, 1), (Kind::Fact, 1)]);
    assert_eq!((content.edges_ever_made, content.space.as_ref(), content.vectors), (2, None, 0));
    assert_eq!((stats.log_segments, stats.verified_log_segments, stats.oldest_verification_us), (1, 0, None));
    assert_eq!(stats.log_page_bytes, Options::default().page_size);
    assert!(stats.durable_log_bytes > 0 && stats.durable_log_bytes <= stats.log_bytes, "{stats:?}");
    assert!(stats.limits.iter().any(|limit| limit.limit == "max_tail_bytes" && limit.max.is_some()), "{stats:?}");
    let table = database.snapshot().stats().unwrap().to_table();
    assert!(stats.to_table().rows.starts_with(&table.rows));
    database.note_verified(&database.verify(&mut |_, _| {}).unwrap()).unwrap();
    let stats = database.stats().unwrap();
    assert!(stats.verified_log_segments == 1 && stats.oldest_verification_us.is_some(), "{stats:?}");
}
