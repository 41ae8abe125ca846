//! While something is forgotten, whoever asks gets an answer: the state before or the one after, never an error.

use holotype::query::Params;
use holotype::{Durability, Forget, Holotype, NewTrace, Options, Space};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const ITEMS: usize = 300;

fn filled(options: Options) -> Holotype {
    let create = Options { space: Some(Space::new("test", 2)), page_size: 4096, ..options };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", create).unwrap();
    let mut transaction = database.begin().unwrap();
    for number in 0..ITEMS {
        let trace = NewTrace::turn(format!("e{}", number % 5), format!("note {number} about item {}", number % 9));
        transaction.record(trace.key(format!("k{number}")).vector(vec![1.0, number as f32])).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database
}

fn forget(database: &Holotype, numbers: std::ops::Range<usize>) {
    let snapshot = database.snapshot();
    let ids: Vec<_> = numbers.map(|number| snapshot.get(&format!("k{number}")).unwrap().unwrap().id).collect();
    database.forget(&ids, &Forget::because("asked")).unwrap();
}

/// Every question failed with `snapshot-forgotten` until the erasure had ended: 835 of 880 beside one of 20,000 items.
#[test]
fn questions_beside_a_forget_are_answered() {
    for options in [Options::default(), Options::shared()] {
        let database = filled(options);
        let old = database.snapshot();
        let (done, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
        let statement = |script: &str| drop(database.query(script, &Params::new()).unwrap());
        let questions: [&(dyn Fn() + Sync); 6] = [
            &|| statement("recall 'note about item' limit 5"),
            &|| statement("find traces limit 20 return key, text"),
            &|| assert!(database.snapshot().get(&format!("k{}", ITEMS - 1)).unwrap().is_some()),
            &|| drop(database.snapshot().recall("item 3").run().unwrap()),
            &|| assert_eq!(old.scan("k").map(Result::unwrap).count(), ITEMS),
            &|| assert_eq!(database.verify(&mut |_, _| {}).map(|it| it.faults).unwrap_or_default(), []),
        ];
        std::thread::scope(|scope| {
            for question in questions {
                let (done, asked) = (&done, &asked);
                scope.spawn(move || {
                    while !done.load(Ordering::SeqCst) {
                        question();
                        asked.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            for number in 0..24 {
                forget(&database, number * 2..number * 2 + 2);
            }
            done.store(true, Ordering::SeqCst);
        });
        assert!(asked.load(Ordering::SeqCst) > 0);
        assert!(old.get("k3").unwrap().unwrap().content.text().is_empty(), "and forgotten is forgotten");
    }
}

/// An erasure request: forget what one person said, then keep no history of it. The rows of the hash tree
/// lagged behind what the forget had appended: "the catalog has no hash of subtree 1 of level 8".
#[test]
fn many_items_are_forgotten_and_then_history_is_cut_off() {
    for options in [Options::default(), Options::shared()] {
        let database = filled(options);
        forget(&database, 0..200);
        let newest = database.head().commit.0;
        database.retain(newest, None).unwrap();
        assert_eq!(database.verify(&mut |_, _| {}).unwrap().faults, []);
        let snapshot = database.snapshot();
        assert!(snapshot.get("k7").unwrap().unwrap().attributes.redacted);
        assert_eq!(snapshot.get("k250").unwrap().unwrap().content.text(), "note 250 about item 7");
    }
}
