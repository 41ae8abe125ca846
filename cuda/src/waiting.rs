//! Requests of several threads: the one that gets the device answers those that wait for the same vectors, too.
//!
//! A pass over a part costs about the same for one query as for eight, so threads that take turns on the device would
//! each pay for a pass. A thread that finds the device busy leaves its request here and waits for its turn. The thread
//! whose turn it is takes all requests for its part under its filter along, and their threads find their answers.
//!
//! Invariant: a request that was taken along and not answered is asked by its own thread, as if it had never been here.

use crate::executor::Candidates;
use holotype_index::scorer::{Batch, PartId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The batch of a thread, without the vectors of the part.
#[derive(Debug)]
pub(crate) struct Request {
    part: PartId,
    matching: Option<Vec<u64>>,
    pub(crate) k: usize,
    pub(crate) queries: Vec<Vec<f32>>,
    answer: Mutex<Option<Candidates>>,
}

impl Request {
    fn new(batch: &Batch<'_>) -> Self {
        Self {
            part: batch.part(),
            matching: batch.matching().map(<[u64]>::to_vec),
            k: batch.k(),
            queries: (0..batch.query_count()).map(|query| batch.query(query).to_vec()).collect(),
            answer: Mutex::new(None),
        }
    }

    fn shares_pass(&self, batch: &Batch<'_>) -> bool {
        self.part == batch.part() && self.matching.as_deref() == batch.matching()
    }

    /// Gives the thread that asked its candidates.
    pub(crate) fn answer(&self, candidates: Candidates) {
        *lock(&self.answer) = Some(candidates);
    }
}

/// The requests that wait for the device.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    requests: Mutex<Vec<Arc<Request>>>,
}

/// A request that waits until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    waiting: &'a Waiting,
    request: Arc<Request>,
}

impl Waiting {
    /// Leaves a request for the thread that has the device next.
    pub(crate) fn join(&self, batch: &Batch<'_>) -> Turn<'_> {
        let request = Arc::new(Request::new(batch));
        lock(&self.requests).push(Arc::clone(&request));
        Turn { waiting: self, request }
    }

    /// The requests that a pass for `batch` answers as well. They no longer wait.
    pub(crate) fn take_along(&self, batch: &Batch<'_>) -> Vec<Arc<Request>> {
        lock(&self.requests).extract_if(.., |request| request.shares_pass(batch)).collect()
    }

    /// The number of queries that [`take_along`](Self::take_along) would bring.
    pub(crate) fn query_count(&self, batch: &Batch<'_>) -> usize {
        let requests = lock(&self.requests);
        requests.iter().filter(|request| request.shares_pass(batch)).map(|request| request.queries.len()).sum()
    }

    /// The number of requests.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        lock(&self.requests).len()
    }
}

impl Turn<'_> {
    /// The candidates, if another thread has found them meanwhile. The request waits no longer.
    pub(crate) fn end(self) -> Option<Candidates> {
        lock(&self.request.answer).take()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.waiting.requests).retain(|request| !Arc::ptr_eq(request, &self.request));
    }
}

/// Each change under these locks is one assignment, so what a panic leaves behind is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
