//! `audit`: what was read and written, and how good it was (HELM A.6, A.13), computed from the log.
//!
//! Reads are the receipts and, with the setting `audit = reads`, every answer. `scan` goes through the log and judges
//! each read by the state of its commit, from the position of its reader, which both state; `report` computes the
//! measures.
//!
//! Words count from four letters on, and those with a digit. A step is an (episode, step) that a trace has, or that
//! somebody read at. The measures of a third count the steps of that third of each episode.
//!
//! | measure | meaning |
//! |---|---|
//! | `epierr_steps` | share of steps with a read that gave a stale, failed or contradicted row |
//! | `epierr_recalls` | share of such reads |
//! | `epierr.stale`, `.failed`, `.contradicted` | share of reads with such a row; a read may have several |
//! | `ctu`, `ctu_per_step` | context tokens of an episode, of a step; without the caller's costs, retrieved ones only |
//! | `faithfulness` | share of the read sentences with half of their words in a span they cite |
//! | `coverage` | share of the read items with a citation that resolves; a trace is evidence itself |
//! | `validity` | share of the citations of read items that resolve |
//! | `r_per_step`, `w_per_step` | reads of a step; items written at it, other than by consolidation |
//! | `c_per_episode`, `p_per_episode` | transactions of an episode that consolidated, that pruned |
//! | `early.…`, `middle.…`, `late.…` | the measures above, of the thirds of the episodes |
//! | `paths.full` | share of reads that reached a trace below a recall below a theme |
//! | `paths.exit_m2`, `paths.exit_m3` | share of reads that ended at recalls, at themes |
//! | `paths.direct` | share of reads that reached traces alone, without both layers above (ours) |
//! | `tokens.full`, `tokens.exit_m2`, … | retrieved tokens of such a read, mean |
//! | `depth.tokens`, `depth.epierr` | correlation (Pearson) of the depth of a read with its tokens, its errors |
//! | `redundancy` | share of the items with a vector that are in a cluster of near duplicates, cosine over 0.9 (ours) |
//! | `used` | share of the items read that an answer used afterwards (ours) |
//! | `latency.search.p50`, … | microseconds of `search`, `expand`, `consolidate`; `p50`, `p95`; of the caller's costs |
//! | `route.answer`, `route.escalate` | share of routed reads by the path taken (TierMem B.8) |
//! | `route_tokens.answer`, … | retrieved tokens of such a read, mean |
//! | `hits.original`, `hits.linked_fact`, `hits.refined` | share of the rows of first tiers by origin |
//! | `write_back.add`, `.update`, `.skip` | findings by outcome: their number, of all findings logged |
//! | `latency.router.p50`, `latency.routed.p50`, … | microseconds until the router decided, of the whole answer |
//! | `r_rate` | share of labelled routes that escalated |
//! | `reward` | the paper's reward of a labelled decision, mean (TierMem D.7) |
//! | `recall_at_hard` | escalated share of the labelled routes that only raw pages answer (c_S = 0, c_R = 1) |
//! | `repair_rate` | P(raw suffices, given that the first tier does not), of those escalated (F.2, eq. 2) |
//! | `regress_rate` | P(raw does not suffice, given that the first tier does), of those escalated (F.2, eq. 3) |
//! | `uor` | share of labelled routes answered from a first tier that lacks what raw pages have (4.1) |
//!
//! Routes, findings and labels are logged with the setting `audit = reads`. The caller labels routes, since only a
//! judge knows if an answer is right; measures of labels are empty without them.
//!
//! Cost: one pass over the log, and one past state for each commit that was read at.

mod report;
mod routing;
mod scan;

use crate::model::item::ItemId;
use crate::read::answer::Table;
use crate::read::cell::{Cell, round};
use crate::read::snapshot::Snapshot;
use crate::records::record::ReceiptRecord;
use crate::state::reader_position::{Reader, ReaderPosition};
use crate::{Error, Result};
use holotype_query::plan::{Audit, Scope};
use std::collections::BTreeSet;

/// The costs of a step besides the memories it retrieved, as the caller's loop counted it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepCost {
    /// The episode.
    pub episode: String,
    /// The step.
    pub step: u64,
    /// Tokens of the system prompt, of the history and of tool outputs.
    pub tokens: [u64; 3],
    /// Microseconds of embedding and search, of expansion, of consolidation; `None` for what was not measured.
    pub micros: [Option<u64>; 3],
}

/// A measure with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Its name; parts are separated by dots.
    pub name: String,
    /// Its value; `None` where there is nothing to measure.
    pub value: Option<f64>,
    /// The number of steps, reads, items … of which it is the share or the mean.
    pub of: u64,
}

/// An audit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditReport {
    /// The measures, in the order of the documentation.
    pub measures: Vec<Measure>,
    /// Limits of the measures, in words.
    pub notes: Vec<String>,
}

impl AuditReport {
    /// The value of a measure; `None` if there is no such measure or nothing to measure.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.measures.iter().find(|measure| measure.name == name)?.value
    }
}

impl Snapshot {
    /// Audits what was read and written up to this snapshot, in some episodes or, without any named, in all.
    ///
    /// # Errors
    /// [`Error::Missing`] for an episode that does not exist, also in `costs`; [`Error::Invalid`] for two costs of one
    /// step; those of reading the log.
    pub fn audit(&self, episodes: &[&str], costs: &[StepCost]) -> Result<AuditReport> {
        let number = |episode: &str| {
            let missing = || Error::Missing { what: "episode", name: format!("'{episode}'") };
            self.state.episode_number(episode)?.ok_or_else(missing)
        };
        let wanted: BTreeSet<u32> = episodes.iter().map(|episode| number(episode)).collect::<Result<_>>()?;
        let mut known = BTreeSet::new();
        let mut costs_by_episode = Vec::with_capacity(costs.len());
        for cost in costs {
            let episode = number(&cost.episode)?;
            if !known.insert((episode, cost.step)) {
                let StepCost { episode, step, .. } = cost;
                return Err(Error::Invalid(format!("two costs of step {step} of episode '{episode}'; expected one")));
            }
            if episodes.is_empty() || wanted.contains(&episode) {
                costs_by_episode.push((episode, cost));
            }
        }
        let history = scan::scan(self, (!episodes.is_empty()).then_some(wanted))?;
        report::report(self, &history, &costs_by_episode)
    }
}

/// True if the answer of a receipt holds a row that was stale, failed or contradicted for its reader.
///
/// # Errors
/// When the state of its commit cannot be read; one that is no longer kept is not risky.
pub(crate) fn is_risky(snapshot: &Snapshot, receipt: &ReceiptRecord) -> Result<bool> {
    let past = match snapshot.as_of(receipt.commit) {
        Err(Error::BeforeHistory { .. }) => return Ok(false),
        past => past?,
    };
    let (episode, version) = (receipt.episode.clone(), receipt.version.clone());
    let reader = Reader { episode, step: receipt.step, time: receipt.time, version };
    let position = ReaderPosition::find(&past.state, None, &reader, snapshot.core.now())?;
    let items: Vec<ItemId> = receipt.rows.iter().map(|row| ItemId(row.item)).collect();
    Ok(scan::flaws(&past, &position, &items)?.contains(&true))
}

/// The measures of an audit as a table.
pub(super) fn run(snapshot: &Snapshot, audit: &Audit) -> Result<Table> {
    let episodes: Vec<&str> = match &audit.scope {
        Some(Scope::Episodes(ids)) => ids.iter().map(String::as_str).collect(),
        None | Some(Scope::All | Scope::Pages(_)) => Vec::new(),
    };
    let report = snapshot.audit(&episodes, &[])?;
    let row = |measure: &Measure| {
        let value = measure.value.map(|value| Cell::Number(round(value)));
        vec![Some(Cell::text(measure.name.as_str())), value, Some(Cell::count(measure.of))]
    };
    let columns = ["measure", "value", "of"].map(str::to_owned).to_vec();
    let rows = report.measures.iter().map(row).collect();
    Ok(Table { verb: "audit", columns, rows, notes: report.notes, failed: false })
}
