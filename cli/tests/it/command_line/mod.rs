//! The command line as a user meets it: exit statuses, stdout, stderr.

mod audit;
mod bad_input;
mod batch;
mod beside;
mod bulk;
mod check;
mod credit;
mod demo;
mod density;
mod embedding;
mod fleet;
mod graph;
mod importers;
mod inspector;
mod interchange;
mod judge;
mod knowledge;
mod lab;
mod loops;
#[cfg(target_os = "linux")]
mod memory;
mod models;
mod newcomer;
pub(crate) mod program;
mod proofs;
mod query;
mod repl;
mod replica;
mod space;
mod streams;
#[cfg(target_os = "linux")]
mod terminal;
mod trust;
mod verify;
mod witness;
