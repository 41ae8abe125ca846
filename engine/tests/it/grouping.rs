//! Groups that are counted as sets equal those that are counted item by item, over checkpointed and changed items.

use crate::random::Random;
use holotype::answer::{Output, Table};
use holotype::query::Params;
use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer, Snapshot, Status};
use std::collections::BTreeMap;

const ATTRIBUTES: [&str; 6] = ["layer", "kind", "status", "source", "support", "active"];

fn table(snapshot: &Snapshot, statement: &str) -> Table {
    match snapshot.query(statement, &Params::new()).expect(statement).remove(0) {
        Output::Table(table) => table,
        _ => panic!("{statement}: expected a table"),
    }
}

/// Groups by the rows of `find`.
fn counted_one_by_one(snapshot: &Snapshot, filter: &str, by: &str) -> BTreeMap<String, i64> {
    let mut groups = BTreeMap::new();
    for row in table(snapshot, &format!("find items {filter} return {by}")).rows {
        *groups.entry(format!("{row:?}")).or_insert(0) += 1;
    }
    groups
}

fn counted_as_groups(snapshot: &Snapshot, filter: &str, by: &str) -> BTreeMap<String, i64> {
    let rows = table(snapshot, &format!("count items {filter} by {by}")).rows;
    let group = |mut row: Vec<Option<holotype::cell::Cell>>| match row.pop() {
        Some(Some(holotype::cell::Cell::Integer(count))) => (format!("{row:?}"), count),
        other => panic!("expected a count, found {other:?}"),
    };
    rows.into_iter().map(group).collect()
}

fn write(database: &Holotype, random: &mut Random, from: u64) {
    let mut transaction = database.begin().unwrap();
    for number in from..from + 60 {
        let episode = format!("e{}", random.below(4));
        let mut trace = NewTrace::turn(episode, format!("turn {number}")).key(format!("t{number}"));
        if random.below(5) > 0 {
            trace = trace.time(random.below(400_000_000_000) as i64 - 100_000_000_000);
        }
        if random.below(2) == 0 {
            trace = trace.status(Status::Success);
        }
        transaction.record(trace).unwrap();
        let key = format!("r{number}");
        match random.below(3) {
            0 => transaction.remember(NewRecall::fact(format!("said {number}")).key(key).ungrounded()).unwrap(),
            _ => {
                let other = from + random.below(number - from + 1);
                let fact = NewRecall::fact(format!("both {number}")).key(key);
                transaction
                    .remember(
                        fact.from(Pointer::to_key(format!("t{number}"))).from(Pointer::to_key(format!("t{other}"))),
                    )
                    .unwrap()
            }
        };
    }
    transaction.commit(Durability::Sync).unwrap();
}

#[test]
fn sets_count_what_a_look_at_each_item_counts() {
    let mut random = Random(11);
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    for round in 0..4 {
        write(&database, &mut random, round * 100);
        for _ in 0..6 {
            let number = round * 100 + random.below(60);
            let mark = format!("mark 't{number}' failed because 'wrong'");
            let retract = format!("retract 'r{}' because 'old'", round * 100 + random.below(60));
            database.query(if random.below(2) == 0 { &mark } else { &retract }, &Params::new()).unwrap();
        }
        if round % 2 == 0 {
            database.checkpoint().unwrap();
        }
        let snapshot = database.snapshot();
        for _ in 0..20 {
            let mut by = ATTRIBUTES.to_vec();
            by.retain(|_| random.below(3) == 0);
            by.push(*random.one(&ATTRIBUTES));
            by.dedup();
            let filters = ["", "where active = true", "where text contains '1'", "where episode = 'e1'"];
            let (filter, by) = (*random.one(&filters), by.join(", "));
            let expected = counted_one_by_one(&snapshot, filter, &by);
            assert_eq!(counted_as_groups(&snapshot, filter, &by), expected, "count items {filter} by {by}");
        }
        for every in ["1h", "1d", "90s"] {
            let times = table(&snapshot, "find items return time").rows;
            let mut expected: BTreeMap<String, i64> = BTreeMap::new();
            for row in times {
                let width = match every {
                    "1h" => 3_600_000_000,
                    "1d" => 86_400_000_000,
                    _ => 90_000_000,
                };
                let start = match &row[0] {
                    Some(holotype::cell::Cell::Time(time)) => {
                        Some(holotype::cell::Cell::Time(time.div_euclid(width) * width))
                    }
                    _ => None,
                };
                *expected.entry(format!("{:?}", [start])).or_insert(0) += 1;
            }
            assert_eq!(counted_as_groups(&snapshot, "", &format!("time every {every}")), expected);
        }
        for (filter, scope) in
            [("episode = 'e1'", "in episode 'e1'"), ("episode in ('e1', 'e3')", "in episode 'e1', 'e3'")]
        {
            let found = table(&snapshot, &format!("find items where {filter} return key")).rows;
            assert_eq!(found, table(&snapshot, &format!("find items {scope} return key")).rows);
            assert!(found.len() > 5);
        }
        assert!(table(&snapshot, "find items where episode = 'e9' return key").rows.is_empty());
    }
}
