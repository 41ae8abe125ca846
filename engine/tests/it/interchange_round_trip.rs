//! Round trips: an export of any history of a database, imported and exported again, has the same bytes, and the copy
//! answers like the original.

use holotype::interchange::{ImportOptions, ImportReport, NpyReader, export, import};
use holotype::{
    Durability, Edge, Encoding, EpisodeChange, Error, Holotype, ItemId, Kind, Mark, NewRecall, NewTrace, Options,
    Origin, Pointer, Source, Space, Status, Transaction,
};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn import_from(database: &Holotype, lines: &str, vectors: &NpyReader) -> Result<ImportReport, Error> {
    let options = ImportOptions { durability: Durability::None, ..ImportOptions::default() };
    import(database, "f.jsonl", lines.as_bytes(), Some(vectors), &options, &mut |_| {})
}

fn exported(database: &Holotype, vectors: Option<&Path>) -> String {
    let mut out = Vec::new();
    export(&database.snapshot(), &mut out, vectors).unwrap();
    String::from_utf8(out).unwrap()
}

/// The first line in which two exports differ.
fn first_difference(left: &str, right: &str) -> String {
    let mut pairs = left.lines().zip(right.lines());
    let differing = pairs.find(|(left, right)| left != right);
    differing.map_or("one ends early".to_owned(), |(left, right)| format!("copy {left}\nfrom {right}"))
}

/// One step of a life that an application gave a database through the API. What the engine refuses is no step.
#[derive(Debug, Clone)]
enum Step {
    Trace { episode: u8, text: u8, keyed: bool, fields: u8, status: u8, version: bool, vector: bool },
    Recall { kind: u8, from: Vec<(u8, bool)>, keyed: bool, stated: u8, vector: bool },
    Theme { kind: u8, children: Vec<u8>, from: Option<u8>, keyed: bool },
    Update { item: u8, from: Option<u8> },
    Link { from: u8, edge: u8, to: u8, remove: bool },
    Cite { item: u8, target: u8, page: bool },
    Uncite { item: u8, nth: u8 },
    Mark { item: u8, what: u8, because: bool },
    Retire { item: u8, by: Option<u8>, because: bool },
    Claim { item: u8, value: u8, global: bool, from: Option<u8> },
    Episode { id: u8, change: u8 },
    Page { number: u8, summarised: bool },
    Setting { value: u8 },
    Commit,
}

fn any_step() -> impl Strategy<Value = Step> {
    let (flag, any) = (any::<bool>, any::<u8>);
    prop_oneof![
        6 => (any(), any(), flag(), any(), any(), flag(), flag()).prop_map(
            |(episode, text, keyed, fields, status, version, vector)| {
                Step::Trace { episode, text, keyed, fields, status, version, vector }
            }
        ),
        4 => (any(), prop::collection::vec((any(), flag()), 0..3), flag(), any(), flag())
            .prop_map(|(kind, from, keyed, stated, vector)| Step::Recall { kind, from, keyed, stated, vector }),
        3 => (any(), prop::collection::vec(any(), 0..4), prop::option::weighted(0.3, any()), flag())
            .prop_map(|(kind, children, from, keyed)| Step::Theme { kind, children, from, keyed }),
        2 => (any(), prop::option::of(any())).prop_map(|(item, from)| Step::Update { item, from }),
        5 => (any(), any(), any(), prop::bool::weighted(0.3))
            .prop_map(|(from, edge, to, remove)| Step::Link { from, edge, to, remove }),
        2 => (any(), any(), flag()).prop_map(|(item, target, page)| Step::Cite { item, target, page }),
        2 => (any(), any()).prop_map(|(item, nth)| Step::Uncite { item, nth }),
        3 => (any(), any(), flag()).prop_map(|(item, what, because)| Step::Mark { item, what, because }),
        2 => (any(), prop::option::of(any()), flag())
            .prop_map(|(item, by, because)| Step::Retire { item, by, because }),
        2 => (any(), any(), flag(), prop::option::of(any()))
            .prop_map(|(item, value, global, from)| Step::Claim { item, value, global, from }),
        2 => (any(), any()).prop_map(|(id, change)| Step::Episode { id, change }),
        1 => (any(), flag()).prop_map(|(number, summarised)| Step::Page { number, summarised }),
        1 => any().prop_map(|value| Step::Setting { value }),
        3 => Just(Step::Commit),
    ]
}

const TEXTS: &[&str] =
    &["UA123 price=$450", "héllo wörld €", "a \"quoted\"\tline\n\u{1}", "one two three four five six seven eight", ""];

fn pick<T: Copy>(from: &[T], at: u8) -> T {
    from[usize::from(at) % from.len()]
}

/// The item that a number stands for, among those there are.
fn item(transaction: &mut Transaction<'_>, at: u8) -> Option<ItemId> {
    let count = transaction.snapshot().unwrap().len();
    (count > 0).then(|| ItemId(u32::from(at) % count))
}

/// Takes one step; what the engine refuses changes nothing.
fn step(transaction: &mut Transaction<'_>, number: usize, step: &Step) -> Option<()> {
    let because = |because: &bool| because.then(|| format!("reason {number}"));
    let vector = |at: usize| vec![1.0, at as f32 / 7.0, 0.333];
    match step {
        Step::Trace { episode, text, keyed, fields, status, version, vector: has_vector } => {
            let kind = pick(&[Kind::Turn, Kind::Call, Kind::Observation], *text);
            let mut trace = NewTrace::new(kind, format!("e{}", episode % 3), pick(TEXTS, *text));
            if *keyed {
                trace = trace.key(format!("t{number}"));
            }
            if fields & 1 != 0 {
                trace = trace.bytes_field("raw", vec![0xff, *fields]).field("url", "https://example.org/é");
            }
            if fields & 2 != 0 {
                trace = trace.bytes_field("plain", b"text after all".to_vec());
            }
            if fields & 4 != 0 {
                trace = trace.tool("search").speaker("Ada").time(i64::from(*fields) * 1_000_001);
            }
            if fields & 8 != 0 {
                trace = trace.log_id(format!("log-{}", fields & 1)).source(pick(Source::ALL, *fields));
            }
            if *version {
                trace = trace.version(format!("v{}", episode % 2));
            }
            if status % 4 < 3 {
                trace = trace.status(pick(Status::ALL, *status));
            }
            if *has_vector {
                trace = trace.vector(vector(number));
            }
            transaction.record(trace).ok()?;
        }
        Step::Recall { kind, from, keyed, stated, vector: has_vector } => {
            let kind = pick(&[Kind::Fact, Kind::Procedure, Kind::Summary], *kind);
            let mut recall = NewRecall::new(kind, format!("said {number}"));
            for (at, part) in from {
                let target = item(transaction, *at)?;
                let pointer = Pointer::to_item(target);
                recall = recall.from(if *part { pointer.bytes(0, 1) } else { pointer });
            }
            if from.is_empty() {
                recall = recall.ungrounded();
            }
            if *keyed {
                recall = recall.key(format!("r{number}"));
            }
            if stated & 1 != 0 {
                recall = recall.step(u64::from(*stated)).time(-5).version("v9").source(pick(Source::ALL, *stated));
            }
            if stated & 2 != 0 {
                recall = recall.episode(format!("e{}", stated % 3)).status(pick(Status::ALL, *stated));
            }
            if stated & 4 != 0 {
                recall = recall.utility(f32::from(*stated) / 3.0).origin(pick(Origin::ALL, *stated));
                if kind == Kind::Procedure {
                    recall = recall.return_score(3);
                }
            }
            if *has_vector {
                recall = recall.vector(vector(number));
            }
            transaction.remember(recall).ok()?;
        }
        Step::Theme { kind, children, from, keyed } => {
            let kind = pick(&[Kind::Theme, Kind::Concept, Kind::Intent], *kind);
            let mut theme = NewRecall::new(kind, format!("about {number}"));
            let snapshot = transaction.snapshot().unwrap();
            for child in children {
                theme = theme.child(snapshot.key_of(item(transaction, *child)?).unwrap());
            }
            if let Some(from) = from {
                theme = theme.from(Pointer::to_item(item(transaction, *from)?));
            }
            if *keyed {
                theme = theme.key(format!("th{number}"));
            }
            transaction.remember(theme).ok()?;
        }
        Step::Update { item: at, from } => {
            let old = item(transaction, *at)?;
            let key = transaction.snapshot().unwrap().key_of(old).unwrap();
            let mut recall = NewRecall::fact(format!("better said {number}"));
            if let Some(from) = from {
                recall = recall.from(Pointer::to_item(item(transaction, *from)?));
            }
            transaction.update(&key, recall).ok()?;
        }
        Step::Link { from, edge, to, remove } => {
            let (from, to) = (item(transaction, *from)?, item(transaction, *to)?);
            let edge = pick(Edge::ALL, *edge);
            if *remove {
                let linked = Edge::ALL
                    .iter()
                    .find_map(|edge| Some((*edge, *transaction.snapshot().ok()?.linked(from, *edge).ok()?.first()?)));
                let (edge, to) = linked.unwrap_or((edge, to));
                transaction.unlink(from, edge, to).ok()?;
            } else {
                transaction.link(from, edge, to).ok()?;
            }
        }
        Step::Cite { item: at, target, page } => {
            let (from, to) = (item(transaction, *at)?, item(transaction, *target)?);
            let page_key = format!("e{}/p{}", at % 3, 1 + target % 2);
            let pointer = if *page { Pointer::to_page(page_key) } else { Pointer::to_item(to) };
            transaction.cite(from, &pointer).ok()?;
        }
        Step::Uncite { item: at, nth } => {
            let snapshot = transaction.snapshot().unwrap();
            let any_from = |at| Some((at, snapshot.citations(at).unwrap())).filter(|(_, cited)| !cited.is_empty());
            let from = (0..snapshot.len()).map(|id| ItemId((id + u32::from(*at)) % snapshot.len())).find_map(any_from);
            let (from, cited) = from?;
            let one = &cited[usize::from(*nth) % cited.len()];
            let pointer = match one.target.strip_prefix("page ") {
                Some(page) => Pointer::to_page(page),
                None => Pointer::to_key(&one.target).field(&one.field).bytes(one.start, one.end),
            };
            transaction.uncite(from, &pointer).ok()?;
        }
        Step::Mark { item: at, what, because: has_reason } => {
            let mark = match what % 5 {
                3 if *has_reason => Mark::Credit(f32::from(*what) / 9.0 - 1.0, u32::from(*what) % 3),
                3 => Mark::Utility(f32::from(*what) / 7.0, u32::from(*what) % 3),
                4 => Mark::Inactive,
                _ => Mark::Status(pick(Status::ALL, *what)),
            };
            let item = item(transaction, *at)?;
            transaction.mark(item, mark, because(has_reason)).ok()?;
        }
        Step::Retire { item: at, by, because: has_reason } => {
            let item_id = item(transaction, *at)?;
            let by = by.and_then(|by| item(transaction, by));
            let because = if *has_reason { Some("superseded".to_owned()) } else { None };
            transaction.deactivate(item_id, by, because).ok()?;
        }
        Step::Claim { item: at, value, global, from } => {
            let item_id = item(transaction, *at)?;
            let from: Vec<Pointer> = match from {
                Some(from) => vec![Pointer::to_item(item(transaction, *from)?)],
                None => Vec::new(),
            };
            transaction.claim(item_id, "n", &(value % 3).to_string(), *global, &from).ok()?;
        }
        Step::Episode { id, change } => {
            let change = EpisodeChange {
                task: (change & 1 != 0).then(|| format!("task {number}")),
                version: (change & 2 != 0).then(|| format!("v{}", change % 3)),
                open: (change & 4 != 0).then_some(change & 8 != 0),
            };
            transaction.episode(&format!("e{}", id % 3), change).ok()?;
        }
        Step::Page { number, summarised } => {
            transaction.mark_page(&format!("e{}/p{}", number % 3, 1 + number % 2), *summarised).ok()?;
        }
        Step::Setting { value } => match value % 3 {
            0 => transaction.set("profile", pick(&["agent", "archive"], value / 3)).ok()?,
            _ => transaction.set("page.tokens", &(5 + value % 40).to_string()).ok()?,
        },
        Step::Commit => {}
    }
    Some(())
}

/// A database that lived through the steps.
fn live(path: &Path, steps: &[Step], encoding: Encoding) -> Holotype {
    let database = Holotype::create(path, Options::default()).unwrap();
    let mut transaction = database.begin().unwrap();
    transaction.define_space(&Space::new("test", 3).encoding(encoding)).unwrap();
    transaction.set("page.tokens", "12").unwrap();
    for (number, one) in steps.iter().enumerate() {
        let _ = step(&mut transaction, number, one);
        if matches!(one, Step::Commit) {
            transaction.commit(Durability::None).unwrap();
            transaction = database.begin().unwrap();
        }
    }
    transaction.commit(Durability::None).unwrap();
    database
}

/// All that statements can see of an item, but where and when its record was written.
fn seen(database: &Holotype, id: ItemId) -> String {
    let snapshot = database.snapshot();
    let mut item = snapshot.item(id).unwrap();
    (item.attributes.commit, item.attributes.lsn) = (0, 0);
    let edges: Vec<_> = Edge::ALL.iter().map(|edge| snapshot.linked(id, *edge).unwrap()).collect();
    let fields: Vec<_> = item.content.field_names().map(|name| (name, item.content.field_text(name))).collect();
    format!(
        "{:?}\n{:?}\n{fields:?}\n{edges:?}\n{:?}\n{:?}",
        item.key,
        item.attributes,
        snapshot.citations(id).unwrap(),
        snapshot.vector(id).unwrap()
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn an_export_imported_and_exported_is_the_same(
        steps in prop::collection::vec(any_step(), 1..60),
        is_half in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| -> PathBuf { dir.path().join(name) };
        let database = live(&path("a.holo"), &steps, if is_half { Encoding::F16 } else { Encoding::F32 });
        let lines = exported(&database, Some(&path("a.npy")));
        let vectors = NpyReader::open(path("a.npy")).unwrap();
        let other = Holotype::create(path("b.holo"), Options::default()).unwrap();
        let told = |error| TestCaseError::fail(format!("{error}\n{lines}"));
        import_from(&other, &lines, &vectors).map_err(told)?;
        let again = exported(&other, Some(&path("b.npy")));
        prop_assert!(again == lines, "{}\n{lines}", first_difference(&again, &lines));
        prop_assert_eq!(std::fs::read(path("a.npy")).unwrap(), std::fs::read(path("b.npy")).unwrap());
        prop_assert_eq!(exported(&other, None), exported(&database, None));
        for id in 0..database.snapshot().len() {
            prop_assert_eq!(seen(&other, ItemId(id)), seen(&database, ItemId(id)), "{}", lines);
        }
        for again in [&database, &other] {
            prop_assert_eq!(import_from(again, &lines, &vectors).map_err(told)?.added, 0, "{}", lines);
        }
    }
}
