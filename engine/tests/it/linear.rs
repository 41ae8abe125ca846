//! Work that must grow no faster than its input: pointers of one item into one long text, written, exported, imported
//! and imported again; lines of claims of one item, and of citations by one. The calls of the file system are counted,
//! not time: with four times the pointers into four times the text there may be at most five times the calls.

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

/// The calls of an import of these lines, and of another one of the same lines, which adds nothing.
fn calls_of_import(lines: &str) -> [u64; 2] {
    let sim = SimVfs::new();
    let options = Options { checkpoint_records: 1 << 40, ..Options::default() };
    let database = Holotype::create_on(Arc::new(sim.clone()), "/db", options).unwrap();
    let mut before = sim.calls();
    [true, false].map(|is_new| {
        let report = import(&database, "lines", lines.as_bytes(), None, &Default::default(), &mut |_| {}).unwrap();
        assert_eq!(report.added == 0, !is_new, "{report:?}");
        let calls = sim.calls() - before;
        before = sim.calls();
        calls
    })
}

#[test]
fn citations_by_one_item_a_line_each_are_linear() {
    let lines = |count: usize| -> String {
        let trace = |at| {
            format!("{{\"trace\":{{\"key\":\"t{at}\",\"episode\":\"e\",\"fields\":{{\"text\":\"text {at}\"}}}}}}\n")
        };
        let traces: String = (0..count).map(trace).collect();
        let fact = "{\"recall\":{\"key\":\"r\",\"kind\":\"fact\",\"text\":\"all\",\"from\":[{\"key\":\"t0\"}]}}\n";
        let link = |at| format!("{{\"link\":{{\"from\":\"r\",\"edge\":\"cites\",\"to\":{{\"key\":\"t{at}\"}}}}}}\n");
        traces + fact + &(1..count).map(link).collect::<String>()
    };
    let (few, many) = (calls_of_import(&lines(100)), calls_of_import(&lines(400)));
    assert!(few.iter().zip(&many).all(|(few, many)| *many < few * 5), "{few:?} calls for 100, {many:?} for 400");
}

#[test]
fn claims_of_one_item_are_found_again_whatever_was_claimed_between() {
    let claim = |key: &str, name: &str, value: &str| {
        format!("{{\"claim\":{{\"key\":\"{key}\",\"name\":\"{name}\",\"value\":\"{value}\"}}}}\n")
    };
    let trace = |key: &str| {
        format!("{{\"trace\":{{\"key\":\"{key}\",\"episode\":\"e\",\"fields\":{{\"text\":\"of {key}\"}}}}}}\n")
    };
    let mut lines = trace("a") + &trace("b");
    for at in 0..300 {
        let name = format!("n{}", at % 7);
        lines += &claim(if at % 3 == 0 { "a" } else { "b" }, &name, &format!("v{at}"));
        lines += &claim("a", &name, &format!("v{}", at / 2));
    }
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", Options::default()).unwrap();
    let import = || import(&database, "lines", lines.as_bytes(), None, &Default::default(), &mut |_| {}).unwrap();
    let first = import();
    assert!(first.known > 0 && first.added > 300, "{first:?}");
    assert_eq!((import().added, database.snapshot().stats().unwrap().claims), (0, first.added - 2));
}
