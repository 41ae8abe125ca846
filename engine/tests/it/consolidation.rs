//! `consolidate` against a naive account of HELM's Algorithm 5 on generated traces: the generator knows what each trace
//! claims, and who wins, who supports and who stays contested is found by comparing every trace with every other.

use crate::random::Random;
use holotype::answer::{Output, Table};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{Durability, Edge, Holotype, ItemId, NewTrace, Options, Status, Support, Transaction};
use holotype_storage::vfs::SimVfs;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CLOCK: i64 = 1_770_000_000_000_000;
const SECOND: i64 = 1_000_000;

/// A trace as the account knows it.
#[derive(Debug, Clone)]
struct Said {
    id: ItemId,
    key: String,
    episode: &'static str,
    version: &'static str,
    name: &'static str,
    value: String,
    status: Status,
    time: i64,
}

fn write(random: &mut Random, transaction: &mut Transaction<'_>, said: &mut Vec<Said>, count: u64) {
    for _ in 0..count {
        let key = format!("k{}", said.len());
        let (subject, name) = [("TA11", "price of ta11"), ("TB22", "price of tb22")][random.below(2) as usize];
        let price = 1 + random.below(3);
        let text = match random.below(3) {
            0 => format!("look(thing {subject}): price = ${price}"),
            1 => format!("{{\"thing\":\"{subject}\",\"price\":{price},\"currency\":\"USD\"}}"),
            _ => format!("Thing {subject}'s price: ${price}"),
        };
        let status = [Status::Success, Status::Success, Status::Unknown, Status::Failed][random.below(4) as usize];
        // Six hours, or thirty seconds, apart.
        let time = CLOCK - random.below(5) as i64 * 6 * 3600 * SECOND - random.below(3) as i64 * 30 * SECOND;
        let (episode, version) = (["e", "f"][random.below(4) as usize / 3], ["", "v1"][random.below(4) as usize / 3]);
        let mut trace = NewTrace::call(episode, "look", text).key(key.clone()).status(status).time(time);
        if !version.is_empty() {
            trace = trace.version(version);
        }
        let id = transaction.record(trace).unwrap();
        said.push(Said { id, key, episode, version, name, value: format!("{price} USD"), status, time });
    }
}

/// The recall that a claim should have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    text: String,
    support: BTreeSet<ItemId>,
    lost: BTreeSet<ItemId>,
    contested: BTreeSet<String>,
    winner: ItemId,
}

fn score(said: &Said, now: i64) -> f64 {
    let status = match said.status {
        Status::Success => 0.0,
        Status::Unknown => -0.1,
        Status::Failed => -1.0,
    };
    (-((now - said.time) as f64) / (24.0 * 3600.0 * SECOND as f64)).exp2() + 10.0 * status + 1.0
}

fn is_contested(winner: &Said, other: &Said, tau: Option<f64>, now: i64) -> bool {
    match tau {
        Some(tau) => score(winner, now) - score(other, now) < tau,
        // Within an episode the step decides where times are equal.
        None => false,
    }
}

/// The recalls by their keys. Keys of which only failed traces speak have none.
fn account(said: &[Said], episode: Option<&str>, tau: Option<f64>) -> BTreeMap<String, Expected> {
    let here: Vec<&Said> = said.iter().filter(|said| episode.is_none_or(|episode| said.episode == episode)).collect();
    let now = here.iter().map(|said| said.time).max().unwrap_or(0);
    let mut expected = BTreeMap::new();
    for one in &here {
        let rivals: Vec<&&Said> = here
            .iter()
            .filter(|other| (other.episode, other.version, other.name) == (one.episode, one.version, one.name))
            .collect();
        let winner = rivals.iter().min_by_key(|said| (said.status, Reverse(said.time), Reverse(said.id))).unwrap();
        if winner.status == Status::Failed {
            continue;
        }
        let agree = rivals.iter().filter(|said| said.value == winner.value && said.status == winner.status);
        let others = || rivals.iter().filter(|said| said.value != winner.value);
        let contested = |said: &Said| is_contested(winner, said, tau, now);
        let key = format!("claim:{}:{}:{}", one.episode, one.version, one.name);
        expected.insert(
            key,
            Expected {
                text: format!("The {} is {}.", one.name, winner.value),
                support: agree.map(|said| said.id).collect(),
                lost: others().filter(|said| !contested(said)).map(|said| said.id).collect(),
                contested: others().filter(|said| contested(said)).map(|said| said.key.clone()).collect(),
                winner: winner.id,
            },
        );
    }
    expected
}

fn table(database: &Holotype, statement: &str) -> Table {
    match database.query(statement, &Params::new()).unwrap_or_else(|error| panic!("{statement}: {error}")).remove(0) {
        Output::Table(table) => table,
        other => panic!("{statement}: {other:?}"),
    }
}

fn column(table: &Table, op: &str, at: usize) -> Vec<String> {
    let cell = |row: &[Option<holotype::cell::Cell>], at: usize| row[at].as_ref().map(ToString::to_string);
    let rows = table.rows.iter().filter(|row| cell(row, 0).as_deref() == Some(op));
    rows.filter_map(|row| cell(row, at)).collect()
}

fn compare(database: &Holotype, expected: &BTreeMap<String, Expected>, table: &Table, seed: u64) {
    let snapshot = database.snapshot();
    for (key, expected) in expected {
        let Some(recall) = snapshot.get(key).unwrap() else { panic!("{seed}: no {key}") };
        let id = snapshot.item_named(key).unwrap();
        assert_eq!(recall.content.text(), expected.text, "{seed}: {key}");
        let cited: BTreeSet<ItemId> = snapshot.linked(id, Edge::Cites).unwrap().into_iter().collect();
        assert!(
            cited.is_subset(&expected.support) && cited.contains(&expected.winner),
            "{seed}: {key}: {cited:?} of {expected:?}"
        );
        let older: BTreeSet<ItemId> = expected.support.iter().copied().filter(|trace| *trace < id).collect();
        assert!(cited == older || cited.len() == 16, "{seed}: {key}");
        for citation in snapshot.citations(id).unwrap() {
            let text = citation.text.unwrap();
            let digit = expected.text.chars().rev().find(char::is_ascii_digit).unwrap();
            assert!(text.contains(digit) && text.len() <= 16, "{seed}: {key} cites {text}");
        }
        let lost: BTreeSet<ItemId> = snapshot.linked(id, Edge::ConflictsWith).unwrap().into_iter().collect();
        assert!(lost.is_superset(&expected.lost), "{seed}: {key}");
        let attributes = snapshot.attributes(id).unwrap();
        assert_eq!((attributes.active, attributes.support), (true, Support::Supported), "{seed}: {key}");
        assert_ne!(attributes.status, Some(Status::Failed), "{seed}: {key}");
    }
    let contested: BTreeSet<String> = column(table, "contested", 2).into_iter().collect();
    let all: BTreeSet<String> = expected.values().flat_map(|expected| expected.contested.clone()).collect();
    assert!(contested.is_subset(&all), "{seed}: {contested:?} of {all:?}");
}

#[test]
fn consolidating_is_what_the_naive_account_says_and_again_it_changes_nothing() {
    let (mut superseded, mut contested) = (0, 0);
    for seed in 1..=200 {
        let mut random = Random(seed * 0x9e37_79b9);
        let options = Options { clock: Arc::new(FixedClock(CLOCK)), ..Options::default() };
        let vfs = Arc::new(SimVfs::new());
        let database = Holotype::create_on(Arc::clone(&vfs) as _, "/memory.holo", options).unwrap();
        let mut said = Vec::new();
        let episode = random.percent(40).then_some("e");
        let tau = random.percent(40).then_some(0.5);
        let scope = episode.map(|episode| format!(" in episode '{episode}'")).unwrap_or_default();
        let gap = tau.map(|tau| format!(" tau {tau}")).unwrap_or_default();
        let statement = format!("consolidate calls{scope}{gap}");
        for round in 0..2 {
            let mut transaction = database.begin().unwrap();
            if round == 0 {
                transaction.set("consolidate.limit", "1000").unwrap();
                transaction.record(NewTrace::call("e", "look", "nothing").time(0)).unwrap();
            }
            let count = 1 + random.below(12);
            write(&mut random, &mut transaction, &mut said, count);
            transaction.commit(Durability::None).unwrap();
            let expected = account(&said, episode, tau);
            let before = database.snapshot().len();
            let shown = table(&database, &format!("explain {statement}"));
            assert_eq!(database.snapshot().len(), before, "{seed}: an explanation changes nothing");
            let commit = database.snapshot().commit();
            let done = table(&database, &statement);
            assert_eq!(done.rows, shown.rows, "{seed}");
            compare(&database, &expected, &done, seed);
            let recalls = table(&database, "count recalls where not inactive");
            if round == 0 {
                assert_eq!(recalls.rows[0][0].as_ref().unwrap().to_string(), expected.len().to_string(), "{seed}");
                let contests: BTreeSet<String> = column(&done, "contested", 2).into_iter().collect();
                let all: BTreeSet<String> = expected.values().flat_map(|of| of.contested.clone()).collect();
                assert_eq!(contests, all, "{seed}");
            }
            superseded += column(&done, "superseded", 2).len();
            contested += column(&done, "contested", 2).len();
            let past = table(&database, &format!("count items as of commit {commit}"));
            assert_eq!(past.rows[0][0].as_ref().unwrap().to_string(), before.to_string(), "{seed}: the past stays");
            let head = database.snapshot().commit();
            let again = table(&database, &statement);
            assert!(again.rows.is_empty(), "{seed}: again {:?}", again.rows);
            assert_eq!(database.snapshot().commit(), head, "{seed}: again writes nothing");
        }
        let expected = account(&said, episode, tau);
        database.close().unwrap();
        let replayed = Holotype::rebuild_all_on(vfs as _, "/memory.holo", Options::default()).unwrap();
        compare(&replayed, &expected, &Table::default(), seed);
    }
    assert!(superseded > 50 && contested > 50, "{superseded} superseded, {contested} contested");
}

#[test]
fn the_limit_holds_for_each_episode_and_the_rest_comes_next_time() {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    for nth in 0..7 {
        for episode in ["e", "f"] {
            transaction.record(NewTrace::call(episode, "look", format!("look(thing T{nth}): price = $5"))).unwrap();
        }
    }
    transaction.commit(Durability::None).unwrap();
    for (made, left) in [(10, 4), (4, 0), (0, 0)] {
        let done = table(&database, "consolidate traces");
        assert_eq!(column(&done, "made", 2).len(), made);
        let notes = done.notes.join("; ");
        assert_eq!(notes.contains(&format!("{left} claims left")), left > 0, "{notes}");
    }
}

#[test]
fn what_cannot_be_consolidated_is_refused() {
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", Options::default()).unwrap();
    for statement in ["consolidate recalls", "consolidate pages", "consolidate items into fact"] {
        let error = database.query(statement, &Params::new()).unwrap_err().to_string();
        assert!(error.contains("expected traces, turns, calls or observations"), "{error}");
    }
}
