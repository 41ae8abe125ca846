//! Every bench on small data made on the spot: not how fast, but whether it works and its figures can be true.
//!
//! Each bench runs as a process of its own, as others run it, and its lines are read as others read them. What is
//! checked holds on any machine: counts, recall, that budgets are kept, that governed recall beats plain similarity. A
//! figure that fails its check ends the run with an error; times are printed and never judged.

pub(crate) mod conversation;
pub(crate) mod desk;
pub(crate) mod neighbours;

use crate::Result;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Records of the append bench.
const RECORDS: usize = 200;

pub(crate) fn run() -> Result<()> {
    let dir = tempfile::tempdir()?;
    check_closed_output()?;
    check_vectors(dir.path())?;
    check_append(dir.path())?;
    check_python(dir.path())?;
    check_upkeep(dir.path())?;
    check_writing(dir.path())?;
    check_knowledge(dir.path())?;
    check_locomo(dir.path())?;
    check_epistemic(dir.path())?;
    check_answers()
}

/// A bench whose reader leaves after the first line, as `head` does, ends in silence.
fn check_closed_output() -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    let kernels = ["vectors", "--kernels", "64", "--far-mib", "1"];
    let mut child = command.args(kernels).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8(output.stderr)?;
    check(output.status.success() && said.is_empty(), "a closed output", &(line, output.status, said))
}

fn check_vectors(dir: &Path) -> Result<()> {
    let names = ["base", "queries", "truth", "filter", "filtered"];
    let [base, queries, truth, filter, filtered] =
        names.map(|name| dir.join(format!("{name}.npy")).display().to_string());
    neighbours::write(dir, neighbours::SMALL)?;
    let common = ["vectors", "--base", &base, "--queries", &queries, "--ef", "32,128"];
    let plain = bench(&[&common[..], &["--truth", &truth, "--recall", "0.99"]].concat())?;
    let phases: Vec<&str> = plain.iter().map(|line| text(line, "phase")).collect::<Result<_>>()?;
    check(phases == ["build", "open", "search", "search", "search"], "vectors: the phases", &phases)?;
    check(number(&plain[0], "vectors")? == neighbours::SMALL.count as f64, "vectors: how many are built", &plain[0])?;
    check(number(&plain[0], "disk_bytes")? > 0.0, "vectors: the size of the segment", &plain[0])?;
    check(number(&plain[1], "first_answer_ms")? >= number(&plain[1], "open_ms")?, "vectors: opening", &plain[1])?;
    for line in &plain[2..] {
        check(number(line, "recall")? >= 0.9, "vectors: recall of the best 10", line)?;
        check(text(line, "strategy")? == "walk", "vectors: the strategy", line)?;
        check(number(line, "p50_us")? <= number(line, "p99_us")?, "vectors: quantiles", line)?;
    }
    let threads = ["--truth", &filtered, "--filter", &filter, "--threads", "2", "--encoding", "i8"];
    let scaled = bench(&[&common[..], &["--truth", &truth, "--scaling", "1,2", "--rounds", "2", "--cold"]].concat())?;
    for (line, threads) in scaled[2..].iter().zip([1.0, 2.0]) {
        check(number(line, "threads")? == threads, "vectors: threads in turn", line)?;
        check(number(line, "qps")? > 0.0 && number(line, "scaling")? > 0.0, "vectors: scaling", line)?;
    }
    let kernels = bench(&["vectors", "--kernels", "64", "--far-mib", "1"])?;
    check(kernels.len() == 2 * (1 + 7 * 4), "vectors: every kernel in every form", &kernels.len())?;
    for line in kernels.iter().filter(|line| line["kernel"] != "read") {
        check(number(line, "million_per_s")? > 0.0, "vectors: kernels", line)?;
    }
    let dir = dir.display().to_string();
    let writes = bench(&["vectors", "--writes", "20", "--held", "3000", "--dir", &dir])?;
    check(number(&writes[0], "found")? == 20.0, "vectors: what was committed is found", &writes[0])?;
    for mixed in &writes[1..] {
        check(number(mixed, "operations_per_s")? > 0.0, "vectors: reads beside writes", mixed)?;
    }
    for line in bench(&[&common[..], &threads].concat())?.iter().filter(|line| line["phase"] == "search") {
        check(number(line, "recall")? >= 0.9, "vectors: recall with a filter", line)?;
        check(number(line, "threads")? == 2.0, "vectors: threads", line)?;
    }
    Ok(())
}

fn check_python(dir: &Path) -> Result<()> {
    let (vectors, database) = (dir.join("python.f32"), dir.join("python.holo"));
    let numbers = (0..4_000_u16).flat_map(|n| f32::from(n % 7 + 1).to_le_bytes());
    std::fs::write(&vectors, numbers.collect::<Vec<u8>>())?;
    let (vectors, database) = (vectors.display().to_string(), database.display().to_string());
    let common = ["python", "--dim", "4", "--recalls", "20"];
    let lines = bench(&[&common[..], &["--vectors", &vectors, "--database", &database]].concat())?;
    let (load, recall) = (one(&lines, &[("what", "load")])?, one(&lines, &[("what", "recall")])?);
    check(number(load, "items")? == 1_000.0, "python: items", load)?;
    check(number(recall, "around_p50_us")? <= number(recall, "p50_us")?, "python: recalls", recall)
}

fn check_append(dir: &Path) -> Result<()> {
    let (count, dir) = (RECORDS.to_string(), dir.display().to_string());
    let lines = bench(&["append", "--bytes", "256", "--count", &count, "--log-only", "--dir", &dir])?;
    for engine in ["holotype", "raw", "holotype-log"] {
        for (mode, commits) in [("single", RECORDS), ("group100", RECORDS / 100), ("writers16", RECORDS)] {
            let line = one(&lines, &[("engine", engine), ("mode", mode)])?;
            check(number(line, "commits")? == commits as f64, "append: commits", line)?;
            check(number(line, "records_per_s")? > 0.0, "append: records a second", line)?;
            check(number(line, "p50_us")? <= number(line, "p99_us")?, "append: quantiles", line)?;
        }
    }
    Ok(())
}

fn check_upkeep(dir: &Path) -> Result<()> {
    let dir = dir.display().to_string();
    let lines = bench(&["upkeep", "--items", "2000", "--dependents", "10,100", "--dir", &dir])?;
    let pruned = one(&lines, &[("phase", "prune")])?;
    check(number(pruned, "pruned")? >= 1600.0, "upkeep: pruned items", pruned)?;
    let made = one(&lines, &[("phase", "consolidate")])?;
    check(number(made, "recalls")? == 400.0, "upkeep: a recall for each claim", made)?;
    let propagated = lines.iter().filter(|line| line["phase"] == "propagate").count();
    check(propagated == 2, "upkeep: propagation", &propagated)
}

fn check_writing(dir: &Path) -> Result<()> {
    let dir = dir.display().to_string();
    let small = ["--sizes", "300", "--rivals", "20", "--questions", "20", "--dir", &dir];
    for line in bench(&[&["claims"][..], &small].concat())? {
        check(number(&line, "right_first")? == 1.0, "claims: the newest call is first", &line)?;
        check(number(&line, "p50_us")? <= number(&line, "p99_us")?, "claims: quantiles", &line)?;
    }
    let small = ["ingest", "--items", "400", "--commit", "50", "--dim", "16", "--dir", &dir];
    for line in bench(&[&small[..], &["--bulk"]].concat())? {
        check(number(&line, "recall_after")? >= 0.99, "ingest: a bulk load is whole", &line)?;
    }
    for line in bench(&[&small[..], &["--fresh"]].concat())? {
        check(number(&line, "recall_fresh")? >= 0.99, "ingest: what is built anew is whole", &line)?;
        check(number(&line, "p99_commit_ms")? <= number(&line, "worst_commit_ms")?, "ingest: commits", &line)?;
        check(number(&line, "disk_bytes_item")? > 300.0, "ingest: bytes kept", &line)?;
        check(number(&line, "recall_after")? >= 0.99, "ingest: the nearest are found", &line)?;
    }
    Ok(())
}

fn check_knowledge(dir: &Path) -> Result<()> {
    let dir = dir.display().to_string();
    let sizes = ["--facts", "2000", "--concepts", "400", "--structured", "1000", "--lines", "3200"];
    let lines = bench(&[&["knowledge", "--dir", &dir][..], &sizes].concat())?;
    for hops in [0.0, 1.0, 2.0] {
        let of = |line: &&Value| line["phase"] == "hops" && line["hops"] == hops as u64;
        let line = lines.iter().find(of).ok_or_else(|| format!("knowledge: no line of {hops} hops"))?;
        check(number(line, "p50_us")? <= number(line, "p99_us")?, "knowledge: quantiles", line)?;
    }
    let split = one(&lines, &[("phase", "segments")])?;
    check(split["same_again"] == true && number(split, "segments")? > 1.0, "knowledge: segments", split)?;
    let made = one(&lines, &[("phase", "create")])?;
    check(number(made, "facts")? == 1_000.0, "knowledge: facts that are structured", made)?;
    let merge = lines.iter().find(|line| line["phase"] == "merge").ok_or("knowledge: no line of a merge")?;
    check(number(merge, "merged")? > 0.0, "knowledge: facts that are merged", merge)?;
    check(number(one(&lines, &[("phase", "credit")])?, "lines")? == 3_200.0, "knowledge: credit", &lines.last())?;
    for tail in [&[][..], &["--extract"]] {
        for line in bench(&[&["multihop", "--generated", "1", "--chains", "20"][..], tail].concat())? {
            let is_routed = line["method"] == "routed";
            check(!is_routed || number(&line, "above_best")? > 0.3, "multihop: hops find bridges", &line)?;
        }
    }
    Ok(())
}

fn check_locomo(dir: &Path) -> Result<()> {
    let data = dir.join("conversation");
    let questions = conversation::write(&data)? as f64;
    let lines = bench(&["locomo", "--data", &data.display().to_string()])?;
    for method in ["turns-vector", "turns-words", "turns-hybrid", "recalls", "archive", "default"] {
        let mut before = 0.0;
        for budget in [250, 500, 1000, 2000] {
            let of = |line: &&Value| line["method"] == method && line["budget"] == budget;
            let line = lines.iter().find(of).ok_or_else(|| format!("locomo: no line of {method} at {budget}"))?;
            let recall = number(line, "evidence_recall")?;
            check(number(line, "questions")? == questions, "locomo: questions", line)?;
            check(number(line, "tokens")? <= f64::from(budget), "locomo: the budget", line)?;
            check(recall <= 1.0 && recall >= before - 0.05, "locomo: more tokens hold no less", line)?;
            check(recall >= 0.9 || budget < 1000, "locomo: evidence recall", line)?;
            before = recall;
        }
    }
    Ok(())
}

fn check_epistemic(dir: &Path) -> Result<()> {
    let data = dir.join("desk");
    let questions = desk::write(&data)? as f64;
    let lines = bench(&["epistemic", "--data", &data.display().to_string()])?;
    let similarity = one(&lines, &[("method", "similarity"), ("episode", "all")])?;
    let default = one(&lines, &[("method", "default"), ("episode", "all")])?;
    check(number(similarity, "questions")? == questions, "epistemic: questions", similarity)?;
    check(number(default, "questions")? == questions, "epistemic: questions", default)?;
    let ablated = bench(&["ablation", "--data", &data.display().to_string()])?;
    let full = one(&ablated, &[("variant", "full")])?;
    let plain = one(&ablated, &[("variant", "no-governance")])?;
    check(ablated.len() == 11, "ablation: variants", &ablated.len())?;
    check(number(full, "score")? > number(plain, "score")?, "ablation: governance counts", full)?;
    check(number(default, "right_first_fresh")? >= 0.9, "epistemic: right in first place", default)?;
    check(number(default, "unmarked_failed_or_foreign")? == 0.0, "epistemic: failed and foreign rows", default)?;
    let (plain, ours) = (number(similarity, "bad_rows")?, number(default, "bad_rows")?);
    check(ours < plain, "epistemic: fewer bad rows than similarity alone", default)
}

fn check_answers() -> Result<()> {
    let lines = bench(&["answers", "--smoke", "--set", "recency.half-life=1d"])?;
    for (set, of) in [("babi", "changed"), ("tau-airline", "changed"), ("worlds-2s", "all"), ("agent", "all")] {
        let line = one(&lines, &[("set", set), ("of", of)])?;
        let (right, hit) = (number(line, "right_first")?, number(line, "hit_at_five")?);
        check(right <= hit && (0.0..=1.0).contains(&hit), "answers: the first row is one of five", line)?;
        check(number(line, "questions")? > 0.0, "answers: questions", line)?;
    }
    let languages = lines.iter().filter(|line| line["of"] == "updates").count();
    check(languages == 12, "answers: languages", &languages)?;
    for line in lines.iter().filter(|line| line["check"] == "equal") {
        let ways = ["prepared", "repeated", "limited"].map(|way| line[way] == 0);
        check(ways == [true; 3], "answers: the same answer in every way of asking", line)?;
    }
    for line in lines.iter().filter(|line| line["check"] == "hidden") {
        check(line["hidden"] == 0 || line["hidden"] == "skipped", "answers: nothing is hidden", line)?;
    }
    for line in lines.iter().filter(|line| line["check"] == "time") {
        check(number(line, "default_ms")? > 0.0 && number(line, "archive_ms")? > 0.0, "answers: times", line)?;
    }
    for line in lines.iter().filter(|line| !line["less"].is_null()) {
        check(number(line, "less")? <= 0.003, "answers: the default recall finds what archive finds", line)?;
    }
    Ok(())
}

/// Runs a bench, shows its lines and reads them.
fn bench(arguments: &[&str]) -> Result<Vec<Value>> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(arguments).stderr(Stdio::inherit()).output()?;
    let printed = String::from_utf8(output.stdout)?;
    print!("{printed}");
    if !output.status.success() {
        return Err(format!("{} ended with {}", arguments[0], output.status).into());
    }
    let lines: Vec<Value> = printed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    match lines.iter().find(|line| line["bench"] != arguments[0]) {
        Some(line) => Err(format!("{} printed {line}", arguments[0]).into()),
        None => Ok(lines),
    }
}

/// The one line that has these values.
fn one<'l>(lines: &'l [Value], values: &[(&str, &str)]) -> Result<&'l Value> {
    let found: Vec<&Value> =
        lines.iter().filter(|line| values.iter().all(|(name, value)| line[*name] == **value)).collect();
    match found[..] {
        [line] => Ok(line),
        _ => Err(format!("{} lines with {values:?} instead of one", found.len()).into()),
    }
}

fn check(holds: bool, what: &str, found: &impl std::fmt::Debug) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("{what}: {found:?}").into()) }
}

fn number(line: &Value, name: &str) -> Result<f64> {
    line[name].as_f64().ok_or_else(|| format!("no number `{name}` in {line}").into())
}

fn text<'l>(line: &'l Value, name: &str) -> Result<&'l str> {
    line[name].as_str().ok_or_else(|| format!("no text `{name}` in {line}").into())
}
