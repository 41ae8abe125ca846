//! The dependency arrows between the rooms of this crate, checked against its sources.

use std::path::{Path, PathBuf};

/// The rooms, lowest first. Modules in one row may import each other. The longest matching path decides the room of a
/// file.
const ROOMS: [&[&str]; 22] = [
    &["error"],
    &["sync"],
    &["prefetch"],
    &["spec"],
    &["distance"],
    &["bitmap"],
    &["hit"],
    &["segment::layout"],
    &["rows", "logged", "segment::guard", "segment::id_set"],
    &["quantize"],
    &["flat"],
    &["signs"],
    &["scorer"],
    &["hnsw"],
    &["segment"],
    &["vectors"],
    &["words::analysis"],
    &["words::query"],
    &["words::postings"],
    &["words::segment"],
    &["words::tail"],
    &["words::scoring", "words"],
];

/// The room of a module path: its index in [`ROOMS`].
fn room(path: &str) -> Option<usize> {
    let is_inside =
        |module: &str| path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    let rooms = ROOMS.iter().enumerate();
    let matching = rooms.flat_map(|(room, modules)| modules.iter().map(move |module| (room, *module)));
    matching.filter(|(_, module)| is_inside(module)).max_by_key(|(_, module)| module.len()).map(|(room, _)| room)
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

/// The module that a source file defines.
fn module_of(file: &Path) -> String {
    let path = file.with_extension("").to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "::");
    path.strip_suffix("::mod").unwrap_or(&path).to_owned()
}

/// The module paths that a source imports, without those of its tests and comments.
fn imports(source: &str, module: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let path =
        |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next().unwrap().to_owned();
    let mut found = Vec::new();
    for line in lines {
        found.extend(line.split("crate::").skip(1).map(path));
        let relative = line.trim_start().strip_prefix("use super::").filter(|rest| !rest.starts_with("super::"));
        found.extend(relative.map(|rest| format!("{parent}::{}", path(rest))));
    }
    found
}

#[test]
fn modules_import_only_from_lower_rooms() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut checked = 0;
    for file in files {
        let module = module_of(file.strip_prefix(&root).unwrap());
        let Some(own) = room(&module) else {
            assert!(["lib", "arrows"].contains(&module.as_str()), "module {module} is in no room");
            continue;
        };
        for import in imports(&std::fs::read_to_string(&file).unwrap(), &module) {
            // A re-export at the root of the crate has no room.
            if let Some(other) = room(import.trim_end_matches(':')) {
                assert!(other <= own, "{module} imports {import}, which is in a higher room");
                checked += 1;
            }
        }
    }
    assert!(checked > 200, "only {checked} imports found");
}
