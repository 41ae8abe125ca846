//! The time that retries are counted by. Tests have one of their own, so that none of them waits.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Tells the time since some beginning, and waits.
pub trait Clock: Debug + Send + Sync {
    /// The time since a beginning that stays the same. It never goes back.
    fn now(&self) -> Duration;

    /// Returns when so much time has passed.
    fn wait(&self, duration: Duration);
}

/// The clock of the system.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    began: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn wait(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
