//! Every example of `docs/query-language.md` runs.

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

/// The statements of the examples.
fn examples() -> Vec<String> {
    let mut examples = Vec::new();
    let mut lines = REFERENCE.lines();
    while let Some(line) = lines.next() {
        if line == "```holotype" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let source = block.join("\n");
            let script = parse(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source)));
            examples.extend(script.statements.iter().map(|statement| statement.to_string()));
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
fn every_example_runs() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::with_space(Space::new("test", 2));
    let database = Holotype::create(dir.path().join("memory.holo"), options).unwrap();
    database.query(STORY, &Params::new()).unwrap();
    let mut ran = 0;
    for statement in examples() {
        let outcome = database.query(&statement, &params(&statement));
        match &outcome {
            Err(Error::Query(errors)) => panic!("`{statement}`: {}", errors.render(&statement)),
            // An example may refer to something that does not exist, or that another example created.
            Err(Error::Missing { .. } | Error::UnresolvedPointer { .. } | Error::FutureCommit { .. }) => {}
            Err(Error::DuplicateKey { .. } | Error::OtherContent { .. } | Error::DuplicateTrace { .. }) => {}
            Err(error) => panic!("`{statement}`: {error}"),
            Ok(_) => ran += 1,
        }
    }
    assert!(ran > 25, "{ran} ran");
}
