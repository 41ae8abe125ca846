//! The other roles, through what the engine does with them.

use crate::server::{Act, Server, limits};
use holotype::answer::{Answer, Output};
use holotype::credit::{
    ChangeAnswer, Corruptor, CreditOptions, PreWriteState, Run, RunStep, Scoreboard, Scorer, Scoring, Template,
    deconfound,
};
use holotype::query::Params;
use holotype::structure::{self, FactMerger, IntentMerger, Reflection, Reflector, Relation, Trajectory};
use holotype::{
    CitedRecall, Created, Durability, Holotype, ItemId, MemoryLoop, Mode, ModeChooser, NewRecall, NewTrace, Operation,
    Options, Pointer, Step,
};
use holotype_models::{Answered, Model, TokenScorer};
use serde_json::{Value, json};
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
fn a_trajectory_is_structured_by_a_model() {
    let (database, _dir) = database();
    let step = structure::Step::new("Velmora sells the lamp Aurora today.").action("click sort");
    let step = step.speaker("the shop").time(1_767_657_600_000_000);
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
        let created = database.structure(&trajectory, &roles, Durability::None)?;
        let extracting = server.requests().into_iter().find(|it| it.message(0).starts_with("You extract precise"));
        let inputs = extracting.unwrap().inputs();
        assert_eq!((&inputs["time"], &inputs["speaker"]), (&json!("2026-01-06T00:00:00Z"), &json!("the shop")));
        Ok(created)
    };
    let before = database.snapshot().commit();
    let created = create("Velmora sells the lamp Borealis").unwrap();
    assert_eq!((created.traces.len(), created.facts.len(), created.procedures.len()), (1, 0, 1));
    assert!(created.notes[0].contains("does not contain the quote"), "an invented quote is no fact: {created:?}");
    assert!(database.snapshot().commit() > before);
    let created = create("sells the lamp Aurora").unwrap();
    assert_eq!((created.facts.len(), created.concepts.len(), created.procedures.len()), (1, 2, 1));
    let item = database.snapshot().item(created.procedures[0]).unwrap();
    assert_eq!(item.attributes.return_score, Some(9));
}

/// One reply of a hundred is imperfect: it cost a whole trajectory, with all calls made for it.
#[test]
fn an_imperfect_reply_costs_what_it_is_about_and_is_asked_for_again() {
    let (database, _dir) = database();
    let trajectory = || {
        let step = structure::Step::new("Velmora sells the lamp Aurora today.").action("click sort");
        Trajectory { episode: "shop".to_owned(), goal: "buy a lamp".to_owned(), steps: vec![step] }
    };
    let create = |database: &Holotype, server: &Server| -> holotype::Result<Created> {
        let model = model(server);
        let (standardiser, extractor, procedures) = (&model, &model, &model);
        let roles = structure::Roles { standardiser, extractor, procedures, ..structure::Roles::default() };
        database.structure(&trajectory(), &roles, Durability::None)
    };
    // Prose before the object, twice: the step stays as it is stated. A score of 8.5 is none.
    let server = Server::new(|_, request| {
        let prompt = request.message(0);
        Act::says(match prompt {
            _ if prompt.starts_with("You describe a step") => "Here it is: {\"state\": \"x\"}",
            _ if prompt.starts_with("You extract precise facts") => r#"{"facts": []}"#,
            _ => r#"{"intent": "sort any list", "procedure": "Sort it.", "return_score": 8.5}"#,
        })
    });
    let created = create(&database, &server).unwrap();
    assert_eq!((created.traces.len(), created.procedures.len()), (1, 1));
    assert!(created.notes[0].starts_with("step 0 stays as it is stated"), "{:?}", created.notes);
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "the first role was asked again");
    let why = requests[1].inputs()["your_last_reply_was_refused_because_it"].to_string();
    assert!(why.contains("no JSON object"), "{why}");
    let snapshot = database.snapshot();
    assert_eq!(snapshot.item(created.procedures[0]).unwrap().attributes.return_score, None);
    assert_eq!(snapshot.item(created.intents[0]).unwrap().content.text(), "sort any list");
    // A server that is gone refuses the trajectory, and nothing is written.
    let before = database.snapshot().commit();
    assert!(create(&database, &Server::new(|_, _| Act::status(401))).is_err());
    assert_eq!(database.snapshot().commit(), before);
}

/// Other writers waited for the model, for all calls of a trajectory.
#[test]
fn nobody_waits_for_a_model_that_structures() {
    let (database, _dir) = database();
    let writer = database.clone();
    let server = Server::new(move |nth, _| {
        // While the model is asked, somebody writes.
        let mut transaction = writer.begin_timeout(std::time::Duration::from_secs(5)).unwrap();
        transaction.record(NewTrace::turn("other", format!("turn {nth}"))).unwrap();
        transaction.commit(Durability::None).unwrap();
        Act::says(r#"{"facts": []}"#)
    });
    let extractor = model(&server);
    let roles = structure::Roles { extractor: &extractor, ..structure::Roles::default() };
    let steps = vec![structure::Step::new("One is here."), structure::Step::new("Two is there.")];
    let trajectory = Trajectory { episode: "e".to_owned(), goal: "look".to_owned(), steps };
    database.structure(&trajectory, &roles, Durability::None).unwrap();
    assert_eq!(database.snapshot().len(), 4, "two turns of others and two steps");
    assert_eq!(extractor.usage()[&holotype_models::Role::Extractor].calls, 2);
}

#[test]
fn a_merger_that_fails_is_an_error() {
    let (database, _dir) = database();
    let space = holotype::Space::new("test", 2);
    let mut transaction = database.begin().unwrap();
    transaction.define_space(&space).unwrap();
    let concept = transaction.remember(NewRecall::new(holotype::Kind::Concept, "Velmora").ungrounded()).unwrap();
    let mut facts = Vec::new();
    for (nth, text) in ["Velmora sells lamps.", "Velmora sells good lamps."].into_iter().enumerate() {
        let trace = transaction.record(NewTrace::turn("e", format!("{nth} {text}"))).unwrap();
        let fact = NewRecall::fact(text).from(Pointer::to_item(trace)).vector(vec![1.0, 0.1 * nth as f32]);
        let fact = transaction.remember(fact).unwrap();
        transaction.link(fact, holotype::Edge::Mentions, concept).unwrap();
        facts.push(fact);
    }
    let down = Server::new(|_, _| Act::status(401));
    let options = holotype::MergeOptions::default();
    assert!(transaction.merge(&facts, &model(&down), options).unwrap_err().to_string().contains("status 401"));
    let merged = transaction.merge(&facts, &structure::MergeByWords, options).unwrap();
    assert_eq!(merged.len(), 1, "the built-in merger finds them alike");
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

/// A server for which each character is a token of log-probability -1, behind which the generated one stands.
fn scorer() -> Server {
    Server::new(|_, request| {
        let prompts = match &request.body["prompt"] {
            Value::Array(prompts) => prompts.clone(),
            prompt => vec![prompt.clone()],
        };
        let choice = |(index, prompt): (usize, &Value)| {
            let characters = prompt.as_str().unwrap().chars().map(String::from);
            let tokens: Vec<String> = characters.chain(["!".to_owned()]).collect();
            let scores: Vec<_> = (0..tokens.len()).map(|at| if at == 0 { json!(null) } else { json!(-1.0) }).collect();
            json!({"index": index, "logprobs": {"token_logprobs": scores, "tokens": tokens}})
        };
        // The order is that of the indices, and of nothing else.
        Act::body(&json!({"choices": prompts.iter().enumerate().map(choice).rev().collect::<Value>()}))
    })
}

/// A policy has no log-probability of an empty text. Blanking a memory, as Table 4 does, asked for one and failed.
#[test]
fn a_policy_measures_runs_whose_memories_are_empty() {
    let step = |memory: &str, observation: &str| RunStep {
        memory: memory.to_owned(),
        think: "look".to_owned(),
        call: "search".to_owned(),
        observation: observation.to_owned(),
    };
    let run = |rollout: &str, reward: f64| Run {
        group: "g".to_owned(),
        rollout: rollout.to_owned(),
        question: "Which gate?".to_owned(),
        outcome: "12".to_owned(),
        reward,
        steps: vec![step("", "The gate is 12."), step("gate 12", "Nothing.")],
    };
    let server = scorer();
    let policy = TokenScorer::new(server.client(limits()).0);
    let board = Scoreboard { scorer: &policy, template: &Template::default() };
    let scores = board.scores(&run("a", 1.0)).unwrap();
    assert_eq!(scores.iter().map(|scores| scores.log_h).collect::<Vec<_>>(), [None, Some(-1.0)]);
    assert_eq!(server.requests().len(), 1, "all continuations of a run are one call");
    let runs = [run("a", 1.0), run("b", 0.0)];
    let measured = deconfound(&runs, &board, &ChangeAnswer, &CreditOptions::default()).unwrap();
    assert_eq!(measured.counts[1], 2, "the memory that is not empty was dropped in each run");
}

#[test]
fn a_passage_is_corrupted_and_a_continuation_scored() {
    let reply = r#"{"passage": "The gate is 47.", "replaced": [{"word": "12", "by": "47"}]}"#;
    let corruptor = Server::always(reply);
    let wrong = model(&corruptor).corrupt("The gate is 12.", "12").unwrap().unwrap();
    assert_eq!(wrong.passage, "The gate is 47.");

    let scorer = scorer();
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

#[test]
fn pages_become_facts_and_answers_are_judged() {
    let (database, _dir) = database();
    let story = "record turn 'The ferry leaves from pier 4.' in episode 'e' with key = 't1'; close episode 'e'";
    database.query(story, &Params::new()).unwrap();
    let reply = r#"{"facts": [{"fact": "The ferry leaves from pier 4.", "quote": "from pier 4", "tag": "ferry"},
        {"fact": "It is blue.", "quote": "it is blue", "tag": null}]}"#;
    let facts = model(&Server::always(reply)).extract_pages(&database, None, Durability::None, 9).unwrap();
    assert_eq!(facts.written, [("e/p1".to_owned(), 1)]);
    assert!(facts.failed[0].1.starts_with("It is blue."), "{facts:?}");
    let garbage = model(&Server::always("no JSON")).extract_pages(&database, None, Durability::None, 9).unwrap();
    assert_eq!((garbage.written.len(), garbage.failed.len()), (0, 0), "nothing is due");

    let rows = database.snapshot().recall("Which pier?").run().unwrap().rows;
    let answers = |reply: &'static str| model(&Server::always(reply)).answer("Which pier?", &rows);
    let said = answers(r#"{"answer": "4", "keys": ["t1"]}"#).unwrap();
    assert_eq!((said.text.as_deref(), said.keys.len()), (Some("4"), 1));
    assert_eq!(answers(r#"{"answer": null, "keys": []}"#).unwrap(), Answered::default());
    for wrong in ["4", r#"{"answer": "4", "keys": ["nobody"]}"#, r#"{"answer": "4"}"#] {
        assert!(answers(wrong).is_err(), "{wrong}");
    }
    let judges = |reply: &'static str| model(&Server::always(reply)).judge("Which pier?", &["4"], "four").ok();
    assert_eq!((judges(r#"{"correct": true}"#), judges(r#"{"correct": "yes"}"#)), (Some(true), None));
}

/// An embedder that gives this number of vectors, or fails.
#[derive(Debug)]
struct Gives(Option<usize>);

impl holotype::embed::Embedder for Gives {
    fn fingerprint(&self) -> String {
        "gives-1".to_owned()
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn embed_passages(&self, _: &[&str]) -> Result<Vec<Option<Vec<f32>>>, holotype::embed::EmbedError> {
        let count = self.0.ok_or_else(|| holotype::embed::EmbedError::new("no model"))?;
        Ok(vec![Some(vec![1.0]); count])
    }
}

#[test]
fn no_fact_of_a_page_is_lost_to_an_embedder_that_fails_or_gives_too_little() {
    let (database, _dir) = database();
    let story = "record turn 'The ferry leaves from pier 4.' in episode 'e'; close episode 'e'";
    database.query(story, &Params::new()).unwrap();
    let reply = r#"{"facts": [{"fact": "The ferry leaves from pier 4.", "quote": "from pier 4", "tag": null}]}"#;
    let facts = |embedder: Option<&Gives>| {
        let embedder = embedder.map(|embedder| embedder as &dyn holotype::embed::Embedder);
        model(&Server::always(reply)).extract_pages(&database, embedder, Durability::None, 9).unwrap()
    };
    for (embedder, said) in [(Gives(None), "no model"), (Gives(Some(0)), "0 vectors for 1 facts")] {
        let facts = facts(Some(&embedder));
        assert!(facts.written.is_empty() && facts.failed[0].1.contains(said), "{facts:?}");
    }
    assert_eq!(facts(None).written, [("e/p1".to_owned(), 1)], "the page is still due");
}
