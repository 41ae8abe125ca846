//! The other roles, through what the engine does with them.

use crate::server::{Act, Server, limits};
use holotype::answer::{Answer, Output};
use holotype::credit::{Corruptor, PreWriteState, Scorer, Scoring, Template};
use holotype::query::Params;
use holotype::structure::{self, FactMerger, IntentMerger, Reflection, Reflector, Relation, Trajectory};
use holotype::{
    CitedRecall, Created, Durability, Holotype, ItemId, MemoryLoop, Mode, ModeChooser, NewRecall, NewTrace, Operation,
    Options, Pointer, Step,
};
use holotype_models::{Model, TokenScorer};
use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;

fn database() -> (Holotype, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap(), dir)
}

fn model(server: &Server) -> Model {
    Model::new(server.client(limits()).0).unwrap()
}

fn fact(database: &Holotype, key: &str, text: &str) -> ItemId {
    let mut transaction = database.begin().unwrap();
    let trace = transaction.record(NewTrace::turn("e", text).key(format!("t-{key}"))).unwrap();
    let id = transaction.remember(NewRecall::fact(text).key(key).from(Pointer::to_item(trace))).unwrap();
    transaction.commit(Durability::None).unwrap();
    id
}

fn ask(snapshot: &holotype::Snapshot, statement: &str) -> Answer {
    match snapshot.query(statement, &Params::new()).unwrap().pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("{other:?}"),
    }
}

/// A model that structures: told by its prompt which role it has.
fn structuring(quote: &'static str) -> Server {
    Server::new(move |_, request| {
        let prompt = request.message(0);
        Act::says(&match prompt {
            _ if prompt.starts_with("You describe a step") => {
                let about = request.inputs()["observation"].as_str().unwrap_or_default().to_owned();
                json!({"state": format!("It saw: {about}"), "subgoal": "sort by price", "reward": 1}).to_string()
            }
            _ if prompt.starts_with("You extract precise facts") => json!({"facts": [{
                "statement": "Velmora sells the lamp Aurora.", "quote": quote, "concepts": ["Velmora", "Aurora"],
            }]})
            .to_string(),
            _ if prompt.starts_with("You write down what") => {
                r#"{"procedure": "Sort the list before reading it.", "return_score": 9}"#.to_owned()
            }
            _ => panic!("an unexpected prompt: {prompt}"),
        })
    })
}

#[test]
fn a_trajectory_is_structured_by_a_model_or_not_at_all() {
    let (database, _dir) = database();
    let step = structure::Step::new("Velmora sells the lamp Aurora today.").action("click sort");
    let trajectory = Trajectory { episode: "shop".to_owned(), goal: "buy a lamp".to_owned(), steps: vec![step] };
    let create = |quote: &'static str| -> holotype::Result<Created> {
        let server = structuring(quote);
        let model = model(&server);
        let roles = structure::Roles {
            standardiser: &model,
            extractor: &model,
            procedures: &model,
            intents: &model,
            ..structure::Roles::default()
        };
        let mut transaction = database.begin()?;
        let created = transaction.create(&trajectory, &roles)?;
        transaction.commit(Durability::None)?;
        Ok(created)
    };
    let before = database.snapshot().commit();
    let error = create("Velmora sells the lamp Borealis").unwrap_err().to_string();
    assert!(error.contains("does not contain the quote"), "{error}");
    assert_eq!(database.snapshot().commit(), before, "an invented quote writes nothing");
    let created = create("sells the lamp Aurora").unwrap();
    assert_eq!((created.facts.len(), created.concepts.len(), created.procedures.len()), (1, 2, 1));
    let item = database.snapshot().item(created.procedures[0]).unwrap();
    assert_eq!(item.attributes.return_score, Some(9));
}

#[test]
fn intents_and_facts_are_merged_and_a_new_fact_reflected_on() {
    let server = Server::script(vec![
        Act::says(r#"{"intent": "buy a cheap lamp"}"#),
        Act::says(
            r#"{"merged_statement": "UA123 costs $480.", "relationship": "UPDATE_SAME_FACT", "deactivate_earlier": true,
            "deactivate_later": true, "simple_reasoning": "the price changed"}"#,
        ),
        Act::says("<think>hm</think>Merge(1, Ann lives in Oslo since May.)"),
        Act::says("Merge(2, Ann lives in Oslo since May.)"),
        Act::says("Merge(0, two\nlines)"),
    ]);
    let model = model(&server);
    assert_eq!(IntentMerger::merge(&model, "buy a lamp", "buy something cheap").unwrap(), "buy a cheap lamp");
    let merged = FactMerger::merge(&model, "UA123 costs $450.", "UA123 costs $480.").unwrap();
    assert_eq!((merged.text.as_str(), merged.relation), ("UA123 costs $480.", Relation::Update));
    let known = ["Ann runs.".to_owned(), "Ann lives in Oslo.".to_owned()];
    let reflect = || Reflector::reflect(&model, &known, "Ann moved in May.");
    assert_eq!(reflect().unwrap(), Reflection::Merge(1, "Ann lives in Oslo since May.".to_owned()));
    assert!(reflect().is_err() && reflect().is_err(), "an index beyond, and a statement of two lines");
    // Nothing is known: nobody has to be asked.
    assert_eq!(Reflector::reflect(&model, &[], "x").unwrap(), Reflection::Add);
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn the_hop_controller_goes_on_from_rows_that_are_there() {
    let (database, _dir) = database();
    for nth in 0..4 {
        fact(&database, &format!("f{nth}"), &format!("Velmora shop number {nth} sells lamps."));
    }
    let statement = "recall 'Velmora lamps' through facts 4 -> (concepts 4 -> facts 4) up to 1 hops limit 4";
    for (reply, is_refused) in [
        (r#"{"enough": true, "top_node_ids": []}"#, false),
        (r#"{"enough": false, "top_node_ids": [4000000]}"#, true),
        (r#"{"enough": false, "enough": true, "top_node_ids": []}"#, true),
        ("I have enough.", true),
    ] {
        let server = Server::new(move |_, _| Act::says(reply));
        let controller = Arc::new(model(&server));
        let answer = ask(&database.snapshot().with_hop_controller(controller), statement);
        assert_eq!(answer.rows.len(), 4, "{reply}: what was found so far is an answer");
        let shown = server.requests()[0].inputs()["facts"].as_array().unwrap().len();
        assert!(shown > 0, "{reply} {is_refused}");
    }
}

#[test]
fn the_mode_and_the_guidance_of_a_question() {
    let (database, _dir) = database();
    let id = fact(&database, "f1", "Quillan Ro founded Velmora.");
    let question = "Who founded Velmora?";
    let answer = ask(&database.snapshot(), "recall 'Who founded Velmora?' through facts 5 limit 5");
    let reason = |reply: &'static str| {
        let server = Server::always(reply);
        answer.guidance(question, Mode::Semantic, &model(&server))
    };
    let guidance = reason("### Reasoning\nf1 says it.\n\n### Information\nQuillan Ro founded Velmora. [f1]").unwrap();
    assert_eq!((guidance.text.as_str(), guidance.cites), ("Quillan Ro founded Velmora. [f1]", vec![id]));
    assert!(reason("### Information\nnull").unwrap().text.is_empty());
    assert!(reason("### Information\nSomebody did. [f7]").unwrap_err().to_string().contains("none of the rows"));
    assert!(reason("Quillan Ro. [f1]").is_err(), "the heading is missing");
    let server = Server::script(vec![
        Act::says("### Reasoning\nIt asks.\n\n### Memory Type\nepisodic_memory"),
        Act::says("episodic, or semantic"),
    ]);
    let chooser = model(&server);
    assert_eq!(chooser.choose("", question).unwrap(), Mode::Episodic);
    assert!(chooser.choose("", question).is_err());
}

#[test]
fn a_generator_that_invents_citations_is_told_and_then_replaced() {
    let (database, _dir) = database();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::call("trip", "search", "UA123 price=$450").step(12)).unwrap();
    transaction.commit(Durability::None).unwrap();
    // The first reply cites what is not there; the second copies the citation out of the prompt.
    let server = Server::new(|nth, request| {
        let prompt = request.message(1);
        let cite = prompt.split("[[CITE tool").nth(1).and_then(|rest| rest.split("]]").next()).unwrap_or_default();
        Act::says(&match nth {
            0 => "<memory>It costs $450. [[CITE tool=none log=x step=1 field=text start=0 end=5]]</memory>".to_owned(),
            _ => format!("<think>copy</think><memory>UA123 costs $450. [[CITE tool{cite}]]</memory>"),
        })
    });
    let recall = CitedRecall::new("price of UA123").in_episode("trip");
    let memory = recall.run(&database, &mut model(&server), 3).unwrap();
    assert_eq!((memory.attempts.len(), memory.fell_back), (2, false));
    assert!(memory.check.is_some_and(|check| check.is_valid()));
    let down = Server::new(|_, _| Act::status(401));
    let memory = recall.run(&database, &mut model(&down), 2).unwrap();
    assert!(memory.fell_back && memory.attempts[0].diagnostic.as_ref().unwrap().contains("status 401"));
}

#[test]
fn a_controller_that_fails_is_replaced_for_the_step() {
    let (database, _dir) = database();
    let server = Server::script(vec![
        Act::says(r#"{"operations": ["WRITE"]}"#),
        Act::says(r#"{"operations": ["WRITE", "FORGET"]}"#),
    ]);
    let mut memory = MemoryLoop::new(&database, "trip", model(&server));
    let step = |text: &str| Step { observation: Some(NewTrace::turn("trip", text)), request: None };
    let first = memory.step(step("the ferry leaves at nine"), None).unwrap();
    assert_eq!((first.decision.operations, first.controller_error), (vec![Operation::Write], None));
    let second = memory.step(step("it costs 12 EUR"), None).unwrap();
    assert!(second.written.is_some(), "what was observed is written all the same");
    assert!(second.controller_error.unwrap().contains("names no operation"));
    assert_eq!(server.requests()[0].inputs()["observation"], "the ferry leaves at nine");
}

#[test]
fn a_passage_is_corrupted_and_a_continuation_scored() {
    let reply = r#"{"passage": "The gate is 47.", "replaced": [{"word": "12", "by": "47"}]}"#;
    let corruptor = Server::always(reply);
    let wrong = model(&corruptor).corrupt("The gate is 12.", "12").unwrap().unwrap();
    assert_eq!(wrong.passage, "The gate is 47.");

    // Each character is a token of log-probability -1, behind which the generated one stands.
    let scorer = Server::new(|_, request| {
        let count = request.body["prompt"].as_str().unwrap().chars().count();
        let scores = (0..=count).map(|at| if at == 0 { json!(null) } else { json!(-1.0) });
        let logprobs = json!({
            "token_logprobs": scores.collect::<Vec<_>>(), "text_offset": (0..=count).collect::<Vec<_>>(),
        });
        Act::body(&json!({"choices": [{"logprobs": logprobs}]}))
    });
    let state = PreWriteState { question: "Which gate?", ..PreWriteState::default() };
    let scoring = Scoring { state, given: None, continuation: "gate 12" };
    let scores = TokenScorer::new(scorer.client(limits()).0).log_probs(&scoring, &Template::default()).unwrap();
    assert_eq!(scores, [-1.0; 7]);
    let request = scorer.requests().remove(0);
    assert_eq!((request.path.as_str(), &request.body["echo"]), ("/v1/completions", &json!(true)));
    let chat = Server::new(|_, _| Act::body(&json!({"choices": [{"text": "x"}]})));
    let error = TokenScorer::new(chat.client(limits()).0).token_log_probs("a", "b").unwrap_err().to_string();
    assert!(error.contains("does the server support `echo`"), "{error}");
}
