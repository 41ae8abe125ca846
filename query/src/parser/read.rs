//! The statements that read, and the words that may stand before a statement.

use super::{Parsed, Parser, SHELL_HINT};
use crate::ast::{
    Audit, Bucket, Conflicts, Count, Explain, Find, History, Listing, Measure, Query, Recall, Replay, Replayed, Scope,
    Statement, Thing, Verify, Walk, Why, Without,
};
use crate::error::Error;
use crate::span::Spanned;
use crate::token::TokenKind;
use crate::words::{MeasureKind, Noun, ShowTarget};

impl Parser<'_> {
    /// `[ "explain" [ "analyze" ] ] ( read | write ) | "why" …`.
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        if self.eat_word("explain") {
            let analyze = self.eat_word("analyze");
            let statement = Box::new(self.spanned(Self::plain_statement)?);
            return Ok(Statement::Explain(Explain { analyze, statement }));
        }
        if self.eat_word("why") {
            let not = self.eat_word("not");
            let item = self.item()?;
            self.expect_word("in")?;
            self.expect_word("recall")?;
            let recall = self.recall()?;
            return Ok(Statement::Why(Box::new(Why { not, item, recall })));
        }
        self.plain_statement()
    }

    fn plain_statement(&mut self) -> Parsed<Statement> {
        if self.eat_word("recall") {
            Ok(Statement::Recall(Box::new(self.recall()?)))
        } else if self.eat_word("find") {
            let thing = self.thing()?;
            Ok(Statement::Find(Find { thing, listing: self.listing() }))
        } else if self.eat_word("count") {
            Ok(Statement::Count(self.counting()?))
        } else if self.eat_word("sources") {
            Ok(Statement::Walk(self.walk(true)?))
        } else if self.eat_word("dependents") {
            Ok(Statement::Walk(self.walk(false)?))
        } else if self.eat_word("conflicts") {
            let on = if self.eat_word("on") { Some(self.text()?) } else { None };
            Ok(Statement::Conflicts(Conflicts { on, listing: self.listing() }))
        } else if self.eat_word("history") {
            self.expect_word("of")?;
            let of = self.reference()?;
            Ok(Statement::History(History { of, listing: self.listing() }))
        } else if self.eat_word("verify") {
            Ok(Statement::Verify(self.verify()?))
        } else if self.eat_word("audit") {
            Ok(Statement::Audit(Audit { scope: self.own_scope()? }))
        } else if self.eat_word("show") {
            if self.eat_word("page") {
                return Ok(Statement::ShowPage(self.id()?));
            }
            let target = self.expect_one_of(ShowTarget::ALL, ShowTarget::WORDS)?;
            let start = self.span();
            if target.node == ShowTarget::Graph && self.eat_word("as") {
                return Ok(Statement::ShowGraph(self.rest(start, Self::as_of)?));
            }
            Ok(Statement::Show(target))
        } else if self.eat_word("replay") {
            Ok(Statement::Replay(self.replay()?))
        } else {
            self.write_statement()
        }
    }

    /// `( id | "last" n ) [ "without" ( "each" | ref { "," ref } ) ]`.
    fn replay(&mut self) -> Parsed<Replay> {
        let of = if self.eat_word("last") { Replayed::Last(self.count()?) } else { Replayed::Receipt(self.id()?) };
        let without = match self.eat_word("without") {
            false => None,
            true if self.eat_word("each") => Some(Without::Each),
            true => Some(Without::Refs(self.list(Self::reference)?)),
        };
        Ok(Replay { of, without })
    }

    fn recall(&mut self) -> Parsed<Recall> {
        let query = self.query()?;
        Ok(Recall { query, clauses: self.clauses() })
    }

    /// `text [ "near" param ] | "near" param | "like" item`.
    fn query(&mut self) -> Parsed<Query> {
        let mut query = Query::default();
        if self.eat_word("like") {
            query.like = Some(self.item()?);
            return Ok(query);
        }
        if self.eat_word("near") {
            query.near = Some(self.vector()?);
            return Ok(query);
        }
        if matches!(self.kind(), TokenKind::Text(text) if text.trim().is_empty()) {
            let span = self.span();
            let error = Error::new("empty-query", span, "the query is empty").hint(SHELL_HINT);
            return self.fail(error);
        }
        if self.at_statement_end() || self.at_clause_start() {
            let error = Error::new("empty-query", self.unexpected_span(), "this recall asks for nothing")
                .expected("a quoted text, a parameter, `near` or `like`")
                .hint(SHELL_HINT);
            return self.fail(error);
        }
        query.text = Some(self.passage()?);
        if self.eat_word("near") {
            query.near = Some(self.vector()?);
        }
        Ok(query)
    }

    fn thing(&mut self) -> Parsed<Spanned<Thing>> {
        const THINGS: [(&str, Thing); 4] = [
            ("claims", Thing::Claims),
            ("edges", Thing::Edges),
            ("events", Thing::Events),
            ("receipts", Thing::Receipts),
        ];
        let span = self.span();
        if let Some(noun) = self.eat_one_of(Noun::ALL, Noun::WORDS) {
            return Ok(Spanned::new(Thing::Noun(noun), span));
        }
        for (word, thing) in THINGS {
            if self.eat_word(word) {
                return Ok(Spanned::new(thing, span));
            }
        }
        self.unexpected()
    }

    /// `thing { "," measure } { listing | group }`.
    fn counting(&mut self) -> Parsed<Count> {
        let thing = self.thing()?;
        let mut measures = Vec::new();
        while self.eat(&TokenKind::Comma, "`,`") {
            measures.push(self.spanned(Self::measure)?);
        }
        let mut group = None;
        let mut listing = Listing::default();
        self.each_clause(|p| {
            let start = p.span();
            if p.eat_word("by") {
                let buckets = p.rest(start, |p| p.list(|p| p.spanned(Self::bucket)))?;
                p.place(&mut group, buckets, "by");
                return Ok(true);
            }
            p.listing_clause(&mut listing)
        });
        Ok(Count { thing, measures, group, listing })
    }

    fn measure(&mut self) -> Parsed<Measure> {
        let kind = self.expect_one_of(MeasureKind::ALL, MeasureKind::WORDS)?;
        let name = self.name("an attribute")?;
        Ok(Measure { kind: kind.node, name })
    }

    fn bucket(&mut self) -> Parsed<Bucket> {
        let name = self.name("an attribute")?;
        let every = if self.eat_word("every") { Some(self.spanned(Self::interval)?) } else { None };
        Ok(Bucket { name, every })
    }

    fn walk(&mut self, towards_sources: bool) -> Parsed<Walk> {
        self.expect_word("of")?;
        let roots = self.list(Self::reference)?;
        let edges = if self.eat_word("by") { self.list(Self::edge)? } else { Vec::new() };
        let depth = if self.eat_word("depth") { Some(self.count()?) } else { None };
        Ok(Walk { towards_sources, roots, edges, depth, listing: self.listing() })
    }

    fn verify(&mut self) -> Parsed<Verify> {
        if self.at_statement_end() || self.eat_word("all") {
            return Ok(Verify::All);
        }
        for (word, what) in [("log", Verify::Log), ("catalog", Verify::Catalog), ("segments", Verify::Segments)] {
            if self.eat_word(word) {
                return Ok(what);
            }
        }
        if self.eat_word("citations") {
            self.expect_word("in")?;
            let text = self.text()?;
            return Ok(Verify::Citations { text, scope: self.own_scope()? });
        }
        Ok(Verify::Ref(self.reference()?))
    }

    /// `[ scope ]` of a statement that has no other clause.
    fn own_scope(&mut self) -> Parsed<Option<Spanned<Scope>>> {
        let start = self.span();
        if self.eat_word("in") { self.rest(start, Self::scope).map(Some) } else { Ok(None) }
    }
}
