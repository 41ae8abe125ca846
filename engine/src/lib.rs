//! Embedded database engine for provenance-tracked agent memory.
//!
//! An agent's memory is kept in three layers: *traces* (what happened, verbatim), *recalls* (what was distilled from
//! them) and *themes* (short keys that route a query). Whatever is distilled points to the bytes it rests on, and a row
//! that cites them says, each time it is read, whether they are still the bytes that were cited. Everything is written
//! to one append-only, hash-chained log; all indexes are derived from it.
//!
//! | start with | for |
//! |---|---|
//! | [`Holotype`] | creating, opening, checking and closing a database |
//! | [`Transaction`] | writing: [`NewTrace`], [`NewRecall`], [`Pointer`], [`Mark`], [`Edge`] |
//! | [`Snapshot`] | reading: a consistent view that never changes |
//! | [`Holotype::query`] | the recall language, which reads and writes; [`answer`] is what comes back |
//! | [`fleet`] | thousands of databases asked together |
//! | [`interchange`] | JSON Lines and `.npy` files, in and out |
//! | [`embed`] | a hashing embedder, to begin without a model |
//!
//! ```
//! use holotype::answer::Output;
//! use holotype::query::Params;
//! use holotype::{Durability, Holotype, NewRecall, NewTrace, Options, Pointer, Verdict};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("memory.holo");
//! let database = Holotype::create(&path, Options::default())?;
//! let mut transaction = database.begin()?;
//! transaction.record(NewTrace::call("trip-42", "search_flights", "UA123 price=$450").key("t1"))?;
//! let fact = NewRecall::fact("UA123 costs $450").key("r1").from(Pointer::to_key("t1").quoting("price=$450"));
//! transaction.remember(fact)?;
//! transaction.commit(Durability::Sync)?;
//!
//! let outputs = database.query("recall 'cost of UA123' in episode 'trip-42' where layer = recall", &Params::new())?;
//! let Some(Output::Answer(answer)) = outputs.first() else { panic!("a recall gives an answer") };
//! assert_eq!(answer.rows[0].key, "r1");
//! assert_eq!(answer.rows[0].citations[0].text.as_deref(), Some("price=$450"));
//! assert_eq!(answer.rows[0].citations[0].verdict, Verdict::Ok);
//! # database.close()?;
//! # Ok::<(), holotype::Error>(())
//! ```
//!
//! One transaction is written at a time; readers never wait for it nor hold it up. Handles are cheap to clone and can
//! be sent between threads. `docs/memory.md` says what items, scores and filters mean, `docs/query-language.md` is the
//! reference of the language, `docs/format.md` describes every byte on the disk.

mod agent;
mod core;
mod database;
mod derive;
mod error;
pub mod fleet;
pub mod interchange;
mod maintain;
mod memory;
mod model;
mod options;
pub mod proof;
mod read;
mod recall;
mod records;
mod state;
mod statements;
mod write;

pub use holotype_query as query;

pub use memory::{credit, density, extract, router, structure, write_back};

pub use agent::cited::{Attempt, CitedMemory, CitedRecall, Generator, RECALL_TOKENS, RecallMode};
pub use agent::controller::{Controller, Decision, HelmLimits, HeuristicController, Operation, StepView};
pub use agent::decisions::Decided;
pub use agent::epoch::{Epoch, EpochReport};
pub use agent::interface::{Answered, RecallInterface};
pub use agent::memory_loop::{LoopMemory, MemoryLoop, Step, StepOutcome};
pub use agent::memory_tool;

pub use crate::core::OpenReport;
pub use crate::core::handle::Holotype;
pub use core::files::POSITIONS;
pub use core::memory::MemoryUse;
pub use database::Lease;
pub use derive::compact::CompactReport;
pub use error::{Error, ErrorClass, ErrorPlace, Result, UnknownName};
pub use holotype_storage::MemoryReserve;
pub use holotype_storage::log::Head;
pub use maintain::backup::BackupReport;
pub use maintain::changes::{Change, Changes, CommittedChange, Subscription};
pub use maintain::pending::EmbedReport;
pub use maintain::reembed::{ReembedOptions, ReembedReport};
pub use maintain::retain::RetainReport;
pub use maintain::salvage::{Lost, SalvageReport, fork, salvage, salvage_on};
pub use maintain::stats::{ContentStats, LimitUse, Stats};
pub use maintain::verify::{Fault, KnownHead, VerifyOptions, VerifyReport};
pub use model::edge::Edge;
pub use model::item::{ItemId, Kind, Layer, Origin, Source, Status, Support};
pub use model::pointer::{Pointer, Span, Target, Verdict, hex};
pub use model::quarantine;
pub use model::space::{Encoding, Metric, Space};
pub use model::time::Timestamp;
pub use model::{embed, plural, space, time, tokens};
pub use options::{Accelerator, Durability, Options};
pub use read::answer::Row;
pub use read::citations::{CheckedCite, CheckedSentence, Diagnostic, MemoryCheck};
pub use read::cite::Cite;
pub use read::controller::{CoverageController, HopController, HopDecision, HopView};
pub use read::fields::Fields;
pub use read::guidance::{Asked, Extractive, Guidance, Mode, ModeChooser, QuestionWords, Reasoner, parse_guidance};
pub use read::item_attributes::ItemAttributes;
pub use read::limits::{Cancel, Limits};
pub use read::page::{Due, DuePage, Page};
pub use read::snapshot::{Item, Snapshot};
pub use read::{answer, cell, typed};
pub use recall::stage::{Stage, Weights};
pub use recall::{Integrator, PageRanker, PlanView, Planner, RecallBuilder, Roles, UncoveredWords, condition};
pub use state::content::Content;
pub use state::reader_position::Reader;
pub use statements::audit::{AuditReport, Measure, StepCost};
pub use statements::consolidate::resolve::{Consolidate, ConsolidateOp, ConsolidateReport, Consolidated};
pub use statements::difference::Difference;
pub use statements::learn::finding::{Learn, LearnOp, LearnRoles, Learned};
pub use statements::prepared::Prepared;
pub use statements::prune::budget::{Exceeded, Prune, PruneReason, PruneReport, Pruned, REDUNDANT_ABOVE};
pub use statements::replay::{AnswerChange, Counterfactual};
pub use statements::routing::{LearnEvent, RouteEvent, RouteLabel};
pub use statements::rows::{RowCells, Rows};
pub use statements::story::Story;
pub use write::bulk::BulkLoad;
pub use write::draft::{NewRecall, NewTrace};
pub use write::forget::{Forget, ForgetReport};
pub use write::transaction::create::Created;
pub use write::transaction::decay::Decay;
pub use write::transaction::merge::{Feedback, Merge, MergeOptions};
pub use write::transaction::{Commit, EpisodeChange, MAX_KEY_LEN, Mark, Transaction};

/// The programs of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The programs of the guide, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
struct Guide;
