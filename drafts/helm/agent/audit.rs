//! What was read, and how good it was (HELM A.6, A.13), computed from the log.
//!
//! Reads are the receipts and, with the setting `audit = reads`, the reads of every question. A read is judged by the
//! state of its commit, from where its reader stood. A receipt says where; for a read without one it is the newest step
//! that the episode of its first row had at that commit.
//!
//! | measure | meaning |
//! |---|---|
//! | `epierr_recalls` | share of reads with a row that was stale, failed or contradicted |
//! | `epierr_steps` | share of steps with such a read |
//! | `ctu` | context tokens of an episode, mean; `ctu_per_step` of a step. Without a file of tokens, retrieved ones only |
//! | `faithfulness` | share of the read sentences with half of their words (of four letters or more) in a span that they cite |
//! | `coverage` | share of the read items with a citation that resolves; traces are evidence themselves |
//! | `validity` | share of the read items' citations that resolve |
//! | `r_per_step`, `w_per_step` | reads, and written items, of a step |
//! | `c_per_episode` | transactions with consolidations, of an episode |
//! | `…_early`, `…_middle`, `…_late` | the same in thirds of the episodes' steps |
//! | `path_full`, `path_exit_m2`, `path_exit_m3` | share of reads that reached traces, ended at recalls, at themes |
//! | `tokens_full`, … | retrieved tokens of such a read, mean |
//! | `redundancy` | share of items with a vector that are in a cluster of near duplicates (cosine over 0.9) |
//!
//! Latencies are not in the log. Steps are those that traces of the audited episodes have, and those that were read at.

use crate::model::item::{ItemId, Layer, Status};
use crate::model::pointer::Verdict;
use crate::read::snapshot::Snapshot;
use crate::records::record::{EffectiveRecord, Record, RowRecord};
use crate::state::attributes::{Column, ValueTest};
use crate::state::judge::Judge;
use crate::state::reader_position::{Reader, ReaderPosition, Window};
use crate::statements::events::transactions_from;
use crate::statements::prune::{budget::REDUNDANT_ABOVE, redundant};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Context tokens of a step that are not retrieved memory, as the caller's loop counted them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepTokens {
    /// The episode.
    pub episode: String,
    /// The step.
    pub step: u64,
    /// Tokens of the system prompt, the history and tool outputs together.
    pub tokens: u64,
}

/// A measure with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Its value; `None` where there is nothing to measure.
    pub value: Option<f64>,
    /// Of how many it is the share or the mean.
    pub of: u64,
}

/// An audit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditReport {
    /// The measures, in the order of the table above.
    pub measures: Vec<Measure>,
    /// What the measures do not say.
    pub notes: Vec<String>,
}

impl AuditReport {
    /// The value of a measure.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.measures.iter().find(|measure| measure.name == name)?.value
    }

    fn add(&mut self, name: impl Into<String>, sum: f64, of: u64) {
        self.measures.push(Measure { name: name.into(), value: (of > 0).then(|| sum / of as f64), of });
    }
}

impl Snapshot {
    /// Audits what was read and written up to this snapshot, in some episodes or, without any named, in all.
    ///
    /// # Errors
    /// [`Error::Missing`] for an episode that does not exist; those of reading the log.
    pub fn audit(&self, episodes: &[&str], tokens: &[StepTokens]) -> Result<AuditReport> {
        let mut wanted = None;
        for episode in episodes {
            let missing = || Error::Missing { what: "episode", name: format!("'{episode}'") };
            let number = self.state.episode_number(episode)?.ok_or_else(missing)?;
            wanted.get_or_insert_with(BTreeSet::new).insert(number);
        }
        let mut log = Log { wanted, ..Log::default() };
        log.scan(self)?;
        log.report(self, tokens)
    }
}

/// A read of the log.
struct Read {
    episode: Option<u32>,
    step: Option<u64>,
    tokens: u64,
    invalid: bool,
    deepest: Option<Layer>,
}

/// What the log says.
#[derive(Default)]
struct Log {
    /// The audited episodes; `None` for all.
    wanted: Option<BTreeSet<u32>>,
    reads: Vec<Read>,
    read_items: BTreeSet<u32>,
    /// Written items by episode and step.
    writes: BTreeMap<(u32, u64), u64>,
    written: u64,
    consolidations: u64,
    prunes: u64,
    unjudged: u64,
    positioned: u64,
    past: Option<Snapshot>,
}

impl Log {
    fn is_wanted(&self, episode: Option<u32>) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| episode.is_some_and(|episode| wanted.contains(&episode)))
    }

    fn scan(&mut self, snapshot: &Snapshot) -> Result<()> {
        if snapshot.commit() == 0 {
            return Ok(());
        }
        for transaction in transactions_from(snapshot, 1)? {
            let transaction = transaction?;
            if transaction.number.0 > snapshot.commit() {
                break;
            }
            snapshot.tick()?;
            let (mut consolidates, mut prunes) = (false, false);
            for record in &transaction.records {
                let Some(EffectiveRecord { record, .. }) = Record::effective(record)? else { continue };
                match record {
                    Record::Item(item) => consolidates |= self.written(snapshot, item.item(), item.key.as_deref())?,
                    Record::Rekey(rekey) => consolidates |= rekey.key.starts_with("claim:"),
                    Record::Mark(mark) => {
                        let because = mark.because.unwrap_or_default();
                        let episode = snapshot.state.attributes(ItemId(mark.item))?.episode;
                        prunes |= because.starts_with(crate::statements::prune::budget::BECAUSE) && self.is_wanted(episode);
                    }
                    Record::Receipt(receipt) => {
                        let (episode, step, time) = (receipt.episode, receipt.step, receipt.time);
                        let reader = Reader { episode, step, time, version: receipt.version };
                        self.positioned += 1;
                        self.read(snapshot, receipt.commit, &receipt.rows, Some(reader))?;
                    }
                    Record::Read(read) => self.read(snapshot, read.commit, &read.rows, None)?,
                    _ => {}
                }
            }
            self.consolidations += u64::from(consolidates);
            self.prunes += u64::from(prunes);
        }
        Ok(())
    }

    /// Counts a written item. True if a consolidation wrote it.
    fn written(&mut self, snapshot: &Snapshot, id: ItemId, key: Option<&str>) -> Result<bool> {
        let attributes = snapshot.state.attributes(id)?;
        if !self.is_wanted(attributes.episode) {
            return Ok(false);
        }
        if key.is_some_and(|key| key.starts_with("claim:")) {
            return Ok(true);
        }
        self.written += 1;
        if let (Some(episode), Some(step)) = (attributes.episode, attributes.step) {
            *self.writes.entry((episode, step)).or_default() += 1;
        }
        Ok(false)
    }

    fn read(&mut self, snapshot: &Snapshot, commit: u64, rows: &[RowRecord], reader: Option<Reader>) -> Result<()> {
        let first = rows.first().map(|row| snapshot.state.attributes(ItemId(row.item))).transpose()?;
        let stated = reader.as_ref().and_then(|reader| reader.episode.clone());
        let episode = match stated {
            Some(id) => snapshot.state.episode_number(&id)?,
            None => first.and_then(|first| first.episode),
        };
        if !self.is_wanted(episode) {
            return Ok(());
        }
        if self.past.as_ref().is_none_or(|past| past.commit() != commit) {
            self.past = snapshot.as_of(commit).ok();
        }
        let mut read = Read { episode, step: None, tokens: 0, invalid: false, deepest: None };
        for row in rows {
            let attributes = snapshot.state.attributes(ItemId(row.item))?;
            read.tokens += u64::from(attributes.tokens);
            read.deepest = read.deepest.into_iter().chain([attributes.layer()]).min_by_key(|layer| *layer as u8);
            self.read_items.insert(row.item);
        }
        match &self.past {
            Some(past) => {
                let given = reader.unwrap_or_default();
                let episodes: Vec<u32> = episode.into_iter().collect();
                let episodes = (!episodes.is_empty()).then_some(episodes.as_slice());
                let position = ReaderPosition::find(&past.state, episodes, &given, snapshot.core.now())?;
                read.step = position.reader.step;
                read.invalid = is_invalid(past, &position, rows)?;
            }
            None => self.unjudged += 1,
        }
        self.reads.push(read);
        Ok(())
    }
}

/// True if a row was stale, failed or contradicted for the reader (HELM A.6).
fn is_invalid(past: &Snapshot, position: &ReaderPosition, rows: &[RowRecord]) -> Result<bool> {
    let state = &past.state;
    let window = Window::default_of(state)?;
    let judge = Judge::new(state, position, None)?;
    for id in rows.iter().map(|row| ItemId(row.item)).filter(|id| id.0 < past.len()) {
        let attributes = state.attributes(id)?;
        let lost = match state.rules()? < crate::state::extracted::RULES {
            true => attributes.conflict.is_some(),
            false => judge.conflict(state, id)?.is_some(),
        };
        if lost || attributes.status == Some(Status::Failed) || position.is_stale(&attributes, &window) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Log {
    fn report(&self, snapshot: &Snapshot, tokens: &[StepTokens]) -> Result<AuditReport> {
        let mut report = AuditReport::default();
        let steps = self.steps(snapshot)?;
        let episodes = steps.len() as u64;
        let count: u64 = steps.values().map(|steps| steps.len() as u64).sum();
        let judged = self.reads.len() as u64 - self.unjudged;
        let invalid = self.reads.iter().filter(|read| read.invalid);
        let invalid_steps: BTreeSet<(u32, u64)> =
            invalid.clone().filter_map(|read| Some((read.episode?, read.step?))).collect();
        report.add("epierr_steps", invalid_steps.len() as f64, count);
        report.add("epierr_recalls", invalid.count() as f64, judged);
        let context: u64 = tokens.iter().filter(|step| self.is_counted(snapshot, step)).map(|step| step.tokens).sum();
        let retrieved: u64 = self.reads.iter().map(|read| read.tokens).sum();
        report.add("ctu", (context + retrieved) as f64, episodes);
        report.add("ctu_per_step", (context + retrieved) as f64, count);
        self.add_provenance(snapshot, &mut report)?;
        report.add("r_per_step", self.reads.len() as f64, count);
        report.add("w_per_step", self.written as f64, count);
        report.add("c_per_episode", self.consolidations as f64, episodes);
        report.add("p_per_episode", self.prunes as f64, episodes);
        self.add_thirds(&steps, &mut report);
        self.add_paths(&mut report);
        let (redundant, of) = redundancy(snapshot)?;
        report.add("redundancy", redundant as f64, of);
        self.add_notes(tokens, &mut report);
        Ok(report)
    }

    fn is_counted(&self, snapshot: &Snapshot, step: &StepTokens) -> bool {
        snapshot.state.episode_number(&step.episode).is_ok_and(|number| number.is_some() && self.is_wanted(number))
    }

    /// The steps of each audited episode.
    fn steps(&self, snapshot: &Snapshot) -> Result<BTreeMap<u32, BTreeSet<u64>>> {
        let mut steps: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let state = &snapshot.state;
        let with_step = state.attributes.select_values(Column::Step, snapshot.len(), ValueTest::Range(0, i64::MAX))?;
        for id in with_step.and(&state.attributes.layer(Layer::Trace, snapshot.len())?).iter().map(ItemId) {
            let attributes = state.attributes(id)?;
            if let (Some(episode), Some(step)) = (attributes.episode, attributes.step)
                && self.is_wanted(Some(episode))
            {
                steps.entry(episode).or_default().insert(step);
            }
        }
        for read in &self.reads {
            if let (Some(episode), Some(step)) = (read.episode, read.step) {
                steps.entry(episode).or_default().insert(step);
            }
        }
        Ok(steps)
    }

    /// Adds `faithfulness`, `coverage` and `validity` of the items that were read.
    fn add_provenance(&self, snapshot: &Snapshot, report: &mut AuditReport) -> Result<()> {
        let (mut sentences, mut matched, mut covered, mut cites, mut valid, mut items) = (0, 0, 0, 0, 0, 0);
        for id in self.read_items.iter().copied().map(ItemId) {
            let attributes = snapshot.state.attributes(id)?;
            if attributes.redacted || attributes.layer() == Layer::Theme {
                continue;
            }
            items += 1;
            if attributes.layer() == Layer::Trace {
                (covered, sentences, matched) = (covered + 1, sentences + 1, matched + 1);
                continue;
            }
            let citations = snapshot.citations(id)?;
            let good = || citations.iter().filter(|citation| citation.verdict == Verdict::Ok);
            cites += citations.len() as u64;
            valid += good().count() as u64;
            covered += u64::from(good().next().is_some());
            let content = snapshot.content(id)?;
            for sentence in content.text().split_inclusive(['.', '!', '?', '\n']) {
                let wanted = words(sentence);
                if wanted.is_empty() {
                    continue;
                }
                sentences += 1;
                let shares = |text: &str| 2 * words(text).intersection(&wanted).count() >= wanted.len();
                matched += u64::from(good().filter_map(|citation| citation.text.as_deref()).any(shares));
            }
        }
        report.add("faithfulness", matched as f64, sentences);
        report.add("coverage", covered as f64, items);
        report.add("validity", valid as f64, cites);
        Ok(())
    }

    fn add_thirds(&self, steps: &BTreeMap<u32, BTreeSet<u64>>, report: &mut AuditReport) {
        let third = |episode: u32, step: u64| {
            let steps = steps.get(&episode)?;
            Some(steps.range(..step).count() * 3 / steps.len().max(1))
        };
        let mut of = [0u64; 3];
        for (episode, steps) in steps {
            steps.iter().filter_map(|step| third(*episode, *step)).for_each(|third| of[third.min(2)] += 1);
        }
        let (mut reads, mut writes, mut bad) = ([0u64; 3], [0u64; 3], [0u64; 3]);
        for read in &self.reads {
            if let Some(third) = read.episode.zip(read.step).and_then(|(episode, step)| third(episode, step)) {
                reads[third.min(2)] += 1;
                bad[third.min(2)] += u64::from(read.invalid);
            }
        }
        for ((episode, step), count) in &self.writes {
            if let Some(third) = third(*episode, *step) {
                writes[third.min(2)] += count;
            }
        }
        for (nth, name) in ["early", "middle", "late"].iter().enumerate() {
            report.add(format!("epierr_recalls_{name}"), bad[nth] as f64, reads[nth]);
            report.add(format!("r_per_step_{name}"), reads[nth] as f64, of[nth]);
            report.add(format!("w_per_step_{name}"), writes[nth] as f64, of[nth]);
        }
    }

    fn add_paths(&self, report: &mut AuditReport) {
        let ended: Vec<&Read> = self.reads.iter().filter(|read| read.deepest.is_some()).collect();
        let paths = [("full", Layer::Trace), ("exit_m2", Layer::Recall), ("exit_m3", Layer::Theme)];
        for (name, layer) in paths {
            let there = ended.iter().filter(|read| read.deepest == Some(layer));
            report.add(format!("path_{name}"), there.count() as f64, ended.len() as u64);
        }
        for (name, layer) in paths {
            let there = || ended.iter().filter(|read| read.deepest == Some(layer));
            let tokens: u64 = there().map(|read| read.tokens).sum();
            report.add(format!("tokens_{name}"), tokens as f64, there().count() as u64);
        }
    }

    fn add_notes(&self, tokens: &[StepTokens], report: &mut AuditReport) {
        if self.reads.is_empty() {
            report.notes.push("nothing was read that the log knows of: `set audit = reads` logs every question".to_owned());
        }
        if self.reads.len() as u64 > self.positioned {
            report.notes.push("reads without a receipt are judged from the newest step of their episode then".to_owned());
        }
        if self.unjudged > 0 {
            let unjudged = self.unjudged;
            report.notes.push(format!("{unjudged} reads are of commits that are no longer kept; their rows were not judged"));
        }
        if tokens.is_empty() {
            report.notes.push("ctu counts retrieved tokens only: no others were given".to_owned());
        }
    }
}

/// Words of four letters or more.
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 3);
    words.map(str::to_lowercase).collect()
}

/// The items that are in clusters of near duplicates, and all that could be.
fn redundancy(snapshot: &Snapshot) -> Result<(u64, u64)> {
    let state = &snapshot.state;
    let (mut redundant, mut of) = (0, 0);
    for layer in Layer::ALL {
        let mut ids = Vec::new();
        for id in state.attributes.base_sets(snapshot.len()).layer(*layer)?.iter() {
            ids.extend(state.attributes(ItemId(id))?.has_vector.then_some(id));
        }
        of += ids.len() as u64;
        let clusters = redundant::clusters(snapshot, *layer, &ids, REDUNDANT_ABOVE)?;
        redundant += clusters.iter().map(|cluster| cluster.len() as u64).sum::<u64>();
    }
    Ok((redundant, of))
}
