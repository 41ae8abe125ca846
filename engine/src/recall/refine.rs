//! Refining: names of the question that the best candidates have add to their `words` (profile `default`).
//!
//! | added to w, which is at most 1 | for an item that has |
//! |---|---|
//! | [`CODE`] | a code of the question, a token with a letter and a digit; for each |
//! | [`CODE_IN_CALL`] | such a code, and is the call of a tool: its reading comes before talk about it |
//! | [`NAMED_CLAIM`] | a structured claim whose name, subject and attribute, the question has whole; not for turns |
//! | [`DATED`] | a time in a window of the question's dates (`recall::dates`) |
//!
//! The best [`GROUPED`] candidates are refined; the others keep their places. Measured on a log of tool calls: an
//! answer among five rows for 0.76 of the questions without, 0.88 with (`docs/performance.md`).

use super::dates;
use super::group::GROUPED;
use super::offers::{Offer, Offers};
use super::plan::Plan;
use super::texts::{frame_text, named_claims};
use crate::Result;
use crate::memory::frames::{Asked, FrameText};
use crate::model::item::Kind;
use crate::read::snapshot::Snapshot;

const CODE: f32 = 1.0;
const CODE_IN_CALL: f32 = 0.5;
const NAMED_CLAIM: f32 = 1.0;
const DATED: f32 = 0.5;

/// Reads the texts of the best candidates and sorts them by what the question names.
pub(super) fn refine(snapshot: &Snapshot, plan: &Plan, asked: &Asked, offers: &mut Offers) -> Result<()> {
    let best = offers.best(GROUPED);
    for offer in best.iter_mut() {
        snapshot.tick()?;
        offer.text = frame_text(snapshot, offer.scored.id)?;
    }
    let Some(question) = plan.text.as_deref().filter(|_| plan.weights.groups) else { return Ok(()) };
    let windows = dates::windows(question, plan.reader_position.reader.time);
    for offer in best.iter_mut() {
        let Some(text) = &offer.text else { continue };
        let codes = codes_of(asked, text);
        let mut named = CODE * codes as f32;
        if codes > 0 && snapshot.state.attributes.kind(offer.scored.id)? == Kind::Call {
            named += CODE_IN_CALL;
        }
        if !named_claims(snapshot, asked, text, &offer.scored)?.is_empty() {
            named += NAMED_CLAIM;
        }
        if !windows.is_empty() {
            let time = snapshot.state.attributes(offer.scored.id)?.time;
            named +=
                DATED * f32::from(u8::from(windows.iter().any(|window| time.is_some_and(|t| window.contains(&t)))));
        }
        offer.scored.parts.words += plan.weights.words * named;
        offer.scored.score = offer.scored.parts.sum();
    }
    best.sort_by(Offer::best_first);
    Ok(())
}

/// The number of codes of the question that a text has.
fn codes_of(asked: &Asked, text: &FrameText) -> usize {
    let has = |code: &&u32| text.tokens.iter().any(|token| token.stem == **code);
    asked.codes.iter().filter(has).count()
}
