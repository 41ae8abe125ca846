//! The items nearest to a vector, and nothing else of them: what a library of vectors answers, from a snapshot.
//!
//! A recall reads, checks and hashes every row it gives, which takes longer than finding them. Who keeps what they need
//! beside the database, or looks a few of them up afterwards, wants their numbers alone.
//!
//! Invariant: an answer is of all vectors that may be one. Where a damaged file keeps some of them from being compared,
//! there is an error and no shorter answer, for there is nowhere to say so.

use crate::model::item::{ItemId, Layer};
use crate::read::snapshot::Snapshot;
use crate::{Error, Result};
use holotype_index::bitmap::Bits;
use holotype_index::{Search, SearchOptions, Strategy};

/// Minimum number of candidates of a graph search.
const EF: usize = 64;

impl Snapshot {
    /// The `k` items of a layer whose vectors are nearest to `vector`, best first, with their similarities: what a
    /// recall by that vector alone gives, without the rows. What is inactive, redacted or failed is not among them.
    ///
    /// ```
    /// # use holotype::{Durability, Holotype, Layer, NewTrace, Options, Space};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let options = Options::with_space(Space::new("example", 2));
    /// # let database = Holotype::create(dir.path().join("memory.holo"), options)?;
    /// let mut transaction = database.begin()?;
    /// let east = transaction.record(NewTrace::turn("walk", "to the east").vector(vec![1.0, 0.0]))?;
    /// transaction.record(NewTrace::turn("walk", "to the north").vector(vec![0.0, 1.0]))?;
    /// transaction.commit(Durability::None)?;
    /// let nearest = database.snapshot().nearest(Layer::Trace, &[2.0, 0.1], 1)?;
    /// assert_eq!(nearest[0].0, east);
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Vector`] when the database has no space or the vector does not fit it; [`Error::Corrupt`] when vectors
    /// cannot be compared because their file is damaged, which is then being made again from the log.
    pub fn nearest(&self, layer: Layer, vector: &[f32], k: usize) -> Result<Vec<(ItemId, f32)>> {
        self.unless_erased(|view| self.core.unless_cut(|| view.nearest_unless_cut(layer, vector, k)))
    }

    fn nearest_unless_cut(&self, layer: Layer, vector: &[f32], k: usize) -> Result<Vec<(ItemId, f32)>> {
        let snapshot = self.metered();
        snapshot.check_not_erased()?;
        let state = &snapshot.state;
        let no_space = || {
            Error::Vector("the database has no embedding space; create one with a space to search by vector".to_owned())
        };
        snapshot.space()?.ok_or_else(no_space)?.check_vector(vector)?;
        let sound = state.attributes.base_sets(state.bound()).eligible(layer)?;
        let found = search(&snapshot, layer, vector, k, &sound)?.unwrap_or_default();
        let around = found.parts.iter().filter(|part| part.strategy == Strategy::SkipDamaged);
        let missed: u64 = around.map(|part| part.matching.saturating_sub(part.compared)).sum();
        if missed > 0 {
            return Err(Error::Corrupt {
                what: format!(
                    "{missed} vectors of layer {layer} stand in a damaged file: a database open for writing makes it again \
                     from the log, and `holotype rebuild` does"
                ),
            });
        }
        Ok(found.hits.into_iter().map(|hit| (ItemId(hit.id), hit.score)).collect())
    }
}

/// The nearest vectors of a layer within the filter, skipping damaged parts; `None` without a space.
pub(crate) fn search(
    snapshot: &Snapshot,
    layer: Layer,
    vector: &[f32],
    most: usize,
    filter: &Bits,
) -> Result<Option<Search>> {
    let Some(index) = snapshot.state.vector_index(layer, &snapshot.core.log)? else { return Ok(None) };
    snapshot.tick()?;
    snapshot.core.merger.note_search();
    let options = options(most, filter);
    let scorer = snapshot.core.scorer.as_ref();
    let found = match snapshot.near_answers().and_then(|answers| answers.find(layer, vector, filter, most)) {
        Some(found) => found.clone(),
        None if scorer.takes_single_queries() && index.shares_scan(&options)? => {
            index.search_batch(&[vector], most, options, scorer)?.pop().unwrap_or_default()
        }
        None => index.search(vector, most, options)?,
    };
    if found.parts.iter().any(|part| part.strategy == Strategy::SkipDamaged) {
        snapshot.core.schedule_repair();
    }
    snapshot.charge_rows(found.parts.iter().map(|part| part.compared).sum())?;
    Ok(Some(found))
}

/// As [`search`] for several vectors, without charges to any statement. `None` unless they share a pass.
pub(crate) fn search_together(
    snapshot: &Snapshot,
    layer: Layer,
    vectors: &[&[f32]],
    most: usize,
    filter: &Bits,
) -> Result<Option<Vec<Search>>> {
    let Some(index) = snapshot.state.vector_index(layer, &snapshot.core.log)? else { return Ok(None) };
    let options = options(most, filter);
    match index.shares_scan(&options)? {
        true => Ok(Some(index.search_batch(vectors, most, options, snapshot.core.scorer.as_ref())?)),
        false => Ok(None),
    }
}

/// True if searches of a layer compare all matching vectors of a large part.
pub(crate) fn shares_scan(snapshot: &Snapshot, layer: Layer) -> Result<bool> {
    match snapshot.state.vector_index(layer, &snapshot.core.log)? {
        Some(index) => Ok(index.shares_scan(&SearchOptions::default())?),
        None => Ok(false),
    }
}

fn options(most: usize, filter: &Bits) -> SearchOptions<'_> {
    SearchOptions { ef: EF.max(most), filter: Some(filter), exact: false, skip_damaged: true }
}

#[cfg(test)]
mod tests {
    use crate::read::answer::Output;
    use crate::read::snapshot::Snapshot;
    use crate::{Durability, Error, Holotype, ItemId, Layer, Mark, NewTrace, Options, Space, Status};
    use holotype_query::{ParamValue, Params};
    use holotype_storage::vfs::SimVfs;
    use proptest::prelude::*;
    use std::sync::Arc;

    const DIM: usize = 3;

    #[derive(Clone, Debug)]
    enum Step {
        Record(Option<[i8; DIM]>),
        Mark(u32, u8),
        Checkpoint,
        Ask([i8; DIM], usize),
    }

    fn numbers() -> impl Strategy<Value = [i8; DIM]> {
        [-9..9_i8, -9..9_i8, 1..9_i8]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => proptest::option::weighted(0.9, numbers()).prop_map(Step::Record),
            2 => (any::<u32>(), any::<u8>()).prop_map(|(id, mark)| Step::Mark(id, mark)),
            1 => Just(Step::Checkpoint),
            4 => (numbers(), 0..12_usize).prop_map(|(numbers, k)| Step::Ask(numbers, k)),
        ]
    }

    fn vector(numbers: [i8; DIM]) -> Vec<f32> {
        numbers.into_iter().map(f32::from).collect()
    }

    fn recalled(snapshot: &Snapshot, numbers: [i8; DIM], k: usize) -> Vec<f32> {
        let params = Params::from([("v".to_owned(), ParamValue::Vector(vector(numbers)))]);
        let statement = format!("recall near $v through traces {k} by near pool {k} score similarity 1 limit {k}");
        match snapshot.query(&statement, &params).unwrap().pop() {
            // If nothing else is found, a recall includes failed items and marks them.
            Some(Output::Answer(answer)) => {
                answer.rows.iter().filter(|row| row.relaxed.is_empty()).map(|row| row.score).collect()
            }
            other => panic!("a recall gave {other:?}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn they_are_what_a_recall_finds_and_a_snapshot_keeps_them(steps in proptest::collection::vec(step(), 1..60)) {
            let options = Options::with_space(Space::new("test", DIM));
            let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", options).unwrap();
            let mut kept = Vec::new();
            for step in steps {
                let mut transaction = database.begin().unwrap();
                match step {
                    Step::Record(numbers) => {
                        let trace = NewTrace::turn("e", "a text");
                        let trace = numbers.into_iter().fold(trace, |trace, numbers| trace.vector(vector(numbers)));
                        transaction.record(trace).unwrap();
                    }
                    Step::Mark(id, mark) => {
                        let bound = transaction.state().unwrap().bound();
                        if bound > 0 {
                            let mark = if mark % 3 == 0 { Mark::Inactive } else { Mark::Status(Status::Failed) };
                            transaction.mark(ItemId(id % bound), mark, None).unwrap();
                        }
                    }
                    Step::Checkpoint => {
                        drop(transaction);
                        database.checkpoint().unwrap();
                        continue;
                    }
                    Step::Ask(numbers, k) => {
                        let snapshot = transaction.snapshot().unwrap();
                        let nearest = snapshot.nearest(Layer::Trace, &vector(numbers), k).unwrap();
                        let scores: Vec<f32> = nearest.iter().map(|(_, score)| *score).collect();
                        prop_assert!(k == 0 || scores == recalled(&snapshot, numbers, k), "{:?}", nearest);
                        prop_assert!(k > 0 || scores.is_empty());
                        for (id, _) in &nearest {
                            let attributes = snapshot.state.attributes(*id).unwrap();
                            prop_assert!(attributes.active && attributes.status != Some(Status::Failed));
                        }
                        kept.push((database.snapshot(), numbers, k, nearest));
                    }
                }
                transaction.commit(Durability::None).unwrap();
            }
            for (snapshot, numbers, k, nearest) in kept {
                prop_assert_eq!(snapshot.nearest(Layer::Trace, &vector(numbers), k).unwrap(), nearest);
            }
        }
    }

    #[test]
    fn what_does_not_fit_the_space_is_refused() {
        let refused = |options: Options, vector: &[f32]| {
            let database = Holotype::create_on(Arc::new(SimVfs::new()), "/db", options).unwrap();
            let nearest = database.snapshot().nearest(Layer::Trace, vector, 3);
            assert!(matches!(nearest, Err(Error::Vector(_))), "{nearest:?}");
        };
        refused(Options::default(), &[1.0; DIM]);
        for vector in [&[1.0][..], &[f32::NAN; DIM]] {
            refused(Options::with_space(Space::new("test", DIM)), vector);
        }
    }
}
