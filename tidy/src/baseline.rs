//! Violations that the tree still has, per rule and file: a list that only shrinks.
//!
//! A line of `tidy/baseline.txt` is `rule path count`. More violations than listed fail the test; so do fewer, until
//! the list is lowered with `cargo run -p holotype-tidy -- lower`, so that what was gained is kept.

use crate::rules::Violation;
use std::collections::BTreeMap;

/// Violations counted by rule and path.
pub type Counts = BTreeMap<(String, String), usize>;

/// Counts violations by rule and path.
pub fn count(violations: &[Violation]) -> Counts {
    let mut counts = Counts::new();
    for violation in violations {
        *counts.entry((violation.rule.to_owned(), violation.path.clone())).or_default() += 1;
    }
    counts
}

/// Reads a baseline; names the first line that is none.
pub fn parse(text: &str) -> Result<Counts, String> {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [rule, path, count] = fields[..] else {
            return Err(format!("{line:?}: expected `rule path count`"));
        };
        let count = count.parse().map_err(|_| format!("{line:?}: {count:?} is not a number"))?;
        counts.insert((rule.to_owned(), path.to_owned()), count);
    }
    Ok(counts)
}

/// The counts found now as the next baseline, unless a rule is broken more often than before.
///
/// Totals are compared by rule, not by file, so that a violation may move with its code to another file.
pub fn lower(old: &Counts, now: &Counts) -> Result<Counts, String> {
    let total = |counts: &Counts, rule: &str| -> usize {
        counts.iter().filter(|((name, _), _)| name == rule).map(|(_, count)| count).sum()
    };
    for (rule, _) in now.keys() {
        let (before, after) = (total(old, rule), total(now, rule));
        if after > before {
            return Err(format!("`{rule}` grew from {before} to {after} violations: correct the new ones first"));
        }
    }
    Ok(now.clone())
}

/// A baseline as text.
pub fn format(counts: &Counts) -> String {
    let mut text = String::from(
        "# Violations left, as `rule path count`. Lower with `cargo run -p holotype-tidy -- lower`; \
         never add a line.\n",
    );
    for ((rule, path), count) in counts {
        text.push_str(&format!("{rule} {path} {count}\n"));
    }
    text
}

/// Differences between the tree and its baseline, one message each.
pub fn compare(violations: &[Violation], allowed: &Counts) -> Vec<String> {
    let found = count(violations);
    let mut messages = Vec::new();
    for (key, &count) in &found {
        let limit = allowed.get(key).copied().unwrap_or(0);
        if count > limit {
            let (rule, path) = key;
            messages.push(format!("{path}: {count} violations of `{rule}`, at most {limit} are allowed:"));
            let these = violations.iter().filter(|violation| violation.rule == rule && violation.path == *path);
            messages.extend(these.map(|violation| format!("    line {}: {}", violation.line, violation.message)));
        }
    }
    for ((rule, path), &limit) in allowed {
        let count = found.get(&(rule.clone(), path.clone())).copied().unwrap_or(0);
        if count < limit {
            messages.push(format!(
                "{path}: `{rule}` fell from {limit} to {count}: run `cargo run -p holotype-tidy -- lower`"
            ));
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(path: &str) -> Violation {
        Violation { rule: "columns", path: path.to_owned(), line: 1, message: String::new() }
    }

    #[test]
    fn growth_and_unrecorded_shrinking_both_fail() {
        let allowed = parse("# note\ncolumns a.rs 1\n").unwrap();
        assert!(compare(&[violation("a.rs")], &allowed).is_empty());
        assert!(compare(&[violation("a.rs"), violation("a.rs")], &allowed)[0].contains("at most 1"));
        assert!(compare(&[violation("b.rs"), violation("a.rs")], &allowed)[0].contains("at most 0"));
        assert!(compare(&[], &allowed)[0].contains("fell from 1 to 0"));
        assert!(parse("columns a.rs").is_err());
    }

    #[test]
    fn lowering_follows_moves_and_refuses_growth() {
        let old = parse("columns a.rs 2\ncolumns b.rs 1\n").unwrap();
        let moved = parse("columns a.rs 1\ncolumns c.rs 2\n").unwrap();
        assert_eq!(lower(&old, &moved), Ok(moved.clone()));
        let grown = parse("columns a.rs 4\n").unwrap();
        assert!(lower(&old, &grown).unwrap_err().contains("from 3 to 4"));
        assert!(lower(&old, &parse("opening a.rs 1\n").unwrap()).is_err());
    }
}
