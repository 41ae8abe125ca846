//! The governed score S (HELM eq. 1, plus words): its weights, and the terms that need no index.
//!
//! ```text
//! S(item; q) = l_sim * cos(v_q, v) + l_words * w(item; q) + l_time * g(dt)
//!            + l_status * w(status) + l_src * w(source) + l_util * (utility + credit) + l_ret * return_score / 10
//!            - l_conf * [a leader contradicts a claim of it]
//! g(dt) = exp(-ln 2 * dt / half-life),  dt below 0 counts as 0
//! ```
//!
//! An attribute that is absent makes its term 0. `context` is no term of its own: it says how much the words of a
//! trace's neighbours in its log count for its own in `w` (see `recall::rank`).

use crate::model::item::{Source, Status};
use crate::read::answer::Parts;
use crate::state::State;
use crate::state::attributes::scalars::{Reads, Scalars};
use crate::state::reader_position::ReaderPosition;
use crate::state::settings;
use crate::{Error, Result};
use holotype_query::Part;
use holotype_query::plan::{Interval, Score, ScoreBase, Term};

/// The highest return score (PlugMem C.2).
const MOST_RETURN: f32 = 10.0;

/// The unit of recency's half-life: clock time, or steps of the reader's episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HalfLife {
    Clock(i64),
    Steps(u64),
}

/// The weights of S.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    pub(crate) similarity: f32,
    pub(crate) words: f32,
    pub(crate) recency: f32,
    pub(crate) status: f32,
    pub(crate) source: f32,
    pub(crate) utility: f32,
    pub(crate) return_score: f32,
    pub(crate) context: f32,
    pub(crate) conflict: f32,
    /// Calls of tools lend words to their neighbours, too, as turns and observations do.
    pub(crate) context_of_calls: bool,
    /// Candidates of one frame are one row with lines, and what a question names is preferred (`recall::refine`).
    pub(crate) groups: bool,
    half_life: HalfLife,
    statuses: [f32; 3],
    sources: [f32; 6],
}

impl Weights {
    /// The weights a recall asks for, or those of the database's profile.
    pub(crate) fn of(state: &State, score: Option<&Score>) -> Result<Weights> {
        let default = || Weights::profile(state, &settings::value(state, "profile")?);
        let Some(score) = score else { return default() };
        let mut weights = match &score.base {
            ScoreBase::Default => default()?,
            ScoreBase::Profile(name) => Weights::profile(state, name.word().unwrap_or_default())?,
            ScoreBase::Zero => {
                Weights { similarity: 0.0, words: 0.0, recency: 0.0, status: 0.0, source: 0.0, ..default()? }
            }
        };
        if score.base == ScoreBase::Zero {
            (weights.utility, weights.return_score, weights.context, weights.conflict) = (0.0, 0.0, 0.0, 0.0);
            weights.groups = false;
        }
        for term in &score.terms {
            weights.set(term)?;
        }
        Ok(weights)
    }

    /// The weights of a profile: `default`, which need not be told what a question is about; `helm` (HELM eq. 1 and
    /// Table 11); `agent`, the same with words; `archive` for questions about the whole past.
    pub(crate) fn profile(state: &State, name: &str) -> Result<Weights> {
        let agent = Weights::agent(state)?;
        match name {
            "agent" => Ok(agent),
            "helm" => Ok(Weights { words: 0.0, conflict: 0.0, ..agent }),
            "archive" => Ok(Weights { recency: 0.0, context: 1.0, conflict: 0.0, ..agent }),
            "default" => Ok(Weights {
                recency: 0.0,
                source: 0.5,
                context: 1.0,
                context_of_calls: false,
                conflict: 0.0,
                groups: true,
                statuses: [0.0, -0.03, -1.0],
                ..agent
            }),
            _ => {
                let known = holotype_query::attributes::PROFILES.join(", ");
                Err(Error::Invalid(format!("unknown score profile {name:?}; expected one of {known}")))
            }
        }
    }

    /// Failed items rank as those of unknown status: they are asked for (`default` profile).
    pub(crate) fn ignore_failure(&mut self) {
        self.statuses[usize::from(Status::Failed.to_byte())] = self.statuses[usize::from(Status::Unknown.to_byte())];
    }

    fn agent(state: &State) -> Result<Weights> {
        Ok(Weights {
            similarity: 1.0,
            words: 1.0,
            recency: 1.0,
            status: 10.0,
            source: 1.0,
            utility: 0.0,
            return_score: 0.0,
            context: 0.0,
            conflict: 1.0,
            context_of_calls: true,
            groups: false,
            half_life: HalfLife::Clock(settings::half_life(state)?),
            statuses: [0.0, -0.1, -1.0],
            sources: Source::ALL
                .iter()
                .map(|source| source.weight())
                .collect::<Vec<_>>()
                .try_into()
                .unwrap_or([0.0; 6]),
        })
    }

    fn set(&mut self, term: &Term) -> Result<()> {
        let weight = term.weight as f32;
        if !weight.is_finite() {
            return Err(Error::Invalid(format!("the weight of {} must be a finite number", term.part)));
        }
        match term.part {
            Part::Similarity => self.similarity = weight,
            Part::Words => self.words = weight,
            Part::Recency => self.recency = weight,
            Part::Status => self.status = weight,
            Part::Source => self.source = weight,
            Part::Utility => self.utility = weight,
            Part::ReturnScore => self.return_score = weight,
            Part::Context => self.context = weight,
            Part::Conflict => self.conflict = weight,
        }
        for (name, value) in &term.values {
            let (name, value) = (name.word().unwrap_or_default(), *value as f32);
            match term.part {
                Part::Status => self.statuses[usize::from(name.parse::<Status>()?.to_byte())] = value,
                Part::Source => self.sources[usize::from(name.parse::<Source>()?.to_byte())] = value,
                _ => {}
            }
        }
        if let Some(half_life) = &term.half_life {
            self.half_life = match half_life {
                Interval::Clock(duration) => HalfLife::Clock(i64::try_from(duration.micros()).unwrap_or(i64::MAX)),
                Interval::Steps(steps) => HalfLife::Steps(*steps),
            };
        }
        Ok(())
    }

    /// The scalars that the terms read.
    pub(crate) fn reads(&self) -> Reads {
        let step = matches!(self.half_life, HalfLife::Steps(_));
        Reads { step, utility: self.utility != 0.0, return_score: self.return_score != 0.0, ..Reads::ALL }
    }

    /// The recency g of an item for a reader, between 0 and 1.
    fn recency_of(&self, item: &Scalars, reader_position: &ReaderPosition) -> f32 {
        let halvings = match self.half_life {
            HalfLife::Clock(half_life) => {
                reader_position.age(item.time).map(|age| age as f64 / half_life.max(1) as f64)
            }
            HalfLife::Steps(half_life) => reader_position
                .step_distance(item.episode, item.step)
                .map(|steps| steps as f64 / half_life.max(1) as f64),
        };
        halvings.map_or(0.0, |halvings| (-halvings).exp2() as f32)
    }

    /// S of an item without similarity and words.
    pub(crate) fn unasked(&self, item: &Scalars, reader_position: &ReaderPosition) -> f32 {
        self.parts(item, reader_position, 0.0, 0.0, 0).sum()
    }

    /// The terms of S for an item, given its similarity and words in [0, 1] and the number of exclusions it is
    /// included despite.
    pub(crate) fn parts(
        &self,
        item: &Scalars,
        reader_position: &ReaderPosition,
        similarity: f32,
        words: f32,
        relaxed: usize,
    ) -> Parts {
        Parts {
            similarity: self.similarity * similarity,
            words: self.words * words,
            recency: self.recency * self.recency_of(item, reader_position),
            status: item.status.map_or(0.0, |status| self.status * self.statuses[usize::from(status.to_byte())]),
            source: item.source.map_or(0.0, |source| self.source * self.sources[usize::from(source.to_byte())]),
            utility: self.utility * item.utility + self.return_score * f32::from(item.return_score) / MOST_RETURN,
            conflict: 0.0,
            relaxed: -self.status * relaxed as f32,
        }
    }
}
