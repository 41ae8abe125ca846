//! Authored lines of every kind, and every fault with its column and its words.

use super::super::line::*;
use super::super::reader::LineError;

fn parse(text: &str) -> Line {
    Line::parse(text, 1).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn fault(text: &str) -> LineError {
    match Line::parse(text, 7) {
        Ok(line) => panic!("{text}: {line:?}"),
        Err(error) => error,
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn span(start: u64, end: u64, unit: Unit) -> Option<Span> {
    Some(Span { start, end, unit })
}

const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn header_space_setting_episode() {
    assert_eq!(parse(r#"{"holotype":{"interchange":1}}"#), Line::Header(Header { interchange: 1 }));
    assert_eq!(
        parse(r#"{"space":{"model":"mini","dim":384,"metric":"cosine","encoding":"f16"}}"#),
        Line::Space(Space { model: "mini".to_owned(), dim: 384, metric: some("cosine"), encoding: some("f16") })
    );
    for (json, value) in [("\"1d\"", "1d"), ("2.50", "2.50"), ("true", "true")] {
        assert_eq!(
            parse(&format!("{{\"setting\":{{\"name\":\"recency.half-life\",\"value\":{json}}}}}")),
            Line::Setting(Setting { name: "recency.half-life".to_owned(), value: value.to_owned() })
        );
    }
    assert_eq!(
        parse(r#" { "episode" : { "id" : "trip-42", "task": "book a flight", "version": "v3", "open": true } } "#),
        Line::Episode(Episode {
            id: "trip-42".to_owned(),
            task: some("book a flight"),
            version: some("v3"),
            open: Some(true)
        })
    );
}

#[test]
fn a_trace_with_every_member() {
    let line = parse(
        r#"{"trace":{"row":0,"key":"t1","episode":"trip-42","step":12,"time":"2026-01-05T12:00:00+02:00",
            "kind":"call","source":"tool","tool":"search_flights","log_id":"log-9","status":"success","version":"v3",
            "speaker":null,"fields":{"text":"UA123 price=$450","price":450.50,"gone":null,"raw":{"base64":"/wA="},
            "utf8":{"base64":"w6k="},"tree":{ "base64": "x", "b": [1, null] },"n":"\ud83d\ude00"}}}"#
            .replace('\n', " ")
            .as_str(),
    );
    let json = |text: &str| FieldValue::Json(super::super::JsonText::new(text).unwrap());
    let expected = Trace {
        key: some("t1"),
        episode: "trip-42".to_owned(),
        step: Some(12),
        time: Some(1_767_607_200_000_000),
        kind: some("call"),
        source: some("tool"),
        tool: some("search_flights"),
        log_id: some("log-9"),
        status: some("success"),
        version: some("v3"),
        speaker: None,
        fields: vec![
            ("text".to_owned(), FieldValue::Text("UA123 price=$450".to_owned())),
            ("price".to_owned(), json("450.50")),
            ("raw".to_owned(), FieldValue::Bytes(vec![0xff, 0])),
            ("utf8".to_owned(), FieldValue::Text("é".to_owned())),
            ("tree".to_owned(), json("{ \"base64\": \"x\", \"b\": [1, null] }")),
            ("n".to_owned(), FieldValue::Text("😀".to_owned())),
        ],
        vector: Some(VectorRef::Row(0)),
    };
    assert_eq!(line, Line::Trace(expected));
}

#[test]
fn page_recall_and_theme() {
    assert_eq!(
        parse(&format!(
            "{{\"page\":{{\"key\":\"p7\",\"episode\":\"e\",\"first\":\"t1\",\"last\":\"t9\",\"state\":\"summarised\",\"hash\":\"{}\"}}}}",
            HASH.to_uppercase()
        )),
        Line::Page(Page {
            key: some("p7"),
            episode: "e".to_owned(),
            first: "t1".to_owned(),
            last: "t9".to_owned(),
            state: some("summarised"),
            hash: some(HASH)
        })
    );
    let recall = r#"{"recall":{"key":"r1","kind":"fact","text":"UA123 costs $450","from":[
        {"key":"t1","field":"text","start":6,"end":16,"hash":"0123456789abcdef"},{"key":"t2","field":"url"},
        {"key":"t3","start":0,"end":2,"unit":"chars"},{"page":"p7"}],"status":"success","vector":[0.5,-1e-3,2],
        "episode":"e","source":"user","step":"9007199254740993","time":"2026-01-05T10:00:00.25Z","version":"v3",
        "utility":0.1,"return_score":10,"active":false,"ungrounded":true,"origin":"linked_fact",
        "fields":{"sure":true}}}"#;
    let pointer = |key: &str, field: &str, span, hash| Pointer::Field {
        key: key.to_owned(),
        field: field.to_owned(),
        span,
        hash,
    };
    let expected = Recall {
        key: some("r1"),
        kind: some("fact"),
        text: some("UA123 costs $450"),
        from: vec![
            pointer("t1", "text", span(6, 16, Unit::Bytes), some("0123456789abcdef")),
            pointer("t2", "url", None, None),
            pointer("t3", "text", span(0, 2, Unit::Chars), None),
            Pointer::Page { page: "p7".to_owned(), hash: None },
        ],
        status: some("success"),
        vector: Some(VectorRef::Inline(vec![0.5, -1e-3, 2.0])),
        stated: Stated {
            episode: some("e"),
            source: some("user"),
            step: Some((1 << 53) + 1),
            time: Some(1_767_607_200_250_000),
            version: some("v3"),
            utility: Some(0.1),
            return_score: Some(10),
            active: Some(false),
            ungrounded: Some(true),
            origin: some("linked_fact"),
            fields: vec![("sure".to_owned(), FieldValue::Json(super::super::JsonText::new("true").unwrap()))],
        },
    };
    assert_eq!(parse(&recall.replace('\n', "")), Line::Recall(expected));
    assert_eq!(
        parse(r#"{"theme":{"key":"th1","kind":"intent","text":"prices","children":["r1"],"row":2,"step":3}}"#),
        Line::Theme(Theme {
            key: some("th1"),
            kind: some("intent"),
            text: some("prices"),
            children: vec!["r1".to_owned()],
            vector: Some(VectorRef::Row(2)),
            stated: Stated { step: Some(3), ..Stated::default() }
        })
    );
}

#[test]
fn edges_and_claims() {
    let link = |to| Link { from: "r1".to_owned(), edge: "cites".to_owned(), to };
    assert_eq!(parse(r#"{"link":{"from":"r1","edge":"cites","to":"t1"}}"#), Line::Link(link(Pointer::item("t1"))));
    assert_eq!(
        parse(r#"{"unlink":{"from":"r1","edge":"cites","to":{"key":"t1","start":0,"end":3}}}"#),
        Line::Unlink(link(Pointer::Field {
            key: "t1".to_owned(),
            field: "text".to_owned(),
            span: span(0, 3, Unit::Bytes),
            hash: None
        }))
    );
    assert_eq!(
        parse(
            r#"{"claim":{"key":"r1","name":"UA123.price","value":450,"scope":"global","from":[{"key":"t1"}],"won":null}}"#
        ),
        Line::Claim(Claim {
            key: "r1".to_owned(),
            name: "UA123.price".to_owned(),
            value: "450".to_owned(),
            scope: some("global"),
            from: vec![Pointer::item("t1")],
            won: None
        })
    );
}

#[test]
fn what_is_said_afterwards() {
    let key = || "t1".to_owned();
    assert_eq!(
        parse(r#"{"mark":{"key":"t1","status":"failed","because":"timeout"}}"#),
        Line::Mark(Mark { key: key(), status: some("failed"), because: some("timeout"), ..Mark::default() })
    );
    assert_eq!(
        parse(r#"{"mark":{"key":"t1","utility":-0.5}}"#),
        Line::Mark(Mark { key: key(), utility: Some(-0.5), ..Mark::default() })
    );
    assert_eq!(
        parse(r#"{"deactivate":{"key":"t1","by":"r9","because":"merged"}}"#),
        Line::Deactivate(Deactivate { key: key(), by: some("r9"), because: some("merged") })
    );
    assert_eq!(
        parse(&format!("{{\"redact\":{{\"key\":\"t1\",\"field\":\"text\",\"hash\":\"{HASH}\",\"because\":\"88\"}}}}")),
        Line::Redact(Redact { key: key(), field: some("text"), hash: some(HASH), because: some("88") })
    );
    assert_eq!(
        parse(r#"{"commit":{"number":12,"time":"2026-01-05T10:00:00Z"}}"#),
        Line::Commit(Commit { number: Some(12), time: Some(1_767_607_200_000_000) })
    );
    assert_eq!(parse(r#"{"commit":{}}"#), Line::Commit(Commit::default()));
}

#[test]
fn credit_receipt_and_event() {
    assert_eq!(
        parse(
            r#"{"credit":{"group":"g1","rollout":0,"step":1,"reward":1.0,"s_prev":-2.1,"s_now":-1.4,"log_h":-0.9,"item":"r1","smoothed":0.25}}"#
        ),
        Line::Credit(Credit {
            group: some("g1"),
            rollout: Some(0),
            step: Some(1),
            reward: Some(1.0),
            s_prev: Some(-2.1),
            s_now: Some(-1.4),
            log_h: Some(-0.9),
            item: "r1".to_owned(),
            smoothed: Some(0.25),
            ..Credit::default()
        })
    );
    assert_eq!(
        parse(
            r#"{"receipt":{"key":"rc-17","statement":"recall $q","params":{"q":"price"},"at":{"episode":"e","step":4},"commit":9,"items":["r1"],"spans":[{"key":"t1"}]}}"#
        ),
        Line::Receipt(Receipt {
            key: some("rc-17"),
            statement: "recall $q".to_owned(),
            params: vec![("q".to_owned(), FieldValue::Text("price".to_owned()))],
            at: Some(Reader { episode: some("e"), step: Some(4), ..Reader::default() }),
            commit: Some(9),
            items: vec!["r1".to_owned()],
            spans: vec![Pointer::item("t1")],
        })
    );
    assert_eq!(
        parse(&format!(
            "{{\"event\":{{\"op\":\"recall\",\"time\":\"1970-01-01T00:00:00Z\",\"items\":[\"r1\"],\"hashes\":[\"{HASH}\"],\"tokens\":40}}}}"
        )),
        Line::Event(Event {
            op: "recall".to_owned(),
            time: Some(0),
            items: vec!["r1".to_owned()],
            hashes: vec![HASH.to_owned()],
            tokens: Some(40),
            ..Event::default()
        })
    );
}

/// `^` in a line stands before the place that the error must name; it is taken out before the line is parsed.
#[track_caller]
fn assert_fault(marked: &str, message: &str, hint: Option<&str>) {
    let column = marked.chars().position(|c| c == '^').expect("a caret") as u64 + 1;
    let error = fault(&marked.replace('^', ""));
    assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, hint), "{marked}");
    assert_eq!((error.line, error.column), (7, column), "{marked}");
}

#[test]
fn faults_of_the_line() {
    for (marked, what) in [("^[]", "an array"), ("^nothing", "not JSON"), ("^null", "null"), ("^not json", "not JSON")]
    {
        let message = format!("this line is {what}; expected an object such as {{\"trace\":{{…}}}}");
        assert_fault(marked, &message, Some("a file to import holds JSON Lines: one JSON object a line"));
    }
    for (marked, message) in [
        (" ^{}", "an empty object: expected a name that says what the line is"),
        ("{\"commit\":{}}^}", "expected the end of the line, found `}`"),
        ("{\"commit\":^3}", "`commit`: expected an object, found a number"),
        ("{\"commit\":{}^", "expected `,` or `}`, found the end of the line"),
        ("{\"commit\":{\"number\":1,^\"number\":2}}", "the name `number` is given twice"),
        ("{\"commit\":{}^\n}", "a line feed inside a line"),
    ] {
        assert_fault(marked, message, None);
    }
    assert_fault(
        "{\"commit\":{},^\"mark\":{}}",
        "a second name, `mark`, in one line",
        Some("one object a line, under one name that says what it is"),
    );
    assert_fault("{^\"trase\":{}}", "unknown kind of line: `trase`", Some("did you mean `trace`?"));
    assert_fault(
        "{^\"question\":{}}",
        "unknown kind of line: `question`",
        Some(
            "a line holds holotype, space, setting, episode, trace, page, recall, theme, link, unlink, claim, mark, \
             deactivate, redact, credit, receipt, event, commit",
        ),
    );
    assert_fault(
        "{\"holotype\":{\"interchange\":^2}}",
        "interchange version 2: this build reads 1",
        Some("a newer holotype wrote this file"),
    );
}

#[test]
fn faults_of_members() {
    for (marked, message, hint) in [
        ("{\"trace\":{^\"epsode\":\"e\"}}", "unknown member of `trace`: `epsode`", Some("did you mean `episode`?")),
        (
            "{\"trace\":{\"episode\":\"é\",^\"Speker\":null}}",
            "unknown member of `trace`: `Speker`",
            Some("did you mean `speaker`?"),
        ),
        ("{\"commit\":{^\"when\":1}}", "unknown member of `commit`: `when`", Some("it takes number, time")),
        ("{\"trace\":^{\"key\":\"t1\"}}", "`trace` needs `episode`", None),
        ("{\"trace\":^{\"episode\":null}}", "`trace` needs `episode`", None),
        ("{\"episode\":^{}}", "`episode` needs `id`", None),
        ("{\"page\":^{\"episode\":\"e\",\"first\":\"a\"}}", "`page` needs `last`", None),
        ("{\"link\":^{\"from\":\"a\",\"edge\":\"cites\"}}", "`link` needs `to`", None),
        ("{\"mark\":^{\"key\":\"a\"}}", "`mark` needs `status`, `utility` or `credit`", None),
        ("{\"mark\":{\"key\":^\"\"}}", "`mark.key`: is empty", None),
        ("{\"mark\":{\"key\":^7}}", "`mark.key`: expected a string, found a number", None),
        ("{\"episode\":{\"open\":^\"yes\"}}", "`episode.open`: expected true or false, found a string", None),
        (
            "{\"mark\":{\"key\":\"a\",\"status\":^\"sucess\"}}",
            "`mark.status`: expected one of success, unknown, failed, found `sucess`",
            Some("did you mean `success`?"),
        ),
        (
            "{\"trace\":{\"kind\":^\"fact\"}}",
            "`trace.kind`: expected one of turn, call, observation, found `fact`",
            None,
        ),
        (
            "{\"link\":{\"edge\":^\"derived_from\"}}",
            "`link.edge`: expected one of derived-from, cites, mentions, solves, sibling, supersedes, conflicts-with, \
             parent, found `derived_from`",
            Some("did you mean `derived-from`?"),
        ),
        ("{\"trace\":{\"step\":^-3}}", "`trace.step`: expected a whole number from 0, found `-3`", None),
        ("{\"trace\":{\"step\":^1.0}}", "`trace.step`: expected a whole number from 0, found `1.0`", None),
        (
            "{\"trace\":{\"step\":^\"012\"}}",
            "`trace.step`: expected a whole number from 0, found the string `012`",
            None,
        ),
        ("{\"trace\":{\"step\":^\"\"}}", "`trace.step`: expected a whole number from 0, found the string ``", None),
        ("{\"trace\":{\"step\":^true}}", "`trace.step`: expected a whole number from 0, found a boolean", None),
        (
            "{\"trace\":{\"step\":^9007199254740993}}",
            "`trace.step`: `9007199254740993` is above 2^53",
            Some("integers above 9007199254740992 are written as strings"),
        ),
        ("{\"space\":{\"dim\":^0}}", "`space.dim`: expected a whole number from 1 to 4294967295, found 0", None),
        (
            "{\"recall\":{\"return_score\":^11}}",
            "`recall.return_score`: expected a whole number from 1 to 10, found 11",
            None,
        ),
        ("{\"recall\":{\"utility\":^\"1\"}}", "`recall.utility`: expected a number, found a string", None),
        ("{\"recall\":{\"utility\":^1e39}}", "`recall.utility`: `1e39` is too large", None),
        ("{\"credit\":{\"reward\":^1e309}}", "`credit.reward`: `1e309` is too large", None),
        (
            "{\"trace\":{\"time\":^\"2026-01-05T10:00:00\"}}",
            "`trace.time`: `2026-01-05T10:00:00`: a time needs a zone: end it with Z or an offset such as +02:00",
            None,
        ),
        ("{\"trace\":{\"time\":^1767607200}}", "`trace.time`: expected a string, found a number", None),
        (
            "{\"redact\":{\"hash\":^\"abc\"}}",
            "`redact.hash`: expected 64 hexadecimal digits, or the first 16, found `abc`",
            None,
        ),
        (
            "{\"setting\":{\"value\":^[]}}",
            "`setting.value`: expected a string, a number or a boolean, found an array",
            None,
        ),
        ("{\"theme\":{\"children\":^\"r1\"}}", "`theme.children`: expected an array, found a string", None),
        ("{\"theme\":{\"children\":[\"r1\",^2]}}", "`theme.children`: expected a string, found a number", None),
    ] {
        assert_fault(marked, message, hint);
    }
}

#[test]
fn faults_of_fields_and_vectors() {
    for (marked, message, hint) in [
        ("{\"trace\":{\"fields\":^[]}}", "`trace.fields`: expected an object of named values, found an array", None),
        ("{\"trace\":{\"fields\":{^\"\":1}}}", "`trace.fields`: a name is empty", None),
        ("{\"trace\":{\"fields\":{\"a\":1,^\"a\":1}}}", "the name `a` is given twice", None),
        ("{\"trace\":{\"fields\":{\"a\":{\"b\":1,^\"b\":1}}}}", "the name `b` is given twice", None),
        (
            "{\"trace\":{\"fields\":{\"a\":{\"base64\": ^5}}}}",
            "`trace.fields`: expected base64 text, found a number",
            None,
        ),
        (
            "{\"trace\":{\"fields\":{\"a\":{\"base64\":^\"/w\"}}}}",
            "`trace.fields`: not base64",
            Some("the standard alphabet (A-Z a-z 0-9 + /), padded with ="),
        ),
        ("{\"trace\":{\"fields\":{\"a\":\"^\\udc00\"}}}", "the lone surrogate \\udc00 stands for no character", None),
        ("{\"trace\":{\"vector\":[1,^NaN]}}", "expected a value, found `N`", Some("JSON has no NaN and no infinity")),
        ("{\"trace\":{\"vector\":[1,^null]}}", "`trace.vector`: expected a number, found null", None),
        ("{\"trace\":{\"vector\":[^1e39]}}", "`trace.vector`: `1e39` is too large", None),
        ("{\"trace\":{\"vector\":^[]}}", "`trace.vector`: no numbers", Some("leave out the vector of an item without")),
        (
            "{\"trace\":{\"vector\":^[0,-0.0]}}",
            "`trace.vector`: a vector of length 0 (all numbers are 0)",
            Some("leave out the vector of an item without"),
        ),
        ("{\"trace\":{\"row\":0,\"vector\":^[1]}}", "`trace.vector`: `row` and `vector` exclude each other", None),
        ("{\"recall\":{\"vector\":[1],\"row\":^0}}", "`recall.row`: `row` and `vector` exclude each other", None),
    ] {
        assert_fault(marked, message, hint);
    }
}

#[test]
fn faults_of_pointers() {
    for (pointer, message) in [
        ("^\"t1\"", "`recall.from`: expected a pointer such as {\"key\":\"t1\"}, found a string"),
        ("^{}", "`from`: a pointer needs `key` or `page`"),
        ("^{\"key\":\"t1\",\"page\":\"p1\"}", "`from`: `key` and `page` exclude each other"),
        ("^{\"page\":\"p1\",\"field\":\"text\"}", "`from`: a page is named whole, without `field`, `start` and `end`"),
        ("^{\"key\":\"t1\",\"start\":1}", "`from`: `start` without `end`"),
        ("^{\"key\":\"t1\",\"end\":1}", "`from`: `end` without `start`"),
        ("{\"key\":\"t1\",\"start\":5,\"end\":^4}", "`from`: the end, 4, is before the start, 5"),
        ("^{\"key\":\"t1\",\"unit\":\"chars\"}", "`from`: `unit` needs `start` and `end`"),
        ("{\"key\":\"t1\",\"start\":^\"x\"}", "`from.start`: expected a whole number from 0, found the string `x`"),
    ] {
        assert_fault(&format!("{{\"recall\":{{\"from\":[{{\"key\":\"t0\"}},{pointer}]}}}}"), message, None);
    }
    assert_fault(
        "{\"claim\":{\"from\":[{\"key\":\"t1\",\"start\":1,\"end\":2,\"unit\":^\"char\"}]}}",
        "`from.unit`: expected one of bytes, chars, found `char`",
        Some("did you mean `chars`?"),
    );
    assert_fault("{\"link\":{\"to\":{^\"kee\":1}}}", "unknown member of `to`: `kee`", Some("did you mean `key`?"));
    assert_fault(
        "{\"link\":{\"to\":^3}}",
        "`link.to`: expected a key or a pointer such as {\"key\":\"t1\"}, found a number",
        None,
    );
}
