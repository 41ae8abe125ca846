//! Statements at random: predicates of every kind, listings, counts, recalls.

use crate::oracle::naive::Exported;
use crate::oracle::world::{CLOCK, HOUR, TOOLS, WORDS};
use crate::random::Random;

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
    let statement = match random.below(20) {
        0..=5 => find(random, world),
        6..=8 => count(random, world),
        9..=10 => walk(random, world),
        11 if world.has_claims() => claims(random),
        _ if world.has_claims() => find(random, world),
        _ => recall(random, world),
    };
    (statement, random.vector())
}

/// The statement as of a commit.
pub(crate) fn as_of(statement: &str, commit: u64) -> String {
    match statement.split_once(" return ") {
        Some((before, columns)) => format!("{before} as of commit {commit} return {columns}"),
        None => format!("{statement} as of commit {commit}"),
    }
}

fn walk(random: &mut Random, world: &Exported) -> String {
    let item = |random: &mut Random| random.below(world.items.len() as u64);
    let mut text = format!("{} of {}", random.one(&["sources", "dependents"]), item(random));
    if random.percent(30) {
        text += &format!(", {}", item(random));
    }
    if random.percent(50) {
        let edges = ["cites", "derived-from", "parent", "mentions", "solves", "supersedes", "cites, parent"];
        text += &format!(" by {}", random.one(&edges));
    }
    if random.percent(50) {
        text += &format!(" depth {}", random.below(5));
    }
    if random.percent(30) {
        scope(random, world, &mut text, 100);
    }
    if random.percent(40) {
        text += &format!(" where {}", predicate(random, world, 1));
    }
    if random.percent(30) {
        text += &format!(" limit {}", random.below(6));
    }
    text + " return key, depth, edge, status"
}

fn claims(random: &mut Random) -> String {
    let filters =
        ["", " where name = 'n0'", " where value = 1", " where has won", " where not has won and scope = episode"];
    format!("find claims{} return item, name, value, scope, won", random.one(&filters))
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
        moments.push(format!("time {}", CLOCK - random.below(300) as i64 * HOUR));
    }
    if random.percent(share) {
        let parts = *random.one(&["", "", " tools=a", " tools=b site=x", " site=y"]);
        moments.push(format!("version 'v{}{parts}'", random.below(3)));
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
    match random.below(23) {
        0 => format!("step {} {}", random.one(OPS), random.below(250)),
        1 => format!("step {}between {} and {}", random.one(&["", "not "]), random.below(150), 50 + random.below(200)),
        2 => format!("tokens {} {}", random.one(OPS), random.below(12)),
        3 => format!("commit {} {}", random.one(OPS), random.below(6)),
        4 => {
            let time = holotype::time::format(CLOCK - random.below(300) as i64 * HOUR);
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
        21 => format!("claims '{}'{}", random.one(&["n0", "n1", "n*"]), random.one(&["", " = 1", " != 2", " > 0"])),
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
    if random.percent(80) {
        text += &format!(" through {}", path(random, world));
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
    if random.percent(20) {
        text += &format!(" budget {} tokens", random.below(60));
    }
    if random.percent(20) {
        let to = ["", " to traces", " to facts", " to turns", " to pages", " to episodes", " to items"];
        text += &format!(" expand{}", random.one(&to));
        if random.percent(40) {
            text += &format!(" depth {}", random.below(4));
        }
        if random.percent(40) {
            text += &format!(" within {} tokens", random.below(80));
        }
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

/// A way through stages of all sorts.
fn path(random: &mut Random, world: &Exported) -> String {
    match random.below(11) {
        0 => stage(random, world, "traces", false),
        1 => {
            let noun = *random.one(&["turns", "facts", "procedures", "themes", "concepts", "recalls"]);
            stage(random, world, noun, false)
        }
        2 => chain(random, world, &["recalls", "traces"]),
        3 => chain(random, world, &["themes", "facts"]),
        4 => chain(random, world, &["concepts", "recalls", "calls"]),
        5 => {
            let noun = *random.one(&["items", "pages", "episodes"]);
            stage(random, world, noun, false)
        }
        6 => {
            let (first, second) =
                (*random.one(&["items", "recalls", "facts"]), *random.one(&["items", "pages", "episodes"]));
            chain(random, world, &[first, second])
        }
        7 => {
            let (first, second) =
                (*random.one(&["pages", "episodes"]), *random.one(&["turns", "recalls", "items", "pages"]));
            chain(random, world, &[first, second])
        }
        8 => {
            // Of words alone, so that what is carried on makes a difference.
            let by_words = random.percent(60);
            let first = if by_words { "recalls 2 by words".to_owned() } else { stage(random, world, "recalls", false) };
            let group = if by_words {
                format!("{} by words", random.one(&["facts", "items 9", "turns"]))
            } else {
                // From themes to rows a group is routed, which is another walk.
                chain_later(random, world, &["facts", "turns"])
            };
            let hops = 1 + random.below(3);
            let carry = if random.percent(50) { format!(" carry {}", random.below(4)) } else { String::new() };
            format!("{first} -> ({group}) up to {hops} hops{carry}")
        }
        9 => {
            let noun = *random.one(&["recalls", "themes", "turns", "items"]);
            format!("{} -> {}", stage(random, world, noun, false), lift(random))
        }
        _ => {
            let first = stage(random, world, "recalls", false);
            let noun = *random.one(&["turns", "traces", "items"]);
            format!("{first} -> {} -> {}", lift(random), stage(random, world, noun, true))
        }
    }
}

fn chain(random: &mut Random, world: &Exported, nouns: &[&str]) -> String {
    let stages: Vec<String> = nouns.iter().enumerate().map(|(nth, noun)| stage(random, world, noun, nth > 0)).collect();
    stages.join(" -> ")
}

fn chain_later(random: &mut Random, world: &Exported, nouns: &[&str]) -> String {
    nouns.iter().map(|noun| stage(random, world, noun, true)).collect::<Vec<_>>().join(" -> ")
}

fn lift(random: &mut Random) -> String {
    let mut text = format!("lift to {}", random.one(&["traces", "turns", "pages", "episodes"]));
    if random.percent(60) {
        text += &format!(" {}", 1 + random.below(4));
    }
    if random.percent(40) {
        text += &format!(" votes {}", 1 + random.below(3));
    }
    text
}

fn stage(random: &mut Random, world: &Exported, noun: &str, later: bool) -> String {
    let channels = match (random.below(4), later) {
        (0, _) => " by near, words",
        (1, true) => " by linked",
        (2, _) => " by words",
        _ => "",
    };
    let count = if random.percent(60) { format!(" {}", 1 + random.below(20)) } else { String::new() };
    let only = match noun {
        _ if random.percent(80) => String::new(),
        "pages" => format!(" only (tokens {} {})", random.one(OPS), random.below(40)),
        "episodes" => format!(" only ({})", random.one(&["open = true", "open = false", "episode != 'e1'"])),
        _ => format!(" only ({})", predicate(random, world, 1)),
    };
    format!("{noun}{count}{channels}{only}")
}
