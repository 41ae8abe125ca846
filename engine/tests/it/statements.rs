//! Every kind of statement on a small authored database, with the table it answers, in `tests/it/statements/*.txt`; and
//! every example of the reference of the language.
//!
//! A case is a line that begins with `> ` and what was answered, up to an empty line; the cases of a file share a
//! database. With `HOLOTYPE_UPDATE=1` in the environment the files are written anew, to be read before they are
//! committed.

use holotype::answer::{Answer, Output, Role, Table};
use holotype::interchange::{ImportOptions, import};
use holotype::query::attributes::{ITEM_COLUMNS, Subject, WALK_COLUMNS, attributes_of};
use holotype::query::{ParamValue, Params, format, parse};
use holotype::time::FixedClock;
use holotype::{Error, Holotype, Options, Space};
use holotype_storage::vfs::SimVfs;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const STORY: &str = include_str!("statements/story.jsonl");
const REFERENCE: &str = include_str!("../../../docs/query-language.md");
/// 2026-01-06T00:00:00Z
const CLOCK: i64 = 1_767_657_600_000_000;

fn story(options: Options) -> Holotype {
    let options = Options { clock: Arc::new(FixedClock(CLOCK)), ..options };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    let report =
        import(&database, "story.jsonl", STORY.as_bytes(), None, &ImportOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(report.added, STORY.lines().count() as u64);
    database
}

// ---- rendering ----

fn render(outputs: &[Output]) -> String {
    let mut text = String::new();
    for output in outputs {
        match output {
            Output::Answer(answer) => render_answer(answer, &mut text),
            Output::Table(table) => render_table(table, &mut text),
            other => {
                let _ = writeln!(text, "{other:?}");
            }
        }
    }
    text
}

fn render_table(table: &Table, text: &mut String) {
    let _ = writeln!(text, "{}", table.columns.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> =
            row.iter().map(|cell| cell.as_ref().map_or("-".to_owned(), ToString::to_string)).collect();
        let _ = writeln!(text, "{}", cells.join(" | "));
    }
    for note in &table.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if table.failed {
        let _ = writeln!(text, "failed");
    }
}

fn render_answer(answer: &Answer, text: &mut String) {
    let at = &answer.at;
    let moment = [
        at.episode.clone(),
        at.step.map(|step| format!("step {step}")),
        at.time.map(holotype::time::format),
        at.version.clone(),
    ];
    let moment: Vec<String> = moment.into_iter().flatten().collect();
    let _ =
        writeln!(text, "at {}; {}", moment.join(", "), if answer.answerable { "answerable" } else { "not answerable" });
    if let Some(returns) = &answer.returns {
        for row in &answer.rows {
            let _ = writeln!(text, "{}", row.to_json(Some(returns)));
        }
    } else {
        for row in &answer.rows {
            let evidence = if row.role == Role::Evidence { "  evidence " } else { "" };
            let _ = write!(text, "{evidence}{} | {:.3} | {}", row.key, row.score, row.text);
            for citation in &row.citations {
                let _ =
                    write!(text, " | {} {}..{} {}", citation.target, citation.start, citation.end, citation.verdict);
            }
            let _ = writeln!(
                text,
                "{}",
                row.relaxed.iter().map(|flaw| format!(" | in spite of {flaw}")).collect::<String>()
            );
            for line in &row.lines {
                let _ = writeln!(text, "  {} {}: {}", line.key, line.label, line.text);
            }
            if !row.folded.is_empty() {
                let _ = writeln!(text, "  folded {}", row.folded.join(", "));
            }
        }
    }
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
}

/// The answers of a script, or its error as shown to a person.
fn answered(database: &Holotype, script: &str) -> String {
    match database.query(script, &Params::new()) {
        Ok(outputs) => render(&outputs),
        Err(Error::Query(errors)) => format!("{}\n", errors.render(script).trim_end()),
        Err(error) => format!("{}: {error}\n", error.code()),
    }
}

/// Removes what differs between runs and machines: log positions and hashes (each database has its own id and each
/// record its own salt), times, and the device that compares vectors.
fn steady(text: &str) -> String {
    let hash = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let steady_line = |line: &str| {
        let words: Vec<&str> = line.split(' ').map(|word| if hash(word) { "HASH" } else { word }).collect();
        words.join(" ")
    };
    let differs =
        |line: &str| line.starts_with("answer | ") || line.starts_with("accelerator | ") || line.contains(" | took ");
    let lines = text.lines().filter(|line| !differs(line)).map(steady_line);
    lines.map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn every_statement_answers_what_the_file_says() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/statements");
    let update = std::env::var_os("HOLOTYPE_UPDATE").is_some();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert_eq!(files.len(), 16);
    for path in files {
        let wanted = std::fs::read_to_string(&path).unwrap();
        let database = story(Options::default());
        let mut found = String::new();
        for script in wanted.lines().filter_map(|line| line.strip_prefix('>')) {
            let script = script.trim();
            let _ = writeln!(found, "> {script}");
            found += &steady(&answered(&database, script));
            found.push('\n');
        }
        let found = found.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
        if update {
            std::fs::write(&path, found.trim_end().to_owned() + "\n").unwrap();
            continue;
        }
        let differs = found.lines().zip(wanted.lines()).enumerate().find(|(_, (found, wanted))| found != wanted);
        assert!(found.trim_end() == wanted.trim_end(), "{}: {differs:#?}", path.display());
    }
}

/// Every attribute in the table of attributes exists on some thing of its kind.
#[test]
fn every_attribute_is_there_on_what_the_reference_says() {
    let database = story(Options::default());
    database
        .query(
            "record call 'x' in episode 'e' with tool = 'pay', log_id = 'l', labels = 'user:17',
             utility = 0.5; close episode 'trip-42';
             remember procedure 'y' ungrounded with return_score = 3, version = 'v1';
             mark 't1' failed because 'a guess';
             remember fact 'a loser' from 't2' claims 'UA123.price' = 1 with key = 'l1', status = failed; remember fact 'on it' from 'l1' with key = 'l2';
             recall 'UA123' with receipt",
            &Params::new(),
        )
        .unwrap();
    let things = [
        (Subject::Item, "find items"),
        (Subject::Page, "find pages"),
        (Subject::Episode, "find episodes"),
        (Subject::Claim, "find claims"),
        (Subject::Edge, "find edges"),
        (Subject::Event, "find events"),
        (Subject::Receipt, "find receipts"),
        (Subject::Change, "history of 't1'"),
    ];
    let mut absent = Vec::new();
    let mut is_there = |listing: &str, name: &str| {
        let outputs = database.query(&format!("{listing} return {name}"), &Params::new()).unwrap();
        let [Output::Table(table)] = outputs.as_slice() else { panic!("{outputs:?}") };
        if !table.rows.iter().any(|row| row[0].is_some()) {
            absent.push(format!("{name} of {listing}"));
        }
    };
    for (subject, listing) in things {
        for attribute in attributes_of(subject) {
            is_there(listing, if attribute.name == "fields" { "fields.price" } else { attribute.name });
        }
    }
    ITEM_COLUMNS.iter().for_each(|name| is_there("find items", name));
    WALK_COLUMNS.iter().for_each(|name| is_there("sources of 'r9', 'pr1', 'c1', 'l2'", name));
    assert!(absent.is_empty(), "no row has {absent:?}");
}

// ---- the reference ----

fn examples() -> Vec<String> {
    let mut lines = REFERENCE.lines();
    let mut examples = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim() == "```holotype" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            examples.push(block.join("\n"));
        }
    }
    examples
}

/// Each statement of each example by itself, on a database where all that it names is there. A key that it gives to
/// something new is changed to one that is free.
#[test]
fn every_example_of_the_reference_runs_by_itself() {
    let params = Params::from([
        ("q".to_owned(), ParamValue::Text("price of UA123".to_owned())),
        ("e".to_owned(), ParamValue::Text("trip-42".to_owned())),
        ("n".to_owned(), ParamValue::Int(500)),
        ("v".to_owned(), ParamValue::Vector(vec![1.0, 0.0])),
        ("known".to_owned(), ParamValue::List(vec![ParamValue::Text("t1".to_owned())])),
        ("memory".to_owned(), ParamValue::Text("<memory></memory>".to_owned())),
    ]);
    let mut ran = 0;
    for example in examples() {
        let script = parse(&example).unwrap_or_else(|errors| panic!("{}", errors.render(&example)));
        for statement in &script.statements {
            let mut single = script.clone();
            single.statements = vec![statement.clone()];
            let text = format(&single).replace("key = 't1'", "key = 'new'").replace("key = 'r9'", "key = 'new'");
            let text = text
                .replace("key = 'r1'", "key = 'new'")
                .replace("unlink 'r9' supersedes 'r1'", "unlink 'r1' conflicts-with 'r9'")
                .replace("unlink 'r9' cites 't2' quoting 'price=$450'", "unlink 'r9' cites 't1' quoting 'price=$450'");
            let database = story(Options::with_space(Space::new("test", 2)));
            if text.contains("replay") {
                database.query("recall 'price' with receipt", &Params::new()).unwrap();
            }
            let used = params.iter().filter(|(name, _)| text.contains(&format!("${name}")));
            let used: Params = used.map(|(name, value)| (name.clone(), value.clone())).collect();
            match database.query(&text, &used) {
                Ok(_) => ran += 1,
                Err(Error::Query(errors)) => panic!("{}", errors.render(&text)),
                Err(error) => panic!("{text}: {error}"),
            }
        }
    }
    assert!(ran > 45, "{ran} ran");
}
