//! The background thread that analyses words behind the writer.
//!
//! A commit appends its texts to the word tails, which queue them: analysing a text costs several times what
//! committing it does. This thread drains those queues. It is an optimisation only: a query and a checkpoint analyse
//! what is still queued below their bound before they read a tail.

use holotype_index::words::WordTail;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Waking the thread costs about as much as a small commit, so it is worth it from this many bytes of text on.
const WORTH_WAKING_LEN: usize = 32 << 10;

/// Drains the queues of word tails in the background.
#[derive(Default)]
pub(crate) struct AnalysisWorker {
    shared: Arc<Shared>,
    /// Started on first use, because many databases are only read.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    tails: VecDeque<Arc<WordTail>>,
    closing: bool,
}

impl AnalysisWorker {
    /// Schedules analysis of `tail` if its backlog justifies waking the worker.
    pub(crate) fn wake(&self, tail: &Arc<WordTail>, queued_len: usize) {
        if queued_len < WORTH_WAKING_LEN {
            return;
        }
        let mut waiting = self.shared.waiting();
        if waiting.tails.iter().any(|other| Arc::ptr_eq(other, tail)) {
            return;
        }
        waiting.tails.push_back(Arc::clone(tail));
        drop(waiting);
        self.shared.changed.notify_one();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            // If the thread cannot start, queries and checkpoints analyse the backlog themselves.
            *thread = std::thread::Builder::new().name("holotype-words".into()).spawn(move || shared.work()).ok();
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Some(tail) = self.next() {
            // A tail without another owner was merged into a segment or dropped; its backlog no longer matters.
            while Arc::strong_count(&tail) > 1 && !self.waiting().closing && tail.catch_up_some() {}
        }
    }

    /// Waits for the next scheduled tail. Returns `None` when the worker closes.
    fn next(&self) -> Option<Arc<WordTail>> {
        let mut waiting = self.waiting();
        loop {
            if waiting.closing {
                return None;
            }
            if let Some(tail) = waiting.tails.pop_front() {
                return Some(tail);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AnalysisWorker {
    fn drop(&mut self) {
        self.shared.waiting().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype_index::words::Analyzer;

    #[test]
    fn what_waits_is_worked_off_and_the_thread_ends() {
        let worker = AnalysisWorker::default();
        let tail = Arc::new(WordTail::new(Analyzer::default()));
        let text = "words that wait ".repeat(4_000);
        for id in 0..50 {
            let queued = tail.push(id, &[(&text, 1.0)]).unwrap();
            worker.wake(&tail, queued);
        }
        // A worker that never drains the queue hangs this test.
        while tail.queued_len() > 0 {
            std::thread::yield_now();
        }
        worker.wake(&tail, 1);
        drop(worker);
        assert_eq!(Arc::strong_count(&tail), 1);
    }
}
