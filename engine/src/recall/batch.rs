//! Recalls that run together: searches by vector that share a filter are answered in one pass.
//!
//! Plans are made first, which says what each recall will search for; recalls with the same clauses have one plan. The
//! rows of a recall are those that it has alone.

use super::plan::Plan;
use super::{RecallBuilder, Steps, gather, run, run_plan};
use crate::derive::repair;
use crate::read::answer::Answer;
use crate::read::near_answers::{self, NearQuestions};
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_query::Channel;
use holotype_query::plan::{Clauses, Recall};
use std::time::Instant;

/// Recalls that run together, at most: their searches have to be kept until each is asked.
pub(crate) const TOGETHER: usize = 256;

impl Snapshot {
    /// Answers recalls on this snapshot, each as [`RecallBuilder::run`] does, and faster where many search by vector
    /// under one filter. The answers are in the order of the recalls.
    ///
    /// Limits hold for each recall alone. The time of a pass that several recalls share counts to none of them.
    ///
    /// ```
    /// # use holotype::{Durability, Holotype, NewTrace, Options, Space};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let options = Options::with_space(Space::new("example", 2));
    /// # let database = Holotype::create(dir.path().join("memory.holo"), options)?;
    /// let mut transaction = database.begin()?;
    /// transaction.record(NewTrace::turn("walk", "to the east").key("east").vector(vec![1.0, 0.0]))?;
    /// transaction.record(NewTrace::turn("walk", "to the north").key("north").vector(vec![0.0, 1.0]))?;
    /// transaction.commit(Durability::None)?;
    /// let snapshot = database.snapshot();
    /// let near = |vector| snapshot.recall_near(vector).limit(1);
    /// let answers = snapshot.recall_batch(&[near(vec![0.1, 2.0]), near(vec![2.0, 0.1])]);
    /// let keys: Vec<String> = answers.into_iter().map(|answer| answer.unwrap().rows.remove(0).key).collect();
    /// assert_eq!(keys, ["north", "east"]);
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn recall_batch(&self, recalls: &[RecallBuilder<'_>]) -> Vec<Result<Answer>> {
        let recalls: Vec<Result<Recall>> = recalls.iter().map(RecallBuilder::reading).collect();
        let sound: Vec<&Recall> = recalls.iter().flatten().collect();
        let answers: Vec<Result<Answer>> = sound.chunks(TOGETHER).flat_map(|group| run_together(self, group)).collect();
        let mut answers = answers.into_iter();
        // Each sound recall takes the next answer.
        let outcome = |recall: Result<Recall>| match recall {
            Ok(_) => answers.next(),
            Err(error) => Some(Err(error)),
        };
        recalls.into_iter().filter_map(outcome).collect()
    }
}

/// Answers recalls on a snapshot, in their order.
pub(crate) fn run_together(snapshot: &Snapshot, recalls: &[&Recall]) -> Vec<Result<Answer>> {
    if recalls.len() < 2 || !near_answers::pays(snapshot).unwrap_or(false) {
        return recalls.iter().map(|recall| snapshot.unless_erased(|view| run(view, recall))).collect();
    }
    let mut plans: Vec<(&Clauses, Plan)> = Vec::new();
    let mut questions = NearQuestions::default();
    // The plan of each recall, to be given its query again. An earlier state has other sets, and a recall with a
    // mistake is left to be told when it runs.
    let mut of_recalls = Vec::with_capacity(recalls.len());
    for recall in recalls {
        let at = plan_of(snapshot, recall, &mut plans);
        let asks = at.filter(|at| plans[*at].1.ask(snapshot, recall).is_ok());
        if let Some(at) = asks {
            ask(&plans[at].1, &mut questions);
        }
        of_recalls.push(asks);
    }
    let ahead = snapshot.with_near_answers(questions.answer(&snapshot.metered()));
    // The limits of a statement include the use of its plan.
    let shares_plans = !snapshot.limits_use();
    let mut answers = Vec::with_capacity(recalls.len());
    for (recall, at) in recalls.iter().zip(of_recalls) {
        let answer = match at.filter(|_| shares_plans) {
            Some(at) => run_shared(&ahead.metered(), &mut plans[at].1, recall),
            None => run(&ahead, recall),
        };
        answers.push(match answer {
            Err(Error::SnapshotForgotten) => snapshot.unless_erased(|view| run(view, recall)),
            answer => answer,
        });
    }
    answers
}

/// The index of the plan of a recall, which is made if no other has its clauses.
fn plan_of<'r>(snapshot: &Snapshot, recall: &'r Recall, plans: &mut Vec<(&'r Clauses, Plan)>) -> Option<usize> {
    if recall.clauses.as_of.is_some() || recall.clauses.escalate.is_some() {
        return None;
    }
    let known = plans.iter().position(|(clauses, _)| **clauses == recall.clauses);
    known.or_else(|| {
        plans.push((&recall.clauses, Plan::new(&snapshot.metered(), recall).ok()?));
        Some(plans.len() - 1)
    })
}

/// Runs a recall by a plan of its clauses.
fn run_shared(snapshot: &Snapshot, plan: &mut Plan, recall: &Recall) -> Result<Answer> {
    let started = Instant::now();
    let snapshot = &snapshot.with_content_cache();
    plan.ask(snapshot, recall)?;
    repair::skip_damaged(&snapshot.state, || run_plan(snapshot, plan, &mut Steps::new(), started))
}

/// Adds the searches by vector that a plan certainly makes.
fn ask(plan: &Plan, questions: &mut NearQuestions) {
    let Some(vector) = &plan.vector else { return };
    let near = plan.stages.iter().filter(|stage| stage.lift.is_none() && stage.channels.contains(&Channel::Near));
    for stage in near {
        for part in &stage.layers {
            let (route, rows) = (part.of(&stage.route), part.of(&stage.rows));
            match gather::widened_pool(&route, &rows, stage.pool) {
                Some(most) => questions.add(part.layer, vector, &route, most),
                None => {
                    questions.add(part.layer, vector, &route, stage.pool);
                    questions.add(part.layer, vector, &rows, stage.pool);
                }
            }
        }
    }
}
