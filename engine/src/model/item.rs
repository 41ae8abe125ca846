//! Items: the units of memory, and the scalar state each one carries.
//!
//! An item is text, a vector, an epistemic state and provenance (HELM 3.2). What was *written* about it
//! is a log record and never changes; what *holds* for it now, its [`Attributes`], is derived from the log:
//! columns up to the last checkpoint, an overlay after it.
//!
//! Invariants:
//! 1. An [`ItemId`] is dense, given in commit order and never reused: the items of a snapshot are `id < bound`.
//! 2. A kind belongs to exactly one [`Layer`].
//! 3. What an item inherits (HELM 3.2; see `inherit`) is recomputed whenever one of its sources changes, so
//!    attributes are a function of the log alone.

use crate::error::UnknownName;
use holotype_query::Noun;
use std::fmt;
use std::str::FromStr;

/// The id of an item: dense, in commit order, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub u32);

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Declares an enumeration with stored bytes; `holotype_query` has one with the same variants, and their names.
/// Implements `Display`, `FromStr`, `ALL`, and conversions from and to bytes and the enumeration of the language.
macro_rules! names {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $byte:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant = $byte),+ }

        impl $name {
            /// All values in the order of their stored bytes.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name in statements and JSON Lines.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => holotype_query::$name::$variant.as_str()),+ }
            }

            /// The stored byte.
            pub const fn to_byte(self) -> u8 { self as u8 }

            /// The value of a stored byte, if it is known.
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte { $($byte => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.as_str()) }
        }

        impl FromStr for $name {
            type Err = UnknownName;
            fn from_str(text: &str) -> Result<Self, UnknownName> {
                let known = || $name::ALL.iter().map(|value| value.as_str()).collect();
                let found = $name::ALL.iter().copied().find(|value| value.as_str() == text);
                found.ok_or_else(|| UnknownName { what: $what, given: text.to_owned(), known: known() })
            }
        }

        impl From<holotype_query::$name> for $name {
            fn from(word: holotype_query::$name) -> Self {
                match word { $(holotype_query::$name::$variant => $name::$variant),+ }
            }
        }

        impl From<$name> for holotype_query::$name {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => holotype_query::$name::$variant),+ }
            }
        }
    };
}
pub(crate) use names;

names! {
    /// The distance of an item from the original events (HELM M(1) to M(3)).
    Layer, "layer" {
        /// Recorded verbatim.
        Trace = 0,
        /// Distilled from traces.
        Recall = 1,
        /// A short key that routes queries.
        Theme = 2,
    }
}

names! {
    /// The kind of an item.
    Kind, "kind" {
        /// One turn of a conversation (trace).
        Turn = 0,
        /// One tool call with its outcome (trace).
        Call = 1,
        /// One observation of an environment (trace).
        Observation = 2,
        /// A summary of traces (recall).
        Summary = 16,
        /// A proposition (recall; PlugMem 3.1).
        Fact = 17,
        /// A prescription (recall; PlugMem 3.1).
        Procedure = 18,
        /// A refined log (recall; HELM 3.1).
        Refined = 19,
        /// A theme (theme).
        Theme = 32,
        /// A concept that facts mention (theme; PlugMem).
        Concept = 33,
        /// An intent that procedures solve (theme; PlugMem).
        Intent = 34,
    }
}

impl Kind {
    /// The layer the kind belongs to.
    pub const fn layer(self) -> Layer {
        match self {
            Kind::Turn | Kind::Call | Kind::Observation => Layer::Trace,
            Kind::Summary | Kind::Fact | Kind::Procedure | Kind::Refined => Layer::Recall,
            Kind::Theme | Kind::Concept | Kind::Intent => Layer::Theme,
        }
    }

    /// Returns true if a noun includes items of this kind.
    pub(crate) fn is_of(self, noun: Noun) -> bool {
        match (noun.kind(), noun.layer()) {
            (Some(kind), _) => self == Kind::from(kind),
            (None, Some(layer)) => self.layer() == Layer::from(layer),
            (None, None) => noun == Noun::Items,
        }
    }
}

names! {
    /// The outcome as the tool wrapper reported it; `unknown` without a report.
    Status, "status" {
        /// The action succeeded.
        Success = 0,
        /// No outcome was reported.
        Unknown = 1,
        /// The action failed; its content must not be believed.
        Failed = 2,
    }
}

names! {
    /// The producer of an item.
    Source, "source" {
        /// The person.
        User = 0,
        /// The model.
        Assistant = 1,
        /// A tool.
        Tool = 2,
        /// The environment.
        Environment = 3,
        /// A document.
        Document = 4,
        /// The harness around the agent.
        System = 5,
    }
}

impl Source {
    /// The weight of a source in the governed score (memory model, section 4).
    pub const fn weight(self) -> f32 {
        match self {
            Source::Tool => 1.0,
            Source::Environment => 0.9,
            Source::User => 0.8,
            Source::Document => 0.7,
            Source::Assistant => 0.5,
            Source::System => 0.3,
        }
    }
}

names! {
    /// The origin of a recall (TierMem B.8).
    Origin, "origin" {
        /// Written with its evidence.
        Original = 0,
        /// Linked to its evidence afterwards.
        LinkedFact = 1,
        /// Refined from a log.
        Refined = 2,
    }
}

names! {
    /// The state of an item's sources (after HELM's validity propagation).
    Support, "support" {
        /// All its sources are good.
        Supported = 0,
        /// Some are not.
        Weakened = 1,
        /// All are bad, or it has none.
        Unsupported = 2,
    }
}

/// The scalar state of one item: what filters and the governed score read.
///
/// `None` is absent: the term of the score is 0, the item is never stale by it, and it satisfies no comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attributes {
    /// The item's kind.
    pub(crate) kind: Kind,
    /// The outcome.
    pub(crate) status: Option<Status>,
    /// The producer.
    pub(crate) source: Option<Source>,
    /// The primary episode, by number.
    pub(crate) episode: Option<u32>,
    /// The step in its episode.
    pub(crate) step: Option<u64>,
    /// The time in microseconds since the epoch, UTC.
    pub(crate) time: Option<i64>,
    /// The version of task, environment or tool schema, by symbol number.
    pub(crate) version: Option<u32>,
    /// The speaker, by symbol number.
    pub(crate) speaker: Option<u32>,
    /// The tool of a call, by symbol number.
    pub(crate) tool: Option<u32>,
    /// The log id, by symbol number.
    pub(crate) log_id: Option<u32>,
    /// The memory page a trace belongs to, by number, once that page is closed.
    pub(crate) page: Option<u32>,
    /// False after prune, merge, supersede or retract.
    pub(crate) active: bool,
    /// True after its bytes were erased.
    pub(crate) redacted: bool,
    /// True if it was explicitly stored without a pointer.
    pub(crate) ungrounded: bool,
    /// True if it has a vector in the database's space.
    pub(crate) has_vector: bool,
    /// True if it has a text and no vector, and no model has said yet that its text has none.
    pub(crate) pending: bool,
    /// The inherited attributes, as bits of [`Inherited`].
    pub(crate) inherited: u8,
    /// Its origin.
    pub(crate) origin: Origin,
    /// The state of its sources.
    pub(crate) support: Support,
    /// The sources in its lineage, one bit per [`Source`].
    pub(crate) trust_sources: u8,
    /// The statuses in its lineage, one bit per [`Status`]; bit 7 if one of its traces was redacted.
    pub(crate) trust_statuses: u8,
    /// Mean smoothed credit (HiMPO); 0 without credit.
    pub(crate) utility: f32,
    /// The number of reports in the mean `utility`.
    pub(crate) utility_count: u32,
    pub(crate) credit: f32,
    /// The number of rollouts in the mean `credit`.
    pub(crate) credit_count: u32,
    /// PlugMem's return score of a procedure, 1 to 10.
    pub(crate) return_score: Option<u8>,
    /// Its length in tokens by the estimator of the database.
    pub(crate) tokens: u32,
    /// The commit that wrote it.
    pub(crate) commit: u64,
    /// The log position of its record.
    pub(crate) lsn: u64,
}

/// The bits of [`Attributes::inherited`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inherited;

impl Inherited {
    /// The status was inherited.
    pub(crate) const STATUS: u8 = 1;
    /// The source was inherited.
    pub(crate) const SOURCE: u8 = 2;
    /// The step was inherited.
    pub(crate) const STEP: u8 = 4;
    /// The time was inherited.
    pub(crate) const TIME: u8 = 8;
    /// The version was inherited.
    pub(crate) const VERSION: u8 = 16;
    /// The episodes were inherited.
    pub(crate) const EPISODE: u8 = 32;
}

impl Attributes {
    /// Attributes of a new item of a kind; everything else is absent.
    pub(crate) fn new(kind: Kind) -> Self {
        Attributes {
            kind,
            status: None,
            source: None,
            episode: None,
            step: None,
            time: None,
            version: None,
            speaker: None,
            tool: None,
            log_id: None,
            page: None,
            active: true,
            redacted: false,
            ungrounded: false,
            has_vector: false,
            pending: false,
            inherited: 0,
            origin: Origin::Original,
            support: Support::Supported,
            trust_sources: 0,
            trust_statuses: 0,
            utility: 0.0,
            utility_count: 0,
            credit: 0.0,
            credit_count: 0,
            return_score: None,
            tokens: 0,
            commit: 0,
            lsn: 0,
        }
    }

    /// The layer of the item.
    pub(crate) fn layer(&self) -> Layer {
        self.kind.layer()
    }

    /// Trust (memory model, section 2): the least source weight over the traces the item rests on; 0 if one failed or
    /// was redacted, or if there is none.
    pub(crate) fn trust(&self) -> f32 {
        let failed = self.trust_statuses & (1 << Status::Failed.to_byte()) != 0;
        if failed || self.trust_statuses & Self::TRUST_REDACTED != 0 || self.trust_sources == 0 {
            return 0.0;
        }
        Source::ALL
            .iter()
            .filter(|source| self.trust_sources & (1 << source.to_byte()) != 0)
            .map(|source| source.weight())
            .fold(f32::INFINITY, f32::min)
    }

    /// Sets the trust masks that a trace passes on to its dependents.
    pub(crate) fn trust_of_trace(&mut self) {
        self.trust_sources = self.source.map_or(0, |source| 1 << source.to_byte());
        self.trust_statuses = self.status.map_or(0, |status| 1 << status.to_byte());
        if self.redacted {
            self.trust_statuses |= Self::TRUST_REDACTED;
        }
    }

    /// The bit of `trust_statuses` for a redacted trace in the lineage.
    pub(crate) const TRUST_REDACTED: u8 = 0x80;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_say_what_is_known() {
        for kind in Kind::ALL {
            assert_eq!(kind.as_str().parse::<Kind>().unwrap(), *kind);
            assert_eq!(Kind::from_byte(kind.to_byte()), Some(*kind));
        }
        let error = "sucess".parse::<Status>().unwrap_err();
        assert_eq!(error.to_string(), "unknown status \"sucess\"; expected one of: success, unknown, failed");
    }

    #[test]
    fn trust_is_the_least_source_weight_and_zero_once_something_failed() {
        let mut attributes = Attributes::new(Kind::Fact);
        assert_eq!(attributes.trust(), 0.0);
        attributes.trust_sources = 1 << Source::Tool.to_byte() | 1 << Source::Assistant.to_byte();
        attributes.trust_statuses = 1 << Status::Success.to_byte();
        assert_eq!(attributes.trust(), 0.5);
        attributes.trust_statuses |= 1 << Status::Failed.to_byte();
        assert_eq!(attributes.trust(), 0.0);
    }
}
