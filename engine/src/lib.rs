//! Embedded database engine for provenance-tracked agent memory.
//!
//! An agent's memory is kept in three layers: *traces* (what happened, verbatim), *recalls* (what was distilled from them)
//! and *themes* (short keys that route a query). Whatever is distilled points to the bytes it rests on, and a row that cites
//! them says, each time it is read, whether they are still the bytes that were cited. Everything is written to one
//! append-only, hash-chained log; all indexes are derived from it.
//!
//! | start with | for |
//! |---|---|
//! | [`Holotype`] | creating, opening, checking and closing a database |
//! | [`Transaction`] | writing: [`NewTrace`], [`NewRecall`], [`Pointer`], [`Mark`], [`Edge`] |
//! | [`Snapshot`] | reading: a consistent view that never changes |
//! | [`Holotype::query`] | the recall language, which reads and writes; [`answer`] is what comes back |
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
//! One transaction is written at a time; readers never wait for it nor hold it up. Handles are cheap to clone and can be sent
//! between threads. `docs/memory.md` says what items, scores and filters mean, `docs/query-language.md` is the reference of
//! the language, `docs/format.md` describes every byte on the disk.

mod adjacency;
pub mod answer;
mod apply;
mod attributes;
mod backup;
pub mod cell;
mod checkpoint;
mod citations;
mod claims;
mod compact;
mod content;
mod database;
mod edge;
pub mod embed;
mod error;
mod execute;
mod files;
mod filter;
mod forget;
mod history;
mod hot_episode;
pub mod interchange;
mod item;
mod item_view;
mod kept;
mod layers;
mod limits;
mod lineage;
mod mend;
mod names;
mod nearest;
mod new_item;
mod opening;
mod options;
mod pages;
mod places;
mod prepared;
mod pressure;
pub mod proof;
mod provenance;
mod reader;
mod rebuild;
mod recall;
mod receipt;
mod record;
mod rederive;
mod refresh;
mod replay;
mod retain;
mod retold;
mod rows;
mod salvage;
mod score;
mod sealing;
mod seek;
mod settings;
mod snapshot;
pub mod space;
mod state;
mod stats;
mod tables;
pub mod time;
pub mod tokens;
mod transaction;
pub mod typed;
mod verify;
mod word_worker;
mod writer_lock;

pub use holotype_query as query;

pub use backup::BackupReport;
pub use compact::CompactReport;
pub use content::Content;
pub use database::{Holotype, OpenReport};
pub use edge::Edge;
pub use error::{Error, ErrorClass, Result};
pub use forget::{Forget, ForgetReport};
pub use holotype_storage::log::Head;
pub use item::{Attributes, Inherited, ItemId, Kind, Layer, Origin, Source, Status, Support, UnknownName};
pub use limits::{Cancel, Limits};
pub use new_item::{NewRecall, NewTrace};
pub use options::{Durability, Options};
pub use prepared::Prepared;
pub use provenance::{Pointer, Span, Target, Verdict, hex};
pub use reader::Reader;
pub use recall::RecallBuilder;
pub use retain::RetainReport;
pub use rows::{RowCells, Rows};
pub use salvage::{Lost, POSITIONS, SalvageReport, salvage, salvage_on};
pub use snapshot::{Item, Snapshot};
pub use space::{Encoding, Metric, Space};
pub use transaction::{Commit, EpisodeChange, MAX_KEY_LEN, Mark, Transaction};
pub use verify::{Fault, KnownHead, VerifyOptions, VerifyReport};

/// The programs of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
