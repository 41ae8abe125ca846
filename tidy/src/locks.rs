//! Lock files in step: a crate that two workspaces use in compatible versions has the same version in both.
//!
//! The Python package has a workspace of its own (`docs/decisions/python-own-workspace.md`). What the engine is tested
//! with is what the package ships.

use std::collections::BTreeMap;

/// The versions of each package that a lock file names.
pub type Locked = BTreeMap<String, Vec<String>>;

/// Reads a `Cargo.lock`.
pub fn parse(text: &str) -> Locked {
    let mut locked = Locked::new();
    for package in text.split("[[package]]").skip(1) {
        let value = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
            line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
        };
        if let (Some(name), Some(version)) = (value("name"), value("version")) {
            locked.entry(name).or_default().push(version);
        }
    }
    locked
}

/// Packages that `other` has in another version than `main`, though a compatible one, with the command that helps.
pub fn out_of_step(main: &Locked, other: &Locked) -> Vec<String> {
    let mut messages = Vec::new();
    for (name, versions) in other {
        for version in versions {
            let known = main.get(name).into_iter().flatten().find(|known| line_of(known) == line_of(version));
            if let Some(known) = known.filter(|known| *known != version) {
                messages.push(format!("{name} {version}: run `cargo update -p {name}@{version} --precise {known}`"));
            }
        }
    }
    messages
}

/// The part of a version that compatible ones share.
fn line_of(version: &str) -> String {
    let parts: Vec<&str> = version.split(['.', '+']).collect();
    let significant = parts.iter().position(|part| *part != "0").unwrap_or(0);
    parts[..=significant.min(2)].join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_compatible_versions_must_agree() {
        let package = |name: &str, version: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
        let main = parse(&(package("a", "1.2.3") + &package("b", "0.4.1") + &package("c", "2.0.0")));
        let other = parse(&(package("a", "1.2.4") + &package("b", "0.5.0") + &package("c", "2.0.0")));
        assert_eq!(out_of_step(&main, &other), ["a 1.2.4: run `cargo update -p a@1.2.4 --precise 1.2.3`"]);
        assert_eq!(
            (line_of("0.0.7"), line_of("0.4.1"), line_of("10.4.1")),
            ("0.0.7".into(), "0.4".into(), "10".into())
        );
    }
}
