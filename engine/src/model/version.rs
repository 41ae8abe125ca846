//! Versions with parts (HELM A.6: snapshots of the task, the tools and the site).
//!
//! A version is text. Its words of the form `name=value` are its parts; what else it says is the part `task`:
//! `v3 tools=2026-01` and `task=v3 tools=2026-01` mean the same. Two versions are foreign to each other when both name
//! a part and disagree on it; a part that only one of them names decides nothing.
//!
//! Of a part named twice, the last counts. Contests do not read parts: claims compete under equal version text.

/// The name of the part without a name.
const TASK: &str = "task";

/// True if both versions name a part with different values.
pub(crate) fn are_foreign(left: &str, right: &str) -> bool {
    left != right
        && names(left).chain(names(right)).any(|name| {
            let (left, right) = (part(left, name), part(right, name));
            left.is_some() && right.is_some() && left != right
        })
}

/// The name and value of a word; a word without a name is of the task.
fn split(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| !name.is_empty())
}

/// The names of all parts, with repetitions.
fn names(version: &str) -> impl Iterator<Item = &str> {
    version.split_whitespace().map(|word| split(word).map_or(TASK, |(name, _)| name))
}

/// The value of a part; words without a name are one value of the task.
fn part(version: &str, name: &str) -> Option<String> {
    let named = version.split_whitespace().filter_map(split).rfind(|(part, _)| *part == name);
    let named = named.map(|(_, value)| value.to_owned());
    named.or_else(|| {
        let words: Vec<&str> = version.split_whitespace().filter(|word| split(word).is_none()).collect();
        (name == TASK && !words.is_empty()).then(|| words.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::are_foreign;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_both_name_must_agree() {
        for (left, right, foreign) in [
            ("v3", "v3", false),
            ("v3", "v4", true),
            ("v3", "task=v3", false),
            ("v3 tools=2026-01", "tools=2026-01 task=v3", false),
            ("v3 tools=2026-01", "v3 tools=2026-02", true),
            ("v3 tools=2026-01", "v3 site=abc", false),
            ("tools=2026-01", "v3", false),
            ("tools=2026-01", "v3  tools=2026-01 site=abc", false),
            ("site=abc", "site=abd tools=1", true),
            ("release 7", "release  7", false),
            ("release 7", "release 8", true),
            ("=v3", "v3", true),
            ("", "v3", false),
            ("tools=1 tools=2", "tools=2", false),
        ] {
            assert_eq!(are_foreign(left, right), foreign, "{left:?} and {right:?}");
            assert_eq!(are_foreign(right, left), foreign, "{right:?} and {left:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_compare_as_tables_do(
            left in proptest::collection::btree_map("[a-c]", 0u8..2, 0..4),
            right in proptest::collection::btree_map("[a-c]", 0u8..2, 0..4),
        ) {
            let written = |parts: &BTreeMap<String, u8>| {
                parts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
            };
            let disagree = left.iter().any(|(name, value)| right.get(name).is_some_and(|other| other != value));
            prop_assert_eq!(are_foreign(&written(&left), &written(&right)), disagree);
        }
    }
}
