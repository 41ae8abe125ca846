//! The thread that analyses words behind the writer.
//!
//! A commit hands its texts to the word tails, which queue them; analysing a text costs several times what committing it
//! does. This thread works the queues off. Nothing depends on how far it has got: whoever asks for words analyses first what
//! still waits before its bound, and so does a checkpoint.

use holotype_index::words::WordTail;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Waking the thread costs as much as a small commit: it is worth this many bytes of text.
const WORTH_WAKING_LEN: usize = 32 << 10;

/// Analyses what waits in word tails, in the background.
#[derive(Default)]
pub(crate) struct WordWorker {
    shared: Arc<Shared>,
    /// Begun when there is something to do: many databases are only read.
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

impl WordWorker {
    /// Has a tail worked off that `queued_len` bytes of text wait in, if they are worth it.
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
            // Without a thread those who ask do the work.
            *thread = std::thread::Builder::new().name("holotype-words".into()).spawn(move || shared.work()).ok();
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Some(tail) = self.next() {
            // A tail that nobody else holds has become a segment, or nothing.
            while Arc::strong_count(&tail) > 1 && !self.waiting().closing && tail.catch_up_some() {}
        }
    }

    /// The next tail to work off, waiting for one; nothing at the end.
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

impl Drop for WordWorker {
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
        let worker = WordWorker::default();
        let tail = Arc::new(WordTail::new(Analyzer::default()));
        let text = "words that wait ".repeat(4_000);
        for id in 0..50 {
            let queued = tail.push(id, &[(&text, 1.0)]).unwrap();
            worker.wake(&tail, queued);
        }
        // It ends, however long it takes: a thread that never works hangs the test.
        while tail.queued_len() > 0 {
            std::thread::yield_now();
        }
        worker.wake(&tail, 1);
        drop(worker);
        assert_eq!(Arc::strong_count(&tail), 1);
    }
}
