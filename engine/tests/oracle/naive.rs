//! The definitions, clause by clause, over exported rows.

use holotype::answer::Output;
use holotype::cell::Cell;
use holotype::query::ast::{
    Bound, Clauses, Count, Find, Flaw, Interval, Limit, Listing, Predicate, Reader, Recall, Ref, Returns, Scope, Score,
    ScoreBase, Stage, Test, Thing,
};
use holotype::query::{
    Channel, Direction, FlawKind, ItemRef, MeasureKind, Name, Noun, Op, Params, Part, Spanned, Value,
};
use holotype::{Edge, ItemId, Snapshot, Source};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// One item: every attribute by name, its fields, its vector.
pub(crate) struct Exported {
    pub(crate) items: Vec<Row>,
    pub(crate) episodes: BTreeSet<String>,
    edges: BTreeSet<(u32, &'static str, u32)>,
}

pub(crate) struct Row {
    cells: BTreeMap<String, Cell>,
    vector: Option<Vec<f32>>,
    words: Vec<String>,
}

/// What a listing answers.
pub(crate) struct Listed {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// What a recall answers: the rows, and the score of everything that could be one.
pub(crate) struct Recalled {
    pub(crate) rows: Vec<u32>,
    pub(crate) all: Vec<(u32, f64)>,
}

/// Where the reader stands.
#[derive(Clone, Default, Debug)]
struct Standing {
    episode: Option<String>,
    step: Option<i64>,
    time: Option<i64>,
    version: Option<String>,
}

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
/// The pool of a stage is larger than any of these databases.
const STAGES: [(Noun, u64); 3] = [(Noun::Themes, 3), (Noun::Recalls, 5), (Noun::Traces, 5)];

pub(crate) fn shown(cell: &Option<Cell>) -> String {
    cell.as_ref().map_or("-".to_owned(), |cell| format!("{cell:?}"))
}

impl Exported {
    pub(crate) fn of(snapshot: &Snapshot) -> Exported {
        let outputs = snapshot.query("find items return *", &Params::new()).expect("all items");
        let Some(Output::Table(table)) = outputs.into_iter().next() else { panic!("a table") };
        let mut world = Exported { items: Vec::new(), episodes: BTreeSet::new(), edges: BTreeSet::new() };
        for (nth, row) in (0..).zip(table.rows) {
            let cells = table.columns.iter().cloned().zip(row).filter_map(|(name, cell)| Some((name, cell?)));
            let mut cells: BTreeMap<String, Cell> = cells.collect();
            let item = snapshot.item(ItemId(nth)).expect("it is there");
            let mut words: Vec<String> = Vec::new();
            for name in item.content.field_names() {
                let text = item.content.field_text(name).unwrap_or_default();
                words.extend(text.split_whitespace().map(str::to_owned));
                cells.insert(format!("fields.{name}"), Cell::text(text));
            }
            words.extend(item.content.speaker().map(str::to_owned));
            words.extend(item.content.tool().map(str::to_owned));
            for episode in texts(cells.get("episode")) {
                world.episodes.insert(episode);
            }
            for edge in Edge::ALL {
                for to in snapshot.linked(ItemId(nth), *edge).expect("edges") {
                    world.edges.insert((nth, edge.as_str(), to.0));
                }
            }
            let vector = snapshot.vector(ItemId(nth)).expect("vectors");
            world.items.push(Row { cells, vector, words });
        }
        world
    }

    fn cell(&self, id: u32, name: &str) -> Option<&Cell> {
        self.items[id as usize].cells.get(name)
    }

    fn text(&self, id: u32, name: &str) -> Option<&str> {
        match self.cell(id, name)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    fn whole(&self, id: u32, name: &str) -> Option<i64> {
        match self.cell(id, name)? {
            Cell::Integer(number) | Cell::Time(number) => Some(*number),
            _ => None,
        }
    }

    fn is(&self, id: u32, name: &str) -> bool {
        self.cell(id, name) == Some(&Cell::Bool(true))
    }

    fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.items.len() as u32
    }

    fn layer(&self, id: u32) -> &str {
        self.text(id, "layer").expect("every item has a layer")
    }

    // ---- listings ----

    fn listed(&self, noun: Noun, listing: &Listing) -> (Vec<u32>, Standing) {
        let scope = listing.scope.as_ref().map(|scope| &scope.node);
        let standing = self.standing(scope, listing.reader.as_ref().map(|reader| &reader.node));
        let holds = |id: &u32| {
            self.is_of(*id, noun)
                && self.in_scope(*id, scope)
                && listing.filter.as_ref().is_none_or(|filter| self.holds(*id, &filter.node, &standing))
        };
        (self.ids().filter(holds).collect(), standing)
    }

    pub(crate) fn find(&self, find: &Find) -> Listed {
        let Thing::Noun(noun) = find.thing.node else { panic!("items are listed") };
        let (mut ids, standing) = self.listed(noun, &find.listing);
        if let Some(order) = &find.listing.order {
            ids.sort_by(|a, b| {
                let of_key = |key: &Spanned<holotype::query::ast::OrderKey>| {
                    let value = |id: u32| self.value(id, &key.node.name.node, &standing);
                    match (value(*a), value(*b)) {
                        (Some(a), Some(b)) => {
                            let order = compared(&a, &b).unwrap_or(Ordering::Equal);
                            if key.node.direction == Some(Direction::Desc) { order.reverse() } else { order }
                        }
                        (a, b) => b.is_some().cmp(&a.is_some()),
                    }
                };
                order.node.iter().map(of_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            });
        }
        let ids = cut(ids, find.listing.limit.as_ref());
        let Some(Returns::Names(names)) = find.listing.returns.as_ref().map(|returns| &returns.node) else {
            panic!("columns are named")
        };
        let row = |id: u32| names.iter().map(|name| shown(&self.value(id, &name.node, &standing))).collect();
        Listed {
            columns: names.iter().map(|name| name.node.0.join(".")).collect(),
            rows: ids.into_iter().map(row).collect(),
        }
    }

    pub(crate) fn count(&self, count: &Count) -> Listed {
        let Thing::Noun(noun) = count.thing.node else { panic!("items are counted") };
        let (ids, standing) = self.listed(noun, &count.listing);
        let buckets: Vec<_> = count.group.iter().flat_map(|group| &group.node).map(|bucket| &bucket.node).collect();
        let mut groups: Vec<(Vec<Option<Cell>>, Vec<u32>)> = Vec::new();
        if buckets.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for id in ids {
            let of_bucket = |bucket: &&holotype::query::ast::Bucket| {
                let cell = self.value(id, &bucket.name.node, &standing)?;
                Some(match (&bucket.every.as_ref().map(|every| &every.node), cell) {
                    (Some(Interval::Clock(width)), Cell::Time(at)) => {
                        let width = width.micros() as i64;
                        Cell::Time(at.div_euclid(width) * width)
                    }
                    (Some(Interval::Steps(width)), Cell::Integer(at)) => {
                        let width = *width.node.bound() as i64;
                        Cell::Integer(at.div_euclid(width) * width)
                    }
                    (_, cell) => cell,
                })
            };
            let by: Vec<Option<Cell>> = buckets.iter().map(of_bucket).collect();
            match groups.iter_mut().find(|group| group.0 == by) {
                Some(group) => group.1.push(id),
                None => groups.push((by, vec![id])),
            }
        }
        groups.sort_by(|a, b| {
            let pairs = a.0.iter().zip(&b.0).map(|pair| match pair {
                (Some(a), Some(b)) => compared(a, b).unwrap_or(Ordering::Equal),
                (a, b) => b.is_some().cmp(&a.is_some()),
            });
            pairs.fold(Ordering::Equal, Ordering::then)
        });
        let measured = |ids: &[u32], measure: &holotype::query::ast::Measure| -> Option<Cell> {
            let cells: Vec<Cell> = ids.iter().filter_map(|id| self.value(*id, &measure.name.node, &standing)).collect();
            let numbers = cells.iter().map(|cell| number(cell).expect("a number"));
            match measure.kind {
                _ if cells.is_empty() => None,
                MeasureKind::Sum => Some(Cell::Number(numbers.sum())),
                MeasureKind::Mean => Some(Cell::Number(numbers.sum::<f64>() / cells.len() as f64)),
                MeasureKind::Min => {
                    cells.iter().cloned().reduce(|a, b| if compared(&b, &a) == Some(Ordering::Less) { b } else { a })
                }
                MeasureKind::Max => {
                    cells.iter().cloned().reduce(|a, b| if compared(&b, &a) == Some(Ordering::Greater) { b } else { a })
                }
            }
        };
        let names = count
            .measures
            .iter()
            .map(|measure| format!("{}.{}", measure.node.kind, measure.node.name.node.0.join(".")));
        let columns =
            buckets.iter().map(|bucket| bucket.name.node.0.join(".")).chain(["count".to_owned()]).chain(names);
        let rows = groups.iter().map(|(by, ids)| {
            let measures = count.measures.iter().map(|measure| measured(ids, &measure.node));
            by.iter()
                .cloned()
                .chain([Some(Cell::Integer(ids.len() as i64))])
                .chain(measures)
                .map(|cell| shown(&cell))
                .collect()
        });
        Listed { columns: columns.collect(), rows: rows.collect() }
    }

    /// Where a reader stands who says so much; what is not said is the newest there is.
    fn standing(&self, scope: Option<&Scope>, given: Option<&Reader>) -> Standing {
        let mut standing = Standing::default();
        if let Some(Scope::Episodes(ids)) = scope
            && let [one] = ids.as_slice()
        {
            standing.episode = Some(one.node.bound().clone());
        }
        let of_traces = |id: &u32| {
            let here = standing.episode.is_none() || self.text(*id, "episode") == standing.episode.as_deref();
            self.layer(*id) == "trace" && here
        };
        standing.time = self.ids().filter(of_traces).filter_map(|id| self.whole(id, "time")).max();
        if standing.episode.is_some() {
            standing.step = self.ids().filter(of_traces).filter_map(|id| self.whole(id, "step")).max();
            let with_version = self.ids().filter(of_traces).filter(|id| self.text(*id, "version").is_some());
            let newest = with_version.max_by_key(|id| self.whole(*id, "step"));
            standing.version = newest.and_then(|id| self.text(id, "version")).map(str::to_owned);
        }
        if let Some(given) = given {
            standing.step = given.step.as_ref().map(|step| *step.node.bound() as i64).or(standing.step);
            standing.time = given.time.as_ref().map(|time| time.node.bound().micros).or(standing.time);
            standing.version = given.version.as_ref().map(|version| version.node.bound().clone()).or(standing.version);
        }
        standing
    }

    fn is_of(&self, id: u32, noun: Noun) -> bool {
        let kind = self.text(id, "kind").expect("every item has a kind");
        match noun {
            Noun::Items => true,
            Noun::Themes | Noun::Recalls | Noun::Traces => format!("{}s", self.layer(id)) == noun.as_str(),
            Noun::Summaries => kind == "summary",
            noun => format!("{kind}s") == noun.as_str(),
        }
    }

    fn in_scope(&self, id: u32, scope: Option<&Scope>) -> bool {
        match scope {
            None | Some(Scope::All) => true,
            Some(Scope::Episodes(wanted)) => {
                texts(self.cell(id, "episode")).iter().any(|of| wanted.iter().any(|wanted| wanted.node.bound() == of))
            }
            Some(Scope::Pages(_)) => panic!("no statement asks for pages"),
        }
    }

    // ---- predicates ----

    fn value(&self, id: u32, name: &Name, standing: &Standing) -> Option<Cell> {
        match name.0.join(".").as_str() {
            "age" => Some(Cell::Duration((standing.time? - self.whole(id, "time")?).max(0))),
            name => self.cell(id, name).cloned(),
        }
    }

    fn holds(&self, id: u32, predicate: &Predicate, standing: &Standing) -> bool {
        match predicate {
            Predicate::And(parts) => parts.iter().all(|part| self.holds(id, part, standing)),
            Predicate::Or(parts) => parts.iter().any(|part| self.holds(id, part, standing)),
            Predicate::Not(part) => !self.holds(id, part, standing),
            Predicate::Test(test) => self.passes(id, &test.node, standing),
        }
    }

    fn passes(&self, id: u32, test: &Test, standing: &Standing) -> bool {
        let value = |name: &Spanned<Name>| self.value(id, &name.node, standing);
        match test {
            Test::Compare { name, op, value: with } => {
                value(name).is_some_and(|cell| compares(&cell, *op, with.node.bound()))
            }
            Test::In { name, not, list } => value(name).is_some_and(|cell| {
                list.node.bound().iter().any(|with| compares(&cell, Op::Eq, with.node.bound())) != *not
            }),
            Test::Between { name, not, low, high } => value(name).is_some_and(|cell| {
                (compares(&cell, Op::Ge, low.node.bound()) && compares(&cell, Op::Le, high.node.bound())) != *not
            }),
            Test::Contains { name, not, text } => value(name).is_some_and(|cell| {
                let wanted = text.node.bound().to_lowercase();
                texts(Some(&cell)).iter().any(|text| text.to_lowercase().contains(&wanted)) != *not
            }),
            Test::Matches { name, not, glob } => value(name).is_some_and(|cell| {
                texts(Some(&cell)).iter().any(|text| matches(glob.node.bound().as_bytes(), text.as_bytes())) != *not
            }),
            Test::Has(name) => value(name).is_some(),
            Test::Flaw(flaw) => self.has_flaw(id, flaw, standing),
            Test::Redacted => self.is(id, "redacted"),
            Test::Edge { edge, target } => {
                let target = target.as_ref().map(|pointer| match &pointer.node.target.node {
                    Ref::Item(item) => match item.bound() {
                        ItemRef::Id(number) => *number as u32,
                        ItemRef::Key(_) => panic!("items are named by number"),
                    },
                    _ => panic!("only items are linked to"),
                });
                let names = |near: u32, far: u32| near == id && target.is_none_or(|target| far == target);
                self.edges.iter().any(|(from, of, to)| *of == edge.node.as_str() && names(*from, *to))
            }
            Test::Claims { .. } => false,
        }
    }

    fn has_flaw(&self, id: u32, flaw: &Flaw, standing: &Standing) -> bool {
        match flaw.kind {
            FlawKind::Failed => self.text(id, "status") == Some("failed"),
            FlawKind::Stale => self.is_stale(id, flaw, standing),
            FlawKind::Conflicted => self.cell(id, "conflict").is_some(),
            FlawKind::Weakened => self.text(id, "support") == Some("weakened"),
            FlawKind::Unsupported => self.text(id, "support") == Some("unsupported"),
            FlawKind::Ungrounded => self.is(id, "ungrounded"),
            FlawKind::Inactive => !self.is(id, "active"),
        }
    }

    fn is_stale(&self, id: u32, flaw: &Flaw, standing: &Standing) -> bool {
        let everything = flaw.window.is_empty();
        let (mut steps, mut age, mut version) = (everything.then_some(200), everything.then_some(7 * DAY), everything);
        for bound in &flaw.window {
            match &bound.node {
                Bound::Steps(count) => steps = Some(*count.node.bound() as i64),
                Bound::Age(duration) => age = Some(duration.micros() as i64),
                Bound::Version => version = true,
            }
        }
        let distance = self.step_distance(id, standing);
        let old = standing.time.zip(self.whole(id, "time")).map(|(now, then)| now - then);
        matches!((steps, distance), (Some(bound), Some(distance)) if distance > bound)
            || matches!((age, old), (Some(bound), Some(old)) if old > bound)
            || version && self.is_foreign(id, standing)
    }

    /// Steps from an item to the reader, in an episode that is the item's first.
    fn step_distance(&self, id: u32, standing: &Standing) -> Option<i64> {
        let own = texts(self.cell(id, "episode")).into_iter().next();
        if standing.episode.is_none() || own != standing.episode {
            return None;
        }
        Some((standing.step? - self.whole(id, "step")?).max(0))
    }

    fn is_foreign(&self, id: u32, standing: &Standing) -> bool {
        matches!((&standing.version, self.text(id, "version")), (Some(mine), Some(version)) if mine != version)
    }

    // ---- recall ----

    pub(crate) fn recall(&self, recall: &Recall) -> Recalled {
        let clauses = &recall.clauses;
        let scope = clauses.scope.as_ref().map(|scope| &scope.node);
        let standing = self.standing(scope, clauses.reader.as_ref().map(|reader| &reader.node));
        let visible: BTreeSet<u32> = self.ids().filter(|id| self.is_visible(*id, clauses, &standing)).collect();
        let limit = clauses.limit.as_ref().map(|limit| *limit.node.count.node.bound());
        let skip =
            clauses.limit.as_ref().and_then(|limit| limit.node.skip.as_ref()).map_or(0, |skip| *skip.node.bound());
        let rows = limit.unwrap_or(0) + skip;
        let mut stages: Vec<(Noun, u64, Vec<Channel>, Option<&Predicate>)> = Vec::new();
        match &clauses.path {
            None => {
                for (nth, (noun, least)) in STAGES.into_iter().enumerate() {
                    let count = if noun == Noun::Themes { least } else { rows.max(least) };
                    stages.push((noun, count, default_channels(nth), None));
                }
            }
            Some(path) => {
                for (nth, stage) in path.node.iter().enumerate() {
                    let Stage::Gather(stage) = &stage.node else { panic!("plain stages only") };
                    let count = stage.count.as_ref().map(|count| *count.node.bound());
                    let channels: Vec<Channel> = stage.channels.iter().map(|channel| channel.node).collect();
                    let channels = if channels.is_empty() { written_channels(nth) } else { channels };
                    let count = count.unwrap_or_else(|| rows.max(5));
                    stages.push((stage.noun.node, count, channels, stage.only.as_ref().map(|only| &only.node)));
                }
            }
        }
        let recalls_at = stages.iter().position(|stage| self.noun_layer(stage.0) == "recall");
        let lifts = recalls_at.is_some_and(|at| {
            stages[at..].iter().any(|stage| self.noun_layer(stage.0) == "trace" && stage.2.contains(&Channel::Linked))
        });
        let exclusions = |id: u32| self.exclusions(id, clauses, &standing);
        let relax_below = clauses.relax.as_ref().map_or(1, |relax| *relax.node.below.node.bound());
        let last = stages.len() - 1;
        let pass = |relaxed: bool| {
            let mut before: BTreeSet<u32> = BTreeSet::new();
            let mut ranked: Vec<Vec<(u32, f64, usize)>> = Vec::new();
            for (nth, (noun, _, channels, only)) in stages.iter().enumerate() {
                let layer = self.noun_layer(*noun);
                let route: BTreeSet<u32> = visible
                    .iter()
                    .copied()
                    .filter(|id| self.is_of(*id, *noun) && only.is_none_or(|only| self.holds(*id, only, &standing)))
                    .collect();
                let may_be_row = |id: u32| {
                    (layer != "theme" || nth == last)
                        && clauses.filter.as_ref().is_none_or(|filter| self.holds(id, &filter.node, &standing))
                        && (relaxed || exclusions(id) == 0)
                };
                let words = recall.query.words().map(|text| self.bm25(layer, text)).unwrap_or_default();
                let found = |id: u32| {
                    channels.iter().any(|channel| match channel {
                        Channel::Near => recall.query.vector().is_some() && self.items[id as usize].vector.is_some(),
                        Channel::Words => words.get(&id).is_some_and(|score| *score > 0.0),
                        Channel::Linked => before.iter().any(|from| self.leads(*from, id, &visible)),
                    })
                };
                let routed: BTreeSet<u32> = route.into_iter().filter(|id| found(*id)).collect();
                let rows: Vec<u32> = routed.iter().copied().filter(|id| may_be_row(*id)).collect();
                let scored = self.score(recall, &standing, layer, &rows, lifts, &visible);
                let mut scored: Vec<(u32, f64, usize)> = scored
                    .into_iter()
                    .map(|(id, score, status)| {
                        let failed = exclusions(id);
                        (id, score - status * failed as f64, failed)
                    })
                    .collect();
                scored.sort_by(|a, b| self.best_first(a, b));
                ranked.push(scored);
                before = routed;
            }
            ranked
        };
        let mut ranked = pass(false);
        let any_exclusion = self.ids().any(|id| exclusions(id) > 0);
        if (ranked.iter().map(Vec::len).sum::<usize>() as u64) < relax_below && any_exclusion {
            ranked = pass(true);
        }
        let mut merged: Vec<((u32, f64, usize), Vec<usize>)> = Vec::new();
        for (stage, rows) in ranked.into_iter().enumerate() {
            for row in rows {
                match merged.iter_mut().find(|known| known.0.0 == row.0) {
                    None => merged.push((row, vec![stage])),
                    Some(known) => {
                        known.1.push(stage);
                        if self.best_first(&row, &known.0).is_lt() {
                            known.0 = row;
                        }
                    }
                }
            }
        }
        merged.sort_by(|a, b| self.best_first(&a.0, &b.0));
        let all: Vec<(u32, f64)> = merged.iter().map(|(row, _)| (row.0, row.1)).collect();
        let mut left: Vec<u64> = stages.iter().map(|stage| stage.1).collect();
        let mut rows = Vec::new();
        for ((id, ..), of) in merged {
            if limit.is_some_and(|limit| rows.len() as u64 >= limit + skip) {
                break;
            }
            if of.iter().any(|stage| left[*stage] > 0) {
                of.iter().for_each(|stage| left[*stage] = left[*stage].saturating_sub(1));
                rows.push(id);
            }
        }
        Recalled { rows: rows.into_iter().skip(skip as usize).collect(), all }
    }

    fn best_first(&self, a: &(u32, f64, usize), b: &(u32, f64, usize)) -> Ordering {
        let valid = (a.2 > 0).cmp(&(b.2 > 0));
        // Sums that differ by no more than their rounding are one score.
        let rounded = |score: f64| (score * 1e6).round();
        let score = rounded(b.1).total_cmp(&rounded(a.1));
        valid.then(score).then(self.whole(b.0, "time").cmp(&self.whole(a.0, "time"))).then(a.0.cmp(&b.0))
    }

    fn noun_layer(&self, noun: Noun) -> &'static str {
        noun.layer().map_or("", |layer| layer.as_str())
    }

    fn is_visible(&self, id: u32, clauses: &Clauses, standing: &Standing) -> bool {
        let scope = clauses.scope.as_ref().map(|scope| &scope.node);
        let theme = self.layer(id) == "theme";
        let everywhere = theme && self.cell(id, "episode").is_none();
        let in_scope = self.in_scope(id, scope) || everywhere;
        let active = self.is(id, "active") || includes(clauses, FlawKind::Inactive);
        let own = texts(self.cell(id, "episode")).into_iter().next();
        let ahead = !theme
            && standing.episode.is_some()
            && own == standing.episode
            && (standing.step.zip(self.whole(id, "step")).is_some_and(|(reader, item)| item > reader)
                || standing.time.zip(self.whole(id, "time")).is_some_and(|(reader, item)| item > reader));
        in_scope && active && !self.is(id, "redacted") && !ahead
    }

    /// How many tests keep an item out.
    fn exclusions(&self, id: u32, clauses: &Clauses, standing: &Standing) -> usize {
        let excluded: Vec<&Flaw> =
            clauses.exclude.iter().flat_map(|flaws| flaws.node.iter().map(|flaw| &flaw.node)).collect();
        let mut count = 0;
        let named = |kind| excluded.iter().find(|flaw| flaw.kind == kind);
        if !includes(clauses, FlawKind::Failed) && named(FlawKind::Failed).is_none() {
            count += usize::from(self.text(id, "status") == Some("failed"));
        }
        let window_has_version = |flaw: &&&Flaw| {
            flaw.window.is_empty() || flaw.window.iter().any(|bound| matches!(bound.node, Bound::Version))
        };
        let version_is_named = named(FlawKind::Stale).filter(window_has_version).is_some();
        if !includes(clauses, FlawKind::Stale) && !version_is_named {
            count += usize::from(self.is_foreign(id, standing));
        }
        count + excluded.iter().filter(|flaw| self.has_flaw(id, flaw, standing)).count()
    }

    /// Whether one item leads to another along the links of coarse-to-fine recall.
    fn leads(&self, from: u32, to: u32, visible: &BTreeSet<u32>) -> bool {
        let edge = |from: u32, name: &str, to: u32| self.edges.contains(&(from, name_of(name), to));
        let routes = |item: u32, theme: u32| {
            edge(item, "parent", theme)
                || self.text(theme, "kind") == Some("concept") && edge(item, "mentions", theme)
                || self.text(theme, "kind") == Some("intent") && edge(item, "solves", theme)
        };
        let routes_up =
            |item: u32, theme: u32| ["parent", "mentions", "solves"].iter().any(|name| edge(item, name, theme));
        let rests = |item: u32, source: u32| edge(item, "derived-from", source) || edge(item, "cites", source);
        match (self.layer(from), self.layer(to)) {
            ("theme", "recall") => routes(to, from),
            ("recall", "theme") => routes_up(from, to),
            ("recall", "trace") => self.grounds(from, visible).contains(&to),
            ("theme", "trace") => visible
                .iter()
                .filter(|recall| self.layer(**recall) == "recall" && routes(**recall, from))
                .any(|recall| self.grounds(*recall, visible).contains(&to)),
            ("recall", "recall") => {
                rests(from, to) || rests(to, from) || edge(from, "sibling", to) || edge(to, "sibling", from)
            }
            ("trace", "recall") => rests(to, from),
            _ => false,
        }
    }

    /// The visible traces an item rests on, through visible recalls in between.
    fn grounds(&self, recall: u32, visible: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut reached = BTreeSet::from([recall]);
        loop {
            let next: BTreeSet<u32> = self
                .edges
                .iter()
                .filter(|(from, edge, to)| {
                    let walks = *from == recall || self.layer(*from) != "trace";
                    matches!(*edge, "derived-from" | "cites") && walks && reached.contains(from) && visible.contains(to)
                })
                .map(|(_, _, to)| *to)
                .filter(|to| !reached.contains(to))
                .collect();
            if next.is_empty() {
                return reached.into_iter().filter(|id| self.layer(*id) == "trace").collect();
            }
            reached.extend(next);
        }
    }

    /// S of each item, less what is taken off for relaxed tests; and the weight of status, which that is measured by.
    fn score(
        &self,
        recall: &Recall,
        standing: &Standing,
        layer: &str,
        ids: &[u32],
        lifts: bool,
        visible: &BTreeSet<u32>,
    ) -> Vec<(u32, f64, f64)> {
        let weights = Weights::of(recall.clauses.score.as_ref().map(|score| &score.node));
        let citing = |id: u32| -> Vec<u32> {
            if !(lifts && layer == "trace") {
                return Vec::new();
            }
            let rests = |recall: &u32| {
                self.edges.contains(&(*recall, "derived-from", id)) || self.edges.contains(&(*recall, "cites", id))
            };
            visible.iter().copied().filter(|recall| self.layer(*recall) == "recall" && rests(recall)).collect()
        };
        let words = |id: u32| {
            recall.query.words().map_or(0.0, |text| {
                let lent: Vec<&Row> = citing(id).iter().map(|recall| &self.items[*recall as usize]).collect();
                self.bm25_of(layer, text, &self.items[id as usize], &lent)
            })
        };
        let best = ids.iter().map(|id| words(*id)).fold(0.0, f64::max);
        let similarity = |id: u32| {
            let Some(query) = recall.query.vector() else { return 0.0 };
            let all = [id].into_iter().chain(citing(id));
            let cosines =
                all.filter_map(|id| Some(cosine(&query.components, self.items[id as usize].vector.as_ref()?)));
            cosines.reduce(f64::max).unwrap_or(0.0)
        };
        let of = |id: &u32| {
            let halvings = match weights.half_life {
                HalfLife::Clock(length) => standing
                    .time
                    .zip(self.whole(*id, "time"))
                    .map(|(now, then)| (now - then).max(0) as f64 / length as f64),
                HalfLife::Steps(length) => self.step_distance(*id, standing).map(|steps| steps as f64 / length as f64),
            };
            let status = match self.text(*id, "status") {
                Some("unknown") => -0.1,
                Some("failed") => -1.0,
                _ => 0.0,
            };
            let source = self
                .text(*id, "source")
                .map_or(0.0, |name| f64::from(name.parse::<Source>().expect("a source").weight()));
            let utility = self.cell(*id, "utility").and_then(number).unwrap_or(0.0);
            let share = if best > 0.0 { words(*id) / best } else { 0.0 };
            let score = weights.similarity * similarity(*id)
                + weights.words * share
                + weights.recency * halvings.map_or(0.0, |halvings| (-halvings).exp2())
                + weights.status * status
                + weights.source * source
                + weights.utility * utility;
            (*id, score, weights.status)
        };
        ids.iter().map(of).collect()
    }

    /// BM25 of every item of a layer.
    fn bm25(&self, layer: &str, query: &str) -> BTreeMap<u32, f64> {
        let of_layer = self.ids().filter(|id| self.layer(*id) == layer);
        of_layer.map(|id| (id, self.bm25_of(layer, query, &self.items[id as usize], &[]))).collect()
    }

    /// BM25 of an item with what others lend it, with the statistics of a layer: k1 1.2, b 0.75.
    fn bm25_of(&self, layer: &str, query: &str, row: &Row, lent: &[&Row]) -> f64 {
        let documents: Vec<&Row> =
            self.ids().filter(|id| self.layer(*id) == layer).map(|id| &self.items[id as usize]).collect();
        let count = documents.len() as f64;
        let average = documents.iter().map(|row| row.words.len()).sum::<usize>() as f64 / count;
        let all: Vec<&String> = row.words.iter().chain(lent.iter().flat_map(|row| &row.words)).collect();
        let terms: BTreeSet<&str> = query.split_whitespace().collect();
        let of_term = |term: &&str| {
            let df = documents.iter().filter(|row| row.words.iter().any(|word| word == term)).count() as f64;
            let idf = (1.0 + (count - df + 0.5) / (df + 0.5)).ln();
            let weight = query.split_whitespace().filter(|word| word == term).count() as f64;
            let f = all.iter().filter(|word| word.as_str() == *term).count() as f64;
            weight * idf * 2.2 * f / (f + 1.2 * (0.25 + 0.75 * all.len() as f64 / average))
        };
        terms.iter().map(of_term).sum()
    }
}

enum HalfLife {
    Clock(i64),
    Steps(u64),
}

struct Weights {
    similarity: f64,
    words: f64,
    recency: f64,
    status: f64,
    source: f64,
    utility: f64,
    half_life: HalfLife,
}

impl Weights {
    fn of(score: Option<&Score>) -> Weights {
        let half_life = HalfLife::Clock(DAY);
        let mut weights =
            Weights { similarity: 1.0, words: 1.0, recency: 1.0, status: 10.0, source: 1.0, utility: 0.0, half_life };
        let Some(score) = score else { return weights };
        assert!(score.base == ScoreBase::Zero, "weights are named");
        (weights.similarity, weights.words, weights.recency, weights.status, weights.source) =
            (0.0, 0.0, 0.0, 0.0, 0.0);
        for term in &score.terms {
            let weight = *term.node.weight.node.bound();
            match term.node.part.node {
                Part::Similarity => weights.similarity = weight,
                Part::Words => weights.words = weight,
                Part::Recency => weights.recency = weight,
                Part::Status => weights.status = weight,
                Part::Source => weights.source = weight,
                Part::Utility => weights.utility = weight,
                part => panic!("no statement weighs {part}"),
            }
            match term.node.half_life.as_ref().map(|half_life| &half_life.node) {
                Some(Interval::Clock(length)) => weights.half_life = HalfLife::Clock(length.micros() as i64),
                Some(Interval::Steps(length)) => weights.half_life = HalfLife::Steps(*length.node.bound()),
                None => {}
            }
        }
        weights
    }
}

/// The channels of a stage that is written and names none.
fn written_channels(nth: usize) -> Vec<Channel> {
    if nth == 0 { vec![Channel::Near, Channel::Words] } else { vec![Channel::Linked, Channel::Near] }
}

/// The channels of the path that is taken when none is written.
fn default_channels(nth: usize) -> Vec<Channel> {
    if nth == 0 { vec![Channel::Near, Channel::Words] } else { vec![Channel::Linked, Channel::Near, Channel::Words] }
}

fn includes(clauses: &Clauses, kind: FlawKind) -> bool {
    clauses.include.iter().flat_map(|flaws| &flaws.node).any(|flaw| flaw.node.kind == kind)
}

fn name_of(name: &str) -> &'static str {
    name.parse::<Edge>().expect("an edge").as_str()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn cut(ids: Vec<u32>, limit: Option<&Spanned<Limit>>) -> Vec<u32> {
    let Some(limit) = limit else { return ids };
    let skip = limit.node.skip.as_ref().map_or(0, |skip| *skip.node.bound());
    ids.into_iter().skip(skip as usize).take(*limit.node.count.node.bound() as usize).collect()
}

/// The texts of a cell: its own, or those of a list.
fn texts(cell: Option<&Cell>) -> Vec<String> {
    match cell {
        None => Vec::new(),
        Some(Cell::List(cells)) => cells.iter().map(ToString::to_string).collect(),
        Some(cell) => vec![cell.to_string()],
    }
}

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(number) => Some(*number),
        Cell::Integer(number) => Some(*number as f64),
        _ => None,
    }
}

/// How two cells of one sort compare.
fn compared(a: &Cell, b: &Cell) -> Option<Ordering> {
    match (a, b) {
        (Cell::Text(a), Cell::Text(b)) => Some(a.cmp(b)),
        (Cell::Time(a), Cell::Time(b)) | (Cell::Duration(a), Cell::Duration(b)) => Some(a.cmp(b)),
        (Cell::Bool(a), Cell::Bool(b)) => Some(a.cmp(b)),
        (Cell::List(a), Cell::List(b)) => {
            let first = a.iter().zip(b).filter_map(|(a, b)| compared(a, b)).find(|order| order.is_ne());
            Some(first.unwrap_or_else(|| a.len().cmp(&b.len())))
        }
        (Cell::List(_), one) => compared(a, &Cell::List(vec![one.clone()])),
        (one, Cell::List(_)) => compared(&Cell::List(vec![one.clone()]), b),
        _ => number(a)?.partial_cmp(&number(b)?),
    }
}

/// Whether a cell stands so to a value. A list does when one of its members does.
fn compares(cell: &Cell, op: Op, value: &Value) -> bool {
    if let Cell::List(cells) = cell {
        return cells.iter().any(|cell| compares(cell, op, value));
    }
    let order = match (cell, value) {
        (Cell::Time(at), Value::Text(text)) => holotype::time::parse(text).ok().map(|time| at.cmp(&time)),
        (Cell::Time(at), Value::Number(micros)) => micros.as_i64().map(|micros| at.cmp(&micros)),
        (Cell::Duration(length), Value::Duration(with)) => Some(length.cmp(&(with.micros() as i64))),
        (Cell::Bool(yes), Value::Bool(with)) => Some(yes.cmp(with)),
        (Cell::Text(text), Value::Text(with)) => Some(text.cmp(with)),
        (Cell::Text(text), Value::Word(name)) => Some(text.cmp(&name.0.join("."))),
        (Cell::Text(text), Value::Number(with)) => {
            text.trim().parse().ok().and_then(|it: f64| it.partial_cmp(&with.as_f64()))
        }
        (cell, Value::Number(with)) => number(cell).and_then(|it| it.partial_cmp(&with.as_f64())),
        _ => None,
    };
    match op {
        Op::Eq => order == Some(Ordering::Equal),
        Op::Ne => order != Some(Ordering::Equal),
        Op::Lt => order == Some(Ordering::Less),
        Op::Le => order.is_some_and(Ordering::is_le),
        Op::Gt => order == Some(Ordering::Greater),
        Op::Ge => order.is_some_and(Ordering::is_ge),
    }
}

/// Whether a glob matches a text of plain letters.
fn matches(glob: &[u8], text: &[u8]) -> bool {
    match (glob.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => matches(&glob[1..], text) || !text.is_empty() && matches(glob, &text[1..]),
        (Some(b'?'), Some(_)) => matches(&glob[1..], &text[1..]),
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b) && matches(&glob[1..], &text[1..]),
        _ => false,
    }
}
