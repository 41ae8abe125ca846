//! Statements at random: predicates of every kind, listings, counts, recalls.

use crate::naive::Exported;
use crate::world::{CLOCK, HOUR, Random, TOOLS, WORDS};

const NOUNS: &[&str] = &[
    "items",
    "items",
    "traces",
    "traces",
    "recalls",
    "themes",
    "turns",
    "calls",
    "observations",
    "facts",
    "summaries",
    "procedures",
    "concepts",
    "intents",
];
const COLUMNS: &[&str] = &[
    "item",
    "key",
    "layer",
    "kind",
    "text",
    "tokens",
    "episode",
    "step",
    "time",
    "age",
    "commit",
    "version",
    "status",
    "source",
    "speaker",
    "tool",
    "log_id",
    "trust",
    "support",
    "utility",
    "return_score",
    "origin",
    "active",
    "fields.price",
];
const OPS: &[&str] = &["=", "!=", "<", "<=", ">", ">="];

/// A statement that runs, and the vector `$v` of one that asks for it.
pub(crate) fn any(random: &mut Random, world: &Exported) -> (String, [f32; 2]) {
    let statement = match random.below(10) {
        0..=3 => find(random, world),
        4..=5 => count(random, world),
        _ => recall(random, world),
    };
    (statement, random.vector())
}

fn find(random: &mut Random, world: &Exported) -> String {
    let mut text = format!("find {}", random.one(NOUNS));
    listing(random, world, &mut text);
    if random.percent(50) {
        text += " order by ";
        let keys: Vec<String> = (0..1 + random.below(2))
            .map(|_| format!("{}{}", random.one(COLUMNS), random.one(&["", " asc", " desc"])))
            .collect();
        text += &keys.join(", ");
    }
    if random.percent(40) {
        text += &format!(" limit {}", random.below(8));
        if random.percent(50) {
            text += &format!(" skip {}", random.below(5));
        }
    }
    let mut returns = vec!["key"];
    returns.extend((0..random.below(4)).map(|_| *random.one(COLUMNS)));
    text + " return " + &returns.join(", ")
}

fn count(random: &mut Random, world: &Exported) -> String {
    let mut text = format!("count {}", random.one(NOUNS));
    for _ in 0..random.below(3) {
        text += &format!(
            ", {} {}",
            random.one(&["sum", "mean", "min", "max"]),
            random.one(&["tokens", "step", "utility", "trust"])
        );
    }
    listing(random, world, &mut text);
    if random.percent(60) {
        let buckets: Vec<&str> = (0..1 + random.below(2))
            .map(|_| {
                *random.one(&[
                    "kind",
                    "status",
                    "tool",
                    "source",
                    "layer",
                    "version",
                    "step every 50 steps",
                    "time every 2d",
                    "active",
                ])
            })
            .collect();
        text += &format!(" by {}", buckets.join(", "));
    }
    text
}

fn listing(random: &mut Random, world: &Exported, text: &mut String) {
    scope(random, world, text, 30);
    if random.percent(75) {
        *text += &format!(" where {}", predicate(random, world, 3));
    }
    reader(random, text, 25);
}

fn scope(random: &mut Random, world: &Exported, text: &mut String, share: u64) {
    let episodes: Vec<&String> = world.episodes.iter().collect();
    if random.percent(share) && !episodes.is_empty() {
        *text += &format!(" in episode '{}'", random.one(&episodes));
        if random.percent(20) {
            *text += &format!(", '{}'", random.one(&episodes));
        }
    }
}

fn reader(random: &mut Random, text: &mut String, share: u64) {
    let mut moments = Vec::new();
    if random.percent(share) {
        moments.push(format!("step {}", random.below(300)));
    }
    if random.percent(share) {
        moments.push(format!("time {}", CLOCK + random.below(300) as i64 * HOUR));
    }
    if random.percent(share) {
        moments.push(format!("version 'v{}'", random.below(3)));
    }
    if !moments.is_empty() {
        *text += &format!(" at {}", moments.join(", "));
    }
}

fn predicate(random: &mut Random, world: &Exported, depth: u64) -> String {
    match random.below(if depth == 0 { 1 } else { 6 }) {
        1 => format!("{} and {}", predicate(random, world, depth - 1), predicate(random, world, depth - 1)),
        2 => format!("({} or {})", predicate(random, world, depth - 1), predicate(random, world, depth - 1)),
        3 => format!("not ({})", predicate(random, world, depth - 1)),
        _ => test(random, world),
    }
}

fn test(random: &mut Random, world: &Exported) -> String {
    let key = |random: &mut Random| format!("'k{}'", random.below(world.items.len() as u64 + 2));
    match random.below(22) {
        0 => format!("step {} {}", random.one(OPS), random.below(250)),
        1 => format!("step {}between {} and {}", random.one(&["", "not "]), random.below(150), 50 + random.below(200)),
        2 => format!("tokens {} {}", random.one(OPS), random.below(12)),
        3 => format!("commit {} {}", random.one(OPS), random.below(6)),
        4 => {
            let time = holotype::time::format(CLOCK + random.below(300) as i64 * HOUR);
            format!("time {} '{time}'", random.one(OPS))
        }
        5 => format!("age {} {}h", random.one(OPS), random.below(300)),
        6 => format!("status {} {}", random.one(&["=", "!="]), random.one(&["success", "unknown", "failed"])),
        7 => format!("source {}in (tool, user)", random.one(&["", "not "])),
        8 => format!("kind {} {}", random.one(&["=", "!="]), random.one(&["turn", "call", "fact", "theme", "concept"])),
        9 => format!("tool {} '{}'", random.one(&["=", "!=", "<"]), random.one(&TOOLS)),
        10 => format!("version in ('v0', 'v{}')", random.below(3)),
        11 => format!("speaker contains '{}'", random.one(&["LPH", "a", "zz"])),
        12 => format!("text {}contains '{}'", random.one(&["", "not "]), random.one(&WORDS).to_uppercase()),
        13 => format!("text matches '{}'", random.one(&["alpha*", "*ma", "?eta *", "*"])),
        14 => format!(
            "has {}",
            random.one(&["tool", "step", "version", "return_score", "fields.price", "speaker", "source"])
        ),
        15 => format!("fields.price {} {}", random.one(OPS), random.one(&["400", "99.5", "450"])),
        16 => (*random.one(&[
            "failed",
            "inactive",
            "weakened",
            "unsupported",
            "ungrounded",
            "conflicted",
            "redacted",
            "stale",
            "stale(50 steps)",
            "stale(3d)",
            "stale(version)",
            "active = true",
            "support != supported",
        ]))
        .to_owned(),
        17 => format!("key {} {}", random.one(&["=", "=", "!="]), key(random)),
        18 => format!("key in ({}, {}, {})", key(random), key(random), key(random)),
        19 => format!("item {} {}", random.one(&["=", "!="]), random.below(world.items.len() as u64)),
        20 => {
            let edge = *random.one(&["cites", "parent", "mentions", "solves", "sibling", "supersedes", "derived-from"]);
            let target =
                if random.percent(50) { "any".to_owned() } else { random.below(world.items.len() as u64).to_string() };
            format!("{edge} {target}")
        }
        _ => format!("episode = 'e{}'", random.below(3)),
    }
}

fn recall(random: &mut Random, world: &Exported) -> String {
    let mut text = match random.below(5) {
        0 => "recall near $v".to_owned(),
        1 => format!("recall '{}'", random.words(3)),
        _ => format!("recall '{}' near $v", random.words(3)),
    };
    scope(random, world, &mut text, 40);
    let stage = |random: &mut Random, noun: &str, later: bool| {
        let channels = match (random.below(4), later) {
            (0, _) => " by near, words",
            (1, true) => " by linked",
            (2, _) => " by words",
            _ => "",
        };
        let count = if random.percent(60) { format!(" {}", 1 + random.below(20)) } else { String::new() };
        let only = if random.percent(20) { format!(" only ({})", predicate(random, world, 1)) } else { String::new() };
        format!("{noun}{count}{channels}{only}")
    };
    match random.below(6) {
        0 => {}
        1 => text += &format!(" through {}", stage(random, "traces", false)),
        2 => {
            let noun = *random.one(&["turns", "facts", "procedures", "themes", "concepts", "recalls"]);
            text += &format!(" through {}", stage(random, noun, false));
        }
        3 => {
            let first = stage(random, "recalls", false);
            text += &format!(" through {first} -> {}", stage(random, "traces", true));
        }
        4 => {
            let first = stage(random, "themes", false);
            text += &format!(" through {first} -> {}", stage(random, "facts", true));
        }
        _ => {
            let (first, second) = (stage(random, "concepts", false), stage(random, "recalls", true));
            text += &format!(" through {first} -> {second} -> {}", stage(random, "calls", true));
        }
    }
    if random.percent(40) {
        text += &format!(" where {}", predicate(random, world, 2));
    }
    if random.percent(30) {
        text +=
            &format!(" include {}", random.one(&["failed", "inactive", "stale", "failed, stale", "inactive, failed"]));
    } else if random.percent(40) {
        text += &format!(
            " exclude {}",
            random.one(&[
                "failed",
                "stale",
                "stale(60 steps)",
                "weakened",
                "unsupported, ungrounded",
                "stale(4d, version)"
            ])
        );
    }
    match random.below(4) {
        0 => text += " score similarity 1, words 0.5",
        1 => text += " score words 1, recency 2 half-life 12h, status 3, source 1, utility 1",
        2 => text += " score similarity 1, recency 1 half-life 30 steps, status 10",
        _ => {}
    }
    if random.percent(30) {
        text += &format!(" relax below {}", random.below(8));
    }
    reader(random, &mut text, 20);
    if random.percent(40) {
        text += &format!(" limit {}", 1 + random.below(12));
        if random.percent(30) {
            text += &format!(" skip {}", random.below(4));
        }
    }
    text
}
