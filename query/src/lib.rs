//! Holotype's recall language: lexer, parser, formatter, checks.

pub mod ast;
mod error;
mod format;
mod lexer;
mod parser;
mod span;
pub mod time;
mod token;
mod value;
mod words;

pub use error::{Error, Errors};
pub use format::format;
pub use parser::{MAX_DEPTH, MAX_SOURCE_LEN, parse};
pub use span::{Span, Spanned};
pub use value::{
    Arg, Duration, ItemRef, Name, NotADuration, Number, Passage, Time, Value, ValueList, Vector,
};
pub use words::{
    Channel, Direction, Edge, FlawKind, Kind, Mark, MeasureKind, MergeKind, Noun, Op, Part,
    ShowTarget, Unit,
};
