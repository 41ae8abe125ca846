//! Limits of a statement on time, rows and memory, and a handle to cancel it from another thread.
//!
//! A [`Snapshot`](crate::Snapshot) carries the limits of the statements that run on it. Each statement has its own
//! [`Meter`], which the engine's loops tick. A statement that exceeds a limit fails with
//! [`Error::Limit`](crate::Error::Limit), a cancelled one with [`Error::Cancelled`](crate::Error::Cancelled); if its
//! script writes, the whole script is rolled back.
//!
//! Memory accounting covers what a statement keeps (sets, candidates, rows), not the allocator's overhead. It never
//! decreases, so a statement within its limit never held more.

use crate::{Error, Result};
use holotype_storage::memory_reserve;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A handle that cancels statements from another thread. Clones share the same flag.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A handle that is not cancelled.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Cancels every statement that uses this handle, running or later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets later statements run again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns true after [`Cancel::cancel`].
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The limits of each statement. Nothing is limited by default.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    time: Option<Duration>,
    rows: Option<u64>,
    memory: Option<u64>,
    cancel: Option<Cancel>,
    stop: Option<Stop>,
}

/// A question that a statement asks its caller now and then: whether to stop.
#[derive(Clone)]
struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stop")
    }
}

impl Limits {
    /// No limits.
    pub fn none() -> Limits {
        Limits::default()
    }

    /// Limits the running time.
    pub fn time(mut self, time: Duration) -> Limits {
        self.time = Some(time);
        self
    }

    /// Limits the rows examined or scored, over all stages.
    pub fn rows_scored(mut self, rows: u64) -> Limits {
        self.rows = Some(rows);
        self
    }

    /// Limits the bytes kept.
    pub fn memory(mut self, bytes: u64) -> Limits {
        self.memory = Some(bytes);
        self
    }

    /// Makes the statement cancellable by this handle.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Limits {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Cancels the statement once `stop` returns true. The statement's own thread calls it, at most every 50 ms, so
    /// that a host language can look there for signals that only that thread may handle.
    pub fn stopped_by(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Limits {
        self.stop = Some(Stop(Arc::new(stop)));
        self
    }

    /// True if a statement may use only so much time, rows or memory.
    pub(crate) fn limit_use(&self) -> bool {
        self.time.is_some() || self.rows.is_some() || self.memory.is_some()
    }

    /// Starts the meter of a statement; `None` if nothing is limited.
    pub(crate) fn start(&self) -> Option<Arc<Meter>> {
        let stoppable = self.cancel.is_some() || self.stop.is_some();
        let limited = self.time.is_some() || self.rows.is_some() || self.memory.is_some() || stoppable;
        limited.then(|| {
            let (rows, memory, ticks) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
            let asked_us = AtomicU64::new(0);
            Arc::new(Meter { limits: self.clone(), started: Instant::now(), rows, memory, ticks, asked_us })
        })
    }
}

/// Fails while the process has only the reserve of memory that lets it end its statements.
pub(crate) fn check_memory() -> Result<()> {
    if memory_reserve::is_short() { Err(Error::OutOfMemory) } else { Ok(()) }
}

/// Takes the reserve of memory anew before work begins; fails if the system does not have as much.
pub(crate) fn refill_memory() -> Result<()> {
    if memory_reserve::refill() { Ok(()) } else { Err(Error::OutOfMemory) }
}

/// Ticks per read of the clock, which costs more than a tick.
const TICKS_PER_CLOCK_READ: u64 = 16;

/// The time between two calls of the question whether to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

const CANCELLED: Error = Error::Cancelled("the statement was cancelled");

/// The resources used by one statement.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    started: Instant,
    rows: AtomicU64,
    memory: AtomicU64,
    ticks: AtomicU64,
    /// When the caller was last asked whether to stop, in microseconds since the start.
    asked_us: AtomicU64,
}

impl Meter {
    /// The number of ticks so far.
    #[cfg(test)]
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Fails if the statement is cancelled or out of time.
    pub(crate) fn tick(&self) -> Result<()> {
        if self.limits.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            return Err(CANCELLED);
        }
        let timed = self.limits.time.is_some() || self.limits.stop.is_some();
        let looks = self.ticks.fetch_add(1, Ordering::Relaxed).is_multiple_of(TICKS_PER_CLOCK_READ);
        if timed && looks {
            let taken = self.started.elapsed();
            self.check_time(taken)?;
            self.ask(taken)?;
        }
        Ok(())
    }

    fn check_time(&self, taken: Duration) -> Result<()> {
        match self.limits.time {
            Some(time) if taken > time => {
                let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                Err(Error::Limit {
                    what: "the running time of a statement in milliseconds",
                    limit: millis(time),
                    needed: millis(taken).max(millis(time).saturating_add(1)),
                })
            }
            _ => Ok(()),
        }
    }

    /// Asks the caller whether to stop, if it was not asked just now.
    fn ask(&self, taken: Duration) -> Result<()> {
        let Some(Stop(stop)) = &self.limits.stop else { return Ok(()) };
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let due = self.asked_us.load(Ordering::Relaxed).saturating_add(micros(STOP_INTERVAL));
        if micros(taken) < due {
            return Ok(());
        }
        self.asked_us.store(micros(taken), Ordering::Relaxed);
        if stop() { Err(CANCELLED) } else { Ok(()) }
    }

    /// Charges examined rows.
    pub(crate) fn rows(&self, count: u64) -> Result<()> {
        self.tick()?;
        let total = self.rows.fetch_add(count, Ordering::Relaxed).saturating_add(count);
        within("the number of rows a statement examines", self.limits.rows, total)
    }

    /// Charges kept bytes.
    pub(crate) fn memory(&self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        let total = self.memory.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        within("the memory of a statement in bytes", self.limits.memory, total)
    }
}

fn within(what: &'static str, limit: Option<u64>, needed: u64) -> Result<()> {
    match limit {
        Some(limit) if needed > limit => Err(Error::Limit { what, limit, needed }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limits_need_no_meter() {
        assert!(Limits::none().start().is_none());
    }

    #[test]
    fn each_limit_is_named_when_it_is_passed() {
        let meter = Limits::none().rows_scored(10).memory(100).start().unwrap();
        meter.rows(10).unwrap();
        let error = meter.rows(1).unwrap_err().to_string();
        assert_eq!(error, "the number of rows a statement examines is limited to 10; this needs 11");
        meter.memory(100).unwrap();
        assert!(matches!(meter.memory(1), Err(Error::Limit { limit: 100, needed: 101, .. })));
    }

    #[test]
    fn no_time_at_all_ends_at_the_first_look() {
        let meter = Limits::none().time(Duration::ZERO).start().unwrap();
        assert!(matches!(meter.tick(), Err(Error::Limit { limit: 0, .. })));
    }

    #[test]
    fn the_caller_is_asked_whether_to_stop_once_an_interval() {
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let limits = Limits::none().stopped_by(move || count.fetch_add(1, Ordering::Relaxed) == 1);
        let meter = limits.start().unwrap();
        for at in [0, 49, 50, 99] {
            meter.ask(Duration::from_millis(at)).unwrap();
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(matches!(meter.ask(Duration::from_millis(100)), Err(Error::Cancelled(_))));
    }

    #[test]
    fn a_handle_stops_and_lets_go() {
        let cancel = Cancel::new();
        let meter = Limits::none().cancelled_by(&cancel).start().unwrap();
        meter.tick().unwrap();
        cancel.clone().cancel();
        assert!(matches!(meter.tick(), Err(Error::Cancelled(_))));
        cancel.reset();
        meter.tick().unwrap();
    }
}
