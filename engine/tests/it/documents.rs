//! The documents agree with the repository: the README's first program is the example of that name (and runs as a
//! doctest), links lead to files, the code map names files that are there, and tables say what the code says.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{Holotype, Options, Source};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const MEMORY: &str = include_str!("../../../docs/memory.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_first_program_is_the_first_example() {
    let readme = include_str!("../../../README.md");
    let program = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let program = program.expect("the README has a Rust program");
    let example = include_str!("../../examples/first.rs");
    let example: String = example.lines().skip_while(|line| line.starts_with("//!") || line.is_empty()).fold(
        String::new(),
        |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        },
    );
    assert_eq!(program, example);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/memory.md"];
    for document in documents.into_iter().chain([
        "docs/query-language.md",
        "docs/format.md",
        "docs/python.md",
        "docs/rust.md",
        "docs/models.md",
        "docs/lab.md",
        "docs/mcp.md",
    ]) {
        let path = root().join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{document} links to {link}");
            if anchor.is_empty() {
                continue;
            }
            let headings = std::fs::read_to_string(&target).unwrap();
            let known = headings.lines().filter(|line| line.starts_with('#')).map(|line| {
                line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-").replace([',', '`', ':'], "")
            });
            assert!(known.into_iter().any(|known| known == anchor), "{document} links to {link}");
        }
    }
}

#[test]
fn the_code_map_names_files_that_are_there_and_each_once() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (mut krate, mut named) = ("", HashSet::new());
    for line in text.lines() {
        if line.starts_with('#') {
            krate = line.strip_prefix("### `").and_then(|rest| rest.split('`').next()).unwrap_or("");
        }
        let Some(files) = line.strip_prefix("| `").and_then(|row| row.split(" | ").next()) else { continue };
        for file in files.split(", ").map(|file| file.trim_matches('`')) {
            assert!(root().join(krate).join("src").join(file).exists(), "ARCHITECTURE.md names {krate}src/{file}");
            assert!(named.insert((krate, file)), "ARCHITECTURE.md names {krate}src/{file} twice");
        }
    }
    assert!(named.len() > 80, "{} files", named.len());
}

#[test]
fn the_tables_of_the_memory_model_are_those_of_the_code() {
    for source in Source::ALL {
        assert!(
            MEMORY.contains(&format!("| {source} | {:.1} |", source.weight())),
            "docs/memory.md: weight of {source}"
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("memory.holo"), Options::default()).unwrap();
    let outputs = database.query("show settings", &Params::new()).unwrap();
    let [Output::Table(settings)] = outputs.as_slice() else { panic!("show gives a table") };
    assert!(settings.rows.len() >= 8);
    for row in &settings.rows {
        let cell = |index: usize| row[index].as_ref().map(ToString::to_string).unwrap_or_default();
        let described = MEMORY.lines().any(|line| {
            let cells: Vec<&str> =
                line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
            cells.first() == Some(&cell(0).as_str()) && cells.get(2) == Some(&cell(2).as_str())
        });
        assert!(described, "docs/memory.md: setting {} with default {}", cell(0), cell(2));
    }
}

/// The file of a test that a row of `docs/papers` names; `None` if there is none.
fn test_file(name: &str) -> Option<PathBuf> {
    let name = name.trim().trim_matches('`');
    let candidates: Vec<String> = match name.split_once('/') {
        Some(("it", module)) => {
            vec![format!("engine/tests/it/{module}.rs"), format!("engine/tests/it/{module}/mod.rs")]
        }
        Some(("models", module)) => vec![format!("models/tests/it/{module}.rs")],
        Some(("cli", module)) => vec![format!("cli/tests/it/command_line/{module}.rs")],
        _ if name == "models" => vec!["models/tests/it/main.rs".to_owned()],
        _ if name == "python" => vec!["python/tests/test_memory_systems.py".to_owned()],
        _ => {
            let path = name.replace("::", "/");
            let folders = ["engine/src/", "engine/src/memory/", "models/src/"];
            let files = |folder: &&str| [format!("{folder}{path}.rs"), format!("{folder}{path}/mod.rs")];
            folders.iter().flat_map(files).collect()
        }
    };
    candidates.into_iter().map(|path| root().join(path)).find(|path| path.exists())
}

/// Each mechanism of the papers has a test, or stands there with the reason why it is missing or another.
#[test]
fn every_mechanism_of_the_papers_has_a_test_or_a_reason() {
    let mut rows = 0;
    for paper in ["helm", "tiermem", "plugmem", "himpo"] {
        let text = std::fs::read_to_string(root().join(format!("docs/papers/{paper}.md"))).unwrap();
        let table = text.lines().filter(|line| line.starts_with('|'));
        for line in table.skip(2) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [.., place, test, departure] = cells[..] else { panic!("{paper}: a row of four cells: {line}") };
            rows += 1;
            if test == "-" {
                assert!(departure.len() > 10, "{paper}: neither a test nor a reason: {line}");
                assert!(place == "-" || departure != "-", "{paper}: {line}");
                continue;
            }
            assert!(place != "-" || departure.len() > 3, "{paper}: a test of nothing: {line}");
            for name in test.split(", ") {
                assert!(test_file(name).is_some(), "{paper}: there is no test {name}: {line}");
            }
        }
    }
    assert!(rows > 90, "{rows} mechanisms");
}
