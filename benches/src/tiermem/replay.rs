//! Epoch-wise replay (TierMem Table 8): what each epoch's findings save the next one, in both modes of write-back.
//!
//! Every second question of a conversation teaches. Where such a question was escalated, the turns that the data names
//! as its evidence and that its answer holds, in either tier, are learned: this stands in for a model that reads all of
//! it and quotes what answers. A finding is the turn in its own words, without sentences that ask; no text of a
//! question is written, which is checked. The first tier is pinned for an epoch, and every question is asked twice in
//! it, in two orders, which must give the same answers.

use super::{evidence, held, turns};
use crate::Result;
use crate::dataset::{Asked, Dataset, Question};
use holotype::answer::Answer;
use holotype::query::EscalateMode;
use holotype::router::Action;
use holotype::{Durability, Epoch, EpochReport, Learn, Pointer, Snapshot};
use serde_json::json;
use std::path::Path;

/// Tokens of an answer, of both tiers together.
const BUDGET: u64 = 2000;

/// The questions of a half, summed.
#[derive(Default)]
struct Half {
    questions: u64,
    from_summaries: u64,
    tokens: f64,
    support: f64,
    summary_support: f64,
}

impl Half {
    fn add(&mut self, answer: &Answer, held: super::Held) {
        let is_cheap = answer.escalation.as_ref().is_some_and(|found| found.router.action == Action::Answer);
        self.questions += 1;
        self.from_summaries += u64::from(is_cheap);
        self.tokens += held.tokens;
        self.support += held.support;
        self.summary_support += if is_cheap { held.support } else { 0.0 };
    }

    fn to_json(&self) -> serde_json::Value {
        let share = |part: f64, of: u64| round(part / f64::max(of as f64, 1.0));
        json!({"questions": self.questions, "from_summaries": share(self.from_summaries as f64, self.questions),
            "tokens": share(self.tokens, self.questions), "support": share(self.support, self.questions),
            "summary_support": share(self.summary_support, self.from_summaries)})
    }
}

fn round(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// Replays the questions of a folder, a line an epoch.
pub(super) fn run(data: &Path, epochs: u64) -> Result<()> {
    for add_only in [false, true] {
        let dataset = Dataset::load_linked(data)?;
        for number in 1..=epochs {
            let epoch = Epoch::begin(&dataset.database);
            let epoch = if add_only { epoch.add_only() } else { epoch };
            let halves = ask_all(&dataset, &epoch)?;
            let report = epoch.end(None, Durability::None)?;
            dataset.database.checkpoint()?;
            print(number, add_only, &halves, &report);
        }
    }
    Ok(())
}

/// Asks every question, collects findings, and asks in the other order.
fn ask_all(dataset: &Dataset, epoch: &Epoch<'_>) -> Result<[Half; 2]> {
    let mut halves = [Half::default(), Half::default()];
    let mut keys = Vec::new();
    for asked in &dataset.asked {
        for (nth, question) in asked.questions.iter().enumerate() {
            let wanted = evidence(epoch.snapshot(), question);
            if wanted.is_empty() {
                continue;
            }
            let answer = ask(epoch, asked, question)?;
            let teaches = nth % 2 == 0;
            halves[usize::from(!teaches)].add(&answer, held(&answer, &wanted));
            let escalated = answer.escalation.as_ref().is_some_and(|found| found.router.action == Action::Escalate);
            if teaches && escalated {
                let mut found: Vec<&str> = turns(&answer).into_iter().filter(|key| wanted.contains(*key)).collect();
                found.sort_unstable();
                for key in found {
                    learn(epoch, asked, key)?;
                }
            }
            keys.push((asked, question, rows(&answer)));
        }
    }
    for (asked, question, before) in keys.iter().rev() {
        let again = epoch.snapshot().recall(question.text.clone()).near(question.vector.clone());
        let again = again.in_episode(asked.episode.clone()).escalate(EscalateMode::Auto).budget(BUDGET).run()?;
        if rows(&again) != *before {
            return Err(format!("{:?} has two answers in one epoch", question.text).into());
        }
    }
    Ok(halves)
}

fn ask(epoch: &Epoch<'_>, asked: &Asked, question: &Question) -> Result<Answer> {
    let recall = epoch.snapshot().recall(question.text.clone()).near(question.vector.clone());
    Ok(epoch.ask(recall.in_episode(asked.episode.clone()).escalate(EscalateMode::Auto).budget(BUDGET), None)?)
}

fn rows(answer: &Answer) -> Vec<String> {
    answer.rows.iter().map(|row| row.key.clone()).collect()
}

/// Collects a turn as a finding, without sentences that ask.
fn learn(epoch: &Epoch<'_>, asked: &Asked, key: &str) -> Result<()> {
    let snapshot: &Snapshot = epoch.snapshot();
    let Some(item) = snapshot.get(key)? else { return Ok(()) };
    let said = statements(item.content.text());
    if said.is_empty() {
        return Ok(());
    }
    let text = match item.content.speaker() {
        Some(speaker) => format!("{speaker}: {said}"),
        None => said,
    };
    if text.contains('?') || asked.questions.iter().any(|question| text.contains(&question.text)) {
        return Err(format!("a finding holds a question: {text:?}").into());
    }
    let mut finding = Learn::new(text).from(Pointer::to_key(key));
    if let Some(vector) = snapshot.vector(item.id)? {
        finding = finding.vector(vector);
    }
    epoch.learn(finding);
    Ok(())
}

/// The sentences of a text that do not ask.
fn statements(text: &str) -> String {
    let sentences = text.split_inclusive(['.', '!', '?', '\n']).map(str::trim);
    sentences.filter(|sentence| !sentence.contains('?')).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn print(epoch: u64, add_only: bool, [teaching, other]: &[Half; 2], report: &EpochReport) {
    let mode = if add_only { "add-only" } else { "full" };
    let all = report.asked.max(1) as f64;
    let (asked, hits) = (report.asked, report.hits);
    println!(
        "{}",
        json!({"bench": "tiermem", "method": "replay", "epoch": epoch, "mode": mode, "budget": BUDGET,
        "questions": asked, "from_summaries": round(report.from_summaries as f64 / all),
        "tokens": round(report.tokens as f64 / all), "support": round((teaching.support + other.support) / all),
        "teaching": teaching.to_json(), "other": other.to_json(),
        "hits": {"original": hits.original, "linked_fact": hits.linked_fact, "refined": hits.refined},
        "add": report.add, "update": report.update, "skip": report.skip, "refused": report.refused.len()})
    );
}
