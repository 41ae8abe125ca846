//! The clauses of a recall, as values; listings share some of them.

use crate::plan::{Flaw, Predicate};
use crate::value::{Duration, Name, Time};
use crate::words::{Channel, EscalateMode, Lines, Noun, Part};

/// The clauses of a recall, in the order they are printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clauses {
    /// `in …`.
    pub scope: Option<Scope>,
    /// `through …`: the stages in order; the default path when not written.
    pub path: Option<Vec<Stage>>,
    /// `where …`.
    pub filter: Option<Predicate>,
    /// `include …`: flaws to let in.
    pub include: Vec<Flaw>,
    /// `exclude …`: flaws to keep out.
    pub exclude: Vec<Flaw>,
    /// `score …`.
    pub score: Option<Score>,
    /// `relax below n`: fewer rows than this let excluded ones in.
    pub relax_below: Option<u64>,
    /// `escalate …`.
    pub escalate: Option<Escalate>,
    /// `expand …`.
    pub expand: Option<Expand>,
    /// `at …`: where the reader stands.
    pub reader: Option<Reader>,
    /// `as of …`: what the database knew.
    pub as_of: Option<AsOf>,
    /// `budget n tokens`: the largest number of tokens of all rows together.
    pub budget: Option<u64>,
    /// `abstain [below x]`.
    pub abstain: Option<Abstain>,
    /// `limit n`: the number of rows.
    pub limit: Option<u64>,
    /// `skip n`: the number of rows to skip before them; 0 without a limit.
    pub skip: u64,
    /// `lines all` or `lines none`.
    pub lines: Option<Lines>,
    /// `with receipt`: keep what was asked and answered.
    pub receipt: bool,
    /// `return …`.
    pub returns: Option<Returns>,
}

/// `in …`.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    /// `in episode …`: the ids.
    Episodes(Vec<String>),
    /// `in page …`: the keys.
    Pages(Vec<String>),
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
    pub noun: Noun,
    /// The number of rows to keep.
    pub count: Option<u64>,
    /// The channels, in the order written; empty when none was.
    pub channels: Vec<Channel>,
    /// The number of candidates of each channel.
    pub pool: Option<u64>,
    /// The predicate of candidates that may route.
    pub only: Option<Predicate>,
}

/// A group of stages that is walked again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Hops {
    /// The stages of one hop.
    pub stages: Vec<Stage>,
    /// The largest number of walks.
    pub up_to: u64,
    /// The number of rows whose text joins the query of the next hop.
    pub carry: Option<u64>,
    /// The largest number of rows of the answer that each hop keeps.
    pub keep: Option<u64>,
}

/// A stage from items to what they came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Lift {
    /// To what.
    pub noun: Noun,
    /// The number of rows to keep.
    pub count: Option<u64>,
    /// The number of items that must vote for one.
    pub votes: Option<u64>,
}

/// A length on the clock or in steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Interval {
    /// A duration.
    Clock(Duration),
    /// `n steps`.
    Steps(u64),
}

/// `score …`: the weights of the governed score.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The base of the weights that are not named.
    pub base: ScoreBase,
    /// The weights named, in the order written.
    pub terms: Vec<Term>,
}

/// The base of the weights that a `score` does not name.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreBase {
    /// Zero. At least one term is named.
    Zero,
    /// `default`: the database's profile.
    Default,
    /// `profile NAME`.
    Profile(Name),
}

/// One weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Which term of the score.
    pub part: Part,
    /// Its weight.
    pub weight: f64,
    /// `( NAME NUMBER, … )`: the weights of single statuses or sources.
    pub values: Vec<(Name, f64)>,
    /// `half-life …`, of recency.
    pub half_life: Option<Interval>,
}

/// `escalate …`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Escalate {
    /// `auto`, `always` or `never`; the router decides when not written.
    pub mode: Option<EscalateMode>,
    /// `to NOUN`: what is read when summaries do not suffice.
    pub noun: Option<Noun>,
    /// The number of them.
    pub count: Option<u64>,
    /// `up to n rounds`.
    pub rounds: Option<u64>,
    /// `protect x`: similarity from which a page is not re-ranked.
    pub protect: Option<f64>,
    /// `without links`: pages that summaries point to are no seed.
    pub without_links: bool,
}

/// `expand …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expand {
    /// `to NOUN`: where the walk ends.
    pub noun: Option<Noun>,
    /// The number of levels.
    pub depth: Option<u64>,
    /// `within n tokens`.
    pub within_tokens: Option<u64>,
}

/// `at …`: where the reader stands. At least one of the three is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reader {
    /// `step n`.
    pub step: Option<u64>,
    /// `time T`.
    pub time: Option<Time>,
    /// `version V`.
    pub version: Option<String>,
}

/// `as of …`: which past state of the database is read.
#[derive(Clone, Debug, PartialEq)]
pub enum AsOf {
    /// After exactly this commit.
    Commit(u64),
    /// After the last commit stamped at or before this time.
    Time(Time),
}

/// `abstain [below x]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Abstain {
    /// Evidence weaker than this gives no rows; without it, a question that is not answerable gives none.
    pub below: Option<f64>,
}

/// `return …`: the columns of the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Returns {
    /// `*`.
    All,
    /// These, in this order.
    Names(Vec<Name>),
}
