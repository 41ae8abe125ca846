//! Names, values, numbers, and references to stored things.

use super::{Expected, Parsed, Parser};
use crate::ast::{Excerpt, Pointer, Ref};
use crate::error::Error;
use crate::span::Spanned;
use crate::time::{self, TimeError};
use crate::token::TokenKind;
use crate::value::{Arg, Duration, Id, ItemRef, Name, Number, Passage, Time, Value, Vector};
use crate::words::{Edge, Noun};

/// The most parts of a name; only the path of a field has more than two.
const MAX_NAME_PARTS: usize = 16;

impl Parser<'_> {
    /// `word { "." ( word | string ) }`.
    pub(super) fn name(&mut self, shown: &'static str) -> Parsed<Spanned<Name>> {
        self.name_until(shown, |_| None)
    }

    /// The name of a column; `fields.*` is all fields.
    pub(super) fn column(&mut self) -> Parsed<Spanned<Name>> {
        self.name_until("the name of a column", |p| p.eat(&TokenKind::Star, "`*`").then(|| "*".to_owned()))
    }

    /// The path of a field: `( word | string ) { "." ( word | string ) }`, as parts behind `first`.
    pub(super) fn field_path(&mut self, first: &str) -> Parsed<Spanned<Name>> {
        self.spanned(|p| {
            let mut parts = vec![first.to_owned(), p.name_part()?];
            p.rest_of_name(&mut parts, &mut |_| None)?;
            Ok(Name::new(parts))
        })
    }

    /// A name whose last part `end` may read.
    fn name_until(
        &mut self,
        shown: &'static str,
        mut end: impl FnMut(&mut Self) -> Option<String>,
    ) -> Parsed<Spanned<Name>> {
        self.spanned(|p| {
            let Some(first) = p.word() else {
                p.tried.push(Expected::Class(shown));
                return p.unexpected();
            };
            p.bump();
            let mut parts = vec![first.to_owned()];
            p.rest_of_name(&mut parts, &mut end)?;
            Ok(Name::new(parts))
        })
    }

    fn rest_of_name(
        &mut self,
        parts: &mut Vec<String>,
        end: &mut dyn FnMut(&mut Self) -> Option<String>,
    ) -> Parsed<()> {
        while self.eat(&TokenKind::Dot, "`.`") {
            if parts.len() == MAX_NAME_PARTS {
                let span = self.span();
                let message = format!("a name has at most {MAX_NAME_PARTS} parts");
                return self.fail(Error::new("too-deep", span, message));
            }
            if let Some(last) = end(self) {
                parts.push(last);
                break;
            }
            parts.push(self.name_part()?);
        }
        Ok(())
    }

    fn name_part(&mut self) -> Parsed<String> {
        let part = match self.kind() {
            TokenKind::Word => self.slice(self.span()).to_owned(),
            TokenKind::Text(text) => text.clone(),
            _ => {
                self.tried.push(Expected::Class("a word or a quoted text after the dot"));
                return self.unexpected();
            }
        };
        self.bump();
        Ok(part)
    }

    /// The name of the parameter that is written here.
    fn eat_param(&mut self) -> Option<String> {
        self.looks += 1;
        if *self.kind() != TokenKind::Param {
            self.tried.push(Expected::Class("a parameter"));
            return None;
        }
        let span = self.bump();
        Some(self.slice(span)[1..].to_owned())
    }

    fn eat_text(&mut self) -> Option<String> {
        self.looks += 1;
        let TokenKind::Text(text) = &mut self.next.kind else {
            self.tried.push(Expected::Class("a quoted text"));
            return None;
        };
        let text = std::mem::take(text);
        self.bump();
        Some(text)
    }

    fn eat_number(&mut self, shown: &'static str) -> Option<Number> {
        self.looks += 1;
        let TokenKind::Number(number) = *self.kind() else {
            self.tried.push(Expected::Class(shown));
            return None;
        };
        self.bump();
        Some(number)
    }

    pub(super) fn eat_duration(&mut self) -> Option<Duration> {
        self.looks += 1;
        let TokenKind::Duration(duration) = *self.kind() else {
            self.tried.push(Expected::Class("a duration such as 7d"));
            return None;
        };
        self.bump();
        Some(duration)
    }

    /// `string | param`.
    pub(super) fn text(&mut self) -> Parsed<Spanned<Arg<String>>> {
        self.spanned(|p| {
            if let Some(text) = p.eat_text() {
                return Ok(Arg::Value(text));
            }
            if let Some(name) = p.eat_param() {
                return Ok(Arg::Param(name));
            }
            let hint = p.word().map(|_| "texts are quoted: 'like this'");
            p.unexpected_with(hint)
        })
    }

    /// `string | param`, where a parameter may bring a vector too.
    pub(super) fn passage(&mut self) -> Parsed<Spanned<Arg<Passage>>> {
        let text = self.text()?;
        Ok(text.map(|arg| match arg {
            Arg::Value(text) => Arg::Value(Passage { text, vector: None }),
            Arg::Param(name) => Arg::Param(name),
        }))
    }

    /// The id of an episode, a page, a version or a receipt: a text, or a whole number
    /// that is meant as one.
    pub(super) fn id(&mut self) -> Parsed<Spanned<Arg<Id>>> {
        if let TokenKind::Number(Number::Natural(_)) = self.kind() {
            let span = self.bump();
            return Ok(Spanned::new(Arg::Value(Id(self.slice(span).to_owned())), span));
        }
        Ok(self.text()?.map(|arg| match arg {
            Arg::Value(text) => Arg::Value(Id(text)),
            Arg::Param(name) => Arg::Param(name),
        }))
    }

    /// A whole number from 0, or a parameter.
    pub(super) fn count(&mut self) -> Parsed<Spanned<Arg<u64>>> {
        match self.opt_count() {
            Some(count) => Ok(count),
            None => {
                let is_number = matches!(self.kind(), TokenKind::Number(_));
                self.unexpected_with(is_number.then_some("it has to be whole and not below zero"))
            }
        }
    }

    pub(super) fn opt_count(&mut self) -> Option<Spanned<Arg<u64>>> {
        let span = self.span();
        self.looks += 1;
        let arg = match *self.kind() {
            TokenKind::Number(Number::Natural(n)) => {
                self.bump();
                Arg::Value(n)
            }
            _ => {
                self.tried.push(Expected::Class("a whole number"));
                Arg::Param(self.eat_param()?)
            }
        };
        Some(Spanned::new(arg, span))
    }

    /// Any number, or a parameter.
    pub(super) fn number(&mut self) -> Parsed<Spanned<Arg<f64>>> {
        self.spanned(|p| {
            if let Some(number) = p.eat_number("a number") {
                return Ok(Arg::Value(number.as_f64()));
            }
            match p.eat_param() {
                Some(name) => Ok(Arg::Param(name)),
                None => p.unexpected(),
            }
        })
    }

    /// Any value.
    pub(super) fn value(&mut self) -> Parsed<Spanned<Arg<Value>>> {
        self.spanned(|p| {
            if let Some(text) = p.eat_text() {
                return Ok(Arg::Value(Value::Text(text)));
            }
            if let Some(number) = p.eat_number("a number") {
                return Ok(Arg::Value(Value::Number(number)));
            }
            if let Some(duration) = p.eat_duration() {
                return Ok(Arg::Value(Value::Duration(duration)));
            }
            if let Some(name) = p.eat_param() {
                return Ok(Arg::Param(name));
            }
            for (word, value) in [("true", true), ("false", false)] {
                if p.eat_word(word) {
                    return Ok(Arg::Value(Value::Bool(value)));
                }
            }
            let name = p.name("a known word")?;
            Ok(Arg::Value(Value::Word(name.node)))
        })
    }

    /// A moment: an RFC 3339 text, microseconds since the epoch, or a parameter.
    pub(super) fn time(&mut self) -> Parsed<Spanned<Arg<Time>>> {
        let (micros, span) = match *self.kind() {
            TokenKind::Number(number) => {
                let micros = number.as_i64().ok_or(TimeError::OutOfRange);
                (micros.and_then(time::in_range), self.bump())
            }
            _ => match self.text()? {
                Spanned { node: Arg::Value(text), span } => (time::parse_rfc3339(&text), span),
                Spanned { node: Arg::Param(name), span } => {
                    return Ok(Spanned::new(Arg::Param(name), span));
                }
            },
        };
        match micros {
            Ok(micros) => Ok(Spanned::new(Arg::Value(Time { micros }), span)),
            Err(error) => self.fail(Error::new("bad-time", span, error.to_string())),
        }
    }

    /// `param`, which stands for a vector.
    pub(super) fn vector(&mut self) -> Parsed<Spanned<Arg<Vector>>> {
        self.spanned(|p| match p.eat_param() {
            Some(name) => Ok(Arg::Param(name)),
            None => p.unexpected_with(Some("a vector is given as a parameter: near $v")),
        })
    }

    /// `int | string | param`.
    pub(super) fn item(&mut self) -> Parsed<Spanned<Arg<ItemRef>>> {
        self.spanned(|p| {
            if let Some(arg) = p.opt_item() {
                return Ok(arg);
            }
            let hint = p.word().map(|_| "an item is named by its key in quotes, or by its number");
            p.unexpected_with(hint)
        })
    }

    fn opt_item(&mut self) -> Option<Arg<ItemRef>> {
        if let Some(key) = self.eat_text() {
            return Some(Arg::Value(ItemRef::Key(key)));
        }
        Some(match self.opt_count()?.node {
            Arg::Value(id) => Arg::Value(ItemRef::Id(id)),
            Arg::Param(name) => Arg::Param(name),
        })
    }

    /// `item | "page" value | "episode" value`.
    pub(super) fn reference(&mut self) -> Parsed<Spanned<Ref>> {
        match self.opt_reference()? {
            Some(reference) => Ok(reference),
            None => {
                let hint = "an item is named by its key in quotes, or by its number";
                let is_word = self.word().is_some();
                self.unexpected_with(is_word.then_some(hint))
            }
        }
    }

    pub(super) fn opt_reference(&mut self) -> Parsed<Option<Spanned<Ref>>> {
        let start = self.span();
        let reference = if self.eat_word("page") {
            Ref::Page(self.id()?.node)
        } else if self.eat_word("episode") {
            Ref::Episode(self.id()?.node)
        } else if let Some(item) = self.opt_item() {
            Ref::Item(item)
        } else {
            return Ok(None);
        };
        Ok(Some(Spanned::new(reference, start.to(self.last_span()))))
    }

    /// `ref [ "field" text ] [ "bytes" n "to" n | "quoting" text ]`.
    pub(super) fn pointer(&mut self) -> Parsed<Spanned<Pointer>> {
        self.spanned(|p| {
            let target = p.reference()?;
            let field = if p.eat_word("field") { Some(p.text()?) } else { None };
            let excerpt = if p.eat_word("bytes") {
                let start = p.count()?;
                p.expect_word("to")?;
                Some(Excerpt::Bytes { start, end: p.count()? })
            } else if p.eat_word("quoting") {
                Some(Excerpt::Quoting(p.text()?))
            } else {
                None
            };
            Ok(Pointer { target, field, excerpt })
        })
    }

    pub(super) fn noun(&mut self) -> Parsed<Spanned<Noun>> {
        self.expect_one_of(Noun::ALL, Noun::WORDS)
    }

    pub(super) fn edge(&mut self) -> Parsed<Spanned<Edge>> {
        self.expect_one_of(Edge::ALL, Edge::WORDS)
    }
}
