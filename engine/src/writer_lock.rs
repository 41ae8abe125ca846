//! The writer's lock: one holds it, one is awake for its turn, the others sleep in line.
//!
//! A commit holds the lock for less time than it takes to wake a thread. Were all who wait asleep, the lock would lie idle
//! through every one of those wakings. So the first in line does not sleep: it looks again and again whether the lock is
//! free, letting others run meanwhile, and calls the next one forward as soon as it has it. That one wakes up while this one
//! writes.
//!
//! Turns are taken in the order of arrival. Where a holder takes long, the first in line goes to sleep, too.

use crate::database::Writer;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::Thread;

/// How often the first in line looks for the lock before it goes to sleep.
const LOOKS: u32 = 1_000;

/// Holds what a writer may change.
pub(crate) struct WriterLock {
    line: Mutex<Line>,
    writer: Mutex<Writer>,
}

#[derive(Default)]
struct Line {
    /// Somebody is the first.
    has_first: bool,
    /// Those behind.
    asleep: VecDeque<Arc<Sleeper>>,
}

struct Sleeper {
    thread: Thread,
    is_first: AtomicBool,
}

impl WriterLock {
    pub(crate) fn new(writer: Writer) -> Self {
        WriterLock { line: Mutex::default(), writer: Mutex::new(writer) }
    }

    /// Waits for the lock. A panic of another thread left the writer's state as it was at its last append.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.come_first();
        let writer = self.take();
        self.call_next();
        writer
    }

    fn come_first(&self) {
        let mut line = self.line();
        if !line.has_first {
            line.has_first = true;
            return;
        }
        let sleeper = Arc::new(Sleeper { thread: std::thread::current(), is_first: AtomicBool::new(false) });
        line.asleep.push_back(Arc::clone(&sleeper));
        drop(line);
        while !sleeper.is_first.load(Ordering::Acquire) {
            std::thread::park();
        }
    }

    fn take(&self) -> MutexGuard<'_, Writer> {
        for _ in 0..LOOKS {
            match self.writer.try_lock() {
                Ok(writer) => return writer,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call_next(&self) {
        let mut line = self.line();
        let next = line.asleep.pop_front();
        line.has_first = next.is_some();
        drop(line);
        if let Some(next) = next {
            next.is_first.store(true, Ordering::Release);
            next.thread.unpark();
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
