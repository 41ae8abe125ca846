//! Item lines: traces, recalls and themes.

use super::fault::{At, Failure, Fault};
use super::same::{self, Difference, Stored};
use super::{Import, Outcome, quoted};
use crate::interchange::line::{self, FieldValue, Recall, Stated, Theme, Trace, Unit, VectorRef};
use crate::interchange::{NpyReader, Precision};
use crate::model::embed::{self, Embedder, HashingEmbedder};
use crate::model::plural::counted;
use crate::model::pointer::{Pointer, Span, Target};
use crate::model::space::Space;
use crate::records::record::{self, Field};
use crate::write::draft::{NewRecall, NewTrace};
use crate::{Edge, Encoding, Error, ItemId, Kind, Layer, Origin, Result, Source, UnknownName};
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a space that is defined for vectors of an unknown model.
const UNNAMED_MODEL: &str = "unnamed";

impl Import<'_> {
    pub(super) fn trace(&mut self, line: &Trace) -> Result<Outcome, Failure> {
        let kind = match &line.kind {
            Some(kind) => word(kind)?,
            None if line.tool.is_some() => Kind::Call,
            None => Kind::Turn,
        };
        let text = line.fields.iter().find(|(name, _)| name == "text").map(|(_, value)| value);
        let text = text.and_then(|text| std::str::from_utf8(text.as_bytes()).ok()).unwrap_or_default();
        let vector = self.vector("trace", line.vector.as_ref(), &embed::spoken(line.speaker.as_deref(), text))?;
        let bytes = self.vector_bytes("trace", vector.as_ref())?;
        let mut difference = None;
        for id in self.trace_candidates(line, kind, text)? {
            let stored = Stored::read(self.transaction()?, id)?;
            match stored.differs_from_trace(line, kind, bytes.as_deref()) {
                None => return Ok(self.known(stored.record().kind, text, id)),
                Some(found) => difference = difference.or(Some(found)),
            }
        }
        if let (Some(key), Some(difference)) = (&line.key, difference) {
            return Err(taken(key, difference).into());
        }
        let trace = NewTrace {
            kind,
            episode: line.episode.clone(),
            key: line.key.clone(),
            step: line.step,
            time: line.time,
            timeless: true,
            version: line.version.clone(),
            status: line.status.as_deref().map(word).transpose()?,
            source: line.source.as_deref().map(word).transpose()?,
            speaker: line.speaker.clone(),
            tool: line.tool.clone(),
            log_id: line.log_id.clone(),
            fields: line.fields.iter().map(|(name, value)| field(name, value)).collect(),
            labels: Vec::new(),
            vector: vector.numbers,
        };
        let id = self.transaction()?.record_in_open_page(trace).map_err(|error| attribute_to_member(error, "trace"))?;
        self.report.embedded += u64::from(vector.embedded);
        self.note_due(id)?;
        Ok(Outcome::Added)
    }

    pub(super) fn recall(&mut self, line: &Recall) -> Result<Outcome, Failure> {
        let kind = line.kind.as_deref().map_or(Ok(Kind::Fact), word)?;
        let text = line.text.as_deref().unwrap_or_default();
        let vector = self.vector("recall", line.vector.as_ref(), text)?;
        let bytes = self.vector_bytes("recall", vector.as_ref())?;
        let mut difference = None;
        for id in self.candidates(line.key.as_deref(), kind, text)? {
            let transaction = self.transaction()?;
            let stored = Stored::read(transaction, id)?;
            match stored.differs_from_recall(transaction, line, kind, bytes.as_deref())? {
                None => return Ok(self.known(stored.record().kind, text, id)),
                Some(found) => difference = difference.or(Some(found)),
            }
        }
        if let (Some(key), Some(difference)) = (&line.key, difference) {
            return Err(taken(key, difference).into());
        }
        let mut recall = NewRecall::new(kind, text);
        recall.key.clone_from(&line.key);
        recall.from = line.from.iter().map(pointer).collect();
        recall.status = line.status.as_deref().map(word).transpose()?;
        recall.vector = vector.numbers;
        state(&mut recall, &line.stated)?;
        self.check_pointers(&["recall", "from"], &line.from)?;
        let id = self.transaction()?.remember(recall).map_err(|error| attribute_to_member(error, "recall"))?;
        self.note_wordless(id, line.text.is_none())?;
        self.report.embedded += u64::from(vector.embedded);
        self.retire_stated(id, &line.stated)?;
        Ok(Outcome::Added)
    }

    pub(super) fn theme(&mut self, line: &Theme) -> Result<Outcome, Failure> {
        let kind = line.kind.as_deref().map_or(Ok(Kind::Theme), word)?;
        let text = line.text.as_deref().unwrap_or_default();
        let vector = self.vector("theme", line.vector.as_ref(), text)?;
        let bytes = self.vector_bytes("theme", vector.as_ref())?;
        let mut difference = None;
        for id in self.candidates(line.key.as_deref(), kind, text)? {
            let stored = Stored::read(self.transaction()?, id)?;
            let mut found = stored.differs_from_theme(line, kind, bytes.as_deref());
            if found.is_none() {
                found = self.unknown_child(id, line)?;
            }
            match found {
                None => return Ok(self.known(stored.record().kind, text, id)),
                Some(found) => difference = difference.or(Some(found)),
            }
        }
        if let (Some(key), Some(difference)) = (&line.key, difference) {
            return Err(taken(key, difference).into());
        }
        let mut theme = NewRecall::new(kind, text);
        theme.key.clone_from(&line.key);
        theme.vector = vector.numbers;
        state(&mut theme, &line.stated)?;
        for (position, key) in line.children.iter().enumerate() {
            let path = ["theme", "children", &position.to_string()];
            let transaction = self.transaction()?;
            let child = transaction.find(&Target::Key(key.clone())).at(&path)?;
            let found = transaction.state()?.attributes(child)?.kind;
            if found.layer() != Layer::Recall {
                let message = format!("{} is a {found}: the children of a theme are recalls", quoted(key));
                return Err(Fault::new(&path, "invalid", message).into());
            }
            theme.children.push(Target::Item(child));
        }
        let id = self.transaction()?.remember(theme).map_err(|error| attribute_to_member(error, "theme"))?;
        self.note_wordless(id, line.text.is_none())?;
        self.report.embedded += u64::from(vector.embedded);
        self.retire_stated(id, &line.stated)?;
        Ok(Outcome::Added)
    }

    /// The items that a line with that key, or without one, may describe: the holder of the key and those it
    /// superseded.
    fn candidates(&mut self, key: Option<&str>, kind: Kind, text: &str) -> Result<Vec<ItemId>> {
        match key {
            Some(key) => self.called(key),
            None => self.past.unkeyed(self.database, kind.to_byte(), text),
        }
    }

    fn trace_candidates(&mut self, line: &Trace, kind: Kind, text: &str) -> Result<Vec<ItemId>> {
        let (None, Some(step)) = (&line.key, line.step) else {
            return self.candidates(line.key.as_deref(), kind, text);
        };
        let log_id = line.log_id.as_deref().unwrap_or(&line.episode);
        let state = self.transaction()?.state()?;
        let found = state.trace(line.tool.as_deref(), state.symbol(log_id)?, step)?;
        Ok(found.map(ItemId).into_iter().collect())
    }

    /// The item that holds a key, then those that held it before an update moved the key.
    pub(super) fn called(&mut self, key: &str) -> Result<Vec<ItemId>> {
        let transaction = self.transaction()?;
        let Some(holder) = transaction.state()?.item_by_key(key)? else { return Ok(Vec::new()) };
        let mut items = vec![holder];
        // Items may supersede each other in a circle.
        let mut seen = BTreeSet::from([holder]);
        let mut superseding = vec![holder];
        while let Some(newer) = superseding.pop() {
            for end in transaction.state()?.edges_out(newer, Some(Edge::Supersedes))? {
                if !seen.insert(end.far) {
                    continue;
                }
                superseding.push(end.far);
                if transaction.content(end.far)?.record.key.as_deref() == Some(key) {
                    items.push(end.far);
                }
            }
        }
        Ok(items)
    }

    /// The item that a key names now.
    pub(super) fn holder(&mut self, key: &str, path: &[&str]) -> Result<ItemId, Failure> {
        self.transaction()?.find(&Target::Key(key.to_owned())).at(path)
    }

    fn known(&mut self, kind: u8, text: &str, id: ItemId) -> Outcome {
        self.past.take_unkeyed(kind, text, id);
        Outcome::Known
    }

    /// A child of the line that the stored theme does not have and never had.
    fn unknown_child(&mut self, theme: ItemId, line: &Theme) -> Result<Option<Difference>> {
        for (position, key) in line.children.iter().enumerate() {
            if same::child(self.transaction()?, theme, key)?.is_some() {
                continue;
            }
            let mut was = false;
            for child in self.called(key)? {
                was |= self.was_linked(child, Edge::Parent, theme)?;
            }
            if !was {
                let path = ["theme", "children", &position.to_string()].map(str::to_owned).to_vec();
                let given = quoted(key);
                return Ok(Some(Difference { path, stored: "no such child".to_owned(), given }));
            }
        }
        Ok(None)
    }

    /// Checks that the pointers of a line resolve.
    pub(super) fn check_pointers(&mut self, path: &[&str], pointers: &[line::Pointer]) -> Result<(), Failure> {
        for (position, given) in pointers.iter().enumerate() {
            let position = position.to_string();
            let path: Vec<&str> = path.iter().copied().chain([position.as_str()]).collect();
            self.check_pointer(&path, given)?;
        }
        Ok(())
    }

    pub(super) fn check_pointer(&mut self, path: &[&str], given: &line::Pointer) -> Result<(), Failure> {
        let Err(error) = self.transaction()?.resolve(&pointer(given)) else { return Ok(()) };
        let member = match (&error, given) {
            (Error::HashMismatch { .. }, _) => "hash",
            (_, line::Pointer::Page { .. }) => "page",
            (_, line::Pointer::Field { key, .. }) if self.called(key)?.is_empty() => "key",
            (Error::UnresolvedPointer { reason, .. }, _) if reason.starts_with("it has no field") => "field",
            (_, line::Pointer::Field { span: Some(_), .. }) => "start",
            _ => "key",
        };
        let path: Vec<&str> = path.iter().copied().chain([member]).collect();
        Err(error).at(&path)
    }

    fn retire_stated(&mut self, id: ItemId, stated: &Stated) -> Result<()> {
        if stated.active == Some(false) {
            self.transaction()?.deactivate(id, None, None)?;
        }
        Ok(())
    }

    // ---- vectors ----

    /// The vector of an item: the line's, or its text's when an embedder is to be used.
    fn vector(&mut self, kind: &str, given: Option<&VectorRef>, text: &str) -> Result<Vector, Failure> {
        let numbers = match given {
            Some(VectorRef::Row(row)) => Some(self.row(*row).at(&[kind, "row"])?),
            Some(VectorRef::Inline(numbers)) => {
                let space = || Space::new(UNNAMED_MODEL, numbers.len());
                self.space_or(space).at(&[kind, "vector"])?.check_vector(numbers).at(&[kind, "vector"])?;
                Some(numbers.clone())
            }
            None => {
                let numbers = match self.embedder()? {
                    Some(embedder) => embed::vector(embedder.as_ref(), text)?,
                    None => None,
                };
                return Ok(Vector { embedded: numbers.is_some(), numbers });
            }
        };
        Ok(Vector { numbers, embedded: false })
    }

    fn row(&mut self, row: u64) -> Result<Vec<f32>, Failure> {
        let Some(file) = self.vectors else {
            let message = "the line names a row of a .npy file, and none is given for this file";
            return Err(Fault::new(&[], "no-vectors", message).hint("give it with --vectors FILE.npy").into());
        };
        let space = self.space_or(|| unnamed_space(file))?;
        if space.dim != file.dim() {
            let message = format!(
                "{} has rows of {}; the space {space} has {}",
                file.path().display(),
                counted(file.dim() as u64, "numbers"),
                space.dim
            );
            return Err(Fault::new(&[], "vector", message).into());
        }
        let mut numbers = Vec::new();
        file.read_row(row, &mut numbers)?;
        file.check_finite(row, &numbers)?;
        space.check_vector(&numbers)?;
        Ok(numbers)
    }

    /// The database's space, defined now if it has none.
    fn space_or(&mut self, define: impl FnOnce() -> Space) -> Result<Space> {
        let transaction = self.transaction()?;
        if let Some(space) = transaction.state()?.meta.space.as_deref() {
            return Space::try_from(space);
        }
        let space = define();
        transaction.define_space(&space)?;
        Ok(space)
    }

    /// The embedder for items without a vector, if the database's space is its own or can become it.
    fn embedder(&mut self) -> Result<Option<Arc<dyn Embedder>>> {
        let given = self.options.embedder.clone().or_else(|| self.database.core.options.embedder.clone());
        let Some(embedder) = given else { return Ok(None) };
        let is_built_in = HashingEmbedder::from_name(&embedder.fingerprint()).is_some();
        let has_vectors = self.vectors.is_some();
        let transaction = self.transaction()?;
        let state = transaction.state()?;
        if has_vectors && state.meta.space.is_none() {
            return Ok(None);
        }
        // The built-in embedder stands aside in the space of a model; any other one is refused there.
        if is_built_in && state.meta.space.is_some() && state.fingerprint()? != Some(embedder.fingerprint()) {
            return Ok(None);
        }
        transaction.adopt(embedder.as_ref())?;
        Ok(Some(embedder))
    }

    /// The stored bytes of a vector, for comparison.
    fn vector_bytes(&mut self, kind: &str, vector: Option<&Vec<f32>>) -> Result<Option<Vec<u8>>, Failure> {
        let Some(vector) = vector else { return Ok(None) };
        let space = self.space_or(|| Space::new(UNNAMED_MODEL, vector.len()))?;
        space.encode(vector).map(Some).at(&[kind, "vector"])
    }
}

/// An item's vector, if it has one.
struct Vector {
    numbers: Option<Vec<f32>>,
    embedded: bool,
}

impl Vector {
    fn as_ref(&self) -> Option<&Vec<f32>> {
        self.numbers.as_ref()
    }
}

/// The space of a file's vectors if nothing names it: cosine metric, with the precision of the file.
fn unnamed_space(file: &NpyReader) -> Space {
    let encoding = match file.precision() {
        Precision::F16 => Encoding::F16,
        Precision::F32 => Encoding::F32,
    };
    Space::new(UNNAMED_MODEL, file.dim()).encoding(encoding)
}

/// Converts a line's pointer to the engine's.
pub(super) fn pointer(line: &line::Pointer) -> Pointer {
    match line {
        line::Pointer::Page { page, hash } => Pointer { hash: hash.clone(), ..Pointer::to_page(page) },
        line::Pointer::Field { key, field, span, hash } => {
            let span = match span {
                None => Span::Whole,
                Some(line::Span { start, end, unit: Unit::Bytes }) => Span::Bytes(*start, *end),
                Some(line::Span { start, end, unit: Unit::Chars }) => Span::Chars(*start, *end),
            };
            Pointer { target: Target::Key(key.clone()), field: Some(field.clone()), span, hash: hash.clone() }
        }
    }
}

/// A word that the line's reader found to be one of a fixed set.
pub(super) fn word<T: FromStr<Err = UnknownName>>(word: &str) -> Result<T> {
    Ok(word.parse()?)
}

fn field(name: &str, value: &FieldValue) -> Field {
    let value = match value {
        FieldValue::Text(text) => record::FieldValue::Text(text.clone()),
        FieldValue::Json(text) => record::FieldValue::Json(text.as_str().to_owned()),
        FieldValue::Bytes(bytes) => record::FieldValue::Bytes(bytes.clone()),
    };
    Field { name: name.to_owned(), value }
}

fn state(recall: &mut NewRecall, stated: &Stated) -> Result<()> {
    recall.episode.clone_from(&stated.episode);
    recall.source = stated.source.as_deref().map(word::<Source>).transpose()?;
    recall.step = stated.step;
    recall.time = stated.time;
    recall.version.clone_from(&stated.version);
    recall.utility = stated.utility;
    recall.return_score = stated.return_score;
    recall.ungrounded = stated.ungrounded.unwrap_or(false);
    recall.origin = stated.origin.as_deref().map_or(Ok(Origin::Original), word)?;
    recall.fields = stated.fields.iter().map(|(name, value)| field(name, value)).collect();
    Ok(())
}

fn taken(key: &str, difference: Difference) -> Fault {
    let Difference { path, stored, given } = difference;
    let member = path.get(1..).unwrap_or_default().join(".");
    let message = format!("{} exists with another {member}: stored {stored}, given {given}", quoted(key));
    let hint = "a line equal to what is stored is known and skipped; one that differs needs a key of its own";
    let mut fault = Fault::new(&[], "differs", message).hint(hint);
    fault.path = path;
    fault
}

/// Adds the faulty member to an engine error of a new item.
fn attribute_to_member(error: Error, kind: &str) -> Failure {
    let member = match &error {
        Error::DuplicateTrace { .. } => "step",
        Error::Invalid(message) if message.starts_with("key ") => "key",
        Error::Invalid(message) if message.starts_with("episode ") => "episode",
        Error::Invalid(message) if message.starts_with("field ") => "fields",
        Error::Invalid(message) if message.starts_with("return_score ") => "return_score",
        _ => return Failure::from(error).on(&[kind]),
    };
    Failure::from(error).on(&[kind, member])
}
