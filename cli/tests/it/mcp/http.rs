//! The protocol over HTTP: sockets and bytes.

use super::client::program;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

/// A server, killed at its end.
struct HttpServer {
    child: Child,
    address: String,
}

impl HttpServer {
    fn start(dir: &Path, args: &[&str]) -> HttpServer {
        let mut all = vec!["mcp", "--db", "m.holo", "--http", "127.0.0.1:0"];
        all.extend(args);
        let mut child = program(dir, &all).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("//").next().unwrap().trim_end_matches("/mcp").to_owned();
        HttpServer { child, address }
    }

    /// Sends a request; gives the status and the body.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        // A server that refuses early may close before all is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> (u16, String) {
        self.send("POST", "/mcp", headers, &message.to_string())
    }

    /// The answer to a request of the protocol before 2026.
    #[track_caller]
    fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, body) = self.post(&[("MCP-Protocol-Version", "2025-11-25")], &message);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn initialize() -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[test]
fn tools_are_called_over_http() {
    let dir = tempfile::tempdir().unwrap();
    let server = HttpServer::start(dir.path(), &[]);
    let (status, body) = server.post(&[], &initialize());
    assert_eq!(status, 200, "{body}");
    let begun: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(begun["result"]["serverInfo"]["name"], "holotype");
    let list = server.request("tools/list", json!({}));
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 8);
    let arguments = json!({"text": "the ferry leaves at seven", "source": "user"});
    server.request("tools/call", json!({"name": "record", "arguments": arguments}));
    let call = json!({"name": "recall", "arguments": {"query": "when does the ferry leave?"}});
    let found = server.request("tools/call", call.clone());
    assert_eq!(found["result"]["structuredContent"]["found"], 1, "{found}");
    // The protocol of 2026 has headers that repeat the body.
    let mut params = call;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params});
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "recall")];
    let (status, body) = server.post(&headers, &message);
    assert!(status == 200 && body.contains("\"resultType\":\"complete\""), "{status}: {body}");
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = HttpServer::start(dir.path(), &[]);
    let status = |headers: &[(&str, &str)]| server.post(headers, &initialize()).0;
    assert_eq!(status(&[("Host", "localhost:1")]), 200);
    assert_eq!(status(&[("Host", "evil.example.com")]), 403);
    assert_eq!(status(&[("Origin", "http://localhost:3000")]), 200);
    for origin in ["https://evil.example.com", "null", "http://localhost.evil.example.com", "garbage"] {
        assert_eq!(status(&[("Origin", origin)]), 403, "{origin}");
    }
    assert_eq!(server.send("GET", "/mcp", &[], "").0, 405);
    assert_eq!(server.send("POST", "/", &[], "{}").0, 404);
    assert_eq!(server.send("POST", "/mcp", &[], "garbage").0 / 100, 4);
    let (status, _) = server.send("POST", "/mcp", &[], &"x".repeat(17 << 20));
    assert!(status == 413 || status == 0, "{status}");
    assert_eq!(server.post(&[], &initialize()).0, 200);
}

#[test]
fn a_token_is_asked_of_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let secret = "0123456789abcdef";
    write_secret(&dir.path().join("token"), secret);
    let server = HttpServer::start(dir.path(), &["--token-file", "token"]);
    let status = |value: &str| server.post(&[("Authorization", value)], &initialize()).0;
    assert_eq!(server.post(&[], &initialize()).0, 401);
    assert_eq!(status("Bearer 0123456789abcdeg"), 401);
    assert_eq!(status(secret), 401);
    assert_eq!(status(&format!("Bearer {secret}")), 200);
}

#[test]
fn an_address_for_others_needs_a_token_that_others_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let mut all = vec!["mcp", "--db", "m.holo"];
        all.extend(args);
        let output = program(dir.path(), &all).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--http", "0.0.0.0:0"]).contains("--token-file"));
    assert!(refused(&["--http", "nonsense"]).contains("127.0.0.1:8420"));
    assert!(refused(&["--token-file", "token"]).contains("--http"));
    write_secret(&dir.path().join("short"), "abc");
    assert!(refused(&["--http", "0.0.0.0:0", "--token-file", "short"]).contains("at least 16"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let open = dir.path().join("open");
        std::fs::write(&open, "0123456789abcdef").unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refused(&["--http", "0.0.0.0:0", "--token-file", "open"]).contains("chmod 600"));
    }
}

fn write_secret(path: &Path, secret: &str) {
    std::fs::write(path, secret).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}
