//! Sources and what becomes of them, as data: `cases/*.txt`.
//!
//! A case is a line `=== title`, the source, a line `---`, and the outcome: the
//! canonical text of a script that parses and checks, else its errors as they are
//! shown. `UPDATE_CASES=1 cargo test -p holotype-query --test cases` writes the
//! outcomes anew; read the difference before committing it.

use std::fmt::Write as _;
use std::path::Path;

use holotype_query::{check, format, parse};

struct Case {
    title: String,
    source: String,
    outcome: String,
}

fn read_cases(text: &str) -> Vec<Case> {
    let blocks = text.split("=== ").skip(1);
    blocks
        .map(|block| {
            let (title, rest) = block.split_once('\n').expect("a title ends its line");
            let (source, outcome) = rest.split_once("\n---\n").unwrap_or((rest.trim_end(), ""));
            Case { title: title.to_owned(), source: source.to_owned(), outcome: outcome.trim_end().to_owned() }
        })
        .collect()
}

fn outcome(source: &str) -> String {
    let checked = parse(source).and_then(|script| check(&script, None, None).map(|()| script));
    match checked {
        Err(errors) => errors.render(source).trim_end().to_owned(),
        Ok(script) => {
            let text = format(&script);
            let again = parse(&text).unwrap_or_else(|errors| panic!("{}", errors.render(&text)));
            assert_eq!(again, script, "{text}");
            assert_eq!(format(&again), text);
            text.trim_end().to_owned()
        }
    }
}

/// Each case of a file has the outcome that stands beside it.
fn assert_cases(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases").join(file);
    let text = std::fs::read_to_string(&path).expect("the file of cases is there");
    let cases = read_cases(&text);
    assert!(!cases.is_empty(), "{file} holds no case");
    if std::env::var_os("UPDATE_CASES").is_some() {
        let mut updated = String::new();
        for Case { title, source, .. } in &cases {
            writeln!(updated, "=== {title}\n{source}\n---\n{}\n", outcome(source)).expect("a string takes any text");
        }
        std::fs::write(&path, updated.trim_end().to_owned() + "\n").expect("it can be written");
        return;
    }
    let mut wrong = String::new();
    for case in &cases {
        let found = outcome(&case.source);
        if found != case.outcome {
            let Case { title, source, outcome } = case;
            writeln!(wrong, "{title}\n{source}\n--- expected\n{outcome}\n--- found\n{found}\n")
                .expect("a string takes any text");
        }
    }
    assert!(wrong.is_empty(), "{file}:\n{wrong}");
}

#[test]
fn recall() {
    assert_cases("recall.txt");
}

#[test]
fn listings() {
    assert_cases("listings.txt");
}

#[test]
fn predicates() {
    assert_cases("predicates.txt");
}

#[test]
fn writes() {
    assert_cases("writes.txt");
}

#[test]
fn values() {
    assert_cases("values.txt");
}

#[test]
fn names() {
    assert_cases("names.txt");
}

#[test]
fn scripts() {
    assert_cases("scripts.txt");
}

#[test]
fn grammar() {
    assert_cases("grammar.txt");
}

/// Each production of the reference's grammar has a source that it accepts and one that it refuses.
#[test]
fn every_production_is_accepted_and_refused() {
    let reference = include_str!("../../../docs/query-language.md");
    let grammar = reference.split("```ebnf\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a grammar");
    let lines = grammar.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let productions: Vec<&str> = lines.filter_map(|line| Some(line.split_once('=')?.0.trim())).collect();
    assert!(productions.len() > 70, "{productions:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases/grammar.txt");
    let cases = read_cases(&std::fs::read_to_string(path).expect("the file of cases is there"));
    for production in productions {
        let outcome = |title: &str| {
            let case = cases.iter().find(|case| case.title == title);
            &case.unwrap_or_else(|| panic!("no case is called {title:?}")).outcome
        };
        assert!(!outcome(production).starts_with("error"), "{production} is refused");
        assert!(outcome(&format!("not {production}")).starts_with("error"), "{production} is accepted");
    }
}
