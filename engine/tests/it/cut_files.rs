//! A mapped file that another program cuts ended the process with a signal. Now the statement that reads it fails or
//! says so, and the next opening makes the file again from the log.

use crate::damage::vector;
use holotype::answer::Output;
use holotype::query::{ParamValue, Params};
use holotype::{Durability, Holotype, Layer, NewTrace, Options, Space};
use std::path::{Path, PathBuf};

const COUNT: u32 = 600;

fn options() -> Options {
    Options { checkpoint_records: 1 << 40, checkpoint_bytes: 1 << 40, ..Options::default() }
}

/// A database whose vectors, words and columns are all in files of some pages.
fn filled(path: &Path) -> Holotype {
    let database = Holotype::create(path, Options { space: Some(Space::new("test", 8)), ..options() }).unwrap();
    let mut transaction = database.begin().unwrap();
    for n in 0..COUNT {
        let trace = NewTrace::turn("talk", format!("sentence number {n} of w{}", n % 97)).key(format!("t{n}"));
        transaction.record(trace.vector(vector(n))).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database.checkpoint().unwrap();
    database
}

const QUESTIONS: [&str; 4] = [
    "recall near $v through traces 5 by near score similarity 1 limit 5",
    "recall 'sentence w7' through traces 5 by words limit 5",
    "find traces where step >= 590",
    "count traces where status = unknown",
];

/// Each answer, with its notes; an error counts as a note.
fn answers(database: &Holotype) -> Vec<(String, Vec<String>)> {
    let params = |question: &str| match question.contains("$v") {
        true => Params::from([("v".to_owned(), ParamValue::Vector(vector(70)))]),
        false => Params::new(),
    };
    let told = |output: Option<Output>| match output {
        Some(Output::Answer(answer)) => {
            let keys: Vec<_> = answer.rows.iter().map(|row| row.key.as_str()).collect();
            // This note is about the question.
            let notes = answer.notes.iter().filter(|note| !note.starts_with("No query vector"));
            (format!("{keys:?}"), notes.cloned().collect())
        }
        Some(Output::Table(table)) => (format!("{:?}", table.rows), table.notes),
        Some(_) => panic!("neither answer nor table"),
        None => panic!("no answer"),
    };
    let asked = QUESTIONS.iter().map(|question| match database.snapshot().query(question, &params(question)) {
        Ok(mut outputs) => told(outputs.pop()),
        Err(error) => (String::new(), vec![error.to_string()]),
    });
    let mut answers: Vec<_> = asked.collect();
    answers.push(match database.snapshot().nearest(Layer::Trace, &vector(70), 5) {
        Ok(nearest) => (format!("{nearest:?}"), Vec::new()),
        Err(error) => (String::new(), vec![error.to_string()]),
    });
    answers
}

fn files(path: &Path, form: &str) -> Vec<PathBuf> {
    let folder = path.join(match form {
        "vseg" => "vectors",
        "wseg" => "words",
        _ => "columns",
    });
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == form)).collect();
    assert!(!files.is_empty(), "no file of the form {form}");
    files
}

#[test]
fn a_file_that_is_cut_while_it_is_mapped_ends_no_process_and_changes_no_answer_in_silence() {
    for form in ["vseg", "wseg", "cseg"] {
        for cut_to in [0, 4096] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("memory.holo");
            let database = filled(&path);
            let expected = answers(&database);
            assert!(expected.iter().all(|(_, notes)| notes.is_empty()), "{expected:?}");
            for file in files(&path, form) {
                let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
                let len = file.metadata().unwrap().len();
                file.set_len(cut_to.min(len)).unwrap();
            }
            let mut told = 0;
            for round in 0..2 {
                for (found, expected) in answers(&database).into_iter().zip(&expected) {
                    told += found.1.len();
                    assert!(
                        found.0 == expected.0 || !found.1.is_empty(),
                        "{form} cut to {cut_to}, round {round}: {} instead of {} in silence",
                        found.0,
                        expected.0
                    );
                }
            }
            assert!(told > 0 || cut_to > 0, "{form} cut to {cut_to}: nobody was told");
            // Closing may fail, since a checkpoint reads the file.
            drop(database);
            let database = Holotype::open(&path, options()).unwrap();
            assert_eq!(answers(&database), expected, "{form} cut to {cut_to}, opened again");
            let report = database.verify(&mut |_, _| {}).unwrap();
            assert!(report.is_clean(), "{form} cut to {cut_to}: {:?}", report.faults);
        }
    }
}
