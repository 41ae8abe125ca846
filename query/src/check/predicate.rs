//! Checks of conditions: the attribute is there, and its value is one of its values.

use std::fmt;

use super::Checker;
use crate::ast::{Predicate, Test};
use crate::attributes::{Attribute, Mismatch, Subject, Type};
use crate::bind::literals;
use crate::error::Error;
use crate::span::{Span, Spanned};
use crate::value::{Name, Value};
use crate::words::Op;

impl Checker<'_> {
    pub(super) fn predicate(&mut self, predicate: &Predicate, subject: Subject) {
        match predicate {
            _ if self.errors.is_full() => {}
            Predicate::Or(inner) | Predicate::And(inner) => {
                inner.iter().for_each(|inner| self.predicate(inner, subject));
            }
            Predicate::Not(inner) => self.predicate(inner, subject),
            Predicate::Test(test) => self.test(test, subject),
        }
    }

    fn test(&mut self, test: &Spanned<Test>, subject: Subject) {
        match &test.node {
            Test::Compare { name, op, value } => {
                if let Some(found) = self.attribute(name, subject) {
                    self.ordered(name, *op, found.ty, test.span);
                    self.value(name, found.ty, value);
                }
            }
            Test::In { name, list, .. } => {
                if let Some(found) = self.attribute(name, subject) {
                    for (value, span) in literals(list, self.params) {
                        self.literal(&format_args!("`{name}`"), found.ty, &value, span);
                    }
                }
            }
            Test::Between { name, low, high, .. } => {
                if let Some(found) = self.attribute(name, subject) {
                    self.ordered(name, Op::Ge, found.ty, test.span);
                    self.value(name, found.ty, low);
                    self.value(name, found.ty, high);
                }
            }
            Test::Contains { name, .. } | Test::Matches { name, .. } => {
                if let Some(found) = self.attribute(name, subject) {
                    self.textual(name, found);
                }
            }
            Test::Has(name) => {
                self.attribute(name, subject);
            }
            Test::Flaw(flaw) => self.item_test(flaw.kind.as_str(), test.span, subject),
            Test::Redacted => self.item_test("redacted", test.span, subject),
            Test::Edge { edge, .. } => self.item_test(edge.as_str(), test.span, subject),
            Test::Claims { value, .. } => {
                self.item_test("claims", test.span, subject);
                if let Some((_, value)) = value {
                    self.value_of(&"the claim", Type::Any, value);
                }
            }
        }
    }

    fn ordered(&mut self, name: &Name, op: Op, ty: Type, span: Span) {
        if matches!(op, Op::Eq | Op::Ne) || ty.is_ordered() {
            return;
        }
        let error = Error::new("wrong-type", span, format!("the values of `{name}` have no order"))
            .hint("compare with `=`, `!=` or `in`");
        self.errors.push(error);
    }

    fn textual(&mut self, name: &Spanned<Name>, found: &Attribute) {
        if !found.ty.is_textual() {
            let error = Error::new("wrong-type", name.span, format!("`{name}` is no text"))
                .hint(format!("compare it with {}", found.ty.expected()));
            self.errors.push(error);
        }
    }

    /// Refuses a test only items can stand, on other things.
    fn item_test(&mut self, test: &str, span: Span, subject: Subject) {
        if subject != Subject::Item {
            let message = format!("`{test}` is a test of items, not of {}", subject.as_str());
            self.errors.push(Error::new("misplaced", span, message));
        }
    }
}

/// Says what is wrong with a value of `what`, whose values are of type `ty`.
pub(super) fn mismatch(what: &dyn fmt::Display, ty: Type, value: &Value, mismatch: Mismatch, span: Span) -> Error {
    match mismatch {
        Mismatch::Type => {
            let error = Error::new("wrong-type", span, format!("{what} does not take {value}")).expected(ty.expected());
            match (ty, value) {
                (Type::Text | Type::Item, Value::Number(_) | Value::Bool(_)) => {
                    error.hint(format!("a text is quoted: '{value}'"))
                }
                (Type::Number | Type::Count | Type::Bool, Value::Text(_)) => error.hint("leave the quotes out"),
                _ => error,
            }
        }
        Mismatch::Unquoted => {
            let error =
                Error::new("unknown-value", span, format!("{what} knows no word `{value}`")).expected(ty.expected());
            match ty {
                Type::Text | Type::Item | Type::Any => error.hint(format!("a text is quoted: '{value}'")),
                _ => error,
            }
        }
        Mismatch::Unknown { nearest } => Error::new("unknown-value", span, format!("{what} is never {value}"))
            .expected(ty.expected())
            .nearest(nearest),
        Mismatch::Time(error) => Error::new("bad-time", span, error.to_string()),
    }
}
