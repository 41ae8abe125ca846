//! Lines in their one canonical form.
//!
//! - Members in the order in which [`line`](super::line) declares them; absent ones, empty lists, the field `text` and
//!   the unit `bytes` of a pointer left out; an edge to the whole field `text` of an item is the bare key.
//! - No white space, but inside a field value that is JSON, which is written as it was given.
//! - Strings as UTF-8; only `"`, `\` and the control characters below U+0020 are escaped (`\b \t \n \f \r`, else
//!   `\u00xx`).
//! - Times in UTC with `Z` and no trailing zeros; integers above 2^53 as strings; a float as the shortest decimal that
//!   reads back as the same float, with an exponent where that is shorter (`1e-7`, `0.5`, `3`).
//! - LF after each line.
//!
//! So `parse(encode(line)) == line`, and two lines are equal when their bytes are.

use super::json::JsonText;
use super::line::{
    Claim, Credit, Event, FieldValue, Line, Link, Pointer, Reader, Recall, Receipt, Span, Stated, Theme, Trace, Unit,
    VectorRef,
};
use super::parse::LARGEST_NUMBER;
use super::reader::MAX_LINE_LEN;
use super::time::{self, TimeError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::fmt::{Display, LowerExp};
use std::io::{self, Write};

/// The reason why a line could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A time that has no text.
    #[error("`{member}`: {us} microseconds since the epoch: {source}")]
    Time {
        /// The member.
        member: &'static str,
        /// The time.
        us: i64,
        /// The reason.
        source: TimeError,
    },
    /// A number that JSON cannot represent.
    #[error("`{member}`: {value} has no form in JSON")]
    NotFinite {
        /// The member.
        member: &'static str,
        /// The number.
        value: f64,
    },
    /// A line that readers would refuse.
    #[error("a `{name}` line of {len} bytes is longer than {MAX_LINE_LEN}, the limit of a line")]
    TooLong {
        /// The name of the line's kind.
        name: &'static str,
        /// Its length in bytes.
        len: usize,
    },
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes lines to a stream.
#[derive(Debug)]
pub struct LineWriter<W> {
    output: W,
    buffer: Vec<u8>,
    count: u64,
}

impl<W: Write> LineWriter<W> {
    /// A writer that appends to `output`; give it a buffered one.
    pub fn new(output: W) -> Self {
        LineWriter { output, buffer: Vec::new(), count: 0 }
    }

    /// Writes one line. Nothing of a line that cannot be written reaches the stream.
    pub fn write(&mut self, line: &Line) -> Result<(), WriteError> {
        self.buffer.clear();
        encode(line, &mut self.buffer)?;
        self.buffer.push(b'\n');
        self.output.write_all(&self.buffer)?;
        self.count += 1;
        Ok(())
    }

    /// The number of lines written.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Flushes, and gives the stream back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Appends the canonical form of a line, without its line ending.
pub fn encode(line: &Line, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let start = out.len();
    object(out, |outer| outer.object(line.name(), |o| members(line, o)))?;
    let len = out.len() - start;
    if len > MAX_LINE_LEN { Err(WriteError::TooLong { name: line.name(), len }) } else { Ok(()) }
}

type Written = Result<(), WriteError>;

fn members(line: &Line, o: &mut Object<'_>) -> Written {
    match line {
        Line::Header(header) => o.integer("interchange", Some(header.interchange)),
        Line::Space(space) => {
            o.text("model", Some(&space.model));
            o.integer("dim", Some(u64::from(space.dim)));
            o.text("metric", space.metric.as_ref());
            o.text("encoding", space.encoding.as_ref());
        }
        Line::Setting(setting) => {
            o.text("name", Some(&setting.name));
            o.text("value", Some(&setting.value));
        }
        Line::Episode(episode) => {
            o.text("id", Some(&episode.id));
            o.text("task", episode.task.as_ref());
            o.text("version", episode.version.as_ref());
            o.boolean("open", episode.open);
        }
        Line::Trace(line) => return trace(line, o),
        Line::Page(page) => {
            o.text("key", page.key.as_ref());
            o.text("episode", Some(&page.episode));
            o.text("first", Some(&page.first));
            o.text("last", Some(&page.last));
            o.text("state", page.state.as_ref());
            o.text("hash", page.hash.as_ref());
        }
        Line::Recall(line) => return recall(line, o),
        Line::Theme(line) => return theme(line, o),
        Line::Link(line) | Line::Unlink(line) => return link(line, o),
        Line::Claim(line) => return claim(line, o),
        Line::Mark(mark) => {
            o.text("key", Some(&mark.key));
            o.text("status", mark.status.as_ref());
            o.single("utility", mark.utility)?;
            o.integer("reports", mark.reports.map(u64::from));
            o.single("credit", mark.credit)?;
            o.integer("rollouts", mark.rollouts.map(u64::from));
            o.text("because", mark.because.as_ref());
        }
        Line::Deactivate(deactivate) => {
            o.text("key", Some(&deactivate.key));
            o.text("by", deactivate.by.as_ref());
            o.text("because", deactivate.because.as_ref());
        }
        Line::Redact(redact) => {
            o.text("key", Some(&redact.key));
            o.text("field", redact.field.as_ref());
            o.text("hash", redact.hash.as_ref());
            o.text("because", redact.because.as_ref());
        }
        Line::Credit(line) => return credit(line, o),
        Line::Receipt(line) => return receipt(line, o),
        Line::Event(line) => return event(line, o),
        Line::Commit(commit) => {
            o.integer("number", commit.number);
            o.time("time", commit.time)?;
        }
    }
    Ok(())
}

fn trace(trace: &Trace, o: &mut Object<'_>) -> Written {
    o.text("key", trace.key.as_ref());
    o.text("episode", Some(&trace.episode));
    o.integer("step", trace.step);
    o.time("time", trace.time)?;
    o.text("kind", trace.kind.as_ref());
    o.text("source", trace.source.as_ref());
    o.text("tool", trace.tool.as_ref());
    o.text("log_id", trace.log_id.as_ref());
    o.text("status", trace.status.as_ref());
    o.text("version", trace.version.as_ref());
    o.text("speaker", trace.speaker.as_ref());
    o.fields("fields", &trace.fields)?;
    o.vector(trace.vector.as_ref())
}

fn recall(recall: &Recall, o: &mut Object<'_>) -> Written {
    o.text("key", recall.key.as_ref());
    o.text("kind", recall.kind.as_ref());
    o.text("text", recall.text.as_ref());
    o.pointers("from", &recall.from)?;
    o.text("status", recall.status.as_ref());
    o.vector(recall.vector.as_ref())?;
    stated(&recall.stated, o)
}

fn theme(theme: &Theme, o: &mut Object<'_>) -> Written {
    o.text("key", theme.key.as_ref());
    o.text("kind", theme.kind.as_ref());
    o.text("text", theme.text.as_ref());
    o.texts("children", &theme.children);
    o.vector(theme.vector.as_ref())?;
    stated(&theme.stated, o)
}

fn stated(stated: &Stated, o: &mut Object<'_>) -> Written {
    o.text("episode", stated.episode.as_ref());
    o.text("source", stated.source.as_ref());
    o.integer("step", stated.step);
    o.time("time", stated.time)?;
    o.text("version", stated.version.as_ref());
    o.single("utility", stated.utility)?;
    o.integer("return_score", stated.return_score.map(u64::from));
    o.boolean("active", stated.active);
    o.boolean("ungrounded", stated.ungrounded);
    o.text("origin", stated.origin.as_ref());
    o.fields("fields", &stated.fields)
}

fn link(link: &Link, o: &mut Object<'_>) -> Written {
    o.text("from", Some(&link.from));
    o.text("edge", Some(&link.edge));
    match &link.to {
        Pointer::Field { key, field, span: None, hash: None } if field == Pointer::FIELD => o.text("to", Some(key)),
        to => o.object("to", |o| pointer(to, o))?,
    }
    Ok(())
}

fn pointer(pointer: &Pointer, o: &mut Object<'_>) -> Written {
    match pointer {
        Pointer::Field { key, field, span, hash } => {
            o.text("key", Some(key));
            o.text("field", Some(field).filter(|field| *field != Pointer::FIELD));
            if let Some(Span { start, end, unit }) = span {
                o.integer("start", Some(*start));
                o.integer("end", Some(*end));
                o.text("unit", (*unit == Unit::Chars).then_some("chars"));
            }
            o.text("hash", hash.as_ref());
        }
        Pointer::Page { page, hash } => {
            o.text("page", Some(page));
            o.text("hash", hash.as_ref());
        }
    }
    Ok(())
}

fn claim(claim: &Claim, o: &mut Object<'_>) -> Written {
    o.text("key", Some(&claim.key));
    o.text("name", Some(&claim.name));
    o.text("value", Some(&claim.value));
    o.text("scope", claim.scope.as_ref());
    o.pointers("from", &claim.from)?;
    o.text("won", claim.won.as_ref());
    Ok(())
}

fn credit(credit: &Credit, o: &mut Object<'_>) -> Written {
    o.text("group", credit.group.as_ref());
    o.integer("rollout", credit.rollout);
    o.integer("step", credit.step);
    o.double("reward", credit.reward)?;
    o.double("s_prev", credit.s_prev)?;
    o.double("s_now", credit.s_now)?;
    o.double("log_h", credit.log_h)?;
    o.text("item", Some(&credit.item));
    o.double("delta", credit.delta)?;
    o.double("delta_hat", credit.delta_hat)?;
    o.double("log_rho", credit.log_rho)?;
    o.double("beta", credit.beta)?;
    o.double("gate", credit.gate)?;
    o.double("advantage", credit.advantage)?;
    o.double("smoothed", credit.smoothed)?;
    o.double("trajectory_advantage", credit.trajectory_advantage)?;
    o.double("token_advantage", credit.token_advantage)
}

fn receipt(receipt: &Receipt, o: &mut Object<'_>) -> Written {
    o.text("key", receipt.key.as_ref());
    o.text("statement", Some(&receipt.statement));
    o.fields("params", &receipt.params)?;
    if let Some(Reader { episode, step, time, version }) = &receipt.at {
        o.object("at", |o| {
            o.text("episode", episode.as_ref());
            o.integer("step", *step);
            o.time("time", *time)?;
            o.text("version", version.as_ref());
            Ok(())
        })?;
    }
    o.integer("commit", receipt.commit);
    o.texts("items", &receipt.items);
    o.pointers("spans", &receipt.spans)
}

fn event(event: &Event, o: &mut Object<'_>) -> Written {
    o.text("op", Some(&event.op));
    o.time("time", event.time)?;
    o.text("episode", event.episode.as_ref());
    o.integer("step", event.step);
    o.integer("commit", event.commit);
    o.texts("items", &event.items);
    o.texts("hashes", &event.hashes);
    o.integer("tokens", event.tokens);
    o.text("text", event.text.as_ref());
    o.text("because", event.because.as_ref());
    Ok(())
}

/// An object being written; absent values write nothing.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

fn object(out: &mut Vec<u8>, members: impl FnOnce(&mut Object<'_>) -> Written) -> Written {
    out.push(b'{');
    members(&mut Object { out, empty: true })?;
    out.push(b'}');
    Ok(())
}

impl Object<'_> {
    fn name(&mut self, name: &str) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(b',');
        }
        string(name, self.out);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.name(name);
            string(text.as_ref(), self.out);
        }
    }

    fn integer(&mut self, name: &str, integer: Option<u64>) {
        if let Some(integer) = integer {
            self.name(name);
            let quote = if integer > LARGEST_NUMBER { "\"" } else { "" };
            self.out.extend_from_slice(format!("{quote}{integer}{quote}").as_bytes());
        }
    }

    fn boolean(&mut self, name: &str, boolean: Option<bool>) {
        if let Some(boolean) = boolean {
            self.name(name);
            self.out.extend_from_slice(if boolean { b"true" } else { b"false" });
        }
    }

    fn time(&mut self, name: &'static str, time: Option<i64>) -> Written {
        if let Some(us) = time {
            let text = time::format(us).map_err(|source| WriteError::Time { member: name, us, source })?;
            self.text(name, Some(text));
        }
        Ok(())
    }

    fn single(&mut self, name: &'static str, number: Option<f32>) -> Written {
        if let Some(number) = number {
            finite(name, f64::from(number))?;
            self.name(name);
            shortest(number, self.out);
        }
        Ok(())
    }

    fn double(&mut self, name: &'static str, number: Option<f64>) -> Written {
        if let Some(number) = number {
            finite(name, number)?;
            self.name(name);
            shortest(number, self.out);
        }
        Ok(())
    }

    fn object(&mut self, name: &str, members: impl FnOnce(&mut Object<'_>) -> Written) -> Written {
        self.name(name);
        object(self.out, members)
    }

    /// An array, or nothing when the list is empty.
    fn array<T>(&mut self, name: &str, list: &[T], mut element: impl FnMut(&T, &mut Vec<u8>) -> Written) -> Written {
        if list.is_empty() {
            return Ok(());
        }
        self.name(name);
        for (position, value) in list.iter().enumerate() {
            self.out.push(if position == 0 { b'[' } else { b',' });
            element(value, self.out)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn texts(&mut self, name: &str, texts: &[String]) {
        // Strings always have a form.
        let _: Written = self.array(name, texts, |text, out| {
            string(text, out);
            Ok(())
        });
    }

    fn pointers(&mut self, name: &str, pointers: &[Pointer]) -> Written {
        self.array(name, pointers, |value, out| object(out, |o| pointer(value, o)))
    }

    fn vector(&mut self, vector: Option<&VectorRef>) -> Written {
        match vector {
            None => Ok(()),
            Some(VectorRef::Row(row)) => {
                self.integer("row", Some(*row));
                Ok(())
            }
            Some(VectorRef::Inline(numbers)) => self.array("vector", numbers, |number, out| {
                finite("vector", f64::from(*number))?;
                shortest(*number, out);
                Ok(())
            }),
        }
    }

    fn fields(&mut self, name: &str, fields: &[(String, FieldValue)]) -> Written {
        if fields.is_empty() {
            return Ok(());
        }
        self.object(name, |o| {
            for (name, value) in fields {
                match value {
                    FieldValue::Text(text) => o.text(name, Some(text)),
                    FieldValue::Json(json) => {
                        o.name(name);
                        o.out.extend_from_slice(JsonText::as_str(json).as_bytes());
                    }
                    FieldValue::Bytes(bytes) => match std::str::from_utf8(bytes) {
                        Ok(text) => o.text(name, Some(text)),
                        Err(_) => o.object(name, |o| {
                            o.text("base64", Some(BASE64.encode(bytes)));
                            Ok(())
                        })?,
                    },
                }
            }
            Ok(())
        })
    }
}

fn finite(member: &'static str, value: f64) -> Written {
    if value.is_finite() { Ok(()) } else { Err(WriteError::NotFinite { member, value }) }
}

/// The shorter of the plain and the exponent form, both of which round trip; the plain one when they are as long.
fn shortest(number: impl Display + LowerExp, out: &mut Vec<u8>) {
    let (plain, exponent) = (number.to_string(), format!("{number:e}"));
    let text = if exponent.len() < plain.len() { exponent } else { plain };
    out.extend_from_slice(text.as_bytes());
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\u{8}') => out.extend_from_slice(b"\\b"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\u{c}') => out.extend_from_slice(b"\\f"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some(control) => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
            }
            None => {}
        }
        rest = characters.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests;
