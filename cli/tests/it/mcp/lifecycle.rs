//! Beginning, ending and everything that is no message.

use super::client::{PROGRAM, Session, program, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn each_version_is_spoken_and_others_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut session = Session::start(dir.path(), &["--db", "m.holo"]);
        let begun = session.initialize(version, json!({}));
        assert_eq!(begun["protocolVersion"], version);
        assert_eq!(begun["serverInfo"]["name"], "holotype");
        let instructions = begun["instructions"].as_str().unwrap();
        assert!(instructions.len() <= 1_000, "{} bytes", instructions.len());
        for capability in ["tools", "prompts", "resources"] {
            assert!(begun["capabilities"][capability].is_object(), "{begun:#}");
        }
        assert_eq!(session.end().0, 0);
    }
    let mut session = Session::start(dir.path(), &["--db", "m.holo"]);
    assert_eq!(session.initialize("1999-01-01", json!({}))["protocolVersion"], "2025-11-25");
}

#[test]
fn the_stateless_protocol_needs_no_handshake() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &["--db", "m.holo"]);
    let discovered = session.request("server/discover", json!({"_meta": meta("2026-07-28")}))["result"].clone();
    assert!(discovered["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{discovered:#}");
    assert!(discovered["ttlMs"].as_u64().unwrap() > 0);
    let list = session.request("tools/list", json!({"_meta": meta("2026-07-28")}))["result"].clone();
    assert_eq!(list["resultType"], "complete");
    assert!(list["ttlMs"].as_u64().unwrap() > 0 && list["cacheScope"] == "public", "{list}");
    let refused = session.request("tools/list", json!({"_meta": meta("2031-01-01")}))["error"].clone();
    assert_eq!(refused["code"], -32022, "{refused}");
    assert!(refused["data"]["supported"].as_array().unwrap().contains(&json!("2025-11-25")));
    let arguments = json!({"text": "hello", "source": "user"});
    let call = json!({"name": "record", "arguments": arguments, "_meta": meta("2026-07-28")});
    let recorded = session.request("tools/call", call)["result"].clone();
    assert!(recorded["structuredContent"]["key"].is_string(), "{recorded}");
}

#[test]
fn lines_that_are_no_messages_are_answered_and_end_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &["--db", "m.holo"]);
    // Before a session began, a stray notification or answer means nothing.
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    session.send(&json!({"jsonrpc": "2.0", "id": 77, "result": {}}));
    session.initialize("2025-11-25", json!({}));
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    for (line, code) in [
        (&b"garbage\n"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\n", -32700),
        (b"\xff\xfe\x00\n", -32700),
        (deep.as_bytes(), -32700),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n", -32600),
        (b"{\"method\":5}\n", -32600),
        (b"null\n", -32600),
    ] {
        session.send_bytes(line);
        let answer = session.read();
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    session.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":5}\n");
    let answer = session.read();
    assert!(answer["id"] == 9 && answer["error"].is_object(), "{answer}");
    // Blank lines, a line end of Windows and a mark of UTF-8 are no faults.
    session.send_bytes(b"\n  \r\n\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\r\n");
    assert_eq!(session.read(), json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
    let unknown = session.request("no/such", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(session.end().0, 0);
}

#[test]
fn a_line_without_end_is_answered_and_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let part = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        session.send_bytes(&part);
    }
    session.send_bytes(b"\n");
    let answer = session.read();
    assert!(answer["error"]["message"].as_str().unwrap().contains("16 MiB"), "{answer}");
    assert_eq!(session.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn answers_under_way_are_written_before_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut input = String::new();
    let client = json!({"name": "test", "version": "1"});
    let begin = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    input += &format!("{}\n", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}));
    for id in 1..=20 {
        let arguments = json!({"text": format!("event {id}"), "source": "user"});
        let call = json!({"name": "record", "arguments": arguments});
        input += &format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}));
    }
    let call = json!({"name": "query", "arguments": {"statement": "count traces"}});
    // The last line has no end.
    input += &json!({"jsonrpc": "2.0", "id": 21, "method": "tools/call", "params": call}).to_string();
    let mut child =
        program(dir.path(), &["mcp", "--db", "m.holo"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 22);
    // Calls ran in the order in which they came.
    let count = answers.iter().find(|answer| answer["id"] == 21).unwrap();
    assert_eq!(count["result"]["structuredContent"]["rows"][0]["count"], 20, "{count}");
}

#[test]
fn an_input_that_ends_at_once_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::start(dir.path(), &["--db", "m.holo"]);
    assert_eq!(session.end(), (0, String::new()));
}

#[test]
fn the_database_is_the_projects_then_the_users() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("project/src");
    std::fs::create_dir_all(&inner).unwrap();
    let record = |session: &mut Session| {
        session.initialize("2025-11-25", json!({}));
        session.record(json!({"text": "x", "source": "user"}))
    };
    let mut session = Session::start(&inner, &[]);
    record(&mut session);
    session.end();
    // The home of the test is its working folder.
    assert!(inner.join(".local/share/holotype/memory.holo").is_dir());
    std::fs::create_dir(dir.path().join("project/.holotype")).unwrap();
    let mut session = Session::start(&inner, &[]);
    record(&mut session);
    session.end();
    assert!(dir.path().join("project/.holotype/memory.holo").is_dir());
    let package = dir.path().join("node_modules/x");
    std::fs::create_dir_all(&package).unwrap();
    let refused = program(&package, &["mcp", "--db", "m.holo"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("node_modules"), "{refused:?}");
    assert!(!package.join("m.holo").exists());
}

#[test]
fn an_unusable_database_is_told_on_stderr() {
    let dir = tempfile::tempdir().unwrap();
    let missing =
        program(dir.path(), &["mcp", "--db", "no.holo", "--read-only"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(missing.status.code(), Some(3), "{missing:?}");
    std::fs::write(dir.path().join("file"), "text").unwrap();
    let file = program(dir.path(), &["mcp", "--db", "file"]).stdin(Stdio::null()).output().unwrap();
    assert!(!file.status.success() && !file.stderr.is_empty() && file.stdout.is_empty(), "{PROGRAM}: {file:?}");
}

#[test]
fn prompts_and_resources_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::begin(dir.path(), &[]);
    let prompts = session.request("prompts/list", json!({}))["result"]["prompts"].clone();
    assert_eq!(prompts.as_array().unwrap().len(), 1);
    let name = &prompts[0]["name"];
    let got = session.request("prompts/get", json!({"name": name, "arguments": {"question": "what\nis \"it\"?"}}));
    let taught = got["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(taught.contains("\"what\\nis \\\"it\\\"?\"") && taught.contains("square brackets"), "{taught}");
    assert!(session.request("prompts/get", json!({"name": name}))["error"]["message"].is_string());

    let episode = "trip 42/ä";
    let key = session.record(json!({"text": "the train leaves at 9", "source": "user", "episode": episode}));
    let list = session.request("resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(list[0]["uri"], "holotype://episode/trip%2042%2F%C3%A4", "{list}");
    let read = |session: &mut Session, uri: &str| session.request("resources/read", json!({"uri": uri}));
    let text_of = |read: &Value| read["result"]["contents"][0]["text"].as_str().unwrap_or_default().to_owned();
    let whole = read(&mut session, list[0]["uri"].as_str().unwrap());
    assert!(text_of(&whole).contains("\"the train leaves at 9\""), "{whole}");
    let item = read(&mut session, &format!("holotype://item/{}", key.replace('~', "%7E")));
    assert!(text_of(&item).contains("\"the train leaves at 9\""), "{item}");
    let templates = session.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
    assert_eq!(templates[0]["uriTemplate"], "holotype://item/{key}");
    for uri in ["holotype://item/none", "holotype://item/", "file:///etc/passwd", "holotype://item/%zz"] {
        let missing = read(&mut session, uri);
        assert_eq!(missing["error"]["code"], -32002, "{missing}");
    }
    let unknown = session.request("tools/call", json!({"name": "recal", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("`recall`"), "{unknown}");
    let got = session.call("get", json!({"key": key}));
    assert!(text(&got).contains("the train leaves at 9"));
}
