//! The code map of `ARCHITECTURE.md`: each file that it names exists, and is named once.

use std::collections::HashSet;
use std::path::Path;

/// The crate and the names in backticks of each row, in order.
fn names(text: &str) -> Vec<(String, String)> {
    let (mut krate, mut found) = (None, Vec::new());
    for line in text.lines() {
        if line.starts_with('#') {
            let heading = line.strip_prefix("### `").and_then(|rest| rest.split_once("/`"));
            krate = heading.map(|(name, _)| name.to_owned());
        }
        let Some(krate) = krate.as_ref().filter(|_| line.starts_with("| `")) else { continue };
        let cell = line.split('|').nth(1).unwrap_or_default();
        let quoted = cell.split('`').skip(1).step_by(2);
        found.extend(quoted.map(|name| (krate.clone(), name.to_owned())));
    }
    found
}

/// The mistakes of the code map `text` of the tree at `root`.
pub fn check(root: &Path, text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut messages = Vec::new();
    for (krate, name) in names(text) {
        let path = format!("{krate}/src/{name}");
        if !root.join(&path).exists() {
            messages.push(format!("the code map names {path}, which does not exist"));
        }
        if !seen.insert(path.clone()) {
            messages.push(format!("the code map names {path} twice"));
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_once_and_exists() {
        let text =
            "### `tidy/` – rules\n| `code_map.rs`, `gone.rs` | a |\n| `code_map.rs` | b |\n## Other\n| `x.rs` | c |\n";
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(
            check(root, text),
            [
                "the code map names tidy/src/gone.rs, which does not exist",
                "the code map names tidy/src/code_map.rs twice"
            ]
        );
    }
}
