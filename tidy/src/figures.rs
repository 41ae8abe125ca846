//! Figures about the tree's structure.

use crate::imports::{graph, largest_circle};
use crate::rules::FILE_LINES;
use crate::source::{CRATES, Source};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// The engine's rooms and files from the ground up: a file imports from its own room and from lower ones.
const ROOMS: [&str; 18] = [
    "error.rs",
    "memory",
    "model",
    "records",
    "options.rs",
    "state",
    "core",
    "read",
    "derive",
    "recall",
    "write",
    "maintain",
    "proof",
    "statements",
    "agent",
    "interchange",
    "database.rs",
    "fleet",
];

/// A name and its value.
pub type Figure = (String, String);

/// Measures the workspace at `root`.
pub fn measure(root: &Path, sources: &[Source]) -> io::Result<Vec<Figure>> {
    let mut figures =
        vec![("entries on the engine's floor".to_owned(), fs::read_dir(root.join("engine/src"))?.count().to_string())];
    for krate in CRATES {
        let imports = graph(sources, &format!("{krate}/src"));
        let circle = largest_circle(&imports);
        figures.push((format!("files in the largest import circle, {krate}"), circle.len().to_string()));
    }
    figures.push(("imports that lead up between the engine's folders".to_owned(), upward(sources).len().to_string()));
    for krate in CRATES {
        figures.push((format!("integration-test binaries, {krate}"), test_binaries(&root.join(krate))?.to_string()));
    }
    let long = sources.iter().filter(|source| source.text.lines().count() > FILE_LINES).count();
    figures.push((format!("files over {FILE_LINES} lines"), long.to_string()));
    let lines: usize =
        sources.iter().filter(|source| source.is_product()).map(|source| source.product_code().lines().count()).sum();
    figures.push(("lines below src without unit tests".to_owned(), lines.to_string()));
    figures.push(("crates that holotype is built of".to_owned(), dependencies(root)?));
    Ok(figures)
}

/// Imports of the engine that lead from a lower folder to a higher one.
pub fn upward(sources: &[Source]) -> Vec<(String, String)> {
    let level = |file: &str| ROOMS.iter().position(|room| file.split('/').next() == Some(room));
    let imports = graph(sources, "engine/src");
    let edges = imports.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from.clone(), to.clone())));
    edges.filter(|(from, to)| level(from).zip(level(to)).is_some_and(|(from, to)| to > from)).collect()
}

/// Files directly below `tests`, and folders there with a `main.rs`: cargo builds one binary of each.
pub fn test_binaries(krate: &Path) -> io::Result<usize> {
    let tests = krate.join("tests");
    if !tests.exists() {
        return Ok(0);
    }
    let mut count = 0;
    for entry in fs::read_dir(tests)? {
        let path = entry?.path();
        count += usize::from(path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists());
    }
    Ok(count)
}

fn dependencies(root: &Path) -> io::Result<String> {
    let output = Command::new("cargo")
        .args(["tree", "-p", "holotype", "-e", "normal", "--prefix", "none", "--locked"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // The same crate is listed with and without `(*)`, and beside the path of ours.
    let names: BTreeSet<String> = text.lines().map(|line| line.split(" (").next().unwrap_or(line).to_owned()).collect();
    Ok(names.len().to_string())
}
