//! The planner against a naive interpreter: on generated databases, generated statements give the rows that the
//! definitions give, in the same order.
//!
//! The interpreter (`naive.rs`) works on exported rows: `find items return *`, pages, episodes and claims, the
//! fields, vectors and edges of each item. It looks at every row for every clause, knows no columns, sets, keys or
//! indexes, and shares no code with the engine. For `as of` it works on what was exported after that commit.
//! `HOLOTYPE_PAIRS` says how many pairs of database and statement are compared, `HOLOTYPE_SEED` from which seed on.

mod naive;
mod statements;
mod world;

use crate::random::Random;
use holotype::Snapshot;
use holotype::answer::{Output, Role, Row, Table};
use holotype::query::plan::{Statement, Thing};
use holotype::query::{ParamValue, Params, bind, parse};
use naive::{Exported, Listed};

/// Statements asked of one database.
const STATEMENTS: u64 = 100;

#[test]
fn the_planner_answers_what_the_definitions_say() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (pairs, first) = (number("HOLOTYPE_PAIRS").unwrap_or(2_000), number("HOLOTYPE_SEED").unwrap_or(1));
    let databases = pairs.div_ceil(STATEMENTS);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64).min(databases);
    let rows: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    (thread..databases).step_by(threads as usize).map(|nth| compare(first + nth)).sum::<u64>()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker's failure is told above")).sum()
    });
    println!("{} pairs agree, {rows} rows", databases * STATEMENTS);
    assert!(rows > databases * STATEMENTS / 2, "most statements have to find something: {rows} rows");
}

/// Compares all statements on one database and gives the number of their rows.
fn compare(seed: u64) -> u64 {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let snapshots = world::write(&mut random);
    let exported: Vec<Exported> = snapshots.iter().map(Exported::of).collect();
    let (snapshot, present) = (&snapshots[snapshots.len() - 1], &exported[exported.len() - 1]);
    let (mut rows, mut pairs) = (0, 0);
    // A statement whose answer hangs on how floats are added up is no pair; another is asked instead.
    for _ in 0..2 * STATEMENTS {
        if pairs == STATEMENTS {
            break;
        }
        // A read as of an earlier commit equals a read at that time.
        let then = random.below(snapshots.len() as u64 * 2) as usize;
        let exported = exported.get(then).unwrap_or(present);
        let (mut source, vector) = statements::any(&mut random, exported);
        if let Some(snapshot) = snapshots.get(then) {
            source = statements::as_of(&source, snapshot.commit());
        }
        let context = format!("seed {seed}: {source}, $v = {vector:?}");
        let mut params = Params::new();
        if source.contains("$v") {
            params.insert("v".to_owned(), ParamValue::Vector(vector.to_vec()));
        }
        let script = parse(&source).unwrap_or_else(|errors| panic!("{context}\n{}", errors.render(&source)));
        let statement = bind(&script, &params).expect("every parameter is given").remove(0);
        if let Some(found) = check(snapshot, exported, &statement, &source, &params, &context) {
            (rows, pairs) = (rows + found, pairs + 1);
        }
    }
    assert_eq!(pairs, STATEMENTS, "seed {seed}: too many answers are left to chance");
    rows
}

fn check(
    snapshot: &Snapshot,
    exported: &Exported,
    statement: &Statement,
    source: &str,
    params: &Params,
    context: &str,
) -> Option<u64> {
    let output = snapshot.query(source, params).unwrap_or_else(|error| panic!("{context}: {error}")).remove(0);
    match (statement, output) {
        (Statement::Find(find), Output::Table(table)) if find.thing == Thing::Claims => {
            same_table(&table, &exported.find_claims(find), context)
        }
        (Statement::Find(find), Output::Table(table)) => same_table(&table, &exported.find(find), context),
        (Statement::Count(count), Output::Table(table)) => same_table(&table, &exported.count(count), context),
        (Statement::Walk(walk), Output::Table(table)) => same_table(&table, &exported.walk(walk), context),
        (Statement::Recall(recall), Output::Answer(answer)) => {
            let wanted = exported.recall(recall);
            if wanted.is_close {
                return None;
            }
            let hits: Vec<&Row> = answer.rows.iter().filter(|row| row.role == Role::Hit).collect();
            let found: Vec<u32> = hits.iter().map(|row| row.item.0).collect();
            let score = |id: u32| wanted.all.iter().find(|row| row.0 == id).map(|row| row.1);
            assert_eq!(found.len(), wanted.rows.len(), "{context}: {found:?}, expected {:?}", wanted.rows);
            for (at, (row, wanted_id)) in hits.iter().zip(&wanted.rows).enumerate() {
                let naive = score(row.item.0).unwrap_or_else(|| panic!("{context}: {} is no candidate", row.item));
                assert!((naive - f64::from(row.score)).abs() < 1e-3, "{context}: {row:?}, expected {naive}");
                // Scores are summed in floats of other lengths: rows nearer than that may change places.
                let place = score(*wanted_id).unwrap_or(f64::NAN);
                assert!(
                    row.item.0 == *wanted_id || (naive - place).abs() < 1e-4,
                    "{context}: row {at} is {}, expected {wanted_id}; {found:?}, expected {:?}",
                    row.item,
                    wanted.rows
                );
            }
            let roles: Vec<(u32, bool)> =
                answer.rows.iter().map(|row| (row.item.0, row.role == Role::Evidence)).collect();
            assert_eq!(roles, exported.expanded(recall, &found), "{context}: evidence");
            Some(roles.len() as u64)
        }
        (_, output) => panic!("{context}: {output:?}"),
    }
}

fn same_table(table: &Table, wanted: &Listed, context: &str) -> Option<u64> {
    let found: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(naive::shown).collect()).collect();
    assert_eq!(&table.columns, &wanted.columns, "{context}");
    assert_eq!(found, wanted.rows, "{context}");
    Some(found.len() as u64)
}
