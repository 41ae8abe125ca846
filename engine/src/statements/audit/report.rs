//! The measures of an audit, from what the log says.

use super::routing;
use super::scan::{History, Moment, Read};
use super::{AuditReport, Measure, StepCost};
use crate::Result;
use crate::model::item::{ItemId, Layer};
use crate::model::pointer::Verdict;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::attributes::{Column, ValueTest};
use crate::state::pages::EVENTS;
use crate::statements::prune::{budget::REDUNDANT_ABOVE, redundant};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

const THIRDS: [&str; 3] = ["early", "middle", "late"];
/// The causes of epistemic errors (HELM 5.2), in the order in which reads are judged.
const CAUSES: [&str; 3] = ["stale", "failed", "contradicted"];
const COMPONENTS: [&str; 3] = ["search", "expand", "consolidate"];
/// The names of paths (HELM A.13), each with the deepest layer and, for traces, true where a recall and a theme stand
/// above.
const PATHS: [(&str, Layer, bool); 4] = [
    ("full", Layer::Trace, true),
    ("exit_m2", Layer::Recall, false),
    ("exit_m3", Layer::Theme, false),
    ("direct", Layer::Trace, false),
];

/// The steps of each audited episode.
type Steps = BTreeMap<u32, Vec<u64>>;

/// Computes every measure.
pub(super) fn report(snapshot: &Snapshot, history: &History, costs: &[(u32, &StepCost)]) -> Result<AuditReport> {
    let mut report = AuditReport::default();
    let steps = steps(snapshot, history, costs)?;
    let mut evidence = Evidence { snapshot, known: HashMap::new() };
    add_usage(&mut report, "", &Part { history, costs, steps: &steps, third: None }, &mut evidence)?;
    for (third, name) in THIRDS.iter().enumerate() {
        let part = Part { history, costs, steps: &steps, third: Some(third) };
        add_usage(&mut report, &format!("{name}."), &part, &mut evidence)?;
    }
    add_paths(&mut report, history);
    let (redundant, of) = redundancy(snapshot, history)?;
    report.add("redundancy", redundant as f64, of);
    let shown: BTreeSet<ItemId> = history.reads.iter().flat_map(|read| read.items.iter().copied()).collect();
    report.add("used", shown.intersection(&history.used).count() as f64, shown.len() as u64);
    add_latencies(&mut report, costs);
    routing::add(&mut report, snapshot, history)?;
    add_notes(&mut report, history, costs);
    Ok(report)
}

impl AuditReport {
    /// Adds the measure `sum / of`.
    pub(super) fn add(&mut self, name: impl Into<String>, sum: f64, of: u64) {
        self.measures.push(Measure { name: name.into(), value: (of > 0).then(|| sum / of as f64), of });
    }

    /// Adds the percentiles 50 and 95 of sorted durations, by the nearest rank.
    pub(super) fn add_percentiles(&mut self, component: &str, micros: &[u64]) {
        for percent in [50, 95] {
            let rank = (micros.len() * percent).div_ceil(100).saturating_sub(1);
            let value = micros.get(rank).map(|micros| *micros as f64);
            let name = format!("latency.{component}.p{percent}");
            self.measures.push(Measure { name, value, of: micros.len() as u64 });
        }
    }
}

fn steps(snapshot: &Snapshot, history: &History, costs: &[(u32, &StepCost)]) -> Result<Steps> {
    let state = &snapshot.state;
    let mut steps: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    let events = state.episode_number(EVENTS)?;
    let with_step = state.attributes.select_values(Column::Step, snapshot.len(), ValueTest::Range(0, i64::MAX))?;
    for id in with_step.and(&state.attributes.layer(Layer::Trace, snapshot.len())?).iter().map(ItemId) {
        snapshot.tick()?;
        let attributes = state.attributes(id)?;
        if let (Some(episode), Some(step)) = (attributes.episode, attributes.step)
            && history.is_wanted(Some(episode))
            && Some(episode) != events
        {
            steps.entry(episode).or_default().insert(step);
        }
    }
    let read = history.reads.iter().filter_map(|read| read.at.episode.zip(read.at.step));
    for (episode, step) in read.chain(costs.iter().map(|(episode, cost)| (*episode, cost.step))) {
        steps.entry(episode).or_default().insert(step);
    }
    Ok(steps.into_iter().map(|(episode, steps)| (episode, steps.into_iter().collect())).collect())
}

/// A history, or a third of each of its episodes.
struct Part<'a> {
    history: &'a History,
    costs: &'a [(u32, &'a StepCost)],
    steps: &'a Steps,
    third: Option<usize>,
}

impl Part<'_> {
    fn contains(&self, at: Moment) -> bool {
        let Some(wanted) = self.third else { return true };
        let steps = at.episode.and_then(|episode| self.steps.get(&episode));
        let Some((steps, step)) = steps.zip(at.step) else { return false };
        (steps.partition_point(|other| *other < step) * 3 / steps.len().max(1)).min(2) == wanted
    }

    fn count(&self, moments: &[Moment]) -> f64 {
        moments.iter().filter(|at| self.contains(**at)).count() as f64
    }

    fn step_count(&self) -> u64 {
        let moments = self.steps.iter().flat_map(|(episode, steps)| steps.iter().map(|step| (*episode, *step)));
        let moments = moments.map(|(episode, step)| Moment { episode: Some(episode), step: Some(step) });
        moments.filter(|at| self.contains(*at)).count() as u64
    }
}

/// Adds the measures that there are of the whole and of each third.
fn add_usage(report: &mut AuditReport, prefix: &str, part: &Part<'_>, evidence: &mut Evidence<'_>) -> Result<()> {
    let named = |name: &str| format!("{prefix}{name}");
    let reads: Vec<&Read> = part.history.reads.iter().filter(|read| part.contains(read.at)).collect();
    let (steps, episodes) = (part.step_count(), part.steps.len() as u64);
    let judged = reads.iter().filter(|read| read.flaws.is_some()).count() as u64;
    let invalid = || reads.iter().filter(|read| read.is_invalid() == Some(true));
    let invalid_steps: BTreeSet<Moment> = invalid().map(|read| read.at).filter(|at| at.step.is_some()).collect();
    report.add(named("epierr_steps"), invalid_steps.len() as f64, steps);
    report.add(named("epierr_recalls"), invalid().count() as f64, judged);
    for (at, cause) in CAUSES.iter().enumerate() {
        let count = reads.iter().filter(|read| read.flaws.is_some_and(|flaws| flaws[at])).count();
        report.add(named(&format!("epierr.{cause}")), count as f64, judged);
    }
    let is_in =
        |(episode, cost): &&(u32, &StepCost)| part.contains(Moment { episode: Some(*episode), step: Some(cost.step) });
    let given: u64 = part.costs.iter().filter(is_in).flat_map(|(_, cost)| cost.tokens).sum();
    let tokens = given as f64 + reads.iter().map(|read| read.tokens as f64).sum::<f64>();
    report.add(named("ctu"), tokens, episodes);
    report.add(named("ctu_per_step"), tokens, steps);
    let items: BTreeSet<ItemId> = reads.iter().flat_map(|read| read.items.iter().copied()).collect();
    let found = evidence.of(&items)?;
    report.add(named("faithfulness"), found.matched as f64, found.sentences);
    report.add(named("coverage"), found.covered as f64, found.items);
    report.add(named("validity"), found.valid as f64, found.cites);
    report.add(named("r_per_step"), reads.len() as f64, steps);
    report.add(named("w_per_step"), part.count(&part.history.writes), steps);
    report.add(named("c_per_episode"), part.count(&part.history.consolidations), episodes);
    report.add(named("p_per_episode"), part.count(&part.history.prunings), episodes);
    Ok(())
}

/// The support of items by what they cite.
#[derive(Debug, Clone, Copy, Default)]
struct Grounds {
    items: u64,
    covered: u64,
    sentences: u64,
    matched: u64,
    cites: u64,
    valid: u64,
}

/// The grounds of items, each computed once.
struct Evidence<'s> {
    snapshot: &'s Snapshot,
    known: HashMap<ItemId, Grounds>,
}

impl Evidence<'_> {
    fn of(&mut self, items: &BTreeSet<ItemId>) -> Result<Grounds> {
        let mut sum = Grounds::default();
        for id in items {
            let one = match self.known.get(id) {
                Some(known) => *known,
                None => grounds(self.snapshot, *id)?,
            };
            self.known.insert(*id, one);
            sum.items += one.items;
            sum.covered += one.covered;
            sum.sentences += one.sentences;
            sum.matched += one.matched;
            sum.cites += one.cites;
            sum.valid += one.valid;
        }
        Ok(sum)
    }
}

/// A trace is its own evidence; a theme routes and says nothing.
fn grounds(snapshot: &Snapshot, id: ItemId) -> Result<Grounds> {
    let attributes = snapshot.state.attributes(id)?;
    if attributes.redacted || attributes.layer() == Layer::Theme {
        return Ok(Grounds::default());
    }
    let text = match snapshot.content(id) {
        Ok(content) => content.text().to_owned(),
        Err(error) if is_damage(&error) => return Ok(Grounds { items: 1, ..Grounds::default() }),
        Err(error) => return Err(error),
    };
    if attributes.layer() == Layer::Trace {
        return Ok(Grounds { items: 1, covered: 1, sentences: 1, matched: 1, ..Grounds::default() });
    }
    let citations = snapshot.citations(id)?;
    let good = || citations.iter().filter(|citation| citation.verdict == Verdict::Ok);
    let spans: Vec<HashSet<String>> = good().filter_map(|citation| citation.text.as_deref()).map(words).collect();
    let mut grounds = Grounds {
        items: 1,
        covered: u64::from(good().next().is_some()),
        cites: citations.len() as u64,
        valid: good().count() as u64,
        ..Grounds::default()
    };
    for sentence in sentences(&text) {
        let wanted = words(sentence);
        if !wanted.is_empty() {
            grounds.sentences += 1;
            let supports = |span: &HashSet<String>| 2 * span.intersection(&wanted).count() >= wanted.len();
            grounds.matched += u64::from(spans.iter().any(supports));
        }
    }
    Ok(grounds)
}

/// The sentences of a text: to a line end, or to `.`, `!` or `?` before a blank.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        let mut rest = Some(line);
        std::iter::from_fn(move || {
            let text = rest?;
            let ends = |(at, _): &(usize, &str)| text[at + 1..].starts_with(char::is_whitespace);
            let end = text.match_indices(['.', '!', '?']).find(ends).map(|(at, _)| at + 1);
            rest = end.map(|end| &text[end..]);
            Some(end.map_or(text, |end| &text[..end]))
        })
    })
}

/// The words of four letters or more, and every word with a digit.
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let counts = |word: &&str| word.chars().count() > 3 || word.contains(char::is_numeric);
    words.filter(counts).map(str::to_lowercase).collect()
}

fn add_paths(report: &mut AuditReport, history: &History) {
    let ended: Vec<(&Read, Layer)> = history.reads.iter().filter_map(|read| Some((read, read.deepest?))).collect();
    let on = |layer: Layer, is_full: bool| {
        let is_on = move |read: &Read, deepest| deepest == layer && (layer != Layer::Trace || read.is_full == is_full);
        ended.iter().filter(move |(read, deepest)| is_on(read, *deepest)).map(|(read, _)| *read)
    };
    for (name, layer, is_full) in PATHS {
        report.add(format!("paths.{name}"), on(layer, is_full).count() as f64, ended.len() as u64);
    }
    for (name, layer, is_full) in PATHS {
        let tokens: u64 = on(layer, is_full).map(|read| read.tokens).sum();
        report.add(format!("tokens.{name}"), tokens as f64, on(layer, is_full).count() as u64);
    }
    let depth = |layer: Layer| f64::from(3 - layer as u8);
    let tokens: Vec<(f64, f64)> = ended.iter().map(|(read, layer)| (depth(*layer), read.tokens as f64)).collect();
    let errors =
        ended.iter().filter_map(|(read, layer)| Some((depth(*layer), f64::from(u8::from(read.is_invalid()?)))));
    for (name, pairs) in [("depth.tokens", tokens), ("depth.epierr", errors.collect())] {
        report.measures.push(Measure { name: name.to_owned(), value: correlation(&pairs), of: pairs.len() as u64 });
    }
}

/// Pearson's r; `None` where one side does not vary.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let mean = |sum: f64| sum / pairs.len().max(1) as f64;
    let x = mean(pairs.iter().map(|pair| pair.0).sum());
    let y = mean(pairs.iter().map(|pair| pair.1).sum());
    let sum = |f: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|pair| f(pair.0 - x, pair.1 - y)).sum::<f64>();
    let (xy, xx, yy) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// The items that are in clusters of near duplicates, and all that could be.
fn redundancy(snapshot: &Snapshot, history: &History) -> Result<(u64, u64)> {
    let state = &snapshot.state;
    let (mut redundant, mut of) = (0, 0);
    for layer in Layer::ALL {
        let mut ids = Vec::new();
        for id in state.attributes.base_sets(snapshot.len()).layer(*layer)?.iter() {
            snapshot.tick()?;
            let attributes = state.attributes(ItemId(id))?;
            ids.extend((attributes.has_vector && history.is_wanted(attributes.episode)).then_some(id));
        }
        of += ids.len() as u64;
        let clusters = redundant::clusters(snapshot, *layer, &ids, REDUNDANT_ABOVE)?;
        redundant += clusters.iter().map(|cluster| cluster.len() as u64).sum::<u64>();
    }
    Ok((redundant, of))
}

fn add_latencies(report: &mut AuditReport, costs: &[(u32, &StepCost)]) {
    for (component, name) in COMPONENTS.iter().enumerate() {
        let mut micros: Vec<u64> = costs.iter().filter_map(|(_, cost)| cost.micros[component]).collect();
        micros.sort_unstable();
        report.add_percentiles(name, &micros);
    }
}

fn add_notes(report: &mut AuditReport, history: &History, costs: &[(u32, &StepCost)]) {
    let mut note = |is_due: bool, note: String| report.notes.extend(is_due.then_some(note));
    let reads = &history.reads;
    let none = "no read is in the log: `set audit = reads` logs every answer, `with receipt` one";
    note(reads.is_empty(), none.to_owned());
    let unjudged = reads.iter().filter(|read| read.flaws.is_none()).count();
    note(unjudged > 0, format!("reads of commits that are no longer kept: {unjudged} are not judged"));
    note(
        costs.is_empty(),
        "no costs of steps given: ctu counts retrieved tokens only, latencies are unknown".to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_is_that_of_the_textbook() {
        let r = correlation(&[(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0)]).unwrap();
        assert!((r - 0.6).abs() < 1e-12, "{r}");
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(correlation(&[]), None);
    }

    #[test]
    fn a_number_with_a_point_ends_no_sentence() {
        let found: Vec<&str> = sentences("It costs 4.50 now. Really?\nYes! Ok").collect();
        assert_eq!(found, ["It costs 4.50 now.", " Really?", "Yes!", " Ok"]);
    }
}
