//! The graph of imports between a crate's files.
//!
//! An edge leads from a file to the file that defines what a `use` declaration or a `crate::` path names: re-exports
//! are followed. A module that declares or re-exports its children has no edge to them for that.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Edges by file: the files that each one imports from.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// A module's path from the crate's root.
type Module = Vec<String>;

/// The paths that a module uses, and those that it re-exports, by name.
#[derive(Default)]
struct Uses {
    paths: Vec<Module>,
    exports: BTreeMap<String, Module>,
}

/// The import graph of the files below `folder`, such as `engine/src`, by path relative to it.
pub fn graph(sources: &[Source], folder: &str) -> Graph {
    let prefix = format!("{folder}/");
    let files: BTreeMap<Module, (&str, &Source)> = sources
        .iter()
        .filter_map(|source| source.path.strip_prefix(&prefix).map(|path| (module_of(path), (path, source))))
        .collect();
    let uses: BTreeMap<&Module, Uses> =
        files.iter().map(|(module, (_, source))| (module, uses_of(module, source.product_code()))).collect();
    let mut graph = Graph::new();
    for (module, used) in &uses {
        let edges = graph.entry(files[*module].0.to_owned()).or_default();
        for path in &used.paths {
            // The root declares and re-exports everything; what it defines itself is no room's.
            let target = resolve(path, &uses, 0).filter(|target| target != *module && !target.is_empty());
            edges.extend(target.map(|target| files[&target].0.to_owned()));
        }
    }
    graph
}

fn module_of(path: &str) -> Module {
    let mut parts: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// The `use` declarations and the inline `crate::` paths of a module.
fn uses_of(module: &Module, code: &str) -> Uses {
    let children: BTreeSet<&str> = code
        .match_indices("mod ")
        .filter_map(|(at, _)| code[at + 4..].split_once(';').map(|(name, _)| name.trim()))
        .filter(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_'))
        .collect();
    let mut found = Uses::default();
    for (at, _) in code.match_indices("use ") {
        let line = &code[code[..at].rfind('\n').map_or(0, |start| start + 1)..at];
        let visibility = line.trim();
        let is_public = visibility.starts_with("pub");
        if !(visibility.is_empty() || is_public) {
            continue;
        }
        let tree = code[at + 4..].split(';').next().unwrap_or_default();
        for path in leaves(tree) {
            let Some(path) = absolute(&path, module, &children) else { continue };
            match path.last() {
                // A re-export is no use of its own; an import of the name leads to its definition.
                Some(name) if is_public => drop(found.exports.insert(name.clone(), path)),
                _ => found.paths.push(path),
            }
        }
    }
    for (at, _) in code.match_indices("crate::") {
        let path = code[at..].split(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter))).next();
        let path: Module =
            path.unwrap_or_default().split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        // A path cut off at `{` or `*` is a use tree, which was taken apart above.
        if !code[at..].split(';').next().unwrap_or_default().contains('{') {
            found.paths.extend(absolute(&path, module, &children).filter(|path| path.len() > 1));
        }
    }
    found
}

/// The paths that a `use` tree names.
fn leaves(tree: &str) -> Vec<Module> {
    let (mut paths, mut stack, mut word) = (vec![Module::new()], Vec::<Module>::new(), String::new());
    for letter in tree.chars().chain([',']) {
        match letter {
            '{' => {
                stack.push(paths.last().cloned().unwrap_or_default());
                word.clear();
            }
            ',' | '}' => {
                let name = word.split(" as ").next().unwrap_or_default().trim().to_owned();
                if let Some(path) = paths.last_mut().filter(|_| !name.is_empty() && name != "self") {
                    path.push(name);
                }
                word.clear();
                if letter == '}' {
                    stack.pop();
                }
                paths.push(stack.last().cloned().unwrap_or_default());
            }
            ':' => {
                let name = std::mem::take(&mut word).trim().to_owned();
                if let Some(path) = paths.last_mut().filter(|_| !name.is_empty()) {
                    path.push(name);
                }
            }
            letter => word.push(letter),
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

/// A path from the crate's root, if it is one of this crate.
fn absolute(path: &[String], module: &Module, children: &BTreeSet<&str>) -> Option<Module> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let (base, rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module[..module.len().checked_sub(supers)?].to_vec(), &path[supers..]),
        name if children.contains(name) => (module.clone(), path),
        _ => return None,
    };
    Some(base.into_iter().chain(rest.iter().cloned()).collect())
}

/// The module that defines what a path names.
fn resolve(path: &Module, uses: &BTreeMap<&Module, Uses>, depth: usize) -> Option<Module> {
    for len in (0..=path.len()).rev() {
        let module = path[..len].to_vec();
        let Some(used) = uses.get(&module) else { continue };
        return match path.get(len).and_then(|name| used.exports.get(name)) {
            Some(target) if depth < 8 && target != path => resolve(target, uses, depth + 1),
            _ => Some(module),
        };
    }
    None
}

/// The largest set of files that all reach each other; empty when the graph has no circle.
pub fn largest_circle(graph: &Graph) -> Vec<&str> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reached(graph, file))).collect();
    let circle = |file: &&str| -> Vec<&str> {
        reach[file].iter().copied().filter(|other| reach.get(other).is_some_and(|back| back.contains(file))).collect()
    };
    reach.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

fn reached<'g>(graph: &'g Graph, from: &str) -> BTreeSet<&'g str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in graph.get(file).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(format!("x/src/{path}"), text.to_owned())
    }

    #[test]
    fn use_trees_and_inline_paths_are_edges() {
        let sources = [
            source("lib.rs", "mod a; mod b;"),
            source("a/mod.rs", "mod c;\nuse crate::{b::{self, T}, a::c::S};"),
            source("a/c.rs", "fn f() { crate::b::g() }"),
            source("b.rs", "use crate::a::c::S;\n#[cfg(test)]\nmod tests {\n use crate::lib;\n}"),
        ];
        let graph = graph(&sources, "x/src");
        let edges = |file: &str| graph[file].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(edges("a/mod.rs"), ["a/c.rs", "b.rs"]);
        assert_eq!(edges("a/c.rs"), ["b.rs"]);
        assert_eq!(edges("b.rs"), ["a/c.rs"]);
        assert_eq!(largest_circle(&graph), ["a/c.rs", "b.rs"]);
    }

    #[test]
    fn re_exports_lead_to_the_definition() {
        let sources = [
            source("lib.rs", "mod a; mod b;\npub use a::S;"),
            source("a/mod.rs", "mod c;\npub use c::S;"),
            source("a/c.rs", "pub struct S;"),
            source("b.rs", "use crate::S;"),
        ];
        let graph = graph(&sources, "x/src");
        assert_eq!(graph["b.rs"].iter().collect::<Vec<_>>(), ["a/c.rs"]);
        assert!(graph["lib.rs"].is_empty() && graph["a/mod.rs"].is_empty());
        assert!(largest_circle(&graph).is_empty());
    }
}
