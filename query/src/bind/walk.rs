//! Every argument of a statement, once each.
//!
//! One function a node of the tree that holds arguments. Nodes are taken apart by name
//! where they have several, so that a new field cannot be forgotten.

use super::Binder;
use crate::ast::{
    AsOf, Assignment, Bound, ClaimAssignment, Clauses, Excerpt, Flaw, Forget, ForgetTarget, Gather, Interval, Limit,
    Listing, Marking, Merge, Pointer, Predicate, Query, Reader, Recall, Ref, Scope, Score, Selection, Stage, Statement,
    Test, Verify,
};
use crate::span::Spanned;

pub(super) fn statement(statement: &mut Statement, b: &mut Binder<'_>) {
    match statement {
        Statement::Explain(explain) => self::statement(&mut explain.statement, b),
        Statement::Why(why) => {
            b.item(&mut why.item.node, why.item.span);
            recall(&mut why.recall, b);
        }
        Statement::Recall(it) => recall(it, b),
        Statement::Find(find) => listing(&mut find.listing, b),
        Statement::Count(count) => {
            for bucket in count.group.iter_mut().flat_map(|group| &mut group.node) {
                bucket.every.iter_mut().for_each(|every| interval(every, b));
            }
            listing(&mut count.listing, b);
        }
        Statement::Walk(walk) => {
            walk.roots.iter_mut().for_each(|root| reference(root, b));
            walk.depth.iter_mut().for_each(|depth| b.count(depth));
            listing(&mut walk.listing, b);
        }
        Statement::Conflicts(conflicts) => {
            conflicts.on.iter_mut().for_each(|on| b.text(on));
            listing(&mut conflicts.listing, b);
        }
        Statement::History(history) => {
            reference(&mut history.of, b);
            listing(&mut history.listing, b);
        }
        Statement::Verify(Verify::Ref(it)) => reference(it, b),
        Statement::Verify(Verify::Citations { text, scope: it }) => {
            b.text(text);
            it.iter_mut().for_each(|it| scope(it, b));
        }
        Statement::Audit(audit) => audit.scope.iter_mut().for_each(|it| scope(it, b)),
        Statement::Verify(Verify::Log | Verify::Catalog | Verify::Segments | Verify::All) | Statement::Show(_) => {}
        Statement::ShowGraph(past) => as_of(past, b),
        Statement::ShowPage(key) => b.id(&mut key.node, key.span),
        Statement::Replay(receipt) => b.id(&mut receipt.node, receipt.span),
        Statement::Record(record) => {
            b.passage(&mut record.text);
            b.id(&mut record.episode.node, record.episode.span);
            claims(&mut record.claims, b);
            with(&mut record.with, b);
        }
        Statement::Remember(remember) => {
            b.passage(&mut remember.text);
            remember.from.iter_mut().for_each(|it| pointer(it, b));
            remember.episode.iter_mut().for_each(|it| b.id(&mut it.node, it.span));
            claims(&mut remember.claims, b);
            with(&mut remember.with, b);
        }
        Statement::Learn(learn) => {
            b.passage(&mut learn.text);
            learn.from.iter_mut().for_each(|it| pointer(it, b));
            claims(&mut learn.claims, b);
            learn.update_of.iter_mut().for_each(|it| b.item(&mut it.node, it.span));
        }
        Statement::Reflect(reflect) => {
            b.passage(&mut reflect.text);
            reflect.from.iter_mut().for_each(|it| pointer(it, b));
            reflect.top.iter_mut().for_each(|top| b.count(top));
        }
        Statement::Induce(induce) => selection(&mut induce.selection, b),
        Statement::Decay(decay) => {
            selection(&mut decay.selection, b);
            b.number(&mut decay.below);
        }
        Statement::Compress(compress) => selection(&mut compress.selection, b),
        Statement::Update(update) => {
            b.item(&mut update.item.node, update.item.span);
            b.passage(&mut update.text);
            update.from.iter_mut().for_each(|it| pointer(it, b));
            claims(&mut update.claims, b);
            with(&mut update.with, b);
        }
        Statement::Retract(retract) => {
            retract.targets.iter_mut().for_each(|it| reference(it, b));
            b.text(&mut retract.because);
        }
        Statement::Mark(mark) => {
            reference(&mut mark.target, b);
            if let Marking::Utility(number) | Marking::Reward(number) = &mut mark.marking.node {
                b.number(number);
            }
            mark.because.iter_mut().for_each(|because| b.text(because));
        }
        Statement::Link(link) => {
            b.item(&mut link.item.node, link.item.span);
            pointer(&mut link.pointer, b);
        }
        Statement::Consolidate(consolidate) => {
            selection(&mut consolidate.selection, b);
            consolidate.tau.iter_mut().for_each(|tau| b.number(tau));
        }
        Statement::Merge(it) => merge(it, b),
        Statement::Prune(prune) => {
            for target in &mut prune.targets {
                target.keep.iter_mut().for_each(|keep| b.count(keep));
            }
            selection(&mut prune.selection, b);
            prune.redundant.iter_mut().for_each(|above| b.number(above));
        }
        Statement::Forget(it) => forget(it, b),
        Statement::Episode(it) => {
            b.id(&mut it.episode.node, it.episode.span);
            with(&mut it.with, b);
        }
        Statement::Set(set) => b.value(&mut set.value),
    }
}

fn recall(recall: &mut Recall, b: &mut Binder<'_>) {
    let Recall { query: Query { text, near, like }, clauses: it } = recall;
    text.iter_mut().for_each(|text| b.question(text));
    near.iter_mut().for_each(|near| b.vector(near));
    like.iter_mut().for_each(|like| b.item(&mut like.node, like.span));
    clauses(it, b);
}

fn clauses(clauses: &mut Clauses, b: &mut Binder<'_>) {
    let Clauses {
        scope: it,
        path,
        filter,
        include,
        exclude,
        score: weights,
        relax,
        escalate,
        expand,
        reader: moment,
        as_of: past,
        budget,
        abstain,
        limit: rows,
        lines: _,
        receipt: _,
        returns: _,
    } = clauses;
    it.iter_mut().for_each(|it| scope(it, b));
    for stage in path.iter_mut().flat_map(|path| &mut path.node) {
        self::stage(stage, b);
    }
    filter.iter_mut().for_each(|filter| predicate(filter, b));
    for flaws in [include, exclude] {
        flaws.iter_mut().flat_map(|flaws| &mut flaws.node).for_each(|it| flaw(it, b));
    }
    weights.iter_mut().for_each(|weights| score(weights, b));
    relax.iter_mut().for_each(|relax| b.count(&mut relax.below));
    if let Some(escalate) = escalate {
        escalate.count.iter_mut().for_each(|count| b.count(count));
        escalate.rounds.iter_mut().for_each(|rounds| b.count(rounds));
        escalate.protect.iter_mut().for_each(|protect| b.number(protect));
    }
    if let Some(expand) = expand {
        expand.depth.iter_mut().for_each(|depth| b.count(depth));
        expand.within_tokens.iter_mut().for_each(|tokens| b.count(tokens));
    }
    moment.iter_mut().for_each(|it| reader(it, b));
    past.iter_mut().for_each(|it| as_of(it, b));
    budget.iter_mut().for_each(|budget| b.count(&mut budget.tokens));
    abstain.iter_mut().flat_map(|abstain| &mut abstain.below).for_each(|below| b.number(below));
    rows.iter_mut().for_each(|it| limit(it, b));
}

fn listing(listing: &mut Listing, b: &mut Binder<'_>) {
    let Listing { scope: it, filter, reader: moment, as_of: past, order: _, limit: rows, returns: _ } = listing;
    it.iter_mut().for_each(|it| scope(it, b));
    filter.iter_mut().for_each(|filter| predicate(filter, b));
    moment.iter_mut().for_each(|it| reader(it, b));
    past.iter_mut().for_each(|it| as_of(it, b));
    rows.iter_mut().for_each(|it| limit(it, b));
}

fn selection(selection: &mut Selection, b: &mut Binder<'_>) {
    let Selection { scope: it, filter, reader: moment } = selection;
    it.iter_mut().for_each(|it| scope(it, b));
    filter.iter_mut().for_each(|filter| predicate(filter, b));
    moment.iter_mut().for_each(|it| reader(it, b));
}

fn scope(scope: &mut Scope, b: &mut Binder<'_>) {
    match scope {
        Scope::Episodes(ids) | Scope::Pages(ids) => {
            ids.iter_mut().for_each(|id| b.id(&mut id.node, id.span));
        }
        Scope::All => {}
    }
}

fn stage(stage: &mut Stage, b: &mut Binder<'_>) {
    match stage {
        Stage::Gather(gather) => {
            let Gather { noun: _, count, channels: _, pool, only } = &mut **gather;
            count.iter_mut().for_each(|count| b.count(count));
            pool.iter_mut().for_each(|pool| b.count(pool));
            only.iter_mut().for_each(|only| predicate(only, b));
        }
        Stage::Hops(hops) => {
            hops.stages.iter_mut().for_each(|stage| self::stage(stage, b));
            b.count(&mut hops.up_to);
            hops.carry.iter_mut().for_each(|carry| b.count(carry));
            hops.keep.iter_mut().for_each(|keep| b.count(keep));
        }
        Stage::Lift(lift) => {
            lift.count.iter_mut().for_each(|count| b.count(count));
            lift.votes.iter_mut().for_each(|votes| b.count(votes));
        }
    }
}

fn score(score: &mut Score, b: &mut Binder<'_>) {
    for term in &mut score.terms {
        b.number(&mut term.weight);
        for (_, weight) in &mut term.values {
            b.number(weight);
        }
        term.half_life.iter_mut().for_each(|it| interval(it, b));
    }
}

fn interval(interval: &mut Interval, b: &mut Binder<'_>) {
    match interval {
        Interval::Clock(_) => {}
        Interval::Steps(count) => b.count(count),
    }
}

fn reader(reader: &mut Reader, b: &mut Binder<'_>) {
    let Reader { step, time, version } = reader;
    step.iter_mut().for_each(|step| b.count(step));
    time.iter_mut().for_each(|time| b.time(time));
    version.iter_mut().for_each(|version| b.id(&mut version.node, version.span));
}

fn as_of(as_of: &mut AsOf, b: &mut Binder<'_>) {
    match as_of {
        AsOf::Commit(number) => b.count(number),
        AsOf::Time(time) => b.time(time),
    }
}

fn limit(limit: &mut Limit, b: &mut Binder<'_>) {
    b.count(&mut limit.count);
    limit.skip.iter_mut().for_each(|skip| b.count(skip));
}

fn predicate(predicate: &mut Predicate, b: &mut Binder<'_>) {
    match predicate {
        Predicate::Or(inner) | Predicate::And(inner) => {
            inner.iter_mut().for_each(|inner| self::predicate(inner, b));
        }
        Predicate::Not(inner) => self::predicate(inner, b),
        Predicate::Test(it) => test(it, b),
    }
}

fn test(test: &mut Test, b: &mut Binder<'_>) {
    match test {
        Test::Compare { value, .. } => b.value(value),
        Test::In { list, .. } => b.list(list),
        Test::Between { low, high, .. } => {
            b.value(low);
            b.value(high);
        }
        Test::Contains { text, .. } | Test::Matches { glob: text, .. } => b.text(text),
        Test::Has(_) | Test::Redacted => {}
        Test::Flaw(it) => flaw(it, b),
        Test::Edge { target, .. } => target.iter_mut().for_each(|it| pointer(it, b)),
        Test::Claims { name, value } => {
            b.text(name);
            value.iter_mut().for_each(|(_, value)| b.value(value));
        }
    }
}

fn flaw(flaw: &mut Flaw, b: &mut Binder<'_>) {
    for bound in &mut flaw.window {
        match &mut bound.node {
            Bound::Steps(count) => b.count(count),
            Bound::Age(_) | Bound::Version => {}
        }
    }
}

fn reference(reference: &mut Spanned<Ref>, b: &mut Binder<'_>) {
    let span = reference.span;
    match &mut reference.node {
        Ref::Item(item) => b.item(item, span),
        Ref::Page(id) | Ref::Episode(id) => b.id(id, span),
    }
}

fn pointer(pointer: &mut Pointer, b: &mut Binder<'_>) {
    let Pointer { target, field, excerpt } = pointer;
    reference(target, b);
    field.iter_mut().for_each(|field| b.text(field));
    match excerpt {
        Some(Excerpt::Bytes { start, end }) => {
            b.count(start);
            b.count(end);
        }
        Some(Excerpt::Quoting(text)) => b.text(text),
        None => {}
    }
}

fn claims(claims: &mut [ClaimAssignment], b: &mut Binder<'_>) {
    for claim in claims {
        b.text(&mut claim.name);
        b.value(&mut claim.value);
    }
}

fn with(with: &mut [Assignment], b: &mut Binder<'_>) {
    with.iter_mut().for_each(|it| b.value(&mut it.value));
}

fn merge(merge: &mut Merge, b: &mut Binder<'_>) {
    match merge {
        Merge::Candidates { noun: _, selection: it, tau, top } => {
            selection(it, b);
            tau.iter_mut().for_each(|tau| b.number(tau));
            top.iter_mut().for_each(|top| b.count(top));
        }
        Merge::Items { items, into, kind: _ } => {
            items.iter_mut().for_each(|item| b.item(&mut item.node, item.span));
            b.passage(into);
        }
    }
}

fn forget(forget: &mut Forget, b: &mut Binder<'_>) {
    match &mut forget.target {
        ForgetTarget::Refs(refs) => refs.iter_mut().for_each(|it| reference(it, b)),
        ForgetTarget::Selected { noun: _, selection: it } => selection(it, b),
    }
    b.text(&mut forget.because);
}
