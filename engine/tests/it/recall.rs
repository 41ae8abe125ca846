//! The promises of a recall, on small random databases: the possible rows, their order, their scores.
//!
//! The score of traces is held against the formula of the memory model computed naively, BM25 included; for whole paths
//! the promises are checked row by row.

use crate::observed::{answers, everything};
use holotype::answer::{Answer, Output, Role, Row};
use holotype::query::{ParamValue, Params};
use holotype::time::FixedClock;
use holotype::{
    Durability, Holotype, ItemId, Kind, Layer, Mark, NewRecall, NewTrace, Options, Pointer, Snapshot, Source, Space,
    Status, Support, Verdict,
};
use holotype_storage::vfs::SimVfs;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const HOUR: i64 = 3_600_000_000;
const CLOCK: i64 = 1_770_000_000_000_000;
/// The time of the earliest traces: none is later than the clock of its commit.
const FIRST: i64 = CLOCK - 1_000 * HOUR;
/// Words that are their own stems and say something.
const WORDS: [&str; 7] = ["alpha", "beta", "gamma", "delta", "omega", "kappa", "sigma"];

#[derive(Clone, Debug)]
struct Trace {
    episode: u8,
    step: u64,
    hours: Option<i64>,
    version: Option<u8>,
    status: Status,
    source: Option<Source>,
    tool: bool,
    words: Vec<usize>,
    vector: Option<(i8, i8)>,
    active: bool,
}

#[derive(Clone, Debug)]
struct Fact {
    from: Vec<usize>,
    words: Vec<usize>,
    vector: Option<(i8, i8)>,
    theme: bool,
    active: bool,
}

fn words() -> impl Strategy<Value = Vec<usize>> {
    vec(0..WORDS.len(), 1..7)
}

fn vector() -> impl Strategy<Value = Option<(i8, i8)>> {
    option::weighted(0.7, (-4..5_i8, 1..5_i8))
}

fn trace() -> impl Strategy<Value = Trace> {
    let when = (0..2_u8, option::weighted(0.9, 0..400_i64), option::weighted(0.7, 0..2_u8));
    let status = prop_oneof![3 => Just(Status::Success), 1 => Just(Status::Unknown), 2 => Just(Status::Failed)];
    let what = (status, option::of(prop::sample::select(Source::ALL)), any::<bool>());
    (when, what, words(), vector(), prop::bool::weighted(0.85)).prop_map(
        |((episode, hours, version), (status, source, tool), words, vector, active)| Trace {
            episode,
            step: 0,
            hours,
            version,
            status,
            source,
            tool,
            words,
            vector,
            active,
        },
    )
}

fn fact() -> impl Strategy<Value = Fact> {
    (vec(any::<prop::sample::Index>(), 1..4), words(), vector(), any::<bool>(), prop::bool::weighted(0.85)).prop_map(
        |(from, words, vector, theme, active)| Fact {
            from: from.into_iter().map(|index| index.index(1 << 16)).collect(),
            words,
            vector,
            theme,
            active,
        },
    )
}

fn text(words: &[usize]) -> String {
    words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
}

fn floats((x, y): (i8, i8)) -> Vec<f32> {
    vec![f32::from(x), f32::from(y)]
}

/// A database of the traces and facts; half of it stands in derived files, half behind the last checkpoint.
fn write(traces: &mut [Trace], facts: &[Fact]) -> Holotype {
    let space = Space::new("test", 2);
    let clock = Arc::new(FixedClock(CLOCK));
    let options = Options { page_size: 4096, profile: Some("agent".to_owned()), clock, ..Options::with_space(space) };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    let mut steps = [0; 2];
    let half = traces.len() / 2;
    let mut transaction = database.begin().unwrap();
    for (number, of) in traces.iter_mut().enumerate() {
        if number == half {
            transaction.commit(Durability::None).unwrap();
            database.checkpoint().unwrap();
            transaction = database.begin().unwrap();
        }
        steps[usize::from(of.episode)] += 30;
        of.step = steps[usize::from(of.episode)];
        let mut new = NewTrace::turn(format!("e{}", of.episode), text(&of.words))
            .key(format!("t{number}"))
            .step(of.step)
            .status(of.status)
            .time(FIRST + of.hours.unwrap_or(0) * HOUR);
        if of.hours.is_none() {
            of.hours = Some(0);
        }
        new = of.version.map_or(new.clone(), |version| new.version(format!("v{version}")));
        new = of.source.map_or(new.clone(), |source| new.source(source));
        new = if of.tool { new.tool("search") } else { new };
        new = of.vector.map_or(new.clone(), |vector| new.vector(floats(vector)));
        let id = transaction.record(new).unwrap();
        if !of.active {
            transaction.mark(id, Mark::Inactive, None).unwrap();
        }
    }
    for (number, of) in facts.iter().enumerate() {
        let mut new = NewRecall::fact(text(&of.words)).key(format!("r{number}"));
        for from in &of.from {
            new = new.from(Pointer::to_key(format!("t{}", from % traces.len())));
        }
        new = of.vector.map_or(new.clone(), |vector| new.vector(floats(vector)));
        let id = transaction.remember(new).unwrap();
        if of.theme {
            transaction.remember(NewRecall::theme(text(&of.words[..1])).child(format!("r{number}"))).unwrap();
        }
        if !of.active {
            transaction.mark(id, Mark::Inactive, None).unwrap();
        }
    }
    transaction.commit(Durability::None).unwrap();
    database
}

fn answer(snapshot: &Snapshot, script: &str, params: &Params) -> Answer {
    match snapshot.query(script, params).unwrap_or_else(|error| panic!("{script}: {error}")).pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("{script}: {other:?}"),
    }
}

fn vector_param(vector: (i8, i8)) -> Params {
    Params::from([("v".to_owned(), ParamValue::Vector(floats(vector)))])
}

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() < 2e-4
}

// ---- the formula ----

/// BM25 of every trace for a query, over all traces: k1 1.2, b 0.75, the idf that is never negative.
fn bm25(traces: &[Trace], query: &BTreeSet<usize>) -> Vec<f32> {
    let documents: Vec<Vec<&str>> = traces
        .iter()
        .map(|trace| trace.words.iter().map(|word| WORDS[*word]).chain(trace.tool.then_some("search")).collect())
        .collect();
    let count = documents.len() as f64;
    let average = documents.iter().map(Vec::len).sum::<usize>() as f64 / count;
    let idf = |word: &str| {
        let df = documents.iter().filter(|document| document.contains(&word)).count() as f64;
        (1.0 + (count - df + 0.5) / (df + 0.5)).ln()
    };
    let score = |document: &Vec<&str>| {
        let of_word = |word: &usize| {
            let f = document.iter().filter(|other| **other == WORDS[*word]).count() as f64;
            idf(WORDS[*word]) * 2.2 * f / (f + 1.2 * (0.25 + 0.75 * document.len() as f64 / average))
        };
        query.iter().map(of_word).sum::<f64>() as f32
    };
    documents.iter().map(score).collect()
}

fn cosine(a: (i8, i8), b: (i8, i8)) -> f32 {
    let (a, b) = ((f64::from(a.0), f64::from(a.1)), (f64::from(b.0), f64::from(b.1)));
    ((a.0 * b.0 + a.1 * b.1) / ((a.0 * a.0 + a.1 * a.1) * (b.0 * b.0 + b.1 * b.1)).sqrt()) as f32
}

/// A recall with its reader.
#[derive(Clone, Debug)]
struct Asked {
    words: BTreeSet<usize>,
    near: (i8, i8),
    episode: Option<u8>,
    step: Option<u64>,
    hours: Option<i64>,
    version: Option<u8>,
    include_failed: bool,
    include_inactive: bool,
    stale: Option<(u64, i64)>,
    tool_only: bool,
    relax: usize,
    archive: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    let reader = (
        option::weighted(0.6, 0..2_u8),
        option::weighted(0.3, (0..12_u64).prop_map(|step| step * 30)),
        option::weighted(0.3, 0..400_i64),
        option::weighted(0.3, 0..3_u8),
    );
    let stale = option::weighted(0.3, (0..300_u64, 1..300_i64));
    let words = prop::collection::btree_set(0..WORDS.len(), 1..4);
    (words, (-4..5_i8, 1..5_i8), reader, vec(prop::bool::weighted(0.3), 4), stale, 1..6_usize).prop_map(
        |(words, near, (episode, step, hours, version), flags, stale, relax)| Asked {
            words,
            near,
            episode,
            step: step.filter(|_| episode.is_some()),
            hours,
            version,
            include_failed: flags[0],
            include_inactive: flags[1],
            stale,
            tool_only: flags[2],
            relax,
            archive: flags[3],
        },
    )
}

impl Asked {
    fn clauses(&self) -> String {
        let mut clauses = String::new();
        if let Some(episode) = self.episode {
            clauses += &format!(" in episode 'e{episode}'");
        }
        if self.tool_only {
            clauses += " where has tool and not text contains 'zeta'";
        }
        let mut include = Vec::new();
        include.extend(self.include_failed.then_some("failed"));
        include.extend(self.include_inactive.then_some("inactive"));
        if !include.is_empty() {
            clauses += &format!(" include {}", include.join(", "));
        }
        if let Some((steps, hours)) = self.stale {
            clauses += &format!(" exclude stale({steps} steps, {hours}h)");
        }
        clauses += if self.archive { " score profile archive, context 0" } else { "" };
        clauses += &format!(" relax below {}", self.relax);
        let mut moments = Vec::new();
        moments.extend(self.step.map(|step| format!("step {step}")));
        moments.extend(self.hours.map(|hours| format!("time {}", FIRST + hours * HOUR)));
        moments.extend(self.version.map(|version| format!("version 'v{version}'")));
        if !moments.is_empty() {
            clauses += &format!(" at {}", moments.join(", "));
        }
        clauses
    }

    fn words(&self) -> String {
        self.words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
    }

    /// The rows of `through traces N by near, words`, naively: item, parts of S, tests relaxed.
    fn naive(&self, traces: &[Trace]) -> Vec<(usize, [f32; 5], Vec<&'static str>)> {
        let of_episode: Vec<&Trace> = traces.iter().filter(|trace| Some(trace.episode) == self.episode).collect();
        let all_times = || traces.iter().filter_map(|trace| trace.hours).max();
        let (step, time, version) = match self.episode {
            Some(_) => {
                let newest = of_episode.iter().max_by_key(|trace| trace.step);
                let mut stated: Vec<_> =
                    of_episode.iter().filter_map(|trace| Some((trace.step, trace.version?))).collect();
                stated.sort_by_key(|(step, _)| *step);
                let last = &stated[stated.len().saturating_sub(10)..];
                let count = |version: u8| last.iter().filter(|(_, other)| *other == version).count();
                let prevailing = last.iter().map(|(_, version)| *version).max_by_key(|version| count(*version));
                (newest.map(|trace| trace.step), of_episode.iter().filter_map(|trace| trace.hours).max(), prevailing)
            }
            None => (None, all_times(), None),
        };
        let until = self.hours.filter(|stated| Some(*stated) != time);
        let (step, time, version) = (self.step.or(step), self.hours.or(time), self.version.or(version));
        let bm25 = bm25(traces, &self.words);
        let mut rows: Vec<(usize, Vec<&'static str>)> = Vec::new();
        for (id, trace) in traces.iter().enumerate() {
            let in_scope = self.episode.is_none_or(|episode| episode == trace.episode);
            let by_step = self.episode.is_some() && step.is_some_and(|step| trace.step > step);
            let ahead = by_step || until.zip(trace.hours).is_some_and(|(until, hours)| hours > until);
            let active = trace.active || self.include_inactive;
            let passes = !self.tool_only || trace.tool;
            let candidate = trace.vector.is_some() || bm25[id] > 0.0;
            if !(in_scope && !ahead && active && passes && candidate) {
                continue;
            }
            let mut failed = Vec::new();
            if trace.status == Status::Failed && !self.include_failed {
                failed.push("failed");
            }
            if version.is_some() && trace.version.is_some() && trace.version != version {
                failed.push("version");
            }
            if let Some((steps, hours)) = self.stale {
                let by_step =
                    self.episode.is_some() && step.is_some_and(|step| step.saturating_sub(trace.step) > steps);
                let by_age = time.is_some_and(|time| time - trace.hours.unwrap() > hours);
                if by_step || by_age {
                    failed.push("stale");
                }
            }
            failed.sort_unstable();
            rows.push((id, failed));
        }
        if rows.iter().filter(|(_, failed)| failed.is_empty()).count() >= self.relax {
            rows.retain(|(_, failed)| failed.is_empty());
        }
        let best = rows.iter().map(|(id, _)| bm25[*id]).fold(0.0, f32::max);
        let parts = |id: usize| {
            let trace = &traces[id];
            let age = time.map_or(0, |time| (time - trace.hours.unwrap()).max(0));
            [
                trace.vector.map_or(0.0, |vector| cosine(vector, self.near)),
                if best > 0.0 { bm25[id] / best } else { 0.0 },
                if self.archive || time.is_none() { 0.0 } else { (-(age as f32) / 24.0).exp2() },
                10.0 * match trace.status {
                    Status::Success => 0.0,
                    Status::Unknown => -0.1,
                    Status::Failed => -1.0,
                },
                trace.source.map_or(0.0, Source::weight),
            ]
        };
        let scored = rows.into_iter().map(|(id, failed)| (id, parts(id), failed));
        scored.collect()
    }
}

fn config(cases: u32) -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    ProptestConfig {
        cases: number("HOLOTYPE_CASES").map_or(cases, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(number("HOLOTYPE_SEED").unwrap_or(42)),
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    }
}

fn sorted(names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

/// The total order of rows: what passed every test first, then S, then newer, then smaller id.
fn assert_in_order(rows: &[Row], context: &str) {
    for pair in rows.windows(2) {
        let key = |row: &Row| (row.relaxed.is_empty(), row.score, row.time, std::cmp::Reverse(row.item));
        assert!(key(&pair[0]) > key(&pair[1]), "{context}: {:?} before {:?}", pair[0], pair[1]);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn the_score_of_traces_is_that_of_the_formula(
        mut traces in vec(trace(), 1..14),
        asked in vec(asked(), 1..6),
    ) {
        let database = write(&mut traces, &[]);
        let snapshot = database.snapshot();
        for asked in asked {
            if asked.episode.is_some_and(|episode| traces.iter().all(|trace| trace.episode != episode)) {
                continue;
            }
            let script = format!("recall '{}' near $v through traces 99 by near, words{}", asked.words(), asked.clauses());
            let params = vector_param(asked.near);
            let found = answer(&snapshot, &script, &params);
            let wanted = asked.naive(&traces);
            let wanted: BTreeMap<u32, _> = wanted.into_iter().map(|(id, parts, failed)| (id as u32, (parts, failed))).collect();
            let ids: BTreeSet<u32> = found.rows.iter().map(|row| row.item.0).collect();
            assert_eq!(ids, wanted.keys().copied().collect(), "{script}");
            for row in &found.rows {
                let (parts, failed) = &wanted[&row.item.0];
                let p = row.parts;
                let of_row = [p.similarity, p.words, p.recency, p.status, p.source];
                assert!(of_row.iter().zip(parts).all(|(a, b)| close(*a, *b)), "{script}: {row:?}, expected {parts:?}");
                assert_eq!(&sorted(&row.relaxed), failed, "{script}: {row:?}");
                assert!(close(p.relaxed, -10.0 * failed.len() as f32), "{script}: {row:?}");
                assert!(close(row.score, parts.iter().sum::<f32>() + p.relaxed + p.utility), "{script}: {row:?}");
            }
            assert_in_order(&found.rows, &script);
            // Limit and skip cut the same order.
            let keys: Vec<ItemId> = found.rows.iter().map(|row| row.item).collect();
            for (limit, skip) in [(1, 0), (2, 1), (3, 4), (50, 2)] {
                let cut = answer(&snapshot, &format!("{script} limit {limit} skip {skip}"), &params);
                let cut: Vec<ItemId> = cut.rows.iter().map(|row| row.item).collect();
                assert_eq!(cut, keys.iter().copied().skip(skip).take(limit).collect::<Vec<_>>(), "{script}");
            }
            // So does the number of a stage.
            for count in [1, 3] {
                let script = script.replace("traces 99", &format!("traces {count}"));
                let cut: Vec<ItemId> = answer(&snapshot, &script, &params).rows.iter().map(|row| row.item).collect();
                assert_eq!(cut, keys.iter().copied().take(count).collect::<Vec<_>>(), "{script}");
            }
        }
    }
}

// ---- whole paths ----

#[derive(Clone, Debug)]
struct Clauses {
    asked: Asked,
    path: usize,
    budget: Option<u64>,
    expand: Option<(u64, u64)>,
    limit: Option<u64>,
    exclude: usize,
    abstain: bool,
}

const PATHS: [&str; 6] = [
    "",
    " through recalls 3",
    " through themes 2 -> recalls 2 -> traces 3",
    " through facts 4 -> traces 4 by linked",
    " through themes 3",
    " through traces 3 only (tokens > 4)",
];
const EXCLUDED: [&str; 4] = ["", "weakened", "unsupported", "stale"];

fn clauses() -> impl Strategy<Value = Clauses> {
    let numbers =
        (option::of(0..40_u64), option::weighted(0.4, (0..4_u64, 0..40_u64)), option::weighted(0.3, 0..9_u64));
    (asked(), 0..PATHS.len(), numbers, 0..EXCLUDED.len(), prop::bool::weighted(0.1)).prop_map(
        |(asked, path, (budget, expand, limit), exclude, abstain)| Clauses {
            asked,
            path,
            budget,
            expand,
            limit,
            exclude,
            abstain,
        },
    )
}

impl Clauses {
    fn script(&self) -> String {
        let mut asked = self.asked.clone();
        if !EXCLUDED[self.exclude].is_empty() {
            asked.stale = None;
        }
        let mut script = format!("recall '{}' near $v{}{}", asked.words(), PATHS[self.path], asked.clauses());
        if !EXCLUDED[self.exclude].is_empty() {
            script += &format!(" exclude {}", EXCLUDED[self.exclude]);
        }
        script += &self.budget.map_or(String::new(), |budget| format!(" budget {budget} tokens"));
        let expand = |(depth, tokens): (u64, u64)| format!(" expand depth {depth} within {tokens} tokens");
        script += &self.expand.map_or(String::new(), expand);
        script += &self.limit.map_or(String::new(), |limit| format!(" limit {limit}"));
        script += if self.abstain { " abstain below 0.9" } else { "" };
        script
    }
}

/// Checks one row against what the snapshot says of its item.
fn check_row(snapshot: &Snapshot, asked: &Clauses, found: &Answer, row: &Row, context: &str) {
    let item = snapshot.item(row.item).unwrap();
    let a = &item.attributes;
    let of = &asked.asked;
    assert_eq!((row.text.as_str(), &row.key, row.layer), (item.content.text(), &item.key, a.layer()), "{context}");
    assert_eq!((row.status, row.support, row.trust, row.tokens), (a.status, a.support, a.trust, a.tokens), "{context}");
    assert!(close(row.score, row.parts.sum()), "{context}");
    assert!(a.active || of.include_inactive, "{context}: inactive {row:?}");
    assert!(!a.redacted, "{context}");
    let excused = |flaw: &str| row.relaxed.contains(&flaw);
    assert!(a.status != Some(Status::Failed) || of.include_failed || excused("failed"), "{context}: failed {row:?}");
    if let (Some(mine), Some(theirs)) = (&found.at.version, &row.version) {
        assert!(mine == theirs || excused("version") || excused("stale"), "{context}: foreign {row:?}");
    }
    match EXCLUDED[asked.exclude] {
        "weakened" => assert!(a.support != Support::Weakened || excused("weakened"), "{context}: {row:?}"),
        "unsupported" => assert!(a.support != Support::Unsupported || excused("unsupported"), "{context}: {row:?}"),
        "stale" => assert!(!row.stale || excused("stale"), "{context}: {row:?}"),
        _ => {}
    }
    if found.at.episode.is_some() && row.episode == found.at.episode && row.layer != Layer::Theme {
        let later = |theirs: Option<u64>, mine: Option<u64>| matches!((theirs, mine), (Some(theirs), Some(mine)) if theirs > mine);
        assert!(!later(row.step, found.at.step), "{context}: ahead {row:?}");
        assert!(row.time <= found.at.time, "{context}: ahead {row:?}");
    }
    for citation in &row.citations {
        assert_eq!(citation.verdict, Verdict::Ok, "{context}");
    }
    if row.role == Role::Hit {
        assert!(!of.tool_only || row.tool.is_some(), "{context}: `where` was relaxed: {row:?}");
        let one_stage = PATHS[asked.path].starts_with(" through traces");
        assert!(!one_stage || (row.tokens > 4 && row.layer == Layer::Trace), "{context}: {row:?}");
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn no_row_breaks_what_was_asked(
        mut traces in vec(trace(), 1..12),
        facts in vec(fact(), 0..8),
        all in vec(clauses(), 1..8),
    ) {
        let database = write(&mut traces, &facts);
        let snapshot = database.snapshot();
        for asked in all {
            if asked.asked.episode.is_some_and(|episode| traces.iter().all(|trace| trace.episode != episode)) {
                continue;
            }
            let (script, params) = (asked.script(), vector_param(asked.asked.near));
            let found = answer(&snapshot, &script, &params);
            assert_eq!(answers(&snapshot, &script, &params).unwrap(), answers(&snapshot, &script, &params).unwrap());
            let (hits, evidence): (Vec<&Row>, Vec<&Row>) = found.rows.iter().partition(|row| row.role == Role::Hit);
            for row in &found.rows {
                check_row(&snapshot, &asked, &found, row, &script);
            }
            let ids: BTreeSet<ItemId> = found.rows.iter().map(|row| row.item).collect();
            assert_eq!(ids.len(), found.rows.len(), "{script}: an item twice");
            assert_in_order(&hits.iter().map(|row| (*row).clone()).collect::<Vec<_>>(), &script);
            let tokens = |rows: &[&Row]| rows.iter().map(|row| u64::from(row.tokens)).sum::<u64>();
            if let Some(budget) = asked.budget {
                assert!(tokens(&hits) <= budget, "{script}: {} tokens", tokens(&hits));
            }
            match asked.expand {
                Some((depth, within)) => {
                    assert!(evidence.is_empty() || depth > 0 && tokens(&hits) + tokens(&evidence) <= within, "{script}");
                }
                None => assert!(evidence.is_empty(), "{script}"),
            }
            if let Some(limit) = asked.limit {
                assert!(hits.len() as u64 <= limit, "{script}");
            }
            assert_stage_counts(&asked, &hits, &script);
            assert!(found.answerable || !asked.abstain || found.rows.is_empty(), "{script}");
            assert!(found.answerable || asked.abstain || found.rows.is_empty(), "{script}");
            if let Some(first) = hits.first() {
                assert!(close(found.strength.top, first.score), "{script}");
            }
        }
    }
}

/// Without a budget a stage gives at most the rows it names.
fn assert_stage_counts(asked: &Clauses, hits: &[&Row], script: &str) {
    let of = |layer| hits.iter().filter(|row| row.layer == layer).count();
    if asked.budget.is_some() {
        return;
    }
    let at_most = match asked.path {
        0 => [5_usize.max(asked.limit.unwrap_or(0) as usize); 2],
        1 => [3, 0],
        2 => [2, 3],
        3 => [4, 4],
        5 => [0, 3],
        _ => return,
    };
    assert!(
        of(Layer::Recall) <= at_most[0] && of(Layer::Trace) <= at_most[1],
        "{script}: {} recalls, {} traces",
        of(Layer::Recall),
        of(Layer::Trace)
    );
}

// ---- single stories ----

fn story() -> Holotype {
    let options =
        Options { clock: Arc::new(FixedClock(CLOCK)), profile: Some("agent".to_owned()), ..Options::default() };
    let database = Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap();
    let script = "record call 'alpha fare 450' in episode 'e' with key = 't1', tool = 'search', status = success;
        record call 'alpha fare timeout' in episode 'e' with key = 't2', tool = 'pay', status = failed;
        remember fact 'alpha costs 450' from 't1' quoting 'fare 450' with key = 'r1'";
    database.query(script, &Params::new()).unwrap();
    database
}

#[test]
fn statements_of_a_script_see_what_came_before_them_and_nobody_else_does() {
    let database = story();
    let before = database.snapshot();
    let script = "record turn 'zeta zeta' in episode 'e' with key = 't9'; recall 'zeta' in episode 'e'; count traces";
    let outputs = database.query(script, &Params::new()).unwrap();
    let Output::Answer(found) = &outputs[1] else { panic!("{outputs:?}") };
    assert_eq!(found.rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["t9"]);
    assert_eq!(answer(&before, "recall 'zeta'", &Params::new()).rows, []);
    let failing = "record turn 'eta' in episode 'e' with key = 't10'; recall 'eta'; mark 'nobody' failed";
    let head = database.head();
    database.query(failing, &Params::new()).unwrap_err();
    assert_eq!(database.head(), head);
    assert_eq!(database.snapshot().get("t10").unwrap().map(|item| item.id), None);
}

#[test]
fn explaining_a_write_writes_nothing() {
    let database = story();
    let (head, before) = (database.head(), everything(&database.snapshot()).unwrap());
    for write in [
        "record turn 'x' in episode 'new'",
        "remember fact 'x' from 't1'",
        "mark 't1' failed because 'no'",
        "link 'r1' sibling 't2'",
        "close episode 'e'",
        "set profile = archive",
    ] {
        for explain in ["explain", "explain analyze"] {
            database
                .query(&format!("{explain} {write}"), &Params::new())
                .unwrap_or_else(|error| panic!("{write}: {error}"));
            assert_eq!(
                (database.head(), everything(&database.snapshot()).unwrap()),
                (head, before.clone()),
                "{explain} {write}"
            );
        }
    }
}

#[test]
fn what_is_excluded_comes_back_last_and_marked_or_not_at_all() {
    let database = story();
    let keys = |script: &str| {
        let found = answer(&database.snapshot(), script, &Params::new());
        found.rows.iter().map(|row| format!("{}{}", row.key, row.relaxed.concat())).collect::<Vec<_>>()
    };
    assert_eq!(keys("recall 'alpha' through traces 5 relax below 1"), ["t1"]);
    assert_eq!(keys("recall 'alpha' through traces 5 relax below 2"), ["t1", "t2failed"]);
    assert_eq!(keys("recall 'timeout' through traces 5 relax below 1"), ["t2failed"]);
    assert_eq!(keys("recall 'timeout' through traces 5"), [""; 0]);
    assert_eq!(keys("recall 'timeout' through traces 5 include failed"), ["t2"]);
    assert_eq!(keys("recall 'alpha' through traces 5 where tool = 'pay' relax below 9"), ["t2failed"]);
}

/// A theme is a row only where the path ends with themes.
#[test]
fn themes_route_and_are_rows_only_at_the_end_of_a_path() {
    let database = story();
    database.query("remember theme 'alpha' ungrounded with key = 'th'; link 'r1' parent 'th'", &Params::new()).unwrap();
    let snapshot = database.snapshot();
    let rows = |script: &str| answer(&snapshot, script, &Params::new()).rows;
    assert!(rows("recall 'alpha'").iter().all(|row| row.layer != Layer::Theme));
    let routed = rows("recall 'alpha' through themes 1 -> facts 1 by linked");
    assert_eq!(routed.iter().map(|row| (row.key.as_str(), row.kind)).collect::<Vec<_>>(), [("r1", Kind::Fact)]);
    assert_eq!(rows("recall 'alpha' through themes 1")[0].key, "th");
}
