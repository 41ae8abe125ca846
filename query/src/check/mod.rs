//! Names, types and parameters, checked before anything runs.
//!
//! The parser knows the grammar; this knows what things have: which attributes, with
//! which values, shown in which columns. With parameters at hand, a parameter's value is
//! checked like one written in its place.

mod predicate;

use std::fmt;

use crate::ast::{
    Assignment, Clauses, Compress, Count, Decay, Explain, Flaw, Forget, ForgetTarget, Induce, Interval, Listing,
    MarkStatement, MarkTarget, Marking, Merge, OrderKey, Recall, Ref, Returns, Scope, Score, ScoreBase, Script,
    Selection, Set, Stage, Statement, Term,
};
use crate::attributes::{
    Attribute, EPISODE_WITH, ITEM_COLUMNS, PROFILES, RECALL_COLUMNS, RECALL_COLUMNS_ON_REQUEST, RECORD_WITH,
    REMEMBER_WITH, SETTINGS, Subject, Type, UPDATE_WITH, WALK_COLUMNS, attribute, attributes_of, setting,
};
use crate::bind::{Binder, Node, Params, literal};
use crate::error::{Collector, Error, Errors, nearest};
use crate::plan;
use crate::span::{Span, Spanned};
use crate::value::{Arg, Name, Number, Value};
use crate::words::{Kind, Layer, Mark, MeasureKind, Noun, Part, Source, Status};

/// Checks the statements of a script.
///
/// `params` are the parameters given with it; without, parameters are not looked at,
/// as when a statement is only prepared. `dimension` is that of the stored vectors.
///
/// # Errors
///
/// Everything that is wrong, up to 64 errors.
pub fn check(script: &Script, params: Option<&Params>, dimension: Option<usize>) -> Result<(), Errors> {
    if let Some(params) = params {
        return check_bound(script, params, dimension).map(drop);
    }
    let mut checker = Checker::new(None);
    script.statements.iter().for_each(|it| checker.statement(it));
    checker.errors.finish(())
}

/// As [`check`] with parameters; hands out the plans of the statements.
///
/// # Errors
///
/// As [`check`].
pub fn check_bound(script: &Script, params: &Params, dimension: Option<usize>) -> Result<Vec<plan::Statement>, Errors> {
    let mut checker = Checker::new(Some(params));
    script.statements.iter().for_each(|statement| checker.statement(statement));
    let mut binder = Binder::new(params, dimension);
    let plans = script.statements.lower(&mut binder);
    for name in binder.unused() {
        let error = Error::new("unused-parameter", Span::default(), format!("${name} is given, but not used"));
        checker.errors.push(error.nearest(nearest(name, binder.missing.iter().map(String::as_str))));
    }
    checker.errors.append(binder.errors);
    checker.errors.finish_if_some(plans)
}

impl plan::Recall {
    /// Checks names and types, as [`check`] does of a script.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, up to 64 errors, which have no place.
    pub fn check(&self) -> Result<(), Errors> {
        let mut checker = Checker::new(None);
        checker.recall(&Recall::raise(self));
        checker.errors.finish(())
    }
}

struct Checker<'p> {
    /// The values of parameters, which are checked like ones written in their places.
    params: Option<&'p Params>,
    errors: Collector,
}

impl<'p> Checker<'p> {
    fn new(params: Option<&'p Params>) -> Checker<'p> {
        Checker { params, errors: Collector::default() }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            // Of a long script that is wrong throughout, no more is looked at than is told.
            _ if self.errors.is_full() => {}
            Statement::Explain(Explain { statement, .. }) => self.statement(statement),
            Statement::Why(why) => self.recall(&why.recall),
            Statement::Recall(recall) => self.recall(recall),
            Statement::Find(find) => {
                let subject = find.thing.subject();
                let extra = if subject == Subject::Item { ITEM_COLUMNS } else { &[] };
                self.listing(&find.listing, &Columns::new(subject, extra));
            }
            Statement::Count(count) => self.count(count),
            Statement::Walk(walk) => {
                self.listing(&walk.listing, &Columns::new(Subject::Item, WALK_COLUMNS));
            }
            Statement::Conflicts(conflicts) => {
                self.listing(&conflicts.listing, &Columns::new(Subject::Claim, &[]));
            }
            Statement::History(history) => {
                self.listing(&history.listing, &Columns::new(Subject::Change, &[]));
            }
            Statement::Audit(audit) => self.scope(&audit.scope, Subject::Episode),
            Statement::Verify(_)
            | Statement::Show(_)
            | Statement::ShowGraph(_)
            | Statement::ShowPage(_)
            | Statement::Replay(_) => {}
            Statement::Record(record) => {
                self.layer(&record.kind, "record", &[Layer::Trace]);
                self.claims(record.claims.iter().map(|claim| &claim.value));
                self.with(&record.with, Subject::Item, RECORD_WITH);
            }
            Statement::Remember(remember) => {
                self.layer(&remember.kind, "remember", &[Layer::Recall, Layer::Theme]);
                self.claims(remember.claims.iter().map(|claim| &claim.value));
                self.with(&remember.with, Subject::Item, REMEMBER_WITH);
            }
            Statement::Learn(learn) => self.claims(learn.claims.iter().map(|claim| &claim.value)),
            Statement::Update(update) => {
                self.claims(update.claims.iter().map(|claim| &claim.value));
                self.with(&update.with, Subject::Item, UPDATE_WITH);
            }
            Statement::Link(_)
            | Statement::Reflect(_)
            | Statement::Retract(_)
            | Statement::Merge(Merge::Items { .. })
            | Statement::Forget(Forget { target: ForgetTarget::Refs(_), .. }) => {}
            Statement::Induce(Induce { noun, selection })
            | Statement::Decay(Decay { noun, selection, .. })
            | Statement::Compress(Compress { noun, selection, .. })
            | Statement::Forget(Forget { target: ForgetTarget::Selected { noun, selection }, .. })
            | Statement::Merge(Merge::Candidates { noun, selection, .. }) => self.selection(selection, noun),
            Statement::Mark(mark) => self.mark(mark),
            Statement::Consolidate(consolidate) => {
                self.selection(&consolidate.selection, &consolidate.noun);
                if let Some(into) = &consolidate.into {
                    self.layer(into, "consolidate into", &[Layer::Recall]);
                }
            }
            Statement::Prune(prune) => {
                for target in &prune.targets {
                    self.selection(&prune.selection, &target.noun);
                }
            }
            Statement::Episode(it) => self.with(&it.with, Subject::Episode, EPISODE_WITH),
            Statement::Set(set) => self.set(set),
        }
    }

    fn set(&mut self, set: &Set) {
        match setting(&set.name) {
            Some(setting) => self.value(&set.name, setting.ty, &set.value),
            None => {
                let known = SETTINGS.iter().map(|setting| setting.name);
                let message = format!("there is no setting `{}`", set.name.node);
                self.unknown("unknown-setting", message, &set.name, known);
            }
        }
    }

    // --- reading ---

    fn recall(&mut self, recall: &Recall) {
        let Clauses { path, filter, include, exclude, score, expand, returns, .. } = &recall.clauses;
        for stage in path.iter().flat_map(|path| &path.node) {
            self.stage(stage);
        }
        if let Some(filter) = filter {
            self.predicate(filter, Subject::Item);
        }
        if let Some(to) = expand.as_ref().and_then(|expand| expand.node.noun)
            && to.node.layer() == Some(Layer::Theme)
        {
            let error = Error::new("misplaced", to.span, format!("no expansion to {}", to.node))
                .expected("a kind of recall or trace, `pages`, `episodes` or `items`")
                .hint("what a row rests on is added under it, and nothing rests on themes");
            self.errors.push(error);
        }
        self.flaws(include, exclude);
        if let Some(score) = score {
            self.score(score);
        }
        if let Some(returns) = returns {
            let known = [RECALL_COLUMNS, RECALL_COLUMNS_ON_REQUEST].concat();
            let columns = Columns { attributes: false, ..Columns::new(Subject::Item, &known) };
            self.returns(returns, &columns);
        }
    }

    fn stage(&mut self, stage: &Stage) {
        match stage {
            Stage::Gather(gather) => {
                if let Some(only) = &gather.only {
                    self.predicate(only, gather.noun.subject());
                }
            }
            Stage::Hops(hops) => hops.stages.iter().for_each(|stage| self.stage(stage)),
            Stage::Lift(lift) => {
                let to = lift.noun.node;
                let is_source = matches!(to, Noun::Episodes | Noun::Pages) || to.layer() == Some(Layer::Trace);
                if !is_source {
                    let error = Error::new("misplaced", lift.noun.span, format!("no lift to {to}"))
                        .expected("`episodes`, `pages`, `traces` or a kind of trace")
                        .hint("a lift goes from items to what they were written from");
                    self.errors.push(error);
                }
            }
        }
    }

    fn flaws(&mut self, include: &Option<Spanned<Vec<Spanned<Flaw>>>>, exclude: &Option<Spanned<Vec<Spanned<Flaw>>>>) {
        let mut seen = Vec::new();
        for flaw in include.iter().chain(exclude).flat_map(|flaws| &flaws.node) {
            if seen.contains(&flaw.kind) {
                let message = format!("`{}` is named twice", flaw.kind);
                self.errors.push(Error::new("duplicate-clause", flaw.span, message));
            }
            seen.push(flaw.kind);
        }
    }

    fn score(&mut self, score: &Score) {
        if let ScoreBase::Profile(name) = &score.base
            && !name.word().is_some_and(|name| PROFILES.contains(&name))
        {
            self.unknown(
                "unknown-profile",
                format!("there is no profile `{}`", name.node),
                name,
                PROFILES.iter().copied(),
            );
        }
        score.terms.iter().for_each(|term| self.term(term));
    }

    fn term(&mut self, term: &Term) {
        let part = term.part.node;
        let known = match part {
            Part::Status => Status::WORDS,
            Part::Source => Source::WORDS,
            _ => &[],
        };
        for (name, _) in &term.values {
            if known.is_empty() {
                let error = Error::new("misplaced", name.span, format!("`{part}` has one weight"))
                    .hint("only `status` and `source` have weights of single values");
                self.errors.push(error);
            } else if !name.word().is_some_and(|name| known.contains(&name)) {
                self.unknown(
                    "unknown-value",
                    format!("there is no {part} `{}`", name.node),
                    name,
                    known.iter().copied(),
                );
            }
        }
        if let Some(half_life) = term.half_life.as_ref().filter(|_| part != Part::Recency) {
            let message = format!("`{part}` has no half-life");
            let error = Error::new("misplaced", half_life.span, message).hint("only `recency` falls with age");
            self.errors.push(error);
        }
    }

    fn count(&mut self, count: &Count) {
        let subject = count.thing.subject();
        let mut computed = vec!["count".to_owned()];
        for measure in &count.measures {
            let Some(found) = self.attribute(&measure.name, subject) else {
                continue;
            };
            let fits = match measure.kind {
                MeasureKind::Sum | MeasureKind::Mean => {
                    matches!(found.ty, Type::Number | Type::Count | Type::Any)
                }
                MeasureKind::Min | MeasureKind::Max => found.ty.is_ordered() && found.ty != Type::Text,
            };
            if !fits {
                let message = format!("`{}` has no {}", measure.name, measure.kind);
                let error = Error::new("wrong-type", measure.name.span, message)
                    .hint("sum and mean take numbers, min and max also times and durations");
                self.errors.push(error);
            }
            computed.push(format!("{}.{}", measure.kind, measure.name));
        }
        for bucket in count.group.iter().flat_map(|group| &group.node) {
            let Some(found) = self.attribute(&bucket.name, subject) else {
                continue;
            };
            let Some(every) = &bucket.every else { continue };
            let fits = match every.node {
                Interval::Clock(_) => matches!(found.ty, Type::Time | Type::Duration),
                Interval::Steps(_) => found.name == "step",
            };
            if !fits {
                let message = format!("`{}` is not counted in these", bucket.name);
                let error = Error::new("wrong-type", every.span, message)
                    .hint("`time` and `age` go by durations, `step` by steps");
                self.errors.push(error);
            }
        }
        let extra: Vec<&str> = computed.iter().map(String::as_str).collect();
        self.listing(&count.listing, &Columns::new(subject, &extra));
    }

    fn listing(&mut self, listing: &Listing, columns: &Columns<'_>) {
        self.scope(&listing.scope, columns.subject);
        if let Some(filter) = &listing.filter {
            self.predicate(filter, columns.subject);
        }
        for OrderKey { name, .. } in listing.order.iter().flat_map(|keys| keys.iter()).map(|key| &key.node) {
            self.column(name, columns);
        }
        if let Some(returns) = &listing.returns {
            self.returns(returns, columns);
        }
    }

    fn scope(&mut self, scope: &Option<Spanned<Scope>>, subject: Subject) {
        let Some(scope) = scope else { return };
        let fits = match scope.node {
            Scope::All => true,
            Scope::Pages(_) => matches!(subject, Subject::Item | Subject::Page),
            Scope::Episodes(_) => !matches!(subject, Subject::Receipt | Subject::Change),
        };
        if !fits {
            let message = format!("{} do not lie in one of these", subject.as_str());
            self.errors.push(Error::new("misplaced", scope.span, message));
        }
    }

    fn returns(&mut self, returns: &Returns, columns: &Columns<'_>) {
        if let Returns::Names(names) = returns {
            names.iter().for_each(|name| self.column(name, columns));
        }
    }

    fn column(&mut self, name: &Spanned<Name>, columns: &Columns<'_>) {
        let is_attribute = columns.attributes && attribute(columns.subject, name).is_some();
        // A row of a recall shows the fields of its item.
        let is_field = name.field().is_some() && columns.subject == Subject::Item;
        if !is_attribute && !is_field && !columns.extra.contains(&name.to_string().as_str()) {
            let things = columns.subject.as_str();
            let attributes = attributes_of(columns.subject).filter(|_| columns.attributes);
            let names = attributes.map(|attribute| if attribute.name == FIELDS { A_FIELD } else { attribute.name });
            let names = names.chain(columns.extra.iter().copied());
            self.unknown("unknown-column", format!("{things} have no column `{}`", name.node), name, names);
        }
    }

    // --- writing ---

    fn layer(&mut self, kind: &Spanned<Kind>, verb: &str, layers: &[Layer]) {
        let layer = kind.layer();
        if layers.contains(&layer) {
            return;
        }
        let hint = match layer {
            Layer::Trace => "what happened is written with `record`",
            Layer::Recall | Layer::Theme => "what was distilled is written with `remember`",
        };
        let message = format!("`{verb}` does not write a {kind}");
        let fitting = Kind::ALL.iter().filter(|kind| layers.contains(&kind.layer()));
        let mut error = Error::new("misplaced", kind.span, message).hint(hint);
        for kind in fitting {
            error = error.expected(format!("`{kind}`"));
        }
        self.errors.push(error);
    }

    fn claims<'a>(&mut self, values: impl Iterator<Item = &'a Spanned<Arg<Value>>>) {
        for value in values {
            self.value_of(&"the claim", Type::Any, value);
        }
    }

    fn with(&mut self, with: &[Assignment], subject: Subject, allowed: &[&'static str]) {
        for (index, Assignment { name, value }) in with.iter().enumerate() {
            if with[..index].iter().any(|other| other.name == *name) {
                let message = format!("`{name}` is given twice");
                self.errors.push(Error::new("duplicate-clause", name.span, message));
            }
            let found = attribute(subject, name).filter(|it| allowed.contains(&it.name));
            let Some(found) = found else {
                let names = allowed.iter().copied();
                self.unknown("unknown-attribute", format!("`{}` cannot be given here", name.node), name, names);
                continue;
            };
            let literal = literal(&value.node, self.params);
            let is_whole = !matches!(literal.as_deref(), Some(Value::Number(Number::Negative(_) | Number::Real(_))));
            if found.ty == Type::Count && !is_whole {
                let message = format!("`{name}` is a whole number from 0");
                self.errors.push(Error::new("wrong-type", value.span, message));
                continue;
            }
            self.value(name, found.ty, value);
        }
    }

    fn mark(&mut self, mark: &MarkStatement) {
        let (of_page, of_item) = match &mark.target {
            MarkTarget::Ref(it) => (matches!(it.node, Ref::Page(_)), matches!(it.node, Ref::Item(_))),
            MarkTarget::Selected { noun, selection } => {
                self.selection(selection, noun);
                (noun.node == Noun::Pages, !matches!(noun.node, Noun::Pages | Noun::Episodes))
            }
        };
        let fits = match mark.marking.node {
            Marking::State(Mark::Summarised | Mark::Unsummarised) => of_page,
            Marking::State(_) | Marking::Utility(_) | Marking::Reward(_) => of_item,
        };
        if !fits {
            let error = Error::new("misplaced", mark.marking.span, "this cannot be marked so").hint(
                "items are marked success, unknown, failed, inactive or with a utility or a reward, pages \
                 summarised or unsummarised; an episode is closed with `close episode`",
            );
            self.errors.push(error);
        }
    }

    fn selection(&mut self, selection: &Selection, noun: &Spanned<Noun>) {
        let subject = noun.subject();
        self.scope(&selection.scope, subject);
        if let Some(filter) = &selection.filter {
            self.predicate(filter, subject);
        }
    }

    // --- names and values ---

    /// The attribute of this name, or an error.
    fn attribute(&mut self, name: &Spanned<Name>, subject: Subject) -> Option<&'static Attribute> {
        let found = attribute(subject, name);
        if found.is_none() {
            self.unknown_attribute(name, subject);
        }
        found
    }

    fn unknown_attribute(&mut self, name: &Spanned<Name>, subject: Subject) {
        let things = subject.as_str();
        let message = format!("{things} have no attribute `{name}`");
        let written = name.to_string();
        let names = attributes_of(subject).map(|attribute| attribute.name);
        let mut error = Error::new("unknown-attribute", name.span, message)
            .nearest(nearest(&written, names).filter(|it| *it != FIELDS && *it != written));
        let elsewhere = crate::attributes::ATTRIBUTES.iter().find(|it| it.name == written);
        if written == FIELDS {
            error = error.hint(NAME_THE_FIELD);
        } else if let Some(elsewhere) = elsewhere {
            let on: Vec<&str> = elsewhere.on.iter().map(|it| it.as_str()).collect();
            error = error.hint(format!("`{written}` is an attribute of {}", on.join(", ")));
        } else if subject == Subject::Item {
            error = error.hint("a field is written fields.NAME");
        }
        self.errors.push(error);
    }

    /// Reports that `name` is none of the names known in this place, which are all listed.
    fn unknown<'k>(
        &mut self,
        code: &'static str,
        message: String,
        name: &Spanned<Name>,
        known: impl Iterator<Item = &'k str>,
    ) {
        let known: Vec<&str> = known.collect();
        let written = name.to_string();
        let others = known.iter().copied().filter(|name| *name != A_FIELD && *name != written);
        let mut error = Error::new(code, name.span, message).nearest(nearest(&written, others));
        if written == FIELDS && known.contains(&A_FIELD) {
            error = error.hint(NAME_THE_FIELD);
        }
        for name in known {
            error = error.expected(format!("`{name}`"));
        }
        self.errors.push(error);
    }

    /// Checks the value of something called `name`.
    fn value(&mut self, name: &Name, ty: Type, value: &Spanned<Arg<Value>>) {
        self.value_of(&format_args!("`{name}`"), ty, value);
    }

    fn value_of(&mut self, what: &dyn fmt::Display, ty: Type, value: &Spanned<Arg<Value>>) {
        if let Some(literal) = literal(&value.node, self.params) {
            self.literal(what, ty, &literal, value.span);
        }
    }

    fn literal(&mut self, what: &dyn fmt::Display, ty: Type, literal: &Value, span: Span) {
        if let Err(mismatch) = ty.read(literal) {
            self.errors.push(predicate::mismatch(what, ty, literal, mismatch, span));
        }
    }
}

/// The attribute that stands for all fields of an item; a column is one field.
const FIELDS: &str = "fields";
/// A field as a column.
const A_FIELD: &str = "fields.NAME";
const NAME_THE_FIELD: &str = "name the field: fields.price, or fields.'odd name'";

/// The columns that the rows of a statement can show.
struct Columns<'c> {
    subject: Subject,
    /// True if they show every attribute of the subject.
    attributes: bool,
    /// The columns beside the attributes.
    extra: &'c [&'c str],
}

impl<'c> Columns<'c> {
    fn new(subject: Subject, extra: &'c [&'c str]) -> Columns<'c> {
        Columns { subject, attributes: true, extra }
    }
}
