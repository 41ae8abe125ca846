//! The clauses of recalls and listings.
//!
//! They stand in any order, each at most once. After an error in one, parsing goes on
//! at the next word that begins a clause.

use super::{Failed, Parsed, Parser};
use crate::ast::{
    Abstain, AsOf, Budget, Clauses, Escalate, Expand, Gather, Hops, Interval, Lift, Limit, Listing, OrderKey, Reader,
    Relax, Returns, Scope, Score, ScoreBase, Selection, Stage, Term, WithReceipt,
};
use crate::error::Error;
use crate::span::{Span, Spanned};
use crate::token::TokenKind;
use crate::words::{Channel, Direction, EscalateMode, Lines, Part};

/// The words that begin a clause, with the words of which one has to follow.
const CLAUSE_STARTS: &[(&str, &[&str])] = &[
    ("in", &["episode", "page", "all"]),
    ("through", &[]),
    ("where", &[]),
    ("include", &[]),
    ("exclude", &[]),
    ("score", &[]),
    ("relax", &[]),
    ("escalate", &[]),
    ("expand", &[]),
    ("at", &["step", "time", "version"]),
    ("as", &["of"]),
    ("budget", &[]),
    ("abstain", &[]),
    ("order", &["by"]),
    ("limit", &[]),
    ("lines", Lines::WORDS),
    ("with", &["receipt"]),
    ("return", &[]),
];

impl Parser<'_> {
    /// The clauses of a recall.
    pub(super) fn clauses(&mut self) -> Clauses {
        let mut clauses = Clauses::default();
        self.each_clause(|p| p.clause(&mut clauses));
        clauses
    }

    /// The clauses of a listing.
    pub(super) fn listing(&mut self) -> Listing {
        let mut listing = Listing::default();
        self.each_clause(|p| p.listing_clause(&mut listing));
        listing
    }

    /// Runs `clause` until the statement ends. It says whether a clause was there.
    pub(super) fn each_clause(&mut self, mut clause: impl FnMut(&mut Self) -> Parsed<bool>) {
        loop {
            match clause(self) {
                Ok(true) => {}
                Ok(false) if self.at_statement_end() => return,
                Ok(false) => {
                    self.report_unexpected(None);
                    self.bump();
                    self.skip_to_clause();
                }
                Err(Failed) => self.skip_to_clause(),
            }
        }
    }

    fn skip_to_clause(&mut self) {
        while !self.at_statement_end() && !self.at_clause_start() && !self.lexer.errors.is_full() {
            self.bump();
        }
    }

    pub(super) fn at_clause_start(&self) -> bool {
        let is_word = *self.kind() == TokenKind::Word;
        is_word
            && CLAUSE_STARTS.iter().any(|(first, then)| {
                self.is_word(first) && (then.is_empty() || then.iter().any(|word| self.is_second_word(word)))
            })
    }

    fn clause(&mut self, clauses: &mut Clauses) -> Parsed<bool> {
        let start = self.span();
        if self.eat_word("in") {
            let scope = self.rest(start, Self::scope)?;
            self.place(&mut clauses.scope, scope, "in");
        } else if self.eat_word("through") {
            let path = self.rest(start, Self::path)?;
            self.place(&mut clauses.path, path, "through");
        } else if self.eat_word("where") {
            let filter = self.rest(start, Self::predicate)?;
            self.place(&mut clauses.filter, filter, "where");
        } else if self.eat_word("include") {
            let flaws = self.rest(start, |p| p.list(Self::flaw))?;
            self.place(&mut clauses.include, flaws, "include");
        } else if self.eat_word("exclude") {
            let flaws = self.rest(start, |p| p.list(Self::flaw))?;
            self.place(&mut clauses.exclude, flaws, "exclude");
        } else if self.eat_word("score") {
            let score = self.rest(start, Self::score)?;
            self.place(&mut clauses.score, score, "score");
        } else if self.eat_word("relax") {
            let relax = self.rest(start, Self::relax)?;
            self.place(&mut clauses.relax, relax, "relax");
        } else if self.eat_word("escalate") {
            let escalate = self.rest(start, Self::escalate)?;
            self.place(&mut clauses.escalate, escalate, "escalate");
        } else if self.eat_word("expand") {
            let expand = self.rest(start, Self::expand)?;
            self.place(&mut clauses.expand, expand, "expand");
        } else if self.eat_word("at") {
            let reader = self.rest(start, Self::reader)?;
            self.place(&mut clauses.reader, reader, "at");
        } else if self.eat_word("as") {
            let as_of = self.rest(start, Self::as_of)?;
            self.place(&mut clauses.as_of, as_of, "as of");
        } else if self.eat_word("budget") {
            let budget = self.rest(start, Self::budget)?;
            self.place(&mut clauses.budget, budget, "budget");
        } else if self.eat_word("abstain") {
            let abstain = self.rest(start, Self::abstain)?;
            self.place(&mut clauses.abstain, abstain, "abstain");
        } else if self.eat_word("limit") {
            let limit = self.rest(start, Self::limit)?;
            self.place(&mut clauses.limit, limit, "limit");
        } else if self.eat_word("lines") {
            let lines = self.rest(start, |p| p.expect_one_of(Lines::ALL, Lines::WORDS).map(|lines| lines.node))?;
            self.place(&mut clauses.lines, lines, "lines");
        } else if self.eat_word("with") {
            let receipt = self.rest(start, |p| p.expect_word("receipt").map(|_| WithReceipt))?;
            self.place(&mut clauses.receipt, receipt, "with receipt");
        } else if self.eat_word("return") {
            let returns = self.rest(start, Self::returns)?;
            self.place(&mut clauses.returns, returns, "return");
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    pub(super) fn listing_clause(&mut self, listing: &mut Listing) -> Parsed<bool> {
        let start = self.span();
        if self.eat_word("in") {
            let scope = self.rest(start, Self::scope)?;
            self.place(&mut listing.scope, scope, "in");
        } else if self.eat_word("where") {
            let filter = self.rest(start, Self::predicate)?;
            self.place(&mut listing.filter, filter, "where");
        } else if self.eat_word("at") {
            let reader = self.rest(start, Self::reader)?;
            self.place(&mut listing.reader, reader, "at");
        } else if self.eat_word("as") {
            let as_of = self.rest(start, Self::as_of)?;
            self.place(&mut listing.as_of, as_of, "as of");
        } else if self.eat_word("order") {
            let order = self.rest(start, Self::order)?;
            self.place(&mut listing.order, order, "order by");
        } else if self.eat_word("limit") {
            let limit = self.rest(start, Self::limit)?;
            self.place(&mut listing.limit, limit, "limit");
        } else if self.eat_word("return") {
            let returns = self.rest(start, Self::returns)?;
            self.place(&mut listing.returns, returns, "return");
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// `{ scope | where }` of a write.
    pub(super) fn selection(&mut self) -> Parsed<Selection> {
        self.selection_of(false)
    }

    /// `{ scope | where | reader }` of a write that looks at items as a reader does.
    pub(super) fn selection_at(&mut self) -> Parsed<Selection> {
        self.selection_of(true)
    }

    fn selection_of(&mut self, has_reader: bool) -> Parsed<Selection> {
        let mut selection = Selection::default();
        let mut at = None;
        loop {
            let start = self.span();
            if self.eat_word("in") {
                let scope = self.rest(start, Self::scope)?;
                self.place(&mut selection.scope, scope, "in");
            } else if self.eat_word("where") {
                let filter = self.rest(start, Self::predicate)?;
                self.place(&mut selection.filter, filter, "where");
            } else if has_reader && self.eat_word("at") {
                let reader = self.rest(start, Self::reader)?;
                self.place(&mut at, reader, "at");
            } else {
                selection.reader = at.map(Box::new);
                return Ok(selection);
            }
        }
    }

    /// Runs `production` and gives it a span that begins at `start`.
    pub(super) fn rest<T>(
        &mut self,
        start: Span,
        production: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<Spanned<T>> {
        let node = production(self)?;
        Ok(Spanned::new(node, start.to(self.last_span())))
    }

    pub(super) fn scope(&mut self) -> Parsed<Scope> {
        if self.eat_word("episode") {
            Ok(Scope::Episodes(self.list(Self::id)?))
        } else if self.eat_word("page") {
            Ok(Scope::Pages(self.list(Self::id)?))
        } else if self.eat_word("all") {
            Ok(Scope::All)
        } else {
            self.unexpected()
        }
    }

    /// `stage { "->" stage }`.
    fn path(&mut self) -> Parsed<Vec<Spanned<Stage>>> {
        let mut stages = vec![self.spanned(Self::stage)?];
        while self.eat(&TokenKind::Arrow, "`->`") {
            stages.push(self.spanned(Self::stage)?);
        }
        Ok(stages)
    }

    fn stage(&mut self) -> Parsed<Stage> {
        if self.eat(&TokenKind::Open, "`(`") {
            let stages = self.nested(Self::path)?;
            self.expect(&TokenKind::Close, "`)`")?;
            self.expect_word("up")?;
            self.expect_word("to")?;
            let up_to = self.count()?;
            self.expect_word("hops")?;
            let (mut carry, mut keep) = (None, None);
            loop {
                if carry.is_none() && self.eat_word("carry") {
                    carry = Some(self.count()?);
                } else if keep.is_none() && self.eat_word("keep") {
                    keep = Some(self.count()?);
                } else {
                    return Ok(Stage::Hops(Hops { stages, up_to, carry, keep }));
                }
            }
        }
        if self.eat_word("lift") {
            self.expect_word("to")?;
            let noun = self.noun()?;
            let count = self.opt_count();
            let votes = if self.eat_word("votes") { Some(self.count()?) } else { None };
            return Ok(Stage::Lift(Lift { noun, count, votes }));
        }
        self.gather().map(|gather| Stage::Gather(Box::new(gather)))
    }

    /// `noun [ n ] [ "by" channels ] [ "pool" n ] [ "only" "(" predicate ")" ]`.
    fn gather(&mut self) -> Parsed<Gather> {
        let noun = self.noun()?;
        let count = self.opt_count();
        let channels = if self.eat_word("by") {
            self.list(|p| p.expect_one_of(Channel::ALL, Channel::WORDS))?
        } else {
            Vec::new()
        };
        let pool = if self.eat_word("pool") { Some(self.count()?) } else { None };
        let mut only = None;
        if self.eat_word("only") {
            self.expect(&TokenKind::Open, "`(`")?;
            only = Some(self.spanned(Self::predicate)?);
            self.expect(&TokenKind::Close, "`)`")?;
        }
        Ok(Gather { noun, count, channels, pool, only })
    }

    fn score(&mut self) -> Parsed<Score> {
        let mut score = Score { base: ScoreBase::Zero, terms: Vec::new() };
        if self.eat_word("profile") {
            score.base = ScoreBase::Profile(self.name("the name of a profile")?);
            if !self.eat(&TokenKind::Comma, "`,`") {
                return Ok(score);
            }
        }
        loop {
            let start = self.span();
            if self.eat_word("default") {
                if score.base != ScoreBase::Zero {
                    return self.fail(
                        Error::new("duplicate-clause", start, "the weights start from two places")
                            .hint("write `default` once, and not beside `profile`"),
                    );
                }
                score.base = ScoreBase::Default;
            } else {
                let term = self.rest(start, Self::term)?;
                if score.terms.iter().any(|other| other.part == term.part) {
                    let message = format!("`{}` is weighed twice", term.part);
                    return self.fail(Error::new("duplicate-clause", term.span, message));
                }
                score.terms.push(term);
            }
            if !self.eat(&TokenKind::Comma, "`,`") {
                return Ok(score);
            }
        }
    }

    /// `part number [ "(" name number { "," name number } ")" ] [ "half-life" … ]`.
    fn term(&mut self) -> Parsed<Term> {
        let part = self.expect_one_of(Part::ALL, Part::WORDS)?;
        let weight = self.number()?;
        let mut values = Vec::new();
        if self.eat(&TokenKind::Open, "`(`") {
            values = self.list(|p| Ok((p.name("a status or source")?, p.number()?)))?;
            self.expect(&TokenKind::Close, "`)`")?;
        }
        let half_life = if self.eat_word("half-life") { Some(self.spanned(Self::interval)?) } else { None };
        Ok(Term { part, weight, values, half_life })
    }

    /// `duration | n "steps"`.
    pub(super) fn interval(&mut self) -> Parsed<Interval> {
        if let Some(duration) = self.eat_duration() {
            return Ok(Interval::Clock(duration));
        }
        let count = self.count()?;
        self.expect_word("steps")?;
        Ok(Interval::Steps(count))
    }

    fn relax(&mut self) -> Parsed<Relax> {
        self.expect_word("below")?;
        Ok(Relax { below: self.count()? })
    }

    fn escalate(&mut self) -> Parsed<Escalate> {
        let mut escalate = Escalate {
            mode: self.eat_one_of(EscalateMode::ALL, EscalateMode::WORDS),
            noun: None,
            count: None,
            rounds: None,
            protect: None,
            without_links: false,
        };
        if self.eat_word("to") {
            escalate.noun = Some(self.noun()?);
            escalate.count = self.opt_count();
        }
        if self.eat_word("up") {
            self.expect_word("to")?;
            escalate.rounds = Some(self.count()?);
            self.expect_word("rounds")?;
        }
        if self.eat_word("protect") {
            escalate.protect = Some(self.number()?);
        }
        if self.eat_word("without") {
            self.expect_word("links")?;
            escalate.without_links = true;
        }
        Ok(escalate)
    }

    fn expand(&mut self) -> Parsed<Expand> {
        let mut expand = Expand { noun: None, depth: None, within_tokens: None };
        if self.eat_word("to") {
            expand.noun = Some(self.noun()?);
        }
        if self.eat_word("depth") {
            expand.depth = Some(self.count()?);
        }
        if self.eat_word("within") {
            expand.within_tokens = Some(self.count()?);
            self.expect_word("tokens")?;
        }
        Ok(expand)
    }

    /// `moment { "," moment }`.
    fn reader(&mut self) -> Parsed<Reader> {
        let mut reader = Reader::default();
        loop {
            if self.eat_word("step") {
                let step = self.count()?;
                self.place(&mut reader.step, step, "step");
            } else if self.eat_word("time") {
                let time = self.time()?;
                self.place(&mut reader.time, time, "time");
            } else if self.eat_word("version") {
                let version = self.id()?;
                self.place(&mut reader.version, version, "version");
            } else {
                return self.unexpected();
            }
            if !self.eat(&TokenKind::Comma, "`,`") {
                return Ok(reader);
            }
        }
    }

    pub(super) fn as_of(&mut self) -> Parsed<AsOf> {
        self.expect_word("of")?;
        if self.eat_word("commit") {
            Ok(AsOf::Commit(self.count()?))
        } else if self.eat_word("time") {
            Ok(AsOf::Time(self.time()?))
        } else {
            self.unexpected()
        }
    }

    fn budget(&mut self) -> Parsed<Budget> {
        let tokens = self.count()?;
        self.expect_word("tokens")?;
        Ok(Budget { tokens })
    }

    fn abstain(&mut self) -> Parsed<Abstain> {
        Ok(Abstain { below: if self.eat_word("below") { Some(self.number()?) } else { None } })
    }

    fn limit(&mut self) -> Parsed<Limit> {
        let count = self.count()?;
        let skip = if self.eat_word("skip") { Some(self.count()?) } else { None };
        Ok(Limit { count, skip })
    }

    fn order(&mut self) -> Parsed<Vec<Spanned<OrderKey>>> {
        self.expect_word("by")?;
        self.list(|p| {
            p.spanned(|p| {
                let name = p.name("an attribute")?;
                let direction = p.eat_one_of(Direction::ALL, Direction::WORDS);
                Ok(OrderKey { name, direction })
            })
        })
    }

    fn returns(&mut self) -> Parsed<Returns> {
        if self.eat(&TokenKind::Star, "`*`") {
            return Ok(Returns::All);
        }
        Ok(Returns::Names(self.list(Self::column)?))
    }
}
