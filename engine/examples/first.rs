//! The first program: two traces, a fact that rests on one of them, and a question whose answer shows its evidence.
//!
//! `README.md` holds the same program; a test compares the two.

use holotype::embed::HashingEmbedder;
use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer};

fn main() -> holotype::Result<()> {
    let path = std::env::temp_dir().join(format!("first-{}.holo", std::process::id()));
    let database = Holotype::create(&path, Options::default().embedder(HashingEmbedder::default()))?;
    let mut transaction = database.begin()?;
    transaction.record(NewTrace::call("trip-42", "search_flights", "UA123 price=$450").key("t1"))?;
    let evidence = Pointer::to_key("t1").quoting("price=$450"); // refused if these bytes are not there
    transaction.remember(NewRecall::fact("UA123 costs $450").key("r1").from(evidence))?;
    transaction.commit(Durability::Sync)?;
    for row in database.snapshot().recall("What does UA123 cost?").in_episode("trip-42").run()?.rows {
        let cited = &row.citations[0]; // read from the log and hashed again for this answer
        println!("{:.3}  {}  {}  {:?}  {}", row.score, row.key, row.text, cited.text, cited.verdict);
    }
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}
