//! Conditions.
//!
//! `or` binds weaker than `and`, `and` weaker than `not`. Chains of the same word make
//! one node, so only brackets and `not` nest.

use super::{Expected, Parsed, Parser};
use crate::ast::{Bound, Flaw, Predicate, Test};
use crate::span::Spanned;
use crate::token::TokenKind;
use crate::value::{Arg, Name, ValueList};
use crate::words::{Edge, FlawKind};

impl Parser<'_> {
    /// `conj { "or" conj }`.
    pub(super) fn predicate(&mut self) -> Parsed<Predicate> {
        let first = self.conjunction()?;
        if !self.eat_word("or") {
            return Ok(first);
        }
        let mut any = members_of_or(first);
        loop {
            any.extend(members_of_or(self.conjunction()?));
            if !self.eat_word("or") {
                return Ok(Predicate::Or(any));
            }
        }
    }

    /// `neg { "and" neg }`.
    fn conjunction(&mut self) -> Parsed<Predicate> {
        let first = self.negation()?;
        if !self.eat_word("and") {
            return Ok(first);
        }
        let mut all = members_of_and(first);
        loop {
            all.extend(members_of_and(self.negation()?));
            if !self.eat_word("and") {
                return Ok(Predicate::And(all));
            }
        }
    }

    /// `"not" neg | "(" predicate ")" | test`.
    fn negation(&mut self) -> Parsed<Predicate> {
        if self.eat_word("not") {
            return Ok(Predicate::Not(Box::new(self.nested(Self::negation)?)));
        }
        if self.eat(&TokenKind::Open, "`(`") {
            let inner = self.nested(Self::predicate)?;
            self.expect(&TokenKind::Close, "`)`")?;
            return Ok(inner);
        }
        Ok(Predicate::Test(Box::new(self.spanned(Self::test)?)))
    }

    fn test(&mut self) -> Parsed<Test> {
        // A dotted name is never a keyword: `fields.failed` is an attribute.
        if *self.second_kind() != TokenKind::Dot
            && let Some(test) = self.keyword_test()?
        {
            return Ok(test);
        }
        let name = self.name("an attribute")?;
        if let TokenKind::Op(op) = *self.kind() {
            self.bump();
            return Ok(Test::Compare { name, op, value: self.value()? });
        }
        self.tried.push(Expected::Class("a comparison"));
        self.worded_test(name)
    }

    /// A test that begins with a keyword.
    fn keyword_test(&mut self) -> Parsed<Option<Test>> {
        if self.eat_word("has") {
            return Ok(Some(Test::Has(self.name("an attribute")?)));
        }
        if self.eat_word("redacted") {
            return Ok(Some(Test::Redacted));
        }
        if self.eat_word("claims") {
            let name = self.text()?;
            let value = match *self.kind() {
                TokenKind::Op(op) => {
                    self.bump();
                    Some((op, self.value()?))
                }
                _ => {
                    self.tried.push(Expected::Class("a comparison"));
                    None
                }
            };
            return Ok(Some(Test::Claims { name, value }));
        }
        if let Some(flaw) = self.opt_flaw()? {
            return Ok(Some(Test::Flaw(flaw)));
        }
        let span = self.span();
        if let Some(edge) = self.eat_one_of(Edge::ALL, Edge::WORDS) {
            let edge = Spanned::new(edge, span);
            let target = if self.eat_word("any") { None } else { Some(self.pointer()?) };
            return Ok(Some(Test::Edge { edge, target }));
        }
        Ok(None)
    }

    /// The test behind an attribute that no operator follows.
    fn worded_test(&mut self, name: Spanned<Name>) -> Parsed<Test> {
        let not = self.eat_word("not");
        if self.eat_word("in") {
            let list = self.values()?;
            return Ok(Test::In { name, not, list });
        }
        if self.eat_word("between") {
            let low = self.value()?;
            self.expect_word("and")?;
            return Ok(Test::Between { name, not, low, high: self.value()? });
        }
        if self.eat_word("contains") {
            return Ok(Test::Contains { name, not, text: self.text()? });
        }
        if self.eat_word("matches") {
            return Ok(Test::Matches { name, not, glob: self.text()? });
        }
        let hint = self
            .word()
            .filter(|word| word.eq_ignore_ascii_case("is"))
            .map(|_| "compare with `=`; presence is tested with `has` and `not has`");
        self.unexpected_with(hint)
    }

    /// `"(" value { "," value } ")" | param`.
    fn values(&mut self) -> Parsed<Spanned<Arg<ValueList>>> {
        self.spanned(|p| {
            if p.eat(&TokenKind::Open, "`(`") {
                let values = p.list(Self::value)?;
                p.expect(&TokenKind::Close, "`)`")?;
                return Ok(Arg::Value(values));
            }
            if *p.kind() == TokenKind::Param {
                let span = p.bump();
                return Ok(Arg::Param(p.slice(span)[1..].to_owned()));
            }
            p.tried.push(Expected::Class("a parameter"));
            p.unexpected()
        })
    }

    /// A flaw, where one has to be.
    pub(super) fn flaw(&mut self) -> Parsed<Spanned<Flaw>> {
        self.spanned(|p| match p.opt_flaw()? {
            Some(flaw) => Ok(flaw),
            None => p.unexpected(),
        })
    }

    fn opt_flaw(&mut self) -> Parsed<Option<Flaw>> {
        let Some(kind) = self.eat_one_of(FlawKind::ALL, FlawKind::WORDS) else {
            return Ok(None);
        };
        let mut window = Vec::new();
        if kind == FlawKind::Stale && self.eat(&TokenKind::Open, "`(`") {
            window = self.list(|p| p.spanned(Self::bound))?;
            self.expect(&TokenKind::Close, "`)`")?;
        }
        Ok(Some(Flaw { kind, window }))
    }

    /// `n "steps" | duration | "version"`.
    fn bound(&mut self) -> Parsed<Bound> {
        if self.eat_word("version") {
            return Ok(Bound::Version);
        }
        if let Some(duration) = self.eat_duration() {
            return Ok(Bound::Age(duration));
        }
        let count = self.count()?;
        self.expect_word("steps")?;
        Ok(Bound::Steps(count))
    }
}

/// An `Or` in brackets becomes part of the one around it.
fn members_of_or(predicate: Predicate) -> Vec<Predicate> {
    match predicate {
        Predicate::Or(members) => members,
        other => vec![other],
    }
}

fn members_of_and(predicate: Predicate) -> Vec<Predicate> {
    match predicate {
        Predicate::And(members) => members,
        other => vec![other],
    }
}
