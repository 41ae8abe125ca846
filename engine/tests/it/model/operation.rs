//! Random operations: their kinds, how they are drawn, and the words and keys for their numbers.

use holotype::{Edge, Kind, Source, Status};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// The time of the clock, in microseconds since 1970.
pub(crate) const CLOCK: i64 = 1_770_000_000_000_000;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Record {
        episode: u8,
        key: Option<u8>,
        tool: Option<u8>,
        step: Option<u64>,
        time: Option<i64>,
        version: Option<u8>,
        status: Option<Status>,
        source: Option<Source>,
        words: u8,
        vector: bool,
    },
    Remember {
        kind: Kind,
        key: Option<u8>,
        from: Vec<(u8, u8, u8)>,
        page: Option<u8>,
        children: Vec<u8>,
        ungrounded: bool,
        episode: Option<u8>,
        time: Option<i64>,
        status: Option<Status>,
        source: Option<Source>,
    },
    Update {
        key: u8,
        from: Vec<(u8, u8, u8)>,
        ungrounded: bool,
    },
    Cite(u8, (u8, u8, u8)),
    Link(u8, Edge, u8),
    Unlink(u8, Edge, u8),
    Status(u8, Status),
    Utility(u8, i8),
    Inactive(u8),
    Claim(u8, u8, u8, bool),
    Episode(u8, Option<u8>, Option<bool>),
    PageTokens(u64),
    Summarise(u8, bool),
    Commit(bool),
    Drop,
    Look,
    Keep,
    Checkpoint,
    Reopen,
    Rebuild,
}

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL)
}

fn source() -> impl Strategy<Value = Source> {
    prop::sample::select(Source::ALL)
}

fn pointers() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    vec(any::<(u8, u8, u8)>(), 0..3)
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let recalls = [Kind::Summary, Kind::Fact, Kind::Fact, Kind::Procedure, Kind::Refined];
    let themes = [Kind::Theme, Kind::Theme, Kind::Concept, Kind::Intent];
    let time = || (0..6_i64).prop_map(|hours| CLOCK - hours * 3_600_000_000);
    let kinds = prop_oneof![3 => prop::sample::select(recalls.to_vec()), 1 => prop::sample::select(themes.to_vec())];
    prop_oneof![
        12 => (
            (0..3_u8, option::of(any::<u8>()), option::of(0..2_u8), option::weighted(0.3, 0..30_u64)),
            (option::weighted(0.6, time()), option::weighted(0.3, 0..3_u8), option::of(status()), option::of(source())),
            (0..9_u8, any::<bool>()),
        )
            .prop_map(|((episode, key, tool, step), (time, version, status, source), (words, vector))| Op::Record {
                episode, key, tool, step, time, version, status, source, words, vector,
            }),
        10 => (
            (kinds, option::of(any::<u8>()), pointers(), option::weighted(0.2, any::<u8>())),
            (vec(any::<u8>(), 0..3), prop::bool::weighted(0.3), option::weighted(0.2, 0..4_u8)),
            (option::weighted(0.1, time()), option::weighted(0.1, status()), option::weighted(0.1, source())),
        )
            .prop_map(|((kind, key, from, page), (children, ungrounded, episode), (time, status, source))| {
                Op::Remember { kind, key, from, page, children, ungrounded, episode, time, status, source }
            }),
        3 => (any::<u8>(), pointers(), prop::bool::weighted(0.2))
            .prop_map(|(key, from, ungrounded)| Op::Update { key, from, ungrounded }),
        3 => any::<(u8, (u8, u8, u8))>().prop_map(|(item, pointer)| Op::Cite(item, pointer)),
        6 => (any::<u8>(), prop::sample::select(Edge::ALL), any::<u8>()).prop_map(|(from, edge, to)| Op::Link(from, edge, to)),
        4 => (any::<u8>(), prop::sample::select(Edge::ALL), any::<u8>())
            .prop_map(|(from, edge, to)| Op::Unlink(from, edge, to)),
        5 => (any::<u8>(), status()).prop_map(|(item, status)| Op::Status(item, status)),
        1 => any::<(u8, i8)>().prop_map(|(item, utility)| Op::Utility(item, utility)),
        2 => any::<u8>().prop_map(Op::Inactive),
        6 => (any::<u8>(), 0..2_u8, 0..3_u8, prop::bool::weighted(0.2))
            .prop_map(|(item, name, value, global)| Op::Claim(item, name, value, global)),
        3 => (0..4_u8, option::of(0..3_u8), option::of(any::<bool>()))
            .prop_map(|(episode, version, open)| Op::Episode(episode, version, open)),
        1 => (1..40_u64).prop_map(Op::PageTokens),
        1 => any::<(u8, bool)>().prop_map(|(page, summarised)| Op::Summarise(page, summarised)),
        5 => any::<bool>().prop_map(Op::Commit),
        1 => Just(Op::Drop),
        2 => Just(Op::Look),
        1 => Just(Op::Keep),
        1 => Just(Op::Checkpoint),
        1 => Just(Op::Reopen),
        1 => Just(Op::Rebuild),
    ]
}

const WORDS: [&str; 9] = ["", "é", "one fare", "price of the flight", "bag", "x y z", "übermut tut gut", "450 €", "a"];

pub(crate) fn text(words: u8, id: usize) -> String {
    format!("{} {id}", WORDS[usize::from(words) % WORDS.len()])
}

pub(crate) fn key_name(key: u8) -> String {
    format!("k{}", key % 24)
}
