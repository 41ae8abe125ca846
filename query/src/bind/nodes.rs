//! The nodes of the tree, by name: field by field the same in a plan, but for the clauses of recalls and listings.
//!
//! Plans are made and taken apart by all of their fields, so that none can be forgotten.

use super::{Binder, Node};
use crate::error::Error;
use crate::span::Spanned;
use crate::value::Arg;
use crate::{ast, plan};

macro_rules! node {
    (struct $name:ident { $($field:ident),+ }) => {
        impl Node for ast::$name {
            type Plan = plan::$name;

            fn lower(&self, binder: &mut Binder<'_>) -> Option<plan::$name> {
                let ast::$name { $($field),+ } = self;
                $(let $field = $field.lower(binder);)+
                Some(plan::$name { $($field: $field?),+ })
            }

            fn raise(plan: &plan::$name) -> ast::$name {
                let plan::$name { $($field),+ } = plan;
                ast::$name { $($field: Node::raise($field)),+ }
            }
        }
    };
    (enum $name:ident { $($variant:ident $(($inner:ident))? $({ $($field:ident),+ })?),+ $(,)? }) => {
        impl Node for ast::$name {
            type Plan = plan::$name;

            fn lower(&self, _binder: &mut Binder<'_>) -> Option<plan::$name> {
                match self {
                    $(ast::$name::$variant $(($inner))? $({ $($field),+ })? => {
                        $(let $inner = $inner.lower(_binder);)?
                        $($(let $field = $field.lower(_binder);)+)?
                        Some(plan::$name::$variant $(($inner?))? $({ $($field: $field?),+ })?)
                    })+
                }
            }

            fn raise(plan: &plan::$name) -> ast::$name {
                match plan {
                    $(plan::$name::$variant $(($inner))? $({ $($field),+ })? => {
                        ast::$name::$variant $((Node::raise($inner)))? $({ $($field: Node::raise($field)),+ })?
                    })+
                }
            }
        }
    };
}

node!(
    enum Statement {
        Explain(it),
        Why(it),
        Recall(it),
        Find(it),
        Count(it),
        Walk(it),
        Conflicts(it),
        History(it),
        Verify(it),
        Audit(it),
        Show(it),
        ShowGraph(it),
        ShowPage(it),
        Replay(it),
        Record(it),
        Remember(it),
        Learn(it),
        Reflect(it),
        Induce(it),
        Update(it),
        Retract(it),
        Mark(it),
        Link(it),
        Consolidate(it),
        Merge(it),
        Prune(it),
        Decay(it),
        Compress(it),
        Forget(it),
        Episode(it),
        Set(it),
    }
);
node!(struct Explain { analyze, statement });
node!(struct Replay { of, without });
node!(
    enum Replayed {
        Receipt(it),
        Last(it),
    }
);
node!(
    enum Without {
        Refs(it),
        Each,
    }
);
node!(struct Why { not, item, recall });

// Clauses.
node!(
    enum Scope {
        Episodes(ids),
        Pages(keys),
        All,
    }
);
node!(
    enum Stage {
        Gather(it),
        Hops(it),
        Lift(it),
    }
);
node!(struct Gather { noun, count, channels, pool, only });
node!(struct Hops { stages, up_to, carry, keep });
node!(struct Lift { noun, count, votes });
node!(
    enum Interval {
        Clock(duration),
        Steps(count),
    }
);
node!(struct Score { base, terms });
node!(
    enum ScoreBase {
        Zero,
        Default,
        Profile(name),
    }
);
node!(struct Term { part, weight, values, half_life });
node!(struct Escalate { mode, noun, count, rounds, protect, without_links });
node!(struct Expand { noun, depth, within_tokens });
node!(struct Reader { step, time, version });
node!(
    enum AsOf {
        Commit(number),
        Time(time),
    }
);
node!(struct Abstain { below });
node!(
    enum Returns {
        All,
        Names(names),
    }
);

// Conditions.
node!(
    enum Predicate {
        Or(any),
        And(all),
        Not(inner),
        Test(test),
    }
);
node!(enum Test {
    Compare { name, op, value },
    In { name, not, list },
    Between { name, not, low, high },
    Contains { name, not, text },
    Matches { name, not, glob },
    Has(name),
    Flaw(flaw),
    Redacted,
    Edge { edge, target },
    Claims { name, value },
});
node!(struct Flaw { kind, window });
node!(
    enum Bound {
        Steps(count),
        Age(age),
        Version,
    }
);
node!(
    enum Ref {
        Item(item),
        Page(key),
        Episode(id),
    }
);
node!(struct Pointer { target, field, excerpt });
node!(enum Excerpt { Bytes { start, end }, Quoting(text) });

// Statements that read.
node!(struct Recall { query, clauses });
node!(struct OrderKey { name, direction });
node!(struct Find { thing, listing });
node!(struct Measure { kind, name });
node!(struct Bucket { name, every });
node!(struct Walk { towards_sources, roots, edges, depth, listing });
node!(struct Conflicts { on, listing });
node!(struct History { of, listing });
node!(struct Audit { scope });
node!(enum Verify { Ref(it), Log, Catalog, Segments, All, Citations { text, scope } });

// Statements that write.
node!(struct Record { kind, text, episode, claims, with });
node!(struct Remember { kind, text, from, episode, claims, with });
node!(struct Learn { text, from, claims, add_only, update_of });
node!(struct Reflect { text, from, top });
node!(struct Induce { noun, selection });
node!(struct Update { item, text, from, claims, with });
node!(struct Retract { targets, because });
node!(struct ClaimAssignment { name, value, global });
node!(struct Assignment { name, value });
node!(struct MarkStatement { target, marking, because });
node!(enum MarkTarget { Ref(it), Selected { noun, selection } });
node!(
    enum Marking {
        State(mark),
        Utility(utility),
        Reward(reward),
    }
);
node!(struct Link { remove, item, edge, pointer });
node!(struct Selection { scope, filter, reader });
node!(struct Consolidate { noun, selection, tau, into });
node!(enum Merge { Candidates { noun, selection, tau, top }, Items { items, into, kind } });
node!(struct Prune { targets, selection, redundant });
node!(struct PruneTarget { noun, keep });
node!(struct Decay { noun, selection, half_life, below });
node!(struct Compress { noun, selection, after });
node!(struct Forget { target, cascade, because });
node!(enum ForgetTarget { Refs(refs), Selected { noun, selection } });
node!(struct EpisodeStatement { close, episode, with });
node!(struct Set { name, value });

impl Node for ast::Query {
    type Plan = plan::Query;

    /// The text of a query, given by a parameter, may not be empty; the parser refuses one that is written so.
    fn lower(&self, binder: &mut Binder<'_>) -> Option<plan::Query> {
        let ast::Query { text, near, like } = self;
        let passage = text.lower(binder);
        if let (Some(Spanned { node: Arg::Param(_), span }), Some(Some(passage))) = (text, &passage)
            && passage.text.trim().is_empty()
        {
            let error =
                Error::new("empty-query", *span, "the query is empty").hint("the parameter's text has no words in it");
            binder.errors.push(error);
        }
        let (near, like) = (near.lower(binder), like.lower(binder));
        Some(plan::Query { text: passage?, near: near?, like: like? })
    }

    fn raise(plan: &plan::Query) -> ast::Query {
        let plan::Query { text, near, like } = plan;
        ast::Query { text: Node::raise(text), near: Node::raise(near), like: Node::raise(like) }
    }
}

impl Node for ast::Clauses {
    type Plan = plan::Clauses;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<plan::Clauses> {
        let ast::Clauses { scope, path, filter, include, exclude, score, relax, escalate, expand, .. } = self;
        let ast::Clauses { reader, as_of, budget, abstain, limit: rows, lines, receipt, returns, .. } = self;
        let (scope, path, filter) = (scope.lower(binder), path.lower(binder), filter.lower(binder));
        let (include, exclude, score) = (list(include, binder), list(exclude, binder), score.lower(binder));
        let relax_below = optional(relax.as_ref().map(|relax| &relax.node.below), binder);
        let (escalate, expand) = (escalate.lower(binder), expand.lower(binder));
        let (reader, as_of) = (reader.lower(binder), as_of.lower(binder));
        let budget = optional(budget.as_ref().map(|budget| &budget.node.tokens), binder);
        let (abstain, limit) = (abstain.lower(binder), limit(rows, binder));
        let (lines, returns) = (lines.lower(binder), returns.lower(binder));
        let (limit, skip) = limit?;
        Some(plan::Clauses {
            scope: scope?,
            path: path?,
            filter: filter?,
            include: include?,
            exclude: exclude?,
            score: score?,
            relax_below: relax_below?,
            escalate: escalate?,
            expand: expand?,
            reader: reader?,
            as_of: as_of?,
            budget: budget?,
            abstain: abstain?,
            limit,
            skip,
            lines: lines?,
            receipt: receipt.is_some(),
            returns: returns?,
        })
    }

    fn raise(plan: &plan::Clauses) -> ast::Clauses {
        ast::Clauses {
            scope: Node::raise(&plan.scope),
            path: Node::raise(&plan.path),
            filter: Node::raise(&plan.filter),
            include: raise_list(&plan.include),
            exclude: raise_list(&plan.exclude),
            score: Node::raise(&plan.score),
            relax: plan.relax_below.map(|rows| ast::Relax { below: Node::raise(&rows) }.into()),
            escalate: Node::raise(&plan.escalate),
            expand: Node::raise(&plan.expand),
            reader: Node::raise(&plan.reader),
            as_of: Node::raise(&plan.as_of),
            budget: plan.budget.map(|tokens| ast::Budget { tokens: Node::raise(&tokens) }.into()),
            abstain: Node::raise(&plan.abstain),
            limit: raise_limit(plan.limit, plan.skip),
            lines: Node::raise(&plan.lines),
            receipt: plan.receipt.then(|| ast::WithReceipt.into()),
            returns: Node::raise(&plan.returns),
        }
    }
}

impl Node for ast::Listing {
    type Plan = plan::Listing;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<plan::Listing> {
        let ast::Listing { scope, filter, reader, as_of, order, limit: rows, returns } = self;
        let (scope, filter) = (scope.lower(binder), filter.lower(binder));
        let (reader, as_of) = (reader.lower(binder), as_of.lower(binder));
        let order = list(order, binder);
        let limit = limit(rows, binder);
        let returns = returns.lower(binder);
        let (limit, skip) = limit?;
        Some(plan::Listing {
            scope: scope?,
            filter: filter?,
            reader: reader?,
            as_of: as_of?,
            order: order?,
            limit,
            skip,
            returns: returns?,
        })
    }

    fn raise(plan: &plan::Listing) -> ast::Listing {
        let plan::Listing { scope, filter, reader, as_of, order, limit, skip, returns } = plan;
        ast::Listing {
            scope: Node::raise(scope),
            filter: Node::raise(filter),
            reader: Node::raise(reader),
            as_of: Node::raise(as_of),
            order: raise_list(order),
            limit: raise_limit(*limit, *skip),
            returns: Node::raise(returns),
        }
    }
}

impl Node for ast::Count {
    type Plan = plan::Count;

    fn lower(&self, binder: &mut Binder<'_>) -> Option<plan::Count> {
        let ast::Count { thing, measures, group, listing } = self;
        let (thing, measures) = (thing.lower(binder), measures.lower(binder));
        let (group, listing) = (list(group, binder), listing.lower(binder));
        Some(plan::Count { thing: thing?, measures: measures?, group: group?, listing: listing? })
    }

    fn raise(plan: &plan::Count) -> ast::Count {
        let plan::Count { thing, measures, group, listing } = plan;
        ast::Count {
            thing: Node::raise(thing),
            measures: Node::raise(measures),
            group: raise_list(group),
            listing: Node::raise(listing),
        }
    }
}

/// A clause that lists at least one thing, in the tree; in a plan, no clause is an empty list.
type ListClause<T> = Option<Spanned<Vec<Spanned<T>>>>;

fn list<T: Node>(clause: &ListClause<T>, binder: &mut Binder<'_>) -> Option<Vec<T::Plan>> {
    clause.lower(binder).map(Option::unwrap_or_default)
}

fn raise_list<T: Node>(plan: &Vec<T::Plan>) -> ListClause<T> {
    (!plan.is_empty()).then(|| Node::raise(plan))
}

fn optional<T: Node>(node: Option<&T>, binder: &mut Binder<'_>) -> Option<Option<T::Plan>> {
    node.map_or(Some(None), |node| node.lower(binder).map(Some))
}

/// The number of rows, and of the rows before them.
fn limit(clause: &Option<Spanned<ast::Limit>>, binder: &mut Binder<'_>) -> Option<(Option<u64>, u64)> {
    let Some(limit) = clause else { return Some((None, 0)) };
    let (count, skip) = (limit.node.count.lower(binder), limit.node.skip.lower(binder));
    Some((Some(count?), skip?.unwrap_or(0)))
}

fn raise_limit(limit: Option<u64>, skip: u64) -> Option<Spanned<ast::Limit>> {
    let skip = (skip > 0).then_some(skip);
    limit.map(|count| ast::Limit { count: Node::raise(&count), skip: Node::raise(&skip) }.into())
}
