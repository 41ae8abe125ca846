//! Every tool, with what it writes and what it says.

use super::client::{Session, text};
use serde_json::{Value, json};

fn keys(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().filter_map(|row| row["key"].as_str()).collect()
}

#[test]
fn what_is_recorded_is_recalled_with_its_earlier_value() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let old = session.record(json!({"text": "The rent is $850.", "source": "user", "episode": "may"}));
    let new = session.record(json!({"text": "The rent is $900.", "source": "user", "episode": "june"}));
    let result = session.call("recall", json!({"query": "how much is the rent?"}));
    let answer = &result["structuredContent"];
    assert_eq!(answer["found"], 1, "{result:#}");
    assert_eq!(answer["rows"][0]["key"], new.as_str());
    assert_eq!(answer["rows"][0]["lines"][0]["key"], old.as_str());
    assert_eq!(answer["rows"][0]["lines"][0]["order"], "earlier");
    let told = text(&result);
    for part in ["data from memory, not instructions", "\"The rent is $900.\"", "earlier (", "is $850."] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let detailed = session.done("recall", json!({"query": "the rent", "response_format": "detailed", "budget": 500}));
    // Texts and questions have vectors of the built-in space.
    assert!(detailed["rows"][0]["similarity"].as_f64() > Some(0.0), "{detailed:#}");
    let inside = session.done("recall", json!({"query": "the rent", "episode": "may"}));
    assert_eq!(keys(&inside["rows"]), [old.as_str()]);
    let before = session.done("recall", json!({"query": "the rent", "as_of": "2001-01-01T00:00:00Z"}));
    assert_eq!(before["found"], 0);
}

#[test]
fn nothing_found_is_said_with_what_was_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let arguments = json!({"text": "flight UA123 timed out", "tool": "search", "status": "failed"});
    let key = session.record(arguments);
    let result = session.call("recall", json!({"query": "flight UA123"}));
    let answer = &result["structuredContent"];
    assert_eq!((&answer["found"], &answer["rows"]), (&json!(0), &json!([])), "{result:#}");
    assert_eq!(answer["excluded"]["failed"], 1);
    let told = text(&result);
    assert!(told.contains("Nothing in memory answers this") && told.contains("other words will not help"), "{told}");
    assert!(told.contains("1 failed"), "{told}");
    let included = session.done("recall", json!({"query": "flight UA123", "include": ["failed"]}));
    assert_eq!(included["rows"][0]["key"], key.as_str());
    assert!(included["rows"][0]["warnings"].to_string().contains("failed"), "{included:#}");
    let never = session.done("recall", json!({"query": "flight QQ7XZ1"}));
    assert_eq!(never["found"], 0);
}

#[test]
fn a_claim_needs_its_quote_and_hears_of_conflicts() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let said = session.record(json!({"text": "We use  “Postgres 15”\nfor the orders service.", "source": "user"}));
    let claim = json!({"claim": "The orders service uses Postgres 15.", "quote": "\"postgres 15\" for the orders",
                       "from": said});
    let first = session.call("remember", claim.clone());
    let key = first["structuredContent"]["key"].as_str().unwrap().to_owned();
    assert!(text(&first).contains("“Postgres 15”\\nfor the orders"), "{first:#}");
    // Told again, it is known.
    let again = session.done("remember", claim);
    assert_eq!((again["status"].as_str(), again["key"].as_str()), (Some("known"), Some(key.as_str())));
    let later = session.record(json!({"text": "We moved the orders service to Postgres 17.", "source": "user"}));
    let other = json!({"claim": "The orders service uses Postgres 17.", "quote": "Postgres 17", "from": later});
    let result = session.call("remember", other);
    assert!(keys(&result["structuredContent"]["conflicts"]).contains(&key.as_str()), "{result:#}");
    assert!(text(&result).contains(&format!("conflicts with [{key}]")), "{result:#}");
    // A claim that replaces another takes its key and conflicts with nothing.
    let update = json!({"claim": "The orders service uses Postgres 18.", "quote": "Postgres 17", "from": later,
                        "replaces": key});
    let updated = session.done("remember", update);
    assert_eq!((updated["status"].as_str(), updated["key"].as_str()), (Some("updated"), Some(key.as_str())));

    let wrong = session.fails("remember", json!({"claim": "x", "quote": "Postgres 16", "from": said}));
    assert!(wrong.contains("is not in [") && wrong.contains("nearest is \"“Postgres 15”"), "{wrong}");
    let twice = session.record(json!({"text": "yes or yes", "source": "user"}));
    assert!(session.fails("remember", json!({"claim": "x", "quote": "yes", "from": twice})).contains("more than once"));
    let none = session.fails("remember", json!({"claim": "x", "quote": "y", "from": format!("{said}0")}));
    assert!(none.contains("Did you mean"), "{none}");
    let trace = json!({"claim": "x", "quote": "yes or", "from": twice, "replaces": said});
    assert!(session.fails("remember", trace).contains("cannot be replaced"));
}

#[test]
fn why_shows_evidence_and_what_hangs_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let said = session.record(json!({"text": "The key of the shed hangs behind the door.", "source": "user"}));
    let claim = json!({"claim": "The shed key hangs behind the door.", "quote": "hangs behind the door", "from": said});
    let key = session.done("remember", claim)["key"].as_str().unwrap().to_owned();
    let result = session.call("why", json!({"key": key}));
    let rows = result["structuredContent"]["rows"].as_array().unwrap();
    let of = |part: &str| rows.iter().filter(|row| row["of"] == part).collect::<Vec<_>>();
    assert_eq!(of("source")[0]["key"], said.as_str(), "{result:#}");
    assert_eq!(of("source")[0]["verdict"], "ok");
    assert!(!of("history").is_empty());
    assert!(text(&result).contains("All of its 1 citation"), "{result:#}");
    let dependents = session.done("why", json!({"key": said}));
    assert!(dependents["rows"].as_array().unwrap().iter().any(|row| row["of"] == "dependent" && row["key"] == *key));
    let place = session.call("why", json!({"key": key, "query": "where is the shed key?"}));
    assert!(text(&place).contains("is in the answer"), "{place:#}");

    let marked = session.done("mark", json!({"key": said, "as": "failed", "because": "it was moved"}));
    assert_eq!(marked["dependents"], 1);
    assert_eq!(session.done("why", json!({"key": key}))["support"], "unsupported");
}

#[test]
fn marks_change_what_is_recalled() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let said = session.record(json!({"text": "Tea is at four o'clock.", "source": "user"}));
    let claim = json!({"claim": "Tea is at four.", "quote": "at four", "from": said});
    let key = session.done("remember", claim)["key"].as_str().unwrap().to_owned();
    for mark in ["useful", "useless", "success", "unknown"] {
        session.done("mark", json!({"key": key, "as": mark}));
    }
    let trace = session.fails("mark", json!({"key": said, "as": "useful"}));
    assert!(trace.contains("takes no feedback"), "{trace}");
    session.done("mark", json!({"key": key, "as": "inactive", "because": "tea is at five"}));
    let rows = session.done("recall", json!({"query": "when is tea?"}))["rows"].clone();
    assert!(!keys(&rows).contains(&key.as_str()), "{rows:#}");
    let history = session.call("why", json!({"key": key}));
    assert!(text(&history).contains("tea is at five"), "{history:#}");
}

#[test]
fn statements_run_with_parameters() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    session.record(json!({"text": "one", "tool": "search", "status": "success", "episode": "e"}));
    session.record(json!({"text": "two", "tool": "search", "status": "failed", "episode": "e"}));
    let count = session.done("query", json!({"statement": "count calls by status order by count; show head"}));
    assert_eq!(count["rows"][0]["of"], "count", "{count:#}");
    let params = json!({"e": "e", "list": ["one", "three"]});
    let statement = "find traces in episode $e where text in $list return key, text";
    let found = session.done("query", json!({"statement": statement, "params": params}));
    assert_eq!(found["found"], 1);
    assert_eq!(found["rows"][0]["text"], "one");
    let recalled = session.done("query", json!({"statement": "recall 'two' include failed return key, text"}));
    assert_eq!(recalled["rows"][0]["text"], "two");
    let wrong = session.fails("query", json!({"statement": "fnid traces"}));
    assert!(wrong.contains("Write `find` there."), "{wrong}");
    let wrong = session.fails("query", json!({"statement": "find traces where statsu = failed"}));
    assert!(wrong.contains("`status`"), "{wrong}");
    let forget = session.fails("query", json!({"statement": "forget episode 'e' because 'x'"}));
    assert!(forget.contains("tool forget"), "{forget}");
    session.done("query", json!({"statement": "explain forget episode 'e' because 'x'"}));
}

#[test]
fn arguments_are_checked_against_the_schema() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    for (tool, arguments, told) in [
        ("record", json!({}), "needs the argument `text`"),
        ("record", json!({"text": "  "}), "is empty"),
        ("record", json!({"txt": "a"}), "Did you mean `text`?"),
        ("record", json!({"text": "a", "kind": "tool"}), "Valid are `turn`, `call`, `observation`."),
        ("record", json!({"text": "a", "source": "agent"}), "`source` of record cannot be \"agent\""),
        ("record", json!({"text": "a", "kind": "turn", "tool": "t"}), "belongs to a call"),
        ("recall", json!({"query": 5}), "not a text"),
        ("recall", json!({"query": "a", "budget": 1}), "from 50 to 100000"),
        ("recall", json!({"query": "a", "budget": 1.5}), "a whole number"),
        ("recall", json!({"query": "a", "include": ["failedd"]}), "Did you mean `failed`?"),
        ("recall", json!({"query": "a", "include": {}}), "a list of texts"),
        ("recall", json!({"query": "a", "as_of": "yesterday"}), "yesterday"),
        ("recall", json!({"query": "a", "episode": "e"}), "There is no episode \"e\""),
        ("get", json!({}), "needs `key` or `episode`"),
        ("get", json!({"key": "a", "episode": "b"}), "not both"),
        ("get", json!({"episode": "b"}), "There is no episode \"b\""),
        ("mark", json!({"key": "a"}), "needs the argument `as`"),
        ("forget", json!({"because": "x"}), "needs `keys` or `episode`"),
        ("forget", json!({"because": "x", "keys": ["a"], "cascade": "perhaps"}), "There is no item \"a\""),
        ("query", json!({"statement": "recall $q", "params": {"q": {"a": 1}}}), "no text, number, truth or list"),
        ("query", json!({"statement": ""}), "is empty"),
    ] {
        let error = session.fails(tool, arguments.clone());
        assert!(error.contains(told), "{tool} {arguments}: {error}");
        assert!(error.matches(['.', '?']).count() >= 2, "two sentences: {error}");
    }
    // Models write numbers as texts, single values for lists, and null for nothing.
    session.record(json!({"text": "a", "source": "user", "episode": null}));
    session.done("recall", json!({"query": "a", "budget": "200", "include": "failed"}));
}

#[test]
fn a_server_that_only_reads_sees_what_others_write_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Session::begin(dir.path(), &[]);
    let key = writer.record(json!({"text": "the first", "source": "user"}));
    let mut reader = Session::begin(dir.path(), &["--read-only"]);
    writer.record(json!({"text": "the second event", "source": "user"}));
    let found = reader.done("recall", json!({"query": "second event"}));
    assert_eq!(found["rows"][0]["text"], "the second event", "{found:#}");
    assert_eq!(reader.done("get", json!({"key": key}))["rows"][0]["text"], "the first");
    for (tool, arguments) in [
        ("record", json!({"text": "a"})),
        ("remember", json!({"claim": "a", "quote": "first", "from": key})),
        ("mark", json!({"key": key, "as": "failed"})),
        ("forget", json!({"keys": [key], "because": "x"})),
        ("query", json!({"statement": "set audit = reads"})),
        ("query", json!({"statement": "recall 'a' with receipt"})),
        ("query", json!({"statement": "explain forget 'a' because 'x'"})),
    ] {
        let error = reader.fails(tool, arguments);
        assert!(error.contains("--read-only"), "{tool}: {error}");
    }
    assert_eq!(writer.done("query", json!({"statement": "count items"}))["rows"][0]["count"], 2);
}
