//! The clauses of a recall; listings share some of them.

use crate::ast::{Flaw, Predicate};
use crate::span::Spanned;
use crate::value::{Arg, Duration, Id, Name, Time};
use crate::words::{Channel, EscalateMode, Lines, Noun, Part};

/// The clauses of a recall, in the order they are printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clauses {
    /// `in …`.
    pub scope: Option<Spanned<Scope>>,
    /// `through …`: the stages in order.
    pub path: Option<Spanned<Vec<Spanned<Stage>>>>,
    /// `where …`.
    pub filter: Option<Spanned<Predicate>>,
    /// `include …`: flaws to let in.
    pub include: Option<Spanned<Vec<Spanned<Flaw>>>>,
    /// `exclude …`: flaws to keep out.
    pub exclude: Option<Spanned<Vec<Spanned<Flaw>>>>,
    /// `score …`.
    pub score: Option<Spanned<Score>>,
    /// `relax below n`.
    pub relax: Option<Spanned<Relax>>,
    /// `escalate …`.
    pub escalate: Option<Spanned<Escalate>>,
    /// `expand …`.
    pub expand: Option<Spanned<Expand>>,
    /// `at …`: where the reader stands.
    pub reader: Option<Spanned<Reader>>,
    /// `as of …`: what the database knew.
    pub as_of: Option<Spanned<AsOf>>,
    /// `budget n tokens`.
    pub budget: Option<Spanned<Budget>>,
    /// `abstain [below x]`.
    pub abstain: Option<Spanned<Abstain>>,
    /// `limit n [skip n]`.
    pub limit: Option<Spanned<Limit>>,
    /// `lines all` or `lines none`.
    pub lines: Option<Spanned<Lines>>,
    /// `with receipt`.
    pub receipt: Option<Spanned<WithReceipt>>,
    /// `return …`.
    pub returns: Option<Spanned<Returns>>,
}

/// `in …`.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    /// `in episode …`: the ids.
    Episodes(Vec<Spanned<Arg<Id>>>),
    /// `in page …`: the keys.
    Pages(Vec<Spanned<Arg<Id>>>),
    /// `in all`.
    All,
}

/// One stage of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// `NOUN [n] [by …] [pool n] [only (…)]`.
    Gather(Box<Gather>),
    /// `( STAGES ) up to n hops [carry n] [keep n]`.
    Hops(Hops),
    /// `lift to NOUN [n] [votes n]`.
    Lift(Lift),
}

/// A stage that finds things of one sort.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The sort.
    pub noun: Spanned<Noun>,
    /// The number of rows to keep.
    pub count: Option<Spanned<Arg<u64>>>,
    /// The channels, in the order written; empty when none was.
    pub channels: Vec<Spanned<Channel>>,
    /// The number of candidates of each channel.
    pub pool: Option<Spanned<Arg<u64>>>,
    /// The predicate of candidates that may route.
    pub only: Option<Spanned<Predicate>>,
}

/// A group of stages that is walked again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Hops {
    /// The stages of one hop.
    pub stages: Vec<Spanned<Stage>>,
    /// The largest number of walks.
    pub up_to: Spanned<Arg<u64>>,
    /// The number of rows whose text joins the query of the next hop.
    pub carry: Option<Spanned<Arg<u64>>>,
    /// The largest number of rows of the answer that each hop keeps.
    pub keep: Option<Spanned<Arg<u64>>>,
}

/// A stage from items to what they came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Lift {
    /// To what.
    pub noun: Spanned<Noun>,
    /// The number of rows to keep.
    pub count: Option<Spanned<Arg<u64>>>,
    /// The number of items that must vote for one.
    pub votes: Option<Spanned<Arg<u64>>>,
}

/// A length on the clock or in steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Interval {
    /// A duration.
    Clock(Duration),
    /// `n steps`.
    Steps(Spanned<Arg<u64>>),
}

/// `score …`: the weights of the governed score.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The base of the weights that are not named.
    pub base: ScoreBase,
    /// The weights named, in the order written.
    pub terms: Vec<Spanned<Term>>,
}

/// The base of the weights that a `score` does not name.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreBase {
    /// Zero. At least one term is named.
    Zero,
    /// `default`: the database's profile.
    Default,
    /// `profile NAME`.
    Profile(Spanned<Name>),
}

/// One weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Which term of the score.
    pub part: Spanned<Part>,
    /// Its weight.
    pub weight: Spanned<Arg<f64>>,
    /// `( NAME NUMBER, … )`: the weights of single statuses or sources.
    pub values: Vec<(Spanned<Name>, Spanned<Arg<f64>>)>,
    /// `half-life …`, of recency.
    pub half_life: Option<Spanned<Interval>>,
}

/// `relax below n`.
#[derive(Clone, Debug, PartialEq)]
pub struct Relax {
    /// Fewer rows than this let excluded ones in.
    pub below: Spanned<Arg<u64>>,
}

/// `escalate …`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Escalate {
    /// `auto`, `always` or `never`; the router decides when not written.
    pub mode: Option<EscalateMode>,
    /// `to NOUN`: what is read when summaries do not suffice.
    pub noun: Option<Spanned<Noun>>,
    /// The number of them.
    pub count: Option<Spanned<Arg<u64>>>,
    /// `up to n rounds`.
    pub rounds: Option<Spanned<Arg<u64>>>,
    /// `protect x`: similarity from which a page is not re-ranked.
    pub protect: Option<Spanned<Arg<f64>>>,
    /// `without links`: pages that summaries point to are no seed.
    pub without_links: bool,
}

/// `expand …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expand {
    /// `to NOUN`: where the walk ends.
    pub noun: Option<Spanned<Noun>>,
    /// The number of levels.
    pub depth: Option<Spanned<Arg<u64>>>,
    /// `within n tokens`.
    pub within_tokens: Option<Spanned<Arg<u64>>>,
}

/// `at …`: where the reader stands. At least one of the three is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reader {
    /// `step n`.
    pub step: Option<Spanned<Arg<u64>>>,
    /// `time T`.
    pub time: Option<Spanned<Arg<Time>>>,
    /// `version V`.
    pub version: Option<Spanned<Arg<Id>>>,
}

/// `as of …`: which past state of the database is read.
#[derive(Clone, Debug, PartialEq)]
pub enum AsOf {
    /// After exactly this commit.
    Commit(Spanned<Arg<u64>>),
    /// After the last commit stamped at or before this time.
    Time(Spanned<Arg<Time>>),
}

/// `budget n tokens`.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// The largest number of tokens of all rows together.
    pub tokens: Spanned<Arg<u64>>,
}

/// `abstain [below x]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Abstain {
    /// Evidence weaker than this gives no rows; without it, a question that is not answerable gives none.
    pub below: Option<Spanned<Arg<f64>>>,
}

/// `limit n [skip n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The number of rows.
    pub count: Spanned<Arg<u64>>,
    /// The number of rows to skip before them.
    pub skip: Option<Spanned<Arg<u64>>>,
}

/// `with receipt`: keep what was asked and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithReceipt;

/// `return …`: the columns of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Returns {
    /// `*`.
    All,
    /// These, in this order.
    Names(Vec<Spanned<Name>>),
}
