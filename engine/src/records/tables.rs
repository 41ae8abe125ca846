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
//! | `EPISODE_MEMBER`, `MEMBER_EPISODE` | episode u32, item u32; item u32, episode u32 | empty: an item's further episodes |
//! | `CHUNK` | item u32, field u32, index u32 | Lsn of the chunk record |
//! | `META` | empty | [`Meta`], written at checkpoints |
//! | `MANIFEST` | file name | [`ManifestRow`], written at checkpoints |
//! | `RECEIPT` | number u32 | as its record |
//! | `COMMIT` | commit u64 | [`CommitRow`] |
//! | `ROW_HISTORY` | until u64, table u8, key | the row before that commit, if there was one (see `history`) |
//! | `ITEM_HISTORY` | until u64, item u32 | the attributes that changed, as they were |
//! | `CHANGE_INDEX` | subject u8, number u32, until u64 | empty: what changed in which commit |
//! | `EXTRACTED` | item u32 | its extracted claims (see `state::claims`) |
//! | `EXTRACTED_NAME` | name, 0, item u32 inverted, ordinal u8 | the value of a trace's extracted claim |
//! | `VECTOR` | item u32, epoch u64; or empty | position and presence; the epoch in force, its bound (see `vectors`) |
//! | `TREE` | level u8, number u64 | hashes of subtrees of the tree over all records, written at checkpoints (see `proof::tree`) |

use crate::records::record::{ClaimRecord, PointerRecord, SpaceRecord};
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
pub(crate) const EPISODE_MEMBER: u8 = 17;
pub(crate) const CHUNK: u8 = 18;
pub(crate) const MANIFEST: u8 = 19;
pub(crate) const MEMBER_EPISODE: u8 = 20;
pub(crate) const COMMIT: u8 = 21;
pub(crate) const ROW_HISTORY: u8 = 22;
pub(crate) const ITEM_HISTORY: u8 = 23;
pub(crate) const CHANGE_INDEX: u8 = 24;
pub(crate) const TREE: u8 = 27;
pub(crate) const RECEIPT: u8 = 28;
pub(crate) const EXTRACTED: u8 = 29;
pub(crate) const EXTRACTED_NAME: u8 = 30;
pub(crate) const VECTOR: u8 = 31;

/// Counters and totals of the database, kept in memory and written with each checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Encode, Decode)]
pub(crate) struct Meta {
    /// The next item's number: the id bound.
    pub(crate) items: u32,
    pub(crate) episodes: u32,
    pub(crate) pages: u32,
    pub(crate) symbols: u32,
    pub(crate) claims: u32,
    /// Number of edges ever created; defines their order.
    pub(crate) edges: u32,
    pub(crate) receipts: u32,
    /// Number of items that are `Attributes::pending`.
    pub(crate) pending: u32,
    /// The newest time of any item that is not after the clock of its commit.
    pub(crate) newest_time: Option<i64>,
    /// The latest time of any item.
    pub(crate) latest_time: Option<i64>,
    pub(crate) space: Option<Arc<SpaceRecord>>,
    /// The highest later commit number in whose key range (`~COMMIT.N`) an imported item has a key. Such keys came
    /// from another database.
    pub(crate) foreign_keys: u64,
    /// The last applied commit and its clock.
    pub(crate) commit: u64,
    pub(crate) clock: i64,
    /// Number of `forget` operations, and of those whose content is gone from all derived files.
    pub(crate) forgets: u64,
    pub(crate) purged: u64,
}

/// One end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct EdgeRow {
    /// Its number in the order of creation.
    pub(crate) order: u32,
    /// True if a link stated it, false if a pointer implied it.
    pub(crate) stated: bool,
}

/// The current state of an episode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct EpisodeRow {
    pub(crate) id: String,
    pub(crate) task: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) open: bool,
    /// The open page: traces since the last closed page, with their tokens.
    pub(crate) open_page: Vec<u32>,
    pub(crate) open_tokens: u64,
    /// Number of closed pages; names the next one.
    pub(crate) pages: u32,
    pub(crate) traces: u32,
    /// The default reader position in this episode.
    pub(crate) newest_step: Option<u64>,
    pub(crate) newest_time: Option<i64>,
    /// Step and version of the last ten traces with a version, by step.
    pub(crate) last_versions: Vec<(Option<u64>, u32)>,
}

impl EpisodeRow {
    /// The version that most of the last traces have; of several, that of the highest step.
    pub(crate) fn prevailing_version(&self) -> Option<u32> {
        let count = |version: u32| self.last_versions.iter().filter(|(_, other)| *other == version).count();
        self.last_versions.iter().map(|(_, version)| *version).max_by_key(|version| count(*version))
    }
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

/// Number of things of each sort. Things with higher numbers were created later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Totals {
    pub(crate) items: u32,
    pub(crate) episodes: u32,
    pub(crate) pages: u32,
    pub(crate) symbols: u32,
    pub(crate) claims: u32,
    pub(crate) edges: u32,
    pub(crate) receipts: u32,
}

/// The data of a commit that history needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct CommitRow {
    /// Its clock, in microseconds since the epoch.
    pub(crate) clock: i64,
    /// The end of the previous commit, where reading the log yields this transaction first.
    pub(crate) from: u64,
    /// The newest and the latest time of any item up to this commit, as in [`Meta`].
    pub(crate) newest_time: Option<i64>,
    pub(crate) latest_time: Option<i64>,
    /// The totals after it.
    pub(crate) totals: Totals,
}

/// A derived file that belongs to the state.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ManifestRow {
    /// `c` columns, `v` vectors, `w` words.
    pub(crate) form: u8,
    /// The number of the column chunk, or the layer.
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

/// The key of a row's value before a commit.
pub(crate) fn row_history(until: u64, row: &RowKey) -> Vec<u8> {
    let mut key = until.to_be_bytes().to_vec();
    key.push(row.table());
    key.extend_from_slice(row.key());
    key
}

/// The key of an item's prior attributes before a commit.
pub(crate) fn item_history(until: u64, item: u32) -> Vec<u8> {
    [until.to_be_bytes().as_slice(), &item.to_be_bytes()].concat()
}

/// The key that records a change of a subject in a commit.
pub(crate) fn change_index(subject: u8, number: u32, until: u64) -> Vec<u8> {
    [[subject].as_slice(), &number.to_be_bytes(), &until.to_be_bytes()].concat()
}

/// The key of a claim's row under its name.
pub(crate) fn claim_name(name: &str, number: u32) -> Vec<u8> {
    let mut key = name.as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The key of a trace's unique (tool, log, step). The log is the symbol of the stated log id or else of the episode's
/// id.
pub(crate) fn trace(tool: Option<u32>, log: u32, step: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&tool.map_or(0, |tool| tool.wrapping_add(1)).to_be_bytes());
    key[4..8].copy_from_slice(&log.to_be_bytes());
    key[8..].copy_from_slice(&step.to_be_bytes());
    key
}

/// Reads the big-endian number at `key[at..at + 4]`.
pub(crate) fn number_at(key: &[u8], at: usize) -> Option<u32> {
    let bytes = key.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
