//! Why did the agent believe this? From an answer down to the bytes, and what happens to it when they lose their
//! standing.
//!
//! An agent has looked up a refund rule, noted it as a fact, and summarised the case. Later the tool run turns out to
//! have failed. Nothing is deleted; but what rests on the failed run is no longer supported, and says so.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Durability, Holotype, Kind, NewRecall, NewTrace, Options, Pointer, Status};

fn main() -> holotype::Result<()> {
    let path = std::env::temp_dir().join(format!("evidence-{}.holo", std::process::id()));
    let database = Holotype::create(&path, Options::default())?;
    write_story(&database)?;

    // Downwards: what the summary rests on, level by level, each span hashed again as it is read.
    println!("what `case` rests on:");
    print_table(&database, "sources of 'case' depth 3 return depth, key, field, start, end, verdict, status")?;

    // The run failed after all. What rests on it is found by walking upwards.
    database.query("mark 'run' failed because 'HTTP 504 behind a proxy page'", &Params::new())?;
    println!("\nwhat rests on `run`, now that it failed:");
    print_table(&database, "dependents of 'run' depth 3 return depth, key, kind, status, support")?;

    // The answer to a question no longer contains it; asked for by name, it comes back with its flaw.
    let hits = |script: &str| -> holotype::Result<Vec<String>> {
        let outputs = database.query(script, &Params::new())?;
        let Some(Output::Answer(answer)) = outputs.first() else { return Ok(Vec::new()) };
        Ok(answer.rows.iter().map(|row| row.key.clone()).collect())
    };
    let governed = hits("recall 'refund within how many days?' in episode 'case-7'")?;
    let everything = hits("recall 'refund within how many days?' in episode 'case-7' include failed, unsupported")?;
    println!("\nrecall finds {governed:?}; with what failed and what rests on it included {everything:?}");
    assert!(!governed.contains(&"rule".to_owned()) && everything.contains(&"rule".to_owned()));

    database.close()?;
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}

fn write_story(database: &Holotype) -> holotype::Result<()> {
    let mut transaction = database.begin()?;
    let run = NewTrace::call("case-7", "policy_lookup", "refunds: within 30 days, unopened").key("run");
    transaction.record(run.status(Status::Success))?;
    transaction.record(NewTrace::turn("case-7", "The parcel came 12 days ago.").key("turn"))?;
    transaction.remember(
        NewRecall::fact("A refund is possible within 30 days")
            .key("rule")
            .from(Pointer::to_key("run").quoting("within 30 days")),
    )?;
    transaction.remember(
        NewRecall::new(Kind::Summary, "The customer is inside the refund window")
            .key("case")
            .from(Pointer::to_key("rule"))
            .from(Pointer::to_key("turn").quoting("12 days ago")),
    )?;
    transaction.commit(Durability::Sync)?;
    Ok(())
}

fn print_table(database: &Holotype, statement: &str) -> holotype::Result<()> {
    for output in database.query(statement, &Params::new())? {
        let Output::Table(table) = output else { continue };
        println!("  {}", table.columns.join(" | "));
        for row in table.rows {
            let cells = row.iter().map(|cell| cell.as_ref().map_or("-".to_owned(), ToString::to_string));
            println!("  {}", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    Ok(())
}
