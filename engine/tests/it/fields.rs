//! Fields of any JSON value, on every layer, from every door; declared fields and labels as columns that answer what
//! reading each item answers.

use holotype::answer::{Answer, Output, Table};
use holotype::interchange::{ImportOptions, export, import};
use holotype::query::Params;
use holotype::{Cancel, Durability, Holotype, Kind, Limits, NewRecall, NewTrace, Options, Pointer, Snapshot, Space};
use serde_json::{Value, json};
use tempfile::TempDir;

fn new() -> (TempDir, Holotype) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::with_space(Space::new("test", 2));
    let database = Holotype::create(dir.path().join("db"), options).unwrap();
    (dir, database)
}

fn table(snapshot: &Snapshot, statement: &str) -> Table {
    match snapshot.query(statement, &Params::new()).unwrap_or_else(|error| panic!("{statement}: {error}")).remove(0) {
        Output::Table(table) => table,
        output => panic!("{statement}: {output:?}"),
    }
}

fn answer(snapshot: &Snapshot, statement: &str) -> Answer {
    match snapshot.query(statement, &Params::new()).unwrap_or_else(|error| panic!("{statement}: {error}")).remove(0) {
        Output::Answer(answer) => *answer,
        output => panic!("{statement}: {output:?}"),
    }
}

fn keys(snapshot: &Snapshot, condition: &str) -> Vec<String> {
    let table = table(snapshot, &format!("find items where {condition} return key"));
    table.rows.iter().map(|row| row[0].as_ref().unwrap().to_string()).collect()
}

fn commit(database: &Holotype, write: impl FnOnce(&mut holotype::Transaction<'_>)) {
    let mut transaction = database.begin().unwrap();
    write(&mut transaction);
    transaction.commit(Durability::None).unwrap();
}

/// Values of every type, as several fields.
fn written(number: u64) -> NewTrace {
    let odd = [json!("17"), json!(17), json!(17.5), json!(true), json!(["a", "b", 17]), json!({"deep": {"n": number}})];
    NewTrace::turn(format!("e{}", number % 3), format!("a note {number}"))
        .key(format!("k{number}"))
        .vector(vec![1.0, number as f32])
        .field("price", if number.is_multiple_of(13) { Value::Null } else { json!(number as f64 / 2.0) })
        .field("user", format!("user {}", number % 7))
        .field("odd", odd[number as usize % odd.len()].clone())
        .field(
            "meta",
            json!({"topic": format!("t{}", number % 5), "tags": [{"name": "x"}, {"name": format!("y{number}")}]}),
        )
        .label(format!("tenant:{}", number % 4))
}

const CONDITIONS: &[&str] = &[
    "fields.price = 10",
    "fields.price != 10",
    "fields.price < 10 and fields.user = 'user 3'",
    "fields.price >= 30.5",
    "fields.price between 5 and 9.5",
    "fields.price not between 5 and 9.5",
    "fields.price in (1, 2, 3.5, '4')",
    "fields.price not in (1, 2, 3.5)",
    "has fields.price",
    "not has fields.price",
    "fields.user = 'user 3'",
    "fields.user != 'user 3'",
    "fields.user in ('user 1', 'user 6', 'nobody')",
    "fields.user matches 'user ?'",
    "fields.user contains 'USER 5'",
    "fields.user < 'user 4'",
    "fields.odd = 17",
    "fields.odd = '17'",
    "fields.odd > 17",
    "fields.odd = true",
    "fields.odd = 'a'",
    "fields.odd.deep.n > 20",
    "fields.meta.topic = 't3' or fields.price = 4",
    "fields.meta.tags.name = 'y12'",
    "fields.none = 1",
    "not (fields.user = 'user 3') and fields.price > 20",
];

#[test]
fn a_declared_field_answers_what_reading_each_item_answers() {
    let (_dir, database) = new();
    let declared = ["price number", "user text", "odd number", "meta.topic text", "meta.tags.name text"];
    commit(&database, |transaction| {
        for number in 0..60 {
            transaction.record(written(number)).unwrap();
        }
    });
    let read: Vec<_> = CONDITIONS.iter().map(|condition| keys(&database.snapshot(), condition)).collect();
    assert!(read.iter().filter(|found| !found.is_empty()).count() > 20, "{read:?}");
    for field in declared {
        database.query(&format!("declare field {field}"), &Params::new()).unwrap();
    }
    for (condition, read) in CONDITIONS.iter().zip(&read) {
        assert_eq!(keys(&database.snapshot(), condition), *read, "{condition}");
    }
    // Later items, and those that a transaction has not committed, are found too.
    let mut transaction = database.begin().unwrap();
    transaction.record(written(103).key("later")).unwrap();
    let own = transaction.snapshot().unwrap();
    assert_eq!(keys(&own, "fields.price = 51.5"), ["later"]);
    assert!(keys(&database.snapshot(), "fields.price = 51.5").is_empty());
    drop(own);
    transaction.commit(Durability::None).unwrap();
    assert_eq!(keys(&database.snapshot(), "fields.price = 51.5 and labels = 'tenant:3'"), ["later"]);
    // A transaction that ends without a commit leaves nothing behind.
    let mut undone = database.begin().unwrap();
    undone.record(NewTrace::turn("e", "x").field("price", 77)).unwrap();
    assert_eq!(keys(&undone.snapshot().unwrap(), "fields.price = 77").len(), 1);
    drop(undone);
    commit(&database, |transaction| {
        transaction.record(NewTrace::turn("e", "y").field("price", 78)).unwrap();
    });
    assert!(keys(&database.snapshot(), "fields.price = 77").is_empty());
    // Of another type, and no more.
    database.query("declare field price text; declare field odd none", &Params::new()).unwrap();
    for (condition, read) in CONDITIONS.iter().zip(&read).filter(|(condition, _)| condition.contains("fields.odd")) {
        let mut found = keys(&database.snapshot(), condition);
        found.retain(|key| key != "later");
        assert_eq!(found, *read, "{condition}");
    }
}

#[test]
fn what_is_forgotten_is_in_no_column() {
    let (dir, database) = new();
    database.query("declare field user text; declare field price number", &Params::new()).unwrap();
    commit(&database, |transaction| {
        for number in 0..20 {
            transaction.record(written(number)).unwrap();
        }
    });
    let condition = "fields.user = 'user 3' and fields.price < 100";
    assert_eq!(keys(&database.snapshot(), condition), ["k3", "k10", "k17"]);
    database.query("forget 'k10' because 'asked'", &Params::new()).unwrap();
    assert_eq!(keys(&database.snapshot(), condition), ["k3", "k17"]);
    assert_eq!(keys(&database.snapshot(), "labels = 'tenant:2'"), ["k2", "k6", "k14", "k18"]);
    database.close().unwrap();
    let database = Holotype::open(dir.path().join("db"), Options::default()).unwrap();
    assert_eq!(keys(&database.snapshot(), condition), ["k3", "k17"]);
}

#[test]
fn a_recall_filters_by_fields_and_its_rows_carry_them() {
    let (_dir, database) = new();
    database.query("declare field user text; declare field price number", &Params::new()).unwrap();
    commit(&database, |transaction| {
        for number in 0..200 {
            transaction.record(written(number)).unwrap();
        }
    });
    let snapshot = database.snapshot();
    let asked = "recall 'a note' where fields.user = 'user 3' and fields.price < 20 limit 50 lines none";
    let rows = answer(&snapshot, asked).rows;
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert_eq!(row.field("user"), Some(json!("user 3")));
        assert!(row.field("price").and_then(|price| price.as_f64()).unwrap() < 20.0);
        assert_eq!(row.labels().len(), 1);
    }
    let asked = "recall 'a note 5' where fields.meta.topic = 't0' limit 1 return key, fields.price, fields.*, labels";
    let answer = answer(&snapshot, asked);
    let row = answer.rows[0].to_json(answer.returns.as_deref());
    assert_eq!(row["fields.price"], row["fields"]["price"]);
    assert_eq!(row["fields"]["meta"]["topic"], "t0");
    assert_eq!(row["labels"][0], row["fields"]["labels"][0]);
    let table = answer.table();
    assert_eq!(table.columns, ["key", "fields.price", "fields", "labels"]);
}

#[test]
fn every_door_keeps_the_type_and_every_layer_has_fields() {
    let (_dir, database) = new();
    commit(&database, |transaction| {
        let trace = NewTrace::turn("e", "it rained").key("t1").label("user:17").label("user:17");
        transaction.record(trace.field("n", 5).field("list", json!([1, "a"])).bytes_field("raw", vec![0xff])).unwrap();
        let fact = NewRecall::fact("rain").key("r1").from(Pointer::to_key("t1"));
        transaction.remember(fact.field("sure", true).field("by", json!({"who": "Ann"}))).unwrap();
        let theme = NewRecall::theme("weather").key("h1").child("r1").field("n", 7);
        transaction.remember(theme).unwrap();
        transaction.remember(NewRecall::fact("sun").key("r2").ungrounded().label("user:18")).unwrap();
    });
    let script = "record turn 'by statement' in episode 'e' with key = 't2', fields.n = 6, fields.on = true, \
                  fields.who.name = 'Bo', labels = 'user:19, team:3';
                  update 'r1' to 'much rain' from 't1' with fields.sure = false";
    database.query(script, &Params::new()).unwrap();
    let check = |database: &Holotype| {
        let snapshot = database.snapshot();
        assert_eq!(keys(&snapshot, "fields.n > 5"), ["h1", "t2"]);
        assert_eq!(keys(&snapshot, "fields.on = true"), ["t2"]);
        assert_eq!(keys(&snapshot, "fields.by.who = 'Ann' and fields.sure = false"), ["r1"]);
        assert_eq!(keys(&snapshot, "fields.'who.name' = 'Bo'"), ["t2"]);
        let labelled = keys(&snapshot, "labels = 'user:17' and active = true");
        assert_eq!(labelled, ["t1", "h1", "r1"], "what rests on it has its labels");
        assert_eq!(keys(&snapshot, "labels in ('team:3', 'user:18')"), ["r2", "t2"]);
        let content = snapshot.get("t1").unwrap().unwrap().content;
        assert_eq!(content.field_bytes("raw"), Some(&[0xff][..]));
        assert_eq!(content.field_value("list"), Some(json!([1, "a"])));
        assert_eq!(snapshot.get("r1").unwrap().unwrap().content.field_value("sure"), Some(json!(false)));
    };
    check(&database);
    let mut lines = Vec::new();
    export(&database.snapshot(), &mut lines, None).unwrap();
    let (_copy_dir, copy) = {
        let dir = tempfile::tempdir().unwrap();
        let copy = Holotype::create(dir.path().join("db"), Options::default()).unwrap();
        (dir, copy)
    };
    for added in [true, false] {
        let report = import(&copy, "f", lines.as_slice(), None, &ImportOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(report.added > 0, added, "what is known is known again");
    }
    let text = String::from_utf8(lines).unwrap();
    assert!(text.contains(r#""fields":{"sure":false"#), "{text}");
}

#[test]
fn find_stops_at_its_limit_and_explain_tells_of_scans() {
    let (_dir, database) = new();
    commit(&database, |transaction| {
        for number in 0..500 {
            transaction.record(written(number)).unwrap();
        }
    });
    let few = database.snapshot().with_limits(&Limits::none().rows_scored(40).cancelled_by(&Cancel::new()));
    assert_eq!(table(&few, "find turns where fields.user = 'user 3' limit 2 skip 1 return key").rows.len(), 2);
    assert!(few.query("find turns where fields.user = 'user 3' return key", &Params::new()).is_err());
    let explained = |snapshot: &Snapshot| {
        let table = table(snapshot, "explain find turns where fields.user = 'user 3'");
        table.rows.iter().map(|row| format!("{}: {}", row[0].as_ref().unwrap(), row[1].as_ref().unwrap())).collect()
    };
    let steps: Vec<String> = explained(&database.snapshot());
    assert!(steps.iter().any(|step| step.contains("tested on up to 500; `declare field user text`")), "{steps:?}");
    let recalled = table(&database.snapshot(), "explain recall 'x' where fields.user = 'user 3'");
    let read = "fields.user = 'user 3': 500 items read, leaves 71; `declare";
    assert!(recalled.rows.iter().any(|row| row[1].as_ref().unwrap().to_string().starts_with(read)), "{recalled:?}");
    database.query("declare field user text", &Params::new()).unwrap();
    let steps: Vec<String> = explained(&database.snapshot());
    assert!(
        steps.iter().any(|step| step.starts_with("columns: fields.user") && step.ends_with("leaves 71")),
        "{steps:?}"
    );
}

#[test]
fn declarations_and_labels_are_checked() {
    let (_dir, database) = new();
    let mut transaction = database.begin().unwrap();
    assert!(transaction.declare("price", "decimal").unwrap_err().to_string().contains("text or number"));
    assert!(transaction.declare("", "number").is_err());
    for label in ["", "a,b", "a\0b"] {
        assert!(transaction.record(NewTrace::turn("e", "x").label(label)).is_err(), "{label:?}");
    }
    let twice = NewRecall::new(Kind::Fact, "x").ungrounded().field("text", "y");
    assert!(transaction.remember(twice).unwrap_err().to_string().contains("unique"));
    drop(transaction);
    let options = Options { fields: vec![("price".to_owned(), "number".to_owned())], ..Options::default() };
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("db"), options).unwrap();
    let table = table(&database.snapshot(), "show settings");
    assert!(table.rows.iter().any(|row| row[0].as_ref().unwrap().to_string() == "field.price"), "{table:?}");
}
