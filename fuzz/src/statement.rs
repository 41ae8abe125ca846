//! Scripts on a small database: each is refused, or answered with evidence that exists.

use std::sync::LazyLock;

use holotype::answer::Output;
use holotype::query::{ParamValue, Params, parse};
use holotype::{Holotype, Verdict};

use crate::story;

/// The story's database, for scripts that only read.
static SHARED: LazyLock<Holotype> = LazyLock::new(|| story::open(&story::disk()).expect("the story opens"));

/// Runs the script: one that writes on a database of its own, which must then be sound and open again as it was.
///
/// # Panics
/// When a sound database shows evidence that is not there, or a script leaves an unsound one.
pub fn target(data: &[u8]) {
    let source = &*String::from_utf8_lossy(data);
    let Ok(script) = parse(source) else { return };
    if !script.needs_transaction() {
        run(&SHARED, source);
        return;
    }
    let disk = story::disk();
    let database = story::open(&disk).expect("the story opens");
    let before = database.head();
    let done = run(&database, source);
    assert!(done || database.head() == before, "a script that failed wrote something");
    let report = database.verify(&mut |_, _| ()).expect("a simulated disk can be read");
    assert!(report.is_clean(), "after {source:?}: {:?}", report.faults);
    let seen = story::see_all(&database.snapshot()).expect("a sound database can be read");
    database.close().expect("it can be closed");
    let database = story::open(&disk).expect("what was closed opens");
    assert_eq!(story::see_all(&database.snapshot()).expect("it can be read"), seen);
}

/// True if the script ran.
fn run(database: &Holotype, source: &str) -> bool {
    let params = Params::from([
        ("q".to_owned(), ParamValue::Text("price of UA123".to_owned())),
        ("e".to_owned(), ParamValue::Text("trip-42".to_owned())),
        ("k".to_owned(), ParamValue::Text("t1".to_owned())),
    ]);
    // Parameters that a script does not use are an error; it then gets none.
    let outputs = database.query(source, &params).or_else(|_| database.query(source, &Params::new()));
    match outputs {
        Ok(outputs) => {
            outputs.iter().for_each(check);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.code().is_empty());
            false
        }
    }
}

fn check(output: &Output) {
    match output {
        Output::Answer(answer) => {
            for row in &answer.rows {
                assert!(row.score.is_finite(), "{}: a score of {}", row.key, row.score);
                assert!(row.citations.iter().all(|citation| citation.verdict == Verdict::Ok), "{row:?}");
            }
            assert!(answer.to_json(Some("id")).is_object());
        }
        Output::Table(table) => {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
            assert_eq!(table.rows_to_json().len(), table.rows.len());
        }
        _ => {}
    }
}
