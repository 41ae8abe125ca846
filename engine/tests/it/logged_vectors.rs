//! A graph whose exact vectors stand in the log only: no answer of a database tells the difference, whatever happens to
//! the log.

use crate::observed::faults;
use holotype::embed::{EmbedError, Embedder};
use holotype::query::{ParamValue, Params};
use holotype::{
    Durability, Error, Forget, Holotype, ItemId, Layer, NewTrace, Options, ReembedOptions, Snapshot, Space,
};
use std::path::{Path, PathBuf};

const DIM: usize = 64;
const COUNT: u32 = 2_600;
/// The bytes of a vector where it is stored, and those of its code and links.
const VECTOR_BYTES: u64 = 2 * DIM as u64;
const GRAPH_BYTES: u64 = DIM as u64 + 32 * 4 + 12;

/// A vector of this length.
fn vector(item: u32, length: f32) -> Vec<f32> {
    let given: Vec<f32> = (0..DIM as u32).map(|d| (((item * 7 + d) * (d + 3)) as f32 * 0.37).sin()).collect();
    let own = given.iter().map(|x| x * x).sum::<f32>().sqrt();
    given.iter().map(|x| x / own * length).collect()
}

fn options() -> Options {
    Options { page_size: 4096, ..Options::with_space(Space::new("test", DIM)) }
}

fn fill(path: &Path, length: f32) -> Holotype {
    let database = Holotype::create(path, options()).unwrap();
    for part in 0..COUNT / 100 {
        let mut transaction = database.begin().unwrap();
        for item in part * 100..(part + 1) * 100 {
            let trace = NewTrace::turn("e", format!("sentence number {item}")).key(format!("t{item}"));
            transaction.record(trace.vector(vector(item, length))).unwrap();
        }
        transaction.commit(Durability::None).unwrap();
    }
    database
}

/// A database whose vectors are in a graph.
fn linked() -> (tempfile::TempDir, PathBuf, Holotype) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.holo");
    let database = fill(&path, 1.0);
    database.checkpoint().unwrap();
    (dir, path, database)
}

/// The ten nearest to some questions, and the vectors and scores of some items.
fn told(snapshot: &Snapshot) -> Vec<Vec<(ItemId, f32)>> {
    let near = |item| snapshot.nearest(Layer::Trace, &vector(item, 1.0), 10).unwrap();
    let mut told: Vec<_> = [3, 99, 1_000, 2_599, 5_000].into_iter().map(near).collect();
    let filtered = "recall near $v through traces 20 by near where key = 't7' or key = 't2000' limit 5";
    let params = Params::from([("v".to_owned(), ParamValue::Vector(vector(8, 1.0)))]);
    for output in snapshot.query(filtered, &params).unwrap() {
        let holotype::answer::Output::Answer(answer) = output else { panic!("no answer") };
        told.push(answer.rows.iter().map(|row| (row.item, row.score)).collect());
    }
    told
}

/// The bytes of the segments of vectors of a closed or checkpointed database.
fn vector_bytes(path: &Path) -> u64 {
    let files = std::fs::read_dir(path.join("vectors")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// True if the graph of so many vectors has none of them.
fn is_logged(path: &Path, count: u32) -> bool {
    let (bytes, graph) = (vector_bytes(path), u64::from(count) * GRAPH_BYTES);
    assert!(bytes > graph / 8 * 7, "there is a graph: {bytes}");
    bytes < graph + u64::from(count) * VECTOR_BYTES / 2
}

#[test]
fn a_graph_refers_to_the_log_and_changes_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    for (length, is_reference) in [(1.0, true), (3.0, false)] {
        let path = dir.path().join(format!("{length}.holo"));
        let database = fill(&path, length);
        let before = database.snapshot();
        let scored = told(&before);
        database.checkpoint().unwrap();
        assert_eq!(is_logged(&path, COUNT), is_reference, "vectors of length {length}");
        assert_eq!(told(&database.snapshot()), scored);
        assert_eq!(told(&before), scored, "a snapshot keeps what it had");
        assert_eq!(faults(&database), [""; 0]);
        drop(before);
        database.close().unwrap();
        let database = Holotype::open(&path, options()).unwrap();
        assert_eq!((database.report().rebuilt.clone(), told(&database.snapshot())), (None, scored.clone()));
        database.close().unwrap();
        // Made anew from the log alone, before there is anything to search.
        std::fs::remove_dir_all(path.join("vectors")).unwrap();
        std::fs::remove_file(path.join("catalog.redb")).unwrap();
        let database = Holotype::open(&path, options()).unwrap();
        assert!(database.report().rebuilt.is_some());
        assert_eq!(told(&database.snapshot()), scored);
        assert_eq!(is_logged(&path, COUNT), is_reference, "vectors of length {length}, rebuilt");
        database.compact().unwrap();
        assert_eq!((told(&database.snapshot()), is_logged(&path, COUNT)), (scored, is_reference));
        database.close().unwrap();
    }
}

#[test]
fn more_is_linked_and_what_is_forgotten_is_not_found() {
    let (_dir, path, database) = linked();
    let mut transaction = database.begin().unwrap();
    for item in COUNT..2 * COUNT {
        transaction.record(NewTrace::turn("e", "one more").vector(vector(item, 1.0))).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    database.checkpoint().unwrap();
    assert!(is_logged(&path, 2 * COUNT));
    let old = database.snapshot();
    let near = |snapshot: &Snapshot, item| snapshot.nearest(Layer::Trace, &vector(item, 1.0), 3).unwrap();
    for item in [5, 2_500, 2_700, 5_100] {
        assert!(near(&old, item).iter().any(|(id, score)| id.0 == item && *score > 0.999), "{item}");
    }
    database.forget(&[ItemId(5), ItemId(2_700)], &Forget::because("it is a test")).unwrap();
    let new = database.snapshot();
    for item in [5, 2_700] {
        assert!(near(&new, item).iter().all(|(id, _)| id.0 != item), "{item} was forgotten");
        assert!(new.vector(ItemId(item)).unwrap().is_none());
    }
    assert!(near(&old, 5).iter().all(|(id, _)| id.0 != 5), "nor does a snapshot from before find it");
    assert!(near(&new, 2_500).iter().any(|(id, score)| id.0 == 2_500 && *score > 0.999));
    assert_eq!(faults(&database), [""; 0]);
}

#[test]
fn records_that_retention_moves_are_found_where_they_are() {
    let (_dir, path, database) = linked();
    let scored = told(&database.snapshot());
    let since = database.snapshot().commit();
    let report = database.retain(since, None).unwrap();
    assert!(report.segments > 0, "{report:?}");
    assert_eq!(told(&database.snapshot()), scored);
    assert_eq!(database.snapshot().vector(ItemId(7)).unwrap().map(|vector| vector.len()), Some(DIM));
    database.close().unwrap();
    let database = Holotype::open(&path, options()).unwrap();
    assert_eq!(told(&database.snapshot()), scored);
    assert_eq!(faults(&database), [""; 0]);
    database.close().unwrap();
    std::fs::remove_dir_all(path.join("vectors")).unwrap();
    let database = Holotype::open(&path, options()).unwrap();
    assert_eq!(told(&database.snapshot()), scored);
}

/// The file and the offset of the record with a text.
fn place_of(path: &Path, text: &str) -> (PathBuf, usize) {
    let files = std::fs::read_dir(path.join("log")).unwrap().map(|file| file.unwrap().path());
    let find = |file: PathBuf| {
        let bytes = std::fs::read(&file).unwrap();
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes())?;
        Some((file, at))
    };
    files.into_iter().find_map(find).unwrap()
}

#[test]
fn a_vector_in_a_damaged_record_is_replaced_by_its_code_and_the_row_is_left_out() {
    let (_dir, path, database) = linked();
    database.close().unwrap();
    let (file, at) = place_of(&path, "sentence number 1234");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    // The checkpoint holds the record, so opening does not read it.
    let database = Holotype::open(&path, options()).unwrap();
    let snapshot = database.snapshot();
    let found = snapshot.nearest(Layer::Trace, &vector(1_234, 1.0), 3).unwrap();
    assert!(found.iter().any(|(id, score)| id.0 == 1_234 && *score > 0.98), "by its code: {found:?}");
    let answer = snapshot.recall("").near(vector(1_234, 1.0)).run();
    let answer = answer.unwrap();
    assert!(answer.rows.iter().all(|row| row.item.0 != 1_234) && !answer.notes.is_empty(), "{answer:?}");
    assert!(matches!(snapshot.item(ItemId(1_234)), Err(Error::Storage(_))));
    assert!(!faults(&database).is_empty());
}

/// Vectors other than those that were given.
#[derive(Debug)]
struct Turned;

impl Embedder for Turned {
    fn fingerprint(&self) -> String {
        "turned".to_owned()
    }

    fn dimensions(&self) -> usize {
        DIM
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let number = |text: &str| text.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Ok(texts.iter().map(|text| Some(vector(number(text) + 1, 1.0))).collect())
    }
}

#[test]
fn vectors_made_anew_stand_apart_and_old_snapshots_keep_theirs() {
    let (_dir, path, database) = linked();
    let old = database.snapshot();
    let scored = told(&old);
    database.reembed(&Space::new("turned", DIM), &Turned, &ReembedOptions::default()).unwrap();
    database.checkpoint().unwrap();
    let found = database.snapshot().nearest(Layer::Trace, &vector(8, 1.0), 1).unwrap();
    assert_eq!(found[0].0, ItemId(7), "its text has the vector of the next one now");
    assert_eq!(told(&old), scored);
    drop(old);
    database.close().unwrap();
    let database = Holotype::open(&path, Options { page_size: 4096, ..Options::default() }).unwrap();
    assert_eq!(database.snapshot().nearest(Layer::Trace, &vector(8, 1.0), 1).unwrap()[0].0, ItemId(7));
    assert_eq!(faults(&database), [""; 0]);
}
