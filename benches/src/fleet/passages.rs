//! A fleet of passages that somebody else wrote: those beside each other in a file are a database.

use super::Question;
use crate::Result;
use holotype::interchange::{ImportOptions, NpyReader, import};
use holotype::{Durability, Encoding, Holotype, Options, Space};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// Makes the databases, unless they are there, and reads the questions.
pub(super) fn make(data: &Path, name: &str, passages: usize, folder: &Path) -> Result<Vec<Question>> {
    let file = |rest: &str| data.join(format!("{name}{rest}"));
    let rows = NpyReader::open(file(".f16.npy"))?;
    let databases = divide(&file(".jsonl"), passages.max(1))?;
    for (number, lines) in databases.iter().enumerate() {
        let path = folder.join(format!("{number:06}.holo"));
        if path.exists() {
            continue;
        }
        let space = Space::new("bench", rows.dim()).encoding(Encoding::F16);
        let database = Holotype::create(path, Options::with_space(space))?;
        let options = ImportOptions { durability: Durability::None, ..ImportOptions::default() };
        import(&database, name, lines.as_bytes(), Some(&rows), &options, &mut |_| {})?;
        database.close()?;
    }
    let vectors = NpyReader::open(file(".questions.f16.npy"))?;
    let mut questions = Vec::new();
    for line in BufReader::new(File::open(file(".questions.jsonl"))?).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let text = line.get("question").and_then(Value::as_str).ok_or("a question has no text")?.to_owned();
        let row = line.get("row").and_then(Value::as_u64).ok_or("a question has no row")?;
        let mut vector = Vec::new();
        vectors.read_row(row, &mut vector)?;
        questions.push(Question { text, vector: Some(vector) });
    }
    match questions.is_empty() || databases.is_empty() {
        true => Err(format!("{}: no passages or no questions", data.display()).into()),
        false => Ok(questions),
    }
}

/// The lines of each database: so many traces, and the facts that cite them.
fn divide(path: &Path, passages: usize) -> Result<Vec<String>> {
    let mut databases: Vec<String> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for line in BufReader::new(File::open(path).map_err(|error| format!("{}: {error}", path.display()))?).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let text = |pointer: &str| line.pointer(pointer).and_then(Value::as_str);
        let place = match (text("/trace/key"), text("/recall/from/0/key")) {
            (Some(key), _) => {
                let place = places.len() / passages;
                places.insert(key.to_owned(), place);
                place
            }
            (None, Some(cited)) => *places.get(cited).ok_or("a fact cites no passage before it")?,
            // Concepts and links lead from one database to another.
            (None, None) => continue,
        };
        if databases.len() <= place {
            databases.resize(place + 1, String::new());
        }
        databases[place] += &format!("{line}\n");
    }
    Ok(databases)
}
