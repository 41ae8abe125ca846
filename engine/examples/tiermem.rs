//! The cheapest evidence that suffices (TierMem): summaries first, raw pages where they do not answer, and what was
//! found there written back, so that the next question is cheap. No model runs.

use holotype::answer::{Answer, Output};
use holotype::query::{EscalateMode, Params};
use holotype::router::Action;
use holotype::{Durability, Holotype, Kind, Learn, LearnOp, NewRecall, NewTrace, Options, Pointer};

const TURNS: [(&str, &str); 6] = [
    ("Ann", "We took the early ferry to Naxos and sat on deck all morning."),
    ("Ann", "There were dolphins near the lighthouse, and Bob dropped his hat into the sea."),
    ("Bob", "Our hotel was called Aria, it had a blue door and a cat on every chair."),
    ("Ann", "Breakfast there was at eight, with figs and too much coffee."),
    ("Bob", "On the way back we missed the bus and walked along the beach."),
    ("Ann", "My shoes are still full of sand, but I would go again tomorrow."),
];

const QUESTION: &str = "What was the name of the hotel on Naxos?";

fn main() -> holotype::Result<()> {
    let path = std::env::temp_dir().join(format!("tiermem-{}.holo", std::process::id()));
    let database = Holotype::create(&path, Options::default())?;

    // Ingest: turns fill pages, and each page gets a summary. The queue says which pages wait for one.
    database.query("set page.tokens = 30", &Params::new())?;
    let mut transaction = database.begin()?;
    for (speaker, text) in TURNS {
        transaction.record(NewTrace::turn("trip", text).speaker(speaker))?;
    }
    transaction.commit(Durability::Sync)?;
    database.query("close episode 'trip'", &Params::new())?;
    let summaries = ["The journey to Naxos by ferry.", "Where they stayed, and breakfast.", "The way back."];
    let due = database.snapshot().pages_due()?;
    for (page, summary) in due.iter().filter_map(|page| page.key.as_ref()).zip(summaries) {
        let mut transaction = database.begin()?;
        transaction.remember(NewRecall::new(Kind::Summary, summary).from(Pointer::to_page(page)))?;
        transaction.commit(Durability::Sync)?;
    }
    assert!(database.snapshot().pages_due()?.is_empty(), "a summary marks its page as it is written");

    // Ask: the summaries do not name the hotel, so the router sends the question to the pages.
    let before = ask(&database)?;
    assert_eq!(action(&before), Some(Action::Escalate));
    let found = before.rows.iter().find(|row| row.text.contains("Aria")).expect("the page holds the answer");

    // Write back: a finding with its quote. It is linked to the bytes without a model.
    let mut transaction = database.begin()?;
    let finding = Learn::new("The name of the hotel on Naxos was Aria.")
        .from(Pointer::to_key(&found.key).quoting("our hotel was called aria"));
    let learned = transaction.learn_by_words(&finding)?;
    transaction.commit(Durability::Sync)?;
    assert_eq!(learned.op, LearnOp::Add);

    // Ask again: the fact and the span it cites suffice.
    let after = ask(&database)?;
    assert_eq!(action(&after), Some(Action::Answer));
    assert!(after.rows[0].text.contains("Aria"));
    assert!(tokens(&after) < tokens(&before), "{} {}", tokens(&after), tokens(&before));

    // Learning it once more writes nothing.
    let again = database.query(
        &format!("learn 'The hotel on Naxos was Aria.' from '{}' quoting 'called Aria'", found.key),
        &Params::new(),
    )?;
    if let Some(Output::Table(table)) = again.first() {
        println!("learned again: {}", table.rows[0][0].as_ref().map(ToString::to_string).unwrap_or_default());
    }
    database.close()?;
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}

fn ask(database: &Holotype) -> holotype::Result<Answer> {
    let answer = database.snapshot().recall(QUESTION).escalate(EscalateMode::Auto).budget(500).run()?;
    let rounds = answer.escalation.as_ref().map_or(0, |escalation| escalation.rounds.len());
    println!("{QUESTION}\n  {:?} after {rounds} rounds, {} tokens", action(&answer), tokens(&answer));
    for row in &answer.rows {
        println!("  {:<6} {}", row.kind.to_string(), row.text);
    }
    Ok(answer)
}

fn action(answer: &Answer) -> Option<Action> {
    answer.escalation.as_ref().map(|escalation| escalation.router.action)
}

fn tokens(answer: &Answer) -> u64 {
    answer.escalation.as_ref().map_or(0, |escalation| escalation.tokens)
}
