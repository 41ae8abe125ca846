//! Coarse-to-fine recall (HELM Algorithm 3): plan, gather, rank, select, expand, answer.
//!
//! ```text
//! plan     names, filters and numbers                     plan
//! gather   each stage's candidates by near, words, linked  gather
//! rank     S for every candidate                           rank (weights in `score`)
//! select   union or budget, folding, relaxing              select
//! expand   evidence under the rows                         expand
//! ```
//!
//! Invariants:
//! 1. A row passes scope, predicate and every exclusion, or says which it was let back in spite of.
//! 2. Every span a row cites was read and hashed again for this answer.
//! 3. Same snapshot, same reader, same statement: same rows.

mod builder;
mod candidates;
mod contest;
mod expand;
mod gather;
mod places;
mod plan;
mod rank;
mod select;
mod why;
mod words;

use crate::Result;
use crate::answer::{Answer, Citation, Parts, Role, Row, Strength};
use crate::item::{ItemId, Layer};
use crate::mend;
use crate::reader::{Standing, Window};
use crate::score::Reads;
use crate::snapshot::{Snapshot, is_damage};
pub use builder::RecallBuilder;
use candidates::{Candidates, Found};
use contest::OpenContests;
use gather::Asked;
use holotype_query::ast;
use plan::Plan;
pub(crate) use plan::{names, reader_of};
use rank::Scored;
use select::{Chosen, Selection};
use std::time::Instant;
pub(crate) use why::why;
use words::{WordIndexes, Words};

/// What was done for an answer, stage by stage: what `explain analyze` shows.
pub(crate) type Steps = Vec<(String, String)>;

/// Runs a recall whose parameters are bound.
pub(crate) fn run(snapshot: &Snapshot, recall: &ast::Recall) -> Result<Answer> {
    let mut steps = Steps::new();
    run_with_steps(&snapshot.metered(), recall, &mut steps)
}

/// The plan of a recall in words, without running it.
pub(crate) fn explain(snapshot: &Snapshot, recall: &ast::Recall) -> Result<Steps> {
    let snapshot = &snapshot.at(recall.clauses.as_of.as_ref())?;
    let plan = Plan::new(snapshot, recall)?;
    let mut steps = Steps::new();
    let asked = match (&plan.text, &plan.vector) {
        (Some(_), Some(_)) => "text and vector",
        (Some(_), None) => "text",
        (None, Some(_)) => "vector",
        (None, None) => "nothing",
    };
    steps.push(("query".to_owned(), asked.to_owned()));
    steps.push(("reader".to_owned(), shown(&plan.standing)));
    steps.push(("visible".to_owned(), format!("{} of {} items", plan.visible.count(), snapshot.len())));
    for exclusion in &plan.exclusions {
        steps.push((format!("exclude {}", exclusion.name), format!("{} items", exclusion.items.count())));
    }
    for stage in &plan.stages {
        let channels: Vec<&str> = stage.channels.iter().map(|channel| channel.as_str()).collect();
        let count = match (stage.count, stage.places) {
            (Some(count), _) => count.to_string(),
            (None, Some(most)) if most < usize::MAX => format!("all of the best {most}"),
            (None, _) => "as many as fit".to_owned(),
        };
        steps.push((
            stage.noun.to_string(),
            format!(
                "by {}, pool {}, rows {count}; may route through {}, {} may be rows",
                channels.join(", "),
                stage.pool,
                stage.route.count(),
                stage.rows.count()
            ),
        ));
    }
    let w = &plan.weights;
    steps.push((
        "score".to_owned(),
        format!(
            "similarity {}, words {}, recency {}, status {}, source {}, utility {}, context {}, conflict {}",
            w.similarity, w.words, w.recency, w.status, w.source, w.utility, w.context, w.conflict
        ),
    ));
    Ok(steps)
}

fn shown(standing: &Standing) -> String {
    let reader = &standing.reader;
    let mut parts = Vec::new();
    parts.extend(reader.episode.as_ref().map(|episode| format!("episode {episode}")));
    parts.extend(reader.step.map(|step| format!("step {step}")));
    parts.extend(reader.time.map(|time| format!("time {}", crate::time::format(time))));
    parts.extend(reader.version.as_ref().map(|version| format!("version {version}")));
    if parts.is_empty() { "nowhere".to_owned() } else { parts.join(", ") }
}

/// Runs a recall and notes what was done.
pub(crate) fn run_with_steps(snapshot: &Snapshot, recall: &ast::Recall, steps: &mut Steps) -> Result<Answer> {
    let before = steps.len();
    mend::around_damage(&snapshot.state, || {
        steps.truncate(before);
        run_once(snapshot, recall, steps)
    })
}

fn run_once(snapshot: &Snapshot, recall: &ast::Recall, steps: &mut Steps) -> Result<Answer> {
    let started = Instant::now();
    let snapshot = &snapshot.at(recall.clauses.as_of.as_ref())?.reading_once();
    let plan = Plan::new(snapshot, recall)?;
    let mut contests = OpenContests::default();
    let indexes = WordIndexes::of(snapshot)?;
    let words = indexes.ask(plan.text.as_deref());
    let (mut stages, complete) = gather_and_rank(snapshot, &plan, &words, false, &mut contests, steps)?;
    let mut survivors: usize = stages.iter().map(Vec::len).sum();
    if (survivors as u64) < plan.relax_below && !plan.exclusions.is_empty() {
        // Excluded items come back, after all valid ones: each test they failed takes l_status off their S.
        let (with_excluded, _) = gather_and_rank(snapshot, &plan, &words, true, &mut contests, steps)?;
        stages = with_excluded;
        survivors = stages.iter().map(Vec::len).sum();
        steps.push(("relax".to_owned(), format!("{survivors} candidates with the excluded ones")));
    }
    let mut selection = select::select(snapshot, &plan, stages)?;
    let contested = contests.bring(snapshot, &plan, &mut selection)?;
    let strength = strength(&words, &selection.rows)?;
    answer(snapshot, &plan, selection, strength, contested, complete, started)
}

/// The ranked candidates of every stage, and whether every possible row was looked at.
fn gather_and_rank(
    snapshot: &Snapshot,
    plan: &Plan,
    words: &Words<'_>,
    relaxed: bool,
    contests: &mut OpenContests,
    steps: &mut Steps,
) -> Result<(Vec<Vec<Scored>>, bool)> {
    let mut walk = Walk {
        before: Candidates::default(),
        best: Vec::new(),
        ranked: vec![Vec::new(); plan.stages.len()],
        complete: true,
        relaxed,
        words,
        hop: None,
    };
    let first = Asked { text: plan.text.clone(), vector: plan.vector.clone() };
    let mut at = 0;
    while at < plan.stages.len() {
        let Some(group) = plan.groups.iter().find(|group| group.from == at) else {
            walk.stage(snapshot, plan, at, &first, contests, steps)?;
            at += 1;
            continue;
        };
        let mut asked = first.clone();
        for hop in 1..=group.hops {
            let known: usize = walk.ranked.iter().map(Vec::len).sum();
            for at in group.from..group.to {
                walk.stage(snapshot, plan, at, &asked, contests, steps)?;
            }
            let found = walk.ranked.iter().map(Vec::len).sum::<usize>() - known;
            steps.push((format!("hop {hop}"), format!("{found} candidates more")));
            if found == 0 {
                break;
            }
            asked = carried(snapshot, &first, &walk.best, group.carry)?;
            walk.hop = asked.text.as_deref().map(|text| words.ask(text));
        }
        walk.hop = None;
        at = group.to;
    }
    Ok((walk.ranked, walk.complete))
}

/// What the next hop asks: the question with the text of the best rows behind it.
fn carried(snapshot: &Snapshot, first: &Asked, best: &[ItemId], carry: usize) -> Result<Asked> {
    let mut text = first.text.clone().unwrap_or_default();
    for id in best.iter().take(carry) {
        text.push('\n');
        text.push_str(snapshot.content(*id)?.text());
    }
    let vector = plan::embedded(snapshot, &text)?.or_else(|| first.vector.clone());
    Ok(Asked { text: Some(text), vector })
}

/// A way through the stages.
struct Walk<'r, 'w> {
    /// What the last stage may route from, and the best of its rows.
    before: Candidates,
    best: Vec<ItemId>,
    /// The candidates of each stage, best first.
    ranked: Vec<Vec<Scored>>,
    complete: bool,
    relaxed: bool,
    words: &'r Words<'w>,
    /// A later hop finds by more words than the question has.
    hop: Option<Words<'w>>,
}

impl Walk<'_, '_> {
    fn stage(
        &mut self,
        snapshot: &Snapshot,
        plan: &Plan,
        at: usize,
        asked: &Asked,
        contests: &mut OpenContests,
        steps: &mut Steps,
    ) -> Result<()> {
        let stage = &plan.stages[at];
        let words = self.hop.as_ref().unwrap_or(self.words);
        let filter = if self.relaxed { &stage.relaxable } else { &stage.rows };
        let mut gathered = match stage.lift {
            Some(lift) => places::lift(snapshot, plan, stage, lift, &self.best, self.relaxed)?,
            None => gather::gather(snapshot, plan, asked, words, stage, &self.before, self.relaxed)?,
        };
        if let Some(most) = stage.places {
            gathered = places::group(snapshot, plan, stage, most, self.words, gathered, self.relaxed)?;
        }
        if stage.is_in(Layer::Trace) && plan.weights.context > 0.0 {
            bring_neighbours(snapshot, &filter.and(&plan.traces), &mut gathered.rows)?;
        }
        if snapshot.state.meta.claims > 0 {
            contests.join(snapshot, plan, filter, &mut gathered.rows)?;
        }
        self.complete &= gathered.complete;
        for step in gathered.steps {
            steps.push((stage.noun.to_string(), step));
        }
        let rows = rank::rank(snapshot, plan, stage, self.words, gathered.rows)?;
        contests.note(&rows);
        steps.push((stage.noun.to_string(), format!("{} candidates ranked", rows.len())));
        let count = stage.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        self.best = rows.iter().take(count).map(|scored| scored.id).collect();
        if self.best.is_empty() {
            self.best = gathered.routed.ids().map(ItemId).collect();
        }
        self.before = gathered.routed;
        let ranked = &mut self.ranked[at];
        if ranked.is_empty() {
            *ranked = rows;
        } else {
            // A later hop adds what it found; what both found stays as the first ranked it.
            let known: std::collections::HashSet<ItemId> = ranked.iter().map(|scored| scored.id).collect();
            ranked.extend(rows.into_iter().filter(|scored| !known.contains(&scored.id)));
            ranked.sort_by(Scored::best_first);
        }
        Ok(())
    }
}

/// With a context weight, what stands next to a candidate in its log is one too: an answer next to its question.
fn bring_neighbours(snapshot: &Snapshot, filter: &holotype_index::bitmap::Bits, rows: &mut Candidates) -> Result<()> {
    let attributes = &snapshot.state.attributes;
    let mut new = Vec::new();
    for id in rows.ids().filter(|id| filter.contains(*id)) {
        let log = attributes.log(ItemId(id))?;
        for at in id.saturating_sub(2)..=id.saturating_add(2) {
            let is_new = filter.contains(at) && rows.get(at).is_none();
            if is_new && attributes.log(ItemId(at))? == log {
                new.push((at, Found::default()));
            }
        }
    }
    rows.add(new.into_iter().collect());
    Ok(())
}

fn answer(
    snapshot: &Snapshot,
    plan: &Plan,
    selection: Selection,
    strength: Strength,
    contested: Vec<String>,
    complete: bool,
    started: Instant,
) -> Result<Answer> {
    let mut notes = plan.notes.clone();
    notes.extend(selection.notes.iter().cloned());
    for (id, what) in &selection.damaged {
        notes.push(format!("item {id} is left out, for its bytes are not those that were written: {what}"));
    }
    let damaged = damaged(snapshot, plan);
    let complete = complete && damaged.is_empty();
    notes.extend(damaged);
    let relaxed = selection.rows.iter().filter(|row| !row.scored.relaxed.is_empty()).count();
    if relaxed > 0 {
        notes.push(format!(
            "fewer than {} rows passed every test: {relaxed} are let back and say which they failed",
            plan.relax_below
        ));
    }
    let evidence_of_best =
        selection.rows.iter().map(|row| row.scored.parts.similarity.max(row.scored.parts.words * strength.terms));
    let covered = match plan.abstain_below {
        Some(least) => evidence_of_best.fold(0.0, f32::max) >= least,
        None => true,
    };
    let mut rows = Vec::new();
    if covered {
        let seeds: Vec<ItemId> = selection.rows.iter().map(|row| row.scored.id).collect();
        let evidence = match plan.expand {
            Some(limits) => expand::expand(snapshot, plan, limits, &seeds)?,
            None => vec![Vec::new(); seeds.len()],
        };
        for (chosen, evidence) in selection.rows.into_iter().zip(evidence) {
            rows.push(row(snapshot, plan, &chosen, Role::Hit)?);
            for id in evidence {
                rows.extend(evidence_row(snapshot, plan, id, &mut notes)?);
            }
        }
    }
    Ok(Answer {
        commit: snapshot.commit(),
        at: plan.standing.reader.clone(),
        covered,
        strength,
        certificate: if complete { "exact" } else { "limited" },
        contested,
        route: plan.stages.iter().map(|stage| stage.noun.to_string()).collect(),
        rounds: 0,
        notes,
        returns: plan.returns.clone(),
        receipt: None,
        rows,
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
    })
}

/// What is wrong with the vectors and words that were asked, and what becomes of it.
pub(super) fn damaged(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    let remedy = match snapshot.inner.options.read_only {
        true => "opening it for writing, or `holotype rebuild`, makes the file again from the log",
        false => "the file is being made again from the log",
    };
    let mut notes = Vec::new();
    for layer in Layer::ALL.iter().filter(|layer| plan.stages.iter().any(|stage| stage.is_in(**layer))) {
        let vectors = snapshot.state.damaged_vectors(*layer);
        if plan.vector.is_some() && vectors > 0 {
            notes.push(format!(
                "{vectors} vectors of layer {layer} stand in a damaged file, and those that are whole were compared: {remedy}"
            ));
        }
        let words = snapshot.state.damaged_words(*layer);
        if plan.text.is_some() && words > 0 {
            snapshot.inner.mend_soon();
            notes.push(format!(
                "the words of {words} items of layer {layer} stand in a damaged file, and only others were found by words: {remedy}"
            ));
        }
    }
    notes
}

/// How strong the evidence is: the best score, its lead, and the share of the query's words that the rows contain.
fn strength(words: &Words<'_>, rows: &[Chosen]) -> Result<Strength> {
    let top = rows.first().map_or(0.0, |row| row.scored.score());
    let gap = rows.get(1).map_or(0.0, |second| top - second.scored.score());
    let mut terms = 0.0f32;
    for layer in Layer::ALL {
        let of_layer = rows.iter().filter(|row| row.scored.scalars.layer == *layer);
        let ids: Vec<u32> = of_layer.map(|row| row.scored.id.0).collect();
        if let (Some(scorer), false) = (words.of(*layer)?, ids.is_empty()) {
            terms = terms.max(scorer.joint_coverage(&ids)?);
        }
    }
    Ok(Strength { top, gap, terms })
}

/// A row of the answer with its evidence read and hashed again.
fn row(snapshot: &Snapshot, plan: &Plan, chosen: &Chosen, role: Role) -> Result<Row> {
    let Scored { id, parts, found, relaxed, .. } = &chosen.scored;
    let attributes = &chosen.attributes;
    let state = &snapshot.state;
    let symbol = |number: Option<u32>| number.map(|number| state.symbol_name(number)).transpose();
    let key = |id: &ItemId| snapshot.key_of(*id).unwrap_or_else(|_| id.to_string());
    let mut path = found.path(snapshot)?;
    let lenders = rank::lenders(snapshot, plan, &chosen.scored)?;
    let others = lenders.iter().filter(|recall| !found.linked_from().contains(recall));
    path.extend(others.map(|recall| format!("cited by {}", key(recall))));
    if path.is_empty() {
        path.push("next to a candidate".to_owned());
    }
    Ok(Row {
        item: *id,
        key: snapshot.key_of(*id)?,
        layer: attributes.layer(),
        kind: attributes.kind,
        text: chosen.content.text().to_owned(),
        score: parts.sum(),
        parts: *parts,
        status: attributes.status,
        source: attributes.source,
        speaker: symbol(attributes.speaker)?,
        tool: symbol(attributes.tool)?,
        episode: attributes
            .episode
            .map(|episode| state.episode_id(episode))
            .transpose()?
            .map(|id| id.as_ref().to_owned()),
        step: attributes.step,
        time: attributes.time,
        version: symbol(attributes.version)?,
        stale: plan.standing.is_stale(attributes, &Window::default_of(state)?),
        conflict: attributes.conflict.map(ItemId),
        support: attributes.support,
        trust: attributes.trust(),
        relaxed: relaxed.clone(),
        path,
        folded: chosen.folded.iter().map(key).collect(),
        tokens: attributes.tokens,
        citations: citations(snapshot, chosen)?,
        role,
    })
}

/// What a row rests on; a trace rests on itself.
fn citations(snapshot: &Snapshot, chosen: &Chosen) -> Result<Vec<Citation>> {
    match chosen.scored.scalars.layer {
        Layer::Trace => Ok(vec![snapshot.own_citation(chosen.scored.id, &chosen.attributes, &chosen.content)?]),
        Layer::Recall | Layer::Theme => snapshot.citations(chosen.scored.id),
    }
}

/// A row added by `expand`; nothing, and a note, where its bytes cannot be read as they were written.
fn evidence_row(snapshot: &Snapshot, plan: &Plan, id: ItemId, notes: &mut Vec<String>) -> Result<Option<Row>> {
    let mut scalars = snapshot.state.attributes.scalars(id, snapshot.state.layer_of(id)?, Reads::ALL)?;
    scalars.conflict = plan.conflict_of(id, scalars.conflict).map(|winner| winner.0);
    let content = match snapshot.content(id) {
        Ok(content) => content,
        Err(error) if is_damage(&error) => {
            notes.push(format!("evidence {id} is left out, for its bytes are not those that were written: {error}"));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let relaxed = plan.flaws_of(id);
    let found = Found::default();
    let scored = Scored { id, scalars, parts: Parts::default(), score: 0.0, found, relaxed };
    let mut row = row(snapshot, plan, &Chosen::new(snapshot, scored, content)?, Role::Evidence)?;
    row.path = vec!["evidence".to_owned()];
    Ok(Some(row))
}
