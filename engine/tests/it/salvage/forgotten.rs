//! A process that died while it forgot: what is saved of its log knows nothing of what it said was forgotten.

use holotype::query::Params;
use holotype::{Forget, Holotype, ItemId, Options, salvage_on};
use holotype_storage::vfs::{Failure, SimVfs};
use std::sync::Arc;

const SOURCE: &str = "/memory.holo";
const DEST: &str = "/saved.holo";
const SECRET: &str = "sub rosa";

#[test]
fn what_was_being_forgotten_is_not_brought_back() {
    let mut forgotten = 0;
    for call in 0.. {
        let disk = SimVfs::new();
        let options = Options { page_size: 4096, ..Options::default() };
        let database = Holotype::create_on(Arc::new(disk.clone()), SOURCE, options).unwrap();
        let run = |script: &str| database.query(script, &Params::new()).map(drop);
        run(&format!("record turn '{SECRET}' in episode 'e' with key = 't1'; record turn 'else' in episode 'e'"))
            .unwrap();
        run("remember fact 'it rests' from 't1' with key = 'r1'").unwrap();
        disk.fail_at(disk.calls() + call, Failure::Io, true);
        let done = database.forget(&[ItemId(0)], &Forget::because("asked to"));
        drop(database);
        disk.heal();
        let report = salvage_on(Arc::new(disk.clone()), SOURCE, DEST).unwrap();
        assert_eq!(report.items, 3, "call {call}: {:?}", report.lost);
        let saved = Holotype::open_on(Arc::new(disk.clone()), DEST, Options::default()).unwrap();
        assert!(saved.verify(&mut |_, _| {}).unwrap().is_clean(), "call {call}");
        let redacted = saved.snapshot().get("t1").unwrap().unwrap().attributes.redacted;
        assert!(redacted || done.is_err(), "call {call}");
        saved.close().unwrap();
        let says = |path: &std::path::PathBuf| {
            disk.bytes(path).unwrap().windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
        };
        let found: Vec<_> = disk.files().into_iter().filter(|path| path.starts_with(DEST) && says(path)).collect();
        assert!(!redacted || found.is_empty(), "call {call}: {found:?}");
        forgotten += u64::from(redacted && done.is_err());
        if done.is_ok() {
            break;
        }
    }
    assert!(forgotten > 0, "it was never cut off after it was said");
}
