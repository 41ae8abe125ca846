//! `holotype query --batch`: one statement a line, one answer a line, in order.
//!
//! ```text
//! {"id":"q1","statement":"recall $q in episode 'trip-42'","params":{"q":{"text":"…","row":0}}}
//! ```
//!
//! Every line is run whatever became of the others, each within the limits that are given; one that fails answers
//! `{"id":"q1","error":{…}}` and makes the exit status 2. A line without an `id` has its number in the file as its id.
//! Ctrl-C ends the batch with the statement that runs; what was answered before is written.

use crate::failure::{Failure, Problem, Status};
use crate::render::envelope;
use crate::script::Needs;
use crate::{database, interrupt, json, params, script};
use holotype::Limits;
use holotype::answer::Output;
use holotype::interchange::NpyReader;
use holotype::interchange::json::{JsonError, Parser, quoted};
use holotype::query::{Params, parse};
use serde_json::json;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// Lines that run together, so that searches by vector under one filter share a pass.
const TOGETHER: usize = 256;

/// One line of the file.
struct Entry {
    id: String,
    /// The statement with its parameters, or what is wrong with the line.
    job: Result<Job, Problem>,
}

struct Job {
    source: String,
    params: Params,
    needs: Needs,
}

/// Runs every line of a file.
pub(crate) fn run(
    db: &Path,
    file: &Path,
    vectors: Option<&NpyReader>,
    read_only: bool,
    limits: &Limits,
) -> Result<Status, Failure> {
    let text = if file.as_os_str() == "-" { script::read_stdin()? } else { script::read_file(file)? };
    let name = file.display().to_string();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let entries: Vec<Entry> = lines.map(|(index, line)| read(line, &name, index as u64 + 1, vectors)).collect();
    let needs =
        entries.iter().filter_map(|entry| entry.job.as_ref().ok()).fold(Needs::default(), |all, job| all | job.needs);

    let database = script::open_for(db, needs, read_only)?;
    // Between two statements it is the next that is cancelled.
    let _deferred = interrupt::defer(1);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut status = database::status_of_reading(&database);
    let mut entries = entries.into_iter();
    loop {
        let group: Vec<Entry> = entries.by_ref().take(TOGETHER).collect();
        if group.is_empty() {
            break;
        }
        let jobs = group.iter().filter_map(|entry| entry.job.as_ref().ok());
        let scripts: Vec<(&str, &Params)> = jobs.map(|job| (job.source.as_str(), &job.params)).collect();
        let outcomes = script::run_batch(&database, &scripts, limits.clone());
        let mut outcomes = outcomes.into_iter();
        for Entry { id, job } in group {
            let outcome = match job {
                Ok(_) => outcomes.next().unwrap_or(Err(Failure::Interrupted)),
                Err(problem) => Err(problem.into()),
            };
            match outcome {
                Ok(outputs) => write_answer(&mut out, &outputs, &id)?,
                Err(Failure::Problem(problem)) => {
                    status = Status::Wrong;
                    writeln!(out, "{}", json!({"id": id, "error": problem.to_json()}))?;
                }
                Err(failure) => {
                    out.flush()?;
                    return Err(failure);
                }
            }
        }
    }
    out.flush()?;
    database::note_accelerator(&database);
    database::close(database)?;
    Ok(status)
}

fn write_answer(out: &mut impl io::Write, outputs: &[Output], id: &str) -> io::Result<()> {
    outputs.iter().try_for_each(|output| writeln!(out, "{}", envelope::of(output, Some(id))))
}

fn read(line: &str, file: &str, number: u64, vectors: Option<&NpyReader>) -> Entry {
    let mut id = number.to_string();
    let job = read_line(line, &mut id, vectors).map_err(|error| {
        let column = line.get(..error.offset).unwrap_or(line).chars().count() as u64 + 1;
        Problem::input("line", error.message).file(file).at(number, column).hint_if(error.hint)
    });
    let job = job.and_then(|(source, mut params)| {
        let parsed = parse(&source).map_err(|errors| Problem::of_errors(errors, &source, None))?;
        params::fit(&mut params, &parsed);
        Ok(Job { needs: Needs::of(&parsed), source, params })
    });
    Entry { id, job }
}

fn read_line(line: &str, id: &mut String, vectors: Option<&NpyReader>) -> Result<(String, Params), JsonError> {
    let (mut statement, mut params) = (None, Params::new());
    let mut parser = Parser::new(line);
    parser.object(|parser, name| {
        match name.text {
            "id" => *id = parser.string()?.into_owned(),
            "statement" => statement = Some(parser.string()?.into_owned()),
            "params" => parser.object(|parser, name| {
                params.insert(name.text.to_owned(), json::value(parser, vectors)?);
                Ok(())
            })?,
            other => {
                let error = JsonError::new(name.offset, format!("a line of a batch has no member {}", quoted(other)));
                return Err(error.with_hint("its members are id, statement and params"));
            }
        }
        Ok(())
    })?;
    parser.end()?;
    let statement = statement.ok_or_else(|| JsonError::new(0, "the line has no `statement`"))?;
    Ok((statement, params))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype::query::ParamValue;

    #[test]
    fn a_line_is_a_statement_with_its_parameters() {
        let line = "{\"id\":\"q1\",\"statement\":\"recall $q\",\"params\":{\"q\":{\"text\":\"a\",\"vector\":[1]}}}";
        let entry = read(line, "f", 1, None);
        let job = entry.job.unwrap();
        assert_eq!((entry.id.as_str(), job.needs.writing), ("q1", false));
        assert_eq!(job.params["q"], ParamValue::TextVector { text: "a".into(), vector: vec![1.0] });
    }

    #[test]
    fn a_line_that_is_wrong_says_where() {
        for (line, column, told) in [
            ("{\"id\":\"q1\",\"stmt\":\"x\"}", 12, "no member `stmt`"),
            ("{\"id\":\"q1\"}", 1, "no `statement`"),
            ("{\"statement\":\"recall 'x'\"", 26, ""),
            ("nonsense", 1, ""),
        ] {
            let problem = read(line, "f.jsonl", 3, None).job.err().unwrap();
            assert_eq!(
                (problem.about.line, problem.about.column),
                (Some(3), Some(column)),
                "{line}: {}",
                problem.message
            );
            assert!(problem.message.contains(told), "{}", problem.message);
        }
        let problem = read("{\"statement\":\"recal 'x'\"}", "f.jsonl", 1, None).job.err().unwrap();
        assert_eq!(problem.code, "syntax");
    }
}
