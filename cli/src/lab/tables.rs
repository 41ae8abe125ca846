//! The tables, each from the lines of its kind and what the database knows of them.

use super::PaperTable;
use super::log::{Entry, Log};
use crate::failure::Failure;
use crate::rollouts::lines as runs;
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::credit::{
    ChangeAnswer, CreditOptions, Deconfounding, Run, Scoreboard, Template, WordScorer, deconfound, exact_match, word_f1,
};
use holotype::density::{Case, DensityOptions, density_with};
use holotype::query::{ParamValue, Params};
use holotype::router::Action;
use holotype::{AuditReport, RouteEvent, Snapshot, StepCost};
use std::collections::{BTreeMap, BTreeSet};

/// The names of the tables.
pub(super) const NAMES: [&str; 15] = [
    "helm-1",
    "helm-2",
    "helm-4",
    "helm-5",
    "helm-13",
    "helm-14",
    "tiermem-1",
    "tiermem-4",
    "tiermem-8",
    "tiermem-13",
    "plugmem-3",
    "plugmem-7",
    "plugmem-14",
    "himpo-3",
    "himpo-4",
];

type Row = Vec<Option<Cell>>;
/// A measure of Table 4 of HiMPO.
type Measured = fn(&Deconfounding) -> Option<f64>;

/// Every table that the log has lines for.
pub(super) fn all(snapshot: &Snapshot, log: &Log) -> Result<Vec<PaperTable>, Failure> {
    let mut found = Vec::new();
    helm(snapshot, log, &mut found)?;
    tiermem(snapshot, log, &mut found)?;
    plugmem(snapshot, log, &mut found)?;
    himpo(log, &mut found)?;
    Ok(found)
}

fn add(found: &mut Vec<PaperTable>, name: &'static str, title: &'static str, columns: &[&str], rows: Vec<Row>) {
    if !rows.is_empty() {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        found.push(PaperTable { name, title, table: Table { verb: "lab", columns, rows, ..Table::default() } });
    }
}

fn text(text: impl Into<String>) -> Option<Cell> {
    Some(Cell::Text(text.into()))
}

fn number(value: Option<f64>) -> Option<Cell> {
    value.map(|value| Cell::Number((value * 1e4).round() / 1e4))
}

fn count(value: usize) -> Option<Cell> {
    Some(Cell::count(value as u64))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

fn share(entries: &[&Entry], name: &str) -> Option<f64> {
    mean(entries.iter().filter_map(|entry| entry.flag(name)).map(|is| f64::from(u8::from(is))))
}

fn average(entries: &[&Entry], name: &str) -> Option<f64> {
    mean(entries.iter().filter_map(|entry| entry.number(name)))
}

/// The entries by a member, in the order of their first lines.
fn by<'e>(entries: &'e [Entry], name: &str) -> Vec<(String, Vec<&'e Entry>)> {
    let mut groups: Vec<(String, Vec<&Entry>)> = Vec::new();
    for entry in entries {
        let Some(value) = entry.text(name) else { continue };
        match groups.iter_mut().find(|(known, _)| known == value) {
            Some((_, of)) => of.push(entry),
            None => groups.push((value.to_owned(), vec![entry])),
        }
    }
    groups
}

// ---- HELM ----

/// The benchmark of an episode, with its split.
fn setting(entry: &Entry) -> String {
    let benchmark = entry.text("benchmark").unwrap_or("all");
    entry.text("split").map_or(benchmark.to_owned(), |split| format!("{benchmark} ({split})"))
}

fn step_costs(log: &Log, episodes: &BTreeSet<&str>) -> Vec<StepCost> {
    let micros = |entry: &Entry, name: &str| entry.number(name).map(|micros| micros as u64);
    let of = log.costs.iter().filter(|entry| entry.text("episode").is_some_and(|id| episodes.contains(id)));
    let cost = |entry: &Entry| StepCost {
        episode: entry.text("episode").unwrap_or_default().to_owned(),
        step: entry.whole("step"),
        tokens: ["system", "history", "tools"].map(|name| entry.whole(name)),
        micros: [micros(entry, "search_us"), micros(entry, "expand_us"), None],
    };
    of.map(cost).collect()
}

fn audited(snapshot: &Snapshot, log: &Log, of: &[&Entry]) -> Result<AuditReport, Failure> {
    let ids: BTreeSet<&str> = of.iter().filter_map(|entry| entry.text("id")).collect();
    let costs = step_costs(log, &ids);
    Ok(snapshot.audit(&ids.into_iter().collect::<Vec<_>>(), &costs)?)
}

fn helm(snapshot: &Snapshot, log: &Log, found: &mut Vec<PaperTable>) -> Result<(), Failure> {
    let settings: Vec<String> = by_setting(log).into_iter().map(|(name, _)| name).collect();
    let rates = |of: &[&Entry]| -> Row {
        let in_setting =
            |name: &String| -> Vec<&Entry> { of.iter().copied().filter(|entry| setting(entry) == **name).collect() };
        settings.iter().map(|name| number(share(&in_setting(name), "success"))).collect()
    };
    let with_rates = |first: &str, last: &[&str]| -> Vec<String> {
        let rates = settings.iter().map(|name| format!("SR {name}"));
        [first.to_owned()].into_iter().chain(rates).chain(last.iter().map(|name| (*name).to_owned())).collect()
    };
    let mut rows = Vec::new();
    for (name, of) in by(&log.episodes, "recall") {
        let audit = audited(snapshot, log, &of)?;
        let mut row = vec![text(name)];
        row.extend(rates(&of));
        row.extend([number(audit.get("ctu")), number(audit.get("epierr_steps"))]);
        row.extend(["coverage", "validity", "precision"].map(|name| number(average(&of, name))));
        rows.push(row);
    }
    let columns = with_rates("variant", &["CTU", "EpiErr", "Cov", "C-Valid", "C-P"]);
    add(found, "helm-1", "HELM Table 1: faithfulness controls", &refs(&columns), rows);
    let mut rows = Vec::new();
    for (name, of) in by(&log.episodes, "controller") {
        let audit = audited(snapshot, log, &of)?;
        let writes = audit.get("w_per_step");
        rows.push(vec![text(name), number(average(&of, "score")), number(audit.get("ctu")), number(writes)]);
    }
    let columns = ["controller", "score", "tokens", "write rate"];
    add(found, "helm-2", "HELM Table 2: controller ablation", &columns, rows);
    let mut rows = Vec::new();
    for (name, of) in by(&log.episodes, "ablation") {
        let audit = audited(snapshot, log, &of)?;
        let mut row = vec![text(name)];
        row.extend(rates(&of));
        row.extend([number(audit.get("ctu")), number(audit.get("epierr_steps"))]);
        rows.push(row);
    }
    let columns = with_rates("variant", &["CTU", "EpiErr"]);
    add(found, "helm-4", "HELM Table 4: component ablations", &refs(&columns), rows);
    let mut rows = Vec::new();
    for (name, of) in by(&log.episodes, "layers") {
        let audit = audited(snapshot, log, &of)?;
        let errors = number(audit.get("epierr_steps"));
        rows.push(vec![text(name), number(average(&of, "score")), number(audit.get("ctu")), errors]);
    }
    add(found, "helm-5", "HELM Table 5: layer ablations", &["variant", "score", "tokens", "EpiErr"], rows);
    operations(snapshot, log, found)
}

fn by_setting(log: &Log) -> Vec<(String, Vec<&Entry>)> {
    let mut groups: Vec<(String, Vec<&Entry>)> = Vec::new();
    for entry in &log.episodes {
        let name = setting(entry);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of)) => of.push(entry),
            None => groups.push((name, vec![entry])),
        }
    }
    groups
}

/// HELM Tables 13 and 14, by benchmark.
fn operations(snapshot: &Snapshot, log: &Log, found: &mut Vec<PaperTable>) -> Result<(), Failure> {
    const PARTS: [&str; 4] = ["search_us", "controller_us", "generation_us", "expand_us"];
    let (mut frequencies, mut costs) = (Vec::new(), Vec::new());
    for (name, of) in by_setting(log) {
        let audit = audited(snapshot, log, &of)?;
        let measures = ["r_per_step", "w_per_step", "c_per_episode"].map(|name| number(audit.get(name)));
        frequencies.push([text(name.clone())].into_iter().chain(measures).collect::<Row>());
        let ids: BTreeSet<&str> = of.iter().filter_map(|entry| entry.text("id")).collect();
        let of_episodes = log.costs.iter().filter(|entry| entry.text("episode").is_some_and(|id| ids.contains(id)));
        let measured: Vec<&Entry> =
            of_episodes.filter(|entry| PARTS.iter().any(|part| entry.number(part).is_some())).collect();
        if measured.is_empty() {
            continue;
        }
        for percent in [50, 95] {
            let of_part = |part: &str| percentile(measured.iter().filter_map(|entry| entry.number(part)), percent);
            let whole = |entry: &&Entry| PARTS.iter().filter_map(|part| entry.number(part)).sum::<f64>();
            let mut row = vec![text(format!("{name} p{percent}"))];
            row.extend(PARTS.map(|part| number(of_part(part))));
            row.push(number(percentile(measured.iter().map(whole), percent)));
            costs.push(row);
        }
    }
    let columns = ["setting", "R/step", "W/step", "C/ep"];
    add(found, "helm-13", "HELM Table 13: memory operations", &columns, frequencies);
    let columns = ["setting", "Emb+ANN ms", "Ctrl ms", "Gen ms", "Prov ms", "Total ms"];
    add(found, "helm-14", "HELM Table 14: cost of a step", &columns, costs);
    Ok(())
}

/// The percentile of durations in microseconds by the nearest rank, in milliseconds.
fn percentile(micros: impl Iterator<Item = f64>, percent: usize) -> Option<f64> {
    let mut sorted: Vec<f64> = micros.collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).map(|micros| micros / 1000.0)
}

fn refs(columns: &[String]) -> Vec<&str> {
    columns.iter().map(String::as_str).collect()
}

// ---- TierMem ----

/// A routed question: what the log says of it, and what the database knows.
struct Routed<'l> {
    entry: &'l Entry,
    is_raw: bool,
    tokens: Option<f64>,
    seconds: Option<f64>,
}

impl<'l> Routed<'l> {
    fn new(entry: &'l Entry, events: &BTreeMap<&str, &RouteEvent>) -> Routed<'l> {
        let event = entry.text("receipt").and_then(|receipt| events.get(receipt));
        let said = entry.text("action").map(|action| matches!(action, "R" | "escalate"));
        let is_raw = said.or(event.map(|event| event.action == Action::Escalate)).unwrap_or(false);
        let tokens = entry.number("tokens_in").or(event.map(|event| event.tokens as f64));
        let seconds = entry.number("seconds").or(event.map(|event| event.micros as f64 / 1e6));
        Routed { entry, is_raw, tokens, seconds }
    }

    fn is(&self, name: &str) -> bool {
        self.entry.flag(name).unwrap_or(false)
    }
}

fn part(routed: &[&Routed<'_>], holds: impl Fn(&Routed<'_>) -> bool) -> Option<f64> {
    mean(routed.iter().map(|one| f64::from(u8::from(holds(one)))))
}

fn tiermem(snapshot: &Snapshot, log: &Log, found: &mut Vec<PaperTable>) -> Result<(), Failure> {
    if log.routes.is_empty() {
        return Ok(());
    }
    let events = snapshot.routes()?;
    let with_receipt = events.iter().filter_map(|event| Some((event.receipt.as_deref()?, event)));
    let events: BTreeMap<&str, &RouteEvent> = with_receipt.collect();
    let all: Vec<Routed<'_>> = log.routes.iter().map(|entry| Routed::new(entry, &events)).collect();
    let (mut main, mut links, mut matrix) = (Vec::new(), Vec::new(), Vec::new());
    for (system, _) in by(&log.routes, "system") {
        let of: Vec<&Routed<'_>> = all.iter().filter(|one| one.entry.text("system") == Some(system.as_str())).collect();
        let accuracy = part(&of, |one| one.is("correct"));
        let tokens = mean(of.iter().filter_map(|one| one.tokens));
        let seconds = mean(of.iter().filter_map(|one| one.seconds));
        // A first tier that was believed, although raw pages have what it lacks.
        let uor = part(&of, |one| !one.is_raw && !one.is("s") && one.is("r"));
        main.push(vec![text(system.clone()), number(accuracy), number(uor), number(tokens), number(seconds)]);
        let raw: Vec<&Routed<'_>> = of.iter().copied().filter(|one| one.is_raw).collect();
        let (rate, at_raw) = (part(&of, |one| one.is_raw), part(&raw, |one| one.is("correct")));
        let cells = [accuracy, rate, at_raw, tokens, seconds].map(number);
        links.push([text(system.clone())].into_iter().chain(cells).collect());
        for (s, r) in [(true, true), (true, false), (false, true), (false, false)] {
            let held: Vec<&&Routed<'_>> = raw.iter().filter(|one| one.is("s") == s && one.is("r") == r).collect();
            let right = held.iter().filter(|one| one.is("correct")).count();
            let word = |is: bool| if is { "correct" } else { "wrong" };
            let category = format!("S_{}_R_{}", word(s), word(r));
            matrix.push(vec![
                text(system.clone()),
                text(category),
                count(held.len()),
                count(right),
                count(held.len() - right),
            ]);
        }
    }
    let columns = ["system", "Acc.", "UOR", "Tok_in", "Lat. s"];
    add(found, "tiermem-1", "TierMem Table 1: main results", &columns, main);
    let columns = ["method", "Acc.", "R-rate", "Acc.@R", "Tok_in", "Lat. s"];
    add(found, "tiermem-4", "TierMem Table 4: provenance links", &columns, links);
    add(found, "tiermem-8", "TierMem Table 8: consolidation by epochs", &EPOCH_COLUMNS, epochs(log, &all));
    let columns = ["system", "category", "count", "correct", "wrong"];
    add(found, "tiermem-13", "TierMem Table 13: counterfactuals of what was routed to R", &columns, matrix);
    Ok(())
}

const EPOCH_COLUMNS: [&str; 9] =
    ["epoch", "Overall Acc.", "S-Traffic", "S-Acc.", "S-Correct", "Tok_avg", "Lat. s", "ADD", "UPDATE"];

fn epochs(log: &Log, all: &[Routed<'_>]) -> Vec<Row> {
    let row = |(name, _): (String, Vec<&Entry>)| {
        let of: Vec<&Routed<'_>> = all.iter().filter(|one| one.entry.text("epoch") == Some(name.as_str())).collect();
        let first: Vec<&Routed<'_>> = of.iter().copied().filter(|one| !one.is_raw).collect();
        let right = first.iter().filter(|one| one.is("correct")).count();
        let written = log.epochs.iter().find(|entry| entry.text("name") == Some(name.as_str()));
        let written = |member: &str| written.map(|entry| Cell::count(entry.whole(member)));
        vec![
            text(name.clone()),
            number(part(&of, |one| one.is("correct"))),
            count(first.len()),
            number(part(&first, |one| one.is("correct"))),
            count(right),
            number(mean(of.iter().filter_map(|one| one.tokens))),
            number(mean(of.iter().filter_map(|one| one.seconds))),
            written("add"),
            written("update"),
        ]
    };
    by(&log.routes, "epoch").into_iter().map(row).collect()
}

// ---- PlugMem ----

/// Right by the run's judge, or letter by letter.
fn is_right(entry: &Entry) -> bool {
    let matches = || exact_match(entry.text("answer").unwrap_or_default(), &entry.texts("right"));
    entry.flag("correct").unwrap_or_else(matches)
}

fn bits(of: &[&Entry]) -> Result<Option<f64>, Failure> {
    let case = |entry: &&Entry| {
        let (base, mem) = (entry.number("base")?, entry.number("mem")?);
        Some(Case { base, mem, tokens: entry.whole("tokens"), ..Case::default() })
    };
    let cases: Vec<Case> = of.iter().filter_map(case).collect();
    if cases.is_empty() {
        return Ok(None);
    }
    let found = density_with(&cases, &DensityOptions::default());
    Ok(found.map_err(|error| holotype::Error::Invalid(format!("`{}` {}", error.field, error.problem)))?.density)
}

fn plugmem(snapshot: &Snapshot, log: &Log, found: &mut Vec<PaperTable>) -> Result<(), Failure> {
    let (mut judged, mut matched) = (Vec::new(), Vec::new());
    for (benchmark, of_benchmark) in by(&log.answers, "benchmark") {
        let mut methods: Vec<&str> = Vec::new();
        for method in of_benchmark.iter().filter_map(|entry| entry.text("method")) {
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        for method in methods {
            let of: Vec<&Entry> =
                of_benchmark.iter().copied().filter(|entry| entry.text("method") == Some(method)).collect();
            let named = |name: &str| of.iter().find_map(|entry| entry.text(name)).map(Cell::text);
            let head = [text(benchmark.clone()), text(method), named("embedder"), named("llm")];
            let tail = [number(average(&of, "tokens")), bits(&of)?.map(Cell::Number)];
            let accuracy = mean(of.iter().map(|entry| f64::from(u8::from(is_right(entry)))));
            judged.push(head.clone().into_iter().chain([number(accuracy)]).chain(tail.clone()).collect());
            let answered: Vec<&&Entry> = of.iter().filter(|entry| entry.text("answer").is_some()).collect();
            if answered.is_empty() {
                continue;
            }
            let score = |of: &dyn Fn(&str, &[&str]) -> f64| {
                let one = |entry: &&Entry| of(entry.text("answer").unwrap_or_default(), &entry.texts("right"));
                mean(answered.iter().map(|entry| one(entry)))
            };
            let exact = score(&|answer, right| f64::from(u8::from(exact_match(answer, right))));
            let cells = [number(exact), number(score(&word_f1))];
            matched.push(head.into_iter().chain(cells).chain(tail).collect());
        }
    }
    let columns = ["benchmark", "method", "Emb", "LLM", "Acc.", "#Tok avg", "Info. density"];
    add(found, "plugmem-3", "PlugMem Table 3: results and information density", &columns, judged);
    let columns = ["benchmark", "method", "Emb", "LLM", "EM", "F1", "#Tok avg", "Info. density"];
    add(found, "plugmem-7", "PlugMem Table 7: ablation by exact match", &columns, matched);
    let mut steps = Vec::new();
    for entry in &log.hops {
        let question = entry.text("question").unwrap_or_default();
        let path = entry.text("path").unwrap_or("facts 20 -> (concepts 8 -> facts 20) up to 1 hops");
        let params = Params::from([("q".to_owned(), ParamValue::Text(question.to_owned()))]);
        let statement = format!("explain analyze recall $q through {path} limit 10");
        for output in snapshot.query(&statement, &params)? {
            let Output::Table(table) = output else { continue };
            steps.extend(table.rows.into_iter().map(|row| [text(question)].into_iter().chain(row).collect()));
        }
    }
    let columns = ["question", "step", "detail"];
    add(found, "plugmem-14", "PlugMem Table 14: the control flow of a retrieval", &columns, steps);
    Ok(())
}

// ---- HiMPO ----

fn himpo(log: &Log, found: &mut Vec<PaperTable>) -> Result<(), Failure> {
    let mut tasks: Vec<&str> = Vec::new();
    for task in log.exams.iter().filter_map(|entry| entry.text("task")) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let mut rows = Vec::new();
    for (model, of_model) in by(&log.exams, "model") {
        let exact = |variant: &str, task: &str| {
            let is_of = |entry: &&&Entry| entry.text("variant") == Some(variant) && entry.text("task") == Some(task);
            mean(of_model.iter().filter(is_of).map(|entry| f64::from(u8::from(is_right(entry)))))
        };
        let whole = |variant: &str| mean(tasks.iter().filter_map(|task| exact(variant, task)));
        let reference = of_model.iter().filter_map(|entry| entry.text("variant")).find(|it| it.starts_with("MemPO"));
        let mut variants: Vec<&str> = Vec::new();
        for variant in of_model.iter().filter_map(|entry| entry.text("variant")) {
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        for variant in variants {
            let mut row = vec![text(model.clone()), text(variant)];
            row.extend(tasks.iter().map(|task| number(exact(variant, task))));
            let beyond = whole(variant).zip(reference.and_then(whole)).map(|(own, of)| 100.0 * (own - of));
            row.extend([number(whole(variant)), number(beyond)]);
            rows.push(row);
        }
    }
    let columns: Vec<&str> =
        ["model", "variant"].into_iter().chain(tasks.iter().copied()).chain(["Avg. EM", "vs. MemPO"]).collect();
    add(found, "himpo-3", "HiMPO Table 3: ablation by exact match", &columns, rows);
    if log.runs.is_empty() {
        return Ok(());
    }
    let rollouts = runs::read(&log.runs, "the lines `run`")?;
    let runs: Vec<Run> = rollouts.iter().map(holotype::credit::Rollout::run).collect();
    let board = Scoreboard { scorer: &WordScorer, template: &Template::default() };
    let ours = deconfound(&runs, &board, &ChangeAnswer, &CreditOptions::default())?;
    // The memory's credit alone: no retrospective filter, no mask and no smoothing.
    let plain = CreditOptions { gate: false, smoothing: None, success: None, ..CreditOptions::default() };
    let mempo = deconfound(&runs, &board, &ChangeAnswer, &plain)?;
    let measures: [(&str, Measured); 5] = [
        ("Faithful-under-bad-tool ratio", |of| of.faithful_under_bad_tool),
        ("Normalized vs. clean control", |of| of.over_clean),
        ("Memory Drop localization hit-rate", |of| of.drop_localisation),
        ("Delayed Credit Recovery", |of| of.delayed_recovery),
        ("Module Attribution concentration", |of| of.concentration),
    ];
    let row =
        |(name, of): (&str, fn(&Deconfounding) -> Option<f64>)| vec![text(name), number(of(&mempo)), number(of(&ours))];
    let columns = ["metric", "without filter", "HiMPO"];
    add(found, "himpo-4", "HiMPO Table 4: controlled deconfounding", &columns, measures.into_iter().map(row).collect());
    Ok(())
}
