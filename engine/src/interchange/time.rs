//! Times in interchange files: those of the query language, [`holotype_query::time`].

pub use holotype_query::time::{
    MAX_MICROS as MAX_US, MIN_MICROS as MIN_US, TimeError, format_rfc3339 as format, parse_rfc3339 as parse,
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_jiff(us in MIN_US..=250_000_000_000_000_000_i64) {
            let theirs = jiff::Timestamp::from_microsecond(us).unwrap();
            prop_assert_eq!(format(us).unwrap(), theirs.to_string());
        }

        #[test]
        fn any_text_is_refused_or_a_time_that_can_be_written(text in "[0-9TZ:. +-]{0,36}|.{0,20}") {
            if let Ok(us) = parse(&text) {
                prop_assert_eq!(parse(&format(us).unwrap()), Ok(us));
            }
        }
    }
}
