//! Nothing is hidden: what the rows without grouping show, the answer shows. And an answer does not depend on how, when
//! and beside what it is asked.

use crate::random::Random;
use holotype::answer::{Answer, Output, Row};
use holotype::query::{ParamValue, Params};
use holotype::time::FixedClock;
use holotype::{Durability, Holotype, Limits, NewRecall, NewTrace, Options, Pointer, Source, Space, Status};
use holotype_storage::vfs::SimVfs;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const CLOCK: i64 = 1_770_000_000_000_000;
const SUBJECTS: [&str; 5] =
    ["rent of the flat", "gate of UA123", "gate of UA124", "colour of the door", "wifi password"];
const VALUES: [&str; 6] = ["900", "850", "B12", "green", "not known", "open"];

/// A sentence, a call, a record or a denial about one of a few subjects, some of them equal.
fn text(random: &mut Random) -> String {
    let subject = SUBJECTS[random.below(5) as usize];
    let value = VALUES[random.below(6) as usize];
    match random.below(9) {
        0 => format!("Suppose the {subject} is {value}."),
        1 => format!("The {subject} is {value} for guests."),
        2 => format!("The {subject} is not {value}."),
        3 => format!("look({subject}): value = {value}"),
        4 => format!("{{\"id\": \"{subject}\", \"value\": \"{value}\", \"checked\": true}}"),
        5 => format!("What is the {subject}?"),
        6 => format!("{} {}.", "It was a long day and many things were said about it. ".repeat(4), value),
        _ => format!("The {subject} is {value}."),
    }
}

fn write(random: &mut Random, count: u64, space: Option<Space>) -> Holotype {
    let options = Options { clock: Arc::new(FixedClock(CLOCK)), page_size: 4096, space, ..Options::default() };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    let mut transaction = database.begin().unwrap();
    for nth in 0..count {
        let episode = ["a", "b", "c"][random.below(3) as usize];
        let trace = match random.below(3) {
            0 => NewTrace::call(episode, "look", text(random)),
            _ => NewTrace::turn(episode, text(random)).speaker(["Ann", "Bob"][random.below(2) as usize]),
        };
        let status = [Status::Success, Status::Unknown, Status::Failed][(random.below(8) / 3) as usize];
        let source = [Source::User, Source::Assistant, Source::Tool][random.below(3) as usize];
        let mut trace = trace.key(format!("t{nth}")).status(status).source(source);
        if random.below(4) > 0 {
            trace = trace.time(CLOCK - random.below(50) as i64 * 3_600_000_000);
        }
        let id = transaction.record(trace).unwrap();
        if random.below(4) == 0 {
            let fact = NewRecall::fact(text(random)).key(format!("r{nth}"));
            transaction.remember(fact.from(Pointer::to_item(id))).unwrap();
        }
    }
    transaction.commit(Durability::None).unwrap();
    database
}

fn question(random: &mut Random) -> String {
    let subject = SUBJECTS[random.below(5) as usize];
    match random.below(4) {
        0 => format!("Is the {subject} {}?", VALUES[random.below(6) as usize]),
        1 => format!("tell me about the {subject}"),
        _ => format!("What is the {subject}?"),
    }
}

fn clauses(random: &mut Random) -> String {
    let scope = ["", " in episode 'a'", " in episode 'a', 'b'", " where kind = call"][random.below(4) as usize];
    let size = match random.below(3) {
        0 => format!(" budget {} tokens", 20 + random.below(200)),
        _ => format!(" limit {}", 1 + random.below(9)),
    };
    format!("{scope}{size}")
}

fn shown(row: &Row) -> Vec<String> {
    let lines = row.lines.iter().map(|line| line.key.clone());
    [row.key.clone()].into_iter().chain(row.folded.iter().cloned()).chain(lines).collect()
}

fn params(question: &str) -> Params {
    Params::from([("q".to_owned(), ParamValue::Text(question.to_owned()))])
}

fn ask(database: &Holotype, script: &str, question: &str) -> Answer {
    match database.query(script, &params(question)).unwrap_or_else(|error| panic!("{script}: {error}")).pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("{script}: {other:?}"),
    }
}

/// An answer without the time it took.
fn timeless(answer: &Answer) -> String {
    format!("{:?}", Answer { micros: 0, ..answer.clone() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_first_rows_without_grouping_are_shown(seed in 1..u64::MAX, count in 1..120_u64, vectors in any::<bool>()) {
        let mut random = Random(seed);
        let database = write(&mut random, count, vectors.then(|| Space::new("hashing-v1-64", 64)));
        for _ in 0..12 {
            let question = question(&mut random);
            let limit = 1 + random.below(9);
            let scope = ["", " in episode 'a'", " include failed"][random.below(3) as usize];
            if scope.contains('a') && database.query("find items in episode 'a' limit 1", &Params::new()).is_err() {
                continue;
            }
            let script = format!("recall $q{scope} limit {limit}");
            let grouped = ask(&database, &script, &question);
            let alone = ask(&database, &format!("{script} lines none"), &question);
            let told: BTreeSet<String> = grouped.rows.iter().flat_map(shown).collect();
            for row in &alone.rows {
                prop_assert!(told.contains(&row.key), "{script} of {question:?} hides {row:?}\nshows {told:?}");
            }
            // Each statement is told once, and each has its evidence.
            let all: Vec<String> = grouped.rows.iter().flat_map(shown).collect();
            prop_assert_eq!(all.len(), told.len());
            for line in grouped.rows.iter().flat_map(|row| &row.lines) {
                prop_assert!(!line.citations.is_empty() && !line.text.is_empty());
            }
        }
    }

    #[test]
    fn rows_and_lines_keep_within_a_budget(seed in 1..u64::MAX, count in 1..80_u64, budget in 1..200_u64) {
        let mut random = Random(seed);
        let database = write(&mut random, count, None);
        let answer = ask(&database, &format!("recall $q budget {budget} tokens"), &question(&mut random));
        let line = |text: &str| (text.chars().count() as u64).div_ceil(4);
        let used: u64 = answer.rows.iter().map(|row| {
            u64::from(row.tokens) + row.lines.iter().map(|of| line(&of.text)).sum::<u64>()
        }).sum();
        prop_assert!(used <= budget, "{used} of {budget}");
    }

    /// A batch once judged every question by the words of the first one.
    #[test]
    fn an_answer_depends_on_its_question_and_snapshot_alone(seed in 1..u64::MAX, count in 1..150_u64) {
        let mut random = Random(seed);
        let database = write(&mut random, count, Some(Space::new("hashing-v1-64", 64)));
        if ["a", "b"].iter().any(|id| {
            database.query(&format!("find items in episode '{id}' limit 1"), &Params::new()).is_err()
        }) {
            return Ok(());
        }
        let script = format!("recall $q{}", clauses(&mut random));
        let questions: Vec<String> = (0..6).map(|_| question(&mut random)).collect();
        let alone: Vec<String> = questions.iter().map(|q| timeless(&ask(&database, &script, q))).collect();
        let snapshot = database.snapshot();
        let told = |outputs: &[Output]| match outputs {
            [Output::Answer(answer)] => timeless(answer),
            other => panic!("{other:?}"),
        };
        // Together with the others, in one pass and in turn.
        let texts: Vec<Params> = questions.iter().map(|question| params(question)).collect();
        let scripts: Vec<(&str, &Params)> = texts.iter().map(|params| (script.as_str(), params)).collect();
        for (nth, outputs) in database.query_batch(&scripts, &Limits::none()).into_iter().enumerate() {
            prop_assert_eq!(&told(&outputs.unwrap()), &alone[nth], "in a batch: {}", &script);
        }
        // Prepared once, asked in another order and again, with a time limit.
        let prepared = snapshot.prepare(&script).unwrap();
        for nth in (0..questions.len()).rev().chain(0..questions.len()) {
            let output = snapshot.run(&prepared, &texts[nth]).unwrap();
            prop_assert_eq!(&told(&output), &alone[nth], "prepared: {}", &script);
        }
        let limited = snapshot.with_limits(&Limits::none().time(Duration::from_secs(60)));
        for (nth, text) in texts.iter().enumerate() {
            prop_assert_eq!(&told(&limited.query(&script, text).unwrap()), &alone[nth], "limited: {}", &script);
        }
        // After an unrelated commit and a checkpoint the pinned snapshot answers as before.
        database.query("record turn 'Nothing of this.' in episode 'elsewhere'", &Params::new()).unwrap();
        database.checkpoint().unwrap();
        for (nth, text) in texts.iter().enumerate() {
            prop_assert_eq!(&told(&snapshot.query(&script, text).unwrap()), &alone[nth], "later: {}", &script);
        }
    }
}
