//! A builder of recall statements for Rust callers: each method sets one clause of the language.
//!
//! The statement is checked as one of the language is, so a wrong name or type is the same error.

use super::condition::{Condition, Flaw, name_of};
use super::stage::{Stage, Weights};
use super::{Roles, run, run_with_roles};
use crate::model::time::Moment;
use crate::read::answer::Answer;
use crate::read::snapshot::Snapshot;
use crate::read::typed::FromCells;
use crate::{Error, Result};
use holotype_query::plan::{
    Abstain, AsOf, Clauses, Escalate, Expand, Predicate, Query, Reader, Recall, Returns, Scope,
};
use holotype_query::{EscalateMode, ItemRef, Lines, Noun, Passage, Time, Vector};
use std::fmt;

/// A recall statement in progress; [`RecallBuilder::run`] answers it.
///
/// ```
/// use holotype::condition::attribute;
/// use holotype::{Durability, Holotype, NewTrace, Options, Status};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
/// # let mut transaction = database.begin()?;
/// # transaction.record(NewTrace::call("trip-42", "search", "UA123 costs $450").key("t1"))?;
/// # transaction.commit(Durability::Sync)?;
/// let snapshot = database.snapshot();
/// let recall = snapshot
///     .recall("cost of UA123")
///     .in_episode("trip-42")
///     .filter(attribute("tool").is("search") & attribute("status").is_not(Status::Failed))
///     .budget(500)
///     .returns(["key", "score"]);
/// let rows: Vec<(String, f32)> = recall.rows()?;
/// assert_eq!(rows[0].0, "t1");
/// # Ok::<(), holotype::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecallBuilder<'s> {
    snapshot: &'s Snapshot,
    query: Query,
    clauses: Clauses,
    skip: Option<u64>,
}

impl Snapshot {
    /// Starts a recall by text.
    pub fn recall(&self, text: impl Into<String>) -> RecallBuilder<'_> {
        let passage = Passage { text: text.into(), vector: None };
        let query = Query { text: Some(passage), ..Query::default() };
        RecallBuilder::new(self, query)
    }

    /// Starts a recall by vector.
    pub fn recall_near(&self, vector: Vec<f32>) -> RecallBuilder<'_> {
        RecallBuilder::new(self, Query::default()).near(vector)
    }

    /// Starts a recall of what resembles the item of a key.
    pub fn recall_like(&self, key: impl Into<String>) -> RecallBuilder<'_> {
        let like = Some(ItemRef::Key(key.into()));
        RecallBuilder::new(self, Query { like, ..Query::default() })
    }
}

impl<'s> RecallBuilder<'s> {
    fn new(snapshot: &'s Snapshot, query: Query) -> Self {
        RecallBuilder { snapshot, query, clauses: Clauses::default(), skip: None }
    }
}

impl RecallBuilder<'_> {
    /// Sets the query vector.
    pub fn near(mut self, vector: Vec<f32>) -> Self {
        self.query.near = Some(Vector { param: "vector".to_owned(), components: vector });
        self
    }

    // ---- which rows ----

    /// Limits the scope to this episode; call again to add another.
    pub fn in_episode(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        match self.clauses.scope.as_mut() {
            Some(Scope::Episodes(ids)) => ids.push(id),
            _ => self.clauses.scope = Some(Scope::Episodes(vec![id])),
        }
        self
    }

    /// Limits the scope to this page; call again to add another.
    pub fn in_page(mut self, key: impl Into<String>) -> Self {
        let key = key.into();
        match self.clauses.scope.as_mut() {
            Some(Scope::Pages(keys)) => keys.push(key),
            _ => self.clauses.scope = Some(Scope::Pages(vec![key])),
        }
        self
    }

    /// Searches everything, as without a scope.
    pub fn in_all(mut self) -> Self {
        self.clauses.scope = Some(Scope::All);
        self
    }

    /// Sets the stages of the search, from coarse to fine.
    pub fn through(mut self, stages: impl IntoIterator<Item = Stage>) -> Self {
        self.clauses.path = Some(stages.into_iter().map(Stage::into_plan).collect());
        self
    }

    /// Sets a condition on rows (`where`), which is never relaxed; further ones must hold too.
    pub fn filter(mut self, condition: Condition) -> Self {
        let condition = condition.into_predicate();
        let all = match self.clauses.filter.take() {
            None => condition,
            Some(Predicate::And(mut parts)) => {
                parts.push(condition);
                Predicate::And(parts)
            }
            Some(before) => Predicate::And(vec![before, condition]),
        };
        self.clauses.filter = Some(all);
        self
    }

    /// Keeps rows with these flaws out.
    pub fn exclude<F: Into<Flaw>>(mut self, flaws: impl IntoIterator<Item = F>) -> Self {
        self.clauses.exclude.extend(flaws.into_iter().map(|flaw| flaw.into().into_plan()));
        self
    }

    /// Lets rows with these flaws in.
    pub fn include<F: Into<Flaw>>(mut self, flaws: impl IntoIterator<Item = F>) -> Self {
        self.clauses.include.extend(flaws.into_iter().map(|flaw| flaw.into().into_plan()));
        self
    }

    /// Includes excluded items, marked, if fewer rows than this remain.
    pub fn relax_below(mut self, rows: u64) -> Self {
        self.clauses.relax_below = Some(rows);
        self
    }

    /// Gives no rows if the evidence is weaker than this.
    pub fn abstain_below(mut self, strength: f64) -> Self {
        self.clauses.abstain = Some(Abstain { below: Some(strength) });
        self
    }

    /// Gives no rows if the question is not answerable.
    pub fn abstain(mut self) -> Self {
        self.clauses.abstain = Some(Abstain { below: None });
        self
    }

    /// Sets whether other statements of a row's frame are lines below it, or rows.
    pub fn lines(mut self, lines: Lines) -> Self {
        self.clauses.lines = Some(lines);
        self
    }

    /// Returns as many rows as fit into this many tokens.
    pub fn budget(mut self, tokens: u64) -> Self {
        self.clauses.budget = Some(tokens);
        self
    }

    /// Returns at most this many rows.
    pub fn limit(mut self, rows: u64) -> Self {
        self.clauses.limit = Some(rows);
        self
    }

    /// Skips this many rows before those of [`RecallBuilder::limit`].
    pub fn skip(mut self, rows: u64) -> Self {
        self.skip = Some(rows);
        self
    }

    // ---- their order ----

    /// Sets the score profile: `default`, `helm`, `archive` or `agent`.
    pub fn profile(self, name: &str) -> Self {
        self.score(Weights::profile(name))
    }

    /// Sets the weights of the score.
    pub fn score(mut self, weights: Weights) -> Self {
        self.clauses.score = Some(weights.into_plan());
        self
    }

    // ---- the reader ----

    /// Sets the reader's step.
    pub fn at_step(mut self, step: u64) -> Self {
        self.reader().step = Some(step);
        self
    }

    /// Sets the reader's time: a [`Timestamp`](crate::Timestamp), or microseconds since the epoch.
    pub fn at_time(mut self, at: impl Moment) -> Self {
        self.reader().time = Some(Time { micros: at.micros() });
        self
    }

    /// Sets the reader's version, which excludes items of other versions.
    pub fn at_version(mut self, version: impl Into<String>) -> Self {
        self.reader().version = Some(version.into());
        self
    }

    fn reader(&mut self) -> &mut Reader {
        self.clauses.reader.get_or_insert_default()
    }

    /// Reads the state after a commit.
    pub fn as_of_commit(mut self, commit: u64) -> Self {
        self.clauses.as_of = Some(AsOf::Commit(commit));
        self
    }

    /// Reads the state after the last commit stamped at or before a time: a [`Timestamp`](crate::Timestamp), or
    /// microseconds since the epoch.
    pub fn as_of_time(mut self, at: impl Moment) -> Self {
        self.clauses.as_of = Some(AsOf::Time(Time { micros: at.micros() }));
        self
    }

    // ---- evidence ----

    /// Adds the evidence under each row: at most `depth` levels and `tokens` tokens.
    pub fn expand(mut self, depth: u64, tokens: u64) -> Self {
        let expand = self.expansion();
        (expand.depth, expand.within_tokens) = (Some(depth), Some(tokens));
        self
    }

    /// Adds evidence of one sort only.
    pub fn expand_to(mut self, noun: Noun) -> Self {
        self.expansion().noun = Some(noun);
        self
    }

    fn expansion(&mut self) -> &mut Expand {
        self.clauses.expand.get_or_insert(Expand { noun: None, depth: None, within_tokens: None })
    }

    /// Answers from summaries, or from raw pages: as the router says, always, or never.
    pub fn escalate(mut self, mode: EscalateMode) -> Self {
        self.escalation().mode = Some(mode);
        self
    }

    /// Sets how many pages each round of an escalation reads.
    pub fn escalate_pages(mut self, pages: u64) -> Self {
        let escalate = self.escalation();
        (escalate.noun, escalate.count) = (Some(Noun::Pages), Some(pages));
        self
    }

    /// Sets the number of rounds of an escalation, at most.
    pub fn escalate_rounds(mut self, rounds: u64) -> Self {
        self.escalation().rounds = Some(rounds);
        self
    }

    /// Sets the similarity of a summary from which its page goes before the ranking.
    pub fn escalate_protect(mut self, similarity: f64) -> Self {
        self.escalation().protect = Some(similarity);
        self
    }

    /// Starts an escalation without the pages that summaries link to.
    pub fn escalate_without_links(mut self) -> Self {
        self.escalation().without_links = true;
        self
    }

    fn escalation(&mut self) -> &mut Escalate {
        self.clauses.escalate.get_or_insert_default()
    }

    // ---- the answer ----

    /// Stores the question and the answer; the recall then runs with [`RecallBuilder::run_in`].
    pub fn with_receipt(mut self) -> Self {
        self.clauses.receipt = true;
        self
    }

    /// Sets the columns of [`RecallBuilder::rows`] and of the answer as JSON.
    pub fn returns<'n>(mut self, columns: impl IntoIterator<Item = &'n str>) -> Self {
        let names = columns.into_iter().map(name_of).collect();
        self.clauses.returns = Some(Returns::Names(names));
        self
    }

    /// The recall so far, unchecked.
    fn unchecked(&self) -> Recall {
        let skip = self.skip.filter(|_| self.clauses.limit.is_some()).unwrap_or(0);
        Recall { query: self.query.clone(), clauses: Clauses { skip, ..self.clauses.clone() } }
    }

    /// The recall so far, checked as one of the language is.
    pub(crate) fn plan(&self) -> Result<Recall> {
        if self.skip.is_some() && self.clauses.limit.is_none() {
            return Err(Error::Invalid("skip is for the pages of a limit; set limit as well".to_owned()));
        }
        let recall = self.unchecked();
        recall.check().map_err(Error::Query)?;
        Ok(recall)
    }

    /// True if it asks for a receipt.
    pub(crate) fn wants_receipt(&self) -> bool {
        self.clauses.receipt
    }

    /// The recall, which must not write.
    pub(super) fn reading(&self) -> Result<Recall> {
        if self.clauses.receipt { Err(Error::ReadOnly) } else { self.plan() }
    }

    /// Answers the recall.
    ///
    /// # Errors
    /// For an unknown episode, name or profile, and a vector that does not fit the space; [`Error::ReadOnly`] with a
    /// receipt.
    pub fn run(self) -> Result<Answer> {
        let recall = self.reading()?;
        self.snapshot.unless_erased(|view| view.core.unless_cut(|| run(view, &recall)))
    }

    /// Answers an escalating recall with other roles than the built-in ones.
    ///
    /// # Errors
    /// As [`RecallBuilder::run`]; [`Error::Invalid`] without [`RecallBuilder::escalate`].
    pub fn run_with(self, roles: Roles<'_>) -> Result<Answer> {
        let recall = self.reading()?;
        self.snapshot.unless_erased(|view| view.core.unless_cut(|| run_with_roles(view, &recall, roles)))
    }

    /// Answers the recall with rows as values of Rust, in the order of [`RecallBuilder::returns`].
    ///
    /// # Errors
    /// As [`RecallBuilder::run`]; [`Error::Invalid`] for another number of columns, or a cell of another type.
    pub fn rows<T: FromCells>(self) -> Result<Vec<T>> {
        self.run()?.typed()
    }
}

/// The canonical statement; a query vector stands as `$vector`.
impl fmt::Display for RecallBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.unchecked().fmt(f)
    }
}
