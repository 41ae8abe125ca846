//! Times and durations: three parsers of RFC 3339, which must agree with one another and with their writers.

use holotype::interchange::time as canonical;
use holotype_query::{Duration, parse, time as language};

/// Reads the text as a time, and as a duration and a time in a statement.
///
/// # Panics
/// When two readers give different times to one text, or a text does not come back from what it was read as.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(us) = canonical::parse(text) {
        let written = canonical::format(us).expect("what was read can be written");
        assert_eq!(canonical::parse(&written), Ok(us), "{text}");
    }
    if let Ok(us) = language::parse_rfc3339(text) {
        let mut written = String::new();
        language::write_rfc3339(us, &mut written).expect("what was read can be written");
        assert_eq!(language::parse_rfc3339(&written), Ok(us), "{text}");
        if let Ok(other) = canonical::parse(text) {
            assert_eq!(us, other, "{text}");
        }
    }
    if let Ok(us) = holotype::time::parse(text) {
        assert_eq!(holotype::time::parse(&holotype::time::format(us)).expect("its own text"), us, "{text}");
        if let Ok(other) = canonical::parse(text) {
            assert_eq!(us, other, "{text}");
        }
    }
    if let Ok(duration) = text.parse::<Duration>() {
        assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration), "{text}");
    }
    let _ = parse(&format!("recall 'x' exclude stale({text})"));
}
