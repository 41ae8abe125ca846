//! Counts in messages: `1 transaction`, `2 transactions`.

/// A count with what is counted. The noun is given in the plural and may be followed by other words: its first word
/// that ends in *s* is put in the singular for a count of 1, as in `1 hash of the tree`.
pub fn counted(count: u64, plural: &str) -> String {
    if count != 1 {
        return format!("{count} {plural}");
    }
    let mut noun_seen = false;
    let singular = |word: &str| match word.strip_suffix('s').filter(|_| !noun_seen) {
        Some(stem) => {
            noun_seen = true;
            if let Some(stem) = stem.strip_suffix("ie") {
                return format!("{stem}y");
            }
            let hissing = ["she", "che", "sse", "xe"].iter().any(|ending| stem.ends_with(ending));
            if hissing { stem.trim_end_matches('e').to_owned() } else { stem.to_owned() }
        }
        None => word.to_owned(),
    };
    let words: Vec<String> = plural.split(' ').map(singular).collect();
    format!("1 {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_count() {
        assert_eq!(counted(0, "transactions"), "0 transactions");
        assert_eq!(counted(2, "log pages"), "2 log pages");
        for (plural, singular) in [
            ("transactions", "1 transaction"),
            ("log bytes", "1 log byte"),
            ("hashes of the tree", "1 hash of the tree"),
            ("files of the manifest", "1 file of the manifest"),
            ("entries", "1 entry"),
            ("rows against others", "1 row against others"),
        ] {
            assert_eq!(counted(1, plural), singular);
        }
    }
}
