//! The vocabulary of stored things: attributes, columns and settings.
//!
//! One table of attributes, each with the things it exists on and the values it takes;
//! beside it what a row shows that is no attribute, and the settings of a database. The
//! checks and the reference (`docs/query-language.md`) are made from these tables.

pub use crate::attribute_id::AttributeId;
use crate::error::nearest;
use crate::time;
use crate::value::{Duration, Name, Number, Value};
use crate::words::{self, Noun};
use AttributeId as Id;

/// The sorts of stored things that have attributes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Items of any layer.
    Item,
    /// Pages.
    Page,
    /// Episodes.
    Episode,
    /// Claims.
    Claim,
    /// Edges.
    Edge,
    /// Events.
    Event,
    /// Receipts.
    Receipt,
    /// The past values of one thing, with the commits since and until which they held.
    Change,
}

impl Subject {
    /// The plural, for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Subject::Item => "items",
            Subject::Page => "pages",
            Subject::Episode => "episodes",
            Subject::Claim => "claims",
            Subject::Edge => "edges",
            Subject::Event => "events",
            Subject::Receipt => "receipts",
            Subject::Change => "changes",
        }
    }
}

impl Noun {
    /// The sort of thing it names.
    pub fn subject(self) -> Subject {
        match self {
            Noun::Pages => Subject::Page,
            Noun::Episodes => Subject::Episode,
            _ => Subject::Item,
        }
    }
}

/// The things that `find` and `count` list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Thing {
    /// Items of a sort, pages or episodes.
    Noun(Noun),
    /// Claims.
    Claims,
    /// Edges.
    Edges,
    /// Events: what was logged.
    Events,
    /// Receipts of recalls.
    Receipts,
}

impl Thing {
    /// The sort of thing it names.
    pub fn subject(self) -> Subject {
        match self {
            Thing::Noun(noun) => noun.subject(),
            Thing::Claims => Subject::Claim,
            Thing::Edges => Subject::Edge,
            Thing::Events => Subject::Event,
            Thing::Receipts => Subject::Receipt,
        }
    }
}

/// The values an attribute or a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Texts.
    Text,
    /// Numbers.
    Number,
    /// Whole numbers from 0. They are compared with any number.
    Count,
    /// Lengths of time: `7d`.
    Duration,
    /// Moments: an RFC 3339 text, or microseconds since the epoch.
    Time,
    /// `true` and `false`.
    Bool,
    /// An item: its key, or its number.
    Item,
    /// One of these words, which need no quotes.
    OneOf(&'static [&'static str]),
    /// Texts, numbers, `true` and `false`: nobody knows beforehand.
    Any,
}

impl Type {
    /// The form of a value of this type, for messages.
    pub fn expected(self) -> String {
        match self {
            Type::Text => "a quoted text".to_owned(),
            Type::Number => "a number".to_owned(),
            Type::Count => "a whole number".to_owned(),
            Type::Duration => "a duration such as 7d".to_owned(),
            Type::Time => "a time such as '2026-01-05T10:00:00Z'".to_owned(),
            Type::Bool => "true or false".to_owned(),
            Type::Item => "an item's key in quotes, or its number".to_owned(),
            Type::OneOf(words) => format!("one of {}", words.join(", ")),
            Type::Any => "a quoted text, a number, true or false".to_owned(),
        }
    }

    /// True if its values lie in an order, so that `<` means something.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Type::Bool | Type::Item | Type::OneOf(_))
    }

    /// True if `contains` and `matches` can look into its values.
    pub fn is_textual(self) -> bool {
        matches!(self, Type::Text | Type::OneOf(_) | Type::Any)
    }

    /// The value in the form it is compared in: text, number or bool.
    ///
    /// Durations and times become microseconds, words become texts.
    ///
    /// # Errors
    ///
    /// If the value is none of this type.
    pub fn read(self, value: &Value) -> Result<Value, Mismatch> {
        let wrong = Err(Mismatch::Type);
        match (self, value) {
            (Type::OneOf(words), Value::Text(text)) => known(words, text),
            (Type::OneOf(words), Value::Word(name)) => known(words, &name.to_string()),
            (_, Value::Word(_)) => Err(Mismatch::Unquoted),
            (Type::Duration, Value::Duration(duration)) => Ok(micros(duration.micros() as i64)),
            (Type::Duration, Value::Text(text)) => match text.parse::<Duration>() {
                Ok(duration) => Ok(micros(duration.micros() as i64)),
                Err(_) => wrong,
            },
            (Type::Time, Value::Text(text)) => time::parse_rfc3339(text).map(micros).map_err(Mismatch::Time),
            (Type::Time, Value::Number(number)) => match number.as_i64() {
                Some(moment) => Ok(micros(moment)),
                None => wrong,
            },
            (Type::Item, Value::Number(Number::Natural(_)))
            | (Type::Number | Type::Count | Type::Any, Value::Number(_))
            | (Type::Text | Type::Item | Type::Any, Value::Text(_))
            | (Type::Bool | Type::Any, Value::Bool(_)) => Ok(value.clone()),
            _ => wrong,
        }
    }
}

fn micros(micros: i64) -> Value {
    Value::Number(Number::from(micros))
}

fn known(words: &'static [&'static str], word: &str) -> Result<Value, Mismatch> {
    if words.contains(&word) {
        return Ok(Value::Text(word.to_owned()));
    }
    Err(Mismatch::Unknown { nearest: nearest(word, words.iter().copied()) })
}

/// Why a value is none of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It is of another type.
    #[error("of another type")]
    Type,
    /// An unquoted word where no words are known.
    #[error("an unquoted word")]
    Unquoted,
    /// It is none of the known words.
    #[error("not a known value")]
    Unknown {
        /// The known word written most like it.
        nearest: Option<&'static str>,
    },
    /// It is no moment.
    #[error("{0}")]
    Time(time::TimeError),
}

/// Something that can be asked of a stored thing.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// The attribute that its name stands for.
    pub id: AttributeId,
    /// Its name. That of a field is `fields`, with the field after a dot.
    pub name: &'static str,
    /// The things it exists on.
    pub on: &'static [Subject],
    /// The values it takes.
    pub ty: Type,
    /// Its meaning, in a few words.
    pub meaning: &'static str,
}

/// The attribute of this name, if things of this sort have it.
pub fn attribute(subject: Subject, name: &Name) -> Option<&'static Attribute> {
    let id = name.attribute()?;
    ATTRIBUTES.iter().find(|attribute| attribute.id == id && attribute.on.contains(&subject))
}

/// The attributes things of this sort have.
pub fn attributes_of(subject: Subject) -> impl Iterator<Item = &'static Attribute> {
    ATTRIBUTES.iter().filter(move |attribute| attribute.on.contains(&subject))
}

/// The operations of events: mostly the statement that caused one.
pub const OPS: &[&str] = &[
    "record",
    "remember",
    "learn",
    "update",
    "retract",
    "mark",
    "use",
    "link",
    "unlink",
    "consolidate",
    "merge",
    "prune",
    "forget",
    "open",
    "close",
    "set",
    "page",
    "claim",
    "credit",
    "receipt",
    "reembed",
    "recall",
];
/// The profiles of the governed score.
pub const PROFILES: &[&str] = &["default", "helm", "archive", "agent"];

use Subject::{Change, Claim, Edge, Episode, Event, Item, Page, Receipt};

const fn on(on: &'static [Subject], id: AttributeId, ty: Type, meaning: &'static str) -> Attribute {
    Attribute { id, name: id.as_str(), on, ty, meaning }
}

/// Every attribute, in the order rows show them.
#[rustfmt::skip]
pub static ATTRIBUTES: &[Attribute] = &[
    on(&[Item, Claim, Event], Id::Item, Type::Item, "the item; the one that claims, or the one it happened to"),
    on(&[Item, Page], Id::Key, Type::Text, "the caller's own id"),
    on(&[Item], Id::Layer, Type::OneOf(words::Layer::WORDS), "how far from what happened"),
    on(&[Item], Id::Kind, Type::OneOf(words::Kind::WORDS), "what sort of item"),
    on(&[Item], Id::Text, Type::Text, "the text; of a trace, its field `text`"),
    on(&[Item, Page], Id::Tokens, Type::Count, "how long the text is, in tokens"),
    on(&[Item, Page, Episode, Claim, Event], Id::Episode, Type::Text, "the episode's id"),
    on(&[Item], Id::Page, Type::Text, "the key of the page a trace lies in"),
    on(&[Item], Id::Step, Type::Count, "when, in steps of the episode"),
    on(&[Item, Claim, Event, Receipt, Change], Id::Time, Type::Time, "when, on the clock"),
    on(&[Item], Id::Age, Type::Duration, "how long before the reader"),
    on(&[Item, Page, Episode, Claim, Edge, Event, Receipt], Id::Commit, Type::Count, "the commit that wrote it"),
    on(&[Item, Episode, Claim], Id::Version, Type::Text, "version of the task or tool schema"),
    on(&[Item, Claim], Id::Status, Type::OneOf(words::Status::WORDS), "what the tool's wrapper said"),
    on(&[Item], Id::Source, Type::OneOf(words::Source::WORDS), "who produced it"),
    on(&[Item], Id::Speaker, Type::Text, "who spoke"),
    on(&[Item], Id::Tool, Type::Text, "the tool called"),
    on(&[Item], Id::LogId, Type::Text, "the log a trace was read from"),
    on(&[Item], Id::Trust, Type::Number, "least source weight in the lineage"),
    on(&[Item], Id::Support, Type::OneOf(words::Support::WORDS), "how good its sources are"),
    on(&[Item], Id::Utility, Type::Number, "mean of the rewards reported"),
    on(&[Item], Id::Reports, Type::Count, "how many were reported"),
    on(&[Item], Id::Credit, Type::Number, "mean credit of rollouts"),
    on(&[Item], Id::Rollouts, Type::Count, "how many rollouts it is of"),
    on(&[Item], Id::ReturnScore, Type::Number, "1 to 10, of procedures"),
    on(&[Item], Id::Origin, Type::OneOf(words::Origin::WORDS), "how a recall came about"),
    on(&[Item], Id::Active, Type::Bool, "false after prune, merge, supersede, retract"),
    on(&[Item], Id::Labels, Type::Text, "names the item carries, such as `user:17`"),
    on(&[Item], Id::Fields, Type::Any, "a named field, or a member of it: fields.NAME, fields.NAME.MEMBER"),
    on(&[Page], Id::State, Type::OneOf(words::PageState::WORDS), "whether a summary is written"),
    on(&[Page], Id::Hash, Type::Text, "hash of the content, in hexadecimal"),
    on(&[Episode], Id::Task, Type::Text, "what the episode is about"),
    on(&[Episode], Id::Open, Type::Bool, "whether it still goes on"),
    on(&[Claim], Id::Name, Type::Text, "what is claimed about"),
    on(&[Claim, Change], Id::Value, Type::Any, "what is claimed"),
    on(&[Claim], Id::Scope, Type::OneOf(words::ClaimScope::WORDS), "where it competes"),
    on(&[Claim], Id::Won, Type::Item, "the item that contradicts it and is preferred"),
    on(&[Edge], Id::From, Type::Item, "where the edge begins"),
    on(&[Edge], Id::Edge, Type::OneOf(words::Edge::WORDS), "its type"),
    on(&[Edge], Id::To, Type::Item, "where it ends"),
    on(&[Edge], Id::Field, Type::Text, "the field it points into"),
    on(&[Edge], Id::Start, Type::Count, "offset of the first byte it points at"),
    on(&[Edge], Id::End, Type::Count, "offset after the last"),
    on(&[Event], Id::Op, Type::OneOf(OPS), "what happened"),
    on(&[Event, Change], Id::Because, Type::Text, "why"),
    on(&[Change], Id::Attribute, Type::Text, "what of it changed"),
    on(&[Change], Id::Since, Type::Count, "the commit from which it held"),
    on(&[Change], Id::Until, Type::Count, "the commit that ended it; absent while it holds"),
    on(&[Receipt], Id::Receipt, Type::Text, "the receipt's id"),
    on(&[Receipt], Id::Statement, Type::Text, "what was asked"),
    on(&[Receipt], Id::Rows, Type::Count, "how many rows were answered"),
    on(&[Receipt], Id::AsOf, Type::Count, "the commit it was answered as of"),
];

/// The columns of a row of `recall`.
pub const RECALL_COLUMNS: &[&str] = &AttributeId::names([
    Id::Item,
    Id::Key,
    Id::Layer,
    Id::Kind,
    Id::Text,
    Id::Score,
    Id::Similarity,
    Id::Words,
    Id::Recency,
    Id::StatusScore,
    Id::SourceScore,
    Id::UtilityScore,
    Id::ConflictScore,
    Id::Status,
    Id::Source,
    Id::Speaker,
    Id::Tool,
    Id::Episode,
    Id::Step,
    Id::Time,
    Id::Version,
    Id::Stale,
    Id::Quarantined,
    Id::Conflict,
    Id::Support,
    Id::Trust,
    Id::Relaxed,
    Id::Path,
    Id::Folded,
    Id::Lines,
    Id::More,
    Id::Tokens,
    Id::Citations,
    Id::Role,
]);
/// The columns of a row of `recall` that only `return` shows, beside the fields of its item.
pub const RECALL_COLUMNS_ON_REQUEST: &[&str] = &AttributeId::names([Id::Labels]);
/// The columns of `find` over items that are not attributes of the item.
pub const ITEM_COLUMNS: &[&str] = &AttributeId::names([Id::Stale, Id::Quarantined, Id::Conflict, Id::Citations]);
/// The columns of `sources` and `dependents` that are not attributes of the item.
pub const WALK_COLUMNS: &[&str] = &AttributeId::names([
    Id::Stale,
    Id::Quarantined,
    Id::Conflict,
    Id::Citations,
    Id::Root,
    Id::Edge,
    Id::Depth,
    Id::Field,
    Id::Start,
    Id::End,
    Id::Verdict,
]);

/// The attributes `record … with` gives.
pub const RECORD_WITH: &[&str] = &AttributeId::names([
    Id::Key,
    Id::Source,
    Id::Step,
    Id::Time,
    Id::Version,
    Id::Status,
    Id::Speaker,
    Id::Tool,
    Id::LogId,
    Id::Utility,
    Id::Labels,
    Id::Fields,
]);
/// The attributes `remember … with` gives.
pub const REMEMBER_WITH: &[&str] = &AttributeId::names([
    Id::Key,
    Id::Source,
    Id::Step,
    Id::Time,
    Id::Version,
    Id::Status,
    Id::Utility,
    Id::ReturnScore,
    Id::Origin,
    Id::Labels,
    Id::Fields,
]);
/// The attributes `update … with` gives: those of `remember` but the key, which stands first. It is that of the
/// superseded item.
pub const UPDATE_WITH: &[&str] = REMEMBER_WITH.split_at(1).1;
/// The attributes `open episode … with` and `close episode … with` give.
pub const EPISODE_WITH: &[&str] = &AttributeId::names([Id::Task, Id::Version]);

/// A setting of a database.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name, with its dots.
    pub name: &'static str,
    /// The values it takes.
    pub ty: Type,
    /// Its initial value, as it would be written.
    pub default: &'static str,
    /// Its effect, in a few words.
    pub meaning: &'static str,
}

/// The first part of the setting that declares a field: `set field.price = number` is `declare field price number`.
pub const DECLARED: &str = "field";
/// The types of declared fields, and `none` for one that is declared no more.
pub const FIELD_TYPES: &[&str] = &["text", "number", "bool", "none"];

/// The setting that declares the field of this name.
static DECLARATION: Setting =
    set("field.NAME", Type::OneOf(FIELD_TYPES), "none", "the type of a field that has a column");

/// The setting of this name.
pub fn setting(name: &Name) -> Option<&'static Setting> {
    if let [first, _, ..] = name.parts()
        && first == DECLARED
    {
        return Some(&DECLARATION);
    }
    let name = name.to_string();
    SETTINGS.iter().find(|setting| setting.name == name)
}

const fn set(name: &'static str, ty: Type, default: &'static str, meaning: &'static str) -> Setting {
    Setting { name, ty, default, meaning }
}

/// Every setting.
#[rustfmt::skip]
pub static SETTINGS: &[Setting] = &[
    set("profile", Type::OneOf(PROFILES), "default", "weights of a recall that names none"),
    set("claims", Type::OneOf(&["extract", "none"]), "extract", "whether claims are extracted from what is written"),
    set("claims.ignore", Type::Text, "", "names that make no claims, separated by commas"),
    set("consolidate.limit", Type::Count, "5", "recalls that one `consolidate` makes for an episode"),
    set("clock", Type::OneOf(&["reader", "wall"]), "reader", "the time when nobody says: that of the newest item, or the wall's"),
    set("page.tokens", Type::Count, "1000", "length at which a page closes"),
    set("recency.half-life", Type::Duration, "1d", "age at which recency has fallen to a half"),
    set("stale.steps", Type::Count, "200", "steps before the reader after which an item is stale"),
    set("stale.age", Type::Duration, "7d", "age from which an item is stale"),
    set("frame.near", Type::Number, "0.17", "cosine that a newer value may lack to the best one and still be first"),
    set("frame.slots", Type::Number, "0.13", "the same where values differ in several places"),
    set("audit", Type::OneOf(&["none", "reads"]), "none", "whether every recall leaves a read in the log"),
    set("analyser", Type::OneOf(&["english", "none"]), "english", "how words are stemmed"),
    set("router", Type::Text, "built-in", "what decides for `escalate`: the built-in router, or a fitted one as JSON"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_attribute_of_a_thing() {
        for (index, attribute) in ATTRIBUTES.iter().enumerate() {
            for other in &ATTRIBUTES[..index] {
                assert_ne!(attribute.name, other.name);
            }
        }
    }

    #[test]
    fn fields_are_asked_by_name() {
        let name = |parts: &[&str]| Name::new(parts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let found = |parts: &[&str]| attribute(Subject::Item, &name(parts)).map(|it| it.name);
        assert_eq!(found(&["fields", "price"]), Some("fields"));
        assert_eq!(found(&["fields"]), None);
        assert_eq!(found(&["status"]), Some("status"));
        assert_eq!(found(&["status", "x"]), None);
        assert_eq!(attribute(Subject::Page, &name(&["tool"])).map(|it| it.name), None);
    }

    #[test]
    fn values_are_read_into_the_form_they_are_compared_in() {
        let text = |it: &str| Value::Text(it.to_owned());
        let number = |it: i64| Value::Number(Number::from(it));
        assert_eq!(Type::Duration.read(&text("2s")), Ok(number(2_000_000)));
        assert_eq!(Type::Time.read(&text("1970-01-01T00:00:01Z")), Ok(number(1_000_000)));
        assert_eq!(Type::OneOf(words::Status::WORDS).read(&Value::Word("failed".into())), Ok(text("failed")));
        assert_eq!(Type::Text.read(&Value::Word("failed".into())), Err(Mismatch::Unquoted));
        assert_eq!(Type::Number.read(&text("7")), Err(Mismatch::Type));
        assert_eq!(
            Type::OneOf(words::Status::WORDS).read(&Value::Word("faild".into())),
            Err(Mismatch::Unknown { nearest: Some("failed") })
        );
        for setting in SETTINGS {
            let default = match setting.default.parse::<f64>() {
                Ok(number) => Value::Number(Number::Real(number)),
                Err(_) => Value::Text(setting.default.to_owned()),
            };
            assert!(setting.ty.read(&default).is_ok(), "{}", setting.name);
        }
    }
}
