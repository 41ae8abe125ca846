//! Holotype's recall language: lexer, parser, formatter, checks.

pub mod ast;
mod span;
pub mod time;
mod value;
mod words;

pub use span::{Span, Spanned};
pub use value::{
    Arg, Duration, ItemRef, Name, NotADuration, Number, Passage, Time, Value, ValueList, Vector,
};
pub use words::{
    Channel, Direction, Edge, FlawKind, Kind, Mark, MeasureKind, MergeKind, Noun, Op, Part,
    ShowTarget, Unit,
};
