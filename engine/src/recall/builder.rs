//! A recall in Rust instead of in the language: the same statement, built clause by clause.

use super::run;
use crate::Result;
use crate::answer::Answer;
use crate::snapshot::Snapshot;
use holotype_query::ast::{self, Budget, Clauses, Expand, Limit, Query, Reader, Relax, Scope, Score, ScoreBase};
use holotype_query::{Arg, Name, Passage, Spanned, Time, Vector};

/// A recall being put together; [`RecallBuilder::run`] answers it.
#[derive(Debug, Clone)]
pub struct RecallBuilder<'s> {
    snapshot: &'s Snapshot,
    query: Query,
    clauses: Clauses,
}

/// A value in the place of a literal.
fn literal<T>(value: T) -> Spanned<Arg<T>> {
    Spanned::from(Arg::Value(value))
}

impl Snapshot {
    /// Begins a recall of what is known about a text.
    pub fn recall(&self, text: impl Into<String>) -> RecallBuilder<'_> {
        let passage = Passage { text: text.into(), vector: None };
        let query = Query { text: Some(literal(passage)), ..Query::default() };
        RecallBuilder { snapshot: self, query, clauses: Clauses::default() }
    }

    /// Begins a recall of what is near a vector.
    pub fn recall_near(&self, vector: Vec<f32>) -> RecallBuilder<'_> {
        RecallBuilder { snapshot: self, query: Query::default(), clauses: Clauses::default() }.near(vector)
    }
}

impl RecallBuilder<'_> {
    /// The vector of the query.
    pub fn near(mut self, vector: Vec<f32>) -> Self {
        self.query.near = Some(literal(Vector { param: "vector".to_owned(), components: vector }));
        self
    }

    /// Only within this episode; say it again for another.
    pub fn in_episode(mut self, id: impl Into<String>) -> Self {
        let id = literal(id.into());
        match self.clauses.scope.as_mut().map(|scope| &mut scope.node) {
            Some(Scope::Episodes(ids)) => ids.push(id),
            _ => self.clauses.scope = Some(Scope::Episodes(vec![id]).into()),
        }
        self
    }

    /// Where the reader stands, in steps.
    pub fn at_step(mut self, step: u64) -> Self {
        self.reader().step = Some(literal(step));
        self
    }

    /// Where the reader stands, on the clock: microseconds since the epoch.
    pub fn at_time(mut self, micros: i64) -> Self {
        self.reader().time = Some(literal(Time { micros }));
        self
    }

    /// The reader's version; items of another are left out.
    pub fn at_version(mut self, version: impl Into<String>) -> Self {
        self.reader().version = Some(literal(version.into()));
        self
    }

    fn reader(&mut self) -> &mut Reader {
        &mut self.clauses.reader.get_or_insert_with(|| Reader::default().into()).node
    }

    /// The score profile: `agent` or `archive`.
    pub fn profile(mut self, name: &str) -> Self {
        let base = ScoreBase::Profile(Spanned::from(Name::from(name)));
        self.clauses.score = Some(Score { base, terms: Vec::new() }.into());
        self
    }

    /// As many rows as fit these tokens.
    pub fn budget(mut self, tokens: u64) -> Self {
        self.clauses.budget = Some(Budget { tokens: literal(tokens) }.into());
        self
    }

    /// At most this many rows.
    pub fn limit(mut self, rows: u64) -> Self {
        self.clauses.limit = Some(Limit { count: literal(rows), skip: None }.into());
        self
    }

    /// Let excluded items back, marked, when fewer rows than this survive.
    pub fn relax_below(mut self, rows: u64) -> Self {
        self.clauses.relax = Some(Relax { below: literal(rows) }.into());
        self
    }

    /// Add the evidence under each row: so many levels down, within so many tokens.
    pub fn expand(mut self, depth: u64, tokens: u64) -> Self {
        let expand = Expand { noun: None, depth: Some(literal(depth)), within_tokens: Some(literal(tokens)) };
        self.clauses.expand = Some(expand.into());
        self
    }

    /// Answers the recall.
    ///
    /// # Errors
    /// For an episode that does not exist, a vector that does not fit the space, a profile that is none.
    pub fn run(self) -> Result<Answer> {
        run(self.snapshot, &ast::Recall { query: self.query, clauses: self.clauses })
    }
}
