//! Parameters: given, missing, of the wrong sort, of the wrong length.

use holotype_query::plan::Statement;
use holotype_query::{Errors, ParamValue, Params, Passage, bind, check, parse};

fn text(text: &str) -> ParamValue {
    ParamValue::Text(text.to_owned())
}

fn params<const N: usize>(given: [(&str, ParamValue); N]) -> Params {
    given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn checked(source: &str, params: &Params) -> Result<(), Errors> {
    check(&parse(source).expect("it parses"), Some(params), Some(3))
}

/// The code and the message of the only error.
fn error(source: &str, params: &Params) -> (&'static str, String) {
    let errors = checked(source, params).expect_err("it is refused");
    assert_eq!(errors.len(), 1, "{errors}");
    (errors[0].code, errors[0].to_string())
}

fn bound(source: &str, params: &Params) -> Statement {
    bind(&parse(source).expect("it parses"), params).expect("it binds").remove(0)
}

#[test]
fn each_place_takes_its_sorts() {
    let vector = || ParamValue::Vector(vec![1.0, 0.0, 0.0]);
    let both = || ParamValue::TextVector { text: "x".to_owned(), vector: vec![1.0, 0.0, 0.0] };
    for (source, value) in [
        ("recall $p", text("x")),
        ("recall $p", both()),
        ("recall near $p", vector()),
        ("recall near $p", both()),
        ("recall like $p", text("r1")),
        ("recall like $p", ParamValue::Int(17)),
        ("recall 'x' in episode $p", text("e")),
        ("recall 'x' in episode $p", ParamValue::Int(42)),
        ("recall 'x' limit $p", ParamValue::Int(0)),
        ("recall 'x' abstain below $p", ParamValue::Float(0.5)),
        ("recall 'x' abstain below $p", ParamValue::Int(-1)),
        ("recall 'x' at time $p", text("2026-01-05T10:00:00Z")),
        ("recall 'x' at time $p", ParamValue::Int(1)),
        ("recall 'x' where status = $p", text("failed")),
        ("recall 'x' where active = $p", ParamValue::Bool(true)),
        ("recall 'x' where age < $p", text("7d")),
        ("recall 'x' where step in $p", ParamValue::List(vec![ParamValue::Int(1)])),
        ("recall 'x' where step in ($p, 2)", ParamValue::Int(1)),
        ("learn $p from 't1' quoting $p", both()),
    ] {
        let given = params([("p", value)]);
        checked(source, &given).unwrap_or_else(|errors| panic!("{source}: {errors}"));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let vector = |components: &[f32]| ParamValue::Vector(components.to_vec());
    for (source, value, code) in [
        ("recall $p", vector(&[1.0, 0.0, 0.0]), "parameter-type"),
        ("recall $p", text(" "), "empty-query"),
        ("recall near $p", text("x"), "parameter-type"),
        ("recall near $p", vector(&[1.0, 0.0]), "vector-length"),
        ("recall near $p", vector(&[]), "vector-length"),
        ("recall near $p", vector(&[1.0, f32::NAN, 0.0]), "parameter-type"),
        ("recall like $p", ParamValue::Int(-1), "parameter-type"),
        ("recall 'x' in episode $p", ParamValue::Bool(true), "parameter-type"),
        ("recall 'x' limit $p", ParamValue::Int(-1), "parameter-type"),
        ("recall 'x' limit $p", ParamValue::Float(1.0), "parameter-type"),
        ("recall 'x' abstain below $p", ParamValue::Float(f64::INFINITY), "parameter-type"),
        ("recall 'x' at time $p", text("yesterday"), "bad-time"),
        ("recall 'x' where status = $p", text("faild"), "unknown-value"),
        ("recall 'x' where step = $p", text("7"), "wrong-type"),
        ("recall 'x' where step = $p", ParamValue::List(Vec::new()), "parameter-type"),
        ("recall 'x' where step in $p", ParamValue::Int(1), "parameter-type"),
        ("recall 'x' where step in $p", ParamValue::List(Vec::new()), "parameter-type"),
        ("recall 'x' where step in $p", ParamValue::List(vec![text("7")]), "wrong-type"),
        ("set profile = $p", text("agnt"), "unknown-value"),
    ] {
        assert_eq!(error(source, &params([("p", value.clone())])).0, code, "{source} {value:?}");
    }
}

#[test]
fn missing_and_unused_parameters_are_told_together() {
    let errors = checked("recall $question limit $n", &params([("questoin", text("x"))])).expect_err("one is missing");
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 1, column 8: $question is not given; expected a text, perhaps with its vector; \
             did you mean `questoin`?",
            "line 1, column 24: $n is not given; expected a whole number",
            "$questoin is given, but not used; did you mean `question`?",
        ]
    );
}

#[test]
fn the_place_of_an_error_is_that_of_the_parameter() {
    let source = "recall 'x' where status = $s";
    let errors = checked(source, &params([("s", text("faild"))])).expect_err("it is refused");
    assert!(errors.render(source).contains("1 | recall 'x' where status = $s\n  |                           ^^\n"));
}

#[test]
fn a_text_with_its_vector_gives_both() {
    let both = ParamValue::TextVector { text: "price".to_owned(), vector: vec![1.0, 2.0] };
    let Statement::Recall(recall) = bound("recall $q", &params([("q", both)])) else {
        panic!("it is a recall");
    };
    assert_eq!(recall.query.words(), Some("price"));
    let vector = recall.query.vector().expect("the text brought one");
    assert_eq!((vector.param.as_str(), vector.components.as_slice()), ("q", &[1.0, 2.0][..]));
}

#[test]
fn near_goes_before_the_vector_of_the_text() {
    let both = ParamValue::TextVector { text: "price".to_owned(), vector: vec![1.0] };
    let given = params([("q", both), ("v", ParamValue::Vector(vec![2.0]))]);
    let Statement::Recall(recall) = bound("recall $q near $v", &given) else {
        panic!("it is a recall");
    };
    assert_eq!(recall.query.vector().map(|it| it.components.as_slice()), Some(&[2.0][..]));
}

/// An attack in a parameter stays one text.
#[test]
fn text_never_becomes_syntax() {
    let attack = "x' or 1 = 1; forget items in all because '";
    let statement = bound("recall $q where key = $q", &params([("q", text(attack))]));
    let Statement::Recall(recall) = &statement else { panic!("it is a recall") };
    let passage = Passage { text: attack.to_owned(), vector: None };
    assert_eq!(recall.query.text, Some(passage));
    assert_eq!(bound(&statement.to_string(), &Params::new()), statement);
}

/// A plan without all of its values does not exist.
#[test]
fn a_parameter_that_is_missing_gives_no_plan() {
    let script = parse("recall $q in episode $e limit $n").expect("it parses");
    let errors = bind(&script, &params([("n", text("x"))])).expect_err("nothing fits");
    let places: Vec<_> = errors.iter().map(|error| (error.code, error.line, error.column)).collect();
    assert_eq!(places, [("missing-parameter", 1, 8), ("missing-parameter", 1, 22), ("parameter-type", 1, 31)]);
}
