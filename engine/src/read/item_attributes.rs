//! The attributes of an item as callers see them: with names where the database stores numbers and bits.
//!
//! The database stores an item's state as [`Attributes`]: versions, speakers and tools are numbers of symbols,
//! episodes and pages are numbers of rows, and sets of sources are bit masks. [`ItemAttributes`] holds the same values with those
//! numbers looked up in the state of the snapshot, so it can be printed, compared and kept without the database.

use crate::Result;
use crate::model::item::{Attributes, Inherited, ItemId, Kind, Layer, Origin, Source, Status, Support};
use crate::model::time::{Timestamp, timestamp};
use crate::state::State;

/// The state of one item at a snapshot. `None` is absent, as in the memory model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ItemAttributes {
    /// The item's kind.
    pub kind: Kind,
    /// The outcome.
    pub status: Option<Status>,
    /// The producer.
    pub source: Option<Source>,
    /// The id of its primary episode.
    pub episode: Option<String>,
    /// The step in its episode.
    pub step: Option<u64>,
    /// The time in microseconds since the epoch, UTC.
    pub time: Option<i64>,
    /// The version of task, environment or tool schema.
    pub version: Option<String>,
    /// The speaker.
    pub speaker: Option<String>,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The log id, if it is not the episode's id.
    pub log_id: Option<String>,
    /// The key of the memory page a trace belongs to, once that page is closed.
    pub page: Option<String>,
    /// False after prune, merge, supersede or retract.
    pub active: bool,
    /// True after its bytes were erased.
    pub redacted: bool,
    /// True if it was explicitly stored without a pointer.
    pub ungrounded: bool,
    /// True if it has a vector in the database's space.
    pub has_vector: bool,
    /// The names of the attributes that it inherited from its sources.
    pub inherited: Vec<&'static str>,
    /// Its origin.
    pub origin: Origin,
    /// The state of its sources.
    pub support: Support,
    /// Trust: the least source weight over the traces it rests on; 0 if one of them failed or was erased, or if there
    /// is none.
    pub trust: f32,
    /// The sources of the traces it rests on.
    pub trust_sources: Vec<Source>,
    /// The statuses of the traces it rests on.
    pub trust_statuses: Vec<Status>,
    /// True if one of the traces it rests on was erased.
    pub rests_on_redacted: bool,
    /// Mean smoothed credit (HiMPO); 0 without credit.
    pub utility: f32,
    /// The number of reports in the mean `utility`.
    pub utility_count: u32,
    /// The mean credit over rollouts (HiMPO).
    pub credit: f32,
    /// The number of rollouts in the mean `credit`.
    pub credit_count: u32,
    /// PlugMem's return score of a procedure, 1 to 10.
    pub return_score: Option<u8>,
    /// The item that contradicts a claim of this one and is preferred to it.
    pub conflict: Option<ItemId>,
    /// Its length in tokens by the estimator of the database.
    pub tokens: u32,
    /// The commit that wrote it.
    pub commit: u64,
    /// The log position of its record.
    pub lsn: u64,
}

impl ItemAttributes {
    /// The time, if it has one that a [`Timestamp`] can have.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.time.and_then(timestamp)
    }

    /// The attributes of an item with their names.
    pub(crate) fn new(state: &State, id: ItemId) -> Result<Self> {
        let stored = &state.attributes(id)?;
        let symbol = |number: Option<u32>| number.map(|number| state.symbol_name(number)).transpose();
        let episode = stored.episode.map(|number| state.episode_id(number)).transpose()?;
        let inherited = [
            (Inherited::STATUS, "status"),
            (Inherited::SOURCE, "source"),
            (Inherited::STEP, "step"),
            (Inherited::TIME, "time"),
            (Inherited::VERSION, "version"),
            (Inherited::EPISODE, "episode"),
        ];
        let has = |mask: u8, byte: u8| mask & (1 << byte) != 0;
        Ok(ItemAttributes {
            kind: stored.kind,
            status: stored.status,
            source: stored.source,
            episode: episode.map(|id| id.as_ref().to_owned()),
            step: stored.step,
            time: stored.time,
            version: symbol(stored.version)?,
            speaker: symbol(stored.speaker)?,
            tool: symbol(stored.tool)?,
            log_id: symbol(stored.log_id)?,
            page: stored.page.map(|number| state.page(number)).transpose()?.map(|page| page.key),
            active: stored.active,
            redacted: stored.redacted,
            ungrounded: stored.ungrounded,
            has_vector: stored.has_vector,
            inherited: inherited.iter().filter(|(bit, _)| stored.inherited & bit != 0).map(|(_, name)| *name).collect(),
            origin: stored.origin,
            support: stored.support,
            trust: stored.trust(),
            trust_sources: of_mask(Source::ALL, |source| has(stored.trust_sources, source.to_byte())),
            trust_statuses: of_mask(Status::ALL, |status| has(stored.trust_statuses, status.to_byte())),
            rests_on_redacted: stored.trust_statuses & Attributes::TRUST_REDACTED != 0,
            utility: stored.utility,
            utility_count: stored.utility_count,
            credit: stored.credit,
            credit_count: stored.credit_count,
            return_score: stored.return_score,
            conflict: state.conflict_of(id)?,
            tokens: stored.tokens,
            commit: stored.commit,
            lsn: stored.lsn,
        })
    }

    /// The layer of the item.
    pub fn layer(&self) -> Layer {
        self.kind.layer()
    }
}

/// The values whose bit is set.
fn of_mask<T: Copy>(all: &[T], is_set: impl Fn(T) -> bool) -> Vec<T> {
    all.iter().copied().filter(|value| is_set(*value)).collect()
}
