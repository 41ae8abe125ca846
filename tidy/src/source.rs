//! Source files of the workspace, each as text and as code: the text with comments and literals replaced by spaces.
//!
//! Masking keeps every byte offset and line break, so that a position in the code is a position in the text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders of the workspace that hold Rust sources.
pub const CRATES: [&str; 11] =
    ["storage", "index", "query", "engine", "cuda", "models", "cli", "benches", "fuzz", "tidy", "python"];

/// One Rust source file.
#[derive(Debug)]
pub struct Source {
    /// Path relative to the workspace, with forward slashes.
    pub path: String,
    /// The file as it is.
    pub text: String,
    /// The same with comments, strings and characters masked by spaces.
    pub code: String,
}

impl Source {
    /// Masks the comments and literals of `text`.
    pub fn new(path: String, text: String) -> Self {
        let code = mask(&text);
        Self { path, text, code }
    }

    /// True for files below a `src` folder.
    pub fn is_product(&self) -> bool {
        self.path.contains("/src/")
    }

    /// The code before the module of unit tests.
    pub fn product_code(&self) -> &str {
        let end = self.code.find("#[cfg(test)]\nmod tests {").unwrap_or(self.code.len());
        &self.code[..end]
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every Rust source of the workspace in order of path.
pub fn load(root: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in CRATES {
        visit(root, &root.join(folder), &mut sources)?;
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn visit(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                visit(root, &path, sources)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            sources.push(Source::new(name, fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// `text` with comments, strings and characters replaced by spaces, line breaks kept.
pub fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end > at {
            for byte in &mut code[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            at = end;
        } else {
            at += 1;
        }
    }
    // Bytes outside ASCII occur in comments and literals only, but an identifier may hold them too.
    String::from_utf8_lossy(&code).into_owned()
}

/// The end of the comment or literal that begins at `at`; `at` itself if none does.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment_len(rest),
        [b'"', ..] => at + quoted_len(rest),
        [b'r', b'"' | b'#', ..] if !in_word => at + raw_len(rest, 1),
        [b'b', b'r', b'"' | b'#', ..] if !in_word => at + raw_len(rest, 2),
        [b'\'', b'\\', ..] => {
            at + 3 + rest[3.min(rest.len())..].iter().position(|&byte| byte == b'\'').map_or(0, |n| n + 1)
        }
        [b'\'', ..] => at + character_len(rest),
        _ => at,
    }
    .min(bytes.len())
}

fn block_comment_len(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < rest.len() {
        match &rest[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted_len(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of a raw string whose hashes begin at `prefix`; 0 for a raw identifier.
fn raw_len(rest: &[u8], prefix: usize) -> usize {
    let hashes = rest[prefix..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(prefix + hashes) != Some(&b'"') {
        return 0;
    }
    let mut closing = vec![b'"'];
    closing.resize(hashes + 1, b'#');
    let body = prefix + hashes + 1;
    rest[body..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(rest.len(), |n| body + n + closing.len())
}

/// Length of a character literal; 0 for a lifetime.
fn character_len(rest: &[u8]) -> usize {
    let width = match rest.get(1) {
        Some(byte) if *byte < 0x80 => 1,
        Some(byte) if *byte < 0xE0 => 2,
        Some(byte) if *byte < 0xF0 => 3,
        Some(_) => 4,
        None => return 0,
    };
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn comments_and_literals_become_spaces() {
        assert_eq!(mask("a // b\nc"), "a     \nc");
        assert_eq!(mask("/* x /* y */ */z"), format!("{}z", " ".repeat(15)));
        assert_eq!(mask(r#"f("{\"", 'a')"#), format!("f({}, {})", " ".repeat(5), " ".repeat(3)));
        assert_eq!(mask("r#\"}\"# r#fn"), format!("{} r#fn", " ".repeat(6)));
        assert_eq!(mask("&'a str; '\\''; '{'"), format!("&'a str; {}; {}", " ".repeat(4), " ".repeat(3)));
    }
}
