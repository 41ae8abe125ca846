//! The cost of a run: processor time, memory, quantiles of durations.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The processor time that this process has used, all threads together.
pub(crate) fn cpu_time() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// The processor time that this thread has used.
pub(crate) fn thread_cpu_time() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Memory of this process in bytes, as Linux tells it in `/proc/self/status`: `VmRSS` now, `VmHWM` at its peak. Nothing
/// on other systems.
pub(crate) fn memory(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Memory of this process that is no file's, in bytes. The counter may lag behind by a few hundred pages;
/// `/proc/self/smaps_rollup` is exact, but walks every mapped page and holds up whoever maps or faults meanwhile.
pub(crate) fn anonymous_memory() -> Option<u64> {
    memory("RssAnon")
}

/// The duration below which that share of all lies (nearest rank), in microseconds.
pub(crate) fn quantile_us(durations: &[Duration], share: f64) -> f64 {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let duration = sorted.get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied();
    round(duration.unwrap_or_default().as_secs_f64() * 1e6, 1)
}

/// The middle of some numbers: of an even count the upper one.
pub(crate) fn median_of(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// A number with so many digits after the point.
pub(crate) fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let hundred: Vec<Duration> = (1..=100).rev().map(Duration::from_micros).collect();
        assert_eq!(
            (quantile_us(&hundred, 0.5), quantile_us(&hundred, 0.99), quantile_us(&hundred, 1.0)),
            (50.0, 99.0, 100.0)
        );
        assert_eq!((quantile_us(&hundred[..1], 0.01), quantile_us(&[], 0.5)), (100.0, 0.0));
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!((median_of(vec![3.0, 1.0, 2.0]), median_of(vec![2.0, 1.0]), median_of(vec![])), (2.0, 2.0, 0.0));
    }

    #[test]
    fn work_takes_processor_time_and_memory() {
        let before = (cpu_time(), thread_cpu_time());
        while cpu_time() == before.0 || thread_cpu_time() == before.1 {}
        for bytes in [memory("VmRSS"), memory("VmHWM"), anonymous_memory()] {
            assert!(!cfg!(target_os = "linux") || bytes.is_some_and(|bytes| bytes > 0));
        }
        assert_eq!(memory("VmNothing"), None);
    }
}
