//! Prompts in the events of a database: version and hash, once for each change.

use crate::server::{Server, limits};
use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Durability, Error, Holotype, Options};
use holotype_models::{Model, Prompt, Prompts, Role};

fn cells(database: &Holotype, statement: &str) -> Vec<Vec<String>> {
    let outputs = database.query(statement, &Params::new()).unwrap();
    let Some(Output::Table(table)) = outputs.first() else { panic!("{statement} gives a table") };
    let cell = |cell: &Option<_>| cell.as_ref().map(ToString::to_string).unwrap_or_default();
    table.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

fn record(database: &Holotype, prompts: &Prompts, roles: &[Role]) {
    let mut transaction = database.begin().unwrap();
    prompts.record(&mut transaction, roles).unwrap();
    transaction.commit(Durability::None).unwrap();
}

#[test]
fn each_change_of_a_prompt_is_an_event_and_a_setting() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.holo");
    let database = Holotype::create(&path, Options::default()).unwrap();
    let server = Server::always("");
    let model = Model::new(server.client(limits()).0).unwrap();
    let built_in = model.prompts().clone();
    record(&database, &built_in, &[Role::Router, Role::Planner]);
    let once = database.snapshot().commit();
    record(&database, &built_in, &[Role::Router, Role::Planner]);
    assert_eq!(database.snapshot().commit(), once, "what is stated is not written again");
    let other = Prompt::parse("version 2\n---\nAlways say R.").unwrap();
    let changed = built_in.clone().with(Role::Router, other.clone());
    record(&database, &changed, &[Role::Router, Role::Planner]);

    let stated = |role: &str, prompt: &Prompt| format!("prompt.{role} = {} {}", prompt.version(), prompt.hash());
    let [router, planner] = [Role::Router, Role::Planner].map(|role| built_in.of(role).unwrap());
    let events = cells(&database, "find events where op = set return because");
    let events: Vec<&String> = events.iter().flatten().filter(|because| !because.is_empty()).collect();
    assert_eq!(events, [&stated("router", router), &stated("planner", planner), &stated("router", &other)]);

    // The prompt in force is a setting, also after the database was opened again and rebuilt from its log.
    let check = |database: &Holotype| {
        let settings = cells(database, "show settings");
        let of = |name: &str| settings.iter().find(|row| row[0] == name).map(|row| row[1].clone());
        assert_eq!(of("prompt.router"), Some(format!("2 {}", other.hash())));
        assert_eq!(of("prompt.planner"), Some(format!("{} {}", planner.version(), planner.hash())));
    };
    check(&database);
    database.close().unwrap();
    let database = Holotype::open(&path, Options::default()).unwrap();
    check(&database);

    // An export states them too.
    let mut lines = Vec::new();
    holotype::interchange::export(&database.snapshot(), &mut lines, None).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert!(lines.contains(&format!(r#"{{"setting":{{"name":"prompt.router","value":"2 {}"}}}}"#, other.hash())));
}

#[test]
fn nothing_but_a_version_and_a_hash_is_stated() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    let hash = "0123456789abcdef".repeat(4);
    for (name, value) in [
        ("prompt.router", hash.clone()),
        ("prompt.router", format!("0 {hash}")),
        ("prompt.router", format!("01 {hash}")),
        ("prompt.router", format!("1 {}", &hash[1..])),
        ("prompt.router", format!("1 {}", hash.to_uppercase())),
        ("prompt.router", format!("1 {hash} more")),
        ("prompt.", format!("1 {hash}")),
        ("prompt.Router", format!("1 {hash}")),
    ] {
        assert!(matches!(transaction.set(name, &value), Err(Error::Invalid(_))), "{name} = {value}");
    }
    transaction.set("prompt.of-another-client", &format!("4294967295 {hash}")).unwrap();
}
