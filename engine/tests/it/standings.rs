//! Contests kept between questions, against contests read whole.
//!
//! A published snapshot answers from what earlier questions, commits and readers left behind; the view of a
//! transaction keeps nothing and reads every claim of a contest. On generated histories both must give the same
//! answers after each commit: with shared subjects, several claims of an item, statuses and values that go to and
//! fro, versions, times within and beyond the window, stated claims, retracted and forgotten items, and readers in the
//! past.

use crate::random::Random;
use holotype::answer::{Answer, Output};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{Durability, Holotype, ItemId, Mark, NewTrace, Options, Snapshot, Source, Status, Transaction};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;

const CLOCK: i64 = 1_770_000_000_000_000;
const SECOND: i64 = 1_000_000;
const EPISODES: u64 = 2;

fn database() -> Holotype {
    let options = Options { page_size: 4096, clock: Arc::new(FixedClock(CLOCK)), ..Options::default() };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
}

fn value(random: &mut Random) -> String {
    let number = 1 + random.below(3);
    [format!("${number}"), format!("{number} dollars"), "NaN".to_owned()][(random.below(20) / 9) as usize].clone()
}

/// A call about one flight of few, with one claim or three.
fn call(random: &mut Random, nth: u64) -> NewTrace {
    let flight = format!("UA{}", 10 + random.below(4));
    let price = value(random);
    let text = match random.below(4) {
        0 => format!("search_flights(flight {flight}): price = {price}, gate = D{}, seats = 4", random.below(2)),
        1 => format!("The price of flight {flight} is {price}."),
        _ => format!("search_flights(flight {flight}): price = {price}"),
    };
    let status = [Status::Success, Status::Success, Status::Unknown, Status::Failed][random.below(4) as usize];
    let call = NewTrace::call(format!("e{}", random.below(EPISODES)), "search_flights", text);
    let mut call = call.status(status).source(Source::Tool).step(nth);
    if random.percent(80) {
        call = call.time(CLOCK + SECOND * (random.below(4) as i64 * 45 + nth as i64 * random.below(40) as i64));
    }
    if random.percent(20) { call.version(format!("v{}", random.below(2))) } else { call }
}

/// One change: mostly another call, sometimes another standing of an earlier one.
fn change(random: &mut Random, transaction: &mut Transaction<'_>, items: &mut Vec<ItemId>, nth: u64) {
    let earlier = (!items.is_empty()).then(|| items[random.below(items.len() as u64) as usize]);
    match (random.below(100), earlier) {
        (0..10, Some(item)) => {
            let status = [Status::Success, Status::Failed, Status::Unknown][random.below(3) as usize];
            transaction.mark(item, Mark::Status(status), None).unwrap();
        }
        (10..14, Some(item)) => {
            let _ = transaction.deactivate(item, None, None);
        }
        (14..18, Some(item)) => {
            let name = format!("price of ua{}", 10 + random.below(4));
            let (value, global) = (format!("{} USD", 1 + random.below(3)), random.percent(30));
            let _ = transaction.claim(item, &name, &value, global, &[]);
        }
        _ => items.push(transaction.record(call(random, nth)).unwrap()),
    }
}

/// All of an answer but its time.
fn shown(answer: &Answer) -> String {
    let mut lines = format!(
        "{} {:?} {:?} {:?} {:?} {:?}\n",
        answer.covered, answer.strength, answer.contested, answer.excluded, answer.notes, answer.refresh
    );
    for row in &answer.rows {
        lines += &format!("{} {:?} {:?} {:?} {:?}\n", row.item, row.parts, row.conflict, row.folded, row.relaxed);
    }
    lines
}

fn ask(snapshot: &Snapshot, statement: &str) -> String {
    // An episode without items is unknown to both.
    match snapshot.query(statement, &Params::new()).map(|mut outputs| outputs.pop()) {
        Ok(Some(Output::Answer(answer))) => shown(&answer),
        Err(error) => error.to_string(),
        other => panic!("{statement}: {other:?}"),
    }
}

fn question(random: &mut Random, nth: u64) -> String {
    let flight = 10 + random.below(4);
    let asked =
        [format!("What is the price of flight UA{flight}?"), format!("gate of UA{flight}"), "flight".to_owned()];
    let mut statement = format!("recall '{}'", asked[random.below(3) as usize]);
    if random.percent(75) {
        statement += &format!(" in episode 'e{}'", random.below(EPISODES));
        if random.percent(40) {
            statement += &format!(" at step {}", random.below(nth + 1));
        }
    }
    if random.percent(20) {
        statement += " relax below 20";
    }
    statement + " limit 5"
}

fn compare(seed: u64, statement: &str, published: &Snapshot, whole: &Snapshot) {
    let (kept, read) = (ask(published, statement), ask(whole, statement));
    assert_eq!(kept, read, "seed {seed}: {statement}");
}

fn check(seed: u64, commits: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let database = database();
    let mut items = Vec::new();
    let mut held: Option<Snapshot> = None;
    let mut nth = 0;
    for _ in 0..commits {
        let mut transaction = database.begin().unwrap();
        for _ in 0..1 + random.below(12) {
            change(&mut random, &mut transaction, &mut items, nth);
            nth += 1;
        }
        if random.percent(10) {
            // Nobody keeps a transaction's view that is given up.
            ask(&transaction.snapshot().unwrap(), &question(&mut random, nth));
            drop(transaction);
            items.retain(|item| item.0 < database.snapshot().len());
        } else {
            transaction.commit(Durability::None).unwrap();
        }
        if random.percent(5) && items.len() > 3 {
            let item = items.remove(random.below(items.len() as u64) as usize);
            database
                .query(
                    &format!(
                        "forget {} because 'asked for'",
                        database.snapshot().key_of(item).map(|key| format!("'{key}'")).unwrap()
                    ),
                    &Params::new(),
                )
                .unwrap();
            held = None;
        }
        if random.percent(10) {
            database.checkpoint().unwrap();
        }
        let published = database.snapshot();
        let whole = database.begin().unwrap().snapshot().unwrap();
        for _ in 0..4 {
            compare(seed, &question(&mut random, nth), &published, &whole);
        }
        if random.percent(10) {
            held = Some(published.clone());
        }
        // An older snapshot meets what newer ones left behind.
        if let Some(held) = &held {
            let statement = question(&mut random, nth);
            let (old, past) = (ask(held, &statement), published.as_of(held.commit()).unwrap());
            assert_eq!(old, ask(&past, &statement), "seed {seed}: {statement}");
        }
    }
}

#[test]
fn answers_from_what_is_kept_are_those_of_contests_read_whole() {
    for seed in 1..=4 {
        check(seed, 30);
    }
}

#[test]
fn a_contest_of_many_is_judged_as_one_read_whole() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let mut random = Random(0x5eed);
    for nth in 0..600 {
        let text = format!("The price of flight UA{} is ${}.", 10 + nth % 3, random.below(400));
        let call = NewTrace::call("e", "search_flights", text).status(Status::Success).time(CLOCK + 90 * SECOND * nth);
        transaction.record(call).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    let statement = "recall 'What is the price of flight UA11?' in episode 'e' limit 5";
    for _ in 0..3 {
        let published = database.snapshot();
        let whole = database.begin().unwrap().snapshot().unwrap();
        compare(0, statement, &published, &whole);
        compare(0, &statement.replace(" limit", " at step 300 limit"), &published, &whole);
        let mut transaction = database.begin().unwrap();
        let newer = NewTrace::call("e", "search_flights", "The price of flight UA11 is $7.").status(Status::Success);
        transaction.record(newer.time(CLOCK + 90 * SECOND * 1_000)).unwrap();
        transaction.commit(Durability::None).unwrap();
    }
}
