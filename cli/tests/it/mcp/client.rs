//! A client that writes lines and reads lines.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_holotype");

/// The program in a folder, with nothing of the user who runs the test.
pub(crate) fn program(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).current_dir(dir).env_remove("HOLOTYPE_DB").env_remove("XDG_DATA_HOME").env("HOME", dir);
    command
}

/// A server and the two ends of its streams.
#[derive(Debug)]
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Session {
    /// Starts a server; nothing is sent yet.
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Session {
        let mut all = vec!["mcp"];
        all.extend(args);
        let mut child = program(dir, &all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        Session { child, input, output, next: 0 }
    }

    /// Starts a server on `m.holo` of the folder, and initializes it.
    pub(crate) fn begin(dir: &Path, args: &[&str]) -> Session {
        let mut all = vec!["--db", "m.holo"];
        all.extend(args);
        let mut session = Session::start(dir, &all);
        session.initialize("2025-11-25", json!({}));
        session
    }

    pub(crate) fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
        let answer = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer["result"].clone()
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// The next line of the server.
    #[track_caller]
    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the output is text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and gives its result, whether it is an error or not.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must succeed, and gives its structured content.
    #[track_caller]
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result:#}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail, and gives the text of the error.
    #[track_caller]
    pub(crate) fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        text(&result)
    }

    /// Records an event and gives its key.
    #[track_caller]
    pub(crate) fn record(&mut self, arguments: Value) -> String {
        self.done("record", arguments)["key"].as_str().expect("a key").to_owned()
    }

    /// Ends the input; gives the exit status and what else the server wrote.
    pub(crate) fn end(mut self) -> (i32, String) {
        self.input = None;
        let mut rest = String::new();
        while self.output.read_line(&mut rest).expect("the output is text") > 0 {}
        let status = self.child.wait().expect("the server ends");
        (status.code().expect("the server ends by itself"), rest)
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the server runs");
        self.child.wait().expect("the server ends");
    }
}

/// The text of a result.
#[track_caller]
pub(crate) fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}
