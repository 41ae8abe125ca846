//! The inspector from a shell: files of one memory, and the server's views and changes over HTTP.

use crate::command_line::program::Place;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A running inspector, and the cookie that its token was exchanged for.
struct Inspector {
    process: Child,
    address: String,
    cookie: String,
}

impl Drop for Inspector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Inspector {
    fn start(place: &Place, args: &[&str]) -> Inspector {
        place.write("token", "a token of many letters\n");
        let mut command = place.command(&[&["inspect", "memory.holo", "--token-file", "token"], args].concat());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim().strip_prefix("http://").and_then(|url| url.split('/').next()).unwrap().to_owned();
        let mut started = Inspector { process, address, cookie: String::new() };
        let (status, head, _) = started.ask("POST", "/session", "a token of many letters");
        assert_eq!(status, 204, "{head}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        started.cookie = cookie.split(';').next().unwrap().to_owned();
        started
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, cookie, len) = (&self.address, &self.cookie, body.len());
        let lines = [
            format!("{method} {path} HTTP/1.1"),
            format!("Host: {host}\r\nCookie: {cookie}\r\nContent-Length: {len}"),
            format!("Connection: close\r\n\r\n{body}"),
        ];
        stream.write_all(lines.join("\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.ask("POST", path, &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }
}

/// The data of a file that was exported with `--plain`.
fn data(place: &Place, name: &str) -> Value {
    let page = String::from_utf8(place.read(name)).unwrap();
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"memory\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn keys(data: &Value) -> Vec<&str> {
    data["items"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect()
}

#[test]
fn a_file_has_the_items_that_were_asked_for() {
    let place = Place::with_trip();
    place.run(&["query", "memory.holo", "record turn 'and a seat?' in episode 'trip-43' with key = 't4'"]).ok();
    for (name, args, expected) in [
        ("all.html", vec![], vec!["t4", "r1", "t3", "t2", "t1"]),
        ("where.html", vec!["--where", "episode = 'trip-43'"], vec!["t4"]),
        ("since.html", vec!["--since", "1"], vec!["t4"]),
        ("scope.html", vec!["--scope", "r1"], vec!["r1", "t1"]),
        ("down.html", vec!["--scope", "t1"], vec!["t1", "r1"]),
        ("query.html", vec!["--query", "find facts return key"], vec!["r1", "t1"]),
        ("recall.html", vec!["--query", "recall 'a bag' through traces 1 limit 1"], vec!["t3"]),
        ("most.html", vec!["--max-items", "2"], vec!["t4", "r1"]),
    ] {
        place.run(&[&["export", "memory.holo", "--html", name, "--plain"], args.as_slice()].concat()).ok();
        let data = data(&place, name);
        assert_eq!(keys(&data), expected, "{name}");
        assert_eq!(data["overview"]["left_out"], 5 - expected.len(), "{name}");
        assert!(data["overview"]["note"].as_str().unwrap().starts_with("holotype/"), "the head is signed: {name}");
    }
    let again = place.run(&["export", "memory.holo", "--html", "all.html"]);
    assert_eq!(again.status, 2, "{again:#?}");
    assert!(again.stderr.contains("all.html: the file exists") && again.stderr.contains("--overwrite"), "{again:#?}");
    place.run(&["export", "memory.holo", "--html", "all.html", "--overwrite"]).ok();
    let neither = place.run(&["export", "memory.holo", "--html", "no.html", "--query", "count items by kind"]);
    assert!(neither.status != 0 && neither.stderr.contains("neither `item` nor `key`"), "{neither:#?}");
    assert!(!place.path("no.html").exists());
}

#[test]
fn a_redacted_file_has_lengths_for_texts() {
    let place = Place::with_trip();
    place.run(&["query", "memory.holo", "mark 't1' failed because 'Mara said so </script><b>'"]).ok();
    place.run(&["export", "memory.holo", "--html", "open.html", "--plain"]).ok();
    place.run(&["export", "memory.holo", "--html", "closed.html", "--plain", "--redact"]).ok();
    assert!(data(&place, "open.html").to_string().contains("Mara said so </script><b>"));
    let closed = data(&place, "closed.html");
    let told = closed.to_string();
    for text in ["$450", "Is that with", "Mara said so", "UA123 to"] {
        assert!(!told.contains(text), "{text} is in {told}");
    }
    assert_eq!(closed["items"][0]["text"], "(16 characters)");
}

#[test]
fn the_views_answer_over_http() {
    let place = Place::with_trip();
    let with = "key = 't4', labels = 'user:7', time = '2026-01-09T08:00:00Z'";
    let labelled = &format!("record turn 'a window seat' in episode 'trip-43' with {with}");
    place.run(&["query", "memory.holo", labelled]).ok();
    let inspector = Inspector::start(&place, &[]);
    let story = inspector.get("/api/why/r1");
    assert_eq!((&story["item"]["key"], &story["targets"]["t1"]["key"]), (&json!("r1"), &json!("t1")));
    let facets = inspector.get("/api/facets");
    assert_eq!(facets["facets"]["labels"], json!([{"labels": "user:7", "count": 1}]));
    assert_eq!(facets["facets"]["kind"][0], json!({"kind": "call", "count": 2}));
    let listed = |query: &str| {
        let found = inspector.get(&format!("/api/items?{query}"));
        found["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("labels=user%3A7"), ["t4"]);
    assert_eq!(listed("since=2026-01-09"), ["t4"]);
    assert_eq!(listed("since=2026-01-05T10:05:00Z&until=2026-01-05T10:06:00Z"), ["t2"]);
    assert_eq!(listed("episode=trip-42&kind=turn&q=bag"), ["t3"]);
    assert_eq!(inspector.get("/api/facets?q=bag")["facets"]["episode"], json!([{"episode": "trip-42", "count": 1}]));
    let health = inspector.get("/api/health?quotes=1&index=1&audit=1");
    assert_eq!((&health["quotes"]["checked"], &health["quotes"]["holding"]), (&json!(1), &json!(1)));
    assert_eq!(health["index"][0]["recall"], 1.0);
    assert!(health["audit"].as_array().unwrap().len() > 5 && health["lease"]["held"].is_boolean());
    assert!(health["verified"].is_null(), "what was not asked for is not measured");
    let (status, run) = inspector.post("/api/recall", &json!({"question": "UA123", "clauses": "in episode 'trip-42'"}));
    assert_eq!(status, 200);
    let funnel = run["funnel"].as_array().unwrap();
    assert_eq!((&funnel[0]["step"], &funnel[funnel.len() - 1]["step"]), (&json!("visible"), &json!("answer")));
    assert!(funnel.iter().any(|step| step["step"] == "traces" && step["micros"].is_u64()), "{funnel:?}");
}

#[test]
fn the_page_changes_a_memory_only_where_that_is_allowed() {
    let place = Place::with_trip();
    let change = json!({"key": "t1", "as": "failed", "because": "prices of 2024"});
    let question = json!({"question": "UA123", "clauses": ""});
    {
        let inspector = Inspector::start(&place, &[]);
        assert_eq!(inspector.get("/api/rights"), json!({"can_write": false}));
        assert_eq!(inspector.post("/api/change", &change).0, 403);
        assert_eq!(inspector.post("/api/receipt", &question).0, 403);
    }
    let inspector = Inspector::start(&place, &["--allow-write"]);
    assert_eq!(inspector.get("/api/rights"), json!({"can_write": true}));
    let (status, told) = inspector.post("/api/change", &change);
    assert_eq!(status, 200, "{told}");
    assert!(told["notes"].as_array().unwrap().contains(&json!("1 fact is now unsupported: r1")), "{told}");
    assert_eq!(inspector.get("/api/why/r1")["item"]["support"], "unsupported");
    let diff = inspector.get("/api/diff");
    assert_eq!(diff["changed"].as_array().unwrap().len(), 3, "{diff}");
    assert_eq!(diff["events"][0]["because"], "prices of 2024");
    for wrong in [json!({"key": "t1", "as": "failed"}), json!({"key": "t1", "as": "forget", "because": "x"})] {
        assert_eq!(inspector.post("/api/change", &wrong).0, 400);
    }
    let (_, kept) = inspector.post("/api/receipt", &question);
    let receipts = inspector.get("/api/receipts");
    assert_eq!(receipts["receipts"][0]["receipt"], kept["receipt"]);
    let (status, again) = inspector.post("/api/replay", &kept);
    assert_eq!(status, 200, "{again}");
    assert!(again["answer"]["notes"].to_string().contains("byte for byte"), "{again}");
}
