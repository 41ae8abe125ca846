//! The same work on many things, by a few threads, with the results in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The results of the work on each thing. One thread takes one thing after another; the caller's is one of them.
pub(super) fn map<T: Sync, R: Send>(threads: usize, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(things.len()));
    let run = || {
        while let Some((place, thing)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            things.get(place).map(|thing| (place, thing))
        } {
            let result = work(thing);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
        }
    };
    let others = threads.min(things.len()).saturating_sub(1);
    std::thread::scope(|scope| {
        for _ in 0..others {
            // A thread that the system refuses leaves its share to the others.
            if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        let things: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 3, 200] {
            assert_eq!(
                map(threads, &things, |thing| thing * 2),
                things.iter().map(|thing| thing * 2).collect::<Vec<_>>()
            );
        }
        assert!(map(4, &[] as &[u8], |_| ()).is_empty());
    }
}
