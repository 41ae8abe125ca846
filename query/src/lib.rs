//! Holotype's recall language: lexer, parser, formatter, checks.
//!
//! Text becomes a typed tree, and nothing else: this crate reads no file, opens no
//! database and knows nothing of how a statement is run.
//!
//! ```text
//! source ── lexer ──> tokens ── parser ──> Script ── check ──> sound
//!                                            │  └──── format ─> canonical source
//!                                            └─────── bind ───> plan: values, no parameters
//! ```
//!
//! ```
//! use holotype_query::plan::Statement;
//! use holotype_query::{ParamValue, Params, bind, check, parse};
//!
//! let source = "recall $q in episode 'trip-42' where status = success limit 3";
//! let script = parse(source).expect("the statement is sound");
//! let params = Params::from([("q".to_owned(), ParamValue::Text("price of UA123".to_owned()))]);
//! check(&script, Some(&params), None).expect("names, types and parameters fit");
//!
//! let plans = bind(&script, &params).expect("every parameter is given");
//! let Statement::Recall(recall) = &plans[0] else { panic!("it is a recall") };
//! assert_eq!(recall.query.words(), Some("price of UA123"));
//! assert_eq!(recall.clauses.limit, Some(3));
//! assert_eq!(
//!     plans[0].to_string(),
//!     "recall 'price of UA123' in episode 'trip-42' where status = success limit 3"
//! );
//! ```
//!
//! An error names the place and a correction:
//!
//! ```
//! let source = "recall 'price' were status = failed";
//! let errors = holotype_query::parse(source).expect_err("`were` is no clause");
//! assert!(errors.render(source).contains("did you mean `where`?"));
//! ```
//!
//! Invariants:
//!
//! 1. `parse(format(parse(s))) == parse(s)` for every source that parses.
//! 2. No source and no parameter makes anything here panic; time is linear in the
//!    source and the stack bounded.
//! 3. Binding takes the values of arguments and changes nothing else: text never becomes syntax.
//! 4. The tree, its places and its arguments stay in this crate: what runs a statement gets its [`plan`].

pub mod ast;
mod attribute_id;
pub mod attributes;
mod bind;
mod check;
mod error;
mod format;
mod lexer;
mod parser;
pub mod plan;
mod span;
pub mod time;
mod token;
mod value;
mod verbs;
mod words;

pub use ast::Script;
pub use attribute_id::AttributeId;
pub use bind::{ParamValue, Params, bind};
pub use check::{check, check_bound};
pub use error::{Error, Errors, nearest};
pub use format::format;
pub use parser::{MAX_DEPTH, MAX_SOURCE_LEN, MAX_STATEMENTS, MAX_TOKENS, parse};
pub use span::Span;
pub use value::{Duration, ItemRef, Name, NotADuration, Number, Passage, Time, Value, Vector};
pub use words::{
    Channel, ClaimScope, Direction, Edge, EscalateMode, FlawKind, Kind, Layer, Lines, Mark, MeasureKind, MergeKind,
    Noun, Op, Origin, PageState, Part, ShowTarget, Source, Status, Support, Unit, Verdict, words_of_the_language,
};
