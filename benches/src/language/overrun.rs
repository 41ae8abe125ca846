//! Statements that would take long, ended by their time limit: how long after it they end.

use crate::Result;
use crate::measure::{quantile_us, round};
use holotype::query::Params;
use holotype::{Error, Limits, Snapshot};
use serde_json::json;
use std::time::{Duration, Instant};

/// The time limit of each statement.
const LIMIT: Duration = Duration::from_millis(10);

/// The number of runs of each.
const REPEATS: usize = 30;

/// Statements that look at every item.
const STATEMENTS: [&str; 5] = [
    "find traces where text matches '*a*b*c*zzz*' return key",
    "find items order by utility desc, time desc return key, text limit 1000000",
    "count traces where text matches '*zzz*'",
    "recall 'what is known of the first topic' limit 100000",
    "recall 'what is known of the first topic' where text matches '*zzz*'",
];

pub(super) fn run(snapshot: &Snapshot) -> Result<()> {
    let limited = snapshot.with_limits(&Limits::none().time(LIMIT));
    for statement in STATEMENTS {
        let prepared = limited.prepare(statement)?;
        let mut overrun = Vec::new();
        for _ in 0..REPEATS {
            let started = Instant::now();
            match limited.run(&prepared, &Params::new()) {
                Err(Error::Limit { .. }) => overrun.push(started.elapsed().saturating_sub(LIMIT)),
                Err(error) => return Err(error.into()),
                // It was done in time.
                Ok(_) => {}
            }
        }
        let longest = overrun.iter().max().copied().unwrap_or_default();
        println!(
            "{}",
            json!({"bench": "language", "phase": "overrun", "statement": statement, "ended": overrun.len(),
                "limit_ms": 10, "p50_us": if overrun.is_empty() { 0.0 } else { quantile_us(&overrun, 0.5) },
                "longest_ms": round(longest.as_secs_f64() * 1e3, 2)})
        );
    }
    Ok(())
}
