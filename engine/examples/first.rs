//! The first program: two traces, a fact that rests on one of them, and a question whose answer shows its evidence.
//!
//! `README.md` holds the same program; a test compares the two.

use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer, Source, Status};

fn main() -> holotype::Result<()> {
    let path = std::env::temp_dir().join(format!("first-{}.holo", std::process::id()));
    let database = Holotype::create(&path, Options::default())?;

    // An event, verbatim.
    let mut transaction = database.begin()?;
    transaction
        .record(NewTrace::call("trip-42", "search_flights", "UA123 price=$450").key("t1").status(Status::Success))?;
    transaction.record(NewTrace::turn("trip-42", "Is that with a bag?").key("t2").source(Source::User))?;
    // A fact distilled from it, with the bytes of its evidence. A pointer that does not resolve is refused.
    let fact = NewRecall::fact("UA123 costs $450").key("r1").from(Pointer::to_key("t1").quoting("price=$450"));
    transaction.remember(fact)?;
    transaction.commit(Durability::Sync)?;

    // A question. Every span that a row cites is read from the log and hashed again for this answer.
    let params = Params::from([("q".to_owned(), ParamValue::Text("What does UA123 cost?".to_owned()))]);
    let outputs = database.query("recall $q in episode 'trip-42' limit 2", &params)?;
    let Some(Output::Answer(answer)) = outputs.first() else { panic!("a recall gives an answer") };
    for row in &answer.rows {
        println!("{:.3}  {}  {}", row.score, row.key, row.text);
        for cited in &row.citations {
            let text = cited.text.as_deref().unwrap_or("-");
            println!("       {} {}..{}  {text:?}  {}", cited.target, cited.start, cited.end, cited.verdict);
        }
    }
    assert_eq!(answer.rows.len(), 2);

    database.close()?;
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}
