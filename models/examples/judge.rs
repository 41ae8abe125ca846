//! A model as the judge of `escalate auto`, offline: a fake one on the loopback interface, which says what a real one
//! might. The fourth answer is garbage, and garbage means that the raw pages are read.

use holotype::query::{EscalateMode, Params};
use holotype::{Durability, Holotype, NewTrace, Options, Roles, UncoveredWords};
use holotype_models::{Client, Endpoint, Model, Role};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

type AnyError = Box<dyn std::error::Error>;

/// The replies of the fake model, one for each call.
const REPLIES: [&str; 4] = [
    r#"{"summary": "Ann and Bob went to Naxos and stayed at a hotel."}"#,
    "<think>They stayed at a hotel, but which?</think>```json\n{\"action\": \"R\"}\n```",
    r#"{"thinking": "the summary says that they went to Naxos", "action": "S"}"#,
    "I am quite sure that the summary suffices.",
];

fn main() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = Endpoint::new(&format!("http://{}/v1", listener.local_addr()?), "fake")?;
    let server = std::thread::spawn(move || REPLIES.iter().try_for_each(|reply| answer(&listener.accept()?.0, reply)));
    let model = Model::new(Client::new(endpoint)?)?;

    let path = std::env::temp_dir().join(format!("judge-{}.holo", std::process::id()));
    let database = Holotype::create(&path, Options::default())?;
    let mut transaction = database.begin()?;
    // The database states the prompts that the model is asked with.
    model.prompts().record(&mut transaction, &[Role::Router, Role::Summariser])?;
    transaction.record(NewTrace::turn("trip", "We took the ferry to Naxos and it was windy.").speaker("Ann"))?;
    transaction.record(NewTrace::turn("trip", "Our hotel was called Aria, it had a blue door.").speaker("Bob"))?;
    transaction.commit(Durability::Sync)?;
    database.query("close episode 'trip'", &Params::new())?;

    // The page is due for a summary, and the model writes it.
    let summaries = model.summarise(&database, None, Durability::Sync, 10)?;
    println!("summarised: {}", summaries.written.join(", "));

    let questions = ["What was the name of the hotel on Naxos?", "Did they go to Naxos?", "Where was the hotel?"];
    for question in questions {
        let roles = Roles::new(&model, &UncoveredWords);
        let snapshot = database.snapshot();
        let answer = snapshot.recall(question).escalate(EscalateMode::Auto).budget(500).run_with(roles)?;
        let Some(escalation) = &answer.escalation else { return Err("a recall that escalates says so".into()) };
        println!("{question}\n  {}", escalation.router.action.as_str());
        if let Some(why) = &escalation.router.failure {
            println!("  since {why}");
        }
        for row in &answer.rows {
            println!("  {:<8} {}", row.kind.to_string(), row.text);
        }
    }
    server.join().map_err(|_| "the fake model panicked")??;
    database.close()?;
    std::fs::remove_dir_all(&path)?;
    Ok(())
}

/// Reads a request and answers it with a completion.
fn answer(stream: &TcpStream, reply: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line)?;
        let value = line.to_lowercase();
        length = value.strip_prefix("content-length: ").and_then(|value| value.trim().parse().ok()).unwrap_or(length);
    }
    reader.read_exact(&mut vec![0; length])?;
    let body = serde_json::json!({"choices": [{"message": {"role": "assistant", "content": reply}}]}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut stream = stream;
    stream.write_all(format!("{head}{body}").as_bytes())
}
