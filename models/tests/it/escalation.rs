//! TierMem with a model in its roles, end to end: `escalate auto` with a judge, the planner, the integrator, the
//! write-back and deferred summaries. Whatever the model does wrong takes the safe way.

use crate::server::{Act, Server, limits};
use holotype::answer::Answer;
use holotype::query::{EscalateMode, Params};
use holotype::router::{Action, LinearRouter};
use holotype::write_back::{ByWords, Grounded};
use holotype::{
    Durability, Holotype, Kind, Learn, LearnOp, LearnRoles, Learned, NewRecall, NewTrace, Options, Pointer, Roles,
    UncoveredWords,
};
use holotype_models::{CallLimits, Model};
use serde_json::json;
use std::time::Duration;
use tempfile::TempDir;

const TURNS: [&str; 4] = [
    "We took the early ferry to Naxos and sat on deck all morning.",
    "Our hotel was called Aria, it had a blue door and a cat on every chair.",
    "Breakfast there was at eight, with figs and too much coffee.",
    "On the way back we missed the bus and walked along the beach.",
];
const QUESTION: &str = "What was the name of the hotel on Naxos?";

fn database() -> (Holotype, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    database.query("set page.tokens = 30", &Params::new()).unwrap();
    let mut transaction = database.begin().unwrap();
    for text in TURNS {
        transaction.record(NewTrace::turn("trip", text).speaker("Ann")).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    database.query("close episode 'trip'", &Params::new()).unwrap();
    (database, dir)
}

fn summarised() -> (Holotype, TempDir) {
    let (database, dir) = database();
    let due = database.snapshot().pages_due().unwrap();
    for (nth, page) in due.into_iter().filter_map(|page| page.key).enumerate() {
        let summary = NewRecall::new(Kind::Summary, format!("Part {nth} of the journey to Naxos, with a hotel."));
        let mut transaction = database.begin().unwrap();
        transaction.remember(summary.from(Pointer::to_page(&page))).unwrap();
        transaction.commit(Durability::None).unwrap();
    }
    (database, dir)
}

fn model(server: &Server, limits: CallLimits) -> Model {
    Model::new(server.client(limits).0).unwrap()
}

fn asked(database: &Holotype, roles: Roles<'_>) -> Answer {
    let snapshot = database.snapshot();
    snapshot.recall(QUESTION).escalate(EscalateMode::Auto).budget(500).run_with(roles).unwrap()
}

fn judged(database: &Holotype, judge: &Model) -> (Action, Option<String>, Answer) {
    let answer = asked(database, Roles::new(judge, &UncoveredWords));
    let routing = answer.escalation.as_ref().unwrap().router.clone();
    (routing.action, routing.failure, answer)
}

#[test]
fn the_judge_decides_and_sees_the_summaries() {
    let (database, _dir) = summarised();
    let server = Server::always("<think>they name no hotel</think>\n```json\n{\"action\": \"R\"}\n```");
    let (action, failure, answer) = judged(&database, &model(&server, limits()));
    assert_eq!((action, failure), (Action::Escalate, None));
    assert!(answer.rows.iter().any(|row| row.text.contains("Aria")), "the pages were read");
    let request = server.requests().remove(0);
    assert_eq!(request.inputs()["question"], QUESTION);
    assert!(request.inputs()["summaries"][0].as_str().unwrap().contains("journey to Naxos"));
    assert!(request.message(0).starts_with("You decide whether summaries suffice"), "the prompt of the file");
    let server = Server::always(r#"{"thinking": "it is explicit", "action": "S"}"#);
    let (action, failure, answer) = judged(&database, &model(&server, limits()));
    assert_eq!((action, failure), (Action::Answer, None));
    assert!(answer.rows.iter().all(|row| row.kind == Kind::Summary));
}

#[test]
fn whatever_the_judge_does_wrong_means_escalate_and_the_answer_says_why() {
    let (database, _dir) = summarised();
    type Fault = Box<dyn Fn() -> Act + Send>;
    let says = |text: &'static str| -> Fault { Box::new(move || Act::says(text)) };
    let faults: Vec<(Fault, &str)> = vec![
        (says("S"), "no JSON object"),
        (says(""), "is empty"),
        (says("<think>S, surely"), "without an end"),
        (says(r#"{"action": "S""#), "no JSON object"),
        (says(r#"{"action": "S"} I am sure."#), "no JSON object"),
        (says(r#"{"action": "S", "confidence": 1}"#), "is neither"),
        (says(r#"{"action": "R", "action": "S"}"#), "twice"),
        (says(r#"{"action": "ANSWER"}"#), "is neither"),
        (Box::new(|| Act::status(429)), "status 429"),
        (Box::new(|| Act::status(503)), "status 503"),
        (Box::new(|| Act::status(401)), "status 401"),
        (Box::new(|| Act::Stall), "did not answer within"),
        (Box::new(|| Act::HangUp), "no connection"),
        (Box::new(|| Act::CutOff("{".to_owned())), "no connection"),
        (Box::new(|| Act::FiftyMegabytes { stated: false }), "more than"),
        (Box::new(|| Act::body(&json!({"choices": []}))), "0 choices"),
    ];
    for (act, why) in faults {
        let server = Server::new(move |_, _| act());
        let short = if why == "did not answer within" { Duration::from_millis(60) } else { limits().attempt };
        let judge = model(&server, CallLimits { attempt: short, tries: 2, ..limits() });
        let (action, failure, answer) = judged(&database, &judge);
        let failure = failure.unwrap_or_default();
        assert!(action == Action::Escalate && failure.contains(why), "{why}: {action:?}, {failure}");
        assert!(answer.rows.iter().any(|row| row.text.contains("Aria")), "{why}");
    }
}

#[test]
fn the_planner_names_the_next_search_and_garbage_means_done() {
    let (database, _dir) = summarised();
    let always = |planner: &Model| -> Vec<String> {
        let snapshot = database.snapshot();
        let asked = snapshot.recall("walked beach").escalate(EscalateMode::Always);
        let answer = asked.run_with(Roles::new(&LinearRouter::default(), planner)).unwrap();
        let rounds = answer.escalation.unwrap().rounds;
        rounds.iter().flat_map(|round| &round.commands).map(|command| format!("{command:?}")).collect()
    };
    let server = Server::script(vec![
        Act::says(r#"{"decision": "SEARCH", "summaries": "the journey", "pages": "ferry deck"}"#),
        Act::says(r#"{"decision": "DONE"}"#),
    ]);
    let commands = always(&model(&server, limits()));
    assert!(commands.iter().any(|command| command == "Pages(\"ferry deck\")"), "{commands:?}");
    assert!(commands.iter().any(|command| command == "Summaries(\"the journey\")"), "{commands:?}");
    assert!(server.requests()[0].inputs()["already_searched"].as_array().is_some_and(|list| !list.is_empty()));
    let server = Server::always("Let me search for the ferry.");
    let commands = always(&model(&server, limits()));
    assert!(commands.iter().all(|command| command.contains("walked beach")), "{commands:?}");
}

fn learned(database: &Holotype, text: &str, quote: &str, roles: LearnRoles<'_>) -> Learned {
    let mut transaction = database.begin().unwrap();
    let page = database.snapshot().recall("hotel Aria").run().unwrap();
    let row = page.rows.iter().find(|row| row.text.contains("Aria, it had")).unwrap();
    let learn = Learn::new(text).from(Pointer::to_key(&row.key).quoting(quote));
    let learned = transaction.learn(&learn, roles).unwrap();
    transaction.commit(Durability::None).unwrap();
    learned
}

#[test]
fn the_manager_updates_what_it_was_shown_and_an_invented_index_writes_nothing() {
    let (database, _dir) = database();
    let keep = Server::always(r#"{"keep": true}"#);
    let filter = model(&keep, limits());
    let with = |text: &'static str| {
        let server = Server::always(text);
        let manager = model(&server, limits());
        let roles = LearnRoles { manager: &manager, filter: &filter };
        let learned = learned(&database, "The hotel was called Aria.", "called Aria", roles);
        (learned, server.requests())
    };
    let (first, requests) = with(r#"{"decision": "ADD"}"#);
    assert_eq!((first.op, requests[0].inputs()["known"].as_array().map(Vec::len)), (LearnOp::Add, Some(0)));
    assert!(keep.requests()[0].inputs()["evidence"][0].as_str().unwrap().contains("Aria"));
    let before = database.snapshot().commit();
    for wrong in [
        r#"{"decision": "UPDATE", "index": 9, "text": "x"}"#,
        r#"{"decision": "UPDATE", "index": "r1", "text": "x"}"#,
        r#"{"decision": "SKIP", "index": 3}"#,
        r#"{"decision": "FORGET"}"#,
        "ADD, I think",
    ] {
        let (skipped, _) = with(wrong);
        assert!(skipped.op == LearnOp::Skip && skipped.item.is_none(), "{wrong}");
        assert!(skipped.notes.iter().any(|note| note.contains("manager failed")), "{:?}", skipped.notes);
    }
    assert_eq!(database.snapshot().commit(), before, "nothing was written");
    let (updated, requests) = with(r#"{"decision": "UPDATE", "index": 0, "text": "The hotel on Naxos was Aria."}"#);
    assert_eq!((updated.op, updated.replaced), (LearnOp::Update, first.item));
    assert_eq!(requests[0].inputs()["known"][0], json!({"index": 0, "text": "The hotel was called Aria."}));
}

#[test]
fn the_filter_refuses_and_its_garbage_refuses_too() {
    let (database, _dir) = database();
    let manager = ByWords::default();
    for (reply, note) in [
        (r#"{"keep": false, "reason": "too vague"}"#, "too vague"),
        ("[0]", "the filter failed"),
        (r#"{"keep": "yes"}"#, "the filter failed"),
    ] {
        let server = Server::always(reply);
        let filter = model(&server, limits());
        let roles = LearnRoles { manager: &manager, filter: &filter };
        let skipped = learned(&database, "The hotel was called Aria.", "called Aria", roles);
        assert_eq!(skipped.op, LearnOp::Skip);
        assert!(skipped.notes.iter().any(|text| text.contains(note)), "{:?}", skipped.notes);
    }
}

#[test]
fn findings_are_linked_by_their_quotes_and_learned() {
    let (database, _dir) = summarised();
    let server = Server::always(
        r#"{"findings": [
            {"fact": "The hotel on Naxos was called Aria.", "quote": "our hotel was called aria"},
            {"fact": "The hotel had a pool.", "quote": "it had a pool"}
        ]}"#,
    );
    let integrator = model(&server, limits());
    let always = Roles::new(&integrator, &UncoveredWords);
    let answer = asked(&database, always);
    let rows: Vec<&str> =
        answer.rows.iter().filter(|row| row.kind == Kind::Turn).map(|row| row.text.as_str()).collect();
    let keys: Vec<&str> = answer.rows.iter().filter(|row| row.kind == Kind::Turn).map(|row| row.key.as_str()).collect();
    let findings = integrator.findings(QUESTION, &rows).unwrap();
    assert_eq!(findings.len(), 1, "the quote of the pool stands nowhere: {findings:?}");
    assert_eq!(findings[0].quote, "Our hotel was called Aria");
    let mut transaction = database.begin().unwrap();
    let pointer = Pointer::to_key(keys[findings[0].page]).quoting(&findings[0].quote);
    let roles = LearnRoles { manager: &ByWords::default(), filter: &Grounded };
    let learned = transaction.learn(&Learn::new(&findings[0].text).from(pointer), roles).unwrap();
    transaction.commit(Durability::None).unwrap();
    assert_eq!(learned.op, LearnOp::Add);
    let garbage = Server::always(r#"{"linked_facts": []}"#);
    assert!(model(&garbage, limits()).findings(QUESTION, &rows).is_err());
}

/// Algorithm 1 as a whole: what the pages of a round say is drawn from them, linked by its quote, shown to the planner,
/// and returned. A model copies a line of a page with its time and speaker, as it sees it.
#[test]
fn facts_of_a_round_reach_the_planner_and_the_answer() {
    let (database, _dir) = summarised();
    let server = Server::new(|_, request| {
        Act::says(&match request.message(0) {
            prompt if prompt.starts_with("You extract from pages") => {
                let pages = request.inputs()["pages"].to_string();
                let fact = |fact: &str, quote: &str| json!({"fact": fact, "quote": quote});
                let mut facts = Vec::new();
                if pages.contains("hotel was called Aria") {
                    facts.push(fact("The hotel was called Aria.", "Ann: Our hotel was called Aria"));
                    facts.push(fact("It had a pool.", "with a pool on the roof"));
                }
                json!({"findings": facts}).to_string()
            }
            prompt if prompt.starts_with("You plan the search") => match request.inputs()["facts"].to_string() {
                facts if facts.contains("Aria") => r#"{"decision": "DONE"}"#.to_owned(),
                _ => r#"{"decision": "SEARCH", "pages": "hotel called"}"#.to_owned(),
            },
            prompt => panic!("an unexpected prompt: {prompt}"),
        })
    });
    let roles = model(&server, limits());
    let router = LinearRouter::default();
    let snapshot = database.snapshot();
    let recall = snapshot.recall(QUESTION).escalate(EscalateMode::Always).escalate_pages(1).escalate_without_links();
    let answer = recall.run_with(Roles::new(&router, &roles).integrator(&roles)).unwrap();
    let escalation = answer.escalation.unwrap();
    let [fact] = escalation.facts.as_slice() else { panic!("{:?}", escalation.facts) };
    assert_eq!((fact.text.as_str(), fact.quote.as_str()), ("The hotel was called Aria.", "Our hotel was called Aria"));
    assert!(escalation.failures[0].contains("It had a pool."), "{:?}", escalation.failures);
    let mut transaction = database.begin().unwrap();
    let learn = Learn::new(&fact.text).from(Pointer::to_item(fact.trace).quoting(&fact.quote));
    assert_eq!(transaction.learn_by_words(&learn).unwrap().op, LearnOp::Add);
    let usage = roles.usage();
    assert!(usage[&holotype_models::Role::Integrator].calls > 0 && usage[&holotype_models::Role::Planner].calls > 0);
}

/// A quote copied with the time and the speaker before it was refused, and so was one that is not quite what was said,
/// although only one line of the page says the finding: nothing was ever learned from a model.
#[test]
fn a_quote_as_the_model_sees_it_is_linked_and_a_misquote_by_its_words() {
    let (database, _dir) = summarised();
    let snapshot = database.snapshot();
    let pages = snapshot.query("find pages return key", &Params::new()).unwrap();
    let holotype::answer::Output::Table(pages) = &pages[0] else { panic!("no table") };
    let keys: Vec<String> = pages.rows.iter().map(|row| row[0].as_ref().unwrap().to_string()).collect();
    let key = keys.iter().find(|key| snapshot.page(key).unwrap().text.contains("Aria")).unwrap();
    let line = snapshot.page(key).unwrap().text.lines().find(|line| line.contains("Aria")).unwrap().to_owned();
    assert!(line.starts_with('[') && line.contains("] Ann: Our hotel"), "{line}");
    let mut transaction = database.begin().unwrap();
    for quote in [line.as_str(), "Ann: Our hotel was called Aria"] {
        let learn = Learn::new("The hotel was called Aria.").from(Pointer::to_page(key).quoting(quote)).add_only();
        let learned = transaction.learn_by_words(&learn).unwrap();
        assert!(learned.notes.iter().all(|note| !note.contains("linked by its words")), "{:?}", learned.notes);
    }
    let finding = "Our hotel had a blue door and a cat.";
    let learn = Learn::new(finding).from(Pointer::to_page(key).quoting("the hotel with blue doors"));
    let learned = transaction.learn_by_words(&learn).unwrap();
    assert_eq!((learned.op, learned.pointers), (LearnOp::Add, 1));
    assert!(learned.notes[0].starts_with("linked by its words"), "{:?}", learned.notes);
    let foreign = Learn::new("The ship sank.").from(Pointer::to_page(key).quoting("the ship sank"));
    assert!(transaction.learn_by_words(&foreign).is_err(), "no line of the page says it");
}

/// The last page of a session that ended without a word was due for ever.
#[test]
fn the_open_page_of_a_dead_session_is_summarised() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("old", "The ferry leaves at nine.").time(1_700_000_000_000_000)).unwrap();
    transaction.record(NewTrace::turn("new", "It rains.").time(1_760_000_000_000_000)).unwrap();
    transaction.commit(Durability::None).unwrap();
    let server = Server::always(r#"{"summary": "The ferry leaves at nine."}"#);
    let done = model(&server, limits()).summarise(&database, None, Durability::None, 10).unwrap();
    assert_eq!((done.written.len(), done.failed.len()), (1, 0), "{done:?}");
    assert_eq!(database.snapshot().pages_due().unwrap(), []);
}

#[test]
fn a_page_whose_summary_failed_stays_due() {
    let (database, _dir) = database();
    let due = || database.snapshot().pages_due().unwrap().len();
    let pages = due();
    assert!(pages >= 2);
    let server = Server::new(|nth, _| match nth {
        0 => Act::says(r#"{"summary": "They took the ferry to Naxos."}"#),
        _ => Act::says("The page is about a hotel."),
    });
    let summaries = model(&server, limits()).summarise(&database, None, Durability::None, 10).unwrap();
    assert_eq!((summaries.written.len(), summaries.failed.len(), due()), (1, pages - 1, pages - 1));
    assert!(summaries.failed[0].1.contains("no JSON object"), "{:?}", summaries.failed);
    let page = database.snapshot().page(&summaries.written[0]).unwrap();
    assert!(page.summarised);
    assert_eq!(server.requests()[0].inputs()["page"], page.text.as_str());
    let server = Server::always(r#"{"summary": "A hotel called Aria."}"#);
    let rest = model(&server, limits()).summarise(&database, None, Durability::None, 10).unwrap();
    assert_eq!((rest.failed.len(), due()), (0, 0));
}
