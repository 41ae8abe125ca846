//! `holotype try`: an agent's session is recorded, cleared and remembered, in a minute and without a project.
//!
//! Every step is a call of this program as a harness or a user makes it: `hook` with the JSON of Claude Code on its
//! standard input, `recall` and `why` on the database that the hooks wrote. Nothing is staged but the session itself.
//! It happens in a folder for temporary files, which is removed at the end unless `--keep` names another.

use crate::failure::{Failure, Problem, Status};
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The session that is recorded.
const SESSION: &str = "try-1";
/// The question that is asked when the session is gone.
const QUESTION: &str = "why did the migration fail on staging?";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep the folder of the session under this name [default: it is removed at the end]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let scratch = match &args.keep {
        Some(_) => None,
        None => Some(crate::demo::Scratch::new()?),
    };
    let folder = match (&args.keep, &scratch) {
        (Some(folder), _) => folder.clone(),
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => env::temp_dir(),
    };
    let made = folder.join(".holotype");
    // The calls run in the folder, so that a relative name would mean another place to them.
    let place = fs::create_dir_all(&made).and_then(|()| fs::canonicalize(&made));
    let place = place.map_err(|error| Problem::io(&made, "create", &error))?;
    let trial = Trial { database: place.join("memory.holo"), folder };
    let mut out = io::stdout().lock();
    let told = trial.tell(&mut out, args.keep.is_some());
    out.flush()?;
    told.map(|()| Status::Done)
}

/// The folder of the session and its database.
struct Trial {
    folder: PathBuf,
    database: PathBuf,
}

impl Trial {
    fn tell(&self, out: &mut impl Write, kept: bool) -> Result<(), Failure> {
        writeln!(out, "1. An agent works. Its harness calls `holotype hook` at each event.\n")?;
        for (shown, event) in session() {
            self.hook(&event)?;
            writeln!(out, "   {shown}")?;
        }
        writeln!(out, "\n2. The session is cleared: the agent knows nothing of it.")?;
        let told = self.hook(&event("SessionStart", json!({"source": "clear", "session_id": "try-2"})))?;
        let told: Value = serde_json::from_str(told.trim()).unwrap_or_default();
        let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
        writeln!(out, "   What the hook tells the new session:\n")?;
        for line in context.lines() {
            writeln!(out, "   | {line}")?;
        }
        writeln!(out, "\n3. It is asked: {QUESTION}\n")?;
        let database = self.database.display().to_string();
        let statement = format!("recall '{}' include failed limit 4", QUESTION.trim_end_matches('?'));
        self.show(out, &["query", &database, &statement])?;
        writeln!(out, "\n4. The evidence: the call as it was recorded, with its hash in the log.\n")?;
        self.show(out, &["why", &database, &format!("{SESSION}/call-2")])?;
        writeln!(out, "\nIn a project: holotype init --for claude-code --hooks --mcp")?;
        if kept {
            writeln!(out, "The database is kept in {database}")?;
        }
        Ok(())
    }

    /// Calls the hook as Claude Code does, and gives what it prints.
    fn hook(&self, event: &Value) -> Result<String, Failure> {
        self.call(&["hook", "--for", "claude-code"], &event.to_string())
    }

    fn show(&self, out: &mut impl Write, args: &[&str]) -> Result<(), Failure> {
        for line in self.call(args, "")?.lines() {
            writeln!(out, "   {line}")?;
        }
        Ok(())
    }

    /// Runs this program in the folder of the session.
    fn call(&self, args: &[&str], input: &str) -> Result<String, Failure> {
        let failed = |error: io::Error| Problem::io(Path::new("holotype"), "run", &error);
        let program = env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.folder).env("HOLOTYPE_DB", &self.database);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).map_err(failed)?;
        }
        let output = child.wait_with_output().map_err(failed)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// An event of Claude Code.
fn event(name: &str, more: Value) -> Value {
    let mut event = json!({"session_id": SESSION, "hook_event_name": name});
    if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
        event.extend(more);
    }
    event
}

/// The events of the session, each with the line that is shown.
fn session() -> Vec<(&'static str, Value)> {
    let failed = "ERROR: relation \"orders\" is locked by the nightly export (pid 812)";
    vec![
        ("session begins", event("SessionStart", json!({"source": "startup"}))),
        (
            "user:  run the migration on staging; production has to wait until Friday",
            event(
                "UserPromptSubmit",
                json!({"prompt_id": "ask-1",
                       "prompt": "run the migration on staging; production has to wait until Friday"}),
            ),
        ),
        (
            "tool:  Bash  db status --env staging               done",
            event(
                "PostToolUse",
                json!({"tool_name": "Bash", "tool_use_id": "call-1",
                       "tool_input": {"command": "db status --env staging"},
                       "tool_response": {"stdout": "schema 41, 1 migration waits"}}),
            ),
        ),
        (
            "tool:  Bash  db migrate --env staging              failed",
            event(
                "PostToolUseFailure",
                json!({"tool_name": "Bash", "tool_use_id": "call-2",
                       "tool_input": {"command": "db migrate --env staging"},
                       "error": failed}),
            ),
        ),
        (
            "agent: the migration failed: the nightly export locks the table orders until 04:00",
            event(
                "Stop",
                json!({"stop_hook_active": false,
                       "last_assistant_message":
                           "the migration failed: the nightly export locks the table orders until 04:00"}),
            ),
        ),
        ("session ends", event("SessionEnd", json!({"reason": "clear"}))),
    ]
}
