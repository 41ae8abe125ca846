//! The answer: rows with their evidence, read from the log and hashed again.

use super::candidates::MatchPath;
use super::expand;
use super::lines::Draft;
use super::plan::Plan;
use super::rank::{self, Scored};
use super::select::{Chosen, Selection};
use super::words::Words;
use crate::Result;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::model::plural::counted;
use crate::read::answer::{Answer, Citation, Parts, Refresh, Role, Row, Strength};
use crate::read::fields::Fields;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::attributes::scalars::Reads;
use crate::state::conflicts::Conflicts;
use crate::state::reader_position::Window;
use holotype_index::bitmap::Bits;
use std::time::Instant;

/// The findings of a recall, from which its answer is made.
pub(super) struct Found {
    pub(super) selection: Selection,
    pub(super) strength: Strength,
    pub(super) complete: bool,
    pub(super) answerable: bool,
}

/// Makes the answer of the selected rows.
pub(super) fn answer(snapshot: &Snapshot, plan: &Plan, found: Found, started: Instant) -> Result<Answer> {
    let Found { mut selection, strength, complete, mut answerable } = found;
    let mut notes = plan.notes.clone();
    notes.extend(selection.notes.iter().cloned());
    for (id, what) in &selection.damaged {
        notes.push(format!("item {id} omitted because its stored bytes are damaged: {what}"));
    }
    let damaged = damaged(snapshot, plan);
    let complete = complete && damaged.is_empty();
    notes.extend(damaged);
    let relaxed = selection.rows.iter().filter(|row| !row.scored.relaxed.is_empty()).count();
    if relaxed > 0 {
        let valid = (selection.rows.len() - relaxed) as u64;
        let passed = if valid == 0 { "No row".to_owned() } else { format!("Only {}", counted(valid, "rows")) };
        let excluded = counted(relaxed as u64, "excluded rows");
        notes.push(format!("{passed} passed all filters; showing {excluded} with the reasons."));
    }
    let evidence_of_best = selection
        .rows
        .iter()
        .map(|row| row.scored.parts.similarity.max(row.scored.parts.words.min(1.0) * strength.terms));
    if let Some(Some(least)) = plan.abstain {
        answerable &= evidence_of_best.fold(0.0, f32::max) >= least;
    }
    if plan.abstain.is_some() && !answerable {
        selection.rows.clear();
    }
    let excluded = excluded(plan);
    let refresh = if answerable { refresh(snapshot, plan, selection.rows.first())? } else { None };
    let mut rows = Vec::new();
    if !selection.rows.is_empty() {
        let seeds: Vec<ItemId> = selection.rows.iter().map(|row| row.scored.id).collect();
        let evidence = match plan.expand {
            Some(limits) => expand::expand(snapshot, plan, limits, &seeds)?,
            None => vec![Vec::new(); seeds.len()],
        };
        for (chosen, evidence) in selection.rows.into_iter().zip(evidence) {
            rows.push(row(snapshot, plan, chosen, Role::Hit)?);
            for id in evidence {
                rows.extend(evidence_row(snapshot, plan, id, &mut notes)?);
            }
        }
    }
    Ok(Answer {
        commit: snapshot.commit(),
        at: plan.reader_position.reader.clone(),
        answerable,
        strength,
        certificate: if complete { "exact" } else { "limited" },
        route: plan.stages.iter().map(|stage| stage.noun.to_string()).collect(),
        excluded,
        pending: snapshot.state.pending_count()?,
        refresh,
        rounds: 0,
        escalation: None,
        notes,
        returns: plan.returns.clone(),
        receipt: None,
        without: Vec::new(),
        rows,
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
    })
}

/// The number of items that each exclusion kept from being rows, of those that stages may route through.
fn excluded(plan: &Plan) -> Vec<(&'static str, u64)> {
    let kept_out = |items: &Bits| {
        let of_stage = plan.stages.iter().map(|stage| stage.relaxable.and(items));
        of_stage.reduce(|all, more| all.or(&more)).map_or(0, |all| all.count())
    };
    let named = plan.exclusions.iter().map(|exclusion| (exclusion.name, kept_out(&exclusion.items)));
    named.chain([("later", plan.later)]).filter(|(_, count)| *count > 0).collect()
}

/// The tool to call again if the first row is stale: its own, or that of the newest trace it rests on.
fn refresh(snapshot: &Snapshot, plan: &Plan, first: Option<&Chosen>) -> Result<Option<Refresh>> {
    let state = &snapshot.state;
    let Some(first) = first else { return Ok(None) };
    if !plan.reader_position.is_stale(state, &first.attributes, &Window::default_of(state)?)? {
        return Ok(None);
    }
    let mut called = vec![first.attributes.clone()];
    for source in state.sources(first.scored.id, first.scored.scalars.layer)?.into_iter().rev() {
        called.push(state.attributes(source)?);
    }
    let Some((tool, step)) = called.iter().find_map(|of| Some((of.tool?, of.step))) else { return Ok(None) };
    Ok(Some(Refresh { tool: state.symbol_name(tool)?, last_step: step }))
}

/// Notes on damaged vectors and words that the query needed.
pub(super) fn damaged(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    let remedy = match snapshot.core.options.read_only {
        true => "open the database for writing or run `holotype rebuild` to rebuild the file from the log",
        false => "the file is being rebuilt from the log",
    };
    let mut notes = Vec::new();
    for layer in Layer::ALL.iter().filter(|layer| plan.stages.iter().any(|stage| stage.is_in(**layer))) {
        let vectors = snapshot.state.damaged_vectors(*layer);
        if plan.vector.is_some() && vectors > 0 {
            notes.push(format!(
                "{} of layer {layer} in a damaged file: only the intact ones were compared; {remedy}",
                counted(vectors as u64, "vectors")
            ));
        }
        let words = snapshot.state.damaged_words(*layer);
        if plan.text.is_some() && words > 0 {
            snapshot.core.schedule_repair();
            notes.push(format!(
                "words of {} of layer {layer} in a damaged file: keyword search skipped them; {remedy}",
                counted(words, "items")
            ));
        }
    }
    notes
}

/// The strength of the evidence: the best score, its lead, and the share of the query's terms in the rows.
pub(super) fn strength(words: &Words<'_>, rows: &[Chosen]) -> Result<Strength> {
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

/// A row of the answer; its evidence is read and hashed again.
fn row(snapshot: &Snapshot, plan: &Plan, chosen: Chosen, role: Role) -> Result<Row> {
    let Scored { id, parts, match_path, relaxed, .. } = &chosen.scored;
    let attributes = &chosen.attributes;
    let conflict = Conflicts::new(&snapshot.state, &plan.reader_position).leader_over(*id)?;
    let state = &snapshot.state;
    let symbol = |number: Option<u32>| number.map(|number| state.symbol_name(number)).transpose();
    let key = |id: &ItemId| snapshot.key_of(*id).unwrap_or_else(|_| id.to_string());
    let mut path = match_path.path(snapshot)?;
    let citing_recalls = rank::citing_recalls(snapshot, plan, &chosen.scored)?;
    let others = citing_recalls.iter().filter(|recall| !match_path.linked_from().contains(recall));
    path.extend(others.map(|recall| format!("cited by {}", key(recall))));
    if path.is_empty() {
        path.push("next to a candidate".to_owned());
    }
    let citations = match chosen.scored.scalars.layer {
        Layer::Trace => vec![snapshot.own_citation(*id, attributes, &chosen.content)?],
        Layer::Recall | Layer::Theme => snapshot.citations(*id)?,
    };
    let lines = chosen.lines.into_iter().map(|line: Draft| line.line(snapshot)).collect::<Result<Vec<_>>>()?;
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
        stale: plan.reader_position.is_stale(state, attributes, &Window::default_of(state)?)?,
        quarantined: snapshot.core.options.detector.instructs(chosen.content.text(), attributes.source),
        conflict,
        conflict_key: conflict.map(|leader| key(&leader)),
        support: attributes.support,
        trust: attributes.trust(),
        relaxed: relaxed.clone(),
        path,
        folded: chosen.folded.iter().map(key).collect(),
        lines,
        more: chosen.more,
        tokens: attributes.tokens,
        citations,
        role,
        fields: Fields::of(&chosen.content),
    })
}

/// The evidence of an item; for a trace that is the trace itself.
pub(super) fn citations_of(snapshot: &Snapshot, id: ItemId, attributes: &Attributes) -> Result<Vec<Citation>> {
    match attributes.layer() {
        Layer::Trace => Ok(vec![snapshot.own_citation(id, attributes, &snapshot.content(id)?)?]),
        Layer::Recall | Layer::Theme => snapshot.citations(id),
    }
}

/// A row added by `expand`; `None` and a note if its bytes cannot be read as written.
fn evidence_row(snapshot: &Snapshot, plan: &Plan, id: ItemId, notes: &mut Vec<String>) -> Result<Option<Row>> {
    let state = &snapshot.state;
    let scalars = state.attributes.scalars(id, state.layer_of(id)?, Reads::ALL)?;
    let content = match snapshot.content(id) {
        Ok(content) => content,
        Err(error) if is_damage(&error) => {
            notes.push(format!("evidence {id} omitted because its stored bytes are damaged: {error}"));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let relaxed = plan.flaws_of(id);
    let match_path = MatchPath::default();
    let scored =
        Scored { id, scalars, parts: Parts::default(), score: 0.0, cosine: 0.0, place: 0, match_path, relaxed };
    let mut row = row(snapshot, plan, Chosen::new(snapshot, scored, content)?, Role::Evidence)?;
    row.path = vec!["evidence".to_owned()];
    Ok(Some(row))
}
