//! `--model`: a model behind a server on the loopback, in the roles of the commands.

use crate::command_line::program::Place;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Serves chat completions, whose replies a function of the prompt and the inputs gives; the address.
fn serve(reply: fn(&str, &str) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream, reply);
        }
    });
    address
}

fn answer(mut stream: TcpStream, reply: fn(&str, &str) -> String) -> std::io::Result<()> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    let (begin, len) = loop {
        let read = stream.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some(begin) = text.find("\r\n\r\n").filter(|_| read > 0) else { continue };
        let length =
            text.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:").map(str::to_owned));
        break (begin + 4, length.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0));
    };
    while request.len() < begin + len {
        let read = stream.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..read]);
    }
    let body: Value = serde_json::from_slice(&request[begin..begin + len]).unwrap_or_default();
    let message = |at: usize| body["messages"][at]["content"].as_str().unwrap_or_default();
    let content = reply(message(0), message(1));
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"});
    let body = json!({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).to_string();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes())
}

const STORY: &str = "
    record turn 'The summer house by the lake was built in 1912 by Ann.' in episode 'chat' with key = 't1';
    close episode 'chat';
    remember summary 'Ann built a summer house.' from page 'chat/p1' with key = 's1'";

#[test]
fn query_lets_a_model_route_an_escalation() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    place.run(&["query", "memory.holo", STORY]).ok();
    let statement = "recall 'When was the summer house built?' escalate auto with receipt";
    let run = |url: &str| {
        place.run(&["query", "memory.holo", statement, "--model", url, "--model-name", "fake", "--format", "json"]).ok()
    };
    let suffices = serve(|_, _| r#"{"action": "S"}"#.to_owned());
    let answer = run(&suffices).json();
    assert_eq!(answer["router"]["action"], "answer", "{answer}");
    assert_eq!((&answer["rows"][0]["key"], &answer["receipt"]), (&"s1".into(), &"rc-1".into()), "{answer}");
    let reads = serve(|prompt, _| match prompt {
        prompt if prompt.contains("findings") => r#"{"findings": []}"#.to_owned(),
        prompt if prompt.contains("ranking") => r#"{"ranking": [0]}"#.to_owned(),
        prompt if prompt.contains("\"action\"") => r#"{"action": "R"}"#.to_owned(),
        _ => "no reply of a role".to_owned(),
    });
    let answer = run(&reads).json();
    assert_eq!(answer["router"]["action"], "escalate", "{answer}");
    assert!(answer["rows"].as_array().unwrap().iter().any(|row| row["key"] == "t1"), "{answer}");
    let refused = place.run(&["query", "memory.holo", "mark 't1' failed", "--model", &suffices]);
    assert!(refused.status != 0 && refused.stderr.contains("roles serve statements that read"), "{refused:#?}");
}

#[test]
fn a_loop_decides_by_a_model_and_its_decisions_are_training_data() {
    let place = Place::new();
    place.run(&["create", "memory.holo"]).ok();
    let url = serve(|prompt, inputs| match prompt.starts_with("You write the memory") {
        true => "<memory>I cite nothing.</memory>".to_owned(),
        false if inputs.contains("\"request\":\"price") => {
            r#"{"operations": ["READ", "WRITE"], "query": "price of UA123"}"#.to_owned()
        }
        false => r#"{"operations": ["WRITE"]}"#.to_owned(),
    });
    let input = "{\"observation\":\"UA123 price=$450\",\"tool\":\"search\",\"status\":\"success\",\"step\":1}\n\
                 {\"observation\":\"UA123 price=$450\",\"tool\":\"search\",\"status\":\"success\",\"step\":300,\
                 \"request\":\"price?\"}\n";
    let args = ["loop", "memory.holo", "--episode", "trip", "--model", &url];
    let run = place.run_with(&args, input).ok();
    let second: Value = serde_json::from_str(run.stdout.lines().nth(1).unwrap()).unwrap();
    assert_eq!(second["done"], json!(["READ", "WRITE"]), "{run:#?}");
    let exported = place.run(&["export", "memory.holo", "--training", "controller"]).ok();
    let lines: Vec<Value> = exported.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["r_mem"], &lines[0]["observation"]), (&json!(0.0), &json!("UA123 price=$450")));
    let (tokens, risky) = (lines[1]["tokens"].as_f64().unwrap(), &lines[1]["risky"]);
    assert_eq!((risky, &lines[1]["redundant"]), (&json!(true), &json!(true)), "{lines:?}");
    assert_eq!(lines[1]["request"], "price of UA123");
    assert!((lines[1]["r_mem"].as_f64().unwrap() + 2.0 + tokens / 1500.0).abs() < 1e-5, "{lines:?}");
}
