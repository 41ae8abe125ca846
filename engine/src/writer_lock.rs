//! The writer's lock, and the line before it.
//!
//! A commit holds the lock for less time than it takes to wake a thread. Were all who wait asleep, the lock would lie idle
//! through every one of those wakings. So the first in line does not sleep: it looks again and again whether the lock is
//! free, letting others run meanwhile. Nor does the second, which looks whether it is the first by now. Whoever comes first
//! wakes the one that is second then, while somebody else still writes: who holds the lock wakes nobody.
//!
//! 1. Whoever stands in line is served in the order of arrival.
//! 2. Who arrives while the lock is free goes past the line: the first may have been kept from looking for longer than a
//!    commit takes. Only [`MAX_PASSING`] do so one after the other, so that the first waits for so many at most.
//! 3. Where a holder takes long, those that are awake go to sleep, too.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::Thread;

/// How often one that is awake looks before it goes to sleep.
const LOOKS: u32 = 1_000;

/// How many may go past the line one after the other.
const MAX_PASSING: u32 = 16;

/// Holds what a writer may change.
pub(crate) struct WriterLock<T> {
    line: Mutex<Line>,
    /// How many went past the line since its first had the lock. Who holds the lock writes it.
    passed: AtomicU32,
    writer: Mutex<T>,
}

#[derive(Default)]
struct Line {
    /// Somebody is the first.
    has_first: bool,
    /// Those behind; the second in front.
    behind: VecDeque<Arc<Waiter>>,
}

/// One that came while somebody was the first.
struct Waiter {
    thread: Thread,
    place: AtomicU8,
}

// Where in line a waiter stands.
const BEHIND: u8 = 0;
const SECOND: u8 = 1;
const FIRST: u8 = 2;

impl Waiter {
    fn call(&self, place: u8) {
        self.place.store(place, Ordering::Release);
        // Costs next to nothing where the thread is awake.
        self.thread.unpark();
    }

    fn wait_to_be_first(&self) {
        let mut looks = 0;
        loop {
            match self.place.load(Ordering::Acquire) {
                FIRST => return,
                SECOND if looks < LOOKS => {
                    looks += 1;
                    std::thread::yield_now();
                }
                _ => std::thread::park(),
            }
        }
    }
}

impl<T> WriterLock<T> {
    pub(crate) fn new(writer: T) -> Self {
        WriterLock { line: Mutex::default(), passed: AtomicU32::new(0), writer: Mutex::new(writer) }
    }

    /// Waits for the lock. A panic of another thread left the writer's state as it was at its last append.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        if let Some(writer) = self.go_past() {
            return writer;
        }
        self.come_first();
        let writer = self.take();
        self.passed.store(0, Ordering::Relaxed);
        self.call_next();
        writer
    }

    fn go_past(&self) -> Option<MutexGuard<'_, T>> {
        if self.passed.load(Ordering::Relaxed) >= MAX_PASSING {
            return None;
        }
        let writer = self.try_take()?;
        self.passed.fetch_add(1, Ordering::Relaxed);
        Some(writer)
    }

    fn come_first(&self) {
        let mut line = self.line();
        if !line.has_first {
            line.has_first = true;
            return;
        }
        let place = if line.behind.is_empty() { SECOND } else { BEHIND };
        let waiter = Arc::new(Waiter { thread: std::thread::current(), place: AtomicU8::new(place) });
        line.behind.push_back(Arc::clone(&waiter));
        drop(line);
        waiter.wait_to_be_first();
        let second = self.line().behind.front().map(Arc::clone);
        if let Some(second) = second {
            second.call(SECOND);
        }
    }

    fn take(&self) -> MutexGuard<'_, T> {
        for _ in 0..LOOKS {
            if let Some(writer) = self.try_take() {
                return writer;
            }
            std::thread::yield_now();
        }
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_take(&self) -> Option<MutexGuard<'_, T>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn call_next(&self) {
        let mut line = self.line();
        let next = line.behind.pop_front();
        line.has_first = next.is_some();
        drop(line);
        if let Some(next) = next {
            next.call(FIRST);
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    impl<T> WriterLock<T> {
        /// Waits until so many stand in line.
        fn wait_for_line(&self, len: usize) {
            let len_now = |line: &Line| usize::from(line.has_first) + line.behind.len();
            while len_now(&self.line()) < len {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn one_at_a_time() {
        let lock = WriterLock::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut count = lock.lock();
                        let before = *count;
                        thread::yield_now();
                        *count = before + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 16_000);
        assert!(!lock.line().has_first && lock.line().behind.is_empty());
    }

    #[test]
    fn those_in_line_are_served_in_order_even_after_a_long_wait() {
        let lock = &WriterLock::new(Vec::new());
        thread::scope(|scope| {
            let held = lock.lock();
            for number in 0..6 {
                scope.spawn(move || lock.lock().push(number));
                lock.wait_for_line(number + 1);
            }
            // Long enough for those that are awake to give up looking.
            for _ in 0..50 * LOOKS {
                thread::yield_now();
            }
            drop(held);
        });
        assert_eq!(*lock.lock(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn only_so_many_go_past_the_first() {
        let lock = &WriterLock::new(());
        let served = &AtomicBool::new(false);
        for _ in 0..50 {
            served.store(false, Ordering::Relaxed);
            let mut held = lock.lock();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _held = lock.lock();
                    served.store(true, Ordering::Relaxed);
                });
                lock.wait_for_line(1);
                let mut passing = 0;
                while !served.load(Ordering::Relaxed) {
                    assert!(passing <= MAX_PASSING, "and the first still waits");
                    passing += 1;
                    drop(held);
                    held = lock.lock();
                }
            });
        }
    }

    #[test]
    fn a_panic_leaves_the_lock_to_the_next() {
        let lock = &WriterLock::new(7);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = lock.lock();
                panic!("on purpose");
            });
            holder.join().is_err()
        });
        assert!(panicked);
        assert_eq!(*lock.lock(), 7);
    }
}
