//! The forms in which generated runs state a fact: as calls, as JSON, as prose, each in many forms.

use crate::random::Random;
use serde_json::{Value, json};

/// The style of the traces of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Style {
    /// `tool(kind name): attribute = value`
    Calls,
    /// JSON objects and arrays, flat and nested.
    Json,
    /// Sentences, lists, tables.
    Prose,
}

/// A value of an attribute of a thing, with another thing's value of the same attribute beside it.
pub(super) struct Fact<'a> {
    pub(super) kind: &'a str,
    pub(super) tool: &'a str,
    pub(super) name: &'a str,
    pub(super) attribute: &'a str,
    pub(super) value: &'a str,
    /// The value before, where there was one.
    pub(super) before: Option<&'a str>,
}

impl Style {
    /// The text of a fact and the name of its form.
    pub(super) fn state(self, fact: &Fact<'_>, random: &mut Random) -> (String, String) {
        match self {
            Style::Calls => call(fact, random),
            Style::Json => object(fact, random),
            Style::Prose => sentence(fact, random),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Style::Calls => "calls",
            Style::Json => "json",
            Style::Prose => "prose",
        }
    }
}

/// Fills a form: `{k}` kind, `{K}` with a capital, `{n}` name, `{a}` attribute, `{A}` with a capital, `{_}` with
/// underscores, `{v}` value, `{b}` the value before, `{t}` tool.
fn fill(form: &str, fact: &Fact<'_>) -> String {
    let capital = |text: &str| {
        let mut chars = text.chars();
        chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
    };
    form.replace("{k}", fact.kind)
        .replace("{K}", &capital(fact.kind))
        .replace("{n}", fact.name)
        .replace("{a}", fact.attribute)
        .replace("{A}", &capital(fact.attribute))
        .replace("{_}", &fact.attribute.replace(' ', "_"))
        .replace("{v}", fact.value)
        .replace("{b}", fact.before.unwrap_or("unknown"))
        .replace("{t}", fact.tool)
}

fn one_of(forms: &[&str], fact: &Fact<'_>, random: &mut Random) -> (String, String) {
    let form = forms[random.below(forms.len())];
    (fill(form, fact), form.to_owned())
}

fn call(fact: &Fact<'_>, random: &mut Random) -> (String, String) {
    one_of(
        &[
            "{t}({k} {n}): {a} = {v}",
            "{t}({n}) -> {_}={v}",
            "{t}(name=\"{n}\") => {a}: {v}",
            "{t}({k}=\"{n}\", verbose=true): {_} = {v}",
            "{t}(id='{n}', limit=5) -> {_}: {v}; cached = false",
            "{t}({\"id\": \"{n}\"}) = {_}={v}",
            "[{t}] {k} {n}: {a} = {v}",
            "{t} {n}\n{A}: {v}",
        ],
        fact,
        random,
    )
}

fn sentence(fact: &Fact<'_>, random: &mut Random) -> (String, String) {
    let settled = [
        "The {a} of {k} {n} is now {v}.",
        "The {a} of {n} is {v}.",
        "{n}'s {a} is {v}.",
        "{K} {n}'s {a} changed to {v}.",
        "As of this morning, the {a} of {k} {n} stands at {v}.",
        "I checked with the desk: the {a} for {k} {n} is {v}.",
        "According to the latest notice, {n}'s {a} is currently {v}.",
        "For {k} {n}, the {a} is {v}.",
        "{K} {n} now has a {a} of {v}.",
        "We looked up {k} {n}. Its {a} is now {v}.",
        "{K} {n}:\n- {A}: {v}",
        "Search results\n1. {K} {n} - {A}: {v}",
        "{A} of {n}: {v}",
        "{n} ({k}): {a} {v}",
        "| {k} | {a} |\n|---|---|\n| {n} | {v} |",
        "The desk lists the {a} of {k} {n} as {v}.",
        "The system shows a {a} of {v} for {k} {n}.",
        "Just confirmed that the {a} of {k} {n} is {v}.",
        "They set the {a} of {n} to {v}.",
        "It turns out the {a} of {k} {n} is {v}, thanks for waiting.",
        "The {a} for {n} has been updated to {v}.",
        "With {k} {n}, the {a} came out as {v}.",
        "Good news about {k} {n}: the {a} is {v}.",
        "**{K} {n}** has the following {a}: {v}.",
    ];
    let corrected = [
        "The {a} of {k} {n} is {v}, not {b}.",
        "The {a} of {n} changed from {b} to {v}.",
        "{n}'s {a} is no longer {b}; it is now {v}.",
        "Correction: the {a} of {k} {n} is {v}.",
        "{K} {n}'s {a} went from {b} to {v} today.",
        "The {a} of {k} {n} is not {b} anymore but {v}.",
        "The {a} of {n} was {b} and is now {v}.",
    ];
    let corrects = fact.before.is_some() && random.below(5) == 0;
    one_of(if corrects { &corrected } else { &settled }, fact, random)
}

fn object(fact: &Fact<'_>, random: &mut Random) -> (String, String) {
    let (kind, attribute) = (fact.kind.replace(' ', "_"), fact.attribute.replace(' ', "_"));
    let camel = |text: &str| {
        let mut words = text.split(' ');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
    };
    let number = || fact.value.parse::<u64>().map_or_else(|_| json!(fact.value), |number| json!(number));
    let money = fact.value.strip_prefix('$').and_then(|amount| amount.parse::<u64>().ok());
    let stamp = random.below(1_000_000);
    let forms: [(&str, Value); 10] = [
        ("flat", json!({kind.clone(): fact.name, attribute.clone(): number()})),
        ("camel", json!({"id": fact.name, camel(fact.attribute): number(), "requestId": stamp})),
        ("nested", json!({"query": {kind.clone(): fact.name}, "result": {attribute.clone(): number()}})),
        (
            "envelope",
            json!({"status": "ok", "timestamp": stamp, "data": {"name": fact.name, attribute.clone(): number()}}),
        ),
        ("array", json!([{"id": fact.name, attribute.clone(): number()}])),
        (
            "listed",
            json!({"results": [{"type": kind.clone(), "name": fact.name, attribute.clone(): number()}], "total": 1}),
        ),
        ("triple", json!({"entity": fact.name, "attribute": fact.attribute, "value": number()})),
        ("keyed", json!({fact.name: {attribute.clone(): number()}})),
        ("attributes", json!({"id": fact.name, "type": kind.clone(), "attributes": {attribute.clone(): number()}})),
        ("of kind", json!({kind.clone(): {"name": fact.name, attribute.clone(): number()}, "took_ms": stamp % 900})),
    ];
    if let Some(amount) = money.filter(|_| random.below(3) == 0) {
        let object = match random.below(3) {
            0 => json!({"id": fact.name, attribute: amount, "currency": "USD"}),
            1 => json!({"id": fact.name, attribute: {"amount": amount, "currency": "USD"}}),
            _ => json!({"id": fact.name, attribute: format!("{amount}.00 USD")}),
        };
        return (object.to_string(), "money".to_owned());
    }
    let (form, object) = &forms[random.below(forms.len())];
    (object.to_string(), (*form).to_owned())
}

/// A guess of the assistant.
pub(super) fn guess(fact: &Fact<'_>, random: &mut Random) -> String {
    one_of(
        &[
            "I believe the {a} of {k} {n} is {v}.",
            "From memory, {n}'s {a} is {v}.",
            "The {a} of {k} {n} is probably {v}.",
            "I think the {a} for {n} is {v}.",
        ],
        fact,
        random,
    )
    .0
}

/// The text of a failed call, sometimes with an old value.
pub(super) fn failure(style: Style, fact: &Fact<'_>, random: &mut Random) -> String {
    let forms: &[&str] = match style {
        Style::Calls => &[
            "{t}({k} {n}) {a}: HTTP 503 Service Unavailable",
            "{t}({k} {n}): {a} = {v} ... TimeoutError: upstream did not answer within 30s",
        ],
        Style::Json => &[
            "{\"error\": \"timeout\", \"{k}\": \"{n}\", \"{_}\": \"{v}\"}",
            "{\"status\": 503, \"message\": \"no {a} for {n}\"}",
        ],
        Style::Prose => &[
            "The lookup of the {a} of {k} {n} timed out; the last page said {v}.",
            "The {a} of {k} {n} is {v}, but the service reported an error.",
        ],
    };
    one_of(forms, fact, random).0
}

/// A question about an attribute.
pub(super) fn question(fact: &Fact<'_>, random: &mut Random) -> String {
    one_of(
        &[
            "What is the current {a} of {k} {n}?",
            "What is {n}'s {a} now?",
            "Tell me the {a} for {k} {n}.",
            "Which {a} does {k} {n} have?",
        ],
        fact,
        random,
    )
    .0
}
