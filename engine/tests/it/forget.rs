//! No file contains forgotten content; everything else is unchanged, verifies, and can be rebuilt.

use crate::observed;
use holotype::query::Params;
use holotype::{Cancel, Durability, Holotype, Limits, NewRecall, NewTrace, Options, Pointer, Space, Verdict};
use holotype_storage::vfs::{Failure, SimVfs, Vfs};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const SECRET: &str = "the passport number of Joanna Quimby is XK-4471-99203, issued in Ouagadougou";
const VECTOR: [f32; 8] = [0.125, -0.75, 0.3125, 0.9, -0.1, 0.62, 0.41, -0.33];

fn options() -> Options {
    let space =
        Space { model: "test".into(), dim: 8, metric: holotype::Metric::Cosine, encoding: holotype::Encoding::F32 };
    Options { space: Some(space), page_size: 4096, ..Options::default() }
}

/// Traces, a page, recalls over them, a theme; the secret stands in `t3`.
fn fill(database: &Holotype) {
    let mut transaction = database.begin().unwrap();
    for number in 0..6 {
        let text = if number == 3 { SECRET.to_owned() } else { format!("turn {number} about the weather of the week") };
        let mut trace = NewTrace::turn("trip", text).key(format!("t{number}")).speaker("assistant");
        if number == 3 {
            trace = trace
                .speaker("Bartholomew Fitzgerald")
                .field("note", "a second secret field of this trace")
                .vector(VECTOR.to_vec());
        } else {
            trace = trace.vector(vec![number as f32 + 1.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0]);
        }
        transaction.record(trace).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database.checkpoint().unwrap();
    let mut transaction = database.begin().unwrap();
    let fact = NewRecall::fact("she holds a passport").key("r1").from(Pointer::to_key("t3").bytes(4, 19));
    transaction.remember(fact).unwrap();
    let fact =
        NewRecall::fact("it rained").key("r2").from(Pointer::to_key("t1")).from(Pointer::to_key("t3").field("note"));
    transaction.remember(fact).unwrap();
    let t3 = transaction.find(&holotype::Target::Key("t3".into())).unwrap();
    transaction.claim(t3, "passport.number", "XK-4471-99203", false, &[]).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    run(database, "close episode 'trip'; mark 't3' failed because 'the passport number of Joanna Quimby was wrong'");
}

fn run(database: &Holotype, script: &str) -> Vec<holotype::answer::Output> {
    database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn rows(database: &Holotype, script: &str) -> Vec<String> {
    let outputs = run(database, script);
    let Some(holotype::answer::Output::Table(table)) = outputs.last() else { panic!("no table") };
    let cell = |cell: &Option<holotype::cell::Cell>| cell.as_ref().map_or("-".to_owned(), |cell| cell.to_string());
    table.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect()
}

/// Every file under a directory.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

/// The places of any 8 bytes of `text`, except those in `known`.
fn shingles(dir: &Path, text: &[u8], known: &[u8]) -> Vec<String> {
    let wanted: std::collections::HashSet<&[u8]> =
        text.windows(8).filter(|shingle| !known.windows(8).any(|other| other == *shingle)).collect();
    let mut found = Vec::new();
    for (name, bytes) in files(dir) {
        if let Some(hit) = bytes.windows(8).find(|window| wanted.contains(window)) {
            found.push(format!("{name}: {:?}", String::from_utf8_lossy(hit)));
        }
    }
    found
}

fn vector_bytes() -> Vec<u8> {
    VECTOR.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn verified(database: &Holotype) {
    let report = database.verify(&mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn nothing_forgotten_stands_in_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, options()).unwrap();
    fill(&database);
    database.checkpoint().unwrap();
    let speaker = b"Bartholomew Fitzgerald".as_slice();
    assert!(!shingles(&path, SECRET.as_bytes(), b"").is_empty() && !shingles(&path, speaker, b"").is_empty());
    assert!(!shingles(&path, &vector_bytes(), b"").is_empty());
    let hash = *blake3::hash(&SECRET.as_bytes()[4..19]).as_bytes();
    assert!(!shingles(&path, &hash, b"").is_empty(), "the hash of the cited span");

    let old = database.snapshot();
    let planned = rows(&database, "explain forget 't3' because 'request 88'");
    let done = rows(&database, "forget 't3' because 'request 88'");
    assert_eq!(planned, done);
    assert_eq!(done, ["forgotten t3", "rests on it r1", "rests on it r2", "page trip/p1"]);
    let reason = b"the passport number of Joanna Quimby was wrong";
    let check = |known: &[u8]| {
        for text in [SECRET.as_bytes(), b"a second secret field of this trace", speaker, &vector_bytes(), &hash] {
            let found = shingles(&path, text, known);
            assert!(found.is_empty(), "{found:?}");
        }
    };
    check(reason);
    let item = old.get("t3").unwrap().unwrap();
    assert!(item.attributes.redacted && item.content.text().is_empty(), "a snapshot from before goes on without it");
    assert_eq!(old.query("find turns", &Params::new()).unwrap().len(), 1);

    let holds = |database: &Holotype| {
        verified(database);
        let snapshot = database.snapshot();
        let item = snapshot.get("t3").unwrap().unwrap();
        assert!(item.attributes.redacted && item.content.text().is_empty() && item.content.speaker().is_none());
        assert_eq!(snapshot.vector(item.id).unwrap(), None);
        let verdicts = |key: &str| -> Vec<Verdict> {
            let id = snapshot.get(key).unwrap().unwrap().id;
            snapshot.citations(id).unwrap().iter().map(|citation| citation.verdict).collect()
        };
        assert_eq!(verdicts("r1"), [Verdict::Redacted]);
        assert_eq!(verdicts("r2"), [Verdict::Ok, Verdict::Redacted]);
        assert_eq!(rows(database, "find turns where redacted return key"), ["t3"]);
        assert_eq!(rows(database, "find facts where support = unsupported return key"), ["r1"]);
        assert_eq!(rows(database, "find claims"), Vec::<String>::new());
        assert_eq!(rows(database, "count turns"), ["6"]);
        assert_eq!(rows(database, "find turns where text contains 'passport' return key"), Vec::<String>::new());
        assert_eq!(rows(database, "find turns where speaker = 'assistant' return key").len(), 5);
        assert_eq!(rows(database, "find turns as of commit 3 where redacted return key"), ["t3"]);
        let outputs = run(database, "recall 'passport number of Joanna' in all include failed");
        let Some(holotype::answer::Output::Answer(answer)) = outputs.last() else { panic!("an answer") };
        assert!(answer.rows.iter().all(|row| row.key != "t3"), "{answer:?}");
    };
    drop(old);
    holds(&database);
    let head = database.head();
    database.close().unwrap();
    check(reason);
    let database = Holotype::open(&path, options()).unwrap();
    assert_eq!(database.report().rebuilt, None);
    assert_eq!(database.head(), head);
    holds(&database);
    database.close().unwrap();
    let database = Holotype::rebuild(&path, options()).unwrap();
    holds(&database);
    check(reason);

    // With what rests on it; the reason given with the mark goes too. A restated record is erased like any other.
    let done = rows(&database, "forget 't3' cascade because 'request 89'");
    assert_eq!(done, ["forgotten t3", "forgotten r1", "forgotten r2", "page trip/p1"]);
    check(b"");
    for text in [b"she holds a passport".as_slice(), b"it rained on", reason] {
        assert!(shingles(&path, text, b"").is_empty());
    }
    verified(&database);
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("trip", "life goes on").key("t7").speaker("Bartholomew Fitzgerald")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(rows(&database, "find turns where speaker = 'Bartholomew Fitzgerald' return key"), ["t7"]);
    database.close().unwrap();
    let database = Holotype::rebuild(&path, options()).unwrap();
    verified(&database);
    assert_eq!(rows(&database, "find items where redacted return key"), ["t3", "r1", "r2"]);
}

/// A claim that is forgotten wins and loses against nobody, also once everything is made anew.
#[test]
fn forgotten_claims_no_longer_compete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, options()).unwrap();
    run(
        &database,
        "record turn 'it costs 450' in episode 'e' claims 'price' = 450 with key = 'a', time = '2026-01-01T00:00:00Z';
         record turn 'it costs 280' in episode 'e' claims 'price' = 280 with key = 'b', time = '2026-01-02T00:00:00Z'",
    );
    assert_eq!(rows(&database, "find turns where conflicted return key"), ["a"]);
    run(&database, "forget 'b' because 'asked to'");
    let check = |database: &Holotype| {
        assert_eq!(rows(database, "find turns where conflicted return key"), Vec::<String>::new());
        assert_eq!(rows(database, "find claims return name, value"), ["price 450"]);
        assert_eq!(rows(database, "conflicts"), Vec::<String>::new());
        verified(database);
    };
    check(&database);
    database.close().unwrap();
    check(&Holotype::rebuild(&path, options()).unwrap());
}

#[test]
fn every_form_of_the_statement() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, options()).unwrap();
    fill(&database);
    run(
        &database,
        "open episode 'other' with task = 'a task that nobody may read later'; \
         record turn 'x' in episode 'other' with key = 'o1'",
    );
    assert_eq!(rows(&database, "forget turns where text contains 'passport' because 'a'")[0], "forgotten t3");
    assert_eq!(rows(&database, "forget page 'trip/p1' because 'b'").len(), 6 + 2 + 1);
    assert_eq!(rows(&database, "forget facts in episode 'trip' where key = 'r2' because 'c'"), ["forgotten r2"]);
    assert_eq!(rows(&database, "forget pages where key = 'none' because 'd'"), Vec::<String>::new());
    assert_eq!(rows(&database, "forget 'r1', episode 'other' because 'e'"), ["forgotten r1", "forgotten o1"]);
    assert!(shingles(&path, b"a task that nobody may read later", b"").is_empty());
    assert_eq!(rows(&database, "find items where not redacted"), Vec::<String>::new());
    verified(&database);
    let refused = |script: &str| database.query(script, &Params::new()).unwrap_err().to_string();
    assert!(refused("forget 'nobody' because 'f'").contains("no item"));
    assert!(
        refused("record turn 'y' in episode 'other' with key = 'o2'; forget 'o2' because 'g'")
            .contains("commit it before")
    );
    assert_eq!(rows(&database, "count turns"), ["7"]);
}

/// A script is one transaction, and so is a forget in it: when a later statement fails, is over its limit or is
/// cancelled, nothing is forgotten, in memory or in any file.
#[test]
fn what_a_script_that_fails_has_forgotten_is_still_there() {
    let sim = SimVfs::new();
    let vfs = || Arc::new(sim.clone()) as Arc<dyn Vfs>;
    let database = Holotype::create_on(vfs(), "/db", options()).unwrap();
    fill(&database);
    database.checkpoint().unwrap();
    let (head, before) = (database.head(), observed::everything(&database.snapshot()).unwrap());
    let files = stands_on(&sim);
    assert!(files.len() > 2, "{files:?}");
    let few = Limits::none().rows_scored(1);
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = Limits::none().cancelled_by(&cancel);
    for (script, limits, code) in [
        ("forget 't3' because 'x'; mark 'nobody' failed because 'y'", Limits::none(), "missing"),
        ("forget 't3' cascade because 'x'; forget 'nobody' because 'y'", Limits::none(), "missing"),
        (
            "forget turns where speaker = 'assistant' because 'x'; remember fact 'z' from 'nobody'",
            Limits::none(),
            "unresolved-pointer",
        ),
        (
            "record turn 'new' in episode 'trip'; forget 't3' because 'x'; forget 't1' because 'x'; \
         merge 't1', 't2' into 'z' as update",
            Limits::none(),
            "invalid",
        ),
        (
            "forget 't3' because 'x'; mark 't3' failed because 'it is gone'; sources of 'nobody'",
            Limits::none(),
            "missing",
        ),
        ("forget 't3' because 'x'; find items", few, "limit"),
        ("forget 't3' because 'x'; find items", stopped, "cancelled"),
    ] {
        let error = database.query_within(script, &Params::new(), &limits).unwrap_err();
        assert_eq!(error.code(), code, "{script}: {error}");
        assert_eq!(database.head(), head, "{script}");
        assert_eq!(observed::everything(&database.snapshot()).unwrap(), before, "{script}");
        assert_eq!(stands_on(&sim), files, "{script}");
    }
    // The state that is found by: words, vectors, pages, claims.
    let t3 = database.snapshot().get("t3").unwrap().unwrap().id;
    let outputs = run(
        &database,
        "recall 'passport number' in episode 'trip' through traces score profile agent limit 1 relax below 1",
    );
    assert!(matches!(outputs.as_slice(), [holotype::answer::Output::Answer(answer)] if answer.rows[0].item == t3));
    assert_eq!(rows(&database, "verify 'r1'").len(), 2);
    verified(&database);
    database.close().unwrap();
    let database = Holotype::open_on(vfs(), "/db", options()).unwrap();
    assert_eq!((database.head(), observed::everything(&database.snapshot()).unwrap()), (head, before));
    run(&database, "forget 't3' cascade because 'x'; mark 't1' failed because 'y'");
    assert_eq!(stands_on(&sim), Vec::<String>::new());
    verified(&database);
}

/// The places of 8 bytes of the secret on a simulated disk.
fn stands_on(sim: &SimVfs) -> Vec<String> {
    let root = Path::new("/db");
    let mut found = Vec::new();
    for dir in ["", "log", "columns", "vectors", "words"] {
        let dir = root.join(dir);
        for name in sim.list(&dir).unwrap_or_default() {
            let bytes = sim.bytes(&dir.join(&name)).unwrap();
            if bytes.windows(8).any(|window| SECRET.as_bytes().windows(8).any(|shingle| shingle == window)) {
                found.push(name);
            }
        }
    }
    found
}

/// A crash at any operation of a forget: what opens next has forgotten all of it, in every file, or had not begun.
#[test]
fn a_crash_while_forgetting_ends_in_all_or_nothing() {
    let sim = SimVfs::new();
    let vfs = || Arc::new(sim.clone()) as Arc<dyn Vfs>;
    let database = Holotype::create_on(vfs(), "/db", options()).unwrap();
    fill(&database);
    database.checkpoint().unwrap();
    let begun = sim.history().len();
    run(&database, "forget 't3' cascade because 'request 88'");
    let ended = sim.history().len();
    let acknowledged = ended;
    drop(database);
    let (mut whole, mut gone, mut rebuilt) = (0, 0, 0);
    for (at, point) in sim.replay().enumerate().skip(begun).take(ended - begun + 1) {
        // Erasing is looked at closely, the writing of new derived files more thinly.
        if at > begun + 24 && at % 6 != 0 {
            continue;
        }
        for (number, crashed) in point.crashes(2, at as u64).into_iter().enumerate() {
            let context = format!("operation {at} of {begun}..{ended}, state {number}");
            let disk = Arc::new(crashed.clone()) as Arc<dyn Vfs>;
            let database =
                Holotype::open_on(disk, "/db", options()).unwrap_or_else(|error| panic!("{context}: {error}"));
            let snapshot = database.snapshot();
            let item = snapshot.get("t3").unwrap().unwrap();
            let report = database.verify(&mut |_, _| {}).unwrap();
            assert!(report.is_clean(), "{context}: {report:?}");
            if item.attributes.redacted {
                gone += 1;
                rebuilt += usize::from(database.report().rebuilt.is_some());
                assert!(item.content.text().is_empty(), "{context}");
                assert!(snapshot.get("r2").unwrap().unwrap().attributes.redacted, "{context}");
                assert_eq!(stands_on(&crashed), Vec::<String>::new(), "{context}: {:?}", database.report());
            } else {
                whole += 1;
                assert!(at < acknowledged, "{context}: an acknowledged forget is lost");
                assert_eq!(item.content.text(), SECRET, "{context}");
            }
        }
    }
    assert!(whole > 1 && gone > 20 && rebuilt > 3, "too few to mean anything: {whole}, {gone}, {rebuilt}");
}

/// Forgotten items are forgotten in an export and in an import of it, whose export has the same bytes.
#[test]
fn an_export_says_what_was_forgotten_and_an_import_takes_it() {
    use holotype::interchange::{export, import};
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), options()).unwrap();
    fill(&database);
    run(&database, "remember theme 'papers' ungrounded with key = 'th'; link 'r1' parent 'th'");
    run(&database, "forget 't3', 'r2', 'th' because 'request 88'");
    let mut lines = Vec::new();
    export(&database.snapshot(), &mut lines, None).unwrap();
    let text = String::from_utf8(lines.clone()).unwrap();
    assert!(!text.contains("XK-4471") && !text.contains("rained"), "{text}");
    assert!(text.contains(r#"{"redact":{"key":"t3","because":"request 88"}}"#), "{text}");
    let file = dir.path().join("export.jsonl");
    std::fs::write(&file, &lines).unwrap();
    let copy =
        Holotype::create(dir.path().join("copy.holo"), Options { page_size: 4096, ..Options::default() }).unwrap();
    let take = || {
        let source = std::io::BufReader::new(std::fs::File::open(&file).unwrap());
        import(&copy, "export.jsonl", source, None, &Default::default(), &mut |_| {})
    };
    take().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut again = Vec::new();
    export(&copy.snapshot(), &mut again, None).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text);
    verified(&copy);
    assert_eq!(rows(&copy, "find items where redacted return key"), ["t3", "r2", "th"]);
    let r1 = copy.snapshot().get("r1").unwrap().unwrap().id;
    assert_eq!(copy.snapshot().citations(r1).unwrap()[0].verdict, Verdict::Redacted);
    let report = take().unwrap();
    assert_eq!(report.added, 0, "all of it is known");
    let line = b"{\"recall\":{\"key\":\"r9\",\"ungrounded\":true}}\n".as_slice();
    let error = import(&copy, "x.jsonl", line, None, &Default::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("'r9' has no text"), "{error}");
}

/// One failed write to LOCK during `forget` left the text answered although its erasure was durable, or the text gone
/// while the state still held it. Whatever one call fails, forgetting is finished by a retry or by the next opening.
#[test]
fn forgetting_ends_whichever_call_fails_once() {
    let path = Path::new("/db/memory.holo");
    let filled = || {
        let sim = SimVfs::new();
        let database = Holotype::create_on(Arc::new(sim.clone()), path, options()).unwrap();
        fill(&database);
        (sim, database)
    };
    let (sim, database) = filled();
    let before = sim.calls();
    run(&database, "forget 't3' because 'asked'");
    let (calls, mut failed) = (sim.calls() - before, 0);
    for call in 1..=calls {
        let (sim, database) = filled();
        sim.fail_at(sim.calls() + call, Failure::Io, false);
        let forgotten = database.query("forget 't3' because 'asked'", &Params::new());
        sim.heal();
        if forgotten.is_ok() {
            assert!(finds_no_secret(&database), "call {call}: forgotten, and still answered");
        } else {
            failed += 1;
        }
        drop(database);
        let database = Holotype::open_on(Arc::new(sim.clone()), path, options()).unwrap();
        if !finds_no_secret(&database) {
            run(&database, "forget 't3' because 'asked again'");
        }
        assert!(finds_no_secret(&database), "call {call}: still answered after a retry");
        let report = database.verify(&mut |_, _| {}).unwrap();
        assert!(report.faults.is_empty(), "call {call}: {:?}", report.faults);
    }
    assert!(calls > 20 && failed > 5, "{failed} of {calls} calls failed forgetting");
}

fn finds_no_secret(database: &Holotype) -> bool {
    rows(database, "find items where text contains 'Ouagadougou' return key").is_empty()
}
