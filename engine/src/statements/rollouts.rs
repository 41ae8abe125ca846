//! Rollouts kept in a database (HiMPO): written, read back, and their credit stored.
//!
//! A rollout is an episode of its own with a trace for each step: its text is what the agent saw, the fields `memory`,
//! `think` and `call` what it wrote, and `rollout` the [record](crate::credit::Rollout) with scores and reward. The
//! traces are inactive: they are training data, no memory, and no recall finds them; `find` does, and `forget` erases
//! them.
//!
//! Invariants: `(group, rollout, step)` is kept once; the order in which rollouts were kept changes no credit.

use crate::credit::{CreditOptions, Rollout, RunStep, Write, credit, mean_credit};
use crate::model::item::{ItemId, Kind, Source};
use crate::read::answer::Output;
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::write::draft::NewTrace;
use crate::write::transaction::{Mark, Transaction};
use crate::{Error, Result};
use holotype_query::Params;
use serde_json::json;
use std::collections::BTreeMap;

/// The tool of the traces of rollouts.
const TOOL: &str = "himpo.rollout";
/// The field with the record of a step.
const RECORD: &str = "rollout";
/// The kept traces, in the order in which they were written.
const FIND: &str = "find traces where tool = 'himpo.rollout' and not redacted return item";

/// The episode of a rollout.
fn episode(group: &str, rollout: &str) -> String {
    format!("rollout:{}", json!([group, rollout]))
}

impl Transaction<'_> {
    /// Keeps a rollout for training; false if the database has it already.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a reward or score that is not finite and for two steps of one number; those of
    /// [`Transaction::record`].
    pub fn keep_rollout(&mut self, rollout: &Rollout) -> Result<bool> {
        let numbers = rollout.steps.iter().filter_map(|step| step.scores);
        let mut numbers = numbers.flat_map(|scores| [scores.s_prev, scores.s_now, scores.log_h.unwrap_or(0.0)]);
        if !rollout.reward.is_finite() || numbers.any(|number| !number.is_finite()) {
            let (group, rollout) = (&rollout.group, &rollout.rollout);
            return Err(Error::Invalid(format!(
                "group {group:?}, rollout {rollout:?} has a number that is not finite"
            )));
        }
        let episode = episode(&rollout.group, &rollout.rollout);
        if self.state()?.episode_number(&episode)?.is_some() {
            return Ok(false);
        }
        self.atomically(|transaction| {
            if rollout.steps.is_empty() {
                transaction.keep_step(NewTrace::new(Kind::Observation, &episode, "").step(0), rollout.record(None))?;
            }
            for step in &rollout.steps {
                let texts = &step.texts;
                let mut trace = NewTrace::new(Kind::Observation, &episode, texts.observation.as_str()).step(step.step);
                trace = trace.field("number", step.step.to_string());
                for (name, text) in [("memory", &texts.memory), ("think", &texts.think), ("call", &texts.call)] {
                    if !text.is_empty() {
                        trace = trace.field(name, text.as_str());
                    }
                }
                transaction.keep_step(trace, rollout.record(Some(step)))?;
            }
            Ok(true)
        })
    }

    fn keep_step(&mut self, trace: NewTrace, record: String) -> Result<()> {
        let id = self.record(trace.tool(TOOL).source(Source::System).field(RECORD, record))?;
        self.deactivate(id, None, Some("kept for training".to_owned()))
    }

    /// Sets the credit of every item that a kept rollout names: the mean over rollouts of its mean smoothed credit,
    /// with the number of rollouts. Items that have it already, or no longer exist, are left alone. Returns the changed
    /// ones.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what [`credit`] refuses, as scores of two templates.
    pub fn credit_rollouts(&mut self, options: &CreditOptions) -> Result<Vec<ItemId>> {
        let rollouts = self.names()?.rollouts()?;
        let lines: Vec<Write<'_>> = rollouts.iter().flat_map(Rollout::writes).collect();
        let credits = credit(&lines, options).map_err(|error| Error::Invalid(error.refusal.to_string()))?;
        let mut items: BTreeMap<(&str, &str, u64), &str> = BTreeMap::new();
        for rollout in &rollouts {
            let named = rollout.steps.iter().filter_map(|step| Some((step.step, step.item.as_deref()?)));
            items.extend(named.map(|(step, item)| ((rollout.group.as_str(), rollout.rollout.as_str(), step), item)));
        }
        let credited = lines.iter().zip(&credits.lines).filter_map(|(line, credit)| {
            let (step, _) = line.scored?;
            let item = items.get(&(line.group, line.rollout, step))?;
            Some((*item, line, credit.write?.smoothed))
        });
        let mut changed = Vec::new();
        for (item, (mean, count)) in mean_credit(credited) {
            let Some(id) = self.state()?.item_by_key(item)? else { continue };
            let now = self.attributes(id)?;
            if (now.credit.to_bits(), now.credit_count) != (mean.to_bits(), count) {
                self.mark(id, Mark::Credit(mean, count), None)?;
                changed.push(id);
            }
        }
        Ok(changed)
    }
}

impl Snapshot {
    /// The kept rollouts, by group and name. Steps that were forgotten are missing.
    ///
    /// # Errors
    /// When a record cannot be read as written.
    pub fn rollouts(&self) -> Result<Vec<Rollout>> {
        let mut found: BTreeMap<(String, String), Rollout> = BTreeMap::new();
        for id in self.kept_steps()? {
            let content = self.content(id)?;
            let text = |name: &str| content.field_text(name).unwrap_or_default().to_owned();
            let texts = RunStep {
                memory: text("memory"),
                think: text("think"),
                call: text("call"),
                observation: content.text().to_owned(),
            };
            // A rollout without writes has a trace too, which is no step.
            let step = content.field_text("number").and_then(|number| number.parse().ok());
            let Some(part) = Rollout::from_record(&text(RECORD), step.map(|step| (step, texts))) else { continue };
            let whole = found.entry((part.group.clone(), part.rollout.clone()));
            let whole = whole.or_insert_with(|| Rollout { steps: Vec::new(), ..part.clone() });
            whole.steps.extend(part.steps);
        }
        let mut rollouts: Vec<Rollout> = found.into_values().collect();
        rollouts.iter_mut().for_each(|rollout| rollout.steps.sort_by_key(|step| step.step));
        Ok(rollouts)
    }

    /// The traces of kept rollouts that were not forgotten.
    fn kept_steps(&self) -> Result<Vec<ItemId>> {
        let Some(Output::Table(table)) = self.query(FIND, &Params::new())?.pop() else { return Ok(Vec::new()) };
        let id = |cell: &Option<Cell>| match cell {
            Some(Cell::Integer(id)) => u32::try_from(*id).ok().map(ItemId),
            _ => None,
        };
        Ok(table.rows.iter().filter_map(|row| id(row.first()?)).collect())
    }
}
