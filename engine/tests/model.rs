//! The engine against a plain model in memory that recomputes everything from scratch: random operations, in transactions
//! that are committed or dropped, with checkpoints, reopening and rebuilding in between.
//!
//! Held to the model: keys, attributes (stated, inherited, support, trust), edges from both ends, pointers, pages, the
//! default reader. Snapshots taken on the way must say at the end what they said at first, and a database that lost every
//! derived file must say what it said before.

mod observed;

use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::query::{ParamValue, Params};
use holotype::time::FixedClock;
use holotype::{
    Durability, Edge, EpisodeChange, Error, Holotype, ItemId, Kind, Layer, Mark, NewRecall, NewTrace, Options, Pointer,
    Snapshot, Source, Space, Status, Support, Transaction, Verdict,
};
use holotype_storage::vfs::{SimVfs, Vfs};
use observed::{answers, everything, faults};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DATABASE: &str = "/memory.holo";
const CLOCK: i64 = 1_770_000_000_000_000;

// ---- operations ----

#[derive(Clone, Debug)]
enum Op {
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

fn op() -> impl Strategy<Value = Op> {
    let recalls = [Kind::Summary, Kind::Fact, Kind::Fact, Kind::Procedure, Kind::Refined];
    let themes = [Kind::Theme, Kind::Theme, Kind::Concept, Kind::Intent];
    let time = || (0..6_i64).prop_map(|hours| CLOCK + hours * 3_600_000_000);
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

// ---- the model ----

#[derive(Clone, Debug)]
struct MItem {
    kind: Kind,
    key: Option<String>,
    text: String,
    episode: Option<usize>,
    step: Option<u64>,
    time: Option<i64>,
    version: Option<String>,
    status: Option<Status>,
    source: Option<Source>,
    page: Option<usize>,
    active: bool,
    ungrounded: bool,
    utility: f32,
    pointers: Vec<MPointer>,
    vector: bool,
    tokens: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum MPointer {
    Span(usize, u64, u64),
    Page(usize),
}

#[derive(Clone, Debug, Default)]
struct MEpisode {
    id: String,
    version: Option<String>,
    open: bool,
    pages: usize,
    open_page: Vec<usize>,
}

#[derive(Clone, Debug)]
struct MPage {
    key: String,
    episode: usize,
    traces: Vec<usize>,
    summarised: bool,
}

#[derive(Clone, Debug, Default)]
struct Model {
    items: Vec<MItem>,
    keys: BTreeMap<String, usize>,
    edges: BTreeSet<(usize, u8, usize)>,
    episodes: Vec<MEpisode>,
    pages: Vec<MPage>,
    traces: BTreeSet<(String, String, u64)>,
    claims: Vec<MClaim>,
    page_tokens: u64,
}

#[derive(Clone, Debug)]
struct MClaim {
    item: usize,
    name: String,
    value: String,
    global: bool,
}

/// What an item has of its sources.
#[derive(Clone, Debug, PartialEq)]
struct Derived {
    status: Option<Status>,
    source: Option<Source>,
    step: Option<u64>,
    time: Option<i64>,
    version: Option<String>,
    first_episode: Option<usize>,
    episodes: BTreeSet<usize>,
    support: Support,
    trust: f32,
}

impl Model {
    fn sources(&self, id: usize) -> BTreeSet<usize> {
        let mut sources = BTreeSet::new();
        for (from, edge, to) in &self.edges {
            let lineage = *edge == Edge::Cites.to_byte() || *edge == Edge::DerivedFrom.to_byte();
            if lineage && *from == id {
                sources.insert(*to);
            }
            if *edge == Edge::Parent.to_byte() && *to == id {
                sources.insert(*from);
            }
        }
        sources
    }

    /// The traces an item rests on, however far down.
    fn grounds(&self, id: usize) -> BTreeSet<usize> {
        if self.items[id].kind.layer() == Layer::Trace {
            return BTreeSet::from([id]);
        }
        self.sources(id).into_iter().flat_map(|source| self.grounds(source)).collect()
    }

    /// Everything derived, from scratch: sources come before what rests on them, and themes last.
    fn derive(&self) -> Vec<Derived> {
        let mut derived: Vec<Option<Derived>> = vec![None; self.items.len()];
        let theme = |id: &usize| self.items[*id].kind.layer() == Layer::Theme;
        let (themes, others): (Vec<usize>, Vec<usize>) = (0..self.items.len()).partition(theme);
        for id in others.into_iter().chain(themes) {
            let item = &self.items[id];
            let mut of = Derived {
                status: item.status,
                source: item.source,
                step: item.step,
                time: item.time,
                version: item.version.clone(),
                first_episode: item.episode,
                episodes: item.episode.into_iter().collect(),
                support: Support::Supported,
                trust: self.trust(id),
            };
            if item.kind.layer() != Layer::Trace {
                self.inherit(id, &mut of, &derived);
            }
            derived[id] = Some(of);
        }
        derived.into_iter().flatten().collect()
    }

    fn inherit(&self, id: usize, of: &mut Derived, derived: &[Option<Derived>]) {
        let known = |id: &usize| (*id, derived[*id].as_ref().unwrap());
        let sources = self.sources(id);
        let sources: Vec<(usize, &Derived)> = sources.iter().map(known).collect();
        let good = |(id, source): &(usize, &Derived)| {
            let item = &self.items[*id];
            item.active && source.status != Some(Status::Failed) && source.support == Support::Supported
        };
        let bad = |(id, source): &(usize, &Derived)| {
            let item = &self.items[*id];
            !item.active || source.status == Some(Status::Failed) || source.support == Support::Unsupported
        };
        of.support = if sources.iter().all(bad) {
            Support::Unsupported
        } else if sources.iter().all(good) {
            Support::Supported
        } else {
            Support::Weakened
        };
        let active: Vec<_> = sources.iter().filter(|(id, _)| self.items[*id].active).collect();
        let newest = active.iter().max_by_key(|(id, source)| (source.time, source.step, *id));
        let stated = of.clone();
        of.status = stated.status.or(active.iter().filter_map(|(_, source)| source.status).max());
        let lowest = active.iter().filter_map(|(_, source)| source.source);
        of.source = stated.source.or(lowest.min_by(|a, b| a.weight().total_cmp(&b.weight())));
        of.step = stated.step.or(newest.and_then(|(_, source)| source.step));
        of.time = stated.time.or(newest.and_then(|(_, source)| source.time));
        of.version = stated.version.or(newest.and_then(|(_, source)| source.version.clone()));
        if stated.first_episode.is_none() {
            of.episodes = active.iter().flat_map(|(_, source)| source.episodes.iter().copied()).collect();
            let of_newest = newest.and_then(|(_, source)| source.first_episode);
            of.first_episode = of_newest.or(of.episodes.first().copied());
        }
    }

    /// The item that won over each item: of its first claim that lost against another value.
    fn conflict(&self, id: usize, derived: &[Derived]) -> Option<usize> {
        if !self.items[id].active {
            return None;
        }
        self.claims.iter().filter(|claim| claim.item == id).find_map(|claim| {
            let group = |claim: &MClaim| {
                let of = &derived[claim.item];
                let scope = if claim.global { None } else { Some(of.first_episode) };
                (claim.global, scope, of.version.clone(), claim.name.clone())
            };
            let belief = |(number, claim): &(usize, &MClaim)| {
                let of = &derived[claim.item];
                let is_trace = self.items[claim.item].kind.layer() == Layer::Trace;
                let grounded = is_trace || of.support == Support::Supported;
                let status = of.status.unwrap_or(Status::Unknown);
                (std::cmp::Reverse(status), of.time, of.step, grounded, *number)
            };
            let rivals = self.claims.iter().enumerate();
            let rivals = rivals.filter(|(_, other)| self.items[other.item].active && group(other) == group(claim));
            let (_, winner) = rivals.max_by_key(belief)?;
            (winner.item != id && winner.value != claim.value).then_some(winner.item)
        })
    }

    fn trust(&self, id: usize) -> f32 {
        let grounds = self.grounds(id);
        if grounds.iter().any(|trace| self.items[*trace].status == Some(Status::Failed)) {
            return 0.0;
        }
        let weights = grounds.iter().filter_map(|trace| self.items[*trace].source).map(Source::weight);
        weights.reduce(f32::min).unwrap_or(0.0)
    }

    fn item(&self, number: u8) -> Option<usize> {
        (!self.items.is_empty()).then(|| usize::from(number) % self.items.len())
    }

    /// A span of an item's text from three random numbers, valid or not.
    fn span(&self, (item, start, end): (u8, u8, u8)) -> Option<(usize, u64, u64)> {
        let id = self.item(item)?;
        let len = self.items[id].text.len() as u64;
        let (start, end) = (u64::from(start) % (len + 2), u64::from(end) % (len + 2));
        Some((id, start.min(end), start.max(end)))
    }

    fn resolves(&self, (id, start, end): (usize, u64, u64)) -> bool {
        let text = &self.items[id].text;
        let inside = end <= text.len() as u64;
        self.items[id].kind.layer() != Layer::Theme
            && inside
            && text.is_char_boundary(start as usize)
            && text.is_char_boundary(end as usize)
    }

    fn episode(&mut self, number: u8) -> usize {
        let id = format!("e{number}");
        match self.episodes.iter().position(|episode| episode.id == id) {
            Some(at) => at,
            None => {
                self.episodes.push(MEpisode { id, open: true, ..MEpisode::default() });
                self.episodes.len() - 1
            }
        }
    }

    fn close_page(&mut self, episode: usize) {
        let row = &mut self.episodes[episode];
        row.pages += 1;
        let traces = std::mem::take(&mut row.open_page);
        let key = format!("{}/p{}", row.id, row.pages);
        for trace in &traces {
            self.items[*trace].page = Some(self.pages.len());
        }
        self.pages.push(MPage { key, episode, traces, summarised: false });
    }

    fn add_pointer(&mut self, id: usize, pointer: MPointer) {
        if self.items[id].pointers.contains(&pointer) {
            return;
        }
        let targets = match &pointer {
            MPointer::Span(target, ..) => vec![*target],
            MPointer::Page(page) => self.pages[*page].traces.clone(),
        };
        self.edges.extend(targets.into_iter().map(|target| (id, Edge::Cites.to_byte(), target)));
        self.items[id].pointers.push(pointer);
    }

    /// Whether one item may be linked to another, by the rules of provenance.
    fn may_link(&self, from: usize, edge: Edge, to: usize) -> bool {
        let (near, far) = (self.items[from].kind, self.items[to].kind);
        if from == to {
            return false;
        }
        match edge {
            Edge::Cites | Edge::DerivedFrom => near.layer() != Layer::Trace && far.layer() != Layer::Theme && to < from,
            Edge::Parent => near.layer() == Layer::Recall && far.layer() == Layer::Theme,
            Edge::Mentions => near.layer() == Layer::Recall && far == Kind::Concept,
            Edge::Solves => near == Kind::Procedure && far == Kind::Intent,
            Edge::Sibling | Edge::ConflictsWith | Edge::Supersedes => true,
        }
    }

    /// Where a reader of an episode stands by default: its newest step and time, and the version there.
    fn reader(&self, episode: usize) -> (Option<u64>, Option<i64>, Option<String>) {
        let traces: Vec<&MItem> = self
            .items
            .iter()
            .filter(|item| item.kind.layer() == Layer::Trace && item.episode == Some(episode))
            .collect();
        let step = traces.iter().filter_map(|trace| trace.step).max();
        let time = traces.iter().filter_map(|trace| trace.time).max();
        let mut version = None;
        let mut newest = None;
        for trace in traces {
            if trace.step >= newest {
                newest = trace.step;
                version = trace.version.clone().or(version);
            }
        }
        (step, time, version.or_else(|| self.episodes[episode].version.clone()))
    }
}

// ---- running both ----

struct Bench {
    sim: SimVfs,
    database: Option<Holotype>,
    /// What is committed.
    model: Model,
    kept: Vec<(Snapshot, String)>,
    /// What was said after each commit.
    said: BTreeMap<u64, String>,
}

/// Statements whose answers depend on everything that changes.
const ASKED: &str = "recall 'one fare of the flight' through themes 3 -> recalls 5 -> traces 5 expand;
    recall near $v include inactive, failed exclude unsupported limit 5;
    recall 'price of the bag' in episode 'e1' exclude stale, weakened relax below 3;
    find items where status = success and (support = supported or cites any) order by time desc, item;
    find recalls in episode 'e0' where has version return key, version, step, time;
    count items, mean utility, max step by kind, status, support; count edges by edge; conflicts; find items where conflicted; find claims where has won; find pages where tokens > 3;
    sources of 0, 1, 2 depth 5; dependents of 0, 1, 2, 3 depth 5 where not inactive";

/// All that a snapshot says, also to statements.
fn said(snapshot: &Snapshot) -> String {
    let params = [("v".to_owned(), ParamValue::Vector(vec![1.0, 0.5]))].into_iter().collect();
    let asked = match answers(snapshot, ASKED, &params) {
        Ok(answers) => answers,
        // What a statement names is not there yet.
        Err(error) => error.to_string(),
    };
    everything(snapshot).unwrap() + &asked
}

fn open_options() -> Options {
    Options { page_size: 4096, clock: Arc::new(FixedClock(CLOCK)), ..Options::default() }
}

impl Bench {
    fn new() -> Self {
        let sim = SimVfs::new();
        let options = Options { space: Some(Space::new("test", 2)), ..open_options() };
        let database = Holotype::create_on(Arc::new(sim.clone()), DATABASE, options).unwrap();
        let model = Model { page_tokens: 1000, ..Model::default() };
        Bench { sim, database: Some(database), model, kept: Vec::new(), said: BTreeMap::new() }
    }

    fn run(&mut self, ops: &[Op]) {
        let mut ops = ops.iter().peekable();
        while ops.peek().is_some() {
            let mut model = self.model.clone();
            let mut after = None;
            let mut committed = false;
            {
                let database = self.database.as_ref().unwrap();
                let mut transaction = database.begin().unwrap();
                for op in ops.by_ref() {
                    match op {
                        Op::Commit(sync) => {
                            let durability = if *sync { Durability::Sync } else { Durability::None };
                            transaction.commit(durability).unwrap();
                            committed = true;
                            break;
                        }
                        Op::Drop => break,
                        Op::Look => compare(&transaction.snapshot().unwrap(), &model),
                        Op::Keep | Op::Checkpoint | Op::Reopen | Op::Rebuild => {
                            after = Some(op.clone());
                            break;
                        }
                        op => apply(op, &mut transaction, &mut model),
                    }
                }
            }
            if committed {
                self.model = model;
                let snapshot = self.database.as_ref().unwrap().snapshot();
                self.said.insert(snapshot.commit(), said(&snapshot));
            }
            if let Some(op) = after {
                self.between(&op);
            }
            compare(&self.database.as_ref().unwrap().snapshot(), &self.model);
        }
        self.check_the_past();
        self.between(&Op::Rebuild);
        self.check_the_past();
        for (snapshot, text) in &self.kept {
            assert_eq!(&everything(snapshot).unwrap(), text, "a snapshot changed");
        }
    }

    /// What is done between transactions.
    fn between(&mut self, op: &Op) {
        let database = self.database.take().unwrap();
        let before = everything(&database.snapshot()).unwrap();
        match op {
            Op::Keep => {
                self.kept.push((database.snapshot(), before));
                self.database = Some(database);
                return;
            }
            Op::Checkpoint => {
                database.checkpoint().unwrap();
                self.database = Some(database);
            }
            _ => {
                self.check_kept();
                database.close().unwrap();
                if matches!(op, Op::Rebuild) {
                    for file in self.sim.files().into_iter().filter(|file| !file.starts_with("/memory.holo/log")) {
                        self.sim.remove(&file).unwrap();
                    }
                }
                self.database = Some(Holotype::open_on(Arc::new(self.sim.clone()), DATABASE, open_options()).unwrap());
            }
        }
        let database = self.database.as_ref().unwrap();
        let after = everything(&database.snapshot()).unwrap();
        let differs = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        assert!(before == after, "{op:?} changed answers: {differs:#?}");
        assert_eq!(faults(database), [""; 0], "{op:?}");
    }

    /// Checks that what was said after each commit is what is said as of it.
    fn check_the_past(&self) {
        let snapshot = self.database.as_ref().unwrap().snapshot();
        for (commit, before) in &self.said {
            let now = said(&snapshot.as_of(*commit).unwrap());
            let differs = before.lines().zip(now.lines()).find(|(before, now)| before != now);
            assert!(*before == now, "as of commit {commit} of {}: {differs:#?}", snapshot.commit());
        }
        let newest = snapshot.commit();
        assert!(matches!(snapshot.as_of(newest + 1), Err(Error::FutureCommit { .. })));
        assert_eq!(snapshot.as_of(0).unwrap().len(), 0);
    }

    /// Checks the snapshots taken so far, and lets them go: they hold the lock of the database they were taken of.
    fn check_kept(&mut self) {
        for (snapshot, text) in self.kept.drain(..) {
            assert_eq!(everything(&snapshot).unwrap(), text, "a snapshot changed");
        }
    }
}

const WORDS: [&str; 9] = ["", "é", "one fare", "price of the flight", "bag", "x y z", "übermut tut gut", "450 €", "a"];

fn text(words: u8, id: usize) -> String {
    format!("{} {id}", WORDS[usize::from(words) % WORDS.len()])
}

/// Does an operation to both; what the model refuses the engine must refuse, and the other way round.
fn apply(op: &Op, transaction: &mut Transaction<'_>, model: &mut Model) {
    let mut next = model.clone();
    let done = apply_to_model(op, &mut next);
    let outcome = apply_to_engine(op, transaction, model);
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.is_ok(), done.is_some(), "{op:?}: {outcome:?}");
    if done.is_some() {
        *model = next;
    }
}

fn key_name(key: u8) -> String {
    format!("k{}", key % 24)
}

fn apply_to_engine(op: &Op, transaction: &mut Transaction<'_>, model: &Model) -> Option<holotype::Result<()>> {
    let item = |number: u8| model.item(number).map(|id| ItemId(id as u32));
    let pointer = |(id, start, end): (usize, u64, u64)| Pointer::to_item(ItemId(id as u32)).bytes(start, end);
    Some(match op {
        Op::Record { episode, key, tool, step, time, version, status, source, words, vector } => {
            let mut trace = NewTrace::turn(format!("e{episode}"), text(*words, model.items.len()));
            trace = key.map_or(trace.clone(), |key| trace.key(key_name(key)));
            trace = tool.map_or(trace.clone(), |tool| trace.tool(format!("tool{tool}")));
            trace = step.map_or(trace.clone(), |step| trace.step(step));
            trace = time.map_or(trace.clone(), |time| trace.time(time));
            trace = version.map_or(trace.clone(), |version| trace.version(format!("v{version}")));
            trace = status.map_or(trace.clone(), |status| trace.status(status));
            trace = source.map_or(trace.clone(), |source| trace.source(source));
            trace = if *vector { trace.vector(vec![1.0, f32::from(*words)]) } else { trace };
            transaction.record(trace).map(drop)
        }
        Op::Remember { kind, key, from, page, children, ungrounded, episode, time, status, source } => {
            let mut recall = NewRecall::new(*kind, text(7, model.items.len()));
            recall = key.map_or(recall.clone(), |key| recall.key(key_name(key)));
            for span in from.iter().filter_map(|span| model.span(*span)) {
                recall = recall.from(pointer(span));
            }
            if let Some(page) = page.and_then(|page| model.pages.get(usize::from(page) % model.pages.len().max(1))) {
                recall = recall.from(Pointer::to_page(page.key.clone()));
            }
            if kind.layer() == Layer::Theme {
                for child in children.iter().filter_map(|child| model.items.get(model.item(*child)?)?.key.clone()) {
                    recall = recall.child(child);
                }
            }
            recall = if *ungrounded { recall.ungrounded() } else { recall };
            recall = episode.map_or(recall.clone(), |episode| recall.episode(format!("e{episode}")));
            recall = time.map_or(recall.clone(), |time| recall.time(time));
            recall = status.map_or(recall.clone(), |status| recall.status(status));
            recall = source.map_or(recall.clone(), |source| recall.source(source));
            transaction.remember(recall).map(drop)
        }
        Op::Update { key, from, ungrounded } => {
            let mut recall = NewRecall::fact(text(3, model.items.len()));
            for span in from.iter().filter_map(|span| model.span(*span)) {
                recall = recall.from(pointer(span));
            }
            recall = if *ungrounded { recall.ungrounded() } else { recall };
            transaction.update(&key_name(*key), recall).map(drop)
        }
        Op::Cite(id, span) => transaction.cite(item(*id)?, &pointer(model.span(*span)?)),
        Op::Link(from, edge, to) => transaction.link(item(*from)?, *edge, item(*to)?),
        Op::Unlink(from, edge, to) => {
            let (from, to) = some_edge(model, *from, *edge, *to)?;
            transaction.unlink(ItemId(from as u32), *edge, ItemId(to as u32))
        }
        Op::Status(id, status) => transaction.mark(item(*id)?, Mark::Status(*status), None),
        Op::Utility(id, utility) => transaction.mark(item(*id)?, Mark::Utility(f32::from(*utility), 3), None),
        Op::Inactive(id) => transaction.mark(item(*id)?, Mark::Inactive, Some("said so".to_owned())),
        Op::Claim(id, name, value, global) => {
            transaction.claim(item(*id)?, &format!("n{name}"), &value.to_string(), *global, &[])
        }
        Op::Episode(episode, version, open) => {
            let change =
                EpisodeChange { version: version.map(|version| format!("v{version}")), open: *open, task: None };
            transaction.episode(&format!("e{episode}"), change)
        }
        Op::PageTokens(tokens) => transaction.set("page.tokens", &tokens.to_string()),
        Op::Summarise(page, summarised) => {
            let page = model.pages.get(usize::from(*page) % model.pages.len().max(1))?;
            transaction.mark_page(&page.key, *summarised)
        }
        Op::Commit(_) | Op::Drop | Op::Look | Op::Keep | Op::Checkpoint | Op::Reopen | Op::Rebuild => return None,
    })
}

/// An edge of that type if there is one, else any two items.
fn some_edge(model: &Model, from: u8, edge: Edge, to: u8) -> Option<(usize, usize)> {
    let of_type: Vec<_> = model.edges.iter().filter(|(_, byte, _)| *byte == edge.to_byte()).collect();
    match of_type.get(usize::from(from) % of_type.len().max(1)) {
        Some((from, _, to)) => Some((*from, *to)),
        None => Some((model.item(from)?, model.item(to)?)),
    }
}

/// Does an operation to the model; nothing when it must be refused.
fn apply_to_model(op: &Op, model: &mut Model) -> Option<()> {
    match op {
        Op::Record { episode, key, tool, step, time, version, status, source, words, vector } => {
            let id = model.items.len();
            let at = model.episode(*episode);
            let row = model.episodes[at].clone();
            let newest = model.reader(at).0;
            let step = step.unwrap_or_else(|| newest.map_or(0, |step| step + 1));
            let tool = tool.map(|tool| format!("tool{tool}"));
            if !model.traces.insert((tool.clone().unwrap_or_default(), row.id.clone(), step)) {
                return None;
            }
            let text = text(*words, id);
            let spoken = tool.map_or_else(|| text.clone(), |tool| format!("{tool}: {text}"));
            let item = MItem {
                kind: Kind::Turn,
                key: name(model, *key, id)?,
                text,
                episode: Some(at),
                step: Some(step),
                time: Some(time.unwrap_or(CLOCK)),
                version: version.map(|version| format!("v{version}")).or(row.version),
                status: Some(status.unwrap_or(Status::Unknown)),
                source: *source,
                page: None,
                active: true,
                ungrounded: false,
                utility: 0.0,
                pointers: Vec::new(),
                vector: *vector,
                tokens: spoken.chars().count().div_ceil(4) as u64,
            };
            model.items.push(item);
            model.episodes[at].open_page.push(id);
            let tokens: u64 = model.episodes[at].open_page.iter().map(|trace| model.items[*trace].tokens).sum();
            if tokens >= model.page_tokens {
                model.close_page(at);
            }
        }
        Op::Remember { kind, key, from, page, children, ungrounded, episode, time, status, source } => {
            let id = model.items.len();
            let spans: Vec<_> = from.iter().filter_map(|span| model.span(*span)).collect();
            if !spans.iter().all(|span| model.resolves(*span)) {
                return None;
            }
            let mut pointers: Vec<MPointer> =
                spans.iter().map(|(id, start, end)| MPointer::Span(*id, *start, *end)).collect();
            let pages = model.pages.len();
            pointers.extend(page.filter(|_| pages > 0).map(|page| MPointer::Page(usize::from(page) % pages)));
            if pointers.is_empty() && kind.layer() == Layer::Recall && !ungrounded {
                return None;
            }
            let children: Vec<usize> = if kind.layer() == Layer::Theme {
                children
                    .iter()
                    .filter_map(|child| model.item(*child))
                    .filter(|id| model.items[*id].key.is_some())
                    .collect()
            } else {
                Vec::new()
            };
            if children.iter().any(|child| model.items[*child].kind.layer() != Layer::Recall) {
                return None;
            }
            let key = name(model, *key, id)?;
            let episode = episode.map(|episode| model.episode(episode));
            let text = text(7, id);
            let tokens = text.chars().count().div_ceil(4) as u64;
            model.items.push(MItem {
                kind: *kind,
                key,
                text,
                episode,
                step: None,
                time: *time,
                version: None,
                status: *status,
                source: *source,
                page: None,
                active: true,
                ungrounded: *ungrounded,
                utility: 0.0,
                pointers: Vec::new(),
                vector: false,
                tokens,
            });
            for pointer in pointers {
                model.add_pointer(id, pointer);
            }
            model.edges.extend(children.into_iter().map(|child| (child, Edge::Parent.to_byte(), id)));
        }
        Op::Update { key, from, ungrounded } => {
            let key = key_name(*key);
            let old = *model.keys.get(&key)?;
            if model.items[old].kind.layer() == Layer::Trace {
                return None;
            }
            let id = model.items.len();
            let spans: Vec<_> = from.iter().filter_map(|span| model.span(*span)).collect();
            if !spans.iter().all(|span| model.resolves(*span)) {
                return None;
            }
            let mut pointers = model.items[old].pointers.clone();
            pointers.extend(spans.iter().map(|(id, start, end)| MPointer::Span(*id, *start, *end)));
            if pointers.is_empty() && !ungrounded {
                return None;
            }
            let text = text(3, id);
            let tokens = text.chars().count().div_ceil(4) as u64;
            model.items[old].key = None;
            model.items[old].active = false;
            model.items.push(MItem {
                kind: Kind::Fact,
                key: Some(key.clone()),
                text,
                episode: None,
                step: None,
                time: None,
                version: None,
                status: None,
                source: None,
                page: None,
                active: true,
                ungrounded: *ungrounded,
                utility: 0.0,
                pointers: Vec::new(),
                vector: false,
                tokens,
            });
            model.keys.insert(key, id);
            for pointer in pointers {
                model.add_pointer(id, pointer);
            }
            model.edges.insert((id, Edge::Supersedes.to_byte(), old));
        }
        Op::Cite(id, span) => {
            let (id, span) = (model.item(*id)?, model.span(*span)?);
            if !model.resolves(span) || span.0 >= id || model.items[id].kind.layer() == Layer::Trace {
                return None;
            }
            model.add_pointer(id, MPointer::Span(span.0, span.1, span.2));
        }
        Op::Link(from, edge, to) => {
            let (from, to) = (model.item(*from)?, model.item(*to)?);
            if !model.may_link(from, *edge, to) {
                return None;
            }
            if *edge == Edge::Cites {
                let len = model.items[to].text.len() as u64;
                model.add_pointer(from, MPointer::Span(to, 0, len));
            }
            model.edges.insert((from, edge.to_byte(), to));
            if *edge == Edge::Supersedes {
                model.items[to].active = false;
            }
        }
        Op::Unlink(from, edge, to) => {
            let (from, to) = some_edge(model, *from, *edge, *to)?;
            let by_page =
                |pointer: &MPointer| matches!(pointer, MPointer::Page(page) if model.pages[*page].traces.contains(&to));
            if *edge == Edge::Cites && model.items[from].pointers.iter().any(by_page) {
                return None;
            }
            if !model.edges.remove(&(from, edge.to_byte(), to)) {
                return None;
            }
            if *edge == Edge::Cites {
                model.items[from]
                    .pointers
                    .retain(|pointer| !matches!(pointer, MPointer::Span(target, ..) if *target == to));
            }
        }
        Op::Status(id, status) => {
            let id = model.item(*id)?;
            model.items[id].status = Some(*status);
        }
        Op::Utility(id, utility) => {
            let id = model.item(*id)?;
            model.items[id].utility = f32::from(*utility);
        }
        Op::Inactive(id) => {
            let id = model.item(*id)?;
            model.items[id].active = false;
        }
        Op::Claim(id, name, value, global) => {
            let item = model.item(*id)?;
            let (name, value) = (format!("n{name}"), value.to_string());
            model.claims.push(MClaim { item, name, value, global: *global });
        }
        Op::Episode(episode, version, open) => {
            let at = model.episode(*episode);
            if *open == Some(false) && !model.episodes[at].open_page.is_empty() {
                model.close_page(at);
            }
            let row = &mut model.episodes[at];
            row.open = open.unwrap_or(row.open);
            row.version = version.map(|version| format!("v{version}")).or(row.version.take());
        }
        Op::PageTokens(tokens) => model.page_tokens = *tokens,
        Op::Summarise(page, summarised) => {
            let pages = model.pages.len().max(1);
            model.pages.get_mut(usize::from(*page) % pages)?.summarised = *summarised;
        }
        Op::Commit(_) | Op::Drop | Op::Look | Op::Keep | Op::Checkpoint | Op::Reopen | Op::Rebuild => {}
    }
    Some(())
}

/// Gives a new item its key, if it asks for one that is free; the engine chooses one for those that do not ask.
fn name(model: &mut Model, key: Option<u8>, id: usize) -> Option<Option<String>> {
    let Some(key) = key.map(key_name) else { return Some(None) };
    if model.keys.contains_key(&key) {
        return None;
    }
    model.keys.insert(key.clone(), id);
    Some(Some(key))
}

// ---- comparing ----

fn table(snapshot: &Snapshot, script: &str) -> Table {
    match snapshot.query(script, &Params::new()).unwrap().pop() {
        Some(Output::Table(table)) => table,
        other => panic!("{script}: {other:?}"),
    }
}

fn texts(cell: Option<&Cell>) -> Vec<String> {
    match cell {
        None => Vec::new(),
        Some(Cell::List(cells)) => cells.iter().map(ToString::to_string).collect(),
        Some(cell) => vec![cell.to_string()],
    }
}

fn compare(snapshot: &Snapshot, model: &Model) {
    assert_eq!(snapshot.len() as usize, model.items.len());
    let derived = model.derive();
    let listed = table(snapshot, "find items return item, version, episode, page, trust, log_id");
    for (id, (item, of)) in model.items.iter().zip(&derived).enumerate() {
        let found = snapshot.item(ItemId(id as u32)).unwrap();
        let a = &found.attributes;
        assert_eq!(
            (a.kind, a.status, a.source, a.step, a.time, a.support, a.trust()),
            (item.kind, of.status, of.source, of.step, of.time, of.support, of.trust),
            "item {id}: {a:?} {item:?}"
        );
        assert_eq!(
            (a.active, a.ungrounded, a.utility, a.has_vector, u64::from(a.tokens), found.content.text()),
            (item.active, item.ungrounded, item.utility, item.vector, item.tokens, item.text.as_str()),
            "item {id}"
        );
        assert_eq!(a.conflict.map(|winner| winner as usize), model.conflict(id, &derived), "conflict of {id}");
        let row = &listed.rows[id];
        assert_eq!(texts(row[1].as_ref()), of.version.iter().cloned().collect::<Vec<_>>(), "version of {id}");
        let episodes = texts(row[2].as_ref());
        let name = |number: &usize| model.episodes[*number].id.clone();
        assert_eq!(episodes.first().cloned(), of.first_episode.as_ref().map(name), "first episode of {id}");
        assert_eq!(episodes.iter().cloned().collect::<BTreeSet<_>>(), of.episodes.iter().map(name).collect(), "{id}");
        let page = item.page.map(|page| model.pages[page].key.clone());
        assert_eq!(texts(row[3].as_ref()), page.into_iter().collect::<Vec<_>>(), "page of {id}");
        if let Some(key) = &item.key {
            assert_eq!(&found.key, key);
        }
        compare_pointers(snapshot, model, id);
    }
    for (key, id) in &model.keys {
        assert_eq!(snapshot.get(key).unwrap().map(|item| item.id.0 as usize), Some(*id), "{key}");
    }
    compare_edges(snapshot, model);
    compare_pages(snapshot, model);
    for (at, episode) in model.episodes.iter().enumerate() {
        let asked =
            snapshot.query(&format!("recall 'fare' in episode '{}'", episode.id), &Params::new()).unwrap().pop();
        let Some(Output::Answer(answer)) = asked else { panic!("no answer") };
        let (step, time, version) = model.reader(at);
        assert_eq!(
            (answer.at.step, answer.at.time, answer.at.version),
            (step, time, version),
            "reader of {}",
            episode.id
        );
    }
}

fn compare_pointers(snapshot: &Snapshot, model: &Model, id: usize) {
    let citations = snapshot.citations(ItemId(id as u32)).unwrap();
    let found: Vec<_> =
        citations.iter().map(|citation| (citation.start, citation.end, citation.text.clone())).collect();
    let wanted: Vec<_> = model.items[id]
        .pointers
        .iter()
        .map(|pointer| match pointer {
            MPointer::Span(target, start, end) => {
                let text = &model.items[*target].text[*start as usize..*end as usize];
                (*start, *end, Some(text.to_owned()))
            }
            MPointer::Page(_) => (0, 0, None),
        })
        .collect();
    assert_eq!(found, wanted, "pointers of {id}");
    assert!(citations.iter().all(|citation| citation.verdict == Verdict::Ok));
}

fn compare_edges(snapshot: &Snapshot, model: &Model) {
    for edge in Edge::ALL {
        for id in 0..model.items.len() {
            let of_type = || model.edges.iter().filter(|(_, byte, _)| *byte == edge.to_byte());
            let mut out: BTreeSet<usize> = of_type().filter(|(from, ..)| *from == id).map(|(_, _, to)| *to).collect();
            let mut back: BTreeSet<usize> = of_type().filter(|(.., to)| *to == id).map(|(from, ..)| *from).collect();
            if edge.is_symmetric() {
                out.extend(&back);
                back.clone_from(&out);
            }
            let ids = |found: Vec<ItemId>| found.into_iter().map(|id| id.0 as usize).collect::<BTreeSet<_>>();
            assert_eq!(ids(snapshot.linked(ItemId(id as u32), *edge).unwrap()), out, "{edge} out of {id}");
            assert_eq!(ids(snapshot.linking(ItemId(id as u32), *edge).unwrap()), back, "{edge} into {id}");
        }
    }
}

fn compare_pages(snapshot: &Snapshot, model: &Model) {
    let found = table(snapshot, "show pages");
    let found: Vec<Vec<String>> =
        found.rows.iter().map(|row| row[..5].iter().map(|cell| texts(cell.as_ref()).concat()).collect()).collect();
    let wanted: Vec<Vec<String>> = model
        .pages
        .iter()
        .map(|page| {
            let tokens: u64 = page.traces.iter().map(|trace| model.items[*trace].tokens).sum();
            let state = if page.summarised { "summarised" } else { "unsummarised" };
            let episode = model.episodes[page.episode].id.clone();
            vec![page.key.clone(), episode, page.traces.len().to_string(), tokens.to_string(), state.to_owned()]
        })
        .collect();
    assert_eq!(found, wanted);
}

fn config() -> ProptestConfig {
    let seed = std::env::var("HOLOTYPE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(42);
    let cases = std::env::var("HOLOTYPE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48);
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_engine_does_what_the_model_does(ops in vec(op(), 1..90)) {
        Bench::new().run(&ops);
    }
}
