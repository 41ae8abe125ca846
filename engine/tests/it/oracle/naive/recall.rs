//! Recall, stage by stage: each stage looks at every item.

use super::values::texts;
use super::{Exported, ReaderPosition, Recalled};
use holotype::Edge;
use holotype::query::plan::{Bound, Clauses, Flaw, Predicate, Recall, Stage};
use holotype::query::{Channel, FlawKind, Noun};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

/// The pool of a stage is larger than any of these databases.
const STAGES: [(Noun, u64); 3] = [(Noun::Themes, 3), (Noun::Recalls, 5), (Noun::Traces, 5)];
/// Sums that differ by less may come out in another order.
const ALIKE: f64 = 1e-4;

/// An item with its score and the number of tests it failed.
type Scored = (u32, f64, usize);

/// A stage as it is walked.
struct Step<'r> {
    noun: Noun,
    /// The number of rows that it gives, and of pages or episodes that it keeps.
    rows: u64,
    places: Option<u64>,
    channels: Vec<Channel>,
    only: Option<&'r Predicate>,
    /// The number of places, and of their votes.
    lift: Option<(u64, u64)>,
}

impl Step<'_> {
    fn is_of_places(&self) -> bool {
        matches!(self.noun, Noun::Pages | Noun::Episodes)
    }

    fn layers(&self) -> Vec<&'static str> {
        match self.noun {
            Noun::Items => vec!["trace", "recall", "theme"],
            Noun::Pages | Noun::Episodes => vec!["trace"],
            noun => vec![noun.layer().map_or("", |layer| layer.as_str())],
        }
    }
}

/// Steps that are walked again and again: from, to, how often, how many rows hand on their text.
type Group = (usize, usize, u64, u64);

/// A walk through the stages.
struct Walk<'w> {
    recall: &'w Recall,
    standing: ReaderPosition,
    visible: BTreeSet<u32>,
    steps: Vec<Step<'w>>,
    groups: Vec<Group>,
    lends: bool,
    relaxed: bool,
    /// The items that the last stage routes from; true for those with a rank or a lift.
    before: BTreeMap<u32, bool>,
    best: Vec<u32>,
    ranked: Vec<Vec<Scored>>,
    /// Something hung on which of two items with nearly the same score comes first.
    is_close: bool,
}

impl Exported {
    pub(crate) fn recall(&self, recall: &Recall) -> Recalled {
        let clauses = &recall.clauses;
        let scope = clauses.scope.as_ref();
        let standing = self.standing(scope, clauses.reader.as_ref());
        let (limit, skip, budget) = (clauses.limit, clauses.skip, clauses.budget);
        let default = |least: u64| if budget.is_some() { u64::MAX } else { (limit.unwrap_or(0) + skip).max(least) };
        let (steps, groups) = steps(clauses, default, budget.is_some());
        let recalls_at = steps.iter().position(|step| step.layers().contains(&"recall"));
        let lends = recalls_at.is_some_and(|at| {
            steps[at..].iter().any(|step| step.layers().contains(&"trace") && step.channels.contains(&Channel::Linked))
        });
        let visible: BTreeSet<u32> = self.ids().filter(|id| self.is_visible(*id, clauses, &standing)).collect();
        let mut walk = Walk {
            recall,
            standing,
            visible,
            ranked: Vec::new(),
            steps,
            groups,
            lends,
            relaxed: false,
            before: BTreeMap::new(),
            best: Vec::new(),
            is_close: false,
        };
        self.walk_stages(&mut walk);
        let relax_below = clauses.relax_below.unwrap_or(0);
        let any_exclusion = self.ids().any(|id| self.exclusions(id, clauses, &walk.standing) > 0);
        if (walk.ranked.iter().map(Vec::len).sum::<usize>() as u64) < relax_below && any_exclusion {
            walk.relaxed = true;
            self.walk_stages(&mut walk);
        }
        let mut merged: Vec<(Scored, Vec<usize>)> = Vec::new();
        for (stage, rows) in walk.ranked.iter().enumerate() {
            for row in rows {
                match merged.iter_mut().find(|known| known.0.0 == row.0) {
                    None => merged.push((*row, vec![stage])),
                    Some(known) => {
                        known.1.push(stage);
                        if self.best_first(row, &known.0).is_lt() {
                            known.0 = *row;
                        }
                    }
                }
            }
        }
        merged.sort_by(|a, b| self.best_first(&a.0, &b.0));
        let all: Vec<(u32, f64)> = merged.iter().map(|(row, _)| (row.0, row.1)).collect();
        if budget.is_some() {
            let traces: BTreeSet<u32> = all.iter().map(|row| row.0).filter(|id| self.layer(*id) == "trace").collect();
            merged.retain(|((id, ..), _)| {
                self.layer(*id) != "recall" || !self.sources(*id).iter().any(|source| traces.contains(source))
            });
            // The rows that fit depend on those taken before.
            walk.is_close |= merged.windows(2).any(|pair| pair[0].0.1 - pair[1].0.1 < ALIKE);
        }
        let mut left: Vec<u64> = walk.steps.iter().map(|step| step.rows).collect();
        let mut tokens = budget.unwrap_or(u64::MAX);
        let mut rows = Vec::new();
        for ((id, ..), of) in merged {
            if limit.is_some_and(|limit| rows.len() as u64 >= limit + skip) || tokens == 0 {
                break;
            }
            let cost = if budget.is_some() { self.whole(id, "tokens").unwrap_or(0) as u64 } else { 0 };
            if cost <= tokens && of.iter().any(|stage| left[*stage] > 0) {
                of.iter().for_each(|stage| left[*stage] = left[*stage].saturating_sub(1));
                tokens -= cost;
                rows.push(id);
            }
        }
        Recalled { rows: rows.into_iter().skip(skip as usize).collect(), all, is_close: walk.is_close }
    }

    fn walk_stages(&self, walk: &mut Walk<'_>) {
        walk.before = BTreeMap::new();
        walk.best = Vec::new();
        walk.ranked = vec![Vec::new(); walk.steps.len()];
        let text = walk.recall.query.words().map(str::to_owned);
        let mut at = 0;
        while at < walk.steps.len() {
            let Some((from, to, hops, carry)) = walk.groups.iter().copied().find(|group| group.0 == at) else {
                self.stage(walk, at, text.as_deref());
                at += 1;
                continue;
            };
            let mut asked = text.clone();
            for _ in 0..hops {
                let known: usize = walk.ranked.iter().map(Vec::len).sum();
                (from..to).for_each(|at| self.stage(walk, at, asked.as_deref()));
                if walk.ranked.iter().map(Vec::len).sum::<usize>() == known {
                    break;
                }
                let mut more = text.clone().unwrap_or_default();
                for id in walk.best.iter().take(carry as usize) {
                    more = more + "\n" + self.text(*id, "text").unwrap_or_default();
                }
                walk.is_close |= self.is_close_cut(walk, to - 1, carry);
                asked = Some(more);
            }
            at = to;
        }
    }

    /// True if a stage's first items could be others if scores were added up in another order.
    fn is_close_cut(&self, walk: &Walk<'_>, at: usize, count: u64) -> bool {
        let ranked = &walk.ranked[at];
        let count = count.min(walk.steps[at].rows) as usize;
        ranked.windows(2).take(count).any(|pair| (pair[0].1 - pair[1].1).abs() < ALIKE)
    }

    fn stage(&self, walk: &mut Walk<'_>, at: usize, text: Option<&str>) {
        let clauses = &walk.recall.clauses;
        let step = &walk.steps[at];
        let layers = step.layers();
        let is_on_way = |id: u32| match (step.only, step.lift) {
            _ if !layers.contains(&self.layer(id)) => false,
            (only, None) if step.is_of_places() => self.place(id, step.noun).is_some_and(|place| {
                let row = self.place_row(step.noun, place);
                only.is_none_or(|only| super::holds(&|name| row.get(name).cloned(), &|_| false, only))
            }),
            (_, Some(_)) if step.is_of_places() => true,
            (only, _) => self.is_of(id, step.noun) && only.is_none_or(|only| self.holds(id, only, &walk.standing)),
        };
        let route: BTreeSet<u32> = walk.visible.iter().copied().filter(|id| is_on_way(*id)).collect();
        let last = at + 1 == walk.steps.len();
        let may_be_row = |id: u32| {
            (last || self.layer(id) != "theme" && !step.is_of_places())
                && clauses.filter.as_ref().is_none_or(|filter| self.holds(id, filter, &walk.standing))
                && (walk.relaxed || self.exclusions(id, clauses, &walk.standing) == 0)
        };
        let mut is_close = false;
        let (routed, rows, of_place) = if let Some((count, votes)) = step.lift {
            let (found, close) = self.lifted(walk, step.noun, count, votes);
            is_close |= close;
            let routed: BTreeSet<u32> = found.into_iter().filter(|id| route.contains(id)).collect();
            let rows: Vec<u32> = routed.iter().copied().filter(|id| may_be_row(*id)).collect();
            let of_place = routed.clone();
            (routed, rows, of_place)
        } else {
            let (mut routed, mut of_place) = self.found(walk, step, &route, text);
            let mut rows: Vec<u32> = routed.iter().copied().filter(|id| may_be_row(*id)).collect();
            if let Some(most) = step.places {
                let mut kept = |candidates: &[u32]| {
                    let scored = self.scored(walk, &layers, candidates);
                    let (places, close) = self.best_places(&scored, step.noun, most);
                    is_close |= close;
                    let stands = |id: &u32| self.place(*id, step.noun).is_some_and(|place| places.contains(place));
                    route.iter().copied().filter(stands).collect::<BTreeSet<u32>>()
                };
                let all: Vec<u32> = routed.iter().copied().collect();
                let of_rows = kept(&rows);
                routed = kept(&all);
                rows = of_rows.into_iter().filter(|id| may_be_row(*id)).collect();
                of_place = routed.clone();
            }
            (routed, rows, of_place)
        };
        let scored = self.scored(walk, &layers, &rows);
        walk.is_close |= is_close;
        walk.best = scored.iter().take(step.rows.min(1 << 20) as usize).map(|row| row.0).collect();
        if walk.best.is_empty() {
            walk.best = routed.iter().copied().collect();
        }
        let known = &mut walk.ranked[at];
        let new: Vec<Scored> = scored.into_iter().filter(|row| known.iter().all(|old| old.0 != row.0)).collect();
        known.extend(new);
        known.sort_by(|a, b| self.best_first(a, b));
        walk.before = routed.iter().map(|id| (*id, of_place.contains(id))).collect();
    }

    /// The candidates of a stage's channels, with those that have a rank.
    fn found(
        &self,
        walk: &Walk<'_>,
        step: &Step<'_>,
        route: &BTreeSet<u32>,
        text: Option<&str>,
    ) -> (BTreeSet<u32>, BTreeSet<u32>) {
        let words: BTreeMap<u32, f64> = step
            .layers()
            .iter()
            .flat_map(|layer| text.map(|text| self.bm25(layer, text)).unwrap_or_default())
            .collect();
        let stays = |id: u32| self.layer(id) == "trace" && walk.before.get(&id) == Some(&true);
        let is_linked = |id: u32| stays(id) || walk.before.keys().any(|from| self.leads(*from, id, &walk.visible));
        let is_found = |id: u32| {
            step.channels.iter().any(|channel| match channel {
                Channel::Near => walk.recall.query.vector().is_some() && self.items[id as usize].vector.is_some(),
                Channel::Words => words.get(&id).is_some_and(|score| *score > 0.0),
                Channel::Linked => is_linked(id),
            })
        };
        let routed: BTreeSet<u32> = route.iter().copied().filter(|id| is_found(*id)).collect();
        let linked = step.channels.contains(&Channel::Linked);
        let of_place = routed.iter().copied().filter(|id| linked && stays(*id)).collect();
        (routed, of_place)
    }

    /// The items of some layers with their scores, best first.
    fn scored(&self, walk: &Walk<'_>, layers: &[&str], ids: &[u32]) -> Vec<Scored> {
        let mut scored: Vec<Scored> = Vec::new();
        for layer in layers {
            let of_layer: Vec<u32> = ids.iter().copied().filter(|id| self.layer(*id) == *layer).collect();
            let all = self.score(walk.recall, &walk.standing, layer, &of_layer, walk.lends, &walk.visible);
            scored.extend(all.into_iter().map(|(id, score, status)| {
                let failed = self.exclusions(id, &walk.recall.clauses, &walk.standing);
                (id, score - status * failed as f64, failed)
            }));
        }
        scored.sort_by(|a, b| self.best_first(a, b));
        scored
    }

    /// The pages or episodes of the best items, and whether others would be as good.
    fn best_places(&self, scored: &[Scored], noun: Noun, most: u64) -> (BTreeSet<&str>, bool) {
        let mut places = BTreeSet::new();
        let mut last = f64::INFINITY;
        for (id, score, _) in scored {
            let Some(place) = self.place(*id, noun).filter(|place| !places.contains(place)) else { continue };
            if places.len() as u64 == most {
                return (places, last - score < ALIKE);
            }
            places.insert(place);
            last = *score;
        }
        (places, false)
    }

    /// The traces that the best items of the stage before came from, and whether those items could be others.
    fn lifted(&self, walk: &Walk<'_>, noun: Noun, count: u64, votes: u64) -> (BTreeSet<u32>, bool) {
        let mut voters: BTreeMap<(usize, u32), BTreeSet<u32>> = BTreeMap::new();
        for id in &walk.best {
            let traces: Vec<u32> = match self.layer(*id) {
                "trace" => vec![*id],
                _ => {
                    self.ids().filter(|to| self.layer(*to) == "trace" && self.leads(*id, *to, &walk.visible)).collect()
                }
            };
            for trace in traces {
                let target = match noun {
                    Noun::Pages | Noun::Episodes => {
                        self.place(trace, noun).and_then(|place| self.nth_place(noun, place))
                    }
                    _ => Some((0, trace)),
                };
                if let Some(target) = target {
                    voters.entry(target).or_default().insert(*id);
                }
            }
        }
        let mut targets: Vec<_> = voters.into_iter().filter(|(_, by)| by.len() as u64 >= votes.max(1)).collect();
        targets.sort_by_key(|(target, by)| (Reverse(by.len()), *target));
        targets.truncate(count.min(1 << 20) as usize);
        let stands = |id: &u32| {
            let place = self.place(*id, noun).and_then(|place| self.nth_place(noun, place));
            targets.iter().any(|(target, _)| match noun {
                Noun::Pages | Noun::Episodes => place == Some(*target),
                _ => target.1 == *id,
            })
        };
        let from = walk.ranked.iter().rposition(|ranked| !ranked.is_empty());
        let is_close = from.is_some_and(|at| {
            let ranked = &walk.ranked[at];
            let cut = walk.best.len();
            cut > 0 && cut < ranked.len() && (ranked[cut - 1].1 - ranked[cut].1).abs() < ALIKE
        });
        (self.ids().filter(|id| self.layer(*id) == "trace").filter(stands).collect(), is_close)
    }

    /// The key of the page or the id of the episode that a trace stands in.
    fn place(&self, id: u32, noun: Noun) -> Option<&str> {
        self.text(id, if noun == Noun::Pages { "page" } else { "episode" })
    }

    fn nth_place(&self, noun: Noun, place: &str) -> Option<(usize, u32)> {
        let rows = if noun == Noun::Pages { &self.pages } else { &self.episode_rows };
        let name = if noun == Noun::Pages { "key" } else { "episode" };
        Some((rows.iter().position(|row| row.get(name).is_some_and(|cell| cell.to_string() == place))?, 0))
    }

    fn place_row(&self, noun: Noun, place: &str) -> &super::Cells {
        let (nth, _) = self.nth_place(noun, place).expect("it is listed");
        if noun == Noun::Pages { &self.pages[nth] } else { &self.episode_rows[nth] }
    }

    /// The sources of an item, and the items of a theme, ascending.
    fn sources(&self, id: u32) -> BTreeSet<u32> {
        let rests = |edge: &str| matches!(edge, "derived-from" | "cites");
        let out = self.edges.iter().filter(|(from, edge, _)| *from == id && rests(edge)).map(|edge| edge.2);
        let children = self.edges.iter().filter(|(_, edge, to)| *to == id && *edge == "parent").map(|edge| edge.0);
        out.chain(children.filter(|_| self.layer(id) == "theme")).collect()
    }

    /// The rows with the evidence under each, as `expand` adds it.
    pub(crate) fn expanded(&self, recall: &Recall, seeds: &[u32]) -> Vec<(u32, bool)> {
        let clauses = &recall.clauses;
        let Some(expand) = clauses.expand.as_ref() else {
            return seeds.iter().map(|id| (*id, false)).collect();
        };
        let scope = clauses.scope.as_ref();
        let standing = self.standing(scope, clauses.reader.as_ref());
        let to = expand.noun;
        let is_of_places = matches!(to, Some(Noun::Pages | Noun::Episodes));
        let cost = |id: u32| self.whole(id, "tokens").unwrap_or(0);
        let mut left = expand.within_tokens.unwrap_or(1_500) as i64;
        left = (left - seeds.iter().map(|id| cost(*id)).sum::<i64>()).max(0);
        let mut shown: BTreeSet<u32> = seeds.iter().copied().collect();
        let mut walked = shown.clone();
        let mut evidence: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let mut level: Vec<(usize, u32)> = seeds.iter().copied().enumerate().collect();
        let may = |id: u32| {
            let active = self.is(id, "active") || includes(clauses, FlawKind::Inactive);
            active && !self.is(id, "redacted") && !self.is_ahead(id, &standing)
        };
        for depth in 0.. {
            let mut next = Vec::new();
            for (seed, id) in level {
                let mut show = |id: u32| {
                    let fits = may(id) && cost(id) <= left && shown.insert(id);
                    if fits {
                        left -= cost(id);
                        evidence.entry(seed).or_default().push(id);
                    }
                    fits
                };
                if let (Some(noun), "trace", true) = (to, self.layer(id), is_of_places) {
                    let place = self.place(id, noun);
                    let with = |other: &u32| *other == id || place.is_some() && self.place(*other, noun) == place;
                    for other in self.ids().filter(|other| self.layer(*other) == "trace").filter(with) {
                        show(other);
                    }
                }
                if depth == expand.depth.unwrap_or(3) || self.layer(id) == "trace" {
                    continue;
                }
                for source in self.sources(id) {
                    let is_wanted = to.is_none_or(|noun| !is_of_places && self.is_of(source, noun));
                    let goes_on = if is_wanted { show(source) } else { may(source) };
                    if goes_on && walked.insert(source) {
                        next.push((seed, source));
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        let mut rows = Vec::new();
        for (seed, id) in seeds.iter().enumerate() {
            rows.push((*id, false));
            rows.extend(evidence.remove(&seed).into_iter().flatten().map(|id| (id, true)));
        }
        rows
    }

    fn best_first(&self, a: &Scored, b: &Scored) -> Ordering {
        let valid = (a.2 > 0).cmp(&(b.2 > 0));
        // Sums that differ by no more than their rounding are one score.
        let rounded = |score: f64| (score * 1e6).round();
        let score = rounded(b.1).total_cmp(&rounded(a.1));
        valid.then(score).then(self.whole(b.0, "time").cmp(&self.whole(a.0, "time"))).then(a.0.cmp(&b.0))
    }

    fn is_visible(&self, id: u32, clauses: &Clauses, standing: &ReaderPosition) -> bool {
        let scope = clauses.scope.as_ref();
        let theme = self.layer(id) == "theme";
        let everywhere = theme && self.cell(id, "episode").is_none();
        let in_scope = self.in_scope(id, scope) || everywhere;
        let active = self.is(id, "active") || includes(clauses, FlawKind::Inactive);
        in_scope && active && !self.is(id, "redacted") && !self.is_ahead(id, standing)
    }

    pub(super) fn is_ahead(&self, id: u32, standing: &ReaderPosition) -> bool {
        let own = texts(self.cell(id, "episode")).into_iter().next();
        let by_step = standing.episode.is_some()
            && own == standing.episode
            && standing.step.zip(self.whole(id, "step")).is_some_and(|(reader, item)| item > reader);
        let by_time = standing.until.zip(self.whole(id, "time")).is_some_and(|(until, item)| item > until);
        self.layer(id) != "theme" && (by_step || by_time)
    }

    /// The number of tests that keep an item out.
    fn exclusions(&self, id: u32, clauses: &Clauses, standing: &ReaderPosition) -> usize {
        let excluded: Vec<&Flaw> = clauses.exclude.iter().collect();
        let mut count = 0;
        let named = |kind| excluded.iter().find(|flaw| flaw.kind == kind);
        if !includes(clauses, FlawKind::Failed) && named(FlawKind::Failed).is_none() {
            count += usize::from(self.text(id, "status") == Some("failed"));
        }
        let window_has_version =
            |flaw: &&&Flaw| flaw.window.is_empty() || flaw.window.iter().any(|bound| matches!(bound, Bound::Version));
        let version_is_named = named(FlawKind::Stale).filter(window_has_version).is_some();
        if !includes(clauses, FlawKind::Stale) && !version_is_named {
            count += usize::from(self.is_foreign(id, standing));
        }
        if !includes(clauses, FlawKind::Unsupported) && named(FlawKind::Unsupported).is_none() {
            let lost_support = self.text(id, "support") == Some("unsupported") && !self.is(id, "ungrounded");
            count += usize::from(self.layer(id) == "recall" && lost_support);
        }
        count + excluded.iter().filter(|flaw| self.has_flaw(id, flaw, standing)).count()
    }

    /// True if one item leads to another along the links of coarse-to-fine recall.
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
}

/// The stages that a recall names, or the path that is taken when it names none.
fn steps(clauses: &Clauses, default: impl Fn(u64) -> u64, in_budget: bool) -> (Vec<Step<'_>>, Vec<Group>) {
    let step = |noun, rows, channels| Step { noun, rows, places: None, channels, only: None, lift: None };
    let Some(path) = &clauses.path else {
        let of = |(nth, (noun, least)): (usize, (Noun, u64))| {
            let rows = if noun == Noun::Themes && !in_budget { least } else { default(least) };
            step(noun, rows, default_channels(nth))
        };
        return (STAGES.into_iter().enumerate().map(of).collect(), Vec::new());
    };
    let (mut steps, mut groups) = (Vec::new(), Vec::new());
    let mut flat: Vec<&Stage> = Vec::new();
    for stage in path {
        match stage {
            Stage::Hops(hops) => {
                let from = flat.len();
                flat.extend(&hops.stages);
                groups.push((from, flat.len(), hops.up_to, hops.carry.unwrap_or(3)));
            }
            stage => flat.push(stage),
        }
    }
    for (nth, stage) in flat.into_iter().enumerate() {
        steps.push(match stage {
            Stage::Gather(gather) => {
                let count = gather.count.unwrap_or_else(|| default(5));
                let channels: Vec<Channel> = gather.channels.clone();
                let channels = if channels.is_empty() { written_channels(nth) } else { channels };
                let mut step = step(gather.noun, count, channels);
                step.only = gather.only.as_ref();
                if step.is_of_places() {
                    (step.places, step.rows) = (Some(count), u64::MAX);
                }
                step
            }
            Stage::Lift(lift) => {
                let count = lift.count;
                let mut step = step(lift.noun, count.unwrap_or_else(|| default(5)), vec![Channel::Linked]);
                if step.is_of_places() {
                    step.rows = u64::MAX;
                }
                step.lift = Some((count.unwrap_or(u64::MAX), lift.votes.unwrap_or(1)));
                step
            }
            Stage::Hops(_) => unreachable!("groups are flat"),
        });
    }
    (steps, groups)
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
    clauses.include.iter().any(|flaw| flaw.kind == kind)
}

fn name_of(name: &str) -> &'static str {
    name.parse::<Edge>().expect("an edge").as_str()
}
