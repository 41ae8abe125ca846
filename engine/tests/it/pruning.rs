//! `prune` against a naive account of HELM's Algorithm 6 on generated memories: layer after layer, the rules applied by
//! going over all items again and again, near duplicates by textbook complete linkage over all pairs. Only the standing
//! of items (status, support, links) is read from the database.

use crate::random::Random;
use holotype::answer::{Output, Table};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{
    Durability, Edge, Holotype, ItemAttributes, ItemId, Kind, Layer, Mark, NewRecall, NewTrace, Options, Pointer,
    Snapshot, Source, Space, Status, Support, Transaction,
};
use holotype_storage::vfs::SimVfs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CLOCK: i64 = 1_770_000_000_000_000;
const DAY: i64 = 86_400_000_000;

fn vector(random: &mut Random) -> Vec<f32> {
    vec![1.0 + random.below(6) as f32, random.below(7) as f32 - 3.0, random.below(3) as f32]
}

fn one_item(
    random: &mut Random,
    transaction: &mut Transaction<'_>,
    made: &[(ItemId, Kind)],
    nth: u64,
) -> (ItemId, Kind) {
    let of = |wanted: &dyn Fn(Kind) -> bool| -> Vec<ItemId> {
        made.iter().filter(|(_, kind)| wanted(*kind)).map(|(id, _)| *id).collect()
    };
    let traces = of(&|kind| kind.layer() == Layer::Trace);
    let recalls = of(&|kind| kind.layer() == Layer::Recall);
    let key = format!("k{nth}");
    let vector = random.percent(80).then(|| vector(random));
    let pick = |random: &mut Random, from: &[ItemId]| from[random.below(from.len() as u64) as usize];
    if traces.is_empty() || random.percent(60) {
        let kind = [Kind::Turn, Kind::Call][random.below(2) as usize];
        let mut trace = NewTrace::new(kind, ["e", "f"][random.below(2) as usize], "said").key(key).step(nth * 40);
        trace = trace.time(CLOCK - random.below(12) as i64 * DAY).source(Source::Tool);
        trace = [Status::Success, Status::Unknown, Status::Failed][random.below(6).min(2) as usize % 3..]
            .first()
            .map_or(trace.clone(), |status| trace.status(*status));
        if random.percent(30) {
            trace = trace.version(["v1", "v2", "v2 tools=a", "v2 tools=b", "tools=b"][random.below(5) as usize]);
        }
        trace = vector.into_iter().fold(trace, |trace, vector| trace.vector(vector));
        return (transaction.record(trace).unwrap(), kind);
    }
    if recalls.len() < 2 || random.percent(75) {
        let mut recall = NewRecall::fact("known").key(key);
        let evidence: Vec<ItemId> = traces.iter().chain(&recalls).copied().collect();
        recall = match random.percent(12) {
            true => recall.ungrounded(),
            false => (0..1 + random.below(2))
                .fold(recall, |recall, _| recall.from(Pointer::to_item(pick(random, &evidence)))),
        };
        recall = vector.into_iter().fold(recall, |recall, vector| recall.vector(vector));
        if random.percent(40) {
            recall = recall.utility(random.below(5) as f32 / 2.0 - 1.0);
        }
        return (transaction.remember(recall).unwrap(), Kind::Fact);
    }
    let mut theme = NewRecall::theme("about").key(key);
    for _ in 0..random.below(3) {
        theme = theme.child(transaction_key(transaction, pick(random, &recalls)));
    }
    theme = vector.into_iter().fold(theme, |theme, vector| theme.vector(vector));
    (transaction.remember(theme.ungrounded()).unwrap(), Kind::Theme)
}

fn transaction_key(transaction: &mut Transaction<'_>, id: ItemId) -> String {
    transaction.snapshot().unwrap().key_of(id).unwrap()
}

fn written(random: &mut Random, vfs: &Arc<SimVfs>) -> Holotype {
    let options = Options { clock: Arc::new(FixedClock(CLOCK)), ..Options::with_space(Space::new("test", 3)) };
    let database = Holotype::create_on(Arc::clone(vfs) as _, "/memory.holo", options).unwrap();
    let mut transaction = database.begin().unwrap();
    let mut made = Vec::new();
    for nth in 0..4 + random.below(36) {
        let new = one_item(random, &mut transaction, &made, nth);
        made.push(new);
        let any = made[random.below(made.len() as u64) as usize].0;
        match random.below(14) {
            0 => transaction.deactivate(any, None, None).unwrap(),
            1 => transaction.mark(any, Mark::Status(Status::Failed), None).unwrap(),
            2 => transaction.mark(any, Mark::Utility(random.below(3) as f32, 1), None).unwrap(),
            _ => {}
        }
    }
    transaction.commit(Durability::None).unwrap();
    if random.percent(50) {
        database.checkpoint().unwrap();
    }
    database
}

/// The parts of a `prune` statement.
struct Asked {
    episode: Option<&'static str>,
    step: Option<u64>,
    budgets: BTreeMap<u8, Option<u64>>,
    above: f64,
}

impl Asked {
    fn new(random: &mut Random) -> Asked {
        let episode = random.percent(50).then_some("e");
        let mut budgets = BTreeMap::new();
        for layer in 0..3 {
            if random.percent(80) {
                budgets.insert(layer, random.percent(80).then(|| random.below(9)));
            }
        }
        budgets.entry(0).or_insert(None);
        let step = episode.filter(|_| random.percent(50)).map(|_| random.below(40) * 40);
        Asked { episode, step, budgets, above: [0.9, 0.97, 0.6][random.below(3) as usize] }
    }

    fn statement(&self) -> String {
        let noun = |layer: u8| ["traces", "recalls", "themes"][layer as usize];
        let target = |(layer, keep): (&u8, &Option<u64>)| match keep {
            Some(keep) => format!("{} to {keep}", noun(*layer)),
            None => noun(*layer).to_owned(),
        };
        let targets: Vec<String> = self.budgets.iter().map(target).collect();
        let mut statement = format!("prune {}", targets.join(", "));
        statement += &self.episode.map(|episode| format!(" in episode '{episode}'")).unwrap_or_default();
        statement += &self.step.map(|step| format!(" at step {step}")).unwrap_or_default();
        statement + &format!(" redundant above {}", self.above)
    }
}

/// The naive account.
struct Account<'s> {
    snapshot: &'s Snapshot,
    items: BTreeMap<ItemId, ItemAttributes>,
    gone: BTreeSet<ItemId>,
    rows: Vec<(ItemId, String)>,
    /// Episode, step, time and version of the reader.
    reader: (Option<String>, Option<u64>, Option<i64>, Option<String>),
}

impl<'s> Account<'s> {
    fn new(snapshot: &'s Snapshot, asked: &Asked) -> Account<'s> {
        let items: BTreeMap<ItemId, ItemAttributes> =
            (0..snapshot.len()).map(ItemId).map(|id| (id, snapshot.attributes(id).unwrap())).collect();
        let here: Vec<&ItemAttributes> = items
            .values()
            .filter(|item| item.layer() == Layer::Trace && item.episode.as_deref() == asked.episode)
            .collect();
        let reader = match asked.episode {
            Some(episode) => {
                let last = here.iter().rev().max_by_key(|item| item.step);
                let mut with_version: Vec<_> = here.iter().filter(|item| item.version.is_some()).collect();
                with_version.sort_by_key(|item| item.step);
                let recent = &with_version[with_version.len().saturating_sub(10)..];
                let count = |of: &&&&ItemAttributes| recent.iter().filter(|item| item.version == of.version).count();
                let prevailing = recent.iter().max_by_key(count);
                (
                    Some(episode.to_owned()),
                    asked.step.or(last.and_then(|last| last.step)),
                    here.iter().filter_map(|item| item.time).max(),
                    prevailing.and_then(|item| item.version.clone()),
                )
            }
            None => (
                None,
                None,
                items.values().filter(|item| item.layer() == Layer::Trace).filter_map(|i| i.time).max(),
                None,
            ),
        };
        Account { snapshot, items, gone: BTreeSet::new(), rows: Vec::new(), reader }
    }

    fn is_active(&self, id: ItemId) -> bool {
        self.items[&id].active && !self.gone.contains(&id)
    }

    /// True if an active item derives from this one or cites it.
    fn is_evidence(&self, id: ItemId) -> bool {
        [Edge::Cites, Edge::DerivedFrom]
            .iter()
            .any(|edge| self.snapshot.linking(id, *edge).unwrap().into_iter().any(|near| self.is_active(near)))
    }

    fn is_stale(&self, item: &ItemAttributes) -> bool {
        let (episode, step, time, version) = &self.reader;
        let by_step = episode.is_some()
            && item.episode == *episode
            && matches!((item.step, step), (Some(item), Some(step)) if *step > item + 200);
        let by_time = matches!((item.time, time), (Some(item), Some(time)) if time - item > 7 * DAY);
        let part = |version: &str, at: usize| {
            let is_tools = |word: &&str| word.starts_with("tools=") == (at == 1);
            version.split(' ').find(is_tools).map(str::to_owned)
        };
        let by_version = matches!((&item.version, version), (Some(item), Some(version))
            if (0..2).any(|at| part(item, at).zip(part(version, at)).is_some_and(|(item, mine)| item != mine)));
        by_step || by_time || by_version
    }

    fn flaw(&self, id: ItemId) -> Option<&'static str> {
        let item = &self.items[&id];
        let had_sources = match item.layer() {
            Layer::Trace => false,
            Layer::Recall => !item.ungrounded,
            Layer::Theme => !self.snapshot.linking(id, Edge::Parent).unwrap().is_empty(),
        };
        match () {
            () if item.status == Some(Status::Failed) => Some("failed"),
            () if had_sources && item.support == Support::Unsupported => Some("unsupported"),
            () if self.is_stale(item) => Some("stale"),
            () => None,
        }
    }

    fn is_ahead(&self, item: &ItemAttributes) -> bool {
        let (episode, step, time, _) = &self.reader;
        let later = matches!((item.step, step), (Some(item), Some(step)) if item > *step)
            || matches!((item.time, time), (Some(item), Some(time)) if item > *time);
        episode.is_some() && item.episode == *episode && item.layer() != Layer::Theme && later
    }

    fn candidates(&self, layer: Layer, among: &BTreeSet<ItemId>) -> Vec<ItemId> {
        let is_one = |id: &ItemId| {
            let item = &self.items[id];
            item.layer() == layer && self.is_active(*id) && !item.redacted && among.contains(id) && !self.is_ahead(item)
        };
        self.items.keys().copied().filter(is_one).collect()
    }

    fn retire(&mut self, id: ItemId, because: impl Into<String>) {
        self.gone.insert(id);
        self.rows.push((id, because.into()));
    }

    fn prune(&mut self, layer: Layer, keep: Option<u64>, above: f64, among: &BTreeSet<ItemId>) {
        while let Some((id, flaw)) = self
            .candidates(layer, among)
            .into_iter()
            .filter(|id| !self.is_evidence(*id))
            .find_map(|id| Some((id, self.flaw(id)?)))
        {
            self.retire(id, flaw);
        }
        let left = self.candidates(layer, among);
        let mut redundant = Vec::new();
        for cluster in complete_linkage(self.snapshot, &left, above) {
            let best = cluster
                .iter()
                .copied()
                .max_by(|a, b| self.is_evidence(*a).cmp(&self.is_evidence(*b)).then(self.worth(*a, *b)));
            let best = best.unwrap();
            redundant
                .extend(cluster.into_iter().filter(|id| *id != best && !self.is_evidence(*id)).map(|id| (id, best)));
        }
        for (id, best) in redundant {
            let key = self.snapshot.key_of(best).unwrap();
            self.retire(id, format!("redundant with '{key}'"));
        }
        while keep.is_some_and(|keep| self.candidates(layer, among).len() as u64 > keep) {
            let free = self.candidates(layer, among).into_iter().filter(|id| !self.is_evidence(*id));
            let Some(least) = free.min_by(|a, b| self.worth(*a, *b)) else { break };
            self.retire(least, "over the budget");
        }
    }

    fn worth(&self, a: ItemId, b: ItemId) -> std::cmp::Ordering {
        let (x, y) = (&self.items[&a], &self.items[&b]);
        x.utility.partial_cmp(&y.utility).unwrap().then(x.time.cmp(&y.time)).then(b.cmp(&a))
    }
}

/// Complete linkage by the book: the two clusters whose least alike pair is the most alike merge, again and again.
fn complete_linkage(snapshot: &Snapshot, items: &[ItemId], above: f64) -> Vec<Vec<ItemId>> {
    let vectors: Vec<(ItemId, Vec<f64>)> = items
        .iter()
        .filter_map(|id| Some((*id, snapshot.vector(*id).unwrap()?.into_iter().map(f64::from).collect())))
        .collect();
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let cosine = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (length(a) * length(b));
    let bound = (above * 1e6).round() as i64;
    // The rank of a pair from the bottom: the less alike and the later, the greater.
    let distance = |a: &(ItemId, Vec<f64>), b: &(ItemId, Vec<f64>)| {
        let alike = if a.1 == b.1 { 2_000_000 } else { (cosine(&a.1, &b.1) * 1e6).round() as i64 };
        (alike > bound).then(|| (-alike, a.0.min(b.0), a.0.max(b.0)))
    };
    let mut clusters: Vec<Vec<&(ItemId, Vec<f64>)>> = vectors.iter().map(|one| vec![one]).collect();
    loop {
        let mut nearest: Option<((i64, ItemId, ItemId), usize, usize)> = None;
        for (i, one) in clusters.iter().enumerate() {
            for (j, other) in clusters.iter().enumerate().skip(i + 1) {
                let pairs: Option<Vec<_>> = one.iter().flat_map(|a| other.iter().map(|b| distance(a, b))).collect();
                if let Some(farthest) = pairs.and_then(|pairs| pairs.into_iter().max())
                    && nearest.is_none_or(|(known, ..)| farthest < known)
                {
                    nearest = Some((farthest, i, j));
                }
            }
        }
        let Some((_, i, j)) = nearest else { break };
        let moved = clusters.remove(j);
        clusters[i].extend(moved);
    }
    clusters
        .into_iter()
        .filter(|cluster| cluster.len() > 1)
        .map(|cluster| cluster.iter().map(|one| one.0).collect())
        .collect()
}

fn table(database: &Holotype, statement: &str) -> Table {
    match database.query(statement, &Params::new()).unwrap_or_else(|error| panic!("{statement}: {error}")).remove(0) {
        Output::Table(table) => table,
        other => panic!("{statement}: {other:?}"),
    }
}

/// The rows of a prune: item and reason.
fn rows(table: &Table) -> BTreeSet<(String, String)> {
    let cell = |row: &[Option<holotype::cell::Cell>], at: usize| row[at].as_ref().unwrap().to_string();
    table.rows.iter().map(|row| (cell(row, 1), cell(row, 3))).collect()
}

fn found(database: &Holotype, statement: &str) -> Vec<String> {
    table(database, statement).rows.iter().map(|row| row[0].as_ref().unwrap().to_string()).collect()
}

fn in_scope(database: &Holotype, asked: &Asked) -> BTreeSet<ItemId> {
    let scope = asked.episode.map(|episode| format!(" in episode '{episode}'")).unwrap_or_default();
    let snapshot = database.snapshot();
    let keys = found(database, &format!("find items{scope} return key"));
    keys.iter().map(|key| snapshot.item_named(key).unwrap()).collect()
}

#[test]
fn pruning_is_what_the_naive_account_says_and_the_past_stays() {
    let mut reasons = BTreeMap::new();
    for seed in 1..=250 {
        let mut random = Random(seed * 0x9e37_79b9);
        let vfs = Arc::new(SimVfs::new());
        let database = written(&mut random, &vfs);
        let asked = Asked::new(&mut random);
        let Asked { above, .. } = asked;
        if asked.episode.is_some() && database.query("find items in episode 'e' limit 1", &Params::new()).is_err() {
            continue;
        }
        let snapshot = database.snapshot();
        let among = in_scope(&database, &asked);
        let mut account = Account::new(&snapshot, &asked);
        for (layer, keep) in asked.budgets.iter().rev() {
            account.prune([Layer::Trace, Layer::Recall, Layer::Theme][*layer as usize], *keep, above, &among);
        }
        let expected: BTreeSet<(String, String)> =
            account.rows.iter().map(|(id, because)| (snapshot.key_of(*id).unwrap(), because.clone())).collect();
        let statement = asked.statement();
        let active = "find items where not inactive return key";
        let (before, commit) = (found(&database, active), snapshot.commit());
        assert_eq!(rows(&table(&database, &format!("explain {statement}"))), expected, "{seed}: explain {statement}");
        assert_eq!(found(&database, active), before, "{seed}: an explanation changes nothing");
        assert_eq!(rows(&table(&database, &statement)), expected, "{seed}: {statement}");
        for (_, because) in &expected {
            *reasons.entry(because.split(' ').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
        }
        let after = found(&database, active);
        let left: Vec<String> =
            before.iter().filter(|key| !expected.iter().any(|(gone, _)| gone == *key)).cloned().collect();
        assert_eq!(after, left, "{seed}");
        let past = format!("find items where not inactive as of commit {commit} return key");
        assert_eq!(found(&database, &past), before, "{seed}: the past stays");
        let events = found(&database, &format!("find events where op = prune and commit > {commit} return item"));
        assert_eq!(events.len(), expected.len(), "{seed}");
        drop(snapshot);
        database.close().unwrap();
        let replayed = Holotype::rebuild_all_on(vfs as _, "/memory.holo", Options::default()).unwrap();
        assert_eq!(found(&replayed, active), left, "{seed}: replay");
        assert_eq!(found(&replayed, &past), before, "{seed}: replay");
    }
    assert!(
        ["failed", "unsupported", "stale", "redundant", "over"].iter().all(|reason| reasons.get(*reason) > Some(&40)),
        "{reasons:?}"
    );
}
