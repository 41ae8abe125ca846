//! The settings of each harness that name its hooks and MCP servers: where they are and what is put there.
//!
//! | harness | hooks | MCP server | unit of timeouts |
//! |---|---|---|---|
//! | Claude Code | `.claude/settings.json` | `.mcp.json`; of the user `.claude.json` | seconds |
//! | Codex | `.codex/hooks.json` | config.toml in `.codex` | seconds |
//! | Gemini CLI | `.gemini/settings.json` | the same | milliseconds |
//! | Cursor | `.cursor/hooks.json` | `.cursor/mcp.json` | none |
//!
//! A definition has the same bytes in each run: Codex trusts a hook by its definition.

use crate::hook::Harness;
use serde_json::{Value, json};

/// The time that a harness gives a hook, in seconds. The hook ends long before.
const TIMEOUT_S: u64 = 10;

/// The sorts of entries to set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) mcp: bool,
    pub(super) hooks: bool,
}

/// A place in a file of settings.
#[derive(Debug)]
pub(super) struct Setting {
    /// The path below the project or the user's home.
    pub(super) path: String,
    pub(super) puts: Vec<Put>,
}

/// An entry to put into settings.
#[derive(Debug)]
pub(super) enum Put {
    /// A member that has this value where there is none.
    Default { path: Vec<&'static str>, value: Value },
    /// A member that has this value.
    Member { path: Vec<&'static str>, value: Value },
    /// An element of an array, known again by a text in it.
    Element { path: Vec<&'static str>, value: Value, known_by: String },
}

/// The settings of a harness; none of `generic`, whose settings nobody knows.
pub(super) fn of(harness: Harness, user: bool, wanted: Wanted, program: &str) -> Vec<Setting> {
    let (hooks_file, mcp_file, events): (&str, &str, &[&'static str]) = match harness {
        Harness::ClaudeCode => (
            ".claude/settings.json",
            if user { ".claude.json" } else { ".mcp.json" },
            &[
                "SessionStart",
                "UserPromptSubmit",
                "PostToolUse",
                "PostToolUseFailure",
                "Stop",
                "SubagentStop",
                "PreCompact",
                "PostCompact",
                "SessionEnd",
            ],
        ),
        Harness::Codex => (
            ".codex/hooks.json",
            ".codex/config.toml",
            &["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "PreCompact", "PostCompact", "SessionEnd"],
        ),
        Harness::Gemini => (
            ".gemini/settings.json",
            ".gemini/settings.json",
            &["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"],
        ),
        Harness::Cursor => (
            ".cursor/hooks.json",
            ".cursor/mcp.json",
            &[
                "sessionStart",
                "beforeSubmitPrompt",
                "postToolUse",
                "postToolUseFailure",
                "afterAgentResponse",
                "stop",
                "preCompact",
                "sessionEnd",
            ],
        ),
        Harness::Generic => return Vec::new(),
    };
    let mut settings: Vec<Setting> = Vec::new();
    let mut put = |file: &str, puts: Vec<Put>| match settings.iter_mut().find(|setting| setting.path == file) {
        Some(setting) => setting.puts.extend(puts),
        None => settings.push(Setting { path: file.to_owned(), puts }),
    };
    if wanted.hooks {
        let mut puts = Vec::new();
        if harness == Harness::Cursor {
            puts.push(Put::Default { path: vec!["version"], value: json!(1) });
        }
        puts.extend(events.iter().map(|event| Put::Element {
            path: vec!["hooks", event],
            value: definition(harness, event, program),
            known_by: known_by(harness),
        }));
        put(hooks_file, puts);
    }
    if wanted.mcp {
        let section = if harness == Harness::Codex { "mcp_servers" } else { "mcpServers" };
        let value = json!({"command": program, "args": ["mcp"]});
        put(mcp_file, vec![Put::Member { path: vec![section, "holotype"], value }]);
    }
    settings
}

/// The end of the command of each hook of ours.
pub(super) fn known_by(harness: Harness) -> String {
    format!("hook --for {harness}")
}

fn definition(harness: Harness, event: &str, program: &str) -> Value {
    let program = if program.contains(' ') { format!("\"{program}\"") } else { program.to_owned() };
    let command = format!("{program} {}", known_by(harness));
    match harness {
        Harness::Cursor => json!({"command": command}),
        Harness::Gemini => {
            let hook = json!({
                "name": "holotype", "type": "command", "command": command, "timeout": TIMEOUT_S * 1_000,
            });
            json!({"matcher": "*", "hooks": [hook]})
        }
        _ => {
            // Codex gives the end of a session 3 seconds whatever is asked for.
            let timeout = if event == "SessionEnd" { 3 } else { TIMEOUT_S };
            let hook = json!({"type": "command", "command": command, "timeout": timeout});
            match event.contains("ToolUse") {
                true => json!({"matcher": "*", "hooks": [hook]}),
                false => json!({"hooks": [hook]}),
            }
        }
    }
}

/// The advice for a harness whose settings are not known.
pub(super) fn generic(program: &str) -> String {
    format!(
        "have your harness run `{program} hook --for generic` at each event, with the event as JSON on stdin \
         (docs/hooks.md), and `{program} mcp` as an MCP server"
    )
}

/// The next step of the user, if there is one.
pub(super) fn next_step(harness: Harness, wanted: Wanted) -> Option<&'static str> {
    match harness {
        Harness::Codex if wanted.hooks => Some("Codex runs new hooks after you trust them: type /hooks in it once"),
        _ => None,
    }
}

/// The files of settings that may name hooks of ours, below the project or the user's home.
pub(crate) fn hook_files(harness: Harness) -> Option<&'static str> {
    match harness {
        Harness::ClaudeCode => Some(".claude/settings.json"),
        Harness::Codex => Some(".codex/hooks.json"),
        Harness::Gemini => Some(".gemini/settings.json"),
        Harness::Cursor => Some(".cursor/hooks.json"),
        Harness::Generic => None,
    }
}
