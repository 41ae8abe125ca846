//! The catalog's tables: which rows there are, how their keys sort, what their values hold.
//!
//! A row is `(table byte, key bytes) -> value bytes`. Numbers in keys are big-endian so that rows sort by number and
//! a range scan walks one item's, one episode's or one page's rows. Values are encoded by `storage::codec`.
//!
//! | table | key | value |
//! |---|---|---|
//! | `KEY` | caller's key | item u32 |
//! | `KEY_OF` | item u32 | key, only for items whose key moved |
//! | `TRACE` | tool symbol + 1 or 0, log symbol, step u64 | item u32 |
//! | `EDGE_OUT` | from u32, edge u8, to u32 | [`EdgeRow`] |
//! | `EDGE_IN` | to u32, edge u8, from u32 | empty |
//! | `POINTERS` | item u32 | `Vec<PointerRecord>` |
//! | `EPISODE`, `EPISODE_ID` | number u32; id | [`EpisodeRow`]; number |
//! | `PAGE`, `PAGE_KEY` | number u32; key | [`PageRow`]; number |
//! | `SYMBOL`, `SYMBOL_NAME` | number u32; name | name; number |
//! | `CLAIM`, `CLAIM_NAME`, `CLAIM_ITEM` | number u32; name, 0, number; item, number | [`ClaimRecord`]; empty |
//! | `SETTING` | name | value |
//! | `ALSO_IN`, `ALSO_OF` | episode u32, item u32; item u32, episode u32 | empty: an item's further episodes |
//! | `CHUNK` | item u32, field u32, index u32 | Lsn of the chunk record |
//! | `META` | empty | [`Meta`], written at checkpoints |
//! | `MANIFEST` | file name | [`ManifestRow`], written at checkpoints |
//! | `RIVALS` | contest, claim u32 | empty (see `claims`) |
//! | `CLAIM_AT` | claim u32 | the key of its contest |
//! | `RECEIPT` | number u32 | as its record |
//! | `COMMIT` | commit u64 | [`CommitRow`] |
//! | `WAS` | until u64, table u8, key | the row before that commit, if there was one (see `history`) |
//! | `WAS_ITEM` | until u64, item u32 | the attributes that changed, as they were |
//! | `CHANGED` | subject u8, number u32, until u64 | empty: what changed in which commit |
//! | `TREE` | level u8, number u64 | hashes of subtrees of the tree over all records, written at checkpoints (see `proof::tree`) |

use crate::history::Totals;
use crate::record::{ClaimRecord, PointerRecord, SpaceRecord};
use bincode::{Decode, Encode};
use holotype_storage::overlay::RowKey;
use std::sync::Arc;

pub(crate) const META: u8 = 0;
pub(crate) const KEY: u8 = 1;
pub(crate) const KEY_OF: u8 = 2;
pub(crate) const TRACE: u8 = 3;
pub(crate) const EDGE_OUT: u8 = 4;
pub(crate) const EDGE_IN: u8 = 5;
pub(crate) const POINTERS: u8 = 6;
pub(crate) const EPISODE: u8 = 7;
pub(crate) const EPISODE_ID: u8 = 8;
pub(crate) const PAGE: u8 = 9;
pub(crate) const PAGE_KEY: u8 = 10;
pub(crate) const SYMBOL: u8 = 11;
pub(crate) const SYMBOL_NAME: u8 = 12;
pub(crate) const CLAIM: u8 = 13;
pub(crate) const CLAIM_NAME: u8 = 14;
pub(crate) const CLAIM_ITEM: u8 = 15;
pub(crate) const SETTING: u8 = 16;
pub(crate) const ALSO_IN: u8 = 17;
pub(crate) const CHUNK: u8 = 18;
pub(crate) const MANIFEST: u8 = 19;
pub(crate) const ALSO_OF: u8 = 20;
pub(crate) const COMMIT: u8 = 21;
pub(crate) const WAS: u8 = 22;
pub(crate) const WAS_ITEM: u8 = 23;
pub(crate) const CHANGED: u8 = 24;
pub(crate) const RIVALS: u8 = 25;
pub(crate) const CLAIM_AT: u8 = 26;
pub(crate) const TREE: u8 = 27;
pub(crate) const RECEIPT: u8 = 28;

/// Counters and totals of the database, kept in memory and written with each checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Encode, Decode)]
pub(crate) struct Meta {
    /// The next item's number: the id bound.
    pub(crate) items: u32,
    pub(crate) episodes: u32,
    pub(crate) pages: u32,
    pub(crate) symbols: u32,
    pub(crate) claims: u32,
    /// Edges ever made, so that they can be told in the order they were made.
    pub(crate) edges: u32,
    pub(crate) receipts: u32,
    /// The newest time stated of any item.
    pub(crate) newest_time: Option<i64>,
    pub(crate) space: Option<Arc<SpaceRecord>>,
    /// The greatest number of a transaction to come for which a key of the engine's own form (`~COMMIT.N`) is taken: it
    /// was given in another database and imported.
    pub(crate) foreign_keys: u64,
    /// The last applied transaction and its clock.
    pub(crate) commit: u64,
    pub(crate) clock: i64,
    /// How often something was forgotten, and up to which time no derived file holds it any more.
    pub(crate) forgets: u64,
    pub(crate) purged: u64,
}

/// One end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct EdgeRow {
    /// When it was made, among all edges.
    pub(crate) order: u32,
    /// It was stated by a link, not implied by a pointer.
    pub(crate) stated: bool,
}

/// An episode as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct EpisodeRow {
    pub(crate) id: String,
    pub(crate) task: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) open: bool,
    /// Traces since the last closed page, with their tokens: the open page.
    pub(crate) open_page: Vec<u32>,
    pub(crate) open_tokens: u64,
    /// Pages closed so far; names the next one.
    pub(crate) pages: u32,
    pub(crate) traces: u32,
    /// Where a reader of this episode stands by default.
    pub(crate) newest_step: Option<u64>,
    pub(crate) newest_time: Option<i64>,
    pub(crate) newest_version: Option<u32>,
}

/// A closed memory page.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct PageRow {
    pub(crate) key: String,
    pub(crate) episode: u32,
    pub(crate) traces: Vec<u32>,
    pub(crate) tokens: u64,
    pub(crate) estimator: String,
    pub(crate) hash: [u8; 32],
    pub(crate) summarised: bool,
}

/// A commit, as history needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct CommitRow {
    /// Its clock, in microseconds since the epoch.
    pub(crate) clock: i64,
    /// The end of the commit before it: where reading the log gives its transaction first.
    pub(crate) from: u64,
    /// The newest time stated of any item up to it.
    pub(crate) newest_time: Option<i64>,
    /// What there was after it.
    pub(crate) totals: Totals,
}

/// A derived file that is part of the state.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ManifestRow {
    /// `c` columns, `v` vectors, `w` words.
    pub(crate) form: u8,
    /// The chunk of columns, or the layer.
    pub(crate) place: u32,
    pub(crate) generation: u64,
}

/// The pointers of an item, in the order they were stated.
pub(crate) type PointersRow = Vec<PointerRecord>;
/// A claim as stored.
pub(crate) type ClaimRow = ClaimRecord;

/// A key of big-endian numbers.
pub(crate) fn numbers<const N: usize>(parts: [u32; N]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_be_bytes()).collect()
}

/// The key of an edge row under the end `near`.
pub(crate) fn edge(near: u32, edge: u8, far: u32) -> Vec<u8> {
    let mut key = Vec::with_capacity(9);
    key.extend_from_slice(&near.to_be_bytes());
    key.push(edge);
    key.extend_from_slice(&far.to_be_bytes());
    key
}

/// The key of a row as it was until a commit.
pub(crate) fn was(until: u64, row: &RowKey) -> Vec<u8> {
    let mut key = until.to_be_bytes().to_vec();
    key.push(row.table());
    key.extend_from_slice(row.key());
    key
}

/// The key of the attributes an item had until a commit.
pub(crate) fn was_item(until: u64, item: u32) -> Vec<u8> {
    [until.to_be_bytes().as_slice(), &item.to_be_bytes()].concat()
}

/// The key that says that something changed in a commit.
pub(crate) fn changed(subject: u8, number: u32, until: u64) -> Vec<u8> {
    [[subject].as_slice(), &number.to_be_bytes(), &until.to_be_bytes()].concat()
}

/// The key of a claim's row under its name.
pub(crate) fn claim_name(name: &str, number: u32) -> Vec<u8> {
    let mut key = name.as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The key under which a trace's (tool, log, step) is unique; a log is named by the symbol of its name, which is the
/// episode's where no other is stated.
pub(crate) fn trace(tool: Option<u32>, log: u32, step: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&tool.map_or(0, |tool| tool.wrapping_add(1)).to_be_bytes());
    key[4..8].copy_from_slice(&log.to_be_bytes());
    key[8..].copy_from_slice(&step.to_be_bytes());
    key
}

/// The number in bytes `at..at + 4` of a key.
pub(crate) fn number_at(key: &[u8], at: usize) -> Option<u32> {
    let bytes = key.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
