//! The sequel of a try that failed: a wait and another try, or the end.
//!
//! | a try ended with | then |
//! |---|---|
//! | no connection, a broken one, no answer in time | another |
//! | status 408, 429, 500, 502, 503, 504 | another, not before `Retry-After` |
//! | any other status, an answer that is too long or not of the interface | the end |
//!
//! Without `Retry-After` the waits are 0.5, 1, 2, 4 and then 8 seconds. A wait that would end beyond the total time of
//! a call is not begun: the call fails at once.

use jiff::fmt::rfc2822;
use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait that nobody asked for.
const LONGEST: Duration = Duration::from_secs(8);

/// True for a status after which another try may succeed.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// The wait before the try after so many.
pub(crate) fn wait(tries: u32, asked: Option<Duration>) -> Duration {
    asked.unwrap_or_else(|| FIRST.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(LONGEST))
}

/// The wait that the header `Retry-After` asks for: seconds, or a moment, which is compared with the header `Date` of
/// the same answer, so that no clock has to agree with the server's. `None` where it says nothing that can be read.
pub(crate) fn asked(retry_after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let retry_after = retry_after?.trim();
    if let Ok(seconds) = retry_after.parse::<u32>() {
        return Some(Duration::from_secs(u64::from(seconds)));
    }
    let (until, now) = (rfc2822::parse(retry_after).ok()?, rfc2822::parse(date?.trim()).ok()?);
    Some(until.timestamp().duration_since(now.timestamp()).try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits: Vec<u64> = (1..=7).map(|tries| wait(tries, None).as_millis() as u64).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(wait(u32::MAX, None), LONGEST);
        assert_eq!(wait(1, Some(Duration::from_secs(30))), Duration::from_secs(30));
    }

    #[test]
    fn the_server_may_name_the_wait_in_seconds_or_as_a_moment() {
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(asked(Some("7"), None), Some(Duration::from_secs(7)));
        assert_eq!(asked(Some("Wed, 21 Oct 2015 07:28:30 GMT"), date), Some(Duration::from_secs(30)));
        assert_eq!(asked(Some("Wed, 21 Oct 2015 07:27:30 GMT"), date), Some(Duration::ZERO));
        for unreadable in ["", "soon", "-1", "1.5", "Wed, 21 Okt 2015 07:28:30 GMT", "Wed, 99 Oct 2015 07:28:30 GMT"] {
            assert_eq!(asked(Some(unreadable), date), None, "{unreadable}");
        }
        assert_eq!(asked(Some("Wed, 21 Oct 2015 07:28:30 GMT"), None), None);
        assert_eq!(asked(None, date), None);
    }
}
