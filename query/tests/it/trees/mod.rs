//! Trees as the parser makes them, at random: every statement, clause and test.

use holotype_query::ast::*;
use holotype_query::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

type Tree<T> = BoxedStrategy<T>;

/// Pieces of source for parsers to stumble over.
pub(crate) const SCRAPS: &[&str] = &[
    "recall",
    "find",
    "count",
    "items",
    "where",
    "through",
    "->",
    "(",
    ")",
    "'x'",
    "\"y",
    "$p",
    "1",
    "-2.5",
    "7d",
    "1e400",
    ",",
    ";",
    ".",
    "*",
    "=",
    "!=",
    "<=",
    "and",
    "or",
    "not",
    "in",
    "episode",
    "between",
    "status",
    "fields",
    "score",
    "default",
    "stale",
    "by",
    "near",
    "up",
    "to",
    "hops",
    "limit",
    "as",
    "of",
    "commit",
    "at",
    "step",
    "with",
    "claims",
    "return",
    "explain",
    "why",
    "forget",
    "because",
    "from",
    "quoting",
    "remember",
    "fact",
    "mark",
    "failed",
    "link",
    "cites",
    "'t''1'",
    "'\\u{20ac}'",
    "'\\q'",
    "-- c\n",
    "é",
    "=>",
    "\u{feff}",
    "0x",
    "set",
    "half-life",
];

pub(crate) fn scrap() -> Tree<&'static str> {
    select(SCRAPS).boxed()
}

pub(crate) fn parameter_names() -> &'static [&'static str] {
    &["q", "half-life", "n_1", "É"]
}

pub(crate) fn script() -> Tree<Script> {
    (vec(statement(), 1..4), vec(".{0,12}", 0..3), any::<bool>())
        .prop_map(|(statements, comments, trailing)| {
            let last = statements.len() - 1;
            let comment = |(index, text): (usize, String)| Comment {
                statement: index.min(last),
                trailing: trailing && index == 0,
                text: text.replace(['\n', '\r'], " ").trim().to_owned(),
            };
            let mut comments: Vec<Comment> = comments.into_iter().enumerate().map(comment).collect();
            comments.sort_by_key(|it| (it.statement, it.trailing));
            Script { statements: statements.into_iter().map(Spanned::from).collect(), comments }
        })
        .boxed()
}

pub(crate) fn statement() -> Tree<Statement> {
    prop_oneof![
        6 => plain_statement(),
        1 => (any::<bool>(), plain_statement()).prop_map(|(analyze, statement)| {
            Statement::Explain(Explain { analyze, statement: Box::new(statement.into()) })
        }),
        1 => (any::<bool>(), item(), recall()).prop_map(|(not, item, recall)| {
            Statement::Why(Box::new(Why { not, item, recall }))
        }),
    ]
    .boxed()
}

fn plain_statement() -> Tree<Statement> {
    prop_oneof![
        4 => recall().prop_map(|it| Statement::Recall(Box::new(it))),
        4 => reading(),
        4 => writing(),
        2 => changing(),
    ]
    .boxed()
}

fn reading() -> Tree<Statement> {
    let find = (thing(), listing()).prop_map(|(thing, listing)| Statement::Find(Find { thing: thing.into(), listing }));
    let measure = (one_of(MeasureKind::ALL), name()).prop_map(|(kind, name)| Spanned::from(Measure { kind, name }));
    let bucket = (name(), of(interval()))
        .prop_map(|(name, every)| Spanned::from(Bucket { name, every: every.map(Spanned::from) }));
    let count = (thing(), vec(measure, 0..3), of(vec(bucket, 1..3)), listing()).prop_map(
        |(thing, measures, group, listing)| {
            let group = group.map(Spanned::from);
            Statement::Count(Count { thing: thing.into(), measures, group, listing })
        },
    );
    let walk = (any::<bool>(), vec(reference(), 1..3), vec(edge(), 0..3), of(count_arg()), listing()).prop_map(
        |(towards_sources, roots, edges, depth, listing)| {
            Statement::Walk(Walk { towards_sources, roots, edges, depth, listing })
        },
    );
    let verify = prop_oneof![
        reference().prop_map(Verify::Ref),
        (text_arg(), of(scope())).prop_map(|(text, scope)| Verify::Citations { text, scope }),
        Just(Verify::Log),
        Just(Verify::Catalog),
        Just(Verify::Segments),
        Just(Verify::All),
    ];
    let replayed = prop_oneof![id_arg().prop_map(Replayed::Receipt), count_arg().prop_map(Replayed::Last)];
    let without = prop_oneof![vec(reference(), 1..3).prop_map(Without::Refs), Just(Without::Each)];
    prop_oneof![
        find,
        count,
        walk,
        (of(text_arg()), listing()).prop_map(|(on, listing)| Statement::Conflicts(Conflicts { on, listing })),
        (reference(), listing()).prop_map(|(of, listing)| Statement::History(History { of, listing })),
        verify.prop_map(Statement::Verify),
        one_of(ShowTarget::ALL).prop_map(|it| Statement::Show(it.into())),
        id_arg().prop_map(Statement::ShowPage),
        as_of().prop_map(|past| Statement::ShowGraph(past.into())),
        (replayed, of(without)).prop_map(|(of, without)| Statement::Replay(Replay { of, without })),
    ]
    .boxed()
}

fn writing() -> Tree<Statement> {
    let record =
        (one_of(Kind::ALL), passage(), id_arg(), claims(), with()).prop_map(|(kind, text, episode, claims, with)| {
            Statement::Record(Record { kind: kind.into(), text, episode, claims, with })
        });
    let remember = (one_of(Kind::ALL), passage(), vec(pointer(), 0..3), of(id_arg()), claims(), with()).prop_map(
        |(kind, text, from, episode, claims, with)| {
            Statement::Remember(Remember { kind: kind.into(), text, from, episode, claims, with })
        },
    );
    let marking = prop_oneof![
        one_of(Mark::ALL).prop_map(Marking::State),
        number_arg().prop_map(Marking::Utility),
        number_arg().prop_map(Marking::Reward)
    ];
    prop_oneof![
        record,
        remember,
        (passage(), vec(pointer(), 1..3), claims(), any::<bool>(), of(item())).prop_map(
            |(text, from, claims, add_only, of)| {
                let update_of = of.filter(|_| !add_only);
                Statement::Learn(Learn { text, from, claims, add_only, update_of })
            }
        ),
        (passage(), vec(pointer(), 1..3), of(count_arg())).prop_map(|(text, from, top)| Statement::Reflect(Reflect {
            text,
            from,
            top
        })),
        (item(), passage(), vec(pointer(), 0..3), claims(), with())
            .prop_map(|(item, text, from, claims, with)| Statement::Update(Update { item, text, from, claims, with })),
        (vec(reference(), 1..3), text_arg())
            .prop_map(|(targets, because)| Statement::Retract(Retract { targets, because })),
        (mark_target(), marking, of(text_arg())).prop_map(|(target, marking, because)| {
            Statement::Mark(MarkStatement { target, marking: marking.into(), because })
        }),
        (any::<bool>(), item(), edge(), pointer())
            .prop_map(|(remove, item, edge, pointer)| { Statement::Link(Link { remove, item, edge, pointer }) }),
        (any::<bool>(), id_arg(), with())
            .prop_map(|(close, episode, with)| { Statement::Episode(EpisodeStatement { close, episode, with }) }),
        (name(), value_arg()).prop_map(|(name, value)| Statement::Set(Set { name, value })),
    ]
    .boxed()
}

/// A selection that selects something.
fn some_selection() -> Tree<Selection> {
    (selection(), scope())
        .prop_map(|(mut selection, scope)| {
            if selection.filter.is_none() {
                selection.scope = Some(scope);
            }
            selection
        })
        .boxed()
}

fn mark_target() -> Tree<MarkTarget> {
    prop_oneof![
        reference().prop_map(MarkTarget::Ref),
        (noun(), some_selection()).prop_map(|(noun, selection)| MarkTarget::Selected { noun, selection }),
    ]
    .boxed()
}

fn changing() -> Tree<Statement> {
    let merge = prop_oneof![
        (noun(), selection(), of(number_arg()), of(count_arg()))
            .prop_map(|(noun, selection, tau, top)| Merge::Candidates { noun, selection, tau, top }),
        (vec(item(), 2..4), passage(), one_of(MergeKind::ALL))
            .prop_map(|(items, into, kind)| { Merge::Items { items, into, kind: kind.into() } }),
    ];
    let target = prop_oneof![
        vec(reference(), 1..3).prop_map(ForgetTarget::Refs),
        (noun(), some_selection()).prop_map(|(noun, selection)| ForgetTarget::Selected { noun, selection }),
    ];
    let prune_target = (noun(), of(count_arg())).prop_map(|(noun, keep)| PruneTarget { noun, keep });
    prop_oneof![
        (noun(), selection_at(), of(number_arg()), of(one_of(Kind::ALL))).prop_map(|(noun, selection, tau, into)| {
            let into = into.map(Spanned::from);
            Statement::Consolidate(Consolidate { noun, selection, tau, into })
        }),
        merge.prop_map(Statement::Merge),
        (noun(), selection()).prop_map(|(noun, selection)| Statement::Induce(Induce { noun, selection })),
        (noun(), selection(), duration(), number_arg()).prop_map(|(noun, selection, half_life, below)| {
            Statement::Decay(Decay { noun, selection, half_life: half_life.into(), below })
        }),
        (noun(), selection(), duration()).prop_map(|(noun, selection, after)| Statement::Compress(Compress {
            noun,
            selection,
            after: after.into()
        })),
        (vec(prune_target, 1..3), selection_at(), of(number_arg()))
            .prop_map(|(targets, selection, redundant)| Statement::Prune(Prune { targets, selection, redundant })),
        (target, any::<bool>(), text_arg())
            .prop_map(|(target, cascade, because)| { Statement::Forget(Forget { target, cascade, because }) }),
    ]
    .boxed()
}

fn recall() -> Tree<Recall> {
    let asked =
        prop_oneof![text().prop_map(|text| Arg::Value(Passage { text: text + "?", vector: None })), param(),].boxed();
    let query = prop_oneof![
        (asked.clone(), of(param())).prop_map(|(text, near)| Query {
            text: Some(text.into()),
            near: near.map(Spanned::from),
            like: None
        }),
        param().prop_map(|near| Query { near: Some(near.into()), ..Query::default() }),
        item().prop_map(|like| Query { like: Some(like), ..Query::default() }),
    ];
    (query, clauses()).prop_map(|(query, clauses)| Recall { query, clauses }).boxed()
}

fn clauses() -> Tree<Clauses> {
    let first = (
        of(scope()),
        of(vec(stage(), 1..3)),
        of(predicate()),
        of(vec(flaw(), 1..3)),
        of(vec(flaw(), 1..3)),
        of(score()),
        of(count_arg()),
        of(escalate()),
    );
    let second = (
        of((of(noun()), of(count_arg()), of(count_arg()))),
        of(reader()),
        of(as_of()),
        of(count_arg()),
        of(number_arg()),
        of(limit()),
        any::<bool>(),
        (of(returns()), of(prop_oneof![Just(Lines::All), Just(Lines::None)])),
        any::<bool>(),
    );
    (first, second)
        .prop_map(|(first, second)| {
            let (scope, path, filter, include, exclude, score, relax, escalate) = first;
            let (expand, reader, as_of, budget, below, limit, receipt, (returns, lines), abstains) = second;
            Clauses {
                scope,
                path: path.map(Spanned::from),
                filter: filter.map(Spanned::from),
                include: include.map(Spanned::from),
                exclude: exclude.map(Spanned::from),
                score: score.map(Spanned::from),
                relax: relax.map(|below| Relax { below }.into()),
                escalate: escalate.map(Spanned::from),
                expand: expand.map(|(noun, depth, within_tokens)| Expand { noun, depth, within_tokens }.into()),
                reader: reader.map(Spanned::from),
                as_of: as_of.map(Spanned::from),
                budget: budget.map(|tokens| Budget { tokens }.into()),
                abstain: (abstains || below.is_some()).then(|| Abstain { below }.into()),
                limit: limit.map(Spanned::from),
                lines: lines.map(Spanned::from),
                receipt: receipt.then(|| WithReceipt.into()),
                returns: returns.map(Spanned::from),
            }
        })
        .boxed()
}

fn listing() -> Tree<Listing> {
    let key =
        (name(), of(one_of(Direction::ALL))).prop_map(|(name, direction)| Spanned::from(OrderKey { name, direction }));
    (of(scope()), of(predicate()), of(reader()), of(as_of()), of(vec(key, 1..3)), of(limit()), of(returns()))
        .prop_map(|(scope, filter, reader, as_of, order, limit, returns)| Listing {
            scope,
            filter: filter.map(Spanned::from),
            reader: reader.map(Spanned::from),
            as_of: as_of.map(Spanned::from),
            order: order.map(Spanned::from),
            limit: limit.map(Spanned::from),
            returns: returns.map(Spanned::from),
        })
        .boxed()
}

fn selection() -> Tree<Selection> {
    (of(scope()), of(predicate()))
        .prop_map(|(scope, filter)| Selection { scope, filter: filter.map(Spanned::from), reader: None })
        .boxed()
}

fn selection_at() -> Tree<Selection> {
    let at = |(selection, reader): (Selection, Option<Reader>)| Selection {
        reader: reader.map(Spanned::from).map(Box::new),
        ..selection
    };
    (selection(), of(reader())).prop_map(at).boxed()
}

fn scope() -> Tree<Spanned<Scope>> {
    prop_oneof![
        vec(id_arg(), 1..3).prop_map(Scope::Episodes),
        vec(id_arg(), 1..3).prop_map(Scope::Pages),
        Just(Scope::All),
    ]
    .prop_map(Spanned::from)
    .boxed()
}

fn stage() -> Tree<Spanned<Stage>> {
    let channel = one_of(Channel::ALL).prop_map(Spanned::from);
    let gather = (noun(), of(count_arg()), vec(channel, 0..3), of(count_arg()), of(predicate())).prop_map(
        |(noun, count, channels, pool, only)| {
            let only = only.map(Spanned::from);
            Stage::Gather(Box::new(Gather { noun, count, channels, pool, only }))
        },
    );
    let lift = (noun(), of(count_arg()), of(count_arg()))
        .prop_map(|(noun, count, votes)| Stage::Lift(Lift { noun, count, votes }));
    prop_oneof![4 => gather, 1 => lift]
        .prop_recursive(2, 4, 2, |inner| {
            let stages = vec(inner.prop_map(Spanned::from), 1..3);
            (stages, count_arg(), of(count_arg()), of(count_arg()))
                .prop_map(|(stages, up_to, carry, keep)| Stage::Hops(Hops { stages, up_to, carry, keep }))
        })
        .prop_map(Spanned::from)
        .boxed()
}

fn score() -> Tree<Score> {
    let base = prop_oneof![Just(ScoreBase::Zero), Just(ScoreBase::Default), name().prop_map(ScoreBase::Profile),];
    let term = (number_arg(), vec((name(), number_arg()), 0..3), of(interval()));
    (base, vec(term, 0..3), Just(Part::ALL.to_vec()).prop_shuffle(), number_arg())
        .prop_map(|(base, terms, parts, weight)| {
            let term = |(part, (weight, values, half_life)): (Part, (_, _, Option<Interval>))| {
                let half_life = half_life.map(Spanned::from);
                Spanned::from(Term { part: part.into(), weight, values, half_life })
            };
            let mut terms: Vec<_> = parts.into_iter().zip(terms).map(term).collect();
            if base == ScoreBase::Zero && terms.is_empty() {
                terms.push(term((Part::Words, (weight, Vec::new(), None))));
            }
            Score { base, terms }
        })
        .boxed()
}

fn escalate() -> Tree<Escalate> {
    (of(one_of(EscalateMode::ALL)), of((noun(), of(count_arg()))), of(count_arg()), of(number_arg()), any::<bool>())
        .prop_map(|(mode, to, rounds, protect, without_links)| {
            let (noun, count) = to.map_or((None, None), |(noun, count)| (Some(noun), count));
            Escalate { mode, noun, count, rounds, protect, without_links }
        })
        .boxed()
}

fn reader() -> Tree<Reader> {
    (of(count_arg()), of(time_arg()), of(id_arg()), count_arg())
        .prop_map(|(step, time, version, default)| {
            let is_empty = step.is_none() && time.is_none() && version.is_none();
            Reader { step: if is_empty { Some(default) } else { step }, time, version }
        })
        .boxed()
}

fn as_of() -> Tree<AsOf> {
    prop_oneof![count_arg().prop_map(AsOf::Commit), time_arg().prop_map(AsOf::Time)].boxed()
}

fn limit() -> Tree<Limit> {
    (count_arg(), of(count_arg())).prop_map(|(count, skip)| Limit { count, skip }).boxed()
}

fn returns() -> Tree<Returns> {
    prop_oneof![Just(Returns::All), vec(name(), 1..4).prop_map(Returns::Names)].boxed()
}

fn interval() -> Tree<Interval> {
    prop_oneof![duration().prop_map(Interval::Clock), count_arg().prop_map(Interval::Steps)].boxed()
}

fn flaw() -> Tree<Spanned<Flaw>> {
    let bound = prop_oneof![count_arg().prop_map(Bound::Steps), duration().prop_map(Bound::Age), Just(Bound::Version),];
    (one_of(FlawKind::ALL), vec(bound.prop_map(Spanned::from), 0..3))
        .prop_map(|(kind, window)| {
            let window = if kind == FlawKind::Stale { window } else { Vec::new() };
            Spanned::from(Flaw { kind, window })
        })
        .boxed()
}

fn predicate() -> Tree<Predicate> {
    let leaf = test().prop_map(|test| Predicate::Test(Box::new(test.into())));
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(any_of),
            vec(inner.clone(), 2..4).prop_map(all_of),
            inner.prop_map(|inner| Predicate::Not(Box::new(inner))),
        ]
    })
    .boxed()
}

/// An `Or` as the parser makes it: never of an `Or`.
fn any_of(predicates: Vec<Predicate>) -> Predicate {
    let flat = predicates.into_iter().flat_map(|it| match it {
        Predicate::Or(inner) => inner,
        other => vec![other],
    });
    Predicate::Or(flat.collect())
}

/// An `And` as the parser makes it: never of an `And`.
fn all_of(predicates: Vec<Predicate>) -> Predicate {
    let flat = predicates.into_iter().flat_map(|it| match it {
        Predicate::And(inner) => inner,
        other => vec![other],
    });
    Predicate::And(flat.collect())
}

fn test() -> Tree<Test> {
    let not = any::<bool>;
    let list = prop_oneof![3 => vec(value_arg(), 1..3).prop_map(Arg::Value), 1 => param()];
    prop_oneof![
        (name(), one_of(Op::ALL), value_arg()).prop_map(|(name, op, value)| Test::Compare { name, op, value }),
        (name(), not(), list).prop_map(|(name, not, list)| Test::In { name, not, list: list.into() }),
        (name(), not(), value_arg(), value_arg())
            .prop_map(|(name, not, low, high)| { Test::Between { name, not, low, high } }),
        (name(), not(), text_arg()).prop_map(|(name, not, text)| Test::Contains { name, not, text }),
        (name(), not(), text_arg()).prop_map(|(name, not, glob)| Test::Matches { name, not, glob }),
        name().prop_map(Test::Has),
        flaw().prop_map(|flaw| Test::Flaw(flaw.node)),
        Just(Test::Redacted),
        (edge(), of(pointer())).prop_map(|(edge, target)| Test::Edge { edge, target }),
        (text_arg(), of((one_of(Op::ALL), value_arg()))).prop_map(|(name, value)| Test::Claims { name, value }),
    ]
    .boxed()
}

fn claims() -> Tree<Vec<ClaimAssignment>> {
    let claim = (text_arg(), value_arg(), any::<bool>());
    let claim = claim.prop_map(|(name, value, global)| ClaimAssignment { name, value, global });
    vec(claim, 0..3).boxed()
}

fn with() -> Tree<Vec<Assignment>> {
    let assignment = (name(), value_arg()).prop_map(|(name, value)| Assignment { name, value });
    vec(assignment, 0..3).boxed()
}

fn pointer() -> Tree<Spanned<Pointer>> {
    let excerpt = prop_oneof![
        (count_arg(), count_arg()).prop_map(|(start, end)| Excerpt::Bytes { start, end }),
        text_arg().prop_map(Excerpt::Quoting),
    ];
    (reference(), of(text_arg()), of(excerpt))
        .prop_map(|(target, field, excerpt)| Pointer { target, field, excerpt }.into())
        .boxed()
}

fn reference() -> Tree<Spanned<Ref>> {
    prop_oneof![
        item().prop_map(|item| Ref::Item(item.node)),
        id_arg().prop_map(|key| Ref::Page(key.node)),
        id_arg().prop_map(|id| Ref::Episode(id.node)),
    ]
    .prop_map(Spanned::from)
    .boxed()
}

fn item() -> Tree<Spanned<Arg<ItemRef>>> {
    prop_oneof![
        any::<u64>().prop_map(|id| Arg::Value(ItemRef::Id(id))),
        text().prop_map(|key| Arg::Value(ItemRef::Key(key))),
        param(),
    ]
    .prop_map(Spanned::from)
    .boxed()
}

fn thing() -> Tree<Thing> {
    prop_oneof![
        6 => one_of(Noun::ALL).prop_map(Thing::Noun),
        1 => select(vec![Thing::Claims, Thing::Edges, Thing::Events, Thing::Receipts]),
    ]
    .boxed()
}

fn noun() -> Tree<Spanned<Noun>> {
    one_of(Noun::ALL).prop_map(Spanned::from).boxed()
}

fn edge() -> Tree<Spanned<Edge>> {
    one_of(Edge::ALL).prop_map(Spanned::from).boxed()
}

fn one_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> Tree<T> {
    select(all).boxed()
}

fn param<T: Clone + std::fmt::Debug + 'static>() -> Tree<Arg<T>> {
    select(parameter_names()).prop_map(|name| Arg::Param(name.to_owned())).boxed()
}

/// Attributes, and names that look like keywords where those could not stand.
fn name() -> Tree<Spanned<Name>> {
    let word = select(vec!["status", "step", "fields", "recency", "commit", "half-life", "limit", "where", "by", "é2"]);
    let part = prop_oneof![select(vec!["price", "x_1", "in", "failed"]).prop_map(str::to_owned), text(),];
    (word, vec(part, 0..3))
        .prop_map(|(word, parts)| Name::new(std::iter::once(word.to_owned()).chain(parts).collect::<Vec<_>>()).into())
        .boxed()
}

fn text() -> Tree<String> {
    prop_oneof![
        3 => "[a-zA-Z' ]{0,8}",
        1 => ".{0,8}",
        1 => vec(select(vec!['\'', '"', '\\', '\n', '\t', '\r', '\0', '-', ';', '$', '€']), 0..5)
            .prop_map(|chars| chars.into_iter().collect::<String>()),
    ]
    .boxed()
}

fn text_arg() -> Tree<Spanned<Arg<String>>> {
    prop_oneof![3 => text().prop_map(Arg::Value), 1 => param()].prop_map(Spanned::from).boxed()
}

fn id_arg() -> Tree<Spanned<Arg<Id>>> {
    prop_oneof![3 => text().prop_map(|text| Arg::Value(Id(text))), 1 => param()].prop_map(Spanned::from).boxed()
}

fn passage() -> Tree<Spanned<Arg<Passage>>> {
    let literal = text().prop_map(|text| Arg::Value(Passage { text, vector: None }));
    prop_oneof![3 => literal, 1 => param()].prop_map(Spanned::from).boxed()
}

fn count_arg() -> Tree<Spanned<Arg<u64>>> {
    prop_oneof![3 => any::<u64>().prop_map(Arg::Value), 1 => param()].prop_map(Spanned::from).boxed()
}

fn number_arg() -> Tree<Spanned<Arg<f64>>> {
    let finite = prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO;
    prop_oneof![finite.prop_map(Arg::Value), (-20i32..20).prop_map(|n| Arg::Value(f64::from(n) / 4.0)), param(),]
        .prop_map(Spanned::from)
        .boxed()
}

fn time_arg() -> Tree<Spanned<Arg<Time>>> {
    let micros = time::MIN_MICROS..=time::MAX_MICROS;
    prop_oneof![3 => micros.prop_map(|micros| Arg::Value(Time { micros })), 1 => param()]
        .prop_map(Spanned::from)
        .boxed()
}

fn duration() -> Tree<Duration> {
    (0u64..10_000, one_of(Unit::ALL))
        .prop_map(|(count, unit)| Duration::new(count, unit).expect("it is short enough"))
        .boxed()
}

fn value_arg() -> Tree<Spanned<Arg<Value>>> {
    let finite = prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO;
    let literal = prop_oneof![
        text().prop_map(Value::Text),
        any::<u64>().prop_map(|n| Value::Number(Number::Natural(n))),
        any::<i64>().prop_map(|n| Value::Number(Number::from(n))),
        finite.prop_map(|n| Value::Number(Number::Real(n))),
        duration().prop_map(Value::Duration),
        any::<bool>().prop_map(Value::Bool),
        name().prop_map(|name| Value::Word(name.node)),
    ];
    prop_oneof![5 => literal.prop_map(Arg::Value), 1 => param()].prop_map(Spanned::from).boxed()
}
