//! No file makes a reader panic: mutated fixtures, cut ones, mixtures of two formats, and noise.

use holotype_import::{Format, guess, read_only};
use proptest::prelude::*;
use proptest::sample::Index;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Fixtures that are no file of their format, or hold nothing: what is beside the messages, and a ZIP, which is opened
/// before its files are read.
const EMPTY: [&str; 5] = ["channels.json", "empty.md", "export.zip", "ignored.txt", "users.json"];

/// Files that only `--map` explains: a table of unusual columns, and dates of which any part may be the month.
const UNNAMED: [&str; 2] = ["android.txt", "vectors.csv"];

/// The fixtures, by name.
static SEEDS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let paths = files_below(Path::new(FIXTURES));
    paths.iter().map(|path| (name_of(path), std::fs::read(path).unwrap())).collect()
});

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/import/tests/fixtures");

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Formats that are read from text; the others need a file of their own.
fn formats() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| !matches!(format, Format::Parquet | Format::Langgraph))
}

#[derive(Debug, Clone)]
enum Change {
    Set(Index, u8),
    Remove(Index, u8),
    Repeat(Index, u8),
    Insert(Index, &'static str),
    Cut(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let pieces = [
        "null",
        "[]",
        "{}",
        "\"\"",
        "-1",
        "1e999",
        "\u{0}",
        "\u{feff}",
        "\r\n",
        "[[",
        "\"parent\":\"a\"",
        "---\n",
        "99999999",
        "é",
        "\"content\":",
        "<@",
        "]] ",
        "🙂",
        "0001-01-01",
        ",",
    ];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, len)| Change::Remove(at, len)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, len)| Change::Repeat(at, len)),
        (any::<Index>(), prop::sample::select(pieces.to_vec())).prop_map(|(at, piece)| Change::Insert(at, piece)),
        any::<Index>().prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let (Change::Set(at, _) | Change::Remove(at, _) | Change::Repeat(at, _) | Change::Insert(at, _) | Change::Cut(at)) =
        change;
    let at = at.index(bytes.len());
    match change {
        Change::Set(_, byte) => bytes[at] = *byte,
        Change::Remove(_, len) => drop(bytes.drain(at..(at + usize::from(*len)).min(bytes.len()))),
        Change::Repeat(_, len) => {
            let piece = bytes[at..(at + usize::from(*len)).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        Change::Insert(_, piece) => drop(bytes.splice(at..at, piece.bytes())),
        Change::Cut(_) => bytes.truncate(at),
    }
}

#[test]
fn each_reader_reads_each_fixture() {
    let mut seen = Vec::new();
    let fixtures = Path::new(FIXTURES);
    for path in files_below(fixtures) {
        let folder = path.strip_prefix(fixtures).unwrap().components().next().unwrap();
        let own: Format = folder.as_os_str().to_str().unwrap().parse().unwrap();
        let (name, bytes) = (name_of(&path), std::fs::read(&path).unwrap());
        // Formats that need a file of their own are read by the tests of their features.
        if EMPTY.contains(&name.as_str()) || !formats().any(|format| format == own) {
            continue;
        }
        assert_eq!(guess(&name, &bytes), Some(own), "{name}");
        seen.push(own);
        if UNNAMED.contains(&name.as_str()) {
            continue;
        }
        let report = read_only(own, &name, &bytes).unwrap_or_else(|| panic!("{own} does not read {name}"));
        assert!(report.read > 0, "{own} finds nothing in {name}");
        assert!(report.unknown < report.read, "{own} knows nothing in {name}: {report:?}");
    }
    let unseen: Vec<Format> = formats().filter(|format| !seen.contains(format)).collect();
    assert!(unseen.is_empty(), "no fixture of {unseen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_mutation_of_a_fixture_makes_a_reader_panic(
        seed in any::<Index>(),
        changes in prop::collection::vec(change(), 1..8),
    ) {
        let (name, mut bytes) = seed.get(&SEEDS).clone();
        for change in &changes {
            apply(&mut bytes, change);
        }
        for format in formats() {
            read_only(format, &name, &bytes);
        }
        guess(&name, &bytes);
    }

    #[test]
    fn noise_makes_no_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in formats() {
            read_only(format, "noise.txt", &bytes);
        }
    }
}
