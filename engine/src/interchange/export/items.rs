//! The line of an item.

use super::Keys;
use crate::interchange::json::JsonText;
use crate::interchange::line::{self, FieldValue, Line, Pointer, Recall, Stated, Theme, Trace, VectorRef};
use crate::model::space;
use crate::records::record::{self, Change, Field, ItemRecord, LinkRecord};
use crate::{Edge, Error, Layer, Origin, Result, Source, Status};

/// Present attributes of an item, which its line has instead of those in its record.
pub(super) struct CurrentAttributes {
    pub(super) key: String,
    pub(super) episode: Option<String>,
    pub(super) status: Option<Status>,
    pub(super) utility: Option<f32>,
    pub(super) from: Vec<Pointer>,
    pub(super) children: Vec<String>,
    pub(super) vector: Option<VectorRef>,
}

/// The line of an item, with its long fields assembled.
pub(super) fn line(record: &ItemRecord, current: CurrentAttributes) -> Result<Line> {
    let kind = record.kind()?;
    let key = Some(current.key);
    let name = Some(kind.as_str().to_owned());
    let status = current.status.map(|status| status.as_str().to_owned());
    let source = record.source()?.map(Source::as_str).map(str::to_owned);
    if kind.layer() == Layer::Trace {
        return Ok(Line::Trace(Trace {
            key,
            episode: current.episode.unwrap_or_default(),
            step: record.step,
            time: record.time,
            kind: name,
            source,
            tool: record.tool.clone(),
            log_id: record.log_id.clone(),
            status,
            version: record.version.clone(),
            speaker: record.speaker.clone(),
            fields: record.fields.iter().map(field).collect::<Result<_>>()?,
            vector: current.vector,
        }));
    }
    let origin = record.origin()?;
    let stated = Stated {
        episode: current.episode,
        source,
        step: record.step,
        time: record.time,
        version: record.version.clone(),
        utility: current.utility,
        return_score: record.return_score,
        active: None,
        ungrounded: record.ungrounded.then_some(true),
        origin: (origin != Origin::Original).then(|| origin.as_str().to_owned()),
        fields: record.fields.iter().filter(|field| field.name != "text").map(field).collect::<Result<_>>()?,
    };
    let text = record.field("text").map(|_| record.text().to_owned());
    Ok(if kind.layer() == Layer::Recall {
        Line::Recall(Recall { key, kind: name, text, from: current.from, status, vector: current.vector, stated })
    } else {
        Line::Theme(Theme { key, kind: name, text, children: current.children, vector: current.vector, stated })
    })
}

fn field(field: &Field) -> Result<(String, FieldValue)> {
    let corrupt = |what: &str| Error::Corrupt { what: format!("field {:?} of an item is {what}", field.name) };
    let value = match &field.value {
        record::FieldValue::Text(text) => FieldValue::Text(text.clone()),
        record::FieldValue::Json(text) => FieldValue::Json(JsonText::new(text).ok_or_else(|| corrupt("no JSON"))?),
        record::FieldValue::Bytes(bytes) => FieldValue::from_bytes(bytes.clone()),
        record::FieldValue::Chunks { .. } => return Err(corrupt("in pieces")),
    };
    Ok((field.name.clone(), value))
}

/// The line of the embedding space, with everything stated.
pub(super) fn space(space: &space::Space) -> Line {
    Line::Space(line::Space {
        model: space.model.clone(),
        dim: u32::try_from(space.dim).unwrap_or(u32::MAX),
        metric: Some(space.metric.name().to_owned()),
        encoding: Some(space.encoding.name().to_owned()),
    })
}

/// The line of an edge between two items.
pub(super) fn link(record: LinkRecord, keys: &Keys) -> Result<line::Link> {
    let edge = Edge::from_byte(record.edge).ok_or_else(|| record::bad_byte("edge", record.edge))?;
    Ok(line::Link {
        from: keys.item(record.from)?.to_owned(),
        edge: edge.as_str().to_owned(),
        to: Pointer::item(keys.item(record.to)?),
    })
}

/// The `cites` link that adds a pointer to an item, or removes it.
pub(super) fn citation(item: u32, pointer: Pointer, keys: &Keys) -> Result<line::Link> {
    let from = keys.item(item)?.to_owned();
    Ok(line::Link { from, edge: Edge::Cites.as_str().to_owned(), to: pointer })
}

/// The line of a mark that gives a status, by its byte.
pub(super) fn status_mark(key: String, status: u8, because: Option<String>) -> Line {
    let status = Status::from_byte(status).map(|status| status.as_str().to_owned());
    Line::Mark(line::Mark { key, status, because, ..line::Mark::default() })
}

/// The line of a forgotten item.
pub(super) fn redact(key: &str, because: &str) -> Line {
    Line::Redact(line::Redact { key: key.to_owned(), field: None, hash: None, because: Some(because.to_owned()) })
}

/// The line of a claim.
pub(super) fn claim(claim: &record::ClaimRecord, keys: &Keys) -> Result<Line> {
    Ok(Line::Claim(line::Claim {
        key: keys.item(claim.item)?.to_owned(),
        name: claim.name.clone(),
        value: claim.value.clone(),
        scope: claim.global.then(|| holotype_query::ClaimScope::Global.as_str().to_owned()),
        from: keys.pointers(&claim.from)?,
        won: None,
    }))
}

/// The line of a mark that changes utility or credit; `None` for other marks.
pub(super) fn worth_mark(key: String, change: Change, because: Option<String>) -> Option<Line> {
    let several = |count: u32| (count != 1).then_some(count);
    let mark = line::Mark { key, because, ..line::Mark::default() };
    Some(Line::Mark(match change {
        Change::Utility(utility, count) => line::Mark { utility: Some(utility), reports: several(count), ..mark },
        Change::Credit(credit, count) => line::Mark { credit: Some(credit), rollouts: several(count), ..mark },
        Change::Status(_) | Change::Active(_) => return None,
    }))
}
