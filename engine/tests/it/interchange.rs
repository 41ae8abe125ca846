//! Import and export through the public face: what goes out comes in again the same, what is there already is known,
//! and what is wrong is told with its place.

use holotype::embed::HashingEmbedder;
use holotype::interchange::{
    ImportOptions, ImportReport, NpyReader, NpyWriter, Precision, export, export_history, import,
};
use holotype::time::FixedClock;
use holotype::{Durability, Encoding, Error, Holotype, NewRecall, Options, Space, Verdict};
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

/// An export without what tells transactions apart: their ends, and the keys that the engine gives.
fn timeless(lines: &str) -> String {
    let mut pieces = lines.split("\"~");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str("\"~");
        text.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    }
    text.replace("{\"commit\":{}}\n", "")
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
    // Folded or completed members: the marked status, hashes, spans.
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
        assert_eq!(timeless(&exported(&other)), timeless(&state), "cut after line {cut}");
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
            r#"{"trace":{"key":"t1","episode":"e","step":1,"fields":{"text":«"hello"}}}"#,
            "'t1' exists with another fields.text: stored héllo wörld, given hello",
        ),
        (
            r#"{"trace":{"key":"t1","episode":"e","step":1,"status":«"failed","fields":{"text":"héllo wörld"}}}"#,
            "'t1' exists with another status: stored unknown, given failed",
        ),
        (
            r#"{"trace":{"key":"t1","episode":"e","step":1,"fields":{"text":"héllo wörld"},"vector":«[1,0]}}"#,
            "'t1' exists with another vector: stored none, given another one",
        ),
        (
            r#"{"trace":{"key":"t9","episode":"e","step":«2,"fields":{"text":"x"}}}"#,
            "a trace with tool \"\", log \"e\" and step 2 exists; (tool, log_id, step) must be unique",
        ),
        (
            r#"{"trace":{"key":"t9","episode":"e","fields":{"text":"x"},"row":«0}}"#,
            "the line names a row of a .npy file, and none is given for this file",
        ),
        (
            r#"{"trace":{"key":"t9","episode":"e","vector":«[1,0,0]}}"#,
            "the vector has 3 numbers; the space unnamed has 2",
        ),
        (
            r#"{"recall":{"key":"r1","text":"greets","from":[«{"key":"t2"}]}}"#,
            "'r1' exists with another from.0: stored 1 other pointer, given one to 't2'",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1"},{"key":«"nobody"}]}}"#,
            "the pointer to 'nobody' does not resolve: the item does not exist",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1","start":«0,"end":99}]}}"#,
            "the pointer to 't1' does not resolve: field \"text\": bytes 0 to 99 are outside its 13 bytes",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1","start":«0,"end":99,"unit":"chars"}]}}"#,
            "the pointer to 't1' does not resolve: field \"text\": characters 0 to 99 are outside its 11 characters",
        ),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t1","field":«"url"}]}}"#,
            "the pointer to 't1' does not resolve: it has no field \"url\"; its fields are text",
        ),
        (r#"{"recall":{"key":"r9","text":"x","from":[{"key":"t2","hash":«"00000000000000000000000000000000"}]}}"#, ""),
        (
            r#"{"recall":{"key":"r9","text":"x","from":[{"page":«"p9"}]}}"#,
            "the pointer to page 'p9' does not resolve: the page does not exist",
        ),
        (
            r#"{"recall":«{"key":"r9","text":"x"}}"#,
            "a fact needs at least one pointer to its evidence; otherwise mark it ungrounded",
        ),
        (
            r#"{"theme":{"key":"th9","text":"x","children":["r1",«"t1"]}}"#,
            "'t1' is a turn: the children of a theme are recalls",
        ),
        (
            r#"{"theme":{"key":"th","text":"greetings","children":["r1",«"r9"]}}"#,
            "'th' exists with another children.1: stored no such child, given 'r9'",
        ),
        (r#"{"link":{"from":"r1","edge":«"mentions","to":"th"}}"#, "a fact cannot be linked by mentions to a theme"),
        (r#"{"link":{"from":"r1","edge":«"sibling","to":"r1"}}"#, "'r1' cannot be linked to itself"),
        (
            r#"{"link":{"from":"r1","edge":"sibling","to":«{"key":"t1","start":0,"end":1}}}"#,
            "a `sibling` edge goes to an item, named by its key alone; only `cites` goes to a part of 't1'",
        ),
        (r#"{"link":{"from":"t1","edge":"cites","to":«"t2"}}"#, ""),
        (r#"{"unlink":{"from":"r1","edge":"sibling","to":«"t1"}}"#, "no link 'r1' sibling 't1'"),
        (r#"{"mark":{"key":«"r9","status":"failed"}}"#, "no item 'r9'"),
        (r#"{"deactivate":{"key":"r1","by":«"r9"}}"#, "no item 'r9'"),
        (
            r#"{"claim":{"key":"r1","name":"n","value":"1","won":«"r1"}}"#,
            "the winner of a claim is found by the engine and not imported yet by this version",
        ),
        (
            r#"{"page":{"key":"p2","episode":"e","first":«"t1","last":"t2"}}"#,
            "'t1' to 't2' are page 'p1' already, not 'p2'",
        ),
        (
            r#"{"page":{"key":«"p1","episode":"e","first":"t1","last":"t1"}}"#,
            "page 'p1' of episode 'e' holds 't1' to 't2', not 't1' to 't1'",
        ),
        (
            r#"{"page":{"key":"p2","episode":"e","first":«"r1","last":"r1"}}"#,
            "'r1' is no trace of the open page of 'e'",
        ),
        (
            r#"{"page":{"key":"p1","episode":"e","first":"t1","last":"t2","hash":«"0123456789abcdef"}}"#,
            "hash mismatch of the page: given 0123456789abcdef, but its traces have ",
        ),
        (r#"{"page":{"episode":«"x","first":"t1","last":"t2"}}"#, "no episode 'x'"),
        (
            r#"{"setting":{"name":"profile","value":«"robot"}}"#,
            "setting profile cannot be \"robot\": expected default or helm or archive or agent",
        ),
        (
            r#"{"space":{"model":«"other","dim":2}}"#,
            "the space cannot change: the database has unnamed (2 x f32, cosine); given other (2 x f32, cosine)",
        ),
        (r#"{"redact":{"key":«"nobody"}}"#, "no item 'nobody'"),
        (
            r#"{"redact":{"key":"t1","field":«"other"}}"#,
            "only whole items are forgotten, and 't1' has a field \"text\" beside \"other\"",
        ),
        (r#"{"credit":«{"item":"r1"}}"#, "`credit` lines are understood but not imported yet by this version"),
        (r#"{"receipt":«{"statement":"show"}}"#, "`receipt` lines are understood but not imported yet by this version"),
        (r#"{"event":«{"op":"recall"}}"#, "`event` lines are understood but not imported yet by this version"),
        (r#"{"trace":«{"key":"t9"}}"#, "`trace` needs `episode`"),
        (r#"{"trace":{"key":"t9","episode":"e"«"#, "the file ends in the middle of this line"),
    ];
    let desk = Desk::new();
    let database = desk.database();
    import_text(&database, base);
    let head = database.head();
    for (marked, expected) in cases {
        let column = marked.chars().position(|c| c == '«').unwrap() + 1;
        let message = refusal(&database, &marked.replace('«', ""));
        let expected = format!("f.jsonl:1:{column}: {expected}");
        assert!(message.starts_with(&expected), "{marked}\n{message}\nexpected\n{expected}");
    }
    assert_eq!(database.head(), head);
    let Error::Line { code, hint, line, .. } =
        import_with(&database, &format!("\n\n{}", cases[0].0.replace('«', "")), None, &quick()).unwrap_err()
    else {
        panic!("a bad line")
    };
    assert_eq!((code, line), ("differs", 3));
    assert!(hint.unwrap().contains("known"));
}

#[test]
fn a_bad_line_stops_the_import_and_the_transactions_before_it_stand() {
    let lines = r#"{"trace":{"key":"t1","episode":"e","fields":{"text":"one"}}}
{"commit":{}}
{"trace":{"key":"t2","episode":"e","fields":{"text":"two"}}}
{"mark":{"key":"t1","status":"faild"}}
{"trace":{"key":"t3","episode":"e","fields":{"text":"three"}}}
"#;
    let desk = Desk::new();
    let database = desk.database();
    assert_eq!(
        refusal(&database, lines),
        "f.jsonl:4:30: `mark.status`: expected one of success, unknown, failed, found `faild`"
    );
    let snapshot = database.snapshot();
    assert!(snapshot.get("t1").unwrap().is_some());
    assert!(snapshot.get("t2").unwrap().is_none(), "its transaction ended with the bad line");
    let mended = import_text(&database, &lines.replace("faild", "failed"));
    assert_eq!((mended.known, mended.added, mended.transactions), (1, 3, 1));
}

#[test]
fn bad_lines_are_skipped_with_all_that_depends_on_them() {
    let lines = r#"{"trace":{"key":"t1","episode":"e","fields":{"text":"one"}}}
{"trace":{"key":"t2","episode":"e","stepp":1,"fields":{"text":"two"}}}
{"recall":{"key":"r1","text":"from one","from":[{"key":"t1"}]}}
{"recall":{"key":"r2","text":"from both","from":[{"key":"t1"},{"key":"t2"}]}}
{"theme":{"key":"th1","text":"of one","children":["r1"]}}
{"theme":{"key":"th2","text":"of both","children":["r1","r2"]}}
{"mark":{"key":"r2","status":"failed"}}
{"link":{"from":"r1","edge":"sibling","to":"r2"}}
{"trace":{"key":"t2","episode":"e","step":1,"fields":{"text":"two, mended"}}}
{"page":{"key":"p","episode":"e","first":"t1","last":"t2"}}
{"recall":{"key":"r3","text":"from two","from":[{"key":"t2"}]}}
"#;
    let desk = Desk::new();
    let database = desk.database();
    let options = ImportOptions { skip_bad: true, ..quick() };
    let report = import_with(&database, lines, None, &options).unwrap();
    let errors: Vec<String> = report.errors.iter().map(Error::to_string).collect();
    assert_eq!(
        errors,
        [
            "f.jsonl:2:36: unknown member of `trace`: `stepp`",
            "f.jsonl:4:63: 't2' depends on line 2, which was skipped",
            "f.jsonl:6:57: 'r2' depends on line 4, which was skipped",
            "f.jsonl:7:16: 'r2' depends on line 4, which was skipped",
            "f.jsonl:8:44: 'r2' depends on line 4, which was skipped",
        ]
    );
    assert_eq!((report.added, report.skipped), (6, 5));
    let snapshot = database.snapshot();
    let there: Vec<bool> =
        ["r1", "r2", "r3", "th1", "th2"].iter().map(|key| snapshot.get(key).unwrap().is_some()).collect();
    assert_eq!(there, [true, false, true, true, false]);
}

#[test]
fn transactions_end_where_the_file_says_or_every_thousand_lines() {
    let desk = Desk::new();
    let traces = |count: usize| -> String {
        (0..count).map(|n| format!("{{\"trace\":{{\"key\":\"t{n}\",\"episode\":\"e\",\"step\":{n}}}}}\n")).collect()
    };
    let transactions = |lines: &str| {
        let database = desk.database();
        let before = database.head().commit.0;
        let report = import_text(&database, lines);
        assert_eq!(database.head().commit.0 - before, report.transactions);
        report.transactions
    };
    assert_eq!(transactions(&traces(2500)), 3);
    assert_eq!(transactions(&format!("{{\"commit\":{{}}}}\n{}", traces(2500))), 1);
    assert_eq!(transactions(&format!("{{\"holotype\":{{\"interchange\":1}}}}\n{}", traces(2500))), 1);
    assert_eq!(transactions("{\"commit\":{}}\n\n{\"commit\":{}}\n"), 0, "an empty transaction is none");
    // Without a header, or when the first transaction of an export is too large, the report counts the parts.
    let split = |lines: &str| import_text(&desk.database(), lines).split;
    assert_eq!(split(&format!("{}{{\"commit\":{{}}}}\n", traces(2500))), 3);
    assert_eq!(split(&format!("{}{{\"commit\":{{}}}}\n", traces(900))), 0);
    let text = "x".repeat(1 << 20);
    let large =
        |n: usize| format!("{{\"trace\":{{\"key\":\"l{n}\",\"episode\":\"e\",\"fields\":{{\"text\":\"{text}\"}}}}}}\n");
    let export: String = (0..40).map(large).collect();
    assert_eq!(split(&format!("{{\"holotype\":{{\"interchange\":1}}}}\n{export}{{\"commit\":{{}}}}\n")), 2);
}

#[test]
fn vectors_keep_their_bits_and_define_the_space_when_nothing_else_does() {
    let desk = Desk::new();
    let tiny = half::f16::from_bits(0x0001).to_f32();
    let rows: [&[f32]; 3] = [&[1.0, 0.1, -0.0], &[tiny, 0.333, 65504.0], &[0.5, 0.25, 0.125]];
    let half = desk.vectors(Precision::F16, &rows);
    let lines = r#"{"trace":{"key":"a","episode":"e","row":1}}
{"trace":{"key":"b","episode":"e","row":0}}
"#;
    let database = desk.database();
    import_with(&database, lines, Some(&half), &quick()).unwrap();
    let space = database.snapshot().space().unwrap().unwrap();
    assert_eq!(space, Space::new("unnamed", 3).encoding(Encoding::F16));
    let out = desk.path("npy");
    let text = exported_with_rows(&database, &out);
    assert!(text.contains(r#""key":"a","episode":"e","step":0,"kind":"turn","row":0"#), "{text}");
    let written = NpyReader::open(&out).unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (row, origin) in [(0, 1), (1, 0)] {
        written.read_row_f16(row, &mut after).unwrap();
        half.read_row_f16(origin, &mut before).unwrap();
        assert_eq!(after, before);
    }
    // The same vectors within the lines.
    let other = desk.database();
    import_text(&other, &exported(&database));
    assert_eq!(exported(&other), exported(&database));

    let single = desk.vectors(Precision::F32, &rows);
    let database = desk.database();
    import_with(&database, lines, Some(&single), &quick()).unwrap();
    assert_eq!(database.snapshot().space().unwrap().unwrap().encoding, Encoding::F32);
    let a = database.snapshot().get("a").unwrap().unwrap().id;
    assert_eq!(database.snapshot().vector(a).unwrap().unwrap(), rows[1]);

    for (line, told) in [
        (r#"{"trace":{"key":"c","episode":"e","row":3}}"#, "no row 3: the file has 3 rows, counted from 0"),
        (r#"{"trace":{"key":"c","episode":"e","row":2,"vector":[1]}}"#, "`row` and `vector` exclude each other"),
    ] {
        let error = import_with(&database, line, Some(&single), &quick()).unwrap_err().to_string();
        assert!(error.starts_with("f.jsonl:1:") && error.contains(told), "{error}");
    }
    let bad = desk.vectors(Precision::F32, &[&[f32::NAN, 0.0, 0.0], &[0.0, 0.0, 0.0]]);
    for (row, told) in [(0, "row 0, number 0: NaN is not a finite number"), (1, "the vector has length 0")] {
        let line = format!(r#"{{"trace":{{"key":"c","episode":"e","row":{row}}}}}"#);
        let error = import_with(&database, &line, Some(&bad), &quick()).unwrap_err().to_string();
        assert!(error.starts_with("f.jsonl:1:41: ") && error.contains(told), "{error}");
    }
    let wide = desk.vectors(Precision::F32, &[&[1.0; 4]]);
    let error = import_with(&database, r#"{"trace":{"key":"c","episode":"e","row":0}}"#, Some(&wide), &quick());
    assert!(
        error.unwrap_err().to_string().contains("has rows of 4 numbers; the space unnamed (3 x f32, cosine) has 3")
    );
}

#[test]
fn an_embedder_gives_texts_their_vectors_in_its_own_space_only() {
    let desk = Desk::new();
    let options = ImportOptions { embedder: Some(Arc::new(HashingEmbedder::default())), ..quick() };
    let lines = r#"{"trace":{"key":"a","episode":"e","fields":{"text":"a night train"}}}
{"trace":{"key":"b","episode":"e","fields":{"text":"  "}}}
{"recall":{"key":"r","text":"a train","from":[{"key":"a"}]}}
"#;
    let database = desk.database();
    let report = import_with(&database, lines, None, &options).unwrap();
    assert_eq!((report.embedded, report.added), (2, 3));
    let snapshot = database.snapshot();
    let a = snapshot.get("a").unwrap().unwrap().id;
    assert_eq!(snapshot.space().unwrap().unwrap().model, "hashing-v1-256");
    assert_eq!(snapshot.vector(a).unwrap(), HashingEmbedder::default().embed("a night train"));
    for again in [&options, &quick()] {
        let again = import_with(&database, lines, None, again).unwrap();
        assert_eq!((again.known, again.embedded), (3, 0));
    }
    let database = desk.database();
    import_text(&database, r#"{"space":{"model":"other","dim":2}}"#);
    assert_eq!(import_with(&database, lines, None, &options).unwrap().embedded, 0);
}

#[test]
fn pages_close_as_their_lines_say_and_by_themselves_without() {
    let words = "one two three four five six seven eight nine ten";
    let traces = |from: usize, to: usize| -> String {
        (from..to)
            .map(|n| {
                format!("{{\"trace\":{{\"key\":\"t{n}\",\"episode\":\"e\",\"fields\":{{\"text\":\"{words}\"}}}}}}\n")
            })
            .collect()
    };
    let page = |key: &str, first: usize, last: usize| {
        format!("{{\"page\":{{\"key\":\"{key}\",\"episode\":\"e\",\"first\":\"t{first}\",\"last\":\"t{last}\"}}}}\n")
    };
    let limit = "{\"setting\":{\"name\":\"page.tokens\",\"value\":\"25\"}}\n";
    let pages = |lines: &str| -> Vec<String> {
        let desk = Desk::new();
        let database = desk.database();
        import_text(&database, lines);
        let state = exported(&database);
        let other = desk.database();
        import_text(&other, &state);
        assert_eq!(exported(&other), state);
        assert_eq!(import_text(&database, lines).added, 0);
        let pages = state.lines().filter(|line| line.contains("\"page\":"));
        pages.map(|line| line.split(",\"hash\"").next().unwrap().replace("\"episode\":\"e\",", "")).collect()
    };
    let by_itself = pages(&format!("{limit}{}", traces(0, 6)));
    assert_eq!(by_itself.len(), 2);
    assert!(by_itself[0].starts_with(r#"{"page":{"key":"e/p1","first":"t0","#), "{by_itself:?}");
    // The same cut under another name, a shorter one, and one that leaves a trace before it open.
    let last = by_itself[0].rsplit("\"t").next().unwrap().trim_end_matches('"').parse::<usize>().unwrap();
    let named = pages(&format!("{limit}{}{}{}", traces(0, last + 1), page("mine", 0, last), traces(last + 1, 6)));
    assert_eq!(named[0], format!(r#"{{"page":{{"key":"mine","first":"t0","last":"t{last}""#));
    let shorter = pages(&format!("{limit}{}{}{}", traces(0, 2), page("short", 0, 0), traces(2, 6)));
    assert_eq!(shorter[0], r#"{"page":{"key":"short","first":"t0","last":"t0""#);
    let later = pages(&format!("{}{}{}", traces(0, 4), page("late", 1, 2), page("rest", 0, 3)));
    assert_eq!(later.len(), 2);
    // A limit that changes says from where on.
    let changed = pages(&format!("{limit}{}{}{}", traces(0, 6), limit.replace("25", "1000"), traces(6, 20)));
    assert_eq!(changed, by_itself);
}

#[test]
fn a_page_that_is_given_no_key_gets_one_that_no_page_has() {
    let trace = |key: &str, episode: &str| {
        format!("{{\"trace\":{{\"key\":\"{key}\",\"episode\":\"{episode}\",\"fields\":{{\"text\":\"x\"}}}}}}\n")
    };
    let page = |key: Option<&str>, episode: &str, of: &str| {
        let key = key.map(|key| format!("\"key\":\"{key}\",")).unwrap_or_default();
        format!("{{\"page\":{{{key}\"episode\":\"{episode}\",\"first\":\"{of}\",\"last\":\"{of}\"}}}}\n")
    };
    let keys = |steps: &[(Option<&str>, &str)]| -> Vec<String> {
        let desk = Desk::new();
        let database = desk.database();
        let mut lines = String::new();
        for (n, (key, episode)) in steps.iter().enumerate() {
            let name = format!("t{n}");
            lines += &(trace(&name, episode) + &page(*key, episode, &name));
        }
        import_text(&database, &lines);
        let state = exported(&database);
        let keys = state.lines().filter_map(|line| line.strip_prefix("{\"page\":{\"key\":\"")?.split('"').next());
        keys.map(str::to_owned).collect()
    };
    let own = (None, "e");
    assert_eq!(keys(&[own, own, own]), ["e/p1", "e/p2", "e/p3"]);
    assert_eq!(keys(&[own, (Some("e/p3"), "e"), own, own]), ["e/p1", "e/p3", "e/p4", "e/p5"]);
    assert_eq!(keys(&[own, (Some("e/p3"), "f"), own, own]), ["e/p1", "e/p3", "e/p2", "e/p4"]);
    assert_eq!(keys(&[(Some("e/p1"), "f"), own, own]), ["e/p1", "e/p2", "e/p3"]);
    assert_eq!(keys(&[(Some("e/p4"), "e"), own, own, own]), ["e/p4", "e/p2", "e/p3", "e/p5"]);
}

#[test]
fn the_history_is_the_log_in_order_with_its_commits() {
    let desk = Desk::new();
    let database = desk.database();
    import_text(&database, STORY);
    let mut transaction = database.begin().unwrap();
    transaction.update("r1", NewRecall::fact("UA123 costs $450 without a bag")).unwrap();
    transaction.commit(Durability::None).unwrap();
    let mut out = Vec::new();
    let report = export_history(&database.snapshot(), &mut out, None).unwrap();
    let out = String::from_utf8(out).unwrap();
    let names: Vec<&str> = out.lines().map(|line| line.split('"').nth(1).unwrap()).collect();
    assert_eq!(report.lines, names.len() as u64);
    assert_eq!(
        names,
        [
            "holotype",
            "space",
            "setting",
            "episode",
            "trace",
            "trace",
            "page",
            "commit",
            "recall",
            "recall",
            "theme",
            "link",
            "link",
            "claim",
            "mark",
            "deactivate",
            "commit",
            "recall",
            "event",
            "event",
            "link",
            "deactivate",
            "commit"
        ]
    );
    assert!(out.contains(r#"{"commit":{"number":1,"time":"2026-01-05T10:00:00Z"}}"#), "{out}");
    assert!(out.contains(r#"{"link":{"from":"r1","edge":"parent","to":"th1"}}"#), "{out}");
    assert!(out.contains(r#"{"event":{"op":"rekey","items":["r1","~3."#), "{out}");
    assert!(out.contains(r#","status":"success","fields"#) && !out.contains(r#""source":"user","status":"failed""#));
}

#[test]
fn progress_says_how_much_was_read() {
    let desk = Desk::new();
    let database = desk.database();
    let mut told = Vec::new();
    import(&database, "f", STORY.as_bytes(), None, &quick(), &mut |bytes| told.push(bytes)).unwrap();
    assert_eq!(told.len(), STORY.lines().count());
    assert!(told.is_sorted());
    assert_eq!(told.last().copied(), Some(STORY.len() as u64));
}

#[test]
fn items_that_supersede_each_other_in_a_circle_do_not_hold_up_an_import() {
    let lines = r#"{"recall":{"key":"a","text":"one","ungrounded":true}}
{"recall":{"key":"b","text":"two","ungrounded":true}}
{"recall":{"key":"c","text":"three","ungrounded":true}}
{"link":{"from":"a","edge":"supersedes","to":"b"}}
{"link":{"from":"b","edge":"supersedes","to":"c"}}
{"link":{"from":"c","edge":"supersedes","to":"b"}}
{"link":{"from":"b","edge":"supersedes","to":"a"}}
"#;
    let desk = Desk::new();
    let database = desk.database();
    assert_eq!(import_text(&database, lines).added, 7);
    assert_eq!(import_text(&database, lines).known, 7);
}
