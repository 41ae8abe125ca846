//! The values of parameters written as JSON.
//!
//! | JSON | value |
//! |---|---|
//! | string, whole number, number, `true`, `false` | itself |
//! | array | a list, or a vector where the statement says `near $name` |
//! | `{"text": …}` | a text |
//! | `{"text": …, "vector": […]}`, `{"text": …, "row": N}` | a text with its vector |
//! | `{"vector": […]}`, `{"row": N}` | a vector |
//!
//! `row` is a row of the `.npy` file given with `--vectors`, counted from 0.

use holotype::interchange::NpyReader;
use holotype::interchange::json::{JsonError, JsonType, Parser, quoted};
use holotype::query::ParamValue;

/// The value that comes next.
pub(crate) fn value(parser: &mut Parser<'_>, vectors: Option<&NpyReader>) -> Result<ParamValue, JsonError> {
    Ok(match parser.peek()? {
        JsonType::String => ParamValue::Text(parser.string()?.into_owned()),
        JsonType::Boolean => ParamValue::Bool(parser.boolean()?),
        JsonType::Number => number(parser)?,
        JsonType::Array => {
            let mut values = Vec::new();
            parser.array(|parser, _| {
                values.push(value(parser, None)?);
                Ok(())
            })?;
            ParamValue::List(values)
        }
        JsonType::Object => passage(parser, vectors)?,
        JsonType::Null => return Err(JsonError::new(parser.offset(), "a parameter cannot be null")),
    })
}

fn number(parser: &mut Parser<'_>) -> Result<ParamValue, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(ParamValue::Int(whole));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(ParamValue::Float(number)),
        _ => Err(JsonError::new(offset, format!("the number {text} is too large"))),
    }
}

/// A text, a vector, or both.
fn passage(parser: &mut Parser<'_>, vectors: Option<&NpyReader>) -> Result<ParamValue, JsonError> {
    let start = parser.offset();
    let (mut text, mut vector) = (None, None);
    parser.object(|parser, name| {
        let given = match name.text {
            "text" => {
                text = Some(parser.string()?.into_owned());
                return Ok(());
            }
            "vector" => components(parser)?,
            "row" => row(parser, vectors)?,
            other => {
                let error = JsonError::new(name.offset, format!("a parameter has no member {}", quoted(other)));
                return Err(error.with_hint("a parameter that is an object has `text` and `vector` or `row`"));
            }
        };
        match vector.replace(given) {
            None => Ok(()),
            Some(_) => Err(JsonError::new(name.offset, "`vector` and `row` say the same thing; give one of them")),
        }
    })?;
    match (text, vector) {
        (Some(text), Some(vector)) => Ok(ParamValue::TextVector { text, vector }),
        (Some(text), None) => Ok(ParamValue::Text(text)),
        (None, Some(vector)) => Ok(ParamValue::Vector(vector)),
        (None, None) => Err(JsonError::new(start, "a parameter that is an object has `text` and `vector` or `row`")),
    }
}

fn components(parser: &mut Parser<'_>) -> Result<Vec<f32>, JsonError> {
    let mut components = Vec::new();
    parser.array(|parser, _| {
        let offset = parser.offset();
        let text = parser.number()?;
        match text.parse::<f32>() {
            Ok(number) if number.is_finite() => components.push(number),
            _ => return Err(JsonError::new(offset, format!("{text} is too large for a number of a vector"))),
        }
        Ok(())
    })?;
    Ok(components)
}

fn row(parser: &mut Parser<'_>, vectors: Option<&NpyReader>) -> Result<Vec<f32>, JsonError> {
    let offset = parser.offset();
    let text = parser.number()?;
    let index: u64 = text
        .parse()
        .map_err(|_| JsonError::new(offset, format!("expected the number of a row, counted from 0, found {text}")))?;
    let Some(vectors) = vectors else {
        let error = JsonError::new(offset, "`row` needs a file of vectors");
        return Err(error.with_hint("give it with `--vectors FILE.npy`"));
    };
    read_row(vectors, index).map_err(|error| JsonError::new(offset, error.to_string()))
}

/// A row of a file of vectors; only finite numbers are taken.
pub(crate) fn read_row(vectors: &NpyReader, index: u64) -> Result<Vec<f32>, holotype::interchange::NpyError> {
    let mut row = Vec::new();
    vectors.read_row(index, &mut row)?;
    vectors.check_finite(index, &row)?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ParamValue, String> {
        let mut parser = Parser::new(text);
        let value = value(&mut parser, None).and_then(|value| parser.end().map(|()| value));
        value.map_err(|error| format!("{}: {}", error.offset, error.message))
    }

    #[test]
    fn every_sort_of_value() {
        assert_eq!(read("\"a\\u0062\""), Ok(ParamValue::Text("ab".into())));
        assert_eq!(read(" -7 "), Ok(ParamValue::Int(-7)));
        assert_eq!(read("1.5e1"), Ok(ParamValue::Float(15.0)));
        assert_eq!(read("true"), Ok(ParamValue::Bool(true)));
        assert_eq!(read("[1, \"x\"]"), Ok(ParamValue::List(vec![ParamValue::Int(1), ParamValue::Text("x".into())])));
        assert_eq!(
            read("{\"text\":\"a\",\"vector\":[1,0.5]}"),
            Ok(ParamValue::TextVector { text: "a".into(), vector: vec![1.0, 0.5] })
        );
        assert_eq!(read("{\"vector\":[1]}"), Ok(ParamValue::Vector(vec![1.0])));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, told) in [
            ("null", "0: a parameter cannot be null"),
            ("{}", "0: a parameter that is an object"),
            ("{\"txt\":1}", "1: a parameter has no member `txt`"),
            ("{\"vector\":[1e99]}", "11: 1e99 is too large"),
            ("{\"row\":1}", "7: `row` needs a file"),
            ("1e999", "0: the number 1e999 is too large"),
            ("[1", "2: "),
            ("1 2", "2: expected the end"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(told), "{text}: {error}");
        }
    }
}
