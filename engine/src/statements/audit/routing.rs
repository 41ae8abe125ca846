//! The measures of routing and of write-back (TierMem B.8, D.7, F.2), from events.

use super::scan::History;
use super::{AuditReport, Measure};
use crate::Result;
use crate::memory::router::{Action, Reward, Score};
use crate::read::snapshot::Snapshot;
use crate::statements::learn::finding::LearnOp;
use crate::statements::routing::RouteEvent;

/// Adds the measures.
pub(super) fn add(report: &mut AuditReport, snapshot: &Snapshot, history: &History) -> Result<()> {
    let mut routes = Vec::new();
    for route in snapshot.routes()? {
        if is_wanted(snapshot, history, route.episode.as_deref())? {
            routes.push(route);
        }
    }
    add_routes(report, &routes);
    let mut findings = [0u64; 3];
    for finding in snapshot.findings()? {
        if is_wanted(snapshot, history, finding.episode.as_deref())? {
            findings[finding.op as usize] += 1;
        }
    }
    let of = findings.iter().sum();
    for (op, name) in [(LearnOp::Add, "add"), (LearnOp::Update, "update"), (LearnOp::Skip, "skip")] {
        let value = (of > 0).then_some(findings[op as usize] as f64);
        report.measures.push(Measure { name: format!("write_back.{name}"), value, of });
    }
    add_latencies(report, &routes);
    add_labelled(report, &routes);
    Ok(())
}

fn is_wanted(snapshot: &Snapshot, history: &History, episode: Option<&str>) -> Result<bool> {
    let number = episode.map(|id| snapshot.state.episode_number(id)).transpose()?.flatten();
    Ok(history.is_wanted(number))
}

fn add_routes(report: &mut AuditReport, routes: &[RouteEvent]) {
    let actions = [Action::Answer, Action::Escalate];
    let taken = |action| routes.iter().filter(move |route| route.action == action);
    for action in actions {
        let count = taken(action).count() as f64;
        report.add(format!("route.{}", action.as_str()), count, routes.len() as u64);
    }
    for action in actions {
        let tokens: u64 = taken(action).map(|route| route.tokens).sum();
        report.add(format!("route_tokens.{}", action.as_str()), tokens as f64, taken(action).count() as u64);
    }
    let sum = |of: fn(&RouteEvent) -> u64| routes.iter().map(of).sum::<u64>();
    let hits = [
        ("original", sum(|route| route.hits.original)),
        ("linked_fact", sum(|route| route.hits.linked_fact)),
        ("refined", sum(|route| route.hits.refined)),
    ];
    let all = hits.iter().map(|(_, count)| count).sum();
    for (origin, count) in hits {
        report.add(format!("hits.{origin}"), count as f64, all);
    }
}

fn add_latencies(report: &mut AuditReport, routes: &[RouteEvent]) {
    let sorted = |of: fn(&RouteEvent) -> u64| {
        let mut micros: Vec<u64> = routes.iter().map(of).collect();
        micros.sort_unstable();
        micros
    };
    for (name, micros) in [("router", sorted(|route| route.router_micros)), ("routed", sorted(|route| route.micros))] {
        report.add_percentiles(name, &micros);
    }
}

fn add_labelled(report: &mut AuditReport, routes: &[RouteEvent]) {
    let mut score = Score::default();
    for route in routes {
        if let Some((summaries_suffice, raw_suffices)) = route.label {
            score.add(&Reward::default(), route.action, summaries_suffice, raw_suffices);
        }
    }
    let of = score.decisions;
    report.add("r_rate", score.escalated as f64, of);
    report.add("reward", score.reward, of);
    report.add("recall_at_hard", score.hard_escalated as f64, score.hard);
    report.add("repair_rate", score.repaired as f64, score.repaired + score.unrepaired);
    report.add("regress_rate", score.regressed as f64, score.regressed + score.unneeded);
    report.add("uor", score.omitted as f64, of);
    let unlabelled = routes.len() as u64 - of;
    if unlabelled > 0 {
        let note = "routed reads without a label, which the measures from r_rate on leave out";
        report.notes.push(format!("{note}: {unlabelled}"));
    }
}
