//! Frames: statements that say the same about one subject except for a short difference.
//!
//! "The rent is $850." and "The rent is $900." are two values of one frame; "The rent of flat 2 is $900." is another
//! frame if the question names flat 2. A recall groups its candidates by frame, orders a group by what is valid and
//! new, and shows the rest of the group as lines (`recall::group`). Nothing here needs a database; texts
//! that questions met before are kept by `state::frame_texts`.
//!
//! ```text
//! tokens     the tokens of a text, their stems, its claims      FrameText
//! align      the ranges in which two texts differ               Alignment
//! relation   which difference that is, for a question           Relation
//! ```
//!
//! The rules hold for any language: no word lists, no parser. The tests of a difference are its length, the rarity of
//! its words in the layer, and whether the question names them.
//!
//! Invariants:
//! 1. Every function here is pure: the same texts, question and weights give the same result.
//! 2. Comparing two texts costs at most `O(n + m)` token comparisons and one table of 24 x 24 cells.

mod align;
mod relation;
mod tokens;

pub(crate) use align::LONG;
pub(crate) use relation::{Asked, Compared, Relation, Weigh, relate};
pub(crate) use tokens::{FrameText, each_token, stem_hash};
