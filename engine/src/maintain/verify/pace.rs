//! Rate limit and cancellation of a verification.

use crate::read::limits::Cancel;
use crate::{Error, Result};
use std::time::{Duration, Instant};

/// Options of a verification.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The limit of bytes read per second, so that other work is hardly affected; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// Cancels it from another thread.
    pub cancel: Option<Cancel>,
}

/// The longest sleep between checks for cancellation.
const NAP: Duration = Duration::from_millis(50);

pub(crate) struct Pace {
    options: VerifyOptions,
    start: Instant,
    bytes: u64,
}

impl Pace {
    pub(crate) fn new(options: &VerifyOptions) -> Pace {
        Pace { options: options.clone(), start: Instant::now(), bytes: 0 }
    }

    /// Counts bytes read, and waits as long as the limit requires.
    pub(crate) fn read(&mut self, bytes: u64) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        loop {
            if self.options.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                return Err(Error::Cancelled("the verification"));
            }
            let due = self.options.bytes_per_second.map_or(Duration::ZERO, |rate| due(self.bytes, rate));
            match due.checked_sub(self.start.elapsed()) {
                Some(early) if !early.is_zero() => std::thread::sleep(early.min(NAP)),
                _ => return Ok(()),
            }
        }
    }
}

/// The least duration of reading this many bytes.
fn due(bytes: u64, bytes_per_second: u64) -> Duration {
    let micros = u128::from(bytes) * 1_000_000 / u128::from(bytes_per_second.max(1));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_due_at_their_rate() {
        assert_eq!(due(0, 10), Duration::ZERO);
        assert_eq!(due(5 << 20, 1 << 20), Duration::from_secs(5));
        assert_eq!(due(u64::MAX, 1), Duration::from_micros(u64::MAX));
        assert_eq!(due(7, 0), Duration::from_secs(7));
    }

    #[test]
    fn one_that_is_stopped_ends() {
        let cancel = Cancel::new();
        let mut pace = Pace::new(&VerifyOptions { bytes_per_second: Some(1), cancel: Some(cancel.clone()) });
        cancel.cancel();
        assert!(matches!(pace.read(1 << 40), Err(Error::Cancelled(_))), "and does not wait for its turn");
    }
}
