//! Records of any type and payload, appended directly to the log of an intact database: opening refuses them, or
//! applies them and then answers, checkpoints and opens again.

use std::path::Path;
use std::sync::Arc;

use holotype::query::Params;
use holotype_storage::log::{Log, OpenOptions};
use holotype_storage::vfs::{Crash, SimVfs};
use holotype_storage::{Error, NewRecord};

use crate::input::{Input, put_counted};
use crate::story;

const LOG: &str = "/db/log";

/// Appends the records as one transaction and opens the database.
///
/// # Panics
/// When a database that was opened is another one after opening it again.
pub fn target(data: &[u8]) {
    let mut input = Input::new(data);
    let mut records = Vec::new();
    while !input.is_empty() && records.len() < 64 {
        let kind = input.byte();
        records.push(NewRecord { kind, payload: input.counted().to_vec() });
    }
    let disk = story::disk();
    if !append(&disk, &records) {
        return;
    }
    let Ok(database) = story::open(&disk) else { return };
    let snapshot = database.snapshot();
    let seen = story::see_all(&snapshot);
    for script in [
        "recall 'price of UA123'",
        "recall 'price' in episode 'trip-42' expand evidence",
        "find recalls",
        "find pages",
        "count items by kind",
        "show episodes",
        "verify",
    ] {
        let _ = snapshot.query(script, &Params::new());
    }
    if database.checkpoint().is_err() || database.close().is_err() {
        return;
    }
    let database = story::open(&disk.crash(Crash::Lose)).expect("what was checkpointed opens");
    let again = story::see_all(&database.snapshot());
    assert_eq!(seen.ok(), again.ok(), "a checkpoint changes no answer");
}

fn append(disk: &SimVfs, records: &[NewRecord]) -> bool {
    let opened =
        Log::open::<Error>(Arc::new(disk.clone()), Path::new(LOG), None, &OpenOptions::default(), &mut |_| Ok(()));
    let (log, _) = opened.expect("the story's log is sound");
    let Ok(appended) = log.append(records, 1_767_607_300_000_000) else { return false };
    log.sync_to(appended.end).expect("a simulated disk can be synced");
    true
}

/// The records of transactions that could follow the story, one transaction a seed.
pub fn seeds() -> Vec<Vec<u8>> {
    SEQUELS.iter().map(|script| seed(script)).collect()
}

const SEQUELS: [&str; 5] = [
    "record call 'UA123 price=$470' in episode 'trip-42' with key = 't4', tool = 'search_flights', status = success",
    "open episode 'trip-43' with task = 'book a hotel', version = 'v3'; \
     record turn 'a quiet room' in episode 'trip-43'",
    "remember fact 'A bag costs $35' from 't1' quoting 'seats 2' with key = 'r3'; link 'r3' sibling 'r2'",
    "mark 't1' failed because 'HTTP 504'; set recency.half-life = 2d",
    "unlink 'r2' sibling '#2'; remember fact 'A seat' from 't1' quoting 'seats 2' with key = 'r4'; \
     unlink 'r4' cites 't1' quoting 'seats 2'; close episode 'trip-42'",
];

fn seed(script: &str) -> Vec<u8> {
    let disk = story::disk();
    let database = story::open(&disk).expect("the story opens");
    let before = database.head();
    database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}"));
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let disk = Arc::new(disk.crash(Crash::Keep));
    let (log, _) = Log::open::<Error>(disk, Path::new(LOG), None, &options, &mut |_| Ok(())).expect("it is sound");
    let mut added = log.scan(before.position).expect("a commit ends there");
    let transaction = added.next().expect("the script wrote").expect("it is sound");
    transaction.records.iter().fold(Vec::new(), |mut seed, record| {
        seed.push(record.kind);
        put_counted(&record.payload, &mut seed);
        seed
    })
}
