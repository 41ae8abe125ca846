//! The statements that write.

use super::{Parsed, Parser};
use crate::ast::{
    Assignment, ClaimAssignment, Compress, Consolidate, Decay, EpisodeStatement, Forget, ForgetTarget, Induce, Learn,
    Link, MarkStatement, MarkTarget, Marking, Merge, Prune, PruneTarget, Record, Reflect, Remember, Retract, Selection,
    Set, Statement, Update,
};
use crate::attributes::{DECLARED, FIELD_TYPES};
use crate::span::Spanned;
use crate::token::TokenKind;
use crate::value::{Arg, Duration, Value};
use crate::words::{Kind, Mark, MergeKind, Noun, Op};

impl Parser<'_> {
    pub(super) fn write_statement(&mut self) -> Parsed<Statement> {
        if self.eat_word("record") {
            Ok(Statement::Record(self.record()?))
        } else if self.eat_word("remember") {
            Ok(Statement::Remember(self.remember()?))
        } else if self.eat_word("learn") {
            Ok(Statement::Learn(self.learn()?))
        } else if self.eat_word("reflect") {
            Ok(Statement::Reflect(self.reflect()?))
        } else if self.eat_word("induce") {
            let noun = self.noun()?;
            Ok(Statement::Induce(Induce { noun, selection: self.selection()? }))
        } else if self.eat_word("update") {
            Ok(Statement::Update(self.update()?))
        } else if self.eat_word("retract") {
            Ok(Statement::Retract(self.retract()?))
        } else if self.eat_word("mark") {
            Ok(Statement::Mark(self.mark()?))
        } else if self.eat_word("link") {
            Ok(Statement::Link(self.link(false)?))
        } else if self.eat_word("unlink") {
            Ok(Statement::Link(self.link(true)?))
        } else if self.eat_word("consolidate") {
            Ok(Statement::Consolidate(self.consolidate()?))
        } else if self.eat_word("merge") {
            Ok(Statement::Merge(self.merge()?))
        } else if self.eat_word("prune") {
            Ok(Statement::Prune(self.prune()?))
        } else if self.eat_word("decay") {
            Ok(Statement::Decay(self.decay()?))
        } else if self.eat_word("compress") {
            Ok(Statement::Compress(self.compress()?))
        } else if self.eat_word("forget") {
            Ok(Statement::Forget(self.forget()?))
        } else if self.eat_word("open") {
            Ok(Statement::Episode(self.episode_statement(false)?))
        } else if self.eat_word("close") {
            Ok(Statement::Episode(self.episode_statement(true)?))
        } else if self.eat_word("set") {
            let name = self.name("the name of a setting")?;
            self.equals()?;
            Ok(Statement::Set(Set { name, value: self.value()? }))
        } else if self.eat_word("declare") {
            self.expect_word("field")?;
            let name = self.field_path(DECLARED)?;
            let ty = self.expect_one_of(FIELD_TYPES, FIELD_TYPES)?;
            let value = Spanned::new(Arg::Value(Value::Text(ty.node.to_owned())), ty.span);
            Ok(Statement::Set(Set { name, value }))
        } else {
            self.unexpected()
        }
    }

    fn kind_of_item(&mut self) -> Parsed<Spanned<Kind>> {
        self.expect_one_of(Kind::ALL, Kind::WORDS)
    }

    fn equals(&mut self) -> Parsed<()> {
        self.expect(&TokenKind::Op(Op::Eq), "`=`")
    }

    fn record(&mut self) -> Parsed<Record> {
        let kind = self.kind_of_item()?;
        let text = self.passage()?;
        self.expect_word("in")?;
        self.expect_word("episode")?;
        let episode = self.id()?;
        let claims = self.claims()?;
        Ok(Record { kind, text, episode, claims, with: self.with()? })
    }

    fn remember(&mut self) -> Parsed<Remember> {
        let kind = self.kind_of_item()?;
        let text = self.passage()?;
        let from = if self.eat_word("ungrounded") {
            Vec::new()
        } else {
            self.expect_word("from")?;
            self.list(Self::pointer)?
        };
        let episode = if self.eat_word("in") {
            self.expect_word("episode")?;
            Some(self.id()?)
        } else {
            None
        };
        let claims = self.claims()?;
        Ok(Remember { kind, text, from, episode, claims, with: self.with()? })
    }

    fn learn(&mut self) -> Parsed<Learn> {
        let text = self.passage()?;
        self.expect_word("from")?;
        let from = self.list(Self::pointer)?;
        let claims = self.claims()?;
        let add_only = self.eat_word("add");
        let mut update_of = None;
        if add_only {
            self.expect_word("only")?;
        } else if self.eat_word("as") {
            self.expect_word("update")?;
            self.expect_word("of")?;
            update_of = Some(self.item()?);
        }
        Ok(Learn { text, from, claims, add_only, update_of })
    }

    fn reflect(&mut self) -> Parsed<Reflect> {
        let text = self.passage()?;
        self.expect_word("from")?;
        let from = self.list(Self::pointer)?;
        let top = if self.eat_word("top") { Some(self.count()?) } else { None };
        Ok(Reflect { text, from, top })
    }

    fn decay(&mut self) -> Parsed<Decay> {
        let noun = self.noun()?;
        let selection = self.selection()?;
        self.expect_word("half-life")?;
        let half_life = self.duration()?;
        self.expect_word("below")?;
        Ok(Decay { noun, selection, half_life, below: self.number()? })
    }

    fn compress(&mut self) -> Parsed<Compress> {
        let noun = self.noun()?;
        let selection = self.selection()?;
        self.expect_word("after")?;
        Ok(Compress { noun, selection, after: self.duration()? })
    }

    fn duration(&mut self) -> Parsed<Spanned<Duration>> {
        self.spanned(|p| match p.eat_duration() {
            Some(duration) => Ok(duration),
            None => p.unexpected(),
        })
    }

    fn update(&mut self) -> Parsed<Update> {
        let item = self.item()?;
        self.expect_word("to")?;
        let text = self.passage()?;
        let from = if self.eat_word("from") { self.list(Self::pointer)? } else { Vec::new() };
        let claims = self.claims()?;
        Ok(Update { item, text, from, claims, with: self.with()? })
    }

    fn retract(&mut self) -> Parsed<Retract> {
        let targets = self.list(Self::reference)?;
        self.expect_word("because")?;
        Ok(Retract { targets, because: self.text()? })
    }

    fn mark(&mut self) -> Parsed<MarkStatement> {
        let target = match self.opt_reference()? {
            Some(it) => MarkTarget::Ref(it),
            None => {
                let (noun, selection) = self.selected()?;
                self.expect_word("as")?;
                MarkTarget::Selected { noun, selection }
            }
        };
        let marking = self.spanned(|p| {
            if p.eat_word("utility") {
                return Ok(Marking::Utility(p.number()?));
            }
            if p.eat_word("reward") {
                return Ok(Marking::Reward(p.number()?));
            }
            Ok(Marking::State(p.expect_one_of(Mark::ALL, Mark::WORDS)?.node))
        })?;
        Ok(MarkStatement { target, marking, because: self.opt_because()? })
    }

    fn opt_because(&mut self) -> Parsed<Option<Spanned<Arg<String>>>> {
        if self.eat_word("because") { self.text().map(Some) } else { Ok(None) }
    }

    fn link(&mut self, remove: bool) -> Parsed<Link> {
        let item = self.item()?;
        let edge = self.edge()?;
        Ok(Link { remove, item, edge, pointer: self.pointer()? })
    }

    fn consolidate(&mut self) -> Parsed<Consolidate> {
        let noun = self.noun()?;
        let selection = self.selection_at()?;
        let tau = if self.eat_word("tau") { Some(self.number()?) } else { None };
        let into = if self.eat_word("into") { Some(self.kind_of_item()?) } else { None };
        Ok(Consolidate { noun, selection, tau, into })
    }

    fn merge(&mut self) -> Parsed<Merge> {
        let span = self.span();
        if let Some(noun) = self.eat_one_of(Noun::ALL, Noun::WORDS) {
            let noun = Spanned::new(noun, span);
            let selection = self.selection()?;
            let tau = if self.eat_word("tau") { Some(self.number()?) } else { None };
            let top = if self.eat_word("top") { Some(self.count()?) } else { None };
            return Ok(Merge::Candidates { noun, selection, tau, top });
        }
        let mut items = vec![self.item()?];
        self.expect(&TokenKind::Comma, "`,`")?;
        items.extend(self.list(Self::item)?);
        self.expect_word("into")?;
        let into = self.passage()?;
        self.expect_word("as")?;
        let kind = self.expect_one_of(MergeKind::ALL, MergeKind::WORDS)?;
        Ok(Merge::Items { items, into, kind })
    }

    fn prune(&mut self) -> Parsed<Prune> {
        let targets = self.list(|p| {
            let noun = p.noun()?;
            let keep = if p.eat_word("to") { Some(p.count()?) } else { None };
            Ok(PruneTarget { noun, keep })
        })?;
        let selection = self.selection_at()?;
        let mut redundant = None;
        if self.eat_word("redundant") {
            self.expect_word("above")?;
            redundant = Some(self.number()?);
        }
        Ok(Prune { targets, selection, redundant })
    }

    fn forget(&mut self) -> Parsed<Forget> {
        let target = match self.opt_reference()? {
            Some(first) => {
                let mut refs = vec![first];
                while self.eat(&TokenKind::Comma, "`,`") {
                    refs.push(self.reference()?);
                }
                ForgetTarget::Refs(refs)
            }
            None => {
                let (noun, selection) = self.selected()?;
                ForgetTarget::Selected { noun, selection }
            }
        };
        let cascade = self.eat_word("cascade");
        self.expect_word("because")?;
        Ok(Forget { target, cascade, because: self.text()? })
    }

    /// A noun with a scope or a condition, so that a missing word cannot select everything.
    fn selected(&mut self) -> Parsed<(Spanned<Noun>, Selection)> {
        let noun = self.noun()?;
        let selection = self.selection()?;
        if selection == Selection::default() {
            return self.unexpected_with(Some("say which: `where …`, `in episode …`, or `in all`"));
        }
        Ok((noun, selection))
    }

    fn episode_statement(&mut self, close: bool) -> Parsed<EpisodeStatement> {
        self.expect_word("episode")?;
        let episode = self.id()?;
        Ok(EpisodeStatement { close, episode, with: self.with()? })
    }

    fn claims(&mut self) -> Parsed<Vec<ClaimAssignment>> {
        if !self.eat_word("claims") {
            return Ok(Vec::new());
        }
        self.list(|p| {
            let name = p.text()?;
            p.equals()?;
            Ok(ClaimAssignment { name, value: p.value()?, global: p.eat_word("global") })
        })
    }

    fn with(&mut self) -> Parsed<Vec<Assignment>> {
        if !self.eat_word("with") {
            return Ok(Vec::new());
        }
        self.list(|p| {
            let name = p.name("an attribute")?;
            p.equals()?;
            Ok(Assignment { name, value: p.value()? })
        })
    }
}
