//! The canonical form, and that it reads back as the line it was.

use super::super::json::Parser;
use super::super::line::*;
use super::super::reader::{LineError, LineReader};
use super::super::vocabulary as words;
use super::*;
use proptest::prelude::*;
use proptest::{collection::vec, option, sample::select};

fn text_of(line: &Line) -> String {
    let mut out = Vec::new();
    encode(line, &mut out).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    String::from_utf8(out).unwrap()
}

/// An error says what is wrong, in which line, and where in it.
#[track_caller]
fn assert_told(error: &LineError, line: u64, text: &str) {
    assert!(!error.message.is_empty());
    assert_eq!(error.line, line);
    assert!((1..=text.chars().count() as u64 + 1).contains(&error.column), "{error:?} {text:?}");
}

#[track_caller]
fn assert_canonical(given: &str, canonical: &str) {
    let line = Line::parse(given, 1).unwrap();
    assert_eq!(text_of(&line), canonical);
    assert_eq!(Line::parse(canonical, 1).unwrap(), line);
}

#[test]
fn one_form_for_all_spellings() {
    for (given, canonical) in [
        (r#" {"commit" : { "number":null } }"#, r#"{"commit":{}}"#),
        (
            r#"{"trace":{"row":3,"fields":{"b":{ "x": 1.50 },"a":"\u00e9\u0007\/","c":{"base64":"YQ=="},"d":{"base64":"/w=="}},"time":"2026-01-05T12:00:00.500+02:00","episode":"e","step":"18446744073709551615"}}"#,
            r#"{"trace":{"episode":"e","step":"18446744073709551615","time":"2026-01-05T10:00:00.5Z","fields":{"b":{ "x": 1.50 },"a":"é\u0007/","c":"a","d":{"base64":"/w=="}},"row":3}}"#,
        ),
        (
            r#"{"recall":{"origin":"refined","active":false,"from":[{"end":4,"start":"1","unit":"bytes","field":"text","key":"t1"},{"hash":"0123456789ABCDEF","page":"p"}],"text":"x","vector":[1.0,0.10,1e-7,-0.0,12345678,1e20]}}"#,
            r#"{"recall":{"text":"x","from":[{"key":"t1","start":1,"end":4},{"page":"p","hash":"0123456789abcdef"}],"vector":[1,0.1,1e-7,-0,12345678,1e20],"active":false,"origin":"refined"}}"#,
        ),
        (
            r#"{"link":{"to":{"key":"t1","field":"text"},"edge":"cites","from":"r1"}}"#,
            r#"{"link":{"from":"r1","edge":"cites","to":"t1"}}"#,
        ),
        (
            r#"{"unlink":{"from":"r1","edge":"cites","to":{"key":"t1","field":"url"}}}"#,
            r#"{"unlink":{"from":"r1","edge":"cites","to":{"key":"t1","field":"url"}}}"#,
        ),
        (
            r#"{"claim":{"value":450,"key":"r1","name":"n","from":[]}}"#,
            r#"{"claim":{"key":"r1","name":"n","value":"450"}}"#,
        ),
        (
            r#"{"receipt":{"statement":"a\nb","at":{},"params":{"n":5}}}"#,
            r#"{"receipt":{"statement":"a\nb","params":{"n":5},"at":{}}}"#,
        ),
    ] {
        assert_canonical(given, canonical);
    }
}

#[test]
fn integers_are_numbers_up_to_two_to_the_53() {
    for (integer, text) in [(1_u64 << 53, "9007199254740992"), ((1 << 53) + 1, "\"9007199254740993\"")] {
        let line = Line::Commit(Commit { number: Some(integer), time: None });
        assert_eq!(text_of(&line), format!("{{\"commit\":{{\"number\":{text}}}}}"));
    }
}

#[test]
fn what_has_no_form_is_refused() {
    let refused = |line: Line| encode(&line, &mut Vec::new()).unwrap_err().to_string();
    let vector = |numbers| Line::Recall(Recall { vector: Some(VectorRef::Inline(numbers)), ..Recall::default() });
    assert_eq!(refused(vector(vec![1.0, f32::NAN])), "`vector`: NaN has no form in JSON");
    let reward = Credit { reward: Some(f64::INFINITY), ..Credit::default() };
    assert_eq!(refused(Line::Credit(reward)), "`reward`: inf has no form in JSON");
    let commit = Commit { number: None, time: Some(i64::MAX) };
    assert_eq!(
        refused(Line::Commit(commit)),
        "`time`: 9223372036854775807 microseconds since the epoch: outside the years 0000 to 9999"
    );
    let long = Recall { text: Some("x".repeat(MAX_LINE_LEN)), ..Recall::default() };
    assert_eq!(
        refused(Line::Recall(long)),
        "a `recall` line of 67108886 bytes is longer than 67108864, the limit of a line"
    );
}

#[test]
fn a_writer_writes_whole_lines_only() {
    let mut writer = LineWriter::new(Vec::new());
    writer.write(&Line::Header(Header { interchange: 1 })).unwrap();
    let bad = Line::Commit(Commit { number: Some(1), time: Some(i64::MIN) });
    assert!(writer.write(&bad).is_err());
    writer.write(&Line::Commit(Commit::default())).unwrap();
    assert_eq!(writer.count(), 2);
    assert_eq!(writer.finish().unwrap(), b"{\"holotype\":{\"interchange\":1}}\n{\"commit\":{}}\n");
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,4}", ".{1,6}", any::<String>().prop_filter("not empty", |name| !name.is_empty())]
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(any::<String>())
}

fn word(known: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(known).prop_map(str::to_owned)
}

fn hash() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9a-f]{64}", "[0-9a-f]{16}"]
}

fn instant() -> impl Strategy<Value = Option<i64>> {
    option::of(time::MIN_US..=time::MAX_US)
}

fn single() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |number| number.is_finite())
}

fn double() -> impl Strategy<Value = Option<f64>> {
    option::of(any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |number| number.is_finite()))
}

fn vector() -> impl Strategy<Value = Option<VectorRef>> {
    let inline = vec(single(), 1..5).prop_filter("not of length 0", |numbers| numbers.iter().any(|x| *x != 0.0));
    option::of(prop_oneof![any::<u64>().prop_map(VectorRef::Row), inline.prop_map(VectorRef::Inline),])
}

fn pointer() -> impl Strategy<Value = Pointer> {
    let span = (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(a, b, chars)| Span {
        start: a.min(b),
        end: a.max(b),
        unit: if chars { Unit::Chars } else { Unit::Bytes },
    });
    let field = prop_oneof![Just(Pointer::FIELD.to_owned()), name()];
    prop_oneof![
        (name(), field, option::of(span), option::of(hash())).prop_map(|(key, field, span, hash)| Pointer::Field {
            key,
            field,
            span,
            hash
        }),
        (name(), option::of(hash())).prop_map(|(page, hash)| Pointer::Page { page, hash }),
    ]
}

fn fields() -> impl Strategy<Value = Vec<(String, FieldValue)>> {
    let json =
        select(vec!["450.50", "true", "[1, {\"a\": null}]", "{ }", "-0", "1e999", "{\"base64\":1,\"b\":\"\\u0041\"}"]);
    let value = prop_oneof![
        any::<String>().prop_map(FieldValue::Text),
        json.prop_map(|json| FieldValue::Json(JsonText::new(json).unwrap())),
        vec(any::<u8>(), 0..6).prop_map(FieldValue::from_bytes),
    ];
    vec((name(), value), 0..5).prop_map(|mut fields| {
        let mut seen = std::collections::HashSet::new();
        fields.retain(|(name, _)| seen.insert(name.clone()));
        fields
    })
}

fn stated() -> impl Strategy<Value = Stated> {
    let first = (option::of(name()), option::of(word(words::SOURCES)), any::<Option<u64>>(), instant(), text());
    let second = (
        option::of(single()),
        option::of(1..=10_u8),
        any::<Option<bool>>(),
        any::<Option<bool>>(),
        option::of(word(words::ORIGINS)),
    );
    let beside = fields().prop_map(|fields| fields.into_iter().filter(|(name, _)| name != "text").collect());
    (first, second, beside).prop_map(
        |((episode, source, step, time, version), (utility, return_score, active, ungrounded, origin), fields)| {
            Stated { episode, source, step, time, version, utility, return_score, active, ungrounded, origin, fields }
        },
    )
}

fn trace() -> impl Strategy<Value = Line> {
    let first = (option::of(name()), name(), any::<Option<u64>>(), instant(), option::of(word(words::TRACE_KINDS)));
    let second = (option::of(word(words::SOURCES)), text(), text(), option::of(word(words::STATUSES)), text(), text());
    (first, second, fields(), vector()).prop_map(
        |((key, episode, step, time, kind), (source, tool, log_id, status, version, speaker), fields, vector)| {
            Line::Trace(Trace {
                key,
                episode,
                step,
                time,
                kind,
                source,
                tool,
                log_id,
                status,
                version,
                speaker,
                fields,
                vector,
            })
        },
    )
}

fn items() -> impl Strategy<Value = Line> {
    let recall = (
        (option::of(name()), option::of(word(words::RECALL_KINDS)), text()),
        (vec(pointer(), 0..4), option::of(word(words::STATUSES)), vector(), stated()),
    );
    let theme =
        ((option::of(name()), option::of(word(words::THEME_KINDS)), text()), (vec(name(), 0..4), vector(), stated()));
    prop_oneof![
        trace(),
        recall.prop_map(|((key, kind, text), (from, status, vector, stated))| {
            Line::Recall(Recall { key, kind, text, from, status, vector, stated })
        }),
        theme.prop_map(|((key, kind, text), (children, vector, stated))| {
            Line::Theme(Theme { key, kind, text, children, vector, stated })
        }),
    ]
}

fn settings() -> impl Strategy<Value = Line> {
    prop_oneof![
        Just(Line::Header(Header { interchange: Header::VERSION })),
        (name(), 1..=u32::MAX, option::of(word(words::METRICS)), option::of(word(words::ENCODINGS)))
            .prop_map(|(model, dim, metric, encoding)| Line::Space(Space { model, dim, metric, encoding })),
        (name(), any::<String>()).prop_map(|(name, value)| Line::Setting(Setting { name, value })),
        (name(), text(), text(), any::<Option<bool>>())
            .prop_map(|(id, task, version, open)| { Line::Episode(Episode { id, task, version, open }) }),
        (option::of(name()), name(), name(), name(), option::of(word(words::PAGE_STATES)), option::of(hash()))
            .prop_map(|(key, episode, first, last, state, hash)| {
                Line::Page(Page { key, episode, first, last, state, hash })
            }),
        (any::<Option<u64>>(), instant()).prop_map(|(number, time)| Line::Commit(Commit { number, time })),
    ]
}

fn statements() -> impl Strategy<Value = Line> {
    prop_oneof![
        (name(), word(words::EDGES), pointer(), any::<bool>()).prop_map(|(from, edge, to, unlink)| {
            let link = Link { from, edge, to };
            if unlink { Line::Unlink(link) } else { Line::Link(link) }
        }),
        (name(), name(), any::<String>(), option::of(word(words::SCOPES)), vec(pointer(), 0..3), option::of(name()))
            .prop_map(|(key, name, value, scope, from, won)| {
                Line::Claim(Claim { key, name, value, scope, from, won })
            }),
        (name(), word(words::STATUSES), option::of(single()), text()).prop_map(|(key, status, utility, because)| {
            Line::Mark(Mark { key, status: Some(status), utility, because, ..Mark::default() })
        }),
        (name(), option::of(name()), text()).prop_map(|(key, by, because)| Line::Deactivate(Deactivate {
            key,
            by,
            because
        })),
        (name(), option::of(name()), option::of(hash()), text())
            .prop_map(|(key, field, hash, because)| Line::Redact(Redact { key, field, hash, because })),
    ]
}

fn records() -> impl Strategy<Value = Line> {
    let credit = (
        (text(), any::<Option<u64>>(), any::<Option<u64>>(), name()),
        (double(), double(), double(), double(), double(), double()),
        (double(), double(), double(), double(), double(), double(), double()),
    );
    let reader = (option::of(name()), any::<Option<u64>>(), instant(), text())
        .prop_map(|(episode, step, time, version)| Reader { episode, step, time, version });
    let receipt = (
        (option::of(name()), any::<String>(), fields(), option::of(reader)),
        (any::<Option<u64>>(), vec(name(), 0..3), vec(pointer(), 0..3)),
    );
    let event = (
        (name(), instant(), option::of(name()), any::<Option<u64>>(), any::<Option<u64>>()),
        (vec(name(), 0..3), vec(hash(), 0..3), any::<Option<u64>>(), text(), text()),
    );
    prop_oneof![
        credit.prop_map(|((group, rollout, step, item), a, b)| {
            let (reward, s_prev, s_now, log_h, delta, delta_hat) = a;
            let (log_rho, beta, gate, advantage, smoothed, trajectory_advantage, token_advantage) = b;
            Line::Credit(Credit {
                group,
                rollout,
                step,
                reward,
                s_prev,
                s_now,
                log_h,
                item,
                delta,
                delta_hat,
                log_rho,
                beta,
                gate,
                advantage,
                smoothed,
                trajectory_advantage,
                token_advantage,
            })
        }),
        receipt.prop_map(|((key, statement, params, at), (commit, items, spans))| {
            Line::Receipt(Receipt { key, statement, params, at, commit, items, spans })
        }),
        event.prop_map(|((op, time, episode, step, commit), (items, hashes, tokens, text, because))| {
            Line::Event(Event { op, time, episode, step, commit, items, hashes, tokens, text, because })
        }),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![items(), settings(), statements(), records()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn a_line_reads_back_as_it_was(line in line()) {
        let text = text_of(&line);
        prop_assert!(!text.contains('\n'));
        let read = Line::parse(&text, 1);
        prop_assert_eq!(read.as_ref(), Ok(&line), "{}", text);
        prop_assert_eq!(text_of(&read.unwrap()), text);
    }

    /// Members in any order, and with white space between, are the same line.
    #[test]
    fn order_and_spacing_say_nothing(line in line()) {
        let text = text_of(&line);
        let (mut kind, mut members) = (String::new(), Vec::new());
        let mut parser = Parser::new(&text);
        let walked = parser.object(|parser, outer| {
            kind.push_str(outer.text);
            parser.object(|parser, member| {
                members.push(format!("\t\"{}\" :{}\r", member.text, parser.raw()?));
                Ok(())
            })
        });
        prop_assert_eq!(walked, Ok(()));
        members.reverse();
        let shuffled = format!(" {{ \"{kind}\" : {{ {} }} }}\r", members.join(" , "));
        prop_assert_eq!(Line::parse(&shuffled, 1), Ok(line), "{}", shuffled);
    }

    #[test]
    fn noise_is_refused_and_never_a_panic(text in "[{}\\[\\]\":,0-9a-z \\\\]{0,40}", line in line(), at: prop::sample::Index) {
        if let Err(error) = Line::parse(&text, 1) {
            assert_told(&error, 1, &text);
        }
        let mut damaged = text_of(&line).into_bytes();
        let at = at.index(damaged.len());
        damaged[at] ^= 1;
        let mut reader = LineReader::new(damaged.as_slice());
        while let Some((number, read)) = reader.read().unwrap() {
            match read {
                // Another line, if it is one, is written and read like any.
                Ok(other) => prop_assert_eq!(Line::parse(&text_of(&other), number), Ok(other)),
                Err(error) => assert_told(&error, number, &String::from_utf8_lossy(&damaged)),
            }
        }
    }
}
