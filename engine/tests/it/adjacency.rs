//! Edges as they are read: kept from checkpoints and scanned for what changed since, they are those that were made.

use crate::random::Random;
use holotype::{Durability, Edge, Holotype, ItemId, Kind, NewRecall, NewTrace, Options, Snapshot};
use holotype_storage::vfs::SimVfs;
use std::collections::BTreeSet;
use std::sync::Arc;

type Links = BTreeSet<(u32, u32)>;

fn check(snapshot: &Snapshot, links: &Links, random: &mut Random, context: &str) {
    for _ in 0..40 {
        let item = random.below(u64::from(snapshot.len())) as u32;
        let from: Vec<u32> = links.iter().filter(|(from, _)| *from == item).map(|(_, to)| *to).collect();
        let to: Vec<u32> = links.iter().filter(|(_, to)| *to == item).map(|(from, _)| *from).collect();
        let ids = |ends: Vec<ItemId>| ends.into_iter().map(|id| id.0).collect::<Vec<u32>>();
        let found = ids(snapshot.linked(ItemId(item), Edge::Mentions).expect("it can be read"));
        assert_eq!(found, from, "{context}: what #{item} mentions");
        let found = ids(snapshot.linking(ItemId(item), Edge::Mentions).expect("it can be read"));
        assert_eq!(found, to, "{context}: what mentions #{item}");
    }
}

#[test]
fn edges_are_those_that_were_made_whatever_was_checkpointed_meanwhile() {
    for seed in 1..=12u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let database =
            Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", Options::default()).expect("a disk");
        let (mut links, mut facts, mut concepts) = (Links::new(), Vec::new(), Vec::new());
        let mut earlier: Option<(Snapshot, Links)> = None;
        for round in 0..25 {
            let context = format!("seed {seed}, round {round}");
            let mut transaction = database.begin().expect("nobody else writes");
            for _ in 0..random.below(48) {
                let text = format!("word{}", random.below(50));
                match random.below(3) {
                    0 => drop(transaction.record(NewTrace::turn("e", text)).expect("a trace")),
                    1 => facts.push(transaction.remember(NewRecall::fact(text).ungrounded()).expect("a fact")),
                    _ => concepts.push(
                        transaction.remember(NewRecall::new(Kind::Concept, text).ungrounded()).expect("a concept"),
                    ),
                }
            }
            for _ in 0..random.below(20) {
                let (Some(nth), Some(of)) = (facts.len().checked_sub(1), concepts.len().checked_sub(1)) else { break };
                let (fact, concept) =
                    (facts[random.below(nth as u64 + 1) as usize], concepts[random.below(of as u64 + 1) as usize]);
                if links.insert((fact.0, concept.0)) {
                    transaction.link(fact, Edge::Mentions, concept).expect("a link");
                } else {
                    links.remove(&(fact.0, concept.0));
                    transaction.unlink(fact, Edge::Mentions, concept).expect("it was there");
                }
            }
            transaction.commit(Durability::None).expect("room");
            if random.below(3) == 0 {
                database.checkpoint().expect("room");
            }
            let snapshot = database.snapshot();
            if snapshot.is_empty() {
                continue;
            }
            check(&snapshot, &links, &mut random, &context);
            if let Some((snapshot, links)) = &earlier {
                check(snapshot, links, &mut random, &format!("{context}, an earlier snapshot"));
                let past = database.snapshot().as_of(snapshot.commit()).expect("it was there");
                check(&past, links, &mut random, &format!("{context}, as of an earlier commit"));
            }
            if random.below(4) == 0 {
                earlier = Some((snapshot, links.clone()));
            }
        }
    }
}
