//! The builder of recalls says everything that the language says: clause by clause, the same statement and the same
//! rows. And typed rows, parameters and items by key.

use holotype::answer::{Answer, Output};
use holotype::condition::{Flaw, any_edge, attribute, cites, claims, claims_value, edge, flaw, redacted};
use holotype::embed::HashingEmbedder;
use holotype::query::{Channel, EscalateMode, FlawKind, Noun, Op, ParamValue, Params, Part, bind};
use holotype::{
    Durability, Edge, Error, Holotype, Kind, Layer, Mark, NewRecall, NewTrace, Options, Pointer, RecallBuilder,
    Snapshot, Source, Stage, Status, Weights, params,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const DAY: i64 = 86_400_000_000;

/// Trips: calls with prices, facts on them, concepts and themes.
fn trips() -> (TempDir, Holotype) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().embedder(HashingEmbedder::new(64));
    let database = Holotype::create(dir.path().join("db"), options).unwrap();
    let mut transaction = database.begin().unwrap();
    let concept = NewRecall::new(Kind::Concept, "night train").key("c1").ungrounded();
    transaction.remember(concept).unwrap();
    for number in 0..30_u64 {
        let episode = format!("trip-{}", number % 3);
        let text = format!("the night train {number} to Lisbon costs {} euros", 40 + number);
        let mut trace = NewTrace::call(episode, if number % 2 == 0 { "search" } else { "book" }, text)
            .key(format!("t{number}"))
            .step(number)
            .time(number as i64 * DAY / 8)
            .version(if number % 5 == 0 { "v1" } else { "v2" })
            .field("price", (40 + number).to_string());
        if number % 7 == 0 {
            trace = trace.status(Status::Failed);
        }
        if number % 4 == 0 {
            trace = trace.source(Source::Document);
        }
        transaction.record(trace).unwrap();
        if number % 3 == 0 {
            let fact = NewRecall::fact(format!("train {number} costs {} euros", 40 + number)).key(format!("f{number}"));
            let fact = transaction.remember(fact.from(Pointer::to_key(format!("t{number}")))).unwrap();
            transaction.claim(fact, "price", &(40 + number).to_string(), false, &[]).unwrap();
            let concept = transaction.find(&holotype::Target::Key("c1".to_owned())).unwrap();
            transaction.link(fact, Edge::Mentions, concept).unwrap();
        }
    }
    let guess = NewRecall::fact("the night train has a bar").key("guess").ungrounded();
    let guess = transaction.remember(guess).unwrap();
    transaction.mark(guess, Mark::Utility(0.9, 3), None).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    (dir, database)
}

fn said(snapshot: &Snapshot, text: &str, params: &Params) -> Answer {
    match snapshot.query(text, params).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0) {
        Output::Answer(answer) => timeless(*answer),
        output => panic!("{text}: {output:?}"),
    }
}

fn timeless(mut answer: Answer) -> Answer {
    answer.micros = 0;
    if let Some(escalation) = &mut answer.escalation {
        escalation.router_micros = 0;
    }
    answer
}

type Built = fn(RecallBuilder<'_>) -> RecallBuilder<'_>;

/// Every clause of a recall by text, as the builder says it and as the language does.
const CLAUSES: &[(Built, &str)] = &[
    (|r| r, ""),
    (|r| r.in_episode("trip-1").in_episode("trip-2"), "in episode 'trip-1', 'trip-2'"),
    (|r| r.in_all(), "in all"),
    (|r| r.through([Stage::of(Noun::Traces).keep(4)]), "through traces 4"),
    (
        |r| {
            let only = attribute("step").above(3);
            let first = Stage::of(Noun::Facts).keep(5).by([Channel::Near, Channel::Words]).pool(9).only(only);
            r.through([first, Stage::of(Noun::Traces).keep(6).by([Channel::Linked])])
        },
        "through facts 5 by near, words pool 9 only (step > 3) -> traces 6 by linked",
    ),
    (
        |r| {
            let hop = [
                Stage::of(Noun::Concepts).keep(8),
                Stage::of(Noun::Facts).keep(20).by([Channel::Linked, Channel::Near]),
            ];
            r.through([Stage::of(Noun::Facts).keep(20), Stage::hops(hop, 3).carry(2).keep(5)])
        },
        "through facts 20 -> (concepts 8 -> facts 20 by linked, near) up to 3 hops carry 2 keep 5",
    ),
    (
        |r| r.through([Stage::of(Noun::Facts).keep(9), Stage::lift(Noun::Episodes).keep(2).votes(2)]),
        "through facts 9 -> lift to episodes 2 votes 2",
    ),
    (|r| r.exclude([FlawKind::Ungrounded, FlawKind::Conflicted]), "exclude ungrounded, conflicted"),
    (|r| r.include([FlawKind::Failed]), "include failed"),
    (
        |r| r.exclude([Flaw::stale().steps(9).age(Duration::from_secs(2 * 86_400)).version()]).at_step(25),
        "exclude stale(9 steps, 2d, version) at step 25",
    ),
    (|r| r.score(Weights::profile("archive")), "score profile archive"),
    (|r| r.profile("helm"), "score profile helm"),
    (
        |r| {
            let status = Weights::default().weight(Part::Utility, 0.5).weight(Part::Status, 10.0);
            r.score(status.value("unknown", -0.5).value("failed", -1.0))
        },
        "score default, utility 0.5, status 10 (unknown -0.5, failed -1)",
    ),
    (
        |r| {
            let weights = Weights::zero().weight(Part::Similarity, 1.0).weight(Part::Recency, 2.0);
            r.score(weights.half_life(Duration::from_secs(36 * 3_600)))
        },
        "score similarity 1, recency 2 half-life 36h",
    ),
    (
        |r| r.score(Weights::zero().weight(Part::Words, 1.0).weight(Part::Recency, 2.0).half_life_steps(9)),
        "score words 1, recency 2 half-life 9 steps",
    ),
    (|r| r.filter(attribute("tool").is("nothing")).relax_below(3), "where tool = 'nothing' relax below 3"),
    (|r| r.expand(2, 300), "expand depth 2 within 300 tokens"),
    (|r| r.expand_to(Noun::Calls), "expand to calls"),
    (|r| r.escalate(EscalateMode::Always), "escalate always"),
    (
        |r| {
            let r = r.escalate(EscalateMode::Auto).escalate_pages(2).escalate_rounds(1);
            r.escalate_protect(0.5).escalate_without_links()
        },
        "escalate auto to pages 2 up to 1 rounds protect 0.5 without links",
    ),
    (|r| r.at_step(20).at_time(3 * DAY).at_version("v2"), "at step 20, time '1970-01-04T00:00:00Z', version 'v2'"),
    (|r| r.as_of_commit(1), "as of commit 1"),
    (|r| r.budget(60), "budget 60 tokens"),
    (|r| r.abstain_below(0.99), "abstain below 0.99"),
    (|r| r.limit(3), "limit 3"),
    (|r| r.skip(2).limit(3), "limit 3 skip 2"),
    (|r| r.returns(["key", "score", "citations"]), "return key, score, citations"),
];

type Made = fn() -> holotype::condition::Condition;

/// Every test of a predicate.
const CONDITIONS: &[(Made, &str)] = &[
    (|| attribute("step").is(4), "step = 4"),
    (|| attribute("tool").is_not("search"), "tool != 'search'"),
    (|| attribute("step").below(4) | attribute("step").at_least(28), "step < 4 or step >= 28"),
    (|| attribute("step").at_most(4) | attribute("step").above(28), "step <= 4 or step > 28"),
    (|| attribute("key").one_of(["t1", "t2"]), "key in ('t1', 't2')"),
    (|| !attribute("step").one_of([1, 2, 3]), "not step in (1, 2, 3)"),
    (|| attribute("step").between(3, 5), "step between 3 and 5"),
    (|| attribute("text").contains("TRAIN 1"), "text contains 'TRAIN 1'"),
    (|| attribute("key").matches("t?"), "key matches 't?'"),
    (|| attribute("utility").exists(), "has utility"),
    (|| attribute("fields.price").above(60), "fields.price > 60"),
    (|| attribute("age").below(Duration::from_secs(86_400)), "age < 1d"),
    (|| attribute("status").is(Status::Unknown), "status = unknown"),
    (|| attribute("source").is(Source::Document), "source = document"),
    (|| attribute("layer").is(Layer::Recall) & attribute("kind").is(Kind::Fact), "layer = recall and kind = fact"),
    (|| attribute("active").is(true), "active = true"),
    (|| flaw(FlawKind::Ungrounded), "ungrounded"),
    (|| !flaw(Flaw::stale().steps(5)), "not stale(5 steps)"),
    (redacted, "redacted"),
    (|| cites("t3"), "cites 't3'"),
    (|| edge(Edge::Mentions, "c1"), "mentions 'c1'"),
    (|| any_edge(Edge::Mentions), "mentions any"),
    (|| claims("price"), "claims 'price'"),
    (|| claims_value("price", Op::Gt, 50), "claims 'price' > 50"),
    (
        || (flaw(FlawKind::Failed) | cites("t3")) & !(attribute("step").is(3) & attribute("tool").is("book")),
        "(failed or cites 't3') and not (step = 3 and tool = 'book')",
    ),
];

fn check(snapshot: &Snapshot, built: RecallBuilder<'_>, text: &str, params: &Params) -> usize {
    let prepared = snapshot.prepare(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let canonical = bind(prepared.script(), params).unwrap()[0].to_string();
    assert_eq!(built.to_string(), canonical);
    let answer = timeless(built.run().unwrap_or_else(|error| panic!("{text}: {error}")));
    assert!(answer == said(snapshot, text, params), "{text}");
    answer.rows.len()
}

#[test]
fn each_clause_is_that_of_the_language() {
    let (_dir, database) = trips();
    let snapshot = database.snapshot();
    let question = "what does the night train cost?";
    let mut with_rows = 0;
    for (build, clause) in CLAUSES {
        let text = format!("recall '{question}' {clause}");
        with_rows += usize::from(check(&snapshot, build(snapshot.recall(question)), &text, &Params::new()) > 0);
    }
    // Nothing is shown by equal answers without rows.
    assert!(with_rows >= CLAUSES.len() - 4, "{with_rows} of {}", CLAUSES.len());

    let vector = HashingEmbedder::new(64).embed("a train to Lisbon").unwrap();
    let given = params! { vector: &vector };
    check(&snapshot, snapshot.recall_near(vector.clone()), "recall near $vector", &given);
    let both = snapshot.recall(question).near(vector).limit(2);
    check(&snapshot, both, &format!("recall '{question}' near $vector limit 2"), &given);
    check(&snapshot, snapshot.recall_like("t3").limit(4), "recall like 't3' limit 4", &Params::new());
    let time = snapshot.recall(question).as_of_time(i64::MAX / 2).run().unwrap();
    assert_eq!(time.commit, snapshot.commit());
}

#[test]
fn each_condition_is_that_of_the_language() {
    let (_dir, database) = trips();
    let snapshot = database.snapshot();
    let mut with_rows = 0;
    for (build, condition) in CONDITIONS {
        let text = format!("recall 'night train' include failed where {condition} limit 40");
        let built = snapshot.recall("night train").filter(build()).include([FlawKind::Failed]).limit(40);
        with_rows += usize::from(check(&snapshot, built, &text, &Params::new()) > 0);
    }
    assert!(with_rows >= CONDITIONS.len() - 3, "{with_rows} of {}", CONDITIONS.len());
    let twice = snapshot.recall("train").filter(attribute("step").above(3)).filter(attribute("step").below(9));
    check(&snapshot, twice, "recall 'train' where step > 3 and step < 9", &Params::new());
}

#[test]
fn pages_are_a_scope_and_receipts_are_written_in_a_transaction() {
    let (_dir, database) = trips();
    database.query("close episode 'trip-1'", &Params::new()).unwrap();
    let pages: Vec<(String,)> = database.query_rows("find pages return key", &params! {}).unwrap();
    let snapshot = database.snapshot();
    let page = pages[0].0.as_str();
    check(&snapshot, snapshot.recall("train").in_page(page), &format!("recall 'train' in page '{page}'"), &params! {});

    let asked = snapshot.recall("night train").limit(2).with_receipt();
    assert_eq!(asked.clone().run().unwrap_err().code(), "read-only");
    let mut transaction = database.begin().unwrap();
    let answer = asked.run_in(&mut transaction).unwrap();
    let plain = snapshot.recall("night train").limit(2).run_in(&mut transaction).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!((answer.rows.len(), plain.receipt), (2, None));
    let receipt = answer.receipt.unwrap();
    let kept: Vec<(String, String)> =
        database.query_rows("find receipts return receipt, statement", &params! {}).unwrap();
    assert_eq!(kept, [(receipt, "recall 'night train' limit 2".to_owned())]);
}

#[test]
fn what_is_wrong_is_the_error_of_the_language() {
    let (_dir, database) = trips();
    let snapshot = database.snapshot();
    let wrong = |built: RecallBuilder<'_>, code: &str, part: &str| {
        let error = built.run().unwrap_err();
        assert!(error.code() == code && error.to_string().contains(part), "{}: {error}", error.code());
    };
    let said = snapshot.query("recall 'x' where stepp = 1", &Params::new()).unwrap_err();
    wrong(snapshot.recall("x").filter(attribute("stepp").is(1)), said.code(), "stepp");
    let said = snapshot.query("recall 'x' score profile agnt", &Params::new()).unwrap_err();
    wrong(snapshot.recall("x").profile("agnt"), said.code(), "agnt");
    let said = snapshot.query("recall 'x' where step = 'a'", &Params::new()).unwrap_err();
    wrong(snapshot.recall("x").filter(attribute("step").is("a")), said.code(), "step");
    let said = snapshot.query("recall 'x' return kee", &Params::new()).unwrap_err();
    wrong(snapshot.recall("x").returns(["kee"]), said.code(), "kee");
    wrong(snapshot.recall("x").skip(3), "invalid", "limit");
    let batch = [snapshot.recall("train").limit(1), snapshot.recall("x").profile("agnt"), snapshot.recall("train")];
    let answers = snapshot.recall_batch(&batch);
    assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
}

#[test]
fn rows_of_every_statement_are_typed() {
    let (_dir, database) = trips();
    let params = params! { q: "night train 6", n: 2 };
    let rows: Vec<(String, f32, Option<u64>)> =
        database.query_rows("recall $q through traces limit $n return key, score, step", &params).unwrap();
    assert_eq!((rows.len(), rows[0].0.as_str(), rows[0].2), (2, "t6", Some(6)));
    assert!(rows[0].1 >= rows[1].1);
    let answer = database.query("recall 'night train 6' limit 1", &params! {}).unwrap().remove(0);
    let Output::Answer(answer) = answer else { panic!("an answer") };
    let table = answer.table();
    assert_eq!(table.columns.len(), table.rows[0].len());
    for (column, cell) in table.columns.iter().zip(&table.rows[0]) {
        let json = answer.rows[0].to_json(Some(std::slice::from_ref(column)));
        assert_eq!(cell.is_some(), json.get(column).is_some(), "{column}");
    }
    let step: (u32,) = database.query_one("find items where key = 't5' return step", &params! {}).unwrap();
    assert_eq!(step.0, 5);
    let (count,): (u64,) = database.query_one("count facts", &params! {}).unwrap();
    assert_eq!(count, 11);
    let (time,): (SystemTime,) = database.query_one("find items where key = 't8' return time", &params! {}).unwrap();
    assert_eq!(time, UNIX_EPOCH + Duration::from_secs(86_400));
    let citations: (Vec<String>,) =
        database.query_one("recall 'train 3 costs 43' through facts limit 1 return citations", &params! {}).unwrap();
    assert_eq!(citations.0.len(), 1);

    let none = database.query_one::<(String,)>("find items where key = 'nobody' return key", &params! {}).unwrap_err();
    assert!(matches!(none, Error::Missing { .. }), "{none}");
    let many = database.query_one::<(String,)>("find facts return key", &params! {}).unwrap_err().to_string();
    assert!(many.contains("gave 11"), "{many}");
    let two = database.query_rows::<(String,)>("count facts; count items", &params! {}).unwrap_err().to_string();
    assert!(two.contains("one statement"), "{two}");
    let wide = database.query_rows::<(String,)>("recall 'train'", &params! {}).unwrap_err().to_string();
    assert!(wide.contains("expected 1 column"), "{wide}");
}

#[test]
fn parameters_are_made_of_values_of_rust() {
    let vector = vec![1.0_f32, 2.0];
    let made = params! {
        text: "a", owned: String::from("b"), number: 3, whole: 4_u64, share: 0.5, yes: true,
        vector: &vector, list: ["x", "y"], pair: ("t", vector.clone()),
    };
    let list = ParamValue::List(vec![ParamValue::Text("x".to_owned()), ParamValue::Text("y".to_owned())]);
    let pair = ParamValue::TextVector { text: "t".to_owned(), vector: vector.clone() };
    let expected = [
        ("text", ParamValue::Text("a".to_owned())),
        ("owned", ParamValue::Text("b".to_owned())),
        ("number", ParamValue::Int(3)),
        ("whole", ParamValue::Int(4)),
        ("share", ParamValue::Float(0.5)),
        ("yes", ParamValue::Bool(true)),
        ("vector", ParamValue::Vector(vector)),
        ("list", list),
        ("pair", pair),
    ];
    assert_eq!(made, Params::from(expected.map(|(name, value)| (name.to_owned(), value))));
    assert!(params! {}.is_empty());
}

#[test]
fn items_are_read_by_many_keys_and_by_prefix() {
    let (_dir, database) = trips();
    let before = database.snapshot();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("later", "later").key("t1x")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let items = before.get_many(["t3", "nobody", "f3", "t3"]).unwrap();
    let keys: Vec<Option<&str>> = items.iter().map(|item| item.as_ref().map(|item| item.key.as_str())).collect();
    assert_eq!(keys, [Some("t3"), None, Some("f3"), Some("t3")]);
    let scanned = |snapshot: &Snapshot| -> Vec<String> { snapshot.scan("t1").map(|item| item.unwrap().key).collect() };
    let expected: Vec<String> = ["t1".to_owned()].into_iter().chain((10..20).map(|n| format!("t{n}"))).collect();
    assert_eq!(scanned(&before), expected);
    let all = database.snapshot().as_of(before.commit()).unwrap();
    assert_eq!(scanned(&all), expected);
    assert!(scanned(&database.snapshot()).contains(&"t1x".to_owned()));
    assert_eq!(before.scan("").count(), before.len() as usize);
}
