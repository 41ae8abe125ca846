//! The model: rows in vectors, and every rule of provenance said once more, as plainly as it can be, from scratch.

use holotype::{Edge, Kind, Layer, Source, Status, Support};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(crate) struct MItem {
    pub(crate) kind: Kind,
    pub(crate) key: Option<String>,
    pub(crate) text: String,
    pub(crate) episode: Option<usize>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) version: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) source: Option<Source>,
    pub(crate) page: Option<usize>,
    pub(crate) active: bool,
    pub(crate) ungrounded: bool,
    pub(crate) utility: f32,
    pub(crate) pointers: Vec<MPointer>,
    pub(crate) vector: bool,
    pub(crate) tokens: u64,
}

impl MItem {
    /// An active item that says nothing but its kind and text.
    pub(crate) fn new(kind: Kind, text: String) -> Self {
        MItem {
            kind,
            key: None,
            tokens: text.chars().count().div_ceil(4) as u64,
            text,
            episode: None,
            step: None,
            time: None,
            version: None,
            status: None,
            source: None,
            page: None,
            active: true,
            ungrounded: false,
            utility: 0.0,
            pointers: Vec::new(),
            vector: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MPointer {
    Span(usize, u64, u64),
    Page(usize),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MEpisode {
    pub(crate) id: String,
    pub(crate) version: Option<String>,
    pub(crate) open: bool,
    pub(crate) pages: usize,
    pub(crate) open_page: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct MPage {
    pub(crate) key: String,
    pub(crate) episode: usize,
    pub(crate) traces: Vec<usize>,
    pub(crate) summarised: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) items: Vec<MItem>,
    pub(crate) keys: BTreeMap<String, usize>,
    pub(crate) edges: BTreeSet<(usize, u8, usize)>,
    pub(crate) episodes: Vec<MEpisode>,
    pub(crate) pages: Vec<MPage>,
    pub(crate) traces: BTreeSet<(String, String, u64)>,
    pub(crate) claims: Vec<MClaim>,
    pub(crate) page_tokens: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct MClaim {
    pub(crate) item: usize,
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) global: bool,
}

/// The attributes that an item inherits from its sources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Derived {
    pub(crate) status: Option<Status>,
    pub(crate) source: Option<Source>,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<i64>,
    pub(crate) version: Option<String>,
    pub(crate) first_episode: Option<usize>,
    pub(crate) episodes: BTreeSet<usize>,
    pub(crate) support: Support,
    pub(crate) trust: f32,
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
    pub(crate) fn derive(&self) -> Vec<Derived> {
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
            let lost_support = source.support == Support::Unsupported && !item.ungrounded;
            !item.active || source.status == Some(Status::Failed) || lost_support
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
        let statuses = || active.iter().filter_map(|(_, source)| source.status);
        let worst_valid = statuses().filter(|status| *status != Status::Failed).max();
        of.status = stated.status.or(worst_valid).or(statuses().max());
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

    /// The leader that contradicts the first claim of an item that has one.
    pub(crate) fn conflict(&self, id: usize, derived: &[Derived]) -> Option<usize> {
        if !self.items[id].active {
            return None;
        }
        self.claims.iter().filter(|claim| claim.item == id).find_map(|claim| self.leader_over(claim, derived))
    }

    fn leader_over(&self, claim: &MClaim, derived: &[Derived]) -> Option<usize> {
        let shares_scope = |other: &MClaim| {
            let (a, b) = (&derived[claim.item], &derived[other.item]);
            let is_global = claim.global && other.global;
            other.name == claim.name && a.version == b.version && (is_global || a.first_episode == b.first_episode)
        };
        let status = |claim: &MClaim| derived[claim.item].status.unwrap_or(Status::Unknown);
        let belief = |(number, claim): &(usize, &MClaim)| {
            let of = &derived[claim.item];
            let is_trace = self.items[claim.item].kind.layer() == Layer::Trace;
            let grounded = is_trace || of.support == Support::Supported;
            (std::cmp::Reverse(status(claim)), of.time, of.step, grounded, claim.item, *number)
        };
        let is_preferred = |other: &MClaim| {
            let (a, b) = (&derived[other.item], &derived[claim.item]);
            match status(other).cmp(&status(claim)) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Greater => false,
                std::cmp::Ordering::Equal => match (a.time, b.time) {
                    (Some(a), Some(b)) if a != b => a > b,
                    _ => a.first_episode == b.first_episode && a.step > b.step,
                },
            }
        };
        let cites = |a: usize, b: usize| {
            let (older, newer) = (a.min(b), a.max(b));
            let names = [Edge::Cites, Edge::DerivedFrom, Edge::Supersedes];
            names.iter().any(|edge| self.edges.contains(&(newer, edge.to_byte(), older)))
        };
        let active = |(_, other): &(usize, &MClaim)| self.items[other.item].active;
        let mut others: Vec<(usize, &MClaim)> = self.claims.iter().enumerate().filter(active).collect();
        others.sort_by_key(|other| std::cmp::Reverse(belief(other)));
        for (_, other) in others {
            if other.item == claim.item || !shares_scope(other) {
                continue;
            }
            if other.value == claim.value || !is_preferred(other) {
                return None;
            }
            if !cites(other.item, claim.item) {
                return Some(other.item);
            }
        }
        None
    }

    fn trust(&self, id: usize) -> f32 {
        let grounds = self.grounds(id);
        if grounds.iter().any(|trace| self.items[*trace].status == Some(Status::Failed)) {
            return 0.0;
        }
        let weights = grounds.iter().filter_map(|trace| self.items[*trace].source).map(Source::weight);
        weights.reduce(f32::min).unwrap_or(0.0)
    }

    pub(crate) fn item(&self, number: u8) -> Option<usize> {
        (!self.items.is_empty()).then(|| usize::from(number) % self.items.len())
    }

    /// A span of an item's text from three random numbers, valid or not.
    pub(crate) fn span(&self, (item, start, end): (u8, u8, u8)) -> Option<(usize, u64, u64)> {
        let id = self.item(item)?;
        let len = self.items[id].text.len() as u64;
        let (start, end) = (u64::from(start) % (len + 2), u64::from(end) % (len + 2));
        Some((id, start.min(end), start.max(end)))
    }

    pub(crate) fn resolves(&self, (id, start, end): (usize, u64, u64)) -> bool {
        let text = &self.items[id].text;
        let inside = end <= text.len() as u64;
        self.items[id].kind.layer() != Layer::Theme
            && inside
            && text.is_char_boundary(start as usize)
            && text.is_char_boundary(end as usize)
    }

    pub(crate) fn episode(&mut self, number: u8) -> usize {
        let id = format!("e{number}");
        match self.episodes.iter().position(|episode| episode.id == id) {
            Some(at) => at,
            None => {
                self.episodes.push(MEpisode { id, open: true, ..MEpisode::default() });
                self.episodes.len() - 1
            }
        }
    }

    pub(crate) fn close_page(&mut self, episode: usize) {
        let row = &mut self.episodes[episode];
        row.pages += 1;
        let traces = std::mem::take(&mut row.open_page);
        let key = format!("{}/p{}", row.id, row.pages);
        for trace in &traces {
            self.items[*trace].page = Some(self.pages.len());
        }
        self.pages.push(MPage { key, episode, traces, summarised: false });
    }

    pub(crate) fn add_pointer(&mut self, id: usize, pointer: MPointer) {
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

    /// True if one item may be linked to another, by the rules of provenance.
    pub(crate) fn may_link(&self, from: usize, edge: Edge, to: usize) -> bool {
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

    /// The default position of a reader of an episode: its newest step and time, and the version there.
    pub(crate) fn reader(&self, episode: usize) -> (Option<u64>, Option<i64>, Option<String>) {
        let traces: Vec<&MItem> = self
            .items
            .iter()
            .filter(|item| item.kind.layer() == Layer::Trace && item.episode == Some(episode))
            .collect();
        let step = traces.iter().filter_map(|trace| trace.step).max();
        let time = traces.iter().filter_map(|trace| trace.time).max();
        let mut versions: Vec<(Option<u64>, &String)> =
            traces.iter().filter_map(|trace| Some((trace.step, trace.version.as_ref()?))).collect();
        versions.sort_by_key(|(step, _)| *step);
        let last = &versions[versions.len().saturating_sub(10)..];
        let count = |version: &String| last.iter().filter(|(_, other)| *other == version).count();
        let prevailing = last.iter().map(|(_, version)| *version).max_by_key(|version| count(version)).cloned();
        (step, time, self.episodes[episode].version.clone().or(prevailing))
    }
}
