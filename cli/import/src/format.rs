//! The formats by name, and which files of a folder belong to each.

use crate::ImportError;
use std::fmt;
use std::str::FromStr;

/// A format that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Sessions of Claude Code.
    ClaudeCode,
    /// Rollouts of Codex.
    Codex,
    /// The export of ChatGPT.
    Chatgpt,
    /// The export of claude.ai.
    Claude,
    /// Messages of chat completions.
    Openai,
    /// Messages of the Anthropic API.
    Anthropic,
    /// The file of the MCP server `memory`.
    ServerMemory,
    /// The memories of Mem0.
    Mem0,
    /// Documents of the Memory Interchange Format.
    Mif,
    /// The SQLite file of LangGraph's store.
    Langgraph,
    /// An agent file of Letta.
    Letta,
    /// Notes.
    Markdown,
    /// A table as text.
    Csv,
    /// A table of columns.
    Parquet,
    /// An exported chat of WhatsApp.
    Whatsapp,
    /// The export of a Slack workspace.
    Slack,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Format; 16] = [
        Format::ClaudeCode,
        Format::Codex,
        Format::Chatgpt,
        Format::Claude,
        Format::Openai,
        Format::Anthropic,
        Format::ServerMemory,
        Format::Mem0,
        Format::Mif,
        Format::Langgraph,
        Format::Letta,
        Format::Markdown,
        Format::Csv,
        Format::Parquet,
        Format::Whatsapp,
        Format::Slack,
    ];

    /// The name on the command line and at the head of keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::Chatgpt => "chatgpt",
            Format::Claude => "claude",
            Format::Openai => "openai",
            Format::Anthropic => "anthropic",
            Format::ServerMemory => "server-memory",
            Format::Mem0 => "mem0",
            Format::Mif => "mif",
            Format::Langgraph => "langgraph",
            Format::Letta => "letta",
            Format::Markdown => "markdown",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::Whatsapp => "whatsapp",
            Format::Slack => "slack",
        }
    }

    /// True if a file of a folder or ZIP may be of this format, by its name.
    pub(crate) fn takes(self, name: &str) -> bool {
        let base = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let ends = |ends: &[&str]| ends.iter().any(|end| base.ends_with(end));
        match self {
            Format::ClaudeCode | Format::ServerMemory => ends(&[".jsonl", ".json"]),
            Format::Codex => base.starts_with("rollout-") && ends(&[".jsonl", ".json"]),
            Format::Chatgpt | Format::Claude => base.starts_with("conversations") && ends(&[".json"]),
            Format::Openai | Format::Anthropic | Format::Mem0 => ends(&[".json", ".jsonl", ".ndjson"]),
            Format::Mif => ends(&[".json"]),
            Format::Langgraph => ends(&[".db", ".sqlite", ".sqlite3"]),
            Format::Letta => ends(&[".af", ".json"]),
            Format::Markdown => ends(&[".md", ".markdown", ".mdx"]),
            Format::Csv => ends(&[".csv", ".tsv"]),
            Format::Parquet => ends(&[".parquet"]),
            Format::Whatsapp => ends(&[".txt"]),
            Format::Slack => ends(&[".json"]),
        }
    }

    /// Refuses a format whose reader was not built.
    pub(crate) fn check_built(self) -> Result<(), ImportError> {
        let missing = (self == Format::Parquet && cfg!(not(feature = "parquet")))
            || (self == Format::Langgraph && cfg!(not(feature = "langgraph")));
        if missing { Err(ImportError::Feature { format: self }) } else { Ok(()) }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = ImportError;

    fn from_str(name: &str) -> Result<Format, ImportError> {
        Format::ALL.into_iter().find(|format| format.as_str() == name).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
            ImportError::Option(format!("got the format '{name}', expected one of: {}", names.join(", ")))
        })
    }
}
