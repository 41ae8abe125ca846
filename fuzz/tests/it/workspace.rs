//! Rules of the whole workspace: dependencies between crates, licences, and the files that may have unsafe code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The arrows: what each crate may use of ours, for anything but its tests and those of the crates that measure.
const ARROWS: &[(&str, &[&str])] = &[
    ("holotype-storage", &[]),
    ("holotype-replica", &["holotype-storage"]),
    ("holotype-query", &[]),
    ("holotype-index", &["holotype-storage"]),
    ("holotype-models", &["holotype"]),
    ("holotype-embed", &["holotype"]),
    ("holotype-cuda", &["holotype-index"]),
    ("holotype", &["holotype-query", "holotype-index", "holotype-storage", "holotype-cuda"]),
    ("holotype-import", &["holotype"]),
    ("holotype-inspect", &["holotype"]),
    ("holotype-mcp", &["holotype"]),
    (
        "holotype-cli",
        &[
            "holotype",
            "holotype-embed",
            "holotype-import",
            "holotype-inspect",
            "holotype-mcp",
            "holotype-models",
            "holotype-replica",
        ],
    ),
    (
        "holotype-bench",
        &["holotype", "holotype-embed", "holotype-query", "holotype-index", "holotype-storage", "holotype-cuda"],
    ),
    ("holotype-fuzz", &["holotype", "holotype-query", "holotype-index", "holotype-replica", "holotype-storage"]),
    ("holotype-tidy", &[]),
];

/// The files that may allow themselves unsafe code.
const UNSAFE: [&str; 6] = [
    "storage/src/vfs/os",
    "storage/src/memory_reserve.rs",
    "index/src/distance/",
    "index/src/prefetch.rs",
    "cuda/src/nvidia.rs",
    "models/embed/src/matrix.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace")
}

/// The packages of the workspace, as cargo tells them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo runs this test, so it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    metadata["packages"].as_array().expect("there are packages").clone()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

#[test]
fn crates_use_only_what_the_arrows_allow() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(|package| text(package, "name")).collect();
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    assert_eq!(ours, arrows.keys().copied().collect(), "every crate has its arrows");
    for package in &packages {
        let name = text(package, "name");
        for dependency in package["dependencies"].as_array().expect("a list") {
            let used = text(dependency, "name");
            let only_tests = text(dependency, "kind") == "dev";
            assert!(only_tests || !ours.contains(used) || arrows[name].contains(&used), "{name} must not use {used}");
        }
    }
}

#[test]
fn every_manifest_states_licence_edition_and_rust() {
    for package in packages() {
        let name = text(&package, "name");
        assert_eq!(text(&package, "license"), "MIT OR Apache-2.0", "{name}");
        assert_eq!(text(&package, "edition"), "2024", "{name}");
        assert!(package["rust_version"].is_string(), "{name} states no rust-version");
        let manifest = std::fs::read_to_string(text(&package, "manifest_path")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} is not under the workspace's lints");
    }
    for (file, words) in [
        ("LICENSE", "MIT OR Apache-2.0"),
        ("LICENSE-MIT", "Permission is hereby granted, free of charge"),
        ("LICENSE-APACHE", "Version 2.0, January 2004"),
    ] {
        assert!(std::fs::read_to_string(root().join(file)).unwrap().contains(words), "{file}");
    }
}

#[test]
fn unsafe_code_stands_only_where_it_is_allowed_by_name() {
    let mut files = Vec::new();
    for package in packages() {
        let folder = PathBuf::from(text(&package, "manifest_path"));
        sources(&folder.parent().expect("a manifest lies in a folder").join("src"), &mut files);
    }
    assert!(files.len() > 100, "only {} files were found", files.len());
    let allows = |file: &PathBuf| std::fs::read_to_string(file).unwrap().contains("allow(unsafe_code)");
    for file in files.iter().filter(|file| allows(file)) {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap();
        assert!(UNSAFE.iter().any(|allowed| name.starts_with(allowed)), "{name} allows itself unsafe code");
    }
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
