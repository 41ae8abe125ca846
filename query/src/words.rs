//! The closed sets of words: nouns, kinds, edges, flaws and the like.
//!
//! Each is an enum whose variants know how they are written. Words are read in any case and written in lower case.

use std::fmt;

/// Declares an enum together with the word each variant is written as.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the grammar.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The words of the variants, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word,)+];

            /// The word as it is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// The variant written as `word`, in any case.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|it| it.as_str().eq_ignore_ascii_case(word))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// A set of stored things, as a stage, a `find` or a `prune` names it.
    Noun {
        /// Every item of the theme layer.
        Themes = "themes",
        /// Items of kind `concept`.
        Concepts = "concepts",
        /// Items of kind `intent`.
        Intents = "intents",
        /// Every item of the recall layer.
        Recalls = "recalls",
        /// Items of kind `summary`.
        Summaries = "summaries",
        /// Items of kind `fact`.
        Facts = "facts",
        /// Items of kind `procedure`.
        Procedures = "procedures",
        /// Every item of the trace layer.
        Traces = "traces",
        /// Items of kind `turn`.
        Turns = "turns",
        /// Items of kind `call`.
        Calls = "calls",
        /// Items of kind `observation`.
        Observations = "observations",
        /// Pages: runs of consecutive traces of one episode.
        Pages = "pages",
        /// Episodes: sessions, conversations, trajectories.
        Episodes = "episodes",
        /// Every item of every layer.
        Items = "items",
    }
}

words! {
    /// The distance of an item from the events themselves.
    Layer {
        /// Events, verbatim.
        Trace = "trace",
        /// Statements distilled from traces.
        Recall = "recall",
        /// Short keys that route a query.
        Theme = "theme",
    }
}

words! {
    /// The kinds of items.
    Kind {
        /// A trace: one turn of a conversation.
        Turn = "turn",
        /// A trace: one tool call.
        Call = "call",
        /// A trace: one observation of the environment.
        Observation = "observation",
        /// A recall: a summary.
        Summary = "summary",
        /// A recall: a fact.
        Fact = "fact",
        /// A recall: a procedure.
        Procedure = "procedure",
        /// A recall: a refined log.
        Refined = "refined",
        /// A theme.
        Theme = "theme",
        /// A theme: a concept facts mention.
        Concept = "concept",
        /// A theme: an intent procedures solve.
        Intent = "intent",
    }
}

words! {
    /// The type of an edge.
    Edge {
        /// From a derived item to what it was derived from.
        DerivedFrom = "derived-from",
        /// From an item to a span it cites.
        Cites = "cites",
        /// From a fact to a concept.
        Mentions = "mentions",
        /// From a procedure to an intent.
        Solves = "solves",
        /// Between items written from the same evidence.
        Sibling = "sibling",
        /// From an item to the one it replaces.
        Supersedes = "supersedes",
        /// Between items whose claims compete.
        ConflictsWith = "conflicts-with",
        /// From a recall to its theme.
        Parent = "parent",
    }
}

words! {
    /// The outcome as the wrapper of a tool reports it.
    Status {
        /// The action succeeded.
        Success = "success",
        /// No outcome was reported.
        Unknown = "unknown",
        /// The action failed.
        Failed = "failed",
    }
}

words! {
    /// The producer of an item.
    Source {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// A tool.
        Tool = "tool",
        /// The environment.
        Environment = "environment",
        /// A document.
        Document = "document",
        /// The harness around the agent.
        System = "system",
    }
}

words! {
    /// The origin of a recall.
    Origin {
        /// Written with its evidence.
        Original = "original",
        /// Linked to its evidence afterwards.
        LinkedFact = "linked_fact",
        /// Refined from a log.
        Refined = "refined",
    }
}

words! {
    /// The state of an item's sources.
    Support {
        /// All its sources are good.
        Supported = "supported",
        /// Some are not.
        Weakened = "weakened",
        /// All are bad, or it has none.
        Unsupported = "unsupported",
    }
}

words! {
    /// The state of a page: with or without a summary.
    PageState {
        /// No summary is written.
        Unsummarised = "unsummarised",
        /// A summary is written.
        Summarised = "summarised",
    }
}

words! {
    /// The scope in which a claim competes.
    ClaimScope {
        /// With claims of the same episode.
        Episode = "episode",
        /// With all claims.
        Global = "global",
    }
}

words! {
    /// The result of verifying a citation.
    Verdict {
        /// The bytes are the cited ones.
        Ok = "ok",
        /// The target or the span does not exist.
        Unresolved = "unresolved",
        /// The bytes differ from the cited ones.
        Mismatch = "mismatch",
        /// The bytes were erased.
        Redacted = "redacted",
    }
}

words! {
    /// A reason not to trust an item, as a test and as a filter.
    FlawKind {
        /// Its status is `failed`.
        Failed = "failed",
        /// It is too old for the reader, or of another version.
        Stale = "stale",
        /// A claim of it lost against another.
        Conflicted = "conflicted",
        /// Some of its sources are no longer good.
        Weakened = "weakened",
        /// None of its sources is good.
        Unsupported = "unsupported",
        /// It was written without a source.
        Ungrounded = "ungrounded",
        /// It was pruned, merged, superseded or retracted.
        Inactive = "inactive",
        /// Its text instructs, and its source has no right to.
        Quarantined = "quarantined",
    }
}

words! {
    /// A term of the governed score.
    Part {
        /// Cosine between the query's vector and the item's.
        Similarity = "similarity",
        /// BM25 over the best BM25 of the query.
        Words = "words",
        /// A kernel of the item's age.
        Recency = "recency",
        /// The weight of the item's status.
        Status = "status",
        /// The weight of the item's source.
        Source = "source",
        /// The item's utility.
        Utility = "utility",
        /// The return score of a procedure.
        ReturnScore = "return_score",
        /// The weight of the words of a trace's neighbours in its log.
        Context = "context",
        /// The penalty for a claim that lost.
        Conflict = "conflict",
    }
}

words! {
    /// The channels by which a stage finds candidates.
    Channel {
        /// Nearest vectors.
        Near = "near",
        /// Best words.
        Words = "words",
        /// Edges from the stage before.
        Linked = "linked",
    }
}

words! {
    /// A comparison.
    Op {
        /// Equal.
        Eq = "=",
        /// Present and not equal.
        Ne = "!=",
        /// Less.
        Lt = "<",
        /// Less or equal.
        Le = "<=",
        /// Greater.
        Gt = ">",
        /// Greater or equal.
        Ge = ">=",
    }
}

words! {
    /// The functions of `count` beside the count.
    MeasureKind {
        /// The sum.
        Sum = "sum",
        /// The arithmetic mean.
        Mean = "mean",
        /// The least.
        Min = "min",
        /// The greatest.
        Max = "max",
    }
}

words! {
    /// The subjects of `show`.
    ShowTarget {
        /// The episodes of the database.
        Episodes = "episodes",
        /// Its pages.
        Pages = "pages",
        /// Its pages that are due for a summary.
        Due = "due",
        /// Its derived segments.
        Segments = "segments",
        /// Its settings.
        Settings = "settings",
        /// Its sizes and counters.
        Stats = "stats",
        /// The hash and number of its last commit.
        Head = "head",
        /// The size of the memory graph.
        Graph = "graph",
    }
}

words! {
    /// Grouping of statements of one frame.
    Lines {
        /// The other statements of a frame are lines below its row.
        All = "all",
        /// Each statement is a row.
        None = "none",
    }
}

words! {
    /// When `escalate` reads raw pages.
    EscalateMode {
        /// When the router says that summaries do not suffice.
        Auto = "auto",
        /// For every question.
        Always = "always",
        /// Never; the router still says what it would do.
        Never = "never",
    }
}

words! {
    /// The state `mark` puts an item or a page in.
    Mark {
        /// Status `success`.
        Success = "success",
        /// Status `unknown`.
        Unknown = "unknown",
        /// Status `failed`.
        Failed = "failed",
        /// Retracted: no longer active.
        Inactive = "inactive",
        /// A page whose summary is written.
        Summarised = "summarised",
        /// A page that waits for its summary.
        Unsummarised = "unsummarised",
    }
}

words! {
    /// The relation of a merged statement to its originals.
    MergeKind {
        /// The same fact, updated: the originals become inactive.
        Update = "update",
        /// The same topic: the originals become inactive.
        Topic = "topic",
        /// Weakly related: the originals stay.
        Stitch = "stitch",
    }
}

words! {
    /// The direction of an ordering.
    Direction {
        /// Least first.
        Asc = "asc",
        /// Greatest first.
        Desc = "desc",
    }
}

words! {
    /// The unit a duration is written in.
    Unit {
        /// Milliseconds.
        Milliseconds = "ms",
        /// Seconds.
        Seconds = "s",
        /// Minutes.
        Minutes = "m",
        /// Hours.
        Hours = "h",
        /// Days of 24 hours.
        Days = "d",
        /// Weeks of seven days.
        Weeks = "w",
    }
}

/// Every keyword of the language, in order of the alphabet.
pub(crate) const KEYWORDS: &[&str] = &[
    "above",
    "abstain",
    "add",
    "after",
    "all",
    "always",
    "analyze",
    "and",
    "any",
    "as",
    "asc",
    "at",
    "audit",
    "auto",
    "because",
    "below",
    "between",
    "bool",
    "budget",
    "by",
    "bytes",
    "call",
    "calls",
    "carry",
    "cascade",
    "catalog",
    "citations",
    "cites",
    "claims",
    "close",
    "commit",
    "compress",
    "concept",
    "concepts",
    "conflict",
    "conflicted",
    "conflicts",
    "conflicts-with",
    "consolidate",
    "contains",
    "context",
    "count",
    "decay",
    "declare",
    "default",
    "dependents",
    "depth",
    "derived-from",
    "desc",
    "due",
    "each",
    "edges",
    "episode",
    "episodes",
    "escalate",
    "events",
    "every",
    "exclude",
    "expand",
    "explain",
    "fact",
    "facts",
    "failed",
    "false",
    "field",
    "fields",
    "find",
    "forget",
    "from",
    "global",
    "graph",
    "half-life",
    "has",
    "head",
    "history",
    "hops",
    "in",
    "inactive",
    "include",
    "induce",
    "intent",
    "intents",
    "into",
    "items",
    "keep",
    "last",
    "learn",
    "lift",
    "like",
    "limit",
    "lines",
    "link",
    "linked",
    "links",
    "log",
    "mark",
    "matches",
    "max",
    "mean",
    "mentions",
    "merge",
    "min",
    "near",
    "never",
    "none",
    "not",
    "number",
    "observation",
    "observations",
    "of",
    "on",
    "only",
    "open",
    "or",
    "order",
    "page",
    "pages",
    "parent",
    "pool",
    "procedure",
    "procedures",
    "profile",
    "protect",
    "prune",
    "quarantined",
    "quoting",
    "recall",
    "recalls",
    "receipt",
    "receipts",
    "recency",
    "record",
    "redacted",
    "redundant",
    "refined",
    "reflect",
    "relax",
    "remember",
    "replay",
    "retract",
    "return",
    "return_score",
    "reward",
    "rounds",
    "score",
    "segments",
    "set",
    "settings",
    "show",
    "sibling",
    "similarity",
    "skip",
    "solves",
    "source",
    "sources",
    "stale",
    "stats",
    "status",
    "step",
    "steps",
    "stitch",
    "success",
    "sum",
    "summaries",
    "summarised",
    "summary",
    "supersedes",
    "tau",
    "text",
    "theme",
    "themes",
    "through",
    "time",
    "to",
    "tokens",
    "top",
    "topic",
    "traces",
    "true",
    "turn",
    "turns",
    "ungrounded",
    "unknown",
    "unlink",
    "unsummarised",
    "unsupported",
    "up",
    "update",
    "utility",
    "verify",
    "version",
    "votes",
    "weakened",
    "where",
    "why",
    "with",
    "within",
    "without",
    "words",
];

/// Every keyword of the language, to be shown as one. Most of them are names elsewhere.
pub fn words_of_the_language() -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().copied()
}

impl Kind {
    /// The layer items of this kind live in.
    pub fn layer(self) -> Layer {
        match self {
            Kind::Turn | Kind::Call | Kind::Observation => Layer::Trace,
            Kind::Summary | Kind::Fact | Kind::Procedure | Kind::Refined => Layer::Recall,
            Kind::Theme | Kind::Concept | Kind::Intent => Layer::Theme,
        }
    }
}

impl Noun {
    /// The one kind of item it names, when it names a kind.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Noun::Concepts => Some(Kind::Concept),
            Noun::Intents => Some(Kind::Intent),
            Noun::Summaries => Some(Kind::Summary),
            Noun::Facts => Some(Kind::Fact),
            Noun::Procedures => Some(Kind::Procedure),
            Noun::Turns => Some(Kind::Turn),
            Noun::Calls => Some(Kind::Call),
            Noun::Observations => Some(Kind::Observation),
            Noun::Themes | Noun::Recalls | Noun::Traces | Noun::Pages | Noun::Episodes | Noun::Items => None,
        }
    }

    /// The one layer its items live in; none for pages, episodes and items at large.
    pub fn layer(self) -> Option<Layer> {
        match self {
            Noun::Themes => Some(Layer::Theme),
            Noun::Recalls => Some(Layer::Recall),
            Noun::Traces => Some(Layer::Trace),
            _ => self.kind().map(Kind::layer),
        }
    }
}

impl Unit {
    /// Microseconds in one unit.
    pub fn micros(self) -> u64 {
        match self {
            Unit::Milliseconds => 1_000,
            Unit::Seconds => 1_000_000,
            Unit::Minutes => 60_000_000,
            Unit::Hours => 3_600_000_000,
            Unit::Days => 86_400_000_000,
            Unit::Weeks => 604_800_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keywords_are_those_of_the_grammar() {
        let document = include_str!("../../docs/query-language.md");
        let grammar = document.split("```ebnf").nth(1).and_then(|rest| rest.split("```").next()).expect("a grammar");
        let quoted: std::collections::BTreeSet<&str> = grammar.split('"').skip(1).step_by(2).collect();
        let is_keyword =
            |word: &&str| word.len() > 1 && *word != "ms" && word.starts_with(|c: char| c.is_ascii_lowercase());
        assert_eq!(quoted.into_iter().filter(is_keyword).collect::<Vec<_>>(), KEYWORDS);
    }

    #[test]
    fn words_are_read_in_any_case_and_written_in_lower_case() {
        assert_eq!(Edge::from_word("Derived-From"), Some(Edge::DerivedFrom));
        assert_eq!(Edge::DerivedFrom.to_string(), "derived-from");
        assert_eq!(Noun::from_word("trace"), None);
        assert!(Noun::ALL.iter().all(|noun| Noun::from_word(noun.as_str()) == Some(*noun)));
    }
}
