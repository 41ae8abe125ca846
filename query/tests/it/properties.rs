//! Properties of every statement: trees come back from their own text, no source makes
//! the parser panic, and no parameter changes the meaning of a statement.

use crate::trees;
use holotype_query::ast::{Arg, Script};
use holotype_query::{
    MAX_DEPTH, MAX_SOURCE_LEN, MAX_STATEMENTS, MAX_TOKENS, ParamValue, Params, bind, check, format, parse,
};
use proptest::prelude::*;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn a_tree_comes_back_from_its_own_text(script in trees::script()) {
        let text = format(&script);
        let parsed = parse(&text).map_err(|errors| TestCaseError::fail(errors.render(&text)))?;
        prop_assert_eq!(&parsed, &script, "{}", text);
        prop_assert_eq!(format(&parsed), text);
    }

    #[test]
    fn one_line_and_many_say_the_same(script in trees::script()) {
        for statement in &script.statements {
            let line = statement.to_string();
            prop_assert!(!line.contains('\n'));
            let parsed = parse(&line).map_err(|errors| TestCaseError::fail(errors.render(&line)))?;
            prop_assert_eq!(&parsed.statements[0], statement);
        }
    }

    /// Whatever is checked, nothing panics; and what is wrong has a place in the source.
    #[test]
    fn any_tree_can_be_checked(script in trees::script(), dimension in 0usize..3) {
        let script = parse(&format(&script)).expect("it comes back");
        let text = format(&script);
        let with_parameters = check(&script, Some(&Params::new()), Some(dimension));
        let without = check(&script, None, None);
        for errors in [with_parameters, without].iter().filter_map(|it| it.as_ref().err()) {
            for error in errors {
                prop_assert!(error.line > 0 && error.column > 0, "{error}");
            }
            prop_assert!(!errors.render(&text).is_empty());
        }
    }

    /// Text never becomes syntax: a bound statement prints as the statement with literals
    /// in the same places, and reads back as just that.
    #[test]
    fn no_parameter_changes_the_shape(statement in trees::statement(), text in ".{1,40}") {
        let value = ParamValue::Text(format!("x{text}' or 1 = 1; forget --"));
        let names = trees::parameter_names();
        let params: Params = names.iter().map(|name| (name.to_string(), value.clone())).collect();
        // Places that take no text are left unbound; the others print as a quoted text.
        let script = Script { statements: vec![statement.clone().into()], comments: Vec::new() };
        let Ok(bound) = bind(&script, &params) else { return Ok(()) };
        let printed = bound[0].to_string();
        let parsed = parse(&printed).map_err(|it| TestCaseError::fail(it.render(&printed)))?;
        prop_assert_eq!(parsed.statements.len(), 1);
        prop_assert_eq!(bind(&parsed, &Params::new()), Ok(bound));
        // Nothing is skipped either way.
        let written = statement.to_string().replace(" skip 0", "");
        prop_assert_eq!(shape(&printed), shape(&written));
    }
}

/// The tokens of a canonical statement with every text and parameter made the same.
fn shape(statement: &str) -> String {
    let mut shape = String::new();
    let mut chars = statement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '$' => {
                while chars.next_if(|c| c.is_alphanumeric() || *c == '_' || *c == '-').is_some() {}
                shape.push('?');
            }
            // In a name a quoted part is not a value.
            '\'' => {
                let mut text = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => text.extend(chars.next()),
                        '\'' if chars.peek() == Some(&'\'') => text.extend(chars.next()),
                        '\'' => break,
                        c => text.push(c),
                    }
                }
                if shape.ends_with('.') { shape += &text } else { shape.push('?') }
            }
            c => shape.push(c),
        }
    }
    shape
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..4_000)) {
        assert_survives(&String::from_utf8_lossy(&bytes));
    }

    /// Words of the language in any order get further into the parser than bytes do.
    #[test]
    fn no_words_make_the_parser_panic(words in prop::collection::vec(trees::scrap(), 0..300)) {
        assert_survives(&words.join(" "));
    }
}

proptest! {
    #![proptest_config(config(8))]

    #[test]
    fn a_mebibyte_of_bytes_is_survived(seed in any::<[u8; 16]>(), words in any::<bool>()) {
        let mut source = String::new();
        let mut state = u128::from_le_bytes(seed) | 1;
        while source.len() < MAX_SOURCE_LEN - 8 {
            state = state.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(1);
            let pick = (state >> 64) as usize;
            if words {
                source += trees::SCRAPS[pick % trees::SCRAPS.len()];
                source.push(' ');
            } else {
                source += &String::from_utf8_lossy(&pick.to_le_bytes()[..3]);
            }
        }
        source.truncate(source.floor_char_boundary(MAX_SOURCE_LEN));
        assert_survives(&source);
    }
}

/// Whatever `source` is, it parses to something that can be printed, or to errors that
/// can be shown.
fn assert_survives(source: &str) {
    match parse(source) {
        Ok(script) => {
            let text = format(&script);
            assert_eq!(parse(&text).as_ref(), Ok(&script), "{text}");
            let _ = check(&script, Some(&Params::new()), None);
        }
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= 64);
            for error in &errors {
                assert!(error.span.end as usize <= source.len());
                assert!(error.line > 0 && error.column > 0);
            }
            assert!(errors.render(source).len() < 200_000);
        }
    }
}

#[test]
fn nesting_is_bounded() {
    let depth = MAX_DEPTH as usize;
    for (open, inner, close) in [("(", "a = 1", ")"), ("not ", "a = 1", ""), ("not (", "a = 1", ")")] {
        let nested = |depth: usize| format!("find items where {}{inner}{}", open.repeat(depth), close.repeat(depth));
        let per_level = if open == "not (" { 2 } else { 1 };
        assert!(parse(&nested(depth / per_level)).is_ok(), "{open}");
        let errors = parse(&nested(depth / per_level + 1)).expect_err("it is too deep");
        assert_eq!(errors[0].code, "too-deep", "{open}");
        assert_eq!(parse(&nested(100_000)).expect_err("it is too deep")[0].code, "too-deep");
    }
    let hops = |depth: usize| {
        let close = ") up to 2 hops".repeat(depth);
        format!("recall 'x' through {}facts{close}", "(".repeat(depth))
    };
    assert!(parse(&hops(depth)).is_ok());
    assert_eq!(parse(&hops(depth + 1)).expect_err("it is too deep")[0].code, "too-deep");
}

#[test]
fn a_long_chain_is_not_deep() {
    let source = format!("find items where {}", vec!["step = 1"; 20_000].join(" or "));
    let script = parse(&source).expect("a chain is one node");
    assert_eq!(format(&script).split(" or ").count(), 20_000);
}

#[test]
fn a_source_over_a_mebibyte_is_refused() {
    let source = " ".repeat(MAX_SOURCE_LEN + 1);
    assert_eq!(parse(&source).expect_err("it is too long")[0].code, "too-long");
    assert_eq!(parse(&source[1..]).expect_err("it is empty")[0].code, "empty");
}

#[test]
fn a_script_of_too_many_statements_is_refused() {
    let script = |count: usize| vec!["recall 'x'"; count].join("; ");
    assert_eq!(parse(&script(MAX_STATEMENTS)).expect("it is just short enough").statements.len(), MAX_STATEMENTS);
    let errors = parse(&script(MAX_SOURCE_LEN / 12)).expect_err("it is too long");
    assert_eq!((errors.len(), errors[0].code), (1, "too-long"));
    assert_eq!(errors[0].span.start as usize, script(MAX_STATEMENTS).len() + 2);
}

#[test]
fn a_script_of_too_many_words_is_refused() {
    let script = |members: usize| format!("find items where key in ({})", vec!["'a'"; members].join(", "));
    // Seven tokens around the members, and a comma between each two.
    let most = (MAX_TOKENS - 6) / 2;
    parse(&script(most)).expect("it is just short enough");
    let errors = parse(&script(most + 1)).expect_err("it is too long");
    assert_eq!((errors.len(), errors[0].code), (1, "too-long"), "{errors:?}");
    let errors = parse(&"'a ( ' x ".repeat(MAX_SOURCE_LEN / 9)).expect_err("it is no statement");
    assert!(errors.len() <= 64);
}

/// As many errors are told of names as of syntax, and no more are looked for.
#[test]
fn a_long_chain_of_unknown_names_is_not_checked_to_its_end() {
    let source = format!("find items where {}", vec!["nonsense = 1"; 20_000].join(" or "));
    let errors = check(&parse(&source).expect("it parses"), None, None).expect_err("they are unknown");
    assert_eq!((errors.len(), errors[62].code, errors[63].code), (64, "unknown-attribute", "too-many-errors"));
    assert!(errors[63].span.end < 64 * 17 + 17);
}

#[test]
fn an_argument_knows_whether_it_is_bound() {
    assert_eq!(Arg::Value(3).value(), Some(&3));
    assert_eq!(Arg::<u64>::Param("n".to_owned()).value(), None);
}
