//! The loop of Algorithm 1: which pages are read.

use super::first::{self, FirstTier};
use super::pages::{PageId, Pages, Ranked};
use super::planner::{PlanView, words_with};
use super::{PAGES, PROTECT, ROUNDS, Roles};
use crate::Result;
use crate::derive::repair;
use crate::memory::write_back::find_quote;
use crate::memory::write_back::without_prefix;
use crate::model::item::{ItemId, Layer};
use crate::model::plural::counted;
use crate::read::escalation::{Command, Fact, Round};
use crate::read::nearest;
use crate::read::snapshot::Snapshot;
use crate::recall::Steps;
use crate::recall::plan::{self, Plan};
use crate::recall::rank::Scored;
use crate::recall::words::{WordIndexes, Words};
use holotype_index::bitmap::Bits;
use holotype_query::plan::Escalate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Summaries that a search looks at.
const SUMMARIES: usize = 10;

/// A selected page.
pub(super) struct SelectedPage {
    pub(super) id: PageId,
    pub(super) score: f32,
    pub(super) protected: bool,
    pub(super) round: u32,
    pub(super) traces: Vec<u32>,
}

/// The pages that the loop selected, and how.
#[derive(Default)]
pub(super) struct Evidence {
    pub(super) selected: Vec<SelectedPage>,
    pub(super) rounds: Vec<Round>,
    /// The facts drawn from them.
    pub(super) facts: Vec<Fact>,
    /// Why roles gave nothing.
    pub(super) failures: Vec<String>,
}

impl Evidence {
    /// The traces of the selected pages.
    pub(super) fn traces(&self) -> Bits {
        self.selected.iter().flat_map(|page| page.traces.iter().copied()).collect()
    }
}

/// The loop's inputs.
pub(super) struct Search<'s, 'w> {
    snapshot: &'s Snapshot,
    plan: &'s Plan,
    indexes: &'w WordIndexes,
    words: &'s Words<'w>,
    roles: Roles<'s>,
    pages: Pages,
    visible: Arc<Bits>,
    /// Pages a round selects, rounds, and the similarity that protects.
    count: usize,
    rounds: u64,
    protect: f32,
    links: bool,
}

impl<'s, 'w> Search<'s, 'w> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        plan: &'s Plan,
        (indexes, words): (&'w WordIndexes, &'s Words<'w>),
        asked: &Escalate,
        roles: Roles<'s>,
    ) -> Result<Self> {
        let visible = plan.stages.last().map_or_else(Default::default, |stage| Arc::clone(&stage.route));
        let count = asked.count.unwrap_or_else(|| PAGES.max(plan.budget.unwrap_or(0) / TOKENS_PER_PAGE));
        Ok(Search {
            pages: Pages::of(snapshot, &visible)?,
            visible,
            count: usize::try_from(count).unwrap_or(usize::MAX),
            rounds: asked.rounds.unwrap_or(ROUNDS),
            protect: asked.protect.map_or(PROTECT, |protect| protect as f32),
            links: !asked.without_links,
            snapshot,
            plan,
            indexes,
            words,
            roles,
        })
    }

    /// Runs the loop. `raw` are the raw traces in view.
    pub(super) fn run(&self, first: &FirstTier, raw: &[Scored], steps: &mut Steps) -> Result<Evidence> {
        let by_words: BTreeMap<PageId, f32> = self.pages.search(self.words, &self.visible)?.into_iter().collect();
        let best = by_words.values().copied().fold(0.0f32, f32::max);
        let mut similar: BTreeMap<PageId, f32> = BTreeMap::new();
        for (page, trace) in raw.iter().filter_map(|trace| Some((self.pages.page_of(trace.id)?, trace))) {
            let known = similar.entry(page).or_insert(0.0);
            *known = known.max(trace.parts.similarity);
        }
        let score = |page: PageId| {
            let words = by_words.get(&page).map_or(0.0, |score| score / best);
            similar.get(&page).copied().unwrap_or(0.0) + self.plan.weights.words * words
        };
        let mut state = Loop { pool: BTreeMap::new(), evidence: Evidence::default(), issued: Vec::new() };
        if self.links {
            self.seed(first, &score, &mut state)?;
        }
        let question = self.plan.text.clone().unwrap_or_default();
        let mut asked = Command::both(&question);
        for round in 1..=u32::try_from(self.rounds).unwrap_or(u32::MAX) {
            self.snapshot.tick()?;
            let Some(issued) = self.issue(&asked, round == 1, &mut state)? else { break };
            let new = self.select(round, &score, &mut state)?;
            self.integrate(&question, round, &mut state)?;
            let done = new.is_empty();
            steps.push((format!("round {round}"), counted(new.len() as u64, "new pages")));
            state.evidence.rounds.push(Round { new, ..issued });
            if done {
                break;
            }
            let (uncovered, coverage) = self.uncovered(&question, &state.evidence)?;
            let (facts, history) = (&state.evidence.facts, &state.issued);
            let view = PlanView { question: &question, facts, uncovered: &uncovered, coverage, history };
            match self.roles.planner.next(&view) {
                Ok(next) if next.is_empty() => break,
                Ok(next) => asked = next,
                Err(why) => {
                    state.evidence.failures.push(format!("the planner failed: {why}"));
                    break;
                }
            }
        }
        Ok(state.evidence)
    }

    /// Selects the pages linked to the rows of the first tier.
    fn seed(&self, first: &FirstTier, score: &dyn Fn(PageId) -> f32, state: &mut Loop) -> Result<()> {
        for row in &first.selection.rows {
            for trace in first::linked_traces(self.snapshot, self.plan, row.id())? {
                if let Some(page) = self.pages.page_of(trace) {
                    state.take(
                        &self.pages,
                        SelectedPage { id: page, score: score(page), protected: false, round: 0, traces: Vec::new() },
                    );
                }
            }
        }
        Ok(())
    }

    /// Runs the searches for a text that were not run before, and adds what they find to the pool. `None` if all were.
    fn issue(&self, commands: &[Command], is_question: bool, state: &mut Loop) -> Result<Option<Round>> {
        let mut round = Round { commands: Vec::new(), pages: 0, new: Vec::new() };
        let mut found: BTreeSet<PageId> = BTreeSet::new();
        for command in commands {
            if state.issued.contains(command) {
                continue;
            }
            let others = self.indexes.ask(Some(command.text()))?;
            let words = if is_question { self.words } else { &others };
            let pages = match command {
                Command::Summaries(text) => self.by_summaries(text, is_question, words)?,
                Command::Pages(_) => {
                    let ranked = self.pages.search(words, &self.visible)?;
                    ranked.into_iter().take(self.count).map(|(page, _)| (page, 0.0)).collect()
                }
            };
            for (page, similarity) in pages {
                found.insert(page);
                let known = state.pool.entry(page).or_insert(0.0);
                *known = known.max(similarity);
            }
            state.issued.push(command.clone());
            round.commands.push(command.clone());
        }
        round.pages = found.len() as u64;
        Ok((!round.commands.is_empty()).then_some(round))
    }

    /// The pages linked to the summaries nearest to a text, each with the best similarity of one that links to it: by
    /// vector where the text has one, else by words, which protect nothing.
    fn by_summaries(&self, text: &str, is_question: bool, words: &Words<'_>) -> Result<Ranked> {
        let vector = match is_question {
            true => self.plan.vector.clone(),
            false => plan::embed_text(self.snapshot, text)?,
        };
        let found: Vec<(u32, f32)> = match vector {
            Some(vector) => {
                let found = nearest::search(self.snapshot, Layer::Recall, &vector, SUMMARIES, &self.plan.recalls)?;
                let ids: Vec<u32> = found.into_iter().flat_map(|found| found.hits).map(|hit| hit.id).collect();
                let scores = repair::scores(self.snapshot, Layer::Recall, &vector, &ids)?;
                ids.into_iter().zip(scores).map(|(id, score)| (id, score.unwrap_or(0.0))).collect()
            }
            None => match words.of(Layer::Recall)? {
                Some(scorer) => {
                    scorer.top(Some(&self.plan.recalls), SUMMARIES)?.into_iter().map(|hit| (hit.id, 0.0)).collect()
                }
                None => Vec::new(),
            },
        };
        let mut pages: BTreeMap<PageId, f32> = BTreeMap::new();
        for (recall, similarity) in found {
            for trace in first::linked_traces(self.snapshot, self.plan, ItemId(recall))? {
                if let Some(page) = self.pages.page_of(trace) {
                    let known = pages.entry(page).or_insert(similarity);
                    *known = known.max(similarity);
                }
            }
        }
        Ok(pages.into_iter().collect())
    }

    /// Selects the best pages of the pool that were not selected before: protected ones, then by score.
    fn select(&self, round: u32, score: &dyn Fn(PageId) -> f32, state: &mut Loop) -> Result<Vec<String>> {
        let known: BTreeSet<PageId> = state.evidence.selected.iter().map(|page| page.id).collect();
        let fresh: Vec<(PageId, bool)> = state
            .pool
            .iter()
            .filter(|(page, _)| !known.contains(page))
            .map(|(page, similarity)| (*page, *similarity >= self.protect))
            .collect();
        let mut names = Vec::new();
        for protected in [true, false] {
            let mut ranked: Ranked =
                fresh.iter().filter(|(_, is)| *is == protected).map(|(page, _)| (*page, score(*page))).collect();
            self.pages.sort(&mut ranked);
            if !protected {
                self.rank(&mut ranked, state)?;
            }
            for (page, score) in ranked {
                if names.len() >= self.count {
                    break;
                }
                names.push(page.name(self.snapshot)?);
                state.take(&self.pages, SelectedPage { id: page, score, protected, round, traces: Vec::new() });
            }
        }
        Ok(names)
    }

    /// Lets the ranker order the best pages; the order of the scores stands if it fails.
    fn rank(&self, ranked: &mut Ranked, state: &mut Loop) -> Result<()> {
        let Some(ranker) = self.roles.ranker.filter(|_| ranked.len() > 1) else { return Ok(()) };
        let rest = ranked.split_off(ranked.len().min(self.count.saturating_mul(RANKED).max(2)));
        let texts = ranked.iter().map(|(page, _)| self.text_of(*page)).collect::<Result<Vec<String>>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match ranker.rank(self.plan.text.as_deref().unwrap_or_default(), &texts) {
            Ok(order) if order.iter().copied().collect::<BTreeSet<_>>() == (0..ranked.len()).collect() => {
                *ranked = order.into_iter().map(|at| ranked[at]).collect();
            }
            Ok(_) => state.evidence.failures.push("the ranker does not rank each page once".to_owned()),
            Err(why) => state.evidence.failures.push(format!("the ranker failed: {why}")),
        }
        ranked.extend(rest);
        Ok(())
    }

    /// Draws facts from the pages that a round selected; the first round reads those of the first tier, too.
    fn integrate(&self, question: &str, round: u32, state: &mut Loop) -> Result<()> {
        let Some(integrator) = self.roles.integrator else { return Ok(()) };
        let is_new = |page: &&SelectedPage| page.round == round || (round == 1 && page.round == 0);
        let pages: Vec<(PageId, Vec<u32>)> =
            state.evidence.selected.iter().filter(is_new).map(|page| (page.id, page.traces.clone())).collect();
        if pages.is_empty() {
            return Ok(());
        }
        let texts = pages.iter().map(|(page, _)| self.text_of(*page)).collect::<Result<Vec<String>>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let drawn = match integrator.integrate(question, &texts) {
            Ok(drawn) => drawn,
            Err(why) => {
                state.evidence.failures.push(format!("the integrator failed: {why}"));
                return Ok(());
            }
        };
        for (text, quote) in drawn {
            match self.link(&quote, &pages)? {
                Some((page, trace, quote)) => {
                    state.evidence.facts.push(Fact { text, quote, page: page.name(self.snapshot)?, trace, round });
                }
                None => state.evidence.failures.push(format!("a fact is left out, its quote stands nowhere: {text}")),
            }
        }
        Ok(())
    }

    /// The only trace of some pages that has a quote, with the quote as it stands there.
    fn link(&self, quote: &str, pages: &[(PageId, Vec<u32>)]) -> Result<Option<(PageId, ItemId, String)>> {
        let mut found = None;
        for (page, traces) in pages {
            for trace in traces.iter().map(|trace| ItemId(*trace)) {
                let content = self.snapshot.content(trace)?;
                let speaker = content.record.speaker.as_deref().or(content.record.tool.as_deref());
                let text = content.text();
                let said = find_quote(text, quote).or_else(|_| find_quote(text, without_prefix(quote, speaker)));
                let Ok(span) = said else { continue };
                if found.is_some() {
                    return Ok(None);
                }
                found = Some((*page, trace, text[span].to_owned()));
            }
        }
        Ok(found)
    }

    /// The lines of the visible traces of a page.
    fn text_of(&self, page: PageId) -> Result<String> {
        self.pages.all.get(&page).map_or(Ok(String::new()), |view| self.snapshot.lines_of(&view.traces))
    }

    /// The words of the question that no selected page contains, and the share of those that one does.
    fn uncovered<'q>(&self, question: &'q str, evidence: &Evidence) -> Result<(Vec<&'q str>, f32)> {
        let Some(scorer) = self.words.of(Layer::Trace)? else { return Ok((Vec::new(), 1.0)) };
        let ids: Vec<u32> = evidence.traces().iter().collect();
        let table = scorer.occurrences(&ids)?;
        let terms = scorer.terms();
        let is_there = |at: usize| (0..ids.len()).any(|place| table.frequencies(place).is_some_and(|f| f[at] > 0.0));
        let own: Vec<usize> = (0..terms.len()).filter(|at| !terms[*at].surface).collect();
        let lacking: Vec<usize> = own.iter().copied().filter(|at| !is_there(*at)).collect();
        let keys: BTreeSet<&str> = lacking.iter().map(|at| terms[*at].key.as_ref()).collect();
        let coverage = 1.0 - lacking.len() as f32 / own.len().max(1) as f32;
        Ok((words_with(self.indexes, question, &keys), coverage))
    }
}

/// Pages that a ranker orders, for each that is selected.
const RANKED: usize = 4;

/// Average tokens of evidence that a page contributes under a budget: a page is rarely read whole.
const TOKENS_PER_PAGE: u64 = 200;

/// The state that rounds carry over.
struct Loop {
    /// Pages found so far, with the best similarity of a summary that links to each.
    pool: BTreeMap<PageId, f32>,
    evidence: Evidence,
    issued: Vec<Command>,
}

impl Loop {
    fn take(&mut self, pages: &Pages, page: SelectedPage) {
        if !self.evidence.selected.iter().any(|known| known.id == page.id) {
            let traces = pages.all.get(&page.id).map(|view| view.traces.clone()).unwrap_or_default();
            self.evidence.selected.push(SelectedPage { traces, ..page });
        }
    }
}
