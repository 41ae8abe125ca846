//! Work that must grow no faster than its input: pointers of one item into one long text, written, exported, imported
//! and imported again. The calls of the file system are counted, not time: with four times the pointers into four times
//! the text there may be at most five times the calls.

use holotype::interchange::{export, import};
use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::sync::Arc;

/// The calls of each step, by its name.
fn calls(count: usize) -> Vec<(&'static str, u64)> {
    let sim = SimVfs::new();
    let on = || Arc::new(sim.clone()) as Arc<dyn Vfs>;
    let options = || Options { checkpoint_records: 1 << 40, ..Options::default() };
    let database = Holotype::create_on(on(), "/db", options()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "word, ".repeat(count * 16)).key("long")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let mut steps = Vec::new();
    let mut counted = |name, step: &mut dyn FnMut()| {
        let before = sim.calls();
        step();
        steps.push((name, sim.calls() - before));
    };
    counted("remember", &mut || {
        let mut recall = NewRecall::fact("it is long").key("r");
        for at in 0..count as u64 {
            recall = recall.from(Pointer::to_key("long").bytes(at * 6, at * 6 + 4));
        }
        let mut transaction = database.begin().unwrap();
        transaction.remember(recall).unwrap();
        transaction.commit(Durability::Sync).unwrap();
    });
    let mut lines = Vec::new();
    counted("export", &mut || {
        export(&database.snapshot(), &mut lines, None).unwrap();
    });
    let other = Holotype::create_on(on(), "/other", options()).unwrap();
    for name in ["import", "import again"] {
        counted(name, &mut || {
            drop(import(&other, "lines", lines.as_slice(), None, &Default::default(), &mut |_| {}).unwrap());
        });
    }
    let seen = other.snapshot();
    let recall = seen.get("r").unwrap().unwrap();
    assert_eq!(seen.citations(recall.id).unwrap().len(), count);
    steps
}

#[test]
fn pointers_of_one_item_into_one_long_text_are_linear() {
    for ((name, few), (_, many)) in calls(500).into_iter().zip(calls(2_000)) {
        assert!(many < few * 5, "{name}: {few} calls for 500 pointers, {many} for 2000");
    }
}
