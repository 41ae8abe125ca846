//! Data in the interchange form: a database made of every file of a folder, and the questions asked of it.

use crate::Result;
use holotype::embed::{Embedder, HashingEmbedder};
use holotype::interchange::{ImportOptions, NpyReader, import};
use holotype::query::{ParamValue, Params};
use holotype::write_back::ByWords;
use holotype::{Durability, Encoding, Holotype, Options, Space};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A question with the members of its line.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) vector: Vec<f32>,
    /// The line it was read from.
    pub(crate) line: Value,
}

impl Question {
    /// The question as the parameter of a statement: its text with its vector.
    pub(crate) fn params(&self) -> Params {
        let both = ParamValue::TextVector { text: self.text.clone(), vector: self.vector.clone() };
        Params::from([("q".to_owned(), both)])
    }

    /// The strings of a list of the question's line.
    pub(crate) fn strings(&self, name: &str) -> Vec<String> {
        let list = self.line.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
    }
}

/// One file's questions, with the episode they are about.
pub(crate) struct Asked {
    pub(crate) episode: String,
    pub(crate) questions: Vec<Question>,
}

/// The origin of the vectors of a folder's lines and questions.
#[derive(Clone)]
pub(crate) enum Vectors {
    /// The files NAME.f16.npy and NAME.questions.f16.npy.
    Files,
    /// An embedder.
    Made(Arc<dyn Embedder>),
}

impl Vectors {
    /// Those of the hashing embedder.
    pub(crate) fn hashing() -> Vectors {
        Vectors::Made(Arc::new(HashingEmbedder::default()))
    }
}

/// A database of all files of a folder.
pub(crate) struct Dataset {
    pub(crate) database: Holotype,
    pub(crate) asked: Vec<Asked>,
    _dir: TempDir,
}

/// The names NAME of a folder that has NAME.jsonl beside NAME.questions.jsonl.
fn names(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".questions.jsonl").map(str::to_owned));
    }
    names.sort();
    if names.is_empty() {
        return Err(format!("{}: there is no NAME.questions.jsonl", dir.display()).into());
    }
    Ok(names)
}

impl Dataset {
    /// Imports every file of the folder into one database.
    pub(crate) fn load(dir: &Path) -> Result<Dataset> {
        Dataset::load_lines(dir, &|_| true)
    }

    /// As [`Dataset::load`], of the lines that are wanted.
    pub(crate) fn load_lines(dir: &Path, wanted: &dyn Fn(&Value) -> bool) -> Result<Dataset> {
        Dataset::load_changed(dir, &mut |line| wanted(&line).then_some(line))
    }

    /// As [`Dataset::load`], with each recall that cites a whole text pointing to the sentences of it that say the
    /// recall, as the engine finds them without a model ([`ByWords::sentences_of`]).
    pub(crate) fn load_linked(dir: &Path) -> Result<Dataset> {
        let linker = ByWords::default();
        let mut texts: HashMap<String, String> = HashMap::new();
        Dataset::load_changed(dir, &mut |mut line| {
            if let Some(key) = line.pointer("/trace/key").and_then(Value::as_str)
                && let Some(text) = line.pointer("/trace/fields/text").and_then(Value::as_str)
            {
                texts.insert(key.to_owned(), text.to_owned());
            }
            let finding = line.pointer("/recall/text").and_then(Value::as_str).map(str::to_owned);
            if let (Some(finding), Some(Value::Array(from))) = (finding, line.pointer_mut("/recall/from")) {
                *from = from.iter().flat_map(|pointer| linked(&linker, &texts, &finding, pointer)).collect();
            }
            Some(line)
        })
    }

    /// As [`Dataset::load`], with every line changed or left out.
    fn load_changed(dir: &Path, change: &mut dyn FnMut(Value) -> Option<Value>) -> Result<Dataset> {
        Dataset::load_named(dir, &names(dir)?, Vectors::Files, change)
    }

    /// As [`Dataset::load`], with these vectors.
    pub(crate) fn load_with(dir: &Path, vectors: Vectors) -> Result<Dataset> {
        Dataset::load_named(dir, &names(dir)?, vectors, &mut Some)
    }

    /// Imports the files NAME.jsonl of these names into one database, with every line changed or left out.
    pub(crate) fn load_named(
        dir: &Path,
        names: &[String],
        vectors: Vectors,
        change: &mut dyn FnMut(Value) -> Option<Value>,
    ) -> Result<Dataset> {
        let temporary = tempfile::tempdir()?;
        let file = |name: &str, rest: &str| dir.join(format!("{name}{rest}"));
        let embedder = match &vectors {
            Vectors::Files => None,
            Vectors::Made(embedder) => Some(Arc::clone(embedder)),
        };
        let space = match (&embedder, names.first()) {
            (None, Some(first)) => {
                let dim = NpyReader::open(file(first, ".f16.npy"))?.dim();
                Some(Space::new("bench", dim).encoding(Encoding::F16))
            }
            (None, None) => None,
            (Some(embedder), _) => Some(Space::new(embedder.name(), embedder.dimensions()).encoding(Encoding::F16)),
        };
        let options = space.map(Options::with_space).unwrap_or_default();
        let database = Holotype::create(temporary.path().join("bench.holo"), options)?;
        let mut asked = Vec::new();
        for name in names {
            let path = file(name, ".jsonl");
            let of_file = path.display().to_string();
            let mut lines = String::new();
            for line in BufReader::new(File::open(&path).map_err(|error| format!("{of_file}: {error}"))?).lines() {
                let Some(mut line) = change(serde_json::from_str(&line?)?) else { continue };
                for inner in line.as_object_mut().into_iter().flat_map(|line| line.values_mut()) {
                    let inner = inner.as_object_mut().filter(|_| embedder.is_some());
                    inner.map(|inner| inner.remove("row"));
                }
                lines += &format!("{line}\n");
            }
            let rows = match embedder {
                None => Some(NpyReader::open(file(name, ".f16.npy"))?),
                Some(_) => None,
            };
            let embedder = embedder.clone();
            let options = ImportOptions { durability: Durability::None, embedder, ..ImportOptions::default() };
            import(&database, &of_file, lines.as_bytes(), rows.as_ref(), &options, &mut |_| {})?;
            let questions = questions(&file(name, ".questions.jsonl"), &vectors, &file(name, ".questions.f16.npy"))?;
            asked.push(Asked { episode: episode_of(&path)?, questions });
        }
        database.checkpoint()?;
        Ok(Dataset { database, asked, _dir: temporary })
    }
}

impl Dataset {
    /// A database of generated runs in the interchange form, with vectors of the hashing embedder.
    pub(crate) fn of_runs(runs: Vec<(String, Asked)>) -> Result<Dataset> {
        let temporary = tempfile::tempdir()?;
        let database = Holotype::create(
            temporary.path().join("bench.holo"),
            Options::default().embedder(HashingEmbedder::default()),
        )?;
        let options = ImportOptions { durability: Durability::None, ..ImportOptions::default() };
        let mut all = Vec::new();
        for (lines, asked) in runs {
            import(&database, &asked.episode, lines.as_bytes(), None, &options, &mut |_| {})?;
            all.push(asked);
        }
        database.checkpoint()?;
        Ok(Dataset { database, asked: all, _dir: temporary })
    }
}

/// The pointers to the sentences of a text that say a finding, for one to the whole text.
fn linked(linker: &ByWords, texts: &HashMap<String, String>, finding: &str, pointer: &Value) -> Vec<Value> {
    let text = pointer.get("key").and_then(Value::as_str).and_then(|key| texts.get(key));
    let (Some(text), None) = (text, pointer.get("start")) else { return vec![pointer.clone()] };
    let spans = linker.sentences_of(text, finding).into_iter();
    let at = |span: std::ops::Range<usize>| {
        let mut pointer = pointer.clone();
        (pointer["start"], pointer["end"]) = (span.start.into(), span.end.into());
        pointer
    };
    spans.map(at).collect()
}

/// The episode a file is about: that of its first line.
fn episode_of(path: &Path) -> Result<String> {
    for line in BufReader::new(File::open(path)?).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        if let Some(id) = line.pointer("/episode/id").and_then(Value::as_str) {
            return Ok(id.to_owned());
        }
    }
    Err(format!("{}: names no episode", path.display()).into())
}

/// The questions of a file, with their vectors from another or of the hashing embedder.
fn questions(path: &Path, vectors: &Vectors, file: &Path) -> Result<Vec<Question>> {
    let rows = match vectors {
        Vectors::Files => Some(NpyReader::open(file)?),
        Vectors::Made(_) => None,
    };
    let mut questions = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let text = line.get("question").and_then(Value::as_str).ok_or("a question has no text")?.to_owned();
        let mut vector = Vec::new();
        match (vectors, &rows) {
            (Vectors::Made(embedder), _) => vector = embedder.embed_query(&text)?.unwrap_or_default(),
            (Vectors::Files, None) => {}
            (Vectors::Files, Some(rows)) => {
                let row = line.get("row").and_then(Value::as_u64).ok_or("a question has no row")?;
                rows.read_row(row, &mut vector)?;
            }
        }
        questions.push(Question { text, vector, line });
    }
    Ok(questions)
}

/// The middle of some durations, in microseconds.
pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
