//! `audit` against a naive account of HELM's measures (A.6, A.13): while episodes are played, each answer is judged by
//! what its rows say of themselves, and each operation is counted by hand; afterwards the log must say the same.

use crate::random::Random;
use holotype::answer::{Answer, Output, Row};
use holotype::query::{Noun, Params};
use holotype::time::FixedClock;
use holotype::{
    AuditReport, Consolidate, Durability, Holotype, Layer, NewRecall, NewTrace, Options, Pointer, Prune, Reader,
    Status, StepCost, Verdict,
};
use holotype_storage::vfs::SimVfs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CLOCK: i64 = 1_770_000_000_000_000;
const DAY: i64 = 86_400_000_000;
const EPISODES: [&str; 2] = ["e", "f"];
const THIRDS: [&str; 3] = ["early.", "middle.", "late."];

/// A step of an episode, counted by hand.
#[derive(Default)]
struct Tally {
    reads: Vec<Answer>,
    writes: u64,
    consolidations: u64,
    prunings: u64,
    tokens: u64,
}

type Story = BTreeMap<(&'static str, u64), Tally>;

fn database() -> Holotype {
    let options = Options { clock: Arc::new(FixedClock(CLOCK)), ..Options::default() };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
}

fn answer(database: &Holotype, script: &str) -> Answer {
    match database.query(script, &Params::new()).unwrap().remove(0) {
        Output::Answer(answer) => *answer,
        other => panic!("{other:?}"),
    }
}

/// One step: a call, perhaps a fact, a question, a consolidation, a pruning.
fn play(database: &Holotype, random: &mut Random, episode: &'static str, step: u64, tally: &mut Tally) {
    let price = 100 + random.below(3) * 50;
    let status = [Status::Success, Status::Unknown, Status::Failed][random.below(3) as usize];
    let text = format!("the price of flight UA{} is {price} euros", random.below(2));
    let time = CLOCK + (step as i64 - 12) * DAY * 2;
    let mut transaction = database.begin().unwrap();
    let call = NewTrace::call(episode, "search", text.as_str()).step(step).time(time).status(status);
    let trace = transaction.record(call.version(["v1", "v2"][usize::from(random.below(5) == 0)])).unwrap();
    tally.writes += 1;
    if random.below(3) == 0 {
        let told = ["Weather in Lisbon looks splendid.", "The flight's price: so many euros!"];
        let told = told[random.below(2) as usize];
        let fact = NewRecall::fact(format!("It is the price of the flight, {price} euros. {told}\nYes."));
        transaction.remember(fact.episode(episode).from(Pointer::to_item(trace))).unwrap();
        tally.writes += 1;
    }
    transaction.commit(Durability::Sync).unwrap();
    if random.below(2) == 0 {
        let profile = ["archive", "default", "helm"][random.below(3) as usize];
        let flawed = ["", " include failed", " include failed, conflicted exclude stale(3 steps)"];
        let flawed = flawed[random.below(3) as usize];
        let limit = random.below(4);
        let clauses = format!("in episode '{episode}' score profile {profile}{flawed} limit {limit} with receipt");
        tally.reads.push(answer(database, &format!("recall 'price of flight UA1' {clauses}")));
    }
    if random.below(4) == 0 {
        let mut transaction = database.begin().unwrap();
        let report = transaction.consolidate(&Consolidate::new(Noun::Calls).in_episode(episode)).unwrap();
        let is_there = report.done.iter().any(|one| matches!(one.op.as_str(), "made" | "superseded"));
        transaction.commit(Durability::Sync).unwrap();
        tally.consolidations += u64::from(is_there);
    }
    if random.below(6) == 0 {
        let mut transaction = database.begin().unwrap();
        let reader = Reader { episode: Some(episode.to_owned()), step: Some(step), ..Reader::default() };
        let prune = Prune::new().to(Noun::Traces, 6).in_episode(episode).at(reader);
        let report = transaction.prune(&prune).unwrap();
        tally.prunings += u64::from(!report.pruned.is_empty());
        transaction.commit(Durability::Sync).unwrap();
    }
    tally.tokens = random.below(1000);
}

fn is_invalid(row: &Row) -> bool {
    row.stale || row.conflict.is_some() || row.status == Some(Status::Failed)
}

/// The numerator and the denominator of a share or a mean.
type Share = (f64, f64);

/// The measures of some steps, word by word as the documentation defines them.
fn naive(tallies: &[&Tally], episodes: usize) -> BTreeMap<&'static str, Share> {
    let reads: Vec<&Answer> = tallies.iter().flat_map(|tally| &tally.reads).collect();
    let steps = tallies.len() as f64;
    let bad = |answer: &Answer| answer.rows.iter().any(is_invalid);
    let bad_steps = tallies.iter().filter(|tally| tally.reads.iter().any(bad)).count();
    let tokens: u64 = tallies.iter().map(|tally| tally.tokens).sum::<u64>()
        + reads.iter().flat_map(|answer| &answer.rows).map(|row| u64::from(row.tokens)).sum::<u64>();
    let rows: BTreeMap<_, &Row> = reads.iter().flat_map(|answer| &answer.rows).map(|row| (row.item, row)).collect();
    let sum = |f: &dyn Fn(&Row) -> f64| rows.values().map(|row| f(row)).sum::<f64>();
    let of = |f: &dyn Fn(&Tally) -> u64| tallies.iter().map(|tally| f(tally)).sum::<u64>() as f64;
    let is_trace = |row: &Row| row.layer == Layer::Trace;
    let episodes = episodes as f64;
    let own = |row: &Row| if is_trace(row) { 0.0 } else { row.citations.len() as f64 };
    let valid = |row: &Row| row.citations.iter().filter(|citation| citation.verdict == Verdict::Ok).count() as f64;
    BTreeMap::from([
        ("epierr_steps", (bad_steps as f64, steps)),
        ("epierr_recalls", (reads.iter().filter(|answer| bad(answer)).count() as f64, reads.len() as f64)),
        ("ctu", (tokens as f64, episodes)),
        ("ctu_per_step", (tokens as f64, steps)),
        ("faithfulness", (sum(&|row| supported(row).0), sum(&|row| supported(row).1))),
        ("coverage", (sum(&|row| f64::from(is_trace(row) || valid(row) > 0.0)), rows.len() as f64)),
        ("validity", (sum(&|row| if is_trace(row) { 0.0 } else { valid(row) }), sum(&own))),
        ("r_per_step", (reads.len() as f64, steps)),
        ("w_per_step", (of(&|tally| tally.writes), steps)),
        ("c_per_episode", (of(&|tally| tally.consolidations), episodes)),
        ("p_per_episode", (of(&|tally| tally.prunings), episodes)),
    ])
}

/// The sentences of a row that its evidence supports, and all.
fn supported(row: &Row) -> (f64, f64) {
    if row.layer == Layer::Trace {
        return (1.0, 1.0);
    }
    let words = |text: &str| -> BTreeSet<String> {
        let lower = text.to_lowercase();
        let cut: String = lower.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let long = |word: &&str| word.len() >= 4 || word.bytes().any(|byte| byte.is_ascii_digit());
        cut.split(' ').filter(|word| !word.is_empty()).filter(long).map(str::to_owned).collect()
    };
    let marked = row.text.replace(". ", ".\n").replace("! ", "!\n");
    let (mut supported, mut all) = (0.0, 0.0);
    for wanted in marked.lines().map(words).filter(|wanted| !wanted.is_empty()) {
        all += 1.0;
        let spans = row.citations.iter().filter_map(|citation| citation.text.as_deref());
        let covers = |span: &str| words(span).iter().filter(|word| wanted.contains(*word)).count() * 2 >= wanted.len();
        supported += f64::from(spans.into_iter().any(covers));
    }
    (supported, all)
}

fn assert_measures(report: &AuditReport, prefix: &str, expected: &BTreeMap<&'static str, Share>, context: &str) {
    for (name, (sum, of)) in expected {
        let found = report.get(&format!("{prefix}{name}"));
        let expected = (*of > 0.0).then(|| sum / of);
        let same = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
            (found, expected) => found == expected,
        };
        assert!(same, "{context} {prefix}{name}: {found:?}, expected {expected:?}");
    }
}

#[test]
fn the_log_says_what_happened() {
    let mut judged = [0; 2];
    for seed in 1..=24 {
        let (database, mut random, mut story) = (database(), Random(seed), Story::new());
        for step in 0..6 + random.below(7) {
            for episode in EPISODES {
                play(&database, &mut random, episode, step, story.entry((episode, step)).or_default());
            }
        }
        let cost = |((episode, step), tally): (&(&'static str, u64), &Tally)| {
            let third = tally.tokens / 3;
            let tokens = [third, third, tally.tokens - 2 * third];
            StepCost { episode: (*episode).to_owned(), step: *step, tokens, micros: [Some(*step), None, None] }
        };
        let costs: Vec<StepCost> = story.iter().map(cost).collect();
        for wanted in [EPISODES.as_slice(), &EPISODES[..1]] {
            let is_wanted = |key: &(&'static str, u64)| wanted.contains(&key.0);
            let all: Vec<&Tally> = story.iter().filter(|(key, _)| is_wanted(key)).map(|(_, tally)| tally).collect();
            let asked = if wanted.len() == 2 { &[] } else { wanted };
            let report = database.snapshot().audit(asked, &costs).unwrap();
            let context = format!("seed {seed}, {wanted:?}");
            assert_measures(&report, "", &naive(&all, wanted.len()), &context);
            let steps = story.len() as u64 / 2;
            for (third, prefix) in THIRDS.iter().enumerate() {
                let is_in = |step: u64| (step * 3 / steps) as usize == third;
                let part = story.iter().filter(|(key, _)| is_wanted(key) && is_in(key.1)).map(|(_, tally)| tally);
                let mut expected = naive(&part.collect::<Vec<_>>(), wanted.len());
                // A consolidation counts where its newest source is, which need not be the step it was made at.
                expected.remove("c_per_episode");
                expected.remove("p_per_episode");
                assert_measures(&report, prefix, &expected, &context);
            }
            let reads: Vec<&Answer> = all.iter().flat_map(|tally| &tally.reads).collect();
            let ended: Vec<&&Answer> = reads.iter().filter(|answer| !answer.rows.is_empty()).collect();
            let full = ended.iter().filter(|answer| answer.rows.iter().any(|row| row.layer == Layer::Trace)).count();
            let expected = (!ended.is_empty()).then(|| full as f64 / ended.len() as f64);
            assert_eq!(report.get("paths.direct"), expected, "{context}");
            assert_eq!(report.get("paths.full"), expected.map(|_| 0.0), "{context}: there are no themes");
            assert_eq!(report.get("latency.search.p95"), Some((steps - 1) as f64), "{context}");
            assert_eq!(report.get("latency.expand.p50"), None);
            for answer in reads {
                judged[usize::from(answer.rows.iter().any(is_invalid))] += 1;
            }
        }
    }
    assert!(judged.iter().all(|count| *count > 30), "good and bad reads: {judged:?}");
}

#[test]
fn a_read_is_judged_by_what_was_known_then() {
    let database = database();
    database
        .query(
            "record call 'UA123 price=$280' in episode 'e' with key = 't1', tool = 's', step = 1, status = success",
            &Params::new(),
        )
        .unwrap();
    answer(&database, "recall 'price of UA123' in episode 'e' with receipt");
    database
        .query("mark 't1' failed because 'no'; record turn 'ok' in episode 'e' with step = 500", &Params::new())
        .unwrap();
    let report = database.snapshot().audit(&[], &[]).unwrap();
    assert_eq!(report.get("epierr_recalls"), Some(0.0), "it was neither failed nor stale");
    answer(&database, "recall 'price of UA123' in episode 'e' include failed with receipt");
    let report = database.snapshot().audit(&["e"], &[]).unwrap();
    assert_eq!(report.get("epierr_recalls"), Some(0.5));
    assert_eq!(report.get("epierr_steps"), Some(0.5), "of the steps 1 and 500");
}

#[test]
fn an_audited_read_is_judged_from_where_its_reader_stood() {
    let database = database();
    database
        .query(
            "set audit = reads; record call 'UA123 price=$280' in episode 'e' with tool = 's', step = 1",
            &Params::new(),
        )
        .unwrap();
    let ask = |at: &str| drop(answer(&database, &format!("recall 'price of UA123' in episode 'e' {at} limit 1")));
    ask("");
    database.query("record turn 'later' in episode 'e' with step = 500", &Params::new()).unwrap();
    ask("at step 2");
    let report = database.snapshot().audit(&[], &[]).unwrap();
    assert_eq!(report.get("epierr_recalls"), Some(0.0), "at step 2 it was fresh, whatever the episode has got to");
    ask("score profile archive");
    let report = database.snapshot().audit(&[], &[]).unwrap();
    assert_eq!(report.get("epierr_recalls"), Some(1.0 / 3.0), "at step 500 it is stale");
    assert_eq!((report.get("epierr.stale"), report.get("epierr.failed")), (Some(1.0 / 3.0), Some(0.0)));
    assert_eq!(report.get("r_per_step"), Some(1.0), "three reads, and the steps 1, 2 and 500");
    let nothing = database.snapshot().as_of(1).unwrap().audit(&[], &[]).unwrap();
    assert_eq!(nothing.get("epierr_recalls"), None);
    assert!(nothing.notes[0].contains("set audit = reads"), "{:?}", nothing.notes);
}

#[test]
fn costs_must_be_of_known_episodes_and_of_a_step_once() {
    let database = database();
    database.query("record turn 'x' in episode 'e' with step = 1", &Params::new()).unwrap();
    let cost = |episode: &str| StepCost { episode: episode.to_owned(), step: 1, ..StepCost::default() };
    let audit = |costs: &[StepCost]| database.snapshot().audit(&[], costs).unwrap_err().to_string();
    assert!(audit(&[cost("g")]).contains("no episode 'g'"));
    assert!(audit(&[cost("e"), cost("e")]).contains("two costs of step 1 of episode 'e'"));
    assert!(database.snapshot().audit(&["g"], &[]).unwrap_err().to_string().contains("no episode 'g'"));
}

/// A trace that was found counted as the whole way from themes down, in databases without any.
#[test]
fn a_full_path_leads_through_a_theme_and_a_recall() {
    let database = database();
    let story = "
        set audit = reads;
        record call 'UA123 price=$280' in episode 'e' with key = 't1', tool = 's', step = 1;
        record call 'The gate is B7' in episode 'e' with key = 't2', tool = 's', step = 2;
        remember fact 'UA123 costs $280.' from 't1' with key = 'r1';
        remember concept 'flight prices' from 'r1' with key = 'c1'";
    database.query(story, &Params::new()).unwrap();
    for question in ["'UA123 price' through traces 1", "'gate' through traces 1", "'UA123' through facts 1"] {
        answer(&database, &format!("recall {question}"));
    }
    let report = database.snapshot().audit(&[], &[]).unwrap();
    for path in ["paths.full", "paths.direct", "paths.exit_m2"] {
        assert_eq!(report.get(path), Some(1.0 / 3.0), "{path}");
    }
    assert_eq!(report.get("paths.exit_m3"), Some(0.0));
}

#[test]
fn near_duplicates_are_redundant() {
    let database = Holotype::create_on(
        Arc::new(SimVfs::new()),
        "/memory.holo",
        Options::with_space(holotype::Space::new("test", 2)),
    )
    .unwrap();
    let mut transaction = database.begin().unwrap();
    for (step, vector) in [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]].into_iter().enumerate() {
        transaction.record(NewTrace::turn("e", "x").step(step as u64).vector(vector.to_vec())).unwrap();
    }
    transaction.record(NewTrace::turn("e", "no vector").step(9)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let report = database.snapshot().audit(&[], &[]).unwrap();
    assert_eq!(report.get("redundancy"), Some(2.0 / 3.0));
}
