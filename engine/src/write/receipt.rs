//! Receipts: the statement, the reader position, the commit and the hashes of an answer (memory model, section 8).
//!
//! `recall … with receipt` writes one. `replay` runs the statement again on the state as of its commit and reports
//! whether the answer is identical, or which rows differ. The only text in a receipt is the statement: rows are items
//! with the hash of their shown content, spans are hashes.
//!
//! With the setting `audit = reads` every recall appends a *read* record, a receipt without the statement. It is not
//! synced by itself and is listed among the events.

use crate::read::answer::{Answer, Citation, Row};
use crate::read::snapshot::Snapshot;
use crate::records::record::{ReadRecord, ReceiptRecord, RowRecord};
use crate::records::tables;
use crate::state::reader_position::Reader;
use crate::{Error, Result, recall};
use holotype_query::plan::{self, AsOf, Clauses, Query, Recall, Statement};
use holotype_query::{ParamValue, Params, Passage, Time, Vector, bind, parse};
use serde_json::Value;

/// The prefix of receipt ids: `rc-1`, `rc-2`, …
const PREFIX: &str = "rc-";
/// The parameter that stands for the vector in the statement of a receipt.
const VECTOR: &str = "vector";

/// The id of the receipt of that number.
pub(crate) fn id(number: u32) -> String {
    format!("{PREFIX}{}", u64::from(number) + 1)
}

/// The number of the receipt of that id.
pub(crate) fn number(id: &str) -> Option<u32> {
    id.strip_prefix(PREFIX)?.parse::<u32>().ok()?.checked_sub(1)
}

/// The receipt of an answer as the record that keeps it.
pub(crate) fn receipt(number: u32, recall: &Recall, answer: &Answer) -> ReceiptRecord {
    let (statement, vector) = written(recall);
    let Reader { episode, step, time, version } = answer.at.clone();
    ReceiptRecord {
        number,
        statement,
        vector,
        episode,
        step,
        time,
        version,
        commit: answer.commit,
        rows: rows(answer),
        spans: spans(answer),
        answer: hash_of(answer),
    }
}

/// A read as the record that audits it.
pub(crate) fn read(answer: &Answer) -> ReadRecord {
    let Reader { episode, step, time, version } = answer.at.clone();
    let (rows, spans, commit) = (rows(answer), spans(answer), answer.commit);
    ReadRecord { episode, step, time, version, commit, rows, spans, answer: hash_of(answer) }
}

fn rows(answer: &Answer) -> Vec<RowRecord> {
    let row = |row: &Row| RowRecord { item: row.item.0, hash: hash(&row.to_json(None)) };
    answer.rows.iter().map(row).collect()
}

fn spans(answer: &Answer) -> Vec<[u8; 32]> {
    fn of_lines(row: &Row) -> impl Iterator<Item = &Citation> {
        row.lines.iter().flat_map(|line| &line.citations)
    }
    let cited = answer.rows.iter().flat_map(|row| row.citations.iter().chain(of_lines(row)));
    let shown = cited.filter_map(|citation| citation.text.as_ref());
    shown.map(|text| *blake3::hash(text.as_bytes()).as_bytes()).collect()
}

/// The hash of an answer without its run time and its receipt id.
fn hash_of(answer: &Answer) -> [u8; 32] {
    hash(&Answer { micros: 0, receipt: None, ..answer.clone() }.to_json(None))
}

fn hash(json: &Value) -> [u8; 32] {
    *blake3::hash(json.to_string().as_bytes()).as_bytes()
}

/// A recall in canonical text, and its vector, which has no text form.
fn written(recall: &Recall) -> (String, Option<Vec<f32>>) {
    let vector = recall.query.vector().map(|vector| vector.components.clone());
    let near = vector.clone().map(|components| Vector { param: VECTOR.to_owned(), components });
    let text = recall.query.words().map(|words| Passage { text: words.to_owned(), vector: None });
    let query = Query { text, near, like: recall.query.like.clone() };
    let clauses = Clauses { receipt: false, ..recall.clauses.clone() };
    (Recall { query, clauses }.to_string(), vector)
}

/// The receipt of that id.
///
/// # Errors
/// [`Error::Missing`].
pub(crate) fn find(snapshot: &Snapshot, id: &str) -> Result<ReceiptRecord> {
    let missing = || Error::Missing { what: "receipt", name: format!("'{id}'") };
    let number = number(id).ok_or_else(missing)?;
    snapshot.state.get(tables::RECEIPT, &tables::numbers([number]))?.ok_or_else(missing)
}

/// Runs the statement of a receipt on the state as of its commit. The notes of the answer list differences.
pub(crate) fn replay(snapshot: &Snapshot, id: &str) -> Result<Answer> {
    let receipt = find(snapshot, id)?;
    if receipt.statement.is_empty() {
        return Err(Error::Invalid(format!("the statement of receipt {id} was forgotten; it cannot be replayed")));
    }
    let mut answer = recall::run(snapshot, &question(&receipt)?)?;
    let same = hash_of(&answer) == receipt.answer;
    answer.receipt = Some(id.to_owned());
    if same {
        answer.notes.push(format!("the answer of receipt {id}, byte for byte"));
        return Ok(answer);
    }
    let now = rows(&answer);
    let mut changed = Vec::new();
    for place in 0..receipt.rows.len().max(now.len()) {
        let name = |row: &RowRecord| {
            let item = crate::model::item::ItemId(row.item);
            snapshot.key_of(item).unwrap_or_else(|_| item.to_string())
        };
        let what = match (receipt.rows.get(place), now.get(place)) {
            (Some(then), Some(now)) if then == now => continue,
            (Some(then), Some(now)) if then.item == now.item => format!("{} reads otherwise", name(then)),
            (Some(then), Some(now)) => format!("{} stands where {} stood", name(now), name(then)),
            (Some(then), None) => format!("{} is gone", name(then)),
            (None, Some(now)) => format!("{} is new", name(now)),
            (None, None) => continue,
        };
        changed.push(format!("row {}: {what}", place + 1));
    }
    if changed.is_empty() {
        changed.push("the rows are the same, what is said of them together is not".to_owned());
    }
    answer.notes.push(format!("not the answer of receipt {id}: {}", changed.join("; ")));
    Ok(answer)
}

/// The words of the question of a receipt; `None` if it has none, or was forgotten.
pub(crate) fn words(receipt: &ReceiptRecord) -> Result<Option<String>> {
    if receipt.statement.is_empty() {
        return Ok(None);
    }
    Ok(question(receipt)?.query.words().map(str::to_owned))
}

/// The recall of a receipt, with its reader and its commit.
pub(crate) fn question(receipt: &ReceiptRecord) -> Result<Recall> {
    let script = parse(&receipt.statement).map_err(Error::Query)?;
    let mut params = Params::new();
    if let Some(vector) = &receipt.vector {
        params.insert(VECTOR.to_owned(), ParamValue::Vector(vector.clone()));
    }
    let corrupt = || Error::Corrupt { what: format!("receipt {} holds no recall", id(receipt.number)) };
    let Some(Statement::Recall(mut recall)) = bind(&script, &params).map_err(Error::Query)?.pop() else {
        return Err(corrupt());
    };
    let reader = plan::Reader {
        step: receipt.step,
        time: receipt.time.map(|micros| Time { micros }),
        version: receipt.version.clone(),
    };
    if reader != plan::Reader::default() {
        recall.clauses.reader = Some(reader);
    }
    recall.clauses.as_of = Some(AsOf::Commit(receipt.commit));
    Ok(*recall)
}
