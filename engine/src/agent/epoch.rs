//! Epoch-wise replay (TierMem, discussion of B.7, and Table 8): the first tier stays as it is while the questions of an
//! epoch are asked, and what they teach is written back between epochs.
//!
//! ```text
//! epoch = Epoch::begin                    pins a snapshot
//! epoch.ask(recall) ...                   every answer comes from that snapshot, in any order
//! epoch.learn(finding) ...                collected, not written
//! epoch.end(...)                          one transaction: ADD, UPDATE or SKIP for each finding, in their order
//! ```
//!
//! Invariants:
//! 1. No answer of an epoch depends on a finding of it, nor on what others commit meanwhile: the same question has the
//!    same answer throughout.
//! 2. The findings of an epoch become visible together, and a crash before that leaves none of them. Within the
//!    transaction each finding sees those before it, so that what two questions find is written once.
//! 3. A finding whose pointers do not resolve is reported and writes nothing; the others are written.

use crate::core::handle::Holotype;
use crate::memory::router::Action;
use crate::options::Durability;
use crate::read::answer::Answer;
use crate::read::escalation::Hits;
use crate::read::snapshot::Snapshot;
use crate::recall::{RecallBuilder, Roles};
use crate::state::settings;
use crate::statements::learn::finding::{Learn, LearnOp, LearnRoles, Learned};
use crate::write::transaction::Transaction;
use crate::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// An epoch in progress.
pub struct Epoch<'h> {
    database: &'h Holotype,
    snapshot: Snapshot,
    add_only: bool,
    tally: Mutex<Tally>,
}

/// The findings collected in an epoch.
#[derive(Default)]
struct Tally {
    findings: Vec<Learn>,
    /// Routed answers, kept where the setting `audit` has them logged.
    routed: Vec<Answer>,
    report: EpochReport,
}

/// The account of an epoch (TierMem Table 8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochReport {
    /// Questions that were asked.
    pub asked: u64,
    /// Those answered from the first tier (S-traffic).
    pub from_summaries: u64,
    /// Tokens of all answers.
    pub tokens: u64,
    /// Microseconds of all answers.
    pub micros: u64,
    /// Rows of the first tiers by origin.
    pub hits: Hits,
    /// Findings that became recalls.
    pub add: u64,
    /// Findings that replaced a known recall.
    pub update: u64,
    /// Findings that were known already, or were refused by the filter.
    pub skip: u64,
    /// Why findings could not be linked to their evidence.
    pub refused: Vec<String>,
}

impl<'h> Epoch<'h> {
    /// Begins an epoch on the newest state.
    pub fn begin(database: &'h Holotype) -> Epoch<'h> {
        Epoch { database, snapshot: database.snapshot(), add_only: false, tally: Mutex::default() }
    }

    /// Lets the end of the epoch update nothing: it adds or skips (the no-recall mode of Table 8).
    pub fn add_only(mut self) -> Self {
        self.add_only = true;
        self
    }

    /// The state that every answer of the epoch comes from.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Answers an escalating recall of [`Epoch::snapshot`], with the router of the database or other roles.
    ///
    /// # Errors
    /// As [`RecallBuilder::run`]; [`Error::Invalid`] for a recall of another state, or one that does not escalate.
    pub fn ask(&self, recall: RecallBuilder<'_>, roles: Option<Roles<'_>>) -> Result<Answer> {
        let answer = match roles {
            Some(roles) => recall.run_with(roles)?,
            None => recall.run()?,
        };
        let Some(escalation) = &answer.escalation else {
            return Err(Error::Invalid("an epoch takes recalls that escalate; call `escalate` on it".to_owned()));
        };
        if answer.commit != self.snapshot.commit() {
            return Err(Error::Invalid(format!(
                "an answer from commit {} in an epoch of commit {}; ask through Epoch::snapshot",
                answer.commit,
                self.snapshot.commit()
            )));
        }
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let report = &mut tally.report;
        report.asked += 1;
        report.from_summaries += u64::from(escalation.router.action == Action::Answer);
        report.tokens += escalation.tokens;
        report.micros += answer.micros;
        report.hits.original += escalation.hits.original;
        report.hits.linked_fact += escalation.hits.linked_fact;
        report.hits.refined += escalation.hits.refined;
        if settings::value(&self.snapshot.state, "audit")? == "reads" {
            tally.routed.push(answer.clone());
        }
        drop(tally);
        Ok(answer)
    }

    /// Collects a finding; it is written by [`Epoch::end`].
    pub fn learn(&self, finding: Learn) {
        let finding = if self.add_only { finding.add_only() } else { finding };
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).findings.push(finding);
    }

    /// Ends the epoch: writes its findings in one transaction, with the built-in roles or others.
    ///
    /// # Errors
    /// As [`Transaction::learn`], other than for pointers that do not resolve; then nothing is written.
    pub fn end(self, roles: Option<LearnRoles<'_>>, durability: Durability) -> Result<EpochReport> {
        let Tally { findings, routed, mut report } = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        if findings.is_empty() && routed.is_empty() {
            return Ok(report);
        }
        let mut transaction = self.database.begin()?;
        for answer in &routed {
            transaction.keep_route(answer)?;
        }
        for finding in &findings {
            match learn(&mut transaction, finding, roles) {
                Ok(Learned { op: LearnOp::Add, .. }) => report.add += 1,
                Ok(Learned { op: LearnOp::Update, .. }) => report.update += 1,
                Ok(Learned { op: LearnOp::Skip, .. }) => report.skip += 1,
                Err(error @ (Error::UnresolvedPointer { .. } | Error::HashMismatch { .. })) => {
                    report.refused.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        transaction.commit(durability)?;
        Ok(report)
    }
}

fn learn(transaction: &mut Transaction<'_>, finding: &Learn, roles: Option<LearnRoles<'_>>) -> Result<Learned> {
    match roles {
        Some(roles) => transaction.learn(finding, roles),
        None => transaction.learn_by_words(finding),
    }
}
