//! Every example of the reference parses, checks, and is formatted to a fixed point;
//! and the reference names every attribute, setting, statement and error.

use holotype_query::attributes::{ATTRIBUTES, SETTINGS};
use holotype_query::{check, format, parse};

const REFERENCE: &str = include_str!("../../../docs/query-language.md");
const ERRORS: &str = include_str!("../../src/error.rs");

fn examples() -> Vec<String> {
    let mut examples = Vec::new();
    let mut lines = REFERENCE.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "```holotype" {
            let block: Vec<&str> = lines.by_ref().take_while(|it| it.trim() != "```").collect();
            examples.push(block.join("\n"));
        }
    }
    examples
}

#[test]
fn every_example_is_sound() {
    let examples = examples();
    assert!(examples.len() >= 19, "{} examples", examples.len());
    let mut verbs = std::collections::BTreeSet::new();
    for source in examples {
        let script = parse(&source).unwrap_or_else(|errors| panic!("{}", errors.render(&source)));
        check(&script, None, None).unwrap_or_else(|errors| panic!("{}", errors.render(&source)));
        let formatted = format(&script);
        let again = parse(&formatted).expect("what is formatted parses");
        assert_eq!(again, script);
        assert_eq!(format(&again), formatted);
        verbs.extend(script.statements.iter().map(|it| it.verb()));
    }
    let all = "explain why recall find count sources dependents conflicts history verify audit show \
               replay record remember learn update retract mark link unlink consolidate merge prune \
               decay compress induce reflect forget open \
               close set";
    for verb in all.split_whitespace() {
        assert!(verbs.contains(verb), "no example of `{verb}`");
    }
}

#[test]
fn every_attribute_and_setting_is_named() {
    for attribute in ATTRIBUTES {
        let name = if attribute.name == "fields" { "fields.NAME" } else { attribute.name };
        assert!(REFERENCE.contains(&format!("| `{name}` |")), "{name}");
    }
    for setting in SETTINGS {
        assert!(REFERENCE.contains(&format!("| `{}` |", setting.name)), "{}", setting.name);
    }
}

#[test]
fn every_error_code_is_named() {
    let table = ERRORS.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let codes: Vec<&str> =
        table.flat_map(|row| row.split('|').next().unwrap_or_default().split(['`', ',', ' '])).collect();
    let codes: Vec<&str> = codes.into_iter().filter(|code| !code.is_empty()).collect();
    assert!(codes.len() > 15, "{codes:?}");
    for code in codes {
        assert!(REFERENCE.contains(&format!("`{code}`")), "{code}");
    }
}
