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
//! 4. The lock is a slot that its holder empties: the guard owns the data meanwhile, so it may move to another thread.
//! 5. A thread whose patience ends leaves the queue, and hands on the place it had there.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Instant;

/// Attempts of a spinning thread before it sleeps.
const SPINS: u32 = 1_000;

/// Threads that may barge past the queue in a row.
const MAX_BARGES: u32 = 16;

/// Guards the data that only a writer may change.
pub(crate) struct WriterLock<T> {
    queue: Mutex<Queue>,
    /// Barges since the head last held the lock. Only the lock's holder writes it.
    barges: AtomicU32,
    slot: Mutex<Slot<T>>,
    /// Wakes those that sleep until the data is back.
    returned: Condvar,
}

/// The data while nobody holds the lock.
struct Slot<T> {
    data: Option<Box<T>>,
    sleepers: u32,
}

/// The data, until this is dropped. It may be sent to another thread.
pub(crate) struct WriterGuard<'l, T> {
    lock: &'l WriterLock<T>,
    /// Empty only while the guard is dropped.
    data: Option<Box<T>>,
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

    /// Returns false if the deadline comes first.
    fn wait_until_head(&self, deadline: Option<Instant>) -> bool {
        let mut spins = 0;
        loop {
            match self.rank.load(Ordering::Acquire) {
                HEAD => return true,
                _ if is_past(deadline) => return false,
                SECOND if spins < SPINS => {
                    spins += 1;
                    std::thread::yield_now();
                }
                _ => match deadline {
                    None => std::thread::park(),
                    Some(deadline) => std::thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
                },
            }
        }
    }
}

impl<T> WriterLock<T> {
    pub(crate) fn new(writer: T) -> Self {
        let slot = Mutex::new(Slot { data: Some(Box::new(writer)), sleepers: 0 });
        WriterLock { queue: Mutex::default(), barges: AtomicU32::new(0), slot, returned: Condvar::new() }
    }

    /// Waits for the lock. After a panic of another thread the writer's data is as it was at its last append.
    pub(crate) fn lock(&self) -> WriterGuard<'_, T> {
        loop {
            // Without a deadline there is always a guard in the end.
            if let Some(writer) = self.lock_until(None) {
                return writer;
            }
        }
    }

    /// Waits for the lock, at most until `deadline`; one that is past tries once.
    pub(crate) fn lock_until(&self, deadline: Option<Instant>) -> Option<WriterGuard<'_, T>> {
        if let Some(writer) = self.try_barge() {
            return Some(writer);
        }
        if is_past(deadline) || !self.wait_for_head(deadline) {
            return None;
        }
        let writer = self.acquire(deadline);
        if writer.is_some() {
            self.barges.store(0, Ordering::Relaxed);
        }
        self.wake_next();
        writer
    }

    fn try_barge(&self) -> Option<WriterGuard<'_, T>> {
        if self.barges.load(Ordering::Relaxed) >= MAX_BARGES {
            return None;
        }
        let writer = self.try_acquire()?;
        self.barges.fetch_add(1, Ordering::Relaxed);
        Some(writer)
    }

    /// Waits until this thread is the head of the queue; false if the deadline comes first.
    fn wait_for_head(&self, deadline: Option<Instant>) -> bool {
        let mut queue = self.queue();
        if !queue.has_head {
            queue.has_head = true;
            return true;
        }
        let rank = if queue.waiters.is_empty() { SECOND } else { QUEUED };
        let waiter = Arc::new(Waiter { thread: std::thread::current(), rank: AtomicU8::new(rank) });
        queue.waiters.push_back(Arc::clone(&waiter));
        drop(queue);
        if !waiter.wait_until_head(deadline) {
            self.leave_queue(&waiter);
            return false;
        }
        self.promote_second();
        true
    }

    fn leave_queue(&self, waiter: &Arc<Waiter>) {
        let mut queue = self.queue();
        match queue.waiters.iter().position(|other| Arc::ptr_eq(other, waiter)) {
            Some(at) => drop(queue.waiters.remove(at)),
            // It has become the head in this moment.
            None => {
                drop(queue);
                return self.wake_next();
            }
        }
        drop(queue);
        self.promote_second();
    }

    fn promote_second(&self) {
        let second = self.queue().waiters.front().map(Arc::clone);
        if let Some(second) = second.filter(|second| second.rank.load(Ordering::Relaxed) == QUEUED) {
            second.promote(SECOND);
        }
    }

    fn acquire(&self, deadline: Option<Instant>) -> Option<WriterGuard<'_, T>> {
        for _ in 0..SPINS {
            if let Some(writer) = self.try_acquire() {
                return Some(writer);
            }
            std::thread::yield_now();
        }
        let mut slot = self.slot();
        loop {
            if let Some(data) = slot.data.take() {
                return Some(WriterGuard { lock: self, data: Some(data) });
            }
            if is_past(deadline) {
                return None;
            }
            slot.sleepers += 1;
            slot = match deadline {
                None => self.returned.wait(slot).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    self.returned.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            slot.sleepers -= 1;
        }
    }

    /// Takes the lock if nobody has it, past the queue.
    pub(crate) fn try_acquire(&self) -> Option<WriterGuard<'_, T>> {
        let data = self.slot().data.take()?;
        Some(WriterGuard { lock: self, data: Some(data) })
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

    fn slot(&self) -> MutexGuard<'_, Slot<T>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for WriterGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.data.as_deref().expect("the guard has the data until it is dropped")
    }
}

impl<T> DerefMut for WriterGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.data.as_deref_mut().expect("the guard has the data until it is dropped")
    }
}

impl<T> Drop for WriterGuard<'_, T> {
    fn drop(&mut self) {
        let mut slot = self.lock.slot();
        slot.data = self.data.take();
        let is_awaited = slot.sleepers > 0;
        drop(slot);
        // Waking is a system call, so it is left out while nobody sleeps.
        if is_awaited {
            self.lock.returned.notify_one();
        }
    }
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
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
    fn one_whose_patience_ends_leaves_the_queue_to_those_behind_it() {
        let lock = &WriterLock::new(Vec::new());
        thread::scope(|scope| {
            let held = lock.lock();
            // The head, one behind it, and the last of three do not wait for ever.
            let mut impatient = Vec::new();
            for number in 0..6 {
                let until = Instant::now() + std::time::Duration::from_millis(20);
                let deadline = [0, 1, 5].contains(&number).then_some(until);
                let push = move || lock.lock_until(deadline).map(|mut writer| writer.push(number));
                let waiting = scope.spawn(push);
                if deadline.is_some() {
                    impatient.push(waiting);
                }
                if number == 1 {
                    assert!(impatient.drain(..).all(|waiting| waiting.join().unwrap().is_none()));
                    assert!(!lock.queue().has_head);
                } else if number > 1 {
                    lock.wait_for_queue((number - 1).min(3));
                }
            }
            assert!(impatient.into_iter().all(|waiting| waiting.join().unwrap().is_none()));
            drop(held);
        });
        assert_eq!(*lock.lock(), [2, 3, 4]);
        assert!(lock.lock_until(Some(Instant::now())).is_some(), "a free lock needs no patience");
    }

    #[test]
    fn another_thread_may_end_what_one_began() {
        let lock = &WriterLock::new(1);
        let held = lock.lock();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut held = held;
                *held += 1;
            });
            assert_eq!(*lock.lock(), 2);
        });
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
