//! Embedders: items and questions without vectors, fingerprints, static models.

#[cfg(feature = "embed-static")]
mod static_model;

use holotype::answer::Output;
use holotype::embed::{EmbedError, Embedder, HashingEmbedder};
use holotype::interchange::{self, ImportOptions};
use holotype::query::Params;
use holotype::{Durability, Error, Holotype, NewRecall, NewTrace, Options, ReembedOptions, Space};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A model of two dimensions: how many vowels a text has, and how many other letters. It counts its calls.
#[derive(Debug, Default)]
struct Letters {
    fingerprint: &'static str,
    calls: AtomicUsize,
    questions: AtomicUsize,
    failure: Mutex<Option<String>>,
}

impl Letters {
    fn named(fingerprint: &'static str) -> Letters {
        Letters { fingerprint, ..Letters::default() }
    }
}

impl Embedder for Letters {
    fn fingerprint(&self) -> String {
        self.fingerprint.to_owned()
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(failure) = self.failure.lock().unwrap().clone() {
            return Err(EmbedError::new(failure));
        }
        let vector = |text: &str| {
            let vowels = text.chars().filter(|c| "aeiou".contains(*c)).count() as f32;
            let others = text.chars().filter(|c| c.is_alphabetic()).count() as f32 - vowels;
            (vowels + others > 0.0).then(|| vec![vowels, others])
        };
        Ok(texts.iter().map(|text| vector(text)).collect())
    }

    fn embed_query(&self, text: &str) -> Result<Option<Vec<f32>>, EmbedError> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        Ok(self.embed_passages(&[text])?.pop().flatten())
    }
}

fn options(embedder: &std::sync::Arc<Letters>) -> Options {
    Options::default().embedder(std::sync::Arc::clone(embedder))
}

fn letters() -> std::sync::Arc<Letters> {
    std::sync::Arc::new(Letters::named("letters-1"))
}

fn setting(database: &Holotype) -> Vec<String> {
    let output = database.query("show settings", &Params::new()).unwrap().remove(0);
    let Output::Table(table) = output else { panic!("a table") };
    let rows = table.typed::<(String, String, String)>().unwrap();
    rows.into_iter().filter(|(name, ..)| name == "embedder").map(|(_, value, _)| value).collect()
}

#[test]
fn items_and_questions_without_a_vector_are_embedded_by_every_way_in() {
    let dir = tempfile::tempdir().unwrap();
    let embedder = letters();
    let database = Holotype::create(dir.path().join("db"), options(&embedder)).unwrap();
    let mut transaction = database.begin().unwrap();
    let trace = transaction.record(NewTrace::turn("e", "aab").key("t")).unwrap();
    let given = transaction.record(NewTrace::turn("e", "aab").vector(vec![0.0, 5.0])).unwrap();
    let blank = transaction.record(NewTrace::turn("e", "123")).unwrap();
    let fact = transaction.remember(NewRecall::fact("abb").ungrounded()).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database
        .query("record turn 'oo' in episode 'e'; remember fact 'bb' from 't' with key = 'said'", &Params::new())
        .unwrap();
    let line = "{\"trace\":{\"key\":\"imported\",\"kind\":\"turn\",\"episode\":\"e\",\"fields\":{\"text\":\"ooo\"}}}";
    let report =
        interchange::import(&database, "l", line.as_bytes(), None, &ImportOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(report.embedded, 1);

    let snapshot = database.snapshot();
    let vector = |id| snapshot.vector(id).unwrap();
    assert_eq!(snapshot.space().unwrap(), Some(Space::new("letters-1", 2)));
    assert_eq!(vector(trace), Some(vec![2.0, 1.0]));
    assert_eq!(vector(given), Some(vec![0.0, 5.0]));
    assert_eq!(vector(blank), None);
    assert_eq!(vector(fact), Some(vec![1.0, 2.0]));
    let by_key = |key: &str| vector(snapshot.get(key).unwrap().unwrap().id);
    assert_eq!((by_key("said"), by_key("imported")), (Some(vec![0.0, 2.0]), Some(vec![3.0, 0.0])));

    assert_eq!(embedder.questions.load(Ordering::Relaxed), 0);
    let answer = snapshot.recall("aaaaaa").limit(1).run().unwrap();
    assert_eq!(embedder.questions.load(Ordering::Relaxed), 1);
    // Nothing shares a word with the question, so the row was found by its vector.
    assert_eq!(answer.rows.len(), 1, "{answer:?}");
}

#[test]
fn a_speaker_is_read_by_the_model_whichever_way_a_turn_comes_in() {
    let dir = tempfile::tempdir().unwrap();
    let database = Holotype::create(dir.path().join("db"), options(&letters())).unwrap();
    let turn = |key: &str| NewTrace::turn("e", "aab").speaker("Bo").key(key);
    let mut transaction = database.begin().unwrap();
    transaction.record(turn("alone")).unwrap();
    transaction.record_all([turn("among"), turn("others")]).unwrap();
    transaction.record(NewTrace::turn("e", "aab").speaker(" ").key("nobody")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let statement = "record turn 'aab' in episode 'e' with speaker = 'Bo', key = 'stated'";
    database.query(statement, &Params::new()).unwrap();
    let line = r#"{"trace":{"key":"imported","kind":"turn","episode":"e","speaker":"Bo","fields":{"text":"aab"}}}"#;
    interchange::import(&database, "l", line.as_bytes(), None, &ImportOptions::default(), &mut |_| {}).unwrap();
    database.close().unwrap();
    // Written by a process without the model, and filled later.
    let database = Holotype::open(dir.path().join("db"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(turn("pending")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();
    let database = Holotype::open(dir.path().join("db"), options(&letters())).unwrap();
    assert_eq!(database.embed_pending(10).unwrap().embedded, 1);

    let check = |database: &Holotype| {
        let snapshot = database.snapshot();
        let vector = |key: &str| snapshot.vector(snapshot.get(key).unwrap().unwrap().id).unwrap();
        for key in ["alone", "among", "others", "stated", "imported", "pending"] {
            assert_eq!(vector(key), Some(vec![3.0, 2.0]), "`Bo: aab` has three vowels and two other letters: {key}");
        }
        assert_eq!(vector("nobody"), Some(vec![2.0, 1.0]));
    };
    check(&database);
    let other = Letters::named("letters-2");
    database.reembed(&Space::new("letters-2", 2), &other, &ReembedOptions::default()).unwrap();
    check(&database);
}

#[test]
fn many_texts_are_embedded_in_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let embedder = letters();
    let database = Holotype::create(dir.path().join("db"), options(&embedder)).unwrap();
    let mut transaction = database.begin().unwrap();
    let traces = ["a", "1", "bb"].map(|text| NewTrace::turn("e", text)).into_iter();
    let ids = transaction.record_all(traces.chain([NewTrace::turn("e", "a").vector(vec![9.0, 9.0])])).unwrap();
    let recalls = ["ab", "abb"].map(|text| NewRecall::fact(text).ungrounded());
    let recalls = transaction.remember_all(recalls).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let snapshot = database.snapshot();
    let vectors: Vec<_> = ids.iter().chain(&recalls).map(|id| snapshot.vector(*id).unwrap()).collect();
    let expected = [[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [9.0, 9.0], [1.0, 1.0], [1.0, 2.0]];
    let expected: Vec<_> = expected.iter().map(|pair| (*pair != [0.0, 0.0]).then(|| pair.to_vec())).collect();
    assert_eq!(vectors, expected);
    // One call for the traces and one for the recalls; the text without letters is asked for again, alone.
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 3);
}

#[test]
fn the_fingerprint_is_recorded_once_and_another_model_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let database = Holotype::create(&path, options(&letters())).unwrap();
    assert_eq!(setting(&database), ["letters-1"]);
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "ab")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    // The name of the model is its fingerprint here, but the space of a name that anybody can give proves nothing.
    assert_eq!(setting(&database), ["letters-1"]);
    database.close().unwrap();

    let error = Holotype::open(&path, Options::default().embedder(Letters::named("letters-2"))).unwrap_err();
    assert_eq!(error.code(), "other-embedder");
    let told = error.to_string();
    assert!(told.contains("letters-1") && told.contains("letters-2") && told.contains("reembed"), "{told}");
    let error = Holotype::open(&path, Options::default().embedder(HashingEmbedder::new(2))).unwrap_err();
    assert_eq!(error.code(), "other-embedder");

    let database = Holotype::open(&path, options(&letters())).unwrap();
    let error = database.begin().unwrap().set("embedder", "letters-2").unwrap_err();
    assert_eq!(error.code(), "other-embedder");
    database.close().unwrap();
    // Without an embedder the vectors stay, and questions go by words.
    let database = Holotype::open(&path, Options::default()).unwrap();
    assert_eq!(database.snapshot().recall("ab").run().unwrap().rows.len(), 1);
}

#[test]
fn spaces_of_the_built_in_embedder_and_of_other_dimensions_are_refused_too() {
    let dir = tempfile::tempdir().unwrap();
    for (name, space, code) in
        [("hashing", Space::new("hashing-v1-2", 2), "other-embedder"), ("wide", Space::new("mine", 3), "vector")]
    {
        let path = dir.path().join(name);
        Holotype::create(&path, Options::with_space(space)).unwrap().close().unwrap();
        let error = Holotype::open(&path, options(&letters())).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    let narrow = Options { space: Some(Space::new("mine", 3)), ..options(&letters()) };
    assert_eq!(Holotype::create(dir.path().join("narrow"), narrow).unwrap_err().code(), "vector");
    // A space of one's own name and the right dimension is taken.
    let path = dir.path().join("mine");
    Holotype::create(&path, Options::with_space(Space::new("mine", 2))).unwrap().close().unwrap();
    let database = Holotype::open(&path, options(&letters())).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "ab")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(setting(&database), ["letters-1"]);
}

#[test]
fn a_failing_embedder_writes_nothing_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let embedder = letters();
    let database = Holotype::create(dir.path().join("db"), options(&embedder)).unwrap();
    *embedder.failure.lock().unwrap() = Some("the server is asleep; start it".to_owned());
    let mut transaction = database.begin().unwrap();
    let error = transaction.record(NewTrace::turn("e", "ab")).unwrap_err();
    assert_eq!(error.code(), "embedder");
    assert_eq!(error.to_string(), "no vectors from the embedder: the server is asleep; start it");
    let error = transaction.record_all([NewTrace::turn("e", "ab")]).unwrap_err();
    assert_eq!(error.code(), "embedder");
    assert!(transaction.is_empty());
    drop(transaction);
    *embedder.failure.lock().unwrap() = None;
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "ab")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    *embedder.failure.lock().unwrap() = Some("the server is asleep; start it".to_owned());
    let error = database.snapshot().recall("ab").run().unwrap_err();
    assert!(matches!(error, Error::Embedder { .. }), "{error}");
}

/// An embedder that breaks a promise.
#[derive(Debug)]
struct Broken(Vec<Option<Vec<f32>>>);

impl Embedder for Broken {
    fn fingerprint(&self) -> String {
        "broken".to_owned()
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed_passages(&self, _: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        Ok(self.0.clone())
    }
}

#[test]
fn vectors_that_break_the_promise_are_refused() {
    for (vectors, told) in [
        (vec![], "0 vectors for 1 text"),
        (vec![None, None], "2 vectors for 1 text"),
        (vec![Some(vec![1.0])], "a vector of 1 number instead of 2"),
        (vec![Some(vec![1.0, f32::NAN])], "NaN as number 1"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::default().embedder(Broken(vectors));
        let database = Holotype::create(dir.path().join("db"), options).unwrap();
        let mut transaction = database.begin().unwrap();
        let error = transaction.record(NewTrace::turn("e", "ab")).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("broken"), "{told}: {error}");
        assert!(transaction.is_empty());
    }
}
