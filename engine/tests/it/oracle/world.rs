//! Small databases with a little of everything, some of it in derived files and some behind the last checkpoint.

use crate::random::Random;
use holotype::time::FixedClock;
use holotype::{
    Durability, Edge, EpisodeChange, Holotype, ItemId, Kind, Mark, NewRecall, NewTrace, Options, Pointer, Snapshot,
    Source, Space, Status, Transaction,
};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;

pub(crate) const CLOCK: i64 = 1_770_000_000_000_000;
pub(crate) const HOUR: i64 = 3_600_000_000;
/// Words that are their own stems and say something.
pub(crate) const WORDS: [&str; 7] = ["alpha", "beta", "gamma", "delta", "omega", "kappa", "sigma"];
pub(crate) const TOOLS: [&str; 2] = ["search", "pay"];

impl Random {
    pub(crate) fn words(&mut self, most: u64) -> String {
        let count = 1 + self.below(most);
        (0..count).map(|_| *self.one(&WORDS)).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn vector(&mut self) -> [f32; 2] {
        [self.below(9) as f32 - 4.0, 1.0 + self.below(4) as f32]
    }
}

/// The database after its last commit, and as it was after each.
pub(crate) fn write(random: &mut Random) -> Vec<Snapshot> {
    let space = Space::new("test", 2);
    let clock = Arc::new(FixedClock(CLOCK));
    let options = Options { page_size: 4096, profile: Some("agent".to_owned()), clock, ..Options::with_space(space) };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).expect("a new disk");
    let mut transaction = database.begin().expect("nobody else writes");
    transaction.set("page.tokens", &(6 + random.below(30)).to_string()).expect("a setting");
    // Claims that compete bring each other into answers: that is not this interpreter's business.
    let claims = random.percent(25);
    let mut snapshots = Vec::new();
    let mut steps = [0; 3];
    let mut items = Vec::new();
    for nth in 0..4 + random.below(24) {
        if random.percent(8) {
            transaction.commit(Durability::None).expect("room");
            snapshots.extend(Some(database.snapshot()).filter(|snapshot| !snapshot.is_empty()));
            if random.percent(50) {
                database.checkpoint().expect("room");
            }
            transaction = database.begin().expect("nobody else writes");
        }
        let id = match random.below(10) {
            8 if !items.is_empty() => theme(random, &mut transaction, &items, nth),
            5..=7 if !items.is_empty() => fact(random, &mut transaction, &items, nth),
            _ => trace(random, &mut transaction, &mut steps, nth),
        };
        items.push(id);
        if claims && random.percent(40) {
            let (name, value) = (format!("n{}", random.below(2)), random.below(3).to_string());
            transaction.claim(id, &name, &value, random.percent(30), &[]).expect("a claim");
        }
        later(random, &mut transaction, &items);
    }
    transaction.commit(Durability::None).expect("room");
    snapshots.push(database.snapshot());
    snapshots
}

fn trace(random: &mut Random, transaction: &mut Transaction<'_>, steps: &mut [u64; 3], nth: u64) -> ItemId {
    let episode = random.below(3);
    steps[episode as usize] += 1 + random.below(40);
    let kind = *random.one(&[Kind::Turn, Kind::Call, Kind::Observation]);
    let mut new = NewTrace::new(kind, format!("e{episode}"), random.words(6))
        .key(format!("k{nth}"))
        .step(steps[episode as usize])
        .time(CLOCK - random.below(300) as i64 * HOUR)
        .status(*random.one(&[Status::Success, Status::Success, Status::Unknown, Status::Failed]));
    if random.percent(50) {
        new = new.version(*random.one(&["v0", "v1", "v0 tools=a", "tools=b task=v1", "site=x", "v1 tools=a site=x"]));
    }
    if random.percent(70) {
        new = new.source(*random.one(Source::ALL));
    }
    if random.percent(40) {
        new = new.tool(*random.one(&TOOLS));
    }
    if random.percent(30) {
        new = new.speaker(*random.one(&["alpha", "beta"]));
    }
    if random.percent(40) {
        new = new.field("price", random.one(&["450", "99.5", "cheap"]).to_string());
    }
    if random.percent(75) {
        new = new.vector(random.vector().to_vec());
    }
    transaction.record(new).expect("a trace")
}

fn fact(random: &mut Random, transaction: &mut Transaction<'_>, items: &[ItemId], nth: u64) -> ItemId {
    let kind = *random.one(&[Kind::Fact, Kind::Summary, Kind::Procedure]);
    let mut new = NewRecall::new(kind, random.words(5)).key(format!("k{nth}"));
    let mut grounded = false;
    for _ in 0..random.below(4) {
        let target = *random.one(items);
        if transaction.attributes(target).expect("it is there").layer() != holotype::Layer::Theme {
            new = new.from(Pointer::to_item(target));
            grounded = true;
        }
    }
    if !grounded {
        new = new.ungrounded();
    }
    if random.percent(75) {
        new = new.vector(random.vector().to_vec());
    }
    if kind == Kind::Procedure {
        new = new.return_score(1 + random.below(10) as u8);
    }
    if random.percent(30) {
        new = new.utility(random.below(5) as f32 / 4.0);
    }
    transaction.remember(new).expect("a recall")
}

fn theme(random: &mut Random, transaction: &mut Transaction<'_>, items: &[ItemId], nth: u64) -> ItemId {
    let kind = *random.one(&[Kind::Theme, Kind::Concept, Kind::Intent]);
    let mut new = NewRecall::new(kind, random.words(2)).key(format!("k{nth}"));
    if random.percent(75) {
        new = new.vector(random.vector().to_vec());
    }
    let id = transaction.remember(new).expect("a theme");
    for _ in 0..random.below(4) {
        let item = *random.one(items);
        let edge = match kind {
            Kind::Concept => Edge::Mentions,
            Kind::Intent => Edge::Solves,
            _ => Edge::Parent,
        };
        // An edge that may not be is refused, and nothing is lost by it.
        let _ = transaction.link(item, edge, id);
    }
    id
}

/// Things that happen to what is there already.
fn later(random: &mut Random, transaction: &mut Transaction<'_>, items: &[ItemId]) {
    let item = *random.one(items);
    let _ = match random.below(12) {
        0 => transaction.mark(item, Mark::Status(Status::Failed), None).map(drop),
        1 => transaction.mark(item, Mark::Inactive, None).map(drop),
        2 => transaction.link(item, Edge::Sibling, *random.one(items)).map(drop),
        3 => transaction.link(item, Edge::Supersedes, *random.one(items)).map(drop),
        4 if random.percent(30) => {
            let _ = transaction.episode(
                &format!("e{}", random.below(3)),
                EpisodeChange { open: Some(false), ..EpisodeChange::default() },
            );
            Ok(())
        }
        _ => Ok(()),
    };
}
