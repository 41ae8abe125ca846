//! The log is the database: import a file, close, lose everything that is derived, open again.
//!
//! The lines have no vectors, so the built-in hashing embedder makes them: no model, no network. A second import of the
//! same lines adds nothing. After that the catalog and every index are deleted; opening makes them again from the log,
//! and the same question has the same answer.

use holotype::answer::Output;
use holotype::embed::HashingEmbedder;
use holotype::interchange::{self, ImportOptions};
use holotype::query::Params;
use holotype::{Holotype, Options, Result};

const LINES: &str = r#"
{"episode":{"id":"garden","task":"plan the beds","version":"v1"}}
{"trace":{"key":"g1","episode":"garden","step":1,"source":"user","speaker":"Noor","fields":{"text":"The north bed floods every spring."}}}
{"trace":{"key":"g2","episode":"garden","step":2,"source":"tool","tool":"soil_probe","status":"success","fields":{"text":"north bed: clay, 71 % moisture","moisture":71}}}
{"trace":{"key":"g3","episode":"garden","step":3,"source":"user","speaker":"Noor","fields":{"text":"Then let us plant the irises there."}}}
{"recall":{"key":"r1","kind":"fact","text":"The north bed is wet clay","from":[{"key":"g2","start":0,"end":15}]}}
{"commit":{}}
"#;

const QUESTION: &str = "recall 'what grows in the wet bed?' in episode 'garden' limit 3";

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("restart-{}.holo", std::process::id()));
    let database = Holotype::create(&path, Options::default())?;
    let options =
        ImportOptions { embedder: Some(std::sync::Arc::new(HashingEmbedder::default())), ..ImportOptions::default() };
    for round in ["first", "second"] {
        let report = interchange::import(&database, "garden.jsonl", LINES.as_bytes(), None, &options, &mut |_| {})?;
        println!("{round} import: {} lines added, {} known", report.added, report.known);
    }
    let before = ask(&database)?;
    let head = database.head();
    database.close()?;

    // Everything but the log is derived.
    std::fs::remove_file(path.join("catalog.redb")).ok();
    for derived in ["columns", "vectors", "words"] {
        std::fs::remove_dir_all(path.join(derived)).ok();
    }

    let database = Holotype::open(&path, Options::default())?;
    println!("opened again; made anew because {}", database.report().rebuilt.as_deref().unwrap_or("of nothing"));
    assert_eq!(ask(&database)?, before);
    assert_eq!(database.head().hash, head.hash);
    for (score, key) in &before {
        println!("  {score:.3}  {key}");
    }

    // And every byte of it still hashes to what it did when it was written.
    let report = database.verify(&mut |_, _| {})?;
    println!("verify: {} faults", report.faults.len());
    assert!(report.is_clean());

    database.close()?;
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}

fn ask(database: &Holotype) -> Result<Vec<(f32, String)>> {
    let outputs = database.query(QUESTION, &Params::new())?;
    let Some(Output::Answer(answer)) = outputs.first() else { return Ok(Vec::new()) };
    Ok(answer.rows.iter().map(|row| (row.score, row.key.clone())).collect())
}
