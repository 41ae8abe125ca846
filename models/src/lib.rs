//! Models behind an OpenAI-compatible HTTP interface, in the roles of Holotype.
//!
//! The engine asks roles for decisions that the papers give to a model, and has a built-in for each that needs none.
//! This crate fills them with models: [`Model`] over chat completions, [`Embeddings`] over embeddings, [`TokenScorer`]
//! over the log-probabilities of completions.
//!
//! | role | asks for | an error means |
//! |---|---|---|
//! | [`Router`](holotype::router::Router) | `{"action": "S"}` or `"R"` | ESCALATE |
//! | [`Planner`](holotype::Planner) | `{"decision": "SEARCH", "summaries": …, "pages": …}` or `"DONE"` | DONE |
//! | [`Integrator`](holotype::Integrator) | findings with quotes | no facts of the round |
//! | [`PageRanker`](holotype::PageRanker) | an order of pages | the order of the scores |
//! | [`MemoryManager`](holotype::write_back::MemoryManager) | `ADD`, `UPDATE` or `SKIP`, with an index | SKIP |
//! | [`FindingFilter`](holotype::write_back::FindingFilter) | `{"keep": true}` | SKIP |
//! | [`Controller`](holotype::Controller) | the operations of a step | the safe decision |
//! | [`HopController`](holotype::HopController) | enough, or the rows to go on from | enough |
//! | [`ModeChooser`](holotype::ModeChooser) | one of three memories | semantic |
//! | [`Reflector`](holotype::structure::Reflector) | `Add()` or `Merge(index, text)` | add |
//! | [`FactMerger`](holotype::structure::FactMerger) | one statement and the relation | nothing is merged |
//! | [`Generator`](holotype::Generator) | a `<memory>` block | one attempt is used up |
//! | [`Reasoner`](holotype::Reasoner) | a text that cites the keys of rows | the rows are still there |
//! | structuring ([`structure`](holotype::structure)) | states, facts, procedures, intents | asked again, left out |
//! | [`Corruptor`](holotype::credit::Corruptor) | a wrong passage | the intervention fails |
//! | [`Model::summarise`], [`Model::findings`] | a summary; findings with quotes | page still due; nothing learned |
//! | [`Model::rerank`], [`Model::segments`] | an order of texts; the starts of segments | the caller decides |
//!
//! A model's words are material: a reply is taken whole and strictly or not at all ([`reply`]), and an index, a key, a
//! quote or an id that it names must be one that it was given. The inputs of a role go as one JSON object in the
//! message of the user, so that a text in them cannot pose as an instruction of the format.
//!
//! ```no_run
//! use holotype_models::{Client, Embeddings, Endpoint, Model};
//!
//! let endpoint = Endpoint::new("http://127.0.0.1:8000/v1", "qwen3-8b")?;
//! let model = Model::new(Client::new(endpoint)?)?;
//! let vectors = Embeddings::new(Client::new(Endpoint::new("http://127.0.0.1:8001/v1", "bge-small")?)?, 384);
//! # let database = holotype::Holotype::open("memory.holo", holotype::Options::default())?;
//! let snapshot = database.snapshot();
//! let roles = holotype::Roles::new(&model, &model).integrator(&model);
//! let vector = vectors.vector("when does the ferry leave?")?;
//! let answer = snapshot.recall("when does the ferry leave?").near(vector).run_with(roles)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/models.md` states limits, prompts and what to do when something goes wrong.

mod client;
mod clock;
mod completions;
mod embeddings;
mod endpoint;
mod failure;
mod prompts;
pub mod reply;
mod retry;
mod roles;

pub use client::{Client, Said};
pub use clock::{Clock, SystemClock};
pub use completions::TokenScorer;
pub use embeddings::Embeddings;
pub use endpoint::{CallLimits, Endpoint};
pub use failure::Failure;
pub use prompts::{Prompt, Prompts, Role};
pub use roles::{Answered, Chat, Finding, Model, PageFact, PageFacts, Summaries, Usage};
