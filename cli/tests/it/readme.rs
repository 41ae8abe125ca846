//! Every shell session of the documents runs, and prints what the document says.
//!
//! A session is a fenced block called `console`. `$ ` begins a command, `> ` goes on with it, the lines after it are
//! what it prints, stdout and stderr together. `...` on a line of its own stands for any lines, inside a line for any
//! text. The sessions of one document share an empty directory and run in order.

use std::path::Path;
use std::process::Command;

const DOCUMENTS: &[(&str, &str)] = &[
    ("README.md", include_str!("../../../README.md")),
    ("docs/memory.md", include_str!("../../../docs/memory.md")),
    ("docs/query-language.md", include_str!("../../../docs/query-language.md")),
    ("docs/format.md", include_str!("../../../docs/format.md")),
    ("docs/hooks.md", include_str!("../../../docs/hooks.md")),
    ("docs/mcp.md", include_str!("../../../docs/mcp.md")),
    ("docs/inspector.md", include_str!("../../../docs/inspector.md")),
    ("docs/operations.md", include_str!("../../../docs/operations.md")),
    ("docs/scale.md", include_str!("../../../docs/scale.md")),
    ("docs/embedders.md", include_str!("../../../docs/embedders.md")),
    ("docs/import.md", include_str!("../../../docs/import.md")),
];

/// One command with what it should print.
struct Step {
    command: String,
    expected: Vec<String>,
}

#[test]
fn every_session_prints_what_the_document_says() {
    let mut run = 0;
    for (name, document) in DOCUMENTS {
        let dir = tempfile::tempdir().expect("a temporary directory");
        if document.contains("--embedder model") {
            add_model(&dir.path().join("model"));
        }
        for step in steps(document) {
            let printed = shell(&step.command, dir.path());
            assert!(
                matches(&step.expected, &printed),
                "{name}: `{}` printed\n{}\n\nexpected\n{}",
                step.command,
                printed.join("\n"),
                step.expected.join("\n")
            );
            run += 1;
        }
    }
    assert!(run > 3, "{run} commands");
}

fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), expected: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ").filter(|_| step.expected.is_empty()) {
                Some(more) => {
                    step.command.push('\n');
                    step.command.push_str(more);
                }
                None => step.expected.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Puts a small static model where a document has its model.
fn add_model(folder: &Path) {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/it/embedder/static_model/plain");
    std::fs::create_dir(folder).expect("a new folder");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(model.join(file), folder.join(file)).expect("a file of the model");
    }
}

/// The output of a command in which `holotype` is the program under test.
fn shell(command: &str, dir: &Path) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_holotype"));
    let own = program.parent().expect("the program lies in a directory");
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(own.to_owned()).chain(std::env::split_paths(&inherited));
    let path = std::env::join_paths(paths).expect("the build directory can stand in PATH");
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(dir)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .output()
        .expect("there is a shell");
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim_end().to_owned()).collect()
}

/// True if the lines printed are those expected; `...` alone stands for any number of lines.
fn matches(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "..." => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        Some((first, rest)) => match printed.split_first() {
            Some((line, others)) => line_matches(first.trim_end(), line) && matches(rest, others),
            None => false,
        },
    }
}

/// True if a line is the one expected; `...` inside stands for any text.
fn line_matches(expected: &str, line: &str) -> bool {
    let (first, mut rest_expected) = match expected.split_once("...") {
        Some((first, rest)) => (first, Some(rest)),
        None => (expected, None),
    };
    let Some(mut line) = line.strip_prefix(first) else { return false };
    while let Some(expected) = rest_expected {
        let Some((part, rest)) = expected.split_once("...") else { return line.ends_with(expected) };
        let Some(at) = line.find(part) else { return false };
        line = &line[at + part.len()..];
        rest_expected = Some(rest);
    }
    line.is_empty()
}

#[test]
fn three_dots_stand_for_anything() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let holds = |expected: &str, printed: &str| matches(&lines(expected), &lines(printed));
    assert!(holds("a\n...\nc", "a\nb\nb\nc"));
    assert!(holds("...", ""));
    assert!(holds("a...c...e", "abcde"));
    assert!(!holds("a...c...e", "abde"));
    assert!(!holds("a...", "ba"));
    assert!(!holds("a\nb", "a"));
    assert!(!holds("a", "a\nb"));
}
