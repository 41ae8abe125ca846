//! Formats statements as pieces, on one line or on several.

use std::fmt::{self, Display, Formatter};

use super::clauses::{Commas, push};
use super::{Quoted, optional};
use crate::ast::{
    Assignment, ClaimAssignment, Count, ForgetTarget, MarkTarget, Marking, Merge, Query, Recall, Replay, Replayed, Set,
    Statement, Verify, Walk, Without,
};
use crate::attributes::{DECLARED, FIELD_TYPES};
use crate::lexer::is_word;
use crate::value::Value;

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&pieces(self).join(" "))
    }
}

impl Display for Recall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut pieces = Vec::new();
        recall(self, &mut pieces);
        f.write_str(&pieces.join(" "))
    }
}

/// The statement and its clauses, each clause a piece.
pub(super) fn pieces(statement: &Statement) -> Vec<String> {
    let verb = statement.verb();
    let mut pieces = Vec::new();
    match statement {
        Statement::Explain(explain) => {
            pieces = self::pieces(&explain.statement);
            let analyze = if explain.analyze { "analyze " } else { "" };
            pieces[0].insert_str(0, &format!("explain {analyze}"));
        }
        Statement::Why(why) => {
            recall(&why.recall, &mut pieces);
            let not = if why.not { "not " } else { "" };
            pieces[0].insert_str(0, &format!("why {not}{} in ", why.item));
        }
        Statement::Recall(it) => recall(it, &mut pieces),
        Statement::Find(find) => {
            pieces.push(format!("find {}", find.thing));
            find.listing.pieces(&mut pieces);
        }
        Statement::Count(it) => count(it, &mut pieces),
        Statement::Walk(it) => walk(it, verb, &mut pieces),
        Statement::Conflicts(conflicts) => {
            pieces.push(verb.to_owned());
            push(&mut pieces, "on ", &conflicts.on);
            conflicts.listing.pieces(&mut pieces);
        }
        Statement::History(history) => {
            pieces.push(format!("history of {}", history.of));
            history.listing.pieces(&mut pieces);
        }
        Statement::Verify(verify) => pieces.push(format!("verify {verify}")),
        Statement::Audit(audit) => {
            pieces.push(verb.to_owned());
            push(&mut pieces, "in ", &audit.scope);
        }
        Statement::Show(what) => pieces.push(format!("show {what}")),
        Statement::ShowGraph(as_of) => pieces.push(format!("show graph as of {as_of}")),
        Statement::ShowPage(key) => pieces.push(format!("show page {key}")),
        Statement::Replay(Replay { of, without }) => {
            pieces.push(match of {
                Replayed::Receipt(receipt) => format!("replay {receipt}"),
                Replayed::Last(count) => format!("replay last {count}"),
            });
            pieces.extend(without.as_ref().map(|without| match without {
                Without::Refs(refs) => format!("without {}", Commas(refs)),
                Without::Each => "without each".to_owned(),
            }));
        }
        _ => write(statement, &mut pieces),
    }
    pieces
}

fn recall(recall: &Recall, pieces: &mut Vec<String>) {
    pieces.push(format!("recall {}", recall.query));
    recall.clauses.pieces(pieces);
}

fn count(count: &Count, pieces: &mut Vec<String>) {
    let mut head = format!("count {}", count.thing);
    for measure in &count.measures {
        head += &format!(", {measure}");
    }
    pieces.push(head);
    pieces.extend(count.group.iter().map(|buckets| format!("by {}", Commas(buckets))));
    count.listing.pieces(pieces);
}

fn walk(walk: &Walk, verb: &str, pieces: &mut Vec<String>) {
    pieces.push(format!("{verb} of {}", Commas(&walk.roots)));
    if !walk.edges.is_empty() {
        pieces.push(format!("by {}", Commas(&walk.edges)));
    }
    push(pieces, "depth ", &walk.depth);
    walk.listing.pieces(pieces);
}

/// The pieces of a statement that writes.
fn write(statement: &Statement, pieces: &mut Vec<String>) {
    match statement {
        Statement::Record(record) => {
            pieces.push(format!("record {} {}", record.kind, record.text));
            pieces.push(format!("in episode {}", record.episode));
            claims(&record.claims, pieces);
            with(&record.with, pieces);
        }
        Statement::Remember(remember) => {
            pieces.push(format!("remember {} {}", remember.kind, remember.text));
            pieces.push(match remember.from.as_slice() {
                [] => "ungrounded".to_owned(),
                from => format!("from {}", Commas(from)),
            });
            push(pieces, "in episode ", &remember.episode);
            claims(&remember.claims, pieces);
            with(&remember.with, pieces);
        }
        Statement::Learn(learn) => {
            pieces.push(format!("learn {}", learn.text));
            pieces.push(format!("from {}", Commas(&learn.from)));
            claims(&learn.claims, pieces);
            if learn.add_only {
                pieces.push("add only".to_owned());
            }
            push(pieces, "as update of ", &learn.update_of);
        }
        Statement::Reflect(reflect) => {
            pieces.push(format!("reflect {}", reflect.text));
            pieces.push(format!("from {}", Commas(&reflect.from)));
            push(pieces, "top ", &reflect.top);
        }
        Statement::Update(update) => {
            pieces.push(format!("update {} to {}", update.item, update.text));
            if !update.from.is_empty() {
                pieces.push(format!("from {}", Commas(&update.from)));
            }
            claims(&update.claims, pieces);
            with(&update.with, pieces);
        }
        Statement::Retract(retract) => {
            pieces.push(format!("retract {}", Commas(&retract.targets)));
            pieces.push(format!("because {}", retract.because));
        }
        Statement::Mark(mark) => {
            let marking = match &mark.marking.node {
                Marking::State(state) => state.to_string(),
                Marking::Utility(utility) => format!("utility {utility}"),
                Marking::Reward(reward) => format!("reward {reward}"),
            };
            match &mark.target {
                MarkTarget::Ref(it) => pieces.push(format!("mark {it} {marking}")),
                MarkTarget::Selected { noun, selection } => {
                    pieces.push(format!("mark {noun}"));
                    selection.pieces(pieces);
                    pieces.push(format!("as {marking}"));
                }
            }
            push(pieces, "because ", &mark.because);
        }
        _ => change(statement, pieces),
    }
}

/// The pieces of a statement that changes what is there.
fn change(statement: &Statement, pieces: &mut Vec<String>) {
    match statement {
        Statement::Link(link) => {
            let verb = statement.verb();
            pieces.push(format!("{verb} {} {} {}", link.item, link.edge, link.pointer));
        }
        Statement::Consolidate(consolidate) => {
            pieces.push(format!("consolidate {}", consolidate.noun));
            consolidate.selection.pieces(pieces);
            push(pieces, "tau ", &consolidate.tau);
            push(pieces, "into ", &consolidate.into);
        }
        Statement::Induce(induce) => {
            pieces.push(format!("induce {}", induce.noun));
            induce.selection.pieces(pieces);
        }
        Statement::Decay(decay) => {
            pieces.push(format!("decay {}", decay.noun));
            decay.selection.pieces(pieces);
            pieces.push(format!("half-life {}", decay.half_life));
            pieces.push(format!("below {}", decay.below));
        }
        Statement::Compress(compress) => {
            pieces.push(format!("compress {}", compress.noun));
            compress.selection.pieces(pieces);
            pieces.push(format!("after {}", compress.after));
        }
        Statement::Merge(it) => merge(it, pieces),
        Statement::Prune(prune) => {
            pieces.push(format!("prune {}", Commas(&prune.targets)));
            prune.selection.pieces(pieces);
            push(pieces, "redundant above ", &prune.redundant);
        }
        Statement::Forget(forget) => {
            match &forget.target {
                ForgetTarget::Refs(refs) => pieces.push(format!("forget {}", Commas(refs))),
                ForgetTarget::Selected { noun, selection } => {
                    pieces.push(format!("forget {noun}"));
                    selection.pieces(pieces);
                }
            }
            let cascade = if forget.cascade { "cascade " } else { "" };
            pieces.push(format!("{cascade}because {}", forget.because));
        }
        Statement::Episode(it) => {
            pieces.push(format!("{} episode {}", statement.verb(), it.episode));
            with(&it.with, pieces);
        }
        Statement::Set(set) => pieces.push(match declaration(set) {
            Some((field, ty)) => format!("declare field {field} {ty}"),
            None => format!("set {} = {}", set.name, set.value),
        }),
        _ => unreachable!("a statement that reads"),
    }
}

/// The field and its type, if the setting declares one.
fn declaration(set: &Set) -> Option<(FieldPath<'_>, &str)> {
    match (set.name.parts(), set.value.value()) {
        ([first, path @ ..], Some(Value::Text(ty)))
            if first == DECLARED && !path.is_empty() && FIELD_TYPES.contains(&ty.as_str()) =>
        {
            Some((FieldPath(path), ty))
        }
        _ => None,
    }
}

/// The path of a field, its odd parts quoted.
struct FieldPath<'p>(&'p [String]);

impl Display for FieldPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            if is_word(part) { write!(f, "{dot}{part}")? } else { write!(f, "{dot}{}", Quoted(part))? }
        }
        Ok(())
    }
}

fn merge(merge: &Merge, pieces: &mut Vec<String>) {
    match merge {
        Merge::Candidates { noun, selection, tau, top } => {
            pieces.push(format!("merge {noun}"));
            selection.pieces(pieces);
            push(pieces, "tau ", tau);
            push(pieces, "top ", top);
        }
        Merge::Items { items, into, kind } => {
            pieces.push(format!("merge {}", Commas(items)));
            pieces.push(format!("into {into}"));
            pieces.push(format!("as {kind}"));
        }
    }
}

fn claims(claims: &[ClaimAssignment], pieces: &mut Vec<String>) {
    if !claims.is_empty() {
        pieces.push(format!("claims {}", Commas(claims)));
    }
}

fn with(with: &[Assignment], pieces: &mut Vec<String>) {
    if !with.is_empty() {
        pieces.push(format!("with {}", Commas(with)));
    }
}

impl Display for ClaimAssignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let scope = if self.global { " global" } else { "" };
        write!(f, "{} = {}{scope}", self.name, self.value)
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.value)
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(item) = &self.like {
            return write!(f, "like {item}");
        }
        match (&self.text, &self.near) {
            (Some(text), Some(near)) => write!(f, "{text} near {near}"),
            (Some(text), None) => text.fmt(f),
            (None, Some(near)) => write!(f, "near {near}"),
            (None, None) => f.write_str("''"),
        }
    }
}

impl Display for Verify {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Verify::Ref(reference) => reference.fmt(f),
            Verify::Log => f.write_str("log"),
            Verify::Catalog => f.write_str("catalog"),
            Verify::Segments => f.write_str("segments"),
            Verify::All => f.write_str("all"),
            Verify::Citations { text, scope } => {
                write!(f, "citations in {text}")?;
                optional(f, " in ", scope)
            }
        }
    }
}
