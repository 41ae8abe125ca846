//! Writing statements, each mapped to a call of the transaction.

use super::single;
use super::walk::roots;
use crate::model::edge::Edge;
use crate::model::item::{ItemId, Origin, Source, Status};
use crate::model::pointer::{Pointer, Span, Target};
use crate::model::time;
use crate::read::answer::Table;
use crate::read::cell::Cell;
use crate::write::draft::{NewRecall, NewTrace};
use crate::write::transaction::{EpisodeChange, Mark, Transaction};
use crate::{Error, Result};
use holotype_query::plan::{
    self, Assignment, ClaimAssignment, EpisodeStatement, Excerpt, Link, Record, Ref, Remember, Set, Statement, Update,
};
use holotype_query::{AttributeId, ItemRef, Number, Passage, Value};

/// Runs a writing statement; `None` for one that reads.
pub(super) fn run(transaction: &mut Transaction<'_>, statement: &Statement) -> Result<Option<Table>> {
    let table = match statement {
        Statement::Record(record) => run_record(transaction, record),
        Statement::Remember(remember) => run_remember(transaction, remember),
        Statement::Update(update) => run_update(transaction, update),
        Statement::Retract(retract) => super::mark::retract(transaction, retract),
        Statement::Mark(mark) => super::mark::run(transaction, mark),
        Statement::Link(link) => run_link(transaction, link),
        Statement::Episode(episode) => run_episode(transaction, episode),
        Statement::Set(set) => run_set(transaction, set),
        Statement::Merge(merge) => super::merge::run(transaction, merge),
        Statement::Forget(forget) => super::forget::run(transaction, forget),
        Statement::Learn(learn) => super::learn::run(transaction, learn),
        Statement::Consolidate(consolidate) => super::consolidate::run(transaction, consolidate),
        Statement::Prune(prune) => super::prune::run(transaction, prune),
        Statement::Decay(decay) => super::decay::run(transaction, decay),
        Statement::Compress(compress) => super::decay::compress(transaction, compress),
        Statement::Induce(induce) => super::induce::run(transaction, induce),
        Statement::Reflect(reflect) => super::reflect::run(transaction, reflect),
        _ => return Ok(None),
    };
    table.map(Some)
}

/// The vector of a new text: the given one, or that of the database's embedder.
pub(super) fn vector(transaction: &mut Transaction<'_>, passage: &Passage) -> Result<Option<Vec<f32>>> {
    match &passage.vector {
        Some(vector) => Ok(Some(vector.components.clone())),
        None => transaction.text_vector(&passage.text),
    }
}

fn run_record(transaction: &mut Transaction<'_>, record: &Record) -> Result<Table> {
    let passage = &record.text;
    let mut trace = NewTrace::new(record.kind.into(), &record.episode, passage.text.clone());
    let mut utility = None;
    for assignment in &record.with {
        let (name, value) = named(assignment);
        trace = match assignment.name.attribute() {
            Some(AttributeId::Key) => trace.key(text(&name, value)?),
            Some(AttributeId::Source) => trace.source(text(&name, value)?.parse::<Source>()?),
            Some(AttributeId::Step) => trace.step(whole(&name, value)?),
            Some(AttributeId::Time) => trace.time(instant(&name, value)?),
            Some(AttributeId::Version) => trace.version(text(&name, value)?),
            Some(AttributeId::Status) => trace.status(text(&name, value)?.parse::<Status>()?),
            Some(AttributeId::Speaker) => trace.speaker(text(&name, value)?),
            Some(AttributeId::Tool) => trace.tool(text(&name, value)?),
            Some(AttributeId::LogId) => trace.log_id(text(&name, value)?),
            Some(AttributeId::Utility) => {
                utility = Some(number(&name, value)? as f32);
                trace
            }
            Some(AttributeId::Labels) => labels(&name, value)?.into_iter().fold(trace, NewTrace::label),
            _ => match assignment.name.field() {
                Some(field) => trace.field(field.join("."), json(value)),
                None => return Err(unknown(&name, "record")),
            },
        };
    }
    trace.vector = match &passage.vector {
        Some(vector) => Some(vector.components.clone()),
        None => transaction.vector_for(&trace)?,
    };
    let (id, known) = transaction.record_or_find(trace)?;
    if known {
        let mut table = written(transaction, "record", id)?;
        table.notes.push("known: the key belongs to this item, with the same content; nothing was written".to_owned());
        return Ok(table);
    }
    if let Some(utility) = utility {
        // A trace has no stated utility, so the value is recorded as a mark.
        transaction.mark(id, Mark::Utility(utility, 1), None)?;
    }
    claims(transaction, id, &record.claims)?;
    let mut table = written(transaction, "record", id)?;
    let episode = &record.episode;
    if transaction.is_closed(episode)? {
        table.notes.push(format!("episode '{episode}' is closed; the trace was recorded in it all the same"));
    }
    Ok(table)
}

fn run_remember(transaction: &mut Transaction<'_>, remember: &Remember) -> Result<Table> {
    let passage = &remember.text;
    let mut recall = NewRecall::new(remember.kind.into(), passage.text.clone());
    recall.vector = vector(transaction, passage)?;
    for from in &remember.from {
        recall = recall.from(pointer(from)?);
    }
    if remember.from.is_empty() {
        recall = recall.ungrounded();
    }
    if let Some(episode) = &remember.episode {
        recall = recall.episode(episode.clone());
    }
    let recall = assigned(recall, &remember.with, "remember")?;
    let id = transaction.remember(recall)?;
    claims(transaction, id, &remember.claims)?;
    written(transaction, "remember", id)
}

/// A recall or a theme with the values of a `with`.
fn assigned(mut recall: NewRecall, with: &[Assignment], verb: &str) -> Result<NewRecall> {
    for assignment in with {
        let (name, value) = named(assignment);
        recall = match assignment.name.attribute() {
            Some(AttributeId::Key) if verb == "remember" => recall.key(text(&name, value)?),
            Some(AttributeId::Source) => recall.source(text(&name, value)?.parse::<Source>()?),
            Some(AttributeId::Step) => recall.step(whole(&name, value)?),
            Some(AttributeId::Time) => recall.time(instant(&name, value)?),
            Some(AttributeId::Version) => recall.version(text(&name, value)?),
            Some(AttributeId::Status) => recall.status(text(&name, value)?.parse::<Status>()?),
            Some(AttributeId::Utility) => recall.utility(number(&name, value)? as f32),
            Some(AttributeId::ReturnScore) => {
                recall.return_score(u8::try_from(whole(&name, value)?).unwrap_or(u8::MAX))
            }
            Some(AttributeId::Origin) => recall.origin(text(&name, value)?.parse::<Origin>()?),
            Some(AttributeId::Labels) => labels(&name, value)?.into_iter().fold(recall, NewRecall::label),
            _ => match assignment.name.field() {
                Some(field) => recall.field(field.join("."), json(value)),
                None => return Err(unknown(&name, verb)),
            },
        };
    }
    Ok(recall)
}

fn run_update(transaction: &mut Transaction<'_>, update: &Update) -> Result<Table> {
    let names = transaction.names()?;
    let old = names.resolve_item(&update.item)?;
    let (key, kind) = (names.key_of(old)?, transaction.attributes(old)?.kind);
    let passage = &update.text;
    let mut recall = assigned(NewRecall::new(kind, passage.text.clone()), &update.with, "update")?;
    recall.vector = vector(transaction, passage)?;
    for from in &update.from {
        recall = recall.from(pointer(from)?);
    }
    let id = transaction.update(&key, recall)?;
    transaction.unite_links(old, id)?;
    claims(transaction, id, &update.claims)?;
    written(transaction, "update", id)
}

fn claims(transaction: &mut Transaction<'_>, id: ItemId, claims: &[ClaimAssignment]) -> Result<()> {
    for claim in claims {
        let value = text("a claim", &claim.value)?;
        transaction.claim(id, &claim.name, &value, claim.global, &[])?;
    }
    Ok(())
}

fn written(transaction: &mut Transaction<'_>, verb: &'static str, id: ItemId) -> Result<Table> {
    let key = transaction.names()?.key_of(id)?;
    Ok(single(verb, &["item", "key"], vec![Some(Cell::Integer(i64::from(id.0))), Some(Cell::Text(key))]))
}

fn run_link(transaction: &mut Transaction<'_>, link: &Link) -> Result<Table> {
    let snapshot = transaction.names()?;
    let from = snapshot.resolve_item(&link.item)?;
    let edge = Edge::from(link.edge);
    let to = &link.pointer;
    let has_span = to.field.is_some() || to.excerpt.is_some() || matches!(to.target, Ref::Page(_));
    if link.remove {
        match (edge, has_span) {
            (Edge::Cites, true) => transaction.uncite(from, &pointer(to)?)?,
            (_, true) => return Err(only_cites(edge)),
            (_, false) => {
                for target in roots(&snapshot, &to.target)? {
                    transaction.unlink(from, edge, target)?;
                }
            }
        }
    } else if edge == Edge::Cites {
        transaction.cite(from, &pointer(to)?)?;
    } else if has_span {
        return Err(only_cites(edge));
    } else {
        for target in roots(&snapshot, &to.target)? {
            transaction.link(from, edge, target)?;
        }
    }
    let verb = if link.remove { "unlink" } else { "link" };
    let cells = vec![
        Some(Cell::Text(snapshot.key_of(from)?)),
        Some(Cell::text(edge.as_str())),
        Some(Cell::Text(to.to_string())),
    ];
    Ok(single(verb, &["from", "edge", "to"], cells))
}

fn only_cites(edge: Edge) -> Error {
    Error::Invalid(format!("{edge} links items; only cites points to a span or page"))
}

fn run_episode(transaction: &mut Transaction<'_>, statement: &EpisodeStatement) -> Result<Table> {
    let mut change = EpisodeChange { open: Some(!statement.close), ..EpisodeChange::default() };
    for assignment in &statement.with {
        let (name, value) = named(assignment);
        match assignment.name.attribute() {
            Some(AttributeId::Task) => change.task = Some(text(&name, value)?),
            Some(AttributeId::Version) => change.version = Some(text(&name, value)?),
            _ => return Err(unknown(&name, "episode")),
        }
    }
    let id = &statement.episode;
    transaction.episode(id, change)?;
    let state = if statement.close { "closed" } else { "open" };
    let verb = if statement.close { "close" } else { "open" };
    Ok(single(verb, &["episode", "state"], vec![Some(Cell::text(id.as_str())), Some(Cell::text(state))]))
}

fn run_set(transaction: &mut Transaction<'_>, set: &Set) -> Result<Table> {
    let name = set.name.dotted();
    let value = text(&name, &set.value)?;
    transaction.set(&name, &value)?;
    Ok(single("set", &["setting", "value"], vec![Some(Cell::Text(name)), Some(Cell::Text(value))]))
}

/// Converts a pointer of the query language.
pub(super) fn pointer(pointer: &plan::Pointer) -> Result<Pointer> {
    let target = match &pointer.target {
        Ref::Item(item) => match item {
            ItemRef::Key(key) => Target::Key(key.clone()),
            ItemRef::Id(number) => Target::Item(ItemId(u32::try_from(*number).unwrap_or(u32::MAX))),
        },
        Ref::Page(key) => Target::Page(key.clone()),
        Ref::Episode(id) => {
            return Err(Error::Invalid(format!("a pointer must name an item or a page, not episode '{id}'")));
        }
    };
    let span = match &pointer.excerpt {
        None => Span::Whole,
        Some(Excerpt::Bytes { start, end }) => Span::Bytes(*start, *end),
        Some(Excerpt::Quoting(quote)) => Span::Quoting(quote.clone()),
    };
    Ok(Pointer { target, field: pointer.field.clone(), span, hash: None })
}

fn named(assignment: &Assignment) -> (String, &Value) {
    (assignment.name.dotted(), &assignment.value)
}

fn unknown(name: &str, verb: &str) -> Error {
    Error::Invalid(format!("{verb} has no attribute {name}"))
}

fn wrong(name: &str, value: &Value, expected: &str) -> Error {
    Error::Invalid(format!("{name} = {value}: expected {expected}"))
}

pub(super) fn text(name: &str, value: &Value) -> Result<String> {
    Ok(match value {
        Value::Text(text) => text.clone(),
        Value::Word(word) => word.dotted(),
        Value::Number(_) | Value::Duration(_) => value.to_string(),
        Value::Bool(_) if name != "key" => value.to_string(),
        Value::Bool(_) => return Err(wrong(name, value, "a text")),
    })
}

/// The labels of a text, which commas separate.
fn labels(name: &str, value: &Value) -> Result<Vec<String>> {
    Ok(text(name, value)?.split(',').map(|label| label.trim().to_owned()).collect())
}

/// The value of a field.
fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Bool(yes) => (*yes).into(),
        Value::Number(Number::Natural(number)) => (*number).into(),
        Value::Number(Number::Negative(number)) => (*number).into(),
        Value::Number(Number::Real(number)) => (*number).into(),
        Value::Duration(_) | Value::Word(_) => value.to_string().into(),
    }
}

fn whole(name: &str, value: &Value) -> Result<u64> {
    match value {
        Value::Number(number) => number.as_u64().ok_or_else(|| wrong(name, value, "a whole number")),
        _ => Err(wrong(name, value, "a whole number")),
    }
}

fn number(name: &str, value: &Value) -> Result<f64> {
    match value {
        Value::Number(number) => Ok(number.as_f64()),
        _ => Err(wrong(name, value, "a number")),
    }
}

fn instant(name: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Text(text) => time::parse(text),
        Value::Number(number) => number.as_i64().ok_or_else(|| wrong(name, value, "a time")),
        _ => Err(wrong(name, value, "a time")),
    }
}
