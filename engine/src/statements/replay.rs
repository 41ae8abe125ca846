//! `replay`: the answers of receipts again, as they were, or without some of what they rest on.
//!
//! ```text
//! before = the statement of the receipt on the state of its commit
//! after  = the same on that state with the items retired, and support settled as after any commit
//! change = what is shown before and not after, after and not before, in another order; whether it may answer
//! ```
//!
//! Taking a source away by hand answers what a blame by likelihoods only estimates: which answers rest on it. An item
//! that rests on the retired ones alone is unsupported then, which keeps it out as it would be kept out.
//!
//! Invariants:
//! 1. Nothing is written, and nothing but the items is different: words and vectors keep their weights.
//! 2. Both answers are the database's own; what a model routed is routed by the database's router in both.

use super::walk::roots;
use crate::model::item::{ItemId, Layer};
use crate::read::answer::{Answer, Output, Table};
use crate::read::cell::Cell;
use crate::read::snapshot::Snapshot;
use crate::records::record::ReceiptRecord;
use crate::write::receipt;
use crate::{Error, Result, recall};
use holotype_query::plan::{self, Replay, Replayed, Without};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Sources of an answer that are taken away one after the other, at most.
const MOST_SOURCES: usize = 64;
/// Receipts that `explain forget` and `explain prune` go over.
pub(super) const LAST_ANSWERS: usize = 20;

/// How much of an answer changes; the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerChange {
    /// Nothing.
    None,
    /// The same items are shown in another order.
    Order,
    /// Other items are shown.
    Rows,
    /// It may answer in one case alone.
    Answerable,
}

impl AnswerChange {
    /// The change in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            AnswerChange::None => "none",
            AnswerChange::Order => "order",
            AnswerChange::Rows => "rows",
            AnswerChange::Answerable => "answerable",
        }
    }
}

/// An answer as it would have been without some items.
#[derive(Debug, Clone)]
pub struct Counterfactual {
    /// The id of the receipt.
    pub receipt: String,
    /// The words of its question, if it has some.
    pub question: Option<String>,
    /// The answer without the items.
    pub answer: Answer,
    /// How it differs from the answer with them.
    pub change: AnswerChange,
    /// The items that are shown no more: rows and lines.
    pub gone: Vec<ItemId>,
    /// The items that are shown instead.
    pub new: Vec<ItemId>,
}

impl Snapshot {
    /// The answer of a receipt as it would have been without these items, and without what rests on them alone.
    ///
    /// ```
    /// # use holotype::{AnswerChange, Durability, Holotype, NewTrace, Options};
    /// # use holotype::query::Params;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// database.query("record turn 'The ferry leaves at nine.' in episode 'e' with key = 't1'", &Params::new())?;
    /// database.query("recall 'When does the ferry leave?' with receipt", &Params::new())?;
    /// let snapshot = database.snapshot();
    /// let source = snapshot.get("t1")?.expect("it is there").id;
    /// let without = snapshot.replay_without("rc-1", &[source])?;
    /// assert_eq!((without.gone, without.answer.rows.len()), (vec![source], 0));
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`] for a receipt that does not exist; [`Error::Invalid`] for one whose statement was forgotten;
    /// those of a recall.
    pub fn replay_without(&self, receipt: &str, items: &[ItemId]) -> Result<Counterfactual> {
        let record = receipt::find(self, receipt)?;
        let before = Before::of(self, &record)?;
        before.without(self, items)
    }

    /// The answers of the newest receipts, at most `last`, as they would have been without these items; the newest
    /// first. Receipts whose statement was forgotten are left out.
    ///
    /// # Errors
    /// Those of [`Snapshot::replay_without`].
    pub fn answers_without(&self, items: &[ItemId], last: usize) -> Result<Vec<Counterfactual>> {
        let mut answers = Vec::new();
        let mut number = self.state.meta.receipts;
        while answers.len() < last && number > 0 {
            number -= 1;
            let record = receipt::find(self, &receipt::id(number))?;
            if record.statement.is_empty() {
                continue;
            }
            answers.push(Before::of(self, &record)?.without(self, items)?);
        }
        Ok(answers)
    }

    /// The sources of the answer of a receipt, each with the answer as it would have been without it; those first that
    /// it changes most with. Sources are the traces that its rows and lines rest on, or rows that rest on none.
    ///
    /// # Errors
    /// Those of [`Snapshot::replay_without`].
    pub fn blame_answer(&self, receipt: &str) -> Result<Vec<(ItemId, Counterfactual)>> {
        let before = Before::of(self, &receipt::find(self, receipt)?)?;
        let mut blamed = Vec::new();
        for source in before.sources()?.into_iter().take(MOST_SOURCES) {
            blamed.push((source, before.without(self, &[source])?));
        }
        blamed.sort_by_key(|(_, without)| std::cmp::Reverse((without.change, without.gone.len() + without.new.len())));
        Ok(blamed)
    }
}

/// The answer of a receipt as it was, and the view that it was given in.
struct Before {
    id: String,
    question: plan::Recall,
    view: Snapshot,
    answer: Answer,
}

impl Before {
    fn of(snapshot: &Snapshot, record: &ReceiptRecord) -> Result<Before> {
        let id = receipt::id(record.number);
        if record.statement.is_empty() {
            return Err(Error::Invalid(format!("the statement of receipt {id} was forgotten; it cannot be replayed")));
        }
        let mut question = receipt::question(record)?;
        question.clauses.as_of = None;
        let view = snapshot.as_of(record.commit)?;
        let answer = recall::run(&view, &question)?;
        Ok(Before { id, question, view, answer })
    }

    /// The traces that the answer rests on, and rows that rest on none, in the order of the rows.
    fn sources(&self) -> Result<Vec<ItemId>> {
        let state = &self.view.state;
        let (mut sources, mut seen) = (Vec::new(), HashSet::new());
        for shown in shown(&self.answer) {
            let mut open = vec![shown];
            while let Some(id) = open.pop() {
                if !seen.insert(id) {
                    continue;
                }
                let below = match state.layer_of(id)? {
                    Layer::Trace => Vec::new(),
                    layer => state.sources(id, layer)?,
                };
                if below.is_empty() { sources.push(id) } else { open.extend(below) }
            }
        }
        Ok(sources)
    }

    fn without(&self, snapshot: &Snapshot, items: &[ItemId]) -> Result<Counterfactual> {
        snapshot.tick()?;
        let known: Vec<ItemId> = items.iter().copied().filter(|id| id.0 < self.view.len()).collect();
        let view = self.view.with_state(Arc::new(self.view.state.without(&known)?));
        let mut answer = recall::run(&view, &self.question)?;
        let (before, after) = (shown(&self.answer), shown(&answer));
        let only = |of: &[ItemId], other: &[ItemId]| -> Vec<ItemId> {
            let other: BTreeSet<&ItemId> = other.iter().collect();
            of.iter().filter(|id| !other.contains(id)).copied().collect()
        };
        let (gone, new) = (only(&before, &after), only(&after, &before));
        let change = match () {
            () if self.answer.answerable != answer.answerable => AnswerChange::Answerable,
            () if !gone.is_empty() || !new.is_empty() => AnswerChange::Rows,
            () if before != after => AnswerChange::Order,
            () => AnswerChange::None,
        };
        for id in items {
            answer.without.push(snapshot.key_of(*id)?);
        }
        let question = self.question.query.words().map(str::to_owned);
        Ok(Counterfactual { receipt: self.id.clone(), question, answer, change, gone, new })
    }
}

/// The items that an answer shows, rows and lines, in its order.
fn shown(answer: &Answer) -> Vec<ItemId> {
    answer.rows.iter().flat_map(|row| [row.item].into_iter().chain(row.lines.iter().map(|line| line.item))).collect()
}

/// Runs the statement.
pub(super) fn run(snapshot: &Snapshot, replay: &Replay) -> Result<Output> {
    match (&replay.of, &replay.without) {
        (Replayed::Receipt(id), None) => Ok(Output::Answer(Box::new(receipt::replay(snapshot, id)?))),
        (Replayed::Receipt(id), Some(Without::Refs(refs))) => {
            let without = snapshot.replay_without(id, &named(snapshot, refs)?)?;
            let mut answer = without.answer.clone();
            answer.receipt = Some(without.receipt.clone());
            answer.notes.insert(0, told(snapshot, &without)?);
            Ok(Output::Answer(Box::new(answer)))
        }
        (Replayed::Receipt(id), Some(Without::Each)) => blame(snapshot, id).map(Output::Table),
        (Replayed::Last(_), Some(Without::Each)) => Err(Error::Invalid(
            "`without each` takes the sources of one answer away: write `replay RECEIPT without each`".to_owned(),
        )),
        (Replayed::Last(count), without) => {
            let items = match without {
                Some(Without::Refs(refs)) => named(snapshot, refs)?,
                _ => Vec::new(),
            };
            last(snapshot, &items, usize::try_from(*count).unwrap_or(usize::MAX)).map(Output::Table)
        }
    }
}

fn named(snapshot: &Snapshot, refs: &[plan::Ref]) -> Result<Vec<ItemId>> {
    let mut items = Vec::new();
    for named in refs {
        items.extend(roots(snapshot, named)?);
    }
    Ok(items)
}

fn keys(snapshot: &Snapshot, items: &[ItemId]) -> Result<String> {
    let keys: Vec<String> = items.iter().map(|id| snapshot.key_of(*id)).collect::<Result<_>>()?;
    Ok(keys.join(", "))
}

/// The change as a note.
fn told(snapshot: &Snapshot, without: &Counterfactual) -> Result<String> {
    let taken = without.answer.without.join(", ");
    let parts = [("gone", &without.gone), ("new", &without.new)];
    let mut said = Vec::new();
    for (name, items) in parts {
        if !items.is_empty() {
            said.push(format!("{name}: {}", keys(snapshot, items)?));
        }
    }
    Ok(match (without.change, said.is_empty()) {
        (AnswerChange::None, _) => format!("without {taken} the answer of receipt {} is the same", without.receipt),
        (AnswerChange::Answerable, true) => format!("without {taken} it may answer in one case alone"),
        (_, true) => format!("without {taken} the rows of receipt {} stand in another order", without.receipt),
        _ => format!("without {taken} receipt {} has other rows; {}", without.receipt, said.join("; ")),
    })
}

fn last(snapshot: &Snapshot, items: &[ItemId], count: usize) -> Result<Table> {
    let answers = snapshot.answers_without(items, count)?;
    let mut rows = Vec::with_capacity(answers.len());
    for without in &answers {
        rows.push(vec![
            Some(Cell::text(without.receipt.as_str())),
            Some(Cell::count(without.answer.commit)),
            without.question.as_deref().map(Cell::text),
            Some(Cell::text(without.change.as_str())),
            Some(Cell::Text(keys(snapshot, &without.gone)?)).filter(|_| !without.gone.is_empty()),
            Some(Cell::Text(keys(snapshot, &without.new)?)).filter(|_| !without.new.is_empty()),
        ]);
    }
    let changed = answers.iter().filter(|without| without.change != AnswerChange::None).count() as u64;
    let notes = vec![format!("answers that change: {changed} of {}", answers.len())];
    let columns = ["receipt", "as_of", "question", "change", "gone", "new"].map(str::to_owned).to_vec();
    Ok(Table { verb: "replay", columns, rows, notes, ..Table::default() })
}

fn blame(snapshot: &Snapshot, id: &str) -> Result<Table> {
    let mut rows = Vec::new();
    for (source, without) in snapshot.blame_answer(id)? {
        let others = |items: &[ItemId]| -> Vec<ItemId> { items.iter().copied().filter(|id| *id != source).collect() };
        let (gone, new) = (others(&without.gone), others(&without.new));
        rows.push(vec![
            Some(Cell::Integer(i64::from(source.0))),
            Some(Cell::Text(snapshot.key_of(source)?)),
            Some(Cell::text(snapshot.state.layer_of(source)?.as_str())),
            Some(Cell::text(without.change.as_str())),
            Some(Cell::Text(keys(snapshot, &gone)?)).filter(|_| !gone.is_empty()),
            Some(Cell::Text(keys(snapshot, &new)?)).filter(|_| !new.is_empty()),
            Some(Cell::Number(crate::read::cell::round(f64::from(without.answer.strength.top)))),
        ]);
    }
    let columns = ["item", "key", "layer", "change", "gone", "new", "top"].map(str::to_owned).to_vec();
    let notes = match rows.len() {
        MOST_SOURCES => vec![format!("the first {MOST_SOURCES} sources; an answer may have more")],
        _ => Vec::new(),
    };
    Ok(Table { verb: "replay", columns, rows, notes, ..Table::default() })
}

/// Which of the last answers change if these items go, as a note; `None` if there are no answers with receipts.
pub(super) fn note(snapshot: &Snapshot, items: &[ItemId]) -> Result<Option<String>> {
    let answers = snapshot.answers_without(items, LAST_ANSWERS)?;
    let changed = answers.iter().filter(|without| without.change != AnswerChange::None);
    let changed: Vec<&str> = changed.map(|without| without.receipt.as_str()).collect();
    Ok(match (answers.len(), changed.len()) {
        (0, _) => None,
        (of, 0) => Some(format!("none of the newest answers with receipts changes, of {of}")),
        (of, _) => Some(format!("these of the newest answers with receipts change, of {of}: {}", changed.join(", "))),
    })
}
