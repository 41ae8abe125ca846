//! Import and export through the public face: what goes out comes in again the same, what is there already is known, and
//! what is wrong is told with its place.

use holotype::embed::HashingEmbedder;
use holotype::interchange::{
    ImportOptions, ImportReport, NpyReader, NpyWriter, Precision, export, export_history, import,
};
use holotype::time::FixedClock;
use holotype::{
    Durability, Edge, Encoding, EpisodeChange, Error, Holotype, ItemId, Kind, Mark, NewRecall, NewTrace, Options,
    Origin, Pointer, Source, Space, Status, Transaction, Verdict,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Databases and files of one test.
struct Desk {
    dir: TempDir,
    next: std::cell::Cell<u32>,
}

impl Desk {
    fn new() -> Desk {
        Desk { dir: tempfile::tempdir().unwrap(), next: std::cell::Cell::new(0) }
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.next.set(self.next.get() + 1);
        self.dir.path().join(format!("{}.{kind}", self.next.get()))
    }

    fn database(&self) -> Holotype {
        let clock = Arc::new(FixedClock(1_767_607_200_000_000));
        Holotype::create(self.path("holo"), Options { clock, ..Options::default() }).unwrap()
    }

    fn vectors(&self, precision: Precision, rows: &[&[f32]]) -> NpyReader {
        let path = self.path("npy");
        let mut writer = NpyWriter::create(&path, rows[0].len(), precision).unwrap();
        for row in rows {
            writer.push(row).unwrap();
        }
        writer.finish().unwrap();
        NpyReader::open(path).unwrap()
    }
}

fn quick() -> ImportOptions {
    ImportOptions { durability: Durability::None, ..ImportOptions::default() }
}

fn import_with(
    database: &Holotype,
    lines: &str,
    vectors: Option<&NpyReader>,
    options: &ImportOptions,
) -> Result<ImportReport, Error> {
    import(database, "f.jsonl", lines.as_bytes(), vectors, options, &mut |_| {})
}

fn import_text(database: &Holotype, lines: &str) -> ImportReport {
    import_with(database, lines, None, &quick()).unwrap_or_else(|error| panic!("{error}"))
}

fn exported(database: &Holotype) -> String {
    let mut out = Vec::new();
    export(&database.snapshot(), &mut out, None).unwrap();
    String::from_utf8(out).unwrap()
}

fn exported_with_rows(database: &Holotype, vectors: &Path) -> String {
    let mut out = Vec::new();
    export(&database.snapshot(), &mut out, Some(vectors)).unwrap();
    String::from_utf8(out).unwrap()
}

/// The message of the error that an import into the database ends with.
fn refusal(database: &Holotype, lines: &str) -> String {
    import_with(database, lines, None, &quick()).expect_err(lines).to_string()
}

const STORY: &str = r#"{"holotype":{"interchange":1}}
{"space":{"model":"test","dim":2,"metric":"cosine","encoding":"f32"}}
{"setting":{"name":"recency.half-life","value":"2d"}}
{"episode":{"id":"trip-42","task":"book a flight","version":"v3"}}
{"trace":{"key":"t1","episode":"trip-42","step":12,"time":"2026-01-05T10:00:00Z","kind":"call","source":"tool","tool":"search_flights","log_id":"log-9","status":"success","fields":{"text":"UA123 price=$450","price":450.50,"legs":[ "SFO", "LIS" ],"raw":{"base64":"/wA="}},"vector":[1,0.5]}}
{"trace":{"key":"t2","episode":"trip-42","step":13,"kind":"turn","source":"user","speaker":"Ada","fields":{"text":"Is that with a bag? €"}}}
{"page":{"key":"p7","episode":"trip-42","first":"t1","last":"t2"}}
{"commit":{}}
{"recall":{"key":"r1","kind":"fact","text":"UA123 costs $450","from":[{"key":"t1","start":6,"end":16},{"page":"p7"}],"vector":[0.25,1]}}
{"recall":{"key":"r2","kind":"procedure","text":"Ask about the bag","return_score":7,"ungrounded":true,"origin":"refined"}}
{"theme":{"key":"th1","kind":"intent","text":"flight prices","children":["r1"]}}
{"link":{"from":"r2","edge":"solves","to":"th1"}}
{"claim":{"key":"r1","name":"UA123.price","value":"450","scope":"global","from":[{"key":"t1","field":"price","start":0,"end":6}]}}
{"mark":{"key":"t2","status":"failed","because":"timeout"}}
{"deactivate":{"key":"r2","by":"r1","because":"merged"}}
{"commit":{}}
"#;

#[test]
fn a_story_comes_in_and_goes_out_in_its_canonical_form() {
    let desk = Desk::new();
    let database = desk.database();
    let report = import_text(&database, STORY);
    assert_eq!((report.transactions, report.added, report.known, report.skipped), (2, 13, 0, 0));
    let snapshot = database.snapshot();
    let fact = snapshot.get("r1").unwrap().unwrap();
    let citations = snapshot.citations(fact.id).unwrap();
    assert_eq!(citations[0].text.as_deref(), Some("price=$450"));
    assert!(citations.iter().all(|citation| citation.verdict == Verdict::Ok));
    let trace = snapshot.get("t1").unwrap().unwrap();
    assert_eq!(trace.content.field_text("price"), Some("450.50"), "the number's own text");
    assert_eq!(snapshot.get("t2").unwrap().unwrap().attributes.time, None, "an import states times, or there are none");
    // What is folded or completed: the status that was marked, hashes, spans.
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let page = hash("[2026-01-05T10:00:00Z] search_flights: UA123 price=$450\nAda: Is that with a bag? €\n");
    let expected = STORY
        .replace(
            r#""kind":"turn","source":"user","speaker""#,
            r#""kind":"turn","source":"user","status":"failed","speaker""#,
        )
        .replace(r#""last":"t2"}"#, &format!(r#""last":"t2","hash":"{page}"}}"#))
        .replace(r#"{"page":"p7"}]"#, &format!(r#"{{"page":"p7","hash":"{page}"}}]"#))
        .replace(r#""end":16}"#, &format!(r#""end":16,"hash":"{}"}}"#, hash("price=$450")))
        .replace(r#""end":6}"#, &format!(r#""end":6,"hash":"{}"}}"#, hash("450.50")));
    assert_eq!(exported(&database), expected);
}

#[test]
fn importing_again_adds_nothing_even_what_later_lines_changed() {
    let changing = r#"{"episode":{"id":"e","version":"v1"}}
{"setting":{"name":"stale.steps","value":"10"}}
{"trace":{"key":"t1","episode":"e","fields":{"text":"one"}}}
{"mark":{"key":"t1","status":"failed"}}
{"mark":{"key":"t1","status":"success","because":"looked again"}}
{"mark":{"key":"t1","status":"failed"}}
{"recall":{"key":"r1","text":"a","from":[{"key":"t1"}],"utility":0.5}}
{"recall":{"key":"r2","text":"b","from":[{"key":"t1"}],"active":false}}
{"mark":{"key":"r1","utility":0.75}}
{"theme":{"key":"th","text":"c","children":["r1","r2"]}}
{"link":{"from":"r1","edge":"sibling","to":"r2"}}
{"unlink":{"from":"r1","edge":"sibling","to":"r2"}}
{"link":{"from":"r1","edge":"sibling","to":"r2"}}
{"unlink":{"from":"r1","edge":"parent","to":"th"}}
{"link":{"from":"r2","edge":"supersedes","to":"r1"}}
{"link":{"from":"r2","edge":"cites","to":{"key":"r1","start":0,"end":1}}}
{"claim":{"key":"r1","name":"n","value":7}}
{"page":{"key":"p","episode":"e","first":"t1","last":"t1"}}
{"page":{"key":"p","episode":"e","first":"t1","last":"t1","state":"summarised"}}
{"episode":{"id":"e","version":"v2"}}
{"setting":{"name":"stale.steps","value":"20"}}
{"setting":{"name":"stale.steps","value":"10"}}
{"trace":{"episode":"e","fields":{"text":"no key, no step"}}}
{"trace":{"episode":"e","fields":{"text":"no key, no step"}}}
{"trace":{"episode":"e","step":90,"fields":{"text":"no key"}}}
{"recall":{"text":"no key either","ungrounded":true}}
{"episode":{"id":"e","open":false}}
"#;
    let desk = Desk::new();
    let database = desk.database();
    let count = changing.lines().count() as u64;
    assert_eq!(import_text(&database, changing).added, count);
    let (head, state) = (database.head(), exported(&database));
    for _ in 0..2 {
        let again = import_text(&database, changing);
        assert_eq!((again.added, again.known, again.transactions), (0, count, 0));
    }
    assert_eq!(database.head(), head, "nothing was appended");

    // An import that was cut short goes on where it stopped, wherever that was.
    for cut in 1..changing.lines().count() {
        let other = desk.database();
        let first: String = changing.lines().take(cut).map(|line| format!("{line}\n")).collect();
        import_text(&other, &first);
        let rest = import_text(&other, changing);
        assert!(rest.known >= cut as u64 - 1, "cut after line {cut}: {rest:?}");
        let whole = exported(&other).replace("{\"commit\":{}}\n", "");
        assert_eq!(whole, state.replace("{\"commit\":{}}\n", ""), "cut after line {cut}");
    }
}

#[test]
fn a_key_that_moved_on_is_still_known_by_what_it_named() {
    let lines = r#"{"trace":{"key":"t","episode":"e","fields":{"text":"450 with a bag"}}}
{"recall":{"key":"r","text":"450","from":[{"key":"t"}]}}
{"recall":{"key":"s","text":"about 450","from":[{"key":"r"}]}}
{"mark":{"key":"r","status":"failed","because":"hearsay"}}
{"theme":{"key":"th","kind":"concept","text":"price","children":["r"]}}
{"link":{"from":"r","edge":"mentions","to":"th"}}
"#;
    let desk = Desk::new();
    let database = desk.database();
    import_text(&database, lines);
    let mut transaction = database.begin().unwrap();
    transaction.update("r", NewRecall::fact("450 with a bag")).unwrap();
    transaction.commit(Durability::None).unwrap();
    assert_eq!(import_text(&database, lines).known, 6);
    let other = desk.database();
    import_text(&other, &exported(&database));
    assert_eq!(exported(&other), exported(&database));
    assert_eq!(other.snapshot().get("r").unwrap().unwrap().content.text(), "450 with a bag");
}

#[test]
fn bad_lines_are_refused_with_their_place() {
    let base = r#"{"episode":{"id":"e","task":"x"}}
{"trace":{"key":"t1","episode":"e","step":1,"fields":{"text":"héllo wörld"}}}
{"trace":{"key":"t2","episode":"e","step":2,"fields":{"text":"two"},"vector":[1,0]}}
{"recall":{"key":"r1","text":"greets","from":[{"key":"t1"}]}}
{"theme":{"key":"th","text":"greetings","children":["r1"]}}
{"page":{"key":"p1","episode":"e","first":"t1","last":"t2"}}
"#;
    let cases = [
        (
            r#"{"trace":{"key":"t1","episode":"e","step":1,"fields":{"text":"hello"}}}"#,
            "1:62: 't1' is there already with another fields.text: stored héllo wörld, given hello",
        ),
        (
            r#"{"trace":{"key":"t1","episode":"e","step":1,"status":"failed","fields":{"text":"héllo wörld"}}}"#,
            "1:54: 't1' is there already with another status: stored unknown, given failed",
        ),
        (
            r#"{"trace":{"key":"t1","episode":"e","step":1,"fields":{"text":"héllo wörld"},"vector":[1,0]}}"#,
            "1:87: 't1' is there already with another vector: stored none, given another one",
        ),
        (
            r#"{"trace":{"key":"t9","episode":"e","step":2,"fields":{"text":"x"}}}"#,
            "1:43: a trace with tool \"\", log \"e\" and step 2 is there already; (tool, log_id, step) is unique",
        ),
        (
            r#"{"trace":{"key":"t9","episode":"e","fields":{"text":"x"},"row":0}}"#,
            "1:65: the line names a row of a .npy file, and none is given for this file",
        ),
        (
            r#"{"trace":{"key":"t9","episode":"e","vector":[1,0,0]}}"#,
            "1:45: the vector has 3 numbers; the space unnamed has 2",
        ),
        (
            r#"{"recall":{"key":"r1","text":"greets","from":[{"key":"t2"}]}}"#,
            "1:47: 'r1' is there already with another from.0: stored 1 other pointers, given one to 't2'",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1"},{"key":"nobody"}]}}"#,
            "1:62: the pointer to 'nobody' does not resolve: there is no such item",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1","start":0,"end":99}]}}"#,
            "1:62: the pointer to 't1' does not resolve: field \"text\": bytes 0 to 99 lie outside its 13 bytes",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1","start":0,"end":99,"unit":"chars"}]}}"#,
            "1:62: the pointer to 't1' does not resolve: field \"text\": characters 0 to 99 lie outside its 11 characters",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1","field":"url"}]}}"#,
            "1:62: the pointer to 't1' does not resolve: it has no field \"url\"; its fields are text",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t2","hash":"00000000000000000000000000000000"}]}}"#,
            "1:61: ",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"page":"p9"}]}}"#,
            "1:50: the pointer to page 'p9' does not resolve: there is no such page",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x"}}"#,
            "1:11: a fact needs a pointer to what it rests on, or must be marked ungrounded",
        ),
        (
            r#"{"recall":{"key":"r9","from":[{"key":"t1"}]}}"#,
            "1:11: a recall needs a text: a redacted one is not imported yet by this version",
        ),
        (
            r#"{"theme":{"key":"th9","text":"x","children":["r1","t1"]}}"#,
            "1:51: 't1' is a turn: the children of a theme are recalls",
        ),
        (
            r#"{"theme":{"key":"th","text":"greetings","children":["r1","r9"]}}"#,
            "1:58: 'th' is there already with another children.1: stored no such child, given 'r9'",
        ),
        (
            r#"{"link":{"from":"r1","edge":"mentions","to":"th"}}"#,
            "1:29: a fact cannot be linked by mentions to a theme",
        ),
        (
            r#"{"link":{"from":"r1","edge":"sibling","to":{"key":"t1","start":0,"end":1}}}"#,
            "1:44: a `sibling` edge goes to an item, named by its key alone; only `cites` goes to a part of 't1'",
        ),
        (r#"{"link":{"from":"t1","edge":"cites","to":"t2"}}"#, "1:42: "),
        (r#"{"unlink":{"from":"r1","edge":"sibling","to":"t1"}}"#, "1:46: there is no link #2 sibling #0"),
        (r#"{"mark":{"key":"r9","status":"failed"}}"#, "1:16: there is no item 'r9'"),
        (r#"{"deactivate":{"key":"r1","by":"r9"}}"#, "1:32: there is no item 'r9'"),
        (
            r#"{"claim":{"key":"r1","name":"n","value":"1","won":"r1"}}"#,
            "1:51: the winner of a claim is found by the engine and not imported yet by this version",
        ),
        (
            r#"{"page":{"key":"p2","episode":"e","first":"t1","last":"t2"}}"#,
            "1:43: 't1' to 't2' are page 'p1' already, not 'p2'",
        ),
        (
            r#"{"page":{"key":"p1","episode":"e","first":"t1","last":"t1"}}"#,
            "1:16: page 'p1' of episode 'e' holds 't1' to 't2', not 't1' to 't1'",
        ),
        (
            r#"{"page":{"key":"p2","episode":"e","first":"r1","last":"r1"}}"#,
            "1:43: 'r1' is no trace of the open page of 'e'",
        ),
        (
            r#"{"page":{"key":"p1","episode":"e","first":"t1","last":"t2","hash":"0123456789abcdef"}}"#,
            "1:67: the hash of the page disagrees with its traces: given 0123456789abcdef, found ",
        ),
        (r#"{"page":{"episode":"x","first":"t1","last":"t2"}}"#, "1:20: there is no episode 'x'"),
        (
            r#"{"setting":{"name":"profile","value":"robot"}}"#,
            "1:38: setting profile cannot be \"robot\": agent or archive is expected",
        ),
        (
            r#"{"space":{"model":"other","dim":2}}"#,
            "1:19: the database holds vectors of unnamed (2 x f32, cosine); other (2 x f32, cosine) is another space",
        ),
        (r#"{"redact":{"key":"t1"}}"#, "1:11: a `redact` line is understood but not imported yet by this version"),
        (r#"{"credit":{"item":"r1"}}"#, "1:11: a `credit` line is understood but not imported yet by this version"),
        (
            r#"{"receipt":{"statement":"show"}}"#,
            "1:12: a `receipt` line is understood but not imported yet by this version",
        ),
        (r#"{"event":{"op":"recall"}}"#, "1:10: a `event` line is understood but not imported yet by this version"),
        (r#"{"trace":{"key":"t9"}}"#, "1:10: `trace` needs `episode`"),
        (r#"{"trace":{"key":"t9","episode":"e""#, "1:35: the file ends in the middle of this line"),
    ];
    let desk = Desk::new();
    let database = desk.database();
    import_text(&database, base);
    let head = database.head();
    for (line, expected) in cases {
        let message = refusal(&database, line);
        assert!(message.starts_with(&format!("f.jsonl:{expected}")), "{line}\n{message}\nexpected {expected}");
    }
    assert_eq!(database.head(), head);
    let Error::Line { code, hint, line, .. } =
        import_with(&database, &format!("\n\n{}", cases[0].0), None, &quick()).unwrap_err()
    else {
        panic!("a bad line")
    };
    assert_eq!((code, line), ("differs", 3));
    assert!(hint.unwrap().contains("known"));
}
