//! Calls of an agent's loop (HELM 3.1, 3.3, A.8, Table 11).
//!
//! | file | concept |
//! |---|---|
//! | `cited` | a recall whose `<memory>` block has checked citations (Algorithms 1 and 2) |
//! | `interface` | `<recall>` spans of a text replaced by `<memory>` blocks |
//! | `controller` | the decision on READ, WRITE, CONSOLIDATE and PRUNE |
//! | `decisions` | each decision as an event in the log |
//! | `memory_loop` | a step: the decision, done within the limits of Table 11 |
//! | `epoch` | questions answered from one state, findings written between epochs (TierMem) |
//! | `memory_tool` | the file-like memory tool of agents: six commands over items with history |
//! | `refine` | long traces as short recalls with pointers |
//!
//! Models are the caller's: they stand behind the traits [`Generator`](cited::Generator) and
//! [`Controller`](controller::Controller), and what they answer is checked.

pub(crate) mod cited;
pub(crate) mod controller;
pub(crate) mod decisions;
pub(crate) mod epoch;
pub(crate) mod interface;
pub(crate) mod memory_loop;
pub mod memory_tool;
mod refine;
