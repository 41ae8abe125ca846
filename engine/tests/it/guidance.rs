//! Guidance from the rows of an answer (PlugMem C.4), reflection on new facts (F), and lifts by votes (A.1).

use holotype::answer::{Answer, Output};
use holotype::embed::HashingEmbedder;
use holotype::query::Params;
use holotype::structure::{ReflectByWords, Reflection, Reflector};
use holotype::{
    Asked, Durability, Edge, Extractive, Guidance, Holotype, ItemId, Kind, Mode, NewRecall, NewTrace, Options, Pointer,
    Reasoner, Row, Space, parse_guidance,
};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;

fn database() -> Holotype {
    let embedder = HashingEmbedder::new(64);
    let options = Options { page_size: 4096, ..Options::with_space(Space::new(embedder.name(), 64)) };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
}

fn fact(database: &Holotype, episode: &str, key: &str, text: &str) -> ItemId {
    let mut transaction = database.begin().unwrap();
    let trace = transaction.record(NewTrace::turn(episode, text).key(format!("t-{key}"))).unwrap();
    let mut fact = NewRecall::fact(text).key(key).from(Pointer::to_item(trace));
    fact = fact.vector(HashingEmbedder::new(64).embed(text).unwrap());
    let id = transaction.remember(fact).unwrap();
    transaction.commit(Durability::None).unwrap();
    id
}

fn ask(database: &Holotype, statement: &str) -> Answer {
    match database.query(statement, &Params::new()).unwrap().pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_built_in_reasoner_takes_sentences_in_their_own_words() {
    let database = database();
    let founder = fact(&database, "e", "f1", "Quillan Ro founded Velmora. It rained that day.");
    fact(&database, "e", "f2", "Velmora sells lamps.");
    let question = "Who founded Velmora?";
    let answer = ask(&database, "recall 'Who founded Velmora?' through facts 5 limit 5");
    assert_eq!(answer.rows.len(), 2);
    let guidance = answer.guidance(question, Mode::Semantic, &Extractive::default()).unwrap();
    // Both rows say Velmora: only what tells them apart counts.
    assert_eq!(guidance, Guidance { text: "Quillan Ro founded Velmora. [f1]".to_owned(), cites: vec![founder] });
    let nothing = answer.guidance("When does the opera open?", Mode::Semantic, &Extractive::default()).unwrap();
    assert_eq!(nothing, Guidance::default());
    let none = answer.guidance(question, Mode::Semantic, &Extractive { most: 0 }).unwrap();
    assert_eq!(none, Guidance::default());
}

/// Table 9 of PlugMem: four sessions speak of weddings in other forms of the word, and one of a meal.
#[test]
fn events_are_found_by_stems_and_all_of_them() {
    let database = database();
    for (nth, text) in [
        "I just got back from Rachel's wedding in the city.",
        "My cousin had a lovely wedding at a vineyard. The food was good.",
        "Emily's wedding was on a rooftop garden.",
        "Jen's wedding was at a barn.",
    ]
    .into_iter()
    .enumerate()
    {
        fact(&database, "e", &format!("w{nth}"), text);
    }
    fact(&database, "e", "m", "I had soup.");
    let question = "How many weddings have I attended in this year?";
    let answer =
        ask(&database, "recall 'How many weddings have I attended in this year?' through facts 9 limit 9 lines none");
    let guidance = answer.guidance(question, Mode::Episodic, &Extractive::default()).unwrap();
    assert_eq!(guidance.text.matches("wedding").count(), 4, "{}", guidance.text);
    assert!(!guidance.text.contains("soup") && !guidance.text.contains("food"), "{}", guidance.text);
    let bride = answer.guidance("What is the name of the bride?", Mode::Semantic, &Extractive::default()).unwrap();
    assert_eq!(bride, Guidance::default(), "stop words are no reason: {}", bride.text);
}

#[test]
fn procedures_come_whole() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let text = "To sort by price:\n1. open\n2. sort";
    transaction.remember(NewRecall::new(Kind::Procedure, text).key("p").ungrounded()).unwrap();
    transaction.commit(Durability::None).unwrap();
    let answer = ask(&database, "recall 'sort lamps' through procedures 5 include ungrounded limit 5");
    let guidance = answer.guidance("sort lamps", Mode::Procedural, &Extractive::default()).unwrap();
    assert_eq!(guidance.text, format!("{text} [p]"));
}

#[test]
fn replies_of_reasoners_cite_rows_or_are_refused() {
    let database = database();
    let id = fact(&database, "e", "f1", "Quillan Ro founded Velmora.");
    let answer = ask(&database, "recall 'Velmora' through facts 5 limit 5");
    let parse = |reply: &str, mode| parse_guidance(reply, mode, &answer.rows);
    let good = "### Reasoning\nf1 says so.\n\n### Information\n\nQuillan Ro [f1].\n";
    let expected = Guidance { text: "Quillan Ro [f1].".to_owned(), cites: vec![id] };
    assert_eq!(parse(good, Mode::Semantic).unwrap(), expected);
    assert_eq!(parse(&good.replace("Information", "Final Information"), Mode::Procedural).unwrap(), expected);
    assert_eq!(parse("Step 1 [f1].", Mode::Episodic).unwrap().cites, [id]);
    assert_eq!(parse("### Information\nnull", Mode::Semantic).unwrap(), Guidance::default());
    assert!(parse(good, Mode::Procedural).is_err());
    assert!(parse("Quillan Ro", Mode::Semantic).is_err());
    assert!(parse(&good.replace("[f1]", "[f2]"), Mode::Semantic).is_err());
    // Elements of a page, as agents on the web write them, are no citations.
    let typed = "### Final Information\ntype [1913] [usb hub] [1], as [f1] says";
    assert_eq!(parse(typed, Mode::Procedural).unwrap().cites, [id]);
    struct Invents;
    impl Reasoner for Invents {
        fn reason(&self, _: &Asked<'_>, _: &[Row]) -> holotype::Result<Guidance> {
            Ok(Guidance { text: "so it is".to_owned(), cites: vec![ItemId(0)] })
        }
    }
    assert!(answer.guidance("Velmora", Mode::Semantic, &Invents).is_err());
}

#[test]
fn every_mode_has_a_path_that_runs() {
    let database = database();
    fact(&database, "e", "f1", "Quillan Ro founded Velmora.");
    for (mode, leads_to) in [(Mode::Episodic, Some("t-f1")), (Mode::Semantic, Some("f1")), (Mode::Procedural, None)] {
        let answer = ask(&database, &format!("recall 'Velmora' through {} limit 5", mode.path()));
        match leads_to {
            Some(key) => assert!(answer.rows.iter().any(|row| row.key == key), "{mode:?}: {:?}", answer.rows),
            None => assert_eq!(answer.rows, [], "nothing is known of how to do anything"),
        }
    }
}

#[test]
fn a_new_fact_is_added_or_merged_with_what_it_speaks_of() {
    struct Fails;
    impl Reflector for Fails {
        fn reflect(&self, _: &[String], _: &str) -> holotype::Result<Reflection> {
            Reflection::parse("I would rather not", 0)
        }
    }
    let database = database();
    let old = fact(&database, "e", "price", "UA123 costs $450 today");
    let mut transaction = database.begin().unwrap();
    let trace = transaction.record(NewTrace::turn("e", "UA123 costs $480 today").key("t2")).unwrap();
    let new = |text: &str| NewRecall::fact(text).from(Pointer::to_key("t2"));
    let merged = transaction.reflect(new("UA123 costs $480 today"), 5, &ReflectByWords).unwrap();
    let added = transaction.reflect(new("The opera opens in May"), 5, &ReflectByWords).unwrap();
    let failed = transaction.reflect(new("UA123 costs $480 now"), 5, &Fails).unwrap();
    let kind = NewRecall::new(Kind::Summary, "x").from(Pointer::to_key("t2"));
    assert!(transaction.reflect(kind, 5, &ReflectByWords).is_err());
    transaction.commit(Durability::None).unwrap();
    let snapshot = database.snapshot();
    assert_eq!(snapshot.get("price").unwrap().unwrap().id, merged);
    assert!(!snapshot.attributes(old).unwrap().active);
    let mut cited = snapshot.linked(merged, Edge::Cites).unwrap();
    cited.sort_unstable();
    assert_eq!(cited, [snapshot.get("t-price").unwrap().unwrap().id, trace]);
    for id in [added, failed] {
        assert!(snapshot.attributes(id).unwrap().active && snapshot.linked(id, Edge::Supersedes).unwrap().is_empty());
    }
}

#[test]
fn a_lift_from_thirty_facts_asks_for_three_votes_and_other_sessions_keep_their_facts() {
    let database = database();
    // Thirty facts about weddings: many of two sessions, two of a third one.
    for (session, count) in [("a", 18), ("b", 10), ("c", 2)] {
        for nth in 0..count {
            fact(
                &database,
                session,
                &format!("{session}{nth}"),
                &format!("The wedding {session}{nth} was by the sea."),
            );
        }
    }
    let keys =
        |statement: &str| -> Vec<String> { ask(&database, statement).rows.into_iter().map(|row| row.key).collect() };
    let lifted = keys("recall 'wedding by the sea' through facts 30 -> lift to episodes 5 limit 100 lines none");
    assert!(lifted.iter().any(|key| key.starts_with("t-a")) && lifted.iter().any(|key| key.starts_with("t-b")));
    assert!(!lifted.iter().any(|key| key.starts_with("t-c")), "two votes are too few: {lifted:?}");
    assert!(lifted.contains(&"c0".to_owned()) && lifted.contains(&"c1".to_owned()));
    // From fewer facts one vote is enough, and a stated number holds.
    for path in ["facts 29 -> lift to episodes 5", "facts 30 -> lift to episodes 5 votes 2"] {
        let lifted = keys(&format!("recall 'wedding by the sea c1' through {path} limit 100"));
        assert!(lifted.iter().any(|key| key.starts_with("t-c")), "{path}: {lifted:?}");
    }
}
