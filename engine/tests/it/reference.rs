//! Every example of `docs/query-language.md` runs, and statements that it calls *later* are refused by name.

use holotype::query::{ParamValue, Params, parse};
use holotype::{Error, Holotype, Options, Space};

const REFERENCE: &str = include_str!("../../../docs/query-language.md");

/// The items that the examples refer to.
const STORY: &str = "
    open episode 'trip-42' with task = 'book a flight', version = 'v3';
    record call 'UA123 price=$450' in episode 'trip-42' with key = 't0', tool = 'search_flights', step = 1;
    record call 'UA123 is on time' in episode 'trip-42' with key = 't2', tool = 'search_flights', step = 2;
    remember fact 'UA123 costs $280' from 't0' with key = 'r0';
    close episode 'trip-42'";

/// A statement of an example, and whether the reference says that it comes later.
fn examples() -> Vec<(String, bool)> {
    let mut examples = Vec::new();
    let (mut heading_later, mut paragraph_later, mut before) = (false, false, "");
    let mut lines = REFERENCE.lines();
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            heading_later = line.contains("Later");
            paragraph_later = false;
        }
        if before.is_empty() && !line.is_empty() && !line.starts_with("```") {
            paragraph_later = line.starts_with("*Later*");
        }
        before = line;
        if line != "```holotype" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let source = block.join("\n");
        let script = parse(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source)));
        for statement in &script.statements {
            let after = source.get(statement.span.end as usize..).unwrap_or_default();
            let marked = after.lines().next().is_some_and(|rest| rest.contains("-- later"));
            examples.push((statement.node.to_string(), marked || heading_later || paragraph_later));
        }
    }
    examples
}

fn params(statement: &str) -> Params {
    let known: [(&str, ParamValue); 6] = [
        ("q", ParamValue::Text("price of UA123".into())),
        ("e", ParamValue::Text("trip-42".into())),
        ("n", ParamValue::Int(100)),
        ("v", ParamValue::Vector(vec![1.0, 0.5])),
        ("known", ParamValue::List(vec![ParamValue::Text("r0".into())])),
        ("memory", ParamValue::Text("<memory></memory>".into())),
    ];
    let is_named = |name: &str| {
        let mut rest = statement;
        while let Some(at) = rest.find('$') {
            rest = &rest[at + 1..];
            if rest.strip_prefix(name).is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric())) {
                return true;
            }
        }
        false
    };
    known.into_iter().filter(|(name, _)| is_named(name)).map(|(name, value)| (name.to_owned(), value)).collect()
}

#[test]
fn every_example_runs_or_is_refused_as_the_reference_says() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::with_space(Space::new("test", 2));
    let database = Holotype::create(dir.path().join("memory.holo"), options).unwrap();
    database.query(STORY, &Params::new()).unwrap();
    let (mut ran, mut later) = (0, Vec::new());
    for (statement, marked) in examples() {
        let outcome = database.query(&statement, &params(&statement));
        match &outcome {
            Err(Error::NotYet { what }) => {
                assert!(marked, "`{statement}` is refused ({what}), and the reference does not say so");
                later.push(what.clone());
            }
            Err(Error::Query(errors)) => panic!("`{statement}`: {}", errors.render(&statement)),
            // An example may refer to something that does not exist, or that another example created.
            Err(Error::Missing { .. } | Error::UnresolvedPointer { .. } | Error::FutureCommit { .. }) => {}
            Err(Error::DuplicateKey { .. } | Error::DuplicateTrace { .. }) => {}
            Err(error) => panic!("`{statement}`: {error}"),
            Ok(_) => {
                assert!(!marked, "`{statement}` runs, and the reference says *later*");
                ran += 1;
            }
        }
    }
    assert!(ran > 25, "{ran} ran");
    assert_eq!(later, ["escalate", "learn", "merge", "merge"]);
}
