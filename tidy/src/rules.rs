//! The rules that every source file follows. Limits are those of CONTRIBUTING.md, "A file".

use crate::source::Source;
use std::collections::BTreeSet;
use std::path::Path;

/// Lines of a file.
pub const FILE_LINES: usize = 700;
/// Lines of a function, from `fn` to its closing brace.
pub const FUNCTION_LINES: usize = 70;
/// Parameters of a function, the receiver not counted.
pub const PARAMETERS: usize = 5;
/// Characters of a line.
pub const COLUMNS: usize = 120;
/// First words of a comment that make its sentence a riddle.
const OPENINGS: [&str; 4] = ["What ", "Who ", "Where ", "Whether "];

/// One place that breaks a rule.
#[derive(Debug)]
pub struct Violation {
    /// The rule's name in the baseline.
    pub rule: &'static str,
    /// The file, relative to the workspace.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// The measured value or the offending text.
    pub message: String,
}

/// Applies every rule to every file.
pub fn check(root: &Path, sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in sources {
        lines(source, &mut violations);
        functions(source, &mut violations);
        references(root, source, &mut violations);
        syntax(source, &mut violations);
    }
    dead_files(root, sources, &mut violations);
    violations
}

fn report(source: &Source, rule: &'static str, line: usize, message: String) -> Violation {
    Violation { rule, path: source.path.clone(), line, message }
}

fn lines(source: &Source, violations: &mut Vec<Violation>) {
    let count = source.text.lines().count();
    if count > FILE_LINES {
        violations.push(report(source, "file-lines", count, format!("{count} lines")));
    }
    if !source.text.starts_with("//!") {
        violations.push(report(source, "module-doc", 1, "no module doc".to_owned()));
    }
    let mut in_comment = false;
    for (number, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS {
            violations.push(report(source, "columns", number + 1, format!("{columns} columns")));
        }
        let text = comment_text(line);
        // Only a comment's first line opens a sentence for certain.
        if let (Some(text), false) = (text, in_comment)
            && OPENINGS.iter().any(|opening| text.starts_with(opening))
        {
            violations.push(report(source, "opening", number + 1, text.to_owned()));
        }
        in_comment = text.is_some_and(|text| !text.is_empty());
    }
}

/// The text of a line that holds only a comment.
fn comment_text(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim())
}

/// A function's place and size.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of the word `fn`, from 1.
    pub line: usize,
    /// Lines to the closing brace; 0 without a body.
    pub lines: usize,
    /// Parameters without the receiver.
    pub parameters: usize,
}

fn functions(source: &Source, violations: &mut Vec<Violation>) {
    for function in functions_of(&source.code) {
        let Function { name, line, lines, parameters } = function;
        if lines > FUNCTION_LINES {
            violations.push(report(source, "function-lines", line, format!("{name} has {lines} lines")));
        }
        if parameters > PARAMETERS {
            violations.push(report(source, "parameters", line, format!("{name} has {parameters} parameters")));
        }
    }
}

/// The functions of masked code; those inside others too.
pub fn functions_of(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut functions = Vec::new();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'#';
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_word(bytes[at - 1]) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(open) = (!name.is_empty()).then(|| find_at_depth_zero(bytes, at + 3 + name.len(), b"(")).flatten()
        else {
            continue;
        };
        let Some(close) = closing(bytes, open) else { continue };
        let end = find_at_depth_zero(bytes, close + 1, b"{;");
        let body_end = end.filter(|&end| bytes[end] == b'{').and_then(|start| closing(bytes, start));
        let line_at = |offset: usize| code[..offset].matches('\n').count() + 1;
        functions.push(Function {
            name,
            line: line_at(at),
            lines: body_end.map_or(0, |end| line_at(end) + 1 - line_at(at)),
            parameters: parameters_of(&code[open + 1..close]),
        });
    }
    functions
}

/// The first of `wanted` outside every bracket; `->` closes none.
fn find_at_depth_zero(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let mut depth = 0_i32;
    for at in from..bytes.len() {
        let byte = bytes[at];
        if depth == 0 && wanted.contains(&byte) {
            return Some(at);
        }
        match byte {
            b'(' | b'[' | b'<' => depth += 1,
            b')' | b']' => depth -= 1,
            b'>' if bytes[at - 1] != b'-' && bytes[at - 1] != b'=' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The bracket that closes the one at `open`.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => continue,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn parameters_of(list: &str) -> usize {
    let bytes = list.as_bytes();
    let (mut from, mut count) = (0, 0);
    while from < list.len() {
        let end = find_at_depth_zero(bytes, from, b",").unwrap_or(list.len());
        let parameter = list[from..end].trim();
        let receiver = parameter
            .split(':')
            .next()
            .is_some_and(|name| name.split_whitespace().any(|word| word.trim_start_matches('&') == "self"));
        count += usize::from(!parameter.is_empty() && !receiver);
        from = end + 1;
    }
    count
}

/// Names of files in comments must be files of the tree: beside the source, in its crate, or from the root.
fn references(root: &Path, source: &Source, violations: &mut Vec<Violation>) {
    let krate = source.path.split('/').next().unwrap_or_default();
    let folder = root.join(&source.path).parent().map(Path::to_path_buf).unwrap_or_default();
    for (number, line) in source.text.lines().enumerate() {
        let Some(text) = comment_text(line) else { continue };
        for quoted in text.split('`').skip(1).step_by(2) {
            let is_name = quoted.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
            let is_file = is_name
                && [".rs", ".md", ".svg", ".toml"].iter().any(|end| quoted.len() > end.len() && quoted.ends_with(end));
            let places = [
                folder.join(quoted),
                root.join(quoted),
                root.join(krate).join(quoted),
                root.join(krate).join("src").join(quoted),
            ];
            if is_file && !places.iter().any(|place| place.exists()) {
                violations.push(report(source, "reference", number + 1, format!("no file `{quoted}`")));
            }
        }
    }
}

/// The syntax of statements stays in `query/`: elsewhere a statement is a plan, whose values are there without asking.
fn syntax(source: &Source, violations: &mut Vec<Violation>) {
    let line = |at: usize| source.code[..at].lines().count().max(1);
    for (at, call) in source.code.match_indices(".node.bound()") {
        violations.push(report(source, "bound", line(at), format!("{call} of an argument")));
    }
    if source.path.starts_with("query/") {
        return;
    }
    for (at, path) in source.code.match_indices("query::") {
        let rest = &source.code[at + path.len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split(';').next().unwrap_or(list),
            None => rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or(rest),
        };
        let mut words = names.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        if words.any(|word| word == "ast") {
            violations.push(report(source, "syntax-outside-query", line(at), "the syntax tree is imported".to_owned()));
        }
    }
}

/// Files that no `mod` and no manifest reaches.
fn dead_files(root: &Path, sources: &[Source], violations: &mut Vec<Violation>) {
    let mut reached = BTreeSet::new();
    for source in sources {
        let path = Path::new(&source.path);
        let folder = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let children = if ["mod", "lib", "main"].contains(&stem) { folder.to_path_buf() } else { folder.join(stem) };
        for name in modules_of(&source.code) {
            for file in [children.join(format!("{name}.rs")), children.join(&name).join("mod.rs")] {
                reached.insert(file.to_string_lossy().into_owned());
            }
        }
        for given in source.text.split("#[path = \"").skip(1).filter_map(|rest| rest.split('"').next()) {
            reached.insert(folder.join(given).to_string_lossy().into_owned());
        }
    }
    for source in sources {
        let (krate, inner) = split_at_crate(root, &source.path);
        let depth = inner.matches('/').count();
        let is_root = ["src/lib.rs", "src/main.rs", "build.rs", "tests/it/main.rs"].contains(&inner)
            || (depth == 1 && (inner.starts_with("examples/") || inner.starts_with("tests/")))
            || (inner.starts_with("examples/") && inner.ends_with("/main.rs"));
        let manifest = std::fs::read_to_string(root.join(krate).join("Cargo.toml")).unwrap_or_default();
        if !is_root && !reached.contains(&source.path) && !manifest.contains(&format!("\"{inner}\"")) {
            violations.push(report(source, "dead-file", 1, "no `mod` reaches it".to_owned()));
        }
    }
}

/// The folder of the crate that a file belongs to, and its path there. A crate may lie within another one's folder.
fn split_at_crate<'p>(root: &Path, path: &'p str) -> (&'p str, &'p str) {
    let folders = path.match_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
    folders.rev().find(|(folder, _)| root.join(folder).join("Cargo.toml").is_file()).unwrap_or_default()
}

/// Names in `mod name;`.
fn modules_of(code: &str) -> Vec<String> {
    let named = |line: &str| {
        let declared = line.trim().strip_suffix(';')?;
        let (before, name) = declared.rsplit_once(' ')?;
        (before == "mod" || before.ends_with(" mod")).then(|| name.to_owned())
    };
    code.lines().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let code =
            "fn a<T: Fn(u8) -> u8>(&self, x: Vec<(u8, u8)>, y: u8,) -> u8\nwhere\n{\n}\nfn b(self: Arc<Self>);\n";
        let a = Function { name: "a".to_owned(), line: 1, lines: 4, parameters: 2 };
        let b = Function { name: "b".to_owned(), line: 5, lines: 0, parameters: 0 };
        assert_eq!(functions_of(code), [a, b]);
    }

    #[test]
    fn every_line_rule_finds_its_violation() {
        let body = "x\n".repeat(FUNCTION_LINES);
        let text = format!(
            "/// What it is.\n{}\nfn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {{\n{body}}}\n// See `gone.rs`.\n",
            "y".repeat(COLUMNS + 1)
        );
        let source = Source::new("none/src/f.rs".to_owned(), text + &"\n".repeat(FILE_LINES));
        let rules: BTreeSet<&str> = check(Path::new("."), &[source]).iter().map(|violation| violation.rule).collect();
        let all = [
            "columns",
            "dead-file",
            "file-lines",
            "function-lines",
            "module-doc",
            "opening",
            "parameters",
            "reference",
        ];
        assert_eq!(rules, BTreeSet::from(all));
    }

    #[test]
    fn the_syntax_tree_is_found_wherever_it_is_imported() {
        let rules = |path: &str, text: &str| -> Vec<&str> {
            let source = Source::new(path.to_owned(), format!("//! A file.\n{text}\n"));
            check(Path::new("."), &[source]).iter().map(|it| it.rule).filter(|rule| *rule != "dead-file").collect()
        };
        for import in [
            "use holotype_query::ast::Statement;",
            "use holotype_query::{Noun, ast};",
            "use holotype::query::{\n    Noun,\n    ast::{Recall, Statement},\n};",
            "fn f(_: holotype::query::ast::Recall) {}",
        ] {
            assert_eq!(rules("engine/src/f.rs", import), ["syntax-outside-query"], "{import}");
            assert!(rules("query/tests/it/f.rs", import).is_empty(), "{import}");
        }
        assert!(rules("engine/src/f.rs", "use holotype_query::plan::Recall; // not query::ast").is_empty());
        assert_eq!(rules("query/src/f.rs", "fn f() { limit.node.bound(); }"), ["bound"]);
        assert!(rules("engine/src/f.rs", "fn f() { state.bound(); }").is_empty());
    }
}
