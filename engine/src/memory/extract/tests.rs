//! One sentence per form, equal claims from different forms, and properties on arbitrary text.

use super::*;
use proptest::prelude::*;

fn claims_of(tool: Option<&str>, text: &str) -> Vec<String> {
    let claims = extract(tool, &[Field { name: "text", text }], &ExtractOptions::default());
    claims.iter().map(|claim| format!("{} = {}", claim.name(), claim.value)).collect()
}

#[track_caller]
fn assert_claims(text: &str, expected: &[&str]) {
    assert_eq!(claims_of(None, text), expected, "{text}");
}

#[test]
fn values_have_one_spelling() {
    for (values, expected) in [
        (&["$1,234.50", "1234.5 USD", "USD 1,234.50", "1234.50 dollars", "$1234.5"][..], "1234.5 USD"),
        (&["3 May 2026", "2026-05-03", "May 3, 2026", "May 3rd, 2026", "3rd of May 2026", "3.5.2026"], "2026-05-03"),
        (&["8:15 pm", "20:15", "20:15:00", "8:15 p.m."], "20:15"),
        (&["8 am", "8:00", "08:00"], "08:00"),
        (&["2026-05-03T20:15:00Z", "2026-05-03 20:15:00.000+00:00"], "2026-05-03T20:15Z"),
        (&["5kg", "5 kg", "5.0 kilograms"], "5 kg"),
        (&["12%", "12 percent"], "12 %"),
        (&["1.25 million", "1,250,000", "1250000.0"], "1250000"),
        (&["-3", "\u{2212}3.0"], "-3"),
        (&["Delayed", " delayed.", "\"delayed\""], "delayed"),
        (&["007"], "007"),
        (&["1,23", "1,23 "], "1,23"),
        (&["03/05/2026"], "03/05/2026"),
    ] {
        for value in values {
            assert_eq!(normalise(value), expected, "{value}");
        }
    }
}

#[test]
fn one_fact_in_several_forms() {
    for text in [
        "search_flights(flight TK129): price = $583",
        "search_flights(flight=\"TK129\", currency=\"USD\") -> price=$583.00",
        "{\"flight\":\"TK129\",\"price\":583,\"currency\":\"USD\"}",
        "{\"tool\":\"search_flights\",\"arguments\":{\"flight\":\"TK129\"},\"result\":{\"price\":\"$583\"}}",
        "Flight TK129:\n  Price: 583 USD",
        "| flight | price |\n|---|---|\n| TK129 | $583 |",
        "flight TK129 price=$583",
    ] {
        assert_claims(text, &["price of tk129 = 583 USD"]);
    }
}

#[test]
fn names_with_a_kind_a_number_or_many_words() {
    for (text, expected) in [
        ("**Warehouse item SKU-623** has the following shelf: C58.", "shelf of sku-623 = c58"),
        ("Northwind (share): shipping time 8-9 days", "shipping time of northwind = 8-9 days"),
        ("OPS-822 (ticket): priority normal", "priority of ops-822 = normal"),
        ("1. Batch ledger batch 57 - Records processed: 15282", "records processed of ledger batch 57 = 15282"),
    ] {
        assert_claims(text, &[expected]);
    }
}

#[test]
fn calls() {
    assert_claims(
        "run_script(ledger batch 6670): records processed = 83379",
        &["records processed of ledger batch 6670 = 83379"],
    );
    assert_claims(
        "get(key=a, limit=5) => x=1 y = two words, z=\"a, b\"",
        &["x of a = 1", "y of a = two words", "z of a = a, b"],
    );
    assert_eq!(claims_of(Some("queue"), "queue(): waiting = 3"), ["waiting of queue = 3"]);
    assert_claims("price=$450", &[]);
}

#[test]
fn json() {
    assert_claims(
        "{\"id\":\"SKU-43994\",\"stock\":{\"shelf\":\"M-39\",\"count\":7},\"timestamp\":\"2026-01-01\"}",
        &["stock shelf of sku-43994 = m-39", "stock count of sku-43994 = 7"],
    );
    assert_claims(
        "[{\"name\":\"Oslo\",\"temp\":3,\"unit\":\"celsius\"},{\"name\":\"Bergen\",\"wet\":true}]",
        &["temp of oslo = 3 °C", "wet of bergen = true"],
    );
    assert_claims("{\"entity\":\"Oslo\",\"attribute\":\"mayor\",\"value\":\"Ann Lee\"}", &["mayor of oslo = ann lee"]);
    assert_claims("{\"batch\":9269,\"status\":\"ok\",\"state\":\"queued\"}", &["state of batch 9269 = queued"]);
    assert_claims("{\"price\":583}", &[]);
}

#[test]
fn sentences_make_no_claims() {
    for text in [
        "The gate of flight UA123 is B12.",
        "Batch 9269 has 45,155 records.",
        "Flight TK129's price is now 583 dollars.",
        "I believe the price of flight TK129 is $583.",
        "Suppose the rent were $700.",
        "Alice: I went to Rome in 2019.",
        "Terminal 2: the gate is D24, as far as I know.",
    ] {
        assert_claims(text, &[]);
    }
}

#[test]
fn short_fields_are_one_record() {
    let of = |fields: &[(&str, &str)]| {
        let fields: Vec<Field<'_>> = fields.iter().map(|(name, text)| Field { name, text }).collect();
        let claims = extract(None, &fields, &ExtractOptions::default());
        let written = |claim: &ExtractedClaim| fields[claim.field].text[claim.span.clone()].to_owned();
        claims.iter().map(|c| format!("{} = {} ({})", c.name(), c.value, written(c))).collect::<Vec<_>>()
    };
    let text = ("text", "Cheapest flight to Oslo: TK129 on 9 March, cost 583 USD per adult");
    assert_eq!(
        of(&[text, ("flight", "TK129"), ("price", "583"), ("currency", "USD")]),
        ["price of tk129 = 583 USD (583)"]
    );
    assert_eq!(of(&[text, ("batch_id", "9269"), ("state", "x"), ("rows", "5")]), ["rows of batch 9269 = 5 (5)"]);
    assert_eq!(of(&[("name", "Oslo"), ("wet", "true")]), ["wet of oslo = true (true)"]);
    // A page and a step of a trajectory are about nothing that has attributes.
    assert_eq!(of(&[("title", "Fares"), ("url", "https://fares.example/lis"), ("price", "149")]), [""; 0]);
    assert_eq!(of(&[("observation", "door A12"), ("action", "go"), ("reward", "1")]), [""; 0]);
    assert_eq!(
        of(&[("flight", "TK129"), ("price", "583"), ("error", "504: price of TK129 is 1")]),
        ["price of tk129 = 583 (583)"]
    );
}

#[test]
fn a_key_that_names_a_thing_is_the_subject_of_its_value() {
    assert_claims("Flight TK129: delayed", &["state of tk129 = delayed"]);
    assert_claims("Alice: yes", &[]);
    assert_claims("Cheapest flight to Oslo: TK129 on 9 March, cost 583 USD", &[]);
}

#[test]
fn tables_and_keys() {
    assert_claims("Hotel Boise Harbour 71:\n\n", &[]);
    assert_claims(
        "Hotel Boise Harbour 71:\n- **Nightly rate:** $342\n- pool: closed",
        &["nightly rate of boise harbour 71 = 342 USD", "pool of boise harbour 71 = closed"],
    );
    assert_claims("Unit A12:\n| field | value |\n|---|---|\n| rent | €900 |", &["rent of a12 = 900 EUR"]);
}

#[test]
fn ignored_attributes_and_bounds() {
    let options = ExtractOptions { ignore: vec!["gate_number".to_owned()], max_claims: 2 };
    let fields = [Field { name: "text", text: "f(x1): gateNumber=1, a=1, a=1, b=2, c=3" }];
    let names: Vec<String> = extract(None, &fields, &options).iter().map(ExtractedClaim::name).collect();
    assert_eq!(names, ["a of x1", "b of x1"]);
}

#[test]
fn spans_cover_the_values_as_written() {
    for text in ["f(x1): price = $1,583.00; gate = D24", "{\"id\":\"x1\",\"price\":1583,\"gate\":\"D24\"}"] {
        let claims = extract(None, &[Field { name: "text", text }], &ExtractOptions::default());
        let written: Vec<&str> = claims.iter().map(|claim| &text[claim.span.clone()]).collect();
        assert!(matches!(written.as_slice(), ["$1,583.00" | "1583", "D24"]), "{written:?}");
    }
}

/// A name written with an escape once sent the reader to the end of the text, and every later span was empty.
#[test]
fn spans_in_json_are_exact_with_escapes_lists_and_repeated_names() {
    for (text, expected) in [
        (r#"{"flight":"TK129","curr\ncy":"USD","legs":"two","id":"r-1"}"#, &["TK129", "USD", "two"][..]),
        (r#"{"id":"x1","note":"a \"price\": 5","price":7}"#, &[r#"a \"price\": 5"#, "7"]),
        (r#"{"id":"x1","ports":["OSL", "IST"],"gate":"D24"}"#, &[r#"["OSL", "IST"]"#, "D24"]),
        (r#"{"id":"x1","gate":"D1","gate":"D2"}"#, &["D2"]),
        (r#" [{"id":"x1","wet":true}, {"id":"x2","caf\u00e9":"ol\u00e9"}] "#, &["true", r"ol\u00e9"]),
    ] {
        let claims = extract(None, &[Field { name: "text", text }], &ExtractOptions::default());
        let written: Vec<&str> = claims.iter().map(|claim| &text[claim.span.clone()]).collect();
        assert_eq!(written, expected, "{text}");
    }
}

/// Text made of what the rules look for.
fn suspicious() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "price",
        "TK129",
        " of ",
        "'s ",
        " is ",
        "=",
        ": ",
        ", ",
        "(",
        ")",
        "{",
        "}",
        "[",
        "\"",
        "|",
        "\n",
        "$1,234.50",
        "3 May 2026",
        "é",
        "\u{2019}",
        "the ",
        " has ",
        "45",
        ".",
        ";",
        "\t",
        " ",
        "- ",
        "->",
        "a_b",
        ":",
        "20:15",
        "pm",
        " and ",
        "İ",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Arbitrary text, and what looks like a quantity.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![suspicious(), any::<String>(), "[-$€0-9.,: ]{0,12}(kg|pm|%|USD| million)?"]
}

proptest! {
    #[test]
    fn spans_resolve_and_claims_are_bounded(text in prop_oneof![suspicious(), any::<String>()], most in 0..5_usize) {
        let options = ExtractOptions { ignore: Vec::new(), max_claims: most };
        let fields = [Field { name: "text", text: &text }];
        let claims = extract(Some("tool"), &fields, &options);
        prop_assert!(claims.len() <= most);
        for claim in &claims {
            prop_assert!(text.get(claim.span.clone()).is_some_and(|written| !written.trim().is_empty()));
            prop_assert!(!claim.subject.is_empty() && !claim.attribute.is_empty() && !claim.value.is_empty());
        }
        prop_assert_eq!(claims, extract(Some("tool"), &fields, &options));
    }

    #[test]
    fn normalising_twice_changes_nothing(text in values()) {
        let once = normalise(&text);
        prop_assert_eq!(normalise(&once), once);
    }

    /// An attribute that a claim has is one that `claims.ignore` can name.
    #[test]
    fn an_attribute_has_one_spelling(text in prop_oneof![suspicious(), any::<String>(), "(the |`|\"|A){0,6}[a-c]"]) {
        let once = subject::attribute(&text);
        prop_assert_eq!(subject::attribute(&once), once);
    }

    #[test]
    fn whole_numbers_survive_grouping(number in 0..1_000_000_000_u64) {
        let digits = number.to_string();
        let groups = digits.as_bytes().rchunks(3).rev();
        let groups: Vec<&str> = groups.map(|group| std::str::from_utf8(group).unwrap()).collect();
        prop_assert_eq!(normalise(&groups.join(",")), digits);
    }
}

#[test]
fn one_value_in_several_structures() {
    for text in [
        "Gate of UA123: B12",
        "UA123 (flight): gate B12",
        "Search results\n1. Flight UA123 - Gate: B12",
        "{\"UA123\":{\"gate\":\"B12\"}}",
    ] {
        assert_claims(text, &["gate of ua123 = b12"]);
    }
    assert_claims("{\"id\":\"UA123\",\"price\":{\"amount\":5,\"currency\":\"USD\"}}", &["price of ua123 = 5 USD"]);
}
