//! Many databases asked together: merged rows, routing, and all that an answer does not rest on.

use holotype::condition::attribute;
use holotype::fleet::{
    Entry, Fleet, FleetAnswer, FleetOptions, FleetRecall, Part, RouteOptions, RouteReport, Router, Staleness,
};
use holotype::{Durability, Forget, Holotype, NewRecall, NewTrace, Options, Pointer, Space, Verdict};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

const SUBJECTS: [&str; 6] = [
    "the night train to Vienna costs 89 euros",
    "the boiler in the cellar was repaired",
    "tomatoes want sun and little water",
    "the invoice of the carpenter is unpaid",
    "Anna plays the cello on Thursdays",
    "the vaccine of the dog is due in May",
];

fn hashing() -> Options {
    Options::with_space(Space::new("hashing-v1-64", 64))
}

/// Texts with the vectors that the statements of the language give them.
fn write(path: &Path, options: Options, texts: &[&str]) {
    let database = Holotype::open_or_create(path, options).unwrap();
    let embedder = holotype::embed::HashingEmbedder::new(64);
    let has_space = database.snapshot().space().unwrap().is_some();
    let mut transaction = database.begin().unwrap();
    for text in texts {
        let trace = NewTrace::turn("diary", *text);
        let vector = embedder.embed(text).filter(|_| has_space);
        transaction.record(vector.into_iter().fold(trace, NewTrace::vector)).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();
}

/// A folder with a database for each subject.
fn subjects() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (number, subject) in SUBJECTS.iter().enumerate() {
        let also = format!("what a day, number {number}");
        write(&dir.path().join(format!("{number}.holo")), hashing(), &[subject, &also]);
    }
    dir
}

fn pattern(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("*.holo")
}

fn open(dir: &tempfile::TempDir, router: Option<&str>) -> Fleet {
    let router = router.map(|name| dir.path().join(name));
    Fleet::open([pattern(dir)], FleetOptions { router, ..FleetOptions::default() }).unwrap()
}

fn build(dir: &tempfile::TempDir, name: &str) -> RouteReport {
    open(dir, None).build_router(dir.path().join(name), RouteOptions::default(), &mut |_, _| {}).unwrap()
}

fn update(dir: &tempfile::TempDir, name: &str) -> RouteReport {
    open(dir, None).update_router(dir.path().join(name), RouteOptions::default(), &mut |_, _| {}).unwrap()
}

fn names(answer: &FleetAnswer) -> Vec<String> {
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    answer.rows.iter().map(|row| name(&row.database)).collect()
}

fn entries(path: &Path) -> Vec<(Entry, Vec<Part>)> {
    let router = Router::open(path, &Options::default()).unwrap();
    let entries = router.entries().unwrap();
    entries.into_iter().map(|entry| (entry.clone(), router.parts(&entry).unwrap())).collect()
}

fn sentence() -> impl Strategy<Value = String> {
    let word = prop_oneof!["train", "boiler", "sun", "invoice", "cello", "dog", "the", "a", "of", "May"];
    proptest::collection::vec(word, 1..8).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_question_to_all_merges_the_recall_of_each(
        fleet in proptest::collection::vec((any::<bool>(), proptest::collection::vec(sentence(), 0..6)), 1..5),
        question in sentence(),
        limit in 1..12_usize,
        max_open in 1..4_usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut merged = Vec::new();
        for (number, (has_space, texts)) in fleet.iter().enumerate() {
            let path = dir.path().join(format!("{number}.holo"));
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            write(&path, if *has_space { hashing() } else { Options::default() }, &texts);
            let answer = Holotype::open(&path, Options::read_only()).unwrap().snapshot();
            let answer = answer.recall(&question).limit(limit as u64).run().unwrap();
            for row in answer.rows {
                let score = row.score - (1.0 - answer.strength.terms) * row.parts.words;
                merged.push((row.relaxed.len().min(1), score, path.clone(), row));
            }
        }
        merged.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        merged.truncate(limit);
        let options = FleetOptions { max_open, threads: 3, ..FleetOptions::default() };
        let asked = Fleet::open([pattern(&dir)], options).unwrap();
        let answer = asked.recall(&question, &FleetRecall::default().limit(limit)).unwrap();
        let rows: Vec<_> = answer.rows.iter().map(|row| (row.score, row.database.clone(), row.row.clone())).collect();
        let expected: Vec<_> = merged.into_iter().map(|(_, score, path, row)| (score, path, row)).collect();
        prop_assert_eq!(rows, expected);
        prop_assert_eq!(answer.asked.len(), fleet.len());
        prop_assert!(answer.failed.is_empty() && answer.not_asked.is_empty());
        prop_assert!(asked.open_count() <= max_open);

        // A router changes nothing for a question to all.
        build(&dir, "router.holo");
        let routed = open(&dir, Some("router.holo"));
        let by_router = routed.recall(&question, &FleetRecall::default().limit(limit).ask(fleet.len())).unwrap();
        prop_assert_eq!(&by_router.rows, &answer.rows);
        prop_assert!(by_router.outdated.is_empty() && by_router.not_asked.is_empty());
    }
}

#[test]
fn the_router_finds_the_databases_to_ask_and_the_others_are_named() {
    let dir = subjects();
    let report = build(&dir, "router.holo");
    assert_eq!((report.added, report.unchanged, report.failed.len()), (6, 0, 0));
    let fleet = open(&dir, Some("router.holo"));
    assert_eq!(fleet.paths().len(), 6, "the router is none of its databases");
    for (number, question) in
        ["what does the train cost?", "is the boiler repaired?", "sun for tomatoes"].into_iter().enumerate()
    {
        let answer = fleet.recall(question, &FleetRecall::default().ask(1).limit(3)).unwrap();
        assert_eq!(names(&answer)[0], number.to_string(), "{question}: {answer:#?}");
        assert_eq!((answer.asked.len(), answer.not_asked.len(), answer.outdated.len()), (1, 5, 0));
        assert!(answer.answerable);
        let expected = |one: Option<f32>| one.unwrap();
        let mut before = expected(answer.asked[0].expected);
        for one in &answer.not_asked {
            assert!(expected(one.expected) <= before, "{answer:#?}");
            before = expected(one.expected);
        }
        assert!(answer.rows[0].row.citations.iter().all(|citation| citation.verdict == Verdict::Ok));
    }
    // By a vector alone, too.
    let vector = holotype::embed::HashingEmbedder::new(64).embed("the cello on Thursdays").unwrap();
    let answer = fleet.recall("", &FleetRecall::default().near(vector).ask(1)).unwrap();
    assert_eq!(names(&answer)[0], "4");
    // Without a number, a small fleet is asked as a whole.
    let answer = fleet.recall("the dog", &FleetRecall::default()).unwrap();
    assert_eq!((answer.asked.len(), names(&answer)[0].as_str()), (6, "5"));
}

#[test]
fn a_question_that_cannot_be_put_is_refused() {
    let dir = subjects();
    let fleet = open(&dir, None);
    let refused = |text: &str, recall: FleetRecall| fleet.recall(text, &recall).unwrap_err().to_string();
    assert!(refused(" ", FleetRecall::default()).contains("blank"));
    assert!(refused("x", FleetRecall::default().limit(0)).contains("0 rows"));
    assert!(refused("x", FleetRecall::default().ask(0)).contains("0 databases"));
    assert!(refused("x", FleetRecall::default().ask(2)).contains("router"));
    let fleet = |places: &[&str]| Fleet::open(places, FleetOptions::default()).unwrap_err();
    assert_eq!(fleet(&["/no/such/*.holo"]).code(), "missing");
    assert_eq!(fleet(&["/no/such/***"]).code(), "invalid");
    assert_eq!(fleet(&[]).code(), "invalid");
    let none = FleetOptions { max_open: 0, ..FleetOptions::default() };
    assert_eq!(Fleet::open([pattern(&dir)], none).unwrap_err().code(), "invalid");
    let no_router = FleetOptions { router: Some(dir.path().join("0.holo")), ..FleetOptions::default() };
    assert!(Fleet::open([pattern(&dir)], no_router).unwrap_err().to_string().contains("no router"));
    let update = open(&dir, None).update_router(dir.path().join("0.holo"), RouteOptions::default(), &mut |_, _| {});
    assert!(update.unwrap_err().to_string().contains("no router"));
    let build = open(&dir, None).build_router(dir.path().join("0.holo"), RouteOptions::default(), &mut |_, _| {});
    assert_eq!(build.unwrap_err().code(), "exists");
}

#[test]
fn what_cannot_be_asked_is_named_and_the_others_answer() {
    let dir = subjects();
    build(&dir, "router.holo");
    let path = |number: usize| dir.path().join(format!("{number}.holo"));
    // A writer holds one for itself: readers read beside it.
    let writer = Holotype::open(path(0), Options::default()).unwrap();
    let opened = Fleet::open([pattern(&dir)], FleetOptions::default()).unwrap();
    let routed = open(&dir, Some("router.holo"));
    let all = FleetRecall::default().ask(6);
    assert_eq!(routed.recall("the train", &all).unwrap().asked.len(), 6);
    assert_eq!(opened.recall("the train", &FleetRecall::default()).unwrap().failed.len(), 1, "the router");

    // Gone beneath open handles.
    fs::remove_dir_all(path(1)).unwrap();
    // Damaged: its log begins with other bytes.
    let log = path(2).join("log/0000000001.log");
    let len = fs::metadata(&log).unwrap().len();
    fs::write(&log, vec![0xa5; usize::try_from(len).unwrap()]).unwrap();
    let fresh = Fleet::open(
        (0..6).map(path).chain([dir.path().join("never.holo")]),
        FleetOptions { router: Some(dir.path().join("router.holo")), ..FleetOptions::default() },
    )
    .unwrap();
    let answer = fresh.recall("the train", &FleetRecall::default().ask(7)).unwrap();
    let failed: Vec<(String, &str)> = answer
        .failed
        .iter()
        .map(|failure| (failure.path.file_stem().unwrap().to_string_lossy().into_owned(), failure.code))
        .collect();
    assert!(failed.contains(&("1".to_owned(), "not-found")), "{failed:?}");
    assert!(failed.contains(&("never".to_owned(), "not-found")), "{failed:?}");
    assert!(failed.contains(&("2".to_owned(), "storage")), "{failed:?}");
    assert_eq!((answer.asked.len(), failed.len()), (4, 3));
    assert_eq!(names(&answer)[0], "0");
    // A handle that was open before sees at once that its directory is gone.
    let answer = routed.recall("the boiler", &FleetRecall::default().ask(1)).unwrap();
    assert_eq!((answer.failed[0].code, answer.asked.len()), ("not-found", 0));
    assert!(!answer.answerable && answer.rows.is_empty());
    drop(writer);
}

#[test]
fn a_database_that_is_replaced_is_asked_as_it_is_now() {
    let dir = subjects();
    let fleet = open(&dir, None);
    assert_eq!(names(&fleet.recall("the cello", &FleetRecall::default()).unwrap())[0], "4");
    let path = dir.path().join("4.holo");
    fs::remove_dir_all(&path).unwrap();
    write(&path, hashing(), &["a new beginning with the harp"]);
    let answer = fleet.recall("the harp", &FleetRecall::default().limit(1)).unwrap();
    assert_eq!(names(&answer), ["4"]);
    assert!(
        fleet.recall("cello", &FleetRecall::default()).unwrap().rows.iter().all(|row| !row.row.text.contains("cello"))
    );
    // And what is written to it is seen.
    write(&path, hashing(), &["the bassoon is broken"]);
    assert_eq!(names(&fleet.recall("bassoon", &FleetRecall::default().limit(1)).unwrap()), ["4"]);
}

#[test]
fn a_router_that_is_out_of_date_is_said_and_an_update_corrects_it() {
    let dir = subjects();
    build(&dir, "router.holo");
    let path = |number: usize| dir.path().join(format!("{number}.holo"));
    write(&path(0), hashing(), &["the ferry to Corfu leaves at nine"]);
    write(&path(5), hashing(), &["the cat is well"]);
    write(&path(6), hashing(), &["the roof leaks above the attic"]);
    let fleet = open(&dir, Some("router.holo"));
    fs::remove_dir_all(path(3)).unwrap();
    let answer = fleet.recall("the train to Vienna", &FleetRecall::default().ask(1)).unwrap();
    let said: Vec<(String, Staleness)> = answer
        .outdated
        .iter()
        .map(|one| (one.path.file_stem().unwrap().to_string_lossy().into_owned(), one.why))
        .collect();
    let written = |now| Staleness::Written { routed: 2, now };
    let expected = [("0", written(Some(3))), ("3", Staleness::Gone), ("5", written(None)), ("6", Staleness::Unknown)];
    assert_eq!(said, expected.map(|(name, why)| (name.to_owned(), why)), "{answer:#?}");
    assert_eq!(answer.not_asked.last().map(|one| (one.path.clone(), one.expected)), Some((path(6), None)));

    let report = update(&dir, "router.holo");
    assert_eq!((report.added, report.updated, report.removed, report.unchanged), (1, 2, 1, 3), "{report:?}");
    let answer = open(&dir, Some("router.holo")).recall("roof leaks", &FleetRecall::default().ask(1)).unwrap();
    assert_eq!((names(&answer), answer.outdated.len()), (vec!["6".to_owned()], 0));
    // The fleet that was open before goes by the new entries.
    let answer = fleet.recall("the ferry to Corfu", &FleetRecall::default().ask(1)).unwrap();
    assert_eq!(names(&answer)[0], "0");

    build(&dir, "anew.holo");
    fs::remove_dir_all(dir.path().join("anew.holo")).unwrap();
    let report = update(&dir, "router.holo");
    assert_eq!((report.unchanged, report.updated), (6, 0), "nothing is read again: {report:?}");

    // One that comes back takes its key again.
    write(&path(3), hashing(), &["the invoice is paid"]);
    assert_eq!(update(&dir, "router.holo").added, 1);
    let answer = fleet.recall("the ferry to Corfu", &FleetRecall::default().ask(1)).unwrap();
    assert!(answer.outdated.iter().all(|one| one.path != path(3)), "{:?}", answer.outdated);
}

#[test]
fn an_updated_router_is_one_built_anew() {
    let dir = subjects();
    let elsewhere = tempfile::tempdir().unwrap();
    let build = |name: &str| {
        let mut fleet = open(&dir, None);
        fleet.build_router(elsewhere.path().join(name), RouteOptions { max_parts: 3 }, &mut |_, _| {}).unwrap();
    };
    build("router.holo");
    for (number, texts) in [(1, ["the stove smokes", "the chimney is swept"]), (4, ["a sonata in D", "a new string"])] {
        write(&dir.path().join(format!("{number}.holo")), hashing(), &texts);
    }
    write(&dir.path().join("wordy.holo"), Options::default(), &["without vectors"]);
    fs::remove_dir_all(dir.path().join("2.holo")).unwrap();
    let mut fleet = open(&dir, None);
    let router = elsewhere.path().join("router.holo");
    let mut progress = Vec::new();
    let report = fleet
        .update_router(&router, RouteOptions { max_parts: 3 }, &mut |done, all| progress.push((done, all)))
        .unwrap();
    assert_eq!((report.added, report.updated, report.removed, report.unchanged), (1, 2, 1, 3));
    assert_eq!(progress, [(0, 3), (3, 3)]);
    build("anew.holo");
    let updated = entries(&router);
    assert_eq!(updated, entries(&elsewhere.path().join("anew.holo")));
    assert_eq!(updated.len(), 6);
    let (entry, parts) = &updated[1];
    assert_eq!((entry.items, entry.vectors, entry.space.is_some(), entry.sampled), (4, 4, true, false));
    assert!(!parts.is_empty() && parts.len() <= 3);
    assert_eq!(parts.iter().map(|part| part.items).sum::<u64>(), 4);
    assert!(entry.words.split(' ').any(|word| word == "chimney") && entry.from.is_some() && entry.from <= entry.to);
    assert!(parts.iter().all(|part| part.centroid.len() == 64 && !part.words.is_empty()));
    assert!(updated[5].1.is_empty(), "a database without vectors has no centroid");
    assert!(Holotype::open(&router, Options::default()).unwrap().verify(&mut |_, _| {}).unwrap().is_clean());
}

#[test]
fn what_a_database_erased_leaves_the_router_too() {
    let dir = subjects();
    build(&dir, "router.holo");
    let holds = |word: &str| {
        let files = walk(&dir.path().join("router.holo"));
        files.iter().any(|file| fs::read(file).unwrap().windows(word.len()).any(|bytes| bytes == word.as_bytes()))
    };
    assert!(holds("carpenter") && holds("tomatoes"));
    // A later state without the word hides it; erasing it takes it out of the older entries as well.
    write(&dir.path().join("3.holo"), hashing(), &["another day"]);
    update(&dir, "router.holo");
    let database = Holotype::open(dir.path().join("3.holo"), Options::default()).unwrap();
    let snapshot = database.snapshot();
    let unpaid = (0..snapshot.len())
        .map(holotype::ItemId)
        .find(|id| snapshot.item(*id).unwrap().content.text().contains("carpenter"));
    database.forget(&[unpaid.unwrap()], &Forget::because("asked to")).unwrap();
    drop(snapshot);
    database.close().unwrap();
    fs::remove_dir_all(dir.path().join("2.holo")).unwrap();
    let report = update(&dir, "router.holo");
    assert_eq!((report.updated, report.removed), (1, 1));
    assert!(report.erased > 4, "{report:?}");
    assert!(!holds("carpenter") && !holds("tomatoes"));
    assert!(holds("another"));
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn themes_are_the_parts_of_a_database_and_other_spaces_are_known_by_their_words() {
    let dir = tempfile::tempdir().unwrap();
    let embedder = holotype::embed::HashingEmbedder::new(64);
    let database = Holotype::create(dir.path().join("a.holo"), hashing()).unwrap();
    let mut transaction = database.begin().unwrap();
    for (number, subject) in SUBJECTS.iter().enumerate() {
        let vector = embedder.embed(subject).unwrap();
        let key = format!("t{number}");
        transaction.record(NewTrace::turn("diary", *subject).key(&key).vector(vector.clone())).unwrap();
        let fact = NewRecall::fact(*subject).key(format!("f{number}")).from(Pointer::to_key(&key)).vector(vector);
        transaction.remember(fact).unwrap();
    }
    for (name, members) in [("house", [1, 3]), ("music", [4, 4])] {
        let theme = NewRecall::theme(name).key(name).vector(embedder.embed(name).unwrap());
        let members: std::collections::BTreeSet<usize> = members.into();
        transaction
            .remember(members.into_iter().fold(theme, |theme, member| theme.child(format!("f{member}"))))
            .unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();
    let other = Options::with_space(Space::new("another", 3));
    let database = Holotype::create(dir.path().join("b.holo"), other).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("diary", "a zebra at the fence").vector(vec![1.0, 0.0, 0.0])).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    database.close().unwrap();

    let report = build(&dir, "router.holo");
    assert_eq!((report.added, report.other_spaces), (2, 1));
    let entries = entries(&dir.path().join("router.holo"));
    let items: Vec<u64> = entries[0].1.iter().map(|part| part.items).collect();
    assert_eq!(items[..2], [5, 3], "two facts with their traces, and the theme: {:#?}", entries[0].1);
    assert_eq!(items.iter().sum::<u64>(), 14);
    assert!(entries[0].1[1].words.contains("cello"), "{:#?}", entries[0].1[1]);
    assert!(entries[1].1.is_empty());
    let fleet = open(&dir, Some("router.holo"));
    let answer = fleet.recall("the zebra", &FleetRecall::default().ask(1)).unwrap();
    assert_eq!(names(&answer)[0], "b");
    assert!(answer.notes.iter().any(|note| note.contains("words alone")), "{:?}", answer.notes);
}

#[test]
fn a_condition_a_profile_and_a_time_hold_in_every_database() {
    let dir = subjects();
    let fleet = open(&dir, None);
    let recall = FleetRecall::default().filter(attribute("kind").is("fact"));
    assert!(fleet.recall("the train", &recall).unwrap().rows.is_empty());
    let recall = FleetRecall::default().profile("agent").at_time(2_000_000_000_000_000);
    let answer = fleet.recall("the train", &recall).unwrap();
    assert!(answer.rows[0].row.parts.recency < 0.01 && names(&answer)[0] == "0", "{:#?}", answer.rows[0]);
    let error = fleet.recall("the train", &FleetRecall::default().profile("none")).unwrap_err();
    assert!(error.to_string().contains("no score profile \"none\""), "{error}");
    let database = Holotype::open(dir.path().join("0.holo"), Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.set("profile", "agent").unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let answer = fleet.recall("the train", &FleetRecall::default()).unwrap();
    assert!(answer.notes.iter().any(|note| note.contains("different profiles (agent, default)")), "{:?}", answer.notes);
    let lens = fleet.each(|_, database| Ok(database.snapshot().len()));
    assert_eq!(lens.into_iter().map(Result::unwrap).sum::<u32>(), 12);
}
