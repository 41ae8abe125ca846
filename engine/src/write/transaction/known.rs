//! Traces that are recorded again: a caller who does not know whether an earlier attempt arrived records once more.
//!
//! A key names one content for ever. A trace is *known* if the item that has its key says the same: kind, episode,
//! fields and whatever else the caller stated. What the caller left out (a step, a time) was assigned by the engine and
//! is not compared; a status counts as it was written and as it is now; a vector that an embedder made is not compared.

use super::Transaction;
use crate::model::item::{ItemId, Source, Status};
use crate::write::draft::NewTrace;
use crate::{Error, Result};

impl Transaction<'_> {
    /// Records a trace. Missing step, time and key are generated. A trace whose key is that of a trace with the same
    /// content is *known*: the item is returned, and nothing is written.
    ///
    /// # Errors
    /// [`Error::OtherContent`] if the key belongs to an item with other content, [`Error::DuplicateTrace`],
    /// [`Error::Vector`] for a vector that does not fit the space, [`Error::Limit`] for a field that is too long.
    pub fn record(&mut self, trace: NewTrace) -> Result<ItemId> {
        Ok(self.record_or_find(trace)?.0)
    }

    /// Records a trace as [`Transaction::record`] does, and returns with it true if the trace was known.
    ///
    /// # Errors
    /// As [`Transaction::record`].
    pub fn record_or_find(&mut self, trace: NewTrace) -> Result<(ItemId, bool)> {
        if let Some(known) = self.known_trace(&trace)? {
            return Ok((known, true));
        }
        self.atomically(|transaction| {
            let (id, episode) = transaction.record_inner(trace)?;
            transaction.close_full_page(episode)?;
            Ok((id, false))
        })
    }

    /// The item that a new trace says again, if there is one.
    ///
    /// # Errors
    /// [`Error::OtherContent`] if the trace's key belongs to an item with other content.
    fn known_trace(&mut self, trace: &NewTrace) -> Result<Option<ItemId>> {
        let Some(key) = &trace.key else { return Ok(None) };
        let Some(id) = self.state()?.item_by_key(key)? else { return Ok(None) };
        match self.first_difference(id, trace)? {
            None => Ok(Some(id)),
            Some(member) => Err(Error::OtherContent { key: key.clone(), member }),
        }
    }

    /// The first member in which a stored item differs from a trace, if there is one.
    fn first_difference(&mut self, id: ItemId, trace: &NewTrace) -> Result<Option<String>> {
        let content = self.content(id)?;
        let stored = content.record.as_ref();
        let attributes = self.state()?.attributes(id)?;
        if attributes.redacted {
            return Ok(Some("content, which was forgotten".to_owned()));
        }
        let episode = stored.episode.map(|number| self.state()?.episode(number)).transpose()?;
        let episode = episode.as_ref().map(|row| row.id.as_str());
        let status = trace.status.unwrap_or(Status::Unknown);
        let statuses = [stored.status.and_then(Status::from_byte), attributes.status];
        let log = |log: &Option<String>| log.clone().or_else(|| episode.map(str::to_owned));
        let states_text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let same = [
            ("kind", stored.kind == trace.kind.to_byte()),
            ("episode", episode == Some(trace.episode.as_str())),
            ("step", trace.step.is_none() || trace.step == stored.step),
            ("time", trace.time.is_none() || trace.time == stored.time),
            ("version", trace.version.is_none() || trace.version == stored.version),
            ("status", statuses.iter().any(|stored| stored.unwrap_or(Status::Unknown) == status)),
            ("source", trace.source.is_none() || trace.source.map(Source::to_byte) == stored.source),
            ("speaker", trace.speaker == stored.speaker),
            ("tool", states_text(&trace.tool) == states_text(&stored.tool)),
            ("log_id", log(&trace.log_id) == log(&stored.log_id)),
        ];
        if let Some((member, _)) = same.iter().find(|(_, same)| !same) {
            return Ok(Some((*member).to_owned()));
        }
        let field = |name: &str| stored.fields.iter().find(|field| field.name == name);
        let other = trace.fields.iter().find(|given| field(&given.name).is_none_or(|field| field.value != given.value));
        if let Some(other) = other {
            return Ok(Some(other.name.clone()));
        }
        if trace.fields.len() != stored.fields.len() {
            return Ok(Some("number of fields".to_owned()));
        }
        let embedded = self.state()?.fingerprint()?.is_some();
        if let Some(vector) = trace.vector.as_deref().filter(|_| !embedded)
            && self.encode_vector(Some(vector))? != self.stored_vector(id)?
        {
            return Ok(Some("vector".to_owned()));
        }
        Ok(None)
    }
}
