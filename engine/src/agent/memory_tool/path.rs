//! Paths below `/memories`: what would lead elsewhere, in any spelling, is refused before anything is looked up.

use crate::write::transaction::MAX_KEY_LEN;

/// The directory that all paths are in.
pub(super) const ROOT: &str = "/memories";

/// A path as keys have it: without a slash at its end.
///
/// # Errors
/// A text that says what is wrong, for the model.
pub(super) fn checked(path: &str) -> Result<String, String> {
    let trimmed = path.trim_end_matches('/');
    let Some(below) = trimmed.strip_prefix(ROOT).filter(|below| below.is_empty() || below.starts_with('/')) else {
        return Err(format!("Error: Path must start with {ROOT}, got: {}", path.escape_debug()));
    };
    let lower = path.to_ascii_lowercase();
    let is_disguised = ["%2e", "%2f", "%5c", "%00"].iter().any(|code| lower.contains(code));
    let names = || below.split('/').skip(1);
    if is_disguised || path.contains('\\') || names().any(|name| matches!(name, "." | "..")) {
        return Err(format!("Error: Path {} would escape {ROOT} directory", path.escape_debug()));
    }
    if names().any(str::is_empty) || path.chars().any(char::is_control) {
        let got = path.escape_debug();
        return Err(format!("Error: Path {got} has an empty name or a control character; expected {ROOT}/NAME/NAME"));
    }
    if trimmed.len() > MAX_KEY_LEN {
        return Err(format!("Error: Path has {} bytes; at most {MAX_KEY_LEN} are possible", trimmed.len()));
    }
    Ok(trimmed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_below_the_root_and_nowhere_else() {
        for (path, expected) in [
            ("/memories", "/memories"),
            ("/memories/", "/memories"),
            ("/memories/a b/ü.md", "/memories/a b/ü.md"),
            ("/memories/..hidden", "/memories/..hidden"),
        ] {
            assert_eq!(checked(path).as_deref(), Ok(expected));
        }
        for path in [
            "",
            "/",
            "memories/a",
            "/memoriesX",
            "/etc/passwd",
            "/memories/../etc/passwd",
            "/memories/a/..",
            "/memories/./a",
            "/memories/%2e%2e/etc",
            "/memories/%2E%2E%2Fetc",
            "/memories/..\\etc",
            "/memories//a",
            "/memories/a\0b",
            "/memories/a\nb",
            "/../memories/a",
        ] {
            assert!(checked(path).is_err(), "{path:?}");
        }
        assert!(checked(&format!("/memories/{}", "x".repeat(MAX_KEY_LEN))).is_err());
    }
}
