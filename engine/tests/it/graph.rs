//! The memory graph under generated operations: edges agree both ways, what was retired never surfaces, an update
//! inherits all provenance, and `as of` before an operation shows what was there.

use holotype::answer::{Output, Table};
use holotype::embed::HashingEmbedder;
use holotype::query::Params;
use holotype::structure::{MergeByWords, ReflectByWords, Roles, Step, Trajectory};
use holotype::time::FixedClock;
use holotype::{
    Decay, Durability, Edge, Feedback, Holotype, ItemId, Layer, MergeOptions, NewRecall, Options, Pointer, Snapshot,
    Space, Transaction,
};
use holotype_storage::vfs::SimVfs;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// 2026-01-06T00:00:00Z
const CLOCK: i64 = 1_767_657_600_000_000;
const EDGES: [Edge; 8] = [
    Edge::Cites,
    Edge::DerivedFrom,
    Edge::Mentions,
    Edge::Solves,
    Edge::Parent,
    Edge::Supersedes,
    Edge::Sibling,
    Edge::ConflictsWith,
];

#[derive(Debug, Clone)]
enum Operation {
    /// A trajectory about one of a few things.
    Create(u8, u8),
    Merge(u8),
    Reward(u8, u8),
    Correct(u8, u8),
    Wrong(u8),
    Reflect(u8, u8),
    Decay,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (any::<u8>(), any::<u8>()).prop_map(|(what, state)| Operation::Create(what, state)),
        2 => any::<u8>().prop_map(Operation::Merge),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(which, reward)| Operation::Reward(which, reward)),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(which, what)| Operation::Correct(which, what)),
        1 => any::<u8>().prop_map(Operation::Wrong),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(what, state)| Operation::Reflect(what, state)),
        1 => Just(Operation::Decay),
    ]
}

fn statement(what: u8, state: u8) -> String {
    let things = ["The lamp Aurora 7", "The lamp Aurora 9", "The rope of Ann Lee", "The boat Velmora"];
    let states = ["is sold in Oslo.", "is sold in Oslo today.", "was lost near Bergen.", "hangs by the door."];
    format!("{} {}", things[usize::from(what % 4)], states[usize::from(state % 4)])
}

fn database() -> Holotype {
    let embedder = HashingEmbedder::new(64);
    let space = Space::new(embedder.name(), 64);
    let options = Options { page_size: 4096, clock: Arc::new(FixedClock(CLOCK)), ..Options::with_space(space) };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
}

fn active(snapshot: &Snapshot, layer: Layer) -> Vec<ItemId> {
    let is_active = |id: &ItemId| {
        let attributes = snapshot.attributes(*id).unwrap();
        attributes.layer() == layer && attributes.active
    };
    (0..snapshot.len()).map(ItemId).filter(is_active).collect()
}

/// Runs an operation; returns each item that it replaced by another.
fn run(transaction: &mut Transaction<'_>, nth: usize, operation: &Operation) -> Vec<(ItemId, ItemId)> {
    let snapshot = transaction.snapshot().unwrap();
    let recalls = active(&snapshot, Layer::Recall);
    let one = |which: u8| recalls.get(usize::from(which) % recalls.len().max(1)).copied();
    match operation {
        Operation::Create(what, state) => {
            let step =
                Step::new(statement(*what, *state)).action("look").subgoal(["sell lamps", "mend ropes"][nth % 2]);
            let episode = format!("e{nth}");
            let trajectory = Trajectory { episode, goal: "trade".to_owned(), steps: vec![step] };
            transaction.create(&trajectory, &Roles::default()).unwrap();
            Vec::new()
        }
        Operation::Merge(tau) => {
            let options = MergeOptions { tau: f32::from(tau % 10) / 10.0, top: 2 };
            let merged = transaction.merge(&recalls, &MergeByWords, options).unwrap();
            merged.iter().flat_map(|merge| merge.of.iter().map(|of| (*of, merge.merged))).collect()
        }
        Operation::Reward(which, reward) => {
            let reward = Feedback::Reward(f32::from(*reward) / 255.0);
            if let Some(item) = one(*which) {
                transaction.feedback(item, &reward).unwrap();
            }
            Vec::new()
        }
        Operation::Correct(which, what) => {
            let correction = Feedback::Correction(statement(*what, *which), Vec::new());
            one(*which).into_iter().map(|item| (item, transaction.feedback(item, &correction).unwrap())).collect()
        }
        Operation::Wrong(which) => {
            let wrong = Feedback::Wrong("it was not so".to_owned());
            if let Some(item) = one(*which) {
                transaction.feedback(item, &wrong).unwrap();
            }
            Vec::new()
        }
        Operation::Reflect(what, state) => {
            let Some(trace) = active(&snapshot, Layer::Trace).first().copied() else { return Vec::new() };
            let fact = NewRecall::fact(statement(*what, *state)).from(Pointer::to_item(trace));
            let new = transaction.reflect(fact, 3, &ReflectByWords).unwrap();
            transaction
                .snapshot()
                .unwrap()
                .linked(new, Edge::Supersedes)
                .unwrap()
                .into_iter()
                .map(|old| (old, new))
                .collect()
        }
        Operation::Decay => {
            let decay = Decay { half_life: 1, below: 0.1, compress_after: None };
            transaction.decay(decay).unwrap();
            Vec::new()
        }
    }
}

fn table(snapshot: &Snapshot, script: &str) -> Table {
    match snapshot.query(script, &Params::new()).unwrap().pop() {
        Some(Output::Table(table)) => table,
        other => panic!("{script}: {other:?}"),
    }
}

/// An item's activity, and the ends of its edges by kind.
type ItemPicture = (bool, Vec<Vec<ItemId>>);

/// Every item with its activity and edges, and the figures of the graph.
fn picture(snapshot: &Snapshot) -> (Vec<ItemPicture>, Table) {
    let item = |id: ItemId| {
        let edges = EDGES.map(|edge| snapshot.linked(id, edge).unwrap()).to_vec();
        (snapshot.attributes(id).unwrap().active, edges)
    };
    ((0..snapshot.len()).map(|id| item(ItemId(id))).collect(), table(snapshot, "show graph"))
}

fn assert_edges_agree(snapshot: &Snapshot) {
    for id in (0..snapshot.len()).map(ItemId) {
        for edge in EDGES {
            let statement = format!("find items where {edge} {} return item", id.0);
            let rows = table(snapshot, &statement).rows;
            let into: BTreeSet<String> = rows.iter().map(|row| row[0].as_ref().unwrap().to_string()).collect();
            let from =
                (0..snapshot.len()).map(ItemId).filter(|from| snapshot.linked(*from, edge).unwrap().contains(&id));
            let from: BTreeSet<String> = from.map(|from| from.0.to_string()).collect();
            assert_eq!(into, from, "{edge} of {id}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn operations_keep_the_graph_sound(operations in prop::collection::vec(operation(), 1..10)) {
        let database = database();
        let mut pictures = Vec::new();
        for (nth, operation) in operations.iter().enumerate() {
            let before = database.snapshot();
            let mut transaction = database.begin().unwrap();
            let replaced = run(&mut transaction, nth, operation);
            transaction.commit(Durability::None).unwrap();
            let after = database.snapshot();
            for (old, new) in replaced {
                for edge in [Edge::Cites, Edge::Mentions, Edge::Solves] {
                    let of = |snapshot: &Snapshot, id| -> BTreeSet<ItemId> {
                        snapshot.linked(id, edge).unwrap().into_iter().collect()
                    };
                    prop_assert!(of(&after, new).is_superset(&of(&before, old)), "{} of {} by {}", edge, old, new);
                }
            }
            pictures.push((before.commit(), picture(&before)));
        }
        let snapshot = database.snapshot();
        for (commit, before) in pictures.iter().filter(|(commit, _)| *commit > 0) {
            prop_assert_eq!(&picture(&snapshot.as_of(*commit).unwrap()), before, "as of commit {}", commit);
        }
        assert_edges_agree(&snapshot);
        for path in [
            "facts 50 limit 50",
            "facts 50 -> (concepts 8 -> facts 50) up to 2 hops limit 50",
            "intents 9 -> procedures 50 limit 50",
        ] {
            let statement = format!("recall 'lamp Aurora rope boat sold Oslo lost door' through {path}");
            let Some(Output::Answer(answer)) = snapshot.query(&statement, &Params::new()).unwrap().pop() else {
                panic!("no answer")
            };
            prop_assert!(answer.rows.iter().all(|row| snapshot.attributes(row.item).unwrap().active));
        }
    }
}
