//! `serde_json` as the oracle of the parser.

use super::{JsonError, JsonText, JsonType, Parser, find};
use proptest::prelude::*;
use serde_json::Value;

fn check(text: &str) -> Result<(), JsonError> {
    let mut parser = Parser::new(text);
    parser.raw()?;
    parser.end()
}

/// The value as `serde_json` sees it, built from our events.
fn build(parser: &mut Parser<'_>) -> Result<Value, JsonError> {
    Ok(match parser.peek()? {
        JsonType::Null => {
            assert!(parser.null()?);
            Value::Null
        }
        JsonType::Boolean => Value::Bool(parser.boolean()?),
        JsonType::Number => number(parser.number()?),
        JsonType::String => Value::String(parser.string()?.into_owned()),
        JsonType::Array => {
            let mut array = Vec::new();
            parser.array(|parser, _| {
                array.push(build(parser)?);
                Ok(())
            })?;
            Value::Array(array)
        }
        JsonType::Object => {
            let mut object = serde_json::Map::new();
            parser.object(|parser, name| {
                let value = build(parser)?;
                object.insert(name.text.to_owned(), value);
                Ok(())
            })?;
            Value::Object(object)
        }
    })
}

/// Theirs rounds some fractions differently unless a feature is on, so fractions go through `std`.
fn number(text: &str) -> Value {
    if text.contains(['.', 'e', 'E']) {
        return text.parse::<f64>().map_or(Value::Null, Value::from);
    }
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_serde_json_on_what_it_wrote(value in any_json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        let mut parser = Parser::new(&text);
        prop_assert_eq!(build(&mut parser), Ok(value));
        prop_assert_eq!(parser.end(), Ok(()));
    }

    /// Near-JSON noise: both accept or both refuse, save for what we refuse on purpose.
    #[test]
    fn agrees_with_serde_json_on_noise(text in "[\\[\\]{}:, \"\\\\a0-9eE.+u-]{0,24}") {
        let theirs = serde_json::from_str::<Value>(&text);
        match check(&text) {
            Ok(()) => {
                // Numbers beyond f64 are theirs to refuse: we keep the text.
                let fine = theirs.as_ref().map_or_else(|e| e.to_string().contains("out of range"), |_| true);
                prop_assert!(fine, "{}: {:?}", text, theirs);
            }
            Err(error) => {
                prop_assert!(text.is_char_boundary(error.offset));
                let ours_alone = error.message.contains("given twice") || error.message.contains("surrogate");
                prop_assert!(ours_alone || theirs.is_err(), "{}: {}", text, error);
            }
        }
    }

    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = check(&text);
        let _ = find(&text, &["a", "0"]);
        let _ = JsonText::new(&text);
    }
}
