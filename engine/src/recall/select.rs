//! Selection: from ranked candidates to the rows of the answer, with the lines below them.
//!
//! Each stage contributes its best `count` rows (all, without a count and under a token budget), and the answer is
//! their union in order of S. Candidates are walked in that order:
//!
//! - A candidate of a new frame is a row: the leader of the frame is shown, and the row stands at the candidate's S.
//! - A candidate of a known frame is a line of its row. With equal words it is folded: its key is named.
//!
//! Under a limit, the candidates that would be rows without grouping are shown, the first row has lines up to
//! [`MAX_LINES`], and a row counts the members of its frame that are not shown. Under a budget, rows and lines are
//! taken whole while they fit, [`MAX_LINES`] to a row, and then the lines beyond; a row that does not fit is skipped.
//! (Ordering by S per token favours short rows and found a third less evidence.) Under a budget a recall whose evidence
//! is also a candidate only routes: its trace names it in its match path, so that the evidence is paid for once.
//!
//! Invariant: under a limit, the answer shows every candidate that the rows without grouping would show, as a row, a
//! line or a folded key.

use super::group::{Frame, Frames};
use super::lines::Draft;
use super::offers::{Offer, Offers};
use super::plan::Plan;
use super::rank::Scored;
use crate::Result;
use crate::model::item::{Attributes, ItemId, Layer};
use crate::read::answer::Parts;
use crate::read::snapshot::{Snapshot, is_damage};
use crate::state::content::Content;
use std::collections::{BTreeSet, HashMap};

/// Lines of a row before the rest of a budget is spent, and lines of the first row.
const MAX_LINES: usize = 8;

/// A selected row with its content.
pub(crate) struct Chosen {
    /// The item shown, at the score of the best candidate of its frame.
    pub(crate) scored: Scored,
    pub(crate) attributes: Attributes,
    pub(crate) content: Content,
    pub(crate) folded: Vec<ItemId>,
    pub(crate) lines: Vec<Draft>,
    /// Members of the frame that are not shown.
    pub(crate) more: u64,
}

impl Chosen {
    pub(crate) fn new(snapshot: &Snapshot, scored: Scored, content: Content) -> Result<Self> {
        let attributes = snapshot.state.attributes(scored.id)?;
        Ok(Chosen { scored, attributes, content, folded: Vec::new(), lines: Vec::new(), more: 0 })
    }

    /// The item.
    pub(crate) fn id(&self) -> ItemId {
        self.scored.id
    }

    /// The terms of its score.
    pub(crate) fn parts(&self) -> &Parts {
        &self.scored.parts
    }

    /// Its score.
    pub(crate) fn score(&self) -> f32 {
        self.scored.score()
    }
}

/// The selected rows and what to report about the others.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) rows: Vec<Chosen>,
    /// Items whose bytes cannot be read as written.
    pub(crate) damaged: Vec<(ItemId, String)>,
    /// Remarks on how the rows were selected.
    pub(crate) notes: Vec<String>,
}

/// Selects the rows of the answer, best first.
pub(super) fn select(snapshot: &Snapshot, plan: &Plan, offers: Offers, frames: &Frames) -> Result<Selection> {
    let traces = match plan.budget {
        Some(_) => offers.traces(),
        None => BTreeSet::new(),
    };
    let mut walk = Walk {
        snapshot,
        plan,
        frames,
        traces,
        wanted: plan.limit.map_or(u64::MAX, |limit| limit.saturating_add(plan.skip)),
        left: plan.budget,
        of_stage: plan.stages.iter().map(|stage| stage.count.unwrap_or(u64::MAX)).collect(),
        ungrouped: Ungrouped::new(plan),
        rows_of_frames: HashMap::new(),
        said: Vec::new(),
        later: Vec::new(),
        selection: Selection::default(),
    };
    walk.run(offers)?;
    let mut selection = walk.selection;
    let skip = usize::try_from(plan.skip).unwrap_or(usize::MAX).min(selection.rows.len());
    selection.rows.drain(..skip);
    Ok(selection)
}

/// The rows that the answer would have without grouping, counted.
struct Ungrouped {
    rows: u64,
    wanted: u64,
    of_stage: Vec<u64>,
}

impl Ungrouped {
    fn new(plan: &Plan) -> Ungrouped {
        let wanted = plan.limit.map_or(u64::MAX, |limit| limit.saturating_add(plan.skip));
        Ungrouped { rows: 0, wanted, of_stage: plan.stages.iter().map(|s| s.count.unwrap_or(u64::MAX)).collect() }
    }

    /// Counts a candidate; true if it would be a row.
    fn takes(&mut self, offer: &Offer) -> bool {
        let takes = self.rows < self.wanted && offer.stages().any(|stage| self.of_stage[stage] > 0);
        if takes {
            self.rows += 1;
            offer.stages().for_each(|stage| self.of_stage[stage] = self.of_stage[stage].saturating_sub(1));
        }
        takes
    }
}

/// A walk over the candidates in order of S.
struct Walk<'s> {
    snapshot: &'s Snapshot,
    plan: &'s Plan,
    frames: &'s Frames,
    traces: BTreeSet<ItemId>,
    /// Rows to select, at most.
    wanted: u64,
    /// Tokens left of the budget.
    left: Option<u64>,
    /// Rows that each stage may still contribute.
    of_stage: Vec<u64>,
    ungrouped: Ungrouped,
    /// The row of each frame that has one.
    rows_of_frames: HashMap<usize, usize>,
    /// The texts that each row says, by their tokens.
    said: Vec<Vec<(u64, u32)>>,
    /// Members beyond the lines of their rows, by row.
    later: Vec<(usize, usize, usize)>,
    selection: Selection,
}

impl Walk<'_> {
    fn run(&mut self, mut offers: Offers) -> Result<()> {
        while let Some(offer) = offers.next() {
            let is_full = self.selection.rows.len() as u64 >= self.wanted;
            if self.left == Some(0) || (is_full && self.ungrouped.rows >= self.ungrouped.wanted) {
                break;
            }
            let would_be_row = self.ungrouped.takes(&offer);
            if self.of_stage.iter().all(|left| *left == 0) && !would_be_row {
                break;
            }
            let place = self.frames.place_of(offer.scored.id);
            let known = place.and_then(|(frame, _)| self.rows_of_frames.get(&frame).copied());
            match (place, known) {
                (Some((frame, at)), Some(row)) => {
                    let is_shown = would_be_row || self.plan.budget.is_some() || row == 0;
                    if is_shown {
                        self.add_line(row, frame, at, would_be_row && self.plan.budget.is_none())?;
                    }
                }
                _ => self.add_row(&offer, place, &mut offers)?,
            }
        }
        self.add_rest()
    }

    /// Adds a row for a candidate of a new frame.
    fn add_row(&mut self, offer: &Offer, place: Option<(usize, usize)>, offers: &mut Offers) -> Result<()> {
        let is_full = self.selection.rows.len() as u64 >= self.wanted;
        let is_exhausted = offer.stages().all(|stage| self.of_stage[stage] == 0);
        if is_full || is_exhausted || self.routes_only(&offer.scored)? {
            return Ok(());
        }
        let leader = place.map(|(frame, _)| &self.frames.frames[frame]).and_then(|frame| {
            let leader = &frame.members[frame.leader].scored;
            (leader.id != offer.scored.id).then_some(leader)
        });
        let leader = leader.filter(|leader| self.fits(leader));
        let mut shown = offer.scored.clone();
        if let Some(leader) = leader {
            // The leader stands at the score of the best candidate of its frame.
            (shown.id, shown.scalars, shown.relaxed) = (leader.id, leader.scalars, leader.relaxed.clone());
            shown.match_path = leader.match_path.clone().in_place_of(offer.scored.id);
        }
        if !self.fits(&shown) {
            return Ok(());
        }
        let content = match self.snapshot.content(shown.id) {
            Ok(content) => content,
            Err(error) if is_damage(&error) => {
                self.selection.damaged.push((shown.id, error.to_string()));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.left = self.left.map(|left| left.saturating_sub(u64::from(shown.scalars.tokens)));
        for stage in offer.stages() {
            self.of_stage[stage] = self.of_stage[stage].saturating_sub(1);
            if self.of_stage[stage] == 0 && self.frames.frames.is_empty() {
                offers.exhaust_stage(stage);
            }
        }
        let row = self.selection.rows.len();
        let shown_id = shown.id;
        self.selection.rows.push(Chosen::new(self.snapshot, shown, content)?);
        self.said.push(Vec::new());
        if let Some((frame, at)) = place {
            self.rows_of_frames.insert(frame, row);
            let shown_at = if shown_id == offer.scored.id { at } else { self.frames.frames[frame].leader };
            self.said[row].push(self.frames.frames[frame].members[shown_at].text.identity());
            if shown_id != offer.scored.id {
                self.add_line(row, frame, at, self.plan.budget.is_none())?;
            }
        }
        Ok(())
    }

    /// Adds a member of a frame to its row: folded where the row says the same words, else as a line. A `certain` line
    /// is added however many there are.
    fn add_line(&mut self, row: usize, frame: usize, at: usize, certain: bool) -> Result<()> {
        let frame_of = &self.frames.frames[frame];
        let member = &frame_of.members[at];
        let id = member.scored.id;
        let chosen = &mut self.selection.rows[row];
        if chosen.id() == id || chosen.folded.contains(&id) || chosen.lines.iter().any(|line| line.id == id) {
            return Ok(());
        }
        if self.said[row].contains(&member.text.identity()) {
            chosen.folded.push(id);
            return Ok(());
        }
        if chosen.lines.len() >= MAX_LINES && !certain {
            self.later.push((row, frame, at));
            return Ok(());
        }
        let Some(line) = self.draft(frame_of, at, row)? else { return Ok(()) };
        if self.left.is_some_and(|left| line.tokens > left) {
            return Ok(());
        }
        self.left = self.left.map(|left| left - line.tokens);
        self.said[row].push(member.text.identity());
        self.selection.rows[row].lines.push(line);
        Ok(())
    }

    fn draft(&mut self, frame: &Frame, at: usize, row: usize) -> Result<Option<Draft>> {
        match Draft::new(self.snapshot, frame, at, &self.selection.rows[row].attributes) {
            Ok(line) => Ok(Some(line)),
            Err(error) if is_damage(&error) => {
                self.selection.damaged.push((frame.members[at].scored.id, error.to_string()));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Spends the rest of a budget on the lines beyond, fills the first row under a limit, and counts the rest.
    fn add_rest(&mut self) -> Result<()> {
        if self.plan.budget.is_some() {
            for (row, frame, at) in std::mem::take(&mut self.later) {
                self.add_line(row, frame, at, true)?;
            }
        } else if let Some((frame, _)) = self.rows_of_frames.iter().find(|(_, row)| **row == 0) {
            let frame = *frame;
            for at in 0..self.frames.frames[frame].members.len() {
                self.add_line(0, frame, at, false)?;
            }
        }
        for (frame, row) in &self.rows_of_frames {
            let chosen = &mut self.selection.rows[*row];
            let shown = 1 + chosen.folded.len() + chosen.lines.len();
            chosen.more = self.frames.frames[*frame].members.len().saturating_sub(shown) as u64;
        }
        Ok(())
    }

    fn fits(&self, scored: &Scored) -> bool {
        self.left.is_none_or(|left| u64::from(scored.scalars.tokens) <= left)
    }

    /// True for a recall whose evidence is a candidate, under a budget.
    fn routes_only(&self, scored: &Scored) -> Result<bool> {
        if self.traces.is_empty() || scored.scalars.layer != Layer::Recall {
            return Ok(false);
        }
        let sources = self.snapshot.state.sources(scored.id, Layer::Recall)?;
        Ok(sources.iter().any(|source| self.traces.contains(source)))
    }
}
