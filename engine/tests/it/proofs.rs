//! Proofs of items: every item, of every kind and age, is provable from its commit on and after any checkpoint,
//! reopening and rebuilding; what is changed in a proof is found; a log that was rolled back or forked cannot be proven
//! to have grown.

use holotype::proof::{Growth, Proof, ProvenContent, SignerKey, check, check_growth};
use holotype::query::Params;
use holotype::{Durability, Holotype, ItemId, NewRecall, NewTrace, Options, Pointer, Snapshot, Target, Verdict};
use holotype_storage::vfs::{SimVfs, Vfs};
use std::sync::Arc;

const PATH: &str = "/db";

fn options() -> Options {
    Options { page_size: 4096, checkpoint_records: 1_000_000, checkpoint_bytes: 1 << 40, ..Options::default() }
}

fn key() -> SignerKey {
    SignerKey::generate("test/log").unwrap()
}

fn run(database: &Holotype, script: &str) {
    database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}"));
}

/// Proves every item, reads the proof as text, checks it, and compares with what the snapshot says.
fn prove_all(snapshot: &Snapshot, key: &SignerKey) {
    for id in (0..snapshot.len()).map(ItemId) {
        let proof = snapshot.prove(id, key).unwrap();
        let read = Proof::from_json(&proof.to_json()).unwrap();
        assert_eq!(read, proof);
        let checked = check(&read, key.verifier()).unwrap();
        assert_eq!((checked.item, checked.tree.clone()), (id, snapshot.tree_head(key.verifier()).unwrap()));
        let item = snapshot.item(id).unwrap();
        let content = checked.content.unwrap();
        assert_eq!(content.kind, item.attributes.kind);
        assert_eq!(content.fields.iter().find(|(name, _)| name == "text").unwrap().1, item.content.text());
        let citations = snapshot.citations(id).unwrap();
        assert_eq!(checked.citations.len(), citations.len(), "{id}");
        for (shown, found) in checked.citations.iter().zip(&citations) {
            assert_eq!((shown.start, shown.end, &shown.text), (found.start, found.end, &found.text));
            assert_eq!(shown.verdict, Verdict::Ok);
        }
        assert!(proof.records.iter().all(|record| record.path.len() <= 20));
    }
}

/// Items of many sorts: cited, cited twice, given pointers later, with a page, with a field of several chunks.
fn story(database: &Holotype) {
    run(
        database,
        "record call 'UA123 price=$450' in episode 'trip' with key = 't1', tool = 'search';
         record turn 'take it' in episode 'trip' with key = 't2';
         remember fact 'UA123 costs $450' from 't1' quoting 'price=$450' with key = 'r1'",
    );
    run(database, "record turn 'and a bag' in episode 'trip' with key = 't3'; close episode 'trip'");
    let mut transaction = database.begin().unwrap();
    let r1 = transaction.find(&Target::Key("r1".into())).unwrap();
    transaction.record(NewTrace::turn("long", "many words and ".repeat(1_300_000)).key("t4")).unwrap();
    let fact = NewRecall::fact("a long one").key("r2").from(Pointer::to_key("t4").bytes(10, 17_000_000));
    let fact = transaction.remember(fact.from(Pointer::to_page("trip/p1"))).unwrap();
    transaction.cite(fact, &Pointer::to_key("t3")).unwrap();
    transaction.cite(fact, &Pointer::to_key("t2").bytes(0, 4)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.cite(fact, &Pointer::to_item(r1)).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

/// Enough records for several blocks of the tree.
fn more(database: &Holotype, from: usize, count: usize) {
    for number in from..from + count {
        let mut transaction = database.begin().unwrap();
        let trace = NewTrace::turn("more", format!("number {number}")).key(format!("m{number}"));
        transaction.record(trace).unwrap();
        let fact = NewRecall::fact(format!("fact {number}")).key(format!("f{number}"));
        transaction.remember(fact.from(Pointer::to_key(format!("m{}", number / 2)))).unwrap();
        transaction.commit(Durability::None).unwrap();
    }
    database.checkpoint().unwrap();
}

fn sim() -> Arc<dyn Vfs> {
    Arc::new(SimVfs::new())
}

#[test]
fn every_item_is_provable_from_its_commit_on() {
    let (sim, key) = (sim(), key());
    let database = Holotype::create_on(Arc::clone(&sim), PATH, options()).unwrap();
    story(&database);
    prove_all(&database.snapshot(), &key);
    database.checkpoint().unwrap();
    prove_all(&database.snapshot(), &key);
    run(&database, "remember fact 'the newest' from 't3' with key = 'r3'");
    prove_all(&database.snapshot(), &key);
    let reader = Holotype::open_on(Arc::clone(&sim), PATH, Options { read_only: true, ..options() }).unwrap();
    prove_all(&reader.snapshot(), &key);
    run(&database, "remember fact 'newer still' from 't3' with key = 'r4'");
    assert!(reader.refresh().unwrap());
    prove_all(&reader.snapshot(), &key);
    drop(reader);
    database.close().unwrap();
    let database = Holotype::open_on(sim, PATH, options()).unwrap();
    prove_all(&database.snapshot(), &key);
}

#[test]
fn proofs_are_the_same_with_rows_and_without() {
    let key = key();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let database = Holotype::create(&path, options()).unwrap();
    more(&database, 0, 150);
    let early = database.snapshot();
    more(&database, 150, 230);
    let (before, after) = (database.snapshot(), 380 * 2);
    assert_eq!(before.len(), after);
    let sample = |snapshot: &Snapshot| -> Vec<(u64, Vec<[u8; 32]>)> {
        let ids = [0, 1, 100, 255, 256, 511, 600, 759].into_iter().map(ItemId);
        let records = ids.map(|id| snapshot.prove(id, &key).unwrap().records.remove(0));
        records.map(|record| (record.index, record.path)).collect()
    };
    let (head, paths) = (before.tree_head(key.verifier()).unwrap(), sample(&before));
    assert!(head.size > 1_000);
    for id in (0..before.len()).step_by(13).map(ItemId) {
        check(&before.prove(id, &key).unwrap(), key.verifier()).unwrap();
    }
    // A snapshot from before the rows were written proves what it did.
    check(&early.prove(ItemId(7), &key).unwrap(), key.verifier()).unwrap();
    drop((early, before));
    database.close().unwrap();
    let rebuilt = Holotype::rebuild(&path, options()).unwrap();
    assert_eq!(rebuilt.snapshot().tree_head(key.verifier()).unwrap(), head);
    assert_eq!(sample(&rebuilt.snapshot()), paths);
}

#[test]
fn what_is_changed_in_a_proof_is_found() {
    let key = key();
    let database = Holotype::create_on(sim(), PATH, options()).unwrap();
    run(
        &database,
        "record call 'UA123 price=$450' in episode 'trip' with key = 't1';
         record call 'UA124 price=$470' in episode 'trip' with key = 't2';
         remember fact 'UA123 costs $450' from 't1' quoting 'price=$450', 't2' quoting 'UA124' with key = 'r1'",
    );
    let snapshot = database.snapshot();
    let proof = snapshot.prove(ItemId(2), &key).unwrap();
    assert_eq!(proof.records.len(), 3);
    let holds = |proof: &Proof| check(proof, key.verifier());
    let shown = holds(&proof).unwrap();
    let texts: Vec<Option<&str>> = shown.citations.iter().map(|citation| citation.text.as_deref()).collect();
    assert_eq!(texts, [Some("price=$450"), Some("UA124")]);
    for (number, record) in proof.records.iter().enumerate() {
        let ProvenContent::Stored { header, salt, payload } = &record.content else { panic!("not redacted") };
        let with = |header: [u8; 8], salt: [u8; 16], payload: Vec<u8>| {
            let mut changed = proof.clone();
            changed.records[number].content = ProvenContent::Stored { header, salt, payload };
            assert!(holds(&changed).is_err(), "record {number}");
        };
        for bit in 0..64 {
            let mut changed = *header;
            changed[bit / 8] ^= 1 << (bit % 8);
            with(changed, *salt, payload.clone());
        }
        for bit in (0..128).step_by(3) {
            let mut changed = *salt;
            changed[bit / 8] ^= 1 << (bit % 8);
            with(*header, changed, payload.clone());
        }
        for bit in (0..payload.len() * 8).step_by(5) {
            let mut changed = payload.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            with(*header, *salt, changed);
        }
        let mut changed = proof.clone();
        changed.records[number].index += 1;
        assert!(holds(&changed).is_err());
        let mut changed = proof.clone();
        changed.records[number].path[0][7] ^= 1;
        assert!(holds(&changed).is_err());
        let mut changed = proof.clone();
        changed.records.remove(number);
        assert!(holds(&changed).is_err(), "without record {number}");
        let mut changed = proof.clone();
        changed.records.push(record.clone());
        assert!(holds(&changed).is_err(), "record {number} twice");
    }
    let mut changed = proof.clone();
    changed.item = 0;
    assert!(holds(&changed).is_err());
    let mut changed = proof.clone();
    changed.records.swap(0, 1);
    assert!(holds(&changed).is_err());
    let other = SignerKey::generate("test/log").unwrap();
    assert!(check(&proof, other.verifier()).is_err());
    let mut changed = proof.clone();
    changed.checkpoint = changed.checkpoint.replacen("test/log", "test/bog", 1);
    assert!(holds(&changed).is_err());
}

#[test]
fn a_redacted_record_is_proven_by_its_hash() {
    let key = key();
    let database = Holotype::create_on(sim(), PATH, options()).unwrap();
    run(
        &database,
        "record call 'UA123 price=$450' in episode 'trip' with key = 't1';
         remember fact 'UA123 costs $450' from 't1' quoting 'price=$450' with key = 'r1'",
    );
    let proof = database.snapshot().prove(ItemId(1), &key).unwrap();
    let redacted = |number: usize, item| {
        let mut proof = proof.clone();
        let ProvenContent::Stored { header, salt, payload } = proof.records[number].content.clone() else { panic!() };
        let hash = holotype_storage::proof::leaf_hash(&header, &salt, &payload);
        proof.records[number].content = ProvenContent::Redacted { hash, item };
        Proof::from_json(&proof.to_json()).unwrap()
    };
    let shown = check(&redacted(1, 0), key.verifier()).unwrap();
    assert_eq!((shown.citations[0].verdict, shown.citations[0].text.as_deref()), (Verdict::Redacted, None));
    let shown = check(&redacted(0, 1), key.verifier()).unwrap();
    assert_eq!((shown.content, shown.citations.len()), (None, 0));
    assert!(check(&redacted(0, 0), key.verifier()).is_err(), "another item's");
    assert!(check(&redacted(1, 1), key.verifier()).is_err(), "the source is not shown");
}

#[test]
fn what_was_forgotten_and_what_cites_it_stay_provable() {
    let (sim, key) = (sim(), key());
    let database = Holotype::create_on(Arc::clone(&sim), PATH, options()).unwrap();
    story(&database);
    let before = database.snapshot().signed_checkpoint(&key).unwrap();
    run(&database, "forget 't1' because 'asked to'; forget 't3' because 'asked to'");
    let snapshot = database.snapshot();
    let growth = snapshot.prove_growth(&before, &key).unwrap();
    check_growth(&growth, key.verifier()).unwrap();
    let shown = |name: &str| {
        let proof = snapshot.prove(snapshot.item_named(name).unwrap(), &key).unwrap();
        let text = proof.to_json();
        assert!(!text.contains(&holotype::hex(blake3::hash(b"price=$450").as_bytes())));
        check(&Proof::from_json(&text).unwrap(), key.verifier()).unwrap()
    };
    let forgotten = shown("t1").content.unwrap();
    assert!(forgotten.redacted && forgotten.fields.iter().all(|(_, text)| text.is_empty()), "{forgotten:?}");
    let left = shown("r1");
    assert_eq!(left.citations[0].verdict, Verdict::Redacted);
    assert_eq!(left.content.unwrap().fields[0].1, "UA123 costs $450");
    // The page that one of the forgotten was in, and the other one; not the long text, the start of a turn, and the
    // fact.
    let cited = shown("r2").citations;
    let redacted = cited.iter().filter(|citation| citation.verdict == Verdict::Redacted);
    let targets: Vec<&str> = redacted.map(|citation| citation.target.as_str()).collect();
    assert_eq!((cited.len(), targets.as_slice()), (5, ["trip/p1", "#3"].as_slice()));
    for item in (0..snapshot.len()).map(ItemId) {
        check(&snapshot.prove(item, &key).unwrap(), key.verifier()).unwrap();
    }
}

#[test]
fn growth_is_proven_and_roll_backs_and_forks_are_not() {
    let key = key();
    let disk = SimVfs::new();
    let database = Holotype::create_on(Arc::new(disk.clone()), PATH, options()).unwrap();
    let mut kept = vec![database.snapshot().signed_checkpoint(&key).unwrap()];
    for number in 0..40 {
        run(&database, &format!("record turn 'number {number}' in episode 'e'"));
        let snapshot = database.snapshot();
        for old in &kept {
            let growth = snapshot.prove_growth(old, &key).unwrap();
            let growth = Growth::from_json(&growth.to_json()).unwrap();
            let (before, after) = check_growth(&growth, key.verifier()).unwrap();
            assert!(before.size <= after.size);
            let mut wrong = growth.clone();
            match wrong.path.first_mut() {
                Some(first) => first[0] ^= 1,
                None => wrong.path.push([0; 32]),
            }
            assert!(check_growth(&wrong, key.verifier()).is_err());
            let swapped = Growth { old: growth.new.clone(), new: growth.old.clone(), path: growth.path.clone() };
            assert!(before.size == after.size || check_growth(&swapped, key.verifier()).is_err());
        }
        if number % 8 == 0 {
            kept.push(snapshot.signed_checkpoint(&key).unwrap());
        }
    }
    let late = database.snapshot().signed_checkpoint(&key).unwrap();
    database.close().unwrap();
    let fork = disk.crash(holotype_storage::vfs::Crash::Keep);
    let shorter = Holotype::create_on(sim(), "/other", options()).unwrap();
    let why = shorter.snapshot().prove_growth(&late, &key).unwrap_err().to_string();
    assert!(why.contains("rolled back"), "{why}");
    let (one, two) = (disk, fork);
    let ends = [(one, "one"), (two, "two")].map(|(disk, text)| {
        let database = Holotype::open_on(Arc::new(disk), PATH, options()).unwrap();
        run(&database, &format!("record turn '{text}' in episode 'e'"));
        (database.snapshot().signed_checkpoint(&key).unwrap(), database)
    });
    ends[0].1.snapshot().prove_growth(&late, &key).unwrap();
    let why = ends[0].1.snapshot().prove_growth(&ends[1].0, &key).unwrap_err().to_string();
    assert!(why.contains("forked"), "{why}");
}
