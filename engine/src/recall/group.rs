//! Grouping: candidates of one frame are one row, led by the statement that holds now.
//!
//! Candidates in order of S join the first frame whose *seed*, its first member, they are related to
//! (`memory::frames`), else they open one. The *leader* of a frame is, among the members that may stand first, the one
//! of the best status, then the newest: by time, and within one episode by step where times are equal or missing. The
//! other members become lines of its row or, with equal words, are folded into it (`recall::select`).
//!
//! **The newest.** A value that was read a hundred times fills the candidates with equal statements, and a change since
//! is not among them. So the newest items are added that contain every word of the question that the best candidate
//! has, where they are of its frame. They stand behind all other candidates.
//!
//! **Weaker statements.** A guess of the assistant, or a statement of worse status, in other words than the first row's
//! is a line of the first row if it has every word of the question that the first row has, and at least two.
//!
//! Invariants:
//! 1. Each of the first [`GROUPED`] candidates is in exactly one frame, and each frame has its seed.
//! 2. No candidate is dropped: grouping orders and labels.
//!
//! Cost: one comparison for each pair of a candidate and a seed, most of which end at the signatures.

use super::candidates::MatchPath;
use super::offers::Offer;
use super::plan::Plan;
use super::rank::Scored;
use super::texts::{LayerWeights, PairWeights, Weights, frame_text, named_claims};
use super::words::WordIndexes;
use crate::Result;
use crate::memory::frames::{Asked, Compared, FrameText, LONG, Relation, relate};
use crate::model::item::{Attributes, ItemId, Kind, Source, Status};
use crate::read::snapshot::Snapshot;
use crate::state::conflicts::is_newer;
use foldhash::fast::RandomState;
use holotype_index::words::WordQuery;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Candidates that are grouped, at most.
pub(super) const GROUPED: usize = 64;
/// Items of the channel of the newest.
const NEWEST: usize = 16;
/// Least weight of a word of the question that the newest must contain.
const NEEDED_WEIGHT: f32 = 0.2;
/// Words of the question that a weaker statement must share with the first row.
const MIN_SHARED_NAMES: usize = 2;

/// A candidate in its frame.
pub(super) struct Member {
    pub(super) scored: Scored,
    pub(super) attributes: Attributes,
    pub(super) text: Arc<FrameText>,
    /// Its relation to the seed; `None` for the seed.
    pub(super) relation: Option<Relation>,
    /// The names of its structured claims that the question has whole.
    claims: Vec<Box<[u32]>>,
}

impl Member {
    fn compared(&self) -> Compared<'_> {
        Compared {
            text: &self.text,
            speaker: self.attributes.speaker,
            episode: self.attributes.episode,
            is_turn: self.attributes.kind == Kind::Turn,
        }
    }
}

/// Candidates of one frame, in order of S. The first is the seed.
pub(super) struct Frame {
    pub(super) members: Vec<Member>,
    /// The place of the leader.
    pub(super) leader: usize,
}

/// The frames of a recall, in order of the S of their seeds.
#[derive(Default)]
pub(super) struct Frames {
    pub(super) frames: Vec<Frame>,
    /// The frame and the place of each grouped candidate.
    places: HashMap<ItemId, (usize, usize), RandomState>,
}

impl Frames {
    /// The frame and the place in it of a candidate.
    pub(super) fn place_of(&self, id: ItemId) -> Option<(usize, usize)> {
        self.places.get(&id).copied()
    }

    fn join(&mut self, frame: usize, member: Member) {
        let members = &mut self.frames[frame].members;
        self.places.insert(member.scored.id, (frame, members.len()));
        members.push(member);
    }
}

/// Groups candidates by frame.
pub(super) struct Grouper<'g, 'w> {
    pub(super) snapshot: &'g Snapshot,
    pub(super) plan: &'g Plan,
    pub(super) indexes: &'g WordIndexes,
    pub(super) asked: &'g Asked,
    pub(super) weights: &'g Weights<'w>,
}

impl Grouper<'_, '_> {
    /// The frames of the best candidates, which are in order of S.
    pub(super) fn group(&self, best: &[Offer]) -> Result<Frames> {
        let mut frames = Frames::default();
        for offer in best.iter().take(GROUPED) {
            let Some(text) = &offer.text else { continue };
            let member = self.member(offer.scored.clone(), Arc::clone(text))?;
            match self.frame_of(&frames, &member)? {
                Some((frame, relation)) => frames.join(frame, Member { relation: Some(relation), ..member }),
                None => {
                    frames.frames.push(Frame { members: Vec::new(), leader: 0 });
                    frames.join(frames.frames.len() - 1, member);
                }
            }
        }
        self.add_newest(&mut frames, best)?;
        for frame in &mut frames.frames {
            frame.leader = self.leader(frame);
        }
        Ok(frames)
    }

    fn member(&self, scored: Scored, text: Arc<FrameText>) -> Result<Member> {
        let attributes = self.snapshot.state.attributes(scored.id)?;
        let claims = named_claims(self.snapshot, self.asked, &text, &scored)?;
        Ok(Member { scored, attributes, text, relation: None, claims })
    }

    /// The first frame whose seed a candidate is related to.
    fn frame_of(&self, frames: &Frames, member: &Member) -> Result<Option<(usize, Relation)>> {
        for (at, frame) in frames.frames.iter().enumerate() {
            let Some(seed) = frame.members.first() else { continue };
            if let Some(relation) = self.relation(seed, member)? {
                return Ok(Some((at, relation)));
            }
            if at == 0 && self.is_weaker(seed, member)? {
                return Ok(Some((at, Relation::Weaker)));
            }
        }
        Ok(None)
    }

    fn relation(&self, seed: &Member, other: &Member) -> Result<Option<Relation>> {
        let layer = seed.attributes.layer();
        if other.attributes.layer() != layer {
            return Ok(None);
        }
        // Of two short records one of which says what is asked, the other says something else of the subject. A long
        // one may have gained a field.
        let is_record = |member: &Member| !member.text.claims.is_empty() && member.text.tokens.len() < LONG;
        if is_record(seed) && is_record(other) && seed.claims.is_empty() != other.claims.is_empty() {
            return Ok(None);
        }
        let items = [seed.scored.id, other.scored.id];
        let of_layer = self.weights.of_layer(layer)?;
        let mut weigh = PairWeights { snapshot: self.snapshot, weights: self.weights, layer, of_layer, items };
        let found = relate(self.asked, seed.compared(), other.compared(), &mut weigh)?;
        if !self.shares_claim(seed, other)? {
            return Ok(found);
        }
        Ok(Some(match found {
            Some(Relation::Restatement) => Relation::Restatement,
            Some(relation) if !relation.differences().is_empty() => Relation::Variant(relation.differences().to_vec()),
            _ => Relation::Claim,
        }))
    }

    /// True if two statements claim something of one name that the question has whole, and neither cites the other.
    fn shares_claim(&self, seed: &Member, other: &Member) -> Result<bool> {
        if !seed.claims.iter().any(|name| other.claims.contains(name)) {
            return Ok(false);
        }
        let cites = |from: &Member, to: &Member| {
            let sources = self.snapshot.state.sources(from.scored.id, from.attributes.layer())?;
            Ok::<bool, crate::Error>(sources.contains(&to.scored.id))
        };
        Ok(!cites(seed, other)? && !cites(other, seed)?)
    }

    /// True if a statement has all that the question names of the first row, or its claim, and is of worse status or a
    /// guess.
    fn is_weaker(&self, first: &Member, other: &Member) -> Result<bool> {
        let (a, b) = (&first.attributes, &other.attributes);
        let is_guess = |of: &Attributes| matches!(of.source, Some(Source::Assistant | Source::System));
        let is_worse = status_rank(b) > status_rank(a) || (is_guess(b) && !is_guess(a));
        let is_other_speaker = a.speaker.is_some() && a.speaker != b.speaker;
        if !is_worse || is_other_speaker || a.layer() != b.layer() {
            return Ok(false);
        }
        let of_layer = self.weights.of_layer(a.layer())?;
        let said = self.named(&other.text, of_layer);
        let has_all = |needed: &BTreeSet<u32>| needed.len() >= MIN_SHARED_NAMES && needed.is_subset(&said);
        let claim = first.claims.first().map(|name| name.iter().copied().collect());
        Ok(has_all(&self.named(&first.text, of_layer)) || claim.is_some_and(|claim| has_all(&claim)))
    }

    /// The stems of a text that the question names.
    fn named(&self, text: &FrameText, weights: &LayerWeights) -> BTreeSet<u32> {
        let mut named = BTreeSet::new();
        for token in text.tokens.iter().filter(|token| !token.is_single) {
            if let Some(parts) = self.asked.joined.get(&token.stem) {
                named.extend(parts.iter().filter(|stem| weights.of_question(**stem) >= NEEDED_WEIGHT));
            }
            let is_asked = self.asked.words.contains_key(&token.stem);
            if is_asked && (token.has_digit || weights.of_question(token.stem) >= NEEDED_WEIGHT) {
                named.insert(token.stem);
            }
        }
        named
    }

    /// Adds the newest items of the first frame.
    fn add_newest(&self, frames: &mut Frames, best: &[Offer]) -> Result<()> {
        let Some(seed) = frames.frames.first().and_then(|frame| frame.members.first()) else { return Ok(()) };
        let layer = seed.attributes.layer();
        let needed = self.named(&seed.text, self.weights.of_layer(layer)?);
        if needed.is_empty() {
            return Ok(());
        }
        let words = needed.iter().filter_map(|stem| self.asked.words.get(stem)).map(String::as_str);
        let (query, _) = WordQuery::from_words(&self.indexes.analyzer(), words);
        let Some(stage) = self.plan.stages.iter().rfind(|stage| stage.is_in(layer)) else { return Ok(()) };
        let found = self.indexes.index(layer).scorer(&query)?.newest_with_all(&stage.rows, NEWEST)?;
        let last = best.last().map_or(0.0, |offer| offer.scored.score);
        let similarity = seed.scored.cosine;
        let mut new = Vec::new();
        for id in found.into_iter().map(ItemId).filter(|id| frames.place_of(*id).is_none()) {
            let Some(text) = frame_text(self.snapshot, id)? else { continue };
            let scalars = self.snapshot.state.attributes.scalars(id, layer, self.plan.reads())?;
            // It is found by its words; nothing tells that it is less similar than the seed.
            let (match_path, relaxed) = (MatchPath::newest(), Vec::new());
            let scored =
                Scored { id, scalars, score: last, cosine: similarity, match_path, relaxed, ..seed.scored.clone() };
            let member = self.member(scored, text)?;
            if let Some(relation) = self.relation(seed, &member)? {
                new.push(Member { relation: Some(relation), ..member });
            }
        }
        new.into_iter().for_each(|member| frames.join(0, member));
        Ok(())
    }

    /// The place of the leader of a frame.
    fn leader(&self, frame: &Frame) -> usize {
        let Some(seed) = frame.members.first() else { return 0 };
        let (near, slots) = self.plan.frame_margins;
        let is_near = |member: &Member, margin: f32| member.scored.cosine >= seed.scored.cosine - margin;
        let may_lead = |member: &Member| match &member.relation {
            None | Some(Relation::Restatement | Relation::Variant(_) | Relation::Claim) => true,
            Some(Relation::Near(_)) => is_near(member, near),
            Some(Relation::Slots(_)) => is_near(member, slots),
            Some(Relation::Qualified(_) | Relation::Weaker) => false,
        };
        let mut best = 0;
        for (at, member) in frame.members.iter().enumerate().filter(|(_, member)| may_lead(member)) {
            let leader = &frame.members[best];
            let rank = |member: &Member| (member.scored.relaxed.len(), status_rank(&member.attributes));
            if rank(member) < rank(leader)
                || (rank(member) == rank(leader) && is_newer(&member.attributes, &leader.attributes))
            {
                best = at;
            }
        }
        best
    }
}

/// The order of statuses: success and unknown before failed.
fn status_rank(of: &Attributes) -> u8 {
    u8::from(of.status == Some(Status::Failed))
}
