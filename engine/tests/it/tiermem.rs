//! TierMem: pages and their summaries, the router's modes, and the loop beside a naive implementation of it.

use holotype::answer::{Answer, Command, Output};
use holotype::query::{EscalateMode, Params};
use holotype::router::{Action, LinearRouter, ModelRouter, Router};
use holotype::time::FixedClock;
use holotype::{
    Due, Durability, Error, Holotype, NewRecall, NewTrace, Options, Pointer, Roles, UncoveredWords, Verdict,
};
use holotype_storage::vfs::SimVfs;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DAY: i64 = 86_400_000_000;

fn database() -> Holotype {
    let options = Options { clock: Arc::new(FixedClock(100 * DAY)), ..Options::default() };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
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

// ---- pages ----

fn turn(database: &Holotype, episode: &str, key: &str, day: i64, text: &str) {
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn(episode, text).key(key).speaker("Ann").time(day * DAY)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

#[test]
fn a_page_renders_as_the_lines_that_were_hashed() {
    let database = database();
    turn(&database, "trip", "t1", 1, "The ferry leaves at nine.");
    turn(&database, "trip", "t2", 2, "It costs 12 EUR.");
    run(&database, "close episode 'trip'");
    let key = database.snapshot().pages_due().unwrap()[0].key.clone().unwrap();
    let page = database.snapshot().page(&key).unwrap();
    assert_eq!(
        page.text,
        "[1970-01-02T00:00:00Z] Ann: The ferry leaves at nine.\n[1970-01-03T00:00:00Z] Ann: It costs 12 EUR.\n"
    );
    assert_eq!((page.verdict, page.summarised, page.traces.len()), (Verdict::Ok, false, 2));
    run(&database, "forget 't2' because 'asked to'");
    assert_eq!(database.snapshot().page(&key).unwrap().verdict, Verdict::Redacted);
    assert!(matches!(database.snapshot().page("none"), Err(Error::Missing { .. })));
}

#[test]
fn a_summary_marks_its_page_in_its_own_transaction_or_not_at_all() {
    let database = database();
    turn(&database, "trip", "t1", 1, "The ferry leaves at nine.");
    run(&database, "close episode 'trip'");
    let key = database.snapshot().pages_due().unwrap()[0].key.clone().unwrap();
    let summary = || NewRecall::new(holotype::Kind::Summary, "A ferry at nine").from(Pointer::to_page(&key));
    // A transaction that does not commit leaves neither.
    let mut transaction = database.begin().unwrap();
    transaction.remember(summary()).unwrap();
    drop(transaction);
    // Nor does a script whose later statement fails.
    let script = format!("remember summary 'x' from page '{key}'; mark 'nothing' failed");
    assert!(database.query(&script, &Params::new()).is_err());
    // Nor a fact: it is no summary of the page.
    run(&database, &format!("remember fact 'y' from page '{key}'"));
    assert_eq!(database.snapshot().pages_due().unwrap().len(), 1);
    run(&database, &format!("remember summary 'A ferry at nine' from page '{key}'"));
    assert!(database.snapshot().page(&key).unwrap().summarised);
    assert_eq!(database.snapshot().pages_due().unwrap(), []);
}

#[test]
fn the_queue_lists_open_pages_that_nobody_will_fill_and_survives_a_reopening() {
    let vfs = Arc::new(SimVfs::new());
    let options = || Options { clock: Arc::new(FixedClock(100 * DAY)), ..Options::default() };
    let database = Holotype::create_on(vfs.clone(), "/memory.holo", options()).unwrap();
    turn(&database, "dead", "t1", 10, "nobody came back");
    turn(&database, "late", "t2", 50, "before the close");
    run(&database, "close episode 'late'");
    turn(&database, "late", "t3", 59, "after the close");
    turn(&database, "alive", "t4", 60, "still talking");
    let due = |database: &Holotype| -> Vec<(String, Due)> {
        let due = database.snapshot().pages_due().unwrap();
        due.into_iter().map(|page| (page.episode, page.because)).collect()
    };
    let wanted = [
        ("late".to_owned(), Due::Unsummarised),
        ("dead".to_owned(), Due::EpisodeDead),
        ("late".to_owned(), Due::EpisodeClosed),
    ];
    assert_eq!(due(&database), wanted);
    // A handle that is dropped without closing, as by a kill.
    drop(database);
    let database = Holotype::open_on(vfs, "/memory.holo", options()).unwrap();
    assert_eq!(due(&database), wanted);
    run(&database, "close episode 'dead'; close episode 'late'");
    assert!(due(&database).iter().all(|(_, because)| *because == Due::Unsummarised));
}

// ---- the router ----

fn ferry() -> Holotype {
    let database = database();
    run(
        &database,
        "set page.tokens = 20;
         record turn 'The ferry to Naxos leaves at nine.' in episode 'e' with key = 't1';
         record turn 'We had fish and olives for lunch in the old harbour.' in episode 'e' with key = 't2';
         record turn 'The hotel on Naxos was called Aria and had a blue door.' in episode 'e' with key = 't3';
         record turn 'Breakfast there was at eight, with figs.' in episode 'e' with key = 't4';
         close episode 'e';
         remember fact 'The ferry to Naxos leaves at nine' from 't1' with key = 'f1'",
    );
    database
}

#[test]
fn modes_do_as_they_say_and_the_answer_tells() {
    let database = ferry();
    let never = answer(&database, "recall 'which hotel had figs for breakfast' escalate never");
    let escalation = never.escalation.as_deref().unwrap();
    assert_eq!(escalation.router.action, Action::Answer);
    assert_eq!((escalation.rounds.len(), escalation.pages.len()), (0, 0));
    assert!(never.rows.iter().all(|row| row.layer == holotype::Layer::Recall));
    let always = answer(&database, "recall 'which hotel had figs for breakfast' escalate always");
    let escalation = always.escalation.as_deref().unwrap();
    assert_eq!(escalation.router.action, Action::Escalate);
    assert!(!escalation.rounds.is_empty() && !escalation.pages.is_empty());
    assert!(always.rows.iter().any(|row| row.key == "t4"));
    let json = always.to_json(None);
    assert_eq!(json["router"]["action"], "escalate");
    assert!(json["rounds"][0]["commands"][0]["query"].is_string() && json["pages"][0]["text"].is_string());
    let plain = answer(&database, "recall 'ferry to Naxos'").to_json(None);
    assert!(plain.get("router").is_none() && plain["rounds"] == 0, "answers without the clause are as before");
}

#[test]
fn a_router_that_fails_or_talks_nonsense_escalates() {
    let database = ferry();
    let snapshot = database.snapshot();
    let ask = |router: &dyn Router| {
        let recall = snapshot.recall("ferry to Naxos").escalate(EscalateMode::Auto);
        recall.run_with(Roles::new(router, &UncoveredWords)).unwrap().escalation.unwrap().router
    };
    assert_eq!(ask(&ModelRouter(|_: &str, _: &[&str]| Ok(r#"{"action":"S"}"#.to_owned()))).action, Action::Answer);
    assert_eq!(ask(&ModelRouter(|_: &str, _: &[&str]| Ok("I think S".to_owned()))).action, Action::Escalate);
    let failed = ask(&ModelRouter(|_: &str, _: &[&str]| Err("no reply".to_owned())));
    assert_eq!((failed.action, failed.failure.as_deref()), (Action::Escalate, Some("no reply")));
    let without = snapshot.recall("x").run_with(Roles::new(&LinearRouter::default(), &UncoveredWords));
    assert!(matches!(without, Err(Error::Invalid(_))));
}

#[test]
fn what_cannot_be_escalated_is_refused() {
    let database = ferry();
    for statement in [
        "recall 'x' escalate to facts 3",
        "recall 'x' through traces 5 escalate",
        "recall 'x' through pages 5 escalate",
    ] {
        let refused = database.query(statement, &Params::new());
        assert!(matches!(refused, Err(Error::Invalid(_))), "{statement}: {refused:?}");
    }
}

#[test]
fn a_budget_holds_for_both_tiers_and_a_receipt_replays() {
    let database = ferry();
    for budget in [0, 10, 25, 40, 60, 1000] {
        for mode in ["auto", "always", "never"] {
            let statement = format!("recall 'the hotel on Naxos' escalate {mode} budget {budget} tokens");
            let tokens = answer(&database, &statement).escalation.unwrap().tokens;
            assert!(tokens <= budget, "{statement}: {tokens}");
        }
    }
    let first = answer(&database, "recall 'the hotel on Naxos' escalate always with receipt");
    let again = answer(&database, &format!("replay '{}'", first.receipt.as_deref().unwrap()));
    assert_eq!(again.rows, first.rows);
}

// ---- the loop, naively ----

const WORDS: [&str; 9] = ["amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet"];

#[derive(Debug, Clone)]
struct World {
    /// The words of each trace.
    traces: Vec<Vec<usize>>,
    /// The words of each fact and the trace it cites.
    facts: Vec<(Vec<usize>, usize)>,
    question: Vec<usize>,
    pages: usize,
    rounds: u64,
    links: bool,
}

fn world() -> impl Strategy<Value = World> {
    let words = |most| proptest::collection::vec(0..WORDS.len(), 1..most);
    (
        proptest::collection::vec(words(8), 1..24),
        proptest::collection::vec((words(4), any::<prop::sample::Index>()), 0..5),
        proptest::sample::subsequence((0..WORDS.len()).collect::<Vec<_>>(), 1..5),
        1..4_usize,
        1..4_u64,
        any::<bool>(),
    )
        .prop_map(|(traces, facts, question, pages, rounds, links)| {
            let facts = facts.into_iter().map(|(words, of)| (words, of.index(traces.len()))).collect();
            World { traces, facts, question, pages, rounds, links }
        })
}

fn text(words: &[usize]) -> String {
    words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
}

fn build(world: &World) -> Holotype {
    let database = database();
    run(&database, "set analyser = none; set page.tokens = 12");
    let mut transaction = database.begin().unwrap();
    for (nth, words) in world.traces.iter().enumerate() {
        transaction.record(NewTrace::turn("e", text(words)).key(format!("t{nth}"))).unwrap();
    }
    for (words, of) in &world.facts {
        transaction.remember(NewRecall::fact(text(words)).from(Pointer::to_key(format!("t{of}")))).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database
}

/// A page as the naive loop sees it: traces and tokens.
struct NaivePage {
    traces: Vec<usize>,
    tokens: f64,
}

fn naive_pages(world: &World) -> Vec<NaivePage> {
    let mut pages = vec![NaivePage { traces: Vec::new(), tokens: 0.0 }];
    for (nth, words) in world.traces.iter().enumerate() {
        let page = pages.last_mut().unwrap();
        page.traces.push(nth);
        page.tokens += f64::from(holotype::tokens::count(&text(words)));
        if page.tokens >= 12.0 {
            pages.push(NaivePage { traces: Vec::new(), tokens: 0.0 });
        }
    }
    pages.retain(|page| !page.traces.is_empty());
    pages
}

/// BM25 of a page for some words, straight from the formula.
fn bm25(world: &World, pages: &[NaivePage], page: &NaivePage, words: &[usize]) -> f64 {
    let count = |page: &NaivePage, word: usize| {
        page.traces.iter().flat_map(|trace| &world.traces[*trace]).filter(|known| **known == word).count() as f64
    };
    let average = pages.iter().map(|page| page.tokens).sum::<f64>() / pages.len() as f64;
    let of = |word: &usize| {
        let (all, with) = (pages.len() as f64, pages.iter().filter(|page| count(page, *word) > 0.0).count() as f64);
        let (f, idf) = (count(page, *word), (1.0 + (all - with + 0.5) / (with + 0.5)).ln());
        idf * 2.2 * f / (f + 1.2 * (0.25 + 0.75 * page.tokens / average))
    };
    words.iter().map(of).sum()
}

/// The pages that each round selects, round 0 for the linked ones, and the searches.
fn naive_loop(world: &World) -> (Vec<BTreeSet<usize>>, Vec<String>) {
    let pages = naive_pages(world);
    let on = |trace: usize| pages.iter().position(|page| page.traces.contains(&trace)).unwrap();
    let linked = |words: &[usize]| -> BTreeSet<usize> {
        let facts = world.facts.iter().filter(|(own, _)| own.iter().any(|word| words.contains(word)));
        facts.map(|(_, trace)| on(*trace)).collect()
    };
    // As the engine rounds: equal scores are told apart by which page is newer.
    let score = |at: usize, words: &[usize]| bm25(world, &pages, &pages[at], words) as f32;
    let ranked = |words: &[usize], among: &BTreeSet<usize>| -> Vec<usize> {
        let mut all: Vec<usize> = among.iter().copied().collect();
        all.sort_by(|a, b| score(*b, words).total_cmp(&score(*a, words)).then(b.cmp(a)));
        all
    };
    let mut rounds = vec![if world.links { linked(&world.question) } else { BTreeSet::new() }];
    let (mut pool, mut searches, mut asked) = (BTreeSet::new(), Vec::new(), world.question.clone());
    for _ in 0..world.rounds {
        let query = text(&asked);
        if searches.contains(&query) {
            break;
        }
        searches.push(query);
        let with_words: BTreeSet<usize> = (0..pages.len()).filter(|at| score(*at, &asked) > 0.0).collect();
        pool.extend(ranked(&asked, &with_words).into_iter().take(world.pages));
        pool.extend(linked(&asked));
        let known: BTreeSet<usize> = rounds.iter().flatten().copied().collect();
        let fresh: BTreeSet<usize> = pool.difference(&known).copied().collect();
        let new: BTreeSet<usize> = ranked(&world.question, &fresh).into_iter().take(world.pages).collect();
        let done = new.is_empty();
        rounds.push(new);
        let held = |word: &usize| {
            let pages = rounds.iter().flatten().map(|at| &pages[*at]);
            pages.flat_map(|page| &page.traces).any(|trace| world.traces[*trace].contains(word))
        };
        asked = world.question.iter().copied().filter(|word| !held(word)).collect();
        if done || asked.is_empty() {
            break;
        }
    }
    (rounds, searches)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_loop_selects_what_a_naive_one_selects(world in world()) {
        let database = build(&world);
        let links = if world.links { "" } else { " without links" };
        let statement = format!(
            "recall '{}' through facts escalate always to pages {} up to {} rounds{links} score words 1 limit 1000",
            text(&world.question), world.pages, world.rounds,
        );
        let answer = answer(&database, &statement);
        let escalation = answer.escalation.as_deref().unwrap();
        let (rounds, searches) = naive_loop(&world);
        let pages = naive_pages(&world);
        // Pages are known by their lines.
        let lines_of = |page: &NaivePage| page.traces.iter().map(|trace| text(&world.traces[*trace])).collect();
        let mut found: BTreeMap<u32, BTreeSet<Vec<String>>> = BTreeMap::new();
        for hit in &escalation.pages {
            prop_assert!(hit.whole, "{:?}", hit);
            let said = hit.text.lines().map(|line| line.split("] ").nth(1).unwrap().to_owned());
            found.entry(hit.round).or_default().insert(said.collect());
        }
        for (round, wanted) in rounds.iter().enumerate() {
            let selected = found.remove(&(round as u32)).unwrap_or_default();
            let wanted: BTreeSet<Vec<String>> = wanted.iter().map(|at| lines_of(&pages[*at])).collect();
            prop_assert_eq!(selected, wanted, "round {}", round);
        }
        prop_assert!(found.is_empty(), "{:?}", found);
        let issued: Vec<&Command> = escalation.rounds.iter().flat_map(|round| &round.commands).collect();
        let of_pages = |command: &&Command| match command {
            Command::Pages(text) => Some(text.clone()),
            Command::Summaries(_) => None,
        };
        prop_assert_eq!(issued.iter().filter_map(of_pages).collect::<Vec<_>>(), searches);
        let distinct: BTreeSet<&&Command> = issued.iter().collect();
        prop_assert_eq!(distinct.len(), issued.len(), "no command runs twice");
    }
}
