//! Formats clauses and predicates.

use std::fmt::{self, Display, Formatter};

use super::{commas, optional, separated};
use crate::ast::{
    AsOf, Bound, Bucket, Clauses, Escalate, Expand, Flaw, Gather, Hops, Interval, Lift, Limit, Listing, Measure,
    OrderKey, Predicate, PruneTarget, Reader, Returns, Scope, Score, ScoreBase, Selection, Stage, Term, Test,
};

impl Clauses {
    /// Each clause that is there, in order.
    pub(super) fn pieces(&self, pieces: &mut Vec<String>) {
        let Clauses {
            scope,
            path,
            filter,
            include,
            exclude,
            score,
            relax,
            escalate,
            expand,
            reader,
            as_of,
            budget,
            abstain,
            limit,
            lines,
            receipt,
            returns,
        } = self;
        push(pieces, "in ", scope);
        pieces.extend(path.iter().map(|path| format!("through {}", Stages(path))));
        push(pieces, "where ", filter);
        pieces.extend(include.iter().map(|flaws| format!("include {}", Commas(flaws))));
        pieces.extend(exclude.iter().map(|flaws| format!("exclude {}", Commas(flaws))));
        push(pieces, "score ", score);
        pieces.extend(relax.iter().map(|relax| format!("relax below {}", relax.below)));
        push(pieces, "escalate", escalate);
        push(pieces, "expand", expand);
        push(pieces, "at ", reader);
        push(pieces, "as of ", as_of);
        pieces.extend(budget.iter().map(|budget| format!("budget {} tokens", budget.tokens)));
        pieces.extend(abstain.iter().map(|abstain| match &abstain.below {
            Some(below) => format!("abstain below {below}"),
            None => "abstain".to_owned(),
        }));
        push(pieces, "limit ", limit);
        pieces.extend(lines.iter().map(|lines| format!("lines {}", lines.node)));
        pieces.extend(receipt.iter().map(|_| "with receipt".to_owned()));
        push(pieces, "return ", returns);
    }
}

impl Listing {
    /// Each clause that is there, in order.
    pub(super) fn pieces(&self, pieces: &mut Vec<String>) {
        let Listing { scope, filter, reader, as_of, order, limit, returns } = self;
        push(pieces, "in ", scope);
        push(pieces, "where ", filter);
        push(pieces, "at ", reader);
        push(pieces, "as of ", as_of);
        pieces.extend(order.iter().map(|keys| format!("order by {}", Commas(keys))));
        push(pieces, "limit ", limit);
        push(pieces, "return ", returns);
    }
}

impl Selection {
    /// Each clause that is there, in order.
    pub(super) fn pieces(&self, pieces: &mut Vec<String>) {
        push(pieces, "in ", &self.scope);
        push(pieces, "where ", &self.filter);
        push(pieces, "at ", &self.reader);
    }
}

/// Adds `before` and the thing, when it is there.
pub(super) fn push<T: Display>(pieces: &mut Vec<String>, before: &str, thing: &Option<T>) {
    pieces.extend(thing.iter().map(|thing| format!("{before}{thing}")));
}

/// Things with commas between them.
pub(super) struct Commas<'t, T>(pub(super) &'t [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        commas(f, self.0)
    }
}

struct Stages<'t, T>(&'t [T]);

impl<T: Display> Display for Stages<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        separated(f, self.0, " -> ")
    }
}

impl Display for Scope {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Episodes(ids) => write!(f, "episode {}", Commas(ids)),
            Scope::Pages(keys) => write!(f, "page {}", Commas(keys)),
            Scope::All => f.write_str("all"),
        }
    }
}

impl Display for Stage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Gather(gather) => gather.fmt(f),
            Stage::Hops(hops) => hops.fmt(f),
            Stage::Lift(lift) => lift.fmt(f),
        }
    }
}

impl Display for Gather {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.noun.fmt(f)?;
        optional(f, " ", &self.count)?;
        if !self.channels.is_empty() {
            write!(f, " by {}", Commas(&self.channels))?;
        }
        optional(f, " pool ", &self.pool)?;
        match &self.only {
            Some(only) => write!(f, " only ({only})"),
            None => Ok(()),
        }
    }
}

impl Display for Hops {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "({}) up to {} hops", Stages(&self.stages), self.up_to)?;
        optional(f, " carry ", &self.carry)?;
        optional(f, " keep ", &self.keep)
    }
}

impl Display for Lift {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "lift to {}", self.noun)?;
        optional(f, " ", &self.count)?;
        optional(f, " votes ", &self.votes)
    }
}

impl Display for Flaw {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if self.window.is_empty() {
            return Ok(());
        }
        write!(f, "({})", Commas(&self.window))
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Steps(count) => write!(f, "{count} steps"),
            Bound::Age(duration) => duration.fmt(f),
            Bound::Version => f.write_str("version"),
        }
    }
}

impl Display for Interval {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Interval::Clock(duration) => duration.fmt(f),
            Interval::Steps(count) => write!(f, "{count} steps"),
        }
    }
}

impl Display for Score {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.base {
            ScoreBase::Zero => return commas(f, &self.terms),
            ScoreBase::Default => f.write_str("default")?,
            ScoreBase::Profile(name) => write!(f, "profile {name}")?,
        }
        for term in &self.terms {
            write!(f, ", {term}")?;
        }
        Ok(())
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.part, self.weight)?;
        for (index, (name, weight)) in self.values.iter().enumerate() {
            let before = if index == 0 { " (" } else { ", " };
            write!(f, "{before}{name} {weight}")?;
        }
        if !self.values.is_empty() {
            f.write_str(")")?;
        }
        optional(f, " half-life ", &self.half_life)
    }
}

impl Display for Escalate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        optional(f, " ", &self.mode)?;
        optional(f, " to ", &self.noun)?;
        optional(f, " ", &self.count)?;
        if let Some(rounds) = &self.rounds {
            write!(f, " up to {rounds} rounds")?;
        }
        optional(f, " protect ", &self.protect)?;
        f.write_str(if self.without_links { " without links" } else { "" })
    }
}

impl Display for Expand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        optional(f, " to ", &self.noun)?;
        optional(f, " depth ", &self.depth)?;
        match &self.within_tokens {
            Some(tokens) => write!(f, " within {tokens} tokens"),
            None => Ok(()),
        }
    }
}

impl Display for Reader {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let step = self.step.iter().map(|step| format!("step {step}"));
        let time = self.time.iter().map(|time| format!("time {time}"));
        let version = self.version.iter().map(|version| format!("version {version}"));
        let moments: Vec<String> = step.chain(time).chain(version).collect();
        commas(f, &moments)
    }
}

impl Display for AsOf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AsOf::Commit(number) => write!(f, "commit {number}"),
            AsOf::Time(time) => write!(f, "time {time}"),
        }
    }
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.count.fmt(f)?;
        optional(f, " skip ", &self.skip)
    }
}

impl Display for Returns {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Returns::All => f.write_str("*"),
            Returns::Names(names) => commas(f, names),
        }
    }
}

impl Display for OrderKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        optional(f, " ", &self.direction)
    }
}

impl Display for Measure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Display for Bucket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        optional(f, " every ", &self.every)
    }
}

impl Display for PruneTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.noun.fmt(f)?;
        optional(f, " to ", &self.keep)
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Or(any) => separated(f, any, " or "),
            Predicate::And(all) => {
                let all: Vec<Bracketed<'_>> = all.iter().map(Bracketed).collect();
                separated(f, &all, " and ")
            }
            Predicate::Not(inner) => match **inner {
                Predicate::And(_) => write!(f, "not ({inner})"),
                _ => write!(f, "not {}", Bracketed(inner)),
            },
            Predicate::Test(test) => test.fmt(f),
        }
    }
}

/// A predicate inside another that binds tighter than `or`.
struct Bracketed<'p>(&'p Predicate);

impl Display for Bracketed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Predicate::Or(_) => write!(f, "({})", self.0),
            _ => self.0.fmt(f),
        }
    }
}

impl Display for Test {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let negation = |not: bool| if not { " not" } else { "" };
        match self {
            Test::Compare { name, op, value } => write!(f, "{name} {op} {value}"),
            Test::In { name, not, list } => write!(f, "{name}{} in {list}", negation(*not)),
            Test::Between { name, not, low, high } => {
                write!(f, "{name}{} between {low} and {high}", negation(*not))
            }
            Test::Contains { name, not, text } => {
                write!(f, "{name}{} contains {text}", negation(*not))
            }
            Test::Matches { name, not, glob } => {
                write!(f, "{name}{} matches {glob}", negation(*not))
            }
            Test::Has(name) => write!(f, "has {name}"),
            Test::Flaw(flaw) => flaw.fmt(f),
            Test::Redacted => f.write_str("redacted"),
            Test::Edge { edge, target } => match target {
                Some(pointer) => write!(f, "{edge} {pointer}"),
                None => write!(f, "{edge} any"),
            },
            Test::Claims { name, value } => match value {
                Some((op, value)) => write!(f, "claims {name} {op} {value}"),
                None => write!(f, "claims {name}"),
            },
        }
    }
}
