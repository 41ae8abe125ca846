//! Memory pages as documents: keyword search over raw pages (TierMem B.5) with a BM25 of their own.
//!
//! ```text
//! score(p) = sum over t of  w_t * idf_t * (k1 + 1) * f / (f + k1 * (1 - b + b * len_p / average))
//! idf_t    = ln(1 + (N - n_t + 1/2) / (n_t + 1/2))
//! ```
//!
//! f is how often t stands in the visible traces of page p, len_p their tokens, N the number of pages in view, n_t how
//! many of them contain t, `average` their mean length. Surfaces do not count: on a page of many lines the form of a
//! word says little. The open page of an episode is a page too, or what was said last could not be found.
//!
//! Cost: one look at each visible trace, and the postings of the query's terms.

use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::read::snapshot::Snapshot;
use crate::recall::words::Words;
use holotype_index::bitmap::Bits;
use holotype_index::words::{B, K1};
use std::collections::BTreeMap;

/// A page in view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PageId {
    /// A closed page, by number.
    Closed(u32),
    /// The open page of an episode, by the number of the episode.
    Open(u32),
}

impl PageId {
    /// The key of a closed page, or `open page of EPISODE`.
    pub(super) fn name(self, snapshot: &Snapshot) -> Result<String> {
        Ok(match self {
            PageId::Closed(number) => snapshot.state.page(number)?.key,
            PageId::Open(episode) => format!("open page of {}", snapshot.state.episode_id(episode)?),
        })
    }

    /// The number of traces on the page, in view or not.
    pub(super) fn len(self, snapshot: &Snapshot) -> Result<usize> {
        Ok(match self {
            PageId::Closed(number) => snapshot.state.page(number)?.traces.len(),
            PageId::Open(episode) => snapshot.state.episode(episode)?.open_page.len(),
        })
    }
}

/// The visible part of a page.
#[derive(Debug, Default)]
pub(super) struct PageView {
    /// Its visible traces, ascending.
    pub(super) traces: Vec<u32>,
    /// Their tokens.
    tokens: u64,
}

/// The pages of the visible traces.
pub(super) struct Pages {
    pub(super) all: BTreeMap<PageId, PageView>,
    /// The page of each visible trace, by trace.
    of: BTreeMap<u32, PageId>,
}

/// A page with a score, best first: score, then the page whose newest trace is newer.
pub(super) type Ranked = Vec<(PageId, f32)>;

impl Pages {
    /// The pages of the traces in a set. Traces of no episode are on no page.
    pub(super) fn of(snapshot: &Snapshot, traces: &Bits) -> Result<Pages> {
        let mut pages = Pages { all: BTreeMap::new(), of: BTreeMap::new() };
        snapshot.charge_rows(traces.count())?;
        for trace in traces.iter() {
            let attributes = snapshot.state.attributes(ItemId(trace))?;
            let page = match (attributes.page, attributes.episode) {
                (Some(page), _) => PageId::Closed(page),
                (None, Some(episode)) => PageId::Open(episode),
                (None, None) => continue,
            };
            let view = pages.all.entry(page).or_default();
            view.traces.push(trace);
            view.tokens += u64::from(attributes.tokens);
            pages.of.insert(trace, page);
        }
        Ok(pages)
    }

    /// The page of a visible trace.
    pub(super) fn page_of(&self, trace: ItemId) -> Option<PageId> {
        self.of.get(&trace.0).copied()
    }

    /// The pages that contain a term of the query, best first.
    pub(super) fn search(&self, words: &Words<'_>, visible: &Bits) -> Result<Ranked> {
        let Some(scorer) = words.of(Layer::Trace)? else { return Ok(Vec::new()) };
        let hits = scorer.top(Some(visible), usize::try_from(visible.count()).unwrap_or(usize::MAX))?;
        let mut ids: Vec<u32> = hits.into_iter().map(|hit| hit.id).collect();
        ids.sort_unstable();
        let table = scorer.occurrences(&ids)?;
        let terms = scorer.terms();
        let mut frequencies: BTreeMap<PageId, Vec<f64>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            let (Some(page), Some(found)) = (self.of.get(id), table.frequencies(place)) else { continue };
            let sums = frequencies.entry(*page).or_insert_with(|| vec![0.0; terms.len()]);
            sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += f64::from(*found));
        }
        let count = self.all.len() as f64;
        let average = self.all.values().map(|view| view.tokens as f64).sum::<f64>() / count.max(1.0);
        let idf: Vec<f64> = (0..terms.len())
            .map(|term| {
                let with = frequencies.values().filter(|sums| sums[term] > 0.0).count() as f64;
                ((count - with + 0.5) / (with + 0.5)).ln_1p()
            })
            .collect();
        let mut ranked = Vec::with_capacity(frequencies.len());
        for (page, sums) in &frequencies {
            let tokens = self.all.get(page).map_or(0, |view| view.tokens) as f64;
            let norm = f64::from(K1) * (1.0 - f64::from(B) + f64::from(B) * tokens / average.max(1.0));
            let of_term = |at: usize| match sums[at] {
                f if f > 0.0 => f64::from(terms[at].weight) * idf[at] * (f64::from(K1) + 1.0) * f / (f + norm),
                _ => 0.0,
            };
            let score: f64 = (0..terms.len()).filter(|at| !terms[*at].surface).map(of_term).sum();
            ranked.push((*page, score as f32));
        }
        ranked.retain(|(_, score)| *score > 0.0);
        self.sort(&mut ranked);
        Ok(ranked)
    }

    /// Sorts pages, best first.
    pub(super) fn sort(&self, ranked: &mut Ranked) {
        let newest = |page: &PageId| self.all.get(page).and_then(|view| view.traces.last()).copied();
        ranked.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(newest(b).cmp(&newest(a))));
    }
}
