//! `--param`: the parameters of a statement.
//!
//! | written | value |
//! |---|---|
//! | `q=TEXT` | the text as it is |
//! | `q:=JSON` | a value in JSON ([`crate::json`]) |
//! | `q=@F.npy:3` | row 3 of the file as a vector |

use crate::failure::{Problem, Status};
use crate::json;
use holotype::interchange::json::Parser;
use holotype::interchange::{NpyError, NpyReader};
use holotype::query::{ParamValue, Params, Script};
use std::path::Path;

/// The parameters that `--param` options give; `vectors` is the file that `row` counts in.
pub(crate) fn read(options: &[String], vectors: Option<&NpyReader>) -> Result<Params, Problem> {
    let mut params = Params::new();
    for option in options {
        let (name, value) = read_one(option, vectors)?;
        if params.insert(name.to_owned(), value).is_some() {
            return Err(Problem::input("param", format!("the parameter {name:?} is given twice")));
        }
    }
    Ok(params)
}

fn read_one<'o>(option: &'o str, vectors: Option<&NpyReader>) -> Result<(&'o str, ParamValue), Problem> {
    let wrong = |message: String| {
        Problem::input("param", message).hint("write --param q=TEXT, --param q:=JSON, or --param q=@FILE.npy:ROW")
    };
    let (name, text) =
        option.split_once('=').ok_or_else(|| wrong(format!("--param {option:?} has no `=` after its name")))?;
    let (name, is_json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
    let name = name.strip_prefix('$').unwrap_or(name);
    if name.is_empty() || name.contains(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')) {
        return Err(wrong(format!("--param {option:?}: {name:?} is not a name")));
    }
    if is_json {
        let mut parser = Parser::new(text);
        let value = json::value(&mut parser, vectors).and_then(|value| parser.end().map(|()| value));
        return value.map(|value| (name, value)).map_err(|error| {
            let column = text.get(..error.offset).unwrap_or(text).chars().count() + 1;
            Problem::input("param", format!("--param {name}: {}, at character {column}", error.message))
                .hint_if(error.hint)
        });
    }
    match row_of_file(text) {
        Some((file, index)) => {
            let row = open_vectors(Path::new(file)).and_then(|vectors| Ok(json::read_row(&vectors, index)?))?;
            Ok((name, ParamValue::Vector(row)))
        }
        None => Ok((name, ParamValue::Text(text.to_owned()))),
    }
}

/// The parts of `@F.npy:3`; any other text is a text.
fn row_of_file(text: &str) -> Option<(&str, u64)> {
    let (file, index) = text.strip_prefix('@')?.rsplit_once(':')?;
    let index = index.parse().ok()?;
    file.ends_with(".npy").then_some((file, index))
}

/// Opens a file of vectors.
pub(crate) fn open_vectors(path: &Path) -> Result<NpyReader, Problem> {
    Ok(NpyReader::open(path)?)
}

impl From<NpyError> for Problem {
    fn from(error: NpyError) -> Problem {
        let (status, code) = match &error {
            NpyError::Io { .. } => (Status::Io, "io"),
            _ => (Status::Wrong, "npy"),
        };
        let file = match &error {
            NpyError::Io { file, .. }
            | NpyError::Header { file, .. }
            | NpyError::Length { file, .. }
            | NpyError::NoSuchRow { file, .. }
            | NpyError::NotFinite { file, .. }
            | NpyError::Row { file, .. } => Some(file.display().to_string()),
            _ => None,
        };
        Problem::new(status, code, error.to_string()).file_if(file)
    }
}

/// Makes vectors of the lists that stand for a vector in the script: JSON has one sort of array for both.
pub(crate) fn fit(params: &mut Params, script: &Script) {
    for name in script.vector_params() {
        if let Some(ParamValue::List(values)) = params.get(name)
            && let Some(vector) = values.iter().map(component).collect()
        {
            params.insert(name.to_owned(), ParamValue::Vector(vector));
        }
    }
}

fn component(value: &ParamValue) -> Option<f32> {
    let number = match value {
        ParamValue::Int(number) => *number as f32,
        ParamValue::Float(number) => *number as f32,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_param_is_text_or_json() {
        let options = ["q=a=b".to_owned(), "n:=3".into(), "at=@noon".into(), "$x:=[1,2]".into()];
        let params = read(&options, None).unwrap();
        assert_eq!(params["q"], ParamValue::Text("a=b".into()));
        assert_eq!(params["n"], ParamValue::Int(3));
        assert_eq!(params["at"], ParamValue::Text("@noon".into()));
        assert_eq!(params["x"], ParamValue::List(vec![ParamValue::Int(1), ParamValue::Int(2)]));
    }

    #[test]
    fn a_param_that_is_wrong_says_how_to_write_one() {
        let told = |option: &str| read(&[option.to_owned()], None).unwrap_err();
        assert!(told("q").message.contains("no `=`"));
        assert!(told("=x").message.contains("is not a name"));
        assert!(told("q:=[1,").message.starts_with("--param q: "));
        assert!(told("q:={\"row\":1}").about.hint.unwrap().contains("--vectors"));
        assert_eq!(told("q=@/nowhere/v.npy:1").status, Status::Io);
        let twice = read(&["q=1".into(), "q=2".into()], None).unwrap_err();
        assert!(twice.message.contains("twice"));
    }

    #[test]
    fn a_list_is_a_vector_where_a_vector_is_meant() {
        let script = holotype::query::parse("explain recall near $v where step in $s").unwrap();
        let mut params = read(&["v:=[1,0.5]".to_owned(), "s:=[1,2]".into()], None).unwrap();
        fit(&mut params, &script);
        assert_eq!(params["v"], ParamValue::Vector(vec![1.0, 0.5]));
        assert!(matches!(params["s"], ParamValue::List(_)));
    }
}
