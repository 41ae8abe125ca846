//! Every example of the language's design parses, checks, and is formatted to a fixed
//! point.

use holotype_query::{check, format, parse};

const DESIGN: &str = include_str!("design.holotype");

#[test]
fn the_examples_parse_check_and_format_to_a_fixed_point() {
    let script = parse(DESIGN).unwrap_or_else(|errors| panic!("{}", errors.render(DESIGN)));
    assert_eq!(script.statements.len(), 40);
    check(&script, None, None).unwrap_or_else(|errors| panic!("{}", errors.render(DESIGN)));
    let formatted = format(&script);
    let again = parse(&formatted).unwrap_or_else(|errors| panic!("{}", errors.render(&formatted)));
    assert_eq!(again, script);
    assert_eq!(format(&again), formatted);
}
