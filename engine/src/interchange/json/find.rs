//! The place of a value, for errors that are detected after reading.

use super::{JsonError, JsonType, Parser};

/// The byte offset of the value reached by following `path` from the root: member names, and positions in arrays as
/// decimal digits. `None` when there is no such value or the text is not JSON.
pub fn find(text: &str, path: &[&str]) -> Option<usize> {
    descend(&mut Parser::new(text), path).ok().flatten()
}

/// Consumes one value and gives the offset of what `path` names inside it.
fn descend(parser: &mut Parser<'_>, path: &[&str]) -> Result<Option<usize>, JsonError> {
    let start = parser.offset();
    let Some((step, rest)) = path.split_first() else {
        return parser.raw().map(|_| Some(start));
    };
    let mut at = None;
    let mut visit = |parser: &mut Parser<'_>, here: bool| {
        if here {
            at = descend(parser, rest)?;
            return Ok(());
        }
        parser.raw().map(drop)
    };
    match parser.peek()? {
        JsonType::Object => parser.object(|parser, name| visit(parser, name.text == *step))?,
        JsonType::Array => {
            parser.array(|parser, position| visit(parser, position.to_string() == *step))?;
        }
        _ => parser.raw().map(drop)?,
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_follows_names_and_positions() {
        let text = r#"{"recall": {"from": [{"key":"a"}, {"key": "b", "end": 7}], "text":"x"}}"#;
        assert_eq!(find(text, &["recall", "from", "1", "end"]), text.find('7'));
        assert_eq!(find(text, &["recall", "text"]), text.find("\"x\""));
        assert_eq!(find(text, &[]), Some(0));
        assert_eq!(find(text, &["recall", "from", "2"]), None);
        assert_eq!(find(text, &["recall", "text", "deeper"]), None);
        assert_eq!(find("{\"a\":", &["a"]), None);
    }
}
