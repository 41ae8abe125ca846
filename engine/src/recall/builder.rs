//! A builder of recall statements for Rust callers: each method sets one clause.

use super::{Roles, run, run_with_roles};
use crate::Result;
use crate::read::answer::Answer;
use crate::read::snapshot::Snapshot;
use holotype_query::ast::{
    self, Budget, Clauses, Escalate, Expand, Limit, Query, Reader, Relax, Scope, Score, ScoreBase,
};
use holotype_query::{Arg, EscalateMode, Name, Passage, Spanned, Time, Vector};

/// A recall statement in progress; [`RecallBuilder::run`] answers it.
#[derive(Debug, Clone)]
pub struct RecallBuilder<'s> {
    snapshot: &'s Snapshot,
    query: Query,
    clauses: Clauses,
}

/// A literal value.
fn literal<T>(value: T) -> Spanned<Arg<T>> {
    Spanned::from(Arg::Value(value))
}

impl Snapshot {
    /// Starts a recall by text.
    pub fn recall(&self, text: impl Into<String>) -> RecallBuilder<'_> {
        let passage = Passage { text: text.into(), vector: None };
        let query = Query { text: Some(literal(passage)), ..Query::default() };
        RecallBuilder { snapshot: self, query, clauses: Clauses::default() }
    }

    /// Starts a recall by vector.
    pub fn recall_near(&self, vector: Vec<f32>) -> RecallBuilder<'_> {
        RecallBuilder { snapshot: self, query: Query::default(), clauses: Clauses::default() }.near(vector)
    }
}

impl RecallBuilder<'_> {
    /// Sets the query vector.
    pub fn near(mut self, vector: Vec<f32>) -> Self {
        self.query.near = Some(literal(Vector { param: "vector".to_owned(), components: vector }));
        self
    }

    /// Limits the scope to this episode; call again to add another.
    pub fn in_episode(mut self, id: impl Into<String>) -> Self {
        let id = literal(id.into());
        match self.clauses.scope.as_mut().map(|scope| &mut scope.node) {
            Some(Scope::Episodes(ids)) => ids.push(id),
            _ => self.clauses.scope = Some(Scope::Episodes(vec![id]).into()),
        }
        self
    }

    /// Sets the reader's step.
    pub fn at_step(mut self, step: u64) -> Self {
        self.reader().step = Some(literal(step));
        self
    }

    /// Sets the reader's time in microseconds since the epoch.
    pub fn at_time(mut self, micros: i64) -> Self {
        self.reader().time = Some(literal(Time { micros }));
        self
    }

    /// Sets the reader's version, which excludes items of other versions.
    pub fn at_version(mut self, version: impl Into<String>) -> Self {
        self.reader().version = Some(literal(version.into()));
        self
    }

    fn reader(&mut self) -> &mut Reader {
        &mut self.clauses.reader.get_or_insert_with(|| Reader::default().into()).node
    }

    /// Sets the score profile: `agent` or `archive`.
    pub fn profile(mut self, name: &str) -> Self {
        let base = ScoreBase::Profile(Spanned::from(Name::from(name)));
        self.clauses.score = Some(Score { base, terms: Vec::new() }.into());
        self
    }

    /// Returns as many rows as fit into this many tokens.
    pub fn budget(mut self, tokens: u64) -> Self {
        self.clauses.budget = Some(Budget { tokens: literal(tokens) }.into());
        self
    }

    /// Returns at most this many rows.
    pub fn limit(mut self, rows: u64) -> Self {
        self.clauses.limit = Some(Limit { count: literal(rows), skip: None }.into());
        self
    }

    /// Includes excluded items, marked, if fewer rows than this remain.
    pub fn relax_below(mut self, rows: u64) -> Self {
        self.clauses.relax = Some(Relax { below: literal(rows) }.into());
        self
    }

    /// Adds the evidence under each row: at most `depth` levels and `tokens` tokens.
    pub fn expand(mut self, depth: u64, tokens: u64) -> Self {
        let expand = Expand { noun: None, depth: Some(literal(depth)), within_tokens: Some(literal(tokens)) };
        self.clauses.expand = Some(expand.into());
        self
    }

    /// The statement so far.
    pub(super) fn statement(&self) -> ast::Recall {
        ast::Recall { query: self.query.clone(), clauses: self.clauses.clone() }
    }

    /// Answers from summaries, or from raw pages: as the router says, always, or never.
    pub fn escalate(mut self, mode: EscalateMode) -> Self {
        self.clauses.escalate = Some(Escalate { mode: Some(mode), ..Escalate::default() }.into());
        self
    }

    /// Answers an escalating recall with other roles than the built-in ones.
    ///
    /// # Errors
    /// As [`RecallBuilder::run`]; [`Error::Invalid`](crate::Error::Invalid) without [`RecallBuilder::escalate`].
    pub fn run_with(self, roles: Roles<'_>) -> Result<Answer> {
        run_with_roles(self.snapshot, &self.statement(), roles)
    }

    /// Answers the recall.
    ///
    /// # Errors
    /// For an unknown episode, a vector that does not fit the space, or an unknown profile.
    pub fn run(self) -> Result<Answer> {
        run(self.snapshot, &ast::Recall { query: self.query, clauses: self.clauses })
    }
}
