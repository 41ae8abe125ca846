//! Lines of the interchange: a line that is read has one canonical text, which reads back as the same line.

use holotype::interchange::{LineReader, encode};

/// Reads every line, good or bad.
///
/// # Panics
/// When a line does not come back from its own text, or an error has no place.
pub fn target(data: &[u8]) {
    let mut reader = LineReader::new(data);
    while let Some((number, line)) = reader.read().expect("a stream in memory does not fail") {
        assert!(number > 0);
        match line {
            Ok(line) => {
                let mut text = Vec::new();
                // A line may contain numbers without a canonical text, which is an error.
                if encode(&line, &mut text).is_err() {
                    continue;
                }
                let mut again = LineReader::new(text.as_slice());
                let (_, back) = again.read().expect("no failure").expect("there is a line");
                assert_eq!(back.as_ref(), Ok(&line), "{}", text.escape_ascii());
                let mut second = Vec::new();
                encode(&line, &mut second).expect("it was written before");
                assert_eq!(text, second);
            }
            Err(error) => {
                assert_eq!(error.line, number);
                let columns = 1 + reader.text().chars().count() as u64;
                assert!(reader.text().is_empty() || (1..=columns).contains(&error.column), "{error}");
                assert!(!error.message.is_empty());
            }
        }
    }
    assert_eq!(reader.bytes_read(), data.len() as u64);
}
