//! The writer's lock: a fair queue with bounded barging.
//!
//! A commit holds the lock for less time than waking a thread takes. If all waiters slept, the lock would be idle
//! during every wake-up. Therefore the head of the queue spins on the lock and yields between attempts, and the
//! second waiter spins on its promotion to head. A thread that becomes head wakes the new second while another thread
//! still holds the lock, so the holder itself never wakes anybody.
//!
//! 1. Queued threads are served in order of arrival.
//! 2. A thread that finds the lock free may barge past the queue, because the head may have been descheduled for
//!    longer than a commit takes. At most [`MAX_BARGES`] threads do so in a row, which bounds the wait of the head.
//! 3. Spinning threads sleep if a holder takes long.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::Thread;

/// Attempts of a spinning thread before it sleeps.
const SPINS: u32 = 1_000;

/// Threads that may barge past the queue in a row.
const MAX_BARGES: u32 = 16;

/// Guards the data that only a writer may change.
pub(crate) struct WriterLock<T> {
    queue: Mutex<Queue>,
    /// Barges since the head last held the lock. Only the lock's holder writes it.
    barges: AtomicU32,
    writer: Mutex<T>,
}

#[derive(Default)]
struct Queue {
    /// A thread is at the head of the queue.
    has_head: bool,
    /// Threads behind the head; the second one is first here.
    waiters: VecDeque<Arc<Waiter>>,
}

/// A thread behind the head.
struct Waiter {
    thread: Thread,
    rank: AtomicU8,
}

// The rank of a waiter in the queue.
const QUEUED: u8 = 0;
const SECOND: u8 = 1;
const HEAD: u8 = 2;

impl Waiter {
    fn promote(&self, rank: u8) {
        self.rank.store(rank, Ordering::Release);
        // `unpark` is nearly free if the thread is awake.
        self.thread.unpark();
    }

    fn wait_until_head(&self) {
        let mut spins = 0;
        loop {
            match self.rank.load(Ordering::Acquire) {
                HEAD => return,
                SECOND if spins < SPINS => {
                    spins += 1;
                    std::thread::yield_now();
                }
                _ => std::thread::park(),
            }
        }
    }
}

impl<T> WriterLock<T> {
    pub(crate) fn new(writer: T) -> Self {
        WriterLock { queue: Mutex::default(), barges: AtomicU32::new(0), writer: Mutex::new(writer) }
    }

    /// Waits for the lock. After a panic of another thread the writer's data is as it was at its last append.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        if let Some(writer) = self.try_barge() {
            return writer;
        }
        self.wait_for_head();
        let writer = self.acquire();
        self.barges.store(0, Ordering::Relaxed);
        self.wake_next();
        writer
    }

    fn try_barge(&self) -> Option<MutexGuard<'_, T>> {
        if self.barges.load(Ordering::Relaxed) >= MAX_BARGES {
            return None;
        }
        let writer = self.try_acquire()?;
        self.barges.fetch_add(1, Ordering::Relaxed);
        Some(writer)
    }

    fn wait_for_head(&self) {
        let mut queue = self.queue();
        if !queue.has_head {
            queue.has_head = true;
            return;
        }
        let rank = if queue.waiters.is_empty() { SECOND } else { QUEUED };
        let waiter = Arc::new(Waiter { thread: std::thread::current(), rank: AtomicU8::new(rank) });
        queue.waiters.push_back(Arc::clone(&waiter));
        drop(queue);
        waiter.wait_until_head();
        let second = self.queue().waiters.front().map(Arc::clone);
        if let Some(second) = second {
            second.promote(SECOND);
        }
    }

    fn acquire(&self) -> MutexGuard<'_, T> {
        for _ in 0..SPINS {
            if let Some(writer) = self.try_acquire() {
                return writer;
            }
            std::thread::yield_now();
        }
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock if nobody has it, past the queue.
    pub(crate) fn try_acquire(&self) -> Option<MutexGuard<'_, T>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn wake_next(&self) {
        let mut queue = self.queue();
        let next = queue.waiters.pop_front();
        queue.has_head = next.is_some();
        drop(queue);
        if let Some(next) = next {
            next.promote(HEAD);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    impl<T> WriterLock<T> {
        /// Waits until the queue has this length.
        fn wait_for_queue(&self, len: usize) {
            let len_now = |queue: &Queue| usize::from(queue.has_head) + queue.waiters.len();
            while len_now(&self.queue()) < len {
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
        assert!(!lock.queue().has_head && lock.queue().waiters.is_empty());
    }

    #[test]
    fn those_in_line_are_served_in_order_even_after_a_long_wait() {
        let lock = &WriterLock::new(Vec::new());
        thread::scope(|scope| {
            let held = lock.lock();
            for number in 0..6 {
                scope.spawn(move || lock.lock().push(number));
                lock.wait_for_queue(number + 1);
            }
            // Long enough for spinning threads to fall asleep.
            for _ in 0..50 * SPINS {
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
                lock.wait_for_queue(1);
                let mut passing = 0;
                while !served.load(Ordering::Relaxed) {
                    assert!(passing <= MAX_BARGES, "and the first still waits");
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
